"""The recorded graph: types of arrays, calls of functions, and nodes, which are their results."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..op_graph.axes.axes import Axes
from ..op_graph.op_graph import Leaf, Op
from ..op_graph.rows.leaves import input_leaf
from ..op_graph.transforms.functionalize import substitute
from ..op_graph.values.dtypes import DType
from ..op_graph.values.tree import is_mapping

if TYPE_CHECKING:
    from ..op_graph.core.source_info import Site

Value = TypeVar("Value")
MAX_ENTRIES = 8192  # maximum calls, types and numbers that a table keeps
MAX_DEPTH = 5000  # maximum calls behind an array: of a program, and of what is remembered
DETACHED, FREED, FORGOTTEN = "detached", "freed", "forgotten"  # marks where derivatives end


class Local(threading.local):
    """The state of a thread.

    ``recording`` is true while a graph is built symbolically, in which arrays are leaves.
    ``grad`` is false in ``no_grad``.
    """

    recording = False
    grad = True


local = Local()
lock = threading.RLock()


@contextmanager
def symbolic() -> Iterator[None]:
    """Context in which arrays are leaves of symbolic graphs."""
    before, local.recording = local.recording, True
    try:
        yield
    finally:
        local.recording = before


class Recent(Generic[Value]):
    """A table of bounded size: the entries used since half of it was filled, or the half before."""

    def __init__(self, size: int = MAX_ENTRIES) -> None:
        self.size = size // 2
        self.new: dict[Any, Value] = {}
        self.old: dict[Any, Value] = {}

    def get(self, key: Any) -> Value | None:
        """Return the value under a key; None if there is none."""
        found = self.new.get(key)
        if found is None:
            found = self.old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: Any, value: Value) -> Value:
        """Store and return a value; drop the older half if the table is full."""
        if len(self.new) >= self.size:
            self.old, self.new = self.new, {}
        self.new[key] = value
        return value


class OfOps(Generic[Value]):
    """A table of values by op, each until the op dies; ops are compared by identity."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[weakref.ref[Op], Value]] = {}

    def get(self, op: Op) -> Value | None:
        """Return the value of an op; None if there is none."""
        found = self.entries.get(id(op))
        return None if found is None or found[0]() is not op else found[1]

    def put(self, op: Op, value: Value) -> Value:
        """Store and return the value of an op."""
        key, entries = id(op), self.entries
        self.entries[key] = weakref.ref(op, lambda _: entries.pop(key, None)), value
        return value


def mapped(value: Any, of: Callable[[Any], Any]) -> Any:
    """Return nested lists, tuples, dictionaries and slices with ``of`` applied to their items."""
    if value.__class__ is list or isinstance(value, tuple):
        return getattr(type(value), "_make", type(value))([mapped(item, of) for item in value])
    if is_mapping(value):
        return {key: mapped(item, of) for key, item in value.items()}
    if value.__class__ is slice:
        return slice(*[mapped(v, of) for v in (value.start, value.stop, value.step)])
    return of(value)


class Place:
    """The place of a tensor in a structure of arguments or results."""

    def __init__(self, number: int) -> None:
        self.number = number


def filled(structure: Any, values: Sequence[Any]) -> Any:
    """Return a structure with the value of its number in each place."""
    return mapped(structure, lambda v: values[v.number] if v.__class__ is Place else v)


class Type:
    """Axes, with their lengths, and dtype of arrays; equal types are one object.

    ``declared`` are the same axes, of which those are open that the user's data determine.
    ``slots`` are placeholders that stand for arguments of the type in the graphs of calls.
    """

    __slots__ = ("axes", "declared", "dtype", "slots")

    def __init__(self, axes: Axes, declared: Axes, dtype: DType) -> None:
        self.axes, self.declared, self.dtype = axes, declared, dtype
        self.slots: list[Leaf] = []

    def slot(self, number: int) -> Leaf:
        """Return the placeholder for the argument at this position."""
        while len(self.slots) <= number:
            self.slots.append(input_leaf(self.axes, self.dtype))
        return self.slots[number]


