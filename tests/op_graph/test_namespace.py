"""The formulas for all targets give the same bits as ops and on NumPy arrays."""

import numpy as np
import pytest

import geon
from geon.op_graph.core.primitive import PRIMITIVES
from geon.op_graph.random.normal import normal_from_bits, uniform_from_bits
from geon.op_graph.special import gamma_formulas
from geon.op_graph.special.formula_ops import GEON_OPS, NAMES
from tests.op_graph.evaluation import NUMPY_OPS, leaf, value

POINTS = np.concatenate([np.random.default_rng(0).uniform(-6, 6, 200), [0, 1, 2, -1, 1e-300]])
FORMULAS = {
    "erf": gamma_formulas.erf,
    "lgamma": gamma_formulas.lgamma,
    "digamma": gamma_formulas.digamma,
    "trigamma": lambda x, ops: gamma_formulas.polygamma(1, x, ops),
    "tetragamma": lambda x, ops: gamma_formulas.polygamma(2, x, ops),
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_approximations_build_ops(formula, dtype):
    points = POINTS.astype(dtype)
    x = leaf(points, geon.Axis("P", len(points)))
    op = formula(x, GEON_OPS)
    assert (op.dtype, op.axes) == (x.dtype, x.axes)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(value(op, {x: points}), formula(points, NUMPY_OPS))


@pytest.mark.parametrize("formula", [uniform_from_bits, normal_from_bits])
@pytest.mark.parametrize(("dtype", "width"), [("float32", "uint32"), ("float64", "uint64")])
def test_draws_build_ops(formula, dtype, width):
    words = np.random.default_rng(0).integers(0, 2**63, 500, np.uint64).astype(width) * 2
    x = leaf(words, geon.Axis("P", 500))
    op = formula(x, dtype, GEON_OPS)
    assert op.dtype == dtype
    np.testing.assert_array_equal(value(op, {x: words}), formula(words, dtype, NUMPY_OPS))


def test_every_name_is_a_public_function():
    for name in NAMES:
        assert getattr(GEON_OPS, name) in (PRIMITIVES.get(name), getattr(geon, name))
