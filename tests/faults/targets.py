"""Every public function that takes arrays, with arguments that are right."""

import dataclasses
from collections.abc import Callable

import numpy as np

from hdp_fast import accounting, adaptation, gf2, learners, local, noise, parity, transfer, weights
from hdp_fast.labels import PrivateLabeler, SoftLabeler
from hdp_fast.stability import (
    AboveThreshold,
    GaussianVote,
    HazardTable,
    OnlineQueryRelease,
    StableRelease,
    VoteTable,
    count_votes,
    distance,
    plurality,
)


@dataclasses.dataclass(frozen=True)
class Target:
    """A call that is repeatable, and its arrays.

    Attributes:
        call: takes the arrays in their order; returns numbers and arrays.
        arrays: by the name that an error calls each of them by.
        check: asserts of the arrays and what was returned that it is right.
        names: what else an error may name, such as a size that two arrays should share.
    """

    call: Callable
    arrays: dict[str, np.ndarray]
    check: Callable = lambda returned, *arrays: None
    names: tuple[str, ...] = ()


COINS = np.random.default_rng(0)
BITS = COINS.integers(0, 2, (20, 6), dtype=np.uint8)
Y = BITS[:, 0].copy()
REALS = COINS.random((20, 3))
UNIT = REALS / 2
COUNTS = np.array([[9, 1, 0], [4, 3, 3]], np.uint32)
HALVES = np.full(20, 0.5)
SEED = {"random_state": 1}
PROMISE = {"epsilon": 1.0, "delta": 1e-5}

HAZARD = HazardTable.design(5, 10**6, **PROMISE, beta=0.1)
VOTES = VoteTable.design(10**6, **PROMISE, beta=0.1)
GAUSSIAN = GaussianVote.design(10**6, **PROMISE, beta=0.1, labels=3)
BINARY, KARY = local.BinaryResponse(1.0, (0, 1)), local.KaryResponse(4, 1.0)


def projected(returned, w, *_out):
    """kappa-dense, and as the weights order them."""
    w = np.array(w, float)
    assert abs(returned.sum() - 0.25 * len(w)) < 1e-6 * len(w)
    assert returned.min() >= 0
    assert returned.max() <= 1
    assert (np.diff(returned[np.argsort(w, kind="stable")]) >= 0).all()


def counted(returned, votes):
    """A vote that is no label is one for label 0."""
    votes = np.asarray(votes)
    votes = np.where((votes >= 0) & (votes < 3), votes, 0)
    expected = [(votes == label).sum(axis=0) for label in range(3)]
    assert np.array_equal(returned, np.stack(expected, axis=-1))


def updated(losses):
    made = weights.DenseWeights(20, 0.5, 0.5)
    made.update(losses)
    return made.draw(9, **SEED)


def in_place(w, out):
    return weights.project(w, 0.25, out=out).copy()


def asked(X, y):
    return local.Agents(X, y, epsilon=1.0).ask(lambda X, y: y, len(y), **SEED)


def asked_several(shares):
    made = local.Agents(BITS, Y, epsilon=1.0)
    questions = [lambda X, y: y, lambda X, y: X[:, 1]]
    return made.ask_several(questions, 9, shares=shares, **SEED)


def queried(X, y):
    made = local.CuratorOracle(X, y, epsilon=1e4, queries=3, beta=0.1, **SEED)
    return made.query(lambda X, y: np.zeros(len(y)), 1.0)


def expected(X, y, chances):
    return local.ExactOracle(X, y, chances).query(lambda X, y: y * 1.0, 0.5)


def voter(X, y):
    return lambda Q: np.ones(len(Q), int)


def labeled(X, y, Q):
    made = PrivateLabeler(
        voter, **PROMISE, queries=1000, max_unstable=1, classes=[0, 1], members=2, table="vote"
    )
    return made.fit(X, y, **SEED).label(Q).labels


def scored(X, y, Q):
    made = SoftLabeler(voter, **PROMISE, queries=500, max_unstable=90, members=2)
    return made.fit(X, y, **SEED).score(Q, 4).scores


def learned(X, y):
    return learners.ExponentialLearner(learners.Stumps(6), epsilon=1.0).learn(X, y, **SEED).index


