"""Bad inputs of the Python functions: each expression may name what this module imports or
makes."""

# ruff: noqa: F401 (expressions are texts)

import math

import everyday_mistakes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from bad_case import Case
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

from hdp_fast import Budget, accounting, advise, audit, gf2, local, noise, parity
from hdp_fast.adaptation import ConvexAdaptation
from hdp_fast.exceptions import (
    AgentsExhausted,
    BudgetExceeded,
    InsufficientSamples,
    ParameterError,
    ShapeError,
)
from hdp_fast.labels import PrivateLabeler, PrivateLearner, StatisticsLabeler
from hdp_fast.learners import (
    Conjunctions,
    ExponentialLearner,
    FeatureMap,
    PrivateSGD,
    SufficientStatistics,
)
from hdp_fast.transfer import SubsampleTestReweigh, certify, plan_calibration, survey

COINS = np.random.default_rng(6)
X = COINS.normal(size=(600, 2))
Y = (X[:, 0] > 0).astype(int)
Q = COINS.normal(size=(40, 2))
BITS = COINS.integers(0, 2, (400, 6), dtype=np.uint8)
PARITY = BITS[:, 0] ^ BITS[:, 1]
HOLES = X * np.nan
UNIT = X / np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
FRAME = pd.DataFrame(BITS, columns=list("abcdef"))
QUESTION = {"y": local.Query.label()}
HALFSPACE = {"kind": "halfspace", "weights": [1.0], "bias": 0.0}


class Rule:
    """Predicts the first feature."""

    def predict(self, X):
        return X[:, 0]


def statistics(X=X, y=Y, price=(1.0, 1e-6), **changed):
    description = SufficientStatistics(FeatureMap.identity(2), **{"classes": [0, 1]} | changed)
    return description.release(X, y, epsilon=price[0], delta=price[1], random_state=1)


def released(X=X, y=Y, public=Q, **changed):
    made = StatisticsLabeler(**{"epsilon": 1.0, "delta": 1e-6, "classes": [0, 1]} | changed)
    return made.fit(X, y, public, random_state=1)


def labeler(learner=None, **changed):
    goal = {"epsilon": 20, "delta": 1e-3, "queries": 50, "max_unstable": 5, "classes": [0, 1]}
    return PrivateLabeler(learner or GaussianNB(), **goal | {"members": 60} | changed)


def fit(X=X, y=Y, learner=None, **changed):
    return labeler(learner, **changed).fit(X, y, random_state=1)


def arrow(rows):
    return pa.table(list(rows.T), names=["a", "b"])


def learner():
    return PrivateLearner(labeler(), GaussianNB(), private="labels")


def mistake(name):
    """As a data scientist makes it; see everyday_mistakes."""
    where, error, _, result = everyday_mistakes.run(name, members=30)
    if where:
        raise ParameterError(error)
    return result.labels


def learn(X=BITS, y=PARITY, **changed):
    return parity.learn(X, y, **{"epsilon": 1.0} | changed)


PLAN = parity.plan(6, alpha=0.1, beta=0.05, epsilon=1.0)


def sgd(**changed):
    goal = {
        "steps": 5,
        "batch_size": 10,
        "radius": 10.0,
        "norm_bound": 3.0,
        "noise_multiplier": 1.0,
    }
    made = {name: value for name, value in (goal | changed).items() if value is not None}
    return PrivateSGD(loss="logistic", **made)


def calibrated(n):
    free = sgd(noise_multiplier=None, epsilon=math.inf)
    return free.calibrate(epsilon=1.0, delta=1e-6, n=n)


def agents(n=200, d=6, epsilon=1.0):
    rows = COINS.integers(0, 2, (n, d), dtype=np.uint8)
    return local.Agents(rows, rows[:, 0], epsilon=epsilon)


def transfer(people=None, learner=None, **changed):
    goal = {"alpha": 0.1, "kappa": 0.1, "eta": 1.0, "rounds": 3, "epsilon": 1.0, "delta": 1e-6}
    goal = {name: value for name, value in (goal | changed).items() if value is not None}
    learner = learner or ExponentialLearner(Conjunctions(6, 2), epsilon=1.0)
    return SubsampleTestReweigh(learner, **goal).fit(BITS, PARITY, people or agents())


def adapt(Xs=UNIT, ys=2.0 * Y - 1, Xt=UNIT[:100], yt=2.0 * Y[:100] - 1, **changed):
    goal = {"epsilon": 1.0, "delta": 1e-6, "steps": 5, "alpha": 0.5}
    return ConvexAdaptation(**goal | changed).fit(Xs, ys, Xt, yt, random_state=1)


