"""Tables against adversaries that try everything, and against their inequality in long decimals."""

import copy
import decimal
import itertools
import json
import math
import os
import pickle
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case
from harness import together
from lengths import at_length
from processes import exit_code, forked

from hdp_fast import Budget, stability
from hdp_fast.exceptions import BudgetExceeded, ParameterError, ShapeError
from hdp_fast.reference import stability as reference
from hdp_fast.stability import HazardTable, VoteTable

# T, m, J and k of a HazardTable, J and k of a VoteTable, k of the paper.
PUBLISHED = [
    (50, 1000, 331, 1611, 253, 1266, 95_317),
    (50, 10_000, 437, 2121, 749, 3469, 103_752),
    (10, 1000, 221, 1128, 253, 1266, 39_991),
    (10, 100, 160, 817, 90, 496, 36_219),
]
TINY = [(1, 3, 1.0, 0.02), (2, 4, 1.0, 0.05), (2, 4, 0.5, 0.05), (2, 3, 2.0, 0.01)]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "hdp_fast"


def hazard(max_unstable=2, queries=40, epsilon=1.0, delta=1e-6, beta=0.05):
    return HazardTable.design(max_unstable, queries, epsilon=epsilon, delta=delta, beta=beta)


def vote(queries=40, epsilon=1.0, delta=1e-6, beta=0.05):
    return VoteTable.design(queries, epsilon=epsilon, delta=delta, beta=beta)


SMALL = vote(1, 8.0, 1e-2, 0.5)


def floats(table):
    return [float(p) for p in table.probabilities]


def neighbors(levels):
    return [pair for a, b in itertools.pairwise(levels) for pair in ((a, b), (b, a))]


def two_sided(table):
    """Of label 1, for every number of votes around the middle."""
    p = floats(table)
    return [*reversed(p[1:]), *(1 - q for q in p)]


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize(("T", "m", "J", "k", "J_vote", "k_vote", "k_paper"), PUBLISHED)
def test_plans_need_no_more_members_than_published(T, m, J, k, J_vote, k_vote, k_paper):
    goal = {"epsilon": 1, "delta": 1e-6, "beta": 0.05}
    plan = stability.plan(T, m, labels=2, **goal)
    assert J - 3 <= hazard(T, m).J <= J
    assert J_vote - 3 <= vote(m).J <= J_vote
    assert k - 12 <= plan.k_hazard <= k
    assert k_vote - 12 <= plan.k_vote <= k_vote
    assert plan.k_paper == k_paper
    assert plan.k == min(plan.k_hazard, plan.k_vote) == stability.members_needed(plan.table)
    many = stability.plan(T, m, labels=10, **goal)
    assert (many.k_hazard, many.k_vote) == (plan.k_hazard, None)
    assert (many.k == many.k_hazard) == isinstance(many.table, HazardTable)
    assert many.k == min(many.k_hazard, many.k_gaussian) == stability.members_needed(many.table)


@pytest.mark.parametrize("agreement", [0.625, 0.75, 0.9375])
@pytest.mark.parametrize("make", [hazard, vote])
def test_members_needed_is_the_smallest_number_with_the_exact_tail(make, agreement):
    table = make(queries=20)
    right, whole = Fraction(agreement).as_integer_ratio()
    lost = make is hazard

    def failure(k):
        total, choices = 0, 1
        for c in range(k + 1):
            if (2 * c - k - lost) // 2 < table.J:
                total += choices * right**c * (whole - right) ** (k - c)
            choices = choices * (k - c) // (c + 1)
        return Fraction(total, whole**k)

    k = stability.members_needed(table, agreement=agreement)
    share = Fraction(table.beta) / 2 / table.queries
    assert failure(k) <= share
    assert all(failure(fewer) > share for fewer in (k - 1, k - 2, k - 3))


