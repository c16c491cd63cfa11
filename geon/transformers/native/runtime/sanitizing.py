"""Address sanitizer support for ``NativeTransformer(sanitize=True)``: arenas with red zones."""

from __future__ import annotations

import ctypes
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....errors import UnavailableError
from ...runtime.arena import place
from ...runtime.memory import CACHE_LINE_BYTES, HOST, has_sanitizer
from ..toolchain.compilers import Toolchain, sanitizer_environment
from .bound_program import BoundProgram, LinkedFunctions, NativeProgram

# Bytes between two buffers; the sanitizer marks memory in units of 8 bytes.
RED_ZONE_BYTES = CACHE_LINE_BYTES


def require_sanitizer(toolchain: Toolchain) -> None:
    """Raise ``UnavailableError`` with the command to run if the process has no sanitizer.

    Its runtime must be loaded at the start of the process.
    """
    if has_sanitizer():
        return
    values = sanitizer_environment(toolchain)
    variables = " ".join(f"{name}={shlex.quote(value)}" for name, value in values.items())
    raise UnavailableError(
        "sanitize=True needs a process that was started with the address sanitizer; run\n"
        f"  {variables} {shlex.join(sys.orig_argv)}"
    )


def with_red_zones(
    program: NativeProgram, functions: LinkedFunctions, threads: int
) -> LinkedFunctions:
    """Return the functions of a program with buffers that are separated by red zones.

    The sanitizer reports a kernel that accesses memory outside of its buffers.
    """

    def bind(
        arena: Any, offsets: Any, variables: Any, constants: Any, lengths: Mapping[str, int]
    ) -> BoundProgram:
        sizes = [buffer.bytes(lengths, threads) for buffer in program.record.buffers]
        apart = RedZones(sizes, program.record.alignment)
        return functions.bind(apart.arena, apart.offsets, variables, constants, lengths)

    return functions._replace(bind=bind)


class RedZones:
    """An arena for buffers of these sizes in bytes, each surrounded by a red zone."""

    def __init__(self, sizes: Sequence[int], alignment: int) -> None:
        apart = [size + RED_ZONE_BYTES for size in sizes]
        offsets, total = place(apart, [(0, 0)] * len(sizes), alignment)
        first = -(-RED_ZONE_BYTES // alignment) * alignment
        self.offsets = [first + offset for offset in offsets]
        total += first
        # At least 4096 bytes: NumPy caches smaller blocks and would reuse them with their red
        # zones, while the sanitizer's allocator makes freed memory usable again.
        self.arena = HOST.allocate((max(total, 4096),), np.uint8, alignment)
        start = self.arena.ctypes.data
        _mark("poison", start, total)
        for size, offset in zip(sizes, self.offsets, strict=True):
            _mark("unpoison", start + offset, size)


def _mark(how: str, start: int, size: int) -> None:
    """Make memory inaccessible (``how`` is "poison") or accessible ("unpoison")."""
    function = getattr(ctypes.CDLL(None), f"__asan_{how}_memory_region")
    function(ctypes.c_void_p(start), ctypes.c_size_t(size))
