"""Transposing passes: loads along one axis and stores along another, by square tiles.

A block loads a tile into shared memory along the axis that is contiguous in the operand, and stores
along the axis that is contiguous in the result.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Nest
from ...printing.nests.loop_lines import indent
from ...printing.nests.nest_statements import print_nest
from ..launches.launch_ir import THREADS_PER_BLOCK, Grid
from ..launches.naming import CudaFunction, CudaKernelNames
from .cooperative_threads import Lines, places

TILE_SIDE = 32  # elements per side of a tile
TILE_PADDING_ELEMENTS = (
    1  # padding elements per tile row, so that the elements of a column lie in different banks
)


def tiled_function(nest: Nest, names: CudaKernelNames) -> CudaFunction:
    """Return the function of a nest of one transposing pass."""
    printed = print_nest(nest, names)
    (made,) = printed.passes
    before = [*printed.top.lines, *(line for line in printed.row.lines if line is not made)]
    lanes = nest.across
    assert lanes is not None
    last = made.loops[-1]
    outer = [*nest.rows, *made.loops[:-1]]
    high, wide = names.length(lanes.extent), names.length(last.extent)
    down, along = ((loop.extent + TILE_SIDE - 1) // TILE_SIDE for loop in (lanes, last))
    down_text, along_text = names.length(down), names.length(along)
    body = [
        f"const int near = threadIdx.x % {TILE_SIDE}, far = threadIdx.x / {TILE_SIDE};",
        "const int64_t first_lane = 0;",
        f"const int64_t tile = (int64_t)blockIdx.x % ({along_text}) * {TILE_SIDE};",
        f"const int64_t lane_tile = (int64_t)blockIdx.x / ({along_text}) % ({down_text}) * "
        f"{TILE_SIDE};",
    ]
    if outer:
        body.append(f"const int64_t at = (int64_t)blockIdx.x / (({along_text}) * ({down_text}));")
        body += places(outer, "at", names.length)
    fill: Lines = []
    for load in made.turned:
        body.append(
            f"__shared__ {load.ctype} "
            f"{load.name}[{TILE_SIDE}][{TILE_SIDE + TILE_PADDING_ELEMENTS}];"
        )
        fill.append(f"{load.name}[near][k] = ({load.source})[near + k * ({load.step})];")
    body += tile_loop(f"lane_tile + near < {high} && tile + k < {wide}", fill)
    body.append("__syncthreads();")
    inside = [
        f"const int64_t lane = lane_tile + k, {last.name} = tile + near;",
        *map(str, before),
        *map(str, made.body.lines),
        *map(str, made.stores),
    ]
    body += tile_loop(f"lane_tile + k < {high} && tile + near < {wide}", inside)
    units = product(loop.extent for loop in outer) * down * along
    return names.function(body, Grid(units), THREADS_PER_BLOCK, True)


def tile_loop(inside: str, statements: Sequence[str]) -> Lines:
    """Return ``statements`` in a loop over a thread's elements of a tile, guarded by ``inside``."""
    body = [f"if ({inside}) {{", *indent(statements), "}"]
    return [
        f"for (int k = far; k < {TILE_SIDE}; k += {THREADS_PER_BLOCK // TILE_SIDE}) {{",
        *indent(body),
        "}",
    ]
