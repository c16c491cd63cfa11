"""Ctrl-C ends the loops of a call: variables are as they were, and all goes on afterwards."""

import os
import subprocess
import sys
import textwrap

import pytest

from geon.transformers.native.toolchain.compilers import find_toolchain, missing_compiler

# How soon a call ends: what is promised is 0.2 seconds, and the machine may be busy.
SOON = 2.0
PROGRAM = """
    import os, signal, sys, threading, time
    import numpy as np
    import geon

    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
    kind, threads, form, writing = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4] == "w"
    transformer = geon.make_transformer(kind, **({"threads": threads} if threads else {}))
    N, H, T, K = geon.Axis("N", 300), geon.Axis("H", 24), geon.Axis("T"), geon.Axis("K")
    matrix = np.random.default_rng(0).normal(size=(24, 24)).astype(np.float32)
    w = geon.constant(0.2 * matrix, [H.prime, H])

    def logistic(c, _):
        return 3.7 * c * (1 - c), None

    def product(c, _):
        return geon.tanh(geon.dot(geon.cast_axes(c, [H.prime]), w)), None

    def nest(c, _):
        return geon.scan(product, c, geon.iota(K), over=K)[0], None

    def branch(c, k):
        return geon.cond(k >= 0, lambda: geon.scan(product, c, geon.iota(K), over=K)[0],
                         lambda: c), None

    def until(c, _):
        found, _ = geon.while_loop(
            lambda d: d[1] < geon.cast(geon.tensor_size(geon.iota(K)), "int64"),
            lambda d: (product(d[0], None)[0], d[1] + 1), (c, 0))
        return found, None

    axes, step = {
        "scalar": ([], logistic), "rows": ([N], logistic), "kernels": ([H], product),
        "nest": ([H], nest), "branch": ([H], branch), "until": ([H], until),
    }[form]
    first = geon.placeholder(axes, name="first")
    v = geon.Variable([], initial_value=0.0, name="v")
    u = geon.Variable([], initial_value=1.0, name="u")
    last, _ = geon.scan(step, first, geon.iota(T), over=T)
    total = geon.sum(last)
    results = [last]
    if writing:  # what is set before the loop, in the order of the graph, is set after it
        last, _ = geon.scan(step, first + 0 * u, geon.iota(T), over=T)
        results = [geon.sequential([geon.assign(u, u + 1), geon.assign(v, v + geon.sum(last))])]

    def made(count, inner=3):
        lengths = {T: count, **({K: inner} if form in ("nest", "branch", "until") else {})}
        return transformer.computation(results, first, lengths=lengths)

    given = np.full([axis.length for axis in axes], 0.3, np.float32)
"""
ENDLESS = """
    inner = form in ("branch", "until")
    f, g = made(2 if inner else 10**9, 10**9 if inner else 3), made(10)
    g(given)
    for turn in range(3):
        before = transformer.get(v), transformer.get(u)
        timer = threading.Timer(0.05 + 0.1 * turn, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.perf_counter()
        try:
            f(given)
            print("not interrupted")
        except KeyboardInterrupt:
            print(time.perf_counter() - begin - 0.05 - 0.1 * turn)
        timer.join()
        assert (transformer.get(v), transformer.get(u)) == before
        g(given)
        assert (transformer.get(u) == before[1] + 1) == writing
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def ran(program, *arguments):
    """What a program printed, a number in each line."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM) + textwrap.dedent(program), *arguments],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return [float(line) for line in done.stdout.split("\n") if line]


compiled = pytest.mark.skipif(find_toolchain() is None, reason=missing_compiler())
FORMS = ["scalar", "rows", "kernels", "nest", "branch", "until"]


@compiled
@pytest.mark.parametrize("writing", ["w", "-"])
@pytest.mark.parametrize(
    "threads, form", [*(("2", form) for form in FORMS), ("1", "rows"), ("1", "kernels")]
)
def test_native_loops_end(form, threads, writing):
    assert max(ran(ENDLESS, "native", threads, form, writing)) < SOON


