"""Recursions of cuts: their law and its privacy over all neighbors, errors, exact rings."""

import functools
import itertools
import math
import warnings
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from frequencies import Case, misfits
from lengths import STAT

from hdp_fast import Budget, statistics
from hdp_fast.data.states import Tally
from hdp_fast.exceptions import ParameterError, UtilityWarning
from hdp_fast.statistics import cuts, release_noise
from hdp_fast.statistics.cuts import Recursion

# Three points with two keys each; the bounds count twice as often.
POINTS, BITS = 2, 1
KEYS = (POINTS + 1) << BITS
LEVELS = {
    "quarters": (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4)),
    "uneven": (Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)),
    "ends": (Fraction(0), Fraction(1, 5), Fraction(1)),
}
# exp(-1 / UNITS) of the rate r of a depth: all chances are powers of it, and fractions.
DROP, UNITS = Fraction(9, 10), 480
# All of them only at_length, in `make stat`: they take a minute.
TRIED = LEVELS if STAT else {"uneven": LEVELS["uneven"]}
RELATIONS = {
    "replace_one": {"one_way": False, "fixed": True},
    "replace_one, groups": {"one_way": False, "fixed": False},
    "add_remove": {"one_way": True, "fixed": False},
}


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(cuts, "_BITS", BITS)
    monkeypatch.setattr(cuts, "_OF_BOUND", POINTS + 1)


def count_at(records):
    return Tally(*np.unique(np.array(records, np.int64), return_counts=True))


def below(records, key):
    """The mass below a key, by its definition: a record is spread over its point's keys."""
    return sum(min(max(Fraction(key, 1 << BITS) - record, 0), 1) for record in records)


def chances(records, cut, low, high, share):
    """The chances of the keys from low to the one before high, exactly."""
    if low == high:
        return {low: Fraction(1)}
    start = below(records, low)
    mass = below(records, high) - start
    weights = {}
    for key in range(low, high):
        off = abs(below(records, key) - start - cut.level * mass)
        units = UNITS * off * cut.rate / share
        assert units.denominator == 1
        bound = key >> BITS in (0, POINTS)
        weights[key] = (2 if bound else 1) * DROP ** int(units)
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}


def law_of(records, plan, share):
    """The chances of all cuts of a recursion over three levels."""
    root = plan.root
    law = {}
    for middle, first in chances(records, root, 0, KEYS, share).items():
        left = chances(records, root.left, 0, middle, share)
        right = chances(records, root.right, middle, KEYS, share)
        for (low, second), (high, third) in itertools.product(left.items(), right.items()):
            law[low, middle, high] = first * second * third
    return law


def all_records(most):
    sizes = range(most + 1)
    return [
        rows for n in sizes
        for rows in itertools.combinations_with_replacement(range(POINTS + 1), n)
    ]  # fmt: skip


def are_neighbors(one, other, relation):
    first, second = Counter(one), Counter(other)
    gone, new = (first - second).total(), (second - first).total()
    return (gone, new) == ((1, 0) if relation == "add_remove" else (1, 1))


def largest_ratio(levels, relation, *, faster=1):
    """The largest ratio of chances of any outcome, over all neighbors, in steps of DROP."""
    plan = Recursion.plan(levels, Fraction(1), **RELATIONS[relation], n=None)
    assert plan.depth == 2
    share = Fraction(1, 2) if relation == "add_remove" else Fraction(1, 4)
    made = {rows: law_of(rows, plan, share / faster) for rows in all_records(3)}
    pairs = itertools.permutations(made, 2)
    kind = relation.partition(",")[0]
    worst = max(
        chance / made[other][keys]
        for one, other in pairs
        if are_neighbors(one, other, kind) or are_neighbors(other, one, kind)
        for keys, chance in made[one].items()
    )
    # The promise: exp(-epsilon) in steps, where epsilon is 1 and a share is UNITS of them.
    return worst, (1 / DROP) ** int(UNITS / share)


