"""The rules that keep the tree readable: layers, faces, circles, `unsafe`, docstrings."""

import ast
import importlib
import pkgutil
import re
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from cases import each_case
from docstrings import public_objects
from structure import PACKAGE, REFERENCE, circle, modules_of, shown_at_the_top, targets

import hdp_fast

ROOT = Path(__file__).parents[1]
CORE = ROOT / "rust" / "core" / "src"
DEVICE = ROOT / "rust" / "device" / "src"
GLUE = ROOT / "rust" / "py" / "src"

# What stands on a line may import from its own line and from those above it.
RUST_LAYERS = [
    {"error", "params", "memory", "golden"},
    {"noise", "simd", "run", "pool"},
    {"gf2", "linear", "score", "sgd", "additive", "statistics", "accounting", "weights"},
    {"parity", "local", "stability", "adaptation"},
]
DEVICE_LAYERS = [
    {"error"},
    {"json", "probability", "text"},
    {"signature", "stage", "features", "randomizer"},
    {"models"},
    {"query"},
    {"form"},
    {"question"},
    {"device"},
    {"wasm"},
]
PYTHON_LAYERS = [
    {"_core", "exceptions"},
    {"_support"},
    {"accounting", "gf2", "weights"},
    {"record"},
    {"budget"},
    {"noise", "data"},
    {"learners", "stability", "statistics"},
    {"local", "labels", "adaptation"},
    {"parity", "transfer", "collection"},
    {"advice"},
    {"audit"},
    {"sklearn"},
    {"plotting"},
    {"cli", "bench"},
    {"__main__"},
]
MOST_NAMES_AT_THE_TOP = 32
# What belongs to a class and its bases, and what sets fields of a frozen one.
OF_A_CLASS = {"self", "cls", "super()", "type(self)"}
SETTERS = {"store", "setattr", "object.__setattr__"}
# Named tuples and sys name these parts of their faces like private ones.
PUBLIC_IN_SPITE_OF_THEIR_NAMES = {"_asdict", "_fields", "_getframe", "_make", "_replace"}
# Who takes one of these draws or spends: its docstring states a guarantee.
PRIVATE_PARAMETERS = {"random_state", "budget"}

# What commands take of other rooms past their faces.
COMMANDS_MAY_TAKE = {
    *(f"advice.sizes.{name}" for name in ("Learner", "Source", "Target")),
    "collection.questions",
    "collection.reports.REASONS",
    *(f"labels.ensemble.{name}" for name in ("note_flips", "require_records")),
    *(f"labels.pool.{name}" for name in ("PoolTask", "choose_members", "population_of")),
    "labels.saved_files.require_free",
    "learners.logistic.LogisticLearner",
    "local.estimation.tell_doubts",
}
# Their classes: arguments and words, places of files, and pages.
CLASSES_OF_COMMANDS = {
    *("ExitCode", "Formatter", "Parser", "Planner", "Verb", "VerbHelp"),
    *("Block", "LabelPlaces", "LabelTask", "Places", "Request", "Watch"),
    *("Bar", "Bin", "ChartRow", "Figure", "Interval", "Page", "PageTable", "Scale", "Section"),
}

pytestmark = pytest.mark.skipif(not CORE.is_dir(), reason="needs the source tree")


def ranks(layers):
    return {name: rank for rank, names in enumerate(layers) for name in names}


def refuse_circles(imports):
    """imports: from the name of a module to those that it imports, its own name no matter."""
    way = circle({name: targets - {name} for name, targets in imports.items()})
    assert not way, f"circle: {' -> '.join(way)}"


RUST_RANK, PYTHON_RANK = ranks(RUST_LAYERS), ranks(PYTHON_LAYERS)
DEVICE_RANK = ranks(DEVICE_LAYERS)


# Rust --------------------------------------------------------------------------------------------


def code(path):
    """A Rust file without comments."""
    return re.sub(r"//.*", "", path.read_text())


