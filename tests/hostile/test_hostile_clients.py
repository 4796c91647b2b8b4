"""A collector's server under clients that are slow, huge, malformed, forging or plainly strange.

It runs in a process of its own, as `hdp-fast survey serve` starts it, with shorter patience. After
each attack it serves others as before, holds no more memory, and has said nothing of anybody.
"""

import contextlib
import json
import random
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cases import each_case
from harness import figure, size
from visitors import QUERY, lines, new_study, tokens

pytest.importorskip("uvicorn")
pytest.importorskip("httptools")

PATIENCE = 0.6
PROGRAM = f"""
import sys
from hdp_fast.cli import main
from hdp_fast.collection import server, serving
serving._REQUEST_SECONDS, server._BODY_SECONDS = {PATIENCE}, {PATIENCE / 2}
sys.exit(main(sys.argv[1:]))
"""
PEOPLE = 60


class Server:
    """A server that runs, and its study, of whom everybody is asked something."""

    def __init__(self, folder):
        self.study = new_study(folder, people=PEOPLE)
        self.study.publish(QUERY, PEOPLE)
        self.keys = tokens(self.study)
        self.lines = lines(self.study, 1, range(1, PEOPLE + 1))
        self._next = iter(range(PEOPLE))
        self._log = (folder / "log").open("w+")
        command = [sys.executable, "-c", PROGRAM, "survey", "serve", str(self.study.path)]
        command += ["--port", "0", "--per-address", "0", "--per-token", "0"]
        self.process = subprocess.Popen(command, stderr=self._log)
        end = time.monotonic() + 60
        while (port := re.search(r"127\.0\.0\.1:(\d+)", self.log())) is None:
            assert self.process.poll() is None, self.log()
            assert time.monotonic() < end
            time.sleep(0.02)
        self.port = int(port[1])

    def log(self):
        return Path(self._log.name).read_text()

    def connect(self):
        return contextlib.closing(socket.create_connection(("127.0.0.1", self.port), timeout=10))

    def ask(self, request, *, end=False):
        """All that the server replies to bytes until it or this side ends the connection."""
        with self.connect() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(request)
                if end:
                    connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def person(self):
        """The token and the line of somebody who has not answered yet."""
        place = next(self._next)
        return self.keys[place], self.lines[place]

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) << 10

    def check(self):
        """It is well: somebody answers at once, and nothing of anybody was said."""
        start = time.monotonic()
        key, line = self.person()
        assert statuses(self.ask(post(key, line, close=True))) == [200]
        assert time.monotonic() - start < 2
        assert len(self.log().splitlines()) == 1, self.log()


def read_all(connection):
    got = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(1 << 16):
            got += piece
    return got


def statuses(reply):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", reply)]


def head(method, path, key=None, **more):
    text = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
    text += f"Authorization: Bearer {key}\r\n" if key else ""
    text += "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in more.items())
    return f"{text}\r\n".encode()


def post(key, line, *, close=False):
    more = {"Connection": "close"} if close else {}
    return head("POST", "/answer", key, Content_Length=len(line), **more) + line.encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("hostile"))
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(20)
        server._log.close()
    # Whoever ends it finds no log of what came together.
    assert [path.name for path in server.study.path.glob("*-wal")] == []


@pytest.fixture(autouse=True)
def check(request, served):
    before, start = served.memory(), len(served.study.answers(1))
    yield
    served.check()
    assert served.memory() - before < 16 << 20
    stored = served.study.answers(1)
    assert len({key for key, _ in stored}) == len(stored) == served.study.counts()["answered"]
    assert len(stored) > start
    figure(f"HTTP: {request.node.originalname[5:].replace('_', ' ')}", 1, "as before")


