"""Forms: what a person is asked for, and how the answers become the features of a schema."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from .._support.validate import guess, instance, one_of, refuse
from ..data import Ignore, Label, Number, Schema
from ..data.column_kinds import label_texts
from ..exceptions import ParameterError

_NONE_OF_THESE = "none of these"
# What devices read: the longest name, and the longest text; how many inputs, and choices of one.
_LONGEST_NAME, _LONGEST_TEXT, _MOST = 100, 2000, 1000


def form_of(
    schema: Schema,
    *,
    features: Literal["numbers", "bits"],
    texts: Mapping[str, str] | None = None,
) -> str:
    """Makes the form by which a person's page asks for what a schema's features are made of.

    A page asks for the inputs that a question needs, and computes the features and the label of the
    record from them on the person's device. A number beyond its bounds counts as the nearer bound.
    A category has the last choice "none of these", so that everybody can answer.

    Args:
        schema: The schema, with a label that is 0 or 1, or with none.
        features: "numbers" for the features of `schema.floats`, "bits" for those of `schema.bits`.
        texts: What people read, by the name of a column (`"age": "How old are you?"`), or by name
            and value of a choice (`"home=own": "I own it"`, `"home=": "neither"` for none of
            these). Whether a label is above a number has the choices 1 and 0. None, and what is
            left out, shows the schema's own names.

    Returns:
        The form as JSON, as a Study and a Question take it: its `inputs`, the `features` in the
        order of the schema, and the `label`, or null.

    Raises:
        ParameterError: The label is a number, bounds are too far apart for floats, a text is of no
            column and no choice, or a name, a value or a text is none that devices take.

    Guarantee:
        The form is made of the schema alone, which is public.

    Examples:
        >>> import json
        >>> from hdp_fast import collection
        >>> from hdp_fast.data import Category, Label, Number, Schema
        >>> columns = {"age": Number(20, 70), "home": Category(("own", "rent"))}
        >>> schema = Schema(Label("bought", positive=("yes",)), columns)
        >>> text = collection.form_of(schema, features="numbers", texts={"age": "Your age"})
        >>> form = json.loads(text)
        >>> form["inputs"][0]
        {'name': 'age', 'text': 'Your age', 'kind': 'number', 'low': 20.0, 'high': 70.0}
        >>> form["features"][0]
        {'input': 0, 'scale': 0.02, 'offset': -0.4}
        >>> form["label"]
        {'input': 2, 'values': ['yes']}
    """
    instance("schema", schema, Schema, "a Schema")
    one_of("features", features, ("numbers", "bits"))
    words = _Words(texts)
    inputs, rules = list[dict[str, Any]](), list[dict[str, Any]]()
    for name, kind in schema.columns.items():
        if isinstance(kind, Ignore):
            continue
        place = len(inputs)
        if isinstance(kind, Number):
            inputs.append(words.number(name, kind))
            rules += _number_rules(place, name, kind, features)
        else:
            inputs.append(words.choice(name, {value: value for value in kind.values}))
            rules += [{"input": place, "values": [value]} for value in kind.values]
    label = None
    if schema.label is not None:
        label = {"input": len(inputs), "values": list(_label_values(schema.label))}
        inputs.append(words.label(schema.label))
    words.finish()
    if len(inputs) > _MOST:
        rule = f"a device takes at most {_MOST:,}"
        raise ParameterError(f"schema makes {len(inputs):,} inputs, but {rule}")
    return json.dumps({"inputs": inputs, "features": rules, "label": label})


def _number_rules(place: int, name: str, kind: Number, features: str) -> list[dict[str, Any]]:
    """The features of a number: one for each cut, or the number scaled from its bounds."""
    if features == "bits":
        return [{"input": place, "at_least": cut} for cut in kind.cuts]
    width = kind.high - kind.low
    scale, offset = 1 / width, -kind.low / width
    if not (0 < scale < math.inf and math.isfinite(offset)):
        rule = "they are too far apart, or too near, to be scaled by a float"
        raise ParameterError(f"bounds of column {name!r} = [{kind.low:g}, {kind.high:g}]: {rule}")
    return [{"input": place, "scale": scale, "offset": offset}]


def _label_values(label: Label) -> tuple[str, ...]:
    """The choices that make a label 1."""
    if label.bounds is not None:
        rule = "a page asks for labels that are 0 or 1: positive or above"
        raise ParameterError(f"label = {label.column!r} has bounds and is a number, but {rule}")
    return ("1",) if label.positive is None else label.positive


def _check_name(name: str) -> str:
    """A name of a column or a value, as devices take it."""
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        rule = f"names and values of a form must be printable, 1 to {_LONGEST_NAME} characters"
        refuse("schema", name, rule)
    return name


class _Words:
    """The texts of a form, and which of them were used."""

    def __init__(self, texts: Mapping[str, str] | None):
        given = {} if texts is None else texts
        if not isinstance(given, Mapping):
            refuse("texts", texts, "it must be a dict of texts by names of columns, or None")
        for name, text in given.items():
            if not isinstance(name, str) or not isinstance(text, str) or not text.strip():
                refuse("texts", {name: text}, "names and texts must be texts, no text empty")
            if len(text) > _LONGEST_TEXT or not text.replace("\n", "").isprintable():
                rule = f"it must be printable, at most {_LONGEST_TEXT:,} characters"
                refuse(f"texts[{name!r}]", text, rule)
        self._texts, self._known = given, set[str]()

    def _say(self, name: str, otherwise: str) -> str:
        self._known.add(name)
        return self._texts.get(name, otherwise)

    def number(self, name: str, kind: Number) -> dict[str, Any]:
        asked = {"name": _check_name(name), "text": self._say(name, name)}
        return {**asked, "kind": "number", "low": kind.low, "high": kind.high}

    def choice(
        self, name: str, choices: Mapping[str, str], rest: str | None = _NONE_OF_THESE
    ) -> dict[str, Any]:
        """An input with these choices by their values, and one for the rest unless it is None."""
        asked = {"name": _check_name(name), "text": self._say(name, name), "kind": "choice"}
        offered = [
            {"value": _check_name(value), "text": self._say(f"{name}={value}", text)}
            for value, text in choices.items()
        ]
        if len(offered) >= _MOST:
            rule = f"a device takes fewer than {_MOST:,}"
            raise ParameterError(f"column {name!r} has {len(offered):,} values, but {rule}")
        if rest is not None:
            other = "other"
            while other in choices:
                other += "_"
            offered.append({"value": other, "text": self._say(f"{name}=", rest)})
        return {**asked, "choices": offered}

    def label(self, label: Label) -> dict[str, Any]:
        if label.positive is None:
            above = f"{label.above:.12g}"
            choices = {"1": f"more than {above}", "0": f"{above} or less"}
            return self.choice(label.column, choices, None)
        choices = {value: value for value in label.positive}
        return self.choice(label.column, choices, label_texts(label, {}, None)[0])

    def finish(self) -> None:
        """Refuses a text that belongs to nothing."""
        for name in self._texts:
            if name not in self._known:
                rule = (
                    f"it must be a column of the schema, or column=value{guess(name, self._known)}"
                )
                refuse("texts", name, rule)