def test_votes_that_hardly_agree_need_more_members_than_there_are():
    table = vote(queries=1)
    assert 2**39 < stability.members_needed(table, agreement=0.5 + 1.1e-6) <= 2**40
    with pytest.raises(ParameterError, match="more than 1,099,511,627,776 members"):
        stability.members_needed(table, agreement=0.5 + 0.9e-6)


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize(("T", "m", "epsilon", "delta"), TINY)
def test_no_adversary_finds_more_than_delta(T, m, epsilon, delta):
    table = hazard(T, m, epsilon, delta)
    reached = reference.adversary_delta(neighbors(floats(table)), m, T, epsilon)
    assert delta / 10 < reached <= delta
    table = vote(m, epsilon, delta)
    reached = reference.adversary_delta(neighbors(two_sided(table)), m, None, epsilon)
    assert delta / 10 < reached <= delta


@each_case(
    ("T", "m", "epsilon", "delta"), [TINY[0], TINY[3], (None, 3, 1.0, 0.02), (None, 4, 2.0, 0.05)]
)
def test_the_gain_on_a_grid_is_that_of_the_best_adversary(T, m, epsilon, delta):
    made = vote(m, epsilon, delta) if T is None else hazard(T, m, epsilon, delta)
    pairs = neighbors(floats(made))
    exact = reference.adversary_delta(pairs, m, T, epsilon)
    coarse, fine = (reference.bound_delta(pairs, m, T, epsilon, step=step) for step in (0.05, 2e-3))
    assert exact * (1 - 1e-9) <= fine <= exact * 1.001
    assert fine * (1 - 1e-9) <= coarse <= exact * 1.1


@at_length
def test_the_best_adversary_of_many_queries_uses_little_more_than_half_of_delta():
    """These are figures of docs/theory/vote_tables.md, which has the members, too."""
    shares = []
    for spent in (1e-6, 1.75e-6):
        made = vote(100, 1.0, spent)
        pairs = neighbors(floats(made))
        shares.append(reference.bound_delta(pairs, 100, None, 1.0, step=2e-3) / 1e-6)
        members = stability.members_needed(made)
    assert shares[0] == pytest.approx(0.55, abs=0.01)
    assert shares[1] <= 1
    assert members == 482


@pytest.mark.parametrize(("T", "m", "epsilon", "delta"), TINY)
def test_longer_steps_are_broken_by_an_adversary_and_refused(T, m, epsilon, delta):
    table = hazard(T, m, epsilon, delta)
    levels = floats(table)
    reached = reference.adversary_delta(neighbors([1.0, *levels[1::3]]), m, T, epsilon)
    assert reached > delta
    fields = json.loads(table.to_json())
    fields["words"] = fields["words"][::3]
    with pytest.raises(ParameterError, match=r"verified epsilon|beta / \(2 m\)"):
        HazardTable.from_json(json.dumps(fields))


@pytest.mark.parametrize("gap", [3, 8, 10, 15, 20, 30, 40])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_no_step_is_too_long_for_its_proof(gap, delta):
    """One query and two levels whose coins differ by e^gap: powers beyond floats prove nothing."""
    words = [2**64 - int(2**62 * delta), int(2**64 * math.exp(-gap))]
    parameters = {
        "kind": "HazardTable",
        "max_unstable": 1,
        "queries": 1,
        "delta": delta,
        "beta": 0.9999,
    }
    least = math.log((words[0] / 2**64 - delta) * 2**64 / words[1])
    made = HazardTable.from_json(json.dumps(parameters | {"epsilon": 1000.0, "words": words}))
    assert least <= made.verify() < math.inf
    text = json.dumps(parameters | {"epsilon": 0.99 * least, "words": words})
    with pytest.raises(ParameterError, match="verified epsilon"):
        HazardTable.from_json(text)


def test_a_bottom_more_than_T_breaks_the_promise():
    table = hazard(1, 3, 1.0, 0.02)
    pairs = neighbors(floats(table))
    assert reference.adversary_delta(pairs, 3, 1, 1.0) <= 0.02
    assert reference.adversary_delta(pairs, 4, 2, 1.0) > 0.02


