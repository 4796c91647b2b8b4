"""Plans of Subsample-Test-Reweigh: its parameters, public and fixed before any data is read."""

from __future__ import annotations

import math
from typing import Any, Literal

from .. import _core, accounting
from .._support.notes import note
from .._support.types import Variant
from .._support.validate import number, probability_or_one, refuse
from ..accounting.calibration import WINDOW
from ..exceptions import ParameterError
from ..local.randomizers.noisy import GaussianRandomizer
from .automatic import (
    added_error,
    count_paper_rounds,
    note_useless,
    plan_paper,
    settle,
    size_tests,
    use_all_agents,
)
from .learner import (
    check_private,
    composes,
    compute_sample_size,
    serve_promise,
    serve_records,
    validate_steps,
)
from .plans import (
    Auto,
    Output,
    Plan,
    RunGoal,
    Schedule,
    WeighBy,
    validate_goal,
    validate_rounds,
    validate_tests,
)
from .printed import paper_rounds, settle_printed
from .source_plan import plan_source


def plan_rounds(
    learner: Any,
    *,
    alpha: float | Auto | None = "auto",
    epsilon: float,
    beta: float = 0.05,
    delta: float | None = None,
    agents_epsilon: float | None = None,
    chi2: float | None = None,
    kappa: float | Auto | None = "auto",
    eta: float | Literal["paper", "auto"] | None = "auto",
    rounds: int | Auto | None = "auto",
    n: int | None = None,
    N: int | None = None,
    schedule: Schedule | Auto = "auto",
    output: Output | Auto = "auto",
    opt: float = 0.0,
    draws: int | None = None,
    weigh_by: WeighBy = "errors",
    response_rate: float = 1.0,
    variant: Variant = "tight",
) -> Plan:
    """Computes all parameters of SubsampleTestReweigh, and the paper's for comparison.

    Such a run finds one hypothesis of the class. Without chi2 the settings that are "auto" follow
    public rules from n, N, the epsilons and the size of the class, and `Plan.chosen` names them.
    With chi2 alone, the numbers n and rounds, kappa and eta follow from it. The target error is
    then promised for a learner of a finite class (one with `hypotheses`) if opt is 0. With kappa or
    rounds given, or a number for eta, privacy is promised for n records and the error is only
    measured. A UtilityWarning says where the noise or the tests of a plan hide every difference
    between hypotheses, and where `plan_source`, which assumes no more, keeps the same promise with
    fewer records.

    Args:
        learner: An object with sample_size(alpha, beta, epsilon), with_epsilon(epsilon) and
            privacy, such as an ExponentialLearner. Or a learner with steps, such as PrivateSGD,
            that has learn_weighted(X, y, weights), step (its mechanism), steps, batch_size and
            calibrate(epsilon, delta, n, kappa, rounds). For the latter the error is only measured,
            since no bound on all hypotheses at once is known here; it needs n, unless it has a
            noise_multiplier, from which n then follows.
        alpha: Half width of the interval of every test, and error of the learner on its draws, in
            (0, 1). If tests may accept, 3 alpha + opt must be below 1/2. "auto" takes the smallest
            for which N agents are enough, and then uses all of them; 0.1 without N.
        epsilon: Privacy parameter of the curator's records, above 0. math.inf protects none of
            them, takes no delta and plans Algorithm 1.
        beta: Failure probability, in (0, 1), of each of three or four parts, so that the promise
            fails with probability at most 3 beta or 4 beta. `failure` of the plan says it.
        delta: Privacy parameter of the curator's records, in (0, 1); None if epsilon is math.inf.
        agents_epsilon: Privacy parameter of each agent's answer, above 0; None for an SQ oracle.
        chi2: Public bound, at least 0, on E_target[target / source] - 1, the chi-squared divergence
            of target from source. None without a bound.
        kappa: Density of the weights, in (0, 1]: no draw holds a record with a probability above
            about 1 / (kappa n). "auto" takes alpha / (8 (chi2 + 1)) with chi2, and without it the
            density at which the error that privacy adds to a round is about kappa. A run that is
            not private has no projection, unless rounds is "auto", too.
        eta: Step size of the weights, in (0, 4]. "paper" takes alpha / 8 with the paper's number of
            rounds. "auto" takes 1 where another number is chosen without chi2, else 3 alpha / 2.
        rounds: Largest number of rounds, at least 1. "auto" computes it from chi2; without chi2 it
            takes 3 + ln(1 / kappa), rounded up.
        n: Number of the curator's records; None where it follows from the other parameters.
        N: Number of agents that there are; None if alpha says how many are needed.
        schedule: When hypotheses are tested: after "every" round; after the rounds 1, 2, 4, ...
            and, for some random rounds, at the end ("geometric"); at the end only ("final"); or
            "never", for the majority vote of a run without agents. There are log2(1 / beta) random
            rounds. "auto" takes "geometric"; where a number is chosen without chi2, "every" up to
            10 rounds and "final" beyond.
        output: The first hypothesis whose estimated error is at most 3 alpha + opt, or, if there is
            none, that with the smallest estimate ("tested"); that with the "smallest" estimate; or
            the "majority" vote of all rounds. "auto" takes "tested"; where a number is chosen
            without chi2, "smallest"; and "majority" if the schedule is "never".
        opt: Least error of the class on the target, in [0, 1). 0 says that one hypothesis is right
            on source and target alike. Above 0 the learner is planned agnostically, and no error is
            promised.
        draws: Records that a round draws, in place of sample_size. It is refused for a private plan
            and for a learner with steps. A promised error presumes that the learner errs by at most
            alpha on so many draws.
        weigh_by: What the weights follow: "errors" of the hypotheses' predictions, or the "losses"
            that hypotheses have of their own.
        response_rate: Public share of the agents asked who will answer, in (0, 1]; that of
            `local.RemoteAgents`. More agents are asked accordingly. What is promised presumes that
            each agent answers with at least this probability, whatever the answer.
        variant: "tight", or "paper" for Algorithm 2 as printed, for epsilon = inf Algorithm 1, and
            for a PrivateSGD of batch_size 1 Algorithm 4 with the steps R that the learner has, the
            printed noise, and losses as shares of the largest, which stands for L D:
            kappa, eta, the draws of a learner of epsilon 1, the agents of a test and its threshold.
            alpha and beta lie in (0, 1/8), chi2 must be given, and rounds may be fewer than
            printed, but then no error is promised. Agents send Gaussian answers with the noise that
            is printed for agents_epsilon and delta. The records n are the fewest with which the
            printed rounds are (epsilon, delta)-DP; `paper.n` is what is printed. A response rate
            below 1 is refused.

    Returns:
        The plan, whose attributes n, N, error and failure say what it needs and promises.

    Raises:
        ParameterError: A parameter is out of range, lacks another one that it needs, or excludes
            another one; the learner is none of the two kinds; no number of draws is private for n
            records; `2**62` records would not do; or the printed answers do not keep agents_epsilon
            and delta.

    Guarantee:
        A run of SubsampleTestReweigh with this plan is (epsilon, delta)-DP under "replace_one" for
        n records or more, by `accounting.delta`. `fit` verifies it again for its own number of
        records.

    Cost:
        A few seconds for a private run, for the search of the learner's own epsilon.

    Source:
        Kohen and Sheffet 2022, Algorithm 2 and Theorems 4.2 and 4.3. Fewer records are needed by
        advanced joint convexity and privacy-loss distributions, fewer rounds by the step size 3
        alpha / 2, and fewer agents by binary randomized response and fewer tests.

    Examples:
        >>> from hdp_fast import learners, transfer
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(8, 2), epsilon=1.0)
        >>> goal = {"alpha": 0.05, "epsilon": 1.0, "delta": 1e-6, "agents_epsilon": 2.0}
        >>> plan = transfer.plan_rounds(learner, n=20_000, kappa=0.1, eta=0.5, rounds=20, **goal)
        >>> plan.draws > 5_000, plan.learner_epsilon, plan.N
        (True, 0.015625, 20978)
        >>> plan = transfer.plan_rounds(learner, n=20_000, N=9_000, **{**goal, "alpha": "auto"})
        >>> plan.rounds, plan.schedule, plan.N, plan.chosen
        (6, 'every', 9000, ('alpha', 'kappa', 'eta', 'rounds', 'schedule', 'output'))
    """
    # Nothing else is local yet.
    asked = dict(locals())
    made = make_plan(validate_goal(**asked))
    note_useless(made)
    _note_source(learner, made)
    return made


