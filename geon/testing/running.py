"""Computation of samples in the suite: all dtypes of a sample in one computation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import geon
from geon.op_graph.op_graph import Leaf, Tensor

from .agreement import assert_agrees
from .samples import Array, Sample

FACTORISATIONS = ("eigh", "eigvalsh", "qr", "svd", "pinv")  # which a target may lack


@contextmanager
def factorised_elsewhere(sample: Sample) -> Iterator[None]:
    """Let a target without a kernel for a factorisation say so, and what to do."""
    try:
        yield
    except geon.UnavailableError as error:
        assert sample.row in FACTORISATIONS and "make_transformer" in str(error)


def compute_samples(transformer: geon.Transformer, sample: Sample, *, plan: bool = True) -> object:
    """Return the values of a sample for each dtype, compared with the interpreter's."""
    results: list[Tensor] = []
    feeds: dict[Leaf, Array] = {}
    for dtype in sample.dtypes:
        built, arrays = sample.results(dtype)
        results += built
        feeds |= arrays
    return assert_agrees(transformer, results, feeds, exact=sample.exact, plan=plan)
