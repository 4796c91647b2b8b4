"""Softmax gradients of a few records, every data set and every neighbor, by the law of a sum.

In units of the grid: a record is one number and a label of three; its gradient has three entries,
which are clipped as one vector and rounded. Noise is cut where 1e-9 of it is left.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from hdp_fast import accounting
from hdp_fast.learners import PrivateSGD
from hdp_fast.reference.linear import softmax_residuals

EPSILONS = (0.0, 0.2, 0.5, 1.0, 1.5, 2.5)
ERROR = 1e-7
CLASSES, LONGEST, NOISE = 3, 3, 1
RECORDS = tuple(itertools.product((-1, 0, 1), range(CLASSES)))
MODELS = {"zero": (0.0, 0.0, 0.0), "tilted": (0.4, -0.2, 0.1), "sure": (30.0, 0.0, -30.0)}


def gradient(record, model, clip):
    """Integers whose norm is at most LONGEST; 0 where rounding made them longer."""
    x, label = 10.0 * record[0], record[1]
    residual = softmax_residuals(x / 10 * np.array([model]), np.array([float(label)]))[0]
    return np.rint(clip(x * residual))


def clip_whole(vector):
    """As the learner does: all classes' parts together."""
    length = np.linalg.norm(vector)
    rounded = np.rint(vector * min(1, LONGEST / max(length, 1e-9)))
    return rounded if np.linalg.norm(rounded) <= LONGEST else 0 * vector


def clip_parts(vector):
    """A broken variant: the part of each class by itself."""
    return np.clip(vector, -LONGEST, LONGEST)


@functools.cache
def noise():
    sigma = NOISE * LONGEST
    reach = 6 * sigma + 2 * LONGEST
    values = np.arange(-reach, reach + 1)
    far = np.arange(-20 * sigma, 20 * sigma + 1)
    scale = np.exp(-(far**2) / (2 * sigma**2)).sum()
    return lambda center: np.exp(-((values - center) ** 2) / (2 * sigma**2)) / scale


def law(records, model, clip):
    """Chances of every noisy sum of one draw of n."""
    total = 0.0
    for record in records:
        parts = [noise()(part) for part in gradient(record, model, clip)]
        total = total + np.einsum("i,j,k->ijk", *parts) / len(records)
    return total


@functools.cache
def divergences(n, name, clip):
    model = MODELS[name]
    laws = {
        data: law(data, model, clip) for data in itertools.combinations_with_replacement(RECORDS, n)
    }
    found = np.zeros(len(EPSILONS))
    for others in itertools.combinations_with_replacement(RECORDS, n - 1):
        for pair in itertools.permutations(RECORDS, 2):
            some, other = (laws[tuple(sorted((*others, record)))] for record in pair)
            each = [np.maximum(some - math.exp(e) * other, 0).sum() for e in EPSILONS]
            found = np.maximum(found, each)
    return found


def promises(n, noise_multiplier=NOISE):
    learner = PrivateSGD(
        loss="softmax", classes=CLASSES, steps=1, noise_multiplier=float(noise_multiplier)
    )
    terms = learner.composition(1 / n)
    return np.array([accounting.delta(terms, epsilon) for epsilon in EPSILONS])


@pytest.mark.parametrize("name", MODELS)
def test_no_neighbors_tell_more_than_is_promised(name):
    found, promised = divergences(1, name, clip_whole), promises(1)
    assert (found <= promised + ERROR).all(), found / promised
    assert (found / promised).max() > 0.6, "the test should be able to fail"


def test_no_neighbors_of_two_records_tell_more():
    found, promised = divergences(2, "zero", clip_whole), promises(2)
    assert (found <= promised + ERROR).all(), found / promised


def test_half_the_sensitivity_is_too_little():
    assert (divergences(1, "zero", clip_whole) > 1.1 * promises(1, 2 * NOISE)).any()


def test_clipping_each_class_by_itself_is_too_little():
    assert (divergences(1, "zero", clip_parts) > 1.1 * promises(1)).any()
