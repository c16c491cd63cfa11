"""Short rows side by side, truths in words and positions in 32 bits: the results of NumPy."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.kernels.nests.nest_lowering import MAX_SHORT_ROW_ELEMENTS, MIN_ADJACENT_ROWS
from geon.transformers.kernels.nests.short_row_variants import MAX_COSTLY_ROW_ELEMENTS, can_be
from geon.transformers.loops.tree import Fold, Kind, Role, loops_of, walk
from geon.transformers.lowering.planning.kernel_forms import FormChoice, trees_in

REDUCTIONS = ["sum", "max", "min", "any", "all", "argmax", "argmin", "logsumexp", "softmax"]
ROWS = [1, MIN_ADJACENT_ROWS - 1, MIN_ADJACENT_ROWS, 513, 1031]
LENGTHS = [
    1,
    2,
    3,
    7,
    8,
    MAX_SHORT_ROW_ELEMENTS - 1,
    MAX_SHORT_ROW_ELEMENTS,
    MAX_SHORT_ROW_ELEMENTS + 1,
]


def values(dtype, *shape):
    """Few different numbers, so that some tie; some not finite and of either zero."""
    generator = np.random.default_rng(7)
    data = generator.integers(-2, 3, size=shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        odd = generator.choice([np.nan, np.inf, -np.inf, -0.0, 1.5], size=shape)
        data = np.where(generator.random(shape) < 0.1, odd, data).astype(dtype)
    return data


def trees(results, *placeholders):
    """The loop trees of the nests that compute ``results``."""
    transformer = geon.NativeTransformer(threads=1)
    f = transformer.computation(results, *placeholders)
    nests = [k.op for k in f.plan.schedule.kernels if isinstance(k.work, Nest)]
    return [each.tree for op in nests for each in trees_in(f.plan.forms[op].parts)]


def has_choice(f):
    """Whether a nest of a computation has one form for short rows and another for long ones."""
    parts = [part for form in f.plan.forms.values() for part in form.parts]
    return any(isinstance(part, FormChoice) for part in parts)


def are_side_by_side(tree):
    """Whether the compiler makes vectors of rows in all loops of a tree that fold elements."""
    loops = [above[-1] for each, above in walk(tree.body) if isinstance(each, Fold)]
    lanes = [each for each in loops if each.kind is not Kind.COPIES]
    lanes += [each for each in loops_of(tree.body) if each.kind is Kind.LANES]
    return all((each.role, each.kind) == (Role.SIMD, Kind.LANES) for each in lanes)


def compare(results, *feeds):
    """Hold native code, on one thread and two and without a plan, to NumPy; its source.

    ``feeds`` are placeholders, each with its data.
    """
    given, data = feeds[::2], feeds[1::2]
    wanted = geon.NumPyTransformer().computation(results, *given)(*data)
    one, two = geon.NativeTransformer(threads=1), geon.NativeTransformer(threads=2)
    f = one.computation(results, *given)
    found = f(*data)
    others = [
        two.computation(results, *given)(*data),
        one.computation(results, *given, plan=False)(*data),
    ]
    for number, want in enumerate(wanted):
        if want.dtype.kind == "f":
            np.testing.assert_allclose(found[number], want, rtol=3e-6)
        else:
            np.testing.assert_array_equal(found[number], want)
        for other in others:
            assert found[number].tobytes() == other[number].tobytes()
    one.close()
    two.close()
    return f.source


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool"])
def test_short_rows_give_what_numpy_gives(rows, dtype):
    """Of all lengths around the one from which rows are taken one after another."""
    names = {"f": REDUCTIONS, "i": REDUCTIONS[:7], "b": ["any", "all", "argmax", "argmin"]}
    results, feeds = [], []
    for length in LENGTHS:
        n, c = geon.Axis("N", rows), geon.Axis("C", length)
        x = geon.placeholder([n, c], dtype=dtype)
        feeds += [x, values(dtype, rows, length)]
        results += [getattr(geon, name)(x, c) for name in names[np.dtype(dtype).kind]]
    compare(results, *feeds)


@pytest.mark.parametrize("name", ["max", "argmax", "logsumexp", "all"])
def test_rows_side_by_side_are_short_and_many(name):
    def beside(rows, length):
        n, c = geon.Axis("N", rows), geon.Axis("C", length)
        x = geon.placeholder([n, c])
        results = [getattr(geon, name)(x, c)]
        compare(results, x, values("float32", rows, length))
        found = trees(results, x)  # none of what a function of the library finds
        lanes = any(loop.kind is Kind.LANES for tree in found for loop in loops_of(tree.body))
        return lanes and all(map(are_side_by_side, found))

    assert beside(MIN_ADJACENT_ROWS, MAX_SHORT_ROW_ELEMENTS)
    assert not beside(MIN_ADJACENT_ROWS - 1, MAX_SHORT_ROW_ELEMENTS)
    assert not beside(MIN_ADJACENT_ROWS, MAX_SHORT_ROW_ELEMENTS + 1)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_short_rows_of_open_length_give_what_numpy_gives(dtype):
    """One compile takes them side by side where they are short, and one after another."""
    m, n, c = geon.Axis("M"), geon.Axis("N"), geon.Axis("C")
    x = geon.placeholder([m, n, c], dtype=dtype)
    results = [getattr(geon, name)(x, reduction_axes=c) for name in ("sum", "max", "any", "all")]
    results += [geon.mean(geon.cast(x, "float64"), reduction_axes=c)]
    with geon.NativeTransformer(threads=2) as transformer:
        f = transformer.computation(results, x)
        wanted = geon.NumPyTransformer().computation(results, x)
        for rows in ROWS:
            for length in LENGTHS:
                data = values(dtype, 2, rows, length)
                for found, want in zip(f(data), wanted(data), strict=True):
                    np.testing.assert_allclose(found, want, rtol=3e-6)
        assert has_choice(f)


@pytest.mark.parametrize("length", [2, 4, 8, 15])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_rows_may_lie_backwards(length, dtype):
    n, c = geon.Axis("N", 700), geon.Axis("C", length)
    x = geon.placeholder([n, c], dtype=dtype)
    turned = geon.flip(geon.flip(x, n), c)
    results = [geon.sum(turned, c), geon.max(turned, c), geon.argmax(turned, c)]
    compare(results, x, values(dtype, 700, length))
    (tree,) = trees(results, x)
    assert are_side_by_side(tree)


def test_many_rows_may_be_along_an_outer_axis():
    """Where the last axis of the rows is short too."""
    n, m, c = geon.Axis("N", 700), geon.Axis("M", 2), geon.Axis("C", 4)
    x = geon.placeholder([n, m, c])
    results = [geon.logsumexp(x, c), geon.argmin(x, c), geon.max(x, c)]
    compare(results, x, values("float32", 700, 2, 4))
    assert all(are_side_by_side(each) for each in trees(results, x))


@pytest.mark.parametrize(
    ("dtype", "word"), [("bool", 8), ("float16", 16), ("float32", 32), ("int64", 64)]
)
def test_truths_are_folded_in_words_as_wide_as_what_is_loaded(dtype, word):
    n = geon.Axis("N", 1000)
    x = geon.placeholder([n], dtype=dtype)
    results = [geon.any(x), geon.all(x)]
    compare(results, x, values(dtype, 1000))
    (tree,) = trees(results, x)
    (loop,) = loops_of(tree.body)
    words = [tree.buffers[each.into[0]].dtype.name for each in loop.body]
    assert loop.role is Role.SIMD and words == 2 * [f"uint{word}"]


@pytest.mark.parametrize(
    ("dtype", "ctype"), [("int8", "int32_t"), ("float32", "int32_t"), ("float64", "int64_t")]
)
def test_positions_are_as_wide_as_vectors_of_elements_allow(dtype, ctype):
    """In int64 where elements are of 64 bits or the length is open, else in int32.

    Along columns and along a whole array the compiler makes vectors of them.
    """
    for length, held in ((300, ctype.removesuffix("_t")), (None, "int64")):
        n, c = geon.Axis("N", length) if length else geon.Axis("N"), geon.Axis("C", 130)
        x = geon.placeholder([n, c], dtype=dtype)
        results = [geon.argmax(x, n), geon.argmin(x)]
        compare(results, x, values(dtype, 300, 130))
        for tree in trees(results, x):
            folds = [(x, up) for x, up in walk(tree.body) if isinstance(x, Fold) and not x.merges]
            assert {tree.buffers[each.into[1]].dtype.name for each, _ in folds} == {held}
            in_lanes = [up for _, up in folds if any(each.role is Role.SIMD for each in up)]
            assert in_lanes and all(
                up[-1].kind is Kind.REST for _, up in folds if up not in in_lanes
            )


@pytest.mark.parametrize("threads", [1, 2])
def test_short_rows_of_open_length_that_are_gone_over_twice(threads):
    """The variance of each row, and what a later reduction finds of it beside a whole graph's."""
    n, c = geon.Axis("N"), geon.Axis("C")
    x = geon.placeholder([n, c])
    apart = x - geon.broadcast(geon.max(x, c), x.axes)
    results = [geon.variance(x, c), geon.sum(geon.exp(apart) * geon.square(apart), c)]
    with geon.NativeTransformer(threads=threads) as transformer:
        f = transformer.computation(results, x)
        wanted = geon.NumPyTransformer().computation(results, x)
        for rows in ROWS:
            for length in LENGTHS:
                data = np.random.default_rng(length).normal(size=(rows, length)).astype("float32")
                for found, want in zip(f(data), wanted(data), strict=True):
                    np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)
        assert has_choice(f)


