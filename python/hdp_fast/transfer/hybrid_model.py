"""What a hybrid run releases: the model, what moved, its calibration and its certificates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._support.json_text import JsonText
from ..learners.private_model import PrivateModel
from ..learners.unit_rows import Predictor
from ..record import PrivacyRecord
from .calibration_result import CalibratedModel
from .centered_features import CenteredFeatures
from .certificate import Certificate
from .hybrid_plan import HybridPlan
from .shift_report import ShiftReport


@dataclass(frozen=True, eq=False)
class HybridModel(JsonText):
    """What a HybridRun releases; all of it may be published.

    Attributes:
        model: The learners.PrivateModel to predict with: that of the panel, calibrated where agents
            have shown that this is better. Its JSON is what `hdp-fast predict` reads.
        panel_model: The PrivateModel of the panel, before any calibration.
        shift: What moved between the panel and the agents; None where nobody was asked.
        left_out: Names of the features that were left out of the model.
        plan: How many agents were asked for what, and at which price.
        calibrated: The calibration by agents; None before `repair`. Its model is the description of
            the panel's model, a function of what the agents hold.
        certificates: The errors on the agents, "before" the calibration and, where that changed the
            model, "after" it; empty before `repair`.
        records: What protects the panel, and at the end each agent.

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
        ([0, 1], 3)
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

        A named tuple of an intercept and coefficients by the names of features.
        """
        model = self.panel_model
        features = CenteredFeatures(model.schema, model.rows.unit.bits, model.rows.mean)
        return features.predictor(model.weights[:, 1] - model.weights[:, 0])

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

    def __repr__(self) -> str:
        lines = [f"HybridModel(n={self.plan.n:,}, {len(self.panel_model.rows.mean)} features)"]
        if self.shift is not None:
            moved = f"{len(self.shift.moved)} of {len(self.shift.columns)} features moved"
            lines.append(f"  {moved}, left out: {list(self.left_out)}")
        if self.calibrated is not None:
            lines.append(f"  {self.calibrated!r}")
        return "\n".join(
            [*lines, *(f"  {name}: {one!r}" for name, one in self.certificates.items())]
        )
