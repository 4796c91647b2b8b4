"""A study from advice to report whose people answer on the page, in headless Chromium.

python benches/visits.py [--people 300] [--epsilon 4] [--beta .05] [--pictures build/visits]

A made-up panel and town, whose truth is known. `hdp-fast advise` and `hdp-fast survey create` and
`serve` run as processes of their own; Python learns the panel's model, and asks people what moved,
for a calibration, certificates and a survey through collection.SurveyServer. Each person who is
invited is a visit of the page with an empty browser, which types the record, has it randomized
and sends the line. It fails where an interval does not hold the truth; with B intervals that
happens by chance with a probability of at most B times beta. It needs the extras `browse` and
`serve`, and Chromium (Debian: apt-get install chromium).
"""

import argparse
import csv
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from hdp_fast import Budget, collection, local, transfer
from hdp_fast.data import Category, Label, Number, Schema
from hdp_fast.local import Query

SCHEMA = Schema(
    Label("bought", positive=("yes",)),
    {
        "age": Number(18, 90),
        "home": Category(("own", "rent")),
        "channel": Category(("app", "phone", "shop")),
    },
)
TEXTS = {
    "age": "How old are you?",
    "home": "Do you own your home?",
    "home=own": "I own it",
    "home=rent": "I rent it",
    "channel": "How do you mostly buy?",
    "channel=app": "by the app",
    "channel=phone": "by phone",
    "channel=shop": "in the shop",
    "bought": "Did you buy in the last 30 days?",
}
RECORDS, TRUTH = 20_000, 400_000
SCREENS = {
    "desktop": {"viewport": {"width": 1000, "height": 900}},
    "phone": {"viewport": {"width": 375, "height": 812}, "is_mobile": True, "has_touch": True},
    "dark": {"viewport": {"width": 375, "height": 812}, "color_scheme": "dark"},
}


def draw_people(n: int, seed: int, *, is_panel: bool) -> dict[str, Any]:
    """Records of a panel that was found by an app, or of the town around it."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(40 if is_panel else 50, 14, n), 18, 90).round()
    home = rng.choice(["own", "rent"], n, p=[0.4, 0.6] if is_panel else [0.6, 0.4])
    ways = [1, 0, 0] if is_panel else [0.5, 0.2, 0.3]
    channel = rng.choice(["app", "phone", "shop"], n, p=ways)
    odds = 0.08 * (age - 45) + 1.5 * (home == "own") + (0.5 if is_panel else -1.0)
    bought = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    return {"age": age, "home": home, "channel": channel, "bought": bought}


def hdp_fast(*words: str) -> list[str]:
    return [sys.executable, "-m", "hdp_fast", *words]


def say(command: list[str]) -> str:
    """Runs a command as a shell would, and prints what it says."""
    print("$ hdp-fast", *command[3:])
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    print(text, flush=True)
    return text


@contextmanager
def serve(study: Path, port: int) -> Iterator[None]:
    """The server as a process of its own, until the end."""
    command = hdp_fast(*f"survey serve {study} --port {port} --per-address 0 --quiet".split())
    server = subprocess.Popen(command)
    try:
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except OSError:
                assert server.poll() is None, "the server has ended"
                time.sleep(0.05)
        yield
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


class Town(threading.Thread):
    """The people of a study: who is invited opens the link, types the record and sends the line."""

    def __init__(self, study: collection.Study, records: dict[str, Any], pictures: Path):
        super().__init__(daemon=True)
        self._study, self._records, self._pictures = study, records, pictures
        with (study.path / "invitations.csv").open() as file:
            self._links = {int(row["number"]): row["link"] for row in csv.DictReader(file)}
        self.seconds = list[float]()
        self.rounds = list[tuple[int, int]]()
        self.problems = list[str]()
        self.ended = threading.Event()

    def run(self) -> None:
        """Visits for every stage that is published, until the study has ended."""
        program = shutil.which("chromium") or shutil.which("google-chrome")
        try:
            assert program, "no Chromium: apt-get install chromium"
            with sync_playwright() as play:
                settings = {"executable_path": program, "args": ["--no-sandbox"]}
                with play.chromium.launch(**settings) as browser:
                    while not self.ended.wait(0.05):
                        for stage in self._study.stages()[len(self.rounds) :]:
                            for number in range(stage.first, stage.first + stage.count):
                                self._visit(browser, number)
                            self.rounds.append((stage.first, stage.count))
        except BaseException as error:
            self.problems.append(repr(error))
            raise

    def _visit(self, browser: Any, number: int) -> None:
        """One person, with a browser that nobody has used before."""
        pictured = dict(zip(range(2, 2 + len(SCREENS)), SCREENS, strict=True)).get(number)
        start = time.perf_counter()
        context = browser.new_context(**SCREENS[pictured or "phone"])
        page = context.new_page()
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(self._links[number])
        page.get_by_text("The question is genuine.").wait_for()
        self._shoot(page, pictured, "question")
        for name in ("age", "home", "channel", "bought"):
            self._type(page, name, self._records[name][number - 1])
        page.get_by_role("button", name="Randomize my answer").click()
        page.locator(".leaves").wait_for()
        self._shoot(page, pictured, "line")
        page.get_by_role("button", name="Send this line").click()
        page.get_by_text("The line was sent").wait_for()
        self._shoot(page, pictured, "sent")
        context.close()
        self.seconds.append(time.perf_counter() - start)

    def _type(self, page: Page, name: str, value: Any) -> None:
        """Answers an input, if the page asks for it."""
        if name == "age":
            field = page.get_by_label(TEXTS["age"])
            if field.count():
                field.fill(f"{value:g}")
            return
        field = page.get_by_role("group", name=TEXTS[name])
        if field.count():
            text = TEXTS.get(f"{name}={value}", str(value))
            field.get_by_role("radio", name=text, exact=True).check()

    def _shoot(self, page: Page, screen: str | None, name: str) -> None:
        if screen is not None:
            path = self._pictures / f"{screen}_{name}.png"
            page.screenshot(path=path, full_page=True, animations="disabled")


def compare(rows: list[tuple[str, float, float, float]]) -> int:
    """Prints each interval beside the truth; how many do not hold it."""
    missed = 0
    for name, low, high, truth in rows:
        holds = low <= truth <= high
        missed += not holds
        print(
            f"{name:34} [{low:7.3f}, {high:7.3f}]  truth {truth:7.3f}  {'' if holds else 'MISSED'}"
        )
    return missed


def truths(
    result: transfer.HybridModel, answers: transfer.SurveyResult, queries: dict[str, Query]
) -> list[tuple[str, float, float, float]]:
    """The intervals of a run, and what holds of the whole town and the whole panel."""
    town, panel = (draw_people(TRUTH, 7 + place, is_panel=bool(place)) for place in (0, 1))
    features, labels = SCHEMA.floats(town), SCHEMA.labels(town)
    rows = list[tuple[str, float, float, float]]()
    if result.shift is not None:
        moved = features.mean(axis=0) - SCHEMA.floats(panel).mean(axis=0)
        for shift, truth in zip(result.shift.columns, moved.tolist(), strict=True):
            rows.append((f"shift of {shift.name}", shift.low, shift.high, truth))
    models = {"before": result.panel_model, "after": result.model}
    for when, certificate in result.certificates.items():
        wrong = float((np.array(models[when].predict(town)) != labels).mean())
        rows.append((f"error {when} the calibration", certificate.low, certificate.high, wrong))
    constants = certificate.constants
    if constants is not None:
        share = float(labels.mean())
        best = min(share, 1 - share)
        rows.append(("error of the better constant", constants.low, constants.high, best))
    for name, query in queries.items():
        row, truth = answers[name], float(query(features, labels).mean())
        low, high = row.bounds
        rows.append((f"survey: {name}", row.low, row.high, low + (high - low) * truth))
    return rows


def ask_town(town: Town, study: collection.Study, beta: float) -> int:
    """Learns the panel's model and asks the town; how many intervals miss the truth."""
    people = study.people
    panel = draw_people(RECORDS, 1, is_panel=True)
    options = {"screen": 0.25, "certify": 0.25, "features": "numbers", "beta": beta}
    run = transfer.HybridRun(SCHEMA, epsilon=1.0, delta=1e-6, **options)
    count = people * 4 // 5
    print(run.plan(n=RECORDS, agents=count, agents_epsilon=study.epsilon), "\n", flush=True)
    server = collection.SurveyServer(study, deadline=3600.0, poll=0.1)
    way = {"collect": server.collect, "state": study.path / "agents.db", "count": people}
    agents = local.RemoteAgents(server.ask, epsilon=study.epsilon, **way)
    result = run.run(panel, agents, count=count, budget=Budget(1.0, delta=1e-6))
    queries = {
        "bought": Query.label(),
        "age": Query.value(0, 0.0, 1.0),
        "wrong about the young": Query.wrong(result.calibrated) & Query.between(0, high=0.4),
    }
    answers = transfer.survey(queries, agents, count=agents.remaining, beta=beta)
    print(result, answers, agents, agents.counts(), sep="\n\n", end="\n\n")
    return compare(truths(result, answers, queries))


