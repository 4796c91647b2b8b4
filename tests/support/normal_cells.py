"""Cells of a normal law in units of its deviation, to count noise in."""

import itertools

import numpy as np
from frequencies import Case
from scipy.stats import norm

CELLS = np.linspace(-3, 3, 25)


def normal_law(deviation, claimed):
    """Probabilities of the cells of noise with this deviation, in units of the claimed one."""
    ends = [0.0, *norm.cdf(CELLS * claimed / deviation), 1.0]
    return {cell: high - low for cell, (low, high) in enumerate(itertools.pairwise(ends))}


def normal_case(noise, deviation):
    """Counts of noise in the cells, beside the law of this deviation."""
    counts = np.bincount(np.searchsorted(CELLS, noise / deviation), minlength=len(CELLS) + 1)
    return Case(dict(enumerate(counts.tolist())), normal_law(deviation, deviation))
