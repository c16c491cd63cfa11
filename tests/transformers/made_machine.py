"""A made-up machine, on which predictions can be worked out by hand."""

from geon.transformers.kernels.costs.machine import Ceilings, Machine, RowCost, Speeds
from geon.transformers.sizes.product_blocks import shape

SIZES = (1 << 15, 1 << 20, 1 << 25)


def made(threads=1, ceilings=None):
    """One whose bandwidth is 64, 32 and 8 GB/s in its caches, whatever is written."""
    ceilings = ceilings or {
        count: Ceilings(count, SIZES, ((64e9, 32e9, 8e9),) * 5, {4: 64e9 * count, 8: 32e9 * count})
        for count in {1, threads}
    }
    own = {
        "start": 1e-7, "wake": 1e-6, "chain": 1e-9, "statement": 1e-9,
        "division": {4: 4e-9, 8: 8e-9}, "serial": 1e-9, "call": 2e-8, "sizes": SIZES,
        "far": (1e-9, 2e-9, 8e-9), "latency": (1e-9, 1e-8, 1e-7), "tile": {4: 64e9, 8: 32e9},
        "stream": {4: 64e9, 8: 32e9},
    }  # fmt: skip
    shapes = {4: shape("float", 64), 8: shape("double", 64)}
    rows = {("exp", "float32"): RowCost(20, 16), ("power", "float64"): RowCost(serial=True)}
    return Machine(
        "a made-up machine", True, 64, (1 << 15, 1 << 20), 2, ceilings, Speeds(**own),
        shapes, rows, 512,
    )  # fmt: skip
