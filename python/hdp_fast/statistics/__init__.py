"""Private statistics of columns between public bounds, each with an interval and its price.

count, sum, mean and variance take a vector or the columns of a table; all columns of one call share
one release. With `by=` and public keys they are released for each group. Every value is clipped to
public bounds, added up exactly in integers and released with exact noise, so that no private value
causes an error. histogram, top_k and quantiles take public bins, categories or bounds. describe
releases many of them of a table with a schema, one epsilon split among them.
"""

from .._support.lazy import list_only
from .covariances import covariance
from .jobs import Job
from .moments import count, mean, sum, variance
from .ranks import quantiles
from .results import Covariance, Histogram, Quantiles, Statistic, TopCategories
from .table_statistics import TableStatistics, Task, columns_of, describe
from .tallies import histogram, top_k

__all__ = [
    "Covariance",
    "Histogram",
    "Job",
    "Quantiles",
    "Statistic",
    "TableStatistics",
    "Task",
    "TopCategories",
    "columns_of",
    "count",
    "covariance",
    "describe",
    "histogram",
    "mean",
    "quantiles",
    "sum",
    "top_k",
    "variance",
]

__dir__ = list_only(__all__)
