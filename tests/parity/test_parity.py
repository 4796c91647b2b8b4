"""Plans against the numpy reference, learning and transfer as a caller meets them."""

import dataclasses
import itertools
import json
import logging
import time
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import pytest
from lengths import at_length

from hdp_fast import Budget, _core, gf2, local, parity
from hdp_fast.data import Chunks, State
from hdp_fast.exceptions import (
    AgentsExhausted,
    InsufficientSamples,
    ParameterError,
    ShapeError,
    UtilityWarning,
)
from hdp_fast.local import Agents
from hdp_fast.parity.equations import Mechanism, Public, fold_spaces
from hdp_fast.reference import parity as reference

RELATIONS = ["replace_one", "add_remove"]
# The printed mechanism has a proof for replaced records only.
RUNS = [("loop", "replace_one"), ("loop", "add_remove"), ("batches", "replace_one")]
RUNS += [("batches", "add_remove"), ("paper", "replace_one")]
# Sizes are ceilings of floats that the twin gets from another minimizer and another logarithm:
# where the real number is next to an integer, the last digit decides between two neighbors.
ROUNDING = 1


def bits(rng, *shape):
    return rng.integers(2, size=shape, dtype=np.uint8)


# Plans --------------------------------------------------------------------------------------------


def check_sizes(found, expected, records_in_step):
    assert abs(found.n - expected.n) <= ROUNDING * records_in_step
    assert found.p == pytest.approx(expected.p, rel=1e-9)
    assert abs(found.n_paper - expected.n_paper) <= ROUNDING * 2


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1, 4.0])
def test_loop_plans_agree_with_the_twin(epsilon, relation):
    for d, alpha, beta in itertools.product([1, 2, 33, 10_000], [0.01, 0.1, 0.49], [0.2, 0.001]):
        found = parity.plan(d, alpha=alpha, beta=beta, epsilon=epsilon, neighbors=relation)
        expected = reference.plan_loop(d, alpha, beta, float(epsilon), relation)
        check_sizes(found, expected, 1)
        assert found.n_paper_valid is expected.n_paper_valid
        assert found.g == pytest.approx(expected.g, rel=1e-9)
        assert (found.c, found.k, found.batch_size, found.test_size) == (None,) * 4


@pytest.mark.thorough(cases=3)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    "targets", [(1, 0.1, 0.2, 0.1), (33, 0.3, 0.05, 4.0), (10_000, 0.05, 0.01, 1.0)], ids=str
)
def test_batch_plans_agree_with_the_twin(targets, relation):
    d, alpha, beta, epsilon = targets
    found = parity.plan(
        d, alpha=alpha, beta=beta, epsilon=epsilon, method="batches", neighbors=relation
    )
    expected = reference.plan_batches(*targets, relation)
    assert found.k == expected.k
    check_sizes(found, expected, found.k if relation == "replace_one" else 1)
    assert found.c == pytest.approx(expected.c, rel=1e-9)
    assert found.batch_size == -(-found.n // found.k)
    assert (found.g, found.test_size) == (None, None)


@pytest.mark.parametrize(
    "targets", [(1, 0.1, 0.2, 0.1), (33, 0.3, 0.05, 0.5), (10_000, 0.05, 0.05, 2)]
)
def test_paper_plans_agree_with_the_twin(targets):
    d, alpha, beta, epsilon = targets
    found = parity.plan(d, alpha=alpha, beta=beta, epsilon=epsilon, method="paper")
    expected = reference.plan_paper(*targets, "replace_one")
    check_sizes(found, expected, found.k + 1)
    assert (found.k, found.c, found.g) == (expected.k, 0.5, None)
    assert found.n == found.n_paper == found.k * found.batch_size + found.test_size
    assert found.n_paper_valid is expected.n_paper_valid


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("beta", [0.1, 0.3])
@pytest.mark.parametrize("epsilon", [0.5, 0.51])
def test_the_papers_proof_covers_what_the_twin_says(epsilon, beta, relation):
    found = parity.plan(9, alpha=0.1, beta=beta, epsilon=epsilon, neighbors=relation)
    assert (
        found.n_paper_valid is reference.plan_paper(9, 0.1, beta, epsilon, relation).n_paper_valid
    )


@pytest.mark.parametrize(
    ("epsilon", "loop", "batches", "paper"),
    [
        (0.1, 3_066_962, 6_176_799, 832_045_011),
        (0.5, 630_921, 1_117_632, 166_409_003),
        (1, 330_555, 446_574, 83_204_509),
        (2, 186_325, 269_064, 41_603_963),
    ],
)
def test_the_table_of_the_readme(epsilon, loop, batches, paper):
    targets = {"alpha": 0.05, "beta": 0.05, "epsilon": epsilon}
    for method, n in ("loop", loop), ("batches", batches), ("paper", paper):
        found = parity.plan(10_000, **targets, method=method)
        assert (found.n, found.n_paper) == (n, paper)
        assert found.n_paper_valid is (epsilon <= 0.5)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["loop", "batches"])
def test_plans_from_chi2_agree_with_the_twin(method, relation):
    for d, chi2, beta in itertools.product([1, 2, 1_000], [0, 0.35, 7.0], [0.5, 0.02]):
        planned = parity.plan_transfer(
            *(d,),
            alpha=0.1,
            beta=beta,
            epsilon=1,
            agents_epsilon=1,
            chi2=chi2,
            method=method,
            neighbors=relation,
        ).curator
        silent = planned.g if method == "loop" else planned.c**planned.k
        failure = (beta / 2 - silent) / (1 - silent)
        together = method == "loop" or relation == "add_remove"
        rate = planned.p / planned.k if method == "batches" and together else planned.p
        size = reference.samples_uniform_target(d, chi2, rate, failure)
        found = planned.n if together else planned.batch_size
        assert abs(found - size) <= ROUNDING
        assert planned.n == (found if together else planned.k * found)
        assert (planned.alpha, planned.n_paper) == (None, None)


