"""How a nest uses the variables of its loops: in offsets of memory, or for their own values."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ....op_graph.axes.affine import Affine, Quotient, Remainder, variable
from ..ir.nest import Loop, Nest, Store
from ..ir.scalar_code import (
    IndexNumber,
    Load,
    Number,
    RandomBits,
    Scalar,
    Select,
    Wrapped,
    indices,
    inside,
    walk,
)
from .loop_depth import ROW, Depths


class Uses:
    """How a nest uses its loops' variables: in offsets of memory, in ``numbers`` that are indices,
    or for their own ``values``. ``places`` are the offsets that are stored at, those of draws, and
    the positions of what is reduced with its place. Of the values, ``needed`` are those that what
    cannot be read ahead takes: all but guards of choices, and divisions in loads and numbers.
    """

    def __init__(self) -> None:
        self.offsets: list[Affine] = []
        self.places: list[Affine] = []
        self.numbers: list[Affine] = []
        self.values: set[object] = set()
        self.needed: set[object] = set()

    @classmethod
    def of(cls, nest: Nest) -> Uses:
        """The uses in a nest."""
        found = cls()
        for each in nest.passes:
            for element in each.reduced:
                found.add(element)
            for reduction in each.reductions:
                if reduction.position is not None:
                    found.add(reduction.position)
                    found.places += indices(reduction.position)
            for store in each.stores:
                found.store(store)
        for step in (*nest.steps, *nest.ending):
            if isinstance(step, Store):
                found.store(step)
        return found

    def store(self, store: Store) -> None:
        """Note the uses in a store."""
        self.add(store.value)
        self.address(store.offset)
        self.places.append(store.offset)

    @property
    def indices(self) -> list[Affine]:
        """All that is used, as indices."""
        return [*self.offsets, *self.numbers, *map(variable, self.values)]

    @property
    def atoms(self) -> set[object]:
        """The atoms of all that is used."""
        indices = (*self.offsets, *self.numbers)
        return self.values.union(*[index.terms for index in indices])

    def add(self, value: Scalar, known: Container[int] = ()) -> None:
        """Note the uses in scalar code, but for those below the nodes that are ``known`` by id."""
        for node in walk(value, known=known):
            for index in indices(node):
                if isinstance(node, (Load, RandomBits)):
                    self.address(index, ahead=isinstance(node, Load))
                    self.places += [index] if isinstance(node, RandomBits) else []
                elif isinstance(node, IndexNumber):
                    self.numbers.append(index)
                    self.divisions(index, ahead=True)
                else:
                    self.direct(index, ahead=isinstance(node, Select))

    def address(self, offset: Affine, ahead: bool = False) -> None:
        """Note an offset, that of a load if it may be read ``ahead``."""
        self.offsets.append(offset)
        self.divisions(offset, ahead)

    def divisions(self, index: Affine, ahead: bool = False) -> None:
        """Note what an index divides, which is used for its value."""
        for atom in index.terms:
            for each in inside(atom):
                self.direct(each, ahead)

    def direct(self, index: Affine, ahead: bool = False) -> None:
        """Note an index that is used for its value, by what may be read ``ahead`` or else."""
        for atom in index.terms:
            self.values.add(atom)
            if not ahead:
                self.needed.add(atom)
            for each in inside(atom):
                self.direct(each, ahead)


def joined(uses: Uses, loops: Sequence[Loop]) -> frozenset[tuple[str, str]]:
    """The pairs of loops, by name, of which the inner one may run on instead of the outer one.

    All that is used then is where it would be: one turn of the outer loop moves every index as far
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
            for offset in (*uses.offsets, *uses.numbers)
        )
    )


def depends_on(value: Scalar, names: set[str]) -> bool:
    """Whether a value changes with one of these variables."""
    uses = Uses()
    uses.add(value)
    return not names.isdisjoint({atom for atom in uses.atoms if isinstance(atom, str)})


def computes(nest: Nest) -> bool:
    """Whether more is done with elements than to store them."""
    stores = [store for step in nest.passes for store in step.stores]
    copied = all(isinstance(store.value, (Load, Number)) for store in stores)
    return not copied or any(step.reductions for step in nest.passes)


def divides_rows(nest: Nest) -> bool:
    """Whether a row needs a division, or a position, of its own."""
    depths = Depths.of(nest)
    return any(
        isinstance(atom, (Quotient, Remainder, Wrapped)) and depths.atom(atom) == ROW
        for atom in Uses.of(nest).atoms
    )
