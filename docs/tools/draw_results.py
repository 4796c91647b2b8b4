"""Draws the pictures of results under docs/figures from the numbers in docs/figures/data.

Each file there holds the numbers of one picture, and on its first line the command that made them,
which is written beneath the picture. The first row names the series. `--format png --output FOLDER`
draws elsewhere, for a look; `--only growth` draws those whose names begin so.
"""

import argparse
import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

FIGURES = Path(__file__).resolve().parents[1] / "figures"
INK, SOFT, FAINT = "#1d2b3a", "#5b7083", "#dde5ec"
# From dark to light, so that they differ in grey too; markers and dashes differ besides.
COLORS = ("#12263a", "#1f6f8b", "#b0522d", "#6f8fa6", "#8a7a2e", "#9aa7b1")
MARKERS = ("o", "s", "^", "D", "v", "x")
# Panels of a row, one for each kernel, and sizes with which time grows faster than in proportion.
PANELS, FASTER = 3, ("n x n", "d bits")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 2)))


@dataclass(frozen=True)
class Numbers:
    """The numbers of a picture: their command, names of columns, and texts of cells."""

    command: str
    names: list[str]
    rows: list[list[str]]

    def column(self, name: str) -> np.ndarray:
        """Numbers of a column, nan where a cell is empty."""
        at = self.names.index(name)
        return np.array([float(row[at] or "nan") for row in self.rows])

    def texts(self, name: str) -> list[str]:
        """Texts of a column."""
        at = self.names.index(name)
        return [row[at] for row in self.rows]

    def where(self, name: str, value: str) -> "Numbers":
        """The rows whose column has this text."""
        at = self.names.index(name)
        return Numbers(self.command, self.names, [row for row in self.rows if row[at] == value])


def read(path: Path) -> Numbers:
    """Reads a file of numbers: `# command`, names, rows."""
    command, *lines = path.read_text(encoding="utf-8").splitlines()
    names, *rows = csv.reader(lines)
    return Numbers(command.removeprefix("# "), names, rows)


def clean(axes: Axes, title: str, x: str = "", y: str = "") -> None:
    """Title and axes in ink, faint grid, no box."""
    axes.set_title(title, loc="left", size=10, color=INK, weight="bold")
    axes.set_xlabel(x, color=INK, size=9)
    axes.set_ylabel(y, color=INK, size=9)
    axes.grid(color=FAINT, lw=0.7)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(SOFT)


def finish(figure: Figure, numbers: Numbers) -> Figure:
    """Writes the command beneath the picture."""
    figure.text(0.01, -0.02, numbers.command, size=8, color=SOFT, family="monospace", va="top")
    return figure


def lines(axes: Axes, numbers: Numbers, x: str, series: list[str]) -> None:
    """One line a series, each with its own color, marker and dashes."""
    for name, color, marker, dashes in zip(series, COLORS, MARKERS, DASHES, strict=False):
        at, values = numbers.column(x), numbers.column(name)
        known = np.isfinite(values)
        style = {"color": color, "marker": marker, "ls": dashes, "ms": 5, "lw": 1.6}
        axes.plot(at[known], values[known], label=name, **style)


