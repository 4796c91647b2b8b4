"""Learning a parity from a curator's records."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import note
from .._support.random_state import check_random_state, make_key
from .._support.types import Bits, RandomState
from .._support.validate import from_json, number, probability, refuse, shorten
from ..budget.account import Budget, spend
from ..exceptions import InsufficientSamples, ParameterError
from ..gf2 import BitMatrix, dot
from ..record import PrivacyRecord, rng_of
from .planning import Method, Neighbors, ParityPlan

# The error of the plan that is offered where nothing can be promised.
_TYPICAL_ALPHA = 0.1

_SOURCE = "Kasiviswanathan et al., What Can We Learn Privately?, Section 4"
_BATCHES = "Poisson sampling of disjoint batches, a stop coin each, a uniform solution"
_NOISE = {
    "loop": "Poisson sampling, a stop coin before every try, a uniform solution",
    "batches": _BATCHES,
    "paper": f"{_BATCHES}, discrete Laplace noise on the test errors",
}


@dataclass(frozen=True, eq=False)
class ParityResult:
    """What learn releases.

    Attributes:
        mask: uint8 (d,), which features are summed; None without a release.
        intercept: the constant of an affine hypothesis; 0 if not affine, None without a release.
        released: whether there is a hypothesis. No release is part of the mechanism, not an error.
        alpha: error promised for records drawn independently that some parity fits; None if none.
        record: what protects the records.
        silence: probability of no release where some parity fits every record; None if unknown.
    """

    mask: Bits | None
    intercept: int | None
    released: bool
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

    def predict(self, X: ArrayLike | BitMatrix) -> Bits:
        """Predict the labels of records, the intercept included.

        X: 0/1 (m, d), an array or a BitMatrix. Returns uint8 (m,).

        Raises: ParameterError without a release; ShapeError, ParameterError for other records.
        Cost: a pass over X.
        Source: none.
        """
        return predict_parity(self.mask, self.intercept, X)

    def to_json(self) -> str:
        """The result as a JSON object, which from_json reads; the mask is a text, bit by bit.

        Raises: nothing.
        Cost: O(d).
        Source: none.
        """
        return json.dumps(
            {
                **describe_parity(self.mask, self.intercept),
                "alpha": self.alpha,
                "silence": self.silence,
                "summary": self.summary,
                "record": dataclasses.asdict(self.record),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> ParityResult:
        """The result that to_json wrote, or hdp-fast parity learn.

        text: a JSON object.

        Raises: ParameterError when it is not one.
        Cost: O(d).
        Source: none.
        """
        return from_json("text", text, "ParityResult.to_json", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> ParityResult:
        alpha, silence = fields["alpha"], fields.get("silence")
        return cls(
            **read_parity(fields),
            alpha=None if alpha is None else probability("alpha", alpha),
            record=PrivacyRecord(**fields["record"]),
            silence=None if silence is None else probability("silence", silence),
        )

    def __repr__(self) -> str:
        hypothesis = describe_hypothesis(self.mask, self.intercept)
        protection = describe_protection(self.record)
        return f"ParityResult({hypothesis}, alpha={self.alpha}, {protection})"


def learn(
    X: ArrayLike | BitMatrix,
    y: ArrayLike,
    *,
    epsilon: float,
    beta: float = 0.05,
    method: Method = "loop",
    neighbors: Neighbors = "replace_one",
    plan: ParityPlan | None = None,
    affine: bool = False,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> ParityResult:
    """Learn a parity under pure differential privacy.

    X: 0/1 (n, d), an array of bool or any integer dtype, or a BitMatrix; y: 0/1 (n,). Errors about
    floats, frames of nullable columns and sparse matrices say how to make such an array of them.
    epsilon: privacy parameter, above 0. beta: failure probability to aim at. method, neighbors:
    as in plan(). plan: made by plan() for these d (plus one if affine) and epsilon; its method,
    neighbors and beta hold. Without one any number of records will do, and the result's alpha
    says what they promise (a warning tells where that is nothing, and how many would promise
    .1); under "add_remove" it says nothing, since n is private then.
    affine: learn a constant as well. random_state: None draws from the operating system; an int or
    a Generator makes a reproducible test stream that protects nobody who knows it. budget: charged
    epsilon, before the mechanism runs.

    Guarantee: pure epsilon-DP for each row, on every data set, also one that no parity fits; exact
        coins. (A changed row at most doubles or empties the solutions of a sample, and is in it
        with probability p; p and the stop coin are the largest that epsilon allows.) The running
        time is not protected; that of "batches" depends on the data least.
    Raises: ShapeError, ParameterError; InsufficientSamples for fewer records than the plan needs;
        BudgetExceeded. All of them before any coin is drawn or budget spent.
    Cost: an exact solution of about p n equations for each try or batch: O(p n d**2 / 64 / log d)
        word operations at most; memory beside X two bit matrices of d x d.
    Source: Kasiviswanathan et al. 2011, Section 4, Algorithm A and its amplification.
    """
    check_random_state(random_state)
    if not isinstance(affine, bool | np.bool_):
        refuse("affine", affine, "it must be True or False")
    X = pack_records(X)
    refuse_sparse("y", y)
    n, d = X.shape
    unknowns = d + bool(affine)
    fields: Mapping[str, Any]
    if plan is None:
        alpha, fields = _core.promise_parity(unknowns, n, beta, epsilon, method, neighbors)
    else:
        _check_plan(plan, n, unknowns, epsilon, method, neighbors)
        method, neighbors, alpha = plan.method, plan.neighbors, plan.alpha
        fields = vars(plan)
    task = _core.ParityTask(X, y, epsilon, method, neighbors, fields, bool(affine))
    record = PrivacyRecord(
        mechanism=f"parity.learn, method={method}",
        source=_SOURCE,
        neighbors=neighbors,
        epsilon=epsilon,
        noise=_NOISE[method],
        rng=rng_of(random_state),
    )
    if alpha is None and plan is None and neighbors == "replace_one":
        _note_no_promise(n, unknowns, beta, epsilon, method)
    with spend(budget, record):
        bits = task.learn(make_key(random_state))
    result = ParityResult(
        mask=None if bits is None else bits[:d],
        intercept=None if bits is None else int(bits[d:].sum()),
        released=bits is not None,
        alpha=alpha,
        record=record,
        silence=_probability_of_silence(method, fields),
    )
    if not result.released:
        note(result.summary)
    return result


def pack_records(X: ArrayLike | BitMatrix) -> BitMatrix:
    """The records as a matrix; an error says how to make one of what is no array of bits.

    Raises: ShapeError, ParameterError.
    """
    return X if isinstance(X, BitMatrix) else BitMatrix.from_dense(X)


def refuse_sparse(name: str, value: Any) -> None:
    """Refuse a sparse matrix, which numpy takes for one object.

    Raises: ParameterError.
    """
    if hasattr(value, "toarray"):
        refuse(name, value, f"it must be dense: {name}.toarray()")


def _note_no_promise(n: int, unknowns: int, beta: float, epsilon: float, method: Method) -> None:
    """Say that so few records promise nothing, and how many would; n is public here."""
    goal = (_TYPICAL_ALPHA, beta, epsilon, method, "replace_one")
    try:
        needed = f"{_core.plan_parity(unknowns, *goal)['n']:,}"
    except ParameterError:
        needed = "more than 2**62"
    have = f"X has {n:,} records for {unknowns:,} unknown bits"
    promise = "no error below 1/2 is promised, however well the hypothesis fits"
    note(f"{have}: {promise}; an error of {_TYPICAL_ALPHA} needs {needed} (parity.plan)")


def _probability_of_silence(method: Method, fields: Mapping[str, Any]) -> float | None:
    """The probability of no release where every sample has a solution; from public parameters."""
    if method == "loop":
        return float(fields["g"])
    return float(fields["c"]) ** int(fields["k"]) if method == "batches" else None


def _describe_silence(probability: float | None, alpha: float | None) -> str:
    """Why there may be no release, in one sentence."""
    chance = "rarely" if probability is None else f"with probability {probability:.2g} only"
    promise = "" if alpha is None else f" (and then its error would be at most {alpha:.3g})"
    cause = "wrong labels, that is noise, are the likely cause"
    happens = f"where some parity fits every record this happens {chance}{promise}"
    return f"nothing was released: {happens}; {cause}, against which no number of records helps"


def _check_plan(
    plan: ParityPlan, n: int, unknowns: int, epsilon: float, method: Method, neighbors: Neighbors
) -> None:
    if not isinstance(plan, ParityPlan):
        rule = "it must come from hdp_fast.parity.plan"
        raise ParameterError(f"plan = {type(plan).__name__}, but {rule}")
    for name, value, default in (
        ("epsilon", number("epsilon", epsilon), None),
        ("method", method, "loop"),
        ("neighbors", neighbors, "replace_one"),
    ):
        planned = getattr(plan, name)
        if value not in (planned, default):
            refuse(name, value, f"the plan is for {shorten(planned)}")
    if plan.d != unknowns:
        columns = "the columns of X, plus one if affine"
        raise ParameterError(f"plan.d = {plan.d:,}, but {columns}, are {unknowns:,}")
    if n < plan.n:
        raise InsufficientSamples(f"X has {n:,} records, but the plan needs {plan.n:,}")


def predict_parity(mask: Bits | None, intercept: int | None, X: ArrayLike | BitMatrix) -> Bits:
    """The labels that a released parity predicts.

    Raises: ParameterError without a release; as gf2.dot.
    """
    if mask is None:
        raise ParameterError("mask = None, but predict needs a hypothesis: nothing was released")
    return dot(X, mask) ^ np.uint8(intercept or 0)


def describe_parity(mask: Bits | None, intercept: int | None) -> dict[str, Any]:
    """A parity as JSON has it: character j of the mask is bit j."""
    # A list of 10,000 numbers would be five times as long.
    text = None if mask is None else "".join(map(str, mask.tolist()))
    return {"released": mask is not None, "mask": text, "intercept": intercept}


def read_parity(fields: dict[str, Any]) -> dict[str, Any]:
    """The parity that describe_parity wrote, with its fields as results have them.

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


def describe_hypothesis(mask: Bits | None, intercept: int | None) -> str:
    """A parity in a few words."""
    if mask is None:
        return "no release"
    ones = f"{int(mask.sum()):,} of {len(mask):,} features"
    return f"{ones}, intercept {intercept}"


def describe_protection(record: PrivacyRecord) -> str:
    """What a record promises, in a few words."""
    return f"epsilon={record.epsilon:g} ({record.neighbors})"
