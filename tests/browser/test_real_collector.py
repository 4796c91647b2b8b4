"""The page and the collector's own server, a process of its own: what it says is understood."""

import csv
import re
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager

import pytest
from page_visits import SCHEMA, TEXTS

from hdp_fast import collection
from hdp_fast.local import Query

READY, SENT = "The question is genuine.", "The line was sent"


@pytest.fixture
def study(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    form = collection.form_of(SCHEMA, features="numbers", texts=TEXTS)
    place = {"people": 10, "url": f"http://127.0.0.1:{port}", "form": form}
    return collection.Study.create(tmp_path / "town", asker="City", epsilon=1.0, **place)


@contextmanager
def served(study):
    """The server of a study, until it is killed in the hard way."""
    port = study.url.rpartition(":")[2]
    command = ["survey", "serve", str(study.path), "--port", port, "--quiet"]
    server = subprocess.Popen([sys.executable, "-m", "hdp_fast", *command])
    try:
        for _ in range(400):
            try:
                urllib.request.urlopen(f"{study.url}/health").close()
                break
            except OSError:
                assert server.poll() is None
                time.sleep(0.05)
        yield
    finally:
        server.kill()
        server.wait()


def link(study, number):
    with (study.path / "invitations.csv").open() as file:
        return next(row["link"] for row in csv.DictReader(file) if row["number"] == str(number))


def draw(one):
    one.page.get_by_role("radio", name="yes").check()
    one.click("Randomize my answer")
    return one.line()


def test_a_study_is_answered_through_its_server(study, person):
    study.publish(Query.label().to_json(), 3)
    with served(study):
        one = person()
        one.open(link(study, 4), "There is no question for you yet.")
        one.open(link(study, 1), READY)
        line = draw(one)
        one.click("Send this line")
        one.expect(SENT)
        ((key, report),) = study.answers(1)
        assert f'"report":{report},"id":"{key}"' in line
        person().open(link(study, 1), "This invitation has been answered already")
        unknown = re.sub("token=[0-9a-f]+", f"token={'00' * 16}", link(study, 2))
        person().open(unknown, "The server does not know this invitation.")
        late = person()
        late.open(link(study, 3), READY)
        draw(late)
        study.close(1)
        late.click("Send this line")
        late.expect("The question was closed before the line arrived.")
        person().open(link(study, 2), "This question is closed.")
        assert study.counts() == {"invited": 3, "answered": 1}
        # The browser itself tells of the 404.
        assert not [text for text in one.heard if "404" not in text]


def test_a_line_outlives_a_server_that_is_killed(study, person):
    study.publish(Query.label().to_json(), 3)
    one = person()
    with served(study):
        one.open(link(study, 1), READY)
        line = draw(one)
    one.click("Send this line")
    one.expect("The line has not arrived, as far as this page knows.")
    with served(study):
        one.click("Send the same line again")
        one.expect(SENT)
    ((key, report),) = study.answers(1)
    assert f'"report":{report},"id":"{key}"' in line
    # The confirmation may have been lost: the same line is confirmed again, even after the end.
    study.close(1)
    again = person()
    with served(study):
        again.open(f"{study.url}/index.html")
        status = again.page.evaluate(
            """async ([token, line]) => {
                const headers = { Authorization: `Bearer ${token}` };
                return (await fetch("answer", { method: "POST", body: line, headers })).status;
            }""",
            [link(study, 1).partition("token=")[2][:32], line],
        )
    assert status == 200
    assert study.counts() == {"invited": 3, "answered": 1}
