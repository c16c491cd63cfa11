"""``while_loop``: what it computes, what it refuses, and its derivatives to order 3."""

import dataclasses

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import evaluate, interpret
from geon.op_graph.op_graph import among, deep_order, post_order
from geon.op_graph.regions import while_deriv
from geon.op_graph.regions.while_deriv import MAX_RECORDED_STEPS, MAX_SEGMENTS, MAX_STACKED_STEPS
from geon.op_graph.text.fingerprint import canonical
from tests.op_graph.test_scan import simple

H = geon.Axis("H", 3)
n = geon.placeholder([], "int64", name="n")
x = geon.placeholder([], "float64", name="x")


def value(op, known):
    return interpret([op], known, {})[op]


def whiles(roots):
    return [op for op in deep_order(roots) if op.primitive.name == "while"]


def collatz(start):
    """How many steps it takes to reach 1."""

    def body(c):
        k, steps = c
        return geon.where(k % 2 == 0, k // 2, 3 * k + 1), steps + 1

    return geon.while_loop(lambda c: c[0] != 1, body, (start, 0))[1]


def powers(count, limit=None, dtype="float64"):
    """Damped powers of x by so many steps, and how many these are."""

    def body(c):
        return {"y": geon.sin(c["y"] * x) + 0.1 * c["y"], "left": c["left"] - 1}

    init = {"y": geon.cast(x, dtype), "left": count}
    return geon.while_loop(lambda c: c["left"] > 0, body, init, limit, count=True)


def powers_by_scan(count):
    t = geon.Axis("T", count)
    return geon.scan(lambda c, _: (geon.sin(c * x) + 0.1 * c, None), x, over=t)[0]


@pytest.mark.parametrize(("start", "steps"), [(1, 0), (2, 1), (6, 8), (27, 111)])
def test_it_runs_while_the_condition_holds(start, steps):
    assert value(collatz(n), {n: start}) == steps


@pytest.mark.parametrize(("limit", "taken"), [(0, 0), (3, 3), (5, 5), (6, 5), (None, 5)])
def test_it_ends_after_max_steps(limit, taken):
    last, steps = powers(n, limit)
    found = interpret([last["left"], steps], {n: 5, x: 0.5}, {})
    assert found[steps] == taken and found[last["left"]] == 5 - taken


def test_the_condition_is_looked_at_before_the_body():
    root = geon.while_loop(lambda c: c > 0, lambda c: c - 1, n)
    assert [value(root, {n: k}) for k in (-3, 0, 2)] == [-3, 0, 0]


@dataclasses.dataclass(frozen=True)
class Pair:
    left: object
    right: object


def test_structures_come_back_as_they_were():
    init = Pair(0.0, [geon.placeholder([H]), {"k": 3}])

    def body(c):
        return Pair(c.left + 1, [c.right[0] * 2, {"k": c.right[1]["k"] - 1}])

    last = geon.while_loop(lambda c: c.right[1]["k"] > 0, body, init)
    assert isinstance(last, Pair) and last.right[0].axes == geon.Axes(H)


def test_both_functions_are_called_once():
    calls = []
    geon.while_loop(lambda c: (calls.append(0), c > 0)[1], lambda c: (calls.append(1), c)[1], n)
    assert calls == [0, 1]


def test_equal_loops_are_one_op():
    assert collatz(n) is collatz(n)


def test_what_does_not_depend_on_carries_is_outside():
    costly = geon.exp(x)
    root = geon.while_loop(lambda c: c < 10 * geon.exp(x), lambda c: c + geon.exp(x), 0 * x)
    region = root.args[0]
    assert any(costly in set(post_order([arg])) for arg in region.args)
    assert all(op.primitive.name != "exp" for op in deep_order([root]) if op not in
               set(post_order([root])))  # fmt: skip
    assert len(region.bodies) == 2 and region.bodies[0].parameters == region.bodies[1].parameters


def test_a_condition_that_reads_no_carry():
    flag = geon.placeholder([], "bool")
    root = geon.while_loop(lambda c: flag, lambda c: c + 1, n, 4)
    assert [value(root, {n: 1, flag: truth}) for truth in (False, True)] == [1, 5]


def test_dumps_and_loads():
    last, steps = powers(n, 7)
    along = geon.deriv(last["y"], x)
    text = geon.dumps(last["y"], steps, along)
    again = geon.loads(text)
    assert geon.dumps(*again) == text
    assert canonical(again)[0] == canonical([last["y"], steps, along])[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("null, 7, 2,", "null, 7, 9,", "2 results of a body"),
        ("null, 7, 2,", "null, -7, 2,", "while"),
        ("null, 7, 2,", 'null, "7", 2,', "while"),
    ],
)
def test_bodies_in_dumps_are_checked(old, new, message):
    text = geon.dumps(powers(n, 7)[0]["y"], notes=False)
    assert old in text
    with pytest.raises(geon.DumpError, match=message):
        geon.loads(text.replace(old, new))


