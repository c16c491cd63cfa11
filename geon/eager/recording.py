"""Recording: calls of geon's functions with arrays become nodes of the recorded graph.

A call is built symbolically once for each combination of function, types of its arrays and other
arguments. Further calls of the kind find it in a table.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..errors import DerivativeError, GeonError
from ..op_graph.axes.axes import Axes, Axis
from ..op_graph.building.constants import constant_value
from ..op_graph.building.elementwise_build import Elementwise
from ..op_graph.core.argument_hints import Dispatch
from ..op_graph.core.primitive import PRIMITIVES
from ..op_graph.core.source_info import ROOT, user_call, user_site
from ..op_graph.core.traversal import until_dropped
from ..op_graph.op_graph import Leaf, Op, Tensor, Variable, VoidOp, storage_leaves
from ..op_graph.random.graph_draws import has_draws, number_draws
from ..op_graph.rows.leaves import input_leaf
from ..op_graph.values.structural_key import PLAIN
from ..op_graph.values.tree import Place, filled, mapped
from .arrays import EagerArray, array, array_of, computed, data_array
from .nodes import Recent, RecordedCall, RecordedNode, Type, local, symbolic, type_of
from .symbolic_calls import Arguments, Words, arrays_in, bound, build, is_ours, name_of
from .tape import Tape, built, tape_of
from .variables import VariableState, leaf_of, parameter

_getframe = sys._getframe
NUMBERS = frozenset((float, int))
DIRECT = PLAIN | {Axis, Axes, Words}  # types of values that are parts of keys
LEAVES = input_leaf.__module__
MAX_NUMBERS = 4  # numbers of one line that are constants of programs; more become arguments
calls: Recent[RecordedCall] = Recent()


def dispatch(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of a public function for arrays; NotImplemented for other arguments.

    A list that contains itself is left to the function to refuse.
    """
    if local.recording:
        return NotImplemented
    key, given = [function], list[RecordedNode]()
    for value in (*args, Words(keywords), *keywords.values()) if keywords else args:
        kind = value.__class__
        if kind is EagerArray:
            node = value._node
            if node in given:
                key.append(given.index(node))
            else:
                given.append(node)
                key.append(node.type)
        elif kind is float and value:
            key.append((float, value))
        elif kind is Variable:
            key.append(id(value))
        elif kind in DIRECT:
            key.append(value)
        else:
            break
    else:
        call = calls.get(tuple(key)) if given else None
        if call is not None:
            return finish(call, given, keywords.get("name"))
    if not is_ours(function) and not hasattr(function, "differentiates"):
        return NotImplemented
    try:
        found = Arguments(args, keywords)
    except RecursionError:
        return NotImplemented
    if not found.numbers and not found.stored:
        return _capturing(function, args, keywords, found)
    call = calls.get((function, *found.key)) if found.known else None
    if call is not None:
        return finish(call, [*found.numbers], keywords.get("name"))
    if function.__module__ == LEAVES:  # a variable, with a first value of arrays
        with symbolic():
            return function(*args, **keywords)
    return record(function, args, keywords, found)


def _capturing(function: Any, args: Any, keywords: Any, found: Arguments) -> Any:
    """Return the result of a function whose functions may read arrays, as a loop's body does."""
    if not found.calls:
        return NotImplemented
    with symbolic():
        result = function(*args, **keywords)
    ops: list[Op] = []
    mapped(result, lambda v: ops.append(v) if isinstance(v, Op) else None)
    captures = any(isinstance(leaf, EagerArray) for leaf in storage_leaves(*ops))
    return _recorded(result, function) if captures else result


def record(
    function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any], found: Arguments
) -> Any:
    """Return the arrays that a function gives for arrays among its arguments."""
    replaced = _as_arrays(function, args, found)
    if replaced or found.stored:
        args, keywords = mapped((args, keywords), lambda v: replaced.get(id(v), leaf_of(v)))
        found = Arguments(args, keywords)
    key, given, tape = (function, *found.key), [*found.numbers], None
    if hasattr(function, "differentiates"):
        tape = _derived_tape(function, args, keywords, found)
        numbers = [tape.numbers[node] for node in given]
        kinds = [node.type for node in tape.inputs]
        key, given = (*key, *numbers, *kinds, *map(id, tape.leaves), *tape.steps), tape.free
    call: Any = calls.get(key) if found.known else None
    if call is not None and tape is not None:
        given = [*given, *[tape.order[k] for k in call.taken]]
    if call is None:
        if found.known and tape is None and is_ours(function):
            varied = varied_numbers(function, args, keywords, found)
            if varied is not None:
                return record(function, varied[0], varied[1], Arguments(*varied))
        count = len(given)
        call, given = call_of(function, args, keywords, found, tape)
        if not isinstance(call, RecordedCall):
            return call
        if found.known and len(given) == count + len(call.taken):
            calls.put(key, call)
    return finish(call, given, keywords.get("name"))


