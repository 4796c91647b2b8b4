"""Discrepancies of two domains: exact, released with noise, and bounded from below."""

from ..._support.lazy import list_only

__all__ = []

__dir__ = list_only(__all__)
