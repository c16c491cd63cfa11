"""ONNX models of well-known shapes with random weights, and inputs for them.

- ``residual_net``: the layers of ResNet-18 (He et al., Deep Residual Learning, 2015, table 1)
- ``mobile_net``: inverted residuals with depthwise convolutions (Sandler et al., MobileNetV2, 2018)
- ``encoder``: a transformer encoder as in BERT (Devlin et al., 2018), 6 layers of width 384
- ``forest``: a random forest of scikit-learn as a TreeEnsembleRegressor
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
FLOAT = TensorProto.FLOAT
Shape = Sequence[int | str]


class Builder:
    """A graph under construction: each method adds nodes and returns the name of the result."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []

    def weight(self, shape: Sequence[int], scale: float | None = None) -> str:
        """Add a random float32 initializer, by default with He et al.'s scale."""
        fan_in = int(np.prod(shape[1:])) if len(shape) > 2 else shape[0]
        scale = np.sqrt(2 / fan_in) if scale is None else scale
        return self.constant((scale * self.random.standard_normal(shape)).astype(np.float32))

    def constant(self, value: Any) -> str:
        """Add an initializer."""
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one result."""
        result = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [result], domain=domain, **attributes))
        return result

    def convolution(
        self, x: str, inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1
    ) -> str:
        """Add a convolution with a bias, as after the folding of a batch normalisation."""
        weight = self.weight((outputs, inputs // groups, size, size))
        bias = self.weight((outputs,), 0.1)
        return self.node(
            "Conv", x, weight, bias, kernel_shape=[size, size], strides=[stride, stride],
            pads=[size // 2] * 4, group=groups,
        )  # fmt: skip

    def dense(self, x: str, inputs: int, outputs: int) -> str:
        """Add a product with a weight, and a bias."""
        weight = self.weight((inputs, outputs), 1 / np.sqrt(inputs))
        return self.node("Add", self.node("MatMul", x, weight), self.weight((outputs,), 0.1))

    def model(
        self,
        inputs: dict[str, tuple[int, Shape]],
        results: dict[str, tuple[str, Shape]],
        domains: Sequence[tuple[str, int]] = (("", OPSET),),
    ) -> onnx.ModelProto:
        """Return the model; ``results`` maps a result's name to that of its value and its shape."""
        for name, (value, _) in results.items():
            self.nodes.append(helper.make_node("Identity", [value], [name]))
        graph = helper.make_graph(
            self.nodes,
            "model",
            [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(n, FLOAT, shape) for n, (_, shape) in results.items()],
            self.initializers,
        )
        imports = [helper.make_opsetid(*domain) for domain in domains]
        made = helper.make_model(graph, opset_imports=imports, ir_version=8)
        onnx.checker.check_model(made)
        return made


def residual_net(
    stages: Sequence[tuple[int, int]] = ((64, 2), (128, 2), (256, 2), (512, 2)),
    side: int = 224,
    classes: int = 1000,
) -> onnx.ModelProto:
    """Return a residual net over ``image (N, 3, side, side)``.

    ``stages`` are pairs of channels and blocks.
    """
    b = Builder()
    x = b.node("Relu", b.convolution("image", 3, stages[0][0], 7, 2))
    x = b.node("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    width = stages[0][0]
    for number, (channels, blocks) in enumerate(stages):
        for block in range(blocks):
            stride = 2 if number and not block else 1
            y = b.node("Relu", b.convolution(x, width, channels, 3, stride))
            y = b.convolution(y, channels, channels, 3)
            if stride != 1 or width != channels:
                x = b.convolution(x, width, channels, 1, stride)
            x = b.node("Relu", b.node("Add", x, y))
            width = channels
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    scores = b.dense(x, width, classes)
    return b.model({"image": (FLOAT, ("N", 3, side, side))}, {"scores": (scores, ("N", classes))})


def mobile_net(side: int = 224, classes: int = 1000) -> onnx.ModelProto:
    """Return a net of inverted residuals over ``image (N, 3, side, side)``."""
    b = Builder()

    def clipped(x: str) -> str:
        return b.node("Clip", x, zero, six)

    zero, six = b.constant(np.float32(0)), b.constant(np.float32(6))
    x, width = clipped(b.convolution("image", 3, 32, 3, 2)), 32
    # Expansion, channels, repeats, stride: MobileNetV2, table 2.
    for expansion, channels, repeats, first in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):  # fmt: skip
        for repeat in range(repeats):
            stride, inner = 1 if repeat else first, expansion * width
            y = clipped(b.convolution(x, width, inner, 1)) if expansion > 1 else x
            y = clipped(b.convolution(y, inner, inner, 3, stride, inner))
            y = b.convolution(y, inner, channels, 1)
            x = b.node("Add", x, y) if stride == 1 and width == channels else y
            width = channels
    x = b.node("Flatten", b.node("GlobalAveragePool", clipped(b.convolution(x, width, 1280, 1))))
    return b.model(
        {"image": (FLOAT, ("N", 3, side, side))},
        {"scores": (b.dense(x, 1280, classes), ("N", classes))},
    )


