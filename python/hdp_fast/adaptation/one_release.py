"""Adaptation in one release: the moments of the target's residuals around the public optimum."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .._support.notes import keep_result
from .._support.parameters import Rules, check_fields, optional
from .._support.progress import log_stage
from .._support.types import Floats, RandomState
from .._support.validate import (
    bounded,
    bounded_positive,
    one_of,
    positive,
    positive_int,
    positive_or_infinite,
    probability,
    read_only,
    unit_interval,
)
from ..budget.account import Budget
from ..data.chunks import Chunks
from ..exceptions import HdpFastError, ShapeError
from ..learners.released_statistics import ReleasedStatistics
from .base import Estimator
from .baselines.reweighting import Loss
from .domains import Domain, open_domain
from .privacy import Privacy, set_privacy
from .residual_moments import (
    ChangePosterior,
    MomentProblem,
    MomentResult,
    ResidualSettings,
    average_posterior,
    denoise,
    note_signal,
    release_residuals,
    signal_of,
    weigh_constants,
)
from .source_optimum import (
    Directions,
    SourceOptimum,
    choose_directions,
    fit_source,
    measure_features,
)

Task = Literal["regression", "classification"]
_LOSSES: dict[Task, Loss] = {"regression": "squared", "classification": "logistic"}

# Public rules, tuned on the data sets of docs/reproduction/adaptation.md, which says how.
_DIRECTIONS = 30
_CLIP, _CLASS_CLIP = 1.5, 1.25
_LEAST_CLIP = 0.2
# At least this share of residuals is taken to be within the clip.
_LEAST_WHOLE = 0.5
# Parts of the source's coefficients that the target may be near, and their probabilities before the
# release.
_KEPT, _PRIORS = (1.0, 0.5, 0.0), (0.85, 0.05, 0.1)
_MOST_DIRECTIONS = 4_096


class _ReleaseSettings(NamedTuple):
    """The validated parameters of a fit; None stands for a public rule."""

    privacy: Privacy
    loss: Loss
    directions: int | None
    whitening: float
    clip: float | None
    source_penalty: float | None
    ratio: float


@dataclass(kw_only=True, eq=False)
class MomentAdaptation(Estimator):
    """A linear predictor for a private target, from a public source and one noisy release.

    fit takes the ridge regression of the public source, whose intercept is not penalized; its
    coefficients are `source_coef_`. Each record (x, y) of the target has the features z = A x of
    norm at most 1 and the residual r = y - <source_coef_, x>. The sums of z r and of z z' over the
    target are released once, with noise for one Gaussian budget. All that follows is computed from
    released numbers and costs nothing: the change of the coefficients is the posterior mean of a
    Gaussian model of the release, averaged over prior variances of slopes and of the intercept,
    over how those go with the directions' second moments, and over whether the target is near the
    source's slopes, half of them or none, each weighed by its evidence.

    A column that is a constant other than 0 in the source makes an intercept. Where there are
    several, such as a column that tells the two domains apart, the source cannot say which of them
    is a constant of the target, too: a number takes their place in residuals, each of them is
    looked at in the release, and the intercept goes to those that are constants of the target by
    its evidence; the others are left out. Put the constant last, where it is expected.

    There is nothing to tune: neither a radius nor a share of the source, and no bound on rows or
    labels. What the settings leave open is taken from the public source, by rules that read no
    target record.

    - The source's penalty is the largest one that predicts eighths of consecutive source records,
      left out in turn, within one standard error of the best. It therefore helps to leave the
      records in their order of time or place.
    - A goes along the principal directions of the source around its means, at most 30 of them, and
      makes their second moments equal; the intercept is a coordinate of its own. It is scaled so
      that nine tenths of the source have a norm of at most 1.
    - Residuals are clipped at 1.5 times the root of their mean square on the source, but at no
      less than a fifth of the standard deviation of the source's labels. For the labels -1 and 1 of
      a classification they are clipped at 1.25. The released sums are divided by the share of the
      source's residuals within the clip, since the others do not follow the coefficients.

    Where this wins and where it does not is measured in docs/reproduction/adaptation.md. It adapts
    in at most `directions` directions, and its residuals are clipped: where the target differs from
    the source by more than the source's residuals, a larger clip helps.

    Attributes:
        epsilon: Privacy parameter, above 0. math.inf adds no noise and protects no one.
        delta: Privacy parameter in (0, 1).
        task: "regression" for real labels. "classification" for labels 0 and 1, which are learned
            as -1 and 1 by least squares; a score of at least 0 predicts 1.
        directions: Number k of directions beside the intercept, from 1 to 4,096; None takes 30.
            More than there are columns, or directions with a positive second moment, stand for all
            of these.
        whitening: How far the second moments of the directions are made equal, from 0 (not) to 1.
        clip: Magnitude to which residuals are clipped, in [1e-30, 1e30] and in units of the labels;
            for a classification these are -1 and 1. None takes the rule above.
        source_penalty: Penalty of the source's regression in [1e-12, 1e12], as a share of the
            largest second moment of the source. None takes the rule above.
        ratio: Standard deviation of the noise on the diagonal of the sum of z z' over that on the
            sum of z r / clip, in [0.01, 100].
        coef_: The adapted coefficients after fit, float64 of shape (d,), read-only.
        source_coef_: The public optimum after fit, float64 of shape (d,), read-only. Where the
            source has several constants, the release says which of them have its intercept.
        signal_: Squared norm of the released residual sums over that of their noise, after fit.
        result_: The MomentResult after fit.
        statistics_: The released moments after fit, a ReleasedStatistics that may be published.
        record_: The PrivacyRecord of the target after fit; None if epsilon = math.inf.
        feature_names_in_: The names of the features after fit, if fit took a frame; otherwise None.

    Guarantee:
        fit is (epsilon, delta)-DP for the records of the target under "replace_one", exact. The
        number of target records, the source and all settings are public. Let |z| <= 1 and |r| <=
        clip. Let A be one over the variance of the noise on the sums of z r / clip, and B that of
        the noise on the diagonal of the sum of z z', whose entries above it have half of the
        variance. A replaced record moves both together by a squared mu of at most
        `2 B (1 + A / (2 B))**2`, or `4 A` where A exceeds 2 B (proved). Features are computed row
        by row, cut towards zero to integers whose norm is checked in integers, and residuals are
        clipped and cut likewise; the sums are exact, and the noise is drawn exactly. A record whose
        features overflow counts as zero, silently. Everything else is computed from the release.
        The running time is not protected. epsilon = math.inf protects no one.

    Cost:
        `O((m + n) d**2 + d**3)` for the source and the release, and some hundred solutions of k
        equations. Chunks of the target are read twice, once to count them; those of the source six
        times, one part after the other, with eight bytes a record in memory.

    Source:
        Wang 2018 (AdaSSP) for released moments of linear regression; Balle and Wang 2018 for the
        curve of the Gaussian mechanism; MacKay 1992 for the evidence of a prior.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import MomentAdaptation
        >>> X = np.linspace(-1, 1, 2_000)[:, None]
        >>> y_source, y_target = 0.1 * X[:, 0], 0.8 * X[:, 0]
        >>> model = MomentAdaptation(epsilon=4, clip=1)  # residuals are at most 0.7
        >>> model = model.fit(X, y_source, X[::4], y_target[::4])
        >>> bool(abs(model.coef_[0] - 0.8) < 0.2), model.record_.epsilon
        (True, 4.0)
    """

    epsilon: float
    delta: float = 1e-6
    task: Task = "regression"
    directions: int | None = None
    whitening: float = 1.0
    clip: float | None = None
    source_penalty: float | None = None
    ratio: float = 1.2

    RULES: ClassVar[Rules] = {
        "epsilon": positive_or_infinite,
        "delta": probability,
        "task": partial(one_of, allowed=tuple(_LOSSES)),
        "directions": optional(partial(positive_int, most=_MOST_DIRECTIONS)),
        "whitening": unit_interval,
        "clip": optional(bounded_positive),
        "source_penalty": optional(partial(bounded, low=1e-12, high=1e12)),
        "ratio": partial(bounded, low=0.01, high=100),
    }

    @property
    def loss(self) -> Loss:  # type: ignore[override]
        """How scores are read: "squared" for regression, "logistic" for classification."""
        return _LOSSES[self.task]

    @keep_result
    def fit(
        self,
        X_source: ArrayLike | Chunks,
        y_source: ArrayLike | None,
        X_target: ArrayLike | Chunks,
        y_target: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        budget: Budget | None = None,
        random_state: RandomState = None,
    ) -> Self:
        """Learns the coefficients from the public source and one release of the target.

        fit warns with a UtilityWarning where delta is above 1 / n for n target records, where n is
        so small that noise hides whatever the residuals add up to (both before anything is spent),
        and where the released residual sums look like noise alone.

        Args:
            X_source: Public records, finite real numbers of shape (m, d), m and d at least 1; or
                data.Chunks of them with their labels, in order. A constant column makes an
                intercept.
            y_source: Labels of the source, shape (m,): finite real numbers, or 0 and 1. None beside
                Chunks.
            X_target: Private records, finite real numbers of shape (n, d), n at least 1; or
                data.Chunks of them with their labels.
            y_target: Labels of the target, shape (n,). None beside Chunks.
            ids: Whose record it is, for each record of the target, as data.bound_rows takes
                them: the guarantee is then for people, who may have several records. None protects
                each record. Chunks name a column of ids themselves.
            rows_per_person: The most records of a person that are used, the others being left out;
                public.
            budget: What fit is charged to before any coin is drawn; None charges nothing.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one who knows it.

        Returns:
            The estimator itself.

        Raises:
            ShapeError: An array has another shape than described.
            ParameterError: A parameter is out of range, an entry is no finite real number or no
                label, the source has no entry but 0, one whose square overflows or a label beyond
                1e30, the frames of both domains have different columns, no noise that is drawn is
                enough for epsilon, or a budget comes with epsilon = math.inf.
            BudgetExceeded: The budget has less than epsilon or delta left.
            Exception: What the functions of Chunks raise; nothing is spent then.

        Guarantee:
            That of the class. With ids it is for whatever a person's records hold, and ids are
            public. The warnings depend on public facts and released numbers alone. No
            budget is spent where fit raises.
        """
        settings = self._validate_settings(budget, random_state)
        owners = ids, rows_per_person
        target = open_domain("target", X_target, y_target, settings.loss, owners=owners)
        source = open_domain("source", X_source, y_source, settings.loss, names=target.names)
        if source.columns != target.columns:
            rule = f"there must be {target.columns}"
            raise ShapeError(f"X_source has {source.columns} columns, but {rule}")
        log_stage(
            "adaptation.MomentAdaptation: %d source and %d target records", source.n, target.n
        )
        optimum = fit_source(source, settings.source_penalty)
        directions = choose_directions(
            source, optimum, settings.directions or _DIRECTIONS, settings.whitening
        )
        clip = _choose_clip(optimum, settings)
        privacy = settings.privacy.change(persons=target.persons)
        statistics = release_residuals(
            directions.features,
            optimum.coef,
            target.fold,
            target.n,
            ResidualSettings(clip, settings.ratio, privacy),
            optimum.intercept,
        )
        problem = _state_problem(statistics, directions, source, optimum, settings)
        posterior = average_posterior(problem)
        self._problem, self._matrix, self._optimum = problem, directions.matrix, optimum
        self._weights = np.ones(len(optimum.constants.columns))
        if len(self._weights) > 1:
            self._weights = weigh_constants(statistics, problem.constants)
        self._keep(optimum, posterior, statistics)
        self.feature_names_in_ = target.names or source.names
        if settings.privacy.protects:
            note_signal(self.signal_, directions.features.columns)
        log_stage("adaptation.MomentAdaptation: fitted")
        return self

    def solve(self, penalty: float) -> Floats:
        """Solves the released moments for another penalty; any number of times, at no cost.

        Args:
            penalty: Weight of the squared change of the coefficients along the directions of the
                release, per record, above 0.

        Returns:
            The coefficients source_coef_ + A (H / n + penalty I)^-1 g / n, float64 of shape (d,),
            where g is the released sum of z r and H that of z z', made positive.

        Raises:
            ParameterError: The penalty is not above 0.
            HdpFastError: fit has not been called.

        Guarantee:
            Post-processing of the release: that of the class.
        """
        if not hasattr(self, "result_"):
            raise HdpFastError("MomentAdaptation has not learned yet: call fit first")
        problem = self._problem
        moments = denoise(problem)[0] / problem.size
        moments = moments + positive("penalty", penalty) * np.eye(len(moments))
        change = np.linalg.solve(moments, problem.sums / problem.size)
        return self._join(self._optimum, self._matrix @ change)

    def _keep(
        self, optimum: SourceOptimum, posterior: ChangePosterior, statistics: ReleasedStatistics
    ) -> None:
        """Keep the results."""
        # What the directions do not reach goes with the center at zero.
        beyond = self._matrix @ self._problem.centers[-1] - _to_constant(optimum)
        kept = float(posterior.centers @ np.array(_KEPT))
        coef = self._join(optimum, self._matrix @ posterior.change - (1 - kept) * beyond)
        assert statistics.label_bound is not None
        self.result_ = MomentResult(
            coef=read_only(coef),
            source_coef=read_only(self._join(optimum, np.zeros(len(beyond)))),
            source_penalty=optimum.penalty,
            clip=statistics.label_bound,
            signal=signal_of(statistics),
            trust=kept,
            record=statistics.record,
        )
        self.statistics_, self.record_ = statistics, statistics.record
        self.coef_, self.source_coef_ = self.result_.coef, self.result_.source_coef
        self.signal_ = self.result_.signal

    def _join(self, optimum: SourceOptimum, change: Floats) -> Floats:
        """The public optimum with a change of it, the intercept's last, as coefficients."""
        others, intercept = optimum.coef + change[:-1], optimum.intercept + float(change[-1])
        return optimum.constants.join(others, intercept, self._weights)

    def _validate_settings(
        self, budget: Budget | None, random_state: RandomState
    ) -> _ReleaseSettings:
        """Validate the parameters, and what the call promises and whom it charges.

        Raises: ParameterError.
        """
        fields = check_fields(self)
        names = ("directions", "whitening", "clip", "source_penalty", "ratio")
        parameters = {name: fields[name] for name in names}
        return _ReleaseSettings(set_privacy(fields, budget, random_state), self.loss, **parameters)


