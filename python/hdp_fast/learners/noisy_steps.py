"""Steps that add noise to sums over drawn batches: their privacy, and the noise that they need."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, Self

from .. import accounting
from .._support.parameters import Checked, Parameters, Rules, optional, store
from .._support.progress import log_stage
from .._support.types import RandomState
from .._support.validate import (
    bounded_positive,
    one_of,
    positive,
    positive_int,
    positive_or_infinite,
    probability,
    refuse,
)
from ..accounting.calibration import (
    SLACK,
    density,
    rate_of,
    smallest_gaussian_noise,
    smallest_noise,
)
from ..accounting.conversion import gaussian_mu
from ..accounting.mechanisms import GaussianMechanism, Mechanism, SampledSum, Subsampled
from ..exceptions import InsufficientSamples, ParameterError
from ..record import PrivacyRecord, rng_of
from .descents import MOST_DRAWS, choose_counts

Numerics = Literal["exact", "idealized"]
Sampling = Literal["poisson", "fixed"]
# Steps, records in each, and the noise multiplier: what the privacy of a run depends on.
Run = tuple[int, int, float]

_MOST_RUNS = 1 << 40
_MOST_RECORDS = 1 << 62
# Less than the most that the core draws exactly, and far too much to learn anything.
_LARGEST_NOISE = 2.0**28
# Stated where (0, delta)-DP holds already, since a record needs an epsilon above 0.
_LEAST_EPSILON = 1e-9
# The range in which noise multipliers are searched, and the factor by which one is increased
# where rounding leaves it just too small; the part of delta left for that.
_LEAST_NOISE, _MOST_NOISE, _INCREASE = 0.1, 1e6, 1 + 1e-5
_SPARED = 2.5e-4
# The range in which records for each draw are searched.
_FEWEST, _MOST = 1e-4, 1e15
# The most draws of any one record that accounting takes in the mean.
_MOST_IN_MEAN = 10_000


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisySteps(Checked, Parameters):
    """Steps each of which adds Gaussian noise to a sum over records drawn with replacement.

    Attributes:
        steps: Number of steps, at least 1. None lets learn choose them.
        batch_size: Number of records drawn in a step, from 1 to `2**32`; its mean where the number
            is drawn. None takes 1 where steps are given, and lets learn choose it where they are
            not.
        epsilon: Privacy parameter of one run on uniform draws, for which learn calibrates the
            noise; math.inf for no privacy. Exactly one of epsilon and noise_multiplier must be set.
        noise_multiplier: Standard deviation of the noise, in units of the largest norm of a
            record's part in the sum.
        numerics: "exact" or "idealized".
        delta: Privacy parameter at which a run states its epsilon.
        calibrated_for: Number of records that calibrate found the noise for; fewer are refused.
            None for noise that was chosen otherwise.
        calibrated_sampling: The number of draws that it was found for, "poisson" or "fixed".
    """

    steps: int | None = None
    batch_size: int | None = None
    epsilon: float | None = None
    noise_multiplier: float | None = None
    numerics: Numerics = "exact"
    delta: float = 1e-6
    calibrated_for: int | None = None
    calibrated_sampling: Sampling | None = None

    RULES: ClassVar[Rules] = {
        "steps": optional(partial(positive_int, most=1 << 53)),
        "batch_size": optional(partial(positive_int, most=MOST_DRAWS)),
        "epsilon": optional(positive_or_infinite),
        "noise_multiplier": optional(partial(bounded_positive, most=_LARGEST_NOISE)),
        "numerics": partial(one_of, allowed=("exact", "idealized")),
        "delta": probability,
        "calibrated_for": optional(partial(positive_int, most=_MOST_RECORDS)),
        "calibrated_sampling": optional(partial(one_of, allowed=("poisson", "fixed"))),
    }

    def __post_init__(self) -> None:
        """Validate the parameters: exactly one of epsilon and noise_multiplier must be set."""
        super().__post_init__()
        epsilon, noise = self.epsilon, self.noise_multiplier
        if (epsilon is None) == (noise is None):
            # No noise is left out by chance.
            rule = "one of them must be given: epsilon = math.inf for no privacy"
            raise ParameterError(f"epsilon = {epsilon} and noise_multiplier = {noise}, but {rule}")
        if self.steps is None and noise is not None:
            refuse("steps", None, "they must be given with a noise_multiplier")
        if self.steps is not None and self.batch_size is None:
            store(self, batch_size=1)

    @property
    def is_private(self) -> bool:
        """Whether noise is added, now or once learn has found it for epsilon."""
        return self.epsilon != math.inf

    @property
    def counts(self) -> tuple[int, int]:
        """The number of steps, and of the records drawn in each.

        Raises:
            ParameterError: They are still to be chosen.
        """
        self._refuse_open()
        return self.steps or 0, self.batch_size or 0

    @property
    def step(self) -> Mechanism:
        """One step on records already drawn, as accounting takes it.

        Raises:
            ParameterError: There is no noise, or it has not been calibrated yet.
        """
        return _make_step(self._require_noise())

    def composition(
        self, rate: float, *, rounds: int = 1, sampling: Sampling = "fixed"
    ) -> list[tuple[Mechanism, int]]:
        """Composes `rounds` runs, as accounting.epsilon and accounting.delta take it.

        Args:
            rate: Largest probability of any record in a draw, in (0, 1]: 1 / n for learn, the rate
                of DenseWeights for learn_weighted.
            rounds: Number of runs, at least 1.
            sampling: "poisson" for learn, whose number of draws in a step is drawn from a Poisson
                law; "fixed" for learn_weighted and learn_indices, which take batch_size of them.

        Returns:
            One sampled mechanism and the number of its steps in all runs, as a list of one pair.

        Raises:
            ParameterError: A parameter is out of range, there is no noise, or it has not been
                calibrated yet.

        Guarantee:
            The runs, chosen adaptively, are as private under "replace_one" as the composition
            states.

        Source:
            Kohen and Sheffet 2022, Appendix A, sharpened: b changed draws of a batch move the sum
            by at most 2 b L, and accounting.Subsampled mixes over b. Where the number of draws has
            a Poisson law, that is accounting.SampledSum.
        """
        one_of("sampling", sampling, ("poisson", "fixed"))
        [(step, steps)] = _compose(self._private_run, rate, sampling)
        return [(step, steps * positive_int("rounds", rounds, _MOST_RUNS))]

    def calibrate(
        self,
        *,
        epsilon: float,
        n: int,
        delta: float | None = None,
        kappa: float | None = None,
        rounds: int = 1,
    ) -> Self:
        """Finds the least noise with which `rounds` runs are private.

        Args:
            epsilon: Privacy parameter of all runs together, finite and above 0.
            n: Number of records, at least 1.
            delta: Privacy parameter in (0, 1); None takes the learner's own.
            kappa: Density of the weights that a fixed number of records is drawn by, in (0, 1]; 1
                for uniform learn_indices. None is for learn, whose draws are uniform and whose
                number of draws has a Poisson law.
            rounds: Number of runs, at least 1.

        Returns:
            The same learner with the noise in place of its epsilon, and with `delta` and
            calibrated_for = n. The multiplier lies in [0.1, 1e6] and is the least there within
            about 1e-5 of itself.

        Raises:
            ParameterError: A parameter is out of range, or noise up to 1e6 is not enough.

        Guarantee:
            The runs are (epsilon, delta)-DP under "replace_one", by composition. With fewer than n
            records they would be less private, and the returned learner refuses them.

        Cost:
            About ten compositions, a tenth of a second in all, once in a process: the noise of the
            last 1,024 settings is kept. Beginning and end are logged at INFO.
        """
        rate, goal = rate_of(n, kappa), positive("epsilon", epsilon)
        delta = self.delta if delta is None else probability("delta", delta)
        steps, batch_size = self.counts
        steps *= positive_int("rounds", rounds, _MOST_RUNS)
        sampling = sampling_of(kappa)
        multiplier = find_noise(batch_size, rate, steps, goal, delta, n=n, sampling=sampling)
        return dataclasses.replace(
            self,
            epsilon=None,
            noise_multiplier=multiplier,
            delta=delta,
            calibrated_for=n,
            calibrated_sampling=sampling,
        )

    def records_needed(
        self,
        *,
        epsilon: float,
        delta: float | None = None,
        kappa: float | None = None,
        rounds: int = 1,
    ) -> int:
        """Finds how few records suffice, within 1e-5 of their number, for `rounds` private runs.

        Args:
            epsilon: Privacy parameter of all runs together, above 0.
            delta: Privacy parameter in (0, 1); None takes the learner's own.
            kappa: Density of the weights that a fixed number of records is drawn by, in (0, 1]; 1
                for uniform learn_indices. None is for learn, whose draws are uniform and whose
                number of draws has a Poisson law.
            rounds: Number of runs, at least 1.

        Returns:
            The number of records.

        Raises:
            ParameterError: A parameter is out of range, there is no noise, it has not been
                calibrated yet, or no number of records up to about 1e15 is enough.

        Guarantee:
            With that many records or more the runs are (epsilon, delta)-DP under "replace_one", by
            composition.

        Cost:
            As for accounting.largest_rate.
        """
        (steps, batch_size), step = self.counts, self.step
        runs = steps * positive_int("rounds", rounds, _MOST_RUNS)
        delta = self.delta if delta is None else delta
        if kappa is None:
            multiplier = self.noise_multiplier or 0
            each = smallest_noise(
                lambda records: _make_sum(multiplier, 1 / records),
                epsilon=epsilon,
                delta=delta,
                rounds=runs,
                low=_FEWEST,
                high=_MOST,
            )
            return math.ceil(SLACK * batch_size * each)
        rate = accounting.largest_rate(
            step, draws=batch_size, rounds=runs, epsilon=epsilon, delta=delta
        )
        return math.ceil(SLACK / (rate * density(kappa)))

    def epsilon_for(
        self,
        *,
        n: int,
        delta: float | None = None,
        kappa: float | None = None,
        rounds: int = 1,
    ) -> float:
        """Computes the epsilon of `rounds` runs with this noise.

        Args:
            n: Number of records, at least 1.
            delta: Privacy parameter in (0, 1); None takes the learner's own.
            kappa: Density of the weights that a fixed number of records is drawn by, in (0, 1]; 1
                for uniform learn_indices. None is for learn, whose draws are uniform and whose
                number of draws has a Poisson law.
            rounds: Number of runs, at least 1.

        Returns:
            The epsilon, the same for both kinds of noise; infinite where none holds at delta.

        Raises:
            ParameterError: A parameter is out of range, there is no noise, or it has not been
                calibrated yet.

        Guarantee:
            The runs are (epsilon, delta)-DP under "replace_one", by composition. Noise in floats
            keeps that only as far as floats are like real numbers.

        Cost:
            One call of accounting.epsilon.

        Examples:
            >>> from hdp_fast.learners import PrivateSGD
            >>> learner = PrivateSGD(loss="hinge", steps=100, noise_multiplier=1.0)
            >>> print(f"{learner.epsilon_for(n=10_000):.2f} at delta {learner.delta}")
            0.01 at delta 1e-06
        """
        delta, rate = self.delta if delta is None else delta, rate_of(n, kappa)
        terms = self.composition(rate, rounds=rounds, sampling=sampling_of(kappa))
        return accounting.epsilon(terms, delta)

    def uniform_record(self, n: int, random_state: RandomState) -> PrivacyRecord:
        """States what protects n records that one run draws from uniformly.

        Args:
            n: Number of records, at least 1.
            random_state: What the run draws from, as learn takes it; the record names its kind.

        Returns:
            The record of the run, with its epsilon at the learner's delta.

        Raises:
            ParameterError: n is out of range, there is no noise, it has not been calibrated yet, or
                no epsilon holds.

        Guarantee:
            The record states the composition at rate 1 / n of steps whose number of draws has a
            Poisson law, under "replace_one". Nothing is drawn or spent.
        """
        return self._state_run(self._private_run, n, random_state)

    def _state_run(self, run: Run, n: int, random_state: RandomState) -> PrivacyRecord:
        """State what protects n records in a run: steps, records in each, and their noise."""
        steps, batch_size, multiplier = run
        epsilon = accounting.epsilon(_compose(run, rate_of(n, None), "poisson"), self.delta)
        if epsilon == math.inf:
            rule = f"for {n:,} records no epsilon holds at delta = {self.delta:g}"
            raise ParameterError(f"noise_multiplier = {multiplier}, but {rule}")
        kind = "rounded Gaussian on integers" if self.numerics == "exact" else "Gaussian in floats"
        return PrivacyRecord(
            mechanism=f"learners.PrivateSGD, {steps} steps of Poisson({batch_size}) uniform draws",
            source="Kohen and Sheffet 2022, Algorithm 3; accounting.SampledSum",
            neighbors="replace_one",
            epsilon=max(epsilon, _LEAST_EPSILON),
            delta=self.delta,
            noise=f"{kind}, {multiplier:g} Lipschitz constants on each sum",
            numerics=self.numerics,
            rng=rng_of(random_state),
        )

    @property
    def _private_run(self) -> Run:
        return (*self.counts, self._require_noise())

    def _require_noise(self) -> float:
        """The noise multiplier.

        Raises:
            ParameterError: There is no noise, or it has not been calibrated yet.
        """
        if self.noise_multiplier is None:
            self._refuse_uncalibrated()
            refuse("epsilon", self.epsilon, "only noise protects: there is no guarantee")
        return self.noise_multiplier

    def _refuse_open(self) -> None:
        """Refuse steps that only learn chooses.

        Raises:
            ParameterError: steps was not given.
        """
        if self.steps is None:
            refuse("steps", None, "only learn chooses them: give them, or those of plan(n=, d=)")

    def _refuse_uncalibrated(self) -> None:
        """Refuse an epsilon whose noise depends on arguments that only calibrate has.

        Raises:
            ParameterError: The learner has a finite epsilon and no noise yet.
        """
        if self.noise_multiplier is None and self.is_private:
            rule = "only learn finds the noise for it: use calibrate, or give noise_multiplier"
            refuse("epsilon", self.epsilon, rule)

    def _refuse_other_draws(self) -> None:
        """Refuse a fixed number of draws where the noise was found for a number that is drawn.

        Raises:
            ParameterError: It was.
        """
        if self.calibrated_sampling == "poisson":
            rule = "its noise is for learn, which draws the number of draws: give calibrate a kappa"
            refuse("calibrated_sampling", self.calibrated_sampling, rule)

    def _refuse_fewer(self, n: int) -> None:
        """Refuse fewer records than the noise was calibrated for.

        Raises:
            InsufficientSamples: n is smaller.
        """
        if self.calibrated_for is not None and n < self.calibrated_for:
            rule = f"the noise is calibrated for {self.calibrated_for:,}: calibrate it for n = {n}"
            raise InsufficientSamples(f"X has {n:,} records, but {rule}")


def _make_step(multiplier: float) -> Mechanism:
    """Return a step with this noise, on records already drawn.

    Exact noise is a normal deviate that is rounded after it was added to a sum of integers. The
    norm of each record's integers is checked in integers, so that a changed draw moves the sum by
    at most twice the largest norm: both kinds of noise make a Gaussian mechanism.
    """
    return GaussianMechanism(2 / multiplier)


def _make_sum(multiplier: float, rate: float) -> Mechanism:
    """Return a step with this noise, records drawn a Poisson number of times with this mean."""
    return SampledSum(math.nextafter(1 / multiplier, math.inf), rate=rate)


def _compose(run: Run, rate: float, sampling: Sampling) -> list[tuple[Mechanism, int]]:
    """One sampled mechanism and the number of its steps."""
    steps, draws, multiplier = run
    is_fixed = sampling == "fixed"
    if is_fixed or draws * rate > _MOST_IN_MEAN:
        # It refuses too large a product in words of its factors, which a sum does not know.
        step: Mechanism = Subsampled(_make_step(multiplier), draws=draws, rate=rate)
    return [(step if is_fixed else _make_sum(multiplier, draws * rate), steps)]


def sampling_of(kappa: float | None) -> Sampling:
    """How learners draw: a fixed number of records by weights of a density, or else uniformly."""
    return "poisson" if kappa is None else "fixed"


@lru_cache(maxsize=1024)
def plan_noise(
    n: int,
    weights: int,
    epsilon: float,
    delta: float,
    counts: tuple[int | None, int | None] = (None, None),
) -> tuple[int, int, float]:
    """The steps, the records in each and the least noise of a private run on n uniform records.

    counts: steps and batch_size, of which None lets the rules choose.

    Raises: ParameterError where no noise is enough.
    """
    mu = gaussian_mu(epsilon, delta) if None in counts else math.inf
    steps, draws = choose_counts(n, weights, mu, *counts)
    return steps, draws, find_noise(draws, rate_of(n, None), steps, epsilon, delta, n=n)


def check_noise(n: int, weights: int, epsilon: float, delta: float) -> None:
    """Refuse what learn would refuse of n records, before anything is spent on its way there.

    Raises: ParameterError where epsilon or delta lies outside its range or no noise is enough.
    """
    plan_noise(n, weights, positive("epsilon", epsilon), probability("delta", delta))


def find_noise(
    draws: int,
    rate: float,
    steps: int,
    epsilon: float,
    delta: float,
    *,
    n: int,
    sampling: Sampling = "poisson",
) -> float:
    """Find the least multiplier at which `steps` steps on n records are private, and log it.

    Raises: ParameterError where no noise is enough.
    """
    log_stage("learners.PrivateSGD: noise for %d steps on %d records", steps, n)
    try:
        multiplier = _search_noise(draws, rate, steps, epsilon, delta, sampling)
    except ParameterError as error:
        # All arguments are valid here: the noise is not enough.
        rule = f"for {n:,} records no noise up to {_MOST_NOISE:g} is enough"
        raise ParameterError(f"epsilon = {epsilon}, but {rule}") from error
    log_stage("learners.PrivateSGD: noise multiplier %g", multiplier)
    return multiplier


@lru_cache(maxsize=1024)
def _search_noise(
    draws: int, rate: float, steps: int, epsilon: float, delta: float, sampling: Sampling
) -> float:
    """Find the least multiplier at which `steps` steps are private.

    Raises:
        ParameterError: No noise is enough.
    """

    def step(multiplier: float) -> Mechanism:
        if sampling == "poisson":
            return _make_sum(multiplier, draws * rate)
        return Subsampled(_make_step(multiplier), draws=draws, rate=rate)

    # accounting.epsilon ends slightly above the least one, but a budget of this must be enough.
    goal: dict[str, Any] = {"epsilon": epsilon, "delta": delta * (1 - _SPARED), "rounds": steps}
    low, high = _LEAST_NOISE, _MOST_NOISE
    if sampling == "poisson":
        multiplier = smallest_noise(step, low=low, high=high, **goal)
    else:
        multiplier = 2 * smallest_gaussian_noise(
            draws=draws, rate=rate, low=low / 2, high=high / 2, **goal
        )
    while accounting.epsilon([(step(multiplier), steps)], delta) > epsilon:
        multiplier *= _INCREASE
    return multiplier
