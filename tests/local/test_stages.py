"""Stages: one of several questions each, by a public rule; one round for calls that ask once."""

import hashlib
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import Budget, _core, local, transfer
from hdp_fast.exceptions import (
    AgentsExhausted,
    CheckpointError,
    ParameterError,
    ShapeError,
)
from hdp_fast.local import Agents, Query, RemoteAgents, Stage

LABEL, HIGH = Query.label(), Query.between(0, low=1)
RULE = {"kind": "parity", "features": [0], "complement": False}
KEYS = [bytes([k]) * 16 for k in range(40)]


def stage(key=KEYS[0], shares=(2, 1), first=1, count=3):
    queries = [LABEL.hypothesis, HIGH.hypothesis, RULE][: len(shares)]
    return Stage(queries, list(shares), key=key, first=first, count=count)


def place_of(key, number, shares):
    """The rule, as its specification has it."""
    digest = hashlib.sha256(b"hdp_fast.stage" + key + number.to_bytes(8, "big")).digest()
    drawn = int.from_bytes(digest[:8], "big") * sum(shares) >> 64
    return next(j for j, end in enumerate(itertools.accumulate(shares)) if drawn < end)


# Whose question is which -------------------------------------------------------------------------


def test_the_rule_is_the_one_of_the_specification():
    for key, shares in itertools.product(KEYS[:5], [(1,), (2, 1), (5, 1, 10**15), (1, 1, 1)]):
        made = stage(key, shares, first=7, count=50)
        expected = [place_of(key, number, shares) for number in range(7, 57)]
        assert made.places().tolist() == expected
        assert made.places([9, 7, 10**15]).tolist()[:2] == [expected[2], expected[0]]
        assert made.asked.tolist() == np.bincount(expected, minlength=len(shares)).tolist()


def test_shares_are_kept_on_average():
    counts = sum(stage(key, (5, 3, 2), count=2_000).asked for key in KEYS)
    # Six deviations of a multinomial draw of 80,000.
    assert counts == pytest.approx(np.array([0.5, 0.3, 0.2]) * counts.sum(), abs=6 * 142)


# Privacy -----------------------------------------------------------------------------------------


def law_of_reports(made, records, epsilon):
    """The exact law of all reports of a stage, by enumeration of everybody's answers."""
    truth = Fraction(_core.truth_probability(epsilon), 1 << 64)
    X, y = np.array([[x] for x, _ in records]), np.array([y for _, y in records])
    places = made.places().tolist()
    true = [
        int(local.true_answers(made.queries[place], X[i : i + 1], y[i : i + 1])[0])
        for i, place in enumerate(places)
    ]
    law = {}
    for bits in itertools.product((0, 1), repeat=len(records)):
        reports = tuple(2 * place + bit for place, bit in zip(places, bits, strict=True))
        chance = Fraction(1)
        for bit, answer in zip(bits, true, strict=True):
            chance *= truth if bit == answer else 1 - truth
        law[reports] = law.get(reports, 0) + chance
    return law


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_all_reports_of_a_stage_are_private_whatever_the_records_are(epsilon):
    """All data sets of three people, all neighbors, all reports, several keys: exact fractions."""
    truth = Fraction(_core.truth_probability(epsilon), 1 << 64)
    most, seen = truth / (1 - truth), Fraction(0)
    worlds = list(itertools.product(itertools.product((0, 1), repeat=2), repeat=3))
    for key in KEYS[:6]:
        made = stage(key, (2, 1, 1))
        laws = {records: law_of_reports(made, records, epsilon) for records in worlds}
        assert all(sum(law.values()) == 1 for law in laws.values())
        for one, other in itertools.permutations(worlds, 2):
            if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
                # Whose question is which depends on no record: the same reports are possible.
                assert laws[one].keys() == laws[other].keys()
                ratio = max(laws[one][reports] / laws[other][reports] for reports in laws[one])
                seen = max(seen, ratio)
                assert ratio <= most
    assert seen == most
    assert float(most) <= np.exp(epsilon)


def test_devices_draw_reports_of_that_law():
    made, records = stage(count=3), ((1, 0), (0, 1), (1, 1))
    law = law_of_reports(made, records, 1.0)
    X, y = np.array([[x] for x, _ in records]), np.array([y for _, y in records])
    runs = 600
    rng = np.random.default_rng(0)
    drawn = [tuple(made.draw(X, y, epsilon=1.0, random_state=rng).tolist()) for _ in range(runs)]
    assert set(drawn) == set(law)
    for reports, chance in law.items():
        deviation = (runs * float(chance * (1 - chance))) ** 0.5
        assert drawn.count(reports) == pytest.approx(runs * float(chance), abs=6 * deviation)


