"""Figure 3 of Kohen and Sheffet: Subsample-Test-Reweigh with private SGD.

Eight dimensions; the target has standard deviation 0.07 in two of them and the source 0.1; the
true ellipse holds 40 % of the target. epsilon = 0.5, delta = 1e-4, alpha = 0.08, kappa = alpha /
(4 (chi2 + 1)). Panels: error on the target, number of rounds, error along the run. A run is
accepted at an error of 2 alpha; for the last panel it goes on through all its rounds.

"ours" has n = 10**6 records and their true guarantee: 20 rounds of 100 steps on 1,000 draws each,
with exact noise calibrated for all of them; squares are standardized by public numbers; every agent
answers with epsilon = 0.5; weights follow errors, eta = 3 alpha / 2. "as printed" is Algorithm 4
with the paper's noise, sigma**2 = 20 L**2 on single draws, its steps (50 million a round, `--full`
for 75 and 100 million), eta = alpha / 8 and losses scaled by LD, on 10**7 records instead of
324,700,000 and for 20 rounds instead of 1,000. Its loss has no margin; ours is the hinge loss in a
ball so large that its margin of 1 is none. The paper's L = 0.1 bounds a row of squares and of the
constant 0.05 for the threshold; it does not say its own constant. How private that is is printed.

Rivals: the constant hypothesis; private and other SGD on the source alone; the same with an L1
penalty, of which the paper says that it "converged in a single iteration".

Run `python benches/papers/kohen_sheffet_fig3.py`: ten repetitions of ours in a minute, then one of
the printed run, whose cost is measured and printed before it begins (`--skip-printed` leaves it
out); `--quick` for a small instance in seconds.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev
from typing import Any

import numpy as np
from _ellipses import Bits, Ellipses, Floats, Watched, coordinates, error
from _report import accept_seeds, make_parser, write_files
from matplotlib.figure import Figure

from hdp_fast import accounting, local
from hdp_fast.learners import PrivateSGD
from hdp_fast.transfer import SubsampleTestReweigh
from hdp_fast.weights import DenseWeights

EPSILON, DELTA, ALPHA = 0.5, 1e-4, 0.08
PAPER: dict[str, Any] = {"n": 324_700_000, "rounds": 1_000}
PAPER["steps"] = [50_000_000, 75_000_000, 100_000_000]
SQUARES = Ellipses(d=8, k=2, source=0.1, target=0.07, inside=0.4, constant=0.05)
STANDARDIZED = replace(
    SQUARES, unit=SQUARES.source**2, shift=1.0, stretch=math.sqrt(2), constant=1.0
)
KAPPA = ALPHA / (4 * SQUARES.chi2_plus_1)
Sample = tuple[Floats, Bits]


@dataclass(frozen=True)
class Setting:
    """Sizes of both designs."""

    n: int = 1_000_000
    rounds: int = 20
    steps: int = 100
    batch_size: int = 1_000
    printed_n: int = 10_000_000
    printed_steps: int = 50_000_000
    test: int = 200_000

    @property
    def learner(self) -> Watched:
        """Ours, without noise; the bounds are public, like the scaling of the squares."""
        shape = {"steps": self.steps, "batch_size": self.batch_size, "delta": DELTA}
        return Watched(loss="hinge", radius=10, norm_bound=3, epsilon=math.inf, **shape)

    @property
    def printed(self) -> Watched:
        """Algorithm 3 with the noise of Algorithm 4."""
        return Watched(
            loss="hinge",
            steps=self.printed_steps,
            radius=1e5,
            norm_bound=0.1,
            noise_multiplier=math.sqrt(20),
            numerics="idealized",
            errors=False,
            delta=DELTA,
        )


def main() -> None:
    """Run what was asked for, print tables, write the figure and its numbers."""
    arguments = parsed()
    accept_seeds()
    setting, repetitions = Setting(), arguments.repetitions
    if arguments.quick:
        setting = Setting(50_000, 3, 20, 500, 50_000, 200_000, 20_000)
        repetitions = min(repetitions, 2)
    report = {"setting": asdict(setting), "kappa": KAPPA, "paper": PAPER}
    report["guarantees"] = show_guarantees(setting)
    runs = report["ours"] = [run(setting, seed) for seed in range(repetitions)]
    show(setting, runs)
    printed = report["printed"] = []
    sizes = PAPER["steps"] if arguments.full else [setting.printed_steps]
    for steps in () if arguments.skip_printed else sizes:
        printed.append(printed_run(replace(setting, printed_steps=steps)))
    print(write_files(arguments.output, "kohen_sheffet_fig3", report, figure(runs, printed)))


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, quick="a small instance", repetitions=10)
    parser.add_argument("--full", action="store_true", help="all of the paper's step counts")
    parser.add_argument("--skip-printed", action="store_true", help="our design only")
    return parser.parse_args()


def show_guarantees(setting: Setting) -> list[dict[str, Any]]:
    """How private each design is, and how many records it needs, beside what the paper says."""
    printed, rounds, n = setting.printed, PAPER["rounds"], PAPER["n"]
    paper = replace(printed, steps=PAPER["steps"][0])
    designs = (
        ("paper", paper, n, rounds),
        ("as printed, here", printed, setting.printed_n, setting.rounds),
        ("ours", calibrate(setting), setting.n, setting.rounds),
        ("for discrete noise", calibrate_discrete(setting), setting.n, setting.rounds),
    )
    titles = ("n", "rounds", "steps", "batch", "noise / L", "epsilon")
    print(
        f"{'':<18}"
        + "".join(f"{title:>13}" for title in titles)
        + f"{'n needed':>14}{'discrete':>14}"
    )
    rows = []
    for title, learner, held, times in designs:
        needed = [
            learner.records_needed(epsilon=EPSILON, kappa=KAPPA, rounds=times),
            records_discrete(learner, times),
        ]
        row = [
            held,
            times,
            learner.steps,
            learner.batch_size,
            learner.noise_multiplier,
            learner.epsilon_for(n=held, kappa=KAPPA, rounds=times),
            *needed,
        ]
        rows.append({"design": title, "values": row})
        whole = "".join(f"{value:>13,}" for value in row[:4])
        noise = "".join(f"{value:>13.4g}" for value in row[4:6])
        print(f"{title:<18}{whole}{noise}" + "".join(f"{value:>14,}" for value in needed))
    print(
        f"epsilon at delta = {DELTA}; n for epsilon = {EPSILON}. The paper says {EPSILON} and, by"
    )
    print(f"its formula, n = {formula(paper, rounds):,}. Discrete Gaussian noise of the same size,")
    print("which zCDP accounts for, needs the records of the last column.\n")
    return rows


def records_discrete(learner: PrivateSGD, rounds: int) -> int:
    """The records that a run with discrete Gaussian noise of this size needs."""
    rate = accounting.largest_rate(
        accounting.ZCDP(2 / learner.noise_multiplier**2),
        draws=learner.batch_size,
        rounds=rounds * learner.steps,
        epsilon=EPSILON,
        delta=DELTA,
    )
    return math.ceil(1 / (KAPPA * rate))


def calibrate_discrete(setting: Setting) -> PrivateSGD:
    """Ours, with the noise that a discrete Gaussian would need."""
    learner = setting.learner
    noise = accounting.smallest_noise(
        lambda s: accounting.Subsampled(
            accounting.ZCDP(2 / s**2), draws=learner.batch_size, rate=1 / (KAPPA * setting.n)
        ),
        rounds=setting.rounds * learner.steps,
        epsilon=EPSILON,
        delta=DELTA,
    )
    return replace(learner, epsilon=None, noise_multiplier=noise)


def formula(learner: PrivateSGD, rounds: int) -> int:
    """The records of Algorithm 4."""
    printed = 52 * learner.steps * learner.batch_size * rounds / (8 * KAPPA**2 * EPSILON)
    return math.ceil(math.sqrt(printed * math.log(printed)))


def calibrate(setting: Setting) -> PrivateSGD:
    return setting.learner.calibrate(
        epsilon=EPSILON, delta=DELTA, n=setting.n, kappa=KAPPA, rounds=setting.rounds
    )


def run(setting: Setting, seed: int) -> dict[str, Any]:
    """Ours, until it is accepted and through all rounds, and its rivals on the same sample."""
    rng = np.random.default_rng(seed)
    source = STANDARDIZED.sample(rng, setting.n, target=False)
    test = STANDARDIZED.sample(rng, setting.test, target=True)
    begun = time.perf_counter()
    accepted, learner = fit(setting, source, rng, schedule="every")
    seconds = time.perf_counter() - begun
    _, whole = fit(setting, source, rng, schedule="final")
    return {
        "error": error(accepted.result_, *test),
        "agents' word": accepted.result_.tested.value,
        "rounds": len(learner.found),
        "agents": accepted.plan_.agents_per_test * len(learner.found),
        "seconds": seconds,
        "errors": [round(error(outcome, *test), 4) for outcome in whole.found],
        "constant": float(min(test[1].mean(), 1 - test[1].mean())),
        **alone(setting, source, test),
    }


def fit(
    setting: Setting, source: Sample, rng: np.random.Generator, schedule: Any
) -> tuple[SubsampleTestReweigh, Watched]:
    # SubsampleTestReweigh accepts at three times its alpha.
    learner = setting.learner
    model = SubsampleTestReweigh(
        learner,
        alpha=2 * ALPHA / 3,
        epsilon=EPSILON,
        delta=DELTA,
        kappa=KAPPA,
        eta=1.5 * ALPHA,
        rounds=setting.rounds,
        schedule=schedule,
    )
    needed = model.plan(setting.n, agents_epsilon=EPSILON).N
    X, y = STANDARDIZED.sample(rng, needed, target=True)
    model.fit(*source, local.Agents(X, y, epsilon=EPSILON), random_state=rng)
    return model, learner


def alone(setting: Setting, source: Sample, test: Sample) -> dict[str, Any]:
    """Descents on the source, without rounds."""
    ours = setting.learner
    private = replace(ours, steps=400).calibrate(epsilon=EPSILON, n=setting.n)
    long = replace(ours, steps=1_000)
    plain, lasso = (
        outcome.learn(*source, random_state=0) for outcome in (long, replace(long, l1=0.01))
    )
    return {
        "source, private": error(private.learn(*source, random_state=0), *test),
        "source": error(plain, *test),
        "source, L1": error(lasso, *test),
        "coordinates": coordinates(plain, SQUARES.k),
        "coordinates, L1": coordinates(lasso, SQUARES.k),
        "others, L1": float(np.abs(lasso.weights[SQUARES.k : -1]).max()),
    }


def printed_run(setting: Setting) -> dict[str, Any]:
    """The paper's parameters, as far as they fit; its cost first."""
    rng = np.random.default_rng(0)
    source = SQUARES.sample(rng, setting.printed_n, target=False)
    test = SQUARES.sample(rng, setting.test, target=True)
    learner, weights = setting.printed, DenseWeights(setting.printed_n, KAPPA, ALPHA / 8)
    prepared = learner.prepare(source[0])

    def seconds_of(share: float) -> float:
        begun = time.perf_counter()
        part = replace(learner, steps=max(1, int(share * learner.steps)))
        part.learn_weighted(prepared, source[1], weights)
        return time.perf_counter() - begun

    # A round has a cost of its own, beside that of its steps.
    fixed = seconds_of(0)
    cost = setting.rounds * (fixed + 20 * (seconds_of(0.05) - fixed))
    print(
        f"As printed: {setting.rounds} rounds of {learner.steps:,} steps on {setting.printed_n:,}"
    )
    print(f"records: about {cost:.0f} s")
    begun, errors = time.perf_counter(), []
    for _ in range(setting.rounds):
        model = learner.learn_weighted(prepared, source[1], weights)
        errors.append(round(error(model, *test), 4))
        weights.update(model.losses(prepared, source[1]))
    seconds = time.perf_counter() - begun
    below = [number for number, outcome in enumerate(errors, 1) if outcome <= 2 * ALPHA]
    first = f"first at most {2 * ALPHA} in round {below[0]}" if below else f"never {2 * ALPHA}"
    print(f"error {errors[0]:.4f} in the first round, {errors[-1]:.4f} in the last, {first};")
    print(f"{seconds:.0f} s = {setting.rounds * learner.steps / seconds / 1e6:.1f} M steps/s\n")
    return {"steps": learner.steps, "errors": errors, "seconds": seconds, "predicted": cost}


