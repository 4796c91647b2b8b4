"""Choice of hyperparameters by private selection, whose cost is part of the guarantee."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import accounting
from .._support import progress as progress_module
from .._support.json_text import to_text
from .._support.notes import keep_result, note_large_delta
from .._support.progress import log_stage
from .._support.types import Floats, RandomState
from .._support.validate import array, number, one_of, probability, refuse, shorten
from ..budget.account import Budget, spend
from ..exceptions import ParameterError, ShapeError
from ..noise import bernoulli, uniform_integers
from ..record import PrivacyRecord, rng_of
from .base import (
    check_records,
    fit_silently,
    map_source,
    note_score,
    note_share,
    validate_settings,
)
from .convex import ConvexAdaptation
from .nonconvex import NonConvexAdaptation
from .privacy import DescentNoise, Privacy, Rng, add_noise, open_stream

Tunable = ConvexAdaptation | NonConvexAdaptation
Method = Literal["private_selection", "not_private"]
_Data = tuple[Any, Any, Any, Any]

_METHODS = ("private_selection", "not_private")
# The guarantee depends on these parameters: tuning must not change them.
_FIXED = ("epsilon", "delta", "numerics", "private", "feature_map")
# A trial's source is mapped already.
_MAPPED = {"feature_map": None}
_ORDERS = tuple(1 + 10 ** (exponent / 20) for exponent in range(-40, 101))
_UNITS = 1 << 20
_LARGEST_SQUARE = 4.0
_TOLERANCE = 1e-4
_MOST_CANDIDATES = 1 << 20
# The parameters that decide which records are refused.
_RECORD_PARAMETERS = ("norm_bound", "loss", "classes", "mu")


@dataclass(frozen=True, eq=False)
class TuningResult:
    """The parameters that tuning chose, and the estimator that was fitted with them.

    Attributes:
        estimator: The fitted estimator. It has the epsilon and delta of the whole tuning, and its
            record.
        parameters: The chosen values, by name of the grid.
        score: Mean loss on the validation records: the squared error of labels in [-1, 1] divided
            by 4, or the share of errors. It lies in [0, 1], but the noise that private validation
            records get may take it beyond either end.
        record: The PrivacyRecord of the private records; None if epsilon = math.inf. With
            method="not_private" it is the record of the chosen fit alone, and its mechanism ends in
            "NO GUARANTEE".

    Examples:
        >>> import math
        >>> import numpy as np
        >>> from hdp_fast.adaptation import ConvexAdaptation, tune
        >>> X = np.linspace(-1, 1, 200)[:, None]
        >>> data = X, 0.2 * X[:, 0], X, 0.9 * X[:, 0]
        >>> model = ConvexAdaptation(epsilon=math.inf, alpha=0.1)
        >>> result = tune(model, {"radius": [0.5, 1.5]}, *data)
        >>> result.parameters, result.score < 0.001, result.record
        ({'radius': 1.5}, True, None)
    """

    estimator: Tunable
    parameters: Mapping[str, Any]
    score: float
    record: PrivacyRecord | None

    def to_json(self) -> str:
        """Returns the choice as a JSON object: parameters, score, record and the estimator.

        The estimator is described by kind, coef, alpha, discrepancy, noise and feature_names, and
        by those of its parameters that are numbers or texts.

        Returns:
            The JSON text.
        """
        fitted = self.estimator
        kept: dict[str, Any] = {
            name: value
            for name, value in fitted.get_params(deep=False).items()
            if isinstance(value, int | float | str)
        }
        names = ("coef", "alpha", "discrepancy", "noise")
        kept |= {name: getattr(fitted, f"{name}_") for name in names}
        kept |= {"kind": type(fitted).__name__, "feature_names": fitted.feature_names_in_}
        return to_text({**vars(self), "estimator": kept})


class _Split(NamedTuple):
    """Records to learn from, and the target's records for validation."""

    training: _Data
    X: NDArray[Any]
    y: NDArray[Any]


