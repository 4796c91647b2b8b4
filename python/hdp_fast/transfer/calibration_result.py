"""The result of a calibration: a model, what it was fitted to, and what speaks for it.

The map of every result, whatever its method, is a score plus a shift that is linear between knots
and constant beyond the first and the last: `f(s) = s + interp(s, knots, shifts)`. How far the map
goes is part of the shifts already. No knots are the score itself. The map never falls.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonText
from .._support.types import Floats
from .._support.validate import finite_number, from_json, numbers, one_of
from ..learners.descriptions import Description, check_map
from ..learners.scores import describe_calibrated, score_of, shift_scores
from ..record import PrivacyRecord

Method = Literal["logistic", "isotonic"]
Outcome = Literal["calibrated", "no evidence", "worse when checked"]
_OUTCOMES = ("calibrated", "no evidence", "worse when checked")


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram(JsonText):
    """What agents say about the probabilities that a model predicts, in bins of its scores.

    Bins are bounded by public or released thresholds. The intervals hold for every population that
    the agents who answer are an independent sample of. A rate is a quotient of differences of
    shares. The interval is what two bounds leave of [0, 1]: Clopper-Pearson intervals of the
    randomized bits of each share, whose ends are combined, and Hoeffding's inequality for all of
    them at once. It is wide where epsilon is small, since few questions tell of a bin.

    Attributes:
        edges: The bounds of the k bins, float array of shape (k - 1,).
        before: Mean probability in each bin by the model as it was, shape (k,).
        after: Mean probability in each bin by the calibrated model, shape (k,).
        rates: Estimated share of label 1 in each bin, shape (k,), moved into its interval.
        low: Lower ends of the intervals, shape (k,).
        high: Upper ends of the intervals, shape (k,).
        shares: Estimated share of the target in each bin, shape (k,).
        beta: Probability with which the interval of one bin may miss.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> scores = np.random.default_rng(0).normal(-1, 2, 60_000)
        >>> y = np.random.default_rng(1).random(60_000) < 1 / (1 + np.exp(1.5 - scores))
        >>> agents = local.Agents(scores[:, None], y, epsilon=4.0)
        >>> result = transfer.calibrate(lambda X: X[:, 0], agents)
        >>> diagram = result.reliability
        >>> len(diagram.edges), bool((diagram.before > diagram.after)[1:].all())
        (7, True)
    """

    edges: Floats
    before: Floats
    after: Floats
    rates: Floats
    low: Floats
    high: Floats
    shares: Floats
    beta: float

    def __repr__(self) -> str:
        rows = zip(self.before, self.after, self.rates, self.low, self.high, strict=True)
        bins = ", ".join(
            f"{b:.2f} -> {a:.2f} ({r:.2f} in [{lo:.2f}, {hi:.2f}])" for b, a, r, lo, hi in rows
        )
        return f"ReliabilityDiagram({len(self.rates)} bins: {bins})"

    @property
    def tells_nothing(self) -> bool:
        """Whether every interval is all of [0, 1]."""
        return bool((self.low <= 0).all() and (self.high >= 1).all())


def diagram_of(fields: Mapping[str, Any]) -> ReliabilityDiagram:
    """Read a diagram from the fields that to_json wrote."""
    arrays = {name: np.array(value, float) for name, value in fields.items() if name != "beta"}
    return ReliabilityDiagram(**arrays, beta=float(fields["beta"]))


class Check(NamedTuple):
    """What the agents who were held out say of the map that was fixed before.

    Attributes:
        difference: Estimated mean log loss of that map less that of the model as it was. Savings
            beyond a public bound count as that much, so that the truth is not above what is
            estimated here.
        low: Lower end of an interval for it, missed with probability at most beta.
        high: Upper end, missed with probability at most beta.
        low_any: Lower end of an interval that assumes nothing about those who did not answer: it
            holds for all who were asked. With everybody's answer it is the other one.
        high_any: Upper end of that interval.
        agents: Number of answers.
        asked: Number of agents who were asked.
    """

    difference: float
    low: float
    high: float
    low_any: float
    high_any: float
    agents: int
    asked: int


@dataclass(frozen=True, eq=False)
class CalibratedModel(JsonText):
    """What calibrate returns: a model whose log-odds are a map of the score of another one.

    The log-odds of label 1 are the score plus a shift, which is linear between `knots` and constant
    beyond the first and the last of them: no one was asked about what lies there. Between the knots
    of the logistic method they are `slope * score + intercept`.

    Attributes:
        model: The model whose scores are mapped; it is not written by to_json.
        method: "logistic" or "isotonic".
        outcome: "calibrated", if only in part, as `step` says; or "no evidence" or "worse when
            checked", for which the model is returned as it was.
        slope: Slope of the map, at least 0; 1 where the model is returned as it was.
        intercept: Intercept of the map; 0 where the model is returned as it was.
        slope_error: Standard deviation of the fitted slope.
        intercept_error: Standard deviation of the fitted intercept.
        fitted: Slope and intercept of largest posterior.
        step: How far the map goes from the model as it was (0) to the fitted map (1).
        agents_needed: Roughly how many agents would let the map go nearly all the way, if the fit
            is right; None where it does, where it is worse, or where no greater number is known.
        tolerance: The log loss by which the result may be worse than the model as it was.
        beta: Probability with which it may be worse by more.
        expected_gain: How much less log loss than before the fit expects of the map on the target.
        knots: Increasing scores between which the shift is linear, shape (k,): two for "logistic".
            Empty where the model is returned as it was.
        shifts: What is added to the score at the knots, shape (k,), and beyond them.
        check: What the agents who were held out say of the map that the others' answers gave,
            before it was shortened to the step that they allow.
        reliability: Rates of label 1 in bins of the score.
        thresholds: The thresholds that the agents were asked about.
        agents: Number of agents asked.
        answers: Number of answers that arrived.
        record: PrivacyRecord of the model, if it has one: what protects the curator's records.
        agents_record: PrivacyRecord of each agent's answer.
        labels: How many of the answers were about the label alone, and how many of these randomized
            bits were 1.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> scores = np.random.default_rng(0).normal(0, 2, 60_000)
        >>> y = np.random.default_rng(1).random(60_000) < 1 / (1 + np.exp(2 - scores))
        >>> agents = local.Agents(scores[:, None], y, epsilon=4.0)
        >>> score = lambda X: X[:, 0]  # the model, a log-odds that is too high by 2
        >>> result = transfer.calibrate(score, agents)
        >>> result.outcome, result.intercept < -1
        ('calibrated', True)
        >>> result.predict(np.array([[1.0], [4.0]]))
        array([0, 1], dtype=uint8)
        >>> again = transfer.CalibratedModel.from_json(result.to_json(), score)
        >>> again.intercept == result.intercept
        True
    """

    model: Any
    method: Method
    outcome: Outcome
    slope: float
    intercept: float
    slope_error: float
    intercept_error: float
    fitted: tuple[float, float]
    step: float
    agents_needed: int | None
    tolerance: float
    beta: float
    expected_gain: float
    knots: Floats
    shifts: Floats
    check: Check
    reliability: ReliabilityDiagram
    thresholds: Floats
    agents: int
    answers: int
    record: PrivacyRecord | None
    agents_record: PrivacyRecord
    labels: tuple[int, int] = (0, 0)

    @property
    def hypothesis(self) -> Description | None:
        """The description by which real agents can be asked about it, a dict that JSON can carry.

        None where the model has none, as for scores by predict_proba or a function. Its score is
        that of "model", as a term score_above of a query carries it, plus a shift: "shifts" at the
        increasing "knots", linear between them, the first and the last one beyond, and 0 where
        there are none. It predicts 1 where that is at least 0. For a map that does not fall this is
        a threshold of the model's score.
        """
        return describe_calibrated(self.model, self.knots, self.shifts)

    @property
    def feature_names_in_(self) -> Any:
        """Names of the columns of the frame that the model was learned from, or None."""
        return getattr(self.model, "feature_names_in_", None)

    def scores(self, X: Any) -> Floats:
        """Computes the log-odds of label 1.

        Args:
            X: Records of shape (m, d), as the model takes them.

        Returns:
            A float64 array of shape (m,). It grows with the model's score.

        Raises:
            Exception: What the model raises about records that do not fit.
        """
        return self.apply(score_of(self.model)(X))

    def apply(self, scores: Floats) -> Floats:
        """Maps scores of the model to log-odds of label 1.

        Args:
            scores: Scores, float64 of any shape.

        Returns:
            A float64 array of that shape.
        """
        values = numbers("scores", scores).astype(np.float64)
        return shift_scores(values, self.knots, self.shifts)

    def predict_proba(self, X: Any) -> Floats:
        """Computes the probabilities of labels 0 and 1.

        Args:
            X: Records of shape (m, d), as the model takes them.

        Returns:
            A float64 array of shape (m, 2).

        Raises:
            Exception: What the model raises about records that do not fit.
        """
        odds = self.scores(X)
        # No probability is rounded to 0, whose log loss would be infinite.
        return np.exp(-np.logaddexp(0.0, np.stack([odds, -odds], axis=1)))

    def predict(self, X: Any) -> NDArray[np.uint8]:
        """Predicts 1 where that is at least as probable as 0.

        Args:
            X: Records of shape (m, d), as the model takes them.

        Returns:
            A uint8 array of shape (m,).

        Raises:
            Exception: What the model raises about records that do not fit.
        """
        return (self.scores(X) >= 0).view(np.uint8)

    def _to_fields(self) -> Mapping[str, Any]:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["check"] = self.check._asdict()
        return {name: part for name, part in fields.items() if name != "model"}

    @classmethod
    def from_json(cls, text: str, model: Any) -> CalibratedModel:
        """Reads the result that to_json wrote.

        Args:
            text: The JSON object.
            model: The model that was calibrated, or one restored from its description.

        Returns:
            The CalibratedModel.

        Raises:
            ParameterError: text is not such an object, or the model has no score.
        """
        score_of(model)
        return from_json("text", text, "CalibratedModel.to_json", lambda f: _restore(cls, f, model))

    def __repr__(self) -> str:
        name = f"CalibratedModel of {type(self.model).__name__}"
        asked = f"{self.answers:,} answers of {self.agents:,} agents"
        promise = (
            f"at most {self.tolerance:g} of log loss behind with probability {1 - self.beta:g}"
        )
        check = self.check
        checked = f"checked: {check.difference:+.2g} in [{check.low:.2g}, {check.high:.2g}]"
        if check.agents < check.asked:
            checked += f", [{check.low_any:.2g}, {check.high_any:.2g}] whoever did not answer"
        if self.outcome == "no evidence":
            text = f"as it was, since {asked} do not show a better map; {checked}"
            return f"{name}: {text}{self._say_enough()}"
        if self.outcome == "worse when checked":
            return f"{name}: as it was, since the fitted map is worse; {checked}; {asked}"
        slope = f"slope {self.slope:.3g} (fitted {self.fitted[0]:.3g} +- {self.slope_error:.2g})"
        height = f"intercept {self.intercept:.3g} (fitted {self.fitted[1]:.3g} +- "
        gain = f"expected to lower log loss by {self.expected_gain:.2g}"
        method = "" if self.method == "logistic" else "monotone map, "
        map_ = f"{method}{slope}, {height}{self.intercept_error:.2g}), step {self.step:.2g}"
        return f"{name}: {map_}{self._say_enough()}, {gain}, {promise}; {checked}; {asked}"

    def _say_enough(self) -> str:
        needed = self.agents_needed
        return "" if needed is None else f" (roughly {needed:,} agents for nearly the whole way)"


def _restore(cls: type[CalibratedModel], fields: dict[str, Any], model: Any) -> CalibratedModel:
    one_of("outcome", fields["outcome"], _OUTCOMES)
    one_of("method", fields["method"], ("logistic", "isotonic"))
    check_map(fields["knots"], fields["shifts"])
    numbers = (
        "slope", "intercept", "slope_error", "intercept_error", "step", "tolerance", "beta",
        "expected_gain",
    )  # fmt: skip
    changed = {name: finite_number(name, fields[name]) for name in numbers}
    arrays = {name: np.array(fields[name], float) for name in ("knots", "shifts", "thresholds")}
    check = Check(**{name: _number(part) for name, part in fields["check"].items()})
    return cls(
        **fields
        | changed
        | arrays
        | {
            "model": model,
            "fitted": (float(fields["fitted"][0]), float(fields["fitted"][1])),
            "check": check,
            "labels": tuple(fields.get("labels", (0, 0))),
            "reliability": diagram_of(fields["reliability"]),
            "record": None if fields["record"] is None else PrivacyRecord(**fields["record"]),
            "agents_record": PrivacyRecord(**fields["agents_record"]),
        }
    )


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value
