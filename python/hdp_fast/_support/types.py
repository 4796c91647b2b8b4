"""Types that the whole package names: arrays by their entries, and what seeds a test stream."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint8]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
RandomState = int | np.random.Generator | None
