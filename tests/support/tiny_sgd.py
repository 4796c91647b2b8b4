"""Private stochastic gradient descent on a few records of one number, by all draws and all noise.

In units of the grid: a record is an integer k, its row in units, and a label y of -1 or 1; the
score of a model m is k m, and a gradient the integer nearest to k slope(k m, y).
"""

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import ndtr
from scipy.stats import poisson

SLOPES = {
    "hinge": lambda score, y: np.where(y * score < 1, -y, 0),
    "squared": lambda score, y: score - y,
}

# Numbers of draws that are rarer count as impossible.
RARE = 1e-14


@dataclass(frozen=True)
class Tiny:
    """A run of one noisy sum, or of two, the second at the model that the first has led to.

    Attributes:
        loss: of SLOPES.
        batch: draws of a step.
        sums: 1 or 2.
        sigma: of the noise, in units.
        longest: gradients are cut at so many units.
        pace: the first model is -pace times the first sum, the next step half as long.
        radius: of the models.
        sampling: "fixed", or "poisson" for a number of draws with this law, whose mean is batch.
    """

    loss: str
    batch: int
    sums: int
    sigma: Fraction
    longest: int = 1 << 20
    pace: float = 0.0
    radius: float = np.inf
    sampling: str = "fixed"

    @property
    def sums_of_noise(self):
        """All first sums that count, as far as noise reaches beyond the longest gradients."""
        most = self.batch * min(self.longest, 20)
        if self.sampling == "poisson":
            most = int(poisson.isf(RARE, self.batch)) * min(self.longest, 6)
        reach = int(9 * self.sigma) + 2 + most
        return np.arange(-reach, reach + 1)

    def noise(self, centers):
        """Chances of all sums, (..., sums), of rounded Gaussian noise around centers (...)."""
        far = np.abs(self.sums_of_noise - np.asarray(centers)[..., None])
        inner, outer = (ndtr((far + side) / -float(self.sigma)) for side in (-0.5, 0.5))
        return inner - outer

    def gradients(self, records, models):
        """Rounded gradients (records, models)."""
        k, y = (np.array(column, float)[:, None] for column in zip(*records, strict=True))
        slopes = k * SLOPES[self.loss](k * np.atleast_1d(models), y)
        return np.rint(np.clip(slopes, -self.longest, self.longest)).astype(int)

    def models(self):
        """What the first sum makes of the model 0."""
        return np.clip(-self.pace * self.sums_of_noise, -self.radius, self.radius)

    def law(self, records, chances):
        """Chances (first sums, second sums), or (first sums,) where there is no second."""
        first = self._sum(records, chances, 0.0)[0]
        if self.sums == 1:
            return first
        return first[:, None] * self._sum(records, chances, self.models())

    def _sum(self, records, chances, models):
        """Chances (models, sums) of a noisy sum of drawn gradients at each model."""
        gradients = self.gradients(records, models)
        counts, likely = zip(*self.counts(chances), strict=True)
        centers = np.tensordot(np.array(counts), gradients, 1)
        low, places = centers.min(), np.arange(centers.shape[1])
        law = np.zeros((len(places), centers.max() - low + 1))
        for center, chance in zip(centers, likely, strict=True):
            law[places, center - low] += chance
        return law @ self.noise(low + np.arange(law.shape[1]))

    def counts(self, chances):
        """How often each record may be drawn in a step, and how likely that is."""
        if self.sampling == "fixed":
            for draws in itertools.product(range(len(chances)), repeat=self.batch):
                yield np.bincount(draws, minlength=len(chances)), np.prod(chances[list(draws)])
            return
        means = self.batch * chances
        most = [range(int(poisson.isf(RARE, mean)) + 1) for mean in means]
        for counts in itertools.product(*most):
            chance = np.prod(poisson.pmf(counts, means))
            if chance > RARE / 1000:
                yield np.array(counts), chance

    def released(self):
        """The mean of the models before each step, for every outcome of law."""
        second = self.models()
        if self.sums == 1:
            return second / 2
        third = second[:, None] - self.pace / 2 * self.sums_of_noise
        return (second[:, None] + np.clip(third, -self.radius, self.radius)) / 3