def test_a_loop_plan_from_chi2_gives_up_where_that_costs_least():
    targets = {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "agents_epsilon": 1.0}
    planned = parity.plan_transfer(1_000, **targets, chi2=0.35).curator
    sizes = []
    for g in (0.05 * tenths / 10 for tenths in range(1, 10)):
        rate = reference.rate(1.0, "replace_one", g=g)
        sizes.append(reference.samples_uniform_target(1_000, 0.35, rate, (0.05 - g) / (1 - g)))
    assert abs(planned.n - min(sizes)) <= ROUNDING
    assert planned.n == 4_711  # docs/theory/parities.md


@pytest.mark.parametrize("method", ["loop", "batches"])
def test_sizes_grow_with_chi2_as_the_waiting_times_do(method):
    targets = {"alpha": 0.1, "beta": 0.1, "epsilon": 1.0, "agents_epsilon": 1.0, "method": method}

    def scaled(chi2):
        return parity.plan_transfer(20, **targets, chi2=chi2).curator.n / (chi2 + 1)

    for chi2 in 1e9, 1e11, 1e13:
        assert scaled(chi2) == pytest.approx(scaled(1e5), rel=1e-3)


def test_transfer_plans_share_beta():
    targets = {"alpha": 0.1, "beta": 0.02, "epsilon": 0.7}
    planned = parity.plan_transfer(30, **targets, agents_epsilon=2, neighbors="add_remove")
    curator = parity.plan(30, alpha=0.1, beta=0.01, epsilon=0.7, neighbors="add_remove")
    agents = local.agents_needed(alpha=0.1, beta=0.01, epsilon=2)
    assert planned == parity.TransferPlan(curator, agents, 0.1, 0.02)


# Learning -----------------------------------------------------------------------------------------


def promised(d, method, relation, *, beta=0.05):
    """The weakest promise that rules every wrong parity out where bits are uniform."""
    return parity.plan(d, alpha=0.45, beta=beta, epsilon=0.5, method=method, neighbors=relation)


def examples(n, d, *, intercept=0, seed=0):
    rng = np.random.default_rng([n, d, seed])
    X, secret = bits(rng, n, d), bits(rng, d)
    return X, (X @ secret + intercept & 1).astype(np.uint8), secret


@pytest.mark.parametrize("intercept", [None, 0, 1], ids=["linear", "affine 0", "affine 1"])
@pytest.mark.parametrize(("method", "relation"), RUNS)
def test_the_planned_records_give_the_secret(method, relation, intercept):
    affine = intercept is not None
    planned = promised(8 + affine, method, relation, beta=0.1)
    X, y, secret = examples(planned.n, 8, intercept=intercept or 0)
    right = 0
    for seed in range(40):
        result = parity.learn(X, y, epsilon=0.5, plan=planned, affine=affine, random_state=seed)
        assert result.released is (result.mask is not None) is (result.intercept is not None)
        right += result.released and (result.mask.tolist(), result.intercept) == (
            secret.tolist(),
            intercept or 0,
        )
    # Of 40 runs at least 36 are right on average; fewer than 24 are with probability below 1e-6.
    assert right >= 24


def test_any_kind_of_array_gives_the_same_result():
    X, y, _ = examples(300, 8)
    for kind in (
        lambda X: X.astype(bool),
        lambda X: np.asfortranarray(X, dtype=">i8"),
        lambda X: np.repeat(X, 2, axis=1)[:, ::2],
        np.ndarray.tolist,
        gf2.BitMatrix.from_dense,
    ):
        for seed in range(3):
            one = parity.learn(X, y, epsilon=1, random_state=seed)
            other = parity.learn(kind(X), y.astype("<i4").tolist(), epsilon=1, random_state=seed)
            assert same(one, other)


def same(one, other):
    """Whether two results say the same."""
    return one.record == other.record and repr(one) == repr(other) and mask(one) == mask(other)


def mask(result):
    return result.mask if result.mask is None else result.mask.tolist()


@pytest.mark.parametrize("arm", ["portable", "avx2", "gfni256", "gfni"])
@pytest.mark.parametrize(("method", "relation"), RUNS)
def test_a_seed_repeats_whatever_the_threads_and_the_arm(method, relation, arm, monkeypatch):
    X, y = wide()
    options = {"epsilon": 0.5, "method": method, "neighbors": relation}
    results = [parity.learn(X, y, **options, random_state=seed) for seed in range(3)]
    assert any(result.released for result in results)
    monkeypatch.setenv("HDP_FAST_ISA", arm)
    for threads in "1", "2":
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        again = [parity.learn(X, y, **options, random_state=seed) for seed in range(3)]
        assert all(map(same, results, again))


def wide():
    """Enough for the pool, and far too few records for a unique solution."""
    rng = np.random.default_rng(1)
    X = gf2.BitMatrix.from_packed(
        np.frombuffer(rng.bytes(3000 * 250), np.uint8).reshape(3000, 250), 2000
    )
    return X, gf2.dot(X, bits(rng, 2000))


def test_runs_differ_without_a_seed_and_with_a_shared_generator():
    X = np.zeros((1, 200), np.uint8)
    rng = np.random.default_rng(2)
    options = {"epsilon": 1, "method": "batches", "beta": 1e-9}
    results = [parity.learn(X, [0], **options) for _ in range(2)]
    results += [parity.learn(X, [0], **options, random_state=rng) for _ in range(2)]
    assert len({str(mask(result)) for result in results}) == 4