types: Recent[Type] = Recent()


def type_of(axes: Axes, declared: Axes, dtype: DType) -> Type:
    """Return the type of these axes and this dtype."""
    key = (axes, declared, dtype)
    return types.get(key) or types.put(key, Type(*key))


class RecordedCall:
    """A function applied to arguments of given types.

    ``templates`` are the pure ops of its results over ``leaves``: the slots of its arguments, then
    the ``variables`` that it reads. The first ``shown`` results are the user's, in ``structure``;
    the others are the new values of the variables ``updated``. ``types`` are those of the results.
    ``generic`` is equal for calls that differ in lengths alone; ``again`` builds the results from
    tensors of other or open lengths, and is None if the function cannot be called again. ``held``
    keeps alive what keys of tables have the id of.
    """

    __slots__ = (
        "again", "generic", "held", "leaves", "name", "parts", "shown", "structure", "templates",
        "types", "updated", "variables",
    )  # fmt: skip

    name: str
    templates: tuple[Op, ...]
    leaves: tuple[Leaf, ...]
    variables: tuple[Leaf, ...]
    updated: tuple[Leaf, ...]
    types: tuple[Type, ...]
    parts: list[ResultPart]
    shown: int
    structure: Any
    generic: Any
    again: Callable[[Sequence[Any], Any], Sequence[Any]] | None
    held: list[Any]

    def build(self, tensors: Sequence[Any], open: bool, site: Site | None = None) -> Any:
        """Return the result for these tensors; a tuple if it has several.

        If ``open``, it is built again, at the line ``site``.
        """
        if open:
            assert self.again is not None
            made = self.again(tensors, site)
        else:
            known: dict[Op, Op] = dict(zip(self.leaves, tensors, strict=True))
            made = [substitute(op, known) for op in self.templates]
        return made[0] if len(made) == 1 else tuple(made)


class ResultPart:
    """The call that takes one of several results."""

    again: Any = True

    def __init__(self, number: int, name: str) -> None:
        self.number, self.name, self.generic = number, name, ("part", number)

    def build(self, tensors: Sequence[Any], open: bool, site: Site | None = None) -> Any:
        """Return the result of this number."""
        return tensors[0][self.number]


class Alias:
    """The call whose result is its argument: a version of a variable, or a detached array."""

    name = generic = "detach"
    again: Any = True

    def build(self, tensors: Sequence[Any], open: bool, site: Site | None = None) -> Any:
        """Return the argument."""
        return tensors[0]


ALIAS = Alias()
_serials = itertools.count()
serial = attrgetter("serial")


class RecordedNode:
    """A value of the recorded graph: the result of ``call`` on ``args``, or data without a call.

    ``value`` is its array once it is computed. ``mark`` is a ``VariableState`` for a version of a
    variable, or the reason why derivatives end here. ``depth`` counts calls from the data.
    ``shown`` is true while an array has the node, and ``results`` are kept values of calls on it.
    The node of several results has no type and no value; each result is a ``ResultPart`` of it.
    """

    __slots__ = (
        "__weakref__", "args", "call", "depth", "mark", "results", "serial", "shown", "site",
        "type", "value",
    )  # fmt: skip

    mark: Any
    results: dict[Any, Any] | None
    Args = tuple["RecordedNode", ...]

    def __init__(
        self, call: Any, args: Args, type: Any, site: Site, depth: int, value: Any
    ) -> None:
        self.call, self.args, self.type, self.site, self.depth = call, args, type, site, depth
        self.value, self.mark, self.results, self.shown = value, None, None, False
        self.serial = next(_serials)

    def forget(self, mark: Any) -> None:
        """Drop the graph of a computed value."""
        self.call, self.args, self.depth, self.mark = None, (), 0, mark


# Nodes whose arrays are alive and not computed, with the thread that made them.
pending: dict[RecordedNode, int] = {}
