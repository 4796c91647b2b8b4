"""Coefficients as a person reads them."""

from __future__ import annotations

from collections.abc import Iterable


def coefficient_table(names: Iterable[str], coef: Iterable[float]) -> str:
    """A line for each coefficient, the largest first: its name, and four digits of it.

    names, coef: as many of each.
    """
    rows = sorted(zip(names, coef, strict=True), key=lambda row: -abs(row[1]))
    texts = [(name, f"{value:.4g}") for name, value in rows]
    width = max((len(name) for name, _ in texts), default=0)
    digits = max((len(text) for _, text in texts), default=0)
    return "\n".join(f"{name:<{width}}  {text:>{digits + 2}}" for name, text in texts)
