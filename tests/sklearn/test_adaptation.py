"""What the estimators of adaptation promise beyond the contract of scikit-learn."""

import math
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("pandas")

import pandas
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from hdp_fast import ParameterError, ShapeError, UtilityWarning, accounting
from hdp_fast.budget import Budget
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.learners import FeatureMap, SufficientStatistics
from hdp_fast.learners.statistics_noise import noise_mu_squared
from hdp_fast.learners.sufficient_statistics import calibrate, describe_release
from hdp_fast.sklearn import (
    AdaptationClassifier,
    AdaptationRegressor,
    PrivateClassifier,
    PrivateRegressor,
    adaptation_estimators,
)
from hdp_fast.sklearn import (
    row_labels as domain_scores,
)
from hdp_fast.sklearn.adaptation_models import share_of_class

pytestmark = pytest.mark.filterwarnings("ignore::hdp_fast.UtilityWarning")
RNG = np.random.default_rng(0)
N = 1_200
ROWS = RNG.uniform(0, 10, (N, 2))
# A third of the rows are of the target, here and there.
DOMAIN = np.where(np.arange(N) % 3 == 1, -2, 7)
TARGET = DOMAIN < 0
SLOPES = np.where(TARGET, -0.4, 0.5)
VALUES = 5 + SLOPES * (ROWS[:, 0] - 5) + RNG.normal(0, 0.3, N)
TEXTS = np.where((ROWS[:, 0] > 5) == TARGET, "low", "up")
CORNERS = np.array([[0, 0], [10, 0], [5, 10]])
NEAREST = np.linalg.norm(ROWS[:, None] - CORNERS, axis=2).argmin(axis=1)
THREE = np.array(["a", "b", "c"])[(NEAREST + TARGET) % 3]


def regressor(**changed):
    settings = {"epsilon": 4.0, "bounds": (0, 10), "target_bounds": (0, 10), "test_seed": 1}
    return AdaptationRegressor(**settings | changed)


def classifier(**changed):
    settings = {"epsilon": 4.0, "bounds": (0, 10), "classes": ["low", "up"], "test_seed": 1}
    return AdaptationClassifier(**settings | changed)


@pytest.mark.parametrize("epsilon", [4.0, math.inf])
@pytest.mark.parametrize(
    ("settings", "method"),
    [
        ({}, "moments"),
        ({"alpha": 0.05}, "descent"),
        ({"method": "descent", "alpha": 0.05}, "descent"),
        ({"private": "source", "alpha": 0.05}, "descent"),
    ],
)
def test_each_method_learns_the_target(settings, method, epsilon):
    model = regressor(epsilon=epsilon, **settings).fit(ROWS, VALUES, DOMAIN)
    assert (model.method_, model.domain_sizes_) == (method, (800, 400))
    assert model.score(ROWS, VALUES, DOMAIN) > 0.5
    assert (model.record_ is None) == (epsilon == math.inf)
    learner = classifier(epsilon=epsilon, **settings).fit(ROWS, TEXTS, DOMAIN)
    assert learner.method_ == method
    assert learner.score(ROWS, TEXTS, DOMAIN) > 0.8
    shares = learner.predict_proba(ROWS)
    assert (learner.classes_[shares.argmax(axis=1)] == learner.predict(ROWS)).mean() > 0.99


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.05}])
def test_more_classes_share_one_budget(settings):
    budget = Budget(4.0, 1e-6)
    learner = classifier(classes=["a", "b", "c"], **settings)
    learner.fit(ROWS, THREE, DOMAIN, budget=budget)
    assert budget.remaining.epsilon == 0
    assert len(budget.records) == 1
    assert (learner.record_.epsilon, learner.record_.delta) == (4.0, 1e-6)
    assert learner.score(ROWS, THREE, DOMAIN) > 0.5
    assert learner.decision_function(ROWS).shape == (N, 3)
    np.testing.assert_allclose(learner.predict_proba(ROWS).sum(axis=1), 1)


