"""RemoteAgents: replies in every form, late, twice or never; no one is asked twice."""

import asyncio
import itertools
import json
import math
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from cases import each_case
from processes import exit_code, forked, forking

from hdp_fast.exceptions import (
    AgentsExhausted,
    CheckpointError,
    NeverAsked,
    ParameterError,
    UtilityWarning,
)
from hdp_fast.local import RemoteAgents, agents_needed
from hdp_fast.local.pool import falls_short
from hdp_fast.local.transports import sort_batch


class Question:
    """A hypothesis of this name."""

    def __init__(self, name="q"):
        self.hypothesis = {"kind": name}


def pool(ask, **changes):
    return RemoteAgents(ask, **{"epsilon": 1.0, "count": 10} | changes)


def counts(agents):
    """Answered, dropped, duplicates."""
    return tuple(agents.counts().values())[1:]


# Forms --------------------------------------------------------------------------------------------


async def later(value):
    await asyncio.sleep(0)
    return value


async def stream(batches):
    for batch in batches:
        await asyncio.sleep(0)
        yield batch


class Batches:
    """An iterable without a length, which is no iterator."""

    def __iter__(self):
        return iter([[1, 0], [1]])


FORMS = {
    "a list": lambda: [1, 0, 1],
    "an array": lambda: np.array([1, 0, 1]),
    "booleans": lambda: np.array([True, False, True]),
    "a tuple": lambda: (1, 0, 1),
    "numbers of numpy": lambda: [np.int8(1), np.False_, np.uint64(1)],
    "pairs": lambda: [("a", 1), ["b", 0], ("c", 1)],
    "a dict": lambda: {"a": 1, "b": 0, "c": True},
    "an iterator": lambda: iter([[1], np.array([0, 1])]),
    "an iterable": Batches,
    "a generator of single replies": lambda: (reply for reply in (1, ("b", 0), True)),
    "a coroutine": lambda: later([1, 0, 1]),
    "a coroutine that returns a generator": lambda: later(iter([[1, 0], [1]])),
    "a coroutine that returns a stream": lambda: later(stream([[1, 0], [1]])),
    "a stream": lambda: stream([{"a": 1}, {"b": 0, "c": 1}]),
    "a stream of single replies": lambda: stream([1, ("b", 0), 1]),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("file", [False, True], ids=["memory", "file"])
def test_replies_come_in_every_form(tmp_path, form, file):
    state = tmp_path / "state" if file else None
    agents = pool(lambda text, count: form(), state=state)
    answers = agents.test(Question(), 4)
    assert answers.dtype == np.uint8
    assert answers.tolist() == [1, 0, 1]
    assert agents.counts() == {"asked": 4, "answered": 3, "dropped": 0, "duplicates": 0}


GARBAGE = [2, -1, 0.0, 1.0, math.nan, "0", b"1", None, [], [1], (1, 0), {"a": 1}, ("a", 2), ["a"]]
GARBAGE += [("a", None), ("a", 1, 1), ("x" * 201, 1), (5, 1), 1 << 70, object(), np.int64(7), 1j]


@each_case("reply", GARBAGE, ids=lambda reply: repr(reply).split(" at 0x")[0])
def test_garbage_is_dropped_and_counted(reply):
    agents = pool(lambda text, count: [1, reply, 0])
    assert agents.test(Question(), 5).tolist() == [1, 0]
    assert counts(agents) == (2, 1, 0)


@each_case(
    ("batch", "dropped"),
    [
        (np.zeros((4, 2), int), 4),
        (np.array([0, 2, 1, -1, 255]), 3),
        (np.array([0.0, 1.0]), 2),
        (np.array(["0", "1"]), 2),
        (np.array(3), 1),
        ("0101", 1),
        (b"0101", 1),
        (7, 1),
        (None, 0),
        ({}, 0),
        ({5: 1, "a": "b"}, 2),
        ({1, 0, 5}, 1),
    ],
)
def test_batches_of_garbage(batch, dropped):
    assert sort_batch(batch, 10, set()).dropped == dropped
    assert counts(pool(lambda text, count: batch))[1] == 0
    agents = pool(lambda text, count: iter([batch]))
    agents.test(Question(), 10)
    assert counts(agents)[1] == dropped


def test_one_reply_of_each_agent_counts():
    replies = [("a", 1), ("b", 2), ("a", 0), ("b", 0), ("b", 1)]
    agents = pool(lambda text, count: iter([replies, {"a": 1, "c": 1}]))
    assert agents.test(Question(), 5).tolist() == [1, 0, 1]
    assert counts(agents) == (3, 1, 3)
    # What was sent to another question is no second answer either.
    assert agents.test(Question("other"), 5).size == 0
    assert counts(agents) == (3, 2, 9)


def test_more_answers_than_agents_are_dropped():
    agents = pool(lambda text, count: iter([[1] * 3, np.ones(9, int), pytest.fail]))
    assert agents.test(Question(), 4).tolist() == [1] * 4
    assert counts(agents) == (4, 8, 0)


def test_nothing_is_awaited_after_the_last_answer():
    def endless():
        yield from itertools.repeat([1])

    async def waiting():
        yield [1, 1]
        await asyncio.sleep(100)

    for transport in endless, waiting:
        agents = pool(lambda text, count, transport=transport: transport())
        assert agents.test(Question(), 2).tolist() == [1, 1]


def test_a_notebook_runs_a_loop_already():
    agents = pool(lambda text, count: stream([[1], [0]]))

    async def cell():
        return agents.test(Question(), 3).tolist()

    assert asyncio.run(cell()) == [1, 0]


# Missing answers ----------------------------------------------------------------------------------


def test_nobody_need_answer():
    agents = pool(lambda text, count: [])
    with pytest.warns(UtilityWarning, match="0 of 5 agents have answered, fewer than"):
        assert agents.test(Question(), 5).shape == (0,)
    assert (agents.remaining, counts(agents)) == (5, (0, 0, 0))


@pytest.mark.parametrize(
    ("answers", "rate", "short"),
    [(99, 1.0, True), (100, 1.0, False), (60, 0.7, False), (51, 0.7, True), (0, 0.01, False)],
)
def test_fewer_answers_than_the_rate_promises(answers, rate, short):
    assert falls_short(answers, 100, rate) == short


def test_agents_to_ask_are_those_needed_over_the_rate():
    """The promise holds with the chance of who answers: the sum over the binomial is exact."""
    goal = {"alpha": 0.4, "beta": 0.1, "epsilon": 2.0}
    edge = math.tanh(1.0)
    for rate in (0.05, 0.3, 0.7, 0.99, 1.0):
        asked = agents_needed(**goal, response_rate=rate)

        def failure(agents, rate=rate):
            chances = (
                math.comb(agents, k)
                * rate**k
                * (1 - rate) ** (agents - k)
                * 2
                * math.exp(-2 * k * (goal["alpha"] * edge) ** 2)
                for k in range(agents + 1)
            )
            return math.fsum(chances)

        assert failure(asked) <= goal["beta"] * (1 + 1e-9)
        assert failure(asked - 1) > goal["beta"] * (1 - 1e-9)
        assert agents_needed(**goal) / rate <= asked + 1 / rate
        # The mean alone is not enough: its promise would fail more often.
        if rate < 0.5:
            assert failure(math.ceil(agents_needed(**goal) / rate)) > goal["beta"]
    assert asked == agents_needed(**goal)


@pytest.mark.parametrize("rate", [0, -0.1, 1.1, math.nan, None, "1"])
def test_no_rates(rate):
    for call in (
        lambda: pool(print, response_rate=rate),
        lambda: agents_needed(alpha=0.1, beta=0.1, epsilon=1.0, response_rate=rate),
    ):
        with pytest.raises(ParameterError, match="response_rate"):
            call()


@pytest.mark.parametrize(
    "change", [{"collect": 3}, {"deadline": 0}, {"deadline": math.inf}, {"deadline": "1"}]
)
def test_bad_arguments_are_refused(change):
    with pytest.raises(ParameterError, match=next(iter(change))):
        pool(print, **change)


# Deadlines ----------------------------------------------------------------------------------------


async def slow(closed):
    try:
        yield [1, 0]
        await asyncio.sleep(60)
    finally:
        closed.append(True)


def test_a_deadline_ends_the_wait():
    closed = []
    agents = pool(lambda text, count: slow(closed), deadline=0.2)
    start = time.monotonic()
    assert agents.test(Question(), 4).tolist() == [1, 0]
    assert 0.2 <= time.monotonic() - start < 5
    assert closed == [True]

    def batches():
        for number in itertools.count():
            time.sleep(0.05)
            yield {str(number): 1}

    agents = pool(lambda text, count: batches(), deadline=0.2, count=1000)
    assert 1 <= agents.test(Question(), 1000).size < 200

    async def never(text, count):
        await asyncio.sleep(60)

    assert pool(never, deadline=0.1).test(Question(), 4).size == 0


def test_a_timeout_of_the_transport_is_its_own():
    async def ask(text, count):
        yield [1]
        raise TimeoutError("the line is dead")

    agents = pool(ask, deadline=60)
    with pytest.raises(TimeoutError, match="dead"):
        agents.test(Question(), 4)


# Interruptions ------------------------------------------------------------------------------------


def broken(text, count):
    yield {"a": 1, "b": 0}
    raise ConnectionError


def test_what_arrived_before_an_error_is_kept():
    agents = pool(broken)
    with pytest.raises(ConnectionError):
        agents.test(Question(), 5)
    assert agents.test(Question(), 5).tolist() == [1, 0]
    assert agents.remaining == 5
    # It has been answered: the same question once more goes to other people.
    with pytest.raises(ConnectionError):
        agents.test(Question(), 5)
    assert agents.remaining == 0


def test_further_answers_are_collected_and_nobody_is_asked():
    collected = iter([ConnectionError, [{"a": 1, "c": 1}, {"d": 0, "x": None}]])

    def collect(text, count):
        assert (json.loads(text), count) == (Question().hypothesis, 5)
        batches = next(collected)
        if batches is ConnectionError:
            raise ConnectionError
        yield from batches

    agents = pool(broken, collect=collect)
    assert agents.recall(Question(), 5).size == 0
    for call in agents.test, agents.recall:
        with pytest.raises(ConnectionError):
            call(Question(), 5)
    assert agents.recall(Question("other"), 5).size == 0
    assert agents.recall(Question(), 4).size == 0
    assert agents.test(Question(), 5).tolist() == [1, 0, 1, 0]
    assert counts(agents) == (4, 1, 1)
    assert agents.remaining == 5


def test_new_agents_are_asked_where_nothing_arrived():
    asked = []

    def ask(text, count):
        asked.append(count)
        if len(asked) == 1:
            raise ConnectionError
        return [1] * count

    agents = pool(ask)
    with pytest.raises(ConnectionError):
        agents.test(Question(), 4)
    assert agents.test(Question(), 4).tolist() == [1] * 4
    assert agents.remaining == 2


@pytest.mark.thorough(cases=1)
@forking
@pytest.mark.parametrize(
    ("kind", "inside"), [("sleep", False), ("stream", False), ("stream", True)]
)
def test_ctrl_c_ends_a_test_within_a_second(kind, inside):
    reading, writing = os.pipe()

    def ask(text, count):
        os.write(writing, b"!")
        time.sleep(60)

    async def stream(text, count):
        os.write(writing, b"!")
        yield {"a": 1}
        await asyncio.sleep(60)

    async def cell(agents):
        return agents.test(Question(), 5)

    def child():
        agents = pool(ask if kind == "sleep" else stream)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(cell(agents)) if inside else agents.test(Question(), 5)
        assert agents.remaining == 5
        assert agents.recall(Question(), 5).tolist() == [1] * (kind == "stream")

    number = forked(child)
    assert os.read(reading, 1) == b"!"
    time.sleep(0.2)
    start = time.monotonic()
    os.kill(number, signal.SIGINT)
    assert exit_code(number, 10) == 0
    assert time.monotonic() - start < 1


# State --------------------------------------------------------------------------------------------


def test_a_new_process_goes_on_where_the_last_one_ended(tmp_path):
    state = tmp_path / "state"
    first = pool(broken, state=state)
    first.pass_over(1)
    with pytest.raises(ConnectionError):
        first.test(Question(), 5)

    second = pool(pytest.fail, state=state)
    assert second.remaining == 4
    assert counts(second) == (2, 0, 0)
    assert second.test(Question(), 5).tolist() == [1, 0]

    third = pool(pytest.fail, state=state, collect=lambda text, count: {"a": 0, "c": 1})
    assert third.test(Question(), 5).tolist() == [1, 0, 1], "they may never have been used"
    assert counts(third) == (3, 0, 1)

    # A later question shows that the answers were used: now others are asked.
    third = pool(lambda text, count: [1], state=state)
    third.test(Question(), 5)
    third.test(Question("other"), 2)
    assert third.remaining == 2
    fourth = pool(lambda text, count: [0], state=state)
    assert fourth.test(Question(), 2).tolist() == [0]
    assert fourth.remaining == 0
    with pytest.raises(AgentsExhausted):
        pool(pytest.fail, state=state).test(Question("new"), 1)


def test_two_objects_of_one_state_ask_nobody_twice(tmp_path):
    one, two = (pool(lambda text, count: [1] * count, state=tmp_path / "state") for _ in range(2))
    one.test(Question("a"), 4)
    two.test(Question("b"), 4)
    with pytest.raises(AgentsExhausted):
        one.test(Question("c"), 4)
    one.test(Question("c"), 2)
    assert pool(pytest.fail, state=tmp_path / "state").remaining == 0


def test_two_processes_that_collect_the_same_answers_leave_a_sound_state(tmp_path):
    state = tmp_path / "state"
    with pytest.raises(ConnectionError):
        pool(broken, state=state).test(Question(), 4)

    def collect(text, count):
        return {"a": 1, "c": 1, "d": 1, "e": 0}

    two = [pool(pytest.fail, state=state, collect=collect) for _ in range(2)]
    for agents in two:
        assert agents.test(Question(), 4).tolist() == [1, 0, 1, 1]
    last = pool(pytest.fail, state=state)
    assert last.recall(Question(), 4).tolist() == [1, 0, 1, 1]
    assert counts(last) == (4, 2, 4)


def test_a_state_belongs_to_its_agents(tmp_path):
    state = tmp_path / "state"
    pool(lambda text, count: [1], state=state).test(Question(), 8)
    with pytest.raises(CheckpointError, match="epsilon = 1, not 2"):
        pool(print, state=state, epsilon=2.0)
    with pytest.raises(ParameterError, match="count = 7, but 8 agents have been asked"):
        pool(print, state=state, count=7)
    assert pool(print, state=state, count=20).remaining == 12
    assert state.stat().st_mode & 0o777 == 0o600


def test_a_question_is_on_the_disk_before_it_goes_out(tmp_path):
    state = tmp_path / "state"

    def ask(text, count):
        assert pool(pytest.fail, state=state).remaining == 6
        yield [1]
        assert counts(pool(pytest.fail, state=state)) == (1, 0, 0)
        yield [1]

    assert pool(ask, state=state).test(Question(), 4).tolist() == [1, 1]


def test_threads_share_a_pool():
    seen, number = [], itertools.count()

    def ask(text, count):
        seen.append(count)
        for _ in range(count):
            yield {str(next(number)): 1}

    agents = pool(ask, count=60)
    work = lambda: [agents.test(Question(), 3) for _ in range(5)]  # noqa: E731
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (sum(seen), agents.remaining, counts(agents)) == (60, 0, (60, 0, 0))


@forking
def test_a_forked_child_gets_no_answers(tmp_path):
    agents = pool(broken, state=tmp_path / "state")
    with pytest.raises(ConnectionError):
        agents.test(Question(), 4)

    def child():
        calls = [lambda: agents.recall(Question(), 4), lambda: agents.pass_over(1)]
        for call in [*calls, lambda: agents.test(Question("new"), 1)]:
            with pytest.raises(ParameterError, match="forked child"):
                call()

    assert exit_code(forked(child)) == 0
    assert agents.test(Question(), 4).tolist() == [1, 0]


# Agents who are lost ------------------------------------------------------------------------------


def test_those_who_are_left_answer_where_others_were_lost(tmp_path):
    """Without it, a survey of everybody could never end once a question was lost."""

    def ask(text, count):
        asked.append(count)
        if len(asked) in deaths:
            raise KeyboardInterrupt
        return [1] * count

    def run(pool):
        with pool.keep_answers():
            return [pool.test(Question(name), 30).size for name in "abc"]

    asked, deaths, state = [], {1}, tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        run(pool(ask, count=90, state=state))
    again = pool(ask, count=90, state=state)
    # No one but 60 people can still be asked.
    again.require([(Question(name), 30) for name in "abc"])
    assert run(again) == [30, 30, 0]
    assert (asked, again.remaining) == ([30, 30, 30], 0)
    with pytest.raises(AgentsExhausted):
        again.test(Question("d"), 1)


def test_a_question_that_is_lost_twice_takes_the_answers_that_came(tmp_path):
    def ask(text, count):
        asked.append(count)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return [1] * count

    asked, way = [], {"count": 90, "state": tmp_path / "state"}
    first = pool(ask, **way)
    with pytest.raises(KeyboardInterrupt), first.keep_answers():
        first.test(Question(), 30)
    second = pool(ask, **way)

    def die():
        with second.keep_answers():
            assert second.test(Question(), 30).size == 30
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        die()
    assert pool(ask, **way).test(Question(), 30).size == 30
    assert asked == [30, 30]


def test_questions_that_are_open_need_no_new_agents(tmp_path):
    way = {"count": 90, "state": tmp_path / "state"}
    pool(lambda text, count: [1] * count, **way).test(Question("a"), 50)
    again = pool(pytest.fail, **way)
    again.require([(Question("a"), 50), (Question("b"), 40)])
    for pairs in ([("a", 50), ("a", 50)], [("a", 49)], [("a", 50), ("b", 41)]):
        with pytest.raises(AgentsExhausted, match="but 40 agents are left"):
            again.require([(Question(name), count) for name, count in pairs])


@pytest.mark.parametrize("is_recalled", [False, True])
def test_where_warnings_are_errors_answers_that_were_paid_for_arrive(tmp_path, is_recalled):
    way = {"count": 900, "state": tmp_path / "state"}
    pool(lambda text, count: [1] * (count // 2), response_rate=0.4, **way).test(Question(), 400)
    again = pool(pytest.fail, **way)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers = (again.recall if is_recalled else again.test)(Question(), 400)
    assert answers.size == 200


def test_a_transport_that_takes_a_number_gets_that_of_the_question(tmp_path):
    def ask(text, count, *, number=7):
        numbers.append(number)
        return [1] * count

    numbers = []
    for state in (None, tmp_path / "state"):
        agents = pool(ask, state=state)
        agents.pass_over(2)
        agents.test(Question(), 3)
        agents.test(Question(), 3)
    assert numbers == [None, None, 2, 3]
    # A second argument of this name is the number of people.
    assert pool(lambda text, number: [1] * number).test(Question(), 4).size == 4


def test_an_answer_outweighs_the_claim_that_nobody_was_asked(tmp_path):
    def ask(text, count):
        yield [1, 0]
        raise ConnectionError

    def collect(text, count):
        raise NeverAsked("a folder that is another one")

    agents = pool(ask, collect=collect)
    with pytest.raises(ConnectionError):
        agents.test(Question(), 5)
    assert agents.test(Question(), 5).tolist() == [1, 0]
    assert agents.remaining == 5


def test_silence_that_an_earlier_process_took_for_an_answer_is_one(tmp_path):
    """Else each restart would ask other people the small questions that no one has answered."""

    def ask(text, count):
        asked.append(text)
        return [] if "a" in text else [1] * count

    def run(pool, end):
        with pool.keep_answers():
            sizes = [pool.test(Question(name), 1).size for name in end]
            if end == "abc":
                return sizes
            raise KeyboardInterrupt

    asked, way = [], {"count": 4, "response_rate": 0.01, "state": tmp_path / "state"}
    for end in ("a", "ab"):
        with pytest.raises(KeyboardInterrupt):
            run(pool(ask, **way), end)
    # The first process may have died before anybody could answer, the second one has gone on.
    assert len(asked) == 3
    assert run(pool(ask, **way), "abc") == [0, 1, 1]
    assert len(asked) == 4
    assert pool(ask, **way).remaining == 0
