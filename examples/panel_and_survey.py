"""A panel and a survey: learn from those who opted in, ask the others, and report.

A shop knows the customers who use its app. The rest of the town is older and buys less often; each
of them answers one question by one randomized bit. `hdp-fast hybrid` makes a model of the panel,
finds out what is different about the town, calibrates the model and certifies how often it errs.
Run it with `python examples/panel_and_survey.py`; it takes seconds, and leaves the tables, the
schema, the model and report.html in build/demo. With `--tables FOLDER` it only makes the tables and
the schema, which are those of the guides.
"""

import argparse
import csv
import json
from pathlib import Path

import numpy as np

from hdp_fast.cli import main as hdp_fast

COLUMNS = ["age", "home", "channel", "bought"]
SCHEMA = {
    "format": "hdp_fast.schema",
    "version": 1,
    "label": {"column": "bought", "positive": ["yes"]},
    "columns": {
        "age": {"kind": "number", "bounds": [18, 90], "cuts": [25, 35, 40, 45, 50, 55, 65]},
        "home": {"kind": "category", "values": ["own", "rent"]},
        "channel": {"kind": "category", "values": ["app", "phone", "shop"]},
    },
}
# Both sides' privacy: the panel's records, and each answer of the survey.
PRIVACY = ["--epsilon", "1", "--delta", "1e-6", "--agents-epsilon", "2"]


def people(n: int, app: bool, coins: np.random.Generator) -> list[tuple]:
    """Rows of COLUMNS: people who either all use the app or live in the town."""
    age = np.clip(coins.normal(40 if app else 50, 14, n), 18, 90).round().astype(int)
    home = coins.choice(["own", "rent"], n, p=[0.4, 0.6] if app else [0.6, 0.4])
    channel = coins.choice(["app", "phone", "shop"], n, p=[1, 0, 0] if app else [0.5, 0.2, 0.3])
    odds = 0.08 * (age - 45) + 1.5 * (home == "own") + (0.5 if app else -1.0)
    bought = np.where(coins.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return list(zip(age, home, channel, bought, strict=True))


def make_tables(folder: Path, seed: int | None = None) -> list[tuple]:
    """Writes the panel, the people asked, later people and the schema; returns the later people."""
    coins = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"panel": (20_000, True), "town": (60_000, False), "later": (20_000, False)}
    for name, (n, app) in tables.items():
        rows = people(n, app, coins)
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as handle:
            csv.writer(handle).writerows([COLUMNS, *rows])
    (folder / "schema.json").write_text(json.dumps(SCHEMA))
    return rows


def run(folder: Path, seed: int | None = None) -> dict[str, float]:
    """Makes the tables, runs the command, and compares its certificate with the truth."""
    later = make_tables(folder, seed)
    files = [str(folder / name) for name in ("panel.csv", "town.csv")]
    options = {
        "--schema": "schema.json",
        "--predict": "later.csv",
        "--output": "model.json",
        "--report": "report.html",
    }
    words = [word for flag, name in options.items() for word in (flag, str(folder / name))]
    code = hdp_fast(["hybrid", *files, *words, *PRIVACY, "--force"])
    if code:
        raise SystemExit(code)
    with open(folder / "later.predicted.csv", encoding="utf-8", newline="") as handle:
        said = np.array([float(row["bought_probability"]) for row in csv.DictReader(handle)])
    truth = np.array([row[3] == "yes" for row in later])
    certificate = json.loads((folder / "model.json").read_text())["certificates"]["after"]
    return {
        "error": float(((said >= 0.5) != truth).mean()),
        "low": certificate["low"],
        "high": certificate["high"],
        "constant": float(min(truth.mean(), 1 - truth.mean())),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("build/demo"), metavar="FOLDER")
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="make the tables alone")
    arguments = parser.parse_args()
    if arguments.tables is not None:
        make_tables(arguments.tables)
        return
    folder = arguments.output
    found = run(folder)
    print(f"certified: an error from {found['low']:.3f} to {found['high']:.3f} in the town")
    print(f"in truth: {found['error']:.3f}, and {found['constant']:.3f} for a constant")
    print(f"read {folder / 'report.html'}")


if __name__ == "__main__":
    main()