@each_case("relation", RELATIONS)
def test_only_the_first_cut_of_a_known_number_is_drawn_at_the_full_rate(relation):
    """Rows may enter and leave any part but the whole, by as much as the larger side of its cut."""
    root = Recursion.plan(LEVELS["uneven"], Fraction(1), **RELATIONS[relation], n=None).root
    share = Fraction(1, 2) if relation == "add_remove" else Fraction(1, 4)
    assert root.rate == share  # at the level 1/2 both rules say the same
    assert (root.left.level, root.right.level) == (Fraction(2, 3), Fraction(4, 5))
    for cut in (root.left, root.right):
        assert cut.rate == share / (2 * cut.level)
    first = Recursion.plan([Fraction(1, 3)], Fraction(1), **RELATIONS[relation], n=None).root
    whole = Fraction(1) if relation == "add_remove" else Fraction(1, 2)
    assert first.rate == (whole if relation == "replace_one" else whole * Fraction(3, 4))


@each_case("relation", RELATIONS)
@each_case("name", TRIED)
def test_recursions_are_private_for_all_neighbors(name, relation, tiny):
    """In exact fractions, over all outcomes, for one key of each cut."""
    worst, promise = largest_ratio(LEVELS[name], relation)
    assert worst <= promise
    # A rate of four times as much breaks the promise, so that it is not empty.
    worst, promise = largest_ratio(LEVELS[name], relation, faster=4)
    assert worst > promise


@pytest.mark.parametrize("n", [1_000, None])
def test_bounds_of_errors_are_the_same_from_both_ends(n):
    levels = [Fraction(i, 64) for i in range(1, 64)]
    plan = Recursion.plan(levels, Fraction(1, 10), one_way=True, fixed=False, n=n)
    bounds = plan.bound_errors(1_000, 0.05)
    assert bounds == pytest.approx(bounds[::-1])
    if n is not None:
        # So few records are worth no cut of every level: some stand evenly between others.
        assert plan.depth < 6
        assert max(bounds) > min(bounds) > 0


def test_groups_lose_and_gain_a_record_within_the_promise(tiny):
    """Two groups, of which a record leaves one and enters the other."""
    for levels in LEVELS.values():
        plan = Recursion.plan(levels, Fraction(1), one_way=False, fixed=False, n=None)
        made = {rows: law_of(rows, plan, Fraction(1, 4)) for rows in all_records(2)}
        worst = Fraction(0)
        for one, other in itertools.permutations(made, 2):
            if are_neighbors(one, other, "add_remove") or are_neighbors(other, one, "add_remove"):
                ratio = max(chance / made[other][keys] for keys, chance in made[one].items())
                worst = max(worst, ratio)
        assert worst**2 <= (1 / DROP) ** (4 * UNITS)


@each_case("name", TRIED)
def test_points_are_drawn_by_the_law(name, tiny):
    """With coins of a test, at a false alarm of 1e-6; the law is that of the definition."""
    epsilon = 4.0
    plan = Recursion.plan(LEVELS[name], Fraction(4), one_way=True, fixed=False, n=None)
    share = Fraction(2)
    stream, cases = np.random.default_rng(1), []
    for records in [(), (0, 1), (1, 1, 1, 2), (0, 0, 2)]:
        law = Counter()
        for keys, chance in floats_of(records, plan, share, epsilon).items():
            law[tuple(key >> BITS for key in keys)] += chance
        drawn = Counter(
            tuple(plan.draw(count_at(records), POINTS, stream).tolist()) for _ in range(1_500)
        )
        cases.append(Case(drawn, law))
    assert misfits(cases) == []
    # Broken variant: the test tells half of the rate.
    slow = Counter()
    for keys, chance in floats_of((1, 1, 1, 2), plan, share, epsilon / 4).items():
        slow[tuple(key >> BITS for key in keys)] += chance
    assert misfits([Case(cases[2].counts, slow)]) != []


