"""A private linear classifier as scikit-learn has them."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.notes import keep_result
from .._support.types import Floats, RandomState
from ..budget.account import Budget
from ..data import Chunks, Label, Schema
from ..data.persons import Persons
from ..data.rows import PlainRows, Rows
from ..exceptions import ParameterError
from ..learners import LinearModel, StatisticsModel
from ..learners.centered_linear import CLASS_METHODS, ClassTask
from ..learners.centered_rows import PartedRows
from ..learners.moment_equation import softmax, to_halves
from ..learners.private_model import check_classes
from .private_estimator import PrivateLinearEstimator, note_score
from .row_labels import code_labels, read_classes
from .toolkit import ClassifierMixin, shield


def _number_labels(classes: NDArray[Any], labels: Any) -> NDArray[np.int64]:
    codes, _ = code_labels(labels, classes)
    return codes


class PrivateClassifier(ClassifierMixin, PrivateLinearEstimator):  # type: ignore[misc]
    """A linear classifier under differential privacy that needs no settings but public facts.

    fit scales every column by its public bounds. Where records are not too few, it releases the
    means of all columns and of powers of numbers with a part of the budget, and centers and
    standardizes by them. With the rest it learns a linear model. Everything that is not public or
    released is chosen by rules from the numbers of records, columns and classes, epsilon and delta.

    Args:
        epsilon: Privacy parameter of a fit, above 0. It must be chosen; math.inf adds no noise and
            protects no one.
        delta: Privacy parameter, strictly between 0 and 1.
        bounds: Public bounds of the columns, to which values are clipped: (low, high) for all of
            them, or one such pair for each, shape (d, 2). A missing value counts as the lower
            bound, as with a schema. Only with epsilon = math.inf None takes them from the data,
            which must be finite then. Columns of bool or an integer type with bounds (0, 1) are
            bits, by bounds as by a schema.
        schema: Public data.Schema, for a frame or a data.Table with categories; its label is not
            used, and it needs none. A category that it does not list has all bits 0. None for
            columns of numbers.
        classes: The public labels, at least two. Only with epsilon = math.inf None takes them from
            the data. Ensembles and cross_val_predict of scikit-learn number labels: integers count
            as places among the ordered classes where these are texts, and classes_ are these
            numbers then; for classes that are other integers than 0 to K - 1 pass range(K) there.
            In OneVsRestClassifier and the like classes_ are 0 and 1, whatever is passed.
        method: "descent" for logistic or softmax regression by 8 to 120 noisy steps on all records
            and a noisy histogram of margins, by which the model is made as sure of itself as it
            may be; without noise its optimum with a small ridge. "sgd" for the same losses by
            learners.PrivateSGD, "statistics" for least squares on what
            learners.SufficientStatistics releases, "additive" for shapes that bend, of two classes,
            as learners.PrivateAdditive learns them. The features of an additive model are bits:
            whether a number is at or above a cut. "auto" is "descent", but for two classes where n
            mu / columns is 100 at least, with the mu of the record: there a look at columns, with a
            tenth of the square of mu or less, chooses between it and "additive", and method_ says
            which.
        test_seed: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Attributes:
        classes_: The classes in order, shape (K,).
        n_features_in_: Number of columns of X in fit.
        feature_names_in_: Their names; only where X had names.
        record_: The PrivacyRecord of the fit; None with epsilon = math.inf.
        method_: The method that was used.
        model_: The model of the centered rows, as its learner made it.
        rows_: The map from records to centered rows.
        n_samples_fit_: The public number of records of fit.

    Guarantee:
        That of fit.

    Cost:
        A pass over X, and that of the method.

    Source:
        One Gaussian mechanism, composed of several (Dong, Roth and Su 2022), for "descent". Basic
        composition (Dwork et al. 2006) of a Gaussian mechanism (Balle and Wang 2018) and the
        learner for the other methods.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.sklearn import PrivateClassifier
        >>> X = np.tile([[25.0, 10.0], [60.0, 90.0]], (5_000, 1))
        >>> y = np.tile(["no", "yes"], 5_000)
        >>> public = {"bounds": (0, 100), "classes": ["no", "yes"]}
        >>> learner = PrivateClassifier(epsilon=1.0, method="statistics", **public)
        >>> learner.fit(X, y).predict([[30, 20], [70, 80]]).tolist()
        ['no', 'yes']
        >>> learner.record_.epsilon, learner.record_.delta
        (1.0, 1e-06)
    """

    _methods = CLASS_METHODS

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        bounds: ArrayLike | None = None,
        schema: Schema | None = None,
        classes: ArrayLike | None = None,
        method: str = "auto",
        test_seed: RandomState = None,
    ):
        """Keep the parameters, which fit validates."""
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.schema = schema
        self.classes = classes
        self.method = method
        self.test_seed = test_seed

    @keep_result
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
    ) -> Self:
        """Learns from private records.

        Args:
            X: The records, numbers of shape (n, d), or with a schema a frame or data.Table. Or
                data.Chunks of such with their labels, for all methods but "sgd".
            y: Their labels, shape (n,), entries of classes; None beside Chunks.
            ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then
                for people, who may have several rows. None protects each row. Chunks name the
                column of ids themselves. A search slices ids with the rows where metadata routing
                passes them on.
            rows_per_person: The most rows of a person that are used, the others being left out;
                public.
            budget: The budget that the fit is charged to, as a whole and before anything is drawn;
                None charges nothing. In a pipeline it is passed as STEP__budget.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A parameter lies outside its range, something public was not given at a
                finite epsilon, a label is none of classes, or a fit without noise comes with a
                budget.
            ShapeError: bounds do not fit the columns of X, or ids has another length.
            TypeError: X is sparse.
            ValueError: X or y is no array of numbers or labels, X has a number that is not finite
                and there are no bounds, or they differ in length.
            BudgetExceeded: The budget has less than epsilon or delta left.

        Guarantee:
            (epsilon, delta)-DP under "replace_one", exact, with the number of records public: what
            is released is the means, the model, and n. With ids that is for whatever a person's
            rows hold, and ids are public. classes, bounds and schema must not be
            chosen by a look at the records. Nothing is spent where an error is raised.
        """
        return self._fit(X, y, (ids, rows_per_person), budget)

    def _prepare_parts(
        self, chunks: Chunks, y: Any, owners: tuple[Any, int]
    ) -> tuple[tuple[Rows, PartedRows, None, float], Persons]:
        """As _prepare, of records in parts, and who owns them."""
        epsilon = self._check_privacy()
        classes = read_classes(self.classes)
        if classes is None:
            raise ParameterError("classes = None, but of records in parts all must be given")
        unit, rows, persons = self._open_parts(chunks, y, owners, partial(_number_labels, classes))
        self.classes_ = classes
        return (unit, rows, None, epsilon), persons

    def _prepare(
        self, X: Any, y: ArrayLike | None
    ) -> tuple[Rows, Floats | PlainRows, NDArray[Any], float]:
        """Validate settings and records: the map to rows, rows, codes of classes, and epsilon."""
        epsilon = self._check_privacy()
        classes = read_classes(self.classes)
        unit, rows, labels = self._read_training(X, y, numeric=False)
        codes, self.classes_ = code_labels(labels, classes)
        return unit, rows, codes, epsilon

    def decision_function(self, X: Any) -> Floats:
        """Computes the scores of records.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array: of shape (m,) for two classes, above 0 where the second is predicted,
            else (m, K).

        Raises:
            ValueError: fit has not been called (a NotFittedError), X is no array of numbers, or
                its columns are others or in another order.
        """
        scores: Floats = self._predict_blocks(X, self._score_rows)
        return scores

    def _score_rows(self, rows: Floats) -> Floats:
        """Computes the scores of centered rows, as rows_ makes them of records.

        Args:
            rows: Centered rows with their constant, shape (m, d + 1).

        Returns:
            The scores, as decision_function returns them.
        """
        model: Any = self.model_
        scores: Floats = model.scores(rows)
        if isinstance(model, StatisticsModel) and len(self.classes_) == 2:
            return scores[:, 1] - scores[:, 0]
        return scores

    def predict_proba(self, X: Any) -> Floats:
        """Computes the probability of every class.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            A float64 array of shape (m, K), whose rows add up to 1. With "statistics" they are
            least-squares estimates, clipped to be at least 0.

        Raises:
            ValueError: As in decision_function.
        """
        shares: Floats = self._predict_blocks(X, self._share_rows)
        return shares

    def _share_rows(self, rows: Floats) -> Floats:
        model: Any = self.model_
        if isinstance(model, LinearModel):
            return softmax(to_halves(model.scores(rows)))
        shares: Floats = model.predict_proba(rows)
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the class of the largest score.

        Args:
            X: The records, m of them, with the columns of fit.

        Returns:
            An array of shape (m,) of classes.

        Raises:
            ValueError: As in decision_function.
        """
        scores = self.decision_function(X)
        places = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)
        labels: NDArray[Any] = self.classes_[places]
        return labels

    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Computes the share of records that are classified correctly.

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
            ValueError: As in decision_function, or y or sample_weight has another length.
        """
        note_score(self)
        return float(shield("y", super().score, X, y, sample_weight))

    def _describe_label(self, column: str) -> tuple[Label, tuple[str, ...] | None]:
        classes = check_classes("classes", tuple(map(str, self.classes_.tolist())))
        return Label(column, positive=classes[-1:]), classes

    @property
    def _task(self) -> ClassTask:
        return ClassTask(len(self.classes_))
