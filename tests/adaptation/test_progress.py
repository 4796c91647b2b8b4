"""Bars over steps and combinations, and none that would count private trials."""

import math
import sys

import numpy as np
import pytest

from hdp_fast.adaptation import ConvexAdaptation, NonConvexAdaptation, tune
from hdp_fast.budget import Budget
from hdp_fast.exceptions import ParameterError

SETTINGS = {"norm_bound": 2.0, "alpha": 0.5}


class Bar:
    """Notes how far it has come."""

    def __init__(self, total, unit, **_looks):
        self.total, self.unit, self.done = total, unit, 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def update(self, done=1):
        self.done += done


@pytest.fixture
def bars(monkeypatch):
    made = []

    def make(**looks):
        made.append(Bar(**looks))
        return made[-1]

    monkeypatch.setattr(pytest.importorskip("tqdm"), "tqdm", make)
    return made


def data(labels=None):
    rng = np.random.default_rng(1)
    made = []
    for n in (40, 20):
        X = rng.uniform(-1, 1, (n, 2))
        made += [X, X[:, 0] > 0 if labels == "bits" else X[:, 0]]
    return made


@pytest.mark.parametrize("variant", ["tight", "paper"])
def test_a_bar_over_steps(bars, variant):
    model = ConvexAdaptation(epsilon=1.0, steps=7, variant=variant, **SETTINGS)
    model.fit(*data(), random_state=1)
    assert bars == []
    model.fit(*data(), progress=True, random_state=1)
    assert [(bar.total, bar.done, bar.unit) for bar in bars] == [(7, 7, "step")]


def test_an_optimum_has_no_steps(bars):
    ConvexAdaptation(epsilon=math.inf, **SETTINGS).fit(*data(), progress=True, random_state=1)
    assert bars == []


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_steps_for_the_public_records_count(bars, epsilon):
    model = NonConvexAdaptation(epsilon=epsilon, steps=5, iterate="last", **SETTINGS)
    model.fit(*data("bits"), progress=True, random_state=1)
    assert [(bar.total, bar.done) for bar in bars] == [(105, 105)]


def test_a_bar_over_combinations(bars):
    model, grid = ConvexAdaptation(epsilon=1.0, steps=3, **SETTINGS), {"kappa_1": [0.1, 0.2, 0.3]}
    tune(model, grid, *data(), method="not_private", progress=True, random_state=1)
    assert [(bar.total, bar.done, bar.unit) for bar in bars] == [(3, 3, "fit")]


def test_private_trials_are_not_counted(bars, caplog):
    budget = Budget(2.0, delta=1e-5)
    model, grid = ConvexAdaptation(epsilon=1.0, steps=3, **SETTINGS), {"kappa_1": [0.1, 0.2]}
    with pytest.raises(ParameterError, match="progress = True"):
        tune(model, grid, *data(), progress=True, budget=budget, random_state=1)
    assert budget.spent.epsilon == 0
    caplog.set_level("INFO", logger="hdp_fast")
    for _ in range(20):
        caplog.clear()
        tune(model, grid, *data())
        assert [record.message for record in caplog.records] == [
            "adaptation.tune: trials of 2 combinations",
            "adaptation.tune: chosen",
        ]
    assert bars == []


def test_without_tqdm_nothing_is_spent(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    budget = Budget(2.0, delta=1e-5)
    with pytest.raises(ImportError, match=r"hdp-fast\[progress\]"):
        ConvexAdaptation(epsilon=1.0, **SETTINGS).fit(
            *data(), progress=True, budget=budget, random_state=1
        )
    assert budget.spent.epsilon == 0
