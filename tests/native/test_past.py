"""Stores past the caches: results of any length and place are those that the caches hold."""

import re

import numpy as np
import pytest

import geon
from geon.transformers.loops.rules import cpu as cpu_rules
from geon.transformers.loops.rules import streaming_copies
from geon.transformers.loops.rules.transposed_tiles import MAX_ADJACENT_ELEMENTS
from geon.transformers.native.machine import caches
from geon.transformers.native.runtime import bound_program
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.vectors import nontemporal_stores
from geon.transformers.sizes.ceilings import Ceilings

from .ways import store_past

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

N, R, C = (geon.Axis(name) for name in "NRC")
PUTS = ("geon_past_put(&", "GEON_PUT(f")
LINE = 16  # float32 of a line of cache
# Around a line, what is too few, a block of float64 and of float32, and several of them.
LENGTHS = [
    1,
    2,
    LINE - 1,
    LINE,
    LINE + 1,
    streaming_copies.MIN_STREAMED_TURNS - 1,
    streaming_copies.MIN_STREAMED_TURNS,
    streaming_copies.MIN_STREAMED_TURNS + 1,
]
LENGTHS += [
    48,
    49,
    127,
    128,
    129,
    143,
    271,
    512,
    1009,
]


def stores_past(computation):
    """Whether a computation has a way past the caches."""
    return any(put in computation.source for put in PUTS)


def listed(found):
    return list(found) if isinstance(found, (tuple, list)) else [found]


def values(shape, dtype="float32", seed=0):
    """Numbers, some of which are no numbers or not finite."""
    x = np.random.default_rng(seed).normal(size=shape) * 3
    if np.dtype(dtype).kind == "f":
        x.reshape(-1)[::7] = np.resize([np.nan, np.inf, -np.inf, -0.0], x.reshape(-1)[::7].shape)
    return x.astype(dtype)


def flat(function, dtype="float32"):
    """Elements of one axis, of two operands."""
    x, y = geon.placeholder([N], dtype), geon.placeholder([N], dtype)
    return listed(function(x, y)), [x, y], lambda n: [values(n, dtype), values(n, dtype, 1)]


def rows(function, dtype="float32"):
    """Rows of one operand, and a row."""
    x, b = geon.placeholder([R, C], dtype), geon.placeholder([C], dtype)

    def arrays(n):
        return [values((5, n), dtype), values(n, dtype, 1)]

    return listed(function(x, b)), [x, b], arrays


def normal(x):
    mean = geon.broadcast(geon.mean(x, C), x.axes)
    return (x - mean) / geon.broadcast(geon.sqrt(geon.variance(x, C) + 1e-5), x.axes)


PROGRAMS = {
    "sum": lambda: flat(lambda x, y: x + y),
    "sum64": lambda: flat(lambda x, y: x + y, "float64"),
    "sum8": lambda: flat(lambda x, y: x + y, "int8"),
    "bool": lambda: flat(lambda x, y: x < y),
    "several": lambda: flat(lambda x, y: [x + y, geon.cast(x, "float64"), x < y, y * 2]),
    "many": lambda: flat(
        lambda x, y: [x + y * k for k in range(streaming_copies.MAX_STREAMED_STORES)]
    ),
    "exp": lambda: flat(lambda x, y: geon.exp(x)),
    "exp64": lambda: flat(lambda x, y: geon.exp(x), "float64"),
    "join": lambda: flat(lambda x, y: geon.concat([x * 2, y + 1, x], N)),
    "pad": lambda: flat(lambda x, y: geon.pad(x * 2, {N: (3, 40)}, value=1)),
    "slice": lambda: flat(lambda x, y: geon.concat([x, y], N)[1:] * 2),
    "steps": lambda: flat(lambda x, y: geon.concat([x, y], N)[::2] + 1),
    "bias": lambda: rows(lambda x, b: x + b),
    "softmax": lambda: rows(lambda x, b: geon.softmax(x, normalization_axes=C)),
    "softmax64": lambda: rows(lambda x, b: geon.softmax(x, normalization_axes=C), "float64"),
    "first_axis": lambda: rows(lambda x, b: x - geon.mean(x, R)),
    "normal": lambda: rows(lambda x, b: normal(x)),
    "joined_rows": lambda: rows(lambda x, b: geon.concat([x * 2, x + b, x], C)),
    "joined_first": lambda: rows(lambda x, b: geon.concat([x * 2, x + b], R)),
    "bordered": lambda: rows(lambda x, b: geon.pad(x + b, {R: (1, 2), C: (2, 1)})),
    "update": lambda: rows(lambda x, b: geon.concat([x, x], R)[2:] + b),
    "noise": lambda: rows(lambda x, b: x + geon.Random(3).uniform(x.axes)),
}


