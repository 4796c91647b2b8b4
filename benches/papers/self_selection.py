"""People who chose to take part, and everybody else: Subsample-Test-Reweigh on real data.

Run `python benches/papers/self_selection.py`: some minutes. In each repetition half of the target
population, drawn at random, plays the agents; error, log loss and AUC are measured on the other
half. Four problems:

lalonde     participants of a training programme -> population; earnings above $10,000 in 1978
k401        savers in a 401(k) plan -> everybody else; net financial assets above the median
investors   people with dividends or capital gains -> everybody else; income above $50,000
years       census of 1994 -> 1995, where one column is coded otherwise; income at most $50,000

The first two are Algorithm 1 with logistic regression: the source is not protected. The others are
Algorithm 2, epsilon = 1 and delta = 1e-6 for the source, epsilon = 1 for every agent, over a
finite class of conjunctions. kappa, eta and rounds are given, so that privacy is promised and the
error measured. Schemas are written by hand from the codebooks, not from the files.

Log loss needs probabilities. A logistic model has its own. A hypothesis that says 0 or 1 gets two,
the shares of label 1 where it says 0 and where it says 1; a share of votes gets four, one for each
quarter. What is private estimates them from the agents that are left, each asked one question by
randomized response; what is not counts them in the agents' half. Error and AUC come from what the
hypothesis says itself, a share of votes saying 1 above one half.

"Never reweighed" is the same run with a step size of zero, near enough: what testing or voting does
alone. "Local votes" asks each agent about one hypothesis of the class, and has no source.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from _report import FOLDER, accept_seeds, make_parser, missing_file, print_results, select_present
from numpy.typing import NDArray

from hdp_fast import learners, local, transfer
from hdp_fast.data import Category, Label, Number, Schema, Table, read_table
from hdp_fast.learners.logistic import Halfspace, LogisticLearner

EPSILON, DELTA, AGENTS_EPSILON = 1.0, 1e-6, 1.0
# A step size that leaves all weights as they are.
UNMOVED = 1e-9
# A probability of 0 that turns out wrong costs no more than this one.
FLOOR = 1e-3

Bits = NDArray[np.uint8]
Floats = NDArray[np.float64]
ScoreResult = tuple[float, float, float]


@dataclass(frozen=True)
class People:
    """Records as both kinds of learners want them."""

    bits: Bits
    floats: Floats
    y: Bits

    def part(self, rows: NDArray[Any]) -> People:
        """Some of them."""
        return People(self.bits[rows], self.floats[rows], self.y[rows])


@dataclass(frozen=True)
class Problem:
    """A source, a target, and how they are learned from.

    single and other are parameters of SubsampleTestReweigh: of a private problem for the hypothesis
    of least estimate and for a vote, else for an oracle and for agents.
    """

    name: str
    title: str
    file: str
    schema: Schema
    source: Callable[[Table], NDArray[np.bool_]]
    private: bool
    hypotheses: learners.Conjunctions
    single: dict[str, Any]
    other: dict[str, Any]

    def missing(self) -> str | None:
        """Return why its file cannot be read, or None."""
        return missing_file(self.file)

    def read(self) -> tuple[People, People]:
        """Source and target."""
        table = read_table(FOLDER / self.file)
        features = (self.schema.bits, self.schema.floats, self.schema.labels)
        people, chosen = People(*(each(table) for each in features)), self.source(table)
        return people.part(chosen), people.part(~chosen)


BIT = Number(0, 1, (1,))
LALONDE = Schema(
    Label("re78", above=10_000),
    {
        "age": Number(16, 60, (25, 35, 45)),
        "educ": Number(0, 18, (9, 12, 13, 16)),
        "black": BIT,
        "hisp": BIT,
        "marr": BIT,
        "nodegree": BIT,
        "re74": Number(0, 30_000, (1, 5_000, 10_000, 15_000, 20_000)),
        "re75": Number(0, 30_000, (1, 5_000, 10_000, 15_000, 20_000)),
    },
)
K401 = Schema(
    # The median of the survey, in thousands of dollars.
    Label("nettfa", above=2),
    {
        "inc": Number(0, 200, (15, 25, 35, 50, 75)),
        "age": Number(25, 64, (30, 40, 50)),
        "fsize": Number(1, 10, (2, 3, 5)),
        "marr": BIT,
        "male": BIT,
        "pira": BIT,
    },
)
CENSUS = {
    "age": Number(0, 90, (18, 25, 30, 35, 40, 45, 50, 55, 60, 65)),
    "education": Number(0, 16, (9, 10, 11, 12, 13, 14, 15)),
    "marital_stat": Category(("married-civilian_spouse_present", "never_married", "divorced")),
    "sex": Category(("male",)),
    "race": Category(("white", "black")),
    "class_of_worker": Category(
        (
            "private",
            "self-employed-incorporated",
            "self-employed-not_incorporated",
            "local_government",
            "federal_government",
        )
    ),
    "major_occupation_code": Category(
        (
            "executive_admin_and_managerial",
            "professional_specialty",
            "sales",
            "adm_support_including_clerical",
            "precision_production_craft_&_repair",
            "other_service",
        )
    ),
    "tax_filer_stat": Category(("joint_both_under_65", "joint_both_65+", "single", "nonfiler")),
    "weeks_worked_in_year": Number(0, 52, (1, 26, 40, 52)),
    "num_persons_worked_for_employer": Number(0, 6, (1, 3, 6)),
    "citizenship": Category(("native-_born_in_the_united_states",)),
}
EMPLOYMENT = Category(
    (
        "children_or_armed_forces",
        "full-time_schedules",
        "not_in_labor_force",
        "pt_for_non-econ_reasons_usually_ft",
        "unemployed_full-time",
    )
)
RICH, POOR = Label("income_gt_50k", positive=("1",)), Label("income_gt_50k", positive=("0",))


def rows_with(column: str, value: str) -> Callable[[Table], NDArray[np.bool_]]:
    """The rows that have this value."""

    def chosen(table: Table) -> NDArray[np.bool_]:
        values = table.column(column)
        return np.array([text == value for text in values.texts])[values.codes]

    return chosen


def investors(table: Table) -> NDArray[np.bool_]:
    columns = (table.column(name) for name in ("dividends_from_stocks", "capital_gains"))
    return np.logical_or(*((column.numbers() > 0)[column.codes] for column in columns))


INVESTORS = Schema(RICH, {**CENSUS, "capital_losses": Number(0, 5_000, (1,))})
YEARS = Schema(POOR, {**CENSUS, "full_or_part_time_employment_stat": EMPLOYMENT})
# Chosen once, by hand, on other random halves than those of the table.
ORACLE = {"alpha": 0.05, "kappa": 0.02, "eta": 0.03, "rounds": 64, "draws": 1_000}
AGENTS = {"kappa": 0.02, "eta": 0.3, "rounds": 16, "draws": 1_000}
SINGLE = {"kappa": 0.3, "eta": 0.1, "rounds": 8}

PROBLEMS = [
    Problem(
        "lalonde",
        "Training programme (n = 445) -> population: earnings above $10,000",
        "lalonde_nsw_cps1.csv.gz",
        LALONDE,
        rows_with("source", "nsw"),
        private=False,
        hypotheses=learners.Conjunctions(len(LALONDE.names), 1, complements=False),
        single=ORACLE,
        other={**AGENTS, "alpha": 0.18},
    ),
    Problem(
        "k401",
        "401(k) savers (n = 2,562) -> everybody else: assets above the median",
        "k401ksubs.csv.gz",
        K401,
        rows_with("p401k", "1"),
        private=False,
        hypotheses=learners.Conjunctions(len(K401.names), 1, complements=False),
        single=ORACLE,
        other={**AGENTS, "alpha": 0.28},
    ),
    Problem(
        "investors",
        "Stock investors (n = 39,654) -> everybody else: income above $50,000",
        "census_income_kdd_21cols.csv.gz",
        INVESTORS,
        investors,
        private=True,
        hypotheses=learners.Conjunctions(len(INVESTORS.names), 2, complements=True),
        single={**SINGLE, "alpha": 0.04},
        other={"alpha": 0.06, "kappa": 0.3, "eta": 0.1, "rounds": 48},
    ),
    Problem(
        "years",
        "Census of 1994 (n = 149,643) -> 1995: income at most $50,000",
        "census_income_kdd_21cols.csv.gz",
        YEARS,
        rows_with("year", "1"),
        private=True,
        hypotheses=learners.Conjunctions(len(YEARS.names), 2, complements=False),
        single={**SINGLE, "alpha": 0.05},
        other={"alpha": 0.06, "kappa": 0.1, "eta": 0.1, "rounds": 48},
    ),
]


def scores(y: Bits, predictions: Floats, probabilities: Floats) -> ScoreResult:
    """Error and AUC of the predictions, log loss of the probabilities."""
    from sklearn.metrics import roc_auc_score

    sure = np.clip(probabilities, FLOOR, 1 - FLOOR)
    loss = -np.log(np.where(y == 1, sure, 1 - sure)).mean()
    return (
        float(((predictions > 0.5) != y).mean()),
        float(loss),
        float(roc_auc_score(y, predictions)),
    )


def count_shares(predictions: Floats, y: Bits, cells: int) -> Floats:
    """The share of label 1 in each cell of predictions."""
    places = find_cells(predictions, cells)
    total = np.bincount(places, minlength=cells)
    return np.bincount(places, weights=y, minlength=cells) / np.maximum(total, 1)


def find_cells(predictions: Floats, cells: int) -> NDArray[np.intp]:
    return np.minimum((predictions * cells).astype(np.intp), cells - 1)


def ask_shares(
    predict: Callable[[Any], Floats], agents: local.Agents, cells: int, rng: Any
) -> Floats:
    """The share of label 1 in each cell, from randomized answers of all agents that are left.

    Drawn towards the share of all by two standard errors, and kept one from 0 and 1, so that noise
    does not become certainty.
    """
    count = agents.remaining // (2 * cells)

    def share(cell: int, positive: bool) -> float:
        def question(X: Any, y: Bits) -> Bits:
            inside = find_cells(predict(X), cells) == cell
            return (inside & (y == 1) if positive else inside).astype(np.uint8)

        answers = agents.ask(question, count, random_state=rng)
        return local.estimate_mean(answers, beta=0.05, epsilon=agents.epsilon).value

    inside, positive = (np.array([share(c, p) for c in range(cells)]) for p in (False, True))
    pull = 1 / (math.sqrt(count) * math.tanh(agents.epsilon / 2))
    shares = (positive + pull * positive.sum()) / (inside + pull)
    return np.clip(shares, pull / 2, 1 - pull / 2)


def votes(hypothesis: dict[str, Any], X: Bits) -> Floats:
    """The share of a vote's hypotheses that say 1."""
    packed = learners.Features(X)
    predictions = [learners.predictor(voter)(packed) for voter in hypothesis["hypotheses"]]
    return np.mean(predictions, axis=0)


