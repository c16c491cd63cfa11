"""Calls of native computations: the short way in, what takes it, and what it must not change."""

import gc
import os
import subprocess
import sys
import textwrap
import threading
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import geon
from geon.errors import ArgumentError, ClosedError, FeedError, IndexRangeError, NonFiniteError
from geon.transformers.native.runtime import bound_program, fast_call
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
SHORT = pytest.mark.skipif(fast_call.extension() is None, reason="the extension was not built")

A, K = geon.Axis("A", 3), geon.Axis("K", 40_000)
N = geon.Axis("N", "N of calls")
TIMES = 50_000


@pytest.fixture(params=[pytest.param("short", marks=SHORT), "long"])
def transformer(request, monkeypatch):
    """A transformer whose calls go the short way, and one that has none."""
    if request.param == "long":
        monkeypatch.setattr(bound_program, "extension", lambda: None)
    with geon.make_transformer("native") as made:
        yield made


@pytest.fixture
def short():
    """A transformer whose calls go the short way, for tests of what only that does."""
    if fast_call.extension() is None:
        pytest.skip("the extension was not built")
    with geon.make_transformer("native") as made:
        yield made


@pytest.fixture
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def entry_of(f):
    return f._calls[()].entry


def taken(f):
    """How many calls of a computation went the short way; 0 where there is none."""
    return entry_of(f).taken if bound_program.extension() is not None else 0


def check_taken(f, count):
    """That so many calls went the short way: all those that can, or none where there is none."""
    if bound_program.extension() is None:
        assert entry_of(f) is None
    else:
        assert entry_of(f).taken == count


def plus_one(transformer, axes=(), dtype="float32"):
    x = geon.placeholder(axes, dtype=dtype, name="x")
    return transformer.computation(x + geon.cast(geon.constant(1), dtype), x)


def warm(f, *args):
    """Call often enough that the next call with such arguments goes the short way."""
    f(*args), f(*args)
    return f


# What goes the short way ------------------------------------------------------------------------


def test_calls_with_arrays_go_the_short_way(transformer):
    x = np.float32(3).reshape(())
    f = warm(plus_one(transformer), x)
    before = taken(f)
    for k in range(100):
        assert f(np.array(k, np.float32)) == k + 1
    check_taken(f, before + 100)
    assert f(x=x) == 4
    check_taken(f, before + 101)
    result = f(x)
    assert result.shape == () and result.dtype == np.float32 and result.flags.owndata
    assert type(result) is np.ndarray and f(x) is not result


def test_the_first_call_asks_for_no_entry(transformer):
    f = plus_one(transformer)
    f(np.array(1, np.float32))
    assert entry_of(f) is None


def test_several_lengths(transformer):
    f = plus_one(transformer, [N])
    lengths = [3, 0, 17, 1, 3, 17, 0, 5000]
    for n in lengths:
        warm(f, np.zeros(n, np.float32))
    before = taken(f)
    for n in lengths:
        data = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(f(data), data + 1)
    check_taken(f, before + len(lengths))
    for n in range(30):  # more than are remembered
        data = np.arange(n, dtype=np.float32)
        np.testing.assert_array_equal(f(data), data + 1)
    (space,) = f._calls[()].free
    assert space.entry is entry_of(f)


def test_several_results_and_kept_ones(transformer):
    x = geon.placeholder([A])
    y, z = x + 1, geon.sum(x)
    f = transformer.computation([y, z], x, keep=[x * 2])
    data = np.arange(3, dtype=np.float32)
    warm(f, data)
    before = taken(f)
    first, second = f(data)
    check_taken(f, before + 1)
    np.testing.assert_array_equal(first, data + 1)
    assert second == 3
    np.testing.assert_array_equal(f.value(f.keep[0]), data * 2)
    f.override(f.keep[0], np.zeros(3, np.float32))
    np.testing.assert_array_equal(f(data)[0], data + 1)
    check_taken(f, before + 1)  # another program


def test_values_that_are_converted_go_the_short_way_afterwards(transformer):
    f = warm(plus_one(transformer, [A]), np.zeros(3, np.float32))
    before = taken(f)
    for value in ([1, 2, 3], np.array([1.0, 2, 3]), np.arange(1, 7, dtype=np.float32)[::2] * 0 + 1):
        assert f(value).dtype == np.float32
    check_taken(f, before + 3)


