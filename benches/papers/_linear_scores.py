"""Scores of benches/papers/linear_rivals.py: who learns, on which splits, and where they are kept.

A cell holds the scores of a learner on all splits of a table at one epsilon, or why it failed.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from _linear_tables import Task
from numpy.typing import NDArray

import hdp_fast
from hdp_fast.data import Category
from hdp_fast.learners import PrivateSGD
from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

EPSILONS = (0.1, 0.5, 1.0, 4.0)
# Where neighbors are a record more or less, half of epsilon has our relation.
PEER_EPSILONS = tuple(sorted({*EPSILONS, *(epsilon / 2 for epsilon in EPSILONS)}))
DELTA, SHARE, FLOOR = 1e-6, 0.7, 1e-4
# The shares of classes, or the mean of targets, of the records to learn from; it is not private.
OURS, CONSTANT = "ours", "constant"
# Our estimators without noise, whose epsilon is infinite.
NO_PRIVACY = "no privacy"
PEERS = Path(__file__).parents[1] / "peers"

Cell = dict[str, Any]
Orders = Sequence[NDArray[np.int64]]


@dataclass(frozen=True)
class Rival:
    """A learner beside ours.

    kinds: "classes", "targets" or both; add_remove: its neighbors are a record more or less, not
    another one in the place of one; script: what runs it in benches/peers, none for one of ours.
    """

    name: str
    kinds: str
    add_remove: bool
    script: str = ""
    slow: bool = False


RIVALS = (
    Rival("DP-EBM", "classes targets", True, "ebm_models.py", slow=True),
    Rival("diffprivlib logistic", "classes", False, "diffprivlib_models.py"),
    Rival("diffprivlib Bayes", "classes", True, "diffprivlib_models.py"),
    Rival("diffprivlib linear", "targets", False, "diffprivlib_models.py"),
    Rival("AdaSSP", "classes targets", True, "adassp_models.py"),
    Rival("DP-SGD", "classes targets", True, "dp_sgd_models.py"),
    Rival("PrivateSGD", "classes targets", False),
)
SCRIPTS = tuple(dict.fromkeys(rival.script for rival in RIVALS if rival.script))


@dataclass
class Store:
    """Cells in a file, with what they were made with: settings, versions, and facts of tables."""

    path: Path
    settings: dict[str, Any]
    versions: dict[str, str]
    tables: dict[str, dict[str, Any]]
    cells: dict[tuple[str, str, float], Cell]

    @classmethod
    def open(cls, path: Path, settings: dict[str, Any] | None = None) -> Store:
        """What the file holds; nothing, where there is none. Its settings must be these."""
        if not path.exists():
            return cls(path, settings or {}, {}, {}, {})
        kept = json.loads(path.read_text())
        if settings not in (None, kept["settings"]):
            raise SystemExit(f"{path} was made with {kept['settings']}: name another --store")
        cells = {(cell["table"], cell["learner"], cell["epsilon"]): cell for cell in kept["cells"]}
        return cls(path, kept["settings"], kept["versions"], kept["tables"], cells)

    def keep(self, table: str, learner: str, epsilon: float, cell: Cell) -> None:
        """Put a cell in the place of the one that was there."""
        key = (table, learner, epsilon)
        numbers = {name: shorten(value) for name, value in cell.items()}
        self.cells[key] = dict(zip(("table", "learner", "epsilon"), key, strict=True)) | numbers

    def lacks(self, table: str, learner: str, epsilon: float, splits: int) -> bool:
        """Whether this cell is not there, or has fewer splits."""
        cell = self.cells.get((table, learner, epsilon), {"score": ()})
        return "failure" not in cell and len(cell["score"]) < splits

    def write(self) -> None:
        """Write the file, a cell each line, by way of another one that takes its place."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(self.cells[key]) for key in sorted(self.cells))
        parts = [("settings", self.settings), ("versions", self.versions), ("tables", self.tables)]
        head = ",\n".join(f'"{name}": {json.dumps(value)}' for name, value in parts)
        draft = self.path.with_suffix(".part")
        draft.write_text(f'{{{head},\n"cells": [\n{lines}\n]}}\n')
        draft.replace(self.path)


