"""Mistakes that people make, and the whole of what geon says to each: what, values, line, cure."""

import gc
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import geon
from geon.frontends import neon
from geon.frontends.neon import axis
from tests.places import here

N, H, K = geon.Axis("N"), geon.Axis("H", 4), geon.Axis("K", 3)
x, X = geon.placeholder([N, H], name="x"), here()
v, V = geon.Variable([H], initial_value=1.0, name="v"), here()
w, W = geon.Variable([H, K], initial_value=0.0, name="w"), here()
i, INDEX = geon.placeholder([N], "int64", name="i"), here()


def said(call, kind=Exception):
    """What a call says; lines without their folders, and its own line as ``HERE``."""
    with pytest.raises(kind) as caught:
        call()
    return short(caught.value, call)


def short(message, call):
    text = re.sub(r"[\w./-]*/(test_messages\.py:\d+)", r"\1", str(message))
    return text.replace(f"test_messages.py:{call.__code__.co_firstlineno}", "HERE")


OF_BUILDING = [
    (lambda: x.foo, AttributeError, "'Placeholder' object has no attribute 'foo'"),
    (lambda: v.foo, AttributeError, "'Variable' object has no attribute 'foo'"),
    (
        lambda: v.T,
        AttributeError,
        f"the variable v(H:4) (made at {V}) has no attribute 'T'; write geon.reorder(x, axes); "
        "operations match axes by name and need no transpose",
    ),
    (
        lambda: (x + 1).tanh(),
        AttributeError,
        "the tensor add(N, H:4) (made at HERE) has no attribute 'tanh'; write geon.tanh(x, ...)",
    ),
    (
        lambda: geon.assign(v, 0).mean(),
        AttributeError,
        "the effect assign assign(v(H:4)) (made at HERE) has no attribute 'mean'; write "
        "geon.mean(x, ...)",
    ),
    (
        lambda: v.__setitem__(0, 1),
        geon.SymbolicError,
        f"the symbolic tensor v(H:4) (made at {V}) has no items that can be set at HERE; "
        "geon.assign(x[at], value) is an op that changes it when it is computed; "
        "geon.update(x, value, at) gives a new tensor with that part replaced",
    ),
    (
        lambda: geon.exp(v).__setitem__(0, 1),
        geon.SymbolicError,
        "the symbolic tensor exp(H:4) (made at HERE) has no items that can be set at HERE; "
        "geon.update(x, value, at) gives a new tensor with that part replaced",
    ),
    (
        lambda: v.__delitem__(0),
        geon.SymbolicError,
        f"the symbolic tensor v(H:4) (made at {V}) has no items that can be deleted at HERE; x[at] "
        "takes a part of it",
    ),
    (
        lambda: range(N.length),
        geon.SymbolicError,
        "the open length N is no integer at HERE: data give it when they come; use it in lengths "
        "of axes, as a tensor with geon.tensor_size, or count along an axis with geon.iota(axis)",
    ),
    (
        lambda: geon.Variable(H, np.zeros(4)),
        geon.DTypeError,
        "Variable at HERE: a ndarray of shape (4,) stands where the dtype does; a first value is "
        "given as initial_value=, for example geon.Variable(axes, initial_value=...)",
    ),
    (
        lambda: geon.Variable(H, 0.5),
        geon.DTypeError,
        "Variable at HERE: 0.5 stands where the dtype does; a first value is given as "
        "initial_value=, for example geon.Variable(axes, initial_value=...)",
    ),
    (
        lambda: geon.placeholder([5, 3]),
        geon.AxisError,
        "axes at HERE are made of geon.Axis values, not of 5; an axis has a name: write "
        'geon.Axis("A", 5), or geon.Axis("A") where data say its length',
    ),
    (
        lambda: geon.placeholder("N"),
        geon.AxisError,
        "axes at HERE are made of geon.Axis values, not of 'N'; an axis has a name: write "
        "geon.Axis('N'), or geon.Axis('N', 5) where its length is known",
    ),
    (
        lambda: geon.concat([v, v], "N"),
        geon.AxisError,
        f"concat at HERE: axis 'N' is no axis of v(H:4) (made at {V}); it has H",
    ),
    (
        lambda: geon.stack([v, v], "S"),
        geon.AxisError,
        "stack at HERE: 'S' is no axis; write geon.Axis('S'), or geon.Axis('S', 5) where its "
        "length is known",
    ),
    (
        lambda: geon.flatten(w, "Z"),
        geon.AxisError,
        f"flatten at HERE: axis 'Z' is no axis of w(H:4, K:3) (made at {W}); it has H, K",
    ),
    (
        lambda: geon.flatten(w, ["H", "K"], "Z"),
        geon.AxisError,
        "flatten at HERE: 'Z' is no axis; write geon.Axis('Z'), or geon.Axis('Z', 5) where its "
        "length is known",
    ),
    (
        lambda: x + None,
        geon.DTypeError,
        f"add of x(N, H:4) float32 (made at {X}), None: None of type NoneType is no tensor, "
        "number, array or list, at HERE; a function that returns nothing gives None",
    ),
    (
        lambda: geon.top_k(x, -1, H),
        geon.AxisError,
        f"top_k at HERE: axis H:4 of x(N, H:4) (made at {X}) has no -1 largest elements; give a k "
        "that is an integer of at least 0",
    ),
    (
        lambda: geon.top_k(x, 1.5, H),
        geon.AxisError,
        f"top_k at HERE: axis H:4 of x(N, H:4) (made at {X}) has no 1.5 largest elements; give a k "
        "that is an integer of at least 0",
    ),
    (
        lambda: geon.Random(0).normal(H, std=-1),
        geon.ArgumentError,
        "normal at HERE: std = -1; give a standard deviation of at least 0",
    ),
    (
        lambda: geon.Random(0).bernoulli(H, p=1.5),
        geon.ArgumentError,
        "bernoulli at HERE: p = 1.5; give a probability from 0 to 1",
    ),
    (
        lambda: geon.Random(0).bernoulli(H, p=float("nan")),
        geon.ArgumentError,
        "bernoulli at HERE: p = nan; give a probability from 0 to 1",
    ),
    (
        lambda: geon.Random(0).uniform(H, 2, 1),
        geon.ArgumentError,
        "uniform at HERE: low = 2 and high = 1; give a low that is at most high",
    ),
    (
        lambda: geon.onehot(i, "K"),
        geon.AxisError,
        "onehot at HERE: 'K' is no axis; write geon.Axis('K'), or geon.Axis('K', 5) where its "
        "length is known",
    ),
    (
        lambda: geon.sum(x, 0),
        geon.AxisError,
        f"sum at HERE: 0 is no axis of x(N, H:4) (made at {X}): axes go by name, not by position; "
        "give a geon.Axis or a name: it has N, H",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), OF_BUILDING)
