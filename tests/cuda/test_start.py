"""Calls that are begun and waited for later: the device is behind, and Python goes on."""

import gc
import threading

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.launches import memory
from geon.transformers.pycuda.runtime import bound_program, calls, host, pinned_buffers
from geon.transformers.runtime.calls import MAX_BINDINGS

from .devices import LateDevice, transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
N, C = geon.Axis("N"), geon.Axis("C", 3)
x = geon.placeholder([N, C], name="x")


@pytest.fixture
def late():
    with transformer_on(LateDevice()) as made:
        yield made


def rows(n, value):
    return np.full((n, 3), value, np.float32)


def test_nothing_is_waited_for_before_the_result(late):
    f = late.computation(geon.sum(x * 2, reduction_axes=C), x)
    f(rows(4, 1))
    given = rows(4, 5)
    started = f.start(given)
    assert not started.done()
    given[...] = 0  # it was read
    np.testing.assert_array_equal(started.result(), np.full(4, 30))
    assert started.done()
    assert started.result() is started.result()


def test_calls_take_effect_in_order(late):
    w = geon.Variable([C], initial_value=0, name="w")
    step = late.computation([w + 0, geon.assign(w, w + geon.sum(x, reduction_axes=N))], x)
    step(rows(1, 0))
    started = [step.start(rows(2, k)) for k in range(7)]
    np.testing.assert_array_equal(late.get(w), np.full(3, 2 * sum(range(7))))
    for k, each in reversed(list(enumerate(started))):
        value, nothing = each.result()
        np.testing.assert_array_equal(value, np.full(3, k * (k - 1)))
        assert nothing is None


def test_so_many_are_on_their_way_and_no_more(late):
    f = late.computation(x + 1, x)
    f(rows(2, 0))
    started = []
    for k in range(3 * calls.MAX_CALLS_IN_FLIGHT):
        started.append(f.start(rows(2, k)))
        assert sum(not each.done() for each in started) <= calls.MAX_CALLS_IN_FLIGHT
    for k, each in enumerate(started):
        np.testing.assert_array_equal(each.result(), rows(2, k + 1))


def test_a_call_has_the_arrays_of_out_filled(late):
    f = late.computation(x + 1, x)
    f(rows(2, 0))
    out = rows(2, -1)
    assert f.start(rows(2, 3), out=out).result() is out
    np.testing.assert_array_equal(out, rows(2, 4))


def test_wrong_values_raise_with_the_result(late):
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    table = geon.Variable([geon.Axis("V", 9)], initial_value=1, name="table")
    step = geon.assign(table, table * 2)
    f = late.computation([geon.gather(table, at, table.axes[0]), step], at)
    f([0])
    right, wrong, after = f.start([1]), f.start([11]), f.start([2])
    for _ in range(2):
        with pytest.raises(
            geon.IndexRangeError, match="test_start.*: 11 where the axis has length 9"
        ):
            wrong.result()
    np.testing.assert_array_equal(right.result()[0], [2])
    np.testing.assert_array_equal(after.result()[0], [4])
    np.testing.assert_array_equal(late.get(table), np.full(9, 8))


def test_an_error_that_nobody_asks_for_is_a_warning(late):
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    table = geon.Variable([geon.Axis("V", 9)], initial_value=1)
    f = late.computation(geon.gather(table, at, "V"), at)
    f([0])
    f.start([11])
    with pytest.warns(RuntimeWarning, match="nobody asked for its result: .*11 where"):
        for _ in range(calls.MAX_CALLS_IN_FLIGHT + 1):
            f.start([1])
        gc.collect()


def test_what_was_started_ends_with_its_transformer():
    device = LateDevice()
    with transformer_on(device) as transformer:
        f = transformer.computation(x + 1, x)
        f(rows(2, 0))
        started = f.start(rows(2, 6))
    del f, transformer
    gc.collect()
    np.testing.assert_array_equal(started.result(), rows(2, 7))
    del started
    gc.collect()
    assert not device.blocks and not device.pinned


