"""Fusion: which ops one loop nest or contraction computes together, for targets that emit loops.

Ops are visited from the results backwards. Each joins the kernel of an op that uses it where that
saves memory traffic, or begins a kernel. Every kernel has a level, lower than the levels of all
kernels that read from it; an op joins a kernel only where that stays so, hence no cycles.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from ...op_graph.axes import Axis
from ...op_graph.bound import is_bound
from ...op_graph.lengths import product
from ...op_graph.op_graph import Leaf, Op, among
from ..kernels.elements import examined
from ..kernels.types import Fused
from .blocks import by_blocks
from .fusion_reads import FusionGroup, Reading
from .groups import Apart, Group, single
from .layout import LaidOut, is_choice
from .merging import Merging
from .target import Target

BODY = 512  # statements of one nest: a longer body is no faster, and compiles longer
EPILOGUE = 256  # statements of one that runs on each sum of a product
ELEMENTARY = 20  # statements of an elementary function
NEAR = 64  # values below an op that are looked at for what it shares with others
RECENT = 8  # the last kernels that read a value, which one more of its readers may join
CHEAP_CHAIN = 8
ROW = 1 << 16  # elements of a row that several passes may share: what stays in a core's cache
FEW_ROWS = 8
REPEATED = 2  # kernels that compute a costly op, such as forward and backward, before it is stored
LONG = 64  # elements of a row from which a matrix-vector product streams several rows at once


class Use(NamedTuple):
    """A use of an op: the op that uses it, and how indices match on the way there.

    ``identity``: each axis is indexed as the user's axis of that name; ``broadcasts``: the user has
    axes that the op lacks; ``renamed``: the user's name for each of the op's axes, where that is
    all that keeps the uses from that.
    """

    op: Op
    identity: bool
    broadcasts: bool
    renamed: tuple[tuple[str, str], ...] = ()


def fusion_groups(laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> list[Group]:
    """The kernels of a program: ``Target.group`` of targets that emit loops."""
    groups = _Fusion(laid_out, target, ops, check).run()
    return groups if check or len(ops) == 1 else by_blocks(laid_out, groups, ops)


def is_view(laid_out: LaidOut, op: Op) -> bool:
    """Whether ``op`` is another view of its argument's memory."""
    return op.primitive.view and laid_out.base[op] is not op


def reduces(op: Op) -> bool:
    """Whether ``op`` is a reduction that a nest computes.

    A row that libraries have a way of their own for is left to them along the innermost axis: they
    find the position of an extreme in vectors, while a state of a value and a position branches.
    """
    if op.primitive.kind != "reduction":
        return False
    innermost = op.args[0].axes.names[-1:]
    return op.primitive.cost != "kernel" or op.attrs[0] == () or op.attrs[0] != innermost


def is_product(op: Op) -> bool:
    """Whether a contraction of floats is worth a product's tiles, or a stream of a long matrix.

    Others (of integers, of vectors, of a narrow matrix and a vector) are reductions.
    """
    x, y = op.args[0].axes, op.args[1].axes
    if op.dtype.name not in ("float32", "float64"):
        return False
    own = [any(n not in y for n in x.names), any(n not in x for n in y.names)]
    if all(own):
        return True
    depth = product(x[n].expression for n in op.attrs[0])
    shared = [n for n in x.names if n in y and n not in op.attrs[0]]
    return any(own) and not shared and isinstance(depth, int) and depth >= LONG


def statements(op: Op) -> int:
    """About how many statements of a processor one element of ``op`` takes."""
    return ELEMENTARY if op.primitive.cost == "expensive" else 1


def loop_axes(op: Op) -> list[Axis]:
    """The axes that the loops of an op go over."""
    over = op.args if reduces(op) or op.primitive.name == "dot" else (op,)
    return [axis for each in over for axis in each.axes]


