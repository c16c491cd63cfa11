"""Random graphs compiled to C, many in one unit: they mean what the interpreter says.

With a plan and without, on one thread and on three, all bits are equal. Work is divided among
threads from a few statements on, so that the small arrays of these graphs are divided too.
"""

import numpy as np
import pytest
from hypothesis import Phase, given, seed, settings

import geon
from geon.op_graph.op_graph import post_order
from geon.op_graph.values.dtypes import kind
from tests.native.together import Together
from tests.random_graphs import graphs
from tests.test_random_graphs import FAILURES, PARTS, THEMES, check, programs
from tests.tiers import units

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))

UNITS = units(12)  # more with --hypothesis-profile=long
OF = 4  # graphs drawn for each that is compiled
OF_PRODUCTS = 50  # graphs drawn for two that have products of matrices


def drawn(number, each=1):
    """Random graphs: ``each`` of every part, and some with products of matrices."""
    found = []
    for k, part in enumerate(PARTS):
        found += richest(graphs_of(part, each * OF, 1000 * number + k), each)
    part = ("contractions", False, 0)
    cases = graphs_of(part, OF_PRODUCTS * each, 1000 * number + len(PARTS))
    found += richest([case for case in cases if has_product(case)], 2 * each)
    return found


def graphs_of(part, count, number):
    """So many random graphs of a part."""
    theme, effects, _ = part
    found = []

    @seed(number)
    @settings(max_examples=count, phases=[Phase.generate])
    @given(graphs(THEMES[theme], effects))
    def keep(case):
        found.append(case)

    keep()
    return found


def richest(cases, count):
    """Those with the most kinds of ops."""
    return sorted(cases, key=lambda case: -len({op.primitive.name for op in ops_of(case)}))[:count]


def has_product(case):
    """Whether there is a contraction of floats whose operands both have axes of their own."""
    return any(
        kind(op.dtype) == "f" and all(set(arg.axes.names) - set(other.axes.names)
                                      for arg, other in (op.args, op.args[::-1]))
        for op in ops_of(case) if op.primitive.name == "dot"
    )  # fmt: skip


def ops_of(case):
    return post_order(case.results)


def compare(cases, together, name):
    """Hold each to the interpreter; raise the first failure, and say how many there are."""
    made = [programs(case, together.transformer) for case in cases]
    for computations in made:
        for f in computations:
            together.add(f)
    together.compile()
    failed = []
    for number, (case, computations) in enumerate(zip(cases, made, strict=True)):
        try:
            check(case, FAILURES / f"{name}-{number}.geon", computations)
        except AssertionError as error:
            failed.append(error)
    if failed:
        raise AssertionError(f"{len(failed)} of {len(cases)} graphs failed") from failed[0]
    assert not together.missed


def test_programs_of_one_text_have_open_lengths_of_their_own():
    """Programs without elements have one, whatever length is open."""
    together, made = Together(), []
    for lengths in ((None, 0), (0, None), (0, 0)):
        x = geon.placeholder([geon.Axis("N", lengths[0]), geon.Axis("M", lengths[1])])
        f = together.transformer().computation(x * 2, x)
        together.add(f)
        made.append((f, [0 if length is None else length for length in lengths]))
    together.compile()
    for f, shape in made:
        assert f(np.zeros(shape, "float32")).shape == tuple(shape)
    assert not together.missed


@pytest.mark.parametrize("number", UNITS)
def test_random_graphs(number):
    cases = drawn(number)
    assert len(cases) >= len(PARTS)
    compare(cases, Together(divided=True), f"native-{number}")
