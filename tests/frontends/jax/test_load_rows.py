"""Rows of the primitives of JAX give JAX's values."""

import numpy as np
import pytest

import geon

jax = pytest.importorskip("jax", reason="JAX is not installed")

from geon.frontends.jax import load  # noqa: E402
from geon.frontends.jax.loading import inner_jaxprs  # noqa: E402
from geon.frontends.jax.table import primitive_table  # noqa: E402
from geon.testing.comparison import widest  # noqa: E402
from tests.frontends.jax.load_cases import CASES  # noqa: E402

FEW = list(CASES)[::6]  # of each kind one; all others are run by `make test-all`


@pytest.mark.parametrize(
    "name", [n if n in FEW else pytest.param(n, marks=pytest.mark.slow) for n in CASES]
)
def test_values_are_those_of_jax(name):
    function, given = CASES[name]
    model = load(function, *given)
    found = model.computation(geon.NumPyTransformer())(*given)
    expected = jax.tree_util.tree_leaves(jax.jit(function)(*given))
    results = jax.tree_util.tree_leaves(list(found.values()))
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(widest(result), widest(wanted), 2e-5, 2e-5)


def primitives(jaxpr):
    """The names of the primitives of a jaxpr and of its inner ones."""
    for equation in jaxpr.eqns:
        yield equation.primitive.name
        for inner in inner_jaxprs(equation.params):
            yield from primitives(inner)


# Of symbolic dimensions (in test_load_models.py), of older versions, and of JAX's own loops.
WITHOUT_CASE = {"dim_as_value", "pjit", "closed_call", "copy_p"}


def test_each_row_has_a_case():
    found = set()
    for function, given in CASES.values():
        found |= set(primitives(jax.make_jaxpr(function)(*given).jaxpr))
    assert set(primitive_table()) - found == WITHOUT_CASE
