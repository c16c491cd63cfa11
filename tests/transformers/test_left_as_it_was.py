"""Making, compiling, running and printing a computation leaves every op as it was.

And what is made or named afterwards leaves the computation as it was.
"""

import gc
import threading

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import find, interned_count, post_order
from tests.places import here

A, B = geon.Axis("A", 4), geon.Axis("B")


def seen(op):
    """All that can be seen of an op."""
    return (
        op.name, op.tags, op.sites, op.file_info, op.lineno, op.filename, op.is_output, op.is_input,
        op.users, op.follows, op.initializers, op.axes, op.dtype, op.args, op.attrs, op.guards,
        str(op), repr(op),
        None if op._notes is None else op._notes.copy(),
    )  # fmt: skip


def graph():
    """Ops that rules replace by each other, and that copies, draws and assignments are made of."""
    x = geon.placeholder([A, B], name="x")
    w = geon.Variable([A, B], initial_value=geon.Random(3).normal([A, B]), name="w")
    y = geon.tanh(x + w)
    named = geon.multiply(y, 1.0, name="total", tags="t")
    again = geon.negative(geon.negative(y))
    p = geon.softmax(named, normalization_axes=A)
    loss = geon.mean(geon.log(p) * geon.sum(again, A), name="loss")
    noise = geon.sum(geon.Random(1).normal([A, B]))
    turned = geon.reorder(named, [B, A])
    effects = [geon.assign(w, w - 0.1 * geon.deriv(loss, w)), geon.print(noise, "noise")]
    results = [y, named, named, turned, loss, geon.dot(x, y, over=B), geon.deriv(loss, x)]
    shared = geon.cast_axes(geon.constant(np.arange(4.0), A), A) + geon.sum(x[1:3, :])
    return x, [*results, shared, *effects]


def test_a_computation_leaves_ops_as_they_were(make, capsys):
    x, results = graph()
    bystanders = [geon.tanh(results[0]), geon.exp(x) + 0.0, geon.constant(1.0), geon.square(x)]
    ops = post_order([*results, *bystanders])
    gc.collect()
    before, alive = [seen(op) for op in ops], interned_count()
    data = np.ones((4, 5), np.float32)
    with make() as transformer:
        f = transformer.computation(results, x, keep=[results[0]])
        f(data), f(data)
        f.override(results[0], np.zeros((4, 5), np.float32))
        f(data)
        f.override(results[0], None)
        for stage in ("build", "functional", "simplify", "schedule", "plan", "emit"):
            assert f.explain(stage)
        assert f.source and repr(f) and f._repr_html_() and f.dumps(data)
        assert [str(entry) for entry in f.trace(data)]
        assert f.peak_bytes() is not None and f.peak_bytes({B: 5})
        checked = transformer.computation(results, x, check="nan", plan=False)
        checked(data)
        transformer.computation(results, x, specialize={B: 5})(data)
        if transformer.target.name == "native":
            assert str(f.profile(data, repeats=1)) and f.c_function.signature
        assert [seen(op) for op in ops] == before
        assert interned_count() <= alive
    assert [seen(op) for op in ops] == before


def test_is_output_is_the_users_tag(make):
    x = geon.placeholder(A)
    y = geon.tanh(x)
    with make() as transformer:
        transformer.computation(y, x)(np.zeros(4))
    assert not y.is_output and not geon.tanh(x).is_output
    y.add_tags("out")
    assert geon.tanh(x).is_output


def test_an_op_first_made_by_a_computation_has_the_users_line(make):
    x = geon.placeholder(A)
    with make() as transformer:
        f = transformer.computation([geon.log(geon.exp(x) * 1.0), geon.relu(x)], x)
        assert "maximum" in f.explain("simplify")
        f(np.zeros(4))
        late, line = geon.maximum(x, 0.0), here()
        assert late.sites == [late.file_info] and line in late.file_info and late.users == ()


def test_what_is_named_later_is_not_renamed_in_a_computation(make):
    x = geon.placeholder(A, name="x")
    y = geon.exp(x * 2)
    y.name = "early"
    with make() as transformer:
        f = transformer.computation([y, geon.sum(y)], x)
        stages = ("build", "functional", "simplify", "emit")
        before = [f.explain(stage) for stage in stages]
        assert all("early" in text for text in before)
        again = geon.exp(x * 2, name="late", tags="new")
        assert again is y and y.name == "late"
        assert [f.explain(stage) for stage in stages] == before
        fresh = transformer.computation([y, geon.sum(y)], x)
        assert [f.source, fresh.source.replace("late, early", "early")] == [before[-1]] * 2
        assert "late, early" in fresh.explain("build")
    assert find("early", y) is y and find("late", y) is y
    assert str(y) == "late, early(A:4)"


def test_threads_that_build_while_a_computation_is_made(make):
    """Ops of users and of computations are kept apart, by thread too."""
    x = geon.placeholder(A)
    results = [geon.tanh(x * k) + 0.0 for k in range(2, 30)]
    stop, wrong = threading.Event(), []

    def build():
        while not stop.is_set():
            one, two = geon.tanh(x * 3) * 1.0, geon.tanh(x * 3) * 1.0
            wrong.extend([(one, two)] if one is not two else [])

    threads = [threading.Thread(target=build) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        with make() as transformer:
            for _ in range(3):
                f = transformer.computation(results, x)
                got = f(np.ones(4))
                np.testing.assert_allclose(got[1], np.tanh(3 * np.ones(4)), rtol=1e-6)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong


@pytest.mark.parametrize("first", ["merged", "apart"])
def test_ops_that_become_one_keep_both_lines_and_names(transformer, first):
    """Two ops of the user's that simplification makes one are shown with what both said."""
    x = geon.placeholder(A)
    a, one = geon.log(x * 1.0, name="a"), here()
    b, two = geon.log(x, name="b"), here()
    f = transformer.computation([a + 1, b * 2] if first == "merged" else b, x, check="nan")
    with pytest.raises(geon.NonFiniteError) as caught:
        f([1, 2, 3, 0])
    text = str(caught.value)
    assert "b" in text and two in text
    assert (one in text) == (first == "merged")
