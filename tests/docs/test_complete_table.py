"""The complete table of the four papers: each name resolves, each test exists, the counts hold."""

import ast
import functools
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/reproduction/complete.md"
HEAD = ["item", "printed", "right?", "name to call", "test", "kind"]
KINDS = ("law", "number", "calls")
UNLINKED = ("right", "open")
VERDICTS = (*UNLINKED, "loose", "slip", "proof", "false")

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs docs/")


def sections():
    """Rows of each paper's table, and the line of its counts."""
    for part in PAGE.read_text().split("\n## ")[1:]:
        lines = part.splitlines()
        table = [line for line in lines if line.startswith("|")]
        cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]
        assert cells[0] == HEAD, lines[0]
        yield lines[0], cells[2:], part


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


@functools.cache
def defined(path):
    """Names of the tests of a file, those of a class with its name."""
    body = ast.parse((ROOT / "tests" / path).read_text()).body
    functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.ClassDef):
            inside = [each.name for each in node.body if isinstance(each, ast.FunctionDef)]
            functions |= {f"{node.name}::{name}" for name in inside}
    return functions


def resolve(text):
    """The object of a call such as `transfer.plan(alpha=)`, whose keywords it must take."""
    name, _, arguments = text.partition("(")
    parts = name.split(".")
    try:
        found, rest = importlib.import_module(f"hdp_fast.{parts[0]}"), parts[1:]
    except ModuleNotFoundError:
        found, rest = importlib.import_module("hdp_fast"), parts
    for position, part in enumerate(rest):
        if not hasattr(found, part) and inspect.ismodule(found):
            found = importlib.import_module(f"hdp_fast.{'.'.join(parts[: position + 2])}")
        else:
            found = getattr(found, part)
    keywords = re.findall(r"(\w+)=", arguments)
    taken = set(inspect.signature(found).parameters) if keywords else set()
    assert set(keywords) <= taken, text
    return found


def test_no_row_is_empty_and_every_word_is_of_the_legend():
    for paper, rows, _ in sections():
        for row in rows:
            assert len(row) == len(HEAD), row
            assert all(row), row
            assert row[2].split(":")[0] in VERDICTS, row
            assert row[2] in UNLINKED or "../theory/errata.md" in row[2], row
            assert row[5] in KINDS, row
        items = [row[0] for row in rows]
        assert len(set(items)) == len(items), paper


def test_every_name_resolves():
    for _, rows, _ in sections():
        for row in rows:
            names = quoted(row[3])
            assert names, row
            for name in names:
                if name.startswith(("benches/", "docs/")):
                    assert (ROOT / name).is_file(), name
                else:
                    resolve(name)


def test_every_test_exists():
    for _, rows, _ in sections():
        for row in rows:
            tests = quoted(row[4])
            assert tests, row
            for test in tests:
                path, name = test.split("::", 1)
                assert name.rpartition("::")[2].startswith("test_"), test
                assert name in defined(path), test


def counts(rows):
    kinds = Counter(row[5] for row in rows)
    tests = {test for row in rows for test in quoted(row[4])}
    words = ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS)
    return f"{len(rows)} rows, {len(tests)} tests: {words}."


def test_counts_are_those_that_the_page_prints():
    everything = []
    for paper, rows, text in sections():
        everything += rows
        print(paper, counts(rows))
        assert not rows or counts(rows) in text, f"{paper}: {counts(rows)}"
    head = PAGE.read_text().partition("\n## ")[0]
    print("all", counts(everything))
    assert not everything or f"All four: {counts(everything)}" in head, counts(everything)
