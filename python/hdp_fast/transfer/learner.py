"""The learner of a run: one interface for all kinds, its own guarantee, and its epsilon."""

from __future__ import annotations

import copy
import importlib
import inspect
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import accounting
from .._support.types import Bits
from .._support.validate import nonnegative_int, refuse
from ..accounting.calibration import WINDOW, guess_rate, largest_draws
from ..accounting.mechanisms import BoundedRange, Mechanism, Subsampled
from ..data.records import copy_array
from ..exceptions import ParameterError
from ..learners.exponential import ExponentialLearner
from ..local.pool import Hypothesis
from ..weights import DenseWeights
from .plans import RunGoal

# The candidates for the learner's own epsilon; smaller ones need ever more draws.
LEARNER_EPSILONS = tuple(2.0**-k for k in range(7))
_WORTHWHILE, _UNSURE = 0.97, 0.003
# Fewer draws than these are not guessed: a guess of one may be none.
_FEW = 100
_MOST = 1 << 62
# The learner's epsilon, and whether a guess at the cost is enough.
_Cost = Callable[[float, bool], tuple[float, int]]


class Learner:
    """A learner of this package, or an object with the same methods."""

    def __init__(self, learner: Any):
        self._learner = learner

    @property
    def can_restore(self) -> bool:
        """Whether the learner can restore a hypothesis from its description."""
        return hasattr(self._learner, "restore")

    @property
    def draws_itself(self) -> bool:
        """Whether the learner draws from the weights itself, instead of taking drawn records."""
        return hasattr(self._learner, "learn_weighted")

    @property
    def takes_packed(self) -> bool:
        """Whether `prepare` takes packed bits where it makes some of arrays."""
        return isinstance(self._learner, ExponentialLearner)

    def learn_weighted(
        self, X: Any, y: Bits, weights: DenseWeights, random_state: int | None
    ) -> Hypothesis:
        """Learns a hypothesis from the prepared records under these weights."""
        return self._learner.learn_weighted(X, y, weights, random_state=random_state)  # type: ignore[no-any-return]

    def learn(self, X: Any, y: Bits, indices: Any, random_state: int | None) -> Hypothesis:
        """Learns a hypothesis from the prepared records at these indices, which may repeat."""
        if hasattr(self._learner, "learn_indices"):
            return self._learner.learn_indices(X, y, indices, random_state=random_state)  # type: ignore[no-any-return]
        return self._learner.learn(X[indices], y[indices], random_state=random_state)  # type: ignore[no-any-return]

    def prepare(self, X: NDArray[Any]) -> Any:
        """Brings all records into the form that `predict` reads fastest."""
        return self._learner.prepare(X) if hasattr(self._learner, "prepare") else X

    def restore(self, hypothesis: dict[str, Any]) -> Hypothesis:
        """Restores a hypothesis from its description."""
        return self._learner.restore(hypothesis)  # type: ignore[no-any-return]


class _OpaquePredictor:
    """A caller's predictor, which JSON cannot describe."""

    hypothesis: dict[str, Any] | None = None

    def __init__(self, predict: Any):
        self._predict = predict

    def predict(self, X: Any, /) -> Any:
        """Predicts on a copy of the records, since the caller's code may change them in place."""
        return self._predict(copy_array(X) if isinstance(X, np.ndarray) else X)


class _Function(Learner):
    """A function (X, y) that returns a function for predictions, or an object with `predict`."""

    can_restore = False

    def learn(self, X: NDArray[Any], y: Bits, indices: Any, random_state: int | None) -> Hypothesis:
        result = self._learner(X[indices], y[indices])
        if hasattr(result, "hypothesis"):
            return result  # type: ignore[no-any-return]
        return _OpaquePredictor(getattr(result, "predict", result))


class _Classifier(Learner):
    """A scikit-learn classifier; each round fits a new clone of it."""

    can_restore = False

    def learn(self, X: NDArray[Any], y: Bits, indices: Any, random_state: int | None) -> Hypothesis:
        labels = y[indices]
        if labels.min() == labels.max():
            # Most classifiers refuse to learn from one class.
            return _OpaquePredictor(lambda X: np.full(len(X), labels[0]))
        model = _clone(self._learner)
        if (
            random_state is not None
            and "random_state" in inspect.signature(model.__init__).parameters
        ):
            model.set_params(random_state=random_state % (1 << 32))
        return _OpaquePredictor(model.fit(X[indices], labels).predict)


