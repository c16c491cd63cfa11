"""Uses of a nest's loop variables: in memory offsets, or for their own values."""

from __future__ import annotations

from collections.abc import Container, Sequence

from ....op_graph.axes.affine import AffineIndex, Quotient, Remainder, variable
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
    inner_indices,
    walk,
)
from .loop_depth import ROW_DEPTH, Depths


class Uses:
    """Uses of a nest's loop variables.

    ``offsets`` are the memory offsets of loads and stores, and the positions of random bits.
    ``numbers`` are indices that are computed as values. ``places`` are store offsets, positions of
    random bits and positions of reductions. ``values`` are the variables and atoms that are used
    for their own values: in guards, or below quotients and remainders. ``needed`` are those of
    ``values`` that cannot be read ahead of the loop: all except guards of selects, and divisions in
    loads and numbers.
    """

    def __init__(self) -> None:
        self.offsets: list[AffineIndex] = []
        self.places: list[AffineIndex] = []
        self.numbers: list[AffineIndex] = []
        self.values: set[object] = set()
        self.needed: set[object] = set()

    @classmethod
    def of(cls, nest: Nest) -> Uses:
        """Return the uses in ``nest``."""
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
        """Record the uses in a store."""
        self.add(store.value)
        self.address(store.offset)
        self.places.append(store.offset)

    @property
    def indices(self) -> list[AffineIndex]:
        """Return everything that is used, as indices."""
        return [*self.offsets, *self.numbers, *map(variable, self.values)]

    @property
    def atoms(self) -> set[object]:
        """Return the atoms of everything that is used."""
        indices = (*self.offsets, *self.numbers)
        return self.values.union(*[index.terms for index in indices])

    def add(self, value: Scalar, known: Container[int] = ()) -> None:
        """Record the uses in scalar code, except in nodes with ids in ``known`` and below."""
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

    def address(self, offset: AffineIndex, ahead: bool = False) -> None:
        """Record an offset; ``ahead`` is True for a load, which may be read before the loop."""
        self.offsets.append(offset)
        self.divisions(offset, ahead)

    def divisions(self, index: AffineIndex, ahead: bool = False) -> None:
        """Record the indices inside quotients, remainders and clamps, used for their values."""
        for atom in index.terms:
            for each in inner_indices(atom):
                self.direct(each, ahead)

    def direct(self, index: AffineIndex, ahead: bool = False) -> None:
        """Record an index used for its value; ``ahead`` if it may be read before the loop."""
        for atom in index.terms:
            self.values.add(atom)
            if not ahead:
                self.needed.add(atom)
            for each in inner_indices(atom):
                self.direct(each, ahead)


def collapsible_pairs(uses: Uses, loops: Sequence[Loop]) -> frozenset[tuple[str, str]]:
    """Return the pairs (outer, inner) of loop names that can be collapsed into one loop.

    A pair can be collapsed if one iteration of the outer loop moves every index as far as all
    iterations of the inner loop do, and neither variable is used for its own value.
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


def computes(nest: Nest) -> bool:
    """Return True if the nest does more than copy or fill: it reduces or computes values."""
    stores = [store for step in nest.passes for store in step.stores]
    copied = all(isinstance(store.value, (Load, Number)) for store in stores)
    return not copied or any(step.reductions for step in nest.passes)


def divides_rows(nest: Nest) -> bool:
    """Return True if a quotient, remainder or wrapped position is computed once per row."""
    depths = Depths.of(nest)
    return any(
        isinstance(atom, (Quotient, Remainder, Wrapped)) and depths.atom(atom) == ROW_DEPTH
        for atom in Uses.of(nest).atoms
    )
