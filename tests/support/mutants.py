"""Small mistakes in the package, one at a time: which tests of the quick part see them?

    make mutants MUTANTS=60 SEED=1

draws so many places of python/hdp_fast, changes one operator, number, word True or False, call or
raise there, in a copy of the repository, and runs the quick part of the tests: those of the same
package first, then all. A mutant that lives is either a test that is missing or a line that could
be left out, and is looked at by a person. Nothing is timed, and the draw depends on the seed and
on the text of the package alone.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = Path("python/hdp_fast")
COPIED = ("python", "tests", "benches", "docs", "examples", "rust")
SWAPS = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult},
}


class Mutant(NamedTuple):
    """A stretch of a file, and what stands there instead."""

    path: Path
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        place = f"{self.path.relative_to(PACKAGE)}:{self.line}"
        return f"{place}: {shorten(self.before)} -> {shorten(self.after)}"

    def write(self, tree: Path) -> None:
        text = (ROOT / self.path).read_bytes()
        mutated = text[: self.start] + self.after.encode() + text[self.end :]
        (tree / self.path).write_bytes(mutated)


def shorten(text: str) -> str:
    return re.sub(r"\s+", " ", text)[:60]


def find_mutants(path: Path) -> list[Mutant]:
    """All mutants of a file."""
    source = (ROOT / path).read_text()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    mutants = []
    for node in walk(ast.parse(source)):
        if (changed := mutate(node)) is None:
            continue
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source.encode()[start:end].decode()
        after = changed if isinstance(changed, str) else f"({ast.unparse(changed)})"
        mutants.append(Mutant(path, node.lineno, start, end, before, after))
    return mutants


def walk(node: ast.AST):
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


def draw(count: int, seed: int, under: str) -> list[Mutant]:
    """Some of all mutants, in the order of their places."""
    paths = sorted(
        (ROOT / PACKAGE / under).rglob("*.py") if under else (ROOT / PACKAGE).rglob("*.py")
    )
    mutants = [mutant for path in paths for mutant in find_mutants(path.relative_to(ROOT))]
    return sorted(random.Random(seed).sample(mutants, min(count, len(mutants))))


def tests_of(path: Path) -> list[list[str]]:
    """The tests that are tried on a mutant of a file, in turn: of its package, then all."""
    stem = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    own = [str(place) for place in (Path("tests") / stem, Path(f"tests/test_{stem}.py"))]
    own = [place for place in own if (ROOT / place).exists()]
    return [
        *([own] if own else []),
        ["tests", "--ignore=tests/statistical", "--ignore=tests/browser"],
    ]


def killer(tree: Path, tests: list[str], workers: str) -> str | None:
    """The first test that fails; None if none does."""
    variables = {**os.environ, "PYTHONPATH": str(tree / "python"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "--quick", "-q", "-x", "-p", "no:cacheprovider"]
    command += ["-n", workers, "--dist", "worksteal", *tests]
    run = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True)
    if not run.returncode:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) ([^ \n]+)", run.stdout, re.MULTILINE)
    return failed[1].removeprefix("tests/") if failed else "all: the package is not imported"


def copy_tree(place: Path) -> None:
    for name in COPIED:
        ignore = shutil.ignore_patterns("__pycache__", "target")
        shutil.copytree(ROOT / name, place / name, ignore=ignore)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, place / path.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--under", default="", help="a package of hdp_fast, such as transfer")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--own", action="store_true", help="try the tests of the package alone")
    arguments = parser.parse_args()
    alive = []
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place)
        copy_tree(tree)
        for mutant in draw(arguments.mutants, arguments.seed, arguments.under):
            mutant.write(tree)
            stages = tests_of(mutant.path)[: 1 if arguments.own else None]
            killers = (killer(tree, tests, arguments.workers) for tests in stages)
            killed = next((test for test in killers if test), None)
            shutil.copy2(ROOT / mutant.path, tree / mutant.path)
            print(f"{'killed' if killed else 'LIVES ':7} {mutant}   {killed or ''}", flush=True)
            alive += [] if killed else [mutant]
    print(f"{arguments.mutants - len(alive)} of {arguments.mutants} mutants are seen")


if __name__ == "__main__":
    main()
