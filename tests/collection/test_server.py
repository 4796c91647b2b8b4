"""A collector's server: tokens that count once, under races, full disks and hostile requests."""

import asyncio
import contextlib
import json
import logging
import os
import random
import re
import sqlite3
import subprocess
import sys
import threading

import pytest
from cases import each_case
from disks import MOUNTABLE, mounted
from visitors import QUERY, lines, new_study, question_of, running, tokens, visit

from hdp_fast import collection
from hdp_fast._core import ed25519_verify
from hdp_fast.collection import server
from hdp_fast.collection.endpoints import ENDPOINTS, PAGE
from hdp_fast.collection.store import Answer, Outcome, hash_token
from hdp_fast.exceptions import ParameterError
from hdp_fast.local import Query, Stage

pytest.importorskip("starlette")


def error(text):
    return {"error": text}


def answers(replies):
    return [(reply.status, reply.content) for reply in replies]


@pytest.fixture
def study(tmp_path):
    """Ten of twenty people are asked one question."""
    made = new_study(tmp_path)
    made.publish(QUERY, 10)
    return made


def test_a_token_opens_a_question_and_counts_once(study):
    key, (line, other) = tokens(study)[0], lines(study, 1, [1, 1])

    async def play(visitor):
        before = await visitor.get("/question", key)
        replies = [
            await visitor.post(key, line),
            await visitor.post(key, line),
            await visitor.post(key, other),
            await visitor.post(key, changed(line, report=1 - json.loads(line)["report"])),
            await visitor.get("/question", key),
            await visitor.get("/question", tokens(study)[10]),
            await visitor.post(tokens(study)[10], other),
            await visitor.post(tokens(study)[1], line),
        ]
        return before, answers(replies)

    before, replies = visit(study, play)
    assert replies == [
        (200, {"accepted": True}),
        (200, {"accepted": True}),
        (409, error("answered otherwise")),
        (409, error("answered otherwise")),
        (410, error("answered")),
        (404, error("no question yet")),
        (404, error("no question yet")),
        # The line of somebody else does not burn a token.
        (409, error("answered otherwise")),
    ]
    signed = before.content
    assert set(signed) == {"format", "version", "question", "signature"}
    message = b"hdp_fast.question\n" + signed["question"].encode()
    public = bytes.fromhex(study.public_key)
    assert ed25519_verify(public, message, bytes.fromhex(signed["signature"]))
    asked = collection.Question.from_json(signed["question"])
    assert (asked.study, asked.asker, asked.id) == (study.id, study.asker, f"{study.id}-1")
    fields = json.loads(line)
    assert study.answers(1) == [(fields["id"], fields["report"])]
    assert study.counts() == {"invited": 10, "answered": 1}


def test_a_server_needs_neither_the_key_nor_the_invitations(study):
    key, (line,) = tokens(study)[0], lines(study, 1, [1])
    for name in ("signing.key", "invitations.csv"):
        (study.path / name).unlink()

    async def play(visitor):
        replies = [await visitor.get("/question", key), await visitor.post(key, line)]
        return [reply.status for reply in replies]

    assert visit(collection.Study.open(study.path), play) == [200, 200]


def test_nobody_answers_in_place_of_another_or_once_it_is_closed(study):
    key, (line, *_) = tokens(study)[0], lines(study, 1, [1])

    async def play(visitor):
        unknown = [await visitor.get("/question", one) for one in (None, "0" * 32, "no", key[:30])]
        accepted = await visitor.post(key, line)
        study.close(1)
        await asyncio.sleep(2 * server._FRESH_SECONDS)
        late = tokens(study)[1]
        repeated = await visitor.post(key, line)
        refused = [await visitor.get("/question", late), await visitor.post(late, line)]
        return answers(unknown), [accepted.status, repeated.status], answers(refused)

    unknown, kept, refused = visit(study, play)
    assert unknown == [(401, error("unknown token"))] * 4
    # Whoever was not told that it was accepted in time may ask again.
    assert kept == [200, 200]
    assert refused == [(410, error("closed"))] * 2
    assert study.counts(1)["answered"] == 1


