"""The account that a release gives of itself, and its text."""

import dataclasses
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import hdp_fast
from hdp_fast import PrivacyRecord, accounting, local, parity
from hdp_fast.exceptions import ParameterError
from hdp_fast.record import tell_both

FULL = PrivacyRecord(
    mechanism="any",
    source="Théorème 1",
    neighbors="add_remove",
    epsilon=0.1,
    delta=1e-9,
    noise='"quoted"\n',
    numerics="idealized",
    rng="dice",
    version="0.0.0",
)


def records():
    X = np.eye(3, dtype=np.uint8)
    learned = parity.learn(X, X[0], epsilon=1 / 3)
    answered = local.Agents(X, X[0], epsilon=1).record(random_state=1)
    return [FULL, learned.record, answered]


def text(**changes):
    fields = dataclasses.asdict(FULL) | changes
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def test_json_gives_back_the_same_record():
    for record in records():
        written = record.to_json()
        assert PrivacyRecord.from_json(written) == record
        assert json.loads(written) == dataclasses.asdict(record)


def test_defaults_are_the_strongest_claims():
    record = PrivacyRecord(mechanism="m", source="s", neighbors="local", epsilon=1.0, noise="n")
    assert (record.delta, record.numerics) == (0.0, "exact")
    assert record.rng == "operating system entropy"
    assert record.version == hdp_fast.__version__


def test_the_advantage_of_an_attacker_is_that_of_the_best_test():
    def record(**law):
        return PrivacyRecord(mechanism="m", source="s", neighbors="local", noise="n", **law)

    for epsilon, delta in itertools.product((1e-3, 0.5, 1.0, 3.0, 30.0), (0.0, 1e-6, 0.2)):
        # The worst mechanism: it shows its input with probability delta, else a randomized bit.
        truth = Fraction(1 / (1 + math.exp(-epsilon)))
        law = [delta, (1 - delta) * truth, (1 - delta) * (1 - truth), 0]
        best = sum(abs(p - q) for p, q in zip(law, law[::-1], strict=True)) / 2
        advantage = record(epsilon=epsilon, delta=delta).attack_advantage
        assert best * (1 - 1e-13) <= advantage <= best * (1 + 1e-12)
        assert advantage == accounting.attack_advantage(epsilon, delta)
    assert accounting.attack_advantage(0.0) == 0
    assert record(epsilon=1e6).attack_advantage == 1
    gaussian = record(epsilon=1.0, delta=1e-6, law="gaussian", mu=0.23)
    shift = math.erf(0.23 / 2 / math.sqrt(2))
    assert shift <= gaussian.attack_advantage <= shift * (1 + 1e-9)
    assert accounting.attack_advantage(1.0, 1e-6) > 5 * shift
    assert accounting.delta(accounting.Pure(1.0), 0.0) == pytest.approx(math.tanh(0.5), abs=1e-6)


def test_a_record_is_read_as_a_sentence():
    assert str(FULL) == (
        "any: epsilon 0.1, delta 1e-09 (add_remove); an attacker's advantage is at most 0.05"
    )
    assert "advantage" not in FULL.to_json() + repr(FULL)


def test_a_seed_is_written_down():
    _, learned, answered = records()
    assert learned.rng == "operating system entropy"
    assert "test stream" in answered.rng


def test_a_record_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        FULL.epsilon = 0.01


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "epsilon=1",
        "null",
        "3",
        "[1]",
        "{}",
        text(epsilon=None),
        text(surprise=1),
        text()[:-1],
        "[" * 100_000,
    ],
    ids=lambda bad: bad[:12] or "empty",
)
def test_anything_else_is_refused(bad):
    with pytest.raises(ParameterError, match="text"):
        PrivacyRecord.from_json(bad)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "1"},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"delta": 1.5},
        {"neighbors": "swap"},
        {"numerics": "precise"},
        {"mechanism": 3},
    ],
    ids=str,
)
def test_a_text_whose_values_no_release_could_have_is_refused(changes):
    with pytest.raises(ParameterError, match=next(iter(changes))):
        PrivacyRecord.from_json(text(**changes))


# As version 0.0.9 wrote it, before records said whom they protect from.
OLD = (
    '{"mechanism": "local.BinaryResponse", "source": "Warner 1965", "neighbors": "local", '
    '"epsilon": 3.0, "delta": 0.0, "noise": "randomized response", "numerics": "exact", '
    '"rng": "operating system entropy", "version": "0.0.9", "law": "pure", "mu": null, "run": null}'
)


def test_a_record_of_an_older_version_says_whom_it_protects_from():
    old = PrivacyRecord.from_json(OLD)
    assert (old.trust, old.local_epsilon, old.version) == ("local", None, "0.0.9")
    central = PrivacyRecord.from_json(OLD.replace('"local"', '"replace_one"'))
    assert (central.trust, central.local_epsilon) == ("curator", None)


def test_a_record_of_shuffled_reports_has_both_epsilons():
    record = PrivacyRecord.from_json(OLD)
    for categories in (None, 2, 10):
        mixed = record.shuffled(1_000, delta=1e-6, categories=categories)
        promised = accounting.epsilon(accounting.Shuffled(3.0, 1_000, categories), delta=1e-6)
        assert (mixed.epsilon, mixed.delta, mixed.local_epsilon) == (promised, 1e-6, 3.0)
        assert (mixed.trust, mixed.neighbors, mixed.law) == ("shuffler", "replace_one", None)
        assert "1,000" in mixed.mechanism
        assert mixed.version == "0.0.9"
        assert PrivacyRecord.from_json(mixed.to_json()) == mixed
    assert tell_both(mixed).startswith("epsilon 3 against the shuffler, 0.")
    assert str(mixed).endswith(", the shuffler's 0.906")
    # One report hides behind no other; where delta covers everything, some epsilon is left.
    assert record.shuffled(1, delta=1e-12).epsilon == pytest.approx(3.0)
    assert 0 < record.shuffled(10**6, delta=0.1).epsilon < 1e-6


def test_a_budget_pays_for_shuffled_reports_with_their_delta():
    budget = hdp_fast.Budget(2.0, 1e-5)
    mixed = PrivacyRecord.from_json(OLD).shuffled(1_000, delta=1e-6)
    with budget.reserve(mixed):
        pass
    assert budget.remaining.epsilon == pytest.approx(2.0 - mixed.epsilon)


@pytest.mark.parametrize(
    "changes",
    [
        {"trust": "nobody"},
        {"trust": "local"},
        {"trust": "curator", "local_epsilon": 1.0},
        {"trust": "shuffler", "neighbors": "replace_one"},
        {"trust": "shuffler", "neighbors": "replace_one", "local_epsilon": 0.05},
        {"trust": "shuffler", "local_epsilon": 3.0, "neighbors": "add_remove"},
        {"trust": "shuffler", "local_epsilon": 3.0, "neighbors": "replace_person"},
        {"local_epsilon": 1.0},
    ],
    ids=str,
)
def test_a_trust_that_suits_nothing_is_refused(changes):
    with pytest.raises(ParameterError, match=r"trust|local_epsilon"):
        dataclasses.replace(FULL, **{"trust": None, "local_epsilon": None} | changes)


def test_only_pure_local_reports_are_shuffled():
    for record in (FULL, local.GaussianRandomizer(1.0, 1e-6, (0, 1)).record()):
        with pytest.raises(ParameterError, match="neighbors"):
            record.shuffled(1_000, delta=1e-6)
    with pytest.raises(ParameterError, match="delta"):
        PrivacyRecord.from_json(OLD).shuffled(1_000, delta=0.0)