def test_computations_with_variables(transformer):
    v = geon.Variable([A], initial_value=0)
    x = geon.placeholder([A])
    f = transformer.computation([geon.sum(v), geon.assign(v, v + x)], x)
    one = np.ones(3, np.float32)
    totals = [float(f(one)[0]) for _ in range(10)]
    assert totals == [3.0 * k for k in range(10)]
    check_taken(f, 8)
    transformer.set(v, [5, 5, 5])
    assert f(one)[0] == 15
    np.testing.assert_array_equal(transformer.get(v), [6, 6, 6])
    check_taken(f, 9)


def test_long_work_on_variables_takes_the_lock(transformer):
    v, x = geon.Variable([K], initial_value=0), geon.placeholder([K])
    f = transformer.computation(geon.assign(v, v + geon.tanh(x)), x)
    data = np.zeros(40_000, np.float32)
    warm(f, data)
    entered = []
    access = transformer.state.access
    original = access.enter_write
    access.enter_write = lambda: (entered.append(None), original())
    before = taken(f)
    f(data)
    assert entered
    check_taken(f, before + 1)


@pytest.mark.parametrize("side", ["read", "write"])
def test_a_short_call_waits_for_those_holding_the_lock(transformer, side):
    v = geon.Variable(initial_value=0, dtype="int64")
    f = warm(transformer.computation(geon.assign(v, v + 1)))
    before = taken(f)
    f()
    check_taken(f, before + 1)
    access = transformer.state.access
    enter, leave = getattr(access, f"enter_{side}"), getattr(access, f"leave_{side}")
    enter()
    done = threading.Event()
    thread = threading.Thread(target=lambda: (f(), done.set()))
    thread.start()
    try:
        assert not done.wait(0.2)
    finally:
        leave()
    thread.join(60)
    assert done.is_set() and transformer.get(v) == 4


def test_no_update_is_lost(transformer, switch_often):
    v = geon.Variable(initial_value=0, dtype="int64")
    x = geon.placeholder(dtype="int64")
    add = transformer.computation([v, geon.assign(v, v + x)], x)
    look = transformer.computation(v + 0)
    with ThreadPoolExecutor(6) as pool:
        seen = list(pool.map(lambda k: (int(add(1)[0]), int(look()))[0], range(3000)))
    assert sorted(seen) == list(range(3000)) and transformer.get(v) == 3000
    assert taken(add) > 1000 or bound_program.extension() is None


def test_variables_that_lie_elsewhere_are_found(transformer):
    """A call that fails takes back what it allocated: tables that were made before are stale."""
    v, x = geon.Variable([N], initial_value=0), geon.placeholder([N])
    add = transformer.computation([v, geon.assign(v, v + x)], x)
    data = np.ones(3, np.float32)
    for _ in range(4):
        add(data)
    other = geon.Variable([geon.Axis("M", "M of calls")], initial_value=0)
    y = geon.placeholder(other.axes)
    failing = transformer.computation(geon.log(other + y), y, check="nan")
    with pytest.raises(NonFiniteError):
        failing(-data)
    before = taken(add)
    np.testing.assert_array_equal(add(data)[0], [4, 4, 4])
    check_taken(add, before)  # another epoch
    for _ in range(3):
        add(data)
    assert taken(add) > before or bound_program.extension() is None
    np.testing.assert_array_equal(transformer.get(v), [8, 8, 8])


def test_computations_without_arguments_or_results(transformer):
    v = geon.Variable(initial_value=0, dtype="int64")
    f = transformer.computation(geon.assign(v, v + 1))
    assert [f() for _ in range(5)] == [None] * 5
    assert transformer.get(v) == 5
    check_taken(f, 3)


def test_what_prints_goes_the_long_way(transformer, capsys):
    x = geon.placeholder()
    f = transformer.computation(geon.print(x + 1, "y"), x)
    for _ in range(4):
        f(1.0)
    assert capsys.readouterr().out.count("y = 2.0") == 4
    assert entry_of(f) is None


# What does not --------------------------------------------------------------------------------


class Sub(np.ndarray):
    pass


