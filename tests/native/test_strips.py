"""Strips: functions of all lanes have the bits of those of one element, and sums are right."""

import re

import numpy as np
import pytest

import geon
from geon.transformers.loops.prefetch import MAX_PREFETCHED_BYTES
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.vectors.vector_functions import (
    MAX_STRIP_NODES,
    MIN_STRIP_ROW_ELEMENTS,
    exists,
)
from geon.transformers.printing.scalars.c_expressions import STRIP_FUNCTIONS

toolchain = find_toolchain()
vector_bytes = 0 if toolchain is None else toolchain.vector_bytes
pytestmark = pytest.mark.skipif(vector_bytes < 32, reason="strips need AVX2")
STRIP_ELEMENTS = vector_bytes // 4


def present(name, dtype):
    """Skip a test of a function of strips that this machine has not."""
    if not exists(STRIP_FUNCTIONS[name, dtype], vector_bytes):
        pytest.skip("this function of strips needs AVX-512")


LENGTHS = [
    1,
    MIN_STRIP_ROW_ELEMENTS - 1,
    MIN_STRIP_ROW_ELEMENTS,
    MIN_STRIP_ROW_ELEMENTS + 1,
    MIN_STRIP_ROW_ELEMENTS + STRIP_ELEMENTS - 1,
    500,
    511,
    512,
    513,
    1021,
    4099,
]
EDGES = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 88.7228, 88.7229, -87.3, -103.9, -104.0, -150]
EDGES += [2.0**46, -(2.0**46), 2.0**45.999, 1e5, 205887.0, 1e22]
EDGES += [709.78, 709.79, -708.4, -745.1, -746, 1e20, -1e20, 3e38, -3e38, 1e308, -1e308, 1e-310]


def special(dtype, count):
    """Random bits, numbers near the ends of the exponential, and edges."""
    generator = np.random.default_rng(3)
    bits = generator.integers(0, 256, size=count * dtype.itemsize, dtype=np.uint8).view(dtype)
    end = 110 if dtype == np.float32 else 760
    with np.errstate(over="ignore"):
        edges = np.array(EDGES).astype(dtype)
    return np.concatenate([bits, generator.uniform(-end, end, count).astype(dtype), edges])


OF_TWO = ("add", "mod", "floordivide")


def test_later_passes_bring_near_what_the_next_row_reads():
    """And what this row stores; not what has one pass, nor rows that are long, as calls tell where
    lengths are open.
    """
    rows = geon.Axis("rows")
    with geon.NativeTransformer(threads=1) as transformer:

        def fetches(function, length):
            columns = geon.Axis("columns", length)
            x = geon.placeholder([rows, columns])
            source = transformer.computation(function(x, columns), x).source
            assert source.count("!passes) __builtin_prefetch(") == source.count(", 1);")
            return [len(re.findall(rf"__builtin_prefetch\(&.*, {k}\);", source)) for k in (0, 1)]

        softmax = lambda x, columns: geon.softmax(x, normalization_axes=columns)  # noqa: E731
        total = lambda x, columns: geon.sum(geon.exp(x), columns)  # noqa: E731
        assert fetches(softmax, 1024) == [1, 1]
        assert fetches(softmax, 1 << 14) == [0, 0]
        assert fetches(total, 1024) == [0, 0]
        assert fetches(softmax, None) == [1, 1]
        x = geon.placeholder([rows, columns := geon.Axis("columns")])
        f = transformer.computation(softmax(x, columns), x)
        assert f"+ {MAX_PREFETCHED_BYTES} >= 0) __builtin_prefetch(" in f.source
        for length in (
            MAX_PREFETCHED_BYTES // 8 - 1,
            MAX_PREFETCHED_BYTES // 8,
            MAX_PREFETCHED_BYTES // 8 + 1,
        ):
            data = np.random.default_rng(length).normal(size=(3, length)).astype("float32")
            powers = np.exp(data - data.max(1, keepdims=True))
            expected = powers / powers.sum(1, keepdims=True)
            np.testing.assert_allclose(f(data), expected, rtol=1e-5)


