"""Special functions: erf and its relatives, lgamma, and polygamma of any order.

Targets that lack one of them use the formulas of ``gamma_formulas`` and ``erf_formulas``.
Derivatives are written so that nothing cancels near a limit and no infinity is multiplied by zero:
with ``exp_product`` for exp(-x^2), whose square would be rounded, and with ``erfcx``, which neither
vanishes nor cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np

from ...errors import DerivativeError
from ..building.constants import as_tensor
from ..building.elementwise_build import elementwise
from ..building.weak import in_dtype
from ..core.argument_hints import public
from ..core.primitive import Inferred, Primitive, require
from ..op_graph import Tensor, make
from ..rows.elementwise import absolute, less, less_equal, minimum, where
from ..values.attribute_types import Count, as_int
from ..values.dtypes import FLOAT32, kind

if TYPE_CHECKING:
    from ..building.typing import OpKeywords, TensorLike

Array = np.ndarray[Any, Any]


def precise(one: Callable[..., Any]) -> Callable[..., Array]:
    """Return the NumPy reference of a function of mpmath numbers: 160 bits, rounded once.

    NaN arguments give NaN; ``one`` must handle infinities.
    """

    def value(*args: float) -> float:
        import mpmath

        if any(math.isnan(arg) for arg in args):
            return math.nan
        with mpmath.workprec(160):
            return float(one(*(mpmath.mpf(float(arg)) for arg in args)))

    return lambda *arrays: np.asarray(np.vectorize(value, otypes=[np.float64])(*arrays))


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _lgamma(x: Array) -> Array:
    def one(value: float) -> float:
        if math.isinf(value) or (value <= 0 and value == math.floor(value)):
            return math.inf
        try:
            return math.lgamma(value)
        except OverflowError:
            return math.inf

    return np.asarray(np.vectorize(one, otypes=[np.float64])(x))


def _erfc(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erfc, otypes=[np.float64])(x))


def _exp_product(x: Any, y: Any) -> Any:
    import mpmath

    return mpmath.nan if mpmath.isnan(x * y) else mpmath.exp(min(max(x * y, -2000), 2000))


def _erfcx(x: Any) -> Any:
    import mpmath

    if x > 1e8:
        return 1 / (x * mpmath.sqrt(mpmath.pi))
    return mpmath.inf if x < -30 else mpmath.exp(x * x) * mpmath.erfc(x)


def normal_below(x: Any) -> Any:
    """Return the normal distribution function of an mpmath number."""
    import mpmath

    return mpmath.mpf(x > 0) if abs(x) > 1e4 else mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def _log_ndtr(x: Any) -> Any:
    import mpmath

    if mpmath.isinf(x):
        return min(x, mpmath.mpf(0))
    if x < -1e4:
        return -x * x / 2 - mpmath.log(-x) - mpmath.log(2 * mpmath.pi) / 2 - 1 / x**2
    return mpmath.log1p(-normal_below(-x)) if x > 0 else mpmath.log(normal_below(x))


def _erfinv(x: Any) -> Any:
    import mpmath

    if abs(x) >= 1:
        return x * mpmath.inf if abs(x) == 1 else mpmath.nan
    below = mpmath.sqrt(-mpmath.log1p(-x * x) * mpmath.pi / 4)  # within a tenth
    if abs(x) < 0.5:
        return mpmath.sign(x) * mpmath.findroot(lambda y: mpmath.erf(y) - abs(x), below)
    rest = mpmath.log1p(-abs(x))
    return mpmath.sign(x) * mpmath.findroot(lambda y: mpmath.log(mpmath.erfc(y)) - rest, below)


def _bell(x: Tensor) -> Tensor:
    """Return 2 / sqrt(pi) exp(-x^2)."""
    return (2 / math.sqrt(math.pi)) * exp_product(-x, x)


def density(x: Tensor) -> Tensor:
    """Return the standard normal density."""
    return (1 / math.sqrt(2 * math.pi)) * exp_product(-0.5 * x, x)


def _hazard(x: Tensor) -> Tensor:
    """Return the density over the distribution function: the derivative of ``log_ndtr``."""
    below = less_equal.apply(x, 0)
    far = less.apply(x, -(2.0**30))  # there it equals -x, and erfcx is near underflow
    # Each form is computed only where it is valid: elsewhere it, or its derivative, is 0 / 0.
    low, high = where(below, where(far, 0, x), 0), minimum(where(below, 0, x), 64)
    scaled = math.sqrt(2 / math.pi) / erfcx((-1 / math.sqrt(2)) * low)
    return where(far, -x, where(below, scaled, density(high) / ndtr(high)))


def _erfinv_derivative(out: Tensor, x: Tensor) -> Tensor:
    """Return sqrt(pi) / 2 exp(out^2), from erfcx(out) / (1 - |x|) for large out.

    The second form does not magnify the error of ``out``.
    """
    a = absolute(x)
    near = less.apply(a, 0.5)
    y = minimum(absolute(out), 1000)  # out is infinite at |x| = 1, where erfcx would be 0
    middle = where(near, out, 0)
    far = erfcx(where(near, 1, y)) / (1 - where(near, 0, a))
    return (math.sqrt(math.pi) / 2) * where(near, exp_product(middle, middle), far)


exp_product = elementwise(
    "exp_product",
    "exp(x * y), with a product that is not rounded; for the derivatives of ``geon.erf``.",
    precise(_exp_product),
    (lambda out, x, y: y * out, lambda out, x, y: x * out),
    arity=2,
    rule="float",
    sympy="exp(x * y)",
    cost="expensive",
)
erf = elementwise(
    "erf",
    "The error function 2/sqrt(pi) times the integral of exp(-t*t) from 0 to x.",
    _erf,
    (lambda out, x: _bell(x),),
    rule="float",
    sympy="erf(x)",
    cost="expensive",
)
erfc = elementwise(
    "erfc",
    "1 - erf(x), with all digits where that is nearly 0.",
    _erfc,
    (lambda out, x: -_bell(x),),
    rule="float",
    sympy="erfc(x)",
    cost="expensive",
)
erfcx = elementwise(
    "erfcx",
    "exp(x*x) * erfc(x), which neither vanishes nor, for x > 0, overflows.",
    precise(_erfcx),
    (lambda out, x: erfcx_derivative(1, x),),
    rule="float",
    sympy="exp(x ** 2) * erfc(x)",
    cost="expensive",
)
ndtr = elementwise(
    "ndtr",
    "The standard normal distribution function, erfc(-x / sqrt(2)) / 2.",
    precise(normal_below),
    (lambda out, x: density(x),),
    rule="float",
    sympy="erfc(-x / sqrt(2)) / 2",
    cost="expensive",
)
log_ndtr = elementwise(
    "log_ndtr",
    "The logarithm of the standard normal distribution function, however far out.",
    precise(_log_ndtr),
    (lambda out, x: _hazard(x),),
    rule="float",
    sympy="log(erfc(-x / sqrt(2)) / 2)",
    cost="expensive",
)
erfinv = elementwise(
    "erfinv",
    "The inverse of erf; infinite at 1 and -1, NaN beyond.",
    precise(_erfinv),
    (_erfinv_derivative,),
    rule="float",
    sympy="erfinv(x)",
    domain=((-0.9, 0.9),),
    cost="expensive",
)
lgamma = elementwise(
    "lgamma",
    "log |gamma(x)|; infinite at 0 and the negative integers.",
    _lgamma,
    (lambda out, x: polygamma(0, x),),
    rule="float",
    sympy="loggamma(x)",
    domain=((0.5, 4.0),),
)


class OfOrder(NamedTuple):
    """The order ``n`` of a derivative."""

    n: Count


def _float_infer(args: tuple[Any, ...], attrs: OfOrder) -> Inferred:
    require(kind(args[0].dtype) == "f", "a special function of {}", args[0].dtype)
    return args[0].axes, args[0].dtype, ()


POLYGAMMA = Primitive(
    "polygamma",
    "elementwise",
    "The derivative of order n of digamma, itself the derivative of lgamma (n = 0).",
    reference=lambda op, x: _polygamma_reference(op.attrs.n, x),
    partials=(lambda out, x: polygamma(out.attrs.n + 1, x),),
    attributes=OfOrder,
    arity=1,
    infer=_float_infer,
)


@public
def polygamma(n: int, x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the polygamma function of integer order ``n`` >= 0; order 0 is digamma.

    ``x`` is a float tensor. Raises ``DerivativeError`` for a negative order.
    """
    x, n = as_tensor(x), as_int(n)
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise DerivativeError(
            f"polygamma of {x} (made at {x.line_info}): the order must be an integer of at "
            f"least 0, not {n!r}; order 0 is geon.digamma"
        )
    if kind(x.dtype) != "f":
        x = in_dtype(x, FLOAT32)
    return make(POLYGAMMA, (x,), (n,))


