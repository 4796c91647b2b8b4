"""What is logged of long runs: their stages and public sizes, and nothing of anybody's values."""

import logging
import math

import numpy as np
import pytest

from hdp_fast import adaptation, labels, local, transfer
from hdp_fast.learners import Conjunctions, ExponentialLearner, PrivateSGD


@pytest.fixture
def heard(caplog):
    """What the package logs at any level."""
    caplog.set_level(logging.DEBUG, logger="hdp_fast")

    def messages():
        assert {record.levelname for record in caplog.records} == {"INFO"}
        assert {record.name for record in caplog.records} == {"hdp_fast"}
        texts = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return texts

    return messages


def records(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3), dtype=np.uint8)
    return X, X[:, int(rng.integers(3))]


class Constant:
    """A learner of nothing."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X), int)


def label(seed):
    X, y = records(seed, 300)
    labeler = labels.PrivateLabeler(
        Constant(), epsilon=1.0, delta=1e-6, queries=20, max_unstable=5, classes=[0, 1], members=100
    )
    labeler.fit(X, y, random_state=1).label(np.zeros((5, 3)))


def adapt(seed):
    (X, y), (Z, z) = records(seed, 200), records(seed + 1, 100)
    model = adaptation.NonConvexAdaptation(epsilon=1.0, norm_bound=2.0, steps=3)
    model.fit(X / 2, y, Z / 2, z, random_state=1)


def reweigh(seed):
    (X, y), (Z, z) = records(1, 400), records(1, 4000)
    learner = ExponentialLearner(Conjunctions(3, 1), epsilon=1.0)
    run = transfer.SubsampleTestReweigh(
        learner,
        epsilon=math.inf,
        draws=200,
        alpha=0.1,
        kappa=1.0,
        eta=1.0,
        rounds=2,
        schedule="final",
    )
    run.fit(X, y, local.Agents(Z, z, epsilon=4.0), random_state=1)


STAGES = {
    label: ["labels: 100 members learn", "labels: 5 queries to 100 members"],
    adapt: [
        "adaptation.NonConvexAdaptation: 200 source and 100 target records",
        "adaptation.NonConvexAdaptation: fitted",
    ],
    reweigh: ["transfer: 2 rounds planned", "transfer: 2 rounds run"],
}


@pytest.mark.parametrize("run", STAGES)
def test_stages_are_logged_and_depend_on_no_value(heard, run):
    for seed in (1, 2):
        run(seed)
        assert heard() == STAGES[run]


def test_a_search_for_noise_is_logged(heard):
    sgd = PrivateSGD(loss="logistic", steps=3, epsilon=1.0, norm_bound=2.0)
    X, y = records(1, 100)
    sgd.learn(X / 2, y, random_state=1)
    begin, end = heard()
    assert begin == "learners.PrivateSGD: noise for 3 steps on 100 records"
    multiplier = sgd.calibrate(epsilon=1.0, n=100).noise_multiplier
    assert end == f"learners.PrivateSGD: noise multiplier {multiplier:g}"
