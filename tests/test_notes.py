"""Where warnings are errors: nothing is raised after a charge, and the notes are with the result.

It also looks at what the private module _support.notes keeps of a call under way.
"""

import gc
import inspect
import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest
from cases import each_case
from doors import DOORS, LABELS, NUMBERS, Door, fresh

import hdp_fast
from hdp_fast import Budget, learners, local, parity, sklearn, statistics, transfer
from hdp_fast._support import notes
from hdp_fast.exceptions import UtilityWarning, attach_notes, notes_of

HALFSPACES = [{"kind": "halfspace", "weights": [1.0, 0, 0, sign], "bias": 0.0} for sign in (-1, 1)]
PRICE = {"epsilon": 1.0, "delta": 1e-6}
BOUNDED = {"low": 0.0, "high": 1.0, "epsilon": 1.0}
MAP = learners.FeatureMap.identity(4, norm_bound=1.0, constant=True)


def people(rows, labels, epsilon=1.0):
    return local.Agents(np.tile(rows, (50, 1)), np.tile(labels, 50), epsilon=epsilon)


def statistic(name, **settings):
    call = getattr(statistics, name)
    return Door(
        lambda values: call(values, **BOUNDED, **settings), {"values": NUMBERS}, ("values",)
    )


def asked(call):
    return Door(lambda X, y: call(people(X, y)), {"X": NUMBERS, "y": LABELS}, ("X",))


def estimator(kind, **settings):
    return Door(
        fresh(lambda: kind(**PRICE, bounds=(0.0, 1.0), **settings), "fit"),
        {"X": np.tile(NUMBERS, (5, 1)), "y": np.tile(LABELS, 5)},
        ("X",),
    )


MORE = {
    **{name: statistic(name) for name in ("sum", "variance")},
    **{
        f"{name}, unknown n": statistic(name, neighbors="add_remove")
        for name in ("sum", "mean", "variance", "covariance")
    },
    "covariance": statistic("covariance"),
    "histogram": Door(
        lambda values: statistics.histogram(values, edges=[0, 0.5, 1], epsilon=1e-3),
        {"values": NUMBERS[:, 0]},
        ("values",),
    ),
    "SufficientStatistics.release": Door(
        learners.SufficientStatistics(MAP, classes=[0, 1]).release,
        {"X": NUMBERS, "y": LABELS, **PRICE},
        ("X",),
    ),
    "PrivateClassifier": estimator(sklearn.PrivateClassifier, classes=[0, 1]),
    "PrivateRegressor": estimator(sklearn.PrivateRegressor, target_bounds=(0.0, 1.0)),
    "certify": asked(lambda agents: transfer.certify(HALFSPACES[0], agents)),
    "certify, two": asked(
        lambda agents: transfer.certify(HALFSPACES[0], agents, other=HALFSPACES[1])
    ),
    "learn_by_votes": asked(
        lambda agents: local.learn_by_votes(learners.Halfspaces(np.eye(4), np.zeros(4)), agents)
    ),
    "calibrate": asked(lambda agents: transfer.calibrate(lambda X: X[:, 0], agents)),
}
CALLS = DOORS | MORE
EXTREMES = [5e-324, 1e-310, -1e308, 1e308]


