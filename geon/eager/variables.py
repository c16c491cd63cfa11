"""Variables in eager computation, and symbolic tensors of variables and draws as arrays."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AxisError
from ..op_graph.axes.axes import Axes
from ..op_graph.building.constants import number
from ..op_graph.evaluation.interpreter import interpret
from ..op_graph.nodes import slot_setter
from ..op_graph.op_graph import Leaf, Op, Tensor, post_order, put_notes, storage_leaves
from ..op_graph.rows.effects import assign
from ..op_graph.rows.leaves import variable as make_variable
from ..op_graph.transforms.functionalize import functional, substitute
from ..op_graph.values.dtypes import UINT64
from .arrays import EagerArray, array, data_array, same
from .nodes import OfOps, RecordedNode, lock


class VariableState:
    """A variable in eager computation: its newest version, and its accumulated gradient.

    ``array`` holds the version. A version of a variable that no longer exists is data.
    """

    __slots__ = ("array", "gradient", "trainable", "variable")

    array: EagerArray
    gradient: EagerArray | None

    def __init__(self, leaf: Leaf) -> None:
        self.variable, self.trainable, self.gradient = weakref.ref(leaf), leaf.trainable, None

    @property
    def leaf(self) -> Leaf:
        """The variable, which is alive."""
        leaf = self.variable()
        assert leaf is not None
        return leaf

    def current(self, node: RecordedNode) -> Leaf | None:
        """Return the variable if ``node`` is its newest version; otherwise None."""
        return self.variable() if self.array._node is node else None

    def put(self, value: EagerArray) -> None:
        """Make ``value`` the newest version."""
        self.array = same(value, self)


_states: OfOps[VariableState] = OfOps()


def state_of(leaf: Leaf) -> VariableState:
    """Return the state of a variable; its first version is its initial value."""
    found = _states.get(leaf)
    if found is None:
        with lock:
            found = _states.get(leaf)
            if found is None:
                found = VariableState(leaf)
                found.put(_first(leaf))
                _states.put(leaf, found)
    return found


def _first(leaf: Leaf) -> EagerArray:
    """Return the initial value of a variable."""
    given: Any = leaf.initial_value
    if isinstance(given, Tensor):
        # As a transformer does: draws are those of the call 0, whatever was drawn before.
        order = post_order([given])
        zeros: dict[Op, Op] = {
            op.args[0]: number(0, UINT64) for op in order if op.primitive.name == "random_bits"
        }
        (pure,) = functional([substitute(given, zeros)]).outputs
        if pure is None or storage_leaves(pure):
            return array(given)
        value = interpret([pure], {}, {})[pure]
        axes = Axes(*[a.with_length(n) for a, n in zip(leaf.axes, value.shape, strict=True)])
        return data_array(value, axes, leaf.axes)
    lengths: Any = [axis.length for axis in leaf.axes]
    if any(not isinstance(length, int) for length in lengths):
        raise AxisError(
            f"the variable {leaf} (made at {leaf.line_info}) has an open length, which its "
            "initial value does not fix; give it an array as initial_value"
        )
    axes = Axes(*[a.with_length(n) for a, n in zip(leaf.axes, lengths, strict=True)])
    value = np.asarray(0 if given is None else given(axes))
    return data_array(np.array(np.broadcast_to(value, tuple(lengths)), leaf.dtype), axes, leaf.axes)


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

    def __del__(self, *_: Any) -> None:
        """Leave the version pending: the variable still has it."""

    def assign(self, value: Any) -> None:
        """Assign a value: an array, a number, or data over the variable's axes."""
        if not isinstance(value, Op) and np.ndim(value):
            value = array(value, self.leaf.axes, self.leaf.dtype)
        from .tensors import run

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