@pytest.mark.parametrize("writing", ["w", "-"])
@pytest.mark.parametrize("form", ["kernels", "branch", "until"])
def test_numpy_loops_end(form, writing):
    assert max(ran(ENDLESS, "numpy", "0", form, writing)) < SOON


WITHOUT_END = """
    H = geon.Axis("H", 2)
    start = geon.broadcast(v, [] if form == "scalar" else [H])
    turned = (lambda c: c) if form == "scalar" else (lambda c: geon.cumsum(c, H) * 0 + 1)
    last = geon.while_loop(lambda c: geon.sum(c) >= 0, turned, start)
    f = transformer.computation([geon.assign(u, u + 1), geon.assign(v, v + geon.sum(last))])
    transformer.set(v, -1)
    f()
    transformer.set(v, 1)
    before = transformer.get(v), transformer.get(u)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.perf_counter()
    try:
        f()
    except KeyboardInterrupt:
        print(time.perf_counter() - begin - 0.1)
    assert (transformer.get(v), transformer.get(u)) == before
    transformer.set(v, -1)
    f()
    assert transformer.get(u) == before[1] + 1
"""


@compiled
@pytest.mark.parametrize(
    "kind, form, soon",
    [
        ("numpy", "rows", SOON),
        ("native", "scalar", SOON),
        ("cuda-on-host", "rows", SOON),
        ("cuda-on-host", "scalar", 100),  # 16,384 turns, that the host takes seconds for
    ],
)
def test_a_while_loop_without_an_end_ends(kind, form, soon):
    assert max(ran(WITHOUT_END, kind, "0", form, "-")) < soon


# A call whose length is known to take about so many seconds.
TIMED = """
    def seconds(f):
        begin = time.perf_counter()
        f(given)
        return time.perf_counter() - begin

    def taking(wanted):
        count = 10_000
        while True:
            f = made(count)
            f(given)
            took = seconds(f)
            if took > wanted / 3:
                return f, took
            count = int(count * min(100, max(2, 0.8 * wanted / took)))
"""
SHORT_WAY = """
    f, took = taking(0.9)
    assert f._calls[()].entry is not None
    before = transformer.get(v)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.perf_counter()
    try:
        f(given)
    except KeyboardInterrupt:
        print((time.perf_counter() - begin) / took)
    assert transformer.get(v) == before
    f(given)
"""


@compiled
@pytest.mark.parametrize("writing", ["w", "-"])
@pytest.mark.parametrize("form", ["rows", "kernels"])
def test_calls_by_the_short_way_end(form, writing):
    assert max(ran(textwrap.dedent(TIMED) + textwrap.dedent(SHORT_WAY), "native", "2", form,
                   writing)) < 0.8  # fmt: skip


OWN_HANDLER = """
    f, took = taking(0.5)
    want, called = f(given), []
    signal.signal(signal.SIGINT, lambda number, frame: called.append(number))
    timer = threading.Timer(took / 5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    np.testing.assert_array_equal(f(given)[0], want[0])
    timer.join()
    assert called == [signal.SIGINT]
    print(0)
"""
OTHER_THREAD = """
    f, took = taking(0.6)
    want, found = f(given), []
    other = threading.Thread(target=lambda: found.append(f(given)))
    endless = made(10**9)
    timer = threading.Timer(took / 4, os.kill, (os.getpid(), signal.SIGINT))
    other.start()
    timer.start()
    try:
        endless(given)
    except KeyboardInterrupt:
        print(0)
    other.join()
    np.testing.assert_array_equal(found[0][0], want[0])
"""


@compiled
@pytest.mark.parametrize("program", [OWN_HANDLER, OTHER_THREAD], ids=["handler", "thread"])
@pytest.mark.parametrize("form", ["rows", "kernels"])
def test_nothing_else_ends(form, program):
    program = textwrap.dedent(TIMED) + textwrap.dedent(program)
    assert ran(program, "native", "2", form, "-") == [0]
