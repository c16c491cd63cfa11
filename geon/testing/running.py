"""How the suite computes samples: all dtypes of one in one computation."""

from __future__ import annotations

import geon
from geon.op_graph.op_graph import Leaf, Tensor

from .agreement import assert_agrees
from .samples import Array, Sample


def compute_samples(transformer: geon.Transformer, sample: Sample, *, plan: bool = True) -> object:
    """The values of a sample for each of its dtypes, held to the interpreter's."""
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for dtype in sample.dtypes:
        built, arrays = sample.results(dtype)
        results += built
        feeds |= arrays
    return assert_agrees(transformer, results, feeds, exact=sample.exact, plan=plan)
