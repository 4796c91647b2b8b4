"""PARITY: records or agents needed by agents alone, by a curator, and by both together.

Examples are uniform over d bits, so that any error below 1/2 is none: every plan is for an error of
.49, epsilon = 1 for each record and each agent, and a failure probability of .05, no release
included.

agents alone   each agent is asked about one of all 2**d parities, whether it is wrong about them,
               and the parity of the fewest errors wins (local.learn_by_votes). To estimate all
               Walsh coefficients of the labels by Hadamard response with public rows is the same:
               a row is a parity. No local learner does it with fewer than about 2**(d / 3)
               (Kasiviswanathan et al. 2011, Corollary 5.15)
curator        parity.learn
hybrid         parity.transfer: a curator whose records have a first bit that is 1 for three of
               four, and agents of the uniform target who verify what was learned; records and
               agents are added

"planned" is what the plans ask for, "measured" the fewest, by steps of 2**(1 / 4) from the plan
downwards, with which 95 % of the runs find the parity, but for two standard deviations. Slopes are
fitted by least squares: doublings per bit for agents alone, records per bit for the others.

Run `python benches/papers/parity_separation.py`: a minute. `--quick` for few runs of few bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from _report import accept_seeds, make_parser, write_files
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hdp_fast import gf2, learners, local, parity

ALPHA, BETA, EPSILON = 0.49, 0.05, 1.0
# Of the uniform distribution from one whose first bit is 1 with probability 3/4.
CHI2 = 1 / 3
PLANNED = (2, 4, 6, 8, 10, 12, 16, 24, 32, 64, 128, 256, 512, 1024)
# Beyond this many bits there are more agents to ask than people.
MOST_LOCAL = 32
# Sizes tried at most, from the plan's downwards.
STEPS = 20

Bits = NDArray[np.uint8]
Generator = np.random.Generator


@dataclass(frozen=True)
class Learner:
    """One way to learn a parity.

    Attributes:
        title: as in the table.
        planned: records and agents for d bits.
        run: whether so many of them found the parity of d bits.
        measured: bits for which it is run.
        runs: how often, but for --quick.
    """

    title: str
    planned: Callable[[int], int]
    run: Callable[[int, int, Generator], bool]
    measured: tuple[int, ...]
    runs: int


def sample(d: int, n: int, rng: Generator, first: float = 0.5) -> tuple[Bits, Bits, Bits]:
    """A parity, and records that it labels."""
    secret = rng.integers(0, 2, d, dtype=np.uint8)
    X = rng.integers(0, 2, (n, d), dtype=np.uint8)
    X[:, 0] = rng.random(n) < first
    return secret, X, gf2.dot(X, secret)


@cache
def all_parities(d: int) -> learners.Parities:
    return learners.Parities((np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(np.uint8))


def agents_alone(d: int, n: int, rng: Generator) -> bool:
    """Whether votes about all parities find the right one."""
    secret, X, y = sample(d, n, rng)
    agents = local.Agents(X, y, epsilon=EPSILON)
    found = local.learn_by_votes(all_parities(d), agents, beta=BETA)
    return bool((all_parities(d).masks[found.index] == secret).all())


def agents_planned(d: int) -> int:
    return local.votes_needed(2**d, alpha=ALPHA, beta=BETA, epsilon=EPSILON)


def curator(d: int, n: int, rng: Generator) -> bool:
    """Whether the private learner finds the parity."""
    secret, X, y = sample(d, n, rng)
    found = parity.learn(X, y, epsilon=EPSILON, beta=BETA)
    return found.released and bool((found.mask == secret).all())


def curator_planned(d: int) -> int:
    return parity.plan(d, alpha=ALPHA, beta=BETA, epsilon=EPSILON).n


def hybrid_plan(d: int) -> parity.TransferPlan:
    return parity.plan_transfer(
        d, alpha=ALPHA, beta=BETA, epsilon=EPSILON, agents_epsilon=EPSILON, chi2=CHI2
    )


def hybrid(d: int, n: int, rng: Generator) -> bool:
    """Whether the curator finds the parity from biased records, and agents do not refute it."""
    asked = hybrid_plan(d).agents
    secret, X, y = sample(d, max(1, n - asked), rng, first=0.75)
    target = rng.integers(0, 2, (asked, d), dtype=np.uint8)
    agents = local.Agents(target, gf2.dot(target, secret), epsilon=EPSILON)
    found = parity.transfer(X, y, agents, epsilon=EPSILON, alpha=ALPHA, beta=BETA)
    if not found.released or found.interval is None:
        return False
    return bool((found.mask == secret).all()) and found.interval[0] < 0.5


def hybrid_planned(d: int) -> int:
    plan = hybrid_plan(d)
    return plan.curator.n + plan.agents


LEARNERS = (
    Learner("agents alone", agents_planned, agents_alone, (2, 4, 6, 8), 60),
    Learner("curator", curator_planned, curator, (2, 4, 6, 8, 16, 32, 64, 128, 256), 200),
    Learner("hybrid", hybrid_planned, hybrid, (2, 4, 6, 8, 16, 32, 64, 128, 256), 200),
)


def main() -> None:
    """Run what was asked for, print a table, write the figure and its numbers."""
    accept_seeds()
    arguments = make_parser(__doc__, quick="20 runs, up to 6 bits").parse_args()
    begun = time.perf_counter()
    rows = [row for each in LEARNERS for row in rows_of(each, arguments.quick)]
    slopes = [slope_of(each, rows, kind) for each in LEARNERS for kind in ("planned", "measured")]
    show(rows, slopes)
    print(f"{time.perf_counter() - begun:.0f} s in all")
    report = {"alpha": ALPHA, "beta": BETA, "epsilon": EPSILON, "rows": rows, "slopes": slopes}
    print(write_files(arguments.output, "parity_separation", report, figure(rows, slopes)))


def rows_of(learner: Learner, quick: bool) -> list[dict[str, Any]]:
    """What is planned for each d, and measured where it is run."""
    runs, most = (20, 6) if quick else (learner.runs, max(learner.measured))
    rows = []
    for d in PLANNED:
        if learner.run is agents_alone and d > MOST_LOCAL:
            break
        row: dict[str, Any] = {"learner": learner.title, "d": d, "planned": learner.planned(d)}
        if d in learner.measured and d <= most:
            row |= measured(learner, d, row["planned"], runs)
        rows.append(row)
    return rows


def measured(learner: Learner, d: int, planned: int, runs: int) -> dict[str, Any]:
    """Share of runs that succeed as planned, and the fewest records that are enough."""
    least = 2**d if learner.run is agents_alone else 1
    limit = 1 - BETA - 2 * math.sqrt(BETA * (1 - BETA) / runs)
    found: dict[str, Any] = {"measured": None}
    for step in range(STEPS):
        size = max(round(planned / 2 ** (step / 4)), least)
        rng = np.random.default_rng([d, step])
        share = sum(learner.run(d, size, rng) for _ in range(runs)) / runs
        found.setdefault("exact as planned", share)
        if share < limit or size == found["measured"]:
            break
        found["measured"] = size
    return found


def slope_of(learner: Learner, rows: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Doublings per bit of agents alone, else records per bit."""
    some = [row for row in rows if row["learner"] == learner.title and row.get(kind)]
    d, sizes = (np.array([row[key] for row in some], float) for key in ("d", kind))
    exponential = learner.run is agents_alone
    slope, intercept = np.polyfit(d, np.log2(sizes) if exponential else sizes, 1)
    unit = "doublings per bit" if exponential else "records per bit"
    found = {"learner": learner.title, "kind": kind, "unit": unit}
    return {**found, "slope": float(slope), "intercept": float(intercept)}


