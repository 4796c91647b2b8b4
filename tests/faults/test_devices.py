"""Agents behind real sockets: a crowd of devices, many silent, some sending twice or garbage."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from functools import lru_cache

import numpy as np
import pytest
from harness import figure, size
from processes import exit_code, forked, forking

from hdp_fast.learners import Stumps
from hdp_fast.local import Query, RemoteAgents, Stage, draw_reports, learn_by_votes
from hdp_fast.transfer import survey

pytestmark = forking

DEVICES, SERVERS = size(800, 10_000), size(2, 8)
# Seconds that the first question waits for the devices that hang.
DEADLINE = size(4.0, 20.0)
EPSILON = 4.0
# A device behaves by the last digit of its number.
SILENT, TWICE, NOISY = {0, 1, 2}, {3}, {4}
HANGING = (0, 10, 20)
# Connections that are open at once.
WIDTH = 100
RECORDS = np.random.default_rng(0).integers(0, 2, (DEVICES, 4), dtype=np.uint8)
LABELS = RECORDS[:, 1]


# Devices ------------------------------------------------------------------------------------------


@lru_cache
def stage_of(text):
    """The stage that a question is; None for a single one."""
    return Stage.from_json(text) if json.loads(text)["kind"] == "stage" else None


def report(text, device):
    """What the device sends; each one draws its own coins."""
    stage, record = stage_of(text), (RECORDS[[device]], LABELS[[device]])
    if stage is None:
        return draw_reports(text, *record, epsilon=EPSILON)[0]
    return stage.draw(*record, epsilon=EPSILON, numbers=[device + 1])[0]


class Server:
    """Serves devices over connections, one for each question to a device."""

    def __init__(self):
        self.asked = {}
        self.stopped = asyncio.Event()

    async def serve(self, reader, writer):
        line = json.loads(await reader.readline())
        if line is None:
            writer.write(json.dumps(self.asked).encode())
            self.stopped.set()
        else:
            await self.answer(*line, writer)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
            writer.close()

    async def answer(self, device, text, writer):
        self.asked[device] = self.asked.get(device, 0) + 1
        if device in HANGING:
            await self.stopped.wait()
        kind = device % 10
        if kind in SILENT:
            return
        reply = json.dumps([os.urandom(16).hex(), int(report(text, device))]).encode() + b"\n"
        writer.write(b"\xff{no report\n" * (kind in NOISY) + reply * (1 + (kind in TWICE)))

    async def run(self, listening):
        server = await asyncio.start_server(self.serve, sock=listening, backlog=1000)
        async with server:
            await self.stopped.wait()
            await asyncio.sleep(0.1)


def start_server():
    """The port and the process of a new server."""
    listening = socket.create_server(("127.0.0.1", 0))

    def child():
        async def main():
            await Server().run(listening)

        asyncio.run(main())

    process = forked(child)
    port = listening.getsockname()[1]
    listening.close()
    return port, process


@pytest.fixture
def ports():
    servers = [start_server() for _ in range(SERVERS)]
    yield [port for port, _ in servers]
    for _, process in servers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        exit_code(process)


def stop(port):
    """Ends a server; returns how often it asked each of its devices."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"null\n")
        parts = iter(lambda: connection.recv(1 << 16), b"")
        return json.loads(b"".join(parts))


# The way to them ----------------------------------------------------------------------------------


class Network:
    """A function for RemoteAgents that asks the next devices, a hundred at once."""

    def __init__(self, ports):
        self.ports, self.next = ports, 0

    async def ask(self, text, count):
        """Yields replies as soon as some have come."""
        devices = range(self.next, self.next + count)
        self.next += count
        replies, gate = asyncio.Queue(), asyncio.Semaphore(WIDTH)

        async def fetch(device):
            async with gate:
                for line in await self.send(device, text):
                    replies.put_nowait(line)

        async def fetch_all():
            await asyncio.gather(*map(fetch, devices))
            replies.put_nowait(None)

        fetching = asyncio.create_task(fetch_all())
        try:
            open_ = True
            while open_:
                batch = [await replies.get()]
                while not replies.empty():
                    batch.append(replies.get_nowait())
                open_ = batch[-1] is not None
                yield [read(line) for line in batch if line is not None]
        finally:
            fetching.cancel()
            await asyncio.gather(fetching, return_exceptions=True)

    async def send(self, device, text):
        """The lines that a device sends back before the connection ends."""
        port = self.ports[device % len(self.ports)]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(json.dumps([device, text]).encode() + b"\n")
            return (await reader.read()).splitlines()
        finally:
            writer.close()


def read(line):
    try:
        return json.loads(line)
    except ValueError:
        return None


