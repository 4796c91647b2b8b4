"""Labels by a linear model whose sufficient statistics are released once."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result, note
from .._support.parameters import Rules, SettableParameters, check_fields, optional
from .._support.random_state import check_random_state, make_generator
from .._support.types import Floats, RandomState
from .._support.validate import instance, one_of, positive, probability, shorten
from ..budget.account import Budget, spend
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError
from ..learners import FeatureMap, ReleasedStatistics, SufficientStatistics
from ..record import PrivacyRecord, rng_of
from .public_facts import Facts, check_classes, choose_marker, compare, facts_of
from .public_features import PopulationTest, PublicFeatures, Release, make_features
from .results import LabelResult
from .saved_files import read_labeler, write_labeler
from .statistics_rows import LabeledRecords, Price, PublicRows, check_container

Population = Literal["same", "tested"]
# The share of epsilon and delta that the comparison of populations costs.
SHARE = 0.1
_SOURCE = "sufficient statistics, McCullagh and Nelder 1989, with Gaussian noise"


@dataclass(frozen=True, eq=False)
class _FittedStatistics:
    """The result of a fit; all of it may be published.

    Attributes:
        classes: The label set in order.
        facts: Container, columns and dtypes of the records.
        features: What the pool made of columns.
        model: A StatisticsModel, or the model that gradients learned.
        statistics: The release; None for gradients.
        test: The comparison of populations; None where none was paid for.
        record: What protects the records.
    """

    classes: NDArray[Any]
    facts: Facts | None
    features: PublicFeatures
    model: Any
    statistics: ReleasedStatistics | None
    test: PopulationTest | None
    record: PrivacyRecord

    def posteriors(self, name: str, points: Any) -> Floats:
        """The model's probability of each class for each point, shape (m, K)."""
        probabilities: Floats = self.model.predict_proba(self.features.rows(name, points))
        return probabilities


