"""Derivatives of the recorded graph, and the two ways out of eager computation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from ..errors import ArgumentError, DerivativeError, GeonError, SymbolicError
from ..op_graph.autodiff.deriv import deriv
from ..op_graph.core.argument_hints import public
from ..op_graph.core.source_info import user_call
from ..op_graph.op_graph import Leaf, Tensor
from . import recording
from .arrays import EagerArray, array, check_array
from .nodes import FREED, local, serial, symbolic
from .symbolic_calls import Arguments, arrays_in
from .tape import built, tape_of
from .variables import VariableState

F = TypeVar("F", bound=Callable[..., Any])
WHY = (
    "whose graph must not depend on data: geon.where, geon.cond and geon.while_loop choose by "
    "values within a graph; or leave geon.eager.function out"
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
    marks = [node.mark for node in sorted(tape_of([y._node]).inputs, key=serial)]
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

    def tensor(open: bool) -> Tensor:
        with symbolic():
            given = tape.placeholders(open)
            made = built(tape.steps, tape.leaves, given, open, tape.sites)
        result: Tensor = made[tape.numbers[x._node]]
        return result

    if tape.opens:
        with suppress(GeonError):  # a length is part of the graph, as that of a flattened axis
            return tensor(True)
    return tensor(False)
