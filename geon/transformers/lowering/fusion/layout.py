"""Layout stage: decides which ops are views, and the axis order of each value in memory."""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache

from ....lazy_dataclasses import dataclass
from ....op_graph.building.rebuild import rebuild, with_args
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.source_info import building
from ....op_graph.core.traversal import is_bound
from ....op_graph.op_graph import NO_AXES, Leaf, Op, RegionOp, Tensor
from ....op_graph.rows.elementwise import copy
from ...kernels.kernel_lowering import Lowering
from ...kernels.scans.scan_fusion import reads_views
from ..facts.target import Layout, Target
from ..facts.view_layout import view_layout
from ..rules.program import Program


@lru_cache(maxsize=4096)
def contiguous_layout(order: tuple[str, ...]) -> Layout:
    """Return the layout of contiguous memory with this order of axes."""
    return Layout(order)


@dataclass(frozen=True, eq=False, slots=True)
class LaidOut:
    """A program with layouts.

    ``layouts`` has the layout of each op; ``base`` maps an op to the value whose memory it views.
    ``lowering`` caches the kernels that fusion tried, many of which are used.
    """

    program: Program
    layouts: dict[Op, Layout]
    base: dict[Op, Op]
    lowering: Lowering = field(default_factory=Lowering)

    def is_kernel(self, op: Op) -> bool:
        """Return True if computing ``op`` is a step of the program."""
        if isinstance(op, RegionOp):
            return False  # its results are kernels instead
        return op.primitive.has_side_effect or (self.base[op] is op and not is_bound(op))


def is_choice(op: Op) -> bool:
    """Return True if ``op`` updates a broadcast scalar constant at known positions.

    The index alone selects each element, so it is computed like an elementwise op, without memory
    for the constant.
    """
    if op.primitive.name != "update" or len(op.args) > 2:
        return False
    base = op.args[0]
    while base.primitive.name in ("broadcast", "reorder"):
        base = base.args[0]
    known = all(item is None or item[0] in ("range", "at") for item in op.attrs.items)
    return known and base.axes is NO_AXES and is_bound(base)


def lay_out(program: Program, target: Target, own: OwnTable, check: bool = False) -> LaidOut:
    """Return the program with copies where a contraction or a result needs another memory order.

    New ops are in ``own``. With ``check`` each op is computed by itself.
    """
    with building(own):
        return _laid_out(program, _LayoutState(program, target, check))


def _laid_out(program: Program, state: _LayoutState) -> LaidOut:
    rebuild(program.roots, state.placed, state.new)
    outputs = [state.settled(op, number) for number, op in enumerate(program.outputs)]
    updates = [
        (leaf, state.settled(op, len(outputs) + number))
        for number, (leaf, op) in enumerate(program.updates)
    ]
    prints = tuple(state.new[op] for op in program.prints)
    again = tuple([state.new[op] for op in program.again if op in state.new])
    done = Program(tuple(outputs), tuple(updates), prints, again)
    return LaidOut(done, state.layouts, state.base)


class _LayoutState:
    def __init__(self, program: Program, target: Target, check: bool) -> None:
        self.target, self.check = target, check
        self.new: dict[Op, Op] = {}
        self.layouts: dict[Op, Layout] = {}
        self.base: dict[Op, Op] = {}
        self.finals = {*program.outputs, *(op for _, op in program.updates)}
        self.taken: set[Op] = set()

    def placed(self, op: Op, args: tuple[Op, ...]) -> Op:
        """Return ``op`` on its laid-out arguments, and record its layout."""
        if op.primitive.name == "dot":
            args = self.operands(op, args)
        elif isinstance(op, RegionOp):
            args = self.plain(op, args)
        elif op.primitive.name in self.target.contiguous and not is_choice(op):
            args = self.contiguous(op, args)
        made = with_args(op, args)
        if made not in self.layouts:
            self.record(made, op in self.finals)
        return made

    def operands(self, op: Op, args: tuple[Op, ...]) -> tuple[Op, ...]:
        """Return the operands of a contraction, copied where it cannot read their layout."""
        wish = self.target.arrange(op, *(self.layouts[arg] for arg in args))
        made: list[Op] = []
        for arg, order in zip(args, wish.copies, strict=True):
            if order is not None:
                assert isinstance(arg, Tensor)
                arg = copy(arg, order, site=op._site)
                self.record(arg, False)
            made.append(arg)
        return tuple(made)

    def contiguous(self, op: Op, args: tuple[Op, ...]) -> tuple[Op, ...]:
        """Return the operands, copied where the target needs them contiguous and they are not."""
        made = list(args)
        for k in self.target.contiguous[op.primitive.name][: len(made)]:
            arg = made[k]
            if self.layouts[arg] != Layout(arg.axes.names):
                assert isinstance(arg, Tensor)
                made[k] = copy(arg, arg.axes.names, site=op._site)
                self.record(made[k], False)
        return tuple(made)

    def plain(self, op: Op, args: tuple[Op, ...]) -> tuple[Op, ...]:
        """Return the inputs of a region, contiguous in the order of their axes unless views do."""
        bounds = self.target.orders
        if bounds is not None and not self.check and reads_views(op, bounds):
            return args
        made = list(args)
        for k, arg in enumerate(made):
            held = not is_bound(arg) or isinstance(arg, Leaf) or arg.primitive.name == "constant"
            if not held or self.layouts[arg] != Layout(arg.axes.names):
                assert isinstance(arg, Tensor)
                made[k] = copy(arg, arg.axes.names, site=op._site)
                self.record(made[k], False)
        return tuple(made)

    def record(self, op: Op, final: bool) -> None:
        """Record the layout and base of a laid-out op."""
        layout, base = self.layout_of(op, final)
        self.layouts[op] = layout
        self.base[op] = base

    def layout_of(self, op: Op, final: bool) -> tuple[Layout, Op]:
        """Return the layout of an op, and the op whose memory it uses.

        A ``final`` op is contiguous in the order of its axes.
        """
        name = op.primitive.name
        if op.primitive.has_side_effect:
            return self.layouts[op.args[0]], self.base[op.args[0]]
        if op.primitive.view:
            viewed = view_layout(op, self.layouts[op.args[0]])
            if viewed is not None:
                return viewed, self.base[op.args[0]]
        if name == "dot":
            order = self.target.arrange(op, *(self.layouts[arg] for arg in op.args)).order
        elif name == "copy" and op.attrs.layout is not None:
            order = op.attrs.layout
        elif op.primitive.kind == "elementwise" and not final and not isinstance(op, Leaf):
            order = self.inherited(op)
        else:
            order = op.axes.names
        return contiguous_layout(order), op

    def inherited(self, op: Op) -> tuple[str, ...]:
        """Return the order of the first full operand, so that loops run along memory."""
        for arg in op.args:
            layout = self.layouts[arg]
            if layout.mergeable and len(layout.order) == len(op.axes):
                return layout.order
        return op.axes.names

    def settled(self, op: Op, number: int) -> Tensor:
        """Return ``op``, or a copy: it must own memory in axis order and have no other role."""
        made = self.new[op]
        assert isinstance(made, Tensor)
        fits = self.base[made] is made and not is_bound(made) and made not in self.taken
        if not fits or self.layouts[made].order != made.axes.names:
            made = copy(made, None, number, op._site)
            self.record(made, True)
        self.taken.add(made)
        return made
