"""The programs that the op-graph description writes: what a user may rely on, word for word."""

import numpy as np

import geon as be
import geon.frontends.base.axis as ax
from geon.op_graph.op_graph import same_ops
from tests.kinds import numpy_only


def statements(source):
    """The statements of the emitted ``run``, without comments."""
    body = source[source.index("def run(") :].splitlines()[1:]
    return [line.split("  #")[0].strip() for line in body]


def ufunc_calls(source):
    """The NumPy calls among them that compute."""
    return [s for s in statements(source) if s.startswith("np.") and "np.empty" not in s]


# Leaves -----------------------------------------------------------------------------------------


def test_placeholders_take_axes_in_every_form():
    forms = [
        be.placeholder(axes=be.Axes(ax.C, ax.W, ax.H, ax.N)),
        be.placeholder(axes=be.Axes((ax.C, ax.W, ax.H, ax.N))),
        be.placeholder(axes=be.Axes([ax.C, ax.W, ax.H, ax.N])),
        be.placeholder(axes=[ax.C, ax.W, ax.H, ax.N]),
        be.placeholder(axes=(ax.C, ax.W, ax.H, ax.N)),
    ]
    for x in forms:
        assert x.axes is be.Axes(ax.C, ax.W, ax.H, ax.N)
        assert x.dtype == np.float32
    assert len(set(forms)) == len(forms)
    assert be.placeholder(axes=ax.N).axes is be.Axes(ax.N)


def test_a_placeholder_without_axes_is_a_scalar():
    assert be.placeholder(axes=be.Axes()).axes is be.Axes()
    assert be.placeholder().axes is be.Axes()


def test_a_variable_has_axes_and_an_initial_value(transformer):
    N = be.Axis("N", 3)
    for value, expected in [
        (0, [0, 0, 0]),
        (1.5, [1.5, 1.5, 1.5]),
        ([1, 2, 3], [1, 2, 3]),
        (np.array([1, 2, 3], np.float32), [1, 2, 3]),
        (lambda axes: np.arange(axes[0].length), [0, 1, 2]),
        (be.cast(be.iota(N), "float32") * 2, [0, 2, 4]),
    ]:
        v = be.Variable(axes=be.Axes(N), initial_value=value)
        assert v.dtype == np.float32
        np.testing.assert_array_equal(transformer.get(v), expected)
        assert transformer.get(v).dtype == np.float32


# In place ---------------------------------------------------------------------------------------


@numpy_only
def test_an_intermediate_is_computed_once_and_in_place(transformer):
    x = be.placeholder(axes=be.Axes(ax.N))
    x1 = x + x
    y = x1 * x1 - x
    f = transformer.computation(y, x)
    np.testing.assert_array_equal(f(np.arange(4.0)), [0, 3, 14, 33])
    # One buffer, which is the result, and every call writes into it: as a person would.
    assert statements(f.source) == [
        "(s0,) = bound",
        "r0 = np.empty(s0, np.float32)",
        "np.add(x0, x0, out=r0)",
        "np.multiply(r0, r0, out=r0)",
        "np.subtract(r0, x0, out=r0)",
        "return (r0,)",
    ]
    assert f.plan.buffers == ()
    assert f.peak_bytes({ax.N: 1000}) == 4000


@numpy_only
def test_every_call_of_an_emitted_program_has_out(transformer):
    x = be.placeholder(axes=be.Axes(ax.C, ax.N))
    w = be.Variable(axes=be.Axes(ax.C), initial_value=1)
    y = be.square(be.exp(be.sigmoid(be.dot(w, x)) * 2 - 1) + 1)
    calls = ufunc_calls(transformer.computation([y, be.sum(y * y)], x).source)
    assert len(calls) > 5
    assert all("out=" in call or call.startswith("np.copyto(") for call in calls)


@numpy_only
def test_an_intermediate_that_is_also_requested_is_kept(transformer):
    x = be.placeholder(axes=be.Axes(ax.N))
    x1 = x + x
    y = x1 * x1 - x
    f = transformer.computation([y, x1], x)
    first, kept = f(np.arange(4.0))
    np.testing.assert_array_equal(first, [0, 3, 14, 33])
    np.testing.assert_array_equal(kept, [0, 2, 4, 6])
    assert ufunc_calls(f.source) == [
        "np.add(x0, x0, out=r1)",
        "np.multiply(r1, r1, out=r0)",
        "np.subtract(r0, x0, out=r0)",
    ]


# State ------------------------------------------------------------------------------------------


def test_set_item_of_a_variable(transformer):
    x = be.Variable(axes=be.Axes(be.Axis("N", 3)), initial_value=[1, 2, 3])
    double = transformer.computation(be.SetItem(x, x + x))
    assert double() is None
    assert double() is None
    np.testing.assert_array_equal(transformer.get(x), [4, 8, 12])
    if transformer.target.name == "numpy":
        assert "np.add(v0, v0, out=v0)" in statements(double.source)  # no copy