def encoder(
    layers: int = 6, width: int = 384, heads: int = 6, words: int = 30522
) -> onnx.ModelProto:
    """Return a transformer encoder over ``words (N, T)`` int64 and ``mask (N, T)`` float32.

    ``mask`` is 1 for words and 0 for padding; T is at most 512.
    """
    b = Builder()
    depth = width // heads
    split = b.constant(np.array([0, 0, heads, depth]))
    joined = b.constant(np.array([0, 0, width]))
    one, low = b.constant(np.float32(1)), b.constant(np.float32(-10000))
    bias = b.node("Mul", b.node("Sub", one, b.node("Unsqueeze", "mask", b.constant([1, 2]))), low)
    length = b.node("Gather", b.node("Shape", "words"), b.constant(np.int64(1)), axis=0)
    positions = b.node("Range", b.constant(np.int64(0)), length, b.constant(np.int64(1)))
    x = b.node("Gather", b.weight((words, width), 0.05), "words", axis=0)
    x = b.node("Add", x, b.node("Gather", b.weight((512, width), 0.05), positions, axis=0))

    def normalised(x: str) -> str:
        scale = b.constant(np.ones(width, np.float32))
        return b.node("LayerNormalization", x, scale, b.weight((width,), 0.1), epsilon=1e-12)

    def in_heads(x: str, order: Sequence[int]) -> str:
        return b.node("Transpose", b.node("Reshape", x, split), perm=order)

    x = normalised(x)
    root_half, scale = b.constant(np.float32(np.sqrt(0.5))), b.constant(np.float32(depth**-0.5))
    half = b.constant(np.float32(0.5))
    for _ in range(layers):
        query = in_heads(b.dense(x, width, width), (0, 2, 1, 3))
        key = in_heads(b.dense(x, width, width), (0, 2, 3, 1))
        value = in_heads(b.dense(x, width, width), (0, 2, 1, 3))
        scores = b.node("Add", b.node("Mul", b.node("MatMul", query, key), scale), bias)
        mixed = b.node("MatMul", b.node("Softmax", scores, axis=-1), value)
        mixed = b.node("Reshape", b.node("Transpose", mixed, perm=(0, 2, 1, 3)), joined)
        x = normalised(b.node("Add", x, b.dense(mixed, width, width)))
        inner = b.dense(x, width, 4 * width)
        # gelu, written with Erf as exporters of this opset do
        erf = b.node("Add", b.node("Erf", b.node("Mul", inner, root_half)), one)
        inner = b.node("Mul", b.node("Mul", inner, half), erf)
        x = normalised(b.node("Add", x, b.dense(inner, 4 * width, width)))
    return b.model(
        {"words": (TensorProto.INT64, ("N", "T")), "mask": (FLOAT, ("N", "T"))},
        {"states": (x, ("N", "T", width))},
    )


def forest(trees: int = 100, features: int = 20, rows: int = 4000) -> onnx.ModelProto:
    """Return a random forest, fitted by scikit-learn, over ``x (N, features)`` float32."""
    from sklearn.ensemble import RandomForestRegressor

    random = np.random.default_rng(0)
    x = random.standard_normal((rows, features)).astype(np.float32)
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * random.standard_normal(rows)
    fitted = RandomForestRegressor(trees, random_state=0, min_samples_leaf=5).fit(x, y)
    nodes: dict[str, list[Any]] = {
        key: []
        for key in (
            "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
        )
    }  # fmt: skip
    targets: dict[str, list[Any]] = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for number, one in enumerate(fitted.estimators_):
        tree = one.tree_
        for node in range(tree.node_count):
            leaf = tree.children_left[node] < 0
            row = (
                number, node, 0 if leaf else int(tree.feature[node]),
                0.0 if leaf else float(np.float32(tree.threshold[node])),
                "LEAF" if leaf else "BRANCH_LEQ",
                0 if leaf else int(tree.children_left[node]),
                0 if leaf else int(tree.children_right[node]),
            )  # fmt: skip
            for key, value in zip(nodes, row, strict=True):
                nodes[key].append(value)
            if leaf:
                weight = float(tree.value[node].item()) / trees
                for key, value in zip(targets, (number, node, 0, weight), strict=True):
                    targets[key].append(value)
    b = Builder()
    attributes = {f"nodes_{key}": value for key, value in nodes.items()}
    attributes |= {f"target_{key}": value for key, value in targets.items()}
    result = b.node("TreeEnsembleRegressor", "x", domain="ai.onnx.ml", n_targets=1, **attributes)
    return b.model(
        {"x": (FLOAT, ("N", features))}, {"y": (result, ("N", 1))}, (("", OPSET), ("ai.onnx.ml", 3))
    )


def image(batch: int, side: int = 224) -> dict[str, Any]:
    """Return images for the convolutional nets."""
    random = np.random.default_rng(1)
    return {"image": random.standard_normal((batch, 3, side, side)).astype(np.float32)}


def text(batch: int, length: int) -> dict[str, Any]:
    """Return words and a mask for the encoder."""
    random = np.random.default_rng(1)
    words = random.integers(0, 30522, (batch, length))
    mask = (np.arange(length) < random.integers(length // 2 + 1, length + 1, (batch, 1))) * 1.0
    return {"words": words, "mask": mask.astype(np.float32)}


def table(rows: int, features: int = 20) -> dict[str, Any]:
    """Return rows for the forest."""
    return {"x": np.random.default_rng(1).standard_normal((rows, features)).astype(np.float32)}
