"""Which iterations of a loop access parts of memory of their own."""

import pytest

from geon import Axis
from geon.op_graph.axes.affine import AffineIndex, variable
from geon.transformers.loops.access import own_part

N, P = Axis("n").length, Axis("p").length
EXTENTS = {"i": 5, "k": N + 1, "j": P}


def block(step_of_i, step_of_j=N + 1):
    """The offset of element ``k`` of part ``j`` of block ``i``."""
    return variable("i") * step_of_i + variable("j") * step_of_j + variable("k")


@pytest.mark.parametrize("name", ["i", "j", "k"])
def test_strides_may_be_sums_of_open_lengths(name):
    inside = {"i": "ijk", "j": "jk", "k": "kj"}[name]
    assert own_part(block(P * (N + 1)), name, {x: EXTENTS[x] for x in inside}) is not None


def test_blocks_that_overlap_are_shared():
    assert own_part(block(P * N), "i", EXTENTS) is None
    assert own_part(block(P * (N + 1), N), "j", {x: EXTENTS[x] for x in "jk"}) is None


def test_single_elements_are_apart_if_their_stride_is_not_zero():
    assert own_part(variable("i") * (N + 1), "i", {"i": 5}) is not None
    assert own_part(variable("i") * (N + P), "i", {"i": 5}) is None
    assert own_part(AffineIndex(), "i", {"i": 5}) is None
