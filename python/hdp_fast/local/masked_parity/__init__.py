"""MASKED-PARITY, a class of concepts that separates adaptive from non-adaptive questions."""

from ..._support.lazy import list_only

__all__ = []

__dir__ = list_only(__all__)
