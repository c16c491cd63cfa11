"""Loaded C modules, bound to their memory, as functions that a call runs."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ....errors import GeonError
from ....op_graph.axes.lengths import evaluate
from ...runtime.memory import CACHE_LINE_BYTES
from ...runtime.rwlock import raises_at_once
from ...sizes.limits import MIN_TASK_WORK
from ...sizes.spaces import beyond_counting, walks
from ..machine.caches import past_bytes, reread_bytes
from ..machine.threads import load_pool
from .fast_call import FastEntry, extension
from .result_pool import maker, new_result, nothing, zeros

if TYPE_CHECKING:
    from ..emit.record import Record

Array = np.ndarray[Any, Any]
# Iterations of all kernels from which on a call releases the interpreter lock. They take about two
# hundred times as long as releasing and acquiring the lock.
MIN_GIL_RELEASE_ELEMENTS = MIN_TASK_WORK
SHOW = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)


class LinkedFunctions(NamedTuple):
    """The functions that ``Transformer.link`` takes, and those of the fast path; see ``Call``."""

    bind: Callable[..., BoundProgram]
    run: Callable[..., tuple[Array, ...]]
    sizes: Callable[..., tuple[list[int], list[tuple[int, int]], int]]
    make_entry: Callable[[Sequence[Any]], FastEntry | None]
    run_into: Callable[..., tuple[Array, ...]]


_prepared = False


def prepare() -> None:
    """Start to load, and if necessary compile, the thread pool in a background thread.

    Later processes find it in the cache. An error is ignored here; it occurs again, and is raised,
    where the pool is needed.
    """
    global _prepared
    if not _prepared:
        _prepared = True
        threading.Thread(target=_prepare, name="geon prepares native code", daemon=True).start()


def _prepare() -> None:
    with contextlib.suppress(GeonError):
        load_pool()


class NativeProgram:
    """A loaded module: its function ``run`` and the sizes of its buffers."""

    def __init__(self, record: Record, path: Path) -> None:
        self.record = record
        self.library = ctypes.CDLL(str(path))
        self.pool = load_pool()
        self.link(past_bytes(), reread_bytes())
        self.run = self.library[f"geon_run{record.suffix}"]
        self.run.restype = ctypes.c_int64
        self.run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
                             ctypes.c_void_p)  # fmt: skip
        self.run_address = ctypes.cast(self.run, ctypes.c_void_p).value
        self.copies: WeakValueDictionary[Any, PackedCopyTable] = WeakValueDictionary()

    def link(self, past: int, reread: int) -> None:
        """Pass the module the addresses of the pool and of external functions, and the bytes from
        which on it stores non-temporally: results, and values that it reads again.
        """
        pool, link = self.pool, self.library.geon_link
        link.argtypes = (*[ctypes.c_void_p] * 5, ctypes.c_int64, ctypes.c_int64)
        link.restype = None
        addresses = pool.run_address, pool.run_short_address, pool.seat_address
        link(*addresses, pool.interrupt_address, pool.watched_address, past, reread)
        if self.record.external:
            from .external_functions import external_address  # few programs need it

            found = [external_address(key) for key in self.record.external]
            link = self.library[f"geon_link_external{self.record.suffix}"]
            link((ctypes.c_void_p * len(found))(*found))

    def functions(self, threads: int, version: Array | None = None) -> LinkedFunctions:
        """Return the functions that ``Transformer.link`` takes, for calls on ``threads`` threads.

        ``version`` is the version counter of the transformer's variables.
        """

        def bind(*args: Any) -> BoundProgram:
            return BoundProgram(self, threads, version, *args)

        def sizes(lengths: Mapping[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
            return self.sizes(lengths, threads)

        return LinkedFunctions(
            bind, BoundProgram.run, sizes, self.make_entry, BoundProgram.run_into
        )

    def keep(
        self, arena: Array, version: Array | None, lengths: Mapping[str, int]
    ) -> PackedCopyTable:
        """Return the cached packed operands for calls in this arena; calls with equal sizes share
        them.
        """
        if version is None:
            version = np.zeros(1, np.int64)
        sizes = tuple(copy.bytes(lengths) for copy in self.record.kept)
        key = (id(arena), id(version), sizes)
        found = self.copies.get(key)
        if found is None:
            constant = [copy.constant for copy in self.record.kept]
            found = self.copies[key] = PackedCopyTable(arena, version, sizes, constant)
        return found

    def make_entry(self, dtypes: Sequence[Any]) -> FastEntry | None:
        """Return the fast call path for inputs of these dtypes; None without the extension.

        A program that prints calls Python and so has no fast path.
        """
        made = None if self.record.shown else extension()
        return None if made is None else FastEntry(made, dtypes)

    def sizes(
        self, lengths: Mapping[str, int], threads: int
    ) -> tuple[list[int], list[tuple[int, int]], int]:
        """Return the bytes and live ranges of arena buffers, and the bytes of results.

        Iteration counts that do not fit into 64 bits are added to the bytes, so that the call is
        refused.
        """
        record = self.record
        sizes = [buffer.bytes(lengths, threads) for buffer in record.buffers]
        beside = sum(evaluate(size, lengths) for size in record.beside)
        beside += beyond_counting([space for space, _ in record.work], lengths)
        return sizes, list(record.lifetimes), beside


class BoundProgram:
    """A program with its tables of pointers and lengths, for one call at a time."""

    def __init__(
        self,
        program: NativeProgram,
        threads: int,
        version: Array | None,
        arena: Array,
        offsets: Sequence[int],
        variables: Sequence[Array],
        constants: Sequence[Array],
        lengths: Mapping[str, int],
    ) -> None:
        self.program, self.threads, self.lengths = program, threads, lengths
        self.held = (arena, *variables, *constants)
        self.entered: Any = None  # ``Tables`` of the extension
        record = program.record
        self.shapes = [
            (tuple([evaluate(n, lengths) for n in dims]), dtype) for dims, dtype in record.results
        ]
        base = address(arena)
        sizes = [buffer.bytes(lengths, threads) for buffer in record.buffers]
        tail = [address(v) for v in variables] + [address(c) for c in constants]
        self.nothing = nothing(lengths)
        tail += [
            base + offset if size else self.nothing
            for offset, size in zip(offsets, sizes, strict=True)
        ]
        if record.keeps:
            self.kept = program.keep(arena, version, lengths)
            tail.append(address(self.kept.table))
        total = record.pointers
        self.first = total - len(tail)
        self.pointers = (ctypes.c_void_p * max(total, 1))(*([None] * self.first), *tail)
        self.sizes = (ctypes.c_int64 * max(len(record.lengths), 1))(
            *(lengths[name] for name in record.lengths)
        )
        self.report = (ctypes.c_int64 * 4)()
        self.raised: BaseException | None = None
        self.show = SHOW(self.shown) if record.shown else None

    def run(self, *inputs: Array) -> tuple[Array, ...]:
        """Return the results as new arrays."""
        return self.run_into((None,) * len(self.shapes), *inputs)

    def run_into(self, arrays: Sequence[Array | None], *inputs: Array) -> tuple[Array, ...]:
        """Return the results, written to ``arrays``; a new array for each None."""
        results = tuple(
            [
                new_result(shape, dtype) if array is None else array
                for array, (shape, dtype) in zip(arrays, self.shapes, strict=True)
            ]
        )
        pointers = self.pointers
        for k, array in enumerate((*inputs, *results)):
            pointers[k] = address(array)
        failed = self.call()
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised
        if failed < 0:
            raise KeyboardInterrupt
        if failed:
            raise self.failure(failed - 1)
        return results

    def call(self) -> int:
        """Run the program; return 0, 1 + the number of the kernel that failed, or -1 after an
        interrupt.

        Its loops end early if Ctrl-C would raise ``KeyboardInterrupt``.
        """
        program, pool = self.program, self.program.pool.library
        arguments = self.pointers, self.sizes, self.threads, self.report, self.show
        if not (program.record.stops and raises_at_once()):
            return int(program.run(*arguments))
        pool.geon_watch()
        try:
            return int(program.run(*arguments))
        finally:
            pool.geon_unwatch()

    def tables(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments of ``Tables`` of ``entry.c`` for this program and ``inputs``."""
        work = sum(count * walks(space, self.lengths) for space, count in self.program.record.work)
        return (
            self.program.run_address,
            inputs,
            tuple([(dtype, shape, maker(shape, dtype)) for shape, dtype in self.shapes]),
            self.pointers,
            self.sizes,
            self.threads,
            work >= MIN_GIL_RELEASE_ELEMENTS,
            tuple(self.program.record.checks),
            self.watching() if self.program.record.stops else None,
            self.nothing,
            self.held,
        )

    def watching(self) -> tuple[Any, ...]:
        """Return the test for an interruptible call, and the addresses that start and stop
        watching.
        """
        pool = self.program.pool
        return raises_at_once, pool.watch_address, pool.unwatch_address

    def shown(self, kernel: int, data: int) -> None:
        """Print a value, as ``geon.print`` promises; called by the module.

        An error is stored and reported, and the run ends.
        """
        try:
            shown = self.program.record.shown[kernel]
            shape = tuple(evaluate(n, self.lengths) for n in shown.lengths)
            count = int(np.prod(shape, dtype=np.int64)) * shown.dtype.itemsize
            raw = ctypes.string_at(data, count)
            print(f"{shown.label} = {np.frombuffer(raw, shown.dtype).reshape(shape)}")
        except BaseException as error:
            self.raised = error
            self.report[0] = 1  # ends the run here, before anything is written

    def failure(self, kernel: int) -> Exception:
        """Return the error that a kernel reported."""
        from ...reports.kernel_failures import kernel_failure  # few calls fail

        record = self.program.record
        loops = record.loops.get(kernel, ())
        *words, step = self.report
        size_of = partial(evaluate, lengths=self.lengths)
        return kernel_failure(kernel, record.checks[kernel], words, size_of, loops, step)


