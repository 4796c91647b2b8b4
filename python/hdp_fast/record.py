"""Records: the statement that every release makes about its own privacy."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import Any, Literal

from ._core import __version__
from ._support.lazy import list_only, load_optional
from ._support.numbers import round_up
from ._support.validate import from_json, one_of, positive, probability, refuse
from .accounting.composition import epsilon as composed_epsilon
from .accounting.conversion import attack_advantage, gaussian_delta, gaussian_mu
from .accounting.mechanisms import Neighbors, Shuffled

__all__ = [
    "PrivacyRecord",
]

__dir__ = list_only(__all__)

OS_ENTROPY = "operating system entropy"
TEST_STREAM = "reproducible test stream, no privacy against whoever knows the seed"

_WORDS = {
    "neighbors": (*Neighbors, "replace_person", "add_remove_person"),
    "numerics": ("exact", "idealized"),
    "trust": ("curator", "local", "shuffler"),
}
# Shuffled reports whose delta alone is their guarantee have no less than this epsilon.
_LEAST_EPSILON = 1e-12
# A mu that was computed from epsilon and delta may differ in its last digits.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class PrivacyRecord:
    """What protects a release, and how far.

    Attributes:
        mechanism: Name of the mechanism in hdp_fast, with what else determines it.
        source: Paper and theorem on which the guarantee rests.
        neighbors: Which data sets are indistinguishable. "replace_one" and "add_remove" are about
            one row, "local" about one answer of one person. "replace_person" and
            "add_remove_person" are about all rows of one person, as ids name them: under the former
            they hold anything else, under the latter they are added or removed together.
        epsilon: Privacy parameter, finite and above 0.
        delta: Privacy parameter in [0, 1), 0 by default.
        noise: Distribution of the noise that protects.
        numerics: "exact" where draws are made from integers and rationals only, else "idealized":
            the guarantee is that of real numbers, and floats are drawn.
        rng: Where the random bits come from, the operating system by default.
        version: Version of hdp_fast.
        law: Whose privacy loss bounds that of the release: "pure" randomized response with epsilon,
            as for every release with delta 0; "gaussian" one Gaussian mechanism of `mu`, whose
            curve goes through epsilon and delta; None where these two alone are known.
        mu: Distance of neighbors over standard deviation of that Gaussian mechanism; None for other
            laws.
        run: Name of the run that the release belongs to, which a budget pays for once however often
            it is interrupted and taken up; None for a release of its own.
        trust: Against whom epsilon and delta hold: "local" against everybody, as for all records
            whose neighbors are "local"; "shuffler" against everybody but the shuffler of the
            reports; "curator" against everybody but the curator. None takes the first or the last.
        local_epsilon: With the trust "shuffler" what holds against the shuffler, and against
            everybody who sees reports before they are mixed: pure `local_epsilon`, for each report.
            None otherwise.

    Raises:
        ParameterError: An attribute lies outside its range.

    Examples:
        >>> from hdp_fast import PrivacyRecord
        >>> record = PrivacyRecord(mechanism="my count", source="Ghosh et al. 2009",
        ...     neighbors="replace_one", epsilon=0.5, noise="discrete Laplace of scale 2")
        >>> PrivacyRecord.from_json(record.to_json()) == record
        True
        >>> print(record)
        my count: epsilon 0.5, delta 0 (replace_one); an attacker's advantage is at most 0.245
    """

    mechanism: str
    source: str
    neighbors: Literal["replace_one", "add_remove", "local", "replace_person", "add_remove_person"]
    epsilon: float
    delta: float = 0.0
    noise: str
    numerics: Literal["exact", "idealized"] = "exact"
    rng: str = OS_ENTROPY
    version: str = __version__
    law: Literal["pure", "gaussian"] | None = None
    mu: float | None = None
    run: str | None = None
    trust: Literal["curator", "local", "shuffler"] | None = None
    local_epsilon: float | None = None

    def __post_init__(self) -> None:
        """Refuse what no release could state."""
        for name in ("mechanism", "source", "noise", "rng", "version"):
            if not isinstance(getattr(self, name), str):
                refuse(name, getattr(self, name), "it must be a text")
        if self.trust is None:
            object.__setattr__(self, "trust", "local" if self.neighbors == "local" else "curator")
        for name, allowed in _WORDS.items():
            one_of(name, getattr(self, name), allowed)
        # Plain values, whatever kind of number or text was given: JSON knows no other.
        object.__setattr__(self, "neighbors", str(self.neighbors))
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", probability("delta", self.delta, zero=True))
        if self.run is not None and not isinstance(self.run, str):
            refuse("run", self.run, "it must be a text or None")
        self._check_law()
        self._check_trust()

    def _check_trust(self) -> None:
        if (self.trust == "local") != (self.neighbors == "local"):
            refuse("trust", self.trust, f"it must suit neighbors = {self.neighbors!r}")
        if self.trust != "shuffler":
            if self.local_epsilon is not None:
                refuse("local_epsilon", self.local_epsilon, "only shuffled reports have one")
            return
        if self.neighbors != "replace_one":
            refuse("trust", self.trust, "it is known of the relation replace_one alone")
        of_report = positive("local_epsilon", self.local_epsilon)
        if of_report < self.epsilon:
            rule = f"it must be at least that of the shuffled reports, {self.epsilon}"
            refuse("local_epsilon", of_report, rule)
        object.__setattr__(self, "local_epsilon", of_report)

    def _check_law(self) -> None:
        if self.law is None and not self.delta:
            object.__setattr__(self, "law", "pure")
        if self.law is not None:
            one_of("law", self.law, ("pure", "gaussian"))
            if (self.law == "pure") != (self.delta == 0):
                refuse(
                    "law", self.law, f"it must be pure for delta 0 alone, and delta = {self.delta}"
                )
        if self.law != "gaussian":
            if self.mu is not None:
                refuse("mu", self.mu, "only a gaussian law has one")
            return
        mu, most = positive("mu", self.mu), gaussian_mu(self.epsilon, self.delta)
        if mu > most * (1 + _ROUNDING):
            refuse("mu", self.mu, f"epsilon and delta allow {most:g} at most")
        object.__setattr__(self, "mu", mu)

    @property
    def attack_advantage(self) -> float:
        """The largest advantage of an attacker who is to tell two neighbors apart, in (0, 1].

        It is the true positive rate of an attack minus its false positive rate, and computed from
        the law of the record: `accounting.attack_advantage` tells what it means. Of shuffled
        reports it is that of everybody but the shuffler.
        """
        bound = attack_advantage(self.epsilon, self.delta)
        return bound if self.mu is None else min(bound, gaussian_delta(self.mu, 0.0))

    def __str__(self) -> str:
        """The guarantee in one line, with what it means for an attacker."""
        price = f"epsilon {self.epsilon:g}, delta {self.delta:g} ({self.neighbors})"
        if self.trust == "shuffler":
            price = tell_both(self)
        told = f"an attacker's advantage is at most {round_up(self.attack_advantage):g}"
        if self.local_epsilon is not None:
            told += f", the shuffler's {round_up(attack_advantage(self.local_epsilon)):g}"
        return f"{self.mechanism}: {price}; {told}"

    def shuffled(self, n: int, *, delta: float, categories: int | None = None) -> PrivacyRecord:
        """States what protects reports like this one where a shuffler mixes n of them.

        Args:
            n: How many reports are mixed at least, as for `accounting.Shuffled`: those of people
                who follow the protocol and were asked the same, the person's own included.
            delta: Privacy parameter of the shuffled reports, strictly between 0 and 1.
            categories: As for `accounting.Shuffled`; 2 for bits of randomized response.

        Returns:
            A record with the trust "shuffler" and both epsilons.

        Raises:
            ParameterError: The record is not one of pure local reports, or an argument breaks its
                rule.

        Guarantee:
            That of `accounting.Shuffled` with this record's epsilon.

        Examples:
            >>> from hdp_fast import PrivacyRecord
            >>> record = PrivacyRecord(mechanism="my answer", source="Warner 1965",
            ...     neighbors="local", epsilon=3.0, noise="randomized response")
            >>> mixed = record.shuffled(875, delta=1e-6)
            >>> round(mixed.epsilon, 2), mixed.local_epsilon, mixed.trust
            (0.89, 3.0, 'shuffler')
        """
        if self.neighbors != "local" or self.delta:
            rule = "only pure reports of neighbors 'local' can be shuffled"
            refuse("neighbors", f"{self.neighbors} with delta {self.delta}", rule)
        mix = Shuffled(self.epsilon, n, categories)
        failing = probability("delta", delta)
        shown = min(max(composed_epsilon(mix, failing), _LEAST_EPSILON), self.epsilon)
        return dataclasses.replace(
            self,
            mechanism=f"{self.mechanism}, {mix.n:,} reports mixed by a shuffler",
            source=f"{self.source}; Feldman, McMillan and Talwar 2023 (accounting.Shuffled)",
            neighbors="replace_one",
            epsilon=shown,
            delta=failing,
            law=None,
            trust="shuffler",
            local_epsilon=self.epsilon,
        )

    def to_json(self) -> str:
        """Writes the record as a JSON object, whose keys are the attributes.

        Returns:
            The text.
        """
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PrivacyRecord:
        """Reads a record that `to_json` wrote.

        Args:
            text: A JSON object with the attributes as keys.

        Returns:
            The record.

        Raises:
            ParameterError: The text is something else, or an attribute lies outside its range.
        """
        return from_json("text", text, "PrivacyRecord.to_json", lambda fields: cls(**fields))

    def to_dp_event(self) -> Any:
        """Makes the event of dp-accounting that stands for this release.

        Any mechanism with a pure guarantee of epsilon can be made of the output of randomized
        response with two answers (Kairouz, Oh and Viswanath 2015). So its event is the geometric
        mechanism of sensitivity 1, whose privacy loss is that of randomized response. A release of
        law "gaussian" becomes a Gaussian event. Other records with a delta tell too little for the
        events of dp-accounting 0.6.

        Returns:
            For delta 0 a `DiscreteLaplaceDpEvent` of sensitivity 1; for law "gaussian" a
            `GaussianDpEvent`; for others an `EpsilonDeltaDpEvent`, where the installed
            dp-accounting has one.

        Raises:
            ImportError: dp-accounting is not installed, or lacks an event.
            ParameterError: delta is above 0, the law is not "gaussian", and the installed
                dp-accounting has no event of epsilon and delta.

        Guarantee:
            The event describes the outputs of two neighbors, as if they were at a distance of 1. So
            an accountant with its default relation, ADD_OR_REMOVE_ONE, finds no less privacy loss
            than the release has, for the relation of this record; all records that it adds up must
            be of one relation. An accountant with REPLACE_ONE refuses such events, or doubles that
            distance.

        Source:
            Kairouz, Oh and Viswanath 2015, Theorem 3.3; Balle and Wang 2018 for normal noise.

        Examples:
            >>> from hdp_fast import PrivacyRecord
            >>> record = PrivacyRecord(mechanism="my count", source="Ghosh et al. 2009",
            ...     neighbors="replace_one", epsilon=0.5, noise="discrete Laplace of scale 2")
            >>> record.to_dp_event()
            DiscreteLaplaceDpEvent(noise_parameter=0.5, sensitivity=1)
        """
        if not self.delta:
            return _find_event("DiscreteLaplaceDpEvent")(self.epsilon, 1)
        if self.mu is not None:
            return _find_event("GaussianDpEvent")(1 / self.mu)
        try:
            event = _find_event("EpsilonDeltaDpEvent")
        except ImportError as error:
            if isinstance(error, ModuleNotFoundError):
                raise
            rule = "dp-accounting has no event for it: compose its PLD.from_privacy_parameters"
            refuse("delta", self.delta, rule)
        return event(self.epsilon, self.delta)


def _find_event(name: str) -> Any:
    """The event of dp-accounting with this name. Raises ImportError where there is none."""
    dp_event = load_optional("dp_accounting", "to_dp_event").dp_event
    if not hasattr(dp_event, name):
        raise ImportError(f"to_dp_event needs a newer dp-accounting, which has {name}")
    return getattr(dp_event, name)


def tell_both(record: PrivacyRecord) -> str:
    """Both epsilons of shuffled reports in words, rounded up to three digits."""
    of_report, mixed = (round_up(value) for value in (record.local_epsilon, record.epsilon))
    return (
        f"epsilon {of_report:g} against the shuffler, {mixed:g} against everybody else "
        f"(delta {record.delta:g})"
    )


def gaussian_law(epsilon: float, delta: float) -> dict[str, Any]:
    """The law of a record of one Gaussian mechanism that has no more loss than this."""
    return {"law": "gaussian", "mu": gaussian_mu(epsilon, delta)}


def rng_of(random_state: object) -> str:
    """Where the random bits drawn with this random_state come from, in the words of a record."""
    return OS_ENTROPY if random_state is None else TEST_STREAM
