"""Private labels against their rivals, on real data: answers at equal epsilon and equal accuracy.

Private records are split among k members, ridge regressions, whose votes label a public pool; a
logistic regression learns from the answers and is measured on a test set. The five problems are in
_label_problems.py. Votes are taken once for each random split, and every mechanism answers from the
same counts, at delta = 1e-6 for one replaced record:

ours, hazard table      stability.HazardTable: the winner, or nothing where the vote is close
ours, vote table        stability.VoteTable, asked one to three times about a point, with several
                        classes bit by bit of a label's number; nothing where answers differ
ours, Gaussian vote     stability.GaussianVote: exact noise on all counts, and nothing where the
                        noisy two largest are close; asked once
PATE, Laplace           the largest count after Laplace noise (Papernot et al. 2017)
PATE, Confident-GNMax   Gaussian noise, after a noisy check whether the vote is clear or without
                        one (Papernot et al. 2018); costs bounded whatever the votes are
PATE, data-dependent    the same, its costs bounded for these votes: NOT private, since epsilon and
                        the end tell about the votes. An upper limit of what PATE could claim
paper's Algorithm 4     printed constants, exact distance (Bassily, Thakkar and Thakurta 2018)
DP logistic regression  PrivateSGD on the private records, one model a label, no pool
ours, statistics        labels.StatisticsLabeler: one release of the records' sums, and a model
                        solved with the pool; an answer where the posterior is at least a half
DP-SGD, softmax         PrivateSGD on the private records, all labels in one budget
ours, auto              labels.StatisticsLabeler(population="tested"), which pays for a comparison
                        of pool and records, and where they differ takes noisy gradients

"At equal accuracy": the most answers that a mechanism gives, in the mean, of which at least the
share of the plurality of votes less 0.01 is right. Every mechanism, ours too, gets the best of its
settings (grids below) in hindsight, which looks at true labels and is not private. The final model
is the better one of two: learned at that setting, and at the one with most answers times their
squared advantage over guessing, with fresh random bits. The last three have no settings: they run
once, at the package's defaults, and answer at whatever accuracy comes. Not private, for comparison:
plurality on the whole pool, models of the pool's true labels and of the private records, the most
frequent class.

The data are too small for what is promised in the worst case: the second table of each problem says
how many members `stability.plan` and the paper want, for all but T - 1 of the queries rightly
answered with probability 0.95 where each member is right with probability 3/4, and what the same
table of coins did with the members that there are. Privacy is promised, accuracy is measured.
Members, features and grids were chosen by hand on other splits than the table's; epsilon covers
neither that nor the choice in hindsight.

What it shows: ours answers more than every mechanism of PATE's papers, but for a pool that is used
up and for digits at an epsilon of 0.5, where either answers three. With two classes and 800 or
1,000 members that is 1.7 to 2.4 times as many as Confident-GNMax at an epsilon of 0.5 and 1, with
ten classes and 100 or 250 members, right half of the time, 1.1 to 1.7 times. There it is the
Gaussian vote that does it: a hazard table's answers are right far more often than is asked for,
which it can't trade for more of them, and bit by bit a label costs four queries. What PATE's costs
would be at these very votes, which is not private, is ahead on digits at 4 and close elsewhere.
Algorithm 4 answers next to nothing. Where labels are about linear in public features, one release
of statistics is ahead of everything else, with ten classes by far, unless the pool is of another
domain,
as for sentiment: there `auto` finds that out and takes gradients.

Run `python benches/papers/stability_labels.py`: about ten minutes on one core, and a few minutes
for `--rows linear`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from _label_linear import linear_rows
from _label_problems import PROBLEMS, Floats, Integers, Problem, Split
from _label_settings import DELTA, OURS, Ours, settings
from _pate import Ballot
from _report import accept_seeds, make_parser, print_results, select_present, write_figure
from census_logistic import Remembering
from matplotlib.figure import Figure

from hdp_fast import stability

EPSILONS, LOSS = (0.5, 1.0, 2.0, 4.0), 0.01
DESCENTS = ((100, 500, 5.0), (1_000, 1_000, 20.0))


class Tally(NamedTuple):
    """What came of a setting on one split."""

    asked: int
    answered: int
    right: int


def count_answers(answers: Any, truth: Integers) -> Tally:
    is_label = answers >= 0
    right = int(np.count_nonzero(is_label & (answers == truth[: len(answers)])))
    return Tally(len(answers), int(np.count_nonzero(is_label)), right)


def accuracy(tallies: Iterable[Tally]) -> float:
    _, answered, right = np.sum(list(tallies), axis=0)
    return float(right / answered) if answered else 0.0


def answered(tallies: Iterable[Tally]) -> float:
    return float(np.mean([tally.answered for tally in tallies]))


def worth(tallies: list[Tally], classes: int) -> float:
    """Answers times their squared advantage over guessing: what noisy labels are worth."""
    advantage = (classes * accuracy(tallies) - 1) / (classes - 1)
    return answered(tallies) * max(advantage, 0) ** 2


@dataclass(frozen=True)
class Repetition:
    """A split and its votes."""

    split: Split
    ballot: Ballot
    number: int

    def generator(self) -> np.random.Generator:
        """The same one at every call, so that all mechanisms meet the same noise."""
        return np.random.default_rng(self.number)

    def tallies(self, mechanisms: dict[str, list[Any]]) -> dict[Any, Tally]:
        """What came of each setting of each mechanism."""
        rng, truth = self.generator(), self.ballot.truth
        return {
            setting: count_answers(setting.answers(self.ballot, rng), truth)
            for choices in mechanisms.values()
            for setting in choices
        }

    def final(self, answers: Any) -> float:
        """Accuracy on the test set of what is learned from the answers."""
        labeled = np.flatnonzero(answers >= 0)
        return final_accuracy(self.split.pool[labeled], answers[labeled], self.split)


def make_repetition(problem: Problem, records: Any, number: int) -> Repetition:
    split = problem.split(records, np.random.default_rng(number))
    votes = votes_of(problem, split)
    counts = stability.count_votes(votes, problem.classes).astype(np.int64)
    return Repetition(split, Ballot(counts, split.pool_y), number)


def votes_of(problem: Problem, split: Split) -> Any:
    """uint8 (k, m); row i is in chunk i mod k, as PrivateLabeler has it."""
    learner, k = problem.learner(), problem.members
    votes = np.empty((k, len(split.pool)), np.uint8)
    for chunk in range(k):
        votes[chunk] = learner(split.X[chunk::k], split.y[chunk::k])(split.pool)
    return votes


def final_accuracy(X: Floats, y: Integers, split: Split) -> float:
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(y)) < 2:
        constant = y[0] if len(y) else 0
        return float((split.test_y == constant).mean())
    model = LogisticRegression(C=10, max_iter=500).fit(X, y)
    return float(model.score(split.test, split.test_y))


def descent_accuracy(
    split: Split, classes: int, epsilon: float, descent: tuple[int, int, float], rng: Any
) -> float:
    """Accuracy of DP logistic regression, one model for each of several classes."""
    steps, batch, radius = descent
    models = 1 if classes == 2 else classes
    learner = Remembering(
        loss="logistic",
        steps=steps,
        batch_size=batch,
        radius=radius,
        delta=DELTA,
        epsilon=math.inf,
    )
    learner = learner.calibrate(epsilon=epsilon, n=len(split.y), rounds=models)
    labels = [split.y] if models == 1 else [split.y == label for label in range(classes)]
    scores = np.array(
        [
            split.test @ learner.learn(split.X, y.astype(np.uint8), random_state=rng).weights
            for y in labels
        ]
    )
    predictions = scores[0] > 0 if models == 1 else scores.argmax(axis=0)
    return float((predictions == split.test_y).mean())


def spread(values: Iterable[float]) -> list[float]:
    numbers = list(values)
    return [float(np.mean(numbers)), float(np.std(numbers))]


def row(name: str, epsilon: float | None, **cells: Any) -> dict[str, Any]:
    return {"row": name, "epsilon": epsilon, **cells}


def repeat_linear(problem: Problem, numbers: range, epsilons: tuple[float, ...]) -> dict[str, Any]:
    """The rows of linear models alone, which need no votes."""
    start, records = time.perf_counter(), problem.read()
    splits = [problem.split(records, np.random.default_rng(number)) for number in numbers]
    return {
        "name": problem.name,
        "problem": problem.title,
        "records": len(splits[0].y),
        "pool": len(splits[0].pool_y),
        "classes": problem.classes,
        "repetitions": len(numbers),
        "rows": linear_rows(problem, splits, epsilons),
        "seconds": time.perf_counter() - start,
    }


def repeat(problem: Problem, numbers: range, epsilons: tuple[float, ...]) -> dict[str, Any]:
    start, records = time.perf_counter(), problem.read()
    runs = [make_repetition(problem, records, number) for number in numbers]
    pool = len(runs[0].ballot.truth)
    constants = not_private(runs)
    level = constants[0]["accuracy"][0] - LOSS
    rows = []
    for epsilon in epsilons:
        mechanisms = settings(epsilon, pool, problem.classes, problem.members)
        rows += private(problem, runs, mechanisms, epsilon, level)
        rows.append(regression(problem, runs, epsilon))
    rows += linear_rows(problem, (run.split for run in runs), epsilons)
    return {
        "name": problem.name,
        "problem": problem.title,
        "records": len(runs[0].split.y),
        "pool": pool,
        "classes": problem.classes,
        "members": problem.members,
        "member_accuracy": spread(right_votes(run.ballot) for run in runs),
        "level": level,
        "repetitions": len(numbers),
        "rows": constants + rows,
        "plans": plans(problem, runs, epsilons),
        "seconds": time.perf_counter() - start,
    }


def right_votes(ballot: Ballot) -> float:
    """The share of the votes that are right: the mean accuracy of members on the pool."""
    right = ballot.counts[np.arange(len(ballot.truth)), ballot.truth]
    return float(right.mean() / ballot.members)


def not_private(runs: list[Repetition]) -> list[dict[str, Any]]:
    """The plurality of votes and models without any privacy, and the most frequent class."""
    winners = [np.asarray(stability.plurality(run.ballot.counts)) for run in runs]
    right = [float((w == run.ballot.truth).mean()) for w, run in zip(winners, runs, strict=True)]
    finals = {
        "plurality of votes": [run.final(w) for w, run in zip(winners, runs, strict=True)],
        "true labels of the pool": [run.final(run.ballot.truth) for run in runs],
        "private records": [final_accuracy(run.split.X, run.split.y, run.split) for run in runs],
        "most frequent class": [
            np.bincount(r.split.test_y).max() / len(r.split.test_y) for r in runs
        ],
    }
    rows = [
        row(f"{name}, not private", None, final=spread(final)) for name, final in finals.items()
    ]
    rows[0] |= {"answered": [float(len(winners[0])), 0.0], "accuracy": spread(right)}
    return rows


def private(
    problem: Problem,
    runs: list[Repetition],
    mechanisms: dict[str, list[Any]],
    epsilon: float,
    level: float,
) -> list[dict[str, Any]]:
    tallies = [run.tallies(mechanisms) for run in runs]
    rows = []
    for name, choices in mechanisms.items():
        results = {setting: [tally[setting] for tally in tallies] for setting in choices}
        rows.append(row(name, epsilon, **best(problem, runs, results, level)))
    ours = max(cells["answered"][0] for cells in rows if cells["row"] in OURS)
    for cells in rows:
        cells["ahead of ours"] = cells["row"] not in OURS and cells["answered"][0] > ours
    return rows


def best(
    problem: Problem, runs: list[Repetition], results: dict[Any, list[Tally]], level: float
) -> dict[str, Any]:
    """The most answers at equal accuracy, and the better final model of two settings."""
    good = [setting for setting, tallies in results.items() if accuracy(tallies) >= level]
    most = max(good, key=lambda setting: answered(results[setting]), default=None)
    worthy = max(results, key=lambda setting: worth(results[setting], problem.classes))
    finals = {
        setting: spread(
            run.final(setting.answers(run.ballot, np.random.default_rng((run.number, 1))))
            for run in runs
        )
        for setting in dict.fromkeys((most, worthy))
        if setting is not None
    }
    final = max(finals, key=lambda setting: finals[setting][0])
    tallies = [Tally(0, 0, 0)] * len(runs) if most is None else results[most]
    return {
        "asked": float(np.mean([tally.asked for tally in tallies])),
        "answered": spread(tally.answered for tally in tallies),
        "accuracy": [accuracy(tallies), deviation_of_accuracy(tallies)],
        "setting": str(most),
        "final": finals[final],
        "final from": [answered(results[final]), accuracy(results[final])],
        "final setting": str(final),
    }


def deviation_of_accuracy(tallies: list[Tally]) -> float:
    accuracies = [tally.right / tally.answered for tally in tallies if tally.answered]
    return float(np.std(accuracies)) if accuracies else 0.0


def regression(problem: Problem, runs: list[Repetition], epsilon: float) -> dict[str, Any]:
    finals = [
        spread(
            descent_accuracy(run.split, problem.classes, epsilon, descent, run.generator())
            for run in runs
        )
        for descent in DESCENTS
    ]
    return row("DP logistic regression", epsilon, final=max(finals))


def plans(
    problem: Problem, runs: list[Repetition], epsilons: tuple[float, ...]
) -> list[dict[str, Any]]:
    return [plan(problem, runs, epsilon) for epsilon in epsilons]


def plan(problem: Problem, runs: list[Repetition], epsilon: float) -> dict[str, Any]:
    """Members that the worst case wants, and what the same table does with those that there are."""
    max_unstable, queries = 20, min(1_000, len(runs[0].ballot.truth))
    goal = {"epsilon": epsilon, "delta": DELTA, "beta": 0.05}
    planned = stability.plan(max_unstable, queries, **goal, labels=problem.classes)
    table = Ours(planned.table)
    tallies = [
        count_answers(table.answers(run.ballot, run.generator()), run.ballot.truth) for run in runs
    ]
    return {
        "epsilon": epsilon,
        "max_unstable": max_unstable,
        "queries": queries,
        "table": type(planned.table).__name__,
        "k": planned.k,
        "k_paper": planned.k_paper,
        "answered": spread(tally.answered for tally in tallies),
        "accuracy": [accuracy(tallies), deviation_of_accuracy(tallies)],
    }


def table(result: dict[str, Any]) -> str:
    lines = [
        f"{result['problem']}; {result['records']:,} private records, {result['members']:,} "
        f"members, right on {result['member_accuracy'][0]:.3f} of {result['pool']:,} queries; "
        f"{result['repetitions']} repetitions, {result['seconds']:.0f} s",
        "",
        f"| | epsilon | answered at accuracy {result['level']:.3f} | of asked | accuracy | "
        "final model | from answers, accuracy |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for cells in sorted(result["rows"], key=lambda cells: cells["epsilon"] or 0):
        lines.append(line(cells))
    lines += ["", "* answers more than the better one of ours.", "", *plan_lines(result)]
    return "\n".join(lines)


def linear_table(result: dict[str, Any]) -> str:
    lines = [
        f"{result['problem']}; {result['records']:,} private records, {result['pool']:,} queries; "
        f"{result['repetitions']} repetitions, {result['seconds']:.0f} s",
        "",
        "| | epsilon | answered | of asked | accuracy | final model | from answers, accuracy |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    return "\n".join([*lines, *(line(cells) for cells in result["rows"])])


def line(row: dict[str, Any]) -> str:
    epsilon = "" if row["epsilon"] is None else f"{row['epsilon']:g}"
    cells = [row["row"] + ("*" if row.get("ahead of ours") else ""), epsilon]
    if "answered" in row:
        asked = f"{row['asked']:,.0f}" if "asked" in row else ""
        cells += [pair(row["answered"], ",.0f"), asked]
        cells.append(pair(row["accuracy"], ".3f") if row["answered"][0] else "")
    else:
        cells += ["", "", ""]
    cells.append(pair(row["final"], ".3f"))
    source = row.get("final from")
    cells.append(f"{source[0]:,.0f}, {source[1]:.3f}" if source else "")
    return f"| {' | '.join(cells)} |"


def pair(values: list[float], form: str) -> str:
    return f"{values[0]:{form}} ± {values[1]:{form}}"


def plan_lines(result: dict[str, Any]) -> list[str]:
    """Planned: with probability 0.95 fewer than max_unstable answers are missing or wrong."""
    lines = [
        "| epsilon | queries | planned table | members planned | the paper's | used | "
        "answered, planned | measured | accuracy, planned | measured |",
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for plan in result["plans"]:
        hazard = plan["table"] == "HazardTable"
        least = plan["queries"] - (plan["max_unstable"] - 1 if hazard else 0)
        cells = [
            f"{plan['epsilon']:g}",
            f"{plan['queries']:,}",
            plan["table"] + (f", T = {plan['max_unstable']}" if hazard else ""),
            *(f"{k:,}" for k in (plan["k"], plan["k_paper"], result["members"])),
            f"{least:,}",
            pair(plan["answered"], ",.0f"),
            "1",
            pair(plan["accuracy"], ".3f"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def figure(results: list[dict[str, Any]]) -> Figure:
    """Answers at equal accuracy above, accuracy of the final model below; dotted: not private."""
    drawn = Figure(figsize=(4.5 * len(results), 8), layout="constrained")
    panels = drawn.subplots(2, len(results), squeeze=False)
    for result, (above, below) in zip(results, panels.T, strict=True):
        names = dict.fromkeys(cells["row"] for cells in result["rows"])
        for color, name in enumerate(names):
            some = [cells for cells in result["rows"] if cells["row"] == name]
            if some[0]["epsilon"] is None:
                below.axhline(some[0]["final"][0], linestyle=":", color="gray", linewidth=1)
                below.annotate(name, (EPSILONS[0], some[0]["final"][0]), fontsize="xx-small")
                continue
            style = {"label": name, "color": f"C{color - 4}", "marker": "o", "capsize": 2}
            epsilons = [cells["epsilon"] for cells in some]
            below.errorbar(
                epsilons, *zip(*(cells["final"] for cells in some), strict=True), **style
            )
            if "answered" in some[0]:
                bars = zip(*(cells["answered"] for cells in some), strict=True)
                above.errorbar(epsilons, *bars, **style)
        above.set(
            title=f"{result['name']}: answers at equal accuracy", yscale="symlog", ylim=(0, None)
        )
        below.set(title=f"{result['name']}: accuracy of the final model", xlabel="epsilon")
        for panel in (above, below):
            panel.set_xscale("log")
            panel.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            panel.minorticks_off()
    panels[1, 0].legend(fontsize="x-small")
    return drawn


def main() -> None:
    parser = make_parser(
        __doc__, quick="digits, one repetition, epsilon = 1", repetitions=10, printing=True
    )
    parser.add_argument("--only", choices=[problem.name for problem in PROBLEMS])
    rows = "all, or those of linear models, which need no votes"
    parser.add_argument("--rows", choices=("all", "linear"), default="all", help=rows)
    first = "number of the first random split; the defaults were chosen on splits 0 to 9"
    parser.add_argument("--first", type=int, default=0, help=first)
    arguments = parser.parse_args()
    only = arguments.only or ("digits" if arguments.quick else None)
    repetitions, epsilons = (1, (1.0,)) if arguments.quick else (arguments.repetitions, EPSILONS)
    numbers = range(arguments.first, arguments.first + repetitions)
    accept_seeds()
    is_linear = arguments.rows == "linear"
    measure = repeat_linear if is_linear else repeat
    results = print_results(
        arguments,
        select_present(PROBLEMS, only),
        lambda problem: measure(problem, numbers, epsilons),
        linear_table if is_linear else table,
    )
    if results and not is_linear:
        write_figure(arguments.output / "stability_labels.png", figure(results))


if __name__ == "__main__":
    main()
