"""The demo: the labels really are the parity it claims, and a whole run on files made here."""

import dataclasses
import importlib.util
import json
import sys
import zlib

import numpy as np
import pytest

from hdp_fast.cli import main
from hdp_fast.demo import blocks, stages
from hdp_fast.exceptions import InsufficientSamples, ParameterError

# With 1.2 times the unknowns sampled from random bytes the parity is unique.
BLOCKS = 14_500


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Random bytes in two files, the second holding the first block of the first once more."""
    folder = tmp_path_factory.mktemp("source")
    rows = np.random.default_rng(3).integers(256, size=(BLOCKS, 1_250), dtype=np.uint8)
    (folder / "a.bin").write_bytes(rows[:10_000].tobytes() + b"a tail shorter than a block")
    (folder / "b").mkdir()
    (folder / "b" / "c.bin").write_bytes(rows[0].tobytes() + rows[10_000:].tobytes())
    return folder


def run(tmp_path, *paths, **options):
    lines = []
    options = stages.Options(paths=paths, output=tmp_path, **options)
    return stages.run(options, lines.append), "\n".join(lines)


@pytest.mark.parametrize("bit", [0, 31])
@pytest.mark.parametrize("size", [1, 1_250])
def test_crc_is_the_affine_parity_claimed(bit, size):
    mask, intercept = blocks.true_parity(bit, size)
    rows = np.random.default_rng(4).integers(256, size=(50, size), dtype=np.uint8)
    bits = np.unpackbits(rows, axis=1, bitorder="little").astype(int)
    labels = [zlib.crc32(row.tobytes()) >> bit & 1 for row in rows]
    np.testing.assert_array_equal((bits @ mask + intercept) % 2, labels)
    np.testing.assert_array_equal(blocks.crc_bit(rows, bit), labels)


def test_duplicates_are_dropped(source):
    collected = blocks.collect((source,), 100_000)
    assert collected.read == BLOCKS + 1
    assert collected.rows.shape == (BLOCKS, 1_250)
    assert len(np.unique(collected.rows, axis=0)) == BLOCKS


def test_reading_stops_at_the_number_wanted(source):
    assert len(blocks.collect((source,), 7).rows) == 7
    twice = blocks.collect((source / "a.bin", source / "a.bin"), 100_000)
    assert (twice.read, len(twice.rows)) == (20_000, 10_000)


def test_a_source_without_paths_is_found():
    collected = blocks.collect((), 100)
    assert len(collected.rows) == 100
    assert "librar" in collected.source


def test_without_a_toolchain_numpys_library_serves(monkeypatch):
    monkeypatch.setattr(blocks, "_toolchain_libraries", list)
    if not blocks._openblas():
        pytest.skip("this numpy was built without a library of its own")
    assert "numpy" in blocks.collect((), 10).source


@pytest.mark.parametrize("n", [13_000, 20_000, 300_000])
def test_smallest_epsilon_gives_the_sample(n):
    reference = pytest.importorskip("hdp_fast.reference.parity")
    epsilon = stages.smallest_epsilon(n, 0.05)
    p, below = (
        reference.rate(value, "replace_one", g=0.04) for value in (epsilon, epsilon - 0.001)
    )
    assert below * n <= 1.2 * 10_001 <= p * n


def test_too_few_blocks_for_any_epsilon():
    with pytest.raises(InsufficientSamples, match="12,002"):
        stages.smallest_epsilon(12_001, 0.05)


def test_whole_run_on_few_blocks(source, tmp_path):
    report, text = run(tmp_path, source, seed=1)
    written = json.loads((tmp_path / "hdp_fast_demo.json").read_text())
    assert written == json.loads(json.dumps(report))
    assert report["blocks"]["distinct"] == BLOCKS
    assert report["blocks"]["training"] + report["blocks"]["held_out"] == BLOCKS
    assert report["rank"] == {"rank": 10_001, "columns": 10_001}
    assert report["alpha_promised"] is None
    assert "No alpha is promised" in text
    assert report["records"]["curator"]["epsilon"] == report["epsilon"]
    # The seed was chosen so that this run isn't bottom.
    assert report["released"]
    assert report["mask"]["differing_bits"] == 0
    assert report["mask"]["intercept_right"]
    assert report["errors"]["held_out"] == report["errors"]["agents"] == 0
    assert abs(report["errors"]["agents_estimate"]) < 0.1
    assert report["records"]["agents"]["epsilon"] == 1


def test_bottom_is_told_and_is_no_error(source, tmp_path, monkeypatch):
    kept = stages.parity.transfer

    def bottom(*arguments, **options):
        result = kept(*arguments, **options)
        unset = dict.fromkeys(["mask", "intercept", "target_error", "interval"])
        return dataclasses.replace(result, **unset, released=False)

    monkeypatch.setattr(stages.parity, "transfer", bottom)
    report, text = run(tmp_path, source, seed=2)
    assert report["mask"] is report["errors"] is None
    assert "bottom" in text
    assert "no error" in text


def test_picture_needs_matplotlib_only_for_itself(source, tmp_path, monkeypatch):
    report, text = run(tmp_path, source, max_blocks=13_600, seed=1)
    assert report["blocks"]["distinct"] == 13_600
    if importlib.util.find_spec("matplotlib"):
        assert (tmp_path / "hdp_fast_demo.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    (tmp_path / "without").mkdir()
    _, text = run(tmp_path / "without", source, max_blocks=13_600, seed=1)
    assert "pip install hdp-fast[plot]" in text
    assert [path.name for path in (tmp_path / "without").iterdir()] == ["hdp_fast_demo.json"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--bit", "32"], "bit must be"),
        (["--max-blocks", "0"], "max_blocks must be"),
        (["--seed", "-1"], "seed must be"),
        (["--epsilon", "nan"], "epsilon"),
        (["--alpha", "0"], "alpha"),
        (["--output", "/no/such/folder"], "existing directory"),
    ],
)
def test_bad_options(source, tmp_path, capsys, options, message):
    code = 3 if options[0] == "--max-blocks" and options[1] != "0" else 2
    assert main(["demo", str(source), "--output", str(tmp_path), *options]) == code
    error = capsys.readouterr().err
    assert error.startswith("hdp-fast: error: ")
    assert message in error
    assert list(tmp_path.iterdir()) == []


def test_too_few_blocks_are_refused(source, tmp_path, capsys):
    assert main(["demo", str(source), "--output", str(tmp_path), "--max-blocks", "100"]) == 3
    assert "training blocks must" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_bad_paths(tmp_path):
    with pytest.raises(ParameterError, match="must exist"):
        blocks.collect((tmp_path / "missing",), 1)
    (tmp_path / "short").write_bytes(b"short")
    with pytest.raises(ParameterError, match="1,250 bytes"):
        blocks.collect((tmp_path,), 1)
