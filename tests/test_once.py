"""Objects that promise something once: copies, pickles, forks and threads never get it twice."""

import copy
import functools
import math
import multiprocessing
import os
import pickle
from typing import ClassVar

import numpy as np
import pytest
from harness import together

from hdp_fast import stability
from hdp_fast.budget import Budget
from hdp_fast.exceptions import HdpFastError, ParameterError
from hdp_fast.labels import PrivateLabeler, SoftLabeler
from hdp_fast.learners import Conjunctions, ExponentialLearner
from hdp_fast.local import (
    Agents,
    CuratorOracle,
    LocalSQOracle,
    MaskedParity,
    MaskedParityAgents,
    RemoteAgents,
)
from hdp_fast.record import PrivacyRecord
from hdp_fast.transfer import SubsampleTestReweigh

X = np.random.default_rng(0).integers(0, 2, (4_000, 4), dtype=np.uint8)
Y = X[:, 0]
GOAL = {"epsilon": 20.0, "delta": 1e-3, "beta": 0.1}
RECORD = PrivacyRecord(
    mechanism="test", source="test", neighbors="replace_one", epsilon=0.4, noise="none"
)


def label(X, y):
    return y


class Certain:
    """A hypothesis."""

    hypothesis: ClassVar = {"kind": "certain"}

    def predict(self, X):
        return np.zeros(len(X), np.uint8)


class Silent(Agents):
    """No one opens the door."""

    def test(self, learned, count, *, random_state=None):
        raise KeyboardInterrupt


def people(count=4_000):
    return Agents(X[:count], Y[:count], epsilon=1.0)


def ask(agents):
    return agents.test(Certain(), 9)


def answer(session):
    return session.answer([3, 40])


def query(oracle):
    return oracle.query(label, 0.9)


def enter(reservation):
    with reservation:
        pass


def reserve(budget):
    return budget.reserve(RECORD)


def labeler(kind, **given):
    limits = {"queries": 5, "max_unstable": 2, "members": 60}
    return kind(lambda X, y: Certain().predict, **GOAL, **limits, **given).fit(X[:60], Y[:60])


def give(made):
    return made.label(X[:1]) if isinstance(made, PrivateLabeler) else made.score(X[:1], 2)


def stopped():
    """A run that is to be resumed with other agents."""
    learner = ExponentialLearner(Conjunctions(4, 1), epsilon=1.0)
    goal = {"alpha": 0.2, "kappa": 0.5, "eta": 0.5, "rounds": 4, "output": "majority"}
    # Without the accounting, which takes seconds; what remembers the rounds is the same.
    model = SubsampleTestReweigh(learner, epsilon=math.inf, draws=40, schedule="final", **goal)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y, Silent(X, Y, epsilon=1.0))
    return model


def resume(model):
    return model.resume(X, Y, people())


# What is used up, and how it is used.
ONCE = {
    "Agents": (people, ask),
    "RemoteAgents": (lambda: RemoteAgents(lambda _, k: [0] * k, epsilon=1.0, count=9), ask),
    "MaskedParityAgents": (
        lambda: MaskedParityAgents(MaskedParity([1, 0], 0), 9, epsilon=1.0),
        ask,
    ),
    "LocalSQOracle": (lambda: LocalSQOracle(people(), queries=1, beta=0.1), query),
    "CuratorOracle": (lambda: CuratorOracle(X, Y, epsilon=9.0, queries=1, beta=0.1), query),
    "TableSession of a HazardTable": (
        lambda: stability.HazardTable.design(1, 1, **GOAL).session(),
        answer,
    ),
    "TableSession of a VoteTable": (
        lambda: stability.VoteTable.design(1, **GOAL).session(),
        answer,
    ),
    "GaussianSession": (
        lambda: stability.GaussianVote.design(1, **GOAL, labels=2).session(),
        answer,
    ),
    "AboveThreshold": (
        lambda: stability.AboveThreshold(1, 0, epsilon=1.0),
        lambda made: made.answer(-1_000),
    ),
    "OnlineQueryRelease": (
        lambda: stability.OnlineQueryRelease(1, epsilon=1.0, delta=1e-6),
        lambda made: made.answer([1, 1]),
    ),
    "PrivateLabeler": (lambda: labeler(PrivateLabeler, classes=[0, 1]), give),
    "SoftLabeler": (lambda: labeler(SoftLabeler), give),
    "SubsampleTestReweigh": (stopped, resume),
    "Reservation": (lambda: Budget(1).reserve(RECORD), enter),
    "Budget": (lambda: Budget(0.5), reserve),
    "sequential scope": (lambda: Budget(1).sequential(0.5), reserve),
    "part of a parallel scope": (lambda: Budget(0.5).parallel().part("a"), reserve),
    "parallel scope": (lambda: Budget(0.5).parallel(), lambda scope: scope.part("a")),
}
each = pytest.mark.parametrize(("make", "use"), ONCE.values(), ids=ONCE)

