"""Rules applied before differentiation that avoid overflow and cancellation.

Each rule replaces a pattern by an expression of equal value; ``rewriting/driver.py`` applies them.
"""

from __future__ import annotations

from ..op_graph import Op
from ..rows.elementwise import cast, log, subtract
from .driver import Rules, rewrite
from .matching import P, Replacement, Wildcard, is_of, over_axes, strip_rounding

stable = Rules("stabilise")
x = Wildcard("x")


stable.replace("log_of_exp", Replacement(P.log(P.exp(x)), x))


@stable.on("log")
def log_of_exp_over(op: Op) -> Op | None:
    """log(exp(z) / s) is z - log(s), also below casts to half, which then round only the result."""
    ratio = strip_rounding(op.args[0])
    if is_of(ratio, "divide") and is_of(ratio.args[0], "exp"):
        result = subtract.apply(ratio.args[0].args[0], log.apply(ratio.args[1]))
        return over_axes(cast(result, op.dtype), op)
    return None


stable.replace("log_of_sigmoid", Replacement(P.log(P.sigmoid(x)), -P.softplus(-x)))
stable.replace("log_of_one_minus_sigmoid", Replacement(P.log(1 - P.sigmoid(x)), -P.softplus(x)))
stable.replace("log_of_ndtr", Replacement(P.log(P.ndtr(x)), P.log_ndtr(x)))
stable.replace(
    "one_minus_erf",
    Replacement(1 - P.erf(x), P.erfc(x)),
    Replacement(1 - P.erfc(x), P.erf(x)),
    Replacement(1 - P.ndtr(x), P.ndtr(-x)),
)
stable.replace("one_plus_erf", Replacement(1 + P.erf(x), P.erfc(-x)))
stable.replace("log1p_of_exp", Replacement(P.log1p(P.exp(x)), P.softplus(x)))
stable.replace("log_of_one_plus_exp", Replacement(P.log(1 + P.exp(x)), P.softplus(x)))

STABLE = stable.done()


def has_stable_form(op: Op) -> bool:
    """Return True if a rule of this stage replaces ``op`` itself."""
    return any(rule(op) is not None for rule in STABLE.rules.get(op.primitive.name, ()))


def stabilise(x: Op) -> Op:
    """Return ``x`` with numerically unstable expressions replaced by stable ones."""
    return rewrite([x], STABLE, {})[0]
