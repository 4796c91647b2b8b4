"""The experiment on adaptation: what is chosen, compared and said, and one split of the wind."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from scripts import PAPERS, at_length, loaded, require_data

pytestmark = pytest.mark.skipif(not PAPERS.exists(), reason="needs benches/")


@pytest.fixture(scope="module")
def script():
    pytest.importorskip("matplotlib")
    with loaded(PAPERS / "adaptation.py") as module:
        yield module


@pytest.fixture(scope="module")
def ours(script):
    return sys.modules["_adaptation_ours"]


def invented(script, task="regression"):
    data = sys.modules["_adaptation_data"]
    coins = np.random.default_rng(0)
    X = coins.standard_normal((500, 3))
    y = X @ [1.0, -1.0, 0.5] + 0.3 * coins.standard_normal(500)
    y = y if task == "regression" else (y > 0).astype(float)
    both = data.Sample(X, y)
    domains = both.part(np.arange(300)), both.part(np.arange(300, 500))
    sizes = data.Sizes(60, 60, 80, 300, 3) if task == "regression" else None
    return data.DataSet("invented", task, lambda: domains, lambda: None, sizes)


def result(script, errors, name="wind", task="regression"):
    return {"name": name, "task": task, "splits": 2, "errors": errors}


@at_length
def test_settings_are_the_best_of_other_splits(script, ours, monkeypatch):
    """The target's labels are those of the source turned round: its share should be small."""
    source, target = invented(script).read()
    data = replace(invented(script), read=lambda: (source, target._replace(y=-target.y)))
    monkeypatch.setattr(ours, "OPEN", {"alpha": (0.001, 0.9), "kappa": (1e6,)})
    assert ours.choose_weights(data) == (0.001, 1e6)
    grid = {"alpha": (0.001, 0.9), "kappa": (1.0,), "radius": (4.0,), "initial_distance": (1.0,)}
    monkeypatch.setitem(ours.CLOSED, "tight", grid)
    monkeypatch.setattr(ours, "CHOSEN_AT", 100.0)
    assert ours.choose_settings(data, "tight") == ours.Settings(0.001, 1.0, 4.0)
    monkeypatch.setitem(ours.WEIGHTS, "invented", (0.001, 1e6))
    outcome = ours.open_outcome(data, data.split(0))
    grid = [ours.Settings(0.001, 1e6, radius) for radius in ours.RADII]
    tried = [ours.measure(data, data.split(0), ours.open_fit(data, data.split(0), s)) for s in grid]
    assert outcome.validation == min(each.validation for each in tried)


