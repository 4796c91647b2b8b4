"""Draws what a private model of Adult says: docs/figures/effects.svg and summary.svg.

The first is the chart of the report that `hdp-fast fit` writes, the second what summary() states of
categories, beside the same weights of four more fits. HDP_FAST_DATA=FOLDER python
docs/tools/draw_model.py takes some ten seconds.
"""

import contextlib
import dataclasses
import io
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd

from hdp_fast import UtilityWarning
from hdp_fast.cli import main as hdp_fast
from hdp_fast.data import Label, Schema
from hdp_fast.sklearn import PrivateClassifier

ROOT = Path(__file__).resolve().parents[2]
FIGURES = ROOT / "docs" / "figures"
sys.path.insert(0, str(ROOT / "benches" / "papers"))

from _report import FOLDER  # noqa: E402
from sklearn_defaults import schema_of  # noqa: E402

FITS = 5
# Of each kind: what stands farthest out of its noise, and the largest weights that do not.
TOLD, UNTOLD = 8, 4


def draw_effects(people: Path, schema: Schema) -> str:
    """The chart of a report, with the page's style in it, so that it stands alone."""
    schema = dataclasses.replace(schema, label=Label("income", positive=(">50K",)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schema.json"
        path.write_text(schema.to_json())
        report = Path(folder) / "report.html"
        command = f"fit {people} --schema {path} --epsilon 1 --delta 1e-6 --quiet"
        outputs = f"--output {Path(folder) / 'model.json'} --report {report}"
        with contextlib.redirect_stdout(io.StringIO()):
            assert hdp_fast(f"{command} {outputs}".split()) == 0
        page = report.read_text()
    [style], [chart] = (
        re.findall(f"<{name}(.*?)</{name}>", page, re.DOTALL) for name in ("style", "svg")
    )
    rules = re.findall(r"[^{}@]*\{[^{}]*\}", style.removeprefix(">").partition("@media")[0])
    kept = [rule.strip() for rule in rules if re.match(r"\s*(:root|svg|\.(before|after) )", rule)]
    begin, _, body = chart.partition(">")
    space = 'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"'
    return f"<svg {space}{begin}><style>{' '.join(kept)}</style>{body}</svg>\n"


def draw_summary(people: pd.DataFrame, schema: Schema) -> Any:
    """Weights of categories with their intervals, and those of more fits of the same people."""
    settings = {"epsilon": 1.0, "delta": 1e-6, "schema": schema, "classes": ["<=50K", ">50K"]}
    settings["method"] = "descent"
    fits = [PrivateClassifier(**settings).fit(people, people["income"]) for _ in range(FITS)]
    tables = [fit.summary().set_index("feature") for fit in fits]
    table = tables[0][["=" in name for name in tables[0].index]]
    half = (table.noise_high - table.noise_low) / 2
    clear = (table.coefficient.abs() / half).sort_values(ascending=False)
    hidden = table.coefficient.abs()[clear < 1].sort_values(ascending=False)
    names = [*clear.index[:TOLD], *hidden.index[:UNTOLD]][::-1]
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    for place, name in enumerate(names):
        row = table.loc[name]
        axes.plot([row.noise_low, row.noise_high], [place, place], color="0.7", lw=5)
        others = [other.coefficient[name] for other in tables[1:]]
        axes.plot(
            others, [place] * len(others), "kx", ms=4, label="" if place else "four more fits"
        )
        axes.plot(row.coefficient, place, "ko", ms=5, label="" if place else "a fit, .95 for noise")
    axes.axvline(0, color="0.5", lw=1)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("coefficient: added to the log-odds of an income above $50,000")
    axes.legend(frameon=False, loc="lower right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def main() -> None:
    """Write both figures."""
    warnings.simplefilter("ignore", UtilityWarning)
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "model", "font.size": 10})
    path = FOLDER / "adult.csv.gz"
    people = pd.read_csv(path, skipinitialspace=True)
    schema = schema_of(people)
    (FIGURES / "effects.svg").write_text(draw_effects(path, schema))
    figure = draw_summary(people, schema)
    figure.savefig(FIGURES / "summary.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
