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


def test_errors_name_an_extra_that_brings_the_package(project):
    extras = project["project"]["optional-dependencies"]
    renamed, calls = {}, 0
    for path in sorted((ROOT / "python/hdp_fast").rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_PACKAGES":
                renamed = ast.literal_eval(node.value)
    for path in sorted((ROOT / "python/hdp_fast").rglob("*.py")):
        text = path.read_text()
        assert "pip install hdp-fast" not in text, f"{path}: fails until somebody publishes"
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            name, arguments = ast.unparse(node.func), list(node.args)
            skipped = {"load_optional": 0, "name_package": 1}.get(name)
            if skipped is None or path.name == "lazy.py":
                continue
            calls += 1
            module, _, *extra = arguments[skipped:]
            if not extra:
                continue
            requirements = extras[ast.literal_eval(extra[0])]
            text = ast.unparse(module)
            first = re.match(r"f?'(\w+)", text)
            packages = {package_of(line) for line in requirements}
            if first:
                wanted = renamed.get(first[1], first[1])
                assert package_of(wanted) in packages, f"{path}: {ast.unparse(node)}"
                assert wanted in requirements or ">" not in wanted
    assert calls >= 10


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
