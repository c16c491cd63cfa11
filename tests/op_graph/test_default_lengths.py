"""Default lengths of open axes: set, taken back, and for a block."""

import threading

import numpy as np
import pytest

import geon
from tests.places import here


@pytest.fixture
def axis(request):
    """An open axis of the test's own, with no default."""
    made = geon.Axis(f"N of {request.node.name}")
    yield made
    made.length = None


def test_a_default_can_be_taken_back(axis):
    axis.length = 4
    assert axis.length == 4 and geon.Axis(axis.name).length == 4
    axis.length = None
    assert axis.length == axis.expression
    axis.length = None  # nothing to take back


def test_a_block_gives_lengths_and_takes_them_back(axis, transformer):
    count = geon.sum(geon.iota(axis))
    with geon.lengths({axis: 4}):
        assert axis.length == 4
        with geon.lengths({axis.name: 2}):
            assert axis.length == 2
        assert axis.length == 4
        f = transformer.computation(count)
        assert f() == 6
    assert axis.length == axis.expression
    assert f() == 6  # a computation keeps the lengths of its first call
    with pytest.raises(geon.AxisError, match="nothing gives the open length"):
        transformer.computation(count)


def test_a_block_wins_over_the_setter_and_ends_where_it_raises(axis):
    axis.length = 7
    with pytest.raises(RuntimeError), geon.lengths({axis: 3}):
        assert axis.length == 3
        raise RuntimeError
    assert axis.length == 7


def test_other_threads_do_not_see_a_block(axis):
    seen = []
    with geon.lengths({axis: 3}):
        thread = threading.Thread(target=lambda: seen.append(axis.length))
        thread.start()
        thread.join()
    assert seen == [axis.expression]


@pytest.mark.parametrize("given", [{geon.Axis("C", 3): 3}, {"N": -1}, {"N": 1.5}, {"N": True}, 3])
def test_what_is_no_open_axis_or_no_length(given):
    with pytest.raises(geon.AxisError, match="test_default_lengths.py"), geon.lengths(given):
        pass


def test_an_error_names_the_line_that_set_a_length(axis, transformer):
    x = geon.placeholder([axis], name="x")
    f = transformer.computation(x + 1, x)
    with pytest.raises(geon.FeedError) as caught:
        with geon.lengths({axis: 4}):
            line = here(-1)
            f([1, 2])
    assert f"and 4 in the default that geon.lengths set at tests/op_graph/{line}" in str(
        caught.value
    )
    axis.length, line = 5, here()
    g = transformer.computation(x * 2, x)
    with pytest.raises(geon.FeedError) as caught:
        g([1, 2])
    assert f"the default that axis.length set at tests/op_graph/{line}" in str(caught.value)
    w = geon.Variable([axis], initial_value=lambda axes: 0.0, name="w")
    transformer.set(w, [1, 2])
    h = transformer.computation(w + 1)
    with pytest.raises((geon.FeedError, geon.AxisError)) as caught:
        h()
    assert f"axis.length set at tests/op_graph/{line}" in str(caught.value)


@pytest.mark.parametrize("length", [lambda n: 2 * n + 1, lambda n: n - 3, lambda n: 6 * n // 2])
def test_data_give_the_open_length_of_which_theirs_is_a_linear_function(transformer, length):
    N = geon.Axis("N")
    x = geon.placeholder([geon.Axis("A", length(N.expression))], name="x")
    f = transformer.computation([geon.sum(x), geon.sum(geon.iota(N))], x)
    for n in (5, 3, 4, 5):
        total, indices = f(np.ones(length(n), np.float32))
        assert (total, indices) == (length(n), n * (n - 1) // 2)


def test_lengths_that_no_open_length_gives_are_refused(transformer):
    N = geon.Axis("N")
    x = geon.placeholder([geon.Axis("A", 2 * N.expression + 1)], name="x")
    y = geon.placeholder([N], name="y")
    f = transformer.computation([geon.sum(x), geon.sum(geon.iota(N))], x)
    for n in (0, 4):
        with pytest.raises(geon.FeedError, match=rf"x\(A:2\*N \+ 1\).* has length {n} where"):
            f(np.ones(n, np.float32))
    g = transformer.computation([geon.sum(x), geon.sum(y)], x, y)
    assert g(np.ones(7, np.float32), np.ones(3, np.float32)) == (7, 3)
    with pytest.raises(geon.FeedError, match="has length 7 where .* = 9 is needed"):
        g(np.ones(7, np.float32), np.ones(4, np.float32))
    square = geon.placeholder([geon.Axis("A", N.expression * N.expression)], name="square")
    with pytest.raises(geon.AxisError, match="nothing gives the open length N"):
        transformer.computation(geon.sum(square), square)