def shorten(value: Any) -> Any:
    """Numbers to five digits behind the point, which are a thousandth of a standard error."""
    if isinstance(value, list):
        return [round(number, 5) for number in value]
    return round(value, 5) if isinstance(value, float) else value


def make_orders(task: Task, splits: range, limit: int) -> Orders:
    """For each split the records to learn from, at most so many, and then those to test on."""
    orders = [np.random.default_rng(seed).permutation(len(task.y)) for seed in splits]
    train = min(int(SHARE * len(task.y)), limit)
    return [order[: int(train / SHARE + 1)] for order in orders]


def count_train(order: NDArray[np.int64]) -> int:
    """How many records of an order are to learn from."""
    return int(SHARE * len(order))


def describe(task: Task, orders: Orders) -> dict[str, Any]:
    """The facts of a table that are shown beside its scores."""
    train = count_train(orders[0])
    return {"records": train, "columns": task.rows.shape[1], "classes": task.classes}


def score_ours(store: Store, name: str, task: Task, orders: Orders, again: bool) -> None:
    """Fill the cells of our learners that are not there, or all of those of the estimators."""
    learners = (
        (OURS, fit_estimator, EPSILONS),
        (NO_PRIVACY, fit_estimator, (math.inf,)),
        ("PrivateSGD", fit_descent, EPSILONS),
        (CONSTANT, fit_constant, EPSILONS),
    )
    for learner, fit, epsilons in learners:
        for epsilon in epsilons:
            wanted = again and learner == OURS
            if wanted or store.lacks(name, learner, epsilon, len(orders)):
                store.keep(name, learner, epsilon, score(task, orders, epsilon, fit))
    store.versions["hdp_fast"] = hdp_fast.__version__
    store.write()


def score(task: Task, orders: Orders, epsilon: float, fit: Callable[..., Any]) -> Cell:
    """The cell of a learner of ours."""
    results, seconds, train = [], 0.0, count_train(orders[0])
    for seed, order in enumerate(orders):
        begun = time.perf_counter()
        predict = fit(task, order[:train], epsilon, seed)
        seconds += time.perf_counter() - begun
        results.append(measure(task, predict(order[train:]), order[train:]))
    cell: Cell = {"score": [result[0] for result in results]}
    if task.classes:
        cell["loss"] = [result[1] for result in results]
    return {**cell, "seconds": seconds / len(orders)}


def fit_estimator(task: Task, train: Any, epsilon: float, seed: int) -> Callable[..., Any]:
    """PrivateClassifier or PrivateRegressor with their defaults."""
    kind = PrivateClassifier if task.classes else PrivateRegressor
    model = kind(epsilon=epsilon, delta=DELTA, test_seed=seed, **task.settings)
    model.fit(task.pick(train), task.y[train])
    if task.classes:
        return lambda places: model.predict_proba(task.pick(places))
    low, high = task.target or (-1.0, 1.0)
    return lambda places: (2 * model.predict(task.pick(places)) - low - high) / (high - low)


def fit_constant(task: Task, train: Any, epsilon: float, seed: int) -> Callable[..., Any]:
    """The same answer for all records, whatever epsilon is."""
    codes = task.codes[train]
    answer = (
        np.bincount(codes, minlength=task.classes) / len(codes) if task.classes else codes.mean()
    )
    return lambda places: np.array([answer] * len(places))


def fit_descent(task: Task, train: Any, epsilon: float, seed: int) -> Callable[..., Any]:
    """PrivateSGD with its own defaults, of rows in [0, 1] with a constant."""
    shape: dict[str, Any] = {"loss": "logistic"}
    if not task.classes:
        shape = {"loss": "squared", "label_bound": 1.0}
    elif task.classes > 2:
        shape = {"loss": "softmax", "classes": task.classes}
    bound = math.sqrt(task.sources + 1)
    learner = PrivateSGD(epsilon=epsilon, delta=DELTA, norm_bound=bound, **shape)
    rows = np.column_stack([task.rows, np.ones(len(task.rows))])
    model: Any = learner.learn(rows[train], task.codes[train], random_state=seed)
    if task.classes > 2:
        return lambda places: model.predict_proba(rows[places])
    if not task.classes:
        return lambda places: model.scores(rows[places])

    def predict(places: Any) -> NDArray[np.float64]:
        positive = (1 + np.tanh(model.scores(rows[places]) / 2)) / 2
        return np.column_stack([1 - positive, positive])

    return predict


