"""Scripts of benches/papers: each can be imported, so that no rename leaves one behind, and named.

The benches themselves are run by tests/benches.
"""

import re

import pytest
from cases import each_case
from scripts import PAPERS, loaded

FILES = sorted(PAPERS.glob("*.py"))

pytestmark = pytest.mark.skipif(not FILES, reason="needs benches/")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_script_can_be_imported(path):
    with loaded(path) as module:
        assert module.__doc__


DOCS = PAPERS.parents[1] / "docs"
# Names that stand for any file.
PLACEHOLDERS = {"benches/papers/NAME.py"}


@each_case("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    named = set(
        re.findall(r"(?:benches|tests|examples|docs/tools)/[\w/.]*\w\.py\b", page.read_text())
    )
    assert not {name for name in named - PLACEHOLDERS if not (DOCS.parent / name).exists()}
