"""Learning a parity from a curator's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import note
from .._support.random_state import check_random_state, make_key
from .._support.types import RandomState
from .._support.validate import number, refuse, shorten
from ..budget.account import Budget, spend
from ..exceptions import InsufficientSamples, ParameterError
from ..gf2 import BitMatrix
from ..record import PrivacyRecord, rng_of
from .planning import Method, Neighbors, ParityPlan
from .results import ParityResult

# The error of the plan that is offered where nothing can be promised.
_TYPICAL_ALPHA = 0.1

_SOURCE = "Kasiviswanathan et al., What Can We Learn Privately?, Section 4"
_BATCHES = "Poisson sampling of disjoint batches, a stop coin each, a uniform solution"
_NOISE = {
    "loop": "Poisson sampling, a stop coin before every try, a uniform solution",
    "batches": _BATCHES,
    "paper": f"{_BATCHES}, discrete Laplace noise on the test errors",
}


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
