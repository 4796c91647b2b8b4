"""Figures of tables and answers: what is drawn is what they say."""

import sys

import numpy as np
import pytest

from hdp_fast import plotting
from hdp_fast.exceptions import ParameterError
from hdp_fast.labels import LabelResult, ScoreResult
from hdp_fast.stability import GaussianVote, HazardTable, VoteTable

pytest.importorskip("matplotlib")
GOAL = {"epsilon": 1, "delta": 1e-6, "beta": 0.05}
BOTTOMS = np.array([False, True, False, False, True])


@pytest.fixture
def figure(monkeypatch):
    """The figure that becomes a file."""
    made, png = [], plotting._png
    monkeypatch.setattr(plotting, "_png", lambda drawn: (made.append(drawn), png(drawn))[1])
    return made


@pytest.mark.parametrize(
    ("table", "members"),
    [(HazardTable.design(50, 1000, **GOAL), 1611), (VoteTable.design(1000, **GOAL), 1266)],
)
def test_a_table_is_drawn_with_its_last_level_and_its_members(figure, table, members):
    assert plotting.table(table).startswith(b"\x89PNG")
    (axes,) = figure[0].axes
    falling, last, marked = axes.lines
    assert axes.get_yscale() == "log"
    assert falling.get_ydata()[:-1].tolist() == [float(p) for p in table.probabilities]
    assert last.get_xdata() == [table.J] * 2
    assert marked.get_xdata() == [members / 4] * 2
    assert f"{members:,} members" in marked.get_label()
    plotting.table(table, agreement=0.9)
    assert figure[1].axes[0].lines[2].get_xdata()[0] < members * 0.4
    with pytest.raises(ParameterError, match="HazardTable or a VoteTable"):
        plotting.table(GaussianVote.design(9, labels=3, **GOAL))
    with pytest.raises(ParameterError, match="agreement"):
        plotting.table(table, agreement=0.5)


def labels(left):
    return LabelResult(
        labels=np.arange(5), is_bottom=BOTTOMS, unstable_left=left, queries_left=0, record=None
    )


@pytest.mark.parametrize("left", [3, None])
def test_answers_are_drawn_against_the_bottoms_they_took(figure, left):
    assert plotting.labels(labels(left)).startswith(b"\x89PNG")
    answered, *others = figure[0].axes
    assert answered.lines[0].get_ydata().tolist() == [0, 1, 1, 2, 3, 3]
    if left is None:
        assert others == []
        return
    counted, limit = others[0].lines
    assert counted.get_ydata().tolist() == [0, 0, 1, 1, 1, 2]
    assert limit.get_ydata() == [5, 5]


def test_scores_have_no_limit_for_some_took_a_bottom_and_were_found(figure):
    scores = np.where(BOTTOMS, np.nan, 0.5)
    plotting.labels(
        ScoreResult(scores=scores, is_bottom=BOTTOMS, unstable_left=3, queries_left=0, record=None)
    )
    answered, bottoms = figure[0].axes
    assert answered.lines[0].get_ydata()[-1] == 3
    assert len(bottoms.lines) == 1


def test_anything_else_is_refused(monkeypatch):
    for draw in (plotting.table, plotting.labels):
        with pytest.raises(ParameterError, match="None"):
            draw(None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for run in (plotting.require, lambda: plotting.labels(labels(1))):
        with pytest.raises(ImportError, match=r"pip install hdp-fast\[plot\]"):
            run()
