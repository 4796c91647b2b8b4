"""Figures, with matplotlib from the extra `pip install hdp-fast[plot]`."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from typing import Any

from ._checks import shown
from ._rounds import Result
from .exceptions import ParameterError


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


def transfer(result: Result) -> bytes:
    """Draw the estimated target errors along a run, with their intervals and what was accepted.

    result: of SubsampleTestReweigh. Returns a PNG file's content.

    Raises: ParameterError for anything else; ImportError naming the extra when matplotlib is not
        installed.
    Cost: about a second.
    Source: Kohen and Sheffet, Figure 1c.
    """
    if not isinstance(result, Result):
        raise ParameterError(f"result = {shown(result)}, but it must be a transfer.Result")
    figure = _matplotlib("figure").Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    rounds = [each.round or result.rounds for each in result.estimates]
    values = [each.value for each in result.estimates]
    low = [each.value - each.low for each in result.estimates]
    high = [each.high - each.value for each in result.estimates]
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
