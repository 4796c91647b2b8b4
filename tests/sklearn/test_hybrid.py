"""The calibrated classifier of a panel: what it promises, and the contract of scikit-learn."""

import math
import pickle

import lengths
import numpy as np
import pytest
from cases import each_case

pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("pandas")

import pandas
from sklearn import config_context
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from hdp_fast import ParameterError, ShapeError, UtilityWarning, local
from hdp_fast.budget import Budget
from hdp_fast.exceptions import BudgetExceeded
from hdp_fast.learners import PrivateModel
from hdp_fast.sklearn import HybridClassifier, PrivateClassifier, PrivateRegressor

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
PANEL, AGENTS = 2_000, 10_000
N = PANEL + AGENTS
ROWS = RNG.normal(0, 2, (N, 2))
DOMAIN = np.where(np.arange(N) % 6 == 0, 3, -1)
IS_AGENT = DOMAIN < 0
# The same things count in both, but in the target yes is rarer.
ODDS = ROWS[:, 0] - np.where(IS_AGENT, 2.5, 0.0)
TEXTS = np.where(RNG.random(N) < 1 / (1 + np.exp(-ODDS)), "yes", "no")


def panel(**changed):
    settings = {"epsilon": 1.0, "bounds": (-8, 8), "classes": ["no", "yes"], "test_seed": 2}
    return PrivateClassifier(**settings | {"method": "statistics"} | changed)


def hybrid(estimator=None, **changed):
    settings = {"agents_epsilon": 4.0, "test_seed": 1}
    return HybridClassifier(panel() if estimator is None else estimator, **settings | changed)


def log_loss(model):
    shares = model.predict_proba(ROWS[IS_AGENT])[:, 1].clip(1e-9, 1 - 1e-9)
    yes = TEXTS[IS_AGENT] == "yes"
    return -np.where(yes, np.log(shares), np.log(1 - shares)).mean()


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
@pytest.mark.parametrize("estimator", [panel(), LogisticRegression(), LinearSVC()])
def test_probabilities_are_calibrated_for_the_target(estimator, method):
    model = hybrid(estimator, method=method).fit(ROWS, TEXTS, DOMAIN)
    alone = hybrid(estimator).fit(ROWS[~IS_AGENT], TEXTS[~IS_AGENT])
    assert alone.calibrated_ is None
    assert log_loss(model) < log_loss(alone) - 0.1
    assert model.score(ROWS, TEXTS, DOMAIN) > alone.score(ROWS[IS_AGENT], TEXTS[IS_AGENT]) + 0.04
    base = (TEXTS[IS_AGENT] == "yes").mean()
    assert abs(model.predict_proba(ROWS[IS_AGENT])[:, 1].mean() - base) < 0.05
    assert (model.predict(ROWS) == np.where(model.decision_function(ROWS) > 0, "yes", "no")).all()
    assert model.domain_sizes_ == (PANEL, AGENTS)


def test_both_records_are_kept():
    budget = Budget(1.0, 1e-6)
    model = hybrid().fit(ROWS, TEXTS, DOMAIN, budget=budget)
    assert budget.remaining.epsilon == 0
    assert (model.record_.epsilon, model.record_.neighbors) == (1.0, "replace_one")
    assert (model.agents_record_.epsilon, model.agents_record_.delta) == (4.0, 0.0)
    other = hybrid(LogisticRegression()).fit(ROWS, TEXTS, DOMAIN)
    assert other.record_ is None
    assert other.agents_record_.epsilon == 4


