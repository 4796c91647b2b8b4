"""Which number of members is best: by trials on public rows."""

import warnings

import numpy as np
import pytest
from lengths import at_length
from voters import X, Y

from hdp_fast.exceptions import InsufficientSamples, ParameterError, ShapeError
from hdp_fast.labels import PrivateLabeler, suggest
from hdp_fast.noise import discrete_laplace

naive_bayes = pytest.importorskip("sklearn.naive_bayes")
GOAL = {"n": 5000, "epsilon": 1.0, "delta": 1e-6, "queries": 100, "classes": [0, 1]}


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("labels", [pytest.param(Y, marks=at_length), None])
def test_the_best_number_is_neither_a_few_nor_all(labels):
    made = suggest(naive_bayes.GaussianNB(), X, labels, **GOAL)
    numbers = [one.members for one in made.candidates]
    assert numbers == sorted(numbers)
    assert made.labels == ("synthetic" if labels is None else "public")
    flips = [one.flip_probability for one in made.candidates]
    assert flips == sorted(flips, reverse=True)
    best = next(one for one in made.candidates if one.members == made.best)
    assert best.accuracy == max(one.accuracy for one in made.candidates) > 0.9
    assert 0.45 < made.constant < 0.6
    assert numbers[0] < made.best
    assert made.candidates[0].accuracy < best.accuracy - 0.1
    assert made == suggest(naive_bayes.GaussianNB(), X, labels, **GOAL)


def test_a_learner_that_needs_rows_gets_fewer_members():
    def learner(X, y):
        enough = len(X) >= 20
        return lambda Q: (Q[:, 0] > 0).astype(int) ^ (0 if enough else 1)

    made = suggest(learner, X, Y, **GOAL)
    assert made.best <= 260
    assert made.candidates[-1].accuracy < 0.1


def nearest_mean(X, y):
    if (y == y[0]).all():
        return lambda Q: np.full(len(Q), y[0])
    low, high = (X[y == label].mean(axis=0) for label in (0, 1))
    return lambda Q: (((Q - low) ** 2).sum(axis=1) > ((Q - high) ** 2).sum(axis=1)).astype(int)


def people(size, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, 3))
    return rows, (rows[:, 0] + 0.3 * rng.normal(size=size) > 0).astype(int)


# Which candidate, how many labelers, and how far from their mean a forecast may be: hazard tables
# end early or late, so that one labeler is as far from the next.
@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize(
    ("table", "place", "runs", "tolerance"),
    [
        ("vote", 6, 2, 0.06),
        pytest.param("hazard", 5, 6, 0.1, marks=at_length),
        pytest.param("gaussian", 7, 12, 0.06, marks=at_length),
    ],
)
def test_accuracy_is_that_of_labelers_with_few_rows_a_member(table, place, runs, tolerance):
    queries = 120
    goal = {"epsilon": 3.0, "delta": 1e-4, "queries": queries, "classes": [0, 1], "table": table}
    made = suggest(nearest_mean, *people(1000, 1), n=900, max_unstable=13, **goal)
    one = made.candidates[place]
    assert 900 / one.members < 4
    labeler = PrivateLabeler(nearest_mean, members=one.members, max_unstable=13, bottom=-1, **goal)
    rights = []
    for seed in range(runs):
        Q, truth = people(queries, 50 + seed)
        labeler.fit(*people(900, 10 + seed), random_state=seed, preflight=False)
        answers = labeler.label(Q, preflight=False).labels
        rights.append((answers == truth[: len(answers)]).sum() / queries)
    assert one.accuracy == pytest.approx(np.mean(rights), abs=tolerance)


def test_a_bar_counts_members(capsys):
    pytest.importorskip("tqdm")
    goal = GOAL | {"n": 2}
    suggest(nearest_mean, X, Y, **goal, progress=True)
    assert "member" in capsys.readouterr().err
    suggest(nearest_mean, X, Y, **goal)
    assert capsys.readouterr().err == ""


def test_few_public_rows_and_few_records_are_enough():
    made = suggest(nearest_mean, X[:8], None, **GOAL | {"n": 2})
    assert [one.members for one in made.candidates] == [1]


@pytest.mark.parametrize(
    ("changed", "error", "rule"),
    [
        ({"public_X": X[:7], "public_y": Y[:7]}, InsufficientSamples, "8 rows and 2 records"),
        ({"n": 1}, InsufficientSamples, "n = 1"),
        ({"n": 0}, ParameterError, "n = 0"),
        ({"public_y": Y[:5]}, ShapeError, "y has shape"),
        ({"public_y": Y + 1}, ParameterError, "one of classes"),
        ({"learner": 3}, ParameterError, "learner = 3"),
        ({"table": "best"}, ParameterError, "table = 'best'"),
    ],
    ids=str,
)
def test_bad_input_is_refused(changed, error, rule):
    arguments = {"learner": naive_bayes.GaussianNB(), "public_X": X, "public_y": Y} | GOAL
    with pytest.raises(error, match=rule):
        suggest(**arguments | changed)


@pytest.mark.thorough(beside="test_few_public_rows_and_few_records_are_enough")
def test_frames_of_texts_are_ranked_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": ["u", "v", "w"] * 40, "v": np.arange(120)})

    def learner(X, y):
        return lambda Q: (Q["v"] > 60).to_numpy().astype(int)

    few = GOAL | {"n": 500, "queries": 20}
    assert suggest(learner, frame, **few).constant == pytest.approx(0.5, abs=0.05)


def test_trials_on_public_rows_warn_of_no_seeded_coins(monkeypatch):
    monkeypatch.setattr("hdp_fast._support.random_state._warned", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        suggest(nearest_mean, X, Y, **GOAL | {"n": 500})
    with pytest.warns(UserWarning, match="random_state makes the random bits reproducible"):
        discrete_laplace(2, random_state=1)
