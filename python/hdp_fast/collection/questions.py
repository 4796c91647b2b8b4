"""Questions that clients and collectors share, so that epsilon is fixed before anybody answers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.validate import from_json, refuse, shorten
from ..data.reading import parse_file
from ..exceptions import ParameterError
from ..local.randomizers.base import make_randomizer
from ..local.randomizers.binary import BinaryResponse
from ..local.randomizers.choice import best_randomizer
from ..local.randomizers.frequency import FrequencyRandomizer, HadamardResponse, KaryResponse
from ..local.randomizers.mean import MeanRandomizer
from ..local.randomizers.noisy import GaussianRandomizer, LaplaceRandomizer
from ..local.randomizers.piecewise import Piecewise

_FORM = {"format": "hdp_fast.question", "version": 1}
_LONGEST_ID = 100

MEANS = ("best", "binary", "laplace", "piecewise", "gaussian")
FREQUENCIES = ("best", "kary", "hadamard")


@dataclass(frozen=True)
class Question:
    """What everybody is asked, and the randomizer that everybody's device answers with.

    Attributes:
        id: its name: a device that keeps a state answers it once.
        randomizer: of a mean or of frequencies.
        categories: for frequencies, the texts that stand for 0 to k - 1; None where values are
            these integers themselves, and for a mean.
    """

    id: str
    randomizer: MeanRandomizer | FrequencyRandomizer
    categories: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Validate the id, and that the categories suit the randomizer."""
        if not isinstance(self.id, str) or not self.id or not self.id.isprintable():
            refuse("id", self.id, "it must be a printable text")
        if len(self.id) > _LONGEST_ID:
            refuse("id", self.id, f"it must have at most {_LONGEST_ID} characters")
        if self.categories is not None:
            self._check_categories(self.categories)

    def _check_categories(self, categories: tuple[str, ...]) -> None:
        plain = all(isinstance(text, str) and text and text.strip() == text for text in categories)
        if not plain or len(set(categories)) != len(categories):
            rule = "they must be different texts, none empty or with spaces around it"
            refuse("categories", categories, rule)
        if getattr(self.randomizer, "k", None) != len(categories):
            count = f"{len(categories):,} categories, but the randomizer is {self.randomizer!r}"
            raise ParameterError(f"{count}: it must be one of so many values")

    @property
    def kind(self) -> str:
        """What the reports estimate: "mean" or "frequency"."""
        return "mean" if isinstance(self.randomizer, MeanRandomizer) else "frequency"

    def values(self, texts: Iterable[str]) -> NDArray[Any]:
        """Read values as the randomizer takes them.

        A number out of range counts as the nearer end, and what is no category as the last one,
        or the nearer end of the integers; require_categories refuses it on a device.

        Raises: ParameterError, which does not show it, for a text that is not the number it must
            be, nan among them.
        """
        if self.categories is not None:
            places = {text: place for place, text in enumerate(self.categories)}
            last = len(places) - 1
            return np.array([places.get(text.strip(), last) for text in texts], np.int64)
        if isinstance(self.randomizer, FrequencyRandomizer):
            last = self.randomizer.k - 1
            return np.array([min(max(_integer(text), 0), last) for text in texts], np.int64)
        return np.array([_number(text) for text in texts], np.float64)

    def require_categories(self, texts: Iterable[str]) -> None:
        """Refuse, on the device that holds it, a value that is none of the categories.

        A device that is silent for that reason tells that it holds such a value: a question about
        frequencies needs a category for the rest.

        Raises: ParameterError, which does not show the value; as values for a text that is no
            integer where the categories are integers.
        """
        if not all(map(self._is_answerable, texts)):
            offered = "one of those of the question, which needs one for the rest"
            raise ParameterError(f"a value is no category, but it must be {offered}")

    def _is_answerable(self, text: str) -> bool:
        if self.categories is not None:
            return text.strip() in self.categories
        if isinstance(self.randomizer, FrequencyRandomizer):
            return 0 <= _integer(text) < self.randomizer.k
        return True

    def name_frequencies(self, frequencies: NDArray[np.float64]) -> dict[str, float]:
        """The frequencies by category."""
        names = self.categories or map(str, range(len(frequencies)))
        return dict(zip(names, frequencies.tolist(), strict=True))

    def parameters(self) -> dict[str, Any]:
        """The parameters of the randomizer, as JSON has them."""
        parameters: dict[str, Any] = json.loads(self.randomizer.to_json())
        return parameters

    def to_json(self) -> str:
        """The question as a JSON object, which from_json reads; equal texts are equal questions."""
        fields = {**_FORM, "id": self.id, "kind": self.kind}
        if self.categories is not None:
            fields["categories"] = self.categories
        return json.dumps({**fields, "randomizer": self.parameters()})

    @property
    def digest(self) -> str:
        """A hash of the whole question, 16 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @classmethod
    def from_json(cls, text: str) -> Question:
        """The question that to_json wrote.

        Raises: ParameterError when it is not one.
        """
        return from_json("question", text, "hdp-fast local question", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Question:
        form, kind = {key: fields.pop(key) for key in _FORM}, fields.pop("kind")
        if form != _FORM:
            rule = f"question must have format and version {list(_FORM.values())}"
            raise ParameterError(f"{rule}: use the hdp_fast that wrote it")
        categories = fields.pop("categories", None)
        randomizer: Any = make_randomizer(fields.pop("randomizer"))
        texts = None if categories is None else tuple(categories)
        question = cls(randomizer=randomizer, categories=texts, **fields)
        if kind != question.kind:
            rule = f"the randomizer is one of a {question.kind}"
            raise ParameterError(f"kind = {shorten(kind)} of a question, but {rule}")
        return question


def read_question(path: Path) -> Question:
    """The question in a file.

    Raises: ParameterError.
    """
    return parse_file(path, "question, a JSON object in UTF-8", Question.from_json)


def mean_question(
    name: str,
    *,
    randomizer: str,
    epsilon: float,
    delta: float | None,
    low: float,
    high: float,
    beta: float,
) -> Question:
    """A question about a mean, with one of MEANS: the best one needs fewest agents.

    Raises: ParameterError.
    """
    if randomizer == "best":
        alpha = (high - low) / 20
        best = best_randomizer(epsilon, delta or 0.0, bounds=(low, high), alpha=alpha, beta=beta)
        return Question(name, best)
    if (randomizer == "gaussian") != (delta is not None):
        rule = "gaussian needs it, best may use it, no other randomizer does"
        raise ParameterError(f"--delta = {delta} with --randomizer {randomizer}, but {rule}")
    if delta is not None:
        return Question(name, GaussianRandomizer(epsilon, delta, (low, high)))
    kinds: dict[str, Any] = {
        "binary": BinaryResponse,
        "laplace": LaplaceRandomizer,
        "piecewise": Piecewise,
    }
    return Question(name, kinds[randomizer](epsilon, (low, high)))


def frequency_question(
    name: str, *, randomizer: str, epsilon: float, categories: str | None, k: int | None
) -> Question:
    """A question about frequencies, with one of FREQUENCIES: the best one has the least error.

    categories: texts with commas between; k: how many integers instead.

    Raises: ParameterError.
    """
    texts = None if categories is None else tuple(text.strip() for text in categories.split(","))
    values: Any = k if texts is None else len(texts)
    kinds = {"kary": KaryResponse, "hadamard": HadamardResponse}
    choices = [kind(values, epsilon) for key, kind in kinds.items() if randomizer in ("best", key)]
    return Question(name, min(choices, key=lambda choice: choice.variance()), texts)


def _number(text: str) -> float:
    with suppress(ValueError):
        number = float(text)
        if not math.isnan(number):
            return number
    raise ParameterError("a value is no number, but all must be")


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ParameterError("a value is no integer, but all must be") from None
