"""labels=True: no result has the coordinates of positions that it was moved away from."""

import numpy as np
import pytest
import xarray

import geon
from geon.frontends import xarray as gx

D = xarray.DataArray([1.0, 2, 3], dims="t", coords={"t": [10, 20, 30]})
T = geon.Axis("t", 3)
S = geon.Axis("s", 3)
K = geon.Axis("k", 1)


def flip(a):
    return geon.flip(a, "t")


@geon.custom_deriv(lambda g, out, a: [flip(g)])
def flipped(a):
    return flip(a)


@geon.custom_deriv(lambda g, out, a: [g * 2])
def doubled(a):
    return a * 2


def renamed(a, change):
    return change(a.rename({"t": "s"})).rename({"s": "t"})


def zero():
    return geon.constant(0.0, dtype="float64")


def turned_carry(a):
    return geon.scan(lambda c, p: (flip(c), None), a, geon.iota(K), over="k")[0]


def swapped(a):
    """Carries that change places, one of them turned: none keeps the axis in the end."""
    steps = geon.iota(geon.Axis("k", 3))
    return geon.scan(lambda c, p: ((c[1], flip(c[0])), None), (a, a), steps, over="k")[0][0]


def repeated(carry, *first):
    """The first of what a while loop carries, after three steps of ``carry``."""
    _, found = geon.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, carry(*c[1])), (0, first))
    return found[0]


def doubled_while(a):
    return geon.while_loop(lambda c: geon.sum(c) < 20, lambda c: c * 2, a, 5)


MOVED = {
    "renamed, turned": lambda a: renamed(a, lambda b: geon.flip(b, "s")),
    "renamed, sorted": lambda a: renamed(a, lambda b: geon.sort(b, "s")),
    "renamed, rolled": lambda a: renamed(a, lambda b: geon.roll(b, {"s": 1})),
    "gathered": lambda a: geon.gather(a.rename({"t": "s"}), geon.constant([2, 1, 0], [T]), "s"),
    "gathered by counting": lambda a: geon.gather(a.rename({"t": "s"}), 2 - geon.iota(T), "s"),
    "permutation matrix": lambda a: geon.dot(
        a.rename({"t": "s"}), geon.constant(np.eye(3)[::-1], [T, S])
    ),
    "times what has no labels": lambda a: flip(a) * geon.broadcast(1.0, a.axes),
    "checkpoint": lambda a: geon.checkpoint(flip)(a),
    "custom_deriv": lambda a: flipped(a),
    "remat": lambda a: geon.remat(flip(a), "nothing"),
    "where": lambda a: geon.where(geon.sum(a) > 0, flip(a), a),
    "cond": lambda a: geon.cond(geon.sum(a) > 0, lambda: flip(a), lambda: a),
    "case": lambda a: geon.case_of(geon.constant(1), [lambda: a, lambda: flip(a)]),
    "scan of turned": lambda a: geon.scan(lambda s, p: (s, p), zero(), flip(a), over="t")[1],
    "carry": turned_carry,
    "two carries": swapped,
    "while": lambda a: repeated(lambda c: (flip(c),), a),
    "while, two carries": lambda a: repeated(lambda c, d: (d, flip(c)), a, a),
    "while, carries in a ring": lambda a: repeated(lambda c, d, e: (d, e, flip(c)), a, a, a),
    "while, captured": lambda a: repeated(lambda c: (flip(a),), a),
    "while in a branch": lambda a: geon.cond(
        geon.sum(a) > 0, lambda: repeated(lambda c: (flip(c),), a), lambda: a
    ),
    "branch in a while loop": lambda a: repeated(
        lambda c: (geon.cond(geon.sum(c) > 0, lambda: flip(c), lambda: c),), a
    ),
    "scan in a while loop": lambda a: repeated(lambda c: (turned_carry(c),), a),
    "fixed point": lambda a: geon.fixed_point(lambda c: (c[1] * 0.5, flip(c[0]) * 0.5), (a, a))[0],
    "scatter": lambda a: geon.scatter(
        a * 0, geon.constant([2, 1, 0], [S]), a.rename({"t": "s"}), T
    ),
    "joined": lambda a: geon.concat([flip(a)[0:1], a[1:]], "t"),
}
KEPT = {
    "renamed and back": lambda a: renamed(a, lambda b: b * 2),
    "renamed, turned twice": lambda a: renamed(a, lambda b: geon.flip(geon.flip(b, "s"), "s")),
    "checkpoint": lambda a: geon.checkpoint(lambda b: b * 2)(a),
    "custom_deriv": lambda a: doubled(a),
    "remat": lambda a: geon.remat(a * 2, "nothing"),
    "where": lambda a: geon.where(a > 0, a, 0.0),
    "chosen numbers": lambda a: geon.where(a > 2, 1.0, 0.0),
    "cond": lambda a: geon.cond(geon.sum(a) > 0, lambda: a * 2, lambda: a),
    "steps": lambda a: geon.scan(lambda s, p: (s + p, s + p), zero(), a, over="t")[1],
    "steps backwards": lambda a: geon.scan(
        lambda s, p: (s + p, s * p), zero(), a, over="t", reverse=True
    )[1],
    "carry": lambda a: geon.scan(lambda c, p: (c * 2, None), a, geon.iota(K), over="k")[0],
    "captured": lambda a: geon.scan(lambda c, p: (c + a, None), a * 0, geon.iota(K), over="k")[0],
    "while": doubled_while,
    "while, two carries": lambda a: repeated(lambda c, d: (d * 2, c), a, a),
    "while, captured": lambda a: repeated(lambda c: (c + a,), a * 0),
    "while in a step": lambda a: geon.scan(
        lambda s, p: (s, geon.while_loop(lambda q: q < 10, lambda q: q * 2, p)), zero(), a, over="t"
    )[1],
    "while in a loop": lambda a: geon.scan(
        lambda c, p: (doubled_while(c), None), a, geon.iota(K), over="k"
    )[0],
    "slope of a while loop": lambda a: geon.deriv(geon.sum(geon.square(doubled_while(a))), a),
    "fixed point": lambda a: geon.fixed_point(lambda c: (c[1] * 0.5 + a, c[0] * 0.5), (a, a))[1],
    "joined": lambda a: geon.concat([a[0:1] * 2, a[1:]], "t"),
    "slope of a sum": lambda a: geon.deriv(geon.sum(a), a),
    "slope of squares": lambda a: geon.deriv(geon.sum(a * a), a),
}


