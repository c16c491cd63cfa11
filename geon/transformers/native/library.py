"""C kernels that are not loop nests: sorting, prefix sums, scatter and checks.

Arrays are contiguous and seen as (outer, n, inner), work being along the middle one. Each function
is a unit of its own, compiled once for all programs, but for checks, which are shorter than what a
unit costs. Results do not depend on the number of threads: each element is the work of one task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..printing.c_expressions import calls, cast, cast_calls, expression, literal
from ..printing.c_functions import C_TYPES, SUFFIXES
from .c_files import FileFunction, file_function, instance
from .sorting import argsort_text, extreme_text, sort_text, top_k_text

HALVES = ("float16", "bfloat16")
_GRAIN = 65536  # elements that are worth a task of their own: some 20 microseconds


@cache
def library_text(name: str, dtypes: tuple[str, ...]) -> FileFunction:
    """The C function of a library kernel for these dtypes.

    ``name`` is one of ``LIBRARY``; the functions there say which dtypes a kernel takes and the
    parameters of its C function. int64_t where no type is said; ``threads`` is int32_t.
    """
    return LIBRARY[name](*dtypes)


# Prefix sums and products -------------------------------------------------------------------------


def cumulative_text(row: str, dtype: str, result: str | None = None) -> FileFunction:
    """``void(threads, x, out, outer, n, inner, int exclusive, int reverse)``: running totals.

    They accumulate in the dtype of the result, that of ``x`` unless given, sums of float32 in
    float64; ``out`` may be ``x``.
    """
    result = result or dtype
    step = "add" if row == "cumsum" else "multiply"
    first = literal(0 if row == "cumsum" else 1, result)
    total = "float64" if (row, result) == ("cumsum", "float32") else result
    # A sum starts from -0, so that the first element stays what it is even where that is -0.
    negative_zero = row == "cumsum" and result in ("float32", "float64")
    types = {"TYPE": C_TYPES[dtype], "RESULT": C_TYPES[result]}
    macros: dict[str, object] = {
        "TOTAL": C_TYPES[total],
        "START": "-0.0" if negative_zero else first,
        "IDENTITY": first,
        "COMBINED(total, value)": f"({_folded(step, total, 'total', 'value')})",
        "GRAIN": _GRAIN,
    }
    name = f"geon_{row}_{SUFFIXES[dtype]}_{SUFFIXES[result]}"
    called = calls(step, (total, total), total)
    return file_function("cumulative", name, types, macros, calls=called)


# Scatter ------------------------------------------------------------------------------------------


def scatter_text(mode: str, dtype: str, index: str) -> FileFunction:
    """``void(threads, x, positions, value, out, outer, n, inner, m)``: x with values put in.

    ``positions`` has m integers of dtype ``index`` that lie inside the axis, negative ones counted
    from its end; ``value`` is (outer, m, inner). They are set or added in order, so that of two at
    one place the later stays. ``out`` may be ``x``.
    """
    stored = "value" if mode == "set" else _sum(dtype, "place", "value")
    added = mode == "add" and dtype in HALVES
    types = {"TYPE": C_TYPES[dtype], "INDEX": C_TYPES[index]}
    macros = {"GRAIN": _GRAIN, "STORED(place, value)": f"({stored})"}
    name = f"geon_scatter_{mode}_{SUFFIXES[dtype]}_{SUFFIXES[index]}"
    called = cast_calls(dtype, "float32") + cast_calls("float32", dtype) if added else ()
    return file_function("scatter", name, types, macros, calls=called)


def _sum(dtype: str, x: str, y: str) -> str:
    if dtype == "bool":
        return _folded("maximum", dtype, x, y)
    if dtype in HALVES:
        wide = (cast(dtype, "float32", x), cast(dtype, "float32", y))
        return cast("float32", dtype, expression("add", ("float32",) * 2, "float32", wide))
    return _folded("add", dtype, x, y)


def _folded(row: str, dtype: str, x: str, y: str) -> str:
    return expression(row, (dtype, dtype), dtype, (x, y))


# Checks -------------------------------------------------------------------------------------------


def check_finite_text(dtype: str) -> FileFunction:
    """``int(x, count, int64_t *wrong, double *first)``: whether a value is not finite.

    ``wrong`` gets how many are not, ``first`` the first of them where there is one.
    """
    if dtype in HALVES:
        exponent = "0x7c00" if dtype == "float16" else "0x7f80"
        finite, counter = f"(x & {exponent}) != {exponent}", "int16_t"
    else:
        finite = expression("isfinite", (dtype,), "bool", ("x",))
        counter = "int32_t" if dtype == "float32" else "int64_t"
    macros = {"TYPE": C_TYPES[dtype], "COUNTER": counter, "FINITE(x)": f"({finite})"}
    macros["VALUE(x)"] = f"({cast(dtype, 'float64', 'x')})"
    name = f"geon_check_finite_{SUFFIXES[dtype]}"
    called = cast_calls(dtype, "float64")
    return FileFunction(name, instance("check_finite.h", name, macros), calls=called)


LIBRARY: dict[str, Callable[..., FileFunction]] = {
    "sort": sort_text,
    "argsort": argsort_text,
    "top_k": top_k_text,
    "argmax": lambda dtype: extreme_text("argmax", dtype),
    "argmin": lambda dtype: extreme_text("argmin", dtype),
    "cumsum": lambda *dtypes: cumulative_text("cumsum", *dtypes),
    "cumprod": lambda *dtypes: cumulative_text("cumprod", *dtypes),
    "scatter_set": lambda *dtypes: scatter_text("set", *dtypes),
    "scatter_add": lambda *dtypes: scatter_text("add", *dtypes),
    "check_finite": check_finite_text,
}