def code_that_runs(path):
    """The same without the tests at its end."""
    return code(path).split("#[cfg(test)]")[0]


@each_case("path", sorted(CORE.rglob("*.rs")), ids=lambda path: str(path.name))
def test_rust_imports_only_from_lower_layers(path):
    stem = path.relative_to(CORE).parts[0].removesuffix(".rs")
    if stem == "lib":
        return
    for imported in re.findall(r"\bcrate::\{?(\w+)", code(path)):
        assert RUST_RANK[imported] <= RUST_RANK[stem], f"{stem} must not import {imported}"


def test_every_core_module_has_a_layer():
    modules = {path.name.removesuffix(".rs") for path in CORE.iterdir()}
    assert modules - {"lib"} == set(RUST_RANK)


def test_no_room_of_the_core_imports_itself_by_way_of_others():
    imports = {name: set() for name in RUST_RANK}
    for path in CORE.rglob("*.rs"):
        room = path.relative_to(CORE).parts[0].removesuffix(".rs")
        imports.setdefault(room, set()).update(
            re.findall(r"\bcrate::\{?(\w+)", code_that_runs(path))
        )
    refuse_circles(imports)


@each_case("room", sorted(path.name for path in CORE.iterdir() if path.is_dir()))
def test_no_file_of_a_room_imports_itself_by_way_of_others(room):
    imports = {
        path.stem: set(re.findall(r"\bsuper::\{?(\w+)", code_that_runs(path)))
        for path in (CORE / room).glob("*.rs")
        if path.stem != "mod"
    }
    refuse_circles(imports)


def test_the_device_imports_only_from_lower_layers():
    files = {path.stem: path for path in DEVICE.glob("*.rs") if path.stem != "lib"}
    assert set(files) == set(DEVICE_RANK)
    for stem, path in files.items():
        for imported in re.findall(r"\bcrate::(\w+)", code_that_runs(path)):
            assert DEVICE_RANK[imported] < DEVICE_RANK[stem], f"{stem} must not import {imported}"


def test_the_device_needs_little():
    """No library but those of signatures, hashes and functions; in a browser, an allocator."""
    manifest = tomllib.loads((DEVICE.parent / "Cargo.toml").read_text())
    assert set(manifest["dependencies"]) == {"ed25519-dalek", "libm", "sha2"}
    assert "#![no_std]" in (DEVICE / "lib.rs").read_text()


def test_unsafe_stands_only_under_simd_and_at_the_door_of_the_device():
    allowed = {*(CORE / "simd").iterdir(), DEVICE / "wasm.rs"}
    elsewhere = [path for path in (ROOT / "rust").rglob("*.rs") if path not in allowed]
    assert elsewhere
    assert [path for path in elsewhere if re.search(r"\bunsafe\b", code(path))] == []


def test_core_knows_no_python_and_one_room_of_the_glue_knows_numpy():
    manifest = (ROOT / "rust" / "core" / "Cargo.toml").read_text()
    assert not re.search(r"\b(pyo3|numpy)\b", manifest)
    naming = {path.parent for path in GLUE.rglob("*.rs") if re.search(r"\bnumpy::", code(path))}
    assert naming == {GLUE / "array"}


def test_the_compiled_module_imports_only_the_exceptions_of_python():
    imported = [
        name
        for path in GLUE.rglob("*.rs")
        for name in re.findall(r'import\("(hdp_fast[\w.]*)', code(path))
    ]
    assert set(imported) == {"hdp_fast.exceptions"}


# Python ------------------------------------------------------------------------------------------


MODULES = modules_of(PACKAGE)
INSIDE = {name: module for name, module in MODULES.items() if name and module.room != REFERENCE}


