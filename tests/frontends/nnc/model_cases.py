"""A case for each CNNP model: how it is made, its inputs, and the same in PyTorch."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from geon.frontends.nnc import SymbolicGraph, cmd, cnnp


def data(*shape, low=0.5, high=1.5, seed=0):
    """Positive numbers, so that roots and logarithms have derivatives."""
    return np.random.default_rng([seed, *shape]).uniform(low, high, shape)


def signed(*shape, seed=0):
    return data(*shape, low=-1.0, high=1.0, seed=seed)


def integers(*shape, high=5):
    return np.random.default_rng(shape).integers(0, high, shape)


@dataclass(frozen=True)
class Case:
    """``torch(t, f, p, *inputs)`` has torch, its functions, and parameters by name."""

    make: Any
    inputs: Any
    torch: Any
    trains: bool = False  # compared in training mode


IMAGE = signed(2, 5, 6, 4)  # NHWC
MASK = (signed(2, 3, seed=3) > 0).astype("float64")


def first(x):
    """Images with the channels first."""
    return x.permute(0, 3, 1, 2)


def last(x):
    return x.permute(0, 2, 3, 1)


def of(make, function, *inputs):
    return Case(make, inputs or [signed(2, 3, 4)], lambda t, f, p, *x: function(t, f, *x))


def lstm_of_torch(t, f, p, x):
    """PyTorch's LSTM with the weights of one vector: matrices by layer, then biases."""
    model = t.nn.LSTM(3, 4, 2, bidirectional=True, dtype=x.dtype)
    weights = p["weight"].detach()
    matrices = [w for n, w in model.named_parameters() if "weight" in n]
    biases = [w for n, w in model.named_parameters() if "bias" in n]
    for w in (*matrices, *biases):
        w.data, weights = weights[: w.numel()].reshape(w.shape), weights[w.numel() :]
    assert not len(weights)
    return model(x)[0]


def attention_of_torch(t, f, p, q, k, v):
    found = f.scaled_dot_product_attention(
        q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
    )
    return found.transpose(1, 2).flatten(2) @ p["weight"].T + p["bias"]


def squared_graph():
    """exp((x + y)^2) as a symbolic graph, with its inputs and outputs."""
    graph = SymbolicGraph()
    x, y = graph.tensor((2, 3)), graph.tensor((2, 3))
    (z,) = graph.exec(cmd.add(), [x, y])
    (z,) = graph.exec(cmd.mul(), [z, z])
    return graph, [x, y], graph.exec(cmd.ewexp(), [z])


