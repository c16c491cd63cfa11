"""Variables between calls: memory, first values, open lengths, get and set."""

import threading

import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, AxisError, ClosedError, FeedError
from geon.transformers.runtime.state import Slot, State
from tests.places import here

N4, C3 = geon.Axis("N", 4), geon.Axis("C", 3)


def axis(name, request):
    """An open axis whose length no other test sets."""
    return geon.Axis(name, f"{name} of {request.node.name}")


# First values -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, expected",
    [
        (2, [2, 2, 2]),
        ([1, 2, 3], [1, 2, 3]),
        (np.array([1.5, 2, 3]), [1.5, 2, 3]),
        (lambda axes: np.arange(axes["C"].length), [0, 1, 2]),
        (lambda axes: 7, [7, 7, 7]),
        (lambda axes: np.float64(0.5), [0.5, 0.5, 0.5]),
    ],
)
def test_initial_values(transformer, value, expected):
    v = geon.Variable(axes=C3, initial_value=value, dtype="float32")
    np.testing.assert_array_equal(transformer.get(v), expected)
    assert transformer.get(v).dtype == np.float32


def test_an_op_as_initial_value_is_drawn_once(transformer, make):
    w = geon.Variable(axes=C3, initial_value=geon.Random(3).normal([C3]))
    f = transformer.computation(w * 1)
    first = f()
    np.testing.assert_array_equal(f(), first)
    np.testing.assert_array_equal(transformer.get(w), first)
    assert len(set(first.tolist())) == 3
    with make() as other:
        np.testing.assert_array_equal(other.get(w), first)


def test_initial_values_that_read_others_come_after_them(transformer):
    a = geon.Variable(axes=C3, initial_value=geon.Random(1).uniform([C3]), name="a")
    b = geon.Variable(initial_value=geon.sum(a), name="b")
    c = geon.Variable(axes=C3, initial_value=a / b, name="c")
    np.testing.assert_allclose(transformer.get(c).sum(), 1, rtol=1e-6)
    np.testing.assert_array_equal(transformer.get(c), transformer.get(a) / transformer.get(b))


def test_first_values_do_not_depend_on_which_computation_is_called_first(make):
    values = []
    for order in (0, 1):
        stream = geon.Random(5)
        a, b = (geon.Variable(axes=C3, initial_value=stream.normal([C3])) for _ in range(2))
        with make() as t:
            calls = [t.computation(a + 0), t.computation(b + 0)]
            calls[order]()
            values.append((t.get(a), t.get(b)))
    np.testing.assert_array_equal(values[0], values[1])


def test_initializers_run_when_a_variable_is_initialized(transformer):
    log = geon.Variable(initial_value=0, name="log")
    v = geon.Variable(initial_value=3, initializers=[geon.assign(log, log + 5)])
    assert transformer.get(v) == 3
    assert transformer.get(log) == 5
    assert transformer.get(v) == 3 and transformer.get(log) == 5
    assert len(v.initializers) == 2


def test_initialize_sets_what_is_not_set_and_with_force_all(transformer):
    a = geon.Variable(initial_value=1)
    b = geon.Variable(initial_value=2)
    unset = geon.Variable()
    transformer.computation(geon.assign(unset, a + b))
    transformer.set(a, 10)
    transformer.initialize()
    assert (transformer.get(a), transformer.get(b)) == (10, 2)
    transformer.set(b, 20)
    transformer.initialize()
    assert (transformer.get(a), transformer.get(b)) == (10, 20)
    transformer.initialize(force=True)
    assert (transformer.get(a), transformer.get(b)) == (1, 2)


def test_initialize_with_force_draws_the_same_again(transformer):
    w = geon.Variable(axes=C3, initial_value=geon.Random(3).normal([C3]))
    first = transformer.get(w)
    transformer.initialize(force=True)
    np.testing.assert_array_equal(transformer.get(w), first)