def test_a_record_that_no_question_fits_has_a_report_all_the_same():
    made = stage(shares=(1, 1, 1), count=6)
    odd = [[np.nan], [np.inf], ["x"], [None], [1e400], [True]]
    reports = made.draw(odd, [0, 1, np.nan, "y", None, 2], epsilon=60.0)
    assert (reports >> 1 == made.places()).all()


# Pools -------------------------------------------------------------------------------------------


class Phones:
    """People with records, behind a function; whether and when they answer, the test says."""

    def __init__(self, n=6_000, epsilon=3.0):
        rng = np.random.default_rng(5)
        self.X = rng.integers(0, 2, (n, 1))
        self.y = (rng.random(n) < np.where(self.X[:, 0] == 1, 0.8, 0.3)).astype(int)
        self.epsilon, self.asked, self.texts = epsilon, 0, []

    def __call__(self, text, count):
        part = slice(self.asked, self.asked + count)
        self.asked += count
        self.texts.append(json.loads(text))
        return local.draw_reports(text, self.X[part], self.y[part], epsilon=self.epsilon)


def test_questions_that_go_out_together_have_the_answers_of_their_people():
    phones = Phones()
    agents = RemoteAgents(phones, epsilon=3.0, count=6_000)
    agents.pass_over(1_000)
    phones.asked = 1_000
    label, nobody, high = agents.ask_together([(LABEL, 3_000), (LABEL, 0), (HIGH, 2_000)])
    assert (nobody.asked, nobody.bits.size) == (0, 0)
    assert label.asked + high.asked == label.bits.size + high.bits.size == 5_000
    assert label.asked == pytest.approx(3_000, abs=210)
    (sent,) = phones.texts
    assert (sent["first"], sent["count"], sent["shares"]) == (1_001, 5_000, [3_000, 2_000])
    for answered, truth in ((label, phones.y[1_000:]), (high, phones.X[1_000:, 0])):
        estimate = local.estimate_mean(answered.bits, beta=1e-6, epsilon=3.0)
        assert estimate.low < truth.mean() < estimate.high
    assert agents.remaining == 0
    assert agents.counts()["answered"] == 5_000


def test_simulated_agents_answer_question_after_question():
    X = np.arange(10)[:, None] % 2
    agents = Agents(X, np.ones(10), epsilon=60.0)
    label, high, rule = agents.ask_together([(LABEL, 2), (HIGH, 4), (lambda X, y: 1 - y, 4)])
    assert [answered.asked for answered in (label, high, rule)] == [2, 4, 4]
    assert label.bits.tolist() == [1, 1]
    assert high.bits.tolist() == [0, 1, 0, 1]
    assert rule.bits.tolist() == [0, 0, 0, 0]


def test_replies_to_a_stage_are_sorted_and_all_else_is_dropped():
    """Bits of no question, texts, copies, and more of one question than were asked it."""
    text = []

    def ask(asked, count):
        text.append(asked)
        yield [("a", 0), ("a", 0), ("b", 4), ("c", -1), ("d", "1"), ("e", 1.0), 7, None]
        yield np.array([3, 2, 9])
        yield [3] * 50

    agents = RemoteAgents(ask, epsilon=1.0, count=20)
    one, other = agents.ask_together([(LABEL, 10), (HIGH, 10)])
    assert one.bits.tolist() == [0]
    made = Stage.from_json(text[0])
    assert other.bits.size == min(other.asked, 19) == made.asked[1]
    counts = agents.counts()
    assert (counts["answered"], counts["duplicates"]) == (20, 1)


def test_a_stage_is_taken_up_by_another_process_with_the_same_key(tmp_path):
    """The key is that of the people's first stage for good: their questions do not change."""
    place, options = tmp_path / "agents.db", {"epsilon": 3.0, "count": 3_000}
    phones = Phones()

    def breaking(text, count):
        yield phones(text, count)[:100]
        raise OSError("gone")

    questions = [(LABEL, 500), (HIGH, 500)]
    agents = RemoteAgents(breaking, state=place, **options)
    with pytest.raises(OSError, match="gone"):
        agents.ask_together(questions)
    again = RemoteAgents(pytest.fail, state=place, **options)
    assert again.available == 3_000
    again.require(questions)
    taken = again.ask_together(questions)
    assert sum(answered.bits.size for answered in taken) == 100
    next_one = RemoteAgents(phones, state=place, **options)
    with next_one.keep_answers():
        next_one.ask_together([(HIGH, 700)])
    first, second = phones.texts
    assert first["key"] == second["key"]
    assert second["first"] == 1_001
    with pytest.raises(CheckpointError, match="epsilon = 3"):
        RemoteAgents(phones, epsilon=2.0, count=3_000, state=place)