@pytest.mark.thorough(beside="test_a_survey_that_is_killed_goes_on")
def test_a_crowd_of_devices_over_sockets(ports, memory):
    network = Network(ports)
    agents = RemoteAgents(
        network.ask,
        epsilon=EPSILON,
        count=DEVICES,
        response_rate=0.7,
        deadline=DEADLINE,
        state=memory / "state",
    )
    start = time.monotonic()
    result = learn_by_votes(Stumps(4), agents)
    took = time.monotonic() - start
    assert took >= DEADLINE
    assert result.words == "x1"
    assert result.estimate.high < 0.5

    counts, kinds = agents.counts(), np.arange(DEVICES) % 10
    asked = {}
    for port in ports:
        asked.update(stop(port))
    assert len(asked) == DEVICES
    assert set(asked.values()) == {1}, "a device was asked twice"
    assert counts == {
        "asked": DEVICES,
        "answered": int(np.isin(kinds, [3, 4, 5, 6, 7, 8, 9]).sum()),
        "dropped": int((kinds == 4).sum()),
        "duplicates": int((kinds == 3).sum()),
    }
    # A new process knows all of it, and has no one left to ask.
    again = RemoteAgents(pytest.fail, epsilon=EPSILON, count=DEVICES, state=memory / "state")
    assert (again.remaining, again.counts()) == (0, counts)
    outcome = f"{counts['answered']:,} answered, {took:.1f} s, {SERVERS} processes"
    figure("silent, repeating and noisy devices over sockets", DEVICES, outcome)


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("end", ["deadline", "interrupt", "kill"])
def test_an_end_in_the_middle_of_the_crowd(ports, memory, end):
    """What came is kept; who was asked is not asked again by the process that goes on."""
    count = size(300, 2000)
    options = {"epsilon": EPSILON, "count": DEVICES, "response_rate": 0.5}
    options["state"] = memory / "state"
    learned = type("Learned", (), {"hypothesis": Stumps(4).hypothesis(0)})

    def child():
        deadline = 1.0 if end == "deadline" else None
        agents = RemoteAgents(Network(ports).ask, deadline=deadline, **options)
        with contextlib.nullcontext() if end == "deadline" else pytest.raises(KeyboardInterrupt):
            agents.test(learned, count)

    process = forked(child)
    if end != "deadline":
        wait_for_answers(options, learned)
        begun = time.monotonic()
        os.kill(process, signal.SIGINT if end == "interrupt" else signal.SIGKILL)
    assert exit_code(process) == (-signal.SIGKILL if end == "kill" else 0)
    if end == "interrupt":
        assert time.monotonic() - begun < 1.5

    agents = RemoteAgents(pytest.fail, **options)
    assert agents.remaining == DEVICES - count
    answers = agents.test(learned, count)
    assert 0 < len(answers) == agents.counts()["answered"] <= 0.7 * count
    asked = [times for port in ports for times in stop(port).values()]
    assert set(asked) == {1}


@pytest.mark.filterwarnings("ignore:.*have answered")
def test_a_survey_that_is_killed_goes_on(ports, memory):
    """A new process takes up what was answered, and asks no one again."""
    part = size(100, 600)
    questions = {f"x{i}": Query.between(i, low=1) for i in range(3)}
    options = {"epsilon": EPSILON, "count": DEVICES, "response_rate": 0.7, "deadline": 1.5}
    options["state"] = memory / "state"

    def child():
        survey(questions, RemoteAgents(Network(ports).ask, **options), count=3 * part)

    process = forked(child)
    wait_until(lambda: count(options)["answered"] >= part)
    os.kill(process, signal.SIGKILL)
    assert exit_code(process) == -signal.SIGKILL
    agents = RemoteAgents(Network(ports).ask, **options)
    rows = survey(questions, agents, count=3 * part, beta=1e-6).rows
    assert agents.remaining == DEVICES - 3 * part
    assert sum(row.answered for row in rows) >= part
    for i, row in enumerate(rows):
        assert row.low_all < RECORDS[:, i].mean() < row.high_all
    asked = [times for port in ports for times in stop(port).values()]
    assert set(asked) == {1}
    figure("a survey that was killed", sum(row.answered for row in rows), f"{len(asked):,} asked")


def count(options):
    """Who was asked and who has answered, as the state tells it."""
    if not options["state"].exists():
        return {"answered": 0}
    return RemoteAgents(pytest.fail, **options).counts()


def wait_until(happened):
    for _ in range(600):
        if happened():
            return
        time.sleep(0.02)
    pytest.fail("nothing happened for 12 seconds")


def wait_for_answers(options, learned):
    for _ in range(600):
        is_there = options["state"].exists()
        if is_there and RemoteAgents(pytest.fail, **options).counts()["answered"]:
            return
        time.sleep(0.02)
    pytest.fail("no one answered for 12 seconds")
