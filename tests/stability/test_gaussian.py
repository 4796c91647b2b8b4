"""Votes with Gaussian noise: their privacy by enumeration, their plans, their answers."""

import copy
import itertools
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from processes import exit_code, forked

from hdp_fast import Budget, accounting, noise, stability
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError
from hdp_fast.reference.noise import rounded_gaussian_mass
from hdp_fast.reference.stability import gaussian_vote_law
from hdp_fast.stability import GaussianVote
from hdp_fast.stability.plans import flip_probability


def vote(queries=40, epsilon=1.0, delta=1e-6, beta=0.05, labels=3, threshold=1.0):
    goal = {"epsilon": epsilon, "delta": delta, "beta": beta}
    return GaussianVote.design(queries, labels=labels, threshold=threshold, **goal)


def elections(members, labels):
    for counts in itertools.product(range(members + 1), repeat=labels):
        if sum(counts) == members:
            yield counts


def changed(counts):
    """With one vote replaced."""
    for i, j in itertools.permutations(range(len(counts)), 2):
        if counts[i]:
            other = list(counts)
            other[i], other[j] = other[i] - 1, other[j] + 1
            yield tuple(other)


def masses_of(sigma, reach):
    return {x: rounded_gaussian_mass(sigma, x) for x in range(-reach, reach + 1)}


def hockey_stick(here, there, epsilon):
    factor = Decimal(epsilon).exp()
    return float(sum(max(p - factor * there[x], Decimal(0)) for x, p in here.items()))


@pytest.mark.parametrize("gap", [0, 1, 3])
@pytest.mark.parametrize(("members", "labels"), [(1, 2), (3, 3), (2, 4)])
def test_answers_of_neighbors_are_as_close_as_the_gaussian_curve_says(members, labels, gap):
    sigma = Fraction(3, 2)
    masses = masses_of(sigma, 15)
    laws = {counts: gaussian_vote_law(counts, gap, masses) for counts in elections(members, labels)}
    for counts, other in ((c, o) for c in laws for o in changed(c)):
        assert gap or abs(laws[counts][-1]) < Decimal("1e-22")
        for epsilon in (0.0, 0.3, 1.0):
            delta = accounting.gaussian_delta(math.sqrt(2) / 1.5, epsilon)
            assert hockey_stick(laws[counts], laws[other], epsilon) <= delta


def test_half_the_noise_breaks_it():
    masses = masses_of(Fraction(3, 4), 12)
    here, there = (gaussian_vote_law(counts, 0, masses) for counts in ((1, 0), (0, 1)))
    assert hockey_stick(here, there, 0.3) > accounting.gaussian_delta(math.sqrt(2) / 1.5, 0.3)


def products(laws):
    joint = laws[0]
    for law in laws[1:]:
        joint = np.multiply.outer(joint, law).reshape(-1)
    return joint


def curve_by_enumeration(sigma, queries, epsilon):
    """Over all noisy counts of one or two queries, in which two counts change by one each."""
    masses = np.array([float(p) for p in masses_of(Fraction(sigma), 6 * sigma).values()])
    here = products([np.append(masses, 0.0)] * 2 * queries)
    there = products([np.append(0.0, masses)] * 2 * queries)
    return float(np.maximum(there - math.exp(epsilon) * here, 0).sum())


@pytest.mark.parametrize(("queries", "epsilon"), [(1, 0.3), (1, 1.0), (2, 0.5), (2, 1.5)])
def test_the_curve_bounds_that_of_all_outcomes_closely(queries, epsilon):
    exact = curve_by_enumeration(3, queries, epsilon)
    delta = accounting.gaussian_delta(math.sqrt(2 * queries) / 3, epsilon)
    assert exact > 1e-5
    # The tails that are cut off tell a millionth.
    assert 0.9 * delta < exact <= delta * (1 + 1e-6)


@each_case("epsilon", [0.01, 0.5, 4.0, 40.0])
@each_case("m", [1, 1_000, 10**7])
def test_designs_have_the_noise_that_is_needed_and_little_more(m, epsilon):
    made = vote(m, epsilon)
    assert made.verify() <= epsilon
    assert accounting.gaussian_delta(math.sqrt(2 * m) / made.sigma, epsilon) <= 1e-6
    least = math.sqrt(2 * m) / accounting.gaussian_mu(epsilon, 1e-6)
    assert least <= made.sigma <= (1 + 1e-9) * least + 2**-10
    assert made.verify() > 0.98 * epsilon


def test_too_little_noise_is_refused():
    made = vote()
    fields = vars(made)
    for sigma in (
        made.sigma * Fraction(1023, 1024),
        Fraction(0),
        Fraction(1),
        3.5,
        Fraction(10**7 + 1, 2000),
        2**60,
    ):
        with pytest.raises(ParameterError, match="sigma = "):
            GaussianVote(**fields | {"sigma": sigma})
    assert GaussianVote(**fields | {"sigma": 2 * made.sigma}).verify() < 0.6


