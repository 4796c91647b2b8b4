"""Tables of threats name what shows each row, and all of it is there."""

import re
from pathlib import Path

import pytest
from cases import each_case

ROOT = Path(__file__).parents[2]
PAGES = ("SECURITY.md", "docs/guides/collector.md")

pytestmark = pytest.mark.skipif(not (ROOT / PAGES[0]).exists(), reason="needs the repository")


@pytest.fixture(scope="module")
def tests():
    files = (ROOT / "tests").rglob("test_*.py")
    return {
        name
        for path in files
        for name in re.findall(r"^ *def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }


def named(text):
    return set(re.findall(r"`(test_\w+)`", text)) - {"test_seed"}


@each_case("page", PAGES)
def test_every_test_that_a_page_of_threats_names_is_there(page, tests):
    names = named((ROOT / page).read_text())
    assert len(names) > 10
    assert not names - tests


def test_every_threat_names_its_tests():
    text = (ROOT / "SECURITY.md").read_text()
    model = text[text.index("## Threat model") : text.index("## Reporting")]
    rows = [line for line in model.splitlines() if re.match(r"\| (?!threat|---)", line)]
    assert len(rows) > 25
    for row in rows:
        threat, done, remains, shown = (cell.strip() for cell in row.strip("|").split(" | "))
        assert threat
        assert done
        assert remains, f"no row is without what is not done: {threat}"
        assert named(shown), f"no test: {threat}"
