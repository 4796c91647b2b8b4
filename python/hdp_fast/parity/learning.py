"""Learning a parity from a curator's records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import keep_result, note
from .._support.random_state import check_random_state, make_key
from .._support.types import Bits, RandomState
from .._support.validate import bit_entries, bits, flag, number, refuse, shorten
from ..budget.account import Budget, spend
from ..data.chunks import Chunks, count_rows, settle_owners
from ..data.frames import read_labels_as_numbers
from ..data.persons import read_persons
from ..exceptions import InsufficientSamples, ParameterError, ShapeError
from ..gf2 import BitMatrix, pack_rows
from ..record import PrivacyRecord, rng_of
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
            BitMatrix; or data.Chunks of them with their labels, which are packed where they are
            read. What is sparse or lazy is refused by an error that says what to call first.
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
        InsufficientSamples: There are fewer records than the plan needs.
        BudgetExceeded: The budget does not hold epsilon. This and all errors above are raised
            before any coin is drawn or budget spent.
        Exception: What the functions of Chunks raise; nothing is spent then.

    Guarantee:
        Pure epsilon-DP for each row under `neighbors`, or with ids for each person, on every data
        set, including those that no parity fits. The random draws are exact. A record is in a
        sample with probability p, and one more equation keeps all solutions, half of them, or none.
        The rate p is computed from epsilon, whatever the plan says: for "loop" and "batches" it is
        the largest for which epsilon is proved, given the probability of stopping that the plan has
        chosen, rounded down.

        The running time is not protected; that of "batches" depends on the data least.

    Cost:
        The exact solution of about p n equations, for each try of "loop" or for all batches
        together: at most `O(p n d**2 / 64 / log d)` word operations. Beside X, memory for two bit
        matrices of d by d. Chunks are read once, and held as n (d + 8) bits, twice while the parts
        are put together.

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
    if isinstance(X, Chunks):
        chunks, persons = settle_owners(X, ids, rows_per_person)
        records, y = _pack_parts(chunks, y)
    elif y is None:
        raise ParameterError("y = None, but arrays of records must come with their labels")
    else:
        records, y = pack_records(X), bit_entries("y", y)
        persons = read_persons(ids, rows_per_person, len(records))
        if not persons.keeps_all:
            if y.shape != (len(records),):
                raise ShapeError(f"y has shape {y.shape}, but X has {len(records):,} records")
            records, y = persons.select(records), persons.select(y)
    each = persons.share(epsilon).epsilon
    n, d = records.shape
    unknowns = d + bool(affine)
    fields: Mapping[str, Any]
    if plan is None:
        alpha, fields = _core.promise_parity(unknowns, n, beta, each, method, neighbors)
    else:
        _check_plan(plan, n, unknowns, each, method, neighbors)
        method, neighbors, alpha = plan.method, plan.neighbors, plan.alpha
        fields = vars(plan)
    task = _core.ParityTask(records, y, each, method, neighbors, fields, bool(affine))
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
        solution = task.learn(make_key(random_state))
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


def pack_records(X: ArrayLike | BitMatrix) -> BitMatrix:
    """Packs the records into a matrix of bits.

    Raises:
        ShapeError: X has not two dimensions.
        ParameterError: X is no array of bits.
    """
    return X if isinstance(X, BitMatrix) else BitMatrix.from_dense(X)


class _Packed(NamedTuple):
    """The records of a part, a bit for each entry.

    Attributes:
        rows: The packed rows, uint8 of shape (n, bytes).
        columns: How many bits of a row are entries; None in a part without rows.
        labels: A bit for each row, uint8.
    """

    rows: Bits
    columns: int | None
    labels: Bits


def _pack_parts(chunks: Chunks, y: ArrayLike | None) -> tuple[BitMatrix, Bits]:
    """The records of all parts, in their order, and the labels."""
    if y is not None:
        raise ParameterError("y was passed beside Chunks, which hold the labels")
    return _unpack(_join(chunks.gather(_pack_part)))


def _pack_part(blocks: Iterable[tuple[Any, ...]], name: str | None) -> _Packed:
    return _join([_pack_block(*block) for block in blocks if count_rows(block[0])])


def _pack_block(X: Any, y: Any = None) -> _Packed:
    if y is None:
        rule = "they must be pairs (X, y), or tables of which label names the column of labels"
        raise ParameterError(f"the parts have no labels, but {rule}")
    rows, columns = pack_rows(pack_records(X))
    labels = bits("y", read_labels_as_numbers(y))
    if len(labels) != len(rows):
        raise ShapeError(f"y has shape {labels.shape}, but X has {len(rows):,} records")
    return _Packed(rows, columns, labels)


def _join(parts: list[_Packed]) -> _Packed:
    """One part of several, in their order."""
    some = [part for part in parts if part.columns is not None]
    widths = sorted({part.columns for part in some if part.columns is not None})
    if len(widths) > 1:
        raise ShapeError(
            f"parts have {widths[0]:,} and {widths[1]:,} columns, but all must have the same ones"
        )
    if not some:
        return _Packed(np.empty((0, 0), np.uint8), None, np.empty(0, np.uint8))
    rows = np.concatenate([part.rows for part in some])
    return _Packed(rows, widths[0], np.concatenate([part.labels for part in some]))


def _unpack(part: _Packed) -> tuple[BitMatrix, Bits]:
    if part.columns is None:
        raise ShapeError("the parts hold no row, but there must be one at least")
    return BitMatrix.from_packed(part.rows, part.columns), part.labels


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
    if n < plan.n:
        raise InsufficientSamples(f"X has {n:,} records, but the plan needs {plan.n:,}")
