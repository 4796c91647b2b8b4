"""Figures of results, drawn with matplotlib from the extra `hdp-fast[plot]`.

Each function draws into the axes `ax`, or a figure of its own, and returns the Figure:
`figure.savefig("tests.svg")` writes PNG, SVG or PDF. The figures show what the results release and
nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._support.lazy import list_only, load_optional
from ._support.validate import instance, positive_int, refuse
from .adaptation.base import Estimator
from .data import Number
from .labels.results import LabelResult, ScoreResult
from .learners import PrivateModel
from .learners.additive_columns import Shape
from .local.randomizers.aggregates import Estimate
from .local.randomizers.frequency import FrequencyAggregate
from .local.randomizers.mean import MeanAggregate
from .local.voting import VotingResult
from .stability.plans import members_needed
from .stability.tables import HazardTable, VoteTable
from .statistics.results import Distribution
from .transfer.calibration_result import CalibratedModel, ReliabilityDiagram
from .transfer.results import TransferResult
from .transfer.surveys import SurveyResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "adaptation",
    "distribution",
    "labels",
    "local",
    "reliability",
    "require",
    "shapes",
    "survey",
    "table",
    "transfer",
]

__dir__ = list_only(__all__)

# Of more coefficients or frequencies than can be read, the smallest are left out.
_MOST_BARS, _MOST_SHAPES = 30, 60
_MOST_MEMBERS = 1 << 24


def transfer(result: TransferResult, *, ax: Axes | None = None) -> Figure:
    """Draws the estimated target errors along a run, with their intervals and what was accepted.

    The error of the better constant is drawn where the result knows it. A star marks the hypothesis
    that was released.

    Args:
        result: Result of SubsampleTestReweigh.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `result` is no TransferResult, or one of a run without agents.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Source:
        Kohen and Sheffet 2022, Figure 1c.

    Examples:
        >>> import math, numpy as np
        >>> from hdp_fast import learners, local, plotting, transfer
        >>> S, T = np.random.default_rng(0).integers(0, 2, (2, 20_000, 4), dtype=np.uint8)
        >>> agents = local.Agents(T, T[:, 1] & T[:, 2], epsilon=2.0)
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(4, 2), epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": math.inf, "rounds": 8, "draws": 2000}
        >>> model = transfer.SubsampleTestReweigh(learner, **goal).fit(S, S[:, 1] & S[:, 2], agents)
        >>> plotting.transfer(model.result_)
        <Figure size 800x450 with 1 Axes>
    """
    if not isinstance(result, TransferResult):
        refuse("result", result, "it must be a transfer.TransferResult")
    if result.tested is None:
        refuse("result", result, "it was released untested, so that there is nothing to draw")
    axes = _axes(ax, (8, 4.5))
    rounds = [estimate.round or result.rounds for estimate in result.estimates]
    values = [estimate.value for estimate in result.estimates]
    low = [estimate.value - estimate.low for estimate in result.estimates]
    high = [estimate.high - estimate.value for estimate in result.estimates]
    axes.errorbar(
        rounds, values, yerr=(low, high), fmt="o", markersize=4, capsize=3, label="tested"
    )
    chosen = result.tested
    axes.plot(
        [chosen.round or result.rounds], [chosen.value], "r*", markersize=14, label="released"
    )
    bound = 3 * result.plan.alpha + result.plan.opt
    axes.axhline(bound, color="grey", linestyle="--", label=f"accepted below {bound:g}")
    constants = getattr(result, "constants", None)
    if constants is not None:
        text = f"the better constant, {constants.better:.3f}"
        axes.axhline(constants.better, color="#c44e52", linestyle=":", label=text)
    axes.set_xlabel("round")
    axes.set_ylabel("estimated error on the target")
    axes.set_ylim(bottom=0)
    axes.set_title(repr(result))
    axes.legend()
    return _figure_of(axes)


def adaptation(
    estimator: Estimator, names: Sequence[str] | None = None, *, ax: Axes | None = None
) -> Figure:
    """Draws the coefficients of a fitted estimator, of which the 30 largest are shown.

    Args:
        estimator: Fitted estimator of `hdp_fast.adaptation`. With several classes each of them has
            a color.
        names: Names of the d coefficients. None takes those of the frame that the estimator was
            fitted to, or numbers.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `estimator` is no estimator of adaptation or not fitted, or there are not d
            names.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import adaptation, plotting
        >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (200, 3))
        >>> model = adaptation.DiscrepancyMinimization().fit(X, X[:, 0], X[:50], X[:50, 0])
        >>> plotting.adaptation(model, ["age", "income", "size"])
        <Figure size 800x600 with 1 Axes>
    """
    if not isinstance(estimator, Estimator) or not hasattr(estimator, "coef_"):
        refuse("estimator", type(estimator).__name__, "it must be a fitted one of adaptation")
    rows = np.atleast_2d(estimator.coef_)
    texts = names or estimator.feature_names_in_ or [str(i) for i in range(rows.shape[1])]
    if _length(texts) != rows.shape[1]:
        refuse("names", texts, f"there must be one for each of {rows.shape[1]} coefficients")
    axes = _axes(ax, (8, 6))
    shown = np.argsort(-np.abs(rows).max(axis=0), kind="stable")[:_MOST_BARS]
    height = 0.8 / len(rows)
    for place, row in enumerate(rows):
        offsets = np.arange(len(shown)) + height * (place - (len(rows) - 1) / 2)
        axes.barh(offsets, row[shown], height, label=f"class {place}")
    axes.set_yticks(range(len(shown)), [texts[place] for place in shown])
    axes.invert_yaxis()
    axes.axvline(0, color="grey", linewidth=0.8)
    axes.set_xlabel("coefficient")
    if len(rows) > 1:
        axes.legend()
    record = estimator.record_
    privacy = "not private" if record is None else f"epsilon = {record.epsilon:g}"
    axes.set_title(f"{type(estimator).__name__}, {privacy}")
    return _figure_of(axes)


def local(
    result: MeanAggregate | FrequencyAggregate | Estimate | VotingResult,
    *,
    beta: float = 0.05,
    names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draws what randomized answers say, with intervals: a mean, or the 30 largest frequencies.

    Args:
        result: MeanAggregate or FrequencyAggregate of `hdp_fast.local`, an Estimate, or what
            `local.learn_by_votes` released, whose error is drawn.
        beta: Probability, in (0, 1), with which one interval or more of an aggregate may miss. An
            Estimate has its own.
        names: Names of the k categories, in their order; None numbers them.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `result` is none of these, it is an aggregate without reports, beta is out
            of range, or there are not k names.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, plotting
        >>> randomizer = local.KaryResponse(3, epsilon=2.0)
        >>> reports = randomizer.sample(np.repeat([0, 1, 2], [100, 3000, 1000]))
        >>> answers = randomizer.aggregate(reports)
        >>> figure = plotting.local(answers, names=["bus", "bike", "train"])
        >>> figure.savefig("answers.svg")
    """
    if not isinstance(result, MeanAggregate | FrequencyAggregate | Estimate | VotingResult):
        refuse("result", type(result).__name__, "it must be an aggregate or estimate of local")
    axes = _axes(ax, (8, 4.5))
    if isinstance(result, FrequencyAggregate):
        _draw_frequencies(axes, result, beta, names)
    else:
        _draw_mean(axes, result, beta)
    if isinstance(result, MeanAggregate | FrequencyAggregate):
        epsilon = result.randomizer.epsilon
        axes.set_title(f"{result.reports:,} reports, epsilon = {epsilon:g}")
    return _figure_of(axes)


