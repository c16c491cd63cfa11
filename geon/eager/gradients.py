"""Gradients of arrays: ``grad``, ``backward`` and ``no_grad``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..errors import DerivativeError
from ..op_graph.autodiff.deriv import deriv
from ..op_graph.core.source_info import user_call
from ..op_graph.op_graph import Op
from .arrays import Array, check_array, same
from .nodes import DETACHED, FREED, State, local
from .recording import expand
from .variables import EagerState


def grad(y: Array, x: Any, *, seed: Any = None, unreached: str = "raise") -> Any:
    """Return ``geon.deriv(y, x)``: arrays over the axes of ``x``, to be derived again if needed.

    ``x`` is an array or a variable, or a list of these; versions of variables are those that ``y``
    was computed from. Raises what ``geon.deriv`` raises.
    """
    return deriv(check_array(y, "grad"), x, seed=seed, unreached=unreached)


def states_of(y: Array) -> list[EagerState]:
    """Return the states of the trainable variables behind an array, in order of first use."""
    _, inputs = expand([y._node])
    found = []
    for node in sorted(inputs, key=lambda node: node.serial):
        leaf = node.mark.variable() if isinstance(node.mark, State) else None
        if leaf is not None and leaf.trainable and node.mark not in found:
            found.append(node.mark)
    return found


def backward(y: Array, seed: Any, retain_graph: bool) -> None:
    """Add the derivative of ``y`` to the gradients of its trainable variables."""
    states = states_of(y)
    if not states:
        raise DerivativeError(
            f"{user_call('backward')}: {y._label()} (made at {y.line_info}) depends on no trainable "
            "variable; geon.eager.variable makes one, and geon.eager.grad(y, x) derives with "
            "respect to any array"
        )
    made = deriv(y, [state.variable() for state in states], seed=seed)
    for state, gradient in zip(states, made, strict=True):
        before = state.gradient
        state.gradient = same(gradient if before is None else before + gradient, DETACHED)
    if not retain_graph:
        y._node.mark = FREED


@contextmanager
def no_grad() -> Iterator[None]:
    """Context in which new arrays are constants to derivatives: their graph is not remembered."""
    before, local.grad = local.grad, False
    try:
        yield
    finally:
        local.grad = before
