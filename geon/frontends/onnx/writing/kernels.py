"""The dtypes that ONNX Runtime's CPU kernels take, and the dtypes that carry the others.

ONNX allows more types than the runtime has kernels for. An operator on a dtype without a kernel is
computed in a wider one: integers modulo a power of two and casts between integers keep all bits,
and halves are rounded once, by the cast back. The table was made by creating a session for each
operator and dtype with ONNX Runtime 1.32.
"""

from __future__ import annotations

import numpy as np

from ....op_graph.values.dtypes import DTYPES, DType, name_of, named_dtype

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
