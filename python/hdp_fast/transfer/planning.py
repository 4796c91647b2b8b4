"""Parameters of Subsample-Test-Reweigh, all of them public and fixed before any data is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from .. import local
from .._support.validate import (
    nonnegative_int,
    number,
    positive,
    probability,
    probability_or_one,
    refuse,
)
from ..exceptions import ParameterError
from .learner_epsilon import Search, composes, sample_of, steps_of

Schedule = Literal["every", "geometric", "final"]
Output = Literal["tested", "smallest", "majority"]

_LARGEST = 1 << 49
# Logarithms of weights go no further.
_DEEPEST = 5_600


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
        epsilon: of the curator's records; None if they are not protected.
        delta: of the curator's records; None if they are not protected.
        agents_epsilon: of each agent's answer; None for an oracle.
        chi2: bound on the chi-squared divergence of target from source; None if not given.
        schedule: "every", "geometric" or "final".
        output: "tested", "smallest" or "majority".
        n: records needed; with no promise about the error, the n that was given.
        N: agents needed if no test is passed before the last round; 0 for an oracle.
        rounds: planned rounds; privacy is charged for all of them.
        kappa: density of the weights; None for no projection.
        eta: step size of the weights.
        draws: records that the learner gets in a round.
        learner_epsilon: privacy parameter of the learner on its draws; None if not private, and
            for a learner with steps, whose noise fit calibrates.
        tests: hypotheses that are tested at most.
        agents_per_test: agents asked about each.
        error: bound on the target error of the outcome, except with probability `failure`; None
            where it is only measured.
        failure: see error.
        paper: the same with the paper's constants; None without chi2 or for a run that is not
            private.
    """

    alpha: float
    beta: float
    opt: float
    epsilon: float | None
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


def plan(
    learner: Any,
    *,
    alpha: float,
    beta: float = 0.05,
    epsilon: float | None = None,
    delta: float | None = None,
    agents_epsilon: float | None = None,
    chi2: float | None = None,
    kappa: float | None = None,
    eta: float | Literal["paper"] | None = None,
    rounds: int | None = None,
    n: int | None = None,
    schedule: Schedule = "geometric",
    output: Output = "tested",
    opt: float = 0.0,
    private: bool = True,
    draws: int | None = None,
) -> Plan:
    """All parameters of SubsampleTestReweigh, the paper's beside ours where they compare.

    With chi2 alone, n, kappa, eta and rounds follow and the target error is promised. With kappa,
    eta or rounds given, privacy is promised for n records and the error only measured.

    learner: has sample_size(alpha, beta, epsilon), with_epsilon(epsilon) and privacy; or, like
    stochastic gradient descent, learn_weighted(X, y, weights), step (its mechanism), steps, batch
    and calibrate(epsilon, delta, n, kappa, rounds): for these the error is measured only, since
    no bound on all hypotheses at once is known here, and n must be given, unless the learner has a
    noise, for which n then is enough. alpha: in
    (0, 1); beta: in (0, 1). epsilon, delta: of the curator's records. agents_epsilon: of an answer;
    None for an SQ oracle. chi2: bound on E_target[target / source] - 1, at least 0. kappa: in
    (0, 1]; eta: in (0, 4], "paper" for alpha / 8 and the paper's rounds; rounds: at least 1. n:
    records at hand. schedule: when hypotheses are tested: "every" round, "geometric" (rounds 1, 2,
    4, ... and log2(1 / beta) random ones at the end) or only those at the end ("final"). output:
    the first hypothesis whose estimate is at most 3 alpha + opt ("tested"), that with the
    "smallest" estimate, or the "majority" vote of all. opt: least error of the class on the target;
    above 0 the learner is planned agnostically and nothing is promised. 0 says that one hypothesis
    is right on source and target alike. private: False plans
    Algorithm 1, where `draws` replaces sample_size.

    Guarantee: a run with this plan is (epsilon, delta)-DP for n records or more, by
        accounting.delta.
    Raises: ParameterError.
    Cost: a few seconds, for the search of the learner's own epsilon; no data.
    Source: Kohen and Sheffet 2022, Algorithm 2 and Theorems 4.2, 4.3; fewer records by advanced
        joint convexity and privacy-loss distributions, fewer rounds by the step size 3 alpha / 2,
        fewer agents by binary randomized response and fewer tests.
    """
    alpha, beta = probability("alpha", alpha), probability("beta", beta)
    opt = probability("opt", opt, zero=True)
    _choice("schedule", schedule, ("every", "geometric", "final"))
    _choice("output", output, ("tested", "smallest", "majority"))
    free = chi2 is None or not (kappa is None and rounds is None and eta in (None, "paper"))
    ratio = None if chi2 is None else 1 + _divergence(chi2)
    step, length = _steps(alpha, ratio, eta, rounds)
    _check_depth(step, length)
    density = _density(alpha, ratio, kappa, private)
    tests, each = _tests(schedule, output, length, alpha, beta, agents_epsilon)
    held = None if n is None else nonnegative_int("n", n)
    if private and draws is not None:
        refuse("draws", draws, "a private plan finds them itself")
    own: float | None
    if private:
        epsilon, failing = positive("epsilon", epsilon), probability("delta", delta)
        assert density is not None
        if composes(learner):
            m, own = math.prod(steps_of(learner)), None
            needed = held or _records_of_steps(learner, length, density, epsilon, failing)
        else:
            search = Search(learner, alpha, beta, length, density, epsilon, failing)
            if free:
                own, m, needed = search.for_records(_given(held, "without chi2"))
            else:
                own, m, needed = search.for_promise(opt > 0)
    else:
        _refuse_privacy(epsilon, delta)
        own, failing, needed = None, None, held or 1
        m = _draws(learner, draws, alpha, beta / length)
    error = None if free or opt > 0 else _promise(schedule, output, alpha)
    if not free and ratio is not None:
        enough = _records_of_lemma(learner, alpha, beta, ratio)
        error = error if enough else None
        needed = max(needed, enough or 0)
    if density is not None and (held or needed > 1):
        _check_size(needed, density)
    return Plan(
        alpha=alpha,
        beta=beta,
        opt=opt,
        epsilon=epsilon,
        delta=failing,
        agents_epsilon=agents_epsilon,
        chi2=chi2,
        schedule=schedule,
        output=output,
        n=needed,
        N=tests * each,
        rounds=length,
        kappa=density,
        eta=step,
        draws=m,
        learner_epsilon=own,
        tests=tests,
        agents_per_test=each,
        error=error,
        failure=(3 if schedule == "every" or output == "majority" else 4) * beta,
        paper=_paper(learner, alpha, beta, epsilon, failing, agents_epsilon, ratio),
    )


