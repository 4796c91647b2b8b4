"""The account that every release gives of its own privacy."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Literal

from ._core import __version__
from ._support.validate import from_json, one_of, positive, probability, refuse
from .accounting.neighbors import Neighbors

OS_ENTROPY = "operating system entropy"
TEST_STREAM = "reproducible test stream, no privacy against whoever knows the seed"

_WORDS = {
    "neighbors": tuple(Neighbors),
    "numerics": ("exact", "idealized"),
}


@dataclass(frozen=True, kw_only=True)
class PrivacyRecord:
    """What protects a release, and how far.

    Attributes:
        mechanism: its name in hdp_fast.
        source: paper and theorem that the guarantee rests on.
        neighbors: which data sets are indistinguishable, "replace_one" or "add_remove" of one row,
            or "local": one answer of one person.
        epsilon: privacy parameter, above 0.
        delta: privacy parameter, in [0, 1).
        noise: the distribution that protects.
        numerics: "exact" where coins are integers and rationals only, else "idealized".
        rng: where the coins came from.
        version: of hdp_fast.
    """

    mechanism: str
    source: str
    neighbors: Literal["replace_one", "add_remove", "local"]
    epsilon: float
    delta: float = 0.0
    noise: str
    numerics: Literal["exact", "idealized"] = "exact"
    rng: str = OS_ENTROPY
    version: str = __version__

    def __post_init__(self) -> None:
        """Refuse what no release could say."""
        for name in ("mechanism", "source", "noise", "rng", "version"):
            if not isinstance(getattr(self, name), str):
                refuse(name, getattr(self, name), "it must be a text")
        for name, allowed in _WORDS.items():
            one_of(name, getattr(self, name), allowed)
        # Plain values, whatever kind of number or text was given: JSON knows no other.
        object.__setattr__(self, "neighbors", str(self.neighbors))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta, zero=True))

    def to_json(self) -> str:
        """The record as a JSON object, its keys the attributes.

        Raises: nothing.
        Cost: constant.
        Source: none.
        """
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PrivacyRecord:
        """The record that to_json wrote.

        text: a JSON object with the attributes as keys.

        Raises: ParameterError when it is not one.
        Cost: constant.
        Source: none.
        """
        return from_json("text", text, "PrivacyRecord.to_json", lambda fields: cls(**fields))


def rng_of(random_state: object) -> str:
    """Where the coins drawn with this random_state come from, as records say it."""
    return OS_ENTROPY if random_state is None else TEST_STREAM