def test_what_building_says(call, kind, text):
    assert said(call, kind) == text


def test_numpy_functions_of_tensors_name_geons():
    assert np.mean(x) is geon.mean(x)
    by_position = lambda: np.mean(x, axis=0)  # noqa: E731
    assert said(by_position, geon.AxisError) == (
        "np.mean at HERE: axis=0 is a position, and axes of tensors go by name; give axis=A, a "
        "geon.Axis or a name, or write geon.mean(x, ...)"
    )
    call = lambda: np.einsum("nh,h->n", x, v)  # noqa: E731
    assert said(call, geon.SymbolicError) == (
        "np.einsum at HERE cannot be given tensors; write geon.contract([x, y], [A, B]), whose "
        "second argument are the axes to keep, by name"
    )


def test_the_module_names_what_others_call_it():
    for name, cure in [
        ("abs", "geon.absolute(x), or abs(x)"),
        ("zeros", "geon.constant(0.0, axes=[...])"),
        ("ones", "geon.constant(1.0, axes=[...])"),
        ("matmul", "geon.dot(x, y, over=A), or x @ y"),
        ("var", "geon.variance(x, A)"),
        ("one_hot", "geon.onehot(x, axis)"),
        ("concatenate", "geon.concat([x, y], A)"),
    ]:
        with pytest.raises(AttributeError) as caught:
            getattr(geon, name)
        assert str(caught.value) == f"module 'geon' has no attribute {name!r}; write {cure}"
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'$"):
        geon.nonsense  # noqa: B018