def adapt(learner: Any) -> Learner:
    """Gives a learner the interface of `Learner`.

    Raises:
        ParameterError: The object cannot learn.
    """
    if any(hasattr(learner, name) for name in ("learn", "learn_indices", "learn_weighted")):
        return Learner(learner)
    if hasattr(learner, "fit") and hasattr(learner, "predict"):
        return _Classifier(learner)
    if not callable(learner) or isinstance(learner, type):
        rule = "it must have learn, or fit and predict, or be a function (X, y) -> predictor"
        refuse("learner", learner, rule)
    return _Function(learner)


def _clone(classifier: Any) -> Any:
    try:
        return importlib.import_module("sklearn.base").clone(classifier)
    except ImportError:
        return copy.deepcopy(classifier)


def composes(learner: Any) -> bool:
    """Whether the learner draws from the weights in many private steps, like PrivateSGD."""
    return hasattr(learner, "learn_weighted")


def check_private(learner: Any) -> Mechanism:
    """The learner's own guarantee, on records already drawn.

    Raises:
        ParameterError: The learner has no guarantee, or claims bounded range for a selection that
            does not have it.
    """
    _check_names(learner, ("learn", "sample_size", "with_epsilon", "privacy"))
    mechanism = _mechanism("learner.privacy", learner.privacy)
    selection = getattr(learner, "mechanism", "exponential")
    if isinstance(mechanism, BoundedRange) and selection != "exponential":
        refuse(
            "learner.mechanism",
            selection,
            "only the exact exponential mechanism has bounded range: account for Pure",
        )
    return mechanism


def validate_steps(learner: Any) -> tuple[int, int]:
    """The number of steps of a learner that composes, and the number of draws of each step.

    Raises:
        ParameterError: The learner cannot be private.
    """
    # The class is checked, since `step` of an instance without noise raises.
    _check_names(type(learner), ("learn_weighted", "step", "calibrate"))
    _check_names(learner, ("steps", "batch_size"))
    counts = (
        nonnegative_int("learner.steps", learner.steps),
        nonnegative_int("learner.batch_size", learner.batch_size),
    )
    if not all(counts):
        shape = f"learner.steps = {counts[0]} and learner.batch_size = {counts[1]}"
        raise ParameterError(f"{shape}, but both must be at least 1")
    return counts


def account_round(learner: Any, draws: int, rate: float) -> tuple[Mechanism, int]:
    """The mechanism that a round composes, and how often.

    No draw holds a record with probability above `rate`.
    """
    if not composes(learner):
        return Subsampled(check_private(learner), draws=draws, rate=rate), 1
    steps, batch_size = validate_steps(learner)
    return Subsampled(_mechanism("learner.step", learner.step), draws=batch_size, rate=rate), steps


def _check_names(learner: Any, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not hasattr(learner, name)]
    if missing:
        refuse(
            "learner",
            learner,
            f"a private run needs one with {', '.join(missing)}, as in hdp_fast.learners",
        )


def _mechanism(name: str, value: Any) -> Mechanism:
    if not isinstance(value, Mechanism):
        refuse(name, value, "it must be a mechanism of hdp_fast.accounting")
    return value


def serve_promise(goal: RunGoal, *, agnostic: bool) -> tuple[int, int, float]:
    """The fewest records for which the learner errs by alpha more than the best, or than `opt`.

    Returns: The records, the draws of a round, and the learner's epsilon on them.

    Raises:
        ParameterError: There would be more than `2**62` records.
    """
    check_private(goal.learner)
    (epsilon, delta), beta = goal.loss, goal.beta / goal.rounds
    kappa = goal.density * WINDOW
    opt = 0.0 if agnostic else goal.opt

    def count(learner_epsilon: float, guessed: bool) -> tuple[float, int]:
        draws = compute_sample_size(goal.learner, goal.alpha, beta, learner_epsilon, agnostic, opt)
        find = guess_rate if guessed else accounting.largest_rate
        rate = find(
            goal.learner.with_epsilon(learner_epsilon).privacy,
            draws=draws,
            rounds=goal.rounds,
            epsilon=epsilon,
            delta=delta,
        )
        return 1.0001 / (kappa * rate), draws

    learner_epsilon, records, draws = _cheapest(count)
    if records > _MOST:
        raise ParameterError(f"alpha = {goal.alpha}, but it needs more than 2**62 records")
    return math.ceil(records), draws, learner_epsilon