@each_case("module", INSIDE.values(), ids=INSIDE)
def test_python_imports_only_from_lower_layers(module):
    for target in targets(module, MODULES):
        room = target.split(".")[0]
        if room == REFERENCE:
            continue  # a rule of its own, below
        assert PYTHON_RANK[room] <= PYTHON_RANK[module.room], f"{module.name} imports {target}"


def test_every_room_has_a_layer():
    assert {module.room for module in INSIDE.values()} | {"_core"} == set(PYTHON_RANK)


def test_no_module_imports_itself_by_way_of_others():
    refuse_circles({name: targets(module, MODULES) for name, module in INSIDE.items()})


def test_no_private_name_crosses_a_file():
    public = {"_core", "__version__", "_support"}
    for module in MODULES.values():
        crossing = {name for _, name in module.imported() if name.startswith("_")}
        assert crossing <= public, module.name


def past_the_faces(room):
    """(module, name) of all that a room imports of others, but not from their public faces."""
    rooms = {module.room for module in MODULES.values() if "." in module.name or module.is_face}
    for module in MODULES.values():
        for origin, name in module.imported() if module.room == room else ():
            other = origin.partition(".")[0]
            if other not in rooms - {room, "_support", ""}:
                continue
            if name not in importlib.import_module(f"hdp_fast.{other}").__all__:
                yield origin, name


def test_a_command_computes_nothing_that_the_library_does_not_offer():
    """What it takes of other rooms stands on their faces, but for how files are read and written,
    and the few names listed here: fewer may be left, and none may come."""
    names = {f"{origin}.{name}" for origin, name in past_the_faces("cli")}
    assert {name for name in names if not name.startswith("data.")} <= COMMANDS_MAY_TAKE
    files = {"arrow", "codebook", "column_kinds", "columns", "delimited", "files", "goal"}
    files |= {"reading", "sources", "table"}
    assert {name.split(".")[1] for name in names if name.startswith("data.")} <= files


def test_a_command_has_no_class_that_computes():
    """Its classes are of words, places and pages; numpy is for coins and for tables of text."""
    classes = {
        node.name
        for module in MODULES.values()
        if module.room == "cli"
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    }
    assert classes == CLASSES_OF_COMMANDS


