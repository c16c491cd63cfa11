# mypy: disable-error-code="import-not-found,import-untyped,unused-ignore"
"""In JAX: convolutions and pooling, images as (N, H, W, C).

Each function takes sizes and gives a function of images and filters, the names of its data, and
whether its derivatives are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .prepared import NORM_EPSILON
from .workloads import Sizes

Made = tuple[Callable[..., Any], tuple[str, ...], bool]
NAMES = ("NHWC", "HWIO", "NHWC")


def convolved(x: Any, w: Any, stride: int = 1, groups: int = 1, pad: int | None = None) -> Any:
    """A convolution with a border."""
    side = w.shape[0] // 2 if pad is None else pad
    return lax.conv_general_dilated(
        x, w, (stride, stride), [(side, side)] * 2, dimension_numbers=NAMES,
        feature_group_count=groups,
    )  # fmt: skip


def apart(x: Any, w: Any, stride: int = 1) -> Any:
    """Each channel alone."""
    return convolved(x, w[:, :, None, :], stride, w.shape[2])


def pooled(x: Any, window: int, stride: int, pad: int) -> Any:
    """The largest of windows."""
    size, steps = (1, window, window, 1), (1, stride, stride, 1)
    border = ((0, 0), (pad, pad), (pad, pad), (0, 0))
    return lax.reduce_window(x, -jnp.inf, lax.max, size, steps, border)


def normed(x: Any, scale: Any, shift: Any) -> Any:
    """Batch norm by the statistics of the batch."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * lax.rsqrt(variance + NORM_EPSILON) * scale + shift


def block(x: Any, w0: Any, scale0: Any, shift0: Any, w1: Any, scale1: Any, shift1: Any) -> Any:
    """Two convolutions with batch norm and a way past them."""
    y = jax.nn.relu(normed(convolved(x, w0), scale0, shift0))
    return jax.nn.relu(x + normed(convolved(y, w1), scale1, shift1))


def convolution(sizes: Sizes) -> Made:
    """Filters of 3×3 positions."""
    return convolved, ("x", "w"), False


def convolution_gradient(sizes: Sizes) -> Made:
    """A convolution with steps, and the derivatives."""
    return partial(convolved, stride=sizes["stride"]), ("x", "w"), True


def depthwise(sizes: Sizes) -> Made:
    """Each channel alone."""
    return partial(apart, stride=sizes["stride"]), ("x", "w"), False


def depthwise_gradient(sizes: Sizes) -> Made:
    """The same, and the derivatives for images and filters."""
    return partial(apart, stride=sizes["stride"]), ("x", "w"), True


def residual_block(sizes: Sizes) -> Made:
    """Two convolutions with batch norm and a way past them, and the derivatives for all inputs."""
    return block, ("x", "w0", "scale0", "shift0", "w1", "scale1", "shift1"), True


def pooling(sizes: Sizes) -> Made:
    """The largest of windows, and the derivative."""
    window, stride = sizes["window"], sizes["stride"]
    return partial(pooled, window=window, stride=stride, pad=(window - 1) // 2), ("x",), True


WINDOWS: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        convolution, convolution_gradient, depthwise, depthwise_gradient, residual_block, pooling,
    )
}  # fmt: skip


def network(parameters: Any, x: Any, y: Any) -> Any:
    """Two convolutions with relu, each followed by pooling, and a product; the loss."""
    w0, w1, w2, b0, b1, b2 = parameters
    h = pooled(jax.nn.relu(convolved(x, w0, pad=0) + b0), 2, 2, 0)
    h = pooled(jax.nn.relu(convolved(h, w1, pad=0) + b1), 2, 2, 0)
    scores = h.reshape(h.shape[0], -1) @ w2.reshape(-1, w2.shape[-1]) + b2
    return -jnp.mean(jnp.sum(y * jax.nn.log_softmax(scores), axis=1))
