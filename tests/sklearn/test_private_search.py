"""What a private search promises beyond its guarantee."""

import math
import pickle
import warnings

import numpy as np
import pytest
from cases import each_case

pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("pandas")

import pandas
from lengths import STAT
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from hdp_fast import ParameterError, ShapeError, UtilityWarning
from hdp_fast.budget import Budget
from hdp_fast.data import Label, Number, Schema, read_table
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.record import OS_ENTROPY, TEST_STREAM, PrivacyRecord
from hdp_fast.sklearn import (
    AdaptationRegressor,
    PrivateClassifier,
    PrivateRegressor,
    PrivateSearchCV,
    held_out,
)

N = 3_000
ROWS = np.random.default_rng(0).uniform(0, 10, (N, 2))
BITS = np.where(ROWS[:, 0] > 5, "up", "low")
TARGETS = ROWS[:, 0] + ROWS[:, 1]
# Within the second bounds all records look alike.
GRID = {"bounds": [(0, 10), (1e6, 2e6)]}
CLASSIFIER = PrivateClassifier(classes=["low", "up"], method="statistics")
REGRESSOR = PrivateRegressor(target_bounds=(0, 20), method="statistics")
CASES = {"classifier": (CLASSIFIER, BITS), "regressor": (REGRESSOR, TARGETS)}


def search_for(estimator=CLASSIFIER, grid=GRID, **changed):
    return PrivateSearchCV(estimator, grid, **{"epsilon": 8.0} | changed)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("refit", [True, False])
def test_the_better_candidate_is_chosen_and_everything_is_charged_once(case, refit):
    estimator, labels = CASES[case]
    budget = Budget(10.0, 1e-5)
    search = search_for(estimator, refit=refit).fit(ROWS, labels, budget=budget)
    assert search.best_params_ == {"bounds": (0, 10)}
    assert search.best_index_ == 0
    assert budget.spent == pytest.approx((8, 1e-6))
    assert [entry.state for entry in budget.records] == ["committed"]
    assert (search.record_.epsilon, search.record_.delta) == (8.0, 1e-6)
    assert search.record_.rng == OS_ENTROPY
    price = search.plan_.refit if refit else search.plan_.fit
    assert search.best_estimator_.record_.epsilon == price.epsilon
    assert search.best_estimator_.record_.delta == price.delta
    assert 0.7 < search.best_score_ <= 1
    assert search.score(ROWS, labels) > 0.7
    assert (search.predict(ROWS) == search.best_estimator_.predict(ROWS)).all()


@pytest.mark.parametrize("case", CASES)
def test_what_is_shown_of_private_scores_is_the_released_one_alone(case):
    estimator, labels = CASES[case]
    results = search_for(estimator).fit(ROWS, labels).cv_results_
    assert set(results) == {"params", "param_bounds", "chosen"}
    assert results["chosen"].tolist() == [True, False]
    assert results["param_bounds"].tolist() == GRID["bounds"]


@pytest.mark.parametrize("case", CASES)
def test_public_records_choose_for_nothing(case):
    estimator, labels = CASES[case]
    search = search_for(estimator)
    search.fit(ROWS, labels, X_public=ROWS[:300], y_public=labels[:300])
    assert (search.plan_.choice, search.plan_.score) == (0, 0)
    scores = search.cv_results_["mean_test_score"]
    assert search.best_score_ == scores.max() == scores[0]
    assert search.cv_results_["rank_test_score"].tolist() == [1, 2]


def test_public_records_take_any_score():
    search = search_for(scoring="neg_log_loss")
    search.fit(ROWS, BITS, X_public=ROWS[:300], y_public=BITS[:300])
    assert search.best_params_ == {"bounds": (0, 10)}
    assert search.best_score_ < 0


class Spy(PrivateClassifier):
    """Notes the charge and the size of every fit."""

    fits = []  # noqa: RUF012

    def fit(self, X, y, *, budget=None):
        learned = super().fit(X, y, budget=budget)
        self.fits.append((len(X), budget.limit.epsilon, budget.spent.epsilon))
        return learned


def test_a_public_score_that_is_none_is_noted():
    search = search_for(scoring=lambda model, X, y: math.nan)
    with pytest.warns(UtilityWarning, match="no candidate a score"):
        search.fit(ROWS, BITS, X_public=ROWS[:30], y_public=BITS[:30])
    assert search.best_index_ == 0


