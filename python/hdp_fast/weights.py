"""Weights over a curator's records: kappa-dense projection, multiplicative updates, exact draws."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core
from ._support.lazy import list_only
from ._support.numbers import floats
from ._support.random_state import make_key
from ._support.types import RandomState
from ._support.validate import (
    array,
    nonnegative_int,
    number,
    numbers,
    probability_or_one,
    refuse,
)
from .exceptions import ShapeError

__all__ = ["DenseWeights", "project"]

__dir__ = list_only(__all__)


def project(
    w: ArrayLike, kappa: float, out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Projects w onto the kappa-dense weights, min(c w, 1) with the least c that sums to kappa n.

    The result is the nearest kappa-dense weight vector in relative entropy (the Bregman
    projection). Its sum is kappa n, or more by less than 1e-10 of it, so that no normalized weight
    exceeds 1 / (kappa n). Subnormal weights, and weights whose sum overflows, are projected like
    any others. Nothing here is private.

    Args:
        w: Weights, shape (n,), n at least 1: finite, at least 0, and at least kappa n of them above
            0.
        kappa: Density, in (0, 1].
        out: Contiguous, writeable float64 array of shape (n,) that receives the result; w itself
            for a projection in place. None makes a new array. It stays as it is if w is refused.

    Returns:
        The projected weights, a float64 array of shape (n,); `out` if that was passed.

    Raises:
        ShapeError: w does not have one dimension and at least one entry.
        ParameterError: kappa is out of range, an entry of w is negative or not finite, fewer than
            kappa n entries are above 0, or out does not fit.

    Cost:
        O(n), by selection: two passes over w but for weights that a sample says little about.

    Source:
        Barak, Hardt and Kale 2009 (Bregman projection); Kohen and Sheffet 2022, Algorithm 1.

    Examples:
        >>> from hdp_fast import weights
        >>> weights.project([4.0, 1.0, 1.0, 2.0], kappa=0.5).round(6)  # the largest one is capped
        array([1.  , 0.25, 0.25, 0.5 ])
        >>> weights.project([3.0, 3.0, 3.0, 3.0], kappa=0.25).round(6)
        array([0.25, 0.25, 0.25, 0.25])
    """
    share = probability_or_one("kappa", kappa)
    values = _floats("w", w)
    if values.ndim != 1 or not values.size:
        rule = "it must have one dimension and at least one entry"
        raise ShapeError(f"w has shape {values.shape}, but {rule}")
    if out is None:
        return _core.project(values, share)
    _check_out(out, values.shape)
    if out is values:
        _core.project_in_place(out, share)
    else:
        # A copy of what overlaps: out is not written before all weights are known to be right.
        source = values.copy() if np.may_share_memory(values, out) else values
        _core.project_into(source, share, out)
    return out


