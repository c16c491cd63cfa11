"""Scalar C expressions of the elementwise rows, for every dtype: the one table of all C targets.

An expression takes identifiers or literals and is wrapped in parentheses by whoever uses it inside
another. It means what the row's NumPy reference means, bit for bit but for the functions of
``elementary``, whose bounds are theirs. float16 and bfloat16 are bits, which ``cast``, ``copy``,
``where`` and ``stop_gradient`` take; all else computes on them as float32, by lowering.

Compilers vectorise the expressions where operands are local variables. Of a bool in memory gcc 12
wants ``_Bool x = bytes[i] != 0``, with ``bytes`` a ``const uint8_t *``: it vectorises no load of
``_Bool``.

Compiled with wrap-around of signed integers (``-fwrapv``) and no fused multiply-adds of the
compiler's own (``-ffp-contract=off``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....errors import UnavailableError
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
FLOATS = ("float32", "float64")
WIDE = ("int64", "uint64")
NUMBERS = INTEGERS + FLOATS
# Rows that are a function of elementary.
ELEMENTARY_ROWS = (
    "exp expm1 log log1p sigmoid softplus sin cos tan asin acos atan sinh cosh tanh asinh acosh"
    " atanh atan2 erf erfc erfcx ndtr log_ndtr erfinv exp_product sigmoid_slope gelu gelu_slope"
    " gelu_tanh gelu_tanh_slope silu silu_slope"
).split()
OF_TWO = ("atan2", "exp_product", "floordivide", "mod", "power")
# Rows whose expression is a call of a helper function, and what that is called.
FLOAT_CALLS = {
    "floordivide": "floor_divide",
    "mod": "mod",
    "power": "pow",
    **{row: row for row in ELEMENTARY_ROWS},
}
INTEGER_CALLS = {"floordivide": "floor_divide", "mod": "mod", "power": "power"}


def _called(helpers: Mapping[str, str]) -> dict[str, str]:
    """The expressions of rows that are calls."""
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
# ``{c}`` ends the name of a builtin and a number: f for float.
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
    # The second of two that are equal, and of no order: as vector units choose. NaN wins.
    "maximum": "(({0} > {1}) | ({0} != {0})) ? {0} : {1}",
    "minimum": "(({0} < {1}) | ({0} != {0})) ? {0} : {1}",
    "isnan": "{0} != {0}",
    "isinf": "fabs{c}({0}) == INFINITY",
    "isfinite": "fabs{c}({0}) < INFINITY",
    **_called(FLOAT_CALLS),
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
# For languages whose signed integers have no overflow: they wrap around as unsigned ones do.
WRAPPING_ROWS = {
    **{
        row: f"(u{{type}}){{0}} {sign} (u{{type}}){{1}}"
        for row, sign in (("add", "+"), ("subtract", "-"), ("multiply", "*"))
    },
    "negative": "0 - (u{type}){0}",
    "square": "(u{type}){0} * (u{type}){0}",
    "absolute": "{0} < 0 ? 0 - (u{type}){0} : (u{type}){0}",
}
# Results of the integer rows that C computes in int or unsigned need no narrowing here.
WITHIN_RANGE = ("maximum", "minimum", "floor", "ceil", "trunc", "round", "sign", "isnan", "isinf",
                "isfinite", "floordivide", "mod", "power")  # fmt: skip


def _rows(dtype: str) -> Mapping[str, str]:
    if dtype == "bool":
        return BOOL_ROWS
    if dtype in FLOATS:
        return FLOAT_ROWS
    if dtype in SIGNED:
        return INTEGER_ROWS | SIGNED_ROWS
    return INTEGER_ROWS | UNSIGNED_ROWS


def tables() -> dict[str, str]:
    """All expressions, by table and row."""
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
    """Return the rows that a user added or changed, by table and row; None for one taken away."""
    now = tables()
    return {row: now.get(row) for row in now | _OWN_ROWS if now.get(row) != _OWN_ROWS.get(row)}


@cache
def accepts(name: str, dtype: str) -> bool:
    """Whether the row has an expression whose operands (of ``where``: the chosen) are ``dtype``."""
    if name in ("where", "cast", "copy", "stop_gradient"):
        return dtype in C_TYPES
    if dtype in HALVES:
        return False
    return name in COMPARISONS or name in LOGICAL or name == "logical_not" or name in _rows(dtype)


def expression(
    name: str,
    dtypes: Sequence[str],
    result: str,
    operands: Sequence[str],
    attrs: tuple[Any, ...] = (),
    wraps: bool = True,
) -> str:
    """The C expression of an elementwise row.

    ``dtypes`` are those of the operands, which are identifiers or literals and may be repeated in
    the expression; ``result`` is the row's dtype. A row with attributes reads none of ``attrs``: a
    cast's target is ``result``. Signed integers wrap around by themselves where the language
    ``wraps``. Raises ``UnavailableError`` where there is no such row.
    """
    dtype = dtypes[-1]
    if not accepts(name, dtype):
        raise UnavailableError(
            f"the C table has no row for {name!r} of {dtype}: add one to transformers/printing/"
            "c_expressions.py, or a lowering to transformers/lowering/rules/lowering_rules.py"
        )
    if name == "cast":
        return cast(dtype, result, operands[0])
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
    text = _rows(dtype)[name].format(*operands, **_words(dtype))
    narrow = dtype in INTEGERS and named_dtype(dtype).itemsize < 4
    if (narrow or name == "left_shift") and dtype == result and name not in WITHIN_RANGE:
        return f"({C_TYPES[dtype]})({text})"
    return text


def calls(name: str, dtypes: Sequence[str], result: str) -> tuple[str, ...]:
    """The helper functions that the expression of a row calls, for the arguments of that."""
    dtype = dtypes[-1]
    if name == "cast":
        return cast_calls(dtype, result)
    if dtype == "bool" or name not in _rows(dtype):
        return ()
    helpers = FLOAT_CALLS if dtype in FLOATS else INTEGER_CALLS
    return (f"geon_{helpers[name]}_{SUFFIXES[dtype]}",) if name in helpers else ()


@cache
def _words(dtype: str) -> dict[str, Any]:
    bits = 8 * named_dtype(dtype).itemsize
    words = {"type": C_TYPES[dtype], "suffix": SUFFIXES[dtype], "bits": bits, "last": bits - 1}
    return words | {"c": "f" if dtype == "float32" else ""}


# Casts --------------------------------------------------------------------------------------------


def cast(source: str, target: str, x: str) -> str:
    """``x`` of dtype ``source`` in ``target``.

    Floats become integers by truncation, held at the ends of the range, and 0 for NaN; a number is
    true when it is not 0; integers wrap around.
    """
    if source == target:
        return x
    if target == "bool":
        return f"({x} & 0x7fff) != 0" if source in HALVES else f"{x} != 0"
    if source == "bool" and target not in INTEGERS:
        return f"{x} ? {literal(1, target)} : {literal(0, target)}"
    helper = _cast_helper(source, target)
    if helper is None:
        return f"({C_TYPES[target]}){x}"
    if source in HALVES:
        return cast("float32", target, f"{helper}({x})")
    # As ml_dtypes and NumPy: all but float64 to float16 is rounded to float32 first.
    if target in HALVES and source != "float32" and (source, target) != EXACT_HALF:
        x = cast(source, "float32", x)
    return f"{helper}({x})"


def cast_calls(source: str, target: str) -> tuple[str, ...]:
    """The helper functions that a cast calls."""
    helper = _cast_helper(source, target)
    if helper is None:
        return ()
    if source in HALVES:
        return (*cast_calls("float32", target), helper)
    return (helper, *cast_calls(source, "float32")) if target in HALVES else (helper,)


def rounding(half: str) -> str:
    """The helper function that rounds a float32 as a cast to this half does, and stays float32."""
    return f"geon_rounded_to_{SUFFIXES[half]}"


EXACT_HALF = ("float64", "float16")


def _cast_helper(source: str, target: str) -> str | None:
    """The helper function that takes a value of ``source``; None where C's own cast serves."""
    if source == target or target == "bool" or (source == "bool" and target not in INTEGERS):
        return None
    if source in HALVES:
        return f"geon_{SUFFIXES[source]}_to_f32"
    if (source, target) == EXACT_HALF:
        return "geon_f64_to_half"
    if target in HALVES:
        return f"geon_f32_to_{SUFFIXES[target]}"
    if source in WIDE and target in FLOATS:
        return f"geon_{SUFFIXES[source]}_to_{SUFFIXES[target]}"
    if source in FLOATS and target in INTEGERS:
        return f"geon_{SUFFIXES[source]}_to_{SUFFIXES[target]}"
    return None


