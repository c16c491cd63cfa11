"""Calls whose arguments do not fit say what geon calls them."""

import inspect
import pickle

import numpy as np
import pytest

import geon
import geon.frontends.neon
from geon.op_graph.core.argument_hints import FLAG, LIST
from geon.testing.cases import for_each

A, B = geon.Axis("A", 2), geon.Axis("B", 3)
X = geon.placeholder([A, B], name="x")
N = geon.placeholder([B], "int64", name="n")
STREAM = geon.Random(0)
TRANSFORMER = geon.NumPyTransformer()
AXIS = 'a geon.Axis or its name, such as "N", not a number'

WRONG = {
    "sum axis": (lambda: geon.sum(X, axis=0), f"write reduction_axes= for axis=: {AXIS}"),
    "method": (lambda: X.sum(axis=0), f"write reduction_axes= for axis=: {AXIS}"),
    "mean keepdims": (lambda: geon.mean(X, keepdims=True), "keepdims=: leave it out"),
    "softmax dim": (lambda: geon.softmax(X, dim=-1), "write normalization_axes= for dim="),
    "concat dim": (lambda: geon.concat([X, X], dim=0), "write axis= for dim="),
    "placeholder": (lambda: geon.placeholder(shape=[2]), 'axes= for shape=: a list such as [geon.'),
    "variable init": (lambda: geon.Variable([A], init=0), "write initial_value= for init="),
    "normal scale": (lambda: STREAM.normal([A], scale=2), "write std= for scale="),
    "exp dtype": (lambda: geon.exp(X, dtype="float64"), "write geon.cast(x, dtype)"),
    "maximum axis": (lambda: geon.maximum(X, X, axis=0), "this goes by element; geon.sum"),
    "onehot": (lambda: geon.onehot(N, num_classes=3), "write axis= for num_classes=: a geon.Axis"),
    "while_loop": (
        lambda: geon.while_loop(cond_fun=None, body_fun=None, init_val=0),
        "write condition= for cond_fun=",
    ),
    "Axis": (lambda: geon.Axis("A", size=3), "write length= for size="),
    "computation": (lambda: TRANSFORMER.computation(X, inputs=[X]), "give the placeholders one"),
    "restore": (lambda: TRANSFORMER.restore(file="a"), "write path= for file="),
    "near": (lambda: geon.sum(X, out_axis=A), "did you mean out_axes=?"),
    "unknown": (lambda: geon.sum(X, qqqqq=A), "it takes (x, reduction_axes, out_axes=,"),
    "not these": (lambda: geon.mean(X, tags="a"), "it takes (x, reduction_axes, out_axes=, name=)"),
    "too many": (lambda: geon.sum(X, A, B), "takes from 1 to 2 positional arguments but 3"),
    "too few": (lambda: geon.Random(), "missing 1 required positional argument: 'seed'"),
}  # fmt: skip


@for_each("case", WRONG)
def test_arguments_of_other_libraries_are_answered(case):
    build, cure = WRONG[case]
    with pytest.raises(geon.ArgumentError) as caught:
        build()
    message = str(caught.value)
    assert cure in message
    assert f" at {__file__}:" in message or " at tests/op_graph/test_keywords.py:" in message
    assert caught.value.__cause__ is None and caught.value.__suppress_context__ is False


def test_every_public_function_answers():
    plain = [
        name
        for name in dir(geon)
        if inspect.isfunction(getattr(geon, name)) and not name.startswith("_")
        if not hasattr(getattr(geon, name), "__wrapped__")
    ]
    assert plain == []


def test_errors_of_what_is_called_are_its_own():
    def broken(g, out, x):
        return len(3)  # type: ignore[arg-type]

    @geon.custom_deriv(broken)
    def same(x):
        return x * 1

    with pytest.raises(TypeError, match="has no len"):
        geon.deriv(geon.sum(same(X)), X)


def test_functions_are_what_they_were():
    assert str(inspect.signature(geon.softmax)).startswith("(x: 'TensorLike', normalization_axes")
    assert pickle.loads(pickle.dumps(geon.sum)) is geon.sum
    assert geon.sum.__doc__.startswith("The sum over")


FUNCTIONS = [
    name
    for name in dir(geon)
    if callable(getattr(geon, name)) and not inspect.isclass(getattr(geon, name)) and name[0] != "_"
]


