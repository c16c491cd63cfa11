"""Rows of the primitives of JAX give JAX's values."""

import numpy as np
import pytest

import geon

jax = pytest.importorskip("jax", reason="JAX is not installed")

from geon.frontends.jax import load  # noqa: E402
from tests.frontends.jax.load_cases import CASES  # noqa: E402


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_jax(name):
    function, given = CASES[name]
    model = load(function, *given)
    found = model.computation(geon.NumPyTransformer())(*given)
    expected = jax.tree_util.tree_leaves(jax.jit(function)(*given))
    results = jax.tree_util.tree_leaves(list(found.values()))
    assert len(results) == len(expected)
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype
        np.testing.assert_allclose(
            result.astype("float64"), np.asarray(wanted, "float64"), 2e-5, 2e-5
        )
