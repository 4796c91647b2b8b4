"""Queries that JSON can carry: their answers, what they refuse, and the way to real agents."""

import asyncio
import json
import math

import numpy as np
import pytest
from cases import each_case

from hdp_fast import learners, local
from hdp_fast.collection import ReportFolder, hypothesis_line, hypothesis_question, read_question
from hdp_fast.exceptions import AgentsExhausted, ParameterError, ShapeError
from hdp_fast.gf2 import BitMatrix
from hdp_fast.local import Query

HALFSPACE = {"kind": "halfspace", "weights": [1.0, -1.0], "bias": 0.0}
RULE = {"kind": "conjunction", "features": [0], "values": [1], "complement": False}
X = np.array([[1.0, 5.0], [2.0, -1.0], [np.nan, 3.0], [4.0, np.inf]])
Y = np.array([1, 0, 1, 1], np.uint8)
QUERIES = {
    "label": (Query.label(), [1, 0, 1, 1]),
    "between": (Query.between(0, 1, 2), [1, 0, 0, 0]),
    "from": (Query.between(0, low=2), [0, 1, 0, 1]),
    "below": (Query.between(1, high=5), [0, 1, 1, 0]),
    "value": (Query.value(0, 0, 4), [0.25, 0.5, 0, 1]),
    "score": (Query.score_above(HALFSPACE, 0), [0, 1, 0, 0]),
    "loss saved": (Query.loss_saved(HALFSPACE, [0, 1], [4, 4], -1, 1), [1, 0, 0.5, 0.5]),
    "wrong": (Query.wrong(HALFSPACE), [1, 1, 1, 1]),
    "worse": (Query.worse(HALFSPACE, HALFSPACE | {"bias": 5.0}), [1, 0.5, 0.5, 0.5]),
    "weighted": (
        Query.weighted([(Query.between(0, high=2), 0.25), (Query.between(0, low=2), 1)]),
        [0.25, 1, 0, 1],
    ),
    "more than 1": (Query.weighted([(Query.label(), 0.75), (Query.label(), 0.5)]), [1, 0, 1, 1]),
    "product": (Query.value(0, 0, 4) & Query.label() & Query.between(1, low=0), [0.25, 0, 0, 0]),
}


@each_case(("query", "answers"), QUERIES.values(), ids=QUERIES)
def test_a_query_answers_and_json_carries_it(query, answers):
    assert query(X, Y).tolist() == answers
    again = Query.from_json(query.to_json())
    assert again(X, Y).tolist() == answers
    assert again.hypothesis == query.hypothesis == json.loads(query.to_json())
    assert local.true_answers(query.to_json(), X, Y).tolist() == answers
    assert local.true_answers(query.hypothesis, X.tolist(), Y.tolist()).tolist() == answers


def test_queries_say_what_they_ask():
    words = {
        "loss saved": "log loss saved of [-1, 1]",
        "wrong": "wrong",
        "worse": "worse",
        "weighted": "(0.25 (x0 < 2) + 1 (2 <= x0))",
    }
    assert {name: QUERIES[name][0].words for name in words} == words


@each_case("query", [query for query, _ in QUERIES.values()], ids=QUERIES)
def test_no_record_makes_a_query_fail(query):
    """Each entry counts by itself: what it is changes nothing about the other records."""
    odd = [None, "text", "7", 1j, 10**400, math.nan, [1], object()]
    for X in ([[entry, 1.0] for entry in odd], [[1.0, entry] for entry in odd]):
        answers = local.true_answers(query.to_json(), X, [1] * len(odd))
        alone = [local.true_answers(query.to_json(), [row], [1])[0] for row in X]
        assert answers.tolist() == alone
        assert ((answers >= 0) & (answers <= 1)).all()
    assert local.true_answers(query.to_json(), [[1.0, 1.0]] * 8, odd).shape == (8,)


