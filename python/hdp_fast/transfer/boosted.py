"""A plan without agents for a class that is boostable: the majority vote of reweighed rounds."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import accounting
from .._support.validate import positive, probability, refuse
from ..accounting.mechanisms import BoundedRange
from ..exceptions import ParameterError
from .automatic import added_error
from .learner_epsilon import (
    LEARNER_EPSILONS,
    Search,
    check_private,
    composes,
    compute_sample_size,
)
from .plans import Plan
from .source_alone import validate_promise, validate_source_error

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
        source_error: Error on the source that is small enough, above kappa.

    Source:
        The regret of dense weights (Kohen and Sheffet 2022, Section 4, in the form of Theorem 2 on
        the page on dense weights) against the uniform weights on the records on which the vote
        errs, as in boosting.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.ExponentialLearner(learners.Stumps(8), epsilon=1.0)
        >>> goal = {"error": 0.3, "chi2": 0.35, "epsilon": 1.0, "delta": 1e-6, "opt": 0.1}
        >>> plan = transfer.plan(learner, assume="boostable", **goal)
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


class _Shape(NamedTuple):
    """A candidate: density of the weights, error of a round on its draws, number of rounds."""

    kappa: float
    round_error: float
    rounds: int


def plan_boosted(
    learner: Any,
    *,
    error: float | None,
    chi2: float | None,
    epsilon: float | None,
    delta: float | None,
    beta: float,
    opt: float,
) -> BoostedPlan:
    """Computes rounds, weights and records for which a vote's error on the target is promised.

    Raises:
        ParameterError: A parameter is out of range, the learner is not of a finite class, or more
            than `2**62` records would be needed.
    """
    target, divergence = validate_promise(error, chi2)
    own, loss = positive("epsilon", epsilon), probability("delta", delta)
    failure = probability("beta", beta)
    largest = validate_source_error(target, divergence, 0.0)
    if not probability("opt", opt, zero=True) < 0.5:
        refuse("opt", opt, "a class is boostable if it is below .5")
    if composes(learner) or not hasattr(learner, "hypotheses"):
        refuse("learner", learner, "assume = 'boostable' needs one of a finite class")
    budget = (own, loss, failure)
    shape = min(
        _list_shapes(largest, opt), key=lambda each: _forecast(learner, each, largest, opt, budget)
    )
    search = Search(
        learner, shape.round_error - opt, failure / 2, shape.rounds, shape.kappa, own, loss, opt
    )
    sample = search.serve_promise(agnostic=False)
    general = count_for_votes(len(learner.hypotheses), shape.rounds, shape.kappa, largest, failure)
    return BoostedPlan(
        alpha=shape.round_error,
        beta=failure,
        opt=opt,
        epsilon=own,
        delta=loss,
        agents_epsilon=None,
        response_rate=1.0,
        chi2=divergence,
        schedule="never",
        output="majority",
        n=max(sample.n, general),
        N=0,
        rounds=shape.rounds,
        kappa=shape.kappa,
        eta=math.sqrt(8 * math.log(1 / shape.kappa) / shape.rounds),
        draws=sample.draws,
        learner_epsilon=sample.learner_epsilon,
        tests=0,
        agents_per_test=0,
        agents_for_constants=0,
        error=target,
        failure=failure,
        paper=None,
        added_error=added_error(learner, sample.draws, sample.learner_epsilon),
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


def _list_shapes(source_error: float, opt: float) -> list[_Shape]:
    """Candidates for the density and the error of a round."""
    shapes = []
    for share, part in itertools.product(_TRAINING_SHARES, _ROUND_SHARES):
        kappa, round_error = share * source_error, opt + part * (0.5 - opt)
        if round_error + 2 * _WINDOW_REGRET < 0.5:
            shapes.append(_Shape(kappa, round_error, count_rounds(kappa, round_error)))
    if not shapes:
        raise ParameterError(f"opt = {opt:g}, but it must be further below .5")
    return shapes


def _forecast(
    learner: Any,
    shape: _Shape,
    source_error: float,
    opt: float,
    budget: tuple[float, float, float],
) -> float:
    """About how many records a candidate needs: what the central limit theorem says of privacy."""
    epsilon, delta, beta = budget
    mu = accounting.gaussian_mu(epsilon, delta)
    half = 4 if isinstance(check_private(learner), BoundedRange) else 2
    draws = min(
        2
        * math.sinh(each / half)
        * compute_sample_size(
            learner,
            shape.round_error - opt,
            beta / 2 / shape.rounds,
            each,
            agnostic=False,
            opt=opt,
        )
        for each in LEARNER_EPSILONS
    )
    private = draws * math.sqrt(shape.rounds) / (shape.kappa * mu)
    size = len(learner.hypotheses)
    return max(private, count_for_votes(size, shape.rounds, shape.kappa, source_error, beta))
