"""Additive models beside linear ones and DP-EBM, with 6,000 records.

Five splits of each table, 70 per cent to learn from and at most --limit records; delta is 1e-6.
"linear" is PrivateClassifier or PrivateRegressor with method="descent", "additive" the same with
method="additive", "auto" a classifier as it is. DP-EBM of interpret runs in an environment of its
own, whose Python --rivals names (`pip install interpret-core scikit-learn==1.6.1 pandas`): it
protects a record more or less, for which half the noise is enough, and is compared at its stated
epsilon. Without privacy there are scikit-learn's logistic or ridge regression and its histogram
boosting, of single columns, of pairs of columns and as it is; "lead" is the share of boosting's
lead over the regression that the additive model has, where there is one. Log loss of classes, no
probability counting as below 1e-4, and R^2 of targets, with standard errors over splits; a line
ends with the time of a fit of each on one thread. The tables "waves", "one factor" and "steps" are
simulated here.

Run `HDP_FAST_DATA=FOLDER python benches/papers/additive_models.py --rivals PYTHON`: a quarter of
an hour, of which DP-EBM takes nearly all. `--limit 30000` learns from more records.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from _linear_scores import DELTA, ask_peer, count_train, make_orders, measure, score, split_columns
from _linear_tables import PROBLEMS, Task, from_numbers, open_tasks
from _report import accept_seeds, make_parser
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

EPSILONS = (0.1, 0.5, 1.0, 4.0)
TABLES = ("adult", "census", "participation", "popular", "german credit", "breast cancer", "accent")
TARGETS = ("wind", "wealth", "income", "hours", "earnings", "log shares")


def simulate(kind: str) -> Task:
    """20,000 records whose log-odds, or target, bend in their columns."""
    rng = np.random.default_rng(5)
    if kind == "waves":
        X = rng.random((20_000, 8))
        scores = 2 * np.sin(6 * X[:, 0]) + 1.5 * np.cos(9 * X[:, 1]) + 2 * (X[:, 2] > 0.7)
        scores += X[:, 4] - 3 * np.abs(X[:, 3] - 0.5) - 1.5
    elif kind == "one factor":
        factor = rng.normal(size=20_000)
        blurred = factor[:, None] + 0.7 * rng.normal(size=(20_000, 10))
        X, scores = 1 / (1 + np.exp(-blurred)), 4 * np.tanh(2 * factor) - 0.5
    elif kind == "steps":
        X = rng.random((20_000, 20)) ** 3
        scores = 3.0 * (X[:, 0] > 0.1) - 2 * (X[:, 1] > 0.3) + 2 * (X[:, 2] < 0.02)
        scores += 1.5 * np.sin(8 * X[:, 3]) + (X[:, 4] > 0.5) - 1
    else:
        X = rng.random((20_000, 10))
        target = 5 * np.sin(6 * X[:, 0]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
        target += 5 * (X[:, 4] > 0.3) + 1.5 * rng.normal(size=20_000)
        return from_numbers(X, target, (0, 1), (-20.0, 40.0))
    return from_numbers(X, (rng.random(20_000) < 1 / (1 + np.exp(-scores))).astype(int), (0, 1))


SIMULATED = {
    kind: (lambda kind=kind: simulate(kind))
    for kind in ("waves", "one factor", "steps", "bent target")
}
ALL: dict[str, Callable[[], Task]] = PROBLEMS | SIMULATED
DEFAULT = [*TABLES, "waves", "one factor", "steps", *TARGETS, "bent target"]


def main() -> None:
    """Print a table for each problem."""
    parser = make_parser(__doc__, repetitions=5, writing=False)
    parser.add_argument("--problem", nargs="+", choices=ALL, default=DEFAULT)
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--limit", type=int, default=6_000, help="the most records to learn from")
    parser.add_argument("--first", type=int, default=100, help="seed of the first split")
    parser.add_argument("--rivals", help="a Python that imports interpret")
    arguments = parser.parse_args()
    accept_seeds()
    splits = range(arguments.first, arguments.first + arguments.repetitions)
    for name, task in open_tasks(ALL, arguments.problem):
        orders = make_orders(task, splits, arguments.limit)
        show(name, task, orders, arguments.epsilon, arguments.rivals)


def show(name: str, task: Task, orders: Any, epsilons: list[float], rivals: str | None) -> None:
    """The table of a problem."""
    key = "loss" if task.classes else "score"
    free = {kind: [learn(task, order) for order in orders] for kind, learn in FREE.items()}
    print(
        f"\n{name}: {count_train(orders[0]):,} x {task.sources}, "
        f"{'log loss' if task.classes else 'R^2'}; not private: "
        + ", ".join(f"{kind} {say(values)}" for kind, values in free.items())
    )
    learners = ["linear", "additive", *(["auto"] if task.classes else [])]
    learners += ["DP-EBM"] if rivals else []
    heads = "".join(f"{learner:>17}" for learner in learners)
    print(f"{'epsilon':>8}{heads}{'lead':>8}", flush=True)
    peers: list[Any] = []
    if rivals:
        peers = ask_peer("ebm_models.py", task, orders, epsilons, rivals)["DP-EBM"]
    seconds = dict.fromkeys(learners, 0.0)
    for place, epsilon in enumerate(epsilons):
        cells = {
            "linear": score(task, orders, epsilon, fit_by("descent")),
            "additive": score(task, orders, epsilon, fit_by("additive")),
        }
        if task.classes:
            cells["auto"] = score(task, orders, epsilon, fit_by("auto"))
        if peers:
            cells["DP-EBM"] = peers[place]
        for learner, cell in cells.items():
            seconds[learner] += cell.get("seconds", math.nan) / len(epsilons)
        shown = "".join(f"{say(cell.get(key, [])):>17}" for cell in cells.values())
        print(f"{epsilon:>8}{shown}{share_lead(task, free, cells['additive'][key]):>8}", flush=True)
    times = "".join(f"{1e3 * seconds[learner]:>14.0f} ms" for learner in learners)
    print(f"{'a fit':>8}{times}", flush=True)


def share_lead(task: Task, free: dict[str, list[float]], values: list[float]) -> str:
    """The share of boosting's lead over regression; none where it is within two standard errors."""
    lead = np.array(free["boosting"]) - free["regression"]
    ahead = -lead if task.classes else lead
    if ahead.mean() <= 2 * ahead.std() / math.sqrt(max(len(lead) - 1, 1)):
        return "-"
    return f"{(np.mean(values) - np.mean(free['regression'])) / lead.mean():.2f}"


