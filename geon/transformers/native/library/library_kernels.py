"""C kernels that are not loop nests: sorting, prefixes, scatter, transforms, copies and checks.

Arrays are contiguous with shape (outer, n, inner); a kernel works along the middle axis. Each
function has a translation unit of its own that is compiled once for all programs. Checks are the
exception: they are shorter than the fixed cost of a unit. Results do not depend on the number of
threads: one task computes each element. Fourier transforms are those of NumPy's own inner loops,
with the C in ``c/fourier.c``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

from ....op_graph.op_graph import Op
from ....op_graph.rows.sort_and_cumulative import RUNNING
from ....op_graph.values.attribute_types import SCATTER_MODES
from ....op_graph.values.dtypes import name_of
from ...printing.scalars import completeness
from ...printing.scalars.c_expressions import cast, cast_calls
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ...printing.scalars.nan_test import finite
from ...sizes.blocks import L2_BYTES
from ...sizes.limits import MIN_SIZE_RATIO
from ..names.c_files import FileFunction, file_function, instance
from ..names.external_names import external_name
from .matrices import ROUTINES, matrix_text
from .prefixes import cumulative_text
from .scattering import scatter_text
from .sorting import argsort_text, extreme_text, sort_text, top_k_text

# Lines that a task transforms: one is about as long as starting a task.
FOURIER_LINES_PER_TASK = MIN_SIZE_RATIO


class _FourierKind(NamedTuple):
    """One kind of transform: the ufunc for even and for odd lengths, and numbers per element."""

    even: str
    odd: str
    read: int
    written: int


FOURIER_KINDS = {
    "c2c": _FourierKind("fft", "fft", 2, 2),
    "inverse": _FourierKind("ifft", "ifft", 2, 2),
    "r2c": _FourierKind("rfft_n_even", "rfft_n_odd", 1, 2),
    "c2r": _FourierKind("irfft", "irfft", 2, 1),
}


def kind_of(op: Op) -> str:
    """Return the key of ``FOURIER_KINDS`` of a transform."""
    a = op.attrs
    return "inverse" if a.form == "c2c" and a.inverse else str(a.form)


def fourier_text(kind: str, dtype: str) -> FileFunction:
    """Return ``void(threads, x, out, outer, before, after, inner)`` for a kind of transform.

    Complex numbers are pairs of ``dtype``. It has no factor.
    """
    what = FOURIER_KINDS[kind]
    names = dict.fromkeys((what.even, what.odd))
    keys = [f"pocketfft.{name}_{dtype}{end}" for name in names for end in ("", "_data")]
    even, even_data, odd, odd_data = (keys + keys)[:4]
    macros: dict[str, object] = {
        "LOOP": external_name(even),
        "DATA": external_name(even_data),
        "ODD": external_name(odd),
        "ODD_DATA": external_name(odd_data),
        "READ": what.read,
        "WRITTEN": what.written,
        "REAL": "before" if kind == "r2c" else "0",
        "LINES": FOURIER_LINES_PER_TASK,
    }
    types = {"TYPE": C_TYPES[dtype]}
    name = f"geon_fourier_{kind}_{SUFFIXES[dtype]}"
    return file_function("fourier", name, types, macros, external=tuple(keys))


def fourier_function(op: Op) -> tuple[str, tuple[str, str]]:
    """Return the arguments of ``library_text`` for a transform."""
    return "fourier_parts", (kind_of(op), name_of(op.dtype))


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


def lacks(op: Op) -> list[str]:
    """Return the table entries that ``op`` needs and the native backend does not have."""
    if op.primitive.name in completeness.REGIONS:
        return []
    where = "LIBRARY of transformers/native/library/library_kernels.py"
    return completeness.lacks(op, LIBRARY, where)


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


COPIED_BYTES_PER_TASK = L2_BYTES  # bytes that one task copies: about 30 microseconds


@cache
def fill_function() -> FileFunction:
    """Return ``void(threads, out, x, size)``, a parallel copy of ``size`` bytes."""
    return file_function("move/copy", "geon_fill", {}, {"GRAIN": COPIED_BYTES_PER_TASK})
