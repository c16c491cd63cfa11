"""The NumPy table has every row, and each computes what its reference says, edges included."""

import numpy as np
import pytest

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.rewriting.simplify import simplify_rules
from geon.op_graph.rows.reductions import FIRST_MAX, reduce
from geon.op_graph.values.dtypes import FLOATS
from geon.testing.cases import for_each
from geon.transformers.lowering.rules import lowering_rules
from geon.transformers.numpy.arrays import SHOWN
from geon.transformers.numpy.completeness import REGIONS
from geon.transformers.numpy.kernels import SPECIAL
from geon.transformers.numpy.table import IN_PLACE, REDUCTIONS, TABLE

from ..op_graph.computing import compute
from .special_values import DTYPES, assert_close, assert_equal_bits, special_values

ROWS = {name: row for name, row in PRIMITIVES.items() if isinstance(row, Elementwise)}
A, B, C = (geon.Axis(name) for name in "ABC")

# Completeness -----------------------------------------------------------------------------------

# Rows that are gone before kernels are made, by rules that always apply.
REPLACED = {"stop_gradient", "custom"}
# Gone with complex numbers, which are pairs of real ones before rules apply.
OF_COMPLEX = {"real", "imag", "conj", "as_complex", "fourier"}
# Gone as well: stage 3 reads them, and has the values in their place.
MARKS = {"remat", "after", "segmented"}


def lowered(name):
    """Whether a rule of the target replaces the row, other than by computing in float32."""
    found = lowering_rules.RULES.rules.get(name, ())
    return any(rule.__name__ != "_through_float32" for rule in found)


def test_every_row_can_be_computed():
    known = {*TABLE, *SPECIAL, *REDUCTIONS, *REPLACED, *OF_COMPLEX, *MARKS, *REGIONS, *SHOWN}
    missing = [
        name
        for name, row in PRIMITIVES.items()
        if not (row.kind == "effect" or row.index_map is not None or row.known)
        and name not in known
        and not lowered(name)
    ]
    assert not missing, (
        f"the NumPy target has neither a row nor a lowering for {', '.join(missing)}"
    )


def test_what_is_replaced_has_a_rule():
    assert simplify_rules().rules.keys() >= REPLACED


def test_tables_name_only_rows():
    for table in (TABLE, SPECIAL, REDUCTIONS, IN_PLACE):
        assert set(table) <= PRIMITIVES.keys(), sorted(set(table) - PRIMITIVES.keys())


# Elementwise rows -------------------------------------------------------------------------------

EXACT = frozenset(
    "add subtract multiply divide negative absolute sign square sqrt reciprocal maximum minimum"
    " floor ceil round trunc floordivide mod less less_equal greater greater_equal equal not_equal"
    " where isnan isinf isfinite logical_and logical_or logical_xor logical_not".split()
)
# What approximations are good for, in roundings, where it is more than the 4 of a library function.
# Incomplete functions begin with x^a, of which each unit of a log(x) costs a rounding, as units of
# the exponents and angles of Airy functions do.
ULPS = {
    "erf": 16, "lgamma": 64, "power": 16, "sigmoid": 8, "softplus": 8,
    "y0": 9, "y1": 9, "gammainc": 512, "gammaincc": 512, "betainc": 2048,
    **dict.fromkeys(("airy_ai", "airy_aip", "airy_bi", "airy_bip"), 4096),
}  # fmt: skip
# Errors of Bessel functions with roots are stated in roundings of their amplitude.
WAVES = frozenset(("j0", "j1", "y0", "y1"))


def operands(arity, dtype):
    """Placeholders that meet every special value of each other, and their arrays."""
    values = special_values(dtype)
    axes = [[A], [B], [C]][:arity]
    return [geon.placeholder(a, dtype) for a in axes], [values] * arity


def outcome(op, leaves, arrays):
    """What the compiled program and the reference make of the same arrays."""
    f = geon.NumPyTransformer().computation(op, *leaves)
    lengths = {a.name: len(v) for leaf, v in zip(leaves, arrays, strict=True) for a in leaf.axes}
    return f(*arrays), compute(op, dict(zip(leaves, arrays, strict=True)), lengths)


