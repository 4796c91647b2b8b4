"""hdp-fast hybrid with a study: rounds go out to people, and the folder goes on where it ended."""

import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import fails
from hybrid_tables import SCHEMA, write_tables
from visitors import question_of, tokens

from hdp_fast import Budget, collection
from hdp_fast.cli import main
from hdp_fast.collection.store import Answer, hash_token
from hdp_fast.collection.survey_server import SurveyServer
from hdp_fast.data import Schema, read_table

PEOPLE, EPSILON = 900, 8.0
CREATE = ["--asker", "Town of Example", "--people", str(PEOPLE), "--url", "https://example.org"]
BEGIN = ["hybrid", "panel.csv", "town", "--schema", "schema.json", "--epsilon", "1"]
BEGIN += ["--delta", "1e-6", "--features", "numbers", "--deadline", "30s", "--budget", "ledger"]
pytestmark = pytest.mark.filterwarnings("ignore::hdp_fast.UtilityWarning")


@pytest.fixture
def folder(memory, monkeypatch):
    monkeypatch.chdir(memory)
    monkeypatch.setattr(SurveyServer.__init__, "__kwdefaults__", {"poll": 0.01})
    write_tables(memory, panel=5_000, town=PEOPLE)
    Budget.open("ledger", epsilon=1.0, delta=1e-6)
    schema = ["--schema", "schema.json"]
    assert main(["survey", "create", "town", *CREATE, "--epsilon", str(EPSILON), *schema]) == 0
    return memory


class Town(threading.Thread):
    """The people of a study, who answer what is open; every tenth of them never does."""

    def __init__(self):
        super().__init__(daemon=True)
        self.study, self.ended = collection.Study.open("town"), threading.Event()
        table, schema = read_table("town.csv"), Schema.from_json(json.dumps(SCHEMA))
        self.X, self.y = schema.floats(table), schema.labels(table)
        self.tokens = [hash_token(bytes.fromhex(token)) for token in tokens(self.study)]
        self.asked = []

    def run(self):
        while not self.ended.wait(0.005):
            for stage in self.study.stages()[len(self.asked) :]:
                self.asked.append(stage)
                self.answer(stage)

    def answer(self, stage):
        question, answers = question_of(self.study, stage.number), []
        with self.study.open_desk() as desk:
            for number in range(stage.first, stage.first + stage.count):
                if number % 10:
                    record = self.X[number - 1], self.y[number - 1]
                    line = collection.hypothesis_line(question, *record, number=number)
                    fields, token = json.loads(line), self.tokens[number - 1]
                    key = bytes.fromhex(fields["id"])
                    answers.append(Answer(token, stage.number, key, fields["report"]))
            desk.begin()
            desk.take(answers)
            desk.commit()
        # A tenth is silent: nobody waits for the deadline here.
        time.sleep(0.05)
        self.study.close(stage.number)


@contextmanager
def people():
    town = Town()
    town.start()
    try:
        yield town
    finally:
        town.ended.set()
        town.join()


@pytest.fixture
def closing(monkeypatch):
    """A wait that ends with the stage, as if the deadline had come."""
    answered = collection.Study.counts

    def counts(study, number=None):
        told = answered(study, number)
        is_closed = number is not None and study.stages()[number - 1].closed
        return {**told, "answered": told["invited"]} if is_closed else told

    monkeypatch.setattr(collection.Study, "counts", counts)


