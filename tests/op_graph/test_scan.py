"""``scan``: what it computes, what is one op, what it refuses, and its derivatives to order 3."""

import dataclasses

import numpy as np
import pytest

import geon
from geon.op_graph.core.interning import OwnTable
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.op_graph import among, deep_order, post_order
from geon.op_graph.text.fingerprint import canonical
from geon.op_graph.transforms.clone import adopt, notes_of
from geon.op_graph.transforms.functionalize import functional
from geon.transformers.lowering.rules.program import build_program

T, H = geon.Axis("T"), geon.Axis("H", 3)


def net(x, w):
    """Last carries and stacked values of a recurrent net that counts its steps."""

    def step(carry, each):
        h = geon.tanh(geon.cast_axes(geon.dot(w, carry["h"]), [H]) + each)
        return {"h": h, "n": carry["n"] + 1}, h * 2

    init = {"h": geon.broadcast(geon.constant(0.0), [H]), "n": 0}
    return geon.scan(step, init, x, over=T)


def net_by_numpy(x, w):
    h, seen = np.zeros(3, np.float32), []
    for each in x:
        h = np.tanh(w @ h + each)
        seen.append(2 * h)
    return h, np.array(seen, np.float32).reshape(-1, 3)


@pytest.fixture
def leaves():
    return geon.placeholder([T, H], name="x"), geon.placeholder([H.prime, H], name="w")


def value(op, known, **lengths):
    return interpret([op], known, lengths)[op]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_it_carries_and_stacks(leaves, count):
    x, w = leaves
    last, stacked = net(x, w)
    random = np.random.default_rng(0)
    known = {x: random.normal(size=(count, 3)), w: random.normal(size=(3, 3))}
    h, seen = net_by_numpy(known[x], known[w])
    np.testing.assert_allclose(value(stacked, known, T=count), seen, rtol=1e-5)
    np.testing.assert_allclose(value(last["h"], known, T=count), h, rtol=1e-5)
    assert value(last["n"], known, T=count) == count
    assert stacked.axes.names == ("T", "H")


def test_equal_scans_are_one_op(leaves):
    assert net(*leaves)[1] is net(*leaves)[1]


def test_what_does_not_depend_on_the_step_is_outside():
    x, a = geon.placeholder([T]), geon.placeholder([])
    costly = geon.exp(a)
    last, _ = geon.scan(lambda c, each: (c * geon.exp(a) + each, None), 0.0, x)
    region = last.args[0]
    assert among(costly, region.args)
    (body,) = region.bodies
    assert all(op.primitive.name != "exp" for op in post_order(body.results))
    assert {op.primitive.name for op in post_order(body.results) if not op.args} == {"parameter"}


def test_views_of_what_all_steps_read_are_no_copies():
    w = geon.placeholder([H, H.prime])
    last, _ = geon.scan(
        lambda c, each: (geon.cast_axes(geon.dot(geon.reorder(w, [H.prime, H]), c), [H]), None),
        geon.placeholder([H]),
        over=geon.Axis("S", 4),
    )
    assert among(w, last.args[0].args)


@dataclasses.dataclass(frozen=True)
class Pair:
    left: object
    right: object


def test_structures_come_back_as_they_were():
    x = {"a": geon.placeholder([T]), "b": [geon.placeholder([T, H])]}
    init = Pair(0.0, [geon.placeholder([H])])

    def step(carry, each):
        return Pair(carry.left + each["a"], [carry.right[0] + each["b"][0]]), None

    last, values = geon.scan(step, init, x, over="T")
    assert isinstance(last, Pair) and last.right[0].axes == geon.Axes(H) and values is None


def test_the_step_is_called_once():
    calls = []
    geon.scan(lambda c, e: (calls.append(e) or c, None), 0.0, geon.placeholder([T]))
    assert len(calls) == 1


def test_the_number_of_the_step():
    last, seen = geon.scan(lambda c, n: (c + n, n), 0, geon.iota(T))
    assert last.args[0].args == last.args[0].args[:1]  # no stack of numbers is read
    assert value(last, {}, T=5) == 10
    np.testing.assert_array_equal(value(seen, {}, T=5), np.arange(5))


