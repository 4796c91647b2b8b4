"""Surveys: exact coverage, simulated surveys, strata, and agents who do not answer."""

import functools
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from lengths import STAT

from hdp_fast import _core, local, plotting, statistics, transfer
from hdp_fast.data import Number, Schema
from hdp_fast.exceptions import AgentsExhausted, ParameterError, ShapeError, UtilityWarning
from hdp_fast.gf2 import BitMatrix
from hdp_fast.local import Query
from hdp_fast.transfer import surveys
from hdp_fast.transfer.surveys import _Answers, _divide, _SurveyPlan

EPSILON, BETA = 2.0, 0.05
STRATA = {"young": Query.between(0, high=50), "old": Query.between(0, low=50)}
WEIGHTS = {"young": 0.7, "old": 0.3}
RNG = np.random.default_rng(8)
AGE = RNG.integers(18, 90, (60_000, 1))
Y = (RNG.random(60_000) < np.where(AGE[:, 0] < 50, 0.2, 0.6)).astype(np.uint8)


def people(count=60_000, epsilon=EPSILON):
    return local.Agents(AGE[:count], Y[:count], epsilon=epsilon)


@pytest.fixture
def fast(monkeypatch):
    """Few counts are possible: each interval is computed once."""
    exact = functools.cache(surveys.estimate_exactly)
    monkeypatch.setattr(surveys, "estimate_exactly", exact)


# Coverage in exact fractions ---------------------------------------------------------------------


def truth(epsilon):
    return Fraction(_core.truth_probability(epsilon), 1 << 64)


def law(count, mean, epsilon):
    p = truth(epsilon)
    q = (1 - p) + (2 * p - 1) * mean
    return [math.comb(count, k) * q**k * (1 - q) ** (count - k) for k in range(count + 1)]


def plan_of(**settings):
    return _SurveyPlan(
        {"y": Query.label()},
        settings.get("strata"),
        settings.get("weights"),
        settings.get("sampled"),
        None,
        settings.get("by_stratum", True),
        people(10),
    )


def estimates(plan, count, cells, epsilon):
    """What a survey says, by how many of `count` agents of each cell answer with a one."""
    return {
        counts: plan.estimate([_Answers(count, count, ones) for ones in counts], BETA, epsilon)
        for counts in itertools.product(range(count + 1), repeat=cells)
    }


def misses(found, count, means, row, true, ends, epsilon):
    """The probability with which a row's interval misses, over all counts of all cells."""
    laws, missed = [law(count, mean, epsilon) for mean in means], Fraction(0)
    for counts, rows in found.items():
        low, high = (getattr(rows[row], end) for end in ends)
        if not low - 1e-12 <= true <= high + 1e-12:
            missed += math.prod(one[k] for one, k in zip(laws, counts, strict=True))
    return missed


PROMISED = ("low", "high"), ("low_all", "high_all")
SHARES = [Fraction(1, 20), Fraction(1, 3), Fraction(9, 10)]


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_a_mean_of_a_stratum_is_missed_seldom_enough(fast, epsilon):
    found = estimates(plan_of(strata={"young": STRATA["young"]}), 5, 2, epsilon)
    for share, mean in itertools.product(SHARES, SHARES):
        for ends in PROMISED:
            cells = [share * mean, share]
            assert misses(found, 5, cells, 0, mean, ends, epsilon) <= BETA


@pytest.mark.thorough(beside="test_a_mean_of_a_stratum_is_missed_seldom_enough")
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_a_post_stratified_mean_is_missed_seldom_enough(fast, epsilon):
    plan = plan_of(strata=STRATA, weights=WEIGHTS, sampled={"young": 0.25, "old": 0.75})
    found = estimates(plan, 6, 2, epsilon)
    for first, second in itertools.product(SHARES, SHARES):
        true = Fraction(0.7) * first + Fraction(0.3) * second
        for ends in PROMISED:
            cells = [first / 4, second * 3 / 4]
            assert misses(found, 6, cells, 2, true, ends, epsilon) <= BETA


