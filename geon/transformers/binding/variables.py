"""Variables of a transformer: the slot of each storage leaf, and its initialization."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from ...errors import ArgumentError, FeedError, GeonError
from ...op_graph.axes.axes import Axes
from ...op_graph.axes.lengths import Length
from ...op_graph.building.constants import CONSTANT, constant_value, number
from ...op_graph.core.interning import OwnTable
from ...op_graph.core.source_info import building
from ...op_graph.names import DEFAULT_NAME, RANDOM_CALLS
from ...op_graph.op_graph import Leaf, Op, Tensor, post_order, storage_leaves
from ...op_graph.rows.effects import doall, sequential, without_follows
from ...op_graph.syntax.operators import is_function
from ...op_graph.transforms.functionalize import substitute
from ...op_graph.values.arrays import array_of
from ...op_graph.values.dtypes import UINT64
from ...op_graph.values.labels import by_name
from ..runtime.state import Slot, State
from .call_values import dims_of

First = TypeVar("First", bound=Callable[[], Any])

log = logging.getLogger("geon")
SET = "or give a value with transformer.set(variable, array)"


class Variables(Generic[First]):
    """Storage leaves in the order a transformer registered them, each with its slot in ``state``.

    ``compute`` makes a computation of an effect, for initial values that are ops.
    """

    def __init__(self, state: State, compute: Callable[[Op], First]) -> None:
        self.state = state
        self.compute = compute
        self._slots: dict[Leaf, Slot] = {}
        self._firsts: dict[Leaf, First] = {}

    @property
    def leaves(self) -> list[Leaf]:
        """Return the registered variables, in order."""
        return list(self._slots)

    def add(self, leaves: Iterable[Leaf]) -> None:
        """Register these variables, and those that their initial values use.

        Raises ``ArgumentError``, and registers none, if two variables have one name.
        """
        waiting = list(leaves)
        new: dict[Leaf, None] = {}
        for leaf in waiting:
            if leaf in self._slots or leaf in new or not leaf.info.stored:
                continue
            new[leaf] = None
            waiting += storage_leaves(*_first_ops(leaf))
        self._refuse_one_name(new)
        for leaf in new:
            self._slots[leaf] = Slot(
                _label(leaf),
                leaf.name,
                leaf.dtype,
                leaf.axes.names,
                dims_of(leaf.axes),
                leaf.persistent,
                infer_lengths(leaf),
                RANDOM_CALLS if RANDOM_CALLS in leaf.tags else "variable",
            )
        for leaf in new:
            slot = self._slots[leaf]
            slot.reads = tuple(self._slots[other] for other in _reads(leaf))
            if leaf.initial_value is not None or leaf.initializers:
                slot.start = self._starter(leaf)
                targets = {without_follows(op.args[0]) for op in leaf.initializers if op.args}
                slot.alone = targets <= {leaf}
            self.state.slots.append(slot)

    def _refuse_one_name(self, new: Iterable[Leaf]) -> None:
        """Raise ``ArgumentError`` for a new variable with the name of another one."""
        named: dict[str, Leaf] | None = None
        for leaf in new:
            if not _is_named(leaf):
                continue
            if named is None:
                named = {str(known.name): known for known in self._slots if _is_named(known)}
            first = named.setdefault(str(leaf.name), leaf)
            if first is not leaf:
                raise ArgumentError(
                    f"two variables of this transformer are named {leaf.name!r}: {first} made at "
                    f"{first.line_info}, and another {leaf} made at {leaf.line_info}; each has a "
                    "value of its own, so what trains one does not change the other; make the "
                    "variable once, outside of the function that is called twice, and give it to "
                    "the function, or give each variable its own name; a model that is made anew "
                    "needs a new transformer"
                )

    def rename(self) -> None:
        """Update the slots with names that variables received since they were registered."""
        for leaf, slot in self._slots.items():
            slot.name, slot.label = leaf.name, _label(leaf)

    def known(self, leaf: Leaf) -> Slot | None:
        """Return the slot of a registered variable; None for any other leaf."""
        return self._slots.get(leaf)

    def slot(self, leaf: Leaf) -> Slot:
        """Return the slot of a variable."""
        return self._slots[leaf]

    def clear(self) -> None:
        """Remove all variables."""
        self._slots.clear()
        self._firsts.clear()

    # Initial values -----------------------------------------------------------------------------

    def _starter(self, leaf: Leaf) -> Callable[[], None]:
        def start() -> None:
            log.debug("initializing %s", leaf)
            slot = self._slots[leaf]
            if is_function(leaf.initial_value):
                value = self.called(leaf, slot.shape)
                try:
                    self.state.put(slot, value)
                except FeedError as error:
                    raise FeedError(f"{_called_what(leaf)} does not fit: {error}; {SET}") from error
            held = _held(leaf)
            if held is not None:
                self.state.put(slot, np.broadcast_to(held, slot.shape))
                return
            first = self.first(leaf)
            if first is not None:
                first()

        return start

    def called(self, leaf: Leaf, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return the array that a callable initial value makes for the variable's axes."""
        axes = Axes(*(a.with_length(n) for a, n in zip(leaf.axes, shape, strict=True)))
        make: Any = leaf.initial_value
        what = _called_what(leaf)
        try:
            value = make(axes)
        except GeonError:
            raise
        except Exception as error:
            raise FeedError(
                f"{what} was called with {axes!r} and raised {type(error).__name__}: {error}; "
                f"mend it: it takes the Axes and gives an array; {SET}"
            ) from error
        if isinstance(value, Tensor):
            raise FeedError(
                f"{what} gave a tensor; it must give an array, or pass the tensor itself as "
                "initial_value"
            )
        try:
            array = array_of(by_name(value, axes.names, what), what)
        except FeedError as error:
            raise FeedError(f"{error}; {SET}") from error
        if array.ndim and array.shape != shape:
            raise FeedError(
                f"{what} gave an array of shape {array.shape} for the axes {axes}; {SET}"
            )
        return np.broadcast_to(array, shape)

    def first(self, leaf: Leaf) -> First | None:
        """Return the computation of the ops that initialize a variable; None without ops."""
        if leaf not in self._firsts and leaf.initializers:
            effects = leaf.initializers
            with building(OwnTable(open=True)):
                whole = doall(effects) if len(effects) == 1 else sequential(effects)
                whole = _uncounted(whole)
            self._firsts[leaf] = self.compute(whole)
        return self._firsts.get(leaf)