def say(values: list[float]) -> str:
    """The mean of splits and its standard error."""
    if not values:
        return "failed"
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.3f} ({error:.3f})"


def fit_by(method: str) -> Callable[..., Callable[..., Any]]:
    """What learns by a method of the estimators."""

    def fit(task: Task, train: Any, epsilon: float, seed: int) -> Callable[..., Any]:
        kind = PrivateClassifier if task.classes else PrivateRegressor
        model = kind(epsilon=epsilon, delta=DELTA, method=method, test_seed=seed, **task.settings)
        model.fit(task.pick(train), task.y[train])
        if task.classes:
            return lambda places: model.predict_proba(task.pick(places))
        low, high = task.target or (-1.0, 1.0)
        return lambda places: (2 * model.predict(task.pick(places)) - low - high) / (high - low)

    return fit


def boost(task: Task, order: NDArray[np.int64], columns: str | None = None) -> float:
    """The score of boosting without privacy on a split, of trees of one column or two, or as it is.

    One column a tree needs more trees than there are by default, and categories that are one.
    """
    rows, options = task.rows, {}
    if columns:
        rows, nominal = split_columns(task)
        options = {"interaction_cst": columns, "categorical_features": nominal}
        options |= {"early_stopping": True, "max_iter": 500}
    kind = HistGradientBoostingClassifier if task.classes else HistGradientBoostingRegressor
    return score_free(task, rows, order, kind(random_state=0, **options))


def regress(task: Task, order: NDArray[np.int64]) -> float:
    """The score of a linear model without privacy."""
    model = LogisticRegression(max_iter=3_000) if task.classes else Ridge()
    return score_free(task, task.rows, order, model)


def score_free(task: Task, rows: NDArray[Any], order: NDArray[np.int64], model: Any) -> float:
    """Log loss of classes, or R^2 of targets, of a model of scikit-learn."""
    train, test = order[: count_train(order)], order[count_train(order) :]
    model.fit(rows[train], task.codes[train])
    predict = model.predict_proba if task.classes else model.predict
    return measure(task, predict(rows[test]), test)[1 if task.classes else 0]


FREE: dict[str, Callable[[Task, NDArray[np.int64]], float]] = {
    "regression": regress,
    "boosting of columns": partial(boost, columns="no_interactions"),
    "of pairs": partial(boost, columns="pairwise"),
    "boosting": boost,
}


if __name__ == "__main__":
    begun = time.perf_counter()
    main()
    print(f"\n{time.perf_counter() - begun:.0f} s", file=sys.stderr)
