"""Sums of every elementwise row: right also where a compiler makes no vectors of the loop."""

import numpy as np
import pytest

import geon
from geon.errors import DTypeError
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

ROWS = {name: row for name, row in PRIMITIVES.items() if isinstance(row, Elementwise)}
TERMS = 1 << 18
A = geon.Axis("A", TERMS)
OPERANDS = {"f": (0.3, 0.7, 0.3), "i": (7, 3, 7), "u": (7, 3, 7), "b": (1, 1, 1)}


def operands(row, dtype):
    """Placeholders for a row, and values that are the same in each of their elements."""
    values = OPERANDS[np.dtype(dtype).kind][: row.arity]
    dtypes = ["bool" if row.name == "where" and k == 0 else dtype for k in range(row.arity)]
    leaves = [geon.placeholder([A], dtype=each) for each in dtypes]
    return leaves, [np.full(TERMS, v, each) for v, each in zip(values, dtypes, strict=True)]


@pytest.mark.optimized  # its bounds hold for the order of sums that optimised loops have
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_sums_of_equal_values_of_every_row(dtype):
    """A tenth of a row's value, in float32, is added many times: chains would show."""
    leaves, data, results, names = [], [], [], []
    for name, row in ROWS.items():
        given, values = operands(row, dtype)
        if name == "acosh":
            values = [value * 10 for value in values]
        try:
            term = geon.cast(row(*given), "float32") * 0.1
        except DTypeError:
            continue
        leaves += given
        data += values
        results += [geon.sum(term), term[0]]
        names.append(name)
    with geon.make_transformer("native", threads=1) as transformer:
        found = transformer.computation(results, *leaves)(*data)
    wrong = {}
    for name, total, one in zip(names, found[::2], found[1::2], strict=True):
        wanted = float(one) * TERMS
        if np.isfinite(wanted) and abs(float(total) - wanted) > 1e-6 * abs(wanted):
            wrong[name] = abs(float(total) - wanted) / abs(wanted)
    assert not wrong
    assert len(names) > 10
