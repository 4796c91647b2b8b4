"""The page on performance, written from made-up results."""

import importlib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "docs" / "tools"

pytestmark = pytest.mark.skipif(
    not (TOOLS / "write_performance.py").exists(), reason="needs docs/tools"
)


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(TOOLS))
        yield importlib.import_module("write_performance")


def results(name="AMD Zen 4", seconds=0.002):
    ratios = {"numpy": 0.01 / seconds, "peer": 0.5 / seconds, "limit": 0.001 / seconds}
    routes = [
        {"role": "ours", "name": "2 threads", "threads": 2, "seconds": seconds, "ratios": ratios},
        {"role": "numpy", "name": "sort", "threads": 1, "seconds": 0.02},
        {"role": "numpy", "name": "partition", "threads": 1, "seconds": 0.01},
        {"role": "peer", "name": "OpenDP", "threads": 1, "seconds": 0.5, "figures": {"error": 2.5}},
        {"role": "limit", "name": "memory", "threads": 2, "seconds": 0.001},
    ]
    params = {"n": 1_000_000, "into": "new memory"}
    group = {"group": "weights.project", "params": params, "work": 1e6, "unit": "weight"}
    return {
        "processor": {"name": name, "cores": 2, "instructions": ["AVX2"]},
        "versions": {"numpy": "2.0"},
        "day": "2026-01-01",
        "limits": {"copy, GB/s": 20.0},
        "groups": [{**group, "routes": routes}],
    }


def filled(tool, comment, **kinds):
    return tool.fill(f"before <!-- {comment} -->old<!-- end --> after", kinds)


def test_a_table_has_a_column_for_each_processor(tool):
    text = filled(tool, "table: weights.project", a=results(), b=results("Intel", 0.004))
    assert "| n | into |  | error | AMD Zen 4, 2 cores | Intel, 2 cores |" in text
    assert (
        "| 1,000,000 | new memory | 2 threads |  "
        "| 2.00 ms; 5.00 x numpy; 250 x OpenDP; 50 % of the limit "
        "| 4.00 ms; 2.50 x numpy; 125 x OpenDP; 25 % of the limit |" in text
    )
    assert "sort" not in text
    assert "old" not in text
    assert text.startswith("before ")
    assert text.endswith("<!-- end --> after")


def test_a_group_may_be_unknown_to_a_processor(tool):
    other = results("Intel")
    other["groups"] = []
    text = filled(tool, "table: weights.project", a=results(), b=other)
    assert text.count("2.00 ms") == 1
    assert "No results of weights.draw are stored." in filled(tool, "table: weights.draw", a=other)


def test_a_table_of_everybody_has_rivals_and_their_figures(tool):
    text = filled(tool, "table: weights.project all each n=1000000", a=results())
    assert "| new memory | numpy, sort |  | 20.0 ns |" in text
    assert "| new memory | OpenDP | 2.5 | 500 ns |" in text
    assert "memory |  | 1.00 ns" not in text


def test_a_sentence_names_the_fastest_rivals(tool):
    text = filled(tool, 'speed: weights.project into="new memory" route="2 threads"', a=results())
    assert ">2.00 ms; numpy 10.0 ms; OpenDP 500 ms<" in text
    missing = filled(tool, 'speed: weights.project n=5 route="2 threads"', a=results())
    assert ">not measured yet<" in missing


def test_processors_are_named(tool):
    both = {"a": results(), "b": results("Intel")}
    assert ">2 cores of an AMD Zen 4 and 2 cores of an Intel<" in filled(tool, "processors", **both)
    assert ">2 cores of an AMD Zen 4<" in filled(tool, "processors: first", **both)
    assert "| AMD Zen 4, 2 cores | AVX2; numpy 2.0; 2026-01-01 | 20 |" in filled(
        tool, "machines", **both
    )


def test_growth_has_the_same_numbers_in_page_and_picture(tool):
    text = filled(tool, "growth", a=results())
    assert "figures/growth_a.svg" in text
    assert "(figures/data/growth_a.csv)" in text
    command, header, row = tool.growth_data(results()).splitlines()
    assert command == "# make bench-store"
    assert header == "kernel,size,1 thread,2 threads,numpy,peer"
    assert row == "projection of weights,1000000,,2.00,10.0,500"


def test_filling_twice_changes_nothing(tool):
    once = filled(tool, "table: weights.project", a=results())
    assert tool.fill(once, {"a": results()}) == once


def test_a_stored_table_is_shown_on_demand(tool):
    kinds = {"a": results()}
    shown = tool.show_stored(["weights.project", "into=new memory", "all"], kinds)
    assert "| 1,000,000 | numpy, sort |" in shown
    assert tool.show_stored([], kinds) == "weights.project"


def test_a_family_has_a_row_for_each_case_and_a_column_for_each_processor(tool, monkeypatch):
    cases = {"large": "weights.project n=1000000", "larger": "weights.project n=2000000"}
    monkeypatch.setattr(tool, "FAMILIES", {"weights": cases})
    text = filled(tool, "family: weights", a=results(), b=results("Intel", 0.004))
    assert "|  | AMD Zen 4 | Intel |" in text
    assert (
        "| large | 2.00 ms; 5.00 x numpy; 250 x OpenDP; 50 % "
        "| 4.00 ms; 2.50 x numpy; 125 x OpenDP; 25 % |" in text
    )
    assert "| larger |  |  |" in text


def test_every_case_of_a_family_is_stored(tool):
    stored = tool.load().values()
    for cases in tool.FAMILIES.values():
        for case, spec in cases.items():
            assert any(tool.case_cell(spec, one) for one in stored), case


def test_a_family_is_shown_whole(tool):
    shown = tool.show_stored(["weights"], {"a": results()})
    assert shown.startswith("weights.project\n")
    assert "| 1,000,000 | new memory | numpy, sort |" in shown
    with pytest.raises(SystemExit, match="nothing: no family"):
        tool.show_stored(["nothing"], {"a": results()})
