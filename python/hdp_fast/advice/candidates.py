"""The candidates: from records alone, with agents, from a public source; in order of price."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from ..labels import MethodChoice, choose_method
from ..stability.plans import members_needed
from . import signals
from .estimates import ESTIMATES
from .methods import (
    Call,
    FirstRows,
    Method,
    Name,
    Setting,
    agents_of,
    first_reason,
    lack_agents,
    lack_records,
    model_of,
    privacy_of,
    write_flags,
    write_number,
)
from .sizes import Sizes, World, list_worlds

# Half width of a test that tells next to nothing.
_WIDEST = 0.45


def _lack_statistics(sizes: Sizes) -> str | None:
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    return lack_records(sizes) or _misfit(sizes)


def _misfit(sizes: Sizes) -> str | None:
    """Why the pool cannot stand for the records' second moments; None if it can."""
    if sizes.predicts_number:
        return "it labels classes"
    if not sizes.pool:
        return "there is no pool"
    if sizes.target == "shifted":
        return "the pool is of another population"
    choice = _choose_labeling(sizes)
    return None if choice.method == "statistics" else choice.reason


@lru_cache(maxsize=1024)
def _choose_labeling(sizes: Sizes) -> MethodChoice:
    return choose_method(
        n=sizes.n,
        columns=sizes.d,
        classes=sizes.classes,
        points=sizes.pool,
        members=1 << 50,
        epsilon=sizes.epsilon,
        delta=sizes.delta,
    )


def _lose_statistics(sizes: Sizes, world: World) -> float:
    if sizes.target == "same":
        return signals.lose_linear(sizes, world, signals.sums_signal(sizes))
    # A tenth of the budget tests the pool; where it does not fit, a descent learns from the rest.
    rest = signals.sums_signal if world.overlap == 1 else signals.clear_signal
    return signals.lose_linear(sizes, world, 0.9 * rest(sizes))


def _explain_statistics(sizes: Sizes) -> str:
    signal = write_number(_choose_labeling(sizes).signal)
    tested = "" if sizes.target == "same" else "; a tenth of the budget tests the pool"
    return f"signal n mu / (K sqrt(d)) = {signal}, enough from about 5 on{tested}"


def _call_statistics(sizes: Sizes) -> Call:
    population = "same" if sizes.target == "same" else "tested"
    labeler = Call(
        "labels.StatisticsLabeler",
        **privacy_of(sizes),
        classes=range(sizes.classes),
        population=population,
    )
    return labeler.then("fit", Name("X"), Name("y"), Name("pool"))


def _lose_model(sizes: Sizes, world: World) -> float:
    return signals.lose_linear(sizes, world, signals.clear_signal(sizes))


def _explain_model(sizes: Sizes) -> str:
    if sizes.epsilon == math.inf:
        return f"no noise; n / d = {write_number(sizes.n / sizes.d)} records a column"
    clear = write_number(signals.clear_signal(sizes))
    steps = signals.descent_plan(sizes).steps
    return f"signal n mu / sqrt((d + 1) (K - 1)) = {clear}, {steps} steps on all records"


def _write_fit(sizes: Sizes) -> str | None:
    if sizes.classes > 2:
        return None  # their names are not known
    return f"hdp-fast fit private.csv {write_flags(sizes)} --output model.json"


def _write_label(sizes: Sizes, method: str) -> str | None:
    if sizes.classes > 2:
        return None
    return f"hdp-fast label private.csv pool.csv --method {method} {write_flags(sizes)}"


def _write_statistics(sizes: Sizes) -> str | None:
    # The command asks whether the populations agree; that is what "tested" does, too.
    return _write_label(sizes, "statistics" if sizes.target == "same" else "auto")


def _write_votes(sizes: Sizes, members: int, queries: int) -> str | None:
    label = _write_label(sizes, "votes")
    bottoms = signals.unstable_votes(queries)
    flags = f"--members {members} --queries {queries} --max-unstable {bottoms} --table vote"
    flags = f"--estimator logistic {flags}"
    # The command answers on all points of the pool.
    is_offered = sizes.learner == "linear" and queries == sizes.pool
    return f"{label} {flags}" if label is not None and is_offered else None


def _write_source(sizes: Sizes) -> str | None:
    flags = "--schema schema.json --epsilon inf"
    return None if sizes.classes > 2 else f"hdp-fast fit source.csv {flags} --output model.json"


