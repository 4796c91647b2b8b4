"""One member of an ensemble: trained on its chunk alone, silent whatever happens to it.

What a member does is private: an exception, a warning or a line on the screen would say something
about its chunk. These functions run where joblib sends them, in this process or another.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import inspect
import io
import logging
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._checks import shown
from .exceptions import ParameterError

Labels = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Member:
    """A predictor and what became of it; private, as its chunk is.

    Attributes:
        predictor: None where there is none.
        fault: what went wrong, empty if nothing did.
        seeded: whether the learner takes its coins from a seed of its own.
    """

    predictor: Any
    fault: str
    seeded: bool


class _Constant:
    """Says one label of everything."""

    def __init__(self, label: Any):
        self._label = label

    def predict(self, Q: Any) -> Labels:
        return np.full(row_count(Q), self._label)


def check(learner: Any, name: str = "learner") -> None:
    """Refuse what cannot be trained, before any record is looked at.

    Raises: ParameterError.
    """
    fits = hasattr(learner, "fit") and hasattr(learner, "predict")
    if isinstance(learner, type) or not (fits or callable(learner)):
        rule = "it must have fit and predict, or be a function (X, y) -> predictor"
        raise ParameterError(f"{name} = {shown(learner)}, but {rule}")
    try:
        fresh(learner)
    except Exception as error:
        rule = f"it must allow copies, one for each use ({error})"
        raise ParameterError(f"{name} = {shown(learner)}, but {rule}") from error


def train(learner: Any, X: Any, y: Labels, seed: int) -> Member:
    """The member of one chunk; of an empty one, and where training fails, one without predictor."""
    seeded = _takes_seed(learner)
    if not len(y):
        return Member(None, "the chunk is empty", seeded)
    with _QUIET, _coins(seed, seeded):
        try:
            return Member(_trained(learner, X, y, seed), "", seeded)
        except (Exception, SystemExit) as error:
            return Member(None, f"training: {error!r}", seeded)


def learnt(learner: Any, X: Any, y: Labels) -> Any:
    """What it makes of public points, in the open; its own seeds stand."""
    if not hasattr(learner, "fit"):
        return learner(X, y)
    return _fitted(fresh(learner), X, y)


def votes(member: Member, Q: Any, classes: Labels, seed: int) -> tuple[NDArray[np.uint8], str]:
    """The index of the label that a member gives each query, and what went wrong.

    The first label stands where it fails or says something else.
    """
    codes = np.zeros(row_count(Q), np.uint8)
    if member.predictor is None:
        return codes, member.fault
    with _QUIET, _coins(seed, member.seeded):
        try:
            said = np.asarray(_predict(member.predictor)(Q)).reshape(len(codes))
            # Compared one by one: what has no order is no label either.
            matches = [np.broadcast_to(said == label, codes.shape) for label in classes]
        except (Exception, SystemExit) as error:
            return codes, f"prediction: {error!r}"
    for code, match in enumerate(matches):
        codes[match.astype(bool)] = code
    outside = len(codes) - int(np.count_nonzero(np.any(matches, axis=0)))
    return codes, f"{outside} predictions are no label" if outside else ""


def scores(member: Member, Q: Any, seed: int) -> tuple[NDArray[np.float64], str]:
    """The score that a member gives each query, and what went wrong; 0 where it fails.

    Of a predictor with predict_proba and two columns, the second one.
    """
    failed = np.zeros(row_count(Q))
    if member.predictor is None:
        return failed, member.fault
    with _QUIET, _coins(seed, member.seeded):
        try:
            return _scored(member.predictor, Q).reshape(len(failed)), ""
        except (Exception, SystemExit) as error:
            return failed, f"prediction: {error!r}"


def each(
    task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], done: Callable[[], Any]
) -> list[Any]:
    """The task of every tuple of arguments, where joblib.parallel_config says, or one by one.

    done: called for every result, in order.
    """
    found = []
    with _QUIET:
        for result in _results(task, arguments):
            found.append(result)
            done()
    return found


def _results(task: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterable[Any]:
    try:
        joblib = importlib.import_module("joblib")
    except ImportError:
        return (task(*given) for given in arguments)
    run = joblib.delayed(task)
    try:
        parallel = joblib.Parallel(return_as="generator")
    except ValueError:
        # Some backends give nothing before everything is there.
        parallel = joblib.Parallel()
    found: Iterable[Any] = parallel(run(*given) for given in arguments)
    return found


def rows(X: Any, indices: Any) -> Any:
    """These rows of an array, a sparse matrix or a data frame."""
    return X.iloc[indices] if hasattr(X, "iloc") else X[indices]


def row_count(X: Any) -> int:
    """Rows of an array, a sparse matrix or a data frame."""
    return int(X.shape[0])


def _trained(learner: Any, X: Any, y: Labels, seed: int) -> Any:
    if not hasattr(learner, "fit"):
        return learner(X, y, random_state=seed) if _takes_seed(learner) else learner(X, y)
    if (y == y[0]).all():
        # Few classifiers learn from one class.
        return _Constant(y[0])
    model = fresh(learner)
    own = dict.fromkeys(_seed_names(model), seed)
    if hasattr(model, "set_params"):
        model.set_params(**own)
    elif own:
        model.random_state = seed
    return _fitted(model, X, y)


def _fitted(model: Any, X: Any, y: Labels) -> Any:
    found = model.fit(X, y)
    return found if hasattr(found, "predict") else model


def fresh(learner: Any) -> Any:
    """An unfitted copy of an estimator; a function as it is."""
    if not hasattr(learner, "fit"):
        return learner
    if hasattr(learner, "get_params"):
        with contextlib.suppress(ImportError):
            return importlib.import_module("sklearn.base").clone(learner)
    return copy.deepcopy(learner)


def _takes_seed(learner: Any) -> bool:
    return bool(_seed_names(learner))


def _seed_names(learner: Any) -> list[str]:
    """Every parameter that seeds it or a part of it."""
    if hasattr(learner, "get_params"):
        names = learner.get_params(deep=True)
        return [name for name in names if name.split("__")[-1] == "random_state"]
    if hasattr(learner, "fit"):
        return ["random_state"] if hasattr(learner, "random_state") else []
    try:
        found = inspect.signature(learner).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in found if name == "random_state"]


def _predict(predictor: Any) -> Callable[[Any], Any]:
    found: Callable[[Any], Any] = getattr(predictor, "predict", predictor)
    return found


def _scored(predictor: Any, Q: Any) -> NDArray[np.float64]:
    if hasattr(predictor, "predict_proba"):
        # One column, of a single class, would be certain of anything.
        _, second = np.asarray(predictor.predict_proba(Q), np.float64).T
        return np.asarray(second)
    return np.asarray(_predict(predictor)(Q), np.float64)


class _Quiet:
    """Takes Python's warnings, logs and streams away while anybody is inside, in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._restore = contextlib.ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._restore = _silence()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore.close()


class _Nowhere(io.TextIOBase):
    def write(self, text: str) -> int:
        return len(text)


def _silence() -> contextlib.ExitStack:
    stack = contextlib.ExitStack()
    stack.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    stack.enter_context(contextlib.redirect_stdout(_Nowhere()))
    stack.enter_context(contextlib.redirect_stderr(_Nowhere()))
    stack.callback(logging.disable, logging.root.manager.disable)
    logging.disable(logging.CRITICAL)
    return stack


_QUIET = _Quiet()
# Where members share the global generators, one chunk must not move those of another.
_GLOBAL = threading.Lock()


@contextlib.contextmanager
def _coins(seed: int, seeded: bool) -> Iterator[None]:
    """Coins of this member alone from the generators that a whole process shares."""
    if seeded:
        yield
        return
    torch = sys.modules.get("torch")
    with _GLOBAL:
        legacy = np.random.get_state()  # noqa: NPY002 - what old learners draw from
        states = random.getstate(), torch and torch.get_rng_state()
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        if torch:
            torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(states[0])
            np.random.set_state(legacy)  # noqa: NPY002
            if torch:
                torch.set_rng_state(states[1])
