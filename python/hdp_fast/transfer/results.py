"""What a run releases: estimates of its tests, errors of the constants beside them, the result."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .. import local
from .._support.feature_names import FeatureNames, check_names
from .._support.types import Bits
from ..learners.linear_model import LinearModel
from ..local.pool import Hypothesis, falls_short
from ..record import PrivacyRecord
from .plans import Plan

Stopped = Literal["accepted", "threshold", "rounds"]


@dataclass(frozen=True)
class Constants:
    """Estimated errors of the two hypotheses that predict the same label for everybody.

    An estimate of a hypothesis says little without them. For a linear model of labels 0 and 1,
    which is tested by its losses, both are the loss of weights 0, which is the same for everybody
    and needs no agents.

    Attributes:
        zero: Error of always 0, in [0, 1]: the share of ones.
        one: Error of always 1, in [0, 1]: the share of zeros.
        low: Lower end of an interval that holds the smaller of the two errors, except with
            probability beta.
        high: Upper end of that interval.
        agents: Number of agents who answered.
        zero_low: Lower end of an interval for the error of always 0, except with probability beta;
            0 where none is known.
        zero_high: Upper end of that interval; 1 where none is known.

    Examples:
        >>> import math, numpy as np
        >>> from hdp_fast import learners, local, transfer
        >>> S, T = np.random.default_rng(0).integers(0, 2, (2, 20_000, 4), dtype=np.uint8)
        >>> agents = local.Agents(T, T[:, 1] & T[:, 2], epsilon=2.0)
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(4, 2), epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": math.inf, "rounds": 8, "draws": 2000}
        >>> model = transfer.SubsampleTestReweigh(learner, **goal).fit(S, S[:, 1] & S[:, 2], agents)
        >>> bool(abs(model.result_.constants.better - 0.25) < 0.2)  # a quarter of the labels is 1
        True
    """

    zero: float
    one: float
    low: float
    high: float
    agents: int
    zero_low: float = 0.0
    zero_high: float = 1.0

    @property
    def better(self) -> float:
        """The smaller of the two errors."""
        return min(self.zero, self.one)


def read_constants(estimate: local.Estimate, agents: int) -> Constants:
    """Both errors, from the estimate of the error of always 1."""
    one, low, high = estimate
    ends = (low, high) if one <= 1 - one else (1 - high, 1 - low)
    return Constants(1 - one, one, *ends, agents)


def constant_loss(hypothesis: Any) -> Constants | None:
    """The loss of a linear model of weights 0; None where it depends on the records."""
    if not isinstance(hypothesis, LinearModel) or hypothesis.loss.label_bound is not None:
        return None
    d = len(hypothesis.weights)
    model = LinearModel(np.zeros(d), hypothesis.loss)
    loss = float(model.losses(np.zeros((1, d)), [0])[0])
    return Constants(loss, loss, loss, loss, 0)


@dataclass(frozen=True)
class RoundResult:
    """The agents' estimate of the error of one hypothesis.

    Attributes:
        round: Round of the hypothesis, from 1; None for the vote of all.
        value: Estimated error on the target, in [0, 1]. For a learner of real-valued losses it is
            the mean loss as a share of the largest one, a small number even for a useless model.
        low: Lower end of an interval that holds the error. The intervals of all tests hold at once,
            except with probability beta.
        high: Upper end of that interval.
        agents: Number of agents who answered; 0 for an SQ oracle.

    Examples:
        >>> import math, numpy as np
        >>> from hdp_fast import learners, local, transfer
        >>> S, T = np.random.default_rng(0).integers(0, 2, (2, 20_000, 4), dtype=np.uint8)
        >>> agents = local.Agents(T, T[:, 1] & T[:, 2], epsilon=2.0)
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(4, 2), epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": math.inf, "rounds": 8, "draws": 2000}
        >>> model = transfer.SubsampleTestReweigh(learner, **goal).fit(S, S[:, 1] & S[:, 2], agents)
        >>> model.result_.tested.round, model.result_.tested.agents
        (1, 508)
    """

    round: int | None
    value: float
    low: float
    high: float
    agents: int


@dataclass(frozen=True, eq=False)
class TransferResult:
    """What SubsampleTestReweigh releases.

    Attributes:
        hypothesis: Description of the hypothesis, a dict that JSON can hold; None if the hypotheses
            of the learner have none.
        tested: The agents' estimate of the error of this hypothesis; None for a run without agents.
        estimates: Estimates of all hypotheses that were tested, in the order of the plan: tested
            rounds first, then those of the end.
        constants: Errors of always 0 and always 1, with which every estimate is to be compared.
            None where they are not known: without agents; for an SQ oracle, which is asked the
            tests only; if no agent was left, or remote agents could not read the constant; in a
            printed run; and for losses other than those of a linear model of labels 0 and 1.
        stopped: Why the run ended. "accepted": a test accepted the hypothesis. "threshold": a test
            accepted it, but it is not shown to be better than a constant. "rounds": the planned
            rounds were over.
        rounds: Number of rounds that were run.
        plan: Parameters of the run; `plan.promised` says whether the error was promised.
        record: Privacy record of the curator's data; None for a run that is not private.
        agents_record: Privacy record of the agents' answers; None for an SQ oracle and without
            agents.
        weights: Probability of every record in a further round, of shape (n,). None for a private
            run, whose weights are never released.
        feature_names_in_: Names of the columns of the frame that was learned from, or None.

    Examples:
        >>> import math, numpy as np
        >>> from hdp_fast import learners, local, transfer
        >>> S, T = np.random.default_rng(0).integers(0, 2, (2, 20_000, 4), dtype=np.uint8)
        >>> agents = local.Agents(T, T[:, 1] & T[:, 2], epsilon=2.0)
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(4, 2), epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": math.inf, "rounds": 8, "draws": 2000}
        >>> model = transfer.SubsampleTestReweigh(learner, **goal).fit(S, S[:, 1] & S[:, 2], agents)
        >>> result = model.result_
        >>> result.stopped, result.rounds, result.beats_constants
        ('accepted', 1, True)
    """

    hypothesis: dict[str, Any] | None
    tested: RoundResult | None
    estimates: tuple[RoundResult, ...]
    constants: Constants | None
    stopped: Stopped
    rounds: int
    plan: Plan
    record: PrivacyRecord | None
    agents_record: PrivacyRecord | None
    weights: NDArray[np.float64] | None
    _hypothesis: Hypothesis = dataclasses.field(repr=False)
    feature_names_in_: FeatureNames = None

    def predict(self, X: Any) -> Bits:
        """Predicts the labels of other records by the released hypothesis.

        Args:
            X: Records of shape (m, d), in a form that the learner takes. The columns of a frame may
                stand in another order than in the frame that was learned from.

        Returns:
            Labels, uint8 of shape (m,).

        Raises:
            ShapeError: X has not d columns.
            ParameterError: An entry is none that the hypothesis takes, or a column of a frame is
                missing, was not learned from, or comes twice.

        Cost:
            One pass over X; for a vote one pass for each different hypothesis.
        """
        records = check_names(self.feature_names_in_, X)
        return np.asarray(self._hypothesis.predict(records)).astype(np.uint8)

    def to_json(self) -> str:
        """Writes the result as a JSON object.

        Its keys are the attributes and `utility`, without `weights` and `feature_names_in_`. The
        epsilon of a plan that protects no record is null.

        Returns:
            The text.
        """
        parts = {
            "tested": None if self.tested is None else dataclasses.asdict(self.tested),
            "estimates": [dataclasses.asdict(each) for each in self.estimates],
            "constants": None if self.constants is None else dataclasses.asdict(self.constants),
            "plan": {**dataclasses.asdict(self.plan), "epsilon": _finite(self.plan.epsilon)},
            "record": None if self.record is None else dataclasses.asdict(self.record),
            "agents_record": (
                None if self.agents_record is None else dataclasses.asdict(self.agents_record)
            ),
        }
        words = {"stopped": self.stopped, "rounds": self.rounds, "utility": self.utility}
        return json.dumps({"hypothesis": self.hypothesis, **words, **parts})

    @property
    def agents_asked(self) -> int:
        """The number of agents whose answers were used, those about the constants included."""
        tests = sum(test.agents for test in self.estimates)
        return tests + (0 if self.constants is None else self.constants.agents)

    @property
    def beats_constants(self) -> bool | None:
        """Whether the error's interval lies below the better constant's error; None if unknown."""
        if self.constants is None or self.tested is None:
            return None
        return self.tested.high < self.constants.better

    @property
    def utility(self) -> str:
        """What is known of the error, in words.

        Where far fewer agents have answered than the plan counts on, nothing is promised.
        """
        promise = self.plan.error if self._has_answers else None
        measured = "not tested" if self.tested is None else "measured"
        known = f"{measured}, no promise" if promise is None else f"promised at most {promise:g}"
        if self.tested is None:
            return known
        if self.constants is None:
            return f"{known}, constants unknown"
        return f"{known}, {self.comparison} than a constant's {self.constants.better:.3f}"

    @property
    def _has_answers(self) -> bool:
        """Whether as many have answered every test as the plan counts on; a promise needs them."""
        plan = self.plan
        return not any(
            falls_short(test.agents, plan.agents_per_test, plan.response_rate)
            for test in self.estimates
        )

    @property
    def comparison(self) -> str:
        """How the error compares with that of the better constant, in words.

        It is "better", "not surely better" or "not better", and "not known to be better" where the
        errors of the constants are unknown.
        """
        if self.constants is None or self.tested is None:
            return "not known to be better"
        if self.beats_constants:
            return "better"
        return "not surely better" if self.tested.value < self.constants.better else "not better"

    def __repr__(self) -> str:
        tested, utility = self.tested, self.utility
        error = "error unknown"
        if tested is not None:
            error = f"error {tested.value:.3f} in [{tested.low:.3f}, {tested.high:.3f}]"
        rounds = f"{self.rounds:,} of {self.plan.rounds:,} rounds ({self.stopped})"
        private = "not private" if self.record is None else f"epsilon={self.record.epsilon:g}"
        return f"TransferResult({error}, {utility}, {rounds}, {private})"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
