"""The same four tasks under four kinds of trust, in people needed.

alpha = beta = .05: an error of at most .05, but with probability .05. epsilon = 1 for everybody and
delta = 1e-6 where there is one. All people are drawn from one population.

central    a curator has all records
shuffled   everybody randomizes, and a shuffler mixes the reports to each question; epsilon holds
           against everybody else than the shuffler
hybrid     a panel tells a curator, and the others randomize (people of the panel + agents)
local      everybody randomizes, and trusts no one

mean       of numbers in [0, 1]. Hybrid: a panel of half the records that the curator alone needs,
           and the agents whose reports transfer.combine needs beside them
table      the shares of ten categories, all at once. Hybrid: as for the mean
parity     a sum over GF(2) of some of 32 uniform bits; error of the hypothesis. Central:
           parity.plan; hybrid: parity.plan_transfer, whose agents measure the error. Local:
           local.votes_needed on all 2**32 parities. The shuffled plan is the same votes, the people
           of each parity mixed by themselves. No algorithm of statistical queries, and so no local
           one, learns a parity with less than a power of 2 that grows with the bits (Blum et al.
           1994; Kasiviswanathan et al. 2011)
model      measured, not proved: logistic regression on 8 columns of a made-up table, log loss at
           most .05 above the best model's. People are the least power of 2 with which 19 runs of
           20, or all of fewer, reach it. Central: PrivateSGD; local: learn_by_descent; shuffled:
           the same, each step a mix of its own; hybrid: PrivateSGD on the panel, whose error agents
           measure (transfer.agents_to_certify)

Run `python benches/papers/four_trusts.py`: half a minute. `--write` puts the table into
docs/start/four_trusts.md; `--planned` leaves out what is measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _report import accept_seeds, make_parser
from numpy.typing import NDArray

from hdp_fast import accounting, learners, local, parity, transfer
from hdp_fast.statistics.release_noise import KnownRange, Sensitivity, calibrate
from hdp_fast.transfer.combination import Part, bound_error, part_of_agents, part_of_panel, weigh

ALPHA, BETA, EPSILON, DELTA = 0.05, 0.05, 1.0, 1e-6
GOAL = {"alpha": ALPHA, "beta": BETA}
CATEGORIES, BITS, COLUMNS, RUNS = 10, 32, 8, 20
STEPS = 1 << 20
PAGE = Path(__file__).parents[2] / "docs" / "start" / "four_trusts.md"
BLOCK = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.DOTALL)
TRUSTS = ("central", "shuffled", "hybrid", "local")

Row = dict[str, int | tuple[int, int]]


def least(holds: Callable[[int], bool], start: int = 1) -> int:
    """The least number for which it holds, if it holds for all larger ones."""
    few, many = 0, start
    while not holds(many):
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if holds(middle) else (middle, many)
    return many


# Means and tables --------------------------------------------------------------------------------


def panel_of(n: int, k: int) -> Part:
    """How a released mean, or a share, of n records errs."""
    unit = STEPS if k == 1 else 1
    drawn = calibrate(Sensitivity(unit, unit**2) if k == 1 else Sensitivity(2, 2), EPSILON, DELTA)
    grid = 0.5 / STEPS if k == 1 else 0.0
    noise = drawn.describe(1 / unit / n, grid, KnownRange(n, 0.0, 1.0))
    return part_of_panel(noise, largest_variance(k))


def largest_variance(k: int) -> float:
    """The variance of bits, half 0 and half 1; the mean of those of k equal shares."""
    return 0.25 if k == 1 else (1 - 1 / k) / k


def plan_estimate(k: int, shuffle: bool) -> Row:
    """People for a mean (k = 1), or for the shares of k categories."""
    mixed = (_shuffled_mean() if k == 1 else _shuffled_table(k)) if shuffle else 0
    asked: Any = local.BinaryResponse(EPSILON, (0, 1)) if k == 1 else local.best_frequency(k, 1.0)
    odds = math.log(2 * k / BETA)
    central = least(lambda n: bound_error([panel_of(n, k)], [1.0], odds) <= ALPHA)
    panel = panel_of(central // 2, k)
    answer = asked.variance(1) + largest_variance(k)

    def is_enough_beside(count: int) -> bool:
        agents = part_of_agents(asked, count, answer, 1.0)
        weight = weigh(panel.variance, agents.variance)
        return bound_error([panel, agents], [weight, 1 - weight], odds) <= ALPHA

    return {
        "central": central,
        "shuffled": mixed,
        "hybrid": (central // 2, least(is_enough_beside)),
        "local": asked.agents_needed(**GOAL),
    }


def _shuffled_mean() -> int:
    return local.agents_needed(**GOAL, epsilon=EPSILON, shuffled=DELTA)


def _shuffled_table(k: int) -> int:
    def is_enough(people: int) -> bool:
        each = accounting.largest_local_epsilon(people, epsilon=EPSILON, delta=DELTA, categories=k)
        return local.KaryResponse(k, each).agents_needed(**GOAL) <= people

    return least(is_enough, 1_024)


# Parities ----------------------------------------------------------------------------------------


def plan_parity(d: int, shuffle: bool) -> Row:
    """People for a parity of d bits."""
    both = parity.plan_transfer(d, **GOAL, epsilon=EPSILON, agents_epsilon=EPSILON)
    log_odds = math.log((2**d - 1) / BETA)

    def is_enough(people: int) -> bool:
        each = accounting.largest_local_epsilon(people, epsilon=EPSILON, delta=DELTA, categories=2)
        return people >= log_odds / (ALPHA * math.tanh(each / 2)) ** 2

    return {
        "central": parity.plan(d, **GOAL, epsilon=EPSILON).n,
        "shuffled": 2**d * least(is_enough, 1_024) if shuffle else 0,
        "hybrid": (both.curator.n, both.agents),
        "local": local.votes_needed(2**d, **GOAL, epsilon=EPSILON),
    }


# A linear model ----------------------------------------------------------------------------------

Table = tuple[NDArray[np.float64], NDArray[np.int64]]


def draw(n: int, rng: np.random.Generator) -> Table:
    """Rows on the unit sphere, and labels by a logistic model."""
    X = rng.standard_normal((n, COLUMNS))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    weights = np.zeros(COLUMNS)
    weights[:3] = 6.0, -4.0, 3.0
    return X, (rng.random(n) < 1 / (1 + np.exp(-X @ weights))).astype(np.int64)


def log_loss(weights: NDArray[np.float64], table: Table) -> float:
    """Mean log loss of a logistic model."""
    X, y = table
    return float(np.logaddexp(0, -(2 * y - 1) * (X @ weights)).mean())


@cache
def judges() -> tuple[Table, float]:
    """People on whom models are measured, and the loss of the true one, which is the best."""
    table = draw(50_000, np.random.default_rng(1))
    best = np.zeros(COLUMNS)
    best[:3] = 6.0, -4.0, 3.0
    return table, log_loss(best, table)


def fit_central(n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Weights that n records teach."""
    sgd = learners.PrivateSGD(epsilon=EPSILON, delta=DELTA, loss="logistic")
    return sgd.learn(*draw(n, rng), random_state=rng).weights


