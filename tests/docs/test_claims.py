"""docs/tools/check_claims.py: the page of claims, what is expected, and the last runs."""

import pytest
from scripts import PAPERS, loaded


@pytest.fixture(scope="module")
def claims():
    with loaded(PAPERS.parents[1] / "docs" / "tools" / "check_claims.py") as module:
        yield module


def test_the_page_is_what_its_last_runs_say(claims):
    assert claims.check() == []


def test_a_claim_that_failed_or_whose_figure_is_gone_is_told(claims, tmp_path, monkeypatch):
    run = claims.json.loads(claims.RUNS.read_text())
    kind = next(iter(run))
    command = next(iter(run[kind]["commands"]))
    run[kind]["commands"][command]["result"] = claims.FAILS
    (tmp_path / "runs.json").write_text(claims.json.dumps(run))
    monkeypatch.setattr(claims, "RUNS", tmp_path / "runs.json")
    text = claims.FIGURES.read_text().replace('"330,555"', '"330,556"')
    (tmp_path / "figures.toml").write_text(text)
    monkeypatch.setattr(claims, "FIGURES", tmp_path / "figures.toml")
    words = "\n".join(claims.check())
    assert f"{command} {claims.FAILS}" in words
    assert "has no 330,556" in words


def test_what_a_command_prints_is_compared(claims):
    measured = ({"pattern": r"in ([\d.]+) s", "value": 4.0, "within": 2.0, "most": 7.0},)
    expected = claims.Expected(prints=("n * 330,555 [0, 1]",), measured=measured)
    assert claims.differences("n   2.5  330,555 [0, 1]\nin 3 s", expected) == []
    words = claims.differences("n 2.5 330,556 [0, 1]\nin 9 s", expected)
    assert [word.split(":")[0] for word in words] == [
        *("it does not print", "9 is above 7", "9 is not within 2 times of 4"),
    ]
    assert claims.differences("n 2 330,555 [0, 1]", expected) == [
        r"it does not print in ([\d.]+) s",
    ]


def test_a_command_fails_by_its_exit_its_time_and_without_a_test(claims, monkeypatch):
    monkeypatch.setattr(claims, "_shell", lambda command: command.removeprefix("pytest "))
    run = claims.run
    assert run("true", claims.Expected(), "any").entry()["result"] == claims.HOLDS
    assert "ended with 3" in run("echo why; exit 3", claims.Expected(), "any").words[0]
    assert "still running" in run("sleep 9", claims.Expected(minutes=0.001), "any").words[0]
    assert (
        "no test" in run("pytest echo == 3 skipped in 0.1s ==", claims.Expected(), "any").words[0]
    )
    tests = run("pytest echo == 4 passed, 3 skipped in 0.1s ==", claims.Expected(), "any").tests
    assert tests == "4 passed, 3 skipped"
