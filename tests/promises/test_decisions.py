"""Statements of ``docs/design`` on programs and memory that no other test holds."""

import ast
import gc
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.transformers.native.runtime import result_pool
from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.kinds import numpy_only

N, K, M = geon.Axis("N"), geon.Axis("K", 1000), geon.Axis("M", 700)
needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
native_only = pytest.mark.parametrize("transformer_name", ["native"])


def forms(f):
    """The form of each kernel, and the rows of its results."""
    return [
        (kernel.kind, *(op.primitive.name for op in kernel.results))
        for kernel in f.plan.schedule.kernels
    ]


def test_geon_has_no_list_of_its_names():
    assert "__all__" not in vars(geon)


def test_nothing_is_pickled_and_only_emitted_programs_are_executed():
    root = Path(geon.__file__).parent
    called: dict[str, set[str]] = {}
    words = re.compile(r"\b(pickle|marshal|shelve|dill|exec|eval|compile|__import__)\b")
    for path in root.rglob("*.py"):
        place, text = path.relative_to(root).as_posix(), path.read_text()
        for node in ast.walk(ast.parse(text)) if words.search(text) else ():
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.name for alias in node.names]
                names += [getattr(node, "module", None) or ""]
                assert not {"pickle", "marshal", "shelve", "dill"} & set(names), place
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id in ("exec", "eval", "compile", "__import__"):
                    called.setdefault(place, set()).add(node.func.id)
    # Programs of NumPy, code that recognises pending graphs, and methods of geon's own classes.
    # The last two have no text of a user.
    emitted = {
        "transformers/numpy/transformer.py": {"exec", "compile"},
        "eager/tape.py": {"exec"},
        "lazy_dataclasses.py": {"exec"},
    }
    assert called == emitted


# Native kernels -----------------------------------------------------------------------------------


@needs_compiler
@native_only
def test_what_is_cheap_is_computed_again_and_elementary_functions_are_not(transformer):
    x = geon.placeholder([N, K])
    mask = geon.where(x > 0, 1.0, 0.0)
    f = transformer.computation([geon.sum(mask * x, K), geon.sum(mask * 2, N)], x)
    assert f.plan.buffers == () and len(f.plan.schedule.kernels) == 2
    slow = geon.exp(x)
    f = transformer.computation([geon.sum(slow, K), geon.sum(slow * x, N)], x)
    assert len(f.plan.buffers) == 1
    assert ["exp" in form for form in forms(f)].count(True) == 1


@needs_compiler
@native_only
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_what_is_a_product(transformer, dtype):
    def form(*axes):
        x, y = (geon.placeholder(own, dtype) for own in axes)
        (kind, *_), *more = forms(transformer.computation(geon.dot(x, y), x, y))
        assert not more
        return kind

    floats = "nest" if dtype == "int32" else "contraction"
    assert form([N, K], [K, M]) == floats
    assert form([N, K], [K]) == floats
    assert form([K], [K]) == "nest"
    assert form([N, geon.Axis("S", 3)], [geon.Axis("S", 3)]) == "nest"


@needs_compiler
@native_only
def test_a_softmax_divides_each_row_once(transformer):
    x = geon.placeholder([N, K])
    shown = transformer.computation(geon.softmax(x, K), x).explain("simplify").splitlines()
    (divided,) = [line for line in shown if "divide(" in line or "reciprocal(" in line]
    assert " (N) " in divided


@needs_compiler
@native_only
def test_a_replaced_part_of_a_constant_is_a_border(transformer):
    x = geon.placeholder([N, K])
    parts = geon.square(x[:, 1:5]), geon.square(x[:, 2:])
    f = transformer.computation(geon.deriv(sum(geon.sum(part) for part in parts), x), x)
    assert f.plan.buffers == () and forms(f) == [("nest", "add")]
    assert "pad(" in f.explain("simplify") and "update(" not in f.explain("simplify")


