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

    Step r = 1, 2, ... draws `batch_size` records with replacement and adds up the gradients of
    their losses, each clipped to norm L = clip_norm. To each coordinate of the sum it adds noise of
    standard deviation noise_multiplier * L, and divides by `batch_size`. The model moves against
    the result by a step of length 2 radius / (G sqrt(r)), where `G**2` = `L**2` (1 + d
    `(noise_multiplier / batch_size)**2`), or 1 / (strong_convexity r). Then it is projected into
    the ball. The descent starts from 0, and its result is the mean of the models before each step.

    All settings are public; none may be chosen by looking at private records. radius, norm_bound,
    clip_norm, label_bound and threshold lie in [1e-30, 1e30]; l1, l2 and strong_convexity do or are
    0.

    Attributes:
        steps: Number of steps, at least 1.
        batch_size: Number of records drawn in a step, with replacement, from 1 to `2**32`.
        epsilon: Privacy parameter of one run of learn at delta, above 0. learn then adds the least
            noise with which the run has this epsilon for its number of records. math.inf stands for
            no noise and no privacy. Exactly one of epsilon and noise_multiplier must be set.
        noise_multiplier: Standard deviation of the noise on the sum over a batch, in units of L,
            from 1e-30 to `2**28`.
        numerics: "exact" for rounded Gaussian noise on integers, or "idealized" for Gaussian noise
            in floats, whose steps are faster.
        delta: Privacy parameter in (0, 1) at which learn states its epsilon.
        calibrated_for: The n of calibrate; fewer records are refused. None if the noise was not
            calibrated.
        loss: "hinge" or "logistic", functions of label times score; "squared", `(score - label)**2`
            / 2; or "huber", which is the same up to a difference of `threshold` and linear beyond
            it.
        radius: Radius of the ball around 0 that holds all weights; its diameter D is twice that.
        norm_bound: Norm to which records are shrunk; X itself stays as it is. An intercept is a
            constant column of X and shrinks with its row. Records whose squared norm leaves the
            normal range of their precision (norms beyond about 1e-19 and 1e19 in float32) count as
            zero.
        clip_norm: Bound L on the norm of a gradient. None takes the bound that the loss itself has
            on the ball.
        label_bound: None for labels 0 and 1, which stand for -1 and 1. A number c for real labels,
            which are clipped to [-c, c]; for "squared" and "huber" only.
        threshold: Threshold of "huber".
        l1: Weight of the penalty sum |w_j|, applied as a soft threshold after each step.
        l2: Weight of the penalty `|w|**2` / 2.
        strong_convexity: lambda where the objective is known to be lambda-strongly convex; 0 for
            steps that need no strong convexity. None takes l2.

    Raises:
        ParameterError: A parameter is out of range, or not exactly one of epsilon and
            noise_multiplier is set.

    Guarantee:
        learn has the privacy of composition(1 / n) under "replace_one", learn_weighted that of
        composition(weights.rate). "exact" rounds each clipped gradient to integers of norm at most
        K = `2**20`, so that a changed draw moves a sum by at most 2 K, and adds rounded Gaussian
        noise of sigma = noise_multiplier * K, drawn exactly. For a changed draw that is the
        Gaussian mechanism with mu = 2 / noise_multiplier, rounded afterwards (proved; the norm of
        every gradient is checked in integers). "idealized" adds Gaussian numbers in floats, and the
        same guarantee would hold for real numbers. The running
        time is not protected. epsilon=math.inf adds no noise and protects nobody.

    Source:
        Kohen and Sheffet 2022, Algorithm 3, whose step D / (noise sqrt(r)) neglects L and whose D /
        (lambda r) has a D too many. Minibatches and clipping are ours. L1: the remark at the end of
        their Appendix D.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import PrivateSGD
        >>> X, y = np.tile([[0.6, 0.8], [-0.6, 0.8]], (10_000, 1)), np.tile([1, 0], 10_000)
        >>> learner = PrivateSGD(loss="logistic", steps=100, batch_size=20, noise_multiplier=2.0)
        >>> model = learner.learn(X, y)
        >>> print(f"{model.record.epsilon:.2f} at delta {model.record.delta}")
        0.20 at delta 1e-06
        >>> bool((model.predict(X) == y).all())
        True
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
        """The loss that the learned models carry, with the learner's bounds."""
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
        """Learns from records drawn uniformly: DP-SGD by itself.

        learn warns with a UtilityWarning where delta is above 1 / n, since a record may then be
        published whole.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1, or what prepare returned.
            y: The labels, shape (n,): 0 and 1, or finite real numbers where the learner has a
                label_bound.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects nobody.
            budget: The budget that the run is charged to before anything is drawn; None charges
                nothing.

        Returns:
            The model; its record states epsilon at the learner's delta.

        Raises:
            ShapeError: X does not have two dimensions and an entry, or y does not have n entries.
            ParameterError: An entry of X or y lies outside its domain, no noise is enough for
                epsilon, the noise is so small that no epsilon holds, a run without noise comes with
                a budget, or random_state or budget is of another kind.
            BudgetExceeded: The budget has less than the run's epsilon or delta left.
            InsufficientSamples: X has fewer records than the noise was calibrated for.
            MemoryError: A batch of billions does not fit into memory.

        Guarantee:
            That of composition(1 / n) under "replace_one". All errors but MemoryError are raised
            before any coin is drawn or budget spent.

        Cost:
            steps * batch_size rows are read in random order, in one compiled call that shows no
            progress. A pass over X comes before unless it is prepared, and calibrate where the
            learner has an epsilon.
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
        """Learns from records drawn by weights, which do not leave their object.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1, or what prepare returned.
            y: The labels, shape (n,), as learn takes them.
            weights: DenseWeights over the same n records.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects nobody.

        Returns:
            The model; its record is None.

        Raises:
            ShapeError: X does not have two dimensions and an entry, or y or weights does not have n
                entries.
            ParameterError: An entry of X or y lies outside its domain, weights is of another kind,
                or the learner has a finite epsilon, for which only learn finds the noise: use
                calibrate.
            InsufficientSamples: X has fewer records than the noise was calibrated for.
            MemoryError: A batch of billions does not fit into memory.

        Guarantee:
            That of composition(weights.rate) under "replace_one", for weights that a run of
            multiplicative updates made.

        Cost:
            That of learn, and a handful of passes over the weights.

        Source:
            Kohen and Sheffet 2022, Algorithm 4.
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
        """Learns from draws that were made elsewhere: step r takes the r-th `batch_size` of them.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1, or what prepare returned.
            y: The labels, shape (n,), as learn takes them.
            indices: The drawn records, integers from 0 to n - 1, shape (steps * batch_size,).
            random_state: None draws the noise from the operating system. An int or a Generator
                makes a reproducible stream for tests, which protects nobody.

        Returns:
            The model; its record is None.

        Raises:
            ShapeError: X does not have two dimensions and an entry, y does not have n entries, or
                indices does not have steps * batch_size.
            ParameterError: An entry of X, y or indices lies outside its domain, or the learner has
                a finite epsilon, for which only learn finds the noise: use calibrate.
            InsufficientSamples: X has fewer records than the noise was calibrated for.

        Guarantee:
            That of composition(rate) under "replace_one" if the draws are independent and no record
            is in one with a probability above `rate`. Other draws have no guarantee.

        Cost:
            That of learn.
        """
        check_random_state(random_state)
        rows = validate_rows(X)
        draws = integers("indices", indices, np.int64)
        labels = validate_labels(y, len(rows), self.label_bound)
        self._refuse_uncalibrated()
        self._refuse_fewer(len(rows))
        return self._descend(rows, labels, draws, random_state)

    def prepare(self, X: Any) -> ValidRows:
        """Validates the records once, so that calls which take the result need not.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1. It must not change
                afterwards.

        Returns:
            The validated records, for all methods here and of the learned models.

        Raises:
            ShapeError: X does not have two dimensions and an entry.
            ParameterError: An entry of X is no finite real number.

        Cost:
            A pass over X, and a copy unless X is float32 or float64 and C-contiguous.
        """
        return validate_rows(X)

    def restore(self, hypothesis: Description | str) -> LinearModel:
        """Restores a learned model from its description.

        Args:
            hypothesis: The hypothesis of a LinearModel, a dict or its JSON.

        Returns:
            The model, with the learner's loss and without a record.

        Raises:
            ParameterError: The argument does not describe a linear model with bias 0.
        """
        description = parse(hypothesis)
        if description["kind"] != "linear" or description["bias"] != 0:
            refuse("hypothesis", hypothesis, "it must be a linear one with bias 0")
        return LinearModel(read_only(np.array(description["weights"])), self.linear_loss)

    def _bounds(self) -> tuple[float, float]:
        """Return the largest loss, and its largest derivative in the score."""
        label = 1.0 if self.label_bound is None else self.label_bound
        largest = self.radius * self.norm_bound
        return _core.loss_bounds(self.loss, self.threshold, largest, label)

    def _gradient_bound(self) -> float:
        return self._bounds()[1] * self.norm_bound

    def _find_noise(self, n: int) -> Self:
        """Return the learner with the noise that its epsilon takes for n uniform records."""
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
