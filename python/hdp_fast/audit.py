"""How much privacy a mechanism spends at least, measured from its outputs.

A mechanism runs many times on each of two neighboring data sets. If an event has probability P on
one of them and Q on the other, e^epsilon is at least (P - delta) / Q.
"""

from __future__ import annotations

import numbers
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ._support import progress as progress_module
from ._support.lazy import list_only, load_optional
from ._support.notes import note
from ._support.validate import nonnegative_int, probability, refuse
from .exceptions import ParameterError

__all__ = ["lower_bound"]

__dir__ = list_only(__all__)

Outcome = Hashable
Test = Callable[[Outcome], bool]
Data = TypeVar("Data")
Output = TypeVar("Output")

# Enough for the best threshold to lose nothing that could be measured.
_THRESHOLDS = 256
# Runs of one task of the pool at most; few enough that a bar moves.
_CHUNK = 256


def lower_bound(
    mechanism: Callable[[Data], Output],
    data: Data,
    neighbor: Data,
    *,
    delta: float = 0.0,
    event: Callable[[Output], bool] | None = None,
    runs: int,
    confidence: float,
    threads: int | None = None,
    progress: bool = False,
) -> float:
    """Measures a lower bound on the epsilon that a mechanism has on two neighboring data sets.

    The bound is max(0, ln((P - delta) / Q)). P is the lower and Q the upper Clopper-Pearson bound
    on the probabilities of one event on the two data sets, each with error (1 - confidence) / 2.

    Without `event`, the first half of the runs is searched for one, in either direction: sets of
    the outcomes of largest likelihood ratio, and thresholds where every output is one number. The
    second half alone tests it.

    Args:
        mechanism: Called with `data` and with `neighbor`, `runs` times each, with fresh random bits
            each time. Calls come from several threads at once unless threads=1.
        data: Whatever the mechanism takes; a tuple is passed as one argument.
        neighbor: A neighbor of `data`, by the relation of the guarantee that is audited.
        delta: The delta at which epsilon is bounded, in [0, 1).
        event: Tells whether an output belongs to the event, which should be likelier on `data` than
            on `neighbor`. None searches for one; outputs must then be hashable, arrays, or tuples
            and lists of those.
        runs: How often the mechanism runs on each data set, at least 4.
        confidence: Probability with which the bound holds, in (0, 1).
        threads: How many threads call the mechanism; None means as many as there are processors.
        progress: Whether to show a progress bar (tqdm).

    Returns:
        The bound, at least 0, in the unit of epsilon.

    Raises:
        ParameterError: An argument lies outside its range, or an output can neither be hashed nor
            compared while there is no event. Errors of the mechanism and of the event are passed
            on.
        ImportError: scipy is missing, or tqdm is missing and progress is wanted.

    Guarantee:
        The bound is measured, not proved. If the runs are independent, the true epsilon at delta is
        at least the result with probability `confidence`. A low result proves nothing, since there
        may be worse neighbors and worse events. A UtilityWarning tells when so few runs can show
        nothing. The audit itself protects no one: audit made-up data.

    Cost:
        2 runs of the mechanism for each of `runs`.

    Source:
        Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020. Candidate events are ranked on a
        quarter of the runs, chosen on a quarter and tested on a half.

    Examples:
        >>> from hdp_fast import audit, noise
        >>> def respond(bit):  # randomized response with epsilon = ln 3 = 1.0986
        ...     return bit ^ noise.bernoulli(0.25)
        >>> bound = audit.lower_bound(
        ...     respond, 1, 0, event=bool, runs=2000, confidence=1 - 1e-10, threads=1
        ... )
        >>> 0.4 < bound < 1.0987
        True
    """
    for name, value in (("mechanism", mechanism), ("event", bool if event is None else event)):
        if not callable(value):
            refuse(name, value, "it must be callable")
    delta, share = (
        probability("delta", delta, zero=True),
        (1 - probability("confidence", confidence)) / 2,
    )
    if nonnegative_int("runs", runs) < 4:
        refuse("runs", runs, "it must be at least 4")
    if threads is not None and nonnegative_int("threads", threads) < 1:
        refuse("threads", threads, "it must be at least 1")
    bound = _Bound(delta, share)
    tested = runs if event is not None else runs - runs // 2
    if bound(tested, tested, 0, tested) == 0:
        note(f"runs = {runs:,} show no epsilon above 0 at this confidence and delta: more may")
    observe: Callable[[Any], Outcome] = _make_key if event is None else lambda out: bool(event(out))
    workers = threads or _count_processors()
    with progress_module.bar(2 * runs, "run", progress) as bar:
        first = _draw_outcomes(lambda: observe(mechanism(data)), runs, workers, bar)
        second = _draw_outcomes(lambda: observe(mechanism(neighbor)), runs, workers, bar)
    if event is not None:
        return float(bound(sum(map(bool, first)), runs, sum(map(bool, second)), runs))
    half = runs // 2
    happens, swapped = _search(first[:half], second[:half], bound)
    if swapped:
        first, second = second, first
    hits, misses = (sum(map(happens, side[half:])) for side in (first, second))
    return float(bound(hits, runs - half, misses, runs - half))