@pytest.mark.parametrize("name", MOVED)
def test_moved_positions_have_no_coordinates(name):
    found = gx.compile(MOVED[name])(D)
    assert found.dims == ("t",) and not found.coords


@pytest.mark.parametrize("name", KEPT)
def test_positions_that_stay_have_theirs(name):
    found = gx.compile(KEPT[name])(D)
    assert found.t.values.tolist() == [10, 20, 30]


def test_values_are_those_of_the_labels():
    """What is labelled 10 has the value that xarray gives it."""
    found = gx.compile(lambda a: a - geon.roll(a, {"t": 1}))(D)
    xarray.testing.assert_equal(found, D - D.roll(t=1))


def test_open_lengths_and_lengths_that_are_fixed_say_the_same(transformer):
    x = geon.placeholder(geon.Axis("t"), "float64")
    build = [x * 2, flip(x), renamed(x, lambda b: geon.flip(b, "s")), x[1:]]
    for options in ({}, {"specialize": {"t": 3}}):
        found = transformer.computation(build, x, labels=True, **options)(D)
        assert [set(one.coords) for one in found] == [{"t"}, set(), set(), {"t"}]
        assert found[3].t.values.tolist() == [20, 30]


def variable(first=None):
    return geon.Variable([T], "float64", initial_value=D if first is None else first)


def coordinates(transformer, v):
    found = transformer.computation(v * 1, labels=True)()
    return found.t.values.tolist() if "t" in found.coords else None


@pytest.mark.parametrize("labels", [False, True])
def test_a_variable_loses_coordinates_with_what_is_assigned(labels, transformer):
    v, x = variable(), geon.placeholder([T], "float64", name="x")
    shown = transformer.computation(v * 1, labels=True)
    assert shown().t.values.tolist() == [10, 20, 30]
    step = transformer.computation(geon.assign(v, v - 0.1 * x), x, labels=labels)
    for _ in range(3):
        step([1.0, 2.0, 3.0])
    assert coordinates(transformer, v) == [10, 20, 30]
    transformer.computation(geon.assign(v, 0.0), labels=labels)()
    assert coordinates(transformer, v) == [10, 20, 30]  # alike everywhere
    turn = transformer.computation(geon.assign(v, flip(v)), labels=labels)
    turn()
    assert coordinates(transformer, v) is None and "t" not in shown().coords
    turn()
    assert coordinates(transformer, v) is None
    transformer.set(v, D)
    assert coordinates(transformer, v) == [10, 20, 30]
    turn.start().result()
    assert coordinates(transformer, v) is None
    transformer.initialize(force=True)
    assert coordinates(transformer, v) == [10, 20, 30]


def test_a_variable_takes_the_coordinates_of_what_is_assigned(transformer):
    v = variable(D.assign_coords(t=[1, 2, 3]))
    x = geon.placeholder([T], "float64", name="x")
    put = transformer.computation(geon.assign(v, x), x, labels=True)
    total = transformer.computation(v + x, x, labels=True)
    with pytest.raises(geon.FeedError, match="align"):
        total(D)
    put(D)
    assert coordinates(transformer, v) == [10, 20, 30]
    xarray.testing.assert_equal(total(D), D + D)
    put(D.drop_vars("t"))
    assert coordinates(transformer, v) is None
    put.start(D).result()
    assert coordinates(transformer, v) == [10, 20, 30]
    transformer.computation(geon.assign(v, x), x)(D)  # without labels=True nobody looks at them
    assert coordinates(transformer, v) is None
    w = variable(D.assign_coords(t=[1, 2, 3]))
    transformer.computation(geon.assign(w[0:2], geon.flip(w, "t")[0:2]))()
    assert coordinates(transformer, w) is None


def test_keys_that_a_dataset_has_for_something_else_are_refused(transformer):
    A, B = geon.Axis("A", 3), geon.Axis("B", 4)
    x = geon.placeholder([A, B], "float64", name="x")
    for results in ({"B": geon.sum(x), "y": x.sum("A")}, {"A": x.sum("A"), "c": x}):
        with pytest.raises(geon.ArgumentError, match=r"has the name of an axis of .*another key"):
            transformer.computation(results, x, labels=True)
    data = xarray.DataArray(
        np.ones((3, 4)), dims=("A", "B"), coords={"area": (("A", "B"), np.ones((3, 4)))}
    )
    count = geon.Variable(initial_value=0, dtype="int64")
    results = {"area": x.sum("A"), "c": x * 2, "step": geon.assign(count, count + 1)}
    f = transformer.computation(results, x, labels=True)
    for call in (f, f.start):
        with pytest.raises(geon.FeedError, match=r"'area' has the name of a coord.*drop_vars"):
            call(data)
    assert transformer.get(count) == 0
    found = f(data.drop_vars("area"))
    assert set(found) == {"area", "c"}
    one = transformer.computation({"area": x.sum("A")}, x, labels=True)(data)
    assert list(one) == ["area"]  # the coordinate is not one of this result
