"""Prototypes of ``math.h`` functions, declared here because reading the header is slow.

Most compilers take longer to read it than to compile a kernel.
"""

from __future__ import annotations

# Functions by number of arguments.
FUNCTIONS = {
    1: """acos asin atan cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 log log10 log1p
        log2 cbrt fabs sqrt erf erfc lgamma tgamma ceil floor nearbyint rint round trunc""",
    2: "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder",
    3: "fma",
}
MACROS = """\
#ifndef INFINITY
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
#endif
#define GEON_1(x) double x(double); float x##f(float);
#define GEON_2(x) double x(double, double); float x##f(float, float);
#define GEON_3(x) double x(double, double, double); float x##f(float, float, float);
"""


def declarations() -> str:
    """Return the prototypes of the double and float functions, and the macros that kernels use."""
    calls = [f"GEON_{count}({f})" for count, names in FUNCTIONS.items() for f in names.split()]
    return MACROS + "\n".join(calls) + "\n"