def _given(n: int | None, case: str) -> int:
    if not n:
        raise ParameterError(f"n = {n}, but {case} it must be given")
    return n


def _records_of_steps(learner: Any, rounds: int, kappa: float, epsilon: float, delta: float) -> int:
    """Records for which the noise that a learner with steps was given is enough."""
    if getattr(learner, "noise", None) is None or not hasattr(learner, "records_needed"):
        _given(None, "for a learner with steps and no noise of its own")
    asked = {"epsilon": epsilon, "delta": delta, "kappa": kappa, "rounds": rounds}
    return int(learner.records_needed(**asked))


def _draws(learner: Any, draws: int | None, alpha: float, beta: float) -> int:
    """Draws of a round that is not private."""
    if composes(learner):
        if draws is not None:
            refuse("draws", draws, "a learner with steps draws steps * batch")
        return math.prod(steps_of(learner))
    return nonnegative_int("draws", draws) if draws is not None else sample_of(learner, alpha, beta)


def _divergence(chi2: float) -> float:
    found = number("chi2", chi2)
    if not 0 <= found < math.inf:
        refuse("chi2", chi2, "it must be finite and at least 0")
    return found


def _steps(
    alpha: float, ratio: float | None, eta: float | str | None, rounds: int | None
) -> tuple[float, int]:
    """Step size and rounds of a regret of 3 alpha / 8 a round, unless they are given."""
    if isinstance(eta, str) and eta != "paper":
        raise ParameterError(f"eta = {eta!r}, but it must be a number, None or 'paper'")
    if rounds is None and ratio is None:
        raise ParameterError("rounds = None, but without chi2 it must be given")
    paper = eta == "paper"
    step = alpha / 8 if paper else 1.5 * alpha if eta is None else number("eta", eta)
    if not 0 < step <= 4:
        refuse("eta", eta, "it must lie in (0, 4]")
    if rounds is not None:
        length = nonnegative_int("rounds", rounds)
        if not 0 < length < 1 << 40:
            raise ParameterError(f"rounds = {length}, but it must be at least 1 and below 2**40")
        return float(step), length
    assert ratio is not None
    if eta is not None and not paper:
        raise ParameterError(f"rounds = None, but with eta = {eta} it must be given")
    divergence = 8 * ratio / alpha
    if paper:
        return step, _paper_rounds(alpha, ratio)
    return step, math.ceil(32 * math.log(divergence) / (9 * alpha**2))


