"""Plans of Subsample-Test-Reweigh beside the paper's, agents alone, and whole runs beside numpy.

Run `python benches/bench_transfer.py`: about a minute and 1 GB of memory; `--largest` goes up to
10,000,000 records and 4 GB, and runs one plan from chi2 to its end, with the records and agents
that it asks for: three minutes more. `-k plans` prints the plans alone.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from _harness import Race, forget_plans, run_file
from bench_score import pack_columns, pair_errors, pair_literals
from bench_weights import draw_in_order

from hdp_fast.learners import Conjunctions, ExponentialLearner
from hdp_fast.local import Agents, learn_by_votes, votes_needed
from hdp_fast.reference import score
from hdp_fast.reference.weights import project_by_partition
from hdp_fast.transfer import SubsampleTestReweigh, chi2_finite, plan_rounds

D, SIZE = 64, 2
LEARNER = ExponentialLearner(Conjunctions(D, SIZE), epsilon=1.0)
PUBLIC = {"alpha": 0.05, "kappa": 0.2, "eta": 0.3, "epsilon": 1.0, "delta": 1e-6}
# numpy takes seconds a round.
ROUNDS, NUMPY_ROUNDS = 20, 2
# Repetitions of the agents' vote.
VOTES = 10
TITLE = (
    f"Plans for {len(LEARNER.hypotheses):,} conjunctions, epsilon = 1, delta = 1e-6 for the "
    "curator's records,\nepsilon = 1 for agents, beta = .05; the paper's are Algorithm 2's"
)
RIVALS = (
    "Agents alone, each asked about one conjunction: how many an excess error of alpha needs,\n"
    "and what the agents of our plan (alpha = .1, chi2 + 1 = 1.35, geometric) come to"
)


def bench_plans(table: Callable[..., None], tiny: bool) -> None:
    """Sizes of plans, and of agents alone."""
    goals = [(0.1, 0.35)] if tiny else list(itertools.product((0.05, 0.1), (0.35, 2.0)))
    plans = [row for goal in goals for row in plan_rows(*goal)]
    table(TITLE, plan_table(plans))
    table(RIVALS, rival_table([rival_row(d, plans) for d in ((2,) if tiny else (2, 8, 24, 64))]))


def plan_rows(alpha: float, chi2: float) -> list[dict[str, Any]]:
    """The paper's plan and ours, one row for each schedule."""
    rows = []
    for schedule in ("every", "geometric", "final"):
        start = time.perf_counter()
        found = plan_rounds(
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


@pytest.mark.usefixtures("largest")
def bench_promised(table: Callable[..., None]) -> None:
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
    row = [f"{chi2:.3f}", f"{n:,}", f"{seconds:.0f}", f"{error:.4f}"]
    table(f"a run that a plan promises: {result}", [["chi2", "n", "seconds", "true error"], row])


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


@pytest.mark.sizes("n", (10_000, 100_000, 1_000_000), largest=(10_000_000,))
def bench_run(race: Race, n: int) -> None:
    """A private run of twenty rounds, planned and whole; numpy: floats, no privacy, no agents."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (n, D), dtype=np.uint8)
    y = X[:, 1] & X[:, 2] ^ (rng.random(n) < 0.2)
    people = rng.integers(0, 2, (100_000, D), dtype=np.uint8)
    truth = people[:, 1] & people[:, 2]

    def ours() -> Any:
        forget_plans()
        return model().fit(X, y, Agents(people, truth, epsilon=1.0)).plan_

    made = ours()
    race.ours(ours, draws=made.draws)
    labels, rounds = y.astype(np.uint8), NUMPY_ROUNDS
    for name, shown in ("Gram matrices", False), ("64 records a word", True):
        if not shown or hasattr(np, "bitwise_count"):
            race.numpy(
                name,
                lambda shown=shown: run_rounds(X, labels, made, rounds, shown),
                share=ROUNDS / rounds,
            )
    race.run(ROUNDS, "round")


@pytest.mark.parametrize("planned", ["for a million records", "for a promise"])
def bench_planning(race: Race, tiny: bool, planned: str) -> None:
    """A plan for records that are there, and one that says how many an error needs."""
    if tiny and planned == "for a promise":
        pytest.skip("as in bench_plans")

    def plan() -> None:
        forget_plans()
        if planned == "for a promise":
            promise = {"alpha": 0.1, "chi2": 0.35, "agents_epsilon": 1.0}
            plan_rounds(LEARNER, **promise, epsilon=1.0, delta=1e-6, schedule="final")
        else:
            model().plan(1_000_000, agents_epsilon=1.0)

    race.ours(plan, threads=(1,))
    race.run()


def model() -> SubsampleTestReweigh:
    """An estimator that has planned nothing yet."""
    return SubsampleTestReweigh(
        LEARNER, **PUBLIC, rounds=ROUNDS, schedule="final", output="majority"
    )


def run_rounds(X: Any, y: Any, made: Any, rounds: int, by_words: bool) -> list[int]:
    """Rounds in numpy: projection by selection, draws in order, errors by products or by words."""
    rng, columns = np.random.default_rng(1), score.columns(X)
    conjunctions, rows = pair_literals(D), np.packbits(X, axis=1, bitorder="little")
    w, factors = np.ones(len(y)), np.exp(made.eta * np.array([-1.0, 0.0]))
    chosen = []
    for _ in range(rounds):
        some = draw_in_order(project_by_partition(w, made.kappa), made.draws, rng)
        if by_words:
            features, labels = pack_columns(rows[some]), score.packed(y[some])
            errors: Any = score.packed_conjunction_errors(
                features, labels, made.draws, conjunctions
            )
        else:
            errors = pair_errors(X[some], y[some])
        noisy = -made.learner_epsilon / 2 * np.array(errors) + rng.gumbel(size=len(conjunctions))
        best = int(noisy.argmax())
        w *= factors[(predict(columns, conjunctions[best]) != y).view(np.uint8)]
        chosen.append(best)
    return chosen


def predict(columns: Any, literals: score.Literals) -> Any:
    """The predictions of a conjunction on all records."""
    said = np.ones(columns.shape[1], np.uint8)
    for feature, wanted in literals:
        said &= columns[feature] if wanted else columns[feature] ^ 1
    return said


if __name__ == "__main__":
    run_file(__file__)
