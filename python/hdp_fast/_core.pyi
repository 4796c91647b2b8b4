from collections.abc import Mapping
from typing import Any, Final, Self, SupportsIndex, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import disjoint_base

__version__: Final[str]

_Bits: TypeAlias = NDArray[np.uint8]
_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.int64]
_Ratio: TypeAlias = tuple[int, int]
_Key: TypeAlias = bytes | None
_Mechanism: TypeAlias = tuple[str, float, float, int, float]
_Records: TypeAlias = tuple[NDArray[np.float32] | _Floats, int, _Floats]
_Weights: TypeAlias = tuple[float, float, float] | _Floats
_Terms: TypeAlias = list[tuple[_Mechanism, int]]

class _ParityPlan(TypedDict):
    n: int
    p: float
    g: float | None
    c: float | None
    k: int | None
    batch_size: int | None
    test_size: int | None

class _SGDPlan(TypedDict):
    loss: str
    shape: float
    classes: int
    steps: int
    batch_size: int
    radius: float
    bounds: tuple[float, float] | None
    last: bool
    start: _Floats | None
    norm_bound: float
    clip_norm: float
    l1: float
    l2: float
    strong_convexity: float
    numerics: str
    noise_multiplier: _Ratio

class _FeatureMap(TypedDict):
    low: _Floats
    high: _Floats
    origin: _Floats
    factor: _Floats
    matrix: tuple[_Floats, _Floats] | None
    waves: bool
    constant: bool
    finite: bool

class _SeparatorSettings(TypedDict):
    cost: float
    margin: float
    intercept: bool

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
class Features:
    def __new__(
        cls, X: ArrayLike | BitMatrix | Features, *, threads: int | None = None
    ) -> Features: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    def _take(self, indices: _Integers) -> Features: ...
    def __copy__(self) -> Features: ...
    def __deepcopy__(self, _memo: object) -> Features: ...

@final
class Lists:
    def __new__(cls, ones: ArrayLike | BitMatrix, zeros: ArrayLike | BitMatrix | None) -> Lists: ...
    def errors(self, features: Features, y: ArrayLike, threads: int | None) -> _Integers: ...
    def predict(self, i: int, features: Features) -> _Bits: ...

@final
class ParityTask:
    def __new__(
        cls,
        X: ArrayLike | BitMatrix,
        y: ArrayLike,
        epsilon: float,
        method: str,
        neighbors: str,
        plan: Mapping[str, object],
        affine: bool,
    ) -> ParityTask: ...
    def learn(self, seed: _Key) -> _Bits | None: ...

@disjoint_base
class Solution:
    def __new__(
        cls, A: ArrayLike | BitMatrix, b: ArrayLike, *, threads: int | None = None
    ) -> Self: ...
    @property
    def consistent(self) -> bool: ...
    @property
    def rank(self) -> int: ...
    @property
    def nullity(self) -> int: ...
    @property
    def x(self) -> _Bits | None: ...
    def nullspace(self) -> _Bits: ...
    def _sample(self, seed: _Key) -> _Bits | None: ...

def rank(A: ArrayLike | BitMatrix, *, threads: int | None = None) -> int: ...
def dot(A: ArrayLike | BitMatrix, x: ArrayLike, *, threads: int | None = None) -> _Bits: ...
def separate(
    entries: NDArray[np.float32] | NDArray[np.float64],
    columns: int,
    labels: _Bits,
    rows: _Integers,
    start: NDArray[np.float64] | None,
    settings: _SeparatorSettings,
) -> tuple[NDArray[np.float64], float, int]: ...
def sgd_learn(
    records: _Records,
    draws: DenseWeights | _Integers | None,
    plan: _SGDPlan,
    seed: _Key,
) -> _Floats: ...
def adaptation_pass(
    records: _Records,
    loss: str,
    model: _Floats,
    weights: _Weights,
    grid: tuple[float, float, float] | None,
    threads: int | None,
) -> tuple[float, _Floats, _Floats | None]: ...
def adaptation_integers(
    entries: NDArray[np.float32] | _Floats,
    columns: int,
    bound: float,
    units: float,
    threads: int | None,
) -> tuple[NDArray[np.float32] | _Floats, float]: ...
def linear_scores(records: _Records, norm_bound: float, model: _Floats) -> _Floats: ...
def linear_losses(
    records: _Records,
    norm_bound: float,
    model: _Floats,
    loss: str,
    shape: float,
    largest: float,
) -> _Floats: ...
def linear_slopes(
    records: _Records, norm_bound: float, model: _Floats, loss: str, shape: float
) -> _Floats: ...
def write_features(
    entries: NDArray[np.float32] | _Floats,
    columns: int,
    features: _FeatureMap,
    bits: int,
    out: _Floats,
) -> None: ...
def feature_sums(
    entries: NDArray[np.float32] | _Floats,
    columns: int,
    labels: tuple[_Integers, int] | _Floats,
    features: _FeatureMap,
    bits: int,
    second: bool,
) -> tuple[_Integers, _Integers | None, _Integers]: ...
def loss_bounds(
    loss: str, shape: float, prediction: float, label: float
) -> tuple[float, float]: ...
def bernoulli(p: _Ratio, exponential: bool, size: SupportsIndex, seed: _Key) -> _Bits: ...
def integer_noise(law: str, scale: _Ratio, size: SupportsIndex, seed: _Key) -> _Integers: ...
def uniform_integers(bound: int, size: SupportsIndex, seed: _Key) -> _Integers: ...
def weighted_draws(weights: NDArray[np.uint64], size: SupportsIndex, seed: _Key) -> _Integers: ...
def select(method: str, scores: _Integers, rate: _Ratio, seed: _Key) -> int: ...

