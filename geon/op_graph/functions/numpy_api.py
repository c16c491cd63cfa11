"""``np.sum(x, axis=A)`` and other NumPy functions on tensors, by ``__array_function__``.

A NumPy function is supported if it has the same meaning with named axes. ``axis=None`` means all
axes; a position is refused, because it would depend on the order of axes. For other functions the
error names geon's function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ...errors import AxisError, SymbolicError
from ..axes.axes import Axes, Axis
from ..core.source_info import describe, site_beyond
from ..op_graph import Tensor
from ..rows import complex_numbers, movement, reductions, sort_and_cumulative
from ..rows.concatenation import concat, stack
from ..rows.elementwise import where
from ..syntax.foreign_names import FUNCTIONS
from ..syntax.operators import LATE_BOUND
from . import composites, fourier, missing_values, quantiles, segments


def _reduced(name: str, reduce: Callable[..., Tensor], options: tuple[str, ...] = ()) -> Any:
    def build(a: Any, axis: Any = None, **given: Any) -> Tensor:
        # Options that NumPy passes even if the user did not give them.
        left = {key: value for key, value in given.items() if key in options}
        _only(name, given, left)
        return reduce(a, _named(name, axis), **left)

    return build


def _along(name: str, run: Callable[..., Any]) -> Any:
    def build(a: Any, axis: Any = -1, **given: Any) -> Any:
        _only(name, given, {})
        return run(a, None if axis == -1 and isinstance(axis, int) else _named(name, axis))

    return build


def _only(name: str, given: dict[str, Any], known: dict[str, Any]) -> None:
    unknown = [key for key in given if key not in known]
    if unknown:
        _refuse(name, f" with {', '.join(unknown)}=")


def _named(name: str, axis: Any) -> Any:
    """Return an axis argument in geon's form; raise ``AxisError`` for a position."""
    for item in axis if isinstance(axis, (list, tuple)) else (axis,):
        if not (item is None or isinstance(item, (Axis, Axes, str))):
            raise AxisError(
                f"np.{name} at {describe(site_beyond(np))}: axis={axis!r} is a position, and axes "
                f"of tensors go by name; give axis=A, a geon.Axis or a name, or {_instead(name)}"
            )
    return list(axis) if isinstance(axis, tuple) else axis


def _quantiles(name: str, find: Callable[..., Tensor]) -> Any:
    def build(a: Any, q: Any, axis: Any = None, **given: Any) -> Tensor:
        left = {key: value for key, value in given.items() if key == "method"}
        _only(name, given, left)
        return find(a, q, _named(name, axis), **left)

    return build


def _joined(name: str, join: Callable[..., Tensor]) -> Any:
    def build(arrays: Any, axis: Any = None, **given: Any) -> Tensor:
        _only(name, given, {})
        if axis is None or isinstance(axis, int):
            axis = 0 if axis is None else axis
        return join(list(arrays), _named(name, axis))

    return build


def _flipped(m: Tensor, axis: Any = None) -> Tensor:
    return movement.flip(m, m.axes if axis is None else _named("flip", axis))


def _where(condition: Any, x: Any, y: Any) -> Tensor:
    return where(condition, x, y)


def _clipped(a: Any, a_min: Any = None, a_max: Any = None, **given: Any) -> Tensor:
    low, high = given.pop("min", a_min), given.pop("max", a_max)
    _only("clip", given, {})
    return composites.clip(a, low, high)


def _dot(a: Any, b: Any, out: Any = None) -> Tensor:
    if out is not None:
        _refuse("dot", " with out=")
    result: Tensor = LATE_BOUND["matmul"](a, b)
    return result


TRANSFORMS = (fourier.fft, fourier.ifft, fourier.rfft)

