"""A folder of reports as the way to people: deadlines, growing files, garbage, a second reading."""

import asyncio
import json
import os
import resource
import socket
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from hdp_fast.cli import main
from hdp_fast.collection import (
    Question,
    ReportFolder,
    hypothesis_line,
    hypothesis_question,
    read_question,
)
from hdp_fast.exceptions import ParameterError
from hdp_fast.local import BinaryResponse, KaryResponse, RemoteAgents

RULE = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}


class Rule:
    hypothesis = RULE


def nobody(folder, count):
    """Lets nobody know."""


def lines(folder, records, labels=None):
    """What devices with these records answer to the question in a folder."""
    question = read_question(folder / "question.json")
    labels = [0] * len(records) if labels is None else labels
    return [
        hypothesis_line(question, record, label)
        for record, label in zip(records, labels, strict=True)
    ]


def write(path, written, end="\n"):
    path.write_text("".join(f"{line}{end}" for line in written))


def agents(folder, **options):
    options = {"epsilon": 30.0, "count": 100, "response_rate": 0.01, **options}
    return RemoteAgents(folder.ask, collect=folder.collect, **options)


def new(tmp_path, invite, **options):
    options = {"epsilon": 30.0, "deadline": 0.3, "poll": 0.02, **options}
    return ReportFolder(tmp_path / "survey", invite, **options)


def test_answers_are_read_as_they_come_and_the_wait_ends_with_the_last(tmp_path):
    def invite(folder, count):
        written = lines(folder, [[0, 1]] * 3 + [[0, 0]] * 2)
        write(folder / "a.jsonl", written[:2])

        def later():
            time.sleep(0.1)
            # Half a line, which a slow writer ends some time later.
            with (folder / "b.jsonl").open("w") as out:
                out.write(written[2][:40])
                out.flush()
                time.sleep(0.1)
                out.write(written[2][40:] + "\n")
                out.write(f"garbage\n{written[0]}\n{'x' * 10_000}\n")
                out.write("\n".join(written[3:]))

        thread = threading.Thread(target=later)
        thread.start()
        threads.append(thread)

    threads = []
    pool = agents(new(tmp_path, invite, deadline=60))
    start = time.monotonic()
    # The fifth person's line comes after four have answered.
    assert pool.test(Rule(), 4).tolist() == [1, 1, 1, 0]
    assert time.monotonic() - start < 30
    threads[0].join()
    assert pool.counts() == {"asked": 4, "answered": 4, "dropped": 3, "duplicates": 1}


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_the_wait_ends_when_all_lines_are_there_whether_the_last_one_is_ended_or_not(tmp_path, end):
    def invite(folder, count):
        (folder / "a.jsonl").write_text("\n".join(lines(folder, [[0, 1]] * count)) + end)

    pool = agents(new(tmp_path, invite, deadline=600))
    start = time.monotonic()
    assert pool.test(Rule(), 50).size == pool.test(Rule(), 50).size == 50
    assert time.monotonic() - start < 60
    assert pool.counts() == {"asked": 100, "answered": 100, "dropped": 0, "duplicates": 0}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_end_that_comes_later_is_no_line(tmp_path, end):
    def invite(folder, count):
        first, second, third = lines(folder, [[0, 1]] * 3)
        (folder / "a.jsonl").write_text(first)

        def later():
            for more in (end, second[:50], second[50:], f"{end}{third}{end}"):
                time.sleep(0.08)
                with (folder / "a.jsonl").open("a", newline="") as out:
                    out.write(more)

        threading.Thread(target=later).start()

    pool = agents(new(tmp_path, invite, deadline=600))
    assert pool.test(Rule(), 3).tolist() == [1, 1, 1]
    assert pool.counts()["dropped"] == pool.counts()["duplicates"] == 0


def test_the_deadline_ends_the_wait_and_takes_the_last_line_without_an_end(tmp_path):
    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]]))
        write(folder / "b.jsonl", lines(folder, [[0, 0]]), end="")

    pool = agents(new(tmp_path, invite))
    start = time.monotonic()
    assert pool.test(Rule(), 10).tolist() == [1, 0]
    assert 0.2 < time.monotonic() - start < 5


