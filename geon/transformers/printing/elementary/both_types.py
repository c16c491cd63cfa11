"""Elementary functions whose C text is one template for float32 and float64.

They are straight-line code as in ``f32``; only the constants differ.
"""

from __future__ import annotations

from ....op_graph.special.erf_formulas import ERF_SMALL
from .polynomials import definitions_of, of_type

__all__ = ["BOTH_TYPES"]

# The eighth root of 1 - erf(x), to where erf rounds to 1: in float32 for 0.9 <= x <= 3.925 with a
# fit of erf of 7.7e-9, in float64 for 1.25 <= x <= 5.93 with 4.5e-18. At 4 that of float32 is so
# small that 1 minus it rounds to 1, so clamped arguments give exactly 1.
_ERF_LARGE = {
    "float32": (
        *(1.00022113, -0.142253891, -0.0668196306, -0.0057351063),
        *(0.0094649829, -0.00122343027, -9.38106532e-05, 1.99415263e-05),
    ),
    "float64": (
        *(0.999999698063793, -0.14104476276596015, -0.06964102011017112, -0.002062924665091167),
        *(0.0065466824666805855, 0.00023469997302939468, -0.0005509731943729088),
        *(0.00010865894652804212, -9.754413504136471e-06, -1.1063654287509852e-06),
        *(1.46223781261951e-06, -5.921084727102623e-07, 1.3843016396447447e-07),
        *(-2.1086306816022425e-08, 2.1793551089785123e-09, -1.5097265360361742e-10),
        *(6.447826760371404e-12, -1.2997062170692934e-13),
    ),
}

# TINY is the smallest normal number, FRACTION the bits of a mantissa, ROOT the bits of sqrt(1/2):
# numbers are 2^k (1 + f) with sqrt(1/2) <= 1 + f <= sqrt(2). SIGN is the sign's bit.
_WORDS = {
    "float32": {"TINY": "0x1p-126f", "FRACTION": "0x7fffffu", "ROOT": "0x3f3504f3u",
                "FOUR": "0x40800000u", "POWER": "0xff800000u", "SIGN": "0x80000000u",
                "ERF_SPLIT": "0.9f", "ERF_END": "4.0f"},
    "float64": {"TINY": "0x1p-1022", "FRACTION": "0xfffffffffffffu", "ROOT": "0x3fe6a09e667f3bcdu",
                "FOUR": "0x4010000000000000u", "POWER": "0xfff0000000000000u",
                "SIGN": "0x8000000000000000u", "ERF_SPLIT": "1.25", "ERF_END": "5.93"},
}  # fmt: skip
_TEXT = """
GEON_INLINE @uint geon_bits_@s(@real x) {
    @uint bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

GEON_INLINE @real geon_of_bits_@s(@uint bits) {
    @real x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

GEON_INLINE @real geon_erf_@s(@real x) {
    @real a = fabs@(x);
    @real z = a * a;
    @real small = ERF_SMALL_@K<z>;
    small = GEON_FMA_@K(a, small, a);
    a = a > @ERF_END ? @ERF_END : a;
    @real root = ERF_LARGE_@K<a>;
    root = root * root;
    root = root * root;
    @real y = a < @ERF_SPLIT ? small : 1.0@ - root * root;
    return copysign@(y, x);
}

GEON_INLINE @real geon_log_@s(@real x) {
    @real normal = x < @TINY ? x * 0x1p@MANTISSA@ : x;
    @uint n = geon_bits_@s(normal) - @ROOT;
    @real k = geon_exponent_@s(n) - (x < @TINY ? @MANTISSA.0@ : 0.0@);
    @real f = geon_of_bits_@s((n & @FRACTION) + @ROOT) - 1.0@;
    @real y = geon_log_of_parts_@s(k, f);
    @real edge = x == 0.0@ ? -INFINITY : NAN;
    return x > 0.0@ ? (x < INFINITY ? y : x) : edge;
}

GEON_INLINE @real geon_log1p_@s(@real x) {
    @real u = 1.0@ + x;
    @uint n = geon_bits_@s(u) - @ROOT;
    @real k = geon_exponent_@s(n);
    @real scale = geon_of_bits_@s(@FOUR - (n & @POWER));
    @real f = 0.25@ * GEON_FMA_@K(x, scale, scale - 4.0@);
    @real y = geon_log_of_parts_@s(k, f);
    @real edge = x == -1.0@ ? -INFINITY : NAN;
    y = x < INFINITY && x != 0.0@ ? y : x;
    return x > -1.0@ ? y : edge;
}
"""

# Exponents become float64 through the bits of 2^52 + k, as few machines convert vectors of 64-bit
# integers.
_EXPONENTS = definitions_of(
    """
GEON_INLINE float geon_exponent_f32(uint32_t n) {
    return (float)((int32_t)n >> 23);
}

GEON_INLINE double geon_exponent_f64(uint64_t n) {
    uint64_t biased = (n + 0x4000000000000000u) >> 52;
    return geon_of_bits_f64(biased | 0x4330000000000000u) - 4503599627371520.0;
}
"""
)

# Sine and cosine by a reduction to a quarter turn: the format of their names, and the reduction.
_REDUCTIONS = {
    "float32": {"geon_{}_f32": "geon_quarter_f32", "geon_near_{}_f32": "geon_near_quarter_f32"},
    "float64": {
        "geon_{}_f64": "geon_quarter_of_any_f64",
        "geon_{}_bounded_f64": "geon_quarter_f64",
    },
}
_ANGLES = """
GEON_INLINE @real @SIN(@real x) {
    @uint quarters;
    @real r = @REDUCED(x, &quarters);
    return geon_sin_of_quarter_@s(r, quarters, geon_bits_@s(x) & @SIGN);
}

GEON_INLINE @real @COS(@real x) {
    @uint quarters;
    @real r = @REDUCED(x, &quarters);
    return geon_sin_of_quarter_@s(r, quarters + 1u, 0u);
}
"""


def _functions(dtype: str) -> dict[str, str]:
    """Return the functions of one float type, by name."""
    words, tables = _WORDS[dtype], {"ERF_SMALL": ERF_SMALL[dtype], "ERF_LARGE": _ERF_LARGE[dtype]}
    found = definitions_of(of_type(_TEXT, dtype, words), **tables)
    for name, reduced in _REDUCTIONS[dtype].items():
        own = {"SIN": name.format("sin"), "COS": name.format("cos"), "REDUCED": reduced}
        found |= definitions_of(of_type(_ANGLES, dtype, {**words, **own}))
    return found


BOTH_TYPES = _EXPONENTS | _functions("float32") | _functions("float64")
