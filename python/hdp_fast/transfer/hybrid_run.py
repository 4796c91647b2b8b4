"""A panel and a survey in one run: screen, learn, calibrate, certify, each agent asked once."""

from __future__ import annotations

import dataclasses
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._support.notes import keep_result
from .._support.parameters import Checked, Rules, optional
from .._support.random_state import check_random_state, make_stream
from .._support.types import Bits, Floats, RandomState
from .._support.validate import (
    instance,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..accounting.discrete_gaussian import calibrate_means
from ..budget.account import Budget, check_budget
from ..data.column_kinds import require_label
from ..data.frames import take_columns
from ..data.rows import Rows
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError
from ..learners.centered_learner import make_private_model
from ..learners.centered_linear import CenteredModel
from ..learners.descriptions import Description
from ..learners.linear_model import LinearModel
from ..learners.private_model import LARGEST
from ..learners.sgd import PrivateSGD
from ..local.agents import Agents
from ..local.estimation import advantage
from ..local.pool import AgentPool
from .agent_plans import check_agents, count_agents, require_left
from .column_means import release_means
from .hybrid_model import (
    SCREEN,
    Features,
    HybridModel,
    HybridPlan,
    choose_features,
    choose_screen,
    repair,
    share_out,
    split_price,
)
from .shifts import ShiftReport, shifted_columns

# The accounting of gradients states no epsilon below 1e-9.
_LEAST_EPSILON = 1e-8
_MOST = 1 << 62


def _check_epsilon(name: str, value: Any) -> float:
    epsilon = positive(name, value)
    if epsilon < _LEAST_EPSILON:
        refuse(name, value, f"it must be at least {_LEAST_EPSILON:g}")
    return epsilon


@dataclass(frozen=True)
class HybridRun(Checked):
    """Learns from a panel, and lets agents say what moved, repair the model and certify it.

    The source is a panel of people who opted in and handed their records to a curator; the target
    is everybody else, agents who each answer one question with one randomized bit. A run

    1. screens: it releases the means of the panel's features, and some agents say which have other
       means among them. What is nearly constant in the panel and not among them is left out.
    2. learns a model of the panel, logistic regression by PrivateSGD on features less these means.
    3. calibrates its probabilities by the answers of other agents.
    4. certifies by the rest how often it errs on them, before and after.

    `run` does all of it. With real people call `learn`, then `repair`, so that the released model
    is in your hands before they are asked, and an interruption does not take it along.

    Attributes:
        schema: Public data.Schema of both sides, with a rule of the label.
        epsilon: Privacy parameter of the panel, at least 1e-8: a fifth pays for the means, the rest
            for the model; the model has all where no one is asked what moved.
        delta: Privacy parameter of the panel, strictly between 0 and 1, shared out likewise.
        screen: Share of the agents, in [0, 1), who say what moved. None takes .3, or 0 where public
            numbers tell that a shift of half a feature's range might not show.
        certify: Share of the agents, in (0, 1), who certify the model. The rest calibrates it.
        features: "bits" for the schema's bits, with one for each cut of a number, "numbers" for its
            float features, or "auto", which takes bits where the panel's records times epsilon are
            10,000 or more.
        beta: Probability, in (0, 1), with which each interval of an error, and all intervals of
            features together, may miss.

    Raises:
        ParameterError: A parameter is out of range, or no agents are left to calibrate.

    Guarantee:
        That of run.

    Source:
        Kohen and Sheffet 2022 for the hybrid model; Balle and Wang 2018 for the means; Warner 1965,
        Platt 1999 and Clopper and Pearson 1934 for what agents tell.

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
        "epsilon": _check_epsilon,
        "delta": probability,
        "screen": optional(partial(probability, zero=True)),
        "certify": probability,
        "features": partial(one_of, allowed=("auto", "bits", "numbers")),
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

    def __post_init__(self) -> None:
        """Validate the parameters, and that they fit together."""
        super().__post_init__()
        if require_label(self.schema.label).bounds is not None:
            rule = "bounds make it a number, but here it must be 0 or 1: positive or above"
            raise ParameterError(f"label = {require_label(self.schema.label).column!r}: {rule}")
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
        features = choose_features(self.features, records, self.epsilon)
        columns, share = len(self._rows(features).names), self.screen
        price, rest = split_price(self.epsilon, self.delta)
        if share is None:
            share = choose_screen(
                self.schema, features, price, n=records, agents=people, agents_epsilon=each,
                beta=self.beta,
            )  # fmt: skip
        screen, calibrate, certify = share_out(people, columns, share, self.certify)
        whole = (self.epsilon, self.delta)
        plan = HybridPlan(
            features, columns, records, screen, calibrate, certify, share,
            price if share else None, rest if share else whole, each,
        )  # fmt: skip
        self._check_prices(plan)
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
        features = choose_features(self.features, records, self.epsilon)
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
    ) -> HybridModel:
        """Screens, learns, calibrates and certifies.

        Args:
            panel: As for learn.
            agents: As for learn.
            count: As for learn.
            budget: As for learn.
            random_state: As for learn.

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
            with their number public: basic composition of the means and the model. An agent's
            answer is pure agents.epsilon-DP, locally; each agent answers one question. For somebody
            on both sides, both guarantees add up.

        Cost:
            That of PrivateSGD on the panel, and some forty passes over parts of the agents.
        """
        stream = make_stream(random_state)
        learned = self._learn(panel, agents, count, budget, stream, random_state)
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
    ) -> HybridModel:
        """Lets some agents say what moved, and learns a model of the panel.

        Args:
            panel: A data.Table or a data frame, as data.read_frame takes it, of n private rows,
                with the columns of the schema and that of its label.
            agents: local.Agents or local.RemoteAgents, who hold the features of the plan and a
                label, and stand in an order that tells nothing about them.
            count: Number of agents that the whole run asks; None takes all that are left.
            budget: Budget of the relation "replace_one", charged with the whole epsilon and delta,
                once and before anything is drawn; None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one. RemoteAgents do not use it.

        Returns:
            The released model, not yet calibrated.

        Raises:
            ParameterError: The panel lacks a column, an argument is out of range, or the budget is
                of another relation. Nothing is spent, and no one is asked.
            ShapeError: Agents hold another number of features than the plan's. Nothing is spent.
            AgentsExhausted: There are too few agents. Nothing is spent.
            BudgetExceeded: The budget has less than epsilon or delta left. Nothing is spent.
            Exception: What the agents themselves raise. Epsilon and delta are spent then.

        Guarantee:
            As for run.
        """
        stream = make_stream(random_state)
        return self._learn(panel, agents, count, budget, stream, random_state)

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

    def _learn(
        self,
        panel: Any,
        agents: AgentPool,
        count: int | None,
        budget: Budget | None,
        stream: Any,
        random_state: RandomState,
    ) -> HybridModel:
        check_random_state(random_state)
        check_budget(budget)
        table = self._take("panel", panel)
        labels = self.schema.labels(table)
        plan = self._plan_with(table.rows, agents, count)
        plain = self._rows(plan.features)
        plain.plain(table.select(np.arange(1)))
        if budget is not None:
            if budget.neighbors != "replace_one":
                refuse("budget.neighbors", budget.neighbors, "a run is protected by replace_one")
            budget = budget.sequential(self.epsilon, self.delta, name="transfer.HybridRun")
        shift, center = self._screen(table, plan, agents, budget, stream)
        left_out = () if shift is None else shift.droppable
        whole = dataclasses.replace(plain, center=center)
        kept = whole.without(left_out)
        linear = self._learn_linear(kept, (table, labels), plan, budget, stream)
        released = CenteredModel(kept, linear, "sgd", linear.record)
        model = make_private_model(released, None, table.rows)
        # The calibration is of scores of rows that are not shrunk.
        model = dataclasses.replace(model, norm_bound=LARGEST)
        records = [record for record in (shift and shift.record, linear.record) if record]
        return HybridModel(
            model=model,
            panel_model=model,
            shift=shift,
            left_out=() if kept is whole else left_out,
            plan=plan,
            calibrated=None,
            certificates={},
            records=tuple(records),
        )

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
        panel: Table,
        plan: HybridPlan,
        agents: AgentPool,
        budget: Budget | None,
        stream: Any,
    ) -> tuple[ShiftReport | None, Floats]:
        """What moved, and the released means of the panel, or the middle where there are none."""
        if not plan.screen or plan.screen_price is None:
            return None, np.full(plan.columns, 0.5)
        epsilon, delta = plan.screen_price
        means = release_means(
            panel,
            epsilon=epsilon,
            delta=delta,
            schema=self.schema,
            bits=plan.features == "bits",
            budget=budget,
            random_state=stream,
        )
        report = shifted_columns(
            means, agents, count=plan.screen, beta=self.beta, random_state=stream
        )
        return report, means.means

    def _learn_linear(
        self,
        features: Rows,
        records: tuple[Table, Bits],
        plan: HybridPlan,
        budget: Budget | None,
        stream: Any,
    ) -> LinearModel:
        table, labels = records
        learner = dataclasses.replace(_make_learner(plan), norm_bound=features.norm)
        model = learner.learn(features(table), labels, budget=budget, random_state=stream)
        assert isinstance(model, LinearModel)
        return model

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
        # The model without the bound on norms: a linear function of what agents hold.
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

    def _check_prices(self, plan: HybridPlan) -> None:
        """Refuses an epsilon or delta for which no noise is enough, before anything is spent."""
        _make_learner(plan).plan(n=plan.n, d=plan.columns + 1)
        if plan.screen_price is not None:
            epsilon, delta = plan.screen_price
            price = self._rows(plan.features).squared_distance()
            calibrate_means(price, n=plan.n, epsilon=epsilon, delta=delta)

    def _take(self, name: str, table: Any) -> Table:
        return take_columns(
            name, table, [*self.schema.reads, require_label(self.schema.label).column]
        )

    def _rows(self, features: Features) -> Rows:
        """The rows whose plain ones are these features."""
        return Rows(self.schema, features == "bits")


def _make_learner(plan: HybridPlan) -> PrivateSGD:
    epsilon, delta = plan.model_price
    return PrivateSGD(loss="logistic", epsilon=epsilon, delta=delta)


def describe_rows(rows: Rows, weights: Floats, kept: NDArray[np.bool_]) -> Description:
    """The linear function with these weights on centered rows, as devices are sent it.

    kept: which of the plain features that people hold are those of the rows.
    """
    slopes = np.zeros(len(kept))
    slopes[kept] = weights[:-1]
    assert rows.center is not None
    bias = float(weights[-1] - weights[:-1] @ rows.center)
    return {"kind": "linear", "weights": slopes.tolist(), "bias": bias}
