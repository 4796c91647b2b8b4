"""A collector's server under schemathesis, and behind nginx as the example configures it.

`make fuzz` runs schemathesis at length, and fails where nginx is not installed; `make test` and
`make ci` skip what needs nginx then, and say so.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import size
from visitors import QUERY, lines, new_study, tokens

pytest.importorskip("uvicorn")
CONFIG = Path(__file__).parents[2] / "examples" / "survey_nginx.conf"
# Debian's nginx is not on everybody's path.
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
pytestmark = pytest.mark.skipif(not CONFIG.exists(), reason="needs the source tree")


@pytest.fixture
def study(tmp_path):
    made = new_study(tmp_path)
    made.publish(QUERY, 10)
    return made


@contextlib.contextmanager
def serving(study, *more):
    """The port of a server."""
    command = [sys.executable, "-m", "hdp_fast", "survey", "serve", str(study.path)]
    command += ["--port", "0", *map(str, more)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield int(re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())[1])
    finally:
        process.terminate()
        _, said = process.communicate(timeout=20)
    assert said == ""


@pytest.mark.thorough(beside="test_behind_nginx_a_person_answers_over_tls_and_nothing_is_logged")
def test_schemathesis_finds_no_reply_that_the_document_does_not_describe(study, tmp_path):
    """Valid requests may be refused all the same: a line answers one question."""
    pytest.importorskip("schemathesis")
    options = ["--openapi", "--per-address", 0, "--per-token", 0]
    with serving(study, *options) as port:
        command = [sys.executable, "-m", "schemathesis.cli", "run"]
        command += [f"http://127.0.0.1:{port}/openapi.json", "--no-color"]
        command += ["--header", f"Authorization: Bearer {tokens(study)[0]}"]
        command += ["--exclude-checks", "positive_data_acceptance"]
        command += ["--max-examples", str(size(5, 1_500)), "--seed", "37"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "3 selected" in done.stdout
    assert study.counts() == {"invited": 10, "answered": 0}


def free_ports(count):
    with contextlib.ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in taken]


def make_certificate(folder):
    """A certificate that the server signs itself, and its key."""
    files = folder / "fullchain.pem", folder / "privkey.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-out", files[0], "-keyout", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


def configure(folder, port):
    """The example for this machine; returns its ports with TLS and without."""
    text = CONFIG.read_text()
    secure, plain = free_ports(2)
    certificate, key = make_certificate(folder)
    changes = {
        "listen 443 ssl": f"listen 127.0.0.1:{secure} ssl",
        "listen 80": f"listen 127.0.0.1:{plain}",
        "survey.example.org;": "localhost;",
        "/etc/ssl/survey.example.org.pem": str(certificate),
        "/etc/ssl/private/survey.example.org.key": str(key),
        "127.0.0.1:8000": f"127.0.0.1:{port}",
    }
    for before, after in changes.items():
        assert before in text, before
        text = text.replace(before, after)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    head = f"daemon off;\npid {folder}/pid;\nworker_processes 1;\nevents {{}}\n"
    (folder / "nginx.conf").write_text(f"{head}http {{\n{places}{text}\n}}\n")
    return secure, plain


@contextlib.contextmanager
def proxied(folder, port):
    folder.mkdir()
    secure, plain = configure(folder, port)
    command = [NGINX, "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "errors"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 20
        while True:
            assert process.poll() is None, process.stderr.read()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", secure)):
                break
            assert time.monotonic() < end
            time.sleep(0.02)
        yield secure, plain
    finally:
        process.terminate()
        process.communicate(timeout=20)


def test_behind_nginx_a_person_answers_over_tls_and_nothing_is_logged(study, tmp_path):
    if NGINX is None:
        reason = "nginx is not installed (apt-get install nginx-light)"
        if os.environ.get("HDP_FAST_NGINX") == "required":
            pytest.fail(reason)
        pytest.skip(f"{reason}; make fuzz fails without it")
    keys, made = tokens(study), lines(study, 1, range(1, 4))
    folder = tmp_path / "nginx"
    with serving(study, "--per-address", 9) as port, proxied(folder, port) as (secure, plain):
        trust = ssl.create_default_context(cafile=folder / "fullchain.pem")
        connection = http.client.HTTPSConnection("localhost", secure, context=trust, timeout=20)

        def ask(method, path, key=None, body=None, **more):
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            connection.request(method, path, body, headers | more)
            reply = connection.getresponse()
            return reply.status, reply.read(), reply.headers

        status, envelope, headers = ask("GET", "/question", keys[0])
        assert (status, json.loads(envelope)["format"]) == (200, "hdp_fast.signed")
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "max-age" in headers["Strict-Transport-Security"]
        assert headers["Cache-Control"] == "no-store"
        assert ask("POST", "/answer", keys[0], made[0])[0] == 200
        assert ask("POST", "/answer", keys[0], made[0])[0] == 200
        assert ask("GET", "/question", keys[0])[0] == 410
        assert ask("POST", "/answer", keys[1], "x" * 5_000)[0] == 413
        connection.close()
        status, content, headers = ask("GET", "/device.wasm", **{"Accept-Encoding": "gzip"})
        assert (status, headers["Content-Encoding"]) == (200, "gzip")
        assert len(content) < 80_000
        connection.close()
        for path in ("/../../etc/passwd", "/%2e%2e/signing.key", "/collector.db"):
            status, content, _ = ask("GET", path)
            assert (status, b"root:" in content) in ((404, False), (400, False))
            connection.close()
        # Who says that others sent it is counted all the same.
        seen = [ask("GET", "/question", "0" * 32, X_Forwarded_For="9.9.9.9")[0] for _ in range(7)]
        seen += [ask("GET", "/question", "0" * 32, **{"X-Forwarded-For": "8.8.8.8"})[0]]
        assert seen[0] == 401
        assert seen[-1] == 429
        connection.close()
        bare = http.client.HTTPConnection("localhost", plain, timeout=20)
        bare.request("GET", "/question")
        reply = bare.getresponse()
        assert (reply.status, reply.headers["Location"]) == (301, "https://localhost/question")
        bare.close()
    assert study.counts() == {"invited": 10, "answered": 1}
    # Its own configuration, key and process number are all that it wrote.
    written = {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert set(written) <= {"nginx.conf", "fullchain.pem", "privkey.pem", "pid", "errors"}
    assert written.get("errors", b"") == b""
