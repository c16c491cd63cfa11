"""C kernels that are not loop nests: sorting, prefixes, scatter and checks.

Arrays are contiguous with shape (outer, n, inner); a kernel works along the middle axis. Each
function has a translation unit of its own that is compiled once for all programs. Checks are the
exception: they are shorter than the fixed cost of a unit. Results do not depend on the number of
threads: one task computes each element.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.attribute_types import SCATTER_MODES
from ...printing.scalars.c_expressions import cast, cast_calls
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ...printing.scalars.nan_test import finite
from ..names.c_files import FileFunction, instance
from .fourier import fourier_text
from .matrices import ROUTINES, matrix_text
from .prefixes import cumulative_text
from .scattering import scatter_text
from .sorting import argsort_text, extreme_text, sort_text, top_k_text

HALVES = ("float16", "bfloat16")


@cache
def library_text(name: str, dtypes: tuple[str, ...]) -> FileFunction:
    """Return the C function of a library kernel for these dtypes.

    ``name`` is a key of ``LIBRARY``. Its functions document the dtypes that a kernel takes and the
    parameters of its C function. Parameters without a stated type are int64_t, ``threads`` is
    int32_t.
    """
    return LIBRARY[name](*dtypes)


# Checks -------------------------------------------------------------------------------------------


def check_finite_text(dtype: str, infinite: bool = False) -> FileFunction:
    """Return ``int(x, count, int64_t *wrong, double *first)``: 1 if a value is not finite.

    With ``infinite``: 1 if a value is NaN. ``wrong`` receives the number of such values, ``first``
    the first of them if there is one.
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
    "bottom_k": lambda dtype: top_k_text(dtype, largest=False),
    "argmax": lambda dtype: extreme_text("argmax", dtype),
    "argmin": lambda dtype: extreme_text("argmin", dtype),
    **{row: partial(cumulative_text, row) for row in RUNNING},
    **{f"scatter_{mode}": partial(scatter_text, mode) for mode in SCATTER_MODES},
    **{name: partial(matrix_text, name) for name in ROUTINES},
    "fourier_parts": fourier_text,
    "check_finite": check_finite_text,
    "check_numbers": lambda dtype: check_finite_text(dtype, infinite=True),
}
