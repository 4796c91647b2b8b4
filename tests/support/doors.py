"""Every call that takes private records, labels, votes or values: what the tests of doors share."""

import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from calls import CALLS

from hdp_fast import adaptation, labels, learners, local, parity, statistics, transfer, weights
from hdp_fast.local import Agents

BITS = np.random.default_rng(3).integers(2, size=(40, 4), dtype=np.uint8)
LABELS = BITS[:, 0]
NUMBERS = BITS / 4 - 0.25
SIGNS = 2.0 * LABELS - 1
STUMPS = learners.Stumps(4)


class Door(NamedTuple):
    """A call: what is called, with which arguments, and which of these are private."""

    call: Any
    arguments: dict[str, Any]
    private: tuple[str, ...]


class Threshold:
    """A learner of ensembles that needs nothing."""

    def fit(self, X, y):
        """Nothing to learn."""
        return self

    def predict(self, X):
        """Whether the first feature is above 0."""
        return (np.asarray(X)[:, 0] > 0).astype(int)


def fresh(make, method):
    """Calls a method of a new object: some can be used once."""
    return lambda **arguments: getattr(make(), method)(**arguments)


def labeler():
    """One that answers a few queries."""
    goal = {"epsilon": 1, "delta": 1e-3, "queries": 3, "max_unstable": 1, "members": 5}
    return labels.PrivateLabeler(Threshold(), classes=[0, 1], **goal)


def statistics_labeler():
    """One that compares the populations first."""
    goal = {"epsilon": 1, "delta": 1e-3, "population": "tested"}
    return labels.StatisticsLabeler(classes=[0, 1], **goal)


def soft():
    """Likewise, with scores."""
    goal = {"epsilon": 1, "delta": 1e-3, "queries": 3, "max_unstable": 1, "members": 5}
    return labels.SoftLabeler(Threshold(), **goal)


def str_run():
    """A short run of Subsample-Test-Reweigh; without privacy, whose plan takes seconds."""
    learner = learners.ExponentialLearner(STUMPS, epsilon=1.0)
    goal = {"alpha": 0.4, "beta": 0.4, "kappa": 1, "rounds": 1, "draws": 9, "output": "majority"}
    return transfer.SubsampleTestReweigh(learner, epsilon=math.inf, **goal)


def sgd(**changes):
    """A learner of a few steps."""
    return learners.PrivateSGD(loss="logistic", steps=2, noise_multiplier=1.0, **changes)


HALFSPACE = {"kind": "halfspace", "weights": [1.0] * 4, "bias": 0.0}
QUERY = (
    local.Query.label()
    & local.Query.value(0, -1, 1)
    & local.Query.between(1, low=-1)
    & local.Query.score_above(HALFSPACE, -9)
    & local.Query.worse(HALFSPACE, {"kind": "linear", "weights": [1.0] * 4, "bias": 0.0})
)
RECORDS = {"X": BITS, "y": LABELS}
REALS = {"X": NUMBERS, "y": LABELS}
DOMAINS = {"X_source": NUMBERS, "y_source": SIGNS, "X_target": NUMBERS, "y_target": SIGNS}
CLASSES = DOMAINS | {"y_source": LABELS, "y_target": LABELS}
XY = ("X", "y")
PRIVACY = {"epsilon": 1.0, "delta": 1e-3}
STEPS = {**PRIVACY, "steps": 2}
ADAPTING = {
    "ConvexAdaptation": lambda: adaptation.ConvexAdaptation(**STEPS),
    "NonConvexAdaptation": lambda: adaptation.NonConvexAdaptation(**STEPS),
    "MomentAdaptation": lambda: adaptation.MomentAdaptation(epsilon=1.0, directions=2),
    "TargetSGD": lambda: adaptation.TargetSGD(**STEPS, batch_size=1, numerics="idealized"),
    "PrivateDiscrepancyMinimization": lambda: adaptation.PrivateDiscrepancyMinimization(**STEPS),
    "DiscrepancyMinimization": lambda: adaptation.DiscrepancyMinimization(steps=2),
    "KernelMeanMatching": lambda: adaptation.KernelMeanMatching(steps=2),
}
RANDOMIZERS = {
    "BinaryResponse": local.BinaryResponse(1.0, (0, 1)),
    "Laplace": local.LaplaceRandomizer(1.0, (0, 1)),
    "Piecewise": local.Piecewise(1.0, (0, 1)),
    "Gaussian": local.GaussianRandomizer(1.0, 1e-3, (0, 1)),
    "KaryResponse": local.KaryResponse(4, 1.0),
    "SubsetSelection": local.SubsetSelection(8, 1.0),
    "ProjectiveGeometryResponse": local.ProjectiveGeometryResponse(4, 1.0),
}

