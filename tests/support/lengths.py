"""How long tests are: short in `make test` and `make ci`, long where a verb of its own asks for it.

`make faults` sets HDP_FAST_FAULTS=long, `make papers` HDP_FAST_PAPERS=long, and `make stat`
HDP_FAST_STAT=long.
"""

import os

import pytest


def is_long(verb):
    return {"": False, "short": False, "long": True}[os.environ.get(f"HDP_FAST_{verb}", "")]


FAULTS, PAPERS, STAT = map(is_long, ("FAULTS", "PAPERS", "STAT"))

# What takes ten seconds or more and has a shorter sibling.
at_length = pytest.mark.skipif(not STAT, reason="make stat runs it")


def leaving(left, cases):
    """Cases by name as parameters; those whose names are in `left` run in the long form alone."""
    assert set(left) <= set(cases)
    return [
        pytest.param(case, id=name, marks=at_length if name in left else ())
        for name, case in cases.items()
    ]
