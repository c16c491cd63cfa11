"""What a program is known to need is compiled beside the stages that follow."""

import pytest

import geon
from geon import Axis
from geon.transformers.native.emit import compiler
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.products.product_text import product_units
from geon.transformers.sizes.product_blocks import shape

missing = geon.NativeTransformer.unavailable()
pytestmark = pytest.mark.skipif(missing is not None, reason=str(missing))


@pytest.mark.parametrize("dtype, type", [("float32", "float"), ("float64", "double")])
def test_what_products_share_is_begun_ahead(monkeypatch, dtype, type):
    begun: list[str] = []
    monkeypatch.setattr(compiler, "begin", lambda toolchain, text: begun.append(text))
    m, k, n = Axis("M", 40), Axis("K", 50), Axis("N", 60)
    x, y = geon.placeholder([m, k], dtype), geon.placeholder([k, n], dtype)
    with geon.NativeTransformer() as native:
        native.begin(native.computation(geon.sum(x, [k]), x).stages(()).program)
        assert begun == []
        native.begin(native.computation(geon.tanh(geon.dot(x, y)), x, y).stages(()).program)
        assert begun == [*product_units(shape(type, native.toolchain().vector_bytes))]


def test_what_ops_call_of_the_library_is_begun_ahead(monkeypatch):
    """The units that the program then needs, but extremes: those of short rows are loops."""
    begun: list[str] = []
    monkeypatch.setattr(compiler, "begin", lambda toolchain, text: begun.append(text))
    m, k = Axis("M", 400), Axis("K", 50)
    x, at = geon.placeholder([m, k]), geon.placeholder([k], "int64")
    values = geon.placeholder([m, k])
    results = [
        geon.sort(x, m),
        geon.argsort(x, m),
        *geon.top_k(x, 3, m),
        geon.cumsum(geon.cast(x, "int32"), k),
        geon.cumprod(x, m),
        geon.scatter(x, at, values, k, mode="add"),
        geon.scatter(x, at, values, k),
    ]
    with geon.NativeTransformer() as native:
        stages = native.computation(results, x, at, values).stages(())
        native.begin(stages.program)
        module = make_module(stages.plan, stages.linking, False)
        assert set(begun) == set(module.shared)
        assert len(begun) == len(set(begun)) > 6
        begun.clear()
        native.begin(native.computation(geon.argmax(x, k), x).stages(()).program)
        assert begun == []
