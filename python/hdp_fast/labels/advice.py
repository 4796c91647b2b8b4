"""Which number of members is best for so many records, tried on rows that are not private."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.random_state import rehearse
from .._support.turns import Turn
from .._support.validate import positive_int
from ..data import records
from ..exceptions import InsufficientSamples
from ..stability.distances import count_votes
from ..stability.plans import VotePlan
from ..stability.tables import HazardTable
from .label_set import check_classes, check_labels
from .labeler import PrivateLabeler
from .members import Chunk, check_learner, run_tasks, train, vote

_MOST = 1 << 40
# Members that are trained for each candidate: they stand for all of them.
_TRAINED = 48
_CANDIDATES = 8
_FEWEST_ROWS = 8
_MOST_POINTS = 400
# Sessions of the table that are averaged.
_SESSIONS = 5


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A number of members, as it did on public rows.

    Attributes:
        members: how many.
        accuracy: share of right answers among all queries; a bottom, or none, is no right one.
        flip_probability: with which a unanimous vote of them is not answered with its label.
    """

    members: int
    accuracy: float
    flip_probability: float


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Numbers of members and what they are worth.

    Attributes:
        best: members of the candidate with the highest accuracy.
        constant: accuracy of one label everywhere, the most frequent one.
        labels: "public", or "synthetic" where a public rule has made them.
        candidates: from few members to many.
    """

    best: int
    constant: float
    labels: str
    candidates: tuple[Candidate, ...]


def suggest(
    learner: Any,
    public_X: Any,
    public_y: ArrayLike | None = None,
    *,
    n: int,
    epsilon: float,
    delta: float,
    queries: int,
    classes: ArrayLike,
    max_unstable: int | None = None,
    random_state: int = 0,
    **options: Any,
) -> Suggestion:
    """Try numbers of members for n private records, of which none is looked at.

    learner: as PrivateLabeler's. public_X: rows like the private ones, at least 8. public_y: their
    labels, of classes; None lets a public rule make them, equally many of each: by the sum of the
    ranks of a row's entries in their columns, which learners of most kinds find. n: how many
    private records there will be. epsilon, delta, queries, classes: as PrivateLabeler's.
    max_unstable: likewise; None for 5 % of queries, plus 1. options: table, beta, agreement and
    threshold of PrivateLabeler. random_state: an int; the same one gives the same answer.

    For each candidate 48 members are trained on n / k rows each, drawn from one half of the public
    ones, twice where they are too few. Their votes on the other half are drawn again for all k, and
    the real table answers. More members see fewer rows each, fewer are flipped more often. Public
    rows that are unlike the private ones mislead.

    Guarantee: none is needed: no private record is used, only how many there are.
    Raises: ShapeError, ParameterError; InsufficientSamples for fewer than 8 public rows, or fewer
        than two records.
    Cost: 48 members for each of at most 8 candidates.
    Source: none.
    """
    check_learner(learner)
    rows = positive_int("n", n, _MOST)
    if max_unstable is None:
        max_unstable = positive_int("queries", queries, _MOST) // 20 + 1
    goal: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "queries": queries,
        "classes": classes,
    }
    labeler = PrivateLabeler(learner, max_unstable=max_unstable, **goal, **options)
    plan, names = labeler.plan(), check_classes(classes)
    X = records.check_features("public_X", public_X)
    size = records.count_rows(X)
    if size < _FEWEST_ROWS or rows < 2:
        fault = f"public_X has {size:,} rows and n = {rows:,}"
        raise InsufficientSamples(f"{fault}, but 8 rows and 2 records are needed")
    if public_y is None:
        y = names[_rank_rows(X, len(names))]
    else:
        y = check_labels(public_y, size, names)
    trial = _Trial(learner, plan, names, X, y, random_state)
    candidates = tuple(trial.run(k, rows) for k in _candidates(plan, rows))
    return Suggestion(
        best=max(candidates, key=lambda one: one.accuracy).members,
        constant=trial.constant(),
        labels="synthetic" if public_y is None else "public",
        candidates=candidates,
    )


def _candidates(plan: VotePlan, n: int) -> list[int]:
    """Numbers of members from coin flips on, up to two records for each."""
    high = max(1, min(n // 2, 2 * plan.k))
    low = next((k for k in range(1, high) if plan.flip(k) <= 0.3), high)
    return sorted({round(k) for k in np.geomspace(low, high, _CANDIDATES)})


def _rank_rows(X: Any, classes: int) -> NDArray[np.int64]:
    """A class for each row, as many of each: by the sum of the ranks of its entries."""
    if hasattr(X, "tocsr"):
        X = X.toarray()
    size = records.count_rows(X)
    columns = (
        [np.asarray(X[name]) for name in X.columns]
        if hasattr(X, "columns")
        else np.asarray(X).reshape(size, -1).T
    )
    total = np.zeros(size)
    for column in columns:
        entries = column if column.dtype.kind in "biuf" else column.astype(str)
        total += np.unique(entries, return_inverse=True)[1] / max(1, size)
    order = np.argsort(np.argsort(total, kind="stable"), kind="stable")
    return order * classes // size


@dataclass(frozen=True, eq=False)
class _Trial:
    learner: Any
    plan: VotePlan
    classes: NDArray[Any]
    X: Any
    y: NDArray[Any]
    seed: int

    def constant(self) -> float:
        _, counts = np.unique(self.y[self._points()], return_counts=True)
        return float(counts.max() / counts.sum())

    def run(self, k: int, n: int) -> Candidate:
        """What k members of n / k rows each are worth."""
        rng = np.random.default_rng([self.seed, k])
        points = self._points()
        votes = self._votes(n / k, rng, points)
        # Each of k members says what one that was trained says, drawn anew for each point.
        drawn = rng.multinomial(k, votes / votes.sum(axis=1, keepdims=True)).astype(np.uint32)
        codes = np.searchsorted(self.classes, self.y[points])
        rights = [self._answer(drawn, codes, rng) for _ in range(_SESSIONS)]
        flip = self.plan.flip(k)
        return Candidate(members=k, accuracy=float(np.mean(rights)), flip_probability=flip)

    def _votes(self, size: float, rng: np.random.Generator, points: NDArray[Any]) -> NDArray[Any]:
        """Votes of members of about `size` rows, counted for each point and class."""
        half = np.setdiff1d(np.arange(len(self.y)), points)
        # As with real members, some have a row more than others.
        sizes = np.diff(np.floor(np.arange(_TRAINED + 1) * size).astype(int))
        rows = [rng.choice(half, some, replace=some > len(half)) for some in sizes]
        turns = [Turn(seed, os.getpid()) for seed in range(_TRAINED)]
        chunks = (
            (Chunk(records.take_rows(self.X, chosen), self.y[chosen]), self.learner, turn)
            for chosen, turn in zip(rows, turns, strict=True)
        )
        members = run_tasks(train, chunks, _nothing)
        Q = records.take_rows(self.X, points)
        tasks = (
            (member, Q, self.classes, turn) for member, turn in zip(members, turns, strict=True)
        )
        votes = [codes for codes, _ in run_tasks(vote, tasks, _nothing)]
        return count_votes(np.stack(votes), len(self.classes))

    def _answer(self, counts: NDArray[Any], codes: NDArray[Any], rng: np.random.Generator) -> float:
        """The share of right answers of a new session; with fewer points than queries, fewer."""
        table = self.plan.table
        used = table.queries - len(counts)
        options: dict[str, Any] = {"used_queries": used}
        if isinstance(table, HazardTable):
            # As many bottoms as the points' share of the queries.
            allowed = max(1, round(table.max_unstable * len(counts) / table.queries))
            options["used_bottoms"] = table.max_unstable - allowed
        with rehearse():
            answers = np.asarray(table.session(random_state=rng, **options).answer(counts))
        return float((answers == codes[: len(answers)]).sum() / len(codes))

    def _points(self) -> NDArray[Any]:
        """Every second public row, as many as are asked for, and not too many."""
        points = np.arange(1, len(self.y), 2)
        most = min(_MOST_POINTS, self.plan.table.queries, len(points))
        return points[np.arange(most) * len(points) // most]


def _nothing() -> None:
    """Stands for a bar that does not move."""