def selection_epsilon(rho: float, *, trials: float, delta: float) -> float:
    """Computes the epsilon at delta of the best of a geometric number of trials, each rho-zCDP.

    With g = 1 / trials the number K of trials has `Pr[K = k] = g (1 - g)**(k - 1)`. At every order
    a > 1 the Renyi divergence is at most
    `rho a + 2 (2 sqrt(rho ln trials) - rho) + ln(trials) / (a - 1)`. The second term is that of the
    theorem at its best second order, sqrt(ln(trials) / rho), or 2 ln(trials), at order 1, where
    that best order is below 1.

    Args:
        rho: The zCDP parameter of each trial, finite and above 0.
        trials: Mean number of trials, in (1, 1e9].
        delta: Privacy parameter in (0, 1).

    Returns:
        The epsilon, at least 0.

    Raises:
        ParameterError: An argument is out of range.

    Guarantee:
        To release the best trial, and not the number of trials, is (epsilon, delta)-DP.

    Source:
        Papernot and Steinke 2022, Theorem 2 with eta = 1.

    Examples:
        >>> from hdp_fast.accounting import zcdp_epsilon
        >>> from hdp_fast.adaptation import selection_epsilon
        >>> print(f"one trial: {zcdp_epsilon(0.02, delta=1e-6):.2f}")
        one trial: 0.90
        >>> print(f"best of 20 on average: {selection_epsilon(0.02, trials=20, delta=1e-6):.2f}")
        best of 20 on average: 1.96
    """
    spent, failing = accounting.ZCDP(rho).rho, probability("delta", delta)
    many = math.log(_validate_trials(trials))
    second = max(math.sqrt(many / spent), 1.0)
    again = 2 * ((second - 1) * spent + many / second)
    divergences = [spent * order + again + many / (order - 1) for order in _ORDERS]
    return accounting.renyi_epsilon(_ORDERS, divergences, failing)