@needs_compiler
@native_only
def test_large_results_come_from_memory_that_was_dropped(transformer):
    result_pool.clear()
    x = geon.placeholder([N, geon.Axis("R", 1024)])
    f = transformer.computation(x + 1, x)
    data = np.zeros((1024, 1024), np.float32)
    first = f(data)
    place = first.ctypes.data
    look = first[5:, ::3]
    del first
    assert f(data).ctypes.data != place  # what looks at the result keeps it
    assert (look == 1).all()
    del look
    gc.collect()
    found = [f(data) for _ in range(3)]
    assert place in [value.ctypes.data for value in found]
    assert all(value.ctypes.data % 64 == 0 for value in found)
    held = sum(block.nbytes for block in result_pool._free)
    small = f(data[:2])
    del small
    assert sum(block.nbytes for block in result_pool._free) == held


def test_at_most_256_mib_are_kept(monkeypatch):
    assert result_pool.MAX_POOL_BYTES == 256 << 20
    assert result_pool.MIN_POOLED_BYTES == 1 << 20
    monkeypatch.setattr(result_pool, "MAX_POOL_BYTES", 3 << 20)
    result_pool.clear()
    blocks = [result_pool.allocate_pooled((1 << 20,), np.dtype("uint8")) for _ in range(5)]
    del blocks
    gc.collect()
    assert sum(block.nbytes for block in result_pool._free) == 3 << 20
    result_pool.clear()


def test_what_came_back_longest_ago_goes_first(monkeypatch):
    monkeypatch.setattr(result_pool, "MAX_POOL_BYTES", 3 << 20)
    result_pool.clear()
    sizes = [1 << 20, 5 << 18, 3 << 19]
    for size in sizes:
        result_pool.allocate_pooled((size,), np.dtype("uint8"))
        gc.collect()
    assert [block.nbytes for block in result_pool._free] == sizes[1:]
    assert result_pool._taken(sizes[0]) is None
    assert [block.nbytes for block in result_pool._free] == sizes[1:]
    assert result_pool._taken(sizes[2]) is not None
    result_pool.allocate_pooled((1 + (3 << 20),), np.dtype("uint8"))  # more than all that is kept
    assert [block.nbytes for block in result_pool._free] == sizes[1:2]
    result_pool.clear()


# State --------------------------------------------------------------------------------------------


def test_a_first_value_reads_a_call_counter_of_0_whatever_was_drawn_before(make):
    def first(calls):
        stream = geon.Random(11)
        drawn = stream.uniform([K])
        transformer = make()
        f = transformer.computation(drawn)
        for _ in range(calls):
            f()
        w = geon.Variable(K, initial_value=stream.normal([K]))
        return transformer.get(w)

    np.testing.assert_array_equal(first(0), first(3))


@pytest.mark.parametrize("failing", ["position", "not finite"])
def test_arrays_given_for_results_where_a_kernel_raises(transformer, failing):
    """NumPy leaves them; native code may have written parts."""
    x, at = geon.placeholder(K, name="x"), geon.placeholder(dtype="int64")
    results = [x * 2, geon.log(x) if failing == "not finite" else geon.gather(x, at, K)]
    f = transformer.computation(results, x, at, check="nan" if failing == "not finite" else None)
    out = [np.full(1000, 7, np.float32), None]
    f(np.ones(1000), 0, out=out)
    assert (out[0] == 2).all()
    with pytest.raises((geon.IndexRangeError, geon.NonFiniteError)):
        f(np.full(1000, -1), 5000, out=out)
    if transformer.target.name == "numpy":
        assert (out[0] == 2).all()