def test_every_question_has_a_folder_and_an_id_of_its_own(tmp_path):
    asked = []

    async def invite(folder, count):
        await asyncio.sleep(0)
        asked.append((folder.name, count, read_question(folder / "question.json")))
        write(folder / "a.jsonl", lines(folder, [[0, 1]]))

    pool = agents(new(tmp_path, invite, deadline=0.05))
    for count in (5, 6):
        pool.test(Rule(), count)
    assert [(name, count) for name, count, _ in asked] == [("0001", 5), ("0002", 6)]
    first, second = (question for *_, question in asked)
    assert first.id != second.id
    assert json.loads(first.hypothesis) == RULE
    assert pool.counts()["answered"] == 2


def test_questions_are_numbered_on_beyond_four_digits(tmp_path):
    folder = new(tmp_path, nobody, deadline=0.01)
    for name in ("9998", "9999", "notes", "0x1"):
        (tmp_path / "survey" / name).mkdir()
    for _ in range(2):
        agents(folder).test(Rule(), 1)
    assert (tmp_path / "survey" / "10001" / "question.json").exists()


def test_a_clock_that_is_ahead_makes_no_wait_longer(tmp_path):
    def invite(folder, count):
        later = time.time() + 1e6
        os.utime(folder / "question.json", (later, later))

    start = time.monotonic()
    agents(new(tmp_path, invite, deadline=0.1)).test(Rule(), 1)
    assert time.monotonic() - start < 5


def test_a_clock_that_is_behind_ends_no_wait_of_those_who_were_just_asked(tmp_path):
    def invite(folder, count):
        before = time.time() - 1e6
        os.utime(folder / "question.json", (before, before))
        answered = partial(write, folder / "a.jsonl", lines(folder, [[0, 1]] * count))
        threading.Timer(0.1, answered).start()

    assert agents(new(tmp_path, invite, deadline=60)).test(Rule(), 3).size == 3


@pytest.mark.parametrize(("shift", "wait"), [(1e6, 0.3), (-1e6, 0.0)])
def test_a_question_is_collected_for_the_rest_of_its_time(tmp_path, shift, wait):
    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]]))
        changed = time.time() + shift
        os.utime(folder / "question.json", (changed, changed))
        raise ConnectionError

    folder = new(tmp_path, invite, deadline=0.3)
    way = {"epsilon": 30.0, "count": 5, "response_rate": 0.01, "state": tmp_path / "state"}
    with pytest.raises(ConnectionError):
        RemoteAgents(folder.ask, **way).test(Rule(), 5)
    start = time.monotonic()
    assert RemoteAgents(pytest.fail, collect=folder.collect, **way).test(Rule(), 5).size == 1
    assert wait / 2 < time.monotonic() - start + 1e-3 < wait + 5


def test_lines_to_another_question_are_dropped(tmp_path):
    def invite(folder, count):
        if folder.name == "0002":
            write(folder / "old.jsonl", (folder.parent / "0001" / "a.jsonl").read_text().split())
        other = hypothesis_question("other", json.dumps(RULE), epsilon=1.0)
        written = [hypothesis_line(other, [0, 1], 1), *lines(folder, [[0, 1]])]
        write(folder / "a.jsonl", written)

    pool = agents(new(tmp_path, invite, deadline=0.05))
    pool.test(Rule(), 5)
    assert pool.counts()["dropped"] == 1
    pool.test(Rule(), 5)
    assert pool.counts()["answered"] == 2


def test_a_second_process_collects_and_invites_nobody(tmp_path):
    invited = []

    def invite(folder, count):
        invited.append(folder)
        write(folder / "a.jsonl", lines(folder, [[0, 1]] * 2))

    def interrupted(text, count):
        async def ask():
            async for replies in folder.ask(text, count):
                yield replies
                raise ConnectionError

        return ask()

    state = tmp_path / "state"
    folder = new(tmp_path, invite, deadline=0.1)
    pool = RemoteAgents(interrupted, epsilon=30.0, count=9, response_rate=0.01, state=state)
    with pytest.raises(ConnectionError):
        pool.test(Rule(), 5)
    write(invited[0] / "late.jsonl", lines(invited[0], [[0, 0]]))
    again = agents(new(tmp_path, pytest.fail, deadline=0.1), count=9, state=state)
    assert sorted(again.test(Rule(), 5)) == [0, 1, 1]
    assert again.counts() == {"asked": 5, "answered": 3, "dropped": 0, "duplicates": 2}
    assert asyncio.run(_all(folder.collect('{"kind": "unasked"}', 5))) == []


