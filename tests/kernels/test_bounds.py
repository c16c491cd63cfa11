"""Bounds of integers in scalar code, held to all values that they are about."""

import itertools

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import AffineIndex, variable
from geon.op_graph.rows.elementwise import (
    absolute,
    add,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    subtract,
)
from geon.op_graph.values.dtypes import FLOAT32, INT64, named_dtype
from geon.transformers.kernels.analysis.integer_ranges import Bounded
from geon.transformers.kernels.ir.scalar_code import IndexNumber, ScalarBuilder

TWO = [add, subtract, multiply, maximum, minimum, mod]
ONE = [absolute, negative]


def index(code, constant, step, atom="i"):
    return code(IndexNumber, variable(atom) * step + constant, INT64)


@pytest.mark.parametrize("row", [*ONE, *TWO], ids=lambda row: row.name)
def test_bounds_hold_for_every_index_and_what_is_plainer_is_equal(row):
    functions = {"mod": np.mod, "negative": np.negative}
    function = functions.get(row.name) or getattr(np, row.name)
    steps = itertools.product([-3, 0, 2, 9], [-2, 1], [-4, 1, 12], [0, 3])
    for constant, step, other, slope in steps:
        code, ranges = ScalarBuilder(), {"i": 5, "k": 4}
        x, y = index(code, constant, step), index(code, other, slope, "k")
        i, k = np.meshgrid(np.arange(5), np.arange(4))
        found = constant + step * i, other + slope * k
        if row is mod and (found[1] <= 0).any():
            continue
        args = (x, y) if row in TWO else (x,)
        value = code.apply(row, *args)
        want = function(*found[: len(args)])
        bounded = Bounded(ranges)
        low, high = bounded.of(value)
        assert low <= want.min() and want.max() <= high
        plain = bounded.plainer(row, args, INT64)
        if plain is not None:
            np.testing.assert_array_equal(want, found[args.index(plain)])


def test_what_is_not_known_has_no_bounds():
    code = ScalarBuilder()
    n = geon.Axis("N").expression
    x = index(code, 0, 1)
    assert Bounded({"i": n}).of(x) is None
    assert Bounded({}).of(x) is None
    assert Bounded({"i": 9}).of(code(IndexNumber, AffineIndex((), n), INT64)) is None
    narrow = code.cast(code.number(300, INT64), named_dtype("int8"))
    assert Bounded({}).of(narrow) is None  # it wraps
    assert Bounded({}).of(code.cast(code.number(1.5, FLOAT32), INT64)) is None
    assert Bounded({"i": 9}).of(code.apply(mod, x, code.number(0, INT64))) is None


def test_positions_that_are_mirrored_divide_nothing():
    n = geon.Axis("N", 1000)
    x = geon.placeholder([n])
    y = geon.pad(x, {n: 2}, mode="reflect")
    transformer = geon.NumPyTransformer()
    assert transformer.computation(y, x)(np.arange(1000, dtype="float32"))[0] == 2.0
    native = geon.make_transformer("native")
    f = native.computation(y, x)
    assert "geon_mod_i64(" not in f.source.split("static void kernel_0", 1)[-1]
    np.testing.assert_array_equal(
        f(np.arange(1000, dtype="float32")),
        np.pad(np.arange(1000, dtype="float32"), 2, mode="reflect"),
    )
