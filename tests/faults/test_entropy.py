"""A system without entropy: an error each time, and never coins from anywhere else."""

import ctypes
import errno
import os
import platform
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import figure, program, watched

from hdp_fast import gf2, local, noise, parity
from hdp_fast.labels import PrivateLabeler
from hdp_fast.local import BinaryResponse
from hdp_fast.stability import AboveThreshold, StableRelease
from hdp_fast.weights import DenseWeights

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="filters system calls of Linux")

# Numbers of getrandom, open and openat; 64-bit ARM has no open.
CALLS = {"x86_64": (318, 2, 257), "aarch64": (278, 56)}


def refuse(calls, code):
    """From now on these system calls of this process fail with this error (seccomp)."""
    load_number, equal, end, allow, fail = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
    steps = [(load_number, 0, 0, 0)]
    for call in calls:
        steps += [(equal, 0, 1, call), (end, 0, 0, fail | code)]
    steps += [(end, 0, 0, allow)]
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    described = struct.pack("HxxxxxxP", len(steps), ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_filter, mode = 38, 22, 2
    for call in ((no_new_privileges, 1, 0, 0, 0), (set_filter, mode, described, 0, 0)):
        assert libc.prctl(*call) == 0, os.strerror(ctypes.get_errno())


def learn(X, y):
    return lambda Q: np.ones(len(Q), int)


def labeler():
    made = PrivateLabeler(
        learn, epsilon=1.0, delta=1e-5, queries=5, max_unstable=1, classes=[0, 1], members=2
    )
    return made.fit(np.zeros((4, 2)), [0, 1, 0, 1])


X = np.eye(4, dtype=np.uint8)


def mechanisms():
    """Draws of all kinds, of objects that are made while there is entropy."""
    agents, weights = local.Agents(X, X[0], epsilon=1.0), DenseWeights(9, 0.5, 0.5)
    threshold, labels = AboveThreshold(1, 0, epsilon=1.0), labeler()
    release = StableRelease(epsilon=1.0, delta=1e-3)
    return {
        "bernoulli": lambda: noise.bernoulli(0.5, 9),
        "Gaussian": lambda: noise.discrete_gaussian(3.0, 9),
        "rounded Gaussian": lambda: noise.rounded_gaussian(3.0, 9),
        "selection": lambda: noise.permute_and_flip([1, 2], epsilon=1.0),
        "response": lambda: local.randomized_response([0, 1], epsilon=1.0),
        "device": lambda: BinaryResponse(1.0, (0, 1)).sample([0.5]),
        "agents": lambda: agents.ask(lambda X, y: y, 2),
        "parity": lambda: parity.learn(X, X[0], epsilon=1.0),
        "solution": gf2.solve(np.zeros((2, 70), np.uint8), [0, 0]).sample,
        "draws": lambda: weights.draw(3),
        "release": lambda: release.release([3, 1]),
        "threshold": lambda: threshold.answer(5),
        "labels": lambda: labels.label(np.zeros((1, 2))),
    }


@pytest.mark.parametrize("code", ["EIO", "ENOSYS", "EPERM", "EFAULT"])
def test_without_entropy_nothing_is_drawn(code):
    # /dev/urandom, of the same generator, is what old systems have for getrandom: it fails, too.
    def child():
        for draw in mechanisms().values():
            draw()
        draws = mechanisms()
        refuse(CALLS[platform.machine()], getattr(errno, code))
        for name, draw in draws.items():
            print(name)
            # Of the compiled module, "no entropy"; of what trains members in Python, the system's.
            with pytest.raises(OSError, match=r"no entropy|\[Errno"):
                draw()

    run = watched(child)
    assert run.code == 0, f"{run.out}\n{run.err}"
    draws = run.out.count("\n")
    figure(f"no entropy: getrandom fails with {code}", draws, "an OSError each time")


def test_an_import_without_entropy_is_an_error_with_a_text_and_none_of_a_panic():
    """In a process of its own, where nothing of the compiled module has been made before."""
    source = Path(__file__).read_text()
    refusing = source[source.index("def refuse") : source.index("def learn")]
    text = f"""
import ctypes, errno, os, platform, struct
import numpy
CALLS = {CALLS!r}
{refusing}
refuse(CALLS[platform.machine()][:1], errno.EIO)  # files must open, or nothing is imported
try:
    import hdp_fast
except OSError as error:
    print(error)
"""
    assert "no entropy" in program(text)
