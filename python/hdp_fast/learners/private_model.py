"""A released linear model of a table, and the one file that it is written to and read from."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .._support.json_text import JsonObject
from .._support.numbers import floats, scale_to_unit
from .._support.types import Floats
from .._support.validate import (
    distinct_texts,
    from_json,
    numbers,
    one_of,
    positive,
    positive_int,
    refuse,
    take_form,
)
from ..data.column_kinds import Category, require_label
from ..data.frames import take_columns
from ..data.rows import Rows, Squares
from ..data.schema import Schema
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .additive_columns import Shape, make_shape
from .centered_linear import METHODS
from .descriptions import Description
from .effects import ToldEffects, distinct_names, tell_effects
from .moment_equation import softmax, to_halves
from .scores import shift_scores, to_log_odds
from .statistics_model import to_shares
from .target_model import TargetLaw

Link = Literal["logistic", "shares", "target"]

_FORMAT = {"format": "hdp_fast.private_model", "version": 1}
_WRITER = "hdp-fast fit, hdp-fast hybrid or a model's to_json"
_LINKS = ("logistic", "shares", "target")
_MOST_RECORDS = 1 << 31
# Methods that add to the mean of a target.
_AROUND_A_MEAN = {"descent", "evidence", "additive"}
# Where a mean is this many deviations from 0, nine tenths of all rows or more lie on its side.
_FAR = 3
# What a feature is centered and scaled by; the slope is that of a square.
_PARTS = ("mean", "slope", "factor")
# A value of a category is 0 or 1.
_HALF = 0.5
# Nothing that a fit releases is larger.
LARGEST = 1e30


@dataclass(frozen=True, eq=False)
class PrivateModel(JsonObject):
    """A linear model of a table with a public schema, which may be published.

    CenteredLinear, transfer.HybridRun and `hdp-fast fit` make one, and the linear estimators of
    `hdp_fast.sklearn` write one. Its JSON is all that somebody needs to predict: `from_json` reads
    it here, and `hdp-fast predict` on the command line.

    A row of features in [0, 1] is centered and scaled, followed by the constant 1, and shrunk to
    the norm bound. Its scores are the inner products with the weights.

    Attributes:
        schema: Public schema of the table.
        classes: The labels in order; None for the labels 0 and 1 of the schema's rule, and for a
            label that is a number.
        rows: The map from features to centered rows: the schema's float features, with squares of
            numbers where records were many, or the schema's bits.
        weights: A column for each class, or one for a target; that of the constant comes last.
        norm_bound: Norm to which rows are shrunk.
        link: "logistic" where probabilities are the softmax of scores, "shares" where scores are
            least-squares estimates of probabilities less 1 / K, "target" where the score is the
            label, scaled from its bounds to [-1, 1].
        method: Method that learned the model, "descent", "evidence", "sgd", "statistics" or
            "additive", whose rows are bits of the schema's cuts and values.
        n: The public number of records; under add_remove a noisy one.
        signal: For classes with "descent", and with "sgd", the noise of the plan, as the length of
            the longest gradient over it: public, known before any data, the same for labels that
            are pure chance. With "statistics" how far the released weights stand out of their
            noise. For a target with "descent" and "evidence" the root of what released slopes
            explain of the target, over an eighth of what noise leaves open in that. With "additive"
            the root of what released shapes explain of scores over what noise does. At 1 or below
            the model is no better than a constant; above, only those of released numbers tell that
            it is, and that of a target's "descent" counts no noise but that of the release: effects
            tell it from labels that are pure chance. None without noise.
        record: What protects the records; None without noise.
        calibration: Increasing log-odds and what is added to them, as agents told: linear between,
            constant beyond the first and the last. None where the model is as it was learned.
        agents_record: What protects each agent's answer; None where none was asked.
        law: For a target with "descent", "evidence" and "additive" what slopes are added to, what
            stands at the end of a row instead of 1, and the ends to which the label is clipped,
            scaled as it is; None with others.
        bands: For "additive" the standard deviation that noise makes in each value of a column's
            shape, less their mean, for each column; None with others, and without noise.
        deviations: What the noise of the release does to the weights, and to that of the constant,
            which comes last: standard deviations, or bounds on them, of the weights of a target, of
            the second class less the first of two, or of each class of more; for a category, of its
            weight less the mean of its column's. The factor that a descent multiplies all weights
            with does not count. None where they are not known, and without noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.learners import CenteredLinear, PrivateModel
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 70] * 5_000, "bought": ["no", "yes"] * 5_000}
        >>> model = CenteredLinear(schema, epsilon=1.0, delta=1e-6).learn(people)
        >>> again = PrivateModel.from_json(model.to_json())
        >>> again.predict({"age": [25, 65]}), again.record.epsilon
        ([0, 1], 1.0)
    """

    schema: Schema
    classes: tuple[str, ...] | None
    rows: Rows
    weights: Floats
    norm_bound: float
    link: Link
    method: str
    n: int
    signal: float | None
    record: PrivacyRecord | None
    calibration: tuple[Floats, Floats] | None = None
    agents_record: PrivacyRecord | None = None
    law: TargetLaw | None = None
    deviations: Floats | None = None
    bands: tuple[Floats, ...] | None = None

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The classes as texts; None for a target."""
        return None if self.link == "target" else self.classes or ("0", "1")

    @property
    def hypothesis(self) -> Description | None:
        """What transfer.calibrate and devices of real people read of an additive model.

        A function of the numbers that schema.floats makes and devices hold. They are those of the
        schema that the model was learned with, whose cuts play no part: devices need nothing new.
        For each of them it has cuts, and what each cut adds to the score of a value that is not
        below it. None for other methods, whose rows are shrunk and may have squares, for a target,
        and for a model that is calibrated already.
        """
        if (self.method, self.link, self.calibration) != ("additive", "logistic", None):
            return None
        assert self.rows.center is not None
        *weights, last = self._differences[:, 0].tolist()
        bias = last - float(np.array(weights) @ self.rows.center)
        cuts: list[list[float]] = []
        steps: list[list[float]] = []
        for kind, width in self.rows.parts:
            some, weights = weights[:width], weights[width:]
            if isinstance(kind, Category):
                cuts += [[_HALF]] * width
                steps += [[weight] for weight in some]
                continue
            # Scaled as values are: a value that is not below a cut is not below it here.
            ends = np.array(kind.low), np.array(kind.high)
            cuts.append(scale_to_unit(np.array(kind.cuts), *ends).tolist())
            steps.append(some)
        return {"kind": "additive", "cuts": cuts, "weights": steps, "bias": bias}

    def with_calibration(
        self, knots: ArrayLike, shifts: ArrayLike, agents_record: PrivacyRecord | None
    ) -> PrivateModel:
        """Returns the model whose log-odds are those of this one plus a shift.

        Args:
            knots: Increasing log-odds, shape (k,), such as those of a transfer.CalibratedModel.
                Without any the model stays as it is, but for the agents' record.
            shifts: What is added at the knots, linearly between them and constantly beyond, shape
                (k,).
            agents_record: What protects each agent's answer.

        Returns:
            The calibrated model.

        Raises:
            ParameterError: The model has not two classes, or knots and shifts are not finite
                numbers of one length, the knots increasing.
        """
        pair = floats(numbers("knots", knots)), floats(numbers("shifts", shifts))
        calibration = pair if pair[0].size else None
        model = dataclasses.replace(self, calibration=calibration, agents_record=agents_record)
        try:
            model._check_calibration()
        except ValueError as error:
            raise ParameterError(f"knots and shifts: {error}") from None
        return model

    def scores(self, table: Any) -> Floats:
        """Computes the scores of rows.

        Args:
            table: A data.Table or a data frame, as data.read_frame takes it, of m rows with every
                column of the schema.

        Returns:
            A float64 array of shape (m, K), or (m, 1) for a target. Of a calibrated model they are
            half of the log-odds, against and for the second class.

        Raises:
            ParameterError: The table lacks a column.

        Cost:
            O(m d K), and 40 MB or less beside the table and the scores.
        """
        records = take_columns("table", table, self.schema.reads)
        return np.concatenate([self._score(rows) for rows in self.rows.blocks(records)])

    def _score(self, rows: Floats) -> Floats:
        """The scores of centered rows."""
        if self.law is not None:
            return self.law.predict(rows, self.weights[:, 0], self.norm_bound)[:, None]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        scores: Floats = rows * np.minimum(1, self.norm_bound / lengths) @ self.weights
        if self.calibration is None:
            return scores
        return to_halves(shift_scores(self._log_odds(scores), *self.calibration))

    def predict(self, table: Any) -> list[Any]:
        """Predicts the labels of rows.

        Args:
            table: As for scores.

        Returns:
            A list of m labels: 0 or 1, one of the classes, or a number within its bounds.

        Raises:
            ParameterError: The table lacks a column.
        """
        scores = self.scores(table)
        bounds = require_label(self.schema.label).bounds
        if bounds is not None and self.link == "target":
            low, high = bounds
            middle, half = low / 2 + high / 2, high / 2 - low / 2
            targets: list[Any] = (scores[:, 0].clip(-1, 1) * half + middle).tolist()
            return targets
        places = scores.argmax(axis=1).tolist()
        return places if self.classes is None else [self.classes[place] for place in places]

    def probabilities(self, table: Any) -> Floats:
        """Computes the probability of every class.

        Args:
            table: As for scores.

        Returns:
            A float64 array of shape (m, K), whose rows add up to 1.

        Raises:
            ParameterError: The table lacks a column, or the model predicts a number.
        """
        if self.labels is None:
            refuse("link", self.link, "a model of a number has no probabilities")
        scores = self.scores(table)
        if self.link == "logistic" or self.calibration is not None:
            return softmax(scores)
        return to_shares(scores)

    def usual_label(self) -> str | None:
        """Names the label that the model predicts for nearly all rows, if there is one.

        By the released means and scales, and as if columns were independent: all others are
        predicted for a tenth of the rows at most (Cantelli's inequality).

        Returns:
            The label. None where there is none, for a target, and for a calibrated model: the means
            are those of the records, and not of the agents.
        """
        if self.labels is None or self.calibration is not None:
            return None
        for place, label in enumerate(self.labels):
            margins = self.weights[:, [place]] - np.delete(self.weights, place, axis=1)
            if (margins[-1] > _FAR * np.sqrt(self._variances(margins[:-1]))).all():
                return label
        return None

    def _log_odds(self, scores: Floats) -> Floats:
        if self.link == "shares":
            return to_log_odds(to_shares(scores)[:, 1])
        difference: Floats = scores[:, 1] - scores[:, 0]
        return difference

    def _variances(self, weights: Floats) -> Floats:
        """Variance at most of the inner product of a row's features with columns of weights."""
        assert self.rows.center is not None
        variances, place = np.zeros(weights.shape[1]), 0
        for kind, width in self.rows.parts:
            part = weights[place : place + width]
            shares = self.rows.center[place : place + width]
            if isinstance(kind, Category):
                # A row has one category at most.
                variances += np.maximum(shares @ part**2 - (shares @ part) ** 2, 0)
            elif self.rows.bits:
                # However these bits hang together.
                variances += (np.sqrt(shares * (1 - shares)) @ np.abs(part)) ** 2
            else:
                # Its scale makes its deviation 1, or it is a number in [0, 1].
                variances += part[0] ** 2
            place += width
        # The scale of a square makes its deviation 1, too, and it is not correlated with its
        # number.
        variances += (weights[place:] ** 2).sum(axis=0)
        return variances

    def effects(self) -> dict[str, list[float]]:
        """Lists what a deviation of a number, or a category, adds to the scores.

        Returns:
            By the feature's name a list of one entry: for two classes what is added to the score of
            the second less that of the first, before a calibration, and for a target what is added
            to it, in its units. For more classes an entry for each.
        """
        names = distinct_names(self.rows.names_with_squares)
        return dict(zip(names, self._differences[:-1].tolist(), strict=True))

    def told_effects(self) -> ToldEffects:
        """Tells which features' effects stand out of the noise of the release.

        A number and its square are one effect, a curve. It is told from 0 where its weights are
        further from 0 than two standard deviations, or for several weights than chance alone is in
        19 of 20 cases. The variance is that of the noise, and for classes that of sampling as if
        columns were uncorrelated; how far a sample of n targets leaves weights open is not known.

        Returns:
            The effects, the largest first: by weight times the spread of their column, which
            follows from its released mean.
        """
        unit = 1.0
        if self.link == "target" and require_label(self.schema.label).bounds is not None:
            unit = self._half_width
        deviations = None if self.deviations is None else self.deviations * unit
        return tell_effects(self.rows, self._differences, deviations, self._sampled)

    def shapes(self) -> dict[str, Shape]:
        """Lists what each column of an additive model adds to the scores.

        Returns:
            By the column's name its shape: for two classes what is added to the log-odds of the
            second, for a target what is added to it, in its units, each less its mean over records.

        Raises:
            ParameterError: Another method than "additive" made the model.
        """
        if self.method != "additive":
            refuse("method", self.method, "only an additive model has shapes")
        weights, place, shapes = self._differences[:-1, 0], 0, {}
        unit = self._half_width if self.link == "target" else 1.0
        bands = [None] * len(self.rows.parts) if self.bands is None else self.bands
        assert self.rows.center is not None
        for name, (kind, width), band in zip(
            self.schema.reads, self.rows.parts, bands, strict=True
        ):
            some = slice(place, place + width)
            shape = make_shape(kind, weights[some], self.rows.center[some])
            shapes[name] = shape if band is None else shape._replace(deviations=band * unit)
            place += width
        return shapes

    @property
    def _sampled(self) -> float:
        """The deviation that n records make in the weight of a column of spread 1; 0 for targets.

        In a score of log-odds it is 1 / sqrt(n p (1 - p)) for the share p of a class. Differences
        of shares vary by 2 sqrt(p (1 - p) / n). Where rows are shrunk, spreads are, too.
        """
        if self.link == "target":
            return 0.0
        n = self.n * min(self.norm_bound / self.rows.norm, 1.0) ** 2
        if self.link == "shares":
            return 1 / math.sqrt(n)
        shares = softmax(self.weights[[-1]])[0]
        return 1 / math.sqrt(n * max(float((shares * (1 - shares)).min()), 0.01))

    @property
    def _half_width(self) -> float:
        low, high = require_label(self.schema.label).bounds or (-1.0, 1.0)
        return high / 2 - low / 2

    @property
    def _differences(self) -> Floats:
        """The weights of a target, in its units, of the second class less the first, or of all."""
        if self.link == "target" and require_label(self.schema.label).bounds is not None:
            return self.weights * self._half_width
        if self.weights.shape[1] == 2:
            return self.weights[:, [1]] - self.weights[:, [0]]
        return self.weights

    def to_json(self) -> str:
        """Writes the model as a JSON object, with the version of its format.

        Returns:
            The text, which `from_json` and `hdp-fast predict` read.
        """
        return super().to_json()

    def _to_fields(self) -> Mapping[str, Any]:
        fields: dict[str, Any] = {
            **_FORMAT,
            "schema": json.loads(self.schema.to_json()),
            "classes": self.classes,
            "link": self.link,
            "norm_bound": self.norm_bound,
            "constant": self.weights[-1].tolist(),
            "features": _write_features(self.rows, self.weights[:-1], self.deviations),
            "method": self.method,
            "n": self.n,
            "signal": self.signal,
            "record": None if self.record is None else dataclasses.asdict(self.record),
        }
        if self.deviations is not None:
            fields["constant_deviations"] = self.deviations[-1].tolist()
        if self.rows.bits:
            fields["bits"] = True
        if self.bands is not None:
            fields["bands"] = [band.tolist() for band in self.bands]
        if self.calibration is not None:
            knots, shifts = self.calibration
            fields["calibration"] = {"knots": knots.tolist(), "shifts": shifts.tolist()}
        if self.law is not None:
            fields["law"] = dataclasses.asdict(self.law)
        if self.agents_record is not None:
            fields["agents_record"] = dataclasses.asdict(self.agents_record)
        return fields

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the model that `to_json`, `hdp-fast fit` or `hdp-fast hybrid` wrote.

        Args:
            text: The JSON object: the model, or one that holds it as "model", as that of
                `hdp-fast hybrid` does.

        Returns:
            The model.

        Raises:
            ParameterError: The text is something else, or of another version. The error shows
                nothing of the text, unless it is a model.
        """
        return from_json("model", text, _WRITER, cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        if "format" not in fields and isinstance(fields.get("model"), dict):
            fields = fields["model"]
        take_form("model", fields, _FORMAT)
        schema = Schema.from_json(json.dumps(fields.pop("schema")))
        require_label(schema.label)
        bits, features = fields.pop("bits", False), fields.pop("features")
        deviations = _take_deviations(features, fields.pop("constant_deviations", None))
        rows, weights = _read_features(schema, features, bits=bits is True)
        constant, classes = fields.pop("constant"), fields.pop("classes")
        calibration, law = fields.pop("calibration", None), fields.pop("law", None)
        bands = fields.pop("bands", None)
        record, of_agents = fields.pop("record"), fields.pop("agents_record", None)
        model = cls(
            schema=schema,
            classes=None if classes is None else distinct_texts("classes", classes),
            rows=rows,
            weights=_read_numbers([*weights, constant], 2),
            calibration=None if calibration is None else _read_calibration(**calibration),
            record=None if record is None else PrivacyRecord(**record),
            agents_record=None if of_agents is None else PrivacyRecord(**of_agents),
            law=None if law is None else _read_law(**law),
            deviations=deviations,
            bands=None if bands is None else tuple(_read_numbers(band, 1) for band in bands),
            **fields,
        )
        if not isinstance(bits, bool):
            raise ValueError("bits is no flag")
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
        is_number = require_label(self.schema.label).bounds is not None and self.classes is None
        if self.classes is not None and len(self.classes) < 2:
            raise ValueError("one class")
        if is_number != (self.link == "target") or (self.signal is None) != (self.record is None):
            raise ValueError("parts contradict each other")
        if self.weights.shape[1] != (1 if self.labels is None else len(self.labels)):
            raise ValueError("weights are not those of the classes")
        if (self.law is not None) != (self.method in _AROUND_A_MEAN and is_number):
            raise ValueError("only slopes around a mean have a law")
        if self.deviations is not None and self.deviations.shape != self._differences.shape:
            raise ValueError("deviations are not those of the weights")
        self._check_bands()
        self._check_calibration()

    def _check_bands(self) -> None:
        """Refuse bands that are not those of the shapes: ValueError."""
        if self.bands is None:
            return
        if self.method != "additive" or len(self.bands) != len(self.rows.parts):
            raise ValueError("bands are not those of the columns")
        for band, (_, width) in zip(self.bands, self.rows.parts, strict=True):
            if len(band) != width + 1 or not (band >= 0).all():
                raise ValueError("bands are not those of the shapes")

    def _check_calibration(self) -> None:
        """Refuse a calibration of anything but two classes, or one that is none: ValueError."""
        if self.calibration is None:
            return
        knots, shifts = self.calibration
        if self.labels is None or len(self.labels) != 2:
            raise ValueError("only a model of two classes can be calibrated")
        if knots.ndim != 1 or knots.shape != shifts.shape:
            raise ValueError("they must be vectors of one length")
        if not (np.isfinite([knots, shifts]).all() and (np.diff(knots) > 0).all()):
            raise ValueError("they must be finite, and the knots must increase")


def check_classes(name: str, classes: Any) -> tuple[str, ...]:
    """The labels of a classifier in order, as texts.

    Raises:
        ParameterError: They are not two different texts or more.
    """
    texts = distinct_texts(name, classes)
    if len(texts) < 2:
        refuse(name, list(texts), "a classifier needs two or more")
    return texts


def _read_calibration(knots: Any, shifts: Any) -> tuple[Floats, Floats]:
    return _read_numbers(knots, 1), _read_numbers(shifts, 1)


def _read_law(mean: Any, low: Any, high: Any, constant: Any) -> TargetLaw:
    """The law of a target.

    Raises: TypeError or ValueError.
    """
    law = TargetLaw(*_read_numbers([mean, low, high, constant], 1).tolist())
    if not (-1 <= law.low <= law.mean <= law.high <= 1 and law.constant >= 0):
        raise ValueError("numbers of a law contradict each other")
    return law


def _write_features(rows: Rows, weights: Floats, deviations: Floats | None) -> list[dict[str, Any]]:
    """What each feature is centered and scaled by, with its weights."""
    assert rows.center is not None
    factor = np.ones_like(rows.center) if rows.factor is None else rows.factor
    columns = [rows.center, np.zeros_like(rows.center), factor]
    if rows.squares is not None:
        of_squares = [getattr(rows.squares, part) for part in _PARTS]
        columns = [np.concatenate(pair) for pair in zip(columns, of_squares, strict=True)]
    parts = [rows.names_with_squares, *(column.tolist() for column in columns), weights.tolist()]
    names = ["name", *_PARTS, "weights"]
    if deviations is not None:
        parts.append(deviations[:-1].tolist())
        names.append("deviations")
    return [dict(zip(names, feature, strict=True)) for feature in zip(*parts, strict=True)]


def _read_features(
    schema: Schema, features: list[dict[str, Any]], *, bits: bool
) -> tuple[Rows, list[Any]]:
    """The rows, and the weights of each feature; both are taken out of the features.

    Raises: TypeError, KeyError or ValueError.
    """
    names, d = [feature.pop("name") for feature in features], len(Rows(schema, bits).names)
    columns = [_read_numbers([feature.pop(part) for feature in features], 1) for part in _PARTS]
    squares = None
    if len(features) > d:
        squares = Squares(*(column[d:] for column in columns))
    rows = Rows(schema, bits, columns[0][:d], columns[2][:d], squares)
    weights = [feature.pop("weights") for feature in features]
    if names != rows.names_with_squares or any(features):
        raise ValueError("features are not those of the schema, or have more entries")
    return rows, weights


def _take_deviations(features: list[dict[str, Any]], constant: Any) -> Floats | None:
    """The deviations, which are taken out of the features; None in a file that has none.

    Raises: TypeError, KeyError or ValueError.
    """
    if constant is None:
        return None
    deviations = _read_numbers([*(one.pop("deviations") for one in features), constant], 2)
    if not (deviations >= 0).all():
        raise ValueError("a deviation is below 0")
    return deviations


def _read_numbers(values: Any, dimensions: int) -> Floats:
    """The numbers, which must be finite.

    Raises: TypeError or ValueError.
    """
    flat = values if dimensions == 1 else list(itertools.chain.from_iterable(values))
    if not all(type(value) in (int, float) and abs(value) <= LARGEST for value in flat):
        raise ValueError("an entry is no number")
    array = np.array(values, np.float64)
    if array.ndim != dimensions:
        raise ValueError("rows differ in length")
    return array
