"""Logical, bitwise, shift and integer primitives, and bits read as another dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import DTypeError
from ..building.constants import as_tensor
from ..building.elementwise_build import elementwise
from ..building.weak import exact
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..core.source_info import user_call
from ..op_graph import Tensor, make
from ..values.attribute_types import DTypeName
from ..values.dtypes import BOOL, DTYPES, FLOAT8S, as_dtype, name_of, named_dtype

if TYPE_CHECKING:
    from ..building.typing import DTypeLike, OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


def _shift(shift: Any) -> Any:
    # A shift by the width or more, or by a negative count, is undefined in C. Every target gives 0
    # (-1 for the right shift of a negative number).
    def shifted(x: Array, count: Array) -> Array:
        bits = 8 * x.dtype.itemsize
        inside = (count >= 0) & (count < bits)
        outside = np.where((x < 0) & (shift is np.right_shift), -1, 0).astype(x.dtype)
        return np.where(inside, shift(x, np.where(inside, count, 0)), outside)

    return shifted


logical_and = elementwise("logical_and", "x and y.", np.logical_and, (None, None), arity=2,
                          rule="logical")  # fmt: skip
logical_or = elementwise("logical_or", "x or y.", np.logical_or, (None, None), arity=2,
                         rule="logical")  # fmt: skip
logical_xor = elementwise("logical_xor", "True where x or y is true, not both.", np.logical_xor,
                          (None, None), arity=2, rule="logical")  # fmt: skip
logical_not = elementwise("logical_not", "not x.", np.logical_not, (None,), rule="logical")
bitwise_and = elementwise("bitwise_and", "x & y of integers or bool.", np.bitwise_and, (None, None),
                          arity=2, rule="bits")  # fmt: skip
bitwise_or = elementwise("bitwise_or", "x | y of integers or bool.", np.bitwise_or, (None, None),
                         arity=2, rule="bits")  # fmt: skip
bitwise_xor = elementwise("bitwise_xor", "x ^ y of integers or bool.", np.bitwise_xor, (None, None),
                          arity=2, rule="bits")  # fmt: skip
bitwise_not = elementwise("bitwise_not", "~x of integers or bool.", np.invert, (None,),
                          rule="bits")  # fmt: skip
left_shift = elementwise("left_shift", "x shifted up by y bits; 0 for y outside the width.",
                         _shift(np.left_shift), (None, None), arity=2, rule="integer",
                         domain=((0, 9), (0, 5)), ufunc="left_shift")  # fmt: skip
right_shift = elementwise("right_shift", "x shifted down by y bits, keeping the sign.",
                          _shift(np.right_shift), (None, None), arity=2, rule="integer",
                          domain=((0, 99), (0, 5)), ufunc="right_shift")  # fmt: skip
gcd = elementwise(
    "gcd",
    "The greatest common divisor of the integers |x| and |y|; that with 0 is the other one.",
    np.gcd,
    (None, None),
    arity=2,
    rule="integer",
    domain=((1, 90), (1, 90)),
    cost="expensive",
)


class BitcastAttributes(NamedTuple):
    """The dtype of the result, as wide as that of the argument."""

    dtype: DTypeName


def _infer(args: tuple[Any, ...], attrs: BitcastAttributes) -> Inferred:
    source, target = args[0].dtype, named_dtype(attrs.dtype)
    require(source.itemsize == target.itemsize, "bits of {} as {}", source, target)
    require(BOOL not in (source, target), "bits of {} as {}", source, target)
    return args[0].axes, target, ()


BITCAST = Primitive(
    "bitcast",
    "elementwise",
    "The bits of x read as another dtype of the same width.",
    # The interpreter computes halves as float32.
    reference=lambda op, x: np.asarray(x).astype(op.args[0].dtype, copy=False).view(op.dtype),
    partials=(None,),
    attributes=BitcastAttributes,
    arity=1,
    infer=_infer,
    takes_float8=True,
)


def make_bitcast(x: Tensor, dtype: str) -> Tensor:
    """Return the bits of a strong tensor as a dtype of its width."""
    if name_of(x.dtype) == dtype:
        return x
    return make(BITCAST, (x,), (dtype,), weak=False)


@public
def bitcast(x: TensorLike, dtype: DTypeLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the bits of ``x`` read as another ``dtype`` of the same width.

    Axes are those of ``x``; Python numbers count as float64 or int64. The derivative is zero.
    Raises ``DTypeError`` for bool and for a dtype of another width.
    """
    x, target = exact(as_tensor(x)), as_dtype(dtype)
    if x.dtype.itemsize != target.itemsize or BOOL in (x.dtype, target):
        fitting = [
            name
            for name in (*DTYPES, *FLOAT8S)
            if name != "bool" and named_dtype(name).itemsize == x.dtype.itemsize
        ]
        cure = "geon.cast it first" if x.dtype is BOOL else f"give one of {', '.join(fitting)}"
        raise DTypeError(
            f"{user_call('bitcast')}: the bits of {x} {x.dtype.name} (made at {x.line_info}) "
            f"cannot be read as {target.name}; {cure}"
        )
    return make_bitcast(x, target.name)
