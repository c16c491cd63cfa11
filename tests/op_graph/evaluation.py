"""Leaves for arrays, and values of graphs."""

from types import SimpleNamespace

import numpy as np

import geon
from geon.op_graph.special.formula_ops import NAMES

from .computing import compute


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