@final
class DenseWeights:
    def __new__(cls, n: SupportsIndex, kappa: float, eta: float) -> DenseWeights: ...
    @property
    def updates(self) -> int: ...
    @property
    def room(self) -> int: ...
    @property
    def rate(self) -> float: ...
    def update_floats(self, losses: NDArray[np.float64]) -> None: ...
    def update_bits(self, losses: _Bits) -> None: ...
    def draw(self, m: SupportsIndex, seed: _Key) -> _Integers: ...
    def continued(self, kappa: float, eta: float) -> DenseWeights: ...
    def probabilities(self) -> NDArray[np.float64]: ...

def project(w: NDArray[np.float64], kappa: float) -> NDArray[np.float64]: ...
def project_into(w: NDArray[np.float64], kappa: float, out: NDArray[np.float64]) -> None: ...
def project_in_place(w: NDArray[np.float64], kappa: float) -> None: ...
def check_settings() -> None: ...
def check_bits(bits: ArrayLike) -> None: ...
def randomized_response(bits: ArrayLike, epsilon: float, seed: _Key) -> _Bits: ...
def respond_binary(
    values: _Floats, ends: tuple[float, float], epsilon: float, seed: _Key
) -> _Bits: ...
def respond_noisy(
    values: _Floats,
    ends: tuple[float, float],
    log2_steps: int,
    law: str,
    scale: _Ratio,
    seed: _Key,
) -> _Integers: ...
def respond_window(
    values: _Floats,
    ends: tuple[float, float],
    log2_steps: int,
    length: int,
    epsilon: float,
    seed: _Key,
) -> _Integers: ...
def respond_kary(values: _Integers, k: int, epsilon: float, seed: _Key) -> _Integers: ...
def respond_hadamard(
    values: _Integers, k: int, blocks: int, log2_size: int, epsilon: float, seed: _Key
) -> _Integers: ...
def truth_probability(epsilon: float) -> int: ...
def keep_probability(epsilon: float, kept: int, all: int) -> int: ...
def plan_parity(
    d: SupportsIndex, alpha: float, beta: float, epsilon: float, method: str, neighbors: str
) -> _ParityPlan: ...
def plan_parity_uniform_target(
    d: SupportsIndex, chi2: float, beta: float, epsilon: float, method: str, neighbors: str
) -> _ParityPlan: ...
def promise_parity(
    d: SupportsIndex, n: int, beta: float, epsilon: float, method: str, neighbors: str
) -> tuple[float | None, _ParityPlan]: ...
def check_mechanism(mechanism: _Mechanism) -> None: ...
def composed_delta(terms: _Terms, epsilon: float, accountant: str) -> float: ...
def composed_epsilon(terms: _Terms, delta: float, accountant: str) -> float: ...
def renyi_divergence(mechanism: _Mechanism, order: float) -> float: ...
def renyi_epsilon(order: float, divergence: float, delta: float) -> float: ...
def at_least_errors(
    features: Features, y: ArrayLike, size: int, threads: int | None
) -> _Integers: ...
def conjunction_errors(
    features: Features, y: ArrayLike, size: int, threads: int | None
) -> _Integers: ...
def halfspace_errors(
    X: _Floats, y: _Bits, W: _Floats, b: _Floats, threads: int | None
) -> _Integers: ...
def halfspace_values(X: _Floats, weights: _Floats, bias: float) -> _Bits: ...
def gaussian_delta(mu: float, epsilon: float) -> float: ...
def gaussian_epsilon(mu: float, delta: float) -> float: ...
def gaussian_mu(epsilon: float, delta: float) -> float: ...
def optimal_delta(epsilon: float, delta: float, rounds: int, target: float) -> float: ...
def optimal_epsilon(epsilon: float, delta: float, rounds: int, target: float) -> float: ...
def count_votes(
    votes: _Bits, queries: int, labels: int, threads: int | None
) -> NDArray[np.uint32]: ...
def pluralities(counts: NDArray[np.uint32], labels: int) -> tuple[_Integers, _Integers]: ...

@final
class AnswerTable:
    def __new__(
        cls,
        T: SupportsIndex | None,
        m: SupportsIndex,
        epsilon: float,
        delta: float,
        beta: float,
        words: list[int] | None,
    ) -> AnswerTable: ...
    @property
    def words(self) -> list[int]: ...
    @property
    def epsilon(self) -> float: ...
    def verify(self) -> float: ...
    def answer_counts(
        self,
        counts: NDArray[np.uint32],
        labels: int,
        bottoms: int,
        seed: _Key,
    ) -> tuple[_Integers, int]: ...
    def answer_ones(
        self,
        ones: NDArray[np.uint32],
        members: int,
        bottoms: int | None,
        seed: _Key,
    ) -> tuple[NDArray[np.int8], int]: ...
    def answer_scores(
        self,
        scores: _Floats,
        queries: int,
        bins: int,
        left: tuple[int, int],
        seed: _Key,
    ) -> tuple[_Integers, int, int]: ...

@final
class AboveThreshold:
    def __new__(
        cls, threshold: int, scale: _Ratio, bottoms: int, queries: int
    ) -> AboveThreshold: ...
    @property
    def left(self) -> tuple[int, int]: ...
    def answer(self, values: _Integers, seed: _Key) -> _Bits: ...