class _Fusion:
    def __init__(self, laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> None:
        self.laid_out, self.target, self.ops = laid_out, target, ops
        self.apart = check or len(ops) == 1
        program = laid_out.program
        self.required: set[Op] = {*program.outputs, *(op for _, op in program.updates)}
        self.uses: dict[Op, list[Use]] = {}
        self.computed_in: dict[Op, list[FusionGroup]] = {}  # the groups in which an op is computed
        self.groups: list[FusionGroup] = []
        self.stored_by: dict[Op, FusionGroup] = {}  # the group that stores an op
        if len(ops) == 1:  # a copy added by the schedule: what it copies is in memory
            stored = FusionGroup("call", 0)
            self.stored_by.update((self.laid_out.base[arg], stored) for arg in ops[0].args)
        self.readers: dict[Op, deque[FusionGroup]] = {}
        self.chain: dict[Op, int] = {}
        self.recompute_sources: dict[Op, frozenset[Op]] = {}
        self.after_contraction: set[Op] = set()
        self.reasons: dict[FusionGroup, list[Apart]] = {}

    # Walking ------------------------------------------------------------------------------------

    def run(self) -> list[Group]:
        """The groups, producers before users."""
        if not self.apart:
            for op in self.ops:
                self.measure(op)
        for op in reversed(self.ops):
            if not is_bound(op):
                self.visit(op)
        if self.target.model is not None and not self.apart:
            merging = Merging(self, self.target.model, self.groups)
            merging.run()
            self.reasons = merging.apart
        acted: dict[Op, tuple[Op, ...]] = {}
        made = []
        for op in self.ops:
            group = self.stored_by.get(op)
            if group is None:
                continue
            if group.kind == "call":
                fused = Fused("call")
                made.append(single(self.laid_out, self.target, op, acted, fused))
            elif op is group.results[0]:
                made.append(self.made(group))
        return made

    def measure(self, op: Op) -> None:
        """Note what repeating ``op`` would cost, and whether a contraction's result is below it."""
        if op.primitive.name == "dot":
            self.after_contraction.add(op)
        elif any(arg in self.after_contraction and arg.axes.same_set(op.axes) for arg in op.args):
            self.after_contraction.add(op)
        below: frozenset[Op] = frozenset()
        for arg in op.args:
            if len(arg.axes) >= len(op.axes):
                below |= self.recompute_sources[arg]
        if is_view(self.laid_out, op):
            shifted = op.primitive.name in ("slice", "flip") and below
            self.recompute_sources[op] = frozenset((op,)) if shifted else below
        elif self.repeats(op) and len(below) < 2:
            self.recompute_sources[op] = below
        else:
            self.recompute_sources[op] = frozenset((op,)) if len(op.axes) else frozenset()
        longest = max((self.chain[arg] for arg in op.args), default=0)
        self.chain[op] = longest + (not is_view(self.laid_out, op)) if self.is_cheap(op) else 0

    def below_views(self, op: Op) -> Op:
        """What lies below views."""
        while is_view(self.laid_out, op):
            op = op.args[0]
        return op

    def repeats(self, op: Op) -> bool:
        """Whether the arithmetic of ``op`` is cheap."""
        row = op.primitive
        heavy = row.cost in ("expensive", "kernel") or reduces(op) or row.acts
        return not (heavy or row.name == "dot" or isinstance(op, Leaf) or is_bound(op))

    def is_cheap(self, op: Op) -> bool:
        """Whether computing ``op`` again costs about as much as reading it."""
        if op.primitive.cost == "once":
            return len(self.uses.get(op, ())) < 2 and op.primitive.name != "concat"
        return self.repeats(op) and op not in self.recompute_sources.get(op, ())

    def visit(self, op: Op) -> None:
        """Give an op to the way that ops of its kind are computed."""
        uses = self.uses.get(op, [])
        name = op.primitive.name
        if is_view(self.laid_out, op):
            if op in self.required:
                self.require(self.laid_out.base[op])
            self.pass_through(op, uses)
            return
        if op.primitive.acts:
            self.library(op, uses)
            for arg in examined(op):
                self.pass_on(arg, [Use(op, True, False)])
            # What is looked at twice, here and where it is used, is computed once.
            self.require(self.laid_out.base[op.args[0]])
            self.pass_on(op.args[0], uses)
            return
        if op.primitive.cost == "kernel" and not is_choice(op) and not reduces(op):
            self.library(op, uses)
            return
        if name == "dot" and is_product(op):
            self.contraction(op, uses)
        elif reduces(op) or name == "dot":
            self.reduction(op, uses)
        else:
            self.elementwise(op, uses)
        self.spread_uses(op)

    def pass_through(self, op: Op, uses: list[Use]) -> None:
        """A view passes its uses on to its argument."""
        name, arg = op.primitive.name, op.args[0]
        identity = name in ("broadcast", "reorder")
        wider = name == "broadcast"
        names: tuple[tuple[str, str], ...] = ()
        if name == "rename":
            names = tuple(zip(arg.axes.names, op.axes.names, strict=True))
        for u in uses:
            renamed = names if u.identity and not u.broadcasts else ()
            self.pass_on(arg, [Use(u.op, u.identity and identity, u.broadcasts or wider, renamed)])
        for position in op.args[1:]:
            self.pass_on(position, [Use(u.op, True, True) for u in uses])

    def pass_on(self, op: Op, uses: Iterable[Use]) -> None:
        self.uses.setdefault(op, []).extend(uses)

    def spread_uses(self, op: Op) -> None:
        """Note the uses that ``op`` makes of its arguments."""
        name = op.primitive.name
        free = op.primitive.index_map is not None
        for k, arg in enumerate(op.args):
            identity = not free or not len(arg.axes)
            if name == "gather" and k == 1:
                identity = False
            broadcasts = name == "dot" or reduces(op) or len(arg.axes) < len(op.axes)
            if reduces(op):
                broadcasts = False
            self.pass_on(arg, [Use(op, identity, broadcasts)])

    # Where an op is computed --------------------------------------------------------------------

    def require(self, op: Op) -> None:
        if not is_bound(op):
            self.required.add(op)

    def level_below(self, uses: list[Use]) -> int:
        levels = [c.level for use in uses for c in self.computed_in.get(use.op, ())]
        return min(levels) - 1 if levels else 0

    def users(self, uses: list[Use]) -> list[FusionGroup]:
        """The groups that use an op."""
        return list({c: None for use in uses for c in self.computed_in.get(use.op, ())})

    def begin(self, op: Op, kind: str, uses: list[Use]) -> FusionGroup:
        """A group of its own for ``op``."""
        group = FusionGroup(kind, self.level_below(uses))
        self.groups.append(group)
        self.enter(op, group, True)
        return group

    def enter(self, op: Op, group: FusionGroup, result: bool) -> None:
        """Compute ``op`` in a group, stored by it where it is a ``result``."""
        group.inner.add(op)
        inside = self.within(self.uses.get(op, []), group)
        if not all(self.straight(use, group) for use in inside):
            group.reindexed.add(op)
        if any(use.broadcasts or use.op in group.widened for use in inside):
            group.widened.add(op)
        group.statements += statements(op)
        for axis in loop_axes(op):
            group.extents.setdefault(axis.name, axis.expression)
        for arg in () if self.apart else op.args:
            self.note_reader(self.below_views(arg), group)
        self.computed_in.setdefault(op, []).append(group)
        if result:
            group.results.append(op)
            self.stored_by[op] = group

    def library(self, op: Op, uses: list[Use]) -> None:
        """A kernel of its own, which reads its arguments from memory."""
        group = self.begin(op, "call", uses)
        for arg in examined(op) if op.primitive.acts else op.args:
            self.require(self.laid_out.base[arg])
            if not op.primitive.acts:
                self.pass_on(arg, [Use(op, False, False)])
        group.results = [op]

    def candidates(self, op: Op, uses: list[Use]) -> list[FusionGroup]:
        """The groups that ``op`` could join as one of their results, lowest level first."""
        users = self.users(uses)
        fitting = []
        for group in users:
            others = [c for c in users if c is not group]
            if all(group.level < other.level for other in others):
                fitting.append(group)
        return fitting

    def within(self, uses: list[Use], group: FusionGroup) -> list[Use]:
        return [use for use in uses if group in self.computed_in.get(use.op, ())]

    def elementwise(self, op: Op, uses: list[Use]) -> None:
        """Repeat an op in all its users, join one of them, or begin a nest."""
        users = self.users(uses)
        required = op in self.required or self.apart
        if not required and users and self.repeatable(op, uses, users):
            for group in users:
                self.enter(op, group, False)
            return
        if not self.apart:
            for group in self.candidates(op, uses):
                if self.fits_elementwise(op, self.within(uses, group), group):
                    self.enter(op, group, required or len(users) > 1)
                    return
            for group in self.siblings(op, users):
                if self.beside(op, group):
                    self.enter(op, group, True)
                    return
        self.begin(op, "nest", uses)

    def repeatable(self, op: Op, uses: list[Use], users: list[FusionGroup]) -> bool:
        """Whether ``op`` is computed wherever it is used, never stored."""
        cheap = self.is_cheap(op) and self.chain[op] <= CHEAP_CHAIN
        scalar = not len(op.axes) and self.chain[op] <= CHEAP_CHAIN
        alone = len(uses) == 1 and not uses[0].broadcasts and not self.operand(uses[0])
        if not (cheap or scalar or alone):
            return False
        if op.primitive.cost == "expensive" and not scalar and self.multiplies(uses, users):
            return False
        for group in users:
            if group.kind == "call" or self.full(op, group):
                return False
        return not any(self.operand(use) and op in self.after_contraction for use in uses)

    def multiplies(self, uses: list[Use], users: list[FusionGroup]) -> bool:
        """Whether repeating an op in all its users computes it more often than memory costs."""
        widened = any(
            use.op in group.widened for group in users for use in self.within(uses, group)
        )
        return widened or len(users) > REPEATED

    def straight(self, use: Use, group: FusionGroup) -> bool:
        """Whether the user is computed at the group's indices, and takes the op at its own."""
        return use.identity and use.op not in group.reindexed and not self.operand(use)

    def operand(self, use: Use) -> bool:
        """Whether a use is as an operand of a product."""
        return use.op.primitive.name == "dot" and is_product(use.op)

    def fits_elementwise(self, op: Op, uses: list[Use], group: FusionGroup) -> bool:
        """Whether a group can compute ``op``, stored or not, at its own indices."""
        if group.kind == "call" or self.full(op, group):
            return False
        if not all(self.straight(use, group) for use in uses):
            return False
        if group.rows is not None and not group.rows <= set(op.axes.names):
            return False
        if any(use.broadcasts for use in uses):
            return group.kind == "nest" and self.by_rows(group, frozenset(op.axes.names))
        return group.rows is not None or op.axes.same_set(group.results[0].axes)

    def full(self, op: Op, group: FusionGroup) -> bool:
        """Whether a group holds as much as a compiler handles well."""
        most = EPILOGUE if group.kind == "contraction" else BODY
        return group.statements + statements(op) > most

    def by_rows(self, group: FusionGroup, rows: frozenset[str]) -> bool:
        """Make the passes of a nest share ``rows``; False where that does not fit."""
        if group.rows is not None:
            return group.rows == rows
        if not rows or not all(rows <= set(op.axes.names) for op in group.results):
            return False
        for op in group.results:
            order = self.laid_out.layouts[op].order
            if not set(order[: len(rows)]) <= rows:
                return False
        group.rows = rows
        return True

    def reduction(self, op: Op, uses: list[Use]) -> None:
        """Let a nest that uses a reduction compute it, or one over the same space, or begin one."""
        users = self.users(uses)
        required = op in self.required or len(users) > 1
        if not self.apart:
            for group in self.candidates(op, uses):
                if self.fits_reduction(op, self.within(uses, group), group):
                    group.reductions.append(op)
                    self.enter(op, group, required)
                    return
            for group in self.siblings(op, users):
                if self.reduced_beside(op, group):
                    group.reductions.append(op)
                    self.enter(op, group, True)
                    return
        group = self.begin(op, "nest", uses)
        group.rows = frozenset(op.axes.names)
        group.reductions.append(op)

    # What reads the same ------------------------------------------------------------------------

    def note_reader(self, value: Op, group: FusionGroup) -> None:
        """Let what else reads a value find a group that does."""
        readers = self.readers.setdefault(value, deque(maxlen=RECENT))
        if len(value.axes) and group not in readers:
            readers.append(group)

    def siblings(self, op: Op, users: list[FusionGroup]) -> list[FusionGroup]:
        """Nests beside ``op`` that read what it reads, by how much of it."""
        shared: dict[FusionGroup, int] = {}
        for value in self.sources(op):
            for group in self.readers.get(value, ()):
                shared[group] = shared.get(group, 0) + 1
        fitting = [g for g in shared if all(g.level < user.level for user in users)]
        fitting = [g for g in fitting if g.kind == "nest" and not self.full(op, g)]
        fitting = [g for g in fitting if self.same_lengths(op, g)]
        return sorted(fitting, key=lambda group: -shared[group])

    def same_lengths(self, op: Op, group: FusionGroup) -> bool:
        """Whether the axes that the loops of both go over are as long."""
        known = group.extents
        return all(known.get(a.name, a.expression) == a.expression for a in loop_axes(op))

    def sources(self, op: Op) -> list[Op]:
        """The values nearest below ``op`` that have all axes its loops go over."""
        axes = {axis.name for arg in op.args for axis in arg.axes}
        found: dict[Op, None] = {}
        queue = deque(op.args)
        while queue and len(found) < NEAR:
            arg = self.below_views(queue.popleft())
            if len(arg.axes) < len(axes) or arg in found:
                continue
            found[arg] = None
            if not is_bound(arg) and arg.primitive.kind == "elementwise":
                queue += arg.args
        return list(found)

    def beside(self, op: Op, group: FusionGroup) -> bool:
        """Whether a nest that goes over the same elements can store ``op`` too."""
        order = self.laid_out.layouts[op].order
        if group.rows is not None:
            return group.rows <= set(op.axes.names) and set(order[: len(group.rows)]) <= group.rows
        first = group.results[0]
        return op.axes.same_set(first.axes) and self.laid_out.layouts[first].order == order

    def reduced_beside(self, op: Op, group: FusionGroup) -> bool:
        """Whether a nest that goes over the same elements can reduce them to ``op`` too."""
        rows = frozenset(op.axes.names)
        if group.rows is not None:
            return group.rows == rows and all(
                frozenset(result.axes.names) == rows or self.small_rows(op)
                for result in group.results
            )
        return self.small_rows(op) and self.by_rows(group, rows)

    def fits_reduction(self, op: Op, uses: list[Use], group: FusionGroup) -> bool:
        """Whether the nest can compute ``op`` for each row before it uses it."""
        rows = frozenset(op.axes.names)
        if group.kind != "nest" or self.full(op, group) or group.dot is not None:
            return False
        if not all(self.straight(use, group) for use in uses):
            return False
        if all(frozenset(r.axes.names) == rows for r in group.results):
            if group.rows not in (None, rows):
                return False
            if not self.feeds_reduction(uses, group):
                group.rows = rows  # what follows is computed from the reduction, row by row
                return True
        if not rows or not self.small_rows(op):
            return False
        if any(not rows <= set(r.axes.names) for r in group.results):
            return False
        if any(frozenset(r.axes.names) != rows for r in group.reductions):
            return False
        if group.rows is None:
            group.rows = rows
        return group.rows == rows

    def feeds_reduction(self, uses: list[Use], group: FusionGroup) -> bool:
        """Whether a reduction of the group is over something computed from these uses."""
        wanted = {use.op for use in uses}
        stack = list(group.reductions)
        seen = set(stack)
        while stack:
            for arg in stack.pop().args:
                arg = self.below_views(arg)
                if arg in group.inner and arg not in seen:
                    seen.add(arg)
                    stack.append(arg)
        return bool(wanted & seen)

    def small_rows(self, op: Op) -> bool:
        """Whether what is reduced for one row stays in cache, and there are rows for all cores."""
        kept = set(op.axes.names)
        lengths = {a.name: a.expression for arg in op.args for a in arg.axes}
        row = product(n for name, n in lengths.items() if name not in kept)
        rows = product(op.axes.lengths)
        long = isinstance(row, int) and row > ROW
        few = isinstance(rows, int) and rows < FEW_ROWS and isinstance(row, int) and row > 1024
        return not long and not few

    def contraction(self, op: Op, uses: list[Use]) -> None:
        """Store a contraction through what one user does with it, or begin a product."""
        users = self.users(uses)
        required = op in self.required or len(users) > 1
        if not self.apart:
            for group in self.candidates(op, uses):
                inside = self.within(uses, group)
                if self.fits_contraction(op, inside, group):
                    group.kind, group.dot, group.names = "contraction", op, inside[0].renamed
                    self.enter(op, group, required)
                    return
        group = self.begin(op, "contraction", uses)
        group.dot = op

    def fits_contraction(self, op: Op, uses: list[Use], group: FusionGroup) -> bool:
        """Whether what the group computes can be done while the product is stored."""
        if group.kind != "nest" or group.reductions or group.rows is not None:
            return False
        if group.statements > EPILOGUE or {use.renamed for use in uses} != {uses[0].renamed}:
            return False
        renamed = uses[0].renamed
        if renamed and (op in self.required or len(self.users(self.uses[op])) > 1):
            return False
        if any(use.op in group.reindexed for use in uses):
            return False
        if not all((use.identity or renamed) and not use.broadcasts for use in uses):
            return False
        names = {n for _, n in renamed} or set(op.axes.names)
        return all(set(result.axes.names) == names for result in group.results)

    # Groups -------------------------------------------------------------------------------------

    def made(self, group: FusionGroup) -> Group:
        """The group of a nest or product: what it reads, needs, and may overwrite."""
        results = tuple(group.results)
        order = Reading(self.laid_out, self.stored_by, group)
        for op in results:
            order.walk(op)
        fused = self.fused(group)
        in_place = {op: order.in_place(op) for op in results}
        main, apart = results[0], tuple(self.reasons.get(group, ()))
        return Group(main, results, tuple(order.reads), tuple(order.needs), in_place, fused, apart)

    def fused(self, group: FusionGroup) -> Fused:
        """How a group computes."""
        reductions = tuple(group.reductions)
        return Fused(group.kind, group.rows, group.dot, reductions, group.names)

    # Two nests as one ---------------------------------------------------------------------------

    def together(self, first: FusionGroup, then: FusionGroup) -> FusionGroup | str:
        """A nest that computes what two do, the second from results of the first; else why not."""
        if first.kind != "nest" or then.kind != "nest":
            return f"one is a {then.kind if first.kind == 'nest' else first.kind}"
        if first.statements + then.statements > BODY:
            return "the body would be too long"
        if any(then.extents.get(n, size) != size for n, size in first.extents.items()):
            return "their loops are of other lengths"
        read = [op for op in first.results if self.within(self.uses.get(op, []), then)]
        if not all(self.straight(u, then) for op in read for u in self.within(self.uses[op], then)):
            return "elements are read at other indices than they are computed at"
        rows = self.common_rows(first, then, read)
        if isinstance(rows, str):
            return rows
        others = [op for op in first.results if self.is_read_besides(op, then)]
        return FusionGroup(
            "nest",
            min(first.level, then.level),
            [*others, *then.results],
            list(dict.fromkeys([*first.reductions, *then.reductions])),
            first.inner | then.inner,
            rows,
            statements=first.statements + then.statements,
            extents={**first.extents, **then.extents},
            reindexed=first.reindexed | then.reindexed,
        )

    def is_read_besides(self, op: Op, then: FusionGroup) -> bool:
        """Whether a result is needed by more than one of its readers."""
        return op in self.required or any(c is not then for c in self.users(self.uses.get(op, [])))

    def common_rows(
        self, first: FusionGroup, then: FusionGroup, read: list[Op]
    ) -> frozenset[str] | None | str:
        """The rows that the passes of two nests would share, or why they share none."""
        rows = then.rows if first.rows is None else first.rows
        if then.rows is not None and then.rows != rows:
            return "their rows are other axes"
        orders = [self.laid_out.layouts[op].order for op in (*first.results, *then.results)]
        if rows is None:
            same = all(order == orders[0] for order in orders)
            return None if same else "their results lie in other orders in memory"
        if not all(set(order[: len(rows)]) == rows for order in orders):
            return "rows of one are no rows of the other"
        found = [*first.reductions, *then.reductions]
        if rows:
            return rows if all(self.small_rows(op) for op in found) else "rows are few or long"
        summed = any(among(op, first.reductions) for op in read)
        return "elements need a sum of all of them" if summed and any(orders) else rows

    def replace(self, group: FusionGroup, parts: tuple[FusionGroup, ...]) -> None:
        """Let a group stand for its parts."""
        for op in (op for part in parts for op in part.results):
            del self.stored_by[op]
        self.stored_by.update(dict.fromkeys(group.results, group))
        for op in group.inner:
            others = [c for c in self.computed_in[op] if c not in parts]
            self.computed_in[op] = [*others, group]
