"""Scalar C expressions of the elementwise primitives for every dtype, for all C targets.

An expression takes identifiers or literals; the caller parenthesises it inside another one. It is
equal, bit for bit, to the primitive's NumPy reference, except for the functions in ``elementary``,
which state their own error bounds. float16, bfloat16 and float8 are bits, which only ``cast``,
``copy``, ``where`` and ``stop_gradient`` take; everything else computes on halves as float32, by
lowering.

Compilers vectorise the expressions if operands are local variables. A bool in memory should be read
as ``_Bool x = bytes[i] != 0``, with ``bytes`` a ``const uint8_t *``: gcc 12 vectorises no load of
``_Bool``.

The code must be compiled with wrap-around of signed integers (``-fwrapv``) and without contraction
to fused multiply-adds (``-ffp-contract=off``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....errors import UnavailableError
from ....op_graph.values.arrays import rounded
from ....op_graph.values.dtypes import named_dtype
from .c_types import C_TYPES, INTEGERS, SIGNED, SUFFIXES

__all__ = [
    "C_TYPES",
    "SUFFIXES",
    "accepts",
    "calls",
    "cast",
    "expression",
    "literal",
    "strip_function",
]

HALVES = ("float16", "bfloat16")
BIT_MASKS = {
    "float16": "0x7fff",
    "bfloat16": "0x7fff",
    "float8_e4m3fn": "0x7f",
    "float8_e5m2": "0x7f",
}
NARROW = tuple(BIT_MASKS)  # floats that are kept as bits, with the mask of all but the sign
FLOATS = ("float32", "float64")
WIDE = ("int64", "uint64")
NUMBERS = INTEGERS + FLOATS
# Primitives with a function in ``elementary``.
ELEMENTARY_ROWS = (
    "exp expm1 log log1p sigmoid softplus sin cos tan asin acos atan sinh cosh tanh asinh acosh"
    " atanh atan2 erf erfc erfcx ndtr log_ndtr erfinv exp_product sigmoid_derivative gelu"
    " gelu_derivative gelu_tanh gelu_tanh_derivative silu silu_derivative"
).split()
OF_TWO = ("atan2", "exp_product", "floordivide", "gcd", "mod", "power")
# Primitives whose expression is a call of a helper function, with the stem of its name.
FLOAT_CALLS = {
    "floordivide": "floor_divide",
    "mod": "mod",
    "power": "pow",
    **{row: row for row in ELEMENTARY_ROWS},
}
OUT_OF_LINE = "_out_of_line"  # ends the name of a helper that is not inlined
INTEGER_CALLS = {"floordivide": "floor_divide", "mod": "mod", "power": "power", "gcd": "gcd"}


def _called(helpers: Mapping[str, str]) -> dict[str, str]:
    """Return the expressions of primitives that are calls."""
    return {
        row: f"geon_{name}_{{suffix}}({{0}}{', {1}' if row in OF_TWO else ''})"
        for row, name in helpers.items()
    }


COMPARISONS = {
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "equal": "==",
    "not_equal": "!=",
}
ARITHMETIC = {"add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}"}
BITWISE = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
LOGICAL = {"logical_and": "&", "logical_or": "|", "logical_xor": "^"}
# ``{c}`` is the suffix of C library names and of literals: f for float, empty for double.
FLOAT_ROWS = {
    **ARITHMETIC,
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "square": "{0} * {0}",
    "absolute": "fabs{c}({0})",
    "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}",
    "reciprocal": "1 / {0}",
    "sqrt": "sqrt{c}({0})",
    "rsqrt": "1 / sqrt{c}({0})",
    "floor": "floor{c}({0})",
    "ceil": "ceil{c}({0})",
    "trunc": "trunc{c}({0})",
    "round": "rint{c}({0})",
    # Return the second operand if both are equal, as vector units do. NaN wins.
    "maximum": "(({0} > {1}) | ({0} != {0})) ? {0} : {1}",
    "minimum": "(({0} < {1}) | ({0} != {0})) ? {0} : {1}",
    "isnan": "{0} != {0}",
    "isinf": "fabs{c}({0}) == INFINITY",
    "isfinite": "fabs{c}({0}) < INFINITY",
    **_called(FLOAT_CALLS),
}
# The same beside a second operand that is known to be no NaN: one comparison instead of two.
BESIDE_NUMBERS = {
    "maximum": "{0} <= {1} ? {1} : {0}",
    "minimum": "{0} >= {1} ? {1} : {0}",
}
INTEGER_ROWS = {
    **ARITHMETIC,
    **{row: f"{{0}} {sign} {{1}}" for row, sign in BITWISE.items()},
    "bitwise_not": "~{0}",
    "negative": "-{0}",
    "square": "{0} * {0}",
    **_called(INTEGER_CALLS),
    "maximum": "{0} > {1} ? {0} : {1}",
    "minimum": "{0} < {1} ? {0} : {1}",
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), "{0}"),
    "isnan": "0",
    "isinf": "0",
    "isfinite": "1",
    "left_shift": "(u{type}){1} < {bits} ? (u{type}){0} << {1} : 0",
}
SIGNED_ROWS = {
    "absolute": "{0} < 0 ? -{0} : {0}",
    "sign": "({0} > 0) - ({0} < 0)",
    "right_shift": "{0} >> ((u{type}){1} < {bits} ? {1} : {last})",
}
UNSIGNED_ROWS = {
    "absolute": "{0}",
    "sign": "{0} != 0",
    "left_shift": "{1} < {bits} ? {0} << {1} : 0",
    "right_shift": "{1} < {bits} ? {0} >> {1} : 0",
}
BOOL_ROWS = {
    **{row: f"{{0}} {sign} {{1}}" for row, sign in BITWISE.items()},
    "bitwise_not": "!{0}",
    "maximum": "{0} | {1}",
    "minimum": "{0} & {1}",
    "isnan": "0",
    "isinf": "0",
    "isfinite": "1",
}
# For languages in which overflow of signed integers is undefined: computed as unsigned integers.
WRAPPING_ROWS = {
    **{
        row: f"(u{{type}}){{0}} {sign} (u{{type}}){{1}}"
        for row, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))
    },
    "negative": "0 - (u{type}){0}",
    "square": "(u{type}){0} * (u{type}){0}",
    "absolute": "{0} < 0 ? 0 - (u{type}){0} : (u{type}){0}",
}
# Integer primitives whose result C computes in int or unsigned, but that need no narrowing.
WITHIN_RANGE = ("maximum", "minimum", "floor", "ceil", "trunc", "round", "sign", "isnan", "isinf",
                "isfinite", "floordivide", "gcd", "mod", "power")  # fmt: skip


def _rows(dtype: str) -> Mapping[str, str]:
    if dtype == "bool":
        return BOOL_ROWS
    if dtype in FLOATS:
        return FLOAT_ROWS
    if dtype in SIGNED:
        return INTEGER_ROWS | SIGNED_ROWS
    return INTEGER_ROWS | UNSIGNED_ROWS


def tables() -> dict[str, str]:
    """Return all expressions, by table and primitive."""
    found = {
        "float": FLOAT_ROWS,
        "integer": INTEGER_ROWS,
        "signed": SIGNED_ROWS,
        "unsigned": UNSIGNED_ROWS,
        "bool": BOOL_ROWS,
    }
    return {f"{name} {row}": text for name, table in found.items() for row, text in table.items()}


_OWN_ROWS = tables()


def changed_rows() -> dict[str, str | None]:
    """Return the expressions that a user added or changed; None for removed ones.

    Keys are a table and a primitive.
    """
    now = tables()
    return {row: now.get(row) for row in now | _OWN_ROWS if now.get(row) != _OWN_ROWS.get(row)}


@cache
def accepts(name: str, dtype: str) -> bool:
    """Return True if the primitive has an expression for operands of ``dtype``.

    For ``where``, it is the dtype of the alternatives.
    """
    if name in ("where", "cast", "bitcast", "copy", "stop_gradient"):
        return dtype in C_TYPES
    if dtype in NARROW:
        return False
    return name in COMPARISONS or name in LOGICAL or name == "logical_not" or name in _rows(dtype)


def expression(
    name: str,
    dtypes: Sequence[str],
    result: str,
    operands: Sequence[str],
    wraps: bool = True,
) -> str:
    """Return the C expression of an elementwise primitive.

    ``dtypes`` are those of the operands, which are identifiers or literals and may be repeated in
    the expression. ``result`` is the dtype of the result, the target of a cast. ``wraps`` is True
    if signed integers of the language wrap around. Raises ``UnavailableError`` if there is no such
    expression.
    """
    dtype = dtypes[-1]
    if not accepts(name, dtype):
        raise UnavailableError(
            f"the C table has no row for {name!r} of {dtype}: add one to transformers/printing/"
            "scalars/c_expressions.py, or a lowering to transformers/lowering/rules/"
            "lowering_rules.py"
        )
    if name == "cast":
        return cast(dtype, result, operands[0])
    if name == "bitcast":
        return bitcast(dtype, result, operands[0])
    if name in ("copy", "stop_gradient"):
        return operands[0]
    if name == "where":
        if dtype == "bool":
            return "({0} & {1}) | (!{0} & {2})".format(*operands)
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    if name in COMPARISONS:
        return f" {COMPARISONS[name]} ".join(operands)
    if name == "logical_not":
        return f"!{operands[0]}"
    if name in LOGICAL:
        truths = [x if dtype == "bool" else f"({x} != 0)" for x in operands]
        return f" {LOGICAL[name]} ".join(truths)
    if not wraps and dtype in ("int32", "int64") and name in WRAPPING_ROWS:
        return f"({C_TYPES[dtype]})({WRAPPING_ROWS[name].format(*operands, **_words(dtype))})"
    rows = _rows(dtype)
    if name in BESIDE_NUMBERS and dtype in FLOATS and is_number(operands[1]):
        rows = BESIDE_NUMBERS
    text = rows[name].format(*operands, **_words(dtype))
    narrow = dtype in INTEGERS and named_dtype(dtype).itemsize < 4
    if (narrow or name == "left_shift") and dtype == result and name not in WITHIN_RANGE:
        return f"({C_TYPES[dtype]})({text})"
    return text


def calls(name: str, dtypes: Sequence[str], result: str) -> tuple[str, ...]:
    """Return the helper functions that an expression calls; arguments as for ``expression``."""
    dtype = dtypes[-1]
    if name == "cast":
        return cast_calls(dtype, result)
    if name == "bitcast":
        return tuple(helper for helper in _bitcast_helpers(dtype, result) if helper)
    if dtype == "bool" or name not in _rows(dtype):
        return ()
    helpers = FLOAT_CALLS if dtype in FLOATS else INTEGER_CALLS
    return (f"geon_{helpers[name]}_{SUFFIXES[dtype]}",) if name in helpers else ()


def arity(helper: str) -> int:
    """Return the number of operands of a helper of float primitives, such as ``geon_exp_f32``."""
    name = helper.removeprefix("geon_").rpartition("_")[0]
    return 2 if any(FLOAT_CALLS[row] == name for row in FLOAT_CALLS.keys() & OF_TWO) else 1


@cache
def _words(dtype: str) -> dict[str, Any]:
    bits = 8 * named_dtype(dtype).itemsize
    words = {"type": C_TYPES[dtype], "suffix": SUFFIXES[dtype], "bits": bits, "last": bits - 1}
    return words | {"c": "f" if dtype == "float32" else ""}


# Casts --------------------------------------------------------------------------------------------


def cast(source: str, target: str, x: str) -> str:
    """Return ``x`` of dtype ``source`` cast to ``target``.

    Floats are truncated to integers, clamped to the range, with 0 for NaN. A number is true if it
    is not 0. Integers wrap around.
    """
    if source == target:
        return x
    if target == "bool":
        return f"({x} & {BIT_MASKS[source]}) != 0" if source in NARROW else f"{x} != 0"
    if source == "bool" and target not in INTEGERS:
        return f"{x} ? {literal(1, target)} : {literal(0, target)}"
    helper = _cast_helper(source, target)
    if helper is None:
        return f"({C_TYPES[target]}){x}"
    if source in NARROW:
        return cast("float32", target, f"{helper}({x})")
    # As in ml_dtypes and NumPy: casts to bfloat16, and those of integers, round to float32 first.
    if target in NARROW and source != "float32" and not _is_exact(source, target):
        x = cast(source, "float32", x)
    return f"{helper}({x})"


def cast_calls(source: str, target: str) -> tuple[str, ...]:
    """Return the helper functions that a cast calls."""
    helper = _cast_helper(source, target)
    if helper is None:
        return ()
    if source in NARROW:
        return (*cast_calls("float32", target), helper)
    if target in NARROW and not _is_exact(source, target):
        return (helper, *cast_calls(source, "float32"))
    return (helper,)


def bitcast(source: str, target: str, x: str) -> str:
    """Return the bits of ``x`` of dtype ``source`` as ``target``; narrow floats are bits."""
    read, write = _bitcast_helpers(source, target)
    bits = f"{read}({x})" if read else x
    if write:
        return f"{write}({bits})"
    return bits if source == target else f"({C_TYPES[target]}){bits}"


def _bitcast_helpers(source: str, target: str) -> tuple[str, str]:
    """Return the helper functions that read and write the bits of floats; empty for others."""
    read = f"geon_bits_{SUFFIXES[source]}" if source in FLOATS and source != target else ""
    write = f"geon_of_bits_{SUFFIXES[target]}" if target in FLOATS and source != target else ""
    return read, write


def rounding(half: str) -> str:
    """Return the helper that rounds a float32 to this half dtype, and returns float32."""
    return f"geon_rounded_to_{SUFFIXES[half]}"


def _is_exact(source: str, target: str) -> bool:
    """Return True if a helper rounds float64 to a narrow float directly."""
    return source == "float64" and target in NARROW and target != "bfloat16"


def _cast_helper(source: str, target: str) -> str | None:
    """Return the helper function of a cast; None if C's own cast suffices."""
    if source == target or target == "bool" or (source == "bool" and target not in INTEGERS):
        return None
    if source in NARROW:
        return f"geon_{SUFFIXES[source]}_to_f32"
    if _is_exact(source, target):
        return f"geon_f64_to_{SUFFIXES[target]}"
    if target in NARROW:
        return f"geon_f32_to_{SUFFIXES[target]}"
    if source in WIDE and target in FLOATS:
        return f"geon_{SUFFIXES[source]}_to_{SUFFIXES[target]}"
    if source in FLOATS and target in INTEGERS:
        return f"geon_{SUFFIXES[source]}_to_{SUFFIXES[target]}"
    return None


