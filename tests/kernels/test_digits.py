"""Axes that are divided are walked by their digits: no division is left for any element."""

import itertools
import random

import numpy as np
import pytest

import geon
from geon.op_graph.axes.affine import AffineIndex, Quotient, Remainder, ravel, unravel, variable
from geon.op_graph.axes.lengths import evaluate, exact_quotient
from geon.transformers.kernels.analysis.index_uses import Uses
from geon.transformers.kernels.nests.mixed_radix import digits_of, divisions, without_divisions
from tests.golden.emitting import Native

A, B, C = geon.Axis("A"), geon.Axis("B"), geon.Axis("C")


def lengths_of(*axes):
    return [axis.expression for axis in axes]


def value_of(index, values, lengths):
    """What an index is for values of its variables."""
    total = evaluate(index.constant, lengths)
    for atom, step in index.terms.items():
        if isinstance(atom, (Quotient, Remainder)):
            of, by = value_of(atom.of, values, lengths), evaluate(atom.by, lengths)
            each = of // by if isinstance(atom, Quotient) else of % by
        else:
            each = values[atom]
        total += each * evaluate(step, lengths)
    return total


def test_a_length_is_divided_exactly_or_not_at_all():
    a, b = lengths_of(A, B)
    assert exact_quotient(a * b * 6, b * 3) == a * 2
    assert exact_quotient(a * b + b, b) == a + 1
    assert exact_quotient(12, 4) == 3
    for numerator, denominator in ((12, 5), (a, b), (a * b + 1, b), (a * b, a + b), (4, 0), (a, 0)):
        assert exact_quotient(numerator, denominator) is None


@pytest.mark.parametrize("known", [False, True], ids=["open", "known"])
def test_digits_are_found_and_put_in_their_place(known):
    a, b, c = (5, 4, 3) if known else lengths_of(A, B, C)
    indices = unravel(variable("i"), [a, b, c])
    (offset,) = [ravel(reversed(indices), [c, b, a])]
    assert digits_of([offset], "i", a * b * c) == [a, b, c]
    ranges = dict(zip("xyz", (a, b, c), strict=True))
    whole = ravel(map(variable, "xyz"), (a, b, c))
    assert [without_divisions(each, ranges) for each in unravel(whole, [a, b, c])] == [
        variable(name) for name in "xyz"
    ]


def test_no_digits_where_a_division_leaves_a_rest_or_there_are_two():
    i = variable("i")
    assert digits_of([variable(Remainder(i, 3))], "i", 12) == [4, 3]
    assert digits_of([variable(Remainder(i, 5))], "i", 12) == []
    assert digits_of([variable(Remainder(i, 3)), variable(Quotient(i, 4))], "i", 12) == []
    assert digits_of([i * 2], "i", 12) == []
    assert digits_of([variable(Remainder(i + 1, 3))], "i", 12) == []


def test_an_index_without_divisions_means_the_same():
    """Random sums of digits, divided by random lengths, at all values of their variables."""
    draw = random.Random(0)
    for _ in range(200):
        ranges = {name: draw.randint(1, 4) for name in "xyz"}
        steps = [draw.choice([1, 2, 3, 4, 6, 12, -1, -3]) for _ in ranges]
        low = sum(min(step, 0) * 3 for step in steps)
        of = AffineIndex(list(zip(ranges, steps, strict=True)), draw.choice([0, 0, 0, 4, 5]) - low)
        by = draw.choice([1, 2, 3, 4, 6, 12])
        inner = variable(draw.choice([Quotient, Remainder])(of, by))
        index = variable(draw.choice([Quotient, Remainder])(inner, draw.choice([2, 3]))) * 5 + inner
        found = without_divisions(index, ranges)
        for values in itertools.product(*map(range, ranges.values())):
            at = dict(zip(ranges, values, strict=True))
            assert value_of(found, at, {}) == value_of(index, at, {})


@pytest.mark.parametrize("order", list(itertools.permutations("ABC")))
@pytest.mark.parametrize("elementwise", [False, True])
def test_a_flatten_of_reordered_axes_divides_nothing(order, elementwise):
    x = geon.placeholder([A, B, C])
    moved = geon.reorder(x, [x.axes[name] for name in order])
    flat = geon.flatten(moved, moved.axes)
    results = [geon.tanh(flat) * 2.0 if elementwise else flat]
    kernels = Native().computation(results, x).plan.schedule.kernels
    nests = [kernel.work for kernel in kernels if kernel.kind == "nest"]
    for nest in nests:
        assert not [each for index in Uses.of(nest).indices for each in divisions(index)]
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(results, x)
        for shape in ((1, 1, 1), (3, 65, 7), (64, 2, 130), (0, 3, 2), (5, 1, 300)):
            values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            want = values.transpose(["ABC".index(name) for name in order]).reshape(-1)
            (got,) = f(values)
            np.testing.assert_allclose(got, np.tanh(want) * 2 if elementwise else want, rtol=1e-5)


