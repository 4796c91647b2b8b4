"""What the estimators of adaptation share: parameters, predictions, records and stages of a fit."""

from __future__ import annotations

import importlib
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support import progress as progress_module
from .._support.feature_names import FeatureNames
from .._support.notes import note, note_large_delta
from .._support.parameters import SettableParameters
from .._support.progress import log_stage
from .._support.types import Floats, RandomState
from ..budget.account import Budget
from ..data.persons import Persons
from ..exceptions import HdpFastError, ParameterError
from ..learners.linear_model import validate_rows
from ..record import PrivacyRecord
from .baselines.reweighting import Loss
from .discrepancies.exact import Private
from .discrepancies.moments import Sample, shrink_rows
from .domains import align_source, bound_records, check_columns, refuse_parts
from .privacy import Privacy
from .problem import AdaptationProblem, Data, SourceMap, apply_feature_map

# Rows that are prepared for a prediction at a time.
_BLOCK = 1 << 14


def multiply(
    rows: NDArray[Any], coef: Floats, prepare: Callable[[NDArray[Any]], NDArray[Any]]
) -> Floats:
    """Return the products of prepared rows with coefficients, without a copy of all rows."""
    scores: Floats = np.empty((len(rows), *coef.shape[1:]))
    for start in range(0, len(rows), _BLOCK):
        some = slice(start, start + _BLOCK)
        scores[some] = prepare(rows[some]) @ coef
    return scores


