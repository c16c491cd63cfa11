"""The pool runs each task once, whoever calls it, and outlives forks, exits and crowds."""

import ctypes
import os
import platform
import random
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from geon.errors import ArgumentError
from geon.transformers.native.machine import threads
from geon.transformers.native.names.c_texts import FOLDER
from geon.transformers.native.toolchain import compilers
from geon.transformers.native.toolchain.shared_objects import shared_object

if compilers.find_toolchain() is None:
    pytest.skip(compilers.missing_compiler(), allow_module_level=True)

SECONDS = 60  # far more than any of the programs here needs

# Runs of the pool as generated code makes them. Each function says how many tasks went wrong.
DRIVER = r"""
#include <stddef.h>
#include <stdint.h>
typedef void (*task_type)(void *, int64_t);
typedef void (*run_type)(task_type, void *, int64_t, int32_t);
typedef void (*short_type)(task_type, void *, int64_t, int32_t, int32_t);
typedef int32_t (*seat_type)(void);
struct job { run_type run; seat_type seat; int64_t *values; int64_t inner; float scale; };

/* Runs that are said to take one thread so many nanoseconds. */
static short_type run_short;
static int32_t duration;
static void shortened(task_type task, void *argument, int64_t count, int32_t threads) {
    run_short(task, argument, count, threads, duration);
}
run_type shortened_to(short_type run, int32_t nanoseconds) {
    run_short = run;
    duration = nanoseconds;
    return shortened;
}
static void spend(int64_t rounds) {
    for (volatile int64_t i = 0; i < rounds; i++) { }
}
static void count(void *argument, int64_t index) {
    struct job *job = argument;
    __atomic_fetch_add(&job->values[index], 1, __ATOMIC_RELAXED);
    spend(job->inner);
}
/* Every task runs exactly once. */
int64_t once(run_type run, int64_t *values, int64_t tasks, int32_t threads, int64_t rounds,
             int64_t runs) {
    int64_t wrong = 0;
    struct job job = {run, NULL, values, rounds, 0};
    for (int64_t r = 0; r < runs; r++) {
        for (int64_t i = 0; i < tasks; i++) values[i] = 0;
        run(count, &job, tasks, threads);
        for (int64_t i = 0; i < tasks; i++) wrong += values[i] != 1;
    }
    return wrong;
}
static void square(void *argument, int64_t index) {
    int64_t *values = ((struct job *)argument)->values;
    values[index] = values[index] * values[index] + index;
}
/* What tasks write without atomics is read after the run, and by the next one. */
int64_t visible(run_type run, int64_t *values, int64_t tasks, int32_t threads, int64_t runs) {
    int64_t wrong = 0;
    struct job job = {run, NULL, values, 0, 0};
    for (int64_t r = 0; r < runs; r++) {
        for (int64_t i = 0; i < tasks; i++) values[i] = r;
        run(square, &job, tasks, threads);
        run(square, &job, tasks, threads);
        for (int64_t i = 0; i < tasks; i++) {
            int64_t expected = r * r + i;
            wrong += values[i] != expected * expected + i;
        }
    }
    return wrong;
}
static void inner(void *argument, int64_t index) {
    struct job *job = argument;
    __atomic_fetch_add(&job->values[index], 1, __ATOMIC_RELAXED);
}
static void outer(void *argument, int64_t index) {
    struct job *job = argument;
    struct job mine = *job;
    mine.values += index * job->inner;
    job->run(inner, &mine, job->inner, 4);
}
int64_t nested(run_type run, int64_t *values, int64_t tasks, int64_t each, int32_t threads) {
    int64_t wrong = 0;
    struct job job = {run, NULL, values, each, 0};
    for (int64_t i = 0; i < tasks * each; i++) values[i] = 0;
    run(outer, &job, tasks, threads);
    for (int64_t i = 0; i < tasks * each; i++) wrong += values[i] != 1;
    return wrong;
}
/* Of a seat: how many are in it at one time, the tasks that ran in it, and whose it is. */
static struct { int64_t inside, taken; void *thread; } seats[64];
static _Thread_local char mark;
static void sit(void *argument, int64_t index) {
    struct job *job = argument;
    int32_t seat = job->seat();
    int64_t bad = seat < 0 || seat >= job->inner;
    if (!bad) {
        bad += __atomic_fetch_add(&seats[seat].inside, 1, __ATOMIC_RELAXED) != 0;
        void *nobody = NULL;
        if (!__atomic_compare_exchange_n(&seats[seat].thread, &nobody, &mark, 0, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            bad += nobody != &mark; /* one thread all through the run */
        __atomic_fetch_add(&seats[seat].taken, 1, __ATOMIC_RELAXED);
        spend((int64_t)job->scale);
        bad += job->seat() != seat;
        __atomic_fetch_sub(&seats[seat].inside, 1, __ATOMIC_RELAXED);
    }
    job->values[index] = bad;
}
/* Each thread of a run has a seat that no other has, below the number of threads; 0 is the
   caller's. `others` counts the tasks that other seats ran. */
int64_t seated(run_type run, seat_type get, int64_t *values, int64_t tasks, int32_t threads,
               int64_t rounds, int64_t *others) {
    int64_t wrong = 0;
    struct job job = {run, get, values, threads > 0 ? threads : 1, (float)rounds};
    for (int i = 0; i < 64; i++) {
        seats[i].inside = seats[i].taken = 0;
        seats[i].thread = NULL;
    }
    wrong += get() != 0;
    run(sit, &job, tasks, threads);
    wrong += get() != 0;
    wrong += seats[0].thread != NULL && seats[0].thread != &mark;
    for (int i = 1; i < 64; i++) {
        wrong += seats[i].thread == &mark || (seats[i].taken && i >= tasks);
        *others += seats[i].taken;
    }
    for (int64_t i = 0; i < tasks; i++) wrong += values[i];
    return wrong;
}
static void inner_seat(void *argument, int64_t index) {
    struct job *job = argument;
    job->values[index] = job->seat();
}
static void outer_seat(void *argument, int64_t index) {
    struct job *job = argument, mine = *job;
    int32_t seat = job->seat();
    mine.values += index * job->inner;
    job->run(inner_seat, &mine, job->inner, 4);
    for (int64_t i = 0; i < job->inner; i++) mine.values[i] = mine.values[i] != seat;
}
/* A run inside a task is the task's thread alone, which keeps its seat. */
int64_t nested_seats(run_type run, seat_type get, int64_t *values, int64_t tasks, int64_t each,
                     int32_t threads) {
    int64_t wrong = 0;
    struct job job = {run, get, values, each, 0};
    run(outer_seat, &job, tasks, threads);
    for (int64_t i = 0; i < tasks * each; i++) wrong += values[i];
    return wrong;
}
static void scale(void *argument, int64_t index) {
    struct job *job = argument;
    volatile float x = 0x1p-100f, product;
    product = x * job->scale; /* a denormal, or zero where they are flushed */
    job->values[index] = product != 0;
    spend(2000);
}
#if defined(__x86_64__)
/* How many of the tasks saw a denormal, while the caller flushes them. */
int64_t flushed(run_type run, int64_t *values, int64_t tasks, int32_t threads) {
    int64_t seen = 0;
    struct job job = {run, NULL, values, 0, 0x1p-40f};
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040);
    run(scale, &job, tasks, threads);
    __builtin_ia32_ldmxcsr(before);
    for (int64_t i = 0; i < tasks; i++) seen += values[i];
    return seen;
}
#endif
int64_t kept(run_type run, int64_t *values, int64_t tasks, int32_t threads) {
    int64_t seen = 0;
    struct job job = {run, NULL, values, 0, 0x1p-40f};
    run(scale, &job, tasks, threads);
    for (int64_t i = 0; i < tasks; i++) seen += values[i];
    return seen;
}
/* How many threads took part. */
static _Thread_local int64_t here;
static void who(void *argument, int64_t index) {
    struct job *job = argument;
    job->values[index] = (int64_t)(intptr_t)&here;
    spend(job->inner);
}
static int64_t took_part(run_type run, int64_t *values, int64_t tasks, int32_t threads,
                         int64_t rounds) {
    int64_t found = 0;
    struct job job = {run, NULL, values, rounds, 0};
    run(who, &job, tasks, threads);
    for (int64_t i = 0; i < tasks; i++) {
        int64_t first = 1;
        for (int64_t j = 0; j < i; j++) first &= values[j] != values[i];
        found += first;
    }
    return found;
}
int64_t takers(run_type run, int64_t *values, int64_t tasks, int32_t threads) {
    return took_part(run, values, tasks, threads, 20000);
}
/* How many of so many runs, which follow each other at once, had more than one thread. */
int64_t shared(run_type run, int64_t *values, int64_t tasks, int32_t threads, int64_t rounds,
               int64_t runs) {
    int64_t found = 0;
    for (int64_t r = 0; r < runs; r++)
        found += took_part(run, values, tasks, threads, rounds) > 1;
    return found;
}
"""

