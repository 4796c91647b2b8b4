"""Headless Chromium, a server of the respondent's page, and people with a browser each."""

import shutil
from contextlib import suppress

import pytest
from page_visits import Collector, Person
from playwright.sync_api import sync_playwright


@pytest.fixture
def collector():
    server = Collector()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def chromium():
    program = shutil.which("chromium") or shutil.which("google-chrome")
    assert program, "no Chromium: apt-get install chromium"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def person(chromium):
    people = []

    def new(**options):
        people.append(Person(chromium, **options))
        return people[-1]

    yield new
    for each in people:
        with suppress(Exception):
            each.context.close()
