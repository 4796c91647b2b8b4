"""A study: a folder that is made whole or not at all, and stages that invite nobody twice."""

import contextlib
import json
import sqlite3
import stat
import threading
from urllib.parse import parse_qs, urlsplit

import pytest
from cases import each_case
from visitors import FACTS, QUERY, new_study, question_of, tokens

from hdp_fast import collection
from hdp_fast._core import device_describe, ed25519_public
from hdp_fast.collection import study as study_module
from hdp_fast.collection.store import Answer, hash_token
from hdp_fast.exceptions import NeverAsked, ParameterError
from hdp_fast.local import Query, Stage

FORM = json.dumps(
    {
        "inputs": [
            {"name": "age", "text": "How old are you?", "kind": "number", "low": 0, "high": 120}
        ],
        "features": [{"input": 0, "scale": 1.0, "offset": 0.0}],
        "label": None,
    }
)


@pytest.fixture
def study(tmp_path):
    return new_study(tmp_path)


def test_a_new_study_is_a_folder_of_its_owner_with_a_link_for_each_person(study):
    names = {path.name: stat.S_IMODE(path.stat().st_mode) for path in study.path.iterdir()}
    files = ("collector.db", "invitations.csv", "signing.key", "study.json")
    assert names == dict.fromkeys(files, 0o600)
    assert stat.S_IMODE(study.path.stat().st_mode) == 0o700
    header, *rows = (study.path / "invitations.csv").read_text().splitlines()
    assert header == "number,link"
    seen = set()
    for number, row in enumerate(rows, start=1):
        assert row.startswith(f"{number},https://example.org/#")
        parts = parse_qs(urlsplit(row.partition(",")[2]).fragment, strict_parsing=True)
        seen.add(parts.pop("token")[0])
        assert parts == {
            "study": [study.id],
            "number": [str(number)],
            "key": [study.public_key],
            "epsilon": ["4.0"],
        }
    assert len(seen) == len(rows) == study.people == 20
    assert {len(token) for token in seen} == {32}
    secret = bytes.fromhex((study.path / "signing.key").read_text())
    assert ed25519_public(secret).hex() == study.public_key
    assert collection.Study.open(study.path) == study


def test_what_is_public_of_a_study_says_nothing_that_must_be_kept(study):
    facts = json.loads((study.path / "study.json").read_text())
    assert set(facts) == {
        *("format", "version", "id", "asker", "epsilon", "people", "url", "public_key"),
        *("form", "created"),
    }
    secret = (study.path / "signing.key").read_text().strip()
    assert secret not in json.dumps(facts)
    assert not any(token in json.dumps(facts) for token in tokens(study))


def test_a_device_understands_what_a_study_publishes(tmp_path):
    study = new_study(tmp_path, form=FORM)
    stage = study.publish(QUERY, 5)
    with study.open_desk() as desk:
        signed = desk.read_envelope(stage.number)
    invitation = {"signed": signed, "key": study.public_key, "study": study.id, "epsilon": 4.0}
    shown = json.loads(device_describe(json.dumps({**invitation, "number": 1})))
    assert "error" not in shown
    assert (shown["asker"], shown["study"], shown["epsilon"]) == (study.asker, study.id, 4.0)
    assert shown["inputs"] == [0]
    for change in ({"key": "0" * 64}, {"study": "another"}, {"epsilon": 1.0}):
        assert "error" in json.loads(
            device_describe(json.dumps({**invitation, "number": 1, **change}))
        )


@each_case(
    "name, value",
    [
        *(("asker", value) for value in ("", "a\nb", "x" * 201, None, 3)),
        *(("epsilon", value) for value in (0, -1.0, float("inf"), float("nan"), 1e-10, "1", None)),
        *(("people", value) for value in (0, -1, 1.5, 10_000_001, "3", True)),
        *(("url", value) for value in ("", "example.org", "http://example.org", "ftp://a.org", 3)),
        *(("url", f"https://{rest}") for rest in ("", "/", "a.org/path", "a.org?x", "a.org#x")),
        *(("url", f"https://{rest}") for rest in ("u@a.org", "a.org:99999", "a b.org", "ä.org")),
        ("url", "http://localhost.example.org"),
        ("url", "javascript://localhost"),
        *(("form", value) for value in ("", "[]", "no JSON", 3)),
    ],
)
def test_a_study_refuses_what_breaks_a_rule_and_leaves_nothing_behind(tmp_path, name, value):
    with pytest.raises(ParameterError, match=rf"^{name} = "):
        collection.Study.create(tmp_path / "new", **{**FACTS, "people": 3, name: value})
    assert list(tmp_path.iterdir()) == []


@each_case(
    "url", ["https://a.org/", "https://a.org:8443", "http://localhost:8000", "http://[::1]:1"]
)
def test_a_study_takes_hosts_with_tls_and_this_machine(tmp_path, url):
    place = tmp_path / url.translate(str.maketrans("/:", "--"))
    study = collection.Study.create(place, people=1, **{**FACTS, "url": url})
    assert study.url == url.rstrip("/")


def test_a_folder_with_anything_in_it_is_left_alone(tmp_path):
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "thesis.txt").write_text("years of work")
    for place in (tmp_path / "study", tmp_path / "study" / "thesis.txt"):
        with pytest.raises(ParameterError, match=r"^path = .*it must be a new folder"):
            collection.Study.create(place, people=3, **FACTS)
    with pytest.raises(ParameterError, match=r"^path = .*that can be made"):
        collection.Study.create(tmp_path / "no" / "such" / "study", people=3, **FACTS)
    assert (tmp_path / "study" / "thesis.txt").read_text() == "years of work"
    (tmp_path / "empty").mkdir()
    assert collection.Study.create(tmp_path / "empty", people=3, **FACTS).people == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "study"]