def _held(leaf: Leaf) -> np.ndarray[Any, Any] | None:
    """Return the constant that is a variable's whole initial value; None if it must be computed."""
    if len(leaf.initializers) != 1 or leaf.initializers[0].primitive.name != "assign":
        return None
    target, value = leaf.initializers[0].args
    if value.primitive.name == "broadcast" and not value.args[0].axes.names:
        value = value.args[0]
    if target is not leaf or value.primitive is not CONSTANT or value.dtype != leaf.dtype:
        return None
    return constant_value(value) if value.axes.names in ((), leaf.axes.names) else None


def _uncounted(op: Op) -> Op:
    """Return ``op`` with call counters of its draws replaced by 0, whatever ran before."""
    ops = post_order([op])
    assigned = {o.args[0] for o in ops if o.primitive.name == "assign"}
    counters = {o.args[0] for o in ops if o.primitive.name == "random_bits"} - assigned
    zeros: dict[Op, Op] = {counter: number(0, UINT64) for counter in counters}
    return substitute(op, zeros) if zeros else op


def _is_named(leaf: Leaf) -> bool:
    """Return True if the user named a variable."""
    return leaf.name is not None and DEFAULT_NAME not in leaf.tags


def _called_what(leaf: Leaf) -> str:
    return f"the callable initial value of {leaf} (made at {leaf.line_info})"


def _label(leaf: Leaf) -> str:
    return f"variable {leaf} (made at {leaf.line_info})"


def _first_ops(leaf: Leaf) -> list[Op]:
    first = leaf.initial_value
    return [*([first] if isinstance(first, Tensor) else []), *leaf.initializers]


def _reads(leaf: Leaf) -> list[Leaf]:
    """Return the variables that must be set before ``leaf`` can be initialized."""
    roots: list[Op] = []
    if isinstance(leaf.initial_value, Tensor):
        roots.append(leaf.initial_value)
    roots += [op.args[1] for op in leaf.initializers if op.primitive.name == "assign"]
    return [other for other in storage_leaves(*roots) if other is not leaf and other.info.stored]


def infer_lengths(leaf: Leaf) -> dict[str, int]:
    """Return the open lengths that the shape of an initial array fixes."""
    first = leaf.initial_value
    found: dict[str, int] = {}
    if isinstance(first, Tensor):
        for op in post_order([first]):
            for guard in op.guards:
                for left, right in ((guard.left, guard.right), (guard.right, guard.left)):
                    if guard.relation == "==" and isinstance(left, int):
                        if isinstance(right, Length) and str(right) in right.names():
                            found.setdefault(str(right), left)
    return found
