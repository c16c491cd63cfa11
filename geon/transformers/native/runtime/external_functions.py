"""Addresses of functions that kernels call and that neither geon nor the C library defines.

A kernel names such a function by a key, ``provider.name``, such as ``lapack.dpotrf``. To add a
provider, add a function from a name to an address to ``PROVIDERS``. It imports its package when it
is called, and raises ``UnavailableError`` with the install command if that is missing.

The inner loops of NumPy's Fourier transforms, which are pocketfft, are those of the generalised
ufuncs of ``numpy.fft._pocketfft_umath``. The structure of a ufunc is part of NumPy's C interface
(``PyUFuncObject`` in ``ufuncobject.h``); what is read from it is checked before it is used.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ....errors import UnavailableError

MODULE = "numpy.fft._pocketfft_umath"


class _LoopSignature(NamedTuple):
    """The signature of a ufunc, and the types of its loop for each dtype of parts."""

    signature: str
    types: dict[str, str]


EXPECTED = {
    "fft": _LoopSignature("(n),()->(m)", {"float64": "Dd->D", "float32": "Ff->F"}),
    "ifft": _LoopSignature("(m),()->(n)", {"float64": "Dd->D", "float32": "Ff->F"}),
    "rfft_n_even": _LoopSignature("(n),()->(m)", {"float64": "dd->D", "float32": "ff->F"}),
    "rfft_n_odd": _LoopSignature("(n),()->(m)", {"float64": "dd->D", "float32": "ff->F"}),
    "irfft": _LoopSignature("(m),()->(n)", {"float64": "Dd->d", "float32": "Ff->f"}),
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


def capsule_address(capsule: Any) -> int:
    """Return the address that a capsule holds, whatever its name."""
    api = ctypes.pythonapi
    name_of, pointer_of = api.PyCapsule_GetName, api.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    found: int = pointer_of(capsule, name_of(capsule))
    return found


def _of_scipy(library: str) -> Callable[[str], int]:
    """Return the function from a routine of SciPy's BLAS or LAPACK to its address."""

    def address(name: str) -> int:
        try:
            found = importlib.import_module(f"scipy.linalg.cython_{library}")
        except ImportError as error:
            raise UnavailableError(
                f"native code calls {library.upper()}'s {name}, which it takes from SciPy, and "
                f"SciPy cannot be imported ({error}): install it with `pip install scipy`"
            ) from error
        return capsule_address(found.__pyx_capi__[name])

    return address


PROVIDERS: dict[str, Callable[[str], int]] = {
    "blas": _of_scipy("blas"),
    "lapack": _of_scipy("lapack"),
    "pocketfft": pocketfft_address,
}

_known: dict[str, int] = {}


def external_address(key: str) -> int:
    """Return the address of the function with this key; it is valid while the process runs."""
    if key not in _known:
        provider, _, name = key.partition(".")
        _known[key] = PROVIDERS[provider](name)
    return _known[key]
