"""A compiled computation as a C function, for callers from C, Cython, Numba or ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....errors import ArgumentError, FeedError
from ....lazy_dataclasses import dataclass
from ....op_graph.axes.axes import Axes, Axis
from ....op_graph.axes.length_defaults import default_lengths
from ....op_graph.axes.lengths import Length
from ....op_graph.op_graph import Op
from ...binding.open_lengths import named_lengths
from ...computation import Computation
from ...runtime.arena import place
from ..emit.module_text import FAILURE_REPORT_WORDS, RUN
from ..runtime.bound_program import BoundProgram, NativeProgram, address
from ..runtime.result_pool import new_result

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Pointer:
    """One entry of the table ``p``: a pointer to the first of contiguous elements.

    ``kind`` is ``"input"``, ``"result"``, ``"variable"``, ``"constant"``, ``"buffer"`` or
    ``"kept"``. ``name`` is the user's name of it, or None. ``dtype`` and ``axes`` are those of the
    elements, in the order of ``axes``. A constant has no axes. A buffer is memory for the function
    to work in, at a multiple of 64 bytes, and has neither. ``"kept"`` is the table of packed copies
    of variables and constants, made by ``CFunction.table``; its pointer may be NULL. ``size`` is in
    bytes, an integer or an expression over open lengths.
    """

    kind: str
    name: str | None
    dtype: Any
    axes: Axes | None
    size: int | Length


@dataclass(frozen=True, slots=True)
class Arena:
    """The memory that all buffers share.

    ``bytes`` is its size, ``offsets`` has the offset of each buffer in it. It must begin at a
    multiple of ``alignment``. It is large enough for calls on ``threads`` threads.
    """

    bytes: int
    offsets: tuple[int, ...]
    threads: int
    alignment: int


class CFunction:
    """The C function of a computation: ``address``, ``signature`` and the arguments to call it
    with.

    Its arguments are the table ``p`` of pointers that ``pointers`` describes, the open lengths
    ``n`` in the order of ``lengths``, the number of threads that it may use (at most that of its
    arena), four integers in which it reports a failure, and, for a computation that prints, a
    function that receives each value (else NULL). It returns 0, or 1 + the number of the kernel
    that found an index out of range or a value that is not finite; variables are then unchanged.
    Pointers to arrays without elements must be readable too.

    Different threads may call it at the same time, each with its own arena, results and report, if
    it writes no variable. It can be called while this object exists. It reads ``constants`` and the
    memory of ``variables``, which are valid while this object and the transformer exist, until a
    variable is set to an array of other lengths; then make a new table.
    """

    def __init__(self, computation: Computation, version: Array) -> None:
        self._computation, self._version = computation, version
        stages = computation.stages()
        program: NativeProgram = stages.compiled
        self._program, self._linking = program, stages.linking
        self.signature = " ".join(RUN.format("").split())
        self.lengths: tuple[str, ...] = program.record.lengths
        self.constants: tuple[Array, ...] = tuple(value.array for value in self._linking.constants)
        self.pointers: tuple[Pointer, ...] = tuple(self._pointers())

    @property
    def address(self) -> int:
        """The address of the function."""
        found = ctypes.cast(self.ctypes, ctypes.c_void_p).value
        assert found is not None
        return found

    @property
    def ctypes(self) -> Any:
        """The function as a ctypes function, which releases the interpreter's lock."""
        return self._program.run

    def _pointers(self) -> Iterator[Pointer]:
        linking, computation = self._linking, self._computation
        for leaf in linking.inputs:
            yield _pointer("input", leaf)
        wanted = (*computation.results, *computation.keep)
        for op, made in zip(wanted, computation.stages().pure.outputs, strict=True):
            if made is not None:
                yield replace(_pointer("result", made), name=op.name)
        for leaf in linking.variables:
            yield _pointer("variable", leaf)
        for array in self.constants:
            yield Pointer("constant", None, array.dtype, None, array.nbytes)
        for buffer in self._program.record.buffers:
            size = buffer.most(computation.transformer.threads)
            yield Pointer("buffer", None, None, None, size)
        if self._program.record.keeps:
            yield Pointer("kept", None, None, None, 0)

    def arena(self, lengths: Mapping[Axis, int] | None = None, threads: int | None = None) -> Arena:
        """Return the arena for these lengths of open axes and for calls on at most ``threads``
        threads.

        Lengths that are not given have their defaults; ``threads`` is that of the transformer by
        default. Raises ``ArgumentError`` if a length is missing.
        """
        threads = threads or self._computation.transformer.threads
        known = {
            **default_lengths(),
            **self._computation.request.lengths,
            **named_lengths(lengths, self.lengths, "lengths"),
        }
        missing = [name for name in self.lengths if name not in known]
        if missing:
            raise ArgumentError(
                f"nothing gives the open lengths {', '.join(missing)}: give lengths={{...}}"
            )
        sizes, lifetimes, _ = self._program.sizes(known, threads)
        offsets, total = place(sizes, lifetimes, self._program.record.alignment)
        return Arena(total, tuple(offsets), threads, self._program.record.alignment)

    def table(
        self, *inputs: Any, out: Sequence[Array] | None = None, **named: Any
    ) -> ArgumentTable:
        """Return the arguments for these values of the placeholders, ready for a call.

        Results are written to ``out``, contiguous arrays of their shapes and dtypes, or to new
        arrays. The variables are those of the transformer: a function that writes them must not run
        at the same time as a computation of that transformer. Raises the same errors as a call of
        the computation.
        """
        computation, program, version = self._computation, self._program, self._version
        threads = computation.transformer.threads

        def bind(*bound: Any) -> ArgumentTable:
            return ArgumentTable(BoundProgram(program, threads, version, *bound))

        def run(table: ArgumentTable, *arrays: Array) -> ArgumentTable:
            table.feed(arrays)
            return table

        functions = (bind, run, program.functions(threads).sizes)
        values = computation.arranged(inputs, named)
        call = computation.transformer.link(functions, computation.stages(), writes=False)
        table: ArgumentTable = call(*values)
        if out is None:
            table.renew()
        else:
            table.put(out)
        return table

    def __repr__(self) -> str:
        return f"<{self.signature} at {self.address:#x}>"


