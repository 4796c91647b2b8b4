"""Shifted columns: what covers, what is called moved or droppable, and what is refused."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import local, transfer
from hdp_fast.exceptions import AgentsExhausted, ParameterError, ShapeError, UtilityWarning
from hdp_fast.local.estimation import advantage
from hdp_fast.transfer.shifts import _Intervals

NAMES = ["same", "moved", "constant", "opposite", "frozen", "rare"]
SOURCE = np.array([0.5, 0.3, 0.0, 1.0, 0.4, 0.005])
TARGET = np.array([0.5, 0.6, 0.5, 0.2, 0.0, 0.006])
RNG = np.random.default_rng(8)


def people(means, n, seed=1):
    return (np.random.default_rng(seed).random((n, len(means))) < means).astype(np.uint8)


def agents(means=TARGET, n=60_000, epsilon=2.0, seed=1):
    return local.Agents(people(means, n, seed), np.zeros(n, int), epsilon=epsilon)


def public(means=SOURCE, names=NAMES):
    return transfer.ColumnMeans.public(means, names=names)


def test_what_moved_and_what_may_be_left_out():
    report = transfer.shifted_columns(public(), agents(), beta=1e-6, random_state=2)
    assert report.moved == ("opposite", "constant", "frozen", "moved")
    # Nothing but what is nearly constant in the source and not in the target.
    assert report.droppable == ("constant", "opposite")
    kinds = {column.name: column.constant_in for column in report.columns}
    assert (kinds["same"], kinds["constant"], kinds["rare"]) == (None, "source", "source")
    for column, mean in zip(report.columns, TARGET, strict=True):
        assert column.target_low <= mean <= column.target_high
        assert column.low <= column.difference <= column.high
        assert column.moved == (column.low > 0 or column.high < 0)
        assert column.agents == 10_000
    assert report.agents_asked == 60_000
    assert report.agents_record.epsilon == 2.0
    assert report.record is None


def test_a_column_that_becomes_constant_is_reported_alone():
    target = np.array([0.5, 0.0])
    report = transfer.shifted_columns([0.5, 0.4], agents(target, 400_000, 4.0), random_state=2)
    assert [column.constant_in for column in report.columns] == [None, "target"]
    assert report.moved == ("x1",)
    assert report.droppable == ()


def test_the_report_is_json_and_has_words():
    report = transfer.shifted_columns(public(), agents(), random_state=2)
    fields = json.loads(report.to_json())
    assert fields["columns"][1]["name"] == "moved"
    assert fields["droppable"] == ["constant", "opposite"]
    assert fields["agents_record"]["neighbors"] == "local"
    assert "4 of 6 columns moved" in repr(report)
    assert "moved: 0.300 -> 0.5" in repr(report)


def test_private_means_are_compared_with_noise_and_sampling():
    rows = people(SOURCE, 50_000)
    means = transfer.release_means(rows, epsilon=0.5, delta=1e-6, names=NAMES, random_state=1)
    report = transfer.shifted_columns(means, agents(), random_state=2)
    assert report.droppable == ("constant", "opposite")
    assert report.record == means.record
    bare = transfer.shifted_columns(public(means.means), agents(), random_state=2)
    for wide, narrow in zip(report.columns, bare.columns, strict=True):
        assert wide.low < narrow.low
        assert wide.high > narrow.high
        assert wide.source_low <= rows.mean(axis=0)[NAMES.index(wide.name)] <= wide.source_high
    assert report.visible > bare.visible


def test_numbers_are_asked_within_their_bounds():
    ages = RNG.integers(18, 91, 40_000).astype(float)
    source = transfer.ColumnMeans.public([54.0, 54.0], low=18, high=90, names=["age", "older"])
    X = np.column_stack([ages, np.minimum(ages + 20, 90)])
    pool = local.Agents(X, np.zeros(len(X), int), epsilon=3.0)
    report = transfer.shifted_columns(source, pool, random_state=1)
    assert report.moved == ("older",)
    scaled = (X[20_000:, 1] - 18).mean() / 72
    assert report.columns[1].target == pytest.approx(scaled, abs=0.03)


# Coverage ----------------------------------------------------------------------------------------


def family_miss(failure, sources, targets, epsilon, answers, divide=True):
    """The exact probability that an interval of any difference misses, with public sources."""
    d, edge = len(sources), Fraction(advantage(epsilon))
    intervals = _Intervals(public(sources, None), failure if divide else failure * d, epsilon)
    ones = np.array(list(itertools.product(range(answers + 1), repeat=d)))
    low, high = intervals.target(ones, np.full(ones.shape, answers))
    hit = ((low <= targets) & (targets <= high)).all(axis=1)
    total = Fraction(0)
    for counts in ones[~hit].tolist():
        law = Fraction(1)
        for k, target in zip(counts, targets, strict=True):
            q = (1 - edge) / 2 + edge * Fraction(target)
            law *= math.comb(answers, k) * q**k * (1 - q) ** (answers - k)
        total += law
    return total


TINY = [t for t in itertools.product([0.0, 0.25, 0.5, 1.0], repeat=2)]  # noqa: C416


def test_all_intervals_cover_at_once_for_every_tiny_target():
    for beta in (0.1, 0.4):
        miss = [family_miss(beta, [0.5, 0.5], t, 4.0, n) for t in TINY for n in (1, 2, 3, 5)]
        assert max(miss) <= beta


def test_a_twin_without_the_union_bound_misses_too_often():
    worst = max(family_miss(0.1, [0.5] * 2, t, 4.0, 5, divide=False) for t in TINY)
    assert worst > 0.1


def test_the_population_of_few_records_is_covered_in_all_columns_at_once():
    """Records alone, without noise: every number of ones that they may have in a column."""
    n, d, beta = 12, 4, 0.4
    ends = []
    for ones in range(n + 1):
        records = dataclasses.replace(public(np.full(d, ones / n), None), n=n)
        ends.append([end[0] for end in _Intervals(records, beta, 1.0).source()])
    low, high = np.array(ends).T
    for mean in np.linspace(0, 1, 21):
        law = [math.comb(n, k) * mean**k * (1 - mean) ** (n - k) for k in range(n + 1)]
        missed = np.array(law)[(low > mean) | (high < mean)].sum()
        assert d * missed <= beta / 2


def test_false_alarms_and_misses_are_as_rare_as_beta_says():
    """Thousands of reports at once: the answers come from the mechanism itself."""
    runs, each, beta, epsilon = 2_000, 60, 0.2, 1.0
    truth = np.array([0.02, 0.5, 0.9])
    bits = (RNG.random((runs, each, 3)) < truth).reshape(-1)
    answers = local.randomized_response(bits, epsilon=epsilon).reshape(runs, each, 3)
    intervals = _Intervals(public(truth, None), beta, epsilon)
    ones = answers.sum(axis=1, dtype=np.int64)
    low, high = intervals.target(ones, np.full(ones.shape, each))
    false_alarms = ((low > truth) | (high < truth)).any(axis=1).sum()
    # Binomial of 2,000 and .2: above 487 has a probability below 1e-6.
    assert false_alarms <= 487
    # A variant at a hundredth of the level of confidence would raise far more.
    twin = _Intervals(public(truth, None), 0.9, epsilon)
    low, high = twin.target(ones, np.full(ones.shape, each))
    assert ((low > truth) | (high < truth)).any(axis=1).sum() > 487


def test_differences_of_populations_cover_with_a_private_source():
    misses, runs, beta = 0, 25, 0.2
    for seed in range(runs):
        rows = people(SOURCE, 400, seed)
        means = transfer.release_means(rows, epsilon=2.0, delta=1e-3, random_state=seed)
        report = transfer.shifted_columns(
            means, agents(n=600, epsilon=3.0, seed=seed + 100), beta=beta, random_state=seed
        )
        truth = TARGET - SOURCE
        misses += not all(
            column.low <= difference <= column.high
            for column, difference in zip(report.columns, truth, strict=True)
        )
    # Binomial of 25 and .2: above 16 has a probability below 1e-6.
    assert misses <= 16


# Plans -------------------------------------------------------------------------------------------


def test_a_plan_makes_the_shift_show():
    plan = transfer.plan_shifts(6, shift=0.2, agents_epsilon=2.0, beta=1e-3)
    assert 6 * plan.agents_per_column == plan.N
    target = np.full(6, 0.5)
    target[3] = 0.705
    report = transfer.shifted_columns(
        public(np.full(6, 0.5)), agents(target, plan.N), beta=1e-3, random_state=4
    )
    assert report.visible == pytest.approx(0.2, rel=1e-3)
    assert report.moved == ("opposite",)


def test_a_plan_grows_with_silence_noise_and_columns():
    least = transfer.plan_shifts(6, shift=0.2, agents_epsilon=1.0)
    assert (
        pytest.approx(4 * least.N, rel=1e-3)
        == transfer.plan_shifts(6, shift=0.1, agents_epsilon=1.0).N
    )
    assert transfer.plan_shifts(6, shift=0.2, agents_epsilon=1.0, response_rate=0.5).N >= 2 * (
        least.N
    )
    assert transfer.plan_shifts(6, shift=0.2, agents_epsilon=1.0, source_width=0.05).N > 4 * (
        least.N
    )
    more = transfer.plan_shifts(600, shift=0.2, agents_epsilon=1.0)
    assert least.agents_per_column < more.agents_per_column < 3 * least.agents_per_column
    assert json.loads(least.to_json())["N"] == least.N


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"columns": 0}, "columns = 0"),
        ({"shift": 0}, "shift = 0"),
        ({"shift": 1}, "shift = 1"),
        ({"shift": 0.2, "source_width": 0.1}, "twice the source_width"),
        ({"source_width": -1}, "source_width = -1"),
        ({"agents_epsilon": 0}, "epsilon = 0"),
        ({"beta": 2}, "beta = 2"),
        ({"response_rate": 0}, "response_rate = 0"),
        ({"shift": 1e-12}, "shift = 1e-12"),
    ],
)
def test_bad_plans_are_refused(changes, words):
    with pytest.raises(ParameterError, match=words):
        transfer.plan_shifts(**{"columns": 6, "shift": 0.2, "agents_epsilon": 1.0, **changes})


# People who answer, or do not --------------------------------------------------------------------


def test_remote_agents_answer_a_question_each_in_one_round():
    records = people(TARGET, 30_000)
    asked = []

    def ask(text, count):
        first = sum(asked)
        asked.append(count)
        mine = records[first : first + count]
        reports = local.draw_reports(text, mine, np.zeros(count, int), epsilon=3.0)
        return reports[: count * 7 // 10]

    pool = local.RemoteAgents(ask, epsilon=3.0, count=30_000, response_rate=0.7)
    report = transfer.shifted_columns(public(), pool, beta=1e-6)
    assert asked == [30_000]
    assert sum(column.agents for column in report.columns) == 21_000
    assert all(column.agents == pytest.approx(3_500, abs=400) for column in report.columns)
    assert report.droppable == ("constant", "opposite")


def test_silence_is_reported_and_never_divides_by_zero():
    pool = local.RemoteAgents(lambda text, count: [], epsilon=1.0, count=60)
    with pytest.warns(UtilityWarning):
        report = transfer.shifted_columns(public(), pool)
    for column in report.columns:
        assert (column.target, column.difference, column.moved) == (None, None, False)
        assert (column.target_low, column.target_high) == (0, 1)
    assert report.moved == report.droppable == ()
    json.loads(report.to_json(), parse_constant=pytest.fail)


def test_an_interrupted_call_goes_on_and_asks_nobody_twice(tmp_path):
    """A line that breaks after some answers, in a process that then ends."""
    asked, broken = [], [True]

    def ask(text, count):
        asked.append(text)
        reports = local.draw_reports(text, np.zeros((count, 6)), np.zeros(count), epsilon=3.0)
        yield reports[:5_000]
        if broken:
            raise ConnectionError

    state = tmp_path / "state.db"
    for _ in range(2):
        pool = local.RemoteAgents(ask, epsilon=3.0, count=7_000, state=state)
        if broken:
            with pytest.raises(ConnectionError):
                transfer.shifted_columns(public(), pool, count=6_000)
            broken.clear()
        else:
            report = transfer.shifted_columns(public(), pool, count=6_000)
    assert len(asked) == 1
    assert sum(column.agents for column in report.columns) == 5_000
    assert pool.remaining == 1_000


# Notes and bad input -----------------------------------------------------------------------------


def test_few_agents_are_noted_before_anybody_is_asked():
    with pytest.warns(UtilityWarning, match="count = 60 agents are 10 for each of 6 columns"):
        transfer.shifted_columns(public(), agents(), count=60, random_state=1)


def test_noise_that_hides_constant_columns_is_noted():
    means = transfer.release_means(people(SOURCE, 200), epsilon=0.1, delta=1e-6, random_state=1)
    with pytest.warns(UtilityWarning, match="no column is sure to be called nearly constant"):
        report = transfer.shifted_columns(means, agents(), random_state=1)
    assert (report.constant, report.droppable) == (0.02, ())


def test_enough_agents_are_silent(recwarn):
    transfer.shifted_columns(public(), agents())
    assert not list(recwarn)


@each_case(
    ("changes", "kind", "words"),
    [
        ({"source": people(SOURCE, 9)}, ShapeError, "release_means first"),
        ({"source": [0.5]}, ShapeError, "agents have 6 columns, but source has 1"),
        ({"source": SOURCE + 0.5}, ParameterError, "source has an entry out of its bounds"),
        ({"source": None}, ParameterError, "source is None"),
        ({"agents": people(TARGET, 9)}, ParameterError, "it must be local.Agents"),
        ({"count": 5}, AgentsExhausted, "each of the 6 columns needs an agent"),
        ({"count": 70_000}, AgentsExhausted, "60,000 agents are left"),
        ({"count": 0.5}, ParameterError, "count = 0.5"),
        ({"beta": 0}, ParameterError, "beta = 0"),
        ({"constant": 0}, ParameterError, "constant = 0"),
        ({"constant": 0.2}, ParameterError, "constant = 0.2"),
        ({"random_state": "x"}, ParameterError, "random_state"),
    ],
)
def test_bad_input_is_refused_before_anybody_is_asked(changes, kind, words):
    pool = agents()
    with pytest.raises(kind, match=words):
        transfer.shifted_columns(**{"source": public(), "agents": pool, **changes})
    assert pool.remaining == 60_000
