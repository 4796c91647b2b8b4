"""Public functions with arguments that they accept: what the tests of bad ones change."""

import numpy as np

from hdp_fast import audit, budget, gf2, learners, local, noise, parity, stability
from hdp_fast.local import Agents

EYE = np.eye(4, dtype=np.uint8)
ONES = np.ones(4, dtype=np.uint8)
STUMPS = learners.Stumps(4)


def transfer(**changes):
    X = np.zeros((2_000, 4), np.uint8)
    agents = Agents(X, X[:, 0], epsilon=2)
    call = {"X": EYE, "y": ONES, "agents": agents, "epsilon": 1, "alpha": 0.1, "beta": 0.1}
    return parity.transfer(**call | changes)


def ask(**changes):
    call = {"question": lambda X, y: y, "count": 2}
    return Agents(EYE, ONES, epsilon=1).ask(**call | changes)


TABLE_GOAL = {"queries": 9, "epsilon": 1, "delta": 1e-6, "beta": 0.1}
HAZARDS = stability.HazardTable.design(max_unstable=9, **TABLE_GOAL)


GAUSSIAN = stability.GaussianVote.design(labels=4, **TABLE_GOAL)


def answer_by_counts(**changes):
    return GAUSSIAN.session().answer(**changes)


def answer(**changes):
    return HAZARDS.session().answer(**changes)


def answer_ones(**changes):
    return HAZARDS.session().answer_ones(**changes)


def answer_scores(**changes):
    return HAZARDS.session().answer_scores(**changes)


def above(**changes):
    return stability.AboveThreshold(9, 0, epsilon=1).answer(**changes)