async def _all(stream):
    return [batch async for batch in stream]


def test_the_command_reads_the_same_files(tmp_path, capsys):
    rng = np.random.default_rng(0)

    def invite(folder, count):
        records = np.c_[rng.integers(0, 2, count), np.arange(count) % 4 == 0]
        write(folder / "a.jsonl", lines(folder, records.tolist()))

    pool = agents(new(tmp_path, invite, epsilon=3.0), epsilon=3.0, count=2000)
    answers = pool.test(Rule(), 2000)
    place = tmp_path / "survey" / "0001"
    command = ["local", "collect", place / "a.jsonl", "--question", place / "question.json"]
    assert main([*map(str, command), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["accepted"] == len(answers) == 2000
    assert abs(summary["estimate"] - 0.25) < 0.1


@pytest.mark.parametrize(
    "record", [[], [1], ["a", "b"], None, [[0, 1]], [0.5, None], [float("nan")] * 2, 7]
)
def test_a_device_answers_whatever_its_record_is(record):
    """Silence, a warning or an error would reveal something about the record."""
    question = hypothesis_question("q", json.dumps(RULE), epsilon=30.0)
    assert json.loads(hypothesis_line(question, record, 1))["report"] in (0, 1)
    assert json.loads(hypothesis_line(question, [0, 1], "no label"))["report"] == 1
    assert json.loads(hypothesis_line(question, [0, 1], 1))["report"] == 0


def test_a_question_about_a_hypothesis():
    question = hypothesis_question("q", json.dumps(RULE), epsilon=1.0)
    assert Question.from_json(question.to_json()) == question
    other = hypothesis_question("q", json.dumps({**RULE, "values": [0]}), epsilon=1.0)
    assert other.digest != question.digest
    for text in ("no JSON", "[1]", 3, None, "3"):
        with pytest.raises(ParameterError, match="hypothesis"):
            hypothesis_line(Question("q", BinaryResponse(1.0, (0, 1)), hypothesis=text), [0], 1)
    for randomizer in (BinaryResponse(1.0, (0, 2)), KaryResponse(2, 1.0)):
        with pytest.raises(ParameterError, match="answered by a BinaryResponse"):
            Question("q", randomizer, hypothesis=json.dumps(RULE))
    unknown = hypothesis_question("q", '{"kind": "oracle"}', epsilon=1.0)
    with pytest.raises(ParameterError):
        hypothesis_line(unknown, [0, 1], 1)


@pytest.mark.parametrize(
    "change",
    [{"invite": None}, {"epsilon": 0}, {"deadline": 0}, {"poll": -1}, {"max_bytes": 0}],
)
def test_bad_folders_are_refused(tmp_path, change):
    good = {"invite": nobody, "epsilon": 1.0, "deadline": 1.0}
    with pytest.raises(ParameterError, match=next(iter(change))):
        ReportFolder(tmp_path / "survey", **(good | change))
    (tmp_path / "file").write_text("")
    with pytest.raises(ParameterError, match="path"):
        ReportFolder(tmp_path / "file", **good)


def test_a_file_that_is_unreadable_or_shrinks_ends_nothing(tmp_path):
    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]] * 2))
        (folder / "b.jsonl").mkdir()
        (folder / "c.jsonl").symlink_to(folder / "missing")

        def later():
            time.sleep(0.15)
            write(folder / "new", lines(folder, [[0, 0]]))
            os.replace(folder / "new", folder / "a.jsonl")

        threading.Thread(target=later).start()

    pool = agents(new(tmp_path, invite, deadline=0.6))
    assert pool.test(Rule(), 9).tolist() == [1, 1, 0]


def link(target):
    return lambda path: path.symlink_to(target)


def grow(path):
    """A file that a thread makes longer for seconds, in pieces without any line."""
    path.write_bytes(b"")

    def write_on():
        end = time.monotonic() + 3
        with path.open("ab") as out:
            while time.monotonic() < end:
                out.write(b"x" * (1 << 16))

    threading.Thread(target=write_on, daemon=True).start()


def hollow(path):
    with path.open("wb") as out:
        out.truncate(1 << 40)


def listen(path):
    with socket.socket(socket.AF_UNIX) as place:
        place.bind(str(path.relative_to(Path.cwd())))


