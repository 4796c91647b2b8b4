"""Linear algebra over GF(2): bit-packed matrices, rank, products and exact solution spaces.

Nothing here is private. Arrays of 0 and 1 may be bool, of any integer dtype, or floats that are
exactly 0 and 1, in any layout and in any container that the page on inputs lists. A `BitMatrix`, a
`RowSpace` and a `Solution` can be pickled, and so travel between processes.
"""

from __future__ import annotations

import copyreg
import functools
import inspect
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._core import BitMatrix, RowSpace
from ._support.random_state import make_key
from ._support.types import Bits, RandomState
from ._support.validate import array, bit_entries

__all__ = ["BitMatrix", "RowSpace", "Solution", "dot", "rank", "solve"]

P = ParamSpec("P")
R = TypeVar("R")

# Rows of a matrix that are unpacked at a time: 16 MB at 10,000 columns.
_ROWS = 1600


class Solution(_core.Solution):
    """All solutions of a linear system A x = b over GF(2): one of them and the null space.

    `solve` makes it. A system without a solution is no error.

    Args:
        A: Coefficients, array (m, d) of 0 and 1, or a BitMatrix.
        b: Right-hand side, array (m,) of 0 and 1.
        threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else
            RAYON_NUM_THREADS, else OMP_NUM_THREADS, else all cores.

    Attributes:
        consistent: Whether there is a solution.
        rank: Rank of the coefficients.
        nullity: Dimension of the null space. There are `2**nullity` solutions, or none.
        x: The solution whose free unknowns are zero, uint8 (d,); None if there is no solution.

    Raises:
        ShapeError: A has not two dimensions, b has not one, or b is not as long as A has rows.
        ParameterError: A or b holds anything but 0 and 1, or `threads` is out of range.

    Examples:
        >>> from hdp_fast import gf2
        >>> solution = gf2.solve([[1, 0, 1], [0, 1, 1]], [1, 0])
        >>> solution
        Solution(rank 2, nullity 1: 2**1 solutions)
        >>> solution.x, solution.nullspace()
        (array([1, 0, 0], dtype=uint8), array([[1, 1, 1]], dtype=uint8))
    """

    __slots__ = ()

    def __new__(
        cls, A: ArrayLike | BitMatrix, b: ArrayLike, *, threads: int | None = None
    ) -> Solution:
        """Solves a system."""
        return super().__new__(cls, to_bits("A", A), to_bits("b", b), threads=threads)

    def sample(self, random_state: RandomState = None) -> Bits | None:
        """Draws a solution uniformly from all of them.

        Args:
            random_state: None draws from the operating system. An int or a numpy Generator makes
                the draw repeatable.

        Returns:
            An array of uint8 (d,), or None if there is no solution.

        Raises:
            ParameterError: `random_state` is not of its kind.

        Guarantee:
            The draw is exactly uniform. It protects no record; `hdp_fast.parity` does.

        Cost:
            d^2 / 64 word operations: the free unknowns are drawn, the others follow by back
            substitution.

        Examples:
            >>> import numpy as np
            >>> from hdp_fast import gf2
            >>> A = np.array([[1, 0, 1], [0, 1, 1]])
            >>> gf2.dot(A, gf2.solve(A, [1, 0]).sample())
            array([1, 0], dtype=uint8)
        """
        return self._sample(make_key(random_state))

    def __reduce__(self) -> tuple[Callable[..., Solution], tuple[BitMatrix, Bits | None]]:
        return _restore_solution, (BitMatrix.from_dense(self.nullspace()), self.x)


def _read_bits(function: Callable[P, R]) -> Callable[P, R]:
    """The same function for containers of every kind in place of its arrays."""
    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def reading(*arguments: P.args, **options: P.kwargs) -> R:
        read = [_read_argument(*pair) for pair in zip(names, arguments, strict=False)]
        for name in options:
            options[name] = _read_argument(name, options[name])
        return function(*read, *arguments[len(names) :], **options)  # type: ignore[arg-type]

    reading.__module__ = __name__
    return reading


def _read_argument(name: str, value: Any) -> Any:
    if name == "rows":
        return array(name, value)
    return to_bits(name, value) if name in {"A", "b", "x", "X", "basis"} else value


def to_bits(name: str, value: Any) -> Any:
    """A matrix that is packed as it is, and any other container as an array of bits or integers.

    Raises: ShapeError, ParameterError.
    """
    return value if isinstance(value, BitMatrix) else bit_entries(name, value)


