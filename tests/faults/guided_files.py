"""Files for the readers of `damaged_files.py` and of stored state, guided by coverage: by atheris.

    python tests/faults/guided_files.py SECONDS [--store] [OPTIONS OF LIBFUZZER]

An input is the name of a reader, a line break, and the content of its file. The first file that is
neither read nor refused by an error of the package ends the run. With --store the smallest of the
files that reached something new are put into tests/corpus/readers, and the others are dropped.
"""

import contextlib
import importlib.util
import os
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from hashlib import sha256
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
# Rooms in which files are decoded; to instrument the others takes long and guides to nothing.
DECODING = ("_support", "budget", "collection", "data", "learners", "local", "record", "stability")
PACKAGE = Path(importlib.util.find_spec("hdp_fast").origin).parent


def modules_without_decoders():
    """The names of all modules that are left as they are."""
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if parts[0] not in DECODING:
            yield ".".join(("hdp_fast", *(part for part in parts if part != "__init__")))


with atheris.instrument_imports(
    include=["hdp_fast"], exclude=[*{*modules_without_decoders()} - {"hdp_fast"}]
):
    import damaged_files
    import stored_formats

CORPUS = HERE.parent / "corpus" / "readers"
# State that is read without another file beside it.
STATE = (
    *("budget_ledger", "transfer_checkpoint", "device_answers", "remote_agents", "study_answers"),
    *("study", "gaussian_vote", "hazard_table", "aggregate"),
)
# Files of a reader that are stored, and the longest of them.
MOST_STORED, LONGEST = 12, 1_500
LONGEST_INPUT = 8_192


def readers():
    """Name: (name of the file, its content, what reads it); commands read the same files."""
    made = {
        name: reader
        for name, reader in damaged_files.readers().items()
        if not reader[2].__qualname__.startswith("command.")
    }
    for name in STATE:
        form = stored_formats.FORMATS[name]
        with tempfile.TemporaryDirectory() as folder:
            content = form.fetch(name, Path(folder)).read_bytes()
        suffix = ".db" if form.suffix == "sql" else ".json"
        made[f"state {name}"] = (f"state{suffix}", content, form.show)
    return made


class Files:
    """Tries inputs in a folder."""

    def __init__(self, known):
        self.known, self.counts = known, defaultdict(lambda: [0, 0])

    def try_one(self, data):
        """Reads a file; what is neither read nor refused is raised."""
        name, content = split(data)
        if name not in self.known:
            return
        file, _, read = self.known[name]
        for path in Path().iterdir():
            if path.name.startswith(Path(file).stem + ".") or path.name == "study":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        path = Path(file)
        if file == "state.json":
            # A text is decoded by whoever reads its file.
            content = content.decode("utf-8", "replace").encode()
        path.write_bytes(content)
        result = damaged_files.outcome(read, path)
        if result not in ("read", "refused"):
            raise AssertionError(f"{name}: {result}")
        self.counts[name][result == "refused"] += 1

    def mutate(self, data, longest, number):
        """Another file for a reader: other bytes, or other values in what it holds."""
        name, content = split(data)
        dice = random.Random(number)
        if name not in self.known or dice.random() < 0.02:
            name = dice.choice(sorted(self.known))
            content = self.known[name][1]
        room = longest - len(name) - 1
        if dice.random() < 0.6:
            with contextlib.suppress(Exception):
                # What is no archive or JSON any more has only bytes to change.
                content = damaged_files.damaged(self.known[name][0], content, dice)
        else:
            content = atheris.Mutate(content, room)
        return f"{name}\n".encode() + content[:room]


def split(data):
    """The name of the reader, and the content."""
    name, _, content = bytes(data).partition(b"\n")
    return name.decode("utf-8", "replace"), content


def seed(folder, known):
    """Puts whole files, and those that are stored, where libFuzzer begins."""
    folder.mkdir()
    for name, (_, content, _) in known.items():
        stored = sorted((CORPUS / name.replace(" ", "_")).glob("*"))
        for number, text in enumerate([content, *(path.read_bytes() for path in stored)]):
            (folder / f"{name.replace(' ', '_')}-{number}").write_bytes(f"{name}\n".encode() + text)


def store(folder):
    """Keeps the smallest files of each reader among those that reached something new."""
    new = defaultdict(list)
    for path in folder.iterdir():
        name, content = split(path.read_bytes())
        new[name.replace(" ", "_")].append(content)
    for name, contents in new.items():
        place = CORPUS / name
        kept = {path.read_bytes() for path in place.glob("*")} | {*contents}
        small = sorted(
            (one for one in kept if len(one) <= LONGEST), key=lambda one: (len(one), one)
        )
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        # From the shortest to the longest, at even steps.
        for number in range(min(MOST_STORED, len(small))):
            one = small[number * len(small) // min(MOST_STORED, len(small))]
            (place / sha256(one).hexdigest()[:12]).write_bytes(one)


def main(seconds, options):
    """Runs libFuzzer in a process of its own, which ends with it; then stores, if asked to."""
    keeps = "--store" in options
    options = [option for option in options if option != "--store"]
    # No object of this process may remove the folder when the child ends.
    room = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    try:
        out = room / "out"
        out.mkdir()
        (room / "work").mkdir()
        # To make whole files some are written.
        with contextlib.chdir(room / "work"):
            known = readers()
        seed(room / "seeds", known)
        child = os.fork()
        if not child:
            run(room, out, known, seconds, options)
        _, status = os.waitpid(child, 0)
        if keeps:
            store(out)
        for crash in room.glob("crash-*"):
            kept = shutil.copy(crash, Path(tempfile.gettempdir()) / crash.name)
            print(f"the file that ended the run: {kept}")
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return int(status != 0)


def run(room, out, known, seconds, options):
    """Never returns: libFuzzer ends the process."""
    os.chdir(room / "work")
    damaged_files.prepare()
    files = Files(known)
    argv = [sys.argv[0], str(out), str(room / "seeds"), f"-max_total_time={round(seconds)}"]
    argv += ["-print_final_stats=1", f"-max_len={LONGEST_INPUT}", "-timeout=60", "-rss_limit_mb=0"]
    atheris.Setup(
        [*argv, f"-artifact_prefix={room}/", *options], files.try_one, custom_mutator=files.mutate
    )
    atheris.Fuzz()
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