def exact_epsilon(table, order, each):
    """The guarantee of one order and charge of a query, to fifty digits."""
    with decimal.localcontext(prec=50) as context:
        number = context.create_decimal
        a, B = number(order), number(each)
        levels = [number(p.numerator) / number(p.denominator) for p in table.probabilities]
        hazards = isinstance(table, HazardTable)
        A = ((1 - a) * levels[1].ln() - B) if hazards else number(0)
        for p, q in neighbors(levels[1:] if hazards else levels):
            tail = (1 - p) * ((1 - p) / (1 - q)) ** (a - 1)
            assert hazards or p * (p / q) ** (a - 1) + tail <= B.exp()
            A = max(A, (p * (p / q) ** (a - 1) / (B.exp() - tail)).ln()) if hazards else A
        delta, bottoms = number(table.delta), table.max_unstable if hazards else 0
        delta -= bottoms * (1 - levels[1])
        divergence = (A * bottoms + B * table.queries) / (a - 1)
        return float(divergence + (1 - 1 / a).ln() - (delta.ln() + a.ln()) / (a - 1))


def test_the_certified_epsilon_is_that_of_long_decimals():
    table = hazard(10, 100)
    # The best order and charge, found once by a search.
    grid = [(a, b) for a in np.geomspace(10, 60, 25) for b in np.geomspace(1e-3, 5e-2, 25)]
    scores = {}
    levels = np.array(floats(table))
    p, q = np.array(neighbors(levels[1:])).T
    for a, b in grid:
        room = np.exp(b) - (1 - p) * ((1 - p) / (1 - q)) ** (a - 1)
        if room.min() > 0:
            A = np.log(p * (p / q) ** (a - 1) / room).max()
            delta = table.delta - table.max_unstable * float(1 - table.probabilities[1])
            D = (max(A, 0) * table.max_unstable + b * table.queries) / (a - 1)
            scores[a, b] = D + math.log1p(-1 / a) - (math.log(delta) + math.log(a)) / (a - 1)
    a, b = min(scores, key=scores.get)
    exact = exact_epsilon(table, float(a), float(b))
    assert table.verify() <= exact <= 1.03 * table.verify()
    assert exact == pytest.approx(scores[a, b], abs=1e-9)


def test_the_certified_epsilon_of_votes_is_that_of_long_decimals():
    table = vote(100)
    best = math.inf
    p, q = np.array(neighbors(floats(table))).T
    for order in np.geomspace(5, 100, 40):
        r, s, rise = 1 - p, 1 - q, order - 1
        sums = p * (p / q) ** rise + r * (r / s) ** rise
        each = math.log(sums.max()) + 1e-12
        best = min(best, exact_epsilon(table, float(order), each))
    assert table.verify() - 1e-9 <= best <= 1.01 * table.verify()


@pytest.mark.thorough(cases=4)
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0, 10.0])
@pytest.mark.parametrize(("T", "m"), [(1, 1), (1, 50), (20, 100_000)])
def test_designs_hold_their_promise_with_little_to_spare(T, m, epsilon):
    for table in hazard(T, m, epsilon, 1e-8), vote(m, epsilon, 1e-8):
        p = table.probabilities
        assert 0.8 * epsilon < table.verify() <= epsilon
        assert all(a >= b > 0 for a, b in itertools.pairwise(p))
        goal = Fraction(table.beta) / 2 / m
        assert p[-1] <= goal
        assert len(p) == 2 or p[-2] > goal
        assert all((1 << 64) % x.denominator == 0 for x in p)


