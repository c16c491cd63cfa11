"""Ops as values: interning, notes, what they refuse, and graphs that are large."""

import copy
import gc
import itertools
import math
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import geon
from geon.op_graph.names import NameableValue
from geon.op_graph.nodes import MAX_SITES, DebugInfo, Node
from geon.op_graph.op_graph import (
    ComputationOp,
    Leaf,
    Op,
    Tensor,
    VoidOp,
    find,
    interned_count,
    post_order,
    same_ops,
    storage_leaves,
)

from .computing import compute

A, B, C = geon.Axis("A", 2), geon.Axis("B", 3), geon.Axis("C", 4)
X = np.arange(6.0).reshape(2, 3)


@pytest.fixture
def x():
    return geon.placeholder([A, B], "float64", name="x")


# Interning ---------------------------------------------------------------------------------------


def test_equal_ops_are_one(x):
    assert x + x is x + x and geon.tanh(x) is geon.tanh(x) and x * 2 is x * 2.0
    assert geon.sum(x, A) is geon.sum(x, A) is not geon.sum(x, B)
    assert x[0, 1:] is x[{A: 0, B: slice(1, 3)}] and x[...] is x and x[:] is x
    assert geon.cumsum(x, A) is not geon.cumsum(x, A, reverse=True)
    assert x + geon.placeholder([A, B], "float64") is not x + x
    assert geon.reorder(x, [A, B]) is x and geon.cast(x, "float64") is x


def test_operands_are_not_swapped(x):
    y = geon.placeholder([B, A], "float64")
    assert x + y is not y + x and (x + y).axes is not (y + x).axes


def test_constants_are_keyed_by_dtype_and_bits():
    assert geon.constant(0.0) is not geon.constant(-0.0)
    assert geon.constant(-0.0) is geon.constant(-0.0)
    assert geon.constant(1) is not geon.constant(True) is not geon.constant(1.0)
    assert geon.constant(1) is not geon.constant(1, dtype="int64")  # one is weak
    assert geon.constant(math.nan) is geon.constant(math.nan)
    assert geon.constant(2, dtype="int8") is not geon.constant(2, dtype="int16")
    x = geon.placeholder((), "float64")
    assert x + 0.0 is not x + -0.0
    assert math.copysign(1, compute(geon.constant(-0.0))) == -1


def test_small_arrays_are_equal_by_value_and_large_ones_by_identity():
    small, large = np.arange(3.0), geon.Axis("L", 1000)
    first = geon.constant(small, axes=B)
    assert first is geon.constant(small.copy(), axes=B)
    assert first is not geon.constant(small, axes=geon.Axis("D", 3))
    many = np.arange(1000.0)
    assert geon.constant(many, axes=large) is not geon.constant(many, axes=large)


def test_array_constants_are_copies_and_frozen():
    for length in (3, 1000):
        array = np.zeros(length)
        op = geon.constant(array, axes=geon.Axis("L", length))
        array[:] = 1
        assert not compute(op).any()


def test_constants_are_made_of_numbers_lists_and_arrays():
    assert geon.constant([[1, 2, 3], [4, 5, 6]], axes=[A, B]).dtype == "int64"
    assert geon.constant([1.0, 2.0], axes=A).dtype == "float32"
    assert geon.constant(np.ones(2), axes=A).dtype == "float64"
    assert geon.constant([1, 2], axes=geon.Axis("open")).axes.lengths == (2,)
    assert geon.constant(3, axes=[A, B]).axes is geon.Axes(A, B)
    with pytest.raises(geon.AxisError, match="needs axes"):
        geon.constant([1, 2])
    with pytest.raises(geon.AxisError, match=r"\(3,\) does not fit.*A:2"):
        geon.constant([1, 2, 3], axes=A)
    with pytest.raises(geon.AxisError, match="does not fit"):
        geon.constant([1, 2, 3], axes=[A, B])
    with pytest.raises((geon.DTypeError, ValueError)):
        geon.constant([[1, 2], [3]], axes=[A, B])


def test_leaves_are_unique(x):
    assert geon.placeholder([A, B], "float64", name="x") is not x
    assert geon.Variable([A]) is not geon.Variable([A])
    serials = [geon.Variable().info.serial for _ in range(3)]
    assert serials == sorted(set(serials))