def make_plan(goal: RunGoal) -> Plan:
    """The plan for a validated goal, whose settings it settles first.

    Raises:
        ParameterError: As for `plan_rounds`.
    """
    if goal.variant == "paper":
        return _plan_printed(goal)
    goal, chosen = settle(goal)
    goal = validate_tests(goal)
    derived = (
        goal.chi2 is not None
        and goal.kappa is None
        and goal.rounds is None
        and goal.eta in (None, "paper")
    )
    goal = _settle_updates(goal)
    tests, agents, constants = size_tests(goal)
    if "alpha" in chosen and goal.N is not None and agents:
        tests, agents, constants = use_all_agents(goal.N, tests, constants)
    find = _find_private_draws if goal.is_private else _find_open_draws
    records, draws, learner_epsilon = find(goal, derived)
    enough = _records_of_lemma(goal) if derived else None
    records = max(records, enough or 0)
    if goal.kappa is not None and (goal.n or records > 1):
        # DenseWeights would refuse them, but only after the records have been gathered.
        _core.check_weights(records, goal.kappa, goal.eta, goal.rounds)
    return Plan(
        **goal.plan_fields(),
        n=records,
        N=tests * agents + constants,
        draws=draws,
        learner_epsilon=learner_epsilon,
        tests=tests,
        agents_per_test=agents,
        agents_for_constants=constants,
        error=goal.error if enough and not goal.opt else None,
        failure=goal.failure,
        paper=plan_paper(goal),
        added_error=added_error(goal.learner, draws, learner_epsilon),
        chosen=chosen,
    )


