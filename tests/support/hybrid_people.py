"""A panel, the people of a town who are not like it, and their phones."""

import json

import numpy as np
from hybrid_tables import SCHEMA

from hdp_fast import local
from hdp_fast.data import Schema
from hdp_fast.transfer import HybridRun

PUBLIC = Schema.from_json(json.dumps(SCHEMA))
PANEL, TOWN = 12_000, 20_000


def people(n, seed, in_panel):
    """A frame of people, of whom the panel's all use the app and buy more often."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(40 if in_panel else 50, 14, n), 18, 90).round()
    home = rng.choice(["own", "rent"], n)
    channel = np.full(n, "app") if in_panel else rng.choice(["app", "phone", "shop"], n)
    visits = rng.poisson(8, n).clip(0, 30).astype(float)
    odds = 0.09 * (age - 45) + 1.5 * (home == "own") + (0.5 if in_panel else -2.0)
    bought = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")
    names = ("age", "home", "channel", "visits", "bought")
    return dict(zip(names, (age, home, channel, visits, bought), strict=True))


panel, town, later = people(PANEL, 0, True), people(TOWN, 1, False), people(4_000, 2, False)


def hybrid(**changed):
    return HybridRun(PUBLIC, **{"epsilon": 2.0, "delta": 1e-6, "features": "numbers"} | changed)


def held(features):
    """What devices hold: the features of the schema, and a label."""
    make = PUBLIC.bits if features == "bits" else PUBLIC.floats
    return make(town), PUBLIC.labels(town)


class Phones:
    """A transport to people who hold records, and are asked one question each."""

    def __init__(self, features, epsilon, rate=1.0):
        self.rows, self.labels = held(features)
        self.epsilon, self.rate, self.next, self.questions = epsilon, rate, 0, []

    def ask(self, text, k):
        chosen = slice(self.next, self.next + k)
        self.next += k
        self.questions.append(json.loads(text))
        reports = local.draw_reports(
            text, self.rows[chosen], self.labels[chosen], epsilon=self.epsilon
        )
        return reports[: int(k * self.rate)]