# What a program of its own begins with: the pool and the driver, loaded from the cache.
BEGIN = """
import ctypes, os, signal, sys, threading, time
from geon.transformers.native.machine import threads
pool = threads.load_pool()
driver = ctypes.CDLL(sys.argv[1])
for name in ("once", "visible", "nested", "kept", "takers"):
    getattr(driver, name).restype = ctypes.c_int64
run = ctypes.c_void_p(pool.run_address)

def once(tasks, count, rounds=0, runs=1):
    values = (ctypes.c_int64 * tasks)()
    return driver.once(
        run, values, ctypes.c_int64(tasks), ctypes.c_int32(count), ctypes.c_int64(rounds),
        ctypes.c_int64(runs),
    )

def shared():
    # Workers help: in one of many runs at least.
    values = (ctypes.c_int64 * 50)()
    return any(
        driver.takers(run, values, ctypes.c_int64(50), ctypes.c_int32(3)) > 1 for _ in range(1000)
    )
"""


@pytest.fixture(scope="module")
def driver_path() -> Path:
    found = compilers.find_toolchain()
    assert found is not None
    return shared_object(found, [DRIVER], ("-Wall", "-Wextra", "-Werror"))


@pytest.fixture(scope="module")
def driver(driver_path: Path) -> ctypes.CDLL:
    library = ctypes.CDLL(str(driver_path))
    for name in ("once", "visible", "nested", "nested_seats", "seated", "kept", "takers", "shared"):
        getattr(library, name).restype = ctypes.c_int64
    return library