def test_a_table_says_what_it_is_and_travels():
    table = hazard()
    assert (
        "HazardTable(max_unstable=2, queries=40, epsilon=1, delta=1e-06, beta=0.05): bottom with"
        in repr(table)
    )
    assert f"from level {table.J} on" in repr(table)
    for made in HazardTable.from_json(table.to_json()), pickle.loads(pickle.dumps(table)):
        assert (made.probabilities, made.verify()) == (table.probabilities, table.verify())
        assert (made.max_unstable, made.queries, made.epsilon, made.delta, made.beta) == (
            2,
            40,
            1.0,
            1e-6,
            0.05,
        )
    for text in (
        "",
        "[]",
        "{}",
        "null",
        vote().to_json(),
        table.to_json().replace('"queries"', '"n"'),
    ):
        with pytest.raises(ParameterError, match="text"):
            HazardTable.from_json(text)


def test_designs_are_kept_and_what_is_damaged_is_made_anew(cache):
    table = hazard()
    (path,) = cache.iterdir()
    kept = path.read_text()
    assert json.loads(kept)["words"] == [int(p * 2**64) for p in table.probabilities[1:]]
    fields = json.loads(kept)
    looser = fields | {"epsilon": 3.0}
    longer = fields | {"words": fields["words"][::2]}
    huge = fields | {"words": [1 << 64]}
    for text in ("", "{", *map(json.dumps, (looser, longer, huge))):
        path.write_text(text)
        assert hazard().probabilities == table.probabilities
        assert path.read_text() == kept
    path.write_bytes(b"\xff")
    assert hazard().epsilon == 1.0
    vote()
    assert len(list(cache.iterdir())) == 2


def test_a_kept_table_is_read(cache, monkeypatch):
    table = hazard(50, 1000)
    (path,) = cache.iterdir()
    fields = json.loads(path.read_text())
    fields["words"].insert(5, fields["words"][5])
    path.write_text(json.dumps(fields))
    assert hazard(50, 1000).J == table.J + 1


def test_a_kept_table_is_proved_once_and_others_each(cache, monkeypatch):
    proved, from_json = [], HazardTable.from_json.__func__
    monkeypatch.setattr(
        HazardTable,
        "from_json",
        classmethod(lambda cls, text: proved.append(text) or from_json(cls, text)),
    )
    for queries in (41, 41, 42, 41, 42, 42):
        assert hazard(4, queries).queries == queries
    # The first of each was made, and not read.
    assert len(proved) == len(set(proved)) == 2


