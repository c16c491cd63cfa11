"""Addresses of functions that kernels call and that neither geon nor the C library defines.

A kernel names such a function by a key, ``provider.name``, such as ``lapack.dpotrf``. To add a
provider, add a function from a name to an address to ``PROVIDERS``. It imports its package when it
is called, and raises ``UnavailableError`` with the install command if that is missing.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from typing import Any

from ....errors import UnavailableError
from .pocketfft import pocketfft_address


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
