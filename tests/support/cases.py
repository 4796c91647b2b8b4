"""Many small cases of one test: `each_case` tries all of them, and tells all that fail."""

import functools
import inspect

import pytest

_PARAM = type(pytest.param())


def each_case(names, values, ids=None):
    """Makes a test try each value, as pytest.mark.parametrize does, but as one test.

    A test costs pytest milliseconds, to collect in every worker and to report: a thousand cases
    that take less than that are one test. The cases share their fixtures.

    names: The arguments of the test, as parametrize takes them; ids: what says which case it is.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else names
    cases = [_split(value, arguments) for value in values]
    if not cases:
        raise pytest.UsageError(f"no case of {names} is left")
    labels = [_label(ids, place, case) for place, case in enumerate(cases)]

    def decorate(test):
        @functools.wraps(test)
        def try_all(*args, **kwargs):
            failures = []
            for label, case in zip(labels, cases, strict=True):
                try:
                    test(*args, **kwargs, **case)
                except (Exception, pytest.fail.Exception) as failure:
                    failure.add_note(f"in the case {label}")
                    failures.append(failure)
            if failures:
                raise failures[0] if len(failures) == 1 else _join(failures, len(cases))

        signature = inspect.signature(test)
        kept = [part for name, part in signature.parameters.items() if name not in arguments]
        try_all.__signature__ = signature.replace(parameters=kept)
        del try_all.__wrapped__
        return try_all

    return decorate


def _split(value, arguments):
    """The arguments of one case by name."""
    if isinstance(value, _PARAM):
        value = value.values
    elif len(arguments) == 1:
        value = [value]
    return dict(zip(arguments, value, strict=True))


def _label(ids, place, case):
    if ids is None:
        return f"{place}"
    return "-".join(map(str, map(ids, case.values()))) if callable(ids) else str([*ids][place])


def _join(failures, count):
    texts = [f"{failure!r}, {'; '.join(failure.__notes__)}" for failure in failures]
    return AssertionError(f"{len(failures)} of {count} cases fail:\n" + "\n".join(texts))
