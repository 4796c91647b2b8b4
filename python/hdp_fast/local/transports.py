"""Calls the function that reaches people, however its answers arrive: at once, in batches, late."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from .replies import is_batch

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
