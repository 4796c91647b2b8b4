"""Learn a parity from a biased sample of volunteers and verify it with agents of the population.

The curator's bits are ones with probability 0.4, the population's with 0.5. The curator learns
privately; each agent answers one question, once, by randomized response. Run it with
`python examples/transfer.py`; it takes a few seconds.
"""

import numpy as np

from hdp_fast import gf2, parity
from hdp_fast.local import Agents

FEATURES = 200
CURATOR_EPSILON = 1.0
AGENTS_EPSILON = 1.0
TARGET = {"alpha": 0.05, "beta": 0.05}


def main() -> None:
    coins = np.random.default_rng(2026)
    secret = coins.integers(0, 2, FEATURES, dtype=np.uint8)
    plan = parity.plan_transfer(
        FEATURES, epsilon=CURATOR_EPSILON, agents_epsilon=AGENTS_EPSILON, **TARGET
    )
    print(f"plan: {plan.curator.n:,} records of the curator, {plan.agents:,} agents")

    rows = (coins.random((plan.curator.n, FEATURES)) < 0.4).astype(np.uint8)
    population = coins.integers(0, 2, (plan.agents, FEATURES), dtype=np.uint8)
    agents = Agents(population, gf2.dot(population, secret), epsilon=AGENTS_EPSILON)

    result = parity.transfer(rows, gf2.dot(rows, secret), agents, epsilon=CURATOR_EPSILON, **TARGET)
    print("released:", result.released)
    if result.released:
        low, high = result.interval
        print(f"error on the population: {result.target_error:.3f}, in [{low:.3f}, {high:.3f}]")
        print("wrong bits:", int((result.mask ^ secret).sum()), "of", FEATURES)
    print("agents who can still be asked:", agents.remaining)
    print("curator:", result.record.to_json())
    print("agents: ", result.agents_record.to_json() if result.agents_record else "not asked")


if __name__ == "__main__":
    main()
