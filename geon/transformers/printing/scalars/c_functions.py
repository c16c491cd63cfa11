"""Helper functions that scalar C expressions call.

Each is a ``GEON_INLINE`` function, without branches if possible, so that a compiler vectorises a
loop over it.
"""

from __future__ import annotations

from .c_types import C_TYPES, INTEGERS, SIGNED, SUFFIXES, UNSIGNED
from .floor_mod import REMAINDERS

# The half formats ---------------------------------------------------------------------------------

# A half's exponent bias is 112 less than a float's: multiplying by 2**112 converts the exponent,
# subnormals too. AVX2 compares floats in one instruction, but has none for unsigned integers.
_HALF_TO_F32 = """\
GEON_INLINE float geon_half_to_f32(geon_half h)
{
    int32_t wide = (int16_t)h;
    float moved = geon_of_bits_f32((uint32_t)wide << 13 & 0x8fffe000) * 0x1p112f;
    uint32_t last = fabsf(moved) >= 0x1p16f ? 0x7f800000 : 0;
    return geon_of_bits_f32(geon_bits_f32(moved) | last);
}
"""
# Below 2**-14, adding 0.5 rounds to a multiple of 2**-24, the smallest half.
_F32_TO_HALF = """\
GEON_INLINE geon_half geon_f32_to_half(float x)
{
    uint32_t bits = geon_bits_f32(x), rest = bits & 0x7fffffff;
    float size = geon_of_bits_f32(rest);
    uint32_t normal = (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13;
    uint32_t small = geon_bits_f32(size + 0.5f) - 0x3f000000;
    uint32_t found = size < 0x1p-14f ? small : normal;
    found = size >= 0x1p16f ? 0x7c00 : found;
    found = x != x ? 0x7e00 : found;
    return (geon_half)((bits >> 16 & 0x8000) | found);
}
"""
# A cast to a half and back without 16-bit values in between, so that lanes keep their width.
_ROUNDED_TO_HALF = """\
GEON_INLINE float geon_rounded_to_half(float x)
{
    uint32_t bits = geon_bits_f32(x), rest = bits & 0x7fffffff;
    float size = geon_of_bits_f32(rest), small = (size + 0.5f) - 0.5f;
    float normal = geon_of_bits_f32((rest + 0xfff + (rest >> 13 & 1)) & 0xffffe000);
    float found = size < 0x1p-14f ? small : normal;
    found = size >= 65520.0f ? INFINITY : found;
    found = x != x ? NAN : found;
    return geon_of_bits_f32((bits & 0x80000000) | geon_bits_f32(found));
}
"""
# Rounding to odd first makes the second rounding equal to that of the exact value (Boldo and
# Melquiond, "When double rounding is odd", 2005).
_F64_TO_NARROW = """\
GEON_INLINE {type} geon_f64_to_{suffix}(double x)
{{
    float near = (float)x;
    double error = fabs((double)near) - fabs(x);
    uint32_t bits = geon_bits_f32(near);
    bits = (bits - (error > 0)) | ((error > 0) | (error < 0));
    return geon_f32_to_{suffix}(geon_of_bits_f32(bits));
}}
"""
_BFLOAT_TO_F32 = """\
GEON_INLINE float geon_bfloat_to_f32(geon_bfloat b)
{
    return geon_of_bits_f32((uint32_t)b << 16);
}
"""
_F32_TO_BFLOAT = """\
GEON_INLINE geon_bfloat geon_f32_to_bfloat(float x)
{
    uint32_t bits = geon_bits_f32(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (geon_bfloat)((x != x ? bits | 0x400000 : rounded) >> 16);
}
"""
_ROUNDED_TO_BFLOAT = """\
GEON_INLINE float geon_rounded_to_bfloat(float x)
{
    uint32_t bits = geon_bits_f32(x), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return geon_of_bits_f32((x != x ? bits | 0x400000 : rounded) & 0xffff0000);
}
"""

# The float8 formats -------------------------------------------------------------------------------

