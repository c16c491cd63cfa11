"""Damaged models: each is loaded, or refused with an error of geon's, and quickly."""

import random
import time
import warnings
from collections import Counter

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

import geon
from geon.frontends.onnx import load
from geon.frontends.onnx.stored_bytes import parsed
from tests.tiers import scaled

MODELS = 10_000  # with --all
LIMIT = 10.0  # seconds for one model, on a busy machine
FLOAT = TensorProto.FLOAT


def network():
    """A convolution, a reshape with shapes of the graph, a product and a branch."""
    r = np.random.default_rng(0)
    weights = {
        "w": r.standard_normal((4, 3, 3, 3)),
        "b": r.standard_normal(4),
        "dense": r.standard_normal((4 * 6 * 6, 5)),
    }
    stored = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
    stored.append(numpy_helper.from_array(np.array([0, -1]), "flat"))
    branch = {
        name: helper.make_graph(
            [helper.make_node(operator, ["scores"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, FLOAT, ("N", 5))],
        )
        for name, operator in (("hot", "Softmax"), ("cold", "Tanh"))
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "flat"], ["f"]),
        helper.make_node("MatMul", ["f", "dense"], ["scores"]),
        helper.make_node("ReduceSum", ["scores"], ["total"], keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["positive"]),
        helper.make_node(
            "If", ["positive"], ["y"], then_branch=branch["hot"], else_branch=branch["cold"]
        ),
    ]
    stored.append(numpy_helper.from_array(np.array(0, np.float32), "zero"))
    return helper.make_model(
        helper.make_graph(
            nodes,
            "network",
            [helper.make_tensor_value_info("x", FLOAT, ("N", 3, 12, 12))],
            [helper.make_tensor_value_info("y", FLOAT, ("N", 5))],
            stored,
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )


def shapes():
    """A graph that computes shapes from shapes."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["length"], axis=0),
        helper.make_node("Unsqueeze", ["length", "zeros"], ["lengths"]),
        helper.make_node("Concat", ["minus", "lengths"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["x", "wanted"], ["flat"]),
        helper.make_node("Slice", ["flat", "zeros", "ones"], ["part"]),
        helper.make_node("Expand", ["part", "wide"], ["y"]),
    ]
    stored = {"one": 1, "zeros": [0], "ones": [1], "minus": [-1], "wide": [3, 1]}
    return helper.make_model(
        helper.make_graph(
            nodes,
            "shapes",
            [helper.make_tensor_value_info("x", FLOAT, (2, "T", 4))],
            [helper.make_tensor_value_info("y", FLOAT, None)],
            [numpy_helper.from_array(np.array(v), k) for k, v in stored.items()],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
    )


SOUND = [network().SerializeToString(), shapes().SerializeToString()]


def damaged(r):
    """A sound model with damage: of bytes, or of the parts of its graph."""
    data = bytearray(r.choice(SOUND))
    kind = r.randrange(4)
    if kind == 0:
        return bytes(data[: r.randrange(len(data))])
    if kind == 1:
        for _ in range(r.choice([1, 1, 2, 8, 64])):
            data[r.randrange(len(data))] = r.randrange(256)
        return bytes(data)
    if kind == 2:
        at, length, to = [r.randrange(len(data)) for _ in range(3)]
        data[to:to] = data[at : at + length % 200]
        return bytes(data)
    model = onnx.ModelProto.FromString(bytes(data))
    for _ in range(r.choice([1, 1, 2, 4])):
        change(r, model.graph)
    return model.SerializeToString()


def change(r, graph):
    """Change one part of a graph: links, attributes, lengths, dtypes, order, nodes."""
    node = r.choice(graph.node)
    names = [name for each in graph.node for name in (*each.input, *each.output)]
    number = r.choice([-(2**63), -7, -1, 0, 1, 2, 3, 5, 1000, 2**31, 2**40, 2**63 - 1])
    kind = r.randrange(9)
    if kind == 0 and node.input:
        node.input[r.randrange(len(node.input))] = r.choice(names)
    elif kind == 1 and node.output:
        node.output[r.randrange(len(node.output))] = r.choice(names)
    elif kind == 2 and node.attribute:
        attribute = r.choice(node.attribute)
        if attribute.ints:
            attribute.ints[r.randrange(len(attribute.ints))] = number
        else:
            attribute.i = number
    elif kind == 3 and graph.initializer:
        stored = r.choice(graph.initializer)
        if stored.dims:
            stored.dims[r.randrange(len(stored.dims))] = number
        else:
            stored.dims.append(number)
    elif kind == 4 and graph.initializer:
        r.choice(graph.initializer).data_type = r.randrange(30)
    elif kind == 5:
        dims = r.choice([*graph.input, *graph.output]).type.tensor_type.shape.dim
        if dims:
            r.choice(dims).dim_value = number
    elif kind == 6:
        node.op_type = r.choice([each.op_type for each in graph.node] + ["Unknown", "Loop"])
    elif kind == 7:
        del graph.node[r.randrange(len(graph.node))]
        if not graph.node:
            graph.node.append(node)
    else:
        graph.node.append(node)


@pytest.mark.parametrize("part", range(10))
def test_damaged_models_are_loaded_or_refused(part):
    r = random.Random(part)
    refused = 0
    for number in range(scaled(MODELS // 10)):
        model = damaged(r)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                load(model)
            except geon.GeonError as error:
                assert str(error)
                refused += 1
            except Exception as error:
                raise AssertionError(f"model {number} of part {part}: {error!r}") from error
        assert time.perf_counter() - start < LIMIT, f"model {number} of part {part}"
    assert refused > 0


def with_large_initializers():
    """A model whose initializers have their bytes apart, are small, or have no raw data."""
    r = np.random.default_rng(0)
    stored = [numpy_helper.from_array(r.standard_normal((40, 30)), name) for name in "tuv"]
    stored.append(numpy_helper.from_array(np.zeros(3, np.float32), "small"))
    stored.append(helper.make_tensor("listed", FLOAT, [2000], r.standard_normal(2000)))
    graph = network().graph
    graph.initializer.extend(stored)
    return helper.make_model(graph).SerializeToString()


@pytest.mark.parametrize("part", range(2))
def test_bytes_that_stay_outside_of_the_message_are_those_of_protobuf(part):
    data, r = with_large_initializers(), random.Random(part)
    heads = [data.find(name) for name in (b"B\x01t", b"B\x01u", b"B\x01v", b"B\x05small")]
    counts = Counter()
    for number in range(scaled(5000)):
        damage = bytearray(data)
        for _ in range(number % 4):  # without damage first
            at = max(0, r.choice([r.randrange(len(data)), r.choice(heads) + r.randrange(-12, 12)]))
            damage[at : at + r.randrange(3)] = r.randbytes(r.randrange(3))
        given = bytes(damage[: r.randrange(len(damage))] if number % 10 == 9 else damage)
        try:
            wanted = onnx.ModelProto.FromString(given)
        except DecodeError:
            with pytest.raises(DecodeError):
                parsed(memoryview(given))
            counts["refused"] += 1
            continue
        found, raw = parsed(memoryview(given))
        for tensor in found.graph.initializer:
            if tensor.name in raw:
                tensor.raw_data = bytes(raw[tensor.name])
        counts["apart"] += len(raw)
        names = [tensor.name for tensor in wanted.graph.initializer]
        if len({*names}) == len(names):  # else ``load`` refuses the model
            assert found.SerializeToString() == wanted.SerializeToString()
            counts["equal"] += 1
    assert min(counts["refused"], counts["equal"]) > scaled(5000) // 10
    assert counts["apart"] > counts["equal"]
