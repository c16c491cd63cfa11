"""What failures leave: other variables, open lengths and files as they were; and odd arguments."""

import copy
import pickle

import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, CheckpointError, FeedError, SizeError
from tests.places import here

A = geon.Axis("A", 2)


@pytest.mark.parametrize("first", [lambda axes: "x", lambda axes: 1 / 0, lambda axes: [[1], 2]])
def test_a_bad_initial_value_concerns_its_variable_alone(transformer, tmp_path, first):
    bad, place = geon.Variable([A], initial_value=first, name="bad"), here()
    good = geon.Variable([A], initial_value=lambda axes: 2, name="good")
    reads_bad, reads_good = (transformer.computation(v + 0) for v in (bad, good))
    for attempt in (reads_bad, transformer.initialize, lambda: transformer.save(tmp_path / "s")):
        with pytest.raises(FeedError, match=r"bad\(A:2\).*transformer\.set") as caught:
            attempt()
        assert place in str(caught.value) and caught.value.__cause__ is not None
        np.testing.assert_array_equal(reads_good(), [2, 2])
        np.testing.assert_array_equal(transformer.get(good), [2, 2])
    transformer.set(bad, [1, 2])
    np.testing.assert_array_equal(reads_bad(), [1, 2])
    transformer.initialize()
    transformer.save(tmp_path / "s")


def test_a_first_call_that_fails_fixes_no_open_length(transformer):
    N = geon.Axis("N", "N_failing")
    n = geon.placeholder([N])
    w = geon.Variable([N], initial_value=0.0)
    large = geon.exp(geon.broadcast(w + n, [N, geon.Axis("C2", 2**40)]))
    too_large = transformer.computation(large, n)
    with pytest.raises(SizeError):
        too_large(np.ones(4))
    checked = transformer.computation(geon.log(w + n), n, check="nan")
    with pytest.raises(geon.NonFiniteError):
        checked(-np.ones(3))
    picked = transformer.computation(geon.gather(w + n, geon.constant(3), N), n)
    with pytest.raises(geon.IndexRangeError):
        picked(np.ones(3))
    np.testing.assert_array_equal(checked(np.ones(2)), [0, 0])
    with pytest.raises(FeedError):
        checked(np.ones(3))


@pytest.mark.parametrize("path", [None, 3, True, ["a"], "a\0b", "\ud800", ""])
def test_what_is_no_path(transformer, path):
    for attempt in (transformer.save, transformer.restore):
        with pytest.raises((ArgumentError, CheckpointError), match="give a"):
            attempt(path)


@pytest.mark.parametrize("path", [None, 3, True, ["a"], "a\0b", "\ud800", ""])
def test_what_is_no_path_of_a_module(transformer, path):
    with pytest.raises((ArgumentError, CheckpointError), match="give a"):
        transformer.write(path)


def test_write_replaces_in_one_step(transformer, tmp_path, monkeypatch):
    path = tmp_path / "module.py"
    path.write_text("old")
    with pytest.raises(CheckpointError, match="cannot be written"):
        transformer.write(tmp_path / "missing" / "module.py")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.replace", refuse)
        with pytest.raises(CheckpointError, match="No space left.*unchanged; free space"):
            transformer.write(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    transformer.write(path)
    assert "def allocate" in path.read_text()


def test_two_placeholders_of_one_name_are_fed_by_position(transformer):
    d, first = geon.placeholder(name="d"), here()
    e, second = geon.placeholder(name="d"), here()
    f = transformer.computation(d - e, d, e)
    assert f(3, 2) == 1
    for attempt in (lambda: f(d=1), lambda: f(1, d=2)):
        with pytest.raises(ArgumentError, match="'d' is the name of several") as caught:
            attempt()
        assert first in str(caught.value) and second in str(caught.value)


N = geon.Axis("N", "N_lengths")
ODD = [{N: 1.5}, {N: True}, {N: -1}, {N: "x"}, [3], 3, {A: 2}, {"typo": 2}]


@pytest.mark.parametrize("lengths", ODD, ids=str)
def test_odd_lengths(transformer, lengths):
    x = geon.placeholder([N])
    w = geon.Variable([N], initial_value=0.0)
    f = transformer.computation(x + w, x)
    for attempt in (
        lambda: transformer.computation(x + w, x, lengths=lengths),
        lambda: transformer.computation(x + w, x, specialize=lengths),
        lambda: transformer.allocate(lengths),
        lambda: transformer.initialize(lengths=lengths),
        lambda: f.peak_bytes(lengths),
    ):
        with pytest.raises(ArgumentError, match="lengths|specialize"):
            attempt()


def test_sizes_beyond_63_bits(transformer):
    x = geon.placeholder([N])
    G = geon.Axis("G", "G_sizes")
    assert transformer.computation(x + 1, x).peak_bytes({N: 2**62}) == 2**64
    for axis, lengths in ((geon.Axis("H", 2**62), None), (G, {G: 2**62})):
        wide = geon.broadcast(geon.sum(x), [axis])
        with pytest.raises(SizeError):
            transformer.computation(wide, x, lengths=lengths)(np.ones(3))


def test_parts_of_an_axis_are_no_loops_of_their_own(transformer):
    x = geon.placeholder([N])
    pair = geon.concat([x, x], N)
    joined = geon.concat([x, pair, pair], N)
    array = np.arange(2**20, dtype=np.float32)  # N, 2 N and 5 N are 10 N ** 3 together
    found, _ = transformer.computation([joined, pair], x)(array)
    np.testing.assert_array_equal(found, np.tile(array, 5))


def test_odd_options(transformer):
    x = geon.placeholder()
    f = transformer.computation(x + 1, x)
    for attempt in (
        lambda: transformer.computation(x, x, keep=[3]),
        lambda: transformer.computation(x, x, keep=3),
        lambda: transformer.computation(x, x, name=3),
        lambda: f.value(3),
        lambda: f.override(3, 1),
        lambda: geon.make_transformer({}),
        lambda: geon.make_transformer(foo=1),
        lambda: copy.copy(transformer),
        lambda: copy.deepcopy(f),
        lambda: pickle.dumps(transformer),
    ):
        with pytest.raises(ArgumentError):
            attempt()
    with pytest.raises(geon.UnavailableError, match="make_transformer"):
        geon.Transformer()
    single = transformer.computation(x + 1, x, keep=x)
    assert single(2) == 3 and single.value(x) == 2


def test_a_first_value_that_fails_fixes_no_open_length(transformer):
    N = geon.Axis("N", "N_first_value_failing")
    x = geon.placeholder([N])
    answers = iter([ValueError("not yet"), 1.0])

    def first(axes):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    w = geon.Variable([N], initial_value=first)
    f = transformer.computation(w + x, x)
    with pytest.raises(ValueError, match="not yet"):
        f(np.ones(3))
    np.testing.assert_array_equal(f(np.ones(2)), [2, 2])
