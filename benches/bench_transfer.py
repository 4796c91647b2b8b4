"""Plans of Subsample-Test-Reweigh beside the paper's, agents alone, and whole runs beside numpy.

Run `python benches/bench_transfer.py`: about two minutes and 1 GB of memory; `--largest` goes up to
10,000,000 records and 4 GB, `--plans` prints the plans alone. `--promised` instead
runs one plan from chi2 to its end, with the records and agents that it asks for: three minutes.
"""

from __future__ import annotations

import itertools
import os
import time
from statistics import fmean
from typing import Any

import numpy as np
from _harness import make_parser, print_aligned, print_json

from hdp_fast.learners import Conjunctions, ExponentialLearner
from hdp_fast.local import Agents, learn_by_votes, votes_needed
from hdp_fast.reference import transfer as reference
from hdp_fast.transfer import SubsampleTestReweigh, chi2_finite, plan

D, SIZE = 64, 2
LEARNER = ExponentialLearner(Conjunctions(D, SIZE), epsilon=1.0)
PUBLIC = {"alpha": 0.05, "kappa": 0.2, "eta": 0.3, "epsilon": 1.0, "delta": 1e-6}
# numpy takes seconds a round.
ROUNDS, REFERENCE_ROUNDS = 20, 2
SIZES = (100_000, 1_000_000)
LARGEST = 10_000_000
# Repetitions of the agents' vote.
VOTES = 10


def main() -> None:
    """Print both tables, or one JSON object with --json."""
    parser = make_parser(__doc__)
    parser.add_argument("--largest", action="store_true", help="10,000,000 records, too")
    parser.add_argument("--plans", action="store_true", help="no runs")
    parser.add_argument("--promised", action="store_true", help="a run that a plan promises")
    arguments = parser.parse_args()
    if arguments.promised:
        run_promised()
        return
    plans = [row for alpha in (0.05, 0.1) for chi2 in (0.35, 2.0) for row in plan_rows(alpha, chi2)]
    rivals = [rival_row(d, plans) for d in (2, 8, 24, 64)]
    sizes = [*SIZES, *([LARGEST] if arguments.largest else [])]
    runs = [] if arguments.plans else [row for n in sizes for row in run_rows(n)]
    if arguments.json:
        print_json({"plans": plans, "rivals": rivals, "runs": runs})
        return
    print(f"Plans for {len(LEARNER.hypotheses):,} conjunctions, epsilon = 1, delta = 1e-6 for the")
    print("curator's records, epsilon = 1 for agents, beta = .05; the paper's are Algorithm 2's\n")
    print_aligned(plan_table(plans))
    print(
        "\nAgents alone, each asked about one conjunction: how many an excess error of alpha needs,"
    )
    print("and what the agents of our plan (alpha = .1, chi2 + 1 = 1.35, geometric) come to\n")
    print_aligned(rival_table(rivals))
    if runs:
        print(
            f"\nPrivate runs of {ROUNDS} rounds, {D} features; "
            "numpy: floats, no privacy, 64 records a word\n"
        )
        print_aligned(run_table(runs))


def plan_rows(alpha: float, chi2: float) -> list[dict[str, Any]]:
    """The paper's plan and ours, one row for each schedule."""
    rows = []
    for schedule in ("every", "geometric", "final"):
        start = time.perf_counter()
        found = plan(
            LEARNER,
            alpha=alpha,
            chi2=chi2,
            epsilon=1.0,
            delta=1e-6,
            agents_epsilon=1.0,
            schedule=schedule,
        )
        seconds = time.perf_counter() - start
        assert found.paper is not None
        both = [(schedule, found), *([("paper", found.paper)] if schedule == "every" else [])]
        for name, of in both:
            names = ("n", "N", "rounds", "draws")
            row = {"alpha": alpha, "ratio": 1 + chi2, "plan": name, "seconds": seconds}
            row |= {key: getattr(of, key) for key in names}
            row |= {"learner_epsilon": 1.0 if name == "paper" else found.learner_epsilon}
            row |= {"error": 4 * alpha if name == "paper" else found.error}
            rows.append(row)
    return rows


def plan_table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Header and rows; the paper's n and N over ours."""
    header = ["alpha", "chi2 + 1", "plan", "n", "paper / n", "N", "paper / N", "T", "draws"]
    found = [[*header, "its epsilon", "target error <="]]
    for _, group in itertools.groupby(rows, key=lambda row: (row["alpha"], row["ratio"])):
        some = list(group)
        paper = next(row for row in some if row["plan"] == "paper")
        for row in some:
            ratios = [f"{paper[key] / row[key]:,.0f}" for key in ("n", "N")]
            found.append(
                [
                    f"{row['alpha']:g}",
                    f"{row['ratio']:g}",
                    row["plan"],
                    f"{row['n']:,}",
                    ratios[0],
                    f"{row['N']:,}",
                    ratios[1],
                    f"{row['rounds']:,}",
                    f"{row['draws']:,}",
                    f"{row['learner_epsilon']:g}",
                    f"{row['error']:g}",
                ]
            )
    return found