@keep_result
def tune(
    estimator: Tunable,
    grid: Mapping[str, Sequence[Any]],
    X_source: ArrayLike,
    y_source: ArrayLike,
    X_target: ArrayLike,
    y_target: ArrayLike,
    *,
    method: Method = "private_selection",
    trials: float | None = None,
    validation: float = 0.2,
    budget: Budget | None = None,
    random_state: RandomState = None,
    progress: bool = False,
) -> TuningResult:
    """Chooses hyperparameters on a part of the target that is not learned from.

    tune holds out a share of the target for validation, drawn independently of the values of the
    records. Each trial fits the estimator with one combination of the grid on the rest and computes
    its mean loss on the validation records. The trial of least loss is returned. Where epsilon =
    math.inf, all combinations are tried, whatever the method.

    tune warns with a UtilityWarning where private selection has a delta above 1 / n for n private
    records, where the chosen `alpha_` is suggested by the discrepancy and near 1, and where the
    score is no better than that of some constant.

    Args:
        estimator: A ConvexAdaptation, or a NonConvexAdaptation whose loss is no callable. Its
            epsilon and delta are those of the whole tuning.
        grid: Names of parameters, each with a sequence of public values; every combination is a
            candidate, at most `2**20` of them. Parameters that the guarantee depends on can't be
            tuned: epsilon, delta, numerics, private and feature_map.
        X_source: Records of the source, finite real numbers of shape (m, d), or what feature_map
            takes.
        y_source: Labels of the source, shape (m,), as fit takes them.
        X_target: Records of the target, finite real numbers of shape (n, d), n at least 2. All
            records are validated before the split. Validation records are projected as fit projects
            private records.
        y_target: Labels of the target, shape (n,), as fit takes them.
        method: "private_selection" tries a random number of random combinations. "not_private"
            tries each combination once, at the estimator's epsilon, and scores it without noise.
        trials: Mean number of trials of "private_selection", in (1, 1e9]. None takes twice the
            number of combinations.
        validation: Share of the target for validation, in (0, 1).
        budget: The budget that the whole tuning is charged to, once and before any trial; None
            charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one who knows it.
        progress: Whether to show a bar (tqdm) over the combinations. It is refused for private
            selection, whose number of trials must not be seen.

    Returns:
        The best trial.

    Raises:
        ShapeError: An array has another shape than described, or the target has one record.
        ParameterError: A parameter or the grid is out of range, the records are refused by fit,
            epsilon is so small that nothing is left for each trial, progress is wanted of private
            selection, or a budget comes without private selection.
        BudgetExceeded: The budget has less than epsilon or delta left.
        ImportError: progress is True and tqdm is not installed.

    Guarantee:
        "private_selection" is (epsilon, delta)-DP for the private records under "replace_one". Each
        trial is rho-zCDP, since a record is used either for learning or for validation, with the
        largest rho at which selection_epsilon is at most epsilon. The number of trials is not
        released and must not be seen; the running time shows it. No budget is spent where tune
        raises, unless a combination needs more noise than can be drawn. "not_private" has no
        guarantee, and its record says so.

    Cost:
        `trials` fits on average, or one for each combination.

    Source:
        Liu and Talwar 2019; Papernot and Steinke 2022, Theorem 2.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import ConvexAdaptation, tune
        >>> X = np.linspace(-1, 1, 1_000)[:, None]
        >>> data = X, 0.2 * X[:, 0], X, 0.9 * X[:, 0]
        >>> model = ConvexAdaptation(epsilon=4, steps=10)
        >>> result = tune(model, {"kappa_1": [0.01, 1.0]}, *data)  # protects the target
        >>> result.parameters["kappa_1"] in (0.01, 1.0), result.record.epsilon
        (True, 4.0)
    """
    candidates = _list_candidates(estimator, grid)
    one_of("method", method, _METHODS)
    privacy = validate_settings(estimator, budget, random_state).privacy
    share = probability("validation", validation)
    X_source, names = map_source(estimator, privacy, X_source, X_target)
    data = _validate_data(estimator, candidates, (X_source, y_source, X_target, y_target), share)
    rng = open_stream(random_state)
    split = _split(data, share, rng)
    if method == "not_private" or not privacy.protects:
        if budget is not None:
            raise ParameterError("budget is given, but only private tuning can be charged to one")
        log_stage("adaptation.tune: %d combinations", len(candidates))
        with progress_module.bar(len(candidates), "fit", progress) as bar:
            best = _tune_without_privacy(estimator, candidates, split, rng, bar)
        log_stage("adaptation.tune: chosen")
        best.estimator.feature_names_in_ = names
        _note_utility(best)
        return best
    if progress:
        rule = "how many private trials there were must not be seen, and a bar would show it"
        refuse("progress", progress, rule)
    mean = _validate_trials(2.0 * len(candidates) if trials is None else trials)
    trial = _calibrate_trial(privacy, mean)
    record = PrivacyRecord(
        mechanism=f"adaptation.tune, {type(estimator).__name__}, {mean:g} trials on average",
        source="Papernot and Steinke 2022, Theorem 2",
        neighbors="replace_one",
        epsilon=privacy.goal.epsilon,
        delta=privacy.delta,
        noise=f"as {type(estimator).__name__} at epsilon = {trial.goal.epsilon:g}, for each trial",
        numerics=privacy.numerics,
        rng=rng_of(random_state),
    )
    private = data[3] if estimator.private == "target" else y_source
    note_large_delta(privacy.delta, len(array("y_source", private)))
    log_stage("adaptation.tune: trials of %d combinations", len(candidates))
    with spend(budget, record):
        best = _select_privately(estimator, candidates, split, trial, 1 / mean, rng)
    log_stage("adaptation.tune: chosen")
    best.estimator.record_, best.estimator.feature_names_in_ = record, names
    _note_utility(best)
    return dataclasses.replace(best, record=record)


