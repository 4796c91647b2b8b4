"""Numbers of the pictures in the documents: each stands in the page that shows the picture too."""

import csv
import re
from pathlib import Path

import pytest

from hdp_fast import local, parity

DOCS = Path(__file__).parents[2] / "docs"
FILES = sorted((DOCS / "figures" / "data").glob("*.csv"))

pytestmark = pytest.mark.skipif(not FILES, reason="needs docs/")


def numbers(text):
    found = re.findall(r"\d[\d,]*\.?\d*(?:e-?\d+)?|\.\d+", text)
    return {float(number.replace(",", "")) for number in found}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_picture_and_its_page_show_the_same_numbers(path):
    command, *lines = path.read_text(encoding="utf-8").splitlines()
    _, *rows = csv.reader(lines)
    shown = [page for page in DOCS.rglob("*.md") if f"figures/{path.stem}.svg" in page.read_text()]
    assert shown, f"no page shows {path.stem}.svg"
    for page in shown:
        text = page.read_text(encoding="utf-8")
        # A page with too many numbers for a table leads to the file itself.
        listed = [] if f"figures/data/{path.name}" in text else rows
        missing = {cell for row in listed for cell in row if re.fullmatch(r"[\d.]+", cell)}
        missing = {cell for cell in missing if float(cell) not in numbers(text)}
        assert not missing, f"{page.name} lacks {sorted(missing)} of {path.name}"
        assert command.removeprefix("# ") in text, f"{page.name} does not name {command}"


def test_the_planned_sizes_of_the_parity_picture_are_those_of_today():
    goal = {"alpha": 0.49, "beta": 0.05, "epsilon": 1.0}
    path = DOCS / "figures" / "data" / "parity_separation.csv"
    for line in path.read_text(encoding="utf-8").splitlines()[2:]:
        d, alone, both, curator = (int(cell) if cell else None for cell in line.split(","))
        plan = parity.plan_transfer(d, **goal, agents_epsilon=1.0, chi2=1 / 3)
        assert (both, curator) == (plan.curator.n + plan.agents, parity.plan(d, **goal).n)
        assert alone is None or alone == local.votes_needed(2**d, **goal)
