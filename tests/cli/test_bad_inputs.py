"""Each bad input says what, where and what would do, and ends as it should."""

import re

import pytest
from bad_case import run

bad_inputs = pytest.importorskip("bad_inputs", exc_type=ModuleNotFoundError)
CASES = bad_inputs.CASES

# Said of what went well.
_INFORMATION = ("protected: ", "label ", "the schema was read off ")


def test_every_number_is_there():
    assert {case.number for case in CASES} == set(range(1, 240))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}: {case.done}")
def test_a_bad_input_is_told(case, tmp_path):
    outcome = run(case, tmp_path)
    lines = [line for line in outcome.lines if not line.startswith(_INFORMATION)]
    assert outcome.end == case.end, lines
    text = "\n".join(lines)
    if not case.said:
        assert text == ""
    for pattern in case.said:
        assert re.search(pattern, text, re.MULTILINE | re.DOTALL), text