def test_a_variable_that_was_never_set_is_named(transformer):
    v = geon.Variable(name="velocity")
    place = here(-1)
    f = transformer.computation(v + 1)
    for attempt in (f, lambda: transformer.get(v), lambda: transformer.save("nowhere")):
        with pytest.raises(ArgumentError, match="velocity.*no value.*initial_value=") as caught:
            attempt()
        assert place in str(caught.value)
    transformer.set(v, 1)
    assert f() == 2


def test_a_first_value_that_reads_a_variable_without_one_is_an_error(transformer):
    a = geon.Variable(name="a")
    b = geon.Variable(initial_value=a * 2)
    with pytest.raises(ArgumentError, match=r"variable a\(\) .*no value"):
        transformer.get(b)
    transformer.set(a, 4)
    assert transformer.get(b) == 8


def test_a_variable_that_is_only_written_needs_no_first_value(transformer):
    v = geon.Variable(axes=C3)
    x = geon.placeholder(axes=C3)
    write = transformer.computation(geon.assign(v, x * 2), x)
    write([1, 2, 3])
    np.testing.assert_array_equal(transformer.get(v), [2, 4, 6])


def test_a_slice_assignment_needs_the_rest(transformer):
    v = geon.Variable(axes=C3, name="parts")
    f = transformer.computation(geon.assign(v[0], 1))
    with pytest.raises(ArgumentError, match="parts"):
        f()


def test_callables_that_need_each_other_are_an_error(transformer):
    held = {}
    a = geon.Variable(initial_value=lambda axes: transformer.get(held["b"]), name="a")
    b = held["b"] = geon.Variable(initial_value=lambda axes: transformer.get(a), name="b")
    with pytest.raises(
        ArgumentError, match=r"initial values of .* b\(\) .* a\(\) .* depend on each"
    ):
        transformer.get(b)


def test_callables_may_ask_for_other_variables(transformer):
    a = geon.Variable(initial_value=5, name="a")
    b = geon.Variable(initial_value=lambda axes: transformer.get(a) + 1, name="b")
    assert transformer.get(b) == 6


def test_slots_whose_first_values_read_each_other_are_an_error():
    state = State()
    a, b = (Slot(f"variable {name}", name, "float32", (), ()) for name in "ab")
    a.start, a.reads, b.start, b.reads = (lambda: None), (b,), (lambda: None), (a,)
    state.slots += [a, b]
    with pytest.raises(ArgumentError, match="variable a, variable b depend on each other"):
        state.ensure([a], [a], {})


@pytest.mark.parametrize(
    "value, message",
    [
        (lambda axes: np.zeros(2), r"initial value of w\(C:3\).*shape \(2,\)"),
        (lambda axes: geon.constant(1.0), "gave a tensor"),
        (lambda axes: "text", "dtype <U4"),
    ],
)
def test_callables_that_give_something_else(transformer, value, message):
    w = geon.Variable(axes=C3, initial_value=value, name="w")
    with pytest.raises(FeedError, match=message):
        transformer.get(w)


def test_a_first_value_that_fails_leaves_the_variable_unset(transformer):
    answers = iter([ValueError("not yet"), 4])

    def first(axes):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    v = geon.Variable(initial_value=first)
    with pytest.raises(ValueError, match="not yet"):
        transformer.get(v)
    assert transformer.get(v) == 4


# Open lengths -----------------------------------------------------------------------------------


def test_open_lengths_from_the_initial_array(transformer, request):
    C = axis("C", request)
    v = geon.Variable(axes=C, initial_value=np.array([1, 2], np.float32))
    transformer.allocate()
    assert transformer.get(v).shape == (2,)