# The elementwise primitive that combines two elements at one index, for each mode of scatter.
COMBINES = {"add": "add", "max": "maximum", "min": "minimum", "multiply": "multiply"}


def combine_expression(mode: str, dtype: str, operands: Sequence[str], wraps: bool = True) -> str:
    """Return the C expression that combines two elements like ``scatter``; halves in float32."""
    if dtype == "bool":
        row = "maximum" if mode in ("add", "max") else "minimum"
        return expression(row, (dtype, dtype), dtype, operands)
    if dtype not in HALVES:
        return expression(COMBINES[mode], (dtype, dtype), dtype, operands, wraps=wraps)
    wide = [cast(dtype, "float32", each) for each in operands]
    return cast(
        "float32", dtype, f"({expression(COMBINES[mode], ('float32',) * 2, 'float32', wide)})"
    )


# Literals -----------------------------------------------------------------------------------------


def is_number(text: str) -> bool:
    """Return True if a text is the literal of a finite float."""
    return text.strip("(-)")[:1].isdigit()


def literal(value: object, dtype: str) -> str:
    """Return the exact C literal of a number, which ``dtype`` must represent; narrow floats as
    bits.
    """
    number = rounded(np.asarray(value), named_dtype(dtype))[()]
    if dtype == "bool":
        return "1" if number else "0"
    if dtype in NARROW:
        bits = np.asarray(number).tobytes()[::-1]
        return f"0x{bits.hex()}"
    if dtype in FLOATS:
        return _float_literal(number, "f" if dtype == "float32" else "")
    return _integer_literal(int(number), dtype)


