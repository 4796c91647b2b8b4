"""Tasks run one after the other, or where joblib sends them, each of which counts once."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

# Workers that die one after the other, without a part that is done, before a run gives up.
_MOST_DEATHS = 3


def run_jobs(jobs: Sequence[Callable[[], T]], workers: int | None) -> Generator[tuple[int, T]]:
    """The places and results of all jobs, each of which counts once, whatever kills a worker."""
    joblib = _load_joblib(workers)
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
    if joblib is None:
        return (_call(*job) for job in jobs)
    options = {} if workers is None else {"n_jobs": workers}
    try:
        parallel = joblib.Parallel(return_as="generator_unordered", **options)
    except ValueError:
        # Some backends return all results at once.
        parallel = joblib.Parallel(**options)
    if parallel.n_jobs == 1:
        return (_call(*job) for job in jobs)
    results = parallel(joblib.delayed(_call)(*job) for job in jobs)
    return results if hasattr(results, "close") else (result for result in results)


def _call(place: int, job: Callable[[], T]) -> tuple[int, T]:
    return place, job()


def runs_alone() -> bool:
    """Whether joblib, if it is there, would run parts one after the other."""
    joblib = _load_joblib(None)
    return joblib is None or joblib.Parallel().n_jobs == 1


def _load_joblib(workers: int | None) -> Any:
    try:
        return importlib.import_module("joblib")
    except ImportError as error:
        if workers in (None, 1):
            return None
        raise ImportError(f"workers = {workers} needs joblib: pip install joblib") from error