def test_mistakes_of_models_with_and_without_a_description():
    class Predicts:
        def predict(self, X):
            return X[:, 0] > 1.5

    query = Query.wrong(Predicts()) & Query.between(1, low=0)
    assert query.hypothesis is None
    assert query(X, Y).tolist() == [1, 0, 1, 0]
    bits = np.array([[0, 1], [1, 1]], np.uint8)
    assert Query.wrong(RULE)(bits, [0, 0]).tolist() == [0, 1]
    assert Query.worse(RULE, Predicts())(bits, [1, 1]).tolist() == [0.5, 0]
    assert Query.wrong(RULE)([["text", None], [1.0, 0.0]], [0, 1]).tolist() == [1, 0]


def test_statistics_are_wrong_where_their_score_says_so():
    features = learners.FeatureMap.identity(2, norm_bound=5, constant=True)
    release = learners.SufficientStatistics(features, classes=[0, 1])
    rows = np.random.default_rng(1).normal(size=(500, 2))
    model = release.release(rows, (rows[:, 0] > 0).astype(int), epsilon=9.0, delta=1e-6)
    model = model.solve(pool=rows)
    query, zeros = Query.wrong(model), np.zeros(500)
    assert (query(rows, zeros) == model.predict(rows)).all()
    assert (Query.from_json(query.to_json())(rows, zeros) == model.predict(rows)).all()


def test_bounds_are_those_of_a_value_alone():
    assert Query.value(3, -1, 5).bounds == (-1, 5)
    assert (Query.value(3, -1, 5) & Query.label()).bounds == (0, 1)


def test_a_device_answers_whatever_its_record_is():
    query = Query.between(5, low=0)
    for record in ([1.0], [], None, "text"):
        assert local.true_answers(query.to_json(), [record], [1]).tolist() == [0.0]
        assert local.true_answers(RULE | {"features": [5]}, [record], [1]).tolist() == [1.0]
    assert local.true_answers(RULE, [[1], [0]], ["no label", 0]).tolist() == [1.0, 0.0]
    with pytest.raises(ShapeError, match="y has shape"):
        local.true_answers(RULE, [[1]], [1, 1])


def test_a_model_that_fails_on_a_record_answers_0_for_it_alone():
    def score(X):
        if (X[:, 0] > 10).any():
            raise ValueError(X)
        return X[:, 0]

    query = Query.score_above(score, 0.5)
    assert query(np.array([[1.0], [11.0], [0.0]]), np.zeros(3)).tolist() == [1, 0, 0]


def test_bits_are_read_from_a_packed_matrix(monkeypatch):
    monkeypatch.setattr(local.queries.query, "_UNPACKED", 20)  # six rows at a time
    bits = np.random.default_rng(0).integers(0, 2, (50, 3))
    query = Query.between(1, low=1) & Query.score_above(RULE, 0)
    assert (query(BitMatrix.from_dense(bits), bits[:, 2]) == bits[:, 1] * bits[:, 0]).all()


def test_a_model_without_description_is_for_simulated_agents_only():
    query = Query.score_above(lambda X: X[:, 0], 0.5) & Query.label()
    assert query.hypothesis is None
    agents = local.Agents(X[:2], Y[:2], epsilon=40.0)
    assert agents.ask(query, 2).tolist() == [1, 0]
    with pytest.raises(ParameterError, match="no description"):
        query.to_json()
    remote = local.RemoteAgents(lambda text, count: [], epsilon=1.0, count=9)
    with pytest.raises(ParameterError, match="no description"):
        remote.ask(query, 3)
    assert remote.remaining == 9