def test_an_axis_given_twice_in_one_tensor_names_both():
    first = geon.Axis("A", 3)
    with pytest.raises(geon.AxisError) as caught:
        geon.placeholder([first, geon.Axis("A", 5)])
    assert str(caught.value) == (
        "axis 'A' is there twice in (A:3, A:5); rename one, for example with A.prime or geon.rename"
    )
    call = lambda: x[{H: 1, "H": 2}]  # noqa: E731
    assert said(call, geon.AxisError) == (
        f"indexing at HERE: the axis 'H' of x(N, H:4) (made at {X}) is given twice, as 1 and as 2; "
        "give it once"
    )


# Calls ------------------------------------------------------------------------------------------


def test_a_feed_of_another_shape_names_the_axis(transformer):
    f = transformer.computation(x * 2, x)
    call = lambda: f(np.zeros((3, 5)))  # noqa: E731
    assert said(call, geon.FeedError) == (
        f"placeholder x(N, H:4) (made at {X}) was given an array of shape (3, 5); it needs (N, 4): "
        "axis H has length 4 and dimension 1 of the data 5; give data of these lengths, dimensions "
        "in the order of the axes"
    )
    both = geon.placeholder([H, K], name="both")
    place = here(-1)
    g = transformer.computation(both * 2, both)
    call = lambda: g(np.zeros((3, 4)))  # noqa: E731
    assert said(call, geon.FeedError) == (
        f"placeholder both(H:4, K:3) (made at {place}) was given an array of shape (3, 4); it "
        "needs (4, 3): axis H has length 4 and dimension 0 of the data 3; axis K has length 3 and "
        "dimension 1 of the data 4; transpose the data, dimensions in the order of the axes"
    )


def test_nan_that_was_fed_is_blamed_on_the_placeholder(transformer):
    y, made = geon.log(x) * 2, here()
    f = transformer.computation(y, x, check="nan")
    call = lambda: f(np.array([[1, np.nan, 2, 3]]))  # noqa: E731
    text = said(call, geon.NonFiniteError)
    assert text.splitlines()[0] == (
        f"placeholder x(N, H:4) (made at {X}) was fed 1 of 4 values that are not finite, the first "
        "is nan: feed finite ones"
    )
    assert text.splitlines()[1].startswith(f"  log(N, H:4) made at {made}, in the forward pass")
    call = lambda: f(-np.ones((1, 4)))  # noqa: E731
    assert said(call, geon.NonFiniteError).startswith(f"log(N, H:4) made at {made}")


def test_what_is_fed_elsewhere_is_not_blamed(transformer):
    other = geon.placeholder([H], name="other")
    f = transformer.computation([geon.log(x), other], x, other, check="nan")
    with pytest.raises(geon.NonFiniteError, match=r"^log\(N, H:4\)"):
        f(-np.ones((1, 4)), [np.nan] * 4)


def test_an_open_length_that_nothing_gives_is_found_at_once(transformer):
    free = geon.Axis(f"free on {transformer.target.name}")
    call = lambda: transformer.computation(geon.sum(geon.iota(free)))  # noqa: E731
    assert said(call, geon.AxisError) == (
        f"nothing gives the open length {free}: no data of this call have it; set the axis's "
        f"length, or give lengths={{{free}: ...}} to transformer.computation\n"
        f"  iota({free}) made at HERE"
    )
    with geon.lengths({free: 3}):
        f = transformer.computation(geon.sum(geon.iota(free)))
        assert f() == 3


