"""Native kernels that run from trees: which loops are vectors and tasks, and the values."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.transformers.loops.rules.cpu import (
    MIN_PARALLEL_ROWS,
    MIN_SPLIT_VECTORS,
    STRETCH_VECTORS,
    schedule,
)
from geon.transformers.loops.show import show
from geon.transformers.loops.tree import Kind, Role, VectorWidth, loops_of
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
WIDTH = VectorWidth(vector_bytes=64, itemsize=4)


def nest_of(results, *leaves):
    """The nest of a program that is one kernel."""
    (kernel,) = geon.NativeTransformer().computation(results, *leaves).plan.schedule.kernels
    return kernel.work


def scaled(rows, columns):
    """Rows that are scaled, with their placeholders."""
    n, c = Axis("N", rows), Axis("C", columns)
    x, y = geon.placeholder([n, c]), geon.placeholder([c])
    return x * y + x, x, y


def roles(tree):
    """The role and kind of each loop, and the number of its iterations."""
    return [(loop.role, loop.kind, loop.size) for loop in loops_of(tree.body)]


def test_rows_are_tasks_and_their_elements_vectors():
    assert roles(schedule(nest_of(*scaled(40, 64)), WIDTH)) == [
        (Role.TASK, Kind.MAIN, 40),
        (Role.SERIAL, Kind.VECTORS, 4),
        (Role.VECTOR, Kind.LANES, 16),
    ]


def test_a_rest_of_known_length_is_shorter_vectors():
    lanes = [size for role, _, size in roles(schedule(nest_of(*scaled(40, 79)), WIDTH))
             if role is Role.VECTOR]  # fmt: skip
    assert lanes == [16, 8, 4, 2]


def test_what_is_refused_is_shown_with_the_reason():
    text = show(schedule(nest_of(*scaled(400, 64)), WIDTH))
    assert "not jam: an element loads 2 vectors only" in text
    assert "vector i_2 < 16 (lanes):  -- 16 elements of 4 bytes fill a register" in text


@pytest.mark.parametrize("rows", [1, MIN_PARALLEL_ROWS - 1, MIN_PARALLEL_ROWS])
@pytest.mark.parametrize("vectors", [MIN_SPLIT_VECTORS - 1, MIN_SPLIT_VECTORS])
def test_few_long_rows_are_divided(rows, vectors):
    tree = schedule(nest_of(*scaled(rows, 16 * vectors)), WIDTH)
    tasks = [size for role, _, size in roles(tree) if role is Role.TASK]
    whole = vectors if rows == 1 else rows
    divided = 1 < rows < MIN_PARALLEL_ROWS and vectors == MIN_SPLIT_VECTORS
    assert tasks == [rows * -(-vectors // STRETCH_VECTORS) if divided else whole]


@pytest.mark.parametrize("rest", [1, 2, 15, None])
def test_few_long_rows_are_divided_if_their_elements_fill_no_vectors(rest):
    """What is behind the whole vectors of rows is one loop over rows, and no task."""
    length = None if rest is None else 16 * MIN_SPLIT_VECTORS + rest
    tree = schedule(nest_of(*scaled(3, length)), WIDTH)
    stretches, behind = tree.body
    assert (stretches.role, behind.role, behind.kind) == (Role.TASK, Role.SERIAL, Kind.REST)
    assert behind.size == 3
    if rest is not None:
        assert stretches.size == 3 * -(-MIN_SPLIT_VECTORS // STRETCH_VECTORS)


@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("rest", [-1, 0, 1, 15, 16 * STRETCH_VECTORS // 2])
def test_parts_of_rows_have_the_values_of_rows(rest, is_open):
    length = 16 * MIN_SPLIT_VECTORS + rest
    y, *leaves = scaled(3, None if is_open else length)
    random = np.random.default_rng(length)
    given = [random.normal(size=shape).astype("float32") for shape in ((3, length), length)]
    with geon.NativeTransformer(threads=3) as native:
        np.testing.assert_array_equal(
            native.computation(y, *leaves)(*given), given[0] * given[1] + given[0]
        )
