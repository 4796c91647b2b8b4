"""Types that the whole package uses: arrays by the type of their entries, seeds of test streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# As the losses take them: bits and classes as small integers, others as floats.
LossLabels = NDArray[np.int16] | Floats
RandomState = int | np.random.Generator | None
# What is coded, or what the paper prints.
Variant = Literal["tight", "paper"]
VARIANTS = ("tight", "paper")
T = TypeVar("T")


@runtime_checkable
class InParts(Protocol):
    """Records in parts, data.Chunks, for what stands before `data`."""

    def first(self) -> tuple[Any, ...]:
        """Reads the first block that has a row, as a fold is called with it."""

    def map_runs(
        self, task: Callable[[Iterator[tuple[Any, ...]]], T], *further: Sequence[Any]
    ) -> Iterator[T]:
        """Runs a task on runs of parts that follow one another."""
