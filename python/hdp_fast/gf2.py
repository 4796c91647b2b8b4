"""Linear algebra over GF(2): bit-packed matrices, rank, products and exact solution spaces.

Nothing here is private. Arrays of 0 and 1 may be bool or any integer dtype, in any layout.
"""

from ._core import BitMatrix, Solution, dot, rank, solve

__all__ = ["BitMatrix", "Solution", "dot", "rank", "solve"]