def main(people: int, epsilon: float, beta: float, pictures: Path) -> int:
    """Runs the study, and says what it took and whether its intervals hold the truth."""
    pictures.mkdir(parents=True, exist_ok=True)
    say(hdp_fast(*f"advise --records {RECORDS} --features 6 --epsilon 1 --delta 1e-6".split(),
        *f"--target shifted --agents {people} --agents-epsilon {epsilon:g}".split()))  # fmt: skip
    with tempfile.TemporaryDirectory() as name, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port, folder = free.getsockname()[1], Path(name)
        free.close()
        form = collection.form_of(SCHEMA, features="numbers", texts=TEXTS)
        (folder / "form.json").write_text(form)
        place, url = folder / "town", f"http://127.0.0.1:{port}"
        say([*hdp_fast("survey", "create", str(place), "--asker", "City of Example"),
             *f"--epsilon {epsilon:g} --people {people} --url {url}".split(),
             *f"--form {folder / 'form.json'}".split()])  # fmt: skip
        study = collection.Study.open(place)
        town = Town(study, draw_people(people, 3, is_panel=False), pictures)
        start = time.perf_counter()
        with serve(place, port):
            town.start()
            missed = ask_town(town, study, beta)
            town.ended.set()
            town.join()
        seconds = np.sort(town.seconds)
        counts = study.counts()
    took = f"{len(town.rounds)} rounds, {time.perf_counter() - start:.0f} s"
    each = f"a visit {np.median(seconds):.2f} s, the longest {seconds[-1]:.2f} s"
    print(f"\n{len(seconds)} visits in {took}; {each}; {counts}")
    for problem in town.problems:
        print(problem)
    print(f"{missed} intervals miss the truth; pictures in {pictures}")
    is_whole = counts == {"invited": people, "answered": people}
    return 1 if missed or town.problems or not is_whole else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=300)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--beta", type=float, default=0.05)
    parser.add_argument("--pictures", type=Path, default=Path("build/visits"))
    options = parser.parse_args()
    sys.exit(main(options.people, options.epsilon, options.beta, options.pictures.resolve()))
