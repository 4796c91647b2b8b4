"""What type checkers make of the samplers: one int without a size, an array with one."""

from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
SAMPLERS = {
    "bernoulli": ("0.5", "uint8"),
    "bernoulli_exp": ("0.5", "uint8"),
    "geometric": ("1.5", "int64"),
    "discrete_laplace": ("1.5", "int64"),
    "discrete_gaussian": ("1.5", "int64"),
    "rounded_gaussian": ("1.5", "int64"),
    "uniform_integers": ("6", "int64"),
    "weighted_draws": ("[1, 2]", "int64"),
}

pytestmark = pytest.mark.skipif(not (ROOT / "python").is_dir(), reason="needs the source tree")


def snippet():
    yield "from typing import assert_type"
    yield "import numpy as np"
    yield "from numpy.typing import NDArray"
    yield "from hdp_fast import noise"
    for name, (argument, dtype) in SAMPLERS.items():
        yield f"assert_type(noise.{name}({argument}), int)"
        yield f"assert_type(noise.{name}({argument}, None, random_state=1), int)"
        for size in ("3", "(2, 3)"):
            yield f"assert_type(noise.{name}({argument}, size={size}), NDArray[np.{dtype}])"


def errors_of(folder, monkeypatch, *lines):
    monkeypatch.setenv("MYPYPATH", str(ROOT / "python"))
    path = folder / "calls.py"
    path.write_text("\n".join(lines))
    cache = ["--cache-dir", str(ROOT / ".mypy_cache")]
    text, trouble, _ = api.run(["--strict", "--no-error-summary", *cache, str(path)])
    assert trouble == ""
    return text


def test_calls_of_samplers_have_the_type_of_their_result(tmp_path, monkeypatch):
    assert errors_of(tmp_path, monkeypatch, *snippet()) == ""


def test_an_array_is_no_int(tmp_path, monkeypatch):
    wrong = "from hdp_fast import noise\n\nnumber: int = noise.geometric(2.0, 3)\n"
    assert "Incompatible types in assignment" in errors_of(tmp_path, monkeypatch, wrong)
