"""Error counts of many hypotheses beside numpy: over bits, a byte a bit and 64 a word; halfspaces.

Run `python benches/bench_score.py`: about a minute. Every route gets its features by columns and
packed as it likes before the clock starts; what packing takes stands apart. Labels are packed in
the call, each time. A turn of ours is five calls and a fifth of their time: while numpy takes its
turn on one core, the other falls asleep or goes to somebody else, and a call is over before it is
back. numpy 2 is needed for its route by words.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from _harness import make_parser, print_json
from numpy.typing import NDArray

from hdp_fast.bench import Action
from hdp_fast.bench import medians as medians_of
from hdp_fast.learners import (
    ConjunctionList,
    Conjunctions,
    Features,
    Halfspaces,
    Parities,
    SparseHalfspaces,
)
from hdp_fast.reference import score as reference

# Records of numbers, and how many of them numpy takes at a time where it makes no whole matrix.
NUMBERS, BLOCK = 100_000, 4_096
RECORDS, FEATURES, HYPOTHESES, LITERALS = 1_000_000, 64, 1_000, 3
GROWTH = {
    "records": (10_000, 100_000, 1_000_000, 10_000_000),
    "features": (16, 64, 256),
    "hypotheses": (100, 1_000, 10_000),
}
# numpy scores so many of the many hypotheses of an enumerated class, and is charged for all.
SAMPLE = 200

ENUMERATED = (Conjunctions, SparseHalfspaces)

# Calls in a turn.
CALLS = 5

Bits = NDArray[np.uint8]
Row = dict[str, Any]


def main() -> None:
    """Print the tables, or one JSON object with --json."""
    arguments = make_parser(__doc__, repeats=7).parse_args()
    rng = np.random.default_rng()
    tables = {
        "lists": time_lists(rng, arguments.repeats),
        "enumerated": time_enumerated(rng, arguments.repeats),
        "growth": time_growth(rng, arguments.repeats),
        "halfspaces": [time_halfspaces(rng, arguments.repeats, d) for d in (8, 64)],
    }
    if arguments.json:
        print_json(tables)
        return
    print_tables(tables)


def medians(actions: dict[str, Action], *, repeats: int) -> dict[str, float]:
    """Median seconds of a call of every action, numpy's being called once a turn."""
    calls = {name: 1 if "numpy" in name else CALLS for name in actions}

    def turn(name: str) -> None:
        for _ in range(calls[name]):
            actions[name]()

    times = medians_of({name: partial(turn, name) for name in actions}, repeats=repeats)
    return {name: time / calls[name] for name, time in times.items()}


def records(rng: np.random.Generator, m: int, d: int) -> tuple[Bits, Bits]:
    """Random features (m, d) and labels (m,)."""
    return rng.integers(0, 2, (m, d), dtype=np.uint8), rng.integers(0, 2, m, dtype=np.uint8)


def sparse(rng: np.random.Generator, count: int, d: int) -> tuple[Bits, Bits]:
    """Random conjunctions of LITERALS literals each: which features must be 1 and 0, (count, d)."""
    chosen = rng.permuted(np.tile(np.arange(d), (count, 1)), axis=1)[:, :LITERALS]
    ones, zeros = np.zeros((2, count, d), np.uint8)
    wanted = rng.integers(0, 2, chosen.shape)
    for masks, value in (ones, 1), (zeros, 0):
        rows, places = np.nonzero(wanted == value)
        masks[rows, chosen[rows, places]] = 1
    return ones, zeros


def literals(ones: Bits, zeros: Bits) -> list[reference.Literals]:
    """The same conjunctions as the reference takes them."""
    return [
        [(int(j), 1) for j in np.flatnonzero(one)] + [(int(j), 0) for j in np.flatnonzero(zero)]
        for one, zero in zip(ones, zeros, strict=True)
    ]


def time_lists(rng: np.random.Generator, repeats: int) -> Row:
    """Seconds for conjunctions and parities given one by one, and for packing."""
    X, y = records(rng, RECORDS, FEATURES)
    ones, zeros = sparse(rng, HYPOTHESES, FEATURES)
    given, listed = ConjunctionList(ones, zeros), literals(ones, zeros)
    parities = Parities(ones | zeros)
    features, columns = Features(X), reference.columns(X)
    actions: dict[str, Action] = {
        "1 thread": lambda: given.errors(features, y, threads=1),
        "2 threads": lambda: given.errors(features, y, threads=2),
        "2 threads, packing included": lambda: given.errors(X, y, threads=2),
        "packing, 2 threads": lambda: Features(X, threads=2),
        "parities, 2 threads": lambda: parities.errors(features, y, threads=2),
        "numpy, columns of bytes": lambda: reference.conjunction_errors(columns, y, listed),
        "numpy, parities": lambda: reference.parity_errors(columns, y, parities.masks),
    }
    if hasattr(np, "bitwise_count"):
        words, labels = reference.packed(columns), reference.packed(y)
        actions["numpy, words"] = lambda: reference.packed_conjunction_errors(
            words, labels, RECORDS, listed
        )
    return dict(medians(actions, repeats=repeats))