def _write_adaptation(sizes: Sizes) -> str | None:
    return f"hdp-fast adapt source.csv private.csv {write_flags(sizes)} --output model.json"


def _lack_finite(sizes: Sizes) -> str | None:
    if sizes.learner != "finite":
        return "the class is not finite"
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    return None if sizes.n else "there are no private records"


def _explain_finite(sizes: Sizes) -> str:
    excess = signals.finite_excess(sizes, sizes.n, sizes.epsilon)
    text = "excess error 2 ln|H| / (epsilon n) + sqrt(ln|H| / (2 n))"
    shift = "" if sizes.target == "same" else "; useless if the target follows a minority's rule"
    return f"{text} = {write_number(excess)} on the records{shift}"


def _call_finite(sizes: Sizes) -> Call:
    return _exponential(sizes.epsilon).then("learn", Name("X"), Name("y"))


def _exponential(epsilon: float) -> Call:
    return Call("learners.ExponentialLearner", Name("hypotheses"), epsilon=epsilon)


def _lack_votes(sizes: Sizes) -> str | None:
    if sizes.source == "public" or not sizes.n:
        return "there are no private records of the source"
    if sizes.learner == "finite":
        return "the class is finite"
    if sizes.predicts_number:
        return "they are on classes"
    if sizes.epsilon == math.inf:
        return "nothing is to be protected"
    if sizes.n < 2 * signals.MEMBERS[0]:
        return f"{signals.MEMBERS[0]} members need two records each"
    return signals.lack_table(sizes) if sizes.pool else "there is no pool to label"


def _members(sizes: Sizes) -> Iterable[Setting]:
    members = [some for some in signals.MEMBERS if 2 * some <= sizes.n]
    queries = {min(sizes.pool, most) for most in signals.QUERIES}
    return list(itertools.product(members, sorted(queries)))


def _explain_votes(sizes: Sizes, members: int, queries: int) -> str:
    flips = signals.flip_unanimous(sizes, members, queries)
    safe = members_needed(signals.design_votes(sizes, queries))
    needed = (
        f"{sizes.d:,} columns"
        if sizes.learner == "linear"
        else f"about {signals.OTHER_COLUMNS} needed"
    )
    return (
        f"{members:,} members of {write_number(sizes.n / members)} records for {needed}; unanimous "
        f"votes on {queries:,} points flip with {write_number(flips)}; {safe:,} members would be "
        "safe"
    )


def _call_votes(sizes: Sizes, members: int, queries: int) -> Call:
    table = "vote" if sizes.classes == 2 else "gaussian"
    labeler = Call(
        "labels.PrivateLabeler",
        Name("learner"),
        **privacy_of(sizes),
        classes=range(sizes.classes),
        queries=queries,
        max_unstable=signals.unstable_votes(queries),
        members=members,
        table=table,
    )
    return labeler.then("fit", Name("X"), Name("y")).then("label", FirstRows("pool", queries))


STATISTICS = Method(
    "statistics",
    _lack_statistics,
    _lose_statistics,
    _explain_statistics,
    _call_statistics,
    write_command=_write_statistics,
)
LINEAR_MODEL = Method(
    "linear model",
    lack_records,
    _lose_model,
    _explain_model,
    model_of,
    write_command=_write_fit,
)
EXPONENTIAL = Method(
    "exponential mechanism", _lack_finite, signals.lose_finite, _explain_finite, _call_finite
)
VOTES = Method(
    "votes",
    _lack_votes,
    signals.lose_votes,
    _explain_votes,
    _call_votes,
    _members,
    _write_votes,
)


def write_errors(sizes: Sizes) -> str:
    """The standard errors of a calibrated intercept."""
    errors = [signals.intercept_error(sizes, world) for world in list_worlds(sizes)]
    low, high = write_number(min(errors)), write_number(max(errors))
    return low if low == high else f"{low} to {high}"


def _lack_calibration(sizes: Sizes) -> str | None:
    return first_reason(
        lack_agents(sizes), signals.lack_calibrating_agents(sizes), lack_records(sizes)
    )


def _explain_calibration(sizes: Sizes) -> str:
    return (
        f"the records' model; agents give slope and intercept, standard error of the intercept "
        f"{write_errors(sizes)}, where a shift may be 1 to 3"
    )


