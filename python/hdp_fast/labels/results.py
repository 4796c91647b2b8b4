"""What labelers answer: labels, or scores, and what is left to be asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonText
from .._support.notes import note
from ..record import PrivacyRecord

# Fewer answers may well be a single label.
_FEW_ANSWERS = 8


@dataclass(frozen=True, kw_only=True, repr=False)
class LabelResult(JsonText):
    """Answers to queries.

    Attributes:
        labels: Answers to the first queries, as many as were answered before the labeler ended, of
            the type of the classes. The labeler's marker stands where the answer is bottom.
        is_bottom: bool, True where the answer is bottom.
        unstable_left: Number of bottoms until the labeler ends; None where there are none, or any
            number.
        queries_left: Number of queries that may still be asked; None where it is any number.
        record: PrivacyRecord of all answers of the labeler together; None with diagnose=True.
        flip_probability: Probability that a unanimous vote of the members is not answered with its
            label. It is a public number, which no answer changes.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> answers = {"labels": np.array([1, 0, 1, -1]), "is_bottom": np.arange(4) == 3}
        >>> left = {"unstable_left": 4, "queries_left": 96}
        >>> result = labels.LabelResult(**answers, **left, record=None)  # as label returns it
        >>> result
        LabelResult(3 answered, 1 bottoms, shares {0: 0.333, 1: 0.667}, 96 queries left)
    """

    labels: NDArray[Any]
    is_bottom: NDArray[np.bool_]
    unstable_left: int | None
    queries_left: int | None
    record: PrivacyRecord | None
    flip_probability: float | None = None

    @property
    def shares(self) -> dict[Any, float]:
        """The share of each label among the answers that are not bottom."""
        values, counts = np.unique(self.labels[~self.is_bottom], return_counts=True)
        shares = counts / max(1, counts.sum())
        return dict(zip(values.tolist(), shares.tolist(), strict=True))

    def _to_fields(self) -> Mapping[str, Any]:
        return {**super()._to_fields(), "shares": self.shares}

    def __repr__(self) -> str:
        bottoms = int(np.count_nonzero(self.is_bottom))
        shares = ", ".join(f"{label!r}: {share:.3f}" for label, share in self.shares.items())
        counts = f"{len(self.labels) - bottoms:,} answered, {bottoms:,} bottoms"
        left = "any number of queries left"
        if self.queries_left is not None:
            left = f"{self.queries_left:,} queries left"
        return f"LabelResult({counts}, shares {{{shares}}}, {left})"


def note_one_label(result: LabelResult) -> None:
    """Note that released answers of a single label may be those of members that failed."""
    shares = result.shares
    answered = np.count_nonzero(~result.is_bottom)
    if answered >= _FEW_ANSWERS and len(shares) == 1:
        (label,) = shares
        cause = "as they are where members fail on private rows, or learn the more frequent label"
        advice = "try the learner with diagnose=True on public rows like them"
        note(f"all {answered:,} answers are one label, {label!r}, {cause}: {advice}")


@dataclass(frozen=True, kw_only=True)
class ScoreResult(JsonText):
    """Answers to queries for soft labels.

    Attributes:
        scores: float64, answers to the first queries, as many as were answered before the labeler
            ended: the center of a bin, or NaN where the answer is bottom.
        is_bottom: bool, True where the answer is bottom.
        unstable_left: Number of bottoms until the labeler ends.
        queries_left: Number of votes that may still be held, up to two for each score.
        record: PrivacyRecord of all answers of the labeler together; None with diagnose=True.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> answers = {"scores": np.array([0.25, np.nan]), "is_bottom": np.array([False, True])}
        >>> left = {"unstable_left": 3, "queries_left": 17}
        >>> result = labels.ScoreResult(**answers, **left, record=None)  # as score returns it
        >>> result.scores[~result.is_bottom]
        array([0.25])
    """

    scores: NDArray[np.float64]
    is_bottom: NDArray[np.bool_]
    unstable_left: int | None
    queries_left: int
    record: PrivacyRecord | None
