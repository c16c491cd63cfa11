"""Arrays: their values, axes, operators and methods, and the programs that compute them."""

import copy
import gc
import pickle
import warnings

import numpy as np
import pytest

import geon
from geon import eager
from geon.eager import evaluation, nodes, symbolic_calls

N, C, H = geon.Axis("N"), geon.Axis("C", 3), geon.Axis("H", 2)
rows = np.arange(6)[:, None]


@pytest.fixture(autouse=True)
def numpy_transformer():
    with eager.use("numpy") as transformer:
        eager.sync()  # what tests before left, such as the last versions of variables
        yield transformer


def data(*shape):
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def x_of(n=2):
    return eager.array(data(n, 3), [N, C], name="x")


def test_an_array_has_axes_with_lengths_and_the_facts_of_a_tensor():
    x = x_of()
    y = geon.tanh(x * 2.0).sum(C)
    assert str(y.axes) == "(N:2)" and y.shape == (2,) and y.dtype == np.float32
    assert isinstance(y, geon.Tensor) and x.name == "x" and "test_arrays.py" in y.line_info
    np.testing.assert_allclose(y, np.tanh(data(2, 3) * 2).sum(1), rtol=1e-6)


def test_values_convert_to_python_and_numpy():
    x = x_of()
    total = x.sum()
    assert float(total) == pytest.approx(data(2, 3).sum(), rel=1e-6)
    assert total.item() == float(total) and int(eager.array(3.7)) == 3
    assert f"{eager.array(0.5):.2f}" == "0.50" and bool(eager.array(1.0)) and len(x) == 2
    assert [10, 20, 30][eager.array(2)] == 30
    assert [row.axes.names for row in x] == [("C",), ("C",)] and x.tolist() == data(2, 3).tolist()
    assert np.array(x, "float64").dtype == np.float64
    assert repr(eager.array([1, 2], [H])) == "array([1, 2], (H:2), int64)"
    assert str(eager.array(2.5)) == "2.5"


def test_constructors_take_integers_of_arrays_or_say_why_not():
    assert str(geon.Axis("T", eager.array(4))) == "T:4"
    with pytest.raises(geon.ArgumentError, match="stride must be an integer"):
        geon.Window(C, stride=eager.array(2))
    with pytest.raises(geon.SymbolicError, match="has 6 elements and is no index"):
        geon.Axis("T", x_of())


def test_read_values_cannot_be_written_and_data_are_copied():
    given = data(2, 3)
    x = eager.array(given, [N, C])
    given[:] = 0
    assert np.asarray(x).any()
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(x + 1.0)[:] = 0


@pytest.mark.parametrize("f", [
    lambda x, y: x + y, lambda x, y: 1.0 - x, lambda x, y: x**2 / y, lambda x, y: abs(-x) % 2,
    lambda x, y: x @ y.rename({"N": "M"}), lambda x, y: x[{N: 0}], lambda x, y: x[..., 1:],
    lambda x, y: np.tanh(x) + np.sum(y, axis=C), lambda x, y: geon.where(x > y, x, 0),
    lambda x, y: geon.concat([x, y], C), lambda x, y: x.mean(N), lambda x, y: x.max(),
    lambda x, y: geon.top_k(x, 2, C)[0],
    lambda x, y: geon.outer(geon.multiply, x, y.rename({"N": "M", "C": "D"})),
    lambda x, y: geon.softmax(x, normalization_axes=C),
    lambda x, y: geon.scan(lambda c, v: ((c + v), geon.sin(c)), y.sum(N) * 0.0, x, over=N)[1],
    lambda x, y: geon.while_loop(lambda c: geon.all(c < 99.0), lambda c: c * 2.0, abs(x) + 1.0),
    lambda x, y: geon.cond(x.sum() > 0, lambda: x * 2.0, lambda: y),
    lambda x, y: geon.dot(x, geon.constant(data(3, 2), [C, H])),
])  # fmt: skip
def test_functions_and_operators_are_those_of_tensors(f, numpy_transformer):
    given = data(2, 3), data(2, 3) + 1
    places = [geon.placeholder([N, C]) for _ in given]
    want = numpy_transformer.computation(f(*places), *places)(*given)
    for _ in range(2):  # built, then found
        got = f(*[eager.array(value, [N, C]) for value in given])
        assert isinstance(got, eager.EagerArray)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_numpy_arrays_take_the_axes_of_the_array_and_do_not_become_constants():
    x, made = x_of(), len(evaluation.programs)
    for k in range(3):
        np.testing.assert_allclose(x * (data(2, 3) + k), data(2, 3) * (data(2, 3) + k), rtol=1e-6)
    assert len(evaluation.programs) - made == 1


