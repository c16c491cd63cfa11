"""The PyCUDA transformer: a computation becomes CUDA kernels over one planned arena."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...errors import ArgumentError
from ...op_graph.op_graph import Op
from ...op_graph.registry import PRIMITIVES
from ..base import Transformer
from ..compile import Stages
from ..linking import Linking
from ..lowering.loop_rules import LAST, RULES
from ..lowering.memory import Plan
from ..lowering.target import Arrangement, Layout
from . import gpu, host
from .completeness import lacks
from .cuda_target import CudaTarget
from .device import Device
from .emit import make_module
from .grouping import groups
from .memory import DeviceMemory
from .program import CudaProgram
from .scratch import scratch_of
from .sorting import SORTS


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Operands as they lie, the result in the order of its axes."""
    return Arrangement((None, None), op.axes.names)


TARGET = CudaTarget(
    name="pycuda",
    rules=RULES,
    arrange=arrange,
    in_place={
        name: row.in_place
        for name, row in PRIMITIVES.items()
        if row.in_place and name not in SORTS  # what is sorted is read to the end
    },
    hidden={},
    contiguous={
        **{row.name: tuple(range(8)) for row in PRIMITIVES.values() if row.cost == "kernel"},
        "print": (0,),
    },
    group=groups,
    last=LAST,
    scratch=scratch_of,
    lacks=lacks,
    alignment=256,
)


class CudaTransformer(Transformer):
    """Compiles computations to CUDA for a device; variables and the arena lie in its memory."""

    target = TARGET

    def __init__(self, device: Device, tf32: bool = False) -> None:
        self.device = device
        if tf32:
            name = f"{self.target.name}, tf32"
            self.target = dataclasses.replace(self.target, name=name, tf32=True)
        super().__init__()

    def make_memory(self) -> DeviceMemory:
        """The memory of the device."""
        return DeviceMemory(self.device)

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The CUDA text of a plan."""
        return make_module(plan, linking, annotate).source

    def compile(self, plan: Plan, linking: Linking) -> CudaProgram:
        """The module of a plan, compiled and loaded."""
        return CudaProgram(plan, make_module(plan, linking, annotate=False), self.device)

    def make_call(self, stages: Stages) -> Any:
        """A callable from arrays to arrays, which the program moves to the device and back."""
        return self.link(stages.compiled.functions, stages)


class PyCudaTransformer(CudaTransformer):
    """Runs computations on an NVIDIA GPU, that of number ``device``.

    With ``tf32`` products of float32 are rounded to 10 bits behind the point before they are
    multiplied, by tensor cores; sums stay float32, and so does attention. Raises ``DeviceError``
    where there is no GPU, or PyCUDA is missing.
    """

    def __init__(self, device: int = 0, *, tf32: bool = False) -> None:
        if not isinstance(device, int) or isinstance(device, bool):
            raise ArgumentError(f"device={device!r}: give the number of a GPU, from 0 on")
        super().__init__(gpu.device(device), tf32)
        if device:
            name = f"{self.target.name}, device {device}"
            self.target = dataclasses.replace(self.target, name=name)

    @classmethod
    def unavailable(cls) -> str | None:
        """None where there is a GPU; else what is missing, with the command that mends it."""
        return gpu.missing()


class CudaOnHost(CudaTransformer):
    """Runs CUDA's kernels on the CPU: slow, and the same as on a GPU. For tests.

    ``checks`` are those of ``HostDevice``: "races" or "memory"; ``tf32`` is as on a GPU.
    """

    target = dataclasses.replace(TARGET, name="cuda-on-host")

    def __init__(self, checks: str = "", *, tf32: bool = False) -> None:
        super().__init__(host.device(checks), tf32)
        if checks:
            name = f"{self.target.name}, {checks}"
            self.target = dataclasses.replace(self.target, name=name)

    @classmethod
    def unavailable(cls) -> str | None:
        """None where there is a C++ compiler; else how to get one."""
        return None if host.find_compiler() is not None else host.CURE