@pytest.mark.parametrize("planned", [False, True], ids=["few", "planned"])
@pytest.mark.parametrize(("method", "relation"), RUNS)
def test_labels_that_no_parity_fits_are_an_ordinary_run(method, relation, planned, caplog, capfd):
    plan = promised(7, method, relation, beta=0.2) if planned else None
    X, _, _ = examples(plan.n if planned else 9, 6)
    y = bits(np.random.default_rng(3), len(X))
    options = {"method": method, "neighbors": relation, "plan": plan, "affine": True}
    with caplog.at_level(logging.DEBUG):
        results = [parity.learn(X, y, epsilon=0.5, **options) for _ in range(10)]
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")
    assert len({(result.record, result.alpha) for result in results}) == 1
    assert {type(result.released) for result in results} == {bool}


def test_labels_far_from_every_parity_release_nothing():
    X, y = examples(4_000, 6)[0], bits(np.random.default_rng(3), 4_000)
    results = [parity.learn(X, y, epsilon=0.5) for _ in range(5)]
    assert [result.released for result in results] == [False] * 5
    assert repr(results[0]).startswith("ParityResult(no release, ")


@pytest.mark.parametrize("method", ["loop", "batches", "paper"])
def test_no_records_are_an_ordinary_run(method):
    for affine in False, True:
        options = {"epsilon": 0.5, "method": method, "affine": affine}
        results = [parity.learn(np.zeros((0, 3), int), [], **options) for _ in range(5)]
        assert {result.alpha for result in results} == {None}
        assert all(result.mask.shape == (3,) for result in results if result.released)


def test_results_and_records_have_public_fields_only():
    fit, noisy = examples(60, 6)[:2], (examples(60, 6)[0], bits(np.random.default_rng(4), 60))
    few = np.zeros((60, 6), np.uint8), np.zeros(60, np.uint8)
    results = [parity.learn(X, y, epsilon=1, beta=0.3) for X, y in (fit, noisy, few)]
    assert len({result.record for result in results}) == 1
    for result in results:
        assert set(vars(result)) == {
            *["mask", "intercept", "released", "alpha", "record", "silence"]
        }
        assert set(vars(result.record)) == {
            "mechanism",
            "source",
            "neighbors",
            "epsilon",
            "delta",
            "noise",
            "numerics",
            "local_epsilon",
            "trust",
            "rng",
            "version",
            "law",
            "mu",
            "run",
        }


@pytest.mark.parametrize(("method", "relation"), RUNS)
def test_the_record_says_what_was_run(method, relation):
    X, y, _ = examples(40, 4)
    for state, rng in (None, "operating system"), (1, "test stream"):
        options = {"method": method, "neighbors": relation, "random_state": state}
        record = parity.learn(X, y, epsilon=np.float64(0.25), **options).record
        assert record.mechanism == f"parity.learn, method={method}"
        assert (record.neighbors, record.epsilon, record.delta) == (relation, 0.25, 0)
        assert (type(record.epsilon), record.numerics) == (float, "exact")
        assert rng in record.rng


def test_a_plan_stands_in_for_what_is_not_said():
    X, y, _ = examples(2_000, 8)
    for method, relation in RUNS[1:4]:
        planned = promised(8, method, relation)
        for beta in 0.05, 0.9:
            result = parity.learn(X, y, epsilon=0.5, beta=beta, plan=planned)
            assert result.record.mechanism.endswith(method)
            assert result.record.neighbors == relation
            assert result.alpha == planned.alpha


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"epsilon": 0.25}, "epsilon"),
        ({"epsilon": "0.5"}, "epsilon"),
        ({"method": "batches"}, "method"),
        ({"neighbors": "add_remove"}, "neighbors"),
        ({"affine": True}, "plan"),
        ({"X": np.zeros((2_000, 7), int)}, "plan"),
        ({"plan": "loop"}, "plan"),
        ({"plan": 3}, "plan"),
    ],
    ids=str,
)
def test_a_call_that_contradicts_its_plan_is_refused(changes, name):
    X, y, _ = examples(2_000, 8)
    call = {"X": X, "y": y, "epsilon": 0.5, "plan": promised(8, "loop", "replace_one")} | changes
    with pytest.raises(ParameterError, match=rf"\b{name}\b"):
        parity.learn(**call)


def test_too_few_records_for_a_plan_are_named():
    planned = parity.plan(300, alpha=0.1, beta=0.05, epsilon=1)
    X, y, _ = examples(planned.n - 1, 300)
    with pytest.raises(InsufficientSamples, match=rf"{planned.n - 1:,}\b.*\b{planned.n:,}\b"):
        parity.learn(X, y, epsilon=1, plan=planned)
    parity.learn(np.vstack([X, X[:1]]), [*y, y[0]], epsilon=1, plan=planned)


@pytest.mark.parametrize(
    "changes",
    [
        {"y": [0, 1]},
        {"y": [2] * 50},
        {"X": np.zeros((50, 0), int)},
        {"epsilon": 0},
        {"beta": 1},
        {"method": "paper"},
        {"plan": parity.plan(4, alpha=0.1, beta=0.1, epsilon=1)},
    ],
    ids=str,
)
def test_everything_is_checked_before_a_coin_is_drawn(changes):
    X, y, _ = examples(50, 4)
    rng = np.random.default_rng(5)
    before = rng.bit_generator.state
    with pytest.raises(ValueError, match="but"):
        parity.learn(**{"X": X, "y": y, "epsilon": 1, "random_state": rng} | changes)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize(("method", "epsilon"), [("loop", 1), ("paper", 0.5)])
def test_without_a_plan_alpha_is_the_least_that_the_records_promise(method, epsilon):
    targets = {"beta": 0.05, "epsilon": epsilon, "method": method}
    fewest = parity.plan(4, alpha=0.499_999, **targets).n
    for n in fewest - 1, fewest, 10 * fewest:
        alpha = parity.learn(*examples(n, 4)[:2], **targets).alpha
        if n < fewest:
            assert alpha is None
        else:
            assert parity.plan(4, alpha=alpha, **targets).n <= n
            assert parity.plan(4, alpha=alpha * 0.999, **targets).n > n


