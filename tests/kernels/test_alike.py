"""Kernels of one form are lowered once, and are what each of them lowered by itself would be."""

import numpy as np
import pytest

import geon
from geon.transformers.kernels import kernel_lowering
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.kernels.kernel_lowering import lower
from geon.transformers.kernels.nests.inlining import OperandInliner
from geon.transformers.kernels.products.contraction import Contraction
from geon.transformers.kernels.structural_key import structure
from tests.golden.emitting import native
from tests.golden.programs import PROGRAMS

C, D, N = geon.Axis("C", 8), geon.Axis("D", 8), geon.Axis("N")


def named(work):
    """The loops of a kernel, with the axes that they walk."""
    if isinstance(work, Nest):
        loops = [work.rows, *(step.loops for step in work.passes)]
        parts = [*work.pieces, *([work.short] if work.short else [])]
        return loops, work.across, work.holds, work.shortness, [named(part) for part in parts]
    pieces = [named(piece) for piece in work.pieces]
    return work.batch, work.rows, work.columns, work.summed, work.unit, pieces


def each_alone(monkeypatch):
    """From now on each kernel is compared with what it is by itself; the numbers of both."""
    counts = {"made": 0, "asked": 0}

    def counted(*args):
        counts["made"] += 1
        return lower(*args)

    def compared(self, op, fused, operands):
        work = remembering(self, op, fused, operands)
        if isinstance(work, Nest | Contraction) and fused.chain is None:
            counts["asked"] += 1
            own = OperandInliner(
                operands.layouts, operands.base, operands.results, operands.computed
            )
            alone = lower(op, fused, own)
            assert structure(work) == structure(alone)
            assert named(work) == named(alone)
            assert list(map(id, work.operands)) == list(map(id, alone.operands))
        return work

    remembering = kernel_lowering.Lowering.lower
    monkeypatch.setattr(kernel_lowering.Lowering, "lower", compared)
    monkeypatch.setattr(kernel_lowering, "lower", counted)
    return counts


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_are_what_each_is_by_itself(name, monkeypatch):
    counts = each_alone(monkeypatch)
    native(name).explain("schedule")
    assert counts["asked"] > 0


def layers(count):
    """The slopes of all weights of equal layers, each a product, a norm and a function."""
    x = geon.placeholder([N, C])
    weights = [geon.Variable([C, D], name=f"w{k}") for k in range(count)]
    y = x
    for w in weights:
        y = geon.rename(geon.dot(geon.tanh(y), w), {D: C})
        y = y - geon.mean(y, C)
    return x, geon.deriv(geon.sum(y * y), weights)


def test_equal_layers_are_lowered_once(monkeypatch):
    counts, made = each_alone(monkeypatch), []
    for count in (6, 12):
        x, slopes = layers(count)
        before = counts["made"]
        geon.NativeTransformer(threads=1).computation(slopes, x).explain("schedule")
        made.append(counts["made"] - before)
    assert made[0] == made[1]
    assert counts["asked"] > 3 * sum(made)


@pytest.mark.parametrize(
    "one, other",
    [
        (lambda x: x * 2.0, lambda x: x * 3.0),
        (lambda x: x * 0.0, lambda x: x * -0.0),
        (lambda x: x[:, 1:5], lambda x: x[:, 2:6]),
        (lambda x: geon.flip(x, C), lambda x: x),
        (lambda x: geon.reorder(x, [C, N]) + 1, lambda x: x + 1),
        (lambda x: geon.sum(x, C), lambda x: geon.sum(x, N)),
        (lambda x: geon.max(x, C), lambda x: geon.min(x, C)),
        (lambda x: geon.cast(x, "float64") / 3, lambda x: x / 3),
        (lambda x: x * geon.Random(1).uniform([C]), lambda x: x * geon.Random(2).uniform([C])),
        (lambda x: x - x, lambda x: x - x[::-1]),
        (lambda x: geon.dot(x, geon.rename(x, {N: "M"}), C), lambda x: geon.dot(x, x, C)),
    ],
)
def test_other_kernels_are_other_ones(one, other, monkeypatch):
    """Both in one program, of two inputs each, in either order: what NumPy gives."""
    each_alone(monkeypatch)
    x, y = geon.placeholder([N, C]), geon.placeholder([N, C])
    data = np.random.default_rng(0).normal(size=(2, 7, 8)).astype(np.float32)
    for first, then in ((one, other), (other, one)):
        results = [first(x), then(x), first(y), then(y)]
        wanted = geon.NumPyTransformer().computation(results, x, y)(*data)
        found = geon.NativeTransformer(threads=1).computation(results, x, y)(*data)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
            assert (np.signbit(a) == np.signbit(b)).all()
