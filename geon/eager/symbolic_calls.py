"""Symbolic evaluation of a call: a key of its arguments, and its results over placeholders."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from ..errors import AssignError, AxisError, SymbolicError
from ..op_graph.axes.axes import Axes, Axis
from ..op_graph.axes.length_defaults import default_lengths
from ..op_graph.building.unused_effects import take
from ..op_graph.core.primitive import Primitive
from ..op_graph.core.source_info import building, current, user_call
from ..op_graph.op_graph import Leaf, Op, Tensor, VoidOp, post_order
from ..op_graph.rows.effects import doall, storage_of
from ..op_graph.transforms.clone import fix_lengths
from ..op_graph.transforms.functionalize import functional, substitute
from ..op_graph.values.structural_key import NUMBERS, PLAIN, add_parts
from ..op_graph.values.tree import Place, mapped
from .arrays import EagerArray
from .nodes import Recent, RecordedCall, RecordedNode, Type, symbolic, type_of
from .variables import EagerVariable, leaf_of, state_of

Make = Callable[[Sequence[Any], bool], tuple[Any, Sequence[Op]]]
interned: Recent[RecordedCall] = Recent()


def arrays_in(value: Any) -> list[EagerArray]:
    """Return the arrays in an argument."""
    found: list[EagerArray] = []
    mapped(value, lambda v: found.append(v) if isinstance(v, EagerArray) else None)
    return found


class Words(tuple[str, ...]):
    """The names of keyword arguments, before whose values they stand in a key."""


class Arguments:
    """The arguments of a call: the nodes of its arrays, and a key of everything else about it.

    ``numbers`` has the number of each node. ``key`` has the type of each at its first place and its
    number at others. ``known`` is False if the call must be built each time. ``held`` are objects
    that the key has the id of, ``data`` are NumPy arrays. ``stored`` is true if there are arrays of
    variables among the arguments, and ``calls`` if there are functions.
    """

    __slots__ = ("calls", "data", "held", "key", "known", "numbers", "stored")

    def __init__(self, args: Iterable[Any], keywords: Mapping[str, Any] | None = None) -> None:
        self.numbers: dict[RecordedNode, int] = {}
        self.key: list[Any] = []
        self.held: list[Any] = []
        self.data: list[Any] = []
        self.known, self.stored, self.calls = True, False, False
        add_parts(self.key, args, self._part)
        if keywords:
            self.key.append(Words(keywords))
            add_parts(self.key, keywords.values(), self._part)

    def _part(self, value: Any) -> Any:
        """Note a value that is no structure or number, and return its part of the key."""
        kind = value.__class__
        if kind is EagerArray:
            node = value._node
            if node in self.numbers:
                return self.numbers[node]
            self.numbers[node] = len(self.numbers)
            return node.type
        if isinstance(value, Op):
            self.stored = self.stored or isinstance(value, EagerVariable)
            self.held.append(leaf_of(value))
            return id(self.held[-1])
        if hasattr(kind.__call__, "differentiates"):  # an optimiser, by its settings
            plain = PLAIN | NUMBERS | {Axis, Axes}
            settings = [v for v in vars(value).items() if v[1].__class__ in plain]
            self.held.append(value)
            return id(value), str(settings)
        if kind is np.ndarray:
            self.data.append(value)
        elif callable(value) and not isinstance(value, Primitive):
            self.calls = True  # a function may read anything
        elif kind.__hash__ is not None and kind is not tuple:
            return value
        self.known = False
        return None

    @property
    def generic(self) -> tuple[Any, ...]:
        """The key without the types of arrays."""
        return tuple([EagerArray if part.__class__ is Type else part for part in self.key])


def is_ours(function: Any) -> bool:
    """Return True for a function or class of the graph, False for one of the user's."""
    of = function if isinstance(function, FunctionType) else type(function)
    return str(of.__module__).startswith("geon.op_graph.")


def name_of(function: Any) -> str:
    """Return the name of a function for messages."""
    return str(getattr(function, "name", None) or getattr(function, "__name__", "function"))


@cache
def done() -> VoidOp:
    """Return what an effect that was run gives: one that does nothing, for lists of effects."""
    with symbolic():
        return doall([])


def _pure(result: Any) -> tuple[Any, list[Op], dict[Leaf, Tensor]] | None:
    """Return the structure, the pure ops and the new values of variables of a result.

    Return None for a result that is no structure of ops.
    """
    ops: list[Op] = []
    places = itertools.count()

    def leaf(value: Any) -> Any:
        ops.append(value)
        return Place(next(places)) if isinstance(value, Tensor) else done()

    structure = mapped(result, leaf)
    if not ops or not all(isinstance(op, Op) for op in ops):
        return None
    effects = [op for op in post_order(ops) if isinstance(op, VoidOp)]
    _refuse_targets(effects)
    take(effects)
    pure = functional(ops)
    return structure, [op for op in pure.outputs if op is not None], pure.updates


