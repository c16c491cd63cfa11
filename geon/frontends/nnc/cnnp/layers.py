"""Models that are layers of ``geon.frontends.neon``: products, convolutions, pools, normalisations.

A dimension of a value has the name of an axis, or a tuple of names if it has several axes in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import geon

from ....errors import ArgumentError
from ...neon import layers
from ...neon.initialisers import Glorot
from ...positional.networks.common import channel_position
from ...positional.networks.images import slides_of, spread_lengths
from ...positional.reshaping import reshape, transpose
from ...positional.values import Value, array, full_tensor, position, positions
from .model import Scope

Names = Sequence[str | tuple[str, ...]]
Own = Mapping[str, tuple[str, Names]]


class ModelStates(layers.Training):
    """Gives the new values of a layer's states to a model; ``known`` has its name and dimensions.

    The keys of ``known`` are what the layer has for variables.
    """

    def __init__(self, m: Scope) -> None:
        super().__init__()
        self.m, self.known = m, dict[Any, tuple[str, Names]]()

    def keep(self, state: Any, value: geon.Tensor) -> None:
        """Assign a state this value after the step."""
        name, dims = self.known[state]
        self.m.keep(name, positional(value, dims))


def named(x: Value, names: Names, lengths: Mapping[str, Any]) -> geon.Tensor:
    """Return a value as a tensor with these axes; ``lengths`` has those of names in tuples."""
    parts = _parts(names)
    sizes = [lengths.get(n, size) for part, size in zip(parts, x.shape, strict=True) for n in part]
    tensor = full_tensor(x if len(sizes) == len(x.shape) else reshape(x, sizes))
    flat = [n for part in parts for n in part]
    changed: dict[Any, Any] = dict(zip(tensor.axes.names, flat, strict=True))
    return tensor.rename(changed)


def positional(y: geon.Tensor, names: Names) -> Value:
    """Return a tensor as a value with these dimensions; those that it has no axis for are 1."""
    parts = _parts(names)
    made = array(y, [n if n in y.axes else None for part in parts for n in part])
    if len(made.dims) == len(parts):
        return made
    return reshape(made, [math.prod(_length(y.axes, n) for n in part) for part in parts])


def _parts(names: Names) -> list[tuple[str, ...]]:
    return [(each,) if isinstance(each, str) else each for each in names]


def _length(axes: geon.Axes, name: str) -> Any:
    return axes[name].expression if name in axes else 1


def applied(
    m: Scope, layer: layers.Layer, x: Value, names: Names, result: Names, own: Own | None = None,
    lengths: Mapping[str, Any] | None = None,
) -> Value:  # fmt: skip
    """Return a layer of ``x``, whose dimensions and those of the result have these names.

    ``own`` has for variables of the layer the name of the parameter of the model that each is, and
    the names of its dimensions. Others keep the number that they begin with. ``lengths`` has those
    of names of ``x`` in tuples.
    """
    states, known = ModelStates(m), own or {}

    def variable(
        place: str, axes: geon.Axes, first: Any, *, inputs: Any = (), outputs: Any = (),
        dtype: Any = None, trainable: bool = True,
    ) -> Any:  # fmt: skip
        if place not in known:
            return first
        name, dims = known[place]
        parts = _parts(dims)
        sizes = {n: _length(axes, n) for part in parts for n in part}
        shape = [math.prod(sizes[n] for n in part) for part in parts]
        fan = [
            [k for k, part in enumerate(parts) if any(n in ends for n in part)]
            for ends in (inputs, outputs)
        ]
        kind = "bias" if place in ("b", "shift") else "weight"
        made = m.parameter(
            name, shape, first, kind if trainable else "state", fan, None if trainable else dtype
        )
        tensor = named(made if trainable else m.state(name), dims, sizes)
        tensor = tensor[{n: 0 for n in sizes if n not in axes}]
        if not trainable:
            states.known[tensor] = known[place]
        return tensor

    layer.variable = variable  # type: ignore[method-assign,assignment]  # parameters of the model
    y = layer(named(x, names, lengths or {}), training=states if m.build.training else None)
    return positional(y, result)


def dims_of(x: Value) -> list[str]:
    """Return a name for each dimension."""
    return [f"d{k}" for k in range(len(x.shape))]


def initial(m: Scope, init: Any) -> Any:
    """Return what weights begin by: ``init``, or Glorot's initialiser."""
    return Glorot(m.build.random) if init is None else init


def image_dims(x: Value, format: str) -> list[str]:
    """Return the names of the dimensions of images of a layout, without N for a single one."""
    if len(x.shape) not in (3, 4):
        raise ArgumentError(f"{x} is no batch of images: give 3 or 4 dimensions, {format}")
    return [letter for letter in format if letter != "N" or len(x.shape) == 4]


