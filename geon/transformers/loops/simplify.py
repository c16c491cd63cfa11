"""Simplification of trees: guards, quotients and remainders that the ranges of loops decide."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from ...op_graph.axes.affine import AffineIndex, Quotient, Remainder, Size, variable
from ..kernels.analysis.index_boxes import Facts
from ..kernels.analysis.integer_ranges import index_bounds
from ..kernels.ir.scalar_code import Clamped, Select
from .access import most
from .substitution import Substitution
from .tree import Body, Choose, LoopNode, Statement, Tree, divided, replace, with_body


class _Simplification(Substitution):
    """Decides guards, quotients and remainders for loops of known ``extents``."""

    def __init__(self, tree: Tree, extents: Mapping[str, Size]) -> None:
        super().__init__(tree.code, {})
        self.extents: dict[Hashable, Size] = {name: extents[name] for name in extents}
        self.facts = Facts()

    def atom(self, atom: Any) -> AffineIndex:
        """Return a quotient, remainder or clamped index, simplified."""
        if isinstance(atom, Clamped):
            index, guards = self.index(atom.of), self.open_guards(self.guards(atom.guards))
            if guards is None:
                return AffineIndex()
            return variable(Clamped(index, guards)) if guards else index
        if not isinstance(atom, (Quotient, Remainder)):
            return super().atom(atom)
        of = self.index(atom.of)
        if is_below(of, atom.by, self.extents):
            return of if isinstance(atom, Remainder) else AffineIndex()
        return divided(of, atom.by)[isinstance(atom, Remainder)]

    def node(self, node: Any) -> Any:
        """Return a node whose children are simplified; a decided choice is one of its sides."""
        if not isinstance(node, Select):
            return super().node(node)
        guards = self.open_guards(self.guards(node.guards))
        value, other = self.known[id(node.value)], self.known[id(node.other)]
        if guards is None:
            return other
        return self.code(Select, guards, value, other) if guards else value

    def open_guards(self, guards: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """Return the guards that are not known to hold, or None if one is known to fail."""
        found = []
        for guard in guards:
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
