"""The epilogue of a product: emits the fused work on its sums, by vectors or by elements."""

from __future__ import annotations

from ...sizes.product_blocks import Shape
from ..names.dialect import SIMD
from .epilogue_form import EpilogueForm
from .multi_index import Walker, indent, index_name
from .product_ir import MatrixProduct, StoreText


class Storing:
    """The statements that store a block of sums.

    ``loops`` is True if there are loops over elements that the compiler should vectorise.
    """

    def __init__(
        self, product: MatrixProduct, form: EpilogueForm, of: Shape, walker: Walker
    ) -> None:
        self.product, self.form, self.of, self.walker = product, form, of, walker
        self.rows, self.columns = form.rows, form.columns
        names = [d.name for d in (*product.batch, *self.rows, *self.columns)]
        self.indices = {name: index_name(name) for name in names}
        self.indices.update(dict.fromkeys(form.merged, "0"))
        inner = self.columns[-1:]
        self.here = [f"const int64_t here = {index_name(d.name)} + e; (void)here;" for d in inner]
        self.indices.update({d.name: "here" for d in inner})
        self.vectors: StoreText | None = None
        if form.by_vectors:
            self.vectors = product.vector_store(self.indices, inner[0], of.vector)
        self.loops = self.vectors is None

    def lines(self) -> list[str]:
        """Return all statements, for ``height`` rows of ``width`` sums, ``sums_step`` apart."""
        type, walker = self.of.type, self.walker
        if self.form.continuous:
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
        type, made, filled = self.of.type, self.vectors, self.form.filled
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
