"""Every public function with every kind of bad argument: one clear error that names it."""

import math
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from calls import CALLS, EYE, ONES
from cases import each_case

from hdp_fast import accounting, budget, gf2, local, stability
from hdp_fast.exceptions import HdpFastError, ParameterError
from hdp_fast.local import Agents

NOT_BITS = {
    "2": lambda bits: bits * 2,
    "-1": lambda bits: -bits.astype(int),
    "256": lambda bits: bits.astype(np.uint16) * 256,
    "float": lambda bits: bits / 2,
    "nan": lambda bits: bits * math.nan,
    "complex": lambda bits: bits.astype(complex),
    "object": lambda bits: bits.astype(object),
    "str": lambda bits: bits.astype(str),
    "date": lambda bits: bits.astype("M8[s]"),
    "span": lambda bits: bits.astype("m8[s]"),
    "void": lambda bits: bits.astype("V4"),
    "structured": lambda bits: bits.astype([("a", "u1"), ("b", "u1")]),
    "masked": lambda bits: np.ma.array(bits, mask=bits.astype(bool)),
    "ragged": lambda bits: [[1], [1, 0], *bits[2:].tolist()],
}
NO_ARRAY = {"None": None, "text": "0110", "number": 1, "set": {1}}
MATRICES = (
    {name: change(EYE) for name, change in NOT_BITS.items()}
    | NO_ARRAY
    | {"1-d": ONES, "3-d": EYE[None], "empty": []}
)
ANY_LENGTH = {name: change(ONES) for name, change in NOT_BITS.items()} | NO_ARRAY | {"2-d": EYE}
VECTORS = ANY_LENGTH | {
    "short": ONES[:3],
    "long": [1] * 5,
    "empty": [],
    "no void": np.zeros(0, "V4"),
}
EPSILONS = [0, -1, math.nan, math.inf, -math.inf, True, np.True_]
NO_NUMBERS = ["1", None, [1], 1j, 10**400]
PROBABILITIES = [0, 1, -0.1, 1.5, math.nan, math.inf, False]
STATES = {
    "huge": -(10**5000),
    "-1": -1,
    "0.5": 0.5,
    "True": True,
    "numpy's True": np.True_,
    "text": "1",
    "list": [1],
    "RandomState": np.random.RandomState(0),
}
COUNTS = [-1, 1.5, "2", True, 2**70]

RATES = [
    *(-0.1, 1.5, math.nan, math.inf, "x", None, [0.5], 1j, True, 10**400),
    *(Fraction(3, 2), Fraction(-1, 2), Fraction(1, 2**4096), Fraction(10**400)),
]
SCALES = [
    *(-0.1, -1, math.nan, math.inf, -math.inf, "x", None, [0.5], 1j, True, 2**4096),
    np.float64(-1),
]
LARGE_SCALES = [2**50, 1e300, Fraction(2**51, 2), Fraction(1, 2**4096)]
SIZES = [[2, 3], (2, -1), (2, 1.5), "3", (2**40, 2**40), *COUNTS]
NO_INTEGERS = {
    **NO_ARRAY,
    **{name: NOT_BITS[name](ONES) for name in NOT_BITS if name not in {"2", "-1", "256", "nan"}},
    **{"nan": [math.nan], "empty": [], "2-d": EYE, "masked": np.ma.array([1], mask=True)},
}
SELECTIONS = ("permute_and_flip", "exponential_mechanism")
SIZED = (
    *("bernoulli", "bernoulli_exp", "geometric", "discrete_laplace", "discrete_gaussian"),
    *("rounded_gaussian", "uniform_integers", "weighted_draws"),
)

NO_NUMBERS_4x4 = {
    **{name: value for name, value in NO_ARRAY.items() if name != "number"},
    **{name: NOT_BITS[name](EYE) for name in NOT_BITS if name not in {"2", "-1", "256", "float"}},
    **{"infinite": np.full((4, 4), math.inf), "1-d": ONES, "3-d": EYE[None], "empty": []},
}

