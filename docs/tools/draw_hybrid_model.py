"""Draws docs/figures/hybrid_model.svg: curator, agents and what passes between them."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

TARGET = Path(__file__).resolve().parents[1] / "figures" / "hybrid_model.svg"
INK, SOFT, FAINT = "#1d2b3a", "#5b7083", "#e8eef3"


def box(axes: Axes, x: float, width: float, title: str, lines: str) -> None:
    """A rounded box with a title and what it holds."""
    style = "round,pad=0.02,rounding_size=0.12"
    patch = FancyBboxPatch((x, 0.35), width, 2.5, boxstyle=style, fc=FAINT, ec=SOFT, lw=1.2)
    axes.add_patch(patch)
    middle = x + width / 2
    axes.text(middle, 2.55, title, ha="center", va="center", weight="bold", size=12, color=INK)
    axes.text(middle, 0.8, lines, ha="center", va="center", size=9, color=INK, linespacing=1.45)


def people(axes: Axes, x: float, y: float, columns: int, rows: int, share: float) -> None:
    """A crowd, of which a share has another color: those who are unlike the others."""
    at = np.array([(x + 0.24 * i, y - 0.26 * j) for j in range(rows) for i in range(columns)])
    dark = np.arange(len(at)) % 10 < 10 * share
    for mask, color in ((dark, INK), (~dark, "#9fb3c3")):
        axes.scatter(*at[mask].T, s=34, color=color, zorder=3)
        axes.scatter(at[mask, 0], at[mask, 1] - 0.1, s=52, marker="^", color=color, zorder=2)


def arrow(axes: Axes, start: float, end: float, y: float, words: str, below: bool = False) -> None:
    """An arrow from one box to another with what it carries."""
    axes.annotate(
        "", (end, y), (start, y), arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.4}
    )
    axes.text((start + end) / 2, y + (-0.13 if below else 0.13), words, ha="center", size=10.5,
              va="top" if below else "bottom", color=INK, linespacing=1.3)  # fmt: skip


def main() -> None:
    """Draws the picture and writes it."""
    plt.rcParams["svg.hashsalt"] = "hdp_fast"
    figure, axes = plt.subplots(figsize=(12, 3.2))
    axes.set(xlim=(-0.1, 12.3), ylim=(0.1, 3.15), aspect="equal")
    axes.axis("off")
    box(
        axes,
        0,
        3.3,
        "curator",
        "labeled records of those who opted in\n(epsilon, delta) for every record",
    )
    people(axes, 0.57, 2.15, 10, 2, 0.8)
    box(
        axes,
        8.8,
        3.3,
        "agents",
        "people of the target population\none randomized bit each, asked once",
    )
    people(axes, 9.37, 2.15, 10, 2, 0.2)
    arrow(axes, 3.5, 8.6, 1.95, "a hypothesis, learned privately:\nis it wrong for you?")
    arrow(
        axes,
        8.6,
        3.5,
        1.45,
        "randomized answers, one a person;\nwhere it errs, records are reweighed",
        below=True,
    )
    figure.savefig(TARGET, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
