"""A stage: questions that go out together, of which each person answers the one that is theirs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._support.parameters import Checked, Rules
from .._support.random_state import check_random_state, make_stream
from .._support.types import Bits, Integers, RandomState
from .._support.validate import array, from_json, integers, positive_int, refuse, sequence
from ..exceptions import ParameterError, ShapeError
from .estimation import randomized_response
from .queries.query import read_arrays, read_labels, true_answers

_KIND = "stage"
KEY_BYTES = 16
_MOST_QUERIES = 10_000
# No population is larger, and sums of shares stay exact in every language's floats.
_MOST = (1 << 53) - 1


class Answered(NamedTuple):
    """The answers to one question of a stage.

    Attributes:
        asked: Number of people whose question it was.
        bits: The randomized answers that arrived, uint8 of shape (m,), m at most `asked`.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> agents = local.Agents(np.eye(9), np.ones(9), epsilon=1.0)
        >>> asked = [(local.Query.label(), 4), (local.Query.between(0, low=1), 5)]
        >>> [answered.asked for answered in agents.ask_together(asked)]
        [4, 5]
    """

    asked: int
    bits: Bits


def _check_queries(name: str, value: Any) -> tuple[Mapping[str, Any], ...]:
    queries = tuple(sequence(name, value))
    if not 1 <= len(queries) <= _MOST_QUERIES:
        raise ParameterError(f"{name} has {len(queries)} entries, but needs 1 to {_MOST_QUERIES:,}")
    if not all(isinstance(query, Mapping) for query in queries):
        refuse(name, value, "each must be the description of a query or of a hypothesis")
    return queries


def _check_shares(name: str, value: Any) -> tuple[int, ...]:
    shares = tuple(positive_int(name, share, _MOST) for share in sequence(name, value))
    if sum(shares) > _MOST:
        refuse(name, value, f"they must add up to at most {_MOST}")
    return shares


def _check_key(name: str, value: Any) -> bytes:
    if not isinstance(value, bytes) or len(value) != KEY_BYTES:
        refuse(name, value, f"it must be {KEY_BYTES} bytes")
    return value


@dataclass(frozen=True)
class Stage(Checked):
    """Questions that go out together; which one is a person's tells a public rule.

    The rule takes a hash of the key and the person's invitation number, and so does not know the
    person's record. The report about a stage is `2 j + bit`: the number of the question, from 0,
    and the randomized answer to it.

    Attributes:
        queries: Descriptions of m queries or hypotheses, as true_answers takes them.
        shares: m integers of at least 1: how many of their sum are expected to get each.
        key: 16 bytes, public, drawn at random after the numbers were given to people.
        first: Number of the first person who is asked, from 1.
        count: Number of people who are asked; their numbers follow one another.

    Raises:
        ParameterError: An attribute breaks its rule.
        ShapeError: There are not as many shares as queries.

    Guarantee:
        If the bit is an answer of epsilon-randomized response, so is the report: with the numbers
        public, each person's question is fixed before anybody answers, and the report tells it and
        the bit alone. Whether a person answers must not depend on the record, nor on both record
        and question.

    Source:
        Warner 1965; Kasiviswanathan et al. 2011, Definition 5.3, for questions that do not depend
        on answers.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> label = local.Query.label().hypothesis
        >>> young = local.Query.between(0, high=30).hypothesis
        >>> stage = local.Stage([label, young], [3, 1], key=bytes(16), first=1, count=1_000)
        >>> stage.asked.tolist()  # about three quarters and a quarter
        [756, 244]
        >>> X, y = np.full((1_000, 1), 20), np.ones(1_000)
        >>> reports = stage.draw(X, y, epsilon=9.0)  # each on the device of its person
        >>> [bool(answered.bits.mean() > 0.9) for answered in stage.split(reports)]
        [True, True]
    """

    RULES: ClassVar[Rules] = {
        "queries": _check_queries,
        "shares": _check_shares,
        "key": _check_key,
        "first": partial(positive_int, most=_MOST),
        "count": partial(positive_int, most=_MOST),
    }

    queries: Sequence[Mapping[str, Any]] = field(repr=False)
    shares: Sequence[int]
    key: bytes = field(repr=False)
    first: int
    count: int

    def __post_init__(self) -> None:
        """Validate the attributes, and that there is a share for each query."""
        super().__post_init__()
        if len(self.shares) != len(self.queries):
            have = f"shares has {len(self.shares)} entries"
            raise ShapeError(f"{have}, but there are {len(self.queries)} queries")

    @property
    def reports(self) -> int:
        """The number of reports there can be: integers from 0 to one less."""
        return 2 * len(self.queries)

    @property
    def numbers(self) -> range:
        """The invitation numbers of those who are asked."""
        return range(self.first, self.first + self.count)

    def places(self, numbers: Sequence[int] | None = None) -> Integers:
        """Tells which question is whose.

        Args:
            numbers: Invitation numbers, integers of at least 1; None takes all who are asked.

        Returns:
            For each of them the place of its query, int64 (m,).

        Raises:
            ParameterError: A number is out of range.
        """
        shares = list(self.shares)
        if numbers is None:
            return _core.stage_places(self.key, self.first, self.count, shares).astype(np.int64)
        listed = sequence("numbers", numbers)
        each = [_core.stage_places(self.key, _check_number(one), 1, shares) for one in listed]
        return np.concatenate([np.zeros(0, np.int64), *each])

    @property
    def asked(self) -> Integers:
        """How many people each query goes to, int64 (m,)."""
        return np.bincount(self.places(), minlength=len(self.queries))

    def draw(
        self,
        X: Any,
        y: Any,
        *,
        epsilon: float,
        numbers: Sequence[int] | None = None,
        random_state: RandomState = None,
    ) -> Integers:
        """Draws the reports of devices, each about its own record and its own question.

        Args:
            X: Their features, shape (m, d).
            y: Their labels, shape (m,).
            epsilon: Privacy parameter of each report, above 0.
            numbers: Their invitation numbers, m of them; None takes the first m who are asked.
                Many in a row cost least as None.
            random_state: As for randomized_response.

        Returns:
            The reports, int64 of shape (m,).

        Raises:
            ShapeError: The numbers of records, labels and invitations differ.
            ParameterError: A query or an argument breaks its rule. This depends on no record.

        Guarantee:
            Pure epsilon-DP for each record, locally; whatever a record is, there is a report.
        """
        stream = make_stream(random_state)
        records, labels = read_arrays("X", X), read_labels(y)
        places = self.places(numbers) if numbers is not None else self.places()[: len(records)]
        if labels.shape != (len(records),) or len(places) != len(records):
            have = f"X has {len(records):,} records, y has shape {labels.shape}"
            raise ShapeError(f"{have}, and there are {len(places):,} numbers: all must agree")
        truths = np.zeros(len(places))
        for place, query in enumerate(self.queries):
            # Also where it is nobody's: what is refused must not depend on who is asked.
            mine = np.flatnonzero(places == place)
            # Entries of a list are read one by one, and must not become an array of one type.
            some = records[mine] if isinstance(records, np.ndarray) else [records[i] for i in mine]
            truths[mine] = true_answers(query, some, labels[mine])
        answers = randomized_response(truths, epsilon=epsilon, random_state=stream)
        reports: Integers = 2 * places + answers
        return reports

    def split(self, reports: Any) -> list[Answered]:
        """Sorts the reports by question.

        Args:
            reports: Integers from 0 to 2 m - 1, shape (k,).

        Returns:
            For each query the number of people asked and the bits that arrived, in their order.

        Raises:
            ParameterError: A report is out of range.
        """
        values = array("reports", reports)
        # An empty array of any type will do: no one may have answered.
        values = integers("reports", values, np.int64) if values.size else np.zeros(0, np.int64)
        if values.size and not 0 <= values.min() <= values.max() < self.reports:
            raise ParameterError(f"reports must lie in [0, {self.reports - 1}]")
        places, bits = values >> 1, (values & 1).astype(np.uint8)
        asked = self.asked.tolist()
        # A liar may have named a question that is not theirs: no more count than were asked it.
        return [Answered(most, bits[places == place][:most]) for place, most in enumerate(asked)]

    def to_json(self) -> str:
        """Writes the stage as JSON.

        Returns:
            A JSON object, which from_json reads.

        Raises:
            ParameterError: JSON cannot carry a query.
        """
        numbers = {"first": self.first, "count": self.count}
        head = {"kind": _KIND, "key": self.key.hex(), **numbers}
        return write({**head, "queries": list(self.queries), "shares": list(self.shares)})

    @classmethod
    def from_json(cls, text: str) -> Stage:
        """Reads a stage.

        Args:
            text: What to_json wrote.

        Returns:
            The stage.

        Raises:
            ParameterError: It is none.
        """
        return from_json("stage", text, "local.Stage.to_json", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Stage:
        if not is_stage(fields):
            raise ParameterError(f"stage must have the kind {_KIND!r}")
        del fields["kind"]
        return cls(key=bytes.fromhex(fields.pop("key")), **fields)


def is_stage(description: Any) -> bool:
    """Whether the content of a question's JSON is a stage."""
    return isinstance(description, Mapping) and description.get("kind") == _KIND


