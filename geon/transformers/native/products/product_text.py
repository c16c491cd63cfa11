"""Matrix products over any loops as C text, with work fused into their loads and stores.

A product is cut into items (blocks of rows and columns of one batch), which tasks of the thread
pool share. An item walks the summed index in blocks: it packs its part of the right operand into
panels two vectors wide, and for each group of rows packs the left operand's rows and runs register
tiles over both; what is small, or kept packed, is read where it lies, and windows where they
overlap. Sums stay in the task's scratch memory until the last block is in, and the caller's `store`
is then run once for each element; where it would do no more than store, tiles write the result
themselves. Every sum is taken in the order of the summed index, or for few rows against a right
operand adjacent along it in vector lanes; how many threads there are changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ...kernels.ir.nest import Loop
from ..sizes.blocking import APART, HALVED_WORK, SIZES, TURNED, Shape, halved, shape
from .descriptor import ProductText
from .multi_index import last, size
from .operand_views import Operand
from .product_ir import Product

__all__ = ["Operand", "Product", "oriented", "product_text", "shape_of"]


def shape_of(product: Product, vector_bytes: int) -> Shape:
    """The sizes of a product's blocks on a processor with vectors of so many bytes.

    Where columns are known to fill half of a vector at most, vectors are half as wide: processors
    run these as fast or faster, and half as many elements of them are of no use.
    """
    of = shape(product.type, vector_bytes)
    half = halved(of)
    made = oriented(product, of)
    columns = made.whole[2] if made.whole else size(made.columns)
    if half is None or not isinstance(columns, int) or columns > half.vector:
        return of
    sizes = [size(loops) for loops in (made.batch, made.rows, made.columns, made.summed)]
    small = all(isinstance(n, int) for n in sizes) and math.prod(sizes) < HALVED_WORK
    return of if small or ProductText(made, of).thin() else half


def product_text(product: Product, of: Shape) -> tuple[str, bool]:
    """The C text of ``static void NAME(int32_t threads, <arguments>)`` and what only it needs, and
    whether it has loops over elements, for which a compiler is to find vectors.

    It calls the functions of ``product_kernels``, whose header its unit needs.
    """
    made = ProductText(oriented(product, of), of)
    return "\n".join(made.make()) + "\n", made.loops


def _swapped(product: Product) -> Product:
    """The transposed product, which is the same one."""
    return replace(
        product,
        rows=product.columns,
        columns=product.rows,
        left=product.right,
        right=product.left,
        whole=(*product.whole[:1], *reversed(product.whole[1:])),
    )


def _ordered(product: Product, of: Shape) -> Product:
    """The same product with each group's unit innermost.

    What is summed goes along lines where columns are windows that tiles read there.
    """
    left, right = product.left.unit, product.right.unit
    made = replace(
        product,
        rows=last(product.rows, left),
        columns=last(product.columns, product.store_unit, right),
        summed=last(product.summed, left, right),
    )
    free = _free(product)
    if free is None or ProductText(made, of).places is not None:
        return made
    return replace(made, summed=last(product.summed, left, right, free))


def _free(product: Product) -> str | None:
    """A summed loop that no border is on: along it a run is inside or outside as a whole.

    None where its elements lie `APART`: lines that are near cost less, even cut at their borders.
    """
    bordered = [each for each in (product.left, product.right) if each.border is not None]
    inside = {name for each in bordered if each.border is not None for name in each.border.loops}
    free = [d.name for d in product.summed if d.name not in inside]
    if not bordered or not free:
        return None
    far = [each.strides.get(free[-1], 0) for each in bordered]
    apart = any(isinstance(n, int) and n * SIZES[product.type] >= APART for n in far)
    return None if apart else free[-1]


def _is_small(loops: Sequence[Loop], of: Shape) -> bool:
    """Whether there are known to be fewer indices than a vector has elements twice over."""
    count = size(loops)
    return isinstance(count, int) and count < of.panel


def oriented(product: Product, of: Shape) -> Product:
    """The same product with its stores along columns, or with few rows for many columns.

    Few columns become few rows where the left operand then streams along its memory, at any depth;
    else its rows are multiplied in vector lanes, and only deep ones are worth that. One that is
    computed is packed as it adjoins in memory, then, so that tiles of few rows go along it.
    Few columns that are known only at run time are turned by the driver, where nothing is done on
    storing: a `store` is text for one order of rows and columns. What is turned after its stores
    are along columns keeps no copy: the one that was planned is of the other operand.
    """
    if any(d.name == product.store_unit for d in product.rows):
        product = _swapped(product)
    columns, depth = size(product.columns), size(product.summed)
    few = isinstance(columns, int) and columns <= of.vector
    if isinstance(columns, int) and few and not ProductText(product, of).thin():
        swapped = _ordered(_swapped(product), of)
        streams = any(loop.name == product.left.unit for loop in product.rows)
        deep = streams or not isinstance(depth, int) or depth >= of.dots_from(columns)
        narrow = columns <= ProductText(swapped, of).few()
        packed = streams and product.left.pointer is None and columns <= TURNED
        if (packed or (narrow and deep)) and not _is_small(product.rows, of):
            return replace(swapped, kept=False)
    if _turns_more(product, of):
        return replace(_ordered(_swapped(product), of), kept=False)
    return _ordered(product, of)


def _turns_more(product: Product, of: Shape) -> bool:
    """Whether both operands adjoin along lines, of which the left one has more.

    Rows are packed again for each block of columns, so the fewer lines had better be rows.
    Operands of one stride are left as they are, and so are short sums: of these results are
    written by tiles, of what is turned once more, across.
    """
    ordered = _ordered(product, of)
    rows, columns, depth = map(size, (product.rows, product.columns, product.summed))
    if isinstance(depth, int) and isinstance(rows, int) and depth <= rows:
        return False
    along = ordered.rows and ordered.rows[-1].name == product.left.unit
    both = along and any(d.name == product.right.unit for d in product.columns)
    more = isinstance(rows, int) and isinstance(columns, int) and rows > columns
    return bool(both and more and ProductText(ordered, of).left.plain is None)