VOTES = {
    **NO_ARRAY,
    **{name: NOT_BITS[name](ONES) for name in NOT_BITS if name not in {"2", "256"}},
    **{"3-d": EYE[None], "large": [2**32, 1], "empty": []},
}

# Bad values by function and argument; "absurd" ones may be a TypeError of Python's own making.
TABLE = {
    ("rank", "A"): MATRICES,
    ("rank", "threads"): [0, *COUNTS],
    ("dot", "A"): MATRICES,
    ("dot", "x"): VECTORS,
    ("dot", "threads"): [0, *COUNTS],
    ("solve", "A"): MATRICES,
    ("solve", "b"): VECTORS,
    ("solve", "threads"): [0, *COUNTS],
    ("sample", "random_state"): STATES,
    ("from_dense", "X"): MATRICES,
    ("from_packed", "rows"): MATRICES | {"int8": np.zeros((3, 2), np.int8)},
    ("from_packed", "ncols"): [None, *COUNTS],
    ("bernoulli", "p"): RATES,
    ("bernoulli_exp", "gamma"): [*SCALES, Fraction(-1, 2), Fraction(1, 2**4096)],
    ("poisson_mask", "n"): COUNTS,
    ("poisson_mask", "rate"): RATES,
    ("geometric", "scale"): [*SCALES, *LARGE_SCALES],
    ("discrete_laplace", "scale"): [*SCALES, *LARGE_SCALES],
    ("discrete_gaussian", "sigma"): [*SCALES, *LARGE_SCALES],
    ("rounded_gaussian", "sigma"): [*SCALES, *LARGE_SCALES],
    ("uniform_integers", "bound"): [0, -3, 1.5, "6", None, 2**63, 2**70],
    ("weighted_draws", "weights"): NO_INTEGERS
    | {"negative": [1, -1], "no sum": [0, 0], "large sum": [2**63, 2**63]},
    **{(name, "scores"): NO_INTEGERS | {"large": [2**63]} for name in SELECTIONS},
    **{(name, "epsilon"): EPSILONS for name in SELECTIONS},
    **{(name, "sensitivity"): [0, -1, math.nan, math.inf, Fraction(-1, 2)] for name in SELECTIONS},
    **{(name, "monotonic"): [None, 1, "yes"] for name in SELECTIONS},
    **{(name, "neighbors"): ["replace", "local", ""] for name in SELECTIONS},
    **{(name, "random_state"): STATES for name in (*SIZED, *SELECTIONS, "poisson_mask")},
    **{(name, "size"): SIZES for name in SIZED},
    ("Budget", "epsilon"): EPSILONS,
    ("Budget", "delta"): [-0.1, 1, 1.5, math.nan],
    ("Budget", "neighbors"): ["replace", "local", ""],
    ("Budget.reserve", "record"): [None, 1, {"epsilon": 1}],
    ("Budget.sequential", "epsilon"): EPSILONS,
    ("Budget.sequential", "delta"): [-0.1, 1, 1.5, math.nan],
    ("Budget.sequential", "name"): [1, b"a"],
    ("Budget.parallel", "name"): [1, b"a"],
    ("Parallel.part", "name"): {"None": None, "1.5": 1.5, "huge": 10**5000, "half": "\ud800"},
    ("lower_bound", "mechanism"): [None, "learn", lambda data: {1}],
    ("lower_bound", "delta"): [-0.1, 1, 1.5, math.nan],
    ("lower_bound", "event"): [0, 3, "x", ""],
    ("lower_bound", "runs"): [None, 0, 3, *COUNTS[:-1]],
    ("lower_bound", "confidence"): PROBABILITIES,
    ("lower_bound", "threads"): [0, *COUNTS[:-1]],
    ("Features", "X"): MATRICES,
    ("Features", "threads"): [0, *COUNTS],
    ("Conjunctions", "d"): [0, None, *COUNTS],
    ("Conjunctions", "size"): [5, None, *COUNTS],
    ("Conjunctions", "complements"): [None, 1, "yes"],
    ("Stumps", "d"): [0, None, *COUNTS],
    ("ConjunctionList", "ones"): MATRICES | {"short": EYE[:3]},
    ("ConjunctionList", "zeros"): MATRICES | {"narrow": EYE[:, :3]},
    ("Parities", "masks"): MATRICES,
    ("Parities", "affine"): [None, 1, "yes"],
    ("Halfspaces", "W"): NO_NUMBERS_4x4 | {"short": EYE[:3]},
    ("Halfspaces", "b"): {"short": ONES[:3], "nan": ONES * math.nan, "2-d": EYE, **NO_ARRAY},
    ("errors", "X"): MATRICES | {"narrow": EYE[:, :3]},
    ("errors", "y"): VECTORS,
    ("errors", "threads"): [0, *COUNTS],
    ("errors of halfspaces", "X"): NO_NUMBERS_4x4 | {"narrow": EYE[:, :3]},
    ("errors of halfspaces", "y"): VECTORS,
    ("predict", "i"): [10, None, *COUNTS],
    ("predict", "X"): MATRICES | {"narrow": EYE[:, :3]},
    ("ExponentialLearner", "hypotheses"): [None, [1], {"kind": "parity"}],
    ("ExponentialLearner", "epsilon"): EPSILONS,
    ("ExponentialLearner", "mechanism"): ["exponential_mechanism", "", None],
    ("ExponentialLearner", "neighbors"): ["replace", "local", ""],
    ("ExponentialLearner.learn", "X"): MATRICES,
    ("ExponentialLearner.learn", "y"): VECTORS,
    ("ExponentialLearner.learn", "random_state"): STATES,
    ("ExponentialLearner.learn", "budget"): [1, "ledger"],
    **{
        (name, argument): values
        for name in ("sample_size", "paper_sample_size")
        for argument, values in (
            ("alpha", [*PROBABILITIES, 1e-300]),
            ("beta", PROBABILITIES),
            ("epsilon", [*EPSILONS, 1e-300]),
        )
    },
    ("sample_size", "agnostic"): [None, 1, "yes"],
    ("sample_size", "opt"): [-0.1, 1, math.nan, "x"],
    ("randomized_response", "bits"): {k: v for k, v in ANY_LENGTH.items() if k != "float"}
    | {"1.5": ONES * 1.5, "-0.5": ONES * -0.5},
    ("randomized_response", "epsilon"): EPSILONS,
    ("randomized_response", "random_state"): STATES,
    ("randomized_response", "budget"): [1, "ledger"],
    ("Agents", "X"): NO_ARRAY
    | {"1-d": ONES, "3-d": EYE[None], "empty": [], "ragged": [[1], [1, 0]]},
    ("Agents", "y"): VECTORS,
    ("Agents", "epsilon"): EPSILONS,
    ("Agents", "delta"): [-0.1, 1, 1.5, math.nan],
    ("ask", "count"): [None, *COUNTS[:-1]],
    ("ask", "random_state"): STATES,
    ("agents_needed", "alpha"): [*PROBABILITIES, 1e-300],
    ("agents_needed", "beta"): PROBABILITIES,
    ("agents_needed", "epsilon"): [*EPSILONS, 1e-30],
    ("estimate_mean", "answers"): ANY_LENGTH | {"empty": []},
    ("estimate_mean", "beta"): PROBABILITIES,
    ("estimate_mean", "epsilon"): EPSILONS,
    ("plan", "d"): [0, None, 2**62, *COUNTS],
    ("plan", "alpha"): [*PROBABILITIES, 0.5, 1e-300],
    ("plan", "beta"): PROBABILITIES,
    ("plan", "epsilon"): [*EPSILONS, 1e-300],
    ("plan", "method"): ["Loop", "loop ", ""],
    ("plan", "neighbors"): ["replace", "ADD_REMOVE", ""],
    ("plan_transfer", "d"): [0, None, 2**62, *COUNTS],
    ("plan_transfer", "alpha"): [*PROBABILITIES, 0.5],
    ("plan_transfer", "beta"): PROBABILITIES,
    ("plan_transfer", "epsilon"): EPSILONS,
    ("plan_transfer", "agents_epsilon"): EPSILONS,
    ("plan_transfer", "chi2"): [-0.1, math.nan, math.inf, 1e20, 1e300],
    ("plan_transfer", "method"): ["Loop", ""],
    ("plan_transfer", "neighbors"): ["replace", ""],
    ("plan_transfer, chi2", "d"): [0, None, 2**62, *COUNTS],
    ("plan_transfer, chi2", "beta"): PROBABILITIES,
    ("plan_transfer, chi2", "epsilon"): [*EPSILONS, 5e-324],
    ("plan_transfer, chi2", "method"): ["Loop", "paper", ""],
    ("learn", "X"): MATRICES,
    ("learn", "y"): VECTORS,
    ("learn", "epsilon"): EPSILONS,
    ("learn", "beta"): PROBABILITIES,
    ("learn", "method"): ["Loop", ""],
    ("learn", "neighbors"): ["replace", ""],
    ("learn", "plan"): [3, "loop", {}],
    ("learn", "random_state"): STATES,
    ("learn", "budget"): [1, "ledger"],
    ("transfer", "X"): MATRICES,
    ("transfer", "y"): VECTORS,
    ("transfer", "agents"): [None, [], (EYE, ONES)],
    ("transfer", "epsilon"): EPSILONS,
    ("transfer", "alpha"): [*PROBABILITIES, 1e-300],
    ("transfer", "beta"): PROBABILITIES,
    ("transfer", "method"): ["Loop", ""],
    ("transfer", "neighbors"): ["replace", ""],
    ("transfer", "plan"): [3, "loop", {}],
    ("transfer", "random_state"): STATES,
    ("transfer", "budget"): [1, "ledger"],
    **{
        (name, argument): values
        for name in (
            *("HazardTable.design", "VoteTable.design"),
            *("GaussianVote.design", "stability.plan"),
        )
        for argument, values in (
            ("queries", [0, None, 2**41, *COUNTS]),
            ("epsilon", [*EPSILONS, 1e-4, 1e4]),
            ("delta", PROBABILITIES),
            ("beta", PROBABILITIES),
        )
    },
    ("HazardTable.design", "max_unstable"): [0, 2**41, *COUNTS],
    ("stability.plan", "max_unstable"): [0, 2**41, *COUNTS],
    **{
        (name, argument): values
        for name in ("GaussianVote.design", "stability.plan")
        for argument, values in (
            ("labels", [0, 1, 2**41, None, *COUNTS]),
            ("threshold", [-0.1, 1001, math.nan, None, "1"]),
        )
    },
    ("stability.plan", "agreement"): [0.5, *PROBABILITIES],
    ("paper_sizes", "max_unstable"): [0, None, *COUNTS],
    ("paper_sizes", "queries"): [0, None, *COUNTS],
    ("paper_sizes", "epsilon"): EPSILONS,
    ("members_needed", "table"): [None, 3, "table"],
    ("members_needed", "agreement"): [0.5, *PROBABILITIES],
    ("distance", "counts"): VOTES,
    ("count_votes", "votes"): {k: v for k, v in MATRICES.items() if k not in {"2", "empty"}},
    ("count_votes", "labels"): [0, 257, None, *COUNTS],
    ("count_votes", "threads"): [0, *COUNTS],
    ("HazardTable.session", "used_bottoms"): [10, None, *COUNTS],
    **{
        (f"{name}.session", argument): values
        for name in ("HazardTable", "VoteTable", "GaussianVote")
        for argument, values in (
            ("used_queries", [10, None, *COUNTS]),
            ("random_state", STATES),
            ("budget", [1, "ledger"]),
        )
    },
    ("TableSession.answer", "counts"): VOTES,
    ("GaussianSession.answer", "counts"): VOTES,
    ("TableSession.answer_ones", "ones"): {
        k: v for k, v in VOTES.items() if k not in {"number", "empty"}
    }
    | {"5": [5]},
    ("TableSession.answer_ones", "members"): [0, None, *COUNTS],
    ("TableSession.answer_scores", "scores"): {k: v for k, v in NO_ARRAY.items() if k != "number"}
    | {"object": EYE.astype(object), "str": EYE.astype(str), "3-d": EYE[None], "number": 0.5},
    ("TableSession.answer_scores", "bins"): [0, 1, 2**17, None, *COUNTS],
    ("AboveThreshold", "max_unstable"): [0, None, *COUNTS],
    ("AboveThreshold", "threshold"): [None, 1.5, "2", [1], 2**63],
    ("AboveThreshold", "epsilon"): [*EPSILONS, 1e-7, 1e4],
    ("AboveThreshold", "delta"): [-0.1, 1, 1.5, math.nan],
    ("AboveThreshold", "queries"): [0, *COUNTS],
    ("AboveThreshold", "random_state"): STATES,
    ("AboveThreshold", "budget"): [1, "ledger"],
    ("AboveThreshold.answer", "values"): {
        k: v for k, v in VOTES.items() if k not in {"number", "-1", "256", "empty", "large"}
    }
    | {"large": [2**63], "2-d": EYE},
    ("OnlineQueryRelease", "max_unstable"): [0, None, *COUNTS],
    ("OnlineQueryRelease", "epsilon"): [*EPSILONS, 1e-7, 1e4],
    ("OnlineQueryRelease", "delta"): PROBABILITIES,
    ("StableRelease", "epsilon"): [*EPSILONS, 1e-7, 1e4],
    ("StableRelease", "delta"): PROBABILITIES,
    ("StableRelease.release", "counts"): VOTES | {"2-d": EYE},
    ("StableRelease.release", "random_state"): STATES,
    ("StableRelease.release", "budget"): [1, "ledger"],
}
SCALARS = {"epsilon", "agents_epsilon", "alpha", "beta", "delta", "chi2"}
# None is a value of these.
OPTIONAL = {
    ("plan_transfer", "chi2"),
    *((name, "epsilon") for name in ("sample_size", "paper_sample_size")),
}
ABSURD = {
    pair: [value for value in NO_NUMBERS if pair not in OPTIONAL or value is not None]
    for pair in TABLE
    if pair[1] in SCALARS
} | {pair: [None, 3, ["loop"]] for pair in TABLE if pair[1] in {"method", "neighbors"}}


