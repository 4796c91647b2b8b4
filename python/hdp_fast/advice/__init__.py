"""Which method to take: forecasts from public numbers, before any data are read.

advise ranks the methods of this package for given numbers of records, agents and public points, and
says what each forecast rests on, what would change the order, and which call runs each method.
Advice.compare puts a measured error beside the forecast after a run.
"""

from .._support.lazy import list_only
from .advising import advise
from .results import Advice, Comparison, Forecast

__all__ = ["Advice", "Comparison", "Forecast", "advise"]

__dir__ = list_only(__all__)
