"""Rules of fields, as their classes declare them: each is tried with what breaks it."""

import dataclasses
import functools
import importlib
import pkgutil
from typing import ClassVar

import numpy as np
import pytest
from checked_classes import EXAMPLES, FITS

import hdp_fast
from hdp_fast._support import validate
from hdp_fast._support.parameters import Checked, SettableParameters, check_fields, optional
from hdp_fast.adaptation.baselines import nonprivate
from hdp_fast.exceptions import ParameterError
from hdp_fast.stability import gaussian

NO_NUMBERS = ["1", 1j, [1.0], True]
NO_INTEGERS = [1.5, "1", True, -1, 1 << 63]
# What a rule refuses, whatever else it is told.
BREAKS = {
    validate.positive: [*NO_NUMBERS, 0, -1.0, np.inf, np.nan],
    validate.positive_or_infinite: [*NO_NUMBERS, 0, -1.0, -np.inf, np.nan],
    validate.finite_nonnegative: [*NO_NUMBERS, -1.0, np.inf, np.nan],
    validate.bounded_positive: [*NO_NUMBERS, 0, -1.0, 1e31, np.inf, np.nan],
    validate.nonnegative: [*NO_NUMBERS, -1.0, 1e-31, 1e31, np.nan],
    validate.finite_number: [*NO_NUMBERS, np.inf, np.nan],
    validate.number: ["1", 1j, [1.0], True],
    validate.probability: [*NO_NUMBERS, 1, -0.1, 1.5, np.nan],
    validate.probability_or_one: [*NO_NUMBERS, 0, -0.1, 1.5, np.nan],
    validate.unit_interval: [*NO_NUMBERS, -0.1, 1.5, np.nan],
    validate.nonnegative_int: NO_INTEGERS,
    validate.positive_int: [*NO_INTEGERS, 0],
    validate.bounded: [*NO_NUMBERS, -np.inf, np.inf, np.nan],
    validate.flag: [0, 1, "yes", None],
    validate.curator_relation: ["replace", "local", 1, None],
    validate.one_of: ["no such word", 1, None],
    validate.positive_or_infinite: [*NO_NUMBERS, 0, -1.0, -np.inf, np.nan],
    validate.instance: ["text", 1.5],
    validate.function: ["text", 1.5],
    gaussian._two_or_more: [*NO_INTEGERS, 0, 1],
    nonprivate._at_least_one: [*NO_NUMBERS, 0.5, np.inf, np.nan],
}


# Classes that others are made from.
BASES = {"FrequencyRandomizer", "MeanRandomizer"}


def known_rule(rule):
    """The function of `validate` that a rule is made of."""
    while not isinstance(rule, functools.partial) and hasattr(rule, "__wrapped__"):
        rule = rule.__wrapped__
    return rule.func if isinstance(rule, functools.partial) else rule


def checked_classes():
    """All classes with rules that users make instances of."""
    for module in pkgutil.walk_packages(hdp_fast.__path__, "hdp_fast."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    todo, classes = [Checked, SettableParameters], []
    while todo:
        todo += (below := todo.pop().__subclasses__())
        classes += [kind for kind in below if kind.__module__.startswith("hdp_fast.")]
    made = [kind for kind in dict.fromkeys(classes) if kind.__name__ not in BASES]
    return [kind for kind in made if kind.RULES and not kind.__name__.startswith("_")]


CLASSES = checked_classes()
FROZEN = [kind for kind in CLASSES if issubclass(kind, Checked)]
# Those that can be set to anything, and check what they find in their fit.
SETTABLE = [kind for kind in CLASSES if issubclass(kind, SettableParameters)]


def refused_values(kind):
    """Fields of a class, with a value that the rule of each refuses."""
    for name, rule in kind.RULES.items():
        values = BREAKS.get(known_rule(rule), [object()])
        is_optional = getattr(rule, "__wrapped__", None) is not None
        yield from ((name, value) for value in values if not (is_optional and value is None))


@pytest.mark.parametrize("kind", FROZEN, ids=lambda kind: kind.__name__)
def test_fields_refuse_what_breaks_their_rules(kind):
    example = EXAMPLES[kind.__name__]()
    assert type(example) is kind
    tried = list(refused_values(kind))
    assert {name for name, _ in tried} == set(kind.RULES)
    assert set(kind.RULES) <= {field.name for field in dataclasses.fields(kind) if field.init}
    for name, value in tried:
        with pytest.raises(ParameterError, match=rf"^{name}\b"):
            # One that is refused for another reason would name another field.
            dataclasses.replace(example, **{name: value})


@pytest.mark.parametrize("kind", SETTABLE, ids=lambda kind: kind.__name__)
def test_a_fit_refuses_what_breaks_the_rules_of_its_fields(kind):
    make, fit = FITS[kind.__name__]
    assert type(make()) is kind
    tried = list(refused_values(kind))
    assert {name for name, _ in tried} == set(kind.RULES) <= make().get_params(deep=False).keys()
    for name, value in tried:
        estimator = make().set_params(**{name: value})
        with pytest.raises(ParameterError, match=rf"^{name}\b"):
            fit(estimator)
        # What was set stays as it was set.
        assert getattr(estimator, name) is value
    fit(make())


def test_checked_fields_are_returned_and_not_kept():
    make, _ = FITS["ConvexAdaptation"]
    estimator = make().set_params(steps=np.int64(2), radius=1)
    fields = check_fields(estimator)
    assert fields.keys() == estimator.RULES.keys()
    assert [type(fields[name]) for name in ("steps", "radius")] == [int, float]
    assert [type(estimator.steps), type(estimator.radius)] == [np.int64, int]


def test_rules_are_read_by_the_bases_alone():
    assert {*FROZEN, *SETTABLE} == set(CLASSES)
    positive = optional(validate.positive)
    assert positive("x", None) is None
    assert positive("x", 2) == 2.0
    with pytest.raises(ParameterError, match="x = 0"):
        positive("x", 0)


def test_a_class_without_its_rule_would_be_seen():
    @dataclasses.dataclass(frozen=True)
    class Careless(Checked):
        rate: float

    @dataclasses.dataclass(frozen=True)
    class Careful(Careless):
        RULES: ClassVar = {"rate": validate.positive}

    assert Careless(-1.0).rate == -1.0
    assert all(name == "rate" for name, _ in refused_values(Careful))
    for _, value in refused_values(Careful):
        with pytest.raises(ParameterError, match=r"^rate"):
            Careful(value)
