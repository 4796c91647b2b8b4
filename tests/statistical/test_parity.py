"""The compiled PARITY mechanisms against their exact laws; test_audit audits their epsilon.

All random bits come from the operating system: a fixed seed could hide a bias that others have. The
data sets are tiny, so that the law of the output is a sum over all samples.
"""

from dataclasses import replace
from fractions import Fraction

import lengths
import numpy as np
import pytest
from frequencies import Case, misfits, power
from parity_settings import DRAWS, Setting, best_c, rounded_down, tally

from hdp_fast import _core, parity
from hdp_fast.reference import parity as exact

RELATIONS = ["replace_one", "add_remove"]

pytestmark = pytest.mark.usefixtures("one_thread")


# Draws of each data set in the short form, as many as see parameters that are a fifth off.
FEWER = {
    "loop-0.5-replace_one": 6_000,
    "loop-0.5-add_remove": 2_500,
    "loop-1-replace_one": 3_000,
    "loop-1-add_remove": 3_000,
    "loop-3-replace_one": 1_000,
    "loop-3-add_remove": 1_000,
    "batches-0.5-replace_one": 2_000,
    "batches-0.5-add_remove": 2_000,
    "batches-1-replace_one": 4_000,
    "batches-1-add_remove": 4_000,
}
LOOPS = [
    Setting("loop", epsilon, relation, g=g)
    for epsilon, g in [(0.5, 0.1), (1.0, 0.04), (3.0, 0.2)]
    for relation in RELATIONS
]
BATCHES = [
    Setting("batches", epsilon, relation, c=c or best_c(epsilon, relation), k=k)
    for epsilon, c, k in [(0.5, None, 1), (1.0, 0.1, 2), (2.0, 0.05, 3)]
    for relation in RELATIONS
]

SMALLEST = [
    (d, records) for d, n in [(1, 1), (1, 2), (2, 1)] for records in exact.all_datasets(d, n)
]
CHOSEN = [
    (2, ()),
    (1, ((1, 0), (1, 1), (1, 1))),
    (1, ((0, 1), (0, 1), (1, 1))),
    (1, ((0, 0), (0, 0), (0, 1))),
    (2, ((1, 0), (1, 1))),
    (2, ((1, 1), (2, 0))),
    (2, ((3, 1), (1, 1))),
    # Any two of these agree with some hypothesis, all three with none.
    (2, ((1, 0), (2, 1), (3, 0))),
    (2, ((1, 1), (2, 1), (3, 0))),
    (2, ((1, 0), (1, 1), (0, 1))),
]


def named(setting):
    return f"{setting.method}-{setting.epsilon:g}-{setting.neighbors}"


def draws(setting):
    return DRAWS if lengths.STAT else FEWER.get(named(setting), DRAWS)


DATA_SETS = SMALLEST + CHOSEN


LEFT = {"batches-2-replace_one", "batches-2-add_remove", "loop-0.5-replace_one"}


@pytest.mark.parametrize(
    "setting", lengths.leaving(LEFT, {named(setting): setting for setting in LOOPS + BATCHES})
)
def test_frequencies_follow_the_exact_law(setting):
    cases = [
        Case(setting.counts(records, d, draws(setting)), setting.law(records, d))
        for d, records in DATA_SETS
    ]
    assert misfits(cases) == []


@pytest.mark.parametrize("setting", LOOPS + BATCHES, ids=named)
def test_parameters_that_are_a_fifth_off_would_be_seen(setting):
    silent = {name: 1.2 * value for name in ("g", "c") if (value := getattr(setting, name))}
    for changed in ({"epsilon": 1.2 * setting.epsilon}, silent):
        other = replace(setting, **changed)
        pairs = [(other.law(z, d), setting.law(z, d)) for d, z in DATA_SETS]
        assert power(pairs, draws(setting)) > 0.999, changed


def test_uneven_batches_are_cut_by_position():
    setting = Setting("batches", 3.0, c=0.04, k=2)
    records = ((1, 1), (1, 1), (1, 0))
    counts = setting.counts(records, 1, 4 * DRAWS)
    assert misfits([Case(counts, setting.law(records, 1))]) == []
    # (0, 0) says nothing: the halves of these four are the batches if the first one were larger.
    assert misfits([Case(counts, setting.law((*records, (0, 0)), 1))]) != []


@pytest.mark.parametrize(
    "setting",
    [Setting("loop", 1.0, g=0.04), Setting("batches", 2.0, "add_remove", c=0.1, k=2)],
    ids=named,
)
def test_affine_hypotheses_follow_the_law_of_one_more_feature(setting):
    cases = []
    for d, records in [
        *SMALLEST[:4],
        (1, ((0, 1), (1, 1))),
        (2, ((1, 0), (1, 1))),
        (1, ((0, 0), (0, 1))),
    ]:
        with_constant = tuple((x | 1 << d, y) for x, y in records)
        law = setting.law(with_constant, d + 1)
        cases.append(Case(setting.counts(records, d, affine=True), law))
    assert misfits(cases) == []


