"""MASKED-PARITY: concepts that statistical queries learn in two rounds and in no single one.

An example is a row of d + log2(d) + 1 bits, where d is a power of two. It consists of x, d bits; an
index i, with its lowest bit first; and a bit b, which says what the label is: bit i of r, or a
masked parity of x.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.numbers import freeze
from ..._support.parameters import store
from ..._support.random_state import make_public_generator
from ..._support.types import Bits, RandomState
from ..._support.validate import array, bits, nonnegative_int, read_only, refuse
from ...exceptions import ShapeError
from ...gf2 import BitMatrix, dot

# The indices and one more symbol fit 16 bits.
_LARGEST = 1 << 15
# The domain of 32 bits would have 2**38 rows.
_LARGEST_LISTED = 16


@dataclass(frozen=True, eq=False)
class MaskedParity:
    """A concept of MASKED-PARITY: a label is a bit of r, or a masked parity of x.

    The label of a row (x, i, b) is r_i where b = 1. Where b = 0 it is the sum over GF(2) of the
    bits of x where r is 1, and of the mask a.

    Attributes:
        r: The parity, 0 and 1 of shape (d,), d a power of two from 2 to 32,768. A read-only copy is
            kept.
        a: The mask, 0 or 1.

    Raises:
        ParameterError: r has entries other than 0 and 1, d is not such a power of two, or a is not
            0 or 1.
        ShapeError: r has not one dimension.

    Examples:
        >>> from hdp_fast import local
        >>> concept = local.MaskedParity([1, 0], 1)
        >>> concept.predict([[1, 1, 0, 1], [1, 1, 1, 1]])  # b = 1: bits r_0 and r_1
        array([1, 0], dtype=uint8)
        >>> concept.predict([[1, 1, 0, 0], [0, 1, 0, 0]])  # b = 0: r x + a
        array([0, 1], dtype=uint8)
    """

    r: Bits
    a: int

    def __post_init__(self) -> None:
        """Validate r and a."""
        r = bits("r", self.r)
        validate_size("the length of r", len(r))
        store(self, r=read_only(r), a=validate_bit("a", self.a))

    @property
    def d(self) -> int:
        """The number of bits of x."""
        return len(self.r)

    def predict(self, X: Any) -> Bits:
        """Predicts the labels of examples; 1 stands for the paper's -1.

        Args:
            X: Examples, 0 and 1 of shape (m, d + log2(d) + 1), an array or a BitMatrix: x, i with
                its lowest bit first, b.

        Returns:
            The labels, uint8 of shape (m,).

        Raises:
            ShapeError: X has another shape.
            ParameterError: X has entries other than 0 and 1.

        Cost:
            One pass over X; log2(d) + 2 passes over a BitMatrix.

        Source:
            Kasiviswanathan et al. 2011, Section 5.3.
        """
        index, half = index_and_half(X, self.d)
        return np.where(half, self.r[index], parity_of(X, self.r) ^ np.uint8(self.a))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MaskedParity):
            return NotImplemented
        return self.a == other.a and np.array_equal(self.r, other.r)

    def __hash__(self) -> int:
        return hash((self.r.tobytes(), self.a))


@dataclass(frozen=True, eq=False)
class WeakMaskedParity:
    """A hypothesis that knows r but no mask: r_i where b = 1, else the lowest bit of i.

    Attributes:
        r: The parity, 0 and 1 of shape (d,), as for MaskedParity. A read-only copy is kept.

    Raises:
        ParameterError: r breaks the rule of MaskedParity.
        ShapeError: r has not one dimension.

    Examples:
        >>> from hdp_fast import local
        >>> X, concept = local.masked_parity_domain(4), local.MaskedParity([1, 0, 1, 1], 1)
        >>> float((local.WeakMaskedParity(concept.r).predict(X) != concept.predict(X)).mean())
        0.25
    """

    r: Bits

    def __post_init__(self) -> None:
        """Validate r."""
        store(self, r=MaskedParity(self.r, 0).r)

    def predict(self, X: Any) -> Bits:
        """Predicts labels, which are right wherever b = 1 for every concept with this r.

        The lowest bit of i is independent of every parity of x. Therefore exactly half of the
        labels with b = 0 are wrong under the uniform distribution, whatever the concept.

        Args:
            X: Examples, as for MaskedParity.predict.

        Returns:
            The labels, uint8 of shape (m,).

        Raises:
            ShapeError: X has another shape.
            ParameterError: X has entries other than 0 and 1.

        Cost:
            One pass over X; log2(d) + 1 passes over a BitMatrix.

        Source:
            Kasiviswanathan et al. 2011, Section 5.3 (weak learning).
        """
        index, half = index_and_half(X, len(self.r))
        return np.where(half, self.r[index], index & 1).astype(np.uint8)


def uniform_examples(
    concept: MaskedParity, m: int, random_state: RandomState = None
) -> tuple[Bits, Bits]:
    """Draws examples of a concept, uniformly and independently.

    Args:
        concept: A MaskedParity of d bits.
        m: Number of examples, at least 0.
        random_state: None draws from the operating system. An int or a numpy Generator makes the
            examples reproducible.

    Returns:
        The examples X, uint8 of shape (m, d + log2(d) + 1), and their labels, uint8 of shape (m,).

    Raises:
        ParameterError: concept is not a MaskedParity, or m or random_state is out of range.

    Guarantee:
        Not private, and nothing needs protection: the examples belong to a public concept.

    Cost:
        m bytes for each column.

    Source:
        Kasiviswanathan et al. 2011, Section 5.3.

    Examples:
        >>> from hdp_fast import local
        >>> concept = local.MaskedParity([1, 0, 1, 1], 1)
        >>> X, y = local.uniform_examples(concept, 1000)
        >>> X.shape, bool((concept.predict(X) == y).all())
        ((1000, 7), True)
    """
    validate_concept(concept)
    shape = nonnegative_int("m", m), width(concept.d)
    X = make_public_generator(random_state).integers(0, 2, shape, dtype=np.uint8)
    return X, concept.predict(X)


def masked_parity_domain(d: int) -> Bits:
    """Lists every example once: the support of the uniform distribution, as an oracle takes it.

    Args:
        d: Number of bits of x, a power of two from 2 to 16.

    Returns:
        The examples, uint8 of shape (2 d `2**d`, d + log2(d) + 1).

    Raises:
        ParameterError: d is not such a power of two.

    Cost:
        The memory of the result, 44 MB for d = 16.

    Examples:
        >>> from hdp_fast import local
        >>> X, concept = local.masked_parity_domain(4), local.MaskedParity([1, 0, 1, 1], 1)
        >>> oracle = local.ExactOracle(X, concept.predict(X))
        >>> oracle.query(lambda X, y: y, tau=0.01)  # 3/4 where b = 1, 1/2 where b = 0
        0.625
    """
    columns = width(validate_size("d", d, _LARGEST_LISTED))
    rows = np.arange(1 << columns, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(rows, axis=1, count=columns, bitorder="little")


class LazyExamples:
    """Uniform examples whose x is drawn when it is read for the first time.

    Only the product of x with r is drawn at once, since the labels depend on it.
    """

    def __init__(self, concept: MaskedParity, m: int, rng: np.random.Generator):
        drawn = rng.integers(0, 4 * concept.d, m, dtype=np.uint32)
        self.half = (drawn >> 1 & 1).astype(np.uint8)
        self.index = (drawn >> 2).astype(np.uint16)
        product = (drawn & 1).astype(np.uint8) * concept.r.any()
        labels = np.where(self.half, concept.r[self.index], product ^ np.uint8(concept.a))
        self.labels = freeze(labels)
        self.shape = m, width(concept.d)
        self._r, self._product, self._rng = concept.r, product, rng
        self._rows: Bits | None = None

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._rows is None:
            self._rows = freeze(self._draw_rows())
        return np.array(self._rows, dtype, copy=copy)

    def _draw_rows(self) -> Bits:
        d, d_and_index = len(self._r), self.shape[1] - 1
        x = self._rng.integers(0, 2, (len(self), d), dtype=np.uint8)
        if self._r.any():
            # Uniform among the x with this product: one bit where r is 1 is corrected.
            x[:, self._r.argmax()] ^= dot(x, self._r) ^ self._product
        index = self.index[:, None] >> np.arange(d_and_index - d, dtype=np.uint16) & 1
        return np.column_stack([x, index.astype(np.uint8), self.half])


def index_and_half(X: Any, d: int) -> tuple[NDArray[Any], Bits]:
    """The indices i and the bits b of examples.

    Raises:
        ShapeError: X has not the columns of examples of d bits.
        ParameterError: X has entries other than 0 and 1 in these columns.
    """
    if not isinstance(X, LazyExamples | BitMatrix):
        X = array("X", X)
    if len(X.shape) != 2 or X.shape[1] != width(d):
        rule = f"examples of {d} bits have {width(d)} columns"
        raise ShapeError(f"X has shape {X.shape}, but {rule}")
    if isinstance(X, LazyExamples):
        return X.index, X.half
    if isinstance(X, BitMatrix):
        tail = np.column_stack([dot(X, unit) for unit in np.eye(width(d), dtype=np.uint8)[d:]])
    else:
        tail = BitMatrix.from_dense(X[:, d:]).to_dense()
    powers = 1 << np.arange(width(d) - d - 1)
    return tail[:, :-1] @ powers, tail[:, -1]


def parity_of(X: Any, r: Bits) -> Bits:
    """The sum over GF(2) of the bits of x where r is 1."""
    rows = X if isinstance(X, BitMatrix) else array("X", X)
    return dot(rows, np.pad(r, (0, rows.shape[1] - len(r))))


def width(d: int) -> int:
    """The number of columns of an example: those of x, i and b."""
    return d + d.bit_length()


def validate_size(name: str, value: Any, most: int = _LARGEST) -> int:
    """The value as a number of bits of x; what is not a power of two in range is refused."""
    size = nonnegative_int(name, value)
    if not 2 <= size <= most or size & (size - 1):
        refuse(name, value, f"it must be a power of two from 2 to {most:,}")
    return size


def validate_concept(value: Any) -> MaskedParity:
    """The value, which must be a MaskedParity."""
    if not isinstance(value, MaskedParity):
        refuse("concept", value, "it must be a MaskedParity")
    return value


def validate_bit(name: str, value: Any) -> int:
    """The value as 0 or 1; anything else is refused."""
    number = operator.index(value) if isinstance(value, int | np.integer) else -1
    if number not in (0, 1):
        refuse(name, value, "it must be 0 or 1")
    return number
