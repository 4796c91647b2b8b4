"""What a run or a release needs, by what is assumed: public and fixed before any data is read."""

from __future__ import annotations

from typing import Any, Literal, overload

from .._support.notes import note
from .._support.validate import one_of, refuse
from .automatic import Auto, is_auto, note_useless
from .boosted import BoostedPlan, plan_boosted
from .certificate_plan import CertificatePlan, plan_certificate
from .plans import Output, Plan, Schedule, WeighBy
from .run_planning import plan_rounds
from .source_alone import SourcePlan, plan_source

Assumption = Literal["realizable", "boostable", "nothing"]
_ASSUMPTIONS = ("realizable", "boostable", "nothing")


@overload
def plan(
    learner: Any,
    *,
    assume: Literal["realizable"],
    error: float,
    chi2: float,
    epsilon: float,
    beta: float = 0.05,
    opt: float = 0.0,
) -> SourcePlan: ...


@overload
def plan(
    learner: Any,
    *,
    assume: Literal["boostable"],
    error: float,
    chi2: float,
    epsilon: float,
    delta: float,
    beta: float = 0.05,
    opt: float = 0.0,
) -> BoostedPlan: ...


@overload
def plan(
    learner: Any = None,
    *,
    assume: Literal["nothing"],
    alpha: float,
    agents_epsilon: float,
    beta: float = 0.05,
    response_rate: float = 1.0,
) -> CertificatePlan: ...


@overload
def plan(
    learner: Any,
    *,
    assume: None = None,
    alpha: float | Auto = "auto",
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
) -> Plan: ...


