"""The pages of four kinds of trust and of data say what their commands print."""

import pytest
from scripts import PAPERS, at_length, loaded

pytestmark = pytest.mark.skipif(not PAPERS.exists(), reason="needs benches/")


def _cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_four_trusts_page_has_the_numbers_of_todays_plans():
    with loaded(PAPERS / "four_trusts.py") as script:
        table = script.BLOCK.search(script.PAGE.read_text())[0].splitlines()
        rows = script.print_rows(script.plan_all(shuffle=False)).splitlines()
    assert table[1:3] == rows[:2]
    for shown, planned in zip(table[3:6], rows[2:], strict=True):
        (*first, _, hybrid, local), expected = _cells(shown), _cells(planned)
        assert [*first, hybrid, local] == [*expected[:2], *expected[3:]]


@at_length
def test_four_trusts_page_is_what_its_command_writes():
    with loaded(PAPERS / "four_trusts.py") as script:
        rows = script.plan_all() | {"": script.measure_model()}
        for line in script.print_rows(rows).splitlines():
            assert line.removeprefix("|  ") in script.PAGE.read_text()


def test_data_page_names_all_files_that_scripts_read_and_tells_which_differ(tmp_path):
    with loaded(PAPERS / "_data.py") as script:
        checksums = script.read_checksums()
        texts = "".join(path.read_text() for path in PAPERS.glob("*.py"))
        named = {name for suffix in ("csv.gz", "npz") for name in _files_of(texts, suffix)}
        # One that linear_rivals.py writes itself.
        assert named - {"task.npz"} <= set(checksums)
        first, second, *others = checksums
        (tmp_path / first).write_bytes(b"other bits")
        states = dict(script.check_folder(tmp_path))
        assert states == {first: "differs", second: "missing"} | dict.fromkeys(others, "missing")
    assert len(set(checksums.values())) == len(checksums) == 11


def _files_of(texts, suffix):
    """Names of files in quotation marks."""
    words = texts.replace("'", '"').split('"')
    return {word for word in words if word.endswith(f".{suffix}") and "{" not in word}
