"""Linear algebra over GF(2): bit-packed matrices, rank, products and exact solution spaces.

Nothing here is private. Arrays of 0 and 1 may be bool or any integer dtype, in any layout.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from . import _core
from ._core import BitMatrix, dot, rank
from ._support.random_state import make_key
from ._support.types import Bits, RandomState

__all__ = ["BitMatrix", "Solution", "dot", "rank", "solve"]


class Solution(_core.Solution):
    """All solutions of a linear system over GF(2): one of them and the null space.

    Attributes:
        consistent: whether there is a solution.
        rank: of the coefficients.
        nullity: dimension of the null space: there are 2**nullity solutions, or none.
        x: the solution whose free unknowns are zero, uint8 (d,); None if there is none.
    """

    __slots__ = ()

    def sample(self, random_state: RandomState = None) -> Bits | None:
        """Draw a solution uniformly from all of them, uint8 (d,); None if there is none.

        random_state: None draws from the operating system; an int or a numpy Generator makes the
        draw repeatable.

        Guarantee: none.
        Raises: ParameterError.
        Cost: d^2 / 64 word operations.
        Source: uniform free unknowns, back substitution.
        """
        return self._sample(make_key(random_state))


def solve(A: ArrayLike | BitMatrix, b: ArrayLike, *, threads: int | None = None) -> Solution:
    """Find the exact set of solutions of A x = b over GF(2).

    A: 0/1 array (m, d) or BitMatrix; b: 0/1 array (m,); threads: as rank. A system without a
    solution is no error. No privacy: use hdp_fast.parity for that.

    Raises: ShapeError, ParameterError.
    Cost: as rank, and m d nullity / 64 word operations to verify every row. Memory beside A: two
        (d + 64) x d bit matrices at most.
    Source: as rank; rows beyond a first batch enter as random combinations and are all verified, so
        the result is exact.
    """
    return Solution(A, b, threads=threads)
