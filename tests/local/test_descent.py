"""Descent on agents' answers beside gradients by formula, exact laws and scipy's optimum."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from hdp_fast import _core, gf2
from hdp_fast.exceptions import AgentsExhausted, ParameterError, ShapeError
from hdp_fast.learners import PrivateSGD
from hdp_fast.local import Agents, RemoteAgents, descent, learn_by_descent
from hdp_fast.reference import linear as reference
from hdp_fast.reference.parity import exp_bounds

LOSSES = ["hinge", "logistic", "squared", "huber"]


def people(n, d, seed=0):
    """Rows of norms below and above 1, labels that a halfspace mostly explains."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    return X, (X @ np.linspace(1, -1, d) + 0.2 * rng.normal(size=n) > 0).astype(np.uint8)


def clipped_gradients(learner, X, y, weights):
    rows = X * np.minimum(1, learner.norm_bound / np.linalg.norm(X, axis=1))[:, None]
    factors = reference.slopes(learner.loss, rows @ weights, 2.0 * y - 1, learner.threshold)
    gradients = factors[:, None] * rows
    lengths = np.maximum(np.linalg.norm(gradients, axis=1), 1e-300)
    return gradients * np.minimum(1, learner.clip_norm / lengths)[:, None]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_are_those_of_numpy(loss, dtype):
    X, y = people(5_000, 5)
    X, labels, weights = X.astype(dtype), 2.0 * y - 1, np.linspace(-2, 3, 5)
    given = X.reshape(-1), 5, labels
    found = _core.linear_slopes(given, 0.8, weights, loss, 0.4)
    wide = X.astype(float)
    scores = wide @ weights * np.minimum(1, 0.8 / np.linalg.norm(wide, axis=1))
    np.testing.assert_allclose(
        found, reference.slopes(loss, scores, labels, 0.4, margin=0.4), atol=1e-6
    )


@pytest.mark.thorough(cases=6)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("d", [1, 2, 9])
def test_an_estimate_is_the_clipped_gradient_in_the_mean(loss, d):
    """Within 6 standard deviations in every coordinate; a direction's square is 1 / d there."""
    count = 300_000
    X, y = people(count, d)
    X += 0.3
    learner = PrivateSGD(
        loss=loss,
        steps=1,
        batch_size=count,
        norm_bound=0.9,
        clip_norm=0.3,
        radius=2,
        threshold=0.4,
        epsilon=math.inf,
    )
    agents, rng = Agents(X, y, epsilon=2.0), np.random.default_rng(1)
    weights = np.linspace(0.5, -1, d)
    norm = descent._gradient_scale(agents)
    found = norm * descent._ask_for_gradient(learner, agents, weights, rng, rng)
    expected = clipped_gradients(learner, X, y, weights)
    # Some gradients are clipped, and some are not.
    lengths = np.linalg.norm(expected, axis=1)
    assert 0.02 < (lengths > 0.3 - 1e-9).mean() < 0.98
    mean = expected.mean(axis=0)
    assert abs(mean).max() > 12 * 0.3 * norm / math.sqrt(d * count)
    assert (abs(found - mean) < 6 * 0.3 * norm / math.sqrt(d * count)).all()


@pytest.mark.parametrize(
    ("d", "share"), [(1, 1), (2, 2 / math.pi), (3, 1 / 2), (4, 4 / 3 / math.pi)]
)
def test_a_single_estimate_has_the_stated_norm(d, share):
    """E|v_1| by its integral: 1, 2 / pi, 1 / 2, 4 / (3 pi)."""
    agents, rng = Agents(np.ones((5, d)), [1] * 5, epsilon=1.0), np.random.default_rng(0)
    learner = PrivateSGD(loss="logistic", steps=1, clip_norm=0.25, epsilon=math.inf)
    found = descent._gradient_scale(agents) * descent._ask_for_gradient(
        learner, agents, np.zeros(d), rng, rng
    )
    assert np.linalg.norm(found) == pytest.approx(0.25 / (math.tanh(0.5) * share), rel=1e-12)


