"""Classes of centered rows: means, a full-batch descent and a scale, under one Gaussian budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import accounting, noise
from .._support.random_state import make_stream
from .._support.types import Floats, Integers
from .._support.validate import refuse
from ..accounting.discrete_gaussian import MOST_BITS
from ..budget.account import check_charge, spend
from ..data.goal import Goal
from ..data.rows import PlainRows, Rows
from ..exceptions import ShapeError
from ..record import PrivacyRecord
from .centered_rows import (
    Cut,
    PartedRows,
    bound_norm,
    center,
    center_evenly,
    center_with_noise,
    count_powers,
    open_integers,
    pair_rows,
    scale_of,
    scale_rows,
    typical_norm,
)
from .descents import SGDPlan
from .linear_model import LinearLoss, LinearModel, SoftmaxModel, largest_softmax_loss
from .margin_scale import (
    Offsets,
    estimate_scale,
    estimate_shares,
    guess_scale,
    margin_edges,
    weigh_base,
)
from .moment_equation import LogisticMoments
from .noisy_descent import (
    DescentNoise,
    DescentPlan,
    Grid,
    IntegerParts,
    IntegerRows,
    calibrate_descent,
    descend,
    find_sigma,
    plan_descent,
    record_gaussians,
)
from .statistics_noise import note_few

# Shares of the square of mu: of the means, and in what is left of the classes and of the margins.
_OF_MEANS, _OF_CLASSES, _OF_MARGINS = Fraction(1, 20), Fraction(1, 60), Fraction(1, 30)
# From here on means help, where their noise is below a share of half a column's range.
_CLEAR_MEANS, _BLUR = 100, 0.12
# Effective records for each root of a column from which squares of numbers help, and without noise.
_SQUARES, _SQUARES_WITHOUT_NOISE = 600, 300
# The variance of the prior that is a ridge without noise: for two classes, and for more. Its
# solution is as exact as the share of its norm says.
_VARIANCES, _TOLERANCE = (1.0, 3.0), 1e-2
# Rows that are centered by means are shrunk to so many times their typical norm.
_REACH = 1.0
# More of it would make noise no smaller, and its square is to be a floating-point number.
_LARGEST_MU = 1e100
# The digits of sums of means, and of their noise.
_SUM_BITS, _NOISE_BITS, _LEAST_BITS = 61, 48, 8


class ReleasedClasses(NamedTuple):
    """A released model of classes.

    Attributes:
        rows: The map from records to centered rows.
        model: The model of them.
        record: What protects the records; None where nothing does.
        noise: What is known of the noise in the weights; None without noise.
    """

    rows: Rows
    model: LinearModel | SoftmaxModel
    record: PrivacyRecord | None
    noise: DescentNoise | None = None


class ClassesPlan(NamedTuple):
    """What is public before a record is touched.

    Attributes:
        classes: The number of classes.
        squares: Whether squares of numbers become columns.
        means: The grid and the noise of released means; None where none are released.
        centers: Whether rows are centered by them. Means that are released for others may be
            too noisy for that.
        descent: What the descent is made of.
        grid: Its integers.
        of_classes: The deviation of the noise on counts of classes.
        margins: The deviation of the noise on counts of margins.
        clear: How far what the records say stands out of the noise in a vector of the weights.
        record: What protects the records.
    """

    classes: int
    squares: bool
    means: tuple[int, Fraction] | None
    centers: bool
    descent: DescentPlan
    grid: Grid
    of_classes: Fraction
    margins: Fraction
    clear: float
    record: PrivacyRecord

    def state(self, n: int, columns: int) -> SGDPlan:
        """The descent in the words of PrivateSGD, every record being in every batch."""
        return SGDPlan(
            n=n,
            weights=columns * (1 if self.classes == 2 else self.classes),
            steps=self.descent.steps,
            batch_size=n,
            radius=None,
            clip_norm=self.descent.clip_norm,
            noise_multiplier=float(self.grid.sigma / self.grid.length),
            chosen=("steps", "batch_size", "clip_norm"),
            excess_risk=None,
        )

    def note_few(self, n: int, columns: int) -> None:
        """Warn where there are fewer records than have gradients as long as their noise."""
        note_few(n, n * self.state(n, columns).noise, self.record.epsilon)


def release_classes(
    unit: Rows,
    rows: Floats | PlainRows | PartedRows,
    codes: Integers | None,
    classes: int,
    goal: Goal,
    *,
    name: str,
) -> ReleasedClasses:
    """Charge the budget, release means where clear, class counts, a noisy descent and a scale.

    Guarantee: (epsilon, delta)-DP under replace_one, exact, or for the persons who own the rows.
    More than that, all is one Gaussian mechanism, whose mu the record states. Each part adds
    rounded normal noise to integers, is chosen by what parts before it released, and has a distance
    of neighbors that no record exceeds: that of the means, 1 for the count of the second of two
    classes or sqrt(2) for those of more, `2 length` for each step of the descent, and
    sqrt(2) (classes - 1) for the counts of margins. The squares of distance over deviation add
    up to no more than that of mu, in rational numbers (Dong, Roth and Su 2022, Corollary 2). All
    else is post-processing. Settings for which no noise is enough are refused before anything is
    spent, and no value of a record raises or warns.

    unit: the map to plain rows.
    rows: what `unit` makes of the private records.
    codes: numbers of classes; None beside rows in parts, which have them.
    goal: one that is checked, of the relation replace_one.
    name: of who releases, for the record.

    Cost: O(n d classes) for each of 8 to 120 steps.
    """
    check_charge(goal.budget, goal.epsilon)
    if not len(rows):
        raise ShapeError("there are no rows, but a model must be learned from one at least")
    if not goal.protects:
        return _fit_exactly(unit, *_take_all(rows, codes), classes)
    plan = plan_classes(unit, len(rows), classes, goal, name=name)
    plan.note_few(len(rows), len(unit.is_number) + plan.squares * int(unit.is_number.sum()) + 1)
    stream = make_stream(goal.random_state)
    with spend(goal.budget, plan.record):
        centered = release_center(plan, unit, rows, stream)
        return learn_classes(plan, centered, rows, codes, stream)


def plan_classes(
    unit: Rows,
    n: int,
    classes: int,
    goal: Goal,
    *,
    name: str,
    squares: bool | None = None,
    of_means: Fraction | None = None,
    share: Fraction = Fraction(1),
) -> ClassesPlan:
    """Everything but the records; raises where no noise is enough.

    squares: whether squares of numbers become columns; None decides by n and mu.
    of_means: the share of the square of mu with which means are released, whatever they tell; None
        releases them where they are clear.
    share: that of the square of mu that is used; the record is that of the whole.
    """
    mu = min(float(accounting.gaussian_mu(*goal.persons.gaussian_share(*goal.price))), _LARGEST_MU)
    square = Fraction(mu) ** 2 * share
    mu *= math.sqrt(share)
    d, numbers = len(unit.is_number), int(unit.is_number.sum())
    of_column = n * mu / math.sqrt(d + 1)
    clear = of_column / math.sqrt(classes - 1)
    if squares is None:
        squares = n * min(mu, 1.0) >= _SQUARES * math.sqrt(d + numbers)
    price = unit.squared_distance(count_powers(squares))
    part = _OF_MEANS if of_means is None else of_means
    centers = math.sqrt(price) <= _BLUR * n * mu * math.sqrt(part)
    means, descent = None, plan_descent(clear, classes)
    if of_means is not None or (centers and of_column >= _CLEAR_MEANS):
        means = _calibrate_means(price, n, square * part) if mu else None
        square *= 1 - part
    grid = calibrate_descent(descent, n, square * (1 - _OF_CLASSES - _OF_MARGINS)) if mu else None
    if grid is None or (means is None and of_means is not None):
        epsilon, delta = goal.price
        refuse("epsilon", epsilon, f"at delta = {delta:g} it needs more noise than is drawn")
    squares, centers = squares and means is not None, centers and means is not None
    record = record_gaussians(
        f"{name}, {d + numbers * squares} columns, {'means, ' if means else ''}"
        f"class counts, {descent.steps} steps on all records, margins",
        goal,
    )
    of_classes = find_sigma(1 if classes == 2 else 2, square * _OF_CLASSES)
    margins = find_sigma(2 * (classes - 1) ** 2, square * _OF_MARGINS)
    return ClassesPlan(
        classes, squares, means, centers, descent, grid, of_classes, margins, clear, record
    )


def release_center(
    plan: ClassesPlan,
    unit: Rows,
    rows: Floats | PlainRows | PartedRows,
    stream: np.random.Generator | None,
) -> Rows:
    """The first release of a plan: rows that are centered by noisy means, or evenly without any."""
    if plan.means is None:
        return center_evenly(unit)
    with np.errstate(all="ignore"):
        return center_with_noise(unit, rows, plan.means, squares=plan.squares, random_state=stream)


def learn_classes(
    plan: ClassesPlan,
    centered: Rows,
    rows: Floats | PlainRows | PartedRows,
    codes: Integers | None,
    stream: np.random.Generator | None,
    *,
    shrink: bool = True,
) -> ReleasedClasses:
    """The other releases of a plan: a descent and a scale. No budget is charged.

    They are as private whatever the center is, which may be of fewer columns than the plan's: the
    noise is for what a record may add to a sum, however long its row is.

    centered: what is public or was released, of the plan's columns or some of them.
    rows: the plain rows of these columns.
    shrink: whether long rows are shrunk to their typical norm.
    """
    with np.errstate(all="ignore"):
        bound = _bound_rows(centered, even=not (shrink and plan.centers))
        width = len(centered.names_with_squares) + 1
        cut = Cut(centered, bound, width, _number, plan.classes, plan.grid)
        with open_integers(pair_rows(rows, codes), cut) as integers:
            learned, known = _learn(integers, plan, stream)
        weights = _restore(centered, learned * known.factor)
        weights[-1] += known.base
        model = _make_model(weights, bound, plan.classes, plan.state(*integers.shape))
    return ReleasedClasses(centered, model, plan.record, known)


def _number(codes: NDArray[Any]) -> NDArray[np.int16]:
    return codes.astype(np.int16)


def _take_all(
    rows: Floats | PlainRows | PartedRows, codes: Integers | None
) -> tuple[Floats, Integers]:
    """All rows in memory, and the numbers of their classes."""
    if isinstance(rows, PartedRows):
        made, numbers = zip(*rows.gather(_pair), strict=True)
        return np.concatenate(made), np.concatenate(numbers).astype(np.int64)
    assert codes is not None
    return rows[:], codes.astype(np.int64)


def _pair(rows: Floats, codes: NDArray[Any]) -> tuple[Floats, NDArray[Any]]:
    return rows, codes


def _calibrate_means(price: int, n: int, square: Fraction) -> tuple[int, Fraction] | None:
    """The grid and the noise of means with this square of mu; None where too few digits are left.

    Means that stand out of their noise have enough.
    """
    # In integers, for their quotient may be beyond floating-point numbers.
    length = (Fraction(price) / square).__ceil__().bit_length()
    room = _NOISE_BITS - (length + 1) // 2
    bits = min(MOST_BITS, _SUM_BITS - n.bit_length(), room)
    return (bits, find_sigma(price << (2 * bits), square)) if bits >= _LEAST_BITS else None


def _restore(centered: Rows, weights: Floats) -> Floats:
    """The weights of centered rows, by those of what _scale_rows makes of them."""
    restored: Floats = weights * scale_of(centered)[:, None]
    return restored


def _learn(
    records: IntegerRows | IntegerParts, plan: ClassesPlan, stream: np.random.Generator | None
) -> tuple[Floats, DescentNoise]:
    """The weights of a descent, and a factor and base rates with which they lose less."""
    (n, d), descent = records.shape, plan.descent
    shares = _release_shares(records.count_classes(), n, plan.of_classes, stream)
    shape = (descent.steps, d, records.columns)
    drawn = noise.rounded_gaussian(plan.grid.sigma, shape, random_state=stream)
    path = descend(records, descent, drawn)
    edges = margin_edges(float(np.linalg.norm(path.weights)) or 1.0, d, plan.clear)
    offsets = Offsets.by_shares(shares)
    counts = records.count_margins(path.weights, edges, offsets.second)
    counts = counts + noise.rounded_gaussian(plan.margins, counts.shape, random_state=stream)
    prior = guess_scale(plan.clear, descent.growth, shape[1:], path.along, path.deviation)
    pairs = records.classes - 1
    factor, spread = estimate_scale(
        counts / pairs, edges, offsets.means, float(plan.margins) / pairs, n, prior
    )
    base, base_spread = _base_of(shares, float(plan.of_classes) / n)
    weight, entry = weigh_base(factor), float(plan.grid.sigma) * plan.grid.unit / n
    known = DescentNoise(descent, entry, factor, spread, weight * base, weight * base_spread)
    return path.weights, known


def _release_shares(
    counts: Integers, n: int, sigma: Fraction, stream: np.random.Generator | None
) -> Floats:
    """Shares of the classes, from noisy counts: of the second alone where there are two."""
    if len(counts) > 2:
        seen = counts + noise.rounded_gaussian(sigma, len(counts), random_state=stream)
    else:
        second = counts[1] + noise.rounded_gaussian(sigma, 1, random_state=stream)[0]
        seen = np.array([n - second, second])
    return estimate_shares(seen.astype(float), float(sigma), n)


def _base_of(shares: Floats, sigma: float) -> tuple[Floats, Floats]:
    """The scores of a model that only knows shares, shape (columns,), and their deviation.

    sigma: deviation of the noise in a share.
    """
    if len(shares) == 2:
        return np.log(shares[1:] / shares[:1]), sigma / (shares[1:] * shares[:1])
    logs = np.log(shares)
    return logs - logs.mean(), sigma / shares


def _fit_exactly(unit: Rows, rows: Floats, codes: Integers, classes: int) -> ReleasedClasses:
    """Logistic regression without noise, with a ridge that lets weights be finite.

    The ridge is a normal prior for the weights of columns whose variance is 1.
    """
    n, d, numbers = *rows.shape, int(unit.is_number.sum())
    squares = n >= _SQUARES_WITHOUT_NOISE * math.sqrt(d + numbers)
    centered = center(unit, rows, squares=squares, epsilon=math.inf, delta=0.5, random_state=None)
    bound = _bound_rows(centered, even=False)
    made = scale_rows(centered, rows, bound)
    shares = np.zeros((n, classes))
    shares[np.arange(n), codes] = 1 / n
    penalty = 1 / (_VARIANCES[classes > 2] * n * typical_norm(centered) ** 2)
    weights = LogisticMoments(made, made.T @ shares).solve(penalty, tolerance=_TOLERANCE).weights
    if classes == 2:
        weights = weights[:, [1]] - weights[:, [0]]
    model = _make_model(_restore(centered, weights), bound, classes, None)
    return ReleasedClasses(centered, model, None)


def _make_model(
    weights: Floats, bound: float, classes: int, plan: SGDPlan | None
) -> LinearModel | SoftmaxModel:
    reach = float(np.linalg.norm(weights)) * bound
    weights.flags.writeable = False
    kind: dict[str, Any] = {"plan": plan}
    if classes == 2:
        loss = LinearLoss("logistic", 1.0, bound, None, float(np.logaddexp(0, reach)))
        return LinearModel(weights[:, 0], loss, **kind)
    loss = LinearLoss("softmax", 1.0, bound, None, largest_softmax_loss(classes, reach))
    return SoftmaxModel(weights, loss, **kind)


def _bound_rows(centered: Rows, *, even: bool) -> float:
    """The norm that rows are shrunk to: none is longer where their noise hides that."""
    return bound_norm(centered) if even else _REACH * typical_norm(centered)
