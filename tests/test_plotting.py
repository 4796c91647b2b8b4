"""Figures of tables and answers: what is drawn is what they say."""

import math
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from hdp_fast import adaptation, local, plotting, statistics, transfer
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.exceptions import ParameterError
from hdp_fast.labels import LabelResult, ScoreResult
from hdp_fast.learners import CenteredLinear, Conjunctions, ExponentialLearner, PrivateAdditive
from hdp_fast.stability import GaussianVote, HazardTable, VoteTable

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

GOAL = {"epsilon": 1, "delta": 1e-6, "beta": 0.05}
BOTTOMS = np.array([False, True, False, False, True])


def test_hazards_are_drawn_with_their_last_level_and_their_members():
    table = HazardTable.design(50, 1000, **GOAL)
    figure = plotting.table(table)
    (axes,) = figure.axes
    falling, last, marked = axes.lines
    assert axes.get_yscale() == "log"
    assert falling.get_ydata()[:-1].tolist() == [float(p) for p in table.probabilities]
    assert last.get_xdata() == [table.J] * 2
    assert marked.get_xdata() == [1611 / 4] * 2
    assert "1,611 members" in marked.get_label()
    figure = plotting.table(table, agreement=0.9)
    assert figure.axes[0].lines[2].get_xdata()[0] < 1611 * 0.4
    figure = plotting.table(table, members=100)
    assert figure.axes[0].lines[2].get_xdata() == [25, 25]


def test_flips_of_a_vote_are_drawn_by_the_share_of_the_votes():
    table = VoteTable.design(1000, **GOAL)
    figure = plotting.table(table)
    flips, expected = figure.axes[0].lines
    assert flips.get_xdata()[[0, -1]].tolist() == [0.5, 1]
    assert flips.get_ydata()[0] == 0.5
    assert flips.get_ydata()[-1] == float(table.probabilities[-1])
    assert expected.get_xdata() == [0.75] * 2
    assert "1,266 members" in flips.get_label()
    figure = plotting.table(table, members=101)
    few = figure.axes[0].lines[0]
    shares, probabilities = few.get_xdata(), few.get_ydata()
    assert len(shares) == 51
    assert shares[0] == 51 / 101
    assert probabilities[[0, -1]].tolist() == [0.5, float(table.probabilities[50])]
    assert (np.diff(probabilities) <= 0).all()


def test_other_tables_and_numbers_of_members_are_refused():
    table = VoteTable.design(1000, **GOAL)
    with pytest.raises(ParameterError, match="HazardTable or a VoteTable"):
        plotting.table(GaussianVote.design(9, labels=3, **GOAL))
    with pytest.raises(ParameterError, match="agreement"):
        plotting.table(table, agreement=0.5)
    with pytest.raises(ParameterError, match="members = 0"):
        plotting.table(table, members=0)


def fitted(names=None, **parameters):
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-0.5, 0.5, (200, 3)), rng.integers(0, 2, 200)
    estimator = adaptation.NonConvexAdaptation(
        epsilon=2.0, norm_bound=1.0, alpha=0.5, steps=5, **parameters
    )
    estimator.fit(X, y, X[:50], y[:50], random_state=1)
    estimator.feature_names_in_ = names
    return estimator


def test_coefficients_are_drawn_the_largest_first():
    estimator = fitted(("age", "pay", "size"))
    figure = plotting.adaptation(estimator)
    (axes,) = figure.axes
    order = np.argsort(-np.abs(estimator.coef_))
    assert [bar.get_width() for bar in axes.patches] == estimator.coef_[order].tolist()
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [("age", "pay", "size")[place] for place in order]
    assert axes.get_title() == "NonConvexAdaptation, epsilon = 2"
    figure = plotting.adaptation(estimator, ["x", "y", "z"])
    assert figure.axes[0].get_yticklabels()[0].get_text() == "xyz"[order[0]]
    with pytest.raises(ParameterError, match="each of 3 coefficients"):
        plotting.adaptation(estimator, ["x"])


def test_each_class_has_coefficients_of_its_own():
    estimator = fitted(loss="softmax", classes=2, discrepancy=0.1)
    figure = plotting.adaptation(estimator)
    widths = sorted(bar.get_width() for bar in figure.axes[0].patches)
    assert widths == sorted(estimator.coef_.ravel().tolist())


def test_many_coefficients_are_cut():
    estimator = adaptation.KernelMeanMatching()
    estimator.coef_ = np.arange(100.0)
    figure = plotting.adaptation(estimator)
    assert len(figure.axes[0].patches) == 30
    assert figure.axes[0].get_title() == "KernelMeanMatching, not private"


def test_a_mean_is_drawn_with_its_interval():
    randomizer = local.LaplaceRandomizer(1.0, bounds=(0, 100))
    values = np.linspace(20, 60, 5000)
    aggregate = randomizer.aggregate(randomizer.sample(values, random_state=1))
    figure = plotting.local(aggregate)
    (axes,) = figure.axes
    estimate = aggregate.estimate(0.05)
    assert axes.lines[0].get_xdata() == [estimate.value]
    assert axes.get_xlim() == (0, 100)
    assert axes.get_title() == "5,000 reports, epsilon = 1"
    figure = plotting.local(estimate)
    assert figure.axes[0].lines[0].get_xdata() == [estimate.value]


