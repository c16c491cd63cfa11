"""Recording: calls of geon's functions with arrays become nodes of the recorded graph.

A call is built symbolically once for each combination of function, types of its arrays and other
arguments. Further calls of the kind find it in a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

from ..errors import AxisError, DerivativeError, SymbolicError
from ..op_graph.axes.axes import Axes, Axis
from ..op_graph.axes.length_defaults import default_lengths
from ..op_graph.building.elementwise_build import Elementwise
from ..op_graph.building.rebuild import rebuild
from ..op_graph.building.unused_effects import take
from ..op_graph.core.argument_hints import Dispatch
from ..op_graph.core.primitive import PRIMITIVES, Primitive
from ..op_graph.core.source_info import describe, user_call, user_site
from ..op_graph.op_graph import Leaf, Op, Tensor, Variable, VoidOp, make, post_order, storage_leaves
from ..op_graph.rows.effects import doall
from ..op_graph.rows.leaves import input_leaf
from ..op_graph.syntax.operators import LATE_BOUND
from ..op_graph.transforms.clone import adopt, bind_lengths, notes_of
from ..op_graph.transforms.functionalize import functional, substitute
from ..op_graph.values.tree import is_mapping
from . import variables
from .arrays import Array, computed, data_array, handle
from .nodes import (
    FORGOTTEN,
    FREED,
    Call,
    Node,
    OfOps,
    Part,
    Recent,
    State,
    Type,
    local,
    type_of,
)

PLAIN = frozenset((str, bool, int, type(None), Axis, Axes, np.dtype, type, type(Ellipsis)))
MAX_NUMBERS = 4  # numbers of one line that are constants of programs; more become arguments
serial = attrgetter("serial")
calls: Recent[Call] = Recent()
interned: Recent[Call] = Recent()
lifts: OfOps[dict[int, tuple[Op, Array]]] = OfOps()


class Found:
    """The arrays of a call's arguments, in order, and the key of everything else about it.

    ``generic`` is the key without lengths. ``known`` is False if the call must be built each time.
    ``replaced`` are arguments that became arrays, by their id. ``held`` are objects that the key
    has the id of.
    """

    def __init__(self, near: Any = None, given: Any = ()) -> None:
        self.given = given
        self.arrays: list[Array] = []
        self.key: list[Any] = []
        self.generic: list[Any] = []
        self.known = True
        self.near = near
        self.held: list[Any] = []
        self.replaced: dict[int, Array] = {}

    def visit(self, value: Any) -> None:
        """Add an argument."""
        kind = value.__class__
        if isinstance(value, Array):
            self.add(value)
        elif isinstance(value, Op):
            if isinstance(value, Tensor) and is_drawn(value):
                kinds = [array._node.type for array in arrays_in(self.given)]
                self.replace(value, lifted(value, kinds))
            else:
                self.held.append(value)
                self.note(id(value))
        elif kind is float:
            self.note(number_key(value))
        elif kind in PLAIN:
            self.note((kind, value))
        elif kind is list or isinstance(value, tuple):
            self.note((kind, len(value)))
            for item in value:
                self.visit(item)
        elif is_mapping(value):
            self.note((kind, len(value)))
            for key, item in value.items():
                self.visit(key)
                self.visit(item)
        elif kind is slice:
            self.note(kind)
            for item in (value.start, value.stop, value.step):
                self.visit(item)
        elif isinstance(value, np.generic):
            self.note((value.dtype, value.tobytes()))
        elif kind is np.ndarray and self.near is not None and value.shape == self.near.shape:
            self.replace(
                value, data_array(value, self.near.axes, self.near._node.type.declared, value)
            )
        else:
            self.visit_object(value)

    def visit_object(self, value: Any) -> None:
        """Add an object by its value if it has a hash; an optimiser by its settings.

        Functions may read anything, so that calls with them are built each time.
        """
        if hasattr(type(value).__call__, "differentiates"):
            settings = [(k, v) for k, v in vars(value).items() if v.__class__ in (*PLAIN, float)]
            self.held.append(value)
            self.note((id(value), str(settings)))
        elif isinstance(value, Primitive):
            self.note(value)
        elif callable(value) or type(value).__hash__ is None:
            self.known = False
        else:
            self.note(value)

    def note(self, part: Any) -> None:
        """Add a part of the key that is no array."""
        self.key.append(part)
        self.generic.append(part)

    def add(self, array: Array) -> None:
        """Add an array: its type, or its first position."""
        for place, known in enumerate(self.arrays):
            if known is array:
                self.note(place)
                return
        self.arrays.append(array)
        self.key.append(array._node.type)
        self.generic.append(Array)

    def replace(self, value: Any, array: Array) -> None:
        """Add an array in the place of another value."""
        self.replaced[id(value)] = array
        self.held.append(value)
        self.add(array)


def number_key(value: float) -> tuple[Any, ...]:
    """Return the part of a key for a float; 0.0 and -0.0 differ."""
    return (float, value) if value else (float, str(value))


def replace(value: Any, known: Mapping[int, Any]) -> Any:
    """Return an argument with the objects of these ids replaced."""
    found = known.get(id(value))
    if found is not None:
        return found
    if value.__class__ is list or isinstance(value, tuple):
        items = [replace(item, known) for item in value]
        return getattr(type(value), "_make", type(value))(items)
    if is_mapping(value):
        return {replace(k, known): replace(item, known) for k, item in value.items()}
    if value.__class__ is slice:
        return slice(*[replace(v, known) for v in (value.start, value.stop, value.step)])
    return value


def arrays_in(value: Any) -> Iterator[Array]:
    """Yield the arrays in an argument."""
    if isinstance(value, Array):
        yield value
    elif value.__class__ is list or isinstance(value, tuple):
        for item in value:
            yield from arrays_in(item)
    elif is_mapping(value):
        yield from arrays_in([*value, *value.values()])


def has_array(value: Any) -> bool:
    """Return True if an argument is an array, or a list, tuple, dictionary or slice with one."""
    kind = value.__class__
    if issubclass(kind, Array):
        return True
    if kind is list or kind is tuple:
        return any([has_array(item) for item in value])
    if kind is dict:
        return any([has_array(k) or has_array(v) for k, v in value.items()])
    if kind is slice:
        return any([has_array(v) for v in (value.start, value.stop, value.step)])
    return False


def dispatch(function: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Return the result of a public function for arrays; NotImplemented for other arguments.

    A known call of plain arguments takes one look-up; its key is that of ``Found``.
    """
    if local.recording:
        return NotImplemented
    key: list[Any] = [function]
    nodes: list[Node] = []
    add = key.append
    for value in args:
        kind = value.__class__
        if kind is Array:
            node = value._node
            nodes.append(node)
            add(node.type)
        elif kind is Variable:
            add(id(value))
        elif not _plain(value, key, nodes):
            break
    else:
        for word, value in keywords.items():
            add(word)
            if not _plain(value, key, nodes):
                break
        else:
            if not nodes:
                return NotImplemented
            found = tuple(key)
            call = calls.new.get(found) or calls.get(found)
            if call is not None and (len(nodes) == 1 or len(set(nodes)) == len(nodes)):
                return finish(call, nodes, keywords.get("name"))
    if not nodes and not has_array([*args, *keywords.values()]):
        return NotImplemented
    if not isinstance(function, Elementwise) and not _builds(function):
        return NotImplemented
    return record(function, args, keywords)


