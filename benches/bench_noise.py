"""Exact draws of hdp_fast.noise beside OpenDP's exact ones and numpy's inexact ones.

Run `python benches/bench_noise.py`: about a minute. OpenDP comes with the extra `bench`; without it
its column is empty. OpenDP draws fewer values, since its cost a draw does not depend on how many.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _harness import make_parser, print_json, right, with_threads

from hdp_fast import local, noise
from hdp_fast.bench import Action, medians
from hdp_fast.reference import noise as reference

DRAWS = 1_000_000
PEER_DRAWS = 20_000
BITS = 10_000_000
SCALES = {
    "discrete_laplace": (2.0, 1e4),
    "discrete_gaussian": (2.0, 3.0, 50.0, 100.0, 1e4, 1e6),
    "rounded_gaussian": (2.0, 3.0, 50.0, 100.0, 1e4, 1e6),
}
FEW = 100
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def main() -> None:
    """Print the tables, or one JSON object with --json."""
    arguments = make_parser(__doc__, repeats=7).parse_args()
    noises = [
        time_noise(law, scale, arguments.repeats)
        for law, scales in SCALES.items()
        for scale in scales
    ]
    word = time_word(arguments.repeats)
    bits, choices = time_bits(arguments.repeats), time_choices(arguments.repeats)
    sizes = time_sizes(arguments.repeats)
    if arguments.json:
        tables = {"noise": noises, "word": word, "bits": bits, "choices": choices, "sizes": sizes}
        print_json(tables)
        return
    print_noises(noises)
    print(
        f"\nLimit: a word of the random stream, drawn and stored on one thread, takes {word:.1f} ns"
    )
    print("Words a draw: 1 for scales up to 50; 2 for laplace 10000; 2 to 3 for the others")
    print_bits(bits)
    print_choices(choices)
    print_sizes(sizes)


def time_noise(law: str, scale: float, repeats: int) -> dict[str, Any]:
    """Nanoseconds a draw, all routes taking turns."""
    draw, inexact = (getattr(module, law) for module in (noise, reference))
    coins = np.random.default_rng()
    routes: dict[str, Action] = {
        "1 thread": with_threads(1, lambda: draw(scale, DRAWS)),
        "2 threads": with_threads(2, lambda: draw(scale, DRAWS)),
        "numpy": lambda: inexact(scale, DRAWS, coins),
    }
    measured = {name: time / DRAWS for name, time in medians(routes, repeats=repeats).items()}
    few = {"few": lambda: draw(scale, FEW), "one": lambda: draw(scale)}
    times = medians(few, repeats=100 * repeats)
    measured |= {"few": times["few"] / FEW, "one": times["one"]}
    peer = opendp_noise(law, scale)
    if peer is not None:
        measured["OpenDP"] = medians({"OpenDP": peer}, repeats=3)["OpenDP"] / PEER_DRAWS
    return {"law": law, "scale": scale, **{name: 1e9 * time for name, time in measured.items()}}


def time_word(repeats: int) -> float:
    """Nanoseconds of one word of the random stream, stored: no draw from it can be faster."""
    draw = with_threads(1, lambda: noise.uniform_integers(1 << 32, DRAWS))
    return 1e9 * medians({"word": draw}, repeats=repeats)["word"] / DRAWS


def opendp_noise(law: str, scale: float) -> Callable[[], Any] | None:
    """OpenDP's noise on a vector of zeros, if OpenDP is installed."""
    if importlib.util.find_spec("opendp") is None or law == "rounded_gaussian":
        return None
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    distance = dp.l1_distance(T="i64") if law == "discrete_laplace" else dp.l2_distance(T="i64")
    make = dp.m.make_laplace if law == "discrete_laplace" else dp.m.make_gaussian
    measurement = make(domain, distance, scale=scale)
    zeros = [0] * PEER_DRAWS
    return lambda: measurement(zeros)


def time_bits(repeats: int) -> dict[str, float]:
    """Seconds for ten million randomized responses."""
    coins = np.random.default_rng()
    bits = coins.integers(0, 2, BITS, dtype=np.uint8)
    fractions, lie = coins.random(BITS), 1 / (1 + math.e)
    routes: dict[str, Action] = {
        "1 thread": with_threads(1, lambda: local.randomized_response(bits, epsilon=1)),
        "2 threads": with_threads(2, lambda: local.randomized_response(bits, epsilon=1)),
        "fractions, 1 thread": with_threads(
            1, lambda: local.randomized_response(fractions, epsilon=1)
        ),
        "fractions, 2 threads": with_threads(
            2, lambda: local.randomized_response(fractions, epsilon=1)
        ),
        "numpy, random(n) < p": lambda: coins.random(BITS) < lie,
        "numpy, random(n) < fractions": lambda: coins.random(BITS) < fractions,
        "numpy, response": lambda: reference.randomized_response(bits, 1, coins),
    }
    return medians(routes, repeats=repeats)


