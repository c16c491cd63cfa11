"""Tests whether elements are finite, or not NaN, in languages of the C family."""

from __future__ import annotations

from .c_expressions import expression

# Masks of half formats, which are kept as bits: all but the sign, and the exponent of infinities.
BITS, EXPONENTS = "0x7fff", {"float16": "0x7c00", "bfloat16": "0x7f80"}


def finite(dtype: str, infinite: bool) -> str:
    """Return the condition that ``x`` is finite; with ``infinite``, that it is not NaN."""
    exponent = EXPONENTS.get(dtype)
    if exponent is not None:
        return f"(x & {BITS}) {'<=' if infinite else '<'} {exponent}"
    return "x == x" if infinite else expression("isfinite", (dtype,), "bool", ("x",))
