"""Keys and generators of reproducible test streams."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from .notes import warn
from .validate import is_bool, refuse

_warned = False
_rehearsing = ContextVar("rehearsing", default=False)


def make_key(random_state: object, *, is_public: bool = False) -> bytes | None:
    """The 32 bytes that determine every coin of one call of the compiled module.

    They come from an int or from a numpy Generator. A Generator is advanced, so that two calls with
    it differ. None stays None, for which the compiled module takes a key from the operating system.

    is_public: whether the coins protect no one, so that a seed needs no warning.

    Raises:
        ParameterError: random_state is of another type, or a negative int.
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        key = random_state.bytes(32)
    else:
        key = hashlib.sha256(f"hdp_fast {_seed(random_state):x}".encode()).digest()
    if not is_public:
        _warn_once()
    return key


def make_generator(random_state: object) -> np.random.Generator:
    """A Generator of its own for a test stream; for None one that the operating system seeds.

    Raises the errors of `make_key`.
    """
    key = make_key(random_state)
    return np.random.default_rng(None if key is None else np.frombuffer(key, np.uint32))


def make_stream(random_state: object) -> np.random.Generator | None:
    """A Generator that replaces random_state where one call makes several draws; None stays None.

    Passing the same int to each draw would toss the same coins again and make the outcomes
    dependent.

    Raises the errors of `make_key`.
    """
    if random_state is None or isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(_seed(random_state))


def make_public_generator(random_state: object) -> np.random.Generator:
    """A Generator for public random bits; for None one that the operating system seeds.

    Raises the errors of `make_key`.
    """
    return make_stream(random_state) or np.random.default_rng()


def check_random_state(random_state: object, name: str = "random_state") -> None:
    """Refuses what `make_key` would refuse, without drawing anything.

    name: what the argument is called where it comes from.

    Raises the errors of `make_key`.
    """
    if random_state is not None and not isinstance(random_state, np.random.Generator):
        _seed(random_state, name)


def _seed(random_state: object, name: str = "random_state") -> int:
    rule = "it must be None, an int of at least 0 or a numpy.random.Generator"
    try:
        seed = -1 if is_bool(random_state) else operator.index(random_state)  # type: ignore[arg-type]
    except TypeError:
        refuse(name, random_state, rule)
    if seed < 0:
        refuse(name, random_state, rule)
    return seed


@contextmanager
def rehearse() -> Iterator[None]:
    """Coins that are seeded inside protect no one, for nothing private is touched: no warning."""
    token = _rehearsing.set(True)
    try:
        yield
    finally:
        _rehearsing.reset(token)


def _warn_once() -> None:
    global _warned
    if not _warned and not _rehearsing.get():
        _warned = True
        text = (
            "random_state makes the random bits reproducible, as test_seed of an estimator does: "
            "whoever knows it can undo all privacy"
        )
        warn(text, UserWarning)
