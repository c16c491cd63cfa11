"""Scratch memory: calls take what the plan says, and nothing where the system refuses it."""

from __future__ import annotations

import dataclasses
import os
import random
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import geon
from geon.transformers.lowering.planning.plan import place_plan
from geon.transformers.lowering.planning.plan_verifier import verify_plan
from geon.transformers.native.products import product_form
from geon.transformers.native.runtime import bound_program
from geon.transformers.native.sizes.products import ProductScratch
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.sizes.buffers import Buffer
from geon.transformers.sizes.product_blocks import ROWS_PER_GROUP, half_vector_shape, shape
from geon.transformers.sizes.product_problem import PlannedProduct
from tests.native.test_sanitized import run as run_sanitized

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

A, B, C, D, N = (geon.Axis(name) for name in "ABCDN")


# Each large array is a mapping of its own, of pages that are counted one by one.
COUNTED = {"MALLOC_MMAP_THRESHOLD_": "65536", "NUMPY_MADVISE_HUGEPAGE": "0"}


def program(text: str, *arguments: object) -> str:
    """What a Python process of its own says, which ends with status 0."""
    command = [sys.executable, "-c", textwrap.dedent(text), *map(str, arguments)]
    environment = {**os.environ, **COUNTED}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# What a call takes ------------------------------------------------------------------------------

