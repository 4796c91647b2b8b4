"""The choice between statistics and votes: a function of public facts, one for both callers.

The task of a pool is private to labels, and is looked at here as the command and the estimator
make it.
"""

import argparse
import itertools

import numpy as np
import pytest

from hdp_fast.cli.label_command import add_label
from hdp_fast.cli.label_statistics import choose
from hdp_fast.cli.label_task import LabelTask
from hdp_fast.data import Table
from hdp_fast.exceptions import ParameterError
from hdp_fast.labels import choose_method
from hdp_fast.labels.pool import PoolTask

FACTS = {
    "n": 3_500,
    "columns": 40,
    "classes": 10,
    "points": 1_000,
    "members": 2_000,
    "epsilon": 1.0,
    "delta": 1e-6,
}


@pytest.mark.parametrize(
    ("changes", "method"),
    [
        ({}, "statistics"),
        ({"epsilon": 0.5}, "statistics"),
        ({"classes": 2, "n": 100_000}, "statistics"),
        ({"points": 79}, "votes"),
        ({"points": 80}, "statistics"),
        # Noise hides so many columns, and there are records for the members.
        ({"n": 100_000, "columns": 10**8, "points": 10**9}, "votes"),
        # There are not: neither will do well.
        ({"n": 1_000, "columns": 10**8, "points": 10**9}, "statistics"),
    ],
)
def test_rules(changes, method):
    choice = choose_method(**{**FACTS, **changes})
    assert choice.method == method
    assert choice.reason
    assert choice == choose_method(**{**FACTS, **changes})


def test_the_signal_grows_with_records_and_falls_with_classes_and_columns():
    signal = choose_method(**FACTS).signal
    assert choose_method(**{**FACTS, "n": 7_000}).signal == pytest.approx(2 * signal)
    assert choose_method(**{**FACTS, "classes": 20}).signal == pytest.approx(signal / 2)
    assert choose_method(**{**FACTS, "columns": 160}).signal == pytest.approx(signal / 2)


@pytest.mark.parametrize("name", FACTS)
def test_bad_numbers_are_refused(name):
    for value in (0, -1, "many", float("nan")):
        with pytest.raises(ParameterError, match=name):
            choose_method(**{**FACTS, name: value})


def pool_of(points, columns):
    return np.random.default_rng(0).normal(size=(points, columns))


def task(pool, *, classes=2, **changed):
    settings = {"epsilon": 1.0, "delta": 1e-6, "queries": len(pool), "classes": range(classes)}
    return PoolTask.of(pool, **settings | changed)


# Rows of private records, rows and columns of the pool, labels, epsilon, delta and members.
GRID = list(
    itertools.product(
        (60, 20_000),
        (3, 400, 2_000),
        (1, 40),
        (2, 200),
        (1e-8, 0.01, 2.0),
        (1e-9, 1e-6),
        (None, 2),
    )
)


def choose_by_command(n, pool, classes, epsilon, delta, members):
    """The choice of hdp-fast label, from its arguments and what it has read."""
    parser = argparse.ArgumentParser()
    add_label(parser)
    argv = ["private", "public", "--schema", "s", f"--epsilon={epsilon}", f"--delta={delta}"]
    if members is not None:
        argv.append(f"--members={members}")
    asked = LabelTask(
        schema=None,
        classes=list(classes),
        texts=("no", "yes"),
        label="y",
        column="y",
        public=None,
        points=pool,
        append=None,
        read_private=lambda: Table({}, n),
    )
    return choose("auto", parser.parse_args(argv), asked)


def choose_by_estimator(n, pool, classes, epsilon, delta, members, monkeypatch, **changed):
    """The choice of PrivateStudentClassifier, whose fit ends here before anything is released."""
    pytest.importorskip("sklearn", minversion="1.6")
    from hdp_fast.sklearn import PrivateStudentClassifier

    chosen = []

    def stop(task, records):
        chosen.append(real(task, records))
        raise InterruptedError

    real = PoolTask.choose
    labels = np.resize(classes, n)
    with monkeypatch.context() as patched:
        patched.setattr(PoolTask, "choose", stop)
        learner = PrivateStudentClassifier(
            epsilon=epsilon,
            delta=delta,
            pool=pool,
            classes=classes,
            members=members,
            **{"queries": len(pool)} | changed,
        )
        with pytest.raises(InterruptedError):
            learner.fit(np.zeros((n, pool.shape[1])), labels)
    return chosen[0]


def test_choose_is_alike_for_command_and_estimator(monkeypatch):
    pytest.importorskip("sklearn", minversion="1.6")
    methods = []
    for n, points, columns, classes, epsilon, delta, members in GRID:
        pool, names = pool_of(points, columns), [f"{one:03}" for one in range(classes)]
        facts = (n, pool, names, epsilon, delta, members)
        command = choose_by_command(*facts)
        assert choose_by_estimator(*facts, monkeypatch) == command, facts
        methods.append((command.method, command.signal < 1))
    # Each rule has decided somewhere: the pool is too small, there is no signal, there is one.
    assert set(methods) == set(itertools.product(("statistics", "votes"), (True, False)))


def test_choose_of_an_estimator_counts_the_votes_that_it_asks(monkeypatch):
    """A student learns from some hundred rows, and so needs votes on no more of them."""
    pool, names = pool_of(5_000, 40), [f"{one:03}" for one in range(200)]
    n, epsilon, delta = 4_000, 1.0, 1e-9
    few, many = task(pool, queries=1), task(pool)
    assert few.make_labeler().plan().k < many.make_labeler().plan().k
    command = choose_by_command(n, pool, names, epsilon, delta, None)
    alike = choose_by_estimator(n, pool, names, epsilon, delta, None, monkeypatch)
    fewer = choose_by_estimator(n, pool, names, epsilon, delta, None, monkeypatch, queries=1)
    assert command == alike
    assert (alike.method, fewer.method) == ("statistics", "votes")


@pytest.mark.parametrize("epsilon", [1e-8, 1e-4, 0.01])
def test_choose_takes_statistics_where_no_table_keeps_epsilon(epsilon):
    small = task(pool_of(5_000, 2), epsilon=epsilon, delta=1e-7)
    with pytest.raises(ParameterError, match="epsilon"):
        small.make_labeler().plan()
    assert small.choose(50_000).method == "statistics"


@pytest.mark.parametrize(
    ("options", "match"),
    [({"beta": 2.0}, "beta = 2"), ({"agreement": 0.1}, "agreement"), ({"table": "best"}, "table")],
)
@pytest.mark.parametrize("epsilon", [1e-4, 1.0])
def test_choose_refuses_options_of_votes(options, match, epsilon):
    with pytest.raises(ParameterError, match=match):
        task(pool_of(400, 2), options=options, epsilon=epsilon).choose(4_000)


@pytest.mark.parametrize("pool", [np.ones((400, 2)), np.full((400, 2), 1e300)])
def test_choose_takes_votes_where_columns_are_constant(pool):
    choice = task(pool).choose(4_000)
    assert (choice.method, choice.signal > 1) == ("votes", True)
    assert "constant" in choice.reason
    pool = pool.copy()
    pool[0, 0] = 2
    assert task(pool).choose(4_000).method == "statistics"