# Those that take a budget.
SPENDERS = {
    *("randomized_response", "learn", "transfer", "ExponentialLearner.learn"),
    *SELECTIONS,
    *("HazardTable.session", "VoteTable.session", "GaussianVote.session"),
    *("AboveThreshold", "StableRelease.release"),
}


def named(values):
    return values if isinstance(values, dict) else {str(value)[:20]: value for value in values}


def rows(table):
    return [
        pytest.param(function, argument, named(values), id=f"{function}-{argument}")
        for (function, argument), values in table.items()
    ]


def accepted(values, is_refused):
    """Names of the bad values that are not refused as they should be."""
    return [name for name, value in values.items() if not is_refused(value)]


def call(name, /, **changes):
    function, arguments = CALLS[name]
    return function(**arguments | changes)


def names(argument, text):
    """Whether a text names the argument; one of two epsilons may leave out whose it is."""
    return re.search(rf"\b({argument}|{argument.split('_')[-1]})\b", text) and "\n" not in text


@each_case("name", CALLS)
def test_good_arguments_are_accepted(name):
    call(name)


@each_case(("name", "argument", "values"), rows(TABLE))
def test_a_bad_value_is_one_error_that_names_its_argument(name, argument, values):
    def is_refused(value):
        try:
            call(name, **{argument: value})
        except HdpFastError as error:
            return names(argument, str(error))
        return False

    assert accepted(values, is_refused) == []


