"""Children of tests, watched: one that hangs is killed, and one that is gone is not waited for."""

import os
import signal
import threading
import time
import traceback
import warnings

import pytest

# How many times as long as elsewhere a child may take: one that counts its lines is slow.
PATIENCE = float(os.environ.get("HDP_FAST_PATIENCE", "1"))

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def forked(work):
    """The process number of a child that does something and is gone; it ends in 0 if that does."""
    with warnings.catch_warnings():
        # Python 3.12 warns of any fork beside threads; that it works here is what is tested.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return child


def exit_code(child, seconds=20):
    """Of a child, which is killed if it hangs: then it is that of SIGKILL."""
    watchdog = threading.Timer(PATIENCE * seconds, os.kill, (child, signal.SIGKILL))
    watchdog.start()
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        watchdog.cancel()


def as_nobody(work):
    """The work, by somebody whom the modes of files bind; root is bound by none."""

    def bound():
        if os.getuid() == 0:
            os.setuid(65534)
        return work()

    return bound


def wait_until(happens, process, seconds=60):
    """Wait until a process brings something about; fail as soon as it can no longer do so."""
    end = time.monotonic() + PATIENCE * seconds
    while not happens():
        code = process.poll()
        assert code is None, f"it ended with {code} before that"
        assert time.monotonic() < end, f"nothing happened for {seconds} seconds"
        time.sleep(0.02)


def reply(work, seconds=20):
    """What work() returns in a forked child, as bytes."""
    reading, writing = os.pipe()

    def child():
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(work())

    number = forked(child)
    os.close(writing)
    watchdog = threading.Timer(PATIENCE * seconds, os.kill, (number, signal.SIGKILL))
    watchdog.start()
    with os.fdopen(reading, "rb") as pipe:
        sent = pipe.read()
    watchdog.cancel()
    assert exit_code(number, seconds) == 0
    return sent
