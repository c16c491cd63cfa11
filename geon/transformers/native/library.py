"""C kernels that are not loop nests: sorting, prefix sums, scatter, random bits and checks.

Arrays are contiguous and seen as (outer, n, inner), work being along the middle one. Each function
is a unit of its own, compiled once for all programs, but for checks, which are shorter than what a
unit costs. Results do not depend on the number of threads: each element is the work of one task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ..printing.c_expressions import cast, expression
from ..printing.c_functions import C_TYPES, SUFFIXES
from .c_files import FileFunction, file_function, instance
from .prefix import cumulative_text
from .scattering import scatter_text
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


# Random bits --------------------------------------------------------------------------------------


def random_bits_text(dtype: str) -> FileFunction:
    """``void(threads, out, count, uint64_t seed, uint64_t draw, const uint64_t *calls)``.

    Fills ``out`` with count elements of uint32 or uint64 as ``op_graph.philox`` says, at most
    2**34 words of 32 bits.
    """
    name, types = f"geon_random_bits_{SUFFIXES[dtype]}", {"TYPE": C_TYPES[dtype]}
    return file_function("random_bits", name, types, {"GRAIN": _GRAIN})


# Checks -------------------------------------------------------------------------------------------


def check_positions_text(dtype: str) -> FileFunction:
    """``int(positions, count, length, int64_t *found)``: whether one lies outside the axis.

    ``found`` gets the smallest and the largest; of a uint64, at most 2**63 - 1. They must lie in
    -length to length - 1.
    """
    held = "(int64_t)((x) > INT64_MAX ? INT64_MAX : (x))" if dtype == "uint64" else "(x)"
    macros = {"TYPE": C_TYPES[dtype], "HELD(x)": held}
    name = f"geon_check_positions_{SUFFIXES[dtype]}"
    return FileFunction(name, instance("check_positions.h", name, macros))


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
    return FileFunction(name, instance("check_finite.h", name, macros))


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
    "random_bits": random_bits_text,
    "check_positions": check_positions_text,
    "check_finite": check_finite_text,
}
