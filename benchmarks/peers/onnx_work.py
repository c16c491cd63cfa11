# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""The workloads that ONNX can say, by ONNX Runtime: inference, no derivatives and no state."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from .data import WEIGHTS
from .prepared import NORM_EPSILON, Builder, Prepared, plain
from .workloads import Sizes

Array = np.ndarray[Any, Any]
Data = dict[str, Any]
notes: list[str] = []
OPSET = 20
threads_used = [1]


def version() -> str:
    """Of ONNX Runtime."""
    return str(onnxruntime.__version__)


def start(threads: int) -> None:
    """Remember the number of threads for the sessions."""
    threads_used[0] = threads


class Graph:
    """Nodes in the order in which they are added; values are named by numbers."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """The name of what a node gives, or the list of names."""
        names = [f"v{len(self.nodes)}_{k}" for k in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any) -> str:
        """The name of an array that the graph holds."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def integers(self, *values: int) -> str:
        """The name of a list of integers."""
        return self.constant(np.array(values, np.int64))

    def prepared(self, results: list[str], inputs: dict[str, Array]) -> Prepared:
        """A session of this graph for these inputs."""

        def info(name: str, shape: Any) -> Any:
            return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

        graph = helper.make_graph(
            self.nodes,
            "workload",
            [info(name, value.shape) for name, value in inputs.items()],
            [info(name, None) for name in results],
            self.constants,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = min(model.ir_version, 10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads_used[0]
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return plain(lambda: session.run(results, inputs))


def single(kind: str, inputs: dict[str, Any], *constants: Any, **attributes: Any) -> Prepared:
    """A graph of one node."""
    graph = Graph()
    names = [graph.constant(value) for value in constants]
    return graph.prepared([graph.add(kind, *inputs, *names, **attributes)], inputs)


def product(sizes: Sizes, data: Data) -> Prepared:
    """Of matrices, stacks of them, or a matrix and a vector."""
    return single("MatMul", {"a": data["a"], "b": data["b"]})


def gelu(sizes: Sizes, data: Data) -> Prepared:
    """The form with tanh."""
    return single("Gelu", {"x": data["x"]}, approximate="tanh")


def plus_one(sizes: Sizes, data: Data) -> Prepared:
    """An array without axes in, another out."""
    return single("Add", {"x": np.asarray(data["x"])}, np.float32(1))


def softmax_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return single("Softmax", {"x": data["x"]}, axis=1)


def layernorm_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return single("LayerNormalization", {"x": data["x"]}, data["scale"], data["shift"],
                  axis=1, epsilon=NORM_EPSILON)  # fmt: skip


def logsumexp(sizes: Sizes, data: Data) -> Prepared:
    """Over rows."""
    return single("ReduceLogSumExp", {"x": data["x"]}, np.array([0]), keepdims=0)


def block_forward(sizes: Sizes, data: Data) -> Prepared:
    """The ops that an exporter writes; the runtime fuses what it knows."""
    graph, width, heads = Graph(), sizes["width"], sizes["heads"]
    add = graph.add
    weights = [graph.constant(data[name]) for name in WEIGHTS]
    scale1, shift1, qkv, out, scale2, shift2, up, up_bias, down, down_bias = weights
    split = graph.integers(0, 0, heads, width // heads)

    normal = add("LayerNormalization", "x", scale1, shift1, axis=-1, epsilon=NORM_EPSILON)
    parts = add("Split", add("MatMul", normal, qkv), outputs=3, axis=-1, num_outputs=3)
    orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    query, key, value = (
        add("Transpose", add("Reshape", part, split), perm=order)
        for part, order in zip(parts, orders, strict=True)
    )
    scale = graph.constant(np.float32((width // heads) ** -0.5))
    scores = add("Softmax", add("Mul", add("MatMul", query, key), scale), axis=-1)
    mixed = add("Transpose", add("MatMul", scores, value), perm=[0, 2, 1, 3])
    joined = add("Reshape", mixed, graph.integers(0, 0, width))
    h = add("Add", "x", add("MatMul", joined, out))

    normal = add("LayerNormalization", h, scale2, shift2, axis=-1, epsilon=NORM_EPSILON)
    risen = add("Gelu", add("Add", add("MatMul", normal, up), up_bias), approximate="tanh")
    result = add("Add", add("Add", add("MatMul", risen, down), down_bias), h)
    return graph.prepared([result], {"x": data["x"]})


def stencil_forward(sizes: Sizes, data: Data) -> Prepared:
    """Slices, sums and reductions."""
    graph, last = Graph(), sizes["side"]
    add, axes = graph.add, graph.integers(0, 1, 2)

    def part(*starts: int) -> Any:
        begins = graph.integers(*starts)
        ends = graph.integers(*(start + last - 2 for start in starts))
        return add("Slice", "u", begins, ends, axes)

    inner = part(1, 1, 1)
    around = add("Sum", part(2, 1, 1), part(0, 1, 1), part(1, 2, 1), part(1, 0, 1),
                 part(1, 1, 2), part(1, 1, 0))  # fmt: skip
    bent = add("Sub", around, add("Mul", inner, graph.constant(np.float32(6))))
    results = [
        add("ReduceSumSquare", bent, keepdims=0),
        add("ReduceL1", "u", keepdims=0),
        add("ReduceMax", "u", keepdims=0),
        add("ReduceMean", add("Mul", inner, bent), keepdims=0),
    ]
    return graph.prepared(results, {"u": data["u"]})


def chain(sizes: Sizes, data: Data) -> Prepared:
    """Five ops in turn."""
    graph, y = Graph(), "x"
    steps: list[tuple[str, ...]] = [("Tanh",), ("Sin",), ("Mul", "w"), ("Add", "x"), ("Sigmoid",)]
    for k in range(data["length"]):
        kind, *others = steps[k % 5]
        y = graph.add(kind, y, *others)
    return graph.prepared([y], {"x": data["x"], "w": data["w"]})


BUILDERS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        gelu, plus_one, softmax_forward, layernorm_forward, logsumexp, block_forward,
        stencil_forward, chain,
    )
}  # fmt: skip
BUILDERS |= dict.fromkeys(("matmul", "matvec", "batch_matmul"), product)
