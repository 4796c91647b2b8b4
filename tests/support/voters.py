"""Labelers of a few records, and learners whose votes are known: what tests of labels share."""

import numpy as np
import pytest

from hdp_fast.labels import PrivateLabeler, SoftLabeler

naive_bayes = pytest.importorskip("sklearn.naive_bayes")

X = np.random.default_rng(6).normal(size=(600, 2))
Y = (X[:, 0] > 0).astype(int)
THIRD = X[3, 0]
Q = np.array([[3.0, 0.0], [-3.0, 0.0], [2.5, 1.0], [-2.5, 1.0]])
TRUTH = [1, 0, 1, 0]


def labeler(learner=None, **changed):
    goal = {"epsilon": 20, "delta": 1e-3, "queries": 50, "max_unstable": 5, "classes": [0, 1]}
    # A beta that no test sees a failure of.
    goal |= {"members": 60, "table": "hazard", "beta": 1e-9} | changed
    return PrivateLabeler(learner or naive_bayes.GaussianNB(), **goal)


def fitted(learner=None, records=X, labels=Y, ids=None, budget=None, random_state=None, **changed):
    how = {"ids": ids, "budget": budget, "preflight": changed.pop("preflight", True)}
    made = labeler(learner, **changed)
    return made.fit(records, labels, random_state=random_state, **how)


def soft(learner=None, **changed):
    goal = {"epsilon": 20, "delta": 1e-3, "queries": 50, "max_unstable": 5, "members": 60}
    goal |= {"beta": 1e-9} | changed
    return SoftLabeler(learner or naive_bayes.GaussianNB(), **goal)


def kept(path, **changed):
    made = fitted(**changed)
    made.save(path)
    return made


def loaded(path, **how):
    return PrivateLabeler.load(path, trusted=True, **how)


class Seen:
    """A learner that writes down the chunks and seeds it is given."""

    def __init__(self):
        self.chunks, self.seeds = [], []

    def __deepcopy__(self, memo):
        return self

    def __call__(self, X, y, random_state):
        self.chunks.append((X.tolist(), y.tolist()))
        self.seeds.append(random_state)
        return lambda Q: np.zeros(len(Q), int)


def by_votes(ones):
    """A learner of chunks with one number each: those with small ones vote for 1."""
    return lambda X, y: lambda Q: np.full(len(Q), int(X[0, 0] < ones))


class VotesFor:
    """by_votes, to be pickled."""

    def __init__(self, ones):
        self.ones, self.vote = ones, 0

    def __call__(self, X, y):
        made = VotesFor(self.ones)
        made.vote = int(X[0, 0] < self.ones)
        return made

    def predict(self, Q):
        return np.full(len(Q), self.vote)
