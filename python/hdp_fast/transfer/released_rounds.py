"""The rounds that a run released, from which any curator computes the weights they make."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonObject
from .._support.types import Bits
from .._support.validate import positive, refuse, sequence
from ..exceptions import ParameterError
from ..learners.descriptions import parse
from ..learners.scores import predictor
from ..weights import DenseWeights
from .run import Run
from .run_records import RunRecords


@dataclass(frozen=True)
class ReleasedRounds(JsonObject):
    """The hypotheses that moved a run's weights: what another curator needs to go on with them.

    The weight of a record (x, y) is exp(-sum of eta over the rounds whose hypothesis is right about
    it). So whoever holds records can compute their weights, and the weights of the first run's
    records stay where they are. Pass it to `SubsampleTestReweigh.fit` as `start`.

    Attributes:
        hypotheses: Descriptions, that of the first round first. A round whose hypothesis was
            accepted moved no weight.
        etas: The step size of each round.

    Raises:
        ParameterError: There is not one step size in (0, 4] for each, or a description describes no
            hypothesis of the labels 0 and 1.

    Guarantee:
        This is post-processing of what the run released, all of whose planned rounds were charged;
        the agents' answers are private by themselves. It costs nobody anything. A run that starts
        with it has its own guarantee for the records that it reads, and where a person's record was
        read by both runs, their losses add up.

    Source:
        Kohen and Sheffet 2022, Section 5, the second of their open problems.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners, local, transfer
        >>> S, T = np.random.default_rng(0).integers(0, 2, (2, 40_000, 4), dtype=np.uint8)
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(4, 2), epsilon=1.0)
        >>> goal = {"epsilon": 1.0, "delta": 1e-6, "rounds": 3, "kappa": 0.2, "eta": 1.0}
        >>> first = transfer.SubsampleTestReweigh(learner, schedule="final", alpha=0.1, **goal)
        >>> agents = local.Agents(T, T[:, 1] & T[:, 2], epsilon=2.0)
        >>> text = first.fit(S, S[:, 1] & S[:, 2], agents).hand_over().to_json()
        >>> start = transfer.ReleasedRounds.from_json(text)  # what person B receives
        >>> others = local.Agents(T, T[:, 1] & T[:, 3], epsilon=2.0)
        >>> second = transfer.SubsampleTestReweigh(learner, schedule="final", alpha=0.1, **goal)
        >>> second = second.fit(T, T[:, 1] & T[:, 3], others, start=start)
        >>> len(start.hypotheses), len(second.hand_over().hypotheses)
        (3, 6)
    """

    hypotheses: tuple[dict[str, Any], ...]
    etas: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuses what no run has released."""
        for name in ("hypotheses", "etas"):
            object.__setattr__(self, name, tuple(sequence(name, getattr(self, name))))
        if len(self.hypotheses) != len(self.etas):
            rule = f"there are {len(self.hypotheses)} hypotheses"
            raise ParameterError(f"etas has length {len(self.etas)}, but {rule}")
        for eta in self.etas:
            if not positive("etas", eta) <= 4:
                refuse("etas", eta, "each must be in (0, 4]")
        for hypothesis in self.hypotheses:
            if parse(hypothesis)["kind"] == "softmax":
                refuse("hypotheses", hypothesis, "each must be of the labels 0 and 1")

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> ReleasedRounds:
        return cls(**fields)


def compute_weights(start: ReleasedRounds, records: RunRecords, kappa: float) -> DenseWeights:
    """The weights that released hypotheses make of these records.

    A hypothesis is wrong about a record with an entry that it does not take: were it refused, the
    refusal would tell that there is such a record.

    Raises:
        ShapeError: A hypothesis is of other features.
    """
    weights = DenseWeights(len(records), kappa, 1.0)
    for hypothesis, eta in zip(start.hypotheses, start.etas, strict=True):
        if eta != weights.eta:
            weights = weights.with_parameters(kappa, eta)
        predict = predictor(hypothesis)
        # What does not fit the columns is refused by made-up records alone.
        predict(np.zeros((1, *records.shape), np.uint8))
        takes_bits = _refuses(predict, np.full((1, *records.shape), 0.5))
        weights.update(records.measure(partial(_find_errors, predict, takes_bits)))
    return weights


def _refuses(predict: Any, X: Any) -> bool:
    try:
        predict(X)
    except ParameterError:
        return True
    return False


def _find_errors(predict: Any, takes_bits: bool, X: Any, y: Bits) -> NDArray[np.bool_]:
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
        found: NDArray[np.bool_] = np.asarray(predict(X)) != y
        return found
    entries = (X == 0) | (X == 1) if takes_bits else np.isfinite(X)
    fits = entries.reshape(len(X), -1).all(axis=1)
    wrong = np.ones(len(X), np.bool_)
    if fits.any():
        wrong[fits] = np.asarray(predict(X if fits.all() else X[fits])) != y[fits]
    return wrong


def collect_rounds(run: Run, earlier: ReleasedRounds | str | None) -> ReleasedRounds | str:
    """What a run may hand over, with what it started from; or why it may not."""
    if run.record is None or isinstance(earlier, str):
        return earlier if isinstance(earlier, str) else "nothing protects those of this one"
    if run.plan.weigh_by != "errors":
        return "these weights follow losses of the hypotheses' own"
    made = [json.loads(text) for text in run.journal.hypotheses[: run.weights.updates]]
    before = earlier or ReleasedRounds((), ())
    etas = (*before.etas, *[run.plan.eta] * len(made))
    try:
        return ReleasedRounds((*before.hypotheses, *made), etas)
    except ParameterError:
        # The run is paid for: what its learner calls a description must not end it.
        return "a hypothesis of this one has no description that others read"
