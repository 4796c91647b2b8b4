"""Figures, with matplotlib from the extra `pip install hdp-fast[plot]`."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._support.validate import positive_int, refuse
from .adaptation.base import Estimator
from .labels.labeler import LabelResult
from .labels.soft_labeler import ScoreResult
from .local.randomizers.aggregates import Estimate
from .local.randomizers.frequency import FrequencyAggregate
from .local.randomizers.mean import MeanAggregate
from .local.voting import VotingResult
from .stability.plans import members_needed
from .stability.tables import HazardTable, VoteTable
from .transfer.run import TransferResult

# More coefficients or frequencies than can be read are left out, the smallest ones.
_MOST_BARS = 30
_MOST_MEMBERS = 1 << 24


def demo_figure(report: Mapping[str, Any]) -> bytes:
    """Draw the seconds of every stage of a demo and its sample size beside the paper's.

    report: what hdp_fast.demo.run returns. Returns a PNG file's content.

    Raises: ImportError naming the extra when matplotlib is not installed.
    Cost: about a second.
    Source: none.
    """
    figure = _matplotlib("figure").Figure(figsize=(11, 4.2), layout="constrained")
    stages, sizes = figure.subplots(1, 2)
    _draw_stages(stages, report["seconds"])
    _draw_sizes(sizes, _sample_sizes(report))
    figure.suptitle(report["title"])
    return _png(figure)


def transfer(result: TransferResult) -> bytes:
    """Draw the estimated target errors along a run, with their intervals and what was accepted.

    The error of the better constant is drawn where the result knows it.

    result: of SubsampleTestReweigh. Returns a PNG file's content.

    Raises: ParameterError for anything else; ImportError naming the extra when matplotlib is not
        installed.
    Cost: about a second.
    Source: Kohen and Sheffet 2022, Figure 1c.
    """
    if not isinstance(result, TransferResult):
        refuse("result", result, "it must be a transfer.TransferResult")
    figure = _matplotlib("figure").Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
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
    return _png(figure)


def adaptation(estimator: Estimator, names: Sequence[str] | None = None) -> bytes:
    """Draw the coefficients of a fitted estimator, the largest 30 of them.

    estimator: of hdp_fast.adaptation, after fit; with classes, each has a color. names: of the
    coefficients (d,); None takes those of the frame that it was fitted to, or numbers. Returns a
    PNG file's content.

    Raises: ParameterError for anything else, and before fit; ImportError naming the extra when
        matplotlib is not installed.
    Cost: about a second.
    Source: none.
    """
    if not isinstance(estimator, Estimator) or not hasattr(estimator, "coef_"):
        refuse("estimator", type(estimator).__name__, "it must be a fitted one of adaptation")
    rows = np.atleast_2d(estimator.coef_)
    texts = names or estimator.feature_names_in_ or [str(i) for i in range(rows.shape[1])]
    if len(texts) != rows.shape[1]:
        refuse("names", texts, f"there must be one for each of {rows.shape[1]} coefficients")
    figure = _matplotlib("figure").Figure(figsize=(8, 6), layout="constrained")
    axes = figure.subplots()
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
    return _png(figure)


def local(
    result: MeanAggregate | FrequencyAggregate | Estimate | VotingResult,
    *,
    beta: float = 0.05,
    names: Sequence[str] | None = None,
) -> bytes:
    """Draw what randomized answers say: a mean, or the 30 largest frequencies, with intervals.

    result: an aggregate of hdp_fast.local, an Estimate, or what learn_by_votes released, of which
    the error is drawn. beta: of an aggregate, the probability with which one interval or more may
    miss. names: of the categories (k,), in their order; None numbers them. Returns a PNG file's
    content.

    Raises: ParameterError for anything else, and for an aggregate without reports; ImportError
        naming the extra when matplotlib is not installed.
    Cost: about a second.
    Source: none.
    """
    if not isinstance(result, MeanAggregate | FrequencyAggregate | Estimate | VotingResult):
        refuse("result", type(result).__name__, "it must be an aggregate or estimate of local")
    figure = _matplotlib("figure").Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    if isinstance(result, FrequencyAggregate):
        _draw_frequencies(axes, result, beta, names)
    else:
        _draw_mean(axes, result, beta)
    if isinstance(result, MeanAggregate | FrequencyAggregate):
        epsilon = result.randomizer.epsilon
        axes.set_title(f"{result.reports:,} reports, epsilon = {epsilon:g}")
    return _png(figure)


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


def _draw_frequencies(
    axes: Any, result: FrequencyAggregate, beta: float, names: Sequence[str] | None
) -> None:
    shares, half = result.frequencies(), result.interval(beta)
    if names is not None and len(names) != len(shares):
        refuse("names", names, f"there must be one for each of {len(shares)} categories")
    shown = np.argsort(-shares, kind="stable")[:_MOST_BARS]
    axes.bar(range(len(shown)), shares[shown], yerr=half, capsize=3, color="#4c72b0")
    axes.set_xticks(range(len(shown)), [names[i] if names else str(i) for i in shown], rotation=45)
    axes.axhline(0, color="grey", linewidth=0.8)
    axes.set_ylabel("share of the agents")


def table(
    table: HazardTable | VoteTable, *, agreement: float = 0.75, members: int | None = None
) -> bytes:
    """Draw how likely an answer gives way to privacy, and where the members' expected vote stands.

    table: a HazardTable, whose probability of bottom is drawn by the distance to instability, or a
    VoteTable, whose probability of the minority's label is drawn by the majority's share of the
    votes. agreement: as stability.members_needed; members: k, at least 1; None takes so many as
    that needs. Returns a PNG file's content.

    Raises: ParameterError for anything else; ImportError naming the extra when matplotlib is not
        installed.
    Cost: about a second.
    Source: none.
    """
    if not isinstance(table, HazardTable | VoteTable):
        refuse("table", table, "it must be a HazardTable or a VoteTable")
    needed = members_needed(table, agreement=agreement)
    k = needed if members is None else positive_int("members", members, _MOST_MEMBERS)
    figure = _matplotlib("figure").Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    if isinstance(table, HazardTable):
        _draw_hazards(axes, table, k, agreement)
    else:
        _draw_flips(axes, table, k, agreement)
    axes.set_title(repr(table).partition(":")[0])
    axes.legend()
    return _png(figure)


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


def labels(found: LabelResult | ScoreResult) -> bytes:
    """Draw how many queries were answered, and how many bottoms that took, along the queries.

    found: what a labeler answered to one call. The bottoms that were left before it are drawn for
    labels; a score may use up one bottom and still be found, so that scores only show how often
    there was none. Returns a PNG file's content.

    Raises: ParameterError for anything else; ImportError naming the extra when matplotlib is not
        installed.
    Cost: about a second.
    Source: none.
    """
    if not isinstance(found, LabelResult | ScoreResult):
        refuse("found", found, "it must be labels.LabelResult or ScoreResult")
    figure = _matplotlib("figure").Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    _draw_count(axes, ~found.is_bottom, "answered", "#4c72b0")
    axes.set_xlabel("queries asked")
    if found.record is not None:
        axes.set_title(f"{found.record.mechanism}, epsilon = {found.record.epsilon:g}")
    if found.unstable_left is not None:
        limit = found.unstable_left + int(found.is_bottom.sum())
        _draw_bottoms(
            axes.twinx(), found.is_bottom, limit if isinstance(found, LabelResult) else None
        )
    return _png(figure)


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


def require() -> None:
    """Refuse to go on where no figure could be drawn.

    Raises: ImportError naming the extra when matplotlib is not installed.
    Cost: that of the import.
    Source: none.
    """
    _matplotlib("figure")


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def _matplotlib(module: str) -> Any:
    try:
        return importlib.import_module(f"matplotlib.{module}")
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install hdp-fast[plot]") from error


def _sample_sizes(report: Mapping[str, Any]) -> dict[str, int]:
    plan = report["plan"]
    return {
        "training blocks used": report["blocks"]["training"],
        f"planned, epsilon = {plan['epsilon']:g}": plan["n"],
        "planned in batches": plan["n_batches"],
        "with the paper's constants": plan["n_paper"],
    }


def _draw_stages(axes: Any, seconds: Mapping[str, float]) -> None:
    bars = axes.barh(list(seconds), list(seconds.values()), color="#4c72b0")
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("seconds")
    axes.set_title("time of each stage")


def _draw_sizes(axes: Any, sizes: Mapping[str, int]) -> None:
    bars = axes.barh(list(sizes), list(sizes.values()), color="#55a868")
    axes.bar_label(bars, labels=[f"{size:,}" for size in sizes.values()], padding=3)
    axes.set_xscale("log")
    axes.invert_yaxis()
    # Room for the labels, which stand behind the bars.
    axes.set_xlim(min(sizes.values()) / 10, max(sizes.values()) * 100)
    axes.set_xlabel("records (log scale)")
    axes.set_title("sample sizes")
