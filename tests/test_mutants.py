"""The tools that make mutants of the package and of the core, and ask the tests about them."""

import ast
import math
import os
from pathlib import Path

import mutant_runs
import mutants
import pytest
import rust_mutants


def changes(source):
    nodes = mutants.walk(ast.parse(source))
    changed = ((ast.unparse(node), mutants.mutate(node)) for node in nodes)
    return {
        before: after if isinstance(after, str) else ast.unparse(after)
        for before, after in changed
        if after is not None
    }


def test_mutants_are_small_mistakes_of_what_runs():
    source = '''
def half(values: list[int], least: int = 3) -> float:
    """At least 3."""
    if not values or least < 3:
        raise ValueError(f"{least + 1} values")
    check(values)
    return sum(values) / 2
'''
    assert changes(source) == {
        "not values or least < 3": "not values and least < 3",
        "not values": "values",
        "least < 3": "least <= 3",
        "3": "4",
        "raise ValueError(f'{least + 1} values')": "pass",
        "check(values)": "pass",
        "sum(values) / 2": "sum(values) * 2",
        "2": "3",
    }


def stands_where_it_says(mutant):
    text = (mutants.ROOT / mutant.path).read_bytes()
    assert text[mutant.start : mutant.end].decode() == mutant.before
    assert text[: mutant.start].count(b"\n") + 1 == mutant.line


def test_mutants_are_drawn_alike_by_one_seed_and_stand_where_they_say():
    every = mutants.all_mutants(("budget", "weights"))
    drawn = mutants.draw(every, 40, 7)
    assert drawn == mutants.draw(every[::-1], 40, 7) != mutants.draw(every, 40, 8)
    assert [sum(mutant.stem == stem for mutant in drawn) for stem in ("budget", "weights")] == [
        20
    ] * 2
    for mutant in drawn:
        stands_where_it_says(mutant)


def test_a_mutant_is_the_same_after_an_edit_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text("def half(x):\n    return x / 2 + x / 2\n")
    (tmp_path / "two.py").write_text("ONE = 1\n\n\ndef half(x):\n    return x / 2 + x / 2\n")
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    one, two = (mutants.find_mutants(Path(f"{name}.py")) for name in ("one", "two"))
    identities = [mutant.identity[1:] for mutant in one]
    assert identities == [mutant.identity[1:] for mutant in two[1:]]
    assert len(set(identities)) == len(identities) == 5


RUST = """
const LEAST: u64 = 1;
pub fn half(x: &[u8; 4]) -> u64 {
    let [a, ..] = *x;
    assert!(a > 1);
    log(a)?;
    if !a.is_empty() && x.0 < 0x10u8 { 2.5 * 1e-3 } else { false }
}
const fn two() -> u64 { 2 }
#[cfg(test)]
mod tests {
    fn three() { 3 }
}
"""


@pytest.fixture
def crate(tmp_path, monkeypatch):
    """A core of one file, and its mutants."""
    for place in (mutants, rust_mutants):
        monkeypatch.setattr(place, "ROOT", tmp_path)
    core = tmp_path / mutants.CORE
    core.mkdir(parents=True)
    (core / "lib.rs").write_text("//! A crate.\n")
    (core / "half.rs").write_text(RUST)
    return tmp_path, rust_mutants.find_mutants(mutants.CORE / "half.rs")


def test_mutants_of_the_core_are_small_mistakes_of_what_runs(crate):
    assert {(mutant.before, mutant.after) for mutant in crate[1]} == {
        ("", "return Default::default();"),
        ("log(a)?", "()"),
        ("!a.is_empty() && x.0 < 0x10u8", "!a.is_empty() || x.0 < 0x10u8"),
        ("!a.is_empty()", "a.is_empty()"),
        ("x.0 < 0x10u8", "x.0 <= 0x10u8"),
        ("0x10u8", "17u8"),
        ("2.5 * 1e-3", "2.5 / 1e-3"),
        ("2.5", "5.0"),
        ("1e-3", "0.002"),
        ("false", "true"),
    }
    assert {mutant.place for mutant in crate[1]} == {"half"}


def test_mutants_of_the_core_are_written_all_at_once(crate):
    found = crate[1]
    changed, stretches = (files[mutants.CORE / "half.rs"] for files in rust_mutants.write(found))
    text = changed.decode()
    for first, last, index in stretches:
        assert f"mutant::is({index})" in text[first:last]
    # Without the switches the file is what it was.
    while "(if crate::mutant::is" in text:
        head, _, rest = text.rpartition("(if crate::mutant::is")
        body, _, tail = rest.partition(" else { ")[2].partition(" })")
        text = head + body + tail
    head, _, rest = text.partition(" if crate::mutant::is")
    assert head + rest.partition(" } ")[2] == RUST
    # A mistake of the compiler is blamed on the innermost mutant around it.
    small = min(stretches, key=lambda stretch: stretch[1] - stretch[0])
    span = {"byte_start": small[1] - 3, "byte_end": small[1] - 2}
    assert rust_mutants.innermost(span, stretches) == small[2]
    assert rust_mutants.innermost({"byte_start": 0, "byte_end": 1}, stretches) is None


