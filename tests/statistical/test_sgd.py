"""Compiled descents with fresh random bits and exact noise against their law by enumeration.

Rows of a few units of the grid and noise of one or two leave few outcomes, and let the gradients of
the second step follow the noise of the first.
"""

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import partial

import lengths
import numpy as np
import pytest
from frequencies import Case, misfits, power
from tiny_sgd import Tiny

from hdp_fast.learners import PrivateSGD
from hdp_fast.reference.noise import rounded_gaussian_mass
from hdp_fast.weights import DenseWeights

RUNS = 40_000 if lengths.STAT else 16_000
UNITS = 2**20
# Units of the grid for each unit of a gradient of one entry that is no longer than 1.
SCALE = UNITS - 1.5
RECORDS = ((3, 1), (-2, 1), (1, -1))
EVEN = np.full(3, 1 / 3)
LOSSES, ETA = (1.0, 0.3, 0.1), 2.0
# At density 2/3 of three records the heaviest has half of all, and the others share the rest.
SHARE = math.exp(-0.7 * ETA) / (math.exp(-0.7 * ETA) + math.exp(-0.9 * ETA))
DENSE = np.array([1, SHARE, 1 - SHARE]) / 2
UNPROJECTED = np.exp(ETA * np.array(LOSSES)) / np.exp(ETA * np.array(LOSSES)).sum()

drawn = partial(Tiny, sampling="poisson")
SETTINGS = {
    "hinge, even draws": (drawn("hinge", 2, 2, Fraction(3, 2), pace=0.11), EVEN),
    "hinge, by weights": (Tiny("hinge", 2, 2, Fraction(3, 2), pace=0.11), DENSE),
    "squared, by weights": (Tiny("squared", 1, 2, Fraction(1), pace=0.13), DENSE),
    "squared, a small ball": (drawn("squared", 3, 2, Fraction(1), pace=0.07, radius=0.3), EVEN),
}
pytestmark = pytest.mark.usefixtures("one_thread", "no_record")


@pytest.fixture
def no_record(monkeypatch):
    """Accounting for a run takes far longer than the run."""
    monkeypatch.setattr(PrivateSGD, "_state_run", lambda *_: None)


def learner_of(tiny):
    return PrivateSGD(
        loss=tiny.loss,
        steps=tiny.sums + 1,
        batch_size=tiny.batch,
        clip_norm=1.0,
        noise_multiplier=float(tiny.sigma / UNITS),
        strong_convexity=1 / (tiny.pace * tiny.batch * SCALE**2),
        radius=min(tiny.radius, 1e9) * SCALE,
    )


def weights_of(losses):
    weights = DenseWeights(len(losses), 2 / 3, ETA)
    weights.update(np.array(losses))
    return weights


def observed(tiny, chances):
    """How often each model is released."""
    learner, weights = learner_of(tiny), weights_of(LOSSES)
    X = learner.prepare(np.array([[k / SCALE] for k, _ in RECORDS]))
    y = np.array([y > 0 for _, y in RECORDS])
    draw = learner.learn if chances is EVEN else lambda X, y: learner.learn_weighted(X, y, weights)
    return Counter(key(draw(X, y).weights[0] / SCALE, tiny) for _ in range(RUNS))


def law(tiny, chances):
    """The law of what observed counts."""
    found = defaultdict(float)
    outcomes = tiny.law(RECORDS, chances).ravel()
    for model, chance in zip(tiny.released().ravel(), outcomes, strict=True):
        found[key(model, tiny)] += chance
    return dict(found)


def key(model, tiny):
    """Floats that differ by their last digits are one outcome."""
    return round(model / tiny.pace * 6, 6) + 0.0


@pytest.mark.parametrize(("tiny", "chances"), SETTINGS.values(), ids=SETTINGS)
def test_released_models_follow_the_enumerated_law(tiny, chances):
    assert not misfits([Case(observed(tiny, chances), law(tiny, chances))])


class WithoutReplacement(Tiny):
    """Draws that are never the same record twice."""

    def _sum(self, records, chances, models):
        gradients, total = self.gradients(records, models), 0.0
        orders = list(itertools.permutations(range(len(records)), self.batch))
        for draws in orders:
            total = total + self.noise(gradients[list(draws)].sum(axis=0)) / len(orders)
        return total


class AtTheFirstModel(Tiny):
    """Second gradients that do not follow the first."""

    def _sum(self, records, chances, models):
        return super()._sum(records, chances, 0 * models)


def as_kind(kind, tiny):
    return kind(**vars(tiny))


