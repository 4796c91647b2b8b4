import pytest

from hdp_fast.transfer import estimator

AUDIT = "audit"


@pytest.fixture
def one_thread(monkeypatch):
    """A call on a handful of records is far cheaper than counting the processors."""
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", "1")


@pytest.fixture
def verified_once(monkeypatch):
    """Accounting for a run of two rounds takes longer than the run: once for each plan will do."""
    verify, verified = estimator.verify_privacy, {}

    def once(learner, plan, weights):
        if plan not in verified:
            verified[plan] = verify(learner, plan, weights)
        return verified[plan]

    monkeypatch.setattr(estimator, "verify_privacy", once)


@pytest.fixture
def audit_table(request):
    """Rows (mechanism, promised, bound, bound of a broken variant, what is wrong there) to show.

    They come with the test's report, as workers have no other way to the process that prints.
    """
    rows = []
    yield rows
    for name, *numbers, wrong in rows:
        request.node.user_properties.append((AUDIT, [name, *map(float, numbers), wrong]))


def pytest_terminal_summary(terminalreporter):
    reports = (report for some in terminalreporter.stats.values() for report in some)
    properties = (pair for report in reports for pair in getattr(report, "user_properties", ()))
    rows = [row for name, row in properties if name == AUDIT]
    if rows:
        terminalreporter.section("audits: lower bounds on epsilon")
        head = ("mechanism", "promised", "found", "twin", "what is wrong with the twin")
        lines = [(name, *(f"{x:.3f}" for x in numbers), what) for name, *numbers, what in rows]
        for name, promised, found, twin, what in [head, *lines]:
            line = f"{name:<36}{promised:>9}{found:>8}{twin:>8}  {what}"
            terminalreporter.write_line(line)
