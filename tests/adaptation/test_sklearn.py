"""Estimators of adaptation in scikit-learn's tools: a search is refused before any fit."""

import numpy as np
import pytest

from hdp_fast import adaptation
from hdp_fast.exceptions import ParameterError

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

PRIVATE = {"epsilon": 0.5, "delta": 1e-6}
KINDS = {
    "KernelMeanMatching": ({}, "l2"),
    "DiscrepancyMinimization": ({}, "l2"),
    "PrivateDiscrepancyMinimization": (PRIVATE, "l2"),
    "TargetSGD": (PRIVATE, "radius"),
    "ConvexAdaptation": (PRIVATE, "kappa_1"),
    "NonConvexAdaptation": (PRIVATE, "lambda_1"),
}
GRID = [0.1, 0.5]
X = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 3))
Y = (X[:, 0] > 0).astype(int)
# As many records as the source has: scikit-learn would cut them by the source's folds.
TARGET = {"X_target": -X, "y_target": 1 - Y}


def searched(search):
    def run(model, name):
        return search(model, {name: GRID}, scoring="accuracy", cv=2, **OPTIONS[search]).fit(
            X, Y, **TARGET
        )

    return run


OPTIONS = {GridSearchCV: {"error_score": np.nan}, RandomizedSearchCV: {"n_iter": 2}}
TOOLS = {
    "clone": lambda model, name: clone(model),
    "clone of a pipeline": lambda model, name: clone(make_pipeline(StandardScaler(), model)),
    "grid search": searched(GridSearchCV),
    "random search": searched(RandomizedSearchCV),
    "cross-validation": lambda model, name: cross_val_score(
        model, X, Y, scoring="accuracy", cv=2, params=TARGET
    ),
}


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_search_is_refused_before_any_fit(kind, tool, monkeypatch):
    given, name = KINDS[kind]
    made = getattr(adaptation, kind)
    monkeypatch.setattr(made, "fit", lambda *_: pytest.fail("was fitted"))
    model = made(**given)
    with pytest.raises(ParameterError, match=rf"^{kind} .*adaptation\.tune.*AdaptationReg"):
        TOOLS[tool](model, name)


def test_tuning_needs_no_clone():
    model = adaptation.ConvexAdaptation(**PRIVATE, steps=1)
    found = adaptation.tune(
        model, {"kappa_1": GRID}, X, 1.0 * Y, -X, 1.0 - Y, trials=2.0, random_state=0
    )
    assert found.parameters["kappa_1"] in GRID
