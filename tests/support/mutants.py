"""Small mistakes in the package and in the core: what they are, and which are drawn.

A mutant changes one operator, number, word True or False, call, raise or returned value.
`mutant_runs.py` asks the tests about them.

The draw goes by a hash of the seed and of what a mutant is: its file, function, line of text and
change. So an edit elsewhere draws the same ones again, and a mutant that a list names is found
wherever its line has moved.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = Path("python/hdp_fast")
CORE = Path("rust/core/src")
# What guarantees rest on, and what people read as results.
STEMS = ("accounting", "budget", "stability", "noise", "statistics", "weights", "transfer")
SWAPS = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Mutant(NamedTuple):
    """A stretch of a file, and what stands there instead.

    `place` is the function around it, `text` its line, `nth` which of equal ones it is; `lines`
    are those of its statement, whose tests are asked.
    """

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str
    place: str
    text: str
    lines: tuple[int, int]
    nth: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {shorten(self.before)} -> {shorten(self.after)}"

    @property
    def of(self) -> str:
        """What it is a mutant of."""
        return "package" if self.path.is_relative_to(PACKAGE) else "core"

    @property
    def stem(self) -> str:
        """The folder or file of its package or crate."""
        top = PACKAGE if self.of == "package" else CORE
        return self.path.relative_to(top).parts[0].split(".")[0]

    @property
    def identity(self) -> tuple[str, ...]:
        """What it is, wherever its line stands."""
        change = shorten(self.before, 200), shorten(self.after, 200)
        return (str(self.path), self.place, self.text, *change, str(self.nth))

    def write(self, tree: Path) -> None:
        text = (ROOT / self.path).read_bytes()
        mutated = text[: self.start] + self.after.encode() + text[self.end :]
        (tree / self.path).write_bytes(mutated)


def shorten(text: str, letters: int = 60) -> str:
    return re.sub(r"\s+", " ", text)[:letters]


def number(mutants: list[Mutant]) -> list[Mutant]:
    """The mutants of a file, where those that are equal but for their place have a number."""
    seen: Counter[tuple[str, ...]] = Counter()
    numbered = []
    for mutant in mutants:
        numbered.append(mutant._replace(nth=seen[mutant.identity]))
        seen[mutant.identity] += 1
    return numbered


def find_mutants(path: Path) -> list[Mutant]:
    """All mutants of a file of the package."""
    source = (ROOT / path).read_text()
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    tree = ast.parse(source)
    around = places(tree)
    mutants = []
    for node in walk(tree):
        if (changed := mutate(node)) is None:
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source.encode()[start:end].decode()
        after = changed if isinstance(changed, str) else f"({ast.unparse(changed)})"
        text = lines[node.lineno - 1].strip()
        where = around[node]
        mutants.append(
            Mutant(path, node.lineno, start, end, before, after, where[0], text, where[1])
        )
    return number(mutants)


def places(tree: ast.AST) -> dict[ast.AST, tuple[str, tuple[int, int]]]:
    """The function around each node, and the first and last line of its statement."""
    around: dict[ast.AST, tuple[str, tuple[int, int]]] = {}

    def visit(node: ast.AST, name: str, lines: tuple[int, int]) -> None:
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None) or getattr(node, "cases", None)
            last = line_of(body[0]) - 1 if body else node.end_lineno
            lines = (node.lineno, max(node.lineno, last))
        around[node] = (name, lines)
        if isinstance(node, FUNCTIONS):
            name = f"{name}.{node.name}".lstrip(".")
        for child in ast.iter_child_nodes(node):
            visit(child, name, lines)

    visit(tree, "", (1, 1))
    return around


def line_of(node: ast.AST) -> int:
    return node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no docstrings, annotations, lists of names, or overloads."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and any(
            ast.unparse(decorator) == "overload" for decorator in child.decorator_list
        ):
            continue
        if isinstance(child, ast.Assign) and ast.unparse(child.targets[0]) == "__all__":
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        if isinstance(child, ast.JoinedStr | ast.arg) or is_annotation(child, node):
            continue
        yield child
        yield from walk(child)


def is_annotation(child: ast.AST, node: ast.AST) -> bool:
    return child in (getattr(node, "annotation", None), getattr(node, "returns", None))


def mutate(node: ast.AST) -> ast.AST | str | None:
    """The node with one mistake; None where there is none to be made."""
    changed = copy.copy(node)
    match node:
        case ast.Compare(ops=[first, *others]) if type(first) in SWAPS:
            changed.ops = [SWAPS[type(first)](), *others]
        case ast.BoolOp(op=op) | ast.BinOp(op=op) if type(op) in SWAPS and not is_text(node):
            changed.op = SWAPS[type(op)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Constant(value=bool(value)):
            return str(not value)
        case ast.Constant(value=int(value)):
            return f"{value + 1}"
        case ast.Constant(value=float(value)):
            return f"{2 * value if value else 1.0!r}"
        case ast.Expr(value=ast.Call()) | ast.Raise():
            return "pass"
        case _:
            return None
    return changed


def is_text(node: ast.AST) -> bool:
    return any(isinstance(part, ast.JoinedStr) for part in ast.walk(node))


def find(path: Path) -> list[Mutant]:
    """All mutants of a file of the package, or of the core."""
    if path.suffix == ".py":
        return find_mutants(path)
    import rust_mutants

    return rust_mutants.find_mutants(path)


def all_mutants(stems: tuple[str, ...], of: str = "package") -> list[Mutant]:
    """Every mutant of these packages, or of these folders of the core."""
    top, ending = (CORE, ".rs") if of == "core" else (PACKAGE, ".py")
    paths = []
    for stem in stems:
        place = ROOT / top / stem
        paths += sorted(place.rglob(f"*{ending}")) if place.is_dir() else []
        paths += [alone] if (alone := place.with_suffix(ending)).exists() else []
    return [mutant for path in paths for mutant in find(path.relative_to(ROOT))]


def rank(mutant: Mutant, seed: int) -> bytes:
    """Where a seed puts a mutant in the order of the draw."""
    return hashlib.sha256("\0".join((str(seed), *mutant.identity)).encode()).digest()


def draw(mutants: list[Mutant], count: int, seed: int) -> list[Mutant]:
    """Some of all mutants, as many of each package where it has them, in a random order."""
    stems: dict[str, list[Mutant]] = {}
    for mutant in sorted(mutants, key=lambda mutant: rank(mutant, seed)):
        stems.setdefault(mutant.stem, []).append(mutant)
    drawn: list[Mutant] = []
    for place, stem in enumerate(sorted(stems, key=lambda stem: (len(stems[stem]), stem))):
        drawn += stems[stem][: (count - len(drawn)) // (len(stems) - place)]
    return sorted(drawn, key=lambda mutant: rank(mutant, seed))