def floats_of(records, plan, share, epsilon):
    """The law for a rate of epsilon / 2, from that in powers of DROP."""
    power = epsilon / 2 / UNITS / -math.log(DROP)

    def lower(cut, low, high):
        weights = {
            key: float(chance) ** power if low < high else 1.0
            for key, chance in unweighted(records, cut, low, high, share).items()
        }
        heights = {
            key: weight * (2 if low < high and key >> BITS in (0, POINTS) else 1)
            for key, weight in weights.items()
        }
        total = sum(heights.values())
        return {key: height / total for key, height in heights.items()}

    law = {}
    for middle, first in lower(plan.root, 0, KEYS).items():
        left, right = lower(plan.root.left, 0, middle), lower(plan.root.right, middle, KEYS)
        for (low, second), (high, third) in itertools.product(left.items(), right.items()):
            law[low, middle, high] = first * second * third
    return law


def unweighted(records, cut, low, high, share):
    if low == high:
        return {low: Fraction(1)}
    start = below(records, low)
    mass = below(records, high) - start
    off = {key: abs(below(records, key) - start - cut.level * mass) for key in range(low, high)}
    return {key: DROP ** int(UNITS * far * cut.rate / share) for key, far in off.items()}


@functools.cache
def exp_minus(rate, terms=60):
    """exp(-rate) as a fraction, to 1e-30 for rates up to 4."""
    return sum(Fraction((-rate) ** power, math.factorial(power)) for power in range(terms))


@each_case("rate", [Fraction(0), Fraction(1, 7), Fraction(1), Fraction(10**12 + 1, 10**12)])
@each_case("bits", [4, 40, 80])
def test_exponentials_lie_between_their_integers(rate, bits):
    low, high = cuts.enclose_exp(rate, bits)
    exact = exp_minus(rate) * (1 << bits)
    assert low <= exact + Fraction(1, 10**3)
    assert high >= exact - Fraction(1, 10**3)
    assert high - low <= 2


@pytest.mark.parametrize(("bits", "far"), [(128, 96), (3, 96), (3, 2)])
def test_rings_are_drawn_by_their_law_with_few_bits_and_from_far(bits, far, monkeypatch):
    """With bounds of three bits most proposals need more, and far rings are proposed together."""
    monkeypatch.setattr(cuts, "BITS_OF_RINGS", bits)
    monkeypatch.setattr(cuts, "FAR_RINGS", far)
    rings, points, decay = [3, 4, 6, 9], [1, 2, 20, 60], Fraction(5, 4)
    law = cuts._RingLaw(rings, points, decay, np.random.default_rng(2))
    weights = [many * math.exp(-decay * ring) for ring, many in zip(rings, points, strict=True)]
    chances = {place: weight / sum(weights) for place, weight in enumerate(weights)}
    drawn = Counter(law.draw() for _ in range(4_000))
    assert misfits([Case(drawn, chances)]) == []


def off_by(values, records, levels):
    """By how many ranks values are off, all ranks of a value being its own."""
    order, aims = np.sort(records), np.array(levels) * len(records)
    under, upto = (np.searchsorted(order, values, side) for side in ("left", "right"))
    return np.maximum(np.maximum(under - aims, aims - upto), 0)


MANY = np.arange(1, 100) / 100


@each_case("relation", ["replace_one", "add_remove"])
@each_case("zeros", [0.0, 1 / 3])
def test_many_levels_have_a_small_error_in_ranks(zeros, relation):
    """The figures of the guide, for which shares of each level's own have .3."""
    rng, errors = np.random.default_rng(3), []
    incomes = np.exp(rng.normal(10, 1, 9_000)).clip(0, 1e6)
    incomes[rng.random(9_000) < zeros] = 0
    for seed in range(3):
        released = statistics.quantiles(
            incomes, MANY, low=0, high=1e6, epsilon=0.1, neighbors=relation, random_state=seed
        )
        assert (np.diff(released.value) >= 0).all()
        errors.append(off_by(released.value, incomes, MANY).mean() / 9_000)
    assert np.mean(errors) < (0.045 if zeros else 0.02)
    assert "cuts deep" in released.record.mechanism
    assert released.record.epsilon == 0.1


