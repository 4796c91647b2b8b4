"""The page about which method to take shows what the command prints, and what the bench says."""

import itertools
import re
import shlex
from pathlib import Path

import pytest

from hdp_fast.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "start" / "which_method.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the source tree")


def shown():
    """Commands of the page, each with the lines that are shown of its output."""
    text = PAGE.read_text() if PAGE.exists() else ""
    for block in re.findall(r"```text\n\$ hdp-fast (.*?)```", text, flags=re.DOTALL):
        command, _, output = block.partition("\n")
        yield command, [line for line in output.splitlines() if line != "..."]


@pytest.mark.parametrize(("command", "lines"), list(shown()))
def test_the_page_shows_what_the_command_prints(command, lines, capsys):
    assert main(shlex.split(command)) == 0
    printed = iter(capsys.readouterr().out.splitlines())
    assert lines
    # In this order; other lines may stand between.
    assert [line for line in lines if not any(line == one for one in printed)] == []


def test_the_page_begins_with_the_command():
    commands = [command for command, _ in shown()]
    assert len(commands) >= 3
    assert PAGE.read_text().index("hdp-fast advise") < PAGE.read_text().index("## ")
    assert all(one.startswith("advise ") for one in commands)


def test_the_page_names_each_data_set_that_was_measured():
    names = {row.split(",")[0] for row in measured_rows()}
    table = PAGE.read_text()
    assert [name for name in names if f"| {name} |" not in table] == []


def test_no_page_evaluates_a_text():
    """A call is run by Advice.run, never by eval of what was printed."""
    pages = [*PAGE.parents[1].rglob("*.md"), PAGE.parents[2] / "README.md"]
    assert len(pages) > 50
    assert [page.name for page in pages if re.search(r"\beval\(", page.read_text())] == []


def test_each_measured_number_has_a_command_that_is_there():
    papers = PAGE.parents[2] / "benches" / "papers"
    commands = {row.split(",")[5].split()[0] for row in measured_rows()}
    assert [name for name in commands if not (papers / name).exists()] == []


def measured_rows():
    path = PAGE.parents[2] / "benches" / "papers" / "advice_measured.csv"
    return list(itertools.islice(path.read_text().splitlines(), 1, None))
