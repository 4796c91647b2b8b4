"""Whole private runs of Subsample-Test-Reweigh on a few records of one bit, enumerated."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from hdp_fast import accounting, learners, local
from hdp_fast.transfer import SubsampleTestReweigh, plan_rounds
from hdp_fast.weights import DenseWeights

# A record is a feature and a label; replace_one turns any into any other.
RECORDS = tuple(itertools.product((0, 1), (0, 1)))
# In the order of Stumps(1).
SAYS = (lambda x: 1, lambda x: x, lambda x: 1 - x, lambda x: 0)


@dataclass(frozen=True)
class Tiny:
    """A run that is small enough to try every draw.

    Attributes:
        n, kappa, eta, draws, rounds: of the run.
        epsilon: of the learner on its draws.
        hypotheses: which of SAYS it chooses from.
        before: logarithms of weights by record, where an earlier run has left them.
    """

    n: int
    kappa: float
    eta: float
    epsilon: float
    draws: int = 1
    rounds: int = 2
    hypotheses: tuple[int, ...] = (1, 2)
    before: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)

    @property
    def rate(self):
        return DenseWeights(self.n, self.kappa, self.eta).rate

    def promise(self, epsilon, rate=None):
        """The accountant's delta."""
        return accounting.delta(self._terms(rate or self.rate), epsilon)

    def promised_epsilon(self, delta):
        """The accountant's epsilon."""
        return accounting.epsilon(self._terms(self.rate), delta)

    def _terms(self, rate):
        base = accounting.BoundedRange(self.epsilon)
        return [(accounting.Subsampled(base, draws=self.draws, rate=rate), self.rounds)]

    def learner(self):
        both = learners.ConjunctionList(ones=[[1], [0]], zeros=[[0], [1]])
        chosen = {(1, 2): both, (0, 1, 2, 3): learners.Stumps(1)}[self.hypotheses]
        return learners.ExponentialLearner(chosen, epsilon=self.epsilon)

    def wrong(self, records):
        """Losses of every hypothesis on every record."""
        return np.array([[int(SAYS[h](x) != y) for x, y in records] for h in self.hypotheses])

    def costs(self, records, path):
        """What the weights' logarithms have lost after these hypotheses."""
        lost = np.array([-self.before[RECORDS.index(record)] for record in records])
        return lost + sum((self.eta * (1 - self.wrong(records)[h]) for h in path), np.zeros(self.n))


def projected(tiny, records, path):
    """The law of a draw: min(c w, 1) with the c of the right sum, by trying how many are capped."""
    w, mass = np.exp(-tiny.costs(records, path)), tiny.kappa * tiny.n
    order = np.sort(w)[::-1]
    for capped in range(tiny.n):
        c = (mass - capped) / order[capped:].sum()
        if c * order[capped] <= 1 + 1e-12:
            return np.minimum(c * w, 1) / mass
    return np.full(tiny.n, 1 / tiny.n)


def unprojected(tiny, records, path):
    w = np.exp(-tiny.costs(records, path))
    return w / w.sum()


def compiled(tiny, records, path):
    weights = DenseWeights(tiny.n, tiny.kappa, tiny.eta)
    # eta (1 - loss) is what is to be lost.
    left = tiny.costs(records, path) / tiny.eta
    while left.max() > 0:
        weights.update(1 - np.minimum(left, 1))
        left = left - np.minimum(left, 1)
    return weights.probabilities()


def law(tiny, records, drawn=projected):
    """Probabilities of all sequences of hypotheses."""
    paths = {(): 1.0}
    for _ in range(tiny.rounds):
        paths = {
            (*path, h): chance * one
            for path, chance in paths.items()
            for h, one in enumerate(_round(tiny, records, drawn(tiny, records, path)))
        }
    return paths


def _round(tiny, records, mu):
    """The exponential mechanism, on the average over all draws."""
    draws = np.array(list(itertools.product(range(tiny.n), repeat=tiny.draws)))
    errors = tiny.wrong(records)[:, draws].sum(axis=2)
    chances = np.exp(-tiny.epsilon / 2 * errors)
    return (chances / chances.sum(axis=0)) @ mu[draws].prod(axis=1)


def neighbors(n):
    """All pairs that differ in one record, both ways."""
    for records in itertools.product(RECORDS, repeat=n):
        for i, other in itertools.product(range(n), RECORDS):
            if other != records[i]:
                yield records, (*records[:i], other, *records[i + 1 :])


def divergences(tiny, epsilons, drawn=projected):
    """The largest hockey-stick divergence of any neighbors, at each epsilon."""
    data = itertools.product(RECORDS, repeat=tiny.n)
    laws = {records: list(law(tiny, records, drawn).values()) for records in data}
    pairs = list(neighbors(tiny.n))
    some = np.array([laws[records] for records, _ in pairs])
    other = np.array([laws[records] for _, records in pairs])
    return [np.maximum(some - math.exp(e) * other, 0).sum(axis=1).max() for e in epsilons]


class Planned(SubsampleTestReweigh):
    """A run of a given plan."""

    def __init__(self, learner, given):
        super().__init__(learner, alpha=given.alpha, epsilon=given.epsilon)
        self.given = given

    def _plan(self, n, agents_epsilon, draws):
        return self.given


def fitted(tiny):
    """A function from records to what a compiled run, with fresh bits, releases: its path."""
    learner = tiny.learner()
    some = plan_rounds(
        learner, alpha=0.1, epsilon=1.0, delta=0.1, agents_epsilon=1.0, kappa=tiny.kappa,
        eta=tiny.eta, rounds=tiny.rounds, n=1000, schedule="final", output="majority",
    )  # fmt: skip
    given = replace(
        some, n=tiny.n, draws=tiny.draws, learner_epsilon=tiny.epsilon, agents_per_test=1,
        N=1, epsilon=0.1, delta=1.001 * tiny.promise(0.1),
    )  # fmt: skip
    run = Planned(learner, given)
    index = learner.hypotheses.index

    def released(records):
        X, y = np.array(records, np.uint8).T
        agents = local.Agents(X[:1, None], y[:1], epsilon=1.0)
        run.fit(X[:, None], y, agents)
        return tuple(map(index, run.result_.hypothesis["hypotheses"]))

    return released
