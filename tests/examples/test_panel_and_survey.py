"""The panel and the survey: the certificate covers the truth, and the report is there."""

from pathlib import Path

import pytest
from scripts import loaded

EXAMPLE = Path(__file__).parents[2] / "examples" / "panel_and_survey.py"

pytestmark = pytest.mark.skipif(not EXAMPLE.is_file(), reason="needs the source tree")


def test_run_certifies_an_error_that_is_better_than_a_constants(tmp_path, capsys):
    with loaded(EXAMPLE) as example:
        # The seed is that of the people; the run draws from the operating system. Its interval
        # misses by so much more than its width with probability below 1e-6.
        found = example.run(tmp_path, seed=1)
    assert found["low"] - 0.04 < found["error"] < found["high"] + 0.04
    assert found["error"] < found["constant"] - 0.08
    assert found["high"] - found["low"] < 0.05
    assert "bought" in (tmp_path / "report.html").read_text()
    assert "error_after" in capsys.readouterr().out
