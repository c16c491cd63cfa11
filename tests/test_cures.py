"""Mistakes of newcomers: each message says what is wrong in the user's words, and what to write."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import geon
from geon.op_graph.syntax import foreign_names

A, B, N = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("N")
X = geon.placeholder([A, B], name="x")
V = geon.placeholder([B], name="v")
Q = geon.placeholder([N], name="q")
K = geon.placeholder([N], "int64", name="i")
P = geon.placeholder([N, B], name="p")
W = geon.Variable([B], initial_value=0, name="w")
MASKED = np.ma.masked_invalid([1.0, np.nan, 3.0])
TREE = xr.DataTree.from_dict({"/": xr.Dataset({"a": ("B", [1.0, 2.0, 3.0])})})
STREAM = geon.Random(0)
TRANSFORMER = geon.NumPyTransformer()


def call(result, *inputs):
    """A function that computes a result for fixed values of placeholders."""
    leaves, values = inputs[::2], inputs[1::2]
    return lambda: TRANSFORMER.computation(result, *leaves)(*values)


def feed(value):
    return call(V * 2, V, value)


MISTAKES = {
    "masked + tensor": (lambda: MASKED + V, geon.SymbolicError, "array.filled(value) + x"),
    "masked > tensor": (lambda: MASKED > V, geon.SymbolicError, "array.filled(value) + x"),
    "tensor + masked": (lambda: V + MASKED, geon.DTypeError, "MaskedArray of shape (3,): "),
    "tree + tensor": (lambda: TREE + V, AttributeError, "tree[path] + x"),
    "tensor + dataset": (lambda: V + TREE.to_dataset(), geon.DTypeError, "take one of them: 'a'"),
    "dataset fed": (feed(TREE.to_dataset()), geon.FeedError, "take one of them: 'a'"),
    "texts": (feed(np.array(["a", "b", "c"], object)), geon.FeedError, "give each text a number"),
    "digits": (
        feed(np.array(["1", "2", "3"], object)), geon.FeedError, "convert it with .astype('float64"
    ),
    "objects for integers": (
        call(K, K, np.array([1, 2, 3], object)), geon.FeedError,
        "convert it with .astype('int64')",
    ),
    "long integers": (
        call(K, K, [-(10**5000), 10**400]), geon.FeedError,
        "from about -10**5000 to about 10**400; int64 holds",
    ),
    "long numbers": (
        call(V, V, [10**400, 1.5, 2]), geon.FeedError, "about 10**400, which is too large"
    ),
    "threads": (
        lambda: geon.NativeTransformer(threads=100_000), geon.ArgumentError,
        "give a number of threads, 1 to 1024",
    ),
    "none": (feed(np.array([1, None, 3], object)), geon.FeedError, "put numbers in the place"),
    "ragged feed": (feed([[1, 2], [3]]), geon.FeedError, "fill the shorter ones"),
    "ragged": (lambda: V + [[1, 2], [3]], geon.DTypeError, "fill the shorter ones"),
    "edge of nothing": (
        call(geon.pad(Q, {N: 1}, mode="edge"), Q, []), geon.GuardError, "no element that the border"
    ),
    "reflected nothing": (
        lambda: geon.pad(geon.placeholder([geon.Axis("E", 0)]), {"E": 1}, mode="reflect"),
        geon.AxisError, "or pad with mode='constant'",
    ),
    "softmax of nothing": (
        lambda: geon.softmax(geon.placeholder([geon.Axis("E", 0)])), geon.AxisError,
        "softmax over E",
    ),
    "name": (lambda: geon.Variable([B], name="\ud800"), geon.ArgumentError, "no file can hold"),
    "axis name": (lambda: geon.Axis("\ud800"), geon.ArgumentError, "no file can hold"),
    "stream name": (lambda: geon.Random(0, name="\ud800"), geon.ArgumentError, "no file can hold"),
    "concat": (lambda: geon.concat([], A), geon.AxisError, "give at least one"),
    "stack": (lambda: geon.stack([], A), geon.AxisError, "give at least one"),
    "where": (lambda: geon.where(V, 1), geon.ArgumentError, "geon.where(condition, x, y)"),
    "add": (lambda: geon.add(V), geon.ArgumentError, "write geon.add(x, y)"),
    "check": (
        lambda: TRANSFORMER.computation(V, V, check="inf"), geon.ArgumentError, 'check="nan" stops'
    ),
    "per of a slice": (
        lambda: geon.deriv(geon.dot(X, W)[{A: slice(0, 1)}], W, per=A), geon.DerivativeError,
        "there are 1 places along it in the result and 2 in dot(A:2)",
    ),
    "per of an open slice": (
        lambda: geon.deriv(geon.dot(P, W)[{N: slice(1, None)}], W, per=N), geon.DerivativeError,
        "take it of the derivative",
    ),
    "float": (lambda: float(V[0]), geon.SymbolicError, "computation(x, v)(value of v)"),
    "float of what x is in": (
        lambda: float(geon.sum(geon.placeholder([geon.Axis("N")], name="x"))),
        geon.SymbolicError,
        "computation(result, x)(value of x)",
    ),
    "array": (lambda: np.asarray(V), geon.SymbolicError, "computation(v, v)(value of v)"),
    "format": (lambda: f"{V:.2f}", geon.SymbolicError, "cannot be written as '.2f'"),
    "round": (lambda: round(V, 2), geon.SymbolicError, "geon.round(x, decimals=2)"),
    "mean over": (lambda: geon.mean(X, "Z"), geon.AxisError, "mean at "),
    "norm over": (lambda: geon.L2_norm(X, "Z"), geon.AxisError, "L2_norm at "),
    "entropy over": (
        lambda: geon.cross_entropy_binary(geon.sigmoid(X), X > 0, out_axes="Z"), geon.AxisError,
        "cross_entropy_binary at ",
    ),
    "class numbers": (
        lambda: geon.cross_entropy_multi(geon.softmax(X, B), geon.constant([1, 0], [A])),
        geon.AxisError, "write geon.onehot(t, B)",
    ),
    "hessian": (lambda: geon.hessian(W * 2, W), geon.DerivativeError, "reduce it, for example"),
    "outer": (lambda: geon.outer(geon.softmax, V, V), geon.ArgumentError, "outer: softmax is no"),
    "std": (lambda: STREAM.normal([A], std=np.array(-1.0)), geon.ArgumentError, "give a standard"),
    "std over": (
        lambda: STREAM.normal([A], std=geon.constant([1.0, -1.0], [A])), geon.ArgumentError,
        "a standard deviation of at least 0",
    ),
    "p": (
        lambda: STREAM.bernoulli([A], p=geon.constant([0.5, 1.5], [A])), geon.ArgumentError,
        "a probability from 0 to 1",
    ),
    "low": (
        lambda: STREAM.uniform([A], low=np.float32(2)), geon.ArgumentError, "a low that is at most"
    ),
    "options": (
        lambda: geon.make_transformer("numpy", threads=2), geon.ArgumentError, "takes no options"
    ),
    "table of texts": (
        feed(pd.Series(["a", "b", "c"])), geon.FeedError, "give each text a number"
    ),
    "index None": (lambda: X[None], geon.IndexRangeError, "geon.expand(x, axis)"),
    "index name": (lambda: X["B"], geon.IndexRangeError, "x[{'B': position}]"),
    "index axis": (lambda: X[B], geon.IndexRangeError, "x[{'B': position}]"),
    "index list": (lambda: X[[0, 1]], geon.IndexRangeError, 'geon.gather(x, positions, "A")'),
    "value": (lambda: setattr(W, "value", 3), AttributeError, "transformer.set(variable, value)"),
    "placeholders": (
        lambda: TRANSFORMER.computation(V, [V]), geon.ArgumentError, "computation(results, x, y)"
    ),
    "function": (
        lambda: TRANSFORMER.computation(lambda x: x, X), geon.DTypeError, "call it, and take what"
    ),
    "None fed": (feed(None), geon.FeedError, "was given None, which is no array"),
    "dict fed": (feed({V: 1}), geon.FeedError, "was given a dict, which is no array"),
    "geon.float32": (lambda: geon.float32, AttributeError, 'write "float32", a string'),
    "dtype float": (lambda: geon.placeholder([A], "float"), geon.DTypeError, "write 'float32'"),
    "torch": (lambda: geon.placeholder([A], "torch.int8"), geon.DTypeError, "write 'int8'"),
    "chained": (lambda: 0 < X < 1, geon.SymbolicError, "&, | and ~ join conditions"),
    "math": (lambda: np.sqrt(float(V[0])), geon.SymbolicError, "take the place of math.sqrt"),
    "sort": (lambda: geon.sort(X), geon.AxisError, 'write geon.sort(x, axis="B")'),
    "gpu": (lambda: geon.make_transformer("cuda"), geon.UnavailableError, "'pycuda' is for GPUs"),
    "class": (lambda: geon.NumPyTransformer("x"), geon.ArgumentError, "it takes ()"),
    "gradient": (
        lambda: TRANSFORMER.computation(V, V).gradient, AttributeError, "geon.deriv(loss, variables"
    ),
    "run": (lambda: TRANSFORMER.run(V), AttributeError, "transformer.computation(results"),
    "randn": (lambda: STREAM.randn(3), AttributeError, "stream.normal(axes)"),
    "name first": (
        lambda: geon.placeholder("x", [A]), geon.ArgumentError, 'geon.placeholder(axes, dtype, name'
    ),
    "value first": (lambda: geon.Variable(np.zeros(3)), geon.AxisError, "initial_value="),
    "no axes": (
        lambda: geon.Variable(initial_value=np.zeros(3)), geon.AxisError, "geon.Variable([...], in"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_answered_with_its_cure(case):
    provoke, kind, cure = MISTAKES[case]
    with pytest.raises(kind) as caught:
        provoke()
    assert cure in str(caught.value)


def test_a_tensor_may_be_rounded_and_written():
    assert round(V) is geon.round(V)
    assert f"{V}" == str(V) and f"{V:>8}" == "  v(B:3)"


def test_constants_as_parameters_of_draws_are_taken():
    widths = geon.constant([0.0, 2.0], [A])
    drawn = STREAM.normal([A], std=widths)
    assert TRANSFORMER.computation(drawn)()[0] == 0
    assert TRANSFORMER.computation(STREAM.bernoulli([B], p=np.float32(1)))().tolist() == [1, 1, 1]


@pytest.mark.parametrize("transformer", ["numpy", "native"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_inverse_of_erf_keeps_the_sign_of_zero(transformer, dtype):
    x = geon.placeholder([B], dtype)
    with geon.make_transformer(transformer) as t:
        found = t.computation(geon.erfinv(x), x)([-0.0, 0.0, np.nan])
    assert np.signbit(found[:2]).tolist() == [True, False] and np.isnan(found[2])


@pytest.mark.parametrize(
    "owner, cures",
    [
        (geon.Random, foreign_names.STREAMS),
        (geon.NativeTransformer, foreign_names.TRANSFORMERS),
        (geon.Computation, foreign_names.COMPUTATIONS),
    ],
)
def test_what_is_named_as_missing_is_missing(owner, cures):
    assert not [name for name in cures if hasattr(owner, name)]


def test_cures_of_streams_build():
    axis, axes, others = B, [B], []
    x, low, high, mean, std, shape, scale, degrees = V, 0, 4, 0.0, 1.0, 2.0, 1.0, 3
    for name, cure in foreign_names.STREAMS.items():
        if name != "split":
            code = cure.partition(", with")[0]
            made = eval(code, {"geon": geon, "stream": STREAM, "keep": 0.5, **locals()})
            assert made.axes.names == ("B",), name


def test_names_of_other_libraries_are_no_functions_of_geon():
    assert not [name for name in foreign_names.FUNCTIONS if name in dir(geon)]
