"""Noise of released second moments against its law, with coins of the system."""

import math

import numpy as np
import pytest
from frequencies import Case, misfits, power
from normal_cells import normal_case, normal_law

from hdp_fast import accounting
from hdp_fast.adaptation.baselines.private import release_moment
from hdp_fast.adaptation.domains import open_domain
from hdp_fast.adaptation.privacy import Privacy
from hdp_fast.data.goal import Goal

EPSILON, DELTA, BOUND = 1.0, 1e-5, 2.0
COLUMNS, RELEASES = 300, 8
DEVIATION = BOUND**2 / accounting.gaussian_mu(EPSILON, DELTA)


@pytest.mark.parametrize("numerics", ["exact", "idealized"])
def test_noise_on_and_off_the_diagonal_follows_its_normal_law(numerics):
    row = np.random.default_rng(0).standard_normal((1, COLUMNS))
    row *= 0.999 * BOUND / np.linalg.norm(row)
    domain = open_domain("target", row, None, None)
    noise = np.array([
        release_moment(domain, BOUND, Privacy(Goal(EPSILON, DELTA), numerics)).matrix
        - row.T @ row
        for _ in range(RELEASES)
    ])  # fmt: skip
    deviation, above = DEVIATION, np.triu_indices(COLUMNS, 1)
    off, on = noise[:, *above], noise.diagonal(axis1=1, axis2=2)
    cases = [normal_case(off.ravel(), deviation), normal_case(on.ravel(), math.sqrt(2) * deviation)]
    assert misfits(cases) == []
    # Entries of a row, of a column and of other releases have noise of their own.
    pairs = off[:, :-1] * off[:, 1:], off[:-1] * off[1:], on[:, :-1] * on[:, 1:]
    both = {False: 0.5, True: 0.5}
    signs = [np.bincount((each > 0).ravel(), minlength=2).tolist() for each in pairs]
    for negative, positive in signs:
        assert misfits([Case({False: negative, True: positive}, both)]) == []


def test_a_deviation_that_is_slightly_wrong_would_be_seen():
    draws = RELEASES * COLUMNS * (COLUMNS - 1) // 2
    assert power([(normal_law(1.015, 1.0), normal_law(1.0, 1.0))], draws) > 0.999
    # On the diagonal, where there are few, the deviation off it would be.
    assert (
        power([(normal_law(1.0, math.sqrt(2)), normal_law(1.0, 1.0))], RELEASES * COLUMNS) > 0.999
    )