SPENDING = {pair: values for pair, values in TABLE.items() if pair[0] in SPENDERS}


@each_case(("name", "argument", "values"), rows(SPENDING))
def test_a_bad_value_spends_nothing_and_draws_no_coin(name, argument, values):
    def is_refused(value):
        spending, coins = budget.Budget(10), np.random.default_rng(1)
        changes = {"budget": spending, "random_state": coins, argument: value}
        with pytest.raises(HdpFastError):
            call(name, **changes)
        return spending.records == () and coins.random() == np.random.default_rng(1).random()

    assert accepted(values, is_refused) == []


@each_case(("name", "argument", "values"), rows(ABSURD))
def test_an_absurd_scalar_is_an_error_at_the_door(name, argument, values):
    def is_refused(value):
        try:
            call(name, **{argument: value})
        except (HdpFastError, TypeError):
            return True
        return False

    assert accepted(values, is_refused) == []


@pytest.mark.parametrize(
    "value", [np.complex128(2), np.complex64(2j), np.array(2 + 0j), np.ma.masked, np.ma.array(2.0)]
)
def test_what_float_would_take_with_a_warning_is_refused(value):
    with pytest.raises(ParameterError, match=r"must be a real number"):
        accounting.Pure(value)
    with pytest.raises(ParameterError, match=r"(?s)orders = .* must be a real number"):
        accounting.renyi_epsilon([value], [0.1], 1e-6)


