"""Weights over a curator's records: kappa-dense projection, multiplicative updates, exact draws."""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._support.numbers import floats
from ._support.random_state import check_random_state, make_key
from ._support.types import RandomState
from ._support.validate import (
    array,
    nonnegative_int,
    number,
    numbers,
    probability_or_one,
    refuse,
)
from .exceptions import ParameterError, ShapeError

__all__ = ["DenseWeights", "project"]


def project(
    w: ArrayLike, kappa: float, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The kappa-dense weights nearest to w: min(c w, 1) with the smallest c that sums to kappa n.

    w: (n,), finite, at least 0, at least kappa n of them above 0. kappa: in (0, 1]. out: where the
    result goes, float64 (n,), contiguous; w itself for a projection in place. Returns float64 (n,).

    Subnormal weights and those whose sum overflows are weights like any others. The sum is kappa n
    or, by less than 1e-10 of it, more, so that no normalized weight exceeds 1 / (kappa n). Nothing
    here is private.

    Raises: ShapeError, ParameterError.
    Cost: O(n) expected, by selection: two passes over w.
    Source: Barak, Hardt and Kale 2009 (Bregman projection); Kohen and Sheffet 2022, Algorithm 1.
    """
    share = probability_or_one("kappa", kappa)
    values = _floats("w", w)
    if values.ndim != 1 or not values.size:
        rule = "it must have one dimension and at least one entry"
        raise ShapeError(f"w has shape {values.shape}, but {rule}")
    least, most = values.min(), values.max()
    if not (least >= 0 and most < math.inf):
        raise ParameterError("w has an entry that is not a finite number of at least 0")
    if out is None:
        return _core.project(values, share)
    _check_out(out, values.shape)
    if out is not values:
        np.copyto(out, values)
    _core.project_in_place(out, share)
    return out


class DenseWeights:
    """Multiplicative weights of n records, drawn from as kappa-dense distributions.

    n: records, at least 1. kappa: in (0, 1], with kappa n at least 1 and kappa `n**2` at most
        `2**49`.
    eta: step size, in (0, 4]. All weights are equal at first.

    Threads may share it: calls wait for each other, and rate for none.

    Private state: the weights leave the object by `probabilities` alone. Logarithms are integers,
    so that updates are exact sums whatever their order; a draw takes integer weights whose sum lies
    in a public window.

    Guarantee: on data sets that differ in one record, the laws of a draw (of the record, not only
        of its index) differ with probability at most `rate` = 1 / (kappa_eff n), where kappa_eff =
        kappa (1 - `2**-12`) is public, if each loss depends on its own record and on released
        hypotheses alone; exact coins. accounting.Subsampled says what a mechanism on such draws
        guarantees; the draws themselves are not private.
    Raises: ParameterError.
    Cost: 8 bytes a record, 20 while drawing.
    Source: Kohen and Sheffet 2022, Algorithm 2 and Claim 4.1.
    """

    def __init__(self, n: int, kappa: float, eta: float):
        self._n = nonnegative_int("n", n)
        self._kappa, self._eta = number("kappa", kappa), number("eta", eta)
        self._weights = _core.DenseWeights(self._n, self._kappa, self._eta)

    @property
    def n(self) -> int:
        """Number of records."""
        return self._n

    @property
    def kappa(self) -> float:
        """Density: no record has more than 1 / (kappa n) of the probability, or hardly more."""
        return self._kappa

    @property
    def eta(self) -> float:
        """Step size."""
        return self._eta

    @property
    def rate(self) -> float:
        """The largest probability of any record in a draw, on every data set: 1 / (kappa_eff n)."""
        return self._weights.rate

    def update(self, losses: ArrayLike) -> None:
        """Multiply each weight by exp(-eta (1 - loss)): what a hypothesis gets right, counts less.

        losses: (n,), or (r, n) for r vectors at once, in [0, 1]; bool and uint8 hold 0 and 1.

        Raises: ShapeError; ParameterError for a loss out of range, and then nothing has changed.
        Cost: two passes over losses, one over weights.
        Source: Kohen and Sheffet 2022, Algorithm 1, with weights as logarithms.
        """
        values = array("losses", losses)
        if values.ndim not in (1, 2) or values.shape[-1] != self._n:
            rule = f"it must be ({self._n},) or (r, {self._n})"
            raise ShapeError(f"losses has shape {values.shape}, but {rule}")
        if values.dtype.kind == "b" or values.dtype == np.uint8:
            bits = np.require(values, np.uint8, ["C", "A"])
            self._weights.update_bits(bits.reshape(-1))
        else:
            self._weights.update_floats(_floats("losses", values).reshape(-1))

    def draw(self, m: int, *, random_state: RandomState = None) -> NDArray[np.int64]:
        """Draw the indices of m records independently from the projected weights.

        m: at least 0. random_state: None draws from the operating system, an int or a Generator
        makes a reproducible test stream. Returns int64 (m,).

        Guarantee: as the class; exact.
        Raises: ParameterError.
        Cost: a handful of passes over the weights, then two random reads a draw.
        Source: Kohen and Sheffet 2022, Algorithm 2.
        """
        check_random_state(random_state)
        return self._weights.draw(nonnegative_int("m", m), make_key(random_state))

    @property
    def updates(self) -> int:
        """Number of loss vectors taken in; it changes with the weights, in one atomic step."""
        return self._weights.updates

    @property
    def updates_left(self) -> int:
        """Number of further loss vectors that the weights have room for."""
        return self._weights.room

    @property
    def compiled(self) -> _core.DenseWeights:
        """The weights as the compiled module takes them."""
        return self._weights

    def with_parameters(self, kappa: float, eta: float) -> DenseWeights:
        """A copy with another density and step size, which starts where these weights are.

        kappa, eta: as the class takes them.

        Raises: ParameterError.
        Cost: a copy of the weights.
        Source: Kohen and Sheffet 2022, Algorithm 2.
        """
        made = DenseWeights.__new__(DenseWeights)
        made._n, made._kappa, made._eta = self._n, number("kappa", kappa), number("eta", eta)
        made._weights = self._weights.continued(made._kappa, made._eta)
        return made

    def probabilities(self) -> NDArray[np.float64]:
        """The probability of every record in the next draw, float64 (n,), which is not private.

        Nothing may be released that is computed from them where the records are protected.

        Raises: MemoryError.
        Cost: a handful of passes over the weights.
        Source: Kohen and Sheffet 2022, Algorithm 1.
        """
        return self._weights.probabilities()

    def __repr__(self) -> str:
        return f"DenseWeights({self._n:,} records, kappa={self._kappa:g}, eta={self._eta:g})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("DenseWeights can't be pickled: they are private to the curator")


def _floats(name: str, value: ArrayLike) -> NDArray[np.float64]:
    return floats(numbers(name, value))


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    fits = isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == shape
    if not (fits and out.flags.carray):
        refuse("out", out, f"it must be a contiguous, writeable float64 array of shape {shape}")
