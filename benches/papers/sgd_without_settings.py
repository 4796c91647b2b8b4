"""PrivateSGD without any settings, on the five problems of stability_labels.py.

Softmax regression where there are ten classes, logistic regression where there are two, on the
private records and their public features: no steps, batch size, radius or clip norm is given, so
that nothing was chosen in hindsight. delta is 1e-6. The rules were chosen on splits 1000 to 1003 of
four of the problems (not on the census).

Run `HDP_FAST_DATA=FOLDER python benches/papers/sgd_without_settings.py`: ten splits, some minutes.
"""

from __future__ import annotations

import time
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from _label_problems import PROBLEMS, Problem
from _report import accept_seeds, make_parser

from hdp_fast.learners import PrivateSGD

EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6


def main() -> None:
    """Print what the rules chose, and accuracies on the test sets."""
    parser = make_parser(__doc__, repetitions=10, writing=False)
    parser.add_argument("--problem", nargs="+", choices=[problem.name for problem in PROBLEMS])
    arguments = parser.parse_args()
    accept_seeds()
    print(
        f"{'':>10}{'epsilon':>9}{'steps':>7}{'batch':>8}{'radius':>8}{'noise':>7}{'accuracy':>17}"
    )
    for problem in PROBLEMS:
        if problem.name in (arguments.problem or [each.name for each in PROBLEMS]):
            reason = problem.missing()
            print(reason) if reason else show(problem, arguments.repetitions)


def show(problem: Problem, repetitions: int) -> None:
    """The lines of a problem."""
    records, begun = problem.read(), time.perf_counter()
    splits = [problem.split(records, np.random.default_rng(seed)) for seed in range(repetitions)]
    for epsilon in EPSILONS:
        learner = learner_of(problem, epsilon)
        models = [learner.learn(split.X, split.y, random_state=0) for split in splits]
        scores = [
            float((model.predict(split.test) == split.test_y).mean())
            for model, split in zip(models, splits, strict=True)
        ]
        plan = models[0].plan
        assert plan is not None
        cells = (
            f"{plan.steps:>7}{plan.batch_size:>8,}{plan.radius:>8.1f}{plan.noise_multiplier:>7.1f}"
        )
        spread = f"{fmean(scores):.3f} +- {pstdev(scores):.3f}"
        print(f"{problem.name:>10}{epsilon:>9}{cells}{spread:>17}", flush=True)
    print(f"{time.perf_counter() - begun:.0f} s")


def learner_of(problem: Problem, epsilon: float) -> PrivateSGD:
    """Nothing is set but what the problem is and how private."""
    shape: dict[str, Any] = {"loss": "logistic"}
    if problem.classes > 2:
        shape = {"loss": "softmax", "classes": problem.classes}
    return PrivateSGD(epsilon=epsilon, delta=DELTA, **shape)


if __name__ == "__main__":
    main()