def test_a_class_outside_raises_on_request(transformer):
    free = transformer.computation(geon.onehot(i, K), i)
    np.testing.assert_array_equal(free([-1, 3, 1]), [[0, 0, 0], [0, 0, 0], [0, 1, 0]])
    known, made = geon.onehot(i, K, checked=True), here()
    f = transformer.computation(known, i)
    np.testing.assert_array_equal(f([0, 2, 1]), np.eye(3)[[0, 2, 1]])
    for classes, found in [([0, -1], "-1 to 0"), ([3], "3"), ([1, -4], "-4 to 1")]:
        call = lambda: f(classes)  # noqa: B023, E731
        assert said(call, geon.IndexRangeError) == (
            f"i(N) (made at {INDEX}) used as positions at {made}, in the forward pass: {found} "
            "where the axis has length 3; positions must lie in 0 to 2: check the data, "
            "make the axis longer, or geon.clip them"
        )
    with pytest.raises(geon.IndexRangeError, match=f"i.N. made at .*{made}: -1 to 0 where"):
        f.trace([0, -1])


# Warnings ---------------------------------------------------------------------------------------


def warned(call, action="always"):
    """What a call warns of, and at which file and line."""
    gc.collect()  # what other tests left
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        call()
        gc.collect()
    return [(short(each.message, call), each.category, each.lineno) for each in caught]


def test_an_assignment_that_no_computation_runs_warns():
    def build():
        geon.assign(v, v * 3)

    ((text, kind, line),) = warned(build)
    place = f"test_messages.py:{build.__code__.co_firstlineno + 1}"
    assert kind is RuntimeWarning and line == build.__code__.co_firstlineno + 1
    assert text == (
        f"the assignment to v(H:4) (made at {V}) at {place} is gone, and no computation ran it: "
        "geon.assign makes an op, which changes the variable when it is computed; give it to "
        "transformer.computation"
    )


def test_a_line_that_makes_many_such_assignments_warns_once():
    def build():
        for k in range(5):
            geon.assign(v, v * (k + 0.125))

    assert len(warned(build)) == 5
    assert len(warned(build, "default")) == 1  # what Python does where nobody asked for more


def test_an_assignment_that_something_takes_does_not_warn(transformer):
    def run():
        f = transformer.computation([geon.assign(v, v * 5), geon.doall([geon.assign(w, w + 1)])])
        f()
        ordered = geon.sequential([geon.assign(v, v * 7), v + 0])
        transformer.computation(ordered)

    def write():
        geon.dumps(geon.assign(v, v * 6))

    def start():
        geon.Variable(H, initial_value=2.0, initializers=[geon.assign(w, 2.0)])

    for call in (run, write, start):
        assert warned(call) == []


def test_a_variable_kept_longer_than_its_assignment_warns_once():
    def build():
        step = geon.assign(v, v * 11)
        again = geon.assign(v, v * 11)
        assert step is again

    assert len(warned(build)) == 1


def test_a_model_function_that_makes_variables_is_refused_when_it_is_called_again(make):
    def model(x):
        first = geon.Variable([H], initial_value=0, name="first")
        return geon.sum(x * geon.Variable([H], initial_value=first * 2, name="w"))

    x = geon.placeholder([H])
    line = model.__code__.co_firstlineno
    place = [f"test_messages.py:{line + k}" for k in (1, 2)]
    transformer = make()
    f = transformer.computation(model(x), x)
    with pytest.raises(geon.ArgumentError) as caught:
        transformer.computation(model(x), x)
    assert short(caught.value, model) == (
        f"two variables of this transformer are named 'w': w(H:4) made at {place[1]}, and another "
        f"w(H:4) made at {place[1]}; each has a value of its own, so what trains one does not "
        "change the other; make the variable once, outside of the function that is called twice, "
        "and give it to the function, or give each variable its own name; a model that is made "
        "anew needs a new transformer"
    )
    other = geon.Variable([H], initial_value=geon.Variable([], initial_value=1, name="first"))
    with pytest.raises(geon.ArgumentError, match="named 'first': first.*another first"):
        transformer.get(other)
    assert len(transformer.computations) == 1 and sorted(transformer.values()) == ["first", "w"]
    assert f(np.ones(4)) == 0
    same = [geon.Variable([H], initial_value=1) for _ in range(2)]
    transformer.computation(same)  # variables without names are told apart by their order


