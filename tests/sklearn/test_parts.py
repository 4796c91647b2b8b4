"""Estimators that learn from records in parts: the bits of one array or frame."""

import numpy as np
import pandas as pd
import pytest

from hdp_fast import Budget
from hdp_fast.data import Chunks
from hdp_fast.exceptions import HdpFastError
from hdp_fast.sklearn import PrivateClassifier

PARTED = pd.DataFrame(
    {
        "age": np.arange(2_000) % 90,
        "pay": np.random.default_rng(0).normal(50, 20, 2_000),
        "bit": np.arange(2_000) // 7 % 2,
    }
)
RICH = np.where(PARTED["pay"] + 20 * PARTED["bit"] > 60, "yes", "no")
ENDS = {"bounds": [(0, 90), (0, 120), (0, 1)], "classes": ["no", "yes"]}


@pytest.mark.parametrize("kind", ["frames", "arrays", "integers"])
def test_a_classifier_learns_from_parts_what_it_does_from_all(kind):
    X, y, options = PARTED, RICH, ENDS
    if kind == "integers":
        y, options = (RICH == "yes").astype(int), {**ENDS, "classes": [0, 1]}
    if kind == "arrays":
        X = PARTED.to_numpy()
        chunks = Chunks([(X[:7], y[:7]), (X[7:], y[7:])])
    else:
        table = PARTED.assign(rich=y)
        chunks = Chunks([table[:7], table[7:]], label="rich")
    whole = PrivateClassifier(epsilon=1.0, test_seed=3, **options).fit(X, y)
    parts = PrivateClassifier(epsilon=1.0, test_seed=3, **options).fit(chunks)
    assert (whole.coef_ == parts.coef_).all()
    assert whole.intercept_ == parts.intercept_
    assert parts.n_samples_fit_ == len(X)
    assert parts.n_features_in_ == 3
    assert (parts.predict(X) == whole.predict(X)).all()
    if kind != "arrays":
        assert parts.feature_names_in_.tolist() == ["age", "pay", "bit"]


def test_a_classifier_refuses_parts_that_it_cannot_learn_from():
    table = PARTED.assign(rich=RICH)
    for chunks, settings, arguments, error in (
        (Chunks([table]), {}, {}, "parts without labels"),
        (Chunks([table], label="rich"), {"classes": None}, {}, "classes = None"),
        (Chunks([table], label="rich"), {"bounds": None}, {}, "bounds"),
        (Chunks([table], label="rich"), {"method": "sgd"}, {}, "method"),
        (Chunks([table], label="rich"), {}, {"y": RICH}, "Chunks hold the labels"),
        (Chunks([table], label="rich"), {}, {"ids": RICH}, "ids were passed beside"),
        (Chunks([table, table[["age", "rich"]]], label="rich"), {}, {}, "part of shape"),
    ):
        model = PrivateClassifier(epsilon=1.0, **{**ENDS, **settings})
        budget = Budget(epsilon=1.0, delta=1e-6)
        with pytest.raises(HdpFastError, match=error):
            model.fit(chunks, **arguments, budget=budget)
        assert budget.spent == (0, 0)
