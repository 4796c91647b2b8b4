"""Saves of labelers that meet each other, Ctrl-C or kill -9: members never have two accounts."""

import os
import signal

import numpy as np
import pytest
from processes import exit_code, forked, forking

from hdp_fast import Budget, PrivacyRecord
from hdp_fast.budget.tables import LedgerTables
from hdp_fast.exceptions import CheckpointError, ParameterError
from hdp_fast.labels import PrivateLabeler

pytest.importorskip("joblib")

QUERIES = 20
Q = np.ones((QUERIES, 2))


class Majority:
    """Says the commoner label of its chunk."""

    def fit(self, X, y):
        self.label = int(y.mean() > 0.5)
        return self

    def predict(self, X):
        return np.full(len(X), self.label)


@pytest.fixture(autouse=True, scope="module")
def tables(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def fitted():
    X = np.random.default_rng(8).normal(size=(120, 2))
    settings = {"epsilon": 1.0, "delta": 1e-5, "queries": QUERIES, "max_unstable": 5, "members": 40}
    return PrivateLabeler(Majority(), classes=[0, 1], **settings).fit(X, (X[:, 0] > 0) * 1)


def at_the_link(patch, path, act, *, after):
    """Does something when the labeler's file, and no other, gets its name."""
    link = os.link

    def linked(scratch, target):
        ours = str(target) == str(path)
        if after or not ours:
            link(scratch, target)
        if ours:
            act()

    patch.setattr(os, "link", linked)


def kill_a_save(labeler, path, *, after):
    """Saves in a child that dies just before the labeler's file gets its name, or just after."""

    def child():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(labeler._state.account, "_process", os.getpid())
            at_the_link(patch, path, lambda: os.kill(os.getpid(), signal.SIGKILL), after=after)
            labeler.save(path)

    assert exit_code(forked(child)) == -signal.SIGKILL


def left_by_a_kill(path, asked=0):
    """What a save leaves that was killed between the ledger and the labeler's file."""
    labeler = fitted()
    labeler.label(Q[:asked])
    kill_a_save(labeler, path, after=False)


@forking
@pytest.mark.parametrize("before", ["nothing", "a ledger"])
def test_ctrl_c_just_after_a_save_leaves_one_account(tmp_path, monkeypatch, before):
    path = tmp_path / "model"
    if before == "a ledger":
        left_by_a_kill(path)
    labeler = fitted()
    with monkeypatch.context() as patch:
        at_the_link(patch, path, lambda: signal.raise_signal(signal.SIGINT), after=True)
        with pytest.raises(KeyboardInterrupt):
            labeler.save(path)
    labeler.label(Q[: QUERIES // 2])
    assert PrivateLabeler.load(path, trusted=True).queries_left == QUERIES // 2
    assert labeler.queries_left == QUERIES // 2


@pytest.mark.parametrize("name", ["model", "other"])
def test_a_save_that_failed_without_a_file_can_be_done_again(tmp_path, monkeypatch, name):
    labeler, path = fitted(), tmp_path / name
    with monkeypatch.context() as patch:
        at_the_link(patch, tmp_path / "model", lambda: pytest.fail("stopped"), after=False)
        with pytest.raises(pytest.fail.Exception):
            labeler.save(tmp_path / "model")
    labeler.save(path)
    assert PrivateLabeler.load(path, trusted=True).queries_left == QUERIES


@forking
@pytest.mark.parametrize("asked", [0, 3])
def test_a_ledger_that_a_killed_save_left_is_used_again(tmp_path, asked):
    path = tmp_path / "model"
    left_by_a_kill(path, asked)
    labeler = fitted()
    labeler.label(Q[:5])
    labeler.save(path)
    assert PrivateLabeler.load(path, trusted=True).queries_left == QUERIES - 5


@forking
def test_a_kill_just_after_the_file_has_its_name_gives_nothing_back(tmp_path):
    path, labeler = tmp_path / "model", fitted()
    labeler.label(Q[:5])
    kill_a_save(labeler, path, after=True)
    kept = PrivateLabeler.load(path, trusted=True)
    assert kept.queries_left == QUERIES - 5
    kept.label(Q[:5])
    assert PrivateLabeler.load(path, trusted=True).queries_left == QUERIES - 10


def test_who_saves_second_takes_nothing_from_who_saved_first(tmp_path, monkeypatch):
    """The other one saves between this one's ledger and its file."""
    path, first, second = tmp_path / "model", fitted(), fitted()
    link, saved = os.link, []

    def linked(scratch, target):
        link(scratch, target)
        if str(target).endswith("ledger") and not saved:
            saved.append(target)
            second.save(path)

    monkeypatch.setattr(os, "link", linked)
    with pytest.raises(CheckpointError, match="of this ensemble"):
        first.save(path)
    second.label(Q[:5])
    assert PrivateLabeler.load(path, trusted=True).queries_left == QUERIES - 5
    assert first.queries_left == QUERIES


def in_a_handler(monkeypatch, place, name, ask):
    """What asking raises in a signal handler that comes while a function runs."""
    real, raised = getattr(place, name), []

    def handler(*_):
        try:
            ask()
        except ParameterError as error:
            raised.append(str(error))

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGUSR1)
        return real(*arguments)

    previous = signal.signal(signal.SIGUSR1, handler)
    monkeypatch.setattr(place, name, interrupted)
    return raised, lambda: signal.signal(signal.SIGUSR1, previous)


@pytest.mark.parametrize("kept", [False, True])
def test_a_handler_that_looks_at_a_labeler_inside_a_call_is_refused(tmp_path, monkeypatch, kept):
    from hdp_fast.labels.fitted import Fitted

    labeler = fitted()
    if kept:
        labeler.save(tmp_path / "model")
    ask = lambda: labeler.queries_left  # noqa: E731
    raised, restore = in_a_handler(monkeypatch, Fitted, "_check_left", ask)
    labeler.label(Q[:2])
    restore()
    assert any("this very thread" in text for text in raised)
    assert labeler.queries_left == QUERIES - 2


def test_a_handler_that_looks_at_a_budget_inside_a_call_is_refused(monkeypatch):
    budget = Budget(epsilon=1.0)
    raised, restore = in_a_handler(monkeypatch, LedgerTables, "charge", lambda: repr(budget.spent))
    record = PrivacyRecord(
        mechanism="test", source="s", neighbors="replace_one", epsilon=0.5, noise="none"
    )
    with budget.reserve(record):
        pass
    restore()
    assert any("this very thread" in text for text in raised)
