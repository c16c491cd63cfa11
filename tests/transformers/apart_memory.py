"""A transformer whose values lie in a memory of its own, where NumPy cannot reach them.

What the shared code stores, moves and gives back must go through ``Memory``: a handle has no
elements to look at, and an array that came out of the memory has its elements when
``synchronise`` was called, not before.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from interpreter_transformer import InterpreterTransformer, Program

from geon.transformers.runtime.dims import Room
from geon.transformers.runtime.memory import HOST

GARBAGE = 0xA5


class Handle:
    """A value: its number in the table of a memory, which forgets it with the handle."""

    __slots__ = ("__weakref__", "number", "owner")

    def __init__(self, owner: ApartMemory, number: int) -> None:
        self.owner, self.number = owner, number

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("a value of another memory was taken for an array")

    def __bool__(self) -> bool:
        raise AssertionError("a value of another memory was looked at")


class ApartMemory:
    """Bytes in a table; what is asked for is done when ``synchronise`` is called, in order."""

    on_host = False

    def __init__(self) -> None:
        self.table: dict[int, tuple[bytes, tuple[int, ...], Any]] = {}
        self.waiting: list[Callable[[], None]] = []
        self.lock = threading.RLock()
        self.made = 0

    def allocate(self, shape: tuple[int, ...], dtype: Any, alignment: int = 1) -> Handle:
        content = bytes([GARBAGE]) * (math.prod(shape) * np.dtype(dtype).itemsize)
        with self.lock:
            self.made += 1
            handle = Handle(self, self.made)
            self.table[handle.number] = content, tuple(shape), np.dtype(dtype)
            weakref.finalize(handle, self.table.pop, handle.number)
        return handle

    def copy_in(self, array: np.ndarray[Any, Any], value: Handle | None = None) -> Handle:
        assert isinstance(array, np.ndarray) and array.flags.c_contiguous
        into = self.allocate(array.shape, array.dtype) if value is None else value
        _, shape, dtype = self.table[into.number]
        assert (array.shape, array.dtype) == (shape, dtype)
        self.begin(lambda: self.write(into, array))
        return into

    def copy_out(self, value: Handle) -> np.ndarray[Any, Any]:
        content, shape, dtype = self.table[value.number]
        made = np.frombuffer(bytearray([GARBAGE]) * len(content), dtype).reshape(shape)

        def fill() -> None:
            made[...] = self.read(value)

        self.begin(fill)
        return made

    def synchronise(self) -> None:
        with self.lock:
            waiting, self.waiting = self.waiting, []
            for each in waiting:
                each()

    def shown(self, value: Any) -> None:
        return None

    def holds(self, value: Any) -> bool:
        return isinstance(value, Handle) and value.owner is self

    def room(self) -> Room:
        return HOST.room()

    # What programs of this memory may do ---------------------------------------------------------

    def begin(self, what: Callable[[], None]) -> None:
        with self.lock:
            self.waiting.append(what)

    def read(self, value: Handle) -> np.ndarray[Any, Any]:
        assert value.owner is self
        content, shape, dtype = self.table[value.number]
        return np.frombuffer(bytearray(content), dtype).reshape(shape)

    def write(self, value: Handle, array: np.ndarray[Any, Any]) -> None:
        assert value.owner is self
        _, shape, dtype = self.table[value.number]
        self.table[value.number] = array.tobytes(), shape, dtype


class ApartTransformer(InterpreterTransformer):
    """The interpreter over values of ``ApartMemory``; its ``memory`` is there to be looked at."""

    target = replace(InterpreterTransformer.target, name="apart")

    def make_memory(self) -> ApartMemory:
        return ApartMemory()

    def compile(self, plan: Any, linking: Any) -> Program:
        bind, run, sizes = super().compile(plan, linking).functions
        written = [k for k, leaf in enumerate(linking.variables) if leaf in set(linking.written)]

        def bind_apart(arena: Handle, offsets: Any, *rest: Any) -> Any:
            return arena.owner, rest

        def run_apart(bound: Any, *inputs: Handle) -> tuple[Handle, ...]:
            memory, (variables, constants, lengths) = bound
            memory.synchronise()
            arrays = [memory.read(value) for value in variables]
            known = [memory.read(value) for value in constants]
            values = run(bind(None, (), arrays, known, lengths), *map(memory.read, inputs))
            for number in written:
                memory.write(variables[number], arrays[number])
            return tuple([memory.copy_in(np.ascontiguousarray(v).reshape(v.shape)) for v in values])

        return Program((bind_apart, run_apart, sizes))
