"""Exact oracle of the private PARITY mechanisms, and plain planners to check the compiled ones.

A record is a pair (x, y): x is a bit mask of d features, y its label 0 or 1. The output of a
mechanism is a hypothesis r, also a bit mask, that predicts parity(r & x), or BOT. Every law is a
sum over all subsamples in fractions.Fraction, so the privacy of a mechanism is a finite check here.
Costs are exponential: the instances must be tiny.

The relations are "replace_one" (one record replaced, n public) and "add_remove" (one record more or
less). The planners use floating point: they choose sample sizes, and no privacy depends on them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, lru_cache
from typing import Literal

import numpy as np

Record = tuple[int, int]
Neighbors = Literal["replace_one", "add_remove"]
Distribution = dict[int | None, Fraction]

BOT = None
RATE_BITS = 64
PAPER_BOTTOM = Fraction(1, 2)


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise ValueError(rule)


def _require_relation(neighbors: str) -> None:
    rule = f"neighbors must be 'replace_one' or 'add_remove', got {neighbors!r}"
    _require(neighbors in ("replace_one", "add_remove"), rule)


def _require_probabilities(**values: Fraction | float) -> None:
    for name, value in values.items():
        _require(0 <= value <= 1, f"{name} must lie in [0, 1], got {value}")


# ---------------------------------------------------------------------------------------------
# Exact output distributions


def affine_solutions(records: Sequence[Record], d: int) -> list[int]:
    """All hypotheses that agree with every record.

    Args: records, any number of (x, y) with x < `2**d`; d, the number of features.
    Raises: ValueError if a record is outside the domain.
    Cost: `2**d` times the number of records.
    Source: Kasiviswanathan et al., What Can We Learn Privately?, Section 4, step 3 of A.
    """
    for x, y in records:
        _require(0 <= x < 1 << d and y in (0, 1), f"record must be in range, got {(x, y)}, d={d}")
    return [r for r in range(1 << d) if all((r & x).bit_count() & 1 == y for x, y in records)]


@lru_cache(maxsize=1 << 16)
def _uniform_solution(records: tuple[Record, ...], d: int) -> tuple[tuple[int, ...], Fraction]:
    solutions = tuple(affine_solutions(records, d))
    return solutions, Fraction(1, max(1, len(solutions)))


def _hypotheses(d: int) -> Distribution:
    return dict.fromkeys([BOT, *range(1 << d)], Fraction(0))


def _subsamples(
    records: Sequence[Record], p: Fraction
) -> Iterator[tuple[tuple[Record, ...], Fraction]]:
    for size in range(len(records) + 1):
        weight = p**size * (1 - p) ** (len(records) - size)
        for sample in itertools.combinations(records, size):
            yield sample, weight


def distribution_base(records: Sequence[Record], d: int, p: Fraction, c: Fraction) -> Distribution:
    """Output distribution of the base learner A(c, p).

    With probability c, BOT. Otherwise each record enters the sample with probability p; BOT if
    the sample contradicts itself, else a hypothesis uniform among those that agree with it.

    Args: records, (x, y) pairs; d, features; p, sampling rate; c, probability of a free BOT.
    Guarantee: pure epsilon-DP iff worst_ratio(p, neighbors, c=c) <= exp(epsilon).
    Raises: ValueError if p or c is not a probability or a record is outside the domain.
    Cost: `2**n` (n + `2**d`) fraction operations.
    Source: Kasiviswanathan et al. 2011, Section 4, algorithm A (there c = 1/2, p = epsilon / 4).
    """
    _require_probabilities(p=p, c=c)
    distribution = _hypotheses(d)
    distribution[BOT] = Fraction(c)
    for sample, weight in _subsamples(records, p):
        solutions, share = _uniform_solution(sample, d)
        for output in solutions or (BOT,):
            distribution[output] += (1 - c) * weight * share
    return distribution


def distribution_loop(records: Sequence[Record], d: int, p: Fraction, g: Fraction) -> Distribution:
    """The output law of LOOP, which tries A(0, p) on the same data until it stops or succeeds.

    Before each try it stops with probability g. A try succeeds if its sample does not contradict
    itself. The tries are independent, so the output is the law of one try, with BOT replaced by the
    stop, conditioned on its ending the loop.

    Args:
        records: Pairs (x, y).
        d: Number of features.
        p: Sampling rate.
        g: Probability of stopping, above 0.

    Raises:
        ValueError: g = 0, p or g is no probability, or a record is outside the domain.

    Guarantee:
        Pure epsilon-DP if worst_ratio(p, neighbors, g=g) <= exp(epsilon).

    Cost:
        That of distribution_base.

    Source:
        Extends Kasiviswanathan et al. 2011, Section 4 (their amplified A* without a test set).
    """
    _require_probabilities(p=p, g=g)
    _require(g > 0, "g must be positive: the loop need not end otherwise")
    one_try = distribution_base(records, d, p, Fraction(0))
    ends = g + (1 - g) * (1 - one_try[BOT])
    distribution = {r: (1 - g) * mass / ends for r, mass in one_try.items()}
    distribution[BOT] = Fraction(g) / ends
    return distribution


def _first_released(batches: Sequence[Distribution], d: int) -> Distribution:
    distribution = _hypotheses(d)
    reached = Fraction(1)
    for batch in batches:
        for r in range(1 << d):
            distribution[r] += reached * batch[r]
        reached *= batch[BOT]
    distribution[BOT] = reached
    return distribution


def distribution_batches(
    records: Sequence[Record], d: int, p: Fraction, c: Fraction, k: int, neighbors: Neighbors
) -> Distribution:
    """Output distribution of the first hypothesis that A(c, p) releases on k disjoint batches.

    "replace_one": batch j is records[j n // k : (j + 1) n // k]. "add_remove": each record joins
    one of the k batches uniformly at random, with fresh random bits, because positions would move
    when a record is added.

    Args: records, (x, y) pairs; d, features; p, c as in distribution_base; k, number of batches.
    Guarantee: that of one A(c, p), for the relation given.
    Raises: ValueError if k < 1, p or c is no probability, or a record is outside the domain.
    Cost: k `2**(n / k)` `2**d`, or (`2**n` + `k**n` k) `2**d` when batches are random.
    Source: replaces the test set of Kasiviswanathan et al. 2011, Section 4, algorithm A*.
    """
    _require_relation(neighbors)
    _require(k >= 1, f"k must be at least 1, got {k}")
    n = len(records)
    if neighbors == "replace_one":
        parts = [records[j * n // k : (j + 1) * n // k] for j in range(k)]
        return _first_released([distribution_base(part, d, p, c) for part in parts], d)
    of_subset = [
        distribution_base([z for i, z in enumerate(records) if subset >> i & 1], d, p, c)
        for subset in range(1 << n)
    ]
    mixture = _hypotheses(d)
    for batch_of in itertools.product(range(k), repeat=n):
        subsets = [sum(1 << i for i in range(n) if batch_of[i] == j) for j in range(k)]
        for output, mass in _first_released([of_subset[s] for s in subsets], d).items():
            mixture[output] += mass / k**n
    return mixture


@lru_cache(maxsize=1 << 12)
def _noisy_argmin(counts: tuple[int, ...], scale: Fraction) -> tuple[Fraction, ...]:
    """Law of the first argmin of counts plus discrete Laplace noise, within 1e-40 in each entry."""
    with localcontext() as context:
        context.prec = 50
        q = (-Decimal(scale.denominator) / Decimal(scale.numerator)).exp()
        # Noise beyond `reach` has probability below exp(-100) for each count.
        reach = math.ceil(100 * scale)
        spread = max(counts) - min(counts)
        atom = [(1 - q) / (1 + q) * q ** abs(m) for m in range(-reach - spread, reach + spread + 1)]
        at_least = list(itertools.accumulate([Decimal(0), *reversed(atom)]))[::-1]
        wins = [Decimal(0)] * len(counts)
        for value in range(min(counts) - reach, max(counts) + reach + 1):
            index = [value - count + reach + spread for count in counts]
            for j in range(len(counts)):
                chance = atom[index[j]]
                for i in range(len(counts)):
                    if i != j:
                        chance *= at_least[index[i] + (i < j)]
                wins[j] += chance
        return tuple(Fraction(win) for win in wins)


def distribution_paper(
    records: Sequence[Record], d: int, epsilon: Fraction, k: int, test_size: int
) -> Distribution:
    """Output distribution of the printed A*, to within 1e-40 in each entry.

    The last test_size records are the test set; those before are cut by position into k equal
    batches (a remainder is unused). Each batch runs A(1/2, epsilon / 4). The integer error counts
    on the test set get discrete Laplace noise P(z) ~ exp(-|z| epsilon / k), the exact analogue of
    Lap(k / (s epsilon)) on rates, and the hypothesis of the smallest is released, ties going to
    the first. A batch that gave BOT counts test_size errors, whatever the data: the paper leaves
    its error undefined, and any value that depends on the data would have to be paid for.

    Args: records, (x, y) pairs; d, features; k, batches; test_size, rows of the test set (s).
    Guarantee: pure epsilon-DP under "replace_one" for epsilon <= 1/2 (the paper's proof), in truth
        while epsilon / 4 <= tanh(epsilon / 2), which is epsilon <= 3.83. Positions move when a
        record is added: nothing is claimed for "add_remove".
    Raises: ValueError if epsilon is not in (0, 4], k < 1 or test_size > n.
    Cost: k `2**(n / k)` + `(2**d + 1)**k` (k + test_size), and `k**2` / epsilon noise terms.
    Source: Kasiviswanathan et al. 2011, Section 4, algorithm A*.
    """
    _require(0 < epsilon <= 4, f"epsilon must lie in (0, 4], got {epsilon}")
    _require(k >= 1, f"k must be at least 1, got {k}")
    _require(0 <= test_size <= len(records), "test_size must lie between 0 and len(records)")
    size = (len(records) - test_size) // k
    test = records[len(records) - test_size :]
    errors: dict[int | None, int] = {
        r: sum((r & x).bit_count() & 1 != y for x, y in test) for r in range(1 << d)
    }
    errors[BOT] = test_size
    rate_paper = Fraction(epsilon) / 4
    batches = [
        distribution_base(records[j * size : (j + 1) * size], d, rate_paper, PAPER_BOTTOM)
        for j in range(k)
    ]
    distribution = _hypotheses(d)
    for outputs in itertools.product([BOT, *range(1 << d)], repeat=k):
        chance = math.prod((b[r] for b, r in zip(batches, outputs, strict=True)), start=Fraction(1))
        if chance:
            wins = _noisy_argmin(tuple(errors[r] for r in outputs), k / Fraction(epsilon))
            for output, win in zip(outputs, wins, strict=True):
                distribution[output] += chance * win
    return distribution


# ---------------------------------------------------------------------------------------------
# The privacy check


def all_datasets(d: int, n: int) -> Iterator[tuple[Record, ...]]:
    """Every sequence of n records on d features, those that no hypothesis fits included.

    Args: d, features; n, records.
    Cost: yields `2**((d + 1) n)` tuples.
    Source: definition.
    """
    return itertools.product(itertools.product(range(1 << d), (0, 1)), repeat=n)


def neighbors_of(
    records: Sequence[Record], d: int, neighbors: Neighbors
) -> Iterator[tuple[Record, ...]]:
    """Every neighbor of a data set: substitutions, or all removals and then all insertions.

    Args: records, (x, y) pairs; d, features; neighbors, the relation.
    Raises: ValueError if the relation is unknown.
    Cost: yields about `2**(d + 1)` n tuples.
    Source: definition; "replace_one" is the relation of Kasiviswanathan et al.
    """
    _require_relation(neighbors)
    base = tuple(records)
    domain = list(itertools.product(range(1 << d), (0, 1)))
    if neighbors == "replace_one":
        for i, z in itertools.product(range(len(base)), domain):
            if z != base[i]:
                yield (*base[:i], z, *base[i + 1 :])
        return
    for i in range(len(base)):
        yield base[:i] + base[i + 1 :]
    for i, z in itertools.product(range(len(base) + 1), domain):
        yield (*base[:i], z, *base[i:])


def largest_ratio(
    first: Mapping[int | None, Fraction], second: Mapping[int | None, Fraction]
) -> Fraction | float:
    """The largest of first[o] / second[o] over the outputs o; math.inf if second misses one."""
    largest = Fraction(0)
    for output, mass in first.items():
        if not mass:
            continue
        if not second[output]:
            return math.inf
        largest = max(largest, mass / second[output])
    return largest


def epsilon_of(
    distribution: Callable[[tuple[Record, ...]], Mapping[int | None, Fraction]],
    d: int,
    n: int,
    neighbors: Neighbors,
) -> Fraction | float:
    """exp(epsilon), exactly: the largest probability ratio over all neighboring data sets.

    Under "add_remove" a pair is n records and the same without one of them. The logarithm is left
    to the caller, since it is not rational.

    Args: distribution, maps a tuple of records to its output law; d, features; n, records.
    Guarantee: the mechanism is epsilon-DP on data of this size iff the value is <= exp(epsilon);
        math.inf if an output is possible on one side only.
    Raises: ValueError if the relation is unknown.
    Cost: `2**((d + 1) n)` calls of distribution, then up to `2**(d + 1)` n ratios for each.
    Source: definition of pure differential privacy.
    """
    # Many data sets have the same law; a pair of laws is compared once.
    laws: dict[tuple[Fraction, ...], int] = {}
    listed: list[Mapping[int | None, Fraction]] = []

    @cache
    def place(records: tuple[Record, ...]) -> int:
        law = distribution(records)
        number = laws.setdefault(tuple(law.values()), len(listed))
        if number == len(listed):
            listed.append(law)
        return number

    pairs: set[tuple[int, int]] = set()
    for records in all_datasets(d, n):
        for other in neighbors_of(records, d, neighbors):
            if len(other) > n:
                break
            first, second = place(records), place(other)
            pairs |= {(first, second), (second, first)}
    largest: Fraction | float = Fraction(1)
    return max((largest_ratio(listed[one], listed[two]) for one, two in pairs), default=largest)


# ---------------------------------------------------------------------------------------------
# Rates


def exp_bounds(x: Fraction, bits: int = 256) -> tuple[Fraction, Fraction]:
    """Rational numbers that enclose exp(x) for x >= 0, at most `2**(1 - bits)` apart.

    Args: x, a non-negative rational; bits, binary digits kept after the point.
    Raises: ValueError if x < 0.
    Cost: about 3 x + bits / 2 fraction operations.
    Source: Taylor series; what is left after a term below half of its predecessor is at most it.
    """
    _require(x >= 0, f"x must be non-negative, got {x}")
    total, term, j = Fraction(0), Fraction(1), 0
    while 2 * x > j or term * 2 ** (bits + 2) > 1:
        total += term
        j += 1
        term *= x / j
    scale = 2**bits
    upper = total + 2 * term
    return Fraction(math.floor(total * scale), scale), Fraction(math.ceil(upper * scale), scale)


def worst_ratio(
    p: Fraction,
    neighbors: Neighbors,
    *,
    c: Fraction | None = None,
    g: Fraction | None = None,
) -> Fraction:
    """The largest probability ratio that A(c, p), or LOOP with stop probability g, can show.

    Let i be the record that differs. Its constraint, added to a sample, leaves a hypothesis's
    probability, doubles it or removes it, and can only raise that of BOT. With a and b the
    probabilities of a hypothesis and of BOT when i is out, one side has (1 - p) a to (1 + p) a
    and b to (1 - p) b + p. Only c <= b is known, which gives the ratio 1 - p + p / c for BOT. In
    LOOP all is divided by v + N with v = g / (1 - g), where N = 1 - b is at least (1 - p) N_0.
    Under "add_remove" one side is at a, b and N_0 themselves.

    Args: p in [0, 1), sampling rate; neighbors, the relation; exactly one of c, g, positive.
    Guarantee: exact supremum for A(c, p) (reached by n = 1); upper bound for LOOP.
    Raises: ValueError if p, c or g is out of range, or not exactly one of c and g is given.
    Cost: a few fraction operations.
    Source: Kasiviswanathan et al. 2011, Lemma 4.2, with the bound on BOT tightened.
    """
    _require_relation(neighbors)
    _require(0 <= p < 1, f"p must lie in [0, 1), got {p}")
    up, down = 1 + p, 1 / Fraction(1 - p)
    if c is not None and g is None:
        _require(0 < c <= 1, f"c must lie in (0, 1], got {c}")
        hypothesis = up * down if neighbors == "replace_one" else max(up, down)
        return max(hypothesis, 1 - p + p / Fraction(c))
    if g is not None and c is None:
        _require(0 < g < 1, f"g must lie in (0, 1), got {g}")
        v = g / Fraction(1 - g)
        growth = up * (v + 1) / (v + 1 - p)
        return growth * down if neighbors == "replace_one" else max(growth, down)
    raise ValueError("exactly one of c and g must be given")


def round_up(x: Fraction) -> Fraction:
    """The smallest multiple of `2**-64` that is not below x: how c and g are rounded.

    Args: x, a rational.
    Guarantee: a larger c or g never weakens privacy at the same p.
    Cost: constant.
    Source: rounding rule of the compiled mechanisms.
    """
    return Fraction(math.ceil(Fraction(x) * 2**RATE_BITS), 2**RATE_BITS)


def rounded_bottom(epsilon: Fraction, neighbors: Neighbors) -> Fraction:
    """The best c of A(c, p), rounded up to `2**-64`.

    It is 1 / (exp(epsilon) + 2), and 1 / (exp(epsilon) + 1) for "add_remove".

    Args: epsilon > 0, a rational (a float is taken at its exact value); neighbors, the relation.
    Guarantee: at least the real number.
    Raises: ValueError if epsilon <= 0 or the relation is unknown.
    Cost: one exp_bounds.
    Source: the c at which both constraints of worst_ratio meet.
    """
    _require_relation(neighbors)
    _require(epsilon > 0, f"epsilon must be positive, got {epsilon}")
    lower, _ = exp_bounds(Fraction(epsilon))
    return round_up(1 / (lower + (2 if neighbors == "replace_one" else 1)))


def rounded_rate(
    epsilon: Fraction,
    neighbors: Neighbors,
    *,
    c: Fraction | None = None,
    g: Fraction | None = None,
) -> Fraction:
    """The largest multiple of `2**-64` that is a private sampling rate for the given c or g.

    Round c or g first (round_up), then ask for p.

    Args: epsilon > 0, a rational (a float is taken at its exact value); neighbors, the relation;
        exactly one of c (A) and g (LOOP).
    Guarantee: worst_ratio(p, neighbors, c or g) <= a rational lower bound of exp(epsilon).
    Raises: ValueError if epsilon <= 0, c or g is out of range or not exactly one is given.
    Cost: 64 evaluations of worst_ratio, which grows with p.
    Source: rounding rule of the compiled mechanisms.
    """
    _require(epsilon > 0, f"epsilon must be positive, got {epsilon}")
    limit, _ = exp_bounds(Fraction(epsilon))
    low, high = 0, 2**RATE_BITS
    while high - low > 1:
        middle = (low + high) // 2
        if worst_ratio(Fraction(middle, 2**RATE_BITS), neighbors, c=c, g=g) <= limit:
            low = middle
        else:
            high = middle
    return Fraction(low, 2**RATE_BITS)


def rate(
    epsilon: float, neighbors: Neighbors, *, c: float | None = None, g: float | None = None
) -> float:
    """The sampling rate p of A(c, p), or of LOOP with stop probability g, in floating point.

    It solves worst_ratio = exp(epsilon) for p. With neither c nor g it is the rate of A at its best
    c. The last digits are rounded, so that no privacy follows; `rounded_rate` is the private rate.

    Args:
        epsilon: Privacy parameter, above 0.
        neighbors: The relation.
        c: Probability of a free BOT, in (0, 1); excludes g.
        g: Probability of stopping, in (0, 1); excludes c.

    Raises:
        ValueError: epsilon <= 0, the relation is unknown, or both c and g are passed.
    """
    _require_relation(neighbors)
    _require(epsilon > 0, f"epsilon must be positive, got {epsilon}")
    _require(c is None or g is None, "c and g must not both be given")
    growth, replace = math.exp(epsilon), neighbors == "replace_one"
    if g is None:
        largest = math.tanh(epsilon / 2) if replace else -math.expm1(-epsilon)
        return largest if c is None else min(largest, c * math.expm1(epsilon) / (1 - c))
    v = g / (1 - g)
    if not replace:
        return min(-math.expm1(-epsilon), (v + 1) * math.expm1(epsilon) / (v + 1 + growth))
    # growth p^2 - linear p + constant = 0; this form of the smaller root does not cancel.
    linear, constant = growth * (v + 2) + v + 1, (v + 1) * math.expm1(epsilon)
    return 2 * constant / (linear + math.sqrt(linear * linear - 4 * growth * constant))


# ---------------------------------------------------------------------------------------------
# Sample sizes


@dataclass(frozen=True)
class Plan:
    """What a mechanism needs: n records in all, and its rates (None where it has no such field).

    `n_paper` is the size that the printed A* needs, and `n_paper_valid` whether its own proof
    covers these arguments.
    """

    n: int
    p: float
    g: float | None
    c: float | None
    k: int | None
    batch_size: int | None
    n_paper: int
    n_paper_valid: bool


def _require_targets(d: int, alpha: float, beta: float, epsilon: float) -> None:
    _require(d >= 1, f"d must be at least 1, got {d}")
    _require(0 < alpha <= 0.5, f"alpha must lie in (0, 1/2], got {alpha}")
    _require(0 < beta < 1, f"beta must lie in (0, 1), got {beta}")
    _require(epsilon > 0, f"epsilon must be positive, got {epsilon}")


def _minimize(values: Callable[[np.ndarray], np.ndarray], low: float, high: float) -> float:
    """The minimum of a quasiconvex function, by grids that narrow around their best point."""
    for _ in range(8):
        grid = np.linspace(low, high, 41)
        found = values(grid)
        best = int(np.argmin(found))
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 40)])
    return float(found[best])


def samples_for_error(d: int, alpha: float, p: float, failure: float) -> int:
    """Records after which a hypothesis that fits a Poisson sample of them errs by <= alpha.

    For every s in [0, 1) the failure probability of n independent realizable records is at most
    `2**((d - 1) (1 - s))` `(1 - p alpha (2 - 2**s))**n`. Expected value, over the draws, of
    |bad hypotheses left| / |hypotheses left|**s; the best s is taken.

    Args: d, features; alpha in (0, 1/2]; p, sampling rate; failure, its allowed probability.
    Guarantee: of utility only; any distribution of x, labels from some hypothesis.
    Raises: ValueError if an argument is out of range.
    Cost: constant.
    Source: sharpens Kasiviswanathan et al. 2011, Lemma 4.1 (a union bound, s = 0, and Chernoff).
    """
    _require_targets(d, alpha, failure, 1.0)
    _require(0 < p <= 1, f"p must lie in (0, 1], got {p}")

    def needed(s: np.ndarray) -> np.ndarray:
        gain = -np.log1p(-p * alpha * (2 - 2**s))
        return ((d - 1) * (1 - s) * math.log(2) - math.log(failure)) / gain

    return math.ceil(_minimize(needed, 0.0, 1 - 1e-9))


def _paper_sizes(d: int, alpha: float, beta: float, epsilon: float) -> tuple[int, int, int]:
    """(k, batch size, test size) with every constant as small as the paper's argument allows."""
    # Three events of probability beta' each: beta' = beta / 2 as printed does not add up.
    alpha_, beta_ = alpha / 5, beta / 3
    k = math.ceil(math.log(1 / beta_) / math.log(4 / 3))
    batch_size = math.ceil(8 * (d * math.log(2) + math.log(4)) / (epsilon * alpha_))
    union = math.log(k / beta_) / alpha_
    return k, batch_size, math.ceil(max(10 * union, k * union / epsilon))


def _plan(
    targets: tuple[int, float, float, float],
    neighbors: Neighbors,
    *,
    n: int,
    p: float,
    g: float | None = None,
    c: float | None = None,
    k: int | None = None,
    batch_size: int | None = None,
) -> Plan:
    _, _, beta, epsilon = targets
    paper_k, paper_size, test_size = _paper_sizes(*targets)
    # Lemma 4.2 needs epsilon <= 1/2, Lemma 4.6 beta < 1/4; positions move under "add_remove".
    covered = neighbors == "replace_one" and epsilon <= 0.5 and beta < 0.25
    return Plan(n, p, g, c, k, batch_size, paper_k * paper_size + test_size, covered)


def plan_loop(d: int, alpha: float, beta: float, epsilon: float, neighbors: Neighbors) -> Plan:
    """Smallest n for LOOP to err by <= alpha with probability 1 - beta, over g = .1 .. .9 beta.

    Args: d, features; alpha in (0, 1/2]; beta in (0, 1); epsilon > 0; neighbors, the relation.
    Guarantee: utility on realizable data; privacy is that of rounded_rate.
    Raises: ValueError if an argument is out of range.
    Cost: nine samples_for_error.
    Source: see distribution_loop; failure <= g + (1 - g) b.
    """
    _require_targets(d, alpha, beta, epsilon)
    plans = []
    for tenths in range(1, 10):
        g = beta * tenths / 10
        p = rate(epsilon, neighbors, g=g)
        n = samples_for_error(d, alpha, p, (beta - g) / (1 - g))
        plans.append(_plan((d, alpha, beta, epsilon), neighbors, n=n, p=p, g=g))
    return min(plans, key=lambda plan: plan.n)


def plan_batches(d: int, alpha: float, beta: float, epsilon: float, neighbors: Neighbors) -> Plan:
    """Smallest n for the first release of k batches to err by <= alpha w.p. 1 - beta, over k and c.

    Under "add_remove" a record lands in the sample of a given batch with probability p / k, so n
    follows from that rate and batches have no fixed size.

    Args: d, features; alpha in (0, 1/2]; beta in (0, 1); epsilon > 0; neighbors, the relation.
    Guarantee: utility on realizable data; privacy is that of rounded_rate.
    Raises: ValueError if an argument is out of range.
    Cost: up to 1,000 samples_for_error for each of about log(1 / beta) values of k.
    Source: see distribution_batches; failure <= `c**k` + (1 - `c**k`) b.
    """
    _require_targets(d, alpha, beta, epsilon)
    replace = neighbors == "replace_one"
    largest = 1 / (math.exp(epsilon) + (2 if replace else 1))
    grid = [largest, *(c for c in np.geomspace(1e-3, 1, 1000).tolist() if c < largest)]
    fewest = math.ceil(math.log(beta) / math.log(largest))
    plans = []
    # Beyond the k that the largest c needs, more batches only cut the data finer.
    for k, c in itertools.product(range(1, fewest + 2), grid):
        bottom = c**k
        if bottom < beta:
            p = rate(epsilon, neighbors, c=c)
            failure = (beta - bottom) / (1 - bottom)
            size = samples_for_error(d, alpha, p if replace else p / k, failure)
            plans.append((k * size if replace else size, k, c, p))
    n, k, c, p = min(plans)
    batch_size = n // k if replace else None
    return _plan((d, alpha, beta, epsilon), neighbors, n=n, p=p, c=c, k=k, batch_size=batch_size)


def plan_paper(d: int, alpha: float, beta: float, epsilon: float, neighbors: Neighbors) -> Plan:
    """Sizes of the printed A*, its constants mended; n - k batch_size rows are the test set.

    Args: d, features; alpha in (0, 1/2]; beta in (0, 1); epsilon > 0; neighbors, the relation.
    Guarantee: n_paper_valid says whether the paper's proof covers the arguments.
    Raises: ValueError if an argument is out of range.
    Cost: constant.
    Source: Kasiviswanathan et al. 2011, Section 4, A* and Lemmas 4.1, 4.6; k there needs log_{4/3}.
    """
    _require_targets(d, alpha, beta, epsilon)
    _require_relation(neighbors)
    k, batch_size, test_size = _paper_sizes(d, alpha, beta, epsilon)
    n, p = k * batch_size + test_size, epsilon / 4
    return _plan((d, alpha, beta, epsilon), neighbors, n=n, p=p, c=0.5, k=k, batch_size=batch_size)


def samples_uniform_target(d: int, chi2: float, p: float, b: float) -> int:
    """Records of the source after which a Poisson sample spans, so that one hypothesis is left.

    The target leaves a subspace of dimension i with probability `t_i = 1 - 2**(i - d)`, hence the
    source with at least the smaller root u_i of `(t_i - u)**2 = chi2 u (1 - u)`. So the waiting
    time is at most a sum of geometric variables of means 1 / (p u_i); n is the smallest with
    E exp(t sum) <= b exp(t (n + 1)) for some t.

    Args: d, features; chi2, divergence of the uniform target from the source; p, sampling rate;
        b, allowed probability of not spanning.
    Guarantee: of utility only.
    Raises: ValueError if an argument is out of range.
    Cost: a few hundred passes over d numbers.
    Source: Kohen and Sheffet, Transfer Learning in Differential Privacy's Hybrid-Model, App. B; the
        corollary of Theorem 1 in docs/theory/plans.md.
    """
    _require_targets(d, 0.5, b, 1.0)
    _require(chi2 >= 0, f"chi2 must be non-negative, got {chi2}")
    _require(0 < p <= 1, f"p must lie in (0, 1], got {p}")
    t = 1 - 2.0 ** (np.arange(d) - d)
    q = p * t**2 / (t + chi2 / 2 + np.sqrt(chi2**2 / 4 + chi2 * t * (1 - t)))

    def bound(ts: np.ndarray) -> np.ndarray:
        # ln E exp(t G) = -ln(1 - (1 - exp(-t)) / q) for a geometric G of rate q.
        generating = [-float(np.sum(np.log1p(math.expm1(-t) / q))) for t in ts]
        bounds: np.ndarray = (np.array(generating) - math.log(b)) / ts
        return bounds

    pole = -math.log1p(-float(q.min()))
    return math.ceil(_minimize(bound, 1e-6 * pole, (1 - 1e-6) * pole)) - 1


def failure_probability(
    weights: Mapping[int, Fraction], d: int, alpha: Fraction, p: Fraction, n: int
) -> Fraction:
    """Exact probability that A(0, p) on n realizable records releases an error above alpha.

    Which hypothesis made the labels does not matter: the difference w of the released and the true
    one is uniform among the w orthogonal to the sample, and its error is P(w.x = 1).

    Args: weights, P(x) for each x < `2**d`; d, features; alpha, tolerated error; p, sampling rate;
        n, number of records.
    Raises: ValueError if the weights do not sum to 1 or p is no probability.
    Cost: n times the number of subspaces met, times `4**d`.
    Source: the event that samples_for_error bounds.
    """
    _require_probabilities(p=p)
    _require(sum(weights.values()) == 1, "weights must sum to 1")
    odd = {x: frozenset(w for w in range(1 << d) if (w & x).bit_count() & 1) for x in range(1 << d)}
    bad = {w for w in range(1 << d) if sum(weights.get(x, 0) for x in odd[w]) > alpha}
    states = {frozenset(range(1 << d)): Fraction(1)}
    for _ in range(n):
        moved = {space: (1 - p) * mass for space, mass in states.items()}
        for (space, mass), (x, weight) in itertools.product(states.items(), weights.items()):
            rest = space - odd[x]
            moved[rest] = moved.get(rest, Fraction(0)) + p * weight * mass
        states = moved
    return sum(
        (mass * Fraction(len(space & bad), len(space)) for space, mass in states.items()),
        start=Fraction(0),
    )
