"""What every file of state keeps to: ledger, checkpoint, device's answers and labeler's account.

Tests of a private module: the files have four faces and one mechanism.
"""

import contextlib
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from processes import exit_code, forked, forking
from state_faces import FACES, RECORD, SETTINGS, check_refusal, make_checkpoint

from hdp_fast import Budget
from hdp_fast._support import atomic
from hdp_fast.exceptions import CheckpointError, ParameterError
from hdp_fast.transfer.checkpoint import Journal


@pytest.fixture(params=FACES.values(), ids=FACES)
def face(request):
    return request.param


@pytest.fixture
def path(memory):
    return memory / "state"


@contextlib.contextmanager
def raw(path):
    """A connection of another program, which commits at the end."""
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        yield connection


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


# Names, modes and places --------------------------------------------------------------------------


def test_a_file_of_two_names_is_refused(face, path):
    """Logs are named after the path: by two names the file would be torn."""
    face.make(path)
    other = path.parent / "other"
    os.link(path, other)
    for name in (path, other):
        check_refusal(face, name, "hard links")
    other.unlink()
    face.show(path)
    os.symlink(path, other)
    assert face.show(other) == face.show(path)


def test_a_name_that_is_added_meanwhile_stops_a_budget(path):
    budget = Budget.open(path, epsilon=1)
    os.link(path, path.parent / "other")
    with pytest.raises(ParameterError, match="hard links"):
        budget.reserve(RECORD)
    os.unlink(path.parent / "other")
    assert budget.spent == (0, 0)


@pytest.mark.parametrize("umask", [0, 0o022])
def test_new_files_are_the_owners_alone(face, path, umask):
    before = os.umask(umask)
    try:
        face.make(path)
    finally:
        os.umask(before)
    assert mode(path) == 0o600
    assert os.listdir(path.parent) == [path.name]


def test_the_mode_of_a_shared_file_is_kept(face, path):
    face.make(path)
    path.chmod(0o660)
    face.more(path)
    face.show(path)
    assert mode(path) == 0o660


@pytest.mark.parametrize("wanted", [0o600, 0o660])
def test_a_log_has_the_mode_of_its_ledger(path, wanted):
    budget = Budget.open(path, epsilon=1)
    path.chmod(wanted)
    # Whoever comes last removes the log: it stays as long as this reader.
    with raw(path) as reader:
        reader.execute("SELECT * FROM account").fetchall()
        budget.reserve(RECORD)
        assert {mode(file) for file in path.parent.iterdir()} == {wanted}
        assert len(os.listdir(path.parent)) == 3


def mount(point, kind, number=30):
    return rf"{number} 1 0:{number} / {point} rw,relatime shared:1 - {kind} host:/export rw"


MOUNTS = "\n".join(
    [
        mount("/", "ext4"),
        mount("/home", "autofs"),
        mount("/home/team", "nfs4"),
        mount("/home/team/disk", "xfs"),
        mount(r"/with\040blank", "cifs"),
        mount("/twice", "nfs"),
        mount("/twice", "tmpfs", 31),
    ]
)


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("/a", None),
        ("/home/me/ledger", None),
        ("/home/team/ledger", "nfs4"),
        ("/home/teams/ledger", None),
        ("/home/team/disk/ledger", None),
        ("/home/team/disks", "nfs4"),
        ("/with blank/a", "cifs"),
        ("/twice/a", None),
    ],
)
def test_the_longest_mount_point_says_where_a_file_lies(monkeypatch, place, kind):
    monkeypatch.setattr(atomic, "_mountinfo", lambda: MOUNTS)
    assert atomic.network_type(Path(place)) == kind


def test_nothing_is_known_without_a_table_of_mounts(monkeypatch):
    monkeypatch.setattr(atomic, "_mountinfo", lambda: "")
    assert atomic.network_type(Path("/a")) is None


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "lustre"])
def test_a_network_drive_is_refused(monkeypatch, face, path, kind):
    """Its locks end silently, and it has no memory that machines share."""
    face.make(path)
    monkeypatch.setattr(atomic, "_mountinfo", lambda: mount(path.parent, kind))
    check_refusal(face, path, f"local disk, and not on {kind}")
    with pytest.raises(face.error, match="local disk"):
        face.make(path.parent / "new")
    assert os.listdir(path.parent) == [path.name]


# Locks --------------------------------------------------------------------------------------------

HOLDER = """
import sys
from hdp_fast.transfer.checkpoint import Journal
from hdp_fast.exceptions import CheckpointError
try:
    Journal(sys.argv[1], {})
except CheckpointError as error:
    print(error)
"""


def other_process(path):
    run = subprocess.run(
        [sys.executable, "-c", HOLDER, str(path)], capture_output=True, text=True, check=True
    )
    return run.stdout


