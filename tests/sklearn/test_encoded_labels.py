"""Ensembles, reductions and cross-validation hand down numbers in place of labels."""

import inspect
import re

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

import pandas
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.pipeline import make_pipeline

from hdp_fast.data import Label, Number, Schema
from hdp_fast.exceptions import ParameterError
from hdp_fast.sklearn import (
    AdaptationClassifier,
    HybridClassifier,
    PrivateClassifier,
    PrivateStudentClassifier,
    SchemaTransformer,
)

pytestmark = pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")

RNG = np.random.default_rng(8)
ROWS = RNG.random((3_000, 2))
LABELS = {
    "texts": ["high", "low", "middle"],
    "two texts": ["no", "yes"],
    "integers": [0, 1, 2],
    "bools": [False, True],
}
PUBLIC = {"epsilon": 8.0, "bounds": (0, 1)}
PLACED = "integers are places among classes that are texts, 0 to 1"


def final_of(made):
    """What learns from the members' probabilities, which lie in [0, 1]."""
    return PrivateClassifier(**PUBLIC, classes=getattr(made, "classes", ["no", "yes"]))


META = {
    "stacking": lambda made: StackingClassifier([("a", made)], final_of(made), cv=2),
    "hard voting": lambda made: VotingClassifier([("a", made), ("b", made)]),
    "soft voting": lambda made: VotingClassifier([("a", made), ("b", made)], voting="soft"),
    "bagging": lambda made: BaggingClassifier(made, 2),
    "one against the rest": OneVsRestClassifier,
    "one against one": OneVsOneClassifier,
    "codes": lambda made: OutputCodeClassifier(made, code_size=4, random_state=0),
}


def label_rows(classes):
    """Labels that the first column decides, of every class."""
    places = (ROWS[:, 0] * len(classes)).astype(int)
    return np.array(classes)[places]


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("name", META)
def test_a_private_classifier_in_an_ensemble_predicts_labels_of_every_kind(name, kind):
    y = label_rows(LABELS[kind])
    made = META[name](PrivateClassifier(**PUBLIC, classes=LABELS[kind])).fit(ROWS, y)
    predicted = made.predict(ROWS)
    assert predicted.dtype.kind == y.dtype.kind
    assert (predicted == y).mean() > 0.9


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_cross_val_predict_takes_labels_of_every_kind(method, kind):
    y, classes = label_rows(LABELS[kind]), np.array(LABELS[kind])
    learner = PrivateClassifier(**PUBLIC, classes=LABELS[kind])
    answers = cross_val_predict(learner, ROWS, y, cv=2, method=method)
    if method == "predict":
        assert (answers == y).mean() > 0.9
    elif answers.ndim == 1:
        assert (classes[(answers > 0).astype(int)] == y).mean() > 0.9
    else:
        assert (classes[answers.argmax(axis=1)] == y).mean() > 0.9


SCHEMA = Schema(Label("y", positive=("yes",)), {"x0": Number(0, 1), "x1": Number(0, 1)})
OTHERS = {
    "student": PrivateStudentClassifier(
        epsilon=8.0, pool=ROWS[:60], method="statistics", classes=["no", "yes"]
    ),
    "adaptation": AdaptationClassifier(**PUBLIC, classes=["no", "yes"]),
    "hybrid": HybridClassifier(
        PrivateClassifier(**PUBLIC, classes=["no", "yes"]), agents_epsilon=1.0
    ),
    "pipeline": make_pipeline(
        SchemaTransformer(schema=SCHEMA), PrivateClassifier(**PUBLIC, classes=["no", "yes"])
    ),
}


@pytest.mark.parametrize("name", META)
@pytest.mark.parametrize("other", OTHERS)
def test_other_private_classifiers_take_numbers_in_place_of_texts(name, other):
    y = label_rows(["no", "yes"])
    predicted = META[name](OTHERS[other]).fit(ROWS, y).predict(ROWS)
    assert (predicted == y).mean() > 0.85