def _float_literal(number: Any, c: str) -> str:
    if math.isfinite(number):
        text = f"{abs(number)!s}{c}"
    else:
        name = "NAN" if math.isnan(number) else "INFINITY"
        text = name if c else f"(double){name}"
    return f"(-{text})" if np.signbit(number) else text


def _integer_literal(number: int, dtype: str) -> str:
    bits = 8 * named_dtype(dtype).itemsize
    if dtype in SIGNED and number == -(2 ** (bits - 1)):
        return f"INT{bits}_MIN"
    text = str(abs(number))
    if bits == 64:
        text = f"INT64_C({text})" if dtype == "int64" else f"UINT64_C({text})"
    elif dtype == "uint32":
        text += "u"
    return f"(-{text})" if number < 0 else text


# Primitives that do not vectorise: they call the C library, divide wide integers, or loop.
SERIAL = frozenset(("mod", "floordivide"))
LOOPS = frozenset(("gcd",))
SERIAL_FLOAT64 = frozenset("sin cos tan asinh acosh atanh".split())


def is_serial(name: str, dtypes: Sequence[str]) -> bool:
    """Return True if a loop over this primitive may not vectorise for operands of these dtypes."""
    wide = dtypes[0] in (*FLOATS, *HALVES, "int64", "uint64")
    if name in LOOPS:
        return True
    if (name in SERIAL and wide) or (name == "power" and dtypes[0] not in FLOATS + HALVES):
        return True
    if name == "sign" and dtypes[0].startswith("uint"):
        return True
    return name in SERIAL_FLOAT64 and dtypes[0] == "float64"


