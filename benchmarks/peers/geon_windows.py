"""In geon: convolutions and pooling, images as (N, H, W, C).

Each function takes sizes and gives results, placeholders by the names of their data, and the open
lengths.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import geon
from geon import Axis, Variable, Window, assign, placeholder

from .prepared import NORM_EPSILON
from .workloads import Sizes

Made = tuple[Any, dict[str, Any], dict[Axis, int]]
H, W = Axis("H"), Axis("W")


def images(sizes: Sizes) -> tuple[Any, dict[Axis, int]]:
    """The images, and the length of their open axis."""
    axes = [Axis("N"), *(Axis(n, sizes["side"]) for n in "HW"), Axis("C", sizes["channels"])]
    return placeholder(axes), {axes[0]: sizes["batch"]}


def windowed(x: Any, filters: Any, stride: int, over: Any = None) -> Any:
    """A convolution with as much padding as keeps sides of stride 1."""
    pad = (filters.axes["R"].length // 2,) * 2
    spec = {n: Window(filters.axes[r], stride, pad=pad) for n, r in (("H", "R"), ("W", "S"))}
    return geon.convolution(x, filters, spec, over)


def square(size: int, *axes: Any) -> Any:
    """Filters of as many positions along both axes."""
    return placeholder([Axis("R", size), Axis("S", size), *axes])


def convolution(sizes: Sizes) -> Made:
    """Filters of 3×3 positions."""
    x, lengths = images(sizes)
    w = square(3, x.axes["C"], Axis("K", sizes["filters"]))
    return windowed(x, w, 1), {"x": x, "w": w}, lengths


def convolution_gradient(sizes: Sizes) -> Made:
    """A convolution with steps, and the derivatives for images and filters."""
    x, lengths = images(sizes)
    w = square(3, x.axes["C"], Axis("K", sizes["filters"]))
    y = windowed(x, w, sizes["stride"])
    g = placeholder(y.axes)
    return [y, *geon.deriv(y, [x, w], seed=g)], {"x": x, "w": w, "g": g}, lengths


def depthwise(sizes: Sizes) -> Made:
    """Each channel alone."""
    x, lengths = images(sizes)
    w = square(3, x.axes["C"])
    return windowed(x, w, sizes["stride"], []), {"x": x, "w": w}, lengths


def depthwise_gradient(sizes: Sizes) -> Made:
    """The same, and the derivatives for images and filters."""
    x, lengths = images(sizes)
    w = square(3, x.axes["C"])
    y = windowed(x, w, sizes["stride"], [])
    g = placeholder(y.axes)
    return [y, *geon.deriv(y, [x, w], seed=g)], {"x": x, "w": w, "g": g}, lengths


def normed(x: Any, scale: Any, shift: Any) -> Any:
    """Batch norm by the statistics of the batch, over all axes but the channels."""
    others = x.axes.without(scale.axes.names)
    mean, variance = geon.mean(x, others), geon.variance(x, others)
    return (x - mean) * geon.rsqrt(variance + NORM_EPSILON) * scale + shift


def residual_block(sizes: Sizes) -> Made:
    """Two convolutions with batch norm and a way past them, and the derivatives for all inputs."""
    x, lengths = images(sizes)
    channels, between = x.axes["C"], Axis("K", sizes["channels"])
    given = {"x": x}
    y = x
    for k, (before, after) in enumerate(((channels, between), (between, channels))):
        w = given[f"w{k}"] = square(3, before, after)
        scale = given[f"scale{k}"] = placeholder([after])
        shift = given[f"shift{k}"] = placeholder([after])
        y = normed(windowed(geon.relu(y) if k else y, w, 1), scale, shift)
    y = geon.relu(x + y)
    g = placeholder(y.axes)
    return [y, *geon.deriv(y, list(given.values()), seed=g)], given | {"g": g}, lengths


def pooling(sizes: Sizes) -> Made:
    """The largest of windows, and the derivative."""
    x, lengths = images(sizes)
    spec = Window(sizes["window"], stride=sizes["stride"], pad=(sizes["window"] - 1) // 2)
    y = geon.max_pool(x, {"H": spec, "W": spec})
    g = placeholder(y.axes)
    return [y, geon.deriv(y, x, seed=g)], {"x": x, "g": g}, lengths


WINDOWS: dict[str, Callable[[Sizes], Made]] = {
    f.__name__: f
    for f in (
        convolution, convolution_gradient, depthwise, depthwise_gradient, residual_block, pooling,
    )
}  # fmt: skip


def network(sizes: Sizes, rate: float) -> tuple[Any, list[Any], list[Any], list[Any], Any]:
    """Two convolutions with relu, each followed by pooling, and a product: the loss, the updates,
    the placeholders, the parameters and the open axis.
    """
    batch, side = Axis("N"), sizes["side"]
    x = placeholder([batch, Axis("H", side), Axis("W", side), Axis("C", 1)])
    first, second = Axis("K", sizes["first"]), Axis("L", sizes["second"])
    classes = Axis("classes", sizes["classes"])
    y = placeholder([batch, classes])
    r, s = Axis("R", 5), Axis("S", 5)
    last = ((side - 4) // 2 - 4) // 2
    parameters = [
        Variable([r, s, x.axes["C"], first], name="w0"),
        Variable([r, s, first, second], name="w1"),
        Variable([Axis("H", last), Axis("W", last), second, classes], name="w2"),
        *(Variable([axis], name=f"b{k}") for k, axis in enumerate((first, second, classes))),
    ]
    w0, w1, w2, b0, b1, b2 = parameters
    pool = {"H": Window(2, stride=2), "W": Window(2, stride=2)}
    h = geon.max_pool(geon.relu(geon.convolution(x, w0, {"H": r, "W": s}) + b0), pool)
    h = geon.max_pool(geon.relu(geon.convolution(h, w1, {"H": r, "W": s}) + b1), pool)
    y_hat = geon.softmax(geon.dot(h, w2) + b2, normalization_axes=classes)
    loss = geon.mean(geon.cross_entropy_multi(y_hat, y, out_axes=batch))
    slopes = geon.deriv(loss, parameters)
    updates = [assign(v, v - rate * slope) for v, slope in zip(parameters, slopes, strict=True)]
    return loss, updates, [x, y], parameters, batch
