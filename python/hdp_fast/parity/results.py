"""What the learners of a parity release: a hypothesis, what it is worth, and its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .._support.json_text import JsonObject
from .._support.types import Bits
from .._support.validate import finite_number, ordered_pair, probability
from ..exceptions import ParameterError
from ..gf2 import BitMatrix, dot
from ..record import PrivacyRecord


@dataclass(frozen=True, eq=False)
class ReleasedParity(JsonObject):
    """A parity, or no release, which is part of the mechanism; its mask is a text in JSON.

    Attributes:
        mask: uint8 (d,), which features are summed; None without a release.
        intercept: the constant of an affine hypothesis; 0 if not affine, None without a release.
        released: whether there is a hypothesis.
    """

    mask: Bits | None
    intercept: int | None
    released: bool

    @property
    def summary(self) -> str:
        """What the result is worth, in one sentence."""
        raise NotImplementedError

    def predict(self, X: ArrayLike | BitMatrix) -> Bits:
        """Predict the labels of records, the intercept included.

        X: 0/1 (m, d), an array or a BitMatrix. Returns uint8 (m,).

        Raises: ParameterError without a release; ShapeError, ParameterError for other records.
        Cost: a pass over X.
        Source: none.
        """
        if self.mask is None:
            rule = "predict needs a hypothesis: nothing was released"
            raise ParameterError(f"mask = None, but {rule}")
        return dot(X, self.mask) ^ np.uint8(self.intercept or 0)

    def _to_fields(self) -> dict[str, Any]:
        """The hypothesis, the summary, and the rest; character j of the mask is bit j."""
        # A list of 10,000 numbers would be five times as long.
        text = None if self.mask is None else "".join(map(str, self.mask.tolist()))
        hypothesis = {"released": self.released, "mask": text, "intercept": self.intercept}
        return {**hypothesis, "summary": self.summary, **vars(self), **hypothesis}

    def _describe(self) -> str:
        """The hypothesis in a few words."""
        if self.mask is None:
            return "no release"
        ones = f"{int(self.mask.sum()):,} of {len(self.mask):,} features"
        return f"{ones}, intercept {self.intercept}"


@dataclass(frozen=True, eq=False)
class ParityResult(ReleasedParity):
    """What learn releases.

    Attributes:
        mask: uint8 (d,), which features are summed; None without a release.
        intercept: the constant of an affine hypothesis; 0 if not affine, None without a release.
        released: whether there is a hypothesis. No release is part of the mechanism, not an error.
        alpha: error promised for records drawn independently that some parity fits; None if none.
        record: what protects the records.
        silence: probability of no release where some parity fits every record; None if unknown.
    """

    alpha: float | None
    record: PrivacyRecord
    silence: float | None = None

    @property
    def summary(self) -> str:
        """What the result is worth, in one sentence.

        Raises: nothing.
        Cost: constant.
        Source: none.
        """
        if not self.released:
            return _describe_silence(self.silence, self.alpha)
        if self.alpha is not None:
            return f"error at most {self.alpha:.3g}, if some parity fits every record"
        if self.record.neighbors == "add_remove":
            return "no promise: under add_remove the number of records is private"
        return "no promise: so few records promise no error below 1/2"

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        alpha, silence = fields["alpha"], fields.get("silence")
        return cls(
            **_read_hypothesis(fields),
            alpha=None if alpha is None else probability("alpha", alpha),
            record=PrivacyRecord(**fields["record"]),
            silence=None if silence is None else probability("silence", silence),
        )

    def __repr__(self) -> str:
        protection = _describe_protection(self.record)
        return f"ParityResult({self._describe()}, alpha={self.alpha}, {protection})"


@dataclass(frozen=True, eq=False)
class ParityTransferResult(ReleasedParity):
    """What transfer releases.

    Attributes:
        mask: uint8 (d,), which features are summed; None without a release.
        intercept: the constant of an affine hypothesis; 0 if not affine, None without a release.
        released: whether there is a hypothesis.
        target_error: estimated error on the agents' population, in [0, 1]; None without a release,
            or when others have asked the agents meanwhile.
        interval: (low, high) that holds the true target error; None as target_error.
        record: what protects the curator's records.
        agents_record: what protects each agent's answer; None if none was asked.
        silence: probability of no release where some parity fits every record; None if unknown.
    """

    target_error: float | None
    interval: tuple[float, float] | None
    record: PrivacyRecord
    agents_record: PrivacyRecord | None
    silence: float | None = None

    @property
    def summary(self) -> str:
        """What the result is worth, in one sentence.

        Raises: nothing.
        Cost: constant.
        Source: none.
        """
        if not self.released:
            return _describe_silence(self.silence, None)
        if self.target_error is None or self.interval is None:
            return "the error on the target is unknown: others have asked its agents meanwhile"
        low, high = self.interval
        error = f"error {self.target_error:.3g} on the target, between {low:.3g} and {high:.3g}"
        return error if high < 0.5 else f"{error}: not shown to be better than guessing, 1/2"

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        error, interval = fields["target_error"], fields["interval"]
        agents, silence = fields["agents_record"], fields.get("silence")
        return cls(
            **_read_hypothesis(fields),
            target_error=None if error is None else finite_number("target_error", error),
            interval=None if interval is None else ordered_pair("interval", interval),
            record=PrivacyRecord(**fields["record"]),
            agents_record=None if agents is None else PrivacyRecord(**agents),
            silence=None if silence is None else probability("silence", silence),
        )

    def __repr__(self) -> str:
        error = f"target_error={self.target_error}, interval={self.interval}"
        protection = _describe_protection(self.record)
        return f"ParityTransferResult({self._describe()}, {error}, {protection})"


def _read_hypothesis(fields: dict[str, Any]) -> dict[str, Any]:
    """The parity of a JSON object, with its fields as results have them.

    Raises: any exception when it is not one.
    """
    text, intercept = fields["mask"], fields["intercept"]
    if fields["released"] is not (text is not None):
        raise ParameterError("released must be true with a mask, and false without one")
    if text is None:
        return {"mask": None, "intercept": None, "released": False}
    if not text or set(text) - {"0", "1"} or intercept not in (0, 1):
        raise ParameterError("mask and intercept must hold 0 and 1 alone")
    mask = np.frombuffer(text.encode(), np.uint8) - np.uint8(ord("0"))
    return {"mask": mask, "intercept": int(intercept), "released": True}


def _describe_silence(probability: float | None, alpha: float | None) -> str:
    """Why there may be no release, in one sentence."""
    chance = "rarely" if probability is None else f"with probability {probability:.2g} only"
    promise = "" if alpha is None else f" (and then its error would be at most {alpha:.3g})"
    cause = "wrong labels, that is noise, are the likely cause"
    happens = f"where some parity fits every record this happens {chance}{promise}"
    return f"nothing was released: {happens}; {cause}, against which no number of records helps"


def _describe_protection(record: PrivacyRecord) -> str:
    """What a record promises, in a few words."""
    return f"epsilon={record.epsilon:g} ({record.neighbors})"
