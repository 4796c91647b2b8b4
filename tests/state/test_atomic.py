"""Files that appear whole or not at all: what a kill leaves, and who tidies up.

Tests of a private module, through all that write files with it.
"""

import os
import signal
import stat
import subprocess
import sys
import threading

import pytest
from processes import exit_code, forked
from state_faces import FACES

from hdp_fast._support import atomic
from hdp_fast.collection import Study
from hdp_fast.data import files
from hdp_fast.exceptions import CheckpointError, HdpFastError, ParameterError
from hdp_fast.labels.saved_files import new_file
from hdp_fast.stability import tables
from hdp_fast.transfer.hybrid_state import HybridState

pytest.importorskip("joblib")
ASKED = {"asker": "a city", "url": "https://example.org"}


def save_members(path):
    with new_file(path, "kind", {"members": list(range(100))}) as publish:
        publish()


WRITERS = {
    **{name: face.make for name, face in FACES.items()},
    "labeler": save_members,
    "result": lambda path: files.write_atomically(path, b"result"),
}


@pytest.fixture(params=WRITERS)
def write(request):
    return WRITERS[request.param]


@pytest.fixture
def path(memory):
    return memory / "file"


def killed(work, place):
    """Does something in a child that dies when it calls this function of os."""

    def child():
        for name in place:
            setattr(os, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        work()

    assert exit_code(forked(child)) == -signal.SIGKILL


PLACES = {"before it is whole": ["fsync"], "before it has its name": ["link", "replace"]}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_what_a_killed_creator_left_is_removed_by_the_next(write, path, place):
    killed(lambda: write(path), place)
    killed(lambda: write(path.with_name("other")), place)
    assert not path.exists()
    assert len(os.listdir(path.parent)) >= 1
    write(path)
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_a_second_name_that_a_killed_creator_left_is_removed(face, path):
    """It was killed between giving the file its name and taking the scratch name away."""
    killed(lambda: face.make(path), ["unlink"])
    first, second = sorted(os.listdir(path.parent))
    assert second == path.name
    assert os.path.samefile(path.parent / first, path)
    face.more(path)
    assert os.listdir(path.parent) == [path.name]


def test_only_our_own_leftovers_are_removed(path):
    names = [".file.0123456789abcdef.tmp", ".hdp_fast.tmp", "file.0123456789abcdef.hdp_fast.tmp"]
    names += [".file.0123456789abcdeg.hdp_fast.tmp", ".file.0123456789abcdef.hdp_fast.tmp.gz"]
    for name in names:
        path.with_name(name).touch()
    path.with_name(".folder.0123456789abcdef.hdp_fast.tmp").mkdir()
    path.with_name(".file.0123456789abcdef.hdp_fast.tmp").touch()
    before = set(os.listdir(path.parent))
    files.write_atomically(path, b"")
    assert before - set(os.listdir(path.parent)) == {".file.0123456789abcdef.hdp_fast.tmp"}


@pytest.mark.parametrize("kind", [atomic.create, atomic.replace])
def test_nobody_removes_the_file_of_a_live_creator(path, kind):
    """Not even one who began later and is done before."""

    def slowly(out):
        out.write(b"slow")
        thread = threading.Thread(target=files.write_atomically, args=(path.with_name("b"), b"b"))
        thread.start()
        thread.join()
        child = forked(lambda: files.write_atomically(path.with_name("c"), b"c"))
        assert exit_code(child) == 0
        assert len(os.listdir(path.parent)) == 3

    kind(path, slowly)
    assert sorted(os.listdir(path.parent)) == ["b", "c", "file"]
    assert path.read_bytes() == b"slow"


@pytest.mark.parametrize(("kind", "name"), [(atomic.create, "link"), (atomic.replace, "replace")])
def test_a_creator_whose_file_is_removed_begins_again(path, kind, name, monkeypatch):
    """On a file system without locks, another machine may take it for a leftover."""
    place, calls = getattr(os, name), []

    def late(scratch, target):
        calls.append(scratch)
        if len(calls) == 1:
            os.unlink(scratch)
        place(scratch, target)

    monkeypatch.setattr(os, name, late)
    kind(path, lambda out: out.write(b"content"))
    assert path.read_bytes() == b"content"
    assert len(calls) == 2
    assert os.listdir(path.parent) == [path.name]


def test_a_folder_that_somebody_else_has_locked_is_written_to(path):
    """As under flock(1): no one waits for a lock that may last."""
    fcntl = pytest.importorskip("fcntl")
    handle = os.open(path.parent, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    left = path.with_name(".file.0123456789abcdef.hdp_fast.tmp")
    left.touch()
    files.write_atomically(path, b"content")
    assert left.exists()
    os.close(handle)
    files.write_atomically(path, b"content")
    assert not left.exists()


def test_a_name_is_on_the_disk_before_anybody_relies_on_it(write, path, monkeypatch):
    """The file first, then its name, then the folder that holds the name."""
    said, fsync = [], os.fsync

    def noted(handle):
        said.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    for name in ("link", "replace"):
        place = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *a, place=place: (said.append("name"), place(*a)))
    write(path)
    assert said[:3] == ["file", "name", "folder"]


def test_a_folder_that_cannot_be_synchronized_is_no_error(path, monkeypatch):
    fsync = os.fsync

    def refuses(handle, number):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", lambda handle: refuses(handle, 22))
    files.write_atomically(path, b"content")
    monkeypatch.setattr(os, "fsync", lambda handle: refuses(handle, 5))
    with pytest.raises(ParameterError, match="Input/output error"):
        files.write_atomically(path, b"content")


POSIX_LACKS = f"needs POSIX's file locks and synchronized folders, which {sys.platform} lacks"


def test_a_system_without_posix_is_named_and_nothing_is_written(write, path, monkeypatch):
    """Windows has neither: what two processes may write at once is not begun there."""
    monkeypatch.setattr(atomic, "fcntl", None)
    with pytest.raises(HdpFastError, match=POSIX_LACKS):
        write(path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_state_of_another_system_is_not_opened_without_posix(face, path, monkeypatch):
    face.make(path)
    monkeypatch.setattr(atomic, "fcntl", None)
    with pytest.raises(HdpFastError, match=POSIX_LACKS):
        face.show(path)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda path: Study.create(path, epsilon=1.0, people=2, **ASKED), ParameterError),
        (lambda path: HybridState(path).hold().__enter__(), CheckpointError),
    ],
    ids=["study", "hybrid state"],
)
def test_what_holds_a_folder_or_a_lock_names_a_system_without_posix(make, error, path, monkeypatch):
    monkeypatch.setattr(atomic, "fcntl", None)
    with pytest.raises(error, match=POSIX_LACKS):
        make(path)
    assert not list(path.parent.iterdir())