@pytest.mark.parametrize("classes", [3, 10, 100])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-3), (1.0, 1e-6), (8.0, 1e-9)])
def test_the_noise_of_all_classes_together_keeps_the_promise(classes, epsilon, delta):
    share = share_of_class(epsilon, delta, classes)
    described = SufficientStatistics(
        FeatureMap.identity(3, norm_bound=1.0), label_bound=1.25, second_moments=True, ratio=1.2
    )
    noise = calibrate(described, 400, *share)
    squared = noise_mu_squared(describe_release(described), noise)

    def total(count):
        return accounting.gaussian_epsilon(math.sqrt(Fraction(count) * squared), delta)

    assert epsilon * 0.99 < total(classes) <= epsilon
    assert total(classes + 1) > epsilon


@pytest.mark.parametrize("make", [regressor, classifier])
@pytest.mark.parametrize("private", ["target", "source"])
def test_only_the_public_domain_shapes_the_columns(make, private):
    """What scales the columns and sizes the noise moves with no private record."""
    labels = (VALUES if make is regressor else TEXTS)[:60]
    moved = (TARGET if private == "target" else ~TARGET)[:60]
    rows, others = ROWS[:60], ROWS[:60].copy()
    others[moved] = 10 - others[moved] ** 2 / 10
    # A center of all rows would move.
    assert (rows.mean(axis=0) != others.mean(axis=0)).all()
    fits = [
        make(private=private, alpha=alpha).fit(X, labels, DOMAIN[:60])
        for alpha in (None, 0.5)
        for X in (rows, others)
    ]
    for first, second in (fits[:2], fits[2:]):
        assert (first.rows_.center == second.rows_.center).all()
        assert (first.rows_.factor == second.rows_.factor).all()
        settings = [
            {name: part for name, part in vars(fit.model_).items() if name[-1] != "_"}
            for fit in (first, second)
        ]
        kept = {"radius", "norm_bound", "kappa_1", "clip", "alpha", "steps"}
        for name in kept & settings[0].keys():
            assert settings[0][name] == settings[1][name], name
        assert first.record_ == second.record_


# What scikit-learn's tools do with both domains ---------------------------------------------------

FOLDS = list(StratifiedKFold(3).split(ROWS, TARGET))
GRID = {"alpha": [0.01, 0.5, 0.99]}


def seen(monkeypatch):
    """Collects what fits and scores see: numbers of source and target rows, or those scored."""
    shown = []
    for module, name in ((adaptation_estimators, "read_domains"), (domain_scores, "read_scored")):
        read = getattr(module, name)

        def show(domains, n, name=name, read=read):
            is_target = read(domains, n)
            shown.append((name, int((~is_target).sum()), int(is_target.sum())))
            return is_target

        monkeypatch.setattr(module, name, show)
    return shown


def test_a_search_chooses_the_share_that_is_right_for_the_target(monkeypatch):
    shown = seen(monkeypatch)
    search = GridSearchCV(regressor(epsilon=math.inf), GRID, cv=FOLDS)
    with config_context(enable_metadata_routing=True):
        search.fit(ROWS, VALUES, sample_domain=DOMAIN)
        assert search.score(ROWS, VALUES, sample_domain=DOMAIN) > 0.8
    assert search.best_params_ == {"alpha": 0.01}
    assert search.best_score_ > 0.8
    sizes = [(int((~TARGET[a]).sum()), int(TARGET[a].sum())) for a, _ in FOLDS]
    fits = [entry[1:] for entry in shown if entry[0] == "read_domains"]
    # Each fit has the target rows of its fold, all of them, and the last one has all rows.
    assert fits == [*sizes * 3, (800, 400)]
    scored = [entry[2] for entry in shown if entry[0] == "read_scored"]
    assert scored == [int(TARGET[b].sum()) for _, b in FOLDS] * 3 + [400]


def test_a_score_of_all_rows_would_choose_the_wrong_share():
    search = GridSearchCV(regressor(epsilon=math.inf), GRID, cv=FOLDS, scoring="r2")
    with config_context(enable_metadata_routing=True):
        search.fit(ROWS, VALUES, sample_domain=DOMAIN)
    assert search.best_params_ != {"alpha": 0.01}
    search.set_params(scoring=None)
    # Without routing the domains reach fit, but no score: it is refused, and not guessed.
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        search.fit(ROWS, VALUES, sample_domain=DOMAIN)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
    assert any("needs them" in str(warning.message) for warning in shown)


def test_a_search_without_domains_is_told_that_alpha_has_no_effect():
    with pytest.warns(UtilityWarning, match=r"alpha = 0.5 has no effect"):
        regressor(epsilon=math.inf, alpha=0.5).fit(ROWS, VALUES)