BUILDS: dict[str, Callable[..., Any]] = {
    "sum": _reduced("sum", reductions.sum),
    "prod": _reduced("prod", reductions.prod),
    "max": _reduced("max", reductions.max),
    "min": _reduced("min", reductions.min),
    "amax": _reduced("max", reductions.max),
    "amin": _reduced("min", reductions.min),
    "any": _reduced("any", reductions.any),
    "all": _reduced("all", reductions.all),
    "argmax": _reduced("argmax", reductions.argmax),
    "argmin": _reduced("argmin", reductions.argmin),
    "mean": _reduced("mean", composites.mean),
    "std": _reduced("std", composites.std, ("correction",)),
    "var": _reduced("var", composites.variance, ("correction",)),
    "median": _reduced("median", quantiles.median),
    "nanmedian": _reduced("nanmedian", quantiles.nanmedian),
    "quantile": _quantiles("quantile", quantiles.quantile),
    "nanquantile": _quantiles("nanquantile", quantiles.nanquantile),
    "percentile": _quantiles("percentile", quantiles.percentile),
    "nansum": _reduced("nansum", missing_values.nansum),
    "nanmean": _reduced("nanmean", missing_values.nanmean),
    "count_nonzero": _reduced("count_nonzero", segments.count_nonzero),
    "cumsum": _along("cumsum", sort_and_cumulative.cumsum),
    "cumprod": _along("cumprod", sort_and_cumulative.cumprod),
    "sort": _along("sort", sort_and_cumulative.sort),
    "argsort": _along("argsort", sort_and_cumulative.argsort),
    "flip": _flipped,
    "concatenate": _joined("concatenate", concat),
    "stack": _joined("stack", stack),
    "real": complex_numbers.real,
    "imag": complex_numbers.imag,
    "angle": complex_numbers.angle,
    **{f"fft.{f.__name__}": _along(f"fft.{f.__name__}", f) for f in TRANSFORMS},
    "where": _where,
    "clip": _clipped,
    "dot": _dot,
    "shape": lambda a: a.shape,
    "ndim": lambda a: len(a.axes),
}


# Advice where NumPy's function differs from geon's of that name, or has another argument.
CURES = {
    "fft": "geon.fft.fft(x, A)",
    "around": "geon.round(x, decimals=2) for two digits",
    "outer": "geon.outer(geon.multiply, x, y)",
    "round": "geon.round(x, decimals=2) for two digits",
    "std": "geon.std(x, A, correction=n), whose n is what NumPy calls ddof",
    "var": "geon.variance(x, A, correction=n), whose n is what NumPy calls ddof",
}
# geon's equivalents of the methods of NumPy's ufuncs.
METHODS = {
    "add.reduce": "geon.sum(x, A)",
    "multiply.reduce": "geon.prod(x, A)",
    "maximum.reduce": "geon.max(x, A)",
    "minimum.reduce": "geon.min(x, A)",
    "logical_and.reduce": "geon.all(x, A)",
    "logical_or.reduce": "geon.any(x, A)",
    "add.accumulate": "geon.cumsum(x, A)",
    "multiply.accumulate": "geon.cumprod(x, A)",
    "maximum.accumulate": "geon.cummax(x, A)",
    "minimum.accumulate": "geon.cummin(x, A)",
    "logaddexp.accumulate": "geon.logcumsumexp(x, A)",
    "add.at": 'geon.scatter(x, positions, values, A, mode="add")',
    "multiply.at": 'geon.scatter(x, positions, values, A, mode="multiply")',
    "maximum.at": 'geon.scatter(x, positions, values, A, mode="max")',
    "minimum.at": 'geon.scatter(x, positions, values, A, mode="min")',
    "add.reduceat": "geon.segment_sum(x, segments, S)",
}


def numpy_function(function: Callable[..., Any], args: Any, keywords: dict[str, Any]) -> Any:
    """Return the op of a NumPy function on tensors; else raise an error with geon's function."""
    name = f"{function.__module__}.{function.__name__}".removeprefix("numpy.")
    if name not in BUILDS:
        _refuse(name, "")
    try:
        return BUILDS[name](*args, **keywords)
    except TypeError as error:
        if type(error) is not TypeError:
            raise
        _refuse(name, f" with these arguments ({error})")


def _refuse(name: str, given: str) -> NoReturn:
    raise SymbolicError(
        f"np.{name} at {describe(site_beyond(np))} cannot be given tensors{given}; {_instead(name)}"
    )


def _instead(name: str) -> str:
    name = name.rpartition(".")[2]
    known = CURES.get(name) or FUNCTIONS.get(name)
    if known is None and LATE_BOUND["is_public"](name):
        known = f"geon.{name}(x, ...)"
    return f"write {known}" if known else "geon has no function for it: compute what it is given"


def ufunc_cure(name: str, method: str) -> str:
    """Return the advice for a method of a NumPy ufunc."""
    if method == "__call__":
        return _instead(name)
    known = METHODS.get(f"{name}.{method}")
    if known is None and method == "outer" and LATE_BOUND["is_public"](name):
        known = f"geon.outer(geon.{name}, x, y)"
    return f"write {known}" if known else "geon has no function for it: compute what it is given"
