"""Variables in eager computation: their newest versions and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import AxisError
from ..op_graph.axes.axes import Axes
from ..op_graph.op_graph import Leaf, Op, Tensor, put_notes, slot_setter
from ..op_graph.rows.effects import assign
from ..op_graph.rows.leaves import variable as make_variable
from .arrays import Array, _new, array, data_array, same
from .nodes import Node, OfOps, State, lock

_states: OfOps[EagerState] = OfOps()


class EagerState(State):
    """A variable's newest version and gradient."""

    __slots__ = ()

    def put(self, value: Array) -> None:
        """Make ``value`` the newest version."""
        self.array = same(value, self)


def state_of(leaf: Leaf) -> EagerState:
    """Return the state of a variable; its first version is its initial value."""
    found = _states.get(leaf)
    if found is None:
        with lock:
            found = _states.get(leaf)
            if found is None:
                found = EagerState(leaf)
                _first(leaf, found)
                _states.put(leaf, found)
    return found


def _first(leaf: Leaf, state: EagerState) -> None:
    """Give a variable the version of its initial value."""
    from . import recording

    given: Any = leaf.initial_value
    if isinstance(given, Tensor):
        first: Array = recording.lifted(given)
    else:
        lengths = [axis.length for axis in leaf.axes]
        if any(not isinstance(length, int) for length in lengths):
            raise AxisError(
                f"the variable {leaf} (made at {leaf.line_info}) has an open length, which its "
                "initial value does not fix; give it an array as initial_value"
            )
        axes = Axes(*[a.with_length(n) for a, n in zip(leaf.axes, lengths, strict=True)])
        shape: Any = axes.lengths
        made = np.zeros(shape, leaf.dtype) if given is None else np.asarray(given(axes))
        made = np.array(np.broadcast_to(made, shape), leaf.dtype)
        first = data_array(made, axes, leaf.axes)
    state.put(first)


class Parameter(Array):
    """A variable as an array: operations on it use its newest version.

    ``grad`` is its gradient, accumulated by ``backward``; None before.
    """

    __slots__ = ("_state", "leaf")

    _state: EagerState
    leaf: Leaf

    @staticmethod
    def of(leaf: Leaf) -> Parameter:
        """Return the array of a variable."""
        made: Parameter = _new(Parameter)
        put_notes(made, None)
        _put_state(made, state_of(leaf))
        _put_leaf(made, leaf)
        return made

    @property
    def _node(self) -> Node:  # type: ignore[override]  # the newest version's
        node: Node = self._state.array._node
        return node

    def __del__(self, pending: Any = None) -> None:
        pass

    @property
    def grad(self) -> Array | None:
        """The gradient that ``backward`` accumulated, an array; None before."""
        found: Array | None = self._state.gradient
        return found

    def __setattr__(self, attribute: str, value: Any) -> None:
        if attribute == "grad":
            self._state.gradient = value
        else:
            super().__setattr__(attribute, value)

    def assign(self, value: Any) -> None:
        """Assign a value: an array, a number or data over the variable's axes."""
        if not isinstance(value, Op) and np.ndim(value):
            value = array(value, self.leaf.axes, self.leaf.dtype)
        run(assign(self.leaf, value))

    def _label(self) -> str:
        return str(self.leaf)

    @property
    def line_info(self) -> str:
        """``file:line`` of the variable."""
        return self.leaf.line_info


_put_state = slot_setter(Parameter, "_state")
_put_leaf = slot_setter(Parameter, "leaf")


def variable(axes: Any = None, dtype: Any = None, **options: Any) -> Parameter:
    """Return a new ``geon.Variable`` as an array; it takes the arguments of that.

    Derivatives with respect to it are accumulated by ``backward`` in ``grad``.
    """
    return Parameter.of(make_variable(axes, dtype, **options))


def run(effect: Any) -> None:
    """Run an effect of symbolic tensors, such as ``geon.assign(w, 0.9 * w)``, on the variables."""
    from . import recording

    recording.run_effect(effect)
