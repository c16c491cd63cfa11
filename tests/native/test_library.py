"""The library kernels against NumPy: all dtypes, lengths from 0, ties, NaN, one thread and two."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest

import geon
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.rows.indexing import COMBINING
from geon.op_graph.rows.sort_and_cumulative import RUNNING
from geon.op_graph.values.dtypes import DTYPES, FLOATS, SIGNED, UNSIGNED, as_dtype
from geon.transformers.cache import disk
from geon.transformers.native.library.library_kernels import LIBRARY, library_text
from geon.transformers.native.library.matrices import ROUTINES
from geon.transformers.native.library.prefixes import (
    MIN_PARALLEL_BLOCKS,
    MIN_PART_ROWS,
    MIN_PARTS,
    PART_ELEMENTS,
    PartTotals,
    reorders,
)
from geon.transformers.native.library.scattering import (
    MAX_COPIES,
    MIN_PARALLEL_ELEMENTS,
    MIN_UNCACHED_BYTES,
    POSITIONS_PER_BATCH,
    PREFETCH_DISTANCE_POSITIONS,
    Copies,
)
from geon.transformers.native.library.sorting import MAX_WIDE_SORT_LENGTH, MIN_SHARED_SORT_LENGTH
from geon.transformers.native.names.c_texts import c_text
from geon.transformers.native.names.dialect import PRELUDE
from geon.transformers.native.sizes.kernel_scratch import SortScratch
from geon.transformers.printing.scalars.helpers import definitions

GRAIN = MIN_PARALLEL_ELEMENTS
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
FLAGS = (
    "-std=gnu11 -Wall -Wextra -Wundef -Werror -fPIC -shared -O3 -march=native -ffp-contract=off"
    " -fwrapv -fno-math-errno -fno-trapping-math -fopenmp-simd -pthread"
).split()
CHECKED = ["-O0", "-fsanitize=undefined"]
INTEGERS = (*SIGNED, *UNSIGNED)
ORDERED = ("bool", *INTEGERS, "float32", "float64")
SHAPES = [(1, 0, 1), (1, 1, 1), (2, 2, 1), (1, 17, 1), (3, 100, 1), (1, 1000, 1), (2, 5, 3),
          (1, 40, 70), (1, 300, 130), (0, 4, 2), (300, 130, 1), (9, 1, 3),
          (3, MAX_WIDE_SORT_LENGTH, 21),
          (70, MAX_WIDE_SORT_LENGTH + 1, 1), (1, 600, 67), (19, 250, 3),
          (1, 2 * MAX_WIDE_SORT_LENGTH + 1, 21), (37, 11, 3)]  # fmt: skip
LONGEST_RUN = int(re.search(r"LONGEST_RUN (\d+)", c_text("sort/prefix.h"))[1])
LONG = [
    (1, MIN_SHARED_SORT_LENGTH, 1),
    (3, MIN_SHARED_SORT_LENGTH + 1, 1),
    (1, MIN_SHARED_SORT_LENGTH + 17, 3),
]

# Every task gets a thread of its own where more than one is asked for, in no certain order.
POOL = """
#include <pthread.h>
struct job { void (*task)(void *, int64_t); void *argument; int64_t next, count; };
static void *work(void *given)
{
    struct job *job = given;
    for (;;) {
        int64_t index = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (index >= job->count)
            return NULL;
        job->task(job->argument, index);
    }
}
int64_t runs;
static __thread int32_t seat;
__attribute__((unused)) static int32_t geon_seat(void) { return seat; }
static void *help(void *job)
{
    seat = 1;
    return work(job);
}
static void run(void (*task)(void *, int64_t), void *argument, int64_t count, int32_t threads)
{
    struct job job = {task, argument, 0, count};
    pthread_t other;
    int helped = threads > 1 && count > 1 && !pthread_create(&other, NULL, help, &job);
    runs += helped;
    work(&job);
    if (helped)
        pthread_join(other, NULL);
}
static __attribute__((unused)) void (*geon_pool_run)(void (*)(void *, int64_t), void *, int64_t,
                                                     int32_t) = run;
