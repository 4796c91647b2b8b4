"""The modules of the package as a graph: rooms, layers, circles, and what a newcomer sees first.

Run as a program it prints the figures of the package, or of another folder (an older commit's):
python tests/support/structure.py [FOLDER] [--functions 20] [--seed 1]
"""

from __future__ import annotations

import argparse
import ast
import random
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "hdp_fast"
# Exact fractions that tests and benches compare with; nothing of the package uses them.
REFERENCE = "reference"
Graph = Mapping[str, set[str]]


class Module:
    """A file of the package.

    Attributes:
        name: its dotted name below the package; "" of the package itself.
        is_face: whether it is an __init__.
        room: the folder or file at the top that it is in.
    """

    def __init__(self, path: Path, package: Path):
        parts = path.relative_to(package).with_suffix("").parts
        self.path, self.is_face = path, parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_face else parts)
        self.room = parts[0]

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.path.read_text())

    def count_docstring_lines(self) -> int:
        """How many lines its docstrings have."""
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        owners = (node for node in ast.walk(self.tree) if isinstance(node, kinds))
        texts = (node.body[0] for node in owners if ast.get_docstring(node) is not None)
        return sum((text.end_lineno or text.lineno) - text.lineno + 1 for text in texts)

    def count_lines(self) -> int:
        """How many lines it has without its docstrings."""
        return len(self.path.read_text().splitlines()) - self.count_docstring_lines()

    def imported(self) -> Iterator[tuple[str, str]]:
        """(dotted module, name) of all that is imported from this package, for types too."""
        base = self.name.split(".") if self.name else []
        base = base if self.is_face else base[:-1]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                start = base[: len(base) - node.level + 1]
                module = ".".join([*start, *(node.module.split(".") if node.module else [])])
                yield from ((module, alias.name) for alias in node.names)


def modules_of(package: Path) -> dict[str, Module]:
    """All files of a package by their dotted names."""
    modules = (Module(path, package) for path in sorted(package.rglob("*.py")))
    return {module.name: module for module in modules}


def targets(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """The modules that it imports, or imports from; the package's own face is lazy, and none."""
    origins = set()
    for origin, name in module.imported():
        submodule = f"{origin}.{name}".lstrip(".")
        origins.add(submodule if submodule in modules or submodule == "_core" else origin)
    return origins - {"", module.name}


def arrows(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Who imports whom, module by module."""
    inside = {name: one for name, one in modules.items() if name and one.room != REFERENCE}
    return {name: targets(module, modules) & set(inside) for name, module in inside.items()}


def between_rooms(graph: Graph) -> dict[str, set[str]]:
    """The same between rooms."""
    rooms: dict[str, set[str]] = {}
    for name, others in graph.items():
        room = name.split(".")[0]
        rooms.setdefault(room, set()).update(other.split(".")[0] for other in others)
    return {room: others - {room} for room, others in rooms.items()}


def circle(graph: Graph) -> list[str]:
    """A path that leads back to its start; empty if there is none."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name not in done:
            for other in sorted(graph.get(name, ())):
                if way := visit(other, [*path, name]):
                    return way
            done.add(name)
        return []

    return next((way for name in graph if (way := visit(name, []))), [])


def floors(graph: Graph) -> int:
    """The number of modules on the longest way down; of a graph without circles."""
    depth: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in depth:
            depth[name] = 0
            depth[name] = 1 + max(map(height, graph.get(name, ())), default=0)
        return depth[name]

    return max(map(height, graph))


def shown_at_the_top(package: Path) -> list[str]:
    """What a newcomer sees in the folder."""
    hidden = ("__pycache__", "_core.abi3")
    return sorted(path.name for path in package.iterdir() if not path.name.startswith(hidden))


def import_time(package: Path, repeats: int = 7) -> float:
    """Milliseconds of importing the package after numpy, the median of fresh processes."""
    program = (
        f"import sys, time, numpy; sys.path.insert(0, {str(package.parent)!r});"
        "start = time.perf_counter(); import hdp_fast; print(1e3 * (time.perf_counter() - start))"
    )
    command = [sys.executable, "-c", program]
    times = [float(subprocess.check_output(command)) for _ in range(repeats)]
    return statistics.median(times)


def functions(modules: Mapping[str, Module]) -> Iterator[str]:
    """Every function and method, with its module and arguments."""
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                arguments = ", ".join(argument.arg for argument in node.args.args)
                yield f"{module.name}.{node.name}({arguments})"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=PACKAGE)
    parser.add_argument("--functions", type=int, default=0, help="how many to draw and show")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    modules = modules_of(options.folder)
    graph = arrows(modules)
    rooms = between_rooms(graph)
    files = [module for module in modules.values() if module.room != REFERENCE]
    lines = {module.name: module.count_lines() for module in files}
    spoken = sum(module.count_docstring_lines() for module in files)
    print(f"names at the top:       {len(shown_at_the_top(options.folder))}")
    total = f"{sum(lines.values()):,} lines and {spoken:,} of docstrings"
    print(f"modules:                {len(files)}, {total}")
    print(f"longest file:           {max(lines.values())} lines, {max(lines, key=lines.get)}")
    print(f"arrows, modules:        {sum(map(len, graph.values()))}")
    print(f"arrows, rooms:          {sum(map(len, rooms.values()))} between {len(rooms)} rooms")
    print(f"floors, modules:        {floors(graph)}")
    print(f"floors, rooms:          {floors(rooms)}")
    print(f"circle, modules:        {' -> '.join(circle(graph)) or 'none'}")
    print(f"circle, rooms:          {' -> '.join(circle(rooms)) or 'none'}")
    print(f"import after numpy:     {import_time(options.folder):.0f} ms")
    drawn = sorted(functions({module.name: module for module in files}))
    for name in sorted(random.Random(options.seed).sample(drawn, options.functions)):
        print(f"  {name}")


if __name__ == "__main__":
    main()
