"""Answers by tables, votes counted and tables designed, beside numpy.

Run `python benches/bench_stability.py`: about a minute and 2 GB; `--members 500` takes less. The
numbers of votes are given as uint32, both ways the same array. One pass over the votes is numpy's
maximum of all of them.
"""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial
from typing import Any

import numpy as np
from _harness import make_parser, print_json, with_threads
from numpy.typing import NDArray

from hdp_fast import stability
from hdp_fast.bench import Action, medians
from hdp_fast.reference import stability as reference

QUERIES, LABELS, BOTTOMS = 1_000_000, 10, 50
# Answers of a turn; numpy's fewer take as long.
ANSWERS, FEWER = 20_000_000, 2_000_000
GOAL = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
PLANS = [(50, 1000), (50, 10_000), (10, 1000), (10, 100)]

Row = dict[str, Any]


def main() -> None:
    """Print the tables, or one JSON object with --json."""
    parser = make_parser(__doc__, repeats=7)
    parser.add_argument("--members", type=int, default=2000)
    arguments = parser.parse_args()
    rng = np.random.default_rng()
    with tempfile.TemporaryDirectory() as empty:
        os.environ["XDG_CACHE_HOME"] = empty
        tables = {
            "answers": time_answers(rng, arguments.repeats),
            "counts": time_counts(rng, arguments.members, arguments.repeats),
            "designs": [time_design(*limits) for limits in PLANS],
        }
    if arguments.json:
        print_json(tables)
        return
    print_tables(tables)


def votes_for_one(rng: np.random.Generator, members: int, queries: int) -> NDArray[np.uint32]:
    """Votes for label 1 where three of four members are right and either label is as likely."""
    right = rng.binomial(members, 0.75, queries)
    return np.where(rng.random(queries) < 0.5, right, members - right).astype(np.uint32)


def time_answers(rng: np.random.Generator, repeats: int) -> list[Row]:
    """Queries with two labels a second; sessions that all these answers leave open."""
    vote = stability.VoteTable.design(ANSWERS, epsilon=100.0, delta=1e-6, beta=0.05)
    hazard = stability.HazardTable.design(BOTTOMS, ANSWERS, **GOAL)
    rows = []
    for table in vote, hazard:
        members = stability.members_needed(table)
        ones = votes_for_one(rng, members, ANSWERS)
        bottoms = table.max_unstable if isinstance(table, stability.HazardTable) else None
        levels = np.array([float(p) for p in table.probabilities])

        def ours(table: Any = table, ones: Any = ones, members: int = members) -> None:
            answers = table.session().answer_ones(ones, members)
            assert len(answers) == len(ones)

        def numpy(
            levels: Any = levels, ones: Any = ones, k: int = members, most: Any = bottoms
        ) -> None:
            reference.respond_to_ones(levels, ones[:FEWER], k, most, rng)

        actions: dict[str, Action] = {
            "1 thread": with_threads(1, ours),
            "2 threads": with_threads(2, ours),
            "numpy": numpy,
        }
        times = medians(actions, repeats=repeats)
        rates = {name: (FEWER if name == "numpy" else ANSWERS) / t for name, t in times.items()}
        rows.append({"table": type(table).__name__, "members": members} | rates)
    return rows


def time_counts(rng: np.random.Generator, members: int, repeats: int) -> Row:
    """Seconds for counts of all votes, for a pass over them and for what follows."""
    votes = rng.integers(0, LABELS, (members, QUERIES), dtype=np.uint8)
    part = votes[:, : QUERIES // 10].copy()
    counts = stability.count_votes(votes, LABELS)
    actions: dict[str, Action] = {
        "1 thread": lambda: stability.count_votes(votes, LABELS, threads=1),
        "2 threads": lambda: stability.count_votes(votes, LABELS, threads=2),
        "one pass": lambda: votes.max(),
        "numpy, a tenth": lambda: reference.count_votes(part, LABELS),
        "distances of the counts": lambda: stability.distance(counts),
    }
    return {"members": members} | medians(actions, repeats=repeats)


def time_design(max_unstable: int, queries: int) -> Row:
    """Seconds to design both tables and to read them again, and what they ask for."""
    design = partial(stability.plan, max_unstable, queries, labels=2, **GOAL)
    start = time.perf_counter()
    plan = design()
    first = time.perf_counter() - start
    again = medians({"read": design}, repeats=5)["read"]
    sizes = {"k_hazard": plan.k_hazard, "k_vote": plan.k_vote, "k_paper": plan.k_paper}
    limits = {"queries": queries, "max_unstable": max_unstable}
    return limits | {"design": first, "read": again} | sizes


def print_tables(tables: dict[str, Any]) -> None:
    """Rates of answers, seconds for counts, seconds for designs."""
    print("two-class queries a second, in millions")
    for row in tables["answers"]:
        rates = {name: row[name] / 1e6 for name in ("1 thread", "2 threads", "numpy")}
        ratio = rates["2 threads"] / rates["numpy"]
        shown = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
        print(f"  {row['table']:<12} k = {row['members']:,}: {shown}; {ratio:.1f} times numpy")
    counts = dict(tables["counts"])
    members = counts.pop("members")
    print(f"votes of {members:,} members on {QUERIES:,} queries with {LABELS} labels, seconds")
    for name, seconds in counts.items():
        print(f"  {name:<24} {seconds:.3f}")
    for threads in ("1 thread", "2 threads"):
        print(f"  {threads + ' / one pass':<24} {counts[threads] / counts['one pass']:.2f}")
    print(f"  one pass, GB / s         {members * QUERIES / counts['one pass'] / 1e9:.1f}")
    print("tables, seconds, and members needed")
    for row in tables["designs"]:
        times = f"design {row['design']:.2f}, read {row['read']:.3f}"
        members = f"{row['k_hazard']:,} / {row['k_vote']:,} (paper {row['k_paper']:,})"
        limits = f"queries = {row['queries']:,}, max_unstable = {row['max_unstable']}"
        print(f"  {limits}: {times}; k = {members}")


if __name__ == "__main__":
    main()
