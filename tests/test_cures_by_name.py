"""Names and ways of other libraries: the errors say what to write, and what they say runs."""

import math
import operator
import re
import warnings

import numpy as np
import pytest

import geon
from geon.op_graph.axes.lengths import Length, evaluate
from geon.op_graph.syntax import foreign_names

A, B, T, S = geon.Axis("A", 3), geon.Axis("B", 4), geon.Axis("T"), geon.Axis("S", 2)
X = geon.placeholder([A, B], name="x")
V = geon.placeholder([A], name="v")
XT = geon.placeholder([T], name="xT")
I = geon.placeholder((), "int64", name="i")  # noqa: E741  # as people write it
W = geon.Variable([A], initial_value=0, name="w")
WEIGHTS = geon.Variable([B, S], initial_value=0.0, name="W")
BIAS = geon.Variable([S], initial_value=0.0, name="b")
LEAKED = []


def leaking(c, p):
    LEAKED.append(c * p)
    return c + p, None


geon.scan(leaking, geon.constant(0.0), V, over="A")
geon.while_loop(lambda c: geon.sum(c) < 9, lambda c: LEAKED.append(c) or c + V, V)
geon.fixed_point(lambda y: LEAKED.append(y) or y / 2, V)

NAMES = {
    "x": X, "y": X, "v": V, "A": A, "B": B, "S": S, "geon": geon, "math": math, "tolerance": 1e-3,
    "axes": [B, A], "dtype": "float64", "value": 1.0,
    "condition": X > 0,
}  # fmt: skip
RUN = [
    "append", "astype", "broadcast_to", "detach", "diag", "expit", "fabs", "matrix_transpose",
    "ravel", "reduce_max", "reduce_mean", "reduce_sum",
]  # fmt: skip


@pytest.mark.parametrize("name", RUN)
def test_cures_of_functions_build(name):
    with pytest.raises(AttributeError, match="; write geon"):
        getattr(geon, name)
    for code in re.split(r", or | for | and (?=geon)|; ", foreign_names.FUNCTIONS[name]):
        if "(" in code and "diagonal" not in code:  # which takes axes of one length
            assert isinstance(eval(code, NAMES), geon.Tensor), code


@pytest.mark.parametrize("name", ["avg_pool2d", "manual_seed", "nll_loss", "digitize", "identity"])
def test_other_names_are_answered(name):
    with pytest.raises(AttributeError, match="; write geon"):
        getattr(geon, name)


@pytest.mark.parametrize(
    "name", ["data", "item", "numpy", "detach", "view", "T", "size", "cpu", "clone", "nbytes"]
)
def test_attributes_of_other_arrays_are_answered(name):
    with pytest.raises(AttributeError, match=r"tensor add\(.* \(made at .*; write "):
        getattr(X + 1, name)


