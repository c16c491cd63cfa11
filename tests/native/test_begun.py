"""What a program is known to need is compiled beside the stages that follow."""

import pytest

import geon
from geon import Axis
from geon.transformers.native import transformer
from geon.transformers.native.product_kernels import product_units
from geon.transformers.native.product_shape import shape

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


@pytest.mark.parametrize("dtype, type", [("float32", "float"), ("float64", "double")])
def test_what_products_share_is_begun_ahead(monkeypatch, dtype, type):
    begun: list[str] = []
    monkeypatch.setattr(transformer, "begin", lambda toolchain, text: begun.append(text))
    m, k, n = Axis("M", 40), Axis("K", 50), Axis("N", 60)
    x, y = geon.placeholder([m, k], dtype), geon.placeholder([k, n], dtype)
    with geon.NativeTransformer() as native:
        native.begin(native.computation(geon.sum(x, [k]), x).stages(()).program)
        assert begun == []
        native.begin(native.computation(geon.tanh(geon.dot(x, y)), x, y).stages(()).program)
        assert begun == [*product_units(shape(type, native.toolchain().vector_bytes))]
