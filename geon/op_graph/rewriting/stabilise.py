"""Rules applied before differentiation that avoid overflow and cancellation.

Each rule is one pattern and one replacement of equal value; ``rewriting/driver.py`` applies them.
"""

from __future__ import annotations

from ..building.constants import is_constant
from ..op_graph import Op
from ..rows.elementwise import cast, log, softplus, subtract
from ..special.special_functions import erf, erfc, log_ndtr, ndtr
from .driver import Rules, rewrite
from .matching import is_of, over_axes, strip_rounding, tensor

stable = Rules("stabilise")


@stable.on("log")
def log_of_exp(op: Op) -> Op | None:
    """log(exp(x)) is x."""
    inner = op.args[0]
    return over_axes(inner.args[0], op) if is_of(inner, "exp") else None


@stable.on("log")
def log_of_exp_over(op: Op) -> Op | None:
    """log(exp(z) / s) is z - log(s), also below casts to half, which then round only the result."""
    ratio = strip_rounding(op.args[0])
    if is_of(ratio, "divide") and is_of(ratio.args[0], "exp"):
        made = subtract.apply(ratio.args[0].args[0], log.apply(ratio.args[1]))
        return over_axes(cast(made, op.dtype), op)
    return None


@stable.on("log")
def log_of_sigmoid(op: Op) -> Op | None:
    """log(sigmoid(x)) is -softplus(-x)."""
    inner = op.args[0]
    if not is_of(inner, "sigmoid"):
        return None
    return over_axes(-softplus(-tensor(inner.args[0])), op)


@stable.on("log")
def log_of_one_minus_sigmoid(op: Op) -> Op | None:
    """log(1 - sigmoid(x)) is -softplus(x)."""
    inner = op.args[0]
    if (
        is_of(inner, "subtract")
        and is_constant(inner.args[0], 1)
        and is_of(inner.args[1], "sigmoid")
    ):
        return over_axes(-softplus(tensor(inner.args[1].args[0])), op)
    return None


@stable.on("log")
def log_of_ndtr(op: Op) -> Op | None:
    """log(ndtr(x)) is log_ndtr(x)."""
    inner = op.args[0]
    return over_axes(log_ndtr(tensor(inner.args[0])), op) if is_of(inner, "ndtr") else None


@stable.on("subtract")
def one_minus_erf(op: Op) -> Op | None:
    """1 - erf(x) is erfc(x), 1 - erfc(x) is erf(x) and 1 - ndtr(x) is ndtr(-x)."""
    one, inner = op.args
    if is_constant(one, 1):
        if is_of(inner, "erf"):
            return over_axes(erfc(tensor(inner.args[0])), op)
        if is_of(inner, "erfc"):
            return over_axes(erf(tensor(inner.args[0])), op)
        if is_of(inner, "ndtr"):
            return over_axes(ndtr(-tensor(inner.args[0])), op)
    return None


@stable.on("add")
def one_plus_erf(op: Op) -> Op | None:
    """1 + erf(x) is erfc(-x)."""
    for one, inner in (op.args, op.args[::-1]):
        if is_constant(one, 1) and is_of(inner, "erf"):
            return over_axes(erfc(-tensor(inner.args[0])), op)
    return None


@stable.on("log1p")
def log1p_of_exp(op: Op) -> Op | None:
    """log1p(exp(x)) is softplus(x)."""
    inner = op.args[0]
    return over_axes(softplus(tensor(inner.args[0])), op) if is_of(inner, "exp") else None


@stable.on("log")
def log_of_one_plus_exp(op: Op) -> Op | None:
    """log(1 + exp(x)) is softplus(x)."""
    inner = op.args[0]
    if is_of(inner, "add"):
        for one, other in (inner.args, inner.args[::-1]):
            if is_constant(one, 1) and is_of(other, "exp"):
                return over_axes(softplus(tensor(other.args[0])), op)
    return None


STABLE = stable.done()


def has_stable_form(op: Op) -> bool:
    """Return True if a rule of this stage replaces ``op`` itself."""
    return any(rule(op) is not None for rule in STABLE.rules.get(op.primitive.name, ()))


def stabilise(x: Op) -> Op:
    """Return ``x`` with numerically unstable expressions replaced by stable ones."""
    return rewrite([x], STABLE, {})[0]
