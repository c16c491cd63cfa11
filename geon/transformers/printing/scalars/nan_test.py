"""Tests whether elements are finite, or not NaN, in languages of the C family."""

from __future__ import annotations

from .c_expressions import BIT_MASKS, expression

# Bounds of the bits without the sign, of formats that are kept as bits: of those of a finite
# number, and of those of a number that is not NaN. float8_e4m3fn has no infinity.
BOUNDS = {
    "float16": ("< 0x7c00", "<= 0x7c00"),
    "bfloat16": ("< 0x7f80", "<= 0x7f80"),
    "float8_e4m3fn": ("< 0x7f", "< 0x7f"),
    "float8_e5m2": ("< 0x7c", "<= 0x7c"),
}


def finite(dtype: str, infinite: bool) -> str:
    """Return the condition that ``x`` is finite; with ``infinite``, that it is not NaN."""
    if dtype in BOUNDS:
        return f"(x & {BIT_MASKS[dtype]}) {BOUNDS[dtype][infinite]}"
    return "x == x" if infinite else expression("isfinite", (dtype,), "bool", ("x",))
