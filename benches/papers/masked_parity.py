"""MASKED-PARITY: what statistical queries learn in two rounds, and in no single one.

Kasiviswanathan et al. 2011, Section 5.3. Every learner in one round asks d queries that tell r, and
some whose answers depend on the mask a, chosen before it knows r. The oracle of Section 5.3.2
leaves a
out of every answer that may do without: whoever learns nothing of a guesses it, and errs on half of
all examples or none. By Theorem 5.16 any such learner errs on 1/4 or more with probability at least
1/2 - t / 2**(d / 3 + 2), over a uniform concept, if it asks t queries of tolerance at least
2**(-d / 3); for queries in [0, 1] in place of -1 and 1, of half that. All ask with just that.

weak           no query about a; labels with error exactly 1/4 instead of a guess
guess          no query about a
random         64 parities of x, drawn uniformly
low weight     all parities of at most two bits
prior          64 parities, each bit in them with probability 1/4
bent           64 parities plus a bent function of the first k bits, which meets as many parities of
               those bits as the tolerance lets it: the best there is, but for rounding of k
brute force    all 2**d parities, shown up to 16 bits

Probabilities are exact: up to 16 bits from the products of each query with all parities, a Walsh
transform, beyond from a formula, which must agree where both are known. At up to 8 bits twenty
concepts answer every query, too, and the learner must err on those that the products say.

The adaptive learner asks d + 1 queries: of an adversary who shifts every answer by its tolerance
towards the threshold, up to 8 bits for all concepts; and of agents, epsilon = 1 and beta = .05, as
many as the plan says and one answer each.

Run `python benches/papers/masked_parity.py`: two minutes. `--quick` for up to 8 bits.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from _report import accept_seeds, make_parser, write_files
from matplotlib.figure import Figure
from numpy.typing import NDArray

from hdp_fast import local
from hdp_fast.local import EvasiveOracle, MaskedParity

SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
# Up to this concepts are asked, and up to the next all products are known.
LISTED, TRANSFORMED = 8, 16
ASKED = 10
# Beyond this nothing changes but the size of the masks.
MOST_IN_ONE_ROUND = 256
EPSILON, BETA = 1.0, 0.05
TRIES = 64
STRATEGIES = ("weak", "guess", "random", "low weight", "prior", "bent", "brute force")
# Runs of the agents for each d; the last takes half a minute on two cores.
RUNS = {2: 200, 4: 200, 8: 200, 16: 100, 32: 100, 64: 50, 128: 20, 256: 10, 512: 3, 1024: 1}

Bits = NDArray[np.uint8]
# Boolean functions of x, given as rows of 0 and 1.
Function = Callable[[Bits], Bits]


@dataclass(frozen=True)
class Strategy:
    """What a learner in one round asks about a.

    Attributes:
        name: one of STRATEGIES.
        d: bits of x.
        masks: parities that its functions are, but for the bent part, (t, d).
        bent: k, the number of first bits that the bent part takes.
    """

    name: str
    d: int
    masks: Bits
    bent: int = 0

    @property
    def functions(self) -> Iterator[Function]:
        """Each compares the labels where b = 0 with one of these."""
        return (self._function(mask) for mask in self.masks)

    def _function(self, mask: Bits) -> Function:
        k = self.bent

        def values(x: Bits) -> Bits:
            inner = (x[:, :k:2] & x[:, 1:k:2]).sum(axis=1)
            return ((inner + x @ mask) % 2).astype(np.uint8)

        return values

    def share(self) -> float:
        """Of all r, those of which some answer must tell a: by formula."""
        if 2 ** (-self.bent / 2) / 4 < tolerance(self.d):
            return 0.0
        met = {mask[self.bent :].tobytes() for mask in self.masks}
        return math.ldexp(len(met), self.bent - self.d)

    def revealing(self) -> NDArray[np.bool_]:
        """Whether some answer must tell a, for each r, from all products."""
        revealing = np.zeros(1 << self.d, bool)
        x = rows_of(self.d)
        for function in self.functions:
            revealing |= abs(walsh(1 - 2.0 * function(x))) / len(x) / 4 >= tolerance(self.d)
        return revealing


def tolerance(d: int) -> float:
    """The smallest that the theorem covers, for queries in [0, 1]."""
    return 2.0 ** (-d / 3) / 2


def bound(d: int, queries: float) -> float:
    """Least probability of an error of 1/4 or more, by Theorem 5.16."""
    return max(0.0, 0.5 - queries / 2.0 ** (d / 3 + 2))


def strategies(d: int) -> Iterator[Strategy]:
    """What is asked; brute force, which finds a always, up to 8 bits."""
    rng = np.random.default_rng(d)
    tries = min(TRIES, 2**d)
    none = np.zeros((0, d), np.uint8)
    yield from (Strategy(name, d, none) for name in ("weak", "guess"))
    yield Strategy("random", d, distinct(lambda: rng.integers(0, 2, d), tries))
    pairs = [places for size in (0, 1, 2) for places in itertools.combinations(range(d), size)]
    low = np.zeros((len(pairs), d), np.uint8)
    for row, places in zip(low, pairs, strict=True):
        row[list(places)] = 1
    yield Strategy("low weight", d, low)
    yield Strategy("prior", d, distinct(lambda: rng.random(d) < 0.25, tries))
    bent = max(0, 2 * ((d - 3) // 3))
    later = distinct(lambda: rng.integers(0, 2, d - bent), min(TRIES, 2 ** (d - bent)))
    yield Strategy("bent", d, np.pad(later, ((0, 0), (bent, 0))), bent)
    if d <= LISTED:
        yield Strategy("brute force", d, rows_of(d))


def distinct(draw: Callable[[], Any], count: int) -> Bits:
    """So many different masks."""
    found: dict[bytes, Bits] = {}
    while len(found) < count:
        mask = np.asarray(draw(), np.uint8)
        found[mask.tobytes()] = mask
    return np.array([*found.values()])


def rows_of(d: int) -> Bits:
    """All x, in the order of the numbers that their bits make."""
    return (np.arange(1 << d)[:, None] >> np.arange(d) & 1).astype(np.uint8)


def walsh(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Products of the values with all parities, in the order of rows_of."""
    step = 1
    while step < len(values):
        low, high = np.moveaxis(values.reshape(-1, 2, step), 1, 0)
        values = np.stack([low + high, low - high], axis=1).reshape(-1)
        step *= 2
    return values


