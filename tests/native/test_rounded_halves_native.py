"""Where native code rounds to a half and back by one function."""

import pytest

import geon
from geon.transformers.native.toolchain.compilers import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


@pytest.mark.parametrize(("half", "suffix"), [("float16", "half"), ("bfloat16", "bfloat")])
def test_no_half_lies_between_two_ops_of_a_kernel(half, suffix):
    n, m = geon.Axis("N", 100), geon.Axis("M", 24)
    x = geon.placeholder([n, m], dtype=half)
    total = geon.sum(x * x - 1, n)  # rows side by side have no strips
    with geon.NativeTransformer(threads=1) as transformer:
        source = transformer.computation(total, x).source
    kernel = source[source.index("void *argument") :]
    assert f"geon_rounded_to_{suffix}(" in kernel
    assert kernel.count(f"geon_f32_to_{suffix}(") == 1  # of the result