@pytest.fixture(scope="module")
def pool() -> threads.Pool:
    return threads.load_pool()


def arguments(pool: threads.Pool, values: int, *numbers: int, count: int) -> tuple[object, ...]:
    """The address, an array of that length, and 64-bit numbers, with the 32-bit count of threads
    as the second of them, as most of the driver's functions take them."""
    first, *rest = (ctypes.c_int64(number) for number in numbers)
    array = (ctypes.c_int64 * max(values, 1))()
    return (ctypes.c_void_p(pool.run_address), array, first, ctypes.c_int32(count), *rest)


def program(text: str, driver_path: Path, **environment: str) -> str:
    """What a program says, which ends by itself, with status 0 and without a complaint."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + text, str(driver_path)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 40])
@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 17, 1000])
def test_each_task_runs_once(driver, pool, tasks, count):
    assert driver.once(*arguments(pool, tasks, tasks, 10, 50, count=count)) == 0


def test_each_task_runs_once_with_random_sizes(driver, pool):
    draw = random.Random(1)
    for _ in range(200):
        tasks, count = draw.randrange(100), draw.randrange(1, 6)
        rounds = draw.choice((0, 10, 1000))
        assert driver.once(*arguments(pool, tasks, tasks, rounds, 5, count=count)) == 0


@pytest.fixture
def short(driver, pool):
    """The address of runs that are said to be too short to wake anybody for."""
    driver.shortened_to.restype = ctypes.c_void_p
    run = ctypes.c_void_p(pool.run_short_address)
    return ctypes.c_void_p(driver.shortened_to(run, ctypes.c_int32(1000)))


@pytest.mark.parametrize("count", [1, 2, 3, 8])
@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 17])
def test_short_runs_do_each_task_once(driver, pool, short, tasks, count):
    for rounds in (0, 10, 3000):
        _, *rest = arguments(pool, tasks, tasks, rounds, 200, count=count)
        assert driver.once(short, *rest) == 0
        time.sleep(0.0002)  # workers may be about to sleep
    _, *rest = arguments(pool, tasks, tasks, 200, count=count)
    assert driver.visible(short, *rest) == 0


def test_short_runs_and_long_ones_take_turns(driver, pool, short):
    draw = random.Random(2)
    for _ in range(500):
        run, *rest = arguments(pool, 2, 2, draw.choice((0, 10, 1000)), 5, count=2)
        assert driver.once(draw.choice((run, short)), *rest) == 0
        assert driver.seated(
            draw.choice((run, short)), ctypes.c_void_p(pool.seat_address), rest[0],
            ctypes.c_int64(2), ctypes.c_int32(2), ctypes.c_int64(10), (ctypes.c_int64 * 1)(),
        ) == 0  # fmt: skip


def test_a_short_run_alone_wakes_nobody(driver, pool, short):
    driver.once(*arguments(pool, 50, 50, 1000, 5, count=2))  # there are workers
    for _ in range(20):
        time.sleep(0.02)  # who has nothing to do sleeps after 50 us
        _, *rest = arguments(pool, 2, 2, count=2)
        assert driver.takers(short, *rest) == 1


@pytest.mark.skipif(threads.processors() < 2, reason="nobody else could run meanwhile")
def test_short_runs_that_follow_each_other_have_workers(driver, pool, short):
    # A run of 200 rounds takes less than a microsecond, as it is said to. Other programs may have
    # the other processor for a while.
    driver.once(*arguments(pool, 50, 50, 1000, 5, count=2))  # there are workers
    time.sleep(0.02)  # and they sleep
    _, *rest = arguments(pool, 2, 2, 200, 1000, count=2)
    end = time.monotonic() + SECONDS
    while driver.shared(short, *rest) == 0:
        assert time.monotonic() < end


@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_tasks_wrote_is_seen(driver, pool, count):
    assert driver.visible(*arguments(pool, 64, 64, 2000, count=count)) == 0


def test_a_task_may_use_the_pool(driver, pool):
    values = (ctypes.c_int64 * 400)()
    run = ctypes.c_void_p(pool.run_address)
    for _ in range(100):
        assert driver.nested(run, values, ctypes.c_int64(20), ctypes.c_int64(20), 4) == 0


def test_more_threads_than_tasks_or_one_task_use_no_more(driver, pool):
    assert driver.takers(*arguments(pool, 2, 2, count=8)) <= 2
    assert driver.takers(*arguments(pool, 1, 1, count=8)) == 1


def test_several_threads_take_part(driver, pool):
    # One run may be over before a worker woke up; a hundred are not.
    assert any(driver.takers(*arguments(pool, 50, 50, count=2)) == 2 for _ in range(100))


def test_many_python_threads_at_once(driver, pool):
    wrong = []

    def call() -> None:
        for _ in range(20):
            wrong.append(driver.once(*arguments(pool, 30, 30, 20, 50, count=3)))
            wrong.append(driver.visible(*arguments(pool, 30, 30, 20, count=3)))

    callers = [threading.Thread(target=call) for _ in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(SECONDS)
        assert not caller.is_alive()
    assert len(wrong) == 8 * 40 and not any(wrong)


def test_more_threads_than_processors(driver, pool):
    count = 4 * threads.processors() + 3
    assert driver.once(*arguments(pool, 200, 200, 500, 50, count=count)) == 0
    assert driver.visible(*arguments(pool, 200, 200, 50, count=count)) == 0
    # And with as many as there are, while those others sleep.
    assert driver.once(*arguments(pool, 200, 200, 500, 50, count=2)) == 0


def seated(driver, pool, tasks, count, rounds=0):
    """How many seats were wrong in a run, and how many tasks workers ran."""
    run, get = ctypes.c_void_p(pool.run_address), ctypes.c_void_p(pool.seat_address)
    values, others = (ctypes.c_int64 * max(tasks, 1))(), ctypes.c_int64(0)
    sizes = ctypes.c_int64(tasks), ctypes.c_int32(count), ctypes.c_int64(rounds)
    return driver.seated(run, get, values, *sizes, ctypes.byref(others)), others.value


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 40])
def test_each_thread_of_a_run_has_a_seat_of_its_own(driver, pool, count):
    """Where other processes have all processors, a worker gets one after some runs only."""
    draw = random.Random(count)
    helped, runs, stop = 0, 0, time.monotonic() + SECONDS
    while runs < 300 or (count > 1 and not helped and time.monotonic() < stop):
        runs += 1
        tasks, rounds = draw.choice((0, 1, 2, 3, 5, 50, 300)), draw.choice((0, 10, 2000))
        wrong, others = seated(driver, pool, tasks, count, rounds)
        assert wrong == 0
        helped += others
    assert bool(helped) == (count > 1)


def test_who_calls_has_the_first_seat_on_any_thread(driver, pool):
    """Callers that find the pool taken work alone, in the first seat of their own memory."""
    get = ctypes.CFUNCTYPE(ctypes.c_int32)(pool.seat_address)
    values, found = (ctypes.c_int64 * 400)(), []
    run, seat = ctypes.c_void_p(pool.run_address), ctypes.c_void_p(pool.seat_address)
    for _ in range(50):
        assert (
            driver.nested_seats(run, seat, values, ctypes.c_int64(20), ctypes.c_int64(20), 4) == 0
        )

    def call() -> None:
        for _ in range(200):
            driver.once(*arguments(pool, 30, 30, 20, 1, count=3))
            found.append(get())

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(SECONDS)
    assert found == [0] * 800


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets a register of x86-64")
def test_workers_round_as_their_caller_does(driver, pool):
    driver.flushed.restype = ctypes.c_int64
    for _ in range(50):
        assert driver.flushed(*arguments(pool, 40, 40, count=4)) == 0
        assert driver.kept(*arguments(pool, 40, 40, count=4)) == 40


def test_the_limit_holds_for_every_run(driver, pool):
    usual = pool.limit()
    try:
        pool.set_limit(1)
        assert pool.limit() == 1
        assert all(driver.takers(*arguments(pool, 20, 20, count=4)) == 1 for _ in range(20))
        pool.set_limit(2)
        assert all(driver.takers(*arguments(pool, 20, 20, count=4)) <= 2 for _ in range(20))
        with pytest.raises(ArgumentError, match="a limit of 0 threads: give 1 or more"):
            pool.set_limit(0)
    finally:
        pool.set_limit(None)
    assert pool.limit() == usual


LISTED = """
import threadpoolctl
from geon.transformers.native.machine import threads