def stored(x, c, each):
    """Rows that are stored in the pass after those that reduce them."""
    apart = x - geon.mean(x, c)
    norm = apart * geon.rsqrt(geon.mean(geon.square(apart), c) + 1e-5)
    first = geon.square(x) - geon.max(x, c)
    share = geon.softmax(x, normalization_axes=c)
    slope = geon.deriv(geon.sum(geon.square(geon.softmax(x * each, normalization_axes=c))), x)
    return [share, norm, first * each, slope]


@pytest.mark.parametrize("chosen", [[0], [1], [2], [3], [0, 1, 2, 3]], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_short_rows_of_open_length_that_are_stored_give_what_numpy_gives(dtype, chosen):
    m, n, c = geon.Axis("M", 2), geon.Axis("N"), geon.Axis("C")
    x, each = geon.placeholder([m, n, c], dtype, name="x"), geon.placeholder([c], dtype, name="e")
    made = stored(x, c, each)
    results = [made[number] for number in chosen]
    near = {"float32": 1e-4, "float64": 1e-10, "float16": 2e-2}[dtype]
    transformers = [geon.NativeTransformer(threads=threads) for threads in (1, 2)]
    functions = [each_of.computation(results, x, each) for each_of in transformers]
    wanted = geon.NumPyTransformer().computation(results, x, each)
    assert has_choice(functions[0])
    generator = np.random.default_rng(3)
    for rows in ROWS:
        for length in LENGTHS:
            data = generator.normal(size=(2, rows, length)).astype(dtype)
            scale = generator.normal(size=length).astype(dtype)
            one, two = (f(data, scale) for f in functions)
            for found, other, want in zip(one, two, wanted(data, scale), strict=True):
                np.testing.assert_allclose(found, want, rtol=near, atol=near)
                assert found.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_all_of_short_rows_of_open_length_gives_what_numpy_gives(dtype):
    """What is reduced at once goes along the rows where these are short, also as it stores."""
    n, c = geon.Axis("N"), geon.Axis("C")
    x, each = geon.placeholder([n, c], dtype, name="x"), geon.placeholder([c], dtype, name="e")
    if dtype == "bool":
        results = [geon.any(x & each), geon.all(x | each), geon.sum(geon.cast(x & each, "int32"))]
    else:
        results = [geon.max(x * each), geon.min(x - each), x * each]
    if dtype.startswith("float"):
        results += [geon.sum(geon.tanh(x) * each), geon.mean(geon.square(x - each))]
    transformers = [geon.NativeTransformer(threads=threads) for threads in (1, 2)]
    functions = [each_of.computation(results, x, each) for each_of in transformers]
    wanted = geon.NumPyTransformer().computation(results, x, each)
    assert has_choice(functions[0])
    for rows in (*ROWS, 20_000):
        for length in (
            0,
            *LENGTHS,
            MAX_COSTLY_ROW_ELEMENTS - 1,
            MAX_COSTLY_ROW_ELEMENTS,
            MAX_COSTLY_ROW_ELEMENTS + 1,
        ):
            data = values(dtype, rows, length)
            scale = np.nan_to_num(values(dtype, length), posinf=3, neginf=-3).astype(dtype)
            if length == 0 and dtype != "bool":
                continue  # nothing has no extreme
            one, two = (f(data, scale) for f in functions)
            for found, other, want in zip(one, two, wanted(data, scale), strict=True):
                if want.dtype.kind == "f":
                    np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-5)
                else:
                    np.testing.assert_array_equal(found, want)
                assert np.asarray(found).tobytes() == np.asarray(other).tobytes()