def notes_of(call):
    """What is said of the result of a call."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        # Said once a process, by whichever test comes first.
        warnings.filterwarnings("ignore", "random_state makes the random bits reproducible")
        result = call()
    assert {each.category for each in heard} <= {UtilityWarning}
    return result, [str(each.message) for each in heard]


@pytest.mark.parametrize("n", [0, 5])
@pytest.mark.parametrize("method", ["loop", "batches"])
def test_fewer_records_than_unknown_bits_are_told_what_they_promise(n, method):
    X, y, _ = examples(n, 6)
    options = {"epsilon": 1, "method": method, "affine": True, "random_state": 0}
    result, notes = notes_of(lambda: parity.learn(X, y, **options))
    needed = parity.plan(7, alpha=0.1, beta=0.05, epsilon=1, method=method).n
    assert f"X has {n} records for 7 unknown bits: no error below 1/2 is promised" in notes[0]
    assert f"an error of 0.1 needs {needed:,} (parity.plan)" in notes[0]
    assert result.released
    assert result.summary == "no promise: so few records promise no error below 1/2"


def test_records_that_promise_something_are_told_nothing():
    X, y, _ = examples(400, 4)
    result, notes = notes_of(lambda: parity.learn(X, y, epsilon=1, random_state=0))
    assert notes == []
    assert result.summary == f"error at most {result.alpha:.3g}, if some parity fits every record"
    few = examples(3, 4)[:2]
    private = {"epsilon": 1, "neighbors": "add_remove", "random_state": 0}
    result, notes = notes_of(lambda: parity.learn(*few, **private))
    assert notes == [], "the number of records is private"
    assert result.summary.startswith("no promise: under add_remove")


def test_no_release_names_noise_and_how_rare_it_is_without():
    X, y = examples(4_000, 6)[0], bits(np.random.default_rng(3), 4_000)
    result, notes = notes_of(lambda: parity.learn(X, y, epsilon=0.5, random_state=0))
    assert notes == [result.summary]
    assert "nothing was released: where some parity fits every record" in notes[0]
    assert f"probability {result.silence:.2g} only" in notes[0]
    assert f"error would be at most {result.alpha:.3g}" in notes[0]
    assert "wrong labels, that is noise, are the likely cause" in notes[0]
    assert result.silence < 0.05


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["loop", "batches"])
def test_a_fitting_parity_is_kept_back_as_often_as_stated(method, relation):
    planned = promised(3, method, relation, beta=0.6)
    X, y, _ = examples(planned.n, 3)
    results = [parity.learn(X, y, epsilon=0.5, plan=planned, random_state=i) for i in range(2_000)]
    (stated,) = {result.silence for result in results}
    silent = sum(not result.released for result in results) / 2_000
    assert 0.01 < stated < 0.6
    assert abs(silent - stated) < 5 * (stated * (1 - stated) / 2_000) ** 0.5


def test_alpha_does_not_tell_a_private_number_of_records():
    X, y, _ = examples(5_000, 4)
    planned = promised(4, "loop", "add_remove")
    assert parity.learn(X, y, epsilon=0.5, neighbors="add_remove").alpha is None
    assert parity.learn(X, y, epsilon=0.5, plan=planned).alpha == planned.alpha


# Transfer -----------------------------------------------------------------------------------------

D = 8
TRANSFER = {"epsilon": 4.0, "alpha": 0.1, "beta": 0.1}


def people(count, *, flips=0.0, epsilon=2.0, seed=0):
    """Agents with mostly zeros, labeled by the secret of source() but for some flipped labels."""
    rng = np.random.default_rng([6, seed])
    X = (rng.random((count, D)) < 0.3).astype(np.uint8)
    y = (X @ source()[2] & 1).astype(np.uint8) ^ (rng.random(count) < flips)
    return Agents(X, y, epsilon=epsilon)


def source(n=400):
    """A curator's records with mostly ones."""
    rng = np.random.default_rng(7)
    X, secret = (rng.random((n, D)) < 0.7).astype(np.uint8), bits(np.random.default_rng(8), D)
    return X, (X @ secret & 1).astype(np.uint8), secret


@pytest.mark.parametrize("flips", [0.0, 0.25])
def test_the_interval_holds_the_error_on_a_shifted_target(flips):
    X, y, secret = source()
    needed = local.agents_needed(alpha=0.1, beta=0.05, epsilon=2)
    missed = 0
    for seed in range(20):
        agents = people(needed + 5, flips=flips, seed=seed)
        result = parity.transfer(X, y, agents, **TRANSFER, random_state=seed)
        assert agents.remaining == 5 + needed * (not result.released)
        if result.released:
            low, high = result.interval
            assert result.mask.tolist() == secret.tolist()
            assert 0 <= low <= result.target_error <= high <= min(1, low + 0.2)
            missed += not low <= flips <= high
    assert missed <= 1


def test_a_wrong_hypothesis_is_found_out():
    X, y, _ = source()
    agents = people(1_000)
    result = parity.transfer(X, 1 - y, agents, **TRANSFER, affine=True, random_state=0)
    assert result.intercept == 1
    assert result.interval[0] > 0.8


def test_packed_agents_are_agents():
    X, y, _ = source()
    results = []
    for kind in np.asarray, gf2.BitMatrix.from_dense:
        target = np.random.default_rng(9).integers(2, size=(900, D), dtype=np.uint8)
        agents = Agents(kind(target), gf2.dot(target, source()[2]), epsilon=2)
        results.append(parity.transfer(kind(X), y, agents, **TRANSFER, random_state=0))
    assert results[0].released
    assert repr(results[0]) == repr(results[1])