def bits(program, least, threads=1, plan=True, lengths=LENGTHS):
    """The bits of results of all lengths, which are stored past the caches from ``least`` on."""
    results, inputs, arrays = program()
    with geon.make_transformer("native", threads=threads) as transformer:
        f = transformer.computation(results, *inputs, plan=plan)
        assert stores_past(f)
        store_past(f, least)
        return [[x.tobytes() for x in listed(f(*arrays(n)))] for n in lengths]


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_are_those_of_ordinary_stores(name):
    wanted = bits(PROGRAMS[name], caches.NEVER_STREAM_BYTES)
    for threads, plan in [(1, True), (2, True), (2, False)]:
        assert bits(PROGRAMS[name], 1, threads, plan) == wanted


def test_functions_without_tasks_store_past_the_caches(monkeypatch):
    for rules in ("COMPILED_RULES", "COMPILED_COLUMN_RULES"):
        kept = [rule for rule in getattr(cpu_rules, rules) if rule.name != "tasks"]
        monkeypatch.setattr(cpu_rules, rules, kept)
    x, b = geon.placeholder([R, C]), geon.placeholder([C])
    short = geon.placeholder([R, geon.Axis("S", 3)])
    results = [x + 3 * b, geon.softmax(short, "S") * 3]
    arrays = values((150, 271)), values(271, seed=1), values((150, 3), seed=2)
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(results, x, b, short)
        assert "geon_pool_run(kernel" not in f.source
        assert f.source.count("_Bool passes") == 2
        found = []
        for least in (caches.NEVER_STREAM_BYTES, 1):
            f(*arrays)
            store_past(f, least)
            found.append([x.tobytes() for x in f(*arrays)])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["sum", "exp", "softmax", "joined_rows", "first_axis"])