def _call_calibration(sizes: Sizes) -> Call:
    return Call("transfer.calibrate", model_of(sizes), agents_of(sizes))


def _write_hybrid(sizes: Sizes) -> str | None:
    if sizes.epsilon == math.inf:
        return None  # the command protects both
    agents = f"--agents-epsilon {sizes.agents_epsilon!r} --output model.json"
    return f"hdp-fast hybrid panel.csv survey.csv {write_flags(sizes)} {agents}"


def _lack_reweighing(sizes: Sizes) -> str | None:
    if sizes.learner != "finite":
        return "the class is not finite, and reweighing picks one of its hypotheses"
    needed = "reweighing needs records" if not sizes.n else None
    return first_reason(lack_agents(sizes), needed) or _lack_tests(sizes)


def _lack_tests(sizes: Sizes) -> str | None:
    few = "agents are too few for tests of even four rounds"
    return few if signals.half_width(sizes, 4) > _WIDEST else None


def _runs(sizes: Sizes) -> Iterable[Setting]:
    return [run for run in signals.RUNS if signals.half_width(sizes, run[1]) <= _WIDEST]


def _explain_reweighing(sizes: Sizes, kappa: float, rounds: int) -> str:
    epsilon = signals.round_epsilon(sizes, rounds)
    excess = signals.finite_excess(sizes, kappa * sizes.n, epsilon)
    width = signals.half_width(sizes, rounds)
    records = write_number(kappa * sizes.n)
    return (
        f"with kappa = {kappa} an excess error of {write_number(excess)} on {records} records "
        f"in each of {rounds} rounds, tests within {write_number(width)}; finds a rule "
        "that only a part of the records follows; the call chooses kappa and rounds itself"
    )


def _call_reweighing(sizes: Sizes, kappa: float, rounds: int) -> Call:
    epsilon = 1.0 if sizes.epsilon == math.inf else sizes.epsilon
    reweigh = Call("transfer.SubsampleTestReweigh", _exponential(epsilon), **privacy_of(sizes))
    return reweigh.then("fit", Name("X"), Name("y"), agents_of(sizes))


def _lack_agents_alone(sizes: Sizes) -> str | None:
    if sizes.learner == "finite" and sizes.agents < (sizes.size or 1):
        return lack_agents(sizes) or f"{sizes.size:,} hypotheses need an agent each"
    return lack_agents(sizes)


def _lose_agents_alone(sizes: Sizes, world: World) -> float:
    if sizes.learner == "finite":
        return signals.lose_votes_of_agents(sizes, world)
    return signals.lose_descent_of_agents(sizes, world)


def _explain_agents_alone(sizes: Sizes) -> str:
    if sizes.learner == "finite":
        deviation = math.sqrt((sizes.size or 1) / (4 * sizes.agents)) / sizes.advantage
        error = write_number(deviation)
        return f"standard error of a hypothesis's error sqrt(|H| / (4 N)) / tau = {error}"
    signal = write_number(signals.agents_signal(sizes))
    return f"signal tau sqrt(N / d) = {signal}; they are of the target"


def _steps(sizes: Sizes) -> tuple[int, int]:
    """Steps and agents of a step."""
    batch_size = min(32, sizes.agents)
    return sizes.agents // batch_size, batch_size


def _call_agents_alone(sizes: Sizes) -> Call:
    if sizes.learner == "finite":
        return Call("local.learn_by_votes", Name("hypotheses"), agents_of(sizes))
    steps, batch_size = _steps(sizes)
    settings = {"loss": "logistic", "epsilon": math.inf, "steps": steps, "batch_size": batch_size}
    return Call("local.learn_by_descent", Call("learners.PrivateSGD", **settings), agents_of(sizes))


CALIBRATION = Method(
    "calibrate",
    _lack_calibration,
    signals.lose_calibrated,
    _explain_calibration,
    _call_calibration,
    write_command=_write_hybrid,
)
REWEIGHING = Method(
    "reweigh",
    _lack_reweighing,
    signals.lose_reweighed,
    _explain_reweighing,
    _call_reweighing,
    _runs,
)
AGENTS_ALONE = Method(
    "agents alone",
    _lack_agents_alone,
    _lose_agents_alone,
    _explain_agents_alone,
    _call_agents_alone,
)


def _lack_public_source(sizes: Sizes) -> str | None:
    return "the class is finite" if sizes.learner == "finite" else None


