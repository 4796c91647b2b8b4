"""Certificates: exact intervals, two models, constants, and agents who do not answer."""

import json
import math
from fractions import Fraction
from itertools import combinations_with_replacement
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each_case

from hdp_fast import _core, learners, local, transfer
from hdp_fast._support import binomial
from hdp_fast._support.binomial import clopper_pearson
from hdp_fast.exceptions import AgentsExhausted, ParameterError, UtilityWarning
from hdp_fast.local.estimation import answers_for_width, bound_all, estimate_exactly

EPSILON, BETA = 1.0, 0.05
# What an end excludes among equal coins, for half of beta among all.
TAIL, TINY = -math.expm1(-BETA / 2), Fraction(1, 10**12)
RULES = [
    {"kind": "conjunction", "features": [i], "values": [1], "complement": False} for i in (0, 1)
]
X = np.random.default_rng(0).integers(0, 2, (30_000, 2), dtype=np.uint8)


def truth(epsilon=EPSILON):
    return Fraction(_core.truth_probability(epsilon), 1 << 64)


class Rule:
    def __init__(self, column):
        self.hypothesis = RULES[column]
        self.column = column

    def predict(self, X):
        return np.asarray(X)[:, self.column]


# The interval, in exact fractions ---------------------------------------------------------------


def law_of_sum(probabilities):
    """The law of the number of ones among independent coins, exactly."""
    law = [Fraction(1)]
    for q in probabilities:
        padded = [*law, Fraction(0)]
        law = [padded[k] * (1 - q) + (padded[k - 1] * q if k else 0) for k in range(len(padded))]
    return law


def misses(interval, mean, law):
    """The probability with which the interval, a function of the number of ones, misses."""
    ends = map(interval, range(len(law)))
    return sum(p for (low, high), p in zip(ends, law, strict=True) if not low <= mean <= high)


def exact(count, beta=BETA, epsilon=EPSILON):
    return lambda ones: estimate_exactly(ones, count, beta=beta, epsilon=epsilon)[1:]


def not_unbiased(count):
    """Broken: the interval of the randomized bits as one of the true ones."""
    return lambda ones: clopper_pearson(ones, count, BETA)


def wilson(count):
    """Broken: the normal approximation."""

    def interval(ones):
        z, share, edge = 1.959964, ones / count, float(2 * truth() - 1)
        center = (share + z * z / (2 * count)) / (1 + z * z / count)
        spread = z / (1 + z * z / count)
        spread *= math.sqrt(share * (1 - share) / count + z * z / (4 * count**2))
        ends = ((end - (1 - edge) / 2) / edge for end in (center - spread, center + spread))
        return [min(max(end, 0.0), 1.0) for end in ends]

    return interval


def population_means(interval, count):
    """A grid, and the places where an interval ends: there it misses most often."""
    ends = {end for ones in range(count + 1) for end in interval(ones)}
    around = {step for end in ends for step in (end - 1e-12, end + 1e-12)}
    return [Fraction(mean) for mean in {*around, *np.linspace(0, 1, 21)} if 0 <= mean <= 1]


def worst_miss(interval, count):
    """Over the means of populations of whom the agents are a sample."""
    p, worst = truth(), Fraction(0)
    for mean in population_means(interval, count):
        q = (1 - p) + (2 * p - 1) * mean
        law = [math.comb(count, k) * q**k * (1 - q) ** (count - k) for k in range(count + 1)]
        worst = max(worst, misses(interval, mean, law))
    return worst


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_the_interval_misses_a_population_seldom_enough(count):
    assert worst_miss(exact(count), count) <= BETA


@pytest.mark.parametrize("make", [not_unbiased, wilson])
def test_broken_intervals_miss_too_often(make):
    assert worst_miss(make(9), 9) > BETA


@pytest.mark.parametrize("count", [1, 3, 8, 12])
def test_the_interval_misses_these_agents_seldom_enough(count):
    """Whatever the number of agents with a true 1 is, and the population plays no part."""
    p = truth()
    for ones in range(count + 1):
        law = law_of_sum([p] * ones + [1 - p] * (count - ones))
        assert misses(exact(count), Fraction(ones, count), law) <= BETA


