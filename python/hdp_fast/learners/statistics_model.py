"""Linear models that are solved from released statistics, and what their noise makes uncertain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonObject
from .._support.types import Floats
from .._support.validate import from_json, one_of, read_only, refuse, take_form
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .feature_maps import FeatureMap
from .moment_equation import softmax

Link = Literal["logistic", "linear"]

_FORMAT = {"format": "hdp_fast.statistics_model", "version": 1}


class PopulationFit(NamedTuple):
    """Least squares without a penalty, and how far the population's may be from it.

    Attributes:
        coefficients: float64 of shape (d, K); read-only.
        covariances: What noise and the sampling of the records do to them, to first order and as if
            what is left unexplained had one variance everywhere: float64 of shape (K, d, d);
            read-only.
    """

    coefficients: Floats
    covariances: Floats


@dataclass(frozen=True, eq=False)
class StatisticsModel(JsonObject):
    """A linear model of public features, solved from released statistics.

    The score of a record for class c is the inner product of its features with column c of the
    coefficients. ReleasedStatistics.solve makes the model; solving costs no privacy.

    Attributes:
        features: The public feature map.
        classes: The K classes in order, int64, float64 or texts, shape (K,); None for targets.
        coefficients: float64 of shape (d, K), or (d, 1) for targets; read-only.
        link: "logistic" where probabilities are the softmax of the scores. "linear" where the
            scores are estimates themselves: of probability - 1 / K, or of target / label_bound.
        penalty: The penalty that the model was solved with, above 0.
        label_bound: Bound on the magnitude of a target; None for classes.
        covariances: What the noise of the release does to the coefficients, to first order:
            covariance of each column, float64 of shape (K, d, d); read-only.
        record: What protects the records; None without noise.
        population: The fit without a penalty and the uncertainty of noise and sampling together.
            There is one for two classes with released second moments, each of whose eigenvalues is
            far above their noise; else None.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners
        >>> X = np.tile([[0.9, 0.1], [0.1, 0.9]], (5_000, 1))
        >>> y = np.tile([0, 1], 5_000)
        >>> statistics = learners.SufficientStatistics(
        ...     learners.FeatureMap.identity(2), classes=[0, 1]
        ... ).release(X, y, epsilon=1.0, delta=1e-6)
        >>> model = statistics.solve(pool=X[:100])
        >>> model.predict([[1.0, 0.0], [0.0, 1.0]])
        array([0, 1])
    """

    features: FeatureMap
    classes: NDArray[Any] | None
    coefficients: Floats
    link: Link
    penalty: float
    label_bound: float | None
    covariances: Floats = dataclasses.field(repr=False)
    record: PrivacyRecord | None = None
    population: PopulationFit | None = dataclasses.field(default=None, repr=False)

    def scores(self, X: Any) -> Floats:
        """Computes the score of every record for every class.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            A float64 array of shape (m, K), or (m, 1) for targets.

        Raises:
            ShapeError: X does not have the columns of the feature map.
            ParameterError: An entry of X is no number that the feature map takes.

        Cost:
            m d (K + the feature map's columns).
        """
        scores: Floats = self.features(X) @ self.coefficients
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the class of the largest score, ties to the first, or the target.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            An array of shape (m,) of classes, or of targets within their bound.

        Raises:
            ShapeError: X does not have the columns of the feature map.
            ParameterError: An entry of X is no number that the feature map takes.
        """
        scores = self.scores(X)
        if self.classes is None:
            bound = self.label_bound or 1.0
            targets: NDArray[Any] = (scores[:, 0] * bound).clip(-bound, bound)
            return targets
        labels: NDArray[Any] = self.classes[scores.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        """Computes the posterior probability of every class.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            A float64 array of shape (m, K), whose rows add up to 1.

        Raises:
            ShapeError: X does not have the columns of the feature map.
            ParameterError: The model predicts targets, or an entry of X is no number that the
                feature map takes.
        """
        if self.classes is None:
            raise ParameterError("classes = None, but only a model of classes has probabilities")
        scores = self.scores(X)
        if self.link == "logistic":
            return softmax(scores)
        return to_shares(scores)

    def score_deviations(self, X: Any) -> Floats:
        """Computes the part of every score's uncertainty that the noise of the release makes.

        It is the standard deviation of the score over the coins of the release, to first order in
        the noise. What a finite sample of records leaves uncertain is not in it.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            A float64 array of shape (m, K), or (m, 1) for targets.

        Raises:
            ShapeError: X does not have the columns of the feature map.
            ParameterError: An entry of X is no number that the feature map takes.

        Cost:
            `m d**2 K`.

        Source:
            The delta method: the noise's covariance on both sides of the inverse Hessian.
        """
        rows = self.features(X)
        variances = [((rows @ part) * rows).sum(axis=1) for part in self.covariances]
        deviations: Floats = np.sqrt(np.maximum(np.stack(variances, axis=1), 0.0))
        return deviations

    def _to_fields(self) -> Mapping[str, Any]:
        named = {"features": feature_text(self.features)}
        arrays = {
            name: None if value is None else value.tolist()
            for name, value in vars(self).items()
            if name in ("classes", "coefficients", "covariances")
        }
        record = None if self.record is None else dataclasses.asdict(self.record)
        fit = self.population
        population = None if fit is None else {k: v.tolist() for k, v in fit._asdict().items()}
        fields = {**_FORMAT, **vars(self), **named, **arrays}
        return fields | {"record": record, "population": population}

    @classmethod
    def from_json(cls, text: str, *, features: FeatureMap | None = None) -> StatisticsModel:
        """Reads the model that `to_json` wrote.

        Args:
            text: A JSON object.
            features: The feature map, where it is one of a function, which no text holds.

        Returns:
            The model.

        Raises:
            ParameterError: The text is not what `to_json` wrote, or the feature map is missing.
        """
        return from_json(
            "text",
            text,
            "StatisticsModel.to_json",
            lambda fields: cls._from_fields(read_form(fields, _FORMAT, features)),
        )

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> StatisticsModel:
        record, classes = fields["record"], fields["classes"]
        arrays = {
            name: read_only(np.array(fields[name], np.float64))
            for name in ("coefficients", "covariances")
        }
        named = {
            "classes": None if classes is None else read_only(np.array(classes)),
            "record": None if record is None else PrivacyRecord(**record),
            "population": _read_population(**(fields.get("population") or {})),
        }
        model = cls(**{**fields, **arrays, **named})
        model._check_shapes()
        return model

    def _check_shapes(self) -> None:
        columns = self.features.columns
        width = 1 if self.classes is None else len(self.classes)
        shapes = self.coefficients.shape, self.covariances.shape
        if shapes != ((columns, width), (width, columns, columns)):
            raise ParameterError("text has arrays of other shapes than its features and classes")
        if self.population is not None and [part.shape for part in self.population] != [*shapes]:
            raise ParameterError("text has a population of another shape than its coefficients")
        one_of("link", self.link, ("logistic", "linear"))


def _read_population(**parts: Any) -> PopulationFit | None:
    """The fit of these parts; None where there are none, as in texts of older versions."""
    arrays = {name: read_only(np.array(part, np.float64)) for name, part in parts.items()}
    return PopulationFit(**arrays) if arrays else None


def to_shares(scores: Floats) -> Floats:
    """Probabilities of K classes, which scores less 1 / K estimate: rows that add up to 1."""
    return divide_rows(np.maximum(scores + 1 / scores.shape[1], 0.0))


def divide_rows(shares: Floats) -> Floats:
    """Rows that add up to 1, of numbers that are at least 0; all alike where a row is 0."""
    sums = shares.sum(axis=1, keepdims=True)
    even: Floats = np.full_like(shares, 1 / shares.shape[1])
    np.divide(shares, sums, out=even, where=sums > 0)
    return even


def feature_text(features: FeatureMap) -> str | None:
    """The feature map as JSON; None for one of a function."""
    return features.to_json() if features.function is None else None


def read_form(
    fields: dict[str, Any], form: Mapping[str, Any], features: FeatureMap | None
) -> dict[str, Any]:
    """The fields of a text of this format and version, with their feature map.

    Raises:
        ParameterError: The text has another format, or is of another version. Or it has no feature
            map, and `features`, which stands in for it, is none.
    """
    take_form("text", fields, form)
    text = fields["features"]
    if text is not None:
        features = FeatureMap.from_json(text)
    elif not isinstance(features, FeatureMap):
        refuse("features", features, "the map of a function is not in the text: it must be passed")
    return fields | {"features": features}
