"""A study on your own machine: a panel, a server, 2,000 people who answer, and a Ctrl-C.

It goes the way of the guide on real people, with the shop's panel and town, an epsilon of 4 and
nobody in between: the server is a process of its own, people send requests as their page does, with
lines of the device's own code, and the run is interrupted in its first round. Run it with
`python examples/real_people.py`; it takes seconds and needs the extra serve.
"""

import csv
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from panel_and_survey import make_tables

from hdp_fast import collection
from hdp_fast.data import Schema, read_table

PEOPLE = 2_000
HDP_FAST = [sys.executable, "-m", "hdp_fast"]
CREATE = (
    "survey create study --schema schema.json --texts texts.json --asker Example --epsilon 4"
    f" --people {PEOPLE} --url http://localhost"
)
SERVE = "survey serve study --port 0 --per-address 0"
RUN = (
    "hybrid panel.csv study --schema schema.json --features numbers --epsilon 1 --delta 1e-6"
    " --deadline 60s"
)


def say(command: str) -> None:
    """Runs a command as a shell would, and prints what it says."""
    print(f"\n$ hdp-fast {command}", flush=True)
    subprocess.run([*HDP_FAST, *command.split()], check=True)


def answer_all(port: int, study: collection.Study) -> None:
    """In place of a page on each phone: opens every link once its round is there; sends a line."""
    schema, town = Schema.from_json(Path("schema.json").read_text()), read_table("town.csv")
    records, labels = schema.floats(town), schema.labels(town)
    with open(study.path / "invitations.csv", encoding="utf-8", newline="") as file:
        links = [parse_qs(urlsplit(row["link"]).fragment) for row in csv.DictReader(file)]
    visit, done = http.client.HTTPConnection("127.0.0.1", port), 0
    while done < len(links):
        time.sleep(0.02)
        for stage in study.stages():
            for number in range(max(done + 1, stage.first), stage.first + stage.count):
                token = {"Authorization": f"Bearer {links[number - 1]['token'][0]}"}
                visit.request("GET", "/question", headers=token)
                signed = json.loads(visit.getresponse().read())  # a page checks the signature
                question = collection.Question.from_json(signed["question"])
                record = records[number - 1], labels[number - 1]
                line = collection.hypothesis_line(question, *record, number=number)
                visit.request("POST", "/answer", body=line, headers=token)
                confirmed = visit.getresponse()
                confirmed.read()
                if confirmed.status != 200:  # the line is on the disk
                    raise SystemExit(f"a line was refused with {confirmed.status}")
                done = number


def interrupt(study: collection.Study) -> int:
    """Begins the run, and ends it by Ctrl-C while its first round is out; its exit code."""
    command = [*HDP_FAST, *RUN.split(), "--report", "report.html"]
    begun = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while begun.poll() is None and not study.stages():
        time.sleep(0.02)
    begun.send_signal(signal.SIGINT)
    return begun.wait()


def main() -> None:
    make_tables(Path())
    Path("texts.json").write_text('{"age": "How old are you?", "home=own": "I own it"}')
    say(CREATE)
    server = subprocess.Popen([*HDP_FAST, *SERVE.split()], stderr=subprocess.PIPE, text=True)
    port = urlsplit(server.stderr.readline().split(" at ")[1].split(": ")[0]).port
    study = collection.Study.open("study")
    try:
        say(f"{RUN} --plan")
        print("\nCtrl-C in the first round: exit code", interrupt(study))
        threading.Thread(target=answer_all, args=(port, study), daemon=True).start()
        say("hybrid study")
    finally:
        server.terminate()
    print(study.counts())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            main()
        finally:
            os.chdir(Path(__file__).parent)
