"""The members of a labeler together: how many, what they vote for, and what answers for them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.notes import note
from .._support.random_state import check_random_state, make_generator, make_key
from .._support.types import Integers, RandomState
from .._support.validate import instance, positive_int
from ..data import records
from ..data.states import State, describe_settings, part_names, require_shapes
from ..exceptions import BudgetExceeded, InsufficientSamples, ParameterError, ShapeError
from ..stability.gaussian import GaussianSession
from ..stability.plans import AnyTable, VotePlan
from ..stability.sessions import TableSession
from ..stability.tables import HazardTable
from .members import Member, check_learner, fold_tasks, seed_of, turn_of, vote, vote_for_half_bins
from .partition import Source, Split, Training, share_members
from .public_facts import Facts, compare, facts_of

Counts = NDArray[np.uint32]

MOST_MEMBERS = 1 << 24
# The largest share of unanimous votes that may be flipped without a note.
MOST_FLIPS = 0.05
# Number of records from which a member learns something.
_FEW_ROWS = 10
# Counts of votes that are held in memory at a time, of 4 bytes each.
MOST_COUNTS = 1 << 25


def require_records(plan: VotePlan, n: int, k: int, name: str) -> None:
    """Refuse more members than records, and state what members that fit would be worth.

    Args:
        plan: The plan of the labeler.
        n: Number of records.
        k: Number of members.
        name: The records and their number, in words.

    Raises:
        InsufficientSamples: n is less than k.
    """
    if n >= k:
        return
    fit = max(1, n // _FEW_ROWS)
    flip = plan.flip(fit)
    fault = f"{name}, but {k:,} members need one each (the paper: {plan.k_paper:,})"
    rows = f"{fit:,} member{'s' * (fit > 1)} of about {min(n, _FEW_ROWS)} would fit"
    worth = f"even a unanimous vote of them is {_fate(plan)} with probability {flip:.3f}"
    advice = f"take members = {fit:,}"
    if flip > MOST_FLIPS:
        advice = "too much to be of use; a larger epsilon, fewer queries or more records help"
    raise InsufficientSamples(f"{fault}: {rows}, and {worth}: {advice}")


def require_queries(plan: VotePlan, queries: int) -> None:
    """Refuse more points than the plan has queries.

    Raises:
        BudgetExceeded: There are more.
    """
    if queries > plan.table.queries:
        raise BudgetExceeded(f"{queries:,} queries, but {plan.table.queries:,} are planned")


def note_flips(plan: VotePlan, k: int) -> None:
    """Note before anything is spent that so few members are worth little: a public fact."""
    flip = plan.flip(k)
    if flip > MOST_FLIPS:
        fault = f"members = {k:,}, but even a unanimous vote of them is {_fate(plan)}"
        advice = "fewer queries, a larger epsilon or more members make it less"
        note(f"{fault} with probability {flip:.3f} ({plan.k:,} keep beta): {advice}")


def _fate(plan: VotePlan) -> str:
    return "turned into bottom" if isinstance(plan.table, HazardTable) else "flipped"


class _Tally:
    """Counts of the cells that members vote for, (queries, cells), to which each is added.

    Attributes:
        counts: The counts.
        faults: What went wrong with each member.
    """

    def __init__(self, queries: int, cells: int, bar: Any):
        self.counts, self.faults = np.zeros((queries, cells), np.uint32), list[str]()
        self._starts, self._bar = np.arange(queries) * cells, bar

    def add(self, result: tuple[NDArray[Any], str]) -> None:
        """Counts the votes of one member, an index of a cell for each query."""
        votes, fault = result
        self.counts.reshape(-1)[self._starts + votes] += 1
        self.faults.append(fault)
        self._bar.update(len(votes))


@dataclass
class Ensemble:
    """Members trained on disjoint chunks; nothing here may be shown.

    Attributes:
        members: One Member for each chunk.
        key: Key from which the seeds of the members are derived.
        shape: Shape of the features of one record.
        rng: Generator of the table's coins in a test stream; None draws from the operating system.
        facts: Public facts of all records; None in a file of an older version.
    """

    members: list[Member]
    key: bytes
    shape: tuple[int, ...]
    rng: np.random.Generator | None
    facts: Facts | None = None

    def count_votes(
        self, Q: Any, classes: NDArray[Any], position: int, bar: Any
    ) -> Iterator[tuple[Counts, list[str]]]:
        """Yields counts of votes (some queries, K) block by block, with the fault of each member.

        Votes are counted as they are cast: no vote is kept.

        Args:
            Q: All points.
            classes: The K labels that members vote for.
            position: Number of queries that were answered before, so that no seed of a member is
                used twice.
            bar: Bar that moves by the number of votes that have been cast.
        """
        return self._count(vote, Q, position, bar, len(classes), classes)

    def count_scores(
        self, Q: Any, bins: int, position: int, bar: Any
    ) -> Iterator[tuple[Counts, list[str]]]:
        """Yields counts of scores in half bins (some queries, 2 bins), as count_votes does."""
        return self._count(vote_for_half_bins, Q, position, bar, 2 * bins, bins)

    def _count(
        self, task: Callable[..., Any], Q: Any, position: int, bar: Any, cells: int, *arguments: Any
    ) -> Iterator[tuple[Counts, list[str]]]:
        n, step = records.count_rows(Q), max(1, MOST_COUNTS // cells)
        for start in range(0, n, step):
            block = records.take_rows(Q, slice(start, start + step))
            tally = _Tally(records.count_rows(block), cells, bar)
            turns = (
                turn_of(self.key, chunk, position + start + 1) for chunk in range(len(self.members))
            )
            pairs = zip(self.members, turns, strict=True)
            tasks = ((member, block, *arguments, turn) for member, turn in pairs)
            fold_tasks(task, tasks, tally.add)
            yield tally.counts, tally.faults

    def session(
        self, table: AnyTable, used_bottoms: int, used_queries: int
    ) -> TableSession | GaussianSession:
        """Opens a session of the table that goes on from what has been used up."""
        used: dict[str, Any] = {"used_queries": used_queries, "random_state": self.rng}
        if isinstance(table, HazardTable):
            used["used_bottoms"] = used_bottoms
        return table.session(**used)


def train_ensemble(
    learner: Any,
    source: Source,
    choose: Split | None,
    k: int,
    random_state: RandomState,
    bar: Any,
) -> Ensemble:
    """Trains k members, each on its own chunk; the bar moves by one for each.

    choose: computes the rows of each chunk of records in memory; None splits each part by position.
    """
    key = make_key(random_state) or secrets.token_bytes(32)
    rng = None if random_state is None else make_generator(seed_of(key, -1, 0))
    members = source.train(Training(learner, key, os.getpid()), choose, k, bar)
    return Ensemble(members, key, source.shape, rng, source.facts)


class _Still:
    """Stands for a bar that does not move."""

    def update(self, *_: int) -> None:
        """Moves nothing."""


class Group(NamedTuple):
    """Members that are trained together, apart from others.

    Attributes:
        members: Their number, which is public.
        part: A public name of the group, or None.
        random_state: Where random bits come from.
    """

    members: int
    part: str | None
    random_state: RandomState


@dataclass(frozen=True)
class VoteJob:
    """Counts of the votes of groups of members, wherever each is trained, which add up.

    Attributes:
        name: The job's name in states.
        sums: What the counts are called there.
        cells: Number of cells that members vote for.
        settings: The public settings that all groups must have.
        count: Counts the votes of an ensemble on points, block by block.
    """

    name: str
    sums: str
    cells: int
    settings: Mapping[str, str]
    count: Callable[[Ensemble, Any, Any], Iterator[tuple[Counts, list[str]]]]

    def fold(self, learner: Any, source: Source, Q: Any, group: Group) -> State:
        """The votes of a group of members, which are trained and forgotten.

        Raises:
            ShapeError: Q has other features than the records.
            ParameterError: Q is of another kind than the records, or an argument is out of range.
            InsufficientSamples: There are fewer records than members, or fewer members than parts.
        """
        k = positive_int("members", group.members, MOST_MEMBERS)
        check_random_state(group.random_state)
        check_learner(learner)
        share_members(source.rows, k)
        points = check_points(Q, source.shape)
        compare(source.facts, facts_of(points), "Q")
        names, still = part_names(group.part), _Still()
        ensemble = train_ensemble(learner, source, None, k, group.random_state, still)
        counts = [np.empty((0, self.cells), np.uint32)]
        counts.extend(block for block, _ in self.count(ensemble, points, still))
        votes = np.concatenate(counts).astype(np.int64)
        settings = {**self.settings, **describe_settings(points=_describe_points(points))}
        sums = {self.sums: votes, "members": np.array([k], np.int64)}
        return State(self.name, settings, source.n, sums, names)

    def read(self, state: State) -> tuple[Integers, int]:
        """The counts (q, cells) that fold made, and how many members cast each vote.

        Raises:
            ParameterError: The state is of another job or of other settings, or no fold made it.
        """
        instance("state", state, State, "a State that fold made")
        state.require(self.name, {**state.settings, **self.settings}, "fold must have made it")
        votes = state.sums.get(self.sums, np.empty(0, np.int64))
        require_shapes(state, {self.sums: (len(votes), self.cells), "members": (1,)})
        k = int(state.sums["members"][0])
        if not 0 < k <= MOST_MEMBERS or (votes < 0).any() or (votes.sum(axis=1) != k).any():
            raise ParameterError("the state has other votes than members, but fold must make it")
        return votes, k


def check_points(Q: Any, shape: tuple[int, ...]) -> Any:
    """Validate points, any number of them, of records whose features have this shape.

    Raises:
        ShapeError: They have other features.
        ParameterError: They are no records.
    """
    queries = records.check_features("Q", Q)
    if tuple(queries.shape[1:]) != shape:
        rule = f"it must be ({', '.join(map(str, ('q', *shape)))}), as X was"
        raise ShapeError(f"Q has shape {tuple(queries.shape)}, but {rule}")
    return queries


def _describe_points(points: Any) -> str:
    """Public points as a text that is equal where they are."""
    columns = [points]
    if hasattr(points, "tocsr"):
        columns = [points.data, points.indices, points.indptr]
    elif hasattr(points, "columns"):
        columns = [points[name] for name in points.columns]
    names = {f"column {place}": np.asarray(column) for place, column in enumerate(columns)}
    return f"{points.shape} {describe_settings(**names)}"
