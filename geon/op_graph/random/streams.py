"""Random streams: draws whose bits depend only on the seed and on counters.

Each draw gets a number when it is built, and reads the stream's call counter, which every
computation that draws advances by one. So two calls differ, all ops of one call see the same draw,
and a restored checkpoint continues the stream.
"""

from __future__ import annotations

import operator
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Unpack

import numpy as np

from ...errors import DTypeError, SizeError, SymbolicError
from ..axes.axes import Axes, as_axes
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import current
from ..names import RANDOM_CALLS, checked_name
from ..op_graph import NO_AXES, Guard, Leaf, Op, Tensor, make
from ..rows.elementwise import cast, less
from ..rows.leaves import variable
from ..rows.logic import bitwise_and, left_shift
from ..special.formula_ops import GEON_OPS
from ..syntax.foreign_names import STREAMS, missing_member
from ..values.attribute_types import Count, DTypeName, SomeAxes
from ..values.dtypes import UINT32, UINT64, DType, as_dtype, is_number, named_dtype
from .normal import normal_from_bits, uniform_from_bits
from .parameters import DEVIATION, PROBABILITY, float_dtype, known_values, parameter, refuse
from .philox import random_bits

if TYPE_CHECKING:
    from ..building.typing import DTypeLike, Named, NewAxes, TensorLike

MAX_DRAW_WORDS = 1 << 34  # maximum 32-bit words of a draw: 2^32 counters of four words
# Masks of the highest bits of 32 that a half format represents exactly.
HALF_MASKS = {"float16": 0xFFE00000, "bfloat16": 0xFF000000}


class RandomBitsAttributes(NamedTuple):
    """The seed of the stream, the number of the draw in it, and the result's axes and dtype."""

    seed: Count
    draw: Count
    axes: SomeAxes
    dtype: DTypeName