# The elementwise row that combines two elements of a place: in each mode of scatter.
COMBINES = {"add": "add", "max": "maximum", "min": "minimum", "multiply": "multiply"}


def combined(mode: str, dtype: str, operands: Sequence[str], wraps: bool = True) -> str:
    """The C expression of two elements combined as ``scatter`` does: halves in float32."""
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


def literal(value: object, dtype: str) -> str:
    """The exact C literal of a number in ``dtype``, which must hold it; halves as their bits."""
    number = np.asarray(value).astype(named_dtype(dtype))[()]
    if dtype == "bool":
        return "1" if number else "0"
    if dtype in HALVES:
        return f"0x{int(number.view(np.uint16)):04x}"
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


# Rows that compilers make no vectors of: they call the C library, divide wide integers, or loop.
SERIAL = frozenset(("mod", "floordivide"))
SERIAL_FLOAT64 = frozenset("sin cos tan asinh acosh atanh".split())


def is_serial(name: str, dtypes: Sequence[str]) -> bool:
    """Whether a loop over this row, for operands of these dtypes, may be one element at a time."""
    wide = dtypes[0] in (*FLOATS, *HALVES, "int64", "uint64")
    if (name in SERIAL and wide) or (name == "power" and dtypes[0] not in FLOATS + HALVES):
        return True
    if name == "sign" and dtypes[0].startswith("uint"):
        return True
    return name in SERIAL_FLOAT64 and dtypes[0] == "float64"


def is_wide_cast(source: str, target: str) -> bool:
    """Whether a cast is between floats and 64-bit integers, which SSE2 makes one by one."""
    return any(
        a.endswith("int64") and "float" in b for a, b in ((source, target), (target, source))
    )


# Rows with a function of all lanes of a strip, which has the bits of the row's expression. That of
# a sum adds an array to a ``GEON_STRIP_<suffix>``.
STRIP_FUNCTIONS = {
    ("add", "float32"): "geon_add_strip_f32",
    ("add", "float64"): "geon_add_strip_f64",
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
    """The function that computes a row of a dtype for all lanes of a strip, where there is one.

    ``source`` is the dtype of what it takes, which is ``rounded`` where it is itself a cast.
    """
    if name == "cast":
        known = "rounded_" if rounded and source == "float16" else ""
        casts = f"geon_{known}{SUFFIXES[source]}_to_{SUFFIXES[dtype]}_strip"
        return casts if {source, dtype} == {"float16", "float32"} else None
    return STRIP_FUNCTIONS.get((name, dtype))


def random_bits(dtype: str) -> str:
    """The function that makes bits of a seed, a draw, a call and a position: uint32 or uint64."""
    return f"geon_random_{SUFFIXES[dtype]}"
