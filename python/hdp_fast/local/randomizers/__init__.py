"""Local randomizers: what a person's device reports about the person's value."""

from ..._support.lazy import list_only

__all__ = []

__dir__ = list_only(__all__)