def test_numpy_functions_that_geon_lacks_work_on_the_values():
    x = x_of()
    assert np.allclose(x, data(2, 3)) and not np.allclose(x, x + 1.0)
    np.testing.assert_array_equal(np.histogram(x)[0], np.histogram(data(2, 3))[0])
    assert isinstance(np.sum(x, axis=C), eager.EagerArray) and np.spacing(x).shape == (2, 3)


def test_results_in_structures_and_effects_come_back_as_arrays():
    values, places = geon.top_k(x_of(), 1, C)
    assert isinstance(values, eager.EagerArray) and places.dtype == np.int64
    assert str(places.axes) == "(N:2, C:1)"


def test_a_loop_body_compiles_once_and_other_lengths_share_one_program():
    def step(n):
        return float((geon.tanh(x_of(n) * 0.37) + 0.11).sum())

    step(2)
    before = len(evaluation.programs)
    assert step(2) == step(2)
    assert len(evaluation.programs) == before
    for n in (3, 4, 5):
        want = (np.tanh(data(n, 3) * np.float32(0.37)) + np.float32(0.11)).sum()
        assert step(n) == pytest.approx(want, rel=1e-5)
    made = list(evaluation.programs.values())[before:]
    assert len({id(program) for program in made}) == 1


def test_a_structure_that_states_a_length_has_programs_for_each_length():
    for n in (4, 6, 8):
        x = x_of(n)
        parts = geon.concat([x[{N: slice(0, n // 2)}], x[{N: slice(n // 2, n)}]], N)
        np.testing.assert_array_equal(parts, data(n, 3))


@pytest.mark.parametrize(("f", "want"), [
    (lambda x, k: geon.clip(x, -0.1 * k, 9.0), lambda x, k: np.clip(x, np.float32(-0.1 * k), 9)),
    (lambda x, k: x[{N: k % 6}], lambda x, k: x[k % 6]),
    (lambda x, k: x * k, lambda x, k: x * np.float32(k)),
    (lambda x, k: geon.update(x, float(k), {N: k % 6}), lambda x, k: np.where(rows == k % 6, k, x)),
    (lambda x, k: geon.where(x > 0, x, 0.5 * k), lambda x, k: np.where(x > 0, x, 0.5 * k)),
])  # fmt: skip
def test_numbers_and_positions_that_vary_become_arguments(f, want):
    x, made = x_of(6), len(evaluation.programs)
    for k in range(30):
        np.testing.assert_array_equal(f(x, k), want(data(6, 3), k))
    assert len(evaluation.programs) - made < 10


def test_numbers_that_a_function_needs_stay_constants():
    x = x_of(3)
    for k in range(1, 9):
        np.testing.assert_allclose(x**k, data(3, 3) ** k, rtol=1e-5)
        assert geon.pad(x, {N: (0, k)}).shape == (3 + k, 3)
        assert geon.top_k(x, min(k, 3), C)[0].shape == (3, min(k, 3))


def test_a_varying_position_outside_of_its_axis_raises_at_its_line():
    x = x_of(6)
    for k in range(8):
        if k < 6:
            np.testing.assert_array_equal(x[{N: k}], data(6, 3)[k])
        else:
            with pytest.raises(geon.IndexRangeError, match="test_arrays.py"):
                x[{N: k}]


def test_many_numbers_of_one_line_become_arguments():
    x, made = x_of(), len(evaluation.programs)
    for k in range(40):
        got = x * (0.5 + k / 64)
        np.testing.assert_allclose(got, data(2, 3) * np.float32(0.5 + k / 64), rtol=1e-6)
    assert len(evaluation.programs) - made < 8


def test_pending_arrays_are_computed_together_and_dropped_ones_not():
    x = x_of()
    y, z = geon.sin(x), geon.cos(x)
    gone = geon.exp(x)
    del gone
    float(y.sum())
    assert z._node.value is not None and not nodes.local.pending
    eager.sync()


def test_known_structures_are_told_apart_and_need_no_tape(monkeypatch):
    def shared(x, y):
        a = geon.sin(x)
        return (a + 0.5) * (a + 0.25)

    def distinct(x, y):
        return (geon.sin(x) + 0.5) * (geon.sin(y) + 0.25)

    def read_between(x, y):
        a = geon.sin(x) + 0.5
        a.numpy()
        return a * (geon.sin(y) + 0.25)

    def two_arrays(x, y):
        others.append(geon.sin(y) + 0.25)
        return (geon.sin(x) + 0.5) * others[-1]

    others = []
    for k in range(6):
        if k == 2:
            monkeypatch.setattr(evaluation, "tape_of", None)
        for f in (shared, distinct, read_between, two_arrays):
            x, y = data(2, 3) + k, data(2, 3) - k
            got = f(eager.array(x, [N, C]), eager.array(y, [N, C])).numpy()
            want = (np.sin(x) + 0.5) * (np.sin(x if f is shared else y) + 0.25)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
            assert nodes.local.pending == []
        np.testing.assert_allclose(others[k], np.sin(y) + 0.25, rtol=1e-4, atol=1e-6)


def test_an_equal_call_is_of_the_newest_line():
    x = x_of()
    y = geon.tanh(x)
    z = geon.exp(y)
    first = y.lineno
    del y
    y = geon.tanh(x)
    assert y.lineno == first + 4 and z.numpy().shape == (2, 3)


def test_a_value_is_found_again_on_the_same_arguments():
    x, z = x_of(), x_of()
    first = np.asarray(geon.tanh(x))
    both = np.asarray(x * z)
    assert np.asarray(geon.tanh(x)) is first and np.asarray(x * z) is both
    assert np.asarray(geon.tanh(z)) is not first and np.asarray(z * x) is not both


def test_equal_calls_are_one_node_as_equal_ops_are_one_op():
    x = x_of()
    y = geon.sum(geon.square(geon.tanh(x)))
    np.testing.assert_allclose(eager.grad(y, geon.tanh(x)), 2 * np.tanh(data(2, 3)), rtol=1e-6)
    both = geon.tanh(x) * geon.tanh(x)
    np.testing.assert_allclose(both, np.tanh(data(2, 3)) ** 2, rtol=1e-6)
    with eager.no_grad():
        constant = geon.tanh(x)
    np.testing.assert_array_equal(eager.grad(geon.sum(constant * x), x), np.tanh(data(2, 3)))


def test_large_values_are_dropped_that_were_not_used_for_longest():
    x = x_of(1000)
    before = eager.kept_bytes(30_000)  # two values of 12,000 bytes
    try:
        first, second = (np.asarray(f(x)) for f in (geon.sin, geon.cos))
        assert np.asarray(geon.sin(x)) is first
        np.asarray(geon.tanh(x))
        assert np.asarray(geon.sin(x)) is first and np.asarray(geon.cos(x)) is not second
        middle = geon.exp(x)
        end = middle + 1.0
        float(end.sum())
        node = middle._node
        del middle
        eager.kept_bytes(0)
        assert node.value is None  # and computed again for what needs it
        np.testing.assert_allclose(eager.grad(end.sum(), x), np.exp(data(1000, 3)), rtol=1e-5)
    finally:
        eager.kept_bytes(before)


@pytest.mark.parametrize("most", [0, 1000])
def test_values_beyond_the_limit_are_dropped_with_their_arrays(most):
    before, x = eager.kept_bytes(most), x_of(1000)
    try:
        first = x = geon.tanh(x)
        np.asarray(first)
        for _ in range(3):
            x = x * 0.5
            np.asarray(x)
        node = first._node
        assert node.value is not None
        del first
        np.asarray(x * 2.0)
        assert node.value is None
        np.testing.assert_allclose(x, np.tanh(data(1000, 3)) / 8, rtol=1e-6)
    finally:
        eager.kept_bytes(before)


@pytest.mark.parametrize("f", [
    lambda x: geon.scan(lambda c, _: (c + x, c), geon.broadcast(0.0, [C]), over=H)[0],
    lambda x: geon.while_loop(lambda c: geon.all(c < 9.0), lambda c: c + abs(x), x * 0.0 + 1.0),
    lambda x: geon.cond(geon.constant(True), lambda: x * 2.0, lambda: x),
    lambda x: geon.custom_deriv(lambda g, out, x: [3 * g])(geon.round)(x * 5.0),
    lambda x: geon.checkpoint(lambda x: geon.tanh(geon.sin(x)))(x),
])  # fmt: skip
def test_functions_of_functions_take_arrays_that_only_these_read(f, numpy_transformer):
    x, place = eager.array(data(3), [C]), geon.placeholder([C])
    made = f(place)
    want = numpy_transformer.computation([made, geon.deriv(geon.sum(made), place)], place)(data(3))
    got = f(x)
    assert isinstance(got, eager.EagerArray)
    np.testing.assert_allclose(got, want[0], rtol=1e-6)
    np.testing.assert_allclose(eager.grad(geon.sum(got), x), want[1], rtol=1e-6)


def test_draws_differ_from_draw_to_draw_but_one_tensor_is_one_draw():
    stream = geon.Random(5)
    x = x_of()
    noise = stream.normal([N, C])
    a, b = x + noise, x - noise
    np.testing.assert_allclose((a + b) / 2.0, data(2, 3), atol=1e-5)
    other = x + stream.normal([N, C])
    assert not np.allclose(other, a)
    made = len(evaluation.programs)
    drawn = [np.asarray(x + stream.normal([N, C])) for _ in range(5)]
    assert len(evaluation.programs) - made <= 1
    assert len({value.tobytes() for value in drawn}) == 5


def test_a_draw_in_the_body_of_a_loop_is_drawn_once():
    stream, x = geon.Random(5), x_of()
    start, steps = geon.constant(0.0), geon.constant([1.0, 2.0, 3.0], [C])
    noise = geon.scan(lambda c, v: (c, v * stream.normal()), start, steps, over=C)[1]
    np.testing.assert_allclose((x + noise) + (x - noise), 2 * data(2, 3), atol=1e-5)
    assert not np.allclose(x + noise, x)


def test_symbolic_tensors_and_variables_meet_arrays_at_their_newest_values():
    w = geon.Variable([C], initial_value=[1.0, 2.0, 3.0])
    x = x_of()
    np.testing.assert_allclose(x * geon.square(w), data(2, 3) * [1, 4, 9], rtol=1e-6)
    eager.run(geon.assign(w, w + 1))
    np.testing.assert_allclose(x + w, data(2, 3) + [2, 3, 4], rtol=1e-6)
    np.testing.assert_array_equal(eager.array(geon.exp(w) * 0 + w), [2, 3, 4])


def test_arrays_copy_and_pickle_as_values():
    x = x_of()
    assert copy.copy(x) is x
    np.testing.assert_array_equal(copy.deepcopy(x), x)
    again = pickle.loads(pickle.dumps(x))
    assert again.axes is x.axes
    np.testing.assert_array_equal(again, x)


def test_a_dropped_array_frees_its_graph():
    gc.collect()
    before = sum(isinstance(each, nodes.RecordedNode) for each in gc.get_objects())
    x = x_of()
    for _ in range(50):
        x = geon.tanh(x)
    float(x.sum())
    del x
    gc.collect()
    assert sum(isinstance(each, nodes.RecordedNode) for each in gc.get_objects()) <= before + 1


def test_calls_that_are_built_each_time_hold_nothing_more_each_time():
    x, start = x_of(), geon.broadcast(0.0, [C])
    for _ in range(30):
        geon.scan(lambda c, v: (c + v, c), start, x, over=N)
    assert max(len(call.held) for call in symbolic_calls.interned.values()) < 20


def test_a_chain_longer_than_what_is_remembered_is_computed_in_parts(monkeypatch):
    monkeypatch.setattr("geon.eager.arrays.MAX_DEPTH", 20)
    monkeypatch.setattr("geon.eager.evaluation.MAX_DEPTH", 20)
    start = x = x_of()
    for _ in range(70):
        x = x * 0.9
    np.testing.assert_allclose(x, data(2, 3) * 0.9**70, rtol=1e-4)
    with pytest.raises(geon.DerivativeError, match="more calls behind it than are remembered"):
        eager.grad(x.sum(), start)


def test_no_warning_says_that_an_assignment_is_unused():
    w = eager.variable([C], initial_value=0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        geon.assign(w.leaf, x_of().sum(N))
        gc.collect()
    np.testing.assert_allclose(w, data(2, 3).sum(0), rtol=1e-6)
