"""Micro operations: the interpretation against NumPy's functions, tensors and derivatives."""

import numpy as np
import pytest

import geon
from geon.frontends.nnc.micro import BINARY, REDUCE, UNARY, Micro, combine, input

A, B = input(0), input(1)
SHAPE = ("dA0", "dA1", "dB1")
PRODUCT = A.reindex(SHAPE, ("i0", "i1")).binary("mul", B.reindex(SHAPE, ("i1", "i2")))
MATMUL = combine(PRODUCT.reduce("sum", 1).reindex(("dA0", "dB1"), ("i0", "0", "i1")))
# Images (height, width, channels) with filters (height, width, in, out), stride 2 along the width.
LOOPS = ("dA0 - dB0 + 1", "(dA1 - dB1) // s + 1", "dB0", "dB1", "dB2", "dB3")
WINDOWS = A.reindex(LOOPS, ("i0 + i2", "s * i1 + i3", "i4"))
FILTERS = B.reindex(LOOPS, ("i2", "i3", "i4", "i5"))
CONVOLUTION = combine(
    WINDOWS.binary("mul", FILTERS)
    .reduce("sum", 2, 3, 4)
    .reindex(("dA0 - dB0 + 1", "(dA1 - dB1) // s + 1", "dB3"), ("i0", "i1", "0", "0", "0", "i2"))
)


def data(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.5, 1.5, shape)


def both(combined, *inputs, **parameters):
    """Return the outputs by NumPy and by a compiled program, which must agree."""
    leaves = [leaf_like(x, k) for k, x in enumerate(inputs)]
    f = geon.NumPyTransformer().computation(combined.tensors(*leaves, **parameters), *leaves)
    known, found = combined.interpret(*inputs, **parameters), f(*inputs)
    for x, y in zip(known, found, strict=True):
        assert x.shape == y.shape and np.allclose(x, y, rtol=1e-12)
    return found


def leaf_like(x, number):
    axes = [geon.Axis(f"x{number}{k}", n) for k, n in enumerate(x.shape)]
    return geon.placeholder(axes, x.dtype)


def test_a_matrix_product_of_micro_operations():
    a, b = data(3, 4), data(4, 5, seed=1)
    assert np.allclose(both(MATMUL, a, b)[0], a @ b, rtol=1e-12)


def test_a_convolution_of_micro_operations(transformer):
    image, filters = data(7, 8, 2), data(3, 2, 2, 4, seed=1)
    known = np.zeros((5, 4, 4))
    for i in range(5):
        for j in range(4):
            known[i, j] = np.tensordot(image[i : i + 3, 2 * j : 2 * j + 2], filters, 3)
    assert np.allclose(both(CONVOLUTION, image, filters, s=2)[0], known, rtol=1e-12)
    leaves = [leaf_like(x, k) for k, x in enumerate((image, filters))]
    f = transformer.computation(CONVOLUTION.tensors(*leaves, s=2), *leaves)
    assert np.allclose(f(image, filters)[0], known, rtol=1e-12)


def test_affine_indices_are_views_and_others_gather():
    x = leaf_like(data(6, 6), 0)

    def ops(*index, shape=("2", "3")):
        (y,) = combine(A.reindex(shape, index)).tensors(x)
        names = set()
        stack = [y]
        while stack:
            op = stack.pop()
            names.add(op.primitive.name)
            stack += op.args
        return names

    assert "gather" not in ops("2 * i0 + 1", "4 - 2 * i1")
    assert "gather" not in ops("i0 + 2 * i1", "dA1 - 1")
    assert "gather" in ops("i0 * i1", "i1")
    assert "gather" in ops("i0", "i0 + i1")  # a loop in two dimensions
    assert "gather" in ops("i0 % 2", "i1 // 2")


@pytest.mark.parametrize(
    "index",
    [
        ("2 * i0 + 1", "4 - 2 * i1"), ("i0 + 2 * i1", "dA1 - 1"), ("i0 * i1", "i1"),
        ("i0", "i0 + i1"), ("i0 % 2", "i1 // 2"), ("1 - i0 + i1", "3"), ("i1", "-(i0 - 3)"),
    ],
    ids=", ".join,
)  # fmt: skip
def test_reindexing_takes_elements_by_expressions(index):
    x = data(6, 6)
    (y,) = both(combine(A.reindex(("2", "3"), index)), x)
    for i0 in range(2):
        for i1 in range(3):
            at = tuple(eval(text, {"i0": i0, "i1": i1, "dA1": 6}) for text in index)
            assert y[i0, i1] == x[at]


def test_all_operations_of_the_tables():
    x, y = data(3, 4), data(3, 4, seed=1)
    for name, function in UNARY.items():
        (found,) = both(combine(A.unary(name)), x > 1 if name == "not" else x)
        assert np.allclose(found, function(x > 1 if name == "not" else x))
    for name, function in BINARY.items():
        given = (x > 1, y > 1) if name in ("and", "or") else (x, y)
        (found,) = both(combine(A.binary(name, B)), *given)
        assert np.allclose(found, function(*given))
    for name in REDUCE:
        (found,) = both(combine(A.reduce(name, 1)), x)
        assert np.allclose(found, getattr(np, name)(x, axis=1, keepdims=True))