def windows_of(*placement: Any) -> dict[str, geon.Window]:
    """Return the windows of rows and columns, of ``size``, ``stride``, ``border``, ``dilation``."""
    return {
        name: geon.Window(geon.Axis(inside, s.length), s.stride, s.dilation, s.pad)
        for name, inside, s in zip("HW", "RS", slides_of(*placement), strict=True)
    }


def check_groups(x: Value, groups: int, *counts: Any) -> None:
    """Raise ``ArgumentError`` unless the channels of ``x``, and the filters, divide into groups."""
    if groups < 1 or any(count % groups for count in counts):
        raise ArgumentError(
            f"{x}: groups={groups} does not divide the channels, or the channels and filters, "
            f"{' and '.join(map(str, counts))}; give a number that does"
        )


# Rows of the table --------------------------------------------------------------------------------


def dense(m: Scope, x: Value, *, count: int, bias: bool = True, init: Any = None) -> Value:
    """Return ``x`` times weights (count, inputs), plus a bias."""
    *rest, last = dims_of(x)
    layer = layers.Affine(
        geon.Axis("count", count), initial(m, init), 0.0 if bias else None, over=last
    )
    weights: Own = {"w": ("weight", ["count", last]), "b": ("bias", ["count"])}
    return applied(m, layer, x, [*rest, last], [*rest, "count"], weights)


def convolution(
    m: Scope, x: Value, *, count: int, size: Any, bias: bool = True, init: Any = None,
    groups: int = 1, stride: Any = 1, border: Any = 0, dilation: Any = 1, format: Any = None,
) -> Value:  # fmt: skip
    """Return images convolved with ``count`` filters of ``size``, plus a bias."""
    return _convolved(
        m, x, layers.Convolution, windows_of(size, stride, border, dilation), count, bias, init,
        groups,
    )  # fmt: skip


def convolution_transpose(
    m: Scope, x: Value, *, count: int, size: Any, bias: bool = True, init: Any = None,
    groups: int = 1, stride: Any = 1, border: Any = 0, dilation: Any = 1, output_padding: Any = 0,
    format: Any = None,
) -> Value:  # fmt: skip
    """Return the transposed convolution of images with ``count`` filters, plus a bias."""
    windows = windows_of(size, stride, border, dilation)
    slides = slides_of(size, stride, border, dilation)
    sizes = dict(zip(image_dims(x, m.format), x.shape, strict=True))
    lengths = spread_lengths([sizes["H"], sizes["W"]], slides, output_padding)
    return _convolved(
        m, x, layers.Deconvolution, windows, count, bias, init, groups,
        lengths=dict(zip("HW", lengths, strict=True)),
    )  # fmt: skip


