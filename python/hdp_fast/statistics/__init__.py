"""Private statistics of columns between public bounds, each with an interval and its price.

count, sum, mean and variance take a vector or the columns of a table; all columns of one call share
one release. With `by=` and public keys they are released for each group. Every value is clipped to
public bounds, added up exactly in integers and released with exact noise, so that no private value
causes an error. histogram, top_k and quantiles take public bins, categories or bounds, and
distribution releases a whole distribution function. describe
releases many of them of a table with a schema, one epsilon split among them, and tables counts its
rows by several columns at once.
"""

from .._support.lazy import list_only
from .covariances import covariance
from .cross_tables import columns_of, tables
from .distributions import distribution
from .jobs import Job
from .moments import count, mean, sum, variance
from .ranks import quantiles
from .results import (
    Covariance,
    CrossTable,
    CrossTables,
    Distribution,
    Histogram,
    Quantiles,
    Statistic,
    TopCategories,
)
from .shares import Shares
from .table_statistics import TableStatistics, Task, describe
from .tallies import histogram, top_k

__all__ = [
    "Covariance",
    "CrossTable",
    "CrossTables",
    "Distribution",
    "Histogram",
    "Job",
    "Quantiles",
    "Shares",
    "Statistic",
    "TableStatistics",
    "Task",
    "TopCategories",
    "columns_of",
    "count",
    "covariance",
    "describe",
    "distribution",
    "histogram",
    "mean",
    "quantiles",
    "sum",
    "tables",
    "top_k",
    "variance",
]

__dir__ = list_only(__all__)
