"""How answers travel: batches of replies, and the transports that bring them."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from .._support.types import Integers

# No id that is longer is kept in memory and in a state file.
_LONGEST_ID = 200
# The reports about one question: a bit.
BITS = 2


class Batch(NamedTuple):
    """The replies of one batch that count, and how many do not.

    Attributes:
        reports: The answers in the order of their arrival: bits, or integers that tell the
            question of a stage, too.
        ids: The id of each answer, None where it has none.
        dropped: Number of replies that are no answer, or come after everybody has answered.
        duplicates: Number of replies whose id came before.
    """

    reports: list[int]
    ids: list[str | None]
    dropped: int
    duplicates: int


def sort_batch(batch: Any, room: int, known: set[str], reports: int = BITS) -> Batch:
    """Sorts a batch of replies; whatever it holds, no error is raised for it.

    Args:
        batch: An array or a sequence of replies, a dict from ids to bits, or a single reply. A
            reply is a report, or a pair of an id, which is a text, and a report.
        room: Number of agents who have not answered yet.
        known: Ids that came before, which is not changed.
        reports: Number of reports that there can be: integers from 0, two for one question.

    Returns:
        The sorted batch.
    """
    values = _as_integers(batch)
    if values is not None:
        return _sort_array(values, room, reports)
    sorted_batch, fresh = Batch([], [], 0, 0), set[str]()
    dropped = duplicates = 0
    for reply in _replies(batch):
        answer = _read(reply, reports)
        if answer is None:
            dropped += 1
        elif answer[0] in known or answer[0] in fresh:
            duplicates += 1
        elif len(sorted_batch.reports) == room:
            dropped += 1
        else:
            sorted_batch.ids.append(answer[0])
            sorted_batch.reports.append(answer[1])
            if answer[0] is not None:
                fresh.add(answer[0])
    return sorted_batch._replace(dropped=dropped, duplicates=duplicates)


def _as_integers(batch: Any) -> np.ndarray[Any, Any] | None:
    """The batch as a vector of integers, if it is one or a plain list of them."""
    if type(batch) in (list, tuple) and set(map(type, batch)) <= {int, bool}:
        batch = np.array(batch)
    is_vector = isinstance(batch, np.ndarray) and batch.ndim == 1 and batch.dtype.kind in "bui"
    return batch if is_vector else None


def _sort_array(values: np.ndarray[Any, Any], room: int, reports: int) -> Batch:
    """Sort integers without ids, without a step of Python for each."""
    counted = values[(values >= 0) & (values < reports)][:room].astype(np.int64).tolist()
    return Batch(counted, [None] * len(counted), len(values) - len(counted), 0)


def _replies(batch: Any) -> Iterable[Any]:
    """The replies of a batch; what is no collection is a single reply."""
    if isinstance(batch, Mapping):
        return batch.items()
    if batch is None:
        return ()
    return (batch,) if _is_single(batch) or _is_pair(batch) else iter(batch)


def is_batch(value: Any) -> bool:
    """Whether this is one batch or a single reply, and not an iterable of batches."""
    return _is_single(value) or hasattr(value, "__len__")


def _is_single(value: Any) -> bool:
    is_text = isinstance(value, str | bytes | bytearray)
    return is_text or getattr(value, "shape", None) == () or not isinstance(value, Iterable)


def _is_pair(reply: Any) -> bool:
    return type(reply) in (tuple, list) and len(reply) == 2 and isinstance(reply[0], str)


def _read(reply: Any, reports: int) -> tuple[str | None, int] | None:
    """The id and the report of a reply, or None if it is no answer."""
    key, value = reply if _is_pair(reply) else (None, reply)
    is_integer = isinstance(value, bool | int | np.bool_ | np.integer)
    if not is_integer or not 0 <= value < reports or (key is not None and len(key) > _LONGEST_ID):
        return None
    return key, int(value)


class Replies:
    """The replies to one question so far.

    Attributes:
        count: Number of agents asked.
        reports: Number of reports that there can be.
        dropped: Number of replies that were no answer.
        duplicates: Number of replies whose id came before.
    """

    def __init__(self, count: int, reports: int = BITS):
        self.count, self.reports = count, reports
        self.dropped = self.duplicates = 0
        self._reports: list[int] = []

    @property
    def room(self) -> int:
        """The number of agents who have not answered yet."""
        return self.count - len(self._reports)

    def add(self, batch: Batch) -> None:
        """Adds a sorted batch."""
        self._reports.extend(batch.reports)
        self.dropped += batch.dropped
        self.duplicates += batch.duplicates

    def answers(self) -> Integers:
        """The reports in the order of their arrival, int64 (m,) with m at most `count`."""
        return np.array(self._reports, np.int64)

    def __len__(self) -> int:
        return len(self._reports)


# Takes a batch of replies, and returns whether more are expected.
Take = Callable[[Any], bool]
# How often a thread that waits looks whether it is to stop.
_PATIENCE_SECONDS = 0.1


def receive(call: Callable[[], Any], deadline: float | None, take: Take) -> None:
    """Calls a transport, and passes each batch of replies to `take` as soon as it is there.

    What the call returns may be a batch, an iterable without a length that yields batches, an
    awaitable of either, or an asynchronous iterator of batches. It ends with the last batch, when
    `take` expects no more, or at the deadline.

    Args:
        call: The transport, bound to its question.
        deadline: Seconds after which no more batches are taken; None sets no limit. What waits
            asynchronously is cancelled then. A call that blocks is not interrupted: after the
            deadline no further batch of it is asked for.
        take: What takes a batch.

    Raises:
        Exception: What the transport raises.
    """
    end = None if deadline is None else time.monotonic() + deadline
    returned = call()
    if inspect.isawaitable(returned) or hasattr(returned, "__aiter__"):
        _run(_receive_later(returned, end, take))
    else:
        _receive_now(returned, end, take)


def _receive_now(returned: Any, end: float | None, take: Take) -> None:
    if is_batch(returned):
        take(returned)
        return
    batches = iter(returned)
    try:
        for batch in batches:
            if not take(batch) or (end is not None and time.monotonic() >= end):
                return
    finally:
        close = getattr(batches, "close", None)
        if close is not None:
            close()


async def _receive_later(returned: Any, end: float | None, take: Take) -> None:
    limit = None if end is None else end - time.monotonic()
    clock = asyncio.timeout(limit)
    try:
        async with clock:
            if inspect.isawaitable(returned):
                returned = await returned
            if hasattr(returned, "__aiter__"):
                await _receive_stream(returned, take)
            else:
                _receive_now(returned, end, take)
    except TimeoutError:
        # A timeout of the transport itself is an error of the transport.
        if not clock.expired():
            raise


async def _receive_stream(batches: Any, take: Take) -> None:
    stream = aiter(batches)
    try:
        async for batch in stream:
            if not take(batch):
                return
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


def _run(work: Awaitable[None]) -> None:
    """Runs a coroutine to its end, in an event loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(_await(work))
        return
    # A notebook runs a loop in this very thread, which cannot run a second one.
    _run_in_thread(work)


async def _await(work: Awaitable[None]) -> None:
    await work


def _run_in_thread(work: Awaitable[None]) -> None:
    started: Future[Callable[[], object]] = Future()
    outside = asyncio.current_task()
    before = outside.cancelling() if outside else 0

    async def run() -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        started.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        await work

    with ThreadPoolExecutor(1, "hdp_fast agents") as threads:
        done = threads.submit(asyncio.run, run())
        try:
            # Ctrl-C raises an error in this thread, or cancels the task that it cannot interrupt.
            while not done.done() and not (outside and outside.cancelling() > before):
                wait([done], _PATIENCE_SECONDS)
        finally:
            if not done.done():
                started.result()()
        done.result()
