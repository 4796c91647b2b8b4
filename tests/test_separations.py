"""The experiments on what one round, and agents alone, cannot learn: small runs of their scripts."""

import json
import warnings

import pytest
from scripts import PAPERS, loaded

pytestmark = [
    pytest.mark.skipif(not PAPERS.exists(), reason="needs benches/"),
    pytest.mark.filterwarnings("ignore:random_state"),
]


def quick(name, folder, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("sys.argv", [name, "--quick", "--output", str(folder)])
    with warnings.catch_warnings(), loaded(PAPERS / f"{name}.py") as script:
        script.main()
    assert (folder / f"{name}.png").stat().st_size > 10_000
    return json.loads((folder / f"{name}.json").read_text())


def test_one_round_fails_where_two_do_not(tmp_path, monkeypatch):
    report = quick("masked_parity", tmp_path, monkeypatch)
    found = {(row["d"], row["strategy"]): row["failed"] for row in report["one round"]}
    for d in 2, 4, 8:
        assert found[d, "weak"] == 1
        assert found[d, "guess"] == 0.5
    # Of 256 concepts r, 64 parities tell a; guessing is wrong half of the time.
    assert found[8, "random"] == found[8, "prior"] == (1 - 64 / 256) / 2
    assert found[8, "low weight"] == (1 - 37 / 256) / 2
    # A bent function of two bits meets four parities each.
    assert found[8, "bent"] == found[8, "brute force"] == 0
    assert [row["wrong"] for row in report["adaptive"]] == [0, 0]
    assert all(row["exact"] >= row["runs"] - 2 for row in report["agents"])