@each_case("call", ["fsync", "rename"])
def test_a_study_that_cannot_be_written_is_not_there(tmp_path, monkeypatch, call):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(study_module.os, call, fail)
    with pytest.raises(ParameterError, match="No space left"):
        collection.Study.create(tmp_path / "study", people=3, **FACTS)
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_opening_refuses_what_is_no_study_or_is_damaged(tmp_path, study):
    facts = study.path / "study.json"
    with pytest.raises(ParameterError, match="can't read"):
        collection.Study.open(tmp_path)
    kept = facts.read_text()
    later = kept.replace('"version": 1', '"version": 2')
    for text in ("", "{}", "[]", "no JSON", later, kept.replace("people", "person")):
        facts.write_text(text)
        with pytest.raises(ParameterError, match="study"):
            collection.Study.open(study.path)
    facts.write_text(kept)
    database = study.path / "collector.db"
    content = database.read_bytes()
    for damaged in (
        b"",
        b"x" * 5_000,
        content[:5_000],
        content[:8_000] + b"x" * (len(content) - 8_000),
    ):
        database.write_bytes(damaged)
        with pytest.raises(ParameterError, match=r"^study = "):
            collection.Study.open(study.path)
    database.unlink()
    with pytest.raises(ParameterError, match=r"^study = "):
        collection.Study.open(study.path)


def test_stages_follow_one_another_and_invite_nobody_twice(study):
    query = Query.label().hypothesis
    first = study.publish(QUERY, 5)
    named = Stage([query], [1], key=bytes(16), first=9, count=4).to_json()
    second = study.publish(named, 4, number=7)
    third = study.publish(QUERY, 8)
    assert [(one.number, one.first, one.count) for one in (first, second, third)] == [
        (1, 1, 5),
        (7, 9, 4),
        (8, 13, 8),
    ]
    assert study.stages() == [first, second, third]
    assert study.counts() == {"invited": 17, "answered": 0}
    before = (study.path / "collector.db").read_bytes()
    refused = [
        ((QUERY, 1), {}, "count = 1, but the study has 0 people from number 21 on"),
        ((QUERY, 1), {"first": 20}, "first = 20, but everybody below 21"),
        ((named, 4), {}, "first = 9, but everybody below 21"),
        ((named, 5), {}, "count = 5, but the stage says 4"),
        ((named, 4), {"first": 10}, "first = 10, but the stage says 9"),
        ((QUERY, 1), {"number": 7}, "number = 7, but the study has a stage of it"),
        ((QUERY, 0), {}, "count = 0"),
        (("no JSON", 1), {}, "hypothesis = 'no JSON'"),
        (('{"kind": "stage"}', 1), {}, "stage"),
    ]
    for arguments, more, text in refused:
        with pytest.raises(ParameterError, match=text):
            study.publish(*arguments, **more)
    assert (study.path / "collector.db").read_bytes() == before
    assert question_of(study, 7).stage.first == 9


def test_stages_that_are_published_at_once_have_people_of_their_own(tmp_path):
    study = new_study(tmp_path, people=30)
    made, start = [], threading.Barrier(8)

    def publish():
        start.wait()
        made.append(study.publish(QUERY, 3))

    threads = [threading.Thread(target=publish) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    people = [number for one in made for number in range(one.first, one.first + one.count)]
    assert sorted(people) == list(range(1, 25))
    assert {question_of(study, one.number).id for one in made} == {
        f"{study.id}-{number}" for number in range(1, 9)
    }


def test_a_stage_is_found_by_what_it_asks_and_by_its_number(study):
    first, second = study.publish(QUERY, 5), study.publish(QUERY, 5)
    assert study.find(QUERY) == second
    assert study.find(QUERY, number=1) == first
    for hypothesis, number in ((QUERY, 3), ("{}", None), ("{}", 1)):
        with pytest.raises(NeverAsked):
            study.find(hypothesis, number=number)
    study.close(1)
    assert [stage.closed for stage in study.stages()] == [True, False]
    for call in (study.close, study.answers, study.counts):
        with pytest.raises(ParameterError, match="number = 3, but the study has no stage of it"):
            call(3)


def test_a_key_that_is_not_the_studys_signs_nothing(study):
    (study.path / "signing.key").write_text("00" * 32)
    with pytest.raises(ParameterError, match="must be the key of this study"):
        study.publish(QUERY, 5)
    (study.path / "signing.key").unlink()
    with pytest.raises(ParameterError, match="can't read"):
        study.publish(QUERY, 5)
    assert study.stages() == []


def test_an_envelope_that_was_changed_on_the_disk_is_not_handed_out(study):
    study.publish(QUERY, 5)
    with contextlib.closing(sqlite3.connect(study.path / "collector.db")) as connection:
        connection.execute("UPDATE stage SET envelope = replace(envelope, 'City', 'Town')")
        connection.commit()
    with study.open_desk() as desk, pytest.raises(ParameterError, match="is not the one"):
        desk.read_envelope(1)
    with pytest.raises(ParameterError, match="must be whole"):
        collection.Study.open(study.path)


def test_a_group_that_is_not_committed_is_gone_as_a_whole(study):
    """No token is burned without its answer."""
    study.publish(QUERY, 5)
    hashes = [hash_token(bytes.fromhex(token)) for token in tokens(study)]
    with study.open_desk() as desk:
        desk.begin()
        desk.take([Answer(hashes[0], 1, b"a" * 16, 1)])
        desk.commit()
        desk.begin()
        desk.take([Answer(hashes[1], 1, b"b" * 16, 1)])
        desk.roll_back()
    assert study.answers(1) == [((b"a" * 16).hex(), 1)]
    assert study.counts() == {"invited": 5, "answered": 1}
