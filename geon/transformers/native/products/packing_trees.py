"""Build the loop trees that pack a block of an operand.

The driver of products calls them for each block: where it begins and how large it is are open
lengths, the parameters of the function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from ....op_graph.axes.affine import AffineIndex, Size, unravel, variable
from ....op_graph.axes.index_map import InRange
from ....op_graph.axes.lengths import Length
from ....op_graph.op_graph import Op
from ...kernels.ir.nest import Keep, Loop
from ...kernels.ir.scalar_code import Kept, Load, Scalar, ScalarBuilder, Select
from ...kernels.products.contraction import inside_borders, unheld
from ...loops.guarded_loops import clip, unswitch
from ...loops.substitution import Substitution
from ...loops.transformations import quotient
from ...loops.tree import (
    Body,
    Choose,
    IllegalScheduleError,
    LoopNode,
    PrivateBuffer,
    Role,
    Space,
    Tree,
    VectorWidth,
    Write,
    constant,
    least,
    loops_of,
)
from ...sizes.product_blocks import MAX_SHALLOW_DEPTH
from .multi_index import size
from .packing import Packing

TO, STAGED = 0, 1  # the buffers: the packed block, and memory to compute elements in
# Names in C of the open lengths: the first line and the number of lines, of summed indices, and the
# distance of packed lines. No axis has such a name.
PARAMETERS = {
    f"{name} of a block": name for name in ("start", "count", "depth_start", "depth_run", "step")
}
START, COUNT, DEPTH_START, DEPTH_RUN, STEP = map(Length.of, PARAMETERS)
Range = tuple[str, AffineIndex]  # the variable of a loop and its extent


class BlockRuns(NamedTuple):
    """Loops over some adjacent indices, row-major, of a product's loops.

    ``around`` is the loop over runs of the innermost one, if there are others, and ``inner`` the
    loop over one run. ``at`` are the indices of the product's loops, and ``place`` is the number of
    the index among these.
    """

    around: tuple[Range, ...]
    inner: Range
    at: Mapping[str, AffineIndex]
    place: AffineIndex


def runs_of(
    loops: Sequence[Loop], start: AffineIndex, count: AffineIndex, variables: tuple[str, str]
) -> BlockRuns:
    """Return the loops over ``count`` indices from ``start`` on, which have these ``variables``."""
    runs, element = variables
    at = variable(element)
    if len(loops) <= 1:
        return BlockRuns((), (element, count), {loop.name: start + at for loop in loops}, at)
    *outer, inner = loops
    each: Size = inner.extent if inner.extent != 0 else 1  # of no iterations there are no runs
    first, run = quotient(start, each), variable(runs)
    begin = (first + run) * each
    last = quotient(start + count + (each - 1), each)
    before, extent = AffineIndex(), constant(each)
    if start != AffineIndex() or quotient(count, each) * each != count:
        before = least([before, begin - start])  # -1 times the indices that the first run lacks
        extent = least([extent, start + count - begin]) + before
    indices = unravel(first + run, [loop.extent for loop in outer])
    digits = {loop.name: index for loop, index in zip(outer, indices, strict=True)}
    return BlockRuns(
        ((runs, last - first),),
        (element, extent),
        {**digits, inner.name: at - before},
        begin - start - before + at,
    )


def nested(loops: Sequence[Range], body: Body, role: Role = Role.SERIAL) -> Body:
    """Return statements in loops, outermost first, the innermost of which has a role."""
    for name, extent in reversed(loops):
        body, role = (LoopNode(name, extent, body, role),), Role.SERIAL
    return body


class PackingTree:
    """Builds the tree of one packing function; ``operands`` are those of the kernel."""

    def __init__(self, packing: Packing, operands: Sequence[Op]) -> None:
        self.packing, self.operands = packing, tuple(operands)
        self.code = ScalarBuilder()
        self.first: Size = DEPTH_START
        self.terms: Size = DEPTH_RUN
        self.step: Size = STEP
        depth = size(packing.summed)
        if isinstance(depth, int) and depth <= MAX_SHALLOW_DEPTH:  # one block has all
            self.first, self.terms, self.step = 0, depth, depth

    def left(self) -> Tree:
        """Return the tree that packs rows, or columns like rows: ``self.step`` apart."""
        packing = self.packing
        lines, deep = self.lines(constant(START), constant(COUNT)), self.deep
        place = lines.place * self.step + deep.place
        if packing.view is not None:
            return self.copies(lines, deep, place, True, (), ())
        staged = (("row", constant(COUNT)), ("term", constant(self.terms)))
        across = self.moved(staged, variable("row") * self.step + variable("term"),
                            variable("term") * COUNT + variable("row"))  # fmt: skip
        if packing.runs_along_lines(True):
            return self.tree((*self.run(lines, deep, False, constant(COUNT), STAGED), *across))
        if packing.along_lines:
            put = self.keep(STAGED, deep.place * COUNT + lines.place, {**deep.at, **lines.at})
            loops = (*deep.around, deep.inner, *lines.around, lines.inner)
            return self.tree((*nested(loops, put, Role.SIMD), *across))
        if packing.runs_along_summed:
            return self.tree(self.run(lines, deep, True, constant(COUNT), TO))
        return self.tree(self.each_line(TO, constant(START), constant(COUNT), self.step))

    def panels(self) -> Tree:
        """Return the tree that packs columns into panels, padded with zeros."""
        packing, width, panel = self.packing, self.packing.of.panel, variable("panel")
        deep = self.deep
        filled, count = self.terms * width, (COUNT + (width - 1)) // width
        if packing.view is None and packing.runs_along_lines(False):
            every = self.lines(constant(START), constant(COUNT))
            loops = (("term", constant(self.terms)), ("row", constant(COUNT)))
            term, row = variable("term"), variable("row")
            return self.tree(
                (
                    *self.run(every, deep, False, constant(COUNT), STAGED),
                    *self.cleared(TO, AffineIndex(), filled),
                    *self.moved(loops, term * width + row, term * COUNT + row),
                )
            )
        if packing.view is None and not packing.along_summed:
            every = self.lines(constant(START), constant(COUNT))
            inside, column = variable("inside"), variable("column")
            put = self.keep(STAGED, every.place, {**deep.at, **every.at})
            loops = (("column", constant(count)), ("inside", constant(width)))
            place = column * filled + deep.place * width + inside
            body = (
                *nested((*every.around, every.inner), put, Role.SIMD),
                *self.moved(loops, place, column * width + inside),
            )
            clear = self.cleared(STAGED, constant(COUNT), count * width - COUNT)
            return self.tree((*clear, *nested((*deep.around, deep.inner), body)))
        rest = constant(COUNT) - panel * width
        some, begin = least([constant(width), rest]), panel * width + START
        lines, own = self.lines(begin, some), panel * filled
        pad = Choose((InRange(rest, 0, width),), self.cleared(TO, own, filled), ())
        around = (("panel", constant(count)),)
        if packing.view is not None:
            place = own + deep.place * width + lines.place
            return self.copies(lines, deep, place, False, around, (pad,))
        apart: Size = self.terms
        if packing.runs_along_summed:
            body = self.run(lines, deep, True, some, STAGED)
        else:
            apart = STEP
            body = self.each_line(STAGED, begin, some, STEP)
        loops = (("term", constant(self.terms)), ("row", some))
        across = self.moved(loops, own + variable("term") * width + variable("row"),
                            variable("row") * apart + variable("term"))  # fmt: skip
        return self.tree(nested(around, (pad, *body, *across)))

    # Parts --------------------------------------------------------------------------------------

    def lines(self, start: AffineIndex, count: AffineIndex) -> BlockRuns:
        """Return the loops over some rows or columns."""
        return runs_of(self.packing.own_lines, start, count, ("line_run", "line_at"))

    @cached_property
    def deep(self) -> BlockRuns:
        """Return the loops over the summed indices of the block."""
        range = constant(self.first), constant(self.terms)
        return runs_of(self.packing.own_summed, *range, ("deep_run", "deep_at"))

    def each_line(self, number: int, start: AffineIndex, count: AffineIndex, step: Size) -> Body:
        """Return loops that compute ``count`` lines from ``start`` on, ``step`` apart."""
        loops, deep, line = self.packing.own_lines, self.deep, variable("line")
        found = unravel(start + line, [loop.extent for loop in loops]) if loops else []
        at = {loop.name: index for loop, index in zip(loops, found, strict=True)}
        put = self.keep(number, line * step + deep.place, {**at, **deep.at})
        return nested((("line", count), *deep.around, deep.inner), put, Role.SIMD)

    def element(self, at: Mapping[str, AffineIndex]) -> Scalar:
        """Return the element at indices of the product's loops, 0 where there are none."""
        packing = self.packing
        value = packing.operand.value
        assert value is not None
        if packing.view is not None:
            load, guards = inside_borders(value)
            assert isinstance(load, Load)
            value = self.code(Load, load.operand, unheld(load.offset), load.dtype)
            zero = self.code.number(0.0, load.dtype)
            value = self.code(Select, guards, value, zero) if guards else value
        every = [loop.name for loop in (*packing.lines, *packing.summed)]
        change = Substitution(self.code, {**dict.fromkeys(every, AffineIndex()), **at})
        return self.code.cast(change.value(value), packing.dtype)

    def keep(self, number: int, place: AffineIndex, at: Mapping[str, AffineIndex]) -> Body:
        """Return the store of the element at indices of the product's loops."""
        return (Write((Keep(number, place, self.element(at)),)),)

    def run(
        self, lines: BlockRuns, deep: BlockRuns, by_lines: bool, count: AffineIndex, number: int
    ) -> Body:
        """Return one loop over contiguous elements: of ``count`` whole lines, or of all of these at
        each summed index.
        """
        (outer,), (inner,) = (self.packing.own_lines, self.packing.own_summed)
        start = lines.at[outer.name] - variable("line_at")
        at = {outer.name: start, inner.name: variable("element")}
        if not by_lines:
            at = {inner.name: constant(self.first), outer.name: variable("element")}
        put = self.keep(number, variable("element"), at)
        return nested((("element", count * self.terms),), put, Role.SIMD)

    def moved(self, loops: Sequence[Range], place: AffineIndex, source: AffineIndex) -> Body:
        """Return loops that move staged elements from ``source`` to ``place``."""
        value = self.code(Kept, STAGED, source, self.packing.dtype)
        return nested(loops, (Write((Keep(TO, place, value),)),))

    def cleared(self, number: int, begin: AffineIndex, count: Size) -> Body:
        """Return the loop that sets elements to 0."""
        name = "cleared"
        zero = self.code.number(0.0, self.packing.dtype)
        put = Write((Keep(number, begin + variable(name), zero),))
        return nested(((name, constant(count)),), (put,))

    def copies(
        self,
        lines: BlockRuns,
        deep: BlockRuns,
        place: AffineIndex,
        lines_first: bool,
        around: Sequence[Range],
        before: Body,
    ) -> Tree:
        """Return the tree that copies a view run by run, without the elements beyond its border.

        If a guard depends on both loops of a run, each index of the outer one has a run of its own.
        """
        value = self.element({**lines.at, **deep.at})
        inner = [lines.inner, deep.inner] if lines_first else [deep.inner, lines.inner]
        names = [name for name, _ in inner]
        guards = value.guards if isinstance(value, Select) else ()
        if any(all(name in guard.index.terms for name in names) for guard in guards):
            names = names[1:]
        put = Write((Keep(TO, place, value),))
        body = nested([*lines.around, *deep.around, *inner], (put,))
        tree = self.tree(nested(around, (*before, *body)))
        return clip(tree, names) if guards else tree

    def tree(self, body: Body) -> Tree:
        """Return the tree of statements; conditions are decided before the innermost loops."""
        dtype, of = self.packing.dtype, self.packing.of
        buffers = [PrivateBuffer(dtype, COUNT * STEP, Space.SCRATCH) for _ in (TO, STAGED)]
        width = VectorWidth(of.vector * dtype.itemsize, dtype.itemsize, compiled=True)
        tree = Tree(body, self.operands, tuple(buffers), self.code, vectors=width)
        names = [loop.variable for loop in loops_of(body) if loop.role is Role.SIMD]
        while names:
            try:
                tree = unswitch(tree, names[0])
            except IllegalScheduleError:
                names.pop(0)
        return tree
