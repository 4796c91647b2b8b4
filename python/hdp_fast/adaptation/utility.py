"""What a fit is worth and holds, in words: from public records and released numbers alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.notes import note
from .discrepancies.moments import Sample

# Above this share of the source, what the target says hardly counts.
_LARGEST_SHARE = 0.95


def note_share(alpha: float) -> None:
    """Say that the target hardly counts, where the released discrepancy suggests it."""
    if alpha > _LARGEST_SHARE:
        rule = "so that the target hardly counts, and SourceOnly is about as good"
        advice = "a larger epsilon, more records of the target or a smaller alpha may help"
        note(f"alpha_ = {alpha:.3g} is the share of the source, {rule}: {advice}")


def note_constant(sample: Sample, predictions: NDArray[Any], loss: str, alpha: float) -> None:
    """Say that features are of no use, as far as records tell whose labels are public.

    predictions: of these records. alpha: where the target was to count for more, the source's
    records tell nothing.
    """
    if sample.name == "source" and alpha < 0.5:
        return
    own, constant = _compare_with_constant(sample.y, predictions, loss)
    if own >= constant:
        what = "mean squared error" if loss == "squared" else "share of errors"
        advice = "a larger epsilon, more records, or another radius and norm_bound may help"
        text = f"coef_ has a {what} of {own:.3g} on the records of the {sample.name}"
        note(f"{text}, where the best constant has {constant:.3g}: {advice}")


def note_score(score: float, loss: str, classes: int) -> None:
    """Say that what was chosen is no better than a constant can be on any records."""
    # The squared error of 0, as a share of 4, or errors of the label that is most frequent.
    constant = 0.25 if loss == "squared" else 1 - 1 / classes
    if score >= constant:
        advice = "a larger epsilon, more records of the target or another grid may help"
        note(f"score = {score:.3g}, where some constant has at most {constant:.3g}: {advice}")


def _compare_with_constant(
    labels: NDArray[Any], predictions: NDArray[Any], loss: str
) -> tuple[float, float]:
    """The mean loss of the predictions, and that of the best constant."""
    if loss == "squared":
        return float(np.square(predictions - labels).mean()), float(labels.var())
    classes = labels > 0 if loss == "logistic" else labels
    _, counts = np.unique(classes, return_counts=True)
    return float((predictions != classes).mean()), 1 - float(counts.max()) / len(labels)


def coefficient_table(names: Iterable[str], coef: Iterable[float]) -> str:
    """A line for each coefficient, the largest first: its name, and four digits of it.

    names, coef: as many of each.
    """
    rows = sorted(zip(names, coef, strict=True), key=lambda row: -abs(row[1]))
    texts = [(name, f"{value:.4g}") for name, value in rows]
    width = max((len(name) for name, _ in texts), default=0)
    digits = max((len(text) for _, text in texts), default=0)
    return "\n".join(f"{name:<{width}}  {text:>{digits + 2}}" for name, text in texts)
