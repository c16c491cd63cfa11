"""Memory: shared code moves whole arrays in and out, and looks at no element by itself."""

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.testing import assert_agrees
from geon.transformers.runtime.memory import HOST, MIN_HUGE_PAGE_BYTES, carry_functions
from tests.transformers.apart_memory import ApartMemory, ApartTransformer, Handle

C, D = geon.Axis("C", 4), geon.Axis("D", 3)
N = geon.Axis("N")


@pytest.fixture
def apart():
    with ApartTransformer() as made:
        yield made


def layer():
    x = geon.placeholder([N, C], name="x")
    w = geon.Variable([C, D], initial_value=geon.Random(0).normal([C, D]), name="w")
    b = geon.Variable([D], initial_value=lambda axes: np.arange(3.0), name="b")
    loss = geon.mean(geon.square(geon.tanh(geon.dot(x, w) + b)))
    dw, db = geon.deriv(loss, [w, b])
    step = geon.doall([geon.assign(w, w - 0.5 * dw), geon.assign(b, b - 0.5 * db)])
    return x, w, b, loss, step


def test_training_gives_what_the_host_gives(apart):
    x, w, b, loss, step = layer()
    data = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    with geon.NumPyTransformer() as host:
        for transformer in (apart, host):
            f = transformer.computation([loss, step], x)
            for n in (5, 2, 5):
                f(data[:n])
        for variable in (w, b):
            np.testing.assert_allclose(apart.get(variable), host.get(variable), rtol=1e-5)
    assert all(isinstance(slot.value, Handle) for slot in apart.state.slots)


@pytest.mark.parametrize("make", [geon.NumPyTransformer, geon.NativeTransformer])
@pytest.mark.parametrize("length", [1, 3, 16, 1000, 300_001])
def test_variables_begin_at_lines_of_cache(make, length, tmp_path):
    """However they get their values: vectors of elements then lie in no two lines."""
    axis = geon.Axis("C", length)
    given = np.arange(length, dtype=np.float32)
    variables = [
        geon.Variable([axis], initial_value=given, name="given"),
        geon.Variable([axis], initial_value=0.0, name="number"),
        geon.Variable([axis], dtype="int8", name="set"),
        geon.Variable([axis], dtype="bool", name="truths"),
    ]
    path = tmp_path / "model"
    with make() as first, make() as second:
        for transformer in (first, second):
            transformer.computation(variables)
        for v in variables[2:]:
            first.set(v, given.astype(v.dtype.name))
        first.save(path)
        second.restore(path)
        values = [slot.value for t in (first, second) for slot in t.state.slots]
        assert [value.shape for value in values] == [(length,)] * 8
        assert all(value.ctypes.data % 64 == 0 for value in values)


def test_values_are_copied_in_and_out(apart):
    v = geon.Variable([C], initial_value=1.0, name="v")
    given = np.arange(4, dtype=np.float32)
    apart.set(v, given)
    given[:] = 9
    first = apart.get(v)
    np.testing.assert_array_equal(first, [0, 1, 2, 3])
    first[:] = 7
    np.testing.assert_array_equal(apart.get(v), [0, 1, 2, 3])


def test_feeds_results_and_out(apart):
    x = geon.placeholder([N], name="x")
    f = apart.computation([x * 2, geon.sum(x)], x)
    out = np.zeros(3, np.float32)
    doubled, total = f([1, 2, 3], out=[out, None])
    assert doubled is out and total == 6 and isinstance(total, np.ndarray)
    np.testing.assert_array_equal(out, [2, 4, 6])
    kept, _ = f(out)
    f([5, 5, 5])
    np.testing.assert_array_equal(kept, [4, 8, 12])


def test_large_constants_lie_there(apart):
    table = np.arange(300, dtype=np.float32).reshape(100, 3)
    x = geon.placeholder([N, D], name="x")
    y = geon.dot(x, geon.constant(table, [geon.Axis("R", 100), D]))
    assert_agrees(apart, [y], {x: np.ones((2, 3), np.float32)})


def test_save_and_restore(apart, tmp_path):
    x, w, b, loss, step = layer()
    f = apart.computation([loss, step], x)
    data = np.ones((2, 4), np.float32)
    f(data)
    apart.save(tmp_path / "one")
    saved = apart.get(w), apart.get(b)
    f(data)
    apart.restore(tmp_path / "one")  # into values that are there
    with ApartTransformer() as second, geon.NumPyTransformer() as host:
        for transformer in (second, host):
            transformer.computation([loss, step], x)
            transformer.restore(tmp_path / "one")  # into new ones
        for transformer in (apart, second, host):
            np.testing.assert_array_equal(transformer.get(w), saved[0])
            np.testing.assert_array_equal(transformer.get(b), saved[1])


def test_initialize_allocate_and_effects_in_order(apart):
    v = geon.Variable([C], initial_value=2.0, name="v")
    count = geon.Variable(initial_value=0, dtype="int64", name="count")
    up = apart.computation([geon.sequential([geon.assign(count, count + 1)] * 2), v])
    apart.allocate()
    apart.initialize()
    nothing, value = up()
    assert nothing is None and apart.get(count) == 2
    np.testing.assert_array_equal(value, [2, 2, 2, 2])
    apart.set(v, np.zeros(4))
    apart.initialize(force=True)
    np.testing.assert_array_equal(apart.get(v), [2, 2, 2, 2])
    assert apart.get(count) == 0


