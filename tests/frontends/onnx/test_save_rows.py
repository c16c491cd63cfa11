"""Every row of the exporter, on every dtype, agrees with the reference in ONNX Runtime.

All cases of a kind are one model. Integers and moved elements are equal, floats differ by no more
than rounding errors explain (``geon.testing.rounding``).
"""

from __future__ import annotations

import numpy as np
import pytest

import geon
from geon import linalg
from geon.frontends.onnx.writing import elementwise
from geon.frontends.onnx.writing.rows import LOWERED, ROWS, WITHOUT_ROW, lacks
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.op_graph import deep_order
from geon.op_graph.values.dtypes import DTYPES, as_dtype
from geon.testing import assert_agrees
from geon.testing.conformance import test_regions as regions
from geon.testing.conformance.test_elementwise import (
    SPECIAL_VALUES,
    in_domain,
    operand_dtype,
    special,
    taken,
)
from geon.testing.samples import OPERAND_AXES, SAMPLES
from geon.testing.samples import ROWS as ALL
from tests.frontends.onnx.runtime import OnnxRuntime

N, P = geon.Axis("N", 3), geon.Axis("P")
PARTS = 8  # of the elementwise cases, which take turns
HALVES = ("float16", "bfloat16")


ELEMENTWISE = [row for row in ALL if WITHOUT_ROW.get(row.name, LOWERED) == LOWERED]


def over_unequal_axes():
    random = np.random.default_rng(1)
    for row in ELEMENTWISE:
        for dtype in taken(row):
            if dtype in (*HALVES, "float32", "int64"):
                leaves = [
                    geon.placeholder(OPERAND_AXES[k], operand_dtype(row, k, dtype))
                    for k in range(row.arity)
                ]
                arrays = [in_domain(random, row.domain[k], x) for k, x in enumerate(leaves)]
                yield [row.apply(*leaves)], dict(zip(leaves, arrays, strict=True))


def at_special_values():
    for row in ELEMENTWISE:
        for dtype in taken(row):
            if dtype not in HALVES:
                arrays = [special(operand_dtype(row, k, dtype)) for k in range(row.arity)]
                leaves = [
                    geon.placeholder([geon.Axis("PQR"[k], len(a))], a.dtype)
                    for k, a in enumerate(arrays)
                ]
                yield [row.apply(*leaves)], dict(zip(leaves, arrays, strict=True))


def casts():
    for dtype in DTYPES:
        numbers = [0, 1, 2, 100]
        if dtype in ("float32", "float64", *HALVES):
            numbers = [*SPECIAL_VALUES, 1e3, -1e3, 70000.0, 1e10, -1e10, 3.7, -3.7]
        elif dtype != "bool":
            numbers += [np.iinfo(dtype).min, np.iinfo(dtype).max]
        with np.errstate(all="ignore"):
            array = np.array([np.asarray(n).astype(as_dtype(dtype)) for n in numbers])
        x = geon.placeholder([geon.Axis(f"P{dtype}", len(array))], dtype)
        yield [geon.cast(x, target) for target in DTYPES], {x: array}


def samples_of(kind):
    for sample in SAMPLES[kind]:
        for dtype in sample.dtypes:
            yield sample.results(dtype)


def agrees(cases, **options):
    """Compute all cases in one model; return the primitives in it."""
    results, feeds = [], {}
    for built, arrays in cases:
        results += built
        feeds |= arrays
    transformer = OnnxRuntime()
    assert_agrees(transformer, results, feeds, **options)
    return written(transformer)


def written(transformer):
    """The primitives of the programs that a transformer computed."""
    return {
        op.primitive.name for f in transformer.computations for op in deep_order(f.program.roots)
    }


def elementwise_cases():
    return [*over_unequal_axes(), *at_special_values(), *casts()]


@pytest.mark.parametrize("part", range(PARTS))
def test_elementwise_rows(part):
    agrees(elementwise_cases()[part::PARTS], floor=1.0)


