"""Operands of products as strided memory, with rows or columns that are copied as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.index_map import InRange
from ...kernels.ir.nest import Loop
from ...kernels.ir.scalar_code import Scalar
from ...kernels.products.contraction import merge_loops


@dataclass(frozen=True)
class Border:
    """The region where an operand is not padding: all ``guards`` hold. ``start`` is the offset of
    index 0.
    """

    start: str
    guards: tuple[InRange, ...]

    @property
    def loops(self) -> frozenset[str]:
        """Return the names of the loops in guards."""
        return frozenset(str(name) for guard in self.guards for name in guard.index.terms)


@dataclass(frozen=True)
class Operand:
    """One operand of a product.

    `type` is the C type of its elements, and `value` their scalar code over the loops of the
    product, None for a result. `pointer` and `strides` (in elements, 0 for other loops) are set if
    elements are `pointer[offset]`. `unit` is the preferred innermost loop. `border` are the bounds
    outside of which elements are 0. `joined` are pairs of loops that can be collapsed into the
    inner one. `memory` are the pointers that elements are read from, or None if unknown.
    """

    type: str
    value: Scalar | None
    pointer: str | None
    strides: Mapping[str, Size]
    unit: str | None
    border: Border | None = None
    joined: frozenset[tuple[str, str]] = frozenset()
    memory: frozenset[str] | None = None


@dataclass(frozen=True)
class View:
    """A strided operand in memory, over collapsed loops.

    `lines` are the loops over rows or columns, `summed` those over summed indices. `strides` has
    the strides of all loops in elements, `batch` the names of the batch loops. Beyond the border of
    a view that is `bordered` elements are 0.
    """

    lines: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    strides: Mapping[str, Size]
    batch: tuple[str, ...]
    bordered: bool = False

    @property
    def line_step(self) -> Size:
        """Return the stride of the innermost row or column loop."""
        return self.strides[self.lines[-1].name] if self.lines else 0

    @property
    def summed_step(self) -> Size:
        """Return the stride of the innermost summed loop."""
        return self.strides[self.summed[-1].name] if self.summed else 0

    @property
    def is_plain(self) -> bool:
        """Return True if lines have one stride and summed indices have one."""
        return not self.bordered and len(self.lines) <= 1 and len(self.summed) <= 1

    @property
    def whole(self) -> bool:
        """Return True if lines and summed indices together are contiguous memory."""
        orders = ((*self.lines, *self.summed), (*self.summed, *self.lines))
        runs = (merge_loops(loops, self.strides) for loops in orders)
        return any(
            len(loops) <= 1 and all(steps[loop.name] == 1 for loop in loops)
            for loops, steps in runs
        )


def view(
    operand: Operand,
    type: str,
    batch: Sequence[Loop],
    lines: Sequence[Loop],
    summed: Sequence[Loop],
) -> View | None:
    """Return the operand as a view that is contiguous along lines or summed indices, or None."""
    if operand.pointer is None or operand.type != type:
        return None
    border = operand.border
    apart = border.loops if border is not None else frozenset[str]()
    line_loops, line_steps = merge_loops(lines, operand.strides, apart)
    summed_loops, summed_steps = merge_loops(summed, operand.strides, apart)
    outer = {loop.name: operand.strides.get(loop.name, 0) for loop in batch}
    found = View(
        line_loops,
        summed_loops,
        {**outer, **line_steps, **summed_steps},
        tuple(outer),
        border is not None,
    )
    return found if 1 in (found.line_step, found.summed_step) else None
