"""Private stochastic gradient descent for linear models of a bounded norm."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import note_large_delta
from .._support.random_state import check_random_state, make_key
from .._support.types import Floats, RandomState
from .._support.validate import bounded_positive, integers, nonnegative, one_of, refuse
from ..budget.account import Budget, spend
from ..weights import DenseWeights
from .descriptions import Description, parse
from .hypotheses import read_only, store
from .linear_model import (
    LinearLoss,
    LinearModel,
    ValidRows,
    core_arguments,
    validate_labels,
    validate_rows,
)
from .noisy_steps import NoisySteps

Loss = Literal["hinge", "logistic", "squared", "huber"]
_LOSSES = ("hinge", "logistic", "squared", "huber")


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivateSGD(NoisySteps):
    """Projected stochastic gradient descent on the mean loss of a linear model, with noise.

    Step r = 1, 2, ... draws `batch_size` records with replacement, adds up the gradients of their
    losses, each clipped to norm L = clip_norm, adds noise of standard deviation noise_multiplier *
    L to each coordinate, divides by `batch_size` and goes against the result, from 0, by 2 radius /
    (G sqrt(r)), G**2 = L**2 (1 + d (noise_multiplier / batch_size)**2), or by 1 / (strong_convexity
    r), then back into the ball. The mean of the models before each step is the result. All settings
    are public; none may be chosen by looking at private records. Numbers but 0 lie in [1e-30,
    1e30], noise_multiplier below 2**28.

    Guarantee: composition(1 / n) under replace_one for learn, for learn_weighted a rate of the
        weights. "exact" rounds each clipped gradient to integers of norm at most K = 2**20, so that
        a changed draw moves a sum by at most 2 K, and adds discrete Gaussian noise of sigma =
        noise_multiplier * K, exactly drawn: 2 / noise_multiplier**2-zCDP for a changed draw
        (proved; checked in integers for every gradient). "idealized" adds Gaussian numbers in
        floats: its guarantee would hold for real numbers. Running time is not protected.
        epsilon=math.inf adds no noise and protects nobody.

    Attributes:
        loss: "hinge" or "logistic" of label times score; "squared", (score - label)**2 / 2, or
            "huber", the same but linear beyond a difference of `threshold`.
        steps: at least 1.
        batch_size: records drawn in a step, with replacement, at least 1.
        radius: of the ball around 0 that holds all weights; its diameter D is twice that.
        norm_bound: records are shrunk to this norm, X itself stays as it is. An intercept is a
            constant column of X, and shrinks with its row. Records whose squared norm is out of
            range in their precision (norms beyond 1e-19 and 1e19 in float32) count as zero.
        clip_norm: bound L on the norm of a gradient; None means the loss's own.
        epsilon: of learn at delta, which adds the least noise that this takes for the records it
            is given; math.inf for no privacy. Either this or noise_multiplier must be given.
        noise_multiplier: standard deviation in units of L, on the sum over a batch.
        numerics: "exact", or "idealized", which is faster.
        label_bound: None for labels 0 and 1, which stand for -1 and 1; a number c for real labels,
            clipped to [-c, c], of "squared" and "huber".
        threshold: of "huber".
        l1: weight of a penalty sum |w_j|: soft thresholds after each step.
        l2: weight of a penalty |w|**2 / 2.
        strong_convexity: lambda where the objective is known to be lambda-strongly convex, 0 for
            the other steps; None means l2.
        delta: at which learn states its epsilon.
        calibrated_for: the n of calibrate, None without it; fewer records are refused.

    Raises: ParameterError.
    Cost: none until it learns, in one compiled call that shows no progress.
    Source: Kohen and Sheffet 2022, Algorithm 3, whose step D / (noise sqrt(r)) neglects L and whose
        D / (lambda r) has a D too many; minibatches and clipping are ours. L1: the remark at the
        end of their Appendix D.
    """

    loss: Loss
    radius: float = 1.0
    norm_bound: float = 1.0
    clip_norm: float | None = None
    label_bound: float | None = None
    threshold: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    strong_convexity: float | None = None

    def __post_init__(self) -> None:
        """Validate the parameters."""
        one_of("loss", self.loss, _LOSSES)
        if self.label_bound is not None:
            if self.loss not in ("squared", "huber"):
                rule = f"{self.loss} loss takes labels 0 and 1, and no bound"
                refuse("label_bound", self.label_bound, rule)
            store(self, label_bound=bounded_positive("label_bound", self.label_bound))
        super().__post_init__()
        for name in ("radius", "norm_bound", "threshold"):
            store(self, **{name: bounded_positive(name, getattr(self, name))})
        for name in ("l1", "l2"):
            store(self, **{name: nonnegative(name, getattr(self, name))})
        strong_convexity = self.l2 if self.strong_convexity is None else self.strong_convexity
        clip_norm = self._gradient_bound() if self.clip_norm is None else self.clip_norm
        store(
            self,
            strong_convexity=nonnegative("strong_convexity", strong_convexity),
            clip_norm=bounded_positive("clip_norm", clip_norm),
        )

    @property
    def largest_loss(self) -> float:
        """The largest loss of any model in the ball on any record within the bounds."""
        return self._bounds()[0]

    @property
    def linear_loss(self) -> LinearLoss:
        """The loss that its models state, with the learner's bounds."""
        bounds = (self.norm_bound, self.label_bound, self.largest_loss)
        return LinearLoss(self.loss, self.threshold, *bounds)

    def learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> LinearModel:
        """Learn from records drawn uniformly: DP-SGD on its own.

        X: finite real numbers (n, d), n and d at least 1, or what prepare made of them. y: (n,) of
        0 and 1, or of finite real numbers where the learner has a label_bound. random_state: None
        draws from the operating system; an int or a Generator makes a reproducible test stream that
        protects nobody who knows it. budget: charged before anything is drawn.

        Guarantee: composition(1 / n); the model's record states its epsilon at delta. A delta above
            1 / n, which would let a record be published whole, is said to be one.
        Raises: ShapeError, ParameterError, BudgetExceeded, InsufficientSamples for fewer records
            than the noise was calibrated for: before any coin is drawn or budget spent;
            MemoryError, for batches of billions after it is spent.
        Cost: steps * batch_size rows read in random order; a pass over X unless it is prepared;
            calibrate, where the learner has an epsilon.
        Source: as the class.
        """
        check_random_state(random_state)
        rows = validate_rows(X)
        labels = validate_labels(y, len(rows), self.label_bound)
        if not self.is_private:
            if budget is not None:
                refuse("epsilon", self.epsilon, "only a private run can be charged to a budget")
            return self._descend(rows, labels, None, random_state)
        self._refuse_fewer(len(rows))
        learner = self._find_noise(len(rows))
        record = learner.uniform_record(len(rows), random_state)
        note_large_delta(self.delta, len(rows))
        with spend(budget, record):
            model = learner._descend(rows, labels, None, random_state)
        return dataclasses.replace(model, record=record)

    def learn_weighted(
        self, X: Any, y: ArrayLike, weights: DenseWeights, *, random_state: RandomState = None
    ) -> LinearModel:
        """Learn from records drawn by weights, which stay inside.

        X, y, random_state: as learn. weights: of the same n records.

        Guarantee: composition(weights.rate), for weights that a run of multiplicative updates made.
        Raises: as learn; ParameterError for an epsilon, whose noise only learn finds: calibrate.
        Cost: as learn, and a handful of passes over the weights.
        Source: Kohen and Sheffet 2022, Algorithm 4.
        """
        check_random_state(random_state)
        rows = validate_rows(X)
        labels = validate_labels(y, len(rows), self.label_bound)
        if not isinstance(weights, DenseWeights):
            refuse("weights", weights, "they must be DenseWeights")
        self._refuse_uncalibrated()
        self._refuse_fewer(len(rows))
        return self._descend(rows, labels, weights.compiled, random_state)

    def learn_indices(
        self, X: Any, y: ArrayLike, indices: ArrayLike, *, random_state: RandomState = None
    ) -> LinearModel:
        """Learn from draws that were made elsewhere: step r takes the r-th `batch_size` of them.

        X, y, random_state: as learn. indices: integers from 0 to n - 1, (steps * batch_size,).

        Guarantee: composition(rate) for independent draws that no record has a probability above
            `rate` to be in; none for others.
        Raises: as learn_weighted.
        Cost: as learn.
        Source: as the class.
        """
        check_random_state(random_state)
        rows = validate_rows(X)
        draws = integers("indices", indices, np.int64)
        labels = validate_labels(y, len(rows), self.label_bound)
        self._refuse_uncalibrated()
        self._refuse_fewer(len(rows))
        return self._descend(rows, labels, draws, random_state)

    def prepare(self, X: Any) -> ValidRows:
        """The records, validated once: calls that take the result need not validate them again.

        X: as learn; it must stay as it is.

        Raises: ShapeError, ParameterError.
        Cost: a pass over X; a copy unless it is float32 or float64 and C-contiguous.
        Source: none.
        """
        return validate_rows(X)

    def restore(self, hypothesis: Description | str) -> LinearModel:
        """What was learned, from its description.

        hypothesis: of a LinearModel, a dict or its JSON.

        Raises: ParameterError for anything else.
        Cost: linear in d.
        Source: none.
        """
        description = parse(hypothesis)
        if description["kind"] != "linear" or description["bias"] != 0:
            refuse("hypothesis", hypothesis, "it must be a linear one with bias 0")
        return LinearModel(read_only(np.array(description["weights"])), self.linear_loss)

    def _bounds(self) -> tuple[float, float]:
        """The largest loss, and its largest derivative by the score."""
        label = 1.0 if self.label_bound is None else self.label_bound
        largest = self.radius * self.norm_bound
        return _core.loss_bounds(self.loss, self.threshold, largest, label)

    def _gradient_bound(self) -> float:
        return self._bounds()[1] * self.norm_bound

    def _find_noise(self, n: int) -> Self:
        """The learner with the noise that its epsilon takes for n uniform records."""
        return self if self.epsilon is None else self.calibrate(epsilon=self.epsilon, n=n)

    def _descend(
        self, rows: ValidRows, labels: Floats, draws: Any, random_state: RandomState
    ) -> LinearModel:
        plan: _core._SGDPlan = {
            "loss": self.loss,
            "threshold": self.threshold,
            "steps": self.steps,
            "batch_size": self.batch_size,
            "radius": self.radius,
            "norm_bound": self.norm_bound,
            "clip_norm": float(self.clip_norm or 0),
            "l1": self.l1,
            "l2": self.l2,
            "strong_convexity": float(self.strong_convexity or 0),
            "numerics": "none" if self.noise_multiplier is None else self.numerics,
            "noise_multiplier": float(self.noise_multiplier or 0).as_integer_ratio(),
        }
        seed = make_key(random_state)
        weights = _core.sgd_learn(core_arguments(rows, labels), draws, plan, seed)
        return LinearModel(read_only(weights), self.linear_loss, feature_names_in_=rows.names)
