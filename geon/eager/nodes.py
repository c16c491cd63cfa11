"""The recorded graph: types of arrays, calls of functions, and nodes, which are their results."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..op_graph.axes.axes import Axes
from ..op_graph.op_graph import Leaf, Op
from ..op_graph.rows.leaves import input_leaf
from ..op_graph.transforms.functionalize import substitute
from ..op_graph.values.dtypes import FLOAT32, DType
from ..op_graph.values.tree import mapped

if TYPE_CHECKING:
    from ..op_graph.core.source_info import Site
    from .arrays import EagerArray

Value = TypeVar("Value")
MAX_ENTRIES = 8192  # maximum calls, types and numbers that a table keeps
MIN_PENDING = 1024  # references to pending arrays from which on those of dropped ones are removed
MAX_DEPTH = 5000  # maximum calls behind an array: of a program, and of what is remembered
DETACHED, FREED, FORGOTTEN = "detached", "freed", "forgotten"  # marks where derivatives end
GONE = {
    FREED: "which backward() freed; give retain_graph=True to the first backward()",
    FORGOTTEN: "which had more calls behind it than are remembered; detach() it if it is data, or "
    "write the loop with geon.scan",
}


class PendingArrays(list["weakref.ref[EagerArray]"]):
    """References to arrays of a thread that were made without a value since its last read."""

    limit = MIN_PENDING

    def nodes(self) -> list[RecordedNode]:
        """Return the nodes of the arrays that were neither dropped nor computed."""
        return [
            node
            for known in self
            if (array := known()) is not None and (node := array._node).value is None
        ]

    def remove_dropped(self) -> None:
        """Remove references to other arrays, and raise the length from which on this is done."""
        self[:] = [node.shown for node in self.nodes() if node.shown is not None]
        self.limit = max(MIN_PENDING, 2 * len(self))


class Local(threading.local):
    """The state of a thread.

    ``recording`` is true while a graph is built symbolically, in which arrays are leaves.
    ``grad`` is false in ``no_grad``.
    """

    recording, grad = False, True

    def __init__(self) -> None:
        self.pending = PendingArrays()


local = Local()
lock = threading.RLock()


@contextmanager
def _set(attribute: str, value: bool) -> Iterator[None]:
    before = getattr(local, attribute)
    setattr(local, attribute, value)
    try:
        yield
    finally:
        setattr(local, attribute, before)


def symbolic() -> AbstractContextManager[None]:
    """Context in which arrays are leaves of symbolic graphs."""
    return _set("recording", True)


def no_grad() -> AbstractContextManager[None]:
    """Context in which new arrays are constants to derivatives: their graph is not remembered."""
    return _set("grad", False)


class Recent(dict[Any, Value], Generic[Value]):
    """A table that drops the older half of its entries when it is full."""

    def put(self, key: Any, value: Value, most: int = MAX_ENTRIES) -> Value:
        """Store and return a value, in a table of at most ``most`` entries."""
        if len(self) >= most:
            for old in [*itertools.islice(self, most // 2)]:
                del self[old]
        self[key] = value
        return value


def until_dropped(table: dict[int, Value], op: Op, value: Value) -> Value:
    """Store and return the value of an op under its id, until the op dies."""
    weakref.finalize(op, table.pop, id(op), None)
    return table.setdefault(id(op), value)


class Place(int):
    """The number of a tensor in a structure of arguments or results."""


def filled(structure: Any, values: Sequence[Any]) -> Any:
    """Return a structure with the value of its number in each place."""
    return mapped(structure, lambda v: values[v] if v.__class__ is Place else v)


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
    the ``variables`` that it reads. The first ``shown`` of its ``results`` are the user's, in
    ``structure``; the others are the new values of the variables ``updated``. ``single`` is true
    for one array and no update. ``generic`` is equal
    for calls that differ in lengths alone; ``again`` builds the results from tensors of other or
    open lengths, and is None if the function cannot be called again. ``held`` keeps alive what keys
    of tables have the id of, by the id.
    """

    variables: tuple[Leaf, ...] = ()
    updated: tuple[Leaf, ...] = ()
    taken: Sequence[int] = ()
    shown = 1
    single = True
    structure: Any = Place(0)
    generic: Any = None
    again: Callable[[Sequence[Any], Any], Sequence[Any]] | None = None

    def __init__(
        self, name: str, templates: Sequence[Op], leaves: Sequence[Leaf], kinds: Sequence[Any]
    ) -> None:
        self.name, self.templates, self.leaves = name, tuple(templates), tuple(leaves)
        self.results = [CallResult(self, k, kind) for k, kind in enumerate(kinds)]
        self.types = [*kinds]
        self.held: dict[int, Any] = {}

    def build(self, tensors: Sequence[Any], open: bool, site: Site | None) -> Sequence[Any]:
        """Return the results for these tensors; if ``open``, built again, at the line ``site``."""
        if open:
            assert self.again is not None
            return self.again(tensors, site)
        known: dict[Op, Op] = dict(zip(self.leaves, tensors, strict=True))
        return [substitute(op, known) for op in self.templates]


class CallResult:
    """One of the results of a call: its number, and its type."""

    __slots__ = ("call", "number", "type")

    def __init__(self, call: RecordedCall, number: int, type: Type) -> None:
        self.call, self.number, self.type = call, number, type


def _alias() -> CallResult:
    leaf = input_leaf(Axes(), FLOAT32)
    made = RecordedCall("detach", [leaf], [leaf], [None])
    made.generic, made.again = "detach", lambda tensors, site: tensors
    return made.results[0]


ALIAS = _alias()  # the result that is its argument: a version of a variable, or a detached array
serials = itertools.count()
serial = attrgetter("serial")


class MemoEntry(weakref.ref["RecordedNode"]):
    """A reference to the node of a call, which is found again by it, with a kept ``value``."""

    __slots__ = ("__weakref__", "value")

    value: Any


class RecordedNode:
    """A value of the recorded graph: the ``result`` of a call on ``args``, or data without a call.

    ``value`` is its array once it is computed. ``mark`` is a ``VariableState`` for a version of a
    variable, or the reason why derivatives end here. ``depth`` counts calls from the data.
    ``shown`` is a reference to the array that has the node. ``memo`` has the calls whose
    first argument it is, by the rest of the call; ``entry`` is that of the node.
    """

    __slots__ = (
        "__weakref__", "args", "depth", "entry", "mark", "memo", "result", "serial", "shown",
        "site", "type", "value",
    )  # fmt: skip

    entry: MemoEntry | None
    memo: dict[Any, MemoEntry] | None
    shown: weakref.ref[EagerArray] | None

    def __init__(
        self, result: Any, args: Args, type: Type, site: Site, value: Any, depth: int, mark: Any
    ) -> None:
        self.result, self.args, self.type, self.site, self.value = result, args, type, site, value
        self.depth, self.mark, self.entry, self.memo, self.shown = depth, mark, None, None, None
        self.serial = next(serials)

    def variable(self) -> Leaf | None:
        """Return the variable of which it is the newest version; None if there is none."""
        return None if self.mark is None or isinstance(self.mark, str) else self.mark.current(self)

    def forget(self, mark: Any) -> None:
        """Drop the graph of a computed value."""
        self.result, self.args, self.depth, self.mark, self.entry = None, (), 0, mark, None


Args = tuple[RecordedNode, ...]


def has_array(node: RecordedNode) -> bool:
    """Return True if the user has an array of the node."""
    return node.shown is not None and node.shown() is not None
