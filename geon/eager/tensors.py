"""Symbolic tensors of variables and draws as arrays, and effects on variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..op_graph.building.constants import constant_value
from ..op_graph.building.rebuild import rebuild
from ..op_graph.core.primitive import PRIMITIVES
from ..op_graph.op_graph import Leaf, Op, make
from .arrays import EagerArray, array
from .nodes import OfOps, RecordedCall, RecordedNode, Type
from .recording import LATE, Arguments, bound, build, calls, finish, is_drawn
from .variables import parameter

if TYPE_CHECKING:
    from ..op_graph.op_graph import VoidOp

_lifted: OfOps[dict[int, tuple[Op, EagerArray]]] = OfOps()


def lifted(op: Op, kinds: Sequence[Type] = ()) -> EagerArray:
    """Return the array of a variable's newest version, or of a tensor of variables and draws.

    A tensor that depends on draws is drawn once, then the same array is returned again. Numbers of
    draws are replaced by their order in the tensor, so that the same code draws by one program in
    each step; what differs is the number of the call. ``kinds`` give its open lengths.
    """
    if isinstance(op, EagerArray):
        return op
    if isinstance(op, Leaf) and op.info.stored:
        return parameter(op)
    if not is_drawn(op):
        return _recorded(op)
    (fixed,) = bound([op], kinds, op.primitive.name)
    draws = _lifted.get(op) or _lifted.put(op, {})
    if id(fixed) not in draws:
        (made,) = rebuild([fixed], _numbered())
        draws[id(fixed)] = fixed, _recorded(made)
    return draws[id(fixed)][1]


def _recorded(op: Any) -> Any:
    """Return the results of a symbolic tensor or effect at the newest versions of variables."""
    key = ("symbolic", id(op))
    call: Any = calls.get(key)
    nodes: list[RecordedNode] = []
    if call is None:
        call, nodes = build(lambda: op, (), {}, {}, Arguments(op))
        if not isinstance(call, RecordedCall):
            return array(constant_value(op))  # numbers whose dtype is not fixed
        call.name = op.primitive.name
        call.generic, call.again = key, None
        if not nodes:
            calls.put(key, call)
    return finish(call, nodes)


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


LATE["lifted"] = lifted
