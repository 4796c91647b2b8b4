"""Which test reaches which line of the package, and which mutant of the core.

A plugin of pytest (`-p reached`) under `coverage run`: each test is a context of its own, and
HDP_FAST_REACHED names the folder where each worker writes, by test, the seconds that it took and
the mutants of the core that it reached. HDP_FAST_MUTANTS says how many of those there are.
"""

import ctypes
import json
import os
from pathlib import Path

import coverage
import pytest

_seconds, _reached, _failed = {}, {}, set()
_count = int(os.environ.get("HDP_FAST_MUTANTS", "0"))
_core = None


def _ask():
    global _core
    if _core is None:
        from hdp_fast import _core as module

        _core = ctypes.CDLL(module.__file__)
        _core.hdp_fast_mutant_reached.restype = ctypes.c_bool
    return [index for index in range(_count) if _core.hdp_fast_mutant_reached(index)]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    measured = coverage.Coverage.current()
    if measured is not None:
        measured.switch_context(item.nodeid)
    if _count:
        _ask()
    result = yield
    if _count:
        _reached[item.nodeid] = _ask()
    if measured is not None:
        measured.switch_context("")
    return result


def pytest_runtest_logreport(report):
    _seconds[report.nodeid] = _seconds.get(report.nodeid, 0) + report.duration
    if report.outcome != "passed":
        _failed.add(report.nodeid)


def pytest_sessionfinish(session):
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker and session.config.getoption("numprocesses", None):
        return  # Each worker writes what it ran.
    tests = {
        test: [seconds, _reached.get(test, [])]
        for test, seconds in _seconds.items()
        if test not in _failed
    }
    (Path(os.environ["HDP_FAST_REACHED"]) / f"{worker or 'main'}.json").write_text(
        json.dumps(tests)
    )
