"""What a generator reads in the public docstrings: sections, parameters, examples.

Run as a program it prints what is missing, object by object, and a line of counts:
python tests/support/docstrings.py [ROOM ...]
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib
import importlib.util
import inspect
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import griffe

PACKAGE = "hdp_fast"
# Rooms that the package does not name, since they need a library: each by the library that it
# needs.
OPTIONAL_ROOMS = {"sklearn": "sklearn"}
# Sections of the house beside those that the parser knows; each is a block with a line of its own.
OWN_SECTIONS = ("Guarantee", "Cost", "Source")
_SECTION = re.compile(
    r"^(Guarantee|Cost|Source|Raises|Returns|Args|Attributes|Examples?):(.*)$", re.M
)
_CODE = re.compile(r"`[^`]*`")
# Where a section says nothing it is left out.
_EMPTY = re.compile(r"^(none|nothing|constant|as (the |its )?\S+)\.?$", re.I)


@dataclass(frozen=True)
class Documented:
    """A public class, function, method or property.

    Attributes:
        path: its public name, dotted.
        value: the object itself; for a property the function that computes it.
        owner: the class that it belongs to; None of a class or function of a module.
    """

    path: str
    value: Any
    owner: type | None = None
    is_property: bool = False

    @property
    def room(self) -> str:
        """The public module that it is reached by."""
        return self.path.split(".")[1]

    @cached_property
    def text(self) -> str:
        """Its docstring without indentation."""
        own = self.value.__dict__.get("__doc__") if inspect.isclass(self.value) else None
        return inspect.cleandoc(own or getattr(self.value, "__doc__", None) or "")

    @cached_property
    def sections(self) -> dict[str, Any]:
        """What the parser reads, by kind; sections of the house by their title."""
        sections: dict[str, Any] = {}
        for section in griffe.Docstring(self.text).parse("google", warnings=False):
            kind = section.kind.value
            key = section.value.kind.capitalize() if kind == "admonition" else kind
            sections[key] = section.value
        return sections

    @property
    def parameters(self) -> list[str]:
        """The names that a caller passes."""
        if self.is_property:
            return []
        if inspect.isclass(self.value) and not _is_constructed(self.value):
            return []
        try:
            signature = inspect.signature(self.value)
        except (TypeError, ValueError):
            return []
        names = [name for name in signature.parameters if name not in ("self", "cls")]
        return [name for name in names if not name.startswith("_")]

    @property
    def returns(self) -> bool:
        """Whether a call has a result."""
        if inspect.isclass(self.value) or self.is_property:
            return False
        annotation = getattr(self.value, "__annotations__", {}).get("return", "")
        return annotation not in ("None", None, type(None))

    def missing(self) -> Iterator[str]:
        """All that is wrong, in words."""
        if not self.text:
            yield "no docstring"
            return
        yield from self._missing_fields()
        if self.returns and not {"returns", "yields"} & self.sections.keys():
            yield "no Returns"
        errors = {error.annotation for error in self.sections.get("raises", ())}
        if _raises(self.value) and not errors:
            yield "no Raises, although it raises"
        unknown = {str(error) for error in errors if not _is_error(str(error))}
        if unknown:
            yield f"Raises names what is no error: {sorted(unknown)}"
        for title, rest in _SECTION.findall(self.text):
            if rest.strip():
                yield f"{title}: must stand on a line of its own"
        for title in OWN_SECTIONS:
            body = getattr(self.sections.get(title), "contents", "")
            if _EMPTY.match(body.strip()):
                yield f"{title} says nothing: leave it out"
        if "**" in _CODE.sub("", self.text.partition("Examples:")[0]):
            yield "** outside of `code` turns bold"
        if self.owner is None and "examples" not in self.sections:
            yield "no Examples"

    def _missing_fields(self) -> Iterator[str]:
        kinds = ("parameters", "other parameters", "attributes")
        named = {item.name.lstrip("*") for kind in kinds for item in self.sections.get(kind, ())}
        absent = [name for name in self.parameters if name not in named]
        if absent:
            yield "not described: " + ", ".join(absent)
        if not inspect.isclass(self.value) and not self.is_property:
            surplus = named - set(self.parameters)
            if surplus:
                yield f"described, but no parameter: {sorted(surplus)}"


def public_objects() -> Iterator[Documented]:
    """All public classes and functions with their own public methods and properties, once each."""
    package = importlib.import_module(PACKAGE)
    seen: set[int] = set()
    modules = {name: getattr(package, name) for name in package.__all__}
    rooms = {name: value for name, value in modules.items() if inspect.ismodule(value)}
    for room, library in OPTIONAL_ROOMS.items():
        if importlib.util.find_spec(library) is not None:
            rooms[room] = importlib.import_module(f"{PACKAGE}.{room}")
    for room, module in rooms.items():
        for name in _public_names(module):
            value = getattr(module, name)
            documented = Documented(f"{PACKAGE}.{room}.{name}", value)
            for thing in (documented, *_members(documented)):
                if id(thing.value) not in seen:
                    seen.add(id(thing.value))
                    yield thing


def _public_names(module: Any) -> list[str]:
    """Its classes and functions, in order."""
    own = [name for name, value in vars(module).items() if _is_own(value, module.__name__)]
    names = getattr(module, "__all__", own)
    values = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return [n for n, value in values.items() if inspect.isclass(value) or inspect.isroutine(value)]


def _members(documented: Documented) -> Iterator[Documented]:
    """Public methods and properties of a class, those of its bases in the package included."""
    owner = documented.value
    if not inspect.isclass(owner):
        return
    for base in owner.__mro__:
        if not _is_own(base, PACKAGE):
            continue
        for name, raw in vars(base).items():
            path = f"{documented.path}.{name}"
            raw = _unbound(raw)
            if name.startswith("_") or raw is None:
                continue
            if isinstance(raw, (property, functools.cached_property)):
                function = raw.fget if isinstance(raw, property) else raw.func
                yield Documented(path, function, owner, True)
            elif inspect.isroutine(raw) or isinstance(raw, (classmethod, staticmethod)):
                yield Documented(path, inspect.unwrap(getattr(raw, "__func__", raw)), owner)


def _unbound(raw: Any) -> Any:
    """What a class holds under a name, out of the wrapper of scikit-learn; None of its own
    methods."""
    if type(raw).__module__.startswith("sklearn."):
        return getattr(raw, "fn", None)
    return raw


def _is_own(value: Any, module: str) -> bool:
    return str(getattr(value, "__module__", "")).startswith(module)


def _is_constructed(value: type) -> bool:
    """Whether people make its instances, as they do not of errors and protocols."""
    if issubclass(value, (BaseException, enum.Enum)):
        return False
    return not getattr(value, "_is_protocol", False)


def _raises(value: Any) -> bool:
    """Whether its own body refuses or raises something."""
    try:
        tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(value)))
    except (OSError, TypeError, SyntaxError):
        return False
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    nodes = [node for function in functions for node in ast.walk(function)]
    return any(
        (isinstance(node, ast.Raise) and node.exc is not None)
        or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refuse")
        for node in nodes
    )  # fmt: skip


def _is_error(name: str) -> bool:
    exceptions = importlib.import_module(f"{PACKAGE}.exceptions")
    builtins = importlib.import_module("builtins")
    known = getattr(exceptions, name, None) or getattr(builtins, name, None)
    return inspect.isclass(known) and issubclass(known, BaseException)


def main(rooms: list[str]) -> int:
    """Print what is missing and how much was looked at."""
    logging.disable(logging.WARNING)
    documented = [thing for thing in public_objects() if not rooms or thing.room in rooms]
    problems = [(thing.path, words) for thing in documented for words in thing.missing()]
    for path, words in problems:
        print(f"{path}: {words}")
    kinds = ("parameters", "attributes", "returns", "raises", "examples", *OWN_SECTIONS)
    counts = {kind: sum(kind in thing.sections for thing in documented) for kind in kinds}
    print(f"{len(documented)} docstrings: {len(problems)} problems; with {counts}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
