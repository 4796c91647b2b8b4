"""Statistical queries and the local model, in both directions."""

from ..._support.lazy import list_only

__all__ = []

__dir__ = list_only(__all__)