def test_folds_that_lack_a_domain_are_refused():
    order = np.argsort(TARGET, kind="stable")
    with (
        config_context(enable_metadata_routing=True),
        warnings.catch_warnings(record=True) as shown,
    ):
        warnings.simplefilter("always")
        scores = cross_val_score(
            regressor(epsilon=math.inf),
            ROWS[order],
            VALUES[order],
            cv=3,
            params={"sample_domain": DOMAIN[order]},
        )
    assert np.isnan(scores).all()
    assert all("no row of the target" in str(warning.message) for warning in shown)


def test_domains_reach_the_end_of_a_pipeline():
    pipeline, budget = make_pipeline(FunctionTransformer(), classifier()), Budget(4.0, 1e-6)
    settings = {"sample_domain": DOMAIN, "budget": budget}
    pipeline.fit(ROWS, TEXTS, **{f"adaptationclassifier__{k}": v for k, v in settings.items()})
    assert budget.remaining.epsilon == 0
    with config_context(enable_metadata_routing=True):
        pipeline.fit(ROWS, TEXTS, sample_domain=DOMAIN)
        assert pipeline.score(ROWS, TEXTS, sample_domain=DOMAIN) > 0.8
    again = pickle.loads(pickle.dumps(pipeline))
    assert (again.predict(ROWS) == pipeline.predict(ROWS)).all()
    assert "AdaptationClassifier" in pipeline._repr_html_()
    assert clone(pipeline[-1]).get_params() == pipeline[-1].get_params()


def test_a_fit_keeps_no_budget():
    with pytest.raises(BudgetExceeded):
        regressor().fit(ROWS, VALUES, DOMAIN, budget=Budget(3.9, 1e-6))
    model = regressor().fit(ROWS, VALUES, DOMAIN, budget=Budget(4.0, 1e-6))
    assert pickle.loads(pickle.dumps(model)).predict(ROWS[:1]) == model.predict(ROWS[:1])


# Domains ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "domains",
    [
        DOMAIN.tolist(),
        DOMAIN.astype(np.float32),
        pandas.Series(DOMAIN),
        pandas.Series(DOMAIN, dtype="Int64"),
        DOMAIN.astype(object),
        np.where(TARGET, -1, 0).astype(np.int8),
        np.where(TARGET, np.arange(N) % 4 - 9, np.arange(N) % 5),
    ],
)
def test_domains_come_as_integers_of_any_kind(domains):
    same = regressor().fit(ROWS, VALUES, DOMAIN)
    model = regressor().fit(ROWS, VALUES, domains)
    assert (model.predict(ROWS) == same.predict(ROWS)).all()
    assert model.score(ROWS, VALUES, domains) == same.score(ROWS[TARGET], VALUES[TARGET], -1)


@each_case(
    ("domains", "text"),
    [
        (TARGET, "bool"),
        (TARGET.astype(object), "integers"),
        (np.full(N, -1), "no row of the source"),
        (np.zeros(N, int), "no row of the target"),
        (-1, "shape"),
        (DOMAIN[:-1], "shape"),
        (DOMAIN[:, None], "shape"),
        (DOMAIN + 0.5, "integers"),
        (np.where(TARGET, -1, math.nan), "integers"),
        (np.where(TARGET, -1, math.inf), "integers"),
        (np.where(TARGET, "target", "source"), "integers"),
        (np.where(TARGET, None, 1), "integers"),
        (pandas.Series(DOMAIN, dtype="Int64").where(TARGET), "integers"),
        ([], "shape"),
        ({}, "list"),
        ("target", "list"),
    ],
)
def test_other_domains_are_refused_before_anything_is_spent(domains, text):
    budget = Budget(4.0, 1e-6)
    with pytest.raises((ParameterError, ShapeError), match=text):
        regressor().fit(ROWS, VALUES, domains, budget=budget)
    assert budget.remaining.epsilon == 4


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"private": "both"}, "private"),
        ({"method": "sgd"}, "method"),
        ({"method": "moments", "alpha": 0.5}, "method"),
        ({"method": "moments", "private": "source"}, "method"),
        ({"alpha": 0}, "alpha"),
        ({"alpha": "much"}, "alpha"),
        ({"epsilon": None}, "epsilon"),
        ({"epsilon": 1e-12, "delta": 1e-15}, "epsilon"),
        ({"epsilon": math.inf}, "budget"),
        ({"bounds": None}, "bounds"),
        ({"target_bounds": None}, "target_bounds"),
    ],
)
def test_settings_are_checked_before_anything_is_spent(changed, text):
    budget = Budget(4.0, 1e-6)
    with pytest.raises(ParameterError, match=text):
        regressor(**changed).fit(ROWS, VALUES, DOMAIN, budget=budget)
    if "target_bounds" in changed:
        changed, text = {"classes": None}, "classes"
    learner = classifier(**changed)
    with pytest.raises(ParameterError, match=text):
        learner.fit(ROWS, TEXTS, DOMAIN, budget=budget)
    assert budget.remaining.epsilon == 4


