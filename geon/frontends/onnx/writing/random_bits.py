"""The row of random bits: Philox4x32-10 with integer operators, bit for bit that of geon.

J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers: as easy as 1, 2,
3", SC11 (2011). Words of 32 bits are held in int64. Products of two words are made of products with
16 bits of the multiplier, so that nothing overflows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....op_graph.op_graph import Op
from ....op_graph.random.philox import _KEY_STEPS, _MULTIPLIERS, _ROUNDS
from ....op_graph.values.dtypes import INT64, UINT64
from .exporter import Exporter, OnnxValue
from .expressions import Expr
from .movement import Row

WORD, HALF = (1 << 32) - 1, 1 << 16


def random_bits(e: Exporter, op: Op) -> OnnxValue:
    """Write the words of all blocks, and take as many as the axes have elements."""
    a, graph = op.attrs, e.graph
    size = a.axes.size
    words = size * (op.dtype.itemsize // 4)
    blocks = (words + 3) // 4
    call = e.expr(e.arranged(op.args[0], ()), UINT64)
    low, step = (call & WORD).cast(INT64), call.shifted(32, "RIGHT").cast(INT64)
    counter = e.range(blocks)
    zero = counter * 0
    made = _rounds([counter, zero + step, zero + a.draw, zero + low], a.seed)
    if op.dtype == UINT64:
        made = [made[k].cast(UINT64) | made[k + 1].cast(UINT64).shifted(32, "LEFT") for k in (0, 2)]
    one = graph.constant([1], np.int64)
    columns = [graph.node("Unsqueeze", [word.cast(op.dtype).name, one]) for word in made]
    flat = graph.node(
        "Reshape", [graph.node("Concat", columns, axis=1), graph.constant([-1], np.int64)]
    )
    ends = e.lengths.listed([0]), e.lengths.listed([size]), e.lengths.listed([0])
    taken = graph.node("Slice", [flat, *ends])
    return OnnxValue(e.reshaped(taken, a.axes.lengths), op.axes.names)


def _rounds(words: list[Expr], seed: int) -> list[Expr]:
    """Return the four words of each block after ten rounds."""
    a, b, c, d = words
    keys = seed & WORD, seed >> 32
    for number in range(_ROUNDS):
        k0, k1 = ((key + number * step) & WORD for key, step in zip(keys, _KEY_STEPS, strict=True))
        (left_high, left_low), (right_high, right_low) = (
            _product(word, m) for word, m in zip((a, c), _MULTIPLIERS, strict=True)
        )
        a, b, c, d = right_high ^ b ^ k0, right_low, left_high ^ d ^ k1, left_low
    return [a, b, c, d]


def _product(word: Expr, multiplier: int) -> tuple[Expr, Expr]:
    """Return the high and the low word of a product of two words."""
    small, large = word * (multiplier % HALF), word * (multiplier // HALF)
    middle = large + small / HALF
    low: Any = (middle & (HALF - 1)) * HALF + (small & (HALF - 1))
    return middle / HALF, low


ROWS: dict[str, Row] = {"random_bits": random_bits}
