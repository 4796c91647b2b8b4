"""Arrays as no one would make them, from arrays that are right."""

import warnings

import numpy as np

DTYPES = [
    *("bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "longdouble"),
    *("c8", "c16", ">i2", ">i8", ">u4", ">f4", ">f8", "M8[s]", "m8[s]", "S3", "U3", "O", "V4"),
    [("a", "u1"), ("b", "f8")],
]
VALUES = [
    *(np.nan, np.inf, -np.inf, -1, 2, 0.5, 1e-320, 1e308, -1e308, 255, 256, 2**31, 2**63),
    *(2**64 - 1, -(2**63), 1 + 1e-12, -0.0),
]


class Subclass(np.ndarray):
    """An array of somebody's own kind."""


class Pretender:
    """No array, but it knows how to become one."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype)


def _dtype(values, rng):
    kind = DTYPES[rng.integers(len(DTYPES))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return values.astype(kind)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            return np.zeros(values.shape, kind)


def _poison(values, rng):
    """Some entries that do not belong there."""
    made = values.copy()
    poison = VALUES[rng.integers(len(VALUES))]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if made.dtype.kind in "biu" and rng.random() < 0.5:
            made = made.astype(float)
        if made.size and made.dtype.kind in "biufc":
            some = rng.random(made.shape) < rng.choice([0.05, 1.0])
            try:
                made[some] = np.array(poison).astype(made.dtype)
            except (OverflowError, ValueError):
                made[some] = 1
    return made


def _shape(values, rng):
    values = np.atleast_1d(values)
    choices = [
        lambda: values[:0],
        lambda: values.reshape(-1),
        lambda: values.reshape(1, *values.shape),
        lambda: values[..., None],
        lambda: values.T,
        lambda: values[:-1],
        lambda: np.concatenate([values, values]),
        lambda: values.reshape(-1)[0] if values.size else values,
        lambda: np.array(values.reshape(-1)[0]) if values.size else values,
        lambda: np.zeros((0, 0), values.dtype),
        lambda: np.broadcast_to(values.reshape(-1)[:1], (300_000,)) if values.size else values,
    ]
    return np.asarray(choices[rng.integers(len(choices))]())


def _layout(values, rng):
    """The same entries elsewhere in memory."""

    def strided():
        wide = np.empty((*values.shape[:-1], 2 * values.shape[-1]), values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]

    def misaligned():
        held = np.empty(values.nbytes + 1, np.uint8)
        made = np.frombuffer(held.data, values.dtype, values.size, 1).reshape(values.shape)
        made[...] = values
        return made

    def locked():
        made = values.copy()
        made.flags.writeable = False
        return made

    choices = [
        lambda: np.asfortranarray(values),
        lambda: values[::-1].copy()[::-1],
        lambda: np.flip(np.flip(values).copy()),
        locked,
        lambda: values.view(Subclass),
        lambda: values.byteswap().view(values.dtype.newbyteorder()),
    ]
    if values.ndim and values.dtype.kind not in "OV":
        choices += [strided, misaligned] if values.size else [strided]
    return choices[rng.integers(len(choices))]() if values.ndim else values


def _wrapper(values, rng):
    """Something else that holds the same, or nothing of the kind."""
    choices = [
        lambda: values.tolist(),
        lambda: tuple(values.tolist()) if values.ndim else values,
        lambda: np.ma.masked_array(values, values == 1),
        lambda: Pretender(values),
        lambda: memoryview(np.ascontiguousarray(values)),
        lambda: None,
        lambda: "text",
        lambda: iter(values.reshape(-1).tolist()),
        lambda: {"a": 1},
        lambda: [[1], [1, 2]],
        lambda: object(),
    ]
    try:
        return choices[rng.integers(len(choices))]()
    except (TypeError, ValueError, NotImplementedError):
        return values.tolist()


def mutate(values, rng):
    """A hostile relative of an array: mutated up to three times."""
    made = values
    for _ in range(rng.integers(1, 4)):
        steps = [_dtype, _poison, _shape, _layout, _layout]
        made = steps[rng.integers(len(steps))](made, rng)
    return _wrapper(made, rng) if rng.random() < 0.15 else made


def plain(made):
    """The same entries as an array that no one could object to the memory of."""
    return np.array(made, made.dtype.newbyteorder("="), order="C", subok=False)


def told(made):
    """What a hostile array looks like, for whoever has to find out."""
    if not isinstance(made, np.ndarray):
        return repr(made)[:60]
    flags = "".join(name[0] for name in ("aligned", "writeable") if made.flags[name.upper()])
    return f"{type(made).__name__} {made.dtype} {made.shape} {made.strides} {flags}"


def content(made):
    """What must be there afterwards, too."""
    if isinstance(made, np.ma.MaskedArray | Pretender):
        return content(np.asarray(getattr(made, "values", made)))
    return made.tobytes() if isinstance(made, np.ndarray) else repr(made)
