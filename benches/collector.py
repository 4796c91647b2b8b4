"""People who answer a study over HTTP: how many a second, how long each waits, and kill -9.

A study is made, served by `hdp-fast survey serve` in a process of its own, and asked by
local.RemoteAgents two questions in one stage. Each person has a record, a number and a token. The
lines are what their devices write, made before the clock starts. Clients with connections that stay
open send them: once at full speed, then with a server that is killed every few seconds and starts
again, while the clients send what was not confirmed once more. In the end every answer that was
confirmed must be there, none twice, and the estimates must hold the truth. Any fault fails the run.

Run `python benches/collector.py`: two minutes; `--people 4000 --clients 50 --every .7 --kills 2`
takes seconds. `--visits` lets each client fetch the question before it answers, as a page does.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from hdp_fast import collection, local
from hdp_fast._core import device_answer
from hdp_fast.local import Query

EPSILON, BETA = 1.0, 1e-6
# Shares of the people whose answers are yes, to either question.
TRUTHS = (0.3, 0.8)
_PATIENCE_SECONDS = 60.0
_STATUS = re.compile(rb"HTTP/1\.1 (\d\d\d)")
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--people", type=int, default=100_000)
    add("--clients", type=int, default=200, help="connections at once")
    add("--every", type=float, default=4.0, help="seconds between two kills")
    add("--kills", type=int, default=0, help="the least number of kills; fewer fail the run")
    add("--killed", action="store_true", help="the second run alone")
    add("--visits", action="store_true", help="fetch the question before each answer")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{processor()}, {os.cpu_count()} cores, Python {platform.python_version()}")
    people, clients = arguments.people, arguments.clients
    print(f"{people:,} people of a study, {clients} connections, loopback, synchronous=FULL")
    head = ("run", "answers", "seconds", "a second", "p50 ms", "p99 ms", "worst", "kills", "MB")
    print("".join(f"{name:>{24 if name == 'run' else 10}}" for name in head))
    faults = []
    runs = {"at full speed": None, "killed and started": arguments.every}
    for name, every in list(runs.items())[arguments.killed :]:
        run = play(people, clients, every, visits=arguments.visits)
        print(run.line(name), flush=True)
        faults += [f"{name}: {fault}" for fault in run.faults]
        if every is not None and run.kills < arguments.kills:
            faults.append(f"{name}: {run.kills} kills, but there should be {arguments.kills}")
    for fault in faults:
        print(f"FAULT {fault}")
    sys.exit(bool(faults))


@dataclass
class Run:
    """What came of a run.

    Attributes:
        answers: Number of answers that were confirmed.
        seconds: From the first one that was sent to the last one that was confirmed.
        waits: How long each client waited for its reply, in seconds.
        kills: How often the server was killed.
        memory: The most memory of a server, in bytes.
        faults: What must not be.
    """

    answers: int
    seconds: float
    waits: list[float]
    kills: int
    memory: int
    faults: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """The run as a line of the table."""
        p50, p99, worst = np.quantile(np.array(self.waits) * 1e3, [0.5, 0.99, 1.0])
        speed = self.answers / self.seconds
        texts = (f"{self.seconds:.1f}", f"{speed:,.0f}", f"{p50:.0f}", f"{p99:.0f}", f"{worst:.0f}")
        rest = (*texts, str(self.kills), f"{self.memory / 1e6:.0f}")
        return f"{name:>24}{self.answers:>10,}" + "".join(f"{text:>10}" for text in rest)


def play(people: int, clients: int, every: float | None, *, visits: bool) -> Run:
    """Ask all people of a new study, kill the server every so many seconds, and count."""
    with tempfile.TemporaryDirectory() as folder:
        study = collection.Study.create(
            Path(folder) / "study",
            asker="City of Example",
            epsilon=EPSILON,
            people=people,
            url="http://localhost",
        )
        pool, result = RemotePool(study), dict[str, Any]()
        asking = threading.Thread(target=lambda: result.update(answered=pool.ask()))
        asking.start()
        while not study.stages():
            time.sleep(0.05)
        truths = np.random.default_rng(5).random((people, 2)) < TRUTHS
        requests = [*make_requests(study, truths, visits=visits)]
        with serve(study.path, every) as server:
            crowd = Crowd(server, requests, clients)
            seconds = run_crowd(crowd)
            server.stop()
        asking.join(_PATIENCE_SECONDS)
        run = Run(len(crowd.confirmed), seconds, crowd.waits, server.kills, server.memory)
        run.faults += crowd.faults
        run.faults += check(study, crowd, truths, result.get("answered"))
        return run


class RemotePool:
    """RemoteAgents who are asked two questions at once through a study."""

    def __init__(self, study: collection.Study):
        server = collection.SurveyServer(study, deadline=600.0, poll=0.2)
        state = study.path / "agents.db"
        self._agents = local.RemoteAgents(
            server.ask, epsilon=EPSILON, count=study.people, collect=server.collect, state=state
        )

    def ask(self) -> list[Any]:
        """The answers to both questions."""
        half = self._agents.remaining // 2
        rest = self._agents.remaining - half
        queries = [(Query.value(place, 0, 1), count) for place, count in ((0, half), (1, rest))]
        answered: list[Any] = self._agents.ask_together(queries)
        return answered


def make_requests(
    study: collection.Study, truths: Any, *, visits: bool
) -> Iterator[tuple[str, list[bytes]]]:
    """For each person the id of the line, and the requests of the device, one after the other."""
    envelope = read_envelope(study)
    with (study.path / "invitations.csv").open() as table:
        links = [parse_qs(row["link"].partition("#")[2]) for row in csv.DictReader(table)]
    facts = {"signed": envelope, "key": study.public_key, "study": study.id, "epsilon": EPSILON}
    for number, (link, record) in enumerate(zip(links, truths.tolist(), strict=True), start=1):
        person = {
            **facts,
            "number": number,
            "record": {"features": list(map(float, record)), "label": 0.0},
        }
        line = json.loads(device_answer(json.dumps(person)))["line"]
        address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        head = f"Host: localhost\r\nAuthorization: Bearer {link['token'][0]}\r\n"
        head += f"X-Forwarded-For: {address}\r\n"
        fetch = f"GET /question HTTP/1.1\r\n{head}\r\n".encode()
        send = f"POST /answer HTTP/1.1\r\n{head}Content-Length: {len(line)}\r\n\r\n{line}".encode()
        yield json.loads(line)["id"], [fetch, send] if visits else [send]


def read_envelope(study: collection.Study) -> str:
    """What the server hands out."""
    with study.open_desk() as desk:
        return desk.read_envelope(study.stages()[0].number)


class Crowd:
    """Clients who send what they have until all of it is confirmed.

    Attributes:
        confirmed: The ids of the lines that were.
        waits: How long each reply took.
        faults: Replies that must not be.
    """

    def __init__(self, server: Server, requests: list[tuple[str, list[bytes]]], clients: int):
        self.server, self._requests, self._clients = server, requests, clients
        self.confirmed: set[str] = set()
        self.waits: list[float] = []
        self.faults: list[str] = []

    async def run(self) -> float:
        """The seconds until all was confirmed."""
        start, waiting = time.monotonic(), iter(self._requests)
        end = start + 10 * _PATIENCE_SECONDS
        async with asyncio.TaskGroup() as group:
            for _ in range(self._clients):
                group.create_task(self._send_all(waiting, end))
        return time.monotonic() - start

    async def _send_all(self, waiting: Iterator[tuple[str, list[bytes]]], end: float) -> None:
        connection: Connection | None = None
        loop = asyncio.get_running_loop()
        for key, requests in waiting:
            steps = 0
            while steps < len(requests):
                if time.monotonic() > end:
                    self.faults.append("a client was not heard to the end")
                    return
                try:
                    if connection is None:
                        way = loop.create_connection(Connection, "127.0.0.1", self.server.port)
                        _, connection = await way
                    start = time.monotonic()
                    status = await connection.ask(requests[steps])
                except OSError:
                    # The server was killed: the same line once more.
                    connection = None
                    await asyncio.sleep(0.1)
                    continue
                self.waits.append(time.monotonic() - start)
                if status != 200:
                    self.faults.append(f"status {status}")
                    return
                steps += 1
            self.confirmed.add(key)
        if connection is not None:
            connection.close()


class Connection(asyncio.Protocol):
    """A connection that stays open, with one request at a time."""

    def __init__(self) -> None:
        self._got, self._reply = b"", None

    def connection_made(self, transport: Any) -> None:
        """Keep what writes."""
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[int]:
        """The status of the reply, or an OSError where the connection ends before it."""
        self._reply = asyncio.get_running_loop().create_future()
        if self._transport.is_closing():
            self._reply.set_exception(ConnectionResetError())
        else:
            self._transport.write(request)
        return self._reply

    def data_received(self, data: bytes) -> None:
        """Take a reply that is whole."""
        self._got += data
        end = self._got.find(b"\r\n\r\n") + 4
        if end > 3:
            size, status = _LENGTH.search(self._got, 0, end), _STATUS.match(self._got)
            if len(self._got) >= end + int(size[1]):
                self._got = b""
                if not self._reply.done():
                    self._reply.set_result(int(status[1]))

    def connection_lost(self, error: Exception | None) -> None:
        """Tell who waits."""
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(ConnectionResetError())

    def close(self) -> None:
        """Hang up."""
        self._transport.close()


def run_crowd(crowd: Crowd) -> float:
    """The seconds that a crowd takes, with the loop that servers use, too."""
    import uvloop

    return uvloop.run(crowd.run())


class Server:
    """A server in a process of its own, started again whenever it is killed.

    Attributes:
        port: Where it listens, always the same.
        kills: How often it was killed.
        memory: The most memory that one of them had, in bytes.
    """

    def __init__(self, path: Path, every: float | None):
        self._path, self._every = path, every
        self.port, self.kills, self.memory = 0, 0, 0
        self._end = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "hdp_fast", "survey", "serve", str(self._path)]
        command += ["--port", str(self.port)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = process.stderr.readline()
        port = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        if port is None:
            raise RuntimeError(f"the server does not start: {line}{process.stderr.read()}")
        self.port = int(port[1])
        return process

    def _watch(self) -> None:
        while not self._end.wait(self._every or 0.1):
            self._measure()
            if self._every is not None:
                self._process.kill()
                self._process.wait()
                self._process.stderr.close()
                self.kills += 1
                self._process = self._start()
        self._measure()

    def _measure(self) -> None:
        text = Path(f"/proc/{self._process.pid}/status")
        peak = re.search(r"VmHWM:\s+(\d+) kB", text.read_text() if text.exists() else "")
        self.memory = max(self.memory, int(peak[1]) << 10 if peak else 0)

    def stop(self) -> None:
        """End it as an administrator does."""
        self._end.set()
        self._thread.join()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_PATIENCE_SECONDS)
        self._process.stderr.close()


@contextmanager
def serve(path: Path, every: float | None) -> Iterator[Server]:
    """A server for the block."""
    server = Server(path, every)
    try:
        yield server
    except BaseException:
        server.stop()
        raise


def check(
    study: collection.Study, crowd: Crowd, truths: Any, answered: list[Any] | None
) -> Iterator[str]:
    """What must not be: answers that are lost, or come twice, and estimates without the truth."""
    stored = [key for key, _ in study.answers(study.stages()[0].number)]
    if len(set(stored)) != len(stored):
        yield "an answer is there twice"
    if lost := crowd.confirmed - set(stored):
        yield f"{len(lost):,} answers were confirmed and are lost"
    if len(stored) != study.counts()["answered"]:
        yield "there are not as many answers as burned tokens"
    if len(crowd.confirmed) < study.people:
        yield f"{study.people - len(crowd.confirmed):,} people were not heard"
    if answered is None:
        yield "the agents were not answered"
        return
    if sum(one.bits.size for one in answered) != len(stored):
        yield "not every bit counts"
    for place, one in enumerate(answered):
        estimate = local.estimate_mean(one.bits, beta=BETA, epsilon=EPSILON)
        if not estimate.low <= TRUTHS[place] <= estimate.high:
            yield f"question {place}: {estimate} without {TRUTHS[place]}"


def processor() -> str:
    """The name of the processor."""
    text = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    name = re.search(r"model name\s*: (.*)", text)
    model = re.search(r"\nmodel\s*: (\d+)", text)
    return f"{name[1] if name else platform.processor()}, model {model[1] if model else '?'}"


if __name__ == "__main__":
    main()
