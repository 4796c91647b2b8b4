"""The hybrid model's rivals by name: weights for a panel, votes, DP-SGD, and calibration.

Run `HDP_FAST_DATA=FOLDER python benches/papers/hybrid_rivals.py`: some minutes. The problems are
those of self_selection.py; _hybrid_bench.py holds half of the target back and measures. Each
method's docstring says what is protected; delta is 1e-6 where one is needed, and "panel" is the
source. Settings were not tuned on these problems, but for those of local SGD (census_logistic.py).

DiPPS is Chen, Hartmann and West, ICWSM 2023. The implementation here is ours, by their paper and
the formula of their published code, which wants PyTorch. Its draws, and scikit-learn's models, are
in floats: what is measured is what they predict, and no one is protected by this script.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from _hybrid_bench import Case, Method, Predictor, draw, format_table, measure, write_csv
from _report import accept_seeds, make_parser, select_present, write_figure
from census_logistic import LOCAL_BATCH, LOCAL_CLIP, LOCAL_RADIUS, signs
from numpy.typing import NDArray
from self_selection import PROBLEMS, Floats, People
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture

from hdp_fast import transfer
from hdp_fast.labels import PrivateLabeler
from hdp_fast.learners import PrivateSGD, score_of
from hdp_fast.local import Agents, KaryResponse, learn_by_descent

COMPONENTS, LARGEST_WEIGHT = 8, 10.0
QUERIES, LARGEST_TEAM, CHUNK = 100, 400, 20


def constant(case: Case) -> Predictor:
    """The agents' share of label 1. Not protected: agents are counted."""
    share = case.agents.y.mean()
    return lambda people: np.full(len(people.y), share)


def source_open(case: Case) -> Predictor:
    """Logistic regression of the panel. Not protected: the panel; no agent is asked."""
    return fit_weighted(case, np.ones(len(case.source.y)))


def source_private(case: Case) -> Predictor:
    """DP-SGD without settings. Protected: the panel, by (epsilon, delta); no agent is asked."""
    return by_score(learn_private(case, case.source))


def agents_alone(case: Case) -> Predictor:
    """Local SGD, one bit of an agent. Protected: every agent, by epsilon; there is no panel."""
    agents = Agents(signs(case.agents.bits), case.agents.y, epsilon=case.epsilon)
    batch = min(LOCAL_BATCH, len(agents))
    learner = PrivateSGD(
        loss="logistic",
        steps=len(agents) // batch,
        batch_size=batch,
        radius=LOCAL_RADIUS,
        clip_norm=LOCAL_CLIP,
        epsilon=math.inf,
    )
    return by_score(learn_by_descent(learner, agents, random_state=case.rng))


def calibrated(case: Case) -> Predictor:
    """Ours. Protected: the panel, by (epsilon, delta) of DP-SGD, and every agent, by epsilon."""
    model = learn_private(case, case.source)
    agents = Agents(signs(case.agents.bits), case.agents.y, epsilon=case.epsilon)
    return by_score(transfer.calibrate(model, agents, random_state=case.rng))


def calibrated_open(case: Case) -> Predictor:
    """Ours, as DiPPS treats a panel. Protected: every agent, by epsilon; not the panel."""
    scale = scaler(case)
    model = LogisticRegression(max_iter=500).fit(scale(case.source), case.source.y)
    agents = Agents(scale(case.agents), case.agents.y, epsilon=case.epsilon)
    result = transfer.calibrate(model, agents, random_state=case.rng)
    return lambda people: sigmoid(score_of(result)(scale(people)))


def importance(case: Case) -> Predictor:
    """Weights by a logistic propensity model. Not protected: the panel and the agents' columns.

    What is measured bounds covariate weights of this kind: no noise is in them.
    """
    scale = scaler(case)
    columns = np.concatenate([scale(case.source), scale(case.agents)])
    of_agents = np.repeat([0, 1], [len(case.source.y), len(case.agents.y)])
    propensity = LogisticRegression(max_iter=500).fit(columns, of_agents)
    odds = np.exp(np.clip(propensity.decision_function(scale(case.source)), -30, 30))
    return fit_weighted(case, odds * len(case.source.y) / len(case.agents.y))


def dipps(case: Case) -> Predictor:
    """DiPPS as published. Protected: every agent's columns, by epsilon / 2; not the panel.

    Each agent sends one component of a Gaussian mixture of the panel, by the exponential mechanism.
    Its utility, the posterior, has sensitivity 1, for which exp(epsilon u / 2) is epsilon-private.
    As posteriors add up to 1 it is epsilon / 2, too: the promise is twice what is spent.
    """
    mixture, panel, agents = cluster(case)
    law = component_law(agents, case.epsilon)
    reports = (law.cumsum(axis=1) < case.rng.random(len(law))[:, None]).sum(axis=1)
    counts = np.bincount(np.minimum(reports, COMPONENTS - 1), minlength=COMPONENTS)
    shares = invert(counts, case.epsilon)
    return fit_weighted(case, panel @ (shares / mixture.weights_))


def dipps_kary(case: Case) -> Predictor:
    """DiPPS with K-ary randomized response. Protected: agents' columns, by epsilon; not the panel.

    Each agent tells the likeliest component; the counts are inverted without bias.
    """
    _, panel, agents = cluster(case)
    response = KaryResponse(COMPONENTS, epsilon=case.epsilon)
    reports = response.sample(agents.argmax(axis=1), random_state=case.rng)
    shares = np.maximum(response.aggregate(reports).frequencies(), 0)
    hard = panel.argmax(axis=1)
    here = np.bincount(hard, minlength=COMPONENTS) / len(hard)
    return fit_weighted(case, (shares / np.maximum(here, 1 / len(hard)))[hard])