"""


def kernels():
    """(row, dtypes) of every kernel that is tested here."""
    for dtype in ORDERED:
        for row in ("sort", "argsort", "top_k", "bottom_k", "argmax", "argmin"):
            yield row, (dtype,)
    for row in RUNNING:
        for dtype in ("int64", "uint64", "float32", "float64"):
            yield row, (dtype,)
        yield row, ("int8", "int64")
    for dtype in DTYPES:
        yield "scatter_set", (dtype, "int64")
        for mode in COMBINING:
            yield f"scatter_{mode}", (dtype, "int64")
    for dtype in INTEGERS:
        yield "scatter_set", ("float32", dtype)
    for dtype in FLOATS:
        yield "check_finite", (dtype,)
        yield "check_numbers", (dtype,)


def predefined(macro):
    """Whether the compiler defines this macro for this machine."""
    command = [COMPILER, *FLAGS, "-dM", "-E", "-x", "c", "-"]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=True)
    return f"#define {macro} " in done.stdout


class Library:
    """Kernels as functions, each compiled when it is first called, once for all processes."""

    def __init__(self, flags):
        self.flags = [*FLAGS, *flags]
        self.loaded = {}

    def module(self, row, dtypes):
        """The shared object that has a kernel."""
        found = library_text(row, dtypes)
        if found not in self.loaded:
            text = "\n".join([PRELUDE + POOL + definitions(found.calls),
                              found.definition or found.header,
                              f"void *{found.name}_pointer = (void *){found.name};\n"])  # fmt: skip
            name = f"library-{disk.digest(*self.flags, text)}.so"
            self.loaded[found] = ctypes.CDLL(str(disk.find(name) or self.made(name, text)))
        return self.loaded[found]

    def made(self, name, text):
        with disk.scratch_file(".so") as path:
            command = [COMPILER, *self.flags, "-x", "c", "-", "-o", str(path)]
            done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            return disk.keep(name, path)

    def runs(self):
        """How often a second thread helped."""
        return sum(ctypes.c_int64.in_dll(each, "runs").value for each in self.loaded.values())


@pytest.fixture(scope="module", params=[[], CHECKED], ids=["fast", "checked"])
def library(request):
    return Library(request.param)


def test_no_macro_is_left_defined():
    """So the files of one module never meet each other's macros."""
    for row, dtypes in kernels():
        found = library_text(row, dtypes)
        for text in (found.header, found.definition):
            left, defined = set(), set()
            for word, macro in re.findall(r"^ *# *(define|undef) (\w+)", text, re.MULTILINE):
                defined.add(macro)
                left = {*left, macro} if word == "define" else left - {macro}
            assert not left, (row, dtypes)
            assert defined or not text


@pytest.mark.parametrize(("row", "dtypes"), list(kernels()))
def test_a_unit_compiles_by_itself(row, dtypes):
    for unit in library_text(row, dtypes).units:
        command = [COMPILER, *FLAGS, "-fsyntax-only", "-x", "c", "-"]
        done = subprocess.run(command, input=unit, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def call(library, row, dtypes, *args):
    """Call a kernel with arrays as pointers and integers as int64."""
    name = library_text(row, dtypes).name
    address = ctypes.c_void_p.in_dll(library.module(row, dtypes), f"{name}_pointer").value
    function = ctypes.CFUNCTYPE(ctypes.c_int)(address)
    given = [
        ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a)
        for a in args
    ]
    return function(*given)


def call_sort(library, row, dtype, threads, x, out, *args):
    """Call a sort with as much scratch memory as is planned, between bytes that must stay."""
    found = args[3] if row.endswith("_k") else args[1]
    planned = SortScratch(row, dtype, args[:3], found).bytes({}, threads)
    memory = np.full(planned + 3 * GUARD, 0xA5, np.uint8)
    start = GUARD + -(memory.ctypes.data + GUARD) % 64
    scratch = memory[start : start + planned]
    call(library, row, (dtype,), threads, x, out, memory[start:], *args)
    outside = np.concatenate([memory[:start], memory[start + planned :]])
    assert (outside == 0xA5).all(), f"{row} leaves its {planned} bytes of scratch memory"
    return scratch


def values(dtype, shape, seed=0):
    """Values of few kinds, so that many are equal; every NaN, zero and end of the range."""
    random = np.random.default_rng(seed)
    made = as_dtype(dtype)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        kinds = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.5, -1.5, 1e-40, 3e38])
        spread = random.standard_normal(shape).astype(made)
        with np.errstate(all="ignore"):
            special = kinds.astype(made)[random.integers(0, len(kinds), shape)]
        return np.where(random.integers(0, 3, shape) > 0, spread, special)
    info = np.iinfo(made)
    spread = random.integers(info.min, info.max, shape, dtype=made, endpoint=True)
    few = random.integers(0, 5, shape).astype(made)
    return np.where(random.integers(0, 2, shape).astype(bool), spread, few)


