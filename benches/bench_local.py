"""Local randomizers: variances and agents, and throughput beside numpy, pure-LDP, multi-freq-ldpy.

Run `python benches/bench_local.py`: about a minute. The peers come with the extra `bench`; without
them their columns are empty. Peers make and add fewer reports, since each takes them so long; what
they take at the end for the estimates is not counted, nor is ours.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from _harness import make_parser, print_json, right, with_threads
from numpy.typing import NDArray

from hdp_fast import noise
from hdp_fast.bench import Action, medians
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
BITS = 10_000_000
REPORTS = 1_000_000
PEER_REPORTS = 2_000
SIZES = (128, 1024)
Integers = NDArray[np.int64]


def main() -> None:
    """Print the tables, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=7)
    parser.add_argument("--epsilon", type=float, default=1.0, help="of the frequency oracles")
    arguments = parser.parse_args()
    tables = {
        "means": means(),
        "frequencies": frequencies(),
        "numbers": time_numbers(arguments.repeats),
        "oracles": [time_oracle(k, arguments.epsilon, arguments.repeats) for k in SIZES],
        "word": time_word(arguments.repeats),
    }
    if arguments.json:
        print_json(tables)
        return
    print_means(tables["means"])
    print_frequencies(tables["frequencies"])
    print_numbers(tables["numbers"])
    print_oracles(tables["oracles"], arguments.epsilon, tables["word"])


def means() -> list[dict[str, Any]]:
    """Largest variance of a report about a number in [0, 1], and agents for GOAL."""
    rows = []
    for epsilon in EPSILONS:
        kinds = [
            BinaryResponse(epsilon, (0, 1)),
            Piecewise(epsilon, (0, 1)),
            LaplaceRandomizer(epsilon, (0, 1)),
        ]
        kinds += [
            GaussianRandomizer(epsilon, 1e-4, (0, 1)),
            GaussianRandomizer(epsilon, 1e-6, (0, 1)),
            GaussianRandomizer.printed(epsilon, 1e-6, (0, 1)),
        ]
        rows.append(
            {
                "epsilon": epsilon,
                "variance": [each.variance() for each in kinds],
                "agents": [each.agents_needed(**GOAL) for each in kinds],
                "these agents": [each.agents_needed(**GOAL, sampled=False) for each in kinds],
            }
        )
    return rows


def frequencies() -> list[dict[str, Any]]:
    """Mean variance over values, beside that of optimal unary encoding, and agents for GOAL."""
    rows = []
    for epsilon in EPSILONS:
        odds = math.exp(epsilon)
        unary = 4 * odds / (odds - 1) ** 2
        kinds = [kind(k, epsilon) for k in SIZES for kind in (KaryResponse, HadamardResponse)]
        rows.append(
            {
                "epsilon": epsilon,
                "unary": unary,
                "variance": [each.variance() for each in kinds],
                "agents": [each.agents_needed(**GOAL) for each in kinds],
            }
        )
    return rows


def time_numbers(repeats: int) -> dict[str, float]:
    """Nanoseconds a report about a bit or a number, and of adding it."""
    rng = np.random.default_rng()
    bits = rng.integers(0, 2, BITS, dtype=np.uint8)
    numbers, lie = rng.random(BITS), 1 / (1 + math.e)
    some, made = numbers[:REPORTS], BinaryResponse(1.0, (0, 1))
    answers = made.sample(bits)
    large: dict[str, Action] = {
        "numpy random(n) < p": lambda: rng.random(BITS) < lie,
        "bits, 1 thread": with_threads(1, lambda: made.sample(bits)),
        "bits, 2 threads": with_threads(2, lambda: made.sample(bits)),
        "numbers, 1 thread": with_threads(1, lambda: made.sample(numbers)),
        "numbers, 2 threads": with_threads(2, lambda: made.sample(numbers)),
        "numbers, numpy": lambda: reference.binary_response(numbers, 1.0, rng),
        "adding bits": with_threads(2, lambda: made.aggregate(answers)),
    }
    small: dict[str, Action] = {}
    for each in (
        Piecewise(1.0, (0, 1)),
        LaplaceRandomizer(1.0, (0, 1)),
        GaussianRandomizer(1.0, 1e-6, (0, 1)),
    ):
        name, sample = type(each).__name__, each.sample
        for threads in (1, 2):
            small[f"{name}, {threads} thread(s)"] = with_threads(
                threads, lambda sample=sample: sample(some)
            )
    small["Piecewise, numpy"] = lambda: reference.piecewise(some, 1.0, rng)
    small["Laplace, numpy"] = lambda: reference.laplace(some, 1.0, rng)
    times = {name: t / BITS for name, t in medians(large, repeats=repeats).items()}
    times |= {name: t / REPORTS for name, t in medians(small, repeats=repeats).items()}
    return {name: 1e9 * time for name, time in times.items()}


def time_word(repeats: int) -> float:
    """Nanoseconds of one word of the random stream on one thread, stored."""
    draw = with_threads(1, lambda: noise.uniform_integers(1 << 32, REPORTS))
    return 1e9 * medians({"word": draw}, repeats=repeats)["word"] / REPORTS


