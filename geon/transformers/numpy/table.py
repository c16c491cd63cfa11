"""NumPy table: for each elementwise primitive, the statements that compute it into ``{o}``.

``{0}``, ``{1}``, ... are the operands, which broadcast to the result's axes; ``rt`` is the runtime
module. Primitives whose text depends on axes or attributes are in ``kernels``.
"""

from __future__ import annotations

import re

from ...op_graph.core.primitive import PRIMITIVES


def _ufunc(name: str, arity: int) -> str:
    operands = ", ".join(f"{{{k}}}" for k in range(arity))
    return f"np.{name}({operands}, out={{o}})"


UNARY = {
    name: name
    for name in (
        "negative absolute sign square sqrt exp expm1 log log1p sin cos tan sinh cosh tanh isnan"
        " isinf isfinite logical_not reciprocal floor ceil trunc"
    ).split()
} | {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "bitwise_not": "invert",
    "round": "rint",
}
BINARY = {
    name: name
    for name in (
        "add subtract multiply divide power maximum minimum less less_equal greater greater_equal"
        " equal not_equal gcd logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor"
    ).split()
} | {"floordivide": "floor_divide", "mod": "remainder", "atan2": "arctan2"}

TABLE: dict[str, tuple[str, ...]] = {
    **{row: (_ufunc(name, 1),) for row, name in UNARY.items()},
    **{row: (_ufunc(name, 2),) for row, name in BINARY.items()},
    "sigmoid": ("rt.sigmoid({0}, {o})",),
    "weighted_product": ("rt.weighted_product({0}, {1}, {o})",),
    "rsqrt": ("np.sqrt({0}, out={o})", "np.reciprocal({o}, out={o})"),
    "softplus": ("np.logaddexp({0}, {zero}, out={o})",),
    "left_shift": ("rt.left_shift({0}, {1}, {o})",),
    "right_shift": ("rt.right_shift({0}, {1}, {o})",),
    "copy": ("np.copyto({o}, {0})",),
}
# Primitives whose float text does not work for integers.
INTEGER_TABLE: dict[str, tuple[str, ...]] = {
    "power": ("rt.integer_power({0}, {1}, {o})",),
    **dict.fromkeys(("floor", "ceil", "trunc", "round"), ("np.copyto({o}, {0})",)),
}
REDUCTIONS = {
    "sum": "np.add.reduce({0}, axis={axis}, dtype={dtype}, out={o})",
    "prod": "np.multiply.reduce({0}, axis={axis}, dtype={dtype}, out={o})",
    "max": "np.maximum.reduce({0}, axis={axis}, out={o})",
    "first_max": "np.maximum.reduce({0}, axis={axis}, out={o})",
    "min": "np.minimum.reduce({0}, axis={axis}, out={o})",
    "any": "np.logical_or.reduce({0}, axis={axis}, out={o})",
    "all": "np.logical_and.reduce({0}, axis={axis}, out={o})",
}


def _read_first(lines: tuple[str, ...]) -> tuple[int, ...]:
    """Return the operands that only the first statement reads, which may then overwrite them."""
    later = "".join(lines[1:])
    found = {int(k) for k in re.findall(r"\{(\d)\}", lines[0]) if f"{{{k}}}" not in later}
    return tuple(sorted(found))


# Operands whose memory the result may take: each element is read before it is written. A cast is
# not among them, because NumPy casts within one memory by way of a copy.
IN_PLACE: dict[str, tuple[int, ...]] = {
    **{name: row.in_place for name, row in PRIMITIVES.items() if row.in_place},
    **{name: _read_first(lines) for name, lines in TABLE.items()},
    "where": (2,),
}
# Bytes per element of the operand that NumPy allocates internally while the primitive runs.
HIDDEN = {"argsort": 8, "top_k": 16}
