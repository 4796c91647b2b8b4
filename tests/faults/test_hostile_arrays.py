"""Arrays of all kinds at every public function: a result, or one error that names the argument."""

import warnings

import numpy as np
import pytest
from cases import each_case
from harness import figure, size, watched
from hostile_arrays import content, mutate, plain, told
from processes import forking
from targets import TARGETS

from hdp_fast.exceptions import HdpFastError, UtilityWarning

pytestmark = forking
CASES, PART = size(600, 100_000), size(600, 10_000)


@each_case("name", TARGETS)
def test_arguments_that_are_right_are_taken(name):
    target = TARGETS[name]
    arrays = [values.copy() for values in target.arrays.values()]
    target.check(target.call(*arrays), *arrays)


def attack(case):
    """What went wrong with one case, in a few words; nothing if nothing did."""
    rng = np.random.default_rng([8, case])
    name = list(TARGETS)[case % len(TARGETS)]
    target = TARGETS[name]
    arrays = {key: values.copy() for key, values in target.arrays.items()}
    for key in arrays:
        if rng.random() < 1 / len(arrays):
            arrays[key] = mutate(arrays[key], rng)
    if name == "project in place" and isinstance(arrays["w"], np.ndarray) and rng.random() < 0.3:
        arrays["out"] = arrays["w"]
    before = {key: content(made) for key, made in arrays.items() if key != "out"}
    harmless = [plain(made) if ordinary(made) else None for made in arrays.values()]

    fault, returned = outcome(target, list(arrays.values()))
    changed = arrays.get("out") is not arrays.get("w") and any(
        content(arrays[key]) != kept for key, kept in before.items()
    )
    if changed:
        fault = fault or "an input was changed"
    if not fault and "out" not in arrays and all(made is not None for made in harmless):
        fault = difference(returned, outcome(target, harmless)[1])
    kinds = ", ".join(f"{key}: {told(made)}" for key, made in arrays.items())
    return f"case {case}, {name} of {kinds}: {fault}" if fault else ""


def ordinary(made):
    """Whether a well-behaved copy of it must fare as it does."""
    return isinstance(made, np.ndarray) and not isinstance(made, np.ma.MaskedArray)


def outcome(target, arrays):
    """What went wrong, and what was returned, or the kind of the refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "random_state")
            # A few records are of little use, and are told so.
            warnings.filterwarnings("ignore", category=UtilityWarning)
            returned = target.call(*arrays)
    except (HdpFastError, TypeError) as error:
        named = any(name in str(error) for name in (*target.arrays, *target.names))
        fault = "" if named else f"names no argument: {type(error).__name__}: {error}"
        return fault, type(error)
    except BaseException as error:
        return f"{type(error).__name__}: {error}", type(error)
    try:
        target.check(returned, *arrays)
    except AssertionError:
        return f"wrong result {returned!r}"[:300], returned
    return "", returned


def difference(one, other):
    if isinstance(one, type) or isinstance(other, type):
        same = one is other
    elif np.asarray(one).dtype.kind == "f":
        # A byte-swapped float32 may be computed with as a float64.
        same = np.shape(one) == np.shape(other) and np.allclose(one, other, 1e-4, equal_nan=True)
    else:
        same = np.array_equal(one, other)
    return "" if same else f"a plain copy of it gives {other!r} and not {one!r}"[:300]


@pytest.mark.parametrize("part", range(CASES // PART))
def test_hostile_arrays(part):
    def child():
        for case in range(part * PART, (part + 1) * PART):
            print(f"begun {case}", flush=True)
            if fault := attack(case):
                print(fault, flush=True)

    run = watched(child, seconds=1200)
    lines = run.out.splitlines()
    begun = [line for line in lines if line.startswith("begun")]
    assert run.code == 0, f"ended by {run.code} in the case after {begun[-1]}: {run.err}"
    faults = [line for line in lines if line.startswith("case")]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[: size(20, 200)])
    attacked = f"hostile arrays at {len(TARGETS)} functions, part {part + 1}"
    figure(attacked, len(begun), "a result or a named argument")
