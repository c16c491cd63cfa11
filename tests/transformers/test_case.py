"""``case_of`` and ``cond`` on each transformer: what is taken, derivatives, errors."""

import dataclasses

import numpy as np
import pytest

import geon
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.op_graph import among, post_order

N, T = geon.Axis("N"), geon.Axis("T")
x, w = geon.placeholder([N], name="x"), geon.placeholder([N], name="w")
i = geon.placeholder([], "int64", name="i")
VALUES = np.array([0.1, -0.2, 0.3], np.float32), np.array([0.5, -0.2, 0.7], np.float32)


def branches():
    h = geon.exp(x)
    steps = geon.Axis("S", 3)
    return [
        lambda: {"a": geon.sin(h) * w, "b": 1.0},
        lambda: {"a": h * h, "b": geon.sum(w)},
        lambda: {"a": x, "b": geon.sum(geon.scan(lambda c, _: (c * w, None), x, over=steps)[0])},
    ]


def default():
    return {"a": geon.broadcast(2.0, [N]), "b": geon.sum(geon.cumsum(x, N))}


@pytest.mark.parametrize("number", [-7, -1, 0, 1, 2, 3, 2**40])
def test_one_branch_is_taken(transformer, number):
    found = geon.case_of(i, branches(), default)
    y = geon.sum(found["a"]) * found["b"]
    first = geon.deriv(y, [x, w], unreached="zero")
    second = geon.deriv(geon.sum(geon.square(first[0])), w, unreached="zero")
    third = geon.deriv(geon.sum(geon.square(second)), w, unreached="zero")
    along = geon.jvp(found["a"], x, geon.sin(w))
    results = [found["a"], found["b"], *first, second, third, along]
    f = transformer.computation(results, x, w, i)
    want = interpret(results, {x: VALUES[0], w: VALUES[1], i: number}, {"N": 3})
    for op, array in zip(results, f(*VALUES, number), strict=True):
        np.testing.assert_allclose(array, want[op], rtol=2e-4, atol=1e-6)
    apart = transformer.computation(results, x, w, i, plan=False)
    for one, other in zip(f(*VALUES, number), apart(*VALUES, number), strict=True):
        np.testing.assert_array_equal(one, other)


