"""hdp-fast survey: a study is made whole or not at all, served, and ended without a trace."""

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from cases import each_case

from hdp_fast.cli import main
from hdp_fast.collection import Study

pytest.importorskip("uvicorn")
CREATE = ["--asker", "City of Example", "--epsilon", "1", "--people", "3"]
CREATE += ["--url", "https://example.org"]


def run(capsys, *argv):
    """The exit code, and what was printed."""
    code = main(["survey", *map(str, argv)])
    return code, *capsys.readouterr()


def test_create_makes_a_study_and_says_where_the_invitations_are(tmp_path, capsys):
    (tmp_path / "form.json").write_text('{"inputs": [], "features": [], "label": null}')
    path = tmp_path / "town"
    form = ["--form", tmp_path / "form.json"]
    code, out, err = run(capsys, "create", path, *CREATE, *form, "--json")
    assert (code, err) == (0, "")
    study = Study.open(path)
    assert json.loads(out) == {
        "study": study.id,
        "folder": str(path),
        "people": 3,
        "epsilon": 1.0,
        "invitations": str(path / "invitations.csv"),
        "public_key": study.public_key,
    }
    assert json.loads(study.form)["inputs"] == []
    code, _, err = run(capsys, "create", path, *CREATE)
    assert code == 2
    assert "STUDY = " in err
    assert "it must be a new folder" in err


@each_case(
    "flag, value",
    [
        ("--asker", ""),
        *(("--epsilon", value) for value in ("0", "nan", "inf", "-1")),
        *(("--people", value) for value in ("0", "-3", "1e12")),
        *(("--url", value) for value in ("example.org", "http://example.org", "https://a.org/x")),
        *(("--form", value) for value in ("missing.json", "list.json", "latin.json")),
    ],
)
def test_create_refuses_in_one_line_and_leaves_nothing(tmp_path, capsys, monkeypatch, flag, value):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "latin.json").write_bytes(b'{"\xe4": 1}')
    argv = [*CREATE, flag, value] if flag == "--form" else list(CREATE)
    if flag in argv and flag != "--form":
        argv[argv.index(flag) + 1] = value
    code, out, err = run(capsys, "create", "town", *argv)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert flag in err or value in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latin.json", "list.json"]


def test_serve_refuses_what_it_cannot_serve(tmp_path, capsys):
    path = tmp_path / "town"
    assert run(capsys, "create", path, *CREATE)[0] == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for argv, text in (
            ([path, "--port", port], "--port"),
            ([path, "--port", 70_000], "--port = 70000"),
            ([path, "--host", "example.invalid"], "--host"),
            ([path, "--host", "203.0.113.1", "--port", 0], "--host"),
            ([path, "--per-address", -1], "--per-address = -1"),
            ([path, "--per-token", -1], "--per-token = -1"),
            ([tmp_path / "nothing"], "can't read"),
        ):
            code, out, err = run(capsys, "serve", *argv)
            assert (code, out, err.count("\n")) == (2, "", 1), err
            assert text in err


@each_case("package", ["starlette", "uvicorn", "httptools"])
def test_serve_names_the_package_that_is_missing_and_its_extra(
    tmp_path, capsys, monkeypatch, package
):
    path = tmp_path / package
    assert run(capsys, "create", path, *CREATE)[0] == 0
    for name in [*sys.modules, package]:
        if name.partition(".")[0] == package or name.endswith("httptools_impl"):
            monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "uvicorn.protocols.http.httptools_impl", raising=False)
    code, _, err = run(capsys, "serve", path, "--port", 0)
    monkeypatch.undo()
    assert code == 2
    assert f"needs {package}: pip install {package} (the extra hdp-fast[serve])" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_serve_ends_with_its_process_and_says_where_it_was(tmp_path, capsys, number):
    path = tmp_path / "town"
    assert run(capsys, "create", path, *CREATE)[0] == 0
    command = [sys.executable, "-m", "hdp_fast", "survey", "serve", str(path), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    line = process.stderr.readline()
    assert re.search(r"serving study [0-9a-f]{16} at http://127\.0\.0\.1:\d+: 0 of 3 people", line)
    port = int(re.search(r"1:(\d+)", line)[1])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    ends = {signal.SIGINT: (130, "hdp-fast: interrupted\n"), signal.SIGTERM: (-signal.SIGTERM, "")}
    assert (process.returncode, err) == ends[number]
    assert sorted(one.name for one in path.iterdir()) == [
        *("collector.db", "invitations.csv", "signing.key", "study.json"),
    ]


def test_create_names_questions_that_have_no_words(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = {"age": {"kind": "number", "bounds": [18, 90]}}
    label = {"column": "votes", "positive": ["yes"]}
    Path("schema.json").write_text(json.dumps({"columns": columns, "label": label}))
    texts = ({}, "age, votes"), ({"age": "Your age?"}, "votes"), ({"age": "A?", "votes": "B?"}, "")
    for place, (words, bare) in enumerate(texts):
        Path("texts.json").write_text(json.dumps(words))
        options = ["--schema", "schema.json", "--texts", "texts.json", *CREATE]
        code, _, line = run(capsys, "create", f"town{place}", *options)
        assert code == 0
        assert line.endswith(f"for lack of --texts: {bare}\n") if bare else line == ""


def test_survey_says_in_its_help_what_is_protected(capsys):
    for verb in ("create", "serve"):
        with pytest.raises(SystemExit):
            main(["survey", verb, "--help"])
        out = capsys.readouterr().out
        assert f"hdp-fast survey {verb}" in out
        assert "example:" in out
