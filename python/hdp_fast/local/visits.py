"""What agents hear in one visit: several questions, and the share of their epsilon for each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .._support.validate import array, positive, refuse


def questions_of(questions: Any) -> list[Any]:
    """The questions of one visit.

    Raises: ParameterError for anything but callables, at least one.
    """
    rule = "it must be a sequence of at least one callable"
    if not isinstance(questions, Sequence) or not questions or not all(map(callable, questions)):
        refuse("questions", questions, rule)
    return list(questions)


def shares_of(shares: Any, count: int, epsilon: float) -> list[float]:
    """An epsilon for each question; their sum is at most the agents' own.

    Raises: ParameterError.
    """
    if shares is None:
        equal = epsilon / count
        while count * _decimal(equal) > _decimal(epsilon):
            equal = math.nextafter(equal, 0)
        return [equal] * count
    found = array("shares", shares)
    if found.shape != (count,) or found.dtype.kind not in "uif":
        refuse("shares", shares, f"it must be {count} numbers, one for each question")
    parts = [positive("shares", share) for share in found.tolist()]
    if sum(map(_decimal, parts)) > _decimal(epsilon):
        refuse("shares", shares, f"their sum must be at most the agents' epsilon = {epsilon}")
    return parts


def _decimal(epsilon: float) -> Fraction:
    """A float as the shortest decimal that it is written as; so a ledger takes it, too."""
    return Fraction(repr(epsilon))