@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_a_mean_that_agents_weight_is_missed_seldom_enough(fast, epsilon):
    """The agents' answers are 0, 1/11 and 1: the strata count 1/2 and 11/2 times."""
    sampled = {"young": 0.9, "old": 0.1}
    plan = plan_of(
        strata=STRATA, weights={"young": 0.45, "old": 0.55}, sampled=sampled, by_stratum=False
    )
    ((_, first), (_, second)) = plan.cells[0].query._terms[1].parts
    assert (round(first * 11, 9), second) == (1, 1)
    found = estimates(plan, 9, 1, epsilon)
    for young, old in itertools.product(SHARES, SHARES):
        true = Fraction(0.45) * young + Fraction(0.55) * old
        mean = true / Fraction(plan._scale)
        for ends in PROMISED:
            assert misses(found, 9, [mean], 0, true, ends, epsilon) <= BETA


def test_the_delta_method_misses_too_often(fast):
    plan = plan_of(strata={"young": STRATA["young"]})
    share, mean = Fraction(1, 20), Fraction(9, 10)
    ends = "normal_low", "normal_high"
    assert misses(estimates(plan, 5, 2, 6.0), 5, [share * mean, share], 0, mean, ends, 6.0) > BETA


# Simulated surveys -------------------------------------------------------------------------------


def simulate(plan, count, means, runs):
    """Rows of simulated surveys: only the coins are drawn, all at once."""
    p = float(truth(EPSILON))
    ones = np.random.default_rng(9).binomial(
        count, (1 - p) + (2 * p - 1) * np.array(means), (runs, len(means))
    )
    for counts in ones.tolist():
        yield plan.estimate([_Answers(count, count, k) for k in counts], BETA, EPSILON)


@pytest.mark.thorough(beside="test_coins_of_the_compiled_module_are_covered")
def test_simulated_surveys_hold(fast):
    """Each interval by itself, and the wide ones of a survey together."""
    runs = 1_000 if STAT else 250
    plan, shares, means = plan_of(strata=STRATA, weights=WEIGHTS), [0.4, 0.6], [0.2, 0.7]
    cells = [share * mean for share, mean in zip(shares, means, strict=True)] + shares
    true = [*means, 0.7 * means[0] + 0.3 * means[1], *shares]
    alone, together, normal = np.zeros(5), 0, 0
    for rows in simulate(plan, 400, cells, runs):
        alone += [not row.low <= mean <= row.high for row, mean in zip(rows, true, strict=True)]
        pairs = zip(rows, true, strict=True)
        together += any(not row.low_all <= mean <= row.high_all for row, mean in pairs)
        normal += not rows[2].normal_low <= true[2] <= rows[2].normal_high
        for row in rows:
            assert row.low_all <= row.low <= row.value <= row.high <= row.high_all
        assert rows[2].normal_high - rows[2].normal_low < rows[2].high - rows[2].low
    most = runs * BETA + 4 * math.sqrt(runs * BETA)
    assert (alone <= most).all()
    assert together <= most
    assert 0 < normal <= most  # measured, not promised


def test_coins_of_the_compiled_module_are_covered(fast):
    runs, missed = 300, 0
    for seed in range(runs):
        agents = local.Agents(AGE[:900], Y[:900], epsilon=EPSILON)
        questions = {"y": Query.label(), "young": STRATA["young"]}
        result = transfer.survey(questions, agents, random_state=seed)
        true = Y[:900].mean(), (AGE[:900] < 50).mean()
        pairs = zip(result.rows, true, strict=True)
        missed += any(not row.low_all <= mean <= row.high_all for row, mean in pairs)
    assert missed <= runs * BETA + 4 * math.sqrt(runs * BETA)


# What a survey does ------------------------------------------------------------------------------


def test_means_come_in_the_units_of_the_question():
    questions = {
        "age": Query.value(0, 0, 100),
        "y": Query.label(),
        "a function": lambda X, y: 1 - y,
    }
    shares = {"age": 2, "y": 1, "a function": 1}
    result = transfer.survey(questions, people(), shares=shares, random_state=1)
    assert [row.asked for row in result.rows] == [30_000, 15_000, 15_000]
    assert [row.kind for row in result.rows] == ["mean"] * 3
    assert result["age"].low < AGE.mean() < result["age"].high
    assert result["age"].value == pytest.approx(AGE.mean(), abs=3)
    assert result["y"].value + result["a function"].value == pytest.approx(1, abs=0.06)
    assert result["y"].normal_low is None
    with pytest.raises(ParameterError, match="age, y, a function"):
        result["income"]


