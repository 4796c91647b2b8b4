"""Fixtures of several modules about agents."""

import numpy as np
import pytest

from hdp_fast import local


@pytest.fixture
def in_turn(monkeypatch):
    """Whose question is which goes by their order, as with simulated agents, and not by a hash."""

    def places(stage):
        return np.repeat(np.arange(len(stage.shares)), stage.shares)

    monkeypatch.setattr(local.Stage, "places", places)