@dataclass(frozen=True)
class Repetition:
    """One random half of the target as agents, the other as test."""

    problem: Problem
    source: People
    agents: People
    test: People
    rng: np.random.Generator

    def rows(self) -> Iterator[tuple[str, Callable[[], ScoreResult]]]:
        """What is compared, under its name in the table."""
        single, other = self.problem.single, self.problem.other
        yield "best constant on the target", self._constant
        yield "source only, logistic, not private", partial(self._logistic, self.source)
        if self.problem.private:
            kept = {"eta": UNMOVED}
            yield "source only, private", self._private_source
            yield "ours, least estimate", partial(self._least, single)
            yield "ours, share of votes", partial(self._vote, other)
            yield "least estimate, never reweighed", partial(self._least, single | kept)
            yield "share of votes, never reweighed", partial(self._vote, other | kept)
        else:
            oracle = local.EmpiricalOracle(self.agents.floats, self.agents.y)
            yield "ours, oracle", partial(self._algorithm_1, single, oracle)
            yield (
                "ours, agents' epsilon = 1",
                partial(self._algorithm_1, other, self._people(0, True)),
            )
        yield "target only, local votes", self._votes_alone
        yield "target only, logistic, not private", partial(self._logistic, self.agents)

    def _people(self, start: int = 0, floats: bool = False) -> local.Agents:
        X = self.agents.floats if floats else self.agents.bits
        return local.Agents(X[start:], self.agents.y[start:], epsilon=AGENTS_EPSILON)

    def _constant(self) -> ScoreResult:
        share = self.agents.y.mean()
        predictions = np.full(len(self.test.y), float(share >= 0.5))
        return scores(self.test.y, predictions, np.full(len(predictions), share))

    def _logistic(self, people: People) -> ScoreResult:
        return self._score_model(LogisticLearner().learn(people.floats, people.y))

    def _score_model(self, model: Halfspace) -> ScoreResult:
        probabilities = model.probabilities(self.test.floats)
        return scores(self.test.y, probabilities, probabilities)

    def _algorithm_1(self, options: dict[str, Any], agents: Any) -> ScoreResult:
        run = transfer.SubsampleTestReweigh(
            LogisticLearner(), schedule="every", output="smallest", epsilon=math.inf, **options
        )
        run.fit(self.source.floats, self.source.y, agents, random_state=self.rng)
        return self._score_model(Halfspace(run.result_.hypothesis))

    def _private_source(self) -> ScoreResult:
        learner = learners.ExponentialLearner(self.problem.hypotheses, epsilon=EPSILON)
        model = learner.learn(self.source.bits, self.source.y, random_state=self.rng)
        return self._score_asked(model.predict, self._people(), 2)

    def _least(self, options: dict[str, Any]) -> ScoreResult:
        result, agents = self._algorithm_2(options, "every", "smallest")
        return self._score_asked(result.predict, agents, 2)

    def _vote(self, options: dict[str, Any]) -> ScoreResult:
        result, agents = self._algorithm_2(options, "final", "majority")
        return self._score_asked(partial(votes, result.hypothesis), agents, 4)

    def _algorithm_2(
        self, options: dict[str, Any], schedule: Any, output: Any
    ) -> tuple[transfer.TransferResult, local.Agents]:
        learner, agents = (
            learners.ExponentialLearner(self.problem.hypotheses, epsilon=1.0),
            self._people(),
        )
        run = transfer.SubsampleTestReweigh(
            learner, epsilon=EPSILON, delta=DELTA, schedule=schedule, output=output, **options
        )
        run.fit(self.source.bits, self.source.y, agents, random_state=self.rng)
        return run.result_, agents

    def _votes_alone(self) -> ScoreResult:
        if not self.problem.private:
            winner = self._learn_by_votes(len(self.agents.y))
            return self._score_counted(winner.predict)
        # Private probabilities need agents, too: half of them.
        half = len(self.agents.y) // 2
        return self._score_asked(self._learn_by_votes(half).predict, self._people(half), 2)

    def _learn_by_votes(self, count: int) -> local.VotingResult:
        some = self.agents.part(np.arange(count))
        agents = local.Agents(some.bits, some.y, epsilon=AGENTS_EPSILON)
        return local.learn_by_votes(self.problem.hypotheses, agents, random_state=self.rng)

    def _score_asked(
        self, predict: Callable[[Any], Any], agents: local.Agents, cells: int
    ) -> ScoreResult:
        shares = ask_shares(lambda X: predict(X).astype(float), agents, cells, self.rng)
        predictions = predict(self.test.bits).astype(float)
        return scores(self.test.y, predictions, shares[find_cells(predictions, cells)])

    def _score_counted(self, predict: Callable[[Any], Any]) -> ScoreResult:
        shares = count_shares(predict(self.agents.bits).astype(float), self.agents.y, 2)
        predictions = predict(self.test.bits).astype(float)
        return scores(self.test.y, predictions, shares[find_cells(predictions, 2)])