def test_updates_and_costs_of_layers_that_nobody_asks_for_warn():
    C, time = geon.Axis("C", 4), geon.Axis("place", 8)
    x = geon.placeholder([axis.N, axis.T, C], name="x")
    norm, recurrent = neon.BatchNorm(name="bn"), neon.Recurrent(K, 0.0, name="rnn")
    experts = neon.MixtureOfExperts(geon.Axis("E", 4), geon.Axis("hidden", 2), C, 0.0, name="moe")

    def trained():
        norm(x, training=neon.Training())

    def remembered():
        recurrent(x, cache=neon.Cache(time, name="cache"))

    def balanced():
        t = neon.Training()
        experts(x, training=t)

    def asked():
        t, cache = neon.Training(), neon.Cache(time)
        results = [norm(x, training=t), experts(x, training=t), recurrent(x, cache=cache)]
        geon.NumPyTransformer().computation([*results, *t.costs, *t.updates, *cache.updates], x)

    def unused():
        neon.Training(), neon.Cache(time), geon.tanh(x)

    def late():
        t = neon.Training()
        geon.NumPyTransformer().computation([norm(x, training=t), *t.updates], x)
        neon.BatchNorm(name="late")(x, training=t)

    def texts(call):
        return [text for text, *_ in warned(call)]

    def place(call, line=1):
        return f"test_messages.py:{call.__code__.co_firstlineno + line}"

    given = "transformer.computation"
    training = f"these variables keep their values; give *training.updates to {given}"
    assert texts(trained) == [
        f"the updates of the neon.Training made at {place(trained)} are gone, and no computation "
        f"was given them: bn.mean(C:4), bn.variance(C:4); {training}, beside the step"
    ]
    assert texts(remembered) == [
        f"the updates of the neon.Cache made at {place(remembered)} are gone, and no computation "
        "was given them: cache.position(), cache.rnn.state.0(N, K:3); the next call would not go "
        f"on after this one; give *cache.updates to {given}, beside the results"
    ]
    (text,) = texts(balanced)
    assert re.fullmatch(
        rf"the costs of the neon.Training made at {place(balanced)} are gone, and no computation "
        r"was given them: \w+\(\); add sum\(training.costs\) to the cost",
        text,
    )
    assert texts(asked) == texts(unused) == []
    (text,) = texts(late)
    assert "late.mean(C:4), late.variance(C:4)" in text and "bn." not in text


