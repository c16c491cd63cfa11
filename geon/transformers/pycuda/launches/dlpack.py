"""DLPack exchange: export device arrays as capsules and import those of other libraries.

The layout is that of version 0 of DLPack's C structures, which every library supports.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from ....op_graph.values.dtypes import SIGNED, UNSIGNED, name_of, named_dtype

# DLPack's device types kDLCUDA and kDLExtDev; no other library imports from the latter.
DeviceType = IntEnum("DeviceType", {"CUDA": 2, "EXT_DEV": 12})
NAME, USED = b"dltensor", b"used_dltensor"
# DLPack's type code and bits, by name of the dtype.
WORDS = {
    "bool": (6, 8),
    **{name: (0, named_dtype(name).itemsize * 8) for name in SIGNED},
    **{name: (1, named_dtype(name).itemsize * 8) for name in UNSIGNED},
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float8_e4m3fn": (10, 8),
    "float8_e5m2": (12, 8),
    "float32": (2, 32),
    "float64": (2, 64),
}


class _DLDevice(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _DlpackType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _DLDevice),
        ("ndim", ctypes.c_int32),
        ("type", _DlpackType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    _fields_ = [
        ("tensor", _DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, _Destructor)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_named = ctypes.pythonapi.PyCapsule_IsValid
_named.restype, _named.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
# Variants for capsules that are being destroyed, whose reference count must not change.
_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_waits = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)

# exported tensors that others still use, by address of the managed structure
_lent: dict[int, Any] = {}


@_Deleter
def _give_back(address: int) -> None:
    """Release an exported tensor: the deleter that the consumer calls."""
    _lent.pop(address, None)


@_Destructor
def _never_taken(capsule: int) -> None:
    """Release a capsule that nobody consumed; consumed ones are left alone."""
    if _waits(capsule, NAME):
        _lent.pop(_address(capsule, NAME), None)


def export_capsule(
    owner: Any, address: int, shape: tuple[int, ...], dtype: Any, device: tuple[int, int]
) -> Any:
    """Return a capsule of contiguous device memory; it keeps ``owner`` alive while in use.

    Raise ``BufferError`` for a dtype that DLPack does not have.
    """
    ndim = len(shape)
    lengths = (ctypes.c_int64 * max(ndim, 1))(*shape)
    strides = [math.prod(shape[k + 1 :]) for k in range(ndim)]
    steps = (ctypes.c_int64 * max(ndim, 1))(*strides)
    managed = _Managed()
    managed.tensor = _DLTensor(
        address, _DLDevice(*device), ndim, _type_of(np.dtype(dtype)), lengths, steps, 0
    )
    managed.deleter = ctypes.cast(_give_back, ctypes.c_void_p)
    place = ctypes.addressof(managed)
    _lent[place] = owner, managed, lengths, steps
    return _new(place, NAME, _never_taken)


class Imported(NamedTuple):
    """A tensor from another library; ``strides`` are in elements, None for row-major order."""

    owner: Any
    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: Any
    device: tuple[int, int]


class _CapsuleOwner:
    """Keeps another library's memory alive until it is garbage-collected."""


def import_capsule(capsule: Any) -> Imported | None:
    """Return the tensor of a capsule; None if geon does not have its dtype."""
    if not _named(capsule, NAME):
        raise BufferError("the capsule of __dlpack__ is no unused one of DLPack's")
    place = _pointer(capsule, NAME)
    managed = _Managed.from_address(place)
    tensor = managed.tensor
    dtype = _dtype_of(tensor.type)
    if dtype is None:
        return None
    shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
    strides = tuple(tensor.strides[k] for k in range(tensor.ndim)) if tensor.strides else None
    address = (tensor.data or 0) + tensor.byte_offset
    device = tensor.device.kind, tensor.device.number
    _rename(capsule, USED)
    owner = _CapsuleOwner()
    if managed.deleter:
        delete: Callable[[int], None] = _Deleter(managed.deleter)
        weakref.finalize(owner, delete, place).atexit = False
    return Imported(owner, address, shape, strides, dtype, device)


def _type_of(dtype: np.dtype[Any]) -> _DlpackType:
    """Return DLPack's type of a dtype."""
    word = WORDS.get(name_of(dtype))
    if word is None:
        raise BufferError(f"DLPack has no word for {dtype}")
    return _DlpackType(*word, 1)


def _dtype_of(told: _DlpackType) -> np.dtype[Any] | None:
    """Return the dtype of DLPack's type; None if geon does not have it."""
    found = [name for name, word in WORDS.items() if word == (told.code, told.bits)]
    return named_dtype(found[0]) if found and told.lanes == 1 else None
