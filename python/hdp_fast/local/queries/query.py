"""Statistical queries that JSON can carry, for real agents as for simulated ones."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.containers import refuse_masked_rows
from ..._support.numbers import clip, entries, floats, losses, predictions, silence, to_numbers
from ..._support.types import Floats
from ..._support.validate import (
    array,
    finite_number,
    from_json,
    interval,
    nonnegative_int,
    number,
    numbers,
    refuse,
    sequence,
    unit_interval,
)
from ...exceptions import ParameterError, ShapeError
from ...gf2 import BitMatrix
from ...learners.descriptions import DESCRIBED, check_map, parse
from ...learners.scores import (
    Score,
    ScoredModel,
    describe_score,
    predictor,
    save_loss,
    score_of,
    shift_at,
    with_bits,
)
from ...learners.statistics_model import StatisticsModel

_Fields = Mapping[str, Any]
# The bytes of bits that are unpacked at a time.
_UNPACKED = 1 << 24


@dataclass(frozen=True)
class _Label:
    """The label y."""

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        return clip(labels, 0.0)

    def describe(self) -> dict[str, Any]:
        return {"kind": "label"}

    def __str__(self) -> str:
        return "y"


@dataclass(frozen=True, eq=False)
class _ScoreAbove:
    """Whether the score of a model is above a threshold."""

    threshold: float
    model: ScoredModel

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        return (_score_each(self.model, records) > self.threshold).astype(np.float64)

    def describe(self) -> dict[str, Any] | None:
        model = self.model.description
        if model is None:
            return None
        return {"kind": "score_above", "model": model, "threshold": self.threshold}

    def __str__(self) -> str:
        return f"score > {self.threshold:g}"


@dataclass(frozen=True, eq=False)
class _LossSaved:
    """How much log loss a shift of a model's score saves, within bounds that become 0 and 1."""

    model: ScoredModel
    knots: Floats
    shifts: Floats
    low: float
    high: float

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        scores = _score_each(self.model, records)
        saved = save_loss(scores, shift_at(scores, self.knots, self.shifts), clip(labels, 0.0))
        # Nothing is saved or lost for a record without a score or a label.
        saved[np.isnan(saved) | ~np.isfinite(labels)] = 0.0
        return (np.clip(saved, self.low, self.high) - self.low) / (self.high - self.low)

    def describe(self) -> dict[str, Any] | None:
        model = self.model.description
        if model is None:
            return None
        lists = {"knots": self.knots.tolist(), "shifts": self.shifts.tolist()}
        bounds = {"low": self.low, "high": self.high}
        return {"kind": "loss_saved", "model": model, **lists, **bounds}

    def __str__(self) -> str:
        return f"log loss saved of [{self.low:.3g}, {self.high:.3g}]"


@dataclass(frozen=True)
class _Between:
    """Whether a column lies in an interval, its lower end included."""

    column: int
    low: float | None
    high: float | None

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        values = floats(to_numbers(records[:, self.column]))
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        inside = np.isfinite(values) & (low <= values) & (values < high)
        return inside.astype(np.float64)

    def describe(self) -> dict[str, Any]:
        return {"kind": "between", **dataclasses.asdict(self)}

    def __str__(self) -> str:
        left = "" if self.low is None else f"{self.low:g} <= "
        right = "" if self.high is None else f" < {self.high:g}"
        return f"{left}x{self.column}{right}"


@dataclass(frozen=True)
class _Value:
    """A column, clipped to an interval that becomes [0, 1]."""

    column: int
    low: float
    high: float

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        values = floats(to_numbers(records[:, self.column]))
        return clip((values.clip(self.low, self.high) - self.low) / (self.high - self.low), 0.0)

    def describe(self) -> dict[str, Any]:
        return {"kind": "value", **dataclasses.asdict(self)}

    def __str__(self) -> str:
        return f"x{self.column} of [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True, eq=False)
class _Wrong:
    """Whether a model's prediction differs from the label."""

    predictor: _Predictor

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        return self.predictor.mistakes(records, labels)

    def describe(self) -> dict[str, Any] | None:
        model = self.predictor.describe()
        return None if model is None else {"kind": "wrong", "model": model}

    def __str__(self) -> str:
        return "wrong"


