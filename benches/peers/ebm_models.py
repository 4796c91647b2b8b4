"""DP-EBM, the boosted generalized additive models of interpret (Nori et al. 2021).

Needs `pip install interpret-core`. It gets the columns of the table themselves, categories as such,
with public bounds of all numbers and of the target; everything else is its default. Neighbors are a
record more or less. It has no form for more than two classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor
from peer_tasks import Floats, PeerTask, Places, Predict, main


def by_classifier(task: PeerTask, train: Places, epsilon: float, seed: int) -> Predict:
    """The classifier with its defaults."""
    model = DPExplainableBoostingClassifier(**settings_of(task, epsilon, seed))
    model.fit(frame_of(task, train), task.y[train])

    def predict(places: Places) -> Floats:
        shares = np.zeros((len(places), task.classes))
        shares[:, model.classes_] = model.predict_proba(frame_of(task, places))
        return shares

    return predict


def by_regressor(task: PeerTask, train: Places, epsilon: float, seed: int) -> Predict:
    """The regressor with its defaults."""
    model = DPExplainableBoostingRegressor(
        **settings_of(task, epsilon, seed), privacy_target_min=-1.0, privacy_target_max=1.0
    )
    model.fit(frame_of(task, train), task.y[train])
    return lambda places: np.asarray(model.predict(frame_of(task, places)))


def settings_of(task: PeerTask, epsilon: float, seed: int) -> dict[str, Any]:
    """What is public."""
    return {
        "epsilon": epsilon,
        "delta": task.delta,
        "feature_types": ["nominal" if nominal else "continuous" for nominal in task.nominal],
        "privacy_bounds": {
            f"x{place}": (0.0, 1.0) for place, nominal in enumerate(task.nominal) if not nominal
        },
        "random_state": seed,
        "n_jobs": 1,
    }


def frame_of(task: PeerTask, places: Places) -> pd.DataFrame:
    """The columns of the table at these places, categories as texts."""
    return pd.DataFrame(
        {
            f"x{place}": task.columns[places, place].astype(int).astype(str)
            if nominal
            else task.columns[places, place]
            for place, nominal in enumerate(task.nominal)
        }
    )


if __name__ == "__main__":
    main(
        [("DP-EBM", "classes", by_classifier), ("DP-EBM", "targets", by_regressor)],
        ("interpret-core", "scikit-learn", "numpy"),
    )
