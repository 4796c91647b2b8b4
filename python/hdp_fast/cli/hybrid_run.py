"""What hdp-fast hybrid runs: screen, learn, calibrate, certify, each person asked once."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import local, transfer
from .._support.random_state import check_random_state
from .._support.types import Bits, Floats
from .._support.validate import number, refuse
from ..accounting.noisy_sums import calibrate_means
from ..budget.account import Budget
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import AgentsExhausted, ParameterError
from ..learners.linear_model import LinearModel
from ..learners.scores import score_of
from ..learners.sgd import PrivateSGD
from ..record import PrivacyRecord
from ..transfer.column_means import squared_distance
from .centered_features import CenteredFeatures
from .scaled_features import Predictor


class Counts(NamedTuple):
    """How many people of the survey are asked for what."""

    screen: int
    calibrate: int
    certify: int


# What of the panel's epsilon and delta the means of its columns take.
_SCREEN_PRICE = 0.2
# The accounting of gradients states no epsilon below 1e-9.
_LEAST_EPSILON = 1e-8
# From this many records times epsilon on, a bit for each cut of a number pays for its noise.
_MANY = 10_000
# Who says what moved, unless even a shift of half a column's range might not show.
_SCREEN, _COARSE = 0.3, 0.5
FEATURES = ("auto", "bits", "numbers")
# With fewer people nothing can be calibrated, or certified twice.
_FEWEST = Counts(screen=0, calibrate=60, certify=20)


@dataclass(frozen=True)
class Shares:
    """Which shares of the survey say what moved, and how often the model errs; the rest calibrates.

    Without a share to screen it is .3, or 0 where public numbers tell that little would be seen.

    Raises:
        ParameterError: A share is out of range, or nobody is left to calibrate.
    """

    screen: float | None = None
    certify: float = 0.3

    def __post_init__(self) -> None:
        """Validate the shares."""
        screen = _SCREEN if self.screen is None else self.screen
        if not 0 <= number("--screen", screen) < 1:
            refuse("--screen", self.screen, "it must lie in [0, 1)")
        if not 0 < number("--certify", self.certify) < 1:
            refuse("--certify", self.certify, "it must lie in (0, 1)")
        if screen + self.certify >= 1:
            rule = "together they must be below 1, so that some people calibrate the model"
            raise ParameterError(
                f"--screen = {screen:g} and --certify = {self.certify:g}, but {rule}"
            )


@dataclass(frozen=True)
class Settings:
    """What is set in public before any file is read."""

    epsilon: float
    delta: float
    agents_epsilon: float
    beta: float
    shares: Shares
    seed: int | None
    features: str = "auto"

    def __post_init__(self) -> None:
        """Validate what the flags alone do not show."""
        check_random_state(self.seed)
        if self.epsilon < _LEAST_EPSILON:
            refuse("--epsilon", self.epsilon, f"it must be at least {_LEAST_EPSILON:g}")
        local.agents_needed(alpha=0.5, beta=0.5, epsilon=self.agents_epsilon)

    @property
    def screen_price(self) -> tuple[float, float]:
        """Epsilon and delta of the means of the panel's columns."""
        return self.epsilon * _SCREEN_PRICE, self.delta * _SCREEN_PRICE

    @property
    def model_price(self) -> tuple[float, float]:
        """Epsilon and delta of the model; with those of the means they never exceed the total."""
        if not self.shares.screen:
            return self.epsilon, self.delta
        pairs = zip((self.epsilon, self.delta), self.screen_price, strict=True)
        epsilon, delta = (math.nextafter(total - part, 0) for total, part in pairs)
        return epsilon, delta

    def as_dict(self) -> dict[str, Any]:
        """All of them, for the summary."""
        fields = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if field.name != "shares"
        }
        return {
            **fields,
            "screen_share": self.shares.screen,
            "certify_share": self.shares.certify,
            "model": "logistic regression by noisy gradients (learners.PrivateSGD)",
        }


