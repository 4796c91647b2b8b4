"""What can go wrong, each class with the one thing a caller may want to do about it."""

from __future__ import annotations


class HdpFastError(Exception):
    """Any error that hdp_fast raises on purpose; it names the argument, its value and the rule."""


class ShapeError(HdpFastError, ValueError):
    """Arrays whose shapes are wrong or do not fit together."""


class ParameterError(HdpFastError, ValueError):
    """A value outside the domain of its argument."""


class InsufficientSamples(HdpFastError, ValueError):
    """Fewer records than the plan needs; the text says how many that are."""


class AgentsExhausted(HdpFastError):
    """More agents are asked than are left: nobody answers twice."""


class BudgetExceeded(HdpFastError):
    """A release would spend more privacy than is left."""


class CheckpointError(HdpFastError):
    """A saved state that is damaged or belongs to another run."""


class UtilityWarning(UserWarning):
    """A result that is of no use, or hardly any, told from public facts and released numbers.

    It never depends on a private value that is not released. `warnings.simplefilter("error",
    UtilityWarning)` turns it into an exception, hdp-fast --strict into exit code 1.
    """