def measure(task: Task, predicted: Any, test: NDArray[np.int64]) -> tuple[float, float]:
    """Accuracy and log loss, or R^2 and 0, as benches/peers/peer_tasks.py has them for rivals."""
    truth = task.codes[test]
    if not task.classes:
        errors = np.clip(predicted, -1, 1) - truth
        return float(1 - (errors**2).sum() / ((truth - truth.mean()) ** 2).sum()), 0.0
    shares = np.maximum(predicted, FLOOR)
    shares /= shares.sum(axis=1, keepdims=True)
    loss = -np.log(shares[np.arange(len(test)), truth]).mean()
    return float((predicted.argmax(axis=1) == truth).mean()), float(loss)


def score_peers(
    store: Store, name: str, task: Task, orders: Orders, slow: int, python: str
) -> None:
    """Fill the cells of all rivals that are not there; the slow ones on the first few splits."""
    kind = "classes" if task.classes else "targets"
    for script in SCRIPTS:
        rivals = [rival for rival in RIVALS if rival.script == script and kind in rival.kinds]
        splits = min([len(orders), *(slow for rival in rivals if rival.slow)])
        missing = [
            epsilon
            for epsilon in PEER_EPSILONS
            if any(store.lacks(name, rival.name, epsilon, splits) for rival in rivals)
        ]
        if not missing:
            continue
        for learner, cells in ask_peer(script, task, orders[:splits], missing, python).items():
            for epsilon, cell in zip(missing, cells, strict=True):
                store.keep(name, learner, epsilon, cell)
        store.write()


def ask_peer(
    script: str, task: Task, orders: Orders, epsilons: Iterable[float], python: str
) -> dict[str, list[Cell]]:
    """The cells of a script of rivals, from a process of its own."""
    columns, nominal = split_columns(task)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "task.npz"
        np.savez(
            path,
            rows=task.rows,
            numeric=find_numbers(task),
            columns=columns,
            nominal=nominal,
            y=task.codes,
            classes=task.classes,
            norm=math.sqrt(task.sources),
            delta=DELTA,
            orders=np.array(orders),
            train=count_train(orders[0]),
            epsilons=np.array(list(epsilons)),
        )
        return dict(json.loads(run(python, script, str(path))))


def ask_versions(python: str) -> dict[str, str]:
    """The versions of all that the rivals are."""
    answers: dict[str, str] = {}
    for script in SCRIPTS:
        answers |= json.loads(run(python, script, "versions"))
    return {f"rivals' {name}": version for name, version in answers.items()}


def run(python: str, script: str, argument: str) -> str:
    """What a script of rivals prints, with one thread, and without our modules on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [python, str(PEERS / script), argument]
    answer = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return answer.stdout


def find_numbers(task: Task) -> NDArray[np.bool_]:
    """Which of the rows' columns are numbers, and not bits of a category."""
    if not isinstance(task.X, pd.DataFrame):
        return np.ones(task.rows.shape[1], bool)
    schema = task.settings["schema"]
    return np.array([name in schema.columns for name in schema.float_names])


def split_columns(task: Task) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The table's own columns, scaled numbers and codes of categories, and which are categories."""
    if not isinstance(task.X, pd.DataFrame):
        return task.rows, np.zeros(task.rows.shape[1], bool)
    schema = task.settings["schema"]
    names = list(schema.float_names)
    columns, nominal = [], []
    for name, kind in schema.columns.items():
        nominal.append(isinstance(kind, Category))
        if isinstance(kind, Category):
            bits = [names.index(f"{name}={value}") for value in kind.values]
            columns.append(task.rows[:, bits].argmax(axis=1).astype(float))
        else:
            columns.append(task.rows[:, names.index(name)])
    return np.column_stack(columns), np.array(nominal)
