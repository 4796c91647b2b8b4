"""What the learners of a parity release: a hypothesis, its promise, and the privacy records."""

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
    """A parity or no release, which is an outcome of the mechanism; JSON holds its mask as a text.

    Attributes:
        mask: Array of uint8 of shape (d,): 1 for a feature that is summed. None without a release.
        intercept: Constant of an affine hypothesis; 0 if not affine, None without a release.
        released: Whether there is a hypothesis.
    """

    mask: Bits | None
    intercept: int | None
    released: bool

    @property
    def summary(self) -> str:
        """What the result is worth, in one sentence.

        Raises:
            NotImplementedError: The class is the common base, which promises nothing.
        """
        raise NotImplementedError

    def predict(self, X: ArrayLike | BitMatrix) -> Bits:
        """Predicts the labels of records, the intercept included.

        Args:
            X: Features 0 and 1 of shape (m, d), an array or a BitMatrix.

        Returns:
            Labels, uint8 of shape (m,).

        Raises:
            ParameterError: Nothing was released, or an entry of X is not 0 or 1.
            ShapeError: X has not d columns.

        Cost:
            One pass over X.
        """
        if self.mask is None:
            rule = "predict needs a hypothesis: nothing was released"
            raise ParameterError(f"mask = None, but {rule}")
        return dot(X, self.mask) ^ np.uint8(self.intercept or 0)

    def _to_fields(self) -> dict[str, Any]:
        """The hypothesis, the summary and all attributes; character j of the mask is bit j."""
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
    """What `learn` releases.

    Attributes:
        mask: Array of uint8 of shape (d,): 1 for a feature that is summed. None without a release.
        intercept: Constant of an affine hypothesis; 0 if not affine, None without a release.
        released: Whether there is a hypothesis. No release is an outcome of the mechanism, not an
            error.
        alpha: Error that is promised, with probability 1 - beta, if the records are drawn
            independently and some parity fits all of them. None if nothing is promised, or if the
            plan was one from chi2, which promises error 0.
        record: Privacy record of the curator's data.
        silence: Probability of no release if some parity fits every record; None where it is not
            known, which is the case for "paper".

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import parity
        >>> X = np.random.default_rng(0).integers(0, 2, (3000, 8), dtype=np.uint8)
        >>> result = parity.learn(X, X[:, 1] ^ X[:, 4], epsilon=1.0, beta=1e-10)
        >>> result.predict([[0, 1, 0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0]])
        array([0, 1], dtype=uint8)
        >>> parity.ParityResult.from_json(result.to_json()).record.epsilon
        1.0
    """

    alpha: float | None
    record: PrivacyRecord
    silence: float | None = None

    @property
    def summary(self) -> str:
        """What the result is worth, in one sentence."""
        if not self.released:
            return _describe_silence(self.silence, self.alpha)
        if self.alpha is not None:
            return f"error at most {self.alpha:.3g}, if some parity fits every record"
        if self.record.neighbors.startswith("add_remove"):
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
    """What `transfer` releases.

    Attributes:
        mask: Array of uint8 of shape (d,): 1 for a feature that is summed. None without a release.
        intercept: Constant of an affine hypothesis; 0 if not affine, None without a release.
        released: Whether there is a hypothesis.
        target_error: Estimated error on the agents' population, in [0, 1]. None without a release,
            when others have asked the agents meanwhile, or when none of them has answered.
        interval: Ends (low, high) of an interval that holds the true target error with probability
            1 - beta / 2. None where `target_error` is None.
        record: Privacy record of the curator's data.
        agents_record: Privacy record of the agents' answers; None if no agent was asked.
        silence: Probability of no release if some parity fits every record; None where it is not
            known, which is the case for "paper".

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, parity
        >>> X = np.random.default_rng(0).integers(0, 2, (9000, 8), dtype=np.uint8)
        >>> y = X[:, 1] ^ X[:, 4]
        >>> agents = local.Agents(X[3000:], y[3000:], epsilon=1.0)
        >>> goal = {"epsilon": 1.0, "alpha": 0.1, "beta": 1e-10}
        >>> result = parity.transfer(X[:3000], y[:3000], agents, **goal)
        >>> result.released, bool(result.interval[0] < 0.1), result.agents_record.epsilon
        (True, True, 1.0)
    """

    target_error: float | None
    interval: tuple[float, float] | None
    record: PrivacyRecord
    agents_record: PrivacyRecord | None
    silence: float | None = None

    @property
    def summary(self) -> str:
        """What the result is worth, in one sentence."""
        if not self.released:
            return _describe_silence(self.silence, None)
        if self.target_error is None or self.interval is None:
            cause = "no agent has answered, or others have asked its agents meanwhile"
            return f"the error on the target is unknown: {cause}"
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

    Any exception means that the object is not one that `to_json` wrote.
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
    """Says in one sentence why there may be no release."""
    chance = "rarely" if probability is None else f"with probability {probability:.2g} only"
    promise = "" if alpha is None else f" (and then its error would be at most {alpha:.3g})"
    cause = "wrong labels, that is noise, are the likely cause"
    happens = f"where some parity fits every record this happens {chance}{promise}"
    return f"nothing was released: {happens}; {cause}, against which no number of records helps"


def _describe_protection(record: PrivacyRecord) -> str:
    """The guarantee of a privacy record, in a few words."""
    return f"epsilon={record.epsilon:g} ({record.neighbors})"