BEGUN = head("POST", "/answer", "0" * 32, Content_Length=500)
SLOW = {
    "nothing": b"",
    "an empty line": b"\r\n",
    "half a request line": b"GET /que",
    "half a head": b"GET /question HTTP/1.1\r\nHost: x\r\nX-",
    "half a body": BEGUN + b"{",
    "half a chunk": head("GET", "/question", Transfer_Encoding="chunked") + b"5\r\nab",
    "half of a second request": head("GET", "/health") + b"GET /hea",
}


def test_slow_clients_are_ended_and_keep_nobody_waiting(served):
    """Twelve connections of each kind, which send a byte now and then."""
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        open_ones = []
        for begun in list(SLOW.values()) * 12:
            connection = stack.enter_context(served.connect())
            connection.sendall(begun)
            connection.setblocking(False)
            open_ones.append(connection)
        while open_ones:
            assert time.monotonic() - start < 20 * PATIENCE, f"{len(open_ones)} are left"
            asked = time.monotonic()
            assert statuses(served.ask(head("GET", "/health", Connection="close"))) == [200]
            assert time.monotonic() - asked < 1
            time.sleep(PATIENCE / 10)
            open_ones = [one for one in open_ones if not is_ended(one)]


def is_ended(connection):
    """Whether the server has ended it; if not, it gets one more byte, but for empty ones."""
    try:
        while connection.recv(1 << 16):
            pass
        return True
    except BlockingIOError:
        with contextlib.suppress(OSError):
            connection.send(b"a")
        return False
    except OSError:
        return True


@each_case("begin", [b"", BEGUN, head("GET", "/question", "0" * 32, Content_Length=10**12)])
def test_connections_without_a_sound_are_ended(served, begin):
    with served.connect() as connection:
        connection.sendall(begin)
        start = time.monotonic()
        read_all(connection)
        assert time.monotonic() - start < 5 * PATIENCE


def flood(served, begin, piece, most=64 << 20):
    """The statuses of the replies, and how many bytes went out before the server ended it."""
    sent, reply = 0, b""
    with served.connect() as connection:
        with contextlib.suppress(OSError):
            connection.sendall(begin)
            while sent < most:
                sent += connection.send(piece)
        reply = read_all(connection)
    return statuses(reply), sent


@each_case(
    "begin, piece",
    [
        (head("POST", "/answer", "{key}", Content_Length=10**12), b"x" * (1 << 16)),
        (
            head("POST", "/answer", "{key}", Transfer_Encoding="chunked"),
            b"4000\r\n%s\r\n" % (b"x" * 0x4000),
        ),
        (head("POST", "/answer", "{key}", Transfer_Encoding="chunked"), b"1\r\nx\r\n"),
        (head("POST", "/answer", Transfer_Encoding="chunked"), b"4000\r\n%s\r\n" % (b"x" * 0x4000)),
        (head("GET", "/question", "{key}", Transfer_Encoding="chunked"), b"1\r\nx\r\n" * 1_000),
        (head("GET", "/", Transfer_Encoding="chunked"), b"1;" + b"x" * 4_000 + b"\r\nx\r\n"),
        (b"GET / HTTP/1.1\r\nX-More: ", b"x" * (1 << 16)),
        (b"GET / HTTP/1.1\r\n", b"X-More: x\r\n" * 1_000),
        (b"GET /", b"x" * (1 << 16)),
        (b"", b"\r\n" * 1_000),
    ],
)
def test_what_has_no_end_is_cut(served, begin, piece):
    begin = begin.replace(b"{key}", served.keys[-1].encode())
    replied, sent = flood(served, begin, piece)
    assert set(replied) <= {400, 401, 404, 408, 410, 413, 431, 200}
    assert sent < 16 << 20


@each_case("count", [101, 500, 3_000])
def test_many_headers_are_refused(served, count):
    more = {f"X-{number}": "x" * 160 for number in range(count)}
    assert statuses(served.ask(head("GET", "/health", **more), end=True)) in ([431], [])


