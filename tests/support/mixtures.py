"""Random mixtures of mechanisms, and what must hold of their guarantees.

    python tests/support/mixtures.py 100000

examines so many of them and prints what it saw. The exact curves are those of the worst pairs by
enumeration in eighty digits, written from the definitions and without the package.
"""

import math
import random
import sys
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from operator import attrgetter

from hdp_fast import accounting
from hdp_fast.accounting import (
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteLaplace,
    GaussianMechanism,
    LaplaceMechanism,
    Pure,
    Subsampled,
)

LEAST, MOST = 1e-12, 1e4
LEAST_DELTA, MOST_DELTA = 1e-30, 0.5
MOST_ROUNDS = 1 << 53
# Outcomes of a composition that are worth enumerating, and draws of a subsample.
MOST_OUTCOMES = 700
MOST_DRAWS, MOST_STEPS = 3, 9
# Part of the mixtures that are compared with one that is less private.
MONOTONE = 0.25
# Losses above this are infinite to the package; the largest epsilon that is worth asking for.
LARGEST = 2e3
DIGITS = Context(prec=80)

# Exact curves -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """Outcomes with their probabilities under P and Q, and that of an infinite loss under P."""

    outcomes: list[tuple[Decimal, Decimal]]
    infinite: Decimal

    def delta(self, epsilon):
        """The hockey-stick divergence: the least delta at this epsilon."""
        with localcontext(DIGITS):
            growth = Decimal(epsilon).exp()
            return self.infinite + sum(max(Decimal(0), p - growth * q) for p, q in self.outcomes)


