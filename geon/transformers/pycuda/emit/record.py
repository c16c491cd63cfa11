"""Serialised form of a compiled CUDA program: module, memory layout and results, without ops.

It is stored in the disk cache under the program's key. It includes the source of the kernels, by
which their machine code is looked up.
"""

from __future__ import annotations

from typing import Any

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ...cache.serialization import RecordStore
from ...kernels.products.convolutions import Spatial
from ...lowering.facts.value_sizes import bytes_of
from ...lowering.planning.iteration_spaces import Loops, loops_of, spaces_of
from ...lowering.planning.plan import Plan, kernels_of
from ...sizes.buffers import Buffer
from ...sizes.scratch import Largest, PerThread
from ...sizes.spaces import Space
from ..launches import launch_ir, library_requests
from ..launches.device import CudaSource, PipelineStages, Signature, TextPiece
from ..products import scratch
from .cuda_module import CudaModule


@dataclass(frozen=True, eq=False, slots=True)
class CudaRecord:
    """All that a call needs of a compiled program.

    ``beside`` has the sizes of results in bytes, ``results`` their lengths and dtypes. ``buffers``
    and ``lifetimes`` describe the arena. ``spaces`` has the iteration spaces of kernels. ``checks``
    maps the number of each kernel that can fail to the length that indices are checked against, or
    to None for a finite check. ``loops`` maps the number of such a kernel to its enclosing loops.
    """

    module: CudaModule
    buffers: tuple[Buffer, ...]
    lifetimes: tuple[tuple[int, int], ...]
    beside: tuple[Size, ...]
    results: tuple[tuple[tuple[Size, ...], Any], ...]
    spaces: frozenset[Space]
    checks: dict[int, Any]
    loops: dict[int, Loops]


def record_of(plan: Plan, module: CudaModule) -> CudaRecord:
    """Return the record of a plan and its module."""
    outputs, kernels = plan.schedule.program.outputs, list(kernels_of(plan))
    raising = {number for number, kernel in kernels if kernel.raises}
    return CudaRecord(
        module,
        tuple(plan.buffers),
        tuple(plan.lifetimes),
        tuple([bytes_of(op) for op in outputs]),
        tuple([(op.axes.lengths, op.dtype) for op in outputs]),
        frozenset(spaces_of(plan)),
        {
            number: tuple(kernel.op.attrs) if kernel.op.primitive.name == "checked" else None
            for number, kernel in kernels
            if kernel.raises
        },
        {number: around for number, around in loops_of(plan).items() if number in raising},
    )


PARTS = {
    kind.__name__: kind.__module__
    for kind in (
        CudaRecord, CudaModule, CudaSource, TextPiece, Signature, PipelineStages, Buffer,
        PerThread, Largest, scratch.Bytes,
        launch_ir.Parts, launch_ir.Grid, launch_ir.Grids, launch_ir.Launch, launch_ir.FixedNumber,
        launch_ir.Copy, launch_ir.Show, launch_ir.LaunchVariants, launch_ir.Turn, launch_ir.Round,
        launch_ir.DeviceLoop, launch_ir.Condition, launch_ir.Stack, launch_ir.Carry,
        launch_ir.Timed, launch_ir.Branches,
        library_requests.Ask, library_requests.ProductCall,
        library_requests.MatrixCall, library_requests.FourierCall,
        library_requests.ConvolutionCall, Spatial,
    )
}  # fmt: skip
RECORDS = RecordStore("cuda program", PARTS)