def test_a_search_within_a_search_and_another_relation_are_refused():
    with pytest.raises(ParameterError, match="2 parameters named epsilon"):
        search_for(search_for()).fit(ROWS, BITS)
    budget = Budget(10.0, 1e-5, neighbors="add_remove")
    with pytest.raises(ParameterError, match="add_remove"):
        search_for().fit(ROWS, BITS, budget=budget)
    assert budget.spent.epsilon == 0


def test_no_fit_of_these_takes_weights_of_samples():
    assert not any(has_fit_parameter(estimator, "sample_weight") for estimator, _ in CASES.values())


def test_candidates_never_see_the_held_out_records(monkeypatch):
    monkeypatch.setattr(Spy, "fits", [])
    search = search_for(Spy(**CLASSIFIER.get_params()), holdout=0.25).fit(ROWS, BITS)
    part, whole = search.plan_.fit.epsilon, search.plan_.refit.epsilon
    assert Spy.fits == [(2_250, part, part)] * 2 + [(3_000, whole, whole)]


def test_a_budget_with_too_little_left_is_asked_before_anything_is_fit(monkeypatch):
    monkeypatch.setattr(Spy, "fits", [])
    budget = Budget(7.9, 1e-5)
    with pytest.raises(BudgetExceeded):
        search_for(Spy(**CLASSIFIER.get_params())).fit(ROWS, BITS, budget=budget)
    assert budget.spent.epsilon == 0
    assert Spy.fits == []


class Careless(PrivateClassifier):
    def fit(self, X, y, *, budget=None):
        return super().fit(X, y)


class Piecewise(PrivateClassifier):
    def fit(self, X, y, *, budget=None):
        self.set_params(epsilon=self.epsilon / 2)
        return super().fit(X, y, budget=budget)


class OtherNeighbors(PrivateClassifier):
    def fit(self, X, y, *, budget=None):
        record = PrivacyRecord(
            mechanism="m", source="s", neighbors="local", epsilon=self.epsilon, noise="n"
        )
        with budget.reserve(record):
            return self


PUBLIC = {"X_public": ROWS[:50], "y_public": BITS[:50]}
WORDED = ROWS.astype(object)
WORDED[7, 0] = "a word"


