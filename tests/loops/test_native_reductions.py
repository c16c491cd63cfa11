"""Reductions of rows that native code runs from trees: their loops, and their values."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.testing.cases import for_each
from geon.transformers.kernels.nests.unrolled_reductions import MAX_SERIAL_TERMS
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.rules.reductions import MAX_SPLIT_ROWS, block_size
from geon.transformers.loops.tree import Combine, Fold, Kind, Role, loops_of, walk
from geon.transformers.loops.work import MAX_PARTS, MIN_WORK, part_size
from geon.transformers.native.runtime import bound_program
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.trees.tree_choice import tree_of
from tests.loops.test_native_trees import WIDTH, nest_of, roles

native_only = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
BLOCK = MAX_SERIAL_TERMS * WIDTH.count  # terms of a block


def summed(rows, columns, dtype="float32"):
    """Sums of rows, with their placeholder; of the whole array if there are no rows."""
    axes = [Axis("C", columns)] if rows is None else [Axis("N", rows), Axis("C", columns)]
    x = geon.placeholder(axes, dtype)
    return geon.sum(x, "C"), x


def tree_of_sums(rows, columns):
    return schedule(nest_of(*summed(rows, columns)), WIDTH)


def test_a_block_of_terms_has_partial_sums_in_one_vector():
    assert roles(tree_of_sums(400, BLOCK)) == [
        (Role.TASK, Kind.MAIN, 400),
        (Role.VECTOR, Kind.LANES, 16),
        (Role.SERIAL, Kind.VECTORS, BLOCK // 16),
        (Role.VECTOR, Kind.LANES, 16),
    ]


def test_more_terms_are_summed_in_blocks_of_equal_size():
    blocks = [size for _, kind, size in roles(tree_of_sums(400, 3 * 400)) if kind is Kind.BLOCK]
    assert blocks == [3]
    assert block_size(1200, BLOCK, 16) == 400
    assert block_size(1216, BLOCK, 16) == BLOCK  # a third of it fills no vectors


@for_each("columns", [33, 50])
def test_rows_of_at_least_one_vector_are_vectors_and_others_those_of_the_compiler(columns):
    nest = nest_of(*summed(400, columns))
    for vector_bytes, role in ((64, Role.VECTOR), (256, Role.SIMD)):  # 16 or 64 elements
        loops = loops_of(tree_of(nest, vector_bytes, None).body)
        folds = [(x, each) for x in loops for each in x.body if isinstance(each, Fold)]
        roles = {loop.role for loop, each in folds if not each.merges}
        assert roles & {Role.VECTOR, Role.SIMD} == {role}


@for_each("rows", [None, 1, MAX_SPLIT_ROWS, MAX_SPLIT_ROWS + 1])
@for_each("columns", [BLOCK, MIN_WORK // 2 - 8 * BLOCK, MIN_WORK // 2])
def test_long_reductions_of_few_rows_are_divided(rows, columns):
    tree = tree_of_sums(rows, columns)
    (parts, *_) = [loop for loop in loops_of(tree.body) if loop.role is Role.TASK] or [None]
    divided = parts is not None and parts.kind is Kind.BLOCK
    assert divided == (columns == MIN_WORK // 2 and (rows is None or rows <= MAX_SPLIT_ROWS))


@for_each("columns", [64, 65, 72, 79, BLOCK + 79, None])
def test_rests_of_rows_are_shorter_vectors_and_of_open_rows_serial(columns):
    folded = [loop for loop in loops_of(tree_of_sums(400, columns).body)
              if any(isinstance(each, Fold) for each in loop.body)]  # fmt: skip
    lanes = [loop.size for loop in folded if loop.role is Role.VECTOR]
    rests = {64: [16], 65: [16], 72: [8], 79: [16, 8, 4, 2], BLOCK + 79: [16, 8, 4, 2], None: [16]}
    assert lanes == rests[columns]
    others = [loop.kind for loop in folded if loop.role is not Role.VECTOR]
    single = [Kind.MAIN] if columns in (65, 79, BLOCK + 79) else []  # stands in the loop over rows
    assert others == ([Kind.REST] if columns is None else single)


@native_only
@for_each("dtype", ["float32", "int64"])
@for_each("rows", [None, 3, 40])
@for_each("columns", [65, 79, BLOCK + 79, (1 << 16) + 7])
@for_each("is_open", [False, True])
def test_values_of_rows_with_rests(dtype, rows, columns, is_open):
    total, x = summed(rows, None if is_open else columns, dtype)
    results = [total, geon.max(x, "C"), geon.sum(x * x, list("NC")[rows is None :]), x - total]
    shape = [columns] if rows is None else [rows, columns]
    values = np.random.default_rng(columns).integers(-1, 3, shape).astype(dtype)
    exact = values.astype("int64")
    wanted = [exact.sum(-1), exact.max(-1), (exact**2).sum(), exact - exact.sum(-1, keepdims=True)]
    with geon.NativeTransformer(threads=3) as native:
        for found, right in zip(native.computation(results, x)(values), wanted, strict=True):
            np.testing.assert_array_equal(found, right)


@for_each("size", [1, 100, MIN_WORK, 1 << 24, 1 << 30])
@for_each("each", [1, 100, MIN_WORK])
def test_parts_of_a_reduction_are_few_and_equal(size, each):
    count = part_size(size, each)
    parts = -(-size // count)
    assert 1 <= parts <= MAX_PARTS
    assert count * parts - size < parts
    assert (parts == 1) == (size * each < MIN_WORK or size == 1)


def test_each_state_of_lanes_is_combined_once():
    n, c = Axis("N", 40), Axis("C", 64)
    x = geon.placeholder([n, c])
    tree = schedule(nest_of([geon.sum(x, c), geon.prod(x, c)], x), WIDTH)
    combined = [each for each, _ in walk(tree.body) if isinstance(each, Combine)]
    assert {each.reducer.folds.name for each in combined} == {"add", "multiply"}
    assert len(combined) == 2


def test_values_of_rows_are_computed_before_their_passes():
    n, c = Axis("N", 40), Axis("C", 64)
    x = geon.placeholder([n, c])
    centred = x - geon.mean(x, c)
    tree = schedule(nest_of(centred * geon.rsqrt(geon.mean(centred * centred, c)), x), WIDTH)
    held = [buffer for buffer in tree.buffers if buffer.size == 1]
    assert len(held) == 5  # two sums, the mean in two passes, and the root in one


@native_only
@for_each("dtype", ["float32", "float64"])
@for_each("rows", [None, 1, 3, 40])
@for_each("columns", [64, BLOCK, BLOCK + 64, 1 << 16, (1 << 18) + 64])
def test_values(dtype, rows, columns):
    total, x = summed(rows, columns, dtype)
    centred = x - total * (1 / columns)
    results = [total, geon.sum(centred * centred, "C"), centred * 2]
    values = np.random.default_rng(columns).normal(size=[a.length for a in x.axes]).astype(dtype)
    exact = values.astype("float64")
    mean = exact.sum(-1, keepdims=True) / columns
    wanted = [exact.sum(-1), ((exact - mean) ** 2).sum(-1), (exact - mean) * 2]
    found = {}
    for threads in (1, 3):
        with geon.NativeTransformer(threads=threads) as native:
            found[threads] = native.computation(results, x)(values)
    for one, three, right in zip(found[1], found[3], wanted, strict=True):
        np.testing.assert_array_equal(one, three)
        np.testing.assert_allclose(one, right, rtol=2e-6, atol=2e-6 * columns**0.5)


@native_only
@for_each("dtype", ["float32", "float64", "int32", "int64"])
@for_each("rows", [None, 3, 40])
@for_each("columns", [64, BLOCK + 64, 1 << 16])
def test_extremes_and_sums_of_integers(dtype, rows, columns):
    x = summed(rows, columns, dtype)[1]
    wide = geon.cast(x, "int64") if dtype == "int32" else x
    results = [geon.max(x, "C"), geon.min(x, "C"), geon.sum(wide, "C")]
    values = np.random.default_rng(columns).integers(-99, 99, [a.length for a in x.axes])
    values = values.astype(dtype)
    if values.dtype.kind == "f":
        values[..., columns - 1] = np.where(np.arange(values[..., 0].size) % 2, np.nan, np.inf)
    wanted = [values.max(-1), values.min(-1), values.sum(-1)]
    with geon.NativeTransformer(threads=2) as native:
        f = native.computation(results[:2], x)
        assert "_fold_maximum(b" in f.source and "_fold_minimum(b" in f.source
        for found, right in zip(native.computation(results, x)(values), wanted, strict=True):
            np.testing.assert_array_equal(found, right)
        for found, right in zip(f(values), wanted, strict=False):
            np.testing.assert_array_equal(found, right)


@native_only
@pytest.mark.parametrize("past", [None, 64])
def test_rows_that_read_what_they_stored_are_tasks(monkeypatch, past):
    """A normalisation whose centred rows are a result, with an operand across memory."""
    if past is not None:
        monkeypatch.setattr(bound_program, "past_bytes", lambda: past)
    n, t, c = Axis("N"), Axis("T"), Axis("C", 16)
    x, y, g = geon.placeholder([n, t, c]), geon.placeholder([t, n, c]), geon.placeholder([c])
    centred = x + y - geon.mean(x + y, c)
    squares = geon.mean(geon.square(centred), c)
    scaled = centred * (1 / geon.sqrt(squares + 1e-5))
    random = np.random.default_rng(0)
    given = [random.normal(size=shape).astype("float32") for shape in ((5, 3, 16), (3, 5, 16), 16)]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        results = [scaled * g + 1, scaled, centred, squares]
        f = native.computation(results, x, y, g)
        assert "geon_pool_run(kernel_0" in f.source and "GEON_PUT(f" in f.source
        for found, wanted in zip(
            f(*given), numpy.computation(results, x, y, g)(*given), strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [1 << 20, None])
def test_extremes_of_whole_arrays_are_divided(size):
    x = geon.placeholder([Axis("N", size)])
    tree = schedule(nest_of(geon.max(x), x), WIDTH)
    (task,) = [loop for loop in loops_of(tree.body) if loop.role is Role.TASK]
    assert task.kind is Kind.BLOCK


@native_only
@for_each("rows", [30, 2000])
@for_each("columns", [17, 257, 301])
def test_sums_over_nested_loops_have_blocks_of_whole_rows(rows, columns):
    """Loops over rows that are read in two directions do not become one."""
    axes = [geon.Axis("N", rows), geon.Axis("C", columns)]
    x = geon.placeholder(axes)
    narrow = geon.cast(geon.cast(x, "float16"), "float32")
    results = [
        geon.sum(x, axes),
        geon.sum(geon.flip(x, axes[1]) * x, axes),
        geon.mean(narrow, axes),
    ]
    values = np.random.default_rng(columns).random((rows, columns), "float32") / 1000
    values += np.float32(0.1)
    wanted = [values.sum(dtype="float64"), (values[:, ::-1] * values).sum(dtype="float64"),
              values.astype("float16").mean(dtype="float64")]  # fmt: skip
    with geon.NativeTransformer(threads=3) as native:
        np.testing.assert_allclose(native.computation(results, x)(values), wanted, rtol=1e-6)


@native_only
def test_an_extreme_takes_constants_into_vectors():
    """Rows of padding fold one number into the state of each lane."""
    x = geon.placeholder([Axis("N", 80), Axis("M", 384)])
    padded = geon.pad(x, {"N": (1, 1)})
    data = np.full((80, 384), -1, np.float32)
    with geon.make_transformer("native", threads=1) as transformer:
        f = transformer.computation([geon.max(padded), padded, padded + 2], x)
        largest, found, more = f(data)
    assert largest == 0
    np.testing.assert_array_equal(found, np.pad(data, [(1, 1), (0, 0)]))
    np.testing.assert_array_equal(more, found + 2)


@pytest.mark.parametrize("columns, lanes", [(40, [8]), (248, [8]), (264, [16, 8]), (1000, [16, 8])])
def test_long_rows_fill_whole_registers_and_short_ones_halves(columns, lanes):
    vectors = [size for role, _, size in roles(tree_of_sums(400, columns)) if role is Role.VECTOR]
    assert sorted(set(vectors), reverse=True) == lanes
