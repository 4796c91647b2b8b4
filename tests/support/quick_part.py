"""Which tests `make test` runs: all but those marked `thorough`, of which each family keeps some.

    @pytest.mark.thorough(cases=2)              # two cases of a test, which lie far apart
    @pytest.mark.thorough(cases=["a", "b"])     # the cases with these names
    @pytest.mark.thorough(beside="test_other")  # none: test_other of this file shows it shorter

`pytest --quick` leaves the others out; `make thorough`, a part of `make ci`, runs all. So no kind
of evidence is missing from `make test`, and a mark that would take one away is an error.
"""

import pytest


def split(items):
    """The tests of the quick part, and the others.

    Raises:
        pytest.UsageError: a mark says neither what is kept nor what stands in its place, or it
            names what is not there.
    """
    cases, quick = {}, set()
    for item in items:
        if (mark := item.get_closest_marker("thorough")) is None:
            quick.add(item)
        else:
            cases.setdefault((item.path, getattr(item, "cls", None), _name(item)), (mark, []))[
                1
            ].append(item)
    for mark, family in cases.values():
        quick.update(_keep(mark, family))
    return [item for item in items if item in quick], [item for item in items if item not in quick]


def _name(item):
    return getattr(item, "originalname", item.name)


def _keep(mark, family):
    kept = dict(mark.kwargs)
    if mark.args or len(kept) != 1 or not kept.keys() <= {"cases", "beside"}:
        _refuse(family, "it must say cases= or beside=")
    if "beside" in kept:
        _check_beside(kept["beside"], family)
        return []
    if isinstance(kept["cases"], int):
        return _spread(family, kept["cases"])
    named = {item.callspec.id: item for item in family}
    if missing := [name for name in kept["cases"] if name not in named]:
        if len(named) < 2:  # One case alone was asked for on the command line.
            return family
        _refuse(family, f"no case is called {missing[0]!r}")
    return [named[name] for name in kept["cases"]]


def _check_beside(name, family):
    other = getattr(family[0].module, name, None)
    marks = [mark for mark in getattr(other, "pytestmark", ()) if mark.name == "thorough"]
    if other is None or name == _name(family[0]) or any("beside" in mark.kwargs for mark in marks):
        _refuse(family, f"{name} is no test of this file that stays")


def _spread(family, count):
    """The first case, the last one, and what lies evenly between them."""
    if count < 1:
        _refuse(family, "it must keep a case")
    if count >= len(family):
        return family
    last = len(family) - 1
    return [family[last * place // max(count - 1, 1)] for place in range(count)]


def _refuse(family, rule):
    raise pytest.UsageError(f"mark thorough of {family[0].nodeid.split('[')[0]}: {rule}")