ODD = {
    "strides": np.arange(6, dtype=np.float32)[::2],
    "swapped": np.array([0, 2, 4], np.dtype(np.float32).newbyteorder()),
    "unaligned": np.frombuffer(b"x" + np.array([0, 2, 4], np.float32).tobytes(), np.float32, 3, 1),
    "wider": np.array([0.0, 2, 4]),
    "integers": np.array([0, 2, 4]),
    "subclass": np.array([0, 2, 4], np.float32).view(Sub),
    "list": [0, 2, 4],
    "tuple": (0.0, 2.0, 4.0),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_arrays(transformer, name):
    f = warm(plus_one(transformer, [A]), np.zeros(3, np.float32))
    if name == "unaligned":
        assert not ODD[name].flags.aligned
    for _ in range(3):
        result = f(ODD[name])
        np.testing.assert_array_equal(result, [1, 3, 5])
        assert type(result) is np.ndarray


def test_read_only_and_fortran_arrays(transformer):
    x = geon.placeholder([A, N])
    f = transformer.computation(x * 2, x)
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    warm(f, data)
    data.flags.writeable = False
    before = taken(f)
    np.testing.assert_array_equal(f(data), data * 2)
    check_taken(f, before + 1)
    np.testing.assert_array_equal(f(np.asfortranarray(data)), data * 2)


@pytest.mark.parametrize(
    "wrong",
    [np.zeros(4, np.float32), np.zeros((3, 1), np.float32), np.zeros((), np.float32), ["a"], None,
     np.zeros(3, np.complex64), np.full(3, 1e300), "text", object()],
    ids=lambda value: type(value).__name__ + str(getattr(value, "dtype", "")),
)  # fmt: skip
def test_what_does_not_fit_raises_as_before(transformer, wrong):
    f = plus_one(transformer, [A])
    with pytest.raises(FeedError) as first:
        f(wrong)
    warm(f, np.zeros(3, np.float32))
    with pytest.raises(FeedError) as second:
        f(wrong)
    assert str(first.value) == str(second.value)
    np.testing.assert_array_equal(f(np.zeros(3, np.float32)), [1, 1, 1])


def test_wrong_counts_and_names_raise_as_before(transformer):
    x = np.zeros(3, np.float32)
    f = warm(plus_one(transformer, [A]), x)
    for attempt in (f, lambda: f(x, x), lambda: f(y=x), lambda: f(x, x=x)):
        with pytest.raises(ArgumentError):
            attempt()


# Python numbers -------------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 0.5, -0.0, 127, 128, -128, -129, 255, 256, 2**15, -(2**15) - 1, 2**31 - 1,
           2**31, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1, 2**63, -(2**63), 2**64, 16777217, 3.4e38,
           3.4028235677973362e38, -3.5e38, 1e300, 10**400, float("inf"), float("-inf"), True,
           float("nan"), 1e-46, np.float32(2), np.int64(7), np.float64(0.1)]  # fmt: skip
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8",
          "uint16", "uint32", "uint64", "bool"]  # fmt: skip


def outcome(f, value):
    try:
        result = f(value)
    except geon.GeonError as error:
        return type(error), str(error)
    return result.dtype, result.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_are_read_as_the_long_way_reads_them(transformer, monkeypatch, dtype):
    x = geon.placeholder(dtype=dtype, name="x")
    held = np.array(1).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    f = warm(transformer.computation(geon.where(x == x, x, x), x), held)
    if dtype not in ("float16", "bfloat16", "bool"):
        before = taken(f)
        assert f(1) == 1
        check_taken(f, before + 1)
    monkeypatch.setattr(bound_program, "extension", lambda: None)
    with geon.make_transformer("native") as other:
        g = warm(other.computation(geon.where(x == x, x, x), x), held)
        assert [outcome(f, value) for value in NUMBERS] == [outcome(g, v) for v in NUMBERS]
        assert entry_of(g) is None


# Failures ---------------------------------------------------------------------------------------


