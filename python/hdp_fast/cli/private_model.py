"""The linear model that hdp-fast fit writes and hdp-fast predict reads."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonObject
from .._support.types import Floats
from .._support.validate import distinct_texts, from_json, one_of, positive, positive_int, take_form
from ..data.column_kinds import Ignore, Number, count_floats
from ..data.schema import Schema
from ..data.table import Table
from ..learners.centered_linear import METHODS, CenteredModel
from ..learners.centered_rows import CenteredRows, Squares
from ..learners.linear_model import LinearModel
from ..learners.moment_equation import softmax, to_halves
from ..learners.statistics_checks import LEVEL, chi_square_quantile
from ..learners.statistics_model import StatisticsModel, to_shares
from ..learners.unit_rows import UnitRows
from ..record import PrivacyRecord

Link = Literal["logistic", "shares", "target"]

_FORMAT = {"format": "hdp_fast.private_model", "version": 1}
_LINKS = ("logistic", "shares", "target")
_MOST_RECORDS = 1 << 31
# Where a mean is this many deviations from 0, nine tenths of all rows or more lie on its side.
_FAR = 3
# What a feature is centered and scaled by; the slope is that of a square.
_PARTS = ("mean", "slope", "factor")
# Nothing that a fit releases is larger.
_LARGEST = 1e30


@dataclass(frozen=True, eq=False)
class PrivateModel(JsonObject):
    """A linear model of the float features of a schema, which may be published.

    A row of features in [0, 1] is centered and scaled, followed by the constant 1, and shrunk to
    the norm bound. Its scores are the inner products with the weights.

    Attributes:
        schema: Public schema of the table.
        classes: The labels in order; None for the labels 0 and 1 of the schema's rule, and for a
            label that is a number.
        rows: The map from features to centered rows.
        weights: A column for each class, or one for a target; that of the constant comes last.
        norm_bound: Norm to which rows are shrunk.
        link: "logistic" where probabilities are the softmax of scores, "shares" where scores are
            least-squares estimates of probabilities less 1 / K, "target" where the score is the
            label, scaled from its bounds to [-1, 1].
        method: Method that learned the model, "sgd" or "statistics".
        n: The public number of records.
        signal: With the method "sgd" the noise of the plan, as the length of the longest gradient
            over it: public, known before any data, the same for labels that are pure chance. With
            "statistics" how far the released weights stand out of their noise. At 1 or below the
            model is no better than a constant; above, only that of statistics tells that it is.
            None without noise.
        record: What protects the records; None without noise.
    """

    schema: Schema
    classes: tuple[str, ...] | None
    rows: CenteredRows
    weights: Floats
    norm_bound: float
    link: Link
    method: str
    n: int
    signal: float | None
    record: PrivacyRecord | None

    @classmethod
    def of(
        cls, released: CenteredModel, schema: Schema, classes: Sequence[str] | None, n: int
    ) -> Self:
        """Takes the model of a release of n records."""
        weights, bound, link = _weigh(released)
        return cls(
            schema,
            None if classes is None else tuple(classes),
            released.rows,
            weights,
            bound,
            link,
            released.method,
            n,
            None if released.record is None else _signal(released),
            released.record,
        )

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The classes as texts; None for a target."""
        return None if self.link == "target" else self.classes or ("0", "1")

    def scores(self, table: Table) -> Floats:
        """Computes the scores of rows, shape (m, K).

        Raises:
            ParameterError: The table lacks a column.
        """
        rows = self.rows.scale(self.schema.floats(table))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        scores: Floats = rows * np.minimum(1, self.norm_bound / lengths) @ self.weights
        return scores

    def predict(self, table: Table) -> list[Any]:
        """Predicts the labels of rows: 0 or 1, one of the classes, or a number within its bounds.

        Raises:
            ParameterError: The table lacks a column.
        """
        scores = self.scores(table)
        if self.schema.label.bounds is not None and self.link == "target":
            low, high = self.schema.label.bounds
            middle, half = low / 2 + high / 2, high / 2 - low / 2
            numbers: list[Any] = (scores[:, 0].clip(-1, 1) * half + middle).tolist()
            return numbers
        places = scores.argmax(axis=1).tolist()
        return places if self.classes is None else [self.classes[place] for place in places]

    def probabilities(self, table: Table) -> Floats:
        """Computes the probability of every class, shape (m, K).

        Raises:
            ParameterError: The table lacks a column.
        """
        scores = self.scores(table)
        if self.link == "logistic":
            return softmax(scores)
        return to_shares(scores)

    def usual_label(self) -> str | None:
        """The label that the model predicts for nearly all rows, if there is one.

        By the released means and scales, and as if columns were independent: all others are
        predicted for a tenth of the rows at most (Cantelli's inequality).
        """
        if self.labels is None:
            return None
        for place, label in enumerate(self.labels):
            margins = self.weights[:, [place]] - np.delete(self.weights, place, axis=1)
            if (margins[-1] > _FAR * np.sqrt(self._variances(margins[:-1]))).all():
                return label
        return None

    def _variances(self, weights: Floats) -> Floats:
        """Variance of the inner product of a row's features with each column of weights."""
        variances, place = np.zeros(weights.shape[1]), 0
        for kind in self.schema.columns.values():
            if isinstance(kind, Ignore):
                continue
            width = count_floats(kind)
            part = weights[place : place + width]
            shares = self.rows.mean[place : place + width]
            if isinstance(kind, Number):
                # Its scale makes its deviation 1.
                variances += part[0] ** 2
            else:
                # A row has one category at most.
                variances += np.maximum(shares @ part**2 - (shares @ part) ** 2, 0)
            place += width
        # The scale of a square makes its deviation 1, too, and it is not correlated with its
        # number.
        variances += (weights[place:] ** 2).sum(axis=0)
        return variances

    def effects(self) -> dict[str, list[float]]:
        """What a deviation of a number, or a category, adds to the scores, by the feature's name.

        For two classes it is what is added to the score of the second less that of the first; for a
        target it is in units of the label.
        """
        weights = self.weights
        if self.link == "target" and self.schema.label.bounds is not None:
            low, high = self.schema.label.bounds
            weights = weights * (high / 2 - low / 2)
        elif weights.shape[1] == 2:
            weights = weights[:, [1]] - weights[:, [0]]
        names = _distinct(name_columns(self.schema, self.rows))
        return dict(zip(names, weights[:-1].tolist(), strict=True))

    def _to_fields(self) -> Mapping[str, Any]:
        columns = [self.rows.mean, np.zeros_like(self.rows.mean), self.rows.factor]
        if self.rows.squares is not None:
            of_squares = [getattr(self.rows.squares, part) for part in _PARTS]
            columns = [np.concatenate(pair) for pair in zip(columns, of_squares, strict=True)]
        parts = [
            name_columns(self.schema, self.rows),
            *(column.tolist() for column in columns),
            self.weights[:-1].tolist(),
        ]
        features = zip(*parts, strict=True)
        return {
            **_FORMAT,
            "schema": json.loads(self.schema.to_json()),
            "classes": self.classes,
            "link": self.link,
            "norm_bound": self.norm_bound,
            "constant": self.weights[-1].tolist(),
            "features": [
                dict(zip(("name", *_PARTS, "weights"), feature, strict=True))
                for feature in features
            ],
            "method": self.method,
            "n": self.n,
            "signal": self.signal,
            "record": None if self.record is None else dataclasses.asdict(self.record),
        }

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the model that `to_json` wrote.

        Raises:
            ParameterError: The text is something else, or of another version. The error shows
                nothing of the text, unless it is a model.
        """
        return from_json("model", text, "hdp-fast fit", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        take_form("model", fields, _FORMAT)
        schema = Schema.from_json(json.dumps(fields.pop("schema")))
        features, constant = fields.pop("features"), fields.pop("constant")
        rows = _read_rows(schema, [feature.pop("name") for feature in features], features)
        record, classes = fields.pop("record"), fields.pop("classes")
        model = cls(
            schema=schema,
            classes=None if classes is None else distinct_texts("classes", classes),
            rows=rows,
            weights=_numbers([*(feature.pop("weights") for feature in features), constant], 2),
            record=None if record is None else PrivacyRecord(**record),
            **fields,
        )
        if any(features):
            raise ValueError("features have more entries")
        model._check()
        return model

    def _check(self) -> None:
        """Refuse what no fit writes.

        Raises:
            ParameterError: A number or a word is out of range.
            ValueError: The parts do not fit together.
        """
        one_of("link", self.link, _LINKS)
        one_of("method", self.method, METHODS[1:])
        positive("norm_bound", self.norm_bound)
        positive_int("n", self.n, _MOST_RECORDS)
        if self.signal is not None:
            positive("signal", self.signal)
        is_number = self.schema.label.bounds is not None and self.classes is None
        if self.classes is not None and len(self.classes) < 2:
            raise ValueError("one class")
        if is_number != (self.link == "target") or (self.signal is None) != (self.record is None):
            raise ValueError("parts contradict each other")
        if self.weights.shape[1] != (1 if self.labels is None else len(self.labels)):
            raise ValueError("weights are not those of the classes")


def name_columns(schema: Schema, rows: CenteredRows) -> list[str]:
    """The names of the columns of centered rows, but the constant."""
    names = schema.float_names
    if rows.squares is None:
        return names
    return [*names, *(f"{name} squared" for name in itertools.compress(names, rows.unit.is_number))]


def _read_rows(schema: Schema, names: list[str], features: list[dict[str, Any]]) -> CenteredRows:
    """What features are centered and scaled by, which is taken out of them.

    Raises: TypeError, KeyError or ValueError.
    """
    unit, d = UnitRows.of_schema(schema), len(schema.float_names)
    columns = [_numbers([feature.pop(part) for feature in features], 1) for part in _PARTS]
    squares = None
    if len(features) > d:
        squares = Squares(*(column[d:] for column in columns))
    rows = CenteredRows(unit, columns[0][:d], columns[2][:d], squares)
    if names != name_columns(schema, rows):
        raise ValueError("features are not those of the schema")
    return rows


def _numbers(values: Any, dimensions: int) -> Floats:
    """The numbers, which must be finite.

    Raises: TypeError or ValueError.
    """
    flat = values if dimensions == 1 else list(itertools.chain.from_iterable(values))
    if not all(type(value) in (int, float) and abs(value) <= _LARGEST for value in flat):
        raise ValueError("an entry is no number")
    array = np.array(values, np.float64)
    if array.ndim != dimensions:
        raise ValueError("rows differ in length")
    return array


def _weigh(released: CenteredModel) -> tuple[Floats, float, Link]:
    """Weights of all classes, the norm that rows are shrunk to, and the link."""
    model: Any = released.model
    if isinstance(model, StatisticsModel):
        # Its features are the centered rows times this factor, shrunk to norm 1.
        factor = float(model.features.factor[0])
        link: Link = "target" if model.classes is None else "shares"
        if model.link == "logistic":
            link = "logistic"
        return model.coefficients * factor, 1 / factor, link
    if not isinstance(model, LinearModel):
        return model.weights, model.loss.norm_bound, "logistic"
    if model.loss.label_bound is not None:
        return model.weights[:, None], model.loss.norm_bound, "target"
    return to_halves(model.weights), model.loss.norm_bound, "logistic"


def _signal(released: CenteredModel) -> float:
    """How far signal stands out of noise: that of the plan, or of what was learned.

    For gradients, the longest one that the plan allows over the noise in the mean of all steps,
    whatever the labels are. For statistics, the released weights over what noise alone would make
    of them, but for a chance of a hundredth.
    """
    model: Any = released.model
    if isinstance(model, StatisticsModel):
        return math.sqrt(max(map(_square, model.coefficients[:-1].T, model.covariances)))
    return 1 / max(float(model.plan.noise), 1e-9)


def _square(weights: NDArray[Any], covariance: Floats) -> float:
    inverse = np.linalg.pinv(covariance[:-1, :-1], hermitian=True)
    square = float(weights @ inverse @ weights)
    return max(square / chi_square_quantile(len(weights), 1 - LEVEL), 1e-9)


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, of which a number's may be that of a category's bit."""
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    return [
        name if places[name] == place else f"{name} ({place})" for place, name in enumerate(names)
    ]
