"""The ``Machine`` of native code, with measured speeds or default ones."""

from __future__ import annotations

from ...kernels.costs.machine import Machine, Speeds
from ...loops.rules.columns import MAX_BLOCK_BYTES
from ...printing.scalars.op_costs import ROW_COSTS
from ...sizes.ceilings import READ_WRITE_MIXES, Ceilings
from ...sizes.product_blocks import SIZES, Shape, shape
from ..toolchain.compilers import Toolchain, find_toolchain
from .caches import DEFAULT_CACHE_SIZES, caches_of
from .microbenchmarks import kept_speeds, speeds
from .roofline_peaks import ceilings, kept_ceilings
from .threads import processors

# Default speeds, of a 3 GHz processor with 32-byte vectors, for predictions before measurements.
_WORKING_SET_BYTES = (32 << 10, 512 << 10, 8 << 20, 128 << 20)
_RATES = tuple([(100e9, 60e9, 30e9, 12e9)] * len(READ_WRITE_MIXES))
_SPEEDS = Speeds(
    start=0.2e-6,
    wake=5e-6,
    chain=1.3e-9,
    statement=0.25e-9,
    division={4: 2e-9, 8: 3e-9},
    serial=0.4e-9,
    call=15e-9,
    sizes=_WORKING_SET_BYTES,
    far=(1e-9, 2e-9, 4e-9, 10e-9),
    latency=(2e-9, 5e-9, 20e-9, 80e-9),
    tile={4: 80e9, 8: 40e9},
    stream={4: 50e9, 8: 25e9},
)

# Maximum number of adjacent rows that a task computes beside each other.
BLOCK_ROWS = MAX_BLOCK_BYTES // 4


def machine(threads: int, toolchain: Toolchain | None = None, *, measure: bool = False) -> Machine:
    """Return the machine model for code on ``threads`` threads.

    It has measured speeds if there are any. Otherwise ``measure`` measures them, which takes some
    seconds; without it the default speeds are used.
    """
    toolchain = toolchain or find_toolchain()
    width = 32 if toolchain is None else toolchain.vector_bytes
    known = _measured(threads, toolchain, measure) if toolchain is not None else None
    limits, own = known or (_stated(threads), _SPEEDS)
    return Machine(
        name="this machine" if known is not None else "a stated machine",
        measured=known is not None,
        vector_bytes=width,
        caches=caches_of(),
        cores=processors(),
        ceilings=limits,
        speeds=own,
        shapes=_shapes(width),
        rows=ROW_COSTS,
        side_by_side=BLOCK_ROWS,
    )


def _measured(
    threads: int, toolchain: Toolchain, measure: bool
) -> tuple[dict[int, Ceilings], Speeds] | None:
    counts = sorted({1, threads})
    if measure:
        return {count: ceilings(count) for count in counts}, speeds(toolchain)
    kept = {count: kept_ceilings(count) for count in counts}
    limits = {count: each for count, each in kept.items() if each is not None}
    own = kept_speeds(toolchain)
    return None if own is None or len(limits) < len(counts) else (limits, own)


def _stated(threads: int) -> dict[int, Ceilings]:
    return {
        count: Ceilings(
            count,
            _WORKING_SET_BYTES,
            tuple([tuple([rate * count for rate in rates[:-1]] + [rates[-1]]) for rates in _RATES]),
            {4: 90e9 * count, 8: 45e9 * count},
        )
        for count in {1, threads}
    }


def _shapes(vector_bytes: int) -> dict[int, Shape]:
    return {size: shape(type, vector_bytes) for type, size in SIZES.items()}


# The model that fusion uses: default speeds only, so that kernels are the same on every machine.
MODEL = Machine(
    name="a stated machine",
    measured=False,
    vector_bytes=32,
    caches=DEFAULT_CACHE_SIZES,
    cores=1,
    ceilings=_stated(1),
    speeds=_SPEEDS,
    shapes=_shapes(32),
    rows=ROW_COSTS,
    side_by_side=BLOCK_ROWS,
)
