"""Release the statistics of two hospitals once, add them, and solve them for several models.

Run it with `python examples/sufficient_statistics.py`; it takes a few seconds.
"""

import warnings

import numpy as np

from hdp_fast.exceptions import UtilityWarning
from hdp_fast.learners import SufficientStatistics, suggest_features

CLASSES = ["cold", "flu", "hay fever", "none"]
COLUMNS = 12


def patients(n, coins):
    """Measurements of n patients, and what they have."""
    centers = np.random.default_rng(7).normal(size=(len(CLASSES), COLUMNS))
    which = coins.integers(len(CLASSES), size=n)
    return centers[which] + coins.normal(size=(n, COLUMNS)), np.array(CLASSES)[which]


def main() -> None:
    coins = np.random.default_rng(2026)
    pool, _ = patients(2_000, coins)  # public, and without diagnoses
    new, truth = patients(5_000, coins)
    hospitals = [patients(n, coins) for n in (800, 400)]

    print(f"{'epsilon':>7} {'first':>6} {'both':>6} {'sure':>6}")
    for epsilon in (0.25, 1.0, 4.0):
        goal = {"epsilon": epsilon, "delta": 1e-6}
        features = suggest_features(pool, n=400, classes=CLASSES, **goal)
        description = SufficientStatistics(features, classes=CLASSES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UtilityWarning)
            releases = [description.release(X, y, **goal) for X, y in hospitals]

        # From here on everything is free: it uses what was published.
        one = releases[0].solve(pool=pool)
        both = (releases[0] + releases[1]).solve(pool=pool)
        right = [(model.predict(new) == truth).mean() for model in (one, both)]
        sure = both.predict_proba(new).max(axis=1) > 0.8
        among = (both.predict(new) == truth)[sure].mean() if sure.any() else 0.0
        print(f"{epsilon:7} {right[0]:6.3f} {right[1]:6.3f} {among:6.3f} ({sure.mean():.0%})")
    print(both.record.to_json())


if __name__ == "__main__":
    main()
