"""Records as people have them: public schemas, tables, files."""

from typing import TYPE_CHECKING

from .._support.lazy import attach

if TYPE_CHECKING:
    from .chunks import Chunks
    from .column_kinds import Category, Ignore, Label, Number
    from .columns import Column
    from .frames import read_frame
    from .persons import bound_rows
    from .schema import Schema
    from .states import State
    from .table import Table, read_table

__all__ = [
    "Category",
    "Chunks",
    "Column",
    "Ignore",
    "Label",
    "Number",
    "Schema",
    "State",
    "Table",
    "bound_rows",
    "read_frame",
    "read_table",
]

__getattr__, __dir__ = attach(
    __name__,
    {
        **dict.fromkeys(("Category", "Ignore", "Label", "Number"), ".column_kinds"),
        "Chunks": ".chunks",
        "Column": ".columns",
        "Schema": ".schema",
        "State": ".states",
        **dict.fromkeys(("Table", "read_table"), ".table"),
        "bound_rows": ".persons",
        "read_frame": ".frames",
    },
    __all__,
)