def _reference(op: Op, call: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    a: RandomBitsAttributes = op.attrs
    out = np.empty(a.axes.lengths, a.dtype)
    random_bits(out, a.seed, a.draw, int(call))
    return out


def _infer(args: tuple[Any, ...], attrs: RandomBitsAttributes) -> Inferred:
    scalar = args[0].axes is NO_AXES and args[0].dtype is UINT64
    require(scalar, "a counter that is no uint64 scalar")
    is_valid = attrs.seed < 1 << 64 and attrs.dtype in ("uint32", "uint64")
    require(is_valid, "a seed or dtype out of range")
    axes, dtype = attrs.axes, named_dtype(attrs.dtype)
    words = axes.size * (dtype.itemsize // 4)
    count = f"{words:,}" if isinstance(words, int) else str(words)
    meaning = (
        f"one draw has at most 2**34 words of 32 bits, and {dtype.name} over {axes} takes {count}; "
        "draw parts of it and join them with geon.concat"
    )
    if isinstance(words, int) and words > MAX_DRAW_WORDS:
        raise SizeError(meaning)
    return (
        axes,
        dtype,
        () if isinstance(words, int) else (Guard("<=", words, MAX_DRAW_WORDS, meaning),),
    )


RANDOM_BITS = Primitive(
    "random_bits",
    "leaf",
    "Philox4x32-10 bits for a seed, a draw, a call and the row-major position of the element.",
    reference=_reference,
    attributes=RandomBitsAttributes,
    arity=1,
    infer=_infer,
    cost="expensive",
)


class BitStream:
    """A stream of random words, and the uniform, normal and Bernoulli values made of them.

    It is the base of ``geon.Random``, which has the other draws and whose documentation holds for
    both.
    """

    __slots__ = ("_counter", "_drawn", "_lock", "name", "seed")

    @public
    def __init__(self, seed: int, name: str | None = None) -> None:
        try:
            self.seed = operator.index(seed)
        except TypeError:
            raise DTypeError(
                f"the seed of a stream is an integer, not {seed!r}; give one from 0 to 2**64 - 1"
            ) from None
        if not 0 <= self.seed < 1 << 64:
            raise DTypeError(
                f"the seed {seed} is not from 0 to 2**64 - 1; give {self.seed % (1 << 64)}, "
                "its lowest 64 bits, or another"
            )
        if name is not None:
            name = checked_name(name)
        self.name = name
        self._drawn = 0
        self._counter: Leaf | None = None
        self._lock = threading.RLock()

    if not TYPE_CHECKING:  # type checkers know the members

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_member(self, name, STREAMS)

    def __repr__(self) -> str:
        return f"Random({self.seed}, name={self.name!r})"

    def __copy__(self) -> NoReturn:
        self._refuse("copied")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse("copied")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self._refuse("pickled")

    def _refuse(self, what: str) -> NoReturn:
        raise SymbolicError(
            f"{self!r} cannot be {what}: two streams of one seed would draw the same numbers; use "
            "the same one again, or make one of another seed"
        )

    @property
    def counter(self) -> Leaf:
        """The number of calls that have drawn: a uint64 scalar variable, not trainable."""
        with self._lock:
            if self._counter is None:
                self._counter = variable(
                    dtype=UINT64,
                    initial_value=0,
                    trainable=False,
                    name=None if self.name is None else f"{self.name}.calls",
                    tags=RANDOM_CALLS,
                )
                self._counter.notes().called = RANDOM_CALLS
            return self._counter

    @public
    def bits(
        self, axes: NewAxes = (), dtype: DTypeLike = "uint32", **notes: Unpack[Named]
    ) -> Tensor:
        """Draw integers of ``dtype`` (uint32 or uint64) over ``axes``, all equally likely."""
        return self._bits(as_axes(axes), as_dtype(dtype))

    @public
    def uniform(
        self,
        axes: NewAxes = (),
        low: TensorLike = 0.0,
        high: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw numbers over ``axes``, uniformly distributed from ``low`` to ``high``.

        From 0 to 1 they are multiples of 2^-24 (float32), 2^-53 (float64), 2^-11 (float16) or 2^-8
        (bfloat16) below 1; with other bounds, rounding may reach ``high``. The bounds are numbers
        or tensors over some of ``axes``. Raises ``DTypeError`` for a dtype that is no float, and
        ``ArgumentError`` for a ``low`` above ``high``, if these are numbers or constants.
        """
        shape, dtype = as_axes(axes), float_dtype(dtype, "uniform")
        first, last = (parameter("uniform", "", bound, shape, dtype) for bound in (low, high))
        result = self._unit(shape, dtype)
        lowest, highest = known_values(first), known_values(last)
        if lowest is not None and highest is not None and not np.all(lowest <= highest):
            refuse("uniform", f"low = {low} and high = {high}", "a low that is at most high")
        if not (is_number(first) and is_number(last) and (first, last) == (0, 1)):
            result = result * (last - first) + first
        return result

    @public
    def normal(
        self,
        axes: NewAxes = (),
        mean: TensorLike = 0.0,
        std: TensorLike = 1.0,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw normally distributed numbers over ``axes``, with this mean and standard deviation.

        ``mean`` and ``std`` are numbers or tensors over some of ``axes``; for derivatives with
        respect to them the draw is a constant. Standard values reach 5.3 on either side in float32
        (and the half formats), 8.2 in float64. Raises ``DTypeError`` for a dtype that is no float,
        and ``ArgumentError`` for a ``std`` below 0, if it is a number or a constant.
        """
        shape, dtype = as_axes(axes), float_dtype(dtype, "normal")
        middle = parameter("normal", "mean", mean, shape, dtype)
        width = parameter("normal", "std", std, shape, dtype, DEVIATION)
        wide, bits = float_format(dtype)
        result = cast(normal_from_bits(self._bits(shape, bits), wide, GEON_OPS), dtype)
        if not (is_number(width) and width == 1):
            result = result * width
        if not (is_number(middle) and middle == 0):
            result = result + middle
        return result

    @public
    def bernoulli(
        self,
        axes: NewAxes = (),
        p: TensorLike = 0.5,
        dtype: DTypeLike = "float32",
        **notes: Unpack[Named],
    ) -> Tensor:
        """Draw 1 with probability ``p``, else 0, over ``axes``; truth values with ``dtype="bool"``.

        ``p`` is a number or a tensor over some of ``axes``, in steps of 2^-24: 0 gives no ones, 1
        only ones. Raises ``ArgumentError`` for a ``p`` outside 0 to 1, if it is a number or a
        constant.
        """
        shape, dtype = as_axes(axes), as_dtype(dtype)
        chance = parameter("bernoulli", "p", p, shape, None, PROBABILITY)
        hit = less.apply(self._unit(shape, as_dtype("float32")), chance)
        return cast(hit, dtype)

    def _unit(self, axes: Axes, dtype: DType) -> Tensor:
        """Return values in [0, 1)."""
        wide, width = float_format(dtype)
        drawn = self._bits(axes, width)
        if dtype.name in HALF_MASKS:
            # Drop bits that the format cannot hold: rounding could otherwise give 1.
            drawn = bitwise_and(drawn, HALF_MASKS[dtype.name])
        return cast(uniform_from_bits(drawn, wide, GEON_OPS), dtype)

    def _bits(self, axes: Axes, dtype: DType) -> Tensor:
        if dtype not in (UINT32, UINT64):
            raise DTypeError(f"random bits are uint32 or uint64, not {dtype.name}; geon.cast them")
        with self._lock:
            attrs = self.seed, self._drawn, axes, dtype.name
            call: Tensor = self.counter
            if current.step is not None:
                call = call + left_shift(cast(current.step, UINT64), 32)
            result = make(RANDOM_BITS, (call,), attrs)
            self._drawn += 1
        return result


def float_format(dtype: DType) -> tuple[str, DType]:
    """Return the float dtype in which a draw is computed, and the dtype of its bits."""
    return ("float64", UINT64) if dtype.name == "float64" else ("float32", UINT32)