def test_dead_ops_are_forgotten(x):
    gc.collect()
    before = interned_count()
    y = geon.sin(x * 3.25) + 7.125
    assert interned_count() > before
    del y
    gc.collect()
    assert interned_count() <= before + 2  # the two numbers may stay


def test_racing_threads_get_one_object():
    x = geon.placeholder([A], "float64")
    rounds, workers = 40, 8
    found = [[None] * workers for _ in range(rounds)]
    barrier = threading.Barrier(workers)

    def work(k):
        for number in range(rounds):
            barrier.wait()
            y = x
            for step in range(20):
                y = geon.sin(y * (number + 2.0)) + float(step)
            found[number][k] = y

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(k,)) for k in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for row in found:
        assert all(y is row[0] for y in row) and row[0] is not None


# Classes and properties --------------------------------------------------------------------------


def test_the_order_of_classes():
    assert Op.__mro__[1] is Node and Node.__bases__ == (NameableValue, DebugInfo)
    assert Tensor.__bases__[0] is Op and VoidOp.__bases__ == (Op,)
    assert ComputationOp.__bases__ == (Tensor,)
    assert not issubclass(Leaf, ComputationOp) and issubclass(Leaf, Tensor)
    assert geon.Op is Op and geon.ComputationOp is ComputationOp


def test_the_module_paths():
    import geon.op_graph.names
    import geon.op_graph.nodes
    import geon.op_graph.op_graph

    assert geon.op_graph.op_graph.Op is Op
    assert geon.op_graph.nodes.Node is Node and geon.op_graph.nodes.DebugInfo is DebugInfo
    assert geon.op_graph.names.NameableValue is NameableValue


def test_what_an_op_is(x):
    y = x + 1
    assert isinstance(y, ComputationOp) and not isinstance(x, ComputationOp)
    assert isinstance(geon.assign(x, y), VoidOp)
    assert y.args[0] is x and y.axes is x.axes and y.dtype == "float64"
    assert x.is_input and not y.is_input and not y.is_output
    assert same_ops(x.users, [y])
    y.add_tags("out")
    assert y.is_output
    assert str(x) == "x(A:2, B:3)" and "add" in repr(y) and "test_graph.py" in repr(y)


def test_op_classes_cannot_be_called():
    for cls in (Op, Tensor, ComputationOp, VoidOp):
        with pytest.raises(TypeError, match="built by geon's functions"):
            cls()


def test_variables_and_placeholders_in_order_of_first_use(x):
    v, w = geon.Variable([B], name="v"), geon.Variable([A], name="w")
    still = geon.Variable(trainable=False)
    y = geon.sum((x * w + v) * w * still)
    assert same_ops(y.variables(), [w, v]) and same_ops(y.placeholders(), [x])
    assert same_ops(storage_leaves(y), [x, w, v, still])
    assert v.persistent and v.trainable and not still.trainable
    assert not geon.temporary_tensor().persistent and geon.persistent_tensor().persistent


def test_initial_values_and_initializers():
    v = geon.Variable([B], initial_value=2)
    (assign,) = v.initializers
    assert assign.primitive.name == "assign" and same_ops(assign.args, [v, v.initial_value])
    assert v.initial_value.axes is v.axes and geon.Variable([B]).initializers == ()
    other = geon.Variable(initial_value=geon.sum(v), initializers=[assign])
    assert len(other.initializers) == 2 and (v + 1.0).initializers == ()
    taken = geon.Variable(initial_value=np.zeros((2, 3)), axes=[A, B])
    assert taken.dtype == "float64" and geon.Variable(initial_value=v).axes is v.axes
    made = geon.Variable([B], initial_value=lambda axes: np.ones(3))
    assert callable(made.initial_value) and made.initializers == ()


def test_follows(x):
    v = geon.Variable([A, B], dtype="float64")
    step = geon.assign(v, x)
    read = geon.tanh(v, follows=[step])
    assert same_ops(read.follows, [step]) and geon.tanh(v).follows == ()
    assert read is not geon.tanh(v) and read is geon.tanh(v, follows=step)
    np.testing.assert_array_equal(compute(read, {x: X, v: 0 * X}), np.tanh(X))


