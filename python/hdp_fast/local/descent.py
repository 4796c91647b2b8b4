"""Stochastic gradient descent on the answers of local agents, one bit from each."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _core
from .._support.notes import keep_result
from .._support.random_state import make_stream
from .._support.types import Bits, Floats, RandomState
from .._support.validate import read_only, refuse
from ..exceptions import AgentsExhausted, ParameterError, ShapeError
from ..learners.linear_model import LinearModel, core_arguments, validate_labels, validate_rows
from ..learners.sgd import PrivateSGD
from .agents import Agents
from .estimation import advantage


@keep_result
def learn_by_descent(
    learner: PrivateSGD, agents: Agents, *, random_state: RandomState = None
) -> LinearModel:
    """Learns a linear model from agents alone, without a curator, by descent on their gradients.

    Step r = 1, 2, ... shows the model to the next `batch_size` agents. Each of them also gets a
    direction v of its own, which is drawn uniformly from the unit sphere and is public. Let g be
    the gradient of an agent's loss, clipped to norm L = clip_norm. The agent's true answer is 1
    with probability `(1 + |g| / L) / 2` if v and g lie on the same side, and with probability
    `(1 - |g| / L) / 2` if not. The agent sends this bit through randomized response.

    Then `(2 answer - 1) v L / (a c)` has mean g and norm `L / (a c)`. Here `a = tanh(epsilon / 2)`,
    computed from the probability with which the coins are drawn, and
    `c = E|v_1| = Gamma(d / 2) / (sqrt(pi) Gamma((d + 1) / 2))`, about `sqrt(2 / (pi d))`. The mean
    over the batch replaces the gradient in the step of PrivateSGD, with
    `G**2 = L**2 (1 + (1 / (a c)**2 - 1) / batch_size)`. The result is the mean of the models before
    each step.

    Args:
        learner: Settings of the descent. Its epsilon must be math.inf, since the agents protect
            themselves; its numerics and delta are not used. It must have steps, a ball, one score
            (no "softmax"), no start and the mean for its output. `steps * batch_size` agents are
            asked. A batch_size well below `1 / (a c)**2` costs no accuracy.
        agents: Simulated agents with features that are finite real numbers. They are asked in their
            order, which must tell nothing about them. A learner with a label_bound takes the labels
            0 and 1 as numbers.
        random_state: None draws from the operating system. An int or a numpy Generator makes a
            reproducible stream for tests, which protects no one who knows it.

    Returns:
        A LinearModel with weights of shape (d,) and the record of the agents' answers.

    Raises:
        ParameterError: learner is not such a PrivateSGD with epsilon = math.inf, agents is not an
            Agents, or a feature is not a finite real number. No one is asked.
        ShapeError: The agents have no features. No one is asked.
        AgentsExhausted: Fewer than `steps * batch_size` agents are left. No one is asked.

    Guarantee:
        Pure agents.epsilon-DP, locally, for each agent: v and the model depend on no record of its
        own, and one bit sent through randomized response is all that leaves it (proved; exact
        coins, whatever the rounding of v).

        Suppose that the agents are drawn independently, that the learner has no penalties and
        strong_convexity = 0, and that no gradient needs clipping. Then the expected excess of the
        mean loss over that of the best model in the ball is at most `3 radius G / sqrt(steps)`
        (proved for real numbers).

    Cost:
        O(d) for each agent and a few calls for each step, after one pass over all features.

    Source:
        Duchi, Jordan and Wainwright 2013, Local Privacy and Statistical Minimax Rates: their
        half-space randomizer of the ball, whose two coins are made one bit here. Kohen and Sheffet
        2022, Section 1.1 (stochastic gradients in the local model).

    Examples:
        >>> import math
        >>> import numpy as np
        >>> from hdp_fast import learners, local
        >>> X = np.random.default_rng(0).standard_normal((20_000, 2))
        >>> y = (X[:, 0] > 0).astype(int)
        >>> sgd = learners.PrivateSGD(loss="logistic", steps=20, batch_size=1000, epsilon=math.inf)
        >>> model = local.learn_by_descent(sgd, local.Agents(X, y, epsilon=1.0))
        >>> bool((model.predict(X) == y).mean() > 0.9)
        True
    """
    _check(learner, agents)
    rng = make_stream(random_state)
    agents.require_finite()
    public = rng or np.random.default_rng()
    weights, total = np.zeros(agents.d), np.zeros(agents.d)
    scale = _gradient_scale(agents)
    first = _first_step_size(learner, scale)
    steps, _ = learner.counts
    for step in range(1, steps + 1):
        total += weights
        gradient = scale * _ask_for_gradient(learner, agents, weights, public, rng)
        step_size = first / (step if learner.strong_convexity else math.sqrt(step))
        weights = _take_step(learner, weights, gradient, step_size)
    weights = read_only(total / steps)
    return LinearModel(weights, learner.linear_loss, agents.record(random_state))


def _check(learner: Any, agents: Any) -> None:
    if not isinstance(learner, PrivateSGD):
        refuse("learner", learner, "it must be a learners.PrivateSGD")
    if learner.is_private:
        rule = "a learner without noise is needed, of epsilon = math.inf: each answer is noisy"
        if learner.epsilon is not None:
            refuse("learner.epsilon", learner.epsilon, rule)
        refuse("learner.noise_multiplier", learner.noise_multiplier, rule)
    if not isinstance(agents, Agents):
        rule = "it must be local.Agents, who can be asked for more than their errors"
        raise ParameterError(f"agents = {type(agents).__name__}, but {rule}")
    if not agents.d:
        raise ShapeError("agents have 0 features, but a linear model needs one")
    for name, wanted in (("domain", "ball"), ("output", "mean"), ("classes", None)):
        if getattr(learner, name) != wanted:
            refuse(f"learner.{name}", getattr(learner, name), f"agents take {wanted} alone")
    if learner.start is not None:
        raise ParameterError("learner.start holds weights, but a descent on agents starts at 0")
    steps, batch_size = learner.counts
    asked = steps * batch_size
    if asked > agents.remaining:
        rule = f"{steps:,} steps of {batch_size:,} need {asked:,}"
        raise AgentsExhausted(f"agents = {agents.remaining:,} left, but {rule}")


def _gradient_scale(agents: Agents) -> float:
    """1 / (a c): the norm of an estimated gradient, in units of clip_norm."""
    d = agents.d
    mean_coordinate = math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)
    return 1 / (advantage(agents.epsilon) * mean_coordinate)


def _first_step_size(learner: PrivateSGD, scale: float) -> float:
    if learner.strong_convexity:
        return 1 / learner.strong_convexity
    second_moment = 1 + (scale**2 - 1) / learner.counts[1]
    return 2 * learner.ball_radius / (learner.ball_clip_norm * math.sqrt(second_moment))


def _ask_for_gradient(
    learner: PrivateSGD,
    agents: Agents,
    weights: Floats,
    public: np.random.Generator,
    rng: np.random.Generator | None,
) -> Floats:
    """The mean over the next agents of their directions, with the signs of their answers, (d,)."""
    batch_size = learner.counts[1]
    directions = public.standard_normal((batch_size, agents.d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)

    def question(X: Any, y: Bits) -> Floats:
        return _answer_probabilities(learner, weights, directions, X, y)

    answers = agents.ask(question, batch_size, random_state=rng)
    mean: Floats = (2.0 * answers - 1) @ directions * (learner.ball_clip_norm / batch_size)
    return mean


def _answer_probabilities(
    learner: PrivateSGD, weights: Floats, directions: Floats, X: Any, y: Bits
) -> Floats:
    """The probability with which the true answer of each agent is 1, (m,)."""
    rows = validate_rows(X)
    given = core_arguments(rows, validate_labels(y, len(rows), learner.label_bound))
    slopes = _core.linear_slopes(
        given, learner.norm_bound, weights, learner.loss, learner.linear_loss.shape
    )
    with np.errstate(over="ignore"):
        squares = np.einsum("ij,ij->i", rows.entries, rows.entries, dtype=np.float64)
    # The kernel takes a row whose norm is not finite as zero.
    entries = np.where(np.isfinite(squares)[:, None], rows.entries, 0)
    norms = np.sqrt(np.where(np.isfinite(squares), squares, 0))
    lengths = np.abs(slopes) * np.minimum(norms, learner.norm_bound)
    side = np.sign(slopes) * np.sign(np.einsum("ij,ij->i", directions, entries))
    probabilities: Floats = (1 + side * np.minimum(lengths / learner.ball_clip_norm, 1)) / 2
    return probabilities


def _take_step(learner: PrivateSGD, weights: Floats, gradient: Floats, step_size: float) -> Floats:
    """The model after a proximal step against the gradient, projected onto the ball."""
    model: Floats = weights * (1 - step_size * learner.l2) - step_size * gradient
    if learner.l1:
        model = np.sign(model) * np.maximum(np.abs(model) - step_size * learner.l1, 0)
    radius = learner.ball_radius
    return model * (radius / max(radius, float(np.linalg.norm(model))))