def show(setting: Setting, runs: list[dict[str, Any]]) -> None:
    """Means and deviations."""

    def line(title: str, key: str, digits: int = 4) -> None:
        values = [outcome[key] for outcome in runs]
        print(f"{title:<44}{fmean(values):>12,.{digits}f}{pstdev(values):>12,.{digits}f}")

    print(f"Ours, n = {setting.n:,}, {len(runs)} repetitions{'mean':>16}{'deviation':>12}")
    line("error on the target, accepted at 0.16", "error")
    line("the agents' word on it", "agents' word")
    line("rounds until accepted", "rounds", 1)
    line("agents asked", "agents", 0)
    line("seconds", "seconds", 1)
    for name, at in (("first", 0), ("last", -1)):
        ends = [outcome["errors"][at] for outcome in runs]
        title = f"error in the {name} round, never stopped"
        print(f"{title:<44}{fmean(ends):>12.4f}{pstdev(ends):>12.4f}")
    line("constant hypothesis", "constant")
    line("private SGD on the source alone, epsilon 0.5", "source, private")
    line("SGD on the source alone, not private", "source")
    line("the same with L1 penalty 0.01", "source, L1")
    found, with_l1 = (
        fmean(outcome[key] for outcome in runs) for key in ("coordinates", "coordinates, L1")
    )
    largest = max(outcome["others, L1"] for outcome in runs)
    print(
        f"Of {SQUARES.k} true coordinates {found:.1f} have the largest weights, {with_l1:.1f} with"
    )
    print(f"L1, which leaves the others at most {largest:.2g}.\n")