def _plan_printed(goal: RunGoal) -> Plan:
    """The plan of Algorithm 1, 2 or 4 as printed."""
    goal, n = settle_printed(goal), goal.n
    assert goal.chi2 is not None
    printed = paper_rounds(alpha=goal.alpha, chi2=goal.chi2, private=goal.is_private)
    epsilon = None
    if goal.is_private:
        epsilon = _check_answers(goal)
    elif goal.agents_epsilon is not None:
        refuse("agents_epsilon", goal.agents_epsilon, "Algorithm 1 asks an SQ oracle alone")
    paper = plan_paper(goal)
    if paper is None:
        draws = compute_sample_size(goal.learner, goal.alpha, goal.beta / printed)
        records, agents = n or 1, 0
    else:
        draws, agents = paper.draws, paper.agents_per_test
        records = _records_of_printed(goal, draws)
        _core.check_weights(max(records, n or 0), goal.density, goal.eta, goal.rounds)
    is_whole = goal.rounds == printed and not goal.opt and not composes(goal.learner)
    is_kept = is_whole and _keeps_promise(goal, draws, agents)
    enough = _records_of_lemma(goal) if is_kept else None
    return Plan(
        **goal.plan_fields(),
        n=records,
        N=agents * goal.rounds,
        draws=draws,
        learner_epsilon=epsilon,
        tests=goal.rounds,
        agents_per_test=agents,
        agents_for_constants=0,
        error=goal.error if enough and (n or records) >= enough else None,
        failure=goal.failure,
        paper=paper,
        added_error=added_error(goal.learner, draws, epsilon),
    )


def _check_answers(goal: RunGoal) -> float | None:
    """The printed epsilon of the learner on its draws; None for one with steps.

    Raises:
        ParameterError: The printed answers do not protect the agents.
    """
    if goal.agents_epsilon is None:
        refuse("agents_epsilon", None, "the printed answers need it")
    if goal.response_rate < 1:
        refuse("response_rate", goal.response_rate, "variant = 'paper' needs all answers")
    assert goal.delta is not None
    GaussianRandomizer.printed(goal.agents_epsilon, goal.delta, (0, 1))
    return None if composes(goal.learner) else 1.0


def _records_of_printed(goal: RunGoal, draws: int) -> int:
    """The fewest records with which all rounds, as printed, are private by the accountant."""
    if composes(goal.learner):
        # The paper has ln(kappa n) at least ln 4; what is printed there is at least this noise.
        return max(_records_of_steps(goal), math.ceil(4 / goal.density))
    check_private(goal.learner)
    (epsilon, delta), base = goal.loss, goal.learner.with_epsilon(1.0).privacy
    rate = accounting.largest_rate(
        base, draws=draws, rounds=goal.rounds, epsilon=epsilon, delta=delta
    )
    return math.ceil(1.0001 / (goal.density * WINDOW * rate))


def _keeps_promise(goal: RunGoal, draws: int, agents: int) -> bool:
    """Whether the printed draws and agents are proved to be enough."""
    beta = goal.beta / goal.rounds
    if compute_sample_size(goal.learner, goal.alpha, beta) > draws:
        return False
    if goal.agents_epsilon is None or goal.delta is None:
        return True
    answers = GaussianRandomizer.printed(goal.agents_epsilon, goal.delta, (0, 1))
    return answers.agents_needed(alpha=goal.alpha, beta=beta) <= agents


