"""How a product's operands come into packed blocks: copied, transposed, or computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .product_kernels import GROUP, Shape
from .product_walk import Dimension, address, at, indent, merged, walk


@dataclass(frozen=True)
class Operand:
    """One operand of a product: how its element at given indices is had.

    `element` makes C statements and a C value expression of type `type` from the C texts of the
    dimensions' indices. An element that is no more than `pointer[offset]` also says so with
    `pointer` and the stride in elements of each dimension ("1" for neighbours, "0" for none).
    `unit` is the dimension best walked innermost.
    """

    type: str
    element: Callable[[Mapping[str, str]], tuple[list[str], str]]
    pointer: str | None
    strides: Mapping[str, str]
    unit: str | None


@dataclass(frozen=True)
class View:
    """A plain operand over merged dimensions: `lines` are rows or columns, `summed` the rest."""

    pointer: str
    lines: tuple[Dimension, ...]
    summed: tuple[Dimension, ...]
    strides: Mapping[str, str]
    batch: tuple[str, ...]

    @property
    def line_step(self) -> str:
        """The stride of the innermost row or column dimension."""
        return self.strides[self.lines[-1].name] if self.lines else "0"

    @property
    def summed_step(self) -> str:
        """The stride of the innermost summed dimension."""
        return self.strides[self.summed[-1].name] if self.summed else "0"

    @property
    def address(self) -> str:
        """A pointer to the element at the current indices."""
        names = [*self.batch, *(d.name for d in (*self.lines, *self.summed))]
        return address(self.pointer, self.strides, names)


def view(
    operand: Operand,
    type: str,
    batch: Sequence[Dimension],
    lines: Sequence[Dimension],
    summed: Sequence[Dimension],
) -> View | None:
    """The operand as a view whose rows or columns can be moved whole; None if it has no such."""
    if operand.pointer is None or operand.type != type:
        return None
    line_dims, line_steps = merged(lines, operand.strides)
    summed_dims, summed_steps = merged(summed, operand.strides)
    outer = {d.name: operand.strides.get(d.name, "0") for d in batch}
    found = View(
        operand.pointer,
        line_dims,
        summed_dims,
        {**outer, **line_steps, **summed_steps},
        tuple(outer),
    )
    return found if "1" in (found.line_step, found.summed_step) else None


def element_loop(
    operand: Operand, type: str, every: Sequence[Dimension], inner: Dimension | None, place: str
) -> list[str]:
    """A loop over a run of `inner` (`run` long) that computes elements into `place[e]`."""
    indices = {d.name: at(d.name) for d in every}
    if inner is not None:
        indices[inner.name] = "here"
    statements, value = operand.element(indices)
    here = [f"const int64_t here = {at(inner.name)} + e;", "(void)here;"] if inner else []
    return [
        "#pragma omp simd",
        "for (int64_t e = 0; e < run; ++e) {",
        *indent([*here, *statements, f"{place} = ({type})({value});"]),
        "}",
    ]


@dataclass(frozen=True)
class Packing:
    """The text that packs one operand's block; indices of the batch are in scope.

    The left operand's block is `height` rows from `row_start`, at most a group, in `left`; the
    right operand's `width` columns from `column_start`, in `panels`; both of `depth_run` summed
    indices from `depth_start`.
    """

    operand: Operand
    of: Shape
    batch: tuple[Dimension, ...]
    lines: tuple[Dimension, ...]
    summed: tuple[Dimension, ...]

    @property
    def view(self) -> View | None:
        """The operand as memory that is moved whole, if it is."""
        return view(self.operand, self.of.type, self.batch, self.lines, self.summed)

    @property
    def along_lines(self) -> bool:
        """Whether elements are computed along rows or columns rather than the summed index."""
        return any(d.name == self.operand.unit for d in self.lines[-1:])

    def staged(self, side: str) -> str:
        """How many elements of a further block the packing works in, as C text."""
        if self.view is not None:
            return "0"
        if side == "left":
            return f"depth_block * {GROUP}" if self.along_lines else "0"
        along_summed = self.operand.unit is not None and not self.along_lines
        return f"{self.of.panel} * depth_block" if along_summed else "column_block"

    def left(self) -> list[str]:
        """Rows packed side by side, the last tile filled up with zeros."""
        found = self.view
        if found is not None:
            return [*self.left_moved(found), *self.left_end()]
        return [*self.left_computed(), *self.left_end()]

    def left_end(self) -> list[str]:
        line = self.of.line
        return [
            "for (int64_t r = height; r % 12; ++r)",
            f"  __builtin_memset(left + r * {line}, 0, (size_t)depth_run * sizeof *left);",
        ]

    def left_moved(self, found: View) -> list[str]:
        tag, line = self.of.tag, self.of.line

        def move(row: str, rows: str, k: str, ks: str) -> list[str]:
            to = f"left + ({row}) * {line} + ({k})"
            source = found.address
            if found.summed_step == "1":
                step = found.line_step
                return [f"geon_copy_{tag}({to}, {line}, {source}, {step}, {rows}, {ks});"]
            step = found.summed_step
            return [f"geon_transpose_{tag}({to}, {line}, {source}, {step}, {ks}, {rows});"]

        return self.blocks(found, "row_start", "height", move)

    def blocks(
        self, found: View, start: str, length: str, move: Callable[[str, str, str, str], list[str]]
    ) -> list[str]:
        """`move` on each block whose lines and summed indices are one stride apart."""
        return walk(
            found.lines,
            start,
            length,
            lambda line, lines: walk(
                found.summed,
                "depth_start",
                "depth_run",
                lambda k, ks: move(line, lines, k, ks),
            ),
        )

    def along_summed_loops(self, place: Callable[[str], str]) -> list[str]:
        """Elements along the summed index, at `place` of the run's offset."""
        every = (*self.batch, *self.lines, *self.summed)
        inner = self.summed[-1] if self.summed else None
        return walk(
            self.summed,
            "depth_start",
            "depth_run",
            lambda k, ks: [
                f"const int64_t run = {ks};",
                *element_loop(self.operand, self.of.type, every, inner, place(f"{k} + e")),
            ],
        )

    def along_lines_loops(self, start: str, length: str, place: str) -> list[str]:
        """Elements along rows or columns for each summed index, at `place` of k and the column."""
        every = (*self.batch, *self.lines, *self.summed)
        inner = self.lines[-1] if self.lines else None

        def body(k: str, ks: str) -> list[str]:
            run = walk(
                self.lines,
                start,
                length,
                lambda line, lines: [
                    f"const int64_t run = {lines};",
                    *element_loop(self.operand, self.of.type, every, inner, f"{place}[{line} + e]"),
                ],
            )
            return [*run]

        return body("", "") if not self.summed else body("", "")

    def left_computed(self) -> list[str]:
        raise NotImplementedError