def figure(runs: list[dict[str, Any]], printed: list[dict[str, Any]]) -> Figure:
    """The paper's three panels."""
    drawn = Figure(figsize=(15, 4.2), layout="constrained")
    loss, count, along = drawn.subplots(1, 3)
    keys = {"error": "ours", "constant": "constant"}
    keys |= {"source, private": "source,\nprivate", "source": "source", "source, L1": "source,\nL1"}
    loss.boxplot([[outcome[key] for outcome in runs] for key in keys], tick_labels=[*keys.values()])
    loss.axhline(2 * ALPHA, color="black", ls="--", label="2 alpha: the criterion")
    count.hist([outcome["rounds"] for outcome in runs], bins=np.arange(0.5, 21.5), label="ours")
    for outcome in runs:
        along.plot(
            range(1, 1 + len(outcome["errors"])), outcome["errors"], color="tab:blue", lw=0.6
        )
    for outcome in printed:
        rounds = range(1, 1 + len(outcome["errors"]))
        title = f"as printed, {outcome['steps'] // 1_000_000} million steps"
        along.plot(rounds, outcome["errors"], lw=2, label=title)
    along.plot([], [], color="tab:blue", lw=0.6, label="ours, n = 1,000,000, each run")
    along.axhline(2 * ALPHA, color="black", ls="--", label="2 alpha: the criterion")
    for axes, title in zip(
        (loss, count, along),
        ("(a) error on T", "(b) rounds until accepted", "(c) error on T, never stopped"),
        strict=True,
    ):
        axes.set_title(title)
        axes.legend(fontsize="small")
        axes.set_ylim(bottom=0)
    for axes in (count, along):
        axes.set_xlabel("rounds")
    return drawn


if __name__ == "__main__":
    main()
