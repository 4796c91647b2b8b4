"""Noisy sufficient statistics: solved for any number of models, added, and kept in files."""

from __future__ import annotations

import dataclasses
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._support import atomic
from .._support.atomic import describe_kept
from .._support.json_text import JsonObject
from .._support.numbers import finite_rows
from .._support.types import Floats, Integers
from .._support.validate import file_path, from_json, positive, read_only, refuse
from ..data.reading import read_safely
from ..exceptions import ParameterError
from ..record import PrivacyRecord
from .feature_maps import FeatureMap
from .moment_equation import (
    LinearMoments,
    LogisticMoments,
    choose_penalty,
    choose_ridge,
    linear_covariances,
    logistic_covariances,
)
from .statistics_model import PopulationFit, StatisticsModel, feature_text, read_form
from .statistics_noise import note_moments, note_population, stand_out

_ARRAYS = ("sums", "moments")
_ADDED = "; of disjoint people, added; each curator adds its own noise"
_FORMAT = {"format": "hdp_fast.released_statistics", "version": 1}
# The penalty of least squares is at least this multiple of its largest eigenvalue.
_LEAST_RIDGE = 1e-10
# Share of the noise's norm that the penalty leaves unexplained: a fit always takes up some.
_LEFT = 0.9


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedStatistics(JsonObject):
    """The noisy sufficient statistics of linear models, and nothing else about the records.

    SufficientStatistics.release makes them. They may be published: whatever is computed from them
    costs no more privacy. Statistics of disjoint people under one description are added by `+`.

    Attributes:
        features: The public feature map phi, into d columns.
        classes: The K classes in order, shape (K,); None for targets.
        label_bound: Bound on the magnitude of a target; None for classes.
        neighbors: "replace_one" or "add_remove".
        n: Number of records, at least 1. Under "add_remove" it is noisy.
        bits: Features are integers in units of `2**-bits`.
        sums: int64 of shape (d, K), the noisy sum of phi (K e_y - 1)^T in units of `2**-bits`. For
            targets of shape (d, 1), the noisy sum of phi y / label_bound in units of `4**-bits`.
        moments: int64 of shape (d, d), the noisy sum of phi phi^T in units of `4**-bits`. None
            where it was not released.
        sums_deviation: Standard deviation of the noise on an entry of the cross moments.
        moments_deviation: Standard deviation of the noise on the diagonal of the second moments; a
            half of its square is the variance above it. 0 where they were not released.
        count_deviation: Standard deviation of the noise on n; 0 where n is public.
        record: What protects the records; None without noise.

    Guarantee:
        That of the record. A sum of releases is as private as the least private of them, if no
        person is in two of them.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import FeatureMap, ReleasedStatistics, SufficientStatistics
        >>> X, y = np.tile([[0.9, 0.1], [0.1, 0.9]], (5_000, 1)), np.tile([0, 1], 5_000)
        >>> description = SufficientStatistics(FeatureMap.identity(2), classes=[0, 1])
        >>> north = description.release(X, y, epsilon=1.0, delta=1e-6)
        >>> south = description.release(X, y, epsilon=1.0, delta=1e-6)
        >>> both = north + ReleasedStatistics.from_json(south.to_json())
        >>> both.n, both.record.epsilon
        (20000, 1.0)
    """

    features: FeatureMap
    classes: NDArray[Any] | None
    label_bound: float | None
    neighbors: str
    n: int
    bits: int
    sums: Integers
    moments: Integers | None
    sums_deviation: float
    moments_deviation: float
    count_deviation: float
    record: PrivacyRecord | None

    @property
    def cross_moments(self) -> Floats:
        """The noisy sum of phi (e_y - 1/K)^T with centered rows, or that of phi times target."""
        if self.classes is None:
            return self.sums / 4.0**self.bits
        values = self.sums / (2.0**self.bits * len(self.classes))
        centered: Floats = values - values.mean(axis=1, keepdims=True)
        return centered

    @property
    def second_moments(self) -> Floats | None:
        """The noisy sum of phi phi^T; None where it was not released."""
        return None if self.moments is None else self.moments / 4.0**self.bits

    def solve(self, pool: Any = None, *, penalty: float | None = None) -> StatisticsModel:
        """Solves for a model; any number of times, at no cost in privacy.

        With a pool and classes the model is multinomial logistic regression: only its likelihood's
        sums over labels are private, and they are released. The pool stands for the distribution
        of the features. Without a pool, or for targets, it is least squares, whose second moments
        are the released ones, or the pool's.

        The penalty is chosen from released numbers and the pool alone. For logistic regression it
        makes the model explain the released moments up to nine tenths of what noise and sampling
        are expected to make (the discrepancy principle). With released second moments it is the
        norm that their noise has as a matrix. For targets and a pool it is that of the largest
        evidence.

        Args:
            pool: Public records of the same population, unlabeled, as the feature map takes them.
                None takes the released second moments.
            penalty: Weight of `|W|**2` / 2, above 0; None chooses it. With noise no model exists
                for 0, or none that is worth having.

        Returns:
            The model, a frozen StatisticsModel.

        Raises:
            ParameterError: The penalty is not above 0; there is neither a pool nor second moments;
                or an entry of the pool is no number that the feature map takes.
            ShapeError: The pool does not have the columns of the feature map.

        Guarantee:
            Post-processing: nothing about the records is used but the release.

        Cost:
            Some hundred products of the pool's features with (d, K): seconds at d = 784, K = 10.

        Source:
            McCullagh and Nelder 1989 for the moment equation. Morozov 1966 for the discrepancy
            principle. Wang 2018 (AdaSSP) for least squares.
        """
        if penalty is not None:
            penalty = positive("penalty", penalty)
        if pool is None:
            if self.moments is None:
                rule = "second moments were not released: pass public records as pool"
                raise ParameterError(f"pool = None, but {rule}")
            return self._solve_released(penalty)
        if self.features.function is None:
            pool = self.features.read_rows(finite_rows(pool, "pool"), "pool")
        rows = self.features(pool)
        self._check_population(rows)
        if self.classes is None:
            return self._solve_targets(rows, penalty)
        return self._solve_logistic(rows, penalty)

    def _solve_logistic(self, rows: Floats, penalty: float | None) -> StatisticsModel:
        assert self.classes is not None
        classes, mean = len(self.classes), self.cross_moments / self.n
        equation = LogisticMoments(rows, mean + rows.mean(axis=0)[:, None] / classes)
        deviation = self.sums_deviation / self.n
        start = None
        if penalty is None:
            # Sampling of the records and of the pool moves the moments, too.
            values, _ = equation.spectrum
            sampling = values.sum() / classes * (1 / self.n + 1 / len(rows))
            square = (classes - 1) * (len(values) * deviation**2 + sampling)
            largest = math.sqrt(square / (classes - 1)) or _LEAST_RIDGE
            penalty, start = choose_penalty(equation, _LEFT * math.sqrt(square), largest)
        weights = equation.solve(penalty, start).weights
        drift = mean * self.count_deviation / self.n
        covariances = logistic_covariances(equation, weights, penalty, deviation, drift)
        return self._make_model(weights, "logistic", penalty, covariances)

    def _solve_released(self, penalty: float | None) -> StatisticsModel:
        assert self.second_moments is not None
        equation = LinearMoments(self.second_moments / self.n, self.cross_moments / self.n)
        values, _ = equation.spectrum
        if penalty is None:
            # The noise is a symmetric matrix whose norm is about this, and sampling adds to it.
            norm = self.moments_deviation * math.sqrt(2 * len(values)) / self.n
            penalty = max(norm + values.sum() / self.n, values.max() * _LEAST_RIDGE, 1e-300)
        model = self._solve_linear(equation, penalty, self.moments_deviation / self.n)
        return dataclasses.replace(model, population=self._fit_population(equation))

    def _fit_population(self, equation: LinearMoments) -> PopulationFit | None:
        """Least squares without a penalty, with the uncertainty of noise and sampling.

        Only two classes have labels whose mean square is public: it is 1 / 4.
        """
        values, _ = equation.spectrum
        second = self.moments_deviation / self.n
        if self.classes is None or len(self.classes) != 2 or not stand_out(values, second):
            return None
        free = self._solve_linear(equation, 0.0, second)
        rest = 1 / 4 - (equation.moments * free.coefficients).sum(axis=0).max()
        sampling = np.linalg.inv(equation.second) * (max(rest, 0.0) / self.n)
        return PopulationFit(free.coefficients, read_only(free.covariances + sampling))

    def _solve_targets(self, rows: Floats, penalty: float | None) -> StatisticsModel:
        equation = LinearMoments(rows.T @ rows / len(rows), self.cross_moments / self.n)
        if penalty is None:
            values, vectors = equation.spectrum
            squares = ((vectors.T @ equation.moments) ** 2).mean(axis=1)
            records = 1 / (1 / self.n + 1 / len(rows))
            penalty = choose_ridge(values, squares, self.sums_deviation / self.n, records)
        return self._solve_linear(equation, penalty, 0.0)

    def _solve_linear(
        self, equation: LinearMoments, penalty: float, second: float
    ) -> StatisticsModel:
        weights, deviation = equation.solve(penalty).weights, self.sums_deviation / self.n
        if self.classes is not None:
            # Centering rows takes a K-th of the variance away.
            deviation *= math.sqrt(1 - 1 / len(self.classes))
        covariances = linear_covariances(equation, weights, penalty, deviation, second)
        return self._make_model(weights, "linear", penalty, covariances)

    def _make_model(
        self, weights: Floats, link: Any, penalty: float, covariances: Floats
    ) -> StatisticsModel:
        return StatisticsModel(
            features=self.features,
            classes=self.classes,
            coefficients=read_only(weights),
            link=link,
            penalty=penalty,
            label_bound=self.label_bound,
            covariances=read_only(covariances),
            record=self.record,
        )

    def _check_population(self, rows: Floats) -> None:
        """Warn where the pool is not what the records are, as far as the release shows it."""
        second = self.second_moments
        if second is not None:
            pool = rows.T @ rows / len(rows)
            note_population(second / self.n, pool, self.n, len(rows), self.moments_deviation)
        elif self.classes is not None:
            classes = len(self.classes)
            moments = self.cross_moments / self.n + rows.mean(axis=0)[:, None] / classes
            note_moments(moments, rows, self.n, self.sums_deviation)

    def __add__(self, other: object) -> ReleasedStatistics:
        """Adds the statistics of other people, released under the same description.

        Args:
            other: Statistics of the same features, classes, bits and neighbor relation. No person
                may be in both.

        Returns:
            The statistics of both, whose noise has the sum of both variances.

        Raises:
            ParameterError: The descriptions differ; the sums leave the range of int64; or under
                "add_remove" one release is for people and the other for rows.

        Guarantee:
            Parallel composition: the larger epsilon and the larger delta, since every person is in
            one of the two. Each curator adds noise of its own, so that no one trusts the other. If
            one release is for people, by ids, and the other for rows, both are for rows: the
            record's relation is "replace_one", and it names the rows a person of each.
        """
        if not isinstance(other, ReleasedStatistics):
            return NotImplemented
        self._refuse_other_description(other)
        n = self.n + other.n
        total = None if self.moments is None else _add("moments", self.moments, other.moments)
        return dataclasses.replace(
            self,
            n=n,
            sums=_add("sums", self.sums, other.sums),
            moments=total,
            sums_deviation=math.hypot(self.sums_deviation, other.sums_deviation),
            moments_deviation=math.hypot(self.moments_deviation, other.moments_deviation),
            count_deviation=math.hypot(self.count_deviation, other.count_deviation),
            record=_join(self.record, other.record),
        )

    def _refuse_other_description(self, other: ReleasedStatistics) -> None:
        mine, theirs = self._description(), other._description()
        for name, value in mine.items():
            if value != theirs[name]:
                raise ParameterError(
                    f"{name} differs between the two releases, but only statistics of one "
                    "description can be added"
                )

    def _description(self) -> dict[str, Any]:
        return {
            "features": self.features,
            "classes": None if self.classes is None else self.classes.tolist(),
            "label_bound": self.label_bound,
            "neighbors": self.neighbors,
            "bits": self.bits,
            "second_moments": self.moments is not None,
        }

    def save(self, path: str | Path) -> None:
        """Writes the statistics to a .npz file, without pickle.

        Args:
            path: Where to write; an existing file is replaced.

        Raises:
            OSError: The file cannot be written.
            ParameterError: path is no path, or that of a file of state, a log of one, or a saved
                labeler.
        """
        target = file_path("path", path)
        kept = describe_kept(target)
        if kept is not None:
            refuse("path", str(path), f"it must not be {kept}, which nothing replaces")
        fields = {name: value for name, value in self._to_fields().items() if name not in _ARRAYS}
        arrays = {name: getattr(self, name) for name in _ARRAYS if getattr(self, name) is not None}
        content = io.BytesIO()
        np.savez_compressed(content, text=np.array(json.dumps(fields)), **arrays)
        atomic.replace(target, lambda file: file.write(content.getvalue()))

    @classmethod
    def load(cls, path: str | Path, *, features: FeatureMap | None = None) -> Self:
        """Reads statistics that `save` wrote.

        Args:
            path: The .npz file.
            features: The feature map, where it is one of a function, which no file holds.

        Returns:
            The statistics.

        Raises:
            ParameterError: The file cannot be read or holds something else, or the feature map is
                missing.
        """
        source = file_path("path", path)
        with read_safely(f"path = {str(source)!r}", "file that ReleasedStatistics.save wrote"):
            content = io.BytesIO(source.read_bytes())
        with read_safely("path", "file that ReleasedStatistics.save wrote"):
            with np.load(content, allow_pickle=False) as arrays:
                parts = {name: arrays[name] for name in (*_ARRAYS, "text") if name in arrays}
            text = str(parts.pop("text")[()])
        return cls._read("path", text, "ReleasedStatistics.save", parts, features)

    @classmethod
    def from_json(cls, text: str, *, features: FeatureMap | None = None) -> Self:
        """Reads the statistics that `to_json` wrote.

        Args:
            text: A JSON object.
            features: The feature map, where it is one of a function, which no text holds.

        Returns:
            The statistics.

        Raises:
            ParameterError: The text is not what `to_json` wrote, or the feature map is missing.
        """
        return cls._read("text", text, "ReleasedStatistics.to_json", {}, features)

    @classmethod
    def _read(
        cls, name: str, text: str, writer: str, parts: dict[str, Any], features: FeatureMap | None
    ) -> Self:
        return from_json(
            name,
            text,
            writer,
            lambda fields: cls._from_fields(
                {"moments": None} | read_form(fields, _FORMAT, features) | parts
            ),
        )

    def _to_fields(self) -> Mapping[str, Any]:
        record = None if self.record is None else dataclasses.asdict(self.record)
        arrays = {
            name: None if value is None else value.tolist()
            for name, value in vars(self).items()
            if name in (*_ARRAYS, "classes")
        }
        described = {"features": feature_text(self.features), "record": record}
        return {**_FORMAT, **vars(self), **arrays, **described}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        record, classes = fields["record"], fields["classes"]
        arrays = {
            name: None if fields[name] is None else read_only(np.array(fields[name], np.int64))
            for name in _ARRAYS
        }
        named = {
            "classes": None if classes is None else read_only(np.array(classes)),
            "record": None if record is None else PrivacyRecord(**record),
        }
        statistics = cls(**{**fields, **arrays, **named})
        statistics._check_shapes()
        return statistics

    def _check_shapes(self) -> None:
        columns = self.features.columns
        width = 1 if self.classes is None else len(self.classes)
        square = self.moments is None or self.moments.shape == (columns, columns)
        if self.sums.shape != (columns, width) or not square or self.n < 1:
            raise ParameterError("text has arrays of other shapes than its features and classes")

    def __repr__(self) -> str:
        kind = "targets" if self.classes is None else f"{len(self.classes)} classes"
        second = "" if self.moments is None else ", second moments"
        price = (
            "no noise"
            if self.record is None
            else f"epsilon={self.record.epsilon:g}, delta={self.record.delta:g}"
        )
        sizes = f"n={self.n:,}, {self.features.columns} columns, {kind}{second}"
        noise = f"noise of deviation {self.sums_deviation:.4g} on each sum"
        return f"ReleasedStatistics({sizes}, {price}): {noise}"