def test_dumps_and_loads(leaves):
    last, stacked = net(*leaves)
    text = geon.dumps(stacked, last["h"])
    again = geon.loads(text)
    assert geon.dumps(*again) == text
    assert canonical(again)[0] == canonical([stacked, last["h"]])[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"int64", {"attrs": [4', '"int64", {"attrs": [3', "parameter 4"),
        ('["body", [', '["body", [1, ', "has an op"),
    ],
)  # fmt: skip
def test_bodies_in_dumps_are_checked(leaves, old, new, message):
    text = geon.dumps(net(*leaves)[1], notes=False)
    assert old in text
    with pytest.raises(geon.DumpError, match=message):
        geon.loads(text.replace(old, new))


def test_bodies_in_dumps_have_nothing_free(leaves):
    lines = geon.dumps(net(*leaves)[1], notes=False).split("\n")
    (number,) = [k for k, line in enumerate(lines) if line.startswith('["scan"')]
    head, tail = lines[number].split('["body", ')
    parameters, results = tail.split("], [")
    (free,) = [
        k + 1 for k, line in enumerate(lines) if line.startswith('["placeholder"') and "H'" in line
    ]
    lines[number] = f'{head}["body", {parameters}], [{free}, {results}'  # fmt: skip
    with pytest.raises(geon.DumpError, match="nothing free"):
        geon.loads("\n".join(lines))


def test_a_copy_with_lengths(leaves):
    own = OwnTable()
    last, _ = net(*leaves)
    last = last["h"]
    made = adopt([last], notes_of([last]), own, {"T": 5})[last]
    assert made.args[0].attrs.axis.expression == 5
    assert made.args[0].bodies[0].results[0] is not last.args[0].bodies[0].results[0]


# Before it is compiled ----------------------------------------------------------------------------


def simple(*roots):
    """The roots as a computation simplifies them."""
    pure = functional(roots)
    return build_program(pure, geon.NumPyTransformer.target, OwnTable(open=True)).outputs


def scans(roots):
    return [op for op in deep_order(roots) if op.primitive.name == "scan"]


def test_rules_reach_into_bodies():
    (last,) = simple(
        geon.scan(lambda c, e: (geon.negative(-c) + e * 1, None), 0.0, geon.placeholder([T]))[0]
    )
    (body,) = last.args[0].bodies
    assert [op.primitive.name for op in post_order(body.results)] == ["parameter"] * 2 + ["add"]


def test_scans_that_do_the_same_are_one(leaves):
    x, w = leaves
    last, stacked = net(x, w)
    roots = [last["h"], stacked, *geon.deriv(geon.sum(geon.square(stacked)), [x, w])]
    assert len(scans(roots)) == 3  # with the carries for the derivative, and without them
    assert len(scans(simple(*roots))) == 2


def test_what_nobody_reads_is_gone():
    x, unread = geon.placeholder([T]), geon.placeholder([T])
    a = geon.placeholder([])

    def step(c, e):
        return (c[0] + e[0], c[1] * a + e[1]), (c[1], e[0] * 2)

    (kept, _), (_, seen) = geon.scan(step, (0.0, 1.0), (x, unread), over=T)
    (region,) = scans(simple(kept, seen))
    a = region.attrs
    assert (a.carries, a.xs, len(region.args), len(a.body.results)) == (1, 1, 2, 2)


def rnn():
    """A net over a batch, its loss, its leaves, and the loss's gradients by these."""
    n, c, t = geon.Axis("N", 5), geon.Axis("C", 2), geon.Axis("T", 4)
    x, w = geon.placeholder([n, t, c], name="x"), geon.placeholder([c, H], name="w")
    u, b = geon.placeholder([H.prime, H], name="u"), geon.placeholder([H], name="b")

    def step(h, each):
        old = geon.cast_axes(h, [n, H.prime])
        h = geon.tanh(geon.dot(each, w) + geon.dot(old, u) + b)
        return h, h

    _, seen = geon.scan(step, geon.broadcast(0.0, [n, H]), x, over=t)
    loss = geon.sum(geon.square(seen))
    return loss, (x, w, u, b), geon.deriv(loss, [x, w, u, b])


def products(op):
    return [each for body in op.bodies for each in post_order(body.results)
            if each.primitive.name == "dot"]  # fmt: skip


def test_products_of_stacks_are_before_the_loop_and_gradients_of_weights_after_it():
    loss, leaves, gradients = rnn()
    forward, backward = scans(simple(loss, *gradients))
    assert len(products(forward)) == 1  # the carry with u: that of x with w is one product before
    assert len(products(backward)) == 1  # the cotangent of the carry with u
    assert [op.axes.names for op in backward.bodies[0].results[:2]] == [("N", "H"), ("H",)]
    outside = [op for op in post_order(simple(*gradients)) if op.primitive.name == "dot"]
    assert {"T", "N"} in [set(op.attrs.over) for op in outside]


def test_what_is_moved_out_of_loops_has_the_same_value():
    loss, leaves, gradients = rnn()
    random = np.random.default_rng(0)
    known = {op: random.normal(size=op.axes.lengths).astype(np.float32) for op in leaves}
    roots = [loss, *gradients]
    want = interpret(roots, known, {})
    moved = simple(*roots)
    found = interpret(moved, known, {})
    for old, new in zip(roots, moved, strict=True):
        np.testing.assert_allclose(found[new], want[old], rtol=1e-4, atol=1e-5)
        assert new.axes is old.axes


def test_sums_of_products_that_begin_elsewhere_or_have_other_terms():
    t = geon.Axis("T", 4)
    x, y = geon.placeholder([t, H], name="x"), geon.placeholder([t, H.prime], name="y")
    first = geon.placeholder([H, H.prime], name="first")

    def step(c, each):
        a, b = each
        return (c[0] + geon.outer(geon.multiply, a, b), c[1] + c[2] * geon.sum(a), c[2] * 0.5), None

    (outer, other, _), _ = geon.scan(step, (first, first, first), (x, y), over=t)
    random = np.random.default_rng(0)
    known = {op: random.normal(size=op.axes.lengths).astype(np.float32) for op in (x, y, first)}
    want = interpret([outer, other], known, {})
    moved = simple(outer, other)
    assert moved[0].primitive.name == "add" and len(scans(moved)) == 1
    found = interpret(moved, known, {})
    for old, new in zip([outer, other], moved, strict=True):
        np.testing.assert_allclose(found[new], want[old], rtol=1e-5)


# What is refused ----------------------------------------------------------------------------------

x, h = geon.placeholder([T, H], name="x"), geon.placeholder([H], name="h")
REFUSED = [
    (lambda: geon.scan(lambda c, e: (c, None), h, h, over=T), geon.AxisError, "lacks the axis 'T'"),
    (lambda: geon.scan(lambda c, e: (c, None), h, x), geon.AxisError, "give a geon.Axis"),
    (
        lambda: geon.scan(lambda c, e: (geon.sum(c), None), h, x, over=T),
        geon.AxisError,
        r"carries begins as h.*must stay \(H:3\), not become \(\)",
    ),
    (
        lambda: geon.scan(lambda c, e: (geon.cast(c, "float64"), None), h, x, over=T),
        geon.DTypeError,
        "carries begins as h.*float32.*float64",
    ),
    (
        lambda: geon.scan(lambda c, e: ((c, c), None), h, x, over=T),
        geon.ArgumentError,
        r"init is a tensor, and step returned carries that are tuple",
    ),
    (lambda: geon.scan(lambda c, e: c, h, x, over=T), geon.ArgumentError, "it returns a pair"),
    (
        lambda: geon.scan(lambda c, e: (c, None), h, [geon.placeholder([T.with_length(n)])
                          for n in (4, 5)], over=T),
        geon.AxisError,
        "has length 4 and.* 5",
    ),
    (
        lambda: geon.scan(lambda c, e: (c, geon.placeholder([T])), h, x, over=T),
        geon.AxisError,
        "has the axis 'T' of the loop already",
    ),
    (
        lambda: geon.scan(lambda c, e: (geon.print(c), None), h, x, over=T),
        geon.ArgumentError,
        "^scan at [^ ]*: it runs the effect",
    ),
    (lambda: geon.scan(h, None, x, over=T), geon.ArgumentError, "step, h.*is a tensor and no func"),
    (
        lambda: geon.scan(lambda c, e: (c, e), h, x, over=T, steps=2.0),
        geon.DTypeError,
        "steps=.* is no integer scalar; give the number",
    ),
    (
        lambda: geon.scan(lambda c, e: (c, e), h, x, over=T, steps=2, segments=2),
        geon.ArgumentError,
        "segments=2 beside steps=.*leave one of them out",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_refused_names_both_sides(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "test_scan.py" in str(raised.value)


# Derivatives --------------------------------------------------------------------------------------

N, K = geon.Axis("N", 4), geon.Axis("K", 3)


def program(a, b, xs):
    e = geon.sin(b * b)

    def step(c, x):
        return (geon.sin(c[0] * a) + x * e, c[1] + c[0] * c[0]), c[0] * a

    def outer(c, x):
        inner, _ = geon.scan(lambda d, _: (d * a + geon.sin(c), None), x, over=K)
        return inner, None

    (h, s), ys = geon.scan(step, (b, geon.cast(0.0, "float64")), xs, over=N)
    inner, _ = geon.scan(outer, h, ys, over=N, reverse=True)
    return s * inner + h


@pytest.fixture(scope="module")
def scalars():
    a, b = (geon.placeholder([], "float64") for _ in range(2))
    xs = geon.placeholder([N], "float64")
    data = {a: np.array(0.7), b: np.array(-0.4), xs: np.array([0.3, -0.2, 0.5, 0.9])}
    return program(a, b, xs), a, b, xs, data


def slope(op, data, leaf, direction=1.0, step=1e-5):
    ends = [value(op, {**data, leaf: data[leaf] + s * step * direction}) for s in (1, -1)]
    return (ends[0] - ends[1]) / (2 * step)


@pytest.mark.parametrize(
    "derive", [lambda y, x: geon.deriv(y, x), lambda y, x: geon.jvp(y, x, 1.0)], ids="rf"
)
def test_derivatives_of_nests_to_order_3(scalars, derive):
    y, a, b, _, data = scalars
    of = y
    for _ in range(3):
        below, of = of, derive(of, a)
        np.testing.assert_allclose(value(of, data), slope(below, data, a), rtol=1e-6)
    np.testing.assert_allclose(value(derive(y, b), data), slope(y, data, b), rtol=1e-6)


def test_derivatives_by_stacks_and_across_modes(scalars):
    y, _, _, xs, data = scalars
    g = geon.deriv(y, xs)
    want = [slope(y, data, xs, row) for row in np.eye(4)]
    np.testing.assert_allclose(value(g, data), want, rtol=1e-6)
    along = np.arange(4.0)
    both = geon.hvp(y, xs, geon.constant(along, axes=[N]))
    np.testing.assert_allclose(value(both, data), slope(g, data, xs, along), rtol=1e-5)


def test_what_derivatives_make_of_what_all_steps_read():
    x, w = geon.placeholder([N], "float64"), geon.placeholder([], "float64")
    last, _ = geon.scan(lambda c, e: (geon.sin(c - w) * (e - w), None), w * w, x)
    random = np.random.default_rng(0)
    data = {x: random.normal(size=4), w: np.array(0.3)}
    for derived in (geon.deriv(last, w), geon.jvp(last, w, 1.0)):
        np.testing.assert_allclose(value(derived, data), slope(last, data, w), rtol=1e-6)
        twice = geon.jvp(derived, w, 1.0)
        np.testing.assert_allclose(value(twice, data), slope(derived, data, w), rtol=1e-6)


def along_axes():
    """The last carry and a sum of a scan over examples, its leaves, and their values."""
    t, n, b = geon.Axis("T", 3), geon.Axis("N", 4), geon.Axis("B", 2)
    x, z = geon.placeholder([t, b, n], "float64"), geon.placeholder([b, n], "float64")
    w = geon.placeholder([n], "float64")

    def step(c, e):
        return geon.tanh(geon.flip(c, n) * w + geon.sin(e)), geon.sum(c * w, n)

    last, seen = geon.scan(step, z, x, over=t)
    random = np.random.default_rng(0)
    data = {op: random.normal(size=op.axes.lengths) for op in (x, z, w)}
    return last, geon.sum(last * last) + geon.sum(seen), w, data


def columns(op, data, w):
    return np.stack([slope(op, data, w, row) for row in np.eye(4)], -1)


def test_jacobians_and_hessians():
    last, loss, w, data = along_axes()
    np.testing.assert_allclose(
        value(geon.jacobian(last, w), data), columns(last, data, w), atol=1e-7
    )
    g = geon.deriv(loss, w)
    np.testing.assert_allclose(value(geon.hessian(loss, w), data), columns(g, data, w), atol=1e-6)


def test_many_directions_and_derivatives_of_each_example():
    last, loss, w, data = along_axes()
    many = geon.placeholder([w.axes[0], geon.Axis("K", 5)], "float64")
    directions = np.random.default_rng(1).normal(size=(4, 5))
    found = value(geon.hvp(loss, w, many), {**data, many: directions})
    g = geon.deriv(loss, w)
    want = np.stack([slope(g, data, w, row) for row in directions.T], -1)
    np.testing.assert_allclose(found, want, atol=1e-6)
    each = geon.sum(last * last, out_axes=["B"])
    per = geon.deriv(each, w, per="B")
    np.testing.assert_allclose(value(per, data), columns(each, data, w), atol=1e-7)


def test_a_case_over_further_axes():
    x, i = geon.placeholder([N], "float64"), geon.placeholder([], "int64")
    y = geon.case_of(i, [lambda: geon.sin(x), lambda: x * x], default=lambda: geon.flip(x, N))
    data = np.array([0.3, -0.2, 0.5, 0.9])
    wanted = [np.diag(np.cos(data)), np.diag(2 * data), np.eye(4)[::-1]]
    for k, want in enumerate(wanted):
        np.testing.assert_allclose(value(geon.jacobian(y, x), {x: data, i: k}), want, atol=1e-9)


def test_a_reverse_keeps_only_what_it_reads():
    x, a = geon.placeholder([N], "float64"), geon.placeholder([], "float64")
    (s, _), _ = geon.scan(lambda c, e: ((c[0] * a + e, c[1] + e), None), (a, a), x)
    stacks = [
        len(op.bodies[0].results)
        for op in deep_order([geon.deriv(s, x)])
        if op.bodies and not op.attrs.reverse
    ]
    assert stacks == []  # a linear recurrence needs none of its carries
    (stacked,) = {
        len(op.bodies[0].results)
        for op in deep_order([geon.deriv(s, a)])
        if op.bodies and not op.attrs.reverse
    }
    assert stacked == 3  # two carries, and the first of them as each step found it