def is_float(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


RUNS = [
    (name, entry)
    for name, door in CALLS.items()
    for entry in (None, *EXTREMES)
    if entry is None or any(is_float(door.arguments[place]) for place in door.private)
]


def arguments_of(door, entry):
    """The arguments of a call, the last entry of each private array of floats replaced."""
    arguments = dict(door.arguments)
    for place in door.private:
        if entry is not None and is_float(arguments[place]):
            arguments[place] = arguments[place].copy()
            with np.errstate(all="ignore"):
                arguments[place].flat[-1] = entry
    return arguments


def outcome(call):
    """The class of what a call raises, or None."""
    try:
        call()
    except Exception as error:
        return type(error)
    return None


@each_case(("name", "entry"), RUNS)
def test_no_setting_makes_a_call_fail_after_its_charge(name, entry, monkeypatch):
    """Warnings are errors and so is all rounding: what is refused then has charged nothing."""
    door, charges = CALLS[name], []
    for module in (hdp_fast.budget.account, hdp_fast.local.pool, hdp_fast.local.remote_agents):
        kept = module.note_charge
        monkeypatch.setattr(module, "note_charge", lambda kept=kept: charges.append(1) or kept())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usual = outcome(lambda: door.call(**arguments_of(door, entry)))
        charges.clear()
        warnings.simplefilter("error")
        with np.errstate(all="raise"):
            strict = outcome(lambda: door.call(**arguments_of(door, entry)))
    assert strict is usual or (strict is UtilityWarning and not charges)


def public_calls():
    """The public functions and methods of all modules, by name."""
    for module in hdp_fast.__all__:
        face = getattr(hdp_fast, module)
        for name in getattr(face, "__all__", ()) if inspect.ismodule(face) else ():
            thing = getattr(face, name)
            parts = {"": thing} if inspect.isfunction(thing) else {}
            if inspect.isclass(thing):
                parts = dict(inspect.getmembers(thing, inspect.isfunction))
            for part, call in parts.items():
                if not part.startswith("_"):
                    yield f"{module}.{name}.{part}".rstrip("."), call


def test_every_call_that_takes_a_budget_keeps_its_result():
    """All but the context manager that charges, whose block is the caller's."""
    charging = {name: call for name, call in public_calls() if "budget" in parameters_of(call)}
    assert len(charging) > 25
    loose = [name for name, call in charging.items() if not hasattr(call, "__wrapped__")]
    assert loose == ["budget.spend"]


def parameters_of(call):
    return inspect.signature(call).parameters


HOPELESS = {"epsilon": 1e-4, "neighbors": "add_remove"}


def strictly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def test_a_result_that_is_paid_for_is_returned_with_its_notes(caplog):
    budget = Budget(1.0, neighbors="add_remove")
    with caplog.at_level(logging.WARNING, "hdp_fast"):
        result = strictly(
            lambda: statistics.histogram(["a"], categories=["a", "b"], **HOPELESS, budget=budget)
        )
    (text,) = notes_of(result)
    assert text == "no released count of histogram is larger than its noise: a larger epsilon helps"
    assert caplog.messages == [text]
    assert budget.spent.epsilon == 1e-4


def test_notes_before_a_charge_are_errors_where_warnings_are_and_cost_nothing():
    budget = Budget(1.0)
    with pytest.raises(UtilityWarning):
        strictly(lambda: statistics.mean([0.5] * 50, low=0, high=1, epsilon=1e-3, budget=budget))
    assert budget.spent.epsilon == 0


def test_notes_are_shown_as_warnings_and_kept_at_the_line_of_the_caller():
    with pytest.warns(UtilityWarning) as caught:
        result = parity.learn([[0, 1], [1, 1]], [1, 0], epsilon=0.1)
    assert notes_of(result) == tuple(str(warning.message) for warning in caught)
    assert {warning.filename for warning in caught} == {__file__}


def test_an_estimator_has_the_notes_of_its_last_fit():
    description = learners.SufficientStatistics(MAP, classes=[0, 1])
    X, y = np.tile(NUMBERS, (500, 1)), np.tile(LABELS, 500)
    with pytest.warns(UtilityWarning):
        few = description.release(X[:40], y[:40], epsilon=0.01, delta=1e-3)
    assert notes_of(few)
    model = sklearn.PrivateClassifier(epsilon=0.01, delta=1e-3, bounds=(-0.25, 0), classes=[0, 1])
    with pytest.warns(UtilityWarning):
        model.fit(X[:40], y[:40])
    assert notes_of(model)
    model.set_params(epsilon=5.0, delta=1e-6).fit(X, y)
    assert notes_of(model) == ()


def test_notes_end_with_their_object_and_pass_to_no_other():
    class Result:
        pass

    results = [Result() for _ in range(100)]
    for result in results:
        attach_notes({"a": result}, ["text"])
    assert notes_of({"b": results[0], "c": results[1]}) == ("text",)
    results.clear()
    gc.collect()
    assert not any(notes_of(Result()) for _ in range(1000))
    attach_notes(1, ["a number is no one's own"])
    assert notes_of(1) == ()


def test_a_seed_warns_before_its_call_or_not_as_an_error():
    """In a process of its own, where no one has been warned of seeds yet."""
    program = """
import warnings
from hdp_fast import Budget, statistics
warnings.simplefilter("error")
budget = Budget(1.0)
try:
    statistics.count([1] * 900, epsilon=0.5, budget=budget, random_state=1)
except UserWarning:
    assert budget.spent.epsilon == 0
else:
    assert budget.spent.epsilon == 0.5
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_call_inside_a_call_is_one_of_both():
    """What was paid for inside is not lost because of a note of the one outside."""

    class Made:
        """A result."""

    @notes.keep_result
    def inner():
        notes.note_charge()

    @notes.keep_result
    def outer():
        inner()
        notes.note("after")
        return made

    made = Made()
    assert strictly(outer) is made
    assert notes_of(made) == ("after",)


def noting(X, *y):
    """Code of a caller that makes this package note something of private records."""
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        statistics.mean(np.resize(X, 50), low=0, high=1, epsilon=1e-3)
    return y[0] if y else np.zeros(len(X), int)


@pytest.mark.parametrize(
    "call",
    [
        lambda: people(NUMBERS, LABELS).ask(noting, 9),
        lambda: transfer.certify(noting, people(NUMBERS, LABELS, 4.0), loss=lambda p, y: p != y),
        lambda: fit_labeler(),
    ],
    ids=["question", "loss", "member"],
)
def test_what_code_on_private_records_makes_the_package_note_is_in_no_result(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not any("noise of mean" in text for text in notes_of(call()))


def fit_labeler():
    goal = {"epsilon": 1, "delta": 1e-3, "queries": 3, "max_unstable": 1, "members": 5}
    labeler = hdp_fast.labels.PrivateLabeler(lambda X, y: noting(X, noting), classes=[0, 1], **goal)
    return labeler.fit(NUMBERS, LABELS, preflight=False)
