"""Private adaptation of a linear classifier as an estimator of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.types import Floats, RandomState
from ..adaptation import MomentAdaptation
from ..data.schema import Schema
from ..learners.moment_equation import softmax, to_halves
from ..learners.statistics_model import divide_rows
from .adaptation_estimator import AdaptationEstimator
from .adaptation_models import ClassModels, Domains, Private, Promise, adapt_classes
from .private_classifier import PrivateClassifier
from .toolkit import accuracy_score


class AdaptationClassifier(AdaptationEstimator, PrivateClassifier):  # type: ignore[misc]
    """A linear classifier for a target domain, from a source and a few records of the target.

    Rows of both domains stand in one table, and `sample_domain` says which is which, so that
    cross-validation and searches of scikit-learn cut both domains alike. One of the domains is
    private, the other public. fit scales every column by its public bounds, and by the means and
    deviations of the public domain, and learns by hdp_fast.adaptation. score looks at the rows of
    the target alone. Where scikit-learn routes metadata, sample_domain reaches fit and score by
    itself.

    Args:
        epsilon: Privacy parameter of a fit, above 0. It must be chosen; math.inf adds no noise and
            protects nobody.
        delta: Privacy parameter, strictly between 0 and 1.
        private: The domain whose records are protected, "target" or "source".
        bounds: Public bounds of the columns, to which values of both domains are clipped: (low,
            high) for all of them, or one such pair for each, shape (d, 2). A missing value
            counts as the lower bound. Only with epsilon = math.inf None takes them from the data,
            which must be finite then.
        schema: Public data.Schema, for a frame or a data.Table with categories; its label is not
            used. None for columns of numbers.
        classes: The public labels, at least two. Only with epsilon = math.inf None takes them from
            the data.
        method: "moments" for adaptation.MomentAdaptation, which releases the target once for two
            classes, or else once for each class, all in one budget. "descent" is
            adaptation.NonConvexAdaptation with the logistic loss, or for more classes with the
            cross-entropy. "auto" takes "moments" where the target is private and alpha is None.
        alpha: Share of the source in the total weight of "descent", strictly between 0 and 1. None
            takes what the released discrepancy suggests for two classes. For more classes, None
            takes the share of the source in the number of records.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Attributes:
        classes_: The classes in order, shape (K,).
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        domain_sizes_: Numbers of source and target rows in fit; None for one population.
        record_: The PrivacyRecord of the private domain; None with epsilon = math.inf.
        method_: The method that was used.
        model_: The fitted estimator of hdp_fast.adaptation, for centered rows, or one for each
            class; for one population the model of PrivateClassifier.
        rows_: The map from records to centered rows.

    Guarantee:
        That of fit.

    Cost:
        That of the method, and a pass over X.

    Source:
        hdp_fast.adaptation; Bassily, Cortes, Mao and Mohri 2024 for the descent.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import AdaptationClassifier
        >>> X = np.tile(np.linspace(0, 10, 1_000), 3)[:, None]
        >>> domain = np.repeat([1, 1, -1], 1_000)  # a public source, and a private target
        >>> y = np.where((X[:, 0] > 5) == (domain > 0), "yes", "no")  # the other way round
        >>> model = AdaptationClassifier(epsilon=4.0, bounds=(0, 10), classes=["no", "yes"])
        >>> model.fit(X, y, sample_domain=domain).predict([[1.0], [9.0]]).tolist()
        ['yes', 'no']
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        private: Private = "target",
        bounds: ArrayLike | None = None,
        schema: Schema | None = None,
        classes: ArrayLike | None = None,
        method: str = "auto",
        alpha: float | None = None,
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.epsilon = epsilon
        self.delta = delta
        self.private = private
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.method = method
        self.alpha = alpha
        self.test_seed = test_seed

    def predict_proba(self, X: Any) -> Floats:
        """Computes the probability of every class.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m, K), whose rows add up to 1. With "moments" they are
            least-squares estimates, clipped to be at least 0.

        Raises:
            ValueError: As in decision_function.
        """
        rows, model = self._read_rows(X), self.model_
        if self.domain_sizes_ is None:
            return super().predict_proba(X)
        scores = model.scores(rows)
        if isinstance(model, MomentAdaptation):
            share = ((1 + scores) / 2).clip(0.0, 1.0)
            return np.column_stack([1 - share, share])
        if isinstance(model, ClassModels):
            return divide_rows(((1 + scores) / 2).clip(0.0, 1.0))
        if scores.ndim == 1:
            scores = to_halves(scores)
        return softmax(scores)

    def _adapt(self, method: str, domains: Domains, promise: Promise) -> Any:
        return adapt_classes(method, len(self.classes_), self.alpha, domains, promise)

    def _measure(self, labels: NDArray[Any], predictions: NDArray[Any], weights: Any) -> float:
        return accuracy_score(labels, predictions, weights)
