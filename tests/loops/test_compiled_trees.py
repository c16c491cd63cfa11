"""Trees of loops that compilers vectorise: buffers, copies past the caches, prefetches, draws."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.testing.cases import for_each
from geon.transformers.kernels.ir.scalar_code import Load
from geon.transformers.kernels.ir.scalar_code import walk as walk_scalars
from geon.transformers.loops import values_ahead
from geon.transformers.loops.rules import streaming_copies
from geon.transformers.loops.rules.cpu import schedule
from geon.transformers.loops.show import show
from geon.transformers.loops.tree import (
    CachePrefetch,
    Draw,
    Fold,
    Kind,
    Role,
    VectorWidth,
    Write,
    loops_of,
    walk,
)
from tests.kernels.transformer import KernelsTransformer
from tests.loops.trees import agree, memory_of, nests_of

N, M = Axis("N", 13), Axis("M", 11)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few iterations, so that small arrays have several."""
    monkeypatch.setattr(values_ahead, "MAX_BUFFERED_TURNS", 8)
    monkeypatch.setattr(values_ahead, "MAX_BUFFERED_WORDS", 16)
    monkeypatch.setattr(streaming_copies, "STREAMED_BLOCK_BYTES", 40)
    monkeypatch.setattr(streaming_copies, "MAX_BLOCK_TURNS", 6)
    monkeypatch.setattr(streaming_copies, "MIN_STREAMED_TURNS", 3)
    monkeypatch.setattr(streaming_copies, "MIN_WORK", 1)


def turned(length):
    """A truth of rows and short axes that memory has in another order."""
    k = Axis("K", length)
    x, y = geon.placeholder([N, M, k]), geon.placeholder([M, N, k], dtype="bool")
    return [x * geon.broadcast(geon.cast(y, "float32"), x.axes)], [x, y]


def shared_lines(length):
    """Short rows of a matrix, and of its transpose, whose lines have other rows, too."""
    a, b, c = Axis("A", 30), Axis("B", 7), Axis("C", length)
    x, y = geon.placeholder([N, a, b, c]), geon.placeholder([N, b, a, c])
    return [geon.tanh(geon.reorder(x, [N, b, a, c])) + geon.exp(y)], [x, y]


def strided(step, start=0):
    """Elements of which each ``step``-th one is another."""
    k = Axis("K", 3)
    x = geon.placeholder([N, k])
    part = x[{N: slice(start, None, step)}]
    return [geon.deriv(geon.sum(geon.square(part)), x) + geon.sign(x)], [x]


def reversed_halves():
    """Rows that are read backwards beside elements of another width."""
    x = geon.placeholder([N, M])
    return [geon.cast(x[:, ::-1], "float64")], [x]


def gathered():
    """Rows of a large table at computed positions."""
    v, w = Axis("V", 1 << 12), Axis("W", 5)
    table, at = geon.placeholder([v, w]), geon.placeholder([N], dtype="int64")
    return [geon.gather(table, at, v) * 2], [table, at]


def drawn():
    """Random bits of rows."""
    x = geon.placeholder([N, M])
    return [x + geon.Random(3).uniform([N, M])], [x]


def mixed():
    """Two results of different widths."""
    x = geon.placeholder([N, M])
    return [geon.cast(x, "float64") * 2, x > 0], [x]


def stored_and_reduced(reduce, *axes):
    """A result, and its reduction."""
    made = geon.cast(x := geon.placeholder([N, M]), "float64") * 2
    return [made, reduce(made, *axes)], [x]


def reordered(reduce):
    """A reduction of values that are not in memory, over axes in another order than memory's."""
    x = geon.placeholder([Axis("K", 2), Axis("N", 40), Axis("M", 50)])
    return [reduce(geon.square(geon.reorder(x[{"K": 1}], ["M", "N"]) - 2))], [x]


PROGRAMS = {
    **{f"turned {length}": (lambda length=length: turned(length)) for length in (2, 3, 5)},
    **{
        f"strided {step} from {start}": (lambda step=step, start=start: strided(step, start))
        for step in (2, 3, 5)
        for start in (0, 1, 2)
    },
    "shared lines": lambda: shared_lines(5),
    "lines of one row": lambda: shared_lines(17),
    "reversed": reversed_halves,
    "gathered": gathered,
    "drawn": drawn,
    "mixed": mixed,
    "maximum of all": lambda: stored_and_reduced(geon.max),
    "maximum of rows": lambda: stored_and_reduced(geon.max, M),
    "sum of all": lambda: stored_and_reduced(geon.sum),
    "sum of rows": lambda: stored_and_reduced(geon.sum, M),
    "reordered sum": lambda: reordered(geon.sum),
    "reordered maximum": lambda: reordered(geon.max),
}


