"""The format version of written files, ONNX's names of geon's dtypes, and the optional package."""

from __future__ import annotations

from typing import Any

from ....errors import UnavailableError
from ....op_graph.values.dtypes import DType, name_of

# Operator set 21 with IR version 10: ReduceMax of bool, Gelu, metadata of nodes and values.
OPSET_VERSION, IR_VERSION = 21, 10
TYPE_NAMES = {
    "bool": "BOOL",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT",
    "float64": "DOUBLE",
}


def onnx_package() -> Any:
    """Return the package ``onnx``; raise ``UnavailableError`` if it is not installed."""
    try:
        import onnx
    except ImportError:
        raise UnavailableError(
            "geon.frontends.onnx needs the package onnx, which is not installed: "
            "pip install 'geon[onnx]'"
        ) from None
    return onnx


def element_type(dtype: DType) -> int:
    """Return the number of a dtype in ``onnx.TensorProto``."""
    return int(getattr(onnx_package().TensorProto, TYPE_NAMES[name_of(dtype)]))
