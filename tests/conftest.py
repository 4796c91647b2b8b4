import os
import signal
import tempfile
from pathlib import Path

import pytest
import quick_part
import streams

from hdp_fast import _core
from hdp_fast.transfer import estimator

# A runner in the background ignores Ctrl-C, and so would every process that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tables that tests design stay out of the user's own cache.
_cache = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = _cache.name

streams.fix()


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="the quick part alone: see quick_part.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    if config.getoption("quick"):
        items[:], left = quick_part.split(items)
        config.hook.pytest_deselected(items=left)


def pytest_terminal_summary(terminalreporter):
    """Says so where an edit of Rust is not in what was tested."""
    built = Path(_core.__file__).stat().st_mtime
    sources = sorted(Path(__file__).parents[1].glob("rust/*/src/**/*.rs"))
    if newer := [path.name for path in sources if path.stat().st_mtime > built]:
        terminalreporter.section("compiled module")
        terminalreporter.write_line(f"It is older than {newer[0]}: `make quick` builds it.")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Fixtures of a module draw, too: the stream begins before them."""
    system = "statistical" in item.path.parts or item.get_closest_marker("entropy")
    streams.restart(fixed=not system)


@pytest.fixture(scope="module")
def quick_plan():
    """The search for a plan is the same every time and would take most of the time."""
    kept, make = {}, estimator.make_plan

    def cached(goal):
        key = repr(goal)
        if key not in kept:
            kept[key] = make(goal)
        return kept[key]

    estimator.make_plan = cached
    yield
    estimator.make_plan = make


@pytest.fixture
def memory():
    """A folder whose files need no disk: the death of a process loses nothing of them."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as name:
        yield Path(name)
