"""Statistical queries and the local model, in both directions.

Oracles answer queries about a sample or a distribution, a curator answers them with noise, and
agents answer them with one bit each. In the other direction, queries simulate local randomizers.
"""

from ..._support.lazy import list_only

__all__ = []

__dir__ = list_only(__all__)
