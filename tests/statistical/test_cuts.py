"""Cuts of a recursion against the exponential mechanism's law, with coins of the system."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from frequencies import Case, misfits, power

from hdp_fast.data.states import Tally
from hdp_fast.statistics.cuts import Recursion

POINTS, KEYS, LEVEL, DRAWS = 6, 1 << 12, Fraction(1, 3), 1_200
# Heavy points, which are drawn in pieces, a point alone, and none.
RECORDS = {"heavy": {0: 9, 3: 40, 4: 1, 6: 20}, "one": {5: 1}, "none": {}}


def law_of(records, rate):
    """The chance of each point, by sums over keys among which records are spread evenly.

    Fewer keys than the mechanism has change chances by less than 1e-3 of themselves.
    """
    counts = np.array([records.get(point, 0) for point in range(POINTS + 1)])
    below = np.cumsum(counts) - counts
    inside = (np.arange(KEYS) + 0.5) / KEYS
    mass = below[:, None] + counts[:, None] * inside
    weights = np.exp(-rate * np.abs(mass - float(LEVEL) * counts.sum())).mean(axis=1)
    return dict(enumerate((weights / weights.sum()).tolist()))


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("epsilon", [0.3, 3])
def test_a_cut_follows_its_law(name, epsilon):
    plan = Recursion.plan([LEVEL], Fraction(epsilon), one_way=True, fixed=False, n=None)
    rate, records = float(plan.root.rate), RECORDS[name]
    places = np.array(sorted(records), np.int64)
    tally = Tally(places, np.array([records[place] for place in places], np.int64))
    drawn = Counter(int(plan.draw(tally, POINTS, None)[0]) for _ in range(DRAWS))
    law = law_of(records, rate)
    assert misfits([Case(drawn, law)]) == []
    if name == "heavy" and epsilon < 1:
        assert power([(law_of(records, 2 * rate), law)], DRAWS) > 0.99
