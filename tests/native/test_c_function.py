"""``f.c_function``: what it says of the function is what C callers need, and enough for them."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.toolchain.shared_objects import shared_object

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

N, C = geon.Axis("N"), geon.Axis("C", 50)
FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p,
    ctypes.c_void_p,
)  # fmt: skip


@pytest.fixture
def transformer():
    with geon.make_transformer("native", threads=2) as made:
        yield made


def data(n: int) -> np.ndarray:
    return np.random.default_rng(n).random((n, 50), np.float32)


def several(transformer):
    """A computation with an input, two results, a large constant and a buffer."""
    x = geon.placeholder([N, C], name="x")
    table = geon.constant(np.linspace(-1, 1, 50), [C], dtype="float32")
    ordered = geon.sort(x * table, C)
    ordered.name = "ordered"
    return transformer.computation([ordered, geon.sum(geon.cumsum(ordered, C), C)], x)


def test_it_says_what_its_arguments_are(transformer):
    f = several(transformer)
    c = f.c_function
    assert c.signature == (
        "int64_t geon_run(void *const *p, const int64_t *n, int32_t threads, int64_t *report, "
        "void (*show)(int64_t kernel, const void *data))"
    )
    assert c.lengths == ("N",) and isinstance(c.address, int) and c.address
    assert repr(c).startswith("<int64_t geon_run(") and hex(c.address) in repr(c)
    kinds = [pointer.kind for pointer in c.pointers]
    assert kinds[:3] == ["input", "result", "result"] and set(kinds[3:]) <= {"constant", "buffer"}
    x, ordered, total = c.pointers[:3]
    assert (x.name, x.dtype, x.axes) == ("x", np.float32, f.placeholders[0].axes)
    assert (ordered.name, total.name) == ("ordered", None)
    assert [axis.name for axis in total.axes] == ["N"] and str(x.size) == "200*N"
    assert [p.size for p in c.pointers if p.kind == "constant"] == [a.nbytes for a in c.constants]


def test_variables_are_among_its_arguments(transformer):
    w = geon.Variable([C], initial_value=2.0, name="w", dtype="float64")
    c = transformer.computation(geon.assign(w, w * 2)).c_function
    pointer, kept = c.pointers
    assert kept.kind == "kept"
    assert (pointer.kind, pointer.name, pointer.size) == ("variable", "w", 400)
    assert pointer.dtype == np.float64 and c.lengths == () and c.constants == ()


@pytest.mark.parametrize("n", [1, 0, 7, 300])
def test_a_table_made_by_hand_from_what_it_says(transformer, n):
    f = several(transformer)
    c, x = f.c_function, data(n)
    arena = c.arena({N: n})
    memory = np.empty(arena.bytes + 64, np.uint8)
    start = memory.ctypes.data + -memory.ctypes.data % 64
    results = [np.empty((n, 50), np.float32), np.empty(n, np.float32)]
    nothing = np.zeros(64, np.uint8)  # readable memory for arrays without elements
    given = iter([x, *results, *c.constants])
    offsets = iter(arena.offsets)
    addresses = []
    for pointer in c.pointers:
        if pointer.kind == "buffer":
            addresses.append(start + next(offsets))
        else:
            array = next(given)
            addresses.append(array.ctypes.data if array.size else nothing.ctypes.data)
    report = (ctypes.c_int64 * 4)()
    p, lengths = (ctypes.c_void_p * len(addresses))(*addresses), (ctypes.c_int64 * 1)(n)
    assert FUNCTION(c.address)(p, lengths, 2, report, None) == 0
    for result, expected in zip(results, f(x), strict=True):
        np.testing.assert_array_equal(result, expected)


def test_the_arena_needs_the_open_lengths(transformer):
    c = several(transformer).c_function
    assert c.arena({N: 1000}).bytes >= c.arena({"N": 10}).bytes
    with pytest.raises(geon.ArgumentError, match="nothing gives the open lengths N"):
        c.arena()
    with pytest.raises(geon.ArgumentError, match="nothing has the open length 'M'"):
        c.arena({"M": 3})


def test_a_table_made_by_it(transformer):
    f = several(transformer)
    table = f.c_function.table(data(5))
    address = f.c_function.address
    assert FUNCTION(address)(table.pointers, table.lengths, 1, table.report, table.show) == 0
    for result, expected in zip(table.results, f(data(5)), strict=True):
        np.testing.assert_array_equal(result, expected)
    assert table.run(threads=2) == 0


def test_inputs_are_read_in_place_and_may_be_named(transformer):
    x = data(5)
    table = several(transformer).c_function.table(x=x)
    assert table.inputs[0] is x and table.pointers[0] == x.ctypes.data
    table.run()
    first = table.results[0].copy()
    x[:] = 0
    table.run()
    assert first.any() and not table.results[0].any()


def test_compiled_code_gets_arrays_that_are_aligned(transformer):
    axis, numbers = geon.Axis("D", 5000), np.arange(5000, dtype=np.float32)
    x = geon.placeholder([axis], name="x")
    unaligned = np.frombuffer(b"x" + numbers.tobytes(), np.float32, 5000, 1)
    assert not unaligned.flags.aligned
    w = geon.Variable([axis], initial_value=unaligned, name="w")
    f = transformer.computation(x * geon.constant(unaligned, [axis]) + w, x)
    table = f.c_function.table(unaligned)
    kinds = [pointer.kind for pointer in f.c_function.pointers]
    assert {"input", "variable", "constant"} <= set(kinds)
    assert not [kind for kind, at in zip(kinds, table.pointers, strict=False) if (at or 0) % 4]
    transformer.set(w, unaligned)
    np.testing.assert_array_equal(f(unaligned), numbers**2 + numbers)


def test_results_go_into_arrays_that_are_given(transformer):
    f, x = several(transformer), data(5)
    out = [np.empty((5, 50), np.float32), np.empty(5, np.float32)]
    table = f.c_function.table(x, out=out)
    assert table.run() == 0 and table.results[0] is out[0]
    np.testing.assert_array_equal(out[1], f(x)[1])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.empty(4, np.float32), r"shape \(4,\) .* shape \(5,\)"),
        (np.empty(5), "float64.* float32"),
        (np.empty(10, np.float32)[::2], "contiguous"),
        (np.broadcast_to(np.float32(1), 5), "writable"),
        ([0.0] * 5, "given list"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(transformer, array, message):
    c, first = several(transformer).c_function, np.empty((5, 50), np.float32)
    with pytest.raises(geon.FeedError, match=message):
        c.table(data(5), out=[first, array])
    with pytest.raises(geon.ArgumentError, match="out has 1 arrays and there are 2 results"):
        c.table(data(5), out=[first])


def test_inputs_that_do_not_fit_are_refused_as_in_a_call(transformer):
    f = several(transformer)
    for take in (f, f.c_function.table):
        with pytest.raises(geon.FeedError, match="placeholder x"):
            take(np.ones(3, np.float32))
        with pytest.raises(geon.ArgumentError, match="needed"):
            take()


def test_it_writes_the_variables_of_the_transformer(transformer):
    w = geon.Variable([C], initial_value=1.0)
    x = geon.placeholder([C])
    f = transformer.computation([geon.sum(w), geon.assign(w, w + x)], x)
    table = f.c_function.table(np.full(50, 2, np.float32))
    assert (transformer.get(w) == 1).all()
    assert table.run() == 0 and table.run() == 0
    assert (transformer.get(w) == 5).all() and table.results[0] == 150
    f(np.zeros(50, np.float32))
    assert table.run() == 0 and table.results[0] == 250


def test_a_failure_gives_the_number_of_its_kernel(transformer):
    w = geon.Variable([], initial_value=1.0)
    x, index = geon.placeholder([C]), geon.placeholder([N], dtype="int64")
    f = transformer.computation([geon.gather(x, index, C), geon.assign(w, w + 1)], x, index)
    kernels = f.plan.schedule.kernels
    checks = [k for k, kernel in enumerate(kernels) if kernel.op.primitive.name == "checked"]
    right, wrong = np.array([0, -50, 49]), np.array([1, 50, -70])
    values = np.arange(50, dtype=np.float32)
    good, bad = (f.c_function.table(values, index) for index in (right, wrong))
    assert bad.run() - 1 in checks and transformer.get(w) == 1
    assert list(bad.report[:2]) == [-70, 50]
    assert good.run() == 0 and transformer.get(w) == 2
    assert list(good.results[0]) == [0, 0, 49]


def test_what_it_prints_is_printed(transformer, capsys):
    x = geon.placeholder([N], name="x")
    f = transformer.computation([x + 1, geon.print(x, "x")], x)
    values = np.array([1, 2.5], np.float32)
    f(values)
    expected = capsys.readouterr().out
    table = f.c_function.table(values)
    assert table.run() == 0
    assert capsys.readouterr().out == expected == "x = [1.  2.5]\n"


def test_a_program_in_c_calls_it(transformer):
    f, x = several(transformer), data(9)
    c = f.c_function
    text = f"""
