"""Plans that rest on an assumption: their bounds in exact fractions, and runs of what they plan."""

import itertools
import json
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import transfer
from hdp_fast.exceptions import ParameterError, UtilityWarning
from hdp_fast.learners import Conjunctions, ExponentialLearner, LinearSeparator, PrivateSGD, Stumps
from hdp_fast.transfer.source_plan import bound_source_error, bound_target_error

LEARNER = ExponentialLearner(Conjunctions(64, 2), epsilon=1.0)
GOAL = {"error": 0.3, "chi2": 0.35, "epsilon": 1.0}


def laws(cells, parts):
    """All distributions over so many cells whose probabilities are multiples of 1 / parts."""
    counts = itertools.product(range(parts + 1), repeat=cells)
    return [[Fraction(c, parts) for c in each] for each in counts if sum(each) == parts]


def divergence(target, source):
    """The exact chi-squared divergence of target from source; None if it is infinite."""
    pairs = list(zip(target, source, strict=True))
    if any(p and not q for p, q in pairs):
        return None
    return sum(p * p / q for p, q in pairs if q) - 1


def excesses(cells, parts, losses):
    """For all laws and losses: the excess on the target, chi2, and the variance that bounds it."""
    grid = laws(cells, parts)
    for source, target in itertools.product(grid, grid):
        chi2 = divergence(target, source)
        if chi2 is None:
            continue
        for loss in itertools.product(losses, repeat=cells):
            a = sum(q * each for q, each in zip(source, loss, strict=True))
            b = sum(p * each for p, each in zip(target, loss, strict=True))
            yield b - a, chi2, a * (1 - a)


@pytest.mark.parametrize(
    ("cells", "parts", "losses"),
    [(2, 12, (0, Fraction(1, 3), 1)), (3, 6, (0, 1)), (3, 4, (0, Fraction(1, 2), 1))],
)
def test_the_bound_for_all_small_laws_and_losses(cells, parts, losses):
    attained = 0
    for excess, chi2, variance in excesses(cells, parts, losses):
        assert excess <= 0 or excess**2 <= chi2 * variance
        attained += excess > 0 and excess**2 == chi2 * variance
    assert attained > 10


def test_a_smaller_bound_fails():
    tight = Fraction(99, 100)
    cases = excesses(2, 6, (0, 1))
    assert any(
        excess > 0 and excess**2 > tight * chi2 * variance for excess, chi2, variance in cases
    )


@each_case("error", [0.01, 0.05, 0.3, 0.6, 0.99])
@each_case("chi2", [0.0, 0.01, 0.35, 2.0, 1000.0])
def test_the_inverse_is_the_largest_error_that_is_small_enough(error, chi2):
    a, b, c = Fraction(bound_source_error(error, chi2)), Fraction(error), Fraction(chi2)
    assert 0 < a <= b
    assert (b - a) ** 2 >= c * a * (1 - a)
    assert bound_target_error(float(a), chi2) == pytest.approx(error, abs=1e-9)
    more = a * (1 + Fraction(1, 10**9))
    # Some target of two cells then has a larger error than is allowed.
    assert more > b or (b - more) ** 2 < c * more * (1 - more)
    # The data-processing inequality for the event that the hypothesis errs.
    assert float(b**2 / a + (1 - b) ** 2 / (1 - a)) == pytest.approx(chi2 + 1)


def test_smaller_errors_on_the_source_are_no_worse():
    largest = bound_source_error(0.3, 0.35)
    bounds = [bound_target_error(share * largest, 0.35) for share in np.linspace(0, 1, 101)]
    assert bounds == sorted(bounds)
    assert bound_target_error(0.9, 100.0) == 1


