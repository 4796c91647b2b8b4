"""What both problems of adaptation have in common: two domains, one of them perhaps private."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._adaptation_bounds import least_alpha
from ._adaptation_noise import Noise
from ._adaptation_pass import Weighing
from ._adaptation_rows import Data, Private, Shape, domains
from ._checks import shown
from ._discrepancy import discrepancy
from ._discrepancy_release import release_discrepancy
from ._moments import Sample
from .exceptions import ParameterError

_PRIVATE = ("target", "source", None)


class Problem(NamedTuple):
    """Two domains that have been looked at.

    Attributes:
        source, target: their records.
        shape: bounds of records and predictors.
        private: which of both is protected, if any.
    """

    source: Sample
    target: Sample
    shape: Shape
    private: Private | None

    @classmethod
    def of(cls, data: Data, shape: Shape, private: Any) -> Problem:
        """The problem of these arguments; public rows keep their bounds.

        Raises: ShapeError, ParameterError.
        """
        if private not in _PRIVATE:
            rule = "it must be one of target, source, None"
            raise ParameterError(f"private = {shown(private)}, but {rule}")
        return cls(*domains(data, shape.bounds, private), shape, private)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many records source and target have."""
        return len(self.source.y), len(self.target.y)

    @property
    def columns(self) -> int:
        """How many features they have."""
        return int(self.source.X.shape[1])

    @property
    def hidden(self) -> Sample:
        """The private records; the target's where there are none."""
        return self.source if self.private == "source" else self.target

    @property
    def known(self) -> Sample:
        """The other ones."""
        return self.target if self.private == "source" else self.source

    def judged(self, noise: Noise, delta: float, coins: np.random.Generator | None) -> float:
        """The discrepancy with noise."""
        return release_discrepancy(
            *self._data(),
            radius=self.shape.radius,
            norm_bound=self.shape.norm_bound,
            mu=noise.discrepancy,
            delta=delta,
            private="source" if self.private == "source" else "target",
            random_state=coins,
        ).value

    def judged_openly(self) -> float:
        """The discrepancy without noise."""
        found = discrepancy(
            *self._data(),
            radius=self.shape.radius,
            norm_bound=self.shape.norm_bound,
            private=self.private,
        )
        return max(found.value, 0.0)

    def weighings(
        self, alpha: float, kappa_1: float, discrepancy: float
    ) -> tuple[Weighing, Weighing]:
        """How known and hidden records are weighed."""
        source = Weighing(alpha / self.sizes[0], kappa_1, discrepancy)
        target = Weighing((1 - alpha) / self.sizes[1], kappa_1, 0.0)
        return (target, source) if self.private == "source" else (source, target)

    def _data(self) -> Data:
        return self.source.X, self.source.y, self.target.X, self.target.y


def chosen_alpha(alpha: float | None, discrepancy: float, problem: Problem) -> float:
    """The share of the source that was asked for, or what the discrepancy suggests."""
    if alpha is not None:
        return alpha
    radius, norm_bound, _ = problem.shape
    return least_alpha(discrepancy, problem.sizes, (radius, norm_bound))
