"""Linear algebra over GF(2): bit-packed matrices, products, factors and exact solution spaces.

Nothing here is private. Arrays of 0 and 1 may be bool, of any integer dtype, or floats that are
exactly 0 and 1, in any layout and in any container that the page on inputs lists. A `BitMatrix`, a
`RowSpace` and a `Solution` can be pickled, and so travel between processes.
"""

from __future__ import annotations

import copyreg
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._core import BitMatrix, RowSpace
from ._support.lazy import list_only
from ._support.random_state import make_key
from ._support.types import Bits, InParts, RandomState
from ._support.validate import array, bit_entries, file_path, flag, refuse, sequence
from .exceptions import ParameterError, ShapeError

__all__ = [
    "PLE",
    "BitMatrix",
    "RowSpace",
    "Solution",
    "Solutions",
    "determinant",
    "dot",
    "echelon",
    "hstack",
    "inverse",
    "nullspace",
    "ple",
    "rank",
    "rowspace",
    "solve",
    "vstack",
]

__dir__ = list_only(__all__)

P = ParamSpec("P")
R = TypeVar("R")


class Solution(_core.Solution):
    """All solutions of a linear system A x = b over GF(2): one of them and the null space.

    `solve` makes it. A system without a solution is no error.

    Args:
        A: Coefficients, array (m, d) of 0 and 1, or a BitMatrix; or, without b, a RowSpace.
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
        cls,
        A: ArrayLike | BitMatrix | RowSpace,
        b: ArrayLike | None = None,
        *,
        threads: int | None = None,
    ) -> Solution:
        """Solves a system."""
        if isinstance(A, RowSpace) and b is None:
            return super().__new__(cls, A, threads=threads)
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
        return self._sample(make_key(random_state, is_public=True))

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
    match name:
        case "rows":
            return array(name, value)
        case "path":
            return str(file_path(name, value))
        case "random_state":
            return make_key(value, is_public=True)
        case "content":
            if not isinstance(value, bytes | bytearray | memoryview):
                refuse(name, value, "it must be bytes")
            return bytes(value)
    return to_bits(name, value) if name in {"A", "b", "x", "X", "basis"} else value


def to_bits(name: str, value: Any) -> Any:
    """A matrix that is packed as it is, and any other container as an array of bits or integers.

    Raises: ShapeError, ParameterError.
    """
    return value if isinstance(value, BitMatrix) else bit_entries(name, value)


dot = _read_bits(_core.dot)
rank = _read_bits(_core.rank)


inverse = _read_bits(_core.inverse)
nullspace = _read_bits(_core.nullspace)
rowspace = _read_bits(_core.rowspace)


def echelon(
    A: ArrayLike | BitMatrix, *, reduced: bool = True, threads: int | None = None
) -> BitMatrix:
    """Computes a row echelon form over GF(2).

    Args:
        A: Array (m, d) of 0 and 1, or a BitMatrix.
        reduced: Whether each pivot is the only one in its column; there is one such form. Another
            form takes less time.
        threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else
            RAYON_NUM_THREADS, else OMP_NUM_THREADS, else all cores.

    Returns:
        A matrix of A's shape, whose rows of zeros are the last.

    Raises:
        ShapeError: A has not two dimensions.
        ParameterError: A holds anything but 0 and 1, `reduced` is no bool, or `threads` is out of
            range.

    Cost:
        That of `rank`, and rank^2 d / 128 word operations; the other form eliminates all rows.

    Examples:
        >>> from hdp_fast import gf2
        >>> gf2.echelon([[0, 1, 1], [1, 1, 0], [1, 0, 1]])
        BitMatrix(3 x 3 over GF(2), density 0.4444)
        1 0 1
        0 1 1
        0 0 0
    """
    return _core.echelon(to_bits("A", A), reduced=flag("reduced", reduced), threads=threads)


def determinant(A: ArrayLike | BitMatrix, *, threads: int | None = None) -> int:
    """Computes the determinant over GF(2): 1 of a matrix of full rank, else 0.

    Args:
        A: Array (n, n) of 0 and 1, or a BitMatrix.
        threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else
            RAYON_NUM_THREADS, else OMP_NUM_THREADS, else all cores.

    Returns:
        0 or 1.

    Raises:
        ShapeError: A has not two dimensions, or is not square.
        ParameterError: A holds anything but 0 and 1, or `threads` is out of range.

    Cost:
        That of `rank`.

    Examples:
        >>> from hdp_fast import gf2
        >>> gf2.determinant([[1, 1], [0, 1]])
        1
    """
    matrix = _pack("A", A)
    m, d = matrix.shape
    if m != d:
        raise ShapeError(f"A is {m} x {d}, but only a square matrix has a determinant")
    return int(rank(matrix, threads=threads) == d)


class PLE(NamedTuple):
    """The factors of a matrix A: A[rows] == L @ E. `ple` makes it.

    Attributes:
        rows: Which row of A stands in each row of L E: a permutation, int64 (m,).
        L: BitMatrix (m, rank): ones on the diagonal, zeros above it.
        E: BitMatrix (rank, d): row echelon form.
        pivots: The columns in which the rows of E begin, ascending, int64 (rank,).

    Examples:
        >>> from hdp_fast import gf2
        >>> rows, L, E, pivots = gf2.ple([[0, 0, 1], [0, 1, 1]])
        >>> rows, pivots
        (array([1, 0]), array([1, 2]))
    """

    rows: NDArray[np.int64]
    L: BitMatrix
    E: BitMatrix
    pivots: NDArray[np.int64]


def ple(A: ArrayLike | BitMatrix, *, threads: int | None = None) -> PLE:
    """Factors a matrix over GF(2): a permutation, a lower triangle and an echelon form.

    Args:
        A: Array (m, d) of 0 and 1, or a BitMatrix.
        threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else
            RAYON_NUM_THREADS, else OMP_NUM_THREADS, else all cores.

    Returns:
        The factors.

    Raises:
        ShapeError: A has not two dimensions.
        ParameterError: A holds anything but 0 and 1, or `threads` is out of range.

    Cost:
        An elimination of all rows, and two passes over the factors, which it leaves.

    Source:
        Albrecht, Bard and Pernet 2011.

    Examples:
        >>> from hdp_fast import gf2
        >>> A = gf2.BitMatrix.from_dense([[0, 1, 1], [1, 1, 0], [1, 0, 1]])
        >>> factors = gf2.ple(A)
        >>> factors.rows, A[factors.rows] == factors.L @ factors.E
        (array([1, 0, 2]), True)
    """
    rows, pivots, lower, form = _core.ple(to_bits("A", A), threads)
    return PLE(rows, lower, form, pivots)


def hstack(matrices: Sequence[ArrayLike | BitMatrix]) -> BitMatrix:
    """Puts matrices side by side.

    Args:
        matrices: BitMatrix or arrays of 0 and 1 with equally many rows.

    Returns:
        The matrix of all their columns; of no matrices, one of shape (0, 0).

    Raises:
        ShapeError: They do not fit together, or one has not two dimensions.
        ParameterError: `matrices` is no sequence, or one holds anything but 0 and 1.

    Examples:
        >>> from hdp_fast import gf2
        >>> gf2.hstack([[[1], [0]], [[0], [1]]]) == gf2.BitMatrix.identity(2)
        True
    """
    return _core.stack(_pack_all(matrices), beside=True)


def vstack(matrices: Sequence[ArrayLike | BitMatrix]) -> BitMatrix:
    """Puts matrices one above the other.

    Args:
        matrices: BitMatrix or arrays of 0 and 1 with equally many columns.

    Returns:
        The matrix of all their rows; of no matrices, one of shape (0, 0).

    Raises:
        ShapeError: They do not fit together, or one has not two dimensions.
        ParameterError: `matrices` is no sequence, or one holds anything but 0 and 1.

    Examples:
        >>> from hdp_fast import gf2
        >>> gf2.vstack([[[1, 0]], [[0, 1]]]) == gf2.BitMatrix.identity(2)
        True
    """
    return _core.stack(_pack_all(matrices), beside=False)


def _pack(name: str, value: ArrayLike | BitMatrix) -> BitMatrix:
    if isinstance(value, BitMatrix):
        return value
    bits = bit_entries(name, value)
    if bits.ndim != 2:
        raise ShapeError(f"{name} has shape {bits.shape}, but it must have two dimensions")
    return BitMatrix.from_dense(bits)


def _pack_all(matrices: Sequence[ArrayLike | BitMatrix]) -> list[BitMatrix]:
    if isinstance(matrices, BitMatrix):
        refuse("matrices", "a BitMatrix", "it must be a sequence of matrices")
    values = sequence("matrices", matrices)
    return [_pack(f"matrices[{k}]", value) for k, value in enumerate(values)]


class Solutions(NamedTuple):
    """Solutions of A X = B over GF(2) for every column of B. `solve` makes it.

    Attributes:
        x: BitMatrix (d, k): for each column of B the solution whose free unknowns are zero; zeros
            where there is none. Of a left solve (k, m), row by row.
        consistent: Whether each of them has a solution, bool (k,).

    Examples:
        >>> from hdp_fast import gf2
        >>> A = gf2.BitMatrix.from_dense([[1, 1], [0, 1]])
        >>> x, consistent = gf2.solve(A, gf2.BitMatrix.identity(2))
        >>> x == gf2.inverse(A), consistent
        (True, array([ True,  True]))
    """

    x: BitMatrix
    consistent: NDArray[np.bool_]


@overload
def solve(
    A: ArrayLike | BitMatrix, b: BitMatrix, *, left: bool = False, threads: int | None = None
) -> Solutions: ...
@overload
def solve(
    A: ArrayLike | BitMatrix | RowSpace | InParts,
    b: ArrayLike | None = None,
    *,
    left: bool = False,
    threads: int | None = None,
) -> Solution: ...
def solve(
    A: ArrayLike | BitMatrix | RowSpace | InParts,
    b: ArrayLike | BitMatrix | None = None,
    *,
    left: bool = False,
    threads: int | None = None,
) -> Solution | Solutions:
    """Computes the exact set of solutions of A x = b over GF(2).

    A system without a solution is no error. Nothing is private; `hdp_fast.parity` learns privately.

    Args:
        A: Coefficients, array (m, d) of 0 and 1, or a BitMatrix. Or, without b, a RowSpace; or
            data.Chunks of pairs (A, b), which need not fit into memory together and are read once,
            so that a source that can be read a single time will do.
        b: Right-hand side, array (m,) of 0 and 1; or a BitMatrix (m, k) of many in its columns.
        left: Whether to solve x A = b instead: b is then (d,), or a BitMatrix (k, d) of rows.
        threads: Number of threads, 1 to 1024. None means HDP_FAST_NUM_THREADS, else
            RAYON_NUM_THREADS, else OMP_NUM_THREADS, else all cores; Chunks take None.

    Returns:
        The solution space; of a BitMatrix the Solutions of its columns.

    Raises:
        ShapeError: A has not two dimensions, b has not one, or b does not fit A.
        ParameterError: A or b holds anything but 0 and 1, `left` is no bool, `threads` is out of
            range, or b, left or threads stand beside a RowSpace or Chunks.
        Exception: What the functions of Chunks raise.

    Cost:
        As `rank`: an elimination of min(m, d + 64) rows, and m d (1 + nullity) / 64 word operations
        to verify all others. Memory beside A: at most two bit matrices of (d + 64) x d. Many
        right-hand sides take part in the elimination, and the other rows are verified by a product
        with the solutions. A left solve transposes A. Chunks are eliminated d + 64 rows at a time,
        until the rank is full.

    Source:
        As `rank`. A first batch of d + 64 rows is eliminated. Rows outside its span enter as random
        combinations. All rows are verified, so that the result is exact.

    Examples:
        >>> from hdp_fast import gf2
        >>> solution = gf2.solve([[1, 1], [1, 1]], [0, 1])
        >>> solution.consistent, solution.x
        (False, None)
        >>> B = gf2.BitMatrix.from_dense([[1, 0], [1, 1]])
        >>> gf2.solve([[1, 1], [1, 1]], B).consistent
        array([ True, False])
        >>> from hdp_fast.data import Chunks
        >>> gf2.solve(Chunks([([[1, 1]], [0]), ([[0, 1]], [1])])).x
        array([1, 1], dtype=uint8)
    """
    if isinstance(A, RowSpace | InParts):
        if b is not None or left or threads is not None:
            kind = "a RowSpace" if isinstance(A, RowSpace) else "Chunks"
            refuse("A", kind, "it stands alone, without b, left or threads")
        return Solution(A if isinstance(A, RowSpace) else _span_parts(A))
    if b is None:
        raise ParameterError("b = None, but a matrix must come with its right-hand side")
    if flag("left", left):
        A, b = _pack("A", A), b if isinstance(b, BitMatrix) else _right_side(b)
        width, columns = b.shape[-1], A.shape[1]
        if width != columns:
            text = "but x A = b needs as many as A has"
            raise ShapeError(f"b has {width} columns, {text}: {columns}")
        A = A.T
    if not isinstance(b, BitMatrix):
        return Solution(A, _right_side(b), threads=threads)
    x, consistent = _core.solve_many(to_bits("A", A), b.T if left else b, threads)
    return Solutions(x.T if left else x, consistent.astype(bool))


def _span_parts(parts: InParts) -> RowSpace:
    """The span of all equations of parts, by one pass."""
    d = _pack("A", parts.first()[0]).shape[1]
    return functools.reduce(operator.add, parts.map_runs(functools.partial(_span_run, d)))


def _span_run(d: int, parts: Iterable[tuple[Any, ...]]) -> RowSpace:
    equations = _core.Equations(d)
    for blocks, *_ in parts:
        for A, *b in blocks:
            if not b:
                rule = "they must be pairs (A, b), or tables of which label names the column b"
                raise ParameterError(f"the parts have no right-hand sides, but {rule}")
            equations.add(_pack("A", A), _right_side(_read_text(b[0])))
    return equations.take()


def _read_text(b: Any) -> Any:
    """A right-hand side as bits where it is a text, as files of text have it."""
    is_text = isinstance(b, np.ndarray) and b.dtype.kind == "U"
    return b == "1" if is_text and np.isin(b, ("0", "1")).all() else b


def _right_side(b: ArrayLike) -> NDArray[Any]:
    bits = bit_entries("b", b)
    if bits.ndim == 2:
        rule = "it must have one dimension; many right-hand sides are a BitMatrix: from_dense(b)"
        raise ShapeError(f"b has shape {bits.shape}, but {rule}")
    return bits


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
    """The packed rows, and the number of columns."""
    return matrix.to_packed(), matrix.shape[1]


def _reduce_matrix(matrix: BitMatrix) -> tuple[Callable[..., BitMatrix], tuple[Bits, int]]:
    return _restore_matrix, pack_rows(matrix)


def _refuse_construction(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("BitMatrix(...) must be BitMatrix.from_dense(X), or another of its makers")


def _reduce_space(space: RowSpace) -> tuple[Callable[..., RowSpace], tuple[bytes]]:
    return _restore_space, (space.to_bytes(),)


def _restore_space(content: bytes) -> RowSpace:
    return RowSpace.from_bytes(content)


# A compiled class can neither be pickled nor refuse to be called by itself.
copyreg.pickle(BitMatrix, _reduce_matrix)
copyreg.pickle(RowSpace, _reduce_space)
BitMatrix.__new__ = _refuse_construction  # type: ignore[method-assign]
RowSpace.add = _read_bits(RowSpace.add)  # type: ignore[method-assign]
RowSpace.contains = _read_bits(RowSpace.contains)  # type: ignore[method-assign]
RowSpace.of = staticmethod(_read_bits(RowSpace.of))  # type: ignore[method-assign]
RowSpace.from_bytes = staticmethod(_read_bits(RowSpace.from_bytes))  # type: ignore[method-assign]
RowSpace.from_basis = staticmethod(_read_bits(RowSpace.from_basis))  # type: ignore[method-assign]
BitMatrix.from_packed = staticmethod(_read_bits(BitMatrix.from_packed))  # type: ignore[method-assign]
BitMatrix.from_dense = staticmethod(_read_bits(BitMatrix.from_dense))  # type: ignore[method-assign]
BitMatrix.random = staticmethod(_read_bits(BitMatrix.random))  # type: ignore[method-assign]
BitMatrix.from_npz = staticmethod(_read_bits(BitMatrix.from_npz))  # type: ignore[method-assign]
BitMatrix.to_npz = _read_bits(BitMatrix.to_npz)  # type: ignore[method-assign]


def _read_operand(method: Callable[[BitMatrix, Any], R]) -> Callable[[BitMatrix, Any], R]:
    @functools.wraps(method)
    def reading(self: BitMatrix, other: Any, /) -> R:
        return method(self, to_bits("other", other))

    return reading


for _name in ("matmul", "rmatmul", "xor", "rxor", "and", "rand"):
    setattr(BitMatrix, f"__{_name}__", _read_operand(getattr(BitMatrix, f"__{_name}__")))