HOSTILE = {
    "fifo": os.mkfifo if hasattr(os, "mkfifo") else None,
    "zeros": link("/dev/zero"),
    "terminal": link("/dev/tty"),
    "coins": link("/dev/urandom"),
    "loop": link("b.jsonl"),
    "nowhere": link("missing"),
    "growing": grow,
    "hollow": hollow,
    "folder": Path.mkdir,
    "socket": listen,
}


@pytest.mark.thorough(cases=5)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a platform without them")
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("places", [["b.jsonl"], ["a\x1b[31m\u202e.jsonl"]])
def test_no_entry_of_a_folder_stops_its_deadline(tmp_path, monkeypatch, name, places):
    monkeypatch.chdir(tmp_path)

    def invite(folder, count):
        for place in places:
            HOSTILE[name](folder / place)
        write(folder / "z.jsonl", lines(folder, [[0, 1]] * 2))

    pool = agents(new(tmp_path, invite, deadline=0.3, max_bytes=1 << 22))
    start, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers = pool.test(Rule(), 9).tolist()
    assert time.monotonic() - start < 2.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
    counts = pool.counts()
    if name in ("growing", "hollow"):
        # What was read of it leaves no room for others.
        assert answers in ([1, 1], [])
        assert 1 <= counts["dropped"] <= 5
    else:
        assert answers == [1, 1]
        assert counts["dropped"] == 1


def test_no_link_is_followed(tmp_path):
    """Be the lines good: what lies elsewhere on this machine is not for those who write here."""

    def invite(folder, count):
        write(tmp_path / "elsewhere.jsonl", lines(folder, [[0, 1]] * 3))
        (folder / "a.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")

    pool = agents(new(tmp_path, invite))
    assert pool.test(Rule(), 9).size == 0
    assert pool.counts()["dropped"] == 1


def test_a_question_has_so_many_bytes_and_no_more(tmp_path):
    def invite(folder, count):
        written = lines(folder, [[0, 1]] * 9)
        write(folder / "a.jsonl", written[:4])
        write(folder / "b.jsonl", written[4:])

    # The ids of questions and lines are at random, and of one length.
    question = hypothesis_question(f"0001-{'0' * 16}", json.dumps(RULE), epsilon=30.0)
    line = len(hypothesis_line(question, [0, 1], 1)) + 1
    pool = agents(new(tmp_path, invite, max_bytes=5 * line + 7))
    assert pool.test(Rule(), 20).size == 5
    assert pool.counts()["dropped"] == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a platform without them")
def test_a_question_file_that_is_none_blocks_nothing(tmp_path):
    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]]))

    folder = new(tmp_path, invite, deadline=0.05)
    state = tmp_path / "state"
    agents(folder, state=state).test(Rule(), 2)
    for number, make in enumerate([os.mkfifo, link("/dev/zero"), Path.mkdir], 5):
        place = tmp_path / "survey" / f"{number:04d}"
        place.mkdir()
        make(place / "question.json")
    (tmp_path / "survey" / "0009").write_text("no folder")
    (tmp_path / "survey" / "0010").symlink_to(tmp_path)
    start = time.monotonic()
    assert len(asyncio.run(_all(folder.collect(json.dumps(RULE), 2)))[0]) == 1
    assert agents(folder, state=state).test(Rule(), 3).tolist() == [1]
    assert time.monotonic() - start < 5
    assert (tmp_path / "survey" / "0011" / "question.json").exists()


# Questions that were interrupted ------------------------------------------------------------------


class Died(Exception):
    """Stands for the death of a process: what comes after it never happens."""


def dying(method, deaths):
    """A way to people on which the process dies so many times before anything has left."""

    def way(text, count, *, number):
        if deaths:
            raise Died(deaths.pop())
        return method(text, count, number=number)

    return way


def test_a_question_that_never_left_is_written_by_the_next_process(tmp_path):
    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]] * count))

    folder, state = new(tmp_path, invite, deadline=600), tmp_path / "state"
    way = {"epsilon": 30.0, "count": 10, "state": state, "collect": folder.collect}
    for _ in range(3):
        with pytest.raises(Died):
            RemoteAgents(dying(folder.ask, ["state"]), **way).test(Rule(), 10)
    pool = RemoteAgents(folder.ask, **way)
    # To recall an answer asks nobody, and leaves the question to be asked.
    assert (pool.recall(Rule(), 10).size, pool.remaining) == (0, 0)
    assert pool.test(Rule(), 10).size == 10
    assert pool.counts() == {"asked": 10, "answered": 10, "dropped": 0, "duplicates": 0}
    assert [path.name for path in (tmp_path / "survey").iterdir()] == ["0001"]


