"""Released means and questions about columns, with coins of the operating system."""

import itertools
import math
from collections import Counter
from statistics import NormalDist
from unittest.mock import patch

import numpy as np
import pytest
from audits import Audit
from frequencies import Case, misfits

from hdp_fast import accounting, local, transfer
from hdp_fast.transfer import column_means

pytestmark = pytest.mark.usefixtures("one_thread")

COLUMNS, RECORDS, EPSILON, DELTA = 8, 1_000, 1.0, 0.1
HALVES = np.full((RECORDS, COLUMNS), 0.5)


def rows(first):
    """Records all of one half but the first, the worst one of which has the same end throughout."""
    records = HALVES.copy()
    records[0] = first
    return records


def release(records):
    means = transfer.release_means(records, epsilon=EPSILON, delta=DELTA)
    return float(means.means.sum())


def release_for_one_column(records):
    """With noise that hides a change of one column, not of all eight."""
    calibrate = column_means.calibrate_means
    with patch.object(
        column_means, "calibrate_means", lambda price, **options: calibrate(1, **options)
    ):
        return release(records)


def is_large(total):
    """An event that is frequent enough to be counted, one deviation of the noise above."""
    deviation = COLUMNS / RECORDS / accounting.gaussian_mu(EPSILON, DELTA)
    return total > rows(0.0).mean(axis=0).sum() + deviation


@pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")
def test_released_means_keep_their_promise_on_the_worst_neighbors(audit_table):
    Audit(
        "transfer.release_means", EPSILON, release, rows(1.0), rows(0.0),
        release_for_one_column, "noise for one column", tight=0.65, delta=DELTA, runs=20_000,
        event=is_large, fewer=4,
    ).check(audit_table)  # fmt: skip


def test_the_noise_on_means_follows_its_law():
    runs, sigma = 4_000, column_means.calibrate_means(2, n=4, epsilon=8.0, delta=1e-3)
    bits, deviation = sigma[0], float(sigma[1])
    draws = []
    for _ in range(runs // 2):
        means = transfer.release_means([[0.5, 0.5]] * 4, epsilon=8.0, delta=1e-3).means
        draws += np.rint((means - 0.5) * 4 * 2.0**bits).tolist()
    law, counts = {}, Counter()
    edges = [-math.inf, *(deviation * k / 3 for k in range(-6, 7)), math.inf]
    for place, (low, high) in enumerate(itertools.pairwise(edges)):
        ends = (NormalDist(0, deviation).cdf(end) for end in (low, high))
        first, last = ends
        law[place] = last - first
        counts[place] = sum(low < draw <= high for draw in draws)
    assert misfits([Case(counts, law)]) == []
    wrong = {place: law[len(law) - 1 - place] * (1.3 if place < 6 else 0.7) for place in law}
    total = sum(wrong.values())
    assert misfits([Case(counts, {place: part / total for place, part in wrong.items()})])


def test_answers_about_columns_follow_their_law():
    """Of three people two are asked about the first column, one about the second."""
    X, runs, epsilon = np.array([[0.25, 0.0], [1.0, 0.0], [0.0, 0.5]]), 2_000, 1.0
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    ones = [truth * x + (1 - truth) * (1 - x) for x in (0.25, 1.0, 0.5)]
    law = Counter()
    for bits in itertools.product((0, 1), repeat=3):
        weights = (p if bit else 1 - p for p, bit in zip(ones, bits, strict=True))
        law[bits[0] + bits[1], bits[2]] += math.prod(weights)
    counts = Counter()
    for _ in range(runs):
        agents = local.Agents(X, np.zeros(3, int), epsilon=epsilon)
        queries = [(local.Query.value(0, 0, 1), 2), (local.Query.value(1, 0, 1), 1)]
        counts[tuple(int(agents.ask(query, some).sum()) for query, some in queries)] += 1
    assert misfits([Case(counts, dict(law))]) == []