def rows():
    return [row for row in threadpoolctl.threadpool_info() if row["user_api"] == "geon"]

assert rows() == []
pool = threads.load_pool()
found = [(row["num_threads"], row["filepath"]) for row in rows()]
assert found == [(pool.limit(), str(pool.path))], found
assert rows()[0]["version"] == threads.__version__
with threadpoolctl.threadpool_limits(1):
    assert pool.limit() == 1
    assert rows()[0]["num_threads"] == 1
assert pool.limit() == threads.default_threads()
"""


def test_threadpoolctl_lists_and_limits_the_pool():
    pytest.importorskip("threadpoolctl")
    done = subprocess.run([sys.executable, "-c", LISTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_it_is_loaded_once(pool):
    assert threads.load_pool() is pool


@pytest.mark.parametrize("pause", [0.0, 0.01])
def test_a_fork_while_the_workers_spin_or_sleep(driver_path, pause):
    program(
        f"""
for _ in range(20):
    assert once(100, 4, 100, 10) == 0
    time.sleep({pause})
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(once(100, 4, 100, 10) != 0 or not shared())
    assert os.waitpid(child, 0)[1] == 0
""",
        driver_path,
    )


@pytest.mark.slow
def test_a_fork_while_another_thread_uses_the_pool(driver_path):
    program(
        """