def _derived_tape(function: Any, args: Any, keywords: Any, found: Arguments) -> Tape:
    """Return the graph of the argument that a function such as ``deriv`` takes the graph of.

    It ends at the other arguments. Raises ``DerivativeError`` for a variable that was assigned
    since the graph was recorded.
    """
    place, word = function.differentiates
    roots = [x._node for x in arrays_in(args[place] if place < len(args) else keywords[word])]
    tape = tape_of(roots, [node for node in found.numbers if node not in roots])
    wanted = {id(op) for op in found.held}
    for node in [node for node in tape.free if isinstance(node.mark, VariableState)]:
        known = node.mark.variable()
        if known is not None and id(known) in wanted:
            raise DerivativeError(
                f"{user_call(name_of(function))}: {known} (made at {known.line_info}) "
                "was assigned after the array that is derived was computed from it; derive it "
                "before the assignment, or compute it again"
            )
    return tape


def call_of(
    function: Any, args: Any, keywords: Any, found: Arguments, derived: Tape | None = None
) -> tuple[Any, list[RecordedNode]]:
    """Return the call of a function, or a result that is none, and the nodes of its arguments.

    ``derived`` is the graph that it derives; other functions take their arguments alone.
    """
    tape = derived or Tape((), found.numbers)
    # The call must not hold arrays, without which it is made again.
    numbers, steps, leaves = tape.numbers, tape.steps, tape.leaves
    skeleton = mapped(
        (args, keywords), lambda v: Place(numbers[v._node]) if isinstance(v, EagerArray) else v
    )

    def make(tensors: Sequence[Any], open: bool) -> tuple[Any, Sequence[Op]]:
        made = built(steps, leaves, tensors, open)
        given, words = filled(skeleton, made)
        return function(*given, **words), made[len(leaves) :]

    inputs: dict[Tensor, RecordedNode] = {array_of(node): node for node in tape.free}
    held = [*found.held, *[leaf for leaf in leaves if leaf is not None]]
    generic = (function, *found.generic)
    if derived is not None:
        generic += (*[numbers[node] for node in found.numbers], *tape.generic())
    known = found.known and tape.opens
    return build(function, make, inputs, held, generic, known, tape.order)


def _as_arrays(function: Any, args: Sequence[Any], found: Arguments) -> dict[int, EagerArray]:
    """Return the arguments that become arrays, by their id.

    They are draws, and operands of the shape of an array beside them, whose axes they take.
    """
    kinds = [node.type for node in found.numbers]
    replaced = {id(op): lifted(op, kinds) for op in found.held if draws_of(op) is not None}
    near = next((kind for kind in kinds if len(kind.axes)), None)
    if found.data and near is not None and isinstance(function, Elementwise):
        for value in [v for v in found.data if v.shape == near.axes.lengths]:
            kind = type_of(near.axes, near.declared, value.dtype)
            replaced[id(value)] = data_array(value, kind, value)
    return replaced


def finish(call: RecordedCall, given: Sequence[RecordedNode], name: str | None = None) -> Any:
    """Return the results of a call on these nodes, and give variables their new versions."""
    site, args = user_site(4), tuple(given)
    if call.states:
        args += tuple([state.array._node for state in call.states])
    if call.single:
        made = computed(call.results[0], args, site)
        if name is not None:
            made._set_name(name)
        return made
    arrays = [computed(result, args, site) for result in call.shown]
    new = [args[r] if r.__class__ is int else computed(r, args, site)._node for r in call.updates]
    for state, node in zip(call.updated, new, strict=True):
        state.put(node, site)
    return filled(call.structure, arrays)


# Symbolic tensors ------------------------------------------------------------------------------


# By the id of a tensor: its arrays if it depends on a random draw, by the id of the tensor without
# open lengths, which is kept unless it is the same; otherwise None.
_draws: dict[int, dict[int, tuple[Op | None, EagerArray]] | None] = {}


def draws_of(op: Any) -> dict[int, tuple[Op | None, EagerArray]] | None:
    """Return the arrays of a symbolic tensor that depends on a random draw; None for others."""
    if not isinstance(op, Tensor) or not op.args:
        return None
    if id(op) not in _draws:
        until_dropped(_draws, op, {} if has_draws([op]) else None)
    return _draws[id(op)]


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
    draws = draws_of(op)
    if draws is None:
        return _recorded(op, op.primitive)
    (fixed,) = bound([op], kinds, op.primitive.name)
    if id(fixed) not in draws:
        made = number_draws(fixed)
        draws[id(fixed)] = None if fixed is op else fixed, _recorded(made, made.primitive)
    return draws[id(fixed)][1]


