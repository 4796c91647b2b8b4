"""A run that goes on where a process ended: nothing is drawn, charged or asked twice."""

import json

import pytest
from hybrid_people import PANEL, TOWN, Phones, hybrid, panel, town

from hdp_fast import local
from hdp_fast.budget import Budget
from hdp_fast.exceptions import BudgetExceeded, CheckpointError, ParameterError
from hdp_fast.transfer import hybrid_run


class Line(Phones):
    """People whose line breaks at a question, after some of the answers have come."""

    def __init__(self, breaks_at=None):
        super().__init__("numbers", 4.0)
        self.breaks_at = breaks_at

    def ask(self, text, k):
        reports = super().ask(text, k)
        yield reports[: k // 2]
        if len(self.questions) == self.breaks_at:
            self.breaks_at = None
            raise OSError("the network is gone")
        yield reports[k // 2 :]


@pytest.mark.parametrize("breaks_at", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["descent", "additive"])
@pytest.mark.filterwarnings("ignore:.*have answered")
def test_a_run_goes_on_after_a_crash_at_any_round(tmp_path, monkeypatch, breaks_at, method):
    line, budget, drawn = Line(breaks_at), Budget(2.0, 1e-6), []
    for name in ("release_center", "learn_classes", "learn_additive"):
        release = getattr(hybrid_run, name)
        monkeypatch.setattr(
            hybrid_run,
            name,
            lambda *parts, _name=name, _release=release, **options: (
                drawn.append(_name) or _release(*parts, **options)
            ),
        )

    def go_on():
        way = {"epsilon": 4.0, "count": TOWN, "state": tmp_path / "agents.db"}
        agents = local.RemoteAgents(line.ask, **way)
        options = {"count": TOWN, "budget": budget, "state": tmp_path / "run.json"}
        return hybrid(method=method).run(panel, agents, **options)

    with pytest.raises(OSError, match="the network"):
        go_on()
    result = go_on()
    assert drawn == ["release_center", "learn_classes" if method == "descent" else "learn_additive"]
    assert (len(budget.records), budget.spent.epsilon) == (1, 2.0)
    assert (line.next, len(line.questions)) == (TOWN, 4)
    assert result.left_out == ("channel=app", "channel=phone", "channel=shop")
    assert result.calibrated.outcome == "calibrated"
    # And once more, after the end: what people said is there, and no panel is needed.
    again = go_on()
    assert again.to_json() == result.to_json()
    assert line.next == TOWN
    kept = json.loads((tmp_path / "run.json").read_text())
    assert kept.keys() == {"format", "version", "run", "plan", "center", "learned", "paid"}


def test_a_learned_model_is_stored_as_it_is(tmp_path):
    run, state = hybrid(), tmp_path / "run.json"
    agents = run.simulate(town, n=PANEL, epsilon=4.0)
    learned = run.learn(panel, agents, state=state, random_state=1)
    others = run.simulate(town, n=PANEL, epsilon=4.0)
    again = run.learn(None, others, state=state)
    assert again.to_json() == learned.to_json()
    assert again.shift == learned.shift
    assert again.records == learned.records
    assert (again.model.probabilities(town) == learned.model.probabilities(town)).all()


def test_a_state_of_another_run_is_refused(tmp_path):
    state, agents = tmp_path / "run.json", hybrid().simulate(town, n=PANEL, epsilon=4.0)
    hybrid().learn(panel, agents, count=8_000, state=state)
    before = state.read_text()
    assert before.startswith('{"format": "hdp_fast.hybrid_state", "version": 1,')
    for other in (hybrid(epsilon=3.0), hybrid(screen=0.0), hybrid(features="bits")):
        with pytest.raises(CheckpointError, match="a run with other parameters"):
            other.learn(panel, agents, state=state)
    fields = json.loads(before)
    state.write_text(json.dumps({**fields, "learned": None}))
    with pytest.raises(CheckpointError, match="another number of records or agents"):
        hybrid().learn(panel, agents, count=2_000, state=state)
    for damaged in ("", "{}", before.replace("hybrid_state", "other"), before[:-9]):
        state.write_text(damaged)
        with pytest.raises(ParameterError, match=r"run\.json"):
            hybrid().learn(panel, agents, state=state)
        assert state.read_text() == damaged
    with pytest.raises(ParameterError, match="state"):
        hybrid().learn(panel, agents, state=3)
    assert agents.remaining == TOWN - 2_400


def test_a_budget_that_is_too_small_leaves_no_state(tmp_path):
    agents = hybrid().simulate(town, n=PANEL, epsilon=4.0)
    with pytest.raises(BudgetExceeded, match="epsilon"):
        hybrid().learn(panel, agents, budget=Budget(1.0, 1e-6), state=tmp_path / "run.json")
    assert [path.name for path in tmp_path.iterdir()] == ["run.json.lock"]


def test_one_process_at_a_time_releases_for_a_state(tmp_path):
    """While the people of the first are asked, a second one is refused, and spends nothing."""
    state, refused = tmp_path / "run.json", []

    def ask(text, k):
        budget = Budget(2.0, 1e-6)
        agents = hybrid().simulate(town, n=PANEL, epsilon=4.0)
        with pytest.raises(CheckpointError, match="another process is at work"):
            hybrid().learn(panel, agents, budget=budget, state=state)
        refused.append(budget.spent.epsilon)
        return phones.ask(text, k)

    phones = Phones("numbers", 4.0)
    agents = local.RemoteAgents(ask, epsilon=4.0, count=TOWN)
    hybrid().learn(panel, agents, count=TOWN, state=state)
    assert refused == [0]
    assert hybrid().recall(state) is not None
    assert hybrid().recall(tmp_path / "none.json") is None


def test_another_budget_pays_too(tmp_path):
    """A run that was begun without a budget, or with another one, goes on at the price of this."""
    line, state = Line(1), tmp_path / "run.json"

    def go_on(budget):
        agents = local.RemoteAgents(line.ask, epsilon=4.0, count=TOWN, state=tmp_path / "agents.db")
        return hybrid().learn(panel, agents, count=TOWN, budget=budget, state=state)

    first, second = Budget(2.0, 1e-6), Budget(2.0, 1e-6)
    with pytest.raises(OSError, match="the network"):
        go_on(first)
    go_on(second)
    assert (first.spent.epsilon, second.spent.epsilon) == (2.0, 2.0)
    go_on(second)
    assert len(second.records) == 1
