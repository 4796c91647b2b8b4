"""Files that appear whole or not at all: what a kill leaves, and who tidies up.

Tests of a private module, through all that write files with it.
"""

import os
import signal
import stat
import threading

import pytest
from processes import exit_code, forked
from state_faces import FACES

from hdp_fast._support import atomic
from hdp_fast.data import files
from hdp_fast.exceptions import ParameterError
from hdp_fast.labels.saved_files import new_file
from hdp_fast.stability import tables

pytest.importorskip("joblib")


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