def _note_utility(best: TuningResult) -> None:
    """Note where the released choice is of little use; the other trials are not released."""
    if best.estimator.alpha is None:
        note_share(best.estimator.alpha_)
    loss, classes = best.estimator.loss, getattr(best.estimator, "classes", 2)
    note_score(best.score, str(loss), classes if loss == "softmax" else 2)


def _holds_values(values: Any) -> bool:
    try:
        return isinstance(values, Collection) and len(values) > 0
    except TypeError:  # That of an array without an axis.
        return False


def _list_candidates(estimator: Any, grid: Any) -> list[dict[str, Any]]:
    """Return all combinations of parameters, validated as by fit."""
    if not isinstance(estimator, ConvexAdaptation | NonConvexAdaptation):
        refuse("estimator", estimator, "it must be a ConvexAdaptation or a NonConvexAdaptation")
    if not isinstance(grid, Mapping) or not all(map(_holds_values, grid.values())):
        refuse("grid", grid, "it must map names to sequences of values")
    for name in grid:
        if name in _FIXED or name not in estimator.get_params(deep=False):
            rule = "it must be a parameter that the guarantee does not speak of"
            raise ParameterError(f"grid holds {shorten(name)}, but {rule}")
    if math.prod(map(len, grid.values())) > _MOST_CANDIDATES:
        raise ParameterError("grid has over 2**20 combinations, but there must be fewer")
    combinations = itertools.product(*grid.values())
    candidates = [dict(zip(grid, values, strict=True)) for values in combinations]
    for parameters in candidates:
        candidate = _with_parameters(estimator, parameters)
        if callable(candidate.loss):
            raise ParameterError("loss is a callable, but tuning needs predictions")
        validate_settings(candidate)
    return candidates


def _with_parameters(estimator: Tunable, parameters: Mapping[str, Any]) -> Tunable:
    return type(estimator)(**{**estimator.get_params(deep=False), **parameters})


def _validate_trials(value: Any) -> float:
    trials = number("trials", value)
    if not 1 < trials <= 1e9:
        refuse("trials", value, "it must lie in (1, 1e9]")
    return trials


def _validate_data(
    estimator: Tunable, candidates: Sequence[Mapping[str, Any]], data: _Data, share: float
) -> _Data:
    """Validate all records, the source's in the target's space, before any coin splits them."""
    X_source, y_source, X_target, y_target = data
    kinds = _representatives(estimator, candidates)
    for kind in kinds:
        check_records(kind, data)
    X, y = array("X_target", X_target), array("y_target", y_target)
    if len(X) < 2:
        raise ShapeError("X_target has 1 row, but it must be (n, d), n at least 2")
    # Some rules depend on the number of records that there will be to learn from.
    held_out = _count_held_out(share, len(X))
    data = X_source, y_source, X[held_out:], y[held_out:]
    for kind in kinds:
        check_records(kind, data)
    return X_source, y_source, X, y


def _representatives(estimator: Tunable, candidates: Sequence[Mapping[str, Any]]) -> list[Tunable]:
    """Return an estimator for each combination of the parameters that may refuse records."""
    kinds: dict[str, Tunable] = {}
    for parameters in candidates:
        candidate = _with_parameters(estimator, parameters)
        kind = repr([getattr(candidate, name, None) for name in _RECORD_PARAMETERS])
        kinds.setdefault(kind, candidate)
    return list(kinds.values())


def _count_held_out(share: float, n: int) -> int:
    """Return how many of n records are held out for validation."""
    return min(max(round(share * n), 1), n - 1)


def _split(data: _Data, share: float, rng: Rng) -> _Split:
    X_source, y_source, X, y = data
    order = (np.random.default_rng() if rng is None else rng).permutation(len(X))
    held_out, kept = np.split(order, [_count_held_out(share, len(X))])
    return _Split((X_source, y_source, X[kept], y[kept]), X[held_out], y[held_out])


