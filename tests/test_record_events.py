"""Records as events of dp-accounting: its accountants find the epsilon that records state."""

import dataclasses
import json
import math
import sys

import numpy as np
import pytest
from cases import each_case

from hdp_fast import PrivacyRecord, accounting, adaptation, learners, statistics, transfer
from hdp_fast.exceptions import ParameterError

# In the extra for development, so that CI has it.
dp_accounting = pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
pld = pytest.importorskip("dp_accounting.pld")
NEIGHBORS = ["replace_one", "local", "add_remove"]


def record_of(epsilon, neighbors="replace_one", delta=0.0, **fields):
    named = {"mechanism": "my mechanism", "source": "no one", "noise": "some"} | fields
    return PrivacyRecord(epsilon=epsilon, neighbors=neighbors, delta=delta, **named)


def epsilon_of(records, delta):
    accountant = pld.PLDAccountant()
    events = [record.to_dp_event() for record in records]
    accountant.compose(dp_accounting.ComposedDpEvent(events))
    return accountant.get_epsilon(delta)


@each_case("neighbors", NEIGHBORS)
@each_case("epsilon", [1e-3, 0.1, 1.0, 5.0])
def test_a_pure_record_has_its_epsilon(epsilon, neighbors):
    computed = epsilon_of([record_of(epsilon, neighbors)], 0.0)
    assert epsilon * (1 - 1e-9) <= computed <= epsilon + 2e-4


def test_pure_records_compose_as_well_as_is_possible():
    """The least epsilon of ten mechanisms of which only epsilon is known, up to the grid."""
    ours = accounting.optimal_composition(0.1, 0.0, 10, target_delta=1e-5)
    theirs = epsilon_of([record_of(0.1)] * 10, 1e-5)
    assert ours * (1 - 1e-6) <= theirs <= ours + 2e-3
    accountant = pld.PLDAccountant()
    accountant.compose(record_of(0.1).to_dp_event(), 10)
    assert accountant.get_epsilon(1e-5) == pytest.approx(theirs, abs=2e-3)
    # Broken variant: continuous Laplace noise has less loss than other mechanisms of this epsilon.
    other = pld.PLDAccountant().compose(dp_accounting.LaplaceDpEvent(1.0), 10)
    assert other.get_epsilon(0.01) < 0.9 * accounting.optimal_composition(
        1.0, 0.0, 10, target_delta=0.01
    )


def test_an_accountant_of_moments_finds_more():
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(RELEASES["statistics"]().to_dp_event())
    assert accountant.get_epsilon(1e-6) >= 0.5


ROWS = np.random.default_rng(0).normal(size=(3_000, 3))

RELEASES = {
    "statistics": lambda: (
        statistics.mean(
            np.zeros((5_000, 60)), low=0, high=1, epsilon=0.5, delta=1e-6, random_state=0
        )["x0"].record
    ),
    "add_remove": lambda: (
        statistics.covariance(
            np.zeros((5_000, 30)), low=0, high=1, epsilon=2.0, delta=1e-6, neighbors="add_remove"
        ).record
    ),
    "release_means": lambda: (
        transfer.release_means(np.zeros((5_000, 3)), epsilon=1.0, delta=1e-5, random_state=0).record
    ),
    "sufficient_statistics": lambda: (
        learners.SufficientStatistics(learners.FeatureMap.identity(3, norm_bound=4), classes=[0, 1])
        .release(ROWS, ROWS[:, 0] > 0, epsilon=1.0, delta=1e-6, random_state=0)
        .record
    ),
    "moment_adaptation": lambda: (
        adaptation.MomentAdaptation(epsilon=1.0, delta=1e-6)
        .fit(ROWS / 3, ROWS[:, 0] / 3, ROWS / 3, ROWS[:, 1] / 3, random_state=0)
        .record_
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_a_release_with_normal_noise_has_its_epsilon(name):
    record = RELEASES[name]()
    assert record.delta > 0
    assert type(record.to_dp_event()).__name__ == "GaussianDpEvent"
    computed = epsilon_of([record], record.delta)
    assert record.epsilon * (1 - 1e-6) <= computed <= record.epsilon * 1.001 + 2e-4


def test_words_of_a_record_decide_nothing():
    """A Gaussian release stays one under any name, and a name makes none of others."""
    record = RELEASES["statistics"]()
    renamed = dataclasses.replace(record, mechanism="x", noise="y")
    assert renamed.to_dp_event() == record.to_dp_event()
    named = {"mechanism": record.mechanism, "noise": record.noise}
    assert record_of(1.0, delta=1e-6, **named).mu is None
    assert record_of(1.0).law == "pure"
    assert record_of(1.0, delta=1e-6).law is None


def test_a_record_written_without_its_law_is_read():
    fields = json.loads(record_of(1.0, delta=1e-6).to_json())
    for name in ("law", "mu", "run"):
        del fields[name]
    assert PrivacyRecord.from_json(json.dumps(fields)) == record_of(1.0, delta=1e-6)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"law": "gaussian", "delta": 1e-6}, "mu = None"),
        ({"law": "gaussian", "delta": 1e-6, "mu": 0.2368}, "allow 0.2367"),
        ({"law": "gaussian", "mu": 0.2}, "law = 'gaussian', but it must be pure for delta 0"),
        ({"law": "pure", "delta": 1e-6}, "law = 'pure', but it must be pure for delta 0"),
        ({"mu": 0.1, "delta": 1e-6}, "only a gaussian law has one"),
        ({"law": "normal"}, "law = 'normal', but it must be one of"),
        ({"run": 3}, "run = 3"),
    ],
)
def test_a_law_that_says_less_than_epsilon_and_delta_is_refused(fields, message):
    with pytest.raises(ParameterError, match=message):
        record_of(1.0, **fields)


def test_ten_releases_cost_less_than_their_sum():
    record = RELEASES["statistics"]()
    computed = epsilon_of([record] * 10, 1e-6)
    mu = accounting.gaussian_mu(0.5, 1e-6) * math.sqrt(10)
    assert computed == pytest.approx(accounting.gaussian_epsilon(mu, 1e-6), rel=1e-3)
    assert computed < 5


def test_a_record_of_epsilon_and_delta_alone_is_no_event_of_this_version():
    if hasattr(dp_accounting.dp_event, "EpsilonDeltaDpEvent"):
        assert epsilon_of([record_of(1.0, delta=1e-6)], 1e-6) == pytest.approx(1.0, rel=1e-3)
    else:
        with pytest.raises(ParameterError, match="delta = 1e-06, but dp-accounting has no event"):
            record_of(1.0, delta=1e-6).to_dp_event()


@pytest.mark.parametrize("epsilon", [1e-12, 800.0, 1e300])
def test_extreme_epsilons_are_events(epsilon):
    assert record_of(epsilon).to_dp_event().noise_parameter == epsilon


def test_without_dp_accounting_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    for delta in (0.0, 1e-6):
        with pytest.raises(ImportError, match="pip install dp-accounting"):
            record_of(1.0, delta=delta).to_dp_event()
