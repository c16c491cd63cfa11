"""Arguments of calls: their arrays, and a key of everything else about them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..op_graph.axes.axes import Axes, Axis
from ..op_graph.core.primitive import Primitive
from ..op_graph.op_graph import Leaf, Op
from ..op_graph.values.tree import mapped
from .arrays import EagerArray
from .building import build
from .nodes import RecordedCall, RecordedNode, Type
from .variables import EagerVariable, leaf_of

PLAIN = frozenset((str, type(None), Axis, Axes, np.dtype, type, type(Ellipsis)))
NUMBERS = frozenset((float, int))
MAX_ITEMS = 64  # items of a list of numbers from which on it is not searched for arrays


def arrays_in(value: Any) -> list[EagerArray]:
    """Return the arrays in an argument."""
    found: list[EagerArray] = []
    mapped(value, lambda v: found.append(v) if isinstance(v, EagerArray) else None)
    return found


class Arguments:
    """The arguments of a call: the nodes of its arrays, and a key of everything else about it.

    ``numbers`` has the nodes by number. ``key`` has the type of each at its first place and its
    number at others. ``known`` is False if the call must be built each time. ``held`` are objects
    that the key has the id of, ``data`` are NumPy arrays. ``stored`` is true if there are arrays of
    variables among the arguments.
    """

    __slots__ = ("data", "held", "key", "known", "numbers", "stored")

    def __init__(self, args: Any, keywords: Mapping[str, Any] | None = None) -> None:
        self.numbers: dict[RecordedNode, int] = {}
        self.key: list[Any] = []
        self.held: list[Any] = []
        self.data: list[Any] = []
        self.known, self.stored = True, False
        self.visit(args)
        if keywords:
            self.visit(keywords)

    def visit(self, value: Any) -> None:
        """Add an argument."""
        kind, key = value.__class__, self.key
        if kind is EagerArray:
            node = value._node
            if node in self.numbers:
                key.append(self.numbers[node])
            else:
                self.numbers[node] = len(self.numbers)
                key.append(node.type)
        elif kind is list or isinstance(value, tuple):
            key.append((kind, len(value)))
            if len(value) > MAX_ITEMS and value[0].__class__ in NUMBERS:
                self.known = False
            else:
                for item in value:
                    self.visit(item)
        elif kind in PLAIN:
            key.append(value)
        elif kind in NUMBERS or kind is bool:  # 0.0 and -0.0 differ
            key.append((kind, value or str(value)))
        elif isinstance(value, Op):
            self.stored = self.stored or kind is EagerVariable
            leaf = leaf_of(value)
            self.held.append(leaf)
            key.append(id(leaf))
        elif kind is dict:
            self.visit([*value, *value.values()])
        elif kind is slice:
            self.visit((slice, value.start, value.stop, value.step))
        elif isinstance(value, np.generic):
            key.append((value.dtype, value.tobytes()))
        elif kind is np.ndarray:
            self.data.append(value)
            self.known = False
        elif hasattr(kind.__call__, "differentiates"):  # an optimiser, by its settings
            settings = [
                v for v in vars(value).items() if v[1].__class__ in (*PLAIN, bool, *NUMBERS)
            ]
            self.held.append(value)
            key.append((id(value), str(settings)))
        elif kind.__hash__ is None or (callable(value) and not isinstance(value, Primitive)):
            self.known = False  # a function may read anything
        else:
            key.append(value)

    def build(self, function: Any, args: Any, keywords: Any) -> tuple[Any, list[RecordedNode]]:
        """Return the call of a function with these arguments, and the nodes that it captured.

        A result that is no structure of ops is returned in the place of the call.
        """
        first: dict[RecordedNode, EagerArray] = {}
        for array in arrays_in((args, keywords)):
            first.setdefault(array._node, array)
        inputs: dict[Leaf, Type] = {array: node.type for node, array in first.items()}
        return self.noted(build(function, args, keywords, inputs, self.generic()))

    def noted(self, built: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return what was built; the call keeps alive what the key has the id of."""
        if isinstance(built[0], RecordedCall):
            built[0].held += self.held
        return built

    def generic(self) -> tuple[Any, ...] | None:
        """Return the key without lengths; None if the call must be built each time."""
        key = [EagerArray if part.__class__ is Type else part for part in self.key]
        return tuple(key) if self.known else None