# As for halves, multiplying by a power of two converts the exponent, and an addition rounds a
# subnormal number. All NaN become the one of ml_dtypes, with their sign.
_FLOAT8_TO_F32 = """\
GEON_INLINE float geon_{suffix}_to_f32(uint8_t b)
{{
    int32_t wide = (int8_t)b;
    float moved = geon_of_bits_f32((uint32_t)wide << {shift} & {mask}) * {scale};
    uint32_t bits = geon_bits_f32(moved), sign = bits & 0x80000000;
    float size = fabsf(moved);
    bits = size >= {infinite} ? sign | 0x7f800000 : bits;
    return geon_of_bits_f32(size >= {nan} ? sign | 0x7fc00000 : bits);
}}
"""
_F32_TO_FLOAT8 = """\
GEON_INLINE uint8_t geon_f32_to_{suffix}(float x)
{{
    uint32_t bits = geon_bits_f32(x), rest = bits & 0x7fffffff;
    float size = geon_of_bits_f32(rest);
    uint32_t normal = (rest - {least_bits} + {half} + (rest >> {shift} & 1)) >> {shift};
    uint32_t small = geon_bits_f32(size + {magic}) - geon_bits_f32({magic});
    uint32_t found = size < {least} ? small : normal;
    found = size {beyond} ? {overflow} : found;
    found = x != x ? {nan_bits} : found;
    return (uint8_t)((bits >> 24 & 0x80) | found);
}}
"""
_FLOAT8S = {
    "float8_e4m3fn": {
        "shift": "20",
        "mask": "0x87f00000",
        "scale": "0x1p120f",
        "infinite": "INFINITY",
        "nan": "480.0f",
        "least": "0x1p-6f",
        "least_bits": "0x3c000000",  # the difference of the exponents' biases
        "half": "0x7ffff",
        "magic": "0x1p14f",  # the distance of floats from here on is the smallest float8
        "beyond": "> 464.0f",
        "overflow": "0x7f",
        "nan_bits": "0x7f",
    },
    "float8_e5m2": {
        "shift": "21",
        "mask": "0x8fe00000",
        "scale": "0x1p112f",
        "infinite": "0x1p16f",
        "nan": "0x1.4p16f",
        "least": "0x1p-14f",
        "least_bits": "0x38000000",
        "half": "0xfffff",
        "magic": "0x1p7f",
        "beyond": ">= 61440.0f",
        "overflow": "0x7c",
        "nan_bits": "0x7e",
    },
}


def _float8_functions() -> dict[str, str]:
    made: dict[str, str] = {}
    for name, words in _FLOAT8S.items():
        suffix = SUFFIXES[name]
        made[f"geon_{suffix}_to_f32"] = _FLOAT8_TO_F32.format(suffix=suffix, **words)
        made[f"geon_f32_to_{suffix}"] = _F32_TO_FLOAT8.format(suffix=suffix, **words)
    for name in ("float16", *_FLOAT8S):
        words = {"suffix": SUFFIXES[name], "type": C_TYPES[name]}
        made[f"geon_f64_to_{SUFFIXES[name]}"] = _F64_TO_NARROW.format(**words)
    return made


# Floats to integers: clamped to the range, 0 for NaN ----------------------------------------------

# Both bounds are exact floats, so clamped values can be converted by way of int32.
_TO_NARROW = """\
GEON_INLINE {target} geon_{source}_to_{suffix}({type} x)
{{
    x = x > {low} ? x : {low_or_nan};
    x = x < {high} ? x : {high};
    return ({target})(int32_t)x;
}}
"""
# The upper bound is not a float: results from the next power of two on are selected instead.
_TO_WIDE = """\
GEON_INLINE {target} geon_{source}_to_{suffix}({type} x)
{{
    {type} held = ((x >= {low}) & (x < {end})) ? x : 0;
    {target} found = {held};
    found = x >= {end} ? {high} : found;
    return x < {low} ? {minimum} : found;
}}
"""