def test_a_halved_beta_is_shown_as_it_was_given():
    for name in "plan_transfer", "plan_transfer, chi2", "transfer":
        with pytest.raises(HdpFastError, match=re.escape("beta = -0.5,")):
            call(name, beta=-0.5)


def test_a_divergence_beyond_any_plan_is_refused():
    for neighbors in "replace_one", "add_remove":
        for chi2 in 1e18, sys.float_info.max:
            with pytest.raises(HdpFastError, match="chi2"):
                call("plan_transfer", chi2=chi2, method="batches", neighbors=neighbors)


@pytest.mark.parametrize("dtype", ["V4", "M8[s]", "U3", "object", [("a", "u1")], [], "complex64"])
def test_what_is_empty_holds_nothing_but_bits_whatever_its_dtype(dtype):
    nothing, no_rows = np.zeros(0, dtype), np.zeros((0, 4), dtype)
    assert gf2.rank(no_rows) == 0
    assert gf2.solve(no_rows, nothing).nullity == 4
    assert local.randomized_response(nothing, epsilon=1).shape == (0,)
    assert len(stability.AboveThreshold(9, 0, epsilon=1).answer(nothing)) == 0
    with pytest.raises(HdpFastError, match="answers"):
        local.estimate_mean(nothing, beta=0.1, epsilon=1)
    with pytest.raises(HdpFastError, match=r"\by\b"):
        Agents(EYE, nothing, epsilon=1)