def test_a_value_of_many_records_is_cut_at_the_right_rank():
    ages = np.repeat([20.0, 35.0, 50.0], 30_000)
    levels = np.arange(1, 10) / 10
    released = statistics.quantiles(ages, levels, low=0, high=100, steps=100, epsilon=1.0)
    assert released.value.tolist() == [20] * 3 + [35] * 3 + [50] * 3


@each_case("relation", ["replace_one", "add_remove"])
@each_case("n", [0, 1, 2, 300])
def test_errors_of_a_recursion_are_no_larger_than_is_stated(n, relation):
    if not n and relation == "replace_one":
        return
    rng, coins, misses = np.random.default_rng(n), np.random.default_rng(1), []
    for _ in range(30):
        records = rng.integers(0, 4, n) * 25.0
        released = statistics.quantiles(
            records, MANY[9::10], low=0, high=100, epsilon=2.0, neighbors=relation,
            confidence=0.8, random_state=coins,
        )  # fmt: skip
        misses.append(off_by(released.value, records, released.levels).max() > released.rank_error)
    assert np.mean(misses) < 0.3


@pytest.mark.parametrize("relation", ["replace_one", "add_remove"])
def test_intervals_of_a_recursion_cover_when_counted(relation):
    records = np.random.default_rng(0).normal(size=4_000)
    coins, misses, off = np.random.default_rng(1), [], []
    levels = MANY[4::5]
    truth = np.quantile(records, levels)
    for _ in range(15):
        released = statistics.quantiles(
            records, levels, low=-5, high=5, epsilon=2.0, interval=True, confidence=0.8,
            neighbors=relation, random_state=coins,
        )  # fmt: skip
        assert (released.low <= released.value).all()
        assert (released.value <= released.high).all()
        misses += [*(released.low > truth + 1e-4), *(released.high < truth - 1e-4)]
        off.append(off_by(released.value, records, levels).max() > released.rank_error)
    assert np.mean(misses) < 0.25
    assert released.rank_error < 400
    middle = slice(3, -3)
    assert (released.high - released.low)[middle].max() < 1


def test_sums_of_laplace_noise_have_the_bound_of_chernoff():
    """Against the exact law, by convolution; and not far above it."""
    scale, reach = 3.0, 400
    decay = math.exp(-1 / scale)
    values = np.arange(-reach, reach + 1)
    mass = (1 - decay) / (1 + decay) * decay ** np.abs(values)
    law = mass
    for _ in range(4):
        law = np.convolve(law, mass)
    weights, many = np.array([[1.0, -1.0, 2.0], [0.0, 1.0, 0.0]]), np.array([[5, 2, 0], [3, 3, 4]])
    bounds = release_noise.bound_sums(Fraction(3), weights, many, [0.01])[0]
    tail = law[len(law) // 2 + math.floor(bounds[0]) + 1 :].sum()
    assert 0.0005 < tail <= 0.01
    assert bounds[1] == bounds[0]
    assert bounds[2] == 0


def test_few_levels_are_chosen_one_by_one():
    def mechanism(levels):
        released = statistics.quantiles(np.arange(900.0), levels, low=0, high=900, epsilon=1.0)
        return released.record.mechanism

    assert "choices" in mechanism([0.2, 0.8])
    assert "choices" in mechanism([0.5, 0.5, 0.5])
    assert "cuts deep" in mechanism([0.25, 0.5, 0.75])


def test_the_depth_falls_with_the_number_of_records_where_it_is_public():
    levels = [Fraction(place, 100) for place in range(1, 100)]

    def depth(n, one_way=False):
        plan = Recursion.plan(levels, Fraction(1, 10), one_way=one_way, fixed=not one_way, n=n)
        return plan.depth

    depths = [depth(n) for n in (100, 1_000, 9_000, 10**5, 10**7)]
    assert depths == sorted(depths)
    assert depths[0] < 3
    assert depths[-1] == 7
    assert depth(None, one_way=True) == 7


WORST = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324]


