"""Small mistakes in the core, compiled all at once: the variable HDP_FAST_MUTANT says which is on.

A mutant of a body becomes `(if crate::mutant::is(7) { mistake } else { as it was })`, so that a
hundred of them cost one build. What must be constant, patterns and the arguments of macros are
left as they are. The module `mutant` also notes which mutants a test reaches.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import tree_sitter
import tree_sitter_rust
from mutants import CORE, PACKAGE, ROOT, Mutant, number

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
SWAPS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"&&": "||", "||": "&&", "+": "-", "-": "+", "*": "/", "/": "*"},
}
SWAPPED_ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
NUMBERS = ("usize", "u8", "u32", "u64", "u128", "i32", "i64", "f32", "f64")
# What a function returns at once, by its type.
RETURNED = {
    "bool": ("true", "false"),
    **dict.fromkeys(NUMBERS, ("Default::default()",)),
    "Result<()>": ("Ok(())",),
    **{f"Result<{kind}>": ("Ok(Default::default())",) for kind in NUMBERS},
}
# What must be known to the compiler, and what the grammar does not look into.
CONSTANT = ("const_item", "static_item", "const_block", "array_type", "type_arguments")
OPAQUE = ("macro_invocation", "match_pattern")
DIGITS = r"^(0[xb])?([\da-f_]+?)(?=[ui]\d|usize|isize|$)"
SWITCH = """//! Which mutant is on, and which were reached.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static ON: OnceLock<u32> = OnceLock::new();
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

/// Whether the mutant is on.
#[inline(never)]
pub fn is(mutant: u32) -> bool {
    REACHED[mutant as usize].store(true, Relaxed);
    let on = || std::env::var("HDP_FAST_MUTANT").ok().and_then(|text| text.parse().ok());
    *ON.get_or_init(|| on().unwrap_or(u32::MAX)) == mutant
}

