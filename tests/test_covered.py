"""The tool that tells what the tests of the package and of the core run."""

from pathlib import Path
from types import SimpleNamespace

import covered
import pytest

PYTHON = """class Curve:
    def half(self, x):
        def inner():
            return x
        return inner

TOP = 1
"""
RUST = """//! A file.
impl<'a> Curve<'a> {
    pub(crate) fn half(&self) -> u64 {
        let f = |x: u64| {
            x
        };
        f(1)
    }
    #[cfg(test)]
    fn ends(&self) -> u64 {
        2
    }
}
fn alone() {}
#[cfg(test)]
mod tests {
    fn three() {}
}
"""


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setattr(covered, "ROOT", tmp_path)
    monkeypatch.setattr(covered, "LISTED", tmp_path / "listed.toml")
    (tmp_path / "curve.py").write_text(PYTHON)
    (tmp_path / "curve.rs").write_text(RUST)
    return tmp_path


def test_a_line_belongs_to_the_function_around_it(files):
    python = covered.functions(Path("curve.py"))
    names = ["Curve", "Curve.half", "Curve.half.inner", "Curve.half.inner", "Curve.half"]
    assert [python[line] for line in range(1, 6)] == names
    assert 7 not in python
    rust = covered.functions(Path("curve.rs"))
    assert [rust[line] for line in (1, 5, 8, 9, 14, 15)] == [
        "",
        "Curve<'a>::half",
        "Curve<'a>::half",
        "Curve<'a>",
        "alone",
        "",
    ]


def test_what_is_compiled_for_tests_alone_is_not_counted():
    assert covered.lines_of_tests(RUST) == {9, 10, 11, 12, 15, 16, 17, 18}


def test_counts_are_those_of_the_lines_of_the_crates():
    files = [covered.TREE / "rust/core/src/a.rs", covered.TREE / "rust/core/tests/b.rs", "/c.rs"]
    text = "".join(f"SF:{file}\nFNF:1\nDA:3,2\nDA:4,0\nend_of_record\n" for file in files)
    assert covered.counts_of_lines(text) == {Path("rust/core/src/a.rs"): {3: 2, 4: 0}}


def test_tests_that_fail_are_named_after_all_have_run(tmp_path, monkeypatch):
    commands = []

    def run(command, **options):
        commands.append(command)
        return SimpleNamespace(returncode=1)

    monkeypatch.setattr(covered, "BUILD", tmp_path)
    monkeypatch.setattr(covered.subprocess, "run", run)
    failed = covered.run_tests([Path("core"), Path("module")], "1", ["tests"])
    assert failed == ["tests fail: core", "tests fail: pytest tests"]
    assert ["combine" in command for command in commands] == [False, False, True]


def explain(files, *entries):
    listed = "".join(f"[[uncovered]]\n{entry}\n" for entry in entries)
    (files / "listed.toml").write_text(listed)
    part = covered.Part(Path("curve.py"), frozenset(range(1, 8)), frozenset({4, 7}))
    return covered.explain([part])


def test_what_is_never_entered_needs_a_reason_that_is_true(files):
    inner = "path = 'curve.py'\nplace = 'Curve.half.*'\nreason = 'in a browser'"
    lines, wrong = explain(files, inner)
    assert lines == ["curve.py:4 Curve.half.inner: in a browser", "curve.py:7"]
    assert not wrong
    lines, wrong = explain(files, "path = 'curve.py'\nplace = ''\nreason = 'no display'")
    assert lines == ["curve.py:4 Curve.half.inner", "curve.py:7: no display"]
    assert wrong == [
        "no test enters this, and no reason is given: curve.py:4 Curve.half.inner",
    ]
    ran = "path = 'curve.py'\nplace = 'Curve'\nreason = 'why'"
    assert explain(files, inner, ran)[1] == ["no test leaves this out: curve.py Curve"]


def test_a_function_of_rust_is_entered_where_one_line_of_it_is_run(files):
    (files / "listed.toml").write_text("uncovered = []")
    lines = frozenset({3, 4, 5, 7, 14})
    parts = [covered.Part(Path("curve.rs"), lines, frozenset(missing)) for missing in ({5}, {14})]
    assert [len(covered.explain([part])[1]) for part in parts] == [0, 1]


def test_the_table_has_a_row_for_each_folder_and_one_for_all():
    one = covered.Part(
        covered.PACKAGE / "budget/book.py", frozenset({1, 2, 3, 4}), frozenset({4}), 4, 1
    )
    two = covered.Part(covered.PACKAGE / "gf2.py", frozenset({1}), frozenset())
    core = covered.Part(Path("rust/core/src/noise/rng.rs"), frozenset({1, 2}), frozenset({1}))
    assert covered.table([one, two])[2:] == [
        "| hdp_fast | 1 | 100.0 % | | |",
        "| hdp_fast/budget | 4 | 75.0 % | 4 | 75.0 % |",
        "| all | 5 | 80.0 % | 4 | 75.0 % |",
    ]
    assert covered.table([core])[2] == "| rust/core/noise | 2 | 50.0 % | | |"


def test_a_tool_that_is_missing_is_named(monkeypatch):
    monkeypatch.setattr(covered.shutil, "which", lambda name: None)
    with pytest.raises(
        SystemExit, match=r"llvm-cov of LLVM \d+ is not here: apt-get install llvm-"
    ):
        covered.llvm("llvm-cov")
