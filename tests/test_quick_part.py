"""The quick part of the tests leaves out what is marked, and no kind of evidence with it."""

from pathlib import Path

import pytest
import quick_part

TESTS = """
import pytest

@pytest.mark.thorough({mark})
@pytest.mark.parametrize("case", list("abcde"))
def test_family(case):
    pass

@pytest.mark.thorough(beside="test_other")
def test_left():
    pass

def test_other():
    pass
"""


def run(path, mark, *options):
    """The names of the tests that a run of its own takes."""
    (path / f"test_{path.name}.py").write_text(TESTS.format(mark=mark))
    (path / "pytest.ini").write_text("[pytest]\nmarkers = thorough: as here\n")
    taken = []

    class Part:
        def pytest_collection_modifyitems(self, items):
            taken.extend(item.name for item in quick_part.split(items)[0])

    arguments = [str(path), "--collect-only", "-q", "--import-mode=importlib", "-c"]
    # The plugins of the installed packages are of no use here, and take most of the time to load.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        code = pytest.main([*arguments, str(path / "pytest.ini"), *options], plugins=[Part()])
    return taken if code == 0 else code


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        ("cases=1", "a"),
        ("cases=2", "ae"),
        ("cases=3", "ace"),
        ("cases=9", "abcde"),
        ("cases=['d', 'b']", "bd"),
    ],
)
def test_a_family_keeps_cases_and_a_test_keeps_a_sibling(tmp_path, mark, kept):
    assert run(tmp_path, mark) == [*(f"test_family[{case}]" for case in kept), "test_other"]


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize(
    "mark",
    [
        *("", "2", "cases=0", "cases=2, beside='test_other'", "cases=['f']", "some=2"),
        *("beside='test_none'", "beside='test_family'", "beside='test_left'"),
    ],
)
def test_a_mark_that_leaves_no_evidence_is_refused(tmp_path, mark):
    assert run(tmp_path, mark) == pytest.ExitCode.USAGE_ERROR


def test_every_mark_here_is_sound_and_every_file_keeps_a_test(request):
    """Of the tests of this run: all of them in `make ci`."""
    quick, left = quick_part.split(list(request.session.items))
    assert {item.path for item in left} <= {item.path for item in quick}
    assert all(Path(item.path).exists() for item in quick)
