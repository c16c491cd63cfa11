"""specialize= makes the program for one length: a number everywhere, and part of what it is."""

import re

import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, FeedError, GuardError
from geon.op_graph.axes.lengths import Length, floor_divide, substitute_names
from geon.op_graph.op_graph import post_order
from geon.transformers.cache.programs import cached_programs
from tests.kinds import numpy_only
from tests.places import here

N, C = geon.Axis("N"), geon.Axis("C", 3)
M = geon.Axis("M")


def model():
    """Rows of open length through a product, a softmax, a slice, a step, and positions."""
    x = geon.placeholder([N, C], name="x")
    w = geon.Variable([C, M], initial_value=geon.Random(2).normal([C, M]), name="w")
    y = geon.tanh(geon.dot(x, w))
    total = geon.mean(y, N) + geon.cast(geon.tensor_size(x, N), "float32")
    steps = geon.sum(x[::2, :], C) * 2.0
    cut = x[1:3, :] + geon.cast(geon.sum(geon.iota(N)), "float32")
    place = geon.argmax(x, N)
    grad = geon.deriv(geon.sum(total), x)
    loss = geon.sum(geon.log(geon.softmax(y, normalization_axes=M)))
    return x, w, [y, total, steps, cut, place, grad, loss]


def data(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3)).astype(np.float32)


def code(source):
    """The text of a program without comments."""
    return re.sub(r"/\*.*?\*/|#[^\n]*", "", source, flags=re.DOTALL)


def test_the_length_is_a_number_in_the_text(transformer):
    x, _, results = model()
    everywhere = transformer.computation(results, x, lengths={N: 12, M: 5})
    alone = transformer.computation(results, x, specialize={N: 12, M: 5})
    texts = {"numpy": r"\bL\['[NM]'\]", "native": r"geon_run.*\bn\[\d+\]"}
    opened = texts.get(transformer.target.name, r"\bkernel_\d+\([^)]*\bint64_t n0\b")
    assert re.search(opened, code(everywhere.source), re.DOTALL)
    assert not re.search(opened, code(alone.source), re.DOTALL)
    if transformer.target.name == "native":
        assert everywhere.c_function.lengths and not alone.c_function.lengths
        assert all(isinstance(pointer.size, int) for pointer in alone.c_function.pointers)
    assert alone.linking.text != everywhere.linking.text
    for op in post_order(alone.program.roots):
        lengths = [*op.axes.lengths, *(b for g in op.guards for b in (g.left, g.right))]
        assert all(isinstance(length, int) for length in lengths), op
        assert op.primitive.name != "length"


