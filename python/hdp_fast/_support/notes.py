"""What is said of a result that is of no use: from public facts and released numbers alone."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

from ..exceptions import UtilityWarning

_PACKAGE = str(Path(__file__).parents[1])


def note(text: str) -> None:
    """Warn the caller of the package, with the line of their own code.

    text: one sentence that names the argument or the number, and says what would help.
    """
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, UtilityWarning, stacklevel=depth)


def note_large_delta(delta: float, n: int) -> None:
    """Say that a delta allows to publish a record whole: for n of them, one above 1 / n."""
    if delta * n > 1:
        rule = "with which a record may be published whole: a much smaller one protects each"
        note(f"delta = {delta:g} is above 1 / n = {1 / n:.2g}, {rule}")
