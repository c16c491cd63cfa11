"""Rows that are taken together because they load much alike: the same bits as one by one."""

import numpy as np
import pytest

import geon
from geon import Axis, Window
from geon.transformers.cache import programs
from geon.transformers.native.runtime import bound_program
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.trees import tree_choice
from tests.native.jammed_rows import TAKEN, JammedRows
from tests.native.together import Together, as_list, bits, results_of
from tests.tiers import scaled

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
SEEDS = scaled(60)


def no_tree(*args, **options):
    """No nest runs in vectors of the tree, and no rows are taken together."""


def jammed_body(source):
    """The text of the first loop over vectors of several rows."""
    begin = source.rindex("for (int64_t", 0, source.index(TAKEN))
    return source[begin : source.index("}", begin)]


def test_rows_taken_together_have_the_bits_of_single_ones(monkeypatch):
    cases = [JammedRows(seed) for seed in range(SEEDS)]
    found, taken = results_of(cases, 1, TAKEN)
    divided, _ = results_of(cases, 3, TAKEN)
    monkeypatch.setattr(tree_choice, "vector_tree", no_tree)
    plain, none = results_of(cases, 1, TAKEN)
    assert sum(taken) >= SEEDS // 6
    assert not any(none)
    for case, *each in zip(cases, found, divided, plain, strict=True):
        for ours, others, theirs in zip(*each, strict=True):
            np.testing.assert_array_equal(bits(ours), bits(theirs), err_msg=case.kind)
            np.testing.assert_array_equal(bits(others), bits(theirs), err_msg=case.kind)


@pytest.mark.slow
def test_rows_taken_together_have_numpys_values():
    cases = [JammedRows(seed) for seed in range(200, 200 + SEEDS // 2)]
    found, taken = results_of(cases, 3, TAKEN)
    assert sum(taken) >= SEEDS // 12
    for case, results in zip(cases, found, strict=True):
        with geon.NumPyTransformer() as numpy:
            wanted = numpy.computation(case.results, *case.leaves)(*case.arrays)
        for ours, right in zip(results, as_list(wanted), strict=True):
            bound = 1e-4 * max(np.abs(right).max(initial=0), 1) if case.floats else 0
            np.testing.assert_allclose(ours, right, 0, bound, err_msg=case.kind)


def depthwise(side, channels, end=lambda y: y, dtype="float32"):
    """A filter of 3×3 for each channel of images, with its placeholders."""
    n, h, w, c = Axis("N"), Axis("H", side), Axis("W", side), Axis("C", channels)
    x = geon.placeholder([n, h, w, c], dtype)
    r, s = Axis("R", 3), Axis("S", 3)
    f = geon.placeholder([r, s, c], dtype)
    spec = {h: Window(r, pad=(1, 1)), w: Window(s, pad=(1, 1))}
    return end(geon.convolution(x, f, spec, [])), x, f


@pytest.mark.parametrize("side", [10, 12, 13, 16, 18, 31])
@pytest.mark.parametrize("past", [None, 64])
def test_what_is_stored_past_the_caches(monkeypatch, side, past):
    """Some rows at a time have as many streams; whatever is left begins where these end."""
    if past is not None:
        monkeypatch.setattr(bound_program, "past_bytes", lambda: past)
    y, x, f = depthwise(side, 80)
    random = np.random.default_rng(side)
    arrays = random.normal(size=(5, side, side, 80)), random.normal(size=(3, 3, 80))
    given = [array.astype("float32") for array in arrays]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        made = native.computation(y, x, f)
        assert TAKEN in made.source
        wanted = numpy.computation(y, x, f)(*given)
        np.testing.assert_allclose(made(*given), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 64, 67, 301])
@pytest.mark.parametrize("past", [None, 64])
def test_rows_that_share_parameters_alone_pass_by_the_caches(monkeypatch, rows, past):
    """Vectors of all rows lie at multiples of a register's bytes."""
    if past is not None:
        monkeypatch.setattr(bound_program, "past_bytes", lambda: past)
    n, c = Axis("N"), Axis("C", 80)
    x, *parameters = (geon.placeholder(axes) for axes in ([n, c], *([c] for _ in range(6))))
    a, b, d, e, f, g = parameters
    y = (((x - a) * b + d) * e - f) * g
    random = np.random.default_rng(rows)
    given = [random.normal(size=shape).astype("float32") for shape in ((rows, 80), *[80] * 6)]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        made = native.computation(y, x, *parameters)
        assert "GEON_PUT(" in jammed_body(made.source)
        wanted = numpy.computation(y, x, *parameters)(*given)
        np.testing.assert_allclose(made(*given), wanted, rtol=1e-5, atol=1e-5)


def test_special_values_are_what_they_are_in_single_rows(monkeypatch):
    """Of vectors, and of numbers that are one for all of a vector."""
    one = geon.placeholder([])

    def end(y):
        ends = [geon.maximum(one, y), geon.minimum(one, y), geon.maximum(y, one), y / one]
        return [geon.maximum(y, 0), geon.where(y < one, -y, y / 0), *ends]

    y, x, f = depthwise(12, 32, end)
    random = np.random.default_rng(0)
    given = [random.normal(size=shape).astype("float32") for shape in ((2, 12, 12, 32), (3, 3, 32))]
    special = (np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-45)
    for value in special:
        given[0].reshape(-1)[random.integers(0, given[0].size, 40)] = value
    found = []
    for decide in (tree_choice.vector_tree, no_tree):
        monkeypatch.setattr(tree_choice, "vector_tree", decide)
        monkeypatch.setattr(programs, "_programs", None)
        together = Together()
        made = together.transformer().computation(y, x, f, one)
        together.add(made)
        together.compile()
        assert (TAKEN in made.source) == (decide is not no_tree)
        found.append([each for value in special for each in made(*given, np.float32(value))])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)  # NaN where there is NaN
        np.testing.assert_array_equal(
            np.signbit(ours) & (ours == 0), np.signbit(theirs) & (theirs == 0)
        )


