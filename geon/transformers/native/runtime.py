"""Compiled C modules as the functions that a call binds and runs."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import GeonError, IndexRangeError, NonFiniteError
from ...op_graph.lengths import Length, evaluate
from ..memory import Plan
from ..schedule import bytes_of
from .emit import Module
from .threads import load_pool

Array = np.ndarray[Any, Any]
_EMPTY = np.zeros(64, np.uint8)  # what pointers to arrays without elements point to
SHOW = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)


@dataclass(frozen=True, slots=True)
class Shown:
    """A value that a kernel prints: its label, and how it lies in memory."""

    label: str
    lengths: tuple[int | Length, ...]
    dtype: Any


class NativeProgram:
    """A loaded module: how large its buffers are, and ``run``."""

    def __init__(self, plan: Plan, module: Module, path: Path, source: str) -> None:
        self.source, self.module = source, module
        self.library = ctypes.CDLL(str(path))
        pool = load_pool()
        self.library.geon_link.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        self.library.geon_link.restype = None
        self.library.geon_link(pool.run_address, pool.scratch_address)
        self.run = self.library.geon_run
        self.run.restype = ctypes.c_int64
        self.run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
                             ctypes.c_void_p)  # fmt: skip
        outputs = plan.schedule.program.outputs
        self.buffers = tuple(buffer.size for buffer in plan.buffers)
        self.lifetimes = plan.lifetimes
        self.beside = tuple(bytes_of(op) for op in outputs)
        self.results = tuple((op.axes.lengths, op.dtype) for op in outputs)
        self.shown = {
            number: Shown(kernel.op.attrs[0], kernel.op.axes.lengths, kernel.op.dtype)
            for number, kernel in enumerate(plan.schedule.kernels)
            if kernel.op.primitive.name == "print"
        }
        self.checks = {
            number: kernel.op.attrs[0] if kernel.op.primitive.name == "checked" else None
            for number, kernel in enumerate(plan.schedule.kernels)
            if kernel.raises
        }

    def functions(self, threads: Callable[[], int]) -> tuple[Any, Any, Any]:
        """The bind, run and sizes that ``Transformer.link`` takes."""

        def bind(*args: Any) -> Bound:
            return Bound(self, threads, *args)

        return bind, Bound.run, self.sizes

    def sizes(self, lengths: Mapping[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
        """Bytes and lifetimes of arena buffers, and the bytes of results."""
        sizes = [evaluate(size, lengths) for size in self.buffers]
        return sizes, self.lifetimes, sum(evaluate(size, lengths) for size in self.beside)


class Bound:
    """A program with its tables of pointers and lengths, for one call at a time."""

    def __init__(
        self,
        program: NativeProgram,
        threads: Callable[[], int],
        arena: Array,
        offsets: Sequence[int],
        variables: Sequence[Array],
        constants: Sequence[Array],
        lengths: Mapping[str, int],
    ) -> None:
        self.program, self.threads, self.lengths = program, threads, lengths
        self.held = (arena, *variables, *constants)
        module = program.module
        self.shapes = [
            (tuple(evaluate(n, lengths) for n in dims), dtype) for dims, dtype in program.results
        ]
        base = address(arena)
        sizes = [evaluate(size, lengths) for size in program.buffers]
        tail = [address(v) for v in variables] + [address(c) for c in constants]
        tail += [
            base + offset if size else address(_EMPTY)
            for offset, size in zip(offsets, sizes, strict=True)
        ]
        total = len(module.pointers)
        self.first = total - len(tail)
        self.pointers = (ctypes.c_void_p * max(total, 1))(*([None] * self.first), *tail)
        self.sizes = (ctypes.c_int64 * max(len(module.lengths), 1))(
            *(lengths.get(name, 0) for name in module.lengths)
        )
        self.report = (ctypes.c_int64 * 4)()
        self.raised: BaseException | None = None
        self.show = SHOW(self.shown) if program.shown else None

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        """The results, as new arrays."""
        results = tuple([np.empty(shape, dtype) for shape, dtype in self.shapes])
        pointers = self.pointers
        for k, array in enumerate((*inputs, *results)):
            pointers[k] = address(array)
        failed = self.program.run(pointers, self.sizes, self.threads(), self.report, self.show)
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised
        if failed:
            raise self.failure(failed - 1)
        return results

    def shown(self, kernel: int, data: int) -> None:
        """Print a value, as ``geon.print`` promises; called by the module."""
        try:
            shown = self.program.shown[kernel]
            shape = tuple(evaluate(n, self.lengths) for n in shown.lengths)
            count = int(np.prod(shape, dtype=np.int64)) * shown.dtype.itemsize
            raw = ctypes.string_at(data, count)
            print(f"{shown.label} = {np.frombuffer(raw, shown.dtype).reshape(shape)}")
        except BaseException as error:
            self.raised = self.raised or error

    def failure(self, kernel: int) -> Exception:
        """The error that a kernel reported."""
        if kernel not in self.program.checks:
            return MemoryError("there is no memory for the work of a kernel")
        length = self.program.checks[kernel]
        error: GeonError
        if length is None:
            count, total, first = self.report[0], self.report[1], self.report[2]
            value = np.int64(first).view(np.float64)
            error = NonFiniteError(
                f"{count} of {total} values are not finite, the first is {value}; variables "
                "are as they were, and trace of the computation shows the values of all ops"
            )
        else:
            low, high, size = self.report[0], self.report[1], evaluate(length, self.lengths)
            found = f"{low} to {high}" if low < high else str(low)
            error = IndexRangeError(
                f"{found} where the axis has length {size}; positions must lie in {-size} to "
                f"{size - 1}: check the data, or geon.clip them"
            )
        error.kernel = kernel  # type: ignore[attr-defined]  # read where the graph is known
        return error


def address(array: Array) -> int:
    """Where the elements of an array lie; somewhere readable where it has none."""
    if not array.size:
        array = _EMPTY
    found: int = array.__array_interface__["data"][0]
    return found
