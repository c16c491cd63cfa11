"""``Linking``: the storage that a program, which contains no leaves, is linked with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..op_graph.op_graph import Leaf, post_order
from ..op_graph.text.fingerprint import canonical
from ..op_graph.values.attribute_types import Frozen

if TYPE_CHECKING:
    from ..op_graph.transforms.functionalize import Functional

NOTHING: dict[Leaf, Leaf] = {}


class Linking:
    """The canonical text of a pure graph, and names of the inputs, variables and constants in it.

    ``of_own_rows`` is True if all primitives are geon's. Inputs are named ``x<n>``, variables
    ``v<n>``; large constants are numbered. ``storage`` maps leaves to the variables that they stand
    for, if these are others.
    """

    def __init__(
        self, pure: Functional, inputs: Sequence[Leaf], storage: Mapping[Leaf, Leaf] = NOTHING
    ) -> None:
        self.storage = storage
        roots = [*pure.outputs, *pure.updates.values(), *pure.prints]
        self.text, found, arrays = canonical(roots)
        reached = post_order([root for root in roots if root is not None])
        self.of_own_rows = all(op.primitive.own for op in reached)
        numbers = {leaf: k for k, leaf in enumerate(found)}
        written = [leaf for leaf in pure.updates if leaf not in numbers]
        self.inputs = tuple(inputs)
        self.order = (*found, *written)
        self.variables = tuple(leaf for leaf in self.order if leaf.info.stored)
        self.written = tuple(pure.updates)
        self.read = tuple(leaf for leaf in found if leaf.info.stored)
        self.constants: dict[Frozen, int] = {value: k for k, value in enumerate(arrays)}
        self.names: dict[Leaf, str] = {leaf: f"x{k}" for k, leaf in enumerate(self.inputs)}
        self.names.update({leaf: f"v{k}" for k, leaf in enumerate(self.variables)})
        self._numbers = {leaf: k for k, leaf in enumerate(self.order)}

    def stored(self, leaves: Iterable[Leaf]) -> list[Leaf]:
        """Return the variables that these leaves of the program stand for."""
        return [self.storage.get(leaf, leaf) for leaf in leaves]

    def signature(self) -> tuple[Any, ...]:
        """Return the part of the linking that the program's text depends on."""
        inputs = tuple(self._numbers.get(leaf, -1) for leaf in self.inputs)
        written = tuple(
            (self._numbers[leaf], leaf.dtype.name, str(leaf.axes)) for leaf in self.written
        )
        return inputs, written