def test_an_answer_that_is_on_its_way_when_a_stage_closes_is_refused_or_counted(study):
    """The server may not know yet that it is closed; what is written knows it."""
    keys, made = tokens(study), lines(study, 1, range(1, 3))

    async def play(visitor):
        first = await visitor.post(keys[0], made[0])
        study.close(1)
        return [first.status, (await visitor.post(keys[1], made[1])).status]

    assert visit(study, play) == [200, 410]
    assert study.counts() == {"invited": 10, "answered": 1}


def test_a_stage_takes_the_reports_of_its_people_about_their_own_questions(tmp_path):
    study = new_study(tmp_path, people=40)
    query = Query.value(0, 0, 1).hypothesis
    stage = Stage([query, query], [1, 1], key=bytes(range(16)), first=3, count=30)
    assert study.publish(stage.to_json(), 30).first == 3
    question, places = question_of(study, 1), stage.places().tolist()
    assert len(set(places)) == 2
    keys = tokens(study)[2:32]

    def line(place, bit, number):
        fields = {"format": "hdp_fast.report", "version": 2, "question": question.id}
        fields |= {"digest": question.digest, "report": 2 * place + bit, "id": f"{number:032x}"}
        return json.dumps(fields, separators=(",", ":"))

    async def play(visitor):
        swapped = [
            await visitor.post(key, line(1 - place, 1, n))
            for n, (key, place) in enumerate(zip(keys, places, strict=True))
        ]
        own = [
            await visitor.post(key, line(place, n % 2, n))
            for n, (key, place) in enumerate(zip(keys, places, strict=True))
        ]
        return answers(swapped), [reply.status for reply in own]

    swapped, own = visit(study, play)
    assert swapped == [(422, error("the question of somebody else"))] * 30
    assert own == [200] * 30
    assert [report for _, report in study.answers(1)] == [
        2 * place + n % 2 for n, place in enumerate(places)
    ]


# Races -------------------------------------------------------------------------------------------


def test_of_fifty_requests_with_one_token_one_counts(study):
    keys = tokens(study)
    made, copied = lines(study, 1, [1] * 50), lines(study, 1, [2])[0]

    async def play(visitor):
        different = await asyncio.gather(*(visitor.post(keys[0], line) for line in made))
        same = await asyncio.gather(*(visitor.post(keys[1], copied) for _ in range(50)))
        return [reply.status for reply in different], [reply.status for reply in same]

    different, same = visit(study, play)
    assert sorted(different) == [200] + [409] * 49
    assert same == [200] * 50
    assert study.counts() == {"invited": 10, "answered": 2}
    assert len(study.answers(1)) == 2


def test_two_servers_of_one_study_burn_a_token_once(study):
    key, made = tokens(study)[0], lines(study, 1, [1] * 40)

    async def play(first):
        other = collection.survey_app(study, per_token=0, per_address=0)
        async with running(other) as second:
            both = [(first, second)[place % 2].post(key, line) for place, line in enumerate(made)]
            return [reply.status for reply in await asyncio.gather(*both)]

    assert sorted(visit(study, play)) == [200] + [409] * 39
    assert len(study.answers(1)) == 1


def test_fifty_threads_with_desks_of_their_own_burn_a_token_once(study):
    token = hash_token(bytes.fromhex(tokens(study)[0]))
    outcomes, start = [], threading.Barrier(50)

    def take(place):
        with study.open_desk() as desk:
            start.wait()
            desk.begin()
            outcomes.extend(desk.take([Answer(token, 1, place.to_bytes(16), 1)]))
            desk.commit()

    threads = [threading.Thread(target=take, args=(place,)) for place in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes, key=lambda one: one.value) == [Outcome.ACCEPTED, *[Outcome.BURNED] * 49]
    assert len(study.answers(1)) == 1


