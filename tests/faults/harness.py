"""What the attacks share: sizes, children under watch, deaths at a chosen moment, figures."""

import contextlib
import mmap
import os
import random
import resource
import selectors
import signal
import sqlite3
import subprocess
import sys
import threading
import traceback
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import lengths
from processes import exit_code, forked

from hdp_fast.cli import main

LONG = lengths.FAULTS
# Rows (attack, cases, outcome) of the table at the end of a long run.
FIGURES = []

# A moment that does not come: the changes are counted all the same.
NEVER = sys.maxsize

# What changes a file, a folder or a pipe. A death between two other calls is one after the last
# change.
_CHANGES = {
    *("open", "write", "writelines", "flush", "close", "truncate", "ftruncate", "fsync"),
    *("link", "unlink", "remove", "rename", "replace", "mkdir", "rmdir", "chmod", "fchmod"),
}


def size(short, long):
    """How many cases there are, in the short form and in the long one."""
    return long if LONG else short


def figure(attack, cases, outcome):
    """Adds a line to the table at the end of a long run."""
    FIGURES.append((attack, cases, outcome))


def program(text, *argv, seconds=60, **environment):
    """Runs a Python program that must come to its end; returns what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, argv)],
        capture_output=True,
        text=True,
        timeout=seconds,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(*argv):
    """Work for a child: hdp-fast with these arguments, and its exit code."""
    return lambda: main([str(argument) for argument in argv])


@dataclass(frozen=True)
class Run:
    """How a child ended.

    Attributes:
        code: its exit code; of a child that was killed, minus the signal.
        out, err: what it printed.
        changes: how many calls that can change a file, a folder or a pipe it began or ended, where
            they were counted.
    """

    code: int
    out: str
    err: str
    changes: int

    @property
    def died(self):
        """Whether it was killed as it was meant to be; otherwise it came to its end."""
        return self.code in (-signal.SIGKILL, -signal.SIGALRM)


def watched(work, *, step=None, delay=0.0, limit=None, seconds=60):
    """Does some work in a child and says how that ended; its exit code is what work returns.

    step: kill -9 at that change, counted from 0, or NEVER to count them; delay: so many seconds
    after it, in the middle of whatever runs then. limit: bytes that no file may grow beyond. A
    child that hangs is a failure.
    """
    counter = memoryview(mmap.mmap(-1, 8)).cast("Q")
    streams = [os.pipe() for _ in range(2)]

    def child():
        for number, (_, writing) in enumerate(streams, start=1):
            os.dup2(writing, number)
        # pytest has put others in their place.
        sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
        if limit is not None:
            # Python ignores SIGXFSZ, so that writing fails, as it does on a full disk.
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            with _deadly(counter, step, delay) if step is not None else contextlib.nullcontext():
                code = work()
        except BaseException:
            code = 1
            traceback.print_exc()
        # Standard output may be gone: that is for the work to say.
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code or 0)

    number = forked(child)
    for _, writing in streams:
        os.close(writing)
    hung = threading.Event()
    watchdog = threading.Timer(seconds, lambda: (hung.set(), os.kill(number, signal.SIGKILL)))
    watchdog.start()
    out, err = _read([reading for reading, _ in streams])
    code = exit_code(number, seconds)
    watchdog.cancel()
    assert not hung.is_set(), f"it hung; it had printed {out[-500:]} and {err[-2000:]}"
    return Run(code, out, err, counter[0])


def _read(pipes):
    """All that is sent, as texts."""
    sent = {pipe: bytearray() for pipe in pipes}
    with selectors.DefaultSelector() as waiting:
        for pipe in pipes:
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map():
            for key, _ in waiting.select():
                part = os.read(key.fd, 1 << 16)
                sent[key.fd] += part
                if not part:
                    waiting.unregister(key.fd)
    for pipe in pipes:
        os.close(pipe)
    return [bytes(text).decode() for text in sent.values()]


@contextlib.contextmanager
def _deadly(counter, step, delay):
    """Counts the changes of all threads, and ends the process at one of them."""
    # The default action ends the process in the middle of whatever it does, as kill -9 would.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def watch(_frame, event, called):
        if event in ("c_call", "c_return") and _changes(called):
            if counter[0] == step and delay:
                signal.setitimer(signal.ITIMER_REAL, delay)
            elif counter[0] == step:
                os.kill(os.getpid(), signal.SIGKILL)
            counter[0] += 1

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _changes(called):
    owner = getattr(called, "__self__", None)
    module = owner.__name__ if isinstance(owner, types.ModuleType) else type(owner).__module__
    return module == "sqlite3" or (module in ("posix", "_io") and called.__name__ in _CHANGES)


def moments(changes, cases, seed):
    """When to kill work with so many changes: half at one of them, half a little after one."""
    rng = random.Random(seed)
    for case in range(cases):
        step = int((case + rng.random()) * changes / cases)
        yield {"step": step, "delay": rng.uniform(1e-6, 0.003) * (case % 2)}


def together(works, *, hasty=False):
    """Does some works at once, in threads; what they return, in order.

    Hasty threads take turns as often as they can, once all of them have started: coverage cannot
    trace two that start so. It waits for ever if they do: a child that is watched calls it.
    """
    before = sys.getswitchinterval()
    hasten = (lambda: sys.setswitchinterval(1e-6)) if hasty else None
    start = threading.Barrier(len(works), hasten)

    def begun(work):
        start.wait()
        return work()

    try:
        with ThreadPoolExecutor(len(works)) as pool:
            return list(pool.map(begun, works))
    finally:
        sys.setswitchinterval(before)


def whole(path):
    """Asserts that a file of SQLite is sound."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