def _note_source(learner: Any, made: Plan) -> None:
    """Warns where the learner alone keeps the promise of a run with fewer records."""
    is_promised = made.error is not None and made.error < 1 and made.failure < 1
    if not is_promised or made.error is None or made.chi2 is None or made.delta is None:
        return
    alone = plan_source(
        learner, error=made.error, chi2=made.chi2, epsilon=made.epsilon, beta=made.failure
    )
    if alone.n < made.n:
        promise = f"an error of {alone.error:g} at chi2 = {made.chi2:g}"
        case = "if one hypothesis is right on the source, as is assumed here,"
        few = f"the learner alone promises it with n = {alone.n:,} and N = 0"
        note(f"n = {made.n:,} promises {promise}, but {case} {few}: see transfer.plan_source")


def _find_private_draws(goal: RunGoal, derived: bool) -> tuple[int, int, float | None]:
    """The records that a private run needs, the draws of a round, and the learner's epsilon."""
    if composes(goal.learner):
        draws = math.prod(validate_steps(goal.learner))
        return goal.n or _records_of_steps(goal), draws, None
    if derived:
        return serve_promise(goal, agnostic=goal.opt > 0)
    return serve_records(goal, _require_records(goal.n, "without chi2"))


def _find_open_draws(goal: RunGoal, _derived: bool) -> tuple[int, int, None]:
    """The same of a run that protects no records."""
    if composes(goal.learner):
        if goal.draws is not None:
            refuse("draws", goal.draws, "a learner with steps draws steps * batch")
        size = math.prod(validate_steps(goal.learner))
    elif goal.draws is not None:
        size = goal.draws
    else:
        size = compute_sample_size(goal.learner, goal.alpha, goal.beta / goal.rounds)
    return goal.n or 1, size, None


def _require_records(n: int | None, case: str) -> int:
    if not n:
        raise ParameterError(f"n = {n}, but {case} it must be given")
    return n


def _records_of_steps(goal: RunGoal) -> int:
    """The records for which the noise that a learner with steps brings is enough."""
    has_noise = getattr(goal.learner, "noise_multiplier", None) is not None
    if not has_noise or not hasattr(goal.learner, "records_needed"):
        _require_records(None, "for a learner with steps and no noise of its own")
    return int(
        goal.learner.records_needed(
            epsilon=goal.epsilon, delta=goal.delta, kappa=goal.kappa, rounds=goal.rounds
        )
    )


def _settle_updates(goal: RunGoal) -> RunGoal:
    """Step size, rounds and density; those not given keep the regret of a round at 3 alpha / 8."""
    eta, rounds = _choose_step_size(goal), _choose_rounds(goal)
    # DenseWeights would refuse the first round too many, after all rounds before it were spent.
    _core.check_weights(1, 1.0, eta, rounds)
    return goal._replace(eta=eta, rounds=rounds, kappa=_choose_density(goal))


def _choose_step_size(goal: RunGoal) -> float:
    eta: float | str | None = goal.eta
    if isinstance(eta, str) and eta != "paper":
        raise ParameterError(f"eta = {eta!r}, but it must be a number, None or 'paper'")
    if goal.rounds is None and goal.chi2 is None:
        raise ParameterError("rounds = None, but without chi2 it must be given")
    alpha = goal.alpha
    return alpha / 8 if eta == "paper" else 1.5 * alpha if eta is None else number("eta", eta)


def _choose_rounds(goal: RunGoal) -> int:
    eta: float | str | None = goal.eta
    if goal.rounds is not None:
        return validate_rounds(goal.rounds)
    assert goal.ratio is not None
    if eta == "paper":
        return count_paper_rounds(goal)
    if eta is not None:
        raise ParameterError(f"rounds = None, but with eta = {eta} it must be given")
    return math.ceil(32 * math.log(8 * goal.ratio / goal.alpha) / (9 * goal.alpha**2))


def _choose_density(goal: RunGoal) -> float | None:
    if goal.kappa is not None:
        return probability_or_one("kappa", goal.kappa)
    if not goal.is_private:
        return None
    if goal.ratio is None:
        raise ParameterError("kappa = None, but without chi2 it must be given")
    return goal.alpha / (8 * goal.ratio)


def _records_of_lemma(goal: RunGoal) -> int | None:
    """The records among which some dense weights stand for the target, for all hypotheses at once.

    This is the paper's Lemma 3.2 for a finite class. The sum of the weights is bounded by
    Bernstein's inequality, each hypothesis by the one for sums of nonnegative variables, and all by
    a union bound.
    """
    hypotheses = getattr(goal.learner, "hypotheses", None)
    if hypotheses is None or goal.ratio is None:
        return None
    total = 150 * math.log(4 / goal.beta)
    single = 32 * (math.log(2 * len(hypotheses)) - math.log(goal.beta))
    return math.ceil(goal.ratio / goal.alpha**2 * max(total, single))