def test_no_cache_is_no_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("")
    for folder in (str(blocked), "/proc/nowhere", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", folder)
        monkeypatch.setenv("HOME", str(blocked))
        assert hazard().J > 10
    assert not os.path.exists("relative")


def test_a_session_ends_at_exactly_its_last_bottom():
    session = hazard(5, 40).session()
    stable, tie = [10_000, 0, 0], [3, 3, 0]
    assert session.answer(stable) == 0
    assert session.answer([tie] * 3).tolist() == [-1] * 3
    assert (session.bottoms_left, session.queries_left, session.halted) == (2, 36, False)
    assert "2 bottoms and 36 queries left" in repr(session)
    answers = session.answer([stable, tie, stable, tie, stable, tie])
    assert answers.tolist() == [0, -1, 0, -1]
    assert (session.bottoms_left, session.queries_left, session.halted) == (0, 32, True)
    with pytest.raises(BudgetExceeded, match="last bottom"):
        session.answer(stable)


def test_a_session_ends_after_its_queries_and_asks_no_more_than_are_left():
    # Seeded: the far ends of the tables are rare, not impossible.
    for session in (
        hazard(queries=4).session(random_state=3),
        vote(queries=4).session(random_state=3),
    ):
        assert session.answer([[9_999, 0]] * 3).tolist() == [0] * 3
        with pytest.raises(BudgetExceeded, match="2 queries, but 1 are left"):
            session.answer([[9_999, 0]] * 2)
        assert session.queries_left == 1
        assert session.answer([0, 9_999]) == 1
        with pytest.raises(BudgetExceeded):
            session.answer([0, 9_999])


def test_votes_of_two_labels_are_answered_alike_however_given():
    counts = np.random.default_rng(3).integers(0, 300, 3000)
    for table in (hazard(4_000, 4_000, 20.0), vote(4_000, 20.0)):
        pairs, seeds = np.stack([300 - counts, counts], axis=1), {"random_state": 8}
        ones = table.session(**seeds).answer_ones(counts, 300)
        assert ones.dtype == np.int8
        assert (ones == table.session(**seeds).answer(pairs)).all()


def test_coins_do_not_depend_on_threads(monkeypatch):
    counts = np.random.default_rng(3).integers(0, 2000, 3_000_000)
    answers = []
    for threads in ("1", "2"):
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        session = hazard(10**6, 10**7, 100.0).session(random_state=4)
        answers.append(session.answer_ones(counts, 2000))
    assert np.array_equal(*answers)


def test_far_in_a_long_batch_the_last_bottom_ends_it():
    ones = np.zeros(3_000_000, np.uint32)
    ones[[5, 1_200_000, 2_400_000, 2_500_000]] = 5_000
    session = hazard(3, 10**7, 10.0, 1e-6, 1e-6).session()
    answers = session.answer_ones(ones, 10_000)
    assert len(answers) == 2_400_001
    assert np.flatnonzero(answers).tolist() == [5, 1_200_000, 2_400_000]
    assert session.queries_left == 10**7 - 2_400_001


@pytest.mark.parametrize("counts", [(2, 2, 0), (3, 2, 1), (2, 3, 1), (1, 2, 2), (0, 3, 2)])
def test_a_label_never_differs_between_neighbors(counts):
    table = hazard(10**6, 10**6, 50.0)
    for i in range(3):
        for j in range(3):
            other = list(counts)
            other[i], other[j] = other[i] - 1, other[j] + 1
            if other[i] < 0:
                continue
            here = table.session().answer([counts] * 300)
            there = table.session().answer([other] * 300)
            if stability.plurality(counts) != stability.plurality(other):
                assert (here == -1).all()
                assert (there == -1).all()
            else:
                assert set(here) | set(there) <= {-1, stability.plurality(counts)}


def test_soft_labels_are_two_queries_of_one_table():
    session = hazard(3, 20, beta=1e-9).session()
    spread = np.full(10_000, 0.32)
    assert session.answer_scores(spread, 10) == 0.35
    assert (session.bottoms_left, session.queries_left) == (3, 19)
    # On the edge of two bins, in the middle of a shifted one.
    edge = np.where(np.arange(10_000) % 2 == 0, 0.29, 0.31)
    assert session.answer_scores(edge, 10) == pytest.approx(0.3)
    assert (session.bottoms_left, session.queries_left) == (2, 17)
    apart = np.where(np.arange(10_000) % 2 == 0, 0.1, 0.9)
    assert math.isnan(session.answer_scores(apart, 10))
    assert (session.bottoms_left, session.queries_left, session.halted) == (0, 15, True)


def test_soft_labels_end_at_the_last_bottom_even_between_two_queries():
    edge = np.where(np.arange(10_000) % 2 == 0, 0.29, 0.31)
    session = hazard(2, 20, beta=1e-9).session()
    answers = session.answer_scores(np.tile(edge[:, None], 3), 10)
    assert answers[0] == pytest.approx(0.3)
    assert np.isnan(answers[1:]).all()
    assert len(answers) == 2
    assert (session.bottoms_left, session.queries_left) == (0, 17)
    session = hazard(5, 3, beta=1e-9).session()
    answers = session.answer_scores(np.tile(edge[:, None], 3), 10)
    assert answers == pytest.approx([0.3, math.nan], nan_ok=True)
    assert (session.bottoms_left, session.queries_left) == (3, 0)


def test_scores_that_are_none_vote_somewhere_and_nobody_is_told():
    session = hazard(3, 20, beta=1e-9).session()
    assert session.answer_scores(np.full(10_000, np.nan), 10) == 0.05
    assert session.answer_scores(np.full(10_000, -3.0), 10) == 0.05
    assert session.answer_scores(np.full(10_000, np.inf), 10) == 0.95


def test_margins_cannot_win_the_second_time():
    # With two bins one shifted bin is eligible: its center is the answer, whoever votes.
    session = hazard(3, 20, beta=1e-9).session()
    halves = np.where(np.arange(10_000) % 2 == 0, 0.1, 0.9)
    assert session.answer_scores(halves, 2) == 0.5
    margins = np.repeat([0.01, 0.99, 0.51], [4_000, 4_000, 2_000])
    assert session.answer_scores(margins, 10) == pytest.approx(0.5)


def test_a_session_goes_on_where_an_earlier_one_ended():
    session = hazard(5, 40).session(used_bottoms=4, used_queries=38)
    assert (session.bottoms_left, session.queries_left) == (1, 2)
    assert session.answer([[3, 3]] * 2).tolist() == [-1]
    for used in (
        {"used_bottoms": 6},
        {"used_queries": 41},
        {"used_bottoms": -1},
        {"used_queries": 1.5},
    ):
        with pytest.raises(ParameterError, match=next(iter(used))):
            hazard(5, 40).session(**used)


def test_a_session_is_paid_for_once_and_is_never_copied():
    budget = Budget(1.5, delta=1e-5)
    session = hazard().session(budget=budget)
    assert budget.spent == (1.0, 1e-6)
    session.answer([[9_999, 0]] * 10)
    assert budget.spent == (1.0, 1e-6)
    with pytest.raises(BudgetExceeded):
        hazard().session(budget=budget)
    assert copy.copy(session) is session is copy.deepcopy(session)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(session)
    assert (session.record.epsilon, session.record.delta) == (1.0, 1e-6)
    assert session.record.neighbors == "replace_one"
    assert "test stream" in hazard().session(random_state=3).record.rng


def test_a_forked_child_cannot_go_on_with_a_session():
    session = hazard().session()

    def child():
        with pytest.raises(ParameterError):
            session.answer([9_999, 0])

    assert exit_code(forked(child)) == 0


@pytest.mark.parametrize("make", [hazard, vote])
def test_threads_that_share_a_session_get_no_more_than_one_would(make):
    table = hazard(300, 2000) if make is hazard else vote(2000)
    session, answers, counts = table.session(), [], [[300, 300], [9_999, 0]]

    def caller():
        try:
            while True:
                answers.append(session.answer(counts if make is hazard else counts[1:]))
        except BudgetExceeded:
            return

    together([caller] * 4, hasty=True)
    labels = np.concatenate(answers)
    assert session.halted
    assert session.queries_left == table.queries - len(labels)
    if make is hazard:
        assert np.count_nonzero(labels == -1) == table.max_unstable


def test_an_interrupted_batch_has_used_nothing(monkeypatch):
    session = hazard().session()

    class Broken:
        def answer_counts(self, *_):
            raise KeyboardInterrupt

    monkeypatch.setattr(session, "_table", Broken())
    with pytest.raises(KeyboardInterrupt):
        session.answer([9_999, 0])
    assert session.queries_left == 40


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"max_unstable": 0}, "max_unstable = 0"),
        ({"max_unstable": 1.5}, "max_unstable = 1.5"),
        ({"max_unstable": 2**41}, "max_unstable = "),
        ({"queries": 0}, "queries = 0"),
        ({"queries": "a"}, "queries = 'a'"),
        ({"epsilon": 0}, "epsilon = 0"),
        ({"epsilon": 1e-4}, "epsilon = 0.0001"),
        ({"epsilon": math.nan}, "epsilon = "),
        ({"delta": 0}, "delta = 0"),
        ({"delta": 1e-19}, "epsilon = 1"),
        ({"beta": 1}, "beta = 1"),
    ],
)
def test_a_promise_out_of_range_is_refused(changes, text):
    with pytest.raises(ParameterError, match=text):
        hazard(**changes)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda s: s.answer(3), ShapeError, "counts has shape"),
        (lambda s: s.answer([0.5, 1]), ParameterError, "counts has dtype"),
        (lambda s: s.answer_ones([[1]], 3), ShapeError, "ones has shape"),
        (lambda s: s.answer_ones([4], 3), ParameterError, "ones = entries above members"),
        (lambda s: s.answer_ones([-1], 3), ParameterError, "ones has entries"),
        (lambda s: s.answer_ones([1, 2**32], 3), ParameterError, "ones has entries"),
        (lambda s: s.answer_ones([1], 0), ParameterError, "members = 0"),
        (lambda s: s.answer_scores(0.5, 10), ShapeError, "scores has shape"),
        (lambda s: s.answer_scores(["a"], 10), ParameterError, "scores has dtype"),
        (lambda s: s.answer_scores([0.5], 1), ParameterError, "bins = 1"),
        (lambda s: vote().session().answer_scores([0.5], 3), ParameterError, "HazardTable"),
        (lambda s: vote().session().answer([1, 2, 3]), ShapeError, "two labels"),
        (lambda s: vote().session().answer([[1, 2], [3, 4]]), ParameterError, "different sums"),
        (lambda s: stability.members_needed(3), ParameterError, "table = 3"),
        (lambda s: stability.members_needed(vote(), agreement=0.5), ParameterError, "agreement"),
        (
            lambda s: stability.members_needed(SMALL, agreement=0.5 + 1e-12),
            ParameterError,
            "agreement must be larger: else the table needs more than 1,099,511,627,776 members",
        ),
        (
            lambda s: stability.plan(1, 1, epsilon=1, delta=0.1, beta=0.1, labels=1),
            ParameterError,
            "labels = 1",
        ),
    ],
)
def test_bad_queries_use_nothing_up(call, error, text):
    session = hazard().session()
    with pytest.raises(error, match=text):
        call(session)
    assert (session.bottoms_left, session.queries_left) == (2, 40)


