"""Prints how many votes one replaced record moves, for each hostile learner, labeler and engine.

What else of the caller's has changed stands beside the number, or the error that came out. Where a
learner keeps a state of its own in a process that members share, more than 1 is what to expect.
"""

import warnings

from hostile_learners import CASES
from hostile_runs import ENGINES, LABELERS, moved, undone


def counted(case, labeler, where):
    try:
        with undone():
            votes, changed, _ = moved(case, labeler, where)
    except BaseException as error:
        return type(error).__name__
    return f"{votes}{' and ' * bool(changed)}{' '.join(sorted(changed))}"


def main():
    warnings.filterwarnings("ignore", message="random_state makes")
    columns = [(labeler, where) for labeler in LABELERS for where in ENGINES]
    print("| votes moved by one record, of 12 |", " | ".join(f"{a}, {b}" for a, b in columns), "|")
    print("| --- |" + " ---: |" * len(columns))
    for case in CASES:
        shown = [
            counted(case, labeler, where) if where in case.engines or len(case.engines) == 1 else ""
            for labeler, where in columns
        ]
        print(f"| {case.name} |", " | ".join(shown), "|", flush=True)


if __name__ == "__main__":
    main()