def test_a_position_outside_raises_and_later_calls_work(transformer):
    x, at = geon.placeholder([A], name="x"), geon.placeholder(dtype="int64", name="at")
    v = geon.Variable(initial_value=0)
    picked = geon.gather(x, at, A)
    data, good, bad = np.arange(3, dtype=np.float32), np.array(2), np.array(5)
    pure = warm(transformer.computation(picked, x, at), data, good)
    acting = warm(transformer.computation([picked, geon.assign(v, v + 1)], x, at), data, good)
    for f in (pure, acting):
        before = taken(f)
        with pytest.raises(IndexRangeError, match="5 where the axis has length 3"):
            f(data, bad)
        f(data, good)
        check_taken(f, before + 1)
    assert pure(data, good) == 2 and acting(data, good)[0] == 2
    assert transformer.get(v) == 4


def test_a_value_that_is_not_finite(transformer):
    x, v = geon.placeholder([A], name="x"), geon.Variable([A], initial_value=0)
    f = transformer.computation([geon.log(x), geon.assign(v, v + x)], x, check="nan")
    good = warm(f, np.ones(3, np.float32)) and np.ones(3, np.float32)
    for _ in range(3):
        with pytest.raises(NonFiniteError, match="log"):
            f(-good)
    np.testing.assert_array_equal(transformer.get(v), [2, 2, 2])
    f(good)
    np.testing.assert_array_equal(transformer.get(v), [3, 3, 3])


def test_no_memory_for_results_is_an_error_and_nothing_else(short):
    x = geon.placeholder()
    f = short.computation(geon.broadcast(x, [N]), x, lengths={N: 3})
    warm(f, np.float32(1).reshape(()))
    call = f._calls[()]
    (bound,) = next(iter(call.free)).bound.values()
    rows = list(bound.tables(((np.dtype(np.float32), (), None),)))
    huge = 2**60
    rows[2] = ((np.dtype(np.float32), (huge,), None),)
    rows[0] = 0  # never called
    call.entry.claim()
    bound.entered = fast_call.extension().Tables(*rows)
    call.entry.remember(bound, [()], 0)
    call.entry.release()
    with pytest.raises(MemoryError):
        f(np.float32(1).reshape(()))
    call.entry.claim()
    call.entry.forget()
    call.entry.release()
    np.testing.assert_array_equal(f(np.float32(1).reshape(())), [1, 1, 1])


