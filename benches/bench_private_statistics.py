"""Private statistics of hdp_fast beside OpenDP's: error at one epsilon, time, lines of code.

Run `python benches/bench_private_statistics.py`: about two minutes; `-k levels` for 99 quantiles
alone, under both relations, whose error is a share of the records. OpenDP comes with the extra
`bench`. Both get the same records, bounds, epsilon and relation: a public number of records for
mean and variance, a private one for the others. Records are on the grid of 1,001 points from which
both choose quantiles. The error is an average over as many releases as a second allows, and +- is
its standard error. Times are those of one release, without the making of OpenDP's measurement.
"""

from __future__ import annotations

import importlib.util
import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from _harness import Race, run_file
from numpy.typing import NDArray

from hdp_fast import statistics

EPSILON, LOW, HIGH = 1.0, 0.0, 100.0
SIZES = (1_000, 100_000, 1_000_000)
EDGES, LEVELS, POINTS = list(range(0, 101, 10)), (0.25, 0.5, 0.75), 1_000
FEWEST, MOST = 5, 4_000
Array = NDArray[Any]
Release = Callable[[], Any]


def our_count(x: Array) -> Release:
    return lambda: statistics.count(x > 50, epsilon=EPSILON, neighbors="add_remove").value


def our_sum(x: Array) -> Release:
    bounds = {"low": LOW, "high": HIGH}
    return lambda: statistics.sum(x, **bounds, epsilon=EPSILON, neighbors="add_remove").value


def our_mean(x: Array) -> Release:
    return lambda: statistics.mean(x, low=LOW, high=HIGH, epsilon=EPSILON).value


def our_variance(x: Array) -> Release:
    return lambda: statistics.variance(x, low=LOW, high=HIGH, epsilon=EPSILON).value


def our_histogram(x: Array) -> Release:
    relation = "add_remove"
    return lambda: statistics.histogram(x, edges=EDGES, epsilon=EPSILON, neighbors=relation).value


def our_quantiles(x: Array) -> Release:
    options = {"low": LOW, "high": HIGH, "steps": POINTS, "neighbors": "add_remove"}
    return lambda: statistics.quantiles(x, LEVELS, epsilon=EPSILON, **options).value


def their_count(dp: Any, x: Array) -> Release:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    count = space >> dp.t.then_count()
    release = dp.binary_search_chain(
        lambda scale: count >> dp.m.then_laplace(scale), d_in=1, d_out=EPSILON
    )
    return lambda: release(x[x > 50])


def their_sum(dp: Any, x: Array) -> Release:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    total = space >> dp.t.then_clamp((LOW, HIGH)) >> dp.t.then_sum()
    release = dp.binary_search_chain(
        lambda scale: total >> dp.m.then_laplace(scale), d_in=1, d_out=EPSILON
    )
    return lambda: release(x)


def their_mean(dp: Any, x: Array) -> Release:
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(x))
    space = domain, dp.symmetric_distance()
    mean = space >> dp.t.then_clamp((LOW, HIGH)) >> dp.t.then_mean()
    release = dp.binary_search_chain(
        lambda scale: mean >> dp.m.then_laplace(scale), d_in=2, d_out=EPSILON
    )
    return lambda: release(x)


def their_variance(dp: Any, x: Array) -> Release:
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=len(x))
    space = domain, dp.symmetric_distance()
    variance = space >> dp.t.then_clamp((LOW, HIGH)) >> dp.t.then_variance(ddof=0)
    release = dp.binary_search_chain(
        lambda scale: variance >> dp.m.then_laplace(scale), d_in=2, d_out=EPSILON
    )
    return lambda: release(x)


def their_histogram(dp: Any, x: Array) -> Release:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    bins = dp.t.then_find_bin(edges=[float(edge) for edge in EDGES[1:-1]])
    counts = dp.t.then_count_by_categories(range(len(EDGES) - 1), null_category=False)
    total = space >> bins >> counts
    release = dp.binary_search_chain(
        lambda scale: total >> dp.m.then_laplace(scale), d_in=1, d_out=EPSILON
    )
    return lambda: release(x)


def their_quantiles(dp: Any, x: Array) -> Release:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    points = np.linspace(LOW, HIGH, POINTS + 1)
    releases = [
        dp.binary_search_chain(
            lambda scale, level=level: (
                space >> dp.m.then_private_quantile(dp.max_divergence(), points, level, scale)
            ),
            d_in=1,
            d_out=EPSILON / len(LEVELS),
        )
        for level in LEVELS
    ]
    return lambda: sorted(release(x) for release in releases)


def in_ranks(x: Array, levels: Any = LEVELS) -> Callable[[Any], float]:
    """The mean error of quantiles in ranks; a value of many records has all of their ranks."""
    ordered, ranks = np.sort(x).round(6), np.array(levels) * len(x)

    def error(released: Any) -> float:
        values = np.asarray(released).round(6)
        below, upto = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
        return float(np.maximum(np.maximum(below - ranks, ranks - upto), 0).mean())

    return error


def beside(truth: Any) -> Callable[[Any], float]:
    """The mean absolute error beside the truth."""
    return lambda released: float(np.abs(np.asarray(released) - truth).mean())


TRUTH: dict[str, Callable[[Array], Callable[[Any], float]]] = {
    "count": lambda x: beside((x > 50).sum()),
    "sum": lambda x: beside(x.sum()),
    "mean": lambda x: beside(x.mean()),
    "variance": lambda x: beside(x.var()),
    "histogram": lambda x: beside(np.histogram(x, EDGES)[0]),
    "quantiles": in_ranks,
}
OURS = {name: globals()[f"our_{name}"] for name in TRUTH}
THEIRS = {name: globals()[f"their_{name}"] for name in TRUTH}


