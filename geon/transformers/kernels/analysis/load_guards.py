"""What must hold for a load to be taken: the guards that limit its place, from the outermost on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from ....op_graph.axes.affine import Affine
from ....op_graph.axes.index_map import Guard
from ..ir.scalar_code import NODES, Clamped, Scalar, Select, indices, inside, parts, positions, walk

Limits = dict[tuple[Guard, ...], None]  # in order


def limits(offset: Affine) -> Limits:
    """The guards under which what lies at an offset is taken by a choice.

    Where they do not hold, indices are held at 0, and an array without elements has no element
    there. Of positions that a choice gives, those count that limit it whatever is chosen.
    """
    known: dict[int, Limits] = {}
    for node in walk(*positions(offset)):
        known[id(node)] = _of_node(node, known)
    return _of_index(offset, known)


def _of_node(node: Scalar, known: Mapping[int, Limits]) -> Limits:
    found = _together(_of_index(index, known) for index in indices(node))
    if isinstance(node, Select):
        value, other = known[id(node.value)], known[id(node.other)]
        return found | {guards: None for guards in value if guards in other}
    return found | _together(known[id(part)] for part in parts(node))


def _of_index(index: Affine, known: Mapping[int, Limits]) -> Limits:
    return _together(_of_atom(atom, known) for atom in index.terms)


def _of_atom(atom: Hashable, known: Mapping[int, Limits]) -> Limits:
    if isinstance(atom, NODES):
        return known[id(atom)]
    found = _together(_of_index(index, known) for index in inside(atom))
    return found | {atom.guards: None} if isinstance(atom, Clamped) else found


def _together(many: Iterable[Limits]) -> Limits:
    found: Limits = {}
    for each in many:
        found |= each
    return found
