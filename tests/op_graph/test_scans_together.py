"""Scans that share carries are one scan: which are, which are not, and that values stay."""

import numpy as np
import pytest

import geon
from geon.op_graph.core.interning import OwnTable
from geon.op_graph.evaluation.interpreter import interpret
from geon.op_graph.op_graph import RegionOp, post_order
from geon.op_graph.transforms.functionalize import functional
from geon.transformers.lowering.rules.program import build_program

T, H = geon.Axis("T"), geon.Axis("H", 3)
x = geon.placeholder([T, H], name="x")
w = geon.placeholder([H.prime, H], name="w")
b = geon.placeholder([H], name="b")


def program(roots):
    target = geon.NumPyTransformer().target
    return build_program(functional(roots), target, OwnTable()).roots


def scans(roots):
    return [op for op in post_order(roots) if isinstance(op, RegionOp)]


def same_values(roots, made, count=4):
    random = np.random.default_rng(1)
    known = {leaf: random.normal(size=(count if T in leaf.axes else 3, 3)[-len(leaf.axes) :])
             for leaf in (x, w, b)}  # fmt: skip
    want, found = interpret(roots, known, {"T": count}), interpret(made, known, {"T": count})
    for root, new in zip(roots, made, strict=True):
        np.testing.assert_allclose(found[new], want[root], rtol=1e-5, atol=1e-6)


def net():
    def step(h, each):
        h = geon.tanh(geon.cast_axes(geon.dot(w, h), [H]) + each + b)
        return h, h

    return geon.scan(step, geon.broadcast(geon.constant(0.5), [H]), x, over=T)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_derivatives_asked_one_by_one_are_one_loop(count):
    _, seen = net()
    loss = geon.sum(geon.square(seen))
    roots = [loss, *(geon.deriv(loss, leaf) for leaf in (w, b, x))]
    made = program(roots)
    assert len(scans(made)) == 2
    same_values(roots, made, count)


def test_second_derivatives_asked_one_by_one():
    _, seen = net()
    loss = geon.sum(geon.square(seen))
    gw = geon.sum(geon.square(geon.deriv(loss, w)))
    together = [geon.deriv(gw, [x, b, w])]
    roots = [geon.deriv(gw, leaf) for leaf in (x, b, w)]
    made = program(roots)
    assert len(scans(made)) == len(scans(program(together[0])))
    same_values(roots, made)


def loop(step, begin=1.0, over=x, **options):
    return geon.scan(step, geon.broadcast(geon.constant(begin), [H]), over, over=T, **options)


def test_carries_that_begin_or_go_on_otherwise_stay_apart():
    for other in (
        loop(lambda c, e: (c * e + 1, c)),
        loop(lambda c, e: (c * e, c), begin=2.0),
        loop(lambda c, e: (c * e, c), reverse=True),
        loop(lambda c, e: (c * e, c), over=geon.sin(x)),
    ):
        roots = [*loop(lambda c, e: (c * e, c)), *other]
        made = program(roots)
        assert len(scans(made)) == 2
        same_values(roots, made)


def test_carries_are_the_same_whatever_their_order_and_number():
    def one(c, e):
        p, q = c
        return (q * e, p * e), p

    def two(c, e):
        n, q = c
        return (n + 1, q * e), (q + n, n)

    first, seen = geon.scan(one, (b, b), x, over=T)
    second, more = geon.scan(two, (geon.broadcast(0.0, [H]), b), x, over=T)
    roots = [*first, seen, *second, *more]
    made = program(roots)
    (region,) = scans(made)
    assert region.attrs.carries == 2  # p and q are one
    same_values(roots, made)


def test_a_scan_that_needs_another_waits_for_it():
    last, seen = loop(lambda c, e: (c * e, c))
    other, more = loop(lambda c, e: (c * e[0], c + e[1]), over=(x, seen))
    third, _ = loop(lambda c, e: (c * e, None))
    roots = [last, other, more, third]
    made = program(roots)
    assert len(scans(made)) == 2
    same_values(roots, made)


def test_one_that_needs_what_another_needs_too():
    last, seen = loop(lambda c, e: (c + e, c))
    between = geon.sum(seen, T)
    one, first = geon.scan(lambda c, e: (c * e, c), b, x, over=T)
    two, second = geon.scan(lambda c, e: (c * e, c + between), b, x, over=T)
    roots = [geon.sum(one), second, last, two, first]
    made = program(roots)
    assert len(scans(made)) == 2
    same_values(roots, made)


def test_without_carries_the_arguments_are_the_same():
    _, one = geon.scan(lambda c, e: (c, geon.sort(e, H)), (), x, over=T)
    _, two = geon.scan(lambda c, e: (c, geon.sort(e, H) + 1), (), x, over=T)
    _, three = geon.scan(lambda c, e: (c, geon.sort(e, H) + 1), (), geon.sin(x), over=T)
    roots = [one, two, three]
    made = program(roots)
    assert len(scans(made)) == 2
    same_values(roots, made)