def main() -> None:
    """Run what was asked for, print a table, write the figure and its numbers."""
    accept_seeds()
    arguments = parsed()
    sizes = [d for d in SIZES if d <= (LISTED if arguments.quick else arguments.d)]
    begun = time.perf_counter()
    rounds = [row for d in sizes if d <= MOST_IN_ONE_ROUND for row in one_round(d)]
    show_rounds(rounds)
    adaptive = [exactly_learned(d) for d in sizes if d <= (4 if arguments.quick else LISTED)]
    agents = []
    for d in sizes:
        agents.append(from_agents(d, 5 if arguments.quick else RUNS[d]))
        show_agents(agents[-1], first=d == sizes[0])
    concepts, wrong = (sum(row[key] for row in adaptive) for key in ("concepts", "wrong"))
    print(f"two rounds, all {concepts} concepts of at most 8 bits, an adversary: {wrong} wrong")
    print(f"{time.perf_counter() - begun:.0f} s in all")
    report = {"epsilon": EPSILON, "beta": BETA, "one round": rounds}
    report |= {"adaptive": adaptive, "agents": agents}
    print(write_files(arguments.output, "masked_parity", report, figure(rounds, agents)))


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, quick="up to 8 bits, five runs of agents")
    parser.add_argument("--d", type=int, default=SIZES[-1], help="bits at most")
    return parser.parse_args()


