"""Whatever was done to a file of state is met by one line that names the file.

Tests of private modules: the files have four faces and one mechanism.
"""

import contextlib
import json
import os
import random
import signal
import sqlite3
import tempfile
from pathlib import Path

import pytest
from processes import as_nobody, exit_code, forked, forking
from state_faces import FACES, RECORD, answer, check_refusal, open_agents, seal

from hdp_fast import Budget


@pytest.fixture(params=FACES.values(), ids=FACES)
def face(request):
    return request.param


@pytest.fixture
def path(memory):
    return memory / "state"


@pytest.fixture(autouse=True)
def no_hang():
    """What waits for ever fails."""

    def give_up(*_):
        raise TimeoutError("hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def raw(path):
    """A connection of another program, which commits at the end."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def foreign(path):
    path.unlink()
    with raw(path) as connection:
        connection.execute("CREATE TABLE t (a)")


def of_another_kind(path):
    with raw(path) as connection:
        ((number,),) = connection.execute("PRAGMA application_id").fetchall()
        connection.execute(f"PRAGMA application_id = {number ^ 1}")


def of_another_version(path, version=7):
    with raw(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")


def with_a_trigger(path):
    with raw(path) as connection:
        ((table,), *_) = connection.execute("SELECT name FROM sqlite_master").fetchall()
        connection.execute(
            f"CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM {table}; END"
        )


def without_a_table(path):
    with raw(path) as connection:
        ((table,), *_) = connection.execute("SELECT name FROM sqlite_master").fetchall()
        connection.execute(f"DROP TABLE {table}")


def with_a_name_that_is_no_text(path):
    """SQLite quotes it in an error, which is no text either."""
    content = path.read_bytes()
    path.write_bytes(content.replace(b"CREATE TABLE ", b"CREATE TABL\xff ", 1))


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("nothing of the kind\n" * 500),
    "half a header": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "header": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "a page": lambda path: path.write_bytes(path.read_bytes()[:4096]),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1000]),
    "zeros": lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(8192)),
    "foreign": foreign,
    "of another kind": of_another_kind,
    "of another version": of_another_version,
    "with a trigger": with_a_trigger,
    "without a table": without_a_table,
    "no text": with_a_name_that_is_no_text,
    "folder": lambda path: (path.unlink(), path.mkdir()),
    "pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_no_such_file_is_refused_and_left_alone(face, path, damage):
    face.make(path)
    damage(path)
    before = path.read_bytes() if path.is_file() else None
    check_refusal(face, path)
    assert before is None or path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_the_reason_is_said(face, path):
    face.make(path)
    for version in (1, 7):
        of_another_version(path, version)
        known = 3 if face is FACES["agents"] else 2
        said = f"format must be {known}, the one that this hdp_fast knows, and it is {version}"
        check_refusal(face, path, f"{said}: use the hdp_fast that wrote it")
    path.write_bytes(b"")
    check_refusal(face, path, "it is empty: delete it if nothing was ever in it")
    path.unlink()
    path.mkdir()
    check_refusal(face, path, "a regular file")


def test_an_empty_state_of_a_device_is_not_a_new_one(path):
    """It may have held answers, and no one answers twice."""
    path.touch()
    drawn = []
    with pytest.raises(FACES["answers"].error, match="empty"):
        answer(path, "a", lambda: drawn.append(1))
    assert not drawn


COLUMNS = {
    "ledger": {
        "ledger": ["key", "neighbors"],
        "account": ["kind", "name", "time", "epsilon", "delta", "spent_epsilon", "spent_delta"],
        "entry": ["account", "time", "state", "record"],
    },
    "checkpoint": {
        "run": ["settings"],
        "round": ["hypothesis"],
        "test": ["place", "agents", "answer"],
    },
    "answers": {"answer": ["question", "asked", "line"]},
    "account": {"spent": ["key", "bottoms", "queries"]},
    "agents": {
        "pool": ["epsilon"],
        "question": ["text", "agents", "ended"],
        "batch": ["question", "replies"],
    },
}
PLACES = [
    (name, table, column)
    for name, tables in COLUMNS.items()
    for table, columns in tables.items()
    for column in [*columns, "digest"]
] + [(name, "total", "digest") for name in COLUMNS]


# As SQL, for Python hands no text to SQLite that is none.
VALUES = {
    "blob": "x'fffe'",
    "no UTF-8": "CAST(x'ff' AS TEXT)",
    "number": "-1.5",
    "empty": "''",
    "deep": f"'{'[' * 100_000}'",
}
# What is only ever compared may be any text, and a hypothesis any JSON.
RIGHT = {
    ("account", "name"): {"number", "empty", "deep"},
    ("ledger", "key"): {"number", "empty", "deep"},
    ("round", "hypothesis"): {"number"},
}
# What a device answered, and was asked by whom, may be any text, too.
CHECKED = [p for p in PLACES if p[0] != "answers" and p[1:] != ("question", "text")]


def put(path, table, column, value, place="MIN"):
    with raw(path) as connection:
        number = f"(SELECT {place}(rowid) FROM {table})"
        change = f"UPDATE {table} SET {column} = {VALUES[value]}"
        connection.execute(f"{change} WHERE rowid = {number}")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize(("name", "table", "column"), PLACES)
def test_a_wrong_value_in_any_column_is_found(name, table, column, value, path):
    face = FACES[name]
    face.make(path)
    # The first account has an empty name, and who is passed over an empty question.
    put(path, table, column, value, "MIN" if table == "question" else "MAX")
    check_refusal(face, path)


@pytest.mark.parametrize("value", ["number", "empty", "deep"])
@pytest.mark.parametrize(("name", "table", "column"), [p for p in CHECKED if p[2] != "digest"])
def test_a_wrong_value_is_found_even_with_a_right_digest(name, table, column, value, path):
    face = FACES[name]
    face.make(path)
    put(path, table, column, value)
    seal(path)
    if value in RIGHT.get((table, column), ()):
        face.show(path)
    else:
        check_refusal(face, path)


STATEMENTS = {
    "no zone": ("ledger", "UPDATE entry SET time = '2024-01-01T00:00:00'"),
    "no time of a scope": ("ledger", "UPDATE account SET time = 'noon' WHERE id = 2"),
    "no such kind": ("ledger", "UPDATE account SET kind = 'parallfl' WHERE kind = 'parallel'"),
    "parallel with a limit": ("ledger", "UPDATE account SET kind = 'parallel' WHERE id = 2"),
    "sequential without": ("ledger", "UPDATE account SET kind = 'sequential' WHERE id = 3"),
    "its own parent": ("ledger", "UPDATE account SET parent = id WHERE id = 2"),
    "a power of ten": ("ledger", "UPDATE account SET spent_delta = '1e999999999'"),
    "divided by zero": ("ledger", "UPDATE account SET spent_delta = '1/0'"),
    "no record": ("ledger", "UPDATE entry SET record = '{}'"),
    "an entry less": ("ledger", "DELETE FROM entry WHERE id = 1"),
    "no agents": ("checkpoint", "UPDATE test SET agents = NULL"),
    "no place": ("checkpoint", "UPDATE test SET place = NULL"),
    "fewer than no agents": ("checkpoint", "UPDATE test SET agents = -5"),
    "no number": ("checkpoint", "UPDATE test SET answer = '[1, \"x\", 0, 1, 100]' WHERE id = 1"),
    "a short answer": ("checkpoint", "UPDATE test SET answer = '[1]' WHERE id = 1"),
    "a round is missing": ("checkpoint", "DELETE FROM round WHERE number = 1"),
    "no run": ("checkpoint", "DELETE FROM run"),
    "two runs": ("checkpoint", "INSERT INTO run SELECT * FROM run"),
    "more bottoms": ("account", "UPDATE spent SET bottoms = 3"),
    "two accounts": ("account", "INSERT INTO spent SELECT * FROM spent"),
}
# What could have been written, but was not.
OTHERS = {
    "another id": ("answers", "UPDATE answer SET question = 'b2' WHERE question = 'b'"),
    "another line": ("answers", "UPDATE answer SET line = 'linf a' WHERE question = 'a'"),
    "no line": ("answers", "DELETE FROM answer WHERE question = 'a'"),
    "a larger limit": ("ledger", "UPDATE account SET epsilon = '3/1' WHERE id = 1"),
    "another name": ("ledger", "UPDATE account SET name = 'b' WHERE kind = 'part'"),
    "another answer": ("checkpoint", "UPDATE test SET answer = replace(answer, '0.5', '0.7')"),
    "fewer agents": ("checkpoint", "UPDATE test SET agents = 84 WHERE id = 2"),
    "a test less": ("checkpoint", "DELETE FROM test WHERE id = 2"),
    "a round less": ("checkpoint", "DELETE FROM round WHERE number = 2"),
    "fewer asked": ("agents", "UPDATE question SET agents = 1 WHERE number = 3"),
    "a question less": ("agents", "DELETE FROM question WHERE number = 3"),
    "a batch twice": (
        "agents",
        "INSERT INTO batch SELECT 9, question, replies, digest FROM batch LIMIT 1",
    ),
    "fewer queries": ("account", "UPDATE spent SET queries = 1"),
    "no sum": ("account", "DELETE FROM total"),
    "two sums": ("account", "INSERT INTO total SELECT * FROM total"),
}


@pytest.mark.parametrize(
    ("name", "statement"), (STATEMENTS | OTHERS).values(), ids=STATEMENTS | OTHERS
)
def test_rows_that_were_not_written_are_found_at_opening(name, statement, path):
    FACES[name].make(path)
    with raw(path) as connection:
        assert connection.execute(statement).rowcount > 0
    check_refusal(FACES[name], path, "whole .* go on with a copy of its last state alone")


@pytest.mark.parametrize(("name", "statement"), STATEMENTS.values(), ids=STATEMENTS)
def test_values_that_cannot_be_are_found_even_with_right_digests(name, statement, path):
    FACES[name].make(path)
    with raw(path) as connection:
        assert connection.execute(statement).rowcount > 0
    seal(path)
    check_refusal(FACES[name], path, "whole")


def test_an_account_that_is_damaged_while_a_budget_is_open_grants_nothing(path):
    budget = Budget.open(path, epsilon=1)
    with raw(path) as connection:
        connection.execute("UPDATE account SET epsilon = '6/1'")
    for use in (
        lambda: budget.reserve(RECORD),
        lambda: budget.sequential(0.5),
        lambda: budget.spent,
    ):
        with pytest.raises(FACES["ledger"].error, match="whole"):
            use()


def test_agents_that_are_damaged_while_they_are_asked_are_asked_no_more(path):
    agents, other = open_agents(path, pytest.fail), open_agents(path)
    other.pass_over(40)
    with raw(path) as connection:
        connection.execute("UPDATE question SET agents = 8")
    with pytest.raises(FACES["agents"].error, match="whole"):
        agents.pass_over(1)


@pytest.mark.parametrize(
    "change",
    [
        {"run": 1},
        {"salt": None},
        {"digest": []},
        {"seed": "no hex"},
        {"seed": 5},
        {"finalists": [5]},
        {"finalists": [0]},
        {"finalists": None},
        {"answered before": -1},
        {"plan": None},
        {"plan": {}},
    ],
    ids=str,
)
def test_settings_that_no_run_has_are_found_at_opening(path, change):
    face = FACES["checkpoint"]
    face.make(path)
    with raw(path) as connection:
        ((text,),) = connection.execute("SELECT settings FROM run").fetchall()
        changed = json.dumps({**json.loads(text), **change})
        connection.execute("UPDATE run SET settings = ?", (changed,))
    seal(path)
    check_refusal(face, path, "whole")


@pytest.mark.thorough(cases=2)
def test_flipped_bits_raise_nothing_else(face, path):
    """What is read is what was written, or nothing is."""
    face.make(path)
    content, rng, same = path.read_bytes(), random.Random(1), 0
    shown = face.show(path)
    for _ in range(150):
        damaged = bytearray(content)
        # Half of them where something is written, and not in the empty middle of a page.
        place = rng.randrange(len(content))
        while rng.random() < 0.5 and not content[place]:
            place = rng.randrange(len(content))
        damaged[place] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with contextlib.suppress(face.error):
            read = face.show(path)
            same += read == shown
            assert read == shown
        for left in set(path.parent.iterdir()) - {path}:
            left.unlink()
    assert 0 < same < 150


@forking
@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "rule"),
    [
        (0o000, 0o777, "readable and writable"),
        (0o444, 0o777, "readable and writable"),
        (0o666, 0o555, "a folder that can be written"),
    ],
)
@pytest.mark.parametrize("name", FACES)
def test_what_may_not_be_written_is_refused(name, file_mode, folder_mode, rule):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        FACES[name].make(path)
        path.chmod(file_mode)
        Path(folder).chmod(folder_mode)
        child = forked(as_nobody(lambda: check_refusal(FACES[name], path, rule)))
        assert exit_code(child) == 0
        Path(folder).chmod(0o777)
        assert os.listdir(folder) == ["state"]


def test_damage_that_comes_while_a_budget_is_open_is_named(path):
    budget = Budget.open(path, epsilon=1)
    with raw(path) as connection:
        connection.execute("UPDATE account SET time = 'noon'")
    for use in (repr, Budget.to_json, lambda budget: budget.records):
        with pytest.raises(FACES["ledger"].error, match="whole") as caught:
            use(budget)
        assert str(path) in str(caught.value)
