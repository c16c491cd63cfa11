"""The extension that begins captured calls: what it takes, what it declines, and how calls end."""

import _thread
import ctypes
import gc
import hashlib
import signal
import sys
import sysconfig
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.transformers.pycuda.runtime import calls, gpu, graph_replay, host
from geon.transformers.runtime.rwlock import ReadersWriterLock, ReadSection, Writing

from . import fake_cuda
from .devices import transformer_on

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
HEADERS = Path(sysconfig.get_paths()["include"])
N, C = geon.Axis("N"), geon.Axis("C", 3)
x = geon.placeholder([N, C], name="x")


def test_it_is_built_of_this_text():
    """What lies beside the source is what the source says."""
    if not (HEADERS / "Python.h").exists() or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("it cannot be built here")
    cure = "build it: make test does, or python setup.py build_ext --inplace"
    assert graph_replay.extension() is not None, cure
    target = Path(graph_replay.__file__).parents[1]
    files = target.parent / "loading/extension.h", target / "steady.c"
    text = b"".join([path.read_bytes() for path in files])
    assert graph_replay.extension().source == hashlib.sha256(text).hexdigest(), cure


@pytest.fixture
def made():
    if graph_replay.extension() is None:
        pytest.skip("the extension was not built")
    return graph_replay.extension()


# Calls of computations ----------------------------------------------------------------------------


@pytest.fixture
def driver(made, monkeypatch):
    found = fake_cuda.Driver().install(monkeypatch)
    yield found
    assert not found.wrong


@pytest.fixture
def transformer(driver):
    with transformer_on(gpu.GpuDevice(0)) as found:
        yield found


def taken(f):
    """How many calls of a computation went this way."""
    spaces = list(f._calls[()].free)
    bounds = {id(each): each for space in spaces for each in space.bound.values()}
    return sum(each.steady.short.taken for each in bounds.values() if each.steady)


def rows(n, value):
    return np.full((n, 3), value, np.float32)


def test_steady_calls_go_this_way(transformer):
    f = transformer.computation([x * 2, geon.sum(x, reduction_axes=C)], x)
    for k in range(10):
        double, total = f(rows(4, k))
        np.testing.assert_array_equal(double, rows(4, 2 * k))
        np.testing.assert_array_equal(total, np.full(4, 3 * k))
        assert taken(f) == max(0, k - 1)
    double[...] = 0
    np.testing.assert_array_equal(f(rows(4, 1))[0], rows(4, 2))  # results are the caller's
    one = transformer.computation(geon.sum(x), x)
    assert [one(rows(2, k)) for k in range(5)] == [6 * k for k in range(5)]
    assert one(rows(2, 1)).dtype == np.float32 and taken(one) == 4


def test_calls_that_are_started_go_this_way_in_order(transformer):
    w = geon.Variable([C], initial_value=0, name="w")
    step = transformer.computation([w + 0, geon.assign(w, w + geon.sum(x, reduction_axes=N))], x)
    for _ in range(3):
        step(rows(2, 0))
    for _ in range(2):
        [each.result() for each in [step.start(rows(2, 0)) for _ in range(4)]]
    before = taken(step)
    given = rows(2, 0)
    started = []
    for k in range(7):
        given[...] = k
        started.append(step.start(given))
        given[...] = -1  # it was read
    for k, each in reversed(list(enumerate(started))):
        value, nothing = each.result()
        assert each.done() and nothing is None
        np.testing.assert_array_equal(value, np.full(3, k * (k - 1)))
    assert taken(step) == before + 7
    np.testing.assert_array_equal(transformer.get(w), np.full(3, 42))
    transformer.set(w, np.ones(3))
    np.testing.assert_array_equal(step(rows(2, 1))[0], np.ones(3))


@pytest.mark.parametrize("size", [(1 << 18) - 1, 1 << 18, (1 << 18) + 1])
def test_long_copies_let_others_run(transformer, size):
    y = geon.placeholder([geon.Axis("L")])
    f = transformer.computation(y + 1, y)
    for k in range(4):
        np.testing.assert_array_equal(f(np.full(size, k, np.float32)), np.full(size, k + 1))
    assert taken(f) == 2


