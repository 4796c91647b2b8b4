"""Calls and refusals without number leave nothing behind in memory."""

import gc
import resource
import sys
from pathlib import Path

import pytest
from harness import figure, size, watched
from processes import forking
from targets import TARGETS

from hdp_fast.exceptions import HdpFastError

pytestmark = [
    forking,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/statm"),
]
# What an allocator may keep for itself however often it is asked, and what a call may leave.
SLACK_BYTES, A_CALL = 4 << 20, 64
SOME = [
    *("rank", "solve", "parity", "project", "update", "permute and flip", "weighted draws"),
    *("randomized response", "agents", "count votes", "hazard answers", "scores", "stumps"),
    *("descent on", "separator", "discrepancy"),
]


def resident():
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def call(target, arrays):
    """Once as it should be, and once with a text in the place of an array."""
    target.call(*arrays)
    with pytest.raises((HdpFastError, TypeError)):
        target.call(*["no array"] * len(arrays))


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("name", size(SOME, list(TARGETS)))
def test_calls_leave_nothing_behind(name):
    calls = size(150, 10_000)

    def child():
        target = TARGETS[name]
        arrays = [values.copy() for values in target.arrays.values()]
        for _ in range(100):
            call(target, arrays)
        before = resident()
        for _ in range(calls):
            call(target, arrays)
        print(resident() - before)

    run = watched(child, seconds=1200)
    assert run.code == 0, run.err
    growth = int(run.out)
    assert growth < SLACK_BYTES + A_CALL * calls
    figure(f"leaks: {name}", calls, f"{growth / calls:.1f} bytes a call")