def heard(agents, learner, weights, seed=0):
    """Directions, true answers and what was said."""
    seen = {}
    ask = agents.ask

    def listening(question, count, *, random_state=None):
        def kept(X, y):
            seen["true"] = question(X, y)
            return seen["true"]

        seen["said"] = ask(kept, count, random_state=random_state)
        return seen["said"]

    agents.ask = listening
    public = np.random.default_rng(seed)
    descent._ask_for_gradient(learner, agents, weights, public, np.random.default_rng(seed + 1))
    directions = np.random.default_rng(seed).normal(size=(learner.batch_size, agents.d))
    return directions, seen["true"], seen["said"]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_an_answer_is_private_whatever_the_gradient(epsilon):
    """Exact fractions: an answer is 1 with probability p truth + (1 - p) lie, p in [0, 1]."""
    X, y = people(2_000, 3)
    X *= np.geomspace(1e-200, 1e200, len(X))[:, None]
    learner = PrivateSGD(loss="hinge", steps=1, batch_size=len(X), clip_norm=0.3, epsilon=math.inf)
    true = heard(Agents(X, y, epsilon=epsilon), learner, np.array([0.3, 0, 0]))[1]
    assert {0.0, 0.5, 1.0} < set(true)
    truth = Fraction(_core.truth_probability(epsilon), 2**64)
    laws = [p * truth + (1 - p) * (1 - truth) for p in map(Fraction, sorted(set(true))[::97])]
    laws += [truth, 1 - truth]
    most = exp_bounds(Fraction(epsilon))[0]
    for one, other in itertools.product(laws, repeat=2):
        assert one <= most * other
        assert 1 - one <= most * (1 - other)


def test_an_extreme_gradient_is_told_truly_as_often_as_a_bit():
    count, epsilon = 200_000, 1.0
    X = np.tile([0.6, 0.8], (count, 1))
    learner = PrivateSGD(loss="hinge", steps=1, batch_size=count, epsilon=math.inf)
    directions, true, answers = heard(
        Agents(X, np.ones(count, int), epsilon=epsilon), learner, np.zeros(2)
    )
    # The gradient of hinge loss is minus the record.
    assert (true == (directions @ [0.6, 0.8] < 0)).all()
    truth = 1 / (1 + math.exp(-epsilon))
    assert abs((answers == true).mean() - truth) < 6 * math.sqrt(truth * (1 - truth) / count)


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_converges_as_promised(loss):
    X, y = people(200_000, 3)
    X *= 1 / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    learner = PrivateSGD(loss=loss, steps=4_000, batch_size=50, radius=2.0, epsilon=math.inf)
    agents = Agents(X, y, epsilon=2.0)
    model = learn_by_descent(learner, agents, random_state=3)
    margins = lambda w: (2.0 * y - 1) * (X @ w)  # noqa: E731
    formula = {
        "hinge": lambda w: np.maximum(0, 1 - margins(w)).mean(),
        "logistic": lambda w: np.log1p(np.exp(-margins(w))).mean(),
    }[loss]
    ball = {"type": "ineq", "fun": lambda w: 4 - w @ w}
    best = minimize(formula, np.full(3, 0.1), constraints=ball, method="SLSQP").fun
    bound = 3 * 2 * math.sqrt(1 + ((2 / math.tanh(1)) ** 2 - 1) / 50) / math.sqrt(4_000)
    assert bound < 0.11 < formula(np.zeros(3)) - best
    assert best - 1e-4 < formula(model.weights) < best + bound / 2
    assert agents.remaining == 0
    assert np.linalg.norm(model.weights) <= 2
    assert (model.predict(X) != y).mean() < 0.25


def test_penalties_and_ball_are_those_of_private_sgd():
    learner = PrivateSGD(loss="hinge", steps=1, radius=0.5, l1=0.1, l2=0.2, epsilon=math.inf)
    found = descent._take_step(learner, np.array([0.5, 0.2]), np.array([0.3, 0.3]), 0.5)
    # .5 * .9 - .15 - .05 and .2 * .9 - .15 - .05, the latter cut at 0.
    np.testing.assert_allclose(found, [0.25, 0], atol=1e-15)
    far = descent._take_step(learner, np.zeros(2), np.array([-30.0, 40.0]), 1.0)
    np.testing.assert_allclose(far, np.array([29.9, -39.9]) / math.hypot(29.9, 39.9) / 2)
    agents = Agents(*people(10, 2), epsilon=1.0)
    for convexity, length in [(4.0, 0.25), (0.0, 1 / math.sqrt(1 + (3 - 1) / 1))]:
        chosen = dataclasses.replace(learner, strong_convexity=convexity)
        assert descent._first_step_size(chosen, math.sqrt(3)) == pytest.approx(length)
    strong = dataclasses.replace(learner, steps=10, strong_convexity=0.2)
    assert np.isfinite(learn_by_descent(strong, agents).weights).all()


