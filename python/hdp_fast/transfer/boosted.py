"""A plan without agents for a class that is boostable: the majority vote of reweighed rounds."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from .. import accounting
from .._support.validate import finite_nonnegative, positive, probability, refuse
from ..accounting.mechanisms import BoundedRange
from ..exceptions import ParameterError
from .automatic import added_error
from .learner import LEARNER_EPSILONS, check_private, composes, compute_sample_size, serve_promise
from .plans import Plan, RunGoal
from .source_plan import validate_source_error

# What the window of the weights may add to the regret of a round; it is 3/4 2**-12 / (kappa n).
_WINDOW_REGRET = 2e-4
# Shares of what is allowed that are tried for the vote's error on the records and a round's error.
_TRAINING_SHARES = tuple(share / 20 for share in range(4, 19))
_ROUND_SHARES = tuple(share / 20 for share in range(1, 17))


@dataclass(frozen=True, repr=False)
class BoostedPlan(Plan):
    """A plan of SubsampleTestReweigh that asks no agents: the vote of all rounds is promised.

    It presumes that the class is boostable: whatever weights the rounds reach, some hypothesis errs
    by at most `opt` on the records so weighted. No hypothesis need be good on all records. The
    majority vote then errs on less than the share `kappa` of the records. All votes of so many
    hypotheses err on the source by at most `source_error` if they err so rarely on the records, and
    on the target by at most `error`. Run it with `SubsampleTestReweigh(learner,
    assume="boostable", ...).fit(X, y)`; its result is no hypothesis of the class.

    Attributes:
        alpha: Largest error of a round's hypothesis on the weighted records, opt included.
        beta: Probability with which the promise may fail: half of it for the learners of all
            rounds, half for the records.
        opt: Bound, in [0, 1/2), on the error of the best hypothesis on the records, however they
            are weighted.
        epsilon: Privacy parameter of the curator's records.
        delta: Privacy parameter of the curator's records.
        agents_epsilon: None, since no agents are asked.
        response_rate: 1.
        chi2: Bound on the chi-squared divergence of target from source.
        schedule: "never".
        output: "majority".
        n: Number of the curator's records.
        N: Number of agents, 0.
        rounds: Number of rounds.
        kappa: Density of the weights, and bound on the share of the records on which the vote errs.
        eta: Step size of the weights.
        draws: Records that the learner gets in a round.
        learner_epsilon: Privacy parameter of the learner on its draws.
        tests: 0.
        agents_per_test: 0.
        agents_for_constants: 0.
        error: Bound on the error of the vote on the target.
        failure: Probability with which the error may be larger.
        paper: None.
        weigh_by: "errors".
        added_error: About how much larger an error on its draws privacy makes a round's hypothesis.
        chosen: No names, since all settings follow from the promise.
        variant: "tight".
        source_error: Error on the source that is small enough, above kappa.

    Source:
        The regret of dense weights (Kohen and Sheffet 2022, Section 4, in the form of Theorem 2 on
        the page on dense weights) against the uniform weights on the records on which the vote
        errs, as in boosting.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.ExponentialLearner(learners.Stumps(8), epsilon=1.0)
        >>> goal = {"error": 0.3, "chi2": 0.35, "epsilon": 1.0, "delta": 1e-6, "opt": 0.1}
        >>> plan = transfer.plan_boosted(learner, **goal)
        >>> plan.N, plan.error, plan.kappa < plan.source_error
        (0, 0.3, True)
    """

    source_error: float = 0.0

    def __repr__(self) -> str:
        run = f"the vote of {self.rounds} rounds, epsilon={self.epsilon:g}, delta={self.delta:g}"
        promise = f"error at most {self.error:g} on the target except with probability"
        fit = f"errs by at most {self.opt:g}" if self.opt else "is right"
        case = f"if some hypothesis {fit} however the source is reweighed"
        divergence = f"and chi2 is at most {self.chi2:g}"
        text = f"{run}: {promise} {self.failure:g}, {case} {divergence}"
        return f"BoostedPlan(n={self.n:,}, N=0, {text})"


def plan_boosted(
    learner: Any,
    *,
    error: float,
    chi2: float,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    opt: float = 0.0,
) -> BoostedPlan:
    """Computes rounds, weights and records for which a vote's error on the target is promised.

    It assumes that however the records of the source are reweighed, one hypothesis of the class
    errs there by at most opt, though none need be good on all of them. The majority vote of
    reweighed rounds then keeps the promise, without agents; it is no hypothesis of the class.

    Args:
        learner: A learner of a finite class with sample_size(alpha, beta, epsilon),
            with_epsilon(epsilon) and privacy, such as an ExponentialLearner.
        error: Error on the target to promise, in (0, 1).
        chi2: Public bound, at least 0, on E_target[target / source] - 1, the chi-squared divergence
            of target from source.
        epsilon: Privacy parameter of the curator's records, above 0.
        delta: Privacy parameter of the curator's records, in (0, 1).
        beta: Probability with which the promise may fail, in (0, 1).
        opt: Bound on the least error of the class on each reweighing of the records, in [0, 1/2).

    Returns:
        The plan. Run it with `SubsampleTestReweigh(learner, assume="boostable", ...).fit(X, y)`, of
        the same error, chi2, epsilon, delta, beta and opt, on plan.n records.

    Raises:
        ParameterError: A parameter is out of range, the learner is not of a finite class, or more
            than `2**62` records would be needed.

    Guarantee:
        The run is (epsilon, delta)-DP under "replace_one" for n records or more, by
        `accounting.delta`. `fit` verifies it again for its own number of records.

    Cost:
        Some hundredths of a second, for the search of rounds, weights and the learner's epsilon.

    Source:
        The regret of dense weights against the records on which a vote errs; see BoostedPlan.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.ExponentialLearner(learners.Stumps(8), epsilon=1.0)
        >>> goal = {"error": 0.3, "chi2": 0.35, "epsilon": 1.0, "delta": 1e-6}
        >>> plan = transfer.plan_boosted(learner, **goal)
        >>> plan.n, plan.rounds
        (12242, 12)
    """
    target, divergence = probability("error", error), finite_nonnegative("chi2", chi2)
    own, loss = positive("epsilon", epsilon), probability("delta", delta)
    failure = probability("beta", beta)
    largest = validate_source_error(target, divergence, 0.0)
    if not probability("opt", opt, zero=True) < 0.5:
        refuse("opt", opt, "a class is boostable if it is below .5")
    if composes(learner) or not hasattr(learner, "hypotheses"):
        refuse("learner", learner, "it must be of a finite class, with hypotheses")

    def shape(kappa: float, round_error: float) -> RunGoal:
        rounds = count_rounds(kappa, round_error)
        return RunGoal(
            learner,
            alpha=round_error,
            epsilon=own,
            beta=failure,
            delta=loss,
            chi2=divergence,
            kappa=kappa,
            eta=math.sqrt(8 * math.log(1 / kappa) / rounds),
            rounds=rounds,
            schedule="never",
            output="majority",
            opt=opt,
        )

    goals = [shape(*candidate) for candidate in _list_shapes(largest, opt)]
    goal = min(goals, key=lambda each: _forecast(each, largest))
    records, draws, learner_epsilon = serve_promise(_find_round(goal), agnostic=False)
    return BoostedPlan(
        **goal.plan_fields(),
        n=max(records, _count_for_vote(goal, largest)),
        N=0,
        draws=draws,
        learner_epsilon=learner_epsilon,
        tests=0,
        agents_per_test=0,
        agents_for_constants=0,
        error=target,
        failure=failure,
        paper=None,
        added_error=added_error(learner, draws, learner_epsilon),
        source_error=largest,
    )


def count_rounds(kappa: float, round_error: float) -> int:
    """The fewest rounds after which the vote errs on less than kappa n records.

    Where it errs on kappa n records or more, half of the rounds err on each of these. By the regret
    against the uniform weights on them, rounds / 2 is then at most rounds round_error + ln(1 /
    kappa) / eta + eta rounds / 8, whose least value is reached at eta = sqrt(8 ln(1 / kappa) /
    rounds).
    """
    margin = 0.5 - round_error - _WINDOW_REGRET
    return math.floor(math.log(1 / kappa) / (2 * margin**2)) + 1


def count_for_votes(
    size: int, rounds: int, training_error: float, source_error: float, beta: float
) -> int:
    """The records from which no vote errs more on the source, though so little on the records.

    There are as many votes as multisets of hypotheses. Each errs by so much less on the records
    than on the source with probability at most exp(-n KL(training_error, source_error)), by
    Chernoff's bound, and all together with probability at most beta / 2.
    """
    votes = math.lgamma(size + rounds) - math.lgamma(size) - math.lgamma(rounds + 1)
    k, a = training_error, source_error
    rate = k * math.log(k / a) + (1 - k) * math.log((1 - k) / (1 - a))
    return math.ceil((votes + math.log(2 / beta)) / rate * (1 + 1e-9))


def _list_shapes(source_error: float, opt: float) -> list[tuple[float, float]]:
    """Candidates for the density of the weights and the error of a round."""
    shapes = [
        (share * source_error, opt + part * (0.5 - opt))
        for share, part in itertools.product(_TRAINING_SHARES, _ROUND_SHARES)
    ]
    shapes = [(kappa, error) for kappa, error in shapes if error + 2 * _WINDOW_REGRET < 0.5]
    if not shapes:
        raise ParameterError(f"opt = {opt:g}, but it must be further below .5")
    return shapes


def _find_round(goal: RunGoal) -> RunGoal:
    """What a round's learner must keep: the rest of its error beyond opt, and half of beta."""
    return goal._replace(alpha=goal.alpha - goal.opt, beta=goal.beta / 2)


def _count_for_vote(goal: RunGoal, source_error: float) -> int:
    size = len(goal.learner.hypotheses)
    return count_for_votes(size, goal.rounds, goal.density, source_error, goal.beta)


def _forecast(goal: RunGoal, source_error: float) -> float:
    """About how many records a candidate needs: what the central limit theorem says of privacy."""
    mu = accounting.gaussian_mu(*goal.loss)
    half = 4 if isinstance(check_private(goal.learner), BoundedRange) else 2
    alpha, beta = goal.alpha - goal.opt, goal.beta / 2 / goal.rounds
    draws = min(
        2
        * math.sinh(each / half)
        * compute_sample_size(goal.learner, alpha, beta, each, agnostic=False, opt=goal.opt)
        for each in LEARNER_EPSILONS
    )
    private = draws * math.sqrt(goal.rounds) / (goal.density * mu)
    return max(private, _count_for_vote(goal, source_error))