end = False
def hammer():
    while not end:
        assert once(50, 4, 200, 20) == 0
other = threading.Thread(target=hammer)
other.start()
for _ in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(once(100, 4, 100, 10) != 0 or not shared())
    assert os.waitpid(child, 0)[1] == 0
end = True
other.join()
assert once(100, 4, 100, 10) == 0
""",
        driver_path,
    )


@pytest.mark.parametrize("last", ["", "time.sleep(0.02)"])
def test_the_program_ends_while_workers_spin_or_sleep(driver_path, last):
    program(f"assert once(100, 4, 100, 10) == 0\n{last}\n", driver_path)


def test_the_program_ends_while_a_daemon_thread_uses_the_pool(driver_path):
    program(
        "threading.Thread(target=once, args=(1000, 4, 1000, 10**6), daemon=True).start()\n"
        "time.sleep(0.05)\n",
        driver_path,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_workers_take_no_signals_but_their_own_faults(driver_path):
    program(
        """
def masks():
    for thread in os.listdir("/proc/self/task"):
        lines = open(f"/proc/self/task/{thread}/status").read().splitlines()
        status = dict(line.split(":", 1) for line in lines)
        if status["Name"].strip() == "geon":
            yield int(status["SigBlk"], 16)

def has(mask, number):
    return bool(mask >> (number - 1) & 1)

