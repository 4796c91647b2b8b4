"""The table behind the page of sliders is what the package computes."""

import json
from pathlib import Path

import pytest
from scripts import loaded

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def tool():
    with loaded(DOCS / "tools/tabulate_sliders.py") as module:
        yield module


@pytest.fixture(scope="module")
def table():
    text = (DOCS / "start/sliders_table.js").read_text()
    return json.loads(text.removeprefix("const PLANS = ").removesuffix(";\n"))


def test_the_table_has_the_axes_of_the_page(tool, table):
    page = (DOCS / "start/sliders.md").read_text()
    axes = {"epsilon": tool.EPSILONS, "people": tool.PEOPLE, "base_rate": tool.BASE_RATES}
    for name, values in axes.items():
        assert f'id="{name}" type="range" min="0" max="{len(values) - 1}"' in page
    assert [table[key] for key in ("epsilons", "people", "base_rates")] == [
        list(values) for values in axes.values()
    ]


@pytest.mark.parametrize(("e", "n", "p"), [(0, 0, 0), (5, 8, 4), (3, 11, 7), (11, 5, 1)])
def test_the_table_is_what_the_package_computes(tool, table, e, n, p):
    epsilon, people, rate = tool.EPSILONS[e], tool.PEOPLE[n], tool.BASE_RATES[p]
    assert table["truth"][e] == round(tool.truth(epsilon), 6)
    assert table["interval"][e][n][p] == tool.interval(people, epsilon, rate)
    assert table["certified"][e][n] == tool.certified(people, epsilon)
    assert table["intercept"][e][n][p] == tool.intercept(people, epsilon, rate)


def test_more_people_never_know_less(table):
    for rows in table["interval"]:
        for narrow, wide in zip(rows[1:], rows, strict=False):
            for (a, b), (c, d) in zip(narrow, wide, strict=True):
                assert b - a <= d - c + 0.002  # counts are whole numbers
