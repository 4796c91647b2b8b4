"""One whole session at the command line, from a table of texts to labels, models and answers.

It makes its own tables of customers, some public and some private, and shows each command with all
that it prints and its exit code, which must be the one that stands here. Run it with
`python examples/command_line.py`; it takes half a minute and needs scikit-learn.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PRIVACY = "--epsilon 1 --delta 1e-6"
SCHEMA = "--schema schema.json"
LABEL = f"label customers.csv visitors.csv {SCHEMA} --estimator naive-bayes {PRIVACY}"
TRANSFER = f"transfer customers.csv town.csv {SCHEMA} {PRIVACY} --agents-epsilon 1"
ADAPT = f"adapt archive.csv shop.csv {SCHEMA} {PRIVACY}"
# What is done and why, the command line, and the exit code that it must have.
SESSION = [
    ("A table of texts; archive.csv is public, customers.csv is not.", "head -4 archive.csv", 0),
    (
        "Describe the columns, from the public table alone. A slip is met with a guess:",
        "hdp-fast schema archive.csv --label bought --positive Yes --output schema.json",
        2,
    ),
    (
        "",
        "hdp-fast schema archive.csv --label bought --positive yes --cuts 3 --output schema.json",
        0,
    ),
    (
        "A ledger limits what all releases from one private table may cost together.",
        "hdp-fast budget ledger --epsilon 2 --delta 1e-5",
        0,
    ),
    (
        "Label the public visitors.csv. One release of statistics is the default. Why?",
        f"hdp-fast label customers.csv visitors.csv {SCHEMA} {PRIVACY} --plan",
        0,
    ),
    (
        "Label it by votes of members, who learn from customers.csv. "
        "Before any of it is read: what are so many answers worth?",
        f"hdp-fast {LABEL} --plan",
        0,
    ),
    (
        "How many members are best for as many customers? This trains on public rows alone.",
        f"hdp-fast {LABEL} --suggest",
        0,
    ),
    ("", f"hdp-fast {LABEL} --members 400 --budget ledger", 0),
    ("", "head -4 visitors.labeled.csv", 0),
    (
        "Too few members answer, but at random; --strict makes the note an exit code.",
        f"hdp-fast {LABEL} --members 20 --output random.csv --strict",
        1,
    ),
    (
        "Customers opted in, and the town did not: learn from the customers what holds in town, "
        "where everybody answers one question, randomized.",
        f"hdp-fast {TRANSFER} --budget ledger",
        0,
    ),
    (
        "Nothing is left for a third release, which is refused before it begins.",
        f"hdp-fast {LABEL} --members 400 --output again.csv --budget ledger",
        3,
    ),
    ("", "hdp-fast budget ledger", 0),
    (
        "A small private table and a large public one: a model for the former.",
        f"hdp-fast {ADAPT} --predict visitors.csv --output model.json",
        0,
    ),
    (
        "Which of twelve switches light a lamp? First, how many rows are enough.",
        "hdp-fast parity plan --d 12 --alpha .1 --beta 1e-6 --epsilon 1",
        0,
    ),
    ("", "hdp-fast parity learn switches.csv --beta 1e-6 --epsilon 1", 0),
    (
        "Where labels are wrong now and then, no parity fits, and nothing is released.",
        "hdp-fast parity learn noisy.csv --epsilon 1",
        1,
    ),
    (
        "People who trust no one: the question fixes the privacy before anybody answers.",
        "hdp-fast local question mean trip --low 0 --high 120 --epsilon 1 --output question.json",
        0,
    ),
    (
        "A device answers once; asked again, it sends the same line.",
        "echo 45 | hdp-fast local randomize --question question.json --state device > sent.jsonl",
        0,
    ),
    (
        "",
        "echo 45 | hdp-fast local randomize --question question.json --state device >> sent.jsonl",
        0,
    ),
    ("", "echo nan | hdp-fast local randomize --question question.json", 2),
    (
        "What all others send:",
        "hdp-fast local randomize --question question.json --many < minutes.txt >> sent.jsonl",
        0,
    ),
    (
        "The collector counts the line that came twice once.",
        "hdp-fast local collect sent.jsonl --question question.json",
        0,
    ),
]


def make_customers(coins: np.random.Generator, n: int, members: float) -> list[str]:
    """Members buy from the age of 54 on, and everybody else who owns a home."""
    member, owner = coins.random(n) < members, coins.random(n) < 0.5
    age, income = coins.integers(18, 91, n), coins.integers(10, 120, n)
    bought = np.where(member, age >= 54, owner) ^ (coins.random(n) < 0.02)
    words = np.array(["no", "yes"])
    columns = (age, income, words[owner * 1], words[member * 1], words[bought * 1])
    rows = np.column_stack([column.astype(str) for column in columns])
    return ["age,income,owner,member,bought", *map(",".join, rows)]


def make_switches(coins: np.random.Generator, n: int, wrong: float) -> list[str]:
    """Twelve bits a row, and a lamp that is on where three of them add up to an odd number."""
    bits = coins.integers(0, 2, (n, 12))
    lamp = (bits[:, [1, 4, 8]].sum(axis=1) + (coins.random(n) < wrong)) % 2
    rows = np.column_stack([bits, lamp]).astype(str)
    return [",".join([*(f"switch{j}" for j in range(12)), "lamp"]), *map(",".join, rows)]


def make_files(folder: Path) -> None:
    coins = np.random.default_rng(7)
    files = {
        "archive.csv": make_customers(coins, 2_000, 0.5),
        "customers.csv": make_customers(coins, 20_000, 0.2),
        "visitors.csv": [row.rpartition(",")[0] for row in make_customers(coins, 200, 0.2)],
        "town.csv": make_customers(coins, 40_000, 0.9),
        "shop.csv": make_customers(coins, 500, 0.9),
        "switches.csv": make_switches(coins, 1_000, 0.0),
        "noisy.csv": make_switches(coins, 1_000, 0.1),
        "minutes.txt": (coins.beta(2, 5, 5_000) * 120).round(1).astype(str),
    }
    for name, lines in files.items():
        (folder / name).write_text("\n".join([*lines, ""]), encoding="utf-8")


def run(folder: Path, why: str, command: str, code: int) -> None:
    """Show a command, what it prints and its exit code, which must be the one expected."""
    print(f"\n# {why}\n$ {command}" if why else f"\n$ {command}", flush=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(f"{done.stdout}[exit code {done.returncode}]", flush=True)
    if done.returncode != code:
        raise SystemExit(f"the exit code must be {code}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_files(folder)
        for step in SESSION:
            run(folder, *step)


if __name__ == "__main__":
    main()