# Of the calls with bad arguments, those that take private data, and where.
SHARED = {
    **dict.fromkeys(("rank", "dot", "solve"), ("A", "x", "b")),
    **dict.fromkeys(("from_dense", "from_packed", "Features"), ("X", "rows")),
    **dict.fromkeys(("errors", "errors of halfspaces", "predict", "ExponentialLearner.learn"), XY),
    **dict.fromkeys(("learn", "Agents"), XY),
    **dict.fromkeys(("permute_and_flip", "exponential_mechanism"), ("scores",)),
    "transfer": XY,
    "weighted_draws": ("weights",),
    "randomized_response": ("bits",),
    "distance": ("counts",),
    "count_votes": ("votes",),
    "TableSession.answer": ("counts",),
    "TableSession.answer_ones": ("ones",),
    "TableSession.answer_scores": ("scores",),
    "GaussianSession.answer": ("counts",),
    "AboveThreshold.answer": ("values",),
    "StableRelease.release": ("counts",),
    "lower_bound": ("data", "neighbor"),
}

DOORS = {
    **{
        name: Door(*CALLS[name], tuple(each for each in private if each in CALLS[name][1]))
        for name, private in SHARED.items()
    },
    "ExponentialLearner.learn_indices": Door(
        learners.ExponentialLearner(STUMPS, epsilon=1.0).learn_indices,
        {"X": learners.Features(BITS), "y": LABELS, "indices": np.arange(9)},
        ("y", "indices"),
    ),
    "DoublingLearner.learn": Door(
        learners.DoublingLearner([STUMPS], alpha=0.4, beta=0.4, epsilon=9).learn,
        {"X": np.tile(BITS, (3, 1)), "y": np.tile(LABELS, 3)},
        XY,
    ),
    "LinearSeparator.learn": Door(learners.LinearSeparator().learn, REALS, XY),
    "Labelings": Door(lambda X: learners.Labelings(X, STUMPS), {"X": BITS}, ("X",)),
    "PrivateSGD.learn": Door(sgd().learn, REALS, XY),
    "PrivateSGD.learn, single": Door(
        sgd().learn, {"X": NUMBERS.astype(np.float32), "y": LABELS}, XY
    ),
    "PrivateSGD.learn, squared": Door(
        learners.PrivateSGD(loss="squared", steps=2, noise_multiplier=1.0, label_bound=1.0).learn,
        {"X": NUMBERS, "y": SIGNS},
        XY,
    ),
    "PrivateSGD.learn, softmax": Door(
        learners.PrivateSGD(loss="softmax", classes=2, steps=2, noise_multiplier=1.0).learn,
        REALS,
        XY,
    ),
    "PrivateSGD.learn_weighted": Door(
        sgd().learn_weighted, {**REALS, "weights": weights.DenseWeights(40, 0.5, 0.1)}, XY
    ),
    "LinearModel.predict": Door(sgd().learn(**REALS).predict, {"X": NUMBERS}, ("X",)),
    "LinearModel.scores": Door(sgd().learn(**REALS).scores, {"X": NUMBERS}, ("X",)),
    "SoftmaxModel.predict_proba": Door(
        learners.PrivateSGD(loss="softmax", classes=2, steps=2, noise_multiplier=1.0)
        .learn(**REALS)
        .predict_proba,
        {"X": NUMBERS},
        ("X",),
    ),
    "FeatureMap": Door(learners.FeatureMap.identity(4), {"X": NUMBERS}, ("X",)),
    "cut": Door(learners.cut, {"X": NUMBERS, "points": [[0.0]] * 4}, ("X",)),
    "predictor": Door(
        learners.predictor({"kind": "halfspace", "weights": [1.0] * 4, "bias": 0.0}),
        {"X": NUMBERS},
        (),
    ),
    "score_of": Door(learners.score_of(HALFSPACE), {"X": NUMBERS}, ("X",)),
    "score_of, votes": Door(learners.score_of(STUMPS.hypothesis(0)), {"X": BITS}, ("X",)),
    "Query": Door(QUERY, REALS, XY),
    "Query, bits": Door(local.Query.wrong(STUMPS.hypothesis(0)), RECORDS, XY),
    "true_answers": Door(partial(local.true_answers, QUERY.to_json()), REALS, XY),
    "true_answers, a hypothesis": Door(partial(local.true_answers, HALFSPACE), REALS, XY),
    "CuratorOracle": Door(
        lambda X, y: local.CuratorOracle(X, y, epsilon=1, queries=2, beta=0.1), RECORDS, XY
    ),
    "EmpiricalOracle": Door(local.EmpiricalOracle, RECORDS, XY),
    "ExactOracle": Door(local.ExactOracle, {**RECORDS, "weights": np.full(40, 1 / 40)}, XY),
    **{
        f"{name}.sample": Door(
            randomizer.sample, {"u": [0, 1] if "Response" in name else [0.0, 1.0]}, ("u",)
        )
        for name, randomizer in RANDOMIZERS.items()
    },
    "DenseWeights.update": Door(
        fresh(lambda: weights.DenseWeights(40, 0.5, 0.1), "update"),
        {"losses": LABELS.astype(float)},
        ("losses",),
    ),
    "project": Door(weights.project, {"w": np.ones(9), "kappa": 0.5}, ("w",)),
    "SubsampleTestReweigh.fit": Door(
        lambda **arguments: str_run().fit(
            agents=Agents(np.ones((900, 4), np.uint8), np.ones(900, int), epsilon=8), **arguments
        ),
        RECORDS,
        XY,
    ),
    "PrivateLabeler.fit": Door(
        fresh(labeler, "fit"), {**REALS, "ids": np.arange(40)}, ("X", "y", "ids")
    ),
    "SoftLabeler.fit": Door(fresh(soft, "fit"), {**REALS, "ids": np.arange(40)}, ("X", "y", "ids")),
    "StatisticsLabeler.fit": Door(
        fresh(statistics_labeler, "fit"), {**REALS, "public": NUMBERS[:9]}, XY
    ),
    "PrivateLearner.fit": Door(
        fresh(lambda: labels.PrivateLearner(labeler(), Threshold()), "fit"),
        {**REALS, "public": NUMBERS[:3]},
        XY,
    ),
    **{
        f"{name}.fit": Door(
            fresh(make, "fit"),
            CLASSES if name == "NonConvexAdaptation" else DOMAINS,
            # It does not look at the target's labels.
            tuple(DOMAINS)[: 3 if name == "PrivateDiscrepancyMinimization" else 4],
        )
        for name, make in ADAPTING.items()
    },
    "discrepancy": Door(adaptation.discrepancy, {**DOMAINS, "radius": 1.0}, tuple(DOMAINS)),
    "release_discrepancy": Door(
        adaptation.release_discrepancy,
        {**DOMAINS, "radius": 1.0, "norm_bound": 1.0, "epsilon": 1.0},
        tuple(DOMAINS),
    ),
    "classification_discrepancy": Door(
        adaptation.classification_discrepancy,
        {**CLASSES, "radius": 1.0, "starts": 1, "steps": 1},
        tuple(DOMAINS),
    ),
    "tune": Door(
        lambda **arguments: adaptation.tune(
            adaptation.ConvexAdaptation(**STEPS), {"radius": [0.5, 1.0]}, **arguments
        ),
        DOMAINS,
        tuple(DOMAINS),
    ),
    "release_means": Door(
        lambda records: transfer.release_means(records, epsilon=1.0, delta=1e-3),
        {"records": RECORDS["X"]},
        ("records",),
    ),
    "statistics.mean": Door(
        lambda values: statistics.mean(values, low=0, high=1, epsilon=1.0),
        {"values": RECORDS["X"]},
        ("values",),
    ),
    "statistics.quantiles": Door(
        lambda values: statistics.quantiles(values, [0.5], low=0, high=1, epsilon=1.0),
        {"values": RECORDS["X"]},
        ("values",),
    ),
    "statistics.distribution": Door(
        lambda values: statistics.distribution(values, low=0, high=1, epsilon=1.0),
        {"values": RECORDS["X"]},
        ("values",),
    ),
    "learn by hand": Door(lambda X, y: parity.learn(X, y, epsilon=1, affine=True), RECORDS, XY),
}
PLACES = [(name, argument) for name, door in DOORS.items() for argument in door.private]