# A line for each kernel: the lengths of a call, the least share of what is said that it must take,
# and how it is built of float32 x over the axes of these lengths (and y, over others).
MEASURED = """
    import ctypes, gc, sys
    import numpy as np
    import geon
    from geon.transformers.native.runtime import result_pool

    threads = int(sys.argv[1])
    A, B, C, D, N = (geon.Axis(name) for name in "ABCDN")
    libc = ctypes.CDLL(None)

    def status(name):
        for line in open("/proc/self/status"):
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024

    def given(leaf, lengths):
        shape = [lengths.get(axis.name, axis.length) for axis in leaf.axes]
        values = np.random.default_rng(0).random(shape, np.float32)
        return (values * 5 if leaf.dtype.kind == "i" else values).astype(leaf.dtype)

    def measure(name, results, inputs, lengths, least):
        with geon.make_transformer("native", threads=threads) as t:
            f = t.computation(results, *inputs)
            few = dict.fromkeys(lengths, 5) if name != "top_k" else {"A": 1000}
            f(*(given(x, few) for x in inputs))
            feeds = [given(x, lengths) for x in inputs]
            result_pool.clear()
            gc.collect()
            getattr(libc, "malloc_trim", lambda n: 0)(0)
            said = f.peak_bytes({axis: lengths[axis.name] for axis in (A, B, C, D)
                                 if axis.name in f.request.open_names})
            open("/proc/self/clear_refs", "w").write("5")
            before = status("VmRSS")
            out = f(*feeds)
            print(name, status("VmHWM") - before, said, least, flush=True)
            del out

    def leaf(*axes, dtype="float32"):
        return geon.placeholder(list(axes), dtype)

    x, y = leaf(A, B), leaf(B, C)
    line, wide = leaf(A), leaf(A, dtype="float64")
    at = leaf(C, dtype="int64")
    batch, other = leaf(D, A, B), leaf(D, B, C)
    weights = geon.Variable([geon.Axis("W", 600), geon.Axis("V", 900)], initial_value=0.5)
    rows = leaf(A, weights.axes[0])

    measure("sort", geon.sort(line, A), [line], {"A": 4_000_000}, 0.9)
    measure("sort of lines", geon.sort(x, A), [x], {"A": 2000, "B": 700}, 0.7)
    measure("argsort", geon.argsort(wide, A), [wide], {"A": 5_000_000}, 0.9)
    measure("argsort of lines", geon.argsort(x, B), [x], {"A": 9, "B": 400_000}, 0.5)
    measure("top_k", list(geon.top_k(line, 1000, A)), [line], {"A": 3_000_000}, 0.4)
    measure("argmax", geon.argmax(x, B), [x], {"A": 3_000_000, "B": 3}, 0.9)
    measure("scatter", geon.scatter(x, at, geon.exp(leaf_c := leaf(C, B)), A), [x, at, leaf_c],
            {"A": 3000, "B": 1000, "C": 900}, 0.7)
    measure("cumsum", geon.cumsum(geon.exp(x), A), [x], {"A": 3000, "B": 1000}, 0.9)
    measure("gather", geon.gather(x, at, A), [x, at], {"A": 3000, "B": 1000, "C": 4000}, 0.9)
    measure("concat", geon.concat([x, geon.exp(x)], A), [x], {"A": 3000, "B": 1000}, 0.9)
    measure("pad", geon.pad(x, {A: (1, 2)}), [x], {"A": 3000, "B": 1000}, 0.9)
    measure("transpose", geon.reorder(x, [B, A]), [x], {"A": 3000, "B": 1000}, 0.9)
    measure("softmax", geon.softmax(x, normalization_axes=B), [x], {"A": 6, "B": 1_500_000}, 0.5)
    measure("softmax of columns", geon.softmax(x, normalization_axes=A), [x],
            {"A": 3000, "B": 1000}, 0.7)
    measure("sum", geon.sum(geon.exp(x)), [x], {"A": 3000, "B": 1000}, 0)
    measure("sum of lines", geon.sum(x, A), [x], {"A": 3000, "B": 1000}, 0)
    measure("product", geon.dot(x, y), [x, y], {"A": 1500, "B": 700, "C": 1700}, 0.7)
    measure("long product", geon.dot(x, y), [x, y], {"A": 400, "B": 20_000, "C": 300}, 0.3)
    measure("stream", geon.dot(x, y), [x, y], {"A": 4, "B": 3000, "C": 3000}, 0)
    turned = leaf(C, B)
    measure("dots", geon.dot(x, turned, over=B), [x, turned], {"A": 4, "B": 3000, "C": 3000}, 0)
    measure("computed", geon.dot(geon.exp(x), geon.tanh(y)), [x, y],
            {"A": 1500, "B": 700, "C": 1700}, 0.6)
    measure("few computed rows", geon.dot(geon.exp(x), y), [x, y],
            {"A": 3, "B": 9000, "C": 700}, 0)
    measure("kept copy", geon.dot(rows, weights), [rows],
            {"A": 400}, 0.6)
    measure("batches", geon.dot(batch, other, over=B), [batch, other],
            {"A": 90, "B": 80, "C": 1100, "D": 40}, 0.7)
    taps, filters = geon.Axis("T", 5), geon.Axis("F", 64)
    images = geon.placeholder([A, geon.Axis("P", 50), geon.Axis("Q", 100)])
    kernel = geon.placeholder([taps, images.axes[2], filters])
    shown = geon.convolution(images, kernel, {"P": geon.Window(taps, 1, pad=(2, 2))})
    seed = geon.placeholder(shown.axes)
    measure("filters", geon.deriv(shown, kernel, seed=seed), [images, seed], {"A": 100}, 0.5)
"""
SLACK = 1 << 20  # code that is read for the first time, stacks, Python's own


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="needs Linux's /proc")
@pytest.mark.parametrize("threads", [1, 3])
def test_a_call_takes_what_it_says(threads):
    lines = [line.rsplit(" ", 3) for line in program(MEASURED, threads).splitlines()]
    assert len(lines) == 25
    wrong = []
    for name, *numbers in lines:
        taken, said, least = map(float, numbers)
        if not least * said - SLACK <= taken <= said + SLACK:
            wrong.append(f"{name}: {taken:.0f} bytes were taken, {said:.0f} said")
    assert not wrong, "\n".join(wrong)


