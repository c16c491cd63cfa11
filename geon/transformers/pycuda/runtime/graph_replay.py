"""Fast path from Python to captured graphs, by the C extension ``steady.c``.

The extension is built when geon is installed, if a C compiler and Python's headers are available.
Without it, all calls take the general path.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...loading.c_extensions import built
from ..launches.device import Array

LIBRARY = "libcuda.so.1"
# Functions of the driver, in the order in which the extension expects their addresses.
FUNCTIONS = ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuGraphLaunch", "cuEventRecord",
             "cuEventQuery", "cuEventCreate")  # fmt: skip

Row = tuple[Sequence[int], Any, Array | None]  # shape, dtype, and pinned array


def extension() -> Any | None:
    """Return the extension, or None if it was not built."""
    return built("geon.transformers.pycuda._steady")


def addresses() -> tuple[int, ...] | None:
    """Return the addresses of the driver's functions; None if it is missing or lacks one."""
    try:
        library = ctypes.CDLL(LIBRARY)
        found = [ctypes.cast(library[name], ctypes.c_void_p).value for name in FUNCTIONS]
    except (AttributeError, OSError):
        return None
    return tuple([each for each in found if each is not None])


def driver(context: int, stream: int) -> Any | None:
    """Return the extension's driver object for a context and a stream, or None."""
    made, found = extension(), addresses()
    if made is None or found is None or len(found) < len(FUNCTIONS):
        return None
    return made.Driver(found, context, stream)


def seen(row: Row) -> tuple[Any, ...]:
    """Return an input or result in the extension's format."""
    shape, dtype, pinned = row
    plain = np.dtype(np.dtype(dtype).type)  # the canonical dtype object, which arrays have
    return plain, tuple(shape), 0 if pinned is None else place(pinned)


def place(array: Array) -> int:
    """Return the address of an array's elements."""
    return int(array.ctypes.data)


def steady(
    driver: Any,
    inputs: Sequence[Row],
    results: Sequence[Row],
    report: Array | None,
    graphs: Sequence[int],
    held: Any,
) -> Any:
    """Return the extension's object of a captured call; ``steady.c`` describes it."""
    made = extension()
    assert made is not None, "there is a driver"
    word = 0 if report is None else place(report)
    rows = [tuple([seen(each) for each in values]) for values in (inputs, results)]
    return made.Steady(driver, *rows, word, tuple(graphs), held)