# Casts between 64-bit integers and floats by 32-bit halves, each in the bits of a double of known
# exponent, for processors without vector instructions for them. The two halves of an integer round
# once, when they are added. An integer that double cannot represent is rounded to odd first, so
# that the cast to float32 rounds correctly (Boldo and Melquiond, as above).
_WHOLE_OF_F64 = """\
GEON_INLINE int64_t geon_whole_of_f64(double x)
{
#ifdef GEON_WIDE_BY_HALVES
    double whole = trunc(x), high = floor(whole * 0x1p-32), low = whole - high * 0x1p32;
    uint64_t upper = geon_bits_f64(high + 0x1.8p52), lower = geon_bits_f64(low + 0x1p52);
    return (int64_t)(upper << 32 | (lower & 0xffffffff));
#else
    return (int64_t)x;
#endif
}
"""
_WHOLE_U64_OF_F64 = """\
GEON_INLINE uint64_t geon_whole_u64_of_f64(double x)
{
#ifdef GEON_WIDE_BY_HALVES
    return (uint64_t)geon_whole_of_f64(x);
#else
    return (uint64_t)x;
#endif
}
"""
_WIDE_TO_F64 = """\
GEON_INLINE double geon_{suffix}_to_f64({type} x)
{{
#ifdef GEON_WIDE_BY_HALVES
    uint64_t low = ((uint64_t)x & 0xffffffff) | 0x4330000000000000;
    uint64_t high = (uint64_t)x >> 32 ^ {high};
    return geon_of_bits_f64(high) - {bias} + geon_of_bits_f64(low);
#else
    return (double)x;
#endif
}}
"""
_WIDE_TO_F32 = """\
GEON_INLINE float geon_{suffix}_to_f32({type} x)
{{
#ifdef GEON_WIDE_BY_HALVES
    {type} odd = ({type})(((uint64_t)x | (((uint64_t)x & 0x7ff) + 0x7ff)) & ~(uint64_t)0x7ff);
    return (float)geon_{suffix}_to_f64({far} ? odd : x);
#else
    return (float)x;
#endif
}}
"""

# Integer arithmetic ------------------------------------------------------------------------------

# If a float type represents all integers of a type, its quotient of two of them never rounds up to
# the next integer. Processors divide vectors of floats, not of integers.

_FLOOR_DIVIDE_SIGNED = """\
GEON_INLINE {type} geon_floor_divide_{suffix}({type} x, {type} y)
{{
    {type} divisor = y == 0 || y == -1 ? 1 : y;
    {type} quotient = ({type})(({exact})x / divisor), rest = ({type})(x - quotient * divisor);
    quotient = ({type})(quotient - (rest != 0 && (rest ^ divisor) < 0));
    return y == 0 ? 0 : y == -1 ? ({type})-x : quotient;
}}
"""
_MOD_SIGNED = """\
GEON_INLINE {type} geon_mod_{suffix}({type} x, {type} y)
{{
    {type} divisor = y == 0 || y == -1 ? 1 : y;
    {type} quotient = ({type})(({exact})x / divisor), rest = ({type})(x - quotient * divisor);
    return ({type})(rest != 0 && (rest ^ divisor) < 0 ? rest + divisor : rest);
}}
"""
_FLOOR_DIVIDE_UNSIGNED = """\
GEON_INLINE {type} geon_floor_divide_{suffix}({type} x, {type} y)
{{
    {type} quotient = ({type})(({exact})x / (y == 0 ? 1 : y));
    return y == 0 ? 0 : quotient;
}}
"""
_MOD_UNSIGNED = """\
GEON_INLINE {type} geon_mod_{suffix}({type} x, {type} y)
{{
    {type} divisor = y == 0 ? 1 : y, quotient = ({type})(({exact})x / divisor);
    return ({type})(x - quotient * divisor);
}}
"""
_POWER_UNSIGNED = """\
GEON_INLINE {type} geon_power_{suffix}({type} x, {type} y)
{{
    uint{wide}_t factor = x, product = 1;
    for (; y; y >>= 1) {{
        product *= y & 1 ? factor : 1;
        factor *= factor;
    }}
    return ({type})product;
}}
"""
_POWER_SIGNED = """\
GEON_INLINE {type} geon_power_{suffix}({type} x, {type} y)
{{
    {type} inverse = ({type})(x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0);
    {type} power = ({type})geon_power_u{bits}((u{type})x, (u{type})(y < 0 ? 0 : y));
    return y < 0 ? inverse : power;
}}
"""

_GCD = """\
GEON_INLINE {type} geon_gcd_{suffix}({type} x, {type} y)
{{
    {unsigned} a = ({unsigned})(x < 0 ? 0 - ({unsigned})x : ({unsigned})x);
    {unsigned} b = ({unsigned})(y < 0 ? 0 - ({unsigned})y : ({unsigned})y);
    while (b != 0) {{
        {unsigned} rest = ({unsigned})(a % b);
        a = b;
        b = rest;
    }}
    return ({type})a;
}}
"""