def test_nothing_of_agents_but_their_answers_enters_the_model(monkeypatch):
    """With the same answers, other rows and labels of agents give the same estimator."""
    true = local.Agents.ask
    answers = []

    def record(self, question, count, **options):
        answers.append(true(self, question, count, **options))
        return answers[-1]

    def replay(self, question, count, **options):
        true(self, question, count, **options)
        return answers.pop(0)

    monkeypatch.setattr(local.Agents, "ask", record)
    first = hybrid().fit(ROWS, TEXTS, DOMAIN)
    assert sum(map(len, answers)) == AGENTS
    monkeypatch.setattr(local.Agents, "ask", replay)
    others = np.where(IS_AGENT[:, None], -ROWS, ROWS)
    second = hybrid().fit(others, np.where(IS_AGENT, "yes", TEXTS), DOMAIN)
    assert pickle.dumps(first) == pickle.dumps(second)


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
@pytest.mark.parametrize("learner", ["sgd", "statistics"])
def test_to_json_is_a_private_model_with_its_calibration(learner, method):
    model = hybrid(panel(method=learner), method=method).fit(ROWS, TEXTS, DOMAIN)
    released = PrivateModel.from_json(model.to_json(label="buys"))
    rows = {"x0": ROWS[:, 0], "x1": ROWS[:, 1]}
    np.testing.assert_allclose(released.probabilities(rows), model.predict_proba(ROWS), atol=1e-6)
    assert (released.record, released.agents_record) == (model.record_, model.agents_record_)
    assert released.calibration is not None
    alone = hybrid(panel(method=learner)).fit(ROWS[~IS_AGENT], TEXTS[~IS_AGENT])
    assert PrivateModel.from_json(alone.to_json()).calibration is None
    other = hybrid(LogisticRegression()).fit(ROWS, TEXTS, DOMAIN)
    with pytest.raises(ParameterError, match="only a PrivateClassifier is written"):
        other.to_json()


def test_agents_are_asked_in_an_order_that_tells_nothing():
    order = np.argsort(TEXTS, kind="stable")
    model = hybrid().fit(ROWS[order], TEXTS[order], DOMAIN[order])
    assert model.calibrated_.outcome == "calibrated"
    assert log_loss(model) < log_loss(hybrid().fit(ROWS[~IS_AGENT], TEXTS[~IS_AGENT])) - 0.1


def test_it_is_searched_and_pickled():
    some = np.arange(3_000)
    folds = list(StratifiedKFold(2).split(ROWS[some], DOMAIN[some]))
    search = GridSearchCV(
        hybrid(make_pipeline(StandardScaler(), LogisticRegression())),
        {"method": ["logistic", "isotonic"], "estimator__logisticregression__C": [1.0]},
        cv=folds,
        error_score="raise",
    )
    with config_context(enable_metadata_routing=True):
        search.fit(ROWS[some], TEXTS[some], sample_domain=DOMAIN[some])
    model = search.best_estimator_
    assert model.domain_sizes_ == (500, 2_500)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(ROWS) == model.predict_proba(ROWS)).all()
    assert repr(clone(model).get_params()) == repr(model.get_params())
    assert "HybridClassifier" in model._repr_html_()


def test_frames_keep_their_names_and_order():
    frame = pandas.DataFrame(ROWS, columns=["a", "b"])
    model = hybrid(LogisticRegression()).fit(frame, TEXTS, DOMAIN)
    assert list(model.feature_names_in_) == ["a", "b"]
    same = hybrid(LogisticRegression()).fit(ROWS, TEXTS, DOMAIN)
    # Columns of a frame lie apart in memory, and sums may round otherwise.
    np.testing.assert_allclose(model.predict_proba(frame), same.predict_proba(ROWS), atol=1e-3)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["b", "a"]])


