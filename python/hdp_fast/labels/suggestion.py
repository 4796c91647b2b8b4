"""The best number of members for a number of records, tried on rows that are not private."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.json_text import JsonText
from .._support.progress import bar
from .._support.random_state import rehearse
from .._support.turns import Turn
from .._support.validate import nonnegative_int, positive_int
from ..data import records
from ..exceptions import InsufficientSamples
from ..stability.plans import VotePlan
from ..stability.tables import HazardTable
from .labeler import PrivateLabeler
from .members import Chunk, check_learner, fold_tasks, run_tasks, train, vote
from .public_facts import check_classes, check_labels

_MOST = 1 << 40
# So many rows are dealt to the members that are trained for a candidate, which stand for all of
# its members; the number of the trained ones lies between the two that follow.
_ROWS_TRAINED = 2048
_FEWEST_TRAINED = 48
_MOST_TRAINED = 128
_CANDIDATES = 8
_FEWEST_ROWS = 8
_MOST_POINTS = 1000
_MOST_QUERIES = 10_000
# Number of sessions of the table over which the accuracy is averaged.
_SESSIONS = 20


@dataclass(frozen=True, kw_only=True)
class Candidate(JsonText):
    """A number of members, and how they did on public rows.

    Attributes:
        members: Number of members.
        accuracy: Share of right answers among all queries. A bottom, or no answer, is not right.
        flip_probability: Probability that a unanimous vote of the members is not answered with its
            label.

    Examples:
        >>> from hdp_fast import labels
        >>> few = labels.Candidate(members=50, accuracy=0.53, flip_probability=0.46)
        >>> many = labels.Candidate(members=200, accuracy=0.91, flip_probability=0.01)
        >>> max(few, many, key=lambda one: one.accuracy).members  # as suggest chooses its best
        200
    """

    members: int
    accuracy: float
    flip_probability: float


@dataclass(frozen=True, kw_only=True)
class Suggestion(JsonText):
    """Numbers of members and what they are worth.

    Attributes:
        best: Number of members of the candidate with the highest accuracy.
        constant: Accuracy of one label everywhere, the most frequent one. A labeler whose accuracy
            is no better is of no use.
        labels: "public", or "synthetic" where a public rule has made the labels.
        candidates: The Candidates, from few members to many.

    Examples:
        >>> from hdp_fast import labels
        >>> few = labels.Candidate(members=50, accuracy=0.53, flip_probability=0.46)
        >>> many = labels.Candidate(members=200, accuracy=0.91, flip_probability=0.01)
        >>> chosen = labels.Suggestion(
        ...     best=200, constant=0.6, labels="public", candidates=(few, many)
        ... )
        >>> [one.members for one in chosen.candidates if one.accuracy > chosen.constant]
        [200]
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
    progress: bool = False,
    **options: Any,
) -> Suggestion:
    """Tries numbers of members for n private records, none of which is read.

    For each candidate, 48 to 128 members are trained on n / k of the public rows each. No two
    members share a row until all rows have been dealt. A member gets at most half of the public
    rows, some of them twice where those are too few. The members vote on at most 1,000 rows that
    they have not seen. The variance that so few members add by chance is removed. Then the votes of
    all k members are drawn for as many queries as are planned, and the real table answers. More
    members see fewer rows each; fewer members are flipped more often.

    Measured on 1,000 and 2,000 public rows like the private ones, the accuracy was within .06 of
    the mean of real labelers for vote and gaussian tables. For hazard tables it was within .15; one
    real labeler differs from the next by .1 there, as it ends sooner or later. With 400 public rows
    it was within .1 for vote and gaussian tables. Public rows that are unlike the private ones
    mislead.

    Args:
        learner: What PrivateLabeler takes as its learner.
        public_X: Rows like the private ones, at least 8, as PrivateLabeler.fit takes them.
        public_y: Their labels, each one of classes. None lets a public rule make the labels, in
            equal numbers, from the sum of the ranks of a row's entries in their columns; learners
            of most kinds find this rule.
        n: Number of private records that there will be, at least 2.
        epsilon: Privacy parameter of all answers of the labeler together, 0.001 to 1,000.
        delta: Privacy parameter of all answers of the labeler together, in (0, 1).
        queries: Number of queries that may be asked of the labeler.
        classes: The public label set: 2 to 256 different integers, real numbers or texts.
        max_unstable: Number of the bottom that ends the answers; None takes 5 % of queries, plus 1.
        random_state: An int of at least 0; the same one gives the same answer.
        progress: Whether to show a bar (tqdm) over members.
        options: The parameters table, beta, agreement and threshold of PrivateLabeler.

    Returns:
        A Suggestion.

    Raises:
        ShapeError: `public_X` or `public_y` has another shape.
        ParameterError: An argument is not as described.
        InsufficientSamples: There are fewer than 8 public rows or 2 records.
        ImportError: A bar is wanted, but tqdm is not installed.

    Guarantee:
        No private record is used, but only their number. `random_state` draws nothing that
        protects.

    Cost:
        The training of 48 to 128 members for each of at most 8 candidates, most of them on the
        fewest rows, and their votes.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import labels
        >>> y = np.random.default_rng(0).integers(0, 2, 200)
        >>> learner = lambda X, y: lambda Q: Q[:, 0] > X.mean()  # or any classifier
        >>> task = {"epsilon": 2.0, "delta": 1e-6, "queries": 100, "classes": [0, 1]}
        >>> suggestion = labels.suggest(learner, y[:, None], y, n=1000, **task)
        >>> [candidate.members for candidate in suggestion.candidates]
        [22, 34, 54, 84, 131, 205, 320, 500]
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
    trial = _Trial(learner, plan, names, X, y, nonnegative_int("random_state", random_state))
    numbers = _candidates(plan, rows)
    with bar(sum(_trained(k, rows) for k in numbers), "member", progress) as shown:
        candidates = tuple(trial.run(k, rows, shown) for k in numbers)
    return Suggestion(
        best=max(candidates, key=lambda one: one.accuracy).members,
        constant=trial.constant(),
        labels="synthetic" if public_y is None else "public",
        candidates=candidates,
    )


def _candidates(plan: VotePlan, n: int) -> list[int]:
    """Numbers of members, from answers near coin flips to two records for each member."""
    high = max(1, min(n // 2, 2 * plan.k))
    low = next((k for k in range(1, high) if plan.flip(k) <= 0.3), high)
    return sorted({round(k) for k in np.geomspace(low, high, _CANDIDATES)})


def _rank_rows(X: Any, classes: int) -> NDArray[np.int64]:
    """Makes a class for each row, in equal numbers, from the sum of the ranks of its entries."""
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
        _, counts = np.unique(self.y, return_counts=True)
        return float(counts.max() / counts.sum())

    def run(self, k: int, n: int, bar: Any) -> Candidate:
        """Tries k members of n / k rows each."""
        rng = np.random.default_rng([self.seed, k])
        codes = np.searchsorted(self.classes, self.y[self._points()])
        shares = _shrink(self._count(k, n, rng, bar), codes)
        rights = [self._answer(shares, codes, k, rng) for _ in range(_SESSIONS)]
        flip = self.plan.flip(k)
        return Candidate(members=k, accuracy=float(np.mean(rights)), flip_probability=flip)

    def _count(self, k: int, n: int, rng: np.random.Generator, bar: Any) -> NDArray[Any]:
        """Counts votes for each public row and class, of members that have not seen the row."""
        # As with real members, some have one row more than others.
        sizes = np.diff(np.floor(np.arange(_trained(k, n) + 1) * (n / k)).astype(int))
        rows = list(_draw_rows(self.y, sizes, rng))
        turns = [Turn(seed, os.getpid()) for seed in range(len(rows))]
        chunks = (
            (Chunk(records.take_rows(self.X, some), self.y[some]), self.learner, turn)
            for some, turn in zip(rows, turns, strict=True)
        )
        members = run_tasks(train, chunks, bar.update)
        Q = records.take_rows(self.X, self._points())
        tasks = (
            (member, Q, self.classes, turn) for member, turn in zip(members, turns, strict=True)
        )
        counts, seen = np.zeros((len(self._points()), len(self.classes))), iter(rows)

        def add(result: tuple[NDArray[np.uint8], str]) -> None:
            unseen = ~np.isin(self._points(), next(seen))
            counts[unseen, result[0][unseen]] += 1

        fold_tasks(vote, tasks, add)
        return counts

    def _points(self) -> NDArray[np.intp]:
        """The public rows on which members vote."""
        size = len(self.y)
        most = min(size, _MOST_POINTS)
        return np.arange(most) * size // most

    def _answer(
        self, shares: NDArray[Any], codes: NDArray[Any], k: int, rng: np.random.Generator
    ) -> float:
        """The share of right answers of a new session to queries like the public rows."""
        table = self.plan.table
        queries = min(table.queries, _MOST_QUERIES)
        points = rng.integers(len(codes), size=queries)
        counts = rng.multinomial(k, shares[points]).astype(np.uint32)
        options: dict[str, Any] = {"used_queries": table.queries - queries}
        if isinstance(table, HazardTable) and queries < table.queries:
            # The same share of the bottoms as of the queries.
            allowed = max(1, round(table.max_unstable * queries / table.queries))
            options["used_bottoms"] = table.max_unstable - allowed
        with rehearse():
            answers = np.asarray(table.session(random_state=rng, **options).answer(counts))
        return float((answers == codes[points[: len(answers)]]).sum() / queries)


def _trained(k: int, n: int) -> int:
    """Number of members to train: more where they see few rows, and differ more."""
    return int(np.clip(_ROWS_TRAINED * k / n, _FEWEST_TRAINED, _MOST_TRAINED))


def _draw_rows(
    labels: NDArray[Any], sizes: NDArray[np.intp], rng: np.random.Generator
) -> Iterator[NDArray[np.intp]]:
    """Draws rows for members of these sizes, at most half of all rows for each.

    So many members have not seen a given row. As real members do, they share no row before all have
    been dealt, and each label has its share of the rows.
    """
    rows, left = len(labels), int(sizes.sum())
    half = max(1, rows // 2)
    deck = np.empty(0, np.intp)
    for size in sizes:
        if size > half:
            yield rng.choice(rng.permutation(rows)[:half], size)
            continue
        if size > len(deck):
            deck = _shuffle(labels, min(rows, left), rng)
        yield deck[:size]
        deck, left = deck[size:], left - size


def _shuffle(labels: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draws `count` rows in random order, of each label its share."""
    rows = rng.permutation(len(labels))
    rows = rows[np.argsort(labels[rows], kind="stable")]
    places = (np.arange(count) + rng.random()) * len(rows) / count
    return rng.permutation(rows[places.astype(np.intp)])


def _shrink(counts: NDArray[Any], codes: NDArray[Any]) -> NDArray[Any]:
    """The shares of votes, spread over the rows of a label as if all members had been counted.

    With few members the shares differ from row to row by chance, too. This part of their variance
    is known, and is removed.
    """
    totals = counts.sum(axis=1, keepdims=True)
    shares = counts / totals
    for code in np.unique(codes):
        group = codes == code
        mean, total = shares[group].mean(axis=0), shares[group].var(axis=0).sum()
        chance = shares[group] * (1 - shares[group]) / np.maximum(totals[group] - 1, 1)
        kept = max(0.0, 1 - chance.sum(axis=1).mean() / total) if total else 1.0
        shares[group] = mean + np.sqrt(kept) * (shares[group] - mean)
    spread: NDArray[np.float64] = shares / shares.sum(axis=1, keepdims=True)
    return spread