NUMPY = {
    "add.reduce": (lambda: np.add.reduce(X), "write geon.sum"),
    "minimum.reduce": (lambda: np.minimum.reduce(X, axis=A), "write geon.min"),
    "multiply.outer": (lambda: np.multiply.outer(X, V), r"geon.outer\(geon.multiply, x, y\)"),
    "fabs": (lambda: np.fabs(X), "write geon.absolute"),
    "cbrt": (lambda: np.cbrt(X), r"write geon.cbrt"),
    "spacing": (lambda: np.spacing(X), "geon has no function for it"),
    "ravel": (lambda: np.ravel(X), "write geon.flatten"),
    "broadcast_to": (lambda: np.broadcast_to(X, (2, 3, 4)), "write geon.broadcast"),
    "append": (lambda: np.append(X, X), "write geon.concat"),
    "matrix_transpose": (lambda: np.matrix_transpose(X), "write geon.reorder"),
    "var": (lambda: np.var(X, axis=A, ddof=1), "correction=n"),
    "diag": (lambda: np.diag(V), "for the matrix of a vector"),
    "outer": (lambda: np.outer(V, V), r"geon.outer\(geon.multiply"),
    "round": (lambda: np.round(X, 2), r"geon.round\(x, decimals=2\)"),
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_functions_name_geons(name):
    call, cure = NUMPY[name]
    with pytest.raises(geon.SymbolicError, match=cure):
        call()


REFUSED = {
    "roll": (lambda: geon.roll(V, 1), geon.ArgumentError, r'a dict from axes of v.*\{"A": 2\}'),
    "roll by name": (lambda: geon.roll(V, "A"), geon.ArgumentError, "a dict from axes"),
    "resize": (lambda: geon.resize(V, 8), geon.ArgumentError, "a dict from axes"),
    "expand": (lambda: geon.expand(X, S, position="A"), geon.ArgumentError, "is no integer"),
    "case_of": (lambda: geon.case_of(I, lambda: V), geon.ArgumentError, r"is no list.*lambda: x"),
    "cond": (lambda: geon.cond(I > 0, V, -V), geon.ArgumentError, r"is a tensor and.*lambda:"),
    "axes": (lambda: X.axes["Q"], KeyError, "no axis 'Q' among A, B"),
    "only": (
        lambda: geon.NumPyTransformer().restore("state", only=lambda name: True),
        geon.ArgumentError, "patterns of them",
    ),
    "constant": (
        lambda: geon.constant(np.ones((4, 3)), [A, B]), geon.AxisError,
        r"constant at .*test_cures.*axis A has length 3 and dimension 0 .* 4;.*transpose the data",
    ),
    "first value": (
        lambda: geon.Variable([A, B], initial_value=np.ones((4, 3)), name="u"), geon.AxisError,
        r"variable 'u' at .*test_cures.*axis A has length 3.*transpose the data",
    ),
    "labelled constant": (
        lambda: geon.constant(np.ones(2), [A]), geon.AxisError, "axis A has length 3",
    ),
    "leaked": (
        lambda: geon.NumPyTransformer().computation(LEAKED[0], V), geon.ArgumentError,
        r"in the steps of the scan at .*test_cures.*let the step return",
    ),
    "leaked from while_loop": (
        lambda: geon.NumPyTransformer().computation(LEAKED[1], V), geon.ArgumentError,
        "in the steps of the while_loop at .*test_cures",
    ),
    "leaked from fixed_point": (
        lambda: geon.NumPyTransformer().computation(LEAKED[2], V), geon.ArgumentError,
        "in the steps of the fixed_point at .*test_cures",
    ),
    "per": (
        lambda: geon.deriv(geon.dot(X, WEIGHTS), WEIGHTS, per=A), geon.DerivativeError,
        r"not a scalar; give seed=.*geon.sum\(y, out_axes=\['A'\]\)",
    ),
    "order of lengths": (
        lambda: max(T.length, 1), geon.SymbolicError, "cannot be compared.*geon.tensor_size"
    ),
    "where": (lambda: geon.where(V > 0, x=V, y=V), geon.ArgumentError, "operands by position; it"),
    "Window": (lambda: geon.Window(2, strides=2), geon.ArgumentError, "write stride= for strides="),
    "max_pool": (lambda: geon.max_pool(X, kernel_size=2), geon.ArgumentError, "windows={T: geon"),
    "convolution": (
        lambda: geon.convolution(X, X, stride=2), geon.ArgumentError, "windows={T: geon.Window"
    ),
    "groups": (lambda: geon.convolution(X, X, groups=2), geon.ArgumentError, "an axis of groups"),
    "pow": (lambda: pow(X, 2, 3), geon.SymbolicError, r"\(x \*\* y\) % z"),
    "placeholder": (
        lambda: geon.placeholder([A], "x"), geon.DTypeError, r"placeholder at .*name='x'"
    ),
    "Variable": (lambda: geon.Variable([A], "w"), geon.DTypeError, r"Variable at .*name='w'"),
    "assign": (
        lambda: geon.assign(W[0:2], W[0:3]), geon.AxisError,
        r"assign at .* has length 3 along 'A'.*a part of w\(A:3\), 2; give both",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_answered(name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call()


def test_the_cure_of_per_runs():
    y = geon.sum(geon.square(geon.dot(X, WEIGHTS)), out_axes=["A"])
    assert geon.deriv(y, WEIGHTS, per=A).axes.names == ("A", "B", "S")


def test_a_length_is_a_weak_integer_in_expressions(transformer):
    half = geon.placeholder([T], "float16")
    build = [
        XT / T.length,
        1 / T.length,
        T.length**-0.5,
        T.length * 0.5,
        T.length + XT,
        XT * T.length,
    ]
    wanted = [[0.25, 0.5, 0.75, 1], 0.25, 0.5, 2.0, [5, 6, 7, 8], [4, 8, 12, 16]]
    build += [T.length // XT, T.length % XT, XT // T.length, T.length // 2.5, T.length % 2.5]
    wanted += [[4, 2, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1], 1, 1.5]
    build += [2**T.length, abs(T.length - 6), np.sqrt(T.length), XT / np.sqrt(T.length)]
    wanted += [16, 2, 2, [0.5, 1, 1.5, 2]]
    build += [np.float32(2) * T.length, np.maximum(XT, T.length), np.power(T.length, 2)]
    wanted += [8, [4, 4, 4, 4], 16]
    assert (half / T.length).dtype == "float16" and isinstance(T.length * 2, Length)
    found = transformer.computation(build, XT)([1.0, 2.0, 3.0, 4.0])
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other)


@pytest.mark.parametrize("three", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_integers_of_numpy_and_lengths_make_lengths(three):
    length = T.length
    assert three * length == length * 3 and three + length == length + 3
    assert three - length == 3 - length and np.subtract(length, three) == length - 3
    assert three // length == 3 // length and np.negative(length) == -length == -(+length)
    for rest in (length % 3, np.remainder(length, three)):
        assert [evaluate(rest, {"T": n}) for n in (0, 1, 2, 3, 7)] == [0, 1, 2, 0, 1]
    assert evaluate(three % length, {"T": 2}) == 1
    assert not three == length and three != length
    with pytest.raises(geon.SymbolicError, match="cannot be compared with"):
        operator.lt(three, length)


def test_arrays_without_axes_do_not_become_arrays_of_ops():
    with pytest.raises(
        geon.AxisError,
        match=r"shape \(3,\) has no axes at \S*by_name\.py:\d+; name",
    ):
        np.ones(3) * T.length
    with pytest.raises(geon.SymbolicError, match=r"cannot be given to np\.add\.reduce"):
        np.add.reduce(T.length)


SCORES = {
    "tanh": geon.tanh, "relu": geon.relu, "silu": geon.silu, "gelu": geon.gelu,
    "cast": lambda s: geon.cast(s, "float64"), "both": lambda s: geon.tanh(s).cast("float64"),
}  # fmt: skip
PROBABILITIES = {
    "softmax": lambda s: geon.softmax(s, S), "sigmoid": geon.sigmoid,
    "tanh moved": lambda s: (geon.tanh(s) + 1) / 2, "clipped": lambda s: geon.clip(s, 0.0, 1.0),
}  # fmt: skip


def entropy(of):
    wanted = geon.broadcast(0.5, [A, S])
    return geon.cross_entropy_multi(of(geon.dot(X, WEIGHTS) + BIAS), wanted)


@pytest.mark.parametrize("name", SCORES)
def test_scores_under_an_activation_are_warned_of(name):
    with pytest.warns(UserWarning, match="take them first, for example with geon.softmax"):
        entropy(SCORES[name])


def test_convolved_scores_are_warned_of():
    time, window = geon.Axis("time", 8), geon.Axis("R", 3)
    signal = geon.placeholder([B, time])
    kernel = geon.Variable([B, window, S], initial_value=0.0)
    made = geon.convolution(signal, kernel, {time: geon.Window(window)})
    with pytest.warns(UserWarning, match="geon.softmax"):
        geon.cross_entropy_multi(geon.relu(made), geon.broadcast(0.5, made.axes))


@pytest.mark.parametrize("name", PROBABILITIES)
def test_probabilities_are_not(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entropy(PROBABILITIES[name])


def test_pythons_own_errors_remain():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        geon.nothing  # noqa: B018  # asking is the test
    with pytest.raises(AttributeError, match="immutable"):
        A.name = "B"
    for find in (lambda: geon.find("nothing", X), lambda: X.axes["nothing"]):
        with pytest.raises(KeyError, match="nothing"):
            find()


def test_an_axis_without_elements_has_no_positions(transformer):
    empty = geon.placeholder([geon.Axis("Z", 0)])
    f = transformer.computation(geon.gather(empty, I, "Z"), empty, I)
    with pytest.raises(geon.IndexRangeError, match="there is no position in it"):
        f([], 0)
    with pytest.raises(geon.IndexRangeError, match="it has no elements"):
        empty[0]


def saved(path, *variables):
    with geon.NumPyTransformer() as transformer:
        transformer.computation(list(variables))()
        transformer.save(path)


def restored(path, *variables, **options):
    with geon.NumPyTransformer() as transformer:
        transformer.computation(list(variables))()
        transformer.restore(path, **options)
        return [transformer.get(v).tolist() for v in variables]


def test_restoring_says_what_rename_did(tmp_path):
    path = tmp_path / "state"

    def variable(name, value=0.0):
        return geon.Variable([S], initial_value=value, name=name)

    saved(path, variable("w", 1.0), variable("b", 2.0))
    model = variable("enc.w"), variable("b")
    with pytest.raises(geon.CheckpointError, match=r"rename= makes it 'enc.b'; put \{'b': 'b'\}"):
        restored(path, *model, rename={"*": "enc.*"})
    assert restored(path, *model, rename={"b": "b", "*": "enc.*"}) == [[1, 1], [2, 2]]
    saved(path, variable(None), variable(None))
    with pytest.raises(geon.CheckpointError, match="made by counting, and the file has 2"):
        restored(path, variable(None), strict=False)
