"""What the descent computes, in numpy: scores, residuals, their sums, and margins."""

import numpy as np

UNIT = 2.0**-14


def scores_of(entries, weights):
    """In single precision and the core's order: eight sums side by side, folded, and the rest."""
    rows, model = entries.astype(np.float32), weights.astype(np.float32)
    scores = np.zeros((len(rows), weights.shape[1]))
    end = rows.shape[1] // 8 * 8
    for place, w in enumerate(model.T):
        lanes = np.zeros((len(rows), 8), np.float32)
        for start in range(0, end, 8):
            lanes += rows[:, start : start + 8] * w[start : start + 8]
        a, b, c, d, e, f, g, h = lanes.T
        rest = np.zeros(len(rows), np.float32)
        for column in range(end, rows.shape[1]):
            rest += rows[:, column] * w[column]
        scores[:, place] = ((a + e) + (c + g)) + ((b + f) + (d + h)) + rest
    return scores * UNIT


def subtract_labels(scores, codes):
    """Probabilities of classes less what is: the gradient of the loss by the scores."""
    if scores.shape[1] == 1:
        power = np.exp(-np.abs(scores))
        return np.where(scores < 0, power, 1.0) / (1 + power) - codes[:, None]
    power = np.exp(scores - scores.max(axis=1, keepdims=True))
    rest = power / power.sum(axis=1, keepdims=True)
    rest[np.arange(len(codes)), codes] -= 1
    return rest


def residuals_of(records, weights):
    """The integer residuals of each record, shape (n, columns)."""
    scores = scores_of(records.entries, weights)
    if records.classes == 1:
        rest = np.clip(scores - records.codes[:, None] * UNIT, -256, 256)
    else:
        rest = subtract_labels(scores, records.codes)
    rest *= 2.0**records.grid.bits
    squares = (records.entries.astype(np.int64) ** 2).sum(axis=1)
    limits = records.grid.length / np.sqrt(np.maximum(squares, 1)) * (1 - 2.0**-30)
    if rest.shape[1] == 1:
        return np.trunc(np.clip(rest, -limits[:, None], limits[:, None])).astype(np.int64)
    lengths = np.sqrt((rest**2).sum(axis=1))
    shares = np.minimum(1, limits / np.maximum(lengths, 1e-300))
    return np.trunc(rest * shares[:, None]).astype(np.int64)


def sum_of(records, weights):
    """The sum of all gradients, in integers of Python."""
    return records.entries.T.astype(object) @ residuals_of(records, weights).astype(object)


def margins_of(scores, codes):
    """How much the true class's score is above that of each other, shape (m, K - 1)."""
    m, columns = scores.shape
    if columns == 1:
        return np.where(codes == 1, scores[:, 0], -scores[:, 0])[:, None]
    others = np.ones(scores.shape, bool)
    others[np.arange(m), codes] = False
    return scores[np.arange(m), codes][:, None] - scores[others].reshape(m, -1)


def groups_of(offsets, codes):
    """The group, 0 or 1, of each of the margins that margins_of has, shape (m, K - 1)."""
    others = np.array([np.delete(row, code) for code, row in enumerate(offsets.second)])
    return others.astype(np.int64)[codes].reshape(len(codes), len(offsets.second) - 1)


def count_margins(parts, edges):
    """Counts of margins in the bins of two groups, shape (2, bins); outer bins have no end.

    parts: margins, and their groups.
    """
    bins = len(edges) - 1
    counts = np.zeros(2 * bins, np.int64)
    for margins, groups in parts:
        places = np.searchsorted(edges[1:-1], margins.ravel(), side="right")
        counts += np.bincount(places + bins * groups.ravel(), minlength=2 * bins)
    return counts.reshape(2, bins)
