"""Subsample-Test-Reweigh over records in parts: the bits of one array, numbers by position."""

import itertools
import json
from functools import partial

import numpy as np
import pandas as pd
import pyarrow
import pytest
from sklearn.linear_model import LogisticRegression

from hdp_fast import Budget, learners, local
from hdp_fast.data import Chunks
from hdp_fast.exceptions import CheckpointError, ParameterError, ShapeError
from hdp_fast.transfer import SubsampleTestReweigh, run_records

pytestmark = pytest.mark.filterwarnings("ignore::hdp_fast.UtilityWarning")
N, D, CUTS = 6_000, 5, (0, 0, 1, 70, 70, 4_000, 6_000)
RNG = np.random.default_rng(0)
SOURCE, TARGET = RNG.integers(0, 2, (2, N, D), dtype=np.uint8)
SOURCE[:, 1] |= RNG.random(N) < 0.5
LABELS = np.where(RNG.random(N) < 0.3, SOURCE[:, 0], SOURCE[:, 1] & SOURCE[:, 2])
NAMES = [f"x{place}" for place in range(D)]
TABLE = pd.DataFrame(SOURCE, columns=NAMES).assign(y=LABELS)
RULES = learners.ExponentialLearner(learners.Conjunctions(D, 2), epsilon=1.0)
LINES = learners.ExponentialLearner(
    learners.Halfspaces(np.eye(D)[[0, 1, 2, 3, 4] * 2], -np.arange(10) / 10), epsilon=1.0
)
OPEN = {"epsilon": np.inf, "delta": None, "kappa": 0.05, "eta": 0.5, "rounds": 6, "alpha": 0.1}
OPEN |= {"output": "smallest"}


def pairs(X, y, cuts=CUTS):
    return [(X[start:end], y[start:end]) for start, end in itertools.pairwise(cuts)]


def agents():
    return local.Agents(TARGET, TARGET[:, 1] & TARGET[:, 2], epsilon=2.0)


def run(learner, X, y=None, **changed):
    settings = {"epsilon": 2.0, "delta": 1e-6} | changed
    return SubsampleTestReweigh(learner, **settings).fit(X, y, agents(), random_state=5)


def released(model):
    """All that a run releases; only its name is drawn anew."""
    fields = json.loads(model.result_.to_json())
    if fields["record"] is not None:
        del fields["record"]["run"], fields["record"]["mechanism"]
    return fields


def require_same(one, other):
    assert released(one) == released(other)
    assert (one._weights.probabilities() == other._weights.probabilities()).all()


@pytest.fixture(params=["packed", "read again"])
def memory(request, monkeypatch):
    """Whether bits of parts stay in memory, or are read in each round."""
    if request.param != "packed":
        monkeypatch.setattr(run_records, "MOST_PACKED", 0)


@pytest.mark.parametrize("learner", [RULES, LINES])
@pytest.mark.parametrize("kind", ["pairs", "one", "numbers", "frames", "files", "workers"])
def test_parts_have_the_run_of_one_array(tmp_path, memory, learner, kind):
    chunks = {"pairs": lambda: Chunks(pairs(SOURCE, LABELS)),
              "one": lambda: Chunks([(SOURCE, LABELS)]),
              "numbers": lambda: Chunks(pairs(SOURCE.astype(float), LABELS.astype(bool))),
              "frames": lambda: Chunks([TABLE[:9], TABLE[9:9], TABLE[9:]], label="y")}  # fmt: skip
    if kind in ("files", "workers"):
        for place, (start, end) in enumerate(itertools.pairwise(CUTS)):
            TABLE[start:end].to_parquet(tmp_path / f"{place}.parquet")
        parts = Chunks(tmp_path, label="y", workers=2 if kind == "workers" else None)
    else:
        parts = chunks[kind]()
    whole = run(learner, SOURCE, LABELS)
    require_same(whole, run(learner, parts))
    assert whole.result_.rounds > 2


@pytest.mark.parametrize("weigh_by", ["errors", "losses"])
def test_a_learner_is_shown_the_records_of_the_array_in_their_order(weigh_by):
    """Draws are positions in all parts; whoever learns from them sees what an array would show."""

    class Constant:
        hypothesis = None

        def __init__(self, share):
            self.share = share

        def predict(self, X):
            return (X[:, 0] > self.share).astype(np.uint8)

        def losses(self, X, y):
            return np.abs(X[:, 1] * self.share - y)

    def learn(seen, X, y):
        seen.append((X.copy(), y.copy()))
        return Constant(y.mean())

    X = RNG.normal(size=(N, D)).clip(-1, 1) / 2 + 0.5
    shown = []
    for records in ((X, LABELS), (Chunks(pairs(X, LABELS)), None)):
        seen = []
        model = run(partial(learn, seen), *records, weigh_by=weigh_by, draws=900, **OPEN)
        shown.append((seen, model._weights.probabilities()))
    (one, first), (other, second) = shown
    assert len(one) == len(other) > 1
    for (X_one, y_one), (X_other, y_other) in zip(one, other, strict=True):
        assert (X_one == X_other).all()
        assert (y_one == y_other).all()
    assert (first == second).all()
    assert len(set(first)) > 2


