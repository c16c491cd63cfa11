"""Derivatives of the recorded graph, and the two ways out of eager computation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import DerivativeError, GeonError, SymbolicError
from ..op_graph.autodiff.deriv import deriv
from ..op_graph.core.source_info import describe, user_call
from ..op_graph.op_graph import Leaf, Tensor
from ..op_graph.rows.leaves import input_leaf
from . import recording
from .arrays import EagerArray, check_array, same
from .nodes import (
    DETACHED,
    FORGOTTEN,
    FREED,
    RecordedCall,
    RecordedNode,
    Type,
    local,
    mapped,
    serial,
    symbolic,
)
from .variables import VariableState

if TYPE_CHECKING:
    from .recording import CallKey

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


def expand(
    roots: Iterable[RecordedNode], cut: Iterable[RecordedNode] = ()
) -> tuple[list[RecordedNode], list[RecordedNode]]:
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
        elif node.mark in GONE:
            raise DerivativeError(
                f"{user_call('the derivative')} needs the graph of the array made at "
                f"{describe(node.site)}, {GONE[node.mark]}"
            )
        elif node.mark is not None or node.call is None:
            inputs.append(node)
        else:
            order.append(node)
            stack += node.args
    order.sort(key=serial)
    return order, inputs


class Expanded:
    """The graph behind nodes as a plan: the calls in order, each with the numbers of its arguments.

    ``inputs`` are the nodes that it starts from, numbered first, in order of use. ``leaves`` has
    the variable of each that is a newest version, otherwise None.
    """

    def __init__(self, roots: Sequence[RecordedNode], cut: Sequence[RecordedNode] = ()) -> None:
        order, ends = expand(roots, cut)
        used = [*(arg for node in order for arg in node.args), *roots]
        starts = {*ends, *cut}
        self.inputs = [*dict.fromkeys([*(node for node in used if node in starts), *cut])]
        self.numbers = {node: k for k, node in enumerate(self.inputs)}
        self.plan: list[tuple[Any, tuple[int, ...]]] = []
        for node in order:
            self.plan.append((node.call, tuple([self.numbers[arg] for arg in node.args])))
            self.numbers[node] = len(self.numbers)
        self.sites = [node.site for node in order]
        self.leaves: list[Leaf | None] = [
            node.mark.current(node)
            if isinstance(node.mark, VariableState) and node not in cut
            else None
            for node in self.inputs
        ]

    def key(self, generic: bool) -> tuple[Any, ...]:
        """Return what identifies the plan: for these lengths, or if ``generic`` for all."""
        kinds = () if generic else tuple([node.type for node in self.inputs])
        plan = [(call.generic, numbers) for call, numbers in self.plan] if generic else self.plan
        return (kinds, tuple(map(id, self.leaves)), tuple(plan))


def built(
    plan: Sequence[tuple[Any, Sequence[int]]],
    leaves: Sequence[Any],
    given: Iterable[Any],
    open: bool,
    sites: Sequence[Any] = (),
) -> list[Any]:
    """Return the tensors of all numbers of a plan; ``given`` are those of inputs without a leaf."""
    rest = iter(given)
    made = [next(rest) if leaf is None else leaf for leaf in leaves]
    for (call, numbers), site in zip_longest(plan, sites):
        made.append(call.build([made[k] for k in numbers], open, site))
    return made


def through(function: Any, args: Any, keywords: Mapping[str, Any], found: CallKey) -> Any:
    """Record a function that takes the graph of an argument, such as ``deriv``."""
    place, word = function.differentiates
    roots = list(recording.arrays_in(args[place] if place < len(args) else keywords[word]))
    own = set(map(id, roots))
    cut = [array._node for array in found.arrays if id(array) not in own]
    graph = Expanded([array._node for array in roots], [*dict.fromkeys(cut)])
    _refuse_old(graph, function, found)
    plan, leaves = graph.plan, graph.leaves
    free = [node for node, leaf in zip(graph.inputs, leaves, strict=True) if leaf is None]
    numbers = [graph.numbers[array._node] for array in found.arrays]
    key = (function, *found.key, *numbers, *graph.key(False))
    call = recording.calls.get(key)
    if call is None:
        names = {array._node: array.name for array in found.arrays}
        inputs: dict[Leaf, Type] = {
            input_leaf(n.type.axes, n.type.dtype, names.get(n), n.site): n.type for n in free
        }
        places = {id(a): n for a, n in zip(found.arrays, numbers, strict=True)}
        # The function must not hold the arrays, which it is called again without.
        skeleton = mapped((args, keywords), lambda v: _Number.of(places.get(id(v)), v))

        def run(tensors: Iterable[Any], open: bool) -> Any:
            made = built(plan, leaves, tensors, open)
            given, words = mapped(skeleton, lambda v: made[v] if isinstance(v, _Number) else v)
            return function(*given, **words)

        first = functools.partial(run, list(inputs), False)
        first.name = recording.name_of(function)  # type: ignore[attr-defined]  # for messages
        call, _ = recording.build(first, (), {}, inputs, found)
        if not isinstance(call, RecordedCall):
            return call
        call.held += leaves
        call.generic = (function, *found.generic, *numbers, graph.key(True))
        call.again = recording.again(lambda tensors: run(tensors, True), call.variables, True)
        recording.calls.put(key, call)
    return recording.finish(call, free, keywords.get("name"))


class _Number(int):
    """The number of a tensor of a plan, in the arguments of a function."""

    @classmethod
    def of(cls, number: int | None, value: Any) -> Any:
        """Return the number; without one, the value."""
        return value if number is None else cls(number)


def _refuse_old(graph: Expanded, function: Any, found: CallKey) -> None:
    """Raise ``DerivativeError`` for a variable that was assigned since the graph was recorded."""
    wanted = {id(op) for op in found.held}
    for node, leaf in zip(graph.inputs, graph.leaves, strict=True):
        known = node.mark.variable() if isinstance(node.mark, VariableState) else None
        if leaf is None and known is not None and id(known) in wanted:
            raise DerivativeError(
                f"{user_call(recording.name_of(function))}: {known} (made at {known.line_info}) "
                "was assigned after the array that is derived was computed from it; derive it "
                "before the assignment, or compute it again"
            )


# Gradients ---------------------------------------------------------------------------------------


def grad(y: EagerArray, x: Any, *, seed: Any = None, unreached: str = "raise") -> Any:
    """Return ``geon.deriv(y, x)``: arrays over the axes of ``x``, which can be derived again.

    ``x`` is an array or a variable, or a list of these. Raises what ``geon.deriv`` raises, and
    ``DerivativeError`` for a variable that was assigned since ``y`` was computed from it.
    """
    return deriv(check_array(y, "grad"), x, seed=seed, unreached=unreached)


def states_of(y: EagerArray) -> list[VariableState]:
    """Return the states of the trainable variables behind an array, in order of first use."""
    marks = [node.mark for node in sorted(expand([y._node])[1], key=serial)]
    found = [mark for mark in marks if isinstance(mark, VariableState) and mark.trainable]
    return [*dict.fromkeys(found)]


def backward(y: EagerArray, seed: Any, retain_graph: bool) -> None:
    """Add the derivative of ``y`` to the gradients of its trainable variables."""
    states = states_of(y)
    if not states:
        raise DerivativeError(
            f"{user_call('backward')}: {y._label()} (made at {y.line_info}) depends on no "
            "trainable variable; geon.eager.variable makes one, and geon.eager.grad(y, x) derives "
            "with respect to any array"
        )
    made: Any = deriv(y, [state.leaf for state in states], seed=seed)
    for state, gradient in zip(states, made, strict=True):
        before = state.gradient
        state.gradient = same(gradient if before is None else before + gradient, DETACHED)
    if not retain_graph:
        y._node.mark = FREED
        if y._node.value is not None:
            y._node.forget(FREED)


@contextmanager
def no_grad() -> Iterator[None]:
    """Context in which new arrays are constants to derivatives: their graph is not remembered."""
    before, local.grad = local.grad, False
    try:
        yield
    finally:
        local.grad = before


# Leaving -----------------------------------------------------------------------------------------


def function(f: F) -> F:
    """Return ``f`` as one computation: called with arrays, it is recorded once for their types.

    The arguments are arrays, or numbers and other values that are part of the program, in lists,
    tuples and dictionaries. ``f`` returns tensors in the same structures; assignments that it
    returns are run. Its Python code runs at the first call with arguments of new types or values
    only. Raises ``SymbolicError`` if ``f`` reads a value, as ``if``, ``float`` and ``print`` do:
    its graph would depend on the data.
    """

    @functools.wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        if local.recording or next(recording.arrays_in((args, keywords)), None) is None:
            return f(*args, **keywords)
        try:
            return recording.record(f, args, keywords)
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
    found = Expanded([check_array(x, "graph")._node])
    free = [n for n, leaf in zip(found.inputs, found.leaves, strict=True) if leaf is None]
    if all(call.again is not None for call, _ in found.plan):
        try:
            return _tensor(found, x, [n.type.declared for n in free], free, True)
        except GeonError:
            pass  # a length is part of the graph, such as that of a flattened axis
    return _tensor(found, x, [n.type.axes for n in free], free, False)


def _tensor(
    found: Expanded, x: EagerArray, axes: list[Any], free: list[RecordedNode], open: bool
) -> Tensor:
    given = [input_leaf(a, n.type.dtype, site=n.site) for a, n in zip(axes, free, strict=True)]
    with symbolic():
        made = built(found.plan, found.leaves, given, open, found.sites)
    tensor: Tensor = made[found.numbers[x._node]]
    return tensor