# Each function with arguments that it accepts.
CALLS = {
    "rank": (gf2.rank, {"A": EYE}),
    "dot": (gf2.dot, {"A": EYE, "x": ONES}),
    "solve": (gf2.solve, {"A": EYE, "b": ONES}),
    "sample": (gf2.solve(EYE, ONES).sample, {}),
    "from_dense": (gf2.BitMatrix.from_dense, {"X": EYE}),
    "from_packed": (gf2.BitMatrix.from_packed, {"rows": np.zeros((3, 2), np.uint8), "ncols": 9}),
    "bernoulli": (noise.bernoulli, {"p": 0.5}),
    "bernoulli_exp": (noise.bernoulli_exp, {"gamma": 0.5}),
    "poisson_mask": (noise.poisson_mask, {"n": 5, "rate": 0.5}),
    "geometric": (noise.geometric, {"scale": 2}),
    "discrete_laplace": (noise.discrete_laplace, {"scale": 2}),
    "discrete_gaussian": (noise.discrete_gaussian, {"sigma": 2}),
    "rounded_gaussian": (noise.rounded_gaussian, {"sigma": 2}),
    "uniform_integers": (noise.uniform_integers, {"bound": 6}),
    "weighted_draws": (noise.weighted_draws, {"weights": [1, 2]}),
    "permute_and_flip": (noise.permute_and_flip, {"scores": [1, 2], "epsilon": 1}),
    "exponential_mechanism": (noise.exponential_mechanism, {"scores": [1, 2], "epsilon": 1}),
    "Budget": (budget.Budget, {"epsilon": 1}),
    "Budget.reserve": (
        budget.Budget(10).reserve,
        {"record": Agents(EYE, ONES, epsilon=1).record()},
    ),
    "Budget.sequential": (budget.Budget(10).sequential, {"epsilon": 1}),
    "Budget.parallel": (budget.Budget(10).parallel, {}),
    "Parallel.part": (budget.Budget(10).parallel().part, {"name": "a"}),
    "lower_bound": (
        audit.lower_bound,
        {"mechanism": abs, "data": 1, "neighbor": 2, "runs": 8, "confidence": 0.9},
    ),
    "Features": (learners.Features, {"X": EYE}),
    "Conjunctions": (learners.Conjunctions, {"d": 4, "size": 2}),
    "Stumps": (learners.Stumps, {"d": 4}),
    "ConjunctionList": (learners.ConjunctionList, {"ones": EYE, "zeros": 1 - EYE}),
    "Parities": (learners.Parities, {"masks": EYE}),
    "Halfspaces": (learners.Halfspaces, {"W": EYE, "b": ONES}),
    "errors": (STUMPS.errors, {"X": EYE, "y": ONES}),
    "errors of halfspaces": (
        learners.Halfspaces(EYE, ONES).errors,
        {"X": np.ones((4, 4)), "y": ONES},
    ),
    "predict": (STUMPS.predict, {"i": 3, "X": EYE}),
    "ExponentialLearner": (learners.ExponentialLearner, {"hypotheses": STUMPS, "epsilon": 1}),
    "ExponentialLearner.learn": (
        learners.ExponentialLearner(STUMPS, epsilon=1).learn,
        {"X": EYE, "y": ONES},
    ),
    "sample_size": (
        learners.ExponentialLearner(STUMPS, epsilon=1.0).sample_size,
        {"alpha": 0.1, "beta": 0.1, "epsilon": 1},
    ),
    "paper_sample_size": (
        learners.ExponentialLearner(STUMPS, epsilon=1.0).paper_sample_size,
        {"alpha": 0.1, "beta": 0.1, "epsilon": 1},
    ),
    "randomized_response": (local.randomized_response, {"bits": ONES, "epsilon": 1}),
    "Agents": (Agents, {"X": EYE, "y": ONES, "epsilon": 1}),
    "ask": (ask, {}),
    "agents_needed": (local.agents_needed, {"alpha": 0.1, "beta": 0.1, "epsilon": 1}),
    "estimate_mean": (local.estimate_mean, {"answers": ONES, "beta": 0.1, "epsilon": 1}),
    "plan": (parity.plan, {"d": 4, "alpha": 0.1, "beta": 0.1, "epsilon": 1}),
    "plan_transfer": (
        parity.plan_transfer,
        {"d": 4, "alpha": 0.1, "beta": 0.1, "epsilon": 1, "agents_epsilon": 1},
    ),
    "plan_transfer, chi2": (
        parity.plan_transfer,
        {"d": 4, "alpha": 0.1, "beta": 0.1, "epsilon": 1, "agents_epsilon": 1, "chi2": 0.3},
    ),
    "learn": (parity.learn, {"X": EYE, "y": ONES, "epsilon": 1}),
    "transfer": (transfer, {}),
    "distance": (stability.distance, {"counts": ONES}),
    "count_votes": (stability.count_votes, {"votes": EYE, "labels": 3}),
    "HazardTable.design": (stability.HazardTable.design, TABLE_GOAL | {"max_unstable": 2}),
    "VoteTable.design": (stability.VoteTable.design, TABLE_GOAL),
    "GaussianVote.design": (stability.GaussianVote.design, TABLE_GOAL | {"labels": 2}),
    "stability.plan": (stability.plan, TABLE_GOAL | {"max_unstable": 2, "labels": 2}),
    "paper_sizes": (stability.paper_sizes, TABLE_GOAL | {"max_unstable": 2}),
    "HazardTable.session": (HAZARDS.session, {}),
    "VoteTable.session": (stability.VoteTable.design(**TABLE_GOAL).session, {}),
    "GaussianVote.session": (GAUSSIAN.session, {}),
    "GaussianSession.answer": (answer_by_counts, {"counts": EYE}),
    "members_needed": (stability.members_needed, {"table": HAZARDS}),
    "TableSession.answer": (answer, {"counts": EYE}),
    "TableSession.answer_ones": (answer_ones, {"ones": ONES, "members": 4}),
    "TableSession.answer_scores": (answer_scores, {"scores": EYE, "bins": 4}),
    "AboveThreshold": (stability.AboveThreshold, {"max_unstable": 2, "threshold": 3, "epsilon": 1}),
    "AboveThreshold.answer": (above, {"values": ONES}),
    "OnlineQueryRelease": (
        stability.OnlineQueryRelease,
        {"max_unstable": 2, "epsilon": 1, "delta": 0.1},
    ),
    "StableRelease": (stability.StableRelease, {"epsilon": 1, "delta": 0.1}),
    "StableRelease.release": (
        stability.StableRelease(epsilon=1, delta=0.1).release,
        {"counts": ONES},
    ),
}