@each_case(
    "make",
    [
        lambda: Query.between(-1, 0),
        lambda: Query.between(1.5, 0),
        lambda: Query.between(0),
        lambda: Query.between(0, 2, 2),
        lambda: Query.between(0, math.nan),
        lambda: Query.value(0, 1, 1),
        lambda: Query.value(0, 0, math.inf),
        lambda: Query.score_above(HALFSPACE, math.nan),
        lambda: Query.score_above(object(), 0),
        lambda: Query.loss_saved(object(), [0], [1], -1, 1),
        lambda: Query.loss_saved(HALFSPACE, [0], [1, 2], -1, 1),
        lambda: Query.loss_saved(HALFSPACE, [1, 0], [1, 2], -1, 1),
        lambda: Query.loss_saved(HALFSPACE, [0], [math.nan], -1, 1),
        lambda: Query.loss_saved(HALFSPACE, [0], [1], 1, 1),
        lambda: Query.loss_saved(HALFSPACE, 3, [1], -1, 1),
        lambda: Query.wrong(object()),
        lambda: Query.weighted([]),
        lambda: Query.weighted([Query.label()]),
        lambda: Query.weighted([(Query.label(), 1.5)]),
        lambda: Query.weighted([("label", 0.5)]),
        lambda: Query.weighted([(Query.label(), math.nan)]),
        lambda: Query.worse(RULE, {"kind": "none"}),
        lambda: Query.from_json("{}"),
        lambda: Query.from_json('{"kind": "query", "terms": []}'),
        lambda: Query.from_json('{"kind": "query", "terms": [{"kind": "none"}]}'),
        lambda: Query.from_json('{"kind": "query", "terms": [{"kind": "label", "x": 1}]}'),
        lambda: local.true_answers("[]", X, Y),
        lambda: local.true_answers({"kind": "query", "terms": 3}, X, Y),
        lambda: local.true_answers({"kind": "unknown"}, X, Y),
    ],
)
def test_malformed_queries_are_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_nobody_is_asked_a_query_that_does_not_fit():
    agents = local.Agents(X, Y, epsilon=1.0)
    misfits = [
        Query.between(2, low=0),
        Query.score_above(HALFSPACE | {"weights": [1.0]}, 0),
        Query.score_above(lambda X: X[:, 7], 0),
        Query.wrong(HALFSPACE | {"weights": [1.0]}),
        Query.weighted([(Query.label(), 1), (Query.wrong(HALFSPACE | {"weights": [1.0]}), 1)]),
        Query.weighted([(Query.label(), 1), (Query.between(2, low=0), 1)]),
        Query.worse(HALFSPACE, RULE | {"features": [7]}),
    ]
    for query in misfits:
        with pytest.raises(ShapeError):
            agents.ask(query, 2)
        with pytest.raises(ShapeError):
            agents.ask_several([Query.label(), query], 2)
    examples = local.MaskedParityAgents(local.MaskedParity([0, 0], 1), 10, epsilon=1.0)
    with pytest.raises(ShapeError):
        examples.ask(Query.between(examples.d, low=0), 3)
    assert (agents.remaining, examples.remaining) == (4, 10)
    assert examples.ask(Query.between(examples.d - 1, low=0), 3).shape == (3,)


def test_a_query_that_does_not_fit_is_no_silent_0():
    for query in (Query.between(2, low=0), Query.score_above(lambda X: X[:, 7], 0)):
        with pytest.raises(ShapeError):
            query(X, Y)


def test_remote_agents_are_asked_a_query_once():
    asked = []

    def ask(text, count):
        asked.append((json.loads(text), count))
        return local.randomized_response(local.true_answers(text, X[:2], Y[:2]), epsilon=40.0)

    agents = local.RemoteAgents(ask, epsilon=40.0, count=6)
    query = Query.value(0, 0, 1) & Query.label()
    assert agents.ask(query, 3).tolist() == [1, 0]
    assert asked == [(query.hypothesis, 3)]
    assert agents.ask(query, 0).size == 0
    for question in (lambda X, y: y, "label", learners.Stumps(2)):
        with pytest.raises(ParameterError, match="question"):
            agents.ask(question, 1)
    with pytest.raises(AgentsExhausted):
        agents.ask(query, 4)
    assert len(asked) == 1
    assert agents.remaining == 3


