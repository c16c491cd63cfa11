"""Costs of elementwise primitives, counted in their C text; a test counts again."""

from __future__ import annotations

from ...kernels.analysis.op_counts import DRAW
from ...kernels.costs.machine import RowCost
from .c_types import INTEGERS, SIGNED

UNSIGNED = tuple([dtype for dtype in INTEGERS if dtype not in SIGNED])

# Operations, statements, divisions, and whether it is serial (not vectorised). Primitives that are
# not listed take one operation and one statement. Those of floats have the cost in float32, and the
# one in float64.
_FLOATS = {
    "divide": (RowCost(1, 1, 1), RowCost(1, 1, 1)),
    "floordivide": (RowCost(9, 39, 4), RowCost(9, 36, 4)),
    "mod": (RowCost(5, 29, 1), RowCost(5, 26, 1)),
    "power": (RowCost(40, 73, 1), RowCost(105, 124, 1)),
    "sign": (RowCost(1, 6), RowCost(1, 6)),
    "reciprocal": (RowCost(1, 1, 1), RowCost(1, 1, 1)),
    "sqrt": (RowCost(1, 1, 1), RowCost(1, 1, 1)),
    "rsqrt": (RowCost(2, 2, 2), RowCost(2, 2, 2)),
    "exp": (RowCost(22, 21), RowCost(32, 25)),
    "expm1": (RowCost(23, 23), RowCost(41, 34)),
    "log": (RowCost(29, 32), RowCost(33, 37, 1)),
    "log1p": (RowCost(31, 31), RowCost(35, 36, 1)),
    "sigmoid": (RowCost(24, 23, 1), RowCost(43, 37, 1)),
    "sigmoid_derivative": (RowCost(36, 32, 1), RowCost(46, 37, 1)),
    "softplus": (RowCost(36, 34, 1), RowCost(68, 63, 1)),
    "maximum": (RowCost(1, 4), RowCost(1, 4)),
    "minimum": (RowCost(1, 4), RowCost(1, 4)),
    "isinf": (RowCost(1, 2), RowCost(1, 2)),
    "isfinite": (RowCost(1, 2), RowCost(1, 2)),
    "exp_product": (RowCost(27, 29, 0), RowCost(37, 34, 0)),
    "erf": (RowCost(31, 24), RowCost(67, 42)),
    "erfc": (RowCost(81, 72, 1), RowCost(131, 97, 1)),
    "erfcx": (RowCost(82, 74, 1), RowCost(132, 99, 1)),
    "ndtr": (RowCost(82, 73, 1), RowCost(132, 98, 1)),
    "log_ndtr": (RowCost(153, 154, 2), RowCost(211, 189, 4)),
    "erfinv": (RowCost(72, 63, 1), RowCost(321, 247, 4)),
    "gelu_derivative": (RowCost(91, 79, 1), RowCost(141, 104, 1)),
    "gelu": (RowCost(89, 79, 1), RowCost(139, 104, 1)),
    "gelu_tanh_derivative": (RowCost(68, 61, 1), RowCost(78, 66, 1)),
    "gelu_tanh": (RowCost(36, 29, 1), RowCost(46, 34, 1)),
    "silu_derivative": (RowCost(40, 38, 1), RowCost(50, 43, 1)),
    "silu": (RowCost(23, 18, 1), RowCost(33, 23, 1)),
    "logical_and": (RowCost(1, 3), RowCost(1, 3)),
    "logical_or": (RowCost(1, 3), RowCost(1, 3)),
    "logical_xor": (RowCost(1, 3), RowCost(1, 3)),
    "sin": (RowCost(25, 42), RowCost(56, 83, 1)),
    "cos": (RowCost(26, 42), RowCost(57, 83, 1)),
    "tan": (RowCost(23, 40, 1), RowCost(2, 10, 1, True)),
    "asin": (RowCost(18, 19, 1), RowCost(40, 34, 1)),
    "acos": (RowCost(21, 24, 1), RowCost(37, 33, 1)),
    "atan": (RowCost(21, 21, 1), RowCost(35, 34, 1)),
    "sinh": (RowCost(27, 24, 1), RowCost(50, 38, 1)),
    "cosh": (RowCost(26, 20, 1), RowCost(34, 26, 1)),
    "tanh": (RowCost(25, 21, 1), RowCost(53, 41, 1)),
    "asinh": (RowCost(38, 44, 2), RowCost(1, 1, 0, True)),
    "acosh": (RowCost(37, 43, 1), RowCost(1, 1, 0, True)),
    "atanh": (RowCost(35, 37, 1), RowCost(1, 1, 0, True)),
    "atan2": (RowCost(24, 33, 1), RowCost(43, 56, 1)),
}
_SIGNED = {
    "floordivide": RowCost(4, 17, 1),
    "mod": RowCost(4, 14, 1),
    "power": RowCost(1, 11, 0, True),
}
_UNSIGNED = {
    "floordivide": RowCost(1, 6, 1),
    "mod": RowCost(3, 6, 1),
    "power": RowCost(1, 2, 0, True),
}
_INT64 = {
    "floordivide": RowCost(4, 16, 1, True),
    "mod": RowCost(4, 13, 1, True),
}
_UINT64 = {
    "floordivide": RowCost(1, 5, 1, True),
    "mod": RowCost(3, 5, 1, True),
}

# Ten rounds on a counter's four words in 64-bit lanes, of which an element takes a quarter or a
# half.
_DRAWS = {"uint32": RowCost(0, 48), "uint64": RowCost(0, 52)}

ROW_COSTS: dict[tuple[str, str], RowCost] = {
    **{(DRAW, dtype): cost for dtype, cost in _DRAWS.items()},
    **{(row, "float32"): cost for row, (cost, _) in _FLOATS.items()},
    **{(row, "float64"): cost for row, (_, cost) in _FLOATS.items()},
    **{(row, dtype): cost for row, cost in _SIGNED.items() for dtype in SIGNED},
    **{(row, dtype): cost for row, cost in _UNSIGNED.items() for dtype in UNSIGNED},
    **{(row, "int64"): cost for row, cost in _INT64.items()},
    **{(row, "uint64"): cost for row, cost in _UINT64.items()},
}