def test_a_draw_in_what_short_rows_store_keeps_its_order():
    """Rows one after another, as the places of a draw are."""
    n, c = geon.Axis("N"), geon.Axis("C")
    x = geon.placeholder([n, c], name="x")
    results = [geon.softmax(x, normalization_axes=c) * geon.Random(3).uniform(x.axes)]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        f, g = (each.computation(results, x) for each in (native, numpy))
        for rows, length in ((MIN_ADJACENT_ROWS, 3), (1031, MAX_SHORT_ROW_ELEMENTS), (1, 5)):
            data = np.random.default_rng(rows).normal(size=(rows, length)).astype("float32")
            np.testing.assert_allclose(f(data)[0], g(data)[0], rtol=1e-5)


@pytest.mark.parametrize("rows", [MIN_ADJACENT_ROWS - 1, MIN_ADJACENT_ROWS, None])
def test_rows_that_are_known_to_be_few_are_not_gone_along(rows):
    n, c = geon.Axis("N", rows), geon.Axis("C")
    x, each = geon.placeholder([n, c], name="x"), geon.placeholder([c], name="e")
    with geon.NativeTransformer(threads=1) as transformer:
        f = transformer.computation(geon.sum(geon.square(x - each)), x, each)
        assert has_choice(f) is (rows != MIN_ADJACENT_ROWS - 1)
        assert f(np.ones((rows or 70, 3)), np.zeros(3)) == 3 * (rows or 70)