def test_a_query_that_was_interrupted_is_taken_up(tmp_path):
    broken = []

    def ask(text, count):
        broken.append(text)
        yield [("a", 1), ("b", 0)]
        raise OSError("the network is gone")

    query, place = Query.label(), tmp_path / "agents.db"
    agents = local.RemoteAgents(ask, epsilon=1.0, count=10, state=place)
    with pytest.raises(OSError, match="gone"):
        agents.ask(query, 5)
    again = local.RemoteAgents(
        ask, epsilon=1.0, count=10, state=place, collect=lambda text, count: [("c", 1), ("a", 1)]
    )
    assert again.recall(query, 5).tolist() == [1, 0, 1]
    assert (len(broken), again.remaining) == (1, 5)


def test_devices_answer_a_query_through_a_folder(tmp_path):
    def invite(place, count):
        question = read_question(place / "question.json")
        lines = [hypothesis_line(question, [i % 4, 0.0], 1) for i in range(count)]
        (place / "lines.jsonl").write_text("\n".join(lines))

    folder = ReportFolder(tmp_path, invite, epsilon=30.0, deadline=0.01)
    agents = local.RemoteAgents(folder.ask, epsilon=30.0, count=40)
    assert agents.ask(Query.between(0, 1, 3), 40).sum() == 20


def test_a_line_of_a_device_carries_an_answer_between_0_and_1():
    question = hypothesis_question("half", Query.value(0, 0, 2).to_json(), epsilon=30.0)
    reports = [json.loads(hypothesis_line(question, [1.0], 0))["report"] for _ in range(2000)]
    assert abs(np.mean(reports) - 0.5) < 0.08
    assert json.loads(hypothesis_line(question, ["missing"], 0))["report"] == 0


def test_answers_that_come_asynchronously_count():
    async def ask(text, count):
        for _ in range(count):
            await asyncio.sleep(0)
            yield local.randomized_response(local.true_answers(text, X[:1], Y[:1]), epsilon=40.0)

    agents = local.RemoteAgents(ask, epsilon=40.0, count=5)
    assert agents.ask(Query.label(), 5).tolist() == [1] * 5


def test_answers_that_are_kept_are_taken_up_together(tmp_path):
    """Of four questions, two alike, the third fails: the first two are not asked again."""

    def ask(text, count):
        asked.append(text)
        if len(asked) == 3:
            raise OSError("the network is gone")
        return [(f"{len(asked)}-{i}", int(len(asked) % 2)) for i in range(count)]

    asked, way = [], {"epsilon": 1.0, "count": 100, "state": tmp_path / "agents.db"}
    queries = [Query.label(), Query.label(), Query.between(0, low=1), Query.between(0, low=2)]

    def ask_all(agents):
        with agents.keep_answers(), agents.keep_answers():
            return [agents.ask(query, 5).tolist() for query in queries]

    agents = local.RemoteAgents(ask, **way)
    with pytest.raises(OSError, match="gone"):
        ask_all(agents)
    for again in (local.RemoteAgents(ask, **way), agents):
        assert ask_all(again)[:2] == [[1] * 5, [0] * 5]
    new = local.RemoteAgents(ask, **way)
    assert new.ask(Query.label(), 5).tolist() == [1] * 5  # may have been lost on the way
    assert new.ask(Query.value(0, 0, 1), 5).size == 5
    assert local.RemoteAgents(ask, **way).recall(queries[1], 5).tolist() == [0] * 5


def test_the_type_of_rows_that_a_model_gets_depends_on_no_record():
    """Bits would make 1 - 2 x wrap around at 0: the answer of a record must not depend on
    others."""

    class Wraps:
        def predict(self, X):
            return (1 - 2 * X[:, 0]) < 0

    query = Query.wrong(Wraps())
    alone = query([[1.0, 0.0]], [0])
    assert alone.tolist() == [1]
    for other in (0.0, 0.5):
        assert query([[1.0, 0.0], [other, 0.0]], [0, 0]).tolist() == [1, 0]


def test_a_model_that_takes_bits_alone_gets_them():
    class BitsAlone:
        def predict(self, X):
            if X.dtype != np.uint8:
                raise TypeError("bits are needed")
            return X[:, 0]

    model = BitsAlone()
    bits = np.array([[1, 0], [0, 1], [0.5, 0], [np.nan, 1]])
    queries = [Query.wrong(model), Query.score_above(model.predict, 0.5)]
    for query, answers in zip(queries, ([0, 0, 1, 1], [1, 0, 0, 0]), strict=True):
        query.check(2)
        assert query(bits, [1, 0, 0, 1]).tolist() == answers


