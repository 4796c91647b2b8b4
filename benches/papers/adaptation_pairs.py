"""One release on pairs of populations that a column splits: beside the source and a constant.

Run `python benches/papers/adaptation_pairs.py`: five minutes; HDP_FAST_DATA names the folder of the
data. MomentAdaptation learns from all source records and 500 private ones of the target, or a third
of the target where that is less, and is measured on the others. Errors are squared errors relative
to the best constant on the test records, which has 1.00. "source" is the public ridge regression,
"mean" the mean of the private labels, "ridge" ridge regression on the private records alone with
its best penalty in hindsight, both without noise. Deviations are standard errors of the mean over
splits, and * marks a mean more than .02 behind the better of source and 1.00.

Each pair comes with the column that splits it, and without. In the source this column is a
constant: beside the intercept's it leaves open which of both the source's mean belongs to, and the
target has another value there. Rows are made by ScaledFeatures of bounds that span the table;
labels are in [-1, 1], of bounds that hold all but half a per cent of the source's at each end. The
rules of MomentAdaptation were chosen on splits 0 to 7 of these pairs, and of those of
adaptation.py, and checked on splits 100 to 107; the table is of splits from 200 on.

wind      eleven months, January: the wind at one of twelve stations
wind 7    the same, July
savings   participants of 401(k), others: net financial assets in thousands of dollars
incomes   those who may participate, others: income in thousands of dollars
earnings  people of a training program, the population: earnings in 1978
hours     men, women (Adult): hours a week
weeks     people without income of stocks, with (census): weeks of work in a year; 20,000 of them
credit    three years or longer at a residence, shorter: the logarithm of the amount
news      Monday to Saturday, Sunday: the logarithm of shares
gas       seven batches, batch 6: the logarithm of the concentration
diabetes  under 50, older (scikit-learn): disease progression
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from _adaptation_data import Table, table
from _report import FOLDER, accept_seeds, make_parser, missing_file, select_present, write_json
from numpy.typing import NDArray

from hdp_fast.adaptation import MomentAdaptation, ScaledFeatures
from hdp_fast.data import Category, Label, Number, Schema

PRIVATE, DELTA, EPSILONS = 500, 1e-6, (1.0, 4.0)
# How far behind the better of the source and a constant an error may be.
ALLOWED = 0.02
OUTER_LABELS = 0.005
FIRST = 200
NAMES = ("source", "mean", "ridge", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS))
PENALTIES = 10.0 ** np.arange(-6, 1.1, 0.5)
Floats = NDArray[np.float64]


class Populations(NamedTuple):
    """A table without its label, the label, which rows are the source, and what splits them."""

    columns: Table
    label: Floats
    source: NDArray[np.bool_]
    splits: tuple[str, ...]


class Split(NamedTuple):
    """Rows and labels of the source, of the private records, and of those to measure on."""

    source: tuple[Floats, Floats]
    private: tuple[Floats, Floats]
    test: tuple[Floats, Floats]


@dataclass(frozen=True)
class Pair:
    """Two populations; read returns both, missing why it cannot."""

    name: str
    read: Callable[[], Populations]
    missing: Callable[[], str | None]

    def split(self, number: int, with_column: bool) -> Split:
        """Draw the private records, and make rows."""
        columns, label, is_source, splits = self.read()
        kept = {
            name: values for name, values in columns.items() if with_column or name not in splits
        }
        rows, labels = make_rows(kept, label, label[is_source])
        target = np.flatnonzero(~is_source)
        order = np.random.default_rng(number).permutation(target)
        private, test = np.split(order, [min(PRIVATE, len(target) // 3)])
        parts = (np.flatnonzero(is_source), private, test)
        return Split(*((rows[part], labels[part]) for part in parts))


def make_rows(columns: Table, label: Floats, public: Floats) -> tuple[Floats, Floats]:
    """Rows of norm at most 1 by a schema that spans the table, and labels in [-1, 1]."""
    kinds: dict[str, Any] = {}
    for name, values in columns.items():
        if values.dtype.kind == "f":
            low, high = float(values.min()), float(values.max())
            kinds[name] = Number(low, high if high > low else low + 1)
        else:
            kinds[name] = Category(tuple(np.unique(values).tolist()))
    low, high = np.quantile(public, [OUTER_LABELS, 1 - OUTER_LABELS])
    features = ScaledFeatures(Schema(Label("label", bounds=(float(low), float(high))), kinds))
    return features.rows(columns), ((label - low) / ((high - low) / 2) - 1).clip(-1, 1)


@functools.cache
def wind(month: int) -> Populations:
    found = table("wind_haslett_raftery.csv.gz")
    stations = [name for name in found if name not in ("year", "month", "day")]
    columns = {name: found[name] for name in stations[:-1]}
    months = np.char.add("m", found["month"].astype(int).astype(str))
    return Populations(
        columns | {"month": months}, found[stations[-1]], found["month"] != month, ("month",)
    )


@functools.cache
def savings() -> Populations:
    found = table("k401ksubs.csv.gz")
    label = found.pop("nettfa")
    return Populations(found, label, found["p401k"] == 1, ("p401k", "e401k"))


@functools.cache
def incomes() -> Populations:
    found = table("k401ksubs.csv.gz")
    label, _ = found.pop("inc"), found.pop("incsq")
    return Populations(found, label, found["e401k"] == 1, ("e401k", "p401k"))


@functools.cache
def earnings() -> Populations:
    found = table("lalonde_nsw_cps1.csv.gz")
    label, source = found.pop("re78"), found["source"] == "nsw"
    del found["data_id"], found["treat"]
    return Populations(found, label, source, ("source",))


@functools.cache
def hours() -> Populations:
    found = table("adult.csv.gz")
    label = found.pop("hours-per-week")
    del found["fnlwgt"]
    return Populations(found, label, found["gender"] == "Male", ("gender",))


@functools.cache
def weeks() -> Populations:
    found = table("census_income_kdd_21cols.csv.gz")
    some = np.random.default_rng(0).choice(len(found["age"]), 20_000, replace=False)
    found = {name: values[some] for name, values in found.items()}
    label = found.pop("weeks_worked_in_year")
    invests = (found["dividends_from_stocks"] > 0) | (found["capital_gains"] > 0)
    found["stocks"] = np.where(invests, "some", "none")
    for name in ("instance_weight", "dividends_from_stocks", "capital_gains"):
        del found[name]
    return Populations(found, label, ~invests, ("stocks",))


@functools.cache
def credit() -> Populations:
    found = table("south_german_credit.csv.gz")
    label, stays = np.log(found.pop("hoehe")), found.pop("wohnzeit") >= 3
    found["stays"] = np.where(stays, "long", "short")
    return Populations(found, label, stays, ("stays",))


@functools.cache
def news() -> Populations:
    found = table("news_popularity_2013h1.csv.gz")
    label, sunday = np.log(found.pop("shares")), found["weekday_is_sunday"] == 1
    del found["timedelta"]
    days = tuple(name for name in found if name.startswith("weekday_is_") or name == "is_weekend")
    return Populations(found, label, ~sunday, days)


@functools.cache
def gas() -> Populations:
    with np.load(FOLDER / "gas_drift_8of10.npz") as found:
        X, batch = found["X"].astype(float), found["batch"]
        columns: Table = {f"x{place}": column for place, column in enumerate(X.T)}
        columns["gas"] = np.char.add("g", found["gas"].astype(str))
        columns["batch"] = np.char.add("b", batch.astype(str))
        return Populations(columns, np.log(found["conc"]), batch != 6, ("batch",))


@functools.cache
def diabetes() -> Populations:
    from sklearn.datasets import load_diabetes

    found = load_diabetes(scaled=False)
    columns: Table = dict(zip(found.feature_names, found.data.T, strict=True))
    young = columns["age"] < 50
    columns["is_old"] = np.where(young, "no", "yes")
    return Populations(columns, found.target, young, ("is_old",))


def without(name: str) -> Callable[[], str | None]:
    return functools.partial(missing_file, name)


PAIRS = (
    Pair("wind", functools.partial(wind, 1), without("wind_haslett_raftery.csv.gz")),
    Pair("wind 7", functools.partial(wind, 7), without("wind_haslett_raftery.csv.gz")),
    Pair("savings", savings, without("k401ksubs.csv.gz")),
    Pair("incomes", incomes, without("k401ksubs.csv.gz")),
    Pair("earnings", earnings, without("lalonde_nsw_cps1.csv.gz")),
    Pair("hours", hours, without("adult.csv.gz")),
    Pair("weeks", weeks, without("census_income_kdd_21cols.csv.gz")),
    Pair("credit", credit, without("south_german_credit.csv.gz")),
    Pair("news", news, without("news_popularity_2013h1.csv.gz")),
    Pair("gas", gas, without("gas_drift_8of10.npz")),
    Pair("diabetes", diabetes, lambda: None),
)


def relative(w: Floats, test: tuple[Floats, Floats]) -> float:
    """The squared error over that of the best constant."""
    X, y = test
    return float(np.square(X @ w - y).mean() / y.var())


def measure(split: Split, number: int) -> dict[str, float]:
    """The errors of all methods on a split."""
    (Z, t), test = split.private, split.test
    errors = {}
    for epsilon in EPSILONS:
        model = MomentAdaptation(epsilon=epsilon, delta=DELTA)
        model.fit(*split.source, Z, t, random_state=number)
        errors[f"epsilon {epsilon:g}"] = relative(model.coef_, test)
        # The more private records tell which constant is the intercept, the better this is known.
        errors["source"] = relative(model.source_coef_, test)
    # The last column is a constant.
    errors["mean"] = relative(np.append(np.zeros(Z.shape[1] - 1), t.mean() / Z[0, -1]), test)
    fits = (
        np.linalg.solve(Z.T @ Z / len(t) + c * np.eye(len(Z.T)), Z.T @ t / len(t))
        for c in PENALTIES
    )
    return errors | {"ridge": min(relative(w, test) for w in fits)}


def repeat(pair: Pair, with_column: bool, splits: int) -> dict[str, Any]:
    """The errors of all methods on so many splits."""
    errors: dict[str, list[float]] = {}
    for number in range(FIRST, FIRST + splits):
        split = pair.split(number, with_column)
        for name, error in measure(split, number).items():
            errors.setdefault(name, []).append(error)
    sizes = len(split.source[1]), len(split.private[1]), split.source[0].shape[1]
    return {"name": pair.name, "with column": with_column, "sizes": sizes, "errors": errors}


def line(result: dict[str, Any]) -> str:
    """A row of the table."""
    errors = {name: np.array(each) for name, each in result["errors"].items()}
    best = min(float(errors["source"].mean()), 1.0)
    cells = []
    for name in NAMES:
        each = errors[name]
        spread = each.std(ddof=1) / np.sqrt(len(each)) if len(each) > 1 else 0.0
        mark = "*" if name.startswith("epsilon") and each.mean() > best + ALLOWED else ""
        cells.append(f"{each.mean():.3f} ({spread:.3f}){mark}")
    m, n, d = result["sizes"]
    column = "with" if result["with column"] else "without"
    return f"| {result['name']}, {column} | {m:,} | {n} | {d} | " + " | ".join(cells) + " |"


def main() -> None:
    parser = make_parser(__doc__, quick="two pairs, two splits")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--only", choices=[pair.name for pair in PAIRS])
    arguments = parser.parse_args()
    accept_seeds()
    pairs = PAIRS[2:4] if arguments.quick else PAIRS
    splits = 2 if arguments.quick else arguments.splits
    print("| pair, the column that splits it | m | n | columns |", " | ".join(NAMES), "|")
    print("| --- |" + " ---: |" * (3 + len(NAMES)))
    results = []
    for pair in select_present(pairs, arguments.only):
        for with_column in (True, False):
            results.append(repeat(pair, with_column, splits))
            print(line(results[-1]), flush=True)
    write_json(arguments.output / "adaptation_pairs.json", results)


if __name__ == "__main__":
    main()
