"""Variables in eager computation, and symbolic tensors of variables and draws as arrays."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AxisError
from ..op_graph.axes.axes import Axes
from ..op_graph.building.constants import constant_value
from ..op_graph.building.rebuild import rebuild
from ..op_graph.core.primitive import PRIMITIVES
from ..op_graph.nodes import slot_setter
from ..op_graph.op_graph import Leaf, Op, Tensor, make, post_order, put_notes
from ..op_graph.rows.effects import assign
from ..op_graph.rows.leaves import variable as make_variable
from . import recording
from .arrays import Array, array, data_array, same
from .nodes import Call, Node, OfOps, Type, lock

if TYPE_CHECKING:
    from ..op_graph.op_graph import VoidOp


class State:
    """A variable in eager computation: its newest version, and its accumulated gradient.

    ``array`` holds the version. A version of a variable that no longer exists is data.
    """

    __slots__ = ("array", "gradient", "trainable", "variable")

    array: Array
    gradient: Array | None

    def __init__(self, leaf: Leaf) -> None:
        self.variable, self.trainable, self.gradient = weakref.ref(leaf), leaf.trainable, None

    @property
    def leaf(self) -> Leaf:
        """The variable, which is alive."""
        leaf = self.variable()
        assert leaf is not None
        return leaf

    def current(self, node: Node) -> Leaf | None:
        """Return the variable if ``node`` is its newest version; otherwise None."""
        return self.variable() if self.array._node is node else None

    def put(self, value: Array) -> None:
        """Make ``value`` the newest version."""
        self.array = same(value, self)


_states: OfOps[State] = OfOps()


def state_of(leaf: Leaf) -> State:
    """Return the state of a variable; its first version is its initial value."""
    found = _states.get(leaf)
    if found is None:
        with lock:
            found = _states.get(leaf)
            if found is None:
                found = State(leaf)
                found.put(_first(leaf))
                _states.put(leaf, found)
    return found


def _first(leaf: Leaf) -> Array:
    """Return the initial value of a variable."""
    given: Any = leaf.initial_value
    if isinstance(given, Tensor):
        return lifted(given)
    lengths: Any = [axis.length for axis in leaf.axes]
    if any(not isinstance(length, int) for length in lengths):
        raise AxisError(
            f"the variable {leaf} (made at {leaf.line_info}) has an open length, which its "
            "initial value does not fix; give it an array as initial_value"
        )
    axes = Axes(*[a.with_length(n) for a, n in zip(leaf.axes, lengths, strict=True)])
    value = 0 if given is None else np.asarray(given(axes))
    return data_array(np.array(np.broadcast_to(value, tuple(lengths)), leaf.dtype), axes, leaf.axes)


class Parameter(Array):
    """A variable as an array: operations on it use its newest version.

    ``leaf`` is the variable. ``grad`` is its gradient, an array that ``backward`` accumulates;
    None before. It can be set, to None for the next step.
    """

    __slots__ = ("_state", "leaf")

    _state: State
    leaf: Leaf

    if not TYPE_CHECKING:  # in the place of slots and attributes
        _node = property(lambda self: self._state.array._node)
        line_info = property(lambda self: self.leaf.line_info)

    @property
    def grad(self) -> Array | None:
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
        run(assign(self.leaf, value))

    def _label(self) -> str:
        return str(self.leaf)


_put_state, _put_leaf = slot_setter(Parameter, "_state"), slot_setter(Parameter, "leaf")


def parameter(leaf: Leaf) -> Parameter:
    """Return a variable as an array."""
    made: Parameter = object.__new__(Parameter)
    put_notes(made, None)
    _put_state(made, state_of(leaf))
    _put_leaf(made, leaf)
    return made


def variable(axes: Any = None, dtype: Any = None, **options: Any) -> Parameter:
    """Return a new ``geon.Variable`` as an array; it takes the arguments of that.

    ``backward`` accumulates derivatives with respect to it in ``grad``.
    """
    return parameter(make_variable(axes, dtype, **options))


# Symbolic tensors --------------------------------------------------------------------------------

_drawn: OfOps[bool] = OfOps()
_lifted: OfOps[dict[int, tuple[Op, Array]]] = OfOps()


def is_drawn(op: Op) -> bool:
    """Return True if a symbolic tensor depends on a random draw."""
    if isinstance(op, Leaf) or not op.args:
        return False
    found = _drawn.get(op)
    if found is None:
        found = any(below.primitive.name == "random_bits" for below in post_order([op]))
        _drawn.put(op, found)
    return found


def lifted(op: Op, kinds: Sequence[Type] = ()) -> Array:
    """Return the array of a variable's newest version, or of a tensor of variables and draws.

    A tensor that depends on draws is drawn once, then the same array is returned again. Numbers of
    draws are replaced by their order in the tensor, so that the same code draws by one program in
    each step; what differs is the number of the call. ``kinds`` give its open lengths.
    """
    if isinstance(op, Array):
        return op
    if isinstance(op, Leaf) and op.info.stored:
        return parameter(op)
    if not is_drawn(op):
        return _recorded(op)
    (fixed,) = recording.bound([op], kinds, op.primitive.name)
    draws = _lifted.get(op) or _lifted.put(op, {})
    if id(fixed) not in draws:
        (made,) = rebuild([fixed], _numbered())
        draws[id(fixed)] = fixed, _recorded(made)
    return draws[id(fixed)][1]


def _recorded(op: Any) -> Any:
    """Return the results of a symbolic tensor or effect at the newest versions of variables."""
    key = ("symbolic", id(op))
    call, nodes = recording.calls.get(key), []
    if call is None:
        found = recording.Found()
        found.held.append(op)
        call, nodes = recording.build(lambda: op, (), {}, {}, found)
        if not isinstance(call, Call):
            return array(constant_value(op))  # numbers whose dtype is not fixed
        call.name = op.primitive.name
        call.generic, call.again = key, None
        if not nodes:
            recording.calls.put(key, call)
    return recording.finish(call, nodes)


def run(effect: VoidOp) -> None:
    """Run an effect of symbolic tensors, such as ``geon.assign(w, 0.9 * w)``, on the variables."""
    _recorded(effect)


def _numbered() -> Callable[[Op, tuple[Op, ...]], Op | None]:
    """Return a replacement that numbers the draws of each stream from 0, for ``rebuild``."""
    counts: dict[int, int] = {}

    def number(op: Op, args: tuple[Op, ...]) -> Op | None:
        if op.primitive.name != "random_bits":
            return None
        count = counts[op.attrs.seed] = counts.get(op.attrs.seed, -1) + 1
        made: Op = make(PRIMITIVES["random_bits"], args, tuple(op.attrs._replace(draw=count)))
        return made

    return number