def survey(result: SurveyResult, *, ax: Axes | None = None) -> Figure:
    """Draws the estimates of a survey with their intervals, thin where all rows hold at once.

    Each row is drawn between the least and the greatest value that it can have, and its label names
    the estimate.

    Args:
        result: Result of transfer.survey.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `result` is no SurveyResult.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, plotting, transfer
        >>> agents = local.Agents(np.full((9_000, 1), 30.0), np.ones(9_000, int), epsilon=1.0)
        >>> result = transfer.survey({"age": local.Query.value(0, 0, 100)}, agents)
        >>> plotting.survey(result)
        <Figure size 800x185 with 1 Axes>
    """
    if not isinstance(result, SurveyResult):
        refuse("result", type(result).__name__, "it must be a transfer.SurveyResult")
    axes = _axes(ax, (8, 1.5 + 0.35 * len(result.rows)))
    for place, row in enumerate(result.rows):
        least, greatest = row.bounds
        ends = [(row.low, row.high, 5.0), (row.low_all, row.high_all, 1.5)]
        for low, high, width in ends:
            span = [(end - least) / (greatest - least) for end in (low, high)]
            axes.plot(span, [place, place], color="#4c72b0", linewidth=width, alpha=0.7)
        axes.plot([(row.value - least) / (greatest - least)], [place], "o", color="black")
    names = [f"{row.name}: {row.value:.4g}" for row in result.rows]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 1)
    axes.set_xlabel("from the least to the greatest value that is possible")
    epsilon = result.agents_record.epsilon
    axes.set_title(f"{result.agents:,} agents, epsilon = {epsilon:g}, beta = {result.beta:g}")
    return _figure_of(axes)


