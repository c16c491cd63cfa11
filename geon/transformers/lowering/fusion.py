"""Fusion: which ops one loop nest or contraction computes together, for targets that emit loops.

Ops are visited from the results backwards. Each joins the kernel of an op that uses it where that
saves memory traffic, or begins a kernel. Every kernel has a level, lower than the levels of all
kernels that read from it; an op joins a kernel only where that stays so, hence no cycles.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...op_graph.bound import is_bound
from ...op_graph.lengths import product
from ...op_graph.op_graph import Leaf, Op
from ..kernels.types import Fused
from .fusion_reads import Cluster, Reading
from .groups import Group, single
from .layout import LaidOut, is_choice
from .target import Target

BODY = 96  # ops in one kernel: longer bodies compile slowly and spill registers
EPILOGUE = 48
HEAVY_BODY = 12  # elementary functions in one kernel, each some twenty instructions
CHEAP_CHAIN = 8
ROW = 1 << 16  # elements of a row that several passes may share: what stays in a core's cache
FEW_ROWS = 8
LONG = 64  # elements of a row from which a matrix-vector product streams several rows at once


class Use(NamedTuple):
    """A use of an op: the op that uses it, and how indices match on the way there.

    ``aligned``: each axis is indexed as the user's axis of that name; ``spread``: the user has
    axes that the op lacks; ``renamed``: the user's name for each of the op's axes, where that is
    all that keeps them from being aligned.
    """

    op: Op
    aligned: bool
    spread: bool
    renamed: tuple[tuple[str, str], ...] = ()


def group(laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> list[Group]:
    """The kernels of a program: ``Target.group`` of targets that emit loops."""
    return _Fusion(laid_out, target, ops, check).run()


def is_look(laid_out: LaidOut, op: Op) -> bool:
    """Whether ``op`` only looks at the elements of its argument, at indices known by position."""
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


class _Fusion:
    def __init__(self, laid_out: LaidOut, target: Target, ops: list[Op], check: bool) -> None:
        self.laid_out, self.target, self.ops = laid_out, target, ops
        self.apart = check or len(ops) == 1
        program = laid_out.program
        self.required: set[Op] = {*program.outputs, *(op for _, op in program.updates)}
        self.uses: dict[Op, list[Use]] = {}
        self.homes: dict[Op, list[Cluster]] = {}  # the clusters in which an op is computed
        self.clusters: list[Cluster] = []
        self.first: dict[Op, Cluster] = {}  # the cluster that stores an op
        if len(ops) == 1:  # a copy added by the schedule: what it copies is in memory
            stored = Cluster("call", 0)
            self.first.update((self.laid_out.base[arg], stored) for arg in ops[0].args)
        self.siblings: dict[tuple[object, ...], list[Cluster]] = {}
        self.chain: dict[Op, int] = {}
        self.origins: dict[Op, frozenset[Op]] = {}
        self.fed: set[Op] = set()

    # Walking ------------------------------------------------------------------------------------

    def run(self) -> list[Group]:
        """The groups, producers before users."""
        if not self.apart:
            for op in self.ops:
                self.measure(op)
        for op in reversed(self.ops):
            if not is_bound(op):
                self.visit(op)
        acted: dict[Op, tuple[Op, ...]] = {}
        made = []
        for op in self.ops:
            cluster = self.first.get(op)
            if cluster is None:
                continue
            if cluster.kind == "call":
                form = Fused("call")
                made.append(single(self.laid_out, self.target, op, acted, form))
            elif op is cluster.results[0]:
                made.append(self.made(cluster))
        return made

    def measure(self, op: Op) -> None:
        """Note what repeating ``op`` would cost, and whether a contraction's result is below it."""
        if op.primitive.name == "dot":
            self.fed.add(op)
        elif any(arg in self.fed and arg.axes.same_set(op.axes) for arg in op.args):
            self.fed.add(op)
        below: frozenset[Op] = frozenset()
        for arg in op.args:
            if len(arg.axes) >= len(op.axes):
                below |= self.origins[arg]
        if is_look(self.laid_out, op):
            shifted = op.primitive.name in ("slice", "flip") and below
            self.origins[op] = frozenset((op,)) if shifted else below
        elif self.repeats(op) and len(below) < 2:
            self.origins[op] = below
        else:
            self.origins[op] = frozenset((op,)) if len(op.axes) else frozenset()
        longest = max((self.chain[arg] for arg in op.args), default=0)
        self.chain[op] = longest + (not is_look(self.laid_out, op)) if self.light(op) else 0

    def under(self, op: Op) -> Op:
        """What lies below looks."""
        while is_look(self.laid_out, op):
            op = op.args[0]
        return op

    def repeats(self, op: Op) -> bool:
        """Whether the arithmetic of ``op`` is cheap."""
        row = op.primitive
        heavy = row.cost in ("expensive", "kernel") or reduces(op) or row.acts
        return not (heavy or row.name == "dot" or isinstance(op, Leaf) or is_bound(op))

    def light(self, op: Op) -> bool:
        """Whether computing ``op`` again costs about as much as reading it."""
        if op.primitive.cost == "once":
            return len(self.uses.get(op, ())) < 2 and op.primitive.name != "concat"
        return self.repeats(op) and op not in self.origins.get(op, ())

    def visit(self, op: Op) -> None:
        """Give an op to the way that ops of its kind are computed."""
        uses = self.uses.get(op, [])
        name = op.primitive.name
        if is_look(self.laid_out, op):
            if op in self.required:
                self.require(self.laid_out.base[op])
            self.look(op, uses)
            return
        if op.primitive.acts:
            self.library(op, uses)
            self.pass_on(op.args[0], [Use(op, True, False), *uses])
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

    def look(self, op: Op, uses: list[Use]) -> None:
        """A look passes its uses on to what it looks at."""
        name, arg = op.primitive.name, op.args[0]
        aligned = name in ("broadcast", "reorder")
        wider = name == "broadcast"
        names: tuple[tuple[str, str], ...] = ()
        if name == "rename":
            names = tuple(zip(arg.axes.names, op.axes.names, strict=True))
        for u in uses:
            renamed = names if u.aligned and not u.spread else ()
            self.pass_on(arg, [Use(u.op, u.aligned and aligned, u.spread or wider, renamed)])
        for position in op.args[1:]:
            self.pass_on(position, [Use(u.op, True, True) for u in uses])

    def pass_on(self, op: Op, uses: Iterable[Use]) -> None:
        self.uses.setdefault(op, []).extend(uses)

    def spread_uses(self, op: Op) -> None:
        """Note the uses that ``op`` makes of its arguments."""
        name = op.primitive.name
        free = op.primitive.index_map is not None
        for k, arg in enumerate(op.args):
            aligned = not free or not len(arg.axes)
            if name == "gather" and k == 1:
                aligned = False
            spread = name == "dot" or reduces(op) or len(arg.axes) < len(op.axes)
            if reduces(op):
                spread = False
            self.pass_on(arg, [Use(op, aligned, spread)])

    # Where an op is computed --------------------------------------------------------------------

    def require(self, op: Op) -> None:
        if not is_bound(op):
            self.required.add(op)

    def level_below(self, uses: list[Use]) -> int:
        levels = [c.level for use in uses for c in self.homes.get(use.op, ())]
        return min(levels) - 1 if levels else 0

    def users(self, uses: list[Use]) -> list[Cluster]:
        """The clusters that use an op."""
        return list({c: None for use in uses for c in self.homes.get(use.op, ())})

    def begin(self, op: Op, kind: str, uses: list[Use]) -> Cluster:
        """A cluster of its own for ``op``."""
        cluster = Cluster(kind, self.level_below(uses))
        self.clusters.append(cluster)
        self.enter(op, cluster, True)
        return cluster

    def enter(self, op: Op, cluster: Cluster, result: bool) -> None:
        """Compute ``op`` in a cluster, stored by it where it is a ``result``."""
        cluster.inner.add(op)
        if not all(
            self.straight(use, cluster) for use in self.within(self.uses.get(op, []), cluster)
        ):
            cluster.strayed.add(op)
        cluster.heavy += op.primitive.cost == "expensive"
        self.homes.setdefault(op, []).append(cluster)
        if result:
            cluster.results.append(op)
            self.first[op] = cluster

    def library(self, op: Op, uses: list[Use]) -> None:
        """A kernel of its own, which reads its arguments from memory."""
        cluster = self.begin(op, "call", uses)
        for arg in op.args:
            self.require(self.laid_out.base[arg])
            if not op.primitive.acts:
                self.pass_on(arg, [Use(op, False, False)])
        cluster.results = [op]

    def candidates(self, op: Op, uses: list[Use]) -> list[Cluster]:
        """The clusters that ``op`` could join as one of their results, lowest level first."""
        users = self.users(uses)
        fitting = []
        for cluster in users:
            others = [c for c in users if c is not cluster]
            if all(cluster.level < other.level for other in others):
                fitting.append(cluster)
        return fitting

    def within(self, uses: list[Use], cluster: Cluster) -> list[Use]:
        return [use for use in uses if cluster in self.homes.get(use.op, ())]

    def elementwise(self, op: Op, uses: list[Use]) -> None:
        """Repeat an op in all its users, join one of them, or begin a nest."""
        users = self.users(uses)
        required = op in self.required or self.apart
        if not required and users and self.repeatable(op, uses, users):
            for cluster in users:
                self.enter(op, cluster, False)
            return
        if not self.apart:
            for cluster in self.candidates(op, uses):
                if self.fits_elementwise(op, self.within(uses, cluster), cluster):
                    self.enter(op, cluster, required or len(users) > 1)
                    return
        self.begin(op, "nest", uses)

    def repeatable(self, op: Op, uses: list[Use], users: list[Cluster]) -> bool:
        """Whether ``op`` is computed wherever it is used, never stored."""
        light = self.light(op) and self.chain[op] <= CHEAP_CHAIN
        scalar = not len(op.axes) and self.chain[op] <= CHEAP_CHAIN
        alone = len(uses) == 1 and not uses[0].spread and not self.operand(uses[0])
        if not (light or scalar or alone):
            return False
        for cluster in users:
            if cluster.kind == "call" or self.full(op, cluster):
                return False
        return not any(self.operand(use) and op in self.fed for use in uses)

    def straight(self, use: Use, cluster: Cluster) -> bool:
        """Whether the user is computed at the cluster's indices, and takes the op at its own."""
        return use.aligned and use.op not in cluster.strayed and not self.operand(use)

    def operand(self, use: Use) -> bool:
        """Whether a use is as an operand of a product."""
        return use.op.primitive.name == "dot" and is_product(use.op)

    def fits_elementwise(self, op: Op, uses: list[Use], cluster: Cluster) -> bool:
        """Whether a cluster can compute ``op``, stored or not, at its own indices."""
        if cluster.kind == "call" or self.full(op, cluster):
            return False
        if not all(self.straight(use, cluster) for use in uses):
            return False
        if cluster.rows is not None and not cluster.rows <= set(op.axes.names):
            return False
        if any(use.spread for use in uses):
            return cluster.kind == "nest" and self.by_rows(cluster, frozenset(op.axes.names))
        return cluster.rows is not None or op.axes.same_set(cluster.results[0].axes)

    def full(self, op: Op, cluster: Cluster) -> bool:
        """Whether a cluster holds as many ops as a compiler handles well."""
        if op.primitive.cost == "expensive" and cluster.heavy >= HEAVY_BODY:
            return True
        return len(cluster.inner) >= (EPILOGUE if cluster.kind == "contraction" else BODY)

    def by_rows(self, cluster: Cluster, rows: frozenset[str]) -> bool:
        """Make the passes of a nest share ``rows``; False where that does not fit."""
        if cluster.rows is not None:
            return cluster.rows == rows
        if not rows or not all(rows <= set(op.axes.names) for op in cluster.results):
            return False
        for op in cluster.results:
            order = self.laid_out.layouts[op].order
            if not set(order[: len(rows)]) <= rows:
                return False
        cluster.rows = rows
        return True

    def reduction(self, op: Op, uses: list[Use]) -> None:
        """Let a nest that uses a reduction compute it, or one over the same space, or begin one."""
        users = self.users(uses)
        required = op in self.required or len(users) > 1
        if not self.apart:
            for cluster in self.candidates(op, uses):
                if self.fits_reduction(op, self.within(uses, cluster), cluster):
                    cluster.reductions.append(op)
                    self.enter(op, cluster, required)
                    return
            for cluster in self.siblings.get(self.space(op), ()):
                if all(cluster.level < user.level for user in users):
                    if len(cluster.inner) < BODY and self.shares(op, cluster):
                        cluster.reductions.append(op)
                        self.enter(op, cluster, True)
                        return
        cluster = self.begin(op, "nest", uses)
        cluster.rows = frozenset(op.axes.names)
        cluster.reductions.append(op)
        self.siblings.setdefault(self.space(op), []).append(cluster)

    def space(self, op: Op) -> tuple[object, ...]:
        """The loops of a reduction: what is kept and what it goes over."""
        over = {(a.name, a.expression) for arg in op.args for a in arg.axes}
        return frozenset(op.axes.names), frozenset(over)

    def shares(self, op: Op, cluster: Cluster) -> bool:
        """Whether a reduction reads something that those of the cluster read."""
        mine = self.sources(op)
        return any(mine & self.sources(other) for other in cluster.reductions)

    def sources(self, op: Op) -> set[Op]:
        """Values of the reduction's own size near below it."""
        found: set[Op] = set()
        stack = list(op.args)
        while stack and len(found) < 64:
            arg = self.under(stack.pop())
            if len(arg.axes) and arg not in found:
                found.add(arg)
                if not is_bound(arg) and arg.primitive.kind == "elementwise":
                    stack += arg.args
        return found

    def fits_reduction(self, op: Op, uses: list[Use], cluster: Cluster) -> bool:
        """Whether the nest can compute ``op`` for each row before it uses it."""
        rows = frozenset(op.axes.names)
        if cluster.kind != "nest" or len(cluster.inner) >= BODY or cluster.dot is not None:
            return False
        if not all(self.straight(use, cluster) for use in uses):
            return False
        if all(frozenset(r.axes.names) == rows for r in cluster.results):
            if cluster.rows not in (None, rows):
                return False
            if not self.feeds_reduction(uses, cluster):
                cluster.rows = rows  # what follows is computed from the reduction, row by row
                return True
        if not rows or not self.small_rows(op):
            return False
        if any(not rows <= set(r.axes.names) for r in cluster.results):
            return False
        if any(frozenset(r.axes.names) != rows for r in cluster.reductions):
            return False
        if cluster.rows is None:
            cluster.rows = rows
        return cluster.rows == rows

    def feeds_reduction(self, uses: list[Use], cluster: Cluster) -> bool:
        """Whether a reduction of the cluster is over something computed from these uses."""
        wanted = {use.op for use in uses}
        stack = list(cluster.reductions)
        seen = set(stack)
        while stack:
            for arg in stack.pop().args:
                arg = self.under(arg)
                if arg in cluster.inner and arg not in seen:
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
            for cluster in self.candidates(op, uses):
                inside = self.within(uses, cluster)
                if self.fits_contraction(op, inside, cluster):
                    cluster.kind, cluster.dot, cluster.names = "contraction", op, inside[0].renamed
                    self.enter(op, cluster, required)
                    return
        cluster = self.begin(op, "contraction", uses)
        cluster.dot = op

    def fits_contraction(self, op: Op, uses: list[Use], cluster: Cluster) -> bool:
        """Whether what the cluster computes can be done while the product is stored."""
        if cluster.kind != "nest" or cluster.reductions or cluster.rows is not None:
            return False
        if len(cluster.inner) > EPILOGUE or {use.renamed for use in uses} != {uses[0].renamed}:
            return False
        renamed = uses[0].renamed
        if renamed and (op in self.required or len(self.users(self.uses[op])) > 1):
            return False
        if any(use.op in cluster.strayed for use in uses):
            return False
        if not all((use.aligned or renamed) and not use.spread for use in uses):
            return False
        names = {n for _, n in renamed} or set(op.axes.names)
        return all(set(result.axes.names) == names for result in cluster.results)

    # Groups -------------------------------------------------------------------------------------

    def made(self, cluster: Cluster) -> Group:
        """The group of a nest or product: what it reads, needs, and may overwrite."""
        results = tuple(cluster.results)
        order = Reading(self.laid_out, self.first, cluster)
        for op in results:
            order.walk(op)
        rows = cluster.rows if cluster.reductions or cluster.rows is not None else None
        reductions = tuple(cluster.reductions)
        form = Fused(cluster.kind, rows, cluster.dot, reductions, cluster.names)
        in_place = {op: order.in_place(op) for op in results}
        main = results[0]
        return Group(main, results, tuple(order.reads), tuple(order.needs), in_place, form)