# Keys whose unsigned order is the order of a sort ------------------------------------------------

_KEY_UNSIGNED = """\
GEON_INLINE {unsigned} geon_key_{suffix}({type} x)
{{
    return x;
}}
"""
_KEY_SIGNED = """\
GEON_INLINE {unsigned} geon_key_{suffix}({type} x)
{{
    return ({unsigned})(({unsigned})x ^ ({unsigned})1 << {top});
}}
"""
# Both zeros have the same key, and all NaN have the largest one. Bit operations instead of selects
# keep searches for the largest key vectorised.
_KEY_FLOAT = """\
GEON_INLINE {unsigned} geon_key_{suffix}({type} x)
{{
    {unsigned} bits = geon_bits_{suffix}(x + 0), top = ({unsigned})1 << {top};
    bits ^= ({unsigned})(({signed})bits >> {top}) | top;
    return bits | -({unsigned})(x != x);
}}
"""


_TEMPLATES = {
    ("floor_divide", "signed"): _FLOOR_DIVIDE_SIGNED,
    ("floor_divide", "unsigned"): _FLOOR_DIVIDE_UNSIGNED,
    ("mod", "signed"): _MOD_SIGNED,
    ("mod", "unsigned"): _MOD_UNSIGNED,
    ("power", "signed"): _POWER_SIGNED,
    ("power", "unsigned"): _POWER_UNSIGNED,
    ("gcd", "signed"): _GCD,
    ("gcd", "unsigned"): _GCD.replace("x < 0 ? 0 - ({unsigned})x : ({unsigned})x", "x").replace(
        "y < 0 ? 0 - ({unsigned})y : ({unsigned})y", "y"
    ),
    ("key", "signed"): _KEY_SIGNED,
    ("key", "unsigned"): _KEY_UNSIGNED,
}


_EXACT = {"8": "float", "16": "float", "32": "double"}


def _integer_functions() -> dict[str, str]:
    made: dict[str, str] = {}
    for name in INTEGERS:
        kind, bits = ("signed", name[3:]) if name in SIGNED else ("unsigned", name[4:])
        words = {"type": C_TYPES[name], "suffix": SUFFIXES[name], "bits": bits}
        words |= {"wide": str(max(int(bits), 32)), "top": str(int(bits) - 1)}
        words |= {"unsigned": f"uint{bits}_t", "exact": _EXACT.get(bits, C_TYPES[name])}
        for function in ("floor_divide", "mod", "power", "gcd", "key"):
            template = _TEMPLATES[function, kind]
            made[f"geon_{function}_{SUFFIXES[name]}"] = template.format(**words)
    boolean = {"type": "_Bool", "suffix": "bool", "unsigned": "uint8_t"}
    return made | {"geon_key_bool": _KEY_UNSIGNED.format(**boolean)}


def _float_functions() -> dict[str, str]:
    made: dict[str, str] = {}
    for name, c, unsigned in (("float32", "f", "uint32_t"), ("float64", "", "uint64_t")):
        suffix = SUFFIXES[name]
        words = {"type": C_TYPES[name], "suffix": suffix, "unsigned": unsigned}
        words |= {"top": "31" if c else "63", "signed": unsigned[1:]}
        made[f"geon_key_{suffix}"] = _KEY_FLOAT.format(**words)
        made |= {f"geon_{suffix}_to_{SUFFIXES[k]}": _to_integer(name, k, c) for k in INTEGERS}
    return made


def _wide_functions() -> dict[str, str]:
    """Return the functions between floats and 64-bit integers."""
    words = {
        "i64": {
            "high": "0x4530000080000000",
            "bias": "0x1.00000801p84",  # 2**84 + 2**63 + 2**52
            "far": "((x >= INT64_C(1) << 53) | (x <= -(INT64_C(1) << 53)))",
        },
        "u64": {
            "high": "0x4530000000000000",
            "bias": "0x1.00000001p84",  # 2**84 + 2**52
            "far": "(x >> 53) != 0",
        },
    }
    made = {"geon_whole_of_f64": _WHOLE_OF_F64, "geon_whole_u64_of_f64": _WHOLE_U64_OF_F64}
    for name in ("int64", "uint64"):
        suffix = SUFFIXES[name]
        given = {"suffix": suffix, "type": C_TYPES[name], **words[suffix]}
        made[f"geon_{suffix}_to_f64"] = _WIDE_TO_F64.format(**given)
        made[f"geon_{suffix}_to_f32"] = _WIDE_TO_F32.format(**given)
    return made


