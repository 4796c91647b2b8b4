"""Supervised adaptation from a source to a target domain, and what it is measured against."""

from __future__ import annotations

from ._adaptation_baselines import (
    DiscrepancyMinimisation,
    KernelMeanMatching,
    Pooled,
    SourceOnly,
    TargetOnly,
)
from ._target_sgd import TargetSGD

__all__ = [
    "DiscrepancyMinimisation",
    "KernelMeanMatching",
    "Pooled",
    "SourceOnly",
    "TargetOnly",
    "TargetSGD",
]