def test_too_few_agents_are_refused_before_anybody_is_asked():
    for agents in (
        RemoteAgents(pytest.fail, epsilon=1.0, count=100),
        Agents(np.ones((100, 1)), np.ones(100), epsilon=1.0),
    ):
        with pytest.raises(AgentsExhausted, match=r"count = 101, but 100 agents are left"):
            agents.ask_together([(LABEL, 50), (HIGH, 51)])
        assert agents.remaining == 100
    remote = RemoteAgents(pytest.fail, epsilon=1.0, count=100)
    with pytest.raises(ParameterError, match="hypothesis"):
        remote.ask_together([(lambda X, y: y, 50)])
    assert [one.asked for one in remote.ask_together([])] == []


# One round ---------------------------------------------------------------------------------------


def pools():
    phones = Phones()
    return {
        "simulated": Agents(phones.X, phones.y, epsilon=3.0),
        "remote": RemoteAgents(phones, epsilon=3.0, count=6_000),
    }, phones


@pytest.mark.parametrize("kind", ["simulated", "remote"])
def test_calls_of_one_round_return_what_they_return_alone(kind):
    agents, phones = pools()
    pool = agents[kind]
    certificate, survey, moved, other = pool.in_one_round([
        lambda: transfer.certify(RULE, pool, count=2_000, beta=1e-6),
        lambda: transfer.survey({"y": LABEL, "x": HIGH}, pool, count=2_000, beta=1e-6),
        lambda: transfer.shifted_columns([0.1], pool, count=1_000),
        lambda: "asks nothing",
    ])  # fmt: skip
    assert other == "asks nothing"
    error = (phones.X[:, 0] != phones.y).mean()
    assert certificate.low < error < certificate.high
    assert survey["y"].low < phones.y.mean() < survey["y"].high
    assert survey["x"].low < phones.X.mean() < survey["x"].high
    assert moved.moved == ("x0",)
    assert pool.remaining == 1_000
    assert len(phones.texts) == (kind == "remote")
    if kind == "remote":
        assert len(phones.texts[0]["queries"]) == 5


@pytest.mark.parametrize("kind", ["simulated", "remote"])
def test_what_does_not_ask_once_is_refused_and_no_one_is_asked(kind):
    agents, phones = pools()
    pool = agents[kind]
    model = {"kind": "linear", "weights": [1.0], "bias": 0.0}

    def ask_twice():
        pool.ask_together([(LABEL, 5)])
        pool.ask_together([(LABEL, 5)])

    for call in (
        lambda: pool.ask(LABEL, 5),
        lambda: pool.pass_over(5),
        lambda: pool.in_one_round([lambda: None]),
    ):
        with pytest.raises(ParameterError, match="calls"):
            pool.in_one_round([call])
    with pytest.raises(AgentsExhausted):
        pool.in_one_round([lambda: transfer.certify(RULE, pool)] * 2)
    with pytest.raises(ZeroDivisionError):
        pool.in_one_round([lambda: transfer.certify(RULE, pool, count=50), lambda: 1 / 0])
    with pytest.raises(ParameterError, match="calls"):
        pool.in_one_round([7])
    assert (pool.remaining, phones.texts) == (6_000, [])
    # The second round of a call is refused when it would begin: its first one is paid for.
    for call in (ask_twice, lambda: transfer.calibrate(model, pool, count=100)):
        with pytest.raises(ParameterError, match="calls"):
            pool.in_one_round([call])
    assert pool.ask(LABEL, 5).size == 5


def test_a_call_that_releases_before_it_asks_is_refused_and_spends_nothing():
    """It would be made twice, and what the curator holds released twice."""
    agents, _ = pools()
    pool, budget, X = agents["remote"], Budget(1.0, 1e-6), np.ones((500, 1))

    def shifted(budget):
        low, high = np.zeros(1), np.ones(1)
        price = {"epsilon": 1.0, "delta": 1e-6, "low": low, "high": high, "budget": budget}
        return transfer.shifted_columns(transfer.release_means(X, **price), pool, count=100)

    for one in (budget, None):
        with pytest.raises(ParameterError, match="calls: one of them releases"):
            pool.in_one_round([lambda one=one: shifted(one)])
    others = Agents(X, np.ones(500), epsilon=1.0)
    with pytest.raises(ParameterError, match="calls: one of them releases"):
        pool.in_one_round([lambda: others.ask(LABEL, 5)])
    assert others.remaining == 500
    assert (budget.spent.epsilon, pool.remaining) == (0, 6_000)
    assert shifted(budget).columns[0].agents == 100