def test_targets_must_be_numbers():
    for values, text in ((TEXTS, "no number"), (np.where(TARGET, math.inf, VALUES), "inf")):
        with pytest.raises(ValueError, match=text):
            regressor().fit(ROWS, values, DOMAIN)


def test_a_score_must_know_its_domains():
    model = regressor().fit(ROWS, VALUES, DOMAIN)
    for domains, text in ((None, "needs them"), (1, "no row"), (DOMAIN[1:], "shape")):
        with pytest.raises((ParameterError, ShapeError), match=text):
            model.score(ROWS, VALUES, domains)
    with pytest.raises(ParameterError, match="integers"):
        model.score(ROWS, VALUES, np.full(N, 0.5))  # weights in the wrong place
    weights = np.where(np.arange(N) % 2, 1.0, 0.0)
    odd = ROWS[1::2], VALUES[1::2], DOMAIN[1::2]
    assert model.score(ROWS, VALUES, DOMAIN, weights) == pytest.approx(model.score(*odd))


def test_one_population_is_learned_from_as_without_adaptation():
    some, values, labels = ROWS[:60], VALUES[:60], TEXTS[:60]
    model = regressor().fit(some, values)
    alone = PrivateRegressor(epsilon=4.0, bounds=(0, 10), target_bounds=(0, 10), test_seed=1)
    assert (model.predict(ROWS) == alone.fit(some, values).predict(ROWS)).all()
    assert model.domain_sizes_ is None
    assert model.record_.epsilon == 4
    assert model.score(ROWS, VALUES) == alone.score(ROWS, VALUES)
    learner = classifier(epsilon=math.inf).fit(some, labels)
    other = PrivateClassifier(epsilon=math.inf, bounds=(0, 10), classes=["low", "up"], test_seed=1)
    assert (learner.predict_proba(ROWS) == other.fit(some, labels).predict_proba(ROWS)).all()
    with pytest.raises(ParameterError, match="one population"):
        regressor(method="descent").fit(some, values)


def test_frames_with_a_schema_hold_both_domains():
    schema = Schema(
        Label("y", above=0), {"age": Number(0, 10), "place": Category(("town", "village"))}
    )
    frame = pandas.DataFrame({"place": np.where(TARGET, "town", "village"), "age": ROWS[:, 0]})
    model = regressor(bounds=None, schema=schema).fit(frame, VALUES, DOMAIN)
    assert list(model.feature_names_in_) == ["place", "age"]
    assert (model.predict(frame[["age", "place"]]) == model.predict(frame)).all()
    plain = regressor().fit(frame[["age"]], VALUES, DOMAIN)
    with pytest.raises(ValueError, match="feature names"):
        plain.predict(frame[["age"]].rename(columns={"age": "years"}))


@pytest.mark.parametrize("sizes", [(1, 1), (1, 3), (3, 1)])
@pytest.mark.parametrize("private", ["source", "target"])
@pytest.mark.parametrize("epsilon", [0.01, math.inf])
def test_tiny_and_constant_domains_are_learned_from(sizes, private, epsilon):
    m, n = sizes
    X, domains = np.full((m + n, 2), 3.0), np.repeat([0, -1], sizes)
    bits = np.where(np.arange(m + n) % 2, "up", "low")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UtilityWarning)
        model = regressor(private=private, epsilon=epsilon).fit(X, X[:, 0], domains)
        assert np.isfinite(model.predict(X)).all()
        learner = classifier(private=private, epsilon=epsilon).fit(X, bits, domains)
        assert np.isfinite(learner.predict_proba(X)).all()
