"""Comparison of results on made-up runs, what is stored, and the page that is written from it."""

import copy
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BENCHES = ROOT / "benches"

pytest.importorskip("threadpoolctl")
pytestmark = pytest.mark.skipif(not BENCHES.exists(), reason="needs benches/")


@pytest.fixture(scope="module", autouse=True)
def found():
    """Modules of benches import each other by their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHES))
        yield


@pytest.fixture
def results():
    return importlib.import_module("_results")


@pytest.fixture
def machine():
    return importlib.import_module("_machine")


def route(role, name, seconds, **ratios):
    kept = {"role": role, "name": name, "threads": 1, "seconds": seconds}
    return kept | ({"ratios": ratios} if role == "ours" else {})


def run(**groups):
    """Results of made-up groups, each with the ratios of its one route."""
    entries = [
        {"group": f"made.{name}", "params": {"n": 10}, "work": 1.0, "unit": "call",
         "routes": [route("ours", "1 thread", 1.0, **ratios), route("numpy", "sort", 2.0)]}
        for name, ratios in groups.items()
    ]  # fmt: skip
    return {"processor": {"name": "AMD Zen 4", "cores": 2, "instructions": []},
            "versions": {}, "day": "2026-01-01", "limits": {}, "groups": entries}  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({"numpy": 5.0}, {"numpy": 3.9}, "slower"),
        ({"numpy": 5.0}, {"numpy": 4.1}, None),
        ({"numpy": 5.0}, {"numpy": 6.1}, None),
        ({"numpy": 5.0}, {"numpy": 6.4}, "faster"),
        ({"peer": 300.0, "numpy": 2.0}, {"peer": 200.0, "numpy": 2.0}, "slower"),
        # The limit counts where there is no rival.
        ({"limit": 0.9}, {"limit": 0.5}, "slower"),
        ({"numpy": 5.0, "limit": 0.9}, {"numpy": 5.0, "limit": 0.5}, None),
        # A peer that is not installed is no reason to fail.
        ({"peer": 300.0, "numpy": 2.0}, {"numpy": 2.0}, None),
    ],
)
def test_ratios_have_a_quarter_of_slack(results, before, after, kind):
    words = results.compare(run(a=before), run(a=after)["groups"])
    assert {name for name, lines in words.items() if lines} == ({kind} if kind else set())


def test_what_got_slower_is_named_in_words(results):
    words = results.compare(run(a={"numpy": 5.0}, b={"limit": 0.8}),
                            run(a={"numpy": 2.0}, b={"limit": 0.4})["groups"])  # fmt: skip
    assert words["slower"] == [
        "made.a, n = 10: 1 thread: 2 times numpy, stored 5 times numpy",
        "made.b, n = 10: 1 thread: 40 % of the limit, stored 80 % of the limit",
    ]


def test_missing_and_new_groups_and_routes_are_told_apart(results):
    before, after = run(a={"numpy": 1.0}, b={"numpy": 1.0}), run(a={"numpy": 1.0}, c={"numpy": 1.0})
    after["groups"][0]["routes"][0]["name"] = "2 threads"
    words = results.compare(before, after["groups"])
    assert words["slower"] == words["faster"] == []
    assert words["not run"] == ["made.a, n = 10: 1 thread", "made.b, n = 10"]
    assert words["new"] == ["made.a, n = 10: 2 threads", "made.c, n = 10"]


def test_other_parameters_are_another_group(results):
    before, after = run(a={"numpy": 10.0}), run(a={"numpy": 1.0})
    after["groups"][0]["params"]["n"] = 11
    assert not results.compare(before, after["groups"])["slower"]


def test_rivals_use_at_most_as_many_threads_and_the_fastest_counts(results):
    routes = [
        route("ours", "1 thread", 2.0),
        route("numpy", "slow", 8.0),
        route("numpy", "fast", 4.0),
        route("numpy", "fast, 2 threads", 3.0) | {"threads": 2},
        route("limit", "memory", 1.0),
        route("limit", "memory", 0.5) | {"threads": 2},
    ]
    assert results.ratios_of(routes[0], routes) == {"numpy": 2.0, "limit": 0.5}
    two = routes[0] | {"threads": 2, "seconds": 1.0}
    assert results.ratios_of(two, routes) == {"numpy": 3.0, "limit": 0.5}


def test_a_part_that_is_run_again_replaces_that_part(results, tmp_path):
    path = tmp_path / "deep" / "amd.json"
    results.write(path, run(a={"numpy": 1.0}, b={"numpy": 1.0}))
    assert results.read(path) == run(a={"numpy": 1.0}, b={"numpy": 1.0})
    merged = results.merge(results.read(path), run(b={"numpy": 7.0}))
    assert merged == run(a={"numpy": 1.0}, b={"numpy": 7.0})
    whole = run(c={"numpy": 1.0})
    assert results.merge(merged, whole, whole=True) == whole
    assert results.merge(None, run(b={"numpy": 7.0})) == run(b={"numpy": 7.0})


def test_kinds_of_processors(machine, monkeypatch):
    monkeypatch.delenv("HDP_FAST_ISA", raising=False)
    cpu = {"vendor_id_raw": "AuthenticAMD", "family": 25, "model": 17, "count": 2,
           "brand_raw": "AMD EPYC", "flags": ["avx2", "gfni"]}  # fmt: skip
    info = {"node": "a-host", "cpu": cpu}
    named = {"name": "AMD Zen 4", "cores": 2, "instructions": ["AVX2", "GFNI"]}
    assert machine.processor_of(info) == named
    assert machine.kind_of(named) == "amd-zen-4-2-cores"
    unknown = copy.deepcopy(info)
    unknown["cpu"] |= {"vendor_id_raw": "Other", "brand_raw": "Chip (R) 7"}
    assert machine.kind_of(machine.processor_of(unknown)) == "chip-r-7-family-25-model-17-2-cores"
    monkeypatch.setenv("HDP_FAST_ISA", "avx2")
    assert machine.kind_of(machine.processor_of(info)) == "amd-zen-4-kernels-of-avx2-2-cores"


def test_documents_say_what_is_stored():
    program = ROOT / "docs" / "tools" / "write_performance.py"
    done = subprocess.run(
        [sys.executable, str(program), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