def test_frequencies_are_drawn_the_largest_first():
    randomizer = local.KaryResponse(3, epsilon=2.0)
    values = np.repeat([0, 1, 2], [100, 3000, 1000])
    aggregate = randomizer.aggregate(randomizer.sample(values, random_state=1))
    figure = plotting.local(aggregate, names=["a", "b", "c"])
    (axes,) = figure.axes
    assert [bar.get_height() for bar in axes.patches] == sorted(aggregate.frequencies())[::-1]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["b", "c", "a"]
    with pytest.raises(ParameterError, match="each of 3 categories"):
        plotting.local(aggregate, names=["a"])


def test_a_vote_is_drawn_with_its_error():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (2000, 3), dtype=np.uint8)
    agents = local.Agents(X, X[:, 0], epsilon=2.0)
    result = local.learn_by_votes(Conjunctions(3, 1), agents, beta=0.1, random_state=1)
    figure = plotting.local(result)
    (axes,) = figure.axes
    assert axes.lines[0].get_xdata() == [result.estimate.value]
    assert axes.get_xlabel().startswith("error")


def test_a_transfer_is_drawn_beside_a_constant():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (4000, 3), dtype=np.uint8)
    run = transfer.SubsampleTestReweigh(
        ExponentialLearner(Conjunctions(3, 1), epsilon=1.0),
        epsilon=math.inf,
        draws=200,
        alpha=0.1,
        kappa=1.0,
        eta=1.0,
        rounds=2,
    )
    run.fit(X, X[:, 0], local.Agents(X, X[:, 0], epsilon=4.0), random_state=1)
    result = run.result_
    object.__setattr__(result, "constants", SimpleNamespace(better=0.375))
    figure = plotting.transfer(result)
    assert [0.375] * 2 in [list(line.get_ydata()) for line in figure.axes[0].lines]
    object.__setattr__(result, "constants", None)
    without = plotting.transfer(result)
    assert len(without.axes[0].lines) == len(figure.axes[0].lines) - 1


def labels(left):
    return LabelResult(
        labels=np.arange(5), is_bottom=BOTTOMS, unstable_left=left, queries_left=0, record=None
    )


@pytest.mark.parametrize("left", [3, None])
def test_answers_are_drawn_against_the_bottoms_they_took(left):
    figure = plotting.labels(labels(left))
    answered, *others = figure.axes
    assert answered.lines[0].get_ydata().tolist() == [0, 1, 1, 2, 3, 3]
    if left is None:
        assert others == []
        return
    counted, limit = others[0].lines
    assert counted.get_ydata().tolist() == [0, 0, 1, 1, 1, 2]
    assert limit.get_ydata() == [5, 5]


def test_scores_have_no_limit_for_some_took_a_bottom_and_were_found():
    scores = np.where(BOTTOMS, np.nan, 0.5)
    figure = plotting.labels(
        ScoreResult(scores=scores, is_bottom=BOTTOMS, unstable_left=3, queries_left=0, record=None)
    )
    answered, bottoms = figure.axes
    assert answered.lines[0].get_ydata()[-1] == 3
    assert len(bottoms.lines) == 1


def test_anything_else_is_refused(monkeypatch):
    for draw in (
        plotting.table,
        plotting.labels,
        plotting.adaptation,
        plotting.local,
        plotting.transfer,
    ):
        with pytest.raises(ParameterError, match="None"):
            draw(None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for run in (plotting.require, lambda: plotting.labels(labels(1))):
        with pytest.raises(ImportError, match=r"hdp-fast\[plot\]"):
            run()


def test_a_distribution_is_drawn_with_its_bands():
    released = statistics.distribution(np.arange(2_000) % 50, low=0, high=60, epsilon=1.0)
    figure = plotting.distribution(released)
    (axes,) = figure.axes
    (line,) = axes.lines
    assert line.get_ydata().tolist() == released.value.tolist()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["95 %, population", "95 %, records", "released"]
    with pytest.raises(ParameterError, match="result"):
        plotting.distribution({"age": released})


def test_shapes_are_drawn_with_their_noise_the_largest_first():
    columns = {"age": Number(0, 90), "job": Category(("a", "b"))}
    schema = Schema(Label("rich", positive=("yes",)), columns)
    people = {
        "age": [10, 40, 80] * 2_000,
        "job": ["a", "b"] * 3_000,
        "rich": ["no", "yes", "no"] * 2_000,
    }
    model = PrivateAdditive(schema, epsilon=1.0, delta=1e-6).learn(people)
    figure = plotting.shapes(model)
    age, job = figure.axes
    assert [age.get_title(), job.get_title()] == ["age", "job"]
    shape = model.shapes()["age"]
    assert age.lines[0].get_ydata()[:-1].tolist() == shape.effects.tolist()
    assert age.lines[0].get_xdata()[[0, -1]].tolist() == [0, 90]
    assert [label.get_text() for label in job.get_xticklabels()][-1] == "others"
    figure = plotting.shapes(model, columns=1)
    assert len(figure.axes) == 1
    linear = CenteredLinear(schema, epsilon=1.0, delta=1e-6).learn(people)
    for wrong, options in ((linear, {}), ("model", {}), (model, {"columns": 0})):
        with pytest.raises(ParameterError):
            plotting.shapes(wrong, **options)


def test_figures_are_drawn_into_the_axes_of_others_and_saved(tmp_path):
    released = statistics.distribution(np.arange(2_000) % 50, low=0, high=60, epsilon=1.0)
    whole = Figure()
    left, right = whole.subplots(1, 2)
    assert plotting.distribution(released, ax=right) is whole
    assert len(right.lines) == 1
    assert not left.lines
    for name, start in {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.pdf": b"%PDF"}.items():
        whole.savefig(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    for draw, result in ((plotting.distribution, released), (plotting.labels, labels(1))):
        with pytest.raises(ParameterError, match="ax = 'Figure'"):
            draw(result, ax=whole)
