"""Floor division and modulo of floats with Python's semantics, as C text."""

from __future__ import annotations

from .c_types import C_TYPES, SUFFIXES

__all__ = ["REMAINDERS"]

# A quotient below 2**29 times a float is exact in double, and so is the remainder of x.
_FMOD_F32 = """\
GEON_INLINE float geon_fmod_f32(float x, float y)
{
    double quotient = trunc((double)x / y);
    if (!(fabs(quotient) < 0x1p29))
        return fmodf(x, y);
    return geon_rest_f32(x, y, quotient);
}
"""
_REST_F32 = """\
GEON_INLINE float geon_rest_f32(float x, float y, double quotient)
{
    double rest = quotient != 0 ? x - quotient * y : x;
    rest = rest != 0 && (rest < 0) != (x < 0) ? rest + copysign(y, x) : rest;
    return copysignf((float)rest, x);
}
"""
# If x / y rounds up to an integer, the remainder has the wrong sign; adding the divisor corrects
# it.
_FMOD_F64 = """\
GEON_INLINE double geon_fmod_f64(double x, double y)
{
    double quotient = trunc(x / y);
    if (!(fabs(quotient) < GEON_EXACT_QUOTIENT))
        return fmod(x, y);
    return geon_rest_f64(x, y, quotient);
}
"""
_REST_F64 = """\
GEON_INLINE double geon_rest_f64(double x, double y, double quotient)
{
    double rest = quotient != 0 ? GEON_FMA_F64(-quotient, y, x) : x;
    rest = rest != 0 && (rest < 0) != (x < 0) ? rest + copysign(y, x) : rest;
    return copysign(rest, x);
}
"""
# The quotient follows from the remainder, so that x is nearly y * quotient + rest even if x / y
# rounds up.
_FLOOR_DIVIDE_FLOAT = """\
GEON_INLINE {type} geon_floor_divide_{suffix}({type} x, {type} y)
{{
    return geon_quotient_{suffix}(x, y, geon_fmod_{suffix}(x, y));
}}
"""
_QUOTIENT_FLOAT = """\
GEON_INLINE {type} geon_quotient_{suffix}({type} x, {type} y, {type} rest)
{{
    {type} quotient = (x - rest) / y;
    quotient -= rest != 0 && (rest < 0) != (y < 0) ? 1 : 0;
    {type} whole = floor{c}(quotient);
    whole += quotient - whole > ({type})0.5 ? 1 : 0;
    whole = quotient != 0 ? whole : copysign{c}(0.0{c}, x / y);
    return y == 0 ? x / y : whole;
}}
"""
_MOD_FLOAT = """\
GEON_INLINE {type} geon_mod_{suffix}({type} x, {type} y)
{{
    return geon_moved_{suffix}(y, geon_fmod_{suffix}(x, y));
}}
"""
_MOVED_FLOAT = """\
GEON_INLINE {type} geon_moved_{suffix}({type} y, {type} rest)
{{
    {type} moved = (rest < 0) != (y < 0) ? rest + y : rest;
    moved = rest != 0 ? moved : copysign{c}(0.0{c}, y);
    return y == 0 ? rest : moved;
}}
"""

# Few quotients of a strip, if any, exceed the exact range: these are recomputed one by one, because
# vectors have no branches.
_FMOD_STRIP = """\
GEON_INLINE void geon_fmod_strip_{suffix}({type} *restrict y, const {type} *a, const {type} *b)
{{
    {integer} beyond[GEON_LANES_{SUFFIX}], some = 0;
    GEON_EACH_{SUFFIX}(i) {{
        double quotient = trunc((double)a[i] / b[i]);
        beyond[i] = !(fabs(quotient) < {exact});
        y[i] = geon_rest_{suffix}(a[i], b[i], quotient);
    }}
    GEON_EACH_{SUFFIX}(i) some |= beyond[i];
    for (int64_t i = 0; i < (GEON_UNLIKELY(some) ? GEON_LANES_{SUFFIX} : 0); i++)
        y[i] = beyond[i] ? fmod{c}(a[i], b[i]) : y[i];
}}
"""
_MOD_STRIP = """\
GEON_INLINE void geon_mod_strip_{suffix}({type} *restrict y, const {type} *a, const {type} *b)
{{
    {type} rest[GEON_LANES_{SUFFIX}];
    geon_fmod_strip_{suffix}(rest, a, b);
    GEON_EACH_{SUFFIX}(i) y[i] = geon_moved_{suffix}(b[i], rest[i]);
}}
"""
_FLOOR_DIVIDE_STRIP = """\
GEON_INLINE void geon_floor_divide_strip_{suffix}({type} *restrict y, const {type} *a,
                                                  const {type} *b)
{{
    {type} rest[GEON_LANES_{SUFFIX}];
    geon_fmod_strip_{suffix}(rest, a, b);
    GEON_EACH_{SUFFIX}(i) y[i] = geon_quotient_{suffix}(a[i], b[i], rest[i]);
}}
"""


def _made(dtype: str, c: str, integer: str, exact: str, rest: str, fmod: str) -> dict[str, str]:
    suffix = SUFFIXES[dtype]
    words = {"type": C_TYPES[dtype], "suffix": suffix, "c": c, "integer": integer, "exact": exact}
    words["SUFFIX"] = suffix.upper()
    texts = {
        "quotient": _QUOTIENT_FLOAT,
        "moved": _MOVED_FLOAT,
        "floor_divide": _FLOOR_DIVIDE_FLOAT,
        "mod": _MOD_FLOAT,
        "fmod_strip": _FMOD_STRIP,
        "mod_strip": _MOD_STRIP,
        "floor_divide_strip": _FLOOR_DIVIDE_STRIP,
    }
    made = {f"geon_{name}_{suffix}": text.format(**words) for name, text in texts.items()}
    return {f"geon_rest_{suffix}": rest, f"geon_fmod_{suffix}": fmod, **made}


REMAINDERS: dict[str, str] = {
    **_made("float32", "f", "int32_t", "0x1p29", _REST_F32, _FMOD_F32),
    **_made("float64", "", "int64_t", "GEON_EXACT_QUOTIENT", _REST_F64, _FMOD_F64),
}
