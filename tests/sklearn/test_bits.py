"""A schema and bounds make the same model of the same columns: bits are told by their types."""

import numpy as np
import pandas as pd
import pytest

from hdp_fast.cli import main
from hdp_fast.data import Label, Number, Schema, read_frame
from hdp_fast.data.frames import find_integers
from hdp_fast.learners import CenteredLinear, PrivateModel
from hdp_fast.sklearn import (
    HybridClassifier,
    PrivateClassifier,
    PrivateRegressor,
    PrivateSearchCV,
)

KINDS = ("bool", "uint8", "int64", "float32", "float64")
PRIVACY = {"epsilon": 1.0, "delta": 1e-6, "test_seed": 5}


def draw(kinds, n, seed):
    """Columns of these types, of which the first are bits, with bounds, classes and targets."""
    random = np.random.default_rng(seed)
    bit = random.random((n, len(kinds))) < 0.3
    frame = pd.DataFrame({f"x{i}": bit[:, i].astype(kind) for i, kind in enumerate(kinds)})
    score = bit @ np.arange(1, len(kinds) + 1) + random.normal(size=n)
    return frame, (score > score.mean()).astype(int), score


def bounds_of(kinds):
    # A column of integers with other bounds is a number.
    return [(0.0, 1.0) if place % 3 < 2 else (0.0, 2.0) for place in range(len(kinds))]


def schema_of(kinds, label=None):
    return Schema(label, {f"x{i}": Number(*pair) for i, pair in enumerate(bounds_of(kinds))})


def weights_of(model):
    return np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_)])


def assert_same(first, second):
    assert np.asarray(first).tobytes() == np.asarray(second).tobytes()


@pytest.mark.parametrize("seed", range(24))
def test_a_schema_and_bounds_release_the_same_weights(seed):
    random = np.random.default_rng(seed)
    kinds = random.choice(KINDS, size=random.integers(1, 5)).tolist()
    method, n = ("auto", "statistics", "sgd")[seed % 3], (60, 3_000, 20_000)[seed % 8 % 3]
    frame, classes, targets = draw(kinds, n, seed)
    both = [{"schema": schema_of(kinds)}, {"bounds": bounds_of(kinds)}]
    for made, labels in (
        (PrivateClassifier(classes=[0, 1], method=method, **PRIVACY), classes),
        (PrivateRegressor(target_bounds=(-5, 15), method=method, **PRIVACY), targets),
    ):
        models = []
        for one in both:
            made.set_params(**{"schema": None, "bounds": None, **one})
            model = made.fit(frame, labels)
            models.append((weights_of(model), model.predict(frame), model.rows_.is_number))
        for first, second in zip(*models, strict=True):
            assert_same(first, second)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["descent", "statistics"])
def test_frames_and_arrays_of_one_type_release_the_same_weights(kind, method):
    frame, classes, _ = draw([kind] * 3, 5_000, 1)
    made = PrivateClassifier(classes=[0, 1], method=method, bounds=bounds_of([kind] * 3), **PRIVACY)
    of_frame = weights_of(made.fit(frame, classes))
    array = frame.to_numpy()
    assert array.dtype == kind
    assert_same(of_frame, weights_of(made.fit(array, classes)))
    bits = kind in ("bool", "uint8", "int64")
    np.testing.assert_array_equal(made.rows_.is_number, [not bits, not bits, True])


def test_all_estimators_and_the_learner_of_tables_take_bits_alike():
    kinds = ["bool", "float64", "int64", "uint8"]
    frame, classes, _ = draw(kinds, 6_000, 2)
    weights = []
    for settings_ in ({"schema": schema_of(kinds)}, {"bounds": bounds_of(kinds)}):
        made = PrivateClassifier(classes=[0, 1], method="descent", **PRIVACY, **settings_)
        hybrid = HybridClassifier(made, agents_epsilon=1.0, test_seed=1).fit(frame, classes)
        search = PrivateSearchCV(
            made, {"method": ["descent", "statistics"]}, epsilon=2.0, delta=1e-6, test_seed=1
        ).fit(frame, classes)
        weights.append(
            [weights_of(made.fit(frame, classes)), weights_of(hybrid.panel_),
             weights_of(search.best_estimator_)]
        )  # fmt: skip
    for first, second in zip(*weights, strict=True):
        assert_same(first, second)
    assert_same(weights[0][0], weights[0][1])
    learner = CenteredLinear(schema_of(kinds, Label("y", above=0)), epsilon=1.0, delta=1e-6)
    table = read_frame(frame.assign(y=classes))
    model = learner.learn(table, random_state=5)
    made.fit(frame, classes)
    written = PrivateModel.from_json(made.to_json(label="y"))
    assert_same(model.weights, written.weights)
    np.testing.assert_array_equal(model.rows.is_number, written.rows.is_number)
    assert_same(model.scores(table), written.scores(table))


def test_hybrid_panels_of_an_array_read_its_type():
    frame, classes, _ = draw(["uint8"] * 2, 4_000, 3)
    made = PrivateClassifier(classes=[0, 1], bounds=(0, 1), **PRIVACY)
    hybrid = HybridClassifier(made, agents_epsilon=1.0, test_seed=1)
    weights = [weights_of(hybrid.fit(X, classes).panel_) for X in (frame, frame.to_numpy())]
    assert_same(*weights)
    assert not hybrid.panel_.rows_.is_number.any()


def test_files_of_texts_have_no_types_and_their_schema_says_it(tmp_path, capsys):
    frame, classes, _ = draw(["int64"] * 2, 3_000, 4)
    frame["y"] = classes
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet")
    cells = {"x0": Number(0, 1, (1,)), "x1": Number(0, 1, (1,))}
    schema = Schema(Label("y", above=0), cells)
    assert Schema.from_public(frame.drop(columns="y")).columns == cells
    weights = []
    for kind in ("csv", "parquet"):
        out = tmp_path / f"{kind}.json"
        (tmp_path / "schema.json").write_text(schema.to_json())
        assert main(["fit", str(tmp_path / f"people.{kind}"), "--schema",
                     str(tmp_path / "schema.json"), "--epsilon", "4", "--delta", "1e-6",
                     "--seed", "1", "--output", str(out)]) == 0  # fmt: skip
        model = PrivateModel.from_json(out.read_text())
        assert not model.rows.is_number.any()
        weights.append(model.weights)
    capsys.readouterr()
    assert_same(*weights)


def test_types_alone_tell_integers_and_missing_entries_do_not():
    frame = pd.DataFrame({
        "a": [True, False], "b": np.array([0, 1], np.uint8), "c": [0.0, 1.0],
        "d": pd.array([1, None], "Int64"), "e": pd.array([True, None], "boolean"),
        "f": pd.Categorical([0, 1]), "g": ["0", "1"], "h": np.array([0, 1], object),
    })  # fmt: skip
    integers = [True, True, False, True, True, False, False, False]
    assert find_integers(frame).tolist() == integers
    full = frame.assign(d=pd.array([1, 0], "Int64"), e=pd.array([True, False], "boolean"))
    assert find_integers(full).tolist() == integers
    assert find_integers(read_frame(frame)).tolist() == integers
    assert find_integers([[1, 0], [0, 1]]).tolist() == [False, False]
    assert find_integers(np.ones((1, 2), np.int8)).tolist() == [True, True]
