"""Plans of a run: those of this package, and what the paper prints for the same promise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .._support.json_text import JsonText
from .goal import Goal, Output, Schedule, WeighBy
from .learner_epsilon import composes, compute_sample_size, validate_steps


@dataclass(frozen=True)
class PaperPlan:
    """The parameters that the paper's Algorithm 2 prints for the same promise.

    For a learner with steps, such as PrivateSGD, they are those of its Algorithm 4, with as many
    single draws as the steps have in all. Losses are then in units of the largest loss, and the
    noise that the algorithm prints is not part of the plan.

    Attributes:
        n: Records of the curator.
        N: Agents.
        rounds: Largest number of rounds.
        kappa: Density of the weights: no record weighs more than 1 / (kappa n).
        eta: Step size of the weights.
        draws: Records that the learner gets in a round, with epsilon = 1 or with the noise of
            Algorithm 4.
        agents_per_test: Agents asked about one hypothesis.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.PrivateSGD(loss="logistic", steps=20, batch_size=50, epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": 1.0, "delta": 1e-6, "chi2": 1.0, "agents_epsilon": 2.0}
        >>> plan = transfer.plan_rounds(learner, n=100_000, **goal)
        >>> plan.rounds, plan.paper.rounds
        (1805, 93721)
        >>> plan.agents_per_test, plan.paper.agents_per_test
        (557, 23974)
    """

    n: int
    N: int
    rounds: int
    kappa: float
    eta: float
    draws: int
    agents_per_test: int


@dataclass(frozen=True, repr=False)
class Plan(JsonText):
    """Parameters of a run of SubsampleTestReweigh; they are public and made without data.

    Attributes:
        alpha: Half width of the interval of every test, and error of the learner on its draws, in
            (0, 1).
        beta: Failure probability, in (0, 1), of each of three or four parts: learners, tests,
            sample, and the choice among random rounds where there is one.
        opt: Least error of the class on the target, in [0, 1) (the paper's alpha_H).
        epsilon: Privacy parameter of the curator's records; math.inf if they are not protected.
        delta: Privacy parameter of the curator's records; None if they are not protected.
        agents_epsilon: Privacy parameter of each agent's answer; None for an SQ oracle.
        response_rate: Share of the agents asked who are expected to answer, in (0, 1].
        chi2: Bound on the chi-squared divergence of target from source; None if none was passed.
        schedule: When hypotheses are tested: "every", "geometric", "final" or, without agents,
            "never".
        output: Which hypothesis is released: "tested", "smallest" or "majority".
        n: Number of records needed. Where parameters were passed from which no number follows, it
            is the n that was passed, or 1 for a run that is not private.
        N: Number of agents needed if no test accepts before the last round, those for the constants
            included; 0 for an SQ oracle and where no hypothesis is tested.
        rounds: Planned number of rounds. Privacy is charged for all of them.
        kappa: Density of the weights, in (0, 1]: no draw holds a record with probability above
            about 1 / (kappa n). None if the weights are not projected.
        eta: Step size of the weights, in (0, 4].
        draws: Records that the learner gets in a round.
        learner_epsilon: Privacy parameter of the learner on its draws. None for a run that is not
            private, and for a learner with steps, whose noise `fit` calibrates.
        tests: Largest number of hypotheses that are tested.
        agents_per_test: Agents asked about each hypothesis, of whom about the share
            `response_rate` answers; 0 for an SQ oracle.
        agents_for_constants: Agents kept for the errors of always 0 and always 1, which they
            estimate to within the smaller of 2 alpha and 1/2, except with probability beta. After
            an early end, agents that no test has asked are asked as well, up to `agents_per_test`.
        error: Bound on the target error of the released hypothesis, which fails with probability
            `failure` at most, if agents answer as often as `response_rate` says; None where the
            error is only measured.
        failure: Probability with which `error` may fail: 3 beta or 4 beta.
        paper: The parameters that the paper prints. None without chi2, with an SQ oracle, and for a
            run that is not private.
        weigh_by: What the weights follow: "errors" of the hypotheses' predictions, or the "losses"
            that hypotheses have of their own.
        added_error: About how much larger an error on its draws privacy makes a round's hypothesis,
            2 ln|H| / (draws learner_epsilon). It should be well below the error of a constant.
            None for a run that is not private and for a learner of no finite class.
        chosen: Names of the settings that were chosen automatically.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.PrivateSGD(loss="logistic", steps=20, batch_size=50, epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": 1.0, "delta": 1e-6, "agents_epsilon": 2.0}
        >>> plan = transfer.plan_rounds(learner, n=20_000, kappa=0.5, eta=0.5, rounds=8, **goal)
        >>> plan.tests, plan.agents_per_test, plan.N
        (9, 508, 4652)
        >>> plan.tested_rounds, plan.final_tests, plan.promised
        ((1, 2, 4, 8), 5, False)
    """

    alpha: float
    beta: float
    opt: float
    epsilon: float
    delta: float | None
    agents_epsilon: float | None
    response_rate: float
    chi2: float | None
    schedule: Schedule
    output: Output
    n: int
    N: int
    rounds: int
    kappa: float | None
    eta: float
    draws: int
    learner_epsilon: float | None
    tests: int
    agents_per_test: int
    agents_for_constants: int
    error: float | None
    failure: float
    paper: PaperPlan | None
    weigh_by: WeighBy = "errors"
    added_error: float | None = None
    chosen: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kappa = "no projection" if self.kappa is None else f"kappa={self.kappa:.3g}"
        weights = f"{self.rounds:,} rounds, {kappa}, eta={self.eta:.3g}"
        tests = f"{self.tests:,} tests ({self.schedule}, {self.output}) to within {self.alpha:.3g}"
        known = "measured" if self.error is None else f"at most {self.error:.3g}"
        added = "" if self.added_error is None else f", privacy adds about {self.added_error:.2g}"
        chosen = f"; automatic: {', '.join(self.chosen)}" if self.chosen else ""
        sizes = f"n={self.n:,}, N={self.N:,}, epsilon={self.epsilon:g}"
        return f"Plan({sizes}, {weights}, {tests}; error {known}{added}{chosen})"

    @property
    def promised(self) -> bool:
        """Whether the error is promised, not only measured; privacy is promised in either case."""
        return self.error is not None

    @property
    def tested_rounds(self) -> tuple[int, ...]:
        """The rounds whose hypothesis is tested before the next round."""
        if self.schedule in ("final", "never"):
            return ()
        if self.schedule == "every":
            return tuple(range(1, self.rounds + 1))
        return tuple(1 << k for k in range(self.rounds.bit_length()))

    @property
    def final_tests(self) -> int:
        """Number of tests after the last round, of random rounds' hypotheses or of the vote."""
        return self.tests - len(self.tested_rounds)


def plan_paper(goal: Goal) -> PaperPlan | None:
    """Computes the paper's parameters for the same goal; None unless private and with agents.

    Raises:
        ParameterError: The learner has no sample_size.
    """
    if goal.ratio is None or goal.delta is None or goal.agents_epsilon is None:
        return None
    alpha, beta = goal.alpha, goal.beta
    rounds, kappa = count_paper_rounds(alpha, goal.ratio), alpha / (8 * goal.ratio)
    logarithm = math.log(2 / goal.delta)
    tested = 4 * logarithm * math.log(8 * rounds / beta) / (goal.agents_epsilon * alpha) ** 2
    agents = math.ceil(tested)
    if composes(goal.learner):
        draws = math.prod(validate_steps(goal.learner))
        printed = 52 * draws * rounds / (8 * kappa**2 * goal.epsilon)
        records = math.sqrt(printed * math.log(printed))
    else:
        draws = _sample_size(goal.learner, alpha, beta / rounds)
        records = draws * math.sqrt(288 * rounds * logarithm) / (goal.epsilon * kappa)
    return PaperPlan(math.ceil(records), agents * rounds, rounds, kappa, alpha / 8, draws, agents)


def count_paper_rounds(alpha: float, ratio: float) -> int:
    """The number of rounds that the paper prints, for chi2 = ratio - 1."""
    return math.ceil(128 * math.log2(8 * ratio / alpha) / alpha**2)


def _sample_size(learner: Any, alpha: float, beta: float) -> int:
    if hasattr(learner, "paper_sample_size"):
        return int(learner.paper_sample_size(alpha, beta, 1.0).printed)
    return compute_sample_size(learner, alpha, beta)