def _draw_mean(axes: Any, result: MeanAggregate | Estimate | VotingResult, beta: float) -> None:
    if isinstance(result, MeanAggregate):
        axes.set_xlim(*result.randomizer.bounds)
        estimate, what = result.estimate(beta), "mean"
    elif isinstance(result, VotingResult):
        estimate, what = result.estimate, "error"
    else:
        estimate, what = result, "mean"
    spread = [[estimate.value - estimate.low], [estimate.high - estimate.value]]
    axes.errorbar([estimate.value], [0], xerr=spread, fmt="o", capsize=6)
    axes.set_yticks([])
    axes.set_xlabel(f"{what}: {estimate.value:.4g} in [{estimate.low:.4g}, {estimate.high:.4g}]")


def _length(names: object) -> int:
    """How many names there are; none where they are no list of texts."""
    return len(names) if isinstance(names, Sequence) and not isinstance(names, str) else 0


def _draw_frequencies(
    axes: Any, result: FrequencyAggregate, beta: float, names: Sequence[str] | None
) -> None:
    shares, half = result.frequencies(), result.interval(beta)
    if names is not None and _length(names) != len(shares):
        refuse("names", names, f"there must be one for each of {len(shares)} categories")
    shown = np.argsort(-shares, kind="stable")[:_MOST_BARS]
    axes.bar(range(len(shown)), shares[shown], yerr=half, capsize=3, color="#4c72b0")
    axes.set_xticks(range(len(shown)), [names[i] if names else str(i) for i in shown], rotation=45)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_ylabel("share of the agents")