def _explain_public_source(sizes: Sizes) -> str:
    return f"{sizes.pool:,} public records for {sizes.d:,} columns; costs no privacy, keeps a shift"


def _call_public_source(sizes: Sizes) -> Call:
    return model_of(sizes, {"epsilon": math.inf}, "source_X, source_y")


def _lack_adaptation(sizes: Sizes) -> str | None:
    two = None if sizes.classes == 2 else "adaptation learns numbers or two classes"
    return first_reason(lack_records(sizes), two)


def _explain_adaptation(sizes: Sizes) -> str:
    k = min(sizes.d, signals.DIRECTIONS)
    if sizes.epsilon == math.inf:
        return f"residuals of the public model in {k} directions, without noise"
    signal = write_number(sizes.n * sizes.mu / (2 * math.sqrt(k)))
    text = f"residuals of the public model in {k} directions, n mu / (2 sqrt({k})) = {signal}"
    return f"{text} times the gap; nothing to mend if there is none"


def _call_adaptation(sizes: Sizes) -> Call:
    task = "regression" if sizes.predicts_number else "classification"
    method = Call("adaptation.MomentAdaptation", **privacy_of(sizes), task=task)
    return method.then("fit", *map(Name, ("source_X", "source_y", "X", "y")))


def _explain_calibrated_source(sizes: Sizes) -> str:
    return f"agents mend slope and intercept, standard error {write_errors(sizes)}"


def _call_calibrated_source(sizes: Sizes) -> Call:
    return Call("transfer.calibrate", _call_public_source(sizes), agents_of(sizes))


def _lack_calibrated_source(sizes: Sizes) -> str | None:
    few = signals.lack_calibrating_agents(sizes)
    return first_reason(lack_agents(sizes), few, _lack_public_source(sizes))


PUBLIC_SOURCE = Method(
    "public source",
    _lack_public_source,
    signals.lose_source,
    _explain_public_source,
    _call_public_source,
    write_command=_write_source,
)
ADAPTATION = Method(
    "adapt",
    _lack_adaptation,
    signals.lose_adapted,
    _explain_adaptation,
    _call_adaptation,
    write_command=_write_adaptation,
)
TARGET_ALONE = Method(
    "linear model",
    lack_records,
    signals.lose_target_alone,
    _explain_model,
    model_of,
    write_command=_write_fit,
)
CALIBRATED_SOURCE = Method(
    "calibrate",
    _lack_calibrated_source,
    signals.lose_calibrated_source,
    _explain_calibrated_source,
    _call_calibrated_source,
)


def _lose_all(sizes: Sizes, world: World) -> float:
    return 1.0


def _explain_constant(sizes: Sizes) -> str:
    if sizes.predicts_number:
        return "one number for everybody leaves all of the variance"
    if sizes.is_estimate:
        guess = "the middle of the bounds" if sizes.learner == "mean" else "equal shares"
        return f"{guess} may be {write_number(sizes.constant_error)} off"
    return f"one label for everybody errs on {write_number(sizes.constant_error)}, or less"


def _call_nothing(sizes: Sizes) -> None:
    return None


def _lack_nothing(sizes: Sizes) -> str | None:
    return None


CONSTANT = Method("constant", _lack_nothing, _lose_all, _explain_constant, _call_nothing)
# What is cheaper stands first, and wins ties.
_PRIVATE = (
    STATISTICS,
    LINEAR_MODEL,
    EXPONENTIAL,
    VOTES,
    CALIBRATION,
    REWEIGHING,
    AGENTS_ALONE,
    CONSTANT,
)
_PUBLIC = (PUBLIC_SOURCE, ADAPTATION, TARGET_ALONE, CALIBRATED_SOURCE, AGENTS_ALONE, CONSTANT)


def list_methods(sizes: Sizes) -> tuple[Method, ...]:
    """All methods for this source, whether they can run or not."""
    if sizes.is_estimate:
        return (*ESTIMATES, CONSTANT)
    return _PUBLIC if sizes.source == "public" else _PRIVATE


def find_call(name: str, numbers: Mapping[str, Any]) -> Call | None:
    """The call of the method of this name at these sizes."""
    sizes = Sizes(**numbers)
    method = next(one for one in list_methods(sizes) if one.name == name)
    _, setting = method.forecast(sizes)
    return method.make_call(sizes, *setting)
