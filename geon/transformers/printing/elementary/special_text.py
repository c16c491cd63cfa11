"""C text of the special functions, printed from their formulas in ``erf_formulas``.

A formula runs once for each dtype, on values that print themselves: each operation becomes a
statement of the function, by the C table of scalar expressions. The text is straight-line code that
vectorises, as in ``f32``. Written by hand is only what reads or makes bits: exponentials whose
power of two is applied later, and rounding errors where instructions cannot fuse.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ....op_graph.special import erf_formulas
from ..scalars import c_expressions
from ..scalars.c_types import C_TYPES, SUFFIXES
from .f32 import _EXP as EXP_F32
from .f64 import _EXP as EXP_F64
from .polynomials import definitions_of, horner, of_type

__all__ = ["TAILS"]

# SHIFT is 1.5 2^23 + 162 or 1.5 2^52 + 1088, of which half is the exponent of the second factor: 0
# at EXP_END. RAISED is 1.5 2^23 + 40 or 1.5 2^52 + 80: powers are 2^40 and 2^80 times too large, so
# that the product with x is normal where the result is not.
_TEXT = """
GEON_INLINE @real geon_exp_parts_@s(@real a, @real low, @real *first, @real *second) {
    @real shifted = GEON_FMA_@K(a, @LOG2E, @SHIFT);
    @real k = shifted - @SHIFT;
    @real r = GEON_FMA_@K(k, @LN2_LOW, GEON_FMA_@K(k, @LN2_HIGH, a)) + low;
    @real p = EXP_@K<r>;
    @uint n = geon_bits_@s(shifted);
    @uint half = n >> 1;
    *first = geon_of_bits_@s((n - half + @EXPONENT) << @MANTISSA);
    *second = geon_of_bits_@s(half << @MANTISSA);
    return r * GEON_FMA_@K(p, r, 1.0@);
}

GEON_INLINE @real geon_held_@s(@real x, @uint lowest) {
    @uint bits = geon_bits_@s(x);
    return geon_of_bits_@s(bits < lowest ? bits : lowest);
}

GEON_INLINE @real geon_exp_raised_@s(@real a) {
    @real shifted = GEON_FMA_@K(a, @LOG2E, @RAISED);
    @real k = shifted - @RAISED;
    @real r = GEON_FMA_@K(k, @LN2_LOW, GEON_FMA_@K(k, @LN2_HIGH, a));
    @real p = EXP_@K<r>;
    p = GEON_FMA_@K(GEON_FMA_@K(p, r, 1.0@), r, 1.0@);
    return geon_of_bits_@s(geon_bits_@s(p) + (geon_bits_@s(shifted) << @MANTISSA));
}

GEON_INLINE @real geon_exp2_raised_@s(@real a, @real w, @real low) {
    @real shifted = GEON_FMA_@K(a, w, @RAISED);
    @real k = shifted - @RAISED;
    @real r = geon_product_error_@s(a, w, k);
    r = GEON_FMA_@K(a, low, r);
    @real p = EXP2_@K<r>;
    p = GEON_FMA_@K(p, r, 1.0@);
    return geon_of_bits_@s(geon_bits_@s(p) + (geon_bits_@s(shifted) << @MANTISSA));
}
"""

_SINGLE = """
GEON_INLINE float geon_sum_error_f32(float x, float y, float z, float sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fmaf(x, y, z - sum);
#else
    return (float)((double)x * (double)y + ((double)z - (double)sum));
#endif
}

GEON_INLINE float geon_product_error_f32(float x, float y, float product) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fmaf(x, y, -product);
#else
    return (float)((double)x * (double)y - (double)product);
#endif
}
"""

# Without fused instructions the factors are split in parts of 26 and 27 bits (Dekker, 1971).
_DOUBLE = """
GEON_INLINE double geon_sum_error_f64(double x, double y, double z, double sum) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fma(x, y, z - sum);
#else
    double product = x * y;
    return (product + (z - sum)) + geon_product_error_f64(x, y, product);
#endif
}

GEON_INLINE double geon_product_error_f64(double x, double y, double product) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return fma(x, y, -product);
#else
    double a = geon_of_bits_f64(geon_bits_f64(x) & 0xfffffffff8000000u);
    double b = geon_of_bits_f64(geon_bits_f64(y) & 0xfffffffff8000000u);
    double cross = a * (y - b) + (x - a) * b;
    return ((a * b - product) + cross) + (x - a) * (y - b);