def test_slices_of_variables_draws_keep_and_override(apart):
    v = geon.Variable([C], initial_value=0.0, name="v")
    drawn = geon.Random(3).uniform([C], name="drawn")
    f = apart.computation(geon.assign(v[1:3], drawn[1:3] + 1), keep=[drawn])
    f()
    first = f.value(drawn)
    np.testing.assert_allclose(apart.get(v), [0, *(first[1:3] + 1), 0])
    f.override(drawn, np.zeros(4))
    f()
    np.testing.assert_array_equal(apart.get(v), [0, 1, 1, 0])


def test_a_call_that_raises_leaves_variables(apart):
    x = geon.placeholder([C], name="x")
    v = geon.Variable([C], initial_value=1.0, name="v")
    f = apart.computation([geon.assign(v, geon.log(x))], x, check="nan")
    with pytest.raises(geon.NonFiniteError, match="log"):
        f([1, 0, 1, 1])
    np.testing.assert_array_equal(apart.get(v), [1, 1, 1, 1])


def test_trace_and_dumps_read_copies(apart):
    x, w, _, loss, step = layer()
    f = apart.computation([loss, step], x)
    data = np.ones((2, 4), np.float32)
    traced = {str(entry.op): entry.value for entry in f.trace(data)}
    np.testing.assert_array_equal(traced["w(C:4, D:3)"], apart.get(w))
    assert "w" in f.dumps(data)


def test_what_nothing_refers_to_is_freed():
    transformer = ApartTransformer()
    x = geon.placeholder([N], name="x")
    v = geon.Variable([C], initial_value=1.0)
    f = transformer.computation([geon.sum(x) + v], x)
    for n in range(20):
        f(np.ones(n + 1))
    gc.collect()
    held = len(transformer.memory.table)
    for n in range(20):
        f(np.ones(n + 1))
    gc.collect()
    assert len(transformer.memory.table) == held < 10
    transformer.close()
    gc.collect()
    assert len(transformer.memory.table) == 0


def test_the_host_moves_nothing():
    functions = [len, max, min, sum, abs]
    assert carry_functions(HOST, functions) is functions
    bind, run, sizes = carry_functions(ApartMemory(), functions)
    assert (bind, sizes) == (len, min) and run is not max


def test_the_second_memory_is_apart():
    memory = ApartMemory()
    value = memory.copy_in(np.arange(3))
    for look in (np.asarray, lambda v: np.add(v, 1), lambda v: np.copyto(np.zeros(3), v), bool):
        with pytest.raises(AssertionError):
            look(value)
    late = memory.copy_out(value)
    assert late.tolist() != [0, 1, 2]
    memory.synchronise()
    assert late.tolist() == [0, 1, 2]


@pytest.mark.parametrize("alignment", [1, 64, 4096])
@pytest.mark.parametrize("shape", [(), (0,), (3, 5)])
def test_the_memory_of_the_host(shape, alignment):
    value = HOST.allocate(shape, np.dtype(np.float32), alignment)
    assert value.shape == shape and value.dtype == np.float32
    assert value.size == 0 or value.ctypes.data % alignment == 0
    array = np.full(shape, 3, np.float32)
    assert HOST.copy_in(array) is array and HOST.copy_in(array, value) is value
    out = HOST.copy_out(value)
    assert out is not value and not np.shares_memory(out, value)
    np.testing.assert_array_equal(out, array)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says how pages are asked for")
@pytest.mark.parametrize(
    "size", [1, MIN_HUGE_PAGE_BYTES - 1, MIN_HUGE_PAGE_BYTES, 3 * MIN_HUGE_PAGE_BYTES + 5]
)
def test_no_large_pages_are_asked_for(size):
    """Values begin where they are asked to, are written and read, and given back in the end."""
    value = HOST.allocate((size,), np.uint8, 256)
    address = value.ctypes.data
    assert address % 256 == 0 and value.shape == (size,)
    value[:] = 3
    assert int(value.sum()) == 3 * size
    if size >= MIN_HUGE_PAGE_BYTES:
        assert "hg" not in flags_at(address + size // 2)  # NumPy asks for all but the ends
    del value
    gc.collect()


def flags_at(address):
    """The flags of the mapping that an address is in, as Linux names them."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split()[0]
        if "-" in first and not first.endswith(":"):
            low, high = (int(part, 16) for part in first.split("-"))
            inside = low <= address < high
        elif inside and first == "VmFlags:":
            return line.split()[1:]
    raise AssertionError(f"no mapping has {address:x}")


def test_memory_that_is_not_there_is_an_error_before_anything_is_changed():
    with pytest.raises(MemoryError, match="no room for 4,611,686,018,427,387,968 bytes"):
        HOST.allocate((1 << 62,), np.uint8)