def test_strata_correct_a_sample_that_is_not_representative():
    result = transfer.survey(
        {"y": Query.label()}, people(), strata=STRATA, weights=WEIGHTS, random_state=2
    )
    kinds = [(row.question, row.stratum, row.kind) for row in result.rows]
    assert kinds == [
        ("y", "young", "mean of a stratum"),
        ("y", "old", "mean of a stratum"),
        ("y", None, "post-stratified"),
        (None, "young", "share of a stratum"),
        (None, "old", "share of a stratum"),
    ]
    true = 0.7 * 0.2 + 0.3 * 0.6
    assert result["y"].low < true < result["y"].high
    assert not result["y"].low < Y.mean() < result["y"].high
    assert result["y"].asked == 60_000
    known = {name: float(query(AGE, Y).mean()) for name, query in STRATA.items()}
    sharper = transfer.survey(
        {"y": Query.label()},
        people(),
        strata=STRATA,
        weights=WEIGHTS,
        sampled=known,
        random_state=2,
    )
    assert len(sharper.rows) == 3
    assert sharper["y"].low < true < sharper["y"].high
    assert sharper["y"].high - sharper["y"].low < result["y"].high - result["y"].low
    sums = transfer.survey(
        {"y": Query.label()},
        people(),
        strata=STRATA,
        weights=WEIGHTS,
        sampled=known,
        by_stratum=False,
        random_state=2,
    )
    assert [row.kind for row in sums.rows] == ["post-stratified"]
    assert sums["y"].low < true < sums["y"].high
    assert sums["y"].high - sums["y"].low < 0.7 * (sharper["y"].high - sharper["y"].low)
    assert (sums["y"].normal_low, sums["y"].answered) == (None, 60_000)


def test_packed_bits_are_asked_some_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(surveys, "_UNPACKED", 1_000)
    bits = RNG.integers(0, 2, (9_000, 3))
    agents = local.Agents(BitMatrix.from_dense(bits), bits[:, 2], epsilon=8.0)
    questions = {f"x{i}": Query.between(i, low=1) for i in range(3)}
    result = transfer.survey(questions | {"y": lambda X, y: y}, agents, beta=1e-6)
    for i in range(3):
        assert result[f"x{i}"].low_all < bits[:, i].mean() < result[f"x{i}"].high_all


def test_examples_that_are_drawn_when_asked_answer_a_survey():
    agents = local.MaskedParityAgents(local.MaskedParity([0, 0], 1), 9_000, epsilon=8.0)
    questions = {"y": Query.label(), "x0": Query.between(0, low=1)}
    result = transfer.survey(questions, agents, beta=1e-6)
    assert result["y"].low_all < 0.5 < result["y"].high_all


def test_strata_without_weights_have_no_mean_of_all():
    result = transfer.survey({"y": Query.label()}, people(), strata=STRATA, random_state=1)
    assert [row.kind for row in result.rows] == ["mean of a stratum"] * 2 + [
        "share of a stratum"
    ] * 2
    with pytest.raises(ParameterError, match="for: none"):
        result["y"]


def test_a_cross_table_asks_for_its_cells():
    table = transfer.cross_table(
        STRATA, {"yes": Query.label()}, {"short": Query.between(0, high=80)}
    )
    assert list(table) == ["young, yes, short", "old, yes, short"]
    result = transfer.survey(table, people(), random_state=3)
    for name, query in table.items():
        assert result[name].low < query(AGE, Y).mean() < result[name].high
    for bad in ((), ({},), ({"a": len},), ([("a", Query.label())],), ({3: Query.label()},)):
        with pytest.raises(ParameterError):
            transfer.cross_table(*bad)


def test_the_order_is_random_and_public():
    """Agents that stand sorted are divided evenly, and the same seed asks the same ones."""
    order = np.argsort(AGE[:20_000, 0])
    results = []
    for _ in range(2):
        agents = local.Agents(AGE[order], Y[order], epsilon=8.0)
        questions = {"first": STRATA["young"], "second": STRATA["young"]}
        results.append(transfer.survey(questions, agents, random_state=4))
    assert results[0].rows == results[1].rows
    assert results[0]["first"].value == pytest.approx(results[0]["second"].value, abs=0.05)


@pytest.mark.parametrize("size", [5, 7, 1000, 60_000])
def test_agents_are_divided_as_publicly_stated(size):
    questions, shares = {"a": Query.label(), "b": Query.label()}, {"a": 3, "b": 1e-9}
    plan = _SurveyPlan(questions, STRATA, None, None, shares, True, people(9))
    counts = _divide(plan.cells, max(size, len(plan.cells)))
    assert sum(counts) == max(size, len(plan.cells))
    assert min(counts) >= 1


