"""Scripts of benches/ as modules."""

import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import lengths
import pytest

PAPERS = Path(__file__).parents[2] / "benches" / "papers"
at_length = pytest.mark.skipif(not lengths.PAPERS, reason="make papers runs it")


@contextmanager
def loaded(path: Path) -> Iterator[ModuleType]:
    """The script, not run; it finds its siblings, and dataclasses find their module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(path.parent))
        patch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        yield module


def require_data(problem: Any) -> Any:
    """Return the problem; skip the test where its data are missing and no folder was promised."""
    if problem.missing() and not os.environ.get("HDP_FAST_DATA"):
        pytest.skip(f"{problem.missing()}, and HDP_FAST_DATA names no folder")
    return problem
