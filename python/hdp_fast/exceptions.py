"""The errors and the warning of this package, one class for each remedy that a caller may have."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Sequence

__all__ = [
    "AgentsExhausted",
    "BudgetExceeded",
    "CheckpointError",
    "HdpFastError",
    "InsufficientSamples",
    "NeverAsked",
    "ParameterError",
    "ShapeError",
    "UtilityWarning",
    "attach_notes",
    "notes_of",
    "printable",
]


def __dir__() -> list[str]:
    """The public names alone: as by _support.lazy, which this module may not import."""
    return sorted(__all__)


def printable(text: str) -> str:
    r"""A text whose characters all print, as names in errors and on terminals are shown.

    A column's name may hold what moves the cursor of a terminal, renames its window or turns the
    direction of reading. Whatever `str.isprintable` does not call printable is written as Python
    writes it in a literal.

    Args:
        text: Any text.

    Returns:
        The text, with an escape for each character that does not print.

    Raises:
        ParameterError: It is no text.

    Examples:
        >>> from hdp_fast.exceptions import printable
        >>> print(printable("age\x1b[31m"), printable("age\u202e"))
        age\x1b[31m age\u202e
    """
    if not isinstance(text, str):
        raise ParameterError(f"text is of type {type(text).__name__}, but it must be a text")
    if text.isprintable():
        return text
    escaped = (sign.encode("unicode_escape").decode() for sign in text)
    pairs = zip(text, escaped, strict=True)
    return "".join(sign if sign.isprintable() else code for sign, code in pairs)


class HdpFastError(Exception):
    """The base class of every error that hdp_fast raises on purpose.

    The text names the argument, its value and the rule that it breaks. It never shows a private
    value, and all of it is `printable`.

    Examples:
        >>> from hdp_fast import accounting, exceptions, noise
        >>> for call in (lambda: noise.bernoulli(2), lambda: accounting.Pure(0.0)):
        ...     try:
        ...         call()
        ...     except exceptions.HdpFastError as error:
        ...         print(error)
        p = 2, but a probability must lie in [0, 1]
        epsilon = 0, but it must be finite and above 0
    """

    def __str__(self) -> str:
        return printable(super().__str__())


class NeverAsked(HdpFastError):
    """A question that never went out, so that its people can still be asked it.

    A function `collect` of local.RemoteAgents raises it where it knows that, as
    collection.ReportFolder does.

    Examples:
        >>> from hdp_fast import local
        >>> from hdp_fast.exceptions import NeverAsked
        >>> def ask(question, count):
        ...     raise ConnectionError("no one could be reached")
        >>> def collect(question, count):
        ...     raise NeverAsked("no message has left")
        >>> agents = local.RemoteAgents(ask, collect=collect, epsilon=1.0, count=10)
        >>> for _ in range(3):
        ...     try:
        ...         _ = agents.ask(local.Query.label(), 10)
        ...     except ConnectionError as error:
        ...         print(error, agents.remaining)
        no one could be reached 0
        no one could be reached 0
        no one could be reached 0
    """


class ShapeError(HdpFastError, ValueError):
    """Arrays whose shapes are wrong or do not fit together.

    Examples:
        >>> from hdp_fast import gf2
        >>> from hdp_fast.exceptions import ShapeError
        >>> try:
        ...     gf2.dot([[1, 0, 1]], [1, 1])
        ... except ShapeError as error:
        ...     print(error)
        x has length 2, but the number of columns of A is 3
    """


class ParameterError(HdpFastError, ValueError):
    """A value outside the domain of its argument.

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.exceptions import ParameterError
        >>> try:
        ...     noise.bernoulli(2)
        ... except ParameterError as error:
        ...     print(error)
        p = 2, but a probability must lie in [0, 1]
    """


class InsufficientSamples(HdpFastError, ValueError):
    """Fewer records than the plan needs; the text states how many it needs.

    Collect more records, or ask for less: a larger epsilon, or a larger error.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import exceptions, parity
        >>> plan, X = parity.plan(8, alpha=0.1, beta=0.05, epsilon=1), np.eye(8, dtype=np.uint8)
        >>> try:
        ...     parity.learn(X, X[:, 0], epsilon=1.0, plan=plan)
        ... except exceptions.InsufficientSamples as error:
        ...     print(error)
        X has 8 records, but the plan needs 255
    """


class AgentsExhausted(HdpFastError):
    """More agents are asked than are left; no agent answers twice.

    Bring further agents, or plan for fewer questions.

    Examples:
        >>> from hdp_fast import exceptions, local
        >>> agents = local.Agents([[0], [1], [1]], [0, 1, 1], epsilon=1.0)
        >>> answers = agents.ask(lambda X, y: y, 2)
        >>> try:
        ...     agents.ask(lambda X, y: y, 2)
        ... except exceptions.AgentsExhausted as error:
        ...     print(error)
        count = 2, but 1 agents are left
    """


class BudgetExceeded(HdpFastError):
    """A release would spend more privacy than is left; nothing is spent then.

    Examples:
        >>> from hdp_fast import budget, exceptions, noise
        >>> account = budget.Budget(1.0)
        >>> try:
        ...     noise.permute_and_flip([30, 950], epsilon=2.0, budget=account)
        ... except exceptions.BudgetExceeded:
        ...     print(account.remaining.epsilon)
        1.0
    """


class CheckpointError(HdpFastError):
    """A saved state that is damaged or belongs to another run.

    Restore the file, or begin a new run, which spends anew.

    Examples:
        >>> from pathlib import Path
        >>> from hdp_fast import exceptions, labels
        >>> _ = Path("labeler.saved").write_bytes(b"damaged")
        >>> try:
        ...     labels.PrivateLabeler.load("labeler.saved", trusted=True)
        ... except exceptions.CheckpointError as error:
        ...     print(error)
        path = '...labeler.saved', but it must be a whole file that save wrote, ...
    """


class UtilityWarning(UserWarning):
    """A result that is of no use, or of hardly any.

    What it states follows from public facts and released numbers. It never depends on a private
    value that is not released. `warnings.simplefilter("error", UtilityWarning)` turns it into an
    exception before anything is charged, and `hdp-fast --strict` into exit code 1. Once a budget
    is charged, noise drawn or an agent asked, the result is returned all the same: `notes_of` has
    its notes.

    Examples:
        >>> import warnings
        >>> from hdp_fast import parity
        >>> with warnings.catch_warnings(record=True) as notes:
        ...     warnings.simplefilter("always")
        ...     result = parity.learn([[0, 1], [1, 1]], [1, 0], epsilon=0.1)
        >>> print(notes[0].message)
        X has 2 records for 2 unknown bits: no error below 1/2 is promised, ...
    """

    def __str__(self) -> str:
        return printable(super().__str__())


def notes_of(result: object) -> tuple[str, ...]:
    """The notes of the call that returned a result: what each UtilityWarning of it said.

    They are kept for as long as the object itself, and not for copies of it. Numbers and tuples
    have none.

    Args:
        result: What a function of this package returned, or an estimator that it has fit.

    Returns:
        The texts, in the order in which they came.

    Examples:
        >>> import warnings
        >>> from hdp_fast import statistics
        >>> from hdp_fast.exceptions import notes_of
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("error")
        ...     how = {"epsilon": 1e-6, "neighbors": "add_remove"}
        ...     released = statistics.histogram(["a"], categories=["a", "b"], **how)
        >>> notes_of(released)
        ('no released count of histogram is larger than its noise: a larger epsilon helps',)
    """
    if isinstance(result, dict):
        return tuple(dict.fromkeys(note for part in result.values() for note in notes_of(part)))
    reference, notes = _NOTES.get(id(result), (None, ()))
    return notes if reference is not None and reference() is result else ()


def attach_notes(result: object, notes: Sequence[str]) -> None:
    """Keeps notes for an object, or for those in a dict, in place of those from before.

    Args:
        result: The object.
        notes: The texts.

    Examples:
        >>> from hdp_fast.exceptions import attach_notes, notes_of
        >>> result = {"mean": lambda: 0.5}
        >>> attach_notes(result, ["n = 9 is small"])
        >>> notes_of(result["mean"])
        ('n = 9 is small',)
    """
    if isinstance(result, dict):
        for part in result.values():
            attach_notes(part, notes)
        return
    key = id(result)
    _NOTES.pop(key, None)
    if notes:
        # Numbers and the like are no one's own.
        with contextlib.suppress(TypeError):
            _NOTES[key] = weakref.ref(result, lambda _: _NOTES.pop(key, None)), tuple(notes)


_NOTES: dict[int, tuple[weakref.ref[object], tuple[str, ...]]] = {}
