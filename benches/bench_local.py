"""Local randomizers: variances and agents, and throughput beside numpy, pure-LDP, multi-freq-ldpy.

Run `python benches/bench_local.py`: about a minute. The peers come with the extra `bench`. They
make and add fewer reports, since each takes them so long; what they take at the end for the
estimates is not counted, nor is ours.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from _harness import Race, run_file
from _machine import Limits
from numpy.typing import NDArray

from hdp_fast.local import (
    BinaryResponse,
    GaussianRandomizer,
    KaryResponse,
    LaplaceRandomizer,
    Piecewise,
    ProjectiveGeometryResponse,
    SubsetSelection,
    best_frequency,
)
from hdp_fast.reference import local as reference

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
GOAL = {"alpha": 0.05, "beta": 0.05}
BITS, REPORTS, PEER_REPORTS = 10_000_000, 1_000_000, 2_000
SIZES = (128, 1024)
CATEGORIES = (5, 10, 30, 100, 300, 1000, 3000, 10_000, 100_000)
ORACLE_EPSILONS = (0.5, 1.0, 2.0, 3.0, 4.0)
EPSILON = 1.0
Integers = NDArray[np.int64]
Peers = dict[str, Callable[[list[int]], Any]]


def bench_means(table: Callable[..., None]) -> None:
    """Largest variance of a report about a number in [0, 1], and agents for GOAL."""
    heads = ["epsilon", "Binary", "Piecewise", "LaplaceRandomizer", "Gauss 1e-4", "Gauss 1e-6",
             "printed 1e-6"]  # fmt: skip
    titles: dict[str, Callable[[Any], str]] = {
        "Largest variance of a report about a number in [0, 1]": lambda each: (
            f"{each.variance():.4g}"
        ),
        f"Agents sampled from a population, {GOAL}": lambda each: f"{each.agents_needed(**GOAL):,}",
        f"Agents whose own mean is asked for, {GOAL}": lambda each: (
            f"{each.agents_needed(**GOAL, sampled=False):,}"
        ),
    }
    for title, number in titles.items():
        rows = [[f"{epsilon:g}", *map(number, kinds_of(epsilon))] for epsilon in EPSILONS]
        table(title, [heads, *rows])


def kinds_of(epsilon: float) -> list[Any]:
    """What reports a number in [0, 1]."""
    return [
        BinaryResponse(epsilon, (0, 1)),
        Piecewise(epsilon, (0, 1)),
        LaplaceRandomizer(epsilon, (0, 1)),
        GaussianRandomizer(epsilon, 1e-4, (0, 1)),
        GaussianRandomizer(epsilon, 1e-6, (0, 1)),
        GaussianRandomizer.printed(epsilon, 1e-6, (0, 1)),
    ]


def bench_frequencies(table: Callable[..., None]) -> None:
    """Variance of the best oracle and others over the least one, and agents for GOAL."""
    heads = ["k", *(f"{epsilon:g}" for epsilon in ORACLE_EPSILONS)]
    kinds: dict[str, Callable[[int, float], Any]] = {
        "best_frequency": best_frequency,
        "KaryResponse": KaryResponse,
        "ProjectiveGeometryResponse": ProjectiveGeometryResponse,
        "SubsetSelection": SubsetSelection,
    }
    for name, kind in kinds.items():
        rows = [
            [f"{k:,}", *(f"{kind(k, e).variance() / optimum(k, e):.3f}" for e in ORACLE_EPSILONS)]
            for k in CATEGORIES
            if kind is not SubsetSelection or k <= 1024
        ]
        table(
            f"Variance of {name} over that of all subsets of the best size, by epsilon",
            [heads, *rows],
        )
    agents = [
        [f"{k:,}", *(f"{best_frequency(k, e).agents_needed(**GOAL):,}" for e in ORACLE_EPSILONS)]
        for k in CATEGORIES
    ]
    table(f"Agents for all k frequencies at once, any population, {GOAL}", [heads, *agents])


def optimum(k: int, epsilon: float) -> float:
    """The variance of subset selection with all subsets of the best size, mean over categories."""
    odds, middle, variances = math.exp(epsilon), k / (math.exp(epsilon) + 1), []
    for size in {max(1, math.floor(middle)), max(1, math.ceil(middle))}:
        one, two = size / k, size * (size - 1) / (k * (k - 1))
        scale = (odds - 1) * one + 1
        truth, lie = odds * one / scale, (odds * two + one - two) / scale
        squares = truth * (1 - truth) + (k - 1) * lie * (1 - lie)
        variances.append(squares / k / (truth - lie) ** 2)
    return min(variances)


@pytest.mark.parametrize("values", ["bits", "numbers"])
def bench_binary(race: Race, values: str) -> None:
    """Reports about a bit, and about a number in [0, 1]."""
    n, rng = race.scaled("n", BITS), np.random.default_rng()
    numbers = rng.random(n)
    made, lie = BinaryResponse(EPSILON, (0, 1)), 1 / (1 + math.exp(EPSILON))
    given = (numbers < 0.5).astype(np.uint8) if values == "bits" else numbers
    race.ours(lambda: made.sample(given))
    if values == "bits":
        race.numpy("random(n) < p, coins alone", lambda: rng.random(n) < lie)
        small = np.float32(lie)
        race.numpy("response, float32", lambda: given ^ (rng.random(n, dtype=np.float32) < small))
    else:
        race.numpy("response", lambda: reference.binary_response(numbers, EPSILON, rng))
    race.run(n, "report")


def bench_adding_bits(race: Race, limits: Limits) -> None:
    """What the curator does with ten million bits."""
    n, made = race.scaled("n", BITS), BinaryResponse(EPSILON, (0, 1))
    answers = made.sample(np.zeros(n, np.uint8))
    race.ours(lambda: made.aggregate(answers))
    race.numpy("count_nonzero", lambda: np.count_nonzero(answers.view(np.bool_)))
    race.limit("memory", limits.read(n))
    race.run(n, "report")


@pytest.mark.parametrize("kind", ["Piecewise", "Laplace", "Gaussian"])
def bench_number(race: Race, kind: str) -> None:
    """Reports about a number in [0, 1]."""
    n, rng = race.scaled("n", REPORTS), np.random.default_rng()
    numbers, sigma = rng.random(n), GaussianRandomizer(EPSILON, 1e-6, (0, 1)).variance() ** 0.5
    kinds: dict[str, tuple[Any, Callable[[], Any]]] = {
        "Piecewise": (
            Piecewise(EPSILON, (0, 1)),
            lambda: reference.piecewise(numbers, EPSILON, rng),
        ),
        "Laplace": (
            LaplaceRandomizer(EPSILON, (0, 1)),
            lambda: reference.laplace(numbers, EPSILON, rng),
        ),
        "Gaussian": (
            GaussianRandomizer(EPSILON, 1e-6, (0, 1)),
            lambda: numbers + sigma * rng.standard_normal(n),
        ),
    }
    made, numpy = kinds[kind]
    race.ours(lambda: made.sample(numbers))
    race.numpy("floats, not private", numpy)
    race.run(n, "report")


@pytest.mark.parametrize("k", [128, 100_000])
def bench_oracle(race: Race, k: int) -> None:
    """Reports of the best oracle about one of k categories, made, added and estimated from."""
    n, rng = race.scaled("n", REPORTS), np.random.default_rng()
    values, made = rng.integers(0, k, n), best_frequency(k, EPSILON)
    race.ours(lambda: made.aggregate(made.sample(values)).frequencies())
    race.numpy("unary, counts alone", lambda: reference.unary_counts(values, k, EPSILON, rng))
    if k < 1000:
        add_peers(race, {"pure-LDP": pure_ldp, "multi-freq OUE": multi_freq_unary}, k, values)
    race.run(n, "report")


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def bench_server(race: Race, epsilon: float) -> None:
    """What the collector does with a million reports about 100,000 categories."""
    n, k, rng = race.scaled("n", REPORTS), 100_000, np.random.default_rng()
    made = best_frequency(k, epsilon)
    reports = made.sample(rng.integers(0, k, n))
    counts = np.bincount(reports, minlength=made.report_range[1] + 1)
    race.ours(lambda: made.aggregate(reports).frequencies())
    race.numpy("counts alone", lambda: np.bincount(reports, minlength=counts.size))
    race.run(n, "report")


@pytest.mark.parametrize("k", SIZES)
def bench_kary(race: Race, limits: Limits, k: int) -> None:
    """Reports about one of k values, made and added."""
    n, rng = race.scaled("n", REPORTS), np.random.default_rng()
    values, made = rng.integers(0, k, n), KaryResponse(k, EPSILON)
    race.ours(lambda: made.aggregate(made.sample(values)))
    race.numpy(
        "choice by where",
        lambda: np.bincount(reference.kary_response(values, k, EPSILON, rng), minlength=k),
    )
    race.numpy("16 bits", lambda: kary_counts(values, k, rng))
    add_peers(race, {"multi-freq k-ary": multi_freq_kary}, k, values)
    race.limit("a word of the stream", n * limits.word)
    race.run(n, "report")


def kary_counts(values: Integers, k: int, rng: np.random.Generator) -> Integers:
    """The same with small integers and floats."""
    odds = math.expm1(EPSILON) / k
    reports = rng.integers(0, k, values.size, dtype=np.uint16)
    coins = rng.random(values.size, dtype=np.float32)
    own = np.flatnonzero(coins < np.float32(odds / (1 + odds)))
    reports[own] = values[own]
    return np.bincount(reports, minlength=k)


def add_peers(
    race: Race, makers: dict[str, Callable[[int], Any]], k: int, values: Integers
) -> None:
    """What makes and adds reports with each library found, one by one as they are meant to be."""
    some = values[:PEER_REPORTS].tolist()
    for name, make in makers.items():
        library = "pure_ldp" if name.startswith("pure") else "multi_freq_ldpy"
        if importlib.util.find_spec(library) is not None:
            peer = make(k)
            # Some are compiled when they are first called.
            peer(some[:1])
            race.peer(name, lambda peer=peer: peer(some), share=len(values) / len(some))


def pure_ldp(k: int) -> Callable[[list[int]], Any]:
    """Hadamard response of pure-LDP."""
    from pure_ldp.frequency_oracles.hadamard_response import (
        HadamardResponseClient,
        HadamardResponseServer,
    )

    server = HadamardResponseServer(EPSILON, k)
    client = HadamardResponseClient(EPSILON, k, server.get_hash_funcs())

    def run(values: list[int]) -> None:
        for value in values:
            server.aggregate(client.privatise(value + 1))

    return run


def multi_freq_unary(k: int) -> Callable[[list[int]], Any]:
    """Optimal unary encoding of multi-freq-ldpy, which numba compiles."""
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    return lambda values: sum(UE_Client(value, k, EPSILON, True) for value in values)


def multi_freq_kary(k: int) -> Callable[[list[int]], Any]:
    """K-ary response of multi-freq-ldpy."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return lambda values: np.bincount(
        [GRR_Client(value, k, EPSILON) for value in values], minlength=k
    )


if __name__ == "__main__":
    run_file(__file__)