class Estimator(SettableParameters):
    """An estimator whose parameters are the fields of a dataclass.

    scikit-learn can read and set them, but not clone the estimator: a search or a cross-validation
    of scikit-learn would choose parameters for the source, on folds of the source, and would cut
    the target at the positions of those folds. hdp_fast.sklearn has estimators of adaptation that
    take both domains in one table, whose folds hold both.
    """

    record_: PrivacyRecord | None = None
    feature_names_in_: FeatureNames = None
    coef_: Floats
    loss: Loss

    def scores(self, X: ArrayLike) -> Floats:
        """Computes the inner product of the coefficients with every record.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d). The columns of a
                frame are put into the order that fit took.

        Returns:
            A float64 array of shape (k,).

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called.

        Cost:
            A pass over X.
        """
        if not hasattr(self, "coef_"):
            raise HdpFastError(f"{type(self).__name__} has not learned yet: call fit first")
        rows = validate_rows(X, self.feature_names_in_).entries
        check_columns("X", rows, len(self.coef_))
        return multiply(rows, self.coef_, self._prepare_rows)

    def _prepare_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the rows that the coefficients are multiplied with."""
        return rows

    def predict(self, X: ArrayLike) -> Floats | NDArray[np.uint8]:
        """Predicts the label of every record: the score for the squared loss, otherwise 0 or 1.

        The logistic loss predicts 1 where the score is at least 0.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d).

        Returns:
            Float64 scores (k,) for the squared loss; uint8 labels (k,) for the logistic loss.

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called.
        """
        scores = self.scores(X)
        return scores if self.loss == "squared" else (scores >= 0).view(np.uint8)

    def __sklearn_clone__(self) -> NoReturn:
        name = type(self).__name__
        rule = "a search would choose for the source, and cut the target by the source's folds"
        tuned = "adaptation.tune chooses parameters for the target"
        others = "hdp_fast.sklearn.AdaptationRegressor and AdaptationClassifier can be searched"
        raise ParameterError(f"{name} can't be cloned: {rule}; {tuned}, and {others}")

    def __sklearn_tags__(self) -> Any:
        """The tags that the searches of scikit-learn read before they clone an estimator."""
        utils = importlib.import_module("sklearn.utils")
        # No loss makes it a classifier: that would promise a list of the labels in the records,
        # which may be private.
        kind = "regressor" if self.loss == "squared" else None
        return utils.Tags(estimator_type=kind, target_tags=utils.TargetTags(required=True))


class BoundedEstimator(Estimator):
    """An estimator that shrinks longer records to a norm, both in fit and for predictions."""

    norm_bound: float

    def scores(self, X: ArrayLike) -> Floats:
        """Computes the inner product of the coefficients with every record, shrunk to the bound.

        A record longer than norm_bound is shrunk to this norm.

        Args:
            X: Records of the target's space, finite real numbers of shape (k, d). The columns of a
                frame are put into the order that fit took.

        Returns:
            A float64 array of shape (k,).

        Raises:
            ShapeError: X does not have two dimensions, at least one entry and d columns.
            ParameterError: An entry of X is no finite real number, or X is a frame with other
                columns than those of fit.
            HdpFastError: fit has not been called.

        Guarantee:
            That of fit for the records that fit protects, since nothing else about them is read. X
            itself is not protected.

        Cost:
            Two passes over X.
        """
        return super().scores(X)

    def _prepare_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        return shrink_rows(rows, self.norm_bound)


# Above this share of the source, the target's records hardly count.
_LARGEST_SHARE = 0.95


class DescentEstimator(BoundedEstimator):
    """An estimator that learns from two domains, one of which may be private.

    A subclass validates its settings, a named tuple whose `privacy` is a Privacy, and learns.
    """

    alpha: float | None
    alpha_: float
    feature_map: SourceMap | None
    private: Private

    @abstractmethod
    def _validate_settings(self, budget: Budget | None, random_state: RandomState) -> Any:
        """Validate the parameters, and what a call promises and whom it charges."""

    @abstractmethod
    def _validate_problem(self, settings: Any, data: Data) -> AdaptationProblem:
        """Validate the records, which are in the target's space."""

    @abstractmethod
    def _count_steps(self, settings: Any) -> int:
        """Return the number of steps that a bar shows; 0 for a run without any."""

    @abstractmethod
    def _learn(self, settings: Any, problem: AdaptationProblem, bar: Any) -> None:
        """Learn the coefficients from validated records."""

    def _fit(
        self,
        data: Data,
        owners: tuple[ArrayLike | None, int],
        budget: Budget | None,
        random_state: RandomState,
        progress: bool,
    ) -> Self:
        """Fit, with notes and logs of the stages, and with a bar where progress is wanted."""
        settings = self._validate_settings(budget, random_state)
        refuse_parts("each step reads all records", X_source=data[0], X_target=data[2])
        data, persons = self._bound(data, owners)
        settings = settings._replace(privacy=settings.privacy.change(persons=persons))
        problem, names = self._state_problem(settings, data)
        if settings.privacy.protects:
            note_large_delta(settings.privacy.delta, len(problem.private_sample.y))
        name, steps = type(self).__name__, self._count_steps(settings)
        log_stage("adaptation.%s: %d source and %d target records", name, *problem.sizes)
        with progress_module.bar(steps, "step", progress and steps > 0) as bar:
            self._learn(settings, problem, bar)
        self.feature_names_in_ = names
        log_stage("adaptation.%s: fitted", name)
        self._note_utility(problem.public_sample)
        return self

    def _bound(self, data: Data, owners: tuple[ArrayLike | None, int]) -> tuple[Data, Persons]:
        """Return the records that are used, and who owns the private ones."""
        X_source, y_source, X_target, y_target = data
        if self.private == "target":
            X_target, y_target, persons = bound_records(X_target, y_target, *owners)
        else:
            X_source, y_source, persons = bound_records(X_source, y_source, *owners)
        return (X_source, y_source, X_target, y_target), persons

    def _fit_silently(self, data: Data, random_state: RandomState) -> Self:
        """Fit without notes, logs, bars and charges: private tuning shows none of its fits."""
        settings = self._validate_settings(None, random_state)
        problem, names = self._state_problem(settings, data)
        self._learn(settings, problem, progress_module.NoBar())
        self.feature_names_in_ = names
        return self

    def _state_problem(self, settings: Any, data: Data) -> tuple[AdaptationProblem, FeatureNames]:
        """Validate records, the source's put into the target's space, and name their features."""
        X_source, y_source, X_target, y_target = data
        X_source, names = self._map_source(settings.privacy, X_source, X_target)
        problem = self._validate_problem(settings, (X_source, y_source, X_target, y_target))
        return problem, names

    def _map_source(
        self, privacy: Privacy, X_source: Any, X_target: Any
    ) -> tuple[Any, FeatureNames]:
        """Return the source's records in the target's space, and the names of their features."""
        X_source, names = align_source(X_source, X_target, self.feature_map)
        protected = privacy.protected_domain(self.private)
        return apply_feature_map(self.feature_map, X_source, X_target, protected), names

    def _note_utility(self, public: Sample) -> None:
        """Note where the released result is of little use, as far as public records show."""
        if self.alpha is None:
            note_share(self.alpha_)
        # Only its author knows what a callable's coefficients predict.
        if not callable(self.loss):
            note_constant(public, self.predict(public.X), self.loss, self.alpha_)