dot = _read_bits(_core.dot)
rank = _read_bits(_core.rank)


def solve(A: ArrayLike | BitMatrix, b: ArrayLike, *, threads: int | None = None) -> Solution:
    """Computes the exact set of solutions of A x = b over GF(2).

    A system without a solution is no error. Nothing is private; `hdp_fast.parity` learns privately.

    Args:
        A: Coefficients, array (m, d) of 0 and 1, or a BitMatrix.
        b: Right-hand side, array (m,) of 0 and 1.
        threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else
            RAYON_NUM_THREADS, else OMP_NUM_THREADS, else all cores.

    Returns:
        The solution space.

    Raises:
        ShapeError: A has not two dimensions, b has not one, or b is not as long as A has rows.
        ParameterError: A or b holds anything but 0 and 1, or `threads` is out of range.

    Cost:
        As `rank`: an elimination of min(m, d + 64) rows, and m d (1 + nullity) / 64 word operations
        to verify all others. Memory beside A: at most two bit matrices of (d + 64) x d.

    Source:
        As `rank`. A first batch of d + 64 rows is eliminated. Rows outside its span enter as random
        combinations. All rows are verified, so that the result is exact.

    Examples:
        >>> from hdp_fast import gf2
        >>> solution = gf2.solve([[1, 1], [1, 1]], [0, 1])
        >>> solution.consistent, solution.x
        (False, None)
    """
    return Solution(A, b, threads=threads)


def _restore_solution(null_space: BitMatrix, x: Bits | None) -> Solution:
    """The solution space of a basis of its null space and of one solution, or None."""
    basis = null_space.to_dense()
    nullity, d = basis.shape
    # The free unknown of a basis vector is the last that is 1 in it, and 0 in all others.
    free = d - 1 - basis[:, ::-1].argmax(axis=1) if nullity else np.empty(0, np.int64)
    others = np.setdiff1d(np.arange(d), free)
    rank = len(others)
    # One row more for a system that has no solution: 0 = 1.
    A, b = np.zeros((rank + 1, d), np.uint8), np.zeros(rank + 1, np.uint8)
    A[np.arange(rank), others] = 1
    A[:rank, free] = basis[:, others].T
    if x is None:
        b[rank] = 1
    else:
        b[:rank] = x[others]
    return Solution(A, b)


def _restore_matrix(rows: Bits, ncols: int) -> BitMatrix:
    return BitMatrix.from_packed(rows, ncols)


def pack_rows(matrix: BitMatrix) -> tuple[Bits, int]:
    """The packed rows, taken a few at a time, and the number of columns."""
    m, d = matrix.shape
    packed = np.empty((m, -(-d // 8)), np.uint8)
    for start in range(0, m, _ROWS):
        part = matrix[start : start + _ROWS].to_dense()
        packed[start : start + _ROWS] = np.packbits(part, axis=1, bitorder="little")
    return packed, d


def _reduce_matrix(matrix: BitMatrix) -> tuple[Callable[..., BitMatrix], tuple[Bits, int]]:
    return _restore_matrix, pack_rows(matrix)


def _refuse_construction(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("BitMatrix(...) must be BitMatrix.from_dense(X), or from_packed(rows, ncols)")


def _reduce_space(space: RowSpace) -> tuple[Callable[..., RowSpace], tuple[BitMatrix]]:
    return _restore_space, (space.basis,)


def _restore_space(basis: BitMatrix) -> RowSpace:
    return RowSpace.from_basis(basis)


def _refuse_space(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("RowSpace(...) must be RowSpace.of(A, b), or from_basis(basis)")


# A compiled class can neither be pickled nor refuse to be called by itself.
copyreg.pickle(BitMatrix, _reduce_matrix)
copyreg.pickle(RowSpace, _reduce_space)
BitMatrix.__new__ = _refuse_construction  # type: ignore[method-assign]
RowSpace.__new__ = _refuse_space  # type: ignore[method-assign]
RowSpace.of = staticmethod(_read_bits(RowSpace.of))  # type: ignore[method-assign]
RowSpace.from_basis = staticmethod(_read_bits(RowSpace.from_basis))  # type: ignore[method-assign]
BitMatrix.from_packed = staticmethod(_read_bits(BitMatrix.from_packed))  # type: ignore[method-assign]
BitMatrix.from_dense = staticmethod(_read_bits(BitMatrix.from_dense))  # type: ignore[method-assign]