def test_many_rows_and_long_ones(name):
    """Each task then writes many lines, and tasks' parts adjoin inside of lines."""
    lengths = [4096, 100_003] if name in ("sum", "exp") else [4096, 20_011]
    wanted = bits(PROGRAMS[name], caches.NEVER_STREAM_BYTES, 2, lengths=lengths)
    assert bits(PROGRAMS[name], 1, 2, lengths=lengths) == wanted


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("channels", [64, 80, 320, 1040])
def test_vectors_of_rows_side_by_side(channels, dtype):
    """They are stored as they are, past the caches where each begins with one of a line."""
    c = geon.Axis("C", channels)
    x = geon.placeholder([N, c], dtype)
    results = [x - geon.mean(x, N), x * geon.mean(x, N)]
    a = values((70, channels), dtype)
    a[~np.isfinite(a)] = 1
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation(results, x)
        assert stores_past(f)
        store_past(f, caches.NEVER_STREAM_BYTES)
        wanted = f(a)
        store_past(f, 1)
        for before in [0, 1, 8, 16]:
            rooms = [np.full(a.size + 64, 7, dtype) for _ in wanted]
            starts = [-room.ctypes.data % 64 // room.itemsize + before for room in rooms]
            out = [
                room[start : start + a.size].reshape(a.shape)
                for room, start in zip(rooms, starts, strict=True)
            ]
            f(a, out=out)
            for one, other, room, start in zip(out, wanted, rooms, starts, strict=True):
                assert one.tobytes() == other.tobytes()
                assert np.all(room[:start] == 7) and np.all(room[start + a.size :] == 7)


@pytest.mark.parametrize("length", [(1 << 20) + 16, (1 << 20) + 5])
def test_results_and_operands_begin_anywhere(length):
    """Also where lengths are known, so that loops are of whole vectors."""
    n = geon.Axis("N", length)
    x, y = geon.placeholder([n]), geon.placeholder([n])
    results = [x + y, geon.exp(x), geon.cast(x, "float64")]
    a, b = values(length), values(length, seed=1)
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation(results, x, y)
        assert stores_past(f)
        store_past(f, caches.NEVER_STREAM_BYTES)
        wanted = f(a, b)
        store_past(f, 1)
        for before in [0, 1, 3, 15]:
            rooms = [np.full(length + 40, 7, each.dtype) for each in wanted]
            out = [room[before : before + length] for room in rooms]
            given = [np.concatenate([values(before), each])[before:] for each in (a, b)]
            f(*given, out=out)
            for room, part, each in zip(rooms, out, wanted, strict=True):
                assert part.tobytes() == each.tobytes()
                assert (room[:before] == 7).all() and (room[before + length :] == 7).all()


def transposed(shape, dtype, function=lambda x: x * 2):
    """A program that stores a matrix in the other order of its axes, and an array for it."""
    c, r = (axis.with_length(n) for axis, n in zip((C, R), shape, strict=True))
    x = geon.placeholder([c, r], dtype)
    return listed(function(geon.reorder(x, [r, c]))), [x], values(shape, dtype)


# Rows of results that begin at lines or inside of them, that are shorter than tiles, and adjoin.
SHAPES = [(1040, 1040), (1041, 1031), (1040, 4099), (4099, 1031), (20_011, 65), (20_011, 300)]
SHAPES += [(65, 20_011), (128, 20_011), (129, 20_011), (257, 10_007), (513, 4099), (70_001, 17)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles(shape, dtype):
    """The last tiles are parts of one, and results begin anywhere."""
    results, inputs, a = transposed(shape, dtype)
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation(results, *inputs)
        assert stores_past(f)
        for least, begins in [(caches.NEVER_STREAM_BYTES, [0]), (1, [0, 1, 3])]:
            store_past(f, least)
            for before in begins:
                room = np.full(a.size + 40, 7, dtype)
                out = room[before : before + a.size].reshape(a.T.shape)
                f(a, out=[out])
                np.testing.assert_array_equal(out, a.T * 2)
                assert (room[:before] == 7).all() and (room[before + a.size :] == 7).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "dtype", "passes"),
    [
        ((4099, 4099), "float16", True),
        ((5000, 5003), "int8", True),
        ((4099, 4099), "bool", True),
        ((2, 700_001), "float32", True),
        ((13, 100_003), "float64", True),
        ((streaming_copies.MIN_STREAMED_TURNS - 1, 100_003), "float32", False),
        ((streaming_copies.MIN_STREAMED_TURNS, 100_003), "float32", True),
    ],
)
def test_tiles_of_small_elements_and_of_few(shape, dtype, passes):
    results, inputs, a = transposed(shape, dtype, lambda x: x)
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation(results, *inputs)
        assert stores_past(f) == passes
        store_past(f, 1)
        np.testing.assert_array_equal(f(a)[0], a.T)