class DenseWeights:
    """Multiplicative weights of n records, which are drawn from as kappa-dense distributions.

    All weights are equal at first. They are private state: they leave the object through
    `probabilities` alone. Their logarithms are integers, so that updates are exact sums in any
    order. A draw uses integer weights whose sum lies in a public window.

    Threads may share the object: calls that read or change the weights wait for each other, and the
    properties wait for none.

    Args:
        n: Number of records, at least 1 and below `2**32`.
        kappa: Density, in (0, 1], with kappa n at least 1 and kappa `n**2` at most `2**49`.
        eta: Step size of the updates, in (0, 4].

    Raises:
        ParameterError: A parameter is out of range.
        MemoryError: n weights do not fit into memory.

    Guarantee:
        On data sets that differ in one record, the laws of a draw differ with probability at most
        `rate` = 1 / (kappa_eff n), with exact random draws. This holds for the drawn record, not
        only for its index. kappa_eff = kappa (1 - `2**-12`) is public. The condition is that each
        loss depends on its own record and on released hypotheses alone. The draws themselves are
        not private; accounting.Subsampled states what a mechanism on such draws guarantees.

    Cost:
        8 bytes for each record, up to 24 while drawing.

    Source:
        Kohen and Sheffet 2022, Algorithm 2 and Claim 4.1.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.weights import DenseWeights
        >>> weights = DenseWeights(1000, kappa=0.1, eta=0.5)
        >>> wrong = np.arange(1000) < 100  # a hypothesis errs on the first hundred records
        >>> for _ in range(100):
        ...     weights.update(wrong)
        >>> bool((weights.draw(50) < 100).all()), f"{weights.rate:.4f}"
        (True, '0.0100')
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
        """Density: no record's probability exceeds 1 / (kappa n) by a factor above 1.0003."""
        return self._kappa

    @property
    def eta(self) -> float:
        """Step size of the updates."""
        return self._eta

    @property
    def rate(self) -> float:
        """The largest probability of any record in a draw, on every data set: 1 / (kappa_eff n)."""
        return self._weights.rate

    def update(self, losses: ArrayLike) -> None:
        """Multiplies each weight by exp(-eta (1 - loss)): records predicted right lose weight.

        Args:
            losses: The losses of a hypothesis, numbers in [0, 1], bool or uint8 0 and 1, shape
                (n,); or shape (r, n) for r hypotheses at once.

        Raises:
            ShapeError: losses does not have the shape (n,) or (r, n).
            ParameterError: A loss is out of range, or updates_left is less than r. Nothing has
                changed then.

        Cost:
            One pass over the losses and the weights.

        Source:
            Kohen and Sheffet 2022, Algorithm 1, with the weights as logarithms.
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
        """Draws the indices of m records independently from the projected weights.

        Args:
            m: Number of draws, at least 0.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            An int64 array of shape (m,) of indices from 0 to n - 1.

        Raises:
            ParameterError: m is negative, or random_state is of another kind.
            MemoryError: The draws do not fit into memory.

        Guarantee:
            On data sets that differ in one record, the laws of each draw differ with probability at
            most `rate`, under the condition of the class, with exact random draws. The draws
            themselves are not private.

        Cost:
            A handful of passes over the weights, then mostly one random read for each draw.

        Source:
            Kohen and Sheffet 2022, Algorithm 2.
        """
        return self._weights.draw(nonnegative_int("m", m), make_key(random_state))

    @property
    def updates(self) -> int:
        """Number of loss vectors taken in; it changes with the weights, in one atomic step."""
        return self._weights.updates

    @property
    def updates_left(self) -> int:
        """Number of further loss vectors there is room for; all eta may sum to about 5,600."""
        return self._weights.room

    @property
    def compiled(self) -> _core.DenseWeights:
        """The weights as the compiled module takes them."""
        return self._weights

    def with_parameters(self, kappa: float, eta: float) -> DenseWeights:
        """Copies the weights as they are now, with another density and step size.

        The copy counts its updates from 0.

        Args:
            kappa: Density, in (0, 1], with kappa n at least 1 and kappa `n**2` at most `2**49`.
            eta: Step size of the updates, in (0, 4].

        Returns:
            New DenseWeights over the same records.

        Raises:
            ParameterError: A parameter is out of range.
            MemoryError: The copy does not fit into memory.

        Cost:
            A copy of the weights.

        Source:
            Kohen and Sheffet 2022, Algorithm 2.
        """
        made = DenseWeights.__new__(DenseWeights)
        made._n, made._kappa, made._eta = self._n, number("kappa", kappa), number("eta", eta)
        made._weights = self._weights.continued(made._kappa, made._eta)
        return made

    def probabilities(self) -> NDArray[np.float64]:
        """Computes the probability of every record in the next draw, which no noise protects.

        Nothing that is computed from the probabilities may be released where the records are
        protected.

        Returns:
            A float64 array of shape (n,) that sums to 1.

        Raises:
            MemoryError: The probabilities do not fit into memory.

        Cost:
            A handful of passes over the weights.

        Source:
            Kohen and Sheffet 2022, Algorithm 1.
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
