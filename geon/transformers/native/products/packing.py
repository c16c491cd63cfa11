"""Decide how a product's operands are packed: as views in memory, or in which order of elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ....lazy_dataclasses import dataclass
from ....op_graph.values.dtypes import DType, named_dtype
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import as_one
from ...sizes.product_blocks import FEW_ROWS_PANELS, MAX_SHALLOW_DEPTH, ROWS_PER_GROUP, Shape
from .multi_index import size
from .operand_views import Operand, View, view

DTYPES = {"float": named_dtype("float32"), "double": named_dtype("float64")}


@dataclass(frozen=True)
class Packing:
    """One operand of a product, and how blocks of it are packed.

    A block has a part of the indices of ``lines``, which are rows or columns, and of ``summed``.
    """

    operand: Operand
    of: Shape
    batch: tuple[Loop, ...]
    lines: tuple[Loop, ...]
    summed: tuple[Loop, ...]

    @property
    def dtype(self) -> DType:
        """Return the dtype of packed elements."""
        return DTYPES[self.of.type]

    @cached_property
    def view(self) -> View | None:
        """Return the operand as a view in memory, or None."""
        return view(self.operand, self.of.type, self.batch, self.lines, self.summed)

    @property
    def plain(self) -> View | None:
        """Return the view if it has one stride along lines and one along summed indices."""
        found = self.view
        return found if found is not None and found.is_plain else None

    @property
    def along_lines(self) -> bool:
        """Return True if elements are best computed along rows or columns."""
        return any(d.name == self.operand.unit for d in self.lines[-1:])

    @property
    def along_summed(self) -> bool:
        """Return True if elements are best computed along the summed index."""
        return any(d.name == self.operand.unit for d in self.summed[-1:])

    @property
    def own_lines(self) -> tuple[Loop, ...]:
        """Return the loops over lines, collapsed as far as memory or elements allow."""
        return self.view.lines if self.view else as_one(self.lines, self.operand.joined)[0]

    @property
    def own_summed(self) -> tuple[Loop, ...]:
        """Return the summed loops, collapsed as far as memory or elements allow."""
        return self.view.summed if self.view else as_one(self.summed, self.operand.joined)[0]

    def is_run(self, outer: Sequence[Loop], inner: Sequence[Loop], most: int) -> bool:
        """Return True if a block with all iterations of `inner`, at most `most`, is one loop."""
        count = size(inner)
        if not (isinstance(count, int) and count <= most and len(outer) == len(inner) == 1):
            return False
        return (outer[0].name, inner[0].name) in self.operand.joined

    def runs_along_lines(self, left: bool) -> bool:
        """Return True if a block is computed in one loop in which the lines of a summed index are
        contiguous.

        The block has all lines. Columns that are packed like rows are at most `WHOLE` panels.
        """
        most = min(ROWS_PER_GROUP, FEW_ROWS_PANELS * self.of.panel) if left else self.of.panel
        return self.along_lines and self.is_run(self.own_summed, self.own_lines, most)

    @property
    def runs_along_summed(self) -> bool:
        """Return True if a block is computed in one loop in which a line's summed indices are
        contiguous.
        """
        return self.is_run(self.own_lines, self.own_summed, MAX_SHALLOW_DEPTH)

    def staged(self, left: bool) -> int:
        """Return the maximum elements of the staging buffer for each summed index."""
        if self.view is not None:
            return 0
        if left:
            return ROWS_PER_GROUP if self.along_lines else 0
        return self.of.panel if self.along_summed or self.runs_along_lines(False) else 0