def build(
    function: Any,
    make: Make,
    inputs: Mapping[Tensor, RecordedNode],
    held: Sequence[Any],
    generic: Any,
    rebuilt: bool,
    between: Sequence[RecordedNode] = (),
) -> tuple[Any, list[RecordedNode]]:
    """Return the call whose results ``make`` gives for ``inputs``, and the nodes of its arguments.

    ``make`` takes tensors for the inputs, and whether their lengths are open. It returns a result
    of ``function``, and the tensors of the nodes ``between`` the inputs and the result, which
    become arguments where the result depends on them: if they have a value, it is not computed
    again. If ``rebuilt``, it can be called again with other tensors. A result that is no structure
    of ops is returned in the place of the call.
    """
    name = name_of(function)
    with symbolic():
        result, tensors = make([*inputs], False)
        pure = _pure(result)
        if pure is None or any(op.weak for op in pure[1]):
            return result, []
        structure, outputs, updates = pure
        roots: list[Op] = [*outputs, *updates.values()]
        inner = {op: k for k, op in enumerate(tensors) if op.args}
        order = post_order(roots, inner)
        reached = dict.fromkeys([*roots, *(arg for op in order for arg in op.args)])
        taken = [inner[op] for op in reached if op in inner]
        leaves = [op for op in order if isinstance(op, Leaf)]
        read = [leaf for leaf in leaves if leaf.info.stored]
        captured = [leaf for leaf in leaves if not leaf.info.stored and leaf not in inputs]
        nodes = [*inputs.values(), *[between[k] for k in taken]]
        nodes += [_captured(leaf, name) for leaf in captured]
        kinds = [node.type for node in nodes]
        slots = [kind.slot(k) for k, kind in enumerate(kinds)]
        replaced = [*inputs, *[tensors[k] for k in taken], *captured]
        known: dict[Op, Op] = dict(zip(replaced, slots, strict=True))
        states = [state_of(leaf) for leaf in read]
        kinds += [state.array._node.type for state in states]
        roots = bound([substitute(op, known) for op in roots], kinds, name)
    shape = repr(mapped(structure, lambda v: v if isinstance(v, Place) else type(v)))
    ids = tuple(map(id, (*roots, *slots, *read, *updates)))
    # Calls with one key are one, whose other lengths agree.
    key = (ids, *taken, name, shape, generic if rebuilt else None)
    call = interned.get(key)
    if call is None:
        anew = again(make, len(inputs), taken, read, is_ours(function))
        call = RecordedCall(
            name, roots, (*slots, *read), [result_type(op, kinds) for op in roots], generic,
            anew if rebuilt and not captured else None, states, [*map(state_of, updates)], taken,
            structure,
        )  # fmt: skip
        interned.put(key, call)
    call.held.update({id(op): op for op in (*held, *updates)})
    return call, nodes


def again(
    make: Make, count: int, taken: Sequence[int], read: Sequence[Leaf], ours: bool
) -> Callable[[Sequence[Any], Any], Sequence[Any]]:
    """Return a function that builds the results of a call from other tensors.

    The tensors are those of ``count`` inputs, of the nodes ``taken`` between these and the results,
    and of the variables ``read``. Ops have the given line if the function is one of ours; a
    function of the user's has lines of its own.
    """

    def results(given: Sequence[Any], site: Any) -> Sequence[Any]:
        with symbolic(), building():
            current.site = site if ours else None
            result, tensors = make(given[:count], True)
            pure = _pure(result)
            assert pure is not None
            replaced = [*[tensors[k] for k in taken], *read]
            known: dict[Op, Op] = dict(zip(replaced, given[count:], strict=True))
            return [substitute(op, known) for op in (*pure[1], *pure[2].values())]

    return results


def _refuse_targets(effects: Sequence[Op]) -> None:
    """Raise ``AssignError`` for an assignment to an array."""
    for effect in effects:
        target = effect.args[0] if effect.primitive.name == "assign" else None
        leaf = None if target is None else storage_of(target)
        if isinstance(leaf, EagerArray):
            raise AssignError(
                f"{user_call('assign')}: the array {leaf} (made at {leaf.line_info}) is a value "
                "and cannot be assigned to; geon.eager.variable makes a variable w, and "
                "geon.assign(w.leaf[at], value) changes a part of it"
            )


def _captured(leaf: Leaf, name: str) -> RecordedNode:
    """Return the node of an array that a function used beside its arguments."""
    if isinstance(leaf, EagerArray):
        return leaf._node
    raise SymbolicError(
        f"{user_call(name)}: the placeholder {leaf} (made at {leaf.line_info}) has no value to "
        "compute with beside arrays of geon.eager; make it an array, with "
        "geon.eager.array(data, axes), or the arrays placeholders"
    )


def open_axes(kinds: Sequence[Type]) -> Iterator[tuple[Axis, Axis]]:
    """Return the open axes of types, each with its length and as it was declared."""
    for kind in kinds:
        if kind.axes is not kind.declared:
            for axis, given in zip(kind.axes, kind.declared, strict=True):
                if given.open_name is not None:
                    yield axis, given


def bound(roots: list[Op], kinds: Sequence[Type], name: str) -> list[Op]:
    """Return results with open lengths replaced by those of the arguments."""
    given = {str(axis.open_name): fixed.expression for fixed, axis in open_axes(kinds)}
    lengths: dict[str, Any] = {**default_lengths(), **given}
    fixed = fix_lengths(roots, lengths)
    for axis in [axis for op in fixed for axis in op.axes]:
        if not isinstance(axis.expression, int):
            raise AxisError(
                f"{user_call(name)}: no array gives the length of the open axis {axis} of the "
                f"result; give it one: geon.Axis({axis.name!r}, length)"
            )
    return fixed


def result_type(op: Op, kinds: Sequence[Type]) -> Type:
    """Return the type of a result; its axes are open where those of an argument are."""
    found = {(axis.name, axis.expression): given for axis, given in open_axes(kinds)}
    declared = [found.get((axis.name, axis.expression), axis) for axis in op.axes]
    return type_of(op.axes, Axes(*declared), op.dtype)
