"""Devices that each send one randomized line, and a collector that trusts none of the lines.

Every part is a process of its own, as it would be on machines of its own; files stand for the
network, which repeats lines and damages some. Run it with `python examples/local_collection.py`;
it takes a few seconds.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

DEVICES = 5_000
LONGEST_MINUTES = 120
QUESTION = [
    "mean",
    "minutes-to-work",
    "--epsilon",
    "1",
    "--low",
    "0",
    "--high",
    str(LONGEST_MINUTES),
]


def hdp_fast(folder: Path, *arguments: str, text: str = "") -> str:
    """One process of the command line; returns what it prints."""
    command = [sys.executable, "-m", "hdp_fast", "local", *arguments]
    done = subprocess.run(
        command, cwd=folder, input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


def ask_devices(folder: Path, minutes: np.ndarray) -> list[str]:
    """One device asked twice by itself, and one process that plays all the others."""
    one = ["randomize", "--question", "question.json", "--state", "device.state"]
    first, again = (hdp_fast(folder, *one, text=f"{value}\n") for value in (minutes[0], 99))
    print("asked again, with another value by then, a device repeats its line:", first == again)
    others = "".join(f"{value}\n" for value in minutes[1:])
    many = hdp_fast(folder, "randomize", "--question", "question.json", "--many", text=others)
    return [*first.splitlines(), *many.splitlines()]


def damage(lines: list[str], coins: np.random.Generator) -> list[str]:
    """What a network and some strangers make of the lines."""
    fields = json.loads(lines[0])
    changes = [{"report": 7}] * 30 + [{"report": 1.0}] * 20 + [{"question": "another"}] * 10
    strange = [json.dumps({**fields, "id": coins.bytes(16).hex(), **each}) for each in changes]
    repeated = [lines[place] for place in coins.integers(0, len(lines), 200)]
    cut = [line[: coins.integers(len(line))] for line in lines[:40]]
    sent = [*lines, *repeated, *strange, *cut, "[" * 100_000]
    return [sent[place] for place in coins.permutation(len(sent))]


def collect(folder: Path, *arguments: str) -> dict:
    command = ["collect", "--question", "question.json", "--json", *arguments]
    return json.loads(hdp_fast(folder, *command))


def main() -> None:
    coins = np.random.default_rng(2026)
    minutes = coins.gamma(4.0, 8.0, DEVICES).clip(0, LONGEST_MINUTES).round()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hdp_fast(folder, "question", *QUESTION, "--output", "question.json")
        sent = damage(ask_devices(folder, minutes), coins)
        half = len(sent) // 2
        for file, part in (("monday", sent[:half]), ("tuesday", sent[half:])):
            (folder / f"{file}.jsonl").write_text("\n".join(part) + "\n")
            collect(folder, f"{file}.jsonl", "--aggregate", f"{file}.npz")
        merged = collect(folder, "--merge", "monday.npz", "--merge", "tuesday.npz")
        found = collect(folder, "monday.jsonl", "tuesday.jsonl")
    for count in ("lines", "accepted", "malformed", "wrong_question", "out_of_range", "duplicates"):
        print(f"{count:<15} {found[count]:>6,}")
    low, high = found["interval"]
    print(f"estimate: {found['estimate']:.1f} minutes, in [{low:.1f}, {high:.1f}]")
    print(f"truth, which no process but this one has seen: {minutes.mean():.1f}")
    print("two collectors and a merge find the same:", merged == found)


if __name__ == "__main__":
    main()
