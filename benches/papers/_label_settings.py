"""What each mechanism of stability_labels.py may choose from: its grid, in public."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from _pate import (
    Ballot,
    ConfidentMax,
    DependentMax,
    LaplaceMax,
    PaperStable,
    gaussian_budget,
    laplace_scale,
)

from hdp_fast import stability

DELTA, BETA = 1e-6, 0.5
HAZARD, VOTE = "ours, hazard table", "ours, vote table"
GAUSSIAN = "ours, Gaussian vote"
OURS = (HAZARD, VOTE, GAUSSIAN)
DEPENDENT = "PATE, data-dependent (not private)"

# What is tried. Numbers of queries grow by half, or by 1.8 where there is more to try.
QUERIES = tuple(round(10 ** (step / 6)) for step in range(25))
FEWER = tuple(round(10 ** (step / 4)) for step in range(2, 17))
TIMES = (1, 1.25, 1.5, 2, 3)
BOTTOMS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)
CHECK_SHARES, ANSWERED_SHARES = (0.05, 0.15, 0.4), (0.1, 0.2, 0.35, 0.55, 0.8)
THRESHOLDS = {2: (0.55, 0.65, 0.75, 0.85, 0.95), 10: (0.25, 0.4, 0.55, 0.7, 0.85)}
GAPS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
CHECKS, NOISES = (0.04, 0.08, 0.16, 0.32, 0.64), (0.02, 0.04, 0.08, 0.16, 0.32)
DESCENTS = ((100, 500, 5.0), (500, 500, 10.0), (1_000, 1_000, 20.0))


@dataclass(frozen=True, eq=False)
class Ours:
    """A session of a table, through the public interface."""

    table: stability.HazardTable | stability.VoteTable | stability.GaussianVote

    def answers(self, ballot: Ballot, rng: Any) -> Any:
        session = self.table.session(random_state=rng)
        return session.answer(ballot.counts[: self.table.queries])


@dataclass(frozen=True, eq=False)
class OursRepeated:
    """A session of a VoteTable, asked several times for each bit of a label's number.

    times: how often in the mean; where it is no integer, a share of the points, the first ones, is
    asked once more than the others. An answer is a label on which all times agree; a point where
    two differ is not asked again. One changed vote changes the count of each bit by at most one,
    so that bits * times queries of the table are enough for a label.
    """

    table: stability.VoteTable
    queries: int
    bits: int
    times: float

    def answers(self, ballot: Ballot, rng: Any) -> Any:
        counts = ballot.counts[: self.queries]
        labels, places = np.arange(counts.shape[1]), 1 << np.arange(self.bits)
        ones = (counts @ ((labels[:, None] & places) > 0)).astype(np.uint32)
        session = self.table.session(random_state=rng)

        def ask(chosen: Any) -> Any:
            bits = session.answer_ones(ones[chosen].reshape(-1), ballot.members)
            return bits.reshape(-1, self.bits).astype(np.int64) @ places

        answers = ask(np.arange(len(counts)))
        answers[answers >= len(labels)] = -1
        for earlier in range(1, math.ceil(self.times)):
            end = int(min(self.times - earlier, 1) * self.queries)
            chosen = np.flatnonzero(answers[:end] >= 0)
            answers[chosen[ask(chosen) != answers[chosen]]] = -1
        return answers


@dataclass(frozen=True)
class Paper:
    """The paper's Algorithm 4, given votes."""

    mechanism: PaperStable

    def answers(self, ballot: Ballot, rng: Any) -> Any:
        return self.mechanism.answers_of(*find_winners(ballot), rng)


@functools.lru_cache(maxsize=1)
def find_winners(ballot: Ballot) -> tuple[Any, Any]:
    return stability.plurality(ballot.counts), stability.distance(ballot.counts)


@functools.cache
def settings(epsilon: float, pool: int, classes: int, members: int) -> dict[str, list[Any]]:
    """What each mechanism may choose from, under its name in the table."""
    fine = sorted({m for m in QUERIES if m <= pool} | {pool})
    coarse = sorted({m for m in FEWER if m <= pool} | {pool})
    thresholds = [share * members for share in THRESHOLDS[classes]]
    promise = {"epsilon": epsilon, "delta": DELTA, "beta": BETA}
    choices: dict[str, list[Any]] = {
        HAZARD: [
            Ours(stability.HazardTable.design(T, m, **promise))
            for m in coarse
            for T in BOTTOMS
            if T <= m <= 100 * T
        ]
    }
    bits = (classes - 1).bit_length()
    choices[VOTE] = [
        OursRepeated(
            stability.VoteTable.design(bits * math.ceil(times * m), **promise), m, bits, times
        )
        for times in TIMES
        for m in fine
    ]
    choices[GAUSSIAN] = [
        Ours(stability.GaussianVote.design(m, labels=classes, threshold=least, **promise))
        for m in fine
        for least in GAPS
    ]
    choices["PATE, Laplace"] = [LaplaceMax(m, laplace_scale(m, epsilon, DELTA)) for m in fine]
    choices["PATE, Confident-GNMax"] = confident_settings(epsilon, fine, coarse, thresholds)
    choices[DEPENDENT] = [
        DependentMax(epsilon, DELTA, noise * members, *check)
        for noise in NOISES
        for check in [
            (None, math.inf),
            *((least, share * members) for least in thresholds for share in CHECKS),
        ]
    ]
    choices["paper's Algorithm 4"] = [
        Paper(PaperStable(T, m, epsilon, DELTA)) for m in coarse for T in BOTTOMS[:3]
    ]
    return choices


def confident_settings(
    epsilon: float, fine: list[int], coarse: list[int], thresholds: list[float]
) -> list[ConfidentMax]:
    """A share of the squared mu for the checks, the rest for as many answers as it is meant for."""
    mu = gaussian_budget(epsilon, DELTA)
    unchecked = [ConfidentMax(m, m, math.sqrt(2 * m) / mu) for m in fine]
    checked = [
        ConfidentMax(
            m,
            most,
            math.sqrt(2 * most / (1 - share)) / mu,
            least,
            math.sqrt(m / share) / mu,
        )
        for m in coarse
        for most in {max(1, round(share * m)) for share in ANSWERED_SHARES}
        for share in CHECK_SHARES
        for least in thresholds
    ]
    return unchecked + checked
