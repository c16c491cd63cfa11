"""What an op says of itself, what its constructors take, and where the classes are."""

import importlib
import inspect

import numpy as np
import pytest

import geon
from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.op_graph import same_ops
from tests.places import here

N, C = geon.Axis("N"), geon.Axis("C", 3)


def test_module_paths_and_class_order():
    op_graph = importlib.import_module("geon.op_graph.op_graph")
    nodes = importlib.import_module("geon.op_graph.nodes")
    names = importlib.import_module("geon.op_graph.names")
    assert op_graph.Op is geon.Op
    assert geon.Op.__mro__[1:4] == (nodes.Node, names.NameableValue, nodes.DebugInfo)
    assert geon.Tensor.__mro__[1] is geon.Op
    assert geon.ComputationOp.__bases__ == (geon.Tensor,)
    assert geon.VoidOp.__bases__ == (geon.Op,)


def test_classes_of_ops():
    x, v = geon.placeholder(axes=N), geon.Variable(initial_value=0)
    for leaf in (x, v):
        assert isinstance(leaf, geon.Tensor) and not isinstance(leaf, geon.ComputationOp)
    assert isinstance(x + 1, geon.ComputationOp)
    assert isinstance(geon.constant(1), geon.ComputationOp)
    assert isinstance(geon.assign(v, 1), geon.VoidOp)
    assert not isinstance(geon.assign(v, 1), geon.Tensor)


def test_args_and_users():
    x, y = geon.placeholder(axes=N), geon.placeholder(axes=N)
    total = x + y
    product = total * x
    assert same_ops(total.args, [x, y])
    assert x.args == ()
    assert set(x.users) == {total, product}
    assert total.users == (product,)
    assert product.users == ()
    del product
    assert total.users == ()


def test_axes_and_dtype():
    x = geon.placeholder(axes=[C, N], dtype="int32")
    assert x.axes is geon.Axes(C, N)
    assert x.axes.lengths == (3, N.expression)
    assert x.dtype == np.int32
    assert (x / 2).dtype == np.float32


def test_the_name_is_settable_and_every_name_finds_the_op():
    x = geon.placeholder(axes=N)
    assert x.name is None
    x.name = "points"
    assert x.name == "points"
    y = geon.tanh(x, name="first")
    assert y.name == "first"
    again = geon.tanh(x, name="second")
    assert again is y and y.name == "second"
    assert geon.find("first", y * 2) is y
    assert geon.find("second", y * 2) is y
    with pytest.raises(KeyError, match="third"):
        geon.find("third", y)


def test_tags_unite():
    x = geon.placeholder(axes=N, tags="batch")
    assert x.tags == {"batch"}
    y = geon.tanh(x, tags=["a"])
    assert geon.tanh(x, tags={"b", "c"}) is y
    assert y.tags == {"a", "b", "c"}
    y.add_tags("d")
    assert y.tags == {"a", "b", "c", "d"}


def test_provenance():
    x, line = geon.placeholder(axes=N), here()
    assert x.filename == __file__
    assert f"tests/{line}" == x.file_info
    assert x.lineno == int(line.split(":")[1])
    y, first = geon.exp(x), here()
    again, second = geon.exp(x), here()
    assert again is y
    assert [site.split("/")[-1] for site in y.sites] == [first, second]


def test_the_line_of_a_derivative_says_so():
    x = geon.placeholder()
    y, line = geon.exp(geon.sin(x)), here()
    made = geon.deriv(y, x)
    assert "derivative of" in made.file_info and line in made.file_info


def test_initializers():
    v = geon.Variable(axes=C, initial_value=2)
    (first,) = v.initializers
    assert isinstance(first, geon.VoidOp) and first.args[0] is v
    other = geon.Variable(initial_value=0)
    set_other = geon.assign(other, 1)
    w = geon.Variable(initial_value=1, initializers=[set_other])
    assert w.initializers[1:] == (set_other,)
    assert geon.Variable().initializers == ()
    assert (v + 1).initializers == ()


def test_follows_means_a_sequence(make):
    v = geon.Variable(initial_value=1)
    x = geon.placeholder(name="x")
    step = geon.assign(v, v + 1)
    y = geon.multiply(v, x, follows=[step], name="y", tags="after")
    assert y.follows == (step,)
    assert (y.name, y.tags) == ("y", {"after"})
    assert y is not v * x
    assert y is geon.multiply(v, x, follows=step)
    assert (v * x).follows == ()
    with make() as transformer:
        assert transformer.computation(y, x)(10) == 20
        assert transformer.get(v) == 2


def test_follows_of_leaves(make):
    v = geon.Variable(initial_value=1)
    step = geon.assign(v, v * 3)
    x = geon.placeholder(name="x", follows=[step])
    w = geon.Variable(initial_value=5, name="w", follows=[step])
    assert x.follows == w.follows == (step,)
    with make() as transformer:
        f = transformer.computation(x * v, x)
        assert f(x=2) == 2  # v is read beside the assignment, not after it
        assert transformer.get(v) == 3
        transformer.computation(geon.assign(w, 7))()
        assert (transformer.get(v), transformer.get(w)) == (9, 7)
        transformer.set(w, 1)
        assert transformer.get(w) == 1


def test_marks(make):
    x, v = geon.placeholder(axes=N), geon.Variable(initial_value=0)
    y = x + v
    assert (x.is_input, v.is_input, y.is_input) == (True, False, False)
    assert not y.is_output
    with make() as transformer:
        transformer.computation(y, x)
    assert not y.is_output and not (x + v).is_output
    y.add_tags("out")
    assert y.is_output and not x.is_output


def test_flags_of_variables():
    v = geon.Variable(initial_value=0)
    assert v.persistent and v.trainable
    fixed = geon.persistent_tensor(axes=C, initial_value=0)
    assert fixed.persistent and not fixed.trainable
    passing = geon.temporary_tensor(axes=C, initial_value=0)
    assert not passing.persistent and not passing.trainable
    assert not geon.Variable(persistent=False).persistent
    assert not geon.placeholder().persistent


def test_nothing_else_can_be_set():
    x = geon.placeholder(axes=N)
    for attribute in ("axes", "args", "dtype", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(x, attribute, 1)


def test_constructors_take_axes_name_tags_initializers_and_follows():
    every = {"axes", "name", "tags", "initializers", "follows"}
    for leaf in (geon.placeholder, geon.Variable, geon.variable):
        assert every <= set(inspect.signature(leaf).parameters)
    assert every - {"initializers"} <= set(inspect.signature(geon.constant).parameters)


def test_every_primitives_function_takes_name_tags_and_follows():
    rows = geon.op_graph.core.primitive.PRIMITIVES
    public = {name: getattr(geon, name) for name in rows if hasattr(geon, name)}
    assert len(public) > 80
    for name, function in public.items():
        parameters = inspect.signature(function).parameters
        if name not in ("top_k", "scan", "fixed_point"):  # which give several tensors
            assert {"name", "tags", "follows"} <= set(parameters), name
        if isinstance(function, Elementwise):
            assert "axes" in parameters, name


def test_axes_of_an_elementwise_op_broadcast_it():
    x = geon.placeholder(axes=N)
    assert geon.tanh(x, axes=[C, N]).axes is geon.Axes(C, N)


def test_ops_are_interned():
    x = geon.placeholder(axes=N)
    assert x + 1 is x + 1
    assert x + 1 is not x + 1.5
    assert x * 0.0 is not x * -0.0
    assert geon.placeholder(axes=N) is not x
    assert {x: 1}[x] == 1