@dataclass(frozen=True)
class HybridModel:
    """What a run releases.

    Attributes:
        features: The features of the model, without the columns that were left out.
        linear: The model of the panel.
        calibrated: The model of the survey's people.
        shift: What moved; None where nobody was asked.
        left_out: Names of the features that were left out.
        certificates: The errors on the survey's people, "before" calibration and, where that
            changed the model, "after" it.
        records: What protects the panel, and then each person of the survey.
    """

    features: CenteredFeatures
    linear: LinearModel
    calibrated: transfer.CalibratedModel
    shift: transfer.ShiftReport | None
    left_out: tuple[str, ...]
    certificates: dict[str, transfer.Certificate]
    records: Sequence[PrivacyRecord]

    def predictors(self) -> tuple[Predictor, Predictor]:
        """The log-odds in the units of the table: by the panel's model, and calibrated.

        The latter hold between the knots of the calibration; beyond them its shift is constant.
        """
        panel = self.features.predictor(self.linear.weights)
        slope, intercept = self.calibrated.slope, self.calibrated.intercept
        slopes = {name: slope * value for name, value in panel.coefficients.items()}
        return panel, Predictor(slope * panel.intercept + intercept, slopes)

    def probabilities(self, table: Table) -> Floats:
        """The calibrated probability of label 1 for each row."""
        shares: Floats = self.calibrated.predict_proba(self.features.rows(table))[:, 1]
        return shares


