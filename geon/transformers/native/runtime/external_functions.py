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


def lapack_address(name: str) -> int:
    """Return the address of a LAPACK routine of the library that SciPy uses."""
    try:
        found = importlib.import_module("scipy.linalg.cython_lapack")
    except ImportError as error:
        raise UnavailableError(
            f"native code calls LAPACK's {name}, which it takes from SciPy, and SciPy cannot be "
            f"imported ({error}): install it with `pip install scipy`"
        ) from error
    return capsule_address(found.__pyx_capi__[name])


PROVIDERS: dict[str, Callable[[str], int]] = {
    "lapack": lapack_address,
    "pocketfft": pocketfft_address,
}

_known: dict[str, int] = {}


def external_address(key: str) -> int:
    """Return the address of the function with this key; it is valid while the process runs."""
    if key not in _known:
        provider, _, name = key.partition(".")
        _known[key] = PROVIDERS[provider](name)
    return _known[key]