@each_case(
    ("changed", "passed", "text"),
    [
        ({"epsilon": None}, {}, "epsilon = None"),
        ({"epsilon": 0}, {}, "epsilon"),
        ({"epsilon": math.nan}, {"budget": None}, "finite and above 0"),
        ({"epsilon": -math.inf}, {"budget": None}, "finite and above 0"),
        ({"epsilon": "8"}, {"budget": None}, "finite and above 0"),
        ({"epsilon": 5e-324}, {}, "needs a part"),
        ({"delta": 5e-324}, {}, "needs a part"),
        ({"epsilon": math.inf}, {}, "charged to a budget"),
        ({"delta": 0}, {}, "delta"),
        ({"holdout": 1}, {}, "holdout"),
        ({"holdout": "some"}, {}, "holdout"),
        ({"refit": "accuracy"}, {}, "refit"),
        ({"test_seed": -1}, {}, "test_seed"),
        ({"scoring": "f1"}, {}, "X_public"),
        ({"target_bounds": (0, 1)}, {}, "only a regressor"),
        ({"grid": {"epsilon": [1, 2]}}, {}, "the search sets them"),
        ({"grid": {"other": [1]}}, {}, "other"),
        ({"grid": {"bounds": [(0, 10)], "method": ["tree"]}}, {}, "method"),
        ({"grid": []}, {}, "it must hold a candidate"),
        ({"grid": {"classes": [["low"]], "bounds": [(0, 10)]}}, {}, "1 class"),
        ({"estimator": LogisticRegression()}, {}, "its fit takes no budget"),
        ({"estimator": None}, {}, "its fit takes no budget"),
        ({"estimator": Careless(**CLASSIFIER.get_params())}, {}, "at once"),
        ({"estimator": Piecewise(**CLASSIFIER.get_params())}, {}, "at once"),
        ({"estimator": OtherNeighbors(**CLASSIFIER.get_params())}, {}, "replace_one"),
        ({"estimator": make_pipeline(CLASSIFIER, CLASSIFIER)}, {}, "2 parameters named epsilon"),
        ({}, {"X_public": ROWS}, "y_public = None"),
        ({}, PUBLIC | {"X_public": ROWS[:50, :1]}, "other columns"),
        ({}, PUBLIC | {"X_public": WORDED[:50]}, "no number"),
        ({}, PUBLIC | {"y_public": BITS[:49]}, "inconsistent"),
        ({}, PUBLIC | {"y_public": np.full(50, "other")}, "one of classes"),
        ({}, {"X": ROWS[:1], "y": BITS[:1]}, "sample"),
        ({}, {"X": ROWS[:0], "y": BITS[:0]}, "sample"),
        ({}, {"X": None}, "X = None"),
        ({}, PUBLIC | {"X_public": ROWS[:0], "y_public": BITS[:0]}, "sample"),
        ({}, {"budget": 8.0}, "budget"),
        ({}, {"X": ROWS[:9]}, "inconsistent"),
        ({}, {"X": WORDED}, "no number"),
        ({}, {"y": np.where(np.arange(N) == 7, "other", BITS)}, "one of classes"),
        ({"estimator": PrivateRegressor()}, {"y": TARGETS}, "target_bounds = None"),
        ({"estimator": REGRESSOR, "target_bounds": (1, 0)}, {"y": TARGETS}, "low must be below"),
        ({"estimator": REGRESSOR, "epsilon": 1e-13}, {"y": TARGETS}, "noise alone"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(changed, passed, text):
    budget = Budget(10.0, 1e-5)
    with pytest.raises((ValueError, TypeError), match=text):
        search_for(**changed).fit(**{"X": ROWS, "y": BITS, "budget": budget} | passed)
    assert budget.spent == (0, 0)


@pytest.mark.parametrize("is_routed", [False, True])
def test_pipelines_are_searched(is_routed):
    pipeline = make_pipeline(FunctionTransformer(), CLASSIFIER)
    budget = Budget(8.0, 1e-5)
    with config_context(enable_metadata_routing=is_routed):
        search = search_for(pipeline, {"privateclassifier__bounds": GRID["bounds"]})
        search.fit(ROWS, BITS, budget=budget)
    assert search.best_params_ == {"privateclassifier__bounds": (0, 10)}
    assert search.best_estimator_[-1].record_.epsilon == search.plan_.refit.epsilon
    assert budget.remaining.epsilon == 0


def test_its_budget_is_routed_through_a_pipeline():
    budget = Budget(8.0, 1e-5)
    with config_context(enable_metadata_routing=True):
        search = search_for().set_fit_request(budget=True)
        make_pipeline(FunctionTransformer(), search).fit(ROWS, BITS, budget=budget)
    assert budget.remaining.epsilon == 0


def test_a_cross_validation_of_a_search_charges_every_search_and_warns_of_no_rehearsal():
    budget = Budget(16.0, 1e-5)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        scores = cross_val_score(search_for(), ROWS, BITS, cv=2, params={"budget": budget})
    assert not np.isnan(scores).any()
    assert budget.remaining.epsilon == 0
    assert not any("not made" in str(entry.message) for entry in notes)
    half = {"budget": Budget(8.0, 1e-5)}
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        cross_val_score(search_for(), ROWS, BITS, cv=2, params=half, error_score=0.0)
    assert sum("not made" in str(entry.message) for entry in notes) == 1


def test_it_is_cloned_pickled_and_shown():
    search = search_for(test_seed=3)
    assert clone(search).get_params(deep=False).keys() == search.get_params(deep=False).keys()
    search.fit(ROWS, BITS)
    again = pickle.loads(pickle.dumps(search))
    assert (again.predict(ROWS) == search.predict(ROWS)).all()
    np.testing.assert_allclose(search.predict_proba(ROWS).sum(axis=1), 1)
    assert search.decision_function(ROWS).shape == (N,)
    assert not hasattr(search_for(REGRESSOR), "predict_proba")
    assert "PrivateSearchCV" in repr(search)
    assert "PrivateClassifier" in search._repr_html_()
    assert search.classes_.tolist() == ["low", "up"]


def test_a_test_stream_anywhere_is_in_the_record_and_repeats_the_search():
    estimator = clone(CLASSIFIER).set_params(test_seed=1)
    first, second = (search_for(estimator, test_seed=2).fit(ROWS, BITS) for _ in range(2))
    assert first.best_score_ == second.best_score_
    assert (first.predict_proba(ROWS) == second.predict_proba(ROWS)).all()
    assert first.record_.rng == TEST_STREAM
    assert search_for(estimator).fit(ROWS, BITS).record_.rng == TEST_STREAM
    assert search_for(test_seed=2).fit(ROWS, BITS).record_.rng == TEST_STREAM


SCHEMA = Schema(Label("unused", above=0), {"a": Number(0, 10), "b": Number(0, 10)})


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "table", "list"])
def test_records_come_in_every_container(kind, tmp_path):
    frame = pandas.DataFrame(ROWS, columns=["a", "b"])
    grid = {"schema": [SCHEMA]}
    if kind == "polars":
        frame = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    elif kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(frame.to_dict("list"))
    elif kind == "table":
        np.savez(tmp_path / "rows.npz", a=ROWS[:, 0], b=ROWS[:, 1])
        frame = read_table(tmp_path / "rows.npz")
    elif kind == "list":
        frame, grid = ROWS.tolist(), GRID
    search = search_for(grid=grid).fit(frame, BITS, X_public=frame, y_public=BITS)
    assert search.best_score_ > 0.8
    search = search_for(grid=grid).fit(frame, BITS)
    assert search.best_score_ > 0.8
    assert search.n_features_in_ == 2


DOMAIN = np.where(np.arange(N) % 3, -1, 0)
# The source has the columns in the other order.
SHIFTED = np.where(DOMAIN < 0, ROWS[:, 0], ROWS[:, 1])


@pytest.mark.parametrize("is_piped", [False, True])
def test_adaptation_is_searched_by_records_of_the_target(is_piped, monkeypatch):
    held = []
    monkeypatch.setattr(held_out, "sum_closeness", lambda p, y, b: held.append(y) or len(y) << 20)
    learner = AdaptationRegressor(target_bounds=(0, 10))
    prefix = "adaptationregressor__" if is_piped else ""
    estimator = make_pipeline(FunctionTransformer(), learner) if is_piped else learner
    budget = Budget(8.0, 1e-5)
    search = search_for(estimator, {f"{prefix}bounds": [(0, 10), (0, 20)]})
    search.fit(ROWS, SHIFTED, DOMAIN, budget=budget)
    assert budget.remaining.epsilon == 0
    assert [len(targets) for targets in held] == [400, 400]
    assert np.isin(held[0], SHIFTED[DOMAIN < 0]).all()
    if not is_piped:
        assert search.best_estimator_.domain_sizes_ == (1_000, 2_000)
        assert search.score(ROWS, SHIFTED, DOMAIN) > 0.5


def test_domains_are_for_adaptation_alone_and_have_a_row_each():
    with pytest.raises(ParameterError, match="only estimators of adaptation"):
        search_for().fit(ROWS, BITS, DOMAIN)
    learner, budget = AdaptationRegressor(target_bounds=(0, 10)), Budget(8.0, 1e-5)
    for domain, text in [(DOMAIN * 0, "no row of the target"), (DOMAIN[:9], "shape")]:
        with pytest.raises((ParameterError, ShapeError), match=text):
            search_for(learner).fit(ROWS, SHIFTED, domain, budget=budget)
    public = {"X_public": ROWS[:300], "y_public": ROWS[:300, 0]}
    assert search_for(learner).fit(ROWS, SHIFTED, DOMAIN, **public).best_index_ == 0
    assert budget.spent.epsilon == 0


def test_columns_in_another_order_are_not_public_ones():
    frame = pandas.DataFrame(ROWS, columns=["a", "b"])
    with pytest.raises(ShapeError, match="other columns"):
        search_for().fit(frame, BITS, X_public=frame[["b", "a"]], y_public=BITS)


def test_two_records_are_enough_and_their_noise_is_noted():
    with pytest.warns(UtilityWarning, match="may miss the best score"):
        search = search_for(holdout=0.9).fit(ROWS[:2], BITS[:2])
    assert 0 <= search.best_score_ <= 1
    with pytest.warns(UtilityWarning, match="1 candidate"):
        search_for(grid={"bounds": [(0, 10)]}).fit(ROWS, BITS)


def test_no_value_of_a_held_out_record_changes_more_than_a_number():
    """Targets without bounds are cut, and huge rows clipped."""
    rows, targets = ROWS.copy(), TARGETS.copy()
    rows[::2], targets[::2] = 1e308, -1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        assert 0 <= search_for(REGRESSOR).fit(rows, targets).best_score_ <= 1


def test_without_noise_the_best_score_is_chosen():
    search = search_for(epsilon=math.inf).fit(ROWS, BITS)
    assert search.plan_ is search.record_ is None
    assert search.best_score_ > 0.9


@parametrize_with_checks(
    [
        PrivateSearchCV(estimator, {"method": ["statistics"]}, epsilon=math.inf, test_seed=1)
        for estimator in (PrivateClassifier(test_seed=1), PrivateRegressor(test_seed=1))[
            : 2 if STAT else 1
        ]
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_every_check_passes_without_noise(estimator, check):
    check(estimator)