def test_each_elementwise_row_has_a_case():
    """The rest of the table is made of these: calls of custom derivatives, and copies."""
    seen = {op.primitive.name for results, _ in elementwise_cases() for op in deep_order(results)}
    assert {*elementwise.ROWS, *elementwise.ROWS_WITH_OP} - seen <= {"copy", "custom"}


# The rows that each kind of sample has in its programs.
OWN = {
    "reduction": "all any argmax argmin first_max max min prod sum",
    "ordered": "argsort cumsum scan sort top_k",
    "contraction": "dot rename",
    "movement": """broadcast concat diagonal flatten flip pad padded_windows reorder slice unflatten
        unwindow update window""",
    "indexing": "checked constant gather iota scatter",
    "other": "after region_result scan",
}
# The rows that the other tests of this file have; copies are made by the layout of kernels.
FURTHER = "case copy length random_bits while"


@pytest.mark.parametrize("kind", [kind for kind in SAMPLES if kind != "matrix"])
def test_rows_of_other_kinds(kind):
    assert set(OWN[kind].split()) <= agrees(samples_of(kind))


@pytest.mark.parametrize("n", [3, 12, None])
def test_factorisations_are_elements_or_loops(n):
    """Of few known rows, of more, and of an open number; where a pivot is 0, columns exchange."""
    batch, i, j, k = (geon.Axis(name) for name in "BIJK")
    if n is not None:
        i, j = i.with_length(n), j.with_length(n)
    size, random = n or 10, np.random.default_rng(n)
    a, b = geon.placeholder([batch, i, j], "float64"), geon.placeholder([batch, i, k], "float64")
    square, tall = random.normal(size=(2, size, size)), random.normal(size=(2, size + 3, size))
    square[0, 0, 0] = 0
    positive = geon.dot(a, a.rename({i: "M"}), over=j).rename({"M": j}) + geon.outer(
        geon.equal, geon.iota(i), geon.iota(j)
    ).cast("float64")
    axes = [i, j]
    results = [
        linalg.cholesky(positive, axes),
        linalg.solve(a, b, axes),
        linalg.solve(a, b.rename({i: j}), [j, i]),
        linalg.inv(a, axes),
        linalg.det(a, axes),
        linalg.triangular_solve(a + 3 * positive, b, axes),
        linalg.triangular_solve(a, b, axes, lower=False, unit=True),
        *linalg.qr(a, axes),
    ]
    transformer = OnnxRuntime()
    assert_agrees(transformer, results, {a: square, b: random.normal(size=(2, size, 4))}, floor=1.0)
    rows = geon.placeholder([batch, geon.Axis("R"), j], "float64")
    assert_agrees(transformer, list(linalg.qr(rows, ["R", j])), {rows: tall}, floor=1.0)


def test_samples_of_matrices():
    """But for eigenvalues and singular values, for which the file says that it has no operator."""
    for sample in SAMPLES["matrix"]:
        if sample.row not in ("eigh", "eigvalsh", "svd", "pinv"):
            for dtype in sample.dtypes:
                results, arrays = sample.results(dtype)
                assert_agrees(OnnxRuntime(), results, arrays, floor=1.0)
    x = geon.placeholder([geon.Axis("I", 3), geon.Axis("J", 3)])
    with pytest.raises(geon.UnavailableError, match="found by iteration: ONNX has no operator"):
        OnnxRuntime().computation(linalg.eigh(x, ["I", "J"])[0], x)(np.eye(3))


def test_each_primitive_has_a_row_or_a_reason():
    assert ROWS.keys().isdisjoint(WITHOUT_ROW)
    own = {name for name, row in PRIMITIVES.items() if row.own}
    assert own == (ROWS.keys() | WITHOUT_ROW.keys()) & own
    assert ROWS.keys() | WITHOUT_ROW.keys() <= own
    tested = " ".join([FURTHER, *OWN.values()]).split()
    assert ROWS.keys() - {*elementwise.ROWS, *elementwise.ROWS_WITH_OP} == set(tested) - {"copy"}