def _convolved(
    m: Scope, x: Value, kind: Any, windows: Mapping[str, geon.Window], count: int, bias: bool,
    init: Any, groups: int, **options: Any,
) -> Value:  # fmt: skip
    """Return images after a layer of ``kind``, whose filters are in the order of the layout."""
    dims = image_dims(x, m.format)
    channels = x.shape[dims.index("C")]
    check_groups(x, groups, channels, count)
    apart = ("G",) if groups > 1 else ()
    layer = kind(
        windows, geon.Axis("K", count // groups), initial(m, init), 0.0 if bias else None,
        over="C", apart=apart, **options,
    )  # fmt: skip
    first, inner = ("C", "K") if kind is layers.Deconvolution else ("K", "C")
    outer = (*apart, first)
    filters: Names = [outer, "R", "S", inner] if m.format == "NHWC" else [outer, inner, "R", "S"]
    names, result = ([(*apart, letter) if n == "C" else n for n in dims] for letter in ("C", "K"))
    sizes = {"G": groups, "C": channels // groups}
    own: Own = {"w": ("weight", filters), "b": ("bias", [(*apart, "K")])}
    return applied(m, layer, x, names, result, own, sizes)


def pooling(kind: str) -> Callable[..., Value]:
    """Return the function of a pool over windows; ``kind`` is that of ``neon.Pooling``."""

    def function(
        m: Scope, x: Value, *, size: Any = 2, stride: Any = None, border: Any = 0,
        format: Any = None,
    ) -> Value:  # fmt: skip
        """Return a pool over windows of images; ``stride`` is ``size`` by default."""
        dims = image_dims(x, m.format)
        windows = windows_of(size, size if stride is None else stride, border)
        return applied(m, layers.Pooling(windows, kind), x, dims, dims)

    return function


AFFINE = {"scale": "weight", "shift": "bias", "mean": "mean", "variance": "var"}


def _affine(dims: Names, *places: Any) -> Own:
    """Return parameters over ``dims`` for the places that are not False."""
    return {place: (AFFINE[place], dims) for place in places if place}


def batch_norm(
    m: Scope, x: Value, *, axes: Any = None, epsilon: float = 1e-5, momentum: float = 0.9,
    format: Any = None,
) -> Value:  # fmt: skip
    """Return channels normalised: in training by the batch, which moves running statistics."""
    dims = dims_of(x)
    at = [channel_position(x, m.format)]
    if axes is not None:
        at = [k for k in range(len(dims)) if k not in positions(axes, len(x.shape))]
    own = [dims[k] for k in at]
    layer = layers.BatchNorm(own, momentum, epsilon)
    return applied(m, layer, x, dims, dims, _affine(own, "scale", "shift", "mean", "variance"))


def normalising(kind: Any, least: float) -> Callable[..., Value]:
    """Return the function of a layer of ``neon`` over ``axes``; ``least`` is its epsilon."""

    def function(
        m: Scope, x: Value, *, affine: bool = True, bias: bool = True, axes: Any = (-1,),
        epsilon: float = least,
    ) -> Value:  # fmt: skip
        """Return ``x`` normalised over ``axes``; with ``affine``, times a weight, plus a bias.

        Parameters have length 1 along the other dimensions. ``rmsnorm`` has no bias.
        """
        dims = dims_of(x)
        layer = kind([dims[k] for k in positions(axes, len(x.shape))], epsilon)
        own = _affine(dims, affine and "scale", affine and bias and "shift")
        return applied(m, layer, x, dims, dims, own)

    return function


def group_norm(
    m: Scope, x: Value, *, groups: int, affine: bool = True, axis: int | None = None,
    axes: Any = None, epsilon: float = 1e-5, format: Any = None,
) -> Value:  # fmt: skip
    """Return ``x`` normalised over groups of channels; with ``affine``, with weight and bias."""
    at = channel_position(x, m.format) if axis is None else position(axis, len(x.shape))
    check_groups(x, groups, x.shape[at])
    rank = len(x.shape)
    whole = [k for k in range(rank) if k not in positions(axes, rank)]
    if axes is None:
        whole = [3 if m.format == "CHWN" and rank == 4 else 0]
    kept = [k for k in whole if k != at]  # each element there is normalised by itself
    order = [*kept, at, *[k for k in range(rank) if k != at and k not in kept]]
    lengths = [x.shape[k] for k in order]
    merged = [math.prod(lengths[: len(kept)]), *lengths[len(kept) :]]
    dims = ["N", "C", *[f"d{k}" for k in order[len(kept) + 1 :]]]
    own = _affine(["C"], affine and "scale", affine and "shift")
    layer = layers.GroupNorm(groups, "C", epsilon)
    y = applied(m, layer, reshape(transpose(x, order), merged), dims, dims, own)
    return transpose(reshape(y, lengths), [order.index(k) for k in range(rank)])


def embedding(m: Scope, x: Value, *, vocabulary: int, size: int, init: Any = None) -> Value:
    """Return rows of a table (vocabulary, size) of weights at the integers ``x``."""
    dims = dims_of(x)
    layer = layers.LookupTable(
        geon.Axis("vocabulary", vocabulary), geon.Axis("size", size), initial(m, init)
    )
    return applied(m, layer, x, dims, [*dims, "size"], {"w": ("weight", ["vocabulary", "size"])})


def dropout(m: Scope, x: Value, *, p: float = 0.5, entirety: bool = False) -> Value:
    """Return ``x``; in training with elements 0 with probability ``p``, and the others scaled."""
    if not m.build.training:
        return x
    if p == 1:  # of which neon has no layer
        (y, _) = m.exec("dropout", x, p=p, entirety=entirety)
        return y  # type: ignore[return-value]  # a float
    dims = dims_of(x)
    layer = layers.Dropout(p, m.build.random, [] if entirety else None)
    return applied(m, layer, x, dims, dims)


LAYERS: dict[str, Callable[..., Value]] = {
    "dense": dense, "convolution": convolution, "convolution_transpose": convolution_transpose,
    "max_pool": pooling("max"), "average_pool": pooling("average"), "batch_norm": batch_norm,
    "layer_norm": normalising(layers.LayerNorm, 1e-5),
    "rmsnorm": normalising(layers.RMSNorm, 1e-6), "group_norm": group_norm,
    "embedding": embedding, "dropout": dropout,
}  # fmt: skip
"""The functions of models by name."""