OTHERS = {
    "a dtype": lambda: rows(4, 5).astype(np.float64),
    "an order": lambda: np.asfortranarray(rows(4, 5)),
    "steps": lambda: rows(8, 5)[::2],
    "a length": lambda: rows(6, 5),
    "nothing": lambda: rows(0, 5),
    "a list": lambda: rows(4, 5).tolist(),
    "bytes in another order": lambda: rows(4, 5).astype(">f4"),
    "a class": lambda: rows(4, 5).view(np.recarray),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_values_go_the_long_way(transformer, name):
    f = transformer.computation(x + 1, x)
    for _ in range(3):
        f(rows(4, 0))
    value = OTHERS[name]()
    np.testing.assert_array_equal(f(value), np.asarray(value) + 1)
    np.testing.assert_array_equal(f.start(value).result(), np.asarray(value) + 1)
    np.testing.assert_array_equal(f(rows(4, 7)), rows(4, 8))
    with pytest.raises(geon.FeedError, match="was given an array of shape"):
        f(np.zeros((4, 2), np.float32))
    with pytest.raises(geon.ArgumentError):
        f(rows(4, 0), rows(4, 0))


def test_numbers_names_and_arrays_to_fill(transformer):
    rate = geon.placeholder([], name="rate")
    f = transformer.computation(x * rate, x, rate)
    for k in range(4):
        np.testing.assert_array_equal(f(rows(2, 3), k), rows(2, 3 * k))
        out = rows(2, -1)
        assert f(rows(2, 3), np.float32(k), out=out) is out
        np.testing.assert_array_equal(out, rows(2, 3 * k))
        np.testing.assert_array_equal(f(rate=k, x=rows(2, 2)), rows(2, 2 * k))
    assert taken(f) >= 10


def test_reports_are_raised(transformer):
    at = geon.placeholder([geon.Axis("T")], "int64", name="at")
    table = geon.Variable([geon.Axis("V", 9)], initial_value=1, name="table")
    results = [geon.gather(table, at, "V"), geon.assign(table, table * 2)]
    f = transformer.computation(results, at)
    given = np.array([1])
    for _ in range(4):
        f(given)
    with pytest.raises(geon.IndexRangeError, match="test_steady.*: 11 where the axis has length 9"):
        f(np.array([11]))
    wrong, right = f.start(np.array([12])), f.start(given)
    for _ in range(2):
        with pytest.raises(geon.IndexRangeError, match="test_steady.*: 12 where the axis has"):
            wrong.result()
    np.testing.assert_array_equal(right.result()[0], [16])
    np.testing.assert_array_equal(transformer.get(table), np.full(9, 32))
    with pytest.warns(RuntimeWarning, match="nobody asked for its result: .*13 where"):
        f.start(np.array([13]))
        for _ in range(calls.MAX_CALLS_IN_FLIGHT + 1):
            f.start(given)
        gc.collect()


def test_a_transformer_that_was_closed(driver):
    with transformer_on(gpu.GpuDevice(0)) as transformer:
        w = geon.Variable([C], initial_value=1)
        f = transformer.computation(x + 1, x)
        g = transformer.computation(x + w, x)
        for _ in range(4):
            f(rows(2, 0))
            g(rows(2, 0))
    for each in (f, g, f.start, g.start):
        with pytest.raises(geon.errors.ClosedError):
            each(rows(2, 0))


def test_threads_call_and_start_side_by_side(transformer):
    w = geon.Variable([C], initial_value=0, name="w")
    f = transformer.computation([x * 2, geon.sum(x)], x)
    g = transformer.computation(geon.assign(w, w + geon.sum(x, reduction_axes=N)), x)
    wrong = []

    def work(n):
        try:
            for k in range(40):
                first, second = f.start(rows(n, k)), f.start(rows(n, k + 1))
                g(rows(1, 1))
                effect = g.start(rows(1, 1))
                for j, found in enumerate([first.result(), second.result()]):
                    if not np.all(found[0] == 2 * (k + j)) or found[1] != 3 * n * (k + j):
                        wrong.append((n, k, j))
                effect.result()
                if k % 10 == n:
                    transformer.get(w)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    np.testing.assert_array_equal(transformer.get(w), np.full(3, 320))


# The extension by itself --------------------------------------------------------------------------

FAKE = """
extern "C" {
int come = 1, made = 0, launched = 0, depth = 0, refused = 0;
int push(void *) { depth++; return 0; }
int pop(void **) { depth--; return 0; }
int launch(void *, void *) { launched++; return refused; }
int record(void *, void *) { return 0; }
int query(void *) { return come == 1 ? 0 : come == 0 ? 600 : come; }
int create(void **event, unsigned) { *event = (void *)(long)(100 + made++); return refused; }
}
"""
NAMES = ("push", "pop", "launch", "record", "query", "create")


class Fake:
    """A driver in C: ``come`` is 1 once events have, 0 before, or a status."""

    def __init__(self, made):
        self.library = ctypes.CDLL(host.shared_object(FAKE))
        found = [ctypes.cast(self.library[name], ctypes.c_void_p).value for name in NAMES]
        self.put(come=1, made=0, launched=0, depth=0, refused=0)
        self.driver, self.make = made.Driver(found, 1, 2), made.Steady
        self.pinned, self.left = np.zeros(4, np.float32), np.arange(4, dtype=np.int64)
        self.report = np.zeros(8, np.int64)

    def put(self, **numbers):
        for name, number in numbers.items():
            ctypes.c_int.in_dll(self.library, name).value = number

    def number(self, name):
        return ctypes.c_int.in_dll(self.library, name).value

    def rows(self, held=None):
        """What a captured call of one input and one result is made of."""
        float32, int64 = np.dtype("float32"), np.dtype("int64")
        inputs = ((float32, (4,), self.pinned.ctypes.data),)
        results = ((int64, (2, 2), self.left.ctypes.data),)
        return [self.driver, inputs, results, self.report.ctypes.data, (7, 8), held]


class State:
    """What is looked at of a transformer's state."""

    def __init__(self):
        self.access, self.epoch, self.lost, self.tentative = ReadersWriterLock(), 3, None, []


class AtRest:
    """What is looked at of a device."""

    depth, lost, lock = 0, None, threading.RLock()


@pytest.fixture
def fake(made):
    return Fake(made)


ones = np.ones(4, np.float32)


def test_a_call_copies_launches_and_gives_results(fake):
    call = fake.make(*fake.rows())
    (found,) = call.run(AtRest, None, 0, ones)
    np.testing.assert_array_equal(fake.pinned, ones)
    np.testing.assert_array_equal(found, [[0, 1], [2, 3]])
    assert fake.number("launched") == 2 and fake.number("depth") == 0
    assert call.begin(AtRest, None, 0, ones * 2) == 0
    np.testing.assert_array_equal(fake.pinned, ones * 2)
    assert call.done()
    fake.report[0] = 1
    assert call.finish() is None
    assert call.taken == 2


def test_it_declines_while_others_are_at_work(fake):
    call, state = fake.make(*fake.rows()), State()

    def declined(device=AtRest, epoch=3):
        found = call.begin(device, state, epoch, ones)
        assert call.run(device, state, epoch, ones) is NotImplemented or found == 0
        return found is NotImplemented

    assert not declined() and declined(epoch=4)
    for block in (ReadSection, Writing):
        with block(state.access):
            assert declined()
            assert not declined(epoch=-1)  # no variables count
    state.tentative = [1]
    assert declined()
    state.tentative, state.lost = [], "closed"
    assert declined() and declined(epoch=-1)
    state.lost = None
    for name, value in (("depth", 1), ("lost", "failed")):
        assert declined(device=type("Busy", (AtRest,), {name: value}))
    assert declined(device=object()) and not declined()
    with AtRest.lock:
        assert not declined()  # this thread has it
        other = threading.Thread(target=lambda: found.append(declined()))
        found = []
        other.start()
        other.join()
        assert found == [True]
    for given in [(ones, ones), (), (2.0,), (ones[:3],), (ones.astype("f8"),), (ones[::-1],)]:
        assert call.begin(AtRest, None, 0, *given) is NotImplemented
    assert call.begin(AtRest, None) is NotImplemented


def test_what_the_driver_refuses(fake):
    call = fake.make(*fake.rows())
    fake.put(refused=700)
    assert call.begin(AtRest, None, 0, ones) == -700
    assert call.run(AtRest, None, 0, ones) == -700
    assert fake.number("launched") == 2 and fake.number("depth") == 0
    with pytest.raises(RuntimeError, match="the driver makes no event: status 700"):
        fake.make(*fake.rows())
    fake.put(refused=0, come=719)
    assert call.run(AtRest, None, 0, ones) == 719
    assert call.begin(AtRest, None, 0, ones) == 0
    assert call.done() and call.finish() == 719


@pytest.mark.parametrize("after", [1e-4, 0.05])
def test_an_event_is_waited_for_while_others_run(fake, after):
    call = fake.make(*fake.rows())
    fake.put(come=0)
    assert call.begin(AtRest, None, 0, ones) == 0
    assert not call.done()
    timer = threading.Timer(after, fake.put, kwargs={"come": 1})
    timer.start()
    assert len(call.finish()) == 1
    timer.join()


@pytest.fixture
def interruptible():
    """Ctrl-C raises, also where the tests were begun in the background, with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(after):
    timer = threading.Timer(after, _thread.interrupt_main)
    timer.start()
    return timer


def test_waiting_may_be_interrupted(fake, interruptible):
    call = fake.make(*fake.rows())
    fake.put(come=0)
    call.begin(AtRest, None, 0, ones)
    timer = interrupted(0.05)
    with pytest.raises(KeyboardInterrupt):
        call.finish()
    timer.join()
    assert not call.done()
    fake.put(come=1)
    assert len(call.finish()) == 1


def test_a_call_that_is_interrupted_ends_first(fake, interruptible):
    call = fake.make(*fake.rows())
    fake.put(come=0)
    timers = [interrupted(0.05), threading.Timer(0.15, fake.put, kwargs={"come": 1})]
    timers[1].start()
    with pytest.raises(KeyboardInterrupt):
        call.run(AtRest, None, 0, ones)
    assert call.done()
    for timer in timers:
        timer.join()


@pytest.mark.parametrize(
    "position, wrong",
    [(0, None), (1, [()]), (1, ((),)), (1, (("float32", (3,), 0),)), (2, None), (3, None),
     (1, ((np.dtype("f4"), 3.5, 0),)), (1, ((np.dtype("f4"), (1,) * 65, 0),)), (4, (None,)),
     (1, ((np.dtype("f4"), (3,), None),)), (1, (7,)), (4, [1])],
)  # fmt: skip
def test_what_is_none_is_refused(fake, position, wrong):
    rows = fake.rows()
    rows[position] = wrong
    with pytest.raises((TypeError, ValueError)):
        fake.make(*rows)
    with pytest.raises(TypeError):
        type(fake.driver)((1, 2, 3), 1, 2)


def test_all_is_freed_and_events_are_used_again(fake):
    held = [object()]
    rows = fake.rows(held)
    dtype = np.dtype("int64")
    gc.collect()  # what others have left refers to it too
    before = sys.getrefcount(held), sys.getrefcount(fake.driver), sys.getrefcount(dtype)
    for _ in range(1000):
        call = fake.make(*rows)
        call.run(AtRest, State(), 3, ones)
        call.begin(AtRest, None, 0, 5)
        with pytest.raises(TypeError):
            fake.make(*rows[:2], (None,), *rows[3:])
        del call
    after = sys.getrefcount(held), sys.getrefcount(fake.driver), sys.getrefcount(dtype)
    assert after == before
    assert fake.number("made") == 1
    several = [fake.make(*rows) for _ in range(3)]
    assert fake.number("made") == 3
    del several


def test_without_a_driver_there_is_none(made, monkeypatch):
    monkeypatch.setattr(graph_replay, "LIBRARY", "a-library-that-is-not-there")
    assert graph_replay.addresses() is None and graph_replay.driver(1, 2) is None
    monkeypatch.setattr(
        graph_replay, "LIBRARY", None
    )  # what is loaded, which has no such functions
    assert graph_replay.addresses() is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert graph_replay.driver(1, 2) is None