#include <stdint.h>
typedef {c.signature.replace("geon_run", "run_type")};
int64_t caller(run_type *run, void *const *p, int64_t count);
int64_t caller(run_type *run, void *const *p, int64_t count)
{{
    int64_t report[4];
    return run(p, &count, 1, report, 0);
}}
"""
    caller = ctypes.CDLL(str(shared_object(find_toolchain(), [text]))).caller
    caller.restype = ctypes.c_int64
    table = c.table(x)
    assert caller(ctypes.c_void_p(c.address), table.pointers, ctypes.c_int64(9)) == 0
    np.testing.assert_array_equal(table.results[0], f(x)[0])


def test_threads_call_it_at_the_same_time(transformer):
    f = several(transformer)
    inputs = [data(n) for n in (40, 41, 42, 43)]
    expected = [f(x)[0].copy() for x in inputs]
    tables = [f.c_function.table(x) for x in inputs]
    failed = []

    def work(k: int) -> None:
        for _ in range(50):
            tables[k].results[0][:] = 0
            if tables[k].run() or not np.array_equal(tables[k].results[0], expected[k]):
                failed.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_a_table_outlives_all_else():
    transformer = geon.make_transformer("native")
    f = several(transformer)
    x = data(6)
    expected = f(x)[0].copy()
    table = f.c_function.table(x.copy())
    transformer.close()
    del f, transformer
    gc.collect()
    assert table.run() == 0
    np.testing.assert_array_equal(table.results[0], expected)


def test_two_computations_of_one_form_have_one_function(transformer):
    first, second = (
        transformer.computation(geon.exp(x) + 1, x)
        for x in (geon.placeholder([C], name="a"), geon.placeholder([C], name="b"))
    )
    assert first.c_function.address == second.c_function.address
    assert [f.c_function.pointers[0].name for f in (first, second)] == ["a", "b"]


def test_kept_ops_are_results(transformer):
    x = geon.placeholder([C], name="x")
    y = geon.exp(x)
    y.name = "y"
    f = transformer.computation(geon.sum(y), x, keep=[y])
    assert [p.name for p in f.c_function.pointers if p.kind == "result"] == [None, "y"]
    table = f.c_function.table(np.zeros(50, np.float32))
    assert table.run() == 0 and (table.results[1] == 1).all() and table.results[0] == 50


def test_other_transformers_say_which_can():
    x = geon.placeholder([C])
    with geon.NumPyTransformer() as transformer:
        f = transformer.computation(x + 1, x)
        with pytest.raises(geon.UnavailableError, match=r'numpy.*make_transformer\("native"\)'):
            _ = f.c_function