def test_a_thread_that_looks_leaves_the_lock_of_another_alone(path):
    """POSIX ends the locks of a whole process with any descriptor of the file."""
    make_checkpoint(path)
    journal, said = Journal(path, SETTINGS), []

    def look():
        with pytest.raises(CheckpointError, match="no other run") as caught:
            Journal(path, SETTINGS)
        said.append(str(caught.value))

    with journal.lock():
        for _ in range(2):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            assert "no other run" in other_process(path)
        journal.add_hypothesis(3, "{}")
    assert len(said) == 2
    assert Journal(path, SETTINGS).hypotheses[2] == "{}"


opened_files = []
sys.addaudithook(lambda event, args: event == "open" and opened_files.append(args[0]))


def test_nobody_but_sqlite_ever_opens_the_file(face, path):
    face.make(path)
    opened_files.clear()
    face.show(path)
    face.more(path)
    assert [file for file in opened_files if isinstance(file, str | bytes | Path)
            and os.fsdecode(file) == str(path)] == []  # fmt: skip


def test_a_released_hypothesis_is_never_replaced(path):
    journal = Journal(path, SETTINGS)
    with journal.lock():
        journal.add_hypothesis(1, '"released"')
        with pytest.raises(CheckpointError, match="checkpoint = "):
            journal.add_hypothesis(1, '"another"')
    assert journal.hypotheses == ['"released"']
    assert Journal(path, SETTINGS).hypotheses == ['"released"']


@forking
def test_a_forked_child_has_no_lock_and_writes_nothing(path):
    journal = Journal(path, SETTINGS)
    with journal.lock():

        def child():
            with pytest.raises(CheckpointError, match="only the process that began the run"):
                journal.add_hypothesis(1, "{}")

        assert exit_code(forked(child)) == 0
    assert journal.hypotheses == []


def test_what_is_no_path_is_named(face):
    for wrong in ("a\0b", 3, object()):
        with pytest.raises(face.error, match="it must be a path"):
            face.show(wrong)


# Full disks and lost files ------------------------------------------------------------------------


@contextlib.contextmanager
def longest_file(size):
    """Whoever writes beyond this place of a file is told so by the system, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 100, 5000])
def test_a_disk_that_is_full_at_the_beginning_is_named(face, path, size):
    with longest_file(size), pytest.raises(face.error, match="be written"):
        face.make(path)
    assert os.listdir(path.parent) == []
    face.make(path)
    face.show(path)


def test_a_disk_that_fills_up_leaves_what_was_there(face, path):
    """Wherever the disk is full, more is in the file if that was told, and only then."""
    face.make(path)
    shown, full = face.show(path), 0
    content = path.read_bytes()
    for size in range(0, 40_000, 1000):
        path.write_bytes(content)
        told = False
        with contextlib.suppress(face.error), longest_file(size):
            face.more(path)
            told = True
        full += not told
        assert (face.show(path) != shown) == told
        assert os.listdir(path.parent) == [path.name]
    assert 0 < full < 40


def test_a_reservation_on_a_full_disk_is_not_started(path):
    budget = Budget.open(path, epsilon=1)
    for size in (0, 100, 3000, 5000):
        with longest_file(size), pytest.raises(ParameterError, match="read and written"):
            budget.reserve(RECORD)
        assert budget.spent == (0, 0)
    reservation = budget.reserve(RECORD)
    with longest_file(0), reservation:
        pass
    # It has been paid for; that it ended could not be noted.
    assert [entry.state for entry in budget.records] == ["reserved"]


def vanish(path):
    path.unlink()


def moved_away(path):
    path.rename(path.with_name("moved"))


def emptied(path):
    path.unlink()
    path.touch()


def begun_again(path):
    path.unlink()
    Budget.open(path, epsilon=1)


@pytest.mark.parametrize("loss", [vanish, moved_away, emptied, begun_again])
def test_nothing_is_granted_from_a_ledger_that_is_gone(path, loss):
    budget = Budget.open(path, epsilon=1)
    loss(path)
    before = {file: file.read_bytes() for file in path.parent.iterdir()}
    for use in (
        lambda: budget.reserve(RECORD),
        lambda: budget.sequential(0.5),
        lambda: budget.spent,
    ):
        with pytest.raises(ParameterError, match=str(path)):
            use()
    assert {file: file.read_bytes() for file in path.parent.iterdir()} == before


def test_nothing_is_granted_from_a_ledger_that_goes_at_the_last_moment(path, monkeypatch):
    """What is written to a file without a name is lost."""
    budget, connect = Budget.open(path, epsilon=1), sqlite3.connect

    def lose(statement):
        if statement == "COMMIT":
            path.rename(path.with_name("moved"))

    def watched(*args, **kwargs):
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(lose)
        return connection

    monkeypatch.setattr(sqlite3, "connect", watched)
    with pytest.raises(ParameterError, match="read and written"):
        budget.reserve(RECORD)
