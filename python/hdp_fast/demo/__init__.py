"""The demonstration that the command shows."""

from .._support.lazy import list_only
from .stages import Options, run

__all__ = ["Options", "run"]

__dir__ = list_only(__all__)
