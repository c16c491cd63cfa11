# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""The workloads in JAX: one jit for each, training steps with donated state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from .data import WEIGHTS
from .jax_loops import LOOPS
from .jax_moves import MOVES
from .jax_nets import STEPS, Sampler
from .jax_windows import WINDOWS, network
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


def version() -> str:
    """Of JAX."""
    return str(jax.__version__)


def start(threads: int) -> None:
    """Set the backend up; its number of threads is that of the processors it may run on."""
    jax.block_until_ready(jax.device_put(1.0))


def memory_of(compiled: Any, *args: Any) -> Callable[[], int | None]:
    """Temporaries and results that are not donated inputs, by XLA's own analysis."""

    def analyse() -> int | None:
        found = compiled.lower(*args).compile().memory_analysis()
        if found is None:
            return None
        results = found.output_size_in_bytes - found.alias_size_in_bytes
        return int(found.temp_size_in_bytes + results)

    return analyse


def computed(function: Callable[..., Any], *inputs: Any) -> Prepared:
    """A compiled function of arrays on the device."""
    compiled = jax.jit(function)
    args = jax.device_put(inputs)

    def one() -> Any:
        return compiled(*args).block_until_ready()

    def several() -> Any:
        results = compiled(*args)
        results[0].block_until_ready()  # all are there when one is
        return results

    single = hasattr(jax.eval_shape(function, *args), "shape")
    return plain(one if single else several, memory_of(compiled, *args))


def trained(
    step: Callable[..., Any], state: Any, shown: Callable[[Any], Sequence[Any]], *inputs: Any
) -> Prepared:
    """A step from (state, inputs) to (loss, new state), where the old state is donated."""
    compiled = jax.jit(step, donate_argnums=0)
    # A copy: what is donated must not be memory that NumPy owns.
    held = [jax.tree.map(jnp.array, state)]
    args = jax.device_put(inputs)

    def call() -> Any:
        loss, held[0] = compiled(held[0], *args)
        return loss.block_until_ready()  # the new state is there when the loss is

    return stepping(call, lambda: shown(held[0]), lambda: memory_of(compiled, held[0], *args)())


# Training steps ---------------------------------------------------------------------------------


def mlp_loss(parameters: Any, x: Any, y: Any) -> Any:
    """Two relu layers, softmax cross entropy averaged over the batch."""
    w, b = parameters
    h = jax.nn.relu(x @ w[0] + b[0])
    h = jax.nn.relu(h @ w[1] + b[1])
    return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(h @ w[2] + b[2]), axis=1))


def mlp_step(sizes: Sizes, data: Data) -> Prepared:
    """Momentum SGD."""
    parameters = (data["w"], data["b"])

    def step(state: Any, x: Any, y: Any) -> Any:
        parameters, speeds = state
        loss, slopes = jax.value_and_grad(mlp_loss)(parameters, x, y)
        speeds = jax.tree.map(lambda v, s: MOMENTUM * v + s, speeds, slopes)
        return loss, (jax.tree.map(lambda p, v: p - RATE * v, parameters, speeds), speeds)

    state = (parameters, jax.tree.map(jnp.zeros_like, parameters))
    return trained(step, state, lambda s: [*s[0][0], *s[0][1]], data["x"], data["y"])


def deep_mlp(sizes: Sizes, data: Data) -> Prepared:
    """Many tanh layers, SGD."""

    def loss_of(parameters: Any, x: Any, y: Any) -> Any:
        h = x
        for w, b in zip(*parameters, strict=True):
            h = jnp.tanh(h @ w + b)
        return jnp.mean((h - y) ** 2)

    def step(parameters: Any, x: Any, y: Any) -> Any:
        loss, slopes = jax.value_and_grad(loss_of)(parameters, x, y)
        return loss, jax.tree.map(lambda p, s: p - RATE * s, parameters, slopes)

    state = (data["w"], data["b"])
    return trained(step, state, lambda s: [*s[0], *s[1]], data["x"], data["y"])


