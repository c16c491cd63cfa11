"""Simplification of trees: guards, quotients and remainders that the ranges of loops decide."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable
from ...op_graph.axes.index_map import InRange
from ...op_graph.axes.lengths import exact_quotient
from ..kernels.analysis.index_boxes import Facts
from ..kernels.analysis.integer_ranges import index_bounds
from ..kernels.ir.scalar_code import Clamped, Select
from .access import accesses, most
from .substitution import Substitution
from .tree import (
    Body,
    Choose,
    LoopNode,
    Statement,
    Tree,
    divided,
    find,
    replace,
    replaced,
    with_body,
)

Guards = tuple[InRange, ...]


class Assumption(Substitution):
    """Takes the sides of selections and clamped indices whose guards are known to hold or fail."""

    def __init__(self, tree: Tree, known: Mapping[Guards, bool]) -> None:
        super().__init__(tree.code, {})
        self.truths = known

    def atom(self, atom: Any) -> AffineIndex:
        """Return an atom as an index; a clamped one is 0 where its guards fail."""
        if not isinstance(atom, Clamped):
            return super().atom(atom)
        index, guards = self.index(atom.of), self.open_guards(atom.guards)
        if guards is None:
            return AffineIndex()
        return variable(Clamped(index, guards)) if guards else index

    def node(self, node: Any) -> Any:
        """Return a node whose children are replaced; a decided choice is one of its sides."""
        if not isinstance(node, Select):
            return super().node(node)
        guards = self.open_guards(node.guards)
        value, other = self.known[id(node.value)], self.known[id(node.other)]
        if guards is None:
            return other
        return self.code(Select, guards, value, other) if guards else value

    def open_guards(self, guards: Guards) -> Guards | None:
        """Return the guards that are not known to hold, or None if one is known to fail."""
        holds = self.truths.get(guards)
        return self.guards(guards) if holds is None else () if holds else None


class _Simplification(Assumption):
    """Decides guards, quotients and remainders for loops of known ``extents``."""

    def __init__(self, tree: Tree, extents: Mapping[str, Size]) -> None:
        super().__init__(tree, {})
        self.extents: dict[Hashable, Size] = {name: extents[name] for name in extents}
        self.facts = Facts()

    def atom(self, atom: Any) -> AffineIndex:
        """Return a quotient, remainder or clamped index, simplified."""
        if not isinstance(atom, (Quotient, Remainder)):
            return super().atom(atom)
        of = self.index(atom.of)
        if is_below(of, atom.by, self.extents):
            return of if isinstance(atom, Remainder) else AffineIndex()
        return divided(of, atom.by)[isinstance(atom, Remainder)]

    def open_guards(self, guards: Guards) -> Guards | None:
        """Return the guards that are not known to hold, or None if one is known to fail."""
        found = []
        for guard in self.guards(guards):
            holds = self.facts.decide(guard, self.extents)
            if holds is False:
                return None
            if holds is None:
                found.append(guard)
        return tuple(found)


def is_below(index: AffineIndex, limit: Size, extents: Mapping[Hashable, Size]) -> bool:
    """Return True if an index is known to be at least 0 and below ``limit``."""
    bounds = index_bounds(index, extents)
    return bounds is not None and bounds[0] >= 0 and isinstance(limit, int) and bounds[1] < limit


class _Grouping(Substitution):
    """Divides the group that ``count`` values of ``lane`` are in, not each of them."""

    def __init__(self, tree: Tree, lane: str, count: int) -> None:
        super().__init__(tree.code, {})
        self.lane, self.count = lane, count

    def atom(self, atom: Any) -> AffineIndex:
        """Return a quotient or a remainder of groups: (n * a + lane) // (n * b) is a // b."""
        if not isinstance(atom, (Quotient, Remainder)) or atom.of.terms.get(self.lane) != 1:
            return super().atom(atom)
        of, by = self.index(atom.of) - variable(self.lane), exact_quotient(atom.by, self.count)
        steps = [(each, exact_quotient(step, self.count)) for each, step in of.terms.items()]
        start = exact_quotient(of.constant, self.count)
        known = [(each, step) for each, step in steps if step is not None]
        if by is None or start is None or len(known) < len(steps):
            return super().atom(atom)
        whole, rest = divided(AffineIndex(known, start), by)
        return whole if isinstance(atom, Quotient) else rest * self.count + variable(self.lane)


def grouped(tree: Tree, lane: str) -> Tree:
    """Return the tree with indices of groups in place of their elements' where these are equal.

    ``lane`` is the loop over the elements of a group, whose number is known.
    """
    loop, _ = find(tree, lane)
    assert isinstance(loop.size, int)
    atoms = [atom for each in accesses(loop.body) for atom in each.offset.terms]
    if not any(isinstance(atom, (Quotient, Remainder)) for atom in atoms):
        return tree
    body = _Grouping(tree, lane, loop.size).body(loop.body)
    return replaced(tree, lane, lambda loop: (replace(loop, body=body),))


def simplified(tree: Tree) -> Tree:
    """Return the tree with guards, quotients and remainders that ranges of loops decide.

    Loops without iterations or statements are left out.
    """

    def body(statements: Body, extents: Mapping[str, Size]) -> Body:
        found: list[Statement] = []
        work = _Simplification(tree, extents)
        for each in statements:
            if isinstance(each, LoopNode):
                size = most(each.extent)
                inner = extents if size is None else {**extents, each.variable: size}
                inside = () if size == 0 else body(each.body, inner)
                if inside:
                    found.append(with_body(each, inside))
            elif isinstance(each, Choose):
                sides = body(each.then, extents), body(each.otherwise, extents)
                found.append(Choose(each.guards, *sides))
            else:
                found.append(work.statement(each))
        return tuple(found)

    return replace(tree, body=body(tree.body, {}))
