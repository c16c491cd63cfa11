# mypy: disable-error-code="import-not-found,import-untyped,no-untyped-call,unused-ignore"
"""In PyTorch: convolutions and pooling; images lie as (N, H, W, C), its channels-last format.

Each function takes sizes and gives a function of images and filters, the names of its data, and
whether its derivatives are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from .prepared import NORM_EPSILON
from .workloads import Sizes

Made = tuple[Callable[..., Any], tuple[str, ...], bool]


def shown(x: Any) -> Any:
    """Images as they are given: (N, H, W, C) of what is (N, C, H, W)."""
    return x.permute(0, 2, 3, 1)


def taken(x: Any) -> Any:
    """Images as PyTorch names their axes, in the memory in which they are."""
    return x.permute(0, 3, 1, 2)


def filters(w: Any) -> Any:
    """Filters as (K, C, R, S)."""
    return w.permute(3, 2, 0, 1)


def convolved(x: Any, w: Any, stride: int = 1) -> Any:
    """A convolution with a border."""
    return shown(F.conv2d(taken(x), filters(w), stride=stride, padding=w.shape[0] // 2))


def apart(x: Any, w: Any, stride: int = 1) -> Any:
    """Each channel alone."""
    own = w.permute(2, 0, 1)[:, None]
    pad = w.shape[0] // 2
    return shown(F.conv2d(taken(x), own, stride=stride, padding=pad, groups=w.shape[2]))


def normed(x: Any, scale: Any, shift: Any) -> Any:
    """Batch norm by the statistics of the batch."""
    return F.batch_norm(x, None, None, scale, shift, True, eps=NORM_EPSILON)


def block(x: Any, w0: Any, scale0: Any, shift0: Any, w1: Any, scale1: Any, shift1: Any) -> Any:
    """Two convolutions with batch norm and a way past them."""
    y = F.relu(normed(F.conv2d(taken(x), filters(w0), padding=1), scale0, shift0))
    y = normed(F.conv2d(y, filters(w1), padding=1), scale1, shift1)
    return shown(F.relu(taken(x) + y))


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

    def function(x: Any) -> Any:
        return shown(F.max_pool2d(taken(x), window, stride, (window - 1) // 2))

    return function, ("x",), True


WINDOWS: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        convolution, convolution_gradient, depthwise, depthwise_gradient, residual_block, pooling,
    )
}  # fmt: skip


def network(x: Any, y: Any, w0: Any, w1: Any, w2: Any, b0: Any, b1: Any, b2: Any) -> Any:
    """Two convolutions with relu, each followed by pooling, and a product; the loss."""
    h = F.max_pool2d(F.relu(F.conv2d(taken(x), filters(w0), b0)), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, filters(w1), b1)), 2)
    scores = torch.addmm(b2, shown(h).flatten(1), w2.flatten(0, 2))
    return F.cross_entropy(scores, y)
