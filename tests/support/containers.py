"""The containers in which people have records, each made of a plain array of 0 and 1."""

import tempfile
from pathlib import Path

import numpy as np
import pytest


class Subclass(np.ndarray):
    """An array of somebody's own kind."""


class WithArray:
    """No array, but it makes one of numpy."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


class WithMemory:
    """Memory by DLPack, and nothing else, as arrays of other libraries have it."""

    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **options):
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class OfTheStandard(WithMemory):
    """An array of the array API standard, which promises DLPack."""

    def __array_namespace__(self, *, api_version=None):
        return np


class WithStream:
    """A table or a column as a stream of Arrow, and nothing else."""

    def __init__(self, values):
        self.values = values

    def __arrow_c_stream__(self, requested_schema=None):
        return self.values.__arrow_c_stream__(requested_schema)


class WithBatch:
    """A batch or a column of Arrow, and nothing else."""

    def __init__(self, values):
        self.values = values

    def __arrow_c_array__(self, requested_schema=None):
        return self.values.__arrow_c_array__(requested_schema)


def columns_of(values):
    """The columns of a matrix by name."""
    return {f"c{place}": column for place, column in enumerate(values.T)}


# numpy -------------------------------------------------------------------------------------------


def strided(values):
    """Every second entry of a larger array."""
    wide = np.zeros((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
    wide[..., ::2] = values
    return wide[..., ::2]


def misaligned(values):
    """The same, one byte beside a multiple of eight."""
    held = np.empty(values.nbytes + 1, np.uint8)
    made = np.frombuffer(held.data, values.dtype, values.size, 1).reshape(values.shape)
    made[...] = values
    return made


def locked(values):
    """The same, which no one can write to."""
    made = values.copy()
    made.flags.writeable = False
    return made


def memory_map(values):
    """The same in a file that has no name any more."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.npy"
        np.save(path, values)
        return np.load(path, mmap_mode="r")


def matrix(values):
    """A matrix of numpy, and a vector as it is."""
    return np.asmatrix(values) if values.ndim == 2 else values


def of(dtype, change=np.asarray):
    """What makes a container of this dtype."""
    return dtype, lambda values: change(values.astype(dtype))


# Frames ------------------------------------------------------------------------------------------


def in_pandas(dtype):
    """A frame or a series with columns of a dtype, or of the dtypes of a list in turn."""

    def make(values):
        pandas = pytest.importorskip("pandas")
        if "pyarrow" in str(dtype):
            pytest.importorskip("pyarrow")
        kinds = dtype if isinstance(dtype, list) else [dtype]
        if "category" in kinds:
            kinds = [pandas.CategoricalDtype([1, 0])]
        if values.ndim == 1:
            return pandas.Series(values).astype(kinds[0])
        frame = pandas.DataFrame(columns_of(values))
        return frame.astype({c: kinds[i % len(kinds)] for i, c in enumerate(frame.columns)})

    return make


def in_polars(*dtypes):
    """A frame or a series with columns of these dtypes in turn."""

    def make(values):
        polars = pytest.importorskip("polars")
        kinds = [getattr(polars, dtype) for dtype in dtypes]
        if values.ndim == 1:
            return polars.Series("y", values).cast(kinds[0])
        frame = polars.DataFrame(columns_of(values))
        return frame.cast({c: kinds[i % len(kinds)] for i, c in enumerate(frame.columns)})

    return make


def lazy(values):
    """A query of polars."""
    polars = pytest.importorskip("polars")
    return polars.DataFrame(columns_of(np.atleast_2d(values.T).T)).lazy()


def in_arrow(kind="int64", chunks=1, batch=False, dictionary=False):
    """A table and a column of pyarrow."""

    def column_of(values, pyarrow):
        parts = [pyarrow.array(part).cast(kind) for part in np.array_split(values, chunks)]
        parts = [part.dictionary_encode() for part in parts] if dictionary else parts
        return parts[0] if batch else pyarrow.chunked_array(parts)

    def make(values):
        pyarrow = pytest.importorskip("pyarrow")
        if values.ndim == 1:
            return column_of(values, pyarrow)
        columns = {name: column_of(column, pyarrow) for name, column in columns_of(values).items()}
        return pyarrow.record_batch(columns) if batch else pyarrow.table(columns)

    return make


