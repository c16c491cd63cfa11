"""Windows along an axis: their loops, positions in memory, and which elements they share."""

from itertools import product

import pytest

from geon.op_graph.axes.affine import variable
from geon.op_graph.axes.lengths import Length
from geon.testing.cases import for_each
from geon.transformers.kernels.ir.nest import Loop
from geon.transformers.kernels.products.windows import overlapping_windows, window_loops


def loop(name, extent):
    return Loop(name, (name,), extent)


def shared(kept, summed, strides):
    """The offsets that more than one window reads."""
    far, near = strides[kept.name], strides[summed.name]
    windows = [{far * i + near * k for k in range(summed.extent)} for i in range(kept.extent)]
    return {at for at in set().union(*windows) if sum(at in each for each in windows) > 1}


@for_each("extent", [1, 2, 3, 5])
@for_each("taps", [1, 2, 3])
def test_windows_that_overlap_share_elements(extent, taps):
    kept, summed = loop("i", extent), loop("k", taps)
    found = 0
    for far, near in product(range(7), repeat=2):
        strides = {"i": far, "k": near}
        both = overlapping_windows(kept, summed, strides)
        if both is None:
            multiple = max(far, near) % max(min(far, near), 1) == 0
            assert far != near or min(extent, taps) == 1
            assert not (multiple and min(far, near) > 0 and shared(kept, summed, strides))
            continue
        found += 1
        loops, position = both
        assert (loops.stride * position, loops.dilation * position) == (far, near)
        assert shared(kept, summed, strides) or far == near == 0
    assert found == 0 if min(extent, taps) == 1 else found >= 7


def test_windows_of_open_strides_overlap_if_these_are_equal():
    line = Length.of("W")
    kept, summed = loop("i", Length.of("H")), loop("k", 3)
    loops, position = overlapping_windows(kept, summed, {"i": line, "k": line})
    assert (loops.stride, loops.dilation, position) == (1, 1, line)
    assert overlapping_windows(kept, summed, {"i": line * 2, "k": line}) is None


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_the_loops_of_an_index(stride, dilation):
    kept, other, summed = loop("i", 5), loop("n", 4), loop("k", 3)
    index = variable("i") * stride + variable("k") * dilation + -1
    loops = window_loops(index, [other, kept], [summed])
    assert (loops.kept, loops.summed) == (kept, summed)
    assert (loops.stride, loops.dilation, loops.constant) == (stride, dilation, -1)
    back = loops.reversed()
    for k in range(3):
        assert dilation * k - 1 == back.dilation * (2 - k) + back.constant
    assert loops.position_stride({"i": 7 * stride, "k": 7 * dilation}) == 7
    assert loops.position_stride({"i": 7 * stride + 1, "k": 7 * dilation}) is None
    line = Length.of("W")
    along = loops.position_stride({"i": line * stride, "k": line * dilation})
    assert along == (line if 1 in (stride, dilation) else None)


def test_an_index_of_other_loops_has_none():
    kept, summed = loop("i", 5), loop("k", 3)
    assert window_loops(variable("i") + variable("j"), [kept], [summed]) is None
    assert window_loops(variable("i") + variable("k"), [kept, summed], []) is None
    assert window_loops(variable("i") * Length.of("W"), [kept], [summed]) is None
    only = window_loops(variable("i") * 2, [kept], [summed])
    assert (only.summed, only.stride, only.dilation) == (None, 2, 0)
