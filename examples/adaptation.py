"""Predictions from two tables: many public sales in a city, some private ones in a town.

Every part is a process of its own. Run it with `python examples/adaptation.py`; it takes seconds.
"""

import csv
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

COLUMNS = ["size", "age", "kind", "price"]
# What a square metre, a year and a house bring, and what a flat costs without any of them.
CITY = 5.0, -0.5, 60.0, 110.0
TOWN = 2.0, -0.5, 20.0, 50.0
NOISE = 10.0
SCHEMA = ["--label", "price", "--label-bounds", "0", "1500", "--output", "schema.json"]
ADAPT = ["--schema", "schema.json", "--epsilon", "1", "--delta", "1e-6"]
ONE_RELEASE = ["--predict", "wanted.csv"]
DESCENT = [*ONE_RELEASE, "--method", "descent", "--alpha", ".1", "--penalty", ".01", "--force"]


def sales(n: int, worth: tuple[float, ...], coins: np.random.Generator) -> list[list]:
    """Rows of COLUMNS."""
    size, age = coins.integers(20, 200, n), coins.integers(0, 100, n)
    house = coins.random(n) < 0.5
    price = np.column_stack([size, age, house, np.ones(n)]) @ worth + coins.normal(0, NOISE, n)
    kind = np.where(house, "house", "flat")
    return [list(row) for row in zip(size, age, kind, price.clip(0, 1500).round(1), strict=True)]


def write(path: Path, names: list[str], rows: list[list]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as handle:
        csv.writer(handle).writerows([names, *(row[: len(names)] for row in rows)])


def hdp_fast(folder: Path, *arguments: str) -> str:
    """One process of the command line; returns what it prints."""
    command = [sys.executable, "-m", "hdp_fast", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def error(folder: Path, truth: list[list]) -> float:
    """Root of the mean squared error of what was predicted."""
    with open(folder / "wanted.predicted.csv", encoding="utf-8", newline="") as handle:
        found = np.array([float(row["price"]) for row in csv.DictReader(handle)])
    return float(np.sqrt(np.square(found - [row[3] for row in truth]).mean()))


def main() -> None:
    coins = np.random.default_rng(2026)
    wanted = sales(2_000, TOWN, coins)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "city.csv", COLUMNS, sales(20_000, CITY, coins) + sales(5_000, TOWN, coins))
        write(folder / "town.csv", COLUMNS, sales(1_000, TOWN, coins))
        write(folder / "wanted.csv", COLUMNS[:3], wanted)
        hdp_fast(folder, "schema", "city.csv", *SCHEMA)
        for method in (ONE_RELEASE, DESCENT):
            print(hdp_fast(folder, "adapt", "city.csv", "town.csv", *ADAPT, *method))
            print(f"error of a prediction: {error(folder, wanted):.1f}; of the truth: {NOISE:g}")


if __name__ == "__main__":
    main()