def worst_pair(base, size):
    """Positive losses of a base when `size` records change, P and Q of each, and what is infinite.

    Randomized response; the same, that says all with a probability that adds up over the records;
    and all integers with noise of masses proportional to r^|z|, moved by `steps`.
    """
    epsilon = size * Decimal(base.epsilon)
    growth = epsilon.exp()
    if not isinstance(base, DiscreteLaplace):
        infinite = Decimal(0)
        if isinstance(base, Approximate):
            times = (growth - 1) / (Decimal(base.epsilon).exp() - 1)
            infinite = min(Decimal(1), times * Decimal(base.delta))
        return [((1 - infinite) * growth / (1 + growth), (1 - infinite) / (1 + growth))], infinite
    steps = size * base.sensitivity
    r = (-epsilon / steps).exp()
    end = 1 / (1 + r)
    inner = [((1 - r) * end * r**z, (1 - r) * end * r ** (steps - z)) for z in range(1, steps)]
    return [(end, end / growth), *inner[: (steps - 1) // 2]], Decimal(0)


def round_law(mechanism):
    """The worst pair of a round: a base loss e becomes ln(1 + eta (exp(e) - 1))."""
    base, draws, rate = mechanism, 1, Decimal(1)
    if isinstance(mechanism, Subsampled):
        base, draws, rate = mechanism.base, mechanism.draws, Decimal(mechanism.rate)
    eta = 1 - (1 - rate) ** draws
    outcomes, infinite = [], Decimal(0)
    for size in range(1, draws + 1) if rate < 1 else [draws]:
        weight = (
            math.comb(draws, size) * rate**size * (1 - rate) ** (draws - size) if rate < 1 else 1
        )
        losses, lost = worst_pair(base, size)
        infinite += weight * lost
        for p, q in losses:
            under_q = q * weight / eta
            under_p = under_q + weight * (p - q)
            outcomes += [(under_p, under_q), (under_q, under_p)]
    rest = max(Decimal(0), 1 - infinite - sum(p for p, _ in outcomes))
    return Law([*outcomes, (rest, rest)], infinite)


def exact_law(mixture):
    """The worst pair of a composition; None where it has too many outcomes, or densities."""
    rounds = [each for each, times in mixture for _ in range(min(times, 10))]
    if not all(enumerable(each) for each in rounds) or len(rounds) > 9:
        return None
    with localcontext(DIGITS):
        laws = [round_law(each) for each in rounds]
        if math.prod(len(law.outcomes) for law in laws) > MOST_OUTCOMES:
            return None
        finite = math.prod((1 - law.infinite for law in laws), start=Decimal(1))
        outcomes = [(Decimal(1), Decimal(1))]
        for law in laws:
            outcomes = [(p * a, q * b) for p, q in outcomes for a, b in law.outcomes]
        return Law(outcomes, 1 - finite)


def enumerable(mechanism):
    base, draws = mechanism, 1
    if isinstance(mechanism, Subsampled):
        base, draws = mechanism.base, mechanism.draws
    short = draws <= MOST_DRAWS and getattr(base, "sensitivity", 1) * draws <= MOST_STEPS
    return short and isinstance(base, Pure | Approximate | DiscreteLaplace)


# Mixtures -----------------------------------------------------------------------------------------


def between(coins, least, most):
    """A number with a uniform logarithm."""
    return math.exp(coins.uniform(math.log(least), math.log(most)))


def some_base(coins, least=LEAST, most=MOST, kinds=range(7)):
    size, failing = between(coins, least, most), between(coins, 1e-30, 0.5)
    return [
        lambda: Pure(size),
        lambda: Approximate(size, failing),
        lambda: DiscreteLaplace(size, coins.randint(1, 3)),
        lambda: BoundedRange(size),
        lambda: GaussianMechanism(size),
        lambda: LaplaceMechanism(size),
        lambda: ZCDP(size),
    ][coins.choice(kinds)]()


def perhaps_subsampled(coins, base, most_draws):
    if coins.random() < 0.4:
        return base
    rate = between(coins, LEAST, 1)
    return Subsampled(base, draws=int(between(coins, 1, most_draws + 0.999)), rate=rate)


def some_rounds(coins):
    """Seldom very many, whose grids take a hundred times as long."""
    return int(between(coins, 1, MOST_ROUNDS if coins.random() < 0.05 else 30))


def tiny(coins, kinds, rounds):
    return perhaps_subsampled(coins, some_base(coins, LEAST, 1e-2, kinds), MOST_DRAWS), rounds


def few(coins):
    """A handful of rounds that can be enumerated."""
    each = [some_base(coins, kinds=range(3)) for _ in range(coins.randint(1, 2))]
    return [(perhaps_subsampled(coins, base, MOST_DRAWS), coins.randint(1, 2)) for base in each]


def few_dominated(coins):
    """The same, of which one dominates."""
    rest = tiny(coins, [0, 1], coins.randint(1, 4))
    return [(some_base(coins, 1e-2, 50.0, [0, 1]), 1), rest]


def dominated(coins):
    """One dominant mechanism, and tiny ones many times."""
    first = perhaps_subsampled(coins, some_base(coins, 1e-2, 50.0), 30)
    rest = [tiny(coins, range(7), some_rounds(coins)) for _ in range(coins.randint(1, 2))]
    return [(first, coins.randint(1, 3)), *rest]


def anything(coins):
    each = [perhaps_subsampled(coins, some_base(coins), 30) for _ in range(coins.randint(1, 2))]
    return [(mechanism, some_rounds(coins)) for mechanism in each]


def more(coins, mixture):
    """The mixture with one mechanism that is less private, or runs more often."""
    which = coins.randrange(len(mixture))
    mechanism, rounds = mixture[which]
    factor = between(coins, 1.0001, 10)
    if coins.random() < 0.5:
        changed = mechanism, min(MOST_ROUNDS, rounds + max(1, int(rounds * (factor - 1))))
    else:
        changed = weaker(mechanism, factor, coins), rounds
    return [*mixture[:which], changed, *mixture[which + 1 :]]


def weaker(mechanism, factor, coins):
    if isinstance(mechanism, Subsampled):
        if coins.random() < 0.3:
            return replace(mechanism, rate=min(1.0, mechanism.rate * factor))
        if coins.random() < 0.3:
            return replace(mechanism, draws=mechanism.draws + 1)
        return replace(mechanism, base=weaker(mechanism.base, factor, coins))
    names = {GaussianMechanism: "mu", ZCDP: "rho"}
    name = names.get(type(mechanism), "epsilon")
    if isinstance(mechanism, Approximate) and coins.random() < 0.5:
        return replace(mechanism, delta=min(0.9, mechanism.delta * factor))
    return replace(mechanism, **{name: getattr(mechanism, name) * factor})


KINDS = {few: 40, few_dominated: 20, dominated: 20, anything: 20}


def mixture(number):
    """The mixture of a number, a delta, and the coins that are left."""
    coins = random.Random(number)
    [kind] = coins.choices([*KINDS], [*KINDS.values()])
    made = kind(coins)
    return made, between(coins, LEAST_DELTA, MOST_DELTA), coins


# What must hold -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seen:
    """What the accountant said of one mixture; ratios above 1 are broken promises.

    Attributes:
        inverse: delta at the epsilon of a delta, over that delta.
        exact: the same with the exact delta, or an exact delta over the one shown; the larger.
        dent: by how much of itself epsilon falls for a mixture that is less private.
        panic: whether the compiled module gave up, or answered with what is no number.
    """

    number: int
    inverse: float = 0.0
    exact: float = 0.0
    dent: float = 0.0
    panic: bool = False


def examine(number):
    try:
        seen = asked(number)
        return replace(seen, panic=math.isnan(seen.inverse + seen.exact + seen.dent))
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return Seen(number, panic=True)


def asked(number):
    made, wanted, coins = mixture(number)
    epsilon, law = accounting.epsilon(made, wanted), exact_law(made)
    inverse = accounting.delta(made, epsilon) / wanted if epsilon < math.inf else 0.0
    exact, dent = 0.0, 0.0
    if law is not None:
        at = coins.uniform(0, 1.1) * min(epsilon, LARGEST)
        exact = over(law.delta(at), accounting.delta(made, at))
        if epsilon < math.inf:
            exact = max(exact, over(law.delta(epsilon), wanted))
    if coins.random() < MONOTONE and epsilon > 0:
        other = accounting.epsilon(more(coins, made), wanted)
        dent = 0.0 if other >= epsilon else 1 - other / min(epsilon, sys.float_info.max)
    return Seen(number, inverse, exact, dent)


def over(one, other):
    """The ratio of two numbers, never rounded to 1 or below where it is above.

    Sixty of the eighty digits are right.
    """
    with localcontext(DIGITS):
        ratio = one / Decimal(other)
        more = ratio > 1 + Decimal("1e-60")
    return max(float(ratio), math.nextafter(1, 2)) if more else min(float(ratio), 1.0)


def main():
    worst = {"inverse": Seen(0), "exact": Seen(0), "dent": Seen(0)}
    count, panics = int(sys.argv[1]), []
    for number in range(count):
        seen = examine(number)
        panics += [number] if seen.panic else []
        worst = {name: max(one, seen, key=attrgetter(name)) for name, one in worst.items()}
        if (number + 1) % 1000 == 0 or number + 1 == count:
            told = [f"{name} {getattr(one, name)} ({one.number})" for name, one in worst.items()]
            print(f"{number + 1:,} mixtures, worst: {', '.join(told)}; panics {panics}", flush=True)


if __name__ == "__main__":
    main()
