"""Compiled CUDA programs: the functions that ``Transformer.link`` binds and runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from ....op_graph.axes.lengths import evaluate
from ...sizes.spaces import beyond_counting
from ..emit.record import CudaRecord
from ..launches.device import Device
from ..launches.memory import DeviceArray, DeviceMemory
from .bound_program import BoundCudaProgram
from .pinned_buffers import Staging, bytes_of_result


class CudaProgram:
    """A module loaded on its device; ``functions`` are what ``Transformer.link`` takes."""

    def __init__(self, record: CudaRecord, device: Device) -> None:
        self.record, self.module, self.device = record, record.module, device
        self.buffers, self.results = record.buffers, record.results
        self.checks, self.loops = record.checks, record.loops
        self.loaded = device.load(self.module.source, self.module.kernels)
        self.functions = (self.bind, BoundCudaProgram.run, self.sizes)
        self.lock = threading.Lock()
        self.stagings: WeakKeyDictionary[DeviceArray, Staging] = WeakKeyDictionary()

    def staging(self, arena: DeviceArray) -> Staging:
        """Return the staging memory of calls in an arena, shared by all lengths."""
        return self.stagings.setdefault(arena, Staging(self.device))

    @cached_property
    def small(self) -> list[DeviceArray]:
        """Return the small constants on the device."""
        memory = DeviceMemory(self.device)
        return [memory.copy_in(array) for array in self.module.small]

    def sizes(self, lengths: Mapping[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
        """Return sizes and lifetimes of arena buffers, and the bytes of results."""
        record = self.record
        sizes = [buffer.bytes(lengths, 1) for buffer in record.buffers]
        beside = sum(bytes_of_result(evaluate(size, lengths)) for size in record.beside)
        return sizes, list(record.lifetimes), beside + beyond_counting(record.spaces, lengths)

    def bind(self, *args: Any) -> BoundCudaProgram:
        """Bind the program to an arena and lengths."""
        with self.lock:
            return BoundCudaProgram(self, *args)
