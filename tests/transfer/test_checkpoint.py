"""A run that is killed at any step goes on: nothing is spent, asked or shown twice."""

import json
import math
import os
import signal
import sqlite3
import stat
import warnings
from pathlib import Path

import lengths
import numpy as np
import pytest
from processes import exit_code, forked

from hdp_fast import AgentsExhausted, Budget, CheckpointError, ParameterError, _core
from hdp_fast.learners import ExponentialLearner, Stumps
from hdp_fast.local import Agents
from hdp_fast.transfer import SubsampleTestReweigh, estimator
from hdp_fast.transfer.checkpoint import Journal
from hdp_fast.transfer.run import DenseWeights, Run

D, ROUNDS = 4, 4
LEARNER = ExponentialLearner(Stumps(D), epsilon=1.0)
PUBLIC = {"alpha": 0.2, "kappa": 0.5, "eta": 0.8, "rounds": ROUNDS, "epsilon": 1.0, "delta": 1e-5}
ALL = {"schedule": "geometric", "output": "smallest", **PUBLIC}

ALWAYS_ONE = json.dumps({"kind": "conjunction", "features": [], "values": [], "complement": False})

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked child"),
    pytest.mark.filterwarnings("ignore:random_state makes"),
    pytest.mark.usefixtures("quick_plan"),
]


def data(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, D), dtype=np.uint8)
    return X, (X[:, 0] ^ (rng.random(n) < 0.3)).astype(np.uint8)


X, Y = data(500, 0)
PEOPLE = data(20_000, 1)


class Watched(Agents):
    """Writes down who is asked what."""

    def __init__(self, log):
        super().__init__(*PEOPLE, epsilon=2.0)
        self._log = log

    def test(self, learned, count, *, random_state=None):
        start = len(self) - self.remaining
        line = json.dumps([start, count, learned.hypothesis])
        with self._log.open("a") as file:
            file.write(line + "\n")
        return super().test(learned, count, random_state=random_state)


class Leaving(Agents):
    """All go away after two tests."""

    tests = 2

    def test(self, learned, count, *, random_state=None):
        answers = super().test(learned, count, random_state=random_state)
        self.tests -= 1
        if not self.tests:
            self.pass_over(self.remaining)
        return answers


def model(folder, **given):
    return SubsampleTestReweigh(LEARNER, **{**ALL, "checkpoint": str(folder / "run"), **given})


def run(folder, random_state, **given):
    budget = Budget.open(folder / "budget", epsilon=1.0, delta=1e-5)
    agents = Watched(folder / "asked")
    made = model(folder, **given)
    return made.fit(X, Y, agents, budget=budget, random_state=random_state).result_


def outcome(result):
    return result.hypothesis, result.estimates, result.stopped, result.rounds


def questions(folder):
    path = folder / "asked"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


STEPS = [
    (Journal, "__init__"),
    (Journal, "_write"),
    (Agents, "ask"),
    (Run, "_learn"),
    (DenseWeights, "draw"),
    (DenseWeights, "update"),
    (estimator, "spend"),
]


def die_at(step):
    """This process is killed before or after one of the steps, counted from 0."""
    count = 0

    def deadly(function):
        def wrapped(*args, **kwargs):
            nonlocal count
            for when in ("before", "after"):
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1
                if when == "before":
                    result = function(*args, **kwargs)
            return result

        return wrapped

    for owner, name in STEPS:
        setattr(owner, name, deadly(getattr(owner, name)))


def killed_at(step, folder, random_state):
    """Runs in a child that dies at this step; False if it came to its end before."""

    def child():
        die_at(step)
        run(folder, random_state)

    code = exit_code(forked(child))
    assert code in (0, -signal.SIGKILL)
    return code != 0


@pytest.mark.thorough(cases=1)
@pytest.mark.parametrize("random_state", [11, None], ids=["seeded", "entropy"])
def test_killed_at_every_step(memory, random_state):
    (memory / "whole").mkdir()
    whole = run(memory / "whole", random_state)
    # In the short form every fifth step, at others of each parameter, and the end.
    step, stride = (0, 1) if lengths.FAULTS else (0 if random_state is None else 2, 5)
    while True:
        folder = memory / str(step)
        folder.mkdir()
        died = killed_at(step, folder, random_state)
        before = questions(folder)
        begun = saved(folder)
        result = run(folder, random_state)
        assert Budget.open(folder / "budget").spent == (1.0, 1e-5), step
        assert saved(folder)[: len(begun)] == begun, "a round was run twice"
        after = questions(folder)[len(before) :]
        if random_state is not None:
            assert outcome(result) == outcome(whole), step
        else:
            asked = [set(range(start, start + size)) for start, size, _ in before + after]
            assert len(set.union(*asked)) == sum(map(len, asked)), "somebody was asked twice"
        shown = {json.dumps(hypothesis) for _, _, hypothesis in before} - {ALWAYS_ONE}
        assert shown <= set(saved(folder)), "something was shown and then forgotten"
        if not died:
            break
        step += stride
    assert step > 60
    assert not after, "a run that has ended asks no one"


