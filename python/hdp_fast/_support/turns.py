"""The turn of one member: alone in its process, silent, and without a trace in what it shares.

Members in one process share its random generators, warnings, logs and streams, and settings that
any code may change. Each turn begins with the same state of these, whatever an earlier turn did,
and ends by restoring the state from before it. What a learner keeps in a module, a class or a
closure of its own is not restored: only a process of its own for each member undoes that.
"""

from __future__ import annotations

import contextlib
import contextvars
import decimal
import functools
import gc
import importlib
import io
import locale
import logging
import operator
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import mtrand
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from .notes import drop_notes

# How each of some settings is read and written.
Settings = tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn depends on beside the member.

    Attributes:
        seed: Seed of the global generators, and of a learner that takes one.
        home: Number of the process that waits for the result.
    """

    seed: int
    home: int

    def take(self, work: Callable[[], Any], what: str) -> tuple[Any, str]:
        """Returns the result of the work, or None, and a text on what failed, which is private.

        The argument `what` is the kind of work, which the text names.
        """
        with QUIET, drop_notes(), _alone(), _settings(), _generators(self.seed):
            try:
                # A copy of the context variables: what the work sets in them ends with it.
                return contextvars.copy_context().run(work), ""
            except BaseException as error:
                # SystemExit and the like would disclose as much as any other exception.
                if self._is_interrupt(error):
                    raise
                return None, _describe_error(what, error)

    def _is_interrupt(self, error: BaseException) -> bool:
        """Whether the error can be Ctrl-C, which Python raises in the main thread alone."""
        main = threading.current_thread() is threading.main_thread()
        return isinstance(error, KeyboardInterrupt) and main and os.getpid() == self.home


def _describe_error(what: str, error: BaseException) -> str:
    try:
        return f"{what}: {error!r}"
    except BaseException:
        return f"{what}: an error that has no words"


class _Together:
    """A context that threads share: the first thread enters it, and the last one leaves it.

    Attributes:
        lock: Held while the context is entered or left, and by a thread that forks, so that no
            child begins with a half-entered context.
    """

    def __init__(self, enter: Callable[[], AbstractContextManager[Any]]):
        self._enter, self._inside = enter, 0
        self._own = threading.local()
        self.lock = threading.RLock()
        self._restore: AbstractContextManager[Any] = contextlib.nullcontext()

    def __enter__(self) -> None:
        with self.lock:
            if not self._inside:
                self._restore = self._enter()
                self._restore.__enter__()
            self._inside += 1
            self._own.inside = self._inside_here() + 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self._own.inside -= 1
            self._leave(self._inside - 1)

    def stay_alone(self) -> None:
        """Counts anew in a forked child, where only the thread that forked is left."""
        self.lock = threading.RLock()
        if self._inside:
            self._leave(self._inside_here())

    def _inside_here(self) -> int:
        return getattr(self._own, "inside", 0)

    def _leave(self, inside: int) -> None:
        self._inside = inside
        if not inside:
            self._restore.__exit__(None, None, None)


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _silence() -> ExitStack:
    stack = ExitStack()
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    stack.enter_context(contextlib.redirect_stdout(_Nowhere()))
    stack.enter_context(contextlib.redirect_stderr(_Nowhere()))
    stack.callback(logging.disable, logging.root.manager.disable)
    logging.disable(logging.CRITICAL)
    stack.callback(_remember_gauss())
    # These hooks print exceptions that no one can catch, in finalizers and threads.
    for owner, name in ((sys, "unraisablehook"), (threading, "excepthook")):
        stack.callback(setattr, owner, name, getattr(owner, name))
        setattr(owner, name, _ignore_error)
    return stack


def _ignore_error(error: object) -> None:
    """Replaces the hooks that print an error which no one catches."""


def _one_thread() -> AbstractContextManager[Any]:
    try:
        look = importlib.import_module("threadpoolctl").ThreadpoolController
    except ImportError:
        return contextlib.nullcontext()
    limited: AbstractContextManager[Any] = _look_once(look, len(sys.modules)).limit(limits=1)
    return limited


@functools.lru_cache(maxsize=1)
def _look_once(look: Callable[[], Any], modules: int) -> Any:
    """The thread pools of all libraries: to look for them takes longer than to train a member.

    modules: how many are loaded, since libraries come with them.
    """
    return look()


# Takes Python's warnings, logs and streams away while anybody is inside, in any thread.
QUIET = _Together(_silence)
# Keeps linear algebra in one thread, if threadpoolctl, which scikit-learn needs, is installed:
# members are small, and threads that wait for each other take ten times as long.
ONE_THREAD = _Together(_one_thread)


# A turn holds it. It is re-entrant, since a member may have members of its own.
_lock = threading.RLock()
_depth = threading.local()


def is_inside() -> bool:
    """Whether this thread is in a turn, so that no other thread could begin one on its behalf."""
    return getattr(_depth, "turns", 0) > 0


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    with _lock:
        _depth.turns = getattr(_depth, "turns", 0) + 1
        try:
            yield
        finally:
            _depth.turns -= 1


# Functions that restore what the turns under way have changed in the process, the latest last.
_undo: list[Callable[[], None]] = []


@contextlib.contextmanager
def _undo_at_end(undo: Callable[[], None]) -> Iterator[None]:
    """Calls `undo` at the end; a child that another thread forks before that calls it as well."""
    _undo.append(undo)
    try:
        yield
    finally:
        try:
            undo()
        finally:
            _undo.pop()


def _before_fork() -> None:
    for together in _TOGETHER:
        together.lock.acquire()


def _after_fork() -> None:
    for together in _TOGETHER:
        together.lock.release()


def _in_child() -> None:
    """Ends, in a forked child, the turns of threads that the fork has not copied."""
    global _lock
    _lock = threading.RLock()
    if _undo and not is_inside():
        while _undo:
            _undo.pop()()
        # Python seeds it in every child, too.
        random.seed()
    for together in _TOGETHER:
        together.stay_alone()


_TOGETHER = ONE_THREAD, QUIET
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """Restores, at the end, the settings of the process and of the thread."""
    of_process, of_thread = _remember(_OF_PROCESS), _remember(_OF_THREAD)
    with warnings.catch_warnings():
        try:
            with _undo_at_end(of_process):
                yield
        finally:
            of_thread()


def _remember(settings: Settings) -> Callable[[], None]:
    """Returns a function that restores the settings as they are now."""
    before = [read() for read, _ in settings]

    def restore() -> None:
        for (read, write), was in zip(settings, before, strict=True):
            # A member that broke a setting beyond repair must not be shown by an error.
            with contextlib.suppress(Exception):
                if not _is_unchanged(read(), was):
                    write(was)

    return restore


def _is_unchanged(now: Any, was: Any) -> bool:
    """Whether settings are what they were, without asking objects, which may say anything."""
    kind = type(was)
    if now is was or type(now) is not kind:
        return now is was
    if kind is dict:
        if not _are_same(list(now), list(was)):
            return now.keys() == was.keys() and all(
                _is_unchanged(now[key], was[key]) for key in was
            )
        now, was = list(now.values()), list(was.values())
    if kind in (dict, list, tuple):
        # Nearly every turn leaves the very objects where they were.
        return _are_same(now, was) or (len(now) == len(was) and all(map(_is_unchanged, now, was)))
    return kind in (int, float, str, bytes) and bool(now == was)


def _are_same(now: Sequence[Any], was: Sequence[Any]) -> bool:
    """Whether both hold the same objects in the same order."""
    return len(now) == len(was) and all(map(operator.is_, now, was))


# In bytes where there are any: nothing is decoded.
_environment: Any = getattr(os, "environb", os.environ)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _enter_folder(folder: str | None) -> None:
    if folder is not None:
        with contextlib.suppress(OSError):
            os.chdir(folder)


def _variables() -> dict[Any, Any]:
    # Its own dictionary where it has one: each entry is checked on the way out else.
    return dict(getattr(_environment, "_data", _environment))


def _set_environment(variables: dict[Any, Any]) -> None:
    _environment.clear()
    _environment.update(variables)


def _decimals() -> tuple[Any, ...]:
    context = decimal.getcontext()
    return context, *(getattr(context, name) for name in _DECIMALS), dict(context.traps)


def _set_decimals(was: tuple[Any, ...]) -> None:
    context, *kept, traps = was
    for name, value in zip(_DECIMALS, kept, strict=True):
        setattr(context, name, value)
    context.traps.update(traps)
    decimal.setcontext(context)


_DECIMALS = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_LOGGER = ("level", "propagate", "disabled", "handlers", "filters")


def _loggers() -> dict[str | None, tuple[Any, ...]]:
    """The settings of the root logger and of every one that has others than a new one."""
    settings: dict[str | None, tuple[Any, ...]] = {
        name: values
        for name, logger in dict(logging.root.manager.loggerDict).items()
        if isinstance(logger, logging.Logger) and (values := _logger(logger)) != _NEW
    }
    return settings | {None: _logger(logging.root), "": (logging.root.manager.disable,)}


def _logger(logger: logging.Logger) -> tuple[Any, ...]:
    level, propagate, disabled = logger.level, logger.propagate, logger.disabled
    return level, propagate, disabled, list(logger.handlers), list(logger.filters)


_NEW = _logger(logging.Logger("new"))


def _set_loggers(was: dict[str | None, tuple[Any, ...]]) -> None:
    for name in {*_loggers(), *was} - {""}:
        logger = logging.root if name is None else logging.getLogger(name)
        for attribute, value in zip(_LOGGER, was.get(name, _NEW), strict=True):
            setattr(logger, attribute, list(value) if isinstance(value, list) else value)
        # Setting a level clears the logger's cache of levels.
        logger.setLevel(logger.level)
    logging.disable(was[""][0])


def _streams() -> tuple[Any, ...]:
    return sys.stdin, sys.stdout, sys.stderr


def _set_streams(was: tuple[Any, ...]) -> None:
    sys.stdin, sys.stdout, sys.stderr = was


def _collector() -> tuple[Any, ...]:
    return gc.isenabled(), gc.get_threshold(), gc.get_debug()


def _set_collector(was: tuple[Any, ...]) -> None:
    enabled, thresholds, debug = was
    (gc.enable if enabled else gc.disable)()
    gc.set_threshold(*thresholds)
    gc.set_debug(debug)


_SIGNALS = tuple(map(int, signal.valid_signals()))
# What signal.getsignal wraps in enumerations, 64 times a turn.
_get_handler: Callable[[int], Any] = importlib.import_module("_signal").getsignal


def _handlers() -> tuple[Any, ...]:
    """What happens at each signal; None stands for a handler that Python has not set."""
    return tuple(map(_get_handler, _SIGNALS))


def _set_handlers(was: tuple[Any, ...]) -> None:
    """Python lets the main thread alone set them, so that no other thread has changed any."""
    if threading.current_thread() is threading.main_thread():
        for number, handler in zip(_SIGNALS, was, strict=True):
            if handler is not None and _get_handler(number) is not handler:
                signal.signal(number, handler)


_OF_PROCESS: Settings = (
    # First, since restoring the others takes some recursion.
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.get_int_max_str_digits, sys.set_int_max_str_digits),
    (_streams, _set_streams),
    (_collector, _set_collector),
    (_handlers, _set_handlers),
    (_loggers, _set_loggers),
    (_variables, _set_environment),
    (_folder, _enter_folder),
    (lambda: locale.setlocale(locale.LC_ALL), lambda was: locale.setlocale(locale.LC_ALL, was)),
)
_OF_THREAD: Settings = (
    (np.geterr, lambda was: np.seterr(**was)),
    (np.geterrcall, np.seterrcall),
    (np.get_printoptions, lambda was: np.set_printoptions(**was)),
    (_decimals, _set_decimals),
)


class _Unseeded(ISeedSequence):
    """Stands for the seed of a generator that is seeded at once: to mix one takes longer."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        return np.zeros(n_words, dtype)


