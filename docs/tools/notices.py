"""Writes THIRD_PARTY_NOTICES.txt: the licenses of all crates that a wheel holds.

    python docs/tools/notices.py             # `make notices`
    python docs/tools/notices.py --check     # whether the file names the crates of Cargo.lock

The list is what cargo links on any platform that there is a wheel for; procedural macros and build
scripts leave nothing of theirs in it. Of a choice of licenses the first of ORDER is taken, and a
crate without a text of it is an error.
"""

import argparse
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTICES = ROOT / "THIRD_PARTY_NOTICES.txt"
# What is built, and for which platforms.
LINKED = {
    "hdp-fast-py": (
        "x86_64-unknown-linux-gnu",
        "aarch64-unknown-linux-gnu",
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
        "x86_64-pc-windows-msvc",
    ),
    "hdp-fast-device": ("wasm32-unknown-unknown",),
}
ORDER = ("MIT", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "ISC", "Apache-2.0")
HEAD = """Third-party notices of hdp_fast

The compiled module of the wheel and the module that answers on a page hold code of the crates
below, each under the license that stands with it. `make notices` writes this file.
"""
# The licenses of the standard library's own files are those of its COPYRIGHT file.
STANDARD = """The Rust standard library

It is linked into both modules, under the MIT license below or the Apache License 2.0, at your
option; copyright The Rust Project Developers (see https://thanks.rust-lang.org). Its tables of
Unicode are copyright 1991-2024 Unicode, Inc., under the Unicode license 3.0 below. The notices of
the crates inside it come with each toolchain, as share/doc/rust/COPYRIGHT-library.html.
"""


@dataclass(frozen=True, order=True)
class Crate:
    """A crate that is linked."""

    name: str
    version: str
    license: str
    folder: Path

    @property
    def title(self) -> str:
        """Its name and version, as the file lists them."""
        return f"{self.name} {self.version}"


def cargo(*arguments: str) -> str:
    """What cargo prints."""
    done = subprocess.run(
        ["cargo", *arguments], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return done.stdout


def find_linked() -> list[Crate]:
    """All crates that are linked somewhere, ours left out."""
    metadata = json.loads(cargo("metadata", "--locked", "--format-version", "1"))
    ours = set(metadata["workspace_members"])
    known = {
        (package["name"], package["version"]): package
        for package in metadata["packages"]
        if package["id"] not in ours
    }
    edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    crates = set()
    for package, targets in LINKED.items():
        platforms = [f"--target={target}" for target in targets]
        lines = cargo("tree", "--locked", "--package", package, *platforms, *edges)
        for pair in re.findall(r"^(\S+) v(\S+)", lines, re.MULTILINE):
            if pair in known:
                crates.add(read_crate(known[pair]))
    return sorted(crates)


def read_crate(package: Mapping[str, str]) -> Crate:
    """A crate as `cargo metadata` describes it."""
    folder = Path(package["manifest_path"]).parent
    return Crate(package["name"], package["version"], package["license"], folder)


def choose(crate: Crate) -> tuple[str, str]:
    """The license that is taken, and its text."""
    offered = re.split(r"\s+OR\s+|/", crate.license)
    taken = next((name for name in ORDER if name in offered), None)
    if taken is None:
        sys.exit(f"error: {crate.title} is under {crate.license}, and none of {', '.join(ORDER)}")
    files = sorted(path for path in crate.folder.iterdir() if re.match("(?i)licen[sc]e", path.name))
    fitting = [path for path in files if taken.partition("-")[0].lower() in path.name.lower()]
    path = next(iter(fitting or files[:1] if len(offered) == 1 else fitting), None)
    if path is None:
        sys.exit(f"error: {crate.title} has no text of {taken}")
    lines = path.read_text(encoding="utf-8").strip().splitlines()
    return taken, "\n".join(line.rstrip() for line in lines)


def write() -> str:
    """The text of the file."""
    groups = defaultdict(list)
    for crate in find_linked():
        groups[choose(crate)].append(crate.title)
    parts = [HEAD]
    for (name, text), titles in sorted(groups.items(), key=lambda pair: pair[1]):
        parts.append("\n".join(titles) + f"\n({name})\n\n{text}\n")
    licenses = Path(rustc_sysroot()) / "share/doc/rust/licenses"
    texts = [(licenses / f"{name}.txt").read_text().strip() for name in ("MIT", "Unicode-3.0")]
    parts.append("\n\n".join([STANDARD, *texts]) + "\n")
    return f"\n{'-' * 80}\n\n".join(parts)


def rustc_sysroot() -> str:
    """The folder of the toolchain."""
    command = ["rustc", "--print", "sysroot"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def read_titles(text: str) -> set[str]:
    """The names and versions that the file lists."""
    return set(re.findall(r"^([a-z][\w-]* \d+\.\d+\.\d+\S*)$", text, re.MULTILINE))


def main() -> int:
    """Writes the file, or says what it lacks and has too much."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        NOTICES.write_text(write(), encoding="utf-8")
        return 0
    listed = read_titles(NOTICES.read_text(encoding="utf-8"))
    linked = {crate.title for crate in find_linked()}
    for title in sorted(linked - listed):
        print(f"error: {title} is linked, but has no notice: run `make notices`")
    for title in sorted(listed - linked):
        print(f"error: {title} has a notice, but is not linked: run `make notices`")
    return int(listed != linked)


if __name__ == "__main__":
    sys.exit(main())
