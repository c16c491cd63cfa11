"""The way from Python into captured graphs that takes one call of a C function.

``steady.c`` says what is done there; it is an extension that is built when geon is installed, where
there are a C compiler and Python's headers. Without it all calls go the long way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...loading.c_extensions import built
from ..launches.device import Array

LIBRARY = "libcuda.so.1"
# Functions of the driver, in the order in which the extension wants their addresses.
FUNCTIONS = ("cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuGraphLaunch", "cuEventRecord",
             "cuEventQuery", "cuEventCreate")  # fmt: skip

Row = tuple[Sequence[int], Any, Array | None]  # shape, dtype, and array of pinned memory


def extension() -> Any | None:
    """The extension; None where there is none: ``extensions.built`` says when."""
    return built("geon.transformers.pycuda._steady")


def addresses() -> tuple[int, ...] | None:
    """Where the functions of the driver begin; None where it is not here, or lacks one."""
    try:
        library = ctypes.CDLL(LIBRARY)
        found = [ctypes.cast(library[name], ctypes.c_void_p).value for name in FUNCTIONS]
    except (AttributeError, OSError):
        return None
    return tuple([each for each in found if each is not None])


def driver(context: int, stream: int) -> Any | None:
    """The driver as the extension has it, for work in a context on a stream; None without one."""
    made, found = extension(), addresses()
    if made is None or found is None or len(found) < len(FUNCTIONS):
        return None
    return made.Driver(found, context, stream)


def seen(row: Row) -> tuple[Any, ...]:
    """An input or a result as the extension has it."""
    shape, dtype, pinned = row
    plain = np.dtype(np.dtype(dtype).type)  # the one that arrays have
    return plain, tuple(shape), 0 if pinned is None else place(pinned)


def place(array: Array) -> int:
    """Where the elements of an array lie."""
    return int(array.ctypes.data)


def steady(
    driver: Any,
    inputs: Sequence[Row],
    results: Sequence[Row],
    report: Array | None,
    graphs: Sequence[int],
    held: Any,
) -> Any:
    """A captured call as the extension has it: ``steady.c`` says what can be done with it."""
    made = extension()
    assert made is not None, "there is a driver"
    word = 0 if report is None else place(report)
    rows = [tuple([seen(each) for each in values]) for values in (inputs, results)]
    return made.Steady(driver, *rows, word, tuple(graphs), held)
