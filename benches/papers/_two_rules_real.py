"""Two rules in real tables: people with some value of a column opt in, and the column is withheld.

In each table 80 % of the source have that value, and 5 % of the target. The column is no feature,
and no one knows it but this script. A tenth of the rows is public and makes the schema; source,
agents and judges are drawn anew from the others in each repetition.

The problems were chosen in hindsight, among about a thousand triples of a table, a label and a
withheld value: seven with large gaps, not private, between the best conjunction of the source and
that of the target, and three labels that one would really predict. No private run had a part in the
choice.

The methods are those of two_rules.py, but for agents alone: thousands of them cannot vote on tens
of thousands of conjunctions of two bits, and vote on single bits instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from _report import FOLDER, missing_file
from numpy.typing import NDArray

from hdp_fast import learners, local, transfer
from hdp_fast.data import Ignore, Label, Schema, Table, read_table

EPSILON, DELTA = 1.0, 1e-6
SOURCE_SHARE, TARGET_SHARE = 0.8, 0.05
MOST_RECORDS, MOST_AGENTS, MOST_JUDGES = 20_000, 24_000, 8_000

Bits = NDArray[np.uint8]


@dataclass(frozen=True)
class Problem:
    """A table, a label to predict, and a column whose value says who opts in."""

    name: str
    file: str
    label: Label
    column: str
    opts_in: str | float
    ignored: tuple[str, ...] = ()

    def missing(self) -> str | None:
        """Return why its file cannot be read, or None."""
        return missing_file(self.file)

    @cached_property
    def table(self) -> Table:
        """All rows in a random order that is always the same."""
        table = read_table(FOLDER / self.file, public=True)
        return table.select(np.random.default_rng(7).permutation(table.rows))

    @cached_property
    def schema(self) -> Schema:
        """Features of the first tenth of the rows, without the column that is withheld."""
        public = self.table.select(np.arange(self.table.rows // 10))
        schema = Schema.from_public(public, self.label, cuts=5)
        withheld = {name: Ignore() for name in (self.column, *self.ignored)}
        return Schema(self.label, {**schema.columns, **withheld})

    @cached_property
    def people(self) -> tuple[Bits, Bits, NDArray[np.bool_]]:
        """Features, labels, and who has the value; without the public rows."""
        rest = self.table.select(np.arange(self.table.rows // 10, self.table.rows))
        column = rest.column(self.column)
        if isinstance(self.opts_in, str):
            values = np.array([text == self.opts_in for text in column.texts])
        else:
            values = column.numbers() > self.opts_in
        return self.schema.bits(rest), self.schema.labels(rest), values[column.codes]


MARRIED = Label("marital-status", positive=("Married-civ-spouse",))
SINGLE = Label("marital-status", positive=("Never-married",))
COLLEGE = Label("educational-num", above=10)
ADULT, CENSUS, K401, CPS = (
    "adult.csv.gz",
    "census_income_kdd_21cols.csv.gz",
    "k401ksubs.csv.gz",
    "lalonde_nsw_cps1.csv.gz",
)
WIFE = Label("marital_stat", positive=("married-civilian_spouse_present",))
WEIGHT, SQUARES, STUDY = ("instance_weight",), ("incsq", "agesq"), ("data_id", "treat", "source")

PROBLEMS = (
    Problem("married / single filers", CENSUS, WIFE, "tax_filer_stat", "single", WEIGHT),
    Problem(
        "married / not in family", ADULT, MARRIED, "relationship", "Not-in-family", ("fnlwgt",)
    ),
    Problem("never married / over 37", ADULT, SINGLE, "age", 37, ("fnlwgt",)),
    Problem("never married / women", ADULT, SINGLE, "gender", "Female", ("fnlwgt",)),
    Problem("college / income <= 50K", ADULT, COLLEGE, "income", "<=50K", ("fnlwgt", "education")),
    Problem("married / families of 4 or more", K401, Label("marr", above=0), "fsize", 3, SQUARES),
    Problem("married / over 31", CPS, Label("marr", above=0), "age", 31, STUDY),
    Problem(
        "income > 50K / some college",
        ADULT,
        Label("income", positive=(">50K",)),
        "education",
        "Some-college",
        ("fnlwgt", "educational-num"),
    ),
    Problem("assets > 2,000 / IRA", K401, Label("nettfa", above=2), "pira", 0, SQUARES),
    Problem("earnings > 15,962 / college", CPS, Label("re78", above=15_962.4), "educ", 12, STUDY),
)


def _draw(rng: np.random.Generator, group: NDArray[np.bool_], share: float, most: int) -> Any:
    """Rows, of whom this share is of the group: as many as there are, but at most `most`."""
    inside, outside = (rng.permutation(np.flatnonzero(part)) for part in (group, ~group))
    size = min(most, int(len(inside) / share), int(len(outside) / (1 - share)))
    few = int(share * size)
    return rng.permutation(np.concatenate([inside[:few], outside[: size - few]]))


def _sample(
    problem: Problem, seed: int
) -> tuple[tuple[Bits, Bits], tuple[Bits, Bits], tuple[Bits, Bits]]:
    """Source, agents and judges, no row in two of them."""
    X, y, group = problem.people
    rng = np.random.default_rng([24, seed])
    half = rng.random(len(y)) < 0.5
    first, second = np.flatnonzero(half), np.flatnonzero(~half)
    source = first[_draw(rng, group[first], SOURCE_SHARE, MOST_RECORDS)]
    target = second[_draw(rng, group[second], TARGET_SHARE, MOST_AGENTS + MOST_JUDGES)]
    judges, agents = np.split(target, [min(MOST_JUDGES, len(target) // 3)])
    return (X[source], y[source]), (X[agents], y[agents]), (X[judges], y[judges])


def _calibrate_linear(source: tuple[Bits, Bits], people: tuple[Bits, Bits], seed: int) -> Any:
    """A private logistic model of the source, calibrated by the agents."""
    bits, labels = source
    sgd = learners.PrivateSGD(
        # Two in three bits are 0 in nearly all rows; longer rows are shortened.
        loss="logistic",
        norm_bound=(bits.shape[1] / 3) ** 0.5,
        epsilon=EPSILON,
        delta=DELTA,
    )
    model = sgd.learn(bits.astype(np.float64), labels, random_state=seed)
    return transfer.calibrate(model, local.Agents(*people, epsilon=EPSILON), random_state=seed)


def measure_problem(problem: Problem, repetitions: int) -> dict[str, Any]:
    """Errors of all methods on the judges, one for each repetition."""
    d = len(problem.schema.names)
    rules, single = (learners.Conjunctions(d, size, complements=True) for size in (2, 1))
    errors: dict[str, list[float]] = {}
    sizes: dict[str, Any] = {}
    for seed in range(repetitions):
        source, people, (X, y) = _sample(problem, seed)

        def add(name: str, predict: Callable[[Bits], Any], X: Bits = X, y: Bits = y) -> None:
            errors.setdefault(name, []).append(float((predict(X) != y).mean()))

        learner = learners.ExponentialLearner(rules, epsilon=EPSILON)
        for name, settings in (("reweighed", {}), ("tested only", {"eta": 1e-9})):
            model = transfer.SubsampleTestReweigh(
                learner, epsilon=EPSILON, delta=DELTA, **settings
            ).fit(*source, local.Agents(*people, epsilon=EPSILON), random_state=seed)
            add(name, model.predict)
            sizes = {"n": len(source[1]), "N": len(people[1]), "kappa": model.plan_.kappa}
        alone = learners.ExponentialLearner(
            rules, mechanism="permute_and_flip", epsilon=EPSILON
        ).learn(*source, random_state=seed)
        add("source alone", alone.predict)
        agents = local.Agents(*people, epsilon=EPSILON)
        add("agents alone", local.learn_by_votes(single, agents, random_state=seed).predict)
        add("linear, calibrated", _calibrate_linear(source, people, seed).predict)
        add("best constant", lambda X, y=y: np.full(len(X), y.mean() > 0.5))
        best = rules.errors(X, y).min() / len(y)
        errors.setdefault("best of class", []).append(float(best))
    return {"problem": problem.name, "hypotheses": len(rules), **sizes, "errors": errors}


def show_problems(rows: list[dict[str, Any]]) -> str:
    """A table of Markdown."""
    names = (
        *("reweighed", "tested only", "source alone", "agents alone", "linear, calibrated"),
        *("best constant", "best of class"),
    )
    lines = [
        f"| label / who opts in | n | N | kappa | {' | '.join(names)} |",
        "| --- |" + " ---: |" * (3 + len(names)),
    ]
    for row in rows:
        cells = [row["problem"], f"{row['n']:,}", f"{row['N']:,}", f"{row['kappa']:.2f}"]
        for name in names:
            errors = row["errors"][name]
            cells.append(f"{np.mean(errors):.3f} ± {np.std(errors):.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