@pytest.mark.parametrize("columns", [5, 13, MAX_ADJACENT_ELEMENTS, 65])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [None, 3000])
def test_copies_whose_rows_adjoin_are_stored_past_the_caches(columns, dtype, batch):
    """Tiles of whole rows, the last one of fewer, begin anywhere in memory."""
    long = (9 << 20) // columns // np.dtype(dtype).itemsize
    if batch is None:
        a = values((columns, long | 1), dtype)
        axes = [C.with_length(columns), R.with_length(long | 1)]
    else:
        a = values((batch, columns, long // batch | 1), dtype)
        axes = [geon.Axis("B", batch), C.with_length(columns), R.with_length(a.shape[-1])]
    x, wanted = geon.placeholder(axes, dtype), np.swapaxes(a, -1, -2)
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation([geon.reorder(x, [*axes[:-2], axes[-1], axes[-2]])], x)
        assert stores_past(f)
        for least, begins in [(caches.NEVER_STREAM_BYTES, [0]), (1, [0, 1, 3])]:
            store_past(f, least)
            for before in begins:
                room = np.full(a.size + 40, 7, dtype)
                out = room[before : before + a.size].reshape(wanted.shape)
                f(a, out=[out])
                np.testing.assert_array_equal(out, wanted)
                assert (room[:before] == 7).all() and (room[before + a.size :] == 7).all()


def test_narrow_parts_of_rows_that_begin_inside_of_lines_stay():
    """A tile's row of truths is two lines, of which two would be written in parts."""
    results, inputs, a = transposed((4099, 4099), "float32", lambda x: x > 0)
    with geon.make_transformer("native", threads=1) as transformer:
        f = transformer.computation(results, *inputs)
        assert not stores_past(f)
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(f(a)[0], a.T > 0)


def test_what_is_stored_across_memory_counts_twice():
    results, inputs, _ = transposed((1040, 1040), "float32")
    with geon.make_transformer("native", threads=1) as transformer:
        f = transformer.computation(results, *inputs)
        assert f"geon_is_past({2 * 4 * 1040**2}, {2 * 8 * 1040**2}, geon_past_bytes)" in f.source


def made_of(results, inputs):
    with geon.make_transformer("native", threads=1) as transformer:
        return stores_past(transformer.computation(results, *inputs))


def test_what_stores_past_the_caches():
    """What is open or large, but no results that caches hold and nothing that is read as well."""
    x = geon.placeholder([N])
    assert made_of(x + 1, [x])
    for length, far in [
        (nontemporal_stores.MIN_LAST_CACHE_BYTES // 4 - 1, False),
        (nontemporal_stores.MIN_LAST_CACHE_BYTES // 4, True),
    ]:
        y = geon.placeholder([N.with_length(length)])
        assert made_of(y + 1, [y]) == far
        assert not made_of(geon.sum(y), [y])
    for columns, far in [
        (streaming_copies.MIN_STREAMED_TURNS - 1, False),
        (streaming_copies.MIN_STREAMED_TURNS, True),
    ]:
        c = C.with_length(columns)
        y, b = geon.placeholder([R, c]), geon.placeholder([c])
        assert made_of(y + b, [y, b]) == far
    v = geon.variable([N.with_length(1 << 22)], initial_value=0.0)
    assert not made_of(geon.assign(v, v * 2 + 1), [])
    y = geon.placeholder([N])
    for count, far in [
        (streaming_copies.MAX_STREAMED_STORES, True),
        (streaming_copies.MAX_STREAMED_STORES + 1, False),
    ]:
        assert made_of([y * k for k in range(2, count + 2)], [y]) == far


def test_pieces_that_are_short():
    c, far = C.with_length(64), nontemporal_stores.MIN_STREAMING_PIECE_BYTES // 256
    x = geon.placeholder([R.with_length(1 << 14), c])
    for length, ways in [(far - 1, 1), (far, 2)]:
        y = geon.placeholder([R.with_length(length), c])
        b = geon.placeholder([c])
        with geon.make_transformer("native", threads=1) as transformer:
            f = transformer.computation(geon.concat([x + b, y - b], R), x, y, b)
            assert f.source.count("GEON_PUT(f") == ways


def test_borders_of_open_lengths_stay():
    """Pieces of fewer open lengths than the whole, and the whole itself, for short lengths."""
    n, h, w = (geon.Axis(name) for name in "NHW")
    x = geon.placeholder([n, h, w, geon.Axis("C", 64)])
    y = geon.max_pool(x, {h: geon.Window(3, pad=1), w: geon.Window(3, pad=1)})
    f = geon.make_transformer("native", threads=1).computation([y], x)
    texts = f.source.split("static void kernel_")
    passing = {text.split("_rows")[0] for text in texts if "GEON_PUT(f" in text}
    (work,) = [kernel.work for kernel in f.plan.schedule.kernels]
    open_ = [
        nontemporal_stores.degree(nontemporal_stores.stored_bytes(piece)) for piece in work.pieces
    ]
    assert set(open_) == {2, 3} and open_.count(3) == 1
    assert passing == {f"0_{open_.index(3)}"} and work.holds
    store_past(f, 1)
    g = geon.make_transformer("numpy").computation(y, x)
    for lengths in [(1, 1, 1), (1, 2, 9), (3, 9, 2), (2, 11, 13)]:
        array = values((*lengths, 64))
        np.testing.assert_array_equal(f(array)[0], g(array))


def test_the_reported_size_of_a_cache_decides_nothing(monkeypatch):
    monkeypatch.setattr(caches, "kept_ceilings", lambda threads: None)
    monkeypatch.setattr(caches, "processors", lambda: 4)
    for cache in (1 << 20, 40 << 20, 480 << 20):
        monkeypatch.setattr(caches, "caches_of", lambda cache=cache: (1 << 15, 1 << 20, cache))
        assert caches.past_bytes() == 32 << 20
        assert caches.reread_bytes() == 128 << 20


def test_measured_rates_say_from_which_size_on_stores_pass_by_the_caches(monkeypatch):
    """From the first size at which such stores are faster, and at all beyond it."""
    sizes, same = (1 << 20, 1 << 24, 1 << 26), (100.0, 40.0, 20.0)
    faster = (100.0, 50.0, 30.0)

    def measured(reads, past):
        rates = (reads, same, past, past, past)
        return Ceilings(1, sizes, rates, {4: 1.0, 8: 1.0}, (reads, same, same, same, same))

    def bounds(reads, past):
        monkeypatch.setattr(caches, "kept_ceilings", lambda threads: measured(reads, past))
        return caches.past_bytes(), caches.reread_bytes()

    assert bounds((100.0, 99.0, 98.0), faster) == (1 << 24, 1 << 24)
    assert bounds((100.0, 99.0, 10.0), faster) == (
        1 << 24,
        1 << 26,
    )  # a cache holds a part of 16 MiB
    assert bounds(same, (100.0, 50.0, 20.0)) == (caches.NEVER_STREAM_BYTES,) * 2
    assert bounds(same, (100.0, 40.0, 30.0)) == (1 << 26, 1 << 26)


def test_values_that_a_later_kernel_reads_have_the_whole_cache():
    """The squares are read by the running sum, the other result by no kernel."""
    x = geon.placeholder([N])
    results = [geon.cumsum(x * x, N), 3 - geon.exp(x)]
    with geon.make_transformer("native", threads=1) as transformer:
        source = transformer.computation(results, x).source
    limits = re.findall(r"= geon_is_past\(.*, (geon_\w+_bytes)\)", source)
    assert sorted(limits) == ["geon_past_bytes", "geon_reread_bytes"]


def test_what_is_counted():
    """A sum stores a third of what it touches; a row that is added counts once."""
    x, y = geon.placeholder([N]), geon.placeholder([N])
    r, c = R.with_length(4096), C.with_length(1024)
    z, b = geon.placeholder([r, c]), geon.placeholder([c])
    for result, inputs, counted in [
        (x + y, [x, y], "4 * n0, 12 * n0"),
        (x * x + 1, [x], "4 * n0, 8 * n0"),
        (z + b, [z, b], f"{4 << 22}, {(8 << 22) + 4096}"),
    ]:
        with geon.make_transformer("native", threads=1) as transformer:
            source = transformer.computation(result, *inputs).source
        assert f"geon_is_past({counted}, geon_past_bytes)" in source


def test_a_program_is_told_when_it_is_loaded(monkeypatch):
    """Whatever it is told gives the same numbers."""
    told = []

    def least():
        told.append(64)
        return 64

    monkeypatch.setattr(bound_program, "past_bytes", least)
    x = geon.placeholder([N])
    with geon.make_transformer("native", threads=1) as transformer:
        f = transformer.computation(x * 3 - 1, x)
        for n in (0, 15, 16, 17, 1000):
            a = np.arange(n, dtype="float32")
            np.testing.assert_array_equal(f(a), a * 3 - 1)
    assert told


@pytest.mark.parametrize("length", [None, 1000, 4097])
def test_a_unit_that_asks_alone_whether_stores_pass_by_has_what_answers(length):
    """The slope's only kernel of its unit brings near what it stores, and stores none past."""
    a, b, c = geon.Axis("A", length), geon.Axis("B"), geon.Axis("C")
    x = geon.placeholder([c, b, a])
    loss = geon.sum(geon.sin(geon.softmax(geon.tanh(geon.min(x, c)), a)))
    slope = geon.deriv(loss, x)
    array = np.random.default_rng(0).normal(size=(1, 2, length or 1000)).astype("float32")
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        found = native.computation(slope, x)(array)
        np.testing.assert_allclose(found, numpy.computation(slope, x)(array), rtol=1e-4, atol=1e-7)
