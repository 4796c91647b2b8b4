"""Plans of a run: ours, and what the paper prints for the same promise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from .learner_epsilon import composes, compute_sample_size, validate_steps

Schedule = Literal["every", "geometric", "final"]
Output = Literal["tested", "smallest", "majority"]


@dataclass(frozen=True)
class PaperPlan:
    """What the paper's Algorithm 2 prints for the same promise.

    For a learner with steps its Algorithm 4, with as many single draws as the steps have in all;
    losses are in units of the largest, and the noise that it prints is not part of the plan.

    Attributes:
        n: records of the curator.
        N: agents.
        rounds: at most.
        kappa: density of the weights.
        eta: step size of the weights.
        draws: records that the learner gets in a round, with epsilon = 1 or Algorithm 4's noise.
        agents_per_test: agents asked about one hypothesis.
    """

    n: int
    N: int
    rounds: int
    kappa: float
    eta: float
    draws: int
    agents_per_test: int


@dataclass(frozen=True)
class Plan:
    """Parameters of a run of SubsampleTestReweigh; no data is involved.

    Attributes:
        alpha: half width of every test, and the error of the learner on its draws.
        beta: failure probability of each of learners, tests and sample, hence of about a quarter of
            the whole.
        opt: least error of the class on the target (the paper's alpha_H).
        epsilon: of the curator's records; math.inf if they are not protected.
        delta: of the curator's records; None if they are not protected.
        agents_epsilon: of each agent's answer; None for an oracle.
        chi2: bound on the chi-squared divergence of target from source; None if not given.
        schedule: "every", "geometric" or "final".
        output: "tested", "smallest" or "majority".
        n: records needed; with no promise about the error, the n that was given.
        N: agents needed if no test is passed before the last round, those for the constants
            included; 0 for an oracle.
        rounds: planned rounds; privacy is charged for all of them.
        kappa: density of the weights; None for no projection.
        eta: step size of the weights.
        draws: records that the learner gets in a round.
        learner_epsilon: privacy parameter of the learner on its draws; None if not private, and
            for a learner with steps, whose noise fit calibrates.
        tests: hypotheses that are tested at most.
        agents_per_test: agents asked about each.
        agents_for_constants: agents kept for the errors of always 0 and always 1, to within 2 alpha
            but for beta; after an early end those that no test has asked, up to agents_per_test.
        error: bound on the target error of the outcome, except with probability `failure`; None
            where it is only measured.
        failure: see error.
        paper: the same with the paper's constants; None without chi2 or for a run that is not
            private.
    """

    alpha: float
    beta: float
    opt: float
    epsilon: float
    delta: float | None
    agents_epsilon: float | None
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

    @property
    def promised(self) -> bool:
        """Whether the error is promised, or only measured; privacy is promised in either case."""
        return self.error is not None

    @property
    def tested_rounds(self) -> tuple[int, ...]:
        """Rounds whose hypothesis is tested at once."""
        if self.schedule == "final":
            return ()
        if self.schedule == "every":
            return tuple(range(1, self.rounds + 1))
        return tuple(1 << k for k in range(self.rounds.bit_length()))

    @property
    def final_tests(self) -> int:
        """Tests after the last round: of random iterates, or of the vote."""
        return self.tests - len(self.tested_rounds)


def plan_paper(
    learner: Any,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float | None,
    agents_epsilon: float | None,
    ratio: float | None,
) -> PaperPlan | None:
    """The paper's parameters for chi2 = ratio - 1; None unless private and with agents.

    Raises: ParameterError for a learner without sample_size.
    """
    if ratio is None or delta is None or agents_epsilon is None:
        return None
    rounds, kappa = count_paper_rounds(alpha, ratio), alpha / (8 * ratio)
    logarithm = math.log(2 / delta)
    tested = 4 * logarithm * math.log(8 * rounds / beta) / (agents_epsilon * alpha) ** 2
    agents = math.ceil(tested)
    if composes(learner):
        draws = math.prod(validate_steps(learner))
        printed = 52 * draws * rounds / (8 * kappa**2 * epsilon)
        records = math.sqrt(printed * math.log(printed))
    else:
        draws = _sample_size(learner, alpha, beta / rounds)
        records = draws * math.sqrt(288 * rounds * logarithm) / (epsilon * kappa)
    return PaperPlan(math.ceil(records), agents * rounds, rounds, kappa, alpha / 8, draws, agents)


def count_paper_rounds(alpha: float, ratio: float) -> int:
    """The rounds that the paper prints, for chi2 = ratio - 1."""
    return math.ceil(128 * math.log2(8 * ratio / alpha) / alpha**2)


def _sample_size(learner: Any, alpha: float, beta: float) -> int:
    if hasattr(learner, "paper_sample_size"):
        return int(learner.paper_sample_size(alpha, beta, 1.0).printed)
    return compute_sample_size(learner, alpha, beta)