def dataset(values):
    """A data set of pyarrow, which has not been read."""
    module = pytest.importorskip("pyarrow.dataset")
    return module.dataset(in_arrow()(np.atleast_2d(values.T).T))


def reader(values):
    """A reader of pyarrow, which can be read once."""
    return in_arrow()(np.atleast_2d(values.T).T).to_reader()


def sparse(name):
    """A sparse matrix of scipy."""

    def make(values):
        module = pytest.importorskip("scipy.sparse")
        return getattr(module, name)(np.atleast_2d(values.T).T)

    return make


# What is read: for each row of the table, the dtype of the plain array that a container counts as,
# and what makes it.
READ = {
    "lists and tuples": {
        "lists": ("int64", lambda values: values.astype(int).tolist()),
        "tuples": ("int64", lambda values: tuple(values.astype(int).tolist())),
        "floats": ("float64", lambda values: values.astype(float).tolist()),
    },
    "numpy: bool, integers, floats of 16, 32 and 64 bits": {
        dtype: of(dtype)
        for dtype in (
            "bool",
            "int8",
            "uint16",
            "int64",
            "float16",
            "float32",
            "float64",
        )
    },
    "numpy: any order, strides, byte order, alignment; read-only, memory-mapped": {
        "Fortran order": of("float64", np.asfortranarray),
        "negative strides": of("int64", lambda values: values[::-1].copy()[::-1]),
        "strides": of("uint8", strided),
        "big-endian integers": of("int64", lambda values: values.astype(">i8")),
        "big-endian floats": of("float64", lambda values: values.astype(">f8")),
        "misaligned": of("float64", misaligned),
        "read-only": of("float64", locked),
        "memory map": of("float64", memory_map),
    },
    "numpy: `matrix` and other subclasses": {
        "matrix": of("int64", matrix),
        "subclass": of("float64", lambda values: values.view(Subclass)),
    },
    "pandas: dtypes of numpy, also several in a frame": {
        "int64": ("int64", in_pandas("int64")),
        "several": ("float64", in_pandas(["float64", "bool", "int8", "float32"])),
        "bool beside integers": ("int64", in_pandas(["int64", "bool"])),
    },
    "pandas: nullable `Int64`, `Float64`, `boolean`, nothing missing": {
        "Int64": ("int64", in_pandas("Int64")),
        "UInt8": ("uint8", in_pandas("UInt8")),
        "Float64": ("float64", in_pandas("Float64")),
        "boolean": ("bool", in_pandas("boolean")),
        "several": ("int64", in_pandas(["Int64", "boolean", "int64"])),
    },
    "pandas: Arrow-backed, nothing missing": {
        "int64[pyarrow]": ("int64", in_pandas("int64[pyarrow]")),
        "double[pyarrow]": ("float64", in_pandas("double[pyarrow]")),
        "bool[pyarrow]": ("bool", in_pandas("bool[pyarrow]")),
    },
    "pandas: categories that are numbers": {
        "category": ("int64", in_pandas("category")),
        "beside integers": ("int64", in_pandas(["int64", "category", "bool"])),
    },
    "pandas: sparse columns": {"Sparse": ("int64", in_pandas("Sparse[int64]"))},
    "polars: `DataFrame`, `Series`": {
        "Int64": ("int64", in_polars("Int64")),
        "Boolean": ("bool", in_polars("Boolean")),
        "several": ("float64", in_polars("Float64", "Boolean", "Int8")),
    },
    "pyarrow: `Table`, `RecordBatch`, `ChunkedArray`, `Array`": {
        "table": ("int64", in_arrow()),
        "chunks": ("float64", in_arrow("float64", chunks=3)),
        "batch": ("int64", in_arrow(batch=True)),
        "bool": ("bool", in_arrow("bool")),
        "dictionaries": ("int64", in_arrow(dictionary=True)),
    },
    "others that speak Arrow (`__arrow_c_stream__`, `__arrow_c_array__`)": {
        "stream": ("int64", lambda values: WithStream(in_arrow(chunks=2)(values))),
        "batch": ("int64", lambda values: WithBatch(in_arrow(batch=True)(values))),
    },
    "others with DLPack or the array API (`__dlpack__`), in main memory": {
        "DLPack": of("float64", WithMemory),
        "array API": of("int64", OfTheStandard),
    },
    "others that make arrays (`__array__`)": {"float64": of("float64", WithArray)},
}