def _plain(value: Any, key: list[Any], nodes: list[Node]) -> bool:
    """Add an argument to a key; return False if it is no array, variable or simple value."""
    kind = value.__class__
    if kind is Array or kind is variables.Parameter:
        node = value._node
        nodes.append(node)
        key.append(node.type)
    elif kind is float:
        key.append(number_key(value))
    elif kind in PLAIN:
        key.append((kind, value))
    elif kind is Variable:
        key.append(id(value))
    elif (kind is list or kind is tuple) and len(value) < 9:
        key.append((kind, len(value)))
        return all([_plain(item, key, nodes) for item in value])
    else:
        return False
    return True


def _builds(function: Any) -> bool:
    """Return True for functions of the graph, and those that derive a cost."""
    module = str(function.__module__)
    return module.startswith("geon.op_graph.") or hasattr(function, "differentiates")


def record(function: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """Return the arrays that a function gives for arrays among its arguments."""
    near = None
    if isinstance(function, Elementwise):
        near = next((arg for arg in args if isinstance(arg, Array) and len(arg.axes)), None)
        args = tuple([_argument(function, args, k) for k in range(len(args))])
    found = Found(near, (args, keywords))
    for arg in args:
        found.visit(arg)
    for word, arg in keywords.items():
        found.note(word)
        found.visit(arg)
    if found.replaced:
        args, keywords = replace(args, found.replaced), replace(dict(keywords), found.replaced)
    mark = getattr(function, "differentiates", None)
    if mark is not None:
        return _through(function, mark, args, keywords, found)
    key = (function, *found.key)
    call = calls.get(key) if found.known else None
    nodes = [array._node for array in found.arrays]
    if call is None:
        built = build(
            function,
            args,
            keywords,
            {a: a._node.type for a in found.arrays},
            found,
            name_of(function),
        )
        if not isinstance(built[0], Call):
            return built[0]
        call, captured = built
        nodes += captured
        if found.known and not captured:
            calls.put(key, call)
    return finish(call, nodes, keywords.get("name"))


def name_of(function: Any) -> str:
    """Return the name of a function for messages."""
    return str(getattr(function, "name", None) or getattr(function, "__name__", "function"))


# Numbers -----------------------------------------------------------------------------------------

numbers: Recent[set[float]] = Recent()


def _argument(row: Elementwise, args: tuple[Any, ...], place: int) -> Any:
    """Return an operand; an array for a number if the line had many different ones."""
    value = args[place]
    if value.__class__ is not float or row.arity != 2 or row.name == "power":
        return value
    other = args[1 - place]
    if not isinstance(other, Array) or other.dtype.kind != "f" or not np.isfinite(value):
        return value
    site = user_site(3)
    key = (row, site[0], site[1])
    seen = numbers.get(key)
    if seen is None:
        seen = set()
        numbers.put(key, seen)
    if len(seen) < MAX_NUMBERS:
        seen.add(value)
        return value
    made = np.asarray(value, other.dtype)
    return data_array(made, Axes(), Axes()) if np.isfinite(made) else value


# Building ------------------------------------------------------------------------------------------


@contextmanager
def symbolic() -> Iterator[None]:
    """Context in which arrays are leaves of symbolic graphs."""
    before, local.recording = local.recording, True
    try:
        yield
    finally:
        local.recording = before


def build(
    function: Any,
    args: Sequence[Any],
    keywords: Mapping[str, Any],
    inputs: Mapping[Leaf, Type],
    found: Found,
    name: str,
) -> tuple[Any, list[Node]]:
    """Return the call of a function whose arrays are ``inputs``, and the nodes that it captured.

    A result that is no structure of ops is returned in the place of the call.
    """
    with symbolic():
        result = function(*args, **keywords)
        ops: list[Op] = []
        structure = flatten(result, ops)
        if structure is None:
            return result, []
        take([op for op in post_order(ops) if isinstance(op, VoidOp)])
        pure = functional(ops)
        outputs = [op for op in pure.outputs if op is not None]
        if any(op.weak for op in outputs):
            return result, []
        changed = list(pure.updates)
        roots = [*outputs, *pure.updates.values()]
        leaves = storage_leaves(*roots)
        captured = [leaf for leaf in leaves if isinstance(leaf, Array) and leaf not in inputs]
        read = [leaf for leaf in leaves if leaf.info.stored]
        _refuse_placeholders(leaves, inputs, name)
        kinds = [*inputs.values(), *[a._node.type for a in captured]]
        slots = [kind.slot(k) for k, kind in enumerate(kinds)]
        known: dict[Op, Op] = dict(zip([*inputs, *captured], slots, strict=True))
        roots = [substitute(op, known) for op in roots]
        kinds += [variables.state_of(leaf).array._node.type for leaf in read]
        roots = bound(roots, kinds, name)
    key = (tuple(map(id, (*roots, *slots, *read, *changed))), str(structure))
    call = interned.get(key)
    if call is not None:
        return call, [a._node for a in captured]
    call = Call()
    call.name, call.templates, call.leaves = name, tuple(roots), (*slots, *read)
    call.variables, call.updated = tuple(read), tuple(changed)
    call.shown, call.structure = len(outputs), structure
    call.types = tuple([result_type(op, kinds) for op in roots])
    call.held = found.held
    call.generic = (function, *found.generic)
    call.again = None
    if found.known and not captured:
        marks = {id(leaf): k for k, leaf in enumerate(inputs)}
        skeleton = [replace(arg, {i: _Place(k) for i, k in marks.items()}) for arg in args]
        words = {
            w: replace(v, {i: _Place(k) for i, k in marks.items()}) for w, v in keywords.items()
        }
        call.again = _again(function, skeleton, words, tuple(read), len(inputs))
    interned.put(key, call)
    return call, [a._node for a in captured]


class _Place:
    """The place of an array among the arguments of a call."""

    def __init__(self, number: int) -> None:
        self.number = number


def _again(
    function: Any, args: list[Any], keywords: dict[str, Any], read: tuple[Leaf, ...], count: int
) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return a function that builds the results of a call from other tensors."""

    def build_again(tensors: Sequence[Any]) -> Sequence[Any]:
        with symbolic():
            given, words = _filled(args, tensors), _filled(keywords, tensors)
            ops: list[Op] = []
            flatten(function(*given, **words), ops)
            take([op for op in post_order(ops) if isinstance(op, VoidOp)])
            pure = functional(ops)
            known: dict[Op, Op] = dict(zip(read, tensors[count:], strict=True))
            roots = [op for op in (*pure.outputs, *pure.updates.values()) if op is not None]
            return [substitute(op, known) for op in roots]

    return build_again


def _filled(value: Any, tensors: Sequence[Any]) -> Any:
    if isinstance(value, _Place):
        return tensors[value.number]
    if value.__class__ is list or isinstance(value, tuple):
        items = [_filled(item, tensors) for item in value]
        return getattr(type(value), "_make", type(value))(items)
    if is_mapping(value):
        return {_filled(k, tensors): _filled(item, tensors) for k, item in value.items()}
    if value.__class__ is slice:
        return slice(*[_filled(v, tensors) for v in (value.start, value.stop, value.step)])
    return value


def flatten(value: Any, ops: list[Op]) -> Any:
    """Append the ops of a result and return its structure; None if it has others than ops.

    A structure is "tensor", "effect", or (type, parts) or (type, keys, parts).
    """
    if isinstance(value, Op):
        ops.append(value)
        return "effect" if isinstance(value, VoidOp) else "tensor"
    if value.__class__ is list or isinstance(value, tuple):
        parts = [flatten(item, ops) for item in value]
        return None if None in parts or not parts else (type(value), parts)
    if is_mapping(value):
        parts = [flatten(item, ops) for item in value.values()]
        return None if None in parts or not parts else (type(value), list(value), parts)
    return None


@cache
def _done() -> VoidOp:
    """Return what an effect that was run gives: one that does nothing, for lists of effects."""
    with symbolic():
        return doall([])


def _shaped(structure: Any, results: Iterator[Any]) -> Any:
    """Return results in a structure."""
    if structure == "tensor":
        return next(results)
    if structure == "effect":
        return _done()
    if len(structure) == 3:
        kind, keys, parts = structure
        return dict(zip(keys, [_shaped(part, results) for part in parts], strict=True))
    kind, parts = structure
    return getattr(kind, "_make", kind)([_shaped(part, results) for part in parts])


def _refuse_placeholders(leaves: Iterable[Leaf], inputs: Mapping[Leaf, Type], name: str) -> None:
    for leaf in leaves:
        if not (leaf.info.stored or leaf in inputs or isinstance(leaf, Array)):
            raise SymbolicError(
                f"{user_call(name)}: the placeholder {leaf} (made at {leaf.line_info}) has no value "
                "to compute with beside arrays of geon.eager; make it an array, with "
                "geon.eager.array(data, axes), or the arrays placeholders"
            )


def bound(roots: list[Op], kinds: Sequence[Type], name: str) -> list[Op]:
    """Return results with open lengths replaced by those of the arguments."""
    lengths = dict(default_lengths())
    for kind in kinds:
        for axis, given in zip(kind.axes, kind.declared, strict=True):
            if given.open_name is not None and isinstance(axis.expression, int):
                lengths[given.open_name] = axis.expression
    order = post_order(roots)
    for op in order:
        for guard in op.guards:
            guard.refuse_broken(lengths, ", ".join(f"{n} = {v}" for n, v in lengths.items()))
    if any(not isinstance(n, int) for op in order for n in op.axes.lengths):
        made = adopt(roots, notes_of(roots), None, lengths)
        roots = [made[op] for op in roots]
        for op in roots:
            for axis in op.axes:
                if not isinstance(axis.expression, int):
                    raise AxisError(
                        f"{user_call(name)}: no array gives the length of the open axis {axis} of "
                        f"{op}; give it one: geon.Axis({axis.name!r}, length)"
                    )
    return roots


def result_type(op: Op, kinds: Sequence[Type]) -> Type:
    """Return the type of a result; its axes are open where those of an argument are."""
    open_axes = {
        (given.name, axis.expression): given
        for kind in kinds
        for axis, given in zip(kind.axes, kind.declared, strict=True)
        if given.open_name is not None
    }
    declared = [open_axes.get((axis.name, axis.expression), axis) for axis in op.axes]
    return type_of(op.axes, Axes(*declared), op.dtype)


def finish(call: Call, nodes: Sequence[Node], name: str | None = None) -> Any:
    """Return the results of a call on these nodes, and give variables their new versions."""
    site = user_site(2)
    args = (*nodes, *[variables.state_of(leaf).array._node for leaf in call.variables])
    if len(call.types) == 1:
        made = computed(call, args, call.types[0], site)
        if call.shown:
            array = handle(made)
            if name is not None:
                array._set_name(name)
            return array if call.structure == "tensor" else _shaped(call.structure, iter((array,)))
        variables.state_of(call.updated[0]).put(handle(made))
        return _shaped(call.structure, iter(()))
    group = computed(call, args, None, site)
    results = [computed(_part(k, call), (group,), kind, site) for k, kind in enumerate(call.types)]
    arrays = [handle(node) for node in results[: call.shown]]
    for leaf, node in zip(call.updated, results[call.shown :], strict=True):
        variables.state_of(leaf).put(handle(node))
    if name is not None and call.structure == "tensor":
        arrays[0]._set_name(name)
    return _shaped(call.structure, iter(arrays))


_parts: Recent[Part] = Recent()


def _part(number: int, call: Call) -> Part:
    found = _parts.get((number, id(call)))
    if found is None:
        found = Part(number, call)
        found.call = call  # type: ignore[attr-defined]  # keeps the id
        _parts.put((number, id(call)), found)
    return found


# Derivatives ---------------------------------------------------------------------------------------


def expand(roots: Iterable[Node], cut: Iterable[Node] = ()) -> tuple[list[Node], list[Node]]:
    """Return the calls behind ``roots`` in order, and the nodes that they start from.

    The graph ends at ``cut``, at data, and at versions of variables. Raises ``DerivativeError``
    where it was freed or forgotten.
    """
    ends, seen = set(cut), set()
    stack, order, inputs = list(roots), [], []
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in ends:
            inputs.append(node)
        elif node.mark is not None and node.mark in (FREED, FORGOTTEN):
            _refuse_gone(node)
        elif node.mark is not None or node.call is None:
            inputs.append(node)
        else:
            order.append(node)
            stack += node.args
    order.sort(key=serial)
    return order, inputs


def _refuse_gone(node: Node) -> None:
    made = describe(node.site)
    if node.mark == FREED:
        raise DerivativeError(
            f"{user_call('the derivative')} needs the graph of the array made at {made}, which "
            "backward() freed; give retain_graph=True to the first backward()"
        )
    raise DerivativeError(
        f"{user_call('the derivative')} needs the graph of the array made at {made}, which had "
        "more calls behind it than are remembered; detach() it if it is data, or write the loop "
        "with geon.scan"
    )


class Expanded:
    """The graph behind nodes as a plan: the calls in order, each with the numbers of its arguments.

    ``inputs`` are the nodes that it starts from, numbered first, in order of use; ``leaves`` are
    their variables, where they are current versions, or None.
    """

    def __init__(self, roots: Sequence[Node], cut: Sequence[Node]) -> None:
        order, ends = expand(roots, cut)
        starts = set(ends)
        self.inputs: list[Node] = []
        for node in order:
            self.inputs += [arg for arg in node.args if arg in starts]
            starts.difference_update(node.args)
        self.inputs += [node for node in (*roots, *cut) if node in starts]
        self.inputs = list(dict.fromkeys([*self.inputs, *cut]))
        self.numbers = {node: k for k, node in enumerate(self.inputs)}
        self.plan: list[tuple[Any, tuple[int, ...]]] = []
        for node in order:
            numbers = tuple([self.numbers[arg] for arg in node.args])
            self.plan.append((node.call, numbers))
            self.numbers[node] = len(self.numbers)
        given = set(cut)
        self.leaves = [
            node.mark.current(node) if isinstance(node.mark, State) and node not in given else None
            for node in self.inputs
        ]

    @property
    def key(self) -> tuple[Any, ...]:
        """Return what identifies the plan."""
        kinds = tuple([node.type for node in self.inputs])
        return (kinds, tuple(map(id, self.leaves)), tuple(self.plan))

    @property
    def generic(self) -> tuple[Any, ...]:
        """Return what identifies the plan for any lengths."""
        return (
            tuple(map(id, self.leaves)),
            tuple([(call.generic, numbers) for call, numbers in self.plan]),
        )

    def tensors(self, given: Sequence[Any], open: bool) -> list[Any]:
        """Return the tensors of all numbers, from those of the inputs."""
        return built(self.plan, given, open)


def built(plan: Sequence[tuple[Any, Sequence[int]]], given: Sequence[Any], open: bool) -> list[Any]:
    """Return the tensors of the inputs ``given`` and of the calls of a plan."""
    made = list(given)
    for call, numbers in plan:
        made.append(call.build([made[k] for k in numbers], open))
    return made


def _through(
    function: Any, mark: tuple[int, str], args: Any, keywords: Mapping[str, Any], found: Found
) -> Any:
    """Record a function that takes the graph of an argument, such as ``deriv``."""
    place, word = mark
    target = args[place] if place < len(args) else keywords[word]
    inner = Found()
    inner.visit(target)
    roots = [array._node for array in inner.arrays]
    own = set(map(id, inner.arrays))
    cut = [array._node for array in found.arrays if id(array) not in own]
    graph = Expanded(roots, list(dict.fromkeys(cut)))
    _refuse_old(graph, function, found)
    numbers = tuple([graph.numbers[array._node] for array in found.arrays])
    key = (function, tuple(found.key), graph.key, numbers)
    free = [node for node, leaf in zip(graph.inputs, graph.leaves, strict=True) if leaf is None]
    call = calls.get(key)
    if call is None:
        given: list[Any] = list(graph.leaves)
        inputs: dict[Leaf, Type] = {}
        names = {array._node: array.name for array in found.arrays}
        for k, node in enumerate(graph.inputs):
            if given[k] is None:
                kind = node.type
                given[k] = input_leaf(kind.axes, kind.dtype, names.get(node), node.site)
                inputs[given[k]] = kind
        plan, leaves, count = graph.plan, graph.leaves, len(free)
        ids = [id(array) for array in found.arrays]

        def run(tensors: Sequence[Any], open: bool) -> Any:
            rest = iter(tensors)
            starts = [next(rest) if leaf is None else leaf for leaf in leaves]
            made = built(plan, starts, open)
            known = {i: made[n] for i, n in zip(ids, numbers, strict=True)}
            return function(*replace(args, known), **replace(dict(keywords), known))

        found.known = True
        made, _ = build(lambda: run(list(inputs), False), (), {}, inputs, found, name_of(function))
        if not isinstance(made, Call):
            return made
        call = made
        call.held = [*found.held, *leaves]
        call.generic = (function, tuple(found.generic), graph.generic, numbers)
        call.again = _again(
            lambda *tensors: run(tensors, True),
            [_Place(k) for k in range(count)],
            {},
            call.variables,
            count,
        )
        calls.put(key, call)
    return finish(call, free, keywords.get("name"))


def _refuse_old(graph: Expanded, function: Any, found: Found) -> None:
    """Raise ``DerivativeError`` for a variable that was assigned since the graph was recorded."""
    wanted = {id(op) for op in found.held}
    for node, leaf in zip(graph.inputs, graph.leaves, strict=True):
        known = node.mark.variable() if isinstance(node.mark, State) else None
        if leaf is None and known is not None and id(known) in wanted:
            raise DerivativeError(
                f"{user_call(name_of(function))}: {known} (made at {known.line_info}) was assigned "
                "after the array that is derived was computed from it; derive it before the "
                "assignment, or compute it again"
            )


# Tensors of variables ------------------------------------------------------------------------------

_drawn: OfOps[bool] = OfOps()


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
        return variables.Parameter.of(op)
    if not is_drawn(op):
        return record_tensor(op)
    (fixed,) = bound([op], kinds, op.primitive.name)
    drawn = lifts.get(op)
    if drawn is None:
        drawn = {}
        lifts.put(op, drawn)
    if id(fixed) not in drawn:
        (made,) = rebuild([fixed], _numbered())
        drawn[id(fixed)] = fixed, record_tensor(made)
    return drawn[id(fixed)][1]


def record_tensor(op: Op) -> Array:
    """Return the array of a symbolic tensor at the newest versions of its variables."""
    key = ("tensor", id(op))
    call = calls.get(key)
    nodes: list[Node] = []
    if call is None:
        found = Found()
        found.held.append(op)
        made, nodes = build(lambda: op, (), {}, {}, found, op.primitive.name)
        if not isinstance(made, Call):
            from .arrays import array

            return array(_constant(op))
        call = made
        call.again = None
        if not nodes:
            calls.put(key, call)
    made = finish(call, nodes)
    return made  # type: ignore[no-any-return]  # one tensor


def run_effect(op: Any) -> None:
    """Run an effect on the newest versions of variables."""
    key = ("tensor", id(op))
    call = calls.get(key)
    if call is None:
        found = Found()
        found.held.append(op)
        call, nodes = build(lambda: op, (), {}, {}, found, "effect")
        if nodes:
            finish(call, nodes)
            return
        calls.put(key, call)
    finish(call, [])


def _constant(op: Any) -> Any:
    from ..op_graph.building.constants import constant_value

    return constant_value(op)


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


# Operators -----------------------------------------------------------------------------------------


def _binary(name: str) -> Callable[[Any, Any], Any]:
    """Return the method of an operator of arrays, which finds a known call with one look-up."""
    row: Any = PRIMITIVES[name]
    find = calls.get
    sameness = (row,)

    def method(x: Array, y: Any) -> Any:
        node = x._node
        kind = y.__class__
        if kind is Array:
            other = y._node
            if other is not node and not local.recording:
                call = find((row, node.type, other.type))
                if call is not None:
                    return handle(computed(call, (node, other), call.types[0], user_site(2)))
        elif kind is float and not local.recording:
            call = find((row, node.type, number_key(y)))
            if call is not None:
                return handle(computed(call, (node,), call.types[0], user_site(2)))
        return row(x, y)

    return method


METHODS = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide",
    "__lt__": "less", "__le__": "less_equal", "__gt__": "greater", "__ge__": "greater_equal",
}  # fmt: skip


def hooked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is not public with arrays recorded."""

    def call(*args: Any, **keywords: Any) -> Any:
        found = dispatch(function, args, keywords)
        return function(*args, **keywords) if found is NotImplemented else found

    return call


def install() -> None:
    """Send calls with arrays here, from public functions and operators."""
    Dispatch.hook = dispatch
    for name in ("take", "matmul"):
        LATE_BOUND[name] = hooked(LATE_BOUND[name])
    for method, name in METHODS.items():
        setattr(Array, method, _binary(name))
