"""Scripts of benches/: each one can be imported, so that no rename leaves one behind."""

import pytest
from scripts import PAPERS, loaded

FILES = sorted([*PAPERS.glob("*.py"), *PAPERS.parent.glob("bench_*.py")])

pytestmark = pytest.mark.skipif(not FILES, reason="needs benches/")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_script_can_be_imported(path):
    with loaded(path) as module:
        assert module.__doc__