def _to_integer(source: str, target: str, c: str) -> str:
    bits = int(target.lstrip("uint"))
    low, end = (0, 2**bits) if target in UNSIGNED else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    words = {"source": SUFFIXES[source], "type": C_TYPES[source]}
    words |= {"suffix": SUFFIXES[target], "target": C_TYPES[target]}
    words["low"] = f"({low}.0{c})" if low else f"0.0{c}"
    if bits < 32:
        held = f"(x != x ? 0.0{c} : {low}.0{c})" if low else f"0.0{c}"
        return _TO_NARROW.format(**words, low_or_nan=held, high=f"{end - 1}.0{c}")
    prefix = "U" if target in UNSIGNED else ""
    words["high"] = f"{prefix}INT{bits}_MAX"
    words["minimum"] = f"INT{bits}_MIN" if low else "0"
    whole = "geon_whole_u64_of_f64" if prefix else "geon_whole_of_f64"
    words["held"] = f"({words['target']})held" if bits == 32 else f"{whole}(held)"
    return _TO_WIDE.format(**words, end=f"{end}.0{c}")


# Random bits --------------------------------------------------------------------------------------

# ``op_graph.random.philox`` defines the counter and the key. Words are kept in the low halves of
# 64-bit products of 32-bit words, so that no halves need to be merged.
_PHILOX = """\
GEON_INLINE void geon_philox(uint32_t counter, uint64_t seed, uint64_t draw, uint64_t call,
                             uint64_t *low, uint64_t *high)
{
    uint64_t a = counter, b = call >> 32, c = (uint32_t)draw, d = (uint32_t)call;
    uint32_t first = (uint32_t)seed, second = (uint32_t)(seed >> 32);
    GEON_UNROLL_10
    for (int round = 0; round < 10; round++, first += 0x9E3779B9u, second += 0xBB67AE85u) {
        uint64_t left = (uint32_t)a * UINT64_C(0xD2511F53);
        uint64_t right = (uint32_t)c * UINT64_C(0xCD9E8D57);
        a = right >> 32 ^ b ^ first;
        b = right;
        c = left >> 32 ^ d ^ second;
        d = left;
    }
    *low = (uint32_t)a | b << 32;
    *high = (uint32_t)c | d << 32;
}
"""
_RANDOM_U32 = """\
GEON_INLINE uint32_t geon_random_u32(uint64_t seed, uint64_t draw, uint64_t call, int64_t position)
{
    uint64_t low, high;
    geon_philox((uint32_t)(position >> 2), seed, draw, call, &low, &high);
    uint64_t pair = position & 2 ? high : low;
    return (uint32_t)(position & 1 ? pair >> 32 : pair);
}
"""
_RANDOM_U64 = """\
GEON_INLINE uint64_t geon_random_u64(uint64_t seed, uint64_t draw, uint64_t call, int64_t position)
{
    uint64_t low, high;
    geon_philox((uint32_t)(position >> 1), seed, draw, call, &low, &high);
    return position & 1 ? high : low;
}
"""

FUNCTIONS: dict[str, str] = {
    "geon_half_to_f32": _HALF_TO_F32,
    "geon_f32_to_half": _F32_TO_HALF,
    "geon_bfloat_to_f32": _BFLOAT_TO_F32,
    "geon_f32_to_bfloat": _F32_TO_BFLOAT,
    "geon_rounded_to_half": _ROUNDED_TO_HALF,
    "geon_rounded_to_bfloat": _ROUNDED_TO_BFLOAT,
    **_float8_functions(),
    **_integer_functions(),
    **_float_functions(),
    **_wide_functions(),
    **REMAINDERS,
    "geon_philox": _PHILOX,
    "geon_random_u32": _RANDOM_U32,
    "geon_random_u64": _RANDOM_U64,
}
