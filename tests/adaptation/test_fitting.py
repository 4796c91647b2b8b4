"""Notes of fits that are of little use, and none of those that are of some."""

import json
import math
import warnings

import numpy as np
import pytest

from hdp_fast import adaptation
from hdp_fast.budget import Budget
from hdp_fast.exceptions import UtilityWarning

SETTINGS = {"norm_bound": 2.0, "radius": 2.0, "alpha": 0.5}
SEED = {"random_state": 1}


def problem(m=2000, n=1000, noise=0.05):
    """Labels that follow the first feature, on source and target."""
    rng = np.random.default_rng(1)
    X, Z = (rng.uniform(-1, 1, (count, 2)) for count in (m, n))
    y, z = (rows[:, 0] * 0.8 + rng.normal(0, noise, len(rows)) for rows in (X, Z))
    return X, y.clip(-1, 1), Z, z.clip(-1, 1)


def bits(data):
    X, y, Z, z = data
    return X, y > 0, Z, z > 0


def notes_of(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(warning.message) for warning in caught if warning.category is UtilityWarning]


FITS = {
    "squared": lambda **more: adaptation.ConvexAdaptation(**{"epsilon": 4.0} | SETTINGS | more),
    "logistic": lambda **more: adaptation.NonConvexAdaptation(**{"epsilon": 4.0} | SETTINGS | more),
}


@pytest.mark.parametrize("loss", FITS)
@pytest.mark.parametrize("private", ["target", "source"])
def test_a_good_fit_is_not_spoken_of(loss, private):
    data = bits(problem()) if loss == "logistic" else problem()
    assert notes_of(lambda: FITS[loss](private=private).fit(*data, **SEED)) == []


@pytest.mark.parametrize("loss", FITS)
def test_parameters_are_validated_once(loss, monkeypatch):
    kind = type(FITS[loss]())
    calls, validate = [], kind._validate_settings
    monkeypatch.setattr(
        kind, "_validate_settings", lambda *told: calls.append(1) or validate(*told)
    )
    FITS[loss](steps=5).fit(*(bits(problem()) if loss == "logistic" else problem()), **SEED)
    assert len(calls) == 1


@pytest.mark.parametrize("loss", FITS)
@pytest.mark.parametrize(("private", "n"), [("target", 1000), ("source", 2000)])
def test_a_delta_above_one_over_n(loss, private, n):
    data = bits(problem()) if loss == "logistic" else problem()
    estimator = FITS[loss](private=private, delta=1.5 / n)
    (text,) = notes_of(lambda: estimator.fit(*data, **SEED))
    assert text.startswith(f"delta = {1.5 / n:g} is above 1 / n = ")
    assert notes_of(lambda: FITS[loss](private=private, delta=0.9 / n).fit(*data, **SEED)) == []


def test_a_delta_is_spoken_of_before_anything_is_spent():
    budget = Budget(4.0, delta=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning, match="delta"):
            FITS["squared"](delta=0.1).fit(*problem(), budget=budget, **SEED)
    assert budget.spent[0] == 0


def test_a_note_names_the_callers_own_line():
    with pytest.warns(UtilityWarning, match="delta") as caught:
        FITS["squared"](delta=0.1).fit(*problem(), **SEED)
    assert [warning.filename for warning in caught] == [__file__]


def test_moments_have_a_delta_too():
    X, y, Z, _ = problem()
    estimator = adaptation.PrivateDiscrepancyMinimization(
        epsilon=1.0, delta=0.01, norm_bound=2.0, steps=5
    )
    (text,) = notes_of(lambda: estimator.fit(X, y, Z, random_state=1))
    assert text.startswith("delta = 0.01 is above 1 / n = 0.001")


def test_a_target_that_hardly_counts():
    X, y, Z, z = problem()
    estimator = FITS["squared"](alpha=None, epsilon=math.inf)
    (text,) = notes_of(lambda: estimator.fit(X, y, X[:20], y[:20], **SEED))
    assert text.startswith(f"alpha_ = {estimator.alpha_:.3g} is the share of the source")
    assert notes_of(lambda: FITS["squared"](alpha=0.99).fit(X, y, Z, z, **SEED)) == []


