"""A panel and a survey in one run: screen, learn, calibrate, certify, each agent asked once."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._support.notes import keep_result
from .._support.parameters import Checked, Rules, optional
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import (
    instance,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..accounting import gaussian_mu
from ..budget.account import Budget, check_budget, spend
from ..data.chunks import Chunks, count_rows, take_bare
from ..data.column_kinds import require_label
from ..data.frames import take_columns
from ..data.goal import Goal
from ..data.rows import Rows
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError
from ..learners.additive import learn_additive
from ..learners.additive_choice import choose_additive, may_be_additive, share_of_look
from ..learners.additive_plan import AdditivePlan, plan_additive
from ..learners.centered_classes import ClassesPlan, learn_classes, plan_classes, release_center
from ..learners.centered_learner import make_private_model
from ..learners.centered_linear import CenteredModel
from ..learners.centered_rows import PartedRows, WholeRows, center_evenly, pair_rows
from ..learners.descriptions import Description
from ..learners.private_model import LARGEST, PrivateModel
from ..local.agents import Agents
from ..local.estimation import advantage
from ..local.pool import AgentPool
from .agent_plans import check_agents, count_agents, require_left
from .column_means import read_means
from .hybrid_model import (
    SCREEN,
    SCREEN_SHARE,
    Features,
    HybridModel,
    HybridPlan,
    choose_features,
    choose_screen,
    repair,
    share_out,
    split_mu,
)
from .hybrid_state import HybridState
from .shifts import ShiftReport, shifted_columns

_MOST = 1 << 62
_NAME = "transfer.HybridRun"


@dataclass(frozen=True)
class HybridRun(Checked):
    """Learns from a panel, and lets agents say what moved, repair the model and certify it.

    The source is a panel of people who opted in and handed their records to a curator; the target
    is everybody else, agents who each answer one question with one randomized bit. A run

    1. screens: it releases the means of the panel's features, and some agents say which have other
       means among them. What is nearly constant in the panel and not among them is left out.
    2. learns a model of the panel, logistic regression on features less these means by a noisy
       descent, or an additive model of them, as sklearn.PrivateClassifier does.
    3. calibrates its probabilities by the answers of other agents.
    4. certifies by the rest how often it errs on them, before and after.

    `run` does all of it. With real people call `learn`, then `repair`, so that the released model
    is in your hands before they are asked, and an interruption does not take it along.

    Attributes:
        schema: Public data.Schema of both sides, with a rule of the label.
        epsilon: Privacy parameter of the panel, finite and above 0. All of its releases are one
            Gaussian mechanism: the means have a tenth of the square of its mu where agents are
            asked what moved, and the model has the rest.
        delta: Privacy parameter of the panel, strictly between 0 and 1.
        screen: Share of the agents, in [0, 1), who say what moved. None takes .3, or 0 where public
            numbers tell that a shift of half a feature's range might not show.
        certify: Share of the agents, in (0, 1), who certify the model. The rest calibrates it.
        features: "bits" for the schema's bits, with one for each cut of a number, "numbers" for its
            float features, or "auto", which takes bits where the panel's records times epsilon are
            10,000 or more. With an additive model, or a look, people hold "numbers": the cuts of
            its shapes are found by the run, and are part of each question.
        method: "descent" for the linear model, "additive" for one whose columns have shapes that
            bend, or "auto", which chooses as sklearn.PrivateClassifier does: where n mu / columns
            is 100 at least, by a look at the panel with a tenth of the square of the model's mu.
        beta: Probability, in (0, 1), with which each interval of an error, and all intervals of
            features together, may miss.

    Raises:
        ParameterError: A parameter is out of range, or no agents are left to calibrate.

    Guarantee:
        That of run.

    Source:
        Kohen and Sheffet 2022 for the hybrid model; Dong, Roth and Su 2022, Corollary 2, for the
        panel; Warner 1965, Platt 1999 and Clopper and Pearson 1934 for what agents tell.

    Examples:
        >>> from hdp_fast import transfer
        >>> from hdp_fast.data import Label, Number, Schema
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> panel = {"age": [20, 70] * 5_000, "bought": ["no", "yes"] * 5_000}
        >>> town = {"age": [20, 70] * 5_000, "bought": ["no", "no"] * 5_000}
        >>> run = transfer.HybridRun(schema, epsilon=1.0, delta=1e-6, features="numbers")
        >>> agents = run.simulate(town, n=10_000, epsilon=2.0)
        >>> result = run.run(panel, agents)
        >>> result.certificates["before"].low > 0.3, agents.remaining
        (True, 0)
    """

    RULES: ClassVar[Rules] = {
        "schema": partial(instance, kind=Schema, what="a data.Schema"),
        "epsilon": positive,
        "delta": probability,
        "screen": optional(partial(probability, zero=True)),
        "certify": probability,
        "features": partial(one_of, allowed=("auto", "bits", "numbers")),
        "method": partial(one_of, allowed=("descent", "additive", "auto")),
        "beta": probability,
    }

    schema: Schema
    _: KW_ONLY
    epsilon: float
    delta: float
    screen: float | None = None
    certify: float = 0.3
    features: str = "auto"
    beta: float = 0.05
    method: str = "descent"

    def __post_init__(self) -> None:
        """Validate the parameters, and that they fit together."""
        super().__post_init__()
        if require_label(self.schema.label).bounds is not None:
            rule = "bounds make it a number, but here it must be 0 or 1: positive or above"
            raise ParameterError(f"label = {require_label(self.schema.label).column!r}: {rule}")
        if self.method != "descent" and self.features == "bits":
            rule = "an additive model is made of numbers: take 'numbers' or 'auto', or 'descent'"
            raise ParameterError(f"features = 'bits' and method = {self.method!r}, but {rule}")
        screen = SCREEN if self.screen is None else self.screen
        if screen + self.certify >= 1:
            rule = "together they must be below 1, so that some people calibrate the model"
            raise ParameterError(f"screen = {screen:g} and certify = {self.certify:g}, but {rule}")

    def plan(self, *, n: int, agents: int, agents_epsilon: float) -> HybridPlan:
        """Computes from public numbers what a run asks and spends.

        Args:
            n: Number of the panel's records.
            agents: Number of agents to ask.
            agents_epsilon: Privacy parameter of each agent's answer, above 0.

        Returns:
            The plan.

        Raises:
            ParameterError: An argument is out of range, or no noise is enough for epsilon and
                delta.
            AgentsExhausted: There are too few agents.
        """
        records, people = positive_int("n", n, _MOST), positive_int("agents", agents, _MOST)
        each = positive("agents_epsilon", agents_epsilon)
        advantage(each)
        features = self._choose_features(records)
        plain, share = self._rows(features), self.screen
        columns, mu = len(plain.names), float(gaussian_mu(self.epsilon, self.delta))
        screen_mu, rest = split_mu(mu)
        if share is None:
            share = choose_screen(
                plain, screen_mu, n=records, agents=people, agents_epsilon=each, beta=self.beta
            )
        screen, calibrate, certify = share_out(people, columns, share, self.certify)
        plan = HybridPlan(
            features, columns, records, screen, calibrate, certify, share,
            screen_mu if share else None, rest if share else mu, each,
        )  # fmt: skip
        self._plan_learners(plan, None)  # refuses, before anything is spent
        return plan

    def simulate(self, table: Any, *, n: int, epsilon: float) -> Agents:
        """Makes simulated agents of a table, for a trial before real people are asked.

        They hold what a run with a panel of n records asks about, and stand in an order that does
        not depend on their rows. Real people are local.RemoteAgents, whose devices hold the same
        features of the schema, and draw their own random bits.

        Args:
            table: A data.Table or a data frame, as data.read_frame takes it, of one person a row,
                with the columns of the schema and that of its label.
            n: Number of the panel's records, which decides on the features of "auto".
            epsilon: Privacy parameter of each agent's answer, above 0.

        Returns:
            The agents.

        Raises:
            ParameterError: The table lacks a column, or an argument is out of range.
        """
        records = positive_int("n", n, _MOST)
        survey = self._take("table", table)
        # Questions go to agents in order, and tables are often sorted.
        survey = survey.select(np.random.default_rng(0).permutation(survey.rows))
        labels = self.schema.labels(survey)
        features = self._choose_features(records)
        return Agents(self._rows(features).plain(survey), labels, epsilon=epsilon)

    @keep_result
    def run(
        self,
        panel: Any,
        agents: AgentPool,
        *,
        count: int | None = None,
        budget: Budget | None = None,
        random_state: RandomState = None,
        state: str | os.PathLike[str] | None = None,
    ) -> HybridModel:
        """Screens, learns, calibrates and certifies.

        Args:
            panel: As for learn.
            agents: As for learn.
            count: As for learn.
            budget: As for learn.
            random_state: As for learn.
            state: As for learn. The same call goes on with its people, too, where the agents are
                RemoteAgents that have a state.

        Returns:
            The released model with its calibration and certificates.

        Raises:
            ParameterError: As in learn.
            ShapeError: As in learn.
            AgentsExhausted: As in learn. Or not one of the agents who are to calibrate or certify
                has answered: the panel's release is then paid for and lost, which learn and repair
                prevent.
            BudgetExceeded: As in learn.
            Exception: What the agents themselves raise.

        Guarantee:
            Two of them. A record of the panel has (epsilon, delta)-DP under "replace_one", exact,
            with their number public. Means and model are one Gaussian mechanism, whose mu the
            record states: the squares of their mu add up to no more than its own, whatever agents
            answer in between. An agent's answer is pure agents.epsilon-DP, locally; each agent
            answers one question. For somebody on both sides, both guarantees add up.

        Cost:
            8 to 120 passes over the panel, and some forty over parts of the agents. Chunks are read
            three times where their integers, two bytes for each feature of a row, take at most half
            a gigabyte or a temporary file has room for them, and else once for each step.
        """
        stream = make_stream(random_state)
        with self._open_state(state) as stored:
            learned = self._learn(panel, agents, count, budget, stream, random_state, stored)
            return self._repair(learned, agents, stream, random_state)

    @keep_result
    def learn(
        self,
        panel: Any,
        agents: AgentPool,
        *,
        count: int | None = None,
        budget: Budget | None = None,
        random_state: RandomState = None,
        state: str | os.PathLike[str] | None = None,
    ) -> HybridModel:
        """Lets some agents say what moved, and learns a model of the panel.

        Args:
            panel: A data.Table or a data frame, as data.read_frame takes it, of n private rows,
                with the columns of the schema and that of its label; or data.Chunks of such, each
                part of which is read where it lies.
            agents: local.Agents or local.RemoteAgents, who hold the features of the plan and a
                label, and stand in an order that tells nothing about them.
            count: Number of agents that the whole run asks; None takes all that are left.
            budget: Budget of the relation "replace_one", charged with the whole epsilon and delta,
                once and before anything is drawn; None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one. RemoteAgents do not use it.
            state: Path of a file, which is made where it is missing, of what the run has released.
                People take days: after a crash or an interruption the same call, with the same
                `count`, panel and budget, goes on from it, and neither draws nor charges anything
                again; another budget is charged, too. Once the model is learned, the panel is not
                read any more. None keeps nothing.

        Returns:
            The released model, not yet calibrated.

        Raises:
            ParameterError: The panel lacks a column, an argument is out of range, Chunks name a
                column of ids, for it is rows that are protected, or the budget is of another
                relation. Nothing is spent, and no one is asked.
            ShapeError: Agents hold another number of features than the plan's. Nothing is spent.
            AgentsExhausted: There are too few agents. Nothing is spent.
            BudgetExceeded: The budget has less than epsilon or delta left. Nothing is spent.
            CheckpointError: `state` is of another run, or another process is at work on it. Nothing
                more is spent.
            Exception: What the agents themselves raise. Epsilon and delta are spent then.

        Guarantee:
            As for run.
        """
        stream = make_stream(random_state)
        with self._open_state(state) as stored:
            return self._learn(panel, agents, count, budget, stream, random_state, stored)

    @keep_result
    def repair(
        self, learned: HybridModel, agents: AgentPool, *, random_state: RandomState = None
    ) -> HybridModel:
        """Lets agents calibrate a model that learn returned, and others certify it.

        After an interruption the same call takes up the answers of RemoteAgents who were asked by
        it, and asks only the others.

        Args:
            learned: What learn returned.
            agents: The agents of learn, of whom those who said what moved have been asked.
            random_state: As for learn.

        Returns:
            The model with its calibration and certificates.

        Raises:
            ParameterError: An argument is out of range, or agents have another epsilon than the
                plan's.
            AgentsExhausted: Fewer agents are left than the plan asks, and no one is asked; or not
                one of those who were asked has answered.
            Exception: What the agents themselves raise.

        Guarantee:
            Pure agents.epsilon-DP, locally, for each agent. The panel's records cost nothing again.
        """
        return self._repair(learned, agents, make_stream(random_state), random_state)

    @contextmanager
    def _open_state(self, state: str | os.PathLike[str] | None) -> Iterator[HybridState | None]:
        """The state of this run, which no other process works on in the block."""
        if state is None:
            yield None
            return
        stored = HybridState(state)
        stored.check_run(self._parameters)
        with stored.hold():
            stored.check_run(self._parameters)
            yield stored

    def _learn(
        self,
        panel: Any,
        agents: AgentPool,
        count: int | None,
        budget: Budget | None,
        stream: Any,
        random_state: RandomState,
        stored: HybridState | None,
    ) -> HybridModel:
        """What learn returns; the model that is stored, if there is one."""
        check_random_state(random_state)
        check_budget(budget)
        known = None if stored is None else stored.learned
        if known is not None:
            check_agents(agents)
            return known
        records, labels = self._open(panel)
        plan = self._plan_with(count_rows(records), agents, count)
        plain = self._rows(plan.features)
        rows = _make_rows(plain, records)
        if budget is not None and budget.neighbors != "replace_one":
            refuse("budget.neighbors", budget.neighbors, "a run is protected by replace_one")
        learner, additive = self._plan_learners(plan, random_state)
        if additive is None:
            learner.note_few(plan.n, plan.columns + 1)
        else:
            additive.note_few(self.epsilon)
        if stored is not None:
            stored.check_plan(plan)
        # Another budget than the one that paid pays, too: who holds it may not know the first one.
        is_paid = stored is not None and stored.is_paid_by(budget)
        with spend(None if is_paid else budget, learner.record):
            if stored is not None and not is_paid:
                stored.begin(self._parameters, plan, budget)
            # A look comes before means that are of use to the linear model alone.
            centered = plain
            if additive is None or plan.screen:
                release = partial(release_center, learner, plain, rows, stream)
                centered = release() if stored is None else stored.keep_center(plain, release)
            shift = self._screen(centered, learner, plan, agents, stream)
            left_out = () if shift is None else shift.droppable
            unit = plain.without(left_out)
            if len(unit.names) < plan.columns:
                rows = _make_rows(unit, records)
            released = None
            if additive is not None:
                some = pair_rows(rows, labels)
                released = self._learn_additive(additive, unit, some, learner, stream)
            if released is None:
                if additive is not None and not plan.screen:
                    centered = release_center(learner, plain, rows, stream)
                # Where noise would blur the means, they have said what moved, and no more.
                whole = centered if learner.centers else center_evenly(plain)
                kept = whole.without(left_out)
                # The calibration is of scores of rows that are not shrunk.
                made = learn_classes(learner, kept, rows, labels, stream, shrink=False)
                released = CenteredModel(kept, made.model, "descent", made.record, made.noise)
        model = dataclasses.replace(make_private_model(released, None, plan.n), norm_bound=LARGEST)
        learned = HybridModel(
            model=model,
            panel_model=model,
            shift=shift,
            left_out=() if unit is plain else left_out,
            plan=plan,
            calibrated=None,
            certificates={},
            records=(learner.record,),
        )
        if stored is not None:
            stored.keep_learned(learned)
        return learned

    def recall(self, state: str | os.PathLike[str]) -> HybridModel | None:
        """Reads the released model that a state holds, without panel or people.

        Args:
            state: Path of a file that learn or run kept, or is yet to make.

        Returns:
            What learn returned, for repair; None if the model was not learned yet.

        Raises:
            ParameterError: The file can't be read, or is no such state.
            CheckpointError: It is of another run.
        """
        stored = HybridState(state)
        stored.check_run(self._parameters)
        return stored.learned

    @property
    def _parameters(self) -> str:
        """What tells this run from another one."""
        names = [field.name for field in dataclasses.fields(self) if field.name != "schema"]
        return repr([self.schema.to_json(), *(getattr(self, name) for name in names)])

    def _learn_additive(
        self,
        plan: AdditivePlan,
        unit: Rows,
        records: WholeRows | PartedRows,
        learner: ClassesPlan,
        stream: Any,
    ) -> CenteredModel | None:
        """The additive model of some columns; None where a look chooses the linear one."""
        assert plan.square is not None
        square, plan = plan.square, dataclasses.replace(plan.narrow(unit), record=learner.record)
        if self.method == "auto":
            if not choose_additive(plan, unit, records, stream):
                return None
            plan = dataclasses.replace(plan, square=square * (1 - share_of_look(plan.clear)))
        with np.errstate(all="ignore"):
            made = learn_additive(plan, unit, records, False, stream)
        return CenteredModel(made.rows, made.model, "additive", made.record, made.noise)

    def _open(self, panel: Any) -> tuple[Table | PartedRows, Integers | None]:
        """The records of a panel, and their labels beside a table; parts have theirs.

        All of them are looked at, so that what is wrong in public is refused here.
        """
        if isinstance(panel, Chunks):
            return PartedRows.open(self._rows("numbers"), panel, self._read_block), None
        return self._read_block(panel)

    def _read_block(self, *block: Any) -> tuple[Table, Integers]:
        """The columns of a table that are read, and the labels."""
        table = self._take("panel", take_bare(*block))
        return table, self.schema.labels(table).astype(np.int64)

    def _plan_with(self, n: int, agents: AgentPool, count: int | None) -> HybridPlan:
        check_agents(agents)
        people = count_agents(count, agents)
        require_left(people, agents)
        plan = self.plan(n=n, agents=people, agents_epsilon=agents.epsilon)
        width = getattr(agents, "d", plan.columns)
        if width != plan.columns:
            asked = f"the run asks about the schema's {plan.columns:,} {plan.features}"
            raise ShapeError(f"agents have {width:,} features, but {asked}")
        return plan

    def _screen(
        self,
        centered: Rows,
        learner: ClassesPlan,
        plan: HybridPlan,
        agents: AgentPool,
        stream: Any,
    ) -> ShiftReport | None:
        """What moved, by the released means of the panel; None where no one is asked."""
        if plan.screen_mu is None:
            return None
        assert learner.means is not None
        record = dataclasses.replace(
            learner.record,
            mechanism=f"{_NAME}, means of {plan.columns:,} columns",
            source="Gaussian mechanism, part of the run's",
            mu=plan.screen_mu,
        )
        means = read_means(centered, n=plan.n, grid=learner.means, record=record)
        return shifted_columns(
            means, agents, count=plan.screen, beta=self.beta, random_state=stream
        )

    def _repair(
        self, learned: HybridModel, agents: AgentPool, stream: Any, random_state: RandomState
    ) -> HybridModel:
        check_random_state(random_state)
        check_agents(agents)
        instance("learned", learned, HybridModel, "what learn returned")
        plan, panel = learned.plan, learned.panel_model
        if agents.epsilon != plan.agents_epsilon:
            refuse("agents.epsilon", agents.epsilon, f"the plan has {plan.agents_epsilon:g}")
        # Columns that moved are left out of the panel's.
        is_same = require_label(panel.schema.label) == require_label(self.schema.label)
        is_same &= plan.columns == len(self._rows(plan.features).names)
        if not is_same or not {*panel.schema.columns} <= {*self.schema.columns}:
            raise ParameterError("learned is a model of another schema than that of this run")
        if learned.calibrated is not None:
            raise ParameterError("learned is calibrated already: pass what learn returned")
        require_left(plan.calibrate + plan.certify, agents)
        kept = np.array([name not in learned.left_out for name in self._rows(plan.features).names])
        # The model without the bound on norms: a function of what agents hold.
        if panel.method == "additive":
            asked = describe_shapes(panel, kept)
        else:
            asked = describe_rows(panel.rows, panel.weights[:, 1] - panel.weights[:, 0], kept)
        calibrated, certificates = repair(
            asked,
            agents,
            count=plan.calibrate,
            certify_count=plan.certify,
            beta=self.beta,
            random_state=stream,
        )
        record = agents.record(random_state)
        return dataclasses.replace(
            learned,
            model=panel.with_calibration(calibrated.knots, calibrated.shifts, record),
            calibrated=calibrated,
            certificates=certificates,
            records=(*learned.records, record),
        )

    def _plan_learners(
        self, plan: HybridPlan, random_state: RandomState
    ) -> tuple[ClassesPlan, AdditivePlan | None]:
        """The releases of the panel; refuses what no noise is enough for.

        The second plan is None where the model is the linear one. With both, the square of mu of
        the first is that of means and of what a look leaves, and that of the second is what means
        leave, of which a look has its share; both have the record of the whole.
        """
        goal = Goal(self.epsilon, self.delta, random_state=random_state)
        unit, looks = self._rows(plan.features), self.method == "auto"
        may_bend = self.method == "additive" or (looks and self._may_bend(plan.n))
        means, share = SCREEN_SHARE if plan.screen else Fraction(0), Fraction(1)
        additive = None
        if may_bend:
            additive = plan_additive(unit, plan.n, goal, name=_NAME, target=False)
            share -= (1 - means) * share_of_look(additive.clear) if looks else 0
        learner = plan_classes(
            unit,
            plan.n,
            2,
            goal,
            name=_NAME,
            squares=False,  # of which agents would know nothing
            of_means=means / share if plan.screen else None,
            share=share,
        )
        if additive is None:
            return learner, None
        assert additive.square is not None
        assert additive.record is not None
        names = ["means"] if plan.screen else []
        names += ["a look at columns", "an additive or a linear model"] if looks else []
        names += [] if looks else [additive.record.mechanism.removeprefix(f"{_NAME}, ")]
        mechanism = f"{_NAME}, {plan.columns} features: {', '.join(names)}"
        record = dataclasses.replace(learner.record, mechanism=mechanism)
        square = additive.square * (1 - means)
        return learner._replace(record=record), dataclasses.replace(additive, square=square)

    def _may_bend(self, n: int) -> bool:
        """Whether "auto" looks at the panel, by public numbers alone."""
        return may_be_additive(self._rows("numbers"), n, Goal(self.epsilon, self.delta))

    def _choose_features(self, n: int) -> Features:
        """What people hold, by public numbers alone."""
        if self.method == "additive" or (self.method == "auto" and self._may_bend(n)):
            return "numbers"
        return choose_features(self.features, n, self.epsilon)

    def _take(self, name: str, table: Any) -> Table:
        return take_columns(
            name, table, [*self.schema.reads, require_label(self.schema.label).column]
        )

    def _rows(self, features: Features) -> Rows:
        """The rows whose plain ones are these features."""
        return Rows(self.schema, features == "bits")


def _make_rows(unit: Rows, records: Table | PartedRows) -> NDArray[Any] | PartedRows:
    """The plain rows of a panel by this map, or what makes them where each part is read."""
    return records.made_by(unit) if isinstance(records, PartedRows) else unit.plain(records)


def describe_rows(rows: Rows, weights: Floats, kept: NDArray[np.bool_]) -> Description:
    """The linear function with these weights on centered rows, as devices are sent it.

    kept: which of the plain features that people hold are those of the rows.
    """
    assert rows.center is not None
    factor = np.ones_like(rows.center) if rows.factor is None else rows.factor
    slopes = np.zeros(len(kept))
    slopes[kept] = weights[:-1] * factor
    bias = float(weights[-1] - slopes[kept] @ rows.center)
    return {"kind": "linear", "weights": slopes.tolist(), "bias": bias}


def describe_shapes(model: PrivateModel, kept: NDArray[np.bool_]) -> Description:
    """The additive model, as devices are sent it who hold features that it leaves out, too.

    kept: which of the plain features that people hold are those of the model's schema.
    """
    told = model.hypothesis
    assert told is not None
    parts: dict[str, list[list[float]]] = {}
    for name in ("cuts", "weights"):
        lists = iter(told[name])
        parts[name] = [next(lists) if is_kept else [] for is_kept in kept]
    return {**told, **parts}
