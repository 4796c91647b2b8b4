"""Two rules: where Subsample-Test-Reweigh wins, and how far that reaches.

64 bits; x0 XOR x1 says to which of two groups a person belongs. The first group's label is x3 AND
x4, the second's x10 AND x17. Every single column has the same law on both sides, so that no look at
columns tells source and target apart. Most of the source belongs to the first group, 95 % of the
target to the second. The class, 8,193 conjunctions of at most two bits, holds the right rule of
each group, and none that is right for the source as a whole.

reweighed      transfer.SubsampleTestReweigh(learner, epsilon=, delta=1e-6), no other setting:
kappa,
               eta, rounds and tests follow the package's public rules
tested only    the same with equal weights in every round (eta = 1e-9)
source alone   permute-and-flip on all records at once
calibrated     the hypothesis of the source alone, whose two answers get probabilities from the
               agents (transfer.calibrate)
agents alone   votes of the agents on all hypotheses (local.learn_by_votes)
best of class  least error of a conjunction on the judging records, not private

Every table changes one number of n = 5,000 records, N = 24,000 agents, minority .2 and epsilon = 1
on both sides. Errors are means over 10 repetitions, judged on 20,000 other people of the target,
with the largest in parentheses; agents alone, which are slow, are run in 4 of them, once for all
tables that do not change them.

`--hand` compares the rules with 36 settings by hand, on this population and on the loyalty program
of docs/guides/panel_and_survey.md. The rules were tried out on both, on other samples.

`--real` looks for the same in real tables; see `_two_rules_real.py`. Without its file a problem is
left out.

Run `python benches/papers/two_rules.py`: three minutes; `--hand` and `--real` take as long. `--csv`
prints the numbers of the picture.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from _report import accept_seeds, make_parser, print_json, select_present, write_json
from _two_rules_real import PROBLEMS, measure_problem, show_problems
from numpy.typing import NDArray

from hdp_fast import learners, local, transfer

D, DELTA, TARGET_SHARE, JUDGES = 64, 1e-6, 0.95, 20_000
CLASS = learners.Conjunctions(D, 2)

Bits = NDArray[np.uint8]
Table = tuple[Bits, Bits]


@dataclass(frozen=True)
class Setting:
    """One population and one privacy: n records, N agents, and the settings that are fixed."""

    n: int = 5_000
    N: int = 24_000
    minority: float = 0.2
    epsilon: float = 1.0
    kappa: float | str = "auto"


@dataclass(frozen=True)
class People:
    """The tables of one repetition."""

    source: Table
    agents: Table
    judges: Table


BASE = Setting()
GRID: dict[str, tuple[Any, ...]] = {
    "n": (1_000, 2_000, 5_000, 20_000, 100_000),
    "N": (1_500, 6_000, 24_000, 100_000),
    "minority": (0.4, 0.3, 0.2, 0.1, 0.05),
    "epsilon": (0.25, 0.5, 1.0, 2.0, 4.0),
    "kappa": ("auto", 0.03, 0.1, 0.2, 0.4, 0.8),
}


def sample(rng: np.random.Generator, n: int, minority: float) -> Table:
    """So many people, of whom this share follows the second rule."""
    X = (rng.random((n, D)) < 0.6).astype(np.uint8)
    group = rng.random(n) < minority
    X[:, 0] = rng.random(n) < 0.5
    X[:, 1] = X[:, 0] ^ group
    return X, np.where(group, X[:, 10] & X[:, 17], X[:, 3] & X[:, 4]).astype(np.uint8)


def sample_people(setting: Setting, seed: int) -> People:
    """Source, agents and judges of one repetition."""
    return People(
        sample(np.random.default_rng([20, seed]), setting.n, setting.minority),
        sample_agents(setting.N, seed),
        sample(np.random.default_rng([22, seed]), JUDGES, TARGET_SHARE),
    )


def sample_agents(N: int, seed: int) -> Table:
    """The agents of one repetition, whatever the source is."""
    return sample(np.random.default_rng([21, seed]), N, TARGET_SHARE)


def reweigh(setting: Setting, people: People, seed: int, **settings: Any) -> Any:
    """The model that the package makes of source and agents without any other setting."""
    learner = learners.ExponentialLearner(CLASS, epsilon=1.0)
    model = transfer.SubsampleTestReweigh(
        learner, epsilon=setting.epsilon, delta=DELTA, kappa=setting.kappa, **settings
    )
    agents = local.Agents(*people.agents, epsilon=setting.epsilon)
    return model.fit(*people.source, agents, random_state=seed)


def test_only(setting: Setting, people: People, seed: int) -> Any:
    """The same without weights: the agents choose among rounds that are all alike."""
    return reweigh(setting, people, seed, eta=1e-9)


def use_source(setting: Setting, people: People, seed: int) -> Any:
    """The source alone, with all of epsilon."""
    learner = learners.ExponentialLearner(
        CLASS, mechanism="permute_and_flip", epsilon=setting.epsilon
    )
    return learner.learn(*people.source, random_state=seed)


def calibrate_source(setting: Setting, people: People, seed: int) -> Any:
    """The source's hypothesis, for each of whose answers the agents say what is likelier."""
    alone = use_source(setting, people, seed)
    agents = local.Agents(*people.agents, epsilon=setting.epsilon)

    def score(X: NDArray[Any]) -> NDArray[np.float64]:
        return 4.0 * alone.predict(X) - 2

    return transfer.calibrate(score, agents, thresholds=(-1.0, 1.0), random_state=seed)


