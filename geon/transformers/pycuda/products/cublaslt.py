"""Matrix products by cuBLASLt, through nvmath-python's bindings, on PyCUDA's context.

The library is column-major, so it computes the transposed product: the right factor is its first
operand, and rows are its columns. Descriptors and the heuristic's algorithm are cached by lengths
and strides, so a repeated product is one library call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from ....errors import DeviceError
from ..launches.library_requests import WORKSPACE_BYTES, ProductCall
from .nvmath_bindings import PlanCache, starting

RESULT_BYTES = 96  # bytes of the heuristic's result struct, which begins with the algorithm
# The binding's enumeration of the attributes of each kind of object.
ATTRIBUTES = {
    "matmul_desc": "MatmulDescAttribute",
    "matrix_layout": "MatrixLayoutAttribute",
    "matmul_preference": "MatmulPreferenceAttribute",
}
# ``cudaDataType`` by the name of a dtype.
DataType = IntEnum("DataType", {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14})


class Described:
    """The library's descriptors of a product, and the algorithm that the heuristic chose."""

    def __init__(self, description: int, layouts: tuple[int, int, int], algorithm: Any) -> None:
        self.description, self.layouts, self.algorithm = description, layouts, algorithm


class CublasLt:
    """cuBLASLt on one device; callers must have entered the device's context."""

    title = "cuBLASLt"
    calling = "cuBLASLt multiplies matrices"

    def __init__(self, device: str) -> None:
        with starting("products", self.title, device):
            from nvmath.bindings import cublas, cublasLt

            self.handle = cublasLt.create()
        self.device, self.lt, self.cublas = device, cublasLt, cublas
        self.errors: tuple[type[Exception], ...] = (cublasLt.cuBLASLtError,)
        self.known = PlanCache(self.describe, self.forget)

    def takes(self, product: ProductCall[int]) -> bool:
        """Return True if the library has an algorithm for a product."""
        return self.known.plan(product) is not None

    def call(
        self, product: ProductCall[int], addresses: Sequence[int], works: int, stream: int
    ) -> None:
        """Submit a product to a stream."""
        lt, p = self.lt, product
        x, y, sums, bias = addresses
        found = self.known.plan(product)
        if found is None:
            raise DeviceError(
                f"cuBLASLt on {self.device} has no algorithm for a {p.dtype} product of "
                f"{p.rows} by {p.deep} by {p.columns}"
            )
        if p.bias is not None:
            self.set_attribute("matmul_desc", found.description, "BIAS_POINTER", bias)
        scale = np.float64 if p.dtype == "float64" else np.float32
        one, zero = np.ones(1, scale), np.zeros(1, scale)
        left, right, out = found.layouts
        lt.matmul(
            self.handle, found.description,
            one.ctypes.data, y, left, x, right,
            zero.ctypes.data, sums, out, sums, out,
            found.algorithm.ctypes.data, works, WORKSPACE_BYTES, stream,
        )  # fmt: skip

    def describe(self, product: ProductCall[int]) -> Described | None:
        """Create descriptors; None if the library has no algorithm."""
        lt, p = self.lt, product
        compute = self.cublas.ComputeType
        doubles = p.dtype == "float64"
        description = lt.matmul_desc_create(
            compute.COMPUTE_64F if doubles else compute.COMPUTE_32F,
            DataType["float64" if doubles else "float32"],
        )
        operation = self.cublas.Operation
        for name, strides, across in (
            ("TRANSA", p.right_strides, p.columns),
            ("TRANSB", p.left_strides, p.deep),
        ):
            value = operation.T if is_transposed(strides, across) else operation.N
            self.set_attribute("matmul_desc", description, name, value)
        if p.bias is not None:
            self.set_attribute("matmul_desc", description, "EPILOGUE", lt.Epilogue.BIAS)
        layouts = (
            self.layout(p.dtype, p.deep, p.columns, p.right_strides, p.batch),
            self.layout(p.dtype, p.rows, p.deep, p.left_strides, p.batch),
            self.layout(p.result, p.rows, p.columns, p.out_strides, p.batch),
        )
        found = Described(description, layouts, self.chosen(description, layouts))
        if found.algorithm is None:
            self.forget(found)
            return None
        return found

    def layout(
        self, dtype: str, down: int, across: int, strides: tuple[int, int, int], batch: int
    ) -> int:
        """Return a matrix layout; contiguous rows are columns to the library."""
        rows, columns, step = across, down, strides[1]
        if is_transposed(strides, across):
            rows, columns, step = down, across, strides[2]
        layout: int = self.lt.matrix_layout_create(DataType[dtype], rows, columns, step)
        if batch > 1:
            self.set_attribute("matrix_layout", layout, "BATCH_COUNT", batch)
            self.set_attribute("matrix_layout", layout, "STRIDED_BATCH_OFFSET", strides[0])
        return layout

    def chosen(self, description: int, layouts: tuple[int, int, int]) -> Any:
        """Return the heuristic's first algorithm, or None.

        Split sums are combined in the compute dtype, not in half precision.
        """
        lt = self.lt
        preference, schemes = lt.matmul_preference_create(), lt.ReductionScheme
        self.set_attribute("matmul_preference", preference, "MAX_WORKSPACE_BYTES", WORKSPACE_BYTES)
        exact = schemes.INPLACE | schemes.COMPUTE_TYPE
        self.set_attribute("matmul_preference", preference, "REDUCTION_SCHEME_MASK", int(exact))
        result, count = np.zeros(RESULT_BYTES, np.uint8), np.zeros(1, np.int32)
        left, right, out = layouts
        # the library reports "not supported" as an error
        with contextlib.suppress(lt.cuBLASLtError):
            lt.matmul_algo_get_heuristic(
                self.handle, description, left, right, out, out, preference, 1,
                result.ctypes.data, count.ctypes.data,
            )  # fmt: skip
        lt.matmul_preference_destroy(preference)
        return result if count[0] else None

    def set_attribute(self, kind: str, of: int, name: str, value: int) -> None:
        """Set an attribute of an object of a ``kind`` of ``ATTRIBUTES``."""
        attribute = getattr(self.lt, ATTRIBUTES[kind])[name]
        dtype = getattr(self.lt, f"get_{kind}_attribute_dtype")(attribute)
        given = np.array([value], dtype)
        set_value = getattr(self.lt, f"{kind}_set_attribute")
        set_value(of, attribute, given.ctypes.data, given.nbytes)

    def forget(self, described: Described) -> None:
        """Destroy descriptors."""
        for layout in described.layouts:
            self.lt.matrix_layout_destroy(layout)
        self.lt.matmul_desc_destroy(described.description)


def is_transposed(strides: tuple[int, int, int], across: int) -> bool:
    """Return True if a matrix is column-major, or overlapping rows rule out row-major."""
    return strides[2] != 1 or strides[1] < across