def test_a_flatten_beside_what_it_is_divided_by_in_another_way_is_right():
    """Two flattens of one length by other digits: divisions stay, and elements are right."""
    x, y = (
        geon.placeholder([geon.Axis("A", 4), geon.Axis("B", 6)]),
        geon.placeholder([geon.Axis("C", 8), geon.Axis("D", 3)]),
    )
    flat = geon.Axis("F", 24)
    left = geon.flatten(
        geon.reorder(x, [x.axes["B"], x.axes["A"]]), [x.axes["B"], x.axes["A"]], flat
    )
    right = geon.flatten(
        geon.reorder(y, [y.axes["D"], y.axes["C"]]), [y.axes["D"], y.axes["C"]], flat
    )
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=shape).astype(np.float32) for shape in ((4, 6), (8, 3)))
    with geon.NativeTransformer() as transformer:
        got = transformer.computation(left * right, x, y)(a, b)
    np.testing.assert_array_equal(got, a.T.reshape(-1) * b.T.reshape(-1))


def divisions_left(results, *inputs):
    """The divisions in the nests that compute some values, in the pieces where there are such."""
    kernels = Native().computation(results, *inputs).plan.schedule.kernels
    nests = [kernel.work for kernel in kernels if kernel.kind == "nest"]
    parts = [part for nest in nests for part in nest.pieces or (nest,)]
    return [each for part in parts for index in Uses.of(part).indices for each in divisions(index)]


SHAPES = [(1, 1, 1), (3, 65, 7), (64, 2, 130), (5, 1, 300)]
ORDERS = list(itertools.permutations("ABC"))


@pytest.mark.parametrize("order", ORDERS)
def test_reductions_over_a_flatten_of_reordered_axes_divide_nothing(order):
    """They go along memory; positions are still those of the flatten, the first of equal ones."""
    x = geon.placeholder([A, B, C])
    moved = geon.reorder(x, [x.axes[name] for name in order])
    flat = geon.maximum(geon.flatten(moved, moved.axes), 0.0)
    reductions = [geon.sum, geon.max, geon.argmax, geon.variance]
    results = [reduction(flat) for reduction in reductions]
    assert not divisions_left(results, x)
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(results, x)
        for shape in SHAPES:
            values = np.random.default_rng(1).integers(-3, 4, shape).astype(np.float32)
            want = np.maximum(values.transpose(["ABC".index(n) for n in order]).reshape(-1), 0)
            total, largest, at, spread = f(values)
            assert (total, largest, at) == (want.sum(), want.max(), want.argmax())
            np.testing.assert_allclose(spread, want.var(), rtol=1e-5)


@pytest.mark.parametrize("kept", ["last", "first"])
def test_rows_of_a_flatten_of_reordered_axes_are_right(kept):
    """A flatten beside an axis that is kept, and as the kept one, of sums and softmaxes."""
    rows = geon.Axis("R", 5)
    x = geon.placeholder([A, B, rows] if kept == "last" else [rows, A, B])
    flat = geon.flatten(x, [x.axes["B"], x.axes["A"]])
    axis = flat.axes["B_A"]
    results = [
        geon.sum(flat, axis), geon.sum(flat, rows), geon.argmin(flat, axis),
        geon.softmax(flat, normalization_axes=axis), geon.sum(geon.exp(flat), axis),
    ]  # fmt: skip
    with (
        geon.NativeTransformer(threads=2) as transformer,
        geon.NumPyTransformer() as numpy,
    ):
        f, g = (each.computation(results, x) for each in (transformer, numpy))
        for shape in ((1, 1), (3, 70), (65, 9), (130, 2)):
            lengths = (*shape, 5) if kept == "last" else (5, *shape)
            values = np.random.default_rng(2).normal(size=lengths).astype(np.float32)
            for got, want in zip(f(values), g(values), strict=True):
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_a_join_of_flattens_of_reordered_axes_divides_nothing(order):
    x = geon.placeholder([A, B, C])
    whole = geon.Axis("F", A.expression * B.expression * C.expression)
    moved = geon.reorder(x, [x.axes[name] for name in order])
    flat = geon.flatten(moved, moved.axes, whole)
    joined = geon.concat([flat * 2, geon.flatten(x, x.axes, whole), flat], whole)
    assert not divisions_left([joined], x)
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(joined, x)
        for shape in (*SHAPES, (0, 3, 2)):
            values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            want = values.transpose(["ABC".index(n) for n in order]).reshape(-1)
            np.testing.assert_array_equal(
                f(values), np.concatenate([want * 2, values.reshape(-1), want])
            )


def test_what_reads_a_flatten_at_one_index_computes_it_there():
    """A flatten that several ops of one loop read needs no memory, nor the way back from it."""
    x = geon.placeholder([A, B])
    flat = geon.flatten(geon.reorder(x, [B, A]), [B, A])
    made = geon.where(flat > 0.5, flat * 2, flat)
    back = geon.reorder(geon.unflatten(made, flat.axes[0], [B, A]), [A, B])
    (kernel,) = Native().computation([back], x).plan.schedule.kernels
    assert not [each for index in Uses.of(kernel.work).indices for each in divisions(index)]
    with geon.NativeTransformer() as transformer:
        f = transformer.computation(back, x)
        for shape in ((1, 1), (7, 65), (0, 4)):
            values = np.random.default_rng(1).normal(size=shape).astype(np.float32)
            np.testing.assert_array_equal(f(values), np.where(values > 0.5, values * 2, values))