REFUSED = """
    import resource, sys
    import numpy as np
    import geon

    threads, folder = int(sys.argv[1]), sys.argv[2]
    A = geon.Axis("A")
    x = geon.placeholder(A, "float64")
    v = geon.Variable([geon.Axis("C", 3)], initial_value=1, name="v")
    t = geon.make_transformer("native", threads=threads)
    new = v * 2 + geon.cast(geon.max(x), "float32")
    f = t.computation([geon.argsort(x, A), geon.assign(v, new)], x)
    f(np.ones(3))
    f(np.ones(3))  # the short way in is there
    t.save(folder + "/first")
    data = np.random.default_rng(0).random(10_000_000)
    out = np.empty(data.size, np.int64)
    out[:] = 0
    before = t.get(v).tolist()
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + (100 << 20)  # for the result, not for the work
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    for give in ({}, {"out": (out, None)}, {}):
        try:
            f(data, **give)
        except MemoryError:
            print("no memory", t.get(v).tolist() == before, not out.any())
    print(f(np.array([2.0, 0.0, 1.0]))[0].tolist(), t.get(v).tolist()[0] == 2 * before[0] + 2)
    t.save(folder + "/second")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    order = f(data)[0]
    print((np.diff(data[order]) >= 0).all())
    t.restore(folder + "/second")
    print(t.get(v).tolist()[0] == 2 * before[0] + 2)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory")
@pytest.mark.parametrize("threads", [1, 3])
def test_where_there_is_no_memory_nothing_is_changed(threads, tmp_path):
    said = program(REFUSED, threads, tmp_path)
    assert said == "no memory True True\n" * 3 + "[1, 2, 0] True\nTrue\nTrue\n"


# Alignment --------------------------------------------------------------------------------------


def test_products_of_one_form_are_looked_at_once(monkeypatch):
    looked_at = []
    found = product_form.product_form
    monkeypatch.setattr(
        product_form, "product_form", lambda *given: (looked_at.append(given), found(*given))[1]
    )
    a, b = A.with_length(40), B.with_length(50)
    x = [geon.placeholder([N, a]) for _ in range(5)]
    w, other = geon.placeholder([a, b]), geon.placeholder([a, B.with_length(60)])
    with geon.make_transformer("native", threads=1) as transformer:
        results = [geon.dot(each, w) for each in x] + [geon.dot(x[0], other)]
        f = transformer.computation(results, *x, w, other)
        assert len(f.plan.scratch) == 6 and len(looked_at) == 2


def test_buffers_lie_at_multiples_of_the_targets_alignment(monkeypatch):
    bound = []

    class Recorded(bound_program.BoundProgram):
        def __init__(self, program, threads, version, arena, offsets, *rest):
            bound.append((arena.ctypes.data, tuple(offsets), arena.nbytes))
            super().__init__(program, threads, version, arena, offsets, *rest)

    monkeypatch.setattr(bound_program, "BoundProgram", Recorded)
    x, y = geon.placeholder([A, B]), geon.placeholder([B, C])
    values = geon.cumsum(geon.dot(geon.exp(x), y), A)
    order = geon.argsort(values, C)
    results = [order, geon.sort(values, A), geon.softmax(geon.cumsum(x, B), normalization_axes=A)]
    lengths = {"A": 7, "B": 33, "C": 5}
    feeds = [np.random.default_rng(0).random(s, np.float32) for s in ((7, 33), (33, 5))]
    found = {}
    for alignment in (64, 256, 4096):
        with geon.make_transformer("native", threads=3) as t:
            name = f"{t.target.name}, at {alignment}"
            t.target = dataclasses.replace(t.target, name=name, alignment=alignment)
            f = t.computation(results, x, y)
            assert sum(bool(buffer.scratch) for buffer in f.plan.buffers) >= 2
            bound.clear()
            found[alignment] = [result.tobytes() for result in f(*feeds)]
            ((address, offsets, size),) = bound
            placed = place_plan(f.plan, lengths, 3)
            arena = f.c_function.arena({A: 7, B: 33, C: 5})
            assert placed.offsets == offsets and placed.arena_bytes == size
            assert arena.offsets == offsets and arena.bytes == size
            assert arena.alignment == alignment
            assert address % alignment == 0
            assert all(offset % alignment == 0 for offset in offsets)
            assert len(set(offsets)) > 2
    assert found[64] == found[256] == found[4096]


# The plan ---------------------------------------------------------------------------------------


@pytest.fixture
def plan():
    """An argsort of a value in the arena into the arena, while another value is alive."""
    x = geon.placeholder([A, B])
    alive = geon.cumsum(x, B)
    read = geon.cumsum(alive, A)
    order = geon.argsort(read, A)
    last = geon.cumsum(geon.cast(order, "float32") + geon.exp(alive), A)
    with geon.make_transformer("native", threads=3) as t:
        return t.computation(geon.cumsum(last, B), x).plan


def argsort_of(plan):
    """The kernel, and the number of its scratch buffer."""
    (kernel,) = (k for k in plan.schedule.kernels if k.op.primitive.name == "argsort")
    return kernel, plan.scratch[kernel.op]


def working_in(plan, which):
    """The plan with an argsort that works in the buffer of another value."""
    kernel, _ = argsort_of(plan)
    return dataclasses.replace(plan, scratch={kernel.op: homes_of(plan)[which]})


def homes_of(plan):
    """The arena buffers of what the argsort reads, computes, and of what lives on meanwhile."""
    kernel, number = argsort_of(plan)
    read = plan.homes[kernel.op.args[0]].number
    made = plan.homes[kernel.op].number
    (alive,) = (
        home.number
        for op, home in plan.homes.items()
        if op.primitive.name == "cumsum" and home.kind == "arena" and op.attrs.axis == "B"
    )
    return {"reads": read, "computes": made, "alive": alive}


def test_a_sound_plan_passes(plan):
    verify_plan(plan)


@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("reads", "works in the memory of <cumsum"),
        ("computes", "works in the memory of <argsort"),
        ("alive", "<cumsum .* is no longer whole"),
    ],
)
def test_scratch_memory_over_a_value_is_refused(plan, which, said):
    with pytest.raises(geon.PlanError, match=said):
        verify_plan(working_in(plan, which))


def test_scratch_memory_that_lives_at_another_time(plan):
    """The planner then lays it over values that are alive when the kernel works."""
    kernel, number = argsort_of(plan)
    end = len(plan.schedule.kernels) - 1
    refused = 0
    for late in (0, end):
        buffers = list(plan.buffers)
        buffers[number] = Buffer(0, late, late, buffers[number].scratch)
        try:
            verify_plan(dataclasses.replace(plan, buffers=tuple(buffers)))
        except geon.PlanError:
            refused += 1
    assert refused


def test_scratch_memory_beyond_the_arena(plan, monkeypatch):
    from geon.transformers.lowering.planning import plan_verifier

    _, number = argsort_of(plan)

    def place(*args):
        placed = place_plan(*args)
        return dataclasses.replace(
            placed,
            offsets=tuple(
                placed.arena_bytes if k == number else at for k, at in enumerate(placed.offsets)
            ),
        )

    monkeypatch.setattr(plan_verifier, "place_plan", place)
    with pytest.raises(geon.PlanError, match="outside the arena"):
        verify_plan(plan)


def test_the_plan_is_explained_with_its_scratch_memory():
    x = geon.placeholder([A])
    for threads, said in ((1, "on 1 thread,"), (3, "on 3 threads,")):
        with geon.make_transformer("native", threads=threads) as t:
            text = t.computation(geon.argsort(x, A), x).explain("plan")
            (line,) = (line for line in text.splitlines() if "scratch" in line)
            assert said in line and "at most" in line and "kernels 0 to 0" in line


WORKING = {
    "argsort": lambda x, y: geon.argsort(x, B),
    "sort of columns": lambda x, y: geon.sort(x, A),
    "top_k": lambda x, y: list(geon.top_k(x, 1, A)),
    "softmax": lambda x, y: geon.softmax(x, normalization_axes=B),
    "softmax of columns": lambda x, y: geon.softmax(x, normalization_axes=A),
    "product": lambda x, y: geon.dot(x, y),
    "computed product": lambda x, y: geon.dot(geon.exp(x), y * 2),
    "all": lambda x, y: [geon.argsort(geon.dot(geon.exp(x), y), C), geon.sort(x, B),
                         geon.softmax(y, normalization_axes=C)],
}  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("name", WORKING)
def test_peak_bytes_of_open_lengths_is_an_upper_bound(name, threads):
    x, y = geon.placeholder([A, B]), geon.placeholder([B, C])
    with geon.make_transformer("native", threads=threads) as t:
        f = t.computation(WORKING[name](x, y), x, y)
        bound = f.peak_bytes()
        draw = random.Random(threads)
        buffers = len(f.plan.buffers) + 2
        sizes = [1, 2, 3, 5, 12, 13, 31, 33, 64, 100, 257, 481, 1000, 8191, 9000, 70_000]
        for _ in range(300):
            lengths = {axis: draw.choice(sizes) for axis in (A, B, C)}
            exact = f.peak_bytes(
                {a: n for a, n in lengths.items() if a.name in f.request.open_names}
            )
            said = bound.evaluate({axis.name: n for axis, n in lengths.items()})
            assert exact <= said + 64 * buffers, lengths


def sized(draw):
    """A length around one of those at which blocks change."""
    around = draw.choice((1, 4, 8, 12, 16, 32, 48, 64, 96, 256, 384, 480, 512, 8192, 20_000))
    return max(0, around + draw.randrange(-3, 4)) if draw.random() < 0.7 else draw.randrange(5000)


def planned(draw, type):
    """What any form of a product fixes."""
    of = shape(type, draw.choice((16, 32, 64)))
    of = draw.choice((of, half_vector_shape(of) or of))
    left, right = (draw.choice((None, (1, 300), (300, 1))) for _ in "lr")
    staged = [draw.choice((0, most)) * (side is None) for side, most in
              ((left, ROWS_PER_GROUP), (right, of.panel))]  # fmt: skip
    band = places = None
    if left is None and draw.random() < 0.5:
        band = draw.choice((0, 3000, 90_000)), draw.choice((48, 192))
    if right is None and left is not None and left[0] == 1 and draw.random() < 0.5:
        places = draw.choice((0, 5000)), 2 * of.vector
    plain_result, keeps, packs = (draw.random() < 0.5 for _ in "rkp")
    packs = packs and None in (left, right)
    turned = draw.random() < 0.3
    return PlannedProduct(
        of, turned, None, left, right, plain_result, keeps, packs, tuple(staged), band, places
    )


@pytest.mark.slow
@pytest.mark.parametrize("type", ["float", "double"])
def test_the_bound_of_a_product_is_above_all_sizes(type):
    draw = random.Random(5)
    n, m, k, b = (geon.Axis(name).expression for name in "NMKB")
    for _ in range(4000):
        lengths = dict(zip("BNMK", (sized(draw) for _ in range(4)), strict=True))
        named = {"B": b, "N": n, "M": m, "K": k}
        some = [named[c] if draw.random() < 0.5 else lengths[c] for c in "BNMK"]
        threads = draw.randrange(1, 9)
        made, whole = planned(draw, type), ()
        if draw.random() < 0.3:
            whole = (lengths["B"], lengths["N"] + draw.choice((0, 400)), lengths["M"])
        if made.places is not None:  # the columns of windows are known, and are those of their sums
            some[2 - made.turned] = lengths["NM"[not made.turned]] = made.places[1]
        scratch = ProductScratch(*some, made, whole)
        most = scratch.most(threads)
        assert isinstance(most, int)
        exact = scratch.bytes(lengths, threads)
        known = ProductScratch(*(lengths[c] for c in "BNMK"), made, whole)
        assert exact == known.bytes({}, threads)
        assert exact <= most, (lengths, some)


# Red zones --------------------------------------------------------------------------------------

GUARDED = """
    import numpy as np
    import geon

    A, B, C, D, N = (geon.Axis(name) for name in "ABCDN")
    x, y, z = geon.placeholder([A, B]), geon.placeholder([B, C]), geon.placeholder([C, B])
    s, u = geon.placeholder([A, B, D]), geon.placeholder([C, B, D])
    results = [
        geon.dot(x, y), geon.dot(geon.exp(x), y), geon.dot(x, geon.exp(y)),
        geon.dot(geon.exp(x), geon.exp(z), over=B), geon.dot(x, z, over=B),
        geon.dot(s, u, over=B), geon.dot(geon.exp(s), u, over=B),
        geon.sort(x, A), geon.sort(x, B), geon.argsort(x, A), *geon.top_k(x, 1, B),
        geon.softmax(x, normalization_axes=B), geon.softmax(x, normalization_axes=A),
    ]
    for threads in (1, 3):
        t = geon.NativeTransformer(threads=threads, sanitize=True)
        f = t.computation(results, x, y, z, s, u)
        for a, b, c, d in [(1, 1, 1, 1), (2, 3, 70, 2), (40, 30, 50, 3), (3, 9000, 40, 1),
                           (60, 8200, 5, 2), (300, 40, 90, 1), (4, 5000, 7, 1), (1, 70_000, 3, 1),
                           (1, 1100, 400, 2), (9, 700, 420, 1)]:
            random = np.random.default_rng(0)
            shapes = (a, b), (b, c), (c, b), (a, b, d), (c, b, d)
            feeds = [random.random(shape, np.float32) for shape in shapes]
            got = f(*feeds)
            X, Y, Z = (feed.astype(np.float64) for feed in feeds[:3])
            for found, wanted in [(got[0], X @ Y), (got[1], np.exp(X) @ Y), (got[4], X @ Z.T)]:
                np.testing.assert_allclose(found, wanted, rtol=1e-5)
            assert (got[9] == np.argsort(feeds[0], 0, kind="stable")).all()
    print("done")
