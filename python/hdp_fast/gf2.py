"""Linear algebra over GF(2): bit-packed matrices, rank, products and exact solution spaces.

Nothing here is private. Arrays of 0 and 1 may be bool or any integer dtype, in any layout. A
BitMatrix and a Solution pickle, and so travel between processes.
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
from ._core import BitMatrix
from ._support.random_state import make_key
from ._support.types import Bits, RandomState
from ._support.validate import refuse
from .exceptions import HdpFastError, ParameterError

__all__ = ["BitMatrix", "Solution", "dot", "rank", "solve"]

P = ParamSpec("P")
R = TypeVar("R")

# Rows of a matrix that are unpacked at a time: 16 MB at 10,000 columns.
_ROWS = 1600


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

    def __reduce__(self) -> tuple[Callable[..., Solution], tuple[BitMatrix, Bits | None]]:
        return _restore_solution, (BitMatrix.from_dense(self.nullspace()), self.x)


def _advise(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose errors say how a sparse matrix or a frame becomes an array."""
    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def advised(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return function(*arguments, **options)
        except HdpFastError as error:
            # To look before would cost every call; each error begins with the argument's name.
            name = str(error).split(maxsplit=1)[0]
            value = (dict(zip(names, arguments, strict=False)) | options).get(name)
            fault = error
        _refuse_containers(name, value, fault)
        raise fault

    advised.__module__ = __name__
    return advised


def _refuse_containers(name: str, value: Any, fault: HdpFastError) -> None:
    if hasattr(value, "toarray"):
        # numpy takes a sparse matrix for one object.
        refuse(name, value, f"it must be dense: {name}.toarray()")
    if (
        isinstance(fault, ParameterError)
        and hasattr(value, "to_numpy")
        and hasattr(value, "astype")
    ):
        # A frame: its nullable columns are numbers to itself, and objects to numpy.
        way = f"{name}.to_numpy('uint8') where no entry is missing"
        raise ParameterError(f"{fault}: a frame is such an array by {way}")


dot = _advise(_core.dot)
rank = _advise(_core.rank)


@_advise
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


def _restore_solution(null_space: BitMatrix, x: Bits | None) -> Solution:
    """The solution space of this basis: that of its equations solved for the unknowns not free."""
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


def _reduce_matrix(matrix: BitMatrix) -> tuple[Callable[..., BitMatrix], tuple[Bits, int]]:
    """The packed rows, a few at a time, and the number of columns."""
    m, d = matrix.shape
    packed = np.empty((m, -(-d // 8)), np.uint8)
    for start in range(0, m, _ROWS):
        part = matrix[start : start + _ROWS].to_dense()
        packed[start : start + _ROWS] = np.packbits(part, axis=1, bitorder="little")
    return _restore_matrix, (packed, d)


def _refuse_construction(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("BitMatrix(...) must be BitMatrix.from_dense(X), or from_packed(rows, ncols)")


# A compiled class has neither by itself.
copyreg.pickle(BitMatrix, _reduce_matrix)
BitMatrix.__new__ = _refuse_construction  # type: ignore[method-assign]
BitMatrix.from_dense = staticmethod(_advise(BitMatrix.from_dense))  # type: ignore[method-assign]
