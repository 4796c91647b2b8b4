"""Warnings about results of no use, made from public facts and released numbers alone."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from ..exceptions import UtilityWarning

_PACKAGE = str(Path(__file__).parents[1])


def note(text: str) -> None:
    """Warns the caller of the package, at the line of their own code.

    The text is one sentence that names the argument or the number, and says what would help.
    """
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, UtilityWarning, stacklevel=depth)


def note_large_delta(delta: float, n: int) -> None:
    """Warns of a delta above 1 / n, which allows a mechanism that publishes a record whole."""
    if delta * n > 1:
        rule = "with which a record may be published whole: a much smaller one protects each"
        note(f"delta = {delta:g} is above 1 / n = {1 / n:.2g}, {rule}")
