"""Powers in float64 as C text.

As in ``f32``: straight-line code that vectorises, correct on the whole domain. The logarithm has
some 64 correct bits, in two numbers, because the exponent multiplies its error by up to 1,075. Over
a million pairs the error is at most 1.1 ulp for pow; without fused multiply-adds at most 2.5.
"""

from __future__ import annotations

import math

from .f64 import _EXP
from .polynomials import definitions_of

__all__ = ["POWERS_F64"]

# (log2(1 + f) / s - c0 - c1 s^2) / s^4 in s^2, s = f / (2 + f), for sqrt(1/2) <= 1 + f <= sqrt(2),
# where c0 = 2 / log(2) and c1 = c0 / 3 are in the text, in two parts each; interpolated at
# Chebyshev's nodes in 60 digits, coefficients rounded to float64; fit of log2 1.6e-20.
_LOG2 = (
    *(0.5770780163555853, 0.4121985831111439, 0.320598897967159, 0.26230819146715817),
    *(0.2219527886918906, 0.19238056020281674, 0.1688854475683054, 0.16912807806290253),
)

# (2^g - 1) / g in g for |g| <= 1/2, from that of e^r.
_EXP2 = (math.log(2), *(c * math.log(2) ** (k + 2) for k, c in enumerate(_EXP)))

# Rounding errors of sums and products that matter are computed, too (Dekker, 1971). The exponent is
# an integer if adding 2^52 does not round it; the last bit of the sum is then its parity.
POWERS_F64 = definitions_of(
    """
GEON_INLINE double geon_log2_of_parts_f64(double k, double m, double *low) {
    double f = m - 1.0;
    double d = m + 1.0;
    double s = f / d;
    double rest = geon_sum_error_f64(-s, d, f, 0.0);
    rest = GEON_FMA_F64(-s, m - (d - 1.0), rest) * GEON_FMA_F64(-0.5, s, 0.5);
    double z = s * s;
    double z_low = GEON_FMA_F64(2.0 * s, rest, geon_product_error_f64(s, s, z));
    double q = LOG2_F64<z>;
    double c = GEON_FMA_F64(z, q, 0.96179669392597560);
    double c_low = GEON_FMA_F64(z, q, 0.96179669392597560 - c) + 5.0577616648125907e-17;
    double p = z * c;
    double p_low = GEON_FMA_F64(z, c_low, GEON_FMA_F64(z_low, c, geon_product_error_f64(z, c, p)));
    double w = 2.8853900817779268 + p;
    double w_low = ((2.8853900817779268 - w) + p) + (p_low + 4.0710547481862066e-17);
    double v = s * w;
    double v_low = GEON_FMA_F64(s, w_low, GEON_FMA_F64(rest, w, geon_product_error_f64(s, w, v)));
    double y = k + v;
    *low = ((k - y) + v) + v_low;
    return y;
}

GEON_INLINE double geon_pow_f64(double x, double y) {
    double a = fabs(x);
    double b = fabs(y);
    uint64_t n = geon_bits_f64(a < 0x1p-1022 ? a * 0x1p52 : a) - 0x3fe6a09e667f3bcdu;
    double exponent = geon_exponent_f64(n) - (a < 0x1p-1022 ? 52.0 : 0.0);
    double mantissa = geon_of_bits_f64((n & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double low;
    double logarithm = geon_log2_of_parts_f64(exponent, mantissa, &low);
    logarithm = a < INFINITY ? logarithm : a;
    logarithm = a == 0.0 ? -INFINITY : logarithm;
    double whole = y * logarithm;
    low = GEON_FMA_F64(y, low, geon_product_error_f64(y, logarithm, whole));
    low = fabs(whole) < 1100.0 ? low : 0.0;
    whole = whole > 1100.0 ? 1100.0 : whole;
    whole = whole < -1100.0 ? -1100.0 : whole;
    double shifted = whole + 6755399441057790.0;
    double g = (whole - (shifted - 6755399441057790.0)) + low;
    double p = EXP2_F64<g>;
    p = GEON_FMA_F64(p, g, 1.0);
    uint64_t power = geon_bits_f64(shifted);
    uint64_t half = power >> 1;
    p = p * geon_of_bits_f64(half << 52) * geon_of_bits_f64((power - half) << 52);
    double bounded = b < 0x1p53 ? b : 0x1p53;
    double rounded = bounded < 0x1p52 ? bounded + 0x1p52 : bounded;
    double fraction = bounded < 0x1p52 ? bounded - (rounded - 0x1p52) : 0.0;
    uint64_t odd = fraction == 0.0 ? geon_bits_f64(rounded) << 63 : 0u;
    p = ((a == 1.0) & (y == y)) ? 1.0 : p;
    p = geon_of_bits_f64(geon_bits_f64(p) ^ (odd & geon_bits_f64(x)));
    p = ((x < 0.0) & (a < INFINITY) & (fraction != 0.0)) ? NAN : p;
    return ((x == 1.0) | (y == 0.0)) ? 1.0 : p;
}
""",
    LOG2=_LOG2,
    EXP2=_EXP2,
)
