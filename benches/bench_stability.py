"""Answers by tables, votes counted and tables designed, beside numpy.

Run `python benches/bench_stability.py`: about a minute and 3 GB; `--small` takes a tenth of all.
The numbers of votes are given as uint32, both ways the same array.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from _harness import Race, require_memory, run_file
from _machine import Limits
from numpy.typing import NDArray

from hdp_fast import stability
from hdp_fast.reference import stability as reference

QUERIES, LABELS, BOTTOMS, MEMBERS = 1_000_000, 10, 50, 2_000
ANSWERS = 20_000_000
GOAL = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05}
PLANS = [(50, 1000), (50, 10_000), (10, 1000), (10, 100)]
# Members whose votes for a label a byte can count, and queries that stay in a cache.
COUNTED, CACHED = 255, 1 << 14


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Tables that are designed are kept in a folder that begins empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def votes_for_one(members: int, queries: int) -> NDArray[np.uint32]:
    """Votes for label 1 where three of four members are right and either label is as likely."""
    rng = np.random.default_rng()
    right = rng.binomial(members, 0.75, queries)
    return np.where(rng.random(queries) < 0.5, right, members - right).astype(np.uint32)


@pytest.mark.sizes("n", (200_000, 2_000_000, ANSWERS))
@pytest.mark.parametrize("kind", ["VoteTable", "HazardTable"])
def bench_answers(race: Race, limits: Limits, kind: str, n: int) -> None:
    """Queries with two labels, in sessions that all these answers leave open."""
    if kind == "VoteTable":
        table: Any = stability.VoteTable.design(ANSWERS, epsilon=100.0, delta=1e-6, beta=0.05)
    else:
        table = stability.HazardTable.design(BOTTOMS, ANSWERS, **GOAL)
    members = stability.members_needed(table)
    ones, rng = votes_for_one(members, n), np.random.default_rng()
    bottoms = table.max_unstable if kind == "HazardTable" else None
    levels = np.array([float(p) for p in table.probabilities])

    def ours() -> None:
        answers = table.session().answer_ones(ones, members)
        assert len(answers) == len(ones)

    race.ours(ours, members=members)
    race.numpy("floats", lambda: reference.respond_to_ones(levels, ones, members, bottoms, rng))
    race.numpy("32 bits", lambda: respond(levels, ones, members, bottoms, rng))
    for threads in (1, 2):
        # A number of votes is read, an answer of a byte written.
        race.limit("memory", limits.moved(5 * n, threads), threads=threads)
    race.run(n, "query")


def respond(
    levels: Any, ones: NDArray[np.uint32], members: int, bottoms: int | None,
    rng: np.random.Generator,
) -> Any:  # fmt: skip
    """The answers by small integers and floats, whose coins are rounded to 24 bits."""
    gap = ones.view(np.int32) * np.int32(2)
    gap -= np.int32(members)
    coins, one = rng.random(ones.size, dtype=np.float32), gap > 0
    np.abs(gap, out=gap)
    if bottoms is not None:
        gap -= one
    gap >>= 1
    heads = coins < levels.astype(np.float32).take(gap, mode="clip")
    if bottoms is None:
        return (heads ^ one).view(np.int8)
    answers = one.view(np.int8)
    ends = np.flatnonzero(heads)[:bottoms]
    answers[ends] = -1
    return answers[: ends[-1] + 1] if len(ends) == bottoms else answers


def bench_votes(race: Race, limits: Limits) -> None:
    """Counts of the votes of 2,000 members with ten labels on a million points."""
    queries, members = race.scaled("queries", QUERIES), MEMBERS
    require_memory(1.3 * queries * members)
    votes = np.random.default_rng().integers(0, LABELS, (members, queries), dtype=np.uint8)
    part = votes[:, : max(1, queries // 10)].copy()
    race.ours(lambda: stability.count_votes(votes, LABELS))
    race.numpy("a tenth", lambda: reference.count_votes(part, LABELS), share=10)
    race.numpy("a tenth, in bytes", lambda: count_in_bytes(part), share=10)
    for threads in (1, 2):
        race.limit("memory", limits.read(votes.size, threads), threads=threads)
    race.run(votes.size, "vote")


def count_in_bytes(votes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Counts in cached blocks, whose sums of bytes numpy vectorizes."""
    counts = np.zeros((LABELS, votes.shape[1]), np.int64)
    for start in range(0, votes.shape[1], CACHED):
        for first in range(0, len(votes), COUNTED):
            block = votes[first : first + COUNTED, start : start + CACHED]
            equal = np.empty(block.shape, np.bool_)
            for label in range(LABELS):
                np.equal(block, label, out=equal)
                counts[label, start : start + CACHED] += np.add.reduce(
                    equal.view(np.uint8), axis=0, dtype=np.uint8
                )
    return counts.T


def bench_distance(race: Race) -> None:
    """How far counts of ten labels are from another winner."""
    n = race.scaled("queries", QUERIES)
    counts = np.random.default_rng().multinomial(MEMBERS, [1 / LABELS] * LABELS, n)
    race.ours(lambda: stability.distance(counts), threads=(1,))
    race.numpy("by definition", lambda: reference.find_winners(counts))
    race.run(n, "query")


def bench_designs(table: Callable[..., None]) -> None:
    """Seconds to design both tables and to read them again, and how many members they ask for."""
    rows = [["queries", "max_unstable", "design, s", "read, s", "k_hazard", "k_vote", "k_paper"]]
    for bottoms, queries in PLANS:
        design = partial(stability.plan, bottoms, queries, labels=2, **GOAL)
        seconds = []
        for _ in range(2):
            start = time.perf_counter()
            plan = design()
            seconds.append(time.perf_counter() - start)
        members = [f"{size:,}" for size in (plan.k_hazard, plan.k_vote, plan.k_paper)]
        rows.append([f"{queries:,}", str(bottoms), *(f"{each:.3f}" for each in seconds), *members])
    table("tables, and members needed, at epsilon = 1, delta = 1e-6, beta = .05", rows)


if __name__ == "__main__":
    run_file(__file__)