class HybridRun:
    """A run on two tables; whatever can be refused is refused when it is made."""

    def __init__(self, schema: Schema, panel: Table, survey: Table, settings: Settings):
        """Reads features and labels, and checks that records and people are enough.

        Raises:
            ParameterError: A table lacks a column, or the label is a number between bounds.
            AgentsExhausted: The survey has too few people for the shares.
        """
        self.schema, self.settings, self._panel = schema, settings, panel
        self.budget: Budget | None = None
        self._labels = schema.labels(panel)
        # Questions go to agents in order, and files are often sorted. The new order does not depend
        # on the rows.
        order = np.random.default_rng(0).permutation(survey.rows)
        self._survey = survey.select(order)
        self._answers = schema.labels(self._survey)
        self.rows, self.people = panel.rows, survey.rows
        self._features = CenteredFeatures.around_middle(schema, self._choose_bits())
        self._plain = self._features.plain_rows(self._survey)
        if settings.shares.screen is None:
            shares = Shares(self._choose_screen(), settings.shares.certify)
            self.settings = dataclasses.replace(settings, shares=shares)
        schema.floats(panel.select(np.arange(1)))
        self.counts = self._share_out()
        self._check_prices()

    def run(self, budget: Budget | None) -> HybridModel:
        """Screens, learns, calibrates and certifies."""
        if budget is not None:
            budget = budget.sequential(
                self.settings.epsilon, self.settings.delta, name="hdp-fast hybrid"
            )
        self.budget = budget
        stream = self._stream()
        shift, center = self._screen(budget, stream)
        left_out = () if shift is None else shift.droppable
        whole = dataclasses.replace(self._features, center=center)
        features = whole.without(left_out)
        linear = self._learn(features, budget, stream)
        agents = self._agents(features)
        calibrated, certificates = self._repair(linear, agents, stream)
        panel = [record for record in (shift and shift.record, linear.record) if record]
        return HybridModel(
            features=features,
            linear=linear,
            calibrated=calibrated,
            shift=shift,
            left_out=() if features is whole else left_out,
            certificates=certificates,
            records=[*panel, agents.record(self.settings.seed)],
        )

    @property
    def features(self) -> str:
        """What the features are: "bits" or "numbers"."""
        return "bits" if self._features.bits else "numbers"

    def _choose_bits(self) -> bool:
        if self.settings.features == "auto":
            return self.rows * self.settings.epsilon >= _MANY
        return self.settings.features == "bits"

    def _choose_screen(self) -> float:
        """The share that says what moved; 0 where panel or survey are too small for it."""
        settings, d = self.settings, len(self._features.names)
        epsilon, delta = settings.screen_price
        price = squared_distance(self.schema, self._features.bits)
        bits, sigma = calibrate_means(price, n=self.rows, epsilon=epsilon, delta=delta)
        # A quarter of beta each for the noise and for the sampling of the panel's means.
        part = settings.beta / (8 * d)
        noise = -NormalDist().inv_cdf(part) * float(sigma) / (2.0**bits * self.rows)
        width = noise + math.sqrt(-math.log(part) / (2 * self.rows))
        if 2 * width >= _COARSE:
            return 0.0
        plan = transfer.plan_shifts(
            d,
            shift=_COARSE,
            agents_epsilon=settings.agents_epsilon,
            beta=settings.beta,
            source_width=width,
        )
        return _SCREEN if int(self.people * _SCREEN) >= plan.N else 0.0

    def _stream(self) -> Any:
        """One stream for the whole run; None draws from the operating system."""
        seed = self.settings.seed
        return None if seed is None else np.random.default_rng(seed)

    def _share_out(self) -> Counts:
        people, shares = self.people, self.settings.shares
        screen, certify = int(people * (shares.screen or 0.0)), int(people * shares.certify)
        counts = Counts(screen, people - screen - certify, certify)
        if counts.calibrate < _FEWEST.calibrate or counts.certify < _FEWEST.certify:
            rule = (
                f"at least {_FEWEST.calibrate} calibrate a model and {_FEWEST.certify} certify it"
            )
            left = f"{counts.calibrate:,} to calibrate and {counts.certify:,} to certify"
            raise AgentsExhausted(f"SURVEY has {people:,} people, {left}, but {rule}")
        columns = len(self._features.names)
        if 0 < screen < columns or (shares.screen and not screen):
            rule = f"each of the schema's {columns:,} features needs one: --screen 0 asks nobody"
            raise AgentsExhausted(f"--screen asks {screen:,} of {people:,} people, but {rule}")
        return counts

    def _check_prices(self) -> None:
        """Refuses an epsilon or delta for which no noise is enough, before anything is spent."""
        self._make_learner().plan(n=self.rows, d=len(self._features.names) + 1)
        if self.counts.screen:
            epsilon, delta = self.settings.screen_price
            price = squared_distance(self.schema, self._features.bits)
            calibrate_means(price, n=self.rows, epsilon=epsilon, delta=delta)

    def _make_learner(self) -> PrivateSGD:
        epsilon, delta = self.settings.model_price
        return PrivateSGD(loss="logistic", epsilon=epsilon, delta=delta)

    def _screen(
        self, budget: Budget | None, stream: Any
    ) -> tuple[transfer.ShiftReport | None, Floats]:
        """What moved, and the released means of the panel, or the middle where there are none."""
        if not self.counts.screen:
            return None, self._features.center
        epsilon, delta = self.settings.screen_price
        means = transfer.release_means(
            self._panel,
            epsilon=epsilon,
            delta=delta,
            schema=self.schema,
            bits=self._features.bits,
            budget=budget,
            random_state=stream,
        )
        part = slice(0, self.counts.screen)
        agents = self._pool(self._plain[part], self._answers[part])
        report = transfer.shifted_columns(
            means, agents, beta=self.settings.beta, random_state=stream
        )
        return report, means.means

    def _learn(self, features: CenteredFeatures, budget: Budget | None, stream: Any) -> LinearModel:
        learner = dataclasses.replace(self._make_learner(), norm_bound=features.norm_bound)
        model = learner.learn(
            features.rows(self._panel), self._labels, budget=budget, random_state=stream
        )
        assert isinstance(model, LinearModel)
        return model

    def _agents(self, features: CenteredFeatures) -> local.Agents:
        """The people who have not been asked, with the features of the model."""
        rest = slice(self.counts.screen, None)
        rows = features.rows(self._survey.select(np.arange(self.people)[rest]))
        return self._pool(rows, self._answers[rest])

    def _pool(self, rows: NDArray[Any], labels: Bits) -> local.Agents:
        return local.Agents(rows, labels, epsilon=self.settings.agents_epsilon)

    def _repair(
        self, linear: LinearModel, agents: local.Agents, stream: Any
    ) -> tuple[transfer.CalibratedModel, dict[str, transfer.Certificate]]:
        """Calibrates the model, and certifies it as it was and as it is."""
        beta, counts = self.settings.beta, self.counts
        # The model without the bound on norms: a linear function of the table's columns.
        description = {"kind": "linear", "weights": linear.weights.tolist(), "bias": 0.0}
        calibrated = transfer.calibrate(
            description, agents, beta=beta, count=counts.calibrate, random_state=stream
        )
        models: dict[str, Any] = {"before": _Predictions(score_of(description))}
        if calibrated.outcome == "calibrated":
            models["after"] = calibrated
        certificates = {
            name: transfer.certify(
                model,
                agents,
                count=counts.certify // len(models),
                beta=beta,
                random_state=stream,
            )
            for name, model in models.items()
        }
        return calibrated, certificates


class _Predictions:
    """The labels that a score predicts."""

    def __init__(self, score: Callable[[Any], Floats]):
        self._score = score

    def predict(self, rows: Any) -> Bits:
        """Predicts 1 where the score is at least 0."""
        return (self._score(rows) >= 0).view(np.uint8)