@pytest.mark.parametrize("bins", [2, 3, 10, 129])
def test_counts_of_scores_are_answered_as_the_scores_are(bins):
    """Edges of bins and of half bins are in the cells that both histograms need."""
    rng = np.random.default_rng(bins)
    edges = np.arange(2 * bins + 1) / (2 * bins)
    scores = np.concatenate(
        [
            np.tile(edges, (40, 1)),
            np.nextafter(edges, 2)[None],
            np.nextafter(edges, -1)[None],
            rng.choice(edges, (100, 2 * bins + 1)) * rng.random(2 * bins + 1),
        ]
    ).clip(0, 1)
    cells = np.minimum(2.0 * (scores * bins), 2 * bins - 1).astype(int)
    counts = (cells[:, :, None] == np.arange(2 * bins)).sum(axis=0)
    table = stability.HazardTable.design(10_000, 20_000, epsilon=100.0, delta=1e-2, beta=0.5)
    by_scores = table.session(random_state=1).answer_scores(scores, bins)
    by_counts = table.session(random_state=1).answer_bins(counts)
    assert np.array_equal(by_scores, by_counts, equal_nan=True)
    assert not np.isnan(by_counts).all()


def test_counts_of_scores_are_checked():
    session = stability.HazardTable.design(5, 99, epsilon=4.0, delta=1e-3, beta=0.1).session()
    for counts in ([[1, 2, 3]], [[1, 2]], [1, 2, 3, 4]):
        with pytest.raises(ShapeError, match="2 bins"):
            session.answer_bins(counts)
    with pytest.raises(ShapeError, match="winners has shape"):
        session.answer_winners(np.zeros((2, 3), np.uint32), 2)
    with pytest.raises(ParameterError, match="HazardTable"):
        stability.VoteTable.design(99, epsilon=4.0, delta=1e-3, beta=0.1).session().answer_bins(
            [[1, 0, 0, 0]]
        )
    assert session.queries_left == 99
