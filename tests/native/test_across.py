"""What lies across memory: every order of axes, at lengths near the sides of tiles and blocks."""

import itertools

import numpy as np
import pytest

import geon
from geon.transformers.loops.rules.transposed_tiles import MAX_ADJACENT_ELEMENTS, TILE_COLUMNS
from geon.transformers.loops.show import show
from geon.transformers.loops.values_ahead import MAX_BUFFERED_TURNS, MAX_OPEN_BUFFERED_TURNS
from geon.transformers.native.emit.unit_texts import TRANSPOSE_SQUARE_SIDE
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.trees.tree_choice import tree_of
from geon.transformers.native.trees.vector_statements import MAX_INTERLEAVED_ELEMENTS
from tests.golden.emitting import Native

from .test_joins import compare, values

compiled = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
DTYPES = ["float32", "float64", "float16", "int8", "int32", "int64", "bool"]


def turned(axes, dtype):
    """A value beside another in each other order of its axes, with placeholders."""
    x = geon.placeholder(axes, dtype)
    orders = list(itertools.permutations(range(len(axes))))[1:]
    others = [geon.placeholder([axes[k] for k in order], dtype) for order in orders]
    both = geon.logical_and if x.dtype.name == "bool" else geon.maximum
    if x.dtype.kind == "f":
        return [both(x * 2, y) + 1 for y in others], [x, *others], orders
    return [both(x, y) for y in others], [x, *others], orders


def check(lengths, dtype, known):
    axes = [geon.Axis(f"A{k}", n if known else None) for k, n in enumerate(lengths)]
    results, inputs, orders = turned(axes, dtype)
    shapes = [lengths, *([lengths[k] for k in order] for order in orders)]
    compare(results, inputs, [values(shape, dtype, k) for k, shape in enumerate(shapes)])


@compiled
@pytest.mark.parametrize("dtype", DTYPES)
def test_matrices(dtype):
    for lengths in [(65, 130), (8, 64), (63, 9), (1, 70), (0, 5)]:
        check(lengths, dtype, known=True)


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int8"])
def test_matrices_of_open_lengths(dtype):
    n, c = geon.Axis("N"), geon.Axis("C")
    x, y = geon.placeholder([n, c], dtype), geon.placeholder([c, n], dtype)
    sides = [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 66, 71, 72, 127, 129, 200]
    with (
        geon.make_transformer("native", threads=1) as one,
        geon.make_transformer("native", threads=2) as two,
    ):
        f, g = (each.computation([x - y, x * 2], x, y) for each in (one, two))
        for rows, columns in itertools.product(sides, sides):
            a, b = values((rows, columns), dtype), values((columns, rows), dtype, 1)
            with np.errstate(all="ignore"):
                wanted = a - b.T
            for each in (f, g):
                np.testing.assert_array_equal(each(a, b)[0], wanted)


@compiled
@pytest.mark.parametrize("lengths", [(9, 66, 7), (3, 8, 70), (65, 2, 65)], ids=str)
@pytest.mark.parametrize("known", [True, False], ids=["known", "open"])
def test_three_axes(lengths, known):
    check(lengths, "float32", known)


def beside(axes, dtype):
    """A turned value beside what lies as it does, one element for each column, one for each row."""
    n, c = axes
    x, y = geon.placeholder([n, c], dtype), geon.placeholder([c, n], dtype)
    column, row = geon.placeholder([n], dtype), geon.placeholder([c], dtype)
    both = geon.logical_or if x.dtype.name == "bool" else geon.maximum
    turned = geon.reorder(x, [c, n])
    wide = geon.broadcast(row, [c, n])
    results = [
        both(both(turned, y), geon.broadcast(column, [c, n])),
        both(turned, wide),
        geon.cast(turned, "float64"),
    ]
    return results, [x, y, column, row]


