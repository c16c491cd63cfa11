"""What a product's own function does with sums, as C: vector by vector, or one by one."""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.lengths import is_multiple, least_unless_zero
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import as_one
from ..names.loop_lines import SIMD
from ..sizes.blocking import GROUP, Shape
from .multi_index import Walker, at, indent, size
from .product_ir import Product, StoreText


class Storing:
    """The statements on a block of sums, in a product's own order.

    Where elements that are stored adjoin along rows, the driver turns the block (``across``), so
    that what is a row here is a column of the product. ``loops`` says whether there are loops over
    elements, for which a compiler is to find vectors. Rows are read in bands where they are
    ``banded``; columns that are windows are summed, and come here, in runs of so many as a ``run``
    has.
    """

    def __init__(
        self, product: Product, of: Shape, walker: Walker, banded: bool, run: int | None
    ) -> None:
        self.product, self.of, self.walker = product, of, walker
        self.banded, self.run = banded, run
        self.across = is_across(product, of)
        pairs = product.stores_joined
        order = (product.columns, product.rows) if self.across else (product.rows, product.columns)
        self.rows, outer_rows = as_one(order[0], pairs)
        self.columns, outer_columns = as_one(order[1], pairs)
        names = [d.name for d in (*product.batch, *self.rows, *self.columns)]
        self.indices = {name: at(name) for name in names}
        self.indices.update(dict.fromkeys((*outer_rows, *outer_columns), "0"))
        inner = self.columns[-1:]
        self.here = [f"const int64_t here = {at(d.name)} + e; (void)here;" for d in inner]
        self.indices.update({d.name: "here" for d in inner})
        self.vectors = self.by_vectors(inner)
        self.loops = self.vectors is None

    def lines(self) -> list[str]:
        """All statements, on ``height`` rows of ``width`` sums, which lie ``sums_step`` apart."""
        type, walker = self.of.type, self.walker
        if self.runs_on():
            return [
                f"const {type} *restrict line = out;",
                *walker.decompose(self.rows, "row_start"),
                *walker.decompose(self.columns, "0"),
                *self.body("0", "height * width"),
            ]
        each = [
            f"const {type} *restrict line = out + row * sums_step;",
            *walker.decompose(self.rows, "row_start + row"),
            *walker.walk(self.columns, "column_start", "width", self.body),
        ]
        once = [] if self.vectors is None else self.vectors.once
        return [*once, "for (int64_t row = 0; row < height; ++row) {", *indent(each), "}"]

    def body(self, column: str, run: str) -> list[str]:
        """The statements on one run of columns."""
        type, made, filled = self.of.type, self.vectors, self.filled()
        turns = f"({run}) & -{self.of.vector}" if filled or made is not None else run
        lines = [f"const int64_t turns = {turns};"]
        if made is None:
            return [*lines, SIMD, *self.singly(column, "int64_t e = 0; e < turns")]
        value = made.vectors.place(type, f"line[{column} + e]")
        each = [*self.here, f"const {made.vectors.type(type)} value = {value};", *made.lines]
        lines += [*made.row, "int64_t e = 0;", f"for (; e < turns; e += {self.of.vector}) {{"]
        lines += [*indent(each), "}"]
        return lines if filled else [*lines, *self.singly(column, f"; e < {run}")]

    def singly(self, column: str, turns: str) -> list[str]:
        """The loop over single elements of a run."""
        value = f"const {self.of.type} value = line[{column} + e];"
        each = [*self.here, value, *self.product.store(self.indices, "value")]
        return [f"for ({turns}; ++e) {{", *indent(each), "}"]

    def filled(self) -> bool:
        """Whether blocks are known to begin and to end where vectors of columns do.

        Blocks of a product's columns do so where their innermost loop does, as panels are some
        vectors wide, and so must their runs. Those of rows are some tiles high, which is no
        multiple of a vector, except where all rows are one block: few, in all loops together, that
        are not read in bands.
        """
        if not self.columns or not is_multiple(self.columns[-1].extent, self.of.vector):
            return False
        if not self.across:
            return self.run is None or self.run % self.of.vector == 0
        rows = size(self.columns)
        return not self.banded and isinstance(rows, int) and rows <= GROUP

    def by_vectors(self, inner: Sequence[Loop]) -> StoreText | None:
        """The statements on vectors of columns, where all elements are in such ones, or most."""
        if not inner or inner[0].extent == 0:
            return None
        many = self.across and least_unless_zero(inner[0].extent) >= self.of.vector
        if not (self.filled() or many):
            return None
        return self.product.vector_store(self.indices, inner[0], self.of.vector)

    def runs_on(self) -> bool:
        """Whether all sums of a block are stored in one run: few columns, whose rows adjoin.

        The driver gives sums of so few columns without a gap between rows.
        """
        return run_on(self.rows, self.columns, self.product, self.of)


def is_across(product: Product, of: Shape) -> bool:
    """Whether elements that are stored adjoin along rows, of which there are enough for turning
    sums to be worth it.
    """
    if product.result is not None or not product.rows:
        return False
    unit, inner = product.store_unit, product.rows[-1]
    if inner.name != unit or any(loop.name == unit for loop in product.columns):
        return False
    if least_unless_zero(inner.extent) >= of.vector:
        return True
    rows, _ = as_one(product.columns, product.stores_joined)
    columns, _ = as_one(product.rows, product.stores_joined)
    return run_on(rows, columns, product, of)


def run_on(rows: Sequence[Loop], columns: Sequence[Loop], product: Product, of: Shape) -> bool:
    """Whether rows of so few columns are stored one behind the other."""
    count = size(columns)
    if not (isinstance(count, int) and count < of.vector and len(rows) == 1):
        return False
    return len(columns) == 1 and (rows[0].name, columns[0].name) in product.stores_joined