def test_what_is_left_at_the_end_of_a_program_warns(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(
        "import geon\n"
        "v = geon.Variable(initial_value=0, name='v')\n"
        "w = geon.Variable(initial_value=0, name='w')\n"
        "updates = [geon.assign(v, v + 1), geon.assign(w, w + 1)]\n"
        "geon.NumPyTransformer().computation(updates[1])()\n"
    )
    done = subprocess.run([sys.executable, file], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr.count("RuntimeWarning") == 1
    assert f"{file}:4: RuntimeWarning: the assignment to v()" in done.stderr


def test_scores_given_for_probabilities_warn():
    wanted = geon.onehot(i, K)
    scores, made = geon.dot(x, w), here()

    def multi():
        geon.cross_entropy_multi(scores + 1, wanted)

    def binary():
        geon.cross_entropy_binary(scores, wanted)

    ((text, kind, line),) = warned(multi)
    place = f"test_messages.py:{multi.__code__.co_firstlineno + 1}"
    assert kind is UserWarning and line == multi.__code__.co_firstlineno + 1
    assert text == (
        f"cross_entropy_multi at {place}: y = add(N, K:3) (made at {place}) should be "
        "probabilities and is a weighted sum, which nothing keeps from 0 to 1; take them first, "
        "for example with geon.softmax"
    )
    ((text, _, _),) = warned(binary)
    assert f"y = dot(N, K:3) (made at {made})" in text and text.endswith("geon.sigmoid")
    ((text, _, _),) = warned(lambda: geon.cross_entropy_multi(geon.log_softmax(scores, K), wanted))
    assert "should be probabilities and is a logarithm; take them first" in text


def test_probabilities_and_what_is_not_known_do_not_warn():
    p = geon.placeholder([N, K])
    wanted = geon.onehot(i, K)

    def build():
        geon.cross_entropy_multi(geon.softmax(geon.dot(x, w), K), wanted)
        geon.cross_entropy_multi(p, wanted)
        geon.cross_entropy_multi(geon.exp(geon.log_softmax(geon.dot(x, w), K)), wanted)
        geon.cross_entropy_binary(geon.sigmoid(geon.dot(x, w)), wanted)

    assert warned(build) == []


def test_python_suggests_attributes_that_are_there():
    with pytest.raises(AttributeError) as caught:
        x.reorderr  # noqa: B018
    assert caught.value.name == "reorderr" and caught.value.obj is x
    assert not hasattr(x, "__array_interface__")


def test_attributes_that_are_named_are_not_there():
    assert not hasattr(x, "T") and not hasattr(geon.Tensor, "T")
    assert getattr(x, "dims", None) is None
    assert "T" not in dir(x) and "tanh" not in dir(x) and "mean" in dir(x)


def test_an_open_length_that_simplifying_removes_counts(transformer):
    free = geon.Axis(f"removed on {transformer.target.name}")
    with pytest.raises(geon.AxisError, match="nothing gives the open length removed"):
        transformer.computation(geon.mean(geon.broadcast(geon.constant(2.0), free)))


def test_a_rename_and_an_order_name_their_line_and_what_is_wrong():
    call = lambda: geon.rename(x, {N: "H"})  # noqa: E731
    assert said(call, geon.AxisError) == (
        f"rename at HERE: axis 'H' is there twice in (H:N, H:4), as 'N' and 'H' of x(N, H:4) (made "
        f"at {X}); give geon.rename another name, such as H.prime"
    )
    wrong = f"are not the axes of x(N, H:4) (made at {X}),"
    call = lambda: geon.reorder(x, [H])  # noqa: E731
    assert said(call, geon.AxisError) == (
        f"reorder at HERE: (H:4) {wrong} without N; name each of its axes once: geon.sum takes one "
        "away"
    )
    more = geon.Axis("K", 2)
    call = lambda: geon.reorder(x, [H, N, more])  # noqa: E731
    assert said(call, geon.AxisError) == (
        f"reorder at HERE: (H:4, N, K:2) {wrong} with K:2; geon.broadcast adds axes"
    )
    truth = x > 0
    call = lambda: geon.max(truth)  # noqa: E731
    assert said(call, geon.DTypeError).startswith("max at HERE: greater(N, H:4) (made at ")


def test_positions_outside_of_an_axis_name_all_lines_that_took_them(transformer):
    """An op is one thing however often it was written; a message does not know which is meant."""
    index = geon.placeholder([N], dtype="int64")
    table = geon.placeholder([H])
    first = geon.gather(table, index, H)
    second = geon.gather(table, index, H)
    f = transformer.computation([first * 2, second + 1], table, index)
    lines = [first.sites[0], second.sites[-1]]
    assert first is second and lines[0] != lines[1]
    with pytest.raises(geon.IndexRangeError) as error:
        f(np.ones(4, "float32"), np.array([0, 7]))
    assert f"used as positions at {lines[1]}, {lines[0]}, in the forward pass" in str(error.value)
