import pytest


@pytest.fixture
def one_thread(monkeypatch):
    """A call on a handful of records is far cheaper than counting the processors."""
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", "1")
