"""Draws docs/figures/reliability.svg: what agents say of a model's probabilities, bin by bin.

The model's log-odds are too high by 1.8 on the target. python docs/tools/draw_calibration.py takes
a few seconds.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

from hdp_fast import local, plotting, transfer

FIGURES = Path(__file__).parents[1] / "figures"
PEOPLE = 60_000


def main() -> None:
    """Calibrate a made-up model and draw its diagram."""
    rng = np.random.default_rng(2)
    X = rng.normal(0, 2, (PEOPLE, 1))
    y = rng.random(PEOPLE) < 1 / (1 + np.exp(1.8 - X[:, 0]))
    agents = local.Agents(X, y, epsilon=4.0)
    diagram = transfer.calibrate(lambda X: X[:, 0], agents, random_state=0).reliability
    mpl.rcParams["svg.hashsalt"] = "hdp_fast"
    figure = plotting.reliability(diagram)
    figure.savefig(FIGURES / "reliability.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
