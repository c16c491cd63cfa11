"""Variables in eager computation: their versions, and variables as arrays."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ..op_graph.axes.axes import Axes
from ..op_graph.core.traversal import until_dropped
from ..op_graph.nodes import slot_setter
from ..op_graph.op_graph import Leaf, Op, Tensor, put_notes, storage_leaves
from ..op_graph.rows.effects import assign
from ..op_graph.rows.leaves import variable as make_variable
from ..transformers.base import make_transformer
from .arrays import EagerArray, array, data_array, same
from .nodes import RecordedNode, lock, type_of

if TYPE_CHECKING:
    from ..op_graph.core.source_info import Site


class VariableState:
    """A variable in eager computation: its newest version, and its accumulated gradient.

    ``array`` holds the version. A version of a variable that no longer exists is data.
    """

    __slots__ = ("array", "gradient", "variable")

    array: EagerArray
    gradient: EagerArray | None

    def __init__(self, leaf: Leaf) -> None:
        self.variable, self.gradient = weakref.ref(leaf), None
        given = leaf.initial_value
        inputs = storage_leaves(given) if isinstance(given, Tensor) else []
        if any(isinstance(each, EagerArray) for each in inputs):
            self.put(array(given).detach()._node, leaf._site)
        else:
            value = make_transformer("numpy").get(leaf)  # an initial value of any other kind
            axes = [axis.with_length(n) for axis, n in zip(leaf.axes, value.shape, strict=True)]
            kind = type_of(Axes(*axes), leaf.axes, leaf.dtype)
            self.put(data_array(value, kind, value)._node, leaf._site)

    def current(self, node: RecordedNode) -> Leaf | None:
        """Return the variable if ``node`` is its newest version; otherwise None."""
        return self.variable() if self.array._node is node else None

    def put(self, value: RecordedNode, site: Site) -> None:
        """Make ``value`` the newest version, assigned at a line."""
        self.array = same(value, self, site)


_states: dict[int, VariableState] = {}  # by the id of the variable


def state_of(leaf: Leaf) -> VariableState:
    """Return the state of a variable; its first version is its initial value."""
    found = _states.get(id(leaf))
    if found is None:
        with lock:
            found = _states.get(id(leaf)) or until_dropped(_states, leaf, VariableState(leaf))
    return found


def leaf_of(value: Any) -> Any:
    """Return the variable of an ``EagerVariable``; any other value unchanged."""
    return value.leaf if isinstance(value, EagerVariable) else value


class EagerVariable(EagerArray):
    """A variable as an array: operations on it use its newest version.

    ``leaf`` is the variable. ``grad`` is its gradient, an array that ``backward`` accumulates;
    None before. It can be set, to None for the next step.
    """

    __slots__ = ("_state", "leaf")

    _state: VariableState
    leaf: Leaf

    if not TYPE_CHECKING:  # in the place of slots and attributes
        _node = property(lambda self: self._state.array._node)
        line_info = property(lambda self: self.leaf.line_info)

    @property
    def grad(self) -> EagerArray | None:
        """The accumulated gradient."""
        return self._state.gradient

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute == "grad":
            self._state.gradient = value
        else:
            super().__setattr__(attribute, value)

    def assign(self, value: Any) -> None:
        """Assign a value: an array, a number, or data over the variable's axes."""
        if not isinstance(value, Op) and np.ndim(value):
            value = array(value, self.leaf.axes, self.leaf.dtype)
        from .recording import run

        run(assign(self.leaf, value))

    def _label(self) -> str:
        return str(self.leaf)


_put_state, _put_leaf = slot_setter(EagerVariable, "_state"), slot_setter(EagerVariable, "leaf")


def parameter(leaf: Leaf) -> EagerVariable:
    """Return a variable as an array."""
    made: EagerVariable = object.__new__(EagerVariable)
    put_notes(made, None)
    _put_state(made, state_of(leaf))
    _put_leaf(made, leaf)
    return made


def variable(axes: Any = None, dtype: Any = None, **options: Any) -> EagerVariable:
    """Return a new ``geon.Variable`` as an array; it takes the arguments of that.

    ``backward`` accumulates derivatives with respect to it in ``grad``.
    """
    return parameter(make_variable(axes, dtype, **options))
