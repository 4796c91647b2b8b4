"""Whole private runs, compiled and with fresh random bits, against their law by enumeration."""

from collections import Counter
from dataclasses import replace

import lengths
import pytest
from frequencies import Case, misfits, power
from whole_runs import Tiny, fitted, law, projected, unprojected

RUNS = 2500
DATA = (
    ((0, 0), (0, 1), (0, 1)),
    ((0, 0), (1, 0), (1, 1)),
    ((1, 1), (1, 1), (1, 0)),
)
SETTINGS = {
    "dense, two draws": Tiny(3, 2 / 3, 1.0, 4.0, draws=2),
    "four hypotheses": Tiny(3, 0.4, 1.0, 3.0, hypotheses=(0, 1, 2, 3)),
}
pytestmark = pytest.mark.usefixtures("one_thread", "verified_once")


@pytest.mark.parametrize("tiny", lengths.leaving({"dense, two draws"}, SETTINGS))
def test_what_runs_release_follows_the_enumerated_law(tiny):
    release = fitted(tiny)
    cases = [
        Case(Counter(release(records) for _ in range(RUNS)), law(tiny, records, projected))
        for records in DATA
    ]
    assert not misfits(cases)


BROKEN = {
    "no projection": lambda tiny: (tiny, unprojected),
    "no update": lambda tiny: (replace(tiny, kappa=1.0), projected),
    "a learner of half the epsilon": lambda tiny: (halved(tiny, "epsilon"), projected),
    "a draw more": lambda tiny: (replace(tiny, draws=tiny.draws + 1), projected),
    "half the step": lambda tiny: (halved(tiny, "eta"), projected),
}


def halved(tiny, name):
    return replace(tiny, **{name: getattr(tiny, name) / 2})


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_so_many_runs_would_show_what_is_broken(broken):
    found = []
    for tiny in SETTINGS.values():
        twin, drawn = broken(tiny)
        pairs = [(law(twin, records, drawn), law(tiny, records)) for records in DATA]
        found.append(power(pairs, RUNS))
    assert max(found) > 0.99
