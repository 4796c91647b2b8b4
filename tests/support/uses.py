"""Calls of what no example of a docstring calls: further bases of `walk.py`.

Each makes a callable and arguments that it accepts.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from calls import CALLS, EYE, HAZARDS, ONES
from doors import (
    ADAPTING,
    BITS,
    HALFSPACE,
    LABELS,
    NUMBERS,
    REALS,
    SIGNS,
    STUMPS,
    labeler,
    sgd,
    soft,
)
from scipy import sparse

from hdp_fast import (
    adaptation,
    collection,
    data,
    gf2,
    labels,
    learners,
    local,
    stability,
    statistics,
    transfer,
    weights,
)
from hdp_fast.local import Agents, Query

Base = tuple[Callable[..., Any], dict[str, Any]]
GOAL = {"queries": 9, "epsilon": 1, "delta": 1e-6, "beta": 0.1}
GAUSSIAN = stability.GaussianVote.design(labels=4, **GOAL)
LEARNER = learners.ExponentialLearner(STUMPS, epsilon=1.0)
QUESTION = collection.Question("hours", local.BinaryResponse(1.0, (0, 24)))
TRAVEL = collection.Question("travel", local.KaryResponse(2, 1.0), ("bus", "other"))
RULE = STUMPS.hypothesis(0)
LEARNED = SimpleNamespace(predict=lambda X: X[:, 0], hypothesis=RULE)
TABLE = data.read_frame({"age": [20.0, 50.0, 80.0], "bought": ["yes", "no", "yes"]}, public=True)
SCHEMA = data.Schema(data.Label("bought", positive=("yes",)), {"age": data.Number(0, 100, (40,))})


def _collected() -> collection.Collection:
    """Three reports about travels."""
    reports = collection.Collection(TRAVEL)
    lines = "\n".join(collection.report_lines(TRAVEL, ["bus"] * 3)).encode()
    reports.read(io.BytesIO(lines), done=lambda length: None)
    return reports


def study() -> collection.Study:
    """A study of a thousand people, two of whom were asked something."""
    place = Path(tempfile.mkdtemp()) / "study"
    facts = {"asker": "City of Example", "epsilon": 1.0, "url": "https://example.org"}
    made = collection.Study.create(place, people=1_000, **facts)
    made.publish("{}", 2)
    return made


def people() -> Agents:
    """Those of whom no one was asked yet."""
    return Agents(BITS, LABELS, epsilon=1.0)


def remote() -> local.RemoteAgents:
    """Likewise, elsewhere."""
    return local.RemoteAgents(lambda text, count: [0] * count, epsilon=1.0, count=40)


def stage() -> local.Stage:
    """A question to nine of them."""
    query = local.Query.label().hypothesis
    return local.Stage([query], [1], key=bytes(16), first=1, count=9)


def concept() -> local.MaskedParityAgents:
    """Likewise, drawn from a concept."""
    return local.MaskedParityAgents(local.MaskedParity([1, 0], 1), 9, epsilon=1.0)


def adapted(name: str = "ConvexAdaptation", y: Any = SIGNS) -> Any:
    """A fitted learner of adaptation."""
    return ADAPTING[name]().fit(NUMBERS, y, NUMBERS, y)


def released() -> learners.ReleasedStatistics:
    """Second moments of a few records."""
    made = learners.SufficientStatistics(
        learners.FeatureMap.identity(4), classes=[0, 1], second_moments=True
    )
    return made.release(NUMBERS, LABELS, epsilon=1.0, delta=1e-3, random_state=1)


def softmax() -> learners.SoftmaxModel:
    """A model of two classes."""
    made = learners.PrivateSGD(loss="softmax", classes=2, steps=2, noise_multiplier=1.0)
    return made.learn(NUMBERS, LABELS)


def stored(save: Callable[[Path], object], suffix: str) -> str:
    """A file that `save` wrote."""
    path = Path(tempfile.mkdtemp()) / f"stored{suffix}"
    save(path)
    return str(path)


def run() -> transfer.SubsampleTestReweigh:
    """An estimator that was not fitted."""
    goal = {"alpha": 0.4, "beta": 0.4, "kappa": 1, "rounds": 1, "draws": 9}
    return transfer.SubsampleTestReweigh(LEARNER, epsilon=float("inf"), output="majority", **goal)


def ran() -> transfer.SubsampleTestReweigh:
    """A fitted one."""
    crowd = Agents(np.ones((900, 4), np.uint8), np.ones(900, int), epsilon=8)
    return run().fit(BITS, LABELS, crowd)


def calibration() -> transfer.CalibratedModel:
    """A model that a few hundred people have calibrated."""
    agents = Agents(np.tile(BITS, (20, 1)), np.tile(LABELS, 20), epsilon=4.0)
    return transfer.calibrate(lambda X: X[:, 0] - 0.5, agents, random_state=0)


def statistics_labeler() -> labels.StatisticsLabeler:
    """A fitted one."""
    goal = {"epsilon": 1, "delta": 1e-3, "population": "tested"}
    return labels.StatisticsLabeler(classes=[0, 1], **goal).fit(NUMBERS, LABELS, NUMBERS[:9])


def private_model() -> learners.PrivateModel:
    """A linear model of a table."""
    made = learners.CenteredLinear(SCHEMA, epsilon=1.0, delta=1e-3)
    return made.learn(TABLE, random_state=1)


def shares_of_homes():
    schema = data.Schema(None, {"home": data.Category(("town", "land"))})
    homes = {"home": ["town", "land", "town"] * 50}
    return statistics.tables(homes, schema, epsilon=1.0).shares("home")


def hybrid() -> transfer.HybridRun:
    """A run in which no one is asked what moved."""
    return transfer.HybridRun(
        SCHEMA, epsilon=1.0, delta=1e-3, screen=0.0, certify=0.2, features="numbers"
    )


def survey() -> local.Agents:
    """Enough people for it, of whom no one was asked yet."""
    return local.Agents(np.full((120, 1), 0.5), np.arange(120) % 2, epsilon=1.0)


def learn_hybrid() -> transfer.HybridModel:
    """The model of a panel."""
    return hybrid().learn(TABLE, survey(), random_state=1)


STATISTICS = released()
QUERY = Query.label() & Query.value(0, -1, 1)
# By the public name, without that of the package.
BASES: dict[str, Callable[[], Base]] = {
    "gf2.rank": lambda: (gf2.rank, {"A": EYE, "threads": 1}),
    "gf2.dot": lambda: (gf2.dot, {"A": EYE, "x": ONES, "threads": 1}),
    "gf2.BitMatrix.from_dense": lambda: CALLS["from_dense"],
    "gf2.BitMatrix.zeros": lambda: (gf2.BitMatrix.zeros, {"nrows": 2, "ncols": 3}),
    "gf2.BitMatrix.identity": lambda: (gf2.BitMatrix.identity, {"n": 3}),
    "gf2.BitMatrix.random": lambda: (
        gf2.BitMatrix.random,
        {"nrows": 2, "ncols": 3, "random_state": 1},
    ),
    "gf2.BitMatrix.from_integers": lambda: (
        gf2.BitMatrix.from_integers,
        {"rows": [1, 2], "ncols": 3},
    ),
    "gf2.BitMatrix.from_npz": lambda: (
        gf2.BitMatrix.from_npz,
        {"path": stored(gf2.BitMatrix.identity(3).to_npz, ".npz")},
    ),
    "gf2.BitMatrix.to_npz": lambda: (
        gf2.BitMatrix.identity(3).to_npz,
        {"path": stored(lambda path: None, ".npz")},
    ),
    "gf2.BitMatrix.from_sparse": lambda: (
        gf2.BitMatrix.from_sparse,
        {"X": sparse.csr_array(EYE)},
    ),
    "gf2.BitMatrix.popcount": lambda: (gf2.BitMatrix.identity(3).popcount, {"axis": 0}),
    "gf2.BitMatrix.sum": lambda: (gf2.BitMatrix.identity(3).sum, {"axis": 0}),
    "gf2.BitMatrix.take": lambda: (gf2.BitMatrix.identity(3).take, {"indices": [1], "axis": 0}),
    "gf2.BitMatrix.permute": lambda: (
        gf2.BitMatrix.identity(3).permute,
        {"rows": [2, 0, 1], "columns": None},
    ),
    "gf2.BitMatrix.to_dense": lambda: (gf2.BitMatrix.identity(3).to_dense, {"out": None}),
    "gf2.determinant": lambda: (gf2.determinant, {"A": EYE, "threads": 1}),
    "gf2.echelon": lambda: (gf2.echelon, {"A": EYE, "reduced": True, "threads": 1}),
    "gf2.hstack": lambda: (gf2.hstack, {"matrices": [EYE, EYE]}),
    "gf2.inverse": lambda: (gf2.inverse, {"A": EYE, "threads": 1}),
    "gf2.nullspace": lambda: (gf2.nullspace, {"A": EYE, "threads": 1}),
    "gf2.ple": lambda: (gf2.ple, {"A": EYE, "threads": 1}),
    "gf2.rowspace": lambda: (gf2.rowspace, {"A": EYE, "threads": 1}),
    "gf2.solve": lambda: (gf2.solve, {"A": EYE, "b": ONES, "left": False, "threads": 1}),
    "gf2.vstack": lambda: (gf2.vstack, {"matrices": [EYE, EYE]}),
    "gf2.BitMatrix.from_packed": lambda: CALLS["from_packed"],
    "gf2.Solution": lambda: (gf2.Solution, {"A": gf2.BitMatrix.from_dense(EYE), "b": ONES}),
    "learners.Features": lambda: (learners.Features, {"X": EYE, "threads": 1}),
    "adaptation.ConvexAdaptation.scores": lambda: (adapted().scores, {"X": NUMBERS}),
    "adaptation.ConvexAdaptation.predict": lambda: (adapted().predict, {"X": NUMBERS}),
    "adaptation.ConvexAdaptation.set_params": lambda: (adapted().set_params, {"epsilon": 2.0}),
    "adaptation.ConvexAdaptation.get_params": lambda: (adapted().get_params, {"deep": True}),
    "adaptation.NonConvexAdaptation.scores": lambda: (
        adapted("NonConvexAdaptation", LABELS).scores,
        {"X": NUMBERS},
    ),
    "adaptation.MomentAdaptation.solve": lambda: (
        adapted("MomentAdaptation").solve,
        {"penalty": 0.1},
    ),
    "collection.Collection.record": lambda: (_collected().record, {"shuffled": 1e-6}),
    "collection.Collection.merge": lambda: (
        collection.Collection(QUESTION).merge,
        {"other": collection.Collection(QUESTION)},
    ),
    "collection.ExportedLines": lambda: (
        collection.ExportedLines,
        {"handle": io.BytesIO(b"answer"), "column": "answer", "delimiter": ",", "done": None},
    ),
    "collection.ExportedLines.readline": lambda: (
        collection.ExportedLines(io.BytesIO(b"answer\nx"), "answer").readline,
        {"size": 5},
    ),
    "collection.Question.require_categories": lambda: (
        TRAVEL.require_categories,
        {"texts": ["bus"]},
    ),
    "collection.Question.name_frequencies": lambda: (
        TRAVEL.name_frequencies,
        {"frequencies": np.array([0.5, 0.5])},
    ),
    "collection.Study": lambda: (
        collection.Study,
        {name: getattr(study(), name) for name in ("path", "asker", "epsilon", "people", "url")}
        | {"id": "0" * 16, "public_key": "0" * 64, "created": "2026-01-31", "form": "{}"},
    ),
    "collection.Study.open": lambda: (collection.Study.open, {"path": study().path}),
    "collection.Study.publish": lambda: (
        study().publish,
        {"hypothesis": "{}", "count": 1, "first": None, "number": None},
    ),
    "collection.Study.find": lambda: (study().find, {"hypothesis": "{}", "number": 1}),
    **{
        f"collection.Study.{name}": lambda name=name: (getattr(study(), name), {"number": 1})
        for name in ("answers", "close", "counts")
    },
    "data.Column.select": lambda: (TABLE.column("bought").select, {"rows": [0, 1]}),
    "data.Table.select": lambda: (TABLE.select, {"rows": [0, 1]}),
    "data.Schema.float_labels": lambda: (SCHEMA.float_labels, {"table": TABLE}),
    "labels.StatisticsLabeler.predict_proba": lambda: (
        statistics_labeler().predict_proba,
        {"Q": NUMBERS},
    ),
    "labels.StatisticsLabeler.save": lambda: (
        statistics_labeler().save,
        {"path": stored(lambda path: None, ".json")},
    ),
    "labels.StatisticsLabeler.load": lambda: (
        labels.StatisticsLabeler.load,
        {"path": stored(statistics_labeler().save, ".json")},
    ),
    "learners.CenteredLinear": lambda: (
        learners.CenteredLinear,
        {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-3, "classes": ["no", "yes"]},
    ),
    "learners.CenteredLinear.learn": lambda: (
        learners.CenteredLinear(SCHEMA, epsilon=1.0, delta=1e-3).learn,
        {"table": TABLE, "ids": [1, 2, 3], "rows_per_person": 1, "budget": None, "random_state": 1},
    ),
    "learners.PrivateModel.with_calibration": lambda: (
        private_model().with_calibration,
        {"knots": [0.0], "shifts": [1.0], "agents_record": None},
    ),
    "learners.PrivateModel.scores": lambda: (private_model().scores, {"table": TABLE}),
    "learners.PrivateModel.predict": lambda: (private_model().predict, {"table": TABLE}),
    "learners.PrivateModel.probabilities": lambda: (
        private_model().probabilities,
        {"table": TABLE},
    ),
    "learners.PrivateModel.from_json": lambda: (
        learners.PrivateModel.from_json,
        {"text": private_model().to_json()},
    ),
    "adaptation.ScaledFeatures": lambda: (adaptation.ScaledFeatures, {"schema": SCHEMA}),
    "adaptation.ScaledFeatures.rows": lambda: (
        adaptation.ScaledFeatures(SCHEMA).rows,
        {"table": TABLE},
    ),
    "adaptation.ScaledFeatures.labels": lambda: (
        adaptation.ScaledFeatures(SCHEMA).labels,
        {"scores": ONES},
    ),
    "adaptation.ScaledFeatures.predictor": lambda: (
        adaptation.ScaledFeatures(SCHEMA).predictor,
        {"coef": [1.0, 0.5]},
    ),
    "transfer.HybridRun": lambda: (
        transfer.HybridRun,
        {
            **{"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-3, "screen": 0.1, "certify": 0.2},
            **{"features": "bits", "beta": 0.1},
        },
    ),
    "transfer.HybridRun.plan": lambda: (
        hybrid().plan,
        {"n": 3, "agents": 120, "agents_epsilon": 1.0},
    ),
    "transfer.HybridRun.simulate": lambda: (
        hybrid().simulate,
        {"table": TABLE, "n": 3, "epsilon": 1.0},
    ),
    **{
        f"transfer.HybridRun.{name}": lambda name=name: (
            getattr(hybrid(), name),
            {"panel": TABLE, "agents": survey(), "count": 120, "budget": None, "random_state": 1},
        )
        for name in ("run", "learn")
    },
    "transfer.HybridRun.repair": lambda: (
        hybrid().repair,
        {"learned": learn_hybrid(), "agents": survey(), "random_state": 1},
    ),
    "statistics.columns_of": lambda: (statistics.columns_of, {"schema": SCHEMA}),
    "statistics.Shares.bound_mean": lambda: (
        shares_of_homes().bound_mean,
        {"low": [0.1, 0.4], "high": [0.2, 0.5], "beta": 0.1},
    ),
    "statistics.Shares.bound_distance": lambda: (shares_of_homes().bound_distance, {"beta": 0.1}),
    "statistics.Shares.variance_of_mean": lambda: (
        shares_of_homes().variance_of_mean,
        {"means": [0.1, 0.4]},
    ),
    "learners.ConjunctionList.predict": lambda: (
        learners.ConjunctionList(EYE, 1 - EYE).predict,
        {"i": 1, "X": EYE},
    ),
    "learners.ConjunctionList.index": lambda: (
        learners.ConjunctionList(EYE, 1 - EYE).index,
        {"hypothesis": learners.ConjunctionList(EYE, 1 - EYE).hypothesis(1)},
    ),
    "learners.ConjunctionList.prepare": lambda: (
        learners.ConjunctionList(EYE, 1 - EYE).prepare,
        {"X": EYE},
    ),
    "data.Chunks.fold": lambda: (data.Chunks([(BITS, LABELS)]).fold, {"fold": LEARNER.fold}),
    "data.Chunks.map": lambda: (data.Chunks([BITS]).map, {"task": lambda blocks, name: name}),
    "data.Chunks.gather": lambda: (data.Chunks([BITS]).gather, {"task": lambda blocks, name: name}),
    "data.Chunks.map_runs": lambda: (data.Chunks([BITS]).map_runs, {"task": list}),
    "data.Chunks.require_passes": lambda: (
        data.Chunks([BITS]).require_passes,
        {"why": "a pass counts"},
    ),
    "data.Chunks.with_blocks": lambda: (
        data.Chunks([BITS]).with_blocks,
        {"make": lambda block: (block,)},
    ),
    "data.Chunks.map_blocks": lambda: (data.Chunks([BITS]).map_blocks, {"task": lambda block: []}),
    "data.State.named": lambda: (LEARNER.fold(BITS, LABELS).named, {"part": "monday"}),
    "learners.ExponentialLearner.fold": lambda: (LEARNER.fold, {"X": BITS, "y": LABELS}),
    "learners.SufficientStatistics.fold": lambda: (
        learners.SufficientStatistics(learners.FeatureMap.identity(4), classes=[0, 1]).fold,
        {"X": NUMBERS, "y": LABELS},
    ),
    "learners.ExponentialLearner.with_epsilon": lambda: (LEARNER.with_epsilon, {"epsilon": 2.0}),
    "learners.ExponentialLearner.prepare": lambda: (LEARNER.prepare, {"X": BITS}),
    "learners.ExponentialLearner.learn_indices": lambda: (
        LEARNER.learn_indices,
        {"X": learners.Features(BITS), "y": LABELS, "indices": np.arange(9), "random_state": None},
    ),
    "learners.FeatureMap": lambda: (
        learners.FeatureMap,
        {"origin": np.zeros(2), "factor": np.ones(2), "bounds": None, "matrix": None,
         "offset": None, "waves": False, "constant": False, "function": None, "columns_in": None},
    ),
    "learners.FeatureMap.read_rows": lambda: (
        learners.FeatureMap.identity(4).read_rows,
        {"X": NUMBERS, "name": "X"},
    ),
    "learners.FeatureMap.from_json": lambda: (
        learners.FeatureMap.from_json,
        {"text": learners.FeatureMap.identity(4).to_json()},
    ),
    "learners.LinearModel.scores": lambda: (sgd().learn(**REALS).scores, {"X": NUMBERS}),
    "learners.LinearModel.losses": lambda: (sgd().learn(**REALS).losses, REALS),
    "learners.SoftmaxModel.scores": lambda: (softmax().scores, {"X": NUMBERS}),
    "learners.SoftmaxModel.losses": lambda: (softmax().losses, REALS),
    "learners.PrivateSGD.learn_weighted": lambda: (
        sgd().learn_weighted,
        {**REALS, "weights": weights.DenseWeights(40, 0.5, 0.1), "random_state": None},
    ),
    "learners.PrivateSGD.learn_indices": lambda: (
        sgd().learn_indices,
        {**REALS, "indices": np.arange(2), "random_state": None},
    ),
    "learners.PrivateSGD.prepare": lambda: (sgd().prepare, {"X": NUMBERS}),
    "learners.PrivateSGD.restore": lambda: (
        sgd().restore,
        {"hypothesis": sgd().learn(**REALS).hypothesis},
    ),
    "learners.PrivateSGD.composition": lambda: (sgd().composition, {"rate": 0.1, "rounds": 1}),
    "learners.PrivateSGD.calibrate": lambda: (
        learners.PrivateSGD(loss="logistic", steps=2, epsilon=float("inf")).calibrate,
        {"epsilon": 1.0, "n": 1000, "delta": 1e-6, "kappa": None, "rounds": 1},
    ),
    "learners.PrivateSGD.records_needed": lambda: (
        sgd().records_needed,
        {"epsilon": 1.0, "delta": 1e-6, "kappa": None, "rounds": 1},
    ),
    "learners.PrivateSGD.uniform_record": lambda: (
        sgd().uniform_record,
        {"n": 100, "random_state": None},
    ),
    "learners.ReleasedStatistics.save": lambda: (
        released().save,
        {"path": stored(lambda path: None, ".npz")},
    ),
    "learners.ReleasedStatistics.load": lambda: (
        learners.ReleasedStatistics.load,
        {"path": stored(released().save, ".npz"), "features": None},
    ),
    "learners.StatisticsModel.scores": lambda: (released().solve().scores, {"X": NUMBERS}),
    "learners.StatisticsModel.predict_proba": lambda: (
        released().solve().predict_proba,
        {"X": NUMBERS},
    ),
    "learners.StatisticsModel.score_deviations": lambda: (
        released().solve().score_deviations,
        {"X": NUMBERS},
    ),
    "learners.StatisticsModel.from_json": lambda: (
        learners.StatisticsModel.from_json,
        {"text": released().solve().to_json(), "features": None},
    ),
    "local.Agents.ask_several": lambda: (
        people().ask_several,
        {"questions": [lambda X, y: y], "count": 3, "shares": None, "random_state": None},
    ),
    "local.Agents.ask_together": lambda: (
        people().ask_together,
        {"questions": [(local.Query.label(), 3)], "random_state": None},
    ),
    "local.Agents.in_one_round": lambda: (
        (pool := people()).in_one_round,
        {
            "calls": [lambda: pool.ask_together([(local.Query.label(), 3)])],
            "random_state": None,
        },
    ),
    "local.RemoteAgents.ask_together": lambda: (
        remote().ask_together,
        {"questions": [(local.Query.label(), 3)], "random_state": None},
    ),
    "local.Stage.from_json": lambda: (local.Stage.from_json, {"text": stage().to_json()}),
    "local.Stage.places": lambda: (stage().places, {"numbers": None}),
    "local.Stage.split": lambda: (stage().split, {"reports": [0, 1]}),
    "local.Agents.test": lambda: (
        people().test,
        {"learned": LEARNED, "count": 3, "random_state": None},
    ),
    "local.Agents.record": lambda: (people().record, {"random_state": None}),
    "local.Agents.pass_over": lambda: (people().pass_over, {"count": 3}),
    "local.Agents.require": lambda: (
        people().require,
        {"questions": [(local.Query.label(), 3)]},
    ),
    "local.MaskedParityAgents.test": lambda: (
        concept().test,
        {"learned": LEARNED, "count": 3, "random_state": None},
    ),
    "local.MaskedParityAgents.record": lambda: (concept().record, {"random_state": None}),
    "local.RemoteAgents.test": lambda: (
        remote().test,
        {"learned": LEARNED, "count": 3, "random_state": None},
    ),
    "local.RemoteAgents.require": lambda: (
        remote().require,
        {"questions": [(local.Query.label(), 3)]},
    ),
    "local.RemoteAgents.record": lambda: (remote().record, {"random_state": None}),
    "local.Aggregate.add": lambda: (
        QUESTION.randomizer.aggregate([0, 1]).add,
        {"reports": [0, 1]},
    ),
    "local.BinaryResponse.agents_needed": lambda: (
        QUESTION.randomizer.agents_needed,
        {"alpha": 0.1, "beta": 0.1, "sampled": True},
    ),
    "local.BinaryResponse.record": lambda: (QUESTION.randomizer.record, {"random_state": None}),
    "local.GaussianRandomizer.printed": lambda: (
        local.GaussianRandomizer.printed,
        {"epsilon": 0.5, "delta": 1e-3, "bounds": (0, 1)},
    ),
    "local.EvasiveOracle.query": lambda: (
        local.EvasiveOracle(local.MaskedParity([1, 0], 1)).query,
        {"g": lambda X, y: y, "tau": 0.1},
    ),
    "local.Query.score_above": lambda: (
        Query.score_above,
        {"model": HALFSPACE, "threshold": 0.0},
    ),
    "local.Query.loss_saved": lambda: (
        Query.loss_saved,
        {"model": HALFSPACE, "knots": [0.0], "shifts": [1.0], "low": -1.0, "high": 1.0},
    ),
    "local.Query.wrong": lambda: (Query.wrong, {"model": HALFSPACE}),
    "local.Query.worse": lambda: (Query.worse, {"model": HALFSPACE, "other": HALFSPACE}),
    "local.Query.multiply": lambda: (QUERY.multiply, {"records": NUMBERS, "labels": LABELS}),
    "local.Query.check": lambda: (QUERY.check, {"d": 4}),
    "stability.GaussianVote.from_json": lambda: (
        stability.GaussianVote.from_json,
        {"text": GAUSSIAN.to_json()},
    ),
    "stability.HazardTable.from_json": lambda: (
        stability.HazardTable.from_json,
        {"text": HAZARDS.to_json()},
    ),
    "stability.StableRelease.record": lambda: (
        stability.StableRelease(epsilon=1, delta=0.1).record,
        {"random_state": None},
    ),
    "transfer.SubsampleTestReweigh.plan": lambda: (
        run().plan,
        {"n": 40, "N": None, "agents_epsilon": None, "response_rate": 1.0},
    ),
    "weights.DenseWeights.with_parameters": lambda: (
        weights.DenseWeights(40, 0.5, 0.1).with_parameters,
        {"kappa": 0.5, "eta": 0.2},
    ),
    "labels.PrivateLabeler.check": lambda: (
        labeler().fit(NUMBERS, LABELS).check,
        {"Q": NUMBERS[:2], "records": None},
    ),
    "labels.PrivateLabeler.fold": lambda: (
        labeler().fold,
        {"X": NUMBERS, "y": LABELS, "Q": NUMBERS[:2], "members": 4},
    ),
    "labels.PrivateLabeler.release": lambda: (
        labeler().release,
        {"state": labeler().fold(NUMBERS, LABELS, Q=NUMBERS[:2], members=4)},
    ),
    "labels.SoftLabeler.fold": lambda: (
        soft().fold,
        {"X": NUMBERS, "y": LABELS, "Q": NUMBERS[:2], "bins": 4, "members": 4},
    ),
    "labels.SoftLabeler.release": lambda: (
        soft().release,
        {"state": soft().fold(NUMBERS, LABELS, Q=NUMBERS[:2], bins=4, members=4)},
    ),
    "stability.TableSession.answer_bins": lambda: (
        HAZARDS.session().answer_bins,
        {"counts": [[5, 0, 0, 1]]},
    ),
    "stability.TableSession.answer_winners": lambda: (
        HAZARDS.session().answer_winners,
        {"winners": np.ones((2, 4), np.uint32), "bins": 2},
    ),
    "gf2.RowSpace.of": lambda: (gf2.RowSpace.of, {"A": EYE, "b": ONES, "threads": None}),
    "gf2.RowSpace.from_basis": lambda: (gf2.RowSpace.from_basis, {"basis": EYE}),
    "gf2.RowSpace": lambda: (gf2.RowSpace, {"d": 4}),
    "gf2.RowSpace.add": lambda: (
        gf2.RowSpace.of(EYE, ONES).add,
        {"A": EYE, "b": ONES, "threads": None},
    ),
    "gf2.RowSpace.contains": lambda: (
        gf2.RowSpace.of(EYE, ONES).contains,
        {"A": EYE, "b": ONES, "threads": None},
    ),
    "gf2.RowSpace.from_bytes": lambda: (
        gf2.RowSpace.from_bytes,
        {"content": gf2.RowSpace.of(EYE, ONES).to_bytes()},
    ),
    "labels.PrivateLabeler.save": lambda: (
        labeler().fit(NUMBERS, LABELS).save,
        {"path": stored(lambda path: None, ".saved")},
    ),
    "labels.PrivateLabeler.load": lambda: (
        labels.PrivateLabeler.load,
        {"path": stored(labeler().fit(NUMBERS, LABELS).save, ".saved"), "trusted": True},
    ),
    "transfer.cross_table": lambda: (
        lambda variables: transfer.cross_table(variables, {"yes": Query.label()}),
        {"variables": {"young": Query.between(0, high=30)}},
    ),
    "local.Aggregate.from_json": lambda: (
        local.Aggregate.from_json,
        {"text": QUESTION.randomizer.aggregate([0, 1]).to_json()},
    ),
    "transfer.CalibratedModel.scores": lambda: (calibration().scores, {"X": BITS}),
    "transfer.CalibratedModel.apply": lambda: (calibration().apply, {"scores": [0.5]}),
    "transfer.Certificate.more_agents": lambda: (
        transfer.certify(LEARNED, people()).more_agents,
        {"half_width": 0.1},
    ),
    "transfer.SubsampleTestReweigh.predict": lambda: (ran().predict, {"X": BITS}),
    "transfer.TransferResult.predict": lambda: (ran().result_.predict, {"X": BITS}),
    # With other arguments than the example has.
    "collection.frequency_question, integers": lambda: (
        collection.frequency_question,
        {"name": "f", "randomizer": "kary", "epsilon": 1.0, "categories": None, "k": 4},
    ),
    "collection.mean_question, binary": lambda: (
        collection.mean_question,
        {"name": "m", "randomizer": "binary", "epsilon": 1.0, "delta": None, "low": 0.0,
         "high": 1.0, "beta": 0.05},
    ),
}  # fmt: skip
