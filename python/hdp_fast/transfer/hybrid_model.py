"""What a hybrid run plans, and what it releases: model, shifts, calibration, certificates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

from .._support.json_text import JsonText
from .._support.notes import note
from .._support.types import Bits, RandomState
from ..data.rows import Predictor, Rows
from ..exceptions import AgentsExhausted, ParameterError
from ..learners.centered_rows import count_powers
from ..learners.private_model import PrivateModel
from ..local.pool import AgentPool
from ..record import PrivacyRecord
from .agent_plans import plan_shifts
from .calibration import calibrate
from .calibration_plan import CALIBRATION_ROUNDS, count_people
from .calibration_result import CalibratedModel, Method
from .certificate import Certificate, ask_certificate, describe_doubt, find_constants
from .shifts import ShiftReport

Features = Literal["bits", "numbers"]
# The share of the means of the panel's columns in the square of its mu.
SCREEN_SHARE = Fraction(1, 10)
# From this many records times epsilon on, a bit for each cut of a number pays for its noise.
_MANY = 10_000
# Who says what moved, unless even a shift of half a column's range might not show.
SCREEN, _COARSE = 0.3, 0.5
# With fewer people nothing can be calibrated, or certified twice.
_FEWEST_CALIBRATE, _FEWEST_CERTIFY = 60, 20


@dataclass(frozen=True)
class HybridPlan(JsonText):
    """What a HybridRun makes of public numbers, before anybody is asked or anything is spent.

    Attributes:
        features: "bits" or "numbers": what agents hold and the model is made of, `schema.bits` or
            `schema.floats`.
        columns: Number of these features.
        n: Number of the panel's records.
        screen: Number of agents who say what moved; 0 asks no one.
        calibrate: Number of agents who calibrate the model.
        certify: Number of agents who certify it.
        screen_share: Share of the agents who say what moved.
        screen_mu: The mu of the means of the panel's columns, which are a Gaussian mechanism; None
            where no one is asked what moved.
        model_mu: That of the model, and of the look that "auto" takes before. The squares of both
            mu add up to that of the panel's mu.
        agents_epsilon: Privacy parameter of each agent's answer.

    Examples:
        >>> from hdp_fast import transfer
        >>> from hdp_fast.data import Label, Number, Schema
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> run = transfer.HybridRun(schema, epsilon=1.0, delta=1e-6)
        >>> plan = run.plan(n=20_000, agents=60_000, agents_epsilon=2.0)
        >>> plan.features, plan.screen, plan.calibrate, plan.certify
        ('bits', 18000, 24000, 18000)
        >>> plan.rounds  # what moved, the map, its check, both certificates
        4
    """

    features: Features
    columns: int
    n: int
    screen: int
    calibrate: int
    certify: int
    screen_share: float
    screen_mu: float | None
    model_mu: float
    agents_epsilon: float

    @property
    def rounds(self) -> int:
        """How many times questions go out to agents, each time to others, and all at once."""
        return (1 if self.screen else 0) + CALIBRATION_ROUNDS + 1


def choose_features(features: str, n: int, epsilon: float) -> Features:
    """The features of a run; "auto" takes bits where records are many."""
    if features == "auto":
        return "bits" if n * epsilon >= _MANY else "numbers"
    return "bits" if features == "bits" else "numbers"


def split_mu(mu: float) -> tuple[float, float]:
    """The mu of means and that of the model, which together have this one."""
    return mu * math.sqrt(SCREEN_SHARE), mu * math.sqrt(1 - SCREEN_SHARE)


def choose_screen(
    plain: Rows, mu: float, *, n: int, agents: int, agents_epsilon: float, beta: float
) -> float:
    """The share of agents who say what moved; 0 where panel or agents are too few to tell.

    mu: of the means of the panel.
    """
    d = len(plain.names)
    # A quarter of beta each for the noise and for the sampling of the panel's means.
    part = beta / (8 * d)
    distance = math.sqrt(plain.squared_distance(count_powers(squares=False)))
    deviation = distance / (n * mu) if mu else math.inf
    width = math.sqrt(-math.log(part) / (2 * n)) - NormalDist().inv_cdf(part) * deviation
    if 2 * width >= _COARSE:
        return 0.0
    plan = plan_shifts(
        d, shift=_COARSE, agents_epsilon=agents_epsilon, beta=beta, source_width=width
    )
    return SCREEN if int(agents * SCREEN) >= plan.N else 0.0


def share_out(agents: int, columns: int, screen: float, certify: float) -> tuple[int, int, int]:
    """How many agents say what moved, calibrate and certify.

    Raises:
        AgentsExhausted: They are too few for it.
    """
    asked, certifying = int(agents * screen), int(agents * certify)
    calibrating = agents - asked - certifying
    if calibrating < _FEWEST_CALIBRATE or certifying < _FEWEST_CERTIFY:
        rule = f"at least {_FEWEST_CALIBRATE} calibrate a model and {_FEWEST_CERTIFY} certify it"
        left = f"{calibrating:,} to calibrate and {certifying:,} to certify"
        raise AgentsExhausted(f"agents has {agents:,} people, {left}, but {rule}")
    if 0 < asked < columns or (screen and not asked):
        rule = f"each of the schema's {columns:,} features needs one: screen = 0 asks no one"
        raise AgentsExhausted(f"screen asks {asked:,} of {agents:,} people, but {rule}")
    return asked, calibrating, certifying


@dataclass(frozen=True, eq=False)
class HybridModel(JsonText):
    """What a HybridRun releases; all of it may be published.

    Attributes:
        model: The learners.PrivateModel to predict with: that of the panel, calibrated where agents
            have shown that this is better. Its JSON is what `hdp-fast predict` reads.
        panel_model: The PrivateModel of the panel, before any calibration.
        shift: What moved between the panel and the agents; None where no one was asked.
        left_out: Names of the features that were left out of the model.
        plan: How many agents were asked for what, and at which price.
        calibrated: The calibration by agents; None before `repair`. Its model is the description of
            the panel's model, a function of what the agents hold.
        certificates: The errors on the agents, "before" the calibration and, where that changed the
            model, "after" it; empty before `repair`.
        records: What protects the panel, all of its releases in one, and at the end each agent.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import transfer
        >>> from hdp_fast.data import Label, Number, Schema
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 70] * 5_000, "bought": ["no", "yes"] * 5_000}
        >>> run = transfer.HybridRun(schema, epsilon=1.0, delta=1e-6, features="numbers")
        >>> agents = run.simulate(people, n=10_000, epsilon=2.0)
        >>> result = run.run(people, agents)
        >>> result.model.predict({"age": [25, 65]}), len(result.records)
        ([0, 1], 2)
    """

    model: PrivateModel
    panel_model: PrivateModel
    shift: ShiftReport | None
    left_out: tuple[str, ...]
    plan: HybridPlan
    calibrated: CalibratedModel | None
    certificates: Mapping[str, Certificate]
    records: tuple[PrivacyRecord, ...]

    @property
    def panel_predictor(self) -> Predictor:
        """The log-odds by the panel's model in the units of the table.

        A named tuple of an intercept and coefficients by the names of features; for an additive
        model of its cuts, such as "age>=40", and of categories.
        """
        model = self.panel_model
        return model.rows.to_units(model.weights[:, 1] - model.weights[:, 0])

    @property
    def predictor(self) -> Predictor:
        """The calibrated log-odds in the units of the table.

        They hold between the knots of the calibration; beyond them its shift is constant.
        """
        panel = self.panel_predictor
        if self.calibrated is None:
            return panel
        slope, intercept = self.calibrated.slope, self.calibrated.intercept
        slopes = {name: slope * value for name, value in panel.coefficients.items()}
        return Predictor(slope * panel.intercept + intercept, slopes)

    @property
    def deviations(self) -> dict[str, float] | None:
        """What the noise on the panel does to the coefficients of `predictor`, in their units.

        Standard deviations, or bounds on them, by the names of features; for a category that of its
        coefficient less the mean of its column's. The slope of the calibration is taken as it is.
        None where they are not known.
        """
        model = self.panel_model
        if model.deviations is None:
            return None
        slope = 1.0 if self.calibrated is None else abs(self.calibrated.slope)
        entries = slope * model.deviations[:-1, 0] * model.rows.units[0]
        return dict(zip(model.rows.names, entries.tolist(), strict=True))

    @property
    def verdict(self) -> str | None:
        """One sentence on whether the model is shown to be of use; None before `repair`.

        Where it is not, it says what the note of the run says.
        """
        if not self.certificates:
            return None
        certificate = self.certificates[list(self.certificates)[-1]]
        doubt = describe_doubt(certificate)
        if doubt is not None:
            return f"The model is not shown to be better than a constant: {doubt}."
        errs = f"The model errs on {certificate.low:.3f} to {certificate.high:.3f} of the people"
        if certificate.constants is None:
            return f"{errs}."
        return f"{errs}, and the better constant on at least {certificate.constants.low:.3f}."

    def count_people(self, half_width: float) -> int:
        """Counts about how many people make the intervals of the reliability diagram so narrow.

        The people of the whole survey, if they are asked in the shares of this run and score alike:
        as many in each bin as in every other one.

        Args:
            half_width: Half of the width that each interval should have at most, in (0, 1).

        Returns:
            The number of people.

        Raises:
            ParameterError: half_width is out of range, or the model is not calibrated.

        Source:
            Hoeffding 1963 for the sum of the randomized answers that an interval is made of.
        """
        if self.calibrated is None:
            raise ParameterError("the model is not calibrated: pass it to repair before")
        plan = self.plan
        asked = plan.screen + plan.calibrate + plan.certify
        return math.ceil(count_people(self.calibrated, half_width) * asked / plan.calibrate)

    def __repr__(self) -> str:
        lines = [f"HybridModel(n={self.plan.n:,}, {len(self.panel_model.rows.names)} features)"]
        if self.shift is not None:
            moved = f"{len(self.shift.moved)} of {len(self.shift.columns)} features moved"
            lines.append(f"  {moved}, left out: {list(self.left_out)}")
        if self.calibrated is not None:
            lines.append(f"  {self.calibrated!r}")
        return "\n".join(
            [*lines, *(f"  {name}: {one!r}" for name, one in self.certificates.items())]
        )


class Repair(NamedTuple):
    """What agents tell of a model: its calibration, and its errors "before" it and "after" it."""

    calibrated: CalibratedModel
    certificates: dict[str, Certificate]


def repair(
    model: Any,
    agents: AgentPool,
    *,
    count: int,
    certify_count: int = 0,
    method: Method = "logistic",
    beta: float = 0.05,
    random_state: RandomState = None,
) -> Repair:
    """Lets the next agents calibrate a model, and others certify it, if any.

    Where the calibration changes nothing, the model is certified once, by all who certify. After an
    interruption the same call takes up the answers of real agents.

    model: as calibrate takes it, and as certify does where agents certify.
    """
    with agents.keep_answers():
        calibrated = calibrate(
            model, agents, method=method, beta=beta, count=count, random_state=random_state
        )
        if not certify_count:
            return Repair(calibrated, {})
        models = {"before": model}
        if calibrated.outcome == "calibrated":
            models["after"] = calibrated
        each = certify_count // len(models)
        calls = [
            partial(ask_certificate, one, agents, None, None, each, beta, random_state)
            for one in models.values()
        ]
        told = agents.in_one_round(calls, random_state=random_state)
        asked = dict(zip(models, told, strict=True))
    certificates = _share_constants(calibrated, asked, beta)
    doubt = describe_doubt(certificates[list(models)[-1]])
    if doubt is not None:
        note(doubt)
    return Repair(calibrated, certificates)


def _share_constants(
    calibrated: CalibratedModel, asked: Mapping[str, tuple[Certificate, Bits]], beta: float
) -> dict[str, Certificate]:
    """The certificates, with one estimate of the constants' errors by all labels together."""
    answers, ones = calibrated.labels
    answers += sum(len(told) for _, told in asked.values())
    ones += sum(int(told.sum()) for _, told in asked.values())
    constants = find_constants(ones, answers, beta, calibrated.agents_record.epsilon)
    return {
        name: replace(certificate, constants=constants) for name, (certificate, _) in asked.items()
    }