# Run apart, where neither a hang nor an abort would take the tests along.
FATAL = {
    "no batches": """
plan = parity.plan(4, alpha=.4, beta=.3, epsilon=.5, method="paper")
X = np.zeros((200_000, 4), int)
parity.learn(X, X[:, 0], epsilon=.5, plan=dataclasses.replace(plan, k=0))
""",
    "negative n": """
plan = parity.plan(4, alpha=.4, beta=.3, epsilon=.5)
parity.learn(np.eye(4, dtype=int), [1] * 4, epsilon=.5, plan=dataclasses.replace(plan, n=-1))
""",
    "huge d": "parity.plan_transfer(2**45, alpha=.1, beta=.1, epsilon=1, agents_epsilon=1, chi2=1)",
    "huge size": "noise.bernoulli(.5, 2**56)",
    "huge size of integers": "noise.discrete_laplace(2, 2**56)",
}


@pytest.mark.thorough(cases=["negative n", "no batches"])
@pytest.mark.parametrize("program", FATAL.values(), ids=FATAL)
def test_nothing_hangs_or_aborts(program):
    header = "import dataclasses, numpy as np\nfrom hdp_fast import gf2, noise, parity\n"
    command = [sys.executable, "-c", header + program]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert run.returncode == 1
    assert re.search(r"^(hdp_fast\.exceptions\.\w+: |MemoryError)", run.stderr, re.MULTILINE)