def test_open_lengths_from_data(transformer, request):
    C, N = axis("C", request), axis("N", request)
    w = geon.Variable(axes=C, initial_value=1)
    x = geon.placeholder(axes=[C, N])
    f = transformer.computation(geon.dot(w, x), x)
    np.testing.assert_array_equal(f(np.ones((3, 2))), [3, 3])
    np.testing.assert_array_equal(f(np.ones((3, 5))), [3] * 5)
    with pytest.raises(FeedError, match="C of .* is 4 in placeholder .* and 3 in variable"):
        f(np.ones((4, 2)))


def test_open_lengths_from_lengths(transformer, request, make):
    C, D = axis("C", request), axis("D", request)
    v, w = (geon.Variable(axes=a, initial_value=0) for a in (C, D))
    f = transformer.computation([v + 1, geon.assign(w, w + 1)], lengths={C: 3, D: 2})
    np.testing.assert_array_equal(f()[0], [1, 1, 1])
    assert transformer.get(w).shape == (2,)
    other = make()
    other.computation([v + 1, w])
    with pytest.raises(AxisError, match="which nothing gives yet"):
        other.allocate({C: 3})
    other.allocate({C: 3, D: 6})
    assert (other.get(v).shape, other.get(w).shape) == ((3,), (6,))
    third = make()
    third.computation(v + w[0])
    third.initialize(lengths={C: 5, D: 1})
    assert third.get(v).shape == (5,)


def test_open_lengths_from_defaults(transformer, request):
    C = axis("C", request)
    v = geon.Variable(axes=C, initial_value=0)
    with pytest.raises(AxisError, match=r"variable .*test_state.py.*open length C of"):
        transformer.get(v)
    C.length = 6
    assert transformer.get(v).shape == (6,)
    C.length = 7
    assert transformer.get(v).shape == (6,)


def test_derived_lengths(transformer, request):
    H = axis("H", request)
    x = geon.placeholder(axes=H)
    doubled = geon.concat([x, x], H)
    v = geon.Variable(axes=doubled.axes, initial_value=1)
    f = transformer.computation(v * doubled, x)
    np.testing.assert_array_equal(f([1, 2]), [1, 2, 1, 2])
    with pytest.raises(FeedError, match="H of .* is 3 in placeholder .* and 2 in variable"):
        f([1, 2, 3])


def test_the_initial_value_and_data_contradict(transformer, request):
    C = axis("C", request)
    w = geon.Variable(axes=C, initial_value=np.zeros(3, np.float32), name="w")
    x = geon.placeholder(axes=C)
    f = transformer.computation(w + x, x)
    with pytest.raises(AxisError, match="3 .*and 4|3 = 3.*= 4|4.*3"):
        f(np.ones(4))
    np.testing.assert_array_equal(f(np.ones(3)), [1, 1, 1])


def test_the_initial_value_and_a_default_contradict(transformer, request):
    C = axis("C", request)
    w = geon.Variable(axes=C, initial_value=np.zeros(3, np.float32), name="w")
    C.length = 4
    with pytest.raises(AxisError, match=r"w\(.*one length for C.* 3 in .* 4 in the default"):
        transformer.get(w)


def test_each_variable_has_its_own_open_lengths(transformer, request):
    C = axis("C", request)
    v, w, u = (geon.Variable(axes=C, initial_value=0, name=name) for name in "vwu")
    alone, both = transformer.computation(v + 1), transformer.computation(v + w)
    transformer.set(v, [1, 2])
    transformer.set(w, [1, 2, 3])
    np.testing.assert_array_equal(alone(), [2, 3])
    line = r"test_state\.py:\d+\)"
    with pytest.raises(FeedError, match=rf"is 3 in variable w.*{line} and 2 in variable v.*{line}"):
        both()
    with pytest.raises(AxisError, match=rf", which is 2 in variable v.*{line} and 3 in .* w"):
        transformer.get(u)
    transformer.initialize(lengths={C: 5})
    assert [transformer.get(each).shape for each in (u, v, w)] == [(5,), (2,), (3,)]
    old = transformer.exchange(v, [4, 5, 6])
    np.testing.assert_array_equal(old, [1, 2])
    for _ in range(3):
        np.testing.assert_array_equal(both(), [5, 7, 9])
    for size in (2, 7, 2, 7):
        transformer.set(v, np.full(size, size))
        for _ in range(2):
            np.testing.assert_array_equal(alone(), np.full(size, size + 1))