@public
def digamma(x: TensorLike, **notes: Unpack[OpKeywords]) -> Tensor:
    """Return the derivative of ``lgamma``."""
    return polygamma(0, x)


def _polygamma_pole(n: int, value: float) -> float:
    """Return the value at 0 and the negative integers.

    digamma has one-sided limits of both signs there, so it is NaN, or an infinity by the sign of
    zero.
    """
    if n:
        return math.inf if n % 2 else -math.inf
    return math.nan if value else -math.copysign(math.inf, value)


WORKING_BITS = 256  # bits: near a root the reflection's terms cancel to 2**-53 of their size


def _polygamma_reference(n: int, x: Array) -> Array:
    """Return polygamma of order n, computed in 256 bits; equally fast for negative x.

    For x < 0 it uses the reflection, DLMF 5.15.6: polygamma(n, x) = (-1)^n polygamma(n, 1 - x) - pi
    d^n/dx^n cot(pi x).
    """
    from mpmath.ctx_mp import MPContext

    context = MPContext()  # the precision of mpmath's global context is shared by all threads
    context.prec = WORKING_BITS
    cotangent = _cotangent_derivative(n)

    def one(value: float) -> float:
        if math.isnan(value) or value == -math.inf:
            return math.nan
        if value <= 0 and value == math.floor(value):
            return _polygamma_pole(n, value)
        exact = context.mpf(float(value))
        if value > 0:
            return float(context.psi(n, exact))
        cosine, sine = context.cospi(exact), context.sinpi(exact)
        derivative = context.polyval(cotangent[::-1], cosine / sine) * context.pi ** (n + 1)
        return float((-1) ** n * context.psi(n, 1 - exact) - derivative)

    return np.asarray(np.vectorize(one, otypes=[np.float64])(x))


