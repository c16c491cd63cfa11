"""Whose memory is whose: results are the caller's, inputs are never written, state is private.

``assert_agrees`` holds every row of the conformance suite to it, ``tests/test_random_graphs.py``
every random graph; here is that they notice, and what they do not compute.
"""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

import geon
from geon.op_graph.building.constants import constant_value
from geon.testing.agreement import assert_agrees, assert_own
from geon.transformers.numpy.transformer import TARGET

K = geon.Axis("K", 6)


def test_the_suite_notices_what_is_not_the_callers_own():
    x = geon.placeholder(K)
    given, made = np.arange(6.0), np.ones(6)
    assert_own([x + 1, geon.assign(x, 1.0)], [made, None], [given], [given.copy()])
    frozen = np.ones(6)
    frozen.setflags(write=False)
    for values in ([given[::-1], None], [made, made[2:]], [frozen, made]):
        with pytest.raises(AssertionError, match="not the caller's own"):
            assert_own([x + 1, x + 2], values, [given], [given.copy()])
    with pytest.raises(AssertionError, match="number 1 was written to"):
        assert_own([x + 1], [made], [given], [given + 1])


class Careless(geon.NumPyTransformer):
    """Computes its result where its input is."""

    target = replace(TARGET, name="careless")

    def emit(self, *args, **options):
        text = super().emit(*args, **options)
        assert "r0 = np.empty((6,), np.float32)" in text
        return text.replace("r0 = np.empty((6,), np.float32)", "r0 = x0")


@pytest.mark.parametrize(
    ("build", "message"), [(geon.exp, "was written to"), (lambda x: x, "not the caller's own")]
)
def test_the_suite_fails_a_transformer_that_is_careless(build, message):
    x = geon.placeholder(geon.Axis("K", 6), name="x")
    with Careless() as transformer, pytest.raises(AssertionError, match=message):
        assert_agrees(transformer, build(x), {x: np.arange(6, dtype=np.float32)})


LOOKS = {
    "itself": lambda x: x,
    "a part": lambda x: x[1:5],
    "turned": lambda x: geon.flip(x, K),
    "another name": lambda x: geon.rename(x, {K: "L"}),
    "repeated": lambda x: geon.broadcast(x, [K, geon.Axis("L", 2)]),
    "split": lambda x: geon.unflatten(x, K, [geon.Axis("A", 2), geon.Axis("B", 3)]),
    "the same dtype": lambda x: geon.cast(x, "float32"),
    "no gradient": lambda x: geon.stop_gradient(x),
    "printed": lambda x: geon.print(x * 1, "x"),
}
SOURCES = {
    "input": lambda x: (x, [x]),
    "variable": lambda x: (geon.Variable(K, initial_value=np.arange(6.0, dtype="f4")), []),
    "constant": lambda x: (geon.constant(np.arange(6.0, dtype="f4"), axes=K), []),
    "kept value": lambda x: (geon.exp(x), [x]),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("source", SOURCES)
def test_a_look_is_an_array_of_its_own(transformer, look, source):
    """What is written into a result is seen by nobody: not by inputs, state, or the next call."""
    x = geon.placeholder(K, name="x")
    value, fed = SOURCES[source](x)
    results = [LOOKS[look](value), LOOKS[look](value), value]
    f = transformer.computation(results, *fed, keep=[value])
    array = np.arange(6, dtype=np.float32)
    given = [array] * len(fed)
    f(*given)
    first = f(*given)
    right = [np.array(value) for value in first]
    kept = np.array(f.value(value))
    for k, one in enumerate(first):
        one[...] = -7
        for other in (*first[k + 1 :], array, f.value(value)):
            assert not np.may_share_memory(one, other)
    np.testing.assert_array_equal(array, np.arange(6))
    np.testing.assert_array_equal(f.value(value), kept)
    for one, other in zip(f(*given), right, strict=True):
        np.testing.assert_array_equal(one, other)


def test_inputs_of_every_layout_are_only_read(transformer):
    A, B = geon.Axis("A", 4), geon.Axis("B", 6)
    x = geon.placeholder([A, B], name="x")
    results = [
        geon.sequential([geon.assign(x[1:3], 7.0), geon.sort(x, B)]),
        geon.cumsum(x, A),
        geon.dot(x, x, over=A),
        geon.softmax(x, B),
    ]
    f = transformer.computation(results, x)
    whole = np.random.default_rng(0).random((8, 12), dtype=np.float32)
    for given in (whole[:4, :6], whole[::2, ::2], whole[:4, :6].T.copy().T, whole[:4, 5::-1]):
        for dtype in (np.float32, np.float64):
            fed = given.astype(dtype) if dtype is np.float64 else given
            fed.setflags(write=False)
            before = whole.copy(), fed.copy()
            f(fed)
            f(fed)
            np.testing.assert_array_equal(whole, before[0])
            np.testing.assert_array_equal(fed, before[1])


def test_a_result_keeps_nothing_alive_and_outlives_everything(make):
    """Neither the transformer, nor a large block that other results come from."""
    transformer = make()
    x = geon.placeholder(geon.Axis("N"))
    f = transformer.computation(x * 2, x)
    small, large = f(np.ones(3)), f(np.ones(1 << 19))
    gone = weakref.ref(f)
    transformer.close()
    del f, transformer
    gc.collect()
    assert gone() is None
    np.testing.assert_array_equal(small, [2, 2, 2])
    assert (large == 2).all()


def test_what_is_set_got_and_first_is_a_copy(transformer):
    first = np.arange(6, dtype=np.float32)
    v = geon.Variable(K, initial_value=first)
    c = geon.constant(first, axes=K)
    first[...] = -1
    np.testing.assert_array_equal(transformer.get(v), np.arange(6))
    np.testing.assert_array_equal(transformer.computation(c)(), np.arange(6))
    held = np.ones(6, np.float32)
    w = geon.Variable(K, initial_value=lambda axes: held)
    transformer.computation(geon.assign(w, w + 1))()
    np.testing.assert_array_equal(held, np.ones(6))
    np.testing.assert_array_equal(transformer.get(w), np.full(6, 2))


@pytest.mark.parametrize("count", [3, 5000], ids=["small", "large"])
def test_what_a_constant_holds_is_frozen(count):
    array = np.arange(count, dtype=np.float32)
    held = constant_value(geon.constant(array, axes=geon.Axis("H")))
    assert not held.flags.writeable and not np.may_share_memory(held, array)
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 1