@for_each("dtype", DTYPES)
@for_each("name", ROWS)
def test_row_at_special_values(name, dtype):
    row = ROWS[name]
    leaves, arrays = operands(row.arity, dtype)
    if row.rule == "select":
        leaves[0], arrays[0] = geon.placeholder([A], "bool"), special_values("bool")
    try:
        op = geon.outer(row, *leaves)
    except geon.DTypeError:
        pytest.skip(f"{name} does not take {dtype}")
    got, expected = outcome(op, leaves, arrays)
    if op.dtype.name not in FLOATS or name in EXACT:
        assert_equal_bits(got, expected, f"{name} of {dtype}")
    else:
        with np.errstate(all="ignore"):
            amplitude = np.minimum(1, np.abs(arrays[0].astype(np.float64)) ** -0.5)
        term = amplitude if name in WAVES else 0.0
        assert_close(got, expected, ULPS.get(name, 4), f"{name} of {dtype}", term)


@for_each("target", DTYPES)
@for_each("source", DTYPES)
def test_cast_at_special_values(source, target):
    x = geon.placeholder([A], source)
    got, expected = outcome(geon.cast(x, target), [x], [special_values(source)])
    assert_equal_bits(got, expected, f"cast of {source} to {target}")


@for_each("order", range(4))
@for_each("dtype", ["float32", "float64"])
def test_polygamma_at_special_values(order, dtype):
    x = geon.placeholder([A], dtype)
    values = special_values(dtype)
    got, expected = outcome(geon.polygamma(order, x), [x], [values])
    assert_close(got, expected, 256, f"polygamma {order} of {dtype}")


# Other rows at special values -------------------------------------------------------------------

ALONG = {
    "max": geon.max,
    "first_max": lambda x: reduce(FIRST_MAX, x),
    "min": geon.min,
    "argmax": geon.argmax,
    "argmin": geon.argmin,
    "any": geon.any,
    "all": geon.all,
    "prod": lambda x: geon.prod(x[0:3]),
    "sum": lambda x: geon.sum(x[0:3]),
    "cumsum": lambda x: geon.cumsum(x[0:3]),
    "cumprod": lambda x: geon.cumprod(x[0:3], exclusive=True, reverse=True),
    "sort": geon.sort,
    "argsort": geon.argsort,
    "top_k": lambda x: geon.top_k(x, 2)[0],
    "top_k positions": lambda x: geon.top_k(x, 2)[1],
}


@for_each("dtype", DTYPES)
@for_each("name", ALONG)
def test_row_along_an_axis_at_special_values(name, dtype):
    values = np.resize(np.random.default_rng(3).permutation(special_values(dtype)), 40)
    x = geon.placeholder([geon.Axis("A", 40)], dtype)
    try:
        op = ALONG[name](x)
    except geon.DTypeError:
        pytest.skip(f"{name} does not take {dtype}")
    got, expected = outcome(op, [x], [values])
    assert_equal_bits(got, expected, f"{name} of {dtype}")


@for_each("dtype", DTYPES)
def test_products_of_every_dtype(dtype):
    random = np.random.default_rng(0)
    K = geon.Axis("K")
    x, y = geon.placeholder([A, K], dtype), geon.placeholder([K, B], dtype)
    values = special_values(dtype)
    arrays = [random.choice(values[np.isfinite(values)], s) for s in ((4, 7), (7, 5))]
    if dtype in FLOATS:
        arrays = [random.uniform(-2, 2, a.shape).astype(a.dtype) for a in arrays]
    f = geon.NumPyTransformer().computation(geon.dot(x, y), x, y)
    got, expected = (
        f(*arrays),
        compute(geon.dot(x, y), {x: arrays[0], y: arrays[1]}, {"A": 4, "B": 5, "K": 7}),
    )
    if dtype in FLOATS:
        np.testing.assert_allclose(
            got.astype(np.float64),
            expected.astype(np.float64),
            atol=32 * float(np.finfo(np.float32).eps if got.itemsize == 4 else got.itemsize * 0.01),
        )
    else:
        assert_equal_bits(got, expected, f"dot of {dtype}")