def show(rows: list[dict[str, Any]], slopes: list[dict[str, Any]]) -> None:
    """The table."""
    titles = ("d", *(f"{each.title}, planned (measured)" for each in LEARNERS))
    print(f"{titles[0]:>5}" + "".join(f"{title:>40}" for title in titles[1:]))
    for d in PLANNED:
        found = {row["learner"]: row for row in rows if row["d"] == d}
        print(f"{d:>5}" + "".join(f"{cell(found.get(each.title)):>40}" for each in LEARNERS))
    for each in slopes:
        print(f"{each['learner']}, {each['kind']}: {each['slope']:.3f} {each['unit']}")


def cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    fewest = row.get("measured")
    return f"{row['planned']:,}" + (f" ({fewest:,})" if fewest else "")


def figure(rows: list[dict[str, Any]], slopes: list[dict[str, Any]]) -> Figure:
    """Records against bits, with the fitted lines: exponential against linear."""
    drawn = Figure(figsize=(7, 4.6), layout="constrained")
    axes = drawn.subplots()
    for color, each in zip(("C3", "C0", "C2"), LEARNERS, strict=True):
        some = [row for row in rows if row["learner"] == each.title]
        points = [row for row in some if row.get("measured")]
        axes.plot(
            [row["d"] for row in points],
            [row["measured"] for row in points],
            "o",
            color=color,
            label=f"{each.title}, measured",
        )
        planned = [row["planned"] for row in some]
        axes.plot([row["d"] for row in some], planned, "_", color=color, markersize=9)
        for fit in (fit for fit in slopes if fit["learner"] == each.title):
            ends = np.geomspace(2, max(row["d"] for row in some), 200)
            line = fit["intercept"] + fit["slope"] * ends
            values = 2**line if each.run is agents_alone else line
            style = "-" if fit["kind"] == "planned" else ":"
            label = f"{each.title}, {fit['kind']}: {fit['slope']:.2f} {fit['unit']}"
            axes.plot(ends, values, style, color=color, lw=0.9, label=label)
    axes.set(xscale="log", yscale="log", xlabel="d", ylabel="records and agents, epsilon = 1")
    axes.legend(fontsize="x-small")
    return drawn


if __name__ == "__main__":
    main()