def _calibrate_trial(privacy: Privacy, mean: float) -> Privacy:
    """Return the privacy of each trial with which the whole tuning keeps its own."""

    def composed_epsilon(epsilon: float) -> float:
        mu = privacy.change(epsilon=epsilon).mu()
        return selection_epsilon(mu**2 / 2 * (1 + 1e-9), trials=mean, delta=privacy.delta)

    whole = privacy.goal.epsilon
    bad = whole
    good = bad / 2
    while composed_epsilon(good) > whole:
        bad, good = good, good / 2
        if good < 1e-6 * whole:
            rule = f"with {mean:g} trials nothing is left for each"
            raise ParameterError(f"epsilon = {whole:g}, but {rule}")
    while bad > good * (1 + _TOLERANCE):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if composed_epsilon(middle) <= whole else (good, middle)
    return privacy.change(epsilon=good)


def _select_privately(
    estimator: Tunable,
    candidates: Sequence[Mapping[str, Any]],
    split: _Split,
    trial: Privacy,
    stop: float,
    rng: Rng,
) -> TuningResult:
    """Return the best of a geometric number of trials."""
    best: TuningResult | None = None
    while True:
        chosen = candidates[int(uniform_integers(len(candidates), random_state=rng))]
        fitted = _with_parameters(estimator, {**chosen, "epsilon": trial.goal.epsilon, **_MAPPED})
        fitted = fit_silently(fitted, split.training, rng)
        noise = None
        if estimator.private == "target":
            noise = DescentNoise(0.0, 1 / trial.mu(), trial.exact, trial.goal.epsilon)
        score = _score(fitted, split, noise, rng)
        if best is None or score < best.score:
            best = TuningResult(_restore(fitted, estimator), chosen, score, None)
        if bernoulli(stop, random_state=rng):
            return best


def _tune_without_privacy(
    estimator: Tunable,
    candidates: Sequence[Mapping[str, Any]],
    split: _Split,
    rng: Rng,
    bar: Any,
) -> TuningResult:
    """Return the best of all candidates, scored without noise."""
    results = []
    for chosen in candidates:
        fitted = _with_parameters(estimator, {**chosen, **_MAPPED})
        fitted = fit_silently(fitted, split.training, rng)
        if fitted.record_ is not None:
            mechanism = f"{fitted.record_.mechanism}, tuned without privacy: NO GUARANTEE"
            fitted.record_ = dataclasses.replace(
                fitted.record_, mechanism=mechanism, law=None, mu=None
            )
        score = _score(fitted, split, None, None)
        results.append(TuningResult(_restore(fitted, estimator), chosen, score, fitted.record_))
        bar.update()
    return min(results, key=lambda result: result.score)


def _restore(fitted: Tunable, estimator: Tunable) -> Tunable:
    """Give the fitted estimator back the fixed parameters of the one that was tuned."""
    fixed = {
        name: value for name, value in estimator.get_params(deep=False).items() if name in _FIXED
    }
    return fitted.set_params(**fixed)


def _score(fitted: Tunable, split: _Split, noise: DescentNoise | None, rng: Rng) -> float:
    """Return the mean loss in [0, 1] on the validation records, with noise."""
    losses = _losses(fitted, split.X, split.y)
    if noise is None:
        return float(losses.mean())
    sums = np.rint(losses * _UNITS).sum(keepdims=True)
    return float(add_noise(sums, _UNITS, noise, rng)[0]) / (_UNITS * len(losses))


def _losses(fitted: Tunable, X: NDArray[Any], y: NDArray[Any]) -> Floats:
    """Return the loss of each record, clipped to [0, 1], and 1 where it is not finite."""
    predicted = fitted.predict(X)
    if fitted.loss == "squared":
        residuals = np.clip(predicted, -1, 1) - np.clip(y.astype(np.float64), -1, 1)
        losses = np.square(residuals) / _LARGEST_SQUARE
    else:
        losses = (predicted != y).astype(np.float64)
    return np.where(np.isfinite(losses), losses, 1.0).clip(0.0, 1.0)
