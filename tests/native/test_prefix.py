"""Prefix sums of lines that are cut into parts, as users call them."""

import numpy as np
import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

N, C = geon.Axis("N"), geon.Axis("C")


@pytest.mark.parametrize("shape", [(3, 40_001), (40_001, 3), (1, 100_000), (700, 513)])
@pytest.mark.parametrize("along", [0, 1])
@pytest.mark.parametrize("options", [{}, {"reverse": True}, {"exclusive": True}])
def test_bits_follow_from_lengths_alone(shape, along, options):
    x = geon.placeholder([N, C])
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    found = []
    for threads, plan in ((1, True), (2, True), (2, False)):
        with geon.make_transformer("native", threads=threads) as transformer:
            y = geon.cumsum(x * 2, [N, C][along], **options)
            found.append(transformer.computation(y, x, plan=plan)(data))
    assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()
    moved = 2 * data[::-1] if options.get("reverse") and along == 0 else 2 * data
    moved = moved[:, ::-1] if options.get("reverse") and along == 1 else moved
    total = np.add.accumulate(moved, axis=along, dtype=np.float64)
    if options.get("exclusive"):
        total = total - moved
    if options.get("reverse"):
        total = np.flip(total, along)
    np.testing.assert_allclose(found[0], total, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("n", "c"), [(1, 32_767), (1, 32_768), (100_000, 1), (5, 90_000), (9, 3)])
def test_the_totals_of_parts_are_in_the_peak(n, c):
    x = geon.placeholder([N, C])
    with geon.make_transformer("native") as transformer:
        f = transformer.computation(geon.cumsum(x, C), x)
        parts = -(-c // 8192) if c >= 4 * 8192 else 0
        results = 4 * n * c
        assert f.peak_bytes({N: n, C: c}) - results in range(8 * n * parts, 8 * n * parts + 129)