def curves(
    numbers: Numbers,
    title: str,
    x: str,
    y: str,
    *,
    ticks: list[int] | None = None,
    level: tuple[float, str] | None = None,
    **axis: Any,
) -> Figure:
    """All columns against the first one, whose numbers are the ticks, or some of them.

    level: a height that is drawn, and its name.
    """
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    lines(axes, numbers, numbers.names[0], numbers.names[1:])
    if level:
        axes.axhline(level[0], color=SOFT, lw=1, ls=(0, (2, 2)))
        axes.annotate(level[1], (0.02, level[0]), (0, 3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", size=8.5, color=SOFT)  # fmt: skip
    axes.set(**axis)
    axes.set_xticks(ticks or numbers.column(numbers.names[0]))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.xaxis.minorticks_off()
    clean(axes, title, x, y)
    figure.legend(loc="outside right upper", fontsize=8.5, frameon=False)
    return finish(figure, numbers)


def bars(numbers: Numbers, title: str, x: str, fills: tuple[str, ...]) -> Figure:
    """Groups of horizontal bars on a logarithmic axis, with the number at each end."""
    names, groups = numbers.names[1:], numbers.texts(numbers.names[0])
    figure, axes = plt.subplots(figsize=(7.2, 0.62 * len(groups) + 1.5), layout="constrained")
    width = 0.8 / len(names)
    for i, (name, fill) in enumerate(zip(names, fills, strict=True)):
        at, values = (
            np.arange(len(groups)) + (i - (len(names) - 1) / 2) * width,
            numbers.column(name),
        )
        axes.barh(at, values, width * 0.92, color=fill, edgecolor=INK, lw=0.6, label=name)
        for place, value in zip(at, values, strict=True):
            axes.annotate(f"{value:,g}" if value < 1e3 else f"{value:,.0f}", (value, place), (3, 0),
                          textcoords="offset points", va="center", size=8, color=INK)  # fmt: skip
    axes.set(xscale="log", yticks=range(len(groups)), yticklabels=groups)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    clean(axes, title, x, numbers.names[0])
    axes.grid(visible=False, axis="y")
    figure.legend(loc="outside upper center", ncols=len(names), fontsize=8.5, frameon=False)
    return finish(figure, numbers)


def draw_answers(numbers: Numbers) -> Figure:
    """Labels answered against epsilon, a panel for each data set."""
    names = list(dict.fromkeys(numbers.texts("data")))
    figure, panels = plt.subplots(2, 3, figsize=(8, 5.4), layout="constrained")
    *panels, rest = panels.flat
    for axes, name in zip(panels, names, strict=True):
        lines(axes, numbers.where("data", name), "epsilon", numbers.names[2:])
        axes.set_xscale("log", base=2)
        axes.set_yscale("symlog", linthresh=1, linscale=0.3)
        axes.set(xticks=[0.5, 1, 2, 4], xticklabels=[".5", "1", "2", "4"], ylim=(-0.2, 2e4))
        clean(axes, name, "epsilon")
    for axes in panels[::3]:
        axes.set_ylabel("public points answered", color=INK, size=9)
    rest.axis("off")
    rest.legend(*panels[0].get_legend_handles_labels(), loc="center", fontsize=9, frameon=False)
    return finish(figure, numbers)


def draw_adaptation(numbers: Numbers) -> Figure:
    """Errors relative to training on the target, and accuracies: a row for each data set."""
    reference, *methods = numbers.names[2:]
    shares = {"width_ratios": [3, 2]}
    figure, panels = plt.subplots(
        1, 2, figsize=(8.4, 4.2), layout="constrained", gridspec_kw=shares
    )
    for axes, measure in zip(panels, ("error", "accuracy"), strict=True):
        part = numbers.where("measure", measure)
        rows, target = np.arange(len(part.rows)), part.column(reference)
        scale = target if measure == "error" else np.ones(len(rows))
        axes.vlines(
            target / scale, rows - 0.42, rows + 0.42, color=COLORS[5], lw=3, label=reference
        )
        for i, (name, color, marker) in enumerate(zip(methods, COLORS, "PsoD^v", strict=False)):
            fill = color if "ours" in name else "white"
            shown = {"marker": marker, "label": name, "facecolors": fill, "edgecolors": color}
            axes.scatter(
                part.column(name) / scale, rows + 0.13 * (i - 2.5), s=38, lw=1.5, zorder=3, **shown
            )
        axes.set(yticks=rows, yticklabels=part.texts("data"), ylim=(len(rows) - 0.5, -0.5))
        title = "squared error / that of training on the target"
        clean(axes, title if measure == "error" else measure)
    panels[0].set(
        xscale="log", xticks=[1, 2, 5, 10, 20, 50], xticklabels=["1", "2", "5", "10", "20", "50"]
    )
    panels[0].minorticks_off()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8.5, frameon=False)
    return finish(figure, numbers)


def draw_members(numbers: Numbers) -> Figure:
    """Members that tables of coins need, beside the paper's constants."""
    return bars(
        numbers,
        "Members needed, epsilon = 1, delta = 1e-6",
        "members",
        (COLORS[0], COLORS[3], "white"),
    )


def draw_figure1(numbers: Numbers) -> Figure:
    """Loss on the target against the number of records, 500 dimensions."""
    level = (0.01, "constant hypothesis: .01")
    axis = {"xscale": "log", "yscale": "log"}
    return curves(
        numbers,
        "Gaussians in 500 dimensions, not private",
        "records n",
        "loss on the target",
        level=level,
        **axis,
    )


def draw_figure2(numbers: Numbers) -> Figure:
    """Error on the target against the number of records, 200 dimensions."""
    return curves(
        numbers,
        "Ellipses in 200 dimensions, not private",
        "records n",
        "error on the target",
        ylim=(0, 0.32),
    )


def draw_agents(numbers: Numbers) -> Figure:
    """Agents needed alone, and by the tests of a run, against the size of the class."""
    return curves(
        numbers,
        "Agents needed, alpha = .1, epsilon = 1",
        "conjunctions in the class",
        "agents",
        xscale="log",
        yscale="log",
    )


def draw_two_rules(numbers: Numbers) -> Figure:
    """Error on the target against the number of records, where two rules hold."""
    return curves(
        numbers,
        "Two rules, one in five of the source as the target, epsilon = 1",
        "records n",
        "error on the target",
        level=(0.023, "best of the class: .023"),
        xscale="log",
        ylim=(0, 0.58),
    )


def draw_separation(numbers: Numbers) -> Figure:
    """People and records that a parity needs, against its bits."""
    return curves(
        numbers,
        "People and records that a parity needs, epsilon = 1",
        "bits d",
        "people and records",
        ticks=[2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
        xscale="log",
        yscale="log",
    )


def draw_growth(numbers: Numbers) -> Figure:
    """Time against size, a panel for each kernel; a thin line grows in proportion to the size."""
    names = list(dict.fromkeys(numbers.texts("kernel")))
    rows = -(-len(names) // PANELS)
    size = {"figsize": (8.4, 2.1 * rows + 0.6), "layout": "constrained"}
    figure, panels = plt.subplots(rows, PANELS, squeeze=False, **size)
    for axes, name in zip(panels.flat, names, strict=False):
        part = numbers.where("kernel", name)
        lines(axes, part, "size", numbers.names[2:])
        sizes, times = part.column("size"), part.column("2 threads")
        times = np.where(np.isfinite(times), times, part.column("1 thread"))
        if not name.endswith(FASTER):
            slope = times[-1] * sizes / sizes[-1]
            axes.plot(sizes, slope, color=SOFT, lw=0.7, label="proportional")
        axes.set(xscale="log", yscale="log")
        axes.minorticks_off()
        clean(axes, name)
        axes.set_title(name, loc="left", size=8, color=INK)
    for axes in panels.flat[len(names) :]:
        axes.axis("off")
    for axes in panels[:, 0]:
        axes.set_ylabel("milliseconds", color=INK, size=8.5)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize=8.5, frameon=False)
    return finish(figure, numbers)


PICTURES: dict[str, Callable[[Numbers], Figure]] = {
    "transfer_figure1": draw_figure1,
    "transfer_figure2": draw_figure2,
    "transfer_agents": draw_agents,
    "two_rules": draw_two_rules,
    "parity_separation": draw_separation,
    "labels_members": draw_members,
    "labels_answered": draw_answers,
    "adaptation": draw_adaptation,
}
PICTURES |= {path.stem: draw_growth for path in sorted((FIGURES / "data").glob("growth_*.csv"))}


def main() -> None:
    """Draws all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=["svg", "png"], default="svg")
    parser.add_argument("--only", default="", help="draw pictures whose names begin so")
    parser.add_argument("--output", type=Path, default=FIGURES)
    options = parser.parse_args()
    # Text stays text: files are small, and a reader can select it.
    plt.rcParams.update({"svg.hashsalt": "hdp_fast", "svg.fonttype": "none"})
    for name, draw in PICTURES.items():
        if not name.startswith(options.only):
            continue
        figure = draw(read(FIGURES / "data" / f"{name}.csv"))
        extra = {"metadata": {"Date": None}} if options.format == "svg" else {"dpi": 90}
        figure.savefig(options.output / f"{name}.{options.format}", bbox_inches="tight", **extra)
        plt.close(figure)


if __name__ == "__main__":
    main()