def saved(folder):
    if not (folder / "run").exists():
        return []
    with sqlite3.connect(folder / "run") as connection:
        return [text for (text,) in connection.execute("SELECT hypothesis FROM round")]


def test_file_is_the_owners_alone(tmp_path):
    run(tmp_path, 1)
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"run", "budget", "asked"}


def test_file_holds_no_weights_and_no_records(tmp_path):
    run(tmp_path, 1)
    with sqlite3.connect(tmp_path / "run") as connection:
        ((text,),) = connection.execute("SELECT settings FROM run").fetchall()
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        assert {name for (name,) in tables} == {"run", "round", "test", "total"}
    names = {"plan", "learner", "coins", "run", "seed", "finalists", "salt", "digest"}
    names |= {"answered before"}
    assert set(json.loads(text)) == names
    assert (tmp_path / "run").stat().st_size < 40_000


@pytest.mark.parametrize(
    "change",
    [
        {"eta": 0.7},
        {"rounds": 3},
        {"epsilon": 0.9},
        {"alpha": 0.25},
        {"output": "majority"},
        {"learner": ExponentialLearner(Stumps(D), mechanism="permute_and_flip", epsilon=1.0)},
    ],
    ids=str,
)
def test_other_parameters_are_refused(tmp_path, change):
    run(tmp_path, 1)
    other = model(tmp_path)
    for name, value in change.items():
        setattr(other, name, value)
    agents = Watched(tmp_path / "other")
    with pytest.raises(CheckpointError, match=r"another (plan|learner)"):
        other.fit(X, Y, agents, random_state=1)
    assert agents.remaining == len(agents)


def test_other_data_and_coins_are_refused(tmp_path):
    run(tmp_path, 1)
    changed = X.copy()
    changed[3, 2] ^= 1
    with pytest.raises(CheckpointError, match="records"):
        model(tmp_path).fit(changed, Y, Watched(tmp_path / "other"), random_state=1)
    for coins in (2, None, np.random.default_rng(1)):
        with pytest.raises(CheckpointError, match="coins"):
            model(tmp_path).fit(X, Y, Watched(tmp_path / "other"), random_state=coins)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "run"
    for content in (b"hello", b"SQLite format 3\0" + bytes(84)):
        path.write_bytes(content)
        with pytest.raises(CheckpointError):
            model(tmp_path).fit(X, Y, Watched(tmp_path / "asked"))
        assert path.read_bytes() == content
    path.unlink()
    Budget.open(path, epsilon=1.0)
    with pytest.raises(CheckpointError, match="must be a checkpoint"):
        model(tmp_path).fit(X, Y, Watched(tmp_path / "asked"))
    path.unlink()
    run(tmp_path, 1)
    content = bytearray(path.read_bytes())
    content[60:64] = (1).to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="format must be 2"):
        run(tmp_path, 1)
    content[60:64] = (2).to_bytes(4, "big")
    content[5000:9000] = b"x" * 4000
    path.write_bytes(content)
    with pytest.raises(CheckpointError):
        run(tmp_path, 1)
    with pytest.raises(CheckpointError, match="can be written"):
        model(tmp_path / "nowhere").fit(X, Y, Watched(tmp_path / "asked"))


def test_two_runs_cannot_share_a_file(tmp_path):
    run(tmp_path, 1)
    with sqlite3.connect(tmp_path / "run") as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CheckpointError, match="no other run"):
            run(tmp_path, 1)
    first = model(tmp_path, checkpoint=str(tmp_path / "second"))
    with pytest.raises(AgentsExhausted):
        first.fit(X, Y, Leaving(*PEOPLE, epsilon=2.0))
    second = model(tmp_path, checkpoint=str(tmp_path / "second"))
    second.fit(X, Y, Watched(tmp_path / "asked2"))
    with pytest.raises(CheckpointError, match="gone on elsewhere"):
        first.resume(X, Y, Watched(tmp_path / "asked3"))


def test_more_agents_in_another_process(tmp_path):
    size = model(tmp_path).plan(len(X), agents_epsilon=2.0).agents_per_test
    with pytest.raises(AgentsExhausted):
        model(tmp_path).fit(X, Y, Leaving(*PEOPLE, epsilon=2.0), random_state=3)
    everybody = Watched(tmp_path / "asked")
    result = model(tmp_path).fit(X, Y, everybody, random_state=3).result_
    (tmp_path / "whole").mkdir()
    assert outcome(result) == outcome(run(tmp_path / "whole", 3))
    assert questions(tmp_path)[0][0] == 2 * size


def test_learners_without_descriptions_cannot_be_saved(tmp_path):
    path = str(tmp_path / "run")
    plain = SubsampleTestReweigh(
        lambda X, y: lambda X: np.zeros(len(X)),
        alpha=0.2,
        rounds=2,
        output="smallest",
        epsilon=math.inf,
        checkpoint=path,
    )
    with pytest.raises(ParameterError, match="JSON"):
        plain.fit(X, Y, Agents(*PEOPLE, epsilon=2.0))
    assert not Path(path).exists()


def test_core_weights_stay_private():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = _core.DenseWeights(10, 0.5, 0.1)
    with pytest.raises(TypeError):
        __import__("pickle").dumps(made)