def test_lengths_are_values():
    x = geon.placeholder([P, N])
    half = x[{P: slice(None, None, 2)}]
    results = [x * geon.tensor_size(x), geon.tensor_size(half), geon.iota(half.axes["P"])]
    for count in (0, 1, 4, 5):
        transformer = OnnxRuntime()
        assert_agrees(transformer, results, {x: np.ones((count, 3), np.float32)})
    assert "length" in written(transformer)


def test_bodies_of_loops_and_branches():
    transformer = OnnxRuntime()
    for count in (0, 1, 5):
        for reverse in (False, True):
            regions.test_a_scan_and_its_derivative(transformer, count, reverse)
    regions.test_a_scan_of_elements(transformer)
    for number in (-1, 0, 1, 2):
        regions.test_a_case_and_its_derivative(transformer, number)
    for limit in (5, None):
        for count in (0, 4):
            regions.test_a_while_loop_and_its_derivative(transformer, count, limit)
    regions.test_values_of_the_steps_of_a_while_loop_and_their_derivatives(transformer, 5)
    regions.test_a_fixed_point_and_its_derivative(transformer)
    assert {"scan", "while", "case", "region_result"} <= written(transformer)
    known = geon.Axis("K", 4)
    x = geon.placeholder([known, N])
    last, seen = geon.scan(lambda c, e: (c * 0.5 + e, geon.sum(c)), x[0], x, over=known)
    back, _ = geon.scan(lambda c, e: (c - e, None), x[0], x, over=known, reverse=True)
    data = np.arange(12, dtype=np.float32).reshape(4, 3)
    assert_agrees(transformer, [last, seen, back], {x: data})


def test_random_bits_are_those_of_geon():
    stream = geon.Random(0x0123456789ABCDEF)
    x = geon.placeholder([P, N])
    draws = [
        stream.bits([P, N]),
        stream.bits([N, P], "uint64"),
        stream.uniform([P]) + geon.sum(x),
        stream.normal([N]),
        geon.scan(lambda c, _: (c, stream.bits([N])), 0.0, over=geon.Axis("L", 3))[1],
    ]
    feeds = {x: np.ones((7, 3), np.float32)}
    transformer = OnnxRuntime()
    f, g = (t.computation(draws, x) for t in (transformer, geon.NumPyTransformer()))
    for _ in range(2):  # the second call has another counter
        for found, wanted in zip(f(*feeds.values()), g(*feeds.values()), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
            if wanted.dtype.kind == "u":
                assert (found == wanted).all()
    assert "random_bits" in written(transformer)


def test_positions_outside_and_loops_that_do_not_converge_raise():
    which = geon.placeholder([], "int64")
    x = geon.placeholder([N])
    chosen = geon.case_of(which, [lambda: x, lambda: -x])
    turns = geon.fixed_point(lambda e: 1 - e, geon.sum(x), max_steps=5)
    picked = geon.gather(x, which, N)
    data = np.array([0.25, 0.25, 0.0], np.float32)
    for result, fine, wrong in ((chosen, 1, 2), (chosen, 0, -1), (picked, -3, 3)):
        f = OnnxRuntime().computation(result, x, which)
        f(data, fine)
        with pytest.raises(Exception, match="out of data bounds"):
            f(data, wrong)
    f = OnnxRuntime().computation(turns, x)
    f(data)
    with pytest.raises(Exception, match="out of data bounds"):
        f(data * 3)


def test_a_primitive_without_a_row_is_named():
    from geon.op_graph.building.elementwise_build import elementwise as new_row

    row = new_row("odd_one", "x.", lambda x: x, (1.0,))
    try:
        op = row.apply(geon.placeholder([N]))
        assert lacks(op) == ["the row 'odd_one' of geon/frontends/onnx/writing/rows.py"]
    finally:
        del PRIMITIVES["odd_one"]
