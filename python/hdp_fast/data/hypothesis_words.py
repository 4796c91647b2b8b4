"""Hypotheses in words, and in no more words than necessary."""

from __future__ import annotations

import functools
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

_CONSTANT = {False: "always 0", True: "always 1"}


class Bit(NamedTuple):
    """A feature that is 0 or 1: what is known of its column, and what it states.

    Attributes:
        column: Name of the column. Bits of different columns are unrelated.
        cut: The bit is 1 where the column's value is at least `cut`. It is None for a category, and
            a row has at most one category of a column.
        text: What the bit states, such as "age>=40".
    """

    column: str
    cut: float | None
    text: str


class Literal(NamedTuple):
    """A bit, or its negation where `value` is 0."""

    bit: Bit
    value: int

    def __str__(self) -> str:
        return self.bit.text if self.value else f"not {self.bit.text}"

    @property
    def negated(self) -> Literal:
        """The other literal of the same bit."""
        return Literal(self.bit, 1 - self.value)

    def holds(self, state: Bit | None) -> bool:
        """Whether it is true in a row where `state` is the column's category or highest cut.

        State None stands for a row in which all bits of the column are 0.
        """
        if state is None:
            bit = False
        else:
            bit = state == self.bit if self.bit.cut is None else _cut(state) >= self.bit.cut
        return bit == bool(self.value)


class Features(NamedTuple):
    """The features that hypotheses are about.

    Attributes:
        bits: What conjunctions and the like are about, by number.
        numbers: Names of what halfspaces weigh.
        unit: Whether these numbers lie in [0, 1].
    """

    bits: Sequence[Bit]
    numbers: Sequence[str]
    unit: bool

    @classmethod
    def unrelated(cls, names: Sequence[str]) -> Features:
        """Features of which only the names are known."""
        return cls([Bit(name, None, name) for name in names], names, False)


def describe(hypothesis: Mapping[str, Any], features: Features) -> str:
    """Words without double negation and without what follows from the rest; constants as constants.

    The hypothesis is a description as hdp_fast.learners makes it. Anything else raises KeyError,
    IndexError, TypeError or ValueError.
    """
    kind = hypothesis["kind"]
    if kind == "vote":
        return _describe_vote([describe(voter, features) for voter in hypothesis["hypotheses"]])
    if kind in ("halfspace", "linear"):
        return _describe_halfspace(hypothesis["weights"], hypothesis["bias"], features)
    if kind == "parity":
        texts = [features.bits[place].text for place in hypothesis["features"]]
        return _describe_parity(texts, hypothesis["complement"])
    places = zip(hypothesis["features"], hypothesis["values"], strict=True)
    literals = [Literal(features.bits[place], value) for place, value in places]
    if kind == "at_least":
        return _describe_at_least(hypothesis["threshold"], literals)
    if kind != "conjunction":
        raise ValueError(kind)
    return _describe_conjunction(literals, hypothesis["complement"])


def _describe_conjunction(literals: Iterable[Literal], complement: bool) -> str:
    """All literals, or by De Morgan's law the negation of one of them."""
    needed = _drop_implied(literals)
    if not needed:
        return _CONSTANT[(needed is not None) != bool(complement)]
    if complement:
        return " or ".join(str(literal.negated) for literal in needed)
    return " and ".join(map(str, needed))


def _drop_implied(literals: Iterable[Literal]) -> list[Literal] | None:
    """The literals that the others do not imply, in order; None if they contradict each other."""
    distinct = list(dict.fromkeys(literals))
    columns: dict[str, list[Literal]] = {}
    for literal in distinct:
        columns.setdefault(literal.bit.column, []).append(literal)
    needed: set[Literal] = set()
    for column in columns.values():
        if not any(all(part.holds(state) for part in column) for state in _states(column)):
            return None
        needed |= _strongest(column)
    return [literal for literal in distinct if literal in needed]


def _strongest(column: Sequence[Literal]) -> set[Literal]:
    """The literals of one column that imply its others, if all of them can be true together."""
    demanded = [literal for literal in column if literal.value]
    refused = [literal for literal in column if not literal.value]
    if column[0].bit.cut is None:
        return set(demanded or refused)
    most = sorted(demanded, key=lambda literal: _cut(literal.bit))[-1:]
    return {*most, *sorted(refused, key=lambda literal: _cut(literal.bit))[:1]}


def _states(column: Iterable[Literal]) -> list[Bit | None]:
    """All states of a column that these literals can tell apart."""
    return [None, *dict.fromkeys(literal.bit for literal in column)]


def _cut(bit: Bit) -> float:
    return 0.0 if bit.cut is None else bit.cut


def _describe_at_least(threshold: int, literals: Sequence[Literal]) -> str:
    least = most = 0
    ordered = sorted(literals, key=lambda literal: literal.bit.column)
    for _, group in itertools.groupby(ordered, key=lambda literal: literal.bit.column):
        column = list(group)
        counts = [sum(part.holds(state) for part in column) for state in _states(column)]
        least, most = least + min(counts), most + max(counts)
    if least >= threshold or most < threshold:
        return _CONSTANT[least >= threshold]
    if threshold == 1:
        return _describe_conjunction([literal.negated for literal in literals], True)
    if threshold == len(literals):
        return _describe_conjunction(literals, False)
    return f"at least {threshold} of: {', '.join(map(str, literals))}"


def _describe_parity(texts: Sequence[str], complement: bool) -> str:
    if not texts:
        return _CONSTANT[bool(complement)]
    if len(texts) == 1:
        return f"not {texts[0]}" if complement else texts[0]
    return f"an {'even' if complement else 'odd'} number of: {', '.join(texts)}"


def _describe_halfspace(weights: Sequence[float], bias: float, features: Features) -> str:
    named = list(zip(weights, features.numbers, strict=True))
    # Terms are added in the order in which predictions add them. Rounding is monotonic, so that
    # no prediction lies outside these bounds.
    least = _add([min(weight, 0.0) for weight in weights]) + bias
    most = _add([max(weight, 0.0) for weight in weights]) + bias
    if (features.unit and (least >= 0 or most < 0)) or not any(weights):
        return _CONSTANT[least >= 0]
    ordered = sorted(named, key=lambda pair: -abs(pair[0]))
    terms = [f"{weight:+.3g} {name}" for weight, name in ordered if weight]
    return f"{bias:.3g} {' '.join(terms)} >= 0"


def _add(values: Iterable[float]) -> float:
    """The sum with a rounding after each term, unlike the built-in sum of some Pythons."""
    return functools.reduce(operator.add, values, 0.0)


def _describe_vote(texts: Sequence[str]) -> str:
    counts = Counter(texts).most_common()
    if 2 * counts[0][1] > len(texts):
        return counts[0][0]
    return "; ".join(f"{count} x ({text})" for text, count in counts)
