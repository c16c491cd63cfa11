"""C types of dtypes, and the suffixes of function names for them."""

from __future__ import annotations

C_TYPES: dict[str, str] = {
    "bool": "_Bool",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for bits in (8, 16, 32, 64) for sign in ("", "u")},
    "float16": "geon_half",
    "bfloat16": "geon_bfloat",
    "float8_e4m3fn": "uint8_t",
    "float8_e5m2": "uint8_t",
    "float32": "float",
    "float64": "double",
}
# The suffix of function names, by dtype.
SUFFIXES: dict[str, str] = {
    "bool": "bool",
    **{
        f"{sign}int{bits}": f"{sign or 'i'}{bits}" for bits in (8, 16, 32, 64) for sign in ("", "u")
    },
    "float16": "half",
    "bfloat16": "bfloat",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float32": "f32",
    "float64": "f64",
}
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