def _add(name: str, first: Integers, second: Any) -> Integers:
    """Add integers; refuse those whose sum int64 does not hold."""
    largest = int(np.abs(first).max()) + int(np.abs(second).max())
    if largest >= 1 << 63:
        raise ParameterError(f"{name} of both releases together must stay below 2**63")
    return read_only(first + second)


def _join(first: PrivacyRecord | None, second: PrivacyRecord | None) -> PrivacyRecord | None:
    """State what protects the people of both, in whichever order they are added."""
    if first is None or second is None:
        return None
    records = first, second
    parts = {part for record in records for part in record.mechanism.split(_ADDED)[0].split("; ")}
    return dataclasses.replace(
        first,
        mechanism="; ".join(sorted(parts)) + _ADDED,
        source="parallel composition, McSherry 2009; " + first.source.split("2009; ")[-1],
        neighbors=_weaker(first.neighbors, second.neighbors),  # type: ignore[arg-type]
        epsilon=max(first.epsilon, second.epsilon),
        delta=max(first.delta, second.delta),
        noise="rounded normal on integers, of each curator",
        rng=first.rng if first.rng == second.rng else max(first.rng, second.rng, key=len),
        version=min(first.version, second.version),
        law=first.law if first.law == second.law else None,
        mu=max(first.mu, second.mu) if first.mu and second.mu else None,
    )


def _weaker(first: str, second: str) -> str:
    """The relation under which both releases protect."""
    relations = {first, second}
    if len(relations) == 1:
        return first
    if relations == {"replace_one", "replace_person"}:
        # Whatever a person's rows hold is protected: so is whatever one of them holds.
        return "replace_one"
    # One row of a person more is no person more, and moves rows that protected whole people alone.
    rule = "releases for people and for rows have no relation in common that adds or removes"
    raise ParameterError(f"neighbors are {' and '.join(sorted(relations))}, but {rule}")
