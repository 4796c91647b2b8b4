"""A classifier of scikit-learn that learns from private labels of a public pool."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.containers import to_readable
from .._support.feature_names import names_of
from .._support.notes import keep_result, note
from .._support.types import Floats, RandomState
from .._support.validate import one_of, positive_int, refuse, shorten
from ..budget.account import Budget, check_charge
from ..data.records import check_features, count_rows, take_rows
from ..data.schema import Schema
from ..exceptions import ParameterError, ShapeError
from ..labels.pool import PoolTask
from ..labels.public_facts import compare, facts_of
from .pool_labels import PoolLabels, PoolRecords, unused_label
from .private_estimator import SeededEstimator, check_privacy, note_score
from .row_labels import code_labels, encode, read_classes
from .toolkit import (
    ClassifierMixin,
    DummyClassifier,
    available_if,
    check_array,
    check_is_fitted,
    clone,
    column_or_1d,
    shield,
    shield_code,
    usual_classifier,
    validate_data,
)
from .transformers import SchemaTransformer

_METHODS = ("auto", "statistics", "votes")
_MOST = 1 << 39
# Number of rows of the pool that a student is tried on.
_TRIAL_ROWS = 256


def _student_has(name: str) -> Callable[[Any], bool]:
    """Whether the student, fitted or not, has a method."""

    def has(self: Any) -> bool:
        return hasattr(getattr(self, "student_", None) or self._make_student(), name)

    return has


class PrivateStudentClassifier(ClassifierMixin, SeededEstimator):  # type: ignore[misc]
    """Any classifier of scikit-learn, trained on private labels of a public pool.

    fit labels rows of the pool with the help of the private records, and trains a student on these
    rows in the open. Predictions are the student's: they cost nothing, however many there are.
    There are two ways to label. "votes" trains many members, which vote on each row of the pool;
    each is a copy of `estimator` with records of its own. It takes any classifier. "statistics"
    releases sums of the records once, and labels by the linear model that they make. It needs
    labels that are about linear in the columns.

    Args:
        estimator: The classifier of every member, with fit and predict; None for logistic
            regression on standardized columns. Any preparation of columns must be a part of it, in
            a pipeline, since the pool needs the same.
        student: The classifier that learns from the labeled pool; None for a copy of `estimator`.
        epsilon: Privacy parameter of a fit, above 0. It must be chosen; math.inf lets one copy of
            `estimator` learn from all records, adds no noise and protects no one.
        delta: Privacy parameter, strictly between 0 and 1.
        pool: Public rows (m, d) without labels, of the same kind and columns as X. Only with
            epsilon = math.inf None takes X itself.
        classes: The public labels, 2 to 256. Only with epsilon = math.inf None takes them from the
            data, any number of them. Numbered labels of ensembles are read as PrivateClassifier
            does.
        schema: Public data.Schema that makes numbers of frames and tables before anything learns
            from them; its label is not used. None takes columns as they are.
        method: "votes", "statistics", or "auto". Where an estimator is given, "auto" takes votes.
            Otherwise it takes what labels.choose_method chooses from the numbers of records,
            columns, classes and rows of the pool, and votes where a column holds no numbers. If it
            takes "statistics", it pays a tenth of epsilon and delta to find out whether the pool is
            of the population of the records.
        members: Number of members that vote. None takes as many as labels.PrivateLabeler plans, or
            fewer where they would have fewer than 30 records each, as long as at most one unanimous
            vote in twenty is lost.
        queries: The largest number of rows of the pool that votes are held on, spread evenly over
            it. More queries need more members. "statistics" labels the whole pool.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one. The student keeps the seeds that
            it has.

    Attributes:
        classes_: The classes in order, shape (K,).
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        method_: "votes" or "statistics", as labels were made; None with epsilon = math.inf.
        members_: Number of members that voted; None where none did.
        pool_rows_: Numbers of the rows of the pool that got a label, shape (q,).
        pool_labels_: Their labels, shape (q,). They may be published.
        student_: The student, trained on these rows. It may be published.
        record_: The PrivacyRecord of the fit; None with epsilon = math.inf.

    Guarantee:
        That of fit.

    Cost:
        The training of the members on their parts and of the student, and a prediction of every
        member for every row that is asked.

    Source:
        Bassily, Thakkar and Thakurta 2018, Algorithm 5, as labels.PrivateLabeler has it; for
        "statistics" that of labels.StatisticsLabeler.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import PrivateStudentClassifier
        >>> rng = np.random.default_rng(0)
        >>> X, pool = rng.normal(size=(9_000, 2)), rng.normal(size=(100, 2))
        >>> y = np.where(X[:, 0] > 0, "yes", "no")
        >>> public = {"pool": pool, "classes": ["no", "yes"]}
        >>> learner = PrivateStudentClassifier(epsilon=1.0, method="statistics", **public)
        >>> learner.fit(X, y).predict([[2.0, 0.0], [-2.0, 0.0]]).tolist()
        ['yes', 'no']
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        student: Any = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        pool: Any = None,
        classes: ArrayLike | None = None,
        schema: Schema | None = None,
        method: str = "auto",
        members: int | None = None,
        queries: int = 500,
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.estimator = estimator
        self.student = student
        self.epsilon = epsilon
        self.delta = delta
        self.pool = pool
        self.classes = classes
        self.schema = schema
        self.method = method
        self.members = members
        self.queries = queries
        self.test_seed = test_seed

    @keep_result
    def fit(self, X: Any, y: ArrayLike, *, budget: Budget | None = None) -> Self:
        """Labels the pool with the help of private records, and trains the student on it.

        fit warns with a UtilityWarning where there are too few records for members that a vote
        needs, where labels say nothing, and where the pool does not fit.

        Args:
            X: The records: finite numbers of shape (n, d), or a frame of pandas or polars whose
                columns the estimator takes; with a schema any frame or data.Table.
            y: Their labels, shape (n,), entries of classes.
            budget: The budget that the fit is charged to, as a whole and before any member is
                trained; None charges nothing. In a pipeline it is passed as STEP__budget.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A parameter lies outside its range, something public was not given at a
                finite epsilon, a label is none of classes, the estimator or student fails on rows
                of the pool with made-up labels, or a fit without noise comes with a budget.
            ShapeError: The pool has other columns than X, or no rows.
            InsufficientSamples: There are fewer records than `members`.
            ValueError: X or y is no array of finite numbers, or of another length.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            (epsilon, delta)-DP under "replace_one", with the number of records, their columns and
            dtypes public: what is released is the labels of the pool, and the student follows from
            them. It is that of labels.PrivateLabeler, whose random draws are exact, if `estimator`
            keeps nothing outside of its members; or that of labels.StatisticsLabeler. The pool is
            not protected. classes, schema and pool must not be chosen by a look at the records.
            Nothing is spent where an error is raised, except one of the student.
        """
        epsilon = self._check_parameters(budget)
        classes = read_classes(self.classes)
        records, labels = self._read_training(X, y)
        codes, self.classes_ = code_labels(labels, classes)
        pool = self._read_pool(records)
        if epsilon == math.inf:
            answers = self._label_openly(records, codes, pool)
        else:
            answers = self._label_privately(records, codes, pool, budget)
        self.pool_rows_, self.pool_labels_ = answers.rows, answers.labels
        self.method_, self.members_ = answers.method, answers.members
        self.record_ = answers.record
        self._learn(take_rows(pool, answers.rows), answers.labels, pool)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts classes with the student.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            An array of shape (m,) of classes.

        Raises:
            ValueError: fit has not been called (a NotFittedError), X is no array of finite numbers,
                or its columns are others or in another order.
        """
        labels: NDArray[Any] = np.asarray(self._ask_student("predict", X))
        return labels

    @available_if(_student_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Computes the student's probability of every class; only where the student has one.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m, K), in the order of classes_; 0 for a class that no row of
            the pool was labeled with.

        Raises:
            ValueError: As in predict.
        """
        shares = np.asarray(self._ask_student("predict_proba", X), np.float64)
        return self._spread(shares, 0.0)

    @available_if(_student_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Computes the student's scores; only where the student has some.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array: of shape (m,) for two classes, above 0 where the second is predicted,
            else (m, K), with the least float for a class that no row of the pool was labeled with.

        Raises:
            ValueError: As in predict.
        """
        scores = np.asarray(self._ask_student("decision_function", X), np.float64)
        if scores.ndim == 1 and len(self.classes_) > 2:
            scores = np.column_stack([-scores, scores])
        return scores if scores.ndim == 1 else self._spread(scores, np.finfo(np.float64).min)

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Computes the share of records that the student classifies correctly.

        The score is an unprotected release about X and y, and no budget is charged. Where they are
        private, as the folds of a search or a cross-validation are, neither publish it nor choose
        anything by it that is published: PrivateSearchCV chooses by a score that is paid for. The
        first call in a process warns of this.

        Args:
            X: The records, with the columns of fit; public ones.
            y: Their labels, shape (m,).
            sample_weight: Public weights of shape (m,); None weighs all alike.

        Returns:
            The share, from 0 to 1.

        Raises:
            ValueError: As in predict, or y or sample_weight has another length.
        """
        note_score(self)
        return float(shield("y", super().score, X, y, sample_weight))

    def _check_parameters(self, budget: Budget | None) -> float:
        self._check_seed()
        epsilon = check_privacy(self)
        one_of("method", self.method, _METHODS)
        positive_int("queries", self.queries, _MOST)
        if self.members is not None:
            positive_int("members", self.members, _MOST)
        for name in ("estimator", "student"):
            value = getattr(self, name)
            methods = ("fit", "predict", "get_params")
            whole = all(callable(getattr(value, method, None)) for method in methods)
            if value is not None and (isinstance(value, type) or not whole):
                refuse(name, value, "it must be a classifier as scikit-learn has them, or None")
        check_charge(budget, epsilon)
        return epsilon

    def _make_member(self) -> Any:
        return usual_classifier() if self.estimator is None else self.estimator

    def _make_student(self) -> Any:
        return self._make_member() if self.student is None else self.student

    def _ask_student(self, method: str, X: Any) -> Any:
        """What a method of the student says of records."""
        check_is_fitted(self, "student_")
        return shield_code("student", getattr(self.student_, method), self._read(X))

    def _read_training(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """The records as members take them, and their labels as a vector."""
        if self.schema is None and not _is_frame(X):
            records, labels = validate_data(self, X, y, dtype=np.float64)
            self._reader, self._has_frames = None, False
            return records, labels
        if y is None:
            raise ParameterError(f"{type(self).__name__} requires y to be passed, but it is None")
        if self.schema is None:
            records = check_features("X", validate_data(self, X, skip_check_array=True))
            self._reader, self._has_frames = None, True
        else:
            self._reader, self._has_frames = SchemaTransformer(schema=self.schema).fit(X), False
            records = self._reader.transform(X)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self._reader, name):
                    setattr(self, name, getattr(self._reader, name))
        labels = column_or_1d(y, warn=True)
        if len(labels) != count_rows(records) or not len(labels):
            rule = f"X has {count_rows(records):,} rows, and there must be some"
            raise ShapeError(f"y has {len(labels):,} entries, but {rule}")
        return records, labels

    def _read(self, X: Any) -> Any:
        """Records to predict on, as the student takes them."""
        check_is_fitted(self)
        if self._reader is not None:
            return self._reader.transform(X)
        if self._has_frames and _is_frame(X):
            return validate_data(self, X, skip_check_array=True, reset=False)
        return validate_data(self, X, dtype=np.float64, reset=False)

    def _read_pool(self, records: Any) -> Any:
        """The pool, of the same kind as the records."""
        if self.pool is None:
            return records
        if self.schema is not None:
            return SchemaTransformer(schema=self.schema).fit_transform(self.pool)
        if not isinstance(records, np.ndarray):
            pool = check_features("pool", to_readable("pool", self.pool))
            compare(facts_of(records), facts_of(pool), "pool")
        else:
            pool = check_array("pool", self.pool, dtype=np.float64)
            if pool.shape[1] != records.shape[1]:
                rule = f"X has {records.shape[1]}"
                raise ShapeError(f"pool has {pool.shape[1]} columns, but {rule}")
        if not count_rows(pool):
            raise ShapeError("pool has 0 rows, but it must have 1 or more")
        return pool

    def _label_openly(self, records: Any, codes: NDArray[Any], pool: Any) -> PoolLabels:
        """The labels of one classifier that learned from all records."""
        member = clone(self._make_member()).fit(records, self.classes_[codes])
        labels = np.asarray(member.predict(pool))
        return PoolLabels(np.arange(count_rows(pool)), labels, None, None, None)

    def _label_privately(
        self, records: Any, codes: NDArray[Any], pool: Any, budget: Budget | None
    ) -> PoolLabels:
        plain = self.classes_.astype(str if self.classes_.dtype.kind in "OU" else None)
        plain = plain.astype(np.int64) if plain.dtype.kind == "b" else plain
        self._try_student(pool)
        task = PoolTask.of(
            pool,
            classes=plain,
            epsilon=float(self.epsilon),  # type: ignore[arg-type]
            delta=self.delta,
            queries=min(self.queries, count_rows(pool)),
            members=self.members,
            options={"bottom": unused_label(plain)},
        )
        method = self.method
        if method == "auto" and self.estimator is not None:
            method = "votes"
        learned = PoolRecords(records, plain[codes], pool, task)
        answers = learned.answer(method, self._make_member(), budget, self.test_seed)
        return answers.renamed(self.classes_[encode(answers.labels, plain)])

    def _try_student(self, pool: Any) -> None:
        """Refuse a student that fails on rows of the pool with made-up labels."""
        rows, size = count_rows(pool), min(count_rows(pool), _TRIAL_ROWS)
        if size < 2 * len(self.classes_):
            return
        some = take_rows(pool, np.arange(size) * rows // size)
        labels = self.classes_[np.arange(size) % len(self.classes_)]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clone(self._make_student()).fit(some, labels).predict(some)
        except Exception as error:
            rule = f"it fails on rows of the pool with made-up labels ({shorten(error)})"
            refuse("student", self._make_student(), rule)

    def _learn(self, rows: Any, labels: NDArray[Any], pool: Any) -> None:
        """Train the student, or one that always predicts the only label there is."""
        if len(np.unique(labels)) > 1:
            self.student_ = clone(self._make_student()).fit(rows, labels)
            return
        label = labels[0] if len(labels) else self.classes_[0]
        fault = f"all {len(labels):,} labels of the pool are {np.asarray(label).tolist()!r}"
        fault = fault if len(labels) else "no row of the pool got a label"
        help_ = "more records, a larger epsilon or fewer queries would help"
        note(f"{fault}, so that student predicts one class everywhere: {help_}")
        first = take_rows(pool, np.arange(1))
        self.student_ = DummyClassifier(strategy="most_frequent").fit(first, [label])

    def _spread(self, values: Floats, missing: float) -> Floats:
        """Columns for all classes, from those for the classes that the student knows."""
        known = np.unique(self.pool_labels_)
        if len(known) == len(self.classes_):
            return values
        spread = np.full((len(values), len(self.classes_)), missing)
        spread[:, encode(self.student_.classes_, self.classes_)] = values
        return spread


def _is_frame(X: Any) -> bool:
    """Whether it is a frame of pandas or polars with names, which members take as it is."""
    kind = type(X)
    known = hasattr(kind, "dtypes") and (hasattr(kind, "loc") or hasattr(kind, "to_series"))
    return known and names_of(X) is not None
