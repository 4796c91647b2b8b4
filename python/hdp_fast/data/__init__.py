"""Records as people have them: public schemas, tables, files."""

from .._support.lazy import list_only
from .column_kinds import Category, Ignore, Label, Number
from .columns import Column
from .frames import read_frame
from .persons import bound_rows
from .schema import Schema
from .table import Table, read_table

__all__ = [
    "Category",
    "Column",
    "Ignore",
    "Label",
    "Number",
    "Schema",
    "Table",
    "bound_rows",
    "read_frame",
    "read_table",
]

__dir__ = list_only(__all__)
