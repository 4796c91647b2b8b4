"""Types that the whole package uses: arrays by the type of their entries, seeds of test streams."""

from __future__ import annotations

from typing import Literal

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
