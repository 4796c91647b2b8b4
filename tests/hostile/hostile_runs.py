"""Runs of a hostile learner on neighbors, and how many votes of a query the replaced row moves.

The votes are private: they are caught by replacing a private function of the ensemble.
"""

import contextlib
import contextvars
import copy
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import warnings

import hostile_learners
import joblib
import numpy as np
import pandas
import polars
from hostile_learners import MEMBERS

from hdp_fast.labels import PrivateLabeler, PrivateLearner, SoftLabeler, ensemble

ENGINES = {
    "sequential": {},
    "threads": {"backend": "threading", "n_jobs": 2},
    "processes": {"backend": "loky", "n_jobs": 2},
    "one process each": {"backend": "multiprocessing", "n_jobs": 2, "maxtasksperchild": 1},
}
GOAL = {"epsilon": 20, "delta": 1e-3, "queries": 9, "max_unstable": 9, "beta": 1e-9}
GOAL |= {"members": MEMBERS}


def constant(X, y):
    return lambda Q: np.zeros(len(Q), int)


def hard(learner, X, y, Q):
    PrivateLabeler(learner, classes=[0, 1], table="hazard", **GOAL).fit(X, y, random_state=1).label(
        Q
    )


def soft(learner, X, y, Q):
    SoftLabeler(learner, **GOAL).fit(X, y, random_state=1).score(Q, 2)


def final(learner, X, y, Q):
    labeler = PrivateLabeler(learner, classes=[0, 1], table="hazard", **GOAL)
    PrivateLearner(labeler, constant).fit(X, y, Q, random_state=1)


LABELERS = {"PrivateLabeler": hard, "SoftLabeler": soft, "PrivateLearner": final}


def engine(name):
    """Where members run."""
    return joblib.parallel_config(**ENGINES[name]) if ENGINES[name] else contextlib.nullcontext()


@contextlib.contextmanager
def caught():
    """The votes of all members and what went wrong with each, block by block."""
    blocks, fold = [], ensemble.fold_tasks

    def fold_and_keep(task, arguments, take):
        results = []

        def take_and_keep(result):
            results.append(result)
            take(result)

        fold(task, arguments, take_and_keep)
        votes, faults = zip(*results, strict=True)
        blocks.append((np.array(votes, float), faults))

    ensemble.fold_tasks = fold_and_keep
    try:
        yield blocks
    finally:
        ensemble.fold_tasks = fold


def has_objects(value):
    return isinstance(value, np.ndarray) and value.dtype.hasobject


def same(one, other):
    """Whether two tables hold the same."""
    if isinstance(one, pandas.DataFrame):
        return one.equals(other) and one.attrs == other.attrs
    if isinstance(one, polars.DataFrame):
        return one.equals(other)
    if hasattr(one, "toarray"):
        one, other = one.toarray(), other.toarray()
    if has_objects(one):
        one, other = (
            [[getattr(v, "notes", v) for v in row] for row in rows] for rows in (one, other)
        )
        return one == other
    return np.array_equal(one, other)


def shared_state():
    """What a process shares and a run must leave as it was."""
    return (
        random.getstate(),
        repr(np.random.get_state(legacy=False)),  # noqa: NPY002
        np.geterr(),
        np.get_printoptions(),
        dict(os.environ),
        os.getcwd(),
        logging.root.manager.disable,
        list(warnings.filters),
        id(sys.stdout),
        sys.getrecursionlimit(),
        sys.get_int_max_str_digits(),
        gc.isenabled(),
        gc.get_threshold(),
        [signal.getsignal(number) for number in signal.valid_signals()],
        list(contextvars.copy_context().items()),
    )


@contextlib.contextmanager
def undone():
    """Takes back what a run that fails the test may have left in the process."""
    bits, environment, folder = np.random.get_bit_generator(), dict(os.environ), os.getcwd()
    printing, stdout = np.get_printoptions(), sys.stdout
    depth, digits = sys.getrecursionlimit(), sys.get_int_max_str_digits()
    numbers = locale.setlocale(locale.LC_ALL)
    thresholds, stderr = gc.get_threshold(), sys.stderr
    level, disabled = logging.getLogger("hostile").level, logging.root.manager.disable
    with warnings.catch_warnings(), np.errstate(), decimal.localcontext():
        yield
    np.random.set_bit_generator(bits)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    np.set_printoptions(**printing)
    sys.stdout, sys.stderr = stdout, stderr
    gc.enable()
    gc.set_threshold(*thresholds)
    if hostile_learners.Finalized.LEFT:
        # Else they raise in whatever test runs when they are collected.
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
        gc.collect()
        sys.unraisablehook = hook
    signal.signal(signal.SIGABRT, signal.SIG_DFL)
    hostile_learners.CONTEXT.set(False)
    sys.setrecursionlimit(depth)
    sys.set_int_max_str_digits(digits)
    locale.setlocale(locale.LC_ALL, numbers)
    logging.getLogger("hostile").setLevel(level)
    logging.disable(disabled)
    hostile_learners.KEPT.clear()
    hostile_learners.SEEN[0] = 0.0


def snapshot(value):
    """A copy, of objects that may refuse copies a new one with the same notes."""
    if not has_objects(value):
        return copy.deepcopy(value)
    made = value.copy()
    for row in made:
        row[1] = row[1].again()
    return made


def votes(case, labeler, where, replaced):
    """Votes (members, queries) for one of the neighbors, what has changed, and what went wrong."""
    X, y = case.records(replaced)
    Q, before = snapshot(case.queries), shared_state()
    kept = [snapshot(value) for value in (X, y, Q)]
    with caught() as blocks_and_faults, engine(where):
        LABELERS[labeler](case.learner, X, y, Q)
    pairs = zip("XyQ", kept, (X, y, Q), strict=True)
    changed = {name for name, was, now in pairs if not same(was, now)}
    if shared_state() != before:
        changed.add("the process")
    blocks, faults = zip(*blocks_and_faults, strict=True)
    return (
        np.concatenate(blocks, axis=1),
        changed,
        [text for block in faults for text in block if text],
    )


def moved(case, labeler, where):
    """The most votes of one query that the replaced row moves; what of the caller's has changed.

    Members must work where no row is replaced: those that fail have nothing to say.
    """
    one, before, faults = votes(case, labeler, where, False)
    other, after, _ = votes(case, labeler, where, True)
    return int((one != other).sum(axis=0).max()), before | after, faults