class TestPlanSource:
    def test_numbers_by_hand(self):
        plan = transfer.plan_source(LEARNER, **GOAL)
        assert (plan.n, plan.N, plan.error, plan.failure) == (265, 0, 0.3, 0.05)
        # a = .1128; Pr[a bad hypothesis beats the right one] <= (1 - a (1 - exp(-1/2)))^n.
        assert plan.source_error == pytest.approx(0.11283, abs=1e-5)
        rate = -math.log1p(plan.source_error * math.expm1(-0.5))
        assert plan.n == math.ceil(math.log(8192 / 0.05) / rate)
        sizes = [
            transfer.plan_source(LEARNER, **{**GOAL, "error": error, "chi2": chi2}).n
            for error, chi2 in ((0.3, 2), (0.6, 0.35), (0.05, 0.35), (0.1, 2))
        ]
        assert sizes == [839, 89, 5394, 6666]

    def test_a_class_that_errs_somewhat_needs_more(self):
        sizes = [transfer.plan_source(LEARNER, **GOAL, opt=opt).n for opt in (0, 0.02, 0.05, 0.1)]
        assert sizes == sorted(sizes)
        margin = transfer.plan_source(LEARNER, **GOAL).source_error - 0.05
        assert sizes[2] == LEARNER.sample_size(margin, 0.05, 1.0, agnostic=False, opt=0.05)

    def test_the_text_says_what_is_promised(self):
        text = repr(transfer.plan_source(LEARNER, **GOAL, opt=0.05))
        assert "0.3 on the target" in text
        assert "errs by at most 0.05 on the source" in text
        fields = json.loads(transfer.plan_source(LEARNER, **GOAL).to_json())
        assert (fields["n"], fields["N"], fields["error"]) == (265, 0, 0.3)

    def test_runs_keep_the_promise_on_a_tilted_target(self):
        plan = transfer.plan_source(LEARNER, **GOAL)
        rng = np.random.default_rng(0)
        shares = np.full(64, 0.5)
        shares[[3, 17]] = 0.38
        chi2 = float(np.prod(0.25 / shares + 0.25 / (1 - shares))) - 1
        assert 0 < chi2 <= plan.chi2
        target = (rng.random((20_000, 64)) < 0.5).astype(np.uint8)
        labels = target[:, 3] & target[:, 17]
        misses = 0
        for seed in range(60):
            X = (rng.random((plan.n, 64)) < shares).astype(np.uint8)
            learner = LEARNER.with_epsilon(plan.epsilon)
            result = learner.learn(X, X[:, 3] & X[:, 17], random_state=seed)
            misses += (result.predict(target) != labels).mean() > plan.error
        assert misses <= 8  # Bin(60, .05) exceeds it with probability .003

    def test_a_plan_of_a_run_says_that_the_source_is_enough(self):
        learner = ExponentialLearner(Stumps(3), epsilon=1.0)
        goal = {"alpha": 0.1, "epsilon": 1.0, "delta": 1e-6, "chi2": 0.2, "agents_epsilon": 1.0}
        with pytest.warns(UtilityWarning, match="learner alone promises it with n = .*plan_source"):
            made = transfer.plan_rounds(learner, **goal)
        alone = transfer.plan_source(
            learner, error=made.error, chi2=0.2, epsilon=1.0, beta=made.failure
        )
        assert alone.n < made.n / 100
        with warnings.catch_warnings():
            warnings.simplefilter("error", UtilityWarning)
            transfer.plan_rounds(learner, **{**goal, "epsilon": math.inf, "delta": None})
            transfer.plan_rounds(learner, **goal, beta=0.3)


class TestPlanCertificate:
    def test_the_agents_of_a_certificate(self):
        plan = transfer.plan_certificate(alpha=0.05, agents_epsilon=1.0)
        assert (plan.n, plan.N, plan.error, plan.failure) == (0, 2312, None, 0.05)
        assert "no error is promised" in repr(plan)
        some = transfer.plan_certificate(alpha=0.02, agents_epsilon=2.0, response_rate=0.5)
        assert transfer.agents_to_certify(0.02, epsilon=2.0, response_rate=0.5) == some.N
        assert json.loads(some.to_json())["N"] == some.N


@each_case(
    ("change", "words"),
    [
        ({"error": None}, "error = None"),
        ({"error": 1.0}, "error = 1.0"),
        ({"error": "x"}, "error = 'x'"),
        ({"chi2": None}, "chi2 = None"),
        ({"chi2": math.inf}, "chi2 = inf"),
        ({"chi2": -1}, "chi2 = -1"),
        ({"epsilon": None}, "epsilon = None"),
        ({"beta": 0}, "beta = 0"),
        ({"opt": 0.2}, "opt = 0.2, but error = 0.3 at chi2 = 0.35 needs an error below 0.1128"),
        ({"opt": -1}, "opt = -1"),
        ({"learner": LinearSeparator()}, "learner = "),
        ({"learner": None}, "learner = None"),
        ({"learner": PrivateSGD(loss="logistic", epsilon=1.0)}, "it must be of a finite class"),
    ],
    ids=str,
)
def test_plan_source_names_bad_parameters(change, words):
    with pytest.raises(ParameterError) as caught:
        transfer.plan_source(**{"learner": LEARNER, **GOAL, **change})
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": None}, "alpha = None"),
        ({"alpha": 1}, "alpha = 1"),
        ({"agents_epsilon": None}, "agents_epsilon = None"),
        ({"agents_epsilon": math.inf}, "agents_epsilon = inf"),
        ({"beta": 0}, "beta = 0"),
        ({"response_rate": 0}, "response_rate = 0"),
    ],
    ids=str,
)
def test_plan_certificate_names_bad_parameters(change, words):
    with pytest.raises(ParameterError, match=f"^{words}, but"):
        transfer.plan_certificate(**{"alpha": 0.05, "agents_epsilon": 1.0, **change})
