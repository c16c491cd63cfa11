"""Which positions go up along loops."""

import pytest

import geon
from geon.op_graph.axes.affine import AffineIndex, Quotient, variable
from geon.transformers.kernels.ir.nest import Loop
from geon.transformers.kernels.nests.iteration_space import goes_up

N = geon.Axis("N").expression
OUTER, INNER = variable("i"), variable("j")


@pytest.mark.parametrize(
    "position, up",
    [
        (OUTER * 5 + INNER, True),
        (OUTER * 10 + INNER * 2 + 3, True),
        (OUTER * 7 + INNER, True),  # gaps
        (OUTER * 5 + INNER + variable("block"), True),  # which both loops stand still for
        (OUTER * 4 + INNER, False),  # the same one again
        (OUTER + INNER * 8, False),
        (OUTER * 5 + INNER * -1, False),
        (INNER, False),
        (OUTER * 5, False),
        (OUTER * 5 + variable(Quotient(INNER, 2)), False),
        (AffineIndex(), False),
    ],
    ids=str,
)
def test_positions_along_two_loops(position, up):
    assert goes_up(position, [Loop("i", ("A",), 8), Loop("j", ("B",), 5)]) == up


def test_positions_along_loops_of_open_length():
    loops = [Loop("i", ("A",), 8), Loop("j", ("B",), N)]
    assert goes_up(OUTER * N + INNER, loops)
    assert not goes_up(OUTER * 5 + INNER, loops)
    assert goes_up(AffineIndex(), [])