def test_agents_are_left_alone_without_a_release():
    X, agents = source()[0], people(900)
    y = bits(np.random.default_rng(10), len(X))
    result = parity.transfer(X, y, agents, **TRANSFER)
    assert not result.released
    assert agents.remaining == 900
    assert result.record.epsilon == 4
    empty = [result.mask, result.intercept, result.target_error, result.interval]
    assert [*empty, result.agents_record] == [None] * 5


def test_both_sides_have_a_record():
    X, y, _ = source()
    result = parity.transfer(X, y, people(900, epsilon=3), **TRANSFER, random_state=0)
    assert (result.record.epsilon, result.record.neighbors) == (4, "replace_one")
    assert (result.agents_record.epsilon, result.agents_record.neighbors) == (3, "local")


@pytest.mark.parametrize(
    ("changes", "error", "name"),
    [
        ({"agents": people(100)}, AgentsExhausted, "100"),
        ({"agents": people(0)}, AgentsExhausted, "agents"),
        ({"X": source()[0][:, :-1]}, ShapeError, "features"),
        ({"y": source()[1][:-1]}, ShapeError, "y"),
        ({"y": source()[1] + 1}, ParameterError, "y"),
        ({"agents": source()[:2]}, ParameterError, "agents"),
        ({"plan": parity.plan(D, alpha=0.01, beta=0.1, epsilon=4)}, InsufficientSamples, "X"),
        ({"beta": 1.5}, ParameterError, "beta = 1.5"),
        ({"random_state": -1}, ParameterError, "random_state"),
    ],
    ids=["100 agents", "no agents", "d", "len(y)", "y", "tuple", "n", "beta", "seed"],
)
def test_transfer_checks_everything_before_anything(changes, error, name):
    X, y, _ = source()
    rng = np.random.default_rng(11)
    before = rng.bit_generator.state
    call = {"X": X, "y": y, "agents": people(900), "random_state": rng} | TRANSFER | changes
    remaining = getattr(call["agents"], "remaining", None)
    with pytest.raises(error, match=rf"\b{name}\b"):
        parity.transfer(**call)
    assert rng.bit_generator.state == before
    assert getattr(call["agents"], "remaining", None) == remaining


def test_agents_whose_features_are_no_bits_are_refused_unasked():
    X, y, _ = source()
    agents = []

    def transfer():
        agents.append(Agents(np.full((900, D), 0.5), np.zeros(900, int), epsilon=2))
        parity.transfer(X, y, agents[0], **TRANSFER, random_state=0)

    with pytest.raises(ParameterError, match=r"\b(agents|X)\b"):
        transfer()
    assert [left.remaining for left in agents] in ([], [900])


@pytest.mark.parametrize("chi2", [None, 0.4])
def test_a_plan_of_both_sides_is_followed(chi2):
    options = {"neighbors": "add_remove", "method": "batches"}
    planned = parity.plan_transfer(D, **TRANSFER, agents_epsilon=2, chi2=chi2, **options)
    X, y, secret = source(planned.curator.n)
    for plan in planned, planned.curator:
        agents = people(planned.agents)
        results = [parity.transfer(X, y, agents, **TRANSFER, plan=plan, random_state=1)]
        assert results[0].mask.tolist() == secret.tolist()
        assert results[0].record.neighbors == "add_remove"
        assert "batches" in results[0].record.mechanism
        assert agents.remaining == 0
    # How many records there are is private: no error tells that they are fewer than planned.
    agents = people(planned.agents)
    fewer = parity.transfer(X[1:], y[1:], agents, **TRANSFER, plan=planned, random_state=1)
    assert fewer.record.neighbors == "add_remove"


def test_a_plan_of_both_sides_brings_its_targets():
    planned = parity.plan_transfer(D, alpha=0.2, beta=0.3, epsilon=4, agents_epsilon=2)
    X, y, _ = source(planned.curator.n)
    agents = people(planned.agents)
    parity.transfer(X, y, agents, epsilon=4, plan=planned, random_state=1)
    assert agents.remaining == 0
    with pytest.raises(ParameterError, match=r"alpha = 0\.1"):
        parity.transfer(X, y, people(900), epsilon=4, alpha=0.1, plan=planned)
    with pytest.raises(ParameterError, match="alpha = None"):
        parity.transfer(X, y, people(900), epsilon=4)


def test_a_paid_hypothesis_outlives_agents_asked_by_others(monkeypatch):
    X, y, secret = source()
    agents = people(900)
    learn = parity.learn

    def while_others_ask(*arguments, **options):
        agents.ask(lambda X, y: y, agents.remaining, random_state=0)
        return learn(*arguments, **options)

    monkeypatch.setattr("hdp_fast.parity.transferring.learn", while_others_ask)
    result = parity.transfer(X, y, agents, **TRANSFER, random_state=0)
    assert result.mask.tolist() == secret.tolist()
    assert result.target_error is result.interval is result.agents_record is None


def test_a_large_n_of_the_paper_spoils_no_plan():
    planned = parity.plan(10_000, alpha=0.05, beta=0.05, epsilon=1e-11)
    assert planned.n_paper is None
    assert planned.n < 1 << 62


# Containers ---------------------------------------------------------------------------------------


def pandas_frame(X, dtype):
    return pytest.importorskip("pandas").DataFrame(X).astype(dtype)


def sparse(X, kind="csr_array"):
    return getattr(pytest.importorskip("scipy.sparse"), kind)(X)


def learn_bits(X, y):
    return parity.learn(X, y, epsilon=4, random_state=0).mask.tolist()


def test_bits_of_every_container_are_the_same_bits():
    X, y, _ = source()
    expected = learn_bits(X, y)
    frames = [pandas_frame(X, dtype) for dtype in ("int8", "bool", "Int64", "boolean", "float")]
    for same in (X.astype(bool), X.astype(float), *frames):
        assert learn_bits(same, y) == expected
        assert learn_bits(X, np.asarray(y).astype(bool)) == expected