# Memory -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_counts_of_references_stay(transformer):
    x = geon.placeholder([A])
    f = transformer.computation([x + 1, x * 2], x)
    data, out = np.zeros(3, np.float32), np.zeros(3, np.float32)
    warm(f, data)
    call = f._calls[()]
    (bound,) = next(iter(call.free)).bound.values()
    watched = [data, out, data.dtype, bound.shapes[0][0], np.empty, bound.held, None, True]
    f(data), f(data, out=[out, None])
    wrong = [0.5, 1.5, 2.5]
    f(wrong)

    def many():
        for _ in range(TIMES):
            f(data)
        for _ in range(TIMES // 20):
            f(data, out=[out, None])
            f(wrong)

    before = [sys.getrefcount(each) for each in watched]
    many()
    after = [sys.getrefcount(each) for each in watched]
    assert all(abs(a - b) < 20 for a, b in zip(after, before, strict=True)), (before, after)
    gc.collect()
    tracemalloc.start()
    sizes = []
    for _ in range(2):  # in the first, tables of the interpreter itself may get larger
        many()
        gc.collect()
        sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sizes[1] - sizes[0] < 50_000


def test_the_process_does_not_grow(transformer):
    f = warm(plus_one(transformer, [N]), np.zeros(5, np.float32))
    arrays = [np.zeros(n, np.float32) for n in range(20)]

    def many():
        for k in range(20_000):
            f(arrays[k % 20])

    many()
    before = resident()
    many()
    assert resident() - before < 2_000_000


def resident():
    """Bytes of memory that this process has."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_closing_frees_the_memory():
    transformer = geon.make_transformer("native")
    x = geon.placeholder([K])
    y = geon.exp(x)
    f = transformer.computation(geon.sum(y / geon.sum(y)), x)
    data = np.zeros(40_000, np.float32)
    warm(f, data)
    arena = weakref.ref(f._calls[()].free[0].arena)
    again = weakref.ref(f._calls[()])
    enter = f._calls[()].enter
    assert enter(data) is not NotImplemented
    transformer.close()
    for _ in range(2):
        with pytest.raises(ClosedError):
            f(data)
    del enter
    assert again() is None and arena() is None


def test_a_transformer_that_is_dropped_is_freed():
    transformer = geon.make_transformer("native")
    f = warm(plus_one(transformer, [A]), np.zeros(3, np.float32))
    gone = weakref.ref(f._calls[()])
    del f, transformer
    gc.collect()
    assert gone() is None


def test_inputs_are_read_in_place(transformer):
    x = geon.placeholder([N])
    f = transformer.computation(geon.max(x), x)
    data = np.zeros(4_000_000, np.float32)
    warm(f, data)
    tracemalloc.start()
    for value in (data, data.view(Sub), memoryview(data)):
        f(value)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < data.nbytes // 100


# Several at once --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [A, K], ids=["short", "long"])
def test_threads_share_a_computation(transformer, switch_often, axis):
    x = geon.placeholder([axis])
    y = geon.tanh(x) * 3
    f = transformer.computation([geon.sum(y), y + x], x)
    n = axis.length
    expected = {}
    for k in range(6):
        data = np.full(n, k / 7, np.float32)
        total, values = f(data)
        expected[k] = (data, total, values)

    def job(k):
        data, total, values = expected[k]
        out = np.empty_like(data)
        for turn in range(150):
            got = f(data) if turn % 3 else f(data, out=[None, out])
            assert got[0] == total
            np.testing.assert_array_equal(got[1], values)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(job, range(6)))
    arenas = [space.arena for space in f._calls[()].free]
    for position, one in enumerate(arenas):
        assert not any(np.shares_memory(one, other) for other in arenas[:position])


def test_long_work_lets_other_threads_run(transformer):
    axis = geon.Axis("L", 1 << 20)
    x = geon.placeholder([axis])
    y = x
    for _ in range(30):
        y = geon.sin(geon.exp(-y * y))
    data = np.zeros(1 << 20, np.float32)
    f = warm(transformer.computation(geon.sum(y), x), data)
    counts, inside, done = [0], threading.Event(), threading.Event()

    def count():
        inside.set()
        while not done.is_set():
            counts[0] += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(0.3)  # who is asked to give way keeps running longer than the call
    try:
        thread = threading.Thread(target=count)
        thread.start()
        inside.wait()
        seen = counts[0]
        f(data)
        assert counts[0] > seen
    finally:
        done.set()
        sys.setswitchinterval(before)
        thread.join()


def test_a_call_within_a_call(transformer):
    """A collection that the interpreter begins while the results are made may call again."""
    f = warm(plus_one(transformer, [A]), np.zeros(3, np.float32))
    data, other, inner = np.zeros(3, np.float32), np.full(3, 5, np.float32), []

    def again(phase, _):
        if phase == "start" and len(inner) < 50:
            inner.append(None)
            inner[-1] = f(other)

    before = gc.get_threshold()
    gc.callbacks.append(again)
    gc.set_threshold(1)
    try:
        results = [f(data) for _ in range(200)]
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(again)
    assert inner or sys.version_info >= (3, 12)  # which collects between two steps of Python alone
    assert all((result == 1).all() for result in results)
    assert all((result == 6).all() for result in inner)


def test_a_forked_child_calls_too(transformer):
    f = warm(plus_one(transformer, [K]), np.zeros(40_000, np.float32))
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = (f(np.ones(40_000, np.float32)) == 2).all()
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert (f(np.ones(40_000, np.float32)) == 2).all()


@pytest.mark.timeout(130)
def test_interrupts_come_through():
    """In a process of its own: its main thread is interrupted again and again."""
    code = """
    import os, signal, threading, time
    import numpy as np, geon
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
    with geon.make_transformer("native") as transformer:
        v = geon.Variable(initial_value=0, dtype="int64")
        w = geon.Variable(initial_value=0, dtype="int64")
        f = transformer.computation(geon.doall([geon.assign(v, v + 1), geon.assign(w, w + 1)]))
        f(), f()
        caught = 0
        for _ in range(20):
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                while True:
                    f()
            except KeyboardInterrupt:
                caught += 1
        assert transformer.get(v) == transformer.get(w) > 0
        way = f._calls[()].entry
        assert way is None or way.taken > 0
        print(caught)
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["20"]
