"""Every data set of a few records and every neighbor, by the law of what a run releases.

Chances are sums of products of a dozen floats, and noise is cut where 1e-17 of it is left: what is
found is wrong by less than 1e-12. The noisy sums are looked at; the model is made of them.
"""

import dataclasses
import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tiny_sgd import Tiny

from hdp_fast import accounting
from hdp_fast.learners import PrivateSGD
from hdp_fast.weights import DenseWeights

EPSILONS = (0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.5)
ERROR = 1e-12
ROWS = (-1, 0, 1)
LABELS = (-1, 1)


@dataclasses.dataclass(frozen=True)
class Case:
    """What runs, on how many records, and how private it is said to be.

    Attributes:
        tiny: the run; rows are as long as its longest gradient, or empty.
        n, noise: of the run; noise in longest gradients.
        tight: the share of the promise that some neighbors reach at some epsilon.
        kappa: of weights that have taken in one loss of 0 or 1 of each record; None for none.

    Draws of a Poisson number are those of learn.
    """

    tiny: Tiny
    n: int
    noise: int
    tight: float
    kappa: float | None = None

    def chances(self, data):
        if self.kappa is None:
            return np.full(self.n, 1 / self.n)
        weights = DenseWeights(self.n, self.kappa, 2.0)
        weights.update(np.array([loss for _, loss in data], float))
        return weights.probabilities()

    @property
    def rate(self):
        return 1 / self.n if self.kappa is None else DenseWeights(self.n, self.kappa, 2.0).rate

    def promises(self, rate=None, **changes):
        """The accountant's delta at every epsilon."""
        learner = PrivateSGD(
            loss="hinge",
            steps=self.tiny.sums,
            batch_size=self.tiny.batch,
            noise_multiplier=self.noise,
        )
        learner = dataclasses.replace(learner, **changes)
        terms = learner.composition(rate or self.rate, sampling=self.tiny.sampling)
        return np.array([accounting.delta(terms, epsilon) for epsilon in EPSILONS])


def case(loss, n, longest, noise, *, batch=1, sums=1, tight, pace=0.5, radius=1.0, kappa=None,
         sampling="fixed"):  # fmt: skip
    noise_of_sums, pace = Fraction(noise * longest), pace / longest
    tiny = Tiny(loss, batch, sums, noise_of_sums, longest, pace, radius, sampling)
    return Case(tiny, n, noise, tight, kappa)


def drawn(*args, **options):
    return case(*args, sampling="poisson", **options)


CASES = {
    "one record": case("hinge", 1, 1, 2, tight=0.74),
    "one record, two sums": case("hinge", 1, 1, 1, sums=2, tight=0.86),
    "two records": case("hinge", 2, 1, 2, tight=0.74),
    "two records, two sums": case("hinge", 2, 1, 2, sums=2, tight=0.65),
    "two draws": case("hinge", 2, 1, 1, batch=2, tight=0.8),
    "squared": case("squared", 2, 2, 2, sums=2, pace=0.4, tight=0.55),
    "two draws, two sums, a small ball": case(
        "squared", 2, 2, 2, batch=2, sums=2, pace=0.8, radius=0.4, tight=0.6
    ),
    "three records, two draws": case("hinge", 3, 1, 2, batch=2, tight=0.75),
    "one record, any number": drawn("hinge", 1, 1, 2, tight=0.9),
    "one record, any number, two sums": drawn("hinge", 1, 1, 2, sums=2, tight=0.9),
    "two records, any number": drawn("hinge", 2, 1, 1, tight=0.9),
    "two records, any number, two sums": drawn("squared", 2, 2, 2, sums=2, pace=0.4, tight=0.6),
    "two of three records on average": drawn("hinge", 3, 1, 2, batch=2, tight=0.9),
    "by weights": case("hinge", 2, 1, 2, batch=2, tight=0.6, kappa=0.6),
    "by weights, two sums": case("hinge", 2, 1, 1, sums=2, tight=0.6, kappa=0.75),
}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", "1")


# Its enumeration takes seconds; the others show the same in less.
LONG = "two of three records on average"


def cases(which=lambda run: True):
    named = [pytest.param(run, id=name) for name, run in CASES.items() if which(run)]
    quick = [case.id for case in named if case.id != LONG]

    def decorate(test):
        return pytest.mark.thorough(cases=quick)(pytest.mark.parametrize("run", named)(test))

    return decorate


@functools.cache
def divergences(run):
    """The largest hockey-stick divergence of any neighbors, both ways, at each epsilon."""
    longest, losses = run.tiny.longest, (0,) if run.kappa is None else (0, 1)
    rows = [(sign * longest, y) for sign, y in itertools.product(ROWS, LABELS)]
    records = sorted(itertools.product(rows, losses))
    # A run does not know the order of its records.
    laws = {
        data: run.tiny.law([record for record, _ in data], run.chances(data)).ravel()
        for data in itertools.combinations_with_replacement(records, run.n)
    }
    found = np.zeros(len(EPSILONS))
    for others in itertools.combinations_with_replacement(records, run.n - 1):
        for pair in itertools.permutations(records, 2):
            some, other = (laws[tuple(sorted((*others, record)))] for record in pair)
            each = [np.maximum(some - math.exp(e) * other, 0).sum() for e in EPSILONS]
            found = np.maximum(found, each)
    return found


@cases()
def test_no_neighbors_tell_more_than_is_promised(run):
    found, promised = divergences(run), run.promises()
    assert (found <= promised + ERROR).all(), found / promised
    assert (found / promised).max() >= run.tight, "the test should be able to fail"


@cases()
def test_half_the_sensitivity_is_too_little(run):
    assert (divergences(run) > 1.1 * run.promises(noise_multiplier=2.0 * run.noise)).any()


@cases(lambda run: run.n > 1)
def test_the_rate_of_twice_the_records_is_too_small(run):
    assert (divergences(run) > 1.1 * run.promises(rate=run.rate / 2)).any()


@cases(lambda run: run.tiny.batch > 1)
def test_a_draw_less_is_too_few(run):
    assert (divergences(run) > 1.1 * run.promises(batch_size=1)).any()


# People with two records --------------------------------------------------------------------------


@functools.cache
def group_divergences(run):
    """As divergences, of neighbors that differ in two records."""
    records = sorted((sign * run.tiny.longest, y) for sign, y in itertools.product(ROWS, LABELS))
    laws = {
        data: run.tiny.law(list(data), run.chances(data)).ravel()
        for data in itertools.combinations_with_replacement(records, run.n)
    }
    found = np.zeros(len(EPSILONS))
    for others in itertools.combinations_with_replacement(records, run.n - 2):
        own = [laws[tuple(sorted((*others, *two)))] for two in itertools.product(records, repeat=2)]
        for some, other in itertools.permutations(own, 2):
            each = [np.maximum(some - math.exp(e) * other, 0).sum() for e in EPSILONS]
            found = np.maximum(found, each)
    return found


GROUPS = cases(lambda run: run.n == 3 or (run.n == 2 and run.kappa is None and run.tiny.sums == 1))


@GROUPS
def test_two_records_of_a_person_tell_no_more_than_twice_the_rate(run):
    found, promised = group_divergences(run), run.promises(rate=2 / run.n)
    assert (found <= promised + ERROR).all(), found / promised
    assert (found / promised).max() >= 0.6, "the test should be able to fail"


@GROUPS
def test_the_rate_of_one_record_is_too_small_for_two(run):
    assert (group_divergences(run) > 1.1 * run.promises()).any()