def test_a_classifier_of_scikit_learn_learns_from_parts():
    models = [
        run(LogisticRegression(), *records, draws=500, **OPEN)
        for records in ((SOURCE, LABELS), (Chunks(pairs(SOURCE, LABELS)), None))
    ]
    assert (models[0].predict(TARGET) == models[1].predict(TARGET)).all()
    assert released(models[0])["estimates"] == released(models[1])["estimates"]


def test_a_frame_is_predicted_by_the_names_of_parts():
    model = run(RULES, Chunks([TABLE], label="y"))
    assert model.result_.feature_names_in_ == tuple(NAMES)
    with pytest.raises(ParameterError, match="columns"):
        model.predict(TABLE[NAMES[1:]])


def test_a_run_over_parts_goes_on_and_starts_another(tmp_path, memory):
    """After a crash nothing is learned or charged twice, and other parts are other records."""
    goal = {"checkpoint": str(tmp_path / "run.db"), "rounds": 4, "schedule": "every"}
    goal |= {"output": "smallest", "epsilon": 2.0, "delta": 1e-6, "kappa": 0.2}
    parts = pairs(SOURCE, LABELS)
    whole = run(RULES, Chunks(parts), **{**goal, "checkpoint": None})
    budget, few = Budget(2.0, 1e-6), agents()
    model = SubsampleTestReweigh(RULES, **goal)
    predict, calls = type(RULES.learn(SOURCE, LABELS)).predict, itertools.count()

    def crash(self, X):
        if next(calls) == 3:
            raise OSError("the disk")
        return predict(self, X)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(RULES.learn(SOURCE, LABELS)), "predict", crash)
        with pytest.raises(OSError, match="the disk"):
            model.fit(Chunks(parts), None, few, budget=budget, random_state=5)
    with pytest.raises(CheckpointError, match="not the records"):
        model.resume(Chunks([(SOURCE[::-1], LABELS)]), None, few)
    again = SubsampleTestReweigh(RULES, **goal)
    with pytest.raises(CheckpointError, match="not the records"):
        again.fit(Chunks(parts[::-1]), None, agents(), budget=budget, random_state=5)
    again.fit(Chunks(parts), None, few, budget=budget, random_state=5)
    assert budget.spent == (2.0, 1e-6)
    assert released(again) == released(whole)
    following = SubsampleTestReweigh(RULES, epsilon=2.0, delta=1e-6)
    with pytest.raises(ParameterError, match="other records"):
        following.fit(Chunks([(SOURCE, 1 - LABELS)]), None, agents(), start=again)
    following.fit(Chunks(parts), None, agents(), start=again)


def test_parts_are_refused_before_anything_is_spent(tmp_path):
    parts = pairs(SOURCE, LABELS)
    wide, twos = np.ones((3, D + 1), np.uint8), np.full((3, D), 2)
    sgd = learners.PrivateSGD(
        loss="logistic", steps=5, batch_size=10, radius=3, norm_bound=3, epsilon=1.0, delta=1e-6
    )
    TABLE.to_csv(tmp_path / "a.csv", index=False)
    for learner, X, y, error, words in (
        (RULES, Chunks(parts), LABELS, ParameterError, "y was passed beside Chunks"),
        (RULES, Chunks([TABLE]), None, ParameterError, "parts without labels"),
        (RULES, Chunks([TABLE], label="y", ids="x0"), None, ParameterError, "ids = 'x0'"),
        (RULES, Chunks([*parts, (wide, [0, 1, 0])]), None, ShapeError, "shape"),
        (LINES, Chunks([*parts, (wide, [0, 1, 0])]), None, ShapeError, "features"),
        (RULES, Chunks([*parts, (twos, [0, 1, 0])]), None, ParameterError, "X"),
        (RULES, Chunks([*parts, (SOURCE[:3], [0, 1, 2])]), None, ParameterError, "y"),
        (RULES, Chunks([*parts, (SOURCE[:3], [0, 1])]), None, ShapeError, "y"),
        (RULES, Chunks(parts[:1]), None, ShapeError, "one at least"),
        (RULES, Chunks([tmp_path / "a.csv"] * 2, label="y"), None, ParameterError, "there twice"),
        (sgd, Chunks(parts), None, ParameterError, "draws for itself"),
        (
            RULES,
            Chunks(pyarrow.Table.from_pandas(TABLE).to_reader(), label="y"),
            None,
            ParameterError,
            "RecordBatchReader",
        ),
    ):
        budget, asked = Budget(2.0, 1e-6), agents()
        model = SubsampleTestReweigh(learner, epsilon=2.0, delta=1e-6)
        with pytest.raises(error, match=words):
            model.fit(X, y, asked, budget=budget)
        assert budget.spent == (0, 0)
        assert asked.remaining == N


def test_a_part_that_changes_between_passes_is_noticed(memory):
    passes = itertools.count()

    def read():
        size = N if next(passes) < 2 else N - 1  # looked at twice before a run begins
        return SOURCE[:size], LABELS[:size]

    with pytest.raises(ParameterError, match="changed since they were read"):
        run(RULES, Chunks([read]))