@compiled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("known", [True, False], ids=["known", "open"])
def test_short_rows(dtype, known):
    """Tiles of one row and of several, of rows that vectors hold, and just longer ones."""
    short = [
        2,
        3,
        MAX_INTERLEAVED_ELEMENTS,
        MAX_INTERLEAVED_ELEMENTS + 1,
        7,
        12,
        31,
    ]
    for columns in [
        *short,
        MAX_ADJACENT_ELEMENTS,
        MAX_ADJACENT_ELEMENTS + 1,
    ]:
        tile = max((MAX_BUFFERED_TURNS if known else MAX_OPEN_BUFFERED_TURNS) // columns, 1)
        for rows in [tile + 1] if known else [2, tile - 1, tile, 2 * tile + 1]:
            axes = [geon.Axis("N", columns), geon.Axis("C", rows if known else None)]
            results, inputs = beside(axes, dtype)
            shapes = [(columns, rows), (rows, columns), (columns,), (rows,)]
            arrays = [values(shape, dtype, k) for k, shape in enumerate(shapes)]
            compare(results, inputs, arrays)


@compiled
def test_short_rows_of_rows():
    check((3, 2, 700), "float32", known=True)
    check((700, 5, 3), "int8", known=True)


@compiled
def test_four_axes():
    check((3, 9, 5, 17), "float64", known=True)


@compiled
@pytest.mark.parametrize("function", [geon.softmax, geon.logsumexp], ids=["softmax", "logsumexp"])
@pytest.mark.parametrize("shape", [(700, 513), (65, 64), (9, 3), (2000, 1)], ids=str)
def test_what_follows_a_reduction_over_the_first_axis(function, shape):
    n, c = (geon.Axis(name, length) for name, length in zip("NC", shape, strict=True))
    x, y = geon.placeholder([n, c]), geon.placeholder([c, n])
    made = [function(x, n), function(y, n)]
    a = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    e = np.exp(a - a.max(0, keepdims=True, initial=-9), dtype=np.float64)
    wanted = (
        e / e.sum(0) if function is geon.softmax else np.log(np.exp(a, dtype=np.float64).sum(0))
    )
    found = {}
    for threads in (1, 2):
        with geon.make_transformer("native", threads=threads) as transformer:
            found[threads] = transformer.computation(made, x, y)(a, np.ascontiguousarray(a.T))
            np.testing.assert_allclose(found[threads][0], wanted, rtol=2e-5, atol=1e-6)
    for a, b in zip(found[1], found[2], strict=True):
        assert a.tobytes() == b.tobytes()


@compiled
@pytest.mark.parametrize("dtype", ["float32", "int32", "float64"])
@pytest.mark.parametrize(
    "rows",
    [
        1,
        15,
        16,
        17,
        63,
        64,
        65,
        TRANSPOSE_SQUARE_SIDE - 1,
        TRANSPOSE_SQUARE_SIDE,
        TRANSPOSE_SQUARE_SIDE + 1,
        300,
    ],
)
@pytest.mark.parametrize("columns", [7, 8, 16, 63, TRANSPOSE_SQUARE_SIDE + 1])
def test_copies_are_written_where_they_are_to_lie(rows, columns, dtype):
    """Of known and of open lengths, backwards, and as a part of each row."""
    data = np.random.default_rng(rows).integers(-99, 99, (rows, columns)).astype(dtype)
    for known in (True, False):
        n, c = (geon.Axis("N", rows), geon.Axis("C", columns)) if known else map(geon.Axis, "NC")
        x = geon.placeholder([n, c], dtype=dtype)
        results = [geon.reorder(x, [c, n]), geon.reorder(geon.flip(x, n), [c, n])]
        results.append(geon.reorder(x[:, 1:], [c, n]))
        f = geon.NativeTransformer(threads=2).computation(results, x)
        found = f(data)
        for made, wanted in zip(found, (data.T, data[::-1].T, data[:, 1:].T), strict=True):
            np.testing.assert_array_equal(made, wanted)


# Text ---------------------------------------------------------------------------------------------


def shown(make, columns=300, rows=400):
    """Return the tree of a nest as text."""
    n, c = geon.Axis("N", columns), geon.Axis("C", rows)
    x, y = geon.placeholder([n, c]), geon.placeholder([c, n])
    (kernel,) = Native().computation(make(x, y, n), x, y).stages().schedule.kernels
    return show(tree_of(kernel.work, 64, None))


def test_loads_across_memory_are_transposed_in_tiles_and_read_along_the_stores():
    text = shown(lambda x, y, n: geon.reorder(x, y.axes) + y)
    tile, lines = text.split("block):")[0], text.split("block):")[1:]
    assert f"buffer b0: {TILE_COLUMNS * (128 + 8)} float32 in stack" in tile
    assert "b0[136 * lane_1 + i_2] = x1[" in tile
    assert "simd" in lines[0] and "b0[136 * lane_0 + i_0]" in lines[1]


def test_short_rows_that_adjoin_are_one_loop():
    """They are computed from a buffer; rows that are only copied need none."""
    for columns in (2, MAX_ADJACENT_ELEMENTS - 1, MAX_ADJACENT_ELEMENTS + 1):
        text = shown(lambda x, y, n: geon.reorder(x, y.axes) + y, columns)
        assert ("simd j_0_at" in text) == (columns < MAX_ADJACENT_ELEMENTS)
        copy = shown(lambda x, y, n: geon.reorder(x, y.axes), columns)
        assert ("buffer" not in copy) == (columns < MAX_ADJACENT_ELEMENTS)


def test_elements_of_rows_of_three_are_put_beside_each_other_without_a_call():
    n, c = geon.Axis("N", 3), geon.Axis("C")
    x = geon.placeholder([n, c])
    text = Native().computation(geon.reorder(x * 2, [c, n]), x).source
    assert "geon_transpose_4(" not in text and "#pragma GCC unroll" in text


def test_a_store_along_columns_takes_no_tile():
    text = shown(lambda x, y, n: geon.softmax(x, n))
    assert f"{TILE_COLUMNS * (128 + 8)} float32" not in text


@compiled
@pytest.mark.parametrize("columns", [*range(1, 10), 16, 31, 63, 64, 65])
def test_sums_over_the_first_axis_of_few_columns(columns):
    """The bits do not depend on threads, nor on whether columns, if not one, were known."""
    n, c = geon.Axis("N"), geon.Axis("C", columns)
    found = []
    for threads, axis in [(1, c), (2, c), (2, geon.Axis("C"))]:
        x = geon.placeholder([n, axis])
        with geon.make_transformer("native", threads=threads) as transformer:
            each = [geon.sum(x, n), geon.max(x, n), geon.variance(x, n), geon.logsumexp(x, n)]
            f = transformer.computation(each, x)
            for rows in (1, 31, 32, 33, 1000):
                a = np.random.default_rng(rows).standard_normal((rows, columns), np.float32)
                found.append([each.tobytes() for each in f(a)])
                np.testing.assert_allclose(f(a)[0], a.sum(0, np.float64), rtol=1e-5, atol=1e-5)
    assert found[:5] == found[5:10]
    assert columns == 1 or found[:5] == found[10:]


def test_rows_that_adjoin_more_closely_are_inside_of_blocks():
    """Those that a repeat adds between what is turned, and an axis too short for blocks."""
    n, m, a, k = (geon.Axis(name, size) for name, size in zip("NMAK", (39, 500, 3, 2), strict=True))
    x, y = geon.placeholder([n, m]), geon.placeholder([n, m, k])
    for op, leaf, inside in (
        (geon.broadcast(x * 2.0, [m, a, n]), x, a),
        (geon.reorder(y * 2.0, [k, m, n]), y, k),
    ):
        (kernel,) = Native().computation(op, leaf).stages().schedule.kernels
        nest = kernel.work
        assert nest.across.axes == (m.name,)
        assert nest.rows[-1].axes == (inside.name,)
        data = values([axis.length for axis in leaf.axes], "float32")
        compare([op], [leaf], [data])


@pytest.mark.parametrize(
    ("function", "dtype"), [(None, "float32"), (None, "int8"), (abs, "float32")]
)
def test_copies_of_words_alone_need_no_tile(function, dtype):
    n, c = geon.Axis("N", 300), geon.Axis("C", 400)
    x = geon.placeholder([n, c], dtype=dtype)
    y = geon.reorder(x, [c, n])
    text = Native().computation(y if function is None else function(y), x).source
    assert ("_turned(x0" in text) == (function is None and dtype == "float32")
