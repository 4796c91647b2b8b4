"""What functions of a caller are shown: arrays that they cannot change."""

import contextlib
import logging
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from cases import each_case

from hdp_fast._support.numbers import answers, losses, predictions
from hdp_fast.exceptions import ShapeError
from hdp_fast.local import (
    Agents,
    BinaryResponse,
    CuratorOracle,
    EmpiricalOracle,
    EvasiveOracle,
    ExactOracle,
    LocalSQOracle,
    MaskedParity,
    MaskedParityAgents,
    RealValued,
    SimulatedEntry,
    simulate_local,
    simulate_sq,
)

X = np.arange(800.0).reshape(400, 2) / 800
Y = np.resize([0, 1, 1], 400).astype(np.uint8)
CONCEPT = MaskedParity([1, 0], 1)


def people():
    return Agents(X, Y, epsilon=1.0)


def drawn():
    return MaskedParityAgents(CONCEPT, 9, epsilon=1.0)


def predicting(agents, g):
    agents.test(SimpleNamespace(predict=lambda X: g(X, X)), 9)


def losing(agents, g):
    agents.test(SimpleNamespace(losses=g), 9)


# Each hands arrays that it goes on with to the function g.
SHOWN = {
    "Agents.ask": lambda g: people().ask(g, 9),
    "Agents.ask_several": lambda g: people().ask_several([g, g], 9),
    "Agents.test, predict": lambda g: predicting(people(), g),
    "Agents.test, losses": lambda g: losing(people(), g),
    "MaskedParityAgents.ask": lambda g: drawn().ask(g, 9),
    "MaskedParityAgents.test": lambda g: predicting(drawn(), g),
    "LocalSQOracle": lambda g: LocalSQOracle(people(), queries=1, beta=0.5).query(g, 0.9),
    "simulate_sq": lambda g: simulate_sq(
        lambda oracle: oracle.query(g, 0.9), people(), queries=1, tau=0.4, beta=0.5
    ),
    "CuratorOracle": lambda g: CuratorOracle(X, Y, epsilon=9, queries=1, beta=0.5).query(g, 0.9),
    "EmpiricalOracle": lambda g: EmpiricalOracle(X, Y).query(g, 0.1),
    "ExactOracle": lambda g: ExactOracle(X, Y).query(g, 0.1),
    "EvasiveOracle": lambda g: EvasiveOracle(CONCEPT).query(g, 0.1),
    "RealValued": lambda g: RealValued(ExactOracle(X, Y)).query(g, 0.1),
    "simulate_local": lambda g: simulate_local(
        BinaryResponse(1, (0, 1)), g, ExactOracle(X, Y), beta=0.1
    ),
    "SimulatedEntry": lambda g: SimulatedEntry(ExactOracle(X, Y), beta=0.1).apply(
        BinaryResponse(1.0, (0, 1)), g
    ),
}


def bases(shown):
    """An array, a view of it and all arrays that they are views of."""
    yield shown[:1]
    while isinstance(shown, np.ndarray):
        yield shown
        shown = shown.base


@each_case("show", SHOWN.values(), ids=SHOWN)
def test_what_a_function_is_shown_it_cannot_change(show):
    seen = []

    def g(X, y):
        for array in map(np.asarray, (X, y)):
            seen.append(array)
            for each in bases(array):
                with pytest.raises(ValueError, match="read-only"):
                    each[...] = 1
                with pytest.raises(ValueError, match="WRITEABLE"):
                    each.flags.writeable = True
        return np.zeros(len(X))

    before = X.copy(), Y.copy()
    show(g)
    assert seen
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])


@pytest.mark.parametrize(
    "values",
    [
        np.zeros((3, 4))[:, ::2],
        np.zeros((0, 2)),
        np.zeros((2, 2), ">i4"),
        np.array([[None, "a"]]),
        np.zeros((2, 1), "M8[s]"),
    ],
    ids=lambda values: f"{values.dtype} {values.shape}",
)
def test_records_of_any_kind_are_shown_as_they_are(values):
    seen = []
    agents = Agents(values, np.zeros(len(values), int), epsilon=1.0)
    agents.ask(lambda X, y: seen.append(X) or y, len(values))
    assert seen[0].dtype == values.dtype
    assert seen[0].tolist() == values.tolist()
    assert not np.shares_memory(seen[0], values)


def reachable(shown):
    """All arrays that are behind one."""
    while shown is not None:
        if isinstance(shown, np.ndarray):
            yield shown
        shown = getattr(shown, "base", None)


def test_a_question_reaches_the_records_of_those_asked_and_no_others():
    sizes, before = [], (X.copy(), Y.copy())

    def scribbling(*arrays):
        for array in arrays:
            for each in reachable(array):
                sizes.append(len(each))
                with contextlib.suppress(ValueError):
                    each[...] = 1
        return np.zeros(9)

    people().ask(scribbling, 9)
    people().ask_several([scribbling, scribbling], 9)
    assert set(sizes) == {9}
    assert np.array_equal(X, before[0])
    assert np.array_equal(Y, before[1])


ODD = [[1, 2], "x", "", None, 1j, b"x", {}, np.ones(1), np.ma.masked]
RETURNED = {
    **{f"list, {odd!r}": [1, 1, 1, odd] for odd in ODD},
    "tuple": (1, 1, 1, [1, 2]),
    "texts": np.array([1, 1, 1, "x"]),
    "complex": np.array([1, 1, 1, 1j]),
    "objects": np.array([1, 1, 1, [2]], object),
    "masked": np.ma.array([1, 1, 1, 1], mask=[0, 0, 0, 1]),
    "masked floats": np.ma.array([1.0, 1, 1, 1], mask=[0, 0, 0, 1]),
}


@each_case("value", RETURNED.values(), ids=RETURNED)
def test_what_is_said_of_one_record_is_nothing_to_the_others(value):
    """In a list or an array, whose type that one record decides."""
    assert answers("answers", value, 4).tolist() == [1, 1, 1, 0]
    assert predictions("predict(X)", value, 4).tolist() == [1, 1, 1, 0]
    assert losses("losses", value, 4).tolist() == [1, 1, 1, 1]
    assert Agents(X, Y, epsilon=1000.0).ask(lambda X, y: value, 4).tolist() == [1, 1, 1, 0]
    for count in (3, 5):
        with pytest.raises(ShapeError, match="answers has shape"):
            answers("answers", value, count)


PRIVATE = [name for name in SHOWN if name.startswith(("Agents", "Masked", "Local", "Curator"))]


@pytest.mark.parametrize("name", PRIVATE)
def test_nothing_is_heard_of_private_records(name, capfd, caplog):
    def g(X, y):
        warnings.warn("MARK", stacklevel=1)
        print("MARK")
        logging.getLogger("callers").error("MARK")
        return np.log(np.zeros(len(y)) - 1)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SHOWN[name](g)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_oracles_that_are_not_private_are_heard():
    with pytest.warns(RuntimeWarning, match="log"):
        EmpiricalOracle(X, Y).query(lambda X, y: np.log(np.zeros(len(y)) - 1), 0.1)
