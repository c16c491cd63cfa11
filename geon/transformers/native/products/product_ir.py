"""The description of a matrix product from which its C text is emitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import Loop, Store
from ..names.naming import KernelNames
from ..vectors.lanes import Vectors
from .operand_views import Operand


class StoreText(NamedTuple):
    """The statements that store a vector of sums called ``value``.

    ``once`` are statements before all rows, ``row`` before each row, ``lines`` for each vector.
    ``vectors`` is the vector type.
    """

    once: list[str]
    row: list[str]
    lines: list[str]
    vectors: Vectors


def no_text(*_: object) -> Any:
    """Raise ``AssertionError``: the product has no text."""
    raise AssertionError("the product is described, and has no text")


@dataclass(frozen=True)
class MatrixProduct:
    """C[batch, rows, columns] = sum over summed of left[batch, rows, summed] * right[...].

    `type` is "float" or "double", the type of the sums. `store` returns the C statements that store
    one element, from the texts of its indices and value. `store_unit` is the loop along which
    stores are contiguous. `parameters` are the C declarations of the function's parameters by name.
    A name that the product's own functions use raises `ValueError`. `length` returns a length as C.
    `result` is the memory of the result if `store` only writes the sums there. `kept` is True if
    the parameter `kept` has a cached packed copy of the right operand. `scratch` is True if the
    parameter `scratch` has `ProductScratch` bytes of memory. `whole` are the batches, rows and
    columns of the larger product of which this is a block; sums have the same order of additions as
    there. `stores` are those of the epilogue if they may be vectorised, and `stores_joined` pairs
    of loops that all of them allow to be collapsed into the inner one. `vector_store` returns the
    statements that store a vector of elements along a loop. `stored` are the pointers that stores
    use, or None if unknown. `names` are those of the kernel, which packing functions need.
    """

    name: str
    type: str
    batch: tuple[Loop, ...]
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    left: Operand
    right: Operand
    store: Callable[[Mapping[str, str], str], list[str]]
    store_unit: str | None
    parameters: Mapping[str, str]
    length: Callable[[Size], str]
    result: Operand | None = None
    kept: bool = False
    scratch: bool = False
    whole: tuple[Size, ...] = ()
    stores: tuple[Store, ...] = ()
    stores_joined: frozenset[tuple[str, str]] = frozenset()
    vector_store: Callable[[Mapping[str, str], Loop, int], StoreText] = no_text
    stored: frozenset[str] | None = None
    names: KernelNames | None = None
