import harness


def pytest_terminal_summary(terminalreporter):
    if harness.LONG and harness.FIGURES:
        terminalreporter.section("faults: what was attacked, and what came of it")
        for attack, cases, outcome in harness.FIGURES:
            terminalreporter.write_line(f"{attack:<58}{cases:>9,}  {outcome}")
