"""GPU section of ``python -m geon doctor``: required packages, compiler, driver and devices."""

from __future__ import annotations

import ctypes
import importlib.metadata
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

from ..products.nvmath_bindings import package
from ..runtime.gpu import DRIVER, PACKAGES
from ..runtime.nvrtc import CURE, compiler
from ..runtime.primary_context import MIN_ARCHITECTURE

NAME_BYTES = 256  # bytes for a device's name
# The driver's numbers of attributes with a device's compute capability.
DeviceAttribute = IntEnum("DeviceAttribute", {"MAJOR": 75, "MINOR": 76})
# Display name and pip name of each package, and how to install it.
NEEDED = (
    ("PyCUDA", "pycuda", PACKAGES),
    ("cuda-bindings", "cuda-bindings", PACKAGES),
    (
        "nvmath-python",
        "nvmath-python",
        f'{package("cuBLASLt")}, for products="cublaslt", '
        'matrices="cusolver" and transforms="cufft"',
    ),
    ("cuDNN's frontend", "nvidia-cudnn-frontend", f'{package("cuDNN")}, for convolutions="cudnn"'),
)


class Finding(NamedTuple):
    """A checked item: True if it is there, its name, and its version or how to get it."""

    there: bool
    name: str
    status: str


def findings() -> Iterator[Finding]:
    """Yield findings about packages, compiler, driver and devices."""
    for name, distribution, cure in NEEDED:
        try:
            yield Finding(True, name, importlib.metadata.version(distribution))
        except importlib.metadata.PackageNotFoundError:
            yield Finding(False, name, f"not installed: {cure}")
    found = compiler()
    yield Finding(bool(found), "CUDA compiler", found or f"neither NVRTC nor nvcc: {CURE}")
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        yield Finding(False, "NVIDIA driver", f"no libcuda.so.1: {DRIVER}")
        return
    yield from of_driver(library)


def of_driver(library: Any) -> Iterator[Finding]:
    """Yield the driver's version and its devices."""
    status = library.cuInit(0)
    if status != 0:
        yield Finding(False, "NVIDIA driver", f"does not start (error {status}): {DRIVER}")
        return
    version, count = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(version))
    shown = f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    yield Finding(True, "NVIDIA driver", shown)
    library.cuDeviceGetCount(ctypes.byref(count))
    if count.value == 0:
        yield Finding(False, "devices", f"none: {DRIVER}")
    for number in range(count.value):
        yield of_device(library, number)


def of_device(library: Any, number: int) -> Finding:
    """Return a device's name, memory and compute capability."""
    handle, size = ctypes.c_int(0), ctypes.c_size_t(0)
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    name = ctypes.create_string_buffer(NAME_BYTES)
    library.cuDeviceGet(ctypes.byref(handle), number)
    library.cuDeviceGetName(name, NAME_BYTES, handle)
    library.cuDeviceTotalMem_v2(ctypes.byref(size), handle)
    for attribute, into in ((DeviceAttribute.MAJOR, major), (DeviceAttribute.MINOR, minor)):
        library.cuDeviceGetAttribute(ctypes.byref(into), attribute, handle)
    shown = (
        f"{name.value.decode()}, {size.value / 2**30:.1f} GiB, compute capability "
        f"{major.value}.{minor.value}"
    )
    if (major.value, minor.value) < MIN_ARCHITECTURE:
        return Finding(
            False,
            f"device {number}",
            f"{shown}: needs {MIN_ARCHITECTURE[0]}.{MIN_ARCHITECTURE[1]}, use another device",
        )
    return Finding(True, f"device {number}", shown)
