"""What functions of a caller are shown: arrays that they cannot change."""

from types import SimpleNamespace

import numpy as np
import pytest

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
    "simulate_local": lambda g: simulate_local(BinaryResponse(1), g, ExactOracle(X, Y), beta=0.1),
    "SimulatedEntry": lambda g: SimulatedEntry(ExactOracle(X, Y), beta=0.1).apply(
        BinaryResponse(1.0), g
    ),
}


def bases(shown):
    """An array, a view of it and all arrays that they are views of."""
    yield shown[:1]
    while isinstance(shown, np.ndarray):
        yield shown
        shown = shown.base


@pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN)
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
    assert np.shares_memory(seen[0], values) or not values.size
