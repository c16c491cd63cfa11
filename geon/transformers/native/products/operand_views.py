"""Operands of products in memory: views whose rows or columns are moved whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....op_graph.axes.affine import Size
from ....op_graph.axes.lengths import product
from ...kernels.ir.nest import Loop
from ...kernels.products.contraction import merged
from ...printing.nests.contractions import Element
from .padded_packing import Border, Windows

Loops = tuple[tuple[Loop, ...], dict[str, Size]]  # merged ones, and their strides


@dataclass(frozen=True)
class Operand:
    """One operand of a product.

    `element` makes C statements and a C value expression of type `type` from the C texts of the
    loops' indices, and the innermost loop where there is one. An element that is no more than
    `pointer[offset]` also says so with `pointer` and the stride in elements of each loop (0 for
    none), and with `border` where it is 0 instead.
    `unit` is the loop best walked innermost. `joined` are pairs of loops of which the inner one may
    run on instead of the outer one. `memory` are the pointers that elements are read from, where
    that is known.
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
    """An operand in memory over merged loops: `lines` are rows or columns, `summed` the rest."""

    pointer: str
    lines: tuple[Loop, ...]
    summed: tuple[Loop, ...]
    strides: Mapping[str, Size]
    batch: tuple[str, ...]
    border: Border | None = None
    windows: Windows | None = None

    @property
    def line_step(self) -> Size:
        """The stride of the innermost row or column loop."""
        return self.strides[self.lines[-1].name] if self.lines else 0

    @property
    def summed_step(self) -> Size:
        """The stride of the innermost summed loop."""
        return self.strides[self.summed[-1].name] if self.summed else 0

    @property
    def is_plain(self) -> bool:
        """Whether lines are one stride apart, and summed indices too."""
        return self.border is None and len(self.lines) <= 1 and len(self.summed) <= 1

    @property
    def whole(self) -> bool:
        """Whether rows or columns and summed indices are one run of memory."""
        orders = ((*self.lines, *self.summed), (*self.summed, *self.lines))
        runs = (merged(loops, self.strides) for loops in orders)
        return any(
            len(loops) <= 1 and all(steps[loop.name] == 1 for loop in loops)
            for loops, steps in runs
        )

    @property
    def loops(self) -> list[str]:
        """The names of all loops."""
        return [*self.batch, *(loop.name for loop in (*self.lines, *self.summed))]


def view(
    operand: Operand,
    type: str,
    batch: Sequence[Loop],
    lines: Sequence[Loop],
    summed: Sequence[Loop],
) -> View | None:
    """The operand as a view whose rows or columns can be moved whole; None if it has no such."""
    if operand.pointer is None or operand.type != type:
        return None
    border = operand.border
    apart = border.loops if border is not None else frozenset[str]()
    sides = [merged(loops, operand.strides, apart) for loops in (lines, summed)]
    windows = None
    if border is not None:
        for k, loops in ((1, summed), (0, lines)):
            led = merged(loops, operand.strides, apart, True)
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
    """Loops that stay apart, but for those that the last of ``led`` takes together."""
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
    """Windows whose positions lead the innermost of ``led`` loops; None where there are none.

    They lie along the innermost loop of ``across``, on which no other guard may be.
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