def test_waiting_may_be_interrupted(late, monkeypatch):
    """What is on its way keeps its memory until it is done."""
    f = late.computation([x + 1, geon.sum(x)], x)
    f(rows(5, 0))
    wait = late.device.wait

    def interrupted(mark):
        monkeypatch.setattr(late.device, "wait", wait)
        raise KeyboardInterrupt

    for _ in range(3):
        monkeypatch.setattr(late.device, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            f(rows(5, 1))
        np.testing.assert_array_equal(f(rows(5, 2))[0], rows(5, 3))
    assert len(f._calls[()].free) <= 2


# Graphs -------------------------------------------------------------------------------------------


def test_the_second_call_is_captured_and_then_begun_as_one(late):
    device = late.device
    f = late.computation([geon.softmax(x, normalization_axes=C), geon.sum(x)], x)
    f(rows(4, 0))
    assert (device.captured, device.replayed) == (0, 0)
    f(rows(4, 1))
    kernels = device.launched
    for k in range(2, 5):
        _, total = f(rows(4, k))
        assert total == 12 * k
        assert (device.captured, device.replayed, device.launched) == (1, k, kernels)


def test_each_length_has_a_graph_of_its_own(late):
    f = late.computation(geon.sum(x, reduction_axes=C), x)
    for n in (1, 5, 1, 5, 0, 1, 5, 0, 5):
        np.testing.assert_array_equal(f(rows(n, n)), np.full(n, 3 * n))
    assert late.device.captured == 3


@pytest.mark.parametrize("checked", [False, True])
def test_small_values_share_a_copy(late, monkeypatch, checked):
    """One to the device and one back, with the report, whatever else has copies of its own."""
    monkeypatch.setattr(pinned_buffers, "MAX_SHARED_COPY_BYTES", 5 * 3 * 4)
    parts = [geon.placeholder([N, C], dtype) for dtype in ("float32", "int8", "float64")]
    large = geon.placeholder([N, geon.Axis("L", 6)])
    table = geon.Variable([geon.Axis("V", 9)], initial_value=1)
    at = geon.placeholder([], "int64", name="at")
    results = [*[part + 1 for part in parts], geon.sum(large), large * 2]
    results += [geon.gather(table, at, table.axes[0])] if checked else []
    f = late.computation(results, *parts, large, at)
    late.initialize()
    copies = []

    def counted(name):
        do = getattr(late.device, name)
        return lambda *given: (copies.append(name), do(*given))

    for name in ("copy_in", "copy_out"):
        monkeypatch.setattr(late.device, name, counted(name))
    for n in (5, 5, 5, 4, 4, 4, 0, 0, 5, 2):
        copies.clear()
        fed = [np.full((n, 3), k, part.dtype) for k, part in enumerate(parts)]
        found = f(*fed, np.full((n, 6), 3), 8)
        for k, value in enumerate(found[:3]):
            np.testing.assert_array_equal(value, fed[k] + 1)
        assert found[3] == 18 * n
        np.testing.assert_array_equal(found[4], np.full((n, 6), 6))
        if checked:
            assert found[5] == 1
        if n == 5 and copies:
            assert sorted(copies) == ["copy_in"] * 3 + ["copy_out"] * 3
    if checked:
        with pytest.raises(geon.IndexRangeError, match="9 where the axis has length 9"):
            f(*fed, np.full((2, 6), 3), 9)


def test_graphs_follow_addresses_and_are_bounded(late):
    f = late.computation(x * 3, x, on_device=True)
    held = [f(rows(4, k)) for k in range(3 * bound_program.MAX_GRAPHS)]  # each has other memory
    for k, value in enumerate(held):
        np.testing.assert_array_equal(np.asarray(value), rows(4, 3 * k))
    (space,) = f._calls[()].free
    (made,) = space.bound.values()
    assert len(made.graphs) == bound_program.MAX_GRAPHS
    chain = held[0]
    for _ in range(5):
        chain = f(chain)  # fed where it lies
    np.testing.assert_array_equal(np.asarray(chain), rows(4, 0))


def test_variables_that_are_set_keep_their_graph(late):
    w = geon.Variable([C], initial_value=1, name="w")
    f = late.computation(x * w, x)
    for k in range(4):
        late.set(w, np.full(3, k))
        np.testing.assert_array_equal(f(rows(2, 5)), rows(2, 5 * k))
    assert late.device.captured == 1


def test_lengths_share_places_and_the_oldest_binding_goes(late):
    """What calls of many lengths hold is what the longest takes."""
    device = late.device
    f = late.computation([geon.softmax(x, normalization_axes=N), x * 2], x)
    sizes = [*range(1, MAX_BINDINGS + 20), 7, *range(30, 50)]
    for n in sizes:
        np.testing.assert_array_equal(f(rows(n, n))[1], rows(n, 2 * n))
    longest = max(sizes)
    held = sum(raw.nbytes - memory.ALIGNMENT_BYTES for raw in device.blocks.values())
    assert held <= f.peak_bytes({N: longest}) + rows(longest, 0).nbytes
    (space,) = f._calls[()].free
    assert len(space.bound) <= MAX_BINDINGS
    captured = device.captured
    for n in (49, 48, 47):  # used twice by now
        f(rows(n, n))
        f(rows(n, n))
    assert device.captured == captured + 3
    for n in (49, 48, 47):
        f(rows(n, n))
    assert device.captured == captured + 3


def test_places_that_grow_are_captured_anew(late):
    f = late.computation([geon.sum(x, reduction_axes=N), x + 1], x)
    for n in (4, 4, 4, 9, 9, 4, 4, 9, 30, 4, 9, 30, 30, 4, 9):
        total, more = f(rows(n, n))
        np.testing.assert_array_equal(total, np.full(3, n * n))
        np.testing.assert_array_equal(more, rows(n, n + 1))


def test_threads_start_and_wait_side_by_side(late):
    """Each sees its own values, whichever of them waits for whose call."""
    f = late.computation([geon.sum(x, reduction_axes=N), x * 2], x)
    w = geon.Variable([C], initial_value=0, name="w")
    g = late.computation(geon.assign(w, w + geon.sum(x, reduction_axes=N)), x)
    g(rows(1, 0))
    wrong = []

    def work(n):
        for k in range(15):
            started = [f.start(rows(n, k + j)) for j in range(3)]
            effect = g.start(rows(1, 1))
            for j, each in reversed(list(enumerate(started))):
                total, double = each.result()
                if not (np.all(total == n * (k + j)) and np.all(double == 2 * (k + j))):
                    wrong.append((n, k, j))
            if effect.result() is not None:
                wrong.append((n, k))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    np.testing.assert_array_equal(late.get(w), np.full(3, 75))
