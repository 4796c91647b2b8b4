"""Audits wheels without installing them, and prints a table: audit_wheels.py FILE...

Of an sdist it looks at the size alone. It fails where auditwheel finds less than a wheel's tag
promises, abi3audit a symbol outside the stable interface, a Linux module a library that not every
system has, or a wheel is larger than the limit.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection

MOST_BYTES = 3_800_000
# What the C library consists of, and the unwinder of every distribution with glibc.
LIBRARIES = re.compile(r"(ld-linux-[\w-]+|libc\.musl-\w+|lib(c|m|pthread|dl|rt|gcc_s))\.so[.\d]*")
ROW = "| {:<62} | {:>5} | {:<24} | {:<6} |"


def main(paths: list[Path]) -> int:
    """Audits them one by one; returns how many break a rule."""
    print(ROW.format("wheel", "kB", "tag that auditwheel gives", "glibc"))
    print(ROW.format("---", "---:", "---", "---"))
    broken = 0
    for path in paths:
        complaints = list(audit(path))
        broken += bool(complaints)
        for complaint in complaints:
            print(f"{path.name}: {complaint}", file=sys.stderr)
    return broken


def audit(path: Path):
    """Prints the row of a wheel, and yields what is wrong with it."""
    size = path.stat().st_size
    if size > MOST_BYTES:
        yield f"{size} bytes, but at most {MOST_BYTES} are allowed"
    if path.suffix != ".whl":
        print(ROW.format(path.name, size // 1000, "sdist", "-"))
        return
    python, abi, platform = path.stem.split("-")[-3:]
    tag, glibc = "not for Linux", "-"
    if "linux" in platform:
        # auditwheel looks for musl among this machine's libraries, where it reads glibc's script.
        tag = "what it needs is musl" if "musl" in platform else shown_tag(path)
        if "musl" not in platform and tag not in platform.split("."):
            yield f"auditwheel finds {tag}"
        needed, glibc = read_module(path)
        others = [name for name in needed if not LIBRARIES.fullmatch(name)]
        if others:
            yield f"it needs {', '.join(others)}"
    if abi == "abi3":
        least = ".".join(re.fullmatch(r"cp(\d)(\d+)", python).groups())
        command = ["abi3audit", "--strict", "--assume-minimum-abi3", least, path]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            yield f"abi3audit: {run.stdout}{run.stderr}"
    print(ROW.format(path.name, size // 1000, tag, glibc))


def shown_tag(path: Path) -> str:
    """The tag with which auditwheel finds a wheel consistent."""
    run = subprocess.run(["auditwheel", "show", path], capture_output=True, text=True)
    words = " ".join(run.stdout.split())
    match = re.search(r'following platform tag: "(\w+)"', words)
    return match[1] if match else f"nothing ({words} {run.stderr})"


def read_module(path: Path) -> tuple[list[str], str]:
    """The libraries that the compiled module names, and the oldest glibc that it runs with."""
    with zipfile.ZipFile(path) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".so"))
        elf = ELFFile(io.BytesIO(wheel.read(name)))
    needed, versions = [], [(0, 0)]
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            needed += [tag.needed for tag in section.iter_tags("DT_NEEDED")]
        if isinstance(section, GNUVerNeedSection):
            names = [version.name for _, group in section.iter_versions() for version in group]
            matches = (re.fullmatch(r"GLIBC_(\d+)\.(\d+)[.\d]*", name) for name in names)
            versions += [tuple(map(int, match.groups())) for match in matches if match]
    major, minor = max(versions)
    return needed, f"{major}.{minor}" if major else "-"


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