@pytest.mark.parametrize(
    ("change", "advice", "mend"),
    [
        (lambda X: X.astype("S1"), "exactly 0 and 1", lambda X: X.astype("uint8")),
        (sparse, "X.toarray()", lambda X: X.toarray()),
        (lambda X: sparse(X, "coo_matrix"), "X.toarray()", lambda X: X.toarray()),
    ],
    ids=["texts", "csr", "coo"],
)
def test_what_is_no_array_of_bits_is_told_how_to_become_one(change, advice, mend):
    X, y, _ = source()
    wrong = change(X)
    budget = Budget(9)
    calls = [lambda: parity.learn(wrong, y, epsilon=4, budget=budget)]
    calls.append(lambda: parity.transfer(wrong, y, people(900), **TRANSFER, budget=budget))
    for call in calls:
        with pytest.raises(ParameterError) as refused:
            call()
        assert advice in str(refused.value)
    assert budget.spent == (0, 0)
    assert learn_bits(mend(wrong), y) == learn_bits(X, y)


def test_sparse_labels_are_told_how_to_become_dense():
    X, y, _ = source()
    with pytest.raises(ParameterError, match=r"y\.toarray"):
        parity.learn(X, sparse(y[None]), epsilon=4)


# Results ------------------------------------------------------------------------------------------


def test_results_and_plans_are_frozen():
    X, y, _ = source()
    planned = parity.plan_transfer(D, **TRANSFER, agents_epsilon=2)
    learned = parity.learn(X, y, epsilon=4, random_state=0)
    transferred = parity.transfer(X, y, people(900), **TRANSFER, random_state=0)
    for value in planned, planned.curator, learned, transferred, learned.record:
        for field in dataclasses.fields(value):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, field.name, None)


@pytest.mark.parametrize("affine", [False, True])
def test_a_result_predicts_as_its_parity_does(affine):
    X, y, _ = source()
    y ^= affine
    learned = parity.learn(X, y, epsilon=4, affine=affine, random_state=0)
    transferred = parity.transfer(X, y, people(900), **TRANSFER, affine=affine, random_state=0)
    for result in learned, transferred:
        for rows in X, gf2.BitMatrix.from_dense(X), X.astype(bool).tolist():
            labels = result.predict(rows)
            assert labels.dtype == np.uint8
            assert labels.tolist() == y.tolist()
        with pytest.raises(ShapeError, match="columns"):
            result.predict(X[:, :-1])
        with pytest.raises(ParameterError, match="nothing was released"):
            dataclasses.replace(result, mask=None, intercept=None, released=False).predict(X)


def have_equal_fields(one, other):
    return all(np.array_equal(value, vars(other)[name]) for name, value in vars(one).items())


def test_results_outlive_their_process_as_json():
    X, y, _ = source()
    learned = parity.learn(X, y, epsilon=4, affine=True, random_state=0)
    transferred = parity.transfer(X, y, people(900), **TRANSFER, random_state=0)
    nothing = {"mask": None, "intercept": None, "released": False}
    unasked = {"target_error": None, "interval": None, "agents_record": None}
    results = [learned, dataclasses.replace(learned, **nothing, alpha=None, silence=None)]
    results += [transferred, dataclasses.replace(transferred, **nothing, **unasked)]
    for result in results:
        read = type(result).from_json(result.to_json())
        assert have_equal_fields(result, read)
        assert repr(read) == repr(result)
    fields = json.loads(learned.to_json())
    assert fields["mask"] == "".join(map(str, learned.mask))
    assert fields["summary"] == learned.summary
    assert json.loads(transferred.to_json())["summary"] == transferred.summary


def test_what_a_transfer_is_worth():
    X, y, _ = source()
    result, notes = notes_of(lambda: parity.transfer(X, y, people(900), **TRANSFER, random_state=0))
    low, high = result.interval
    error = f"error {result.target_error:.3g} on the target, between {low:.3g} and {high:.3g}"
    assert result.summary == error
    assert not [text for text in notes if "error " in text]
    vague = dataclasses.replace(result, interval=(0.3, 0.5))
    assert vague.summary.endswith("0.5: not shown to be better than guessing, 1/2")
    unasked = dataclasses.replace(result, target_error=None, interval=None)
    assert "others have asked its agents" in unasked.summary
    nothing = dataclasses.replace(result, released=False, mask=None, intercept=None)
    assert nothing.summary.startswith("nothing was released: ")
    assert f"probability {result.silence:.2g} only" in nothing.summary


def test_a_transfer_that_is_not_better_than_guessing_is_told():
    X, y, _ = source()
    rng = np.random.default_rng(5)
    agents = Agents(bits(rng, 900, 8), bits(rng, 900), epsilon=2)
    result, notes = notes_of(lambda: parity.transfer(X, y, agents, **TRANSFER, random_state=0))
    assert result.released
    assert notes[-1] == result.summary
    assert "not shown to be better than guessing" in notes[-1]


def test_what_is_no_result_is_refused():
    learned = parity.learn(*source()[:2], epsilon=4, random_state=0)
    fields = json.loads(learned.to_json())
    changes = [{"mask": mask} for mask in (None, "", "0121", 7, [0, 1])]
    changes += [{"released": False}, {"released": 1}, {"intercept": 2}, {"intercept": None}]
    changes += [{"alpha": 2}, {"silence": "x"}, {"record": {}}, {"record": None}]
    texts = [json.dumps(fields | change) for change in changes]
    # What hdp-fast writes has no silence.
    needed = sorted(fields.keys() - {"summary", "silence"})
    texts += [json.dumps({key: fields[key] for key in fields if key != gone}) for gone in needed]
    for text in [*texts, "", "[1]", "x"]:
        with pytest.raises(ParameterError):
            parity.ParityResult.from_json(text)


