"""Which number of members is best: by trials on public rows."""

import warnings

import numpy as np
import pytest
from voters import X, Y

from hdp_fast.exceptions import InsufficientSamples, ParameterError, ShapeError
from hdp_fast.labels import PrivateLabeler, suggest
from hdp_fast.noise import discrete_laplace

naive_bayes = pytest.importorskip("sklearn.naive_bayes")
GOAL = {"n": 5000, "epsilon": 1.0, "delta": 1e-6, "queries": 100, "classes": [0, 1]}


@pytest.mark.parametrize("labels", [Y, None])
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


def test_accuracy_is_that_of_a_labeler():
    rng = np.random.default_rng(3)
    points, private = rng.normal(size=(400, 2)), rng.normal(size=(3000, 2))
    truth, labels = ((rows.sum(axis=1) > 0).astype(int) for rows in (points, private))
    goal = GOAL | {"n": 3000, "queries": 200, "max_unstable": 20}
    made = suggest(naive_bayes.GaussianNB(), points, truth, **goal)
    del goal["n"]
    one = made.candidates[2]
    labeler = PrivateLabeler(naive_bayes.GaussianNB(), members=one.members, **goal)
    answers = labeler.fit(private, labels, random_state=1).label(points[1::2]).labels
    assert one.accuracy == pytest.approx((answers == truth[1::2]).mean(), abs=0.07)


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


def test_frames_of_texts_are_ranked_too():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": ["u", "v", "w"] * 40, "v": np.arange(120)})

    def learner(X, y):
        return lambda Q: (Q["v"] > 60).to_numpy().astype(int)

    assert suggest(learner, frame, **GOAL).constant == pytest.approx(0.5, abs=0.05)


def test_trials_on_public_rows_warn_of_no_seeded_coins(monkeypatch):
    monkeypatch.setattr("hdp_fast._support.random_state._warned", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        suggest(naive_bayes.GaussianNB(), X, Y, **GOAL)
    with pytest.warns(UserWarning, match="random_state makes the coins reproducible"):
        discrete_laplace(2, random_state=1)
