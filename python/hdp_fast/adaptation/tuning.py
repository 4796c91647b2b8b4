"""Hyperparameters by private selection, whose cost is part of the guarantee."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import accounting
from .._support.types import Floats
from .._support.validate import array, number, one_of, probability, refuse, shorten
from ..budget.account import spend
from ..exceptions import ParameterError, ShapeError
from ..noise import bernoulli, uniform_integers
from ..record import PrivacyRecord, rng_of
from .convex import ConvexAdaptation
from .nonconvex import NonConvexAdaptation
from .privacy import Coins, Noise, Privacy, checked_privacy, noisy, stream
from .problem import Shape, mapped

Tunable = ConvexAdaptation | NonConvexAdaptation
Method = Literal["private_selection", "not_private"]
_Data = tuple[Any, Any, Any, Any]

_METHODS = ("private_selection", "not_private")
# What tuning must not touch: the guarantee is about it.
_FIXED = ("epsilon", "delta", "numerics", "private", "random_state", "budget", "feature_map")
_ORDERS = tuple(1 + 10 ** (exponent / 20) for exponent in range(-40, 101))
_UNITS = 1 << 20
_LARGEST_SQUARE = 4.0
_TOLERANCE = 1e-4
_MOST_CANDIDATES = 1 << 20
# What records can be refused for; other parameters say nothing of them.
_OF_RECORDS = ("norm_bound", "loss", "classes", "mu")


@dataclass(frozen=True, eq=False)
class TuningResult:
    """What tuning chose.

    Attributes:
        estimator: fitted, with the record of the whole tuning.
        parameters: those of the grid that it has.
        score: its mean loss on the validation records, in [0, 1]: the squared error of labels in
            [-1, 1] as a share of 4, or the share of errors. Where they are private it has noise,
            which may take it beyond either end.
        record: what protects the private records; None where nothing does.
    """

    estimator: Tunable
    parameters: Mapping[str, Any]
    score: float
    record: PrivacyRecord | None


class _Split(NamedTuple):
    """Records to learn from, and those of the target to judge by."""

    learned: _Data
    X: NDArray[Any]
    y: NDArray[Any]


def selection_epsilon(rho: float, *, trials: float, delta: float) -> float:
    """The epsilon at delta of the best of a geometric number of trials, each rho-zCDP.

    rho: above 0. trials: their mean number, above 1. delta: strictly between 0 and 1.

    With g = 1 / trials the number K has Pr[K = k] = g (1 - g)**(k - 1), and at every order a > 1
    the Renyi divergence is at most rho a + 2 (2 sqrt(rho ln trials) - rho) + ln(trials) / (a - 1):
    the second term of the theorem at its best second order, sqrt(ln(trials) / rho), or at order 1,
    2 ln trials, where that is below 1.

    Guarantee: telling the best trial, and not how many there were, is (epsilon, delta)-DP.
    Raises: ParameterError.
    Cost: constant.
    Source: Papernot and Steinke 2022, Theorem 2 with eta = 1.
    """
    spent, failing = accounting.ZCDP(rho).rho, probability("delta", delta)
    many = math.log(_trials(trials))
    second = max(math.sqrt(many / spent), 1.0)
    again = 2 * ((second - 1) * spent + many / second)
    divergences = [spent * order + again + many / (order - 1) for order in _ORDERS]
    return accounting.renyi_epsilon(_ORDERS, divergences, failing)


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
) -> TuningResult:
    """Choose hyperparameters on a part of the target that is not learned from.

    estimator: ConvexAdaptation, or NonConvexAdaptation without a callable; its epsilon and delta
    are what the whole tuning promises, its budget is charged once. grid: names of parameters and
    public values to try, in any combination. X_source (m, d), y_source (m,), X_target (n, d),
    y_target (n,): as fit takes them, n at least 2; all of them are looked at before they are split,
    and those to judge by are projected as fit projects private records. method: "private_selection"
    tries a random number of random combinations, and tells the best; "not_private" tries all, each
    at the estimator's epsilon, and judges them without noise. trials: mean number of trials, above
    1; None means twice the number of combinations. validation: share of the target, in (0, 1),
    chosen by public coins.

    Guarantee: "private_selection" is (epsilon, delta)-DP for the private records under replace_one:
        each trial is rho-zCDP, since a record is either learned from or judged by, with the largest
        rho at which selection_epsilon is at most epsilon. How many trials there were is not told,
        and must not be seen; running time shows it. "not_private" has no guarantee, and its record
        says so.
    Raises: ShapeError, ParameterError, BudgetExceeded; no budget is spent then, unless the noise
        of a combination is beyond what is drawn.
    Cost: `trials` fits on average, or one for each combination.
    Source: Liu and Talwar 2019; Papernot and Steinke 2022, Theorem 2.
    """
    candidates = _candidates(estimator, grid)
    one_of("method", method, _METHODS)
    privacy, share = checked_privacy(estimator), probability("validation", validation)
    data = _looked_at(estimator, candidates, (X_source, y_source, X_target, y_target), share)
    coins = stream(estimator.random_state)
    split = _split(data, share, coins)
    if method == "not_private" or privacy.epsilon == math.inf:
        return _openly(estimator, candidates, split, coins)
    mean = _trials(2.0 * len(candidates) if trials is None else trials)
    each = _for_each(privacy, mean)
    record = PrivacyRecord(
        mechanism=f"adaptation.tune, {type(estimator).__name__}, {mean:g} trials on average",
        source="Papernot and Steinke 2022, Theorem 2",
        neighbors="replace_one",
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        noise=f"as {type(estimator).__name__} at epsilon = {each.epsilon:g}, for each trial",
        numerics=privacy.numerics,
        rng=rng_of(estimator.random_state),
    )
    with spend(estimator.budget, record):
        best = _best_of_many(estimator, candidates, split, each, 1 / mean, coins)
    best.estimator.record_ = record
    return dataclasses.replace(best, record=record)


def _candidates(estimator: Any, grid: Any) -> list[dict[str, Any]]:
    """All combinations, each checked as fit would."""
    if not isinstance(estimator, ConvexAdaptation | NonConvexAdaptation):
        refuse("estimator", estimator, "it must be a ConvexAdaptation or a NonConvexAdaptation")
    if not isinstance(grid, Mapping) or not all(map(len, grid.values())):
        refuse("grid", grid, "it must map names to sequences of values")
    for name in grid:
        if name in _FIXED or name not in estimator.get_params():
            rule = "it must be a parameter that the guarantee does not speak of"
            raise ParameterError(f"grid holds {shorten(name)}, but {rule}")
    if math.prod(map(len, grid.values())) > _MOST_CANDIDATES:
        raise ParameterError("grid has over 2**20 combinations, but there must be fewer")
    found = [dict(zip(grid, each, strict=True)) for each in itertools.product(*grid.values())]
    for each in found:
        candidate = _with(estimator, each)
        if callable(candidate.loss):
            raise ParameterError("loss is a callable, but tuning needs predictions")
        candidate._settings()
        Shape.checked(candidate.radius, candidate.norm_bound)
    return found


def _with(estimator: Tunable, parameters: Mapping[str, Any]) -> Tunable:
    return type(estimator)(**{**estimator.get_params(), **parameters})


def _trials(value: Any) -> float:
    found = number("trials", value)
    if not 1 < found <= 1e9:
        refuse("trials", value, "it must lie in (1, 1e9]")
    return found


def _looked_at(
    estimator: Tunable, candidates: Sequence[Mapping[str, Any]], data: _Data, share: float
) -> _Data:
    """All records, the source's in the target's space, before a coin says which are judged by."""
    X_source, y_source, X_target, y_target = data
    X_source = mapped(estimator.feature_map, X_source, X_target, estimator.private)
    kinds = _kinds(estimator, candidates)
    for each in kinds:
        each._posed(X_source, y_source, X_target, y_target)
    X, y = array("X_target", X_target), array("y_target", y_target)
    if len(X) < 2:
        raise ShapeError("X_target has 1 row, but it must be (n, d), n at least 2")
    # As many as are learned from: some parameters depend on the number.
    held = _held(share, len(X))
    for each in kinds:
        each._posed(X_source, y_source, X[held:], y[held:])
    return X_source, y_source, X, y


def _kinds(estimator: Tunable, candidates: Sequence[Mapping[str, Any]]) -> list[Tunable]:
    """An estimator for each way of refusing records."""
    found: dict[str, Tunable] = {}
    for each in candidates:
        candidate = _with(estimator, each)
        found.setdefault(repr([getattr(candidate, name, None) for name in _OF_RECORDS]), candidate)
    return list(found.values())


def _held(share: float, n: int) -> int:
    """How many of n records are judged by."""
    return min(max(round(share * n), 1), n - 1)


def _split(data: _Data, share: float, coins: Coins) -> _Split:
    X_source, y_source, X, y = data
    order = (np.random.default_rng() if coins is None else coins).permutation(len(X))
    judged, kept = np.split(order, [_held(share, len(X))])
    return _Split((X_source, y_source, X[kept], y[kept]), X[judged], y[judged])


def _for_each(privacy: Privacy, mean: float) -> Privacy:
    """What each trial may promise, as its estimator takes it."""

    def whole(epsilon: float) -> float:
        mu = privacy._replace(epsilon=epsilon).mu()
        return selection_epsilon(mu**2 / 2 * (1 + 1e-9), trials=mean, delta=privacy.delta)

    bad = privacy.epsilon
    good = bad / 2
    while whole(good) > privacy.epsilon:
        bad, good = good, good / 2
        if good < 1e-6 * privacy.epsilon:
            rule = f"with {mean:g} trials nothing is left for each"
            raise ParameterError(f"epsilon = {privacy.epsilon:g}, but {rule}")
    while bad > good * (1 + _TOLERANCE):
        middle = (good + bad) / 2
        good, bad = (middle, bad) if whole(middle) <= privacy.epsilon else (good, middle)
    return privacy._replace(epsilon=good)


def _best_of_many(
    estimator: Tunable,
    candidates: Sequence[Mapping[str, Any]],
    split: _Split,
    each: Privacy,
    stop: float,
    coins: Coins,
) -> TuningResult:
    """The best of a geometric number of trials."""
    best: TuningResult | None = None
    while True:
        chosen = candidates[int(uniform_integers(len(candidates), random_state=coins))]
        own = {"epsilon": each.epsilon, "budget": None, **_mapped_already(coins)}
        fitted = _with(estimator, {**chosen, **own}).fit(*split.learned)
        noise = None
        if estimator.private == "target":
            noise = Noise(0.0, 1 / each.mu(), each.exact, each.epsilon)
        score = _score(fitted, split, noise, coins)
        if best is None or score < best.score:
            best = TuningResult(_restored(fitted, estimator), chosen, score, None)
        if bernoulli(stop, random_state=coins):
            return best


def _openly(
    estimator: Tunable, candidates: Sequence[Mapping[str, Any]], split: _Split, coins: Coins
) -> TuningResult:
    """The best of all, judged without noise."""
    if estimator.budget is not None:
        raise ParameterError("budget is given, but only private tuning can be charged to one")
    found = []
    for chosen in candidates:
        fitted = _with(estimator, {**chosen, **_mapped_already(coins)}).fit(*split.learned)
        if fitted.record_ is not None:
            mechanism = f"{fitted.record_.mechanism}, tuned without privacy: NO GUARANTEE"
            fitted.record_ = dataclasses.replace(fitted.record_, mechanism=mechanism)
        score = _score(fitted, split, None, None)
        found.append(TuningResult(_restored(fitted, estimator), chosen, score, fitted.record_))
    return min(found, key=lambda each: each.score)


def _mapped_already(coins: Coins) -> dict[str, Any]:
    """Parameters of a trial: its source needs no map any more."""
    return {"random_state": coins, "feature_map": None}


def _restored(fitted: Tunable, estimator: Tunable) -> Tunable:
    """With the guarantee, coins and budget that were asked for."""
    fixed = {name: value for name, value in estimator.get_params().items() if name in _FIXED}
    return fitted.set_params(**fixed)


def _score(fitted: Tunable, split: _Split, noise: Noise | None, coins: Coins) -> float:
    """The mean loss in [0, 1] on the records to judge by, with noise."""
    losses = _losses(fitted, split.X, split.y)
    if noise is None:
        return float(losses.mean())
    sums = np.rint(losses * _UNITS).sum(keepdims=True)
    return float(noisy(sums, _UNITS, noise, coins)[0]) / (_UNITS * len(losses))


def _losses(fitted: Tunable, X: NDArray[Any], y: NDArray[Any]) -> Floats:
    """The loss of each record, in [0, 1] whatever the record is; 1 where it is no number."""
    predicted = fitted.predict(X)
    if fitted.loss == "squared":
        away = np.clip(predicted, -1, 1) - np.clip(y.astype(np.float64), -1, 1)
        losses = np.square(away) / _LARGEST_SQUARE
    else:
        losses = (predicted != y).astype(np.float64)
    return np.where(np.isfinite(losses), losses, 1.0).clip(0.0, 1.0)