class _Bound:
    """The lower bound from the counts of an event, which may be arrays."""

    def __init__(self, delta: float, share: float):
        self._delta, self._share = delta, share
        self._beta = _import_stats().beta

    def __call__(self, hits: Any, runs: int, misses: Any, other_runs: int) -> NDArray[np.float64]:
        hits, misses = np.asarray(hits, float), np.asarray(misses, float)
        low = np.where(hits > 0, self._beta.ppf(self._share, hits, runs - hits + 1), 0.0)
        high = self._beta.isf(self._share, misses + 1, other_runs - misses)
        above = np.maximum(low - self._delta, 0.0)
        ratio = above / np.where(misses < other_runs, high, 1.0)
        return np.log(np.maximum(ratio, 1.0))


def _search(
    first: Sequence[Outcome], second: Sequence[Outcome], bound: _Bound
) -> tuple[Test, bool]:
    """The best event, and whether it is likelier on the second side."""
    best: tuple[float, Test, bool] = (-1.0, lambda outcome: True, False)
    for swapped, (some, other) in enumerate(((first, second), (second, first))):
        cut = len(some) // 2
        ranking = _rank(some[:cut], other[:cut])
        families = [_count_prefixes(ranking, some[cut:], other[cut:])]
        if all(map(_is_number, (*some, *other))):
            families.append(_count_thresholds(some[cut:], other[cut:]))
        for hits, misses, test_of in families:
            values = bound(hits, len(some) - cut, misses, len(other) - cut)
            at = int(np.argmax(values))
            if values[at] > best[0]:
                best = (float(values[at]), test_of(at), bool(swapped))
    return best[1:]


def _rank(some: Sequence[Outcome], other: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes of both sides, in order of falling estimated likelihood ratio."""
    hits, misses = Counter(some), Counter(other)
    return sorted({*hits, *misses}, key=lambda o: (misses[o] + 1) / (hits[o] + 1))


Family = tuple[NDArray[np.int64], NDArray[np.int64], Callable[[int], Test]]


def _count_prefixes(
    ranking: Sequence[Outcome], some: Sequence[Outcome], other: Sequence[Outcome]
) -> Family:
    """How often each prefix of the ranking occurs on either side."""
    hits, misses = Counter(some), Counter(other)
    first, second = (np.cumsum([side[o] for o in ranking]) for side in (hits, misses))
    return first, second, lambda at: frozenset(ranking[: at + 1]).__contains__


def _count_thresholds(some: Sequence[Any], other: Sequence[Any]) -> Family:
    """How often an output lies at or below a threshold, then at or above it."""
    pooled = np.sort(np.array([*some, *other], float))
    steps = np.unique(np.linspace(0, len(pooled) - 1, _THRESHOLDS).astype(int))
    cuts = np.unique(pooled[steps])
    sides = [np.sort(np.array(side, float)) for side in (some, other)]
    below = [np.searchsorted(side, cuts, side="right") for side in sides]
    above = [len(side) - np.searchsorted(side, cuts, side="left") for side in sides]
    hits, misses = (np.concatenate(pair) for pair in zip(below, above, strict=True))

    def test_of(at: int) -> Test:
        cut = float(cuts[at % len(cuts)])
        sign = 1 if at < len(cuts) else -1
        # The other half of the runs may hold what is no number.
        return lambda outcome: _is_number(outcome) and sign * float(outcome) <= sign * cut  # type: ignore[arg-type]

    return hits, misses, test_of


def _is_number(outcome: Outcome) -> bool:
    return isinstance(outcome, numbers.Real) and abs(outcome) <= sys.float_info.max


def _make_key(output: Any) -> Outcome:
    """The output as something that can be counted."""
    if isinstance(output, np.ndarray | list | tuple):
        if isinstance(output, np.ndarray) and output.dtype != object:
            return output.item() if output.ndim == 0 else (output.shape, output.tobytes())
        return tuple(map(_make_key, output))
    try:
        hash(output)
    except TypeError:
        rule = "it must return something hashable or an array, unless event is given"
        kind = type(output).__name__
        raise ParameterError(f"mechanism returned {kind}, but {rule}") from None
    return output  # type: ignore[no-any-return]


def _draw_outcomes(draw: Callable[[], Outcome], runs: int, threads: int, bar: Any) -> list[Outcome]:
    """Draws `runs` independent outcomes."""
    stop = threading.Event()

    def chunk(size: int) -> list[Outcome]:
        try:
            drawn = [draw() for _ in range(size) if not stop.is_set()]
        except BaseException:
            stop.set()
            raise
        bar.update(size)
        return drawn

    largest = max(1, min(_CHUNK, runs // 64))
    sizes = [min(largest, runs - start) for start in range(0, runs, largest)]
    if threads == 1:
        return [outcome for size in sizes for outcome in chunk(size)]
    with ThreadPoolExecutor(threads) as pool:
        try:
            return [outcome for part in pool.map(chunk, sizes) for outcome in part]
        finally:
            # After Ctrl-C nothing more is begun, either.
            stop.set()
            pool.shutdown(cancel_futures=True)


def _count_processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _import_stats() -> Any:
    return load_optional("scipy.stats", "auditing", "scipy")