# Notes -------------------------------------------------------------------------------------------


def test_the_name_and_nothing_else_can_be_set(x):
    y = x * 3
    assert y.name is None
    y.name = "tripled"
    assert (x * 3).name == "tripled"
    y.name = None
    assert y.name is None
    for attribute in ("axes", "dtype", "args", "attrs", "primitive", "weak", "tags", "anything"):
        with pytest.raises(AttributeError, match=f"immutable.*'{attribute}'.*test_graph.py"):
            setattr(y, attribute, None)
    with pytest.raises((AttributeError, TypeError)):
        del y.axes


def test_every_name_given_finds_the_op(x):
    y = geon.tanh(x, name="first")
    geon.tanh(x, name="second")
    assert y.name == "second" and find("first", y + 1.0) is y is find("second", y)
    with pytest.raises(KeyError, match="no op named 'third'"):
        find("third", y)


def test_tags_unite(x):
    y = geon.sin(x, tags="a")
    geon.sin(x, tags=["b", "c"])
    geon.sin(x)
    assert y.tags == {"a", "b", "c"} and isinstance(y.tags, frozenset)
    assert x.tags == frozenset() and geon.placeholder((), tags=["t"]).tags == {"t"}


def test_the_users_line(x):
    line = sys._getframe().f_lineno + 1
    y = geon.mean(geon.tanh(x) * 3.5)
    for op in post_order([y]):
        if op is not x and op.primitive.name not in ("constant", "length"):
            assert (op.filename, op.lineno) == (__file__, line)
    assert y.file_info.endswith(f"test_graph.py:{line}")


def test_every_line_that_builds_an_op_is_kept(x):
    first = geon.cos(x)
    geon.cos(x)
    assert len(first.sites) == 2 and len(set(first.sites)) == 2
    scaled = x * 4.5
    for _ in range(3):
        x * 4.5
    assert len(scaled.sites) == 2
    made = [
        eval(compile("\n" * k + "cos(x)", "many.py", "eval"), {"cos": geon.exp, "x": x})
        for k in range(20)
    ]
    assert len(made[0].sites) <= MAX_SITES + 1 and made[0].sites[0] == "many.py:1"


# What ops refuse ---------------------------------------------------------------------------------


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, pickle.dumps])
def test_copying_and_pickling_are_refused(x, copier):
    for op in (x, x + 1.0, geon.assign(x, 2.0)):
        with pytest.raises(
            geon.SymbolicError, match=r"test_graph.py:\d+.*(use the same|geon.dumps)"
        ):
            copier(op)


@pytest.mark.parametrize(
    ("use", "cure"),
    [
        (bool, "geon.where"),
        (len, "tensor_size"),
        (iter, r"x\[i\]"),
        (list, r"x\[i\]"),
        (float, "computation"),
        (int, "computation"),
        (lambda x: 3 in x, "geon.any"),
        (np.asarray, "computation"),
        (lambda x: range(x), "position"),
        (lambda x: x if x > 0 else -x, "geon.where"),
    ],
)
def test_a_symbolic_tensor_has_no_value(x, use, cure):
    with pytest.raises(geon.SymbolicError, match=cure) as caught:
        use(x)
    assert "test_graph.py:" in str(caught.value)


def test_hashes_follow_identity(x):
    assert (x == x) is geon.equal(x, x) and (x != x + 1) is geon.not_equal(x, x + 1)
    assert {x: 1}[x] == 1 and {x, x} <= {x} and hash(x) == object.__hash__(x)
    assert geon.equal(x, 1).dtype == "bool" and geon.not_equal(x, x).primitive.name == "not_equal"


# Operators ---------------------------------------------------------------------------------------

BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / b,
    "floordivide": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "power": lambda a, b: a**b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
BITS = {
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "left_shift": lambda a, b: a << b,
    "right_shift": lambda a, b: a >> b,
}
MIRRORED = {"less": "greater", "less_equal": "greater_equal"}
MIRRORED |= {right: left for left, right in MIRRORED.items()}


