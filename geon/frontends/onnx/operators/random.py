"""Random tensors: each node draws from a stream whose seed is its own, or that of its name."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import geon

from ....errors import AxisError
from ....op_graph.values.dtypes import FLOAT32, DType
from ...positional.elementwise import elementwise
from ...positional.functions import drawn
from ...positional.programs import cast
from ...positional.reductions import reduce
from ...positional.reshaping import unsqueeze
from ...positional.values import Value, array, as_array
from ..table import NodeInfo, row


def stream_of(node: NodeInfo, seed: float | None) -> geon.Random:
    """Return the stream of a node; without a seed that of the name of its output."""
    if seed is None:
        return geon.Random(zlib.crc32(node.outputs[0].encode()))
    return geon.Random(int(np.float32(seed).view(np.uint32)))


def draw(method: str, *names: str) -> Callable[..., Value]:
    """Return the builder of a draw by a method of ``geon.Random`` with parameters by name."""

    def build(
        *,
        node: NodeInfo,
        shape: Sequence[int],
        dtype: DType,
        seed: float | None = None,
        **p: float,
    ) -> Value:
        f, given = getattr(stream_of(node, seed), method), [p[name] for name in names]
        return drawn(shape, dtype, lambda axes, wide: f(axes, *given, wide))

    return build


def like(f: Callable[..., Value]) -> Callable[..., Value]:
    """Return the builder of a draw in the shape, and by default the dtype, of a tensor."""

    def build(x: Value, /, *, node: NodeInfo, dtype: DType | None = None, **options: Any) -> Value:
        made = f(node=node, shape=x.shape, dtype=FLOAT32, **options)
        return cast(made, dtype or x.dtype)

    return build


def bernoulli(
    p: Value, /, *, node: NodeInfo, dtype: DType | None = None, seed: float | None = None
) -> Value:
    """Return 1 with the probability ``p``, else 0."""
    given, stream = as_array(p), stream_of(node, seed)
    ones = stream.bernoulli(given.tensor.axes, geon.cast(given.tensor, "float32"), "bool")
    return cast(array(ones, given.dims), dtype or p.dtype)


def multinomial(
    x: Value, /, *, node: NodeInfo, dtype: DType, sample_size: int = 1, seed: float | None = None
) -> Value:
    """Return classes drawn with unnormalised log-probabilities (N, class), by Gumbel noise."""
    if len(x.shape) != 2:
        raise AxisError(f"a multinomial draw of {x}: it needs the dimensions example and class")
    stream = stream_of(node, seed)
    shape = [x.shape[0], sample_size, x.shape[1]]
    noise = drawn(shape, FLOAT32, lambda axes, wide: stream.uniform(axes, 2.0**-25))
    scores = elementwise(
        lambda u, t: t - geon.log(-geon.log(u)), noise, unsqueeze(cast(x, "float32"), [1])
    )
    return cast(reduce(geon.argmax, scores, [2], keep=False), dtype)


UNIFORM, NORMAL = draw("uniform", "low", "high"), draw("normal", "mean", "scale")

ROWS = [
    row("RandomUniform", UNIFORM),
    row("RandomNormal", NORMAL),
    row("RandomUniformLike", like(UNIFORM)),
    row("RandomNormalLike", like(NORMAL)),
    row("Bernoulli", bernoulli),
    row("Multinomial", multinomial),
]
