"""hdp-fast hybrid on panels of real people: what its defaults reach, and what the screen is worth.

The four problems of self_selection.py. Half of the target, drawn at random, plays the survey, and
error, log loss and AUC are measured on the other half; of the census years, which are two samples
of one size, half of the source is the panel. The curator's epsilon is the agents', delta 1e-6.

panel                   the model of the panel, of the columns that the screen leaves
hybrid                  the same, calibrated by the survey: what the command predicts with
not screened            a run in which no one is asked what moved (--screen 0)

A tenth of the survey certifies; all else are the command's defaults, which ask no one what moved
where panel or survey are too small to tell.
Run `HDP_FAST_DATA=FOLDER python benches/papers/hybrid_command.py`: about a minute a repetition.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _report import FOLDER, accept_seeds, make_parser, print_results, select_present
from self_selection import DELTA, PROBLEMS, Problem, scores

from hdp_fast.data import Table, read_table
from hdp_fast.transfer import HybridRun

SCREENS = {"hybrid": None, "not screened": 0.0}
METRICS = ("error", "log loss", "AUC")


def split(problem: Problem, table: Table, seed: int) -> tuple[Table, Table, Table]:
    """The panel, the survey and the rest of the target."""
    rng, chosen = np.random.default_rng(seed), problem.source(table)
    source = rng.permutation(np.flatnonzero(chosen))
    target = rng.permutation(np.flatnonzero(~chosen))
    if problem.name == "years":
        source = source[: len(source) // 2]
    parts = (source, target[: len(target) // 2], target[len(target) // 2 :])
    panel, survey, rest = (table.select(part) for part in parts)
    return panel, survey, rest


def measure(problem: Problem, table: Table, seed: int, epsilon: float) -> dict[str, Any]:
    """One repetition."""
    panel, survey, rest = split(problem, table, seed)
    y, rows = problem.schema.labels(rest), {}
    for name, screen in SCREENS.items():
        run = HybridRun(problem.schema, epsilon=epsilon, delta=DELTA, screen=screen, certify=0.1)
        agents = run.simulate(survey, n=panel.rows, epsilon=epsilon)
        result = run.run(panel, agents, random_state=seed)
        if name == "hybrid":
            rows["panel"] = result_of(y, result.panel_model.probabilities(rest)[:, 1])
        rows[name] = result_of(y, result.model.probabilities(rest)[:, 1])
    return rows


def result_of(y: Any, probabilities: Any) -> list[float]:
    """Error, log loss and AUC."""
    return [float(number) for number in scores(y, probabilities, probabilities)]


def repeat(problem: Problem, repetitions: int, epsilon: float) -> dict[str, Any]:
    """All repetitions of a problem."""
    table = read_table(FOLDER / problem.file)
    rows = [measure(problem, table, seed, epsilon) for seed in range(repetitions)]
    return {
        "problem": problem.name,
        "epsilon": epsilon,
        "repetitions": repetitions,
        "rows": {name: np.array([row[name] for row in rows]).tolist() for name in rows[0]},
    }


def table(result: dict[str, Any]) -> str:
    """Means over the repetitions, with the standard deviation of the error."""
    title = f"{result['problem']}, epsilon {result['epsilon']:g}, {result['repetitions']} splits"
    lines = [title, "", f"| model | {' | '.join(METRICS)} |", "| --- | ---: | ---: | ---: |"]
    for name, rows in result["rows"].items():
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
        cells = [f"{mean[0]:.4f} +- {spread[0]:.4f}", f"{mean[1]:.4f}", f"{mean[2]:.4f}"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = make_parser(
        __doc__, quick="one repetition", repetitions=10, printing=True, writing=False
    )
    parser.add_argument("--only", choices=[problem.name for problem in PROBLEMS])
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    accept_seeds()
    repetitions = 1 if arguments.quick else arguments.repetitions
    print_results(
        arguments,
        select_present(PROBLEMS, arguments.only),
        lambda problem: repeat(problem, repetitions, arguments.epsilon),
        table,
    )


if __name__ == "__main__":
    main()