def note_share(alpha: float) -> None:
    """Note where the released discrepancy suggests a share at which the target hardly counts."""
    if alpha > _LARGEST_SHARE:
        rule = "so that the target hardly counts, and a fit to the source alone is about as good"
        advice = "a larger epsilon, more records of the target or a smaller alpha may help"
        note(f"alpha_ = {alpha:.3g} is the share of the source, {rule}: {advice}")


def note_constant(sample: Sample, predictions: NDArray[Any], loss: str, alpha: float) -> None:
    """Note where predictions are no better than a constant, on records whose labels are public.

    predictions: for these records. alpha: share of the source. Where it is below 1/2, the target
    counts for more, and records of the source show nothing.
    """
    if sample.name == "source" and alpha < 0.5:
        return
    own, constant = _compare_with_constant(sample.y, predictions, loss)
    if own >= constant:
        what = "mean squared error" if loss == "squared" else "share of errors"
        advice = "a larger epsilon, more records, or another radius and norm_bound may help"
        text = f"coef_ has a {what} of {own:.3g} on the records of the {sample.name}"
        note(f"{text}, where the best constant has {constant:.3g}: {advice}")


def note_score(score: float, loss: str, classes: int) -> None:
    """Note where the chosen score is one that some constant reaches on any records."""
    # The largest loss of the best constant: 0 has a squared error of at most 1, which is divided by
    # 4; the most frequent of k labels is wrong in a share of at most 1 - 1 / k.
    constant = 0.25 if loss == "squared" else 1 - 1 / classes
    if score >= constant:
        advice = "a larger epsilon, more records of the target or another grid may help"
        note(f"score = {score:.3g}, where some constant has at most {constant:.3g}: {advice}")


def _compare_with_constant(
    labels: NDArray[Any], predictions: NDArray[Any], loss: str
) -> tuple[float, float]:
    """Return the mean loss of the predictions, and that of the best constant."""
    if loss == "squared":
        return float(np.square(predictions - labels).mean()), float(labels.var())
    classes = labels > 0 if loss == "logistic" else labels
    _, counts = np.unique(classes, return_counts=True)
    return float((predictions != classes).mean()), 1 - float(counts.max()) / len(labels)


Descent = TypeVar("Descent", bound=DescentEstimator)


def map_source(
    estimator: DescentEstimator, privacy: Privacy, X_source: Any, X_target: Any
) -> tuple[Any, FeatureNames]:
    """Return the source's records in the target's space, and the names of their features."""
    return estimator._map_source(privacy, X_source, X_target)


def validate_settings(
    estimator: DescentEstimator, budget: Budget | None = None, random_state: RandomState = None
) -> Any:
    """Return an estimator's settings: refuse unfit parameters, before any record is seen."""
    return estimator._validate_settings(budget, random_state)


def check_records(estimator: DescentEstimator, data: Data) -> None:
    """Refuse unfit parameters or records, the source's already in the target's space."""
    estimator._validate_problem(validate_settings(estimator), data)


def fit_silently(estimator: Descent, data: Data, random_state: RandomState) -> Descent:
    """Fit without notes, logs and bars: no one must see how often private tuning fits."""
    return estimator._fit_silently(data, random_state)
