"""Copies of operands of which a kernel stores a part: of any size and place, on any threads."""

import numpy as np
import pytest

import geon
from geon.transformers.native.library.library_kernels import COPIED_BYTES_PER_TASK
from geon.transformers.native.toolchain.compilers import find_toolchain

from .ways import store_past

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

N = geon.Axis("N")
# In bytes: around a line of cache, a task, and some of them.
SIZES = [
    1,
    2,
    63,
    64,
    65,
    130,
    COPIED_BYTES_PER_TASK - 1,
    COPIED_BYTES_PER_TASK,
    COPIED_BYTES_PER_TASK + 1,
    3 * COPIED_BYTES_PER_TASK + 17,
]


@pytest.mark.parametrize("is_past", [False, True], ids=["cached", "past"])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_all_but_the_part_is_as_it_was(threads, is_past):
    x = geon.placeholder([N], dtype="uint8")
    with geon.make_transformer("native", threads=threads) as transformer:
        f = transformer.computation(geon.update(x, 7, {N: -1}), x)
        assert "geon_fill(threads" in f.source
        if is_past:
            store_past(f, 1)
        for size in SIZES:
            given = np.random.default_rng(size).integers(0, 256, size, np.uint8)
            wanted = np.append(given[:-1], np.uint8(7))
            np.testing.assert_array_equal(f(given), wanted)
            for begin in (1, 3, 40):  # places that begin within a line
                held = np.full(size + 64, 5, np.uint8)
                f(given, out=held[begin : begin + size])
                np.testing.assert_array_equal(held[begin : begin + size], wanted)
                assert (held[:begin] == 5).all() and (held[begin + size :] == 5).all()


@pytest.mark.parametrize("lengths", [(5, 7), (7, 5), (3, 4_000_000)])
def test_two_of_other_lengths_are_copied_each_as_a_whole(lengths):
    """Their loops go over one element each; how much is copied is another thing."""
    axes = [geon.Axis(name, length) for name, length in zip("AB", lengths, strict=True)]
    inputs = [geon.placeholder([a]) for a in axes]
    with geon.make_transformer("native") as transformer:
        f = transformer.computation(
            [geon.update(x, -1.0, {a: 0}) for x, a in zip(inputs, axes, strict=True)], *inputs
        )
        given = [np.arange(length, dtype=np.float32) for length in lengths]
        held = [np.full(length, np.nan, np.float32) for length in lengths]
        for found, array in zip(f(*given, out=tuple(held)), given, strict=True):
            np.testing.assert_array_equal(found, [-1, *array[1:]])
