# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"
"""The workloads in PyTensor, with its own default mode; state in shared variables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt

from .prepared import (
    ADAM_EPSILON,
    ADAM_RATE,
    BETA1,
    BETA2,
    MOMENTUM,
    NORM_EPSILON,
    RATE,
    Builder,
    Prepared,
    plain,
    stepping,
)
from .workloads import Sizes

Data = dict[str, Any]
notes: list[str] = []
f32 = np.float32


def version() -> str:
    """Of PyTensor, with the mode that it compiles in."""
    return f"{pytensor.__version__} (mode {pytensor.config.mode}, linker {pytensor.config.linker})"


def start(threads: int) -> None:
    """Nothing is to be set: the number of threads is in the environment."""
    pytensor.config.floatX = "float32"
    sys.setrecursionlimit(50_000)  # it walks long chains recursively


def symbol(value: Any) -> Any:
    """An input of the kind of an array."""
    return pt.tensor(dtype="float32", shape=(None,) * np.ndim(value))


def computed(function: Callable[..., Any], *inputs: Any) -> Prepared:
    """A compiled function of arrays."""
    symbols = [symbol(value) for value in inputs]
    # A shift, for one, is not needed for the derivative with respect to it.
    f = pytensor.function(symbols, function(*symbols), trust_input=True, on_unused_input="ignore")
    values = [np.asarray(value) for value in inputs]
    return plain(lambda: f(*values))


def trained(
    loss_of: Callable[..., Any], parameters: Sequence[Any], momentum: float, *inputs: Any
) -> Prepared:
    """A step of stochastic gradient descent."""
    held = [pytensor.shared(value) for value in parameters]
    symbols = [symbol(value) for value in inputs]
    loss = loss_of(*symbols, *held)
    updates = []
    for p, slope in zip(held, pytensor.grad(loss, held), strict=True):
        if momentum:
            speed = pytensor.shared(np.zeros_like(p.get_value()))
            slope = f32(momentum) * speed + slope
            updates.append((speed, slope))
        updates.append((p, p - f32(RATE) * slope))
    f = pytensor.function(symbols, loss, updates=updates, trust_input=True)
    return stepping(lambda: f(*inputs), lambda: [p.get_value() for p in held])


def mlp_step(sizes: Sizes, data: Data) -> Prepared:
    """Two relu layers, softmax cross entropy, momentum SGD."""

    def loss(x: Any, y: Any, *parameters: Any) -> Any:
        w, b = parameters[:3], parameters[3:]
        h = pt.maximum(x @ w[0] + b[0], 0)
        h = pt.maximum(h @ w[1] + b[1], 0)
        z = h @ w[2] + b[2]
        return -(y * pt.special.log_softmax(z, axis=1)).sum(1).mean()

    return trained(loss, [*data["w"], *data["b"]], MOMENTUM, data["x"], data["y"])


def logistic(sizes: Sizes, data: Data) -> Prepared:
    """One weight for each feature, SGD."""

    def loss(x: Any, y: Any, w: Any) -> Any:
        score = x @ w
        return (pt.softplus(score) - y * score).mean()

    return trained(loss, [data["w"]], 0.0, data["x"], data["y"])


def adam(sizes: Sizes, data: Data) -> Prepared:
    """State in shared variables."""
    p = pytensor.shared(data["p"])
    mean, square = (pytensor.shared(np.zeros_like(data["p"])) for _ in range(2))
    step, g = pytensor.shared(f32(0)), pt.fvector()
    now = step + f32(1)
    new_mean = f32(BETA1) * mean + f32(1 - BETA1) * g
    new_square = f32(BETA2) * square + f32(1 - BETA2) * g * g
    size = pt.sqrt(new_square / (1 - f32(BETA2) ** now)) + f32(ADAM_EPSILON)
    moved = p - f32(ADAM_RATE) * (new_mean / (1 - f32(BETA1) ** now)) / size
    updates = [(p, moved), (mean, new_mean), (square, new_square), (step, now)]
    f = pytensor.function([g], now, updates=updates, trust_input=True)
    return stepping(lambda: f(data["g"]), lambda: [p.get_value()])


def product(sizes: Sizes, data: Data) -> Prepared:
    """Of matrices, stacks of them, or a matrix and a vector."""
    return computed(pt.matmul, data["a"], data["b"])


def gelu_of(x: Any) -> Any:
    """The form with tanh."""
    inner = f32((2 / np.pi) ** 0.5) * (x + f32(0.044715) * x * x * x)
    return f32(0.5) * x * (f32(1) + pt.tanh(inner))


def gelu(sizes: Sizes, data: Data) -> Prepared:
    """The form with tanh."""
    return computed(gelu_of, data["x"])


def plus_one(sizes: Sizes, data: Data) -> Prepared:
    """An array without axes in, another out."""
    return computed(lambda x: x + f32(1), data["x"])


def stencil(u: Any) -> list[Any]:
    """Four reductions over the Laplacian by seven points."""
    inner = u[1:-1, 1:-1, 1:-1]
    around = (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1]
              + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2])  # fmt: skip
    bent = around - f32(6) * inner
    return [(bent * bent).sum(), abs(u).sum(), u.max(), (inner * bent).mean()]


def stencil_forward(sizes: Sizes, data: Data) -> Prepared:
    """The four numbers."""
    return computed(stencil, data["u"])


def stencil_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivative of their weighted sum."""

    def slope(u: Any) -> Any:
        squares, size, largest, product = stencil(u)
        return pytensor.grad(squares + f32(0.5) * size + largest + product, u)

    return computed(slope, data["u"])


