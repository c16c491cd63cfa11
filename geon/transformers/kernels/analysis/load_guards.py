"""Guards under which the result of a load is used, outermost first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from ....op_graph.axes.affine import AffineIndex
from ....op_graph.axes.index_map import InRange
from ..ir.scalar_code import (
    NODES,
    Clamped,
    Scalar,
    Select,
    indices,
    inner_indices,
    operands_of,
    positions,
    walk,
)

Limits = dict[tuple[InRange, ...], None]  # ordered set of guard tuples


def limits(offset: AffineIndex) -> Limits:
    """Return the guards under which a select uses the element at ``offset``.

    Where they fail, indices are clamped to 0, and an array without elements has no element there.
    Of a position that is itself a select, only the guards that limit both alternatives count.
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
    return found | _together(known[id(part)] for part in operands_of(node))


def _of_index(index: AffineIndex, known: Mapping[int, Limits]) -> Limits:
    return _together(_of_atom(atom, known) for atom in index.terms)


def _of_atom(atom: Hashable, known: Mapping[int, Limits]) -> Limits:
    if isinstance(atom, NODES):
        return known[id(atom)]
    found = _together(_of_index(index, known) for index in inner_indices(atom))
    return found | {atom.guards: None} if isinstance(atom, Clamped) else found


def _together(many: Iterable[Limits]) -> Limits:
    found: Limits = {}
    for each in many:
        found |= each
    return found