def serve_records(goal: RunGoal, n: int) -> tuple[int, int, float]:
    """The draws for which the learner promises the least error, with n records.

    Returns: The records, the draws of a round, and the learner's epsilon on them.

    Raises:
        ParameterError: Not even one draw is private.
    """
    check_private(goal.learner)
    rate = min(1.0, (1 + 1e-15) / (goal.density * WINDOW * n) * (1 + 1e-15))

    def bound_error(learner_epsilon: float, guessed: bool) -> tuple[float, int]:
        draws = _most_draws(goal, learner_epsilon, rate, guessed)
        if guessed and draws < _FEW:
            draws = _most_draws(goal, learner_epsilon, rate, False)
        return (_error(goal, draws, learner_epsilon) if draws else math.inf), draws

    learner_epsilon, _, draws = _cheapest(bound_error)
    if not draws:
        rule = f"no draw of so few is ({goal.epsilon:g}, {goal.delta:g})-DP"
        raise ParameterError(f"n = {n} with rounds = {goal.rounds}, but {rule}")
    return n, draws, learner_epsilon


def _most_draws(goal: RunGoal, learner_epsilon: float, rate: float, guessed: bool) -> int:
    epsilon, delta = goal.loss
    return largest_draws(
        goal.learner.with_epsilon(learner_epsilon).privacy,
        rate=rate,
        rounds=goal.rounds,
        epsilon=epsilon,
        delta=delta,
        guessed=guessed,
    )


def _error(goal: RunGoal, draws: int, learner_epsilon: float) -> float:
    """The least alpha that the learner promises for this number of draws.

    Where it promises none, the number is above 1, and smaller for more draws.
    """

    def count(alpha: float) -> int:
        beta = goal.beta / goal.rounds
        return compute_sample_size(goal.learner, alpha, beta, learner_epsilon, agnostic=True)

    low, high = 1e-9, 1.0
    largest = count(1 - 1e-9)
    if largest > draws:
        return largest / draws
    for _ in range(30):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if count(middle) <= draws else (middle, high)
    return high + learner_epsilon * 1e-6  # prefers the smaller epsilon where errors are equal


def _cheapest(cost_of: _Cost) -> tuple[float, float, int]:
    """The learner's epsilon of about the least cost, that cost, and the draws.

    The search goes from large to small values and stops at the first that saves too little. Guesses
    are enough to compare two, unless they are close to that; the cost returned is no guess.
    """
    best, least = LEARNER_EPSILONS[0], cost_of(LEARNER_EPSILONS[0], True)[0]
    for learner_epsilon in LEARNER_EPSILONS[1:]:
        cost = cost_of(learner_epsilon, True)[0]
        part = cost / least if math.isfinite(least) else 0.0
        if abs(part - _WORTHWHILE) < _UNSURE:
            part = cost_of(learner_epsilon, False)[0] / cost_of(best, False)[0]
        if not part < _WORTHWHILE:
            break
        best, least = learner_epsilon, cost
    return best, *cost_of(best, False)


def _parameters(method: Callable[..., Any]) -> frozenset[str]:
    """The names of what a method takes; those of plain ones are remembered, which a search asks."""
    function = getattr(method, "__func__", method)
    # Other callables need not be hashable.
    find = _parameters_of_function if inspect.isfunction(function) else _find_parameters
    return find(function)


def _find_parameters(function: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)


_parameters_of_function = lru_cache(maxsize=16)(_find_parameters)


def compute_sample_size(
    learner: Any,
    alpha: float,
    beta: float,
    epsilon: float = 1.0,
    agnostic: bool = False,
    opt: float = 0.0,
) -> int:
    """The number of records that the learner asks for an excess error of at most alpha.

    Raises:
        ParameterError: The learner has no sample_size, or one that does not know of opt > 0.
    """
    if not hasattr(learner, "sample_size"):
        rule = "draws must be given for a learner without sample_size"
        raise ParameterError(f"draws = None, but {rule}")
    names = _parameters(learner.sample_size)
    options: dict[str, Any] = {"agnostic": agnostic} if "agnostic" in names else {}
    if opt:
        if "opt" not in names:
            rule = "the learner's sample_size must take it"
            raise ParameterError(f"opt = {opt:g}, but {rule}")
        options["opt"] = opt
    return max(1, int(learner.sample_size(alpha, beta, epsilon, **options)))