def audit_laplace(runs):
    noisy = noise.discrete_laplace
    return audit.lower_bound(lambda x: x + noisy(1), 0, 1, runs=runs, confidence=0.99)


NAMES = globals()
# What the trial on public points says.
OF_NO_USE = "learner is of no use for these points: trained on some of them .* it fails"
FINITE = "but it must be finite and above 0"
NOT_BITS = "X holds something else, but every entry must be 0 or 1"
LEARNS = r"but it must have fit and predict, or be a function \(X, y\)"


def row(number, done, words, end, *said):
    return Case(number, done, words, end, said, names=NAMES)


CALLS = [
    row(107, "epsilon 0", "fit(epsilon=0)", ParameterError, f"epsilon = 0, {FINITE}"),
    row(108, "epsilon as a text", "fit(epsilon='1')", ParameterError,
        f"epsilon = '1', {FINITE}"),
    row(109, "epsilon None", "fit(epsilon=None)", ParameterError,
        "epsilon = None, but it must be a real number"),
    row(110, "epsilon inf", "fit(epsilon=math.inf)", ParameterError, f"epsilon = inf, {FINITE}"),
    row(111, "delta 0", "fit(delta=0)", ParameterError, "delta = 0, .* between 0 and 1"),
    row(112, "delta None", "fit(delta=None)", ParameterError, "delta = None, .* a real number"),
    row(113, "queries 100.0", "fit(queries=100.0)", ParameterError,
        "queries = 100.0, but it must be an integer"),
    row(114, "one class", "fit(classes=[0])", ParameterError,
        r"classes = \[0\], but it must hold 2 to 256 different labels"),
    row(114, "a class twice", "fit(classes=[0, 0])", ParameterError,
        r"classes = \[0, 0\], but it must hold 2 to 256 different labels"),
    row(115, "classes unlike y", "fit(classes=['a', 'b'])", ParameterError,
        "y holds something else, but every entry must be one of classes"),
    row(116, "y with NaN", "fit(y=np.where(Y, 1, np.nan))", ParameterError,
        "y holds something else, .* one of classes, and a missing one is none"),
    row(116, "y with NA", "fit(y=pd.Series(Y, dtype='Int64').mask(Y == 1))", ParameterError,
        "y holds something else, .* one of classes, and a missing one is none"),
    row(117, "y of one column", "fit(y=Y[:, None])", ShapeError,
        r"y has shape \(600, 1\), but it must be \(600,\), as X has 600 rows"),
    row(118, "y too short", "fit(y=Y[:9])", ShapeError,
        r"y has shape \(9,\), but it must be \(600,\), as X has 600 rows"),
    row(119, "points of another width", "fit().label(Q[:, :1])", ShapeError,
        r"Q has shape \(40, 1\), but it must be \(q, 2\), as X was"),
    row(120, "points of one dimension", "fit().label(Q[:, 0])", ShapeError,
        r"Q has shape \(40,\), but it must be \(q, 2\), as X was"),
    row(121, "a class as the learner", "fit(learner=GaussianNB)", ParameterError,
        rf"learner = <class .*>, {LEARNS}.*: did you mean one that is made, with \(\)"),
    row(122, "any object as the learner", "fit(learner=object())", ParameterError,
        f"learner = <object .*>, {LEARNS}"),
    row(123, "None as the learner", "labeler().set_params(learner=None).fit(X, Y)", ParameterError,
        f"learner = None, {LEARNS}"),
    row(124, "NaN in one point", "mistake('one NaN in Q')", ParameterError,
        OF_NO_USE, "Input X contains NaN"),
    row(125, "a new category", "mistake('a new category in Q')", ParameterError,
        OF_NO_USE, r"Found unknown categories \['new'\]"),
    row(126, "a column of texts", "mistake('a column of texts')", ParameterError,
        OF_NO_USE, "could not convert string to float: 'u'"),
    row(127, "a learner of other labels", "mistake('learner says 0 and 1, not a and b')",
        ParameterError, OF_NO_USE, "200 of 200 predictions are none of classes, 'a', 'b'"),
    row(128, "columns in another order", "mistake('columns in another order')", ParameterError,
        r"Q has its columns in another order, .*: take Q\[list\(X.columns\)\]"),
    row(129, "one dimension", "mistake('X of one dimension')", ParameterError,
        "learner = LogisticRegression.*, but it fails on a single column", "as X.reshape"),
    row(130, "a learner that fails", "mistake('learner always fails')", ParameterError,
        OF_NO_USE, "division by zero"),
    row(131, "NaN in X", "fit(HOLES).label(Q)", None, "all 40 answers are one label"),
    row(131, "lists", "fit(X.tolist(), Y.tolist()).label(Q.tolist())", None),
    row(131, "polars", "fit(pl.DataFrame(X), pl.Series(Y)).label(pl.DataFrame(Q))", None),
    row(131, "arrow", "fit(arrow(X), Y).label(arrow(Q))", None),
    row(132, "more queries than are left", "fit().label(np.vstack([Q, Q]))", BudgetExceeded,
        "80 queries, but 50 are left"),
    row(133, "predict", "fit().predict(Q)", AttributeError,
        "'PrivateLabeler' object has no attribute 'predict'"),
    row(134, "score", "learner().score(Q, Y[:40])", AttributeError,
        "'PrivateLearner' object has no attribute 'score'"),
    row(135, "fit_predict", "labeler().fit_predict(X, Y)", AttributeError,
        "'PrivateLabeler' object has no attribute 'fit_predict'"),
    row(136, "get_params", "labeler().get_params()", None),
    row(137, "clone", "clone(labeler())", None),
    row(138, "cross_val_score", "cross_val_score(learner(), X, Y)", TypeError,
        "should have a 'score' method"),
    row(139, "parity: floats", "learn(BITS * 1.0)", None),
    row(139, "parity: other floats", "learn(BITS * 0.5)", ParameterError, NOT_BITS),
    row(140, "parity: labels -1 and 1", "learn(y=2 * PARITY.astype(int) - 1)", ParameterError,
        "y holds something else, but every entry must be 0 or 1"),
    row(141, "parity: Int64", "learn(FRAME.astype('Int64'))", None),
    row(142, "parity: boolean", "learn(FRAME.astype('boolean'))", None),
    row(143, "parity: arrow", "learn(FRAME.astype('uint8[pyarrow]'))", None),
    row(144, "parity: sparse", "learn(csr_matrix(BITS))", ParameterError,
        r"X is a sparse csr_matrix, but it must be dense: X.toarray\(\)"),
    row(144, "GF(2): sparse", "gf2.rank(csr_matrix(BITS))", ParameterError, r"A\.toarray\(\)"),
    row(144, "GF(2): a frame of Int64", "gf2.BitMatrix.from_dense(FRAME.astype('Int64'))",
        None),
    row(145, "a plan for other features", "learn(BITS[:, :5], plan=PLAN)", ParameterError,
        "plan.d = 6, but the columns of X, plus one if affine, are 5"),
    row(146, "a plan for another epsilon", "learn(plan=PLAN, epsilon=2.0)", ParameterError,
        "epsilon = 2.0, but the plan is for 1.0"),
    row(147, "alpha 0", "parity.plan(6, alpha=0, beta=0.05, epsilon=1.0)", ParameterError,
        "alpha = 0, but it must lie strictly between 0 and 0.5"),
    row(147, "alpha .5", "parity.plan(6, alpha=0.5, beta=0.05, epsilon=1.0)", ParameterError,
        "alpha = 0.5, but it must lie strictly between 0 and 0.5"),
    row(148, "BitMatrix(X)", "gf2.BitMatrix(BITS)", TypeError,
        r"must be BitMatrix.from_dense\(X\)"),
    row(149, "scale 0", "noise.discrete_laplace(0)", ParameterError,
        "scale = 0, but it must be above 0, or nothing is private"),
    row(150, "scale -1", "noise.discrete_laplace(-1)", ParameterError,
        "scale = -1, but it must be above 0"),
    row(151, "a number as the budget", "learn(budget=1.0)", ParameterError,
        "budget = 1.0, but it must be a hdp_fast.budget.Budget or None"),
    row(152, "a program as the budget", "Budget.open('setup.py')", ParameterError,
        "setup.py', but it must be a budget file"),
    row(153, "SGD without noise", "sgd(noise_multiplier=None).learn(X, Y)", ParameterError,
        "epsilon = None and noise_multiplier = None, but one of them must be given"),
    row(154, "fewer records than calibrated for", "calibrated(600).learn(X[:50], Y[:50])",
        InsufficientSamples, "X has 50 records, but the noise is calibrated for 600"),
    row(155, "SGD: labels -1 and 1", "sgd().learn(X, 2 * Y - 1)", ParameterError,
        "y holds something else, but every entry must be 0 or 1"),
    row(156, "SGD: texts as labels", "sgd().learn(X, Y.astype(str))", ParameterError,
        "y has dtype .*, but it must be bool, an integer type, or floats"),
    row(157, "SGD: three classes", "sgd().learn(X, np.arange(600) % 3)", ParameterError,
        "y holds something else, but every entry must be 0 or 1"),
    row(158, "SGD: NaN in X", "sgd().learn(HOLES, Y)", ParameterError,
        "X has an infinite entry or NaN, but all must be finite"),
    row(159, "SGD: one dimension", "sgd().learn(X[:, 0], Y)", ShapeError,
        r"X has shape \(600,\), but it must have two dimensions"),
    row(160, "transfer: kappa 2", "transfer(kappa=2)", ParameterError,
        r"kappa = 2, but it must lie in \(0, 1\]"),
    row(161, "transfer: a word as kappa", "transfer(kappa='automatic')", ParameterError,
        r"kappa = 'automatic', but it must lie in \(0, 1\]"),
    row(162, "transfer: two agents for three tests", "transfer(people=agents(2), alpha='auto')",
        ParameterError, "N = 2, but 3 tests need .* or more to say anything"),
    row(163, "transfer: a tuple as agents", "transfer(people=(BITS, PARITY))", ParameterError,
        "agents = .*, but it must be Agents or RemoteAgents"),
    row(164, "transfer: agents of another width", "transfer(people=agents(9000, 5))", ShapeError,
        r"agents have 5 features, but X has shape \(400, 6\)"),
    row(165, "transfer: a learner that is not private", "transfer(learner=LogisticRegression())",
        ParameterError, "learner = LogisticRegression.*, but a private run needs one with learn"),
    row(166, "transfer: no privacy, and delta", "transfer(epsilon=math.inf)", ParameterError,
        "delta = 1e-06, but epsilon = inf protects no record of the curator: leave it out"),
    row(167, "transfer: too few agents", "transfer()", AgentsExhausted,
        "agents = 200 left, but the plan needs 9,456: fewer rounds or schedule = 'final'"),
    row(168, "adapt: public rows too long", "adapt(Xs=3 * UNIT)", ParameterError,
        "X_source has a longer row, but its norm must be at most 1"),
    row(169, "adapt: public labels too large", "adapt(ys=9.0 * Y)", ParameterError,
        r"y_source holds another label, but every label must lie in \[-1, 1\]"),
    row(170, "adapt: other columns", "adapt(Xt=UNIT[:100, :1])", ShapeError,
        "X_target has 1 features?, but X_source has 2"),
    row(171, "adapt: no target", "ConvexAdaptation(epsilon=1, delta=1e-6).fit(UNIT, Y)",
        TypeError,
        "missing 2 required positional arguments: 'X_target' and 'y_target'"),
    row(172, "adapt: private rows too long", "adapt(Xt=3 * UNIT[:100])", None),
    row(173, "more conjunctions than can be scored", "Conjunctions(200, 9)", ParameterError,
        r"size = 9 with d = 200, but more than 2\*\*40 hypotheses cannot be scored"),
    row(174, "conjunctions of floats",
        "ExponentialLearner(Conjunctions(2, 2), epsilon=1.0).learn(X, Y)", ParameterError,
        NOT_BITS),
    row(175, "an audit of 10 runs", "audit_laplace(10)", None,
        "runs = 10 show no epsilon above 0 at this confidence and delta"),
    row(176, "delta 0", "accounting.epsilon([accounting.Pure(1.0)], delta=0)", ParameterError,
        "delta = 0, but it must lie strictly between 0 and 1"),
    row(177, "category 50 of 50", "local.KaryResponse(50, 1.0).sample([50])", None),
    row(178, "statistics: neither a pool nor second moments", "statistics().solve()",
        ParameterError, "pool = None, but second moments were not released: pass public records"),
    row(179, "statistics: a label that is no class", "statistics(y=Y + 1)", ParameterError,
        "y holds something else, but every entry must be one of classes"),
    row(180, "statistics: no penalty", "statistics().solve(pool=Q, penalty=0)", ParameterError,
        "penalty = 0, but it must be finite and above 0"),
    row(181, "statistics: too few records", "statistics(X[:9], Y[:9])", None,
        "n = 9 records, but at epsilon = 1 the noise hides what fewer than [0-9]+ records"),
    row(182, "statistics: missing values", "statistics(HOLES)", ParameterError,
        "X has an infinite entry or NaN, but all must be finite"),
    row(183, "one release of labels: missing values", "released(HOLES).label(Q)", None,
        "noise|same or bottom"),
    row(184, "one release of labels: a pool of other columns", "released(public=Q[:, :1])",
        ShapeError, "X has 2 columns, but public has 1"),
    row(185, "one release of labels: points of another kind",
        "released().label(pd.DataFrame(Q))", ParameterError, "Q is a data frame of pandas, but X"),
    row(186, "one release of labels: a pool that is constant", "released(public=0 * Q)",
        ParameterError, "public has columns that are constant, but one at least must vary"),
    row(187, "one release of labels: other labels", "released(y=Y + 1)", ParameterError,
        "y holds something else, but every entry must be one of classes"),
    row(188, "one release of labels: no pool", "released(public=None)", ParameterError,
        "public is None, but it must be an array, a data frame or a list"),
    row(189, "one release of labels: texts", "released(X.astype(str))", ParameterError,
        "public has dtype float64, but in X it is object: convert one of them"),
    row(190, "a query: both ends missing", "local.Query.between(0)", ParameterError,
        "low = None and high = None, but one of them must be a number"),
    row(191, "a query: a column that no agent has", "agents().ask(local.Query.value(6, 0, 1), 9)",
        ShapeError, "query asks about column 6, but a record has 6 features"),
    row(192, "a query: a class as its model", "local.Query.score_above(LogisticRegression, 0)",
        ParameterError, "model is the class LogisticRegression, but .*: pass an instance"),
    row(193, "a query: a model of other records",
        "agents().ask(local.Query.wrong(HALFSPACE), 9)",
        ShapeError, "query asks about a model, but it must take records of 6 features"),
    row(194, "certify: no model", "certify(BITS, agents())", ParameterError,
        "model is ndarray, but it must have predict, or with a loss be a function"),
    row(195, "certify: more agents than there are", "certify(Rule(), agents(), count=201)",
        AgentsExhausted, "count = 201, but 200 agents are left"),
    row(196, "certify: too few agents for a bound", "certify(Rule(), agents(20))", None,
        "agents = 16 show an error of at most .*, but the better constant's is"),
    row(197, "certify: a loss that is a number", "certify(Rule(), agents(), loss=0.5)",
        ParameterError, "loss = 0.5, but it must be callable or None"),
    row(198, "survey: a list of questions", "survey([local.Query.label()], agents())",
        ParameterError, "questions = .*, but it must be a mapping from names to queries"),
    row(199, "survey: weights of percents",
        "survey(QUESTION, agents(), strata=QUESTION, weights={'y': 100})", ParameterError,
        "weights = .*, but they must be at least 0 and add up to 1"),
    row(200, "survey: weights without strata", "survey(QUESTION, agents(), weights={'y': 1})",
        ParameterError, "weights are for strata, but strata = None"),
    row(201, "survey: too few agents", "survey(QUESTION, agents(2))", None,
        r"agents = 2 for 1 questions tell nothing about 1 of 1 rows \(y\)"),
    row(202, "advise: delta as percents", "advise(n=500, d=9, epsilon=1.0, delta=5)",
        ParameterError, "delta = 5, but it must lie strictly between 0 and 1"),
    row(203, "advise: a finite class without its size",
        "advise(n=500, d=9, epsilon=1.0, learner='finite')", ParameterError,
        "size = None, but a finite class has a number of hypotheses"),
    row(204, "advise: a public source without records",
        "advise(n=500, d=9, epsilon=1.0, source='public')", ParameterError,
        "pool = 0, but a public source has records: pass their number"),
    row(205, "advise: a share of label 1 of three classes",
        "advise(n=500, d=9, epsilon=1.0, classes=3, base_rate=.2)", ParameterError,
        "base_rate = 0.2, but it is the share of label 1 of 2 classes"),
    row(206, "advise: ten records", "advise(n=10, d=9, epsilon=.1)", None,
        "n = 10 and agents = 0, but no method keeps a quarter of what can be learned"),
    row(207, "a plan of a calibration: hopelessly few", "plan_calibration(60, epsilon=1e-9)",
        None, "agents = 60 .* will hardly move a model: even 1e.18 do not tell it to 0.2"),
]  # fmt: skip