@dataclass(frozen=True, eq=False)
class _Worse:
    """Which of two models is wrong: 1 the first alone, 0 the second alone, 1/2 both or none."""

    predictor: _Predictor
    other: _Predictor

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        mistakes = (one.mistakes(records, labels) for one in (self.predictor, self.other))
        first, second = mistakes
        answers: Floats = (1 + first - second) / 2
        return answers

    def describe(self) -> dict[str, Any] | None:
        model, other = self.predictor.describe(), self.other.describe()
        if model is None or other is None:
            return None
        return {"kind": "worse", "model": model, "other": other}

    def __str__(self) -> str:
        return "worse"


@dataclass(frozen=True, eq=False)
class _Predictor:
    """Predictions of a model, and its description, if it has one."""

    predict: Callable[[Any], Any]
    model: dict[str, Any] | StatisticsModel | None

    def describe(self) -> dict[str, Any] | None:
        """The description; that of statistics holds the whole feature map."""
        return describe_score(self.model) if isinstance(self.model, StatisticsModel) else self.model

    def mistakes(self, records: NDArray[Any], labels: Floats) -> Floats:
        """Where the predictions differ from the labels; a record without a prediction is wrong."""
        rows = floats(to_numbers(records))
        usable = np.asarray(np.isfinite(rows).all(axis=1))
        if not usable.all():
            rows = np.where(usable[:, None], rows, 0.0)
        wrong = ~usable | (_compute_each(self.compute, rows) != labels)
        mistakes: Floats = np.asarray(wrong, np.float64)
        return mistakes

    def compute(self, rows: Floats) -> Floats:
        """The predictions as numbers."""
        if self.model is None:
            # Which type the rows have must not depend on other rows, as it would for bits.
            values = self.predict(rows)
            return predictions("model.predict(X)", values, len(rows)).astype(np.float64)
        return floats(np.asarray(self.predict(with_bits(rows))))


@dataclass(frozen=True, eq=False)
class _Weighted:
    """The sum of the answers to queries, each multiplied with its weight."""

    parts: tuple[tuple[Query, float], ...]

    def __call__(self, records: NDArray[Any], labels: Floats) -> Floats:
        total = np.zeros(len(records))
        for query, weight in self.parts:
            total += weight * query.multiply(records, labels)
        return clip(total, 0.0)

    def describe(self) -> dict[str, Any] | None:
        described = [[query.hypothesis, weight] for query, weight in self.parts]
        if any(hypothesis is None for hypothesis, _ in described):
            return None
        return {"kind": "weighted", "queries": described}

    def __str__(self) -> str:
        words = (f"{weight:g} ({query.words})" for query, weight in self.parts)
        return f"({' + '.join(words)})"


_Term = _Label | _ScoreAbove | _LossSaved | _Between | _Value | _Wrong | _Worse | _Weighted


