"""MASKED-PARITY: concepts that statistical queries learn in two rounds and in no single one.

An example is a row of d + log2(d) + 1 bits, d a power of two: x, then an index i, its lowest bit
first, then b, which says what the label tells: bit i of r, or a masked parity of x.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._support.callers import freeze
from ..._support.random_state import make_public_generator
from ..._support.types import Bits, RandomState
from ..._support.validate import array, bits, nonnegative_int, refuse
from ...exceptions import ShapeError
from ...gf2 import BitMatrix, dot
from ...learners.hypotheses import read_only, store

# Indices, and one symbol more, fit 16 bits.
_LARGEST = 1 << 15
# The domain of 32 bits would have 2**38 rows.
_LARGEST_LISTED = 16


@dataclass(frozen=True, eq=False)
class MaskedParity:
    """A concept of MASKED-PARITY: on rows (x, i, b), r_i where b = 1, else the sum of r x and a.

    Attributes:
        r: 0/1 (d,), d a power of two from 2 to 32,768; kept as a read-only copy.
        a: 0 or 1, the mask.
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
        """Number of bits of x."""
        return len(self.r)

    def predict(self, X: Any) -> Bits:
        """Predict the labels of examples, 1 where the paper has -1.

        X: 0/1 (m, d + log2(d) + 1), an array or a BitMatrix: x, i with its lowest bit first, b.
        Returns uint8 (m,).

        Raises: ShapeError, ParameterError.
        Cost: a pass over X; over a BitMatrix log2(d) + 2.
        Source: Kasiviswanathan et al. 2011, Section 5.3.
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
    """A concept that knows r but no parity: r_i where b = 1, else the lowest bit of i.

    Attributes:
        r: 0/1 (d,), as of MaskedParity; kept as a read-only copy.
    """

    r: Bits

    def __post_init__(self) -> None:
        """Validate r."""
        store(self, r=MaskedParity(self.r, 0).r)

    def predict(self, X: Any) -> Bits:
        """Predict labels: where b = 1, those of any concept with this r.

        The lowest bit of i is independent of any parity of x: exactly half of the labels where
        b = 0 are wrong, whatever the concept.

        X: as MaskedParity.predict. Returns uint8 (m,).

        Raises: ShapeError, ParameterError.
        Cost: as MaskedParity.predict.
        Source: Kasiviswanathan et al. 2011, Section 5.3 (weak learning).
        """
        index, half = index_and_half(X, len(self.r))
        return np.where(half, self.r[index], index & 1).astype(np.uint8)


def uniform_examples(
    concept: MaskedParity, m: int, random_state: RandomState = None
) -> tuple[Bits, Bits]:
    """Examples of a concept, drawn uniformly and independently.

    concept: a MaskedParity of d bits; m: how many, at least 0; random_state: None, an int or a
    numpy Generator. Returns X uint8 (m, d + log2(d) + 1) and their labels, uint8 (m,).

    Guarantee: none: examples of a public concept hold no private data.
    Raises: ParameterError.
    Cost: m bytes for each column.
    Source: Kasiviswanathan et al. 2011, Section 5.3.
    """
    validate_concept(concept)
    shape = nonnegative_int("m", m), width(concept.d)
    X = make_public_generator(random_state).integers(0, 2, shape, dtype=np.uint8)
    return X, concept.predict(X)


def masked_parity_domain(d: int) -> Bits:
    """List every example once: the support of the uniform distribution, as an oracle takes it.

    d: bits of x, a power of two from 2 to 16. Returns uint8 (2 d 2**d, d + log2(d) + 1).

    Raises: ParameterError.
    Cost: that of the result, 44 MB for d = 16.
    Source: none.
    """
    columns = width(validate_size("d", d, _LARGEST_LISTED))
    rows = np.arange(1 << columns, dtype="<u4").view(np.uint8).reshape(-1, 4)
    return np.unpackbits(rows, axis=1, count=columns, bitorder="little")


class LazyExamples:
    """Uniform examples whose x is drawn when it is read for the first time.

    Only its product with r is drawn at once, since labels need it.
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
            # Uniform among the x with this product: one bit that counts is set right.
            x[:, self._r.argmax()] ^= dot(x, self._r) ^ self._product
        index = self.index[:, None] >> np.arange(d_and_index - d, dtype=np.uint16) & 1
        return np.column_stack([x, index.astype(np.uint8), self.half])


def index_and_half(X: Any, d: int) -> tuple[NDArray[Any], Bits]:
    """The indices i and the bits b of examples."""
    if getattr(X, "shape", None) is None:
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
    rows = X if isinstance(X, BitMatrix) else np.asarray(X)
    return dot(rows, np.pad(r, (0, rows.shape[1] - len(r))))


def width(d: int) -> int:
    """Columns of an example: x, i and b."""
    return d + d.bit_length()


def validate_size(name: str, value: Any, most: int = _LARGEST) -> int:
    """The value as a number of bits of x."""
    size = nonnegative_int(name, value)
    if not 2 <= size <= most or size & (size - 1):
        refuse(name, value, f"it must be a power of two from 2 to {most:,}")
    return size


def validate_concept(value: Any) -> MaskedParity:
    """The value, if it is a concept."""
    if not isinstance(value, MaskedParity):
        refuse("concept", value, "it must be a MaskedParity")
    return value


def validate_bit(name: str, value: Any) -> int:
    """The value as 0 or 1."""
    number = operator.index(value) if isinstance(value, int | np.integer) else -1
    if number not in (0, 1):
        refuse(name, value, "it must be 0 or 1")
    return number
