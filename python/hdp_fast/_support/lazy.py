"""Faces of packages: they load their names on first use and list nothing else in dir()."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def attach(
    package: str, homes: Mapping[str, str], public: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The __getattr__ and __dir__ of a package that loads its modules on first use (PEP 562).

    Args:
        package: Name of the package.
        homes: For each name that is no module itself, the module that it is in, relative to the
            package.
        public: All public names, modules included.
    """

    def load(name: str) -> Any:
        if name in homes:
            return getattr(importlib.import_module(homes[name], package), name)
        if name in public:
            return importlib.import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, list_only(public)


def list_only(public: Sequence[str]) -> Callable[[], list[str]]:
    """The __dir__ of a package that lists its public names, not the files that define them."""
    return lambda: sorted(public)
