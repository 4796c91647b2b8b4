"""Advice: the candidates in order, and how a forecast compares with what a run measured."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from .._support.json_text import JsonText
from .._support.validate import one_of, probability, refuse
from .candidates import find_call

# A method that is expected to keep less than a quarter of what can be learned is of no use.
USELESS = 0.75


class ErrorInterval(Protocol):
    """An estimate of an error with its interval, such as a certificate of agents."""

    @property
    def value(self) -> float:
        """The estimate."""
        ...

    @property
    def low(self) -> float:
        """The lower end of its interval."""
        ...

    @property
    def high(self) -> float:
        """The upper end of its interval."""
        ...


@dataclass(frozen=True, kw_only=True)
class Forecast(JsonText):
    """A candidate, and what it is expected to be worth.

    Attributes:
        name: Name of the method.
        low: Excess error in the best of the worlds that agree with what is known, in [0, 1]. The
            excess is over the model of the same kind that is trained on the target without privacy.
            For a mean it is the standard error, as a share of the width of the bounds, and for a
            table the root mean square over its shares of theirs.
        expected: The share `lost` of what can be learned, between low and high.
        high: Excess error in the worst of these worlds.
        lost: The expected excess error as a share of what can be learned, by which candidates are
            ordered, rounded to hundredths: 0 is that model, 1 the best constant, and 2 as much
            worse than that. For means and tables it has two digits, and 1 is the most by which the
            middle of the bounds, or equal shares, may be off.
        useful: Whether the method is expected to keep at least a quarter of what can be learned.
        basis: The formula in words, with its numbers.
        call: The method in a line of Python, which `Advice.run` calls. X and y are the private
            records, pool are the public points, `source_X` and `source_y` are the records of a
            public source, `agents_X` and `agents_y` are the people who answer, bounds and
            `target_bounds` are the public bounds of the columns and of the number, hypotheses is
            the finite class, and learner is any classifier. For a mean or a table `y` and
            `agents_y` are the numbers between `target_bounds`, or the categories from 0 on; several
            means are those of the columns of X, and `questions` are the local.Query about
            them. None for a constant.
        command: The command that does the same on files, where there is one: private.csv or
            panel.csv hold the records, survey.csv the people who answer, pool.csv the public
            points, source.csv a public source, and schema.json is what `hdp-fast schema` writes. A
            mean or a table is that of the column y; agents' numbers lie between 0 and 1 there, and
            categories are the integers from 0 on.

    Examples:
        >>> import hdp_fast
        >>> task = {"n": 3_500, "d": 40, "classes": 10, "pool": 1_000, "target": "same"}
        >>> advice = hdp_fast.advise(**task, epsilon=1.0, changes=False)
        >>> votes = next(one for one in advice.candidates if one.name == "votes")
        >>> votes.expected > advice.best.expected
        True
    """

    name: str
    low: float
    expected: float
    high: float
    lost: float
    useful: bool
    basis: str
    call: str | None
    command: str | None


@dataclass(frozen=True, kw_only=True)
class Comparison(JsonText):
    """A forecast beside what was measured after a run.

    Attributes:
        name: Name of the method.
        forecast: Least and largest error that were expected.
        measured: The measured error.
        interval: Both ends of its interval.
        verdict: "as forecast" where interval and forecast meet; "better" or "worse" otherwise.

    Examples:
        >>> from types import SimpleNamespace
        >>> import hdp_fast
        >>> advice = hdp_fast.advise(n=9_000, d=20, epsilon=1.0, target="same", best_error=0.1)
        >>> certificate = SimpleNamespace(value=0.12, low=0.11, high=0.13)  # transfer.certify
        >>> advice.compare(certificate).verdict
        'as forecast'
    """

    name: str
    forecast: tuple[float, float]
    measured: float
    interval: tuple[float, float]
    verdict: Literal["as forecast", "better", "worse"]

    def __repr__(self) -> str:
        """Both in a line."""
        low, high = self.forecast
        ends = f"{self.interval[0]:.3f} to {self.interval[1]:.3f}"
        measured = f"measured {self.measured:.3f} ({ends})"
        return f"{self.name}: error {low:.3f} to {high:.3f} forecast, {measured}: {self.verdict}"


@dataclass(frozen=True, kw_only=True, repr=False)
class Advice(JsonText):
    """Candidates in order of their expected excess error, before any data are read.

    Attributes:
        candidates: The Forecasts, best first. The constant is among them; what is not useful stands
            behind what is, and what is worse than the constant behind it.
        missing: Methods that cannot run at these sizes, each with the reason.
        changes: What would make another method the first one, in words.
        sizes: The arguments of advise.
        constant_error: Error of the best constant; the largest that is possible if no base rate is
            known.
        room: `constant_error` less `best_error`: the excess error of the constant. It is an upper
            bound if no `best_error` is known, and for means and tables.

    Examples:
        >>> import hdp_fast
        >>> advice = hdp_fast.advise(
        ...     n=2_562, agents=3_356, d=14, epsilon=1.0, base_rate=0.39, changes=False
        ... )
        >>> [one.name for one in advice.candidates][-1], dict(advice.missing)["votes"]
        ('constant', 'there is no pool to label')
    """

    candidates: tuple[Forecast, ...]
    missing: tuple[tuple[str, str], ...]
    changes: tuple[str, ...]
    sizes: Mapping[str, Any]
    constant_error: float
    room: float

    @property
    def best(self) -> Forecast:
        """The first candidate that is useful; the constant where none is."""
        useful = (one for one in self.candidates if one.useful or one.name == "constant")
        return next(useful)

    def run(self, name: str | None = None, /, **data: Any) -> Any:
        """Makes the call of a candidate.

        Args:
            name: Name of the method; None takes the best one.
            data: By keyword, what the call names: X, y, bounds and so on, as Forecast has them.

        Returns:
            What the call returns: a fitted estimator, labels, the result of a run, a Statistic, a
            Histogram, the aggregate of answers, or the weighted mean or shares of both sides.

        Raises:
            ParameterError: No candidate has this name, it is the constant, which has no call, or
                data lack what the call names; what the call raises.

        Guarantee:
            That of the call, which is private by the epsilon and delta of this advice.

        Examples:
            >>> import numpy as np
            >>> import hdp_fast
            >>> rng = np.random.default_rng(0)
            >>> X = rng.uniform(-1, 1, size=(20_000, 3))
            >>> y = (X[:, 0] > 0).astype(int)
            >>> advice = hdp_fast.advise(n=20_000, d=3, epsilon=1.0, target="same", changes=False)
            >>> model = advice.run(X=X, y=y, bounds=(-1, 1))
            >>> bool(model.score(X, y) > 0.95)
            True
        """
        names = [one.name for one in self.candidates]
        wanted = one_of("name", self.best.name if name is None else name, names)
        call = find_call(wanted, self.sizes)
        if call is None:
            refuse("name", wanted, "it must be a method that has a call")
        return call.run(data)

    def compare(self, certificate: ErrorInterval, name: str | None = None) -> Comparison:
        """Puts a measured error beside the forecast.

        Without a `best_error` the forecast reaches from the least excess error up to the error of
        the constant, since no one knows what the best model has.

        Args:
            certificate: Anything with value, low and high: the error on the target and its
                interval, such as transfer.certify returns.
            name: Name of the method that ran; None takes the best one.

        Returns:
            The Comparison.

        Raises:
            ParameterError: certificate is no such object, its numbers are not in [0, 1], or no
                candidate has this name.
        """
        names = [one.name for one in self.candidates]
        wanted = one_of("name", self.best.name if name is None else name, names)
        forecast = self.candidates[names.index(wanted)]
        value, low, high = (_read(certificate, part) for part in ("value", "low", "high"))
        if not low <= value <= high:
            refuse("certificate", certificate, "its value must lie between low and high")
        least, most = self._error_range(forecast)
        verdict: Literal["as forecast", "better", "worse"] = "as forecast"
        if high < least or low > most:
            verdict = "better" if high < least else "worse"
        return Comparison(
            name=wanted,
            forecast=(least, most),
            measured=value,
            interval=(low, high),
            verdict=verdict,
        )

    def _error_range(self, forecast: Forecast) -> tuple[float, float]:
        best = self.sizes["best_error"]
        if self._is_estimate:
            return forecast.low, forecast.high
        if best is None:
            return forecast.low, self.constant_error
        return best + forecast.low, best + forecast.high

    def __repr__(self) -> str:
        """The table, the basis of each forecast, and what to take with other numbers."""
        heads = ("standard error", "") if self._is_estimate else ("kept", "excess error")
        rows: list[tuple[str, ...]] = [("", "method", *heads, "")]
        rows += [self._row(place, one) for place, one in enumerate(self.candidates, 1)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines += ["", self._scale(), ""]
        for one in self.candidates:
            lines += [f"{one.name}: {one.basis}"]
            lines += [f"    {text}" for text in (one.call, one.command) if text is not None]
        lines += [""] * bool(self.missing)
        lines += [f"not possible: {name}, {reason}" for name, reason in self.missing]
        lines += [""] * bool(self.changes)
        parts = (change.rpartition(": ") for change in self.changes)
        lines += [f"with {numbers}, take {name}" for numbers, _, name in parts]
        return "\n".join(lines)

    def _row(self, place: int, one: Forecast) -> tuple[str, ...]:
        useless = "" if one.useful else "of no use"
        if self._is_estimate:
            error = f"{one.expected:.2g} ({one.low:.2g} to {one.high:.2g})"
            return f"{place}.", one.name, error, "", useless
        low, high = (1 - end / self.room for end in (one.high, one.low))
        kept = f"{1 - one.lost:.0%} ({low:.0%} to {high:.0%})"
        excess = f"{one.low:.3f} to {one.high:.3f}, expected {one.expected:.3f}"
        return f"{place}.", one.name, kept, excess, useless

    @property
    def _is_estimate(self) -> bool:
        return self.sizes["learner"] in ("mean", "table")

    def _scale(self) -> str:
        if self._is_estimate:
            is_mean = self.sizes["learner"] == "mean"
            unit = "as a share of the width of the bounds" if is_mean else "of a share, over all"
            return (
                f"The standard error {unit}, for the mean over people of the target; its range is "
                "that of populations\nas far apart as those of real tables. No data was read."
            )
        upper = ", at most" * (self.sizes["best_error"] is None)
        number = " as a share of the variance" * (self.sizes["learner"] == "regression")
        return (
            f"The excess error{number} is that over a model without privacy on the target; the "
            f"constant has {self.room:.3f}{upper}.\nKept is the share of what can be learned: nine "
            "tables in ten were within such a range. No data was read."
        )

    def _to_fields(self) -> Mapping[str, Any]:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {"best": self.best.name, **fields}


def _read(certificate: Any, part: str) -> float:
    if not hasattr(certificate, part):
        refuse("certificate", certificate, "it must have value, low and high")
    value = getattr(certificate, part)
    if isinstance(value, int | float) and value in (0, 1):
        return float(value)
    return probability(f"certificate.{part}", value)
