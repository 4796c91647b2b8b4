"""A study as the way from RemoteAgents to people: deadlines, restarts, and what dies in between."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from cases import each_case
from processes import wait_until
from visitors import QUERY, lines, new_study, question_of, running, tokens

from hdp_fast import collection, transfer
from hdp_fast.collection.store import AnswerStore
from hdp_fast.exceptions import NeverAsked, ParameterError
from hdp_fast.local import Query, RemoteAgents

pytest.importorskip("starlette")
pytestmark = pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
EPSILON = 4.0


@pytest.fixture
def study(tmp_path):
    return new_study(tmp_path, people=200)


def agents(study, *, deadline=30.0, state="agents.db", **options):
    server = collection.SurveyServer(study, deadline=deadline, poll=0.02)
    options = {"epsilon": EPSILON, "count": study.people, "response_rate": 0.5, **options}
    path = None if state is None else study.path / state
    return RemoteAgents(server.ask, collect=server.collect, state=path, **options)


class People(threading.Thread):
    """Who is invited answers, in a thread with a server of its own; `silent` people never do."""

    def __init__(self, study, silent=(), value=1.0):
        super().__init__()
        self.study, self._silent, self._value = study, set(silent), value
        self.replies, self._end = {}, threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self.join()

    def run(self):
        asyncio.run(self._answer())

    async def _answer(self):
        keys, done = tokens(self.study), set()
        app = collection.survey_app(self.study, per_address=0, per_token=0)
        async with running(app) as visitor:
            while not self._end.is_set():
                for stage in self.study.stages():
                    if stage.number not in done:
                        done.add(stage.number)
                        people = range(stage.first, stage.first + stage.count)
                        told = [one for one in people if one not in self._silent]
                        made = lines(self.study, stage.number, told, self._value)
                        # They come in an order of their own.
                        for number, line in sorted(
                            zip(told, made, strict=True), key=lambda one: one[1][-30:]
                        ):
                            await asyncio.sleep(0)
                            reply = await visitor.post(keys[number - 1], line)
                            self.replies[number] = reply.status
                await asyncio.sleep(0.02)


def test_a_stage_ends_with_the_last_answer_and_every_bit_counts(study):
    with People(study) as people:
        pool = agents(study)
        start = time.monotonic()
        asked = [(Query.value(0, 0, 1), 60), (Query.label(), 60)]
        answered = pool.ask_together(asked)
        assert time.monotonic() - start < 20
    assert set(people.replies.values()) == {200}
    assert sum(one.asked for one in answered) == sum(one.bits.size for one in answered) == 120
    assert [one.bits.mean() > 0.5 for one in answered] == [True, False]
    assert pool.counts() == {"asked": 120, "answered": 120, "dropped": 0, "duplicates": 0}
    ((stage,), expected) = study.stages(), [(f"{study.id}-1", 1, 120, True)]
    assert [(question_of(study, 1).id, stage.first, stage.count, stage.closed)] == expected


def test_answers_come_by_their_random_ids_and_so_without_an_order(study):
    with People(study):
        server = collection.SurveyServer(study, deadline=30.0, poll=0.02)

        async def ask():
            return [batch async for batch in server.ask(QUERY, 40)]

        (batch,) = asyncio.run(ask())
    assert len(batch) == 40
    assert [key for key, _ in batch] == sorted(key for key, _ in batch)


def test_the_deadline_closes_a_stage_and_whoever_comes_late_is_told(study):
    with People(study, silent=range(1, 21)) as people:
        pool = agents(study, deadline=1.0)
        start = time.monotonic()
        assert pool.ask(Query.value(0, 0, 1), 50).size == 30
        assert 0.9 < time.monotonic() - start < 20
    assert len(people.replies) == 30
    key = tokens(study)[4]
    (late,) = lines(study, 1, [5])

    async def come():
        async with running(collection.survey_app(study)) as visitor:
            replies = [await visitor.get("/question", key), await visitor.post(key, late)]
            return [(reply.status, reply.content) for reply in replies]

    assert asyncio.run(come()) == [(410, {"error": "closed"})] * 2
    assert study.counts() == {"invited": 50, "answered": 30}


def test_the_next_question_goes_to_the_next_people(study):
    with People(study):
        pool = agents(study)
        sizes = [pool.ask(Query.value(0, 0, 1), count).size for count in (10, 20)]
        certificate = transfer.certify(
            {"kind": "parity", "features": [0], "complement": False}, pool, count=100
        )
    assert sizes == [10, 20]
    assert certificate.high <= 1
    people = [(stage.first, stage.count) for stage in study.stages()]
    assert people == [(1, 10), (11, 20), (31, 100)]
    assert {stage.closed for stage in study.stages()} == {True}


def test_a_stage_that_was_interrupted_is_taken_up_and_nobody_is_asked_again(study):
    class Interrupted(Exception):
        pass

    server = collection.SurveyServer(study, deadline=600.0, poll=0.02)

    async def broken(text, count, *, number):
        work = asyncio.ensure_future(anext(server.ask(text, count, number=number)))
        await asyncio.sleep(0.2)
        work.cancel()
        raise Interrupted
        yield

    state = study.path / "agents.db"
    way = {"epsilon": EPSILON, "count": 200, "collect": server.collect, "state": state}
    with pytest.raises(Interrupted):
        RemoteAgents(broken, **way).ask(Query.value(0, 0, 1), 30)
    assert study.counts() == {"invited": 30, "answered": 0}
    with People(study):
        again = RemoteAgents(server.ask, **way)
        assert again.ask(Query.value(0, 0, 1), 30).size == 30
    assert [(stage.first, stage.count) for stage in study.stages()] == [(1, 30)]
    assert again.counts()["asked"] == 30


def test_a_stage_that_never_went_out_goes_to_the_same_people(study):
    server = collection.SurveyServer(study, deadline=30.0, poll=0.02)

    async def dead(text, count, *, number):
        raise KeyboardInterrupt
        yield

    way = {"epsilon": EPSILON, "count": 200, "state": study.path / "agents.db"}
    with pytest.raises(KeyboardInterrupt):
        RemoteAgents(dead, collect=server.collect, **way).ask(Query.value(0, 0, 1), 30)
    assert study.stages() == []
    with People(study):
        pool = RemoteAgents(server.ask, collect=server.collect, **way)
        assert pool.ask(Query.value(0, 0, 1), 30).size == 30
    assert [(stage.first, stage.count) for stage in study.stages()] == [(1, 30)]


def collect(study, number=None, hypothesis=QUERY, **options):
    server = collection.SurveyServer(study, **{"deadline": 0.2, "poll": 0.02, **options})

    async def run():
        return [batch async for batch in server.collect(hypothesis, 0, number=number)]

    return asyncio.run(run())


def test_what_was_never_asked_is_said_and_asks_no_one(study):
    study.publish(QUERY, 5, number=3)
    with pytest.raises(NeverAsked, match="number = 4"):
        collect(study, 4)
    with pytest.raises(NeverAsked, match="number = 3"):
        collect(study, 3, hypothesis="{}")
    assert collect(study, hypothesis="{}") == []
    assert [stage.closed for stage in study.stages()] == [False]
    assert collect(study, 3) == [[]]
    assert [stage.closed for stage in study.stages()] == [True]


def test_a_stage_whose_closing_was_cut_off_is_tidied_when_it_is_read(study, monkeypatch):
    """Its pages would tell in which order answers came."""
    study.publish(QUERY, 60)
    with People(study) as people, monkeypatch.context() as patch:
        patch.setattr(AnswerStore, "tidy", lambda store: None)
        server = collection.SurveyServer(study, deadline=30.0, poll=0.02)
        (before,) = asyncio.run(all_of(server.collect(QUERY, 60, number=1)))
    assert set(people.replies.values()) == {200}
    untidy = (study.path / "collector.db").read_bytes()
    (after,) = asyncio.run(all_of(server.collect(QUERY, 60, number=1)))
    assert len(before) == 60
    assert after == before
    tidy = (study.path / "collector.db").read_bytes()
    places = [[content.index(bytes.fromhex(key)) for key, _ in after] for content in (untidy, tidy)]
    assert places[0] != sorted(places[0], reverse=True)
    assert places[1] == sorted(places[1], reverse=True)


async def all_of(batches):
    return [batch async for batch in batches]


@each_case("jump, least, most", [(0.0, 0.4, 5.0), (1e6, 0.0, 0.3), (-1e6, 0.4, 5.0)])
def test_a_clock_that_jumps_makes_no_wait_longer_than_the_deadline(
    study, monkeypatch, jump, least, most
):
    number = study.publish(QUERY, 5).number
    now = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now() + jump)
        start = time.monotonic()
        assert collect(study, number, deadline=0.5) == [[]]
    assert least <= time.monotonic() - start < most


def test_a_new_process_waits_for_what_is_left_of_the_deadline(study, monkeypatch):
    study.publish(QUERY, 5)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 59.7)
    start = time.monotonic()
    assert collect(study, 1, deadline=60.0) == [[]]
    assert 0.1 < time.monotonic() - start < 5


def test_a_second_state_is_refused_before_anybody_is_asked(study):
    with People(study):
        assert agents(study).ask(Query.value(0, 0, 1), 10).size == 10
    other = agents(study, state="other.db")
    with pytest.raises(ParameterError, match="number = 1, but the study has a stage of it"):
        other.ask(Query.value(0, 0, 1), 10)
    # Without a state, people would be asked again, too: a stage names them.
    nameless = agents(study, state=None)
    with pytest.raises(ParameterError, match="first = 1, but everybody below 11"):
        nameless.ask_together([(Query.value(0, 0, 1), 5), (Query.label(), 5)])
    assert study.counts() == {"invited": 10, "answered": 10}


def test_more_people_than_there_are_are_refused(study):
    pool = agents(study, count=1_000)
    with pytest.raises(ParameterError, match="count = 201, but the study has 200 people"):
        pool.ask(Query.value(0, 0, 1), 201)
    assert study.stages() == []


@each_case(
    "name, value",
    [("study", "study"), ("deadline", 0), ("deadline", None), ("poll", -1.0), ("poll", "1")],
)
def test_a_survey_server_refuses(study, name, value):
    arguments = {"study": study, "deadline": 1.0, "poll": 1.0} | {name: value}
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        collection.SurveyServer(arguments.pop("study"), **arguments)


def test_progress_counts_answers_and_tells_the_time_that_is_left(study, monkeypatch):
    from hdp_fast._support import progress

    shown = []

    class Bar(progress.NoBar):
        def update(self, done=1):
            shown.append(done)

        def set_description(self, text):
            shown.append(text)

    class Shown:
        def __enter__(self):
            return Bar()

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(
        progress, "bar", lambda total, unit, visible: shown.append((total, unit)) or Shown()
    )
    with People(study):
        assert agents(study, deadline=90_000.0).ask(Query.value(0, 0, 1), 30).size == 30
    assert shown[0] == (30, "answers")
    assert sum(one for one in shown if isinstance(one, int)) == 30
    assert "stage 1, 1 d 1 h left" in shown


ASK = """
import sys
from hdp_fast import collection, local
study = collection.Study.open(sys.argv[1])
server = collection.SurveyServer(study, deadline=60.0, poll=.02)
way = {"collect": server.collect, "state": study.path / "agents.db"}
pool = local.RemoteAgents(server.ask, epsilon=4.0, count=study.people, **way)
pairs = [(local.Query.value(0, 0, 1), 20), (local.Query.label(), 20)]
print([one.bits.size for one in pool.ask_together(pairs)], pool.counts())
"""


def test_the_asking_process_may_die_at_any_time(study):
    """It is killed while people answer, and started again until it comes to its end."""
    program = partial(
        subprocess.Popen,
        [sys.executable, "-c", ASK, str(study.path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    first = program()
    wait_until(study.stages, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    first.stdout.close()
    with People(study, silent=[7]) as people:
        # All but one have answered before anybody waits for them.
        end = time.monotonic() + 30
        while study.counts()["answered"] < 39:
            assert time.monotonic() < end
            time.sleep(0.02)
        second = program()
        key, (line,) = tokens(study)[6], lines(study, 1, [7])
        people._silent.clear()

        async def come():
            async with running(collection.survey_app(study)) as visitor:
                return (await visitor.post(key, line)).status

        assert asyncio.run(come()) == 200
        out, _ = second.communicate(timeout=60)
    assert second.returncode == 0
    sizes, counts = out.split("] ")
    assert sum(json.loads(f"{sizes}]")) == 40
    assert "'asked': 40, 'answered': 40, 'dropped': 0, 'duplicates': 0" in counts
    assert [(stage.first, stage.count, stage.closed) for stage in study.stages()] == [(1, 40, True)]
