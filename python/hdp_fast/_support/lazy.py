"""Faces of packages: what they offer, loaded on first use, and nothing else in their dir()."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    package: str, homes: Mapping[str, str], public: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The __getattr__ and __dir__ of a package that loads its modules on first use (PEP 562).

    homes: the module of each name that is no module itself, relative to the package.
    public: all names, those of modules included.
    """

    def load(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name], package), name)
        if name in public:
            return importlib.import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, list_only(public)


def list_only(public: Sequence[str]) -> Callable[[], list[str]]:
    """The __dir__ of a package: its public names, not the files that they come from."""
    return lambda: sorted(public)