@pytest.mark.parametrize("square", [False, True])
def test_rows_of_a_square_have_no_form_for_short_ones(square):
    """There are as many as they are long, so they are not short and many at once."""
    rows = geon.Axis("T")
    columns = rows.prime if square else geon.Axis("C")
    x = geon.placeholder([rows, columns])
    f = geon.NativeTransformer(threads=2).computation(geon.softmax(geon.tanh(x), columns), x)
    assert has_choice(f) is not square
    for length in (
        1,
        5,
        MAX_SHORT_ROW_ELEMENTS,
        MAX_SHORT_ROW_ELEMENTS + 1,
        MIN_ADJACENT_ROWS,
        130,
    ):
        data = np.random.default_rng(length).normal(size=(length, length)).astype(np.float32)
        raised = np.exp(np.tanh(data))
        np.testing.assert_allclose(f(data), raised / raised.sum(1, keepdims=True), rtol=3e-6)


@pytest.mark.parametrize(
    "sizes, together",
    [((3, 5), True), ((-1, 5), False), ((), True), ((0, 0), True)],
)
def test_known_sizes_are_together_where_none_is_negative(sizes, together):
    assert can_be(sizes) is together


def test_open_sizes_are_together_where_no_two_sum_to_less_than_nothing():
    n, m = geon.Axis("N").expression, geon.Axis("M").expression
    assert can_be((n - 1, 15 - n, m - 64))
    assert can_be((n - 1, 15 - n, 15 - n))
    assert not can_be((15 - n, n - 64))
    assert not can_be((15 - n * m, n * m - 16))
    assert can_be((15 - n * m, n * m - 15))
