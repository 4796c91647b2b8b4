"""What is loaded on first use: the names of our packages, and the packages of others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

# Modules whose packages have another name on an index, or must be new enough.
_PACKAGES = {"dp_accounting": "dp-accounting", "sklearn": "scikit-learn>=1.6"}


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


def load_optional(module: str, purpose: str, extra: str | None = None) -> Any:
    """A module of a package that is no dependency of this one.

    Args:
        module: Its dotted name.
        purpose: What needs it: the error begins with this text.
        extra: The extra of this package that brings it, where there is one.

    Raises:
        ImportError: It cannot be imported; the error names the package to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise name_package(error, module, purpose, extra) from error


def name_package(
    error: ImportError, module: str, purpose: str, extra: str | None = None
) -> ImportError:
    """The error that says what to install: the package itself, wherever ours is from."""
    name = (error.name or module).partition(".")[0]
    package = _PACKAGES.get(name, name)
    command = f"pip install {package!r}" if ">" in package else f"pip install {package}"
    brought = f" (the extra hdp-fast[{extra}])" if extra else ""
    kind = ModuleNotFoundError if isinstance(error, ModuleNotFoundError) else ImportError
    return kind(f"{purpose} needs {package}: {command}{brought}", name=error.name)
