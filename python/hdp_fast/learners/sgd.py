"""Private stochastic gradient descent for linear models of a bounded norm."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import _core, accounting
from .._support.random_state import check_random_state, make_key
from .._support.types import Floats, RandomState
from .._support.validate import (
    MOST,
    bounded_positive,
    integers,
    nonnegative,
    one_of,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..accounting.mechanisms import ZCDP, GaussianMechanism, Mechanism, Subsampled
from ..accounting.sampling_rate import SLACK, density, rate_of
from ..budget.account import Budget, spend
from ..exceptions import ParameterError
from ..record import PrivacyRecord, rng_of
from ..weights import DenseWeights
from .descriptions import Hypothesis, parse
from .hypotheses import read_only, store
from .linear_model import LinearLoss, LinearModel, Rows, as_given, labels_of, looked_at

Loss = Literal["hinge", "logistic", "squared", "huber"]
Numerics = Literal["exact", "idealized", "idealized"]

_LOSSES = ("hinge", "logistic", "squared", "huber")
_NUMERICS = ("exact", "idealized", "idealized")

# Below what the core draws exactly, and far above what leaves anything to learn from.
_LARGEST_NOISE = 2.0**28
# Stated where (0, delta)-DP holds already; a record wants a number above 0.
_LEAST_EPSILON = 1e-9
# Where noise is searched, in Lipschitz constants.
_LEAST_NOISE, _MOST_NOISE, _STRETCH = 0.1, 1e6, 1 + 1e-5


class SGDGuarantees(NamedTuple):
    """The epsilon of the same run with either kind of noise.

    Attributes:
        exact: of discrete Gaussian noise on integers, by its own Renyi divergence.
        idealized: of Gaussian noise as real numbers would have it.
        delta: of both.
    """

    exact: float
    idealized: float
    delta: float


@dataclass(frozen=True, eq=False)
class PrivateSGD:
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
            noise_multiplier=None protects nobody.

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
        noise_multiplier: standard deviation in units of L, on the sum over a batch; None for no
            privacy.
        numerics: "exact", or "idealized", which is faster; kept as "idealized", as in records.
        label_bound: None for labels 0 and 1, which stand for -1 and 1; a number c for real labels,
            clipped to [-c, c], of "squared" and "huber".
        threshold: of "huber".
        l1: weight of a penalty sum |w_j|: soft thresholds after each step.
        l2: weight of a penalty |w|**2 / 2.
        strong_convexity: lambda where the objective is known to be lambda-strongly convex, 0 for
            the other steps; None means l2.
        delta: at which learn states its epsilon.

    Raises: ParameterError.
    Cost: none until it learns.
    Source: Kohen and Sheffet 2022, Algorithm 3, whose step D / (noise sqrt(r)) neglects L and whose
        D / (lambda r) has a D too many; minibatches and clipping are ours. L1: the remark at the
        end of their Appendix D.
    """

    loss: Loss
    _: dataclasses.KW_ONLY
    steps: int
    batch_size: int = 1
    radius: float = 1.0
    norm_bound: float = 1.0
    clip_norm: float | None = None
    noise_multiplier: float | None = None
    numerics: Numerics = "exact"
    label_bound: float | None = None
    threshold: float = 1.0
    l1: float = 0.0
    l2: float = 0.0
    strong_convexity: float | None = None
    delta: float = 1e-6

    def __post_init__(self) -> None:
        """Refuse what is no learner."""
        for name, words in (("loss", _LOSSES), ("numerics", _NUMERICS)):
            one_of(name, getattr(self, name), words)
        real = self.loss in ("squared", "huber")
        if self.label_bound is not None and not real:
            refuse(
                "label_bound",
                self.label_bound,
                f"{self.loss} loss takes labels 0 and 1, and no bound",
            )
        for name in ("radius", "norm_bound", "threshold"):
            store(self, **{name: bounded_positive(name, getattr(self, name))})
        for name, most in (("noise_multiplier", _LARGEST_NOISE), ("label_bound", MOST)):
            if getattr(self, name) is not None:
                store(self, **{name: bounded_positive(name, getattr(self, name), most)})
        strong_convexity = self.l2 if self.strong_convexity is None else self.strong_convexity
        store(
            self,
            numerics="exact" if self.numerics == "exact" else "idealized",
            steps=positive_int("steps", self.steps, 1 << 53),
            batch_size=positive_int("batch_size", self.batch_size, 1 << 32),
            l1=nonnegative("l1", self.l1),
            l2=nonnegative("l2", self.l2),
            strong_convexity=nonnegative("strong_convexity", strong_convexity),
            delta=probability("delta", self.delta),
            clip_norm=bounded_positive("clip_norm", self._steepest()),
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

    @property
    def step(self) -> Mechanism:
        """One step on records already drawn, as accounting takes it.

        Raises: ParameterError without noise.
        """
        if self.noise_multiplier is None:
            raise ParameterError(
                "noise_multiplier = None, but only noise protects: there is no guarantee"
            )
        mu = 2 / self.noise_multiplier
        return ZCDP(mu**2 / 2) if self.numerics == "exact" else GaussianMechanism(mu)

    def composition(self, rate: float, *, rounds: int = 1) -> list[tuple[Mechanism, int]]:
        """What `rounds` runs cost, as accounting.epsilon and accounting.delta take it.

        rate: the largest probability of any record in a draw: 1 / n for learn, `rate` of
        DenseWeights for learn_weighted. rounds: at least 1.

        Guarantee: so many runs, chosen adaptively, are as private under replace_one as the
            composition says.
        Raises: ParameterError, also without noise.
        Cost: constant.
        Source: Kohen and Sheffet 2022, Appendix A, sharpened: b changed draws of a batch move the
            sum by at most 2 b L, and accounting.Subsampled mixes over b.
        """
        subsampled = Subsampled(self.step, draws=self.batch_size, rate=rate)
        return [(subsampled, self.steps * positive_int("rounds", rounds, 1 << 40))]

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

        Guarantee: composition(1 / n); the model's record states its epsilon at delta.
        Raises: ShapeError, ParameterError, BudgetExceeded, before any coin is drawn or budget
            spent; MemoryError, for batches of billions after it is spent.
        Cost: steps * batch_size rows read in random order; a pass over X unless it is prepared.
        Source: as the class.
        """
        check_random_state(random_state)
        rows = looked_at(X)
        labels = labels_of(y, len(rows), self.label_bound)
        if self.noise_multiplier is None:
            if budget is not None:
                rule = "only a private run can be charged to a budget"
                raise ParameterError(f"noise_multiplier = None, but {rule}")
            return self._learned(rows, labels, None, random_state)
        record = self._record(len(rows), random_state)
        with spend(budget, record):
            found = self._learned(rows, labels, None, random_state)
        return dataclasses.replace(found, record=record)

    def learn_weighted(
        self, X: Any, y: ArrayLike, weights: DenseWeights, *, random_state: RandomState = None
    ) -> LinearModel:
        """Learn from records drawn by weights, which stay inside.

        X, y, random_state: as learn. weights: of the same n records.

        Guarantee: composition(weights.rate), for weights that a run of multiplicative updates made.
        Raises: as learn.
        Cost: as learn, and a handful of passes over the weights.
        Source: Kohen and Sheffet 2022, Algorithm 4.
        """
        check_random_state(random_state)
        rows = looked_at(X)
        labels = labels_of(y, len(rows), self.label_bound)
        if not isinstance(weights, DenseWeights):
            refuse("weights", weights, "they must be DenseWeights")
        return self._learned(rows, labels, weights._weights, random_state)

    def learn_indices(
        self, X: Any, y: ArrayLike, indices: ArrayLike, *, random_state: RandomState = None
    ) -> LinearModel:
        """Learn from these draws, whoever made them: the first `batch_size` are the first step's.

        X, y, random_state: as learn. indices: integers from 0 to n - 1, (steps * batch_size,).

        Raises: as learn.
        Cost: as learn.
        Source: as the class.
        """
        check_random_state(random_state)
        rows = looked_at(X)
        chosen = integers("indices", indices, np.int64)
        return self._learned(rows, labels_of(y, len(rows), self.label_bound), chosen, random_state)

    def prepare(self, X: Any) -> Rows:
        """The records, looked at once: calls that are given this need not look again.

        X: as learn; it must stay as it is.

        Raises: ShapeError, ParameterError.
        Cost: a pass over X; a copy unless it is float32 or float64 and C-contiguous.
        Source: none.
        """
        return looked_at(X)

    def restore(self, hypothesis: Hypothesis | str) -> LinearModel:
        """What was learned, from its description.

        hypothesis: of a LinearModel, a dict or its JSON.

        Raises: ParameterError for anything else.
        Cost: linear in d.
        Source: none.
        """
        said = parse(hypothesis)
        if said["kind"] != "linear" or said["bias"] != 0:
            refuse("hypothesis", hypothesis, "it must be a linear one with bias 0")
        return LinearModel(read_only(np.array(said["weights"])), self.linear_loss)

    def calibrated(
        self,
        *,
        epsilon: float,
        n: int,
        delta: float | None = None,
        kappa: float | None = None,
        rounds: int = 1,
    ) -> PrivateSGD:
        """The same learner with the least noise at which `rounds` runs are private.

        epsilon: above 0; n: records, at least 1; delta: None means the learner's own; kappa:
        density of the weights, in (0, 1]; None for learn, whose draws are uniform. rounds: at
        least 1.

        Guarantee: the runs are (epsilon, delta)-DP, by composition.
        Raises: ParameterError, also when no noise is enough.
        Cost: about 25 calls of accounting.delta.
        Source: bisection.
        """
        rate, wanted = rate_of(n, kappa), positive("epsilon", epsilon)
        chosen = self.delta if delta is None else probability("delta", delta)
        steps = self.steps * positive_int("rounds", rounds, 1 << 40)

        def family(multiplier: float) -> Mechanism:
            return dataclasses.replace(self, noise_multiplier=multiplier).composition(rate)[0][0]

        try:
            multiplier = accounting.smallest_noise(
                family,
                epsilon=wanted,
                delta=chosen,
                rounds=steps,
                low=_LEAST_NOISE,
                high=_MOST_NOISE,
            )
        except ParameterError as error:
            # All arguments have been checked: what is left is noise that is not enough.
            rule = f"for {n:,} records no noise up to {_MOST_NOISE:g} is enough"
            raise ParameterError(f"epsilon = {epsilon}, but {rule}") from error
        found = dataclasses.replace(self, noise_multiplier=multiplier, delta=chosen)
        # The search for an epsilon ends above it: a budget of the given one must be enough.
        while accounting.epsilon(found.composition(rate, rounds=rounds), chosen) > wanted:
            smallest = positive("noise_multiplier", found.noise_multiplier)
            found = dataclasses.replace(found, noise_multiplier=smallest * _STRETCH)
        return found

    def records_needed(
        self,
        *,
        epsilon: float,
        delta: float | None = None,
        kappa: float | None = None,
        rounds: int = 1,
    ) -> int:
        """The fewest records, within 1e-5 of their number, for which `rounds` runs are private.

        epsilon, delta, kappa, rounds: as calibrated.

        Guarantee: with so many records or more the runs are (epsilon, delta)-DP, by composition.
        Raises: ParameterError, also without noise.
        Cost: about 25 calls of accounting.delta.
        Source: bisection.
        """
        rate = accounting.largest_rate(
            self.step,
            draws=self.batch_size,
            rounds=self.steps * positive_int("rounds", rounds, 1 << 40),
            epsilon=epsilon,
            delta=self.delta if delta is None else delta,
        )
        return math.ceil(SLACK / (rate * density(kappa)))

    def guarantees(
        self,
        *,
        n: int,
        delta: float | None = None,
        kappa: float | None = None,
        rounds: int = 1,
    ) -> SGDGuarantees:
        """The epsilon of `rounds` runs with exact and with idealized noise, side by side.

        n, delta, kappa, rounds: as calibrated.

        Guarantee: each is that of the composition with the noise that it names.
        Raises: ParameterError, also without noise.
        Cost: two calls of accounting.epsilon.
        Source: as composition.
        """
        chosen, rate = self.delta if delta is None else delta, rate_of(n, kappa)
        exact, idealized = (
            accounting.epsilon(each.composition(rate, rounds=rounds), chosen)
            for each in (
                dataclasses.replace(self, numerics="exact"),
                dataclasses.replace(self, numerics="idealized"),
            )
        )
        return SGDGuarantees(exact, idealized, chosen)

    def _bounds(self) -> tuple[float, float]:
        """The largest loss and its steepest slope in the score."""
        label = 1.0 if self.label_bound is None else self.label_bound
        largest = self.radius * self.norm_bound
        return _core.loss_bounds(self.loss, self.threshold, largest, label)

    def _steepest(self) -> Any:
        return self._bounds()[1] * self.norm_bound if self.clip_norm is None else self.clip_norm

    def _learned(
        self, rows: Rows, labels: Floats, draws: Any, random_state: RandomState
    ) -> LinearModel:
        kind = "exact" if self.numerics == "exact" else "idealized"
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
            "numerics": "none" if self.noise_multiplier is None else kind,
            "noise_multiplier": float(self.noise_multiplier or 0).as_integer_ratio(),
        }
        model = _core.sgd_learn(as_given(rows, labels), draws, plan, make_key(random_state))
        return LinearModel(read_only(model), self.linear_loss)

    def _record(self, n: int, random_state: RandomState) -> PrivacyRecord:
        epsilon = accounting.epsilon(self.composition(rate_of(n, None)), self.delta)
        if epsilon == math.inf:
            rule = f"for {n:,} records no epsilon holds at delta = {self.delta:g}"
            raise ParameterError(f"noise = {self.noise_multiplier}, but {rule}")
        kind = "discrete Gaussian on integers" if self.numerics == "exact" else "Gaussian in floats"
        return PrivacyRecord(
            mechanism=f"learners.PrivateSGD, {self.steps} steps of {self.batch_size} uniform draws",
            source="Kohen and Sheffet 2022, Algorithm 3; accounting.Subsampled",
            neighbors="replace_one",
            epsilon=max(epsilon, _LEAST_EPSILON),
            delta=self.delta,
            noise=f"{kind}, {self.noise_multiplier:g} Lipschitz constants on each sum",
            numerics="exact" if self.numerics == "exact" else "idealized",
            rng=rng_of(random_state),
        )