def outline(questions: Sequence[tuple[Mapping[str, Any], int]]) -> str:
    """A stage of descriptions and their shares, without its key and the numbers of its people."""
    queries, shares = [query for query, _ in questions], [share for _, share in questions]
    return write({"kind": _KIND, "queries": queries, "shares": shares})


def write(description: Mapping[str, Any]) -> str:
    """A description as JSON; equal ones have equal texts.

    Raises:
        ParameterError: JSON cannot carry it.
    """
    try:
        return json.dumps(description, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        refuse("hypothesis", description, f"it must be something for JSON ({error})")


def _check_number(value: Any) -> int:
    return positive_int("numbers", value, _MOST)


def draw_reports(
    text: str, X: Any, y: Any, *, epsilon: float, random_state: RandomState = None
) -> Integers:
    """Draws what the devices of people answer to a question of RemoteAgents, for trials.

    Args:
        text: What RemoteAgents send: a hypothesis, a query or a stage as JSON.
        X: The features of those who answer, shape (m, d); for a stage in the order of their
            numbers.
        y: Their labels, shape (m,).
        epsilon: Privacy parameter of each report, above 0.
        random_state: As for randomized_response.

    Returns:
        The reports, int64 of shape (m,): bits, or for a stage `2 j + bit`.

    Raises:
        ParameterError: The text is no such question, or an argument is out of range.
        ShapeError: There are not as many labels as records.

    Guarantee:
        Pure epsilon-DP for each record, locally.

    Source:
        Warner 1965.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local, transfer
        >>> X = np.random.default_rng(0).integers(0, 2, (9_000, 2))
        >>> def ask(text, count):  # in place of 9,000 phones
        ...     return local.draw_reports(text, X[:count], X[:count, 0], epsilon=2.0)
        >>> agents = local.RemoteAgents(ask, epsilon=2.0, count=9_000)
        >>> rule = {"kind": "parity", "features": [0], "complement": False}
        >>> transfer.certify(rule, agents).high < 0.1  # the error and the labels: one stage
        True
    """
    check_random_state(random_state)
    content = from_json("text", text, "local.RemoteAgents", lambda content: content)
    if is_stage(content):
        return Stage.from_json(text).draw(X, y, epsilon=epsilon, random_state=random_state)
    truths = true_answers(content, X, y)
    answers = randomized_response(truths, epsilon=epsilon, random_state=random_state)
    reports: NDArray[np.int64] = answers.astype(np.int64)
    return reports