@needs_compiler
@native_only
def test_a_print_that_a_c_function_is_refused_ends_the_run(transformer):
    """As a caller in C sees it: a ``show`` that sets the first number of the report."""
    import ctypes

    from geon.transformers.native.runtime.bound_program import SHOW

    v = geon.Variable(K, initial_value=1)
    f = transformer.computation([geon.print(v, "v"), geon.assign(v, v + 1)])
    f.transformer.initialize()
    table = f.c_function.table()
    run = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int32,
                           ctypes.c_void_p, SHOW)(f.c_function.address)  # fmt: skip

    def refuse(kernel, data):
        table.report[0] = 1

    def take(kernel, data):
        pass

    number = 1 + [k.op.primitive.name for k in f.plan.schedule.kernels].index("print")
    arguments = (table.pointers, table.lengths, 1, table.report)
    assert run(*arguments, SHOW(refuse)) == number
    assert (transformer.get(v) == 1).all()
    assert run(*arguments, SHOW(take)) == 0
    assert (transformer.get(v) == 2).all()


@numpy_only
def test_long_programs_are_compiled_in_parts(transformer):
    """One statement for each of 2,500 ops, and no function of more than a thousand or so."""
    x = geon.placeholder(geon.Axis("J", 2))
    y = x
    for _ in range(1250):
        y = geon.sin(y * 1.5)
    source = transformer.computation(y, x).source
    longest = max(
        len(node.body) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)
    )
    assert 900 < longest <= 1100


# Rows -------------------------------------------------------------------------------------------


def test_reductions_of_nothing(transformer):
    """Over no elements, known when it is built or by the data alone."""
    for axis in (geon.Axis("Z", 0), geon.Axis("O", "O of nothing")):
        x = geon.placeholder([axis, geon.Axis("J", 2)])
        empty = np.zeros((0, 2), np.float32)
        results = [geon.sum(x, axis), geon.prod(x, axis), geon.any(x > 0, axis)]
        results += [geon.all(x > 0, axis), geon.mean(x, axis)]
        found = transformer.computation(results, x)(empty)
        for value, right in zip(found, (0, 1, False, True, np.nan), strict=True):
            np.testing.assert_array_equal(value, [right] * 2)
        with pytest.raises(geon.AxisError):
            transformer.computation(geon.max(x, axis), x)(empty)


@pytest.mark.parametrize("dtype", [f"{sign}int{bits}" for sign in "u " for bits in (8, 16, 32, 64)])
def test_shifts_beyond_the_width(transformer, dtype):
    """0, or -1 where the sign is kept: as if bit after bit were shifted out."""
    dtype = dtype.strip()
    width = np.dtype(dtype).itemsize * 8
    x, count = geon.placeholder(N, dtype), geon.placeholder(N, dtype)
    numbers = [1, 5, np.iinfo(dtype).max, np.iinfo(dtype).min]
    counts = [0, 1, width - 1, width, width + 1, 100]
    if np.iinfo(dtype).min:
        counts += [-1, -width]
    values = [int(value) for value in numbers for _ in counts]
    by = counts * len(numbers)
    f = transformer.computation([geon.left_shift(x, count), geon.right_shift(x, count)], x, count)
    left, right = f(np.array(values, dtype), np.array(by, dtype))
    for k, (value, n) in enumerate(zip(values, by, strict=True)):
        inside = 0 <= n < width
        expected = value << n if inside else 0
        assert left[k] == np.array(expected & (2**width - 1), np.uint64).astype(dtype), (value, n)
        assert right[k] == (value >> n if inside else -(value < 0)), (value, n)


@needs_compiler
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory are Linux's")
def test_no_memory_to_sort_in_is_an_error_and_not_a_wrong_order():
    program = """
    import resource
    import numpy as np
    import geon
    R = geon.Axis("R")
    x = geon.placeholder(R)
    f = geon.make_transformer("native", threads=1).computation(geon.sort(x, R), x)
    f(np.ones(3))
    data = np.random.default_rng(0).random(10_000_000, np.float32)
    out = np.zeros_like(data)
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (16 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        f(data, out=out)
    except MemoryError:
        print("no memory")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    f(data, out=out)
    print((np.diff(out) >= 0).all())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True
    )
    assert done.stdout == "no memory\nTrue\n", done.stdout + done.stderr
