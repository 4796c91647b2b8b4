"""An instance of each class with rules of fields, by the name of the class."""

import numpy as np

from hdp_fast import (
    adaptation,
    collection,
    labels,
    learners,
    local,
    stability,
    statistics,
    transfer,
)
from hdp_fast.advice.sizes import Sizes
from hdp_fast.data import Label, Number, Schema
from hdp_fast.learners.noisy_steps import NoisySteps
from hdp_fast.transfer.calibration import _Calibration

_SCHEMA = Schema(Label("rich", above=50), {"age": Number(0, 100)})
EXAMPLES = {
    "BinaryResponse": lambda: local.BinaryResponse(1.0, bounds=(0, 1)),
    "GaussianRandomizer": lambda: local.GaussianRandomizer(1.0, 1e-6, bounds=(0, 1)),
    "KaryResponse": lambda: local.KaryResponse(3, 1.0),
    "LaplaceRandomizer": lambda: local.LaplaceRandomizer(1.0, bounds=(0, 1)),
    "Piecewise": lambda: local.Piecewise(1.0, bounds=(0, 1)),
    "ProjectiveGeometryResponse": lambda: local.ProjectiveGeometryResponse(3, 1.0),
    "Stage": lambda: local.Stage(
        [local.Query.label().hypothesis], [1], key=bytes(16), first=1, count=9
    ),
    "Question": lambda: collection.Question("travel", local.KaryResponse(3, 1.0), ("a", "b", "c")),
    "Study": lambda: collection.Study(
        path="study",
        id="0123456789abcdef",
        asker="City of Example",
        epsilon=1.0,
        people=3,
        url="https://example.org",
        public_key="0" * 64,
        created="2026-01-31",
    ),
    "SubsetSelection": lambda: local.SubsetSelection(3, 1.0),
    "_Calibration": lambda: _Calibration(
        lambda X: X[:, 0],
        local.Agents(np.zeros((90, 1)), np.zeros(90, int), epsilon=1.0),
        "logistic",
        None,
        0.4,
        (1.0, 0.3),
        (0.0, 2.0),
        0.01,
        0.05,
        None,
        None,
    ),
    "HybridRun": lambda: transfer.HybridRun(
        Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)}),
        epsilon=1.0,
        delta=1e-6,
        screen=0.2,
    ),
    "Sizes": lambda: Sizes(
        n=5_000,
        d=9,
        epsilon=1.0,
        agents=700,
        pool=80,
        classes=2,
        delta=1e-6,
        agents_epsilon=1.0,
        learner="linear",
        size=None,
        target="same",
        source="private",
        base_rate=None,
        best_error=None,
    ),
    "CenteredLinear": lambda: learners.CenteredLinear(_SCHEMA, epsilon=1.0, delta=1e-6),
    "PrivateAdditive": lambda: learners.PrivateAdditive(_SCHEMA, epsilon=1.0, delta=1e-6),
    "ScaledFeatures": lambda: adaptation.ScaledFeatures(_SCHEMA),
    "DoublingLearner": lambda: learners.DoublingLearner(
        [learners.Stumps(3)], alpha=0.2, beta=0.1, epsilon=1.0
    ),
    "ExponentialLearner": lambda: learners.ExponentialLearner(learners.Stumps(3), epsilon=1.0),
    "LinearSeparator": learners.LinearSeparator,
    "NoisySteps": lambda: NoisySteps(steps=3, noise_multiplier=1.0),
    "PrivateSGD": lambda: learners.PrivateSGD(loss="hinge", steps=3, noise_multiplier=1.0),
    "Job": lambda: statistics.Job("mean", low=0, high=1),
    "SufficientStatistics": lambda: learners.SufficientStatistics(
        learners.FeatureMap.identity(2), classes=[0, 1]
    ),
    "GaussianVote": lambda: stability.GaussianVote.design(
        9, labels=3, epsilon=1.0, delta=1e-6, beta=0.05
    ),
}

ROWS = np.linspace(-0.5, 0.5, 40).reshape(20, 2)
DOMAINS = ROWS, ROWS[:, 0], ROWS[:10], ROWS[:10, 1]
BITS = ROWS, (ROWS[:, 0] > 0).astype(int), ROWS[:10], (ROWS[:10, 1] > 0).astype(int)
PRICE = {"epsilon": 1.0, "delta": 1e-3}


def fit_domains(estimator):
    """A fit to a few records of two domains."""
    return estimator.fit(*DOMAINS)


def fit_bits(estimator):
    """The same where labels are 0 and 1."""
    return estimator.fit(*BITS)


def learn_threshold(X, y):
    """A learner of labels."""
    return lambda Q: Q[:, 0] > X[:, 0].mean()


def make_labeler():
    """Two voters."""
    goal = {**PRICE, "queries": 2, "max_unstable": 2, "members": 2}
    return labels.PrivateLabeler(learn_threshold, classes=[0, 1], **goal)


def fit_pool(estimator):
    """A fit to few records, and a public pool."""
    return estimator.fit(BITS[0], BITS[1], BITS[2][:2])


# How to make one whose fields are checked by its fit, and a fit that takes no time.
FITS = {
    "ConvexAdaptation": (lambda: adaptation.ConvexAdaptation(**PRICE, steps=2), fit_domains),
    "NonConvexAdaptation": (lambda: adaptation.NonConvexAdaptation(**PRICE, steps=2), fit_bits),
    "MomentAdaptation": (lambda: adaptation.MomentAdaptation(**PRICE), fit_domains),
    "KernelMeanMatching": (lambda: adaptation.KernelMeanMatching(steps=2), fit_domains),
    "DiscrepancyMinimization": (lambda: adaptation.DiscrepancyMinimization(steps=2), fit_domains),
    "TargetSGD": (lambda: adaptation.TargetSGD(**PRICE, steps=2, batch_size=1), fit_domains),
    "PrivateDiscrepancyMinimization": (
        lambda: adaptation.PrivateDiscrepancyMinimization(**PRICE, steps=2),
        fit_domains,
    ),
    "PrivateLearner": (lambda: labels.PrivateLearner(make_labeler(), learn_threshold), fit_pool),
    "StatisticsLabeler": (lambda: labels.StatisticsLabeler(**PRICE, classes=[0, 1]), fit_pool),
}
