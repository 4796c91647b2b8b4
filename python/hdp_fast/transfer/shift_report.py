"""What agents say of the columns of a source: which moved, and which may be left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._support.json_text import JsonText
from ..record import PrivacyRecord


@dataclass(frozen=True)
class ColumnShift:
    """One column in the source and in the target, in units of its public bounds.

    Attributes:
        name: Name of the column.
        agents: Number of agents whose answers count.
        source: Mean of the source, in [0, 1].
        source_low: Lower end of the interval of the mean of the source's records.
        source_high: Upper end. Without noise both ends are the mean itself, up to rounding.
        target: Estimated mean of the target; None if no agent answered.
        target_low: Lower end of its interval.
        target_high: Upper end.
        difference: Target less source; None if no agent answered.
        low: Lower end of the interval of the difference of both populations' means.
        high: Upper end.
        moved: Whether this interval lies above 0 or below.
        constant_in: "source", "target" or "both" where the column is nearly constant, at 0 or
            1, as its intervals prove; None elsewhere.
        droppable: Whether it is nearly constant in the source, and surely not so in the target: its
            mean is more than five times the report's `constant` away from that end.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> agents = local.Agents(np.ones((20_000, 1)), np.ones(20_000, int), epsilon=1.0)
        >>> (column,) = transfer.shifted_columns([0.0], agents).columns
        >>> column.moved, column.droppable, column.target_low > 0.9
        (True, True, True)
    """

    name: str
    agents: int
    source: float
    source_low: float
    source_high: float
    target: float | None
    target_low: float
    target_high: float
    difference: float | None
    low: float
    high: float
    moved: bool
    constant_in: str | None
    droppable: bool


@dataclass(frozen=True)
class ShiftReport(JsonText):
    """Which columns moved between the source and the target, and which may be left out.

    All intervals hold at once but for a probability of beta.

    A column that moved need not be left out: people may differ in it for good reasons, and a model
    without it is often worse. What may be left out automatically is only what is `droppable`: a
    column that is nearly constant in the source, so that nothing is learned about it there, and not
    in the target. The reverse, a column that is nearly constant in the target, adds the same number
    to all scores of a linear model, which a calibration repairs.

    Attributes:
        columns: One ColumnShift for each column, in their order.
        beta: Probability with which some interval misses.
        constant: A mean at most this far from 0 or 1 is called nearly constant.
        visible: A shift above this, in units of the bounds, is sure to show but for beta.
        agents_asked: Number of agents that were asked.
        record: What protects the source's records; None where nothing does, or needs to.
        agents_record: What protects each agent's answer.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> people = np.tile([[0, 1], [1, 1]], (10_000, 1))
        >>> agents = local.Agents(people, np.zeros(20_000, int), epsilon=1.0)
        >>> report = transfer.shifted_columns([0.0, 1.0], agents, beta=1e-9)
        >>> report.moved, report.droppable
        (('x0',), ('x0',))
    """

    columns: tuple[ColumnShift, ...]
    beta: float
    constant: float
    visible: float
    agents_asked: int
    record: PrivacyRecord | None
    agents_record: PrivacyRecord

    @property
    def moved(self) -> tuple[str, ...]:
        """Names of the columns that moved, the largest difference first."""
        rows = [column for column in self.columns if column.moved]
        rows.sort(key=lambda column: -abs(column.difference or 0.0))
        return tuple(column.name for column in rows)

    @property
    def droppable(self) -> tuple[str, ...]:
        """Names of the columns that may be left out automatically, in their order."""
        return tuple(column.name for column in self.columns if column.droppable)

    def _to_fields(self) -> Mapping[str, Any]:
        return {**vars(self), "moved": self.moved, "droppable": self.droppable}

    def __repr__(self) -> str:
        counts = f"{len(self.moved)} of {len(self.columns)} columns moved"
        lines = [f"ShiftReport({counts}, droppable={list(self.droppable)}, beta={self.beta:g})"]
        by_name = {column.name: column for column in self.columns}
        for name in self.moved:
            column = by_name[name]
            text = f"{column.source:.3f} -> {column.target:.3f}"
            lines.append(f"  {name}: {text}, by {column.low:+.3f} to {column.high:+.3f}")
        return "\n".join(lines)
