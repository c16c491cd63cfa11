# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"
"""The workloads in tinygrad on its CPU device, each captured by its JIT."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .data import WEIGHTS
from .prepared import MOMENTUM, NORM_EPSILON, RATE, Builder, Prepared, stepping
from .workloads import Sizes

Data = dict[str, Any]
notes: list[str] = []
CAPTURED = 3  # calls until the JIT replays

os.environ.setdefault("DEV", "CPU")


def clang_of_wheel() -> None:
    """Put a ``clang`` on the path where there is none: that of the wheel ``ziglang``."""
    if shutil.which("clang") or importlib.util.find_spec("ziglang") is None:
        return
    folder = tempfile.mkdtemp(prefix="clang-")
    program = Path(folder, "clang")
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang clang "$@"\n')
    program.chmod(0o700)
    os.environ["PATH"] += os.pathsep + folder
    notes.append("tinygrad's clang was that of the wheel ziglang")


clang_of_wheel()

from tinygrad import Device, Tensor, TinyJit  # noqa: E402  # after its compiler is in place


def version() -> str:
    """Of tinygrad, which tells it in its metadata alone."""
    import importlib.metadata

    return importlib.metadata.version("tinygrad")


def start(threads: int) -> None:
    """Open the device; tinygrad decides on threads by itself."""
    Device[Device.DEFAULT].synchronize()


def tensor(value: Any) -> Any:
    """An array on the device."""
    return Tensor(np.array(value)).clone().realize()


def values(results: Any) -> list[Any]:
    """Results as arrays."""
    listed = results if isinstance(results, (list, tuple)) else [results]
    return [value.numpy() for value in listed]


def computed(function: Callable[..., Any], *inputs: Any) -> Prepared:
    """A captured function of tensors."""
    args = [tensor(value) for value in inputs]

    def realized(*args: Any) -> Any:
        made = function(*args)
        Tensor.realize(*(made if isinstance(made, (list, tuple)) else [made]))
        return made

    captured, device = TinyJit(realized), Device[Device.DEFAULT]

    def call() -> Any:
        result = captured(*args)
        device.synchronize()
        return result

    def results() -> list[Any]:
        for _ in range(CAPTURED):
            found = values(call())
        return found

    return Prepared(call, results)


def mlp_step(sizes: Sizes, data: Data) -> Prepared:
    """Two relu layers, softmax cross entropy averaged over the batch, momentum SGD."""
    parameters = [tensor(value) for value in (*data["w"], *data["b"])]
    speeds = [Tensor.zeros(*p.shape).contiguous().realize() for p in parameters]
    x, y, device = tensor(data["x"]), tensor(data["y"]), Device[Device.DEFAULT]

    def step(x: Any, y: Any) -> Any:
        w, b = parameters[:3], parameters[3:]
        h = (x @ w[0] + b[0]).relu()
        h = (h @ w[1] + b[1]).relu()
        loss = -(y * (h @ w[2] + b[2]).log_softmax(1)).sum(1).mean()
        for p, speed, slope in zip(parameters, speeds, loss.gradient(*parameters), strict=True):
            speed.assign(MOMENTUM * speed + slope)
            p.assign(p - RATE * speed)
        return loss.realize(*parameters, *speeds)

    captured = TinyJit(step)

    def call() -> Any:
        loss = captured(x, y)
        device.synchronize()
        return loss

    found = stepping(lambda: call().numpy(), lambda: [p.numpy() for p in parameters])
    return Prepared(call, found.results)


def product(sizes: Sizes, data: Data) -> Prepared:
    """Of matrices, stacks of them, or a matrix and a vector."""
    return computed(lambda a, b: a @ b, data["a"], data["b"])


def gelu(sizes: Sizes, data: Data) -> Prepared:
    """tinygrad's own, which is the form with tanh."""
    return computed(lambda x: x.gelu(), data["x"])


def plus_one(sizes: Sizes, data: Data) -> Prepared:
    """A scalar tensor in, another out."""
    return computed(lambda x: x + 1, data["x"])


def softmax_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(lambda x: x.softmax(1), data["x"])


def softmax_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivative with a seed."""
    return computed(lambda x, g: (x.softmax(1) * g).sum().gradient(x)[0], data["x"], data["g"])


def layernorm_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(
        lambda x, scale, shift: x.layernorm(eps=NORM_EPSILON) * scale + shift,
        data["x"], data["scale"], data["shift"],
    )  # fmt: skip


def logsumexp(sizes: Sizes, data: Data) -> Prepared:
    """Over rows."""
    return computed(lambda x: x.logsumexp(0), data["x"])


def stencil_forward(sizes: Sizes, data: Data) -> Prepared:
    """Four reductions over the Laplacian by seven points."""

    def stencil(u: Any) -> list[Any]:
        inner = u[1:-1, 1:-1, 1:-1]
        around = (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1]
                  + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2])  # fmt: skip
        bent = around - 6 * inner
        return [(bent * bent).sum(), u.abs().sum(), u.max(), (inner * bent).mean()]

    return computed(stencil, data["u"])


def block_forward(sizes: Sizes, data: Data) -> Prepared:
    """Attention and a perceptron, each after a layer norm and beside a residual."""
    heads = sizes["heads"]

    def block(x: Any, *weights: Any) -> Any:
        scale1, shift1, qkv, out, scale2, shift2, up, up_bias, down, down_bias = weights
        batch, tokens, width = x.shape
        parts = (x.layernorm(eps=NORM_EPSILON) * scale1 + shift1) @ qkv
        parts = parts.reshape(batch, tokens, 3, heads, -1).permute(2, 0, 3, 1, 4)
        h = parts[0].scaled_dot_product_attention(parts[1], parts[2])
        h = x + h.transpose(1, 2).reshape(batch, tokens, width) @ out
        normal = h.layernorm(eps=NORM_EPSILON) * scale2 + shift2
        return h + (normal @ up + up_bias).gelu() @ down + down_bias

    return computed(block, data["x"], *(data[name] for name in WEIGHTS))


BUILDERS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        mlp_step, gelu, plus_one, softmax_forward, softmax_backward, layernorm_forward, logsumexp,
        stencil_forward, block_forward,
    )
}  # fmt: skip
BUILDERS |= dict.fromkeys(("matmul", "matvec", "batch_matmul"), product)