def test_a_variable_that_is_updated_gets_other_lengths(transformer, request):
    C = axis("C", request)
    x = geon.placeholder(C, name="x")
    w = geon.Variable(axes=C, initial_value=0, name="w")
    fixed = geon.Variable([C], initial_value=np.ones(2, np.float32), name="fixed")
    add = transformer.computation([geon.assign(w, w + x), w * 1], x)
    transformer.computation(fixed * 1)
    compiled = None
    for size in (2, 3, 1000, 2):
        transformer.set(w, np.zeros(size))
        for turn in range(3):
            np.testing.assert_array_equal(add(np.ones(size))[1], np.full(size, turn))
        compiled = compiled or add.stages().compiled
        assert add.stages().compiled is compiled
    with pytest.raises(FeedError, match="set the variable to an array of the other length"):
        add(np.ones(5))
    with pytest.raises(FeedError, match="it is 2 in the initial value and 3"):
        transformer.set(fixed, [1, 2, 3])
    np.testing.assert_array_equal(transformer.get(w), [3, 3])


def test_data_of_one_call_fix_no_length_of_other_variables(transformer, request):
    C = axis("C", request)
    x = geon.placeholder(C)
    v, w = (geon.Variable(axes=C, initial_value=0, name=name) for name in "vw")
    f, g = (transformer.computation(each + x, x) for each in (v, w))
    for count in range(2):
        assert f(np.ones(2)).shape == (2,) and g(np.ones(3)).shape == (3,), count


def test_an_unrelated_variable_is_not_fixed_by_data(transformer, request):
    C = axis("C", request)
    w = geon.Variable(axes=C, initial_value=0)
    x = geon.placeholder(axes=C)
    transformer.computation(w + 1)
    f = transformer.computation(x + 1, x)
    f([1, 2, 3])
    transformer.set(w, [1, 2])
    assert transformer.get(w).shape == (2,)


def test_a_call_that_fails_fixes_no_length(transformer, request):
    C = axis("C", request)
    w = geon.Variable(axes=C, initial_value=0)
    x = geon.placeholder(axes=C)
    f = transformer.computation(w + x[1:3].axes[0].length + geon.sum(x[1:3]), x)
    with pytest.raises(AxisError):
        f([1])
    np.testing.assert_array_equal(f([1, 2, 3, 4]), [7] * 4)


# get and set ------------------------------------------------------------------------------------


def test_get_is_a_copy_and_set_copies(transformer):
    v = geon.Variable(axes=C3, initial_value=0)
    given = np.array([1, 2, 3], np.float32)
    transformer.set(v, given)
    given[:] = 9
    got = transformer.get(v)
    got[:] = 8
    np.testing.assert_array_equal(transformer.get(v), [1, 2, 3])


@pytest.mark.parametrize(
    "value, message",
    [
        ([1, 2], r"shape \(2,\); it needs \(3,\)"),
        (1, r"shape \(\); it needs \(3,\)"),
        (np.zeros((3, 1)), r"shape \(3, 1\); it needs \(3,\)"),
        (["a", "b", "c"], "dtype <U1"),
        ([1j, 0, 0], "dtype complex128"),
        ([1e300, 0, 0], "too large for float32"),
    ],
)
@pytest.mark.parametrize("allocated", [False, True])
def test_set_refuses_what_does_not_fit(transformer, value, message, allocated):
    v = geon.Variable(axes=C3, initial_value=5, name="v")
    place = here(-1)
    if allocated:
        transformer.get(v)
    with pytest.raises(FeedError, match=message) as caught:
        transformer.set(v, value)
    assert "variable v(C:3)" in str(caught.value) and place in str(caught.value)
    np.testing.assert_array_equal(transformer.get(v), [5, 5, 5])


