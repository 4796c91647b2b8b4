"""Labels of a classifier: the public classes, and the place of each label among them."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ParameterError
from .toolkit import check_classification_targets


def code_labels(
    labels: NDArray[Any], classes: NDArray[Any] | None
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """The place of each label among the classes, and the classes; None takes those of the labels.

    Raises:
        ParameterError: A label is none of the classes, or there are not two kinds of them.
        ValueError: The labels are no classes, but numbers with fractions.
    """
    if classes is None:
        check_classification_targets(labels)
        classes = check_classes(labels)
        return encode(labels, classes), classes
    try:
        return encode(labels, classes), classes
    except ParameterError as error:
        fault = error
    # It warns of many different labels, which are private, and so comes after an error alone.
    with suppress(TypeError):
        check_classification_targets(labels)
    raise fault


def read_classes(classes: Any, epsilon: float) -> NDArray[Any] | None:
    """The distinct public classes in order; None, without privacy, stands for those of the labels.

    Raises:
        ParameterError: There are none at a finite epsilon, or they are not two or more of one kind.
    """
    if classes is None and epsilon < math.inf:
        rule = (
            "with a finite epsilon what is public must be given: classes = all labels that"
            " there can be; epsilon = math.inf takes them from the data and protects nobody"
        )
        raise ParameterError(f"classes = None, but {rule}")
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