class Query:
    """A statistical query whose answer about a record lies in [0, 1], and that JSON can carry.

    A query is a product of terms: the label, whether a model's score is above a threshold, how much
    log loss a shift of its scores saves, whether a model is wrong, or worse than another one,
    whether a column lies in an interval, the value of a column within bounds, and weighted sums of
    queries. `a & b` is the product of two queries; for
    answers 0 and 1 it says whether both hold.

    Simulated agents answer it like any function of X and y, and real ones from its JSON. No record
    causes an error: a column that is missing or infinite in a record makes the answer 0 (but
    `value` clips what is infinite), and so does a label that is no number, or a record that the
    model cannot score. A model that cannot predict counts as wrong.

    A model of other code gets rows of float64, or of uint8 where it refuses a row of zeros as
    float64. It must score each record on its own: where what it returns about one record depends
    on the others of a call, so do the answers of simulated agents.

    Thresholds and models must be public or released before. Scores of a model that takes few values
    can equal a threshold; a threshold between two of them counts the same on every machine.

    Args:
        terms: What is multiplied. The class methods below make them.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> adults = local.Query.between(0, low=18)
        >>> query = adults & local.Query.label()  # adults who say yes
        >>> query, query(np.array([[17.0], [30.0], [np.nan]]), np.array([1, 1, 1])).tolist()
        (Query(18 <= x0 and y), [0.0, 1.0, 0.0])
        >>> agents = local.Agents(np.full((10_000, 1), 30.0), np.ones(10_000, int), epsilon=1.0)
        >>> answers = agents.ask(query, 10_000)
        >>> local.estimate_mean(answers, beta=1e-6, epsilon=1.0).value > 0.9
        True
    """

    def __init__(self, terms: tuple[_Term, ...]):
        self._terms = terms

    @cached_property
    def hypothesis(self) -> dict[str, Any] | None:
        """The query as a dict that JSON can carry, {"kind": "query", "terms": [...]}.

        None where one of its models has no description, such as one that is scored by
        predict_proba, decision_function, or a function.
        """
        described = [term.describe() for term in self._terms]
        return None if None in described else {"kind": "query", "terms": described}

    @classmethod
    def label(cls) -> Query:
        """Asks for the label y.

        Returns:
            The query.
        """
        return cls((_Label(),))

    @classmethod
    def score_above(cls, model: Any, threshold: float) -> Query:
        """Asks whether a record's score is above a threshold.

        Args:
            model: A released or public model, as `learners.score_of` takes it.
            threshold: The threshold, a finite number.

        Returns:
            The query.

        Raises:
            ParameterError: The model has no score for two classes, or the threshold is not finite.
        """
        limit = finite_number("threshold", threshold)
        return cls((_ScoreAbove(limit, ScoredModel.of(model)),))

    @classmethod
    def loss_saved(
        cls, model: Any, knots: Sequence[float], shifts: Sequence[float], low: float, high: float
    ) -> Query:
        """Asks how much log loss a shift of a model's score saves: `(saved - low) / (high - low)`.

        The log loss of a score s is `log(1 + exp(s)) - y s`, that of the probability
        `1 / (1 + exp(-s))`. What is saved is that of the score less that of the score plus the
        shift, clipped to [low, high]; for a record without a score or a label it is 0.

        Args:
            model: A released or public model, as `learners.score_of` takes it.
            knots: Increasing scores, between which the shift is linear, and beyond which it is that
                of the first and the last; the shift is 0 where there are none.
            shifts: The shift at each knot.
            low: What becomes 0, and as which less counts.
            high: What becomes 1, and as which more counts.

        Returns:
            The query.

        Raises:
            ParameterError: The model has no score for two classes, or a number breaks its rule.

        Examples:
            >>> from hdp_fast.local import Query
            >>> query = Query.loss_saved(lambda X: X[:, 0], [0.0], [-2.0], -2.0, 2.0)
            >>> query([[3.0], [3.0]], [0, 1]).round(2).tolist()  # too sure of a 1
            [0.93, 0.43]
        """
        places, moves = check_map(list(sequence("knots", knots)), list(sequence("shifts", shifts)))
        made = ScoredModel.of(model), np.array(places, float), np.array(moves, float)
        return cls((_LossSaved(*made, *interval(low, high)),))

    @classmethod
    def wrong(cls, model: Any) -> Query:
        """Asks whether a model's prediction differs from the label.

        A record that the model cannot predict, or without a label, counts as wrong.

        Args:
            model: A released or public model with a description `hypothesis` or a method predict,
                or such a description or its JSON. A StatisticsModel must have two classes, and is
                right about label 1 where it predicts the second one.

        Returns:
            The query.

        Raises:
            ParameterError: The model has neither, or the description is none.
        """
        return cls((_Wrong(_predictor_of("model", model)),))

    @classmethod
    def worse(cls, model: Any, other: Any) -> Query:
        """Asks which of two models is wrong: 1 if the first alone is, 0 if the second alone is.

        The answer is 1/2 where both are wrong or none is. If its mean is m, then the error of the
        first model minus that of the second is 2 m - 1.

        Args:
            model: The first model, as `wrong` takes it.
            other: The second model.

        Returns:
            The query.

        Raises:
            ParameterError: A model is none.
        """
        return cls((_Worse(_predictor_of("model", model), _predictor_of("other", other)),))

    @classmethod
    def between(cls, column: int, low: float | None = None, high: float | None = None) -> Query:
        """Asks whether `low <= x < high` for a column x of the record.

        Args:
            column: Index of the column, from 0.
            low: Lower end, which is included; None for none.
            high: Upper end, which is not included; None for none.

        Returns:
            The query.

        Raises:
            ParameterError: An argument breaks its rule, both ends are None, or low is not below
                high.
        """
        place = nonnegative_int("column", column)
        if low is None and high is None:
            raise ParameterError("low = None and high = None, but one of them must be a number")
        least, most = _end("low", low), _end("high", high)
        if least is not None and most is not None and not least < most:
            raise ParameterError(f"low = {least:g} and high = {most:g}, but low must be below high")
        return cls((_Between(place, least, most),))

    @classmethod
    def value(cls, column: int, low: float, high: float) -> Query:
        """Asks for `(clip(x, low, high) - low) / (high - low)` of a column x of the record.

        Args:
            column: Index of the column, from 0.
            low: The number that becomes 0, and as which a smaller one counts.
            high: The number that becomes 1, and as which a greater one counts.

        Returns:
            The query.

        Raises:
            ParameterError: An argument breaks its rule.
        """
        return cls((_Value(nonnegative_int("column", column), *interval(low, high)),))

    @classmethod
    def weighted(cls, queries: Sequence[tuple[Query, float]]) -> Query:
        """Asks for a weighted sum of the answers to other queries, cut off at 1.

        With disjoint groups as queries, a person's answer is the weight of its group.

        Args:
            queries: Pairs of a query and its weight, a number in [0, 1].

        Returns:
            The query.

        Raises:
            ParameterError: There is no pair, or a pair is none.

        Examples:
            >>> from hdp_fast.local import Query
            >>> young, old = Query.between(0, high=50), Query.between(0, low=50)
            >>> query = Query.weighted([(young, 0.25), (old, 1.0)]) & Query.label()
            >>> query([[20], [70], [30]], [1, 1, 0]).tolist()
            [0.25, 1.0, 0.0]
        """
        pairs = [tuple(sequence("queries", pair)) for pair in sequence("queries", queries)]
        if not pairs:
            raise ParameterError("queries are none, but there must be one")
        for pair in pairs:
            if len(pair) != 2 or not isinstance(pair[0], Query):
                refuse("queries", queries, "it must hold pairs of a local.Query and its weight")
            unit_interval("weight", pair[1])
        return cls((_Weighted(tuple((query, float(weight)) for query, weight in pairs)),))

    def __and__(self, other: Query) -> Query:
        """Makes the query whose answer is the product of both answers."""
        if not isinstance(other, Query):
            return NotImplemented
        return Query(self._terms + other._terms)

    def __call__(self, X: Any, y: Any) -> Floats:
        """Computes the true answers of records.

        Args:
            X: The features, shape (m, d): an array of any type, a BitMatrix, or m rows.
            y: The labels, shape (m,).

        Returns:
            A float64 array of shape (m,) in [0, 1].

        Raises:
            ShapeError: X has not two dimensions or not the columns that the query is about, or y
                has not m entries.
            ParameterError: X or y is a masked array.

        Cost:
            A pass over X, and the models' scores.
        """
        records = X if isinstance(X, BitMatrix) else _records(X)
        labels, (count, d) = read_labels(y), records.shape
        if labels.shape != (count,):
            raise ShapeError(f"y has shape {labels.shape}, but X has {count:,} records")
        self.check(d)
        answers = np.ones(count)
        # Bits that are unpacked take eight times the room: some rows at a time.
        step = max(1, _UNPACKED // max(1, d)) if isinstance(X, BitMatrix) else max(1, count)
        with silence():
            for part in (slice(start, start + step) for start in range(0, count, step)):
                answers[part] = self.multiply(np.asarray(records[part]), labels[part])
        return answers

    def multiply(self, records: NDArray[Any], labels: Floats) -> Floats:
        """Computes the answers about records that were checked.

        Args:
            records: The features, an array of shape (m, d).
            labels: The labels, float64 of shape (m,).

        Returns:
            A float64 array of shape (m,) in [0, 1].

        Raises:
            ShapeError: records is no matrix, or labels has another length.
            ParameterError: labels are no numbers.
        """
        rows, marks = array("records", records), numbers("labels", labels)
        if rows.ndim != 2 or marks.shape != rows.shape[:1]:
            rule = "they must be (m, d) and (m,)"
            raise ShapeError(f"records and labels have shapes {rows.shape}, {marks.shape}: {rule}")
        answers = np.ones(len(rows))
        for term in self._terms:
            answers *= term(rows, marks)
        return answers

    @property
    def bounds(self) -> tuple[float, float]:
        """What the answers 0 and 1 stand for: the bounds of a value, and else 0 and 1."""
        if len(self._terms) == 1 and isinstance(self._terms[0], _Value):
            return self._terms[0].low, self._terms[0].high
        return 0.0, 1.0

    def check(self, d: int) -> None:
        """Refuses, before anybody is asked, a query that does not fit records of d features.

        Args:
            d: Number of features of a record.

        Raises:
            ShapeError: The query asks about a column beyond them, or a model of another number of
                columns.
            ParameterError: d is no integer of at least 0.
        """
        d = nonnegative_int("d", d)
        terms = list(self._leaves())
        largest = max(getattr(term, "column", -1) for term in terms)
        if largest >= d:
            raise ShapeError(f"query asks about column {largest}, but a record has {d} features")
        for rehearse in (rehearse for term in terms for rehearse in _rehearsals_of(term)):
            try:
                with silence():
                    rehearse(d)
            except Exception as error:
                rule = f"it must take records of {d} features"
                raise ShapeError(f"query asks about a model, but {rule}: {error}") from None

    def to_json(self) -> str:
        """Writes the query as JSON, which from_json reads.

        Returns:
            The text.

        Raises:
            ParameterError: A model of the query has no description.
        """
        if self.hypothesis is None:
            refuse("query", self, f"its model has no description for devices: {DESCRIBED}")
        return json.dumps(self.hypothesis)

    @classmethod
    def from_json(cls, text: str) -> Query:
        """Reads the query that to_json wrote.

        Args:
            text: The JSON object.

        Returns:
            The query.

        Raises:
            ParameterError: text is not such an object.

        Examples:
            >>> from hdp_fast import local
            >>> local.Query.from_json(local.Query.value(2, 0, 10).to_json())
            Query(x2 of [0, 10])
        """
        return from_json("query", text, "Query.to_json", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: _Fields) -> Query:
        if fields.keys() != {"kind", "terms"} or fields["kind"] != "query":
            raise ParameterError("query must have the keys kind, which is query, and terms")
        queries = [_READERS[term["kind"]](term) for term in sequence("terms", fields["terms"])]
        if not queries:
            raise ParameterError("terms are none, but a query must have one")
        return cls(tuple(term for query in queries for term in query._terms))

    def _leaves(self) -> Iterator[_Term]:
        """The terms, those of weighted queries in their place."""
        for term in self._terms:
            if isinstance(term, _Weighted):
                for query, _ in term.parts:
                    yield from query._leaves()
            else:
                yield term

    def __repr__(self) -> str:
        return f"Query({self.words})"

    @property
    def words(self) -> str:
        """The query in words."""
        return " and ".join(map(str, self._terms))


def true_answers(hypothesis: str | Mapping[str, Any], X: Any, y: Any) -> Floats:
    """Answers a query, or whether a hypothesis is wrong, about records: a device's part.

    A device does this with its own record, and sends nothing of the answer but what a randomizer of
    it makes, such as `randomized_response`.

    Args:
        hypothesis: What RemoteAgents send: `Query.to_json`, or the JSON of a hypothesis that
            learners.predictor reads; or either as a dict.
        X: The features of m records, shape (m, d).
        y: Their labels, shape (m,).

    Returns:
        A float64 array of shape (m,) in [0, 1]: the answers to the query, or 1 where the hypothesis
        is wrong. Whatever a record is, there is an answer: where a query does not fit it, it is 0,
        and where a hypothesis cannot be applied, it counts as wrong.

    Raises:
        ParameterError: `hypothesis` is neither, or X or y is a masked array. This depends on no
            record.
        ShapeError: There are not as many labels as records.

    Examples:
        >>> from hdp_fast import local
        >>> rule = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}
        >>> local.true_answers(rule, [[0, 1], [0, 0]], [1, 1]).tolist()
        [0.0, 1.0]
        >>> local.true_answers(local.Query.between(1, low=1).to_json(), [[0, 1]], [1]).tolist()
        [1.0]
    """
    if isinstance(hypothesis, str):
        content = from_json("hypothesis", hypothesis, "a query or a hypothesis", _mapping)
    else:
        content = _mapping(hypothesis)
    X, labels = read_arrays("X", X), read_labels(y)
    if labels.shape != (len(X),):
        raise ShapeError(f"y has shape {labels.shape}, but X has {len(X):,} records")
    if content.get("kind") == "query":
        query = Query.from_json(json.dumps(content))
        return _answer_each(query, 0.0, X, labels)
    predict = predictor(parse(dict(content)))

    def mistakes(X: Any, y: Any) -> Floats:
        records = with_bits(to_numbers(np.asarray(X)))
        wrong: NDArray[np.bool_] = np.asarray(predict(records)) != np.asarray(y)
        return wrong.astype(np.float64)

    return losses("mistakes", _answer_each(mistakes, 1.0, X, labels), len(X))


def _mapping(content: Any) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        rule = "it must be the description of a query or a hypothesis"
        raise ParameterError(f"hypothesis is {type(content).__name__}, but {rule}")
    return content


def _answer_each(question: Callable[[Any, Any], Floats], default: float, X: Any, y: Any) -> Floats:
    """The answers, one record at a time where the question fails on all of them."""
    try:
        with silence():
            return question(np.asarray(X), y)
    except Exception:
        if len(X) == 1:
            return np.full(1, default)
    return np.array(
        [_answer_each(question, default, [x], y[i : i + 1])[0] for i, x in enumerate(X)]
    )


def _takes_floats(compute: Score, d: int) -> bool:
    """Whether a model takes rows of floats, rather than bits alone; no record decides it.

    Raises:
        Exception: What the model raises about zeros of type float64, if it takes no bits either.
    """
    if any(_fault(compute, np.full((1, d), number)) is None for number in (0.5, 2.0)):
        return True
    if _fault(compute, np.zeros((1, d), np.uint8)) is None:
        return False
    fault = _fault(compute, np.zeros((1, d)))
    if fault is not None:
        raise fault from None
    return True


def _fault(compute: Score, rows: NDArray[Any]) -> Exception | None:
    """What a model raises about these rows."""
    try:
        compute(rows)
    except Exception as error:
        return error
    return None


def _score_each(model: ScoredModel, records: NDArray[Any]) -> Floats:
    """The score of each record; NaN where the model has none.

    The description of a model has none for a record with a missing column. Other code may have one,
    and then scores those records after the calibration, too.
    """
    rows = floats(to_numbers(records))
    if model.description is None:
        takes_floats = _score_takes_floats(model, rows.shape[1])
        return _compute_kind(model.score, rows, takes_floats) if len(rows) else np.zeros(0)
    usable = np.asarray(np.isfinite(rows).all(axis=1))
    if not usable.all():
        rows = np.where(usable[:, None], rows, 0.0)
    if not len(rows):
        return np.zeros(0)
    scores = _compute_kind(model.score, rows, _score_takes_floats(model, rows.shape[1]))
    return np.where(usable, scores, np.nan)


def _score_takes_floats(model: ScoredModel, d: int) -> bool:
    """Whether a model scores rows of floats, found out once."""
    if d not in model.takes_floats:
        model.takes_floats[d] = _takes_floats(model.score, d)
    return model.takes_floats[d]


def _compute_each(compute: Score, rows: Floats) -> Floats:
    """A number for each record; NaN for one that the model fails on, whatever it raises."""
    if not len(rows):
        return np.zeros(0)
    return _compute_kind(compute, rows, _takes_floats(compute, rows.shape[1]))


def _compute_kind(compute: Score, rows: Floats, floats_too: bool) -> Floats:
    """A number for each record, by a model that takes floats, or bits alone."""
    if floats_too:
        return _compute_or_fail(compute, rows)
    bits = (rows == 0) | (rows == 1)
    numbers = _compute_or_fail(compute, np.where(bits, rows, 0).astype(np.uint8))
    return np.where(bits.all(axis=1), numbers, np.nan)


def _compute_or_fail(compute: Score, rows: NDArray[Any]) -> Floats:
    try:
        return compute(rows)
    except Exception:
        if len(rows) == 1:
            return np.full(1, np.nan)
    return np.concatenate([_compute_or_fail(compute, row[None]) for row in rows])


def _is_of_statistics(described: Any) -> bool:
    return isinstance(described, Mapping) and described.get("kind") == "statistics"


def _predictor_of(name: str, model: Any) -> _Predictor:
    """The predictions of a released model, or of a description of one.

    Raises:
        ParameterError: It has no description and no predict, or the description is none.
    """
    described = model if isinstance(model, str | Mapping) else getattr(model, "hypothesis", None)
    if isinstance(model, StatisticsModel) or _is_of_statistics(described):
        score = score_of(model)
        return _Predictor(
            lambda X: score(X) > 0,
            model if isinstance(model, StatisticsModel) else describe_score(described),
        )
    if isinstance(described, str | Mapping):
        content = parse(described if isinstance(described, str) else dict(described))
        return _Predictor(predictor(content), content)
    if isinstance(model, type) or not callable(getattr(model, "predict", None)):
        rule = "it must have predict, or be the description of a hypothesis"
        raise ParameterError(f"{name} is {type(model).__name__}, but {rule}")
    return _Predictor(model.predict, None)


def _rehearsals_of(term: _Term) -> list[Callable[[int], bool]]:
    """What tries the models of a term on made-up records of so many features."""
    if isinstance(term, _ScoreAbove | _LossSaved):
        return [partial(_score_takes_floats, term.model)]
    predictors = {_Wrong: ("predictor",), _Worse: ("predictor", "other")}.get(type(term), ())
    return [partial(_takes_floats, getattr(term, name).compute) for name in predictors]


def _records(X: Any) -> NDArray[Any]:
    values = array("X", X)
    if values.ndim != 2:
        raise ShapeError(f"X has shape {values.shape}, but it must have two dimensions")
    return values


def read_arrays(name: str, value: Any) -> Any:
    """A list of records as it is, each of which is read for itself, and all else as an array.

    Raises: ParameterError for masked arrays and lists of them, whose hidden entries numpy would
    show, and for what is no container.
    """
    if isinstance(value, list | tuple):
        refuse_masked_rows(name, value)
        return value
    values = array(name, value)
    if not values.ndim:
        raise ShapeError(f"{name} has shape (), but it must have records")
    return values


def read_labels(y: Any) -> Floats:
    """The labels as floats, with NaN for what is no number."""
    read = read_arrays("y", y)
    return floats(entries("y", read) if isinstance(read, list | tuple) else to_numbers(read))


def _end(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    end = number(name, value)
    if not math.isfinite(end):
        refuse(name, value, "it must be a finite number or None")
    return end


def _read(keys: set[str], make: Callable[..., Query]) -> Callable[[_Fields], Query]:
    def read(term: _Fields) -> Query:
        if term.keys() != {"kind", *keys}:
            raise ParameterError(f"a term of this kind must have the keys {sorted(keys)}")
        return make(**{key: part for key, part in term.items() if key != "kind"})

    return read


def _read_pairs(pairs: Any) -> list[tuple[Query, Any]]:
    return [(Query._from_fields(fields), weight) for fields, weight in sequence("queries", pairs)]


_READERS: dict[Any, Callable[[_Fields], Query]] = {
    "label": _read(set(), Query.label),
    "score_above": _read({"model", "threshold"}, Query.score_above),
    "loss_saved": _read({"model", "knots", "shifts", "low", "high"}, Query.loss_saved),
    "wrong": _read({"model"}, Query.wrong),
    "worse": _read({"model", "other"}, Query.worse),
    "weighted": _read({"queries"}, lambda queries: Query.weighted(_read_pairs(queries))),
    "between": _read({"column", "low", "high"}, Query.between),
    "value": _read({"column", "low", "high"}, Query.value),
}
