"""The errors and the warning of this package, one class for each remedy that a caller may have."""

from __future__ import annotations


class HdpFastError(Exception):
    """The base class of every error that hdp_fast raises on purpose.

    The text names the argument, its value and the rule that it breaks. It never shows a private
    value.

    Examples:
        >>> from hdp_fast import accounting, noise
        >>> from hdp_fast.exceptions import HdpFastError
        >>> for call in (lambda: noise.bernoulli(2), lambda: accounting.Pure(0.0)):
        ...     try:
        ...         call()
        ...     except HdpFastError as error:
        ...         print(error)
        p = 2, but a probability must lie in [0, 1]
        epsilon = 0, but it must be a finite number above 0
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
        >>> from hdp_fast import parity
        >>> from hdp_fast.exceptions import InsufficientSamples
        >>> plan, X = parity.plan(8, alpha=0.1, beta=0.05, epsilon=1), np.eye(8, dtype=np.uint8)
        >>> try:
        ...     parity.learn(X, X[:, 0], epsilon=1.0, plan=plan)
        ... except InsufficientSamples as error:
        ...     print(error)
        X has 8 records, but the plan needs 255
    """


class AgentsExhausted(HdpFastError):
    """More agents are asked than are left; no agent answers twice.

    Bring further agents, or plan for fewer questions.

    Examples:
        >>> from hdp_fast.exceptions import AgentsExhausted
        >>> from hdp_fast.local import Agents
        >>> agents = Agents([[0], [1], [1]], [0, 1, 1], epsilon=1.0)
        >>> answers = agents.ask(lambda X, y: y, 2)
        >>> try:
        ...     agents.ask(lambda X, y: y, 2)
        ... except AgentsExhausted as error:
        ...     print(error)
        count = 2, but 1 agents are left
    """


class BudgetExceeded(HdpFastError):
    """A release would spend more privacy than is left; nothing is spent then.

    Examples:
        >>> from hdp_fast import noise
        >>> from hdp_fast.budget import Budget
        >>> from hdp_fast.exceptions import BudgetExceeded
        >>> budget = Budget(1.0)
        >>> try:
        ...     noise.permute_and_flip([30, 950], epsilon=2.0, budget=budget)
        ... except BudgetExceeded:
        ...     print(budget.remaining.epsilon)
        1.0
    """


class CheckpointError(HdpFastError):
    """A saved state that is damaged or belongs to another run.

    Restore the file, or begin a new run, which spends anew.

    Examples:
        >>> from pathlib import Path
        >>> from hdp_fast.exceptions import CheckpointError
        >>> from hdp_fast.labels import PrivateLabeler
        >>> _ = Path("labeler.saved").write_bytes(b"damaged")
        >>> try:
        ...     PrivateLabeler.load("labeler.saved", trusted=True)
        ... except CheckpointError as error:
        ...     print(error)
        path = '...labeler.saved', but it must be a whole file that save wrote, ...
    """


class UtilityWarning(UserWarning):
    """A result that is of no use, or of hardly any.

    What it states follows from public facts and released numbers. It never depends on a private
    value that is not released. `warnings.simplefilter("error", UtilityWarning)` turns it into an
    exception, and `hdp-fast --strict` into exit code 1.

    Examples:
        >>> import warnings
        >>> import numpy as np
        >>> from hdp_fast import parity
        >>> X = np.eye(8, dtype=np.uint8)
        >>> with warnings.catch_warnings(record=True) as notes:
        ...     warnings.simplefilter("always")
        ...     result = parity.learn(X, X[:, 0], epsilon=0.1)
        >>> print(notes[0].message)
        X has 8 records for 8 unknown bits: no error below 1/2 is promised, ...
    """
