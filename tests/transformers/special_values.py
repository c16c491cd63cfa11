"""Values at the edges of each dtype, for tests that hold a kernel against its reference."""

import ml_dtypes
import numpy as np

from geon.op_graph.values.dtypes import DTYPES, FLOAT8S, FLOATS, as_dtype


def special_values(name):
    """An array of a dtype: ends of the range, both zeros, NaN, infinities, subnormals, halves."""
    dtype = as_dtype(name)
    if name in FLOAT8S:
        return np.arange(256, dtype=np.uint8).view(dtype)
    if name == "bool":
        return np.array([False, True])
    if name not in FLOATS:
        info = np.iinfo(dtype)
        bits = 8 * dtype.itemsize
        wanted = [0, 1, 2, 3, 7, 10, bits - 1, bits, -1, -2, -7, info.max, info.max - 1, info.min]
        return np.array([v for v in wanted if info.min <= v <= info.max], dtype)
    info = ml_dtypes.finfo(dtype)
    edges = [info.max, -info.max, info.tiny, -info.tiny, info.smallest_subnormal, info.eps]
    plain = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.25, -7.0, 10.0, 0.1, 1e-3, -88.0]
    return np.array([np.nan, np.inf, -np.inf, *map(float, edges), *plain]).astype(dtype)


def assert_equal_bits(got, expected, what):
    """Hold two arrays equal: shape, dtype, and bits but for those of a NaN."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    if got.dtype.name in (*FLOATS, *FLOAT8S):
        nan = np.isnan(got) & np.isnan(expected)
        got, expected = (np.where(nan, np.zeros((), a.dtype), a) for a in (got, expected))
    same = np.frombuffer(got.tobytes(), np.uint8) == np.frombuffer(expected.tobytes(), np.uint8)
    assert same.all(), f"{what}: got\n{got}\nexpected\n{expected}"


def assert_close(got, expected, ulps, what, term=0.0):
    """Hold two float arrays within some roundings of each other; infinities and NaN are equal.

    A rounding is that of ``term`` where the value is smaller: two terms may have cancelled.
    """
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    eps, tiny = (float(getattr(ml_dtypes.finfo(got.dtype), k)) for k in ("eps", "tiny"))
    a, b = got.astype(np.float64), expected.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= ulps * (eps * np.maximum(np.abs(b), term) + eps * tiny)
        agree = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    where = np.argwhere(~agree)[:5].tolist()
    shown = [(float(a[tuple(at)]), float(b[tuple(at)])) for at in where]
    assert agree.all(), f"{what}: at {where} (got, expected) are {shown}"


__all__ = ["DTYPES", "assert_close", "assert_equal_bits", "special_values"]