@pytest.mark.parametrize(("name", "dtype"), [k for k in STRIP_FUNCTIONS if k[0] not in OF_TWO])
def test_strips_have_the_bits_of_single_elements(name, dtype):
    present(name, dtype)
    function = getattr(geon, name)
    data = special(np.dtype(dtype), 1 << 16)
    data = np.resize(
        data, (len(data) // MIN_STRIP_ROW_ELEMENTS + 1) * MIN_STRIP_ROW_ELEMENTS
    ).reshape(-1, MIN_STRIP_ROW_ELEMENTS)
    rows, lane, parts = (
        geon.Axis("rows", len(data)),
        geon.Axis("lane", MIN_STRIP_ROW_ELEMENTS),
        MIN_STRIP_ROW_ELEMENTS // STRIP_ELEMENTS,
    )
    x = geon.placeholder([rows, lane], dtype=dtype)
    part = geon.Axis("part", STRIP_ELEMENTS)
    short = geon.placeholder([geon.Axis("many", len(data) * parts), part], dtype=dtype)
    with geon.NativeTransformer(threads=1) as transformer:
        # A sum beside the function keeps loops over rows apart from those along them.
        strip = transformer.computation([function(x), geon.sum(function(x), lane)], x)
        single = transformer.computation([function(short), geon.sum(function(short), part)], short)
        assert STRIP_FUNCTIONS[name, dtype] in strip.source
        assert STRIP_FUNCTIONS[name, dtype] not in single.source
        found, wanted = (
            strip(data)[0],
            single(data.reshape(-1, STRIP_ELEMENTS))[0].reshape(data.shape),
        )
    assert (np.isnan(found) == np.isnan(wanted)).all()
    if name not in ("sin", "cos"):  # which have no value at an infinity
        assert (np.isnan(found) == np.isnan(data)).all()
    numbers = ~np.isnan(wanted)
    assert found[numbers].tobytes() == wanted[numbers].tobytes()


@pytest.mark.parametrize(("name", "dtype"), [k for k in STRIP_FUNCTIONS if k[0] in OF_TWO[1:]])
def test_remainders_in_strips_are_those_of_python(name, dtype):
    """At quotients below, at and far above those that floats hold, and as of single elements."""
    generator = np.random.default_rng(6)
    edges = special(np.dtype(dtype), 1 << 13)
    bits = 24 if dtype == "float32" else 53
    divisors = generator.uniform(0.1, 10, 1 << 15).astype(dtype)
    scales = np.exp2(generator.integers(-3, bits + 12, 1 << 15)).astype(dtype)
    whole = generator.integers(-5, 5, 1 << 15).astype(dtype) * scales
    first = np.concatenate([edges, divisors * whole, generator.normal(size=1 << 15) * scales])
    second = np.concatenate([generator.permutation(edges), divisors, divisors[::-1]])
    first, second = first.astype(dtype), second.astype(dtype)
    count = len(first) // STRIP_ELEMENTS * STRIP_ELEMENTS
    first, second = first[:count], second[:count]
    flat = geon.Axis("flat", count)
    many, part = geon.Axis("many", count // STRIP_ELEMENTS), geon.Axis("part", STRIP_ELEMENTS)
    x, y = (geon.placeholder([flat], dtype=dtype) for _ in range(2))
    u, v = (geon.placeholder([many, part], dtype=dtype) for _ in range(2))
    function = geon.mod if name == "mod" else geon.floordivide
    with geon.NativeTransformer(threads=1) as transformer:
        strip = transformer.computation(function(x, y), x, y)
        # A sum beside the function keeps loops over rows apart from those along them.
        single = transformer.computation([function(u, v), geon.sum(u * v, part)], u, v)
        assert STRIP_FUNCTIONS[name, dtype] in strip.source
        assert STRIP_FUNCTIONS[name, dtype] not in single.source
        found = strip(first, second)
        wanted = single(first.reshape(-1, STRIP_ELEMENTS), second.reshape(-1, STRIP_ELEMENTS))[
            0
        ].reshape(-1)
    numbers = ~np.isnan(found)
    assert (numbers == ~np.isnan(wanted)).all()
    assert found[numbers].tobytes() == wanted[numbers].tobytes()
    with np.errstate(all="ignore"):
        exact = np.mod(first, second) if name == "mod" else np.floor_divide(first, second)
    np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize(("source", "target"), [("float16", "float32"), ("float32", "float16")])
def test_casts_of_halves_in_strips_have_the_bits_of_single_elements(source, target):
    """Every float16, signalling NaN too; random bits, and what lies beside each float16 and beside
    the middles between two; and there and back."""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    data = halves
    if source == "float32":
        near = np.arange(-2, 3, dtype=np.int64)[:, None]
        bits = halves.astype(np.float32).view(np.uint32).astype(np.int64)
        random = np.random.default_rng(4).integers(0, 1 << 32, 1 << 16)
        data = np.concatenate([(bits + near).ravel(), (bits + 0x1000 + near).ravel(), random])
        data = (data & 0xFFFFFFFF).astype(np.uint32).view(np.float32)
    flat, rows = geon.Axis("flat", len(data)), geon.Axis("rows", len(data) // STRIP_ELEMENTS)
    part = geon.Axis("part", STRIP_ELEMENTS)
    x, short = geon.placeholder([flat], dtype=source), geon.placeholder([rows, part], dtype=source)
    with geon.NativeTransformer(threads=1) as transformer:
        one = geon.cast(x, target)
        strip = transformer.computation([one, geon.cast(one, source)], x)
        turned = geon.reorder(geon.cast(short, target), [part, rows])  # along which no strips are
        single = transformer.computation([turned, geon.cast(turned, source)], short)
        assert "_to_half_strip" in strip.source
        assert "_strip(" not in single.source
        found, wanted = strip(data), single(data.reshape(-1, STRIP_ELEMENTS))
    for a, b in zip(found, wanted, strict=True):
        assert a.tobytes() == np.ascontiguousarray(b.T).tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_softmax_in_strips_is_right_at_any_length(dtype, is_open):
    generator = np.random.default_rng(5)
    with geon.NativeTransformer(threads=1) as one, geon.NativeTransformer(threads=2) as two:
        for length in LENGTHS:
            n, c = geon.Axis("N", 5), geon.Axis("C") if is_open else geon.Axis("C", length)
            x = geon.placeholder([n, c], dtype=dtype)
            result = [geon.softmax(x, c), geon.logsumexp(x, c)]
            data = (8 * generator.normal(size=(5, length))).astype(dtype)
            data[1, length // 2], data[2, -1], data[3, 0] = np.nan, -np.inf, 300
            found = one.computation(result, x)(data)
            again = two.computation(result, x)(data)
            plain = one.computation(result, x, plan=False)(data)
            with np.errstate(invalid="ignore"):
                wide = np.exp(data.astype(np.float64) - data.max(1, keepdims=True))
            wanted = wide / wide.sum(1, keepdims=True)
            bound = 3e-6 if dtype == "float32" else 1e-14
            np.testing.assert_allclose(found[0], wanted, rtol=bound, atol=1e-45)
            for other in (again, plain):
                for a, b in zip(found, other, strict=True):
                    assert a.tobytes() == b.tobytes()


def test_functions_of_functions_and_of_two_dtypes_are_right():
    n = geon.Axis("N", 1000)
    x = geon.placeholder([n])
    wide = geon.cast(x, "float64")
    results = [geon.exp(geon.exp(x) - 2), geon.exp(wide) * wide, geon.sum(geon.exp(-geon.exp(x)))]
    data = np.random.default_rng(7).normal(size=1000).astype(np.float32)
    with geon.NativeTransformer(threads=1) as transformer:
        found = transformer.computation(results, x)(data)
    double = data.astype(np.float64)
    np.testing.assert_allclose(found[0], np.exp(np.exp(double) - 2), rtol=3e-6)
    np.testing.assert_allclose(found[1], np.exp(double) * double, rtol=1e-14)
    np.testing.assert_allclose(found[2], np.exp(-np.exp(double)).sum(), rtol=1e-6)


def test_a_long_chain_is_right_with_and_without_strips():
    n = geon.Axis("N", 300)
    x = geon.placeholder([n])
    data = np.random.default_rng(9).uniform(-1, 1, 300).astype(np.float32)
    with geon.NativeTransformer(threads=1) as transformer:
        for count in (MAX_STRIP_NODES // 4, MAX_STRIP_NODES):
            result, wanted = x, data.astype(np.float64)
            for _ in range(count):
                result, wanted = geon.exp(-result * result), np.exp(-wanted * wanted)
            computation = transformer.computation(result, x)
            np.testing.assert_allclose(computation(data), wanted, rtol=1e-5)


def agree(result, *placeholders_and_data):
    """The source, where one thread, two and no plan give the same bits; and what they give."""
    placeholders, data = placeholders_and_data[::2], placeholders_and_data[1::2]
    found = []
    for threads, plan in ((1, True), (2, True), (2, False)):
        with geon.NativeTransformer(threads=threads) as transformer:
            computation = transformer.computation(result, *placeholders, plan=plan)
            found.append((computation.source, computation(*data)))
    for _, value in found[1:]:
        assert value.tobytes() == found[0][1].tobytes()
    return found[0]


@pytest.mark.parametrize("over", ["N", "C"])
def test_a_pass_that_draws_takes_no_strips_and_one_that_reads_a_draw_of_its_row_does(over):
    n, c = geon.Axis("N", 33), geon.Axis("C", 3 * 1024 + 77)
    present("exp", "float32")
    x = geon.placeholder([n, c])
    axes = [n, c] if over == "C" else [n]
    noise = geon.Random(3).uniform(axes)
    data = np.random.default_rng(11).normal(size=(33, c.length)).astype(np.float32)
    source, found = agree(geon.sum(geon.exp(x) * noise, c), x, data)
    assert ("geon_exp_strip_f32" in source) is (over == "N")
    with geon.NumPyTransformer() as numpy:
        drawn = numpy.computation(noise)()
    wanted = (np.exp(data.astype(np.float64)) * drawn.reshape(33, -1)).sum(1)
    np.testing.assert_allclose(found, wanted, rtol=3e-6)


@pytest.mark.parametrize(
    "size",
    [
        MIN_STRIP_ROW_ELEMENTS,
        MIN_STRIP_ROW_ELEMENTS + 1,
        4096,
        4096 + STRIP_ELEMENTS,
        16 * 12_345,
        16 * 65_537,
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_loop_that_fills_strips_has_no_other_loop(size, dtype):
    present("exp", dtype)
    x = geon.placeholder([geon.Axis("N", size)], dtype=dtype)
    data = np.random.default_rng(13).normal(size=size).astype(dtype)
    source, found = agree(geon.exp(x) * 2, x, data)
    assert STRIP_FUNCTIONS["exp", dtype] in source
    single = "= geon_exp_f32(" if dtype == "float32" else "= geon_exp_f64("
    assert (single in source) is (size % STRIP_ELEMENTS != 0)
    np.testing.assert_allclose(found, 2 * np.exp(data.astype(np.float64)), rtol=3e-7)


def test_pieces_of_a_join_are_taken_in_strips():
    present("exp", "float32")
    n, c = geon.Axis("N", 40), geon.Axis("C", 500)
    x, y = geon.placeholder([n, c]), geon.placeholder([n, c.with_length(77)])
    generator = np.random.default_rng(17)
    a, b = (generator.normal(size=(40, k)).astype(np.float32) for k in (500, 77))
    source, found = agree(geon.exp(geon.concat([x, y], c)), x, a, y, b)
    assert "geon_exp_strip_f32" in source
    np.testing.assert_allclose(found, np.exp(np.hstack([a, b])), rtol=3e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "size",
    [
        MIN_STRIP_ROW_ELEMENTS - 1,
        MIN_STRIP_ROW_ELEMENTS,
        2 * MIN_STRIP_ROW_ELEMENTS + 1,
        33 * 1024,
        100_003,
        100_008,
    ],
)
def test_sums_of_remainders_are_taken_in_strips(dtype, size):
    """A sum of what a function of strips gives, and of what it gives cast to another width."""
    x = geon.placeholder([geon.Axis("N", size)], dtype=dtype)
    rest = geon.mod(x, 3)
    data = np.random.default_rng(19).uniform(-20, 20, size).astype(dtype)
    total = geon.sum(rest)
    source, found = agree(total, x, data)
    assert ("geon_mod_strip" in source) is (size >= MIN_STRIP_ROW_ELEMENTS)
    np.testing.assert_allclose(found, np.mod(data, np.array(3, dtype)).sum(dtype="float64"), 1e-6)
    wide = geon.sum(geon.cast(rest, "float64"))
    _, found = agree(wide, x, data)
    np.testing.assert_allclose(found, np.mod(data, np.array(3, dtype)).sum(dtype="float64"), 1e-12)


@pytest.mark.parametrize(
    "size",
    [
        MIN_STRIP_ROW_ELEMENTS - 1,
        MIN_STRIP_ROW_ELEMENTS,
        MIN_STRIP_ROW_ELEMENTS + STRIP_ELEMENTS + 3,
        4099,
    ],
)
def test_what_is_read_backwards_is_taken_in_strips(size):
    """Loads that are read ahead are operands of functions of strips where they lie."""
    x = geon.placeholder([geon.Axis("N", size)])
    data = np.random.default_rng(23).normal(size=size).astype(np.float32)
    source, found = agree(geon.cast(geon.flip(x, "N"), "float16"), x, data)
    assert ("geon_f32_to_half_strip" in source) is (size >= MIN_STRIP_ROW_ELEMENTS)
    np.testing.assert_array_equal(found, data[::-1].astype(np.float16))


@pytest.mark.parametrize("size", [81_936, 81_944, 16 * 65_537, 16 * 65_537 + 8])
def test_parts_of_a_loop_in_strips_are_whole_strips(size):
    """How much a task takes is a multiple of a strip, also where a vector is half of one."""
    x = geon.placeholder([geon.Axis("N", size)])
    data = np.random.default_rng(29).uniform(-9, 9, size).astype(np.float32)
    source, found = agree(geon.mod(x, 2.5), x, data)
    assert "geon_mod_strip_f32" in source
    np.testing.assert_array_equal(found, np.mod(data, np.float32(2.5)))


def test_strips_take_truths_integers_positions_choices_and_what_a_row_has_looked_up():
    """And give what a transformer of single elements does."""
    n, m = geon.Axis("N", 40), geon.Axis("M", 3 * MIN_STRIP_ROW_ELEMENTS + 5)
    x, y = (geon.placeholder([n, m]) for _ in range(2))
    at = geon.placeholder([n], "int64")
    half = geon.cast(x, "float16")
    place = geon.cast(geon.iota(m, "int64"), "float32")
    inner = geon.Axis("inner", m.length - 9)
    inside = geon.cast_axes(geon.pad(geon.broadcast(1.5, [inner]), {inner: (4, 5)}), [m])
    results = {
        "mod": geon.mod(x, y) < y,
        "mod_of_integers": geon.mod(geon.cast(geon.cast(x, "int8"), "float32"), y),
        "softplus": geon.softplus(place - 30.0) * x,
        "looked up": geon.cast(geon.gather(half, at, n) * 2, "bfloat16"),
        "chosen": geon.sum(geon.mod(x, y) * inside, m),
    }
    generator = np.random.default_rng(0)
    given = [generator.normal(size=(40, m.length)).astype("float32") * 4 for _ in range(2)]
    given.append(generator.permutation(40))
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        for name, result in results.items():
            f = native.computation(result, x, y, at)
            expected = numpy.computation(result, x, y, at)(*given)
            np.testing.assert_allclose(
                f(*given).astype("float64"), expected.astype("float64"), rtol=2e-5, err_msg=name
            )
            if name == "chosen":
                assert "[each] ? 1.5f : 0.0f" in f.source
            if exists(STRIP_FUNCTIONS["mod", "float32"], vector_bytes):
                assert "_strip" in f.source.split("kernel_0", 1)[1], name


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "sin", "softplus", "log", "sqrt"])
def test_sums_of_integers_beside_functions_of_strips_are_right(name, dtype):
    """Strips add up floats alone; a count of what a function gave is one of integers."""
    n, c = geon.Axis("N"), geon.Axis("C", 70)
    x = geon.placeholder([n, c], dtype, name="x")
    value = getattr(geon, name)(x)
    above = value > 0.5
    results = [geon.sum(above), geon.sum(above, c), geon.sum(value, c), geon.sum(value)]
    results += [geon.sum(geon.cast(x * 4, "int32"), c), geon.sum(geon.cast(x, "float32"))]
    data = np.random.default_rng(0).random((33, 70)).astype(x.dtype)
    with geon.NativeTransformer() as native, geon.NumPyTransformer() as numpy:
        each = [native.computation(result, x)(data) for result in results]
        found, wanted = (t.computation(results, x)(data) for t in (native, numpy))
        for one, together, want in zip(each, found, wanted, strict=True):
            near = 1e-5 if dtype in ("float32", "float64") else 1e-2
            for got in (one, together):
                np.testing.assert_allclose(
                    np.asarray(got, "float64"), np.asarray(want, "float64"), rtol=near
                )