@each_case(
    ("settings", "changed", "text"),
    [
        ({"agents_epsilon": None}, {}, "agents_epsilon = None"),
        ({"agents_epsilon": 0}, {}, "agents_epsilon"),
        ({"agents_epsilon": math.inf}, {}, "agents_epsilon"),
        ({"agents_epsilon": 1e-30}, {}, "epsilon"),
        ({"method": "beta"}, {}, "method"),
        ({"test_seed": -1}, {}, "test_seed"),
        ({"estimator": panel(classes=["no", "yes", "perhaps"])}, {}, "Only binary"),
        ({"estimator": panel(classes=["no", "ja"])}, {}, "one of classes"),
        ({"estimator": panel(classes=None)}, {}, "classes = None"),
        ({"estimator": LogisticRegression()}, {}, "takes none"),
        ({}, {"sample_domain": np.where(np.arange(N) < 59, -1, 0)}, "at least 60"),
        ({}, {"sample_domain": IS_AGENT}, "integers"),
        ({}, {"sample_domain": np.full(N, -1)}, "no row of the source"),
        ({}, {"sample_domain": DOMAIN[1:]}, "shape"),
        ({}, {"X": np.where(IS_AGENT[:, None], "a word", ROWS.astype(object))}, "no number"),
        ({}, {"y": np.where(np.arange(N) == 1, "perhaps", TEXTS)}, "one of classes"),
        ({}, {"y": TEXTS[1:]}, "inconsistent"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_is_spent(settings, changed, text):
    budget = Budget(1.0, 1e-6)
    data = {"X": ROWS, "y": TEXTS, "sample_domain": DOMAIN} | changed
    with pytest.raises((ParameterError, ShapeError, ValueError), match=text):
        hybrid(**settings).fit(**data, budget=budget)
    assert budget.remaining.epsilon == 1


def test_a_small_budget_asks_nobody(monkeypatch):
    monkeypatch.setattr(local.Agents, "ask", lambda *_, **__: pytest.fail("was asked"))
    with pytest.raises(BudgetExceeded):
        hybrid().fit(ROWS, TEXTS, DOMAIN, budget=Budget(0.5, 1e-6))


def test_no_classifier_and_three_classes_are_refused():
    with pytest.raises((TypeError, AttributeError, ValueError)):
        hybrid(PrivateRegressor(epsilon=1.0)).fit(ROWS, TEXTS, DOMAIN)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        hybrid(LogisticRegression()).fit(ROWS, np.arange(N) % 3, DOMAIN)


def test_few_agents_leave_the_model_as_it_was_and_say_so():
    some = np.flatnonzero(~IS_AGENT).tolist() + np.flatnonzero(IS_AGENT)[:60].tolist()
    data = ROWS[some], TEXTS[some], DOMAIN[some]
    with pytest.warns(UtilityWarning, match="returned as it was"):
        model = hybrid(agents_epsilon=0.1).fit(*data)
    alone = hybrid().fit(ROWS[~IS_AGENT], TEXTS[~IS_AGENT])
    np.testing.assert_allclose(model.predict_proba(ROWS), alone.predict_proba(ROWS))


# The contract of scikit-learn ---------------------------------------------------------------------


class WithAgents(HybridClassifier):
    """Takes most rows of the checks for agents, where there are enough."""

    def fit(self, X, y, sample_domain=None):
        rows = 0 if y is None else len(np.asarray(y))
        return super().fit(X, y, -(np.arange(rows) % 5) if rows > 90 else None)

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, -1, sample_weight)


class Declared(HybridClassifier):
    """Takes the classes of the checks' labels for public, for the test alone."""

    def fit(self, X, y, sample_domain=None):
        labels = np.asarray(y)
        plain = labels.ndim and labels.dtype.kind in "iubOUf"
        names = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels)
        kept = self.estimator
        try:
            self.estimator = clone(kept).set_params(
                classes=names if plain and 1 < len(names) < 9 else [0, 1]
            )
            return super().fit(X, y, sample_domain)
        finally:
            self.estimator = kept

    def __sklearn_tags__(self):
        """A good score is impossible: noise at epsilon 1 hides what some dozen records tell."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


CHECKED = [
    HybridClassifier(
        PrivateClassifier(epsilon=math.inf, test_seed=0), agents_epsilon=20.0, test_seed=1
    ),
    Declared(
        PrivateClassifier(epsilon=1.0, bounds=(-20, 20), method="statistics", test_seed=0),
        agents_epsilon=1.0,
        test_seed=1,
    ),
]
if lengths.PAPERS:
    CHECKED += [
        WithAgents(
            PrivateClassifier(epsilon=math.inf, test_seed=0), agents_epsilon=20.0, test_seed=1
        ),
        WithAgents(LogisticRegression(), agents_epsilon=20.0, test_seed=1),
    ]


@parametrize_with_checks(CHECKED)
def test_every_check_passes(estimator, check):
    check(estimator)