def same(got, expected, what):
    """Hold two arrays equal: bits but for those of a NaN."""
    assert got.shape == expected.shape and got.dtype == expected.dtype, what
    if got.dtype.name in FLOATS:
        with np.errstate(all="ignore"):
            missing = np.isnan(got) & np.isnan(expected)
        zero = np.zeros((), got.dtype)
        got, expected = np.where(missing, zero, got), np.where(missing, zero, expected)
    assert got.tobytes() == expected.tobytes(), what


THREADS = (1, 2)
GUARD = 256  # bytes on both sides of scratch memory


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sorting(library, dtype, shape, capfd):
    x = values(dtype, shape)
    if dtype in FLOATS and shape[0] == 3:
        x = np.where(np.isnan(x), np.zeros((), x.dtype), x)
    sorted_values, order = np.sort(x, 1, "stable"), np.argsort(x, 1, "stable")
    for threads in THREADS:
        out, positions = np.empty_like(x), np.empty(shape, np.int64)
        call_sort(library, "sort", dtype, threads, x, out, *shape)
        same(out, sorted_values, f"sort on {threads} threads")
        call_sort(library, "argsort", dtype, threads, x, positions, *shape)
        same(positions, order, f"argsort on {threads} threads")
    call_sort(library, "sort", dtype, 1, x, x, *shape)
    same(x, sorted_values, "sort in place")
    assert "runtime error" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ORDERED)
