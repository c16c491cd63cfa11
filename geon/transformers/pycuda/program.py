"""Compiled CUDA modules as the functions that a call binds and runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from ...op_graph.lengths import evaluate
from ..lowering.memory import Plan
from ..lowering.schedule import bytes_of
from ..lowering.spaces import beyond_counting, space_of
from .bound import Bound
from .device import Device
from .emit import Module
from .memory import DeviceArray, DeviceMemory
from .staging import Staging


class CudaProgram:
    """A module on its device; ``functions`` are what ``Transformer.link`` takes."""

    def __init__(self, plan: Plan, module: Module, device: Device) -> None:
        self.module, self.device = module, device
        self.buffers, self.lifetimes = plan.buffers, plan.lifetimes
        outputs = plan.schedule.program.outputs
        self.results = [(op.axes.lengths, op.dtype) for op in outputs]
        self.beside = [bytes_of(op) for op in outputs]
        self.spaces = {space_of(kernel) for kernel in plan.schedule.kernels}
        self.checks = {
            number: kernel.op.attrs[0] if kernel.op.primitive.name == "checked" else None
            for number, kernel in enumerate(plan.schedule.kernels)
            if kernel.raises
        }
        self.loaded = device.load(module.source, module.kernels)
        self.functions = (self.bind, Bound.run, self.sizes)
        self.lock = threading.Lock()
        self.stagings: WeakKeyDictionary[DeviceArray, Staging] = WeakKeyDictionary()

    def staging(self, arena: DeviceArray) -> Staging:
        """The places of inputs and results of calls in an arena, for all lengths together."""
        return self.stagings.setdefault(arena, Staging(self.device))

    @cached_property
    def small(self) -> list[DeviceArray]:
        """The small constants on the device."""
        memory = DeviceMemory(self.device)
        return [memory.copy_in(array) for array in self.module.small]

    def sizes(self, lengths: Mapping[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
        """Bytes and lifetimes of arena buffers, and the bytes of results."""
        sizes = [buffer.bytes(lengths, 1) for buffer in self.buffers]
        beside = sum(evaluate(size, lengths) for size in self.beside)
        return sizes, list(self.lifetimes), beside + beyond_counting(self.spaces, lengths)

    def bind(self, *args: Any) -> Bound:
        """The program for one arena and given lengths."""
        with self.lock:
            return Bound(self, *args)
