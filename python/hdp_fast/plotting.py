"""Figures, with matplotlib from the extra `pip install hdp-fast[plot]`."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._support.validate import refuse
from .labels.labeler import LabelResult
from .labels.soft_labeler import ScoreResult
from .stability.plans import members_needed
from .stability.tables import HazardTable, VoteTable
from .transfer.run import TransferResult


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
    axes.set_xlabel("round")
    axes.set_ylabel("estimated error on the target")
    axes.set_ylim(bottom=0)
    axes.set_title(repr(result))
    axes.legend()
    return _png(figure)


def table(table: HazardTable | VoteTable, *, agreement: float = 0.75) -> bytes:
    """Draw how likely an answer gives way to privacy, level by level, and the members it takes.

    table: a HazardTable, whose p_j is the probability of bottom at distance j, or a VoteTable,
    whose q_j is that of the minority's label j votes from a tie. agreement: as
    stability.members_needed, whose k members are marked where their expected vote stands. Returns a
    PNG file's content.

    Raises: ParameterError for anything else; ImportError naming the extra when matplotlib is not
        installed.
    Cost: about a second.
    Source: none.
    """
    if not isinstance(table, HazardTable | VoteTable):
        refuse("table", table, "it must be a HazardTable or a VoteTable")
    k = members_needed(table, agreement=agreement)
    figure = _matplotlib("figure").Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    expected = k * (agreement - 0.5)
    levels = [*range(table.J + 1), max(table.J, expected)]
    probabilities = [*map(float, table.probabilities), float(table.probabilities[-1])]
    axes.semilogy(levels, probabilities, label="probability of the table")
    axes.axvline(table.J, color="grey", linestyle="--", label=f"J = {table.J:,}, lowest from here")
    text = f"expected vote of k = {k:,} members, each right with probability {agreement:g}"
    axes.axvline(expected, color="#c44e52", linestyle=":", label=text)
    bottoms = isinstance(table, HazardTable)
    axes.set_xlabel("distance to instability, votes" if bottoms else "votes from a tie")
    axes.set_ylabel("probability of bottom" if bottoms else "probability of the minority's label")
    axes.set_title(repr(table).partition(":")[0])
    axes.legend()
    return _png(figure)


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