PAPER = [
    (Setting("paper", 0.5, c=0.5, k=2, test_size=0), ((1, 1), (1, 0))),
    (Setting("paper", 0.5, c=0.5, k=2, test_size=1), ((1, 1), (1, 0), (1, 1))),
    (Setting("paper", 0.5, c=0.5, k=1, test_size=1), ((1, 1), (0, 1), (1, 1))),
    # Five records that choose, and one too many for two batches.
    (Setting("paper", 0.5, c=0.5, k=2, test_size=5), ((1, 1), (1, 0), (1, 0), *((1, 1),) * 5)),
    (Setting("paper", 0.5, c=0.5, k=3, test_size=8), ((0, 1), (0, 1), (1, 1), *((1, 1),) * 8)),
    (Setting("paper", 0.25, c=0.5, k=2, test_size=12), ((1, 1), (1, 0), *((1, 0),) * 12)),
]


def test_the_papers_mechanism_follows_its_law():
    cases = [
        Case(setting.counts(records, 1, 2 * DRAWS), setting.law(records, 1))
        for setting, records in PAPER
    ]
    assert misfits(cases) == []


@pytest.mark.parametrize("factor", [Fraction(1, 2), Fraction(2)], ids=str)
def test_other_noise_in_the_papers_mechanism_would_be_seen(factor, monkeypatch):
    laws = [setting.law(records, 1) for setting, records in PAPER]
    noisy_argmin = exact._noisy_argmin
    monkeypatch.setattr(exact, "_noisy_argmin", lambda counts, b: noisy_argmin(counts, factor * b))
    others = [setting.law(records, 1) for setting, records in PAPER]
    assert power(list(zip(others, laws, strict=True)), 2 * DRAWS) > 0.999


def test_parameters_chosen_without_a_plan_give_the_same_law():
    records, d, epsilon, failure = ((1, 1), (3, 1), (3, 0)), 2, 1.0, 0.3
    g = _core.promise_parity(d, 3, failure, epsilon, "loop", "replace_one")[1]["g"]
    X = np.array([[1, 0], [1, 1], [1, 1]], np.uint8)
    counts = tally(lambda: parity.learn(X, [1, 1, 0], epsilon=epsilon, beta=failure), DRAWS)
    assert misfits([Case(counts, Setting("loop", epsilon, g=g).law(records, d))]) == []


@pytest.mark.parametrize("setting", [LOOPS[2], BATCHES[3]], ids=named)
def test_frequencies_of_another_mechanism_are_rejected(setting):
    d, records = 2, ((1, 0), (1, 1), (3, 1))
    flipped = (*records[:-1], (3, 0))
    larger = replace(setting, epsilon=1.2 * setting.epsilon)
    counts = setting.counts(records, d, 10 * DRAWS)
    assert misfits([Case(counts, setting.law(records, d))]) == []
    assert misfits([Case(counts, setting.law(flipped, d))])
    assert misfits([Case(counts, larger.law(records, d))])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0, 8.0, 20.0, 30.0, 40.0, 100.0])
def test_compiled_rates_never_exceed_the_exact_ones(epsilon, relation):
    for failure in (1e-6, 0.05, 0.5):
        check_rates(epsilon, failure, relation)


def check_rates(epsilon, failure, relation):
    for method in ("loop", "batches"):
        plan = _core.plan_parity(9, 0.4, failure, epsilon, method, relation)
        silent = {name: exact.round_up(Fraction(plan[name])) for name in ("g", "c") if plan[name]}
        best = exact.rounded_rate(Fraction(epsilon), relation, **silent)
        assert (
            best * (1 - Fraction(1, 2**40)) - Fraction(1, 2**63) < rounded_down(plan["p"]) <= best
        )


@pytest.mark.parametrize("method", ["loop", "batches"])
def test_parameters_do_not_depend_on_a_private_number_of_records(method, monkeypatch):
    """Where no record says anything, loop is silent with probability g: two n must share it.

    The best g for an error that n records promise would be .05 at n = 7 and .25 at n = 8 here.
    """
    used = []
    checked = _core.ParityMechanism
    made = lambda *arguments: used.append(arguments[3]) or checked(*arguments)  # noqa: E731
    monkeypatch.setattr(_core, "ParityMechanism", made)
    for n in range(12):
        X = np.zeros((n, 3), np.uint8)
        parity.learn(X, X[:, 0], epsilon=1.0, beta=0.5, method=method, neighbors="add_remove")
    assert len({(plan["g"], plan["c"], plan["k"]) for plan in used}) == 1
