"""Learning a parity from a curator's records."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import keep_result, note
from .._support.random_state import check_random_state, make_key
from .._support.types import RandomState
from .._support.validate import bit_entries, flag, number, refuse, shorten
from ..budget.account import Budget, spend
from ..data.chunks import Chunks, settle_owners
from ..data.persons import Persons, read_persons
from ..exceptions import InsufficientSamples, ParameterError, ShapeError
from ..gf2 import BitMatrix
from ..record import PrivacyRecord, rng_of
from .equations import Mechanism, Parts, Source, Whole, pack_records
from .planning import Method, Neighbors, ParityPlan
from .results import ParityResult

# The error for which a note computes the records needed, if n records promise nothing.
_TYPICAL_ALPHA = 0.1

_SOURCE = "Kasiviswanathan et al., What Can We Learn Privately?, Section 4"
_BATCHES = "Poisson sampling of disjoint batches, a stop coin each, a uniform solution"
_NOISE = {
    "loop": "Poisson sampling, a stop coin before every try, a uniform solution",
    "batches": _BATCHES,
    "paper": f"{_BATCHES}, discrete Laplace noise on the test errors",
}


@keep_result
def learn(
    X: ArrayLike | BitMatrix | Chunks,
    y: ArrayLike | None = None,
    *,
    epsilon: float,
    beta: float = 0.05,
    method: Method = "loop",
    neighbors: Neighbors = "replace_one",
    plan: ParityPlan | None = None,
    affine: bool = False,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> ParityResult:
    """Learns a parity of 0/1 features from labeled records, under pure differential privacy.

    A parity labels a record with the sum over GF(2) of some of its features. The learner draws a
    random sample of the records, solves the linear equations over GF(2) that the sample gives, and
    releases a solution drawn uniformly. Where the sample has no solution, "loop" tries again with a
    new sample; before every try a coin may stop it without a release. "batches" solves the systems
    of k disjoint batches and releases the first solution. "paper" lets held-out records choose
    among the batches, as the paper's Algorithm A* does.

    Without a plan any number of records is accepted, and the result's `alpha` says what they
    promise. Where they promise nothing, a UtilityWarning says so and how many records would promise
    an error of 0.1. Under "add_remove" the number of records is private, so neither is said.
    Another UtilityWarning says when nothing was released, which is an outcome of the mechanism and
    no error.

    Args:
        X: Features 0 and 1 of shape (n, d): bool, integers or floats in any container, or a
            BitMatrix; or data.Chunks of them with their labels, which are read one after the other
            and several times. What is sparse or lazy is refused by an error that says what
            to call first.
        y: Labels 0 and 1 of shape (n,). None beside Chunks.
        epsilon: Privacy parameter, a finite number above 0.
        beta: Probability, in [1e-15, 1), with which the promise may fail; no release counts as
            failure. It is not used with a plan, which has its own.
        method: "loop" needs the fewest records. "batches" has a running time that hardly depends on
            the data. "paper" runs the paper's constants, for epsilon at most 1/2 and "replace_one"
            only.
        neighbors: "replace_one" if neighboring data sets differ in one record's value, "add_remove"
            if one of them lacks a record.
        plan: A plan that `parity.plan` made for this epsilon and for d unknown bits, d + 1 if
            affine. Its method, neighbor relation and beta are used. None makes a plan for the n
            records at hand.
        affine: Whether a constant may be added to the parity, and is learned as well.
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows, at epsilon / rows_per_person for each row. A plan
            must be for the latter. None protects each row. Chunks name a column of ids themselves.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one who knows it.
        budget: Budget that is charged epsilon before the mechanism runs; None charges nothing.

    Returns:
        The hypothesis or no release, what it promises, and the privacy record.

    Raises:
        ShapeError: X has not two dimensions, or y or ids has not one entry for each record.
        ParameterError: An entry is not 0 or 1, a parameter is out of range, the plan was made for
            other parameters, or there are `2**32` records or more.
        InsufficientSamples: There are fewer records than the plan needs, and n is public.
        BudgetExceeded: The budget does not hold epsilon. This and all errors above are raised
            before any coin is drawn or budget spent.
        Exception: What the functions of Chunks raise. In the first pass nothing is spent then.

    Guarantee:
        Pure epsilon-DP for each row under `neighbors`, or with ids for each person, on every data
        set, including those that no parity fits. The random draws are exact. A record is in a
        sample with probability p, and one more equation keeps all solutions, half of them, or none.
        The rate p is computed from epsilon, whatever the plan says: for "loop" and "batches" it is
        the largest for which epsilon is proved, given the probability of stopping that the plan has
        chosen, rounded down.

        The running time is not protected, nor is how often "loop" reads Chunks; that of "batches"
        depends on the data least.

    Cost:
        The exact solution of about p n equations, for each try of "loop" or for all batches
        together: at most `O(p n d**2 / 64 / log d)` word operations. Beside X, memory for two bit
        matrices of d by d, for each system that is solved. Chunks are read once to be checked and
        counted, and once more for each try, of which there is one where some parity fits all
        records, and 10 / beta on average where none nearly does, or once for all batches. Of the
        sampled records d + 64 wait at a time, until the rank is full; from then on they are
        verified where they lie. With workers each of them makes a span of its own, of at most
        `(d + 1)**2 / 32` bytes.

    Source:
        Kasiviswanathan et al. 2011, Section 4, Algorithm A and its amplification.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import parity
        >>> X = np.random.default_rng(0).integers(0, 2, (3000, 8), dtype=np.uint8)
        >>> y = X[:, 1] ^ X[:, 4]
        >>> result = parity.learn(X, y, epsilon=1.0, beta=1e-10)
        >>> result.mask
        array([0, 1, 0, 0, 1, 0, 0, 0], dtype=uint8)
        >>> result.summary
        'error at most 0.0303, if some parity fits every record'
    """
    check_random_state(random_state)
    flag("affine", affine)
    source, persons = _open_source(X, y, bool(affine), ids, rows_per_person)
    each = persons.share(epsilon).epsilon
    n, d, _ = source.public
    unknowns = d + bool(affine)
    fields: Mapping[str, Any]
    if plan is None:
        alpha, fields = _core.promise_parity(unknowns, n, beta, each, method, neighbors)
    else:
        _check_plan(plan, n, unknowns, each, method, neighbors)
        method, neighbors, alpha = plan.method, plan.neighbors, plan.alpha
        fields = vars(plan)
    mechanism = Mechanism(each, method, neighbors, fields)
    mechanism.open()
    row_record = PrivacyRecord(
        mechanism=f"parity.learn, method={method}",
        source=_SOURCE,
        neighbors=neighbors,
        epsilon=epsilon,
        noise=_NOISE[method],
        rng=rng_of(random_state),
    )
    record = persons.state(row_record)
    if alpha is None and plan is None and neighbors == "replace_one":
        _note_no_promise(n, unknowns, beta, each, method)
    with spend(budget, record):
        key = make_key(random_state) or secrets.token_bytes(32)
        solution = mechanism.learn(source, key)
    result = ParityResult(
        mask=None if solution is None else solution[:d],
        intercept=None if solution is None else int(solution[d:].sum()),
        released=solution is not None,
        alpha=alpha,
        record=record,
        silence=_probability_of_silence(method, fields),
    )
    if not result.released:
        note(result.summary)
    return result


def _open_source(
    X: ArrayLike | BitMatrix | Chunks,
    y: ArrayLike | None,
    affine: bool,
    ids: ArrayLike | None,
    rows_per_person: int,
) -> tuple[Source, Persons]:
    """The records, all of them checked, and who owns them."""
    if isinstance(X, Chunks):
        if y is not None:
            raise ParameterError("y was passed beside Chunks, which hold the labels")
        chunks, persons = settle_owners(X, ids, rows_per_person)
        return Parts(chunks, affine), persons
    if y is None:
        raise ParameterError("y = None, but arrays of records must come with their labels")
    records, labels = pack_records(X), bit_entries("y", y)
    persons = read_persons(ids, rows_per_person, len(records))
    if not persons.keeps_all:
        if labels.shape != (len(records),):
            raise ShapeError(f"y has shape {labels.shape}, but X has {len(records):,} records")
        records, labels = persons.select(records), persons.select(labels)
    return Whole(records, labels, affine), persons


def _note_no_promise(n: int, unknowns: int, beta: float, epsilon: float, method: Method) -> None:
    """Warns that these records promise nothing, and says how many would; n is public here."""
    goal = (_TYPICAL_ALPHA, beta, epsilon, method, "replace_one")
    try:
        needed = f"{_core.plan_parity(unknowns, *goal)['n']:,}"
    except ParameterError:
        needed = "more than 2**62"
    have = f"X has {n:,} records for {unknowns:,} unknown bits"
    promise = "no error below 1/2 is promised, however well the hypothesis fits"
    note(f"{have}: {promise}; an error of {_TYPICAL_ALPHA} needs {needed} (parity.plan)")


def _probability_of_silence(method: Method, fields: Mapping[str, Any]) -> float | None:
    """The probability of no release where every sample has a solution, from public parameters."""
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
    # Where n is private, an error would show whether it is below.
    if plan.neighbors == "replace_one" and n < plan.n:
        raise InsufficientSamples(f"X has {n:,} records, but the plan needs {plan.n:,}")