def test_results_are_shown_without_their_bits():
    X, y, secret = source()
    learned = parity.learn(X, y, epsilon=4, affine=True, random_state=0)
    assert f"{secret.sum()} of 8 features, intercept 0" in repr(learned)
    assert "epsilon=4 (replace_one)" in repr(learned)
    assert "no release" in repr(dataclasses.replace(learned, mask=None))
    assert "target_error=" in repr(parity.transfer(X, y, people(900), **TRANSFER, random_state=0))


# Parts --------------------------------------------------------------------------------------------

PART_X = bits(np.random.default_rng(7), 4000, 200)
PART_Y = PART_X[:, 2] ^ PART_X[:, 9]
CUTS = list(itertools.pairwise((0, 0, 900, 901, 4000)))
PAIRS = [(PART_X[start:end], PART_Y[start:end]) for start, end in CUTS]


def plan_for(d):
    return parity.plan(d, alpha=0.1, beta=0.1, epsilon=1.0, method="batches")


def forms_of_parts(folder):
    header, paths = ",".join(f"x{place}" for place in range(200)), []
    for place, (X, y) in enumerate(PAIRS[1:]):
        np.savez(folder / f"{place}.npz", X=X, y=y)
        table, paths = np.column_stack([X, y]), [*paths, folder / f"{place}.csv"]
        np.savetxt(paths[-1], table, "%d", ",", header=f"{header},y", comments="")
    yield Chunks(PAIRS)
    yield Chunks([(gf2.BitMatrix.from_dense(X), y.astype(bool)) for X, y in PAIRS])
    yield Chunks([partial(PAIRS.__getitem__, place) for place in range(4)], workers=2)
    yield Chunks(str(folder / "*.npz"), label="y")
    yield Chunks(paths, label="y", workers=2)
    frames = [pd.DataFrame(X, columns=[f"x{place}" for place in range(200)]) for X, _ in PAIRS]
    named = [frame.assign(y=y) for frame, (_, y) in zip(frames, PAIRS, strict=True)]
    yield Chunks(named, label="y")


@pytest.mark.parametrize(("method", "relation"), RUNS)
def test_learn_on_parts_has_the_bits_of_one_array(tmp_path, method, relation):
    epsilon = 0.5 if method == "paper" else 0.8
    settings = {"epsilon": epsilon, "method": method, "neighbors": relation, "beta": 0.3}
    for seed in (1, 2, 3):
        whole = parity.learn(PART_X, PART_Y, **settings, random_state=seed)
        for chunks in forms_of_parts(tmp_path):
            ours = parity.learn(chunks, **settings, random_state=seed)
            assert ours.to_json() == whole.to_json()


@pytest.mark.filterwarnings("ignore:X has 4,000 records")
def test_learn_on_parts_takes_their_order_and_not_that_in_which_they_are_done():
    seen = []

    def read(place):
        while place == 0 and len(seen) < 2:
            time.sleep(0.001)
        seen.append(place)
        return PAIRS[1:][place]

    settings = {"epsilon": 0.05, "beta": 0.3, "random_state": 1}
    with joblib.parallel_config("threading", n_jobs=2):
        ours = parity.learn(Chunks([partial(read, place) for place in range(3)]), **settings)
    assert seen[2] == 0  # of the first pass
    assert (ours.mask == parity.learn(PART_X, PART_Y, **settings).mask).all()
    # The order decides which records are drawn, and so which of many solutions there are.
    other = parity.learn(Chunks(PAIRS[::-1]), **settings)
    assert (ours.mask != other.mask).any()