#endif
}
"""

_WORDS = {
    "float32": {"EXPONENT": "92", "SHIFT": "12583074.0f", "RAISED": "12582952.0f",
                "LOG2E": "1.44269502f", "LN2_HIGH": "(-0.693359375f)",
                "LN2_LOW": "2.12194440e-4f"},
    "float64": {"EXPONENT": "958", "SHIFT": "6755399441056832.0",
                "RAISED": "6755399441055824.0", "LOG2E": "1.4426950408889634",
                "LN2_HIGH": "(-0.6931471803691238)", "LN2_LOW": "(-1.9082149292705877e-10)"},
}  # fmt: skip
PRINTED = [name for name in erf_formulas.__all__ if name != "erfcx_derivative"]
RAISED_ONE = {"float32": 2.0**40, "float64": 2.0**80}


@cache
def _literal(number: str, dtype: str) -> str:
    return c_expressions.literal(float(number), dtype)


class _CText:
    """A number or a condition of a formula, as C text."""

    def __init__(self, text: str, printer: _Printer) -> None:
        self.text, self.apply = text, printer.apply


def _operator(method: str, row: str) -> None:
    """Give values an operator that prints a primitive, with numbers on either side."""
    setattr(_CText, f"__{method}__", lambda x, *others: x.apply(row, x, *others))
    setattr(_CText, f"__r{method}__", lambda x, other: x.apply(row, other, x))


for _method, _row in {
    **{"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "neg": "negative"},
    **{"lt": "less", "gt": "greater", "le": "less_equal", "ge": "greater_equal"},
}.items():
    _operator(_method, _row)


class _Printer:
    """The namespace of formulas that prints a function; equal expressions are computed once."""

    wide = False

    def __init__(self, dtype: str) -> None:
        self.precision, self.type, self.suffix = dtype, C_TYPES[dtype], SUFFIXES[dtype]
        self.lines: list[str] = []
        self.known: dict[str, _CText] = {}

    def __getattr__(self, row: str) -> Any:
        return lambda *operands: self.apply(row, *operands)

    def text(self, x: Any) -> str:
        """Return an operand: a name, a condition or a literal."""
        return x.text if isinstance(x, _CText) else _literal(repr(x), self.precision)

    def let(self, text: str) -> _CText:
        """Return the variable that has the value of an expression."""
        if text not in self.known:
            name = f"v{len(self.known)}"
            self.lines.append(f"{self.type} {name} = {text};")
            self.known[text] = _CText(name, self)
        return self.known[text]

    def apply(self, row: str, *operands: Any) -> _CText:
        """Return a primitive of operands; a comparison is part of the expression that reads it."""
        dtypes = [self.precision] * len(operands)
        text = c_expressions.expression(row, dtypes, self.precision, [*map(self.text, operands)])
        return _CText(text, self) if row in c_expressions.COMPARISONS else self.let(text)

    def call(self, helper: str, *arguments: Any) -> _CText:
        """Return the value of a function of ``_TEXT``."""
        return self.let(f"geon_{helper}_{self.suffix}({', '.join(map(self.text, arguments))})")

    def polynomial(self, x: _CText, coefficients: Sequence[float]) -> _CText:
        return self.let(horner(self.suffix.upper(), x.text, coefficients))

    def fused(self, *operands: Any) -> _CText:
        return self.let(f"GEON_FMA_{self.suffix.upper()}({', '.join(map(self.text, operands))})")

    def product_error(self, x: Any, y: Any, product: Any) -> _CText:
        return self.call("product_error", x, y, product)

    def fused_error(self, x: Any, y: Any, z: Any, total: Any) -> _CText:
        return self.call("sum_error", x, y, z, total)

    def exp_parts(self, a: Any, low: Any) -> tuple[_CText, _CText, _CText]:
        factors = [_CText(f"f{len(self.known)}_{k}", self) for k in (1, 2)]
        self.lines.append(f"{self.type} {', '.join(each.text for each in factors)};")
        addresses = [_CText(f"&{each.text}", self) for each in factors]
        return self.call("exp_parts", a, low, *addresses), factors[0], factors[1]

    def exp_raised(self, a: Any) -> tuple[_CText, float]:
        return self.call("exp_raised", a), RAISED_ONE[self.precision]

    def exp2_raised(self, a: Any, w: Any, low: Any) -> tuple[_CText, float]:
        return self.call("exp2_raised", a, w, low), RAISED_ONE[self.precision]

    def at_least(self, x: Any, end: float) -> _CText:
        """Return a negative bound, or x above it, by their bits: one instruction."""
        bits = np.dtype(self.precision).type(end).view(f"uint{64 if self.suffix == 'f64' else 32}")
        return self.call("held", x, _CText(f"0x{bits:x}u", self))

    def signed(self, size: Any, x: Any) -> _CText:
        library = "copysignf" if self.precision == "float32" else "copysign"
        return self.let(f"{library}({self.text(size)}, {self.text(x)})")


def _printed(name: str, dtype: str) -> str:
    """Return the C function of a formula."""
    formula, printer = getattr(erf_formulas, name), _Printer(dtype)
    *parameters, _ = formula.__code__.co_varnames[: formula.__code__.co_argcount]
    result = formula(*(_CText(each, printer) for each in parameters), printer)
    head = ", ".join(f"{printer.type} {each}" for each in parameters)
    head = f"GEON_INLINE {printer.type} geon_{name}_{printer.suffix}({head}) {{"
    return "\n    ".join([head, *printer.lines, f"return {result.text};"]) + "\n}\n"


class _Printed(dict[str, str]):
    """The C functions of formulas, by name; each is printed when it is first read."""

    def __getitem__(self, helper: str) -> str:
        return super().__getitem__(helper) or self._print(helper)

    def _print(self, helper: str) -> str:
        name, _, suffix = helper.removeprefix("geon_").rpartition("_")
        self[helper] = _printed(name, "float32" if suffix == "f32" else "float64")
        return self[helper]


def _by_hand(dtype: str, exponential: Sequence[float], more: str) -> dict[str, str]:
    """Return the functions that the printed ones call."""
    text = more.strip() + "\n\n" + _TEXT.strip()
    # (2^r - 1) / r in r, from (e^r - 1 - r) / r^2
    exp2 = [math.log(2), *(c * math.log(2) ** (k + 2) for k, c in enumerate(exponential))]
    return definitions_of(of_type(text, dtype, _WORDS[dtype]), EXP=exponential, EXP2=exp2)


TAILS: ChainMap[str, str] = ChainMap(
    _Printed((f"geon_{name}_{s}", "") for s in ("f32", "f64") for name in PRINTED),
    _by_hand("float32", EXP_F32, _SINGLE) | _by_hand("float64", EXP_F64, _DOUBLE),
)