"""


# Convolutions whose rows are read from a band: shallow, and deep, whose filters are packed first,
# in two parts where there are many images.
GUARDED_BANDS = """
    import numpy as np
    import geon

    N, R, S, K = geon.Axis("N"), geon.Axis("R", 3), geon.Axis("S", 3), geon.Axis("K", 450)
    x, deep = (geon.placeholder([N, geon.Axis("H", 9), geon.Axis("W", 13), c])
               for c in (geon.Axis("C", 8), geon.Axis("D", 70)))
    w, v = (geon.placeholder([R, S, each.axes[3], K]) for each in (x, deep))
    spec = {"H": geon.Window(R, 1, pad=(1, 1)), "W": geon.Window(S, 1, pad=(1, 1))}
    for threads in (1, 3):
        t = geon.NativeTransformer(threads=threads, sanitize=True)
        for images, filters, sums in ((x, w, 72), (deep, v, 630)):
            f = t.computation(geon.convolution(images, filters, spec), images, filters)
            for n in (1, 2, 5, 12):
                y = f(np.ones([n, *images.axes.lengths[1:]], np.float32),
                      np.ones(filters.axes.lengths, np.float32))
                assert (y[:, 1:-1, 1:-1] == sums).all()
    print("done")
"""


# Deep bands of few filters, which are work for fewer threads than there are, and products that keep
# a packed operand, for as many rows as keep one and for more.
GUARDED_KEPT = """
    import numpy as np
    import geon

    N, R, S, C = geon.Axis("N"), geon.Axis("R", 3), geon.Axis("S", 3), geon.Axis("C", 45)
    B, D = geon.Axis("B", 300), geon.Axis("D", 520)
    x, u = geon.placeholder([N, geon.Axis("H", 9), geon.Axis("W", 13), C]), geon.placeholder([N, B])
    spec = {"H": geon.Window(R, 1, pad=(1, 1)), "W": geon.Window(S, 1, pad=(1, 1))}
    for threads in (1, 3):
        t = geon.NativeTransformer(threads=threads, sanitize=True)
        for filters in (8, 70, 450):
            w = geon.Variable([R, S, C, geon.Axis("K", filters)], initial_value=1)
            f = t.computation(geon.convolution(x, w, spec), x)
            for n in (1, 2, 5, 36):
                y = f(np.ones([n, 9, 13, 45], np.float32))
                assert (y[:, 1:-1, 1:-1] == 405).all()
        # Weights of a loop, of an open number of columns: few rows and columns are tiles as well.
        H = geon.Axis("H")
        carry, weights = geon.placeholder([N, H]), geon.placeholder([H.prime, H])
        last, _ = geon.scan(
            lambda c, _: (geon.dot(geon.cast_axes(c, [N, H.prime]), weights), None),
            carry, over=geon.Axis("T", 2),
        )
        f = t.computation(last, carry, weights)
        for n, h in ((12, 49), (13, 60), (32, 63), (20, 10), (33, 5), (100, 300)):
            assert (f(np.ones([n, h], np.float32), np.ones([h, h], np.float32)) == h * h).all()
        v = geon.Variable([B, D], initial_value=1)
        f = t.computation(geon.dot(u, v), u)
        for n in (49, 481, 4096, 4097):
            assert (f(np.ones([n, 300], np.float32)) == 300).all()
    print("done")