def test_late_answers_to_a_question_are_none_to_the_next_of_the_same_text(tmp_path):
    """Those who were asked the second one would seem to have answered, and were never asked."""

    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]] * (3 if folder.name == "0001" else 2)))

    folder, state = new(tmp_path, invite, deadline=0.2), tmp_path / "state"
    way = {"epsilon": 30.0, "count": 20, "response_rate": 0.01, "state": state}
    assert RemoteAgents(folder.ask, **way).test(Rule(), 5).size == 3
    # The next process asks the same of others, and the answers of the first come late.
    first = RemoteAgents(folder.ask, **way)
    assert first.test(Rule(), 5).size == 3
    with pytest.raises(Died):
        RemoteAgents(dying(folder.ask, ["state"]), **way).test(Rule(), 6)
    late = tmp_path / "survey" / "0001"
    write(late / "b.jsonl", lines(late, [[0, 0]] * 2))
    again = RemoteAgents(folder.ask, collect=folder.collect, **way)
    assert again.test(Rule(), 6).tolist() == [1, 1]
    assert again.counts() == {"asked": 11, "answered": 5, "dropped": 0, "duplicates": 0}


def test_two_open_questions_of_one_text_keep_their_answers_apart(tmp_path):
    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]] * 2))
        places.append(folder)

    places = []
    folder, state = new(tmp_path, invite, deadline=0.2), tmp_path / "state"
    way = {"epsilon": 30.0, "count": 20, "response_rate": 0.01, "state": state}
    first = RemoteAgents(folder.ask, **way)

    def die():
        with first.keep_answers():
            first.test(Rule(), 4)
            first.test(Rule(), 6)
            raise Died

    with pytest.raises(Died):
        die()
    write(places[0] / "late.jsonl", lines(places[0], [[0, 0]]))
    write(places[1] / "late.jsonl", lines(places[1], [[0, 0]] * 3))
    again = RemoteAgents(folder.ask, collect=folder.collect, **way)
    with again.keep_answers():
        # The first had ended when the second was asked: what comes to it later is not taken.
        assert [sorted(again.test(Rule(), count)) for count in (4, 6)] == [
            [1, 1],
            [0, 0, 0, 1, 1],
        ]
    assert again.counts()["asked"] == 10


def test_an_older_copy_of_a_state_asks_nobody_again(tmp_path):
    def invite(folder, count):
        invited.append(folder.name)
        write(folder / "a.jsonl", lines(folder, [[0, 1]] * count))

    invited, folder, state = [], new(tmp_path, invite, deadline=600), tmp_path / "state"
    way = {"epsilon": 30.0, "count": 20, "collect": folder.collect}
    RemoteAgents(folder.ask, state=state, **way)
    old = state.read_bytes()
    assert RemoteAgents(folder.ask, state=state, **way).test(Rule(), 5).size == 5
    for path in tmp_path.glob("state*"):
        path.unlink()
    state.write_bytes(old)
    pool = RemoteAgents(folder.ask, state=state, **way)
    with pytest.raises(ParameterError, match="number = 1"):
        pool.test(Rule(), 5)
    assert invited == ["0001"]
    # The state says by now that they were asked, and their answers are there.
    assert RemoteAgents(folder.ask, state=state, **way).test(Rule(), 5).size == 5
    assert invited == ["0001"]
    with pytest.raises(ParameterError, match="number = 1"):
        RemoteAgents(folder.ask, state=tmp_path / "other", **way).test(Rule(), 5)


def test_folders_from_before_questions_had_numbers_are_collected(tmp_path):
    def invite(folder, count):
        write(folder / "a.jsonl", lines(folder, [[0, 1]] * 2))

    folder, state = new(tmp_path, invite, deadline=0.1), tmp_path / "state"
    way = {"epsilon": 30.0, "count": 20, "response_rate": 0.01, "state": state}

    def interrupted(text, count):
        async def ask():
            async for _ in folder.ask(text, count):
                raise Died

        return ask()

    with pytest.raises(Died):
        RemoteAgents(interrupted, **way).test(Rule(), 5)
    assert RemoteAgents(pytest.fail, collect=folder.collect, **way).test(Rule(), 5).size == 2
