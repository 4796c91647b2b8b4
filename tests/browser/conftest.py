"""Headless Chromium, a server of the respondent's page, and people with a browser each."""

from contextlib import suppress

import pytest
from page_visits import Collector, Person, open_chromium
from playwright.sync_api import sync_playwright


@pytest.fixture
def collector():
    server = Collector()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def chromium():
    with sync_playwright() as play, open_chromium(play.chromium) as browser:
        yield browser


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