def test_it_computes_the_same(transformer):
    x, _, results = model()
    values = data(12)
    expected = transformer.computation(results, x, lengths={M: 5})(values)
    f = transformer.computation(results, x, specialize={N: 12, "M": 5})
    for got in (f(values), f(x=values)):
        for a, b in zip(got, expected, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    traced = f.trace(values)
    np.testing.assert_allclose(traced[-1].value, expected[-1], rtol=1e-5)
    again = geon.loads(f.dumps(values))
    assert again is not None


def test_the_peak_is_an_integer(transformer):
    x, _, results = model()
    opened = transformer.computation(results, x)
    f = transformer.computation(results, x, specialize={N: 12, M: 5})
    assert isinstance(opened.peak_bytes(), Length) and type(f.peak_bytes()) is int
    assert f.peak_bytes() == f.peak_bytes({N: 12})
    assert isinstance(transformer.computation(results, x, specialize={N: 12}).peak_bytes(), Length)
    with pytest.raises(ArgumentError, match="N is 13; N = 12, M = 5, specialized at"):
        f.peak_bytes({N: 13})


def test_data_of_another_length_are_refused_with_the_line(transformer):
    x, w, results = model()
    f, line = transformer.computation(results, x, specialize={N: 12, M: 5}), here()
    f(data(12))
    for call in (f, f.trace, f.dumps):
        with pytest.raises(FeedError) as caught:
            call(data(13))
        for part in ("placeholder x", "(12, 3)", "N = 12, M = 5, specialized at", line, "leave"):
            assert part in str(caught.value)
    f(data(12))
    g = transformer.computation(geon.sum(x), x, lengths={N: 12})
    with pytest.raises(FeedError) as caught:
        g(data(13))
    assert "specialized at" not in str(caught.value)


def test_a_variable_of_another_length_is_refused_with_the_line(make):
    w = geon.Variable([N, C], initial_value=1, name="w")
    first = make()
    first.set(w, np.ones((4, 3)))
    f, line = first.computation(geon.sum(w), specialize={N: 5}), here()
    with pytest.raises(geon.GeonError) as caught:
        f()
    for part in ("w(N, C:3)", "N is 4", "N = 5, specialized at", line):
        assert part in str(caught.value)
    held = geon.Variable([N, C], initial_value=np.zeros((4, 3), np.float32), name="held")
    f, line = make().computation(geon.sum(held), specialize={N: 5}), here()
    with pytest.raises(geon.GeonError, match="held") as caught:
        f()
    assert line in str(caught.value)


def test_one_variable_serves_all(transformer):
    """Computations for one length and for all read and write the same storage."""
    w = geon.Variable([N, C], initial_value=1, name="w")
    x = geon.placeholder([N, C], name="x")
    step = transformer.computation(geon.assign(w, w + x), x, specialize={N: 4})
    add = transformer.computation([geon.assign(w[1:2, :], w[1:2, :] * 10), w + x], x)
    step(data(4))
    value = add(data(4))[1]
    step(data(4))
    expected = 1 + data(4)
    np.testing.assert_allclose(value, expected + data(4), rtol=1e-6)
    expected[1] *= 10
    np.testing.assert_allclose(transformer.get(w), expected + data(4), rtol=1e-6)
    assert len(transformer.variables.leaves) == 1 and transformer.get(w).shape == (4, 3)


def test_it_is_part_of_the_key_of_programs(transformer, monkeypatch):
    monkeypatch.setattr(
        "geon.transformers.cache.programs._programs", None
    )  # one that is full counts none
    x = geon.placeholder([N, C], name="x")
    y = geon.sum(geon.sin(x) * 7.125, N)
    values = data(6)
    fs = [
        transformer.computation(y, x, **options)
        for options in ({}, {"lengths": {N: 6}}, {"specialize": {N: 6}}, {"specialize": {N: 7}})
    ]
    before = cached_programs()
    for f in fs[:3]:
        np.testing.assert_allclose(f(values), (np.sin(values) * 7.125).sum(0), rtol=2e-5, atol=1e-5)
    fs[3](data(7))
    assert cached_programs() == before + 3
    transformer.computation(y, x, specialize={N: 6})(values)
    assert cached_programs() == before + 3


def test_a_length_that_the_graph_excludes_is_refused_when_it_is_made(transformer):
    x = geon.placeholder([N, C], name="x")
    y, built = x[2:6, :], here()
    with pytest.raises(GuardError) as caught:
        transformer.computation(y, x, specialize={N: 5})
    line = here(-1)
    for part in (built, "N = 5, specialized at", line, "6 <= 5 is false"):
        assert part in str(caught.value)
    assert transformer.computation(y, x, specialize={N: 6})(data(6)).shape == (4, 3)


def test_contradictions(transformer):
    x = geon.placeholder([N, C], name="x")
    with pytest.raises(ArgumentError, match="N is 4 in lengths= and 5 in specialize="):
        transformer.computation(x + 1, x, lengths={N: 4}, specialize={N: 5})
    f = transformer.computation(x + 1, x, lengths={N: 4}, specialize={N: 4})
    assert f(data(4)).shape == (4, 3)


def test_keep_and_override(transformer):
    x, _, _ = model()
    y = geon.tanh(x)
    f = transformer.computation(geon.sum(y, N), x, keep=[y], specialize={N: 4})
    f(data(4))
    np.testing.assert_allclose(f.value(y), np.tanh(data(4)), rtol=1e-6)
    f.override(y, np.ones((4, 3)))
    np.testing.assert_array_equal(f(data(4)), [4, 4, 4])
    f.override(y, None)
    np.testing.assert_allclose(f(data(4)), np.tanh(data(4)).sum(0), rtol=1e-5, atol=1e-6)


def test_a_default_length_does_not_matter(transformer):
    own = geon.Axis("N", "own_default")
    x = geon.placeholder(own, name="x")
    own.length = 9
    f = transformer.computation(x * 2, x, specialize={own: 3})
    np.testing.assert_array_equal(f([1, 2, 3]), [2, 4, 6])


def test_expressions_fold():
    n, m = Length.of("n"), Length.of("m")
    value = 3 * n * n * m + floor_divide(n + m, 4) - 2
    assert substitute_names(value, {"n": 2, "m": 6}) == 72 + 2 - 2
    assert substitute_names(value, {"n": 2}) == 12 * m + floor_divide(m + 2, 4) - 2
    assert substitute_names(value, {"k": 1}) is value and substitute_names(7, {"n": 2}) == 7


@numpy_only
def test_a_written_module_is_for_that_length(transformer, tmp_path):
    x, w, results = model()
    line = here(1)
    transformer.computation(results, x, specialize={N: 12, M: 5}, name="alone")
    transformer.computation(geon.sum(w) + geon.sum(x), x, name="all_lengths")
    path = tmp_path / "written.py"
    transformer.write(path)
    space = {"__name__": "written"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    got = space["alone"](data(12))
    expected = transformer.computations[0](data(12))
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert np.isfinite(space["all_lengths"](data(3)))
    with pytest.raises(ValueError, match="specialized at") as caught:
        space["alone"](data(3))
    assert line in str(caught.value)
