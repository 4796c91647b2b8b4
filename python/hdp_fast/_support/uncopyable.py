"""Objects that exist once: a copy could do again what may be done only once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, NoReturn, Self

from ..exceptions import ParameterError


def check_process(process: int, name: str, rule: str) -> None:
    """Refuses to go on in a forked child, which holds a copy of all that its parent had made.

    Args:
        process: Number of the process in which the object was made.
        name: Name of the object.
        rule: Why it serves that process alone, and what to do instead.

    Raises:
        ParameterError: This is another process.
    """
    if os.getpid() != process:
        raise ParameterError(f"{name} belongs to process {process}, but {rule}")


class Turnstile:
    """Lets one thread in at a time, and refuses that thread a second time.

    The thread may come again in a signal handler, which must not wait for the code that it
    interrupted.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # One for each process: who is inside is a thread that a forked child does not have.
        self._gates: dict[int, _Gate] = {}

    def _gate(self) -> _Gate:
        process = os.getpid()
        return self._gates.get(process) or self._gates.setdefault(process, _Gate())

    def acquire(self) -> None:
        """Waits until no one else is inside, and enters."""
        self._gate().lock.acquire()

    def release(self) -> None:
        """Leaves, after `acquire`."""
        self._gate().lock.release()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps every other thread out of the block.

        Raises:
            ParameterError: A signal handler has interrupted this very thread inside.
        """
        gate = self._gate()
        with gate.lock:
            if gate.inside:
                rule = "it is in use by this very thread, whose call a signal handler interrupts"
                raise ParameterError(f"{self._name} can't be used here, since {rule}")
            gate.inside = True
            try:
                yield
            finally:
                gate.inside = False


class _Gate:
    """The lock of one process, and whether a thread is inside."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.RLock(), False


class Uncopyable:
    """An object whose copy is the object itself; pickling raises, and a forked child cannot use it.

    Attributes:
        _copied: What a copy could do, for errors.
        _instead: What to do in a forked child instead, for errors.
    """

    _copied: ClassVar[str]
    _instead: ClassVar[str]

    def __init__(self) -> None:
        self._turnstile, self._process = Turnstile(type(self).__name__), os.getpid()

    @contextmanager
    def _hold(self) -> Iterator[None]:
        """Lets in one thread at a time, and only in the process that made the object.

        Inside, something is used up that must not be used twice.

        The process is checked before the lock is taken, since a thread that the child does not have
        may hold that lock for ever.

        Raises:
            ParameterError: This is a forked child, or a signal handler that has interrupted this
                very thread inside.
        """
        rule = f"in a forked child it could {self._copied}: {self._instead}"
        check_process(self._process, type(self).__name__, rule)
        with self._turnstile.hold():
            yield

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{type(self).__name__} can't be pickled: a copy could {self._copied}")
