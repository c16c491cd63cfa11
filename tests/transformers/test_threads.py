"""Threads and interrupts: calls side by side see whole states, and Ctrl-C waits for the end."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import geon
from geon.errors import UnavailableError
from geon.transformers.cache import programs
from geon.transformers.runtime.rwlock import ReadersWriterLock, ReadSection, Writing

SECONDS = 0.6


@pytest.fixture(autouse=True)
def switch_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def race(*jobs, seconds=SECONDS):
    """Run each job again and again in a thread of its own; raise what one raised."""
    end = time.monotonic() + seconds
    barrier = threading.Barrier(len(jobs))

    def repeat(job):
        barrier.wait()
        job()
        turns = 1
        while time.monotonic() < end:
            job()
            turns += 1
        return turns

    with ThreadPoolExecutor(len(jobs)) as pool:
        return [done.result() for done in [pool.submit(repeat, job) for job in jobs]]


# Calls side by side -----------------------------------------------------------------------------


def test_readers_never_see_half_of_a_write(transformer, tmp_path, make):
    K = geon.Axis("K", 2000)
    p, q = (geon.Variable(axes=K, initial_value=0, name=name) for name in "pq")
    write = transformer.computation(geon.doall([geon.assign(p, p + 1), geon.assign(q, q + 1)]))
    difference = transformer.computation(geon.max(geon.absolute(p - q)))
    both = transformer.computation([p, q])

    def read():
        assert difference() == 0

    def read_both():
        first, second = both()
        assert (first == first[0]).all() and (second == first[0]).all()

    def save():
        transformer.save(tmp_path / "file")
        with make() as other:
            other.computation([p, q])
            other.restore(tmp_path / "file")
            first, second = other.get(p), other.get(q)
            assert (first == second[0]).all() and (second == first[0]).all()

    def get():
        value = transformer.get(p)
        assert (value == value[0]).all()

    turns = race(write, write, read, read, read_both, get, save)
    assert transformer.get(p)[0] == turns[0] + turns[1] == transformer.get(q)[0]


def test_no_update_is_lost(transformer):
    v = geon.Variable(initial_value=0, dtype="int64")
    x = geon.placeholder(dtype="int64")
    add = transformer.computation([v, geon.assign(v, v + x)], x)
    seen = []
    with ThreadPoolExecutor(6) as pool:
        seen = list(pool.map(lambda _: int(add(1)[0]), range(1500)))
    assert sorted(seen) == list(range(1500))
    assert transformer.get(v) == 1500


def test_one_computation_with_many_lengths(transformer):
    N, C = geon.Axis("N", "N of threads"), geon.Axis("C", 5)
    x = geon.placeholder(axes=[C, N])
    w = geon.Variable(axes=C, initial_value=[1, 2, 3, 4, 5])
    f = transformer.computation([geon.dot(w, geon.exp(-x)), geon.sum(geon.sin(x) * x)], x)

    def job(seed):
        random = np.random.default_rng(seed)

        def call():
            data = random.normal(size=(5, random.integers(0, 90))).astype(np.float32)
            kept = data.copy()
            first, second = f(data)
            np.testing.assert_allclose(first, np.arange(1, 6) @ np.exp(-kept), rtol=1e-4)
            np.testing.assert_allclose(second, np.sum(np.sin(kept) * kept), rtol=1e-3, atol=1e-3)
            np.testing.assert_array_equal(data, kept)

        return call

    race(*map(job, range(6)))
    assert len(f._calls) == 1


def test_arenas_are_not_shared(transformer):
    K = geon.Axis("K", 50_000)
    x = geon.placeholder(axes=K)
    y = geon.exp(geon.sin(geon.cos(x) * 2) + x)
    f = transformer.computation([geon.sum(y), y], x)
    expected = {}
    for n in range(4):
        data = np.full(50_000, n, np.float32)
        total, values = f(data)
        expected[n] = (data, float(total), values)

    def job(n):
        data, total, values = expected[n]

        def call():
            got, array = f(data)
            assert got == total
            np.testing.assert_array_equal(array, values)

        return call

    race(*map(job, range(4)))
    spaces = list(f._calls[()].free)
    assert 1 <= len(spaces) <= 4
    for position, one in enumerate(spaces):
        for other in spaces[:position]:
            assert not np.shares_memory(one.arena, other.arena)


def test_building_and_compiling_in_many_threads(transformer):
    C = geon.Axis("C", 4)
    x = geon.placeholder(axes=C)
    data = np.arange(4, dtype=np.float32)
    graphs = []

    def build(number):
        y = x
        for k in range(20):
            y = geon.tanh(y * (1 + k % 3) + number % 5)
        graphs.append((number % 5, y))
        v = geon.Variable(axes=C, initial_value=geon.Random(number).uniform([C]))
        f = transformer.computation([y, geon.deriv(geon.sum(y), x), v], x)
        return number % 5, f(data)[0], len(set(f(data)[2].tolist()))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(build, range(80)))
    first = {}
    for number, value, distinct in found:
        np.testing.assert_array_equal(value, first.setdefault(number, value))
        assert distinct == 4
    interned = {}
    for number, y in graphs:
        assert interned.setdefault(number, y) is y


def test_the_first_call_from_many_threads(transformer):
    C = geon.Axis("C", 300)
    w = geon.Variable(axes=C, initial_value=geon.Random(9).normal([C]))
    total = geon.Variable(initial_value=geon.sum(w))
    f = transformer.computation(geon.sum(w) - total)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: float(f()), range(8))) == [0.0] * 8


def test_a_program_is_made_once_for_all_threads_that_wait():
    made = []

    def make():
        made.append(threading.get_ident())
        time.sleep(0.05)
        return object()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: programs.program("key of threads", make), range(8)))
    assert len(made) == 1 and len(set(map(id, found))) == 1


def test_two_transformers_side_by_side(make):
    x = geon.placeholder()
    v = geon.Variable(initial_value=0)
    transformers = [make() for _ in range(4)]
    adds = [t.computation([v, geon.assign(v, v + x)], x) for t in transformers]
    turns = race(*(lambda f=f, k=k: f(k) for k, f in enumerate(adds)), seconds=0.3)
    for k, (t, count) in enumerate(zip(transformers, turns, strict=True)):
        assert t.get(v) == k * count
        t.close()


def test_callables_that_call_computations_while_others_start(transformer):
    x = geon.placeholder()
    helper = transformer.computation(x * 3 + 1, x)
    made = [geon.Variable(initial_value=lambda axes, k=k: helper(k)) for k in range(4)]
    calls = [transformer.computation(v + 0) for v in made]
    with ThreadPoolExecutor(8) as pool:
        done = [pool.submit(calls[k % 4]) for k in range(8)]
        done += [pool.submit(helper, 5) for _ in range(4)]
        values = [float(each.result(timeout=60)) for each in done]
    assert values == [1, 4, 7, 10] * 2 + [16] * 4


def test_closing_while_others_call(make):
    v = geon.Variable(axes=geon.Axis("K", 1000), initial_value=0)
    for _ in range(10):
        t = make()
        f = t.computation([geon.sum(v), geon.assign(v, v + 1)])
        f()

        def call(f=f):
            for _ in range(50):
                try:
                    f()
                except geon.GeonError as error:
                    assert "closed" in str(error)

        threads = [threading.Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        t.close()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()


# The lock ---------------------------------------------------------------------------------------


def test_who_comes_later_queues_behind_who_waits():
    """A writer that waits for a reader is not passed by another reader."""
    lock, order = ReadersWriterLock(), []
    lock.enter_read()

    def write():
        lock.enter_write()
        order.append("writer")
        lock.leave_write()

    def read():
        lock.enter_read()
        order.append("reader")
        lock.leave_read()

    writer = threading.Thread(target=write)
    writer.start()
    end = time.monotonic() + 5
    while lock._turn.acquire(blocking=False) and time.monotonic() < end:
        lock._turn.release()
        time.sleep(0.001)
    reader = threading.Thread(target=read)
    reader.start()
    reader.join(0.2)
    assert order == []
    lock.leave_read()
    writer.join(10), reader.join(10)
    assert order == ["writer", "reader"]


def test_nobody_waits_for_ever():
    lock, writers = ReadersWriterLock(), []

    def read():
        with ReadSection(lock):
            assert not writers

    def write():
        with Writing(lock):
            writers.append(threading.get_ident())
            assert len(writers) == 1
            writers.clear()

    race(write, write, read, read, read, seconds=0.4)  # ends: each had its turn


def test_a_block_inside_a_block():
    lock = ReadersWriterLock()
    with Writing(lock), Writing(lock), ReadSection(lock):
        pass
    with ReadSection(lock):
        pass
    with Writing(lock):
        pass


# Interrupts -------------------------------------------------------------------------------------


@pytest.fixture
def heard():
    """Ctrl-C raises, also where the tests were started by a shell that ignores it."""
    outer = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, outer)


@pytest.mark.usefixtures("heard")
def test_an_interrupt_waits_for_the_end_of_a_block():
    lock, passed = ReadersWriterLock(), []
    for block in (ReadSection, Writing):
        with pytest.raises(KeyboardInterrupt):
            with block(lock):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
                passed.append(block)
    assert passed == [ReadSection, Writing]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with Writing(lock):
        pass


def test_a_handler_of_the_users_is_called_after_the_block():
    called = []
    outer = signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
    try:
        with Writing(ReadersWriterLock()):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            assert called == []
        assert called == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, outer)


INTERRUPTED = """
    import os, signal, threading, time
    import numpy as np
    import geon

    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
    K = geon.Axis("K", 200)
    w = geon.Variable(axes=[K, K.prime], initial_value=0.05)
    count = geon.Variable(initial_value=0)
    y, square = w, geon.cast_axes(w, [K.prime, K.prime.prime])
    for _ in range(40):
        y = geon.tanh(geon.cast_axes(geon.dot(y, square), [K, K.prime]))
    t = geon.make_transformer("{name}")
    effects = [geon.assign(w, w + 0.001 * y), geon.assign(count, count + 1)]
    f = t.computation([geon.sum(y), *(effects if {writing} else [])])
    f()
    start = time.perf_counter()
    f()
    took = time.perf_counter() - start
    caught = 0
    for k in range(12):
        before = t.get(count), t.get(w)
        timer = threading.Timer(took * k / 12, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            f()
            timer.join()
            for _ in range(1000):
                time.sleep(0.005)
        except KeyboardInterrupt:
            caught += 1
        timer.join()
        now = t.get(count), t.get(w)
        if {writing}:
            moved = not np.array_equal(now[1], before[1])
            assert (now[0] - before[0], moved) in ((0, False), (1, True))
        else:
            assert now[0] == before[0] and np.array_equal(now[1], before[1])
    value = f()[0]
    assert np.isfinite(value)
    print(caught)
"""


@pytest.mark.timeout(310)
@pytest.mark.parametrize("writing", [True, False])
def test_an_interrupted_call(transformer_name, writing):
    source = textwrap.dedent(INTERRUPTED).replace("{writing}", str(writing))
    source = source.replace("{name}", transformer_name)
    done = subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 12


BEGIN = """
import faulthandler, os, random, signal, sys, threading, time
import geon
from geon.errors import UnavailableError
faulthandler.dump_traceback_later(50, exit=True)
v = geon.Variable([geon.Axis("A", int(sys.argv[2]))], initial_value=0, name="v")
t = geon.make_transformer(sys.argv[1])
step = t.computation([geon.assign(v, v + 1), geon.max(v) - geon.min(v)])
look = t.computation(geon.max(v) - geon.min(v))
step(), look(), t.save(sys.argv[3])  # what these import is there
"""


def program(text, name, size, tmp_path):
    """What a program prints that ends by itself."""
    run = [sys.executable, "-c", BEGIN + text, name, str(size), str(tmp_path / "file")]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


FORKS = """
def run(call):
    while True:
        call()

for call in (step, look, lambda: t.save(sys.argv[3]), step):
    threading.Thread(target=run, args=(call,), daemon=True).start()
for k in range(12):
    time.sleep(0.002 * k)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        one = t.get(v)
        assert look() == 0 and (t.get(v) == one).all() and one.min() == one.max()
        step(), t.set(v, one), t.save(sys.argv[3] + str(k))
        assert (t.get(v) == one).all()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, k
before = t.get(v).max()
time.sleep(0.3)
assert t.get(v).max() > before  # the threads of the parent go on
print("done", flush=True)
os._exit(0)
"""


MANY_FORKS = """
def forks():
    for k in range(40):
        other = geon.make_transformer(sys.argv[1])  # one more that the next fork holds
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(int(look() != 0))
        status.append(os.waitpid(child, 0)[1])

status = []
threads = [threading.Thread(target=forks) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
step()
print(len(status), any(status), flush=True)
os._exit(0)
"""


def test_threads_that_fork_wait_for_each_other(tmp_path):
    assert program(MANY_FORKS, "numpy", 10, tmp_path) == "160 False\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["numpy", "native"])
@pytest.mark.parametrize("size", [3, 1_000_000])
def test_a_child_that_was_forked_amid_calls_has_values_of_one_instant(name, size, tmp_path):
    assert program(FORKS, name, size, tmp_path) == "done\n"


SIGNALS = """
zeros = t.get(v) * 0
calls = {"get": lambda: t.get(v), "save": lambda: t.save(sys.argv[3]), "step": step, "look": look,
         "set": lambda: t.set(v, zeros)}
refused = []
for first, then in [(a, b) for a in calls for b in calls]:
    def handler(*_):
        try:
            calls[then]()
        except UnavailableError as error:
            refused.append((then, str(error)))
        seen.append(1)

    signal.signal(signal.SIGALRM, handler)
    seen = []
    for k in range(60):
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + 0.0008 * random.random())
        while len(seen) == k:
            calls[first]()
    assert look() == 0
assert {name for name, _ in refused} <= {"step", "set"}, refused
assert all("handler of a signal" in error for _, error in refused)
print("done", flush=True)
"""


@pytest.mark.parametrize("name", ["numpy", "native"])
def test_handlers_of_signals_may_call(name, tmp_path):
    """Between any two steps of a call: they are answered, or told that they cannot write."""
    assert program(SIGNALS, name, 1000, tmp_path) == "done\n"


def test_a_handler_that_writes_while_its_thread_reads_is_refused():
    lock, noted = ReadersWriterLock(), signal.getsignal(signal.SIGINT)
    with ReadSection(lock), ReadSection(lock):
        with pytest.raises(UnavailableError, match="this thread is in a call that reads"):
            with Writing(lock):
                pass
        other = threading.Thread(target=lambda: Writing(lock).__enter__(), daemon=True)
        other.start()
        time.sleep(0.05)  # waits with the turn of whoever comes next
        with ReadSection(lock):
            assert other.is_alive()
    other.join(10)
    assert not other.is_alive() and signal.getsignal(signal.SIGINT) is noted
