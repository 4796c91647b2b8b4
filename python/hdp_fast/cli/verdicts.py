"""The first sentence of a result, which its notes, terminal, file and page share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..learners import Effect, PrivateModel

# With this signal or less the longest gradient, or the weights, may be noise alone.
_LEAST_SIGNAL = 1.0
# How many effects are shown.
_SHOWN = 10
_DEVIATIONS = 2.0
_HELP = "more rows, fewer columns or a larger epsilon would help"


def find_weakness(model: PrivateModel) -> str | None:
    """What a model is no good for at all, by public facts and released numbers."""
    if model.signal is None or model.signal > _LEAST_SIGNAL:
        return None
    rule = "at 1 or below a model is no better than a constant"
    return f"signal = {model.signal:.2g} times the noise, but {rule}: {_HELP}"


def find_usual_label(model: PrivateModel) -> str | None:
    """That a model predicts one label for nearly all rows."""
    label = model.usual_label()
    if label is None:
        return None
    rule = "only its probabilities tell them apart (hdp-fast predict --probabilities)"
    return f"the model predicts {label!r} for nearly all rows: {rule}"


def judge_model(model: PrivateModel) -> str:
    """One sentence on what a model of `hdp-fast fit` is good for."""
    effects = model.told_effects()
    told, features = len(effects.told), len(effects.effects)
    fault = find_weakness(model) or find_usual_label(model)
    if fault is not None:
        return f"{fault[0].upper()}{fault[1:]}."
    if model.record is None:
        return "No noise was added: the model protects no one, and no effect has an interval."
    if effects.signal is None:
        return f"The noise in the weights is not known: none of {features:,} effects is told."
    if not told or effects.signal <= _LEAST_SIGNAL:
        return (
            "The weights are not told from noise: labels that are pure chance could make them, and "
            f"{_HELP}."
        )
    return (
        f"{told:,} of {features:,} effects are told from 0 beyond noise, first of all "
        f"{effects.told[0].name}; whether the model errs less than a constant is not released."
    )


def describe_effects(model: PrivateModel) -> dict[str, Any]:
    """The effects that are shown, how many there are, and what they may be used for."""
    effects = model.told_effects()
    return {
        "effects": [_describe_effect(effect) for effect in effects.told[:_SHOWN]],
        "told": len(effects.told),
        "not_told": None if effects.signal is None else len(effects.effects) - len(effects.told),
        "use": _describe_use(model),
    }


def _describe_effect(effect: Effect) -> dict[str, Any]:
    """What people read of an effect: its size with the sign of its direction, and the noise."""
    size, noise = effect.size, _DEVIATIONS * (effect.size_deviation or 0.0)
    direction = _direction(effect)
    value = -size if direction == "falls" else size
    return {
        "name": effect.name,
        "value": value,
        "low": value - noise,
        "high": value + noise,
        "direction": direction,
        "weights": list(effect.weights),
        "squares": list(effect.squares),
    }


def _direction(effect: Effect) -> str:
    if len(effect.weights) > 1:
        return "differs by class"
    [weight] = effect.weights
    if effect.squares and abs(effect.squares[0]) > abs(weight):
        return "bends up" if effect.squares[0] > 0 else "bends down"
    return "rises" if weight > 0 else "falls"


def _describe_use(model: PrivateModel) -> str:
    """What effects may be used for, by what was released."""
    if model.record is None:
        return "Nothing is protected: neither the model nor its effects may be published."
    spread = (
        ""
        if _has_means(model)
        else (
            " No means were released: sizes are those of columns spread evenly over their bounds."
        )
    )
    if model.method == "statistics":
        noise = "Their noise is that of the released second moments."
    elif model.method == "additive":
        noise = "Their noise is that of sums over bins, with the smoothness that was learned."
    elif model.method == "evidence":
        noise = (
            "Slopes are shrunk as far as their noise asks for, and the noise of each is what is "
            "left of it then."
        )
    else:
        noise = (
            "Their noise is an estimate for columns that do not explain one another: gradients "
            "tell nothing else of it."
        )
    return (
        "Effects say what goes together with the label in these rows, other columns held fast, and "
        f"not what would happen if somebody changed it. {noise}{spread}"
    )


def _has_means(model: PrivateModel) -> bool:
    center = model.rows.center
    return center is not None and bool((center != model.rows.even_means).any())


def judge_statistics(notes: Sequence[str]) -> str:
    """One sentence on what statistics of `hdp-fast stats` are good for, by the notes on them."""
    if not notes:
        return "Noise hides no kind of statistic as a whole: each says how far it may be off."
    others = len(notes) - 1
    more = f" ({others} more such note{'s' * (others > 1)})" if others else ""
    return f"Noise hides some of it: {notes[0].rstrip('.')}{more}."