@cache
def use_agents(N: int, epsilon: float, seed: int) -> Any:
    """The agents alone, each of whom votes on one hypothesis."""
    agents = local.Agents(*sample_agents(N, seed), epsilon=epsilon)
    return local.learn_by_votes(CLASS, agents, random_state=seed)


METHODS: dict[str, Callable[[Setting, People, int], Any]] = {
    "reweighed": reweigh,
    "tested only": test_only,
    "source alone": use_source,
    "calibrated": calibrate_source,
}
AGENTS, BEST = "agents alone", "best of class"
SLOW_REPETITIONS = 4


def sample_loyalty(rng: np.random.Generator, n: int, share: float) -> Table:
    """Members, of whom there is this share, buy at 50 or older, others if they own a home."""
    member, owner = rng.random(n) < share, rng.random(n) < 0.6
    age, region = rng.integers(18, 90, n), rng.integers(0, 3, n)
    older = [age >= least for least in (30, 50, 65)]
    homes = [region == each for each in range(3)]
    bits = np.column_stack([member, ~member, *older, owner, ~owner, *homes])
    return bits.astype(np.uint8), np.where(member, age >= 50, owner).astype(np.uint8)


@dataclass(frozen=True)
class Comparison:
    """A population on which the rules are compared with settings by hand."""

    title: str
    sample: Callable[[np.random.Generator, int, float], Table]
    rules: learners.Conjunctions
    n: int
    N: int
    source: float
    target: float

    def errors(self, repetitions: int, **settings: Any) -> list[float]:
        """Errors on the target with these settings; all others are automatic."""
        learner = learners.ExponentialLearner(self.rules, epsilon=1.0)
        model = transfer.SubsampleTestReweigh(learner, epsilon=1.0, delta=DELTA, **settings)
        errors = []
        for seed in range(repetitions):
            rng = np.random.default_rng([23, seed, self.n])
            source = self.sample(rng, self.n, self.source)
            agents = local.Agents(*self.sample(rng, self.N, self.target), epsilon=1.0)
            X, y = self.sample(rng, JUDGES, self.target)
            model.fit(*source, agents, random_state=seed)
            errors.append(float((model.predict(X) != y).mean()))
        return errors


MEMBERS = learners.Conjunctions(10, 2, complements=True)
COMPARISONS = [
    *(
        Comparison(f"two rules, {share:.0%} minority", sample, CLASS, n, 24_000, share, 0.95)
        for n, share in ((5_000, 0.4), (5_000, 0.2), (20_000, 0.2), (20_000, 0.1))
    ),
    *(
        Comparison("loyalty program", sample_loyalty, MEMBERS, n, 15_000, 0.2, 0.9)
        for n in (5_000, 20_000)
    ),
]
HAND = [
    {"kappa": kappa, "rounds": rounds, "eta": eta}
    for kappa in (0.03, 0.1, 0.2, 0.4)
    for rounds in (3, 5, 10)
    for eta in (0.5, 1.0, 2.0)
]


def compare(each: Comparison, repetitions: int) -> dict[str, Any]:
    """Mean errors by the rules and by each setting by hand."""
    return {
        "population": each.title,
        "n": each.n,
        "automatic": float(np.mean(each.errors(repetitions))),
        "by hand": [
            {**settings, "error": float(np.mean(each.errors(repetitions, **settings)))}
            for settings in HAND
        ],
    }