def _recorded(result: Any, function: Any) -> Any:
    """Return the results of symbolic tensors or effects at the newest versions of variables."""
    key = ("symbolic", id(result))
    call: Any = calls.get(key)
    captured: list[RecordedNode] = []
    if call is None:
        call, captured = build(
            function, lambda *_: (result, ()), {}, Arguments([result]).held, key, False
        )
        if not isinstance(call, RecordedCall):
            return array(constant_value(result))  # numbers whose dtype is not fixed
        if not captured:
            calls.put(key, call)
    return finish(call, captured)


def run(effect: VoidOp) -> None:
    """Run an effect of symbolic tensors, such as ``geon.assign(w, 0.9 * w)``, on the variables."""
    _recorded(effect, effect.primitive)


# Numbers -----------------------------------------------------------------------------------------


# By function, arguments but for numbers, and line: the different numbers of each place, and whether
# the function takes arrays in their places; None before it was tried.
seen: Recent[tuple[list[set[str]], list[bool | None]]] = Recent()


def varied_numbers(function: Any, args: Any, keywords: Any, found: Arguments) -> Any:
    """Return the arguments with arrays for the numbers that differ from call to call of a line.

    Return None while there are few, and if the function takes no arrays for them or gives results
    of another type. Integers are checked as constants in each call, since they may be positions.
    """
    given: list[Any] = []
    mapped((args, keywords), lambda v: given.append(v) if v.__class__ in NUMBERS else None)
    if not given or name_of(function) == "power":
        return None
    parts = [p[0] if p.__class__ is tuple and p[0] in NUMBERS else p for p in found.key]
    key = (function, *parts, *user_site()[:2])
    values, takes_arrays = seen.get(key) or seen.put(key, ([set() for _ in given], [None]))
    for known, value in zip(values, given, strict=True):
        if len(known) <= MAX_NUMBERS:
            known.add(repr(value))
    varied = [len(known) > MAX_NUMBERS for known in values]
    if takes_arrays == [False] or not any(varied):
        return None
    dtypes = [node.type.dtype for node in found.numbers]
    dtypes += [op.dtype for op in found.held if isinstance(op, Tensor)]
    floats = [dtype for dtype in dtypes if dtype.kind == "f"]
    near = max(floats or dtypes, key=lambda dtype: dtype.itemsize)
    whole = near if isinstance(function, Elementwise) else np.dtype("int64")
    made = [
        _number_array(value, near if value.__class__ is float else whole) if other else value
        for value, other in zip(given, varied, strict=True)
    ]
    if any(one is None for one in made):
        return None
    rest = iter(made)
    others = mapped((args, keywords), lambda v: next(rest) if v.__class__ in NUMBERS else v)
    if takes_arrays == [True] and int not in map(type, itertools.compress(given, varied)):
        return others
    constant, _ = call_of(function, args, keywords, found)
    if takes_arrays == [None]:
        takes_arrays[0] = False
        with suppress(GeonError, TypeError, ValueError):
            call, _ = call_of(function, others[0], others[1], Arguments(*others))
            if constant.__class__ is call.__class__ is RecordedCall:
                takes_arrays[0] = [r.type for r in constant.results] == [
                    r.type for r in call.results
                ]
    return others if takes_arrays == [True] else None


def _number_array(value: Any, dtype: Any) -> EagerArray | None:
    """Return a number as an array; None if it does not fit the dtype."""
    with np.errstate(all="ignore"), suppress(OverflowError):
        made = np.asarray(value).astype(dtype)
        if np.isfinite(made) and (value.__class__ is float or made == value):
            return data_array(made, type_of(Axes(), Axes(), dtype))
    return None


# Operators ---------------------------------------------------------------------------------------


def _binary(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    """Return the method of an operator of arrays, which finds a known call with one look-up."""
    row: Any = PRIMITIVES[name]

    def method(x: EagerArray, y: Any) -> Any:
        node, kind, call = x._node, y.__class__, None
        args: tuple[RecordedNode, ...] = (node,)
        if kind is float:
            if y:
                number = (float, y)
                key = (row, number, node.type) if reflected else (row, node.type, number)
                call = calls.get(key)
        elif kind is EagerArray and y._node is not node:
            call = calls.get((row, node.type, y._node.type))
            args = (node, y._node)
        elif kind is Variable:
            call = calls.get((row, node.type, id(y)))
            args = (node, *[state.array._node for state in call.states]) if call else ()
        if call is None or local.recording:
            return row(y, x) if reflected else row(x, y)
        frame = _getframe(1)
        code = frame.f_code
        site = user_site(2) if code.co_filename.startswith(ROOT) else (code, frame.f_lasti, "")
        return computed(call.results[0], args, site)

    return method


METHODS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}  # fmt: skip


def install() -> None:
    """Send calls with arrays here, from public functions and operators."""
    Dispatch.hook = dispatch
    for method, name in METHODS.items():
        setattr(EagerArray, f"__{method}__", _binary(name))
    for method, name in [*METHODS.items()][:4]:
        setattr(EagerArray, f"__r{method}__", _binary(name, reflected=True))
