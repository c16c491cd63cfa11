"""Table of the SymPy classes that geon has a function for, one row per class.

``EXACT`` has the classes with one primitive of the same meaning and serves both directions.
``COMPOSED`` has those that several primitives make; it serves the direction to geon. Conventions
where SymPy has none for floats, or another one:

- ``Heaviside(x)`` at 0 is its second argument, 1/2 by default; ``sign(0)`` is 0;
- ``Abs`` has derivative 0 at 0, and ``Max`` and ``Min`` share the derivative of a tie equally;
- real functions are NaN where SymPy's value is complex, such as ``sqrt(-1)``;
- ``gamma`` and functions of it are infinite at poles, where SymPy has ``zoo``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import sympy
from sympy.codegen import cfunctions

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from ...op_graph.rows import elementwise as basic
from ...op_graph.rows import logic, trigonometry
from ...op_graph.special import bessel, incomplete
from ...op_graph.special import special_functions as special

MAX_MULTIPLIED_POWER = 16  # largest integer exponent that is built from products, not by ``power``

# SymPy class, geon primitive. Primitives of two operands take any number of arguments in SymPy.
EXACT: dict[Any, Any] = {
    sympy.sin: trigonometry.sin,
    sympy.cos: trigonometry.cos,
    sympy.tan: trigonometry.tan,
    sympy.asin: trigonometry.asin,
    sympy.acos: trigonometry.acos,
    sympy.atan: trigonometry.atan,
    sympy.sinh: trigonometry.sinh,
    sympy.cosh: trigonometry.cosh,
    sympy.tanh: trigonometry.tanh,
    sympy.asinh: trigonometry.asinh,
    sympy.acosh: trigonometry.acosh,
    sympy.atanh: trigonometry.atanh,
    sympy.atan2: trigonometry.atan2,
    sympy.exp: basic.exp,
    sympy.Abs: basic.absolute,
    sympy.sign: basic.sign,
    sympy.floor: basic.floor,
    sympy.ceiling: basic.ceil,
    sympy.Mod: basic.mod,
    sympy.Max: basic.maximum,
    sympy.Min: basic.minimum,
    sympy.erf: special.erf,
    sympy.erfc: special.erfc,
    sympy.erfinv: special.erfinv,
    sympy.loggamma: special.lgamma,
    sympy.StrictLessThan: basic.less,
    sympy.LessThan: basic.less_equal,
    sympy.StrictGreaterThan: basic.greater,
    sympy.GreaterThan: basic.greater_equal,
    sympy.Equality: basic.equal,
    sympy.Unequality: basic.not_equal,
    sympy.And: logic.logical_and,
    sympy.Or: logic.logical_or,
    sympy.Xor: logic.logical_xor,
    sympy.Not: logic.logical_not,
}
OPERAND_LISTS = (sympy.Max, sympy.Min, sympy.And, sympy.Or, sympy.Xor, sympy.Add, sympy.Mul)


def power(x: Any, exponent: Any) -> Any:
    """Return ``x`` to a power: square, reciprocal, roots and products for such constants.

    ``exponent`` is a Python number or a tensor.
    """
    if isinstance(exponent, (int, float)):
        special_case = ROOTS.get(exponent)
        if special_case is not None:
            return special_case(x)
        whole = int(exponent) if math.isfinite(exponent) else 0
        if whole == exponent and 0 < abs(whole) <= MAX_MULTIPLIED_POWER:
            return _product_power(x, whole)
    return basic.power(x, exponent)


ROOTS: dict[float, Callable[[Any], Any]] = {
    0.5: basic.sqrt,
    -0.5: basic.rsqrt,
    -1: basic.reciprocal,
    1: lambda x: x,
    2: basic.square,
}


def _product_power(x: Any, exponent: int) -> Any:
    """Return ``x`` to a nonzero integer power, by squaring."""
    found: Any = None
    factor, rest = x, abs(exponent)
    while rest:
        if rest % 2:
            found = factor if found is None else basic.multiply(found, factor)
        rest //= 2
        if rest:
            factor = basic.square(factor)
    return basic.reciprocal(found) if exponent < 0 else found


def _gamma(x: Any) -> Any:
    """Return exp(lgamma(x)) with the sign of gamma: minus where x < 0 and floor(x) is odd."""
    negative = logic.logical_and(basic.less(x, 0), basic.equal(basic.mod(basic.floor(x), 2), 1))
    return basic.exp(special.lgamma(x)) * basic.where(negative, -1.0, 1.0)


def _beta(x: Any, y: Any) -> Any:
    return _gamma(x) * _gamma(y) / _gamma(x + y)


def _binomial(n: Any, k: Any) -> Any:
    return _gamma(1 + n) / (_gamma(1 + k) * _gamma(1 + n - k))


def _logarithm(x: Any, base: Any = None) -> Any:
    return basic.log(x) if base is None else basic.log(x) / basic.log(base)


def _heaviside(x: Any, at_zero: Any = 0.5) -> Any:
    return basic.where(basic.equal(x, 0), at_zero, 0.5 + 0.5 * basic.sign(x))


def _sinc(x: Any) -> Any:
    zero = basic.equal(x, 0)
    nonzero = basic.where(zero, 1, x)
    return basic.where(zero, 1, trigonometry.sin(nonzero) / nonzero)


def _polygamma(n: Any, x: Any) -> Any:
    if not isinstance(n, int):
        raise ArgumentError(
            f"{user_call('from_sympy')}: polygamma of order {n}, which is no integer; geon has "
            "integer orders, so give a number, such as polygamma(1, x)"
        )
    return special.polygamma(n, x)


def _bessel(name: str, *orders: Any) -> Callable[[Any, Any], Any]:
    """Return a Bessel function of SymPy by geon's functions of orders 0 and 1."""

    def function(n: Any, x: Any) -> Any:
        if n not in (0, 1):
            raise ArgumentError(
                f"{user_call('from_sympy')}: {name} of order {n}; geon has the orders 0 and 1, so "
                "write it in these by the recurrence of Bessel functions"
            )
        return orders[int(n)](x)

    return function


