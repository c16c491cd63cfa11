"""Derivatives of the recorded graph, and the two ways out of eager computation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from ..errors import ArgumentError, DerivativeError, GeonError, SymbolicError
from ..op_graph.autodiff.deriv import deriv
from ..op_graph.core.argument_hints import public
from ..op_graph.core.source_info import describe, user_call
from ..op_graph.op_graph import Leaf, Tensor
from ..op_graph.rows.leaves import input_leaf
from ..op_graph.values.tree import mapped
from . import nodes, recording
from .arrays import EagerArray, array, check_array
from .building import Arguments, arrays_in, build, name_of
from .nodes import FORGOTTEN, FREED, Place, RecordedCall, RecordedNode, Tape, built, local
from .variables import VariableState

# Calls that derive, and the numbers of their arguments on the tape.
derived_calls: nodes.Recent[tuple[RecordedCall, list[int]]] = nodes.Recent()
F = TypeVar("F", bound=Callable[..., Any])
GONE = {
    FREED: "which backward() freed; give retain_graph=True to the first backward()",
    FORGOTTEN: "which had more calls behind it than are remembered; detach() it if it is data, or "
    "write the loop with geon.scan",
}
WHY = (
    "whose graph must not depend on data: geon.where, geon.cond and geon.while_loop choose by "
    "values within a graph; or leave geon.eager.function out"
)


def tape_of(roots: Sequence[RecordedNode], cut: Sequence[RecordedNode] = ()) -> Tape:
    """Return the graph behind nodes as a tape, with inputs in order of use.

    It ends at ``cut``, at data, and at versions of variables. Raises ``DerivativeError`` where it
    was freed or forgotten.
    """
    starts, seen, stack, order = {*cut}, set(), [*roots], []
    while stack:
        node = stack.pop()
        if node in seen or node in starts:
            continue
        seen.add(node)
        if node.mark in GONE:
            raise DerivativeError(
                f"{user_call('the derivative')} needs the graph of the array made at "
                f"{describe(node.site)}, {GONE[node.mark]}"
            )
        if node.mark is not None or node.result is None:
            starts.add(node)
        else:
            order.append(node)
            stack += node.args
    order.sort(key=nodes.serial)
    used = [*(arg for node in order for arg in node.args), *roots]
    return Tape(order, dict.fromkeys([*(node for node in used if node in starts), *cut]))


def leaves_of(
    tape: Tape, cut: Sequence[RecordedNode] = ()
) -> tuple[list[Leaf | None], list[RecordedNode]]:
    """Return the variable of each input that is a newest version of one, and the other inputs."""
    leaves = [
        n.mark.current(n) if isinstance(n.mark, VariableState) and n not in cut else None
        for n in tape.inputs
    ]
    return leaves, [n for n, leaf in zip(tape.inputs, leaves, strict=True) if leaf is None]


def filled_in(leaves: Sequence[Leaf | None], given: Iterable[Any]) -> list[Any]:
    """Return the tensors of the inputs of a tape: its variables, and those ``given`` elsewhere."""
    rest = iter(given)
    return [next(rest) if leaf is None else leaf for leaf in leaves]


def through(function: Any, args: Any, keywords: Mapping[str, Any], found: Arguments) -> Any:
    """Record a function that takes the graph of an argument, such as ``deriv``."""
    place, word = function.differentiates
    derived = args[place] if place < len(args) else keywords[word]
    roots = [*dict.fromkeys(array._node for array in arrays_in(derived))]
    cut = [node for node in found.numbers if node not in roots]
    tape = tape_of(roots, cut)
    leaves, free = leaves_of(tape, cut)
    _refuse_old(free, function, found)
    numbers = [tape.numbers[node] for node in found.numbers]
    kinds = [node.type for node in tape.inputs]
    key = (function, *found.key, *numbers, *kinds, *map(id, leaves), *tape.steps)
    known = derived_calls.get(key) if found.known else None
    if known is None:
        arrays = arrays_in((args, keywords))
        names = {array._node: array.name for array in arrays}
        inputs: dict[Tensor, RecordedNode] = {
            input_leaf(n.type.axes, n.type.dtype, names.get(n), n.site): n for n in free
        }
        places = {id(array): Place(tape.numbers[array._node]) for array in arrays}
        # The call must not hold the arrays, without which it is made again.
        skeleton = mapped((args, keywords), lambda v: places.get(id(v), v))
        steps = tape.steps

        def make(tensors: Sequence[Any], open: bool) -> tuple[Any, Sequence[Tensor]]:
            made = built(steps, filled_in(leaves, tensors), open)
            given, words = nodes.filled(skeleton, made)
            return function(*given, **words), made[len(leaves) :]

        generic = (function, *found.generic, *numbers, *map(id, leaves), *tape.generic())
        held = [*found.held, *leaves]
        call, given = build(function, make, inputs, held, generic, tape.opens, tape.order)
        if not isinstance(call, RecordedCall):
            return call
        known = derived_calls.put(key, (call, [tape.numbers[node] for node in given]))
    numbered = [*tape.numbers]
    return recording.finish(known[0], [numbered[k] for k in known[1]], keywords.get("name"))


def _refuse_old(free: Sequence[RecordedNode], function: Any, found: Arguments) -> None:
    """Raise ``DerivativeError`` for a variable that was assigned since the graph was recorded."""
    wanted = {id(op) for op in found.held}
    for node in [node for node in free if isinstance(node.mark, VariableState)]:
        known = node.mark.variable()
        if known is not None and id(known) in wanted:
            raise DerivativeError(
                f"{user_call(name_of(function))}: {known} (made at {known.line_info}) "
                "was assigned after the array that is derived was computed from it; derive it "
                "before the assignment, or compute it again"
            )


# Gradients ---------------------------------------------------------------------------------------


@public
def grad(y: EagerArray, x: Any, *, seed: Any = None, unreached: str = "raise") -> Any:
    """Return ``geon.deriv(y, x)``: arrays over the axes of ``x``, which can be derived again.

    ``x`` is an array or a variable, or a list of these. Raises what ``geon.deriv`` raises, and
    ``DerivativeError`` for a variable that was assigned since ``y`` was computed from it.
    """
    check_array(y, "grad")
    return deriv(y, x, seed=_seed_array(y, seed), unreached=unreached)


def _seed_array(y: EagerArray, seed: Any) -> Any:
    """Return a seed, as an array if it is one of NumPy, so that others of its axes share a call."""
    return array(seed, y.axes) if isinstance(seed, np.ndarray) and seed.shape == y.shape else seed


def states_of(y: EagerArray) -> dict[Leaf, VariableState]:
    """Return the trainable variables behind an array, in order of first use, with their states."""
    marks = [node.mark for node in sorted(tape_of([y._node]).inputs, key=nodes.serial)]
    found = [(m.variable(), m) for m in marks if isinstance(m, VariableState)]
    return {leaf: mark for leaf, mark in found if leaf is not None and leaf.trainable}


def backward(y: EagerArray, seed: Any, retain_graph: bool) -> None:
    """Add the derivative of ``y`` to the gradients of its trainable variables."""
    states = states_of(y)
    if not states:
        raise DerivativeError(
            f"{user_call('backward')}: {y._label()} (made at {y.line_info}) depends on no "
            "trainable variable; geon.eager.variable makes one, and geon.eager.grad(y, x) derives "
            "with respect to any array"
        )
    made: Any = deriv(y, [*states], seed=_seed_array(y, seed))
    for state, gradient in zip(states.values(), made, strict=True):
        before = state.gradient
        total = gradient if before is None else before + gradient
        state.gradient = total.detach()
    if not retain_graph:
        y._node.mark = FREED
        if y._node.value is not None:
            y._node.forget(FREED)


# Leaving -----------------------------------------------------------------------------------------


def function(f: F) -> F:
    """Return ``f`` as one computation: called with arrays, it is recorded once for their types.

    The arguments are arrays, or numbers and other values that are part of the program, in lists,
    tuples and dictionaries. ``f`` returns tensors in the same structures; assignments that it
    returns are run. Its Python code runs at the first call with arguments of new types or values
    only. Raises ``SymbolicError`` if ``f`` reads a value, as ``if``, ``float`` and ``print`` do:
    its graph would depend on the data.
    """

    if not callable(f):
        raise ArgumentError(
            f"{user_call('function')}: {f!r} of type {type(f).__name__} is no function; write "
            "geon.eager.function(f), or @geon.eager.function above its definition"
        )

    @functools.wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        if local.recording or not arrays_in((args, keywords)):
            return f(*args, **keywords)
        try:
            return recording.record(f, args, keywords, Arguments(args, keywords))
        except SymbolicError as error:
            what = f"{user_call(f.__name__)} is a geon.eager.function, {WHY}"
            shown = str(error) if WHY in str(error) else f"{error}\n{what}"
            raise SymbolicError(shown) from None

    return call  # type: ignore[return-value]  # the same signature


def graph(x: EagerArray) -> Tensor:
    """Return the tensor behind an array, with placeholders for the data that it starts from.

    ``graph(x).placeholders()`` lists them in order of first use, for
    ``transformer.computation(graph, *placeholders)``. Variables stand for themselves, except for
    versions before their last assignment. Axes are open where those of the data were, unless the
    graph states a length.
    """
    tape = tape_of([check_array(x, "graph")._node])
    leaves, free = leaves_of(tape)

    def tensor(open: bool) -> Tensor:
        with nodes.symbolic():
            given = filled_in(leaves, nodes.leaves_for(free, open))
            made: Tensor = built(tape.steps, given, open, tape.sites)[tape.numbers[x._node]]
        return made

    if tape.opens:
        with suppress(GeonError):  # a length is part of the graph, as that of a flattened axis
            return tensor(True)
    return tensor(False)
