"""Computation of samples in the suite: all dtypes of a sample in one computation."""

from __future__ import annotations

import geon
from geon.op_graph.op_graph import Leaf, Tensor

from .agreement import assert_agrees
from .samples import Array, Sample


def compute_samples(transformer: geon.Transformer, sample: Sample, *, plan: bool = True) -> object:
    """Return the values of a sample for each dtype, compared with the interpreter's."""
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for dtype in sample.dtypes:
        built, arrays = sample.results(dtype)
        results += built
        feeds |= arrays
    return assert_agrees(transformer, results, feeds, exact=sample.exact, plan=plan)