def test_labels_that_have_nothing_to_do_with_the_features():
    X, y, Z, z = problem()
    rng = np.random.default_rng(2)
    data = X, rng.permutation(y), Z, rng.permutation(z)
    estimator = FITS["squared"](private="source", epsilon=0.05)
    (text,) = notes_of(lambda: estimator.fit(*data, **SEED))
    assert "coef_ has a mean squared error of" in text
    assert "on the records of the target" in text
    (text,) = notes_of(lambda: FITS["squared"](epsilon=0.05).fit(*data, **SEED))
    assert "on the records of the source" in text
    assert notes_of(lambda: FITS["squared"](epsilon=0.05, alpha=0.1).fit(*data, **SEED)) == []


def test_labels_that_are_all_alike():
    X, _, Z, _ = problem()
    data = X, np.zeros(len(X), bool), Z, np.zeros(len(Z), bool)
    (text,) = notes_of(lambda: FITS["logistic"](epsilon=math.inf).fit(*data, **SEED))
    assert "share of errors" in text
    assert "where the best constant has 0: " in text


@pytest.mark.parametrize("method", ["private_selection", "not_private"])
def test_tuning_speaks_of_what_it_chose_and_of_no_trial(method):
    def run(estimator, data, **grid):
        values = grid or {"kappa_1": [0.1, 0.2]}
        return adaptation.tune(estimator, values, *data, method=method, **SEED)

    good = FITS["squared"](steps=10)
    assert notes_of(lambda: run(good, problem())) == []
    X, y, Z, z = problem()
    data = X, -np.sign(X[:, 0]), Z, np.sign(Z[:, 0])
    bad = FITS["squared"](steps=10, alpha=0.99)
    (text,) = notes_of(lambda: run(bad, data, kappa_1=[0.1, 0.1]))
    assert text.startswith("score = ")
    assert "where some constant has at most 0.25" in text
    texts = notes_of(lambda: run(FITS["squared"](steps=10, delta=0.01), (X, y, Z, z)))
    assert len(texts) == (method == "private_selection")


def test_results_as_json():
    X, y, Z, z = problem()
    exact = adaptation.discrepancy(X, y, Z, z, radius=1.0)
    content = json.loads(exact.to_json())
    assert content == {
        "value": exact.value,
        "gap": exact.gap,
        "w": exact.w.tolist(),
        "sign": exact.sign,
        "exact": True,
    }
    lower = adaptation.classification_discrepancy(X, y > 0, Z, z > 0, radius=1.0, steps=5)
    assert json.loads(lower.to_json())["lower_bound"] == lower.lower_bound
    released = adaptation.release_discrepancy(
        X, y, Z, z, radius=1.0, norm_bound=2.0, epsilon=1.0, random_state=1
    )
    content = json.loads(released.to_json())
    assert content["sizes"] == [2000, 1000]
    assert content["record"] == json.loads(released.record.to_json())
    assert content["mechanism"]["kind"] == "DiscreteLaplace"
    bound = adaptation.learning_bound(
        0.1, np.full(10, 0.1), source=5, alpha=0.5, discrepancy=0.0, radius=1.0, norm_bound=1.0
    )
    assert json.loads(bound.to_json()) == bound._asdict()
    assert json.loads(bound._replace(value=math.inf).to_json())["value"] == "inf"


def test_a_tuning_result_as_json():
    pandas = pytest.importorskip("pandas")
    X, y, Z, z = problem()
    estimator = FITS["squared"](steps=5, feature_map=lambda rows: rows)
    target = pandas.DataFrame(Z, columns=["age", "pay"])
    result = adaptation.tune(estimator, {"kappa_1": [0.1, 0.2]}, X, y, target, z, **SEED)
    content = json.loads(result.to_json())
    assert content["parameters"] == result.parameters
    assert content["score"] == result.score
    assert content["record"] == json.loads(result.record.to_json())
    fitted = content["estimator"]
    assert fitted["kind"] == "ConvexAdaptation"
    assert fitted["coef"] == result.estimator.coef_.tolist()
    assert fitted["feature_names"] == ["age", "pay"]
    assert fitted["epsilon"] == 4.0
    # It is no number.
    assert "feature_map" not in fitted
