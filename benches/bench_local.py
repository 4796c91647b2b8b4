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
    HadamardResponse,
    KaryResponse,
    LaplaceRandomizer,
    Piecewise,
)
from hdp_fast.reference import local as reference

EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
GOAL = {"alpha": 0.05, "beta": 0.05}
BITS, REPORTS, PEER_REPORTS = 10_000_000, 1_000_000, 2_000
SIZES = (128, 1024)
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
    """Mean variance over values, beside that of optimal unary encoding, and agents for GOAL."""
    heads = [f"{kind} {k}" for k in SIZES for kind in ("k-ary", "Hadamard")]
    variances, agents = [["epsilon", "unary", *heads]], [["epsilon", *heads]]
    for epsilon in EPSILONS:
        odds = math.exp(epsilon)
        unary = 4 * odds / (odds - 1) ** 2
        kinds = [kind(k, epsilon) for k in SIZES for kind in (KaryResponse, HadamardResponse)]
        ratios = [f"{each.variance() / unary:.3f}" for each in kinds]
        variances.append([f"{epsilon:g}", f"{unary:.4g}", *ratios])
        agents.append([f"{epsilon:g}", *(f"{each.agents_needed(**GOAL):,}" for each in kinds)])
    table("Variance, mean over k values, in units of optimal unary encoding's", variances)
    table(f"Agents for all k frequencies at once, any population, {GOAL}", agents)


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


@pytest.mark.sizes("n", (10_000, 100_000, REPORTS))
@pytest.mark.parametrize("k", SIZES)
def bench_hadamard(race: Race, limits: Limits, n: int, k: int) -> None:
    """Reports about one of k values, made and added."""
    rng = np.random.default_rng()
    values, made = rng.integers(0, k, n), HadamardResponse(k, EPSILON)
    race.ours(lambda: made.aggregate(made.sample(values)))
    race.numpy("bit tricks", lambda: hadamard_counts(values, made, rng))
    add_peers(race, {"pure-LDP": pure_ldp, "multi-freq OUE": multi_freq_unary}, k, values)
    race.limit("a word of the stream", n * limits.word)
    race.run(n, "report")


def hadamard_counts(values: Integers, made: HadamardResponse, rng: np.random.Generator) -> Integers:
    """Made and counted in 16 bits, with the parity of a word by numpy 2's count of its bits."""
    blocks, log2_size = made._sizes
    size, columns = 1 << log2_size, made.report_range[1] + 1
    if not hasattr(np, "bitwise_count"):
        answers = reference.hadamard_response(values, blocks, size, EPSILON, rng)
        return np.bincount(answers, minlength=columns)
    small = np.uint16
    odds = math.expm1(EPSILON) / (2 * blocks)
    row, block = np.divmod(values.astype(small), small(blocks))
    row += small(1)
    drawn = rng.integers(0, columns, values.size, dtype=small)
    column = drawn & small(size - 1)
    # The lowest bit of the row changes the parity of their product where that is wrong.
    odd = (np.bitwise_count(column & row) & 1).astype(small)
    column ^= odd * (row & -row)
    column += block * small(size)
    own = rng.random(values.size, dtype=np.float32) < np.float32(odds / (1 + odds))
    np.copyto(drawn, column, where=own)
    return np.bincount(drawn, minlength=columns)


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