class ArgumentTable:
    """The arguments of a C function.

    ``pointers``, ``lengths`` and ``report`` are ctypes arrays; ``show`` is the function that
    prints, or None. ``inputs`` and ``results`` are the arrays that are read and written. These, the
    arena and the variables are kept alive by the table. The report has room for ``times`` values of
    a timed module.
    """

    def __init__(self, bound: BoundProgram, times: int = 0) -> None:
        self.bound, self.shapes = bound, tuple(bound.shapes)
        self.pointers, self.lengths, self.show = bound.pointers, bound.sizes, bound.show
        self.report = bound.report = (ctypes.c_int64 * (FAILURE_REPORT_WORDS + times))()
        self.before = bound.first - len(self.shapes)  # number of inputs, which precede results
        self.inputs: tuple[Array, ...] = ()
        self.results: tuple[Array, ...] = ()

    def feed(self, inputs: Sequence[Array]) -> None:
        """Read these arrays, which must have the placeholders' shapes, dtypes and layouts."""
        self.inputs = tuple(inputs)
        for k, array in enumerate(inputs):
            self.pointers[k] = address(array)

    def renew(self) -> None:
        """Write results to new arrays."""
        self._place([new_result(shape, dtype) for shape, dtype in self.shapes])

    def put(self, out: Sequence[Array]) -> None:
        """Write results to these arrays; raise ``FeedError`` if one does not fit."""
        count = len(self.shapes)
        if len(out) != count:
            raise ArgumentError(f"out has {len(out)} arrays and there are {count} results")
        for array, (shape, dtype) in zip(out, self.shapes, strict=True):
            fits = isinstance(array, np.ndarray) and array.shape == shape and array.dtype == dtype
            if not fits or not array.flags.carray:
                raise FeedError(
                    f"out was given {_described(array)}; a result needs a writable, contiguous "
                    f"array of shape {shape} and dtype {dtype}"
                )
        self._place(out)

    def _place(self, results: Sequence[Array]) -> None:
        self.results = tuple(results)
        for k, array in enumerate(results, self.before):
            self.pointers[k] = address(array)

    def run(self, threads: int = 1) -> int:
        """Call the function; return 0, or 1 + the number of the kernel that failed.

        It uses at most the transformer's threads, for which the arena is large enough.
        """
        run, threads = self.bound.program.run, min(threads, self.bound.threads)
        return int(run(self.pointers, self.lengths, threads, self.report, self.show))


def _pointer(kind: str, op: Op) -> Pointer:
    return Pointer(kind, op.name, op.dtype, op.axes, op.axes.size * op.dtype.itemsize)


def _described(array: Any) -> str:
    if not isinstance(array, np.ndarray):
        return type(array).__name__
    return f"an array of shape {array.shape} and dtype {array.dtype}"
