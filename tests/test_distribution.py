"""What is published with the code: extras and the errors that name them."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"

pytestmark = pytest.mark.skipif(not PYPROJECT.exists(), reason="needs the repository")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(PYPROJECT.read_text())


def package_of(requirement):
    return re.match(r"[\w-]+", requirement)[0]


def calls_of(tree, places):
    """The arguments from the module on, of each call of a function that names what is missing."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            place = places.get(node.func.id)
            if place is not None:
                yield node, node.args[place:]


def test_errors_name_an_extra_that_brings_the_package(project):
    extras = project["project"]["optional-dependencies"]
    package = ROOT / "python/hdp_fast"
    lazy = (package / "_support/lazy.py").read_text()
    renamed = ast.literal_eval(re.search(r"^_PACKAGES = (\{.*\})$", lazy, re.MULTILINE)[1])
    seen = 0
    for path in sorted(package.rglob("*.py")):
        text = path.read_text()
        assert "pip install hdp-fast" not in text, f"{path}: fails until somebody publishes"
        if path.name == "lazy.py" or not re.search(r"load_optional\(|name_package\(", text):
            continue
        for node, (module, _, *extra) in calls_of(
            ast.parse(text), {"load_optional": 0, "name_package": 1}
        ):
            seen += 1
            where = f"{path}:{node.lineno}"
            name = re.match(r"f?'(\w+)", ast.unparse(module))
            if extra and name:
                wanted = renamed.get(name[1], name[1])
                requirements = extras[ast.literal_eval(extra[0])]
                assert package_of(wanted) in map(package_of, requirements), where
                assert wanted in requirements or ">" not in wanted, where
    assert seen >= 10


def test_the_extra_all_is_the_others(project):
    extras = dict(project["project"]["optional-dependencies"])
    (line,) = extras.pop("all")
    assert line == f"hdp-fast[{','.join(extras)}]"
    makefile = (ROOT / "Makefile").read_text()
    assert f"EXTRAS := {' '.join(extras)}\n" in makefile


def test_developers_tools_are_no_extras(project):
    extras = project["project"]["optional-dependencies"]
    of_users = {package_of(line) for lines in extras.values() for line in lines}
    tools = {"pytest", "ruff", "mypy", "maturin", "mkdocs-material", "opendp", "playwright"}
    assert not of_users & tools
    assert sum(len(lines) for lines in extras.values()) <= 12
