"""CUDA text of a sequential loop: one thread per row runs all iterations in one launch."""

from __future__ import annotations

from ...kernels.scans.sequential_scan import OrderedLoop
from ...printing.nests.scan_statements import print_ordered
from ..launches.launch_ir import Grid
from ..launches.naming import CudaFunction, CudaKernelNames, indent
from .cooperative_threads import WARP_SIZE


def ordered_function(work: OrderedLoop, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a sequential loop."""
    printed = print_ordered(work, names, lambda name: name)
    rows, count = names.length(work.rows), names.length(work.turns)
    part = f"{count} - 1 - turn" if work.reverse else "turn"
    body = [
        f"const int64_t row = (int64_t)blockIdx.x * {WARP_SIZE} + threadIdx.x;",
        f"if (row >= {rows}) return;",
        *printed.top,
        *(f"{ctype} {name};" for ctype, name in printed.carries),
        *printed.first,
        f"for (int64_t turn = 0; turn < {count}; turn++) {{",
        *indent([f"const int64_t part = {part};", *printed.turn]),
        "}",
        *printed.last,
    ]
    return names.function(body, Grid(work.rows, WARP_SIZE), WARP_SIZE, False)