def test_a_vote_says_what_it_is_and_travels():
    made = vote()
    assert repr(made).startswith(
        "GaussianVote(queries=40, labels=3, epsilon=1, delta=1e-06, beta=0.05):"
    )
    assert f"bottom below a gap of {math.ceil(made.sigma)}" in repr(made)
    same = [GaussianVote.from_json(made.to_json()), pickle.loads(pickle.dumps(made))]
    assert [*same, copy.deepcopy(made)] == [made] * 3
    fields = json.loads(made.to_json())
    looser = json.dumps(fields | {"epsilon": 0.9})
    with pytest.raises(ParameterError, match="too little noise"):
        GaussianVote.from_json(looser)
    broken = [fields | {"sigma": value} for value in (None, [1, 0], [1.5, 2], "37/1", [10**400, 1])]
    broken += [fields | {"kind": "VoteTable"}, fields | {"max_unstable": 3}, {}]
    for text in ("", "[]", "null", *map(json.dumps, broken)):
        with pytest.raises(ParameterError, match=r"text|sigma"):
            GaussianVote.from_json(text)


def exact_failure(made, k, p):
    """Two labels, the other one the smaller: no right answer, by the whole law of the noise."""
    sigma = float(made.sigma)
    reach = math.ceil(9 * sigma)
    mass = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    difference = np.convolve(mass / mass.sum(), mass / mass.sum())
    # Of the noise by which the wrong label gains: at least the index, from -2 reach on.
    gained = np.cumsum(difference[::-1])[::-1]
    total = 0.0
    for right in range(k + 1):
        enough = 2 * right - k - max(made.gap, 1) + 1
        index = min(max(enough + 2 * reach, 0), len(gained) - 1)
        total += math.comb(k, right) * p**right * (1 - p) ** (k - right) * gained[index]
    return total


def test_the_chance_of_another_answer_is_that_of_the_law():
    """Of three labels, where all others agree on a smaller one."""
    made = vote(1, 8.0, 1e-3)
    masses = masses_of(made.sigma, 9)
    for right in (2, 4, 5, 7):
        answers = gaussian_vote_law((7 - right, right, 0), made.gap, masses)
        assert flip_probability(made, 7, right) == pytest.approx(1 - float(answers[1]), abs=0.02)


@pytest.mark.parametrize("threshold", [0.0, 1.0])
@pytest.mark.parametrize("agreement", [0.7, 0.9])
def test_members_needed_is_the_smallest_number_but_for_rounding(threshold, agreement):
    made = vote(6, 2.0, beta=0.3, labels=2, threshold=threshold)
    k = stability.members_needed(made, agreement=agreement)
    share = made.beta / made.queries
    assert exact_failure(made, k, agreement) <= share
    assert exact_failure(made, k - 6, agreement) > share


def test_more_labels_and_clearer_answers_need_more_members():
    needed = [
        stability.members_needed(vote(100, labels=labels, threshold=threshold))
        for labels, threshold in ((2, 0), (10, 0), (10, 1), (256, 1), (2**40, 1))
    ]
    assert needed == sorted(needed)
    assert needed[0] < 600
    assert needed[-1] < 3 * needed[0]


def test_plans_take_it_where_it_needs_fewer_members():
    goal = {"epsilon": 1, "delta": 1e-6, "beta": 0.05, "labels": 10}
    short, long = stability.plan(10, 100, **goal), stability.plan(50, 1000, **goal)
    assert isinstance(short.table, GaussianVote)
    assert short.k == short.k_gaussian < short.k_hazard
    assert short.k == stability.members_needed(short.table)
    assert long.k == long.k_hazard < long.k_gaussian
    two = stability.plan(10, 100, **goal | {"labels": 2})
    assert two.k == two.k_vote < two.k_gaussian < two.k_hazard
    loose = stability.plan(10, 100, threshold=0, **goal)
    assert loose.k < short.k


def test_planned_members_answer_rightly(monkeypatch):
    """All who are wrong agree on one label; the failure probability is beta for all queries."""
    made = vote(50, labels=5, beta=0.05)
    k, runs = stability.members_needed(made), 400
    rng = np.random.default_rng(11)
    right = rng.binomial(k, 0.75, size=(runs, 50))
    counts = np.zeros((runs, 50, 5), np.int64)
    counts[..., 3], counts[..., 1] = right, k - right
    wrong = sum((made.session().answer(each) != 3).any() for each in counts)
    # Six deviations.
    assert wrong <= runs * 0.05 + 6 * math.sqrt(runs * 0.05)


def test_a_session_is_the_loop(monkeypatch):
    made = vote(300, 30.0, labels=4, threshold=0.5)
    rng = np.random.default_rng(2)
    counts = rng.multinomial(100, [0.28, 0.26, 0.24, 0.22], size=200)
    drawn, draw = [], noise.rounded_gaussian

    def kept(sigma, size, **arguments):
        drawn.append(draw(sigma, size, **arguments))
        return drawn[-1].copy()

    monkeypatch.setattr(noise, "rounded_gaussian", kept)
    monkeypatch.setattr("hdp_fast.stability.gaussian._BLOCK", 4 * 64)
    session = made.session()
    answers = session.answer(counts)
    assert [len(each) for each in drawn] == [64, 64, 64, 8]
    expected = []
    for votes, each in zip(counts, np.concatenate(drawn), strict=True):
        ranks = sorted((-int(noisy), label) for label, noisy in enumerate(votes + each))
        clear = ranks[1][0] - ranks[0][0] >= made.gap
        expected.append(ranks[0][1] if clear else -1)
    assert answers.tolist() == expected
    assert set(expected) == {-1, 0, 1, 2, 3}
    assert session.queries_left == 100