/// Whether the mutant was reached since this was asked.
#[unsafe(no_mangle)]
pub extern "C" fn hdp_fast_mutant_reached(mutant: u32) -> bool {
    REACHED.get(mutant as usize).is_some_and(|reached| reached.swap(false, Relaxed))
}
"""


def find_mutants(path: Path) -> list[Mutant]:
    """All mutants of a file of the core."""
    source = (ROOT / path).read_bytes()
    lines = source.decode().splitlines()
    mutants = []
    for node, place in walk(PARSER.parse(source).root_node):
        for start, end, after in mutate(node, source):
            line = node.start_point[0]
            last = (line + 1, node.end_point[0] + 1)
            before = source[start:end].decode()
            text = lines[line].strip()
            mutants.append(Mutant(path, line + 1, start, end, before, after, place, text, last))
    return number(mutants)


def walk(node: tree_sitter.Node, place: str = "") -> Iterator[tuple[tree_sitter.Node, str]]:
    """The nodes of functions that run, and the name of the function."""
    tests = False
    for child in node.named_children:
        if child.type == "attribute_item":
            tests |= "cfg(test)" in child.text.decode()
            continue
        inside = place
        if child.type in ("function_item", "impl_item", "mod_item", "trait_item"):
            name = child.child_by_field_name("name") or child.child_by_field_name("type")
            inside = f"{place}::{name.text.decode()}".removeprefix("::")
            constant = any(part.type == "function_modifiers" for part in child.children)
            if tests or (constant and child.type == "function_item"):
                tests = False
                continue
        tests = tests and child.type.endswith("comment")
        if child.type in (*CONSTANT, *OPAQUE) or child.type.endswith("_pattern"):
            continue
        yield child, inside
        yield from walk(child, inside)


def mutate(node: tree_sitter.Node, source: bytes) -> Iterator[tuple[int, int, str]]:
    """Where mistakes can be made, and what stands there then."""
    text = node.text.decode()
    parent = node.parent
    whole = node.start_byte, node.end_byte
    match node.type:
        case "binary_expression" | "compound_assignment_expr":
            operator = node.child_by_field_name("operator")
            swaps = SWAPS if node.type == "binary_expression" else SWAPPED_ASSIGNMENTS
            if other := swaps.get(operator.text.decode()):
                first, last = operator.start_byte, operator.end_byte
                head, tail = source[whole[0] : first], source[last : whole[1]]
                yield (*whole, f"{head.decode()}{other}{tail.decode()}")
        case "unary_expression" if text.startswith("!"):
            yield (*whole, text[1:])
        case "boolean_literal":
            yield (*whole, "false" if text == "true" else "true")
        case "integer_literal" if not is_constant(node, parent):
            yield (*whole, re.sub(DIGITS, raise_by_one, text))
        case "float_literal":
            digits = re.match(r"[\d._]+(e-?\d+)?", text)[0]
            value = float(digits.replace("_", ""))
            yield (*whole, f"{2 * value if value else 1.0!r}{text[len(digits) :]}")
        case "expression_statement" if is_call(node.named_children[0]):
            call = node.named_children[0]
            yield call.start_byte, call.end_byte, "()"
        case "function_item":
            returned = node.child_by_field_name("return_type")
            body = node.child_by_field_name("body")
            for value in RETURNED.get(returned.text.decode() if returned else "", ()):
                yield body.start_byte + 1, body.start_byte + 1, f"return {value};"


def is_constant(node: tree_sitter.Node, parent: tree_sitter.Node) -> bool:
    """Whether a number is the name of a field, or the length of an array."""
    if parent.type == "field_expression":
        return True
    length = parent.type == "array_expression" and parent.child_by_field_name("length")
    return bool(length) and length.start_byte == node.start_byte


def is_call(node: tree_sitter.Node) -> bool:
    while node.type == "try_expression":
        node = node.named_children[0]
    return node.type == "call_expression"


def raise_by_one(digits: re.Match[str]) -> str:
    base = {"0x": 16, "0b": 2}.get(digits[1], 10)
    return f"{int(digits[2].replace('_', ''), base) + 1}"


def write(
    mutants: list[Mutant],
) -> tuple[dict[Path, bytes], dict[Path, list[tuple[int, int, int]]]]:
    """The files of the core with all mutants, and which stretches of them are which mutant."""
    library = (ROOT / CORE / "lib.rs").read_bytes() + b"\npub mod mutant;\n"
    changed = {
        CORE / "lib.rs": library,
        CORE / "mutant.rs": SWITCH.replace("COUNT", str(len(mutants))).encode(),
    }
    stretches: dict[Path, list[tuple[int, int, int]]] = {}
    files: dict[Path, list[int]] = {}
    for index, mutant in enumerate(mutants):
        files.setdefault(mutant.path, []).append(index)
    for path, indices in files.items():
        # One letter for each byte: the places of mutants are counted in bytes.
        source = (ROOT / path).read_bytes().decode("latin-1")
        text, stretches[path] = switch(source, 0, len(source), indices, mutants, 0)
        changed[path] = text.encode("latin-1")
    return changed, stretches


def switch(
    source: str, start: int, end: int, indices: list[int], mutants: list[Mutant], at: int
) -> tuple[str, list[tuple[int, int, int]]]:
    """A stretch of a file with switches for those mutants, which lie in it, and where they are."""
    text, stretches, position = "", [], start
    rest = sorted(indices, key=lambda index: (mutants[index].start, -mutants[index].end, index))
    while rest:
        index, *rest = rest
        mutant = mutants[index]
        text += source[position : mutant.start]
        first = at + len(text)
        after = mutant.after.encode().decode("latin-1")
        if mutant.start == mutant.end:
            text += f" if crate::mutant::is({index}) {{ {after} }} "
        else:
            inner = [other for other in rest if mutants[other].start < mutant.end]
            rest = [other for other in rest if other not in inner]
            text += f"(if crate::mutant::is({index}) {{ {after} }} else {{ "
            body, more = switch(source, mutant.start, mutant.end, inner, mutants, at + len(text))
            text += f"{body} }})"
            stretches += more
        stretches.append((first, at + len(text), index))
        position = mutant.end
    return text + source[position:end], stretches


def build(
    tree: Path, target: Path, stretches: dict[Path, list[tuple[int, int, int]]]
) -> tuple[set[int], list[tuple[str, Path]]]:
    """Builds the tests of the core.

    Returns the mutants that do not compile; if all do, the name and program of each test.

    Raises:
        SystemExit: what does not compile belongs to no mutant.
    """
    command = ["cargo", "test", "--no-run", "--profile", "quick", "--package", "hdp-fast-core"]
    command += ["--lib", "--tests", "--message-format", "json", "--target-dir", str(target)]
    run = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    indices: set[int] = set()
    others = []
    for message in (line.get("message") or {} for line in lines):
        if message.get("level") != "error" or not message["spans"]:
            continue
        spans = [span for span in message["spans"] if span["is_primary"]] or message["spans"]
        around = {innermost(span, stretches.get(Path(span["file_name"]), [])) for span in spans}
        indices |= around - {None}
        others += [message["rendered"]] if around <= {None} else []
    if run.returncode and not indices:
        raise SystemExit("\n".join(others) or run.stderr)
    built = [line for line in lines if line.get("executable")]
    return indices, [(line["target"]["name"], Path(line["executable"])) for line in built]


def build_module(tree: Path, target: Path) -> None:
    """Builds the compiled module, and puts it into the tree."""
    command = ["cargo", "build", "--profile", "quick", "--package", "hdp-fast-py"]
    run = [*command, "--target-dir", str(target)]
    if (built := subprocess.run(run, cwd=tree, capture_output=True, text=True)).returncode:
        raise SystemExit(built.stderr)
    shutil.copy2(target / "quick" / "lib_core.so", tree / PACKAGE / "_core.abi3.so")


def innermost(span: dict, stretches: list[tuple[int, int, int]]) -> int | None:
    around = [
        (end - start, index)
        for start, end, index in stretches
        if start < span["byte_end"] and span["byte_start"] < end
    ]
    return min(around)[1] if around else None
