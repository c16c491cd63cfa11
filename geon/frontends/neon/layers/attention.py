"""``MultiHeadAttention``: self-attention and cross-attention in several heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ....errors import ArgumentError, AxisError, DTypeError
from ....op_graph.axes.axes import Axes, Axis, as_axes, new_axis
from ....op_graph.building.constants import as_tensor, constant
from ....op_graph.building.resolve_axes import axis_of
from ....op_graph.core.source_info import user_call
from ....op_graph.functions.composites import outer, softmax
from ....op_graph.op_graph import Tensor
from ....op_graph.rows import reductions
from ....op_graph.rows.concatenation import concat
from ....op_graph.rows.contraction import dot
from ....op_graph.rows.elementwise import cast, greater_equal, multiply, where
from ....op_graph.rows.leaves import iota
from ....op_graph.rows.logic import logical_and, logical_not, logical_or
from ....op_graph.rows.movement import rename, reorder
from ....op_graph.rows.trigonometry import cos, sin
from ..axis import T, feature_axes
from ..checks import above_zero, is_integer
from .axes import made_apart, resolve_over
from .cache import Cache
from .layer import Layer, Training, parameter_dtype

if TYPE_CHECKING:
    from ....op_graph.building.typing import AxesLike, AxisLike, NewAxes, TensorLike
    from ..initialisers import First


class MultiHeadAttention(Layer):
    """Multi-head attention: values weighted by the softmax of products of queries and keys.

    ``heads`` is the axis of the heads, ``keys`` that of queries, keys and values in each, and the
    result is over ``axes``. With ``groups``, there are that many heads of keys and values, each
    shared by equally many heads of queries. With ``causal``, a time attends to itself and earlier
    times. With ``rotary``, such as 10000, queries and keys are rotated by angles that grow with the
    time (rotary embeddings): elements i and i + keys / 2 by t / rotary ** (2 i / keys). The
    attention weights pass through the layer ``dropout``, such as ``Dropout(0.1, random)``.
    Variables are ``query``, ``key`` and ``value`` over the summed axes, the heads and ``keys``;
    ``out`` over those two and ``axes``; and with ``bias`` one for each, such as ``query_bias``. The
    layer sums over ``over``, or all axes of ``x`` but N and T, and the time is ``along``, T by
    default. It attends to ``x`` itself, or to a second tensor of the call, another sequence along
    ``seen``.

    A. Vaswani and others, "Attention is all you need", NIPS 2017; J. Su and others, "RoFormer",
    2021; J. Ainslie and others, "GQA", EMNLP 2023.
    """

    remembers = True

    def __init__(
        self,
        heads: Axis,
        keys: Axis,
        axes: NewAxes,
        init: First,
        bias: First | None = None,
        *,
        groups: int | None = None,
        causal: bool = False,
        rotary: float | None = None,
        dropout: Layer | None = None,
        over: AxesLike | None = None,
        along: AxisLike = T,
        seen: AxisLike | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self.heads, self.keys = of_known_length(heads, "heads"), of_known_length(keys, "keys")
        self.axes, self.init, self.bias = as_axes(axes), init, bias
        self.shared, self.queries = _group_heads(self.heads, groups)
        if rotary is not None:
            above_zero("MultiHeadAttention", "rotary", rotary)
        if dropout is not None and not isinstance(dropout, Layer):
            raise ArgumentError(
                f"MultiHeadAttention: dropout={dropout!r} is no layer; give one, such as "
                "neon.Dropout(0.1, random)"
            )
        if rotary is not None and length_of(self.keys) % 2:
            raise ArgumentError(
                f"MultiHeadAttention: rotary turns pairs of elements, and keys is {self.keys}; "
                "give an even length"
            )
        self.causal, self.rotary, self.dropout = causal, rotary, dropout
        self.over, self.along, self.seen = over, along, along if seen is None else seen

    def forward(
        self,
        x: Tensor,
        memory: TensorLike | None = None,
        training: Training | None = None,
        mask: TensorLike | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """The weighted values: x's remaining axes, then the layer's.

        ``memory`` is the sequence to attend to instead of ``x``, along the layer's ``seen``; it may
        have other features. The layer must be neither ``causal`` nor ``rotary`` then. ``mask`` has
        truth values over axes of the batch, the heads, the time, and the attended time, which is
        named T' if ``x`` is along T too; it is True where a time is attended to. A time that
        attends to none gets values of 0. With ``cache``, the times of earlier calls are attended to
        as well, and the attended axis is the cache's ``places``; the layer must be ``causal`` then.
        A call with no time to attend to raises ``GuardError``, unless there is a cache.
        """
        memory = None if memory is None else as_tensor(memory)
        along = axis_of(x, self.along, repr(self))
        kept = x.axes.without(self.features(x, along))
        q = self.asked(x, along, "query", Axes(self.shared, self.queries, self.keys))
        if memory is None:
            source, past = x, along
        else:
            self.refuse_order(cache)
            source, past = memory, axis_of(memory, self.seen, repr(self))
        k = self.asked(source, past, "key", Axes(self.shared, self.keys))
        v = self.asked(source, past, "value", Axes(self.shared, self.keys))
        times = iota(along) if cache is None else self.entered(cache, x, along)
        if self.rotary is not None:
            q, k = (rotate_pairs(each, times, self.keys, self.rotary) for each in (q, k))
        if cache is None:
            seen = (
                past if past not in q.axes else _primed_axis(past, q.axes.names + self.axes.names)
            )
            k, v = (rename(each, {past.name: seen.name}) for each in (k, v))
        else:
            seen = cache.places
            k = cache.extended(k, along, times, "key")
            v = cache.filled(cache.extended(v, along, times, "value"))
        scores = dot(q * length_of(self.keys) ** -0.5, k, over=[self.keys])
        allowed = outer(greater_equal, times, iota(seen)) if self.causal else None
        given = None if mask is None else as_tensor(mask)
        y = self.mixed(scores, v, seen, allowed, given, training)
        y, inner = made_apart(y, Axes(self.shared, self.queries, self.keys), self.axes, repr(self))
        y = self.projected(y, "out", inner, self.axes)
        return reorder(y, Axes(kept, self.axes))

    def features(self, x: Tensor, along: Axis) -> Axes:
        """Return the summed axes of a sequence along an axis."""
        return resolve_over(x, self.over, feature_axes(x.axes).without([along]), repr(self))

    def asked(self, x: Tensor, along: Axis, place: str, outputs: Axes) -> Tensor:
        """Return the queries, keys or values of a sequence."""
        x, inputs = made_apart(x, self.features(x, along), outputs, repr(self))
        return self.projected(x, place, inputs, outputs)

    def refuse_order(self, cache: Cache | None) -> None:
        """Raise ``ArgumentError`` for options that would compare times of two sequences."""
        if self.causal or self.rotary is not None or cache is not None:
            raise ArgumentError(
                f"{user_call(self)}: sees another sequence, whose times are not those of its own, "
                "and which is there as a whole in each call; give the layer neither causal= nor "
                "rotary=, and the call no cache="
            )

    def projected(self, x: Tensor, place: str, inputs: Axes, outputs: Axes) -> Tensor:
        """Return a product with weights, plus a bias if there is one."""
        w = self.variable(
            place,
            Axes(inputs, outputs),
            self.init,
            inputs=inputs,
            outputs=outputs,
            dtype=parameter_dtype(x),
        )
        y = dot(x, w, over=inputs)
        if self.bias is None:
            return y
        return y + self.variable(
            f"{place}_bias", outputs, self.bias, outputs=outputs, dtype=parameter_dtype(x)
        )

    def entered(self, cache: Cache, x: Tensor, along: Axis) -> Tensor:
        """Return the times of ``x``, which follow those in the cache."""
        if not self.causal:
            raise ArgumentError(
                f"{user_call(self)}: a cache goes on after times that saw nothing later, and here "
                "they see all; give the layer causal=True, or leave cache= out"
            )
        return cache.enter(self, x, along)

    def mixed(
        self,
        scores: Tensor,
        v: Tensor,
        seen: Axis,
        allowed: Tensor | None,
        mask: Tensor | None,
        training: Training | None,
    ) -> Tensor:
        """Return the values weighted by the softmax of the scores that are allowed."""
        if mask is None:
            if allowed is not None:
                scores = where(allowed, scores, -np.inf)
            return dot(self.shares(scores, seen, training), v, over=[seen])
        self.check(mask, scores, seen)
        allowed = mask if allowed is None else outer(logical_and, mask, allowed)
        some = reductions.any(allowed, [seen])
        # otherwise the derivative of such a row is NaN
        safe = logical_or(allowed, logical_not(some))
        shares = self.shares(where(safe, scores, -np.inf), seen, training)
        return where(some, dot(shares, v, over=[seen]), 0)

    def shares(self, scores: Tensor, seen: Axis, training: Training | None) -> Tensor:
        """Return the attention weights."""
        found = softmax(scores, seen)
        return found if self.dropout is None else self.dropout(found, training=training)

    def check(self, mask: Tensor, scores: Tensor, seen: Axis) -> None:
        """Raise ``DTypeError`` or ``AxisError`` for a mask that does not fit the scores."""
        if mask.dtype.name != "bool":
            raise DTypeError(
                f"{user_call(self)}: the mask {mask} (made at {mask.line_info}) is "
                f"{mask.dtype.name}; give truth values, which hold where a time is seen"
            )
        if seen not in mask.axes or len(mask.axes.without(scores.axes)):
            raise AxisError(
                f"{user_call(self)}: the mask {mask} (made at {mask.line_info}) is to be over "
                f"{seen}, the times that are seen, and beside it over axes of the scores "
                f"{scores.axes} alone; geon.rename its time"
            )


def rotate_pairs(x: Tensor, times: Tensor, keys: Axis, base: float) -> Tensor:
    """Return ``x`` with pairs along ``keys`` rotated by angles that grow with the time."""
    half = length_of(keys) // 2
    dtype = "float64" if x.dtype.name == "float64" else "float32"
    rates = constant(float(base) ** -(np.arange(half) / half), [keys.with_length(half)], dtype)
    angle = outer(multiply, cast(times, dtype), rates)
    c, s = cast(cos(angle), x.dtype), cast(sin(angle), x.dtype)
    a, b = x[{keys.name: slice(0, half)}], x[{keys.name: slice(half, None)}]
    return reorder(concat([a * c - b * s, a * s + b * c], keys.name), x.axes)


def of_known_length(axis: Axis, what: str, layer: str = "MultiHeadAttention") -> Axis:
    """Return an axis of known length of at least 1; raise ``ArgumentError`` for another."""
    axis = new_axis(axis, layer)
    if not isinstance(axis.expression, int) or axis.expression < 1:
        raise ArgumentError(
            f"{layer}: {what} is {axis}, whose length is to be a number of at least 1; "
            f"give geon.Axis({axis.name!r}, length)"
        )
    return axis


def length_of(axis: Axis) -> int:
    """Return the integer length of an axis."""
    assert isinstance(axis.expression, int)
    return axis.expression


def _group_heads(heads: Axis, groups: int | None) -> tuple[Axis, Axes]:
    """Return the axis of heads of keys and values, and the axis of queries that share one."""
    if groups is None:
        return heads, Axes()
    if not is_integer(groups) or groups < 1 or length_of(heads) % groups:
        raise ArgumentError(
            f"MultiHeadAttention: {heads} cannot share {groups} heads of keys and values; give "
            "groups= a number that divides that of the heads"
        )
    shared = Axis(f"{heads.name}.group", groups)
    return shared, Axes(Axis(f"{heads.name}.query", length_of(heads) // groups))


def _primed_axis(axis: Axis, others: tuple[str, ...]) -> Axis:
    """Return the axis with primes added until its name is unused."""
    axis = axis.prime
    while axis.name in others:
        axis = axis.prime
    return axis
