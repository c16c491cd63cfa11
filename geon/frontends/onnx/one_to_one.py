"""Elementwise operators of ONNX that are one primitive of geon, both ways."""

from __future__ import annotations

from ..positional.elementwise import COMMON

# The primitive of each operator. Those whose kernels lack a dtype are written by formulas.
PRIMITIVES = {name.capitalize(): name for name in COMMON} | dict(
    pair.split(":")
    for pair in """
        Abs:absolute Add:add And:logical_and BitwiseAnd:bitwise_and BitwiseNot:bitwise_not
        BitwiseOr:bitwise_or BitwiseXor:bitwise_xor Div:divide Equal:equal Greater:greater
        GreaterOrEqual:greater_equal IsNaN:isnan Less:less LessOrEqual:less_equal Max:maximum
        Min:minimum Mul:multiply Neg:negative Not:logical_not Or:logical_or Reciprocal:reciprocal
        Round:round Sub:subtract Where:where Xor:logical_xor
    """.split()
)
