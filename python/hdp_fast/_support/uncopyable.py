"""Objects of which there is one: a copy could ask again what may be asked once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, NoReturn, Self

from ..exceptions import ParameterError


def check_process(process: int, name: str, rule: str) -> None:
    """Refuse to go on in a forked child, which holds a copy of all that its parent had made.

    process: the number of the one where the object was made; name: of the object; rule: why it
    serves that one alone, and what to do instead.

    Raises: ParameterError.
    """
    if os.getpid() != process:
        raise ParameterError(f"{name} belongs to process {process}, but {rule}")


class Turnstile:
    """Lets one thread in at a time, and refuses that thread a second time.

    It may come again in a signal handler, which must not wait for what it has interrupted.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        # One for each process: who is inside is a thread that a forked child does not have.
        self._gates: dict[int, _Gate] = {}

    def _gate(self) -> _Gate:
        process = os.getpid()
        return self._gates.get(process) or self._gates.setdefault(process, _Gate())

    def acquire(self) -> None:
        """Wait until nobody else is inside."""
        self._gate().lock.acquire()

    def release(self) -> None:
        """End what acquire began."""
        self._gate().lock.release()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keep every other thread out of the block.

        Raises: ParameterError in a signal handler that has interrupted this very thread inside.
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
    """A copy is the very same object, pickling raises, and a forked child cannot use it.

    Attributes:
        _copied: what a copy could do.
        _instead: what a forked child does instead.
    """

    _copied: ClassVar[str]
    _instead: ClassVar[str]

    def __init__(self) -> None:
        self._turnstile, self._process = Turnstile(type(self).__name__), os.getpid()

    @contextmanager
    def _hold(self) -> Iterator[None]:
        """Let in one thread at a time of the process that made it: something is used up inside.

        Raises: ParameterError in a forked child, and in a signal handler that has interrupted this
            very thread inside. The process is asked before the lock, which a thread that the child
            does not have may hold for ever.
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