def logistic(sizes: Sizes, data: Data) -> Prepared:
    """One weight for each feature, SGD."""

    def loss_of(w: Any, x: Any, y: Any) -> Any:
        score = x @ w
        return jnp.mean(jax.nn.softplus(score) - y * score)

    def step(w: Any, x: Any, y: Any) -> Any:
        loss, slope = jax.value_and_grad(loss_of)(w, x, y)
        return loss, w - RATE * slope

    return trained(step, data["w"], lambda w: [w], data["x"], data["y"])


def adam(sizes: Sizes, data: Data) -> Prepared:
    """All state donated."""

    def step(state: Any, g: Any) -> Any:
        p, mean, square, now = state
        now = now + 1
        mean = BETA1 * mean + (1 - BETA1) * g
        square = BETA2 * square + (1 - BETA2) * g * g
        size = jnp.sqrt(square / (1 - BETA2**now)) + ADAM_EPSILON
        p = p - ADAM_RATE * (mean / (1 - BETA1**now)) / size
        return now, (p, mean, square, now)

    zeros = jnp.zeros_like(data["p"])
    state = (data["p"], zeros, zeros, jnp.float32(0))
    return trained(step, state, lambda s: [s[0]], data["g"])


# A transformer block ----------------------------------------------------------------------------


def normalized(x: Any, scale: Any, shift: Any) -> Any:
    """Layer norm over the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    spread = jnp.mean(centred * centred, -1, keepdims=True)
    return centred * jax.lax.rsqrt(spread + NORM_EPSILON) * scale + shift


def block(heads: int, x: Any, weights: Any) -> Any:
    """Attention and a perceptron, each after a layer norm and beside a residual."""
    scale1, shift1, qkv, out, scale2, shift2, up, up_bias, down, down_bias = weights
    batch, tokens, width = x.shape
    parts = (normalized(x, scale1, shift1) @ qkv).reshape(batch, tokens, 3, heads, -1)
    query, key, value = parts[:, :, 0], parts[:, :, 1], parts[:, :, 2]
    h = jax.nn.dot_product_attention(query, key, value)
    h = x + h.reshape(batch, tokens, width) @ out
    risen = jax.nn.gelu(normalized(h, scale2, shift2) @ up + up_bias, approximate=True)
    return h + risen @ down + down_bias


def block_forward(sizes: Sizes, data: Data) -> Prepared:
    """The block's result."""
    return computed(partial(block, sizes["heads"]), data["x"], [data[name] for name in WEIGHTS])


def block_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives of its sum of squares."""

    def slopes(x: Any, weights: Any) -> Any:
        loss = lambda *a: jnp.sum(block(sizes["heads"], *a) ** 2)  # noqa: E731
        for_x, for_weights = jax.grad(loss, (0, 1))(x, weights)
        return [for_x, *for_weights]

    return computed(slopes, data["x"], [data[name] for name in WEIGHTS])


# Others -----------------------------------------------------------------------------------------


def product(sizes: Sizes, data: Data) -> Prepared:
    """Of matrices, stacks of them, or a matrix and a vector."""
    return computed(jnp.matmul, data["a"], data["b"])


def gelu(sizes: Sizes, data: Data) -> Prepared:
    """The form with tanh."""
    return computed(partial(jax.nn.gelu, approximate=True), data["x"])


def plus_one(sizes: Sizes, data: Data) -> Prepared:
    """A scalar on the device in, another out."""
    return computed(lambda x: x + 1, data["x"])


def stencil(u: Any) -> tuple[Any, ...]:
    """Four reductions over the Laplacian by seven points."""
    inner = u[1:-1, 1:-1, 1:-1]
    around = (u[2:, 1:-1, 1:-1] + u[:-2, 1:-1, 1:-1] + u[1:-1, 2:, 1:-1]
              + u[1:-1, :-2, 1:-1] + u[1:-1, 1:-1, 2:] + u[1:-1, 1:-1, :-2])  # fmt: skip
    bent = around - 6 * inner
    return jnp.sum(bent * bent), jnp.sum(jnp.abs(u)), jnp.max(u), jnp.mean(inner * bent)


def stencil_forward(sizes: Sizes, data: Data) -> Prepared:
    """The four numbers."""
    return computed(stencil, data["u"])


def stencil_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivative of their weighted sum."""

    def loss(u: Any) -> Any:
        squares, size, largest, product = stencil(u)
        return squares + 0.5 * size + largest + product

    return computed(jax.grad(loss), data["u"])