def _cotangent_derivative(n: int) -> list[int]:
    """Return the n-th derivative of cot t as a polynomial in c = cot t, lowest power first.

    By cot' = -(1 + cot^2) the derivative of a power is a sum of two powers.
    """
    powers = [0, 1]
    for _ in range(n):
        derivative = [-k * a for k, a in enumerate(powers)][1:]
        powers = [a + b for a, b in zip([*derivative, 0, 0], [0, 0, *derivative], strict=True)]
    return powers


def _erfcx_derivative_reference(n: int, x: Array) -> Array:
    import mpmath

    def one(value: Any) -> Any:
        if mpmath.isinf(value) or value < -30:
            return 0.0 if value > 0 else (-1) ** n * mpmath.inf
        scale = (-2) ** n * mpmath.factorial(n)
        return scale * mpmath.exp(value**2) * _repeated_integral(n, value)

    return precise(one)(x)


def _repeated_integral(n: int, x: Any) -> Any:
    """Return i^n erfc(x) by its upward recurrence, with enough digits for the cancellation."""
    import mpmath

    with mpmath.workprec(400 + 40 * n + 4 * n * max(0, int(mpmath.log(abs(x) + 1, 2)))):
        before, value = 2 / mpmath.sqrt(mpmath.pi) * mpmath.exp(-x * x), mpmath.erfc(x)
        for k in range(1, n + 1):
            before, value = value, (before / 2 - x * value) / k
        return value


ERFCX_DERIVATIVE = Primitive(
    "erfcx_derivative",
    "elementwise",
    "The derivative of order n of ``geon.erfcx``, n >= 1.",
    reference=lambda op, x: _erfcx_derivative_reference(op.attrs.n, x),
    partials=(lambda out, x: erfcx_derivative(out.attrs.n + 1, x),),
    attributes=OfOrder,
    arity=1,
    infer=_float_infer,
)


def erfcx_derivative(n: int, x: Any) -> Tensor:
    """Return the derivative of ``erfcx`` of order ``n`` >= 1 of a float tensor."""
    x = as_tensor(x)
    return make(ERFCX_DERIVATIVE, (x,), (n,), weak=False)
