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

import geon

from ...errors import ArgumentError
from ...op_graph.core.source_info import user_call
from ..positional.elementwise import functions_of

MAX_MULTIPLIED_POWER = 16  # largest integer exponent that is built from products, not by ``power``

# SymPy class, geon primitive. Primitives of two operands take any number of arguments in SymPy.
EXACT: dict[Any, Any] = {
    getattr(sympy, name): primitive
    for name, primitive in functions_of(
        """
        sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 exp sign floor erf erfc
        erfinv Abs:absolute ceiling:ceil Mod:mod Max:maximum Min:minimum loggamma:lgamma
        StrictLessThan:less LessThan:less_equal StrictGreaterThan:greater
        GreaterThan:greater_equal Equality:equal Unequality:not_equal And:logical_and
        Or:logical_or Xor:logical_xor Not:logical_not
        """
    ).items()
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
    return geon.power(x, exponent)


ROOTS: dict[float, Callable[[Any], Any]] = {
    0.5: geon.sqrt,
    -0.5: geon.rsqrt,
    -1: geon.reciprocal,
    1: lambda x: x,
    2: geon.square,
}


def _product_power(x: Any, exponent: int) -> Any:
    """Return ``x`` to a nonzero integer power, by squaring."""
    found: Any = None
    factor, rest = x, abs(exponent)
    while rest:
        if rest % 2:
            found = factor if found is None else geon.multiply(found, factor)
        rest //= 2
        if rest:
            factor = geon.square(factor)
    return geon.reciprocal(found) if exponent < 0 else found


def _gamma(x: Any) -> Any:
    """Return exp(lgamma(x)) with the sign of gamma: minus where x < 0 and floor(x) is odd."""
    negative = geon.logical_and(geon.less(x, 0), geon.equal(geon.mod(geon.floor(x), 2), 1))
    return geon.exp(geon.lgamma(x)) * geon.where(negative, -1.0, 1.0)


def _beta(x: Any, y: Any) -> Any:
    return _gamma(x) * _gamma(y) / _gamma(x + y)


def _binomial(n: Any, k: Any) -> Any:
    return _gamma(1 + n) / (_gamma(1 + k) * _gamma(1 + n - k))


def _logarithm(x: Any, base: Any = None) -> Any:
    return geon.log(x) if base is None else geon.log(x) / geon.log(base)


def _heaviside(x: Any, at_zero: Any = 0.5) -> Any:
    return geon.where(geon.equal(x, 0), at_zero, 0.5 + 0.5 * geon.sign(x))


def _sinc(x: Any) -> Any:
    zero = geon.equal(x, 0)
    nonzero = geon.where(zero, 1, x)
    return geon.where(zero, 1, geon.sin(nonzero) / nonzero)


def _polygamma(n: Any, x: Any) -> Any:
    if not isinstance(n, int):
        raise ArgumentError(
            f"{user_call('from_sympy')}: polygamma of order {n}, which is no integer; geon has "
            "integer orders, so give a number, such as polygamma(1, x)"
        )
    return geon.polygamma(n, x)


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
    return reduce(geon.logical_and, [geon.equal(x, y) for x, y in pairs])


def _then(first: Callable[..., Any], second: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: second(first(x))


def fold(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of any number of arguments that applies ``function`` from the left."""
    return lambda *values: reduce(function, values)


PLAIN = functions_of(
    "digamma airyai:airy_ai airyaiprime:airy_aip airybi:airy_bi airybiprime:airy_bip"
)
RECIPROCALS = functions_of("sec:cos csc:sin cot:tan sech:cosh csch:sinh coth:tanh")
OF_RECIPROCALS = functions_of("asec:acos acsc:asin acot:atan asech:acosh acsch:asinh acoth:atanh")
COMPOSED: dict[Any, Callable[..., Any]] = {
    **{getattr(sympy, name): f for name, f in PLAIN.items()},
    **{getattr(sympy, name): _then(f, geon.reciprocal) for name, f in RECIPROCALS.items()},
    **{getattr(sympy, name): _then(geon.reciprocal, f) for name, f in OF_RECIPROCALS.items()},
    sympy.Add: fold(geon.add),
    sympy.Pow: power,
    sympy.log: _logarithm,
    sympy.sinc: _sinc,
    sympy.frac: lambda x: x - geon.floor(x),
    sympy.Heaviside: _heaviside,
    sympy.erf2: lambda x, y: geon.erf(y) - geon.erf(x),
    sympy.gamma: _gamma,
    sympy.factorial: lambda x: _gamma(1 + x),
    sympy.beta: _beta,
    sympy.binomial: _binomial,
    sympy.trigamma: lambda x: geon.polygamma(1, x),
    sympy.polygamma: _polygamma,
    sympy.besseli: _bessel("besseli", geon.i0, geon.i1),
    sympy.besselj: _bessel("besselj", geon.j0, geon.j1),
    sympy.besselk: _bessel("besselk", geon.k0, geon.k1),
    sympy.bessely: _bessel("bessely", geon.y0, geon.y1),
    sympy.lowergamma: lambda a, x: geon.gammainc(a, x) * _gamma(a),
    sympy.uppergamma: lambda a, x: geon.gammaincc(a, x) * _gamma(a),
    sympy.re: lambda x: x,
    sympy.conjugate: lambda x: x,
    sympy.im: lambda x: 0 * x,
    sympy.UnevaluatedExpr: lambda x: x,
    sympy.ITE: geon.where,
    sympy.Nand: lambda *x: geon.logical_not(reduce(geon.logical_and, x)),
    sympy.Nor: lambda *x: geon.logical_not(reduce(geon.logical_or, x)),
    sympy.Implies: lambda x, y: geon.logical_or(geon.logical_not(x), y),
    sympy.Equivalent: _equivalent,
    cfunctions.expm1: geon.expm1,
    cfunctions.log1p: geon.log1p,
    cfunctions.exp2: lambda x: power(2, x),
    cfunctions.log2: lambda x: geon.log(x) * (1 / math.log(2)),
    cfunctions.log10: lambda x: geon.log(x) * (1 / math.log(10)),
    cfunctions.Sqrt: geon.sqrt,
    cfunctions.hypot: lambda x, y: geon.sqrt(geon.square(x) + geon.square(y)),
    cfunctions.fma: lambda x, y, z: x * y + z,
}
BY_CLASS: dict[Any, Callable[..., Any]] = {
    **{cls: fold(row) if cls in OPERAND_LISTS else row for cls, row in EXACT.items()},
    **COMPOSED,
}
BY_PRIMITIVE: dict[str, Any] = {row.name: cls for cls, row in EXACT.items()}
