"""Steps of a pipeline that learn from private rows are named before anything is spent."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from hdp_fast import Budget, UtilityWarning
from hdp_fast.sklearn import BoundsScaler, PrivateClassifier

RNG = np.random.default_rng(0)
X = RNG.integers(0, 3, (2_000, 2)).astype(float)
Y = (X[:, 0] + RNG.random(2_000) > 1.5).astype(int)


def classifier(**changed):
    return PrivateClassifier(**{"epsilon": 4.0, "bounds": (-3, 3), "classes": [0, 1]} | changed)


def encoder(**options):
    return ColumnTransformer(
        [("kinds", OneHotEncoder(sparse_output=False, **options), [0])], remainder="passthrough"
    )


LEARNED = {
    "StandardScaler": StandardScaler(),
    "OneHotEncoder": encoder(),
    "SimpleImputer": SimpleImputer(),
    "StandardScaler of a union": FeatureUnion([("scale", StandardScaler())]),
    "StandardScaler of an inner pipeline": make_pipeline(Normalizer(), StandardScaler()),
}
PUBLIC = {
    "bounds": BoundsScaler(bounds=(0, 2)),
    "function": FunctionTransformer(),
    "rows": Normalizer(),
    "told categories": encoder(categories=[[0.0, 1.0, 2.0]]),
    "told constant": SimpleImputer(strategy="constant", fill_value=1, keep_empty_features=True),
    "nothing": "passthrough",
}


def notes_of_fit(pipeline, call=lambda pipeline: pipeline.fit(X, Y)):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(pipeline)
    return [str(one.message) for one in caught if "the pipeline fitted" in str(one.message)]


@pytest.mark.parametrize("kind", LEARNED)
def test_a_step_that_learned_is_named(kind):
    (text,) = notes_of_fit(make_pipeline(LEARNED[kind], classifier()))
    assert f"the pipeline fitted {kind.split()[0]} on the rows" in text
    assert "BoundsScaler and SchemaTransformer" in text


@pytest.mark.parametrize("kind", PUBLIC)
def test_a_step_that_learns_nothing_is_not(kind):
    assert not notes_of_fit(make_pipeline(PUBLIC[kind], classifier()))


def test_an_estimator_without_noise_or_a_pipeline_is_not():
    assert not notes_of_fit(make_pipeline(StandardScaler(), classifier(epsilon=np.inf)))
    assert not notes_of_fit(classifier())


def test_ensembles_and_cross_validation_of_a_pipeline_are_seen():
    pipeline = make_pipeline(StandardScaler(), classifier())
    assert notes_of_fit(BaggingClassifier(pipeline, n_estimators=2))
    assert notes_of_fit(pipeline, lambda one: cross_val_predict(one, X, Y, cv=2))


def test_nothing_is_spent_where_the_warning_is_an_error():
    budget = Budget(4.0, 1e-5)
    pipeline = make_pipeline(StandardScaler(), classifier())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning, match="StandardScaler"):
            pipeline.fit(X, Y, privateclassifier__budget=budget)
    assert budget.spent.epsilon == 0