def plan(
    learner: Any = None,
    *,
    assume: Assumption | None = None,
    error: float | None = None,
    alpha: float | Auto | None = "auto",
    epsilon: float | None = None,
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
) -> Plan | SourcePlan | BoostedPlan | CertificatePlan:
    """Computes what a promised error needs, or all parameters of SubsampleTestReweigh.

    What can be promised depends on what is assumed of source and class:

    - assume="realizable": one hypothesis of the class is right on the source, or errs there by at
      most opt. A private learner on the source alone then keeps the promise `error`, without
      agents (SourcePlan).
    - assume="boostable": however the records of the source are reweighed, one hypothesis errs there
      by at most opt, though none need be good on all of them. The majority vote of reweighed rounds
      then keeps the promise, without agents (BoostedPlan); it is no hypothesis of the class.
    - assume="nothing": no error can be promised. Agents say how large it is, to within alpha
      (CertificatePlan).
    - assume=None: all parameters of SubsampleTestReweigh, and the paper's for comparison (Plan).

    A plan of SubsampleTestReweigh finds one hypothesis of the class. Without chi2 the settings that
    are "auto" follow public rules from n, N, the epsilons and the size of the class, and
    `Plan.chosen` names them. With chi2 alone, the numbers n and rounds, kappa and eta follow from
    it. The target error is then promised for a learner of a finite class (one with `hypotheses`) if
    opt is 0. With kappa or rounds given, or a number for eta, privacy is promised for n records and
    the error is only measured. A UtilityWarning says where the noise or the tests of a plan hide
    every difference between hypotheses, and where assume="realizable", which assumes no more, keeps
    the same promise with fewer records.

    Args:
        learner: An object with sample_size(alpha, beta, epsilon), with_epsilon(epsilon) and
            privacy, such as an ExponentialLearner. Or a learner with steps, such as PrivateSGD,
            that has learn_weighted(X, y, weights), step (its mechanism), steps, batch_size and
            calibrate(epsilon, delta, n, kappa, rounds). For the latter the error is only measured,
            since no bound on all hypotheses at once is known here; it needs n, unless it has a
            noise_multiplier, from which n then follows. assume="realizable" and
            "boostable" take the former kind, and "nothing" takes any learner or None.
        assume: What is known of the class: "realizable", "boostable", "nothing" or None, as above.
        error: Error on the target to promise, in (0, 1), for assume="realizable" or "boostable";
            None else.
        alpha: Half width of the interval of every test, and error of the learner on its draws, in
            (0, 1). If tests may accept, 3 alpha + opt must be below 1/2. "auto" takes the smallest
            for which N agents are enough, and then uses all of them; 0.1 without N.
        epsilon: Privacy parameter of the curator's records, above 0. math.inf protects none of
            them, takes no delta and plans Algorithm 1.
        beta: Failure probability, in (0, 1): of the whole promise, or without `assume` of each of
            three or four parts, so that the promise fails with probability at most 3 beta or 4
            beta. `failure` of the plan says it.
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
            promised. With assume="realizable" or "boostable" it is a bound on the least error of
            the class on the source, or on each reweighing of its records, and the error is
            promised.
        draws: Records that a round draws, in place of sample_size. It is refused for a private plan
            and for a learner with steps. A promised error presumes that the learner errs by at most
            alpha on so many draws.
        weigh_by: What the weights follow: "errors" of the hypotheses' predictions, or the "losses"
            that hypotheses have of their own.
        response_rate: Public share of the agents asked who will answer, in (0, 1]; that of
            `local.RemoteAgents`. More agents are asked accordingly. What is promised presumes that
            each agent answers with at least this probability, whatever the answer.

    Returns:
        The plan, whose attributes n, N, error and failure say what it needs and promises.

    Raises:
        ParameterError: A parameter is out of range, lacks another one that it needs, or excludes
            another one; the learner is none of the two kinds; no number of draws is private for n
            records; or `2**62` records would not do.

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
        >>> transfer.plan(learner, assume="realizable", error=0.1, chi2=0.35, epsilon=1.0).n
        1042
        >>> goal = {"alpha": 0.05, "epsilon": 1.0, "delta": 1e-6, "agents_epsilon": 2.0}
        >>> plan = transfer.plan(learner, n=20_000, kappa=0.1, eta=0.5, rounds=20, **goal)
        >>> plan.draws > 5_000, plan.learner_epsilon, plan.N
        (True, 0.015625, 20978)
        >>> plan = transfer.plan(learner, n=20_000, N=9_000, **{**goal, "alpha": "auto"})
        >>> plan.rounds, plan.schedule, plan.N, plan.chosen
        (6, 'every', 9000, ('alpha', 'kappa', 'eta', 'rounds', 'schedule', 'output'))
    """
    _check_settings(
        assume,
        error=error,
        alpha=alpha,
        chi2=chi2,
        kappa=kappa,
        eta=eta,
        rounds=rounds,
        n=n,
        N=N,
        draws=draws,
    )
    if assume == "realizable":
        return plan_source(learner, error=error, chi2=chi2, epsilon=epsilon, beta=beta, opt=opt)
    if assume == "boostable":
        return plan_boosted(
            learner,
            error=error,
            chi2=chi2,
            epsilon=epsilon,
            delta=delta,
            beta=beta,
            opt=opt,
        )
    if assume == "nothing":
        return plan_certificate(
            alpha=alpha, beta=beta, agents_epsilon=agents_epsilon, response_rate=response_rate
        )
    made = plan_rounds(
        learner,
        alpha=alpha,
        epsilon=epsilon,
        beta=beta,
        delta=delta,
        agents_epsilon=agents_epsilon,
        chi2=chi2,
        kappa=kappa,
        eta=eta,
        rounds=rounds,
        n=n,
        N=N,
        schedule=schedule,
        output=output,
        opt=opt,
        draws=draws,
        weigh_by=weigh_by,
        response_rate=response_rate,
    )
    note_useless(made)
    _note_source(learner, made)
    return made


# The settings that a plan takes whose promise rests on an assumption.
_TAKEN = {
    "realizable": ("error", "chi2"),
    "boostable": ("error", "chi2"),
    "nothing": ("alpha",),
    None: ("alpha", "chi2", "kappa", "eta", "rounds", "n", "N", "draws"),
}


def _check_settings(assume: str | None, **settings: Any) -> None:
    """Refuses settings that this kind of plan has no use for."""
    if assume is not None:
        one_of("assume", assume, _ASSUMPTIONS)
    for name, value in settings.items():
        if not (value is None or is_auto(value) or name in _TAKEN[assume]):
            refuse(name, value, f"a plan with assume = {assume!r} has none: leave it out")


def _note_source(learner: Any, made: Plan) -> None:
    """Warns where the learner alone keeps the promise of a run with fewer records."""
    is_promised = made.error is not None and made.error < 1 and made.failure < 1
    if not is_promised or made.chi2 is None or made.delta is None:
        return
    alone = plan_source(
        learner,
        error=made.error,
        chi2=made.chi2,
        epsilon=made.epsilon,
        beta=made.failure,
        opt=0.0,
    )
    if alone.n < made.n:
        promise = f"an error of {alone.error:g} at chi2 = {made.chi2:g}"
        case = "if one hypothesis is right on the source, as is assumed here,"
        few = f"the learner alone promises it with n = {alone.n:,} and N = 0"
        note(f"n = {made.n:,} promises {promise}, but {case} {few}: assume='realizable'")
