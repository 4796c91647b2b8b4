"""Labels and domains of rows: places of labels among public classes, and rows of the target."""

from __future__ import annotations

import re
from abc import abstractmethod
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.validate import array, refuse
from ..exceptions import ParameterError, ShapeError
from .private_estimator import note_score
from .toolkit import (
    check_classification_targets,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    is_called_by,
)

# The module of OneVsRestClassifier, OneVsOneClassifier and OutputCodeClassifier.
REDUCTIONS = "sklearn.multiclass"
_NEEDED = "0 or more for a row of the source, and below 0 for one of the target"


def code_labels(
    labels: NDArray[Any], classes: NDArray[Any] | None
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The place of each label among the classes, and the classes; None takes those of the labels.

    Ensembles of scikit-learn number labels from 0 on before they hand them to their members. So
    integers are places among classes that are texts, and the classes are these numbers then. The
    dtypes decide, which are public, and no label does. What one of several classifiers with two
    classes learns in a reduction of scikit-learn is 0 or 1, whatever the classes are.

    Raises:
        ParameterError: A label is none of the classes, or there are not two kinds of them.
        ValueError: The labels are no classes, but numbers with fractions.
    """
    if classes is None:
        check_classification_targets(labels)
        classes = check_classes(labels)
        return encode(labels, classes), classes
    hint = _compare_kinds(labels, classes)
    if labels.dtype.kind in "iu":
        # Whether scikit-learn fits one of several classifiers of two classes in place of many.
        if is_called_by(REDUCTIONS):
            # One of them writes -1 in place of 0.
            return (labels > 0).astype(np.int64), np.arange(2)
        if classes.dtype.kind in "OU" and not _spells_numbers(classes):
            classes = np.arange(len(classes))
            hint = f": integers are places among classes that are texts, 0 to {len(classes) - 1}"
        elif classes.tolist() != list(range(len(classes))):
            hint = f": in an ensemble that numbers labels pass classes = range({len(classes)})"
    try:
        return encode(labels, classes), classes
    except ParameterError as error:
        fault = ParameterError(f"{error}{hint}")
    # It warns of many different labels, which are private, and so comes after an error alone.
    with suppress(TypeError):
        check_classification_targets(labels)
    raise fault


def _compare_kinds(labels: NDArray[Any], classes: NDArray[Any]) -> str:
    """What an error adds where one are texts and the others numbers, by their dtypes."""
    are_texts = classes.dtype.kind in "OU"
    if are_texts and labels.dtype.kind in "bf":
        return ": y holds numbers, and classes are texts"
    if not are_texts and labels.dtype.kind in "OU":
        return ": y holds texts, and classes are numbers"
    return ""


def _spells_numbers(classes: NDArray[Any]) -> bool:
    """Whether an integer, spelled as a text, may be one of the classes."""
    return any(re.fullmatch(r"\s*[-+]?\d+\s*", name) for name in classes.astype(str))


def read_classes(classes: Any) -> NDArray[Any] | None:
    """The distinct public classes in order; None, without privacy, stands for those of the labels.

    Raises:
        ParameterError: They are not two or more of one kind.
    """
    return None if classes is None else check_classes(classes)


def check_classes(classes: Any) -> NDArray[Any]:
    """The distinct classes in order."""
    names = np.asarray(classes)
    try:
        ordered = np.unique(names)
    except TypeError:
        raise ParameterError(
            "classes hold labels of several kinds, but all must be alike"
        ) from None
    if names.ndim != 1 or len(ordered) < 2:
        rule = "a classifier needs 2 or more of them in one dimension"
        raise ParameterError(f"classes have shape {names.shape}, 1 class or fewer, but {rule}")
    return ordered


def encode(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each label; the error names neither row nor value."""
    codes = None
    # Labels may be objects of any kind, and so are their errors.
    with suppress(Exception):
        codes = _find_places(labels, classes)
    if codes is None:
        raise ParameterError("y holds something else, but every entry must be one of classes")
    return codes.astype(np.int64)


def _find_places(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """The place of each label; None if one is none of the classes."""
    names = classes
    if classes.dtype.kind in "OU":
        names, labels = classes.astype(str), labels.astype(str)
    order = names.argsort()
    codes: NDArray[np.intp] = order[
        np.searchsorted(names, labels, sorter=order).clip(max=len(names) - 1)
    ]
    return codes if (names[codes] == labels).all() else None


# Domains -----------------------------------------------------------------------------------------


def read_domains(sample_domain: Any, n: int) -> NDArray[np.bool_]:
    """Whether each of n rows is of the target; both domains must have a row.

    Raises: ParameterError, ShapeError.
    """
    is_target = _signs(sample_domain)
    if is_target.shape != (n,):
        rule = f"it must be ({n},) as X has {n} rows"
        raise ShapeError(f"sample_domain has shape {is_target.shape}, but {rule}")
    for name, some in (("source", not is_target.all()), ("target", is_target.any())):
        if not some:
            rule = f"fit needs rows of both domains: {_NEEDED}"
            raise ParameterError(f"sample_domain has no row of the {name}, but {rule}")
    return is_target


def read_scored(sample_domain: Any, n: int) -> NDArray[np.bool_]:
    """Whether each of n rows is of the target; one of them must be. One integer is for all rows.

    Raises: ParameterError, ShapeError.
    """
    is_target = _signs(sample_domain)
    if is_target.shape not in {(), (n,)}:
        rule = f"it must be ({n},) as X has {n} rows, or one integer for all"
        raise ShapeError(f"sample_domain has shape {is_target.shape}, but {rule}")
    if not is_target.any():
        rule = "a score is that of the target, whose rows are below 0"
        raise ParameterError(f"sample_domain has no row of the target, but {rule}")
    return np.broadcast_to(is_target, (n,))


def _signs(sample_domain: Any) -> NDArray[np.bool_]:
    """Whether each entry is below 0; all must be integers, and no truth values."""
    entries = array("sample_domain", sample_domain)
    if entries.dtype.kind == "O":
        # Integers that may be missing, as data frames have them.
        entries = _to_floats(entries)
    if (
        entries.dtype.kind not in "iuf"
        or not (np.isfinite(entries) & (entries == np.rint(entries))).all()
    ):
        refuse("sample_domain", entries.dtype, f"it must hold integers, {_NEEDED}")
    signs: NDArray[np.bool_] = entries < 0
    return signs


def _to_floats(entries: NDArray[Any]) -> NDArray[Any]:
    if any(isinstance(entry, bool | np.bool_ | str) for entry in entries.flat):
        return entries
    try:
        return entries.astype(np.float64)
    except (TypeError, ValueError):
        return entries


class TargetScores:
    """An estimator that scores the rows of the target, and is routed the domains by itself."""

    domain_sizes_: tuple[int, int] | None
    # Where metadata is routed, the domains of rows go to fit and score without being asked for.
    __metadata_request__fit: ClassVar = {"sample_domain": True}
    __metadata_request__score: ClassVar = {"sample_domain": True}

    @abstractmethod
    def _measure(self, labels: NDArray[Any], predictions: NDArray[Any], weights: Any) -> float:
        """The score of predictions."""

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Computes the score of the rows of the target alone.

        It is the coefficient of determination of a regressor, and the share of right predictions of
        a classifier. The score is an unprotected release about X and y, and no budget is charged.
        Where they are private, as the folds of a search or a cross-validation are, neither publish
        it nor choose anything by it that is published: PrivateSearchCV chooses by a score that is
        paid for. The first call in a process warns of this.

        Args:
            X: The records, m of them, with the columns of fit; public ones.
            y: Their labels, shape (m,).
            sample_domain: Integers of shape (m,): rows of the target are below 0, others do not
                count. One integer stands for all rows. After a fit with domains it must be passed,
                -1 for records that are all of the target. After a fit without, None counts all.
            sample_weight: Public weights of shape (m,); None weighs all alike.

        Returns:
            The score; at most 1.

        Raises:
            ParameterError: sample_domain is None after a fit with domains, has no row of the
                target, or holds something else than integers.
            ShapeError: sample_domain does not fit the rows of X.
            ValueError: As in predict, or y or sample_weight has another length.
        """
        check_is_fitted(self)
        if sample_domain is None and self.domain_sizes_ is not None:
            rule = (
                "after a fit with domains a score needs them: -1 where all rows are of the"
                " target; a search passes them with"
                " sklearn.set_config(enable_metadata_routing=True)"
            )
            raise ParameterError(f"sample_domain = None, but {rule}")
        note_score(self)
        predictions, labels = self.predict(X), column_or_1d(y)  # type: ignore[attr-defined]
        check_consistent_length(predictions, labels, sample_weight)
        n = len(predictions)
        kept = read_scored(-1 if sample_domain is None else sample_domain, n)
        weights = None if sample_weight is None else column_or_1d(sample_weight)[kept]
        return self._measure(labels[kept], predictions[kept], weights)