# What Windows lacks, taken away once the modules of others have looked for it.
WITHOUT_POSIX = """
import asyncio, multiprocessing, os, pathlib, signal, socketserver, sqlite3, subprocess, sys
import tempfile
import numpy as np

lacking = "fork register_at_fork fchmod O_DIRECTORY O_NOFOLLOW O_NONBLOCK O_CLOEXEC getuid geteuid"
lacking += " sched_getaffinity killpg getpgid setsid mkfifo"
for name in lacking.split():
    if hasattr(os, name):
        delattr(os, name)
for name in "SIGKILL SIGALRM SIGHUP SIGUSR1 setitimer pthread_kill".split():
    delattr(signal, name)
sys.modules |= dict.fromkeys(["fcntl", "resource", "termios", "pwd", "grp"])
import hdp_fast

home = pathlib.Path(hdp_fast.__file__).parent
for file in home.rglob("*.py"):
    parts = file.relative_to(home).with_suffix("").parts
    # Others, which take seconds to be imported, and what runs at once.
    if parts[0] not in {"sklearn", "plotting", "__main__"}:
        try:
            __import__(".".join(["hdp_fast", *parts]).removesuffix(".__init__"))
        except ImportError as error:
            # An extra that is missing.
            assert error.name.split(".")[0] not in {"hdp_fast", "fcntl", "resource", "pwd"}, error
budget = hdp_fast.Budget(1.0)
X = np.random.default_rng(0).integers(0, 2, (4000, 8), dtype=np.uint8)
hdp_fast.parity.learn(X, X[:, 0], epsilon=1.0, budget=budget)
assert budget.spent.epsilon == 1
assert hdp_fast.local.randomized_response([0, 1], epsilon=1.0).shape == (2,)
"""


@pytest.mark.thorough(beside="test_a_system_without_posix_is_named_and_nothing_is_written")
def test_the_package_is_imported_and_computes_without_posix():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WITHOUT_POSIX], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_replaced_file_keeps_its_mode(path):
    for mode in (0o600, 0o640, 0o666):
        path.touch()
        path.chmod(mode)
        files.write_atomically(path, b"content")
        assert stat.S_IMODE(path.stat().st_mode) == mode
        path.unlink()


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_new_result_has_the_mode_that_its_owner_wants(path, umask, mode):
    before = os.umask(umask)
    try:
        files.write_atomically(path, b"content")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_file_that_exists_is_not_created(path):
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError):
        atomic.create(path, lambda out: out.write(b"new"))
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("kind", [atomic.create, atomic.replace])
def test_what_fails_leaves_nothing_behind(path, kind, error):
    def fail(out):
        out.write(b"half")
        raise error

    with pytest.raises(error):
        kind(path, fail)
    assert os.listdir(path.parent) == []


def test_long_names_of_any_letters_are_written(path):
    for letter in ("a", "é", "字", "😀"):
        target = path.with_name(letter * (255 // len(letter.encode())))
        files.write_atomically(target, b"content")
        assert target.read_bytes() == b"content"


def test_a_text_that_cannot_be_kept_leaves_nothing(memory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(memory))

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        tables.write_text("name", "text")
    assert os.listdir(memory / "hdp_fast") == []
    tables.write_text("name", "text")
    assert tables.read_text("name") == "text"


def test_what_is_no_regular_file_is_never_replaced(tmp_path):
    """A pipe stands for /dev/null, which a failing test would take from the machine."""
    os.mkfifo(pipe := tmp_path / "pipe")
    before = os.stat(pipe)
    with pytest.raises(OSError, match="regular file"):
        atomic.replace(pipe, lambda out: out.write(b"text"))
    assert os.path.samestat(os.stat(pipe), before)
    assert os.listdir(tmp_path) == ["pipe"]
