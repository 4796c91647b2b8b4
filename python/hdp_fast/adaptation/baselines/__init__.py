"""Baselines that adaptation is compared with, private or not."""

from ..._support.lazy import list_only

__all__ = []

__dir__ = list_only(__all__)