@pytest.mark.parametrize("kind", ["simulated", "remote"])
def test_a_call_that_hides_its_end_asks_something_else_or_is_nested_is_refused(kind):
    agents, phones = pools()
    others, _ = pools()
    pool, queries = agents[kind], [LABEL, Query.between(0, low=1)]

    def hide():
        try:
            return pool.ask_together([(LABEL, 5)])
        except BaseException:
            return None

    def ask_of_two_pools():
        return others[kind].in_one_round([lambda: pool.ask_together([(LABEL, 5)])])

    for call in (hide, ask_of_two_pools):
        with pytest.raises(ParameterError, match="calls"):
            pool.in_one_round([call])
    assert (pool.remaining, phones.texts) == (6_000, [])
    # Answers to the first question would be read as answers to the second one.
    with pytest.raises(ParameterError, match="calls"):
        pool.in_one_round([lambda: pool.ask_together([(queries.pop(), 5)])])
    assert pool.remaining == 5_995


def test_a_call_cannot_take_up_a_question_of_its_own():
    def broken(text, count):
        yield [1] * 3
        raise OSError("gone")

    pool = RemoteAgents(broken, epsilon=3.0, count=60)
    with pytest.raises(OSError, match="gone"):
        pool.ask(LABEL, 5)
    with pytest.raises(ParameterError, match="calls"):
        pool.in_one_round([lambda: pool.ask(LABEL, 5)])
    assert pool.available == 60


def test_a_round_that_broke_is_taken_up(tmp_path):
    phones, place = Phones(), tmp_path / "agents.db"

    def breaking(text, count):
        yield phones(text, count)[:1_500]
        raise OSError("gone")

    def go(ask):
        pool = RemoteAgents(ask, epsilon=3.0, count=3_000, state=place)
        calls = [
            lambda: transfer.certify(RULE, pool, count=1_000),
            lambda: transfer.survey({"y": LABEL}, pool, count=1_000),
        ]
        return pool, pool.in_one_round(calls)

    with pytest.raises(OSError, match="gone"):
        go(breaking)
    pool, (certificate, survey) = go(pytest.fail)
    assert certificate.constants is not None
    answers = certificate.agents + certificate.constants.agents + survey["y"].answered
    assert (answers, pool.remaining) == (1_500, 1_000)


# Bad arguments -----------------------------------------------------------------------------------


@each_case(
    ("changes", "error", "words"),
    [
        ({"queries": []}, ParameterError, "queries"),
        ({"queries": ["label"]}, ParameterError, "queries"),
        ({"shares": [1]}, ShapeError, "shares"),
        ({"shares": [1, 0]}, ParameterError, "shares"),
        ({"shares": [1, 1 << 53]}, ParameterError, "shares"),
        ({"key": b"short"}, ParameterError, "key"),
        ({"first": 0}, ParameterError, "first"),
        ({"count": 0}, ParameterError, "count"),
    ],
)
def test_bad_stages_are_refused(changes, error, words):
    fields = {"queries": [LABEL.hypothesis, RULE], "shares": [1, 1], "key": bytes(16)}
    with pytest.raises(error, match=words):
        Stage(**{**fields, "first": 1, "count": 3, **changes})


def test_bad_texts_reports_and_records_are_refused():
    made = stage()
    text = made.to_json()
    assert Stage.from_json(text) == made
    for damaged in ("", "{}", text[:-1], text.replace("stage", "query"), text.replace("00", "zz")):
        with pytest.raises(ParameterError, match="stage"):
            Stage.from_json(damaged)
    for reports in ([4], [-1], [0.5], ["0"]):
        with pytest.raises(ParameterError, match="reports"):
            made.split(reports)
    with pytest.raises(ShapeError, match="numbers"):
        made.draw([[1]], [1, 1], epsilon=1.0)
    with pytest.raises(ParameterError, match="kind"):
        Stage([{"kind": "none"}], [1], key=bytes(16), first=1, count=1).draw([[1]], [1], epsilon=1)