"""


# Slopes of filters, whose columns are read from a band: of runs that fill vectors or not, in one
# part or several, of few sums or many.
GUARDED_PLACES = """
    import re
    import numpy as np
    import geon

    N, R, S = geon.Axis("N"), geon.Axis("R", 3), geon.Axis("S", 3)
    for high, channels, filters, counts in ((9, 16, 48, (1, 8)), (9, 3, 17, (1, 70)),
                                            (90, 21, 5, (1, 2)), (6, 70, 100, (1, 300))):
        C = geon.Axis("C", channels)
        x = geon.placeholder([N, geon.Axis("H", high), geon.Axis("W", 10), C])
        w = geon.placeholder([R, S, x.axes[3], geon.Axis("K", filters)])
        spec = {"H": geon.Window(R, 1, pad=(1, 1)), "W": geon.Window(S, 1, pad=(1, 1))}
        y = geon.convolution(x, w, spec)
        g = geon.placeholder(y.axes)
        for threads in (1, 3):
            t = geon.NativeTransformer(threads=threads, sanitize=True)
            f = t.computation(geon.deriv(y, w, seed=g), x, g)
            own = f.source.partition("kernel_0")[2]
            right = re.search(r"^ *\\.right = .*$", own, re.MULTILINE)
            assert ".view = " in right.group()
            for n in counts:
                found = f(np.ones([n, high, 10, channels], np.float32),
                          np.ones([n, high, 10, filters], np.float32))
                for r, s in np.ndindex(3, 3):
                    assert (found[r, s] == n * (high - (r != 1)) * (10 - (s != 1))).all()
    print("done")
"""


@pytest.mark.parametrize(
    "text",
    [GUARDED, GUARDED_BANDS, GUARDED_KEPT, GUARDED_PLACES],
    ids=["products and sorts", "bands", "kept", "places"],
)
def test_kernels_stay_within_their_scratch_memory(text):
    done = run_sanitized("-c", textwrap.dedent(text))
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-4000:]