@pytest.mark.parametrize("name", [*BINARY, *BITS])
def test_operators_and_their_reflections(name):
    operate = {**BINARY, **BITS}[name]
    dtype = "int64" if name in BITS else "float64"
    x, y = geon.placeholder([A], dtype), geon.placeholder([A], dtype)
    row = getattr(geon, name)
    assert operate(x, y) is row(x, y) and operate(x, 2) is row(x, 2)
    array = np.array([3, 5], dtype)
    constant = geon.constant(array, axes=A)
    assert operate(x, array) is row(x, constant)
    mirrored = getattr(geon, MIRRORED.get(name, name))
    if name in MIRRORED:
        assert operate(2, x) is mirrored(x, 2)
        np.testing.assert_array_equal(compute(operate(array, x), {x: array}), operate(array, array))
    else:
        assert operate(2, x) is row(2, x) and operate(array, x) is row(constant, x)
    found = compute(operate(x, y), {x: np.array([7, 2], dtype), y: array})
    np.testing.assert_array_equal(found, operate(np.array([7, 2], dtype), array))


def test_unary_operators(x):
    assert -x is geon.negative(x) and +x is x and abs(x) is geon.absolute(x)
    n = geon.placeholder([A], "int64")
    assert ~n is geon.bitwise_not(n)
    assert divmod(x, 2.0) == (x // 2.0, x % 2.0)


def test_matmul_contracts_the_one_shared_axis(x):
    w = geon.placeholder([B, C], "float64")
    assert x @ w is geon.dot(x, w) and (x @ w).axes is geon.Axes(A, C)
    with pytest.raises(geon.AxisError, match=r"ambiguous.*A, B.*geon.dot\(x, y, over=B\)"):
        x @ (x + 1.0)
    with pytest.raises(geon.AxisError, match="share no axis to contract"):
        x @ geon.placeholder([C])


UFUNCS = "tanh exp log1p sqrt negative absolute sin floor isnan arctan arcsinh rint".split()


@pytest.mark.parametrize("name", UFUNCS)
def test_numpy_functions_build_ops(x, name):
    ufunc = getattr(np, name)
    np.testing.assert_allclose(compute(ufunc(x), {x: X}), ufunc(X), rtol=1e-14)


def test_numpy_functions_of_two(x):
    assert np.maximum(x, 0.0) is geon.maximum(x, 0.0)
    assert np.add(X, x) is geon.add(geon.constant(X, axes=[A, B]), x)
    assert np.arctan2(x, 2.0) is geon.atan2(x, 2.0) and np.remainder(x, 2.0) is x % 2.0
    assert np.float64(2) * x is geon.constant(np.float64(2)) * x
    assert np.equal(x, 1.0) is geon.equal(x, 1.0)


@pytest.mark.parametrize(
    ("use", "cure"),
    [
        (lambda x: np.add.reduce(x), r"write geon.sum\(x, A\)"),
        (lambda x: np.tanh(x, out=np.zeros((2, 3))), "with out=.*write geon.tanh"),
        (lambda x: np.spacing(x), "geon has no function for it"),
        (lambda x: np.add(x, 1, where=True), "with where=.*write geon.add"),
    ],
)
def test_numpy_functions_that_are_none_of_ours(x, use, cure):
    with pytest.raises(geon.SymbolicError, match=cure):
        use(x)


def test_arrays_without_axes_are_refused(x):
    with pytest.raises(geon.AxisError, match=r"\(3,\).*geon.constant\(array, axes"):
        x + np.ones(3)
    with pytest.raises(geon.DTypeError, match="'text' of type str"):
        x + "text"
    with pytest.raises(geon.DTypeError, match="assign.*has no value"):
        x + geon.assign(x, 1.0)


# Indexing ----------------------------------------------------------------------------------------

POSITIONS = [0, 1, -1, slice(None), slice(1, None), slice(None, None, -1), slice(2, 0, -1)]
POSITIONS += [slice(0, 3, 2), slice(-2, None), slice(1, 1), slice(None, None, -2)]


@pytest.mark.parametrize("first", [0, -1, slice(None), slice(None, None, -1), Ellipsis])
@pytest.mark.parametrize("second", POSITIONS)
def test_indexing_is_numpys(x, first, second):
    at = (first, second)
    op = x[at]
    np.testing.assert_array_equal(compute(op, {x: X}), X[at])
    assert op.axes.lengths == X[at].shape


def test_indexing_by_name_and_at_run_time(x):
    n = geon.placeholder((), "int32")
    feeds = {x: X, n: np.int32(-1)}
    np.testing.assert_array_equal(compute(x[{B: n}], feeds), X[:, -1])
    np.testing.assert_array_equal(compute(x[{B: slice(0, 2), A: 1}], feeds), X[1, 0:2])
    np.testing.assert_array_equal(compute(x[n], feeds), X[-1])
    np.testing.assert_array_equal(compute(x[n, n], feeds), X[-1, -1])
    assert x[{"B": 1}] is x[:, 1]
    with pytest.raises(geon.IndexRangeError, match="position 5 is outside axis"):
        compute(x[n], {x: X, n: np.int32(5)})


@pytest.mark.parametrize(
    "at",
    [2, -3, (0, 0, 0), slice(0, 3), slice(1, 0), (..., 0, ...), 1.5, True, "A", [0, 1], None,
     slice(0, 1, 0), slice(0.5, 2), np.array([0])],
    ids=str,
)  # fmt: skip
def test_wrong_positions_are_refused_at_the_users_line(x, at):
    with pytest.raises(geon.IndexRangeError):
        x[at]


def test_positions_of_a_wrong_kind_say_the_cure(x):
    with pytest.raises(geon.IndexRangeError, match="geon.gather"):
        x[geon.placeholder([A], "int64")]
    with pytest.raises(geon.IndexRangeError, match="scalar integer"):
        x[geon.placeholder(())]
    with pytest.raises(geon.AxisError, match="is no axis of x"):
        x[{C: 0}]


def test_slices_of_an_open_axis_are_guarded():
    n = geon.Axis("N")
    x = geon.placeholder([n], "float64")
    part = x[2:]
    assert str(part.axes["N"].expression) == "N - 2"
    assert [(g.relation, str(g.left), str(g.right)) for g in part.guards] == [("<=", "2", "N")]
    assert x[-1].guards and x[0].guards and not x[:].guards
    every_other = x[::2]
    assert every_other.guards == ()
    np.testing.assert_array_equal(compute(every_other, {x: np.arange(5.0)}, {"N": 5}), [0, 2, 4])
    np.testing.assert_array_equal(compute(x[::-2], {x: np.arange(4.0)}, {"N": 4}), [3, 1])


@pytest.mark.parametrize(
    ("start", "stop", "step"), list(itertools.product((0, 1), (-1, None), (1, 2, 3)))
)
def test_open_slices_are_numpys(start, stop, step):
    n = geon.Axis("N")
    x = geon.placeholder([n], "float64")
    at = slice(start, stop, step)
    for length in range(2, 8):
        array = np.arange(float(length))
        np.testing.assert_array_equal(compute(x[at], {x: array}, {"N": length}), array[at])


# Size --------------------------------------------------------------------------------------------

DEPTH = 100_000


def test_a_deep_graph_is_built_walked_and_freed():
    x = geon.placeholder((), "float64")
    before = interned_count()
    started = time.perf_counter()
    y = x
    for _ in range(DEPTH):
        y = geon.tanh(y)
    assert len(post_order([y])) == DEPTH + 1 and same_ops(y.placeholders(), [x])
    assert y.variables() == [] and find("top", geon.tanh(y, name="top")).args[0] is y
    del y
    gc.collect()
    assert interned_count() <= before + 1
    assert time.perf_counter() - started < 20


def test_a_wide_graph_shares_what_is_equal():
    x = geon.placeholder((), "float64")
    y = x
    for _ in range(60):  # 2**60 paths
        y = y + y
    assert len(post_order([y])) == 61
    assert compute(y, {x: np.asarray(1.0)}) == 2.0**60


def test_ops_that_live_until_python_ends_die_in_silence():
    source = (
        "import geon\n"
        "from geon.op_graph.building import weak\n"
        "from geon.op_graph.core import interning\n"
        "x = geon.placeholder([geon.Axis('N')])\n"
        "ops = [geon.tanh(x) + k for k in range(3)]\n"
        "made = geon.NumPyTransformer().computation(ops, x)\n"
        "for module in (interning, weak):  # as when Python ends\n"
        "    vars(module).update({n: None for n in vars(module) if n[:2] != '__'})\n"
        "del x, ops, made\n"
    )
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