@pytest.mark.sizes("n", SIZES)
@pytest.mark.parametrize("statistic", TRUTH)
def bench_release(race: Race, statistic: str, n: int) -> None:
    """One statistic of so many records."""
    x = np.random.default_rng(1).gamma(4.0, 10.0, n).round(1).clip(LOW, HIGH)
    error_of = TRUTH[statistic](x)
    release = OURS[statistic](x)
    race.ours(release, threads=(1,), **measure(release, error_of, OURS[statistic], race))
    peer = load_peer()
    if peer is not None:
        theirs = THEIRS[statistic](peer, x)
        race.peer("OpenDP", theirs, **measure(theirs, error_of, THEIRS[statistic], race))
    race.run()


MANY, RECORDS, INCOME, STEPS = np.arange(1, 100) / 100, 9_000, 1e6, 4_095


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("zeros", [0.0, 1 / 3])
def bench_levels(race: Race, zeros: float, epsilon: float) -> None:
    """99 percentiles of lognormal incomes, some of them 0, with a private number of records."""
    rng = np.random.default_rng(3)
    x = np.exp(rng.normal(10, 1, RECORDS)).clip(0, INCOME)
    x[rng.random(RECORDS) < zeros] = 0
    x = np.rint(x / INCOME * STEPS) * INCOME / STEPS
    in_records, options = in_ranks(x, MANY), {"low": 0.0, "high": INCOME, "steps": STEPS}

    def error_of(released: Any) -> float:
        return in_records(released) / RECORDS

    def cut() -> Array:
        more = {"epsilon": epsilon, "neighbors": "add_remove"}
        return statistics.quantiles(x, MANY, **options, **more).value

    def cut_public() -> Array:
        return statistics.quantiles(x, MANY, **options, epsilon=epsilon).value

    def whole() -> Array:
        more = {"epsilon": epsilon, "neighbors": "add_remove"}
        return statistics.distribution(x, **options, **more).quantiles(MANY)

    def known() -> Array:
        return statistics.distribution(x, **options, epsilon=epsilon).quantiles(MANY)

    race.ours(cut, threads=(1,), **measure(cut, error_of, cut, race))
    race.peer("public n", cut_public, **measure(cut_public, error_of, cut_public, race))
    race.peer("distribution", whole, **measure(whole, error_of, whole, race))
    race.peer("distribution, public n", known, **measure(known, error_of, known, race))
    peer = load_peer()
    if peer is not None:
        alone, tree = their_levels(peer, x, epsilon), their_tree(peer, x, epsilon, 1)
        race.peer("OpenDP, one by one", alone, **measure(alone, error_of, their_levels, race))
        race.peer("OpenDP, tree", tree, **measure(tree, error_of, their_tree, race))
        tree = their_tree(peer, x, epsilon, 2)
        race.peer("OpenDP, tree, public n", tree, **measure(tree, error_of, their_tree, race))
    race.run()


def their_levels(dp: Any, x: Array, epsilon: float) -> Release:
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    points = np.linspace(0, INCOME, STEPS + 1)
    releases = [
        dp.binary_search_chain(
            lambda scale, level=level: (
                space >> dp.m.then_private_quantile(dp.max_divergence(), points, level, scale)
            ),
            d_in=1,
            d_out=epsilon / len(MANY),
        )
        for level in MANY.tolist()
    ]
    return lambda: sorted(release(x) for release in releases)


def their_tree(dp: Any, x: Array, epsilon: float, records: int) -> Release:
    """records: how many are in one data set alone: 1 where one is added, 2 where it is replaced."""
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    edges = ((np.arange(STEPS + 2) - 0.5) * INCOME / STEPS).tolist()
    branching = 16
    counts = (
        space
        >> dp.t.then_find_bin(edges=edges[1:-1])
        >> dp.t.then_count_by_categories(range(STEPS + 1), null_category=False)
        >> dp.t.then_b_ary_tree(leaf_count=STEPS + 1, branching_factor=branching)
    )
    release = dp.binary_search_chain(
        lambda scale: counts >> dp.m.then_laplace(scale), d_in=records, d_out=epsilon
    )
    settle = dp.t.make_consistent_b_ary_tree(branching)
    read = dp.t.make_quantiles_from_counts(edges, MANY.tolist())
    # The middle of a bin is a point of the grid.
    return lambda: np.rint(np.array(read(settle(release(x)))) / INCOME * STEPS) * INCOME / STEPS


def load_peer() -> Any:
    """OpenDP, or None."""
    if importlib.util.find_spec("opendp") is None:
        return None
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def measure(
    release: Release, error_of: Callable[[Any], float], source: Any, race: Race
) -> dict[str, Any]:
    """The mean error and its standard error, and the lines of the program."""
    errors, start = [], time.perf_counter()
    while len(errors) < FEWEST or (
        time.perf_counter() - start < race.seconds / 2 and len(errors) < MOST
    ):
        errors.append(error_of(release()))
    spread = float(np.std(errors) / len(errors) ** 0.5)
    figures = {"error": float(f"{np.mean(errors):.3g}"), "+-": float(f"{spread:.1g}")}
    return figures | {"lines": len(inspect.getsource(source).strip().splitlines()) - 1}


if __name__ == "__main__":
    run_file(__file__)