def time_choices(repeats: int) -> dict[str, dict[str, float]]:
    """Seconds for one selection among a million candidates and a million weighted draws."""
    coins = np.random.default_rng()
    scores, weights = (
        coins.integers(0, 1_000, DRAWS),
        coins.integers(0, 1 << 40, DRAWS).astype(np.uint64),
    )
    routes: dict[str, dict[str, Action]] = {
        "permute_and_flip": {
            "hdp_fast": lambda: noise.permute_and_flip(scores, epsilon=0.1),
            "numpy": lambda: reference.permute_and_flip(scores, 0.05, coins),
        },
        "exponential_mechanism": {
            "hdp_fast": lambda: noise.exponential_mechanism(scores, epsilon=0.1),
            "numpy": lambda: reference.exponential_mechanism(scores, 0.05, coins),
        },
        "weighted_draws": {
            "hdp_fast": with_threads(2, lambda: noise.weighted_draws(weights, DRAWS)),
            "numpy": lambda: reference.weighted_draws(weights, DRAWS, coins),
        },
    }
    return {name: medians(pair, repeats=repeats) for name, pair in routes.items()}


def time_sizes(repeats: int) -> list[dict[str, Any]]:
    """Nanoseconds a draw of discrete Laplace noise of scale 10,000, by the number of draws."""
    routes: dict[str, Action] = {
        str(n): with_threads(2, partial(noise.discrete_laplace, 1e4, n)) for n in SIZES
    }
    times = medians(routes, repeats=repeats)
    return [{"draws": n, "ns": 1e9 * times[str(n)] / n} for n in SIZES]


def print_noises(rows: list[dict[str, Any]]) -> None:
    """Nanoseconds and ratios."""
    print(f"\nNanoseconds a draw, {DRAWS:,} draws (OpenDP: {PEER_DRAWS:,})\n")
    heads = ["scale", "1 thread", "2 threads", "numpy", "OpenDP", "of 100", "alone"]
    ratios = ["OpenDP/1", "OpenDP/2", "numpy/1", "numpy/2"]
    print(f"{'law':<18}" + right(heads + ratios, 10))
    for row in rows:
        one, two, fast = row["1 thread"], row["2 threads"], row["numpy"]
        peer = row.get("OpenDP", math.nan)
        print(f"{row['law']:<18}{row['scale']:>10g}", end="")
        print(f"{one:>10.1f}{two:>10.1f}{fast:>10.1f}{peer:>10.0f}", end="")
        print(f"{row['few']:>10.0f}{row['one']:>10.0f}", end="")
        print(f"{peer / one:>10.0f}{peer / two:>10.0f}{fast / one:>10.2f}{fast / two:>10.2f}")


def print_bits(times: dict[str, float]) -> None:
    """Milliseconds, and how much longer numpy takes."""
    print(f"\nRandomized response of {BITS:,} bits\n")
    for name, time in times.items():
        ratio = times["numpy, random(n) < p"] / time
        figures = f"{1e3 * time:6.1f} ms, {1e9 * time / BITS:5.2f} ns a bit"
        print(f"{name:>22}: {figures}, numpy / this {ratio:5.2f}")


def print_choices(times: dict[str, dict[str, float]]) -> None:
    """Milliseconds and their ratio."""
    print(f"\nOne choice among {DRAWS:,} candidates; {DRAWS:,} draws with as many weights\n")
    for name, pair in times.items():
        ours, theirs = pair["hdp_fast"], pair["numpy"]
        print(
            f"{name:>22}: {1e3 * ours:7.2f} ms, numpy {1e3 * theirs:7.1f} ms, {theirs / ours:6.1f}"
        )


def print_sizes(rows: list[dict[str, Any]]) -> None:
    """How the cost grows; below 16,384 draws no table is built."""
    print("\nDiscrete Laplace, scale 10,000, by number of draws\n")
    for row in rows:
        print(f"{row['draws']:>12,}: {row['ns']:7.1f} ns a draw")


if __name__ == "__main__":
    main()
