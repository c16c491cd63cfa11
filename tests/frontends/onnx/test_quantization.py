"""Quantised operators with open lengths against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import geon
from geon.frontends import onnx as frontend
from tests.frontends.onnx.test_models import NODE, model, numbers, tensor

UINT8, INT8, INT16 = TensorProto.UINT8, TensorProto.INT8, TensorProto.INT16


def compare(proto, *fed):
    proto.ir_version = 10
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    loaded = frontend.load(proto)
    f = loaded.computation(geon.NumPyTransformer())
    for each in fed:
        found = f(*[each[name] for name in loaded.inputs])
        for key, wanted in zip(loaded.outputs, session.run(None, each), strict=True):
            np.testing.assert_allclose(found[key], wanted, rtol=1e-5, atol=1e-5, err_msg=key)


def test_scales_go_along_an_axis_or_along_its_blocks():
    proto = model(
        [
            NODE("QuantizeLinear", ["x", "s", "z"], ["q"], axis=1),
            NODE("DequantizeLinear", ["q", "s", "z"], ["y"], axis=1),
            NODE(
                "QuantizeLinear", ["x", "blocks"], ["p"], axis=-2, block_size=2, output_dtype=INT16
            ),
            NODE("DequantizeLinear", ["p", "blocks"], ["v"], axis=-2, block_size=2),
        ],
        [tensor("x", ["N", 5, 3])],
        [
            tensor("q", ["N", 5, 3], UINT8),
            tensor("y", ["N", 5, 3]),
            tensor("p", ["N", 5, 3], INT16),
            tensor("v", ["N", 5, 3]),
        ],
        {
            "s": np.array([0.1, 0.2, 0.01, 1.0, 0.05], np.float32),
            "z": np.array([0, 3, 128, 255, 7], np.uint8),
            "blocks": np.abs(numbers(2, 3, 3)) / 1000 + 1e-4,
        },
    )
    compare(proto, {"x": numbers(2, 5, 3)})


def test_integers_of_four_bits_are_stored_and_read():
    values = np.arange(-8, 8).reshape(4, 4).astype("int4")
    graph = helper.make_graph(
        [NODE("DequantizeLinear", ["w", "s"], ["f"], axis=0), NODE("MatMul", ["x", "f"], ["y"])],
        "graph",
        [tensor("x", ["N", 4])],
        [tensor("y", ["N", 4])],
        [
            numpy_helper.from_array(values, "w"),
            numpy_helper.from_array(np.array([0.1, 0.2, 0.3, 0.4], np.float32), "s"),
        ],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    compare(proto, {"x": numbers(3, 4)}, {"x": numbers(1, 4)})


@pytest.mark.parametrize("operator", ["QLinearMatMul", "QLinearConv"])
def test_products_of_quantised_numbers(operator):
    is_product = operator == "QLinearMatMul"
    columns, shape = (5, (6, 5)) if is_product else (4, (4, 3, 3, 3))
    stored = {
        "a": np.array(0.02, np.float32),
        "az": np.array(120, np.uint8),
        "w": np.random.default_rng(1).integers(-90, 90, shape).astype(np.int8),
        "b": np.linspace(0.01, 0.05, columns).astype(np.float32),
        "bz": np.zeros(columns, np.int8),
        "s": np.array(0.4, np.float32),
        "z": np.array(131, np.uint8),
    }
    names = ["x", "a", "az", "w", "b", "bz", "s", "z"]
    options = {} if is_product else {"pads": [1, 1, 1, 1], "strides": [2, 1]}
    if not is_product:
        stored["bias"] = np.arange(-200, 200, 100).astype(np.int32)
        names.append("bias")
    axes = ["N", 6] if is_product else ["N", 3, "H", "W"]
    proto = model(
        [NODE(operator, names, ["y"], **options)],
        [tensor("x", axes, UINT8)],
        [tensor("y", None, UINT8)],
        stored,
    )
    draws = np.random.default_rng(2)
    shapes = [(3, 6), (1, 6)] if is_product else [(2, 3, 6, 5), (1, 3, 3, 4)]
    compare(proto, *[{"x": draws.integers(0, 255, s).astype(np.uint8)} for s in shapes])


def test_integer_products_and_ranges_of_the_data():
    proto = model(
        [
            NODE("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
            NODE("MatMulInteger", ["q", "w", "z", "wz"], ["y"]),
        ],
        [tensor("x", ["N", 6])],
        [tensor("s", []), tensor("z", [], UINT8), tensor("y", ["N", 4], TensorProto.INT32)],
        {
            "w": np.random.default_rng(3).integers(-90, 90, (6, 4)).astype(np.int8),
            "wz": np.array([1, 2, 3, 4], np.int8),
        },
    )
    compare(proto, {"x": numbers(3, 6)}, {"x": np.abs(numbers(1, 6))})


def test_scales_that_do_not_fit_are_refused():
    proto = model(
        [NODE("DequantizeLinear", ["x", "s"], ["y"])],
        [tensor("x", ["N", 3], INT8)],
        [tensor("y", None)],
        {"s": numbers(3, 3)},
    )
    with pytest.raises(frontend.ModelError, match="node 0 DequantizeLinear.*give one dimension"):
        frontend.load(proto)