def test_who_hangs_up_before_the_reply_is_confirmed_later(study, monkeypatch):
    """As after kill -9 between commit and reply: the same line comes again."""
    key, (line,) = tokens(study)[0], lines(study, 1, [1])
    wait_for = server._Group._wait_for

    async def slow(group, step):
        result = await wait_for(group, step)
        await asyncio.sleep(0.05)
        return result

    monkeypatch.setattr(server._Group, "_wait_for", slow)

    async def play(visitor):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await visitor.post(key, line)
        await asyncio.sleep(0.2)
        stored = study.answers(1)
        return stored, (await visitor.post(key, line)).status

    stored, status = visit(study, play)
    assert len(stored) == 1
    assert status == 200
    assert study.answers(1) == stored


def test_a_full_disk_confirms_nothing_and_loses_nothing(study, monkeypatch):
    keys, made = tokens(study), lines(study, 1, range(1, 4))
    desks = []
    kept = collection.Study.open_desk

    @contextlib.contextmanager
    def watched(study):
        with kept(study) as desk:
            desks.append(desk)
            yield desk

    monkeypatch.setattr(collection.Study, "open_desk", watched)

    async def play(visitor):
        replies = [await visitor.post(keys[0], made[0])]
        writer = desks[0]._writer
        commit = writer.write

        def fail(query, *values):
            if query == "COMMIT":
                raise ParameterError("study = 'x', but (database or disk is full)")
            return commit(query, *values)

        writer.write = fail
        replies += await asyncio.gather(*(visitor.post(keys[at], made[at]) for at in (1, 2)))
        between = study.counts(1)["answered"]
        writer.write = commit
        replies += await asyncio.gather(*(visitor.post(keys[at], made[at]) for at in (1, 2)))
        return [reply.status for reply in replies], between

    assert visit(study, play) == ([200, 503, 503, 200, 200], 1)
    assert study.counts() == {"invited": 10, "answered": 3}


