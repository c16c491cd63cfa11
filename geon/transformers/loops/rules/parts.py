"""Rules for reductions that many teams of GPU threads share: their parts are combined in order.

Each part of a pass has partial states in scratch memory. One launch computes those of a pass, and a
last one combines them and does everything else. The parts depend on lengths alone, so that bits do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ....op_graph.axes.affine import Size
from .. import transformations as shape
from ..access import used_buffers
from ..partial_states import fuse, promoted, rfactor
from ..simplify import grouped
from ..tree import Body, Kind, LoopNode, Space, Tree, find
from .gpu_threads import ELEMENTS_PER_VECTOR, Threads, is_whole
from .teams import divided_pass, flattened, is_vector, loop_before, passes_of, states_in


def in_parts(tree: Tree, counts: Sequence[Size], threads: Threads) -> list[Tree]:
    """Divide the first passes of rows, or of a nest without rows, into ``counts`` of parts.

    Return the trees of the launches: one for each of these passes, and that of all other
    statements.
    """
    names = [each.variable for each in passes_of(tree)[: len(counts)]]
    rows = find(tree, names[0])[1]
    vectors = not threads.beside and any(takes_vectors(tree, each, threads) for each in names)
    parts = []
    for name, count in zip(names, counts, strict=True):
        single = not any(isinstance(each, LoopNode) for each in find(tree, name)[0].body)
        tree, part = pass_in_parts(tree, name, count, threads.team, vectors and single)
        for row in reversed(rows):
            columns = row.kind is Kind.COLUMNS
            tree, own = shape.fission(tree, row.variable, part, adjacent=row is rows[-1])
            if columns:
                tree = shape.reorder(tree, own, part)
            part = part if columns else own
        parts.append(part)
    return launches(tree, parts)


def takes_vectors(tree: Tree, name: str, threads: Threads) -> bool:
    """Return True if a pass is one loop over vectors of adjacent elements.

    The last vector of a nest without rows may be incomplete.
    """
    loop, above = find(tree, name)
    flat = not any(isinstance(each, LoopNode) for each in loop.body)
    whole = loop.size is not None and is_whole(loop.size)
    return flat and (whole or not above) and is_vector(tree, name, threads)


def pass_in_parts(tree: Tree, name: str, count: Size, team: int, vectors: bool) -> tuple[Tree, str]:
    """Divide a pass into parts, and each of them among the threads of a team.

    Return the tree and the variable of the loop over parts.
    """
    tree, lane = flattened(tree, name), None
    if vectors:
        made = shape.split(tree, name, ELEMENTS_PER_VECTOR, Kind.LANES, guarded=True)
        tree, lane = grouped(made.tree, made.inner), made.inner
    made = shape.split_evenly(tree, name, count)
    tree, part = shape.set_kind(made.tree, name, Kind.BLOCK), name
    states = states_in(tree, name).states
    if states:
        known = len(tree.buffers)
        tree = rfactor(tree, name, name)
        part = loop_before(tree, name)
        tree = fuse(tree, part, name)
        tree = promoted(tree, part, range(known, known + len(states)))
    return divided_pass(tree, made.inner, team, lane), part


def launches(tree: Tree, parts: Sequence[str]) -> list[Tree]:
    """Return a tree for each of the outermost loops ``parts``, and one for the statements behind.

    What several of them access is scratch memory.
    """
    first = [find(tree, part)[0] for part in parts]
    behind = tree.body
    for loop in first:
        shape.require_movable(behind, loop)
        behind = tuple([each for each in behind if each is not loop])
    bodies: list[Body] = [*[(each,) for each in first], behind]
    users = Counter([number for body in bodies for number in used_buffers(body)])
    buffers = [
        replace(buffer, space=Space.SCRATCH) if users[number] > 1 else buffer
        for number, buffer in enumerate(tree.buffers)
    ]
    return [replace(tree, body=body, buffers=tuple(buffers)) for body in bodies]
