"""What public docstrings say that functions raise, case by case."""

import numpy as np
import pytest

import geon

A, B, C, N = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("C", 4), geon.Axis("N")
X = geon.placeholder([A, B], name="X")
Y = geon.placeholder([A, B], name="Y")
CLASSES = geon.placeholder([N], "int64", name="classes")


@geon.custom_deriv(lambda g, out, x: g + 1)
def wrongly_ruled(x):
    return x * 2


@geon.custom_deriv(lambda g, out, x: [g])
def no_tensor(x):
    return None


CASES = {
    "Axes: twice": (geon.AxisError, lambda: geon.Axes(A, B, A)),
    "Axes.index: none": (geon.AxisError, lambda: X.axes.index("Q")),
    "add: two lengths": (geon.AxisError, lambda: X + geon.placeholder([A, geon.Axis("B", 4)])),
    "add: no shared axis": (geon.AxisError, lambda: X + geon.placeholder(C)),
    "bitwise_and: floats": (geon.DTypeError, lambda: geon.bitwise_and(X, X)),
    "logsumexp: nothing": (
        geon.AxisError,
        lambda: geon.logsumexp(geon.placeholder(geon.Axis("Z", 0))),
    ),
    "softmax: over what": (geon.AxisError, lambda: geon.softmax(X)),
    "gelu: another form": (geon.ArgumentError, lambda: geon.gelu(X, approximate="cubic")),
    "onehot: floats": (geon.DTypeError, lambda: geon.onehot(X, C)),
    "onehot: has the axis": (geon.AxisError, lambda: geon.onehot(CLASSES, N)),
    "outer: not elementwise": (geon.ArgumentError, lambda: geon.outer(geon.dot, X, Y)),
    "outer: operands": (geon.ArgumentError, lambda: geon.outer(geon.exp, X, Y)),
    "constant: no axes": (geon.AxisError, lambda: geon.constant(np.ones(3))),
    "constant: do not fit": (geon.AxisError, lambda: geon.constant(np.ones(3), axes=A)),
    "dot: nothing shared": (geon.AxisError, lambda: geon.dot(X, geon.placeholder(C))),
    "dot: over is not shared": (geon.AxisError, lambda: geon.dot(X, Y, over=C)),
    "contract: in no operand": (geon.AxisError, lambda: geon.contract([X, Y], over=C)),
    "deriv: unreached": (geon.DerivativeError, lambda: geon.deriv(geon.sum(X), Y)),
    "deriv: constant": (
        geon.DerivativeError,
        lambda: geon.deriv(geon.sum(X), geon.constant(np.ones(2), axes=A)),
    ),
    "deriv: not of a float": (
        geon.DerivativeError,
        lambda: geon.deriv(geon.sum(geon.cast(CLASSES, "float32")), CLASSES),
    ),
    "deriv: no seed": (geon.DerivativeError, lambda: geon.deriv(X * X, X)),
    "jvp: not of a float": (
        geon.DerivativeError,
        lambda: geon.jvp(geon.cast(CLASSES, "float32"), CLASSES, CLASSES),
    ),
    "custom_deriv: no tensor": (geon.DerivativeError, lambda: no_tensor(X)),
    "custom_deriv: no list": (
        geon.DerivativeError,
        lambda: geon.deriv(geon.sum(wrongly_ruled(X)), X),
    ),
    "dumps: a feed too many": (geon.DumpError, lambda: geon.dumps(X, feeds={Y: np.ones((2, 3))})),
    "loads: no dump": (geon.DumpError, lambda: geon.loads("{}")),
    "assign: no storage": (geon.AssignError, lambda: geon.assign(X + 1, 0)),
    "concat: lacks it": (geon.AxisError, lambda: geon.concat([X, geon.sum(X, A)], A)),
    "concat: another differs": (
        geon.AxisError,
        lambda: geon.concat([X, geon.placeholder([A, geon.Axis("B", 4)])], A),
    ),
    "stack: other axes": (geon.AxisError, lambda: geon.stack([X, geon.sum(X, A)], geon.Axis("T"))),
    "stack: length": (geon.AxisError, lambda: geon.stack([X, Y], C)),
    "pad: negative": (geon.AxisError, lambda: geon.pad(X, {A: (-1, 0)})),
    "pad: mode": (geon.AxisError, lambda: geon.pad(X, {A: (1, 0)}, mode="wrapped")),
    "cross_entropy_multi: numbers": (
        geon.AxisError,
        lambda: geon.cross_entropy_multi(geon.softmax(X, B), geon.placeholder(A, "int64")),
    ),
    "broadcast: lacks one": (geon.AxisError, lambda: geon.broadcast(X, [A, C])),
    "broadcast: length": (geon.AxisError, lambda: geon.broadcast(X, [A, geon.Axis("B", 4)])),
    "reorder: another set": (geon.AxisError, lambda: geon.reorder(X, [A, C])),
    "cast_axes: lengths": (geon.AxisError, lambda: geon.cast_axes(X, [A, C])),
    "rename: length": (geon.AxisError, lambda: geon.rename(X, {B: C})),
    "top_k: fewer": (geon.AxisError, lambda: geon.top_k(X, 4, B)),
    "top_k: negative": (geon.AxisError, lambda: geon.top_k(X, -1, B)),
    "take: outside": (geon.IndexRangeError, lambda: X[:, 1:4]),
    "Random: seed": (geon.DTypeError, lambda: geon.Random(2**64)),
    "uniform: dtype": (geon.DTypeError, lambda: geon.Random(0).uniform(A, dtype="int32")),
    "normal: dtype": (geon.DTypeError, lambda: geon.Random(0).normal(A, dtype="bool")),
    "polygamma: order": (geon.DerivativeError, lambda: geon.polygamma(-1, X)),
    "make_transformer: name": (geon.UnavailableError, lambda: geon.make_transformer("abacus")),
}


# These are about arguments alone, and need not say where a tensor was made.
OF_ARGUMENTS = {
    "Axes: twice",
    "Axes.index: none",
    "outer: not elementwise",
    "outer: operands",
    "constant: no axes",
    "constant: do not fit",
    "custom_deriv: no tensor",
    "loads: no dump",
    "Random: seed",
    "uniform: dtype",
    "normal: dtype",
    "make_transformer: name",
}

CURES = {
    "Axes.index: none": "ask for one that is there: 'A', 'B'",
    "gelu: another form": "give 'none', the exact form, or 'tanh'",
    "contract: in no operand": "name axes among (A:2, B:3)",
    "stack: other axes": "geon.broadcast one of them",
    "stack: length": "give an open axis or one of length 2",
    "pad: negative": "a slice takes elements away",
    "pad: mode": "give 'constant', 'edge' or 'reflect'",
    "top_k: fewer": "give a k of at most its length",
    "top_k: negative": "give a k that is an integer of at least 0",
    "dumps: a feed too many": "leave it out, or give arrays for those that are: X(A:2, B:3)",
    "polygamma: order": "order 0 is geon.digamma",
    "Random: seed": "give 0, its lowest 64 bits, or another",
}


@pytest.mark.parametrize("case", CURES)
def test_it_says_the_cure(case):
    error, build = CASES[case]
    with pytest.raises(error) as caught:
        build()
    assert str(caught.value).endswith(CURES[case])


@pytest.mark.parametrize("case", CASES)
def test_it_raises_what_is_said(case):
    error, build = CASES[case]
    with pytest.raises(error) as caught:
        build()
    assert type(caught.value) is error
    text = str(caught.value)
    assert len(text) > 25
    assert case in OF_ARGUMENTS or "test_raises.py:" in text
