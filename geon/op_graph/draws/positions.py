"""Draws of integers and of positions along an axis."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from ...errors import ArgumentError, AxisError, DTypeError
from ..axes.axes import Axes, Axis, as_axes
from ..building.constants import as_tensor, constant
from ..building.resolve_axes import axis_of, own_axis
from ..core.argument_hints import public
from ..core.source_info import user_call
from ..op_graph import Tensor
from ..random.parameters import AT_LEAST_ZERO, known_values, parameter, refuse
from ..random.streams import BitStream
from ..regions.while_loop import while_loop
from ..rows.elementwise import cast, exp, less, mod, where
from ..rows.indexing import gather
from ..rows.logic import bitwise_and, right_shift
from ..rows.movement import broadcast
from ..rows.reductions import any as any_of
from ..rows.reductions import argmin
from ..rows.reductions import max as largest
from ..rows.slicing import take
from ..rows.sort_and_cumulative import argsort
from ..values.dtypes import FLOAT32, INT64, UINT32, UINT64, DType, as_dtype, kind
from .continuous import full, standard_exponential

if TYPE_CHECKING:
    from ..building.typing import AxisLike, DTypeLike, Named, NewAxes, TensorLike

WORD, WIDE_WORD = 1 << 32, 1 << 64


class PositionDraws(BitStream):
    """Draws of integers with equal or given probabilities."""

    __slots__ = ()

    @public
    def integers(
        self,
        axes: NewAxes = (),
        low: TensorLike = 0,
        high: TensorLike = 2,
        dtype: DTypeLike = "int64",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw integers from ``low`` up to but not including ``high``, over ``axes``.

        All are exactly equally likely: words that would make some likelier are drawn again
        (Lemire, 2019; up to 2^32 numbers of which take a product, more a remainder). The bounds are
        integers, or integer tensors over some of ``axes``; where a tensor ``high`` is not above
        ``low``, the result is ``low``. Equal on every transformer. Raises ``ArgumentError`` for
        constant bounds between which there is no integer, and ``DTypeError`` for bounds that
        are no integers or that ``dtype`` cannot hold.
        """
        shape, kept = as_axes(axes), as_dtype(dtype)
        if kind(kept) != "i":
            raise DTypeError(f"integers draws integers, not {kept.name}; geon.cast them")
        if not isinstance(low, Tensor) and not isinstance(high, Tensor):
            first, end = _whole("low", low), _whole("high", high)
            _refuse_range(first, end, kept)
            result = _below(self, shape, end - first)
            shift: Any = constant(np.uint64(first % WIDE_WORD))
        else:
            bounds = [parameter("integers", name, value, shape, None) for name, value in
                      (("low", low), ("high", high))]  # fmt: skip
            lowest, highest = known_values(low), known_values(high)
            if lowest is not None and highest is not None and not (lowest < highest).all():
                refuse("integers", f"low = {low} and high = {high}", "a high above low")
            shift, stop = (full(_integer(value), shape, UINT64) for value in bounds)
            empty = less(full(bounds[0], shape, INT64), full(bounds[1], shape, INT64))
            result = _remainder(self, shape, where(empty, stop - shift, cast(1, UINT64)))
        return cast(result + cast(shift, UINT64), kept)

    @public
    def permutation(
        self, axes: NewAxes, axis: AxisLike | None = None, **notes: Unpack[Named]
    ) -> Tensor:
        """Draw permutations of the positions along ``axis``: int64 numbers over ``axes``.

        ``axis`` is one of ``axes``, and may be left out if it is the only one; for each index of
        the others there is a permutation of its own. It is the order of random 64-bit words, which
        are equal with a probability of n^2 / 2^65 for n positions: then the smaller position comes
        first. Equal on every transformer.
        """
        words = self._bits(as_axes(axes), UINT64)
        return argsort(words, axis_of(words, axis, "permutation"))

    @public
    def shuffle(
        self,
        x: TensorLike,
        axis: AxisLike | None = None,
        independent: NewAxes = (),
        **notes: Unpack[Named],
    ) -> Tensor:
        """Return ``x`` in a random order along ``axis``, the same for all other axes.

        For each index of the axes ``independent`` the order is another. The derivative goes to the
        elements that were moved. Equal on every transformer.
        """
        x = as_tensor(x)
        along = axis_of(x, axis, "shuffle")
        others = [own_axis(x, each, "shuffle") for each in as_axes(independent)]
        return gather(x, self.permutation([*others, along], along), along)

    @public
    def categorical(
        self,
        axes: NewAxes = (),
        logits: TensorLike | None = None,
        p: TensorLike | None = None,
        dtype: DTypeLike = "int64",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw positions along the axis of ``logits`` or ``p`` that ``axes`` lack, over ``axes``.

        Give one of both: probabilities are ``softmax(logits)``, or ``p`` divided by its sum. The
        position of the smallest of exponential values divided by the probabilities is drawn, which
        resolves probabilities down to 1e-9 and is one pass over the classes. A ``p`` of 0 or a
        logit of -inf is never drawn unless all are. From ``p`` in float32 or float64 the draw is
        equal on every transformer. Raises ``ArgumentError`` for both or neither of ``logits`` and
        ``p`` and for a constant ``p`` below 0, and ``AxisError`` unless just one axis is lacking.
        """
        shape = as_axes(axes)
        keys, along = self._keys("categorical", shape, logits, p)
        return cast(argmin(keys, along), as_dtype(dtype))

    @public
    def choice(
        self,
        x: TensorLike,
        axes: NewAxes,
        axis: AxisLike | None = None,
        p: TensorLike | None = None,
        replace: bool = True,
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw elements of ``x`` along ``axis``; the new ones of ``axes`` take its place.

        All positions are equally likely, or as ``p`` over ``axis`` says, which need not sum to 1.
        For axes that ``x`` has too, draws differ along them. With ``replace=False`` no
        position is drawn twice along the last of ``axes``, whose length is an integer; positions
        are then ordered as they would be drawn one by one (Efraimidis and Spirakis, 2006). Raises
        ``ArgumentError`` for a constant ``p`` below 0, and ``AxisError`` for more draws without
        replacement than positions.
        """
        x, shape = as_tensor(x), as_axes(axes)
        along = axis_of(x, axis, "choice")
        if replace and p is None:
            length = along.expression
            count = length if isinstance(length, int) else as_tensor(length)
            return gather(x, self.integers(shape, 0, count), along)
        if p is None:
            p = broadcast(as_tensor(1.0), Axes(along))
        if replace:
            return gather(x, self.categorical(shape, p=_over(p, along)), along)
        sample = _sample_axis(shape, along)
        others = Axes(*(each for each in shape if each is not sample))
        keys, _ = self._keys("choice", others, None, _over(p, along))
        first = take(argsort(keys, along), {along.name: slice(0, sample.expression)})
        return gather(x, first.rename({along.name: sample}), along)

    def _keys(self, what: str, shape: Axes, logits: Any, p: Any) -> tuple[Tensor, Axis]:
        """Return exponential values divided by probabilities over ``shape`` and a further axis."""
        if (logits is None) == (p is None):
            both = "neither logits nor p" if p is None else "both logits and p"
            raise ArgumentError(f"{user_call(what)}: {both} is given; give one of them")
        name = "logits" if p is None else "p"
        given = as_tensor(logits if p is None else p)
        own = [axis for axis in given.axes if axis.name not in shape]
        if len(own) != 1:
            names = ", ".join(map(str, own)) or "none"
            raise AxisError(
                f"{user_call(what)}: of the axes of {name} = {given} (made at {given.line_info}) "
                f"the result over {shape} lacks {names}; it lacks just the one along which "
                "positions are drawn: give the others in axes"
            )
        every = Axes(*shape, own[0])
        wide = given.dtype if given.dtype.name == "float64" else FLOAT32
        race = standard_exponential(self, every, wide)
        weights = parameter(what, name, given, every, wide, None if p is None else AT_LEAST_ZERO)
        if p is not None:
            return race / weights, own[0]
        return race * exp(largest(weights, own[0]) - weights), own[0]


def _over(p: Any, axis: Axis) -> Tensor:
    """Return probabilities of positions along ``axis`` as a tensor."""
    result = as_tensor(p, near=broadcast(as_tensor(1.0), Axes(axis)))
    own_axis(result, axis, "choice")
    return result


def _sample_axis(shape: Axes, along: Axis) -> Axis:
    """Return the last of ``shape``; raise ``AxisError`` if it has more places than ``along``."""
    sample = shape[-1] if len(shape) else None
    length = None if sample is None else sample.expression
    if sample is None or not isinstance(length, int):
        raise AxisError(
            f"{user_call('choice')}: the draws without replacement go along the last of axes, "
            f"{sample}, whose length must be an integer; give geon.Axis(name, length)"
        )
    if isinstance(along.expression, int) and length > along.expression:
        raise AxisError(
            f"{user_call('choice')}: {length} draws along {sample} without replacement from the "
            f"{along.expression} positions of {along}; draw fewer, or with replace=True"
        )
    return sample


def _whole(name: str, value: Any) -> int:
    """Return a bound as an integer; raise ``DTypeError`` if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise DTypeError(
            f"{user_call('integers')}: {name} = {value!r} is no integer; give an integer or an "
            "integer tensor"
        ) from None


def _integer(value: Any) -> Any:
    """Return a bound that is an integer or an integer tensor; else raise ``DTypeError``."""
    if isinstance(value, Tensor) and kind(value.dtype) != "i":
        raise DTypeError(
            f"{user_call('integers')}: the bound {value} (made at {value.line_info}) is "
            f"{value.dtype.name}; geon.cast it to an integer dtype"
        )
    return value


def _refuse_range(first: int, end: int, dtype: DType) -> None:
    """Raise an error for an empty range, and for one that ``dtype`` cannot hold."""
    if end <= first:
        refuse("integers", f"low = {first} and high = {end}", "a high above low")
    limits = np.iinfo(dtype)
    if first < limits.min or end - 1 > limits.max:
        raise DTypeError(
            f"{user_call('integers')}: {dtype.name} holds {limits.min} to {limits.max}, not all of "
            f"{first} to {end - 1}; give a wider dtype="
        )


def _below(stream: BitStream, axes: Axes, count: int) -> Tensor:
    """Return uint64 integers from 0 to ``count`` - 1, all equally likely."""
    if count > WORD:
        return _remainder(stream, axes, count)
    unfair = WORD % count

    def product(_: Any = None) -> Tensor:
        return cast(stream._bits(axes, UINT32), UINT64) * count

    def is_unfair(words: Tensor) -> Tensor:
        return less(bitwise_and(words, WORD - 1), unfair)

    words = product()
    if unfair:
        words = _again(is_unfair, product, words)
    return right_shift(words, 32)


def _remainder(stream: BitStream, axes: Axes, count: int | Tensor) -> Tensor:
    """Return uint64 integers below ``count`` as remainders of 64-bit words."""
    words = stream._bits(axes, UINT64)
    if isinstance(count, int):
        unfair: Any = constant(np.uint64(WIDE_WORD % count))
        if WIDE_WORD % count == 0:
            return bitwise_and(words, constant(np.uint64(count - 1)))
    else:
        unfair = mod(0 - count, count)
    divisor = constant(np.uint64(count)) if isinstance(count, int) else count
    words = _again(lambda drawn: less(drawn, unfair), lambda _: stream._bits(axes, UINT64), words)
    return mod(words, divisor)


def _again(refused: Any, draw: Any, first: Tensor) -> Tensor:
    """Return ``first`` with elements that are refused drawn again until none is."""
    result: Tensor = while_loop(
        lambda kept: any_of(refused(kept)),
        lambda kept: where(refused(kept), draw(kept), kept),
        first,
    )
    return result
