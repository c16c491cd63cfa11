"""Random convolutions of vectors of channels, with their slopes, on one thread and on three."""

import numpy as np
import pytest

from geon.transformers.native.toolchain.compilers import find_toolchain
from tests.native.together import Together
from tests.native.wide_convolutions import WideConvolution

SEEDS = 60


@pytest.mark.slow
@pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
@pytest.mark.parametrize("part", range(2))
def test_random_wide_convolutions_and_their_slopes(part):
    together = Together(divided=True)
    one, three = together.transformer(), together.transformer(threads=3)
    seeds = range(part * SEEDS // 2, (part + 1) * SEEDS // 2)
    cases = [WideConvolution(seed) for seed in seeds]
    made = [one.computation(case.results, *case.feeds()) for case in cases]
    for f in made:
        together.add(f)
    together.compile()
    read = 0
    for case, f in zip(cases, made, strict=True):
        found = f(*case.feeds().values())
        case.check(found)
        again = three.computation(case.results, *case.feeds())(*case.feeds().values())
        for ours, theirs in zip(found, again, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        read += f.source.count(".right = {.staged = 0, .view = ")
    assert not together.missed
    assert read >= SEEDS // 20  # slopes of filters, as tiles read them
