"""PrivateClassifier and PrivateRegressor without settings, beside their methods one by one.

Ten splits of each data set, 70 per cent to learn from. All learners get the same rows in [0, 1]:
numbers by public bounds, a bit for each category. Beside the methods of the estimators stand
PrivateSGD and SufficientStatistics with their own defaults on these rows. delta is 1e-6. A line
ends with the learners that are ahead of the default by more than one standard error of the paired
difference. With --loss the classifiers of hdp_fast.sklearn alone are compared, by their log loss,
no probability counting as below 1e-4; its last line is the time of a fit. With --signs it says how
many effects a report shows, and how many of these keep their sign over five fits of one split.
`--problem wind wealth` picks tables (those of packages too, once linear_rivals.py has collected
them), and `--limit 300` learns from so many records. linear_rivals.py has the rivals.

Run `HDP_FAST_DATA=FOLDER python benches/papers/linear_methods.py`: an hour, of which MNIST and the
census take the most. With --loss it takes some minutes, and tables of targets take one.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from _linear_packages import PACKAGE_PROBLEMS
from _linear_tables import PROBLEMS as FOLDER_PROBLEMS
from _linear_tables import Task, open_tasks
from _report import accept_seeds, make_parser
from numpy.typing import NDArray

from hdp_fast.learners import Effect, FeatureMap, PrivateModel, PrivateSGD, SufficientStatistics
from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

EPSILONS = (0.1, 0.5, 1.0, 4.0)
DELTA, SHARE = 1e-6, 0.7
OURS = "default"
PROBLEMS = FOLDER_PROBLEMS | PACKAGE_PROBLEMS
Scores = dict[str, list[list[float]]]


def main() -> None:
    """Print a table for each problem."""
    parser = make_parser(__doc__, repetitions=10, writing=False)
    parser.add_argument("--problem", nargs="+", choices=PROBLEMS, default=list(FOLDER_PROBLEMS))
    parser.add_argument("--epsilon", nargs="+", type=float, default=EPSILONS)
    parser.add_argument("--limit", type=int, help="the most records to learn from")
    parser.add_argument("--first", type=int, default=100, help="seed of the first split")
    parser.add_argument("--signs", action="store_true", help="signs of effects over five fits")
    parser.add_argument("--loss", action="store_true", help="the log loss of our classifiers")
    arguments = parser.parse_args()
    accept_seeds()
    for name, task in open_tasks(PROBLEMS, arguments.problem):
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
    return learner.fit(task.pick(train), task.y[train])


def lose(task: Task, model: Any, test: NDArray[np.int64]) -> float:
    """The mean log loss on the records at these places."""
    shares = np.maximum(model.predict_proba(task.pick(test)), 1e-4)
    shares /= shares.sum(axis=1, keepdims=True)
    return float(-np.log(shares[np.arange(len(test)), task.codes[test]]).mean())


def cut(order: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """The order of fewer records, of which so many at most are to learn from."""
    train = min(int(SHARE * len(order)), limit)
    return order[: int(train / SHARE + 1)]


def by_estimator(method: str) -> Callable[..., float]:
    """An estimator of hdp_fast.sklearn with this method."""

    def learn(task: Task, parts: Any, epsilon: float, seed: int) -> float:
        train, test = parts
        model = fit(task, train, epsilon, seed, method)
        return float(model.score(task.pick(test), task.y[test]))

    return learn


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
    model = learner.learn(with_one(task.rows[train]), task.codes[train], random_state=seed)
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
        task.codes[train],
        epsilon=epsilon,
        delta=DELTA,
        random_state=seed,
    )
    return measure(task, released.solve(), test)


def with_one(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows with the constant 1 in the last column."""
    return np.column_stack([rows, np.ones(len(rows))])


def measure(task: Task, model: Any, test: NDArray[np.int64]) -> float:
    """Accuracy, or R^2."""
    predicted, truth = model.predict(with_one(task.rows[test])), task.codes[test]
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


if __name__ == "__main__":
    sys.exit(main())
