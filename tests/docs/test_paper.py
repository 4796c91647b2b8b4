"""The paper's references are complete, it is short, and its numbers are those of the pages."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAPER = (ROOT / "docs/paper/paper.md").read_text(encoding="utf-8")
BODY = PAPER.split("---\n", 2)[2]


def test_what_is_cited_is_in_the_bibliography_and_only_that():
    entries = re.findall(r"@\w+\{(\w+),", (ROOT / "docs/paper/paper.bib").read_text("utf-8"))
    assert len(entries) == len(set(entries))
    assert set(re.findall(r"@(\w+)", BODY)) == set(entries)


def test_it_has_two_pages():
    assert len(BODY.split()) <= 1000


def test_figures_and_scripts_are_there():
    for figure in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", BODY):
        assert (ROOT / "docs/paper" / figure).is_file()
    scripts = re.findall(r"python ((?:benches|tests|docs)/\S+?\.py)", BODY)
    assert scripts
    assert all((ROOT / script).is_file() for script in scripts)


def test_numbers_are_those_of_the_pages():
    trusts = (ROOT / "docs/start/four_trusts.md").read_text("utf-8")
    rows = {
        row[0]: row for row in re.findall(r"\| (a [^|]+?) \| (.+?) \| (.+?) \| (.+?) \|\n", BODY)
    }
    assert len(rows) == 3
    for name, central, hybrid, local in rows.values():
        line = next(line for line in trusts.splitlines() if line.startswith(f"| {name}"))
        cells = [cell.strip() for cell in line.split("|")]
        assert [cells[2], cells[4], cells[5]] == [central, hybrid, local]
    transfer = (ROOT / "docs/reproduction/hybrid_people.md").read_text("utf-8")
    calibrated = transfer.split("\n## Calibrated\n")[1]
    for start, number in ((r"\| best constant ", ".389"), (r"\| source alone ", ".450"),
                          (r"\| \*\*calibrated\*\*, slope", ".245")):  # fmt: skip
        assert number in re.search(start + ".*", calibrated)[0]
        assert number in BODY
    assert "330,555" in (ROOT / "docs/reproduction/what_can_be_learned.md").read_text("utf-8")