def test_results_print_and_are_written():
    result = transfer.survey(
        {"y": Query.label()}, people(), strata=STRATA, weights=WEIGHTS, random_state=2
    )
    lines = repr(result).splitlines()
    assert len(lines) == 6
    assert lines[3].startswith("y, post-stratified ")
    fields = json.loads(result.to_json())
    assert fields["rows"][2]["kind"] == "post-stratified"
    assert fields["agents_record"]["epsilon"] == EPSILON
    columns = result.to_columns()
    assert columns["stratum"] == ["young", "old", None, "young", "old"]
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(columns).shape == (5, 15)
    pytest.importorskip("matplotlib")
    assert len(plotting.survey(result).axes[0].get_yticklabels()) == 5
    with pytest.raises(ParameterError):
        plotting.survey(fields)


def test_too_few_agents_are_said():
    with pytest.warns(UtilityWarning, match=r"5 of 5 rows \(y \| young, .*fewer questions"):
        transfer.survey(
            {"y": Query.label()}, people(30, 0.5), strata=STRATA, weights=WEIGHTS, random_state=1
        )


# Remote agents -----------------------------------------------------------------------------------


def remote(answered=1.0, fails_at=None, **more):
    def ask(text, count):
        asked.append(text)
        place = RNG.integers(0, len(Y), count)
        reports = local.draw_reports(text, AGE[place], Y[place], epsilon=EPSILON).tolist()
        came = [(f"{RNG.integers(1 << 60):x}", one) for one in reports[: round(answered * count)]]
        if fails_at is not None:
            yield came[:fails_at]
            raise OSError("the network is gone")
        yield came

    asked = []
    pool = {"epsilon": EPSILON, "count": 20_000, "response_rate": max(answered, 0.1)} | more
    return local.RemoteAgents(ask, **pool), asked


def test_remote_agents_answer_a_survey():
    agents, asked = remote(0.5)
    groups = {"strata": STRATA, "weights": WEIGHTS}
    result = transfer.survey({"y": Query.label()}, agents, **groups, beta=1e-6)
    assert len(asked) == 1
    assert result["y"].low < 0.7 * 0.2 + 0.3 * 0.6 < result["y"].high
    assert (result["y"].asked, result["y"].answered) == (20_000, 10_000)


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_every_row_has_an_interval_that_holds_whoever_is_silent(in_turn):
    """One in ten is silent, and only those whose bit is 0."""
    rng = np.random.default_rng(6)

    def ask(text, k):
        records = rng.integers(0, 2, (k, 2))
        # Silence takes the interval to its end, so that other coins would miss as often as allowed.
        way = {"epsilon": 6.0, "random_state": rng}
        reports = local.draw_reports(text, records, records[:, 1], **way).tolist()
        return [one for i, one in enumerate(reports) if one & 1 or i % 5]

    agents = local.RemoteAgents(ask, epsilon=6.0, count=60_000, response_rate=0.9)
    strata = {"left": Query.between(0, high=1), "right": Query.between(0, low=1)}
    weights = {"left": 0.5, "right": 0.5}
    result = transfer.survey({"y": Query.label()}, agents, strata=strata, weights=weights)
    assert any(not row.low <= 0.5 <= row.high for row in result.rows)
    for row in result.rows:
        assert row.answered < row.asked
        assert row.low_any <= 0.5 <= row.high_any
        assert row.low_any <= row.low <= row.high <= row.high_any
        assert f"whoever is silent [{row.low_any:.4g}, {row.high_any:.4g}]" in repr(result)
    assert result.to_columns()["low_any"] == [row.low_any for row in result.rows]


def test_without_silence_the_intervals_are_the_same():
    agents = local.Agents(np.ones((900, 1)), np.ones(900, int), epsilon=2.0)
    (row,) = transfer.survey({"y": Query.label()}, agents, random_state=1).rows
    assert (row.low_any, row.high_any) == (row.low, row.high)


