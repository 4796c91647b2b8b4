"""Learn a secret parity of 300 bits under pure differential privacy at three values of epsilon.

Run it with `python examples/parity.py`; it takes a few seconds.
"""

import numpy as np

from hdp_fast import gf2, parity

FEATURES = 300
TARGET = {"alpha": 0.05, "beta": 0.05}


def main() -> None:
    coins = np.random.default_rng(2026)
    secret = coins.integers(0, 2, FEATURES, dtype=np.uint8)

    print(f"{'epsilon':>7} {'loop':>8} {'batches':>8} {'paper':>11}   loop finds")
    for epsilon in (0.5, 1.0, 2.0):
        plan = parity.plan(FEATURES, epsilon=epsilon, **TARGET)
        batches = parity.plan(FEATURES, epsilon=epsilon, method="batches", **TARGET)
        rows = coins.integers(0, 2, (plan.n, FEATURES), dtype=np.uint8)
        labels = gf2.dot(rows, secret)

        result = parity.learn(rows, labels, epsilon=epsilon, plan=plan)
        found = "nothing (the stop coin)"
        if result.released:
            found = f"{int((result.mask == secret).sum())} of {FEATURES} bits"
        print(f"{epsilon:7} {plan.n:8,} {batches.n:8,} {plan.n_paper:11,}   {found}")

    # Labels that no parity fits: private as ever, and no release that could be told from bad luck.
    result = parity.learn(rows, coins.integers(0, 2, len(rows), dtype=np.uint8), epsilon=epsilon)
    print("random labels: released =", result.released)
    print(result.record.to_json())


if __name__ == "__main__":
    main()
