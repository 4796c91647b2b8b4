"""All plans say what tests/vectors/plans.jsonl stores: one plan a line, with its settings."""

import json
from pathlib import Path

import pytest

from hdp_fast import transfer
from hdp_fast.learners import Conjunctions, ExponentialLearner, PrivateSGD, Stumps

STORED = Path(__file__).parents[1] / "vectors" / "plans.jsonl"
STEPS = {"loss": "logistic", "steps": 20, "batch_size": 50}
LEARNERS = {
    "stumps": ExponentialLearner(Stumps(3), epsilon=1.0),
    "conjunctions": ExponentialLearner(Conjunctions(20, 2), epsilon=1.0),
    "flip": ExponentialLearner(Stumps(3), mechanism="permute_and_flip", epsilon=1.0),
    "sgd": PrivateSGD(**STEPS, epsilon=1.0),
    "noisy sgd": PrivateSGD(**STEPS, noise_multiplier=2.0),
}
PLANS = {
    "source": transfer.plan_source,
    "boosted": transfer.plan_boosted,
    "certificate": transfer.plan_certificate,
    "rounds": transfer.plan_rounds,
}


def is_equal(made, stored):
    """Whether all numbers agree: floats to within what logarithms differ between machines."""
    if isinstance(stored, dict):
        return made.keys() == stored.keys() and all(is_equal(made[k], stored[k]) for k in stored)
    if isinstance(stored, float):
        return made == pytest.approx(stored, rel=1e-12)
    return made == stored


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
@pytest.mark.parametrize("kind", PLANS)
def test_plans_are_those_that_are_stored(kind):
    cases = [
        case for case in map(json.loads, STORED.read_text().splitlines()) if case["plan"] == kind
    ]
    assert len(cases) > 5
    for case in cases:
        learner = () if case["learner"] is None else (LEARNERS[case["learner"]],)
        made = json.loads(PLANS[kind](*learner, **case["settings"]).to_json())
        assert is_equal(made, case["numbers"]), case["settings"]
