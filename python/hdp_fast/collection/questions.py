"""Questions that devices and collectors share, so that epsilon is fixed before anybody answers."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .._support.parameters import Checked, Rules, optional
from .._support.validate import (
    file_path,
    finite_number,
    from_json,
    instance,
    list_texts,
    numbers,
    one_of,
    refuse,
    sequence,
    shorten,
    take_form,
)
from ..data.reading import parse_file
from ..exceptions import ParameterError, ShapeError
from ..local.randomizers.base import make_randomizer
from ..local.randomizers.bounded import BinaryResponse, Piecewise, best_randomizer
from ..local.randomizers.designs import (
    ProjectiveGeometryResponse,
    SubsetSelection,
    best_frequency,
)
from ..local.randomizers.frequency import FrequencyRandomizer, KaryResponse
from ..local.randomizers.mean import MeanRandomizer
from ..local.randomizers.noisy import GaussianRandomizer, LaplaceRandomizer
from ..local.stages import Stage, is_stage

_FORM = {"format": "hdp_fast.question", "version": 2}
_LONGEST_ID, _LONGEST_TEXT = 100, 2_000

_WORDS = ("study", "asker", "text")

MEANS = ("best", "binary", "laplace", "piecewise", "gaussian")
FREQUENCIES = ("best", "kary", "subset", "geometry")


def _printable(name: str, value: Any, *, longest: int = _LONGEST_ID) -> str:
    """Returns the value, a printable text that is not empty and has at most so many characters."""
    if not isinstance(value, str) or not value or not value.isprintable():
        refuse(name, value, "it must be a printable text")
    if len(value) > longest:
        refuse(name, value, f"it must have at most {longest:,} characters")
    return value


check_asker = partial(_printable, longest=200)


def _read_object(name: str, value: Any) -> dict[str, Any]:
    """What the text of a JSON object holds."""
    try:
        content = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        refuse(name, value, "it must be the text of a JSON object")
    return content


def _check_form(name: str, value: Any) -> str:
    """The text of a JSON object; devices refuse what is in it and no form."""
    return json.dumps(_read_object(name, value))


def _check_randomizer(name: str, value: Any) -> Any:
    if not isinstance(value, MeanRandomizer | FrequencyRandomizer):
        refuse(name, value, "it must be a randomizer of local")
    return value


@dataclass(frozen=True)
class Question(Checked):
    """A question to many people, with the randomizer that every person's device answers with.

    Attributes:
        id: Name of the question, a printable text of 1 to 100 characters. A device that keeps a
            state answers each id once.
        randomizer: A randomizer for a mean or for frequencies.
        categories: For frequencies, the texts that stand for the values 0 to k - 1, all different,
            none empty or with spaces around it. None means that the values are these integers
            themselves; a question about a mean has None.
        hypothesis: A hypothesis or a local.Query as JSON. Each device then answers with 1 if the
            hypothesis is wrong about its record and with 0 otherwise, or with its answer to the
            query, through a BinaryResponse with bounds (0, 1). Or a local.Stage as JSON, of which
            each device answers the question that is its person's. None for a question about a
            value.
        study: Name of the study, under which a device accepts one epsilon; a text like the id.
        asker: Who asks, for people to read, up to 200 characters.
        text: The question in plain words, for people to read, up to 2,000 characters.
        form: What a page must ask a person for, as JSON; see form_of.

    Raises:
        ParameterError: The id, the categories or the hypothesis break their rule, the number of
            categories is not the randomizer's k, or the randomizer does not suit a hypothesis.

    Examples:
        >>> from hdp_fast import collection, local
        >>> randomizer = local.KaryResponse(3, 1.0)
        >>> question = collection.Question("travel", randomizer, ("bus", "bicycle", "other"))
        >>> question.kind, question.values(["bicycle", "boat"]).tolist()
        ('frequency', [1, 2])
        >>> collection.Question.from_json(question.to_json()) == question
        True
    """

    RULES: ClassVar[Rules] = {
        "id": _printable,
        "randomizer": _check_randomizer,
        "study": optional(_printable),
        "asker": optional(check_asker),
        "text": optional(partial(_printable, longest=_LONGEST_TEXT)),
        "form": optional(_check_form),
    }

    id: str
    randomizer: MeanRandomizer | FrequencyRandomizer
    categories: tuple[str, ...] | None = None
    hypothesis: str | None = field(default=None, repr=False)
    study: str | None = None
    asker: str | None = None
    text: str | None = None
    form: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Validate the id, and that the categories suit the randomizer."""
        super().__post_init__()
        if self.categories is not None:
            self._check_categories(self.categories)
        if self.hypothesis is not None:
            self._check_hypothesis(self.hypothesis)

    def _check_hypothesis(self, hypothesis: str) -> None:
        _read_object("hypothesis", hypothesis)
        randomizer = self.randomizer
        if not isinstance(randomizer, BinaryResponse) or randomizer.bounds != (0.0, 1.0):
            rule = "whether a hypothesis is wrong is answered by a BinaryResponse on (0, 1)"
            raise ParameterError(f"randomizer = {self.randomizer!r}, but {rule}")
        _ = self.stage  # refuses one that is damaged

    def _check_categories(self, categories: tuple[str, ...]) -> None:
        sequence("categories", categories)
        plain = all(isinstance(text, str) and text and text.strip() == text for text in categories)
        if not plain or len(set(categories)) != len(categories):
            rule = "they must be different texts, none empty or with spaces around it"
            refuse("categories", categories, rule)
        if getattr(self.randomizer, "k", None) != len(categories):
            count = f"{len(categories):,} categories, but the randomizer is {self.randomizer!r}"
            raise ParameterError(f"{count}: it must be one of so many values")

    @cached_property
    def stage(self) -> Stage | None:
        """The stage, if the question is one."""
        if self.hypothesis is None or not is_stage(json.loads(self.hypothesis)):
            return None
        return Stage.from_json(self.hypothesis)

    @property
    def report_range(self) -> tuple[int, int]:
        """The least and the greatest report."""
        stage = self.stage
        return self.randomizer.report_range if stage is None else (0, stage.reports - 1)

    @property
    def kind(self) -> str:
        """What the reports estimate: "mean", "frequency", or the means of a "stage"."""
        if self.stage is not None:
            return "stage"
        return "mean" if isinstance(self.randomizer, MeanRandomizer) else "frequency"

    def values(self, texts: Iterable[str]) -> NDArray[Any]:
        """Reads texts as the values that the randomizer takes.

        A number out of range counts as the nearer end of the range when it is randomized. A text
        that is no category counts as the last category, and an integer that is no category as the
        nearest one. On a device, require_categories refuses both before.

        Args:
            texts: The values as texts.

        Returns:
            An int64 array of categories, or a float64 array of numbers for a mean.

        Raises:
            ParameterError: A text is not a number (nan is none), or not an integer where the values
                are integers.
                The error does not show the text.
        """
        answers = list_texts("texts", texts)
        if self.categories is not None:
            places = {text: place for place, text in enumerate(self.categories)}
            last = len(places) - 1
            return np.array([places.get(text.strip(), last) for text in answers], np.int64)
        if isinstance(self.randomizer, FrequencyRandomizer):
            last = self.randomizer.k - 1
            return np.array([min(max(_integer(text), 0), last) for text in answers], np.int64)
        return np.array([_number(text) for text in answers], np.float64)

    def require_categories(self, texts: Iterable[str]) -> None:
        """Refuses, on the device that holds it, a value that is none of the categories.

        A device that is silent for this reason reveals that it holds such a value. A question about
        frequencies should therefore have a category for the rest. A question about a mean refuses
        nothing.

        Args:
            texts: The values as texts.

        Raises:
            ParameterError: A value is no category, or not an integer where the values are integers.
                The error does not show the value.
        """
        if not all(map(self._is_answerable, list_texts("texts", texts))):
            offered = "one of those of the question, which needs one for the rest"
            raise ParameterError(f"a value is no category, but it must be {offered}")

    def _is_answerable(self, text: str) -> bool:
        if self.categories is not None:
            return text.strip() in self.categories
        if isinstance(self.randomizer, FrequencyRandomizer):
            return 0 <= _integer(text) < self.randomizer.k
        return True

    def name_frequencies(self, frequencies: NDArray[np.float64]) -> dict[str, float]:
        """Gives each frequency the name of its category.

        Args:
            frequencies: Floats of shape (k,).

        Returns:
            A dict from the text of the category, or from the integer as a text, to the frequency.

        Raises:
            ParameterError: They are no numbers.
            ShapeError: There is another number of frequencies than of categories.
        """
        count = getattr(self.randomizer, "k", 0)
        shares = numbers("frequencies", frequencies)
        if shares.shape != (count,):
            raise ShapeError(f"frequencies has shape {shares.shape}, but it must be ({count},)")
        names = self.categories or map(str, range(count))
        return dict(zip(names, shares.tolist(), strict=True))

    def parameters(self) -> dict[str, Any]:
        """Returns the parameters of the randomizer, as JSON has them.

        Returns:
            A dict with the name of the randomizer and its parameters.
        """
        parameters: dict[str, Any] = json.loads(self.randomizer.to_json())
        return parameters

    def to_json(self) -> str:
        """Writes the question as JSON; equal texts mean equal questions.

        Returns:
            A JSON object, which from_json reads.
        """
        fields = {**_FORM, "id": self.id, "kind": self.kind}
        words = {name: getattr(self, name) for name in _WORDS}
        fields |= {name: value for name, value in words.items() if value is not None}
        if self.form is not None:
            fields["form"] = json.loads(self.form)
        if self.categories is not None:
            fields["categories"] = self.categories
        if self.hypothesis is not None:
            fields["hypothesis"] = self.hypothesis
        return json.dumps({**fields, "randomizer": self.parameters()})

    @property
    def digest(self) -> str:
        """A hash of the whole question, 32 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:32]

    @classmethod
    def from_json(cls, text: str) -> Question:
        """Reads the question that to_json wrote.

        Args:
            text: The JSON object.

        Returns:
            The Question.

        Raises:
            ParameterError: text is not such an object, or was written by another version.
        """
        return from_json("question", text, "hdp-fast local question", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Question:
        take_form("question", fields, _FORM)
        kind = fields.pop("kind")
        categories = fields.pop("categories", None)
        randomizer: Any = make_randomizer(fields.pop("randomizer"))
        texts = None if categories is None else tuple(categories)
        form = fields.pop("form", None)
        question = cls(
            randomizer=randomizer,
            categories=texts,
            form=None if form is None else json.dumps(form),
            **fields,
        )
        if kind != question.kind:
            rule = f"the randomizer is one of a {question.kind}"
            raise ParameterError(f"kind = {shorten(kind)} of a question, but {rule}")
        return question


def read_question(path: Path) -> Question:
    """Reads the question in a file.

    Args:
        path: The file, which holds what Question.to_json wrote.

    Returns:
        The Question.

    Raises:
        ParameterError: The file cannot be read, or does not hold a question.

    Examples:
        >>> from pathlib import Path
        >>> from hdp_fast import collection, local
        >>> question = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))
        >>> size = Path("question.json").write_text(question.to_json())
        >>> collection.read_question(Path("question.json")).randomizer
        BinaryResponse(epsilon=1.0, bounds=(0.0, 24.0)): one bit, kept with probability 0.7311
    """
    return parse_file(
        file_path("path", path), "question, a JSON object in UTF-8", Question.from_json
    )


def mean_question(
    name: str,
    *,
    randomizer: str,
    epsilon: float,
    delta: float | None,
    low: float,
    high: float,
    beta: float,
    spread: float | None = None,
) -> Question:
    """Makes a question about a mean.

    Args:
        name: The id of the question.
        randomizer: "binary", "laplace", "piecewise" or "gaussian"; "best" takes the one that needs
            fewest agents for an error of a twentieth of the range.
        epsilon: Privacy parameter of each report, at least 1e-9.
        delta: Privacy parameter of each report. "gaussian" needs it; "best" may choose "gaussian"
            where it is given. None means 0, and the other randomizers take nothing else.
        low: Lower end of the range of the values.
        high: Upper end of the range, above low.
        beta: For "best", the probability with which the error may be larger.
        spread: For "best", a public guess of how far the values typically lie from the middle of
            the range, as local.best_randomizer takes it; None assumes the worst.

    Returns:
        The Question.

    Raises:
        ParameterError: A parameter breaks its rule, or delta or spread does not suit the
            randomizer.

    Examples:
        >>> from hdp_fast import collection
        >>> form = {"epsilon": 1.0, "delta": None, "low": 0.0, "high": 120.0, "beta": 0.05}
        >>> question = collection.mean_question("minutes-to-work", randomizer="best", **form)
        >>> question.kind, question.parameters()["randomizer"]
        ('mean', 'BinaryResponse')
    """
    kinds: dict[str, Any] = {
        "binary": BinaryResponse,
        "laplace": LaplaceRandomizer,
        "piecewise": Piecewise,
    }
    one_of("randomizer", randomizer, (*kinds, "gaussian", "best"))
    least, most = finite_number("low", low), finite_number("high", high)
    if randomizer == "best":
        goal: dict[str, Any] = {"alpha": (most - least) / 20, "beta": beta, "spread": spread}
        spare = 0.0 if delta is None else delta
        return Question(name, best_randomizer(epsilon, spare, bounds=(least, most), **goal))
    if spread is not None:
        rule = "best alone chooses by it"
        raise ParameterError(f"--spread = {spread} with --randomizer {randomizer}, but {rule}")
    if (randomizer == "gaussian") != (delta is not None):
        rule = "gaussian needs it, best may use it, no other randomizer does"
        raise ParameterError(f"--delta = {delta} with --randomizer {randomizer}, but {rule}")
    if delta is not None:
        return Question(name, GaussianRandomizer(epsilon, delta, (least, most)))
    return Question(name, kinds[randomizer](epsilon, (least, most)))


def hypothesis_question(
    name: str,
    hypothesis: str,
    *,
    epsilon: float,
    study: str | None = None,
    asker: str | None = None,
    text: str | None = None,
    form: str | None = None,
) -> Question:
    """Makes a question whether a hypothesis is wrong about a device's record, or a query about it.

    Args:
        name: The id of the question.
        hypothesis: The hypothesis, the query or the stage, the text of a JSON object. For
            hypothesis_line it must be one that local.true_answers reads, or a local.Stage.
        epsilon: Privacy parameter of each report, at least 1e-9.
        study: Name of the study, as in Question.
        asker: Who asks.
        text: The question in plain words.
        form: What a page must ask a person for, as JSON.

    Returns:
        The Question, whose reports estimate the error of the hypothesis, or the mean of the query,
        as a mean in [0, 1]; those of a stage, the means of its queries.

    Raises:
        ParameterError: A parameter breaks its rule.

    Examples:
        >>> from hdp_fast import collection
        >>> rule = '{"kind": "conjunction", "features": [1], "values": [1], "complement": false}'
        >>> question = collection.hypothesis_question("rule-1", rule, epsilon=1.0)
        >>> question.kind, question.randomizer.bounds
        ('mean', (0.0, 1.0))
    """
    randomizer = BinaryResponse(epsilon, (0.0, 1.0))
    return Question(name, randomizer, None, hypothesis, study, asker, text, form)


def frequency_question(
    name: str, *, randomizer: str, epsilon: float, categories: str | None, k: int | None
) -> Question:
    """Makes a question about frequencies.

    Args:
        name: The id of the question.
        randomizer: "kary", "subset" or "geometry"; "best" takes the one of local.best_frequency.
        epsilon: Privacy parameter of each report, at least 1e-9.
        categories: The texts of the categories with commas between them. None means that the values
            are integers.
        k: Number of categories, 2 to `2**24` (1,024 for "subset"), where categories is None; the
            values are 0 to k - 1.

    Returns:
        The Question.

    Raises:
        ParameterError: A parameter breaks its rule.

    Examples:
        >>> from hdp_fast import collection
        >>> form = {"epsilon": 1.0, "categories": "bus,bicycle,other", "k": None}
        >>> question = collection.frequency_question("travel", randomizer="best", **form)
        >>> question.categories, question.parameters()["randomizer"]
        (('bus', 'bicycle', 'other'), 'KaryResponse')
    """
    texts = None
    if categories is not None:
        instance("categories", categories, str, "a text with commas between the categories")
        texts = tuple(text.strip() for text in categories.split(","))
    values: Any = k if texts is None else len(texts)
    kinds: dict[str, Any] = {
        "best": best_frequency,
        "kary": KaryResponse,
        "subset": SubsetSelection,
        "geometry": ProjectiveGeometryResponse,
    }
    return Question(name, kinds[one_of("randomizer", randomizer, kinds)](values, epsilon), texts)


def check_question(question: object) -> Question:
    """The question itself.

    Raises: ParameterError for anything else.
    """
    return instance("question", question, Question, "a Question")


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
