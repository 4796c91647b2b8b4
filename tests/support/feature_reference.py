"""Sufficient statistics by the definition, in numpy and Python integers."""

import numpy as np


def integer_features(features, X, bits):
    """The features in units of 2**-bits, cut towards zero; a row that is too long is 0."""
    rows = np.trunc(features(X) * 2.0**bits).astype(np.int64)
    rows[(rows**2).sum(axis=1) > 4**bits] = 0
    return rows


def label_sums(features, X, codes, classes, bits):
    """The sum of q (K e_y - 1)^T, shape (columns, classes)."""
    rows = integer_features(features, X, bits)
    return rows.T @ (classes * np.eye(classes, dtype=np.int64)[codes] - 1)


def target_sums(features, X, targets, bits):
    """The sum of q t, shape (columns,)."""
    integers = np.trunc(np.clip(targets, -1, 1) * 2.0**bits).astype(np.int64)
    return integer_features(features, X, bits).T @ integers


def second_sums(features, X, bits):
    """The sum of q q^T."""
    rows = integer_features(features, X, bits)
    return rows.T @ rows
