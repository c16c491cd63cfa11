"""C library kernels for Fourier transforms, which NumPy's own inner loops compute.

The C is in ``c/fourier.c``.
"""

from __future__ import annotations

from typing import NamedTuple

from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...printing.scalars.c_types import C_TYPES, SUFFIXES
from ..names.c_files import FileFunction, file_function
from ..names.external_names import external_name

LINES_PER_TASK = 8  # lines that a task transforms: one is about as long as starting a task


class _Kind(NamedTuple):
    """One kind of transform: the ufunc for even and for odd lengths, and numbers per element."""

    even: str
    odd: str
    read: int
    written: int


KINDS = {
    "c2c": _Kind("fft", "fft", 2, 2),
    "inverse": _Kind("ifft", "ifft", 2, 2),
    "r2c": _Kind("rfft_n_even", "rfft_n_odd", 1, 2),
    "c2r": _Kind("irfft", "irfft", 2, 1),
}


def kind_of(op: Op) -> str:
    """Return the key of ``KINDS`` of a transform."""
    a = op.attrs
    return "inverse" if a.form == "c2c" and a.inverse else str(a.form)


def fourier_text(kind: str, dtype: str) -> FileFunction:
    """Return ``void(threads, x, out, outer, before, after, inner)`` for a transform of ``KINDS``.

    Complex numbers are pairs of ``dtype``. It has no factor.
    """
    what = KINDS[kind]
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
        "LINES": LINES_PER_TASK,
    }
    types = {"TYPE": C_TYPES[dtype]}
    name = f"geon_fourier_{kind}_{SUFFIXES[dtype]}"
    return file_function("fourier", name, types, macros, external=tuple(keys))


def function_of(op: Op) -> tuple[str, tuple[str, str]]:
    """Return the arguments of ``library_text`` for a transform."""
    return "fourier_parts", (kind_of(op), name_of(op.dtype))
