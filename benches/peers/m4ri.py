"""M4RI, the reference library for linear algebra over GF(2), as a peer of the benchmarks.

M4RI is under the GPL. It is reached only through the separate executable built from m4ri.c beside
this file, and nothing of hdp_fast links to it.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ROUTES = ("echelonize", "echelonize_m4ri", "echelonize_pluq")

_SOURCE = Path(__file__).with_suffix(".c")
_FLAGS = ("-std=c11", "-O3", "-march=native")
_PACKAGE_HINT = "install M4RI's development files (Debian: libm4ri-dev, Fedora: m4ri-devel)"


@dataclass(frozen=True)
class Report:
    """Outcome of one run of the peer.

    Attributes:
        rank: the rank, on which all routes agreed.
        openmp: whether the library was built with OpenMP, so that threads mattered.
        seconds: for every route, one time per repetition.
    """

    rank: int
    openmp: bool
    seconds: dict[str, list[float]]


def available() -> tuple[bool, str]:
    """Whether the peer can be timed here, and if not, why.

    Takes no arguments. Returns (True, path of the executable) or (False, reason).

    Raises: nothing; whatever is missing is named in the reason.
    Cost: one compilation the first time, cached afterwards.
    Source: none.
    """
    executable, reason = build()
    return (True, str(executable)) if executable is not None else (False, reason)


@functools.cache
def build() -> tuple[Path | None, str]:
    """Compile m4ri.c unless this machine already did.

    Takes no arguments. Returns (executable, "") or (None, reason).

    Raises: nothing; a missing compiler, header or library is named in the reason.
    Cost: one compilation of one file.
    Source: none.
    """
    command = shlex.split(os.environ.get("CC") or "cc")
    if shutil.which(command[0]) is None:
        return None, f"no C compiler: {command[0]!r} is not on PATH"
    if not _SOURCE.is_file():
        return None, f"no source file {_SOURCE.name} beside {Path(__file__).name}"
    try:
        libraries = _pkg_config("--libs") or ["-lm4ri", "-lm"]
        arguments = [*command, *_FLAGS, *_pkg_config("--cflags"), str(_SOURCE), *libraries]
        executable = _cache_directory() / f"m4ri-{_fingerprint(arguments)}"
        if not executable.exists():
            # Built under another name first: two benchmarks may start at the same time.
            with tempfile.TemporaryDirectory(dir=executable.parent) as scratch:
                built = Path(scratch) / "m4ri"
                done = _run([*arguments, "-o", str(built)])
                if done.returncode != 0:
                    return None, _explain(done.stderr)
                built.replace(executable)
    except (OSError, RuntimeError) as error:
        return None, f"M4RI's benchmark could not be built: {error}"
    return executable, ""


def time_echelonize(
    words: NDArray[np.uint64], ncols: int, repeats: int, *, threads: int = 1
) -> dict[str, list[float]]:
    """Seconds that each of M4RI's elimination routes takes to bring words to echelon form.

    words: uint64 (m, ceil(ncols / 64)) with m and ncols at least 1; repeats: runs of every route;
    threads: OMP_NUM_THREADS, which only a library built with OpenMP heeds.
    Returns one list of repeats times per name in ROUTES; copying the matrix is not timed.

    Raises: RuntimeError when the peer is unavailable or fails, ValueError when words has another
        shape or an argument is below 1.
    Cost: 3 * repeats eliminations of O(m ncols min(m, ncols) / (64 log m)) word operations.
    Source: mzd_echelonize, mzd_echelonize_m4ri and mzd_echelonize_pluq of libm4ri.
    """
    return report(words, ncols, repeats, threads=threads).seconds


def report(words: NDArray[np.uint64], ncols: int, repeats: int, *, threads: int = 1) -> Report:
    """What time_echelonize measures, with the rank and whether the library uses OpenMP.

    Arguments, shapes and conditions are those of time_echelonize.

    Raises: as time_echelonize.
    Cost: as time_echelonize.
    Source: as time_echelonize.
    """
    rows = words.shape[0]
    if words.dtype != np.uint64 or words.shape != (rows, -(-ncols // 64)):
        raise ValueError(f"words must be uint64 ({rows}, {-(-ncols // 64)}), got {words.shape}")
    if min(rows, ncols, repeats, threads) < 1:
        raise ValueError("rows, ncols, repeats and threads must be at least 1")
    executable, reason = build()
    if executable is None:
        raise RuntimeError(reason)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "words"
        words.astype("<u8", copy=False).tofile(path)
        counts = [str(count) for count in (rows, ncols, repeats)]
        done = _run([str(executable), *counts, "file", str(path)], threads=threads)
    if done.returncode != 0:
        raise RuntimeError(f"M4RI's benchmark failed: {done.stderr.strip()}")
    line = json.loads(done.stdout)
    return Report(rank=line["rank"], openmp=line["openmp"], seconds=line["seconds"])


def time_task(task: str, n: int, repeats: int) -> list[float]:
    """Seconds that M4RI takes for a task on random n x n matrices, by its own process's clock.

    task: multiply, inverse, solve (n right-hand sides), nullspace (n / 2 equations), transpose or
    slice; what M4RI overwrites is copied before.

    Raises: RuntimeError when the peer is unavailable or fails.
    Cost: repeats runs of the task, and two matrices that are drawn.
    Source: mzd_mul, mzd_inv_m4ri, mzd_solve_left, mzd_kernel_left_pluq, mzd_transpose and
        mzd_submatrix of libm4ri.
    """
    executable, reason = build()
    if executable is None:
        raise RuntimeError(reason)
    done = _run([str(executable), task, str(n), str(repeats), "1"])
    if done.returncode != 0:
        raise RuntimeError(f"M4RI's benchmark failed: {done.stderr.strip()}")
    seconds: list[float] = json.loads(done.stdout)["seconds"]
    return seconds


def _run(arguments: list[str], *, threads: int = 1) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "LC_ALL": "C"}
    return subprocess.run(arguments, capture_output=True, text=True, check=False, env=environment)


def _pkg_config(what: str) -> list[str]:
    """Flags for M4RI where pkg-config knows it; the compiler's own search paths serve elsewhere."""
    tool = shutil.which("pkg-config")
    if tool is None:
        return []
    done = _run([tool, what, "m4ri"])
    return shlex.split(done.stdout) if done.returncode == 0 else []


def _cache_directory() -> Path:
    """The user's cache, or a fresh temporary directory where that can't be written.

    Never a shared directory under a name that can be guessed: someone else's file would be run.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    directory = base / "hdp_fast" / "peers"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="hdp_fast-peers-"))
    if os.access(directory, os.W_OK | os.X_OK):
        return directory
    return Path(tempfile.mkdtemp(prefix="hdp_fast-peers-"))


def _fingerprint(arguments: list[str]) -> str:
    """Names a build by what went into it; the machine counts because of -march=native."""
    version = _run([arguments[0], "--version"]).stdout
    parts = (_SOURCE.read_text(), version, platform.node(), *arguments)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _explain(stderr: str) -> str:
    if "m4ri.h" in stderr:
        return f"header m4ri/m4ri.h not found: {_PACKAGE_HINT}"
    if "lm4ri" in stderr or "library 'm4ri'" in stderr:
        return f"library libm4ri not found: {_PACKAGE_HINT}"
    return f"m4ri.c did not compile: {stderr.strip()[:500]}"
