"""The candidates for a source, in the order of their price."""

from __future__ import annotations

from .from_agents import AGENTS_ALONE, CALIBRATION, REWEIGHING
from .from_public_source import ADAPTATION, CALIBRATED_SOURCE, PUBLIC_SOURCE, TARGET_ALONE
from .from_records import DESCENT, EXPONENTIAL, STATISTICS, VOTES
from .methods import Method, write_number
from .sizes import Sizes
from .worlds import World


def _lose_all(sizes: Sizes, world: World) -> float:
    return 1.0


def _explain_constant(sizes: Sizes) -> str:
    return f"one label for everybody errs on {write_number(sizes.constant_error)}, or less"


def _call_constant(sizes: Sizes) -> str:
    return "numpy.full(len(X), label)"


def _lack_nothing(sizes: Sizes) -> str | None:
    return None


CONSTANT = Method("constant", _lack_nothing, _lose_all, _explain_constant, _call_constant)
# What is cheaper stands first, and wins ties.
_PRIVATE = (
    STATISTICS,
    DESCENT,
    EXPONENTIAL,
    VOTES,
    CALIBRATION,
    REWEIGHING,
    AGENTS_ALONE,
    CONSTANT,
)
_PUBLIC = (PUBLIC_SOURCE, ADAPTATION, TARGET_ALONE, CALIBRATED_SOURCE, AGENTS_ALONE, CONSTANT)


def list_methods(sizes: Sizes) -> tuple[Method, ...]:
    """All methods for this source, whether they can run or not."""
    return _PUBLIC if sizes.source == "public" else _PRIVATE