# Primitives with a function of a strip, whose results have the bits of the expression.
STRIP_FUNCTIONS = {
    ("exp", "float32"): "geon_exp_strip_f32",
    ("exp", "float64"): "geon_exp_strip_f64",
    ("sigmoid", "float32"): "geon_sigmoid_strip_f32",
    ("softplus", "float32"): "geon_softplus_strip_f32",
    ("softplus", "float64"): "geon_softplus_strip_f64",
    ("sin", "float32"): "geon_sin_strip_f32",
    ("sin", "float64"): "geon_sin_strip_f64",
    ("cos", "float32"): "geon_cos_strip_f32",
    ("cos", "float64"): "geon_cos_strip_f64",
    ("mod", "float32"): "geon_mod_strip_f32",
    ("mod", "float64"): "geon_mod_strip_f64",
    ("floordivide", "float32"): "geon_floor_divide_strip_f32",
    ("floordivide", "float64"): "geon_floor_divide_strip_f64",
}


def strip_function(name: str, dtype: str, source: str, rounded: bool = False) -> str | None:
    """Return the function that computes a primitive for a strip, or None.

    ``source`` is the dtype of its operand; ``rounded`` is True if the operand is itself a cast.
    """
    if name == "cast":
        known = "rounded_" if rounded and source == "float16" else ""
        casts = f"geon_{known}{SUFFIXES[source]}_to_{SUFFIXES[dtype]}_strip"
        return casts if {source, dtype} == {"float16", "float32"} else None
    return STRIP_FUNCTIONS.get((name, dtype))


def random_bits(dtype: str) -> str:
    """Return the function that computes random bits from seed, draw, call and position."""
    return f"geon_random_{SUFFIXES[dtype]}"