BROKEN = {
    "a tenth less noise": lambda tiny, chances: (replace(tiny, sigma=tiny.sigma * 9 / 10), chances),
    "a fixed number of draws": lambda tiny, c: (replace(tiny, sampling="fixed"), c),
    "a draw more": lambda tiny, chances: (replace(tiny, batch=tiny.batch + 1), chances),
    "draws without replacement": lambda tiny, _: (as_kind(WithoutReplacement, tiny), EVEN),
    "even draws": lambda tiny, _: (tiny, EVEN),
    "weights without projection": lambda tiny, _: (tiny, UNPROJECTED),
    "the second step at the first model": lambda tiny, c: (as_kind(AtTheFirstModel, tiny), c),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_so_many_runs_would_show_what_is_broken(broken):
    found = []
    for tiny, chances in SETTINGS.values():
        true, claimed = law(*broken(tiny, chances)), law(tiny, chances)
        common = {model for model, chance in claimed.items() if chance > 1e-5}
        found.append(power([(pooled(true, common), pooled(claimed, common))], RUNS))
    assert max(found) > 0.99


def pooled(chances, common):
    """The rare outcomes as one."""
    kept = {model: chances.get(model, 0.0) for model in common}
    return kept | {"rare": 1 - sum(kept.values())}


LONG = np.array([[3.0, 1.0], [-0.2, 0.4], [-5.0, 2.0]])


def long_gradients(scale):
    """Rounded gradients of the logistic loss at 0 for labels 1: rows are cut at 1, then at 0.3."""
    rows = LONG / np.maximum(1, np.linalg.norm(LONG, axis=1))[:, None]
    found = -rows / 2
    found *= np.minimum(1, 0.3 / np.linalg.norm(found, axis=1))[:, None]
    return np.rint(found * scale).astype(int)


def noise_masses(sigma, most):
    """The law of a rounded normal deviate, up to a magnitude."""
    return {x: float(rounded_gaussian_mass(sigma, x)) for x in range(-most, most + 1)}


def test_noise_of_every_coordinate_is_its_own():
    """Sums of two of three gradients of any length, two coordinates each."""
    sigma, scale = Fraction(5, 4), (UNITS - math.sqrt(2) / 2 - 1) / 0.3
    learner = PrivateSGD(
        loss="logistic", steps=2, batch_size=2, clip_norm=0.3,
        noise_multiplier=float(sigma / UNITS), strong_convexity=1e-3, radius=1e6,
    )  # fmt: skip
    X, y, unit = learner.prepare(LONG), np.ones(3, np.uint8), 1e3 / (2 * 2 * scale)
    found = Counter(
        tuple(np.rint(-learner.learn(X, y).weights / unit).astype(int).tolist())
        for _ in range(RUNS)
    )
    gradients, expected = long_gradients(scale), defaultdict(float)
    masses = noise_masses(sigma, 12)
    for counts, chance in drawn("", 2, 1, sigma).counts(EVEN):
        a, b = (counts @ gradients).tolist()
        for (x, p), (z, q) in itertools.product(masses.items(), repeat=2):
            expected[a + x, b + z] += p * q * chance
    assert not misfits([Case(found, expected)])


@lengths.at_length
def test_softmax_sums_of_three_classes_follow_the_enumerated_law():
    """Two draws of three records of one number: rounded residuals, and each part its own noise."""
    sigma, scale = Fraction(5, 4), UNITS - math.sqrt(3) / 2 - 1
    learner = PrivateSGD(
        loss="softmax", classes=3, steps=2, batch_size=2, clip_norm=1.0,
        noise_multiplier=float(sigma / UNITS), strong_convexity=1e-3, radius=1e6,
    )  # fmt: skip
    rows, labels = np.array([3.0, -2.0, 4.0]), np.array([0, 2, 1])
    own = UNITS * np.finfo(float).eps * (3 / 32 + 4)
    X = learner.prepare(rows[:, None] / scale)
    unit = 1e3 / (2 * 2 * (scale - own))
    found = Counter(
        tuple(np.rint(-learner.learn(X, labels).weights[0] / unit).astype(int).tolist())
        for _ in range(RUNS)
    )
    gradients = np.rint(rows[:, None] * (np.full((3, 3), 1 / 3) - np.eye(3)[labels])).astype(int)
    expected = defaultdict(float)
    masses = noise_masses(sigma, 9)
    for draws in itertools.product(range(3), repeat=2):
        sums = gradients[list(draws)].sum(axis=0).tolist()
        for noise in itertools.product(masses.items(), repeat=3):
            key = tuple(part + x for part, (x, _) in zip(sums, noise, strict=True))
            expected[key] += math.prod(mass for _, mass in noise) / 9
    assert not misfits([Case(found, expected)])


@pytest.mark.parametrize(
    ("sigma", "columns"), [(Fraction(3, 2), 500), (Fraction(100), 7500)], ids=["table", "blocks"]
)
def test_noise_of_many_draws_follows_the_law_of_few(sigma, columns):
    """So many columns and steps that the noise comes from tables."""
    learner = PrivateSGD(
        loss="hinge",
        steps=2,
        clip_norm=1.0,
        noise_multiplier=float(sigma / UNITS),
        strong_convexity=1e-3,
        radius=1e6,
    )
    X, y = learner.prepare(np.zeros((1, columns))), np.ones(1, np.uint8)
    unit = 1e3 / (2 * (UNITS - math.sqrt(columns) / 2 - 1))
    runs = [learner.learn(X, y).weights for _ in range(3_000_000 // columns // 10)]
    found = Counter(np.rint(-np.concatenate(runs) / unit).astype(int).tolist())
    expected = noise_masses(sigma, int(9 * sigma))
    assert not misfits([Case(found, expected)])