def _check_depth(step: float, rounds: int) -> None:
    # DenseWeights would refuse the round that goes too deep, when all before it have been spent.
    if not step * rounds < _DEEPEST:
        rule = f"rounds * eta = {step * rounds:g} must stay below {_DEEPEST:,}"
        raise ParameterError(f"rounds = {rounds}, but {rule}")


def _check_size(n: int, kappa: float) -> None:
    # DenseWeights would refuse them, when they have been gathered.
    if not (kappa * n >= 1 and kappa * n * n <= _LARGEST):
        rule = "kappa n must be at least 1 and kappa n**2 at most 2**49"
        raise ParameterError(f"kappa = {kappa:g} with n = {n:,}, but {rule}")


def _paper_rounds(alpha: float, ratio: float) -> int:
    return math.ceil(128 * math.log2(8 * ratio / alpha) / alpha**2)


def _density(alpha: float, ratio: float | None, kappa: float | None, private: bool) -> float | None:
    if kappa is not None:
        return probability_or_one("kappa", kappa)
    if not private:
        return None
    if ratio is None:
        raise ParameterError("kappa = None, but without chi2 it must be given")
    return alpha / (8 * ratio)


def _tests(
    schedule: str,
    output: str,
    rounds: int,
    alpha: float,
    beta: float,
    agents_epsilon: float | None,
) -> tuple[int, int]:
    """How many hypotheses are tested at most, and by how many agents each."""
    along = {"every": rounds, "geometric": rounds.bit_length(), "final": 0}[schedule]
    random = 0 if schedule == "every" else max(1, math.ceil(math.log2(1 / beta)))
    tests = along + (1 if output == "majority" else random)
    if agents_epsilon is None:
        return tests, 0
    epsilon = positive("agents_epsilon", agents_epsilon)
    return tests, local.agents_needed(alpha=alpha, beta=beta / tests, epsilon=epsilon)


def _promise(schedule: str, output: str, alpha: float) -> float:
    certain = schedule == "every" or output == "majority"
    return (4 if certain else 6) * alpha


def _records_of_lemma(learner: Any, alpha: float, beta: float, ratio: float) -> int | None:
    """Records for which some dense weights stand for the target, for every hypothesis at once.

    The paper's Lemma 3.2 for a finite class: the weights' sum by Bernstein's inequality, each
    hypothesis by that for sums of variables of at least 0, and a union bound.
    """
    hypotheses = getattr(learner, "hypotheses", None)
    if hypotheses is None:
        return None
    total = 150 * math.log(4 / beta)
    each = 32 * (math.log(2 * len(hypotheses)) - math.log(beta))
    return math.ceil(ratio / alpha**2 * max(total, each))


def _paper(
    learner: Any,
    alpha: float,
    beta: float,
    epsilon: float | None,
    delta: float | None,
    agents_epsilon: float | None,
    ratio: float | None,
) -> PaperPlan | None:
    if ratio is None or epsilon is None or delta is None or agents_epsilon is None:
        return None
    rounds, kappa = _paper_rounds(alpha, ratio), alpha / (8 * ratio)
    logs = math.log(2 / delta)
    each = 4 * logs * math.log(8 * rounds / beta) / (agents_epsilon * alpha) ** 2
    agents = math.ceil(each)
    if composes(learner):
        draws = math.prod(steps_of(learner))
        printed = 52 * draws * rounds / (8 * kappa**2 * epsilon)
        records = math.sqrt(printed * math.log(printed))
        return PaperPlan(
            math.ceil(records), agents * rounds, rounds, kappa, alpha / 8, draws, agents
        )
    if hasattr(learner, "paper_sample_size"):
        draws = learner.paper_sample_size(alpha, beta / rounds, 1.0).printed
    else:
        draws = sample_of(learner, alpha, beta / rounds)
    records = draws * math.sqrt(288 * rounds * logs) / (epsilon * kappa)
    return PaperPlan(math.ceil(records), agents * rounds, rounds, kappa, alpha / 8, draws, agents)


def _refuse_privacy(epsilon: object, delta: object) -> None:
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value is not None:
            refuse(name, value, "private=False protects no record of the curator: leave it out")


def _choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        refuse(name, value, f"it must be one of {', '.join(allowed)}")