def test_derivatives_are_those_of_the_branch_that_is_taken():
    found = geon.case_of(i, branches(), default)
    y = geon.sum(found["a"]) * found["b"]
    g = geon.deriv(y, x)
    for number in range(4):
        known = {w: VALUES[1].astype(np.float64), i: number}
        for k, row in enumerate(np.eye(3) * 1e-3):
            ends = [interpret([y], {**known, x: VALUES[0] + s * row}, {"N": 3})[y] for s in (1, -1)]
            slope = (ends[0] - ends[1]) / 2e-3
            found = interpret([g], {**known, x: VALUES[0]}, {"N": 3})[g]
            np.testing.assert_allclose(found[k], slope, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("truth", [False, True])
def test_cond(transformer, truth):
    p = geon.placeholder([], "bool", name="p")
    y = geon.cond(p, lambda: geon.log(x), lambda: x * 2)
    f = transformer.computation(y, x, p)
    values = np.abs(VALUES[0])
    want = np.log(values) if truth else values * 2
    np.testing.assert_allclose(f(values, truth), want, rtol=1e-6)


def test_branches_in_loops_and_loops_in_branches(transformer):
    rows, which = geon.placeholder([T, N], name="rows"), geon.placeholder([T], "int64", name="k")

    def step(c, each):
        row, k = each
        c = geon.case_of(
            k,
            [
                lambda: geon.flip(c, N) + row,
                lambda: geon.scan(lambda d, _: (geon.tanh(d * row), None), c, rows, over=T)[0],
                lambda: geon.cond(geon.sum(c) > 0, lambda: c * 0.5, lambda: c - row),
            ],
        )
        return c, geon.sum(c)

    last, sums = geon.scan(step, x, (rows, which), over=T)
    results = [last, sums, *geon.deriv(geon.sum(last), [x, rows])]
    f = transformer.computation(results, x, rows, which)
    random = np.random.default_rng(0)
    for count in (0, 1, 5):
        given = random.normal(size=(count, 3)).astype(np.float32), np.arange(count) % 3
        feeds = {x: VALUES[0], rows: given[0], which: given[1]}
        want = interpret(results, feeds, {"T": count, "N": 3})
        for op, array in zip(results, f(VALUES[0], *given), strict=True):
            np.testing.assert_allclose(array, want[op], rtol=2e-4, atol=1e-5)


def test_an_index_outside_raises_and_leaves_variables(transformer):
    v = geon.Variable([], initial_value=1.0, name="v")
    y = geon.case_of(i, [lambda: v + 1, lambda: v * 3])
    f = transformer.computation(geon.assign(v, y), i)
    f(1)
    for number in (2, -1):
        with pytest.raises(geon.IndexRangeError, match="without default= at .*test_case.py"):
            f(number)
    assert transformer.get(v) == 3


def test_what_raises_in_a_branch_that_is_not_taken_does_not(transformer):
    at = geon.placeholder([], "int64", name="at")
    y = geon.case_of(i, [lambda: x[{N: at}], lambda: geon.sum(x)])
    f = transformer.computation(y, x, i, at)
    np.testing.assert_allclose(f(VALUES[0], 1, 99), VALUES[0].sum(), rtol=1e-6)
    np.testing.assert_allclose(f(VALUES[0], 0, 1), VALUES[0][1])
    with pytest.raises(geon.IndexRangeError):
        f(VALUES[0], 0, 99)


def test_what_a_branch_builds_is_inside_and_what_is_there_is_outside():
    h = geon.exp(x)
    y = geon.case_of(i, [lambda: geon.sin(h), lambda: geon.cos(x)])
    region = y.args[0]
    assert among(h, region.args)
    first, second = region.bodies
    assert [op.primitive.name for op in post_order(first.results)] == ["parameter", "sin"]
    assert [op.primitive.name for op in post_order(second.results)] == ["parameter", "cos"]
    assert geon.case_of(i, [lambda: geon.sin(h), lambda: geon.cos(x)]) is y


def test_a_branch_is_not_run_for_an_equal_op_that_lives_elsewhere():
    def chosen():
        return geon.cond(geon.sum(x) > 0, lambda: geon.log(x), lambda: geon.sqrt(-x))

    f = geon.NumPyTransformer().computation(chosen(), x, check="nan")
    elsewhere = geon.log(x)
    g = geon.NumPyTransformer().computation(chosen(), x, check="nan")
    for each in (f, g):
        np.testing.assert_array_equal(each([-1, -4]), [1, 2])
    assert not among(elsewhere, chosen().args[0].args)


def test_dumps_and_loads():
    found = geon.case_of(i, branches(), default)
    text = geon.dumps(found["a"], found["b"])
    assert geon.dumps(*geon.loads(text)) == text


@dataclasses.dataclass
class Two:
    left: object
    right: object


def test_structures():
    found = geon.case_of(i, [lambda: Two(x, [w]), lambda: Two(w, [x])])
    assert isinstance(found, Two) and found.right[0].axes == geon.Axes(N)


REFUSED = [
    (lambda: geon.case_of(x, [lambda: x]), geon.DTypeError, "no integer scalar"),
    (lambda: geon.case_of(1.5, [lambda: x]), geon.DTypeError, "no integer scalar"),
    (lambda: geon.cond(i, lambda: x, lambda: w), geon.DTypeError, "no bool scalar"),
    (lambda: geon.case_of(i, []), geon.ArgumentError, "give one or more"),
    (lambda: geon.case_of(i, [lambda: x], 2.0), geon.ArgumentError, "default=2.0 is no function"),
    (lambda: geon.case_of(i, [x]), geon.ArgumentError, "is a tensor and no function.*lambda: x"),
    (
        lambda: geon.case_of(i, [lambda: x, lambda: (x, w)]),
        geon.ArgumentError,
        r"branch 0 gives a tensor, and branch 1 gives tuple",
    ),
    (
        lambda: geon.case_of(i, [lambda: x, lambda: geon.sum(x)]),
        geon.AxisError,
        r"branch 0 gives x.*branch 1 gives sum.*over other axes",
    ),
    (
        lambda: geon.case_of(i, [lambda: x, lambda: geon.cast(x, "float64")]),
        geon.DTypeError,
        r"float32.*float64.*another dtype",
    ),
    (
        lambda: geon.case_of(i, [lambda: x], lambda: geon.sum(x)),
        geon.AxisError,
        r"branch 0 gives x.*and default gives sum.*over other axes",
    ),
    (
        lambda: geon.cond(i > 0, lambda: x, lambda: (x, w)),
        geon.ArgumentError,
        r": then gives a tensor, and otherwise gives tuple.*return one structure",
    ),
    (
        lambda: geon.cond(i > 0, lambda: x, lambda: geon.sum(x)),
        geon.AxisError,
        r": then gives x.* and otherwise gives sum.*over other axes",
    ),
    (
        lambda: geon.cond(i > 0, x, lambda: x),
        geon.ArgumentError,
        r"then, x.*is a tensor and no function; give one such as lambda: x",
    ),
    (
        lambda: geon.case_of(i, [lambda: geon.print(x), lambda: x]),
        geon.ArgumentError,
        "runs the effect",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_what_is_refused_names_both_sides(call, error, message):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "test_case.py" in str(raised.value)