def test_lines_of_a_few_elements(library, dtype, capfd):
    for n in range(2, 10):
        for shape in ((150, n, 1), (3, n, 70), (5, n, 9), (67, n, 3), (9000 // n, n, 1)):
            x = values(dtype, shape, n)
            order, sorted_values = np.argsort(x, 1, "stable"), np.sort(x, 1, "stable")
            for threads in THREADS:
                out, positions = np.empty_like(x), np.empty(shape, np.int64)
                call_sort(library, "sort", dtype, threads, x, out, *shape)
                same(out, sorted_values, f"sort of {shape} on {threads} threads")
                call_sort(library, "argsort", dtype, threads, x, positions, *shape)
                same(positions, order, f"argsort of {shape} on {threads} threads")
            call_sort(library, "sort", dtype, 1, x, x, *shape)
            same(x, sorted_values, f"sort of {shape} in place")
    assert "runtime error" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("row", ["sort", "argsort", "top_k", "bottom_k"])
def test_a_long_line_is_sorted_the_same_on_any_number_of_threads(library, row, dtype):
    random = np.random.default_rng(0)
    for shape in LONG:
        for kind in ("values", "plain", "sorted", "two"):
            x = values(dtype, shape)
            if kind != "values":
                x = random.standard_normal(shape).astype(dtype) * 100
            if kind == "sorted":
                x = np.sort(x, 1)
            elif kind == "two":
                x = (x > 0).astype(dtype)
            found = shape[1] // 3 if row.endswith("_k") else shape[1]
            kind = x.dtype if row == "sort" else np.int64
            outs = []
            for threads in (1, 2, 3, 9):
                outs.append(np.empty((shape[0], found, shape[2]), kind))
                further = (found,) if row.endswith("_k") else ()
                call_sort(library, row, dtype, threads, x, outs[-1], *shape, *further)
            assert len({out.tobytes() for out in outs}) == 1
            backwards = np.flip(np.argsort(np.flip(x, 1), axis=1, kind="stable"), 1)
            wanted = {"sort": np.sort(x, 1, "stable"), "argsort": np.argsort(x, 1, "stable"),
                      "top_k": (shape[1] - 1 - backwards)[:, :found],
                      "bottom_k": np.argsort(x, 1, "stable")[:, :found]}[row]  # fmt: skip
            same(outs[0], np.ascontiguousarray(wanted), f"{row} of {shape}")


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ORDERED)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_largest(library, dtype, shape, capfd):
    x = values(dtype, shape, 1)
    backwards = np.argsort(np.flip(x, 1), axis=1, kind="stable")
    order = shape[1] - 1 - np.flip(backwards, 1)
    for k in {0, min(1, shape[1]), min(7, shape[1]), shape[1] // 2, shape[1]}:
        for threads in THREADS:
            out = np.empty((shape[0], k, shape[2]), np.int64)
            call_sort(library, "top_k", dtype, threads, x, out, *shape, k)
            same(out, np.ascontiguousarray(order[:, :k]), f"the {k} largest")
    assert "runtime error" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("row", ["argsort", "top_k"])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
@pytest.mark.parametrize("run", [LONGEST_RUN - 1, LONGEST_RUN, LONGEST_RUN + 1, 700])
def test_elements_of_64_bits_that_begin_alike(library, row, dtype, run):
    """Runs of about so many whose keys differ in their last bits, and the same ones again."""
    random = np.random.default_rng(run)
    for count in (1, 5, 4000 // run):
        n = MAX_WIDE_SORT_LENGTH + 1 + run * count
        info = np.iinfo("int64")
        bits = random.integers(info.min, info.max, count)[np.arange(n) % count] & -(1 << 12)
        x = (bits + random.integers(0, 1 << 12, n)).view(dtype)
        x[: n // 50] = x[n // 50 : n // 50 * 2]
        random.shuffle(x)
        x = x.reshape(1, n, 1)
        backwards = n - 1 - np.argsort(np.flip(x, 1), axis=1, kind="stable")
        wanted = np.argsort(x, 1, "stable") if row == "argsort" else np.flip(backwards, 1)
        for k in (n,) if row == "argsort" else (1, 9, 64, 65, n // 3, n // 2, n - 1, n):
            out = np.empty((1, k, 1), np.int64)
            further = () if row == "argsort" else (k,)
            call_sort(library, row, dtype, 1, x, out, *x.shape, *further)
            same(out, np.ascontiguousarray(wanted[:, :k]), f"{row} of {n} in {count} runs, {k}")


@pytest.mark.parametrize("row", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ORDERED)
def test_extremes(library, row, dtype, capfd):
    for shape in [*SHAPES, (2, 3000, 1), (5, 40000, 1)]:
        if shape[1] == 0:
            continue
        for x in (values(dtype, shape, 2), np.sort(values(dtype, shape, 3), 1)):
            kept = np.nan_to_num(x, nan=1) if dtype in FLOATS else x
            for given in (x, kept):
                for threads in THREADS:
                    out = np.full((shape[0], shape[2]), -1)
                    call(library, row, (dtype,), threads, given, out, *shape)
                    same(out, getattr(np, row)(given, axis=1), f"{row} of {shape} {dtype}")
    assert "runtime error" not in capfd.readouterr().err


@pytest.mark.parametrize("row", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64"])
def test_extremes_of_lines_that_threads_share(library, row, dtype):
    """Lines in parts have the first of equal extremes, and the first NaN, of the whole line."""
    extreme = 1 if row == "argmax" else -1
    for shape in [(1, 600_001, 1), (2, 550_000, 1), (1, 530_000, 2)]:
        x = np.zeros(shape, dtype)
        marks = [[], [shape[1] - 1], [shape[1] - 1, 300_000], [7, 300_000, 299_999], [299_999]]
        for places in marks:
            given = x.copy()
            given[:, places] = extreme
            kinds = [given]
            if dtype in FLOATS and places:
                kinds += [np.where(given == 0, given, np.nan).astype(dtype), -given * 0]
            for each in kinds:
                out = np.full((shape[0], shape[2]), -1)
                call(library, row, (dtype,), 4, each, out, *shape)
                same(out, getattr(np, row)(each, axis=1), f"{row} of {shape} {dtype} {places}")


def call_prefix(library, row, dtypes, threads, x, out, *args):
    """Call a prefix sum with as much scratch memory as is planned, between bytes that must stay."""
    totals = PartTotals(*x.shape)
    planned = totals.bytes({}, threads) if reorders(row, dtypes[-1]) else 0
    assert planned <= totals.most(threads)
    memory = np.full(planned + 3 * GUARD, 0xA5, np.uint8)
    start = GUARD + -(memory.ctypes.data + GUARD) % 64
    call(library, row, dtypes, threads, x, out, memory[start:], *x.shape, *args)
    outside = np.concatenate([memory[:start], memory[start + planned :]])
    assert (outside == 0xA5).all(), f"{row} leaves its {planned} bytes of scratch memory"
    return memory[start : start + planned]


def running(ufunc, x, exclusive, reverse, dtype):
    """Running totals, of data for which no order rounds."""
    moved = x[:, ::-1] if reverse else x
    total = ufunc.accumulate(moved, axis=1, dtype=dtype)
    if exclusive:
        extremes = np.finfo if np.issubdtype(dtype, np.floating) else np.iinfo
        ends = {np.maximum: extremes(dtype).min, np.minimum: extremes(dtype).max}
        if extremes is np.finfo:
            ends = {np.maximum: -np.inf, np.minimum: np.inf}
        first = np.full_like(total[:, :1], ends.get(ufunc, ufunc.identity))
        total = np.concatenate([first, total[:, :-1]], 1)[:, : x.shape[1]]
    return np.ascontiguousarray(total[:, ::-1] if reverse else total)


# Lanes of a vector and strips of columns; lines that are cut into parts, or not quite.
PREFIX_SHAPES = [
    *SHAPES,
    *((2, n, 1) for n in (3, 4, 5, 7, 8, 9, 15, 16, 31, 33, 64, 65)),
    *((2, 5, inner) for inner in (*range(2, 10), 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 64, 65, 71,
                                  72, 73, 127, 511, 512, 513, 515, 520, 1025)),
    *((7001, n, inner) for n in (1, 2, 3, 4, 5, 6, 7, 8) for inner in (1, 2)), (900, 3, 13),
    (0, 0, 0), (2, 0, 3), (2, 3, 0), (1, 33, 80), (1, 16, 513), (3, 17, 700),
    *((outer, MIN_PARTS * PART_ELEMENTS + more, 1) for outer in (1, 3) for more in (-1, 0, 1, 7)),
    (MIN_PARALLEL_BLOCKS - 1, MIN_PARTS * PART_ELEMENTS, 1),
    (MIN_PARALLEL_BLOCKS, MIN_PARTS * PART_ELEMENTS, 1),
    (1, 3 * MIN_PARTS * PART_ELEMENTS + 5, 1),
    *((1, MIN_PARTS * PART_ELEMENTS // inner + more, inner) for inner in (2, 3, 7, 9, 100)
      for more in (-1, 0, 1, 60)),
    (1, MIN_PARTS * MIN_PART_ROWS - 1, 600), (2, MIN_PARTS * MIN_PART_ROWS + 3, 600),
]  # fmt: skip


@pytest.mark.parametrize("row", RUNNING)
@pytest.mark.parametrize(
    "dtypes", [("int64",), ("uint64",), ("float32",), ("float64",), ("int8", "int64")], ids=str
)
def test_running_totals(library, row, dtypes, capfd):
    ufunc = RUNNING[row].ufunc
    for shape in PREFIX_SHAPES:
        x = values(dtypes[0], shape, 4)
        if dtypes[0] in FLOATS:
            random = np.random.default_rng(5)
            if row == "cumprod":  # powers of two whose running products are small
                x = np.exp2(np.diff(random.integers(-2, 3, shape), axis=1, prepend=0))
                x = (x * random.choice([-1, 1], shape)).astype(dtypes[0])
            else:
                x = (random.integers(-16, 17, shape) / 8).astype(dtypes[0])
                x[:, : shape[1] // 2] = np.where(random.integers(0, 2, 1), -0.0, 1.25)
            if row in ("cummax", "cummin"):
                x[random.random(shape) < 0.001] = np.nan
                x += 0.0  # of zeros of both signs either one is the extreme
        for exclusive in (0, 1):
            for reverse in (0, 1):
                with np.errstate(all="ignore"):
                    expected = running(ufunc, x, exclusive, reverse, dtypes[-1])
                for threads in THREADS:
                    out = np.zeros(shape, dtypes[-1])
                    call_prefix(library, row, dtypes, threads, x, out, exclusive, reverse)
                    same(out, expected, f"{row} {shape} {exclusive} {reverse}")
                if len(dtypes) == 1:
                    out = x.copy()
                    call_prefix(library, row, dtypes, 1, out, out, exclusive, reverse)
                    same(out, expected, f"{row} in place {shape} {exclusive} {reverse}")
    assert "runtime error" not in capfd.readouterr().err


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 100_001, 1), (20, 3000, 1), (1, 40_000, 7), (2, 999, 600)])
def test_running_sums_are_accurate(library, dtype, shape):
    """Those of float32 as sums of float64 that are rounded once; the same on any threads."""
    x = np.random.default_rng(6).uniform(-2, 2, shape).astype(dtype)
    exact = np.add.accumulate(x, axis=1, dtype=np.longdouble)
    most = np.add.accumulate(np.abs(x), axis=1, dtype=np.longdouble)
    found = []
    for threads in THREADS:
        out = np.zeros(shape, dtype)
        call_prefix(library, "cumsum", (dtype,), threads, x, out, 0, 0)
        found.append(out)
    same(*found, "two threads")
    rounded = np.spacing(np.abs(found[0])) * (0.5 if dtype == "float32" else 0)
    assert (np.abs(found[0] - exact) <= rounded + 1e-14 * most).all()


@pytest.mark.parametrize("shape", [(1, 70, 1), (1, 50_000, 1), (2, 40, 9), (1, 30_000, 2)])
@pytest.mark.parametrize("reverse", [0, 1])
def test_what_is_not_finite_stays_in_its_line_and_after_it(library, shape, reverse):
    for kind in (np.nan, np.inf):
        for at in (0, shape[1] // 3, shape[1] - 1):
            x = np.ones(shape, np.float32)
            x[0, at, 0] = kind
            out = np.zeros_like(x)
            call_prefix(library, "cumsum", ("float32",), 2, x, out, 0, reverse)
            same(out, running(np.add, x, 0, reverse, "float32"), f"{kind} at {at}")


def call_scatter(library, mode, dtypes, threads, x, positions, value, out):
    """Call a scatter with as much scratch memory as is planned, between bytes that must stay."""
    sizes = (*x.shape, positions.size)
    copies = Copies(*sizes, x.itemsize)
    planned = copies.bytes({}, threads) if mode == "add" else 0
    assert planned <= copies.most(threads)
    memory = np.full(planned + 3 * GUARD, 0xA5, np.uint8)
    start = GUARD + -(memory.ctypes.data + GUARD) % 64
    call(library, f"scatter_{mode}", dtypes, threads, x, positions, value, out, memory[start:],
         *sizes)  # fmt: skip
    outside = np.concatenate([memory[:start], memory[start + planned :]])
    assert (outside == 0xA5).all(), f"scatter leaves its {planned} bytes of scratch memory"
    return planned


def scattered(mode, x, positions, value):
    out = x.copy()
    if mode == "set":
        out[:, positions] = value
    else:
        COMBINING[mode].at(out, (slice(None), positions), value)
    return out


def same_numbers(found, expected, case):
    """Raise where two arrays have other numbers; NumPy compares no NaN of bfloat16."""
    wide = [x.astype(np.float64) if x.dtype.itemsize < 4 else x for x in (found, expected)]
    np.testing.assert_array_equal(*wide, err_msg=case)


@pytest.mark.parametrize("mode", ["set", *COMBINING])
@pytest.mark.parametrize("dtype", DTYPES)
def test_scatter(library, mode, dtype, capfd):
    random = np.random.default_rng(6)
    for outer, n, inner, m in [(1, 5, 1, 9), (3, 7, 4, 0), (2, 50, 33, 300), (1, 300, 2100, 70),
                               (40, 100, 1, 4000), (0, 3, 2, 1)]:  # fmt: skip
        x, value = values(dtype, (outer, n, inner), 7), values(dtype, (outer, m, inner), 8)
        positions = random.integers(-n, n, m)
        with np.errstate(all="ignore"):
            expected = scattered(mode, x, positions, value)
        size = (outer, n, inner, m)
        # Of zeros of both signs either is the larger.
        check = same_numbers if mode in ("max", "min") else same
        for threads in THREADS:
            out = np.zeros_like(x)
            call_scatter(library, mode, (dtype, "int64"), threads, x, positions, value, out)
            check(out, expected, f"scatter {mode} {size}")
        call_scatter(library, mode, (dtype, "int64"), 2, x, positions, value, x)
        check(x, expected, f"scatter {mode} {size} in place")
    assert "runtime error" not in capfd.readouterr().err


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
@pytest.mark.parametrize("size", [
    (1, 1, 1, GRAIN), (1, 1, 1, GRAIN - 1), (1, 1000, 1, GRAIN), (2, 5, 3, GRAIN // 3 + 1),
    (MAX_COPIES - 1, 1, 1, GRAIN), (MAX_COPIES, 1, 1, GRAIN), (1, 600, 8, GRAIN // 8),
    (1, GRAIN // 16, 1, GRAIN), (1, GRAIN // 16 + 1, 1, GRAIN), (1, 4099, 1, 33 * 4099 + 5),
    (1, 30, 511, 300), (1, 30, 512, 300), (1, 30, 1025, 300), (1, 100, 700, 95), (1, 0, 1, 0),
], ids=str)  # fmt: skip
def test_values_added_in_copies(library, dtype, size):
    """Of numbers for which no order rounds, and -0 where nothing was added stays."""
    outer, n, inner, m = size
    random = np.random.default_rng(10)
    few = [False, True] if dtype == "bool" else [0, 1] if dtype == "float16" else range(4)
    made = as_dtype(dtype)
    x = np.zeros((outer, n, inner), made) if dtype == "bool" else -np.zeros((outer, n, inner), made)
    value = random.choice(np.array(few), (outer, m, inner)).astype(made)
    positions = random.integers(-n, n // 2 + 1 if n > 1 else n, m) if m else np.zeros(0, np.int64)
    if dtype == "float16":
        value[:, 2000:] = 0  # larger sums would round
    expected = scattered("add", x, positions, value)
    for threads in THREADS:
        out = np.ones_like(x)
        taken = call_scatter(library, "add", (dtype, "int64"), threads, x, positions, value, out)
        same(out, expected, f"scatter {size}")
        assert taken * 8 <= value.nbytes
    call_scatter(library, "add", (dtype, "int64"), 2, x, positions, value, x)
    same(x, expected, f"scatter {size} in place")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["set", "add"])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("size", [
    (1, 0, 1, GRAIN), (1, 1, 1, GRAIN - 1), (1, 1, 1, GRAIN),
    (1, 1, 1, GRAIN + POSITIONS_PER_BATCH - 1),
    (1, 1, 1, PREFETCH_DISTANCE_POSITIONS + 1),
    (1, 1, 3, GRAIN // 3 + 1), (1, 1, 8, GRAIN), (1, 1, 33, 2000),
    (2, 1, 1, GRAIN),
], ids=str)  # fmt: skip
def test_many_places_are_taken_in_ranges(library, mode, dtype, size):
    """More places than caches hold, by so many elements as the size has of ``n``: each gets what it
    gets, in order, from any number of threads."""
    outer, more, inner, m = size
    made = as_dtype(dtype)
    n = MIN_UNCACHED_BYTES // (made.itemsize * inner) + more
    random = np.random.default_rng(13)
    x, value = values(dtype, (outer, n, inner), 14), values(dtype, (outer, m, inner), 15)
    positions = random.integers(-n, n, m)
    positions[::7] = positions[0]
    positions[:2] = n - 1, -n
    with np.errstate(all="ignore"):
        expected = scattered(mode, x, positions, value)
    for threads in (*THREADS, 5):
        out = np.empty_like(x)
        call_scatter(library, mode, (dtype, "int64"), threads, x, positions, value, out)
        same(out, expected, f"scatter {mode} {size}")
    call_scatter(library, mode, (dtype, "int64"), 2, x, positions, value, x)
    same(x, expected, f"scatter {mode} {size} in place")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_of_added_values_do_not_depend_on_threads(library, dtype):
    random = np.random.default_rng(11)
    x, value = values(dtype, (1, 50, 2), 12), random.standard_normal((1, 99_999, 2)).astype(dtype)
    positions, found = random.integers(0, 40, 99_999), []
    for threads in THREADS:
        found.append(np.empty_like(x))
        call_scatter(library, "add", (dtype, "int64"), threads, x, positions, value, found[-1])
    same(*found, "threads")
    np.testing.assert_allclose(found[0], scattered("add", x, positions, value), rtol=2e-3)
    same(found[0][:, 40:], x[:, 40:], "places where nothing is added")


@pytest.mark.parametrize("index", INTEGERS)
def test_positions_of_every_integer_dtype(library, index):
    x, value = np.zeros((2, 6, 3), np.float32), np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    positions = np.array([5, 0, 5, 2 if index in UNSIGNED else -4], index)
    out = np.ones_like(x)
    call_scatter(library, "set", ("float32", index), 1, x, positions, value, out)
    same(out, scattered("set", x, positions.astype(np.int64), value), index)


@pytest.mark.parametrize("dtype", FLOATS)
def test_values_that_are_not_finite_are_counted(library, dtype):
    random = np.random.default_rng(9)
    for count in (0, 1, 7, 100, 4096, 50_000):
        x = random.standard_normal(count).astype(as_dtype(dtype))
        if count > 1:
            x[0] = np.finfo(np.float16).max if dtype == "float16" else 3e38
        wrong, first = np.full(1, -1), np.zeros(1)
        assert not call(library, "check_finite", (dtype,), x, count, wrong, first)
        assert wrong[0] == 0
        for kind in (np.nan, np.inf, -np.inf):
            if count:
                x[count // 2 :] = np.where(random.integers(0, 2, count - count // 2), kind, 1)
                x[count - 1] = kind
                good = np.isfinite(x.astype(np.float64))
                assert call(library, "check_finite", (dtype,), x, count, wrong, first)
                assert wrong[0] == (~good).sum()
                same(first, x[~good][:1].astype(np.float64), "the first")
                numbers = not np.isnan(kind)
                assert call(library, "check_numbers", (dtype,), x, count, wrong, first) != numbers
                assert wrong[0] == (0 if numbers else (~good).sum())


def test_threads_do_take_part(library):
    before = library.runs()
    x = values("float32", (300, 1000, 1))
    for row in ("sort", "argsort"):
        out = np.empty(x.shape, np.float32 if row == "sort" else np.int64)
        call_sort(library, row, "float32", 2, x, out, *x.shape)
    call(library, "argmax", ("float32",), 2, x, np.empty(x.shape, np.int64), *x.shape)
    assert library.runs() == before + 3


@pytest.mark.parametrize("row", ["sort", "argsort"])
def test_a_long_line_takes_all_threads(library, row):
    """They part it, bring its pieces together and sort them: three runs."""
    if not predefined("__AVX2__"):
        pytest.skip("without AVX2 lines are sorted by digits")
    x = np.random.default_rng(0).standard_normal((1, MIN_SHARED_SORT_LENGTH, 1)).astype(np.float32)
    out, before = np.empty(x.shape, np.float32 if row == "sort" else np.int64), library.runs()
    call_sort(library, row, "float32", 2, x, out, *x.shape)
    assert library.runs() == before + 3


@pytest.mark.parametrize("row", ["sort", "argsort"])
@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_sorts_use_all_of_their_scratch_memory(library, row, dtype):
    """What is planned is no more than what is needed."""
    n = 3 * MAX_WIDE_SORT_LENGTH  # which no network sorts
    x = np.random.default_rng(0).permutation(66 * n).astype(dtype).reshape(66, n, 1)
    out = np.empty(x.shape, x.dtype if row == "sort" else np.int64)
    scratch = call_sort(library, row, dtype, 1, x, out, *x.shape)
    used = np.flatnonzero(scratch != 0xA5)
    in_registers = 16 * 64  # bytes at the end of a line that are never parted
    assert used[0] < 16 and used[-1] >= scratch.size - 64 - 16 - in_registers


@pytest.mark.parametrize("row", ["sort", "argsort", "top_k", "bottom_k"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "float64"])
def test_scratch_memory_of_sorts_of_open_lengths(row, dtype):
    """What is said of open lengths is at least what any of them take."""
    names = "outer", "n", "inner"
    open_sizes = tuple(geon.Axis(name).expression for name in names)
    for n in (0, 1, MAX_WIDE_SORT_LENGTH, MAX_WIDE_SORT_LENGTH + 1, 5000, 1 << 20):
        for inner in (1, 2, 65):
            sizes = dict(zip(names, (3, n, inner), strict=True))
            for threads in THREADS:
                least = SortScratch(row, dtype, tuple(sizes.values()), n).bytes({}, threads)
                for known in (open_sizes, (3, open_sizes[1], inner), (open_sizes[0], n, inner)):
                    scratch = SortScratch(row, dtype, known, known[1])
                    assert scratch.bytes(sizes, threads) == least
                    assert evaluate(scratch.most(threads), sizes) >= least


def test_every_kernel_is_tested_here():
    elsewhere = {"fourier_parts", *ROUTINES}  # tests/transformers/test_fourier.py, tests/linalg
    assert {row for row, _ in kernels()} == set(LIBRARY) - elsewhere
