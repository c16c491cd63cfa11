"""Whether an element is finite, or at least a number, in languages of the C family."""

from __future__ import annotations

from .c_expressions import expression

# Of the half formats, which are kept as bits: all but the sign, and the exponent of infinities.
BITS, EXPONENTS = "0x7fff", {"float16": "0x7c00", "bfloat16": "0x7f80"}


def finite(dtype: str, infinite: bool) -> str:
    """The condition that ``x`` is finite, or where it may be ``infinite`` that it is not NaN."""
    exponent = EXPONENTS.get(dtype)
    if exponent is not None:
        return f"(x & {BITS}) {'<=' if infinite else '<'} {exponent}"
    return "x == x" if infinite else expression("isfinite", (dtype,), "bool", ("x",))
