"""The stages of a fit, the same for both problems, and the notes on how useful its result is."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support import progress as progress_module
from .._support.feature_names import FeatureNames
from .._support.notes import note, note_large_delta
from .._support.stages import log_stage
from .._support.validate import one_of
from ..data.persons import Persons
from .base import BoundedEstimator, align_source, bound_records
from .discrepancies.exact import DOMAINS, Private
from .discrepancies.moments import Sample
from .privacy import Privacy
from .problem import AdaptationProblem, Data, FeatureMap, apply_feature_map

# Above this share of the source, the target's records hardly count.
_LARGEST_SHARE = 0.95


class DescentEstimator(BoundedEstimator):
    """An estimator that learns from two domains, one of which may be private.

    A subclass validates its settings, a named tuple whose `privacy` is a Privacy, and learns.
    """

    alpha: float | None
    alpha_: float
    feature_map: FeatureMap | None
    private: Private

    @abstractmethod
    def _validate_settings(self) -> Any:
        """Validate the parameters."""

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
        self, data: Data, progress: bool, owners: tuple[ArrayLike | None, int] = (None, 1)
    ) -> Self:
        """Fit, with notes and logs of the stages, and with a bar where progress is wanted."""
        data, persons = self._bound(data, owners)
        settings, problem, names = self._validate(data)
        settings = settings._replace(privacy=settings.privacy._replace(persons=persons))
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
        one_of("private", self.private, DOMAINS)
        X_source, y_source, X_target, y_target = data
        if self.private == "target":
            X_target, y_target, persons = bound_records(X_target, y_target, *owners)
        else:
            X_source, y_source, persons = bound_records(X_source, y_source, *owners)
        return (X_source, y_source, X_target, y_target), persons

    def _fit_silently(self, data: Data) -> Self:
        """Fit without notes, logs and bars: nobody must see how often private tuning fits."""
        settings, problem, names = self._validate(data)
        self._learn(settings, problem, progress_module.NoBar())
        self.feature_names_in_ = names
        return self

    def _validate(self, data: Data) -> tuple[Any, AdaptationProblem, FeatureNames]:
        """Validate parameters and records, and find the names of their features."""
        settings = self._validate_settings()
        X_source, y_source, X_target, y_target = data
        X_source, names = self._map_source(settings.privacy, X_source, X_target)
        problem = self._validate_problem(settings, (X_source, y_source, X_target, y_target))
        return settings, problem, names

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


Estimator = TypeVar("Estimator", bound=DescentEstimator)


def map_source(
    estimator: DescentEstimator, privacy: Privacy, X_source: Any, X_target: Any
) -> tuple[Any, FeatureNames]:
    """Return the source's records in the target's space, and the names of their features."""
    return estimator._map_source(privacy, X_source, X_target)


def validate_settings(estimator: DescentEstimator) -> None:
    """Refuse unfit parameters, before any record is seen."""
    estimator._validate_settings()


def check_records(estimator: DescentEstimator, data: Data) -> None:
    """Refuse unfit parameters or records, the source's already in the target's space."""
    estimator._validate_problem(estimator._validate_settings(), data)


def fit_silently(estimator: Estimator, data: Data) -> Estimator:
    """Fit without notes, logs and bars: nobody must see how often private tuning fits."""
    return estimator._fit_silently(data)
