"""``Expr``: a value of the ONNX graph with Python's operators, each of which writes nodes.

ONNX allows more types than ONNX Runtime's CPU has kernels for. An operator on a dtype without a
kernel is computed in a wider one: integers modulo a power of two and casts between integers keep
all bits, and halves are rounded once, by the cast back. The table of kernels was made by creating a
session for each operator and dtype with ONNX Runtime 1.32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....op_graph.values.dtypes import (
    BOOL,
    DTYPES,
    INT64,
    UINT64,
    DType,
    kind,
    name_of,
    named_dtype,
)
from ..tensors import element_type_of
from .graph import NodeWriter

WIDE = "int32 int64 float32 float64"
NUMBERS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
SOME = "int8 int32 int64 uint8 float32 float64"
BITS = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
# Operators that are not listed take every dtype.
KERNELS: dict[str, frozenset[str]] = {
    name: frozenset(dtypes.split())
    for names, dtypes in {
        "Add Sub Mul Div Mod Less LessOrEqual Greater GreaterOrEqual": NUMBERS,
        "Abs Sign": NUMBERS,
        "Neg": "int8 int16 int32 int64 float16 float32 float64",
        "Equal": f"bool {NUMBERS}",
        "Max Min": f"{SOME} uint32 uint64",
        "Where": f"{SOME} uint32 float16",
        "Pow": "float32 float64",
        "Sqrt Exp Log Sin Cos Tanh Sigmoid Reciprocal Floor Ceil Round": "float32 float64",
        "Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Erf Gelu Softplus": "float32",
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot": BITS,
        "BitShift": "uint8 uint32 uint64",
        "ReduceSum ReduceProd CumSum": WIDE,
        "MatMul": WIDE,
        "Gemm Softmax LogSoftmax MaxPool": "float32 float64",
        "AveragePool": "float32 float64",
        "ReduceMax ReduceMin": f"bool {SOME}",
        "ArgMax ArgMin": SOME,
        "TopK": f"{SOME} int16",
        "Expand": " ".join(name for name in DTYPES if name != "bfloat16"),
        "Pad": " ".join(name for name in DTYPES if name not in ("int16", "uint16")),
    }.items()
    for name in names.split()
}
CARRIERS = {
    "bool": ("uint8", "int32"),
    "int8": ("int32", "int64"),
    "int16": ("int32", "int64"),
    "uint8": ("int32", "int64"),
    "uint16": ("uint32", "int32", "int64"),
    "int32": ("int64",),
    "uint32": ("int64",),
    "uint64": ("int64",),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float32": ("float64",),
}
SIGN_BIT = np.iinfo(np.int64).min
SMALL = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", "IsNaN", "IsInf"})
# Operators whose results depend on the order of numbers, not on their bits alone.
ORDERED = frozenset({*SMALL, "Max", "Min", "ReduceMax", "ReduceMin", "TopK", "ArgMax", "ArgMin"})


def carrier(operator: str, dtype: DType) -> DType:
    """Return the dtype in which an operator computes on ``dtype``: itself if there is a kernel.

    Raises ``KeyError`` if there is none; the rows of the exporter do not ask for such a dtype.
    """
    taken = KERNELS.get(operator)
    name = name_of(dtype)
    if taken is None or name in taken:
        return dtype
    for wider in CARRIERS.get(name, ()):
        if wider in taken:
            return named_dtype(wider)
    raise KeyError(f"no dtype carries {name} in {operator}")


Binary = Callable[["Expr", Any], "Expr"]


def _binary(operator: str) -> Binary:
    return lambda self, other: self.run(operator, other)


def _reflected(operator: str) -> Binary:
    return lambda self, other: self.of(other).run(operator, self)


def _logic(name: str) -> Binary:
    """Return an operator of bools, or of the bits of integers."""
    return lambda self, other: self.run(name if self.dtype == BOOL else f"Bitwise{name}", other)


@dataclass(frozen=True, eq=False)
class Expr:
    """A value by its name in the graph, and its dtype."""

    graph: NodeWriter
    name: str
    dtype: DType

    def number(self, value: Any) -> Expr:
        """Return a scalar constant of this dtype."""
        with np.errstate(over="ignore"):
            array = np.asarray(value).astype(self.dtype)
        return Expr(self.graph, self.graph.constant(array), self.dtype)

    def of(self, value: Any) -> Expr:
        """Return ``value``, a number as a constant of this dtype."""
        return value if isinstance(value, Expr) else self.number(value)

    def cast(self, dtype: DType) -> Expr:
        """Return the value in another dtype, by ONNX's Cast."""
        if dtype == self.dtype:
            return self
        made = self.graph.node("Cast", [self.name], to=element_type_of(dtype))
        return Expr(self.graph, made, dtype)

    def carried(self, dtype: DType, ordered: bool) -> Expr:
        """Return the value in the dtype that carries it; ``ordered`` keeps the order of uint64."""
        if ordered and self.dtype == UINT64 and dtype == INT64:
            return self.cast(INT64).run("BitwiseXor", int(SIGN_BIT))
        return self.cast(dtype)

    def uncarried(self, dtype: DType, ordered: bool) -> Expr:
        """Return a value in a carrier as one of ``dtype``."""
        if ordered and dtype == UINT64 and self.dtype == INT64:
            return self.run("BitwiseXor", int(SIGN_BIT)).cast(UINT64)
        return self.cast(dtype)

    def run(self, operator: str, *others: Any, dtype: DType | None = None, **attrs: Any) -> Expr:
        """Return an operator of this value and others, by a kernel that exists.

        Others are values and numbers of its dtype, or names of values of other dtypes. ``dtype`` is
        that of the result, if not the one of the operands.
        """
        ordered = operator in ORDERED
        wide = carrier(operator, self.dtype)
        names = [
            each if isinstance(each, str) else self.of(each).carried(wide, ordered).name
            for each in (self, *others)
        ]
        made = self.graph.node(operator, names, **attrs)
        if operator in SMALL:
            return Expr(self.graph, made, BOOL)
        if dtype is not None:
            return Expr(self.graph, made, dtype)
        return Expr(self.graph, made, wide).uncarried(self.dtype, ordered)

    def where(self, yes: Any, no: Any) -> Expr:
        """Return ``yes`` where this bool is true, else ``no``; one of them is an ``Expr``."""
        like: Expr = yes if isinstance(yes, Expr) else no
        wide = carrier("Where", like.dtype)
        parts = [like.of(each).cast(wide) for each in (yes, no)]
        made = self.graph.node("Where", [self.name, *[each.name for each in parts]])
        return Expr(self.graph, made, wide).cast(like.dtype)

    __add__, __radd__ = _binary("Add"), _reflected("Add")
    __sub__, __rsub__ = _binary("Sub"), _reflected("Sub")
    __mul__, __rmul__ = _binary("Mul"), _reflected("Mul")
    __truediv__, __rtruediv__ = _binary("Div"), _reflected("Div")
    __lt__, __le__ = _binary("Less"), _binary("LessOrEqual")
    __gt__, __ge__ = _binary("Greater"), _binary("GreaterOrEqual")
    __and__, __or__, __xor__ = _logic("And"), _logic("Or"), _logic("Xor")
    equals = _binary("Equal")

    def __neg__(self) -> Expr:
        return self.number(0) - self if self.dtype.kind == "u" else self.run("Neg")

    def __invert__(self) -> Expr:
        return self.run("Not" if self.dtype == BOOL else "BitwiseNot")

    def shifted(self, bits: Any, direction: str) -> Expr:
        """Return an unsigned integer shifted by ``bits`` below its width, LEFT or RIGHT."""
        return self.run("BitShift", bits, direction=direction)


def unsigned(dtype: DType) -> DType:
    """Return the unsigned dtype with the width of an integer dtype."""
    name = name_of(dtype)
    return named_dtype(name if name[0] == "u" else f"u{name}")


def is_integer(dtype: DType) -> bool:
    """Return True for an integer dtype."""
    return kind(dtype) == "i"


def is_float(dtype: DType) -> bool:
    """Return True for a float dtype, halves included."""
    return kind(dtype) == "f"