def run_promised() -> None:
    """A private run of all rounds that its plan asks for, on as many records."""
    rng, share = np.random.default_rng(0), 0.75
    chi2 = chi2_finite([0.5, 0.5], [share, 1 - share])
    model = SubsampleTestReweigh(
        LEARNER, alpha=0.1, chi2=chi2, epsilon=1.0, delta=1e-6, output="majority"
    )
    n = model.plan(1 << 30, agents_epsilon=1.0).n
    X = rng.integers(0, 2, (n, D), dtype=np.uint8)
    X[:, 1] = rng.random(n) < share
    people = rng.integers(0, 2, (100_000, D), dtype=np.uint8)
    truth = people[:, 1] & people[:, 2]
    start = time.perf_counter()
    result = model.fit(X, X[:, 1] & X[:, 2], Agents(people, truth, epsilon=1.0)).result_
    seconds = time.perf_counter() - start
    error = float(np.mean(result.predict(people) != truth))
    print(f"chi2 = {chi2:.3f}, n = {n:,}: {seconds:.0f} s, true error {error:.4f}\n{result}")


def rival_row(d: int, plans: list[dict[str, Any]]) -> dict[str, Any]:
    """Votes of agents alone over all conjunctions of two of d features."""
    hypotheses, rng = Conjunctions(d, SIZE), np.random.default_rng(0)
    wanted = (0.1, 1.35, "geometric")
    (same,) = [r["N"] for r in plans if (r["alpha"], r["ratio"], r["plan"]) == wanted]
    errors = []
    for _ in range(VOTES):
        X = rng.integers(0, 2, (same, d), dtype=np.uint8)
        voted = learn_by_votes(hypotheses, Agents(X, X[:, 0] & X[:, 1], epsilon=1.0))
        fresh = rng.integers(0, 2, (20_000, d), dtype=np.uint8)
        errors.append(float(np.mean(voted.predict(fresh) != (fresh[:, 0] & fresh[:, 1]))))
    needed = votes_needed(len(hypotheses), alpha=0.1, beta=0.05, epsilon=1.0)
    return {"size": len(hypotheses), "needed": needed, "N": same, "error": fmean(errors)}


def rival_table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Header and rows."""
    header = ["hypotheses", "agents alone need", "our plan's N", "error of agents alone with it"]
    return [header] + [
        [f"{row['size']:,}", f"{row['needed']:,}", f"{row['N']:,}", f"{row['error']:.3f}"]
        for row in rows
    ]


def run_rows(n: int) -> list[dict[str, Any]]:
    """Whole runs on one and two threads, and rounds of the reference with the same plan."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n, D), dtype=np.uint8)
    y = X[:, 1] & X[:, 2] ^ (rng.random(n) < 0.2)
    people = rng.integers(0, 2, (100_000, D), dtype=np.uint8)
    rows = []
    for threads in (1, 2):
        os.environ["HDP_FAST_NUM_THREADS"] = str(threads)
        agents = Agents(people, people[:, 1] & people[:, 2], epsilon=1.0)
        model = SubsampleTestReweigh(
            LEARNER, **PUBLIC, rounds=ROUNDS, schedule="final", output="majority"
        )
        start = time.perf_counter()
        model.plan(n, agents_epsilon=1.0)
        planned = time.perf_counter()
        made = model.fit(X, y, agents).plan_
        ended = time.perf_counter()
        each = (ended - planned - (planned - start)) / ROUNDS
        rows.append({"n": n, "threads": threads, "draws": made.draws, "round": each})
        rows[-1] |= {"run": ended - planned, "plan": planned - start}
    twin = reference_round(X, y.astype(np.uint8), made)
    return [{**row, "numpy": twin} for row in rows]


def reference_round(X: Any, y: Any, made: Any) -> float:
    """Seconds of one round in numpy."""
    found = list(LEARNER.hypotheses)
    literals = [list(zip(each["features"], each["values"], strict=True)) for each in found]
    start = time.perf_counter()
    reference.run(
        X,
        y,
        literals,
        kappa=made.kappa,
        eta=made.eta,
        draws=made.draws,
        epsilon=made.learner_epsilon,
        rounds=REFERENCE_ROUNDS,
        rng=np.random.default_rng(1),
    )
    return (time.perf_counter() - start) / REFERENCE_ROUNDS


def run_table(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Header and rows."""
    header = [
        "n",
        "threads",
        "draws a round",
        "run, s",
        "of it plan",
        "ms a round",
        "numpy",
        "ratio",
    ]
    return [header] + [
        [
            f"{row['n']:,}",
            str(row["threads"]),
            f"{row['draws']:,}",
            f"{row['run']:.2f}",
            f"{row['plan']:.2f}",
            f"{1e3 * row['round']:.1f}",
            f"{1e3 * row['numpy']:.0f}",
            f"{row['numpy'] / row['round']:.1f}",
        ]
        for row in rows
    ]


if __name__ == "__main__":
    main()
