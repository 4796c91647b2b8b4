import harness
import pytest
import verbs


@pytest.fixture
def inputs(memory):
    """A folder with what the commands read."""
    verbs.write_inputs(memory)
    return memory


def pytest_terminal_summary(terminalreporter):
    if harness.LONG and harness.FIGURES:
        terminalreporter.section("faults: what was attacked, and what came of it")
        for attack, cases, outcome in harness.FIGURES:
            terminalreporter.write_line(f"{attack:<58}{cases:>9,}  {outcome}")
