"""A fixed stream for whatever draws without a seed in a test: no test fails by chance.

Where nobody gives a seed, the package draws its key from the operating system. A test whose subject
is not the law of the draws would then fail on right code now and then. `fix` puts a stream of keys
in that place, the same one for each test; keys differ from draw to draw as those of the system do.

The system's own entropy remains for tests marked `entropy`, for tests/statistical, whose tests
state how often they fail, and for every other process that a test starts or forks.
"""

import hashlib
import itertools
import os
import types

import numpy as np

from hdp_fast._support import random_state

_tests = os.getpid()
_numbers = None


def restart(fixed):
    """Begins the stream anew; or leaves draws to the system, where `fixed` is false."""
    global _numbers
    _numbers = itertools.count() if fixed else None


def take():
    """The next key of the stream; None where the system draws."""
    if _numbers is None or os.getpid() != _tests:
        return None
    return hashlib.sha256(b"a test draws %d" % next(_numbers)).digest()


def _make_generator(_):
    key = take()
    return np.random.default_rng(None if key is None else np.frombuffer(key, np.uint32))


def fix():
    """Every unseeded draw of this process asks the stream.

    Other modules have taken these functions by name: it is their code that is replaced.
    """
    _fill(random_state.make_key, lambda _: take())
    _fill(random_state.make_public_generator, _make_generator)


def _fill(function, unseeded):
    """Lets `function` answer None with `unseeded`, and all else with its own code."""
    names = function.__globals__
    names[f"_seeded_{function.__name__}"] = types.FunctionType(function.__code__, names)
    names[f"_unseeded_{function.__name__}"] = unseeded
    made = {}
    exec(_CHOOSE.format(function.__name__), names, made)
    function.__code__ = made["choose"].__code__


_CHOOSE = """
def choose(random_state):
    if random_state is None:
        return _unseeded_{0}(None)
    return _seeded_{0}(random_state)
"""
