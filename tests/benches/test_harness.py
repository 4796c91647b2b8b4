"""Races of routes: turns, threads, shares of the work, and what is forgotten between calls."""

import importlib
import os
import time
from pathlib import Path

import pytest

from hdp_fast import accounting

BENCHES = Path(__file__).parents[2] / "benches"

pytest.importorskip("threadpoolctl")
pytestmark = pytest.mark.skipif(not BENCHES.exists(), reason="needs benches/")


@pytest.fixture(scope="module")
def harness():
    """Modules of benches import each other by their names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHES))
        yield importlib.import_module("_harness")


@pytest.fixture
def race(harness):
    return harness.Race("made.up", {}, seconds=0.05, scale=lambda size: size // 10, once=False)


def routes_of(race):
    return {f"{route.role} {route.name}": route for route in race.routes}


def test_routes_take_turns(race):
    order = []
    race.ours(lambda: (order.append("ours"), time.sleep(0.006)), threads=(1,))
    race.numpy("slow", lambda: (order.append("numpy"), time.sleep(0.04)))
    race.run()
    # First each is run alone, to see how long it takes.
    assert order[:6] == ["ours", "numpy"] * 3
    routes = routes_of(race)
    assert len(routes["numpy slow"].times) >= 3
    assert 0.006 <= routes["ours 1 thread"].seconds < routes["numpy slow"].seconds


def test_a_short_call_is_repeated_after_one_that_wakes_the_caches(race):
    calls = []
    race.numpy("short", lambda: calls.append(1))
    race.run()
    (route,) = race.routes
    # How many depends on the time of one, which another process may have made longer.
    assert 1 < route.calls <= 200
    assert len(calls) == 1 + len(route.times) * (route.calls + 1)


def test_threads_are_those_of_the_route_and_then_as_before(race, monkeypatch):
    monkeypatch.setenv("HDP_FAST_NUM_THREADS", "7")
    seen = set()
    race.ours(lambda: seen.add(os.environ["HDP_FAST_NUM_THREADS"]))
    race.run()
    assert seen == {"1", "2"}
    assert os.environ["HDP_FAST_NUM_THREADS"] == "7"
    assert [route.name for route in race.routes] == ["1 thread", "2 threads"]


def test_a_part_of_the_work_is_charged_for_the_whole(race):
    race.peer("tenth", lambda: time.sleep(0.01), share=10)
    race.run()
    assert 0.1 <= race.routes[0].seconds < 1


def test_a_route_may_bring_its_own_clock(race):
    race.peer("another process", lambda: 0.25, is_clock=True)
    race.run()
    assert race.routes[0].seconds == 0.25


def test_a_limit_is_seconds_or_an_action(race):
    race.limit("computed", 0.5)
    race.limit("timed", lambda: time.sleep(0.006), threads=2)
    race.run()
    routes = routes_of(race)
    assert routes["limit computed"].seconds == 0.5
    assert routes["limit timed"].seconds >= 0.006
    race.restart()
    assert routes["limit computed"].seconds == 0.5


def test_sizes_are_kept_as_parameters(race):
    assert race.scaled("n", 100) == 10
    assert race.params == {"n": 10}


def test_a_run_for_correctness_calls_everything_once(harness):
    calls = []
    race = harness.Race("made.up", {}, seconds=1.0, scale=lambda size: size, once=True)
    race.ours(lambda: calls.append("ours"), threads=(1,))
    race.peer("peer", lambda: calls.append("peer"))
    race.limit("computed", 0.5)
    race.run()
    assert calls == ["ours", "peer"]


def test_plans_are_forgotten_so_that_a_search_is_timed(harness):
    terms = [(accounting.GaussianMechanism(0.731), 10)]

    def search():
        start = time.perf_counter()
        accounting.epsilon(terms, 1e-6)
        return time.perf_counter() - start

    first, again = search(), search()
    harness.forget_plans()
    assert again < first / 2
    assert search() > 2 * again


def test_a_bench_that_needs_more_memory_is_skipped(harness):
    harness.require_memory(1)
    with pytest.raises(pytest.skip.Exception, match="GB of memory"):
        harness.require_memory(1e18)


def test_processor_time_is_that_of_one_thread(race, harness, monkeypatch):
    monkeypatch.setattr(harness, "CLOCK", [time.process_time])
    race.ours(lambda: time.sleep(0.006))
    race.run()
    assert [route.name for route in race.routes] == ["1 thread"]
    assert race.routes[0].seconds < 0.003


def test_a_limit_that_does_a_part_is_charged_for_the_whole(race):
    race.limit("a part", lambda: time.sleep(0.006), share=10)
    race.run()
    assert race.routes[0].seconds >= 0.06
