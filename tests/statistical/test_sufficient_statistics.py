"""Noise of released statistics against the law that they state, with coins of the system."""

import math

import numpy as np
import pytest
from frequencies import Case, misfits, power
from normal_cells import normal_case, normal_law

from hdp_fast.learners import FeatureMap, SufficientStatistics

COLUMNS, RELEASES = 150, 12
PRICE = {"epsilon": 1.0, "delta": 1e-5}
X = np.zeros((500, COLUMNS))


@pytest.fixture(scope="module", params=["classes", "targets"])
def noise(request):
    """Noise of many releases of records without features, in units of the stated deviations."""
    goal = {"label_bound": 2.0} if request.param == "targets" else {"classes": [0, 1]}
    description = SufficientStatistics(
        FeatureMap.identity(COLUMNS), second_moments=True, neighbors="add_remove", **goal
    )
    kinds = "sums", "diagonal", "above", "count"
    drawn = {kind: [] for kind in kinds}
    above = np.triu_indices(COLUMNS, 1)
    for _ in range(RELEASES):
        released = description.release(X, np.zeros(len(X)), **PRICE)
        width = 1 if released.classes is None else 2
        scale = 2.0**released.bits * (width if width > 1 else 2.0**released.bits)
        moments = released.second_moments / released.moments_deviation
        drawn["sums"].append(released.sums / scale / released.sums_deviation)
        drawn["diagonal"].append(np.diag(moments))
        drawn["above"].append(moments[above] * math.sqrt(2))
        drawn["count"].append((released.n - len(X)) / released.count_deviation)
    return {kind: np.array(values).reshape(RELEASES, -1) for kind, values in drawn.items()}


def test_noise_follows_the_law_that_is_stated(noise):
    cases = [normal_case(noise[kind].ravel(), 1.0) for kind in ("sums", "diagonal", "above")]
    assert misfits(cases) == []
    assert np.abs(noise["count"]).max() < 7


def test_every_number_and_every_release_has_noise_of_its_own(noise):
    both = {False: 0.5, True: 0.5}
    for kind in ("sums", "above"):
        values = noise[kind]
        for each in (values[:, :-1] * values[:, 1:], values[:-1] * values[1:]):
            negative, positive = np.bincount((each > 0).ravel(), minlength=2).tolist()
            assert misfits([Case({False: negative, True: positive}, both)]) == []


def test_a_deviation_that_is_slightly_wrong_would_be_seen():
    draws = RELEASES * COLUMNS * (COLUMNS - 1) // 2
    assert power([(normal_law(1.03, 1.0), normal_law(1.0, 1.0))], draws) > 0.999
    assert power([(normal_law(1.3, 1.0), normal_law(1.0, 1.0))], RELEASES * COLUMNS) > 0.999
