"""What kernels mean: run as data, without any text, they compute what the rows say."""

import pytest

from geon.op_graph.op_graph import storage_leaves
from geon.testing.cases import for_each
from geon.testing.running import compute_samples
from geon.testing.samples import SAMPLES
from tests.native.test_random_native import drawn
from tests.test_random_graphs import compare_call
from tests.tiers import units

from .transformer import KernelsTransformer

EVERY = [sample for samples in SAMPLES.values() for sample in samples]


@for_each("sample", EVERY, ids=str)
def test_every_sample(sample):
    with KernelsTransformer() as transformer:
        compute_samples(transformer, sample)


@pytest.mark.parametrize("number", [100 + number for number in units(4)])
def test_random_graphs(number):
    """Views of views, joins, positions, several passes: as the interpreter computes them."""
    for case in drawn(number):
        f, g = [KernelsTransformer().computation(case.results, *case.placeholders) for _ in "ab"]
        leaves = [v for v in storage_leaves(*case.results) if v.info.stored]
        for feeds, lengths in zip(case.feeds, case.lengths, strict=True):
            inputs = dict(zip(case.placeholders, feeds, strict=True))
            compare_call(case, f, g, inputs, {v: f.transformer.get(v) for v in leaves}, lengths)