@for_each("name", FUNCTIONS)
def test_what_the_page_of_each_function_says_of_errors(name):
    function = getattr(geon, name)
    with pytest.raises(geon.ArgumentError):
        function(no_such_argument=1)
    parameters = list(inspect.signature(function).parameters.values())
    if parameters and parameters[0].name == "x" and "TensorLike" in str(parameters[0].annotation):
        needed = [p for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
        with pytest.raises(geon.DTypeError, match="no tensor, number, array or list|no dtype"):
            function(*[object() for _ in needed])


# What classes look at before their flags.
GIVEN = {
    "axes": [geon.Axis("Q", 4)],
    "init": 0.0,
    "heads": geon.Axis("A", 2),
    "keys": geon.Axis("B", 2),
    "windows": {},
    "path": "x",
    "folder": "x",
    "directory": "x",
    "rate": 0.1,
}
INTERNAL = {"Computation", "emit", "link", "Run", "figures", "step", "variable"}  # of no user


def is_error(public):
    return inspect.isclass(public) and issubclass(public, Exception)


def parameters_of(module, annotated):
    """Public functions, constructors and methods, with each parameter that is ``annotated``."""
    for name, public in vars(module).items():
        if name.startswith("_"):
            continue
        methods = vars(public).items() if inspect.isclass(public) else ()
        made = callable(public) and not is_error(public) and name not in INTERNAL
        functions = [(name, public)] if made else []
        functions += [
            (f"{name}.{method}", function)
            for method, function in methods
            if inspect.isfunction(function) and method[0] != "_" and method not in INTERNAL
        ]
        for shown, function in functions:
            for parameter in inspect.signature(function).parameters.values():
                if annotated(str(parameter.annotation)):
                    yield pytest.param(function, parameter.name, id=f"{shown}-{parameter.name}")


def parameters_annotated(annotated):
    return [*parameters_of(geon, annotated), *parameters_of(geon.frontends.neon, annotated)]


def called_with(function, name, value):
    """The call of a function with ``value`` as one argument; the others are of no function."""
    required = [
        p.name
        for p in list(inspect.signature(function).parameters.values())
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]
    return function(**({each: GIVEN.get(each) for each in required} | {name: value}))


@for_each(("function", "flag"), parameters_annotated(FLAG.annotation.fullmatch))
def test_what_is_no_flag_is_refused(function, flag):
    """A text such as "no" would be true."""
    with pytest.raises(geon.ArgumentError, match=f"{flag}='no' is no flag; give True or False"):
        called_with(function, flag, "no")


# Functions of the graph: layers and models refuse other arguments first.
LIST_PARAMETERS = [
    p for p in parameters_of(geon, LIST.annotation.fullmatch) if "." not in str(p.id)
]


@for_each(("function", "name"), LIST_PARAMETERS)
def test_what_is_no_list_is_refused(function, name):
    with pytest.raises(geon.ArgumentError, match=rf"{name}=5 is no list; give a list, such as \[a"):
        called_with(function, name, 5)


def test_lists_of_tensors_and_of_ops_are_checked():
    checked = {parameter.id for parameter in LIST_PARAMETERS}
    assert {"concat-tensors", "doall-ops", "contract-operands", "Variable-initializers"} <= checked


@for_each(
    "call",
    [
        lambda wrong: geon.quantile(X, 0.5, method=wrong),
        lambda wrong: geon.resize(X, B, 6, mode=wrong),
        lambda wrong: geon.scatter(X, N, X, B, mode=wrong),
        lambda wrong: geon.orthogonal_polynomial(wrong, 2, X),
        lambda wrong: geon.fft.fft(X, B, norm=wrong),
        lambda wrong: geon.fft.convolve(X, X, B, mode=wrong),
        lambda wrong: geon.round(X, wrong),
        lambda wrong: geon.renorm(X, B, 1.0, order=wrong),
        lambda wrong: geon.nonzero(X > 0, fill=wrong),
        lambda wrong: geon.unique(X, B, fill=wrong),
        lambda wrong: geon.fft.rfftfreq(wrong),
        lambda wrong: geon.constant([wrong], dtype="float32"),
        lambda wrong: geon.dumps(X, feeds=wrong),
        lambda wrong: geon.dumps(X, lengths=wrong),
    ],
)
def test_values_of_no_known_type_are_refused(call):
    for wrong in (
        "1",
        "other",
        b"x",
        {1},
        {"a": "b"},
        [1],
        slice(1),
        object(),
        np.array(["a"]),
        0.5j,
    ):
        with pytest.raises(geon.GeonError):
            call(wrong)
