"""What the machine can do at most, beside which the other benches stand.

Run `python benches/bench_machine.py`: some seconds. Copies read and write 128 MiB each, products
are those of large squares, and the least seconds of some runs count. Results keep these limits.
"""

from __future__ import annotations

from collections.abc import Callable

from _harness import run_file
from _machine import Limits


def bench_limits(table: Callable[..., None], limits: Limits, tiny: bool) -> None:
    # A summary takes some seconds.
    known = {} if tiny else limits.summary()
    rows = [[name, f"{value:.3g}"] for name, value in known.items()]
    rows.append(["xor in the cache, 1 thread, Gbit/s", f"{limits.xor / 1e9:.3g}"])
    table("limits of the machine", [["", "at most"], *rows])


if __name__ == "__main__":
    run_file(__file__)
