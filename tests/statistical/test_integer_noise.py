"""Integer noise, selection and weighted draws against their laws, with coins of the system."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from frequencies import Case, misfits, power
from scipy.special import log_ndtr, logsumexp

from hdp_fast import noise
from hdp_fast.reference import noise as reference

COUNT = 1 << 22
SCALES = [0.1, 0.7, 2.0, 23.9, 24.1, 63.5, 64.5, 1e3, 1e4, 1e6]
SAMPLERS = {
    "geometric": noise.geometric,
    "laplace": noise.discrete_laplace,
    "gaussian": noise.discrete_gaussian,
    "rounded": noise.rounded_gaussian,
}
# Beyond this a sum over integers is the integral from half an integer on, to 1e-10 of itself.
SMOOTH = 1e4


def tail(name, scale, x):
    """log Pr[X >= x] for an integer x, and for x <= 0 of a symmetric law log Pr[X <= x]."""
    if name == "rounded":
        return float(log_ndtr(-(abs(x) - 0.5) / scale))
    if name == "gaussian":
        return gaussian_tail(scale, abs(x))
    below_zero = 0 if name == "geometric" else -math.log1p(math.exp(-1 / scale))
    return below_zero - abs(x) / scale


def gaussian_tail(sigma, x):
    if sigma >= SMOOTH:
        return float(log_ndtr(-(x - 0.5) / sigma))
    points = np.arange(0, math.ceil(50 * sigma) + 50)
    logs = -0.5 * (points / sigma) ** 2
    whole = logsumexp(np.concatenate([logs, logs[1:]]))
    return float(logsumexp(logs[points >= x]) - whole) if x <= points[-1] else -math.inf


def edges(name, scale):
    """Starts of some hundred cells: integers near zero, then ever farther into the tail."""
    near = set(range(1, 40))
    spread = {math.ceil(scale * k / 8) for k in range(1, 400)}
    positive = sorted(x for x in near | spread if tail(name, scale, x) > math.log(1e-9))
    return positive if name == "geometric" else [-x for x in reversed(positive)] + [0, *positive]


def cell_law(name, scale, starts):
    """Probabilities of (-inf, starts[0]), [starts[0], starts[1]), ..."""

    def below(x):
        """Pr[X < x]."""
        return math.exp(tail(name, scale, x - 1)) if x <= 0 else 1 - above(x)

    def above(x):
        """Pr[X >= x]."""
        return math.exp(tail(name, scale, x)) if x > 0 else 1 - below(x)

    def between(a, b):
        # Where both ends lie in one tail, the difference of small numbers.
        return above(a) - above(b) if a > 0 else below(b) - below(a)

    ends = [below(starts[0]), *itertools.starmap(between, itertools.pairwise(starts))]
    return dict(enumerate([*ends, above(starts[-1])]))


def cells_of(draws, starts):
    found = np.bincount(np.searchsorted(starts, draws, side="right"), minlength=len(starts) + 1)
    return dict(enumerate(found.tolist()))


def coarse(starts):
    """Cells so few that a small error of the scale is not lost among them."""
    return starts[:: max(1, len(starts) // 10)]


def parts(sampler, scale, size):
    """As many draws by the construction that serves arrays of that size."""
    return np.concatenate([sampler(scale, size) for _ in range(400_000 // size)])


@pytest.mark.parametrize("cells", [list, coarse])
@pytest.mark.parametrize("name", SAMPLERS)
def test_noise_follows_its_law_into_the_tails(name, cells):
    cases = []
    for scale in SCALES:
        starts = cells(edges(name, scale))
        law = cell_law(name, scale, starts)
        assert abs(sum(law.values()) - 1) < 1e-12
        few, many = (parts(SAMPLERS[name], scale, size) for size in (1_000, 8_000))
        for draws in SAMPLERS[name](scale, COUNT), few, many:
            cases.append(Case(cells_of(draws, starts), law))
    assert misfits(cases) == []


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_scale_that_is_slightly_wrong_would_be_seen(name):
    pairs = []
    for scale in (2.0, 1e4):
        starts = coarse(edges(name, scale))
        pairs.append(tuple(cell_law(name, s, starts) for s in (scale * 1.006, scale)))
    assert power(pairs, COUNT) > 0.999


@pytest.mark.parametrize("scale", [30.0, 1e4, 1e6])
def test_low_digits_and_signs_of_laplace_noise(scale):
    draws = noise.discrete_laplace(scale, COUNT)
    ratio = math.exp(-1 / scale)
    for base in (2, 16, 256, 1024):
        # Sum over all x of one residue class: two geometric series.
        mass = [
            (ratio**v + (ratio ** (base - v) if v else ratio**base)) / (1 - ratio**base)
            for v in range(base)
        ]
        law = {v: m * (1 - ratio) / (1 + ratio) for v, m in enumerate(mass)}
        counts = np.bincount(draws % base, minlength=base)
        assert misfits([Case(dict(enumerate(counts.tolist())), law)]) == []


@pytest.mark.parametrize("sampler", [noise.discrete_gaussian, noise.rounded_gaussian])
@pytest.mark.parametrize("sigma", [50.0, 200.0, 1e4, 2.0**40])
def test_low_digits_of_gaussian_noise_are_uniform(sampler, sigma):
    # For a base of at most sigma / 4 the residues are uniform to exp(-300).
    draws = sampler(sigma, COUNT)
    for base in (2, 8):
        counts = np.bincount(draws % base, minlength=base)
        law = dict.fromkeys(range(base), 1 / base)
        assert misfits([Case(dict(enumerate(counts.tolist())), law)]) == []


@pytest.mark.parametrize("distance", [1, 2, 1 << 14])
def test_draws_at_a_distance_are_independent(distance):
    cases = []
    for name, scale in (
        ("laplace", 2.0),
        ("laplace", 1e4),
        ("gaussian", 3.0),
        ("gaussian", 1e3),
        ("rounded", 3.0),
        ("rounded", 1e3),
    ):
        negative = SAMPLERS[name](scale, COUNT) < 0
        pairs = negative[: COUNT // (2 * distance) * 2 * distance].reshape(-1, 2, distance)
        p = math.exp(tail(name, scale, -1))
        law = {2 * a + b: (p if a else 1 - p) * (p if b else 1 - p) for a in (0, 1) for b in (0, 1)}
        codes = (2 * pairs[:, 0] + pairs[:, 1]).ravel()
        cases.append(Case(dict(enumerate(np.bincount(codes, minlength=4).tolist())), law))
    assert misfits(cases) == []


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_no_thread_draws_differently(threads, monkeypatch):
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
    cases = []
    for name, scale in (("laplace", 2.0), ("gaussian", 100.0), ("rounded", 100.0)):
        starts = edges(name, scale)
        law = cell_law(name, scale, starts)
        parts = SAMPLERS[name](scale, COUNT).reshape(4, -1)
        cases += [Case(cells_of(part, starts), law) for part in parts]
    assert misfits(cases) == []


def test_coins_of_an_exponential():
    cases = []
    for gamma in (0.0, 1e-6, 0.3, 1.0, 7.5):
        ones = int(noise.bernoulli_exp(gamma, COUNT).sum())
        cases.append(
            Case({1: ones, 0: COUNT - ones}, {1: math.exp(-gamma), 0: -math.expm1(-gamma)})
        )
    assert misfits(cases) == []


def test_uniform_integers_are_uniform():
    cases = []
    for bound in (1, 3, 6, 1000, 3 << 60, 2**63 - 1):
        draws = noise.uniform_integers(bound, COUNT)
        assert draws.min() >= 0
        assert draws.max() < bound
        parts = min(bound, 600)
        # Cell i holds the integers x with floor(x parts / bound) = i.
        starts = [-(-i * bound // parts) for i in range(1, parts)]
        law = {
            i: (end - start) / bound
            for i, (start, end) in enumerate(itertools.pairwise([0, *starts, bound]))
        }
        cases.append(Case(cells_of(draws, np.array(starts, np.int64)), law))
    assert misfits(cases) == []


def test_weighted_draws_come_at_their_weights():
    generator, cases = np.random.default_rng(), []
    for weights in ([1], [0, 3, 0, 1], [2**62, 2**60, 1], generator.integers(0, 9, 1000).tolist()):
        counts = np.bincount(noise.weighted_draws(weights, COUNT), minlength=len(weights))
        whole = sum(weights)
        cases.append(
            Case(dict(enumerate(counts.tolist())), {i: w / whole for i, w in enumerate(weights)})
        )
    assert misfits(cases) == []


def outcomes(law):
    return {i: float(p) for i, p in enumerate(law)}


SELECTIONS = {
    "permute_and_flip": (noise.permute_and_flip, reference.permute_and_flip_law),
    "exponential_mechanism": (noise.exponential_mechanism, reference.exponential_mechanism_law),
}


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", SELECTIONS)
def test_candidates_are_chosen_by_their_law(name):
    select, law = SELECTIONS[name]
    cases = []
    for scores, epsilon in (([0, 0], 1), ([3, -1, 3, 2, 0], 0.8), ([10, 9, 0, 4], 2), ([5] * 6, 3)):
        counts = Counter(select(scores, epsilon=epsilon) for _ in range(30_000))
        cases.append(Case(counts, outcomes(law(scores, Fraction(epsilon) / 2))))
    assert misfits(cases) == []


@pytest.mark.usefixtures("one_thread")
def test_one_selection_is_not_taken_for_the_other():
    scores, rate = [3, -1, 3, 2, 0], Fraction(2, 5)
    laws = tuple(outcomes(law(scores, rate)) for _, law in SELECTIONS.values())
    assert power([laws], 30_000) > 0.999
