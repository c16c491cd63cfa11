"""Trees of short rows: terms that are folded together, states of truths, and stores in one run."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.testing.cases import for_each
from geon.transformers.kernels.ir.nest import Store
from geon.transformers.loops.rules.column_lanes import MIN_LONG_COLUMNS
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.tree import Fold, Kind, Role, VectorWidth, Write, loops_of, walk
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.loops.test_native_trees import nest_of
from tests.loops.trees import agree, memory_of

A, B = Axis("A", 70), Axis("B", 10)
native_only = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


def tree_of_rows(result, *leaves):
    nest = nest_of(result, *leaves)
    nest = nest.short or nest
    width = VectorWidth(64, 4, compiled=True, most=nest.most)
    return nest, schedule(nest, width)


TERMS = {
    "loads": (lambda x, y: x, "float32", True),
    "products": (lambda x, y: x * y - x, "float64", True),
    "integers": (lambda x, y: x, "int8", True),
    "halves": (lambda x, y: x, "float16", False),
    "choices": (lambda x, y: geon.where(x > 1, x, y), "float32", False),
    "functions": (lambda x, y: geon.exp(x), "float32", False),
    "values of rows": (lambda x, y: x * y, "float32", False),
}


@for_each("name", TERMS)
def test_sums_of_loads_and_their_products_are_folded_together(name):
    """Compilers make scalars of other terms that are loaded side by side."""
    term, dtype, together = TERMS[name]
    x = geon.placeholder([A, B], dtype=dtype)
    y = geon.placeholder([A] if name == "values of rows" else [A, B], dtype=dtype)
    leaves = [x, y] if name in ("products", "choices", "values of rows") else [x]
    nest, tree = tree_of_rows(geon.sum(term(x, y), B), *leaves)
    assert any(loop.kind is Kind.COPIES for loop in loops_of(tree.body)) == together
    random = np.random.default_rng(1)
    agree(nest, tree, memory_of(nest, {}, random), {}, random)


@for_each("lengths", [(70, 10), (9, 300), (30, 100)])
@for_each("over", [0, 1])
@for_each("dtype", ["float32", "int8", "bool"])
def test_states_of_truths_are_the_bits_of_numbers(dtype, over, lengths):
    """There is no state beside them that has the truth itself, but for runs of few columns."""
    axes = [Axis("A", lengths[0]), Axis("B", lengths[1])]
    x = geon.placeholder(axes, dtype=dtype)
    truth = x if dtype == "bool" else x > 0
    for reduce in (geon.all, geon.any):
        nest, tree = tree_of_rows(reduce(truth, axes[over]), x)
        folds = [each for each, _ in walk(tree.body) if isinstance(each, Fold)]
        if over or lengths[1] >= MIN_LONG_COLUMNS:
            assert {each.reducer.folds.name for each in folds} <= {"bitwise_and", "bitwise_or"}
            assert not any(buffer.dtype == "bool" for buffer in tree.buffers)
        random = np.random.default_rng(lengths[0])
        agree(nest, tree, memory_of(nest, {}, random), {}, random)


def test_sums_of_narrow_integers_of_columns_have_narrow_states():
    n, c = Axis("N", 300), Axis("C", 400)
    x = geon.placeholder([n, c], dtype="int8")
    _, tree = tree_of_rows(geon.sum(x, n), x)
    assert {buffer.dtype.name for buffer in tree.buffers} == {"int32"}


def storing_loops(tree):
    writes = [(each, above[-1]) for each, above in walk(tree.body) if isinstance(each, Write)]
    return [loop for write, loop in writes if any(isinstance(x, Store) for x in write.stores)]


@for_each("length", [3, 10, None])
@for_each("name", ["softmax", "norm"])
def test_short_rows_are_stored_in_one_loop(name, length):
    """Values of rows and of positions are copied to an element for each stored one."""
    rows, row = Axis("A", 150), Axis("B", length)
    x, b = geon.placeholder([rows, row]), geon.placeholder([row])
    if name == "softmax":
        nest, tree = tree_of_rows(geon.softmax(x, row), x)
    else:
        nest, tree = tree_of_rows((x - geon.mean(x, row)) * b, x, b)
    (loop,) = storing_loops(tree)
    assert loop.role is Role.SIMD and loop.kind is Kind.LANES
    lengths = {} if length else {"B": 7}
    random = np.random.default_rng(3)
    agree(nest, tree, memory_of(nest, lengths, random), lengths, random)


def test_short_rows_that_are_read_where_they_were_stored_are_tasks():
    """Stored by rows, and read in one run of all rows of a block."""
    rows, row = Axis("A"), Axis("B", 3)
    x = geon.placeholder([rows, row])
    slope = geon.softmax(x, row)
    second = geon.deriv(geon.sum(geon.square(slope)), x)
    nest, tree = tree_of_rows([slope, second], x)
    (outer,) = tree.body
    assert outer.role is Role.TASK
    lengths, random = {"A": 150}, np.random.default_rng(3)
    agree(nest, tree, memory_of(nest, lengths, random), lengths, random)


@native_only
@for_each("dtype", ["float32", "float64", "float16"])
@for_each("length", [1, 7, 8, 15, 16])
def test_values_of_short_rows(length, dtype):
    """Of known and open lengths, for numbers of rows around those of a block."""
    random = np.random.default_rng(length)
    tolerance = 4e-3 if dtype == "float16" else 1e-5
    with geon.NativeTransformer() as transformer:
        for known in (True, False):
            row = Axis("B", length if known else None)
            rows = Axis("A")
            x, b = (geon.placeholder(axes, dtype=dtype) for axes in ([rows, row], [row]))
            centred = (x - geon.mean(x, row)) * b
            f = transformer.computation([geon.softmax(x, row), centred, x / geon.max(x, row)], x, b)
            for count in (1, 63, 64, 65, 129):
                a = (random.random((count, length)) + 0.5).astype(dtype)
                scale = random.random(length).astype(dtype)
                wide = a.astype("float64")
                each = np.exp(wide - wide.max(1, keepdims=True))
                wanted = [
                    each / each.sum(1, keepdims=True),
                    (wide - wide.mean(1, keepdims=True)) * scale.astype("float64"),
                    wide / wide.max(1, keepdims=True),
                ]
                for ours, theirs in zip(f(a, scale), wanted, strict=True):
                    np.testing.assert_allclose(ours, theirs, tolerance, tolerance)
