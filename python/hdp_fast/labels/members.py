"""One member of an ensemble: trained on its chunk alone, and silent whatever happens to it.

What a member does is private: an exception, a warning or a line on the screen would reveal
something of its chunk. These functions run where joblib sends them, in this process or another.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import inspect
import os
import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .._support.parallel import load_joblib, make_pool
from .._support.turns import ONE_THREAD, QUIET, Turn, is_inside
from .._support.validate import refuse
from ..data.records import copy_array, copy_rows, count_rows

Labels = NDArray[Any]


@dataclass(slots=True)
class _Private:
    """Something that no one may see, or its bytes on the way from one process to another.

    Bytes can neither fail nor run code before they are unpacked, which happens in a turn.
    """

    content: Any

    def unpack(self) -> Any:
        """The content itself, unpacked if it was bytes."""
        if isinstance(self.content, _Bytes):
            self.content = self.content.unpack()
        return self.content

    def pack(self, turn: Turn) -> Self:
        """The same as bytes; if packing fails, unpacking them raises the reason."""
        if isinstance(self.content, _Bytes):
            return self
        copied = copy.copy(self)
        copied.content = _Bytes(*turn.take(lambda: _dump(self.content), "packing"))
        return copied


@dataclass(frozen=True, slots=True)
class _Bytes:
    content: bytes | None
    fault: str

    def unpack(self) -> Any:
        if self.content is None:
            raise ValueError(self.fault)
        return pickle.loads(self.content)


@dataclass(slots=True)
class Chunk(_Private):
    """The records of one member and their labels; private."""

    labels: Labels


@dataclass(slots=True)
class Member(_Private):
    """A predictor, and whether its training failed; private, as its chunk is.

    Attributes:
        content: The predictor; None if there is none.
        fault: What went wrong; empty if nothing did.
    """

    fault: str

    def is_whole(self) -> bool:
        """Whether it has a predictor, and one that could be packed if it has been."""
        packed = isinstance(self.content, _Bytes)
        return not self.fault and not (packed and self.content.content is None)


def turn_of(key: bytes, chunk: int, position: int, home: int | None = None) -> Turn:
    """The turn of one member for its training (position 0), or for the queries from a position.

    home: the process that waits for the result; None takes this one.
    """
    return Turn(seed_of(key, chunk, position), os.getpid() if home is None else home)


def seed_of(key: bytes, chunk: int, position: int) -> int:
    """The seed of one member for its training (position 0), or for the queries from a position."""
    text = f"member {chunk} {position}".encode()
    return int.from_bytes(hashlib.blake2b(text, key=key, digest_size=4).digest())


class _Constant:
    """Predicts one label everywhere."""

    def __init__(self, label: Any):
        self._label = label

    def predict(self, Q: Any) -> Labels:
        return np.full(count_rows(Q), self._label)


def check_learner(learner: Any, name: str = "learner") -> None:
    """Refuse what cannot be trained, before any record is read.

    Raises:
        ParameterError: It has not fit and predict, is no function, or cannot be copied.
    """
    fits = hasattr(learner, "fit") and hasattr(learner, "predict")
    if isinstance(learner, type) or not (fits or callable(learner)):
        made = ": did you mean one that is made, with ()?" if isinstance(learner, type) else ""
        rule = f"it must have fit and predict, or be a function (X, y) -> predictor{made}"
        refuse(name, learner, rule)
    try:
        _copy_unfitted(learner)
    except Exception as error:
        refuse(name, learner, f"it must allow copies, one for each use ({error})")


def train(chunk: Chunk, learner: Any, turn: Turn) -> Member:
    """Train the member of one chunk.

    It has no predictor if the chunk is empty or training fails.
    """
    y = copy_array(chunk.labels)
    if not len(y):
        return Member(None, "the chunk is empty")

    def work() -> Any:
        return _train(learner, copy_rows(chunk.unpack(), public=False), y, turn.seed)

    return Member(*turn.take(work, "training"))


def train_openly(learner: Any, X: Any, y: Labels) -> Any:
    """Train on public points, outside of any turn, with the seeds that the learner has."""
    if not hasattr(learner, "fit"):
        return learner(X, y)
    return _fit(_copy_unfitted(learner), X, y)


def vote(member: Member, Q: Any, classes: Labels, turn: Turn) -> tuple[NDArray[np.uint8], str]:
    """The index of the label that a member gives each query, and what went wrong.

    The index is 0 where the member fails or predicts something that is no label.
    """
    size = count_rows(Q)
    if member.fault:
        return np.zeros(size, np.uint8), member.fault

    def work() -> tuple[NDArray[np.uint8], int]:
        labels = np.asarray(_predictor(member.unpack())(copy_rows(Q, public=True))).reshape(size)
        codes, known = np.zeros(size, np.uint8), np.zeros(size, bool)
        for code, label in enumerate(classes):
            # The labels are compared one by one, since predictions need not have an order.
            match = np.broadcast_to(labels == label, size).astype(bool)
            codes[match] = code
            known |= match
        return codes, int(np.count_nonzero(~known))

    result, fault = turn.take(work, "prediction")
    codes, outside = (np.zeros(size, np.uint8), 0) if fault else result
    return codes, f"{outside} predictions are no label" if outside else fault


def score(member: Member, Q: Any, turn: Turn) -> tuple[NDArray[np.float64], str]:
    """The score in [0, 1] that a member gives each query, and what went wrong.

    The score is 0 where the member fails or predicts what is not finite. A predictor with
    predict_proba must have two columns, the second of which counts.
    """
    size = count_rows(Q)
    if member.fault:
        return np.zeros(size), member.fault

    def work() -> NDArray[np.float64]:
        # A new array, since a predictor may go on writing to the one that it returned.
        values = np.array(_score(member.unpack(), copy_rows(Q, public=True))).reshape(size)
        return np.where(np.isfinite(values), values.clip(0, 1), 0.0)

    result, fault = turn.take(work, "prediction")
    return np.zeros(size) if fault else result, fault


def vote_for_half_bins(
    member: Member, Q: Any, bins: int, turn: Turn
) -> tuple[NDArray[np.intp], str]:
    """Which of 2 bins cells over [0, 1] the score of a member lies in for each query.

    With the neighbor on the left or right a cell is a bin of one histogram or of the other.
    """
    scores, fault = score(member, Q, turn)
    # Halves of bins: doubling is exact, so that both histograms are those of the scores.
    return np.minimum(2.0 * (scores * bins), 2 * bins - 1).astype(np.intp), fault


def run_tasks(
    task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], done: Callable[[], Any]
) -> list[Any]:
    """Run a task with every tuple of arguments, and list the results; the rest is as in fold_tasks.

    `done` is called for every result.
    """
    results: list[Any] = []

    def take(result: Any) -> None:
        results.append(result)
        done()

    fold_tasks(task, arguments, take)
    return results


def fold_tasks(
    task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], take: Callable[[Any], None]
) -> None:
    """Run a task with every tuple of arguments, here or where joblib.parallel_config says.

    The first argument is private, and so is a member that is made: they travel as bytes. The last
    argument is the turn. `take` is called with every result, in order, and no other one is kept.
    """
    with QUIET, ONE_THREAD:
        for result in _run(task, arguments):
            take(result)


def _run(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
    joblib = load_joblib()
    if joblib is None or is_inside():
        # Other threads would wait for the turn that this thread is in.
        return (task(*values) for values in arguments)
    backend, _ = joblib.parallel.get_active_backend()
    # A backend such as dask's names no number of jobs, and has its own.
    if not getattr(backend, "supports_sharedmem", False) and joblib.Parallel().n_jobs != 1:
        arguments = ((private.pack(public[-1]), *public) for private, *public in arguments)
        run = joblib.delayed(_run_remotely)
        calls = (run(task, *values) for values in arguments)
    else:
        run = joblib.delayed(task)
        calls = (run(*values) for values in arguments)
    # A process that ends after its task must not be handed several tasks as one.
    ends = "maxtasksperchild" in (getattr(backend, "backend_kwargs", None) or {})
    options = {"batch_size": 1} if ends else {}
    results: Iterable[Any] = make_pool(joblib, "generator", **options)(calls)
    return results


def _run_remotely(task: Callable[..., Any], *arguments: Any) -> Any:
    """Run a task in another process, which returns a member as bytes."""
    result = task(*arguments)
    return result.pack(arguments[-1]) if isinstance(result, Member) else result


def _dump(value: Any) -> bytes:
    """Pickle as joblib does, which also takes functions without a name."""
    # cloudpickle was a part of joblib once; now joblib depends on it.
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):
        with contextlib.suppress(ImportError):
            return bytes(importlib.import_module(name).dumps(value))
    return pickle.dumps(value)


def _train(learner: Any, X: Any, y: Labels, seed: int) -> Any:
    if not hasattr(learner, "fit"):
        # A callable may have a state, and a function may return the same object each time.
        model = copy.deepcopy(learner)
        predictor = model(X, y, random_state=seed) if _seed_names(model) else model(X, y)
        return _copy_if_allowed(predictor)
    if (y == y[0]).all():
        # Few classifiers can be trained on one class.
        return _Constant(y[0])
    model = _copy_unfitted(learner)
    seeds = dict.fromkeys(_seed_names(model), seed)
    if hasattr(model, "set_params"):
        model.set_params(**seeds)
    elif seeds:
        model.random_state = seed
    return _fit(model, X, y)


def _copy_if_allowed(predictor: Any) -> Any:
    """A copy of what a function returned, if it can be copied."""
    with contextlib.suppress(Exception):
        return copy.deepcopy(predictor)
    return predictor


def _fit(model: Any, X: Any, y: Labels) -> Any:
    result = model.fit(X, y)
    return result if hasattr(result, "predict") else model


def _copy_unfitted(learner: Any) -> Any:
    """An unfitted copy of an estimator or of a callable; a function itself."""
    if hasattr(learner, "fit") and hasattr(learner, "get_params"):
        with contextlib.suppress(ImportError):
            return importlib.import_module("sklearn.base").clone(learner)
    return copy.deepcopy(learner)


def _seed_names(learner: Any) -> list[str]:
    """The parameters that seed a learner or a part of it."""
    if hasattr(learner, "get_params"):
        names = learner.get_params(deep=True)
        return [name for name in names if name.split("__")[-1] == "random_state"]
    if hasattr(learner, "fit"):
        return ["random_state"] if hasattr(learner, "random_state") else []
    try:
        names = list(inspect.signature(learner).parameters)
    except (TypeError, ValueError):
        return []
    return [name for name in names if name == "random_state"]


def _predictor(model: Any) -> Callable[[Any], Any]:
    predictor: Callable[[Any], Any] = getattr(model, "predict", model)
    return predictor


def _score(predictor: Any, Q: Any) -> NDArray[np.float64]:
    if hasattr(predictor, "predict_proba"):
        # With a single class there is one column of ones, which says nothing: this fails.
        _, second = np.asarray(predictor.predict_proba(Q), np.float64).T
        return np.asarray(second)
    return np.asarray(_predictor(predictor)(Q), np.float64)