def missing_in_pandas(dtype):
    """A frame or a series with a missing entry."""

    def make(values):
        made = in_pandas(dtype)(values)
        places = (len(values) // 2, 0)[: values.ndim]
        made.iloc[places if values.ndim == 2 else places[0]] = None
        return made

    return make


def missing_in_arrow(values, kind="bool"):
    """A table or a column with a missing bool."""
    pyarrow = pytest.importorskip("pyarrow")
    columns = {
        name: pyarrow.array([None, *column[1:].astype(bool).tolist()])
        for name, column in columns_of(np.atleast_2d(values.T).T).items()
    }
    return pyarrow.table(columns) if values.ndim == 2 else next(iter(columns.values()))


def missing_in_polars(values):
    """A frame or a series with a missing bool."""
    polars = pytest.importorskip("polars")
    return (polars.DataFrame if values.ndim == 2 else polars.Series)(missing_in_arrow(values))


def texts(values):
    """A frame with a column of words, and a series of words."""
    pandas = pytest.importorskip("pandas")
    words = np.where(values.astype(bool), "yes", "no")
    return pandas.DataFrame(columns_of(words)) if values.ndim == 2 else pandas.Series(words)


# What some or all refuse, by row of the table: what makes it.
REFUSED = {
    "a missing entry: NaN, `None` or NA in a column of numbers": {
        "NaN": lambda values: np.where(
            np.arange(values.size).reshape(values.shape) == 3, np.nan, values
        ),
        "Int64": missing_in_pandas("Int64"),
        "boolean": missing_in_pandas("boolean"),
        "bool[pyarrow]": missing_in_pandas("bool[pyarrow]"),
        "polars": missing_in_polars,
        "pyarrow": missing_in_arrow,
    },
    "texts": {"texts": texts},
    "numpy: `longdouble`": {"longdouble": lambda values: values.astype(np.longdouble)},
    "complex numbers": {"complex": lambda values: values.astype(complex)},
    "sparse matrices of scipy": {
        "csr_matrix": sparse("csr_matrix"),
        "coo_array": sparse("coo_array"),
    },
    "masked arrays: fill them first": {
        "masked": lambda values: np.ma.masked_array(values, values == 7),
        "masked rows": lambda values: [np.ma.masked_array(row, row == 7) for row in values],
    },
    "not read yet: polars `LazyFrame`, pyarrow `Dataset` and `RecordBatchReader`": {
        "LazyFrame": lazy,
        "Dataset": dataset,
        "RecordBatchReader": reader,
    },
    "no container: `None`, a text, a dict, an iterator": {
        "None": lambda values: None,
        "text": lambda values: "records.csv",
        "dict": lambda values: {"a": 1},
        "generator": lambda values: iter(values.tolist()),
        "object": lambda values: object(),
    },
}


# Columns that may lack an entry, by container and dtype ------------------------------------------

INTEGERS, REALS, WORDS = [3, 1, 2, 1, 3, 2], [0.5, 1.0, -2.0, 1.0, 0.0, 3.0], [*"cabcab"]
TRUTHS = [True, False, True, True, False, False]


def as_series(dtype):
    """A series of pandas; the categories of one of categories are public."""

    def make(entries, known):
        pandas = pytest.importorskip("pandas")
        if "pyarrow" in dtype:
            pytest.importorskip("pyarrow")
        if dtype != "category":
            # Of a list with integers on both sides of 2**63 pandas itself makes floats first.
            return pandas.Series(np.array(entries, object), dtype=dtype)
        return pandas.Series(pandas.Categorical(entries, categories=pandas.Index(known)))

    return make


def as_polars(dtype):
    """A series of polars."""

    def make(entries, _):
        polars = pytest.importorskip("polars")
        return polars.Series("a", entries, dtype=getattr(polars, dtype))

    return make


def as_arrow(dtype, dictionary=False):
    """An array of pyarrow."""

    def make(entries, _):
        pyarrow = pytest.importorskip("pyarrow")
        made = pyarrow.array(entries, dtype)
        return made.dictionary_encode() if dictionary else made

    return make


def as_numpy(dtype):
    """An array of numpy."""
    return lambda entries, _: np.array(entries, dtype)


def _columns():
    whole = {
        **{f"pandas {kind}": as_series(kind) for kind in ("Int64", "int64[pyarrow]", "category")},
        "polars Int64": as_polars("Int64"),
        "pyarrow int64": as_arrow("int64"),
        "pyarrow dictionary": as_arrow("int64", dictionary=True),
    }
    unsigned = {
        **{f"pandas {kind}": as_series(kind) for kind in ("UInt64", "uint64[pyarrow]")},
        "polars UInt64": as_polars("UInt64"),
        "pyarrow uint64": as_arrow("uint64"),
    }
    small = {
        "pandas Int8": as_series("Int8"),
        "polars Int8": as_polars("Int8"),
        "pyarrow int8": as_arrow("int8"),
    }
    truths = {
        **{f"pandas {kind}": as_series(kind) for kind in ("boolean", "bool[pyarrow]")},
        "polars Boolean": as_polars("Boolean"),
        "pyarrow bool": as_arrow("bool"),
    }
    reals = {
        **{f"pandas {kind}": as_series(kind) for kind in ("float64", "Float32", "double[pyarrow]")},
        **{f"polars {kind}": as_polars(kind) for kind in ("Float32", "Float64")},
        **{f"pyarrow {kind}": as_arrow(kind) for kind in ("float32", "float64")},
        **{f"numpy {kind}": as_numpy(kind) for kind in ("float32", "float64", ">f8")},
    }
    words = {
        **{f"pandas {kind}": as_series(kind) for kind in ("object", "str", "string")},
        "pandas string[pyarrow]": as_series("string[pyarrow]"),
        "pandas category of texts": as_series("category"),
        **{f"polars {kind}": as_polars(kind) for kind in ("String", "Categorical")},
        "pyarrow string": as_arrow("string"),
        "pyarrow dictionary of texts": as_arrow("string", dictionary=True),
        "numpy object": as_numpy("object"),
    }
    return whole, unsigned, small, truths, reals, words


WHOLE, UNSIGNED, SMALL, BOOLS, FLOATS, TEXTS = _columns()
# Each makes a column of entries, of which `None` is missing, and of all entries that there may be;
# beside it stand entries of its kind.
COLUMNS = {
    **{name: (make, INTEGERS) for name, make in (WHOLE | UNSIGNED | SMALL).items()},
    **{name: (make, TRUTHS) for name, make in BOOLS.items()},
    **{name: (make, REALS) for name, make in FLOATS.items()},
    **{name: (make, WORDS) for name, make in TEXTS.items()},
}


def frame_of(name, column, beside, alone=False):
    """The column, or a frame of its library with it, alone or beside another one."""
    if not alone and (beside is None or name.startswith("numpy")):
        return column
    other = [7, 8, 9, 7, 8, 9] if beside == "integers" else [*"xyzxyz"]
    library, columns = pytest.importorskip(name.split()[0]), {"a": column}
    if not alone:
        columns["b"] = other
    return (library.table if library.__name__ == "pyarrow" else library.DataFrame)(columns)
