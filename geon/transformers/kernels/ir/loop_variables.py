"""The loop variables that indices and scalar code change with."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ....op_graph.axes.affine import AffineIndex
from .scalar_code import NODES, Scalar, indices, inner_indices, walk


def variables(index: AffineIndex) -> set[str]:
    """Return the loop variables that an index changes with, also inside its atoms."""
    found: set[str] = set()
    for atom in index.terms:
        if isinstance(atom, str):
            found.add(atom)
        else:
            found |= variables_in(atom)
    return found


def variables_in(atom: Any) -> set[str]:
    """Return the loop variables in an atom of an index."""
    if isinstance(atom, str):
        return {atom}
    if isinstance(atom, NODES):
        return variables_of(atom)
    return set().union(*map(variables, inner_indices(atom)))


def changes_with(index: AffineIndex, names: Container[str]) -> bool:
    """Return True if an index changes with one of some loop variables."""
    return any(
        atom in names if isinstance(atom, str) else any(x in names for x in variables_in(atom))
        for atom in index.terms
    )


def variables_of(*values: Scalar) -> set[str]:
    """Return the loop variables that values change with by the indices in them."""
    found: set[str] = set()
    for node in walk(*values):
        for index in indices(node):  # the walk also visits the nodes that are atoms
            direct = [atom for atom in index.terms if not isinstance(atom, NODES)]
            found |= variables(AffineIndex([(atom, 1) for atom in direct]))
    return found
