"""A charged test whether a public pool is of the population of the records."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from .._support.json_text import JsonText
from .._support.types import Floats, RandomState
from ..exceptions import UtilityWarning
from ..learners import FeatureMap, SufficientStatistics
from ..learners.statistics_checks import chi_square_quantile

# A difference of mean features that does no harm to labels, as a share of the largest norm.
TOLERANCE = 0.05
# Probability of rejecting a pool that is of the same population.
LEVEL = 0.01


@dataclass(frozen=True, kw_only=True)
class PopulationTest(JsonText):
    """The result of a private comparison of the records' mean features with those of a pool.

    Attributes:
        distance: Euclidean distance of the pool's mean features from the noisy mean of the records,
            whose features have norm at most 1.
        most: The largest distance at which the pool counts as one of the same population. Noise and
            chance exceed it with probability at most 0.01 where the population is the same.
        epsilon: Privacy parameter that the comparison cost.
        delta: Privacy parameter that the comparison cost.

    Examples:
        >>> from hdp_fast.labels import PopulationTest
        >>> PopulationTest(distance=0.23, most=0.11, epsilon=0.1, delta=1e-7).passed
        False
    """

    distance: float
    most: float
    epsilon: float
    delta: float

    @property
    def passed(self) -> bool:
        """Whether the pool may be one of the same population."""
        return self.distance <= self.most


def compare_populations(
    features: FeatureMap,
    X: Floats,
    pool: Floats,
    *,
    epsilon: float,
    delta: float,
    random_state: RandomState,
) -> PopulationTest:
    """Release the noisy sum of the records' features, and compare its mean with the pool's.

    It is a release of learners.SufficientStatistics whose target is 1 for every record, and has its
    guarantee: (epsilon, delta)-DP when one record is replaced. The rest is post-processing.
    """
    description = mean_description(features)
    with warnings.catch_warnings():
        # A sum within its noise says nothing against a pool.
        warnings.simplefilter("ignore", UtilityWarning)
        released = description.release(
            X, np.ones(len(X)), epsilon=epsilon, delta=delta, random_state=random_state
        )
    rows = features(pool)
    difference = released.cross_moments[:, 0] / released.n - rows.mean(axis=0)
    most = largest_distance(
        released.n, len(rows), features.columns, released.sums_deviation / released.n
    )
    return PopulationTest(
        distance=float(np.linalg.norm(difference)), most=most, epsilon=epsilon, delta=delta
    )


def mean_description(features: FeatureMap) -> SufficientStatistics:
    """The release of the sum of all records' features, which are those of targets 1."""
    return SufficientStatistics(features, label_bound=1.0)


def largest_distance(n: int, points: int, columns: int, deviation: float) -> float:
    """Bound the distance of the noisy mean of n rows from that of the pool, for one population.

    The difference of two means of rows of norm at most 1 has a norm of root mean square at most
    sqrt(1/n + 1/points). A row moves the norm by at most 2 / n or 2 / points, so that McDiarmid's
    inequality bounds what it exceeds its mean by. The noise, of this deviation in each of the
    columns, has a norm below its quantile. Each of the two fails with half the level.
    """
    scale = math.sqrt(1 / n + 1 / points)
    sampling = scale * (1 + math.sqrt(2 * math.log(2 / LEVEL)))
    noise = deviation * math.sqrt(chi_square_quantile(columns, 1 - LEVEL / 2))
    return TOLERANCE + sampling + noise