def one_round(d: int) -> Iterator[dict[str, Any]]:
    """For each strategy, the probability of an error of 1/4 or more."""
    for each in strategies(d):
        share = each.share()
        if d <= TRANSFORMED:
            revealing = each.revealing()
            assert math.isclose(share, revealing.mean()), each.name
            if d <= LISTED:
                check(each, revealing)
        failed = 1.0 if each.name == "weak" else 0.5 - share / 2
        yield row_of(d, each.name, d + len(each.masks), failed)
    if LISTED < d <= TRANSFORMED:
        yield row_of(d, "brute force", d + 2**d, 0.0)


def row_of(d: int, name: str, queries: int, failed: float) -> dict[str, Any]:
    limit = bound(d, queries)
    assert failed >= limit, name
    return {"d": d, "strategy": name, "queries": queries, "failed": failed, "bound": limit}


def check(strategy: Strategy, revealing: NDArray[np.bool_]) -> None:
    """Ask concepts: the learner must err on those with a = 1 whose answers tell nothing of it."""
    X = local.masked_parity_domain(strategy.d)
    r = rows_of(strategy.d)
    for place in np.random.default_rng(0).choice(len(r), min(ASKED, len(r)), replace=False):
        for a in (0, 1):
            concept = MaskedParity(r[place], a)
            found = learned_in_one_round(strategy, EvasiveOracle(concept))
            quarters = 4 * (found.predict(X) != concept.predict(X)).mean()
            expected = 1 if strategy.name == "weak" else 2 * a * (not revealing[place])
            assert quarters == expected, (strategy.name, r[place], a)


def learned_in_one_round(strategy: Strategy, oracle: EvasiveOracle) -> Any:
    """All queries are asked before any answer is read; a is read off the one that tells most."""
    d, tau = strategy.d, tolerance(strategy.d)
    weak = local.learn_masked_parity_weakly(oracle, d).concept
    if strategy.name == "weak":
        return weak
    answers = [oracle.query(differs_from(d, function), tau) for function in strategy.functions]
    x = rows_of(d)
    parity = x @ weak.r % 2
    # What the label's sign is worth to each answer, now that r is known.
    agreeing = ((function(x) == parity).mean() for function in strategy.functions)
    worth = np.array([0.0, *(share - 0.5 for share in agreeing)])
    surplus = np.array([0.0, *(0.25 - answer for answer in answers)])
    most = abs(worth * surplus).argmax()
    return MaskedParity(weak.r, int(worth[most] * surplus[most] < 0))


def differs_from(d: int, function: Function) -> Callable[[Bits, Bits], NDArray[np.bool_]]:
    """A query: whether b = 0 and the label is not this function of x."""

    def g(X: Bits, y: Bits) -> NDArray[np.bool_]:
        return (X[:, -1] == 0) & (y != function(X[:, :d]))

    return g


def exactly_learned(d: int) -> dict[str, Any]:
    """How many concepts the adaptive learner gets wrong from the worst answers allowed."""

    def towards(mean: float, tau: float, g: object) -> float:
        threshold = 1 / 4 if tau == 1 / 5 else 1 / (4 * d)
        return tau if mean < threshold else -tau

    X = local.masked_parity_domain(d)
    wrong = 0
    for r in rows_of(d):
        for a in (0, 1):
            concept = MaskedParity(r, a)
            oracle = local.ExactOracle(X, concept.predict(X), error=towards)
            wrong += local.learn_masked_parity(oracle, d).concept != concept
    return {"d": d, "concepts": 2 ** (d + 1), "wrong": wrong}


