"""How a nest uses the variables of its loops: in offsets of memory, or for their own values."""

from __future__ import annotations

from collections.abc import Sequence

from ...op_graph.affine import Affine, Quotient, Remainder, variable
from .depths import ROW, Depths
from .scalar import Load, RandomBits, Scalar, Wrapped, indices, inside, walk
from .types import Loop, Nest, Store


class Uses:
    """How a nest uses its loops' variables: in offsets of memory, or for their own ``values``."""

    def __init__(self) -> None:
        self.offsets: list[Affine] = []
        self.values: set[object] = set()

    @classmethod
    def of(cls, nest: Nest) -> Uses:
        """The uses in a nest."""
        found = cls()
        for each in nest.passes:
            for reduction in each.reductions:
                for element in reduction.elements:
                    found.add(element)
                if reduction.position is not None:
                    found.add(reduction.position)
            for store in each.stores:
                found.add(store.value)
                found.address(store.offset)
        for step in (*nest.steps, *nest.ending):
            if isinstance(step, Store):
                found.add(step.value)
                found.address(step.offset)
        return found

    @property
    def indices(self) -> list[Affine]:
        """All that is used, as indices."""
        return [*self.offsets, *map(variable, self.values)]

    def add(self, value: Scalar) -> None:
        """Note the uses in scalar code."""
        for node in walk(value):
            for index in indices(node):
                if isinstance(node, (Load, RandomBits)):
                    self.address(index)
                else:
                    self.direct(index)

    def address(self, offset: Affine) -> None:
        """Note an offset: what it divides is used for its value."""
        self.offsets.append(offset)
        for atom in offset.terms:
            for index in inside(atom):
                self.direct(index)

    def direct(self, index: Affine) -> None:
        """Note an index that is used for its value."""
        for atom in index.terms:
            self.values.add(atom)
            for each in inside(atom):
                self.direct(each)


def joined(uses: Uses, loops: Sequence[Loop]) -> frozenset[tuple[str, str]]:
    """The pairs of loops, by name, of which the inner one may run on instead of the outer one.

    All that is used then lies where it would: one turn of the outer loop moves every offset as far
    as all turns of the inner one do, and neither is used for its own value.
    """
    return frozenset(
        (outer.name, inner.name)
        for outer in loops
        for inner in loops
        if outer is not inner
        and uses.values.isdisjoint((outer.name, inner.name))
        and all(
            offset.terms.get(outer.name, 0) == offset.terms.get(inner.name, 0) * inner.extent
            for offset in uses.offsets
        )
    )


def depends_on(value: Scalar, names: set[str]) -> bool:
    """Whether a value changes with one of these variables."""
    uses = Uses()
    uses.add(value)
    atoms = uses.values.union(*[offset.terms for offset in uses.offsets])
    return not names.isdisjoint({atom for atom in atoms if isinstance(atom, str)})


def divides_rows(nest: Nest) -> bool:
    """Whether a row needs a division, or a position, of its own."""
    depths = Depths.of(nest)
    uses = Uses.of(nest)
    atoms = uses.values.union(*[offset.terms for offset in uses.offsets])
    return any(
        isinstance(atom, (Quotient, Remainder, Wrapped)) and depths.atom(atom) == ROW
        for atom in atoms
    )