# Those that one thread at a time is inside of.
OTHERS = {"PrivateLabeler", "SoftLabeler", "SubsampleTestReweigh", "Budget"}
LOCKED = [name for name in ONCE if name not in OTHERS and "scope" not in name]

DUPLICATES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda thing, protocol=protocol: pickle.loads(
            pickle.dumps(thing, protocol)
        )
        for protocol in (0, 2, pickle.HIGHEST_PROTOCOL)
    },
}


def refused(call, error=HdpFastError):
    try:
        call()
    except error:
        return True
    return False


@each
@pytest.mark.parametrize("duplicate", DUPLICATES.values(), ids=DUPLICATES)
def test_a_duplicate_is_the_same_object_or_of_no_use(make, use, duplicate):
    thing = make()
    if not refused(lambda: duplicate(thing), TypeError):
        other = duplicate(thing)
        assert other is thing or refused(lambda: use(other))


# Forks --------------------------------------------------------------------------------------------

forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
beside_threads = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def succeeds_in_a_child(work):
    """Whether a forked child is done with some work; one that hangs is killed and is not."""
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(20)
    child.kill()
    child.join()
    return child.exitcode == 0


@forking
@beside_threads
@each
def test_a_forked_child_is_refused_and_told_what_to_do(make, use):
    thing = make()

    def child():
        with pytest.raises(ParameterError, match=rf"process {os.getppid()}, but .*: \w.* \w"):
            use(thing)

    assert succeeds_in_a_child(child)
    use(thing)


@forking
@beside_threads
@pytest.mark.parametrize("name", LOCKED)
def test_a_child_forked_while_a_thread_is_inside_does_not_wait_for_it(name):
    make, use = ONCE[name]
    thing = make()

    def child():
        with pytest.raises(ParameterError, match="belongs to process"):
            use(thing)

    with thing._turnstile.hold():
        assert succeeds_in_a_child(child)


@forking
@beside_threads
def test_a_forked_child_cannot_save_a_labeler_of_its_parent(tmp_path):
    made = labeler(PrivateLabeler, classes=[0, 1])

    def child():
        with pytest.raises(ParameterError, match="belongs to process"):
            made.save(tmp_path / "model")

    assert succeeds_in_a_child(child)
    assert not list(tmp_path.iterdir())


@forking
@beside_threads
def test_a_child_uses_what_it_made_itself():
    assert succeeds_in_a_child(lambda: [use(make()) for make, use in ONCE.values()])


# Twice, one after the other and at once -----------------------------------------------------------


@pytest.mark.parametrize(
    "name", [name for name in ONCE if name not in ("Agents", "parallel scope")]
)
def test_what_is_used_up_is_refused(name):
    make, use = ONCE[name]
    thing = make()
    use(thing)
    assert any(refused(lambda: use(thing)) for _ in range(10))


def test_racing_threads_enter_a_reservation_once():
    for _ in range(100):
        reservation = reserve(Budget(1))
        race = functools.partial(refused, functools.partial(enter, reservation))
        assert sorted(together([race] * 4, hasty=True)) == [False, True, True, True]


def test_a_query_that_runs_leaves_no_room_for_another():
    oracle = LocalSQOracle(people(), queries=1, beta=0.1)

    def asks_again(X, y):
        with pytest.raises(ParameterError, match="1 are asked and 0 are left"):
            query(oracle)
        return y

    oracle.query(asks_again, 0.9)
    assert len(oracle.answers) == 1
