"""Shift, calibrate, certify, survey: real agents behind a folder, and kill -9 at every question.

The parent plays the people. Each device has one record and one coin, and answers one question. The
child is the analyst's program, which keeps the result of each step. Since no one's coin depends on
when it is killed, all results must be those of a run without a kill, to the last bit.
"""

import itertools
import json
import os
import secrets
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from harness import figure, size
from lengths import FAULTS
from processes import forked, forking

from hdp_fast import collection, local, transfer
from hdp_fast.exceptions import AgentsExhausted
from hdp_fast.local import Query, RemoteAgents, inquiries

pytestmark = [forking, pytest.mark.filterwarnings("ignore:.*:hdp_fast.exceptions.UtilityWarning")]

EPSILON, BETA = 6.0, 1e-4
# The public score of a model that is too sure, and too high by 2.
MODEL = {"kind": "linear", "weights": [2.0, 0.0], "bias": 2.0}
OTHER = {**MODEL, "bias": 2.25}
MODELS = {"logistic": MODEL, "isotonic": OTHER}
SOURCE = transfer.ColumnMeans.public([2.4, 0.5], low=[-3, 0], high=[3, 1])
# In their order. No two steps ask as many people the same: a process that begins after the result
# of a step was kept, and before the next question, would take up its answers.
SIZES = {"shift": 400, "logistic": 1400, "before": 200, "isotonic": 1700, "after": 250}
SIZES |= {"bent": 300, "compared": 201, "survey": 223}
PEOPLE = sum(SIZES.values()) + 7
RNG = np.random.default_rng(3)
X = np.column_stack([RNG.normal(0, 1.5, PEOPLE), RNG.integers(0, 2, PEOPLE)])
Y = (RNG.random(PEOPLE) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
COINS = RNG.random(PEOPLE)


# The analyst's program ---------------------------------------------------------------------------


class Chain:
    """All steps with one pool of people; what a step returned is kept before the next begins."""

    def __init__(self, home, kill=lambda moment, number: None):
        self.home, self.kill, self.step = home, kill, None
        # Whose question is which must not depend on the run.
        inquiries._draw_key = lambda: bytes(16)
        folder = collection.ReportFolder(
            home / "survey", lambda place, count: None, epsilon=EPSILON, deadline=60, poll=0.005
        )
        self.folder = folder
        self.agents = RemoteAgents(
            self.ask,
            collect=folder.collect,
            epsilon=EPSILON,
            count=PEOPLE,
            state=home / "agents.db",
        )

    def ask(self, text, count, *, number):
        """Orders invitations before the question is written: once, however often it is asked."""
        self.kill("before", number)
        (self.home / f"invite-{number}").write_text(f"{count} {self.step}")
        return self.folder.ask(text, count, number=number)

    def keep(self, name, work):
        self.step, path = name, self.home / f"{name}.json"
        if not path.exists():
            text = work(SIZES[name]).to_json()
            self.kill("returned", name)
            path.with_suffix(".new").write_text(text)
            os.replace(path.with_suffix(".new"), path)
            self.kill("kept", name)
        return path.read_text()

    def run(self):
        agents = self.agents
        self.keep("shift", lambda k: transfer.shifted_columns(SOURCE, agents, count=k, beta=BETA))
        logistic = self.calibrate("logistic")
        self.certify("before", MODEL)
        isotonic = self.calibrate("isotonic")
        self.certify("after", logistic)
        self.certify("bent", isotonic)
        self.keep(
            "compared",
            lambda k: transfer.certify(logistic, agents, other=MODEL, count=k, beta=BETA),
        )
        questions = {
            "wrong": Query.wrong(isotonic),
            "sure": Query.score_above(logistic, 1.0),
            "member": Query.between(1, low=1),
            "y": Query.label(),
        }
        self.keep("survey", lambda k: transfer.survey(questions, agents, count=k, beta=BETA))

    def calibrate(self, method):
        model = MODELS[method]
        text = self.keep(
            method, lambda k: transfer.calibrate(model, self.agents, method=method, count=k)
        )
        return transfer.CalibratedModel.from_json(text, model)

    def certify(self, name, model):
        self.keep(name, lambda k: transfer.certify(model, self.agents, count=k, beta=BETA))


# The people --------------------------------------------------------------------------------------


class People:
    """Devices, who see what is in the folder, and answer as soon as they are invited."""

    def __init__(self, home):
        self.home, self.next = home, 0
        # By question: the people, their lines, and what the question is about.
        self.lines, self.asked, self.kinds, self.texts = {}, {}, {}, {}
        # By step: the questions, and how many people they are for.
        self.sent = {}

    def look(self):
        """The questions in the folder that were not there before, in their order."""
        new = []
        for path in sorted(self.home.glob("survey/*/question.json")):
            question = collection.read_question(path)
            number = int(question.id.split("-")[1])
            if number not in self.lines:
                count, step = (self.home / f"invite-{number}").read_text().split()
                self.sent.setdefault(step, set()).add((question.hypothesis, count))
                asked = range(self.next, self.next + int(count))
                self.answer(path.parent, question, number, asked)
                self.next = asked.stop
                new.append(number)
        return new

    def answer(self, place, question, number, people):
        assert people.stop <= PEOPLE, "somebody is asked a second time"
        part = slice(people.start, people.stop)
        stage, places = question.stage, np.zeros(len(people), int)
        queries = [question.hypothesis] if stage is None else stage.queries
        if stage is not None:
            assert list(stage.numbers) == [person + 1 for person in people]
            places = stage.places()
        truths = [local.true_answers(query, X[part], Y[part]) for query in queries]
        true = np.array(truths)[places, np.arange(len(people))]
        keep = 1 / (1 + np.exp(-EPSILON))
        reports = 2 * places + (COINS[part] < 1 - keep + (2 * keep - 1) * true)
        form = json.loads(collection.hypothesis_line(question, [0, 0], 0, number=people[0] + 1))
        ids = (secrets.token_hex(16) for _ in people)
        lines = [
            {**form, "report": int(one), "id": id_} for one, id_ in zip(reports, ids, strict=True)
        ]
        self.lines[number] = place, [f"{json.dumps(line)}\n" for line in lines]
        self.asked[number], self.kinds[number] = people, kind_of(question)
        self.texts[number] = question.hypothesis

    def send(self, number, share=1.0):
        place, lines = self.lines[number]
        count = round(share * len(lines))
        with (place / "reports.jsonl").open("a") as out:
            out.writelines(lines[:count])
        del lines[:count]


def kind_of(question):
    """What a question is about, but for its numbers."""
    content = json.loads(question.hypothesis)
    queries = content.get("queries", [content])
    return tuple(term["kind"] for one in queries for term in one.get("terms", [one]))


# Runs --------------------------------------------------------------------------------------------

# Before the question is written, but after the state says that it is asked; before the first
# answer, after half of them, and after all.
MOMENTS = ("before", "asked", "half", "answered")


def run(home, kills=()):
    """A chain that is killed at each of the moments, once; returns its people and its results.

    kills: pairs of a moment and the number of a question, or "returned" or "kept" and a step.
    """
    (home / "survey").mkdir(parents=True)
    people, left, notice = People(home), set(kills), home / "killed"

    def start():
        def kill(moment, number):
            if (moment, number) in left:
                notice.write_text(json.dumps([moment, number]))
                os.kill(os.getpid(), signal.SIGKILL)

        return forked(lambda: Chain(home, kill).run())

    child = start()

    def restart():
        nonlocal child
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        child = start()

    end = time.monotonic() + size(60, 600)
    try:
        while time.monotonic() < end:
            for number in people.look():
                for moment, share in (("asked", 0.0), ("half", 0.5), ("answered", 1.0)):
                    people.send(number, share)
                    if (moment, number) in left:
                        left.remove((moment, number))
                        restart()
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                child, code = None, os.waitstatus_to_exitcode(status)
                if code == 0:
                    break
                assert code == -signal.SIGKILL
                left.remove(tuple(json.loads(notice.read_text())))
                child = start()
            time.sleep(0.002)
        else:
            pytest.fail("it came to no end")
    finally:
        if child is not None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert not left, "it was not killed at all of these moments"
    return people, {name: json.loads((home / f"{name}.json").read_text()) for name in SIZES}


@pytest.fixture(scope="module")
def whole():
    """A run without a kill."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as name:
        yield run(Path(name) / "home")


@pytest.mark.thorough(beside="test_a_chain_killed_at_its_questions_ends_as_one_that_was_not")
def test_a_chain_with_real_agents_says_what_is_true_of_them(whole):
    people, results = whole
    assert list(people.sent) == list(SIZES)
    sent = itertools.combinations(people.sent.values(), 2)
    assert not any(one & other for one, other in sent), "choose other sizes"
    x0 = results["shift"]["columns"][0]
    assert x0["moved"]
    for name, model in (("before", MODEL), ("after", "logistic"), ("bent", "isotonic")):
        if isinstance(model, str):
            text = json.dumps(results[model])
            model = transfer.CalibratedModel.from_json(text, MODELS[model])
            assert model.outcome == "calibrated"
            described = model.hypothesis
        else:
            described = model
        stages = (
            (n, json.loads(text).get("queries", [None])[0]) for n, text in people.texts.items()
        )
        number = next(n for n, query in stages if query == json.loads(json.dumps(described)))
        part = slice(people.asked[number].start, people.asked[number].stop)
        error = local.true_answers(json.dumps(described), X[part], Y[part]).mean()
        assert results[name]["low"] <= error <= results[name]["high"]
        assert results[name]["high"] - results[name]["low"] < 0.5
        assert (results[name]["low"], results[name]["high"]) == (
            results[name]["low_any"],
            results[name]["high_any"],
        )
    assert results["compared"]["low"] < 0
    for row in results["survey"]["rows"]:
        assert row["answered"] == row["asked"]


def selection(people):
    """The first and the last question of each kind; all of them in the long form."""
    kinds = {}
    for number, kind in people.kinds.items():
        kinds.setdefault(kind, []).append(number)
    ends = {number for numbers in kinds.values() for number in (numbers[0], numbers[-1])}
    return sorted(people.kinds if FAULTS else ends)


@pytest.mark.parametrize("turn", range(len(MOMENTS)) if FAULTS else [0])
def test_a_chain_killed_at_its_questions_ends_as_one_that_was_not(whole, memory, turn):
    people, results = whole
    kills = [
        (MOMENTS[(i + turn) % len(MOMENTS)], number) for i, number in enumerate(selection(people))
    ]
    # Before the result of a step is kept, and after.
    kills += [(("returned", "kept")[(i + turn) % 2], name) for i, name in enumerate(SIZES)]
    survivors, again = run(memory / "home", kills)
    assert again == results
    assert survivors.asked == people.asked
    assert survivors.kinds == people.kinds
    chain = Chain(memory / "home")
    counts = chain.agents.counts()
    assert counts["asked"] == counts["answered"] == people.next == sum(SIZES.values())
    assert counts["dropped"] == 0
    assert chain.agents.remaining == PEOPLE - sum(SIZES.values())
    with pytest.raises(AgentsExhausted):
        chain.agents.ask(Query.label(), chain.agents.remaining + 1)
    figure("kill -9: shift, calibrate, certify, survey by a folder", len(kills), "the same results")