def time_oracle(k: int, epsilon: float, repeats: int) -> dict[str, Any]:
    """Nanoseconds to make and to add a report about one of k values."""
    rng = np.random.default_rng()
    values = rng.integers(0, k, REPORTS)
    hadamard, kary = HadamardResponse(k, epsilon), KaryResponse(k, epsilon)
    blocks, log2_size = hadamard._sizes
    columns = hadamard.report_range[1] + 1

    def plain() -> Integers:
        answers = reference.hadamard_response(values, blocks, 1 << log2_size, epsilon, rng)
        return np.bincount(answers, minlength=columns)

    routes: dict[str, Action] = {
        "1 thread": with_threads(1, lambda: hadamard.aggregate(hadamard.sample(values))),
        "2 threads": with_threads(2, lambda: hadamard.aggregate(hadamard.sample(values))),
        "numpy": plain,
        "k-ary, 1 thread": with_threads(1, lambda: kary.aggregate(kary.sample(values))),
        "k-ary, numpy": lambda: np.bincount(
            reference.kary_response(values, k, epsilon, rng), minlength=k
        ),
    }
    times = {name: t / REPORTS for name, t in medians(routes, repeats=repeats).items()}
    some = values[:PEER_REPORTS].tolist()
    for name, peer in peers(k, epsilon).items():
        slow = medians({name: lambda peer=peer: peer(some)}, repeats=3)
        times[name] = slow[name] / PEER_REPORTS
    return {"k": k, **{name: 1e9 * time for name, time in times.items()}}


def peers(k: int, epsilon: float) -> dict[str, Callable[[list[int]], Any]]:
    """What makes and adds reports with each library found, one by one as they are meant to be."""
    found: dict[str, Callable[[list[int]], Any]] = {}
    if importlib.util.find_spec("pure_ldp") is not None:
        found |= pure_ldp(k, epsilon)
    if importlib.util.find_spec("multi_freq_ldpy") is not None:
        found |= multi_freq_ldpy(k, epsilon)
    return found


def pure_ldp(k: int, epsilon: float) -> dict[str, Callable[[list[int]], Any]]:
    """Hadamard response and optimal unary encoding of pure-LDP."""
    from pure_ldp.frequency_oracles.hadamard_response import (
        HadamardResponseClient,
        HadamardResponseServer,
    )
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def run(client: Any, server: Any) -> Callable[[list[int]], Any]:
        def act(values: list[int]) -> None:
            for value in values:
                server.aggregate(client.privatise(value + 1))

        return act

    server = HadamardResponseServer(epsilon, k)
    client = HadamardResponseClient(epsilon, k, server.get_hash_funcs())
    unary = UEClient(epsilon, k, use_oue=True), UEServer(epsilon, k, use_oue=True)
    return {"pure-LDP HR": run(client, server), "pure-LDP OUE": run(*unary)}


def multi_freq_ldpy(k: int, epsilon: float) -> dict[str, Callable[[list[int]], Any]]:
    """Optimal unary encoding and k-ary response of multi-freq-ldpy, which numba compiles."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    def unary(values: list[int]) -> Any:
        return sum(UE_Client(value, k, epsilon, True) for value in values)

    def kary(values: list[int]) -> Any:
        return np.bincount([GRR_Client(value, k, epsilon) for value in values], minlength=k)

    return {"multi-freq OUE": unary, "multi-freq k-ary": kary}


def print_means(rows: list[dict[str, Any]]) -> None:
    """Three tables of the same columns."""
    heads = ["Binary", "Piecewise", "LaplaceRandomizer", "Gauss 1e-4", "Gauss 1e-6", "printed 1e-6"]
    titles = {
        "variance": "Largest variance of a report about a number in [0, 1]",
        "agents": f"Agents sampled from a population, {GOAL}",
        "these agents": f"Agents whose own mean is asked for, {GOAL}",
    }
    for name, title in titles.items():
        print(f"\n{title}\n\n{'epsilon':>8}" + right(heads, 14))
        for row in rows:
            shown = (f"{x:>14,}" if isinstance(x, int) else f"{x:>14.4g}" for x in row[name])
            print(f"{row['epsilon']:>8g}" + "".join(shown))


def print_frequencies(rows: list[dict[str, Any]]) -> None:
    """Variances as multiples of optimal unary encoding's, and agents."""
    heads = [f"{kind} {k}" for k in SIZES for kind in ("k-ary", "Hadamard")]
    print("\nVariance, mean over k values, in units of optimal unary encoding's\n")
    print(f"{'epsilon':>8}{'unary':>14}" + right(heads, 14))
    for row in rows:
        ratios = right((x / row["unary"] for x in row["variance"]), 14, ".3f")
        print(f"{row['epsilon']:>8g}{row['unary']:>14.4g}{ratios}")
    print(f"\nAgents for all k frequencies at once, any population, {GOAL}\n")
    for row in rows:
        print(f"{row['epsilon']:>8g}{'':14}" + right(row["agents"], 14, ","))


def print_numbers(times: dict[str, float]) -> None:
    """Nanoseconds a report."""
    print(f"\nNanoseconds a report; {BITS:,} bits or numbers, {REPORTS:,} of the other kinds\n")
    base = times["numpy random(n) < p"]
    for name, time in times.items():
        print(f"{name:>24}: {time:8.2f} ns, numpy random(n) < p takes {base / time:6.2f} times it")


def print_oracles(rows: list[dict[str, Any]], epsilon: float, word: float) -> None:
    """Nanoseconds a report, and how many times that of ours on one thread the others take."""
    print(f"\nHadamard response, epsilon {epsilon:g}: nanoseconds to make and add one report")
    print(f"Limit: two words of the random stream take {2 * word:.1f} ns on one thread\n")
    for row in rows:
        print(f"k = {row['k']:,}")
        for name in (name for name in row if name != "k"):
            ratio = row[name] / row["1 thread"]
            print(f"{name:>24}: {row[name]:10.1f} ns, {ratio:9.2f} of ours on one thread")


if __name__ == "__main__":
    main()