def trees_of(name):
    """The nests of a program with their trees, and random numbers."""
    results, leaves = PROGRAMS[name]()
    with KernelsTransformer() as transformer:
        for nest in nests_of(transformer.computation(results, *leaves)):
            past = frozenset(range(len(nest.operands)))
            yield nest, schedule(nest, VectorWidth(64, 4, compiled=True, past=past))


@for_each("name", PROGRAMS)
def test_trees_compute_what_nests_do(name, small_blocks):
    random = np.random.default_rng(len(name))
    for nest, tree in trees_of(name):
        agree(nest, tree, memory_of(nest, {}, random), {}, random)


@pytest.mark.parametrize("name", ["turned 3", "strided 3 from 1"])
def test_values_of_short_axes_are_computed_ahead(name, small_blocks):
    ((_, tree),) = trees_of(name)
    assert any(loop.variable.endswith("_at") for loop in loops_of(tree.body))
    assert any(loop.kind is Kind.DIGIT for loop in loops_of(tree.body))


def test_rows_that_read_the_same_lines_compute_a_block_before_the_next_one(monkeypatch):
    """The tasks are neighbouring rows of a block, then the next block of the same rows."""
    monkeypatch.setattr(values_ahead, "MAX_BUFFERED_TURNS", 16)
    ((_, tree),) = trees_of("shared lines")
    (task,) = [loop for loop in loops_of(tree.body) if loop.role is Role.TASK]
    assert task.size == 13 * 10 * 7  # rows of N, blocks of three elements of A, and rows of B
    assert "x1[105 * (i_0 // 7) + 35 * j_2_at_0 + 5 * (i_0 % 7) + " in show(tree)


def test_rows_that_share_no_lines_compute_all_their_blocks_at_once(monkeypatch):
    """In memory, rows are further apart than a line."""
    monkeypatch.setattr(values_ahead, "MAX_BUFFERED_TURNS", 64)
    ((_, tree),) = trees_of("lines of one row")
    assert any("share no lines" in each for each in tree.refusals)


@pytest.mark.parametrize(("name", "kind"), [("gathered", CachePrefetch), ("drawn", Draw)])
def test_rows_are_prefetched_and_bits_drawn_ahead(name, kind):
    found = [each for _, tree in trees_of(name) for each, _ in walk(tree.body)]
    assert any(isinstance(each, kind) for each in found)


def test_stores_are_copied_past_the_caches(small_blocks):
    ((_, tree),) = trees_of("mixed")
    assert show(tree).count("past the caches") == 2


@for_each("name, copies", [("maximum of all", 1), ("maximum of rows", 1), ("sum of all", 0)])
def test_stores_of_loops_that_fold_are_copied_past_the_caches(name, copies, small_blocks):
    """A loop is cut into blocks of a buffer unless that would add its terms in another order."""
    ((_, tree),) = trees_of(name)
    streamed = [each for each, _ in walk(tree.body) if isinstance(each, Write) and each.streamed]
    assert len(streamed) == copies
    assert any("floats in another order" in each for each in tree.refusals) is (copies == 0)


@for_each("name", ["reordered sum", "reordered maximum"])
def test_reductions_run_along_adjacent_elements(name):
    ((_, tree),) = trees_of(name)
    (fold, above), *_ = [
        (each, above)
        for each, above in walk(tree.body)
        if isinstance(each, Fold)
        and any(isinstance(node, Load) for node in walk_scalars(*each.elements))
    ]
    (load,) = {node for node in walk_scalars(*fold.elements) if isinstance(node, Load)}
    assert load.offset.step(above[-1].variable) == 1
    assert above[-1].role is Role.SIMD


def rows_of_open_length(rows):
    """The tree of rows of bytes."""
    x, y = geon.placeholder(Axis("N", rows), "int8"), geon.placeholder(Axis("M"), "int8")
    with KernelsTransformer() as transformer:
        (nest,) = nests_of(transformer.computation(geon.outer(geon.minimum, x, y), x, y))
    past = frozenset(range(len(nest.operands)))
    return schedule(nest, VectorWidth(64, 4, compiled=True, past=past))


def test_short_rows_of_open_length_are_stored_without_blocks():
    """Blocks, buffers and choices would cost each row as much as its few elements."""
    tree = rows_of_open_length(2000)
    (choice,) = tree.body
    (few,) = choice.guards
    assert (few.low, few.high) == (0, streaming_copies.MIN_STREAMED_TURNS)
    assert [loop.role for loop in loops_of(choice.then)] == [Role.TASK, Role.SIMD]
    assert show(tree).count("past the caches") == 1


@for_each("rows, joined", [(2000, False), (20, True)])
def test_many_rows_are_not_joined_with_an_open_number_of_blocks(rows, joined):
    """A division for each block is what a short row would cost; few rows are no tasks enough."""
    tree = rows_of_open_length(rows)
    _, long = [each for each in loops_of(tree.body) if each.role is Role.TASK]
    assert (long.size == rows) is not joined
