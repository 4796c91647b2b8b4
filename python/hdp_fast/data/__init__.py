"""Records as people have them: public schemas, tables, files."""

from .._support.lazy import list_only
from .persons import bound_rows
from .schema import Category, Ignore, Label, Number, Schema
from .table import Column, Table, read_table

__all__ = [
    "Category",
    "Column",
    "Ignore",
    "Label",
    "Number",
    "Schema",
    "Table",
    "bound_rows",
    "read_table",
]

__dir__ = list_only(__all__)
