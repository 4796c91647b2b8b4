"""Steps of a pipeline that learned from the private rows before a private estimator saw them."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import currentframe
from traceback import walk_stack
from typing import Any

from .._support.notes import note
from .toolkit import get_tags

_PIPELINES = "sklearn.pipeline"
# They pass on what they are told; a frozen one was fitted before.
_LEARN_NOTHING = ("BoundsScaler", "SchemaTransformer", "FrozenEstimator")


def note_learned_steps() -> None:
    """Warn of steps that a pipeline has just fitted on the rows that are private here.

    Only pipelines of scikit-learn that call the fit are seen, in this thread. By their types and
    parameters, which are public.
    """
    names = list(dict.fromkeys(_find_learned_steps()))
    if names:
        note(
            f"the pipeline fitted {', '.join(names)} on the rows that this estimator protects: what"
            " such a step learned is in the pipeline and in no record of privacy; BoundsScaler and"
            " SchemaTransformer prepare columns by public facts alone"
        )


def _find_learned_steps() -> Iterator[str]:
    for frame, _ in walk_stack(currentframe()):
        if frame.f_globals.get("__name__") == _PIPELINES:
            pipeline = frame.f_locals.get("self")
            for _, step in getattr(pipeline, "steps", [])[:-1]:
                yield from _name_learned(step)


def _name_learned(step: Any) -> Iterator[str]:
    """The names of the classes in a step that learn in fit."""
    name = type(step).__name__
    if step is None or isinstance(step, str) or name in _LEARN_NOTHING:
        return
    parts = getattr(step, "transformers", None) or getattr(step, "transformer_list", None)
    if parts is None:
        parts = getattr(step, "steps", None)
    if isinstance(parts, list):
        for part in parts:
            yield from _name_learned(part[1])
    elif get_tags(step).requires_fit and not _is_told(step):
        yield name


def _is_told(step: Any) -> bool:
    """Whether an encoder was told its categories, or an imputer its constant."""
    if not isinstance(getattr(step, "categories", "auto"), str):
        return True
    is_constant = getattr(step, "strategy", None) == "constant"
    return is_constant and getattr(step, "keep_empty_features", False) is True
