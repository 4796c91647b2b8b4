"""Results as JSON: arrays as lists, records and mechanisms as objects."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np


def to_text(fields: Mapping[str, Any]) -> str:
    """The fields as a JSON object; a number that is not finite is a text, as "inf"."""
    return json.dumps(_convert(fields))


def _convert(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _convert(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_convert(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
