"""Private adaptation of a linear regression as an estimator of scikit-learn."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray

from .._support.types import RandomState
from ..data.schema import Schema
from .adaptation_estimator import AdaptationEstimator
from .adaptation_models import Domains, Private, Promise, adapt_targets
from .private_regressor import PrivateRegressor
from .toolkit import r2_score


class AdaptationRegressor(AdaptationEstimator, PrivateRegressor):  # type: ignore[misc]
    """Linear regression for a target domain, from a source and a few records of the target.

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
        target_bounds: Public bounds (low, high) of y, the value to predict, to which it is clipped
            in both domains. Only with epsilon = math.inf None takes them from the data.
        method: "moments" for adaptation.MomentAdaptation, which releases the target once,
            "descent" for adaptation.ConvexAdaptation, or "auto", which takes "moments" where the
            target is private and alpha is None.
        alpha: Share of the source in the total weight of "descent", strictly between 0 and 1. None
            takes what the released discrepancy suggests.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects nobody.

    Attributes:
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        target_bounds_: The bounds of y, a pair.
        domain_sizes_: Numbers of source and target rows in fit; None for one population.
        record_: The PrivacyRecord of the private domain; None with epsilon = math.inf.
        method_: The method that was used.
        model_: The fitted estimator of hdp_fast.adaptation, for centered rows and a scaled y; for
            one population the model of PrivateRegressor.
        rows_: The map from records to centered rows.

    Guarantee:
        That of fit.

    Cost:
        That of the method, and a pass over X.

    Source:
        hdp_fast.adaptation; Bassily, Cortes, Mao and Mohri 2024 for the descent.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import AdaptationRegressor
        >>> X = np.tile(np.linspace(0, 10, 1_000), 3)[:, None]
        >>> domain = np.repeat([1, 1, -1], 1_000)  # a public source, and a private target
        >>> y = np.where(domain < 0, 4 + 0.5 * X[:, 0], 0.5 * X[:, 0])
        >>> model = AdaptationRegressor(epsilon=4.0, bounds=(0, 10), target_bounds=(0, 10))
        >>> model = model.fit(X, y, sample_domain=domain)
        >>> bool(abs(model.predict([[6.0]])[0] - 7) < 1), model.record_.epsilon
        (True, 4.0)
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        private: Private = "target",
        bounds: ArrayLike | None = None,
        schema: Schema | None = None,
        target_bounds: tuple[float, float] | None = None,
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
        self.target_bounds = target_bounds
        self.method = method
        self.alpha = alpha
        self.test_seed = test_seed

    def _adapt(self, method: str, domains: Domains, promise: Promise) -> Any:
        return adapt_targets(method, self.alpha, domains, promise)

    def _measure(self, labels: NDArray[Any], predictions: NDArray[Any], weights: Any) -> float:
        return r2_score(labels, predictions, weights)