@pytest.mark.parametrize("compare", [geon.less, geon.less_equal, geon.greater, geon.greater_equal])
def test_truths_are_ordered_as_numbers(compare):
    y, x, f = depthwise(12, 32, lambda y: geon.where(compare(y > 0, y < 1), y, 2.0))
    random = np.random.default_rng(0)
    given = [random.normal(size=shape).astype("float32") for shape in ((2, 12, 12, 32), (3, 3, 32))]
    with geon.NativeTransformer(threads=1) as native, geon.NumPyTransformer() as numpy:
        wanted = numpy.computation(y, x, f)(*given)
        np.testing.assert_allclose(
            native.computation(y, x, f)(*given), wanted, rtol=1e-5, atol=1e-5
        )


def test_what_a_row_knows_is_computed_before_its_vectors():
    n, c = Axis("N", 400), Axis("C", 512)
    x, row = geon.placeholder([n, c]), geon.placeholder([n])
    a, b, d, e, f = (geon.placeholder([c]) for _ in range(5))
    y = (((x - a) * b + d) * e - f) * (a + e) * geon.exp(row)
    with geon.NativeTransformer(threads=1) as native:
        source = native.computation(y, x, row, a, b, d, e, f).source
    vectors = source.index(jammed_body(source))
    row = source.rindex("for (int64_t", 0, vectors)
    assert source[row:vectors].count(" = geon_exp_f32(") == 4  # rows
    assert "geon_exp" not in jammed_body(source)


def test_a_variable_is_updated_in_place():
    n, c = Axis("N", 100), Axis("C", 48)
    x = geon.variable([n, c], initial_value=np.ones((100, 48), "float32"))
    a, b, d, e, f = (geon.placeholder([c]) for _ in range(5))
    update = geon.assign(x, (((x - a) * b + d) * e - f) * (a + b))
    random = np.random.default_rng(0)
    given = [random.normal(size=48).astype("float32") for _ in range(5)]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        assert TAKEN in native.computation(update, a, b, d, e, f).source
        for transformer in (native, numpy):
            step = transformer.computation(update, a, b, d, e, f)
            for _ in range(3):
                step(*given)
        ours, right = (t.computation(x)() for t in (native, numpy))
        np.testing.assert_allclose(ours, right, rtol=2e-5)


@pytest.mark.parametrize(
    "end, dtype",
    [
        (geon.exp, "float32"),  # no vector has it
        (lambda y: geon.cast(y, "float64"), "float32"),  # of another width
        (lambda y: y, "int8"),
        (lambda y: y, "float16"),
    ],
)
def test_what_vectors_do_not_have_stays_as_it_is(end, dtype):
    y, x, f = depthwise(12, 32, end, dtype)
    with geon.NativeTransformer(threads=1) as native:
        assert TAKEN not in native.computation(y, x, f).source


def test_rows_that_load_little_alike_stay_as_they_are():
    n, h, c = Axis("N", 64), Axis("H", 64), Axis("C", 32)
    x, f = geon.placeholder([n, h, c]), geon.placeholder([c])
    with geon.NativeTransformer(threads=1) as native:
        assert TAKEN not in native.computation(x * 2 + f, x, f).source


def test_each_load_is_there_once():
    """Of nine weights and four places under nine each, nine and eighteen are left."""
    y, x, f = depthwise(34, 32)
    with geon.NativeTransformer(threads=1) as native:
        body = jammed_body(native.computation(y, x, f).source)
    stores = body.count("GEON_PUT(") + body.count(" GEON_AT(") - body.count("= GEON_AT(")
    assert (body.count("= GEON_AT("), stores) == (9 + 3 * 6, 4)