def test_agents_are_asked_once_and_their_record_is_kept():
    X, y = people(1_000, 4)
    agents = Agents(X, y, epsilon=0.7)
    learner = PrivateSGD(loss="logistic", steps=30, batch_size=20, epsilon=math.inf)
    model = learn_by_descent(learner, agents)
    assert agents.remaining == 400
    assert (model.record.epsilon, model.record.delta) == (pytest.approx(0.7), 0)
    assert model.record.neighbors == "local"
    assert (
        model.record.rng
        != learn_by_descent(
            dataclasses.replace(learner, steps=1), agents, random_state=1
        ).record.rng
    )
    with pytest.raises(AgentsExhausted, match="30 steps of 20 need 600"):
        learn_by_descent(learner, agents)
    assert agents.remaining == 380


def test_a_seed_repeats_a_run_and_no_seed_does_not():
    X, y = people(300, 4)
    learner = PrivateSGD(loss="logistic", steps=30, batch_size=10, epsilon=math.inf)

    def run(state):
        return learn_by_descent(learner, Agents(X, y, epsilon=1.0), random_state=state).weights

    assert (run(3) == run(3)).all()
    assert (run(3) == run(np.random.default_rng(3))).all()
    assert (run(3) != run(4)).all()
    assert (run(None) != run(None)).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_strange_records_are_learned_from(loss):
    X, y = people(60, 3)
    learner = PrivateSGD(loss=loss, steps=20, batch_size=3, epsilon=math.inf)
    for rows in (X * 0, X * 1e300, X * 1e-300, X.astype(np.float32), np.rint(X).astype(int)):
        model = learn_by_descent(learner, Agents(rows, y, epsilon=1.0))
        assert np.isfinite(model.weights).all()
    bits = X > 0
    same = [
        learn_by_descent(learner, Agents(kind, y, epsilon=1.0), random_state=1).weights
        for kind in (bits, bits.astype(float), gf2.BitMatrix.from_dense(bits))
    ]
    assert (same[0] == same[1]).all()
    assert (same[0] == same[2]).all()


def test_labels_0_and_1_are_numbers_to_a_learner_of_real_labels():
    """Records of a single feature 1: the best weight is the mean label."""
    y = np.arange(100_000) % 4 == 0
    learner = PrivateSGD(
        loss="squared",
        steps=2_000,
        batch_size=50,
        label_bound=1.0,
        strong_convexity=1.0,
        epsilon=math.inf,
    )
    agents = Agents(np.ones((100_000, 1)), y, epsilon=3.0)
    model = learn_by_descent(learner, agents, random_state=1)
    assert model.weights[0] == pytest.approx(0.25, abs=0.06)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_nobody_is_asked_where_features_are_not_finite(wrong):
    X, y = people(50, 2)
    X[49, 1] = wrong
    agents = Agents(X, y, epsilon=1.0)
    with pytest.raises(ParameterError, match="agents: X has an infinite entry or NaN"):
        learn_by_descent(PrivateSGD(loss="hinge", steps=5, epsilon=math.inf), agents)
    assert agents.remaining == 50


def test_nobody_is_asked_with_a_bad_argument():
    X, y = people(50, 2)
    agents, learner = Agents(X, y, epsilon=1.0), PrivateSGD(loss="hinge", steps=5, epsilon=math.inf)
    remote = RemoteAgents(lambda text, count: [0] * count, epsilon=1.0, count=50)
    for bad, error, text in (
        (("hinge", agents), ParameterError, "learner = 'hinge'"),
        ((learner, [1]), ParameterError, "agents = list"),
        ((learner, remote), ParameterError, "agents = RemoteAgents"),
        (
            (PrivateSGD(loss="hinge", steps=5, noise_multiplier=2.0), agents),
            ParameterError,
            "learner.noise_multiplier = 2.0",
        ),
        ((learner, Agents(np.ones((9, 0)), y[:9], epsilon=1.0)), ShapeError, "0 features"),
        (
            (PrivateSGD(loss="hinge", steps=51, epsilon=math.inf), agents),
            AgentsExhausted,
            "51 steps of 1 need 51",
        ),
        ((learner, Agents([["a"]] * 9, y[:9], epsilon=1.0)), ParameterError, "real numbers"),
    ):
        with pytest.raises(error, match=text):
            learn_by_descent(*bad)
    with pytest.raises(ParameterError, match="random_state = -1"):
        learn_by_descent(learner, agents, random_state=-1)
    assert (agents.remaining, remote.remaining) == (50, 50)
