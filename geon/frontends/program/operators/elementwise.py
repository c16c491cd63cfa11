"""Elementwise operators: geon's own functions under the names of the source system, activations."""

from __future__ import annotations

import inspect
from typing import Any

import geon

from ....op_graph.building.elementwise_build import Elementwise
from ...positional.elementwise import elementwise
from ...positional.programs import cast
from ...positional.reshaping import unsqueeze
from ...positional.values import Value, position
from .rows import Function, Row, with_attributes

# Names of the source system for functions of geon; the others keep geon's.
NAMES = {
    "absolute": "abs", "add": "elementwise_add", "subtract": "elementwise_sub",
    "multiply": "elementwise_mul", "divide": "elementwise_div", "maximum": "elementwise_max",
    "minimum": "elementwise_min", "power": "elementwise_pow", "mod": "elementwise_mod",
    "floordivide": "elementwise_floordiv", "less": "less_than", "greater": "greater_than",
}  # fmt: skip
# Composites that are functions of elements alone, of one operand and of two.
COMPOSITES = {
    1: "angle cbrt conj deg2rad digamma exp2 frac gelu imag log10 log2 rad2deg real relu round"
       " signbit silu sinc spherical_j0 stop_gradient",
    2: "copysign float_power fmax fmin fmod heaviside hypot lcm logaddexp logaddexp2 nextafter"
       " trunc_divide xlog1py xlogy zeta",
}  # fmt: skip
# Functions with a derivative of 0, or with results that are no floats.
STEPS = set("""
    ceil equal floor floordivide gcd greater greater_equal heaviside lcm left_shift less less_equal
    nextafter not_equal right_shift round sign signbit stop_gradient trunc trunc_divide
""".split())  # fmt: skip
SLOTS = {"betainc": "A B X", 1: "X", 2: "X Y", 3: "Condition X Y"}


def aligned(x: Value, y: Value, axis: int) -> Value:
    """Return ``y`` with its positions at those of ``x`` from ``axis`` on; -1 aligns the last."""
    rest = len(x.shape) - len(y.shape)
    after = 0 if axis == -1 or rest <= 0 else rest - position(axis, len(x.shape))
    return y if after <= 0 else unsqueeze(y, range(len(y.shape), len(y.shape) + after))


def by_arity(f: Function, arity: int) -> Function:
    """Return the function of an operator that applies ``f`` to each element of its operands."""
    if arity == 2:
        return lambda x, y, *, axis=-1: elementwise(f, x, aligned(x, y, axis))
    return lambda *values: elementwise(f, *values)


def own_rows() -> list[Row]:
    """Return a row for each elementwise function of geon."""
    arities = {name: n for n, names in COMPOSITES.items() for name in names.split()}
    arities |= {n: f.arity for n, f in vars(geon).items() if isinstance(f, Elementwise)}
    found = []
    for name, arity in sorted(arities.items()):
        f = getattr(geon, name)
        smooth = name not in STEPS and not name.startswith(("is", "logical", "bitwise"))
        comment = (inspect.getdoc(f) or "").partition("\n")[0]
        slots = SLOTS.get(name, SLOTS[arity])
        row = Row(NAMES.get(name, name), by_arity(f, arity), comment, slots, gradient=smooth)
        found.append(row)
    return found


def of_elements(f: Function) -> Function:
    """Return the function of an operator that applies ``f``, with attributes, to elements."""

    def build(*values: Value, **attributes: Any) -> Value:
        def apply(*tensors: geon.Tensor) -> geon.Tensor:
            found: geon.Tensor = f(*tensors, **attributes)
            return found

        return elementwise(apply, *values)

    return with_attributes(build, f)


