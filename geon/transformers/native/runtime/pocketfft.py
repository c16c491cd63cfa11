"""Addresses of the inner loops of NumPy's Fourier transforms, which are pocketfft.

The loops are those of the generalised ufuncs of ``numpy.fft._pocketfft_umath``. The structure of a
ufunc is part of NumPy's C interface (``PyUFuncObject`` in ``ufuncobject.h``); what is read from it
is checked before it is used.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any, NamedTuple

from ....errors import UnavailableError

MODULE = "numpy.fft._pocketfft_umath"


class _Expected(NamedTuple):
    """The signature of a ufunc, and the types of its loop for each dtype of parts."""

    signature: str
    types: dict[str, str]


EXPECTED = {
    "fft": _Expected("(n),()->(m)", {"float64": "Dd->D", "float32": "Ff->F"}),
    "ifft": _Expected("(m),()->(n)", {"float64": "Dd->D", "float32": "Ff->F"}),
    "rfft_n_even": _Expected("(n),()->(m)", {"float64": "dd->D", "float32": "ff->F"}),
    "rfft_n_odd": _Expected("(n),()->(m)", {"float64": "dd->D", "float32": "ff->F"}),
    "irfft": _Expected("(m),()->(n)", {"float64": "Dd->d", "float32": "Ff->f"}),
}


class _UFunc(ctypes.Structure):
    """The beginning of ``PyUFuncObject`` after the header of a Python object."""

    _fields_ = [
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
    ]


def pocketfft_address(name: str) -> int:
    """Return the address of a loop, such as ``fft_float64``, or of its data, ``fft_float64_data``.

    Raises ``UnavailableError`` if NumPy's ufuncs are not those that are known.
    """
    is_data = name.endswith("_data")
    row, _, dtype = name.removesuffix("_data").rpartition("_")
    expected = EXPECTED[row]
    types = expected.types[dtype]
    try:
        found: Any = getattr(importlib.import_module(MODULE), row)
    except (ImportError, AttributeError) as error:
        raise _unknown(row, str(error)) from error
    listed = list(getattr(found, "types", ()))
    if getattr(found, "signature", None) != expected.signature or types not in listed:
        raise _unknown(row, f"its signature is {found.signature} and its types are {listed}")
    held = _UFunc.from_address(id(found) + object.__basicsize__)
    sizes = (held.nin, held.nout, held.nargs, held.ntypes)
    if sizes != (found.nin, found.nout, found.nargs, found.ntypes):
        raise _unknown(row, "its structure is another one")
    number = listed.index(types)
    addresses = held.data if is_data else held.functions
    return (addresses[number] or 0) if addresses else 0


def _unknown(row: str, why: str) -> UnavailableError:
    import numpy as np

    return UnavailableError(
        f"native code calls {row} of {MODULE}, and that of NumPy {np.__version__} is not the one "
        f"it knows: {why}; install NumPy 2.1 to 2.4, or use "
        'geon.make_transformer("numpy")'
    )