class PackedCopyTable:
    """The table of cached packed operands of a program, and their memory.

    A copy is packed when the version in its table row differs from its source's; the initial -1 is
    never a version. ``arena`` and ``version`` are referenced so that their ``id`` is not reused.
    """

    def __init__(
        self, arena: Array, version: Array, sizes: Sequence[int], constant: Sequence[bool]
    ) -> None:
        self.arena, self.version, self.never = arena, version, np.zeros(1, np.int64)
        lines = (-(-size // CACHE_LINE_BYTES) for size in sizes)
        *starts, total = accumulate((count * CACHE_LINE_BYTES for count in lines), initial=0)
        # NumPy asks for pages of 2 MiB: a product that reads each panel once takes up to a tenth
        # longer in small ones.
        memory = np.empty(total + CACHE_LINE_BYTES, np.uint8)
        self.memory = memory[-address(memory) % CACHE_LINE_BYTES :][:total]
        self.table = np.zeros((1 + len(sizes), 3), np.int64)
        self.table[0, 0] = address(version)
        for line, size, start, never in zip(self.table[1:], sizes, starts, constant, strict=True):
            line[:] = address(self.never if never else version), -1, 0
            if size:
                line[2] = address(self.memory) + start


def address(array: Array) -> int:
    """Return the address of an array's elements, or a readable one if it is empty."""
    if not array.size:
        return zeros()
    found: int = array.__array_interface__["data"][0]
    return found