def test_every_row_has_an_interval_that_holds_whoever_lies():
    """The first people who are asked, whoever they are, send a 1."""
    strata = {"left": Query.between(0, high=1), "right": Query.between(0, low=1)}
    groups = {"strata": strata, "weights": {"left": 0.5, "right": 0.5}}
    rng, liars = np.random.default_rng(3), 6_000

    def ask(text, k):
        records = rng.integers(0, 2, (k, 2))
        reports = local.draw_reports(text, records, records[:, 1], epsilon=6.0)
        reports[:liars] |= 1
        return reports

    def survey(**more):
        agents = local.RemoteAgents(ask, epsilon=6.0, count=60_000)
        return transfer.survey({"y": Query.label()}, agents, **groups, beta=1e-6, **more)

    plain, wide = survey(), survey(liars=liars)
    assert [(row.low_any, row.high_any) for row in plain.rows] == [
        (row.low, row.high) for row in plain.rows
    ]
    # A row of two questions and more hears the liars of each.
    for row, found in zip(plain.rows, wide.rows, strict=True):
        assert found.low_any <= 0.5 <= found.high_any
        assert found.low_any < found.low <= found.high < found.high_any
        # A share is asked of 15,000 people or so, and all liars may be among them.
        if row.kind == "share of a stratum":
            assert found.high_any - found.low_any < row.high - row.low + 2.2 * liars / 15_000
        ends = f"if up to 6,000 lie [{found.low_any:.4g}, {found.high_any:.4g}]"
        assert ends in repr(wide)
        assert "lie" not in repr(plain)
    assert (plain.liars, wide.liars) == (0, 6_000)
    assert any(not row.low <= 0.5 <= row.high for row in wide.rows)


def test_remote_agents_who_are_all_silent_tell_nothing():
    agents, _ = remote(0.0)
    with pytest.warns(UtilityWarning, match="2 of 2 rows"):
        result = transfer.survey({"y": Query.label(), "old": STRATA["old"]}, agents, count=100)
    assert [(row.low, row.high, row.answered) for row in result.rows] == [(0, 1, 0)] * 2


def test_a_survey_that_was_interrupted_is_taken_up(tmp_path):
    questions = {"y": Query.label(), "old": STRATA["old"], "young": STRATA["young"]}
    agents, asked = remote(fails_at=700, state=tmp_path / "agents.db")
    with pytest.raises(OSError, match="gone"):
        transfer.survey(questions, agents, count=900)
    again, asked_again = remote(state=tmp_path / "agents.db")
    result = transfer.survey(questions, again, count=900)
    assert (len(asked), len(asked_again)) == (1, 0)
    assert sum(row.answered for row in result.rows) == 700
    assert again.remaining == 20_000 - 900


# Bad arguments -----------------------------------------------------------------------------------


@each_case(
    ("change", "error"),
    [
        ({"questions": {}}, ParameterError),
        ({"questions": [Query.label()]}, ParameterError),
        ({"questions": {"y": "label"}}, ParameterError),
        ({"questions": {1: Query.label()}}, ParameterError),
        ({"questions": {"x": Query.between(3, low=0)}}, ShapeError),
        ({"questions": {"y": lambda X, y: y}, "strata": STRATA}, ParameterError),
        ({"agents": AGE}, ParameterError),
        ({"weights": WEIGHTS}, ParameterError),
        ({"sampled": WEIGHTS}, ParameterError),
        ({"strata": {}}, ParameterError),
        ({"strata": {"old": len}}, ParameterError),
        ({"strata": {"old": Query.between(7, low=0)}}, ShapeError),
        ({"strata": STRATA, "weights": {"young": 1.0}}, ParameterError),
        ({"strata": STRATA, "weights": {"young": 0.7, "old": 0.2}}, ParameterError),
        ({"strata": STRATA, "weights": {"young": 1.5, "old": -0.5}}, ParameterError),
        ({"strata": STRATA, "weights": {"young": math.nan, "old": 1}}, ParameterError),
        ({"strata": STRATA, "sampled": {"young": 0.0, "old": 1.0}}, ParameterError),
        ({"strata": STRATA, "sampled": {"young": 0.7, "old": 0.7}}, ParameterError),
        ({"strata": STRATA, "weights": WEIGHTS, "by_stratum": False}, ParameterError),
        ({"by_stratum": False}, ParameterError),
        ({"shares": {"y": 0}}, ParameterError),
        ({"shares": {"z": 1}}, ParameterError),
        ({"count": 0}, ParameterError),
        ({"count": 101}, AgentsExhausted),
        ({"count": 2, "strata": STRATA}, AgentsExhausted),
        ({"beta": 1}, ParameterError),
        ({"random_state": -1}, ParameterError),
    ],
)
def test_bad_arguments_are_refused_before_anybody_is_asked(change, error):
    agents = people(100)
    arguments = {"questions": {"y": Query.label()}, "agents": agents} | change
    with pytest.raises(error):
        transfer.survey(arguments.pop("questions"), arguments.pop("agents"), **arguments)
    assert agents.remaining == 100
    with pytest.raises(AgentsExhausted, match="count = 101, but 100 agents are left"):
        transfer.survey({"y": Query.label()}, agents, count=101)


