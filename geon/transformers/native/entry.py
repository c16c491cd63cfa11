"""The way from Python into a compiled module that takes one call of a C function.

``entry.c`` says what is done there; this file loads it and gives it what it needs. It is for
CPython with its lock: elsewhere there are no entries, and all calls go the long way.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .c_files import c_text
from .disk_cache import fork_safe_lock
from .objects import shared_object
from .spacious import spacious
from .toolchain import find_toolchain

Array = np.ndarray[Any, Any]

_lock = fork_safe_lock()


@dataclass(frozen=True, slots=True)
class Gateway:
    """The functions of ``entry.c``, as callables; each is described there."""

    bind: Callable[..., Any]
    make_entry: Callable[[], tuple[Callable[..., Any], ...]]
    describe: Callable[[Array], tuple[Any, ...]]


def gateway() -> Gateway | None:
    """The functions of ``entry.c``, compiled and loaded by the first call; None where they cannot
    be used: in an interpreter other than CPython, or one without its lock."""
    with _lock:
        return _gateway()


@functools.cache
def _gateway() -> Gateway | None:
    # An object begins with a count and its type. A build for free threads, or one that traces
    # references, has more there.
    pointer = ctypes.sizeof(ctypes.c_void_p)
    if sys.implementation.name != "cpython" or object.__basicsize__ != 2 * pointer:
        return None
    toolchain = find_toolchain()
    if toolchain is None:
        return None
    text = c_text("entry.c")
    # The interpreter has the functions that are only declared there.
    extra = ["-O1", *(["-Wl,-undefined,dynamic_lookup"] if sys.platform == "darwin" else [])]
    library = ctypes.PyDLL(str(shared_object(toolchain, [text], extra, name="geon-entry")))
    start = library.geon_entry_start
    start.restype, start.argtypes = ctypes.py_object, (ctypes.py_object,)
    kept = (np.ndarray, float, int, NotImplemented, None, np.empty, spacious, MemoryError)
    made = Gateway(*start((*kept, "gate", "epoch", "_writer", "_readers")))
    return made if _reads_arrays(made) else None


def _reads_arrays(made: Gateway) -> bool:
    """Whether arrays of this NumPy are as ``entry.c`` declares them."""
    whole = np.zeros((2, 3, 5), np.int16)
    frozen = np.zeros((), np.float64)
    frozen.flags.writeable = False
    for array in (whole, whole.T, whole[1:, ::2], frozen):
        seen = (array.__array_interface__["data"][0], array.flags.num, array.dtype, *array.shape)
        if made.describe(array) != seen:
            return False
    return True


class Entry:
    """A way into a computation for arguments that are as those of a call before.

    ``enter(*values)`` gives the tuple of results, ``enter_into(arrays, *values)`` puts them into
    these arrays, those that are None excepted; both give NotImplemented for values that are no
    arrays that can be read where they lie, or that have other shapes than those that were
    remembered, while another call is inside, and where a kernel finds the data wrong. They raise
    ``MemoryError``. ``enter_at_rest(state, *values)`` is for computations with variables, whose
    gate it passes by: it takes what is short, while nobody is inside the gate. ``fits(*values)``
    says whether these values would be taken.

    What is remembered belongs to one workspace: ``claim()`` it (None: a call is inside) before it
    is used otherwise, and ``release()`` it afterwards.
    """

    def __init__(self, made: Gateway, dtypes: Sequence[Any]) -> None:
        self.bind = made.bind
        self.dtypes = [np.dtype(dtype) for dtype in dtypes]
        functions = made.make_entry()
        self.enter, self.enter_into, self.enter_at_rest, self.fits = functions[:4]
        self.claim, self.release, self.forget, self._remember, self._taken = functions[4:]

    @property
    def taken(self) -> int:
        """How many calls went this way."""
        return int(self._taken())

    def remember(self, bound: Any, shapes: Sequence[tuple[int, ...]], epoch: int) -> None:
        """Take calls with inputs of these shapes, by the tables of ``bound``; claim it before.

        ``epoch`` is that of the variables in these tables.
        """
        if bound.capsule is None:
            bound.capsule = self.bind(*bound.tables(self.inputs(shapes)))
        self._remember(bound.capsule, epoch)

    def inputs(self, shapes: Sequence[tuple[int, ...]]) -> tuple[tuple[Any, ...], ...]:
        """The inputs as ``entry.c`` takes them."""
        both = zip(self.dtypes, shapes, strict=True)
        return tuple(row(dtype, shape, number_kind(dtype, shape)) for dtype, shape in both)


def row(dtype: np.dtype[Any], shape: tuple[int, ...], number: int = 0) -> tuple[Any, ...]:
    """An input or a result as ``entry.c`` takes it."""
    return dtype, shape, dtype.itemsize, number


def number_kind(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    """The letter of a scalar's dtype for which a Python number does as well; 0 for others."""
    simple = dtype.kind in "iu" or dtype.kind == "f" and dtype.itemsize in (4, 8)
    return ord(dtype.kind) if simple and not shape else 0
