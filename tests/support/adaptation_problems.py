"""Problems of adaptation with a linear truth, and their parts as the private modules take them."""

import numpy as np
from scipy import optimize

from hdp_fast.adaptation.problem import SampleWeighting, ScaledRecords


def domain(rng, k, d, w, r=1.0):
    X = rng.normal(size=(k, d))
    X *= r / np.maximum(np.linalg.norm(X, axis=1), r)[:, None]
    return X, np.clip(X @ w + 0.2 * rng.normal(size=k), -1, 1)


def problem(seed=0, m=60, n=40, d=3, r=1.0):
    """Source and target of a regression."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=d)
    return *domain(rng, m, d, w + 0.3 * rng.normal(size=d), r), *domain(rng, n, d, w, r)


def parts(data, alpha=0.4, kappa_1=0.05, offset=0.03):
    """Records and weighting of source and target."""
    Xs, ys, Xt, yt = data
    return [
        (ScaledRecords(Xs, ys, 1.0), SampleWeighting(alpha / len(ys), kappa_1, offset)),
        (ScaledRecords(Xt, yt, 1.0), SampleWeighting((1 - alpha) / len(yt), kappa_1, 0.0)),
    ]


def classified(seed=0, m=40, n=30, d=3, classes=2):
    """Source and target of a classification."""
    rng = np.random.default_rng(seed)
    w, data = rng.normal(size=(classes, d)), []
    for k in (m, n):
        X = rng.normal(size=(k, d))
        X /= np.maximum(np.linalg.norm(X, axis=1), 1)[:, None]
        data += [X, (X @ w.T + 0.1 * rng.normal(size=(k, classes))).argmax(axis=1)]
    return data


def logistic(w, X, y):
    """The logistic loss as a callable, for labels -1 and 1."""
    margins = y * (X @ w)
    losses = np.logaddexp(0, -margins)
    return losses, (-y * np.exp(-np.logaddexp(0, margins)))[:, None] * X


def shifted(m=60, n=40, d=3, shift=0.5):
    """Source and target of a regression, the target's rows shifted."""
    rng = np.random.default_rng(m + 10 * n + d)
    source, target = rng.standard_normal((m, d)), shift + rng.standard_normal((n, d))
    w = rng.standard_normal(d)
    labels = (rows @ w + 0.1 * rng.standard_normal(len(rows)) for rows in (source, target))
    y_source, y_target = labels
    return source, y_source, target, y_target


def minimize_constrained(function, start, *, cap, low, high):
    """The least value, by sequential quadratic programs."""
    found = optimize.minimize(
        function,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, cap)] * len(start),
        constraints=[
            {"type": "ineq", "fun": lambda q: q.sum() - low, "jac": np.ones_like},
            {"type": "ineq", "fun": lambda q: high - q.sum(), "jac": lambda q: -np.ones_like(q)},
        ],
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    assert found.success
    return found.fun


def fit(kind, settings, data):
    """An estimator of these settings that is fitted; what a call is told goes to the call."""
    call = {name: settings[name] for name in ("budget", "random_state") if name in settings}
    model = kind(**{name: value for name, value in settings.items() if name not in call})
    return model.fit(*data, **call)