BROKEN = [
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
    b"GET\0/health HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /answer HTTP/1.1\r\nContent-Length: -1\r\n\r\n{}",
    b"POST /answer HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    b"POST /answer HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /answer HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"POST /answer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    b"POST /answer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
    b"GET /health HTTP/1.1\r\n Host: x\r\n\r\n",
    b"GET /health HTTP/1.1\r\nX: a\0b\r\n\r\n",
    b"GET /question HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n\r\n",
    b"CONNECT localhost:22 HTTP/1.1\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\n\r\n",
    b"\r\n" * 50,
    bytes(10_000),
]


@each_case("request_bytes", BROKEN)
def test_broken_requests_end_in_a_refusal(served, request_bytes):
    replied = statuses(served.ask(request_bytes, end=True))
    assert set(replied) <= {400, 401, 404, 405, 413, 422}, replied


@each_case(
    "path",
    [
        *("/../../../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/signing.key"),
        *("//etc/passwd", "/page/../collector.db", "/./signing.key", "/index.html%00.js"),
        *("/page.js/../../signing.key", "/%c0%ae%c0%ae/signing.key", "\\..\\signing.key"),
        *("/~root", "/.git/config", "http://localhost/../signing.key", "file:///etc/passwd"),
        *("/collector.db", "/invitations.csv", "/agents.db", "/study.json", "/" + "a/" * 2_000),
    ],
)
def test_no_path_leads_to_a_file(served, path):
    reply = served.ask(head("GET", path, Connection="close"))
    assert statuses(reply) in ([404], [400], [])
    assert b"root:" not in reply
    secret = (served.study.path / "signing.key").read_bytes().strip()
    assert secret not in reply


def test_requests_in_one_packet_are_answered_in_their_order(served):
    (key, line), (_, other) = served.person(), served.person()
    packet = head("GET", "/question", key) + post(key, line) * 3 + post(key, other)
    packet += head("GET", "/question", key) + head("GET", "/health", Connection="close")
    assert statuses(served.ask(packet)) == [200, 200, 200, 200, 409, 410, 200]


def test_a_line_that_was_forged_or_seen_elsewhere_burns_no_token(served):
    (key, line), (victim, theirs) = served.person(), served.person()
    assert statuses(served.ask(post(victim, theirs, close=True))) == [200]
    forged = [
        theirs,
        line.replace('"report":', '"report":7'),
        line.replace(json.loads(line)["digest"], "0" * 32),
        line[:-1] + ',"more":1}',
    ]
    for one in forged:
        assert statuses(served.ask(post(key, one, close=True))) in ([409], [422])
    assert statuses(served.ask(post("0" * 32, line, close=True))) == [401]
    assert statuses(served.ask(post(key, line, close=True))) == [200]


def test_a_client_that_never_reads_holds_nobody_up(served):
    key, _ = served.person()
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            connection = stack.enter_context(served.connect())
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                for _ in range(50):
                    connection.send(head("GET", "/question", key) * 100)
        served.check()


def test_requests_with_random_changes_are_refused_or_answered(served):
    """A byte, a piece or the order of a good request changes; nothing is a defect of the server."""
    key, line = served.person()
    good = [head("GET", "/question", key), post(key, line), head("GET", "/health")]
    rng, seen = random.Random(37), set()
    for _ in range(size(200, 5_000)):
        request = bytearray(rng.choice(good))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(request))
            change = rng.randrange(4)
            if change == 0:
                request[at] = rng.randrange(256)
            elif change == 1:
                del request[at : at + rng.randint(1, 9)]
            elif change == 2:
                request[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 9)))
            else:
                request[at:at] = request[rng.randrange(len(request)) :][:40]
            if not request:
                break
        seen |= set(statuses(served.ask(bytes(request), end=True)))
    assert seen <= {200, 400, 401, 404, 405, 409, 410, 413, 422, 431}, seen
    assert {200, 400, 401, 404} <= seen
