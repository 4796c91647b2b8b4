"""What is drawn without a seed in a test comes from a fixed stream, elsewhere from the system."""

import numpy as np
import pytest
import streams
from processes import exit_code, forked, forking

from hdp_fast import noise

KEPT = []


def draw():
    return noise.discrete_laplace(1e9, 20).tolist(), np.random.default_rng().random(20).tolist()


@pytest.mark.parametrize("run", [1, 2])
def test_each_test_begins_the_stream_anew_and_never_repeats_it_inside(run):
    first = draw()
    assert draw() != first
    KEPT.append(first)
    assert all(kept == first for kept in KEPT)


@pytest.mark.entropy
def test_the_system_draws_where_a_test_asks_for_it():
    """Twenty draws of a deviation of 1e9 agree with probability below 1e-150."""
    assert streams.take() is None
    ours = draw()
    streams.restart(fixed=True)
    assert draw() != ours
    again = draw()
    streams.restart(fixed=True)
    draw()
    assert draw() == again


@forking
def test_a_child_draws_from_the_system():
    def child():
        assert streams.take() is None

    assert exit_code(forked(child), 60) == 0


def test_seeds_are_what_they_were():
    assert (
        noise.discrete_laplace(9.0, 5, random_state=3).tolist()
        == noise.discrete_laplace(9.0, 5, random_state=3).tolist()
    )
    assert np.random.default_rng(3).random() == np.random.Generator(np.random.PCG64(3)).random()