def show_comparison(rows: list[dict[str, Any]]) -> str:
    """A table of Markdown: the rules beside the best, the median and the worst by hand."""
    lines = [
        "| population | n | automatic | best by hand (kappa, rounds, eta) | median | worst |",
        "| --- | ---: | ---: | --- | ---: | ---: |",
    ]
    for row in rows:
        ranked = sorted(row["by hand"], key=lambda each: float(each["error"]))
        errors = [each["error"] for each in ranked]
        best = f"{errors[0]:.3f} ({ranked[0]['kappa']}, {ranked[0]['rounds']}, {ranked[0]['eta']})"
        cells = [row["population"], f"{row['n']:,}", f"{row['automatic']:.3f}", best]
        cells += [f"{np.median(errors):.3f}", f"{errors[-1]:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measure(setting: Setting, repetitions: int) -> dict[str, Any]:
    """Errors of all methods, one for each repetition."""
    errors: dict[str, list[float]] = {name: [] for name in (*METHODS, AGENTS, BEST)}
    plan = None
    for seed in range(repetitions):
        people = sample_people(setting, seed)
        X, y = people.judges
        for name, method in METHODS.items():
            model = method(setting, people, seed)
            errors[name].append(float((model.predict(X) != y).mean()))
            plan = model.plan_ if name == "reweighed" else plan
        # Each hypothesis needs one agent.
        if seed < SLOW_REPETITIONS and len(CLASS) <= setting.N:
            model = use_agents(setting.N, setting.epsilon, seed)
            errors[AGENTS].append(float((model.predict(X) != y).mean()))
        errors[BEST].append(float(CLASS.errors(X, y).min() / len(y)))
    assert plan is not None
    chosen = {name: getattr(plan, name) for name in ("kappa", "rounds", "added_error", "alpha")}
    return {"setting": vars(setting), "plan": chosen, "errors": errors}


def measure_table(name: str, repetitions: int) -> list[dict[str, Any]]:
    """A result for each value of one number."""
    return [measure(replace(BASE, **{name: value}), repetitions) for value in GRID[name]]


def show(name: str, rows: list[dict[str, Any]]) -> str:
    """One table of Markdown: mean and largest error."""
    first = "kappa by hand" if name == "kappa" else name
    titles = [first, "kappa", "rounds", *rows[0]["errors"]]
    lines = [f"| {' | '.join(titles)} |", "| " + " | ".join("---:" for _ in titles) + " |"]
    for row in rows:
        plan, value = row["plan"], row["setting"][name]
        cells = [f"{value:,}" if isinstance(value, int) else f"{value}"]
        cells += [f"{plan['kappa']:.3f}", str(plan["rounds"])]
        cells += [
            f"{np.mean(each):.3f} ({max(each):.3f})" if each else "too few"
            for each in row["errors"].values()
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_picture(rows: list[dict[str, Any]]) -> None:
    """Print the numbers of docs/figures/two_rules.svg."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    print("# python benches/papers/two_rules.py --csv")
    names = (*METHODS, AGENTS)
    writer.writerow(["n", *names])
    for row in rows:
        means = [f"{np.mean(row['errors'][name]):.3f}" for name in names]
        writer.writerow([row["setting"]["n"], *means])


def main() -> None:
    """Measure what was asked for, and print it."""
    accept_seeds()
    parser = make_parser(__doc__, quick="two repetitions", repetitions=10, printing=True)
    parser.add_argument("--csv", action="store_true", help="print the numbers of the picture")
    parser.add_argument("--hand", action="store_true", help="compare with settings by hand")
    parser.add_argument("--real", action="store_true", help="tables of real people")
    parser.add_argument("--only", choices=GRID, help="change this number only")
    arguments = parser.parse_args()
    repetitions = 2 if arguments.quick else arguments.repetitions
    names = ["n"] if arguments.csv else [arguments.only] if arguments.only else list(GRID)
    if arguments.hand:
        rows = [compare(each, repetitions) for each in COMPARISONS]
        print_json(rows) if arguments.json else print(show_comparison(rows))
        return
    if arguments.real:
        present = select_present(PROBLEMS, None)
        rows = [measure_problem(each, repetitions) for each in present]
        print_json(rows) if arguments.json else print(show_problems(rows))
        return
    begun = time.perf_counter()
    tables = {}
    for name in names:
        tables[name] = measure_table(name, repetitions)
        if not (arguments.csv or arguments.json):
            print(show(name, tables[name]), end="\n\n", flush=True)
    if arguments.csv:
        write_picture(tables["n"])
    elif arguments.json:
        print_json(tables)
    else:
        print(f"{time.perf_counter() - begun:.0f} s in all")
        write_json(arguments.output / "two_rules.json", tables)


if __name__ == "__main__":
    main()