def test_what_remote_agents_cannot_be_sent_is_refused():
    for question in (lambda X, y: y, Query.score_above(lambda X: X[:, 0], 0)):
        agents, asked = remote()
        with pytest.raises(ParameterError):
            transfer.survey({"y": Query.label(), "other": question}, agents)
        assert not asked


@each_case("by_stratum", [True, False])
def test_intervals_hold_the_noise_of_the_weights(by_stratum):
    """A small panel under much noise, and many agents of little noise: weights err the most."""
    schema = Schema(None, {"age": Number(0, 100, (50,))})
    ages = {"age": np.repeat([20.0, 70.0], [150, 50])}
    crowd = np.repeat([20.0, 70.0], 4_000)[:, None]
    labels = (crowd[:, 0] > 50).astype(int)
    strata = {"young": Query.between(0, high=50), "old": Query.between(0, low=50)}
    sampled = {"young": 0.5, "old": 0.5}
    coins, missed = np.random.default_rng(0), {"noisy": 0, "plain": 0}
    tries = 300 if STAT else 12
    for _ in range(tries):
        panel = statistics.tables(ages, schema, epsilon=0.02, random_state=coins)
        shares = panel.shares("age", names=[list(strata)])
        for name, weights in (("noisy", shares), ("plain", dict(shares))):
            agents = local.Agents(crowd, labels, epsilon=8.0)
            row = transfer.survey(
                {"y": Query.label()}, agents, strata=strata, weights=weights, sampled=sampled,
                by_stratum=by_stratum, beta=0.1, random_state=coins,
            )["y"]  # fmt: skip
            missed[name] += not row.low <= 0.25 <= row.high
            assert row.low_all <= row.low <= row.value <= row.high <= row.high_all
            assert row.low_any <= row.low
    assert missed["noisy"] <= 0.1 * tries + 5 * math.sqrt(0.1 * tries)
    assert missed["plain"] > 0.4 * tries


# Behind a shuffler -------------------------------------------------------------------------------


def test_each_question_is_a_mix_of_its_own():
    questions = {"y": Query.label(), "old": STRATA["old"]}
    agents = people(4_000, epsilon=3.0)
    result = transfer.survey(questions, agents, shares={"y": 3, "old": 1}, shuffled=1e-6)
    assert [row.asked for row in result.rows] == [3_000, 1_000]
    record = result.agents_record.shuffled(1_000, delta=1e-6, categories=2)
    assert result.shuffled_record == record
    assert record.trust == "shuffler"
    assert "epsilon 3 against the shuffler, 0.695 against" in repr(result)
    assert json.loads(result.to_json())["shuffled_record"]["local_epsilon"] == 3.0
    plain = transfer.survey({"y": Query.label()}, people(100))
    assert plain.shuffled_record is None


def test_those_who_are_silent_hide_no_one():
    asked = {"count": 1_000, "shuffled": 1e-6}
    everybody = transfer.survey({"y": Query.label()}, people(1_000), **asked)
    agents = local.RemoteAgents(
        lambda _, count: [1, 0] * (count // 4), count=1_000, epsilon=EPSILON
    )
    some = transfer.survey({"y": Query.label()}, agents, **asked)
    assert some["y"].answered == 500
    assert some.shuffled_record.epsilon > everybody.shuffled_record.epsilon
    expected = some.agents_record.shuffled(500, delta=1e-6, categories=2)
    assert some.shuffled_record == expected


def test_a_delta_of_shuffled_answers_is_checked_before_anybody_is_asked():
    agents = people(100)
    with pytest.raises(ParameterError, match="shuffled"):
        transfer.survey({"y": Query.label()}, agents, shuffled=0)
    assert agents.remaining == 100
