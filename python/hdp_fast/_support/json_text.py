"""Results as JSON: arrays become lists, and privacy records and mechanisms become objects."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from .validate import from_json


def to_text(fields: Mapping[str, Any]) -> str:
    """Writes the fields as a JSON object; a number that is not finite becomes a text, as "inf"."""
    return json.dumps(_convert(fields))


class JsonText:
    """A result that is written as a JSON object: its public attributes, unless it names others."""

    def to_json(self) -> str:
        """Writes the result as a JSON object.

        Returns:
            The text. Arrays are lists in it, and a number that is not finite is a text such as
            "inf".
        """
        return to_text(self._to_fields())

    def _to_fields(self) -> Mapping[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


class JsonObject(JsonText):
    """A result that is written as a JSON object and read again.

    A subclass makes an instance from the fields. It also names the fields, unless they are its
    attributes.
    """

    def to_json(self) -> str:
        """Writes the result as a JSON object, which `from_json` reads.

        Returns:
            The text.
        """
        return json.dumps(self._to_fields(), default=_convert)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads the result that `to_json` wrote.

        Args:
            text: A JSON object.

        Returns:
            The result.

        Raises:
            ParameterError: The text is not what `to_json` of this class wrote. The error shows
                nothing of the text.
        """
        return from_json("text", text, f"{cls.__name__}.to_json", cls._from_fields)

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        raise NotImplementedError


def _convert(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, JsonText):
        value = value._to_fields()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _convert(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_convert(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