where, clipped = geon.where, geon.clip
# A function of a tensor with attributes, and its formula.
ACTIVATIONS: dict[str, tuple[Function, str]] = {
    "soft_relu": (lambda x, *, threshold=40.0: geon.softplus(clipped(x, -threshold, threshold)),
        "log(1 + exp(x)) of x clipped to -threshold and threshold"),
    "stanh": (lambda x, *, scale_a=0.67, scale_b=1.7159: scale_b * geon.tanh(scale_a * x),
        "scale_b * tanh(scale_a * x)"),
    "softshrink": (lambda x, *, lambda_=0.5: geon.sign(x) * geon.relu(abs(x) - lambda_),
        "x moved by lambda_ towards 0 where it is beyond, else 0"),
    "hard_shrink": (lambda x, *, threshold=0.5: where(abs(x) > threshold, x, 0),
        "x where it is beyond -threshold or threshold, else 0"),
    "thresholded_relu": (lambda x, *, threshold=1.0: where(x > threshold, x, 0),
        "x where it is above threshold, else 0"),
    "hard_sigmoid": (lambda x, *, slope=0.2, offset=0.5: clipped(slope * x + offset, 0, 1),
        "slope * x + offset clipped to 0 and 1"),
    "elu": (lambda x, *, alpha=1.0: geon.elu(x, alpha),
        "x where it is positive, else alpha * (exp(x) - 1)"),
    "leaky_relu": (lambda x, *, alpha=0.02: geon.leaky_relu(x, alpha),
        "x where it is positive, else alpha * x"),
    "selu": (lambda x, *, scale=1.0507009873554805, alpha=1.6732632423543772:
        scale * geon.elu(x, alpha), "scale times the ELU of x"),
    "swish": (lambda x, *, beta=1.0: x * geon.sigmoid(beta * x), "x * sigmoid(beta * x)"),
    "mish": (lambda x: x * geon.tanh(geon.softplus(x)), "x * tanh(log(1 + exp(x)))"),
    "relu6": (lambda x, *, threshold=6.0: clipped(x, 0, threshold), "x clipped to 0 and threshold"),
    "brelu": (lambda x, *, t_min=0.0, t_max=24.0: clipped(x, t_min, t_max),
        "x clipped to t_min and t_max"),
    "softsign": (lambda x: x / (1 + abs(x)), "x / (1 + |x|)"),
    "logsigmoid": (lambda x: -geon.softplus(-x), "log(sigmoid(x))"),
    "tanh_shrink": (lambda x: x - geon.tanh(x), "x - tanh(x)"),
    "scale": (lambda x, *, scale=1.0, bias=0.0, bias_after_scale=True:
        scale * x + bias if bias_after_scale else scale * (x + bias),
        "scale * x + bias, or scale * (x + bias)"),
    "pow": (lambda x, *, factor=1.0: geon.power(x, factor), "x to the power of factor"),
    "increment": (lambda x, *, step=1.0: geon.cast(x + geon.cast(step, x.dtype), x.dtype),
        "x + step in the dtype of x"),
    "polygamma": (lambda x, *, n=0: geon.polygamma(n, x), "the n-th derivative of digamma"),
    "logit": (lambda x, *, eps=0.0: geon.logit(x, eps or None), "log(x / (1 - x))"),
    "nan_to_num": (lambda x, *, nan=0.0: geon.nan_to_num(x, nan), "x without NaN and infinities"),
}  # fmt: skip
ROWS = [
    *own_rows(),
    *[Row(n, of_elements(f), f"Return {text}.") for n, (f, text) in ACTIVATIONS.items()],
    Row("minus", by_arity(geon.subtract, 2), "Return X - Y.", "X Y"),
    Row("isclose", of_elements(lambda x, y, *, rtol=1e-5, atol=1e-8, equal_nan=False: geon.isclose(
        x, y, rtol, atol, equal_nan=equal_nan)),
        "Return True where |X - Y| is at most atol + rtol * |Y|.", "X Y", gradient=False),
    Row("ldexp", lambda x, n: elementwise(geon.ldexp, x, cast(n, "int32")), "Return X times 2**N.",
        "X N"),
]  # fmt: skip
