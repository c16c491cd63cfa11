"""Large and long: sizes that overflow or exceed memory, deep graphs, Ctrl-C during a call."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import geon
from geon.op_graph.op_graph import interned_count
from tests.kinds import numpy_only
from tests.places import here

MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
DEEP = 100_000


def says(caught, *parts):
    """Every part is in the message."""
    for part in parts:
        assert part in str(caught.value), f"{part!r} is not in: {caught.value}"


def test_axes_of_several_tables_are_no_loops_together(transformer):
    """One kernel reads six tables whose lengths, multiplied, are beyond counting."""
    N = geon.Axis("N")
    at = geon.placeholder(N, "int64")
    tables = [geon.Variable([geon.Axis(f"T{k}", 2000)], initial_value=k) for k in range(6)]
    total = sum((geon.gather(table, at) for table in tables), start=geon.constant(0.0))
    assert 2000**6 > 2**63
    assert list(transformer.computation(total, at)([3, 1999])) == [15, 15]


# Memory -----------------------------------------------------------------------------------------


def test_an_integer_overflow_of_a_size(transformer):
    x = geon.placeholder()
    B, D = geon.Axis("B", 2**40), geon.Axis("D", 2**40)
    y, line = geon.exp(geon.broadcast(x, [B, D]) * 2, name="y"), here()
    f = transformer.computation(geon.sum(y), x)
    if transformer.target.name == "numpy":  # native code keeps none of it, and cannot count to it
        assert f.peak_bytes() > 2**63
    with pytest.raises(geon.SizeError) as caught:
        f(1)
    says(caught, "more than a 64-bit size can say", "nothing was allocated", "smaller lengths")
    says(caught, f"{4 * 2**80:,} bytes", line)
    assert isinstance(caught.value, MemoryError)
    v, line = geon.Variable([B, D], initial_value=0, name="v"), here()
    with pytest.raises(geon.SizeError) as caught:
        transformer.get(v)
    says(caught, "v(B:", line, f"{4 * 2**80:,} bytes", "64-bit")


def test_an_overflow_that_only_data_bring(transformer):
    N = geon.Axis("N")
    x = geon.placeholder(N)
    y = geon.broadcast(x, [N, *(geon.Axis(f"N{k}", "N") for k in range(5))])
    f = transformer.computation(geon.sum(y * y), x)
    assert f([2.0]) == 4
    with pytest.raises(geon.SizeError, match="64-bit"):
        f(np.ones(10_000))


def test_a_result_larger_than_memory_is_refused(transformer):
    N = geon.Axis("N")
    x = geon.placeholder()
    y, line = geon.exp(geon.broadcast(x, N) * 2, name="y"), here()
    f = transformer.computation(y, x, lengths={N: MEMORY // 4 + 1})
    with pytest.raises(geon.SizeError) as caught:
        f(1)
    says(caught, "nothing was allocated", line)


@numpy_only  # native code keeps none of the value
def test_a_computation_larger_than_memory_is_refused_before_allocation(transformer):
    N = geon.Axis("N")
    x, v = geon.placeholder(), geon.Variable(initial_value=1)
    y, line = geon.exp(geon.broadcast(x, N) * 2, name="y"), here()
    results = [y, geon.assign(v, 2)]
    count = MEMORY // 4 + 1
    f = transformer.computation(results, x, lengths={N: count})
    needed = f.peak_bytes()
    assert needed > MEMORY
    start = time.perf_counter()
    with pytest.raises(geon.SizeError) as caught:
        f(1)
    assert time.perf_counter() - start < 5
    says(caught, f"needs {needed:,} bytes", f"this machine has {MEMORY:,}", "nothing was allocated")
    says(caught, f"{4 * count:,} bytes", line, "smaller lengths")
    assert transformer.get(v) == 1
    big, line = geon.Variable(geon.Axis("B", count), initial_value=0, name="big"), here()
    with pytest.raises(geon.SizeError) as caught:
        transformer.get(big)
    says(caught, "variable big(B:", line, f"{4 * count:,} bytes", f"{MEMORY:,}")
    assert transformer.computation(v + x, x)(1) == 2  # others go on


# Depth ------------------------------------------------------------------------------------------


# What a C compiler takes for each op is a hundred times what all else takes.
@pytest.mark.slow
@pytest.mark.parametrize(("transformer_name", "deep"), [("numpy", DEEP), ("native", DEEP // 25)])
def test_a_deep_graph(monkeypatch, make, deep):
    monkeypatch.delenv("GEON_DEBUG", raising=False)  # the verifier is no part of the figure
    before = interned_count()
    x = geon.placeholder(axes=geon.Axis("N"))
    y = x
    for _ in range(deep // 2):
        y = geon.sin(y * 1.0001)
    y = geon.sum(y)
    d = geon.deriv(y, x)
    assert interned_count() - before > 2 * deep
    with make() as transformer:
        f = transformer.computation([y, d], x)
        value, slope = f([0.5, -0.5])
        assert abs(value) < 1e-6 and slope[0] == slope[1] and 0 < slope[0] < 1
        assert str(y) and repr(d) and y._repr_html_() and len(y.placeholders()) == 1
    del f, y, d
    gc.collect()
    assert interned_count() - before < 100


@pytest.mark.slow
def test_a_deep_graph_is_written_and_read():
    y = x = geon.placeholder()
    for _ in range(DEEP // 4):
        y = geon.sin(y * 1.0001)
    (again,) = geon.loads(geon.dumps(y))
    assert again.placeholders()[0] is not x
    assert geon.dumps(again, notes=False) == geon.dumps(y, notes=False)


def test_a_long_sequence_of_effects(transformer):
    v = geon.Variable(initial_value=0)
    f = transformer.computation(geon.sequential([geon.assign(v, v + 1)] * 2000))
    f()
    assert transformer.get(v) == 2000


# Ctrl-C -----------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, threading, time
import numpy as np
import geon

signal.signal(signal.SIGINT, signal.default_int_handler)  # also where it was ignored
N, K = geon.Axis("N", 700), geon.Axis("K", 700)
w = geon.Variable([N, K], initial_value=1, name="w")
count = geon.Variable(initial_value=0, name="count")
value = w
for _ in range(40):
    value = geon.rename(geon.dot(value, geon.rename(w, {N: "K", K: "M"}), over=K), {"M": "K"}) / 700
transformer = geon.make_transformer("NAME")
step = transformer.computation(geon.doall([geon.assign(w, value), geon.assign(count, count + 1)]))
step()
before = transformer.get(count)
start = time.perf_counter()
step()
took = time.perf_counter() - start
threading.Timer(took / 3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        step()
except KeyboardInterrupt:
    pass
after = transformer.get(count)
assert after > before, (before, after)
np.testing.assert_allclose(transformer.get(w), 1, rtol=1e-3)
step()
assert transformer.get(count) == after + 1
transformer.computation(w + 1)()
print("whole", signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""


@pytest.mark.timeout(310)
def test_ctrl_c_during_a_call_is_deferred_to_its_end(transformer_name):
    source = textwrap.dedent(INTERRUPTED).replace("NAME", transformer_name)
    run = [sys.executable, "-c", source]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert (done.stdout, done.returncode) == ("whole True\n", 0), done.stderr


@numpy_only  # of whose runtime it replaces a function
def test_ctrl_c_reaches_a_handler_of_the_users_once_the_call_is_over(transformer, monkeypatch):
    seen = []
    v = geon.Variable(initial_value=0)
    step = transformer.computation([geon.print(v, "v"), geon.assign(v, v + 1)])
    outer = signal.signal(signal.SIGINT, lambda *_: seen.append(float(transformer.get(v))))
    monkeypatch.setattr("builtins.print", lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        step()
    finally:
        signal.signal(signal.SIGINT, outer)
    assert seen == [1.0]