# Before it is compiled ----------------------------------------------------------------------------


def test_what_nobody_reads_is_gone():
    unread = geon.placeholder([H])
    kept, other, _ = geon.while_loop(
        lambda c: c[2] > 0, lambda c: (c[0] * 2, c[1] * 3, c[2] - 1), (x, unread, n)
    )
    (region,) = whiles(simple(kept))
    assert region.attrs.carries == 2 and not among(unread, region.args)


def test_the_step_is_no_carry_where_nobody_reads_it():
    last, steps = powers(n)
    (alone,) = whiles(simple(last["y"]))
    (counting,) = whiles(simple(last["y"], steps))
    assert (alone.attrs.carries, counting.attrs.carries) == (2, 3)


def test_a_loop_and_its_record_are_one():
    last, _ = powers(n, 20)
    roots = [last["y"], geon.deriv(last["y"], x)]
    assert len(whiles(roots)) == 2  # with the carries for the derivative, and without them
    (region,) = whiles(simple(*roots))
    assert region.attrs.axis.expression == 20


def test_products_stay_in_scans_of_so_many_steps():
    w, a = geon.placeholder([H.prime, H], name="w"), geon.placeholder([H], name="a")

    def body(c):
        return geon.tanh(geon.cast_axes(geon.dot(c[0], w), [H])), c[1] - 1

    last, _ = geon.while_loop(lambda c: c[1] > 0, body, (a, n), 30)
    roots = simple(geon.deriv(geon.sum(last), w))
    (scan,) = [op for op in deep_order(roots) if op.primitive.name == "scan"]
    inside = [op for op in post_order(scan.bodies[0].results) if op.primitive.name == "dot"]
    outside = [op for op in post_order(roots) if op.primitive.name == "dot"]
    assert inside and not outside


# What is refused ----------------------------------------------------------------------------------

