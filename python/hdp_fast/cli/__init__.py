"""The command line, hdp-fast."""

from .._support.lazy import list_only
from .command_line import main

__all__ = ["main"]

__dir__ = list_only(__all__)
