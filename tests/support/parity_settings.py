"""PARITY mechanisms on a handful of records: their exact laws, and how often each answer comes."""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hdp_fast import parity
from hdp_fast.gf2 import BitMatrix
from hdp_fast.reference import parity as exact

DRAWS = 10_000


@dataclass(frozen=True)
class Setting:
    """A mechanism with parameters that suit a handful of records."""

    method: str
    epsilon: float
    neighbors: str = "replace_one"
    g: float | None = None
    c: float | None = None
    k: int | None = None
    test_size: int | None = None

    def plan(self, unknowns):
        planned = parity.plan(
            unknowns, alpha=0.4, beta=0.5, epsilon=self.epsilon, method=self.method,
            neighbors=self.neighbors,
        )  # fmt: skip
        return replace(planned, n=0, g=self.g, c=self.c, k=self.k, test_size=self.test_size)

    def law(self, records, d):
        if self.method == "paper":
            epsilon = Fraction(self.epsilon)
            return exact.distribution_paper(records, d, epsilon, self.k, self.test_size)
        if self.method == "loop":
            g = exact.round_up(Fraction(self.g))
            return exact.distribution_loop(records, d, self.rate(), g)
        c = exact.round_up(Fraction(self.c))
        return exact.distribution_batches(records, d, self.rate(), c, self.k, self.neighbors)

    def rate(self):
        return rounded_down(exact.rate(self.epsilon, self.neighbors, c=self.c, g=self.g))

    def counts(self, records, d, draws=DRAWS, affine=False):
        X = [[x >> j & 1 for j in range(d)] for x, _ in records]
        X = BitMatrix.from_dense(np.array(X, np.uint8).reshape(len(records), d))
        y = np.array([label for _, label in records], np.uint8)
        plan = self.plan(d + affine)
        return tally(
            lambda: parity.learn(X, y, epsilon=self.epsilon, plan=plan, affine=affine), draws
        )


def rounded_down(p):
    """As the compiled mechanism does it."""
    return Fraction(int(p * (1 - 2**-45) * 2**64), 2**64)


def tally(learn, draws):
    """How often each hypothesis comes: the bits of its mask, the intercept above them."""
    raw = Counter()
    for _ in range(draws):
        result = learn()
        raw[(result.mask.tobytes(), result.intercept) if result.released else None] += 1
    return {None if key is None else number(*key): count for key, count in raw.items()}


def number(mask, intercept):
    return sum(bit << j for j, bit in enumerate(mask)) | intercept << len(mask)


def best_c(epsilon, neighbors):
    """The c of the largest rate."""
    return float(exact.rounded_bottom(Fraction(epsilon), neighbors))


def base(epsilon, neighbors="replace_one"):
    """One batch: the base learner, whose bounds a single record attains."""
    return Setting("batches", epsilon, neighbors, c=best_c(epsilon, neighbors), k=1)