h = geon.placeholder([H], name="h")
REFUSED = [
    (
        lambda: geon.while_loop(lambda c: geon.sum(c) > 0, lambda c: geon.sum(c), h),
        geon.AxisError,
        r"carries begins as h.*body returns.*must stay \(H:3\), not become \(\)",
    ),
    (
        lambda: geon.while_loop(lambda c: geon.sum(c) > 0, lambda c: geon.cast(c, "float64"), h),
        geon.DTypeError,
        "begins as h.*float32.*float64",
    ),
    (
        lambda: geon.while_loop(lambda c: geon.sum(c) > 0, lambda c: (c, c), h),
        geon.ArgumentError,
        "init is a tensor, and body returned carries that are tuple",
    ),
    (lambda: geon.while_loop(lambda c: c > 0, lambda c: c, h), geon.DTypeError, "no bool scalar"),
    (lambda: geon.while_loop(lambda c: n, lambda c: c, h), geon.DTypeError, "int64.*no bool"),
    (lambda: geon.while_loop(lambda c: None, lambda c: c, h), geon.DTypeError, "returned None"),
    (lambda: geon.while_loop(lambda c: n > 0, lambda c: c, h, -1), geon.ArgumentError, "max_steps"),
    (lambda: geon.while_loop(lambda c: n > 0, lambda c: c, h, n), geon.ArgumentError, "max_steps"),
    (
        lambda: geon.while_loop(lambda c: n > 0, lambda c: geon.print(c), h),
        geon.ArgumentError,
        "runs the effect",
    ),
    (
        lambda: geon.while_loop(lambda c: geon.print(n) > 0, lambda c: c, h),
        geon.ArgumentError,
        "runs the effect",
    ),
    (lambda: geon.while_loop(True, lambda c: c, h), geon.ArgumentError, "condition=True is no f"),
    (lambda: geon.while_loop(lambda c: n > 0, h, h), geon.ArgumentError, "body, h.*lambda carry"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_refused_names_both_sides(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "test_while.py" in str(raised.value)


# Derivatives --------------------------------------------------------------------------------------

# All ways of the record: all carries, one part, several, as many segments as there may be, and
# segments of several parts.
WAYS = [
    20,
    MAX_RECORDED_STEPS,
    MAX_RECORDED_STEPS + 1,
    MAX_SEGMENTS * MAX_STACKED_STEPS,
    MAX_SEGMENTS * MAX_STACKED_STEPS + 1,
    None,
]


@pytest.mark.parametrize("limit", WAYS)
@pytest.mark.parametrize("count", [0, 1, 2, 20])
def test_derivatives_are_those_of_a_scan(limit, count):
    y = powers(n, limit)[0]["y"]
    z = powers_by_scan(count)
    roots = []
    for each in (y, z):
        first = geon.deriv(each, x)
        roots += [each, first, geon.jvp(each, x, 1.0), geon.deriv(first, x)]
        roots += [geon.jvp(first, x, 1.0), geon.deriv(geon.jvp(each, x, 1.0), x)]
    found = interpret(roots, {n: count, x: 0.75}, {})
    got, want = ([found[op] for op in roots[k : k + 6]] for k in (0, 6))
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("limit", [20, MAX_RECORDED_STEPS + 1])
def test_third_derivatives(limit):
    def third(y):
        for _ in range(3):
            y = geon.deriv(y, x)
        return y

    found = value(third(powers(n, limit)[0]["y"]), {n: 4, x: 0.75})
    np.testing.assert_allclose(found, value(third(powers_by_scan(4)), {x: 0.75}), rtol=1e-9)


def test_what_does_not_move_has_no_derivative():
    last = geon.while_loop(lambda c: c < 10, lambda c: c + 1, n)
    y = x * geon.cast(last, "float64")
    assert value(geon.deriv(y, x), {n: 3, x: 2.0}) == 10
    assert geon.deriv(last * 1.0, x, unreached="zero") is not None


def stacked(count, over, limit=None):
    """Powers of x, and the values of all steps ``over`` an axis."""
    return geon.while_loop(
        lambda c: c[1] > 0,
        lambda c: ((geon.sin(c[0] * x), c[1] - 1), {"y": c[0] * x, "n": (c[1], None)}),
        (x, count),
        limit,
        over=over,
        count=True,
    )


def test_values_of_all_steps():
    S, one = geon.Axis("S", 4), 0.5 * 0.5
    for over, limit in ((S, None), (S, 4), ("S", 4)):
        (_, left), values, steps = stacked(n, over, limit)
        assert values["y"].axes.names == ("S",) and values["n"][1] is None
        for count, numbers in ((0, [0] * 4), (3, [3, 2, 1, 0]), (6, [6, 5, 4, 3])):
            known = {n: count, x: 0.5}
            assert value(values["n"][0], known).tolist() == numbers
            assert value(steps, known) == min(count, 4) and value(left, known) == max(count - 4, 0)
            assert value(values["y"], known)[0] == (one if count else 0)
    for limit in (6, MAX_RECORDED_STEPS + 1):
        y = stacked(n, "S", limit)[1]["y"]
        by_scan = geon.scan(lambda c, _: (geon.sin(c * x), c * x), x, over=geon.Axis("T", 5))[1]
        found, expected = geon.sum(y * y), geon.sum(by_scan * by_scan)
        for _ in range(3):
            a, b = (value(op, {n: 5, x: 0.5}) for op in (found, expected))
            np.testing.assert_allclose(a, b, rtol=1e-12)
            forward = geon.jvp(found, x, 1.0)
            found, expected = geon.deriv(found, x), geon.deriv(expected, x)
            np.testing.assert_allclose(
                value(forward, {n: 5, x: 0.5}), value(found, {n: 5, x: 0.5}), rtol=1e-12
            )


def test_equal_loops_that_stack_along_other_axes_stay_apart():
    roots = [stacked(n, name, 4)[1]["y"] for name in ("R", "S")] + [stacked(n, "S", 4)[2]]
    with geon.make_transformer("numpy") as transformer:
        f = transformer.computation(roots, n, x)
        assert [r.axes.names for r in roots] == [("R",), ("S",), ()]
        first, second, steps = f(2, 0.5)
        np.testing.assert_array_equal(first, second)
        assert steps == 2


def test_values_of_steps_that_are_refused():
    S = geon.Axis("S", 4)

    def loop(body=lambda c: (c * x, c), limit=None, over=S):
        return geon.while_loop(lambda c: c < 9, body, x, limit, over=over)

    h = geon.broadcast(x, [S])
    for call, error, message in (
        (lambda: loop(over="S"), geon.AxisError, "over='S' is no axis; give a geon.Axis"),
        (
            lambda: loop(limit=3),
            geon.AxisError,
            "'S' of the values is of length 4, and max_steps=3",
        ),
        (lambda: loop(over=geon.Axis("O")), geon.AxisError, "'O' of the values is open"),
        (lambda: loop(lambda c: c), geon.ArgumentError, "body returned .* returns a pair"),
        (lambda: loop(lambda c: (c, h)), geon.AxisError, "body returns .* has the axis 'S'"),
    ):
        with pytest.raises(error, match=message):
            call()


def test_derivatives_of_a_nest():
    t = geon.Axis("T", 4)
    xs = geon.placeholder([t], "float64", name="xs")

    def program(limit):
        def step(c, each):
            inner = geon.while_loop(
                lambda d: abs(d) < 2, lambda d: d * 1.5 + geon.sin(each * x), c, limit
            )
            return geon.cond(inner > 0, lambda: inner * 0.25, lambda: inner * each), inner

        last, seen = geon.scan(step, x, xs, over=t)
        return last * geon.sum(seen)

    known = {x: np.float64(0.7), xs: np.array([0.5, -1.0, 2.0, 0.1])}
    for limit in (15, None):
        y = program(limit)
        dx, dxs = geon.deriv(y, [x, xs])
        roots = [dx, geon.deriv(dx, x), geon.jvp(dx, x, 1.0), geon.jvp(y, x, 1.0), dxs]
        values = interpret([y, *roots], known, {})
        first, second, pushed, along, by_xs = [values[op] for op in roots]
        low, high = (value(y, {**known, x: 0.7 + step}) for step in (-1e-6, 1e-6))
        np.testing.assert_allclose(first, (high - low) / 2e-6, rtol=1e-6)
        low, high = (value(dx, {**known, x: 0.7 + step}) for step in (-1e-6, 1e-6))
        np.testing.assert_allclose(second, (high - low) / 2e-6, rtol=1e-6)
        np.testing.assert_allclose([pushed, along], [second, first], rtol=1e-9)
        moved = {**known, xs: known[xs] + [0, 0, 1e-6, 0]}
        np.testing.assert_allclose(by_xs[2], (value(y, moved) - values[y]) / 1e-6, rtol=1e-4)


@pytest.mark.parametrize("limit", [6, None])
def test_derivatives_of_each_example(limit):
    b = geon.Axis("B", 4)
    xs = geon.placeholder([b], "float64", name="xs")

    def program(a):
        def body(c):
            return geon.sin(c[0] * a * x) + 0.1, c[1] - 1

        return geon.while_loop(lambda c: c[1] > 0, body, (a, n), limit)[0]

    one = geon.placeholder([], "float64")
    known = {xs: np.linspace(0.1, 1, 4), n: 3, x: 0.75}
    each = geon.deriv(program(xs), x, per=b)
    want = [value(geon.deriv(program(one), x), {one: v, n: 3, x: 0.75}) for v in known[xs]]
    np.testing.assert_allclose(value(each, known), want, rtol=1e-9)


def test_ends_of_its_own_for_each_example_are_refused():
    b = geon.Axis("B", 4)
    xs = geon.placeholder([b], "float64")
    root, _ = geon.while_loop(lambda c: c[1] < 9, lambda c: (c[0] * x, c[1] + x), (xs, x))
    with pytest.raises(geon.DerivativeError, match="number of steps for each place.*B"):
        geon.deriv(root, x, per=b)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 15, 16, 17, 33, 48, 49, 70])
def test_how_often_steps_are_run_again(monkeypatch, count):
    monkeypatch.setattr(while_deriv, "MAX_SEGMENTS", 4)
    monkeypatch.setattr(while_deriv, "MAX_STACKED_STEPS", 4)
    taken = []

    def counted(op, *rest):
        taken.append(op.primitive.name)
        return evaluate(op, *rest)

    y = powers(n, None)[0]["y"]
    first = geon.deriv(y, x)
    monkeypatch.setattr("geon.op_graph.evaluation.interpreter.evaluate", counted)
    found = interpret([y, first], {n: count, x: 0.75}, {})
    monkeypatch.undo()
    forward = taken.count("sin")  # which steps back do not take
    parts = max(-(-count // 16), 1)
    assert forward <= 3 * count + count * (parts - 1) / 2
    if count <= 16:
        starts = max(-(-count // 4) - 1, 0) * 4
        assert forward == 2 * count + starts
    by_scan = powers_by_scan(count)
    by_x = geon.deriv(by_scan, x)
    want = interpret([by_scan, by_x], {x: 0.75}, {})
    got = [found[y], found[first]]
    np.testing.assert_allclose(got, [want[by_scan], want[by_x]], rtol=1e-9)


def test_the_record_is_that_of_512_carries_however_many_steps():
    for limit, most in ((20, 20), (MAX_RECORDED_STEPS, MAX_RECORDED_STEPS),
                        (MAX_RECORDED_STEPS + 1, 3 + MAX_STACKED_STEPS),
                        (MAX_SEGMENTS * MAX_STACKED_STEPS, 512), (None, 512)):  # fmt: skip
        roots = [geon.deriv(powers(n, limit)[0]["y"], x)]
        records = {axis for op in deep_order(roots) for axis in op.axes}
        assert sum(axis.expression for axis in records) == most