def softmax(x: Any) -> Any:
    """Over columns."""
    return pt.special.softmax(x, axis=1)


def softmax_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(softmax, data["x"])


def softmax_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivative with a seed."""
    return computed(
        lambda x, g: pytensor.grad(None, x, known_grads={softmax(x): g}), data["x"], data["g"]
    )


def normalized(x: Any, scale: Any, shift: Any) -> Any:
    """Layer norm over columns."""
    centred = x - x.mean(1, keepdims=True)
    spread = (centred * centred).mean(1, keepdims=True)
    return centred / pt.sqrt(spread + f32(NORM_EPSILON)) * scale + shift


def layernorm_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(normalized, data["x"], data["scale"], data["shift"])


def layernorm_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives with a seed."""

    def slopes(x: Any, scale: Any, shift: Any, g: Any) -> Any:
        known = {normalized(x, scale, shift): g}
        return pytensor.grad(None, [x, scale, shift], known_grads=known)

    return computed(slopes, data["x"], data["scale"], data["shift"], data["g"])


def logsumexp(sizes: Sizes, data: Data) -> Prepared:
    """Over rows."""
    return computed(lambda x: pt.logsumexp(x, axis=0), data["x"])


def chained(length: int, x: Any, w: Any) -> Any:
    """The end of a chain of five ops in turn."""
    steps = (pt.tanh, pt.sin, lambda v: v * w, lambda v: v + x, pt.sigmoid)
    y = x
    for k in range(length):
        y = steps[k % 5](y)
    return y


def chain(sizes: Sizes, data: Data) -> Prepared:
    """The chain alone."""
    return computed(lambda x, w: chained(data["length"], x, w), data["x"], data["w"])


def chain_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives of its sum with respect to both vectors."""

    def slopes(x: Any, w: Any) -> Any:
        return pytensor.grad(chained(data["length"], x, w).sum(), [x, w])

    return computed(slopes, data["x"], data["w"])


BUILDERS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        mlp_step, logistic, adam, gelu, plus_one, stencil_forward, stencil_gradient,
        softmax_forward, softmax_backward, layernorm_forward, layernorm_backward, logsumexp,
        chain, chain_gradient,
    )
}  # fmt: skip
BUILDERS |= dict.fromkeys(("matmul", "matvec", "batch_matmul"), product)
