"""A fixed stream for whatever draws without a seed in a test: no test fails by chance.

Where no one gives a seed, the package draws its key from the operating system. A test whose subject
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


def fix():
    """Every unseeded draw of this process asks the stream.

    Other modules have taken `make_key` by name: it is its code that is replaced.
    """
    names = random_state.__dict__
    names["_make_seeded_key"] = types.FunctionType(random_state.make_key.__code__, names)
    names["_take_key"] = take
    random_state.make_key.__code__ = _choose_key.__code__
    np.random.default_rng = _make_generator


def _choose_key(random_state, *, is_public):
    if random_state is None:
        return _take_key()  # noqa: F821
    return _make_seeded_key(random_state, is_public=is_public)  # noqa: F821


def _make_generator(seed=None, *, system=np.random.default_rng):
    if seed is None and (key := take()) is not None:
        seed = np.frombuffer(key, np.uint32)
    return system(seed)
