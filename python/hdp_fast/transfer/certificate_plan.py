"""The plan where nothing is assumed: agents say how large the error is, and nothing is promised."""

from __future__ import annotations

from dataclasses import dataclass

from .._support.json_text import JsonText
from .._support.validate import positive, probability, probability_or_one
from .certificate import agents_to_certify


@dataclass(frozen=True, repr=False)
class CertificatePlan(JsonText):
    """A plan that promises no error, but says afterwards how large it is.

    Where no hypothesis is known to fit, no number of records promises a small error on the target.
    But agents measure the error of any model, whatever it was learned from and however the target
    differs from the source. `transfer.certify(model, agents)` does it.

    Attributes:
        n: Number of the curator's records, 0: any model can be measured.
        N: Number of agents to ask, a fifth of them for their label.
        error: None, since no error is promised.
        failure: Probability with which the interval may miss the error.
        alpha: Half width of the interval of the error, in (0, 1).
        agents_epsilon: Privacy parameter of each agent's answer.
        response_rate: Share of the agents asked who are expected to answer, in (0, 1].

    Source:
        Clopper and Pearson 1934; see `transfer.agents_to_certify`.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.plan_certificate(alpha=0.05, agents_epsilon=1.0).N
        2312
        >>> transfer.plan_certificate(alpha=0.02, agents_epsilon=1.0).N
        14262
    """

    n: int
    N: int
    error: None
    failure: float
    alpha: float
    agents_epsilon: float
    response_rate: float

    def __repr__(self) -> str:
        width = f"the error on the target to within {self.alpha:g}"
        failure = f"except with probability {self.failure:g}"
        return f"CertificatePlan(N={self.N:,}, {width} {failure}; no error is promised)"


def plan_certificate(
    *, alpha: float, agents_epsilon: float, beta: float = 0.05, response_rate: float = 1.0
) -> CertificatePlan:
    """Computes how many agents measure the error of any model to within alpha.

    It assumes nothing of source and class, and so promises no error. `transfer.certify` says
    afterwards how large it is.

    Args:
        alpha: Half width of the interval of the error, in (0, 1).
        agents_epsilon: Privacy parameter of each agent's answer, above 0.
        beta: Probability with which the interval may miss the error, in (0, 1).
        response_rate: Public share of the agents asked who will answer, in (0, 1]; that of
            `local.RemoteAgents`. More agents are asked accordingly.

    Returns:
        The plan. Run it with `transfer.certify(model, agents)` on plan.N agents.

    Raises:
        ParameterError: A parameter is out of range.

    Guarantee:
        Each agent's answer is agents_epsilon-DP, locally.

    Cost:
        Some hundredths of a second, for exact binomial tails.

    Source:
        Clopper and Pearson 1934; see `transfer.agents_to_certify`.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.plan_certificate(alpha=0.05, agents_epsilon=1.0).N
        2312
    """
    epsilon = positive("agents_epsilon", agents_epsilon)
    width, failure = probability("alpha", alpha), probability("beta", beta)
    rate = probability_or_one("response_rate", response_rate)
    agents = agents_to_certify(width, epsilon=epsilon, beta=failure, response_rate=rate)
    return CertificatePlan(0, agents, None, failure, width, epsilon, rate)