def worst_side(qs, interval):
    """The larger of the probabilities with which either end misses the mean of the coins."""
    law, mean = law_of_sum(qs), sum(qs) / len(qs)
    ends = [tuple(map(Fraction, interval(ones))) for ones in range(len(law))]
    low = sum(p for p, (end, _) in zip(law, ends, strict=True) if end > mean)
    return max(low, sum(p for p, (_, end) in zip(law, ends, strict=True) if end < mean))


def equal_coins_alone(count, tail):
    """Broken for unequal coins: the ends that equal coins miss with probability `tail`."""

    def interval(ones):
        low, high = (binomial._least_probability(k, count, tail) for k in (ones, count - ones))
        return low, 1 - high

    return interval


def test_ends_for_equal_coins_miss_the_mean_of_unequal_ones_too_often():
    """Nine people who hold a 1, and one whose answer was rounded at random: the miss is .0252."""
    coins = [truth(8.0)] * 9 + [Fraction("0.977735")]
    exactly = worst_side(coins, equal_coins_alone(10, BETA / 2))
    assert 0.0252 < exactly < 0.02522
    assert worst_side(coins, lambda ones: clopper_pearson(ones, 10, BETA)) <= Fraction(BETA) / 2


@pytest.mark.thorough(cases=8)
@pytest.mark.parametrize("beta", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("count", range(1, 9))
def test_no_mixture_of_coins_is_missed_more_often_than_allowed(beta, count):
    """All mixtures on a grid, and those whose mean is next to an end: there it is missed most."""
    steps = 8 if count < 6 else 4
    grid = [Fraction(k, steps) for k in range(steps + 1)]
    interval = [clopper_pearson(ones, count, beta) for ones in range(count + 1)]
    means = {Fraction(end) + step for pair in interval for end in pair for step in (-TINY, TINY)}
    worst = Fraction(0)
    for rest in combinations_with_replacement(grid, count - 1):
        last = {count * mean - sum(rest) for mean in means} | ({*grid} if count < 6 else set())
        for coin in (coin for coin in last if 0 <= coin <= 1):
            worst = max(worst, worst_side([*rest, coin], interval.__getitem__))
    assert worst <= Fraction(beta) / 2
    # No end gives away more than what unequal coins take.
    if count > 1 and beta < 0.5:
        assert worst > 0.99 * beta / 2


def test_ends_are_missed_with_half_of_beta_each():
    for count, ones in ((7, 3), (40, 1), (200, 130)):
        low, high = (Fraction(end) for end in clopper_pearson(ones, count, BETA))
        for end, tail in ((low, range(ones, count + 1)), (high, range(ones + 1))):
            p = sum(math.comb(count, k) * end**k * (1 - end) ** (count - k) for k in tail)
            assert TAIL * (1 - 1e-6) <= p <= TAIL


def test_no_ones_and_nothing_but_ones():
    assert clopper_pearson(0, 10, 0.1)[0] == 0
    assert clopper_pearson(10, 10, 0.1)[1] == 1
    high = 1 - (-math.expm1(-0.05)) ** 0.1
    assert clopper_pearson(0, 10, 0.1)[1] == pytest.approx(high, rel=1e-9)


@each_case("epsilon", [0.1, 1.0, 5.0])
@each_case("count", [1, 10, 1000, 100_000])
def test_the_interval_is_never_wider_than_hoeffdings(count, epsilon):
    for ones in {0, 1, count // 3, count // 2, count - 1, count}:
        answers = np.arange(count) < ones
        value, low, high = local.estimate_mean(answers, beta=BETA, epsilon=epsilon)
        mine = estimate_exactly(ones, count, beta=BETA, epsilon=epsilon)
        assert mine.value == pytest.approx(value, abs=1e-12)
        assert low - 1e-12 <= mine.low <= mine.high <= high + 1e-12


def test_large_numbers_of_agents_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    for count, ones in ((10**4, 3), (10**6, 700_000), (10**8, 12_345_678)):
        low, high = clopper_pearson(ones, count, BETA)
        expected = stats.beta.ppf(
            [TAIL, 1 - TAIL], [ones, ones + 1], [count - ones + 1, count - ones]
        )
        assert low <= expected[0] * (1 + 1e-12)
        assert high >= expected[1] * (1 - 1e-12)
        assert np.allclose([low, high], expected, rtol=1e-4, atol=0)


@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_one_bit_about_the_difference_beats_half_of_the_agents_each(epsilon):
    p, count = float(truth(epsilon)), 4000
    for first in (0.2, 0.4):  # no interval is cut off at 0
        for second in (0.2, 0.3):
            half = [(1 - p) + (2 * p - 1) * error for error in (first, second)]
            widths = [
                np.diff(exact(count // 2, BETA / 2, epsilon)(round(q * count / 2))) for q in half
            ]
            q = (1 - p) + (2 * p - 1) * (1 + first - second) / 2
            assert 2 * np.diff(exact(count, BETA, epsilon)(round(q * count))) < sum(widths)


# Certificates ------------------------------------------------------------------------------------


def test_coins_of_the_compiled_module_are_covered():
    """4,000 surveys of 150 agents each, of whom 30 are wrong."""
    runs, count = 4_000, 150
    wrong = np.tile(np.arange(count) < 30, runs)
    answers = local.randomized_response(wrong, epsilon=EPSILON, random_state=5)
    table = [exact(count)(ones) for ones in range(count + 1)]
    low, high = np.array(table)[answers.reshape(runs, count).sum(axis=1, dtype=int)].T
    missed = ((low > 0.2) | (high < 0.2)).mean()
    assert missed <= BETA + 4 * math.sqrt(BETA / runs)
    assert missed > 0.01  # not wider than it has to be


def test_the_error_of_a_model_beside_the_better_constant():
    y = X[:, 0] ^ (np.arange(len(X)) % 10 == 0)
    agents = local.Agents(X, y.astype(np.uint8), epsilon=2.0)
    certificate = transfer.certify(Rule(0), agents, random_state=1)
    assert (certificate.measured, certificate.agents, agents.remaining) == ("error", 24_000, 0)
    assert certificate.low < 0.1 < certificate.high
    assert certificate.constants.agents == 6_000
    assert certificate.constants.low <= 0.5 == certificate.constants.high
    assert certificate.beats_constant
    assert not certificate.prefers_constant
    assert certificate.better is None
    assert "better than a constant's" in repr(certificate)
    fields = json.loads(certificate.to_json())
    assert fields["agents_record"]["epsilon"] == 2.0
    assert fields["constants"]["agents"] == 6_000


def test_what_does_not_beat_a_constant_is_said():
    agents = local.Agents(X, np.zeros(len(X), int), epsilon=1.0)
    with pytest.warns(UtilityWarning, match=r"better constant's is .*: predict a constant"):
        certificate = transfer.certify(Rule(0), agents, count=4_000, random_state=2)
    assert not certificate.beats_constant
    assert certificate.prefers_constant
    assert "not shown better than a constant's" in repr(certificate)
    assert agents.remaining == 26_000


def test_two_models_are_compared():
    agents = local.Agents(X, X[:, 0], epsilon=1.0)
    certificate = transfer.certify(Rule(0), agents, other=Rule(1), count=9_000, random_state=3)
    assert (certificate.measured, certificate.better) == ("difference", "model")
    assert certificate.low < -0.5 < certificate.high < 0
    assert certificate.constants is None
    again = transfer.certify(Rule(1), agents, other=Rule(0), count=9_000, random_state=4)
    assert again.better == "other"
    with pytest.warns(UtilityWarning, match="holds 0"):
        same = transfer.certify(Rule(1), agents, other=Rule(1), random_state=5)
    assert same.better is None
    assert "not shown which is better" in repr(same)


def test_losses_of_the_model_and_of_the_caller():
    learner = learners.PrivateSGD(loss="logistic", steps=200, batch_size=20, epsilon=math.inf)
    rows = X[:20_000].astype(float)
    model = learner.learn(rows, X[:20_000, 0])
    agents = local.Agents(rows, X[:20_000, 0], epsilon=2.0)
    certificate = transfer.certify(model, agents, count=9_000, random_state=1)
    mean = model.losses(rows, X[:20_000, 0]).mean()
    assert certificate.measured == "loss"
    assert certificate.low < mean < certificate.high
    assert certificate.agents == 9_000  # the loss of weights 0 needs no agents
    assert certificate.constants.agents == 0
    brier = transfer.certify(
        lambda X: np.full(len(X), 0.5),
        agents,
        loss=lambda shares, y: (shares - y) ** 2,
        random_state=1,
    )
    assert brier.measured == "loss"
    assert brier.low < 0.25 < brier.high
    assert brier.constants is None


def test_losses_out_of_range_are_clipped_and_missing_ones_count_as_1():
    agents = local.Agents(X[:3], X[:3, 0], epsilon=40.0)
    odd = [math.nan, 7.0, -2.0]
    certificate = transfer.certify(lambda X: odd[: len(X)], agents, loss=lambda values, y: values)
    assert certificate.value == pytest.approx(2 / 3)


def remote(y, share, epsilon=2.0, count=4_000, **more):
    def ask(text, k):
        asked.append((json.loads(text), k))
        return local.draw_reports(text, X[:k], y[:k], epsilon=epsilon)[: round(k * share)]

    asked = []
    agents = local.RemoteAgents(ask, epsilon=epsilon, count=count, response_rate=share, **more)
    return agents, asked


def test_remote_agents_are_sent_descriptions_and_may_be_silent():
    agents, asked = remote(X[:, 0], 0.5)
    certificate = transfer.certify(Rule(0), agents)
    assert certificate.agents + certificate.constants.agents == 2_000
    assert certificate.agents == pytest.approx(1_600, abs=120)
    assert certificate.asked == pytest.approx(3_200, abs=120)
    (stage, k), kinds = asked[0], ["conjunction", "query"]
    assert (k, [query["kind"] for query in stage["queries"]]) == (4_000, kinds)
    assert certificate.high < 0.1
    agents, asked = remote(X[:, 0], 1.0)
    assert transfer.certify(Rule(0), agents, other=Rule(1)).better == "model"
    assert asked[0][0]["queries"][0]["terms"][0]["kind"] == "worse"


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("count", [1, 4, 7])
def test_whoever_is_silent_the_wide_interval_misses_seldom_enough(count):
    """Silence may follow the very bits: the worst of all ways to choose who answers, exactly."""
    p = truth()
    for ones in range(count + 1):
        miss, naive = Fraction(0), Fraction(0)
        law = law_of_sum([p] * ones + [1 - p] * (count - ones))
        for sent, chance in enumerate(law):
            # Any part of the ones and of the zeros may arrive.
            parts = [(k, k + j) for k in range(sent + 1) for j in range(count - sent + 1)]
            ends = [bound_all(*part, count, beta=BETA, epsilon=EPSILON) for part in parts]
            miss += chance * any(not low <= Fraction(ones, count) <= high for low, high in ends)
            some = [exact(n)(k) for k, n in parts if n]
            naive += chance * any(not low <= Fraction(ones, count) <= high for low, high in some)
        assert miss <= BETA
        assert count < 7 or naive > BETA


def test_with_all_answers_both_intervals_are_the_same():
    agents = local.Agents(X, X[:, 1], epsilon=2.0)
    certificate = transfer.certify(Rule(0), agents, random_state=1)
    assert (certificate.low_any, certificate.high_any) == (certificate.low, certificate.high)
    assert "whoever" not in repr(certificate)


@pytest.mark.parametrize("compared", [False, True])
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_those_who_send_one_bit_more_readily_are_within_the_wide_interval_alone(compared):
    """Seven of ten answer whose bit is 0, five of ten whose bit is 1: allowed by privacy."""

    def ask(text, k):
        reports = local.draw_reports(text, X[:k], X[:k, 1], epsilon=2.0)
        return [one for i, one in enumerate(reports.tolist()) if i % 10 < (5 if one & 1 else 7)]

    agents = local.RemoteAgents(ask, epsilon=2.0, count=20_000, response_rate=0.6)
    other = {"other": Rule(1)} if compared else {}
    certificate = transfer.certify(Rule(0), agents, count=20_000, **other)
    assert certificate.agents < certificate.asked
    assert not certificate.low <= 0.5 <= certificate.high
    assert certificate.low_any <= 0.5 <= certificate.high_any
    ends = f"[{certificate.low_any:.3f}, {certificate.high_any:.3f}] whoever did not answer"
    assert ends in repr(certificate)
    assert f"{certificate.agents:,} of {certificate.asked:,} agents" in repr(certificate)
    assert json.loads(certificate.to_json())["high_any"] == certificate.high_any


def test_liars_move_no_certificate_out_of_the_interval_that_allows_for_them():
    """Of 20,000 people 1,500 send a 1: most of them that the rule errs, which it never does."""

    def ask(text, k):
        reports = local.draw_reports(text, X[:k], X[:k, 0], epsilon=1.0)
        reports[:1500] |= 1
        return reports

    def certify(**more):
        agents = local.RemoteAgents(ask, epsilon=1.0, count=20_000)
        return transfer.certify(Rule(0), agents, beta=1e-6, **more)

    plain, wide = certify(), certify(liars=1500)
    assert (plain.liars, plain.low_any, plain.high_any) == (0, plain.low, plain.high)
    assert plain.low > 0
    assert wide.low_any == 0 < wide.low < wide.high < wide.high_any < 0.45
    ends = f"[{wide.low_any:.3f}, {wide.high_any:.3f}] if up to 1,500 lie"
    assert ends in repr(wide)
    assert json.loads(wide.to_json())["liars"] == 1500
    with pytest.raises(ParameterError, match=r"liars = -1"):
        certify(liars=-1)


def test_statistics_and_descriptions_are_sent_and_certified():
    features = learners.FeatureMap.scaling([(0, 1), (0, 1)])
    statistics = learners.SufficientStatistics(features, classes=[0, 1])
    released = statistics.release(X[:9_000], X[:9_000, 0], epsilon=20.0, delta=1e-6)
    model = released.solve(pool=X[:999])
    assert (model.predict(X) == X[:, 0]).all()
    agents, asked = remote(X[:, 0], 1.0, count=9_000)
    assert transfer.certify(model, agents, count=4_000).high < 0.15
    assert asked[0][0]["queries"][0]["terms"][0]["model"]["kind"] == "statistics"
    assert transfer.certify(model, agents, other=RULES[1], count=4_000).better == "model"
    assert transfer.certify(RULES[0], agents, count=1_000).agents == pytest.approx(800, abs=70)
    assert asked[-1][0]["queries"][0] == RULES[0]
    people = local.Agents(X.astype(float), X[:, 0], epsilon=2.0)
    assert transfer.certify(RULES[0], people, other=model, count=20_000, beta=1e-9).better is None
    assert transfer.certify(RULES[0], people, count=10_000).high < 0.15
    with pytest.raises(ParameterError):
        transfer.certify({"kind": "none"}, people)


def test_silence_of_all_is_an_error_and_costs_nothing_more():
    agents, asked = remote(X[:, 0], 1.0)
    agents = local.RemoteAgents(lambda text, k: [], epsilon=1.0, count=100)
    with pytest.warns(UtilityWarning), pytest.raises(AgentsExhausted, match=r"none of [78]"):
        transfer.certify(Rule(0), agents)
    assert not asked


def test_a_certificate_that_was_interrupted_is_taken_up(tmp_path):
    """The process ends when four in five have answered; no one is asked again."""

    def ask(text, k):
        asked.append(json.loads(text)["kind"])
        yield local.draw_reports(text, X[:k], X[:k, 0], epsilon=2.0)[:320]
        raise KeyboardInterrupt

    asked, place = [], tmp_path / "agents.db"
    pool = {"epsilon": 2.0, "count": 480, "state": place}
    agents = local.RemoteAgents(ask, **pool)
    with pytest.raises(KeyboardInterrupt):
        transfer.certify(Rule(0), agents, count=400)
    new = local.RemoteAgents(ask, **pool)
    again = transfer.certify(Rule(0), new, count=400)
    assert (again.agents + again.constants.agents, new.remaining) == (320, 80)
    assert asked == ["stage"]


@pytest.mark.parametrize("width", [0.3, 0.1])
def test_a_plan_is_the_least_number_that_keeps_every_interval_narrow(width):
    def widest(answers):
        edge = float(2 * truth() - 1)
        ends = [clopper_pearson(ones, answers, BETA) for ones in range(answers + 1)]
        return max(high - low for low, high in ends) / edge / 2

    least = answers_for_width(width, beta=BETA, epsilon=EPSILON, wanted="width")
    assert widest(least) <= width < widest(least - 1)


def test_a_plan_for_a_beta_above_a_half_is_the_one_for_a_half():
    plans = [transfer.agents_to_certify(0.1, epsilon=1.0, beta=beta) for beta in (0.5, 0.9)]
    assert plans[0] == plans[1] > 100


@pytest.mark.parametrize(
    ("width", "epsilon"), [(0.05, 1.0), (0.001, 1.0), (1e-5, 4.0), (1e-7, 1.0)]
)
def test_a_plan_is_never_larger_than_hoeffdings(width, epsilon):
    answers = answers_for_width(width, beta=BETA, epsilon=epsilon, wanted="width")
    most = local.agents_needed(alpha=width, beta=BETA, epsilon=epsilon)
    assert 0.5 * most < answers <= most
    if answers < 10**9:
        low, high = clopper_pearson(answers // 2, answers, BETA)
        edge = float(2 * truth(epsilon) - 1)
        assert width * 0.995 < (high - low) / 2 / edge <= width


def test_certificates_are_as_narrow_as_planned():
    half = np.arange(len(X)) % 2
    for rate in (1.0, 0.5):
        count = transfer.agents_to_certify(0.05, epsilon=2.0, response_rate=rate)
        agents, _ = remote(half, rate, count=count)
        certificate = transfer.certify(Rule(0), agents)
        # Whose question it is, is drawn: a few per cent more or fewer.
        assert certificate.agents == pytest.approx(0.8 * rate * count, rel=0.1)
        assert certificate.half_width == pytest.approx(0.05, rel=0.05)
    count = transfer.agents_to_certify(0.1, epsilon=1.0, compared=True)
    agents = local.Agents(X, half, epsilon=1.0)
    two = transfer.certify(Rule(0), agents, other=Rule(1), count=count, random_state=1)
    assert 0.099 < two.half_width <= 0.1
    for change in ({"half_width": 0}, {"beta": 1}, {"epsilon": 0}, {"response_rate": 0}):
        with pytest.raises(ParameterError):
            transfer.agents_to_certify(**{"half_width": 0.1, "epsilon": 1.0} | change)
    with pytest.raises(ParameterError, match=r"half_width = 1e-09"):
        transfer.agents_to_certify(1e-9, epsilon=0.1)


def test_more_agents_for_a_width():
    agents = local.Agents(X, X[:, 0] ^ (np.arange(len(X)) % 2), epsilon=1.0)
    certificate = transfer.certify(Rule(0), agents, count=2_000, random_state=1)
    assert certificate.more_agents(0.5) == 0
    needed = answers_for_width(0.01, beta=BETA, epsilon=1.0, wanted="")
    assert certificate.more_agents(0.01) == needed - 1_600
    two = transfer.certify(Rule(0), agents, other=Rule(1), count=2_000, random_state=1)
    needed = answers_for_width(0.005, beta=BETA, epsilon=1.0, wanted="")
    assert two.more_agents(0.01) == needed - 2_000
    phones, _ = remote(X[:, 1], 0.5)
    certificate = transfer.certify(Rule(0), phones)
    assert certificate.more_agents(certificate.half_width * 0.9) < 0.3 * certificate.asked


@each_case(
    ("change", "error"),
    [
        ({"model": object()}, ParameterError),
        ({"model": lambda X: X}, ParameterError),
        ({"other": object()}, ParameterError),
        ({"loss": 3}, ParameterError),
        ({"count": 0}, ParameterError),
        ({"count": 3}, ParameterError),
        ({"count": 1.5}, ParameterError),
        ({"count": 101}, AgentsExhausted),
        ({"beta": 0}, ParameterError),
        ({"beta": math.nan}, ParameterError),
        ({"random_state": "seed"}, ParameterError),
        ({"agents": X}, ParameterError),
    ],
)
def test_bad_arguments_are_refused_before_anybody_is_asked(change, error):
    agents = local.Agents(X[:100], X[:100, 0], epsilon=1.0)
    arguments = {"model": Rule(0), "agents": agents} | change
    with pytest.raises(error):
        transfer.certify(arguments.pop("model"), arguments.pop("agents"), **arguments)
    assert agents.remaining == 100


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (SimpleNamespace(hypothesis=None, predict=len), {}),
        (Rule(0), {"other": SimpleNamespace(predict=len)}),
        (Rule(0), {"loss": lambda shares, y: y}),
    ],
)
def test_what_remote_agents_cannot_be_sent_is_refused(model, more):
    agents, asked = remote(X[:, 0], 1.0)
    with pytest.raises(ParameterError):
        transfer.certify(model, agents, **more)
    assert not asked
    assert agents.remaining == 4_000


# One record --------------------------------------------------------------------------------------


def compared(agents):
    return transfer.certify(RULES[0], agents, other=RULES[1])


def with_a_loss(agents):
    return transfer.certify(RULES[0], agents, loss=lambda values, y: values != y)


@each_case("certify", [lambda agents: transfer.certify(RULES[0], agents), compared, with_a_loss])
@each_case("entry", [2.0, 0.5, math.nan, math.inf])
def test_no_record_decides_whether_a_certificate_fails(certify, entry):
    """The record counts as wrong, which is all that it can change: 4,000 agents are not lost.

    Answers of 1/2 are rounded by coins: a false alarm is six standard deviations.
    """
    rows = X[:4000].astype(float)
    rows[7, 1] = entry
    agents = local.Agents(rows, X[:4000, 0], epsilon=200.0)
    certificate = certify(agents)
    errors = (X[:4000, :1] != X[:4000]).mean(axis=0)
    truth = errors[0] - errors[1] if certificate.measured == "difference" else errors[0]
    assert certificate.value == pytest.approx(truth, abs=0.1)
    assert certificate.asked >= 3200


def test_a_model_that_fails_on_every_record_is_refused_before_anybody_is_asked():
    def fail(X):
        raise ZeroDivisionError

    model = SimpleNamespace(predict=fail)
    for more in ({}, {"other": model}, {"loss": lambda values, y: values}):
        agents = local.Agents(X[:100], X[:100, 0], epsilon=1.0)
        with pytest.raises(ZeroDivisionError):
            transfer.certify(model, agents, **more)
        assert agents.remaining == 100


# Behind a shuffler -------------------------------------------------------------------------------


def test_a_certificate_tells_both_epsilons_of_the_smaller_mix():
    agents = local.Agents(X, X[:, 0], epsilon=3.0)
    certificate = transfer.certify(Rule(0), agents, count=5_000, shuffled=1e-6)
    labels = certificate.agents_record.shuffled(1_000, delta=1e-6, categories=2)
    assert labels == certificate.shuffled_record
    assert "epsilon 3 against the shuffler, 0.695 against" in repr(certificate)
    compared = transfer.certify(Rule(0), agents, other=Rule(1), count=5_000, shuffled=1e-6)
    assert compared.shuffled_record.epsilon < labels.epsilon
    left = agents.remaining
    with pytest.raises(ParameterError, match="shuffled"):
        transfer.certify(Rule(0), agents, shuffled=2.0)
    assert agents.remaining == left


@each_case("compared", [False, True])
def test_planned_shuffled_answers_are_private_and_enough(compared):
    goal = {"epsilon": 1.0, "compared": compared}
    count = transfer.agents_to_certify(0.05, **goal, shuffled=1e-6)
    assert count < transfer.agents_to_certify(0.05, **goal) / 2
    if not compared:
        plan = transfer.plan_certificate(alpha=0.05, agents_epsilon=1.0, shuffled=1e-6)
        assert count == plan.N
        assert plan.shuffled_record.epsilon <= 1.0 < plan.agents_epsilon
        agents = local.Agents(X[:count], X[:count, 0], epsilon=plan.agents_epsilon)
        certificate = transfer.certify(Rule(0), agents, shuffled=1e-6)
        assert certificate.half_width <= 0.05
        assert certificate.shuffled_record.epsilon <= 1.0
    with pytest.raises(ParameterError, match="response_rate"):
        transfer.agents_to_certify(0.05, **goal, shuffled=1e-6, response_rate=0.5)