def test_a_study_runs_from_the_panel_to_the_report(folder, capsys, closing):
    with people() as town:
        outputs = ["--report", "page.html", "--output", "model.json"]
        assert main([*BEGIN, *outputs, "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert "rounds of questions, at most 1 min 30 s; hdp-fast hybrid town goes on" in err
    response = result["response"]
    assert response["rounds"] == len(response["days"]) == len(town.asked) in (3, 4)
    assert sum(one["invited"] for one in response["days"]) == PEOPLE
    assert response["rate"] == pytest.approx(0.9, abs=0.02)
    assert {one["day"][:3] for one in response["days"]} == {"202"}
    last = list(result["certificates"].values())[-1]
    assert last["low_any"] < last["low"] < last["high"] < last["high_any"]
    assert Budget.open("ledger").spent.epsilon == 1.0
    assert (
        f'data-key="response.days.0.day">{response["days"][0]["day"]}<'
        in Path("page.html").read_text()
    )


@pytest.mark.parametrize("crash_at", [1, 2, 3, 4])
def test_a_study_goes_on_where_a_crash_ended_it(folder, capsys, monkeypatch, closing, crash_at):
    wait, waits = SurveyServer._wait, []

    async def crash(self, stage, seconds):
        waits.append(stage.number)
        if len(waits) == crash_at:
            raise KeyboardInterrupt
        return await wait(self, stage, seconds)

    monkeypatch.setattr(SurveyServer, "_wait", crash)
    with people() as town:
        assert main([*BEGIN, "--screen", ".3", "--output", "model.json"]) == 130
        Path("panel.csv").rename("moved.csv")
        if crash_at == 1:
            # The panel's model was not learned yet: its means were, and are not drawn again.
            assert main(["hybrid", "town", "--quiet"]) == 2
        Path("moved.csv").rename("panel.csv")
        assert main(["hybrid", "town", "--json"]) == 0
    assert len(town.asked) == max(waits)
    assert sum(stage.count for stage in town.asked) == PEOPLE
    assert len(Budget.open("ledger").records) == 1
    first = json.loads(Path("model.json").read_text())
    # Once more after the end: the same people, the same results, no panel.
    Path("panel.csv").unlink()
    assert main(["hybrid", "town", "--json", "--force"]) == 0
    again = json.loads(Path("model.json").read_text())
    assert again["certificates"] == first["certificates"]
    assert again["model"] == first["model"]


def test_a_plan_tells_rounds_and_spends_nothing(folder, capsys):
    capsys.readouterr()
    assert main([*BEGIN, "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["rounds"] == 3 + (plan["screen"] > 0)
    assert plan["takes"].startswith("at most")
    assert Budget.open("ledger").spent.epsilon == 0
    study = collection.Study.open("town")
    assert study.counts() == {"invited": 0, "answered": 0}
    assert not {"hybrid.json", "run.json", "agents.db"} & {
        path.name for path in study.path.iterdir()
    }
    simulated = ["hybrid", "panel.csv", "town.csv", *BEGIN[3:-4], "--agents-epsilon", "2"]
    assert main([*simulated, "--plan"]) == 0
    assert "rounds" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["hybrid", "town"], "no study that a run was begun with"),
        (["hybrid", "nowhere"], "no study"),
        ([*BEGIN, "--agents-epsilon", "2"], "the study promises its people epsilon = 8"),
        ([*BEGIN, "--seed", "1"], "--seed"),
        ([*BEGIN, "--deadline", "a week"], "--deadline"),
        ([*BEGIN, "--deadline", "0d"], "--deadline"),
        ([*BEGIN, "--response-rate", "0"], "--response-rate"),
        ([*BEGIN, "--features", "bits"], "a study for another model"),
        ([*BEGIN[:-4]], "--deadline must be given"),
        (["hybrid", "-", *BEGIN[2:]], "PANEL is -"),
        (
            ["hybrid", "panel.csv", "town.csv", *BEGIN[3:]],
            "required: --agents-epsilon (",
        ),
        (["hybrid", "panel.csv", "town.csv", *BEGIN[3:], "--agents-epsilon=1"], "--deadline goes"),
        (["hybrid", "panel.csv", "town", "--epsilon", "1", "--delta", "1e-6"], ": --schema"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(folder, capsys, argv, words):
    capsys.readouterr()
    assert words in fails(capsys, *argv)
    assert Budget.open("ledger").spent.epsilon == 0
    assert collection.Study.open("town").counts()["invited"] == 0


def test_settings_that_were_changed_are_refused(folder, capsys, monkeypatch):
    monkeypatch.setattr(SurveyServer, "_wait", interrupt)
    assert main(BEGIN) == 130
    capsys.readouterr()
    assert "leave them out" in fails(capsys, "hybrid", "town", "--epsilon", "2")
    settings = Path("town/hybrid.json")
    stored = json.loads(settings.read_text())
    settings.write_text(json.dumps(stored | {"epsilon": 2.0}))
    assert "a run with other parameters" in fails(capsys, "hybrid", "town", "--quiet")
    for text in ("", "[]", json.dumps({**stored, "more": 1}), json.dumps({**stored, "version": 9})):
        settings.write_text(text)
        assert "hybrid.json" in fails(capsys, "hybrid", "town", "--quiet")


async def interrupt(self, stage, seconds):
    raise KeyboardInterrupt
