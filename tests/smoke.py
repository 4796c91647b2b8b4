"""What must hold where nothing but hdp_fast and numpy is installed; run it with `python -I`."""

import re
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import numpy as np

import hdp_fast
from hdp_fast import gf2, learners, local, parity, transfer


def installed_not_imported_from_the_checkout() -> None:
    assert Path(hdp_fast.__file__).is_relative_to(sys.prefix), hdp_fast.__file__
    assert (Path(hdp_fast.__file__).parent / "py.typed").is_file()


def numpy_is_the_only_dependency() -> None:
    required = [line for line in metadata.requires("hdp-fast") or [] if "extra ==" not in line]
    names = {re.match(r"[A-Za-z0-9_.-]+", line).group().lower() for line in required}
    assert names == {"numpy"}, required
    tools = {"hdp-fast", "numpy", "pip", "setuptools", "wheel"}
    others = {d.metadata["Name"].lower() for d in metadata.distributions()} - tools
    assert not others, f"not an empty environment: {others}"


def an_index_can_show_it() -> None:
    """Nothing of the description is relative, and what is linked in has its notices."""
    shown = metadata.metadata("hdp-fast")
    addresses = re.findall(r"\]\(([^)\s]+)\)", shown.get_payload())
    assert len(addresses) > 10, addresses
    assert all(re.match(r"https?://|#", address) for address in addresses), addresses
    assert shown.get_all("License-File") == ["LICENSE", "THIRD_PARTY_NOTICES.txt"]
    files = {file.name: file for file in metadata.files("hdp-fast") or []}
    assert "pyo3 " in files["THIRD_PARTY_NOTICES.txt"].read_text(encoding="utf-8")
    assert len(metadata.requires("hdp-fast") or []) < 15, "developers' tools are groups"


def the_page_for_people_is_there() -> None:
    page = Path(hdp_fast.__file__).parent / "collection" / "page"
    for name in ("index.html", "page.js", "style.css", "texts.json", "device.wasm"):
        assert (page / name).stat().st_size > 0, name


def a_system_is_solved() -> None:
    rows = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 0]], dtype=np.uint8)
    solution = gf2.solve(rows, np.array([1, 0, 1], dtype=np.uint8))
    assert solution.consistent
    assert (solution.rank, solution.nullity) == (2, 1)
    assert (rows @ np.asarray(solution.x) % 2).tolist() == [1, 0, 1]


def a_parity_is_learned() -> None:
    coins = np.random.default_rng(0)
    secret = coins.integers(0, 2, 16, dtype=np.uint8)
    rows = coins.integers(0, 2, (4000, 16), dtype=np.uint8)
    results = (parity.learn(rows, rows @ secret % 2, epsilon=1.0) for _ in range(20))
    result = next(result for result in results if result.released)
    assert result.mask.tolist() == secret.tolist()
    assert result.record.epsilon <= 1.0


def what_holds_elsewhere_is_learned() -> None:
    coins = np.random.default_rng(1)
    rows, people = (coins.integers(0, 2, (n, 6), dtype=np.uint8) for n in (5000, 50_000))
    learner = learners.ExponentialLearner(learners.Conjunctions(6, 2), epsilon=1.0)
    agents = local.Agents(people, people[:, 0] & people[:, 1], epsilon=2.0)
    model = transfer.SubsampleTestReweigh(
        learner, alpha=0.1, epsilon=1.0, delta=1e-6, kappa=0.5, rounds=3
    )
    result = model.fit(rows, rows[:, 0] & rows[:, 1], agents).result_
    assert (result.predict(people) != (people[:, 0] & people[:, 1])).mean() < 0.4
    assert result.record.epsilon == 1.0


def the_command_runs() -> None:
    suffix = ".exe" if sys.platform == "win32" else ""
    command = Path(sysconfig.get_path("scripts")) / f"hdp-fast{suffix}"
    run = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert metadata.version("hdp-fast") in run.stdout, run.stdout


if __name__ == "__main__":
    installed_not_imported_from_the_checkout()
    numpy_is_the_only_dependency()
    an_index_can_show_it()
    the_page_for_people_is_there()
    a_system_is_solved()
    a_parity_is_learned()
    what_holds_elsewhere_is_learned()
    the_command_runs()
    print(f"smoke: hdp_fast {metadata.version('hdp-fast')} in {sys.prefix}: passed")
