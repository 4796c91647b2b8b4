"""Runs every fenced block marked `python` in the Markdown files named on the command line.

The blocks of a page share a namespace, in order, as a reader would type them; those of the README
stand alone, each for another reader. They run in an empty working directory; a page that tells its
reader to make the tables of the example finds them there. The first error stops the run and shows
the file's own line numbers.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import types
import warnings
from pathlib import Path

# Every block of this file has a namespace of its own.
ALONE = "README.md"
# The command by which a reader of several guides makes their tables.
TABLES = "python examples/panel_and_survey.py --tables ."
ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```python[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[str]:
    """The python blocks of a Markdown text, each padded to keep its line numbers."""
    return ["\n" * text.count("\n", 0, match.start(1)) + match[1] for match in FENCE.finditer(text)]


def run(path: Path) -> int:
    """Executes the blocks of one file and returns their number."""
    text = path.read_text(encoding="utf-8")
    sources, module = blocks(text), namespace(path)
    if sources and TABLES in " ".join(text.split()):
        _, script, *options = TABLES.split()
        subprocess.run([sys.executable, ROOT / script, *options], check=True)
    for source in sources:
        if path.name == ALONE:
            module = namespace(path)
        exec(compile(source, str(path), "exec"), module.__dict__)
    return len(sources)


def namespace(path: Path) -> types.ModuleType:
    """A new module that is registered, so that dataclasses and pickle find what a block defines."""
    module = types.ModuleType(f"document_{path.stem}")
    sys.modules[module.__name__] = module
    return module


def main(names: list[str]) -> None:
    """Runs every named file and reports how many blocks each held."""
    paths = [Path(name).resolve(strict=True) for name in names]
    warnings.simplefilter("error", DeprecationWarning)
    for path in paths:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            start = time.perf_counter()
            count = run(path)
            if count:
                print(f"{path}: {count} python blocks ran in {time.perf_counter() - start:.1f} s")
            os.chdir(path.parent)


if __name__ == "__main__":
    main(sys.argv[1:])
