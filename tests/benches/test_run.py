"""Benches run from their files, at sizes that say nothing of speed; options, storing, comparing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parents[2] / "benches"
FILES = sorted(BENCHES.glob("bench_*.py"))
ONE = BENCHES / "bench_stability.py"

pytest.importorskip("pytest_benchmark")
pytestmark = pytest.mark.skipif(not FILES, reason="needs benches/")


def run(path, *options, folder=None):
    """A run of benches as a stranger starts it."""
    command = [sys.executable, str(path), *options]
    command += ["--results", str(folder)] if folder else []
    # The plugin would see that a worker of xdist runs this.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    kept = {"capture_output": True, "text": True, "env": env}
    return subprocess.run(command, **kept, check=False, timeout=300)


def test_a_short_run_loses_nothing():
    """Some thousand people answer a study over HTTP, and its server is killed twice meanwhile."""
    pytest.importorskip("uvicorn")
    options = ["--people", "6000", "--clients", "60", "--every", "0.5", "--kills", "2"]
    options += ["--killed"]
    done = run(BENCHES / "collector.py", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAULT" not in done.stdout
    assert done.stdout.count("6,000") == 2


@pytest.mark.thorough(cases=["bench_gf2", "bench_private_statistics"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_runs(path):
    done = run(path, "--tiny")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """A folder with the results of one small group."""
    folder = tmp_path_factory.mktemp("results")
    options = ("-k", "distance", "--small", "--seconds", "0.1")
    done = run(ONE, *options, "--store", folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "x numpy" in done.stdout
    (path,) = folder.glob("*.json")
    return path, options


@pytest.mark.thorough(beside="test_times_that_mean_nothing_are_not_stored")
def test_results_say_nothing_of_machine_person_or_time(stored):
    results = json.loads(stored[0].read_text())
    assert set(results) == {"processor", "versions", "day", "limits", "groups"}
    assert set(results["processor"]) == {"name", "cores", "instructions"}
    (entry,) = results["groups"]
    assert set(entry) == {"group", "params", "work", "unit", "routes"}
    assert entry["group"] == "stability.distance"
    assert entry["params"] == {"queries": 100_000}
    assert {route["role"] for route in entry["routes"]} == {"ours", "numpy"}
    assert str(Path.home()) not in stored[0].read_text()


@pytest.mark.thorough(beside="test_check_says_how_to_make_results_where_there_are_none")
@pytest.mark.parametrize(("factor", "code", "word"), [(1000, 1, "slower"), (1e-3, 0, "faster")])
def test_check_fails_where_a_route_got_slower(stored, tmp_path, factor, code, word):
    path, options = stored
    results = json.loads(path.read_text())
    for route in results["groups"][0]["routes"]:
        route["ratios"] = {name: factor * ratio for name, ratio in route.get("ratios", {}).items()}
    (tmp_path / path.name).write_text(json.dumps(results))
    done = run(ONE, *options, "--check", folder=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert f"{word}:\n  stability.distance, queries = 100,000: 1 thread: " in done.stdout


@pytest.mark.thorough(beside="test_check_says_how_to_make_results_where_there_are_none")
def test_check_of_nothing_fails(stored, tmp_path):
    path, options = stored
    results = json.loads(path.read_text())
    results["groups"][0]["params"]["queries"] = 7
    (tmp_path / path.name).write_text(json.dumps(results))
    done = run(ONE, *options, "--check", folder=tmp_path)
    assert done.returncode != 0
    assert "nothing was compared" in done.stdout


def test_check_says_how_to_make_results_where_there_are_none(tmp_path):
    done = run(ONE, "--check", folder=tmp_path)
    assert done.returncode != 0
    assert "no stored results of this kind" in done.stderr
    assert "make bench-store" in done.stderr


def test_times_that_mean_nothing_are_not_stored(tmp_path):
    done = run(ONE, "--tiny", "--store", folder=tmp_path)
    assert done.returncode != 0
    assert not list(tmp_path.iterdir())