def fit_local(n: int, rng: np.random.Generator, *, shuffled: bool) -> NDArray[np.float64]:
    """Weights that n agents teach in 32 steps, a mix each."""
    steps = 32
    each = EPSILON
    if shuffled:
        goal = {"epsilon": EPSILON, "delta": DELTA, "categories": 2}
        each = accounting.largest_local_epsilon(n // steps, **goal)
    sgd = learners.PrivateSGD(
        epsilon=math.inf, loss="logistic", steps=steps, batch_size=n // steps, radius=10.0
    )
    agents = local.Agents(*draw(n, rng), epsilon=each)
    return local.learn_by_descent(sgd, agents, random_state=rng).weights


def measure(fit: Callable[[int, np.random.Generator], NDArray[np.float64]], start: int) -> int:
    """The least power of 2 with which 19 of 20 runs are within alpha."""
    table, best = judges()
    n = start
    while True:
        rng, failed = np.random.default_rng(n), 0
        for _ in range(RUNS):
            failed += log_loss(fit(n, rng), table) - best > ALPHA
            if failed > 1:
                break
        if failed <= 1:
            return n
        n *= 2


def measure_model() -> Row:
    """People for a linear model, as measured."""
    records = measure(fit_central, 256)
    return {
        "central": records,
        "shuffled": measure(lambda n, rng: fit_local(n, rng, shuffled=True), 4_096),
        "hybrid": (records, transfer.agents_to_certify(ALPHA, epsilon=EPSILON, beta=BETA)),
        "local": measure(lambda n, rng: fit_local(n, rng, shuffled=False), 4_096),
    }


# The table ---------------------------------------------------------------------------------------


def plan_all(*, shuffle: bool = True) -> dict[str, Row]:
    """What plans say, of three tasks; without `shuffle`, which takes seconds, 0 stands there."""
    return {
        "a mean in [0, 1]": plan_estimate(1, shuffle),
        f"shares of {CATEGORIES} categories": plan_estimate(CATEGORIES, shuffle),
        f"a parity of {BITS} bits": plan_parity(BITS, shuffle),
    }


def show(people: int | tuple[int, int]) -> str:
    """A number of people, or of a panel and of agents."""
    if isinstance(people, tuple):
        return " + ".join(map(show, people))
    return f"{people:,}" if people < 10**9 else f"{people:.1e}".replace("+", "")


def print_rows(rows: dict[str, Row]) -> str:
    """The table as Markdown."""
    head = f"| task | {' | '.join(TRUSTS)} |\n| --- | {' | '.join(['---:'] * len(TRUSTS))} |\n"
    return head + "".join(
        f"| {task} | {' | '.join(show(row[trust]) for trust in TRUSTS)} |\n"
        for task, row in rows.items()
    )


def main() -> None:
    """Print the table, or write it into its page."""
    parser = make_parser(__doc__ or "", writing=False)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--planned", action="store_true", help="leave out what is measured")
    arguments = parser.parse_args()
    accept_seeds()
    rows = plan_all()
    if not arguments.planned:
        rows[f"a logistic model of {COLUMNS} columns, measured"] = measure_model()
    table = print_rows(rows)
    print(table)
    if arguments.write:
        text = PAGE.read_text()
        PAGE.write_text(BLOCK.sub(lambda block: block[1] + table + block[2], text))


if __name__ == "__main__":
    main()