def names_of_classes(tree):
    """The private names that the classes of a file define, in their bodies or on self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                yield getattr(part, "name", None)
                targets = getattr(part, "targets", [getattr(part, "target", None)])
                yield from (target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if ast.unparse(node.value) in OF_A_CLASS:
                yield node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in SETTERS:
            yield from (keyword.arg for keyword in node.keywords)
            yield from (part.value for part in node.args if isinstance(part, ast.Constant))


def crossing_attributes(tree, compiled):
    """Private attributes that are asked of something whose class stands in another file."""
    known = {*names_of_classes(tree), *compiled, *PUBLIC_IN_SPITE_OF_THEIR_NAMES}
    for node in ast.walk(tree):
        private = isinstance(node, ast.Attribute) and re.match("_[^_]", node.attr)
        # What self has may come from a base class in another file.
        if private and ast.unparse(node.value) not in OF_A_CLASS and node.attr not in known:
            yield ast.unparse(node)


def test_no_private_attribute_crosses_a_file():
    compiled = re.findall(r"\b_[A-Za-z]\w*", (PACKAGE / "_core.pyi").read_text())
    crossing = {
        name: attributes
        for name, module in MODULES.items()
        if (attributes := list(crossing_attributes(module.tree, compiled)))
    }
    assert crossing == {}


@pytest.mark.parametrize(
    ("text", "crossing"),
    [
        ("label._json()", ["label._json"]),
        ("class A:\n    def f(self, b):\n        return b._g(self._g)", ["b._g"]),
        ("class A:\n    def _g(self, b):\n        return b._g()", []),
        ("class A:\n    def f(self, b):\n        self._g = 1\n        return b._g", []),
        ("def _json():\n    return label._json()", ["label._json"]),
        ("pair._replace(a=1)", []),
    ],
)
def test_crossing_attributes_are_seen(text, crossing):
    assert list(crossing_attributes(ast.parse(text), [])) == crossing


def test_the_rooms_at_the_top_can_be_read_in_a_minute():
    assert len(shown_at_the_top(PACKAGE)) <= MOST_NAMES_AT_THE_TOP


@each_case("name", [name for name in MODULES if MODULES[name].is_face])
def test_a_face_is_a_docstring_imports_and_a_list(name):
    """And the table of what is loaded on first use, with its two functions."""
    allowed = {"__all__", "__dir__", "(__getattr__, __dir__)"}
    for node in MODULES[name].tree.body[1:]:
        text = ast.unparse(node)
        lazy = text.startswith("if TYPE_CHECKING:\n")
        logs = not name and text.startswith("logging.getLogger(__name__).")
        listed = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in allowed
        imported = isinstance(node, ast.ImportFrom | ast.Import)
        assert imported or listed or lazy or logs, text[:80]


@each_case("name", sorted({path.stem for path in (ROOT / "docs" / "reference").glob("*.md")}))
def test_a_module_completes_its_public_names_alone(name):
    module = importlib.import_module("hdp_fast" if name == "index" else f"hdp_fast.{name}")
    assert dir(module) == sorted(module.__all__)


def test_no_module_hides_a_function_or_a_package():
    """Where a submodule is named like a public name of its face, importing one hides the other."""
    rooms = {module.room for module in INSIDE.values()}
    for name, module in MODULES.items():
        parent, _, leaf = name.rpartition(".")
        if not parent or module.room == REFERENCE:
            continue
        assert leaf not in rooms, f"{name} is named like a package at the top"
        face = importlib.import_module(f"hdp_fast.{parent}")
        submodule = importlib.import_module(f"hdp_fast.{name}")
        assert getattr(face, leaf, submodule) is submodule, f"{name} hides a name of {parent}"


def test_only_benches_and_tests_know_the_reference():
    for module in INSIDE.values():
        assert module.room == "bench" or not any(
            target.startswith(REFERENCE) for target in targets(module, MODULES)
        ), module.name


def test_reference_imports_nothing_of_the_package():
    for module in MODULES.values():
        if module.room == REFERENCE:
            assert all(target.startswith(REFERENCE) for target in targets(module, MODULES)), (
                module.name
            )


def test_layers_stand_in_one_order():
    assert all(lower.isdisjoint(upper) for lower, upper in pairwise(PYTHON_LAYERS))


# Docstrings --------------------------------------------------------------------------------------

PUBLIC = {documented.path: documented for documented in public_objects()}


def test_rooms_that_need_a_library_are_looked_at():
    pytest.importorskip("sklearn", minversion="1.6")
    methods = {path for path in PUBLIC if path.startswith("hdp_fast.sklearn.")}
    assert "hdp_fast.sklearn.PrivateStudentClassifier.predict_proba" in methods
    assert not any("_request" in path for path in methods)


@each_case("path", PUBLIC)
def test_a_generator_reads_every_public_docstring(path):
    assert list(PUBLIC[path].missing()) == []


@each_case("path", PUBLIC)
def test_what_draws_or_spends_states_a_guarantee(path):
    documented = PUBLIC[path]
    draws = PRIVATE_PARAMETERS & set(documented.parameters)
    assert not draws or path.endswith(".record") or "Guarantee" in documented.sections


def test_every_module_says_what_it_is_for():
    for module in pkgutil.walk_packages(hdp_fast.__path__, "hdp_fast."):
        if module.name not in {"hdp_fast._core", "hdp_fast.__main__"}:
            assert importlib.import_module(module.name).__doc__, module.name


def test_runtime_depends_on_numpy_alone():
    allowed = {"numpy", "hdp_fast", *sys.stdlib_module_names}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, path.name
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert node.module.split(".")[0] in allowed, path.name