assert once(100, 3, 100, 10) == 0
end = time.monotonic() + 10
# A thread that has not begun yet blocks everything.
while any(has(mask, signal.SIGSEGV) for mask in masks()) and time.monotonic() < end:
    time.sleep(0.001)
found = list(masks())
assert len(found) == 2, found
for mask in found:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGUSR1, signal.SIGCHLD):
        assert has(mask, number), number
    for number in (signal.SIGSEGV, signal.SIGFPE, signal.SIGBUS, signal.SIGILL):
        assert not has(mask, number), number
assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
""",
        driver_path,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_fewer_threads_than_wanted_do_all_the_work(driver_path):
    program(
        """
import resource
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (30 << 20), resource.RLIM_INFINITY))
assert once(1000, 64, 100, 10) == 0
names = [open(f"/proc/self/task/{t}/comm").read().strip() for t in os.listdir("/proc/self/task")]
assert names.count("geon") < 10, names
assert once(1000, 64, 100, 10) == 0
""",
        driver_path,
    )


HAMMER = r"""
#include <pthread.h>
#include <stdint.h>
#include <stddef.h>
#include <time.h>
void geon_pool_run(void (*task)(void *, int64_t), void *argument, int64_t count, int32_t threads);
void geon_set_num_threads(int32_t threads);
int32_t geon_seat(void);
enum { TASKS = 40, RUNS = 400, CALLERS = 3 };
struct job { int64_t values[TASKS], nested, parts[5][8]; };
static int wrong;

