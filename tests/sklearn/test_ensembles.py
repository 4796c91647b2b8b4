"""Ensembles of scikit-learn set every random_state that they find, and leave the entropy alone."""

import itertools
import math
import re

import numpy as np
import pytest
from cases import each_case

pytest.importorskip("sklearn", minversion="1.6")

import joblib
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import hdp_fast.sklearn
from hdp_fast.exceptions import ParameterError
from hdp_fast.record import OS_ENTROPY
from hdp_fast.sklearn import (
    AdaptationClassifier,
    AdaptationRegressor,
    HybridClassifier,
    PrivateClassifier,
    PrivateRegressor,
    PrivateSearchCV,
    PrivateStudentClassifier,
)

pytestmark = pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")

RNG = np.random.default_rng(4)
ROWS = RNG.random((400, 2))
BITS = (ROWS[:, 0] > 0.5).astype(int)
PUBLIC = {"epsilon": 1.0, "bounds": (0, 1), "method": "statistics"}
CLASSES = {"classes": [0, 1]}
TARGET = {"target_bounds": (0, 1)}
POOL = {"pool": ROWS[:30], "method": "statistics", "epsilon": 1.0}

SEARCHED = PrivateClassifier(bounds=(0, 1), **CLASSES)
CLASSIFIERS = {
    "linear": PrivateClassifier(**PUBLIC, **CLASSES),
    "pipeline": make_pipeline(FunctionTransformer(), PrivateClassifier(**PUBLIC, **CLASSES)),
    "student": PrivateStudentClassifier(**POOL, **CLASSES),
    "search": PrivateSearchCV(SEARCHED, {"method": ["statistics"]}, epsilon=1.0),
    "adaptation": AdaptationClassifier(epsilon=1.0, bounds=(0, 1), **CLASSES),
    "hybrid": HybridClassifier(PrivateClassifier(**PUBLIC, **CLASSES), agents_epsilon=1.0),
}
REGRESSORS = {
    "linear": PrivateRegressor(**PUBLIC, **TARGET),
    "adaptation": AdaptationRegressor(epsilon=1.0, bounds=(0, 1), **TARGET),
}
ENSEMBLES = {
    **{f"bagged {name}": BaggingClassifier(made, 2) for name, made in CLASSIFIERS.items()},
    **{f"bagged {name} of a target": BaggingRegressor(m, 2) for name, m in REGRESSORS.items()},
    "boosted": AdaBoostRegressor(REGRESSORS["linear"], n_estimators=2),
    "voting": VotingClassifier([("a", CLASSIFIERS["linear"]), ("b", CLASSIFIERS["student"])]),
    "stacked": StackingClassifier([("a", CLASSIFIERS["linear"])], LogisticRegression(), cv=2),
}


def make_ensemble(name):
    """A new ensemble, after a seed such as many notebooks have in their first cell."""
    ensemble = clone(ENSEMBLES[name])
    if "random_state" in ensemble.get_params():
        ensemble.set_params(random_state=0)
    np.random.seed(0)  # noqa: NPY002 - that is what users do
    return ensemble.fit(ROWS, ROWS[:, 0] if "target" in name or name == "boosted" else BITS)


def private_parts(estimator):
    """The estimators of this package in an estimator, and in what it learned."""
    if type(estimator).__module__.startswith("hdp_fast."):
        yield estimator
    learned = [
        *getattr(estimator, "estimators_", ()),
        *dict(getattr(estimator, "steps", ())).values(),
    ]
    learned += [getattr(estimator, name, None) for name in ("best_estimator_", "panel_")]
    for part in learned:
        if part is not None:
            yield from private_parts(part)


def what_is_learned(ensemble):
    return [
        np.concatenate([np.ravel(value) for value in state.values()])
        for part in private_parts(ensemble)
        if (state := weights_of(part))
    ]


def weights_of(part):
    model = getattr(part, "model_", None)
    arrays = {name: getattr(model, name, None) for name in ("weights", "coefficients")}
    return {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}


@pytest.mark.parametrize("name", ENSEMBLES)
def test_members_draw_from_the_system_in_spite_of_any_seed(name):
    first, second = make_ensemble(name), make_ensemble(name)
    parts = list(private_parts(first))
    assert parts
    assert {part.record_.rng for part in parts} == {OS_ENTROPY}
    assert {part.test_seed for part in parts} == {None}
    if "search" not in name and "student" not in name:
        learned = what_is_learned(first), what_is_learned(second)
        assert learned[0]
        # Boosting may stop after any number of members.
        assert not any(np.array_equal(a, b) for a, b in itertools.product(*learned))


@pytest.mark.parametrize("name", ENSEMBLES)
def test_a_saved_ensemble_holds_no_seed_of_a_private_member(name, tmp_path):
    joblib.dump(make_ensemble(name), tmp_path / "ensemble.joblib")
    loaded = joblib.load(tmp_path / "ensemble.joblib")
    for part in private_parts(loaded):
        assert part.test_seed is None
        assert not [key for key in part.get_params(deep=False) if key.endswith("random_state")]


EVERYTHING = [*CLASSIFIERS.values(), *REGRESSORS.values()]


@pytest.mark.parametrize("name", hdp_fast.sklearn.__all__)
def test_no_estimator_has_a_parameter_that_other_libraries_set(name):
    made = getattr(hdp_fast.sklearn, name)
    parameters = made._get_param_names()
    assert not [key for key in parameters if key.endswith("random_state")]
    assert ("test_seed" in parameters) == ("record_" in made.__doc__)


@pytest.mark.parametrize("estimator", EVERYTHING, ids=lambda made: type(made).__name__)
def test_a_seed_under_the_usual_name_is_refused_by_an_error_that_names_the_other(estimator):
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    rule = "a seed for tests as test_seed: ensembles of scikit-learn set every random_state"
    settings = last.get_params(deep=False) | {"random_state": 1}
    with pytest.raises(ParameterError, match=re.escape(rule)):
        type(last)(**settings)
    with pytest.raises(ParameterError, match=re.escape(rule)):
        clone(last).set_params(random_state=1)
    with pytest.raises(ParameterError, match=re.escape(rule)):
        make_pipeline(clone(last)).set_params(**{f"{type(last).__name__.lower()}__random_state": 1})


@each_case("estimator", EVERYTHING, ids=lambda made: type(made).__name__)
@each_case("seed", [-1, 0.5, True, "a", np.random.RandomState(0)])
def test_a_bad_seed_is_named_as_its_parameter(estimator, seed):
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    with pytest.raises(ParameterError, match=r"^test_seed = "):
        clone(last).set_params(test_seed=seed).fit(ROWS, BITS)


def test_a_seed_makes_runs_equal_where_it_is_asked_for():
    learner = PrivateClassifier(**PUBLIC, **CLASSES, test_seed=3)
    first, second = (clone(learner).fit(ROWS, BITS) for _ in range(2))
    assert (first.predict_proba(ROWS) == second.predict_proba(ROWS)).all()
    assert first.record_.rng != OS_ENTROPY
    assert clone(learner).set_params(epsilon=math.inf).test_seed == 3