def descended(X, y):
    made = learners.PrivateSGD(loss="logistic", steps=4, noise_multiplier=1.0)
    return made.learn(X, y, **SEED).weights


def descended_on(indices):
    made = learners.PrivateSGD(loss="logistic", steps=4, noise_multiplier=1.0)
    return made.learn_indices(UNIT, Y, indices, **SEED).weights


def separated(X, y):
    return learners.LinearSeparator().learn(X, y).weights


def separated_on(indices):
    return learners.LinearSeparator().learn_indices(UNIT, Y, indices).weights


def adapted(*arrays):
    made = adaptation.ConvexAdaptation(**PROMISE, steps=2)
    return made.fit(*arrays, **SEED).coef_


def measured(*arrays):
    return adaptation.discrepancy(*arrays, radius=1.0, norm_bound=2.0).value


def errors(kind):
    """Of a class on records; what the class is made of is a target of its own."""
    return lambda X, y: kind.errors(X, y)


DOMAINS = {"X_source": UNIT, "y_source": HALVES, "X_target": UNIT[:9], "y_target": HALVES[:9]}
RECORDS = {"X": BITS, "y": Y}
MASKS = BITS[:4]

TARGETS = {
    "from_dense": Target(lambda X: gf2.BitMatrix.from_dense(X).to_dense(), {"X": BITS}),
    "from_packed": Target(
        lambda rows: gf2.BitMatrix.from_packed(rows, 6).to_dense(), {"rows": BITS[:, :1]}
    ),
    "rank": Target(gf2.rank, {"A": BITS}),
    "dot": Target(gf2.dot, {"A": BITS, "x": BITS[0]}),
    "solve": Target(lambda A, b: gf2.solve(A, b).sample(1), {"A": BITS, "b": Y}),
    "parity": Target(
        lambda X, y: parity.learn(X, y, epsilon=1.0, **SEED).released, RECORDS, names=("d = 0",)
    ),
    "project": Target(lambda w: weights.project(w, 0.25), {"w": HALVES}, projected),
    "project in place": Target(in_place, {"w": HALVES, "out": HALVES.copy()}, projected),
    "update": Target(updated, {"losses": HALVES}),
    "permute and flip": Target(
        lambda scores: noise.permute_and_flip(scores, epsilon=1.0, **SEED), {"scores": np.arange(9)}
    ),
    "exponential": Target(
        lambda scores: noise.exponential_mechanism(scores, epsilon=1.0, **SEED),
        {"scores": np.arange(9)},
    ),
    "weighted draws": Target(
        lambda weights: noise.weighted_draws(weights, 5, **SEED), {"weights": np.arange(1, 9)}
    ),
    "randomized response": Target(
        lambda bits: local.randomized_response(bits, epsilon=1.0, **SEED), {"bits": Y}
    ),
    "estimate mean": Target(
        lambda answers: local.estimate_mean(answers, beta=0.1, epsilon=1.0), {"answers": Y}
    ),
    "agents": Target(asked, RECORDS),
    "shares": Target(asked_several, {"shares": np.array([0.5, 0.5])}, names=("epsilon",)),
    "curator": Target(queried, RECORDS),
    "exact oracle": Target(expected, {**RECORDS, "weights": np.full(20, 0.05)}),
    "binary sample": Target(lambda u: BINARY.sample(u, **SEED), {"u": HALVES}),
    "binary law": Target(BINARY.log_probability, {"w": Y.astype(int), "u": HALVES}),
    "kary sample": Target(lambda u: KARY.sample(u, **SEED), {"u": Y.astype(int)}),
    "sets sample": Target(
        lambda u: local.SubsetSelection(9, 1.0).sample(u, **SEED), {"u": Y.astype(int)}
    ),
    "geometry sample": Target(
        lambda u: local.ProjectiveGeometryResponse(9, 1.0).sample(u, **SEED), {"u": Y.astype(int)}
    ),
    "laplace sample": Target(
        lambda u: local.LaplaceRandomizer(1.0, (0, 1)).sample(u, **SEED), {"u": HALVES}
    ),
    "piecewise sample": Target(
        lambda u: local.Piecewise(1.0, (0, 1)).sample(u, **SEED), {"u": HALVES}
    ),
    "mean reports": Target(
        lambda reports: BINARY.aggregate().add(reports).to_json(), {"reports": Y.astype(int)}
    ),
    "frequency reports": Target(
        lambda reports: KARY.aggregate().add(reports).to_json(), {"reports": Y.astype(int)}
    ),
    "count votes": Target(
        lambda votes: count_votes(votes, 3), {"votes": BITS.astype(np.uint8)}, counted
    ),
    "distance": Target(distance, {"counts": COUNTS}),
    "plurality": Target(plurality, {"counts": COUNTS}),
    "above threshold": Target(
        lambda values: AboveThreshold(9, 5, epsilon=1.0, **SEED).answer(values),
        {"values": np.arange(9)},
    ),
    "hazard answers": Target(
        lambda counts: HAZARD.session(**SEED).answer(counts), {"counts": COUNTS}
    ),
    "vote answers": Target(
        lambda counts: VOTES.session(**SEED).answer(counts),
        {"counts": np.array([[9, 1], [4, 6]])},
        names=("members",),
    ),
    "ones": Target(
        lambda ones: VOTES.session(**SEED).answer_ones(ones, 10), {"ones": np.arange(9)}
    ),
    "scores": Target(
        lambda scores: HAZARD.session(**SEED).answer_scores(scores, 4), {"scores": UNIT}
    ),
    "gaussian answers": Target(
        lambda counts: GAUSSIAN.session(**SEED).answer(counts), {"counts": COUNTS}
    ),
    "stable release": Target(
        lambda counts: StableRelease(**PROMISE).release(counts, **SEED), {"counts": COUNTS[0]}
    ),
    "online release": Target(
        lambda counts: OnlineQueryRelease(3, **PROMISE, **SEED).answer(counts), {"counts": COUNTS}
    ),
    "stumps": Target(errors(learners.Stumps(6)), RECORDS),
    "conjunctions": Target(errors(learners.Conjunctions(6, 2)), RECORDS),
    "features": Target(lambda X: learners.Stumps(6).errors(learners.Features(X), Y), {"X": BITS}),
    "conjunction list": Target(
        lambda ones, zeros: learners.ConjunctionList(ones, zeros).errors(BITS, Y),
        {"ones": MASKS, "zeros": 1 - MASKS},
    ),
    "parities": Target(
        lambda masks: learners.Parities(masks).errors(BITS, Y), {"masks": MASKS}, names=("X",)
    ),
    "halfspaces": Target(
        lambda W, b: learners.Halfspaces(W, b).errors(REALS, Y), {"W": REALS[:4], "b": HALVES[:4]}
    ),
    "halfspace records": Target(
        errors(learners.Halfspaces(REALS[:4], HALVES[:4])), {"X": REALS, "y": Y}
    ),
    "cut": Target(lambda X: learners.cut(X, [[0.5], [0.2, 0.7], []]), {"X": REALS}),
    "exponential learner": Target(learned, RECORDS),
    "descent": Target(descended, {"X": UNIT, "y": Y}),
    "descent on": Target(descended_on, {"indices": np.arange(4)}),
    "separator": Target(separated, {"X": REALS, "y": Y}),
    "separator on": Target(separated_on, {"indices": np.arange(9)}),
    "labeler": Target(labeled, {"X": REALS, "y": Y, "Q": REALS[:3]}),
    "soft labeler": Target(scored, {"X": REALS, "y": Y, "Q": REALS[:3]}),
    "adaptation": Target(adapted, DOMAINS),
    "discrepancy": Target(measured, DOMAINS),
    "chi2 of tables": Target(transfer.chi2_finite, {"target": HALVES / 10, "source": HALVES / 10}),
    "chi2 of Gaussians": Target(
        transfer.chi2_gaussians,
        {
            "target_mean": HALVES[:2],
            "target_covariance": np.eye(2),
            "source_mean": HALVES[:2],
            "source_covariance": np.eye(2),
        },
        names=("means", "covariances"),
    ),
    "Renyi": Target(
        lambda orders, divergences: accounting.renyi_epsilon(orders, divergences, 1e-5),
        {"orders": np.arange(2, 9.0), "divergences": HALVES[:7]},
    ),
}