@pytest.mark.skipif(not MOUNTABLE, reason="needs root, to mount a file system")
def test_a_disk_that_is_really_full_loses_nothing_and_goes_on_once_there_is_room(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    assert mounted(disk, "-o", "size=8m")
    try:
        study = new_study(disk, people=300)
        study.publish(QUERY, 300)
        keys, made = tokens(study), lines(study, 1, range(1, 301))
        state = os.statvfs(disk)
        (disk / "filler").write_bytes(bytes(state.f_bavail * state.f_frsize - 100_000))

        async def play(visitor):
            replies = [await visitor.post(*pair) for pair in zip(keys, made, strict=True)]
            (disk / "filler").unlink()
            stored = {key for key, _ in study.answers(1)}
            again = [await visitor.post(*pair) for pair in zip(keys, made, strict=True)]
            return [reply.status for reply in replies], stored, {reply.status for reply in again}

        first, stored, again = visit(study, play)
        study.close(1)
        answers = study.answers(1)
    finally:
        subprocess.run(["umount", "--lazy", disk], check=True)
    assert set(first) == {200, 503}
    told = zip(first, made, strict=True)
    assert {json.loads(line)["id"] for status, line in told if status == 200} <= stored
    assert again == {200}
    assert {key for key, _ in answers} == {json.loads(line)["id"] for line in made}


# What the file tells -----------------------------------------------------------------------------


def stored_bytes(study):
    """The database without the counters in its header, and its log."""
    content = bytearray((study.path / "collector.db").read_bytes())
    for start, end in ((24, 28), (40, 44), (92, 96)):
        content[start:end] = bytes(end - start)
    log = study.path / "collector.db-wal"
    return bytes(content), log.read_bytes() if log.exists() else b""


def test_a_closed_stage_tells_who_answered_and_what_but_not_who_said_what(tmp_path):
    """Its bytes are the same, whoever sent which line, in whatever order and groups."""
    study = new_study(tmp_path, people=400)
    study.publish(QUERY, 400)
    fresh = (study.path / "collector.db").read_bytes()
    keys, made = tokens(study)[:300], lines(study, 1, range(1, 301))
    seen = set()
    for seed, at_once in ((1, 1), (2, 7), (3, 300)):
        (study.path / "collector.db").write_bytes(fresh)
        order = random.Random(seed)
        pairs = list(zip(order.sample(keys, 300), order.sample(made, 300), strict=True))

        async def play(visitor, pairs=pairs, at_once=at_once):
            for start in range(0, 300, at_once):
                group = pairs[start : start + at_once]
                replies = await asyncio.gather(*(visitor.post(*pair) for pair in group))
                assert {reply.status for reply in replies} == {200}

        visit(study, play)
        study.close(1)
        content, log = stored_bytes(study)
        assert log == b""
        # An id that was written is there, and once: nothing that was freed is left.
        first = bytes.fromhex(json.loads(made[0])["id"])
        assert content.count(first) == 1
        seen.add(content)
    assert len(seen) == 1


def test_an_open_stage_has_no_order_of_tokens_and_no_log_at_rest(tmp_path, monkeypatch):
    """Answers lie in the pages in the order in which they came, until the stage is closed; where
    tokens lie says nothing, and so nothing links the two."""
    monkeypatch.setattr(server, "_QUIET_SECONDS", 0.05)
    study = new_study(tmp_path, people=300)
    study.publish(QUERY, 300)
    fresh = (study.path / "collector.db").read_bytes()
    keys, made = tokens(study), lines(study, 1, range(1, 301))
    seen = set()
    for seed in (1, 2):
        (study.path / "collector.db").write_bytes(fresh)
        order = random.Random(seed)
        pairs = list(zip(order.sample(keys[:60], 60), order.sample(made[:60], 60), strict=True))

        async def play(visitor, pairs=pairs):
            for pair in pairs:
                assert (await visitor.post(*pair)).status == 200
            await asyncio.sleep(4 * server._QUIET_SECONDS)
            return stored_bytes(study)

        content, log = visit(study, play)
        assert log == b""
        # Pages that were split keep no copies.
        for key, _ in study.answers(1):
            assert content.count(bytes.fromhex(key)) == 1
        pages = [content[start : start + 4096] for start in range(0, len(content), 4096)]
        hashes = [hash_token(bytes.fromhex(key)) for key in keys]
        seen.add(b"".join(page for page in pages if any(one in page for one in hashes)))
    assert len(seen) == 1


def test_the_tables_have_no_rowid_no_time_and_no_number_of_arrival(study):
    with contextlib.closing(sqlite3.connect(study.path / "collector.db")) as connection:
        columns = {
            table: [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            for table in ("invitation", "answer")
        }
        assert columns == {
            "invitation": ["token", "number", "burned"],
            "answer": ["stage", "id", "report"],
        }
        for table in columns:
            with pytest.raises(sqlite3.OperationalError, match="rowid"):
                connection.execute(f"SELECT rowid FROM {table}")


def test_no_token_is_stored(study):
    content = (study.path / "collector.db").read_bytes()
    for key in tokens(study):
        assert bytes.fromhex(key) not in content
        assert key.encode() not in content
        assert hash_token(bytes.fromhex(key)) in content


# Requests ----------------------------------------------------------------------------------------


def changed(line, **fields):
    return json.dumps({**json.loads(line), **fields})


def test_what_is_no_line_of_this_question_is_refused_and_burns_nothing(study):
    key, (line,) = tokens(study)[0], lines(study, 1, [1])
    bad = {
        "": "malformed",
        "{": "malformed",
        "null": "malformed",
        "[" * 1_000: "malformed",
        "\udcff".encode("utf-8", "surrogatepass").decode("latin-1"): "malformed",
        line[:-1]: "malformed",
        line + line: "malformed",
        line.replace('"id"', '"id":"0","id"'): "malformed",
        changed(line, id="0" * 31): "malformed",
        changed(line, id="0" * 31 + "G"): "malformed",
        changed(line, version=1): "malformed",
        changed(line, more=1): "malformed",
        changed(line, report=True): "malformed",
        changed(line, report=1.0): "malformed",
        changed(line, report=2): "out of range",
        changed(line, report=-1): "out of range",
        changed(line, report=10**300): "out of range",
        changed(line, digest="0" * 32): "wrong question",
        changed(line, question="another"): "wrong question",
    }

    async def play(visitor):
        replies = [await visitor.post(key, one) for one in bad]
        return answers(replies), (await visitor.post(key, line)).status

    replies, status = visit(study, play)
    assert replies == [(422, error(text)) for text in bad.values()]
    assert status == 200


def test_bodies_are_limited_before_they_are_read(study, monkeypatch):
    monkeypatch.setattr(server, "_BODY_SECONDS", 0.1)
    key = tokens(study)[0]

    async def play(visitor):
        endless = [b"x" * 600] * 50
        many = [("Content-Length", "9" * 30)], [("Content-Length", "1025")]
        declared = [await visitor.send("POST", "/answer", key, [], headers=one) for one in many]
        streamed = await visitor.send("POST", "/answer", key, endless)
        slow = await visitor.send("POST", "/answer", key, [b"x"] * 50, wait=0.03)
        large = await visitor.get("/question", key, headers=[("x-more", "x" * 20_000)])
        return [*declared, streamed, slow, large]

    replies = visit(study, play)
    assert [reply.status for reply in replies] == [413, 413, 413, 408, 431]
    assert {reply.headers["connection"] for reply in replies} == {"close"}


def test_requests_of_an_address_and_of_a_token_are_limited(study):
    keys = tokens(study)

    async def play(visitor):
        async def statuses(key, address, times):
            replies = [await visitor.get("/question", key, address=address) for _ in range(times)]
            return [reply.status for reply in replies]

        return (
            await statuses(keys[0], "192.0.2.7", 4),
            await statuses(keys[1], "192.0.2.7", 3),
            await statuses("0" * 32, "192.0.2.8", 6),
            # A network of 64 bits is one home.
            await statuses(keys[2], "2001:db8::1", 3),
            await statuses(keys[3], "2001:db8::ffff:1", 3),
            await statuses(keys[4], "2001:db8:0:1::1", 1),
        )

    first, second, unknown, *sixth = visit(study, play, per_token=3, per_address=5)
    assert first == [200, 200, 200, 429]
    assert second == [200, 429, 429]
    assert unknown == [401] * 5 + [429]
    assert sixth == [[200, 200, 200], [200, 200, 429], [200]]


def test_limits_are_forgotten_after_a_minute_and_hold_no_more_keys_than_memory(monkeypatch):
    monkeypatch.setattr(server, "_MOST_KEYS", 3)

    async def run():
        limiter, loop = server._Limiter(1), asyncio.get_running_loop()
        clock = [1000.0]
        monkeypatch.setattr(loop, "time", lambda: clock[0], raising=False)
        limiter.check("a")
        with pytest.raises(server._Refused):
            limiter.check("a")
        clock[0] += 61
        limiter.check("a")
        for key in "bcdef":
            limiter.check(key)
        assert len(limiter._counts) <= 3

    asyncio.run(run())


def test_nothing_but_the_endpoints_and_the_files_of_the_page_is_there(study):
    paths = [
        "/../study.json",
        "/%2e%2e/signing.key",
        "/page.js/..",
        "//etc/passwd",
        "/collector.db",
    ]
    paths += ["/page/", "/index.html\0", "/openapi.json", "/docs", "/question/", "", "/Question"]
    methods = ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"]

    async def play(visitor):
        strange = [await visitor.get(path) for path in paths]
        wrong = [
            await visitor.send(method, endpoint.path)
            for endpoint in ENDPOINTS
            for method in [*methods, "POST" if endpoint.method == "GET" else "GET"]
        ]
        return strange, wrong, await visitor.get("/health")

    strange, wrong, health = visit(study, play)
    assert answers(strange) == [(404, error("not found"))] * len(paths)
    assert {reply.status for reply in wrong} == {405}
    assert {reply.headers["allow"] for reply in wrong} <= {
        "GET",
        "HEAD",
        "POST",
        "GET, HEAD",
        "HEAD, GET",
    }
    assert (health.status, health.content) == (200, {"healthy": True})


def test_every_reply_has_the_headers_that_browsers_need(study):
    key, (line,) = tokens(study)[0], lines(study, 1, [1])

    async def play(visitor):
        return [
            await visitor.get("/question", key),
            await visitor.get("/question"),
            await visitor.post(key, line),
            await visitor.post(key, "x" * 2_000),
            await visitor.get("/nothing"),
            await visitor.send("PUT", "/answer"),
            *[await visitor.get(path) for path in ("/", "/page.js", "/device.wasm")],
        ]

    for reply in visit(study, play):
        policy = reply.headers["content-security-policy"].split("; ")
        assert policy[0] == "default-src 'none'"
        assert "script-src 'self' 'wasm-unsafe-eval'" in policy
        assert {f"{one} 'none'" for one in ("base-uri", "form-action", "frame-ancestors")} <= set(
            policy
        )
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "cache-control" in reply.headers
        assert "set-cookie" not in reply.headers
        assert "server" not in reply.headers
        if reply.headers["content-type"] == "application/json":
            assert reply.headers["cache-control"] == "no-store"


def test_the_page_is_served_as_it_is_installed(study, tmp_path, monkeypatch):
    assert set(server.read_page()) == set(PAGE)
    (tmp_path / "page").mkdir()
    for name in PAGE:
        (tmp_path / "page" / name).write_bytes(f"the file {name}".encode())
    (tmp_path / "page" / "secret.txt").write_text("no file of the page")
    monkeypatch.setattr(server.resources, "files", lambda package: tmp_path)

    async def play(visitor):
        names = ["", *PAGE, "secret.txt"]
        return {name: await visitor.get(f"/{name}") for name in names}

    replies = visit(study, play)
    assert replies.pop("secret.txt").status == 404
    assert replies.pop("").body == b"the file index.html"
    for name, reply in replies.items():
        assert reply.body == f"the file {name}".encode()
        assert reply.headers["content-type"] == PAGE[name]


def test_a_defect_is_told_without_a_value(study, monkeypatch, caplog):
    key, (line,) = tokens(study)[0], lines(study, 1, [1])

    def fail(desk, group):
        raise ValueError(f"secret {group}")

    async def play(visitor):
        replies = [await visitor.post(key, line)]
        monkeypatch.undo()
        monkeypatch.setattr(server._Collector, "_find", lambda *_: 1 / 0)
        replies.append(await visitor.get("/question", key))
        monkeypatch.undo()
        return [*replies, await visitor.post(key, line)]

    monkeypatch.setattr(collection.store.Desk, "take", fail)
    with caplog.at_level(logging.DEBUG):
        replies = visit(study, play)
    assert [reply.status for reply in replies] == [503, 500, 200]
    mine = [record.getMessage() for record in caplog.records if record.name == "hdp_fast"]
    assert [re.sub(r"\d+", "N", text) for text in mine] == [
        "ValueError at fail:N",
        "ZeroDivisionError at <lambda>:N",
    ]
    assert key not in caplog.text
    assert "192.0.2" not in caplog.text


def test_nothing_is_logged_of_a_visit(study, caplog, capfd):
    key, (line,) = tokens(study)[0], lines(study, 1, [1])

    async def play(visitor):
        await visitor.get("/question", key)
        await visitor.post(key, line)
        await visitor.post(key, "nonsense")
        await visitor.get("/question", "0" * 32)

    with caplog.at_level(logging.INFO):
        visit(study, play)
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")


def test_the_document_describes_the_endpoints_and_is_there_where_it_is_asked_for(study):
    document = collection.openapi()
    assert {(path, *methods) for path, methods in document["paths"].items()} == {
        (endpoint.path, endpoint.method.lower()) for endpoint in ENDPOINTS
    }

    async def play(visitor):
        return (await visitor.get("/openapi.json")).content

    assert visit(study, play, describe=True) == document


@each_case("name, value", [("per_address", -1), ("per_token", 1.5), ("study", "study")])
def test_an_application_refuses(study, name, value):
    arguments = {"study": study} | {name: value}
    with pytest.raises(ParameterError, match=f"^{name} = "):
        collection.survey_app(arguments.pop("study"), **arguments)


@each_case("package", ["starlette.applications", "starlette.routing"])
def test_what_is_not_installed_is_named_with_its_extra(study, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"needs starlette: pip install .* hdp-fast\[serve\]"):
        collection.survey_app(study)
