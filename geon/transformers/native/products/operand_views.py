"""Operands of products as strided memory, with rows or columns that are copied as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import merge_loops
from ...printing.nests.contractions import Element
from .padded_packing import Border, Windows

Loops = tuple[tuple[Loop, ...], dict[str, Size]]  # collapsed loops and their strides


@dataclass(frozen=True)
class Operand:
    """One operand of a product.

    `type` is the C type of its elements. `element` returns C statements and an expression for an
    element, given the C texts of loop indices and the innermost loop if there is one. `pointer` and
    `strides` (in elements, 0 for other loops) are set if elements are `pointer[offset]`. `unit` is
    the preferred innermost loop. `border` are the bounds outside of which elements are 0. `joined`
    are pairs of loops that can be collapsed into the inner one. `memory` are the pointers that
    elements are read from, or None if unknown.
    """

    type: str
    element: Element
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
    the strides of all loops in elements, `batch` the names of the batch loops.
    """

    pointer: str
    lines: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    strides: Mapping[str, Size]
    batch: tuple[str, ...]
    border: Border | None = None
    windows: Windows | None = None

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
        return self.border is None and len(self.lines) <= 1 and len(self.summed) <= 1

    @property
    def whole(self) -> bool:
        """Return True if lines and summed indices together are contiguous memory."""
        orders = ((*self.lines, *self.summed), (*self.summed, *self.lines))
        runs = (merge_loops(loops, self.strides) for loops in orders)
        return any(
            len(loops) <= 1 and all(steps[loop.name] == 1 for loop in loops)
            for loops, steps in runs
        )

    @property
    def loops(self) -> list[str]:
        """Return the names of all loops."""
        return [*self.batch, *(loop.name for loop in (*self.lines, *self.summed))]


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
    sides = [merge_loops(loops, operand.strides, apart) for loops in (lines, summed)]
    windows = None
    if border is not None:
        for k, loops in ((1, summed), (0, lines)):
            led = merge_loops(loops, operand.strides, apart, True)
            windows = led_windows(border, loops, led, sides[1 - k][0], k == 1)
            if windows is not None:
                sides[k] = _with_last(sides[k], led)
                break
    (line_loops, line_steps), (summed_loops, summed_steps) = sides
    outer = {loop.name: operand.strides.get(loop.name, 0) for loop in batch}
    found = View(
        operand.pointer,
        line_loops,
        summed_loops,
        {**outer, **line_steps, **summed_steps},
        tuple(outer),
        border,
        windows,
    )
    return found if 1 in (found.line_step, found.summed_step) else None


def _with_last(apart: Loops, led: Loops) -> Loops:
    """Return the loops of ``apart``, with those that ``led``'s last loop covers collapsed."""
    last = led[0][-1]
    kept = tuple([loop for loop in apart[0] if not set(loop.axes) <= set(last.axes)])
    steps = {loop.name: apart[1][loop.name] for loop in kept}
    return (*kept, last), {**steps, last.name: led[1][last.name]}


def led_windows(
    border: Border,
    loops: Sequence[Loop],
    led: Loops,
    across: Sequence[Loop],
    of_lines: bool,
) -> Windows | None:
    """Return windows whose tap loop is the outermost part of the innermost collapsed loop, or None.

    They lie along the innermost loop of ``across``, which may have no other guard.
    """
    if not led[0] or not across or led[1][led[0][-1].name] != 1:
        return None
    short, along = led[0][-1], across[-1].name
    inner = [loop for loop in loops if loop.extent != 1 and set(loop.axes) <= set(short.axes)]
    guards = [guard for guard in border.guards if along in guard.index.terms]
    if not inner or len(guards) != 1:
        return None
    positions, step = inner[0].name, guards[0].index.terms[along]
    on = [guard for guard in border.guards if positions in guard.index.terms]
    if on != guards or not isinstance(step, int) or step < 1:
        return None
    each = product(loop.extent for loop in inner[1:])
    return Windows(guards[0], along, of_lines, positions, each, short.name)
