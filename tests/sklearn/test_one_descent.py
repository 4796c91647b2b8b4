"""What a fit by noisy gradients does in Python: it makes one learner, and few calls."""

import sys
from pathlib import Path

import numpy as np
import pytest

import hdp_fast
from hdp_fast.learners import PrivateSGD
from hdp_fast.sklearn import PrivateClassifier

PACKAGE = Path(hdp_fast.__file__).parent
# Some are for each block of rows, of which there is one.
MOST_CALLS = 340


@pytest.fixture
def fit():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2_000, 5))
    y = (X[:, 0] > 0).astype(int)
    model = PrivateClassifier(
        epsilon=1.0, delta=1e-6, bounds=(-1, 1), classes=[0, 1], method="sgd", test_seed=0
    )
    return lambda: model.fit(X, y)


def test_private_classifier_makes_one_learner(fit, monkeypatch):
    made, validate = [], PrivateSGD.__post_init__
    monkeypatch.setattr(
        PrivateSGD, "__post_init__", lambda learner: (made.append(learner), validate(learner))
    )
    assert fit().method_ == "sgd"
    assert len(made) == 1


def test_private_classifier_fits_in_few_calls(fit):
    """The second fit, as in a search: the noise of the settings is known."""
    fit()
    calls = []

    def note(frame, event, _):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            calls.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        fit()
    finally:
        sys.setprofile(None)
    assert "learn" in calls
    assert len(calls) <= MOST_CALLS
