"""Logical, bitwise and shift primitives, which have no derivative."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..building.elementwise_build import elementwise

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