def test_the_selected_maximum_is_the_maximum():
    x = data(3, 4)
    chosen, most = combine(A.select(1, A.reduce("argmax", 1)), A.reduce("max", 1)).interpret(x)
    assert np.array_equal(chosen, most)
    assert np.array_equal(both(combine(A.select(0, A.reduce("argmin", 0))), x)[0][0], x.min(0))


@pytest.mark.parametrize("combined", [MATMUL, CONVOLUTION], ids=["matmul", "convolution"])
def test_gradients_and_those_of_gradients(combined):
    shapes = ((3, 4), (4, 5)) if combined is MATMUL else ((5, 6, 2), (3, 2, 2, 2))
    parameters = {} if combined is MATMUL else {"s": 2}
    arrays = [data(*shape, seed=k) for k, shape in enumerate(shapes)]
    leaves = [leaf_like(x, k) for k, x in enumerate(arrays)]
    (seed,) = [data(*y.shape, seed=7) for y in combined.interpret(*arrays, **parameters)]
    tensor = geon.constant(seed, [geon.Axis(f"s{k}", n) for k, n in enumerate(seed.shape)])
    first, second = combined.gradients(leaves, [tensor], **parameters)
    squares = geon.sum(geon.square(first)) + geon.sum(geon.square(second))
    again = geon.deriv(squares, leaves)
    f = geon.NumPyTransformer().computation([first, second, *again], *leaves)
    found = f(*arrays)

    def total(x):
        return np.sum(combined.interpret(*x, **parameters)[0] * seed)

    def squared(x):
        return sum(np.square(g).sum() for g in f(*x)[:2])

    for k, (one, two) in enumerate(zip(found[:2], found[2:], strict=True)):
        assert np.allclose(one, differences(total, arrays, k), rtol=1e-6, atol=1e-7)
        assert np.allclose(two, differences(squared, arrays, k), rtol=1e-6, atol=1e-6)


def differences(function, arrays, number, step=1e-5):
    """Central differences of a function of arrays by one of them."""
    made = np.zeros_like(arrays[number])
    for at in np.ndindex(made.shape):
        moved = [[x.copy() for x in arrays] for _ in range(2)]
        moved[0][number][at] += step
        moved[1][number][at] -= step
        made[at] = (function(moved[0]) - function(moved[1])) / (2 * step)
    return made


def test_values_without_elements():
    (y,) = both(combine(A.reindex(("dA1", "2"), ("i1", "i0"))), np.zeros((2, 0)))
    assert y.shape == (0, 2)


def test_operations_are_data():
    assert A.reindex(("dA1",), ("0", "i0")) == Micro("reindex", (A,), (("dA1",), ("0", "i0")))
    assert hash(MATMUL) == hash(combine(*MATMUL.outputs))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: A.unary("cbrt"), geon.ArgumentError, "no unary micro operation 'cbrt'"),
        (lambda: A.reindex(("2",), ("x(i0)",)), geon.ArgumentError, "'x.i0.' is no index expr"),
        (lambda: A.reindex(("2",), ("i0 +",)), geon.ArgumentError, "no index expression"),
        (lambda: A.reduce("argmax", 0, 1), geon.ArgumentError, "along one dimension"),
        (
            lambda: both(combine(A.reindex(("k",), ("i0", "0"))), data(2, 2)),
            geon.ArgumentError,
            "name 'k'; known are dA0, dA1",
        ),
        (
            lambda: combine(A.reindex(("3",), ("i0", "0"))).interpret(data(2, 2)),
            geon.IndexRangeError,
            "dimension 0 are 0 to 2, and it has 0 to 1",
        ),
        (
            lambda: combine(A.reindex(("3",), ("i0", "0"))).tensors(leaf_like(data(2, 2), 0)),
            geon.IndexRangeError,
            "dimension 0 are 0 to 2, and it has 0 to 1",
        ),
        (
            lambda: combine(A.binary("mul", B)).interpret(data(2), data(3)),
            geon.AxisError,
            r"shapes \(2,\) and \(3,\)",
        ),
        (lambda: combine(B).interpret(data(2)), geon.ArgumentError, "input 1 of a combination"),
        (
            lambda: combine(A.reindex(("2",), ("i0",))).interpret(data(2, 2)),
            geon.AxisError,
            "of 2 dimensions; give an index for each",
        ),
        (
            lambda: combine(A).tensors(geon.placeholder([geon.Axis("N")])),
            geon.AxisError,
            "has an open length",
        ),
    ],
)
def test_errors_say_what_is_wrong(make, error, match):
    with pytest.raises(error, match=match):
        make()