def draw_halves(target: Any, repetitions: int) -> Iterator[tuple[Any, Any, np.random.Generator]]:
    """Agents, test and further coins of each repetition."""
    for number in range(repetitions):
        rng = np.random.default_rng(number)
        order, half = rng.permutation(len(target.y)), len(target.y) // 2
        yield target.part(order[:half]), target.part(order[half:]), rng


def repeat(problem: Problem, repetitions: int) -> dict[str, Any]:
    source, target = problem.read()
    table: dict[str, list[ScoreResult]] = {}
    start = time.perf_counter()
    for agents, test, rng in draw_halves(target, repetitions):
        for name, row in Repetition(problem, source, agents, test, rng).rows():
            table.setdefault(name, []).append(row())
    seconds = (time.perf_counter() - start) / repetitions
    return {
        "problem": problem.title,
        "agents": len(target.y) // 2,
        "hypotheses": len(problem.hypotheses),
        "seconds": seconds,
        "rows": {
            name: [[float(np.mean(part)), float(np.std(part))] for part in zip(*rows, strict=True)]
            for name, rows in table.items()
        },
    }


def table(result: dict[str, Any]) -> str:
    lines = [
        f"{result['problem']}; {result['agents']:,} agents; {result['hypotheses']:,} hypotheses; "
        f"{result['seconds']:.1f} s a repetition",
        "",
        "| | error | log loss | AUC |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, values in result["rows"].items():
        cells = " | ".join(f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in values)
        lines.append(f"| {name} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parser = make_parser(__doc__, repetitions=10, printing=True, writing=False)
    parser.add_argument("--only", choices=[problem.name for problem in PROBLEMS])
    arguments = parser.parse_args()
    accept_seeds()
    print_results(
        arguments,
        select_present(PROBLEMS, arguments.only),
        lambda problem: repeat(problem, arguments.repetitions),
        table,
    )


if __name__ == "__main__":
    main()
