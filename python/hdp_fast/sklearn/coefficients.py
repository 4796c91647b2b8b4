"""The coefficients of a private linear model in the units of its table, and their intervals."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist
from typing import Any

import numpy as np

from .._support.lazy import load_optional
from .._support.types import Floats
from ..data.rows import Rows
from ..learners.centered_linear import CenteredModel
from ..learners.effects import distinct_names, tell_effects
from ..learners.target_model import TargetModel
from ..learners.weight_noise import population_weights, score_weights, weight_covariances

_CONFIDENCE = 0.95
_INTERCEPT = "(intercept)"
Columns = dict[str, list[Any]]


class LinearPart:
    """Coefficients of all scores of a released model, squares of numbers last.

    Scores are those of decision_function, or a target in its own units.

    Attributes:
        names: Names of the features, those of squares after the others.
        plain: How many of them are no squares.
        coefficients: Shape (E, features).
        intercepts: Shape (E,).
    """

    def __init__(self, released: CenteredModel, names: list[str], unit: float, middle: float):
        """Turn the weights of centered rows into the units of the table.

        unit, middle: what scores are multiplied with, and what is then added to them.
        """
        self._released, self._unit = released, unit
        self.plain = len(names)
        bent = released.rows.is_number & (released.rows.squares is not None)
        self.names = [*names, *(f"{name} squared" for name in itertools.compress(names, bent))]
        self._map = _map_weights(released.rows) * unit
        if isinstance(released.model, TargetModel):
            law = released.model.law
            self._map[-1, -1] *= law.constant
            middle += law.mean * unit
        parts = self._map @ score_weights(released.model)
        self.coefficients: Floats = parts[:-1].T
        self.intercepts: Floats = parts[-1] + middle

    @property
    def sizes(self) -> Floats:
        """Root mean square of what each plain feature adds, with its square, to all scores."""
        rows, weights = self._released.rows, score_weights(self._released.model)
        sizes = {one.name: one.size for one in tell_effects(rows, weights, None).effects}
        return np.array(
            [sizes[name] for name in distinct_names(rows.names_with_squares)[: self.plain]]
        )

    def summarize(self, classes: list[Any]) -> Columns:
        """Columns of a row for each coefficient, of each class if there are classes."""
        kinds: Any = classes or [None]
        columns: Columns = {"feature": [*self.names, _INTERCEPT] * len(kinds)}
        if classes:
            columns["class"] = [kind for kind in kinds for _ in range(len(self.names) + 1)]
        values = np.column_stack([self.coefficients, self.intercepts])
        columns["coefficient"] = values.ravel().tolist()
        noise = weight_covariances(self._released)
        columns |= _bound("noise", values, self._deviate(noise))
        fit = population_weights(self._released.model)
        if fit is None:
            return columns | _bound("population", values, None)
        free = (self._map @ fit[0]).T
        free[:, -1] += self.intercepts - self._map[-1] @ score_weights(self._released.model)
        return columns | _bound("population", free, self._deviate(fit[1]))

    def _deviate(self, covariances: Floats | None) -> Floats | None:
        """Standard deviations of coefficients and intercept, shape (E, features + 1)."""
        if covariances is None:
            return None
        variances = np.einsum("ij,ejk,ik->ei", self._map, covariances, self._map, optimize=True)
        deviations: Floats = np.sqrt(np.maximum(variances, 0.0))
        if isinstance(self._released.model, TargetModel):
            # The mean of the target has noise of its own, and so have the means of columns.
            deviations[:, -1] = math.nan
        return deviations


def _map_weights(rows: Rows) -> Floats:
    """The matrix from weights, the constant's last, to coefficients and the intercept."""
    factors, centers = rows.units
    if rows.squares is not None:
        scales = rows.number_scales**2
        factors = np.concatenate([factors, rows.squares.factor * scales])
    matrix = np.zeros((len(factors) + 1, len(factors) + 1))
    np.fill_diagonal(matrix, [*factors, 1.0])
    # A square less what is linear in its number has the mean 0.
    matrix[-1, : len(centers)] = -factors[: len(centers)] * centers
    return matrix


def _bound(name: str, values: Floats, deviations: Floats | None) -> Columns:
    """Both ends of intervals; NaN where there are none."""
    if deviations is None:
        deviations = np.full_like(values, math.nan)
    reach = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2) * deviations
    low, high = values - reach, values + reach
    return {f"{name}_low": low.ravel().tolist(), f"{name}_high": high.ravel().tolist()}


def to_frame(columns: Columns) -> Any:
    """The columns as a pandas DataFrame.

    Raises: ImportError where pandas is missing.
    """
    lists = "as_frame=False returns the same columns as lists"
    return load_optional("pandas", f"summary() as a frame ({lists})").DataFrame(columns)