@contextlib.contextmanager
def _generators(seed: int) -> Iterator[None]:
    """Seeds the generators of the process for one member, and restores them at the end."""
    torch = sys.modules.get("torch")
    states = random.getstate(), torch and torch.get_rng_state()
    kept = mtrand.get_bit_generator()

    def restore() -> None:
        random.setstate(states[0])
        mtrand.set_bit_generator(kept)
        if torch:
            torch.set_rng_state(states[1])
        elif "torch" in sys.modules:
            # torch was loaded inside, so that no one has drawn from it before.
            sys.modules["torch"].seed()

    with _undo_at_end(restore):
        random.seed(seed)
        # A new one takes the place of the generator behind numpy's global functions: a fork may
        # leave one locked by a thread that draws from it.
        unseeded: Any = _Unseeded()
        mtrand.set_bit_generator(np.random.MT19937(unseeded))
        np.random.seed(seed)  # noqa: NPY002
        if torch:
            torch.manual_seed(seed)
        yield


def _remember_gauss() -> Callable[[], None]:
    """Returns a function that restores the second of a pair of normals in numpy's generator."""
    before = np.random.get_state(legacy=False)  # noqa: NPY002

    def restore() -> None:
        now = np.random.get_state(legacy=False)  # noqa: NPY002
        pair = {name: before[name] for name in ("has_gauss", "gauss")}
        np.random.set_state({**now, **pair})  # noqa: NPY002

    return restore