@dataclass(kw_only=True, repr=False, eq=False)
class StatisticsLabeler(SettableParameters):
    """Answers with the labels of a linear model that one noisy release of the records makes.

    The release is the sum over all records of phi(x) (e_y - 1/K)^T: all that multinomial logistic
    regression needs of the labels. What else it needs are features, and a public pool has them. The
    model is computed from the release and the pool, so that it may be published and answers any
    number of queries. No record is set aside for members, and no query costs anything.

    It wins where labels are about linear in public features and the pool is of the population of
    the records. It does not where no public features make labels linear, or where the pool is of
    another population: see `population`.

    The features phi are made of public facts alone. Columns of a data frame are centered and
    divided by their deviations in the pool; rows of an array are taken as they are, and those of a
    schema as it scales them. learners.suggest_features then keeps as many directions of the pool as
    the noise allows, and evens them out.

    Attributes:
        epsilon: Privacy parameter of everything that is released, above 0.
        delta: Privacy parameter of everything that is released, in (0, 1).
        classes: The public label set: 2 to 256 different integers, real numbers or texts.
        features: A FeatureMap of the caller, made without looking at private records; None makes
            one of the pool.
        schema: The Schema that makes numbers of a Table or data frame; None where all columns are
            numbers.
        population: "same" where the pool is of the population of the records. "tested" pays a tenth
            of epsilon and delta for a comparison of their mean features. Where these differ, the
            rest pays for noisy gradients, which learn from the records alone.
        threshold: A point gets a label if the model's probability of it is at least this, in [0,
            1), and bottom otherwise. 0.5 leaves two classes without bottoms.
        penalty: Weight of the model's penalty, above 0; None chooses it from released numbers.
        bottom: Marker that stands for bottom among the labels; None takes -1, NaN or the empty
            text.
        classes_: The label set in order, after fit.
        method_: "statistics" or "gradients": what the model was learned by, after fit.
        model_: The model, after fit.
        statistics_: The ReleasedStatistics, after fit; None for gradients.
        test_: The PopulationTest, after fit; None with population="same".
        record_: PrivacyRecord of everything that is released, after fit.

    Guarantee:
        Everything that fit keeps and label returns is (epsilon, delta)-DP when one record is
        replaced, for any number of queries. It is that of learners.SufficientStatistics, which is
        exact. With "tested" it is basic composition of two such releases, or of one and
        learners.PrivateSGD with exact numerics. The public pool is not protected. An entry of a
        record that is no finite number becomes the mean of its column in the pool, silently.

    Source:
        McCullagh and Nelder 1989 for the sufficient statistic; Vu and Slavkovic 2009 and Wang 2018
        for releasing it.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> rng = np.random.default_rng(0)
        >>> X, Q = rng.normal(size=(20_000, 3)), rng.normal(size=(1_000, 3))
        >>> labeler = labels.StatisticsLabeler(epsilon=1.0, delta=1e-6, classes=["no", "yes"])
        >>> labeler.fit(X, np.where(X[:, 0] > 0, "yes", "no"), Q)
        StatisticsLabeler(epsilon=1.0, delta=1e-06): learned by statistics, any number of queries
        >>> labeler.label([[2.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]).labels.tolist()
        ['yes', 'no']
    """

    epsilon: float
    delta: float
    classes: ArrayLike
    features: FeatureMap | None = None
    schema: Schema | None = None
    population: Population = "same"
    threshold: float = 0.5
    penalty: float | None = None
    bottom: Any = None

    RULES: ClassVar[Rules] = {
        "epsilon": positive,
        "delta": probability,
        "population": partial(one_of, allowed=("same", "tested")),
        "features": optional(partial(instance, kind=FeatureMap, what="a FeatureMap or None")),
        "schema": optional(partial(instance, kind=Schema, what="a Schema or None")),
        "penalty": optional(positive),
        "threshold": partial(probability, zero=True),
    }

    classes_: NDArray[Any] = field(init=False)
    method_: str = field(init=False)
    model_: Any = field(init=False)
    statistics_: ReleasedStatistics | None = field(init=False)
    test_: PopulationTest | None = field(init=False)
    record_: PrivacyRecord = field(init=False)

    _state: _FittedStatistics | None = field(init=False, default=None)

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        public: Any = None,
        *,
        budget: Budget | None = None,
        random_state: RandomState = None,
    ) -> Self:
        """Releases what the model needs of the records, and solves for it.

        What was learned before is forgotten. fit warns with a UtilityWarning where the release can
        be, or looks like, noise alone, and where the pool does not fit.

        Args:
            X: Records (n, d): an array, a sparse matrix or a data frame of numbers; with a schema,
                a Table or data frame with its columns. Or data.Chunks of them with their labels,
                each of which is folded where it is read.
            y: Labels of the records (n,), each one of classes. None beside Chunks.
            public: The public pool (m, d), of the same kind as X: usually the points that will be
                asked. Its labels are not needed.
            budget: Budget that epsilon and delta are charged to once, here, before anything is
                drawn; None charges nothing. Its neighbors must be "replace_one".
            random_state: None draws from the operating system; an int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            The labeler itself.

        Raises:
            ShapeError: X, y or public has another shape. This error, and all below, comes before
                anything is drawn.
            ParameterError: A parameter, X, y or public is not as described, or epsilon is so small
                that no noise that is drawn is enough.
            BudgetExceeded: The budget has less than epsilon and delta left.

        Guarantee:
            That of the class.

        Cost:
            A pass over X, n d (d + K), and some hundred products of the pool's features with a
            matrix of (d, K). A comparison that fails adds the steps of learners.PrivateSGD. Chunks
            are read twice, three times with "tested", a block in memory at a time; and where a
            comparison fails once more, for gradients need all rows in memory, 8 n d bytes.
        """
        check_random_state(random_state)
        fields = check_fields(self)
        classes = check_classes(self.classes)
        choose_marker(self.bottom, classes)
        pool = check_container("public", public)
        records = LabeledRecords.open(X, y, classes, pool, self.schema)
        test, rest = self._divide(fields["epsilon"], fields["delta"])
        release = Release(max(records.n, 1), classes, *rest)
        features = make_features(pool, self.schema, self.features, release)
        points = features.rows("public", pool)
        description = SufficientStatistics(features.features, classes=classes)
        rows = PublicRows(description, features, records, points)
        rows.calibrate(test, rest)
        means = None if test is None else rows.fold_means(test)
        state = rows.fold(rest)
        stream = None if random_state is None else make_generator(random_state)
        record = self._make_record(len(classes), features.features.columns, random_state)
        with spend(budget, record):
            result = None
            if test is not None and means is not None:
                result = rows.compare(means, test, stream)
            if result is not None and result.passed:
                _note_blind(result, records.n)
            statistics: ReleasedStatistics | None = None
            model: Any = None
            if result is None or result.passed:
                statistics = rows.release(state, rest, stream)
                model = statistics.solve(points, penalty=self.penalty)
            else:
                model = rows.descend(rest, stream)
        fitted = _FittedStatistics(
            classes, records.facts, features, model, statistics, result, record
        )
        self._begin(fitted)
        return self

    def label(self, Q: Any) -> LabelResult:
        """Answers queries with the labels of public points, any number of them.

        Args:
            Q: Points (q, d), with the columns of X.

        Returns:
            A LabelResult, whose queries_left is None: any number.

        Raises:
            ShapeError: Q has other columns than X.
            ParameterError: There is no model yet, or Q is of another kind than X.

        Guarantee:
            That of the class, for all calls together: post-processing.

        Cost:
            q d (d + K).
        """
        fitted = self._require_fitted()
        threshold = self.RULES["threshold"]("threshold", self.threshold)
        posteriors = self._posteriors(fitted, Q)
        codes = posteriors.argmax(axis=1)
        is_bottom = posteriors[np.arange(len(codes)), codes] < threshold
        marker = choose_marker(self.bottom, fitted.classes)
        result = LabelResult(
            labels=np.where(is_bottom, marker, fitted.classes[codes]),
            is_bottom=is_bottom,
            unstable_left=None,
            queries_left=None,
            record=fitted.record,
        )
        if len(codes) >= _FEW_POINTS and len(result.shares) < 2:
            rule = "so that they say nothing about points"
            help_ = "more records, a larger epsilon or other features would help"
            note(f"labels of all {len(codes):,} points are the same or bottom, {rule}: {help_}")
        return result

    def predict_proba(self, Q: Any) -> Floats:
        """Computes the model's probability of every class for public points.

        Args:
            Q: Points (q, d), with the columns of X.

        Returns:
            A float64 array of shape (q, K), in the order of classes_, whose rows add up to 1.

        Raises:
            ShapeError: Q has other columns than X.
            ParameterError: There is no model yet, or Q is of another kind than X.
        """
        return self._posteriors(self._require_fitted(), Q)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model and its record to a new .npz file, without pickle.

        All of it is released already: the file may be published.

        Args:
            path: Path of a new file.

        Raises:
            ParameterError: The file exists or cannot be written, there is no model yet, or the
                feature map is one of a function.
        """
        fitted = self._require_fitted()
        parameters = {name: getattr(self, name) for name in _SAVED}
        write_labeler(path, parameters, vars(fitted))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Opens what save wrote; nothing is charged, and no code in the file is run.

        Args:
            path: The path that save got.

        Returns:
            The labeler.

        Raises:
            CheckpointError: The file is not what save wrote.
        """
        parameters, parts = read_labeler(path)
        labeler = cls(**parameters)
        labeler._begin(_FittedStatistics(**parts))
        return labeler

    def unfitted(self) -> StatisticsLabeler:
        """Makes a labeler of the same parameters without a model.

        Returns:
            The new StatisticsLabeler.
        """
        return type(self)(**self.get_params(deep=False))

    def _divide(self, epsilon: float, delta: float) -> tuple[Price | None, Price]:
        """What the comparison costs, and what is left; the two sum to no more than both."""
        if self.population == "same":
            return None, (epsilon, delta)
        test = SHARE * epsilon, SHARE * delta
        rest = math.nextafter(epsilon - test[0], 0.0), math.nextafter(delta - test[1], 0.0)
        return test, rest

    def _make_record(self, classes: int, columns: int, random_state: RandomState) -> PrivacyRecord:
        kinds = f"{columns} columns, {classes} classes, population={self.population}"
        return PrivacyRecord(
            mechanism=f"labels.StatisticsLabeler, {kinds}",
            source=_SOURCE,
            neighbors="replace_one",
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            noise="rounded normal on integers",
            rng=rng_of(random_state),
        )

    def _begin(self, fitted: _FittedStatistics) -> None:
        self.classes_, self.model_ = fitted.classes, fitted.model
        self.statistics_, self.test_ = fitted.statistics, fitted.test
        self.method_ = "gradients" if fitted.statistics is None else "statistics"
        self.record_, self._state = fitted.record, fitted

    def _posteriors(self, fitted: _FittedStatistics, Q: Any) -> Floats:
        points = check_container("Q", Q)
        if fitted.facts is not None and not isinstance(points, Table):
            compare(fitted.facts, facts_of(points), "Q")
        return fitted.posteriors("Q", points)

    def _require_fitted(self) -> _FittedStatistics:
        if self._state is None:
            raise ParameterError("labeler has no model, but fit must make one first")
        return self._state

    def __repr__(self) -> str:
        options = f"epsilon={shorten(self.epsilon)}, delta={shorten(self.delta)}"
        state = "not fitted"
        if self._state is not None:
            state = f"learned by {self.method_}, any number of queries"
        return f"{type(self).__name__}({options}): {state}"


_SAVED = ("epsilon", "delta", "population", "threshold", "penalty", "bottom")
# A comparison that rejects no smaller distance of mean features, of at most 2, sees too little.
_BLIND = 0.5
# Labels of fewer points may well be the same.
_FEW_POINTS = 8


def _note_blind(test: PopulationTest, n: int) -> None:
    """Note a comparison that could have seen next to nothing, from public facts."""
    if test.most > _BLIND:
        facts = f"n = {n:,} records and epsilon = {test.epsilon:.2g}"
        rule = "comparison only makes out mean features that differ by more than"
        help_ = "more records or a larger epsilon would help, or points that are known to fit"
        note(f"population = 'tested', but with {facts} the {rule} {test.most:.2g}: {help_}")
