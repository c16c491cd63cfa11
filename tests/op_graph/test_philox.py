"""Philox4x32-10: published answers, and words that depend on nothing but seed and counter."""

import ast
import inspect

import numpy as np
import pytest

from geon.op_graph.random import philox as module
from geon.op_graph.random.philox import philox, random_bits

ANSWERS = [
    (
        "00000000 00000000 00000000 00000000",
        "00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def words_of(text):
    return tuple(int(word, 16) for word in text.split())


def draw(shape, dtype=np.uint32, **where):
    out = np.empty(shape, dtype)
    random_bits(out, **{"key": 0x0123456789ABCDEF, "draw": 5, "call": 9, **where})
    return out


@pytest.mark.parametrize(("counter", "key", "expected"), ANSWERS)
def test_known_answers(counter, key, expected):
    assert philox(words_of(counter), words_of(key)) == words_of(expected)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 4 * module._BLOCK_COUNTERS + 7])
def test_word_i_is_a_lane_of_its_block(count):
    got = draw(count, call=9 + (3 << 32))
    key = (0x89ABCDEF, 0x01234567)
    for i in {*range(min(count, 9)), *range(max(count - 9, 0), count)}:
        assert got[i] == philox((i // 4, 3, 5, 9), key)[i % 4]


def test_the_shape_and_a_shorter_draw_change_no_word():
    whole = draw(3 * 4 * module._BLOCK_COUNTERS + 5)
    for count in (1, 6, 4 * module._BLOCK_COUNTERS - 1, 4 * module._BLOCK_COUNTERS + 1):
        np.testing.assert_array_equal(draw(count), whole[:count])
    np.testing.assert_array_equal(draw((7, 3, 5)).ravel(), whole[:105])
    np.testing.assert_array_equal(draw(()), whole[0])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 2 * module._BLOCK_COUNTERS + 3])
def test_uint64_takes_two_words_low_first(count):
    words = draw(2 * count).astype(np.uint64)
    expected = words[0::2] | words[1::2] << np.uint64(32)
    np.testing.assert_array_equal(draw(count, np.uint64), expected)


def test_every_part_of_the_counter_and_key_matters():
    base = draw(1000)
    for change in (
        {"key": 1},
        {"key": 1 << 32},
        {"draw": 6},
        {"call": 10},
        {"call": 9 + (1 << 32)},
    ):
        assert (draw(1000, **change) != base).mean() > 0.99


def test_bits_are_balanced():
    words = draw(1 << 16)
    ones = [(words >> np.uint32(bit) & np.uint32(1)).mean() for bit in range(32)]
    assert max(abs(share - 0.5) for share in ones) < 5 * 0.5 / 2**8


@pytest.mark.parametrize(
    "out",
    [np.empty(4, np.float32), np.empty((4, 4), np.uint32)[:, ::2], np.empty(3, np.int64)],
    ids=["float", "strided", "signed"],
)
def test_other_arrays_are_refused(out):
    with pytest.raises(ValueError, match="C-order uint32 or uint64"):
        random_bits(out, 0, 0, 0)


def test_too_many_words_are_refused_before_any_is_made():
    out = np.broadcast_to(np.uint32(0), ((1 << 34) + 1,))
    with pytest.raises(ValueError, match=r"at most 2\*\*34"):
        random_bits(out, 0, 0, 0)


def test_the_module_imports_numpy_alone():
    tree = ast.parse(inspect.getsource(module))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    assert names == {"__future__", "typing", "numpy"}
