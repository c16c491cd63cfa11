"""The epilogue of a product: emits the fused work on its sums, by vectors or by elements."""

from __future__ import annotations

from collections.abc import Sequence

from ....op_graph.axes.lengths import is_multiple, least_unless_zero
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import as_one
from ...sizes.product_blocks import ROWS_PER_GROUP, Shape
from ..names.dialect import SIMD
from .multi_index import Walker, indent, index_name, size
from .product_ir import MatrixProduct, StoreText


class Storing:
    """The statements that store a block of sums.

    ``across`` is True if stores are contiguous along rows. The driver then transposes the block, so
    that a row here is a column of the product. ``loops`` is True if there are loops over elements
    that the compiler should vectorise. ``banded`` is True if the rows are windows, read in bands.
    ``run`` is the number of columns that are stored together if columns are windows, else None.
    """

    def __init__(
        self, product: MatrixProduct, of: Shape, walker: Walker, banded: bool, run: int | None
    ) -> None:
        self.product, self.of, self.walker = product, of, walker
        self.banded, self.run = banded, run
        self.across = is_across(product, of)
        pairs = product.stores_joined
        order = (product.columns, product.rows) if self.across else (product.rows, product.columns)
        self.rows, outer_rows = as_one(order[0], pairs)
        self.columns, outer_columns = as_one(order[1], pairs)
        names = [d.name for d in (*product.batch, *self.rows, *self.columns)]
        self.indices = {name: index_name(name) for name in names}
        self.indices.update(dict.fromkeys((*outer_rows, *outer_columns), "0"))
        inner = self.columns[-1:]
        self.here = [f"const int64_t here = {index_name(d.name)} + e; (void)here;" for d in inner]
        self.indices.update({d.name: "here" for d in inner})
        self.vectors = self.by_vectors(inner)
        self.loops = self.vectors is None

    def lines(self) -> list[str]:
        """Return all statements, for ``height`` rows of ``width`` sums, ``sums_step`` apart."""
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
        """Return the statements for one run of columns."""
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
        """Return the loop over single elements of a run."""
        value = f"const {self.of.type} value = line[{column} + e];"
        each = [*self.here, value, *self.product.store(self.indices, "value")]
        return [f"for ({turns}; ++e) {{", *indent(each), "}"]

    def filled(self) -> bool:
        """Return True if blocks are known to begin and end at multiples of the vector length.

        Blocks of a product's columns do so if their innermost loop does, since a panel is a
        multiple of a vector wide; so must the runs of windows. Blocks of rows are a multiple of a
        tile high, which is not a multiple of a vector. They qualify only if all rows are one block:
        few rows, not read in bands.
        """
        if not self.columns or not is_multiple(self.columns[-1].extent, self.of.vector):
            return False
        if not self.across:
            return self.run is None or self.run % self.of.vector == 0
        rows = size(self.columns)
        return not self.banded and isinstance(rows, int) and rows <= ROWS_PER_GROUP

    def by_vectors(self, inner: Sequence[Loop]) -> StoreText | None:
        """Return the statements on vectors of columns, or None if too few elements fill vectors."""
        if not inner or inner[0].extent == 0:
            return None
        many = self.across and least_unless_zero(inner[0].extent) >= self.of.vector
        if not (self.filled() or many):
            return None
        return self.product.vector_store(self.indices, inner[0], self.of.vector)

    def runs_on(self) -> bool:
        """Return True if all sums of a block are stored in one loop: few columns and contiguous
        rows.

        The driver passes sums of so few columns without a gap between rows.
        """
        return run_on(self.rows, self.columns, self.product, self.of)


def is_across(product: MatrixProduct, of: Shape) -> bool:
    """Return True if stores are contiguous along rows and transposing the sums pays off."""
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


def run_on(
    rows: Sequence[Loop], columns: Sequence[Loop], product: MatrixProduct, of: Shape
) -> bool:
    """Return True if rows of fewer columns than a vector are stored one after another."""
    count = size(columns)
    if not (isinstance(count, int) and count < of.vector and len(rows) == 1):
        return False
    return len(columns) == 1 and (rows[0].name, columns[0].name) in product.stores_joined
