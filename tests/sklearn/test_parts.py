"""Estimators that learn from records in parts: the bits of one array or frame."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from hdp_fast import Budget
from hdp_fast.data import Chunks, Number, Schema
from hdp_fast.exceptions import HdpFastError, ParameterError
from hdp_fast.sklearn import HybridClassifier, PrivateClassifier, PrivateRegressor

PARTED = pd.DataFrame(
    {
        "age": np.arange(2_000) % 90,
        "pay": np.random.default_rng(0).normal(50, 20, 2_000),
        "bit": np.arange(2_000) // 7 % 2,
    }
)
RICH = np.where(PARTED["pay"] + 20 * PARTED["bit"] > 60, "yes", "no")
ENDS = {"bounds": [(0, 90), (0, 120), (0, 1)], "classes": ["no", "yes"]}
RENT = PARTED["pay"].to_numpy() / 2 + 10 * PARTED["bit"].to_numpy()
OF_RENT = {"bounds": ENDS["bounds"], "target_bounds": (0, 60)}


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


@pytest.mark.filterwarnings("ignore::hdp_fast.UtilityWarning")
@pytest.mark.parametrize("kind", ["frames", "arrays", "schema"])
def test_a_panel_in_parts_is_calibrated_like_one_of_all_rows(kind):
    """Agents come apart from Chunks, and below 0 in one table."""
    X, options = PARTED, ENDS
    if kind == "arrays":
        X = PARTED.to_numpy()
    if kind == "schema":
        columns = {"age": Number(0, 90), "pay": Number(0, 120), "bit": Number(0, 1)}
        options = {"schema": Schema(None, columns), "classes": ["no", "yes"]}
    panel, agents = X[:900], X[900:]
    table = PARTED[:900].assign(rich=RICH[:900])
    chunks = Chunks([table[:0], table[:7], table[7:]], label="rich")
    if kind == "arrays":
        chunks = Chunks([(panel[:7], RICH[:7]), (panel[7:], RICH[7:900])])

    def make():
        private = PrivateClassifier(epsilon=1.0, test_seed=3, **options)
        return HybridClassifier(private, agents_epsilon=4.0, test_seed=1)

    domain = np.where(np.arange(len(X)) < 900, 0, -1)
    whole = make().fit(X, RICH, domain)
    budget = Budget(epsilon=1.0, delta=1e-6)
    parts = make().fit(chunks, agents=(agents, RICH[900:]), budget=budget)
    assert budget.spent == (1.0, 1e-6)
    assert parts.to_json() == whole.to_json()
    assert parts.domain_sizes_ == whole.domain_sizes_ == (900, 1_100)
    assert (parts.predict_proba(X) == whole.predict_proba(X)).all()
    alone = make().fit(chunks)
    assert alone.calibrated_ is None
    assert (alone.predict(X) == parts.panel_.predict(X)).all()


def test_a_panel_in_parts_is_refused_before_anything_is_spent():
    table = PARTED.assign(rich=RICH)
    chunks, agents = Chunks([table], label="rich"), (PARTED, RICH)
    private = PrivateClassifier(epsilon=1.0, **ENDS)
    model = HybridClassifier(private, agents_epsilon=4.0)
    other = HybridClassifier(LogisticRegression(), agents_epsilon=4.0)
    swapped = PARTED[["pay", "age", "bit"]]
    ids = Chunks([table.assign(who=0)], label="rich", ids="who")
    three = PrivateClassifier(epsilon=1.0, **{**ENDS, "classes": ["no", "yes", "maybe"]})
    three = HybridClassifier(three, agents_epsilon=4.0)
    for estimator, X, arguments, error in (
        (model, chunks, {"y": RICH, "agents": agents}, "beside Chunks"),
        (model, chunks, {"sample_domain": RICH, "agents": agents}, "beside Chunks"),
        (model, chunks, {"agents": PARTED}, "agents = 'DataFrame'"),
        (model, chunks, {"agents": (PARTED[:59], RICH[:59])}, "agents = 59"),
        (model, chunks, {"agents": (swapped, RICH)}, "in the same order"),
        (model, chunks, {"agents": (PARTED[["age"]], RICH)}, "agents have 1 columns"),
        (model, chunks, {"agents": (PARTED, np.full(2_000, "maybe"))}, "classes"),
        (three, chunks, {}, "multiclass"),
        (three, chunks, {"agents": agents}, "multiclass"),
        (model, ids, {"agents": agents}, "ids = 'who'"),
        (model, PARTED, {"y": RICH, "agents": agents}, "beside X and y"),
        (other, chunks, {"agents": agents}, "take a PrivateClassifier"),
    ):
        budget = Budget(epsilon=1.0, delta=1e-6)
        charge = {} if estimator is other else {"budget": budget}
        with pytest.raises(ParameterError, match=error):
            estimator.fit(X, **arguments, **charge)
        assert budget.spent == (0, 0)


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


@pytest.mark.parametrize("method", ["auto", "evidence", "statistics"])
@pytest.mark.parametrize("kind", ["frames", "arrays", "texts"])
def test_a_regression_learns_from_parts_what_it_does_from_all(kind, method):
    X, table = PARTED, PARTED.assign(rent=RENT)
    if kind == "arrays":
        X = PARTED.to_numpy()
        chunks = Chunks([(X[:7], RENT[:7]), (X[7:7], RENT[7:7]), (X[7:], RENT[7:])])
    elif kind == "texts":
        table["rent"] = [str(value) for value in RENT]
        chunks = Chunks([table[7:], table[:7]], label="rent")
    else:
        chunks = Chunks([table[7:], table[:7]], label="rent")
    model = PrivateRegressor(epsilon=2.0, test_seed=3, method=method, **OF_RENT)
    whole = model.fit(X, RENT).predict(X)
    coefficients, noise = model.coef_.copy(), model.record_
    model.fit(chunks)
    assert (model.coef_ == coefficients).all()
    assert (model.predict(X) == whole).all()
    assert model.record_ == noise
    assert (model.n_samples_fit_, model.n_features_in_) == (2_000, 3)
    assert model.target_bounds_ == (0, 60)


@pytest.mark.parametrize("method", ["auto", "evidence"])
def test_few_records_of_many_columns_are_centered_evenly_in_parts_too(method):
    rng = np.random.default_rng(2)
    X, y = rng.random((450, 30)), np.linspace(-1, 1, 450)
    model = PrivateRegressor(
        epsilon=1.0, test_seed=3, method=method, bounds=(0, 1), target_bounds=(-1, 1)
    )
    whole = model.fit(X, y).predict(X)
    model.fit(Chunks([(X[:1], y[:1]), (X[1:200], y[1:200]), (X[200:], y[200:])]))
    assert (model.rows_.center == 0.5).all()
    assert (model.predict(X) == whole).all()


def test_a_regression_refuses_parts_that_it_cannot_learn_from():
    table = PARTED.assign(rent=RENT)
    chunks, wrong = Chunks([table], label="rent"), table.assign(rent=np.nan)
    text = table.assign(rent="much")
    for records, settings, arguments, error in (
        (Chunks([table]), {}, {}, "parts without labels"),
        (chunks, {"target_bounds": None}, {}, "target_bounds = None"),
        (chunks, {"target_bounds": None, "epsilon": np.inf}, {"budget": None}, "target_bounds"),
        (chunks, {"target_bounds": (1, 0)}, {}, "target_bounds"),
        (chunks, {"bounds": None}, {}, "bounds"),
        (chunks, {"method": "sgd"}, {}, "method = 'sgd', but its steps look at records anywhere"),
        (chunks, {}, {"y": RENT}, "Chunks hold the labels"),
        (chunks, {}, {"ids": RENT}, "ids were passed beside"),
        (chunks, {"epsilon": np.inf}, {}, "only a private fit"),
        (Chunks([table, wrong], label="rent"), {}, {}, "y has an entry that is not finite"),
        (Chunks([table, text], label="rent"), {}, {}, "y has an entry that is no number"),
        (Chunks([table, table[["age", "rent"]]], label="rent"), {}, {}, "part of shape"),
    ):
        model = PrivateRegressor(**{"epsilon": 1.0, **OF_RENT, **settings})
        budget = Budget(epsilon=1.0, delta=1e-6)
        with pytest.raises(HdpFastError, match=error):
            model.fit(records, **{"budget": budget, **arguments})
        assert budget.spent == (0, 0)
    model = PrivateRegressor(epsilon=1.0, **OF_RENT)
    model.fit(chunks, budget=budget)
    assert budget.spent == (1.0, 1e-6)


@pytest.mark.parametrize(("learner", "y"), [
    (PrivateClassifier(epsilon=1.0, test_seed=3, method="statistics", **ENDS), RICH),
    (PrivateRegressor(epsilon=1.0, test_seed=3, method="statistics", **OF_RENT), RENT),
])  # fmt: skip
def test_statistics_are_sums_of_parts(learner, y):
    whole = learner.fit(PARTED, y).predict(PARTED)
    table = PARTED.assign(label=y)
    learner.fit(Chunks([table[:1], table[1:1_000], table[1_000:]], label="label"))
    assert learner.method_ == "statistics"
    assert (learner.predict(PARTED) == whole).all()


def test_errors_show_no_label():
    with pytest.raises(HdpFastError) as caught:
        PrivateClassifier(epsilon=1.0, **ENDS).fit(Chunks([PARTED]), y=["secret"])
    assert "secret" not in str(caught.value)
