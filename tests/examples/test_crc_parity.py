"""The parity of real files: labels really are the one it claims, and a run on files made here."""

import dataclasses
import json
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from scripts import loaded

from hdp_fast.exceptions import InsufficientSamples, ParameterError

EXAMPLE = Path(__file__).parents[2] / "examples" / "crc_parity.py"
# With 1.2 times the unknowns sampled from random bytes the parity is unique.
BLOCKS = 14_500

pytestmark = pytest.mark.skipif(not EXAMPLE.is_file(), reason="needs the source tree")


@pytest.fixture(scope="module")
def example():
    with loaded(EXAMPLE) as module:
        yield module


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Random bytes in two files, the second holding the first block of the first once more."""
    folder = tmp_path_factory.mktemp("source")
    rows = np.random.default_rng(3).integers(256, size=(BLOCKS, 1_250), dtype=np.uint8)
    (folder / "a.bin").write_bytes(rows[:10_000].tobytes() + b"a tail shorter than a block")
    (folder / "b").mkdir()
    (folder / "b" / "c.bin").write_bytes(rows[0].tobytes() + rows[10_000:].tobytes())
    return folder


@pytest.mark.parametrize("bit", [0, 31])
@pytest.mark.parametrize("size", [1, 1_250])
def test_crc_is_the_affine_parity_claimed(example, bit, size):
    mask, intercept = example.true_parity(bit, size)
    rows = np.random.default_rng(4).integers(256, size=(50, size), dtype=np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little").astype(int)
    labels = [zlib.crc32(row.tobytes()) >> bit & 1 for row in rows]
    np.testing.assert_array_equal((bits @ mask + intercept) % 2, labels)
    np.testing.assert_array_equal(example.crc_bit(rows, bit), labels)


def test_collect_drops_duplicates(example, source):
    rows, read = example.collect([source], 100_000)
    assert read == BLOCKS + 1
    assert rows.shape == (BLOCKS, 1_250)
    assert len(np.unique(rows, axis=0)) == BLOCKS


def test_collect_stops_at_the_number_wanted(example, source):
    assert len(example.collect([source], 7)[0]) == 7
    rows, read = example.collect([source / "a.bin", source / "a.bin"], 100_000)
    assert (read, len(rows)) == (20_000, 10_000)


def test_collect_refuses_bad_paths(example, tmp_path):
    with pytest.raises(ParameterError, match="must exist"):
        example.collect([tmp_path / "missing"], 1)
    (tmp_path / "short").write_bytes(b"short")
    with pytest.raises(ParameterError, match="1,250 bytes"):
        example.collect([tmp_path], 1)


def test_libraries_are_found_without_paths(example):
    assert len(example.collect(example.find_libraries(), 100)[0]) == 100


def test_libraries_of_numpy_serve_without_a_toolchain(example, monkeypatch):
    monkeypatch.setattr(example.shutil, "which", lambda _: None)
    if not example.find_openblas():
        pytest.skip("this numpy was built without a library of its own")
    assert example.find_libraries() == example.find_openblas()


@pytest.mark.parametrize("n", [13_000, 20_000, 300_000])
def test_smallest_epsilon_gives_the_sample(example, n):
    reference = pytest.importorskip("hdp_fast.reference.parity")
    epsilon = example.smallest_epsilon(n, 0.05)
    p, below = (
        reference.rate(value, "replace_one", g=0.04) for value in (epsilon, epsilon - 0.001)
    )
    assert below * n <= 1.2 * 10_001 <= p * n


def test_smallest_epsilon_refuses_too_few_blocks(example):
    with pytest.raises(InsufficientSamples, match="12,002"):
        example.smallest_epsilon(12_001, 0.05)
    with pytest.raises(InsufficientSamples, match="got 0"):
        example.smallest_epsilon(0, 0.05)


@pytest.mark.filterwarnings("ignore:random_state makes")
def test_run_finds_the_parity_from_few_blocks(example, source, tmp_path, monkeypatch, capsys):
    words = [str(source), "--seed", "1", "--output", str(tmp_path / "demo")]
    monkeypatch.setattr(sys, "argv", ["crc_parity.py", *words])
    example.main()
    report = json.loads((tmp_path / "demo" / "hdp_fast_demo.json").read_text())
    assert report["blocks"] == {"read": BLOCKS + 1, "distinct": BLOCKS, "training": 13_050}
    assert report["rank"] == 10_001
    assert report["alpha_promised"] is None
    assert report["records"]["curator"]["epsilon"] == report["epsilon"]
    # The seed was chosen so that this run releases something.
    assert report["released"]
    assert report["mask"]["differing_bits"] == 0
    assert report["mask"]["intercept_right"]
    assert report["errors"]["held_out"] == report["errors"]["agents"] == 0
    assert abs(report["errors"]["agents_estimate"]) < 0.1
    assert report["records"]["agents"]["epsilon"] == 1
    text = capsys.readouterr().out
    assert "No alpha is promised" in text
    assert "0 of 10,000 bits differ" in text
    pytest.importorskip("matplotlib")
    assert (tmp_path / "demo" / "hdp_fast_demo.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.filterwarnings("ignore:random_state makes")
def test_run_tells_of_silence_and_needs_no_matplotlib(
    example, source, tmp_path, monkeypatch, capsys
):
    kept = example.parity.transfer

    def silent(*arguments, **options):
        result = kept(*arguments, **options)
        unset = dict.fromkeys(["mask", "intercept", "target_error", "interval"])
        return dataclasses.replace(result, **unset, released=False)

    monkeypatch.setattr(example.parity, "transfer", silent)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = [str(source), "--seed", "2", "--output", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["crc_parity.py", *words])
    example.main()
    report = json.loads((tmp_path / "hdp_fast_demo.json").read_text())
    assert report["mask"] is report["errors"] is None
    text = capsys.readouterr().out
    assert "Nothing was released" in text
    assert "no error" in text
    assert "pip install matplotlib (the extra hdp-fast[plot])" in text
    assert [path.name for path in tmp_path.iterdir()] == ["hdp_fast_demo.json"]
