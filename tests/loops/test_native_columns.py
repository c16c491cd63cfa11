"""Columns that native code runs from trees: their blocks, parts and rows, and their values."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.testing.cases import for_each
from geon.transformers.loops.access import accesses
from geon.transformers.loops.from_nest import from_nest
from geon.transformers.loops.rules import column_lanes
from geon.transformers.loops.rules import columns as column_rules
from geon.transformers.loops.rules import cpu as cpu_rules
from geon.transformers.loops.rules.column_lanes import MIN_LONG_COLUMNS
from geon.transformers.loops.rules.columns import (
    MAX_COLUMN_PARTS,
    MAX_PART_STATES,
    MIN_COLUMN_PARTS,
    equal_share,
)
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.tree import Fold, Kind, Role, VectorWidth, find, loops_of
from geon.transformers.loops.work import MIN_WORK
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.trees.tree_choice import is_vectorised, tree_of
from tests.kernels.transformer import KernelsTransformer
from tests.loops.programs import FEW, Program, columns, values_of_columns
from tests.loops.test_native_trees import WIDTH, nest_of
from tests.loops.trees import agree, memory_of, nests_of
from tests.native.together import Together
from tests.tiers import scaled

FEW_COLUMNS = MAX_PART_STATES // MIN_COLUMN_PARTS  # maximum columns whose terms are divided
native_only = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
NARROW = {2: VectorWidth(8, 4), 4: VectorWidth(16, 4)}  # vectors for short columns


def tree_of_columns(terms, columns, rows=None, over="N"):
    axes = [Axis("N", terms), Axis("C", columns)]
    x = geon.placeholder(axes if rows is None else [Axis("R", rows), *axes])
    return schedule(nest_of(geon.sum(x, over), x), WIDTH)


def tasks(tree):
    return [loop for loop in loops_of(tree.body) if loop.role is Role.TASK]


def parts_of(tree):
    return [loop for loop in tasks(tree) if loop.kind is Kind.BLOCK]


def folding_loops(tree):
    return [loop for loop in loops_of(tree.body) if any(isinstance(x, Fold) for x in loop.body)]


@for_each("terms", [20, 31, 33, 1000, None])
@for_each("columns", [64, 528, 4096])
def test_columns_are_vectors(terms, columns):
    loops = folding_loops(tree_of_columns(terms, columns))
    assert loops and all(loop.role is Role.VECTOR and loop.size == 16 for loop in loops)


def simd_loops(tree):
    return [loop for loop in loops_of(tree.body) if loop.role is Role.SIMD]


@for_each("columns", [3, 10, 16, 37, 48, 60])
def test_few_columns_are_runs_of_several_terms(columns):
    n, c = Axis("N"), Axis("C", columns)
    x = geon.placeholder([n, c])
    tree = tree_of(nest_of(geon.sum(x, n), x), 64, None)
    sizes = {loop.size for loop in simd_loops(tree)}
    assert sizes == {columns, 16 * columns}  # as with an open number of columns, in the same order


@for_each("rows", [None, 3, 5000])
def test_an_open_number_of_columns_has_a_form_for_few(rows):
    """With rows, which have several runs of terms each."""
    n, c = Axis("N"), Axis("C")
    x = geon.placeholder([n, c] if rows is None else [Axis("R", rows), n, c])
    tree = tree_of(nest_of(geon.sum(x, n), x), 64, None)
    (choice,) = tree.body
    few, *long = choice.guards
    assert (few.low, few.high) == (1, MIN_LONG_COLUMNS)
    assert [guard.low for guard in long] == [64] * (rows is not None)
    runs = [loop for loop in simd_loops(tree) if "16*C" in str(loop.extent)]
    assert runs and set(runs) <= set(loops_of(choice.then))
    assert any(loop.role is Role.TASK for loop in loops_of(choice.otherwise))


@for_each("rows, columns", [(300, 6), (6, 300), (None, None)])
def test_columns_are_joined_with_rows_that_continue_them(rows, columns):
    """Sums of short rows of a matrix are many columns, unless each matrix has another operand."""
    axes = [Axis("R", rows), Axis("M", columns), Axis("K", 6)]
    x, y = geon.placeholder(axes), geon.placeholder(axes[:1])
    centred = x - geon.mean(x, "K")
    for each, leaves, are_joined in (
        (centred * centred, [x], True),
        (geon.square(x - y), [x, y], False),
    ):
        (rows_loop,) = tree_of(nest_of(geon.sum(each, "K"), *leaves), 64, None).body
        assert rows_loop.role is Role.TASK
        offsets = [access.offset for access in accesses(rows_loop.body)]
        assert all(isinstance(atom, str) for x in offsets for atom in x.terms) is are_joined


def test_what_columns_store_across_memory_is_transposed_in_tiles():
    n, c = Axis("N", 200), Axis("C", 128)
    x = geon.placeholder([n, c])
    centred = geon.reorder(x - geon.mean(x, n), [c, n])
    tree = tree_of(nest_of(centred, x), 64, None)
    assert any("adjacent where they are stored" in loop.reason for loop in simd_loops(tree))


@for_each("terms, reduction", [(24, geon.sum), (25, geon.sum), (None, geon.max)])
def test_columns_may_read_what_they_store_in_other_blocks(terms, reduction):
    """The second pass reads four terms together, the first one stores them one by one."""
    n, c = Axis("N", terms), Axis("C", FEW_COLUMNS + 1)
    x, y = geon.placeholder([n, c]), geon.placeholder([n, c], "int64")
    joined = x + geon.cast(y, "float32")
    results = [joined, reduction(geon.exp(joined - geon.max(joined, n)), n)]
    tree = tree_of(nest_of(results, x, y), 64, None)
    assert not tree.refusals
    assert any(loop.kind is Kind.COPIES for loop in folding_loops(tree))
    assert not any(loop.kind is Kind.COLUMNS for loop in loops_of(tree.body))


def test_little_work_is_no_task():
    assert not tasks(tree_of_columns(100, 64))


@for_each("columns", [1024, FEW_COLUMNS, FEW_COLUMNS + 16])
def test_terms_of_few_columns_are_divided_among_tasks(columns):
    (task,) = tasks(tree_of_columns(1 << 14, columns))
    assert (task.kind is Kind.BLOCK) == (columns <= FEW_COLUMNS)
    if task.kind is Kind.BLOCK:
        assert task.size == min(MAX_COLUMN_PARTS, MAX_PART_STATES // columns)


def test_parts_have_enough_work():
    terms = [terms for terms in range(256, 8192, 256) if parts_of(tree_of_columns(terms, 64))]
    assert MIN_WORK // 512 < terms[0] < MIN_WORK // 64
    assert terms == list(range(terms[0], 8192, 256))


@for_each("compiled", [False, True])
@for_each("block", [2, 3, 4, 8])
def test_terms_of_blocks_that_are_fewer_than_copies_are_folded_one_by_one(
    monkeypatch, compiled, block
):
    monkeypatch.setattr(column_rules, "MAX_SERIAL_TERMS", block)
    x = geon.placeholder([Axis("N", 3), Axis("M", 8), Axis("C", 16)])
    vectors = VectorWidth(16, 4, compiled=compiled)
    tree = schedule(nest_of(geon.sum(x, ["N", "M"]), x), vectors)
    assert not any(refusal.startswith("columns:") for refusal in tree.refusals)
    assert not any(loop.kind is Kind.COLUMNS for loop in loops_of(tree.body))
    if not compiled:
        assert any(loop.kind is Kind.COPIES for loop in loops_of(tree.body)) == (block >= 4)


def test_blocks_of_terms_are_equal_if_they_can_be():
    assert equal_share(64, 32) == 32
    assert equal_share(48, 32) == 24
    assert equal_share(49, 32) == 32
    assert equal_share(None, 32) == 32


def slopes(images, side, channels):
    """The slope of a depthwise filter of 3 by 3 elements."""
    n, h, w = Axis("N", images), Axis("H", side), Axis("W", side)
    r, s, c = Axis("R", 3), Axis("S", 3), Axis("C", channels)
    x, f = geon.placeholder([n, h, w, c]), geon.placeholder([r, s, c])
    y = geon.convolution(x, f, {h: geon.Window(r), w: geon.Window(s)}, [])
    g = geon.placeholder(y.axes)
    return geon.deriv(y, f, seed=g), x, g


@for_each("channels", [64, FEW_COLUMNS // 9 // 16 * 16, FEW_COLUMNS // 9 // 16 * 16 + 16])
def test_rows_that_are_nearer_than_terms_run_inside_of_them(channels):
    tree = schedule(nest_of(*slopes(40, 12, channels)), WIDTH)
    parts = parts_of(tree)
    assert bool(parts) == (channels * 9 <= FEW_COLUMNS)
    for part in parts:
        path = find(tree, folding_loops(tree)[0].variable)[1]
        sizes = [loop.size for loop in path[path.index(part) + 1 :]]
        assert sizes.count(3) == 2  # the rows of the filter
        assert sizes[:2] != [3, 3]  # images are around them


def test_rows_that_are_further_apart_than_terms_are_around_them():
    tree = tree_of_columns(1 << 12, 64, rows=5)
    (part,) = parts_of(tree)
    rows = [loop for loop in part.body if getattr(loop, "size", None) == 5]
    assert rows and not any(loop.size == 5 for each in rows for loop in loops_of(each.body))


def limits(monkeypatch, random):
    """Small bounds, so that small programs have blocks, parts, tasks and rows that are jammed."""
    for module, name, values in (
        (column_rules, "MAX_SERIAL_TERMS", (1, 2, 5, 8)),
        (column_rules, "MIN_COPIED_TERMS", (4, 16)),
        (column_rules, "MIN_WORK", (1, 40, 1 << 17)),
        (column_rules, "MIN_BLOCK_BYTES", (8, 32)),
        (column_rules, "MAX_PART_STATES", (16, 1 << 15)),
        (column_rules, "MIN_STATE_WORK", (1, 256)),
        (cpu_rules, "MIN_JAM_POSITIONS", (2, 2, 64)),
        (cpu_rules, "MIN_LOADED_VECTORS", (1, 1, 6)),
    ):
        monkeypatch.setattr(module, name, int(random.choice(values)))


def are_jammed(tree):
    """Whether rows that read values of columns are computed together."""
    return any("rows load" in loop.reason for loop in loops_of(tree.body))


def test_scheduled_columns_compute_what_nests_do(monkeypatch):
    """On an interpreter, over random programs whose columns fill vectors."""
    done, divided, jammed = 0, 0, 0
    for seed in range(scaled(240)):
        random = np.random.default_rng(seed)
        lengths = {"N": FEW, "M": (1, 3, 4, 9, 17, 40), "C": (4, 8, 12)}
        program = Program(seed, lengths, values_of_columns if seed % 2 else None)
        limits(monkeypatch, random)
        with KernelsTransformer() as transformer:
            for nest in nests_of(transformer.computation(program.results, *program.leaves)):
                if nest.across is None or nest.arrays or not isinstance(nest.across.extent, int):
                    continue
                tree = schedule(nest, NARROW[int(random.choice([2, 4]))])
                if not all(map(is_vectorised, loops_of(tree.body))):
                    continue
                memory = memory_of(nest, program.lengths, random)
                agree(nest, tree, memory, program.lengths, random, [seed])
                done += any(loop.kind is Kind.COLUMNS for loop in loops_of(from_nest(nest).body))
                divided += bool(parts_of(tree))
                jammed += are_jammed(tree)
    assert done >= scaled(240) // 10, done
    assert min(divided, jammed) >= scaled(240) // 40, (divided, jammed)


def test_columns_in_loops_of_compilers_compute_what_nests_do(monkeypatch):
    """On an interpreter: runs of a few columns, passes one after another, and tiles."""
    done, runs = 0, 0
    for seed in range(scaled(180)):
        random = np.random.default_rng(seed)
        lengths = {"N": FEW, "M": (1, 3, 4, 9, 17, 40), "C": (1, 2, 3, 5, 7, 12)}
        program = Program(seed, lengths, (None, values_of_columns, columns)[seed % 3])
        limits(monkeypatch, random)
        for name, choices in (
            ("MIN_LONG_COLUMNS", (8, 64)),
            ("MIN_RUNS", (1, 4)),
            ("MAX_PASS_COLUMNS", (1, 8192)),
            ("MAX_CROSSED_TERMS", (2, 64)),
            ("MAX_CROSSED_COLUMNS", (2, 64)),
            ("MAX_OPEN_BLOCK_BYTES", (16, 1024)),
        ):
            monkeypatch.setattr(column_lanes, name, int(random.choice(choices)))
        with KernelsTransformer() as transformer:
            for nest in nests_of(transformer.computation(program.results, *program.leaves)):
                if nest.across is None or not any(each.reductions for each in nest.passes):
                    continue
                tree = schedule(nest, VectorWidth(16, 4, compiled=True))
                assert not any(loop.kind is Kind.COLUMNS for loop in loops_of(tree.body))
                memory = memory_of(nest, program.lengths, random)
                agree(nest, tree, memory, program.lengths, random, [seed])
                done += 1
                runs += any(loop.kind is Kind.BLOCK for loop in loops_of(tree.body))
    assert min(done, runs) >= scaled(180) // 10, (done, runs)


@native_only
@for_each("dtype", ["float32", "float64"])
@for_each("columns", [64, 272, 2112])
def test_values(dtype, columns):
    """Bits are those of one thread, and of known lengths those of open ones without parts."""
    n, c = Axis("N"), Axis("C", columns)
    x = geon.placeholder([n, c], dtype)
    centred = x - geon.mean(x, n)
    results = [geon.sum(x, n), geon.sum(centred * centred, n), centred * 2]
    found = {}
    for threads in (1, 3):
        with geon.NativeTransformer(threads=threads) as native:
            f = native.computation(results, x)
            for terms in (0, 1, 31, 32, 33, 63, 70, 3000):
                values = np.random.default_rng(terms).normal(size=(terms, columns)).astype(dtype)
                found[threads, terms] = f(values)
                exact = values.astype("float64")
                mean = exact.sum(0) / max(terms, 1)
                wanted = [exact.sum(0), ((exact - mean) ** 2).sum(0), (exact - mean) * 2]
                for ours, theirs, right in zip(
                    found[threads, terms], found[1, terms], wanted, strict=True
                ):
                    np.testing.assert_array_equal(ours, theirs)
                    np.testing.assert_allclose(ours, right, rtol=2e-6, atol=2e-6 * terms**0.5)


@native_only
@for_each("terms, hidden", [(2, False), (4, True), (6, False), (8, True)])
def test_strides_of_columns_that_compilers_make_worse_vectors_of_are_hidden(terms, hidden):
    x = geon.placeholder([Axis("N"), Axis("K", terms)], "float64")
    f = geon.NativeTransformer().computation(geon.argmin(x, "K"), x)
    values = np.random.default_rng(terms).normal(size=(1001, terms))
    np.testing.assert_array_equal(f(values), values.argmin(1))
    assert (f" * one * {terms}" in f.source) is hidden


@native_only
def test_rows_of_columns_that_are_unrolled_keep_their_vectors_adjacent():
    """The gradient of a batch norm: a third pass reads values of columns for several rows."""
    n, h, w, c, y = Axis("N"), Axis("H", 8), Axis("W", 8), Axis("C", 64), Axis("Y", 10)
    axes = [[n, h, w, c], [c], [c], [c, y]]
    x, scale, shift, weights = (geon.placeholder(each) for each in axes)
    mean, spread = geon.mean(x, out_axes=[c]), geon.variance(x, out_axes=[c])
    normal = geon.relu((x - mean) * geon.rsqrt(spread + 1e-5) * scale + shift)
    scores = geon.dot(geon.mean(normal, reduction_axes=[h, w]), weights)
    slope = geon.deriv(geon.sum(geon.square(scores)), x)
    random = np.random.default_rng(0)
    shapes = (32, 8, 8, 64), (64,), (64,), (64, 10)
    values = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as plain:
        found, wanted = (
            each.computation(slope, x, scale, shift, weights) for each in (native, plain)
        )
        text = found.explain("schedule")
        assert "rows load" in text and "(columns" not in text and "columns of" in text
        right = wanted(*values)
        np.testing.assert_allclose(found(*values), right, atol=1e-5 * np.abs(right).max())


@native_only
def test_random_columns_have_the_values_of_numpy(monkeypatch):
    """Rows that read values of columns, several together, of known and open lengths."""
    monkeypatch.setattr(cpu_rules, "MIN_JAM_POSITIONS", 2)
    monkeypatch.setattr(cpu_rules, "MIN_LOADED_VECTORS", 1)
    together, cases, jammed = Together(divided=True), [], 0
    for seed in range(scaled(180)):
        lengths = {"N": FEW, "M": (1, 3, 4, 9, 17), "C": (64, 80)}
        program = Program(seed, lengths, values_of_columns)
        f = together.transformer(2).computation(program.results, *program.leaves)
        together.add(f)
        jammed += "rows load" in f.explain("schedule")
        cases.append((seed, program, f))
    together.compile()
    assert jammed >= scaled(180) // 8, jammed
    for seed, program, f in cases:
        random, plain = np.random.default_rng(seed), geon.NumPyTransformer()
        shapes = [[program.lengths[axis.name] for axis in leaf.axes] for leaf in program.leaves]
        values = [random.normal(size=each) for each in shapes]
        arrays = [x.astype(leaf.dtype) for x, leaf in zip(values, program.leaves, strict=True)]
        for ours, right in zip(
            f(*arrays), plain.computation(program.results, *program.leaves)(*arrays), strict=True
        ):
            most = np.abs(right).max(initial=1)
            np.testing.assert_allclose(ours, right, atol=1e-5 * most, err_msg=str(seed))
    assert not together.missed