def test_exchange_sets_and_gives_what_was_there(transformer):
    v = geon.Variable(axes=C3, initial_value=5, name="v")
    given = np.array([1, 2, 3], np.float32)
    old = transformer.exchange(v, given)  # a first value is made, as by get
    np.testing.assert_array_equal(old, [5, 5, 5])
    given[:] = old[:] = 9
    np.testing.assert_array_equal(transformer.exchange("v", [4, 4, 4]), [1, 2, 3])
    with pytest.raises(FeedError, match=r"variable v.*shape \(2,\); it needs \(3,\)"):
        transformer.exchange(v, [1, 2])
    with pytest.raises(ArgumentError, match="no variable"):
        transformer.exchange(v + 1, [1, 2, 3])
    np.testing.assert_array_equal(transformer.get(v), [4, 4, 4])


def test_nothing_that_threads_assign_is_lost_by_an_exchange(transformer):
    v = geon.Variable(dtype="int64", initial_value=0)
    more = transformer.computation(geon.assign(v, v + 1))
    more()
    taken, adding = 1 * int(transformer.exchange(v, 0)), 4 * 200

    def add():
        for _ in range(adding // 4):
            more()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        taken += int(transformer.exchange(v, 0))
    for thread in threads:
        thread.join()
    assert taken + int(transformer.get(v)) == adding + 1


def test_set_refuses_floats_for_integers(transformer):
    v = geon.Variable(dtype="int32", initial_value=1)
    with pytest.raises(FeedError, match="float64 values; it needs int32"):
        transformer.set(v, 1.5)
    with pytest.raises(FeedError, match="int32 holds"):
        transformer.set(v, 2**40)
    transformer.set(v, 7)
    assert transformer.get(v) == 7


def test_a_set_that_fails_fixes_no_length(transformer, request):
    C = axis("C", request)
    v = geon.Variable(axes=C, initial_value=0)
    with pytest.raises(FeedError):
        transformer.set(v, ["a", "b"])
    transformer.set(v, [1, 2, 3])
    for wrong in ([["a"]], [[1, 2]], ["a", "b"]):
        with pytest.raises(FeedError):
            transformer.set(v, wrong)
    np.testing.assert_array_equal(transformer.get(v), [1, 2, 3])


@pytest.mark.parametrize("other", [geon.placeholder(), geon.constant(1), "w", None])
def test_only_variables_have_values(transformer, other):
    for attempt in (lambda: transformer.get(other), lambda: transformer.set(other, 1)):
        with pytest.raises(ArgumentError, match="no variable"):
            attempt()


def test_two_transformers_hold_different_values(make):
    v = geon.Variable(initial_value=0)
    with make() as one, make() as two:
        one.computation(geon.assign(v, v + 1))()
        assert (one.get(v), two.get(v)) == (1, 0)


# Lifetime ---------------------------------------------------------------------------------------


def test_a_closed_transformer_refuses_everything(tmp_path, make):
    v = geon.Variable(initial_value=0)
    x = geon.placeholder()
    with make() as t:
        pure, reading = t.computation(x + 1, x), t.computation(v + 1)
        assert (pure(1), reading()) == (2, 1)
        kept = t.get(v)
    attempts = [
        lambda: pure(1),
        reading,
        lambda: t.get(v),
        lambda: t.set(v, 1),
        lambda: t.computation(x, x),
        lambda: t.save(tmp_path / "file"),
        lambda: t.restore(tmp_path / "file"),
        t.allocate,
        t.initialize,
    ]
    for attempt in attempts:
        with pytest.raises(ClosedError, match="was closed; make a new one"):
            attempt()
    t.close()
    assert kept == 0
    assert not list(tmp_path.iterdir())