def softmax_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(jax.nn.softmax, data["x"])


def softmax_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivative with a seed."""
    return computed(lambda x, g: jax.vjp(jax.nn.softmax, x)[1](g)[0], data["x"], data["g"])


def layernorm_forward(sizes: Sizes, data: Data) -> Prepared:
    """Over columns."""
    return computed(normalized, data["x"], data["scale"], data["shift"])


def layernorm_backward(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives with a seed."""

    def slopes(x: Any, scale: Any, shift: Any, g: Any) -> Any:
        return jax.vjp(normalized, x, scale, shift)[1](g)

    return computed(slopes, data["x"], data["scale"], data["shift"], data["g"])


def logsumexp(sizes: Sizes, data: Data) -> Prepared:
    """Over rows."""
    return computed(partial(jax.nn.logsumexp, axis=0), data["x"])


def chained(length: int, x: Any, w: Any) -> Any:
    """The end of a chain of five ops in turn."""
    steps = (jnp.tanh, jnp.sin, lambda v: v * w, lambda v: v + x, jax.nn.sigmoid)
    y = x
    for k in range(length):
        y = steps[k % 5](y)
    return y


def chain(sizes: Sizes, data: Data) -> Prepared:
    """The chain alone."""
    return computed(partial(chained, data["length"]), data["x"], data["w"])


def chain_gradient(sizes: Sizes, data: Data) -> Prepared:
    """The derivatives of its sum with respect to both vectors."""
    loss = lambda x, w: jnp.sum(chained(data["length"], x, w))  # noqa: E731
    return computed(jax.grad(loss, (0, 1)), data["x"], data["w"])


def convolution_step(sizes: Sizes, data: Data) -> Prepared:
    """A small network for images, SGD."""

    def step(parameters: Any, x: Any, y: Any) -> Any:
        loss, slopes = jax.value_and_grad(network)(parameters, x, y)
        return loss, jax.tree.map(lambda p, s: p - RATE * s, parameters, slopes)

    return trained(step, data["parameters"], lambda s: s, data["x"], data["y"])


BUILDERS: dict[str, Builder] = {
    f.__name__: f
    for f in (
        mlp_step, deep_mlp, logistic, adam, block_forward, block_gradient, gelu, plus_one,
        stencil_forward, stencil_gradient, softmax_forward, softmax_backward, layernorm_forward,
        layernorm_backward, logsumexp, chain, chain_gradient, convolution_step,
    )
}  # fmt: skip
BUILDERS |= dict.fromkeys(("matmul", "matvec", "batch_matmul"), product)


def prepared_move(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A workload of ``jax_moves`` or ``jax_loops``."""
    function, names = {**MOVES, **LOOPS}[kind](sizes)
    return computed(function, *(data[name] for name in names))


BUILDERS |= {kind: partial(prepared_move, kind) for kind in (*MOVES, *LOOPS)}


def prepared_window(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A workload of ``jax_windows``."""
    function, names, slopes = WINDOWS[kind](sizes)
    inputs = [data[name] for name in names]
    if not slopes:
        return computed(function, *inputs)

    def differentiated(seed: Any, *args: Any) -> Any:
        y, back = jax.vjp(function, *args)
        return y, *back(seed)

    return computed(differentiated, data["g"], *inputs)


BUILDERS |= {kind: partial(prepared_window, kind) for kind in WINDOWS}


def prepared_step(kind: str, sizes: Sizes, data: Data) -> Prepared:
    """A training step of ``jax_nets``."""
    step, state, shown = STEPS[kind](sizes, data["values"])
    names = sorted(data["values"])
    return trained(step, state, lambda s: [shown(s)[name] for name in names], data["x"], data["t"])


BUILDERS |= {kind: partial(prepared_step, kind) for kind in STEPS}
BUILDERS["sampling"] = lambda sizes, data: plain(
    partial(Sampler(sizes, data["values"]).run, data["first"])
)