def test_ties_go_to_the_smallest_label(monkeypatch):
    monkeypatch.setattr(noise, "rounded_gaussian", lambda sigma, size, **_: np.zeros(size, int))
    session = vote(threshold=0).session()
    assert session.answer([[5, 5, 5], [1, 7, 7], [3, 2, 3], [0, 0, 9]]).tolist() == [0, 1, 0, 2]
    clear = vote(threshold=1.5)
    near = clear.gap - 1
    assert clear.session().answer([[near, 0, 0], [0, near + 1, 0]]).tolist() == [-1, 1]


def test_a_session_ends_after_m_queries_whatever_the_bottoms():
    session = vote(queries=6).session()
    assert (session.answer([[10**6, 0, 0]] * 3) == 0).all()
    session.answer([[7, 7, 7]])
    assert session.bottoms_left is None
    with pytest.raises(BudgetExceeded, match="3 queries, but 2 are left"):
        session.answer([[0, 0, 10**6]] * 3)
    assert (session.queries_left, session.halted) == (2, False)
    assert session.answer([0, 10**6, 0]) == 1
    assert session.answer(np.array([[0, 0, 2**32 - 1]], np.uint32)).tolist() == [2]
    assert session.halted
    with pytest.raises(BudgetExceeded):
        session.answer([0, 10**6, 0])
    assert vote(queries=6).session(used_queries=5).queries_left == 1
    assert session.answer(np.zeros((0, 3), int)).tolist() == []


def test_bad_counts_are_refused_and_cost_nothing():
    session = vote().session()
    with pytest.raises(ShapeError, match=r"shape \(2,\), but this vote is between 3 labels"):
        session.answer([1, 2])
    for counts in ([0.5, 1, 2], [-1, 2, 3], [[[1, 2, 3]]]):
        with pytest.raises((ShapeError, ParameterError), match="counts"):
            session.answer(counts)
    assert session.queries_left == 40


def test_a_session_is_paid_for_once_and_is_never_copied():
    budget = Budget(1.5, delta=1e-5)
    session = vote().session(budget=budget)
    assert budget.spent == (1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        vote().session(budget=budget)
    assert copy.copy(session) is session is copy.deepcopy(session)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(session)
    record = session.record
    assert (record.epsilon, record.delta, record.numerics) == (1.0, 1e-6, "exact")
    assert "rounded Gaussian" in record.noise
    assert "test stream" in vote().session(random_state=3).record.rng


def test_what_a_session_shows_does_not_depend_on_the_votes():
    shown = []
    for counts in ([[40, 0, 0]] * 4, [[0, 20, 20]] * 4):
        session = vote().session(random_state=1)
        session.answer(counts)
        names = [name for name in dir(session) if not name.startswith("_") and name != "answer"]
        shown.append((repr(session), [repr(getattr(session, name)) for name in names]))
    assert shown[0] == shown[1]


def test_a_seed_repeats_the_answers_and_calls_differ():
    votes = [[5, 5, 5]] * 20
    one, two = (vote(threshold=0).session(random_state=7) for _ in range(2))
    first, second = one.answer(votes), one.answer(votes)
    assert np.array_equal(first, two.answer(votes))
    assert not np.array_equal(first, second)


def test_a_forked_child_cannot_go_on_with_a_session():
    session = vote().session()

    def child():
        with pytest.raises(ParameterError):
            session.answer([9_999, 0, 0])

    assert exit_code(forked(child)) == 0


@each_case(
    ("changes", "text"),
    [
        ({"queries": 0}, "queries = 0"),
        ({"queries": 2**41}, "queries = "),
        ({"epsilon": 1e-4}, r"epsilon = 0.0001, but it must lie in \[0.001, 1,000\]"),
        ({"epsilon": math.nan}, "epsilon = nan"),
        ({"delta": 0}, "delta = 0"),
        ({"delta": 1e-250}, "delta = 1e-250"),
        ({"beta": 1}, "beta = 1"),
        ({"labels": 1}, "labels = 1, but a vote needs at least 2"),
        ({"labels": 2.5}, "labels = 2.5"),
        ({"threshold": -1}, r"threshold = -1, but it must lie in \[0, 1,000\]"),
        ({"threshold": math.nan}, "threshold = nan"),
        ({"threshold": "much"}, "threshold = 'much'"),
    ],
)
def test_a_promise_out_of_range_is_refused(changes, text):
    with pytest.raises(ParameterError, match=text):
        vote(**changes)


def test_the_ends_of_the_ranges_hold():
    made = vote(2**40, 0.001, 1e-100, 1e-30, 2**40, 1000.0)
    assert made.verify() <= 0.001
    assert 0 < vote(1, 1000.0, 0.5, 0.99, 2, 0.0).sigma < 0.1
