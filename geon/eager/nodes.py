"""The recorded graph: types of arrays, calls of functions, and nodes, which are their results."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..lazy_dataclasses import dataclass
from ..op_graph.axes.axes import Axes
from ..op_graph.op_graph import Leaf, Op
from ..op_graph.rows.leaves import input_leaf
from ..op_graph.transforms.functionalize import substitute
from ..op_graph.values.dtypes import FLOAT32, DType
from ..op_graph.values.tree import Place

if TYPE_CHECKING:
    from ..op_graph.core.source_info import Site
    from .arrays import EagerArray
    from .variables import VariableState

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
        """Return the nodes of those that were neither dropped nor computed."""
        found = []
        for known in self:
            array = known()
            if array is not None and array._node.value is None:
                found.append(array._node)
        return found

    def take(self) -> list[RecordedNode]:
        """Remove all, and return the nodes of those that were neither dropped nor computed."""
        found = self.nodes()
        self.clear()
        return found

    def remove_dropped(self) -> None:
        """Remove references to other arrays, and raise the length from which on this is done."""
        self += [node.shown for node in self.take() if node.shown is not None]
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


@dataclass(eq=False, slots=True)
class Type:
    """Axes, with their lengths, and dtype of arrays; equal types are one object.

    ``declared`` are the same axes, of which those are open that the user's data determine.
    ``slots`` are placeholders that stand for arguments of the type in the graphs of calls.
    """

    axes: Axes
    declared: Axes
    dtype: DType
    slots: list[Leaf] = field(default_factory=list)

    def slot(self, number: int) -> Leaf:
        """Return the placeholder for the argument at this position."""
        while len(self.slots) <= number:
            self.slots.append(input_leaf(self.axes, self.dtype))
        return self.slots[number]


@lru_cache(MAX_ENTRIES)
def type_of(axes: Axes, declared: Axes, dtype: DType) -> Type:
    """Return the type of these axes and this dtype."""
    return Type(axes, declared, dtype)


@dataclass(eq=False)
class RecordedCall:
    """A function applied to arguments of given types.

    ``templates`` are the pure ops of its results over ``leaves``: the slots of its arguments, then
    the variables of the ``states`` that it reads. The first of its ``results``, which have
    ``types``, are ``shown`` to the user in ``structure``; the others are the new versions of the
    variables ``updated``. ``taken`` are the arguments that are nodes of a derived tape. ``generic``
    is equal for calls that differ in lengths alone; ``again`` builds the results from tensors of
    other or open lengths, and is None if the function cannot be called again. ``held`` keeps alive
    what keys of tables have the id of, by the id.
    """

    name: str
    templates: Sequence[Op]
    leaves: Sequence[Leaf]
    types: Sequence[Any]
    generic: Any
    again: Callable[[Sequence[Any], Any], Sequence[Any]] | None
    states: Sequence[VariableState] = ()
    updated: Sequence[VariableState] = ()
    taken: Sequence[int] = ()
    structure: Any = Place(0)
    held: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results = [CallResult(self, k, kind) for k, kind in enumerate(self.types)]
        shown = len(self.results) - len(self.updated)
        self.shown = self.results[:shown]
        self.single = not self.updated and self.structure.__class__ is Place
        # Each new version: a result, or the position of the argument that it is.
        places: dict[int, Any] = {id(leaf): k for k, leaf in enumerate(self.leaves)}
        self.updates = [places.get(id(self.templates[r.number]), r) for r in self.results[shown:]]

    def build(self, tensors: Sequence[Any], open: bool, site: Site | None) -> Sequence[Any]:
        """Return the results for these tensors; if ``open``, built again, at the line ``site``."""
        if open:
            assert self.again is not None
            return self.again(tensors, site)
        known: dict[Op, Op] = dict(zip(self.leaves, tensors, strict=True))
        return [substitute(op, known) for op in self.templates]


@dataclass(eq=False, slots=True)
class CallResult:
    """One of the results of a call: its number, and its type."""

    call: RecordedCall
    number: int
    type: Type


# The result that is its argument: a version of a variable, or a detached array.
_slot = input_leaf(Axes(), FLOAT32)
_identity = RecordedCall("detach", [_slot], [_slot], [None], "detach", lambda given, site: given)
(ALIAS,) = _identity.results


class MemoEntry(weakref.ref["RecordedNode"]):
    """A reference to the node of a call, which is found again by it, with a kept ``value``."""

    __slots__ = ("__weakref__", "value")

    value: Any


@dataclass(eq=False, slots=True, weakref_slot=True)
class RecordedNode:
    """A value of the recorded graph: the ``result`` of a call on ``args``, or data without a call.

    ``value`` is its array once it is computed. ``mark`` is a ``VariableState`` for a version of a
    variable, or the reason why derivatives end here. ``depth`` counts calls from the data. ``memo``
    has the calls whose first argument it is, by the rest of the call; ``entry`` is that of the
    node. ``shown`` is a reference to the array that has the node.
    """

    result: Any
    args: Args
    type: Type
    site: Site
    value: Any
    depth: int
    mark: Any
    entry: MemoEntry | None = None
    memo: dict[Any, MemoEntry] | None = None
    shown: weakref.ref[EagerArray] | None = None
    serial: int = field(default_factory=itertools.count().__next__)

    def variable(self) -> Leaf | None:
        """Return the variable of which it is the newest version; None if there is none."""
        mark = self.mark
        return None if mark is None or mark.__class__ is str else mark.current(self)

    def forget(self, mark: Any) -> None:
        """Drop the graph of a computed value."""
        self.result, self.args, self.depth, self.mark, self.entry = None, (), 0, mark, None


Args = tuple[RecordedNode, ...]
serial = attrgetter("serial")
