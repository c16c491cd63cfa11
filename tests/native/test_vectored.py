"""Nests that are text of vectors: values of plain text, and its bits where sums have its order."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.transformers.cache import programs
from geon.transformers.native.emit.form_table import for_vectors
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.runtime import bound_program
from geon.transformers.native.toolchain import compilers
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.native.trees import tree_choice
from tests.native.together import as_list, bits, results_of
from tests.native.vectored_nests import VectoredNest
from tests.tiers import scaled

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
SEEDS = scaled(90)
VECTORS = "GEON_AT(f"  # what text of vectors has
EPSILON = {"float32": 2e-5, "float64": 1e-13, "int32": 0}


def no_tree(*args, **options):
    """No nest runs as a tree."""


def alike(ours, theirs, case):
    """The bits of plain text, or where terms are added in another order its values."""
    if not case.reordered:
        np.testing.assert_array_equal(bits(ours), bits(theirs), err_msg=case.kind)
        return
    bound = EPSILON[case.dtype] * max(np.abs(theirs).max(initial=0), 1)
    np.testing.assert_allclose(ours, theirs, EPSILON[case.dtype], bound, err_msg=case.kind)


def test_vectors_have_what_plain_text_has(monkeypatch):
    cases = [VectoredNest(seed) for seed in range(SEEDS)]
    found, vectors = results_of(cases, 1, VECTORS)
    divided, _ = results_of(cases, 3, VECTORS)
    monkeypatch.setattr(tree_choice, "vector_tree", no_tree)
    plain, none = results_of(cases, 1, VECTORS)
    assert sum(vectors) >= SEEDS // 2
    assert not any(none)
    for case, *each in zip(cases, found, divided, plain, strict=True):
        for ours, others, theirs in zip(*each, strict=True):
            np.testing.assert_array_equal(bits(ours), bits(others), err_msg=case.kind)
            alike(ours, theirs, case)


def test_vectors_have_numpys_values():
    cases = [VectoredNest(seed) for seed in range(300, 300 + SEEDS // 2)]
    found, vectors = results_of(cases, 2, VECTORS)
    assert sum(vectors) >= SEEDS // 4
    for case, results in zip(cases, found, strict=True):
        with geon.NumPyTransformer() as numpy:
            wanted = as_list(numpy.computation(case.results, *case.leaves)(*case.arrays))
        for ours, right in zip(results, wanted, strict=True):
            bound = 1e-4 * max(np.abs(right).max(initial=0), 1) if case.dtype != "int32" else 0
            np.testing.assert_allclose(ours, right, 0, bound, err_msg=case.kind)


def test_units_of_vectors_have_the_bits_of_others(monkeypatch):
    """They are compiled with few passes, and the others with all."""
    apart = []
    for case in [VectoredNest(seed) for seed in range(600, 614)]:
        found = []
        for passes in (compilers.FEW_PASSES, ()):
            monkeypatch.setattr(compilers, "FEW_PASSES", passes)
            monkeypatch.setattr(programs, "_programs", None)
            with geon.NativeTransformer(threads=2) as native:
                f = native.computation(case.results, *case.leaves)
                found.append(as_list(f(*case.arrays)))
                apart.append(compilers.OF_VECTORS in f.source)
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_array_equal(bits(ours), bits(theirs), err_msg=case.kind)
    assert sum(apart) >= 2 * 4


def test_text_of_vectors_is_in_units_of_its_own():
    """Text that compilers make vectors of, as loops over lanes are, is in other units."""
    n, c = Axis("N"), Axis("C", 64)
    x = geon.placeholder([n, c])
    for results, kinds in (
        ([x * 2 + x, geon.max(x, c)], [True]),
        ([geon.exp(x)], [False]),
        ([geon.sum(geon.exp(x)), geon.max(x * x, c)], [True, False]),
    ):
        with geon.NativeTransformer(threads=1) as native:
            f = native.computation(results, x)
            made = make_module(for_vectors(f.plan, 64), f.linking, False, cores=2)
        assert [unit.startswith(compilers.OF_VECTORS) for unit in made.units] == kinds
        assert all(VECTORS in unit for unit in made.units)


@pytest.mark.parametrize("rows", [0, 1, 2, 33, 300])
@pytest.mark.parametrize("columns", [16, 64, 272, 1040])
@pytest.mark.parametrize("past", [None, 64])
def test_what_is_stored_past_the_caches(monkeypatch, rows, columns, past):
    if past is not None:
        monkeypatch.setattr(bound_program, "past_bytes", lambda: past)
    n, c = Axis("N"), Axis("C", columns)
    x, y = geon.placeholder([n, c]), geon.placeholder([c])
    results = [x * y + 1, (x - geon.mean(x, c)) * 2, (x - geon.mean(x, n)) * y]
    generator = np.random.default_rng(rows)
    given = [generator.normal(size=shape).astype("float32") for shape in ((rows, columns), columns)]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        f = native.computation(results, x, y)
        assert VECTORS in f.source
        with np.errstate(invalid="ignore"):
            wanted = numpy.computation(results, x, y)(*given)
        for ours, right in zip(f(*given), wanted, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("make", [
    lambda x, c: geon.cast(x, "float64") * 2,  # of another width
    lambda x, c: geon.where(geon.iota(c) > 3, x, 0),  # chosen within a vector
    lambda x, c: x * geon.cast(geon.iota(c), "float32"),
])  # fmt: skip
def test_all_else_is_plain(make):
    n, c = Axis("N"), Axis("C", 64)
    x = geon.placeholder([n, c])
    assert VECTORS not in source_of(make(x, c), x)


@pytest.mark.parametrize("length", [None, 42])
def test_rows_with_rests_or_of_open_length_are_vectors(length):
    n, c = Axis("N"), Axis("C", length)
    x, y = geon.placeholder([n, c]), geon.placeholder([c])
    for result in (geon.sum(x * y, c), geon.max(x * y, c)):
        assert VECTORS in source_of(result, x, y)


def test_rows_with_functions_are_vectors():
    n, c = Axis("N"), Axis("C", 64)
    x = geon.placeholder([n, c])
    halves = geon.cast(x, "float16") * 2
    for result in (geon.sum(geon.exp(x), c), geon.max(geon.exp(x), c), halves):
        assert VECTORS in source_of(result, x)


def source_of(result, *leaves):
    """The text of a program."""
    with geon.NativeTransformer(threads=1) as native:
        return native.computation(result, *leaves).source


def test_what_a_vector_has_in_common_is_computed_around_its_loop():
    n, c = Axis("N", 400), Axis("C", 64)
    x, row = geon.placeholder([n, c]), geon.placeholder([n])
    source = source_of(geon.sum(x / geon.sqrt(row + 1), n), x, row)
    source = source[source.index("kernel_0_rows(") :]
    loop = source[source.index("for (int64_t lane", source.index("sqrtf(")) :]
    inside = loop[: loop.index("}")]
    assert source.count("sqrtf(") == 4 and "sqrtf(" not in inside  # for four terms together
    assert inside.count("= GEON_AT(f32x16, x") == 4


@pytest.mark.parametrize("value", [0, 1.5])
@pytest.mark.parametrize("along", ["C", "M"])
def test_products_of_numbers_are_reduced_beside_vectors(value, along):
    """Where an array is padded, both factors are the same for all of a vector."""
    n, m, c = Axis("N"), Axis("M", 3), Axis("C", 48)
    b, x = geon.placeholder([n]), geon.placeholder([n, m, c])
    wide = geon.pad(x, {along: (16, 32)}, value=value)
    weights = geon.sqrt(b * b + 1)
    y = geon.dot(wide, geon.broadcast(weights, wide.axes), n)
    generator = np.random.default_rng(0)
    given = [generator.normal(size=size).astype("float32") for size in (300, (300, 3, 48))]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        f = native.computation(y, b, x)
        assert VECTORS in f.source
        np.testing.assert_allclose(f(*given), numpy.computation(y, b, x)(*given), 1e-4, 1e-3)


def test_stores_of_products_are_vectors():
    n, k, c = Axis("N"), Axis("K", 64), Axis("C", 48)
    x, w, b = geon.placeholder([n, k]), geon.placeholder([k, c]), geon.placeholder([c])
    y = geon.maximum(geon.dot(x, w) + b, 0) * 2
    source = source_of([y, y - 1], x, w, b)
    store = source[source.index("_store(") :]
    store = store[: store.index("\n}\n")]
    assert "value = GEON_AT(f" in store and "omp simd" not in store
    generator = np.random.default_rng(0)
    given = [generator.normal(size=s).astype("float32") for s in ((70, 64), (64, 48), 48)]
    with geon.NativeTransformer(threads=2) as native, geon.NumPyTransformer() as numpy:
        wanted = numpy.computation([y, y - 1], x, w, b)(*given)
        for ours, right in zip(
            native.computation([y, y - 1], x, w, b)(*given), wanted, strict=True
        ):
            np.testing.assert_allclose(ours, right, rtol=1e-5, atol=1e-4)


def test_special_values_are_what_they_are_in_plain_text(monkeypatch):
    n, c = Axis("N", 40), Axis("C", 64)
    x, y, one = geon.placeholder([n, c]), geon.placeholder([n, c]), geon.placeholder([])
    results = [
        geon.maximum(x, y), geon.minimum(one, x), geon.where(x < one, -x, y / 0), geon.absolute(x),
        geon.sqrt(x), geon.rsqrt(y), geon.sum(geon.maximum(x, one), n), geon.where(one > 0, x, y),
    ]  # fmt: skip
    generator = np.random.default_rng(0)
    given = [generator.normal(size=(40, 64)).astype("float32") for _ in range(2)]
    special = (np.nan, -np.nan, np.inf, -np.inf, -0.0, 1e-45)
    for value in special:
        for array in given:
            array.reshape(-1)[generator.integers(0, array.size, 60)] = value
    found = []
    for tree_of in (tree_choice.vector_tree, no_tree):
        monkeypatch.setattr(tree_choice, "vector_tree", tree_of)
        monkeypatch.setattr(programs, "_programs", None)
        with geon.NativeTransformer(threads=1) as native:
            f = native.computation(results, x, y, one)
            assert (VECTORS in f.source) == (tree_of is not no_tree)
            found.append([each for value in special for each in f(*given, np.float32(value))])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(
            np.signbit(ours) & (ours == 0), np.signbit(theirs) & (theirs == 0)
        )
