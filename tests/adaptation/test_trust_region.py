"""Tests of the private module adaptation.discrepancies.exact: known optima."""

import numpy as np
import pytest

from hdp_fast.adaptation.discrepancies.exact import _run_dca, maximize_magnitude

METHODS = ["exact", "dca"]


def known(rng, d, hard, equal):
    """A quadratic of known least value: (P + shift) z = q, and P + shift positive semidefinite."""
    values = np.sort(rng.normal(size=d))
    values[:equal] = values[0]
    values -= values[0] + rng.uniform(0.1, 2)
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    shift = -values[0] + (0 if hard else rng.uniform(1e-6, 1))
    z = rng.normal(size=d)
    z /= np.linalg.norm(z)
    linear = (values + shift) * z
    P, q = (basis * values) @ basis.T, basis @ linear
    least = float(-(values @ z**2) - 2 * shift)
    constant = -10.0 - np.abs(values).max() - np.abs(linear).sum()
    return np.block([[(P + P.T) / 2, q[:, None]], [q, constant]]), -(least + constant)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 17, 64])
def test_trust_region_problems_of_known_optimum(d, hard, method):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        H, expected = known(rng, d, hard, equal=min(d, 1 + seed % 3))
        found = maximize_magnitude(H, method)
        allowed = max(found.gap, 1e-11 * expected)
        assert found.sign == -1
        assert abs(found.value - expected) <= allowed
        assert found.gap <= (1e-9 if method == "exact" else 1e-6) * expected
        assert np.linalg.norm(found.point) <= 1


@pytest.mark.parametrize("error", [1e-9, 1e-5, 1e-2])
def test_the_gap_holds_whatever_the_eigenvectors_are(error, monkeypatch):
    rng, decompose = np.random.default_rng(0), np.linalg.eigh

    def careless(P):
        values, vectors = decompose(P)
        return values + error * rng.normal(size=len(P)), vectors + error * rng.normal(size=P.shape)

    monkeypatch.setattr(np.linalg, "eigh", careless)
    for hard in (False, True):
        H, expected = known(rng, 6, hard, equal=1)
        found = maximize_magnitude(H, "exact")
        assert abs(found.value - expected) <= found.gap
        assert error < found.gap < 1e4 * error


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1.0, 1e100])
def test_the_solver_keeps_its_accuracy_at_any_scale(scale):
    H, expected = known(np.random.default_rng(3), 9, hard=True, equal=1)
    found = maximize_magnitude(H * scale, "exact")
    assert abs(found.value - expected * scale) <= found.gap + 1e-13 * expected * scale
    assert found.gap <= 1e-11 * expected * scale


def test_dca_from_elsewhere_may_stop_at_a_local_optimum():
    """Section 4 of the paper has it that DCA always finds the global one."""
    P, q = np.array([[-1.0]]), np.array([0.1])
    ends = {start: float(_run_dca(P, q, np.array([start]))[0]) for start in (-0.5, 0.5)}
    assert ends == pytest.approx({-0.5: -1.0, 0.5: 1.0})
    values = {z: -(z**2) - 0.2 * z for z in (-1.0, 1.0)}
    assert values[1.0] < values[-1.0]