def test_nearly_all_weight_on_the_target_is_least_squares_there(script, ours):
    data = invented(script)
    split = data.split(0)
    w = ours.open_fit(data, split, ours.Settings(1e-9, 1e6, 1e3))
    wanted = np.linalg.lstsq(*split.training, rcond=None)[0]
    np.testing.assert_allclose(w, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.filterwarnings("ignore:random_state:UserWarning")
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_much_budget_comes_near_no_noise(script, ours, task):
    data = invented(script, task)
    split, settings = data.split(1), ours.Settings(0.3, 1.0, 4.0)
    plain = ours.measure(data, split, ours.open_fit(data, split, settings)).test
    private = {"epsilon": 1e4, "delta": 0.01, "seed": 0}
    w = ours.private_fit(data, split, settings, "tight", **private)
    # A twentieth of the test records is one of them.
    assert ours.measure(data, split, w).test == pytest.approx(plain, abs=0.06)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_one_release_is_measured_alone(script, ours, task):
    data = invented(script, task)
    found = dict(script.compare_releases(data, data.split(1), 0, (1.0, 4.0)))
    assert list(found) == ["one release, 1", "one release, 4"]
    assert all(np.isfinite(error) for error in found.values())


def test_paired_differences_are_measured_in_standard_errors(script):
    found = result(script, {"ours": [3.0, 5.0, 7.0], "DM": [2.0, 2.0, 2.0]})
    # Differences 1, 3, 5: mean 3, standard error 2 / sqrt(3).
    assert script.behind(found, "ours", "DM") == pytest.approx(3 * np.sqrt(3) / 2)
    assert script.behind(found, "ours", "KMM") == 0


def test_what_is_not_reached_is_said(script):
    errors = {"ours": [3.0, 3.1], "train on target": [1.0, 1.0], "KMM": [4.0, 4.0]}
    private = {"tight, 4": [2.0, 2.0], "paper, 4": [1.0, 1.0]}
    said = list(script.verdicts([result(script, {**errors, **private})]))
    assert len(said) == 2
    assert "behind train on target" in said[0]
    assert "tight, 4 is not better than paper, 4" in said[1]
    errors = {"ours": [0.5, 0.5], "tight, 4": [0.5, 0.5], "DM": [0.6, 0.6]}
    said = list(script.verdicts([result(script, errors, name="books -> dvd")]))
    assert said == ["tight, 4 is better than DM on 1 of 1 pairs; printed: on 0"]


def test_printed_figures_stand_beside_ours(script):
    errors = {"train on target": [0.5, 0.25], "DM": [1.0, 0.5], "ours": [0.5, 0.5]}
    lines = script.tables([result(script, errors)]).splitlines()
    assert any("wind (2 splits) | 1.000 ± 0.000 | 2.000 ± 0.000 | 1.500" in line for line in lines)
    assert any("wind, paper |  | 1.009 ± 0.045 | 0.985 ± 0.019" in line for line in lines)
    pairs = sys.modules["_adaptation_data"].REVIEWS
    assert set(script.PRINTED_REVIEWS) == {data.name for data in pairs}
    won = sum(at_4[0] < dm[0] for at_4, _, dm in script.PRINTED_REVIEWS.values())
    assert won == 9


def test_rivals_found_before_are_not_found_again(script):
    known = {"invented": {"DM": [0.25, 0.5]}}
    assert list(script.rivals_of(invented(script), None, 1, known)) == [("DM", 0.5)]
    split = invented(script).split(0)
    names = [name for name, _ in script.rivals_of(invented(script), split, 2, known)]
    assert "train on target" in names


def test_the_figure_marks_what_is_drawn_with_replacement(script):
    data = sys.modules["_adaptation_data"]
    training = data.Sample(np.arange(700.0)[:, None], np.arange(700.0))
    found = {(kind, n): sample for kind, n, sample in script.curves.samples(training, 0)}
    curves = script.curves
    assert [n for kind, n in found if kind == curves.DISTINCT] == [100, 300, 600]
    assert [n for kind, n in found if kind == curves.ENLARGED] == list(curves.SIZES)
    for (kind, n), sample in found.items():
        assert len(sample.y) == n
        assert (len(np.unique(sample.y)) == n) == (kind == curves.DISTINCT)
    errors = {"not private": [0.1, 0.2], f"4, {curves.ENLARGED}, 100": [0.3, 0.5]}
    gas = {"name": "gas", "task": "regression", "splits": 2, "errors": errors}
    assert curves.line(gas, f"4, {curves.ENLARGED}") == ([100], [0.4], [pytest.approx(0.1)])
    assert len(curves.figure([gas]).axes) == 1


@pytest.mark.filterwarnings("ignore:random_state:UserWarning")
def test_the_figure_of_private_rivals_has_all_methods_at_every_size(script, monkeypatch):
    curves, rivals = script.curves, script.rival_curves
    monkeypatch.setattr(curves, "SIZES", (30, 100))
    monkeypatch.setattr(rivals, "GAS", invented(script))
    (found,) = rivals.repeat(2)
    assert (found["name"], found["splits"]) == ("invented", 2)
    kinds = {f"{curves.DISTINCT}, 30", f"{curves.ENLARGED}, 30", f"{curves.ENLARGED}, 100"}
    drawn = {f"{name}, {kind}" for name in rivals.METHODS for kind in kinds}
    assert set(found["errors"]) == drawn | {"train on source"}
    errors = {name: np.mean(each) for name, each in found["errors"].items()}
    # One linear truth for both domains: much noise on moments spoils weights, not the model.
    assert max(errors.values()) < 4 * errors["train on source"]
    (panel,) = rivals.figure([found]).axes
    assert len(panel.get_legend().get_texts()) == 2 * len(rivals.METHODS) + 1
    assert rivals.repeat(1, only="adult") == []


@at_length
@pytest.mark.data
def test_one_split_of_the_wind(script, tmp_path, monkeypatch, capsys):
    require_data(sys.modules["_adaptation_data"].REGRESSION[0])
    monkeypatch.setattr(sys, "argv", ["adaptation.py", "--quick", "--output", str(tmp_path)])
    script.main()
    (found,) = json.loads((tmp_path / "adaptation_table1.json").read_text())
    errors = {name: each[0] for name, each in found["errors"].items()}
    assert errors["ours"] < 1.1 * errors["train on target"]
    assert errors["tight, 4"] < 0.9 * min(errors["paper, 4"], errors["SGD, 4"])
    assert "| wind, paper |" in capsys.readouterr().out