@each_case("relation", ["replace_one", "add_remove"])
@each_case("interval", [False, True])
@each_case("values", [WORST, [0.0], [4.0] * 7])
def test_private_values_show_in_no_error_warning_or_shape(values, interval, relation):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        released = statistics.quantiles(
            np.array(values), MANY[::10], low=0, high=4, epsilon=1.0, neighbors=relation,
            interval=interval,
        )  # fmt: skip
    assert released.value.shape == (10,)
    assert ((released.value >= 0) & (released.value <= 4)).all()


@each_case("epsilon", [1e-13, 1e-11, 1e6])
@each_case("interval", [False, True])
def test_any_epsilon_is_drawn_for(epsilon, interval):
    released = statistics.quantiles(
        np.arange(100.0), MANY[::10], low=0, high=100, epsilon=epsilon, interval=interval
    )
    assert (np.diff(released.value) >= 0).all()


def test_an_epsilon_that_needs_too_much_noise_is_refused_before_it_is_spent():
    budget = Budget(1.0)
    options = {"low": 0, "high": 100, "epsilon": 1e-30, "budget": budget}
    with pytest.raises(ParameterError, match="more noise than is drawn"):
        statistics.quantiles(np.arange(100.0), MANY, **options)
    assert budget.spent.epsilon == 0


@each_case("levels", [[0, 0, 0.5, 0.5, 1, 1], np.linspace(0, 1, 1001), [1e-9, 0.5, 1 - 1e-9]])
@each_case("n", [1, 2, 500])
def test_levels_may_be_equal_many_or_at_the_ends(levels, n):
    released = statistics.quantiles(np.arange(n), levels, low=0, high=500, epsilon=1.0)
    assert len(released.value) == len(released.levels) == len(levels)
    assert (np.diff(released.value) >= 0).all()


# Integers ----------------------------------------------------------------------------------------


@each_case("levels", [[0.5], [0.1, 0.5, 0.9], MANY])
@each_case("dtype", [np.int8, np.uint16, np.int64, bool])
def test_quantiles_of_integers_are_integers(levels, dtype):
    ages = (np.arange(20_000) % 100).astype(dtype)
    released = statistics.quantiles(ages, levels, low=0, high=120, epsilon=1.0)
    assert (released.value == np.rint(released.value)).all()
    assert "121 points" in released.record.mechanism


def test_the_grid_of_integers_needs_whole_bounds_and_integer_columns():
    ages = np.arange(2_000) % 100
    for more in ({"high": 120.5}, {"steps": 1 << 20}, {"high": 2.0**25}):
        options = {"low": 0, "high": 120, "epsilon": 1.0} | more
        mechanism = statistics.quantiles(ages, [0.5], **options).record.mechanism
        assert "1048577 points" in mechanism
    table = {"age": ages, "size": ages / 7}
    released = statistics.quantiles(table, [0.5], low=0, high=120, epsilon=9.0)
    assert released["age"].value[0] == np.rint(released["age"].value[0])
    assert "121 and 1048577 points" in released["age"].record.mechanism


def test_jobs_of_integers_stand_on_integers_and_refuse_other_parts():
    job = statistics.Job("quantiles", low=0, high=120)
    ages = np.arange(3_000) % 100
    state = sum(job.fold(part) for part in np.array_split(ages, 3))
    released = job.release(state, epsilon=1.0, levels=MANY, random_state=1)
    whole = statistics.quantiles(ages, MANY, low=0, high=120, epsilon=1.0, random_state=1)
    assert released.value.tolist() == whole.value.tolist()
    assert (released.value == np.rint(released.value)).all()
    with pytest.raises(Exception, match="steps"):
        job.fold(ages) + job.fold(ages / 2)
