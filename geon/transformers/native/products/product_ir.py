"""What the text of a product is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ....op_graph.axes.affine import Size
from ...kernels.ir.nest import Loop
from ..vectors.lanes import Vectors
from .operand_views import Operand


class StoreText(NamedTuple):
    """The statements that store a vector of sums, called ``value``, and what is computed before:
    ``once``, and for each row of a block."""

    once: list[str]
    row: list[str]
    lines: list[str]
    vectors: Vectors


def no_vectors(texts: Mapping[str, str], inner: Loop, count: int) -> StoreText | None:
    """Elements are stored one by one."""
    return None


@dataclass(frozen=True)
class Product:
    """C[batch, rows, columns] = sum over summed of left[batch, rows, summed] * right[...].

    `type` is "float" or "double", the type of the sums. `store` makes the C statements that store
    one element from the indices' texts and the value's; `store_unit` is the loop along which stores
    adjoin. `parameters` are the C declarations that all texts refer to, by their names, none of
    which may be a name of the product's own functions (a `ValueError` says which). `length` writes
    a length as C.
    With `kept`, an argument of that name says where a packed copy of the right operand is kept;
    with `scratch`, one of that name is the memory to work in (`scratch.ProductScratch` bytes).
    `result` is the memory of a result of that type, where `store` does nothing but write there.
    A block of a larger product says with `whole` how many batches, rows and columns that has: sums
    are taken in the order that they have there. `stores_joined` are the pairs of loops of which the
    inner one may run on instead of the outer one in all that is stored. `vector_store` makes the
    statements that store some neighbouring elements along a loop, where there are such. `stored`
    are the pointers that stores name, where that is known.
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
    stores_joined: frozenset[tuple[str, str]] = frozenset()
    vector_store: Callable[[Mapping[str, str], Loop, int], StoreText | None] = no_vectors
    stored: frozenset[str] | None = None