# Simulated agents answer as devices do ----------------------------------------------------------

LINEAR = {"kind": "linear", "weights": [1.0, -1.0], "bias": 0.25}
DESCRIBED = {
    "conjunction": RULE,
    "parity": {"kind": "parity", "features": [0, 1], "complement": True},
    "at least": {"kind": "at_least", "features": [0, 1], "values": [1, 1], "threshold": 1},
    "halfspace": HALFSPACE,
    "linear": LINEAR,
    "additive": {
        "kind": "additive",
        "cuts": [[0.5, 1.0], [0.0, 0.0, 2.0]],
        "weights": [[1.0, -3.0], [0.5, 0.5, 1.0]],
        "bias": 0.25,
    },
    "vote": {"kind": "vote", "hypotheses": [RULE, RULE, HALFSPACE]},
}
ODD = [2.0, 0.5, math.nan, math.inf, -math.inf, -0.0, 1e308, 5e-324, 255.0]
CERTAIN = 200.0


def bits_with(entry, dtype=float):
    rows = np.random.default_rng(3).integers(0, 2, (60, 2)).astype(dtype)
    rows[7, 1] = entry
    return rows


class Learned:
    """What a learner returns: a description, and a prediction that raises where it does not fit."""

    def __init__(self, hypothesis):
        self.hypothesis, self.predict = hypothesis, learners.predictor(hypothesis)


@pytest.mark.parametrize("kind", DESCRIBED)
@pytest.mark.parametrize("entry", [*ODD, None, "text", "1"], ids=repr)
def test_simulated_agents_answer_as_devices_do_row_by_row(kind, entry):
    """One record, whatever it holds, neither fails the test nor changes another answer."""
    rows = bits_with(entry, float if isinstance(entry, float) else object)
    labels = np.resize([0, 1, 1], len(rows)).astype(np.uint8)
    devices = [
        int(local.true_answers(DESCRIBED[kind], [row], [label])[0])
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True)
    ]
    agents = local.Agents(rows, labels, epsilon=CERTAIN)
    assert agents.test(Learned(DESCRIBED[kind]), len(rows)).tolist() == devices


def test_a_model_of_other_code_is_wrong_where_it_fails_and_nowhere_else():
    calls = []

    class Strict:
        hypothesis = None

        def predict(self, X):
            calls.append(len(X))
            if not np.isfinite(X).all():
                raise ValueError(X)
            return X[:, 0]

    rows = np.repeat(bits_with(math.nan), 100, axis=0)[100:900]
    truth = rows[:, 0].astype(int)
    agents = local.Agents(rows, truth, epsilon=CERTAIN)
    wrong = agents.test(Strict(), len(rows))
    assert wrong.tolist() == np.isnan(rows[:, 1]).astype(int).tolist()
    one = rows[:601]
    calls.clear()
    local.Agents(one, truth[:601], epsilon=CERTAIN).test(Strict(), 601)
    assert len(calls) < 50  # one of 601 is found by halving


def test_learning_by_votes_survives_any_record():
    for entry in (2.0, math.nan):
        agents = local.Agents(bits_with(entry), np.zeros(60, int), epsilon=CERTAIN)
        result = local.learn_by_votes(learners.Conjunctions(2, 1), agents)
        assert agents.remaining == 0, result


@pytest.mark.parametrize("dtype", [object, str])
def test_a_description_that_does_not_fit_is_refused_before_anybody_is_asked(dtype):
    """Also where no made-up record is known to fit the dtype."""
    far = Learned(RULE | {"features": [5]})
    agents = local.Agents(np.zeros((9, 2)).astype(dtype), np.zeros(9, int), epsilon=1.0)
    with pytest.raises(ShapeError):
        agents.test(far, 9)
    assert agents.remaining == 9