static void add(void *argument, int64_t index) { ((struct job *)argument)->values[index] += index; }
static void task(void *argument, int64_t index)
{
    struct job *job = argument, mine = {{0}, 0, {{0}}};
    int64_t *part = job->parts[geon_seat()]; /* no other thread of this run writes there */
    for (int i = 0; i < 8; i++)
        part[i] += index;
    if (job->nested)
        geon_pool_run(add, &mine, TASKS, 3);
    job->values[index] += index + (job->nested ? mine.values[index] : 0);
}
static void *caller(void *argument)
{
    int64_t number = (int64_t)(intptr_t)argument;
    for (int64_t run = 0; run < RUNS; run++) {
        struct job job = {{0}, (run + number) % 7 == 0, {{0}}};
        int64_t total = 0;
        geon_pool_run(task, &job, TASKS, 2 + (int32_t)(run % 4));
        for (int64_t i = 0; i < TASKS; i++)
            if (job.values[i] != i * (job.nested ? 2 : 1))
                __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        for (int seat = 0; seat < 5; seat++)
            total += job.parts[seat][run % 8];
        if (total != TASKS * (TASKS - 1) / 2)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        if (run % 50 == 0) { /* until the workers sleep */
            struct timespec pause = {0, 300000};
            nanosleep(&pause, NULL);
        }
        if (run % 100 == 99)
            geon_set_num_threads(run % 200 == 99 ? 2 : 0);
    }
    return NULL;
}
int main(void)
{
    pthread_t others[CALLERS];
    caller(NULL);
    for (int64_t i = 0; i < CALLERS; i++)
        pthread_create(&others[i], NULL, caller, (void *)(intptr_t)i);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(others[i], NULL);
    return wrong != 0;
}
"""


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_the_sanitizers_find_nothing(tmp_path, sanitizer):
    found = compilers.find_toolchain()
    assert found is not None
    main, binary = tmp_path / "main.c", tmp_path / "main"
    command = [*found.command, "-std=gnu11", "-O1", "-g", f"-fsanitize={sanitizer}"]
    main.write_text("int main(void) { return 0; }")
    status, _, said = compilers.run_compiler(command, [str(main), "-o", str(binary)])
    if status != 0:
        pytest.skip(f"{found.version} comes without -fsanitize={sanitizer}: {said.strip()[:200]}")
    main.write_text(HAMMER)
    source = str(FOLDER / "pool.c")
    arguments = ["-Wall", "-Wextra", "-Werror", source, str(main), "-pthread", "-o", str(binary)]
    status, _, said = compilers.run_compiler(command, arguments)
    assert status == 0, said
    # Some kernels place memory where the thread sanitizer does not expect any, unless told not to.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    done = subprocess.run([*fixed, str(binary)], capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_c_text_has_no_warnings(tmp_path):
    found = compilers.find_toolchain()
    assert found is not None
    source = str(FOLDER / "pool.c")
    arguments = [
        *found.flags,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-c",
        source,
        "-o",
        str(tmp_path / "pool.o"),
    ]
    assert compilers.run_compiler(found.command, arguments)[::2] == (0, "")


@pytest.mark.parametrize(("given", "expected"), [("1", 1), ("7", 7), ("1024", 1024)])
def test_geon_threads_is_the_default(monkeypatch, given, expected):
    monkeypatch.setenv(threads.THREADS, given)
    assert threads.default_threads() == expected


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5", "1025", " ", "9" * 30])
def test_a_bad_value_of_geon_threads_is_an_error(monkeypatch, given):
    monkeypatch.setenv(threads.THREADS, given)
    with pytest.raises(ArgumentError, match=r"GEON_THREADS='.*' is no number.* or unset it"):
        threads.default_threads()


def test_the_default_is_one_thread_per_processor(monkeypatch):
    for unset in (None, ""):
        monkeypatch.delenv(threads.THREADS, raising=False)
        if unset is not None:
            monkeypatch.setenv(threads.THREADS, unset)
        assert threads.default_threads() == threads.processors() >= 1


def groups(root: Path, own: str, files: dict[str, str]) -> int | None:
    """What a tree of control groups grants a process whose /proc/self/cgroup is ``own``."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "own").write_text(own)
    return threads._quota.__wrapped__(root / "own", root)


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {}, None),
        ("0::/\n", {"cpu.max": "max 100000\n"}, None),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "100000 100000\n"}, 1),
        ("0::/elsewhere\n", {"cpu.max": "300000 100000\n"}, 3),
        ("0::/\n", {"cpu.max": "nonsense"}, None),
        (
            "4:memory:/m\n3:cpu,cpuacct:/c\n0::/\n",
            {"cpu/c/cpu.cfs_quota_us": "50000\n", "cpu/c/cpu.cfs_period_us": "100000\n"},
            1,
        ),
        (
            "3:cpu:/c\n",
            {"cpu/c/cpu.cfs_quota_us": "-1\n", "cpu/c/cpu.cfs_period_us": "100000\n"},
            None,
        ),
    ],
)
def test_the_share_of_processors_a_control_group_grants(tmp_path, own, files, expected):
    assert groups(tmp_path, own, files) == expected