def _equivalent(*values: Any) -> Any:
    pairs = zip(values, values[1:], strict=False)
    return reduce(logic.logical_and, [basic.equal(x, y) for x, y in pairs])


def fold(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of any number of arguments that applies ``function`` from the left."""
    return lambda *values: reduce(function, values)


COMPOSED: dict[Any, Callable[..., Any]] = {
    sympy.Add: fold(basic.add),
    sympy.Pow: power,
    sympy.log: _logarithm,
    sympy.sec: lambda x: basic.reciprocal(trigonometry.cos(x)),
    sympy.csc: lambda x: basic.reciprocal(trigonometry.sin(x)),
    sympy.cot: lambda x: basic.reciprocal(trigonometry.tan(x)),
    sympy.sech: lambda x: basic.reciprocal(trigonometry.cosh(x)),
    sympy.csch: lambda x: basic.reciprocal(trigonometry.sinh(x)),
    sympy.coth: lambda x: basic.reciprocal(trigonometry.tanh(x)),
    sympy.asec: lambda x: trigonometry.acos(basic.reciprocal(x)),
    sympy.acsc: lambda x: trigonometry.asin(basic.reciprocal(x)),
    sympy.acot: lambda x: trigonometry.atan(basic.reciprocal(x)),
    sympy.asech: lambda x: trigonometry.acosh(basic.reciprocal(x)),
    sympy.acsch: lambda x: trigonometry.asinh(basic.reciprocal(x)),
    sympy.acoth: lambda x: trigonometry.atanh(basic.reciprocal(x)),
    sympy.sinc: _sinc,
    sympy.frac: lambda x: x - basic.floor(x),
    sympy.Heaviside: _heaviside,
    sympy.erf2: lambda x, y: special.erf(y) - special.erf(x),
    sympy.gamma: _gamma,
    sympy.factorial: lambda x: _gamma(1 + x),
    sympy.beta: _beta,
    sympy.binomial: _binomial,
    sympy.digamma: special.digamma,
    sympy.trigamma: lambda x: special.polygamma(1, x),
    sympy.polygamma: _polygamma,
    sympy.airyai: bessel.airy_ai,
    sympy.airyaiprime: bessel.airy_aip,
    sympy.airybi: bessel.airy_bi,
    sympy.airybiprime: bessel.airy_bip,
    sympy.besseli: _bessel("besseli", bessel.i0, bessel.i1),
    sympy.besselj: _bessel("besselj", bessel.j0, bessel.j1),
    sympy.besselk: _bessel("besselk", bessel.k0, bessel.k1),
    sympy.bessely: _bessel("bessely", bessel.y0, bessel.y1),
    sympy.lowergamma: lambda a, x: incomplete.gammainc(a, x) * _gamma(a),
    sympy.uppergamma: lambda a, x: incomplete.gammaincc(a, x) * _gamma(a),
    sympy.re: lambda x: x,
    sympy.conjugate: lambda x: x,
    sympy.im: lambda x: 0 * x,
    sympy.UnevaluatedExpr: lambda x: x,
    sympy.ITE: basic.where,
    sympy.Nand: lambda *x: logic.logical_not(reduce(logic.logical_and, x)),
    sympy.Nor: lambda *x: logic.logical_not(reduce(logic.logical_or, x)),
    sympy.Implies: lambda x, y: logic.logical_or(logic.logical_not(x), y),
    sympy.Equivalent: _equivalent,
    cfunctions.expm1: basic.expm1,
    cfunctions.log1p: basic.log1p,
    cfunctions.exp2: lambda x: power(2, x),
    cfunctions.log2: lambda x: basic.log(x) * (1 / math.log(2)),
    cfunctions.log10: lambda x: basic.log(x) * (1 / math.log(10)),
    cfunctions.Sqrt: basic.sqrt,
    cfunctions.hypot: lambda x, y: basic.sqrt(basic.square(x) + basic.square(y)),
    cfunctions.fma: lambda x, y, z: x * y + z,
}
BY_CLASS: dict[Any, Callable[..., Any]] = {
    **{cls: fold(row) if cls in OPERAND_LISTS else row for cls, row in EXACT.items()},
    **COMPOSED,
}
BY_PRIMITIVE: dict[str, Any] = {row.name: cls for cls, row in EXACT.items()}
