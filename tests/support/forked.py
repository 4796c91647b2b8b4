"""A process that runs tests in forks of itself, so that what they import is imported once.

Reads lines of JSON, [arguments of pytest, seconds of processor time, variables], and answers each
by a line [status, what pytest wrote]; a status below zero is that of a signal.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import traceback

import pytest

# Not the package itself, which is what changes.
PRELOADED = (
    "numpy",
    "scipy.stats",
    "pandas",
    "polars",
    "pyarrow",
    "sklearn.linear_model",
    "joblib",
)
WALL = 10


def answer(arguments, seconds, variables):
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        if not (child := os.fork()):
            run(output.fileno(), arguments, seconds, variables)
        # A process that sleeps takes no processor time.
        signal.signal(signal.SIGALRM, lambda *_: os.killpg(child, signal.SIGKILL))
        signal.alarm(60 + WALL * int(seconds))
        _, status = os.waitpid(child, 0)
        signal.alarm(0)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        output.seek(0)
        return os.waitstatus_to_exitcode(status), output.read()[-10_000:]


def run(output, arguments, seconds, variables):
    status = 70
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 6))
        os.environ.update(variables)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        status = int(pytest.main(arguments))
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


if __name__ == "__main__":
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for line in sys.stdin:
        print(json.dumps(answer(*json.loads(line))), flush=True)