def from_agents(d: int, runs: int) -> dict[str, Any]:
    """How often agents, as many as planned, teach the concept exactly."""
    needs = local.masked_parity_agents(d, beta=BETA, epsilon=EPSILON)
    size, exact, begun = needs.first + needs.second, 0, time.perf_counter()
    for seed in range(runs):
        rng = np.random.default_rng([seed, d])
        concept = MaskedParity(rng.integers(0, 2, d), int(rng.integers(2)))
        agents = local.MaskedParityAgents(concept, size, epsilon=EPSILON, random_state=rng)
        exact += local.learn_masked_parity(agents, d, beta=BETA).concept == concept
    seconds = (time.perf_counter() - begun) / runs
    row = {"d": d, "agents": size, "groups": needs.groups, "runs": runs}
    return {**row, "exact": exact, "seconds": seconds}


def show_rounds(rows: list[dict[str, Any]]) -> None:
    """Queries, and probabilities of an error of 1/4 or more."""
    print("one round: queries t, and the probability of an error of 1/4 or more")
    least = f"bound, d + {TRIES}"
    print(f"{'d':>5}" + "".join(f"{name:>19}" for name in (*STRATEGIES, least)))
    for d, some in itertools.groupby(rows, key=lambda row: row["d"]):
        found = {row["strategy"]: row for row in some}
        cells = (cell(found.get(name)) for name in STRATEGIES)
        print(f"{d:>5}" + "".join(cells) + f"{bound(d, d + TRIES):>19.4f}")


def cell(row: dict[str, Any] | None) -> str:
    return f"{row['queries']:>11,}{row['failed']:>8.4f}" if row else f"{'-':>19}"


def show_agents(row: dict[str, Any], *, first: bool) -> None:
    """Agents needed, and what they taught."""
    if first:
        print(f"\ntwo rounds, agents with epsilon = {EPSILON:g}, beta = {BETA:g}")
        titles = ("agents", "d groups", "exact in", "of runs", "seconds a run")
        print(f"{'d':>5}" + "".join(f"{title:>16}" for title in titles))
    counts = "".join(f"{row[key]:>16,}" for key in ("agents", "groups", "exact", "runs"))
    print(f"{row['d']:>5}{counts}{row['seconds']:>16.3f}", flush=True)


def figure(rounds: list[dict[str, Any]], agents: list[dict[str, Any]]) -> Figure:
    """Failure in one round, queries that avoid it, agents for two rounds."""
    drawn = Figure(figsize=(15, 4.2), layout="constrained")
    failing, queries, needed = drawn.subplots(1, 3)
    sizes = sorted({row["d"] for row in rounds})
    for name in STRATEGIES:
        some = [row for row in rounds if row["strategy"] == name]
        failing.plot([row["d"] for row in some], [row["failed"] for row in some], ".-", label=name)
    limits = [bound(d, d + TRIES) for d in sizes]
    failing.plot(sizes, limits, "k--", label=f"bound, t = d + {TRIES}")
    failing.plot(sizes, [0] * len(sizes), "k-", label="two rounds")
    failing.set_ylabel("probability of an error of 1/4 or more")
    half = {
        "parities": [d - 1 for d in sizes],
        "bent functions": [d - max(0, 2 * ((d - 3) // 3)) - 1 for d in sizes],
        "one round, at least": [d / 3 + 1 for d in sizes],
        "two rounds": [math.log2(d + 1) for d in sizes],
    }
    for name, logarithms in half.items():
        queries.plot(sizes, logarithms, ".-", label=name)
    queries.set_ylabel("log2 of the queries that find a for half of all r")
    queries.set_yscale("log")
    asked = [row["d"] for row in agents]
    for key, label in (("agents", "one message for all queries"), ("groups", "d groups")):
        needed.plot(asked, [row[key] for row in agents], ".-", label=label)
    needed.set_ylabel(f"agents, epsilon = {EPSILON:g}")
    needed.set_yscale("log")
    for axes in (failing, queries, needed):
        axes.set_xscale("log", base=2)
        axes.set_xlabel("d")
        axes.legend(fontsize="x-small")
    return drawn


if __name__ == "__main__":
    main()