def table(
    table: HazardTable | VoteTable,
    *,
    agreement: float = 0.75,
    members: int | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draws how likely an answer gives way to privacy, and where the members' expected vote stands.

    For a HazardTable the curve is the probability of bottom, by the distance to instability. For a
    VoteTable it is the probability of the minority's label, by the majority's share of the votes.

    Args:
        table: HazardTable or VoteTable.
        agreement: Probability that a member is right on a stable query, in (1/2, 1), as for
            `stability.members_needed`.
        members: Number of members, 1 to `2**24`; None takes as many as `stability.members_needed`
            computes.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `table` is none of these, or agreement or members is out of range.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Examples:
        >>> from hdp_fast import plotting, stability
        >>> table = stability.HazardTable.design(50, 1000, epsilon=1, delta=1e-6, beta=0.05)
        >>> plotting.table(table, agreement=0.9)
        <Figure size 800x450 with 1 Axes>
    """
    if not isinstance(table, HazardTable | VoteTable):
        refuse("table", table, "it must be a HazardTable or a VoteTable")
    needed = members_needed(table, agreement=agreement)
    k = needed if members is None else positive_int("members", members, _MOST_MEMBERS)
    axes = _axes(ax, (8, 4.5))
    if isinstance(table, HazardTable):
        _draw_hazards(axes, table, k, agreement)
    else:
        _draw_flips(axes, table, k, agreement)
    axes.set_title(repr(table).partition(":")[0])
    axes.legend()
    return _figure_of(axes)


def _draw_hazards(axes: Any, table: HazardTable, k: int, agreement: float) -> None:
    expected = k * (agreement - 0.5)
    levels = [*range(table.J + 1), max(table.J, expected)]
    probabilities = [*map(float, table.probabilities), float(table.probabilities[-1])]
    axes.semilogy(levels, probabilities, label="probability of the table")
    axes.axvline(table.J, color="grey", linestyle="--", label=f"J = {table.J:,}, lowest from here")
    text = f"expected vote of k = {k:,} members, each right with probability {agreement:g}"
    axes.axvline(expected, color="#c44e52", linestyle=":", label=text)
    axes.set_xlabel("distance to instability, votes")
    axes.set_ylabel("probability of bottom")


def _draw_flips(axes: Any, table: VoteTable, k: int, agreement: float) -> None:
    votes = np.arange((k + 1) // 2, k + 1)
    levels = np.minimum((2 * votes - k) // 2, table.J)
    flips = np.array([float(table.probabilities[level]) for level in levels])
    axes.plot(votes / k, flips, label=f"{k:,} members; all of one mind: {flips[-1]:.3g}")
    text = f"expected vote, each right with probability {agreement:g}"
    axes.axvline(agreement, color="#c44e52", linestyle=":", label=text)
    axes.set_ylim(0, 0.52)
    axes.set_xlabel("share of the votes for the majority's label")
    axes.set_ylabel("probability of the minority's label")


def labels(result: LabelResult | ScoreResult, *, ax: Axes | None = None) -> Figure:
    """Draws how many queries were answered, and how many bottoms that took, along the queries.

    A dashed line shows how many bottoms a labeler had left before the call. It is drawn for labels
    only: a score may use up one bottom and still be found, so for scores the figure counts those
    that were not found.

    Args:
        result: LabelResult or ScoreResult of one call of a labeler.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `result` is none of the two.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels, plotting
        >>> bottoms = np.array([False, True, False, False, True])
        >>> answers = labels.LabelResult(
        ...     labels=np.arange(5), is_bottom=bottoms, unstable_left=3, queries_left=0, record=None
        ... )
        >>> plotting.labels(answers)
        <Figure size 800x450 with 2 Axes>
    """
    if not isinstance(result, LabelResult | ScoreResult):
        refuse("result", result, "it must be labels.LabelResult or ScoreResult")
    axes = _axes(ax, (8, 4.5))
    _draw_count(axes, ~result.is_bottom, "answered", "#4c72b0")
    axes.set_xlabel("queries asked")
    if result.record is not None:
        axes.set_title(f"{result.record.mechanism}, epsilon = {result.record.epsilon:g}")
    if result.unstable_left is not None:
        limit = result.unstable_left + int(result.is_bottom.sum())
        _draw_bottoms(
            axes.twinx(), result.is_bottom, limit if isinstance(result, LabelResult) else None
        )
    return _figure_of(axes)


def _draw_bottoms(axes: Any, is_bottom: NDArray[np.bool_], limit: int | None) -> None:
    _draw_count(axes, is_bottom, "bottoms", "#c44e52")
    axes.locator_params(axis="y", integer=True)
    if limit is not None:
        axes.axhline(limit, color="#c44e52", linestyle="--")
        axes.annotate(f"the last of {limit:,}", (0, limit), va="bottom", color="#c44e52")
        axes.set_ylim(top=1.08 * limit)


def _draw_count(axes: Any, happened: NDArray[np.bool_], what: str, color: str) -> None:
    counts = np.concatenate([[0], np.cumsum(happened)])
    axes.step(range(len(counts)), counts, color, where="post")
    axes.set_ylabel(what, color=color)
    axes.set_ylim(0, 1.08 * max(1, counts[-1]))


def reliability(result: ReliabilityDiagram | CalibratedModel, *, ax: Axes | None = None) -> Figure:
    """Draws predicted probabilities of bins against what agents say about them, with intervals.

    Args:
        result: What `transfer.calibrate` returned, or its ReliabilityDiagram.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `result` is none of the two.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, plotting, transfer
        >>> X = np.random.default_rng(0).normal(0, 2, (60_000, 1))
        >>> y = np.random.default_rng(1).random(60_000) < 1 / (1 + np.exp(2 - X[:, 0]))
        >>> result = transfer.calibrate(lambda X: X[:, 0], local.Agents(X, y, epsilon=4.0))
        >>> plotting.reliability(result)
        <Figure size 600x600 with 1 Axes>
    """
    diagram = result.reliability if isinstance(result, CalibratedModel) else result
    if not isinstance(diagram, ReliabilityDiagram):
        refuse("result", type(result).__name__, "it must be of transfer.calibrate")
    axes = _axes(ax, (6, 6))
    axes.plot([0, 1], [0, 1], color="grey", linestyle="--", linewidth=0.8)
    spread = [diagram.rates - diagram.low, diagram.high - diagram.rates]
    style: dict[str, Any] = {"linestyle": "none", "capsize": 3}
    axes.errorbar(diagram.before, diagram.rates, yerr=spread, fmt="s", label="before", **style)
    axes.errorbar(diagram.after, diagram.rates, yerr=spread, fmt="o", label="calibrated", **style)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("predicted probability of label 1, mean of a bin")
    axes.set_ylabel("share of label 1 in the bin, by the agents")
    axes.legend()
    return _figure_of(axes)


def distribution(result: Distribution, *, ax: Axes | None = None) -> Figure:
    """Draws a released distribution function with its band and that of the population.

    Args:
        result: What `statistics.distribution` returned for one column.
        ax: Axes to draw into. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `result` is no Distribution.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        A fraction of a second. The first figure also imports matplotlib.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import plotting, statistics
        >>> ages = np.arange(50_000) % 100
        >>> result = statistics.distribution(ages, low=0, high=120, epsilon=1.0)
        >>> plotting.distribution(result)
        <Figure size 800x500 with 1 Axes>
    """
    instance("result", result, Distribution, "of statistics.distribution, for one column")
    axes = _axes(ax, (8, 5))
    percent = f"{100 * result.confidence:g} %"
    style: dict[str, Any] = {"step": "post", "linewidth": 0}
    wider = result.population_low, result.population_high
    axes.fill_between(result.points, *wider, color="0.85", label=f"{percent}, population", **style)
    band = result.low, result.high
    axes.fill_between(result.points, *band, alpha=0.4, label=f"{percent}, records", **style)
    axes.step(result.points, result.value, where="post", label="released")
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlabel("value")
    axes.set_ylabel("share of records at the value or below")
    axes.legend(loc="lower right")
    return _figure_of(axes)


def shapes(
    model: PrivateModel, *, columns: int = 12, ax: Axes | Sequence[Axes] | None = None
) -> Figure:
    """Draws what columns of an additive model add to its scores, and two deviations of noise.

    Numbers are steps over their bins, categories points. The columns that add most come first.

    Args:
        model: PrivateModel of an additive model, as PrivateAdditive learns it or
            PrivateModel.from_json reads it.
        columns: How many columns are drawn at most, 1 to 60.
        ax: Axes to draw one column into, or several for a column each. None makes a figure.

    Returns:
        The matplotlib Figure that holds the axes.

    Raises:
        ParameterError: `model` is no PrivateModel of an additive model, or columns is out of range.
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        Half a second for a dozen columns. The first figure also imports matplotlib.

    Examples:
        >>> from hdp_fast import plotting
        >>> from hdp_fast.data import Label, Number, Schema
        >>> from hdp_fast.learners import PrivateAdditive
        >>> schema = Schema(Label("bought", positive=("yes",)), {"age": Number(0, 100)})
        >>> people = {"age": [20, 45, 70] * 3_000, "bought": ["no", "yes", "no"] * 3_000}
        >>> model = PrivateAdditive(schema, epsilon=1.0, delta=1e-6).learn(people)
        >>> plotting.shapes(model)
        <Figure size 400x300 with 1 Axes>
    """
    if not isinstance(model, PrivateModel):
        refuse("model", model, "it must be a PrivateModel")
    many = positive_int("columns", columns, _MOST_SHAPES)
    sizes = {name: float(shape.shares @ shape.effects**2) for name, shape in model.shapes().items()}
    chosen = sorted(sizes, key=lambda name: -sizes[name])[:many]
    given: Any = ax
    every = _panels(len(chosen)) if ax is None else [_check_axes(one) for one in np.ravel(given)]
    for axes, name in zip(every, chosen, strict=False):
        _draw_shape(axes, model.shapes()[name], model.schema.columns[name])
        axes.axhline(0, color="gray", linewidth=0.8)
        axes.set_title(name)
    for axes in every[len(chosen) :]:
        axes.set_axis_off()
    unit = "added to the log-odds" if model.labels else "added to the prediction"
    every[0].figure.supylabel(f"{unit}, two deviations of noise shaded")
    return _figure_of(every[0])


def _panels(count: int) -> list[Any]:
    across = min(count, 3)
    down = -(-count // across)
    size = 4 * across, 2.6 * down + 0.4
    figure = _matplotlib("figure").Figure(figsize=size, layout="constrained")
    return list(figure.subplots(down, across, squeeze=False, sharey=True).ravel())


def _draw_shape(axes: Any, shape: Shape, kind: object) -> None:
    reach = 2 * (np.zeros_like(shape.effects) if shape.deviations is None else shape.deviations)
    if isinstance(kind, Number):
        ends = np.array([*shape.starts, kind.high], float)
        values = np.append(shape.effects, shape.effects[-1])
        reach = np.append(reach, reach[-1])
        axes.step(ends, values, where="post")
        axes.fill_between(ends, values - reach, values + reach, step="post", alpha=0.3)
        return
    order = np.argsort(-shape.shares)[:_MOST_BARS]
    names = ["others" if shape.starts[place] is None else shape.starts[place] for place in order]
    places = np.arange(len(order))
    axes.errorbar(places, shape.effects[order], reach[order], fmt="o", capsize=2)
    axes.set_xticks(places, names, rotation=60 if len(names) > 3 else 0, fontsize="small")


def require() -> None:
    """Checks that figures can be drawn, so that a long run is not begun in vain.

    Raises:
        ImportError: matplotlib is not installed; the error names the extra.

    Cost:
        That of importing matplotlib.

    Examples:
        >>> from hdp_fast import plotting
        >>> plotting.require()
    """
    _matplotlib("figure")


def _axes(ax: Axes | None, size: tuple[float, float]) -> Any:
    """The axes that the caller has, or those of a new figure of so many inches."""
    if ax is None:
        figure = _matplotlib("figure").Figure(figsize=size, layout="constrained")
        return figure.subplots()
    return _check_axes(ax)


def _figure_of(axes: Any) -> Figure:
    figure: Figure = axes.figure
    return figure


def _check_axes(ax: object) -> Any:
    if not isinstance(ax, _matplotlib("axes").Axes):
        refuse("ax", type(ax).__name__, "it must be matplotlib's Axes, or None")
    return ax


def _matplotlib(module: str) -> Any:
    return load_optional(f"matplotlib.{module}", "plotting", "plot")