@pytest.mark.parametrize(
    ("chunks", "more", "error", "text"),
    [
        ([PART_X], {}, ParameterError, "the parts have no labels"),
        (PAIRS, {"y": PART_Y}, ParameterError, "y was passed beside Chunks"),
        (PAIRS, {"ids": PART_Y}, ParameterError, "ids were passed beside Chunks"),
        (PAIRS, {"rows_per_person": 2}, ParameterError, "ids were passed beside Chunks"),
        ([PAIRS[1], (PART_X[:, 1:], PART_Y)], {}, ShapeError, "199 and 200 columns"),
        ([(PART_X, PART_Y[1:])], {}, ShapeError, "4,000 records"),
        ([(PART_X * 2, PART_Y)], {}, ParameterError, "must be 0 or 1"),
        ([(PART_X, PART_Y * 2)], {}, ParameterError, "must be 0 or 1"),
        ([], {}, ParameterError, "one part at least"),
    ],
)
def test_learn_refuses_parts_before_anything_is_spent(chunks, more, error, text):
    budget = Budget(1.0)
    with pytest.raises(error, match=text):
        parity.learn(Chunks(chunks), **{"epsilon": 1.0, "budget": budget, **more})
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize("relation", RELATIONS)
def test_learn_on_parts_without_rows_is_that_of_an_array_without_rows(relation):
    settings = {"epsilon": 1.0, "neighbors": relation, "beta": 0.3, "random_state": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        whole = parity.learn(PART_X[:0], PART_Y[:0], **settings)
        ours = parity.learn(Chunks(PAIRS[:1]), **settings)
    assert ours.to_json() == whole.to_json()


@pytest.mark.parametrize(("method", "relation"), RUNS)
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_learn_on_parts_gathers_few_records_at_a_time_to_the_same_bits(method, relation):
    """Labels that nothing fits, so that tries fail, and samples that leave bits free."""
    rng = np.random.default_rng(3)
    X = bits(rng, 900, 70)
    X[:, 60:] = 0
    y = X[:, 2] ^ (rng.random(900) < 0.004)
    parts = Chunks(list(zip(np.split(X, 9), np.split(y, 9), strict=True)))
    epsilon = 0.05 if method == "paper" else 0.4
    settings = {"epsilon": epsilon, "method": method, "neighbors": relation, "beta": 0.3}
    masks = set()
    for seed in range(12):
        how = {**settings, "affine": bool(seed % 2), "random_state": seed}
        whole = parity.learn(X, y, **how)
        assert parity.learn(parts, **how).to_json() == whole.to_json()
        masks.add(None if whole.mask is None else whole.mask.tobytes())
    assert len(masks) > 5


@pytest.mark.parametrize("d", [200, pytest.param(10_000, marks=at_length)])
@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_learn_on_parts_releases_nothing_for_labels_that_do_not_fit(d):
    """Wherever they are wrong: each try that samples one of them fails, until the stop coin."""
    n = 8 * d
    X = gf2.BitMatrix.random(n, d, random_state=1)
    right = gf2.dot(X, gf2.BitMatrix.random(1, d, random_state=2)[0])
    for wrong in ([*range(0, n, 20)], [*range(d // 2)], [*range(n - d // 2, n)]):
        y = right.copy()
        y[wrong] ^= 1
        ends, reads = [*range(0, n, d // 3), n], []

        def read(place, y=y, ends=ends, reads=reads):
            reads.append(place)
            some = slice(ends[place], ends[place + 1])
            return X[some], y[some]

        parts = Chunks([partial(read, place) for place in range(len(ends) - 1)])
        noisy = parity.learn(parts, epsilon=1.0, random_state=4)
        assert (noisy.released, noisy.mask) == (False, None)
        assert len(reads) > 2 * len(parts)  # to be counted, and again for each try
        fits = parity.learn(Chunks([(X, right)]), epsilon=1.0, random_state=4)
        assert fits.released


@pytest.mark.parametrize("zeros", [0, 250])
def test_learn_on_parts_keeps_the_bits_where_many_unknowns_stay_free(zeros):
    """The rows outside of what was eliminated first come late, and one contradicts."""
    X = gf2.BitMatrix.random(3_000, 500, random_state=4).to_dense()
    X[:, 500 - zeros :] = 0
    X[:2_000, 50:200] = 0
    for wrong in (None, 5, 2_990):
        y = gf2.dot(X, X[-1])
        if wrong is not None:
            y[wrong] ^= 1
        settings = {"epsilon": 1.0, "beta": 0.3, "affine": True, "random_state": 2}
        whole = parity.learn(X, y, **settings)
        for size in (130, 900):
            pairs = [(X[at : at + size], y[at : at + size]) for at in range(0, 3_000, size)]
            assert parity.learn(Chunks(pairs), **settings).to_json() == whole.to_json()
        with joblib.parallel_config("threading", n_jobs=2):
            assert parity.learn(Chunks(pairs), **settings).to_json() == whole.to_json()


def test_states_of_samples_join_in_any_tree_and_stay_small():
    mechanism, key = Mechanism(1.0, "batches", "replace_one", vars(plan_for(40))), b"k" * 32
    rng = np.random.default_rng(4)

    def fold(X, y, first, total):
        records = _core.ParityRecords(gf2.BitMatrix.from_dense(X), y, False)
        public = Public(total, 40, False)
        state = fold_spaces(mechanism, key, public, [0, 1], [(records, first)])
        return State.from_bytes(state.to_bytes())

    sizes = []
    for n in (1_000, 20_000):
        X = bits(rng, n, 40)
        y = X[:, 3] ^ X[:, 5]
        whole = fold(X, y, 0, n)
        ends = [0, *sorted(rng.integers(n, size=6)), n]
        states = [fold(X[a:b], y[a:b], a, n) for a, b in itertools.pairwise(ends)]
        while len(states) > 1:
            one, other = (states.pop(int(rng.integers(len(states)))) for _ in range(2))
            states.append(one + other)
        assert states[0].spaces == whole.spaces
        assert states[0].to_bytes() == whole.to_bytes()
        sizes.append(len(whole.to_bytes()))
        assert "40" not in repr(whole)
    assert sizes[1] - sizes[0] < 8  # digits of the number of records
    for place in range(0, len(whole.to_bytes()), 37):
        broken = bytearray(whole.to_bytes())
        broken[place] ^= 1
        with pytest.raises(ParameterError, match="no whole state"):
            State.from_bytes(bytes(broken))


def test_learn_on_parts_needs_the_same_parts_in_every_pass():
    arrow = pytest.importorskip("pyarrow")
    budget, reads = Budget(2.0), []
    table = arrow.table({"a": PART_X[:, 0], "b": PART_X[:, 1], "y": PART_X[:, 0]})
    reader = arrow.RecordBatchReader.from_batches(table.schema, table.to_batches())
    with pytest.raises(ParameterError, match="which is read once"):
        parity.learn(Chunks(reader, label="y"), epsilon=1.0, budget=budget)
    assert budget.spent.epsilon == 0

    def shrink():
        reads.append(None)
        return PART_X[len(reads) :], PART_Y[len(reads) :]

    with pytest.raises(ShapeError, match="3,998 rows where it had 3,999"):
        parity.learn(Chunks([shrink]), epsilon=1.0)


def test_learn_asks_for_labels_of_an_array():
    with pytest.raises(ParameterError, match="y = None"):
        parity.learn(PART_X, epsilon=1.0)


def test_a_plan_tells_no_number_of_records_that_is_private():
    plan = parity.plan(5, alpha=0.2, beta=0.1, epsilon=1.0, neighbors="add_remove")
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2, (plan.n, 5), dtype=np.uint8)
    for rows in (0, plan.n - 1, plan.n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parity.learn(X[:rows], X[:rows, 0], epsilon=1.0, plan=plan, neighbors="add_remove")