def pate(case: Case) -> Predictor:
    """Labels by vote, as PATE. Protected: the panel, by (epsilon, delta), through PrivateLabeler.

    Not protected: the columns of 100 of the target, taken as public, without labels. The other
    agents are not asked. The vote is ours (a verified table), which gives every query a label.
    """
    scale = scaler(case)
    labeler = PrivateLabeler(
        LogisticRegression(),
        classes=[0, 1],
        epsilon=case.epsilon,
        delta=case.delta,
        queries=QUERIES,
        max_unstable=QUERIES // 10,
        beta=0.1,
        members=min(LARGEST_TEAM, max(2, len(case.source.y) // CHUNK)),
        table="vote",
    )
    labeler.fit(scale(case.source), case.source.y, random_state=case.rng)
    public = scale(case.agents)[:QUERIES]
    labels = labeler.label(public).labels
    return student(scale, public, labels)


def central(case: Case) -> Predictor:
    """DP-SGD of the agents' half, held by a curator. Protected: agents, by (epsilon, delta).

    They trust the curator, which no agent of the hybrid model does; there is no panel.
    """
    return by_score(learn_private(case, case.agents))


def target_open(case: Case) -> Predictor:
    """Logistic regression of the agents' half. Not protected: the agents."""
    model = LogisticRegression(C=100, max_iter=500)
    return by_score(model.fit(signs(case.agents.bits), case.agents.y))


METHODS: dict[str, Method] = {
    "best constant (open)": constant,
    "source alone (open)": source_open,
    "importance weighting (open)": importance,
    "DiPPS as published (panel open)": dipps,
    "DiPPS, K-ary response (panel open)": dipps_kary,
    "calibrated, ours (panel open)": calibrated_open,
    "source alone, DP-SGD": source_private,
    "PATE": pate,
    "agents alone, local SGD": agents_alone,
    "calibrated, ours": calibrated,
    "DP-SGD of agents (trusted)": central,
    "target, logistic (open)": target_open,
}


# What they share ----------------------------------------------------------------------------------


def sigmoid(odds: Any) -> Floats:
    return 0.5 * (1 + np.tanh(np.asarray(odds, np.float64) / 2))


def scaler(case: Case) -> Any:
    """The schema's numbers in units of the panel, which is not protected."""
    center, spread = case.source.floats.mean(axis=0), case.source.floats.std(axis=0) + 1e-9
    return lambda people: np.clip((people.floats - center) / spread, -3, 3)


def by_score(model: Any) -> Predictor:
    return lambda people: sigmoid(score_of(model)(signs(people.bits)))


def learn_private(case: Case, people: People) -> Any:
    learner = PrivateSGD(loss="logistic", epsilon=case.epsilon, delta=case.delta)
    return learner.learn(signs(people.bits), people.y, random_state=case.rng)


def fit_weighted(case: Case, weights: Floats) -> Predictor:
    """Logistic regression of the panel with these weights, at most ten."""
    scale = scaler(case)
    kept = np.minimum(weights, LARGEST_WEIGHT)
    model = LogisticRegression(max_iter=500).fit(scale(case.source), case.source.y, kept)
    return lambda people: model.predict_proba(scale(people))[:, 1]


def student(scale: Any, X: Floats, labels: NDArray[Any]) -> Predictor:
    """Logistic regression, or the constant where all labels are the same."""
    if len(set(labels.tolist())) == 1:
        share = (labels.sum() + 1) / (len(labels) + 2)
        return lambda people: np.full(len(people.y), share)
    model = LogisticRegression().fit(X, labels)
    return lambda people: model.predict_proba(scale(people))[:, 1]


def cluster(case: Case) -> tuple[GaussianMixture, Floats, Floats]:
    """A Gaussian mixture of the panel's columns, and posteriors of panel and agents."""
    scale = scaler(case)
    mixture = GaussianMixture(
        COMPONENTS, covariance_type="diag", reg_covar=1e-2, random_state=case.seed()
    ).fit(scale(case.source))
    return (
        mixture,
        mixture.predict_proba(scale(case.source)),
        mixture.predict_proba(scale(case.agents)),
    )


def component_law(posteriors: Floats, epsilon: float) -> Floats:
    """The law of each agent's report in DiPPS, by rows."""
    law = np.exp(epsilon * posteriors / 2)
    return law / law.sum(axis=1, keepdims=True)


def invert(counts: NDArray[Any], epsilon: float) -> Floats:
    """Shares of components from counts of reports, as DiPPS infers them.

    Shares are taken to differ by 2 / epsilon times the difference of the counts' logarithms, as if
    all agents had the same posterior; no report and a negative share both count as no one.
    """
    told = counts > 0
    logs = np.log(counts[told]) * (2 / epsilon)
    shares = np.zeros(len(counts))
    shares[told] = np.maximum(logs - logs.mean() + 1 / told.sum(), 0)
    return shares / shares.sum()


def main() -> None:
    parser = make_parser(__doc__, quick="two repetitions, epsilon = 1", repetitions=5)
    parser.add_argument("--only", choices=[problem.name for problem in PROBLEMS])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    arguments = parser.parse_args()
    repetitions, epsilons = arguments.repetitions, arguments.epsilon
    if arguments.quick:
        repetitions, epsilons = 2, [1.0]
    accept_seeds()
    rows = []
    for problem in select_present(PROBLEMS, arguments.only):
        for epsilon in epsilons:
            rows += (measured := measure(problem, METHODS, epsilon, repetitions))
            print(format_table(problem.title, measured), end="\n\n", flush=True)
    if rows:
        write_csv(arguments.output / "hybrid_rivals.csv", rows)
        write_figure(arguments.output / "hybrid_rivals.png", draw(rows))


if __name__ == "__main__":
    main()
