"""Leaves for arrays, values of graphs, and derivatives held against central differences."""

from types import SimpleNamespace

import numpy as np

import geon
from geon.op_graph.namespace import NAMES

from .computing import compute, gradients_by_differences


def _cast(x, dtype):
    return np.asarray(x).astype(dtype)


NUMPY_OPS = SimpleNamespace(**{name: getattr(np, name, None) for name in NAMES})
NUMPY_OPS.cast = _cast


def leaf(array, *axes):
    """A placeholder over ``axes`` of the dtype of ``array``."""
    return geon.placeholder(axes, np.asarray(array).dtype)


def value(op, feeds, lengths=None):
    """The value of an op for arrays by leaf."""
    return compute(op, feeds, lengths)


def check_derivatives(y, feeds, rtol=1e-6):
    """Hold the derivatives of sum(y) in every leaf of ``feeds`` against central differences."""
    total = geon.sum(y)
    leaves = list(feeds)
    arrays = [np.asarray(array, np.float64) for array in feeds.values()]

    def at(*moved):
        return float(compute(total, dict(zip(leaves, moved, strict=True))))

    expected = gradients_by_differences(at, arrays)
    found = geon.deriv(total, leaves, unreached="zero")
    for x, gradient, numeric in zip(leaves, found, expected, strict=True):
        assert gradient.axes is x.axes
        got = compute(gradient, feeds)
        floor = 1e-8 * max(1.0, np.abs(numeric).max(initial=0.0))
        np.testing.assert_allclose(got, numeric, rtol=rtol, atol=floor)