def test_set_item_of_a_placeholder_is_seen_later_and_never_by_the_caller(transformer):
    x = be.placeholder(axes=be.Axes(ax.N))
    f = transformer.computation([x * 1, be.sequential([be.SetItem(x, x + x), x * 1])], x)
    given = np.arange(3, dtype=np.float32)
    before, after = f(given)
    np.testing.assert_array_equal(before, [0, 1, 2])
    np.testing.assert_array_equal(after, [0, 2, 4])
    np.testing.assert_array_equal(given, [0, 1, 2])


def test_set_item_of_a_slice(transformer):
    N = be.Axis("N", 5)
    v = be.Variable(axes=be.Axes(N), initial_value=[0, 1, 2, 3, 4])
    transformer.computation(be.SetItem(v[1:3], 7))()
    np.testing.assert_array_equal(transformer.get(v), [0, 7, 7, 3, 4])
    transformer.computation(be.SetItem(v[{N: slice(None, None, 2)}], v[0:3] + 1))()
    np.testing.assert_array_equal(transformer.get(v), [1, 7, 8, 3, 8])
    transformer.computation(be.SetItem(v[1:][1:3][0], -1))()
    np.testing.assert_array_equal(transformer.get(v), [1, 7, -1, 3, 8])
    transformer.computation(be.SetItem(v[::-1], v))()
    np.testing.assert_array_equal(transformer.get(v), [8, 3, -1, 7, 1])


def test_set_item_of_a_slice_of_a_placeholder(transformer):
    x = be.placeholder(axes=be.Axes(ax.N))
    f = transformer.computation(be.sequential([be.SetItem(x[1:3], 9), x * 1]), x)
    given = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(f(given), [0, 9, 9, 3])
    np.testing.assert_array_equal(given, [0, 1, 2, 3])


def test_assign_is_set_item(transformer):
    v = be.Variable(initial_value=2)
    assert be.assign(v, v * 3) is be.SetItem(v, v * 3)
    transformer.computation(be.assign(v, v * 3))()
    assert transformer.get(v) == 6


def test_doall_swaps(transformer):
    p, q = be.Variable(initial_value=1), be.Variable(initial_value=2)
    swap = transformer.computation(be.doall([be.assign(p, q), be.assign(q, p)]))
    swap()
    assert (transformer.get(p), transformer.get(q)) == (2, 1)
    swap()
    assert (transformer.get(p), transformer.get(q)) == (1, 2)


def test_sequential_adds_two_and_yields_the_new_value(transformer):
    v = be.Variable(initial_value=1.5)
    add_two = be.sequential([be.assign(v, v + 1), be.assign(v, v + 1), v])
    f = transformer.computation(add_two)
    assert f() == 3.5
    assert transformer.get(v) == 3.5
    assert f() == 5.5


def test_reads_see_the_value_at_entry(transformer):
    v = be.Variable(initial_value=1)
    f = transformer.computation([v, be.assign(v, v + 1), v * 10])
    first, effect, scaled = f()
    assert (first, effect, scaled) == (1, None, 10)
    assert transformer.get(v) == 2


# The network ------------------------------------------------------------------------------------


def network():
    w = be.Variable(axes=be.Axes(ax.C, ax.W, ax.H, ax.Y), initial_value=0.1)
    x = be.placeholder(axes=be.Axes(ax.C, ax.W, ax.H, ax.N))
    y0 = be.placeholder(axes=be.Axes(ax.Y, ax.N))
    b = be.Variable(axes=be.Axes(ax.Y), initial_value=0)
    y = be.tanh(be.dot(w, x) + b)
    c = be.dot(y - y0, y - y0)
    d = be.deriv(c, w)
    return w, x, y0, b, y, c, d


def test_the_network_has_the_axes_and_variables_it_should():
    w, x, y0, b, y, c, d = network()
    assert y.axes is be.Axes(ax.Y, ax.N)
    assert c.axes is be.Axes()
    assert d.axes is w.axes
    assert same_ops(c.variables(), [w, b])
    assert set(c.placeholders()) == {x, y0}


def test_variables_are_trainable_ones_in_order_of_first_use():
    first, second, third = (be.Variable(initial_value=0) for _ in range(3))
    fixed = be.Variable(initial_value=0, trainable=False)
    assert same_ops((second * fixed + first * third).variables(), [second, first, third])
    assert be.persistent_tensor(initial_value=0).variables() == []
    assert be.temporary_tensor(initial_value=0).variables() == []


def test_the_network_computes_what_numpy_does(transformer):
    w, x, y0, b, y, c, d = network()
    f = transformer.computation([y, c, d], x, y0)
    random = np.random.default_rng(0)
    for n in (4, 1, 7):
        xs, targets = random.normal(size=(2, 3, 4, n)), random.normal(size=(5, n))
        ys, cost, slope = f(xs, targets)
        weights = np.full((2, 3, 4, 5), 0.1)
        expected = np.tanh(np.einsum("cwhy,cwhn->yn", weights, xs))
        np.testing.assert_allclose(ys, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(cost, ((expected - targets) ** 2).sum(), rtol=1e-5)
        inner = 2 * (expected - targets) * (1 - expected**2)
        expected_slope = np.einsum("cwhn,yn->cwhy", xs, inner)
        np.testing.assert_allclose(slope, expected_slope, rtol=1e-4, atol=1e-5)