def test_integers_are_places_among_texts_by_their_dtype_alone():
    y = label_rows(["no", "yes"])
    learner = PrivateClassifier(**PUBLIC, classes=["yes", "no"])
    codes = np.searchsorted(["no", "yes"], y)
    assert learner.fit(ROWS, codes).classes_.tolist() == [0, 1]
    # Records of one class decide nothing: the dtype is what counts.
    assert learner.fit(ROWS, np.zeros(3_000, int)).classes_.tolist() == [0, 1]
    assert learner.fit(ROWS, np.full(3_000, "no")).classes_.tolist() == ["no", "yes"]
    with pytest.raises(ParameterError, match=re.escape(PLACED)):
        learner.fit(ROWS, codes + 1)
    for floats_or_bools in (codes.astype(float), codes.astype(bool)):
        with pytest.raises(
            ParameterError, match=r"one of classes: y holds numbers, and classes are texts$"
        ):
            learner.fit(ROWS, floats_or_bools)


def test_integers_that_classes_spell_are_labels_and_no_places():
    y = label_rows([1, 2])
    learner = PrivateClassifier(**PUBLIC, classes=["1", "2"]).fit(ROWS, y)
    assert learner.classes_.tolist() == ["1", "2"]
    assert (learner.predict(ROWS) == y.astype(str)).mean() > 0.9


@pytest.mark.parametrize(
    ("labels", "classes", "hint"),
    [
        (np.array(["no", "yes"] * 50), [0, 1], ": y holds texts, and classes are numbers"),
        (np.array(["no", "yes"] * 50, object), [0, 1], ": y holds texts, and classes are numbers"),
        (np.array([0.0, 1.0] * 50), ["no", "yes"], ": y holds numbers, and classes are texts"),
        (np.array([False, True] * 50), ["no", "yes"], ": y holds numbers, and classes are texts"),
        (np.array(["no", "maybe"] * 50), ["no", "yes"], ""),
        (np.array([0.0, 7.0] * 50), [0, 1], ""),
    ],
)
def test_labels_of_another_kind_than_the_classes_are_named(labels, classes, hint):
    message = f"y holds something else, but every entry must be one of classes{hint}"
    with pytest.raises(ParameterError, match=f"^{re.escape(message)}$"):
        PrivateClassifier(epsilon=1.0, bounds=(0, 1), classes=classes).fit(ROWS[:100], labels)


def test_integers_from_one_on_say_which_classes_an_ensemble_needs():
    y = label_rows([1, 2, 3])
    bagged = BaggingClassifier(PrivateClassifier(**PUBLIC, classes=[1, 2, 3]), 2)
    rule = "in an ensemble that numbers labels pass classes = range(3)"
    with pytest.raises(ParameterError, match=re.escape(rule)):
        bagged.fit(ROWS, y)
    bagged.set_params(estimator__classes=range(3)).fit(ROWS, y)
    assert (bagged.predict(ROWS) == y).mean() > 0.9
    reduced = OneVsRestClassifier(PrivateClassifier(**PUBLIC, classes=[1, 2, 3])).fit(ROWS, y)
    assert [member.classes_.tolist() for member in reduced.estimators_] == [[0, 1]] * 3


def test_two_numbers_are_right_inside_of_a_reduction():
    """They are needed where members are fitted in other processes, and the caller is not seen."""
    y = label_rows(LABELS["texts"])
    stacked = META["stacking"](PrivateClassifier(**PUBLIC, classes=[0, 1]))
    reduced = OneVsRestClassifier(stacked.set_params(n_jobs=2)).fit(ROWS, y)
    assert (reduced.predict(ROWS) == y).mean() > 0.9


def test_a_frame_with_categories_is_bagged_behind_a_transformer():
    frame = pandas.DataFrame({"x0": ROWS[:, 0], "x1": ROWS[:, 1]})
    y = label_rows(["no", "yes"])
    with_schema = PrivateClassifier(epsilon=8.0, schema=SCHEMA, classes=["no", "yes"])
    with pytest.raises(ParameterError, match="take what SchemaTransformer makes, and their"):
        BaggingClassifier(with_schema, 2).fit(frame, y)
    inner = BaggingClassifier(PrivateClassifier(**PUBLIC, classes=["no", "yes"]), 2)
    bagged = make_pipeline(SchemaTransformer(schema=SCHEMA), inner).fit(frame, y)
    assert (bagged.predict(frame) == y).mean() > 0.9


def test_reductions_live_in_the_module_that_is_looked_for():
    from hdp_fast.sklearn import row_labels

    for made in (OneVsRestClassifier, OneVsOneClassifier, OutputCodeClassifier):
        assert inspect.getmodule(made).__name__ == row_labels.REDUCTIONS