def _to_constant(optimum: SourceOptimum) -> Floats:
    """The change from the public optimum to the mean label; to 0 without an intercept."""
    places, values = optimum.constants
    change = -np.append(optimum.coef, optimum.intercept)
    if len(places) == 1:
        change[places] += optimum.mean / values
    elif optimum.constants:
        change[-1] += optimum.mean
    return change


def _choose_clip(optimum: SourceOptimum, settings: _ReleaseSettings) -> float:
    """Return the bound on residuals, from public records alone."""
    if settings.clip is not None:
        return settings.clip
    if settings.loss == "logistic":
        return _CLASS_CLIP
    # Where the source has hardly any residuals, the target may well have some.
    return min(max(_CLIP * optimum.residual, _LEAST_CLIP * optimum.deviation, 1e-30), 1e30)


def _state_problem(
    statistics: ReleasedStatistics,
    directions: Directions,
    source: Domain,
    optimum: SourceOptimum,
    settings: _ReleaseSettings,
) -> MomentProblem:
    """Put released numbers and public facts together, in units of labels."""
    clip, moments = statistics.label_bound, statistics.second_moments
    assert clip is not None
    assert moments is not None
    # A residual that is clipped does not follow the coefficients: the sums fall short by this
    # share.
    public, whole = measure_features(source, directions.features, optimum, clip)
    scale = clip / max(whole, _LEAST_WHOLE)
    # A clip of the caller's says how large residuals are expected to be.
    usual = _CLASS_CLIP if settings.loss == "logistic" else _CLIP

    to_zero = np.linalg.lstsq(directions.matrix, _to_constant(optimum), rcond=None)[0]
    k = len(to_zero)
    return MomentProblem(
        sums=statistics.cross_moments[:k, 0] * scale,
        moments=moments[:k, :k],
        size=statistics.n,
        sums_deviation=statistics.sums_deviation * scale,
        moments_deviation=statistics.moments_deviation,
        source_moments=public[:k, :k],
        shape=directions.shape,
        variance=(clip / usual) ** 2,
        centers=np.array([(1 - kept) * to_zero for kept in _KEPT]),
        priors=np.array(_PRIORS),
        constants=statistics.n * public[k - 1, k:],
        intercept=1 / directions.unit if optimum.constants else None,
    )
