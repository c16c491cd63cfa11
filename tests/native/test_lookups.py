"""Products of rows of a table: once for each word where that costs less, and the same values."""

import numpy as np
import pytest

import geon
from geon import Axis
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.op_graph import Leaf, post_order
from geon.transformers.lowering.rules import gather_products

N, T = Axis("N"), Axis("T", 3)
V, E, G = Axis("V", 8), Axis("E", 40), Axis("G", 5)
table, w = geon.placeholder([V, E], name="table"), geon.placeholder([E, G], name="w")
words = geon.placeholder([N, T], "int64", name="words")
seed = geon.placeholder([T, N, G], name="seed")
y = geon.dot(geon.gather(table, words, V), w)
SLOPES = geon.deriv(y, [table, w], seed=geon.reorder(seed, y.axes))
INPUTS = words, table, w, seed


def some_data(count):
    """Small integers, of which sums are exact; nobody looks up word 2, which is no number."""
    random = np.random.default_rng(count)
    index = random.choice([0, 1, 3, 4, 7, -1, -2, -8], (count, 3))
    rows, weight, slope = (
        random.integers(-4, 5, size).astype(np.float32)
        for size in ((8, 40), (40, 5), (3, count, 5))
    )
    rows[2] = np.nan
    return index, rows, weight, slope


def by_hand(index, rows, weight, slope):
    slope = slope.transpose(1, 0, 2)
    of_table = np.zeros_like(rows)
    np.add.at(of_table, index, slope @ weight.T)
    return rows[index] @ weight, of_table, np.einsum("nte,ntg->eg", rows[index], slope)


def computation(transformer, **options):
    return transformer.computation([y, *SLOPES], *INPUTS, **options)


def below(f, name):
    """The ops of a row in a program, without those in bodies."""
    return [op for op in post_order(f.program.roots) if op.primitive.name == name]


def products(f):
    """The axes that products outside of bodies are summed over."""
    return sorted(op.attrs.over for op in below(f, "dot"))


@pytest.fixture(scope="module")
def native():
    with geon.NativeTransformer(threads=1) as made:
        yield made


@pytest.fixture(scope="module")
def step(native):
    return computation(native)


@pytest.mark.parametrize("count", [0, 1, 13, 14, 40])
def test_calls_take_the_cheaper_form(step, count):
    data = some_data(count)
    for found, right in zip(step(*data), by_hand(*data), strict=True):
        np.testing.assert_array_equal(found, right)
    cases = below(step, "case")
    assert [len(op.bodies) for op in cases] == [2, 2, 2]
    for op in cases:  # 3N rows of 40 terms, or 8 words of 40 and 3N rows that are moved
        by_word, by_row = (each.args[0].attrs.length for each in op.args[0].args[0].args)
        assert (evaluate(by_word, {"N": count}) < evaluate(by_row, {"N": count})) == (count > 13)


@pytest.mark.parametrize(("count", "summed"), [
    (13, [("E",), ("G",), ("N", "T")]),
    (14, [("E",), ("G",), ("V",)]),
])  # fmt: skip
def test_known_lengths_choose_before_any_call(native, count, summed):
    f = computation(native, specialize={N: count})
    data = some_data(count)
    for found, right in zip(f(*data), by_hand(*data), strict=True):
        np.testing.assert_array_equal(found, right)
    assert products(f) == summed and not below(f, "case")
    assert len(below(f, "scatter")) == (1 if count == 13 else 2)  # the sums, and who was looked up


def test_products_stay_that_have_little_to_gain(native, monkeypatch):
    few = geon.placeholder([V, Axis("F", 32)])
    narrow = geon.dot(geon.gather(few, words, V), geon.placeholder([few.axes["F"], G]))
    shared = geon.dot(geon.gather(table, words, V), geon.placeholder([E, V]))
    leaves = [op for op in post_order([narrow, shared]) if isinstance(op, Leaf)]
    f = native.computation([narrow, shared], *leaves)
    assert len(below(f, "dot")) == 2 and not below(f, "case")
    assert not below(computation(native, check="nan"), "case")
    monkeypatch.setattr(gather_products, "MAX_EXTRA_TABLE_BYTES", 8 * 5 * 4 - 1)
    assert not below(computation(native, name="again"), "case")


def test_sums_that_others_read_are_computed_by_row(native):
    rows = geon.dot(geon.reorder(seed, y.axes), w)
    total = geon.scatter(geon.broadcast(0.0, [V, E]), words, rows, V, mode="add")
    f = native.computation([total, rows], words, w, seed)
    assert len(below(f, "dot")) == 1 and not below(f, "case")


def test_positions_that_are_divided_are_narrow_where_they_fit():
    """Along a known number of elements below 2^31 a quotient is of 32 bits, else of 64."""
    i = geon.placeholder([geon.Axis("N")], dtype="int64")
    positions = np.array([0, 1, 29, 30, 1199, -1, -1200, 600], "int64")
    for a, narrow in ((geon.Axis("A", 40), True), (geon.Axis("A"), False)):
        b = geon.Axis("B", 30)
        x = geon.placeholder([a, b])
        turned = geon.flatten(geon.reorder(x, [b, a]))
        table = np.arange(1200, dtype="float32").reshape(40, 30)
        with geon.NativeTransformer(threads=1) as transformer:
            f = transformer.computation(geon.gather(turned, i) * 2.0, x, i)
            found = f(table, positions)
        np.testing.assert_array_equal(found, table.T.ravel()[positions] * 2)
        assert ("= (int32_t)(t" in f.source) == narrow