def time_enumerated(rng: np.random.Generator, repeats: int) -> list[Row]:
    """Seconds for all hypotheses of few literals, where signs and thresholds come for nothing."""
    X, y = records(rng, RECORDS, FEATURES)
    features, columns = Features(X), reference.columns(X)
    rows = []
    for hypotheses in [kind(FEATURES, s) for kind in ENUMERATED for s in (1, 2, 3)]:
        some = rng.choice(len(hypotheses), min(SAMPLE, len(hypotheses)), replace=False)
        chosen = [hypotheses.hypothesis(i) for i in some]
        actions = _routes(hypotheses, features, columns, y, chosen)
        times = medians(actions, repeats=repeats)
        times["numpy"] *= len(hypotheses) / len(some)
        shape = {"size": hypotheses.size, "count": len(hypotheses)}
        rows.append({"class": type(hypotheses).__name__, **shape, **times})
    return rows


def _routes(
    hypotheses: Conjunctions | SparseHalfspaces,
    features: Features,
    columns: Bits,
    y: Bits,
    chosen: list[dict[str, Any]],
) -> dict[str, Action]:
    listed = [[*zip(each["features"], each["values"], strict=True)] for each in chosen]
    votes = [(each, said.get("threshold", 0)) for each, said in zip(listed, chosen, strict=True)]

    def numpy() -> list[int]:
        if isinstance(hypotheses, Conjunctions):
            return reference.conjunction_errors(columns, y, listed)
        return reference.at_least_errors(columns, y, votes)

    return {
        "1 thread": lambda: hypotheses.errors(features, y, threads=1),
        "2 threads": lambda: hypotheses.errors(features, y, threads=2),
        "numpy": numpy,
    }


def time_growth(rng: np.random.Generator, repeats: int) -> list[Row]:
    """Seconds on two threads while one of m, d and |H| changes."""
    rows = []
    for name, values in GROWTH.items():
        for value in values:
            shape = {"records": RECORDS, "features": FEATURES, "hypotheses": HYPOTHESES}
            shape[name] = value
            rows.append({"varied": name, **shape, **_time_shape(rng, repeats, *shape.values())})
    return rows


def _time_shape(rng: np.random.Generator, repeats: int, m: int, d: int, count: int) -> Row:
    X, y = records(rng, m, d)
    features, given = Features(X), ConjunctionList(*sparse(rng, count, d))
    return dict(
        medians({"2 threads": lambda: given.errors(features, y, threads=2)}, repeats=repeats)
    )


def time_halfspaces(rng: np.random.Generator, repeats: int, d: int) -> Row:
    """Seconds for halfspaces over d numbers, beside a product of matrices in numpy."""
    X, y = rng.normal(size=(NUMBERS, d)), rng.integers(0, 2, NUMBERS, dtype=np.uint8)
    W, b = rng.normal(size=(HYPOTHESES, d)), rng.normal(size=HYPOTHESES)
    given = Halfspaces(W, b)
    actions: dict[str, Action] = {
        "1 thread": lambda: given.errors(X, y, threads=1),
        "2 threads": lambda: given.errors(X, y, threads=2),
        "numpy, one product": lambda: reference.halfspace_errors(X, y, W, b),
        "numpy, blocks": lambda: reference.halfspace_errors(X, y, W, b, rows=BLOCK),
    }
    return {"features": d, **medians(actions, repeats=min(repeats, 3))}


def print_tables(tables: dict[str, Any]) -> None:
    """Milliseconds and ratios."""
    shape = f"{RECORDS:,} records of {FEATURES} bits"
    print(f"{HYPOTHESES:,} hypotheses of {LITERALS} literals, {shape}\n")
    lists = tables["lists"]
    for name, time in lists.items():
        print(f"{name:>28}: {1e3 * time:8.2f} ms")
    for name in "numpy, columns of bytes", "numpy, words":
        if name in lists:
            for route in "1 thread", "2 threads", "2 threads, packing included":
                print(f"{name + ' / ' + route:>53}: {lists[name] / lists[route]:6.1f}")
    ratio = lists["numpy, parities"] / lists["parities, 2 threads"]
    print(f"{'numpy, parities / parities, 2 threads':>53}: {ratio:6.1f}")
    print("\nAll hypotheses of at most so many literals (numpy: from a sample of them)\n")
    for row in tables["enumerated"]:
        one, two, theirs = row["1 thread"], row["2 threads"], row["numpy"]
        ours = f"{1e3 * one:8.2f} ms, two threads {1e3 * two:8.2f}"
        ratios = f"ratios {theirs / one:7.1f}, {theirs / two:7.1f}"
        kind = f"{row['class']:>16} {row['size']}"
        print(f"{kind}: {row['count']:>9,}: {ours}, numpy {1e3 * theirs:10.1f}: {ratios}")
    print("\nGrowth, two threads\n")
    for row in tables["growth"]:
        shape = ", ".join(f"{row[name]:>10,} {name}" for name in GROWTH)
        print(f"{shape}: {1e3 * row['2 threads']:8.2f} ms")
    print(f"\n{HYPOTHESES:,} halfspaces, {NUMBERS:,} records (numpy: the better of two routes)\n")
    for row in tables["halfspaces"]:
        one, two = row["1 thread"], row["2 threads"]
        theirs = min(row["numpy, one product"], row["numpy, blocks"])
        ours = f"{1e3 * one:8.2f} ms, two threads {1e3 * two:8.2f}"
        ratios = f"ratios {theirs / one:7.1f}, {theirs / two:7.1f}"
        print(f"{row['features']:>3} numbers: {ours}, numpy {1e3 * theirs:10.1f}: {ratios}")


if __name__ == "__main__":
    main()
