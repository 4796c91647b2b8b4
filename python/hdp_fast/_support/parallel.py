"""Tasks run one after the other, or where joblib sends them."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from multiprocessing import current_process
from typing import Any, TypeVar

from .lazy import load_optional

T = TypeVar("T")

# Workers that die one after the other, without a part that is done, before a run gives up.
_MOST_DEATHS = 3


def run_jobs(jobs: Sequence[Callable[[], T]], workers: int | None) -> Generator[tuple[int, T]]:
    """The places and results of all jobs, each of which counts once, whatever kills a worker."""
    if workers not in (None, 1):
        load_optional("joblib", f"workers = {workers}", "parallel")
    joblib = load_joblib()
    left, deaths = dict(enumerate(jobs)), 0
    while left:
        results = _send(joblib, list(left.items()), workers)
        try:
            with _ended(results):
                for place, result in results:
                    del left[place]
                    deaths = 0
                    yield place, result
        except BrokenExecutor:
            deaths += 1
            if deaths >= _MOST_DEATHS:
                raise


@contextmanager
def _ended(results: Generator[Any]) -> Iterator[None]:
    """Ends what is left undone after the block, and not where a collector of garbage finds it."""
    try:
        yield
    finally:
        with warnings.catch_warnings():
            # joblib tells how many results were not asked for.
            warnings.simplefilter("ignore")
            results.close()


def _send(
    joblib: Any, jobs: list[tuple[int, Callable[[], T]]], workers: int | None
) -> Generator[tuple[int, T]]:
    folder = _find_folder()
    if joblib is None:
        return (_call(*job, folder) for job in jobs)
    options = {} if workers is None else {"n_jobs": workers}
    parallel = make_pool(joblib, "generator_unordered", **options)
    if parallel.n_jobs == 1:
        return (_call(*job, folder) for job in jobs)
    results = parallel(joblib.delayed(_call)(*job, folder) for job in jobs)
    return results if hasattr(results, "close") else (result for result in results)


def _call(place: int, job: Callable[[], T], folder: str | None) -> tuple[int, T]:
    # Processes of joblib live on, in the folder in which they began: paths may mean another file.
    is_kept = current_process().name.startswith("LokyProcess")
    if is_kept and folder is not None and _find_folder() != folder:
        os.chdir(folder)
    return place, job()


def _find_folder() -> str | None:
    """The current folder; None where it is no longer there."""
    try:
        return os.getcwd()
    except OSError:
        return None


def runs_alone() -> bool:
    """Whether joblib, if it is there, would run parts one after the other."""
    joblib = load_joblib()
    return joblib is None or joblib.Parallel().n_jobs == 1


def count_workers(workers: int | None) -> int:
    """How many jobs `run_jobs` would run at a time."""
    joblib = load_joblib()
    if joblib is None:
        return 1
    options = {} if workers is None else {"n_jobs": workers}
    return max(1, int(joblib.effective_n_jobs(joblib.Parallel(**options).n_jobs)))


def load_joblib() -> Any:
    """The module joblib; None where it is not installed."""
    try:
        return importlib.import_module("joblib")
    except ImportError:
        return None


def make_pool(joblib: Any, return_as: str, **options: Any) -> Any:
    """What runs calls where joblib sends them, and returns results as its backend can.

    return_as: "generator", or "generator_unordered" for results in the order in which they are
    done. A backend that cannot returns all results at once.
    """
    try:
        return joblib.Parallel(return_as=return_as, **options)
    except ValueError:
        return joblib.Parallel(**options)
