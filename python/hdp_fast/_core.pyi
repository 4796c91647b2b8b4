from typing import Any, Final, SupportsIndex, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "BitMatrix",
    "ParityTask",
    "Solution",
    "bernoulli",
    "check_bits",
    "check_settings",
    "dot",
    "integer_noise",
    "plan_parity",
    "plan_parity_uniform_target",
    "promise_parity",
    "randomized_response",
    "rank",
    "select",
    "solve",
    "truth_probability",
    "uniform_integers",
    "weighted_draws",
]
__version__: Final[str]

_Bits: TypeAlias = NDArray[np.uint8]
_Integers: TypeAlias = NDArray[np.int64]
_Ratio: TypeAlias = tuple[int, int]
_RandomState: TypeAlias = int | np.random.Generator | None
_PlanFields: TypeAlias = tuple[
    int, float, float | None, float | None, int | None, int | None, int | None
]

@final
class BitMatrix:
    @staticmethod
    def from_dense(X: ArrayLike) -> BitMatrix: ...
    @staticmethod
    def from_packed(rows: ArrayLike, ncols: SupportsIndex) -> BitMatrix: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def to_dense(self) -> _Bits: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    __array_ufunc__: None
    def __copy__(self) -> BitMatrix: ...
    def __deepcopy__(self, _memo: object) -> BitMatrix: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: slice, /) -> BitMatrix: ...

@final
class ParityTask:
    def __new__(
        cls,
        X: ArrayLike | BitMatrix,
        y: ArrayLike,
        epsilon: float,
        method: str,
        neighbours: str,
        plan: _PlanFields,
        affine: bool,
    ) -> ParityTask: ...
    def learn(self, random_state: _RandomState) -> _Bits | None: ...

@final
class Solution:
    @property
    def consistent(self) -> bool: ...
    @property
    def rank(self) -> int: ...
    @property
    def nullity(self) -> int: ...
    @property
    def x(self) -> _Bits | None: ...
    def nullspace(self) -> _Bits: ...
    def sample(self, random_state: _RandomState = None) -> _Bits | None: ...

def rank(A: ArrayLike | BitMatrix, *, threads: int | None = None) -> int: ...
def dot(A: ArrayLike | BitMatrix, x: ArrayLike, *, threads: int | None = None) -> _Bits: ...
def solve(A: ArrayLike | BitMatrix, b: ArrayLike, *, threads: int | None = None) -> Solution: ...
def bernoulli(
    p: _Ratio, exponential: bool, size: SupportsIndex, random_state: _RandomState
) -> _Bits: ...
def integer_noise(
    law: str, scale: _Ratio, size: SupportsIndex, random_state: _RandomState
) -> _Integers: ...
def uniform_integers(bound: int, size: SupportsIndex, random_state: _RandomState) -> _Integers: ...
def weighted_draws(
    weights: NDArray[np.uint64], size: SupportsIndex, random_state: _RandomState
) -> _Integers: ...
def select(method: str, scores: _Integers, rate: _Ratio, random_state: _RandomState) -> int: ...
def check_settings() -> None: ...
def check_bits(bits: ArrayLike) -> None: ...
def randomized_response(
    bits: ArrayLike, *, epsilon: float, random_state: _RandomState = None
) -> _Bits: ...
def truth_probability(epsilon: float) -> int: ...
def plan_parity(
    d: SupportsIndex, alpha: float, beta: float, epsilon: float, method: str, neighbours: str
) -> _PlanFields: ...
def plan_parity_uniform_target(
    d: SupportsIndex, chi2: float, beta: float, epsilon: float, method: str, neighbours: str
) -> _PlanFields: ...
def promise_parity(
    d: SupportsIndex, n: int, beta: float, epsilon: float, method: str, neighbours: str
) -> tuple[float | None, _PlanFields]: ...
