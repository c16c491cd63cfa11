"""Narrow elements that are loaded as vectors and widened, and extremes of floats in loops of
compilers."""

import ml_dtypes
import numpy as np
import pytest

import geon
from geon import Axis
from geon.testing.cases import for_each
from geon.transformers.kernels.ir.scalar_code import Load
from geon.transformers.kernels.ir.scalar_code import walk as walk_scalars
from geon.transformers.loops.tree import Fold, Role, loops_of, values_of, walk
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.trees.tree_choice import tree_of
from tests.loops.test_native_trees import nest_of

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
NARROW = ["int8", "uint8", "int16", "uint16", "bool", "bfloat16"]


def programs(x, columns):
    """Values of rows and elements of ``x`` in float32."""
    wide = geon.cast(x, "float32")
    return [
        geon.exp(wide * 0.01),
        geon.exp(geon.cast(x, "float64") * 0.01),
        geon.max(wide * 3, columns),
        geon.min(geon.reciprocal(wide - 0.5)),
        geon.sum(wide * wide, columns),
        geon.sum(geon.exp(wide * 0.01), columns),
        geon.sum(wide * 0.5),
    ]


def elements(dtype, shape):
    """All bytes, or random words; positions of a row are different from each other."""
    bits = np.random.default_rng(0).integers(0, 1 << 16, shape, dtype="uint16")
    if dtype == "bfloat16":
        return (bits.astype("float32") / 1000 - 30).astype(ml_dtypes.bfloat16)
    return bits % 2 == 1 if dtype == "bool" else bits.astype(dtype)


@for_each("dtype", NARROW)
@for_each("rows, columns", [(3, 200), (50, 64), (7, 161), (40, 23), (5, 16)])
@for_each("is_open", [False, True])
def test_narrow_elements_have_the_bits_of_wide_ones(dtype, rows, columns, is_open):
    data = elements(dtype, (rows, columns))
    found = []
    for given in (data, data.astype("float32")):
        n, c = Axis("N", None if is_open else rows), Axis("C", None if is_open else columns)
        x = geon.placeholder([n, c], dtype if given is data else "float32")
        with geon.NativeTransformer(threads=2) as native:
            found.append(native.computation(programs(x, c), x)(given))
    for value, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=2e-6)
    for k in (0, 1, 2, 3):  # no sums
        np.testing.assert_array_equal(found[0][k], found[1][k])


@for_each("dtype", NARROW)
def test_reductions_of_narrow_elements_are_vectors(dtype):
    x = geon.placeholder([Axis("N", 50), Axis("C", 161)], dtype)
    nest = nest_of(geon.max(geon.cast(x, "float32") * 2, "C"), x)
    tree = tree_of(nest, 64, None)
    folds = [loop for loop in loops_of(tree.body) for x in loop.body if isinstance(x, Fold)]
    assert Role.VECTOR in {loop.role for loop in folds}


@for_each("name", ["max", "min"])
@for_each("dtype", ["float32", "float64"])
@for_each("columns", [5, 72, 161])
def test_extremes_in_loops_of_compilers_keep_nan(name, dtype, columns):
    """The state of lanes that a compiler makes has no NaN; a flag has."""
    n, c = Axis("N", 9), Axis("C", columns)
    x = geon.placeholder([n, c], dtype)
    fold = getattr(geon, name)
    results = [fold(geon.floor(x), c), fold(geon.floor(x[:, 1:])), fold(geon.floor(x), n)]
    data = np.random.default_rng(1).normal(size=(9, columns)).astype(dtype) * 40
    with geon.NativeTransformer(threads=2) as native:
        f = native.computation(results, x)
        for place in (None, (0, 1), (4, columns // 2), (8, columns - 1)):
            given = data.copy()
            if place is not None:
                given[place] = np.nan
            floors, take = np.floor(given), getattr(np, name)
            wanted = [take(floors, axis=1), take(floors[:, 1:]), take(floors, axis=0)]
            for value, other in zip(f(given), wanted, strict=True):
                np.testing.assert_array_equal(value, other)


@for_each("bound", [-2.5, -0.0, 0.0, 2.0, float("inf"), float("-inf"), float("nan")])
def test_extremes_beside_a_constant_have_the_bits_of_those_beside_a_value(bound):
    n = Axis("N", 37)
    x, y = geon.placeholder(n), geon.placeholder(())
    halves = [geon.cast(geon.cast(z, "float16"), "float32") for z in (x, x + 0.0)]
    special = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 2.0, -2.5], "float32")
    data = np.resize(special, 37)
    pairs = [
        (take(geon.floor(z), bound), take(geon.floor(z), y))
        for take in (geon.maximum, geon.minimum)
        for z in (x, *halves)
    ]
    with geon.NativeTransformer(threads=1) as native:
        f = native.computation([each for pair in pairs for each in pair], x, y)
        values = f(data, np.float32(bound))
    for known, given in zip(values[::2], values[1::2], strict=True):
        np.testing.assert_array_equal(np.signbit(known), np.signbit(given))
        np.testing.assert_array_equal(known, given)


def test_loops_that_continue_each_other_in_memory_are_one():
    """A pass that reads the reverse keeps its loops, and does not keep those of a reduction."""
    n, m, k = Axis("N", 8), Axis("M", 3000), Axis("K")
    x = geon.placeholder([n, m, k])
    results = [geon.argmin(x), geon.flip(x, m) + 1, geon.sum(x)]
    with geon.NativeTransformer(threads=2) as native:
        f = native.computation(results, x)
        for kernel in f.plan.schedule.kernels:
            tree = tree_of(kernel.work, 64, None)
            for each, above in walk(tree.body):
                loads = [z for z in walk_scalars(*values_of(each)) if isinstance(z, Load)]
                if isinstance(each, Fold) and each.reducer.folds is None and loads:
                    assert all(loop.size != 3000 for loop in above)
        for length in (1, 2, 7, 100):
            data = np.random.default_rng(length).random((8, 3000, length), "float32")
            place, turned, total = f(data)
            assert place == data.argmin()
            np.testing.assert_array_equal(turned, data[:, ::-1] + np.float32(1))
            np.testing.assert_allclose(total, data.sum(dtype="float64"), rtol=1e-6)
