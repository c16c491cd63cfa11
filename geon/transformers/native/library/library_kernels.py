"""C kernels that are not loop nests: sorting, prefix sums, scatter and checks.

Arrays are contiguous and seen as (outer, n, inner), work being along the middle one. Each function
is a unit of its own, compiled once for all programs, but for checks, which are shorter than what a
unit costs. Results do not depend on the number of threads: each element is the work of one task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ....op_graph.values.attribute_types import SCATTER_MODES
from ...printing.scalars.c_expressions import cast, cast_calls
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ...printing.scalars.nan_test import finite
from ..names.c_files import FileFunction, instance
from .prefix_sums import cumulative_text
from .scattering import scatter_text
from .sorting import argsort_text, extreme_text, sort_text, top_k_text

HALVES = ("float16", "bfloat16")


@cache
def library_text(name: str, dtypes: tuple[str, ...]) -> FileFunction:
    """The C function of a library kernel for these dtypes.

    ``name`` is one of ``LIBRARY``; the functions there say which dtypes a kernel takes and the
    parameters of its C function. int64_t where no type is said; ``threads`` is int32_t.
    """
    return LIBRARY[name](*dtypes)


# Checks -------------------------------------------------------------------------------------------


def check_finite_text(dtype: str, infinite: bool = False) -> FileFunction:
    """``int(x, count, int64_t *wrong, double *first)``: whether a value is not finite.

    Where they may be ``infinite``: whether one is NaN. ``wrong`` gets how many are, ``first`` the
    first of them where there is one.
    """
    right = finite(dtype, infinite)
    counter = "int16_t" if dtype in HALVES else "int32_t" if dtype == "float32" else "int64_t"
    macros = {"TYPE": C_TYPES[dtype], "COUNTER": counter, "FINITE(x)": f"({right})"}
    macros["VALUE(x)"] = f"({cast(dtype, 'float64', 'x')})"
    name = f"geon_check_{'numbers' if infinite else 'finite'}_{SUFFIXES[dtype]}"
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
    **{f"scatter_{mode}": partial(scatter_text, mode) for mode in SCATTER_MODES},
    "check_finite": check_finite_text,
    "check_numbers": lambda dtype: check_finite_text(dtype, infinite=True),
}
