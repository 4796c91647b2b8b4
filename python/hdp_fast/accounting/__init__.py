"""Privacy accounting: what mechanisms reveal together, and how much noise a target needs.

A mechanism is described by its guarantee for one record, under an explicit neighbor relation; no
data are involved. Two accountants compose mechanisms: "pld" composes the distribution of the
privacy loss itself, "rdp" bounds its moments. Every epsilon and delta is rounded up, every noise
parameter to the safe side. Rare large losses are dropped and their probability is added to delta,
which grows by less than 1e-6 of itself. Below a delta of 1e-40 both accountants use moments.
"""

from .._support.lazy import list_only
from .calibration import largest_local_epsilon, largest_rate, largest_rounds, smallest_noise
from .composition import basic_composition, delta, epsilon, optimal_composition
from .conversion import (
    attack_advantage,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    pure_epsilon,
    renyi_divergence,
    renyi_epsilon,
    replace_one,
    zcdp_epsilon,
    zcdp_rho,
)
from .mechanisms import (
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteLaplace,
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    Neighbors,
    Pure,
    SampledSum,
    Shuffled,
    Subsampled,
)

__all__ = [
    "ZCDP",
    "Approximate",
    "BoundedRange",
    "DiscreteLaplace",
    "GaussianMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "Neighbors",
    "Pure",
    "SampledSum",
    "Shuffled",
    "Subsampled",
    "attack_advantage",
    "basic_composition",
    "delta",
    "epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "largest_local_epsilon",
    "largest_rate",
    "largest_rounds",
    "optimal_composition",
    "pure_epsilon",
    "renyi_divergence",
    "renyi_epsilon",
    "replace_one",
    "smallest_noise",
    "zcdp_epsilon",
    "zcdp_rho",
]

__dir__ = list_only(__all__)
