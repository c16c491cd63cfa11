"""Choose the loop trees of a nest, and the threads that share a row."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace
from typing import NamedTuple

from ....op_graph.axes.lengths import product
from ...kernels.analysis.footprint import is_direct
from ...kernels.ir.nest import Fill, Nest, Pass
from ...kernels.ir.scalar_code import Load, walk
from ...loops.from_nest import from_nest
from ...loops.rules.gpu import schedule, scheduled
from ...loops.rules.gpu_threads import Threads
from ...loops.rules.parts import in_parts
from ...loops.rules.tiles import in_tiles
from ...loops.tree import Space, Tree
from ...lowering.planning.kernel_forms import FormChoice
from ..launches.launch_ir import THREADS_PER_BLOCK, Parts
from ..launches.naming import is_by_elements
from .cooperative_threads import MAX_WARP_ROW_ELEMENTS, WARP_SIZE, Team
from .split_reductions import BLOCK_TEAM, COLUMN_TEAM, SplitReductions, division_of

LONE_THREAD = Team(1, THREADS_PER_BLOCK)
MAX_THREAD_ROW_ELEMENTS = 4  # max. elements of a row that one thread handles alone
MAX_THREAD_COLUMN_ELEMENTS = 8  # the same of a column: neighbouring threads load neighbours


class TeamTree(NamedTuple):
    """A tree whose tasks are shared by teams of threads; in a team of one, each has a thread.

    ``numbers`` are the numbers of parts by the names of lengths that stand for them in the tree.
    """

    team: Team
    tree: Tree
    numbers: Mapping[str, Parts] = {}


Form = TeamTree | FormChoice | Fill
Forms = tuple[Form, ...]


def forms_of(nest: Nest, unaligned: Set[int] = frozenset()) -> Forms:
    """Return what a nest runs, in order: scheduled trees, choices among them, and its fill.

    Operands ``unaligned`` may begin between vectors.
    """
    if nest.pieces:
        pieces = tuple([form for piece in nest.pieces for form in forms_of(piece, unaligned)])
        whole = whole_of(nest)
        if whole is None:
            return pieces
        return (FormChoice(nest.holds, pieces, forms_of(whole, unaligned)),)
    found: list[Form] = [] if nest.fill is None else [nest.fill]
    if is_by_threads(nest):
        return (*found, *tile_trees(nest), *thread_trees(nest, unaligned))
    division = division_of(nest)
    if division is None:
        return (*found, *team_forms(nest, unaligned))
    several = tuple(divided_trees(nest, division, unaligned))
    if division.is_known:
        return (*found, *several)
    return (*found, FormChoice(division.holds, several, team_forms(nest, unaligned)))


def whole_of(nest: Nest) -> Nest | None:
    """Return the nest without pieces that runs where its pieces do not; None if they always do."""
    if not nest.pieces:
        return nest
    return replace(nest, pieces=()) if nest.holds else None


def team_forms(nest: Nest, unaligned: Set[int]) -> Forms:
    """Return the tree of a nest whose rows are shared, or a choice by the lengths of rows."""
    trees = team_trees(nest, unaligned)
    if len(trees) == 1:
        return tuple(trees)
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    holds = tuple([MAX_WARP_ROW_ELEMENTS - n for n in counts if not isinstance(n, int)])
    return (FormChoice(holds, (trees[0],), (trees[1],)),)


def is_by_threads(nest: Nest) -> bool:
    """Return True if threads are independent: a nest only stores, or its rows are short."""
    if is_by_elements(nest):
        return True
    most = MAX_THREAD_ROW_ELEMENTS if nest.across is None else MAX_THREAD_COLUMN_ELEMENTS
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    return not nest.arrays and all(isinstance(n, int) and n <= most for n in counts)


def transposed_passes(nest: Nest) -> list[Pass]:
    """Return the passes that load along one axis and store along another, through tiles."""
    across = nest.across
    if across is None or not is_by_elements(nest):
        return []
    turned = [x for x in nest.passes if crosses(x, across.name) and loads_across(x, across.name)]
    return [x for x in turned if all(loop.extent != 0 for loop in (*x.loops, across))]


def crosses(step: Pass, column: str) -> bool:
    """Return True if a pass over columns only stores, not all with unit stride along columns."""
    if step.reductions or step.keeps or not step.loops:
        return False
    direct = all(is_direct(store.offset) for store in step.stores)
    return direct and any(store.offset.step(column) != 1 for store in step.stores)


def loads_across(step: Pass, column: str) -> bool:
    """Return True if a pass has loads that are adjacent along columns, not along its last loop."""
    last = step.loops[-1].name
    nodes = walk(*[store.value for store in step.stores])
    loads = [node for node in nodes if isinstance(node, Load) and is_direct(node.offset)]
    return any(x.offset.step(column) == 1 and x.offset.step(last) not in (0, 1) for x in loads)


def thread_trees(nest: Nest, unaligned: Set[int] = frozenset()) -> list[TeamTree]:
    """Return the tree of a nest of independent threads, without transposed passes.

    Operands ``unaligned`` may begin between vectors. Nothing is returned if no element is stored.
    """
    turned = transposed_passes(nest)
    steps = tuple([step for step in nest.steps if step not in turned])
    if not steps:
        return []
    tree = schedule(replace(nest, steps=steps), Threads(unaligned=frozenset(unaligned)))
    return [TeamTree(LONE_THREAD, tree)] if tree.body else []


def tile_trees(nest: Nest) -> list[TeamTree]:
    """Return the trees of the transposed passes of a nest."""
    threads = Threads(BLOCK_TEAM.size)
    alone = [replace(nest, steps=(step,)) for step in transposed_passes(nest)]
    trees = [in_tiles(from_nest(each), threads) for each in alone]
    return [TeamTree(BLOCK_TEAM, scheduled(tree, threads)) for tree in trees]


def team_trees(nest: Nest, unaligned: Set[int] = frozenset()) -> list[TeamTree]:
    """Return the trees of a nest whose rows are shared, for warps and for blocks or for one kind.

    A warp shares rows of at most ``MAX_WARP_ROW_ELEMENTS``. Where lengths are open, and there are
    both trees, the first is that for rows which are no longer than that. Columns have a small team
    each, and those of adjacent columns are in one block.
    """
    if nest.across is not None:
        threads = Threads(COLUMN_TEAM.size, frozenset(unaligned), beside=True)
        return [TeamTree(COLUMN_TEAM, schedule(nest, threads))]
    counts = [product(loop.extent for loop in step.loops) for step in nest.passes]
    known = [n for n in counts if isinstance(n, int)]
    is_open = len(known) < len(counts)
    warp = Team(WARP_SIZE, THREADS_PER_BLOCK if nest.rows else WARP_SIZE)
    long = max(known, default=1) > MAX_WARP_ROW_ELEMENTS or (is_open and nest.arrays)
    found = []
    for team in [BLOCK_TEAM] if long else [warp, BLOCK_TEAM]:
        tree = schedule(nest, Threads(team.size, frozenset(unaligned)))
        held = all(buffer.space is Space.REGISTER for buffer in tree.buffers)
        found.append(TeamTree(team, tree))
        if held and not is_open:
            break
    return found if is_open else found[-1:]


def divided_trees(
    nest: Nest, division: SplitReductions, unaligned: Set[int] = frozenset()
) -> list[TeamTree]:
    """Return the trees of a nest whose reductions several blocks share, in order.

    The last one combines the states of all parts: a block does so for all elements, and a thread
    for each row or column.
    """
    team, threads = division.team, Threads(division.team.size, frozenset(unaligned))
    threads = replace(threads, beside=team.beside != 0)
    numbers = {str(each): each for each in division.parts if each.is_open}
    *finding, joining = in_parts(from_nest(nest), division.counts, threads)
    last = TeamTree(team, scheduled(joining, threads), numbers)
    if nest.rows or nest.across is not None:
        last = TeamTree(LONE_THREAD, scheduled(joining, Threads()), numbers)
    return [*(TeamTree(team, scheduled(each, threads), numbers) for each in finding), last]