C = cnnp
CASES: dict[str, Case] = {
    "add": of(
        lambda: C.add(2.0, 3.0), lambda t, f, x, y: 2 * x + 3 * y, signed(2, 3), signed(1, 3)
    ),
    "argmax": of(lambda: C.argmax(1), lambda t, f, x: x.argmax(1, keepdim=True)),
    "argmin": of(lambda: C.argmin(1), lambda t, f, x: x.argmin(1, keepdim=True)),
    "average_pool": of(
        lambda: C.average_pool(2, 1), lambda t, f, x: last(f.avg_pool2d(first(x), 2, 1)), IMAGE
    ),
    "batch_norm": Case(
        lambda: C.batch_norm(epsilon=1e-3),
        [IMAGE],
        lambda t, f, p, x: last(
            f.batch_norm(first(x), None, None, p["weight"], p["bias"], True, 0.1, 1e-3)
        ),
        True,
    ),
    "chunk": of(lambda: C.chunk(2), lambda t, f, x: t.chunk(x, 2, -1)),
    "clamp": of(lambda: C.clamp(-0.5, 0.4), lambda t, f, x: x.clamp(-0.5, 0.4)),
    "cmd_exec": Case(
        lambda: C.cmd_exec(cmd.gemm(), {1: ((4, 2), signed(4, 2))}),
        [signed(2, 3, 4)],
        lambda t, f, p, x: x @ p["input1"],
    ),
    "cmul": of(
        lambda: C.cmul(),
        lambda t, f, x, y: t.view_as_real(
            t.view_as_complex(x.reshape(2, 2, 2)) * t.view_as_complex(y.reshape(2, 2, 2))
        ).flatten(1),
        signed(2, 4),
        signed(2, 4, seed=1),
    ),
    "concat": of(
        lambda: C.concat(1), lambda t, f, x, y: t.cat([x, y], 1), signed(2, 3), signed(2, 4)
    ),
    "contiguous": of(lambda: C.contiguous(), lambda t, f, x: x),
    "convolution": Case(
        lambda: C.convolution(6, (3, 2), stride=2, border=1, groups=2),
        [IMAGE],
        lambda t, f, p, x: last(f.conv2d(first(x), first(p["weight"]), p["bias"], 2, 1, groups=2)),
    ),
    "convolution_transpose": Case(
        lambda: C.convolution_transpose(6, 3, stride=2, border=1, output_padding=1),
        [IMAGE],
        lambda t, f, p, x: last(
            f.conv_transpose2d(first(x), first(p["weight"]), p["bias"], 2, 1, 1)
        ),
    ),
    "datatype_conversion": of(lambda: C.datatype_conversion("float32"), lambda t, f, x: x.float()),
    "debug": of(lambda: C.debug(lambda x: None), lambda t, f, x: x),
    "dense": Case(
        lambda: C.dense(5),
        [signed(2, 3, 4)],
        lambda t, f, p, x: f.linear(x, p["weight"], p["bias"]),
    ),
    "div": of(lambda: C.div(), lambda t, f, x, y: x / y, signed(2, 3), data(2, 3)),
    "dropout": of(lambda: C.dropout(0.3), lambda t, f, x: x),
    "embedding": Case(
        lambda: C.embedding(5, 3), [integers(2, 4)], lambda t, f, p, x: f.embedding(x, p["weight"])
    ),
    "exp": of(lambda: C.exp(), lambda t, f, x: x.exp()),
    "extract": of(lambda: C.extract(1), lambda t, f, x, y: y, signed(2), signed(3)),
    "flatten": of(lambda: C.flatten(), lambda t, f, x: x.flatten(1)),
    "gelu": of(lambda: C.gelu(tanh=True), lambda t, f, x: f.gelu(x, approximate="tanh")),
    "graph": of(
        lambda: C.graph(*squared_graph()),
        lambda t, f, x, y: ((x + y) ** 2).exp(),
        signed(2, 3),
        signed(2, 3, seed=1),
    ),
    "group_norm": Case(
        lambda: C.group_norm(2),
        [IMAGE],
        lambda t, f, p, x: last(f.group_norm(first(x), 2, p["weight"], p["bias"])),
    ),
    "identity": of(lambda: C.identity(), lambda t, f, x: x),
    "index_select": of(
        lambda: C.index_select(), lambda t, f, x, k: x[k], signed(4, 3), integers(3, high=4)
    ),
    "layer_norm": Case(
        lambda: C.layer_norm(axes=(1, 2)),
        [signed(2, 3, 4)],
        lambda t, f, p, x: f.layer_norm(x, (3, 4), p["weight"][0], p["bias"][0]),
    ),
    "leaky_relu": of(lambda: C.leaky_relu(0.2), lambda t, f, x: f.leaky_relu(x, 0.2)),
    "log": of(lambda: C.log(), lambda t, f, x: x.log(), data(2, 3)),
    "lstm": Case(lambda: C.lstm(4, layers=2, bidirectional=True), [signed(5, 2, 3)], lstm_of_torch),
    "masked_fill": of(
        lambda: C.masked_fill(1, 7.0),
        lambda t, f, x, m: x.masked_fill(m.bool(), 7.0),
        signed(2, 3),
        MASK,
    ),
    "matmul": of(
        lambda: C.matmul(transpose_b=True),
        lambda t, f, x, y: x @ y.transpose(-1, -2),
        signed(2, 3, 4),
        signed(2, 5, 4),
    ),
    "max": of(lambda: C.max(), lambda t, f, x, y: t.maximum(x, y), signed(3), signed(3, seed=1)),
    "max_pool": of(
        lambda: C.max_pool(3, 2, 1), lambda t, f, x: last(f.max_pool2d(first(x), 3, 2, 1)), IMAGE
    ),
    "min": of(lambda: C.min(), lambda t, f, x, y: t.minimum(x, y), signed(3), signed(3, seed=1)),
    "move": of(lambda: C.move(), lambda t, f, x, y: x, signed(3), signed(3, seed=1)),
    "mul": of(lambda: C.mul(2.0), lambda t, f, x, y: 2 * x * y, signed(2, 3), signed(2, 1)),
    "pad": of(
        lambda: C.pad("replicate", (0, 1, 2, 0)),
        lambda t, f, x: last(f.pad(first(x), (2, 2, 1, 1), mode="replicate")),
        IMAGE,
    ),
    "parameter": Case(lambda: C.parameter((2, 3), signed(2, 3)), [], lambda t, f, p: p["value"]),
    "permute": of(lambda: C.permute((2, 0, 1)), lambda t, f, x: x.permute(2, 0, 1)),
    "reduce_max": of(lambda: C.reduce_max(1), lambda t, f, x: x.amax(1, True)),
    "reduce_mean": of(lambda: C.reduce_mean((0, 2)), lambda t, f, x: x.mean((0, 2), True)),
    "reduce_min": of(lambda: C.reduce_min(1), lambda t, f, x: x.amin(1, True)),
    "reduce_norm2": of(lambda: C.reduce_norm2(2), lambda t, f, x: x.norm(dim=2, keepdim=True)),
    "reduce_sum": of(lambda: C.reduce_sum(), lambda t, f, x: x.sum((0, 1, 2), True)),
    "relu": of(lambda: C.relu(), lambda t, f, x: x.relu()),
    "reshape": of(
        lambda: C.reshape((2, 2, 2), offset=(0, 1, 0), stride=(1, 1, 2)),
        lambda t, f, x: x[:, 1:, ::2],
    ),
    "rmsnorm": Case(
        lambda: C.rmsnorm(epsilon=1e-5),
        [signed(2, 3, 4)],
        lambda t, f, p, x: f.rms_norm(x, (4,), p["weight"][0, 0], 1e-5),
    ),
    "scalar": Case(lambda: C.scalar(2.5), [signed(2)], lambda t, f, p, x: t.tensor(2.5)),
    "scalar_mul": of(lambda: C.scalar_mul(3.0), lambda t, f, x: 3 * x),
    "scaled_dot_product_attention": Case(
        lambda: C.scaled_dot_product_attention(is_causal=True, unify=5),
        [signed(2, 4, 3, 6, seed=k) for k in range(3)],
        attention_of_torch,
    ),
    "sigmoid": of(lambda: C.sigmoid(), lambda t, f, x: x.sigmoid()),
    "softmax": of(lambda: C.softmax(1), lambda t, f, x: x.softmax(1)),
    "sqrt": of(lambda: C.sqrt(), lambda t, f, x: x.sqrt(), data(2, 3)),
    "sum": of(
        lambda: C.sum(), lambda t, f, *x: sum(x), signed(2, 3), signed(2, 3, seed=1), signed(1, 3)
    ),
    "swish": of(lambda: C.swish(), lambda t, f, x: f.silu(x)),
    "tanh": of(lambda: C.tanh(), lambda t, f, x: x.tanh()),
    "transpose": of(lambda: C.transpose((0, 2)), lambda t, f, x: x.transpose(0, 2)),
    "upsample": of(
        lambda: C.upsample("bilinear", 2.0),
        lambda t, f, x: last(f.interpolate(first(x), scale_factor=2, mode="bilinear")),
        IMAGE,
    ),
    "variable": Case(
        lambda: C.variable((2, 3), signed(2, 3)), [], lambda t, f, p: p["value"].detach()
    ),
}
