"""Private stochastic gradient descent for linear models in a ball or a box."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import keep_result, note, note_large_delta
from .._support.numbers import floats
from .._support.parameters import Rules, optional, store
from .._support.random_state import check_random_state, make_key
from .._support.types import Floats, LossLabels, RandomState
from .._support.validate import (
    bounded_positive,
    finite_number,
    integers,
    nonnegative,
    numbers,
    one_of,
    positive_int,
    read_only,
    refuse,
)
from ..budget.account import Budget, spend
from ..data.persons import Persons, check_rows, read_persons
from ..exceptions import ParameterError, ShapeError
from ..weights import DenseWeights
from .descents import Descent, SGDPlan, choose_counts, choose_radius, grow_radius
from .descriptions import Description, parse
from .linear_model import (
    LinearLoss,
    LinearModel,
    SoftmaxModel,
    ValidRows,
    core_arguments,
    largest_softmax_loss,
    validate_classes,
    validate_labels,
    validate_rows,
)
from .noisy_steps import NoisySteps, plan_noise

Loss = Literal["hinge", "squared_hinge", "logistic", "softmax", "squared", "huber"]
_LOSSES = ("hinge", "squared_hinge", "logistic", "softmax", "squared", "huber")
_HINGES = ("hinge", "squared_hinge")
# Losses whose slopes grow with the scores.
_UNBOUNDED = ("squared_hinge", "squared")
_MOST_CLASSES = 1024
_MOST_WEIGHTS = 1 << 40


@dataclass(frozen=True, eq=False, kw_only=True)
class PrivateSGD(NoisySteps):
    """Projected stochastic gradient descent on the mean loss of a linear model, with noise.

    Step r = 1, 2, ... draws records with replacement and adds up the gradients of their losses,
    each clipped to norm L = clip_norm. To each coordinate of the sum it adds noise of standard
    deviation noise_multiplier * L, and divides by `batch_size`. With noise, learn draws the number
    of records, too, from the Poisson law of mean `batch_size`, which takes less noise but for a
    handful of records; else it is `batch_size`. The model moves against the result by a step of
    length diameter / (G sqrt(r)), where `G**2` = `L**2` (1 + w `(noise_multiplier /
    batch_size)**2`) for w weights, or 1 / (strong_convexity r). Then it is projected into the
    domain.

    All settings are public; none may be chosen by looking at private records. steps, batch_size,
    radius and clip_norm need not be given: rules choose them from n, d, the number of classes,
    epsilon, delta and the bounds, and plan shows what they choose. radius, norm_bound, clip_norm,
    label_bound and threshold lie in [1e-30, 1e30]; margin, l1, l2 and strong_convexity do or are 0.

    Attributes:
        steps: Number of steps, at least 1. None takes `(n mu)**2 / (4 w)`, but from 50 to 200,
            where the Gaussian mechanism of parameter mu has this epsilon and delta; 2,000 without
            noise. They must be given with noise_multiplier.
        batch_size: Number of records drawn in a step, with replacement, from 1 to `2**32`; the mean
            of their number where learn draws that. None takes 1 where steps are given. Where they
            are not, it takes `5 n mu / sqrt(steps)`, but from 1 to n, with which the noise
            multiplier is about 10; 100 or n without noise.
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
        calibrated_sampling: "poisson" for noise that calibrate found for learn, "fixed" for that of
            learn_weighted and learn_indices, which refuse the former; None if it was not
            calibrated.
        loss: "hinge", max(0, margin - label * score); "squared_hinge", half its square; or
            "logistic", all three for labels 0 and 1, which stand for -1 and 1. "softmax" for
            `classes` labels, the integers from 0: ln(sum of exp(score)) less the score of the
            label, with a score for each class. "squared", `(score - label)**2` / 2; or "huber",
            which is the same up to a difference of `threshold` and linear beyond it.
        classes: Number K of classes of "softmax", from 2 to 1,024; None for the other losses.
        radius: Radius of the ball around 0 that holds all weights, for "softmax" as one matrix;
            its diameter is twice that. None takes 20 / norm_bound, for "softmax" sqrt(K / 2) times
            that, and for the hinges `margin` times that, unless the margin is 0. learn takes more,
            up to three times as much, where the noise of all steps is small: 20 is replaced by
            `sqrt(2 / noise)`, with the noise of SGDPlan. For "squared" and "huber" None takes
            5 label_bound / norm_bound. A box has no radius.
        norm_bound: Norm to which records are shrunk; X itself stays as it is. An intercept is a
            constant column of X and shrinks with its row. Records whose squared norm leaves the
            normal range of their precision (norms beyond about 1e-19 and 1e19 in float32) count as
            zero.
        clip_norm: Bound L on the norm of a gradient. None takes the bound that the loss itself has
            on the domain: norm_bound for "hinge" and "logistic", sqrt(2) norm_bound for "softmax",
            and norm_bound times min(threshold, s + label_bound) for "huber", s + label_bound for
            "squared" and s + margin for "squared_hinge", where s is the largest score in the
            domain. With noise, the last two take norm_bound times label_bound and norm_bound times
            margin instead where that is less, which clips the gradients of large mistakes.
        label_bound: None for labels 0 and 1, which stand for -1 and 1. A number c for real labels,
            which are clipped to [-c, c]; for "squared" and "huber" only.
        threshold: Threshold of "huber".
        margin: Margin of "hinge" and "squared_hinge".
        domain: "ball", or "box" for all models whose weights lie from low to high; the diameter of
            a box is `(high - low) sqrt(w)`.
        low: Least weight in a box; None for a ball.
        high: Largest weight in a box, above low; None for a ball. Both lie in [-1e30, 1e30].
        output: "mean" for the mean of the models before each step, "last" for the model after the
            last step. The bound on the excess risk that a plan states is that of the mean.
        start: The first model, of shape (d,) or (d, K), or a learned model; it must be public, or
            released. None starts at 0. It is projected into the domain.
        l1: Weight of the penalty sum |w_j|, applied as a soft threshold after each step.
        l2: Weight of the penalty `|w|**2` / 2.
        strong_convexity: lambda where the objective is known to be lambda-strongly convex; 0 for
            steps that need no strong convexity. None takes l2.

    Raises:
        ParameterError: A parameter is out of range, or not exactly one of epsilon and
            noise_multiplier is set.

    Guarantee:
        learn has the privacy of composition(1 / n, sampling="poisson") under "replace_one",
        learn_weighted that of composition(weights.rate). The number of records that learn draws is
        secret: nothing but the running time depends on it, and no mean is divided by it. "exact"
        rounds each clipped gradient to integers of norm at most K = `2**20`, so that a changed draw
        moves a sum by at most 2 K, and adds rounded Gaussian noise of sigma = noise_multiplier * K,
        drawn exactly. For a changed draw that is the Gaussian mechanism with mu = 2 /
        noise_multiplier, for a Poisson number of draws accounting.SampledSum(1 / noise_multiplier),
        rounded afterwards (proved; that the norm is at most K is checked for every gradient).
        "idealized" adds Gaussian numbers in floats, and the same guarantee would hold for real
        numbers. The running time is not protected. epsilon=math.inf adds no noise and protects
        no one. Projection and the choice of the output see noisy sums alone, and change no
        guarantee.

        The gradient of "softmax" is the matrix x `(p - e_y)**T` of a record x, the probabilities p
        of its classes and the unit vector of its label. Its norm is |x| |p - e_y|, at most
        sqrt(2) |x|, since `|p - e_y|**2` = `(1 - p_y)**2` + `sum of p_j**2 over j != y`. The matrix
        is clipped, rounded and checked as one vector: one budget pays for all classes.

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
        0.03 at delta 1e-06
        >>> bool((model.predict(X) == y).all())
        True
    """

    loss: Loss
    classes: int | None = None
    radius: float | None = None
    norm_bound: float = 1.0
    clip_norm: float | None = None
    label_bound: float | None = None
    threshold: float = 1.0
    margin: float = 1.0
    domain: Literal["ball", "box"] = "ball"
    low: float | None = None
    high: float | None = None
    output: Literal["mean", "last"] = "mean"
    start: Any = dataclasses.field(default=None, repr=False)
    l1: float = 0.0
    l2: float = 0.0
    strong_convexity: float | None = None

    RULES: ClassVar[Rules] = {
        **NoisySteps.RULES,
        "loss": partial(one_of, allowed=_LOSSES),
        "classes": optional(partial(positive_int, most=_MOST_CLASSES)),
        "radius": optional(bounded_positive),
        "norm_bound": bounded_positive,
        "clip_norm": optional(bounded_positive),
        "label_bound": optional(bounded_positive),
        "threshold": bounded_positive,
        "margin": nonnegative,
        "domain": partial(one_of, allowed=("ball", "box")),
        "low": optional(finite_number),
        "high": optional(finite_number),
        "output": partial(one_of, allowed=("mean", "last")),
        "l1": nonnegative,
        "l2": nonnegative,
        "strong_convexity": optional(nonnegative),
    }

    def __post_init__(self) -> None:
        """Validate the parameters, and what they say together."""
        super().__post_init__()
        if self.label_bound is not None and self.loss not in ("squared", "huber"):
            rule = f"{self.loss} loss takes labels 0 and 1, and no bound"
            refuse("label_bound", self.label_bound, rule)
        self._validate_classes()
        if self.strong_convexity is None:
            store(self, strong_convexity=self.l2)
        self._validate_domain()
        self._validate_start()
        if self.domain == "ball" and self.clip_norm is None:
            # In a box it may depend on the number of columns.
            bounded_positive("clip_norm", self.ball_clip_norm)

    def _validate_classes(self) -> None:
        if self.loss == "softmax":
            if self.classes is None:
                refuse("classes", None, "softmax needs their number")
            if self.classes < 2:
                refuse("classes", self.classes, "there must be at least 2")
        elif self.classes is not None:
            refuse("classes", self.classes, f"{self.loss} loss takes none")

    def _validate_domain(self) -> None:
        if self.domain == "ball":
            for name in ("low", "high"):
                if getattr(self, name) is not None:
                    refuse(name, getattr(self, name), "only a box takes it")
            if self.radius is None:
                bounded_positive("radius", self.ball_radius)
            return
        if self.radius is not None:
            refuse("radius", self.radius, "a box has none")
        for name in ("low", "high"):
            if getattr(self, name) is None:
                refuse(name, None, "a box needs it")
        low, high = self._box()
        if not (high - low >= 1e-30 and max(abs(low), abs(high)) <= 1e30):
            refuse("high", high, f"it must be above low = {low}, and both lie in [-1e30, 1e30]")

    def _validate_start(self) -> None:
        if self.start is None:
            return
        weights = self.start
        if isinstance(weights, LinearModel | SoftmaxModel):
            weights = weights.weights
        weights = floats(numbers("start", weights))
        if weights.ndim != (1 if self.classes is None else 2):
            rule = "it must be (d,), or (d, classes) for softmax"
            raise ShapeError(f"start has shape {weights.shape}, but {rule}")
        if not (np.abs(weights) <= 1e30).all():
            raise ParameterError("start has other entries, but all must lie in [-1e30, 1e30]")
        store(self, start=read_only(weights.copy()))

    @property
    def ball_radius(self) -> float:
        """The radius of a ball, or what the rule takes for it."""
        if self.radius is not None:
            return self.radius
        scale = 1.0
        if self.loss in _HINGES:
            scale = self.margin or 1.0
        elif self.loss in ("squared", "huber"):
            scale = (self.label_bound or 1.0) / 4
        return choose_radius(self.classes or 1, scale, self.norm_bound)

    @property
    def largest_loss(self) -> float:
        """The largest loss of any model in the ball on any record within the bounds.

        For "softmax" it is a bound on that.

        Raises:
            ParameterError: The domain is a box, whose largest loss depends on the number of
                columns.
        """
        if self.domain == "box":
            refuse("domain", self.domain, "its largest loss depends on d: models know theirs")
        return self._bound_losses(1, self.ball_radius)[0]

    @property
    def ball_clip_norm(self) -> float:
        """The clip_norm in a ball, or what the rule takes for it."""
        if self.clip_norm is not None:
            return self.clip_norm
        return self._choose_clip_norm(1, self._radius)

    @property
    def linear_loss(self) -> LinearLoss:
        """The loss that the learned models carry, with the learner's bounds.

        Raises:
            ParameterError: The domain is a box, whose largest loss depends on the number of
                columns.
        """
        return self._make_loss(self.largest_loss)

    def _make_loss(self, largest: float) -> LinearLoss:
        return LinearLoss(self.loss, self._shape, self.norm_bound, self.label_bound, largest)

    def plan(self, *, n: int, d: int, rows_per_person: int = 1) -> SGDPlan:
        """Shows what learn does with records of which only the numbers are known.

        Args:
            n: Number of records, at least 1.
            d: Number of their columns, at least 1.
            rows_per_person: The most records of a person, as learn takes it with ids.

        Returns:
            The settings, those that rules chose among them, and the noise.

        Raises:
            ParameterError: A parameter is out of range, or no noise is enough for epsilon.

        Guarantee:
            Nothing is drawn or spent.

        Cost:
            That of calibrate where the learner has a finite epsilon.
        """
        n = positive_int("n", n, 1 << 53)
        people = Persons(rows=check_rows(rows_per_person)).count_groups(n)
        d = positive_int("d", d, _MOST_WEIGHTS)
        return self._plan(n, d, self._settle(people, d))

    @keep_result
    def learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> LinearModel | SoftmaxModel:
        """Learns from records drawn uniformly: DP-SGD by itself.

        learn warns with a UtilityWarning where delta is above 1 / n, since a record may then be
        published whole. It also does where the noise in the mean of all steps' gradients is longer
        than the longest gradient.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1, or what prepare returned.
            y: The labels, shape (n,): 0 and 1, integers from 0 to K - 1 for "softmax", or finite
                real numbers where the learner has a label_bound.
            ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then
                for people, who may have several rows. None protects each row.
            rows_per_person: The most rows of a person that are used, the others being left out;
                public.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.
            budget: The budget that the run is charged to before anything is drawn; None charges
                nothing.

        Returns:
            The model, a SoftmaxModel for "softmax"; its record states epsilon at the learner's
            delta, and its plan all settings.

        Raises:
            ShapeError: X does not have two dimensions and an entry, y does not have n entries, or
                start is not of d rows.
            ParameterError: An entry of X or y lies outside its domain, no noise is enough for
                epsilon, the noise is so small that no epsilon holds, a run without noise comes with
                a budget, or random_state or budget is of another kind.
            BudgetExceeded: The budget has less than the run's epsilon or delta left.
            InsufficientSamples: X has fewer records than the noise was calibrated for.
            MemoryError: A batch of billions does not fit into memory.

        Guarantee:
            That of composition(1 / n, sampling="poisson") under "replace_one". With ids it is for
            whatever a person's rows hold, and that of a rate of 1 / m for m = n // rows_per_person,
            since a draw from the n rows that are used hits those of one person with at most this
            probability.
            All errors but MemoryError are raised before any coin is drawn or budget spent.

        Cost:
            About steps * batch_size rows are read in random order, in one compiled call that shows
            no progress. A pass over X comes before unless it is prepared, and calibrate where the
            learner has an epsilon.
        """
        check_random_state(random_state)
        rows, labels = self._validate_records(X, y)
        persons = read_persons(ids, rows_per_person, len(rows))
        rows, labels = rows.select(persons), persons.select(labels)
        n, d = rows.entries.shape
        if not self.is_private:
            if budget is not None:
                refuse("epsilon", self.epsilon, "only a private run can be charged to a budget")
            return self._descend(rows, labels, None, random_state, self._settle(n, d))
        people = persons.count_groups(n)
        self._refuse_fewer(people)
        descent = self._settle(people, d)
        record = persons.state(self._state_run(descent.private_run, people, random_state))
        note_large_delta(self.delta, n)
        _note_noise(descent)
        with spend(budget, record):
            model = self._descend(rows, labels, None, random_state, descent)
        return dataclasses.replace(model, record=record)

    @keep_result
    def learn_weighted(
        self, X: Any, y: ArrayLike, weights: DenseWeights, *, random_state: RandomState = None
    ) -> LinearModel | SoftmaxModel:
        """Learns from records drawn by weights, which do not leave their object.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1, or what prepare returned.
            y: The labels, shape (n,), as learn takes them.
            weights: DenseWeights over the same n records.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.

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
        rows, labels = self._validate_records(X, y)
        if not isinstance(weights, DenseWeights):
            refuse("weights", weights, "they must be DenseWeights")
        descent = self._settle_given_draws(rows)
        return self._descend(rows, labels, weights.compiled, random_state, descent)

    def learn_indices(
        self, X: Any, y: ArrayLike, indices: ArrayLike, *, random_state: RandomState = None
    ) -> LinearModel | SoftmaxModel:
        """Learns from draws that were made elsewhere: step r takes the r-th `batch_size` of them.

        Args:
            X: Finite real numbers of shape (n, d), n and d at least 1, or what prepare returned.
            y: The labels, shape (n,), as learn takes them.
            indices: The drawn records, integers from 0 to n - 1, shape (steps * batch_size,).
            random_state: None draws the noise from the operating system. An int or a Generator
                makes a reproducible stream for tests, which protects no one.

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
        draws = integers("indices", indices, np.int64)
        rows, labels = self._validate_records(X, y)
        return self._descend(rows, labels, draws, random_state, self._settle_given_draws(rows))

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

    def restore(self, hypothesis: Description | str) -> LinearModel | SoftmaxModel:
        """Restores a learned model from its description.

        Args:
            hypothesis: The hypothesis of a LinearModel, for "softmax" of a SoftmaxModel, a dict or
                its JSON.

        Returns:
            The model, with the learner's loss and without a record.

        Raises:
            ParameterError: The argument does not describe a linear model with bias 0, or a softmax
                model of as many classes as the learner's.
        """
        description = parse(hypothesis)
        if self.classes is None:
            if description["kind"] != "linear" or description["bias"] != 0:
                refuse("hypothesis", hypothesis, "it must be a linear one with bias 0")
        elif description["kind"] != "softmax" or len(description["weights"]) != self.classes:
            refuse("hypothesis", hypothesis, f"it must be a softmax one of {self.classes} classes")
        weights = np.array(description["weights"]).T
        return self._make_model(weights, len(weights), self._radius)

    @property
    def _shape(self) -> float:
        return self.margin if self.loss in _HINGES else self.threshold

    @property
    def _radius(self) -> float | None:
        return self.ball_radius if self.domain == "ball" else None

    def _box(self) -> tuple[float, float]:
        return float(self.low or 0), float(self.high or 0)

    def _bound_losses(self, d: float, radius: float | None) -> tuple[float, float]:
        """Bound the losses in the domain, and the norms of their gradients."""
        if radius is None:
            corner = max(map(abs, self._box()))
            reach = corner * math.sqrt(d * (self.classes or 1)) * self.norm_bound
        else:
            reach = radius * self.norm_bound
        if self.classes is not None:
            return largest_softmax_loss(self.classes, reach), math.sqrt(2) * self.norm_bound
        label_bound = self.label_bound or 1.0
        largest, slope = _core.loss_bounds(self.loss, self._shape, reach, label_bound)
        return largest, slope * self.norm_bound

    def _choose_clip_norm(self, d: float, radius: float | None) -> float:
        bound = self._bound_losses(d, radius)[1]
        if self.loss not in _UNBOUNDED or not self.is_private:
            return bound
        slope = (self.label_bound or 1.0) if self.loss == "squared" else self.margin
        return min(bound, slope * self.norm_bound) or bound

    def _settle(self, n: int, d: int) -> Descent:
        """Choose what is open for learn on n records of d columns, with noise and radius."""
        descent = self._settle_alike(n, d, finds_noise=True)
        if self.radius is not None or self.domain == "box" or self.loss in ("squared", "huber"):
            return descent
        radius = self.ball_radius * grow_radius(descent.noise)
        descent = descent._replace(radius=bounded_positive("radius", radius))
        if self.clip_norm is not None:
            return descent
        clip_norm = self._choose_clip_norm(d, radius)
        return descent._replace(clip_norm=bounded_positive("clip_norm", clip_norm))

    def _settle_given_draws(self, rows: ValidRows) -> Descent:
        """Settle a run whose records others draw, for which steps and noise must be known."""
        self._refuse_uncalibrated()
        self._refuse_other_draws()
        self._refuse_fewer(len(rows))
        self._refuse_open()
        return self._settle_alike(*rows.entries.shape)

    def _settle_alike(self, n: int, d: int, finds_noise: bool = False) -> Descent:
        """Choose what all runs choose alike; find the noise that epsilon takes where asked."""
        self._check_start(d)
        weights, radius, clip_norm = d * (self.classes or 1), self._radius, self.clip_norm
        if clip_norm is None:
            clip_norm = bounded_positive("clip_norm", self._choose_clip_norm(d, radius))
        counts, multiplier = (self.steps, self.batch_size), self.noise_multiplier
        if finds_noise and self.epsilon is not None and self.is_private:
            *found, multiplier = plan_noise(n, weights, self.epsilon, self.delta, counts)
            steps, batch_size = found
        else:
            steps, batch_size = choose_counts(n, weights, math.inf, *counts)
        names = ["steps", "batch_size", "clip_norm"]
        names += ["radius"] if self.domain == "ball" else []
        chosen = tuple([name for name in names if getattr(self, name) is None])
        return Descent(weights, steps, batch_size, radius, clip_norm, multiplier, chosen)

    def _check_start(self, d: int) -> None:
        if self.start is not None and len(self.start) != d:
            raise ShapeError(f"start has {len(self.start):,} rows, but X has {d:,} columns")
        if self.start is not None and self.start.shape != (d, self.classes)[: self.start.ndim]:
            rule = f"there are {self.classes} classes"
            raise ShapeError(f"start has shape {self.start.shape}, but {rule}")

    def _plan(self, n: int, d: int, descent: Descent) -> SGDPlan:
        """Return the plan of a run on n records of d columns."""
        return SGDPlan(n=n, excess_risk=self._bound_risk(d, descent), **descent._asdict())

    def _bound_risk(self, d: int, descent: Descent) -> float | None:
        """Bound the excess risk as SGDPlan states it; None where there is no such bound."""
        weights, steps, batch_size, radius, clip_norm, multiplier, _ = descent
        is_plain = not (self.l1 or self.l2 or self.strong_convexity)
        if self.output == "last" or not is_plain or clip_norm < self._bound_losses(d, radius)[1]:
            return None
        low, high = self._box()
        diameter = (high - low) * math.sqrt(weights) if radius is None else 2 * radius
        moment = math.sqrt(1 + steps * descent.noise**2)
        # A Poisson number of gradients has 1 / batch_size more in its second moment.
        more = 0 if multiplier is None else 1 / (batch_size * moment)
        return diameter * clip_norm * (1.5 * moment + more) / math.sqrt(steps)

    def _validate_records(self, X: Any, y: ArrayLike) -> tuple[ValidRows, LossLabels]:
        rows = validate_rows(X)
        if self.classes is not None:
            return rows, validate_classes(y, len(rows), self.classes)
        return rows, validate_labels(y, len(rows), self.label_bound)

    def _descend(
        self,
        rows: ValidRows,
        labels: LossLabels,
        draws: Any,
        random_state: RandomState,
        descent: Descent,
    ) -> LinearModel | SoftmaxModel:
        """Run a descent, on given draws or on uniform ones for None."""
        n, d = rows.entries.shape
        start = None if self.start is None else np.ascontiguousarray(self.start.T).reshape(-1)
        multiplier = descent.noise_multiplier
        plan: _core._SGDPlan = {
            "loss": self.loss,
            "shape": self._shape,
            "classes": self.classes or 1,
            "steps": descent.steps,
            "batch_size": descent.batch_size,
            "radius": descent.radius or 0.0,
            "bounds": self._box() if self.domain == "box" else None,
            "last": self.output == "last",
            "start": start,
            "norm_bound": self.norm_bound,
            "clip_norm": descent.clip_norm,
            "l1": self.l1,
            "l2": self.l2,
            "strong_convexity": float(self.strong_convexity or 0),
            "sampling": "fixed" if multiplier is None else "poisson",
            "numerics": "none" if multiplier is None else self.numerics,
            "noise_multiplier": (multiplier or 0.0).as_integer_ratio(),
        }
        seed = make_key(random_state)
        weights = _core.sgd_learn(core_arguments(rows, labels), draws, plan, seed)
        if self.classes is not None:
            weights = np.ascontiguousarray(weights.reshape(self.classes, d).T)
        more = {"feature_names_in_": rows.names, "plan": self._plan(n, d, descent)}
        return self._make_model(weights, d, descent.radius, **more)

    def _make_model(
        self, weights: Floats, d: int, radius: float | None, **more: Any
    ) -> LinearModel | SoftmaxModel:
        loss = self._make_loss(self._bound_losses(d, radius)[0])
        make: Any = LinearModel if self.classes is None else SoftmaxModel
        model: LinearModel | SoftmaxModel = make(read_only(weights), loss, **more)
        return model


def _note_noise(descent: Descent) -> None:
    if descent.noise > 1:
        text = f"noise of all steps = {descent.noise:.1f} times the longest gradient, which drowns"
        note(f"{text} what the records say: more of them, fewer columns or a larger epsilon help")