def test_what_lives_fails_a_run_unless_it_is_listed():
    states = (mutant_runs.KILLED, mutant_runs.LIVES)
    seen, lives = (mutant_runs.Answer(state, "", 3) for state in states)
    answers = [(seen, None), (seen, "why"), (lives, None), (lives, "why"), (None, None)]
    failed = [mutant_runs.judge(*answer)[2] for answer in answers]
    assert failed == [False, True, True, False, False]


def test_a_list_of_equivalent_mutants_names_what_is_there(tmp_path, monkeypatch):
    mutant = mutants.all_mutants(("weights",))[0]
    path, place, text, before, after, nth = mutant.identity
    entry = (
        f"path = {path!r}\nplace = {place!r}\nbefore = {before!r}\nafter = {after!r}\nnth = {nth}\n"
    )
    listed = tmp_path / "listed.toml"
    monkeypatch.setattr(mutant_runs, "LISTED", listed)
    listed.write_text(f"[[mutant]]\n{entry}text = '''{text}'''\nreason = 'why'\n")
    assert mutant_runs.read_listed() == {mutant.identity: "why"}
    listed.write_text(f"[[mutant]]\n{entry}text = 'another'\nreason = 'why'\n")
    with pytest.raises(SystemExit, match="what is no mutant"):
        mutant_runs.read_listed()


def test_the_list_of_equivalent_mutants_is_true():
    assert all(mutant_runs.read_listed().values())


def test_a_copy_keeps_the_date_of_what_has_not_changed(tmp_path, monkeypatch):
    root, copied = tmp_path / "root", tmp_path / "copied"
    monkeypatch.setattr(mutant_runs, "ROOT", root)
    (root / "rust").mkdir(parents=True)
    for name in ("one", "two"):
        (root / "rust" / name).write_text(name)
    names = [Path("rust/one"), Path("rust/two"), Path("rust/three")]

    def copy(changed):
        mutant_runs.copy_tree(copied, changed)
        return {path: (copied / path).read_text() for path in names if (copied / path).exists()}

    assert list(copy({names[1]: b"2", names[2]: b"3"}).values()) == ["one", "2", "3"]
    os.utime(copied / names[0], (5, 5))
    assert list(copy({}).values()) == ["one", "two"]
    assert (copied / names[0]).stat().st_mtime == 5


class Known:
    """Tests that answer at once."""

    def __init__(self, answer):
        self.asked, self.answer = 0, answer

    def ask(self, mutant):
        self.asked += 1
        return self.answer


def test_a_run_that_was_ended_goes_on_and_asks_again_where_tests_are_newer(tmp_path, monkeypatch):
    file = tmp_path / "test_it.py"
    file.touch()
    os.utime(file, (5, 5))
    monkeypatch.setattr(mutant_runs, "list_files", lambda stem, of: [file])
    first, second = mutants.all_mutants(("weights",))[:2]
    seen = Known(mutant_runs.Answer(mutant_runs.KILLED, "test_x", 3))
    lives = Known(mutant_runs.Answer(mutant_runs.LIVES, "", 3))

    def asked():
        answers = mutant_runs.Answers(tmp_path / "answers")
        assert answers.ask(seen, math.inf, first).killer == "test_x"
        assert answers.ask(lives, math.inf, second).state == mutant_runs.LIVES
        return seen.asked, lives.asked

    assert [asked(), asked()] == [(1, 1), (1, 1)]
    file.touch()
    assert asked() == (1, 2)
    answers = mutant_runs.Answers(tmp_path / "answers")
    assert answers.ask(lives, -math.inf, first._replace(text="another")) is None


@pytest.mark.thorough(
    beside="test_a_run_that_was_ended_goes_on_and_asks_again_where_tests_are_newer"
)
def test_tests_that_fail_or_never_end_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(mutant_runs, "SPARE", 0.0)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        "import os\n\n"
        "def test_fine():\n    pass\n\ndef test_wrong():\n    assert 'HDP' not in os.environ\n\n"
        "def test_dead():\n    os.abort()\n\ndef test_endless():\n    while True: pass\n"
    )
    tests = mutant_runs.Tests(tmp_path)
    fine, wrong, dead, endless = (
        ([f"test_it.py::test_{name}"], seconds)
        for name, seconds in {"fine": 9.0, "wrong": 9.0, "dead": 9.0, "endless": 0.0}.items()
    )
    assert tests.ask([fine, wrong]) == (mutant_runs.LIVES, "", 1)
    assert tests.ask([fine, wrong, dead], HDP="1") == (mutant_runs.KILLED, *wrong[0], 1)
    assert tests.ask([dead]) == (mutant_runs.KILLED, "signal 6", 1)
    assert tests.ask([endless]).state == mutant_runs.TIMED_OUT
    tests.close()
